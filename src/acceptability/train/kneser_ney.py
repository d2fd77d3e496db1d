"""N-gram models by interpolated modified Kneser–Ney smoothing: counting, estimation, entropy pruning; NumPy alone.

**Counting.** An n-gram is one integer key: the index of its first n-1 words among the (n-1)-grams, times the size of
the vocabulary, plus its last word. Sorted, these keys are a trie: the n-grams that share a history are adjacent.

**Estimation** (Chen and Goodman 1999, equations 22–26) uses three discounts per order. As in KenLM's ``lmplz``
(Heafield et al. 2013), the count of an n-gram below the highest order is its continuation count, the number of
different words before it, unless it begins with ``<s>``, which nothing precedes; unigrams are interpolated with the
uniform distribution over the vocabulary without ``<s>``. So ``<unk>`` gets a probability even if the corpus has no
unknown word, and the probabilities after every history sum to 1. ``<s>`` itself has probability 1, since it is never
predicted.

**Pruning** (Stolcke 1998) removes the n-grams whose loss changes the model least: the relative entropy between the
model with and without one, weighted by the frequency of its history. That frequency comes from the corpus counts, since
the continuation counts of a Kneser–Ney model misjudge how frequent a history is (Chelba et al. 2010).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from acceptability.text.words import END, START

CHUNK = 1 << 24
"""How many n-grams are sorted at a time, which bounds the memory beside the corpus and its distinct n-grams."""

_FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)
"""The discounts where the counts of counts give none: those of ``lmplz --discount_fallback``."""

# Rounding can leave a back-off mass that is 0 in exact arithmetic slightly above or below it: less is treated as none.
_MIN_MASS = 1e-9

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class NGramCounts:
    """The distinct n-grams of one order.

    Args:
        keys: The keys of the n-grams, ascending.
        counts: Their counts in the corpus.
    """

    keys: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.keys)


def count_unigrams(ids: NDArray[np.int32], size: int) -> NGramCounts:
    """Return the unigram counts, one per word of the vocabulary; the count of ``<s>`` is the number of sentences."""
    counts = np.bincount(ids, minlength=size)
    # The corpus has no <s>, but bigrams have it as their history, and pruning needs its frequency.
    counts[START] = counts[END]
    return NGramCounts(np.arange(size), counts)


def find_previous_words(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the word before every token; before the first one of a sentence it is ``<s>``."""
    previous = np.full(len(ids), START, np.int32)
    previous[1:] = np.where(ids[:-1] == END, np.int32(START), ids[:-1])
    return previous


def count_ngrams(
    ids: NDArray[np.int32],
    histories: NDArray[np.int32],
    size: int,
    *,
    chunk: int = CHUNK,
    on_progress: Callable[[int], None],
) -> NGramCounts:
    """Return the n-grams of a corpus.

    Args:
        ids: The word ids of the corpus; sentences end with ``</s>``.
        histories: For every token, the index of the n-1 words before it among the (n-1)-grams; -1 if there are fewer.
        size: The size of the vocabulary.
        chunk: How many tokens are sorted at a time.
        on_progress: Called with the number of tokens counted so far.
    """
    sorted_runs: list[NGramCounts] = []
    for start in range(0, len(ids), chunk):
        keys = _compute_keys(ids, histories, size, start, start + chunk)
        sorted_runs.append(_count_keys(keys[keys >= 0]))
        # As in a merge sort, runs of similar size are merged: every key is copied a logarithmic number of times only.
        while len(sorted_runs) > 1 and len(sorted_runs[-2]) <= 2 * len(sorted_runs[-1]):
            sorted_runs.append(merge_counts(sorted_runs.pop(), sorted_runs.pop()))
        on_progress(min(start + chunk, len(ids)))
    while len(sorted_runs) > 1:
        sorted_runs.append(merge_counts(sorted_runs.pop(), sorted_runs.pop()))
    return sorted_runs[0]


