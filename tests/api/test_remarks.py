"""Remarks on improbable results, among the notes of results and comparisons; none on ordinary ones."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import program
from acceptability import Bootstrap, Scores, Sentence, Suite, compare, load_suite, measure, score
from acceptability.api.remarks import (
    collect_remarks,
    remark_on_rows,
    remark_on_scores,
    remark_on_suite,
    remark_on_unknown_words,
)
from acceptability.errors import MeasureError
from acceptability.measures import load_measure
from acceptability.stats.proportions import binomial_lower_tail, hypergeometric_lower_tail
from acceptability.types import make_contrast

QUICK = Bootstrap(resamples=0)


def make_pairs(n: int = 20, *, same: int = 0, items: int = 20) -> Suite:
    sentences = []
    for number in range(n):
        worse = f"Pair {number} good." if number < same else f"Pair {number} bad."
        tags = {"item": str(number % items)}
        sentences += [
            Sentence(f"g{number}", f"Pair {number} good.", label=1, tags=tags),
            Sentence(f"b{number}", worse, label=0, tags=tags),
        ]
    contrasts = tuple(make_contrast(*sentences[start : start + 2]) for start in range(0, 2 * n, 2))
    return Suite("pairs", tuple(sentences), contrasts)


def make_scores(suite: Suite, right: int, model: str = "m", reduction: str = "") -> Scores:
    """Return scores by which the first contrasts are right, and the others wrong."""
    values = {}
    for number, pair in enumerate(suite.contrasts):
        gap = 1.0 if number < right else -1.0
        values |= {pair.better: gap + 0.001 * number, pair.worse: -gap - 0.001 * number}
    return Scores(values, model, reduction)


def list_notes(suite: Suite, scores: Scores, text: str, **options: object) -> str:
    (result, *_) = measure(suite, scores, [text], **{"bootstrap": QUICK, **options})
    return "; ".join(result.notes)


@pytest.mark.parametrize("text", ["PairAccuracy", "GradientPair"])
def test_pairs_below_chance_may_be_exchanged(text: str) -> None:
    suite = make_pairs()
    notes = list_notes(suite, make_scores(suite, 2), text)
    assert "below chance: 2 of 20 are right, and chance gives a share of 0.5 (exact binomial test, p = 0.0002)" in notes
    assert "better and worse are exchanged" in notes
    # 4 of 20 has a p of .006: seldom, but of a thousand results at chance six are like it.
    for right in (4, 10, 20):
        assert "chance" not in list_notes(suite, make_scores(suite, right), text)


def test_ties_are_no_sign_of_exchanged_pairs() -> None:
    suite = make_pairs()
    scores = make_scores(suite, 11)
    tied = Scores({key: float(int(key[1:]) < 10) for key in scores.values}, "m")
    (result,) = measure(suite, tied, ["PairAccuracy"], bootstrap=QUICK)
    assert (result.value, result.notes) == (0.0, ())
    mixed = Scores({**tied.values, "b19": 2.0}, "m")
    assert "chance" not in list_notes(suite, mixed, "PairAccuracy")


def test_items_that_depend_on_each_other_count_once() -> None:
    """Twenty wrong pairs of three items are three wrong items."""
    suite = make_pairs(items=3)
    scores = make_scores(suite, 0)
    assert "below chance" in list_notes(suite, scores, "PairAccuracy")
    assert "below chance" not in list_notes(suite, scores, "PairAccuracy", bootstrap=Bootstrap(40, by="item"))
    many = make_pairs(items=19)
    notes = list_notes(many, make_scores(many, 0), "PairAccuracy", bootstrap=Bootstrap(40, by="item"))
    assert "below chance: 0 of 20 are right" in notes
    assert "sign-flip test by 'item'" in notes
    # An item for each pair: the pairs are independent, which the exact test assumes.
    single = make_pairs(items=20)
    notes = list_notes(single, make_scores(single, 0), "PairAccuracy", bootstrap=Bootstrap(40, by="item"))
    assert "exact binomial test" in notes


@pytest.mark.parametrize("text", ["MCC", "Accuracy", "AUC", "MCC(threshold=0)", "Accuracy(threshold=0)"])
@pytest.mark.parametrize("reduction", ["lp()", "log_odds()"])
def test_labels_may_be_exchanged(text: str, reduction: str) -> None:
    suite = make_pairs()
    notes = list_notes(suite, make_scores(suite, 2, reduction=reduction), text)
    where = "score above the median"
    if text != "AUC" and ("0" in text or reduction == "log_odds()"):
        where = "are predicted to be acceptable"
    assert f"below chance: 2 of 20 acceptable and 18 of 20 unacceptable sentences {where}" in notes
    assert "Fisher's exact test, p = 3e-07" in notes
    assert "the labels are exchanged" in notes
    for right in (8, 18):
        assert "below chance" not in list_notes(suite, make_scores(suite, right, reduction=reduction), text)


def test_equal_scores() -> None:
    suite = make_pairs()
    constant = Scores({sentence.id: -3.5 for sentence in suite.sentences}, "m")
    remark = "all 40 scores of 'm' are -3.5: the model, or the column of scores, does not depend on the sentence"
    for text in ("PairAccuracy", "MCC", "AUC", "PBC"):
        assert remark in list_notes(suite, constant, text)
    (undefined,) = measure(suite, constant, ["PBC"], bootstrap=QUICK)
    assert undefined.value is None
    assert remark_on_scores(Scores({"a": 1.0}, "m")) == remark_on_scores(Scores({"a": 1.0, "b": 2.0}, "m")) == ()


def test_a_constant_prediction() -> None:
    suite = make_pairs()
    logs = Scores({key: value - 50 for key, value in make_scores(suite, 18).values.items()}, "m", "lp()")
    for text in ("MCC(threshold=0)", "Accuracy(threshold=0)", "AbsolutePair(threshold=0)"):
        notes = list_notes(suite, logs, text)
        assert (
            "every sentence is predicted to be unacceptable, so that the value says nothing about the scores" in notes
        )
        assert "does the threshold suit these scores?" in notes
    for text in ("MCC", "Accuracy", "AbsolutePair(threshold=-50)"):
        assert "every sentence" not in list_notes(suite, logs, text)
    # The best threshold for exchanged labels accepts everything, and the value is then that of no model at all.
    exchanged = list_notes(suite, make_scores(suite, 0, reduction="lp()"), "MCC")
    assert "every sentence is predicted to be acceptable" in exchanged
    assert "does the threshold suit" not in exchanged
    assert "below chance" in exchanged


def test_identical_pairs() -> None:
    suite = make_pairs(same=2)
    scores = make_scores(suite, 18)
    notes = list_notes(suite, scores, "PairAccuracy")
    assert "2 of 20 contrasts have the same text in both sentences, so that no score of the text can tell them" in notes
    assert "given twice" not in notes
    assert "given twice?" in list_notes(make_pairs(same=20), scores, "PairAccuracy")
    assert "same text" not in list_notes(suite, scores, "AUC")
    assert "same text" not in list_notes(make_pairs(), scores, "PairAccuracy")


def test_regions_of_one_sentence_are_no_identical_pair() -> None:
    first, second = (Sentence(name, "He left.", regions={"1": span}) for name, span in (("a", (0, 2)), ("b", (3, 7))))
    suite = Suite("regions", (first, second), (make_contrast(first, second),))
    assert remark_on_suite(suite, load_measure("PairAccuracy")) == ()


def test_labels_of_one_class() -> None:
    suite = make_pairs()
    for kind, word in ((0, "unacceptable"), (1, "acceptable")):
        part = Suite("part", tuple(sentence for sentence in suite.sentences if sentence.label == kind))
        notes = list_notes(part, make_scores(suite, 18), "Accuracy(threshold=0)")
        assert f"all 20 labels are {word}: the value is the share of sentences that the model finds {word}" in notes
        with pytest.raises(MeasureError, match="needs both classes"):
            measure(part, make_scores(suite, 18), ["Accuracy"])
    assert "labels" not in list_notes(suite, make_scores(suite, 18), "Accuracy(threshold=0)")


@pytest.mark.parametrize(
    ("words", "unknown", "is_remarked"), [(100, 0, 0), (100, 33, 0), (99, 33, 1), (3, 3, 1), (0, 0, 0)]
)
def test_unknown_words(words: int, unknown: int, is_remarked: int) -> None:
    remarks = remark_on_unknown_words(words, unknown)
    assert len(remarks) == is_remarked
    if remarks:
        assert f"{unknown} of {words} words ({unknown / words:.0%}) are unknown to the model" in remarks[0]


def test_a_comparison_has_the_remarks_on_both_models_under_their_names() -> None:
    suite = make_pairs(same=2)
    good, poor = make_scores(suite, 20, "good"), make_scores(suite, 1, "poor")
    (comparison,) = compare(suite, [good, poor], measure=["PairAccuracy"], bootstrap=Bootstrap(40), draws=0)
    notes = comparison.row()["notes"]
    assert "poor: below chance: 1 of 20 are right" in notes
    assert "good: below" not in notes
    assert notes.count("2 of 20 contrasts have the same text") == 1


def test_groups_are_not_remarked_on() -> None:
    suite = make_pairs(items=1)
    overall, group, macro = measure(suite, make_scores(suite, 2), ["PairAccuracy"], by="item", bootstrap=QUICK)
    assert "below chance" in overall.notes[0]
    assert (group.notes, macro.notes) == ((), ())


def test_the_remarks_stand_in_the_terminal_and_in_json(tmp_path: Path) -> None:
    """A table whose columns of good and bad sentences are exchanged, as users see it."""
    suite = load_suite("starter")
    with (tmp_path / "swapped.csv").open("w", encoding="utf-8", newline="") as file:
        rows = ((suite.by_id[pair.worse].text, suite.by_id[pair.better].text) for pair in suite.contrasts)
        csv.writer(file).writerows([("good", "bad"), *rows])
    arguments = ["evaluate", "swapped.csv", "--model", "trigram", "--measure", "PairAccuracy"]
    shown = program.typed(arguments, tmp_path, os.environ)
    assert shown.returncode == 0, shown.stderr
    assert "below chance" in shown.stderr
    as_json = program.typed([*arguments, "--json"], tmp_path, os.environ)
    assert "below chance" in json.loads(as_json.stdout)[0]["notes"]


@pytest.mark.parametrize("model", ["trigram", "uniform"])
def test_ordinary_results_have_no_remarks(model: str) -> None:
    suite = load_suite("starter")
    scores = score(suite, model)
    for text in ("PairAccuracy", "PBC", "AUC", "MCC", "Accuracy"):
        resolved = load_measure(text).resolve([scores], "")
        units = resolved.units(suite, scores)
        assert collect_remarks(suite, resolved, scores, units) == ()
        assert remark_on_rows(resolved, units, "item" if suite.contrasts[0].tags.get("item") else "") == ()


@given(st.data())
def test_exact_tails_are_those_of_scipy(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 400))
    yes, good = data.draw(st.integers(0, n)), data.draw(st.integers(0, n))
    hits = data.draw(st.integers(max(0, yes + good - n), min(yes, good)))
    expected = stats.hypergeom.cdf(hits, n, good, yes)
    assert hypergeometric_lower_tail(hits, yes, good, n) == pytest.approx(expected, rel=1e-8, abs=1e-300)
    share = data.draw(st.sampled_from([0.5, 1 / 3]))
    assert binomial_lower_tail(hits, n, share) == pytest.approx(stats.binom.cdf(hits, n, share), rel=1e-8)


def test_a_very_small_probability_is_no_error() -> None:
    assert hypergeometric_lower_tail(0, 5000, 5000, 10_000) >= 0
    assert np.isfinite(hypergeometric_lower_tail(2500, 5000, 5000, 10_000))
    with pytest.raises(MeasureError, match="impossible"):
        hypergeometric_lower_tail(5, 4, 4, 8)
    with pytest.raises(MeasureError, match="no count"):
        binomial_lower_tail(5, 4, 0.5)
