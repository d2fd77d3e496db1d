"""What is resampled, swapped and kept in one fold by default: the sampling unit of the suite, wherever it matters."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import (
    PairAccuracy,
    Scores,
    Sentence,
    Suite,
    compare,
    evaluate,
    judge,
    load_suite,
    measure,
    reproduce,
)
from acceptability.api import linking
from acceptability.api.comparison import correlate
from acceptability.api.linking import assign_folds, fit_beta_gamma, fit_morcela
from acceptability.cli import app
from acceptability.errors import MeasureError
from acceptability.measures import classification
from acceptability.specs import parse_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.permutation import PermutationTest, permutation_test
from acceptability.types import Contrast, TokenScores

LEXICALISATIONS = 6
UNITS = 24


@pytest.fixture
def suite() -> Suite:
    """Pairs and single sentences that are lexicalisations of frames, with labels and ratings that frames share."""
    generator = np.random.default_rng(1)
    sentences, contrasts = [], []
    for frame in range(UNITS):
        quality = generator.normal(size=2) + np.array([1.0, 0.0])
        for number in range(LEXICALISATIONS):
            tags = {"frame": f"f{frame}", "item": f"{frame}/{number}", "half": str(frame % 2)}
            for label, name in ((1, "good"), (0, "bad")):
                rating = float(quality[1 - label] + 0.2 * generator.normal())
                sentences.append(
                    Sentence(f"{frame}/{number}/{name}", f"{name} {frame} {number}", label, rating, tags=tags)
                )
            contrasts.append(Contrast(sentences[-2].id, sentences[-1].id, tags))
    return Suite("frames", tuple(sentences), tuple(contrasts), unit="frame")


def make_scores(suite: Suite, seed: int, name: str = "m") -> Scores:
    generator = np.random.default_rng(seed)
    frames = {sentence.tags["frame"] + sentence.id[-3:]: generator.normal() for sentence in suite.sentences}
    values = {
        sentence.id: float(
            sentence.rating + frames[sentence.tags["frame"] + sentence.id[-3:]] + 0.1 * generator.normal()
        )
        for sentence in suite.sentences
    }
    return Scores(values, name)


@pytest.mark.parametrize("method", ["auto", "percentile", "bca"])
@pytest.mark.parametrize("text", ["PairAccuracy", "Pearson", "AUC", "MCC(threshold=0)", "MCC", "ADC"])
def test_intervals_are_by_unit_and_rows_are_a_choice(suite: Suite, text: str, method: str) -> None:
    scores = make_scores(suite, 2)
    settings = Bootstrap(resamples=60, method=method)
    (default,) = measure(suite, scores, [text], bootstrap=settings)
    (by_frame,) = measure(suite, scores, [text], bootstrap=replace(settings, by="frame"))
    assert (default.low, default.high, default.signature) == (by_frame.low, by_frame.high, by_frame.signature)
    fields = parse_signature(default.signature)
    assert "by=frame" in fields["ci"]
    assert fields["units"] == str(UNITS)
    (by_row,) = measure(suite, scores, [text], bootstrap=replace(settings, by="row"))
    assert "by=row" in parse_signature(by_row.signature)["ci"]
    assert any("single rows are resampled, and not the suite's sampling unit, 'frame'" in note for note in by_row.notes)
    # Rows of a frame are alike, so that intervals of single rows are too narrow.
    if text in ("PairAccuracy", "Pearson"):
        assert default.high - default.low > 1.3 * (by_row.high - by_row.low)


def test_the_interval_is_that_of_a_cluster_bootstrap_by_hand(suite: Suite) -> None:
    """The default of the bootstrap is repeated here with the same random numbers, and with others of NumPy's."""
    scores = make_scores(suite, 2)
    (result,) = measure(suite, scores, ["PairAccuracy"], bootstrap=Bootstrap(resamples=4000, method="percentile"))
    right = {pair.id: float(scores[pair.better] > scores[pair.worse]) for pair in suite.contrasts}
    frames = sorted({pair.tags["frame"] for pair in suite.contrasts})
    means = np.array(
        [np.mean([right[pair.id] for pair in suite.contrasts if pair.tags["frame"] == frame]) for frame in frames]
    )
    drawn = means[np.random.default_rng(0).integers(0, UNITS, size=(4000, UNITS))].mean(axis=1)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), abs=1e-12)
    others = means[np.random.default_rng(99).integers(0, UNITS, size=(4000, UNITS))].mean(axis=1)
    assert (result.low, result.high) == pytest.approx(tuple(np.quantile(others, [0.025, 0.975])), abs=0.02)


