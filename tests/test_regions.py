"""From tokens to regions."""

from __future__ import annotations

import math

import numpy as np
import pytest

from acceptability.errors import MeasureError, ScoreError
from acceptability.measuring import evaluate
from acceptability.regions import RegionScores, region_logprobs
from acceptability.scoring import region_scores, score
from acceptability.types import LabelScores, Scores, Sentence, Span, Suite, TokenScores


def said(text: str, *tokens: tuple[Span, float]) -> TokenScores:
    spans = tuple(span for span, _ in tokens)
    names = tuple(text[start:end] for start, end in spans)
    return TokenScores(text, names, spans, np.array([value for _, value in tokens], np.float32))


def sentence(text: str, **places: Span) -> Sentence:
    return Sentence("s", text, regions={name.removeprefix("r"): span for name, span in places.items()})


def test_a_token_counts_for_the_region_of_its_first_letter() -> None:
    text = "As he shot, she left"
    told = said(text, ((0, 2), -1), ((2, 5), -2), ((5, 10), -4), ((10, 11), -8), ((11, 15), -16), ((15, 20), -32))
    found = region_logprobs(sentence(text, r1=(0, 5), r2=(6, 10), r3=(10, 11), r4=(12, 20)), told)
    assert found == {"1": -3, "2": -4, "3": -8, "4": -48}


def test_a_token_across_a_border_counts_for_the_first_of_two_regions() -> None:
    text = "he shot, she left"
    told = said(text, ((0, 2), -1), ((3, 8), -2), ((9, 12), -4), ((13, 17), -8))
    assert region_logprobs(sentence(text, r1=(0, 7), r2=(7, 8), r3=(9, 17)), told) == {"1": -3, "2": 0, "3": -12}


def test_a_token_of_space_alone_belongs_to_the_word_after_it() -> None:
    text = "he  left"
    told = said(text, ((0, 2), -1), ((2, 4), -2), ((4, 8), -4))
    assert region_logprobs(sentence(text, r1=(0, 2), r2=(4, 8)), told) == {"1": -1, "2": -6}


def test_an_end_token_is_in_no_region() -> None:
    told = said("he left", ((0, 2), -1), ((2, 7), -2), ((7, 7), -4))
    assert region_logprobs(sentence("he left", r1=(0, 2), r2=(3, 7)), told) == {"1": -1, "2": -2}


def test_a_word_that_was_not_scored_has_no_score_but_unread_punctuation_is_nothing() -> None:
    told = said("he left.", ((2, 7), -2))
    assert region_logprobs(sentence("he left.", r1=(0, 2), r2=(3, 7), r3=(7, 8)), told) == {"2": -2, "3": 0}


def test_regions_and_the_whole_come_from_one_pass() -> None:
    suite = Suite("one", (sentence("The cats, they sleep", r1=(0, 8), r2=(8, 9), r3=(10, 20)),))
    found = region_scores(suite, "uniform(vocabulary=8)")
    bits = {key: round(-value / math.log(2), 5) for key, value in found.values.items()}
    assert bits == {"s": 12, "s#1": 6, "s#2": 0, "s#3": 6}
    assert found.notes == ("1 regions have no token of their own, so their surprisal is 0",)
    assert score(suite, "uniform(vocabulary=8)").values == {"s": found["s"]}


def test_a_classifier_says_nothing_of_regions() -> None:
    suite = Suite("one", (sentence("Cats sleep", r1=(0, 4)),))
    with pytest.raises(ScoreError, match="classifier says nothing of regions"):
        RegionScores(suite).take([(0, LabelScores("Cats sleep", (0.0, 1.0)))])


def test_scores_keep_what_they_had() -> None:
    suite = Suite("one", (sentence("Cats sleep", r1=(0, 4)),))
    parts = RegionScores(suite)
    parts.take([(0, said("Cats sleep", ((0, 4), -1), ((4, 10), -2)))])
    found = parts.added(Scores({"s": -3.0}, "toy", reduction="lp()", notes=("old",)))
    assert (dict(found.values), found.reduction, found.notes) == ({"s": -3, "s#1": -1}, "lp()", ("old",))


def test_predictions_refuse_other_reductions_and_single_regions() -> None:
    tags = {"item": "1", "prediction": "(1;%a%) > 0", "condition": "a"}
    suite = Suite("one", (Sentence("s", "Cats sleep", regions={"1": (0, 4)}, tags=tags),))
    assert evaluate(suite, ["uniform"])[0].value == 1
    with pytest.raises(MeasureError, match="leave the reduction mean_lp away"):
        evaluate(suite, ["uniform"], reductions=["lp", "mean_lp"])
    with pytest.raises(MeasureError, match="only '1' was asked for"):
        evaluate(suite, ["uniform"], region="1")
