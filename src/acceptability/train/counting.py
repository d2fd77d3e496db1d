"""How often each sequence of words stands in a corpus: sorted numbers, made in chunks that fit in memory.

An n-gram is written as one number: where its first n-1 words stand among the (n-1)-grams, times
the size of the vocabulary, plus its last word. Sorted, these numbers are a trie: what follows
the same words stands together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.models.vocabulary import END, START

CHUNK = 1 << 24
"""How many n-grams are sorted at once."""

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Grams:
    """The different n-grams of one order.

    Args:
        keys: Each n-gram's number, ascending.
        counts: How often it stands in the corpus.
    """

    keys: Ints
    counts: Ints

    def __len__(self) -> int:
        return len(self.keys)


def first_order(ids: NDArray[np.int32], size: int) -> Grams:
    """Return the single words; ``<s>`` stands in the list, counted as often as sentences begin."""
    counts = np.bincount(ids, minlength=size)
    counts[START] = counts[END]
    return Grams(np.arange(size), counts)


def before_words(ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the word before every place; before the first word of a sentence stands ``<s>``."""
    before = np.full(len(ids), START, np.int32)
    before[1:] = np.where(ids[:-1] == END, np.int32(START), ids[:-1])
    return before


def next_order(
    ids: NDArray[np.int32], before: NDArray[np.int32], size: int, *, chunk: int = CHUNK, told: Callable[[int], None]
) -> Grams:
    """Return the n-grams of a corpus.

    Args:
        before: For every place, where the n-1 words before it stand among the (n-1)-grams; -1 if there are fewer.
    """
    runs: list[Grams] = []
    for start in range(0, len(ids), chunk):
        keys = _keys(ids, before, size, start, start + chunk)
        runs.append(_counted(keys[keys >= 0]))
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            runs.append(merged(runs.pop(), runs.pop()))
        told(min(start + chunk, len(ids)))
    while len(runs) > 1:
        runs.append(merged(runs.pop(), runs.pop()))
    return runs[0]


def before_next(
    ids: NDArray[np.int32], before: NDArray[np.int32], size: int, grams: Grams, *, chunk: int = CHUNK
) -> NDArray[np.int32]:
    """Return, for every place, where the n words before it stand among the n-grams; -1 if there are fewer."""
    found = np.full(len(ids) + 1, -1, np.int32)
    for start in range(0, len(ids), chunk):
        keys = _keys(ids, before, size, start, start + chunk)
        goes_on = (keys >= 0) & (ids[start : start + chunk] != END)
        found[start + 1 : start + 1 + len(keys)][goes_on] = np.searchsorted(grams.keys, keys[goes_on])
    return found[:-1]


def _keys(ids: NDArray[np.int32], before: NDArray[np.int32], size: int, start: int, end: int) -> Ints:
    """Return the number of the n-gram that ends at each place of a chunk; -1 where the sentence is too short."""
    history = before[start:end].astype(np.int64)
    return np.where(history < 0, -1, history * size + ids[start:end])


def _counted(keys: Ints) -> Grams:
    unique, counts = np.unique(keys, return_counts=True)
    return Grams(unique, counts)


def merged(one: Grams, other: Grams) -> Grams:
    """Return two lists as one, in which what stands in both is counted together.

    >>> both = merged(Grams(np.array([1, 4]), np.array([1, 1])), Grams(np.array([4, 5]), np.array([2, 1])))
    >>> both.keys.tolist(), both.counts.tolist()
    ([1, 4, 5], [1, 3, 1])
    """
    keys = np.concatenate([one.keys, other.keys])
    # Two runs that are sorted already: a stable sort only merges them.
    order = np.argsort(keys, kind="stable")
    keys, counts = keys[order], np.concatenate([one.counts, other.counts])[order]
    if not len(keys):
        return Grams(keys, counts)
    starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
    return Grams(keys[starts], np.add.reduceat(counts, starts))