@pytest.mark.usefixtures("data")
def test_intervals_of_li_adger_are_those_of_a_bootstrap_of_pairs_of_types() -> None:
    suite = load_suite("li_adger")
    generator = np.random.default_rng(3)
    # Most of the variance is between types, as if a model knew some constructions and not others.
    types = {name: generator.normal() for name in sorted({sentence.tags["type"] for sentence in suite.sentences})}
    scores = Scores({one.id: types[one.tags["type"]] + 0.2 * generator.normal() for one in suite.sentences}, "m")
    kinds = {"percentile": Bootstrap(method="percentile"), "auto": Bootstrap(), "row": Bootstrap(by="row")}
    by_kind = {name: measure(suite, scores, ["ADC"], bootstrap=bootstrap)[0] for name, bootstrap in kinds.items()}
    units = by_kind["auto"].units
    assert units is not None
    type_of = {sentence.id: sentence.id.rpartition(".")[0] for sentence in suite.sentences}
    members: dict[tuple[str, str], list[float]] = {}
    for name, met in zip(units.ids, units["met"], strict=True):
        better, worse = name.split(" > ")
        members.setdefault((type_of[better], type_of[worse]), []).append(met)
    assert len(members) == 296
    sums, counts = (np.array([function(values) for values in members.values()]) for function in (np.sum, np.size))
    drawn = np.random.default_rng(7).integers(0, 296, size=(4000, 296))
    low, high = np.quantile(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1), [0.025, 0.975])
    for name in ("percentile", "auto"):
        assert (by_kind[name].low, by_kind[name].high) == pytest.approx((low, high), abs=0.12 * (high - low))
    assert high - low > 1.5 * (by_kind["row"].high - by_kind["row"].low)


def test_units_of_one_row_give_the_numbers_of_rows(suite: Suite) -> None:
    by_item = replace(suite, unit="item")
    scores, other = make_scores(suite, 2), make_scores(suite, 3, "n")
    for bootstrap in (Bootstrap(resamples=50, method="percentile"), Bootstrap()):
        rows = replace(bootstrap, by="row")
        first, second = (
            measure(by_item, scores, [PairAccuracy()], bootstrap=bootstrap),
            measure(suite, scores, [PairAccuracy()], bootstrap=rows),
        )
        assert [(one.low, one.high) for one in first] == [(one.low, one.high) for one in second]
        (units,), (plain,) = (
            compare(by_item, [scores, other], measure=["PairAccuracy"], bootstrap=bootstrap, draws=50),
            compare(suite, [scores, other], measure=["PairAccuracy"], bootstrap=rows, draws=50),
        )
        # McNemar's test is for independent rows, which these are.
        assert (units.low, units.high, units.p, units.mcnemar_p) == (plain.low, plain.high, plain.p, plain.mcnemar_p)
        assert units.mcnemar_p is not None
        assert "by=item" in units.signature


def test_comparisons_swap_units(suite: Suite) -> None:
    scores, changed = [make_scores(suite, 2), make_scores(suite, 3, "n")], []
    for text in ("PairAccuracy", "Pearson", "MCC"):
        settings = Bootstrap(resamples=40)
        (default,) = compare(suite, scores, measure=[text], bootstrap=settings, draws=100)
        (by_frame,) = compare(suite, scores, measure=[text], bootstrap=replace(settings, by="frame"), draws=100)
        (by_row,) = compare(suite, scores, measure=[text], bootstrap=replace(settings, by="row"), draws=100)
        assert (default.p, default.low, default.signature) == (by_frame.p, by_frame.low, by_frame.signature)
        assert "by=frame" in parse_signature(default.signature)["test"]
        assert default.mcnemar_p is None
        changed.append(default.p != by_row.p)
        assert any("single rows are resampled" in note for note in by_row.notes)
    # Where no swap is as extreme, p is 1/101 by either unit.
    assert any(changed)


def test_correlations_are_by_unit(suite: Suite) -> None:
    scores = [make_scores(suite, 2), make_scores(suite, 3, "n")]
    for of in ("scores", "gaps"):
        default, by_row = correlate(suite, scores, of=of), correlate(suite, scores, of=of, resample_by="row")
        fields = parse_signature(default[0].signature)
        assert fields["ci"] == "fisher-z(0.95,se=jackknife,by=frame)"
        assert (fields["units"], "by=frame" in fields["test"]) == (str(UNITS), True)
        assert [pair.r for pair in default] == pytest.approx([pair.r for pair in by_row])
        assert default[0].high - default[0].low > by_row[0].high - by_row[0].low
        assert "not the suite's sampling unit, 'frame'" in by_row[0].notes[-1]
        assert "by=" not in by_row[0].signature
    with pytest.raises(MeasureError, match=r"no tag 'fram', such as .*Did you mean 'frame'"):
        correlate(suite, scores, resample_by="fram")
    with pytest.raises(MeasureError, match="one level of sampling units"):
        correlate(suite, scores, resample_by="half/frame")


