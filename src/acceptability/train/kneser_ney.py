"""Interpolated Kneser–Ney smoothing with three discounts for each order (Chen and Goodman 1999, equations 22–26).

As KenLM's ``lmplz`` does (Heafield et al. 2013): below the highest order an n-gram counts as
often as different words stand before it, unless it begins with ``<s>``, which nothing precedes;
single words are interpolated with the uniform distribution over the vocabulary without ``<s>``.
So ``<unk>`` gets its share even if the corpus has no unknown word, and every history's
probabilities sum to 1. ``<s>`` itself has probability 1, since it is never predicted.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from acceptability.models.vocabulary import START
from acceptability.train.counting import Grams, Ints

_log = logging.getLogger(__name__)
_FALLBACK = (0.5, 1.0, 1.5)
"""The discounts where counts of counts give none: those of ``lmplz --discount_fallback``."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, with what the model says of them.

    Args:
        keys: Where the first n-1 words stand one level below, times the vocabulary's size, plus the last word.
        suffixes: Where the last n-1 words stand one level below.
        counts: How often it stands in the corpus.
        probs: The probability of the last word after those before it.
        backoffs: What the probability of a word that was never seen after it is multiplied by.
    """

    keys: Ints
    suffixes: Ints
    counts: Ints
    probs: Floats
    backoffs: Floats


@dataclass(frozen=True)
class Estimate:
    """A whole model, order by order, and the three discounts of each."""

    size: int
    levels: tuple[Level, ...]
    discounts: tuple[tuple[float, float, float], ...]


def estimate(orders: Sequence[Grams], size: int) -> Estimate:
    """Return the model of n-gram counts.

    Args:
        orders: The n-grams of order 1, 2, … with their counts.
        size: The number of entries in the vocabulary.
    """
    suffixes = _suffixes(orders, size)
    levels: list[Level] = []
    discounts: list[tuple[float, float, float]] = []
    is_first = np.arange(size) == START
    for place, grams in enumerate(orders):
        above = suffixes[place + 1] if place + 1 < len(orders) else None
        adjusted = grams.counts if above is None else _adjusted(grams, above, is_first)
        if place == 0:
            adjusted = np.where(is_first, 0, adjusted)
        cut = _discounts(adjusted, place + 1)
        level, weights = _level(grams, adjusted, cut, suffixes[place], levels[-1] if levels else None, size)
        if levels:
            levels[-1] = replace(levels[-1], backoffs=weights)
        levels.append(level)
        discounts.append(cut)
        if place + 1 < len(orders):
            is_first = is_first[orders[place + 1].keys // size]
    return Estimate(size, tuple(levels), tuple(discounts))


def _suffixes(orders: Sequence[Grams], size: int) -> list[Ints]:
    """Return, for each order, where the n-grams without their first word stand one order below."""
    found = [np.zeros(len(orders[0]), np.int64)]
    for below, grams in pairwise(orders):
        history, word = np.divmod(grams.keys, size)
        # The last words of a bigram are a single word: it stands where its number says.
        keys = word if len(found) == 1 else found[-1][history] * size + word
        found.append(keys if len(found) == 1 else np.searchsorted(below.keys, keys))
    return found


def _adjusted(grams: Grams, above: Ints, is_first: NDArray[np.bool_]) -> Ints:
    """Return how many different words stand before each n-gram; what begins with <s> keeps its count."""
    different = np.bincount(above, minlength=len(grams))
    return np.where(is_first, grams.counts, different)


def _discounts(adjusted: Ints, order: int) -> tuple[float, float, float]:
    n = [int((adjusted == times).sum()) for times in range(5)]
    if all(n[1:4]):
        y = n[1] / (n[1] + 2 * n[2])
        found = tuple(times - (times + 1) * y * n[times + 1] / n[times] for times in (1, 2, 3))
        if all(0 <= each <= times for times, each in enumerate(found, start=1)):
            return found[0], found[1], found[2]
    _log.warning(
        "the corpus is too small or too even to estimate the discounts of order %s: %s are taken", order, _FALLBACK
    )
    return _FALLBACK


def _level(
    grams: Grams,
    adjusted: Ints,
    cut: tuple[float, float, float],
    suffixes: Ints,
    below: Level | None,
    size: int,
) -> tuple[Level, Floats]:
    """Return the n-grams of an order, and the back-off weights of the order below, which are its histories."""
    histories = grams.keys // size if below else np.zeros(len(grams), np.int64)
    taken = np.array([0.0, *cut])[np.minimum(adjusted, 3)]
    contexts = len(below.keys) if below else 1
    totals = np.bincount(histories, weights=adjusted, minlength=contexts)
    with np.errstate(invalid="ignore"):
        weights = np.where(totals > 0, np.bincount(histories, weights=taken, minlength=contexts) / totals, 1.0)
    lower = below.probs[suffixes] if below else np.full(len(grams), 1 / (size - 1))
    probs = (adjusted - taken) / totals[histories] + weights[histories] * lower
    if below is None:
        probs[START] = 1.0
    return Level(grams.keys, suffixes, grams.counts, probs, np.ones(len(grams))), weights