def find_next_histories(
    ids: NDArray[np.int32], histories: NDArray[np.int32], size: int, grams: NGramCounts, *, chunk: int = CHUNK
) -> NDArray[np.int32]:
    """Return, for every token, the index of the n words before it among the n-grams; -1 if there are fewer."""
    next_histories = np.full(len(ids) + 1, -1, np.int32)
    for start in range(0, len(ids), chunk):
        keys = _compute_keys(ids, histories, size, start, start + chunk)
        # An n-gram that ends a sentence is the history of nothing.
        is_continued = (keys >= 0) & (ids[start : start + chunk] != END)
        next_histories[start + 1 : start + 1 + len(keys)][is_continued] = np.searchsorted(
            grams.keys, keys[is_continued]
        )
    return next_histories[:-1]


def _compute_keys(ids: NDArray[np.int32], histories: NDArray[np.int32], size: int, start: int, end: int) -> Ints:
    """Return the key of the n-gram that ends at each token of a chunk; -1 where the sentence is too short."""
    # The key is a product of two sizes, and overflows 32 bits.
    history = histories[start:end].astype(np.int64)
    return np.where(history < 0, -1, history * size + ids[start:end])


def _count_keys(keys: Ints) -> NGramCounts:
    unique, counts = np.unique(keys, return_counts=True)
    return NGramCounts(unique, counts)


def merge_counts(first: NGramCounts, second: NGramCounts) -> NGramCounts:
    """Return the n-grams of two runs as one sorted run; the counts of n-grams in both are added.

    >>> first = NGramCounts(np.array([1, 4]), np.array([1, 1]))
    >>> both = merge_counts(first, NGramCounts(np.array([4, 5]), np.array([2, 1])))
    >>> both.keys.tolist(), both.counts.tolist()
    ([1, 4, 5], [1, 3, 1])
    """
    keys = np.concatenate([first.keys, second.keys])
    # NumPy's stable sort finds the two runs that are sorted already, and only merges them.
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], np.concatenate([first.counts, second.counts])[order]
    # A corpus of sentences shorter than n has no n-grams, and reduceat rejects empty arrays.
    if not len(keys):
        return NGramCounts(keys, counts)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return NGramCounts(keys[starts], np.add.reduceat(counts, starts))


@dataclass(frozen=True)
class NGramLevel:
    """The n-grams of one order, with their probabilities and back-off weights.

    Args:
        keys: The keys of the n-grams, ascending.
        suffixes: The index of the last n-1 words one level below.
        counts: The counts in the corpus.
        probs: The probability of the last word after the others.
        backoffs: The back-off weight, by which the lower-order probability of a word never seen after it is multiplied.
    """

    keys: Ints
    suffixes: Ints
    counts: Ints
    probs: Floats
    backoffs: Floats


@dataclass(frozen=True)
class KneserNeyModel:
    """The levels of a model, from unigrams up, and the three discounts of each."""

    size: int
    levels: tuple[NGramLevel, ...]
    discounts: tuple[tuple[float, float, float], ...]


