from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from acceptability.errors import ScoreError, Undefined
from acceptability.papers.niu_penn.sense import REVERSAL, SENTENCE, ProbabilityRatio, compute_ratio
from acceptability.types import Query, TokenScores


class Fixed:
    """Gives all words of a sentence one log-probability, and those of the reversal another."""

    signature = "fixed"

    def encode(self, queries: list[Query]) -> list[Query]:
        return [Sized(query.text) for query in queries]

    def run(self, batch: list[Query]) -> list[TokenScores]:
        return [self.score(query.text) for query in batch]

    def score(self, text: str) -> TokenScores:
        words = tuple(text.split())
        logprob = -1.0 if words[0].lower() == "colorless" else -2.0
        return TokenScores(text, words, ((0, 1),) * len(words), np.full(len(words), logprob, np.float32))

    def is_unknown(self, token: str) -> bool:
        return token[0].isupper()


class Sized(Query):
    size = 5


def test_the_reversal_has_the_same_words_in_the_other_order() -> None:
    assert SENTENCE.lower().strip(".").split() == REVERSAL.lower().strip(".").split()[::-1]


def test_the_ratio_is_that_of_probabilities() -> None:
    ratio = compute_ratio(Fixed())
    assert ratio.times == pytest.approx(math.exp(5))
    assert ratio.log10 == pytest.approx(5 / math.log(10))
    assert ratio.note == "the model does not know Colorless, Furiously"
    assert compute_ratio(Fixed(), lower=True).note == ""


def test_a_model_that_sees_no_order_makes_no_difference() -> None:
    assert compute_ratio("uniform").times == 1.0


def test_a_classifier_has_no_probabilities(classifier_dir: Path) -> None:
    with pytest.raises(ScoreError):
        compute_ratio(f"classifier:{classifier_dir}")


def test_a_ratio_beyond_all_numbers() -> None:
    with pytest.raises(Undefined, match="10 to the power of 400.0"):
        _ = ProbabilityRatio(log10=400.0).times
