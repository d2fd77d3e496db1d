from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from acceptability.errors import ScoreError, Undefined
from acceptability.studies.colorless import REVERSAL, SENTENCE, Ratio, ratio
from acceptability.types import Query, TokenScores


class Fixed:
    """Gives each word of one sentence the same log-probability, and each of the other another."""

    signature = "fixed"

    def encode(self, queries: list[Query]) -> list[Query]:
        return [Sized(query.text) for query in queries]

    def run(self, batch: list[Query]) -> list[TokenScores]:
        return [self.said(each.text) for each in batch]

    def said(self, text: str) -> TokenScores:
        words = tuple(text.split())
        each = -1.0 if words[0].lower() == "colorless" else -2.0
        return TokenScores(text, words, ((0, 1),) * len(words), np.full(len(words), each, np.float32))

    def is_unknown(self, token: str) -> bool:
        return token[0].isupper()


class Sized(Query):
    size = 5


def test_the_reversal_has_the_same_words_in_the_other_order() -> None:
    assert SENTENCE.lower().strip(".").split() == REVERSAL.lower().strip(".").split()[::-1]


def test_the_ratio_is_that_of_probabilities() -> None:
    found = ratio(Fixed())
    assert found.times == pytest.approx(math.exp(5))
    assert found.log10 == pytest.approx(5 / math.log(10))
    assert found.note == "the model does not know Colorless, Furiously"
    assert ratio(Fixed(), lower=True).note == ""


def test_a_model_that_sees_no_order_makes_no_difference() -> None:
    assert ratio("uniform").times == 1.0


def test_a_classifier_has_no_probabilities(classifier_dir: Path) -> None:
    with pytest.raises(ScoreError):
        ratio(f"classifier:{classifier_dir}")


def test_a_ratio_beyond_all_numbers() -> None:
    with pytest.raises(Undefined, match="10 to the power of 400.0"):
        _ = Ratio(log10=400.0).times
