"""Hidden classes between a word and the next, found by expectation and maximisation (Saul and Pereira 1997).

P(next | word) = Σ over classes of P(class | word) · P(next | class). A pass shares out each pair's count among the
classes, as the model believes in them now, and takes these shares for counts. It never makes the corpus less
probable. No pass holds pairs × classes in memory: the shares are summed through sparse matrices, and what has to be
looked up pair by pair goes through ``models.aggregate_markov.mixed`` within its budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from acceptability.models.aggregate_markov import Classes, mixed
from acceptability.models.vocabulary import START
from acceptability.train.counting import Grams
from acceptability.types import Floats

_TINY = 1e-150
"""What is less becomes 0, before its products are too small for a processor to be fast.

No pair is lost by it: after a pass a pair's most likely class has at least 1 / (classes · tokens) in both factors.
"""


@dataclass(frozen=True)
class Pairs:
    """The different pairs of neighbours in a corpus, sorted by the first word.

    Args:
        size: The number of entries in the vocabulary.
        before: The first word of each pair.
        words: The second one.
        counts: How often the pair stands there.
    """

    size: int
    before: NDArray[np.int32]
    words: NDArray[np.int32]
    counts: Floats

    @cached_property
    def total(self) -> float:
        """How many words were foretold, ends of sentences among them."""
        return float(self.counts.sum())

    @cached_property
    def histories(self) -> Floats:
        """How often each word stands before another."""
        return np.bincount(self.before, weights=self.counts, minlength=self.size).astype(np.float64)

    @cached_property
    def rows(self) -> NDArray[np.int32]:
        """Where the pairs of each first word begin, and at last where all end."""
        return np.searchsorted(self.before, np.arange(self.size + 1)).astype(np.int32)

    def probs(self, factors: Factors) -> Floats:
        """Return the probability of each pair's second word after its first."""
        return mixed(factors.histories, factors.followers, self.before, self.words)

    def loss(self, probs: Floats) -> float:
        """Return the mean negative log-probability of a word."""
        return float(-(self.counts * np.log(probs)).sum()) / self.total


@dataclass(frozen=True)
class Factors:
    """The two factors of the model, a row for each word and a column for each class.

    Args:
        histories: P(class | word): each row sums to 1.
        followers: P(word | class): each column sums to 1.
    """

    histories: Floats
    followers: Floats


def pairs_of(grams: Grams, size: int) -> Pairs:
    """Return the pairs that were counted as bigrams.

    >>> found = pairs_of(Grams(np.array([4, 5, 11]), np.array([2, 1, 1])), size=4)
    >>> found.before.tolist(), found.words.tolist()
    ([1, 1, 2], [0, 1, 3])
    """
    before, words = np.divmod(grams.keys, size)
    return Pairs(size, before.astype(np.int32), words.astype(np.int32), grams.counts.astype(np.float64))


def begun(size: int, classes: int, seed: int) -> Factors:
    """Return factors drawn at random, every distribution as likely as any other; nothing foretells ``<s>``."""
    draws = np.random.default_rng(seed)
    histories = draws.exponential(size=(size, classes))
    followers = draws.exponential(size=(size, classes))
    followers[START] = 0.0
    return Factors(histories / histories.sum(axis=1, keepdims=True), followers / followers.sum(axis=0))


def improved(pairs: Pairs, factors: Factors, probs: Floats) -> Factors:
    """Return the factors after one more pass.

    Args:
        probs: What ``pairs.probs(factors)`` gave.
    """
    shape = (pairs.size, pairs.size)
    weights = sparse.csr_array((pairs.counts / probs, pairs.words, pairs.rows), shape=shape)
    histories = factors.histories * (weights @ factors.followers)
    followers = factors.followers * (weights.T @ factors.histories)
    # A word that nothing follows, and a class that has become empty, stay as they were.
    return Factors(
        _shares(histories, histories.sum(axis=1, keepdims=True), factors.histories),
        _shares(followers, followers.sum(axis=0, keepdims=True), factors.followers),
    )


def smoothed(pairs: Pairs, factors: Factors, *, before: float, after: float) -> Classes:
    """Return the model that gives every word a probability after every other.

    Each word is taken to have been seen ``before`` more times before others, and ``after`` more times after
    others, both times in the classes in the proportion that they have in the whole corpus. The first draws
    P(word | word before) towards the word's share of the corpus, the more so the rarer the word before;
    the second towards the same for all words. ``<s>`` alone is never foretold.
    """
    often = pairs.histories[:, None]
    proportion = pairs.histories @ factors.histories / pairs.total
    histories = (often * factors.histories + before * proportion) / (often + before)
    more = np.full((pairs.size, 1), after / pairs.total)
    more[START] = 0.0
    followers = (factors.followers + more) / (1 + more.sum())
    return Classes(np.vstack([histories, proportion]), followers)


def _shares(counts: Floats, sums: Floats, otherwise: Floats) -> Floats:
    shares = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), otherwise)
    shares[shares < _TINY] = 0.0
    return shares
