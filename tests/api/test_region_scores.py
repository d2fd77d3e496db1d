"""Log-probabilities of regions, from those of tokens."""

from __future__ import annotations

import math

import numpy as np
import pytest

from acceptability.api.evaluation import evaluate
from acceptability.api.scoring import RegionScoreCollector, region_logprobs, region_scores, score
from acceptability.errors import MeasureError, ScoreError
from acceptability.types import LabelScores, Scores, Sentence, Span, Suite, TokenScores


def make_token_scores(text: str, *tokens: tuple[Span, float]) -> TokenScores:
    spans = tuple(span for span, _ in tokens)
    names = tuple(text[start:end] for start, end in spans)
    return TokenScores(text, names, spans, np.array([value for _, value in tokens], np.float32))


def sentence(text: str, **spans: Span) -> Sentence:
    return Sentence("s", text, regions={name.removeprefix("r"): span for name, span in spans.items()})


def test_a_token_counts_for_the_region_of_its_first_letter() -> None:
    text = "As he shot, she left"
    token_scores = make_token_scores(
        text, ((0, 2), -1), ((2, 5), -2), ((5, 10), -4), ((10, 11), -8), ((11, 15), -16), ((15, 20), -32)
    )
    logprobs = region_logprobs(sentence(text, r1=(0, 5), r2=(6, 10), r3=(10, 11), r4=(12, 20)), token_scores)
    assert logprobs == {"1": -3, "2": -4, "3": -8, "4": -48}


def test_a_token_across_a_border_counts_for_the_first_of_two_regions() -> None:
    text = "he shot, she left"
    token_scores = make_token_scores(text, ((0, 2), -1), ((3, 8), -2), ((9, 12), -4), ((13, 17), -8))
    assert region_logprobs(sentence(text, r1=(0, 7), r2=(7, 8), r3=(9, 17)), token_scores) == {
        "1": -3,
        "2": 0,
        "3": -12,
    }


def test_a_token_of_space_alone_belongs_to_the_word_after_it() -> None:
    text = "he  left"
    token_scores = make_token_scores(text, ((0, 2), -1), ((2, 4), -2), ((4, 8), -4))
    assert region_logprobs(sentence(text, r1=(0, 2), r2=(4, 8)), token_scores) == {"1": -1, "2": -6}


def test_an_end_token_is_in_no_region() -> None:
    token_scores = make_token_scores("he left", ((0, 2), -1), ((2, 7), -2), ((7, 7), -4))
    assert region_logprobs(sentence("he left", r1=(0, 2), r2=(3, 7)), token_scores) == {"1": -1, "2": -2}


def test_unscored_words_have_no_score_and_unread_punctuation_has_zero() -> None:
    token_scores = make_token_scores("he left.", ((2, 7), -2))
    assert region_logprobs(sentence("he left.", r1=(0, 2), r2=(3, 7), r3=(7, 8)), token_scores) == {"2": -2, "3": 0}


def test_regions_and_whole_sentence_come_from_one_pass() -> None:
    suite = Suite("one", (sentence("The cats, they sleep", r1=(0, 8), r2=(8, 9), r3=(10, 20)),))
    logprobs = region_scores(suite, "uniform(vocabulary=8)")
    bits = {key: round(-value / math.log(2), 5) for key, value in logprobs.values.items()}
    assert bits == {"s": 12, "s#1": 6, "s#2": 0, "s#3": 6}
    assert logprobs.notes == ("1 regions have no token of their own, so their surprisal is 0",)
    assert score(suite, "uniform(vocabulary=8)").values == {"s": logprobs["s"]}


def test_a_classifier_has_no_region_scores() -> None:
    suite = Suite("one", (sentence("Cats sleep", r1=(0, 4)),))
    with pytest.raises(ScoreError, match="classifier has no scores of regions"):
        RegionScoreCollector(suite).add_batch([(0, LabelScores("Cats sleep", (0.0, 1.0)))])


def test_merging_regions_keeps_sentence_scores_and_notes() -> None:
    suite = Suite("one", (sentence("Cats sleep", r1=(0, 4)),))
    collector = RegionScoreCollector(suite)
    collector.add_batch([(0, make_token_scores("Cats sleep", ((0, 4), -1), ((4, 10), -2)))])
    logprobs = collector.merge_into(Scores({"s": -3.0}, "toy", reduction="lp()", notes=("old",)))
    assert (dict(logprobs.values), logprobs.reduction, logprobs.notes) == ({"s": -3, "s#1": -1}, "lp()", ("old",))


def test_predictions_refuse_other_reductions_and_single_regions() -> None:
    tags = {"item": "1", "prediction": "(1;%a%) > 0", "condition": "a"}
    suite = Suite("one", (Sentence("s", "Cats sleep", regions={"1": (0, 4)}, tags=tags),))
    assert evaluate(suite, ["uniform"])[0].value == 1
    with pytest.raises(MeasureError, match="omit the reduction mean_lp"):
        evaluate(suite, ["uniform"], reduce=["lp", "mean_lp"])
    with pytest.raises(MeasureError, match="but only '1' is scored"):
        evaluate(suite, ["uniform"], region="1")
