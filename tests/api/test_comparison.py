"""Comparisons of two models on the same rows: differences, intervals, tests and groups."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import program
from acceptability import Bootstrap, Scores, Sentence, Suite, compare
from acceptability import measure as measure_scores
from acceptability.errors import MeasureError, SuiteError
from acceptability.specs import parse_signature
from acceptability.stats import delong_test, mcnemar
from acceptability.types import make_contrast

KINDS = ("a", "b", "c")


def make_suite(per_kind: int = 20) -> Suite:
    sentences = [
        Sentence(f"{kind}{i}", f"Sentence {kind}{i}.", label=1 - i % 2, rating=float(i % 2), tags={"kind": kind})
        for kind in KINDS
        for i in range(2 * per_kind)
    ]
    pairs = [make_contrast(sentences[i], sentences[i + 1]) for i in range(0, len(sentences), 2)]
    return Suite("made", tuple(sentences), tuple(pairs))


def make_scores(suite: Suite, right: dict[str, int], model: str) -> Scores:
    """Return scores by which the given number of contrasts of each kind are right, the first ones."""
    seen = dict.fromkeys(KINDS, 0)
    values = {}
    for index, contrast in enumerate(suite.contrasts):
        kind = contrast.tags["kind"]
        gap = 1.0 if seen[kind] < right[kind] else -1.0
        seen[kind] += 1
        values |= {contrast.better: gap + 0.001 * index, contrast.worse: 0.001 * index}
    return Scores(values, model)


SUITE = make_suite()
GOOD = make_scores(SUITE, {"a": 20, "b": 15, "c": 10}, "good")
POOR = make_scores(SUITE, {"a": 10, "b": 14, "c": 10}, "poor")


def test_a_comparison_has_a_paired_interval_and_tests() -> None:
    (result,) = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"])
    assert (result.first_value, result.second_value) == (45 / 60, 34 / 60)
    assert result.difference == pytest.approx(11 / 60)
    assert result.low < result.difference < result.high
    assert (result.only_first, result.only_second) == (11, 0)
    exact = stats.binomtest(0, 11, 0.5).pvalue
    assert result.mcnemar_p == pytest.approx(exact, abs=1e-12)
    assert result.p == pytest.approx(exact, abs=1e-12), "of rows that are right or wrong every swap is counted"
    assert result.odds_ratio is None
    fields = parse_signature(result.signature)
    assert fields["test"] == "permutation(sign-flip,two-sided,draws=2000,by=row,seed=0)"
    assert fields["ci"] == "paired tango(0.95,by=row)"
    assert fields["mcnemar"] == "exact"
    assert "good minus poor" in result.signature


def test_groups_come_with_corrected_p_and_a_macro_mean() -> None:
    overall, *groups, macro = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], by="kind")
    assert [result.group for result in (overall, *groups, macro)] == [None, "kind=a", "kind=b", "kind=c", "macro(kind)"]
    ps = [stats.binomtest(0, n, 0.5).pvalue if n else 1.0 for n in (10, 1, 0)]
    assert [result.p for result in groups] == pytest.approx(ps)
    assert [result.holm for result in groups] == pytest.approx([3 * ps[0], 1, 1])
    assert [result.benjamini_hochberg for result in groups] == pytest.approx([3 * ps[0], 1, 1])
    assert overall.holm is None
    assert macro.difference == pytest.approx(np.mean([10 / 20, 1 / 20, 0]))
    assert macro.low < macro.difference < macro.high
    # 11 discordant rows, of which those of a group count equally: all have one sign.
    assert macro.p == pytest.approx(2 / 2**11, rel=1e-9)
    assert macro.n == 60
    fields = [parse_signature(result.signature) for result in (overall, groups[0], macro)]
    corrections = [field.get("correction") for field in fields]
    assert corrections == [None, "holm,benjamini-hochberg(tests=3)", None]
    assert [field["test"] == "none" for field in fields] == [False, False, False]
    assert fields[2]["test"].startswith("permutation(macro,sign-flip,two-sided")


def test_the_same_model_twice_does_not_differ() -> None:
    (result,) = compare(SUITE, [GOOD, GOOD], measure=["PairAccuracy"])
    assert (result.difference, result.p, result.mcnemar_p) == (0, 1, 1)


def test_a_measure_that_is_no_mean_is_tested_by_swaps() -> None:
    (result,) = compare(SUITE, [GOOD, POOR], measure=["UnpairedAUC"], draws=100)
    test = parse_signature(result.signature)["test"]
    assert test == "permutation(swap,standardised,two-sided,draws=100,by=row,seed=0)"
    (untested,) = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], draws=0)
    assert parse_signature(untested.signature)["test"] == "none"


def test_correlations_are_standardised_before_the_test() -> None:
    generator = np.random.default_rng(0)
    noise = {sentence.id: float(generator.normal()) for sentence in SUITE.sentences}
    near = Scores(
        {sentence.id: 1000 * (sentence.label + 0.3 * noise[sentence.id]) for sentence in SUITE.sentences}, "near"
    )
    far = Scores({sentence.id: sentence.label + 3 * noise[sentence.id] for sentence in SUITE.sentences}, "far")
    (result,) = compare(SUITE, [near, far], measure=["PBC"], draws=500)
    assert result.p == pytest.approx(1 / 501)
    assert result.mcnemar_p is None
    (alike,) = compare(
        SUITE, [near, Scores({k: v / 7 for k, v in near.values.items()}, "scaled")], measure=["PBC"], draws=200
    )
    assert alike.p == 1


def test_clusters_are_resampled_and_swapped_as_a_whole() -> None:
    (result,) = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], bootstrap=Bootstrap(by="kind"))
    assert result.p == 0.5, "of the 8 ways to swap three kinds, of which one differs by nothing, half are as far out"
    assert "by=kind" in result.signature
    assert (result.only_first, result.mcnemar_p) == (11, None), "McNemar's test would take rows as independent"


def test_an_undefined_value_has_a_reason_and_stops_nothing() -> None:
    sentences = [Sentence(str(i), f"s{i}", label=int(i < 3), tags={"kind": "x" if i < 2 else "y"}) for i in range(6)]
    suite = Suite("torn", tuple(sentences))
    one = Scores({str(i): float(i) for i in range(6)}, "one")
    two = Scores({str(i): float(-i) for i in range(6)}, "two")
    overall, x, y, macro = compare(suite, [one, two], measure=["PBC"], by="kind", bootstrap=Bootstrap(200), draws=50)
    assert overall.difference is not None
    assert x.difference is None
    assert "label" in x.reason
    assert x.holm is None
    assert y.difference is not None
    assert macro.difference is None
    assert macro.reason == "undefined for kind=x"


def test_zero_draws_and_resamples_omit_test_and_interval() -> None:
    (result,) = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], bootstrap=Bootstrap(0), draws=0)
    assert (result.p, result.low) == (None, None)
    assert "test:none" in result.signature


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(MeasureError, match="draws is -1"):
        compare(SUITE, [GOOD, POOR], draws=-1)
    with pytest.raises(SuiteError, match="no tag 'kinds'"):
        compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], by="kinds")


@pytest.fixture
def run_compare(tmp_path: Path, own_home: Path):
    by_id = SUITE.by_id
    pairs = [
        f"p{i},{by_id[contrast.better].text},{by_id[contrast.worse].text}" for i, contrast in enumerate(SUITE.contrasts)
    ]
    (tmp_path / "suite.csv").write_text("\n".join(["id,good,bad", *pairs]))
    for scores in (GOOD, POOR):
        rows = [
            f"p{i}/{member},{scores[name]}"
            for i, contrast in enumerate(SUITE.contrasts)
            for member, name in (("good", contrast.better), ("bad", contrast.worse))
        ]
        (tmp_path / f"{scores.model}.csv").write_text("\n".join(["sentence_id,score", *rows]))

    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "200"}
        done = program.typed(["compare", *arguments], tmp_path, env)
        assert done.returncode == code, done.stderr
        return done

    return run


def test_files_of_scores_are_compared_and_discordant_contrasts_written(run_compare, tmp_path: Path) -> None:
    files = ("--scores", "good.csv", "--scores", "poor.csv")
    done = run_compare("suite.csv", *files, "-M", "PairAccuracy", "--differing", "pairs.csv", "--json")
    (result,) = json.loads(done.stdout)
    with (tmp_path / "pairs.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == result["only_first"] + result["only_second"] == 11
    assert {row["met_by"] for row in rows} == {"first"}
    assert all(float(row["first_gap"]) > 0 > float(row["second_gap"]) for row in rows)


def test_a_model_is_compared_with_a_file(run_compare) -> None:
    shown = run_compare("suite.csv", "-m", "uniform", "--scores", "good.csv", "-M", "PairAccuracy").stdout
    assert "Pair accuracy: uniform log-probability against good" in shown
    assert "only first" in shown


def test_differing_needs_a_measure_of_contrasts(run_compare) -> None:
    files = ("--scores", "good.csv", "--scores", "poor.csv")
    done = run_compare("suite.csv", *files, "-M", "PBC", "--differing", "pairs.csv", code=1)
    assert "--differing needs a measure" in done.stderr
    assert "needs two models" in run_compare("suite.csv", "--scores", "good.csv", code=1).stderr


def shifted(scale: float, shift: float, seed: int, model: str) -> Scores:
    """Return noisy scores in which better sentences lie above worse ones by a shift, on a given scale."""
    noise = np.random.default_rng(seed).normal(size=len(SUITE.sentences))
    return Scores(
        {
            sentence.id: scale * (shift * sentence.label + float(gap))
            for sentence, gap in zip(SUITE.sentences, noise, strict=True)
        },
        model,
    )


@pytest.mark.parametrize("measure", ["UnpairedAUC", "AUC"])
def test_swapping_models_preserves_the_order_of_better_and_worse(measure: str) -> None:
    """Better and worse sentences are on one scale: with a scale for each nothing would lie above anything."""
    (result,) = compare(SUITE, [shifted(1, 3, 0, "apart"), shifted(100, 0, 1, "mixed")], measure=[measure], draws=200)
    assert result.difference > 0.3
    assert result.p == pytest.approx(1 / 201)


def rated(seed: int) -> tuple[Suite, Scores, Scores]:
    generator = np.random.default_rng(seed)
    sentences = [Sentence(str(i), f"s{i}", rating=float(generator.normal())) for i in range(60)]
    suite = Suite("rated", tuple(sentences), tuple(make_contrast(*sentences[i : i + 2]) for i in range(0, 60, 2)))
    near = {sentence.id: sentence.rating + 3 * float(generator.normal()) for sentence in sentences}
    return (
        suite,
        Scores(near, "near"),
        Scores({sentence.id: float(generator.normal()) for sentence in sentences}, "far"),
    )


@pytest.mark.parametrize("kind", ["pearson", "spearman", "kendall"])
def test_gaps_are_standardised_before_they_are_swapped(kind: str) -> None:
    suite, near, far = rated(3)
    large = Scores({name: 1000 * value for name, value in near.values.items()}, "large")
    measure = [f"DeltaCorrelation(kind={kind!r})"]
    (one,), (two,) = (compare(suite, [scores, far], measure=measure, draws=200) for scores in (near, large))
    assert one.difference == pytest.approx(two.difference)
    assert one.p == two.p


def test_a_value_that_depends_on_the_scale_has_no_permutation_test() -> None:
    one, two = (shifted(4, 1, seed, str(seed)) for seed in (0, 1))
    (result,) = compare(SUITE, [one, two], measure=["PBC(scale='exp')"], draws=200)
    assert result.difference is not None
    assert result.p is None
    assert any("depends on the scale" in note for note in result.notes)


def test_a_model_with_constant_scores_can_be_tested() -> None:
    constant = Scores(dict.fromkeys(GOOD.values, 1.0), "constant")
    (result,) = compare(SUITE, [shifted(1, 3, 0, "apart"), constant], measure=["AUC"], draws=200)
    assert result.second_value == 0.5
    assert result.p == pytest.approx(1 / 201)


def test_rows_outside_all_groups_are_noted() -> None:
    sentences = [
        replace(sentence, tags=sentence.tags if sentence.tags["kind"] != "c" else {}) for sentence in SUITE.sentences
    ]
    pairs = tuple(make_contrast(*sentences[i : i + 2]) for i in range(0, len(sentences), 2))
    *_, macro = compare(Suite("torn", tuple(sentences), pairs), [GOOD, POOR], measure=["PairAccuracy"], by="kind")
    assert macro.n == 40
    assert macro.notes == ("20 rows without the tag 'kind' are in no group",)
    assert [len(units) for units in macro.units] == [60, 60]


def test_the_defined_value_is_given_beside_the_undefined_one() -> None:
    constant = Scores(dict.fromkeys(GOOD.values, 1.0), "constant")
    (result,) = compare(SUITE, [GOOD, constant], measure=["PBC"], draws=50)
    assert result.first_value is not None
    assert (result.second_value, result.difference, result.p) == (None, None, None)
    assert result.reason.startswith("constant: ")


def test_scores_without_z_scores_stop_no_other_measure() -> None:
    constant = Scores(dict.fromkeys(GOOD.values, 1.0), "constant")
    pairs, adc = compare(SUITE, [GOOD, constant], measure=["PairAccuracy", "ADC"], draws=50)
    assert pairs.difference == 45 / 60
    assert (adc.difference, adc.n) == (None, 0)
    assert "no z-scores" in adc.reason


def test_an_interval_of_zero_width_has_a_note() -> None:
    (result,) = compare(SUITE, [GOOD, GOOD], measure=["PairAccuracy"], bootstrap=Bootstrap(100, method="percentile"))
    assert (result.low, result.high) == (0, 0)
    assert any("all resamples are equal" in note for note in result.notes)
    # In closed form it has width: models that never differed on so few rows may differ on others.
    (closed,) = compare(SUITE, [GOOD, GOOD], measure=["PairAccuracy"])
    assert closed.low < 0 < closed.high == -closed.low


def test_rows_that_the_second_model_lacks_are_noted() -> None:
    """A set whose scores are all the same has no correlation: here for the second model alone."""
    flat = Scores({**GOOD.values, **{name: 1.0 for name in GOOD.values if name.startswith("a")}}, "flat")
    (result,) = compare(SUITE, [GOOD, flat], measure=["PBC(per='kind')"], draws=50)
    assert "2 shared, of 3 and 2" in result.signature
    assert "flat: 1 sets without different scores left out" in result.notes


def test_two_reductions_of_one_model_have_different_names(run_compare, tmp_path: Path) -> None:
    (tmp_path / "long.csv").write_text("id,good,bad\n1,Cats sleep.,Cats sleep and sleep.\n2,A b c d.,A b.\n")
    options = ("--reduce", "lp", "--reduce", "mean_lp", "-M", "PairAccuracy", "--differing", "pairs.csv")
    run_compare("long.csv", "-m", "uniform", *options)
    with (tmp_path / "pairs.csv").open(encoding="utf-8", newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["first"], row["second"]) == ("uniform lp()", "uniform mean_lp()")


def test_differing_is_refused_before_a_model_runs(run_compare) -> None:
    completed = run_compare(
        "suite.csv", "-m", "uniform", "--scores", "good.csv", "-M", "PBC", "--differing", "d.csv", code=1
    )
    assert "--differing needs a measure" in completed.stderr
    assert "queries" not in completed.stderr
    assert not completed.stdout


def make_labelled_scores(seed: int, gap: float, reduction: str = "lp()", shift: float = -40.0) -> Scores:
    generator = np.random.default_rng(seed)
    values = {row.id: float(generator.normal(shift, 1) + gap * (row.label or 0)) for row in SUITE.sentences}
    return Scores(values, f"model {seed}", reduction)


@pytest.mark.parametrize("measure", ["MCC", "Accuracy"])
def test_each_model_is_compared_at_the_threshold_of_its_own_scores(measure: str) -> None:
    """Log-probabilities on other scales: a common threshold, or 0, would reject all sentences of one of the models."""
    good, poor = make_labelled_scores(1, 3.0, shift=-40), make_labelled_scores(2, 0.5, shift=-400)
    options = {"bootstrap": Bootstrap(100), "draws": 200}
    (result,) = compare(SUITE, [good, poor], measure=[measure], **options)
    assert result.first_value > 0.6
    assert 0 < result.difference < result.first_value
    assert result.low < result.difference < result.high
    assert result.p < 0.05
    fields = parse_signature(result.signature)
    assert fields["measure"] == f"{measure}(threshold='cv', folds=10, seeds=10)"
    assert fields["refit"] == "threshold"
    assert fields["test"] == "permutation(swap,standardised,refit,two-sided,draws=200,by=row,seed=0)"
    assert "mcnemar" not in fields, "decisions by one fitted threshold are not independent"
    assert (result.mcnemar_p, result.odds_ratio) == (None, None)
    assert "model 1 lp(): threshold by cross-validation" in result.row()["notes"]
    assert "model 2 lp(): threshold by cross-validation" in result.row()["notes"]
    rescaled = replace(good, values={key: 7 * score + 100 for key, score in good.values.items()}, model="same")
    (same,) = compare(SUITE, [good, rescaled], measure=[measure], **options)
    assert (same.difference, same.p) == (0.0, 1.0)


def test_decisions_by_one_fitted_threshold_have_counts_and_no_mcnemar_test() -> None:
    models = [make_labelled_scores(1, 3.0), make_labelled_scores(2, 0.5)]
    fitted, given = compare(
        SUITE, models, measure=["Accuracy(threshold='cv')", "Accuracy(threshold=-39)"], bootstrap=Bootstrap(0), draws=20
    )
    assert fitted.only_first > fitted.only_second
    assert (fitted.mcnemar_p, "mcnemar" in parse_signature(fitted.signature)) == (None, False)
    assert given.mcnemar_p is not None


@pytest.mark.parametrize("measure", ["MCC", "Accuracy"])
def test_a_classifier_is_compared_with_a_language_model(measure: str) -> None:
    judge = make_labelled_scores(1, 6.0, "log_odds()", shift=-3)
    model = make_labelled_scores(2, 0.5)
    (result,) = compare(SUITE, [judge, model], measure=[measure], bootstrap=Bootstrap(100), draws=200)
    assert result.measure == f"{measure}(threshold='auto', folds=10, seeds=10)"
    alone = [measure_scores(SUITE, scores, [measure], bootstrap=Bootstrap(0))[0] for scores in (judge, model)]
    assert [result.first_value, result.second_value] == pytest.approx([each.value for each in alone], abs=1e-12)
    assert alone[0].measure == f"{measure}(threshold=0.0)"
    assert result.low < result.difference < result.high
    assert result.p is None, "rows of a given and of a fitted threshold cannot be swapped"
    assert parse_signature(result.signature)["test"] == "none"
    assert "no permutation test: the threshold of one model is fitted" in result.row()["notes"]
    *_, macro = compare(SUITE, [judge, model], measure=[measure], by="kind", bootstrap=Bootstrap(40), draws=0)
    assert "thresholds of the whole suite" in macro.row()["notes"]


def test_the_permutation_test_of_fitted_thresholds_holds_its_level() -> None:
    """Two models that are equally good differ at the level .2 in about one comparison of five."""
    ps = [
        compare(
            SUITE,
            [make_labelled_scores(seed, 1.0), make_labelled_scores(seed + 100, 1.0)],
            measure=["MCC(threshold='cv', folds=5)"],
            bootstrap=Bootstrap(0),
            draws=49,
        )[0].p
        for seed in range(100)
    ]
    assert 0.12 <= np.mean(np.array(ps) <= 0.2) <= 0.28


THIRD = make_scores(SUITE, {"a": 12, "b": 20, "c": 1}, "third")


def test_three_models_are_compared_in_all_pairs() -> None:
    results = compare(SUITE, [GOOD, POOR, THIRD], measure=["PairAccuracy"], by="kind")
    overall = [result for result in results if result.group is None]
    assert [(result.first, result.second) for result in overall] == [
        ("good", "poor"),
        ("good", "third"),
        ("poor", "third"),
    ]
    ps = [stats.binomtest(result.only_first, result.only_first + result.only_second).pvalue for result in overall]
    assert [result.p for result in overall] == pytest.approx(ps)
    assert [result.holm for result in overall] == pytest.approx(stats_holm(ps))
    # Groups are a family of their own: three pairs in each of three groups.
    groups = [result for result in results if result.group and "=" in result.group]
    assert [result.holm for result in groups] == pytest.approx(stats_holm([result.p for result in groups]))
    assert parse_signature(groups[0].signature)["correction"] == "holm,benjamini-hochberg(tests=9)"
    assert parse_signature(overall[0].signature)["family"] == "good and poor and third"
    macros = [result for result in results if result.group == "macro(kind)"]
    assert [result.holm for result in macros] == pytest.approx(stats_holm([result.p for result in macros]))


def stats_holm(ps: list[float]) -> list[float]:
    from statsmodels.stats.multitest import multipletests

    return multipletests(ps, method="holm")[1].tolist()


def test_the_first_model_against_the_others_is_a_smaller_family() -> None:
    first = compare(SUITE, [GOOD, POOR, THIRD], measure=["PairAccuracy"], pairs="first")
    assert [(result.first, result.second) for result in first] == [("good", "poor"), ("good", "third")]
    assert [result.holm for result in first] == pytest.approx(stats_holm([result.p for result in first]))
    with pytest.raises(MeasureError, match="pairs is 'some'"):
        compare(SUITE, [GOOD, POOR], pairs="some")


def test_the_macro_difference_is_tested_by_swapping_rows_within_groups() -> None:
    """Groups of 20, 5 and 2 contrasts: all sign flips by brute force, each row weighing as in the macro mean."""
    kept = [contrast for i, contrast in enumerate(SUITE.contrasts) if i < 6 or 20 <= i < 25 or 40 <= i < 42]
    suite = Suite("uneven", SUITE.sentences, tuple(kept))
    generator = np.random.default_rng(2)
    first, second = (
        Scores(
            {sentence.id: float(x) for sentence, x in zip(SUITE.sentences, generator.normal(size=120), strict=True)},
            name,
        )
        for name in ("first", "second")
    )
    *_, macro = compare(suite, [first, second], measure=["PairAccuracy"], by="kind")
    right = [[float(scores[c.better] > scores[c.worse]) for c in kept] for scores in (first, second)]
    sizes = Counter(contrast.tags["kind"] for contrast in kept)
    weights = np.array([1 / (3 * sizes[contrast.tags["kind"]]) for contrast in kept])
    differences = weights * (np.array(right[0]) - np.array(right[1]))
    flips = np.array(list(product((-1, 1), repeat=len(kept)))) @ differences
    assert macro.difference == pytest.approx(differences.sum(), abs=1e-12)
    assert macro.p == pytest.approx((np.abs(flips) >= abs(differences.sum()) - 1e-9).mean(), abs=1e-12)


def test_the_macro_difference_of_a_measure_that_is_no_mean_is_tested() -> None:
    *groups, macro = compare(SUITE, [GOOD, POOR], measure=["AUC"], by="kind", draws=200)
    assert macro.difference == pytest.approx(np.mean([result.difference for result in groups[1:]]), abs=1e-12)
    assert 0 < macro.p <= 1
    assert parse_signature(macro.signature)["test"].startswith("permutation(macro,swap,standardised")
    # Whole groups are the sampling unit: three of them have 2³ swaps, of which two are as extreme as this one.
    *_, by_group = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"], by="kind", bootstrap=Bootstrap(by="kind"))
    assert by_group.p == pytest.approx(4 / 8)


def test_areas_under_the_curve_are_tested_by_delong_where_rows_are_independent() -> None:
    (by_row,) = compare(SUITE, [GOOD, POOR], measure=["AUC"], draws=100)
    scores = [[given[sentence.id] for sentence in SUITE.sentences] for given in (GOOD, POOR)]
    expected = delong_test(*scores, [sentence.label for sentence in SUITE.sentences])
    assert (by_row.delong_p, by_row.delong_low, by_row.delong_high) == (expected.p, expected.low, expected.high)
    assert parse_signature(by_row.signature)["delong"] == "0.95"
    (by_kind,) = compare(SUITE, [GOOD, POOR], measure=["AUC"], bootstrap=Bootstrap(by="kind"), draws=100)
    assert by_kind.delong_p is None
    assert "delong" not in parse_signature(by_kind.signature)
    (unpaired,) = compare(SUITE, [GOOD, POOR], measure=["UnpairedAUC"], draws=100)
    assert unpaired.delong_p is None
    (pairs,) = compare(SUITE, [GOOD, POOR], measure=["PairAccuracy"])
    counts = mcnemar(*([scores[c.better] > scores[c.worse] for c in SUITE.contrasts] for scores in (GOOD, POOR)))
    assert (pairs.odds_low, pairs.odds_high) == (counts.odds_low, counts.odds_high)
