"""Perplexity: how many equally likely continuations a model seems to choose from, per word or per token.

Two perplexities can be compared only where unit, unknown words and sentence ends are treated alike,
so these conventions are part of the result.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from acceptability.errors import MeasureError, ScoreError, Undefined, shorten
from acceptability.spelling import write
from acceptability.types import Span, TokenScores
from acceptability.words import words

_UNITS = ("word", "token")
_ENDS = ("counted", "free", "left out")


@dataclass(frozen=True)
class Perplexity:
    """A perplexity, what it rests on, and by which conventions.

    Args:
        n: How many units were counted, sentence ends included where they count.
        unknown: How many units were left out because the vocabulary lacks them.
        partial: How many words were left out because not all of them was scored.
        signature: The conventions; "end='unscored'" where the model scored no end of a sentence.
    """

    value: float
    n: int
    unknown: int
    partial: int
    signature: str


@dataclass(frozen=True)
class _Unit:
    logprob: float
    is_known: bool = True
    is_whole: bool = True


def perplexity(
    said: Iterable[TokenScores],
    *,
    unit: str = "word",
    end: str = "counted",
    vocabulary: Container[str] | None = None,
) -> Perplexity:
    """Return e to the power of minus the mean log-probability of all units.

    Args:
        unit: "word" (what spaces separate) or "token".
        end: What the end of a sentence is where the model scored it: "counted" as a unit of its own;
            "free", its log-probability counts but it is no unit; or "left out".
        vocabulary: The tokens that the model knows. A unit with any other token in it is unknown, and left
            out. None leaves out nothing: unknown words count with what the model gave them.

    >>> import numpy as np
    >>> sentence = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.log([0.5, 0.125]).astype(np.float32))
    >>> found = perplexity([sentence])
    >>> round(found.value, 4), found.n, found.signature
    (4.0, 2, "perplexity(unit='word', end='unscored', unknown='as scored')")
    """
    for name, value, choices in (("unit", unit, _UNITS), ("end", end, _ENDS)):
        if value not in choices:
            raise MeasureError(f"perplexity: {name} is {value!r}; expected one of {', '.join(choices)}")
    units: list[_Unit] = []
    ends: list[float] = []
    sentences = 0
    for each in said:
        sentences += 1
        ends += _ends(each)
        units += _words(each, vocabulary) if unit == "word" else _tokens(each, vocabulary)
    _check_ends(len(ends), sentences)
    kept = [each.logprob for each in units if each.is_known and each.is_whole]
    counted = len(kept) + (len(ends) if end == "counted" else 0)
    total = math.fsum(kept) + (0.0 if end == "left out" else math.fsum(ends))
    return Perplexity(
        _exp_of_mean(total, counted),
        counted,
        sum(not each.is_known for each in units),
        sum(not each.is_whole and each.is_known for each in units),
        _signature(unit, end if ends else "unscored", vocabulary),
    )


def _ends(said: TokenScores) -> list[float]:
    """Return the log-probability of a sentence's end: a token at the end of the text that covers nothing of it."""
    return [
        float(logprob)
        for span, logprob in zip(said.offsets, said.logprobs, strict=True)
        if span[0] == span[1] == len(said.text)
    ]


def _tokens(said: TokenScores, vocabulary: Container[str] | None) -> Iterator[_Unit]:
    for token, span, logprob in zip(said.tokens, said.offsets, said.logprobs, strict=True):
        if not span[0] == span[1] == len(said.text):
            yield _Unit(float(logprob), vocabulary is None or token in vocabulary)


def _words(said: TokenScores, vocabulary: Container[str] | None) -> Iterator[_Unit]:
    unknown = [
        span
        for token, span in zip(said.tokens, said.offsets, strict=True)
        if vocabulary is not None and span[0] < span[1] and token not in vocabulary
    ]
    scored = {place for start, end in said.offsets for place in range(start, end)}
    for word in words(said):
        letters = {place for place in range(*word.span) if said.text[place].isalnum()}
        is_whole = word.logprob is not None and letters <= scored
        yield _Unit(word.logprob or 0.0, not any(_ends_in(span, word.span) for span in unknown), is_whole)


def _ends_in(token: Span, word: Span) -> bool:
    return word[0] < token[1] <= word[1]


def _check_ends(ends: int, sentences: int) -> None:
    if ends not in (0, sentences):
        raise ScoreError(f"the end of {ends} of {sentences} sentences is scored; expected all of them or none")


def _exp_of_mean(total: float, counted: int) -> float:
    if not counted:
        raise Undefined("there is no unit to count")
    if -total / counted > 700:
        raise Undefined(f"e to the power of {shorten(f'{-total / counted:g}')} is beyond what numbers can tell")
    return math.exp(-total / counted)


def _signature(unit: str, end: str, vocabulary: Container[str] | None) -> str:
    unknown = "as scored" if vocabulary is None else "left out"
    return write("perplexity", {"unit": unit, "end": end, "unknown": unknown})
