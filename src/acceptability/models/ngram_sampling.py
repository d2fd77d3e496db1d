"""Sentences drawn from an n-gram model that was trained here, many at once, with NumPy alone.

What a model with back-off says of a word after a history is p, if the n-gram stands in the table; else the back-off
weights of the histories that had to be given up, times what the shorter history says. So every order has a mass: what
its n-grams have together, times the weights on the way to it. A draw chooses the order by these masses, then a word
among those of the order. A word for which a longer n-gram stands in the table was wrongly reached, and is drawn anew;
so are words that are not wanted. What remains is exactly in proportion to what the model says, also where rounded
numbers do not sum to 1; and a temperature only divides all logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError
from acceptability.models.arrays import Table
from acceptability.models.vocabulary import END, START
from acceptability.types import Floats

Ints = NDArray[np.int64]
_NOWHERE = -1
_MOST_DRAWS = 10_000


@dataclass(frozen=True)
class Level:
    """The n-grams of one order, ready to be drawn from.

    Args:
        sums: The probabilities of all n-grams before each, and of all.
        first: Where the n-grams of each history begin, and one number more.
        weights: The back-off weight of each history.
    """

    keys: Ints
    sums: Floats
    first: Ints
    weights: Floats


class Sampler:
    """Draws sentences from a table.

    Args:
        banned: Words that are never drawn.
    """

    def __init__(self, table: Table, temperature: float, banned: frozenset[int]) -> None:
        self.size, self.banned = table.size, np.array(sorted(banned))
        self.levels: list[Level] = []
        before, weights = 1, np.ones(1)
        for order in table.orders:
            sums = np.append(0.0, np.cumsum(np.exp(order.logprobs.astype(np.float64) / temperature)))
            counts = np.bincount(order.keys // self.size, minlength=before)
            self.levels.append(Level(order.keys, sums, np.append(0, np.cumsum(counts)), weights))
            before, weights = len(order.keys), np.exp(order.backoffs.astype(np.float64) / temperature)

    def sentences(self, count: int, longest: int, begins: bool, random: np.random.Generator) -> list[list[int] | None]:
        """Return sentences as numbers of words; None for one that has not ended after so many words.

        Args:
            begins: Whether the first word stands after ``<s>``, or after nothing.
        """
        drawn = np.full((longest + 1, count), END)
        going = np.arange(count)
        # Where the n-gram before the next word stands, order by order; the empty one stands at 0.
        histories = np.full((len(self.levels), count), _NOWHERE)
        histories[0] = 0
        if begins and len(self.levels) > 1:
            histories[1] = START
        for step in range(longest + 1):
            drawn[step, going], histories = self._next(histories, random)
            open_ = drawn[step, going] != END
            going, histories = going[open_], histories[:, open_]
            if not len(going):
                break
        unfinished = set(going.tolist())
        return [None if row in unfinished else _until_end(drawn[:, row]) for row in range(count)]

    def _next(self, histories: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return a word after each history, and the histories with it."""
        words, after = np.empty(histories.shape[1], np.int64), np.empty_like(histories)
        pending = np.arange(histories.shape[1])
        for _ in range(_MOST_DRAWS):
            if not len(pending):
                return words, after
            some, level = self._drawn(histories[:, pending], random)
            found, highest = self._histories(histories[:, pending], some)
            is_right = (highest == level) & ~np.isin(some, self.banned)
            words[pending[is_right]], after[:, pending[is_right]] = some[is_right], found[:, is_right]
            pending = pending[~is_right]
        raise ModelError("the n-gram model gives almost all probability to words that may not be drawn")

    def _drawn(self, histories: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return a word for each history, and the number of the order that it was drawn from."""
        masses = np.zeros(histories.shape)
        weight = np.ones(histories.shape[1])
        for number in reversed(range(len(self.levels))):
            level, known = self.levels[number], histories[number] >= 0
            at = histories[number, known]
            masses[number, known] = weight[known] * (level.sums[level.first[at + 1]] - level.sums[level.first[at]])
            weight[known] *= level.weights[at]
        sums = np.cumsum(masses, 0)
        chosen = (random.random(len(weight)) * sums[-1] >= sums).sum(0)
        words = np.empty(len(weight), np.int64)
        for number, level in enumerate(self.levels):
            rows = np.flatnonzero(chosen == number)
            start, end = (level.first[histories[number, rows] + more] for more in (0, 1))
            place = level.sums[start] + random.random(len(rows)) * (level.sums[end] - level.sums[start])
            places = np.clip(np.searchsorted(level.sums, place, side="right") - 1, start, end - 1)
            words[rows] = level.keys[places] % self.size
        return words, chosen

    def _histories(self, before: Ints, words: Ints) -> tuple[Ints, Ints]:
        """Return the histories that end in new words, and the highest order that has such an n-gram."""
        after, highest = np.full_like(before, _NOWHERE), np.zeros(len(words), np.int64)
        after[0] = 0
        for number, level in enumerate(self.levels):
            known = np.flatnonzero(before[number] >= 0)
            asked = before[number, known] * self.size + words[known]
            places = np.minimum(np.searchsorted(level.keys, asked), max(len(level.keys) - 1, 0))
            is_there = level.keys[places] == asked if len(level.keys) else np.zeros(len(asked), bool)
            highest[known[is_there]] = number
            if number + 1 < len(self.levels):
                after[number + 1, known[is_there]] = places[is_there]
        return after, highest


def _until_end(column: Ints) -> list[int]:
    found: list[int] = column[: int(np.argmax(column == END))].tolist()
    return found