@pytest.mark.parametrize("text", ["MCC", "Accuracy", "MCC(threshold='cv')", "MCC(by='half', folds=2)", "MCC(by='row')"])
def test_folds_keep_units_together(suite: Suite, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[list[str], list[int]]] = []
    plain = classification.assign_folds

    def watch(keys, labels, folds, seed):
        fold_of_row = plain(keys, labels, folds, seed)
        seen.append((list(keys), fold_of_row.tolist()))
        return fold_of_row

    monkeypatch.setattr(classification, "assign_folds", watch)
    scores = make_scores(suite, 2)
    (result,) = measure(suite, scores, [text], bootstrap=Bootstrap(0))
    tag = {"MCC(by='half', folds=2)": "half", "MCC(by='row')": ""}.get(text, "frame")
    assert f"by='{tag or 'row'}'" in result.measure
    for _, folds in seen:
        of_unit: dict[str, set[int]] = {}
        for sentence, fold in zip(suite.sentences, folds, strict=True):
            of_unit.setdefault(sentence.tags[tag] if tag else sentence.id, set()).add(fold)
        assert {len(numbers) for numbers in of_unit.values()} == {1}
    frames: dict[str, set[int]] = {}
    for sentence, fold in zip(suite.sentences, seen[0][1], strict=True):
        frames.setdefault(sentence.tags["frame"], set()).add(fold)
    assert (max(map(len, frames.values())) == 1) == bool(tag)


@pytest.mark.usefixtures("data")
def test_no_unit_of_li_adger_is_in_two_folds_of_link() -> None:
    suite = load_suite("li_adger")
    rated = [sentence for sentence in suite.sentences if sentence.rating is not None]

    def count_divided(group: str | None, tag: str) -> int:
        of_unit: dict[str, set[int]] = {}
        for sentence, fold in zip(rated, assign_folds(suite, group=group), strict=True):
            of_unit.setdefault(sentence.tags[tag], set()).add(int(fold))
        return sum(len(folds) > 1 for folds in of_unit.values())

    # Neither lexicalisations of a type nor the types of a pair are divided.
    assert count_divided(None, "type") == count_divided(None, "type_pair") == 0
    assert count_divided("row", "type") > 400


def make_outputs(suite: Suite) -> dict[str, TokenScores]:
    generator = np.random.default_rng(5)
    outputs = {}
    for sentence in suite.sentences:
        words = sentence.text.split()
        starts = np.cumsum([0, *(len(word) + 1 for word in words)])
        spans = tuple((int(start), int(start) + len(word)) for start, word in zip(starts[:-1], words, strict=True))
        level = 2 * (sentence.rating or 0.0) / len(words)
        logprobs = (generator.normal(-5, 1, len(words)) + level).astype(np.float32)
        outputs[sentence.id] = TokenScores(sentence.text, tuple(words), spans, logprobs)
    return outputs


@pytest.fixture
def worded(suite: Suite) -> Suite:
    """The suite with texts of different lengths, without which MORCELA has no constants."""
    generator = np.random.default_rng(9)
    vocabulary = [f"w{number}" for number in range(30)]
    texts = [" ".join(generator.choice(vocabulary, size=generator.integers(3, 9))) for _ in suite.sentences]
    return replace(suite, sentences=tuple(map(lambda one, text: replace(one, text=text), suite.sentences, texts)))


@pytest.fixture
def unigrams(tmp_path) -> str:
    path = tmp_path / "unigrams.tsv"
    path.write_text("word\tcount\n" + "".join(f"w{number}\t{2 ** (number % 9)}\n" for number in range(30)))
    return str(path)