def estimate_kneser_ney(orders: Sequence[NGramCounts], size: int) -> KneserNeyModel:
    """Return the interpolated modified Kneser–Ney model of n-gram counts.

    Args:
        orders: The n-grams of order 1, 2, … with their counts.
        size: The size of the vocabulary.
    """
    suffixes = _find_suffixes(orders, size)
    levels: list[NGramLevel] = []
    discounts: list[tuple[float, float, float]] = []
    is_first = np.arange(size) == START
    for level_index, grams in enumerate(orders):
        longer_suffixes = suffixes[level_index + 1] if level_index + 1 < len(orders) else None
        adjusted_counts = grams.counts if longer_suffixes is None else _adjust_counts(grams, longer_suffixes, is_first)
        # <s> is never predicted, so it takes no part in the discounts and totals of unigrams.
        if level_index == 0:
            adjusted_counts = np.where(is_first, 0, adjusted_counts)
        level_discounts = _estimate_discounts(adjusted_counts, level_index + 1)
        level, backoffs = _estimate_level(
            grams, adjusted_counts, level_discounts, suffixes[level_index], levels[-1] if levels else None, size
        )
        if levels:
            levels[-1] = replace(levels[-1], backoffs=backoffs)
        levels.append(level)
        discounts.append(level_discounts)
        # An n-gram begins with <s> if its history does.
        if level_index + 1 < len(orders):
            is_first = is_first[orders[level_index + 1].keys // size]
    return KneserNeyModel(size, tuple(levels), tuple(discounts))


def _find_suffixes(orders: Sequence[NGramCounts], size: int) -> list[Ints]:
    """Return, for each order, the index of the n-grams without their first word one order below."""
    suffixes = [np.zeros(len(orders[0]), np.int64)]
    for below, grams in pairwise(orders):
        history, word = np.divmod(grams.keys, size)
        # The suffix of a bigram is a unigram, whose index is its word id.
        keys = word if len(suffixes) == 1 else suffixes[-1][history] * size + word
        suffixes.append(keys if len(suffixes) == 1 else np.searchsorted(below.keys, keys))
    return suffixes


def _adjust_counts(grams: NGramCounts, longer_suffixes: Ints, is_first: NDArray[np.bool_]) -> Ints:
    """Return the continuation counts: different words before an n-gram; what begins with <s> keeps its count."""
    continuation_counts = np.bincount(longer_suffixes, minlength=len(grams))
    return np.where(is_first, grams.counts, continuation_counts)


def _estimate_discounts(adjusted: Ints, order: int) -> tuple[float, float, float]:
    """Return the discounts of n-grams that are counted once, twice, and three times or more."""
    n = [int((adjusted == times).sum()) for times in range(5)]
    if all(n[1:4]):
        y = n[1] / (n[1] + 2 * n[2])
        discounts = tuple(times - (times + 1) * y * n[times + 1] / n[times] for times in (1, 2, 3))
        # A small or artificial corpus can give discounts that leave negative counts, or add to them.
        if all(0 <= discount <= times for times, discount in enumerate(discounts, start=1)):
            return discounts[0], discounts[1], discounts[2]
    _log.warning(
        "the corpus is too small or too uniform to estimate the discounts of order %s: using %s",
        order,
        _FALLBACK_DISCOUNTS,
    )
    return _FALLBACK_DISCOUNTS


def _estimate_level(
    grams: NGramCounts,
    adjusted: Ints,
    discounts: tuple[float, float, float],
    suffixes: Ints,
    below: NGramLevel | None,
    size: int,
) -> tuple[NGramLevel, Floats]:
    """Return the level of an order, and the back-off weights of its histories, the n-grams of the level below."""
    histories = grams.keys // size if below else np.zeros(len(grams), np.int64)
    discounted = np.array([0.0, *discounts])[np.minimum(adjusted, 3)]
    contexts = len(below.keys) if below else 1
    totals = np.bincount(histories, weights=adjusted, minlength=contexts)
    # A history that nothing follows has 0 / 0, replaced by 1: all of its probability is that of the lower order.
    with np.errstate(invalid="ignore"):
        weights = np.where(totals > 0, np.bincount(histories, weights=discounted, minlength=contexts) / totals, 1.0)
    # size - 1: the uniform distribution has no <s>.
    lower = below.probs[suffixes] if below else np.full(len(grams), 1 / (size - 1))
    probs = (adjusted - discounted) / totals[histories] + weights[histories] * lower
    if below is None:
        probs[START] = 1.0
    return NGramLevel(grams.keys, suffixes, grams.counts, probs, np.ones(len(grams))), weights


def prune_ngrams(model: KneserNeyModel, threshold: float) -> KneserNeyModel:
    """Return the model without the n-grams of order 2 and more that change its perplexity by less than a share.

    Args:
        threshold: The largest relative growth of the perplexity that one n-gram may cost, such as 1e-8.
    """
    is_kept = _select_ngrams(model, threshold)
    backoffs = _recompute_backoffs(model, is_kept)
    levels: list[NGramLevel] = []
    numbers = np.arange(model.size)
    for level_index, level in enumerate(model.levels):
        is_level_kept = is_kept[level_index]
        # The index of each remaining n-gram in the shorter list.
        renumbered = np.cumsum(is_level_kept) - 1
        keys = level.keys[is_level_kept]
        if level_index:
            keys = numbers[keys // model.size] * model.size + keys % model.size
        # Suffixes and counts stay those of the full model: a pruned model is only written, which needs neither.
        levels.append(
            replace(level, keys=keys, probs=level.probs[is_level_kept], backoffs=backoffs[level_index][is_level_kept])
        )
        numbers = renumbered
    return replace(model, levels=tuple(levels))


def compute_pruning_losses(model: KneserNeyModel, level_index: int) -> Floats:
    """Return the relative growth of the perplexity if one n-gram of an order is removed, for each n-gram alone.

    The equations are those of Stolcke (1998), §3; ``change`` is the relative entropy after the history.
    """
    level, below = model.levels[level_index], model.levels[level_index - 1]
    histories = level.keys // model.size
    lower = below.probs[level.suffixes]
    seen, seen_below = (
        np.bincount(histories, weights=probs, minlength=len(below.keys)) for probs in (level.probs, lower)
    )
    mass_left = np.maximum(1 - seen, 0.0)[histories]
    mass_left_below = np.maximum(1 - seen_below, _MIN_MASS)[histories]
    old_backoffs = below.backoffs[histories]
    new_backoffs = (mass_left + level.probs) / (mass_left_below + lower)
    history_frequency = below.counts[histories] / np.delete(model.levels[0].counts, START).sum()
    with np.errstate(divide="ignore"):
        change = level.probs * (np.log(level.probs) - np.log(lower) - np.log(new_backoffs))
        change -= mass_left * (np.log(new_backoffs) - np.log(np.maximum(old_backoffs, _MIN_MASS)))
    loss: Floats = np.expm1(history_frequency * change)
    return loss


def _select_ngrams(model: KneserNeyModel, threshold: float) -> list[NDArray[np.bool_]]:
    """Return which n-grams of each order remain; decided from the highest order down."""
    is_kept: list[NDArray[np.bool_]] = []
    needed: NDArray[np.int64] = np.array([], np.int64)
    for level_index in range(len(model.levels) - 1, 0, -1):
        is_level_kept = compute_pruning_losses(model, level_index) >= threshold
        # The history of a remaining n-gram remains too: keys of the level above are indices into this one.
        is_level_kept[needed] = True
        is_kept.insert(0, is_level_kept)
        needed = model.levels[level_index].keys[is_level_kept] // model.size
    return [np.ones(model.size, bool), *is_kept]


def _recompute_backoffs(model: KneserNeyModel, is_kept: list[NDArray[np.bool_]]) -> list[Floats]:
    """Return the back-off weights of each order with which the probabilities after every history sum to 1 again."""
    # The probabilities in the pruned model of all n-grams of the current level, removed ones included: the next level
    # interpolates with them.
    new_probs = model.levels[0].probs
    weights: list[Floats] = []
    for level_index in range(1, len(model.levels)):
        level, below, is_level_kept = model.levels[level_index], model.levels[level_index - 1], is_kept[level_index]
        histories, lower = level.keys // model.size, new_probs[level.suffixes]
        seen = np.bincount(histories[is_level_kept], weights=level.probs[is_level_kept], minlength=len(below.keys))
        seen_below = np.bincount(histories[is_level_kept], weights=lower[is_level_kept], minlength=len(below.keys))
        left = 1 - seen_below
        is_open = left > _MIN_MASS
        backoffs = np.where(is_open, (1 - seen) / np.where(is_open, left, 1.0), below.backoffs)
        weights.append(np.where(is_kept[level_index - 1], np.maximum(backoffs, 0.0), 1.0))
        new_probs = np.where(is_level_kept, level.probs, weights[-1][histories] * lower)
    return [*weights, np.ones(len(model.levels[-1].keys))]
