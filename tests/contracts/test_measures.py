"""Contracts of every registered measure, plug-ins included."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from acceptability import registry
from acceptability.api.evaluation import measure as compute_results
from acceptability.errors import Undefined
from acceptability.measures import load_measure
from acceptability.measures.target_contrast import combine_scores
from acceptability.protocols import Measure, complete_measure
from acceptability.specs import parse_signature
from acceptability.stats.bootstrap import Bootstrap, build_difference_stratum, build_stratum, percentile_interval
from acceptability.stats.intervals import bootstrap_macro_interval
from acceptability.stats.resampling import make_jackknife_groups, nest_rows
from acceptability.types import Scores, Sentence, Suite, Units, make_contrast

GENERATOR = random.Random(3)
CLASSES = ("ungrammatical", "baseline", "ungrammatical", "distractor")
SENTENCES = [
    Sentence(
        f"s{i}",
        f"Sentence {i}.",
        label=i % 2,
        rating=GENERATOR.gauss(i % 2, 1),
        regions={"1": (0, 8)},
        tags={
            # Four sentences make a set, and a kind is made of whole sets.
            "kind": "xyz"[i // 4 % 3],
            "set": str(i // 4),
            "class": CLASSES[i % 4],
            "condition": "badc"[i % 4],
            "prediction": "(1;%a%) < (1;%b%)",
        },
    )
    for i in range(60)
]
SUITE = Suite("made", tuple(SENTENCES), tuple(make_contrast(SENTENCES[i + 1], SENTENCES[i]) for i in range(0, 60, 2)))
GIVEN = {sentence.id: GENERATOR.gauss(sentence.label, 1) for sentence in SENTENCES}
SCORES = Scores({**GIVEN, **{f"{name}#1": value for name, value in GIVEN.items()}}, "made")
OTHERS = {
    # A classifier, whose threshold is 0; log-probabilities; and several judges.
    "AbsolutePair": Scores(SCORES.values, "made", "log_odds()"),
    "Repulsion": Scores({key: value - 9 for key, value in SCORES.values.items()}, "made"),
    "Intensity": combine_scores(
        [SCORES, Scores({sentence.id: GENERATOR.gauss(0, 1) for sentence in SENTENCES}, "other")]
    ),
}
VARIANTS = [
    "ADC(delta=2, tie='literal')",
    "ADCArea(limit=2, tie='literal')",
    "AbsolutePair(threshold=0.5)",
    "Accuracy(threshold='class-midpoint')",
    "Accuracy(threshold='cv', folds=5, seed=1)",
    "DeltaCorrelation(kind='kendall')",
    "DeltaCorrelation(kind='spearman')",
    "MCC(threshold='cv')",
    "MCC(threshold='cv', seeds=3)",
    "MCC(threshold=0.0)",
    "MCC(threshold='pooled-mean')",
    "PBC(per='set')",
    "PBC(per='set', over='median', at_least=4, scale='exp')",
    "PBC(per='set', over='q1')",
    "PBC(scale='exp')",
    "PairCorrelation(kind='kendall')",
    "SetAccuracy(against='distractor')",
]


@pytest.mark.parametrize("name", [*registry.names("measure"), *VARIANTS])
class TestEveryMeasure:
    def test_its_repr_parses_back(self, name: str) -> None:
        assert load_measure(repr(load_measure(name))) == load_measure(name)

    def test_row_order_is_irrelevant(self, name: str) -> None:
        measure = load_measure(name)
        order = random.Random(1).sample(SENTENCES, k=60)
        reordered = Suite("made", tuple(order), SUITE.contrasts[::-1])
        given = OTHERS.get(name, SCORES)
        first, second = measure.units(SUITE, given), measure.units(reordered, given)
        assert measure.value(first) == pytest.approx(measure.value(second), abs=1e-12)
        shuffled = np.random.default_rng(0).permutation(len(first))
        assert measure.value(first.take(shuffled)) == pytest.approx(measure.value(first), abs=1e-12)

    def test_it_has_an_interval_groups_and_a_signature(self, name: str) -> None:
        given = OTHERS.get(name, SCORES)
        results = compute_results(SUITE, given, [name], by="kind", bootstrap=Bootstrap(200))
        overall = results[0]
        assert overall.low < overall.value < overall.high
        fields = parse_signature(overall.signature)
        assert load_measure(fields["measure"]) == load_measure(name).resolve([given], "")
        assert fields["n"] == str(overall.n)
        assert SUITE.hash in fields["suite"]

    def test_columns_are_as_long_as_the_rows(self, name: str) -> None:
        units = load_measure(name).units(SUITE, OTHERS.get(name, SCORES))
        assert {len(column) for column in units.columns.values()} == {len(units)} == {len(units.tags)}

    def test_mean_of_names_a_column_whose_mean_is_the_value(self, name: str) -> None:
        measure = load_measure(name)
        units = measure.units(SUITE, OTHERS.get(name, SCORES))
        means = [column for column, values in units.columns.items() if values.mean() == measure.value(units)]
        assert measure.mean_of in (means or [None])

    def test_a_macro_mean_is_that_of_the_groups(self, name: str) -> None:
        _, *groups, macro = compute_results(SUITE, OTHERS.get(name, SCORES), [name], by="kind", bootstrap=Bootstrap(0))
        assert [result.group for result in groups] == ["kind=x", "kind=y", "kind=z"]
        assert macro.value == pytest.approx(np.mean([result.value for result in groups]))

    def test_the_suite_and_the_scores_are_not_modified(self, name: str) -> None:
        given = OTHERS.get(name, SCORES)
        before, scores = SUITE.hash, dict(given.values)
        load_measure(name).units(SUITE, given)
        assert replace(SUITE).hash == before
        assert dict(given.values) == scores


def evaluate_plainly(measure: Measure, units: Units, rows: list[int]) -> float:
    """The value on some rows, as the bootstrap is defined; that of a fitted measure, fitted to these rows."""
    if units.refit:
        return units.refit(np.bincount(rows, minlength=len(units)).astype(float))
    try:
        return measure.value(units.take_columns(np.array(rows)))
    except Undefined:
        return float("nan")


def list_plain_draws(units: Units, how: Bootstrap) -> tuple[list[list[int]], list[list[int]]]:
    """The rows of each resample, and of each part of the jackknife, drawn one by one."""
    keys = [tags[how.by] for tags in units.tags] if how.by else list(range(len(units)))
    clusters = [[row for row, key in enumerate(keys) if key == name] for name in sorted(set(keys))]
    drawn = np.random.default_rng(how.seed).integers(0, len(clusters), size=(how.resamples, len(clusters))).tolist()
    parts = clusters
    if how.within:
        nested = nest_rows(units, how.by, how.within)
        parts = [part.tolist() for part in nested.list_parts()]
        drawn = list(nested.draw(how.resamples, np.random.default_rng(how.seed)))
    left_out = [set(group.tolist()) for group in make_jackknife_groups(len(clusters), 400, how.seed)]
    kept = [[index for index in range(len(clusters)) if index not in group] for group in left_out]
    return [[row for index in draw for row in parts[index]] for draw in drawn], [
        [row for index in indices for row in clusters[index]] for indices in kept
    ]


def round_scores(scores: Scores) -> Scores:
    return replace(scores, values={key: round(value) for key, value in scores.values.items()})


def stretch_scores(scores: Scores) -> Scores:
    """Scores that differ by several hundred nats, a few of them far above all others."""
    return replace(scores, values={key: 150 * value - 9000 for key, value in scores.values.items()})


UNITS_OF_RESAMPLING = [
    Bootstrap(40, by="", seed=5),
    Bootstrap(40, by="kind", seed=6),
    Bootstrap(40, by="set", seed=7),
    Bootstrap(40, by="kind", within="set", seed=8),
    Bootstrap(40, by="kind", within="row", seed=9),
]


@pytest.mark.parametrize("change", [lambda scores: scores, round_scores, stretch_scores], ids=["plain", "tied", "far"])
@pytest.mark.parametrize("how", UNITS_OF_RESAMPLING, ids=lambda how: f"{how.by or 'row'}/{how.within}")
@pytest.mark.parametrize("name", [*registry.names("measure"), *VARIANTS])
def test_the_bootstrap_gives_the_values_of_a_plain_loop_over_the_same_draws(name: str, how: Bootstrap, change) -> None:
    given = change(OTHERS.get(name, SCORES))
    measure = load_measure(name).resolve([given], "")
    units = measure.units(SUITE, given)
    # Of four rows, many resamples are without a value.
    for rows in (units, units.take(np.arange(min(4, len(units))))):
        stratum, (resamples, kept) = build_stratum(measure, rows, how), list_plain_draws(rows, how)
        plain = np.array([evaluate_plainly(measure, rows, drawn) for drawn in resamples])
        np.testing.assert_allclose(stratum.resample(0), plain, rtol=0, atol=1e-12)
        # Nothing is left without the only unit, for which there is no interval.
        if len(kept) > 1:
            left_out = np.array([evaluate_plainly(measure, rows, indices) for indices in kept])
            np.testing.assert_allclose(stratum.jackknife(), left_out, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", ["Pearson", "PBC", "PBC(scale='exp')", "PairCorrelation", "DeltaCorrelation"])
def test_resamples_without_an_outlier_keep_their_digits(name: str) -> None:
    """Beside an outlier, sums say little about how the other rows differ, which many resamples have alone."""
    given = replace(SCORES, values={**{key: value - 1e4 for key, value in SCORES.values.items()}, "s0": -1e7})
    measure = load_measure(name)
    units = measure.units(SUITE, given)
    how = UNITS_OF_RESAMPLING[0]
    stratum, (resamples, kept) = build_stratum(measure, units, how), list_plain_draws(units, how)
    plain = [evaluate_plainly(measure, units, rows) for rows in (*resamples, *kept)]
    np.testing.assert_allclose([*stratum.resample(0), *stratum.jackknife()], plain, rtol=0, atol=1e-12)


def list_plain_macro_draws(groups: list[Units], how: Bootstrap) -> list[list[list[int]]]:
    """The rows of each resample of each group; groups of one size share the draws, in orders of their own."""
    draws: list[list[list[int]]] = [[] for _ in groups]
    sizes = list(dict.fromkeys(len(group) for group in groups))
    for stream, size in enumerate(sizes):
        drawn = np.random.default_rng([how.seed, stream] if stream else how.seed).integers(
            0, size, size=(how.resamples, size)
        )
        members = [index for index, group in enumerate(groups) if len(group) == size]
        orders = np.random.default_rng([how.seed, stream, 1])
        shuffled = [np.arange(size), *(orders.permutation(size) for _ in members[1:])]
        shifts = [0, *(1 + orders.permutation(how.resamples - 1)[: len(members) - 1])]
        for index, order, shift in zip(members, shuffled, shifts, strict=True):
            draws[index] = [sorted(order[row].tolist()) for row in np.roll(drawn, shift, axis=0)]
    return draws


@pytest.mark.parametrize("name", [*registry.names("measure"), *VARIANTS])
def test_a_macro_mean_has_the_values_of_a_plain_loop_over_the_same_draws(name: str) -> None:
    given = OTHERS.get(name, SCORES)
    measure, how = load_measure(name).resolve([given], ""), Bootstrap(60, by="", seed=3, method="percentile")
    units = measure.units(SUITE, given)
    third = len(units) // 3
    groups = [units.take(np.arange(start, start + third)) for start in (0, third, 2 * third)]
    groups.append(units.take(np.arange(len(units) - third - 1, len(units))))
    draws = list_plain_macro_draws(groups, how)
    plain = np.mean(
        [[evaluate_plainly(measure, groups[i], rows) for rows in of_group] for i, of_group in enumerate(draws)],
        axis=0,
    )
    interval, defined = bootstrap_macro_interval(measure, groups, how), plain[~np.isnan(plain)]
    if len(defined) < 0.95 * how.resamples:
        assert interval.low is None
    else:
        assert (interval.low, interval.high) == pytest.approx(percentile_interval(defined, how.level), rel=0, abs=1e-12)


@pytest.mark.parametrize("how", UNITS_OF_RESAMPLING, ids=lambda how: f"{how.by or 'row'}/{how.within}")
@pytest.mark.parametrize("name", [*registry.names("measure"), *VARIANTS])
def test_differences_are_those_of_a_plain_loop_over_the_same_draws(name: str, how: Bootstrap) -> None:
    given = OTHERS.get(name, SCORES)
    measure = load_measure(name).resolve([given], "")
    first, second = (measure.units(SUITE, scores) for scores in (given, round_scores(given)))
    stratum, (resamples, kept) = build_difference_stratum(measure, first, second, how), list_plain_draws(first, how)
    for values, draws in ((stratum.resample(0), resamples), (stratum.jackknife(), kept)):
        plain = [evaluate_plainly(measure, first, rows) - evaluate_plainly(measure, second, rows) for rows in draws]
        np.testing.assert_allclose(values, plain, rtol=0, atol=1e-12)


def test_every_registered_measure_says_how_its_value_follows_from_weights() -> None:
    """Without ``weigh`` a measure gives the same numbers, but a hundred times more slowly."""
    for name in [*registry.names("measure"), *VARIANTS]:
        measure = load_measure(name)
        assert measure.weigh(measure.units(SUITE, OTHERS.get(name, SCORES))) is not None, name


class Margin:
    """The mean score difference of a contrast, with the required attributes of a measure only."""

    needs = "contrasts"

    def __repr__(self) -> str:
        return "Margin()"

    def units(self, suite: Suite, scores: Scores) -> Units:
        rows = load_measure("PairAccuracy()").units(suite, scores)
        return Units(rows.ids, {"gap": rows["gap"]}, rows.tags)

    def value(self, units: Units) -> float:
        return float(units["gap"].mean())


class InheritedMargin(Margin, Measure):
    """The same measure, which inherits the defaults of the optional attributes."""


@pytest.mark.parametrize("measure", [Margin(), InheritedMargin()], ids=["structural", "inherits"])
def test_a_measure_without_optional_attributes_gets_an_interval(measure: Measure) -> None:
    (result,) = compute_results(SUITE, SCORES, [measure], bootstrap=Bootstrap(200))
    gaps = load_measure("PairAccuracy()").units(SUITE, SCORES)["gap"]
    assert result.value == pytest.approx(float(gaps.mean()))
    assert result.low < result.value < result.high
    assert parse_signature(result.signature)["measure"] == "Margin()"


def test_optional_attributes_of_a_measure_have_defaults() -> None:
    assert complete_measure(InheritedMargin()).mean_of is None
    assert complete_measure(InheritedMargin()).chance is complete_measure(Margin()).chance is None
    for measure in map(complete_measure, (InheritedMargin(), Margin())):
        assert measure.resolve([SCORES], "kind") is measure
    assert [complete_measure(Margin()).mean_of, complete_measure(Margin()).needs_tags] == [None, ()]
    assert complete_measure(Margin()).gathered_by == InheritedMargin().gathered_by == ""
    measure = load_measure("PairAccuracy()")
    assert complete_measure(measure) is measure