def test_link_tests_morcela_against_slor_by_unit(worded: Suite, unigrams: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interval and p are computed again, from the definition and with other random numbers."""
    outputs, swapped_units = make_outputs(worded), []

    def watch(*rows: object, by: str, **options: int) -> PermutationTest:
        test = permutation_test(*rows, by=by, **options)
        swapped_units.append((test.unit, test.n))
        return test

    monkeypatch.setattr(linking, "permutation_test", watch)
    fit = fit_morcela(worded, outputs, unigrams, folds=4)
    # A difference as clear as this one has the same p by either unit.
    assert swapped_units == [("frame", UNITS)]
    difference = fit.difference
    assert difference.value == pytest.approx(fit.correlations["morcela"] - fit.correlations["slor"])
    fold = assign_folds(worded, folds=4)
    ratings = np.array([sentence.rating for sentence in worded.sentences])
    frames = np.array([sentence.tags["frame"] for sentence in worded.sentences])
    held_out = predict_out_of_fold(worded, outputs, fit, fold)

    def compute_difference(predictions: list[np.ndarray], rows: np.ndarray) -> float:
        by_fold = [
            [np.corrcoef(scores[chosen], ratings[chosen])[0, 1] for scores in predictions]
            for chosen in (rows[fold[rows] == number] for number in range(4))
        ]
        return float(np.mean([first - second for first, second in by_fold]))

    everything = np.arange(len(ratings))
    assert difference.value == pytest.approx(compute_difference(held_out, everything))
    generator = np.random.default_rng(11)
    rows_of = {name: np.flatnonzero(frames == name) for name in sorted(set(frames))}
    names = list(rows_of)
    drawn = (np.concatenate([rows_of[names[i]] for i in generator.integers(0, UNITS, UNITS)]) for _ in range(400))
    # A fold of which nothing is drawn has no correlation.
    resampled = [compute_difference(held_out, rows) for rows in drawn if len(set(fold[rows])) == 4]
    width = difference.high - difference.low
    assert (difference.low, difference.high) == pytest.approx(
        tuple(np.quantile(resampled, [0.025, 0.975])), abs=0.2 * width
    )
    swapped = []
    for _ in range(400):
        swap = np.isin(frames, [name for name in names if generator.random() < 0.5])
        first, second = held_out
        swapped.append(compute_difference([np.where(swap, second, first), np.where(swap, first, second)], everything))
    assert difference.p == pytest.approx(np.mean(np.abs(swapped) >= abs(difference.value) - 1e-12), abs=0.1)
    fields = parse_signature(fit.signature)
    assert fields["measure"] == "fit_morcela(group='frame', folds=4, seed=0)"
    assert fields["ci"] == "paired percentile(0.95,resamples=1000,by=frame,seed=0)"
    assert fields["test"] == "permutation(swap,standardised within folds,two-sided,draws=2000,by=frame,seed=0)"
    by_row = fit_morcela(worded, outputs, unigrams, folds=4, group="row")
    assert "by=row" in parse_signature(by_row.signature)["ci"]
    assert any("divide single sentences" in note for note in by_row.notes)


def predict_out_of_fold(worded: Suite, outputs: dict[str, TokenScores], fit, fold: np.ndarray) -> list[np.ndarray]:
    rows = np.array([[part.sum() for part in fit.reduction.unit_logprobs(outputs[one.id])] for one in worded.sentences])
    lengths = np.array([len(outputs[one.id].tokens) for one in worded.sentences], float)
    ratings = np.array([one.rating for one in worded.sentences])
    morcela, slor = np.empty(len(rows)), np.empty(len(rows))
    for number in range(4):
        inside = fold == number
        beta, gamma = fit_beta_gamma(ratings[~inside], *rows[~inside].T, lengths[~inside])
        for scores, values in (
            (morcela, (rows[:, 0] - beta * rows[:, 1] + gamma) / lengths),
            (slor, (rows[:, 0] - rows[:, 1]) / lengths),
        ):
            scores[inside] = (values[inside] - values[inside].mean()) / values[inside].std()
    return [morcela, slor]


def test_the_macro_mean_resamples_groups_that_are_units(suite: Suite) -> None:
    scores = make_scores(suite, 2)
    *_, macro = measure(suite, scores, ["PairAccuracy"], by="frame", bootstrap=Bootstrap(resamples=200))
    right = [float(scores[pair.better] > scores[pair.worse]) for pair in suite.contrasts]
    frames = np.array([pair.tags["frame"] for pair in suite.contrasts])
    means = np.array([np.mean(np.array(right)[frames == name]) for name in sorted(set(frames))])
    half_width = 1.96 * means.std(ddof=1) / np.sqrt(UNITS)
    assert (macro.high - macro.low) / 2 == pytest.approx(half_width, rel=0.2)
    assert parse_signature(macro.signature)["units"] == str(UNITS)


def test_two_levels_are_resampled_on_request_or_if_declared(suite: Suite) -> None:
    scores = make_scores(suite, 2)
    nested = Bootstrap(resamples=100, by="frame", within="item")
    (asked,) = measure(suite, scores, ["PairAccuracy"], bootstrap=nested)
    (declared,) = measure(replace(suite, unit="frame/item"), scores, ["PairAccuracy"], bootstrap=Bootstrap(100))
    assert "by=frame/item" in parse_signature(asked.signature)["ci"]
    assert (asked.low, asked.high, asked.signature) == (declared.low, declared.high, declared.signature)
    _, group, *_ = measure(suite, scores, ["PairAccuracy"], by="frame", bootstrap=nested)
    # Within one frame there are still items to resample.
    assert group.low is not None


def test_sets_that_do_not_share_the_unit_are_resampled_one_by_one(suite: Suite) -> None:
    (result,) = measure(suite, make_scores(suite, 2), ["PBC(per='half')"], bootstrap=Bootstrap(40))
    assert "by=row" in result.signature
    assert any("sets (by half) have no common 'frame'" in note for note in result.notes)


def test_few_units_are_remarked_on(suite: Suite) -> None:
    few = suite.restrict({sentence.id for sentence in suite.sentences if sentence.tags["frame"] in ("f0", "f1", "f2")})
    (result,) = measure(few, make_scores(suite, 2), ["PairAccuracy"])
    assert "only 3 values of 'frame' are resampled: an interval from so few is rough" in result.notes
    (correlation,) = correlate(few, [make_scores(suite, 2)])
    assert "there are only 3 values of 'frame'" in correlation.notes[-1]


# --- as commands ---


def run(*arguments: str) -> str:
    """What a command prints: data if they are asked for as JSON, else also what is meant for people."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    return done.stdout if "--json" in arguments else done.output


def test_commands_name_the_unit_and_signatures_reproduce(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["the", "cat", "of", "my", "old", "friend", "often", "sees", "a", "small", "dog", "in", "that", "garden"]
    texts = [" ".join(words[i % 5 : i % 5 + 3 + i % 7]) for i in range(48)]
    # Ratings that rise with log-probability per word, by which MORCELA is determined.
    judged = judge(texts, model="trigram")
    ratings = [one.score / len(one.text.split()) + number % 3 for number, one in enumerate(judged)]
    rows = "".join(f"f{i // 4},{texts[i]},{i % 2},{ratings[i]}\n" for i in range(48))
    (tmp_path / "mine.csv").write_text("frame,text,label,rating\n" + rows)
    for command in (
        ("evaluate", "mine.csv", "-m", "trigram", "-M", "MCC", "-M", "Pearson", "-M", "AUC"),
        (
            "compare",
            "mine.csv",
            "-m",
            "trigram",
            "-m",
            "mini-lstm",
            "-M",
            "Pearson",
            "--resamples",
            "50",
            "--draws",
            "50",
        ),
        ("correlate", "mine.csv", "-m", "trigram"),
        ("link", "mine.csv", "-m", "trigram", "--unigrams", "wordfreq:en", "--folds", "3", "--resamples", "50"),
    ):
        shown = run(*command, "--unit", "frame", "--signatures")
        assert "over 12 values of 'frame'" in shown
        assert "by=frame" in shown
        again = json.loads(run("reproduce", "latest", "--json"))
        assert {row["status"] for row in again} == {"equal"}, again
        by_row = run(
            *command, "--unit", "frame", *(("--by", "row") if command[0] == "link" else ("--resample-by", "row"))
        )
        assert "the suite's sampling unit, 'frame'" in " ".join(by_row.split())
        again = json.loads(run("reproduce", "latest", "--json"))
        assert {row["status"] for row in again} == {"equal"}, again


def test_what_is_sampled_is_listed_and_checked() -> None:
    assert json.loads(run("suites", "--json"))[0]["unit"] == "item"
    assert "unit:        item: The two sentences of a pair share their words" in run("suites", "show", "starter")
    assert run("suites", "check", "starter").startswith(
        "sampling unit: item (838 sentences in 455 items, 383 contrasts in 383 items)\n"
    )


def test_reproduce_of_single_rows_stays_by_row() -> None:
    """A signature of the version before, in which rows were the default, keeps its meaning."""
    scores_suite = load_suite("starter")

    (result,) = evaluate(
        scores_suite, ["trigram"], measure=["MCC"], bootstrap=Bootstrap(40, by="row", method="percentile")
    )
    assert "MCC(threshold='cv', folds=10, seeds=10)|" in result.signature
    (again,) = reproduce(result.signature, expected={"value": result.value, "low": result.low, "high": result.high})
    assert again.status == "equal", again.differences
    fields = parse_signature(result.signature)
    unsigned = result.signature.replace(fields["ci"], "none")
    (again,) = reproduce(unsigned, expected={"value": result.value})
    assert again.status == "equal", again.differences
