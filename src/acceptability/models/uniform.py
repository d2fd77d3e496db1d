"""The baseline that knows nothing: every word is as probable as any other.

Its score is the number of words, turned round; what it gets right on a suite is what
length alone gets right.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import ModelError, QueryError
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores


@dataclass(frozen=True)
class Words:
    """A query cut into words."""

    query: Query
    offsets: tuple[Span, ...]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.offsets)


@dataclass(frozen=True)
class Uniform:
    """Gives every word of a text the probability 1 / vocabulary."""

    vocabulary: int = 50_000

    def __post_init__(self) -> None:
        if isinstance(self.vocabulary, bool) or not isinstance(self.vocabulary, int) or self.vocabulary < 1:
            raise ModelError(f"uniform: vocabulary is {self.vocabulary!r}; expected a whole number from 1")

    @property
    def signature(self) -> str:
        """Its one option."""
        return write("uniform", {"vocabulary": self.vocabulary})

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query."""
        return [Words(query, word_spans(query, r"\S+", index)) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[TokenScores]:
        """Return the same log-probability for every word."""
        return [self._said(each) for each in batch]

    def _said(self, each: Words) -> TokenScores:
        logprobs = np.full(len(each.offsets), -math.log(self.vocabulary), dtype=np.float32)
        text = each.query.text
        return TokenScores(text, tuple(text[start:end] for start, end in each.offsets), each.offsets, logprobs)


def open_model(place: str, vocabulary: int = 50_000) -> Uniform:
    """Return the baseline; it lies in no place."""
    if place:
        raise ModelError(f"uniform has no files; write uniform(vocabulary=50000), not 'uniform:{place}'")
    return Uniform(vocabulary)


def word_spans(query: Query, pattern: str, index: int) -> tuple[Span, ...]:
    """Return where the words of a query stand, of its target if it has one."""
    spans = [found.span() for found in re.finditer(pattern, query.text)]
    if query.target:
        start, end = query.target
        spans = [span for span in spans if span[0] < end and span[1] > start]
    if not spans:
        raise QueryError(index, "there is no word in it")
    return tuple(spans)
