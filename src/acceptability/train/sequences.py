"""Which words a recurrent network reads together: whole sentences of like length, or streams of running text.

The text is one row of numbers. At each place the network is asked for the word that stands there, after the word
before it; the word before the first of a sentence is ``<s>``. Everything is read once in an epoch, and nothing
but seed and step decides what comes when.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from acceptability.models.recurrent_networks import NOTHING
from acceptability.models.vocabulary import END, START

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Reading:
    """A piece of text for a step.

    Args:
        inputs: The words that are read, (time, rows).
        targets: The words that are to be foretold after them; NOTHING behind the end of a row.
        lengths: How many words each row has.
        is_new: Whether the rows begin anew, without what was read before.
    """

    inputs: Tensor
    targets: Tensor
    lengths: Tensor
    is_new: bool = True


@dataclass(frozen=True)
class Text:
    """A corpus in numbers, on the device where it is read."""

    targets: Tensor
    inputs: Tensor

    def rows(self, starts: Ints, lengths: Ints) -> Reading:
        """Return pieces of the text side by side."""
        device = self.targets.device
        begin, size = (torch.from_numpy(each).to(device) for each in (starts, lengths))
        times = torch.arange(int(lengths.max(initial=1)), device=device).unsqueeze(1)
        places = (begin + times).clamp(max=len(self.targets) - 1)
        inside = times < size
        inputs = torch.where(inside, self.inputs[places].long(), END)
        return Reading(inputs, torch.where(inside, self.targets[places].long(), NOTHING), size)


def text_of(ids: NDArray[np.int32], device: torch.device) -> Text:
    """Return a corpus, whose sentences end with ``</s>``, ready to be read."""
    targets = torch.from_numpy(ids).to(device)
    before = torch.roll(targets, 1)
    return Text(targets, torch.where(before == END, torch.full_like(before, START), before))


class Sentences:
    """Sentences of like length side by side, in another order in each epoch.

    Args:
        words: How many words a step reads at most, unless one row alone has more.
        longest: A longer sentence is read in pieces, of which the second knows only the last word of the first.
    """

    def __init__(self, ids: NDArray[np.int32], *, words: int, longest: int, seed: int) -> None:
        self.starts, self.lengths = _pieces(ids, longest)
        self.seed = seed
        ordered = np.sort(self.lengths, kind="stable")
        self.edges = _cut(ordered, words)
        self._order = lru_cache(maxsize=1)(self._ordered)

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""
        return len(self.edges) - 1

    def chosen(self, step: int, rank: int = 0, processes: int = 1) -> tuple[Ints, Ints]:
        """Return where the rows of a step begin and how long they are; each process gets as many as the others.

        Where rows cannot be divided evenly, some are read twice.
        """
        order, batches = self._order(step // self.steps)
        batch = batches[step % self.steps]
        rows = order[self.edges[batch] : self.edges[batch + 1]]
        rows = np.resize(rows, -(-len(rows) // processes) * processes)[rank::processes]
        return self.starts[rows], self.lengths[rows]

    def _ordered(self, epoch: int) -> tuple[Ints, Ints]:
        """Return the pieces from the shortest to the longest, equals in any order, and the order of the batches."""
        random = np.random.default_rng([self.seed, epoch])
        order = np.lexsort((random.random(len(self.lengths)), self.lengths))
        return order, random.permutation(self.steps)


class Streams:
    """Running text in streams side by side, of which each step reads the next words and remembers the ones before.

    Args:
        words: How many words a step reads.
        length: How many of them of each stream: as far as errors run back.
    """

    def __init__(self, ids: NDArray[np.int32], *, words: int, length: int, processes: int = 1) -> None:
        count = max(words // length // processes, 1) * processes
        self.size = -(-len(ids) // count)
        self.count, self.length, self.total = count, length, len(ids)

    @property
    def steps(self) -> int:
        """How many steps an epoch has."""
        return -(-self.size // self.length)

    def chosen(self, step: int, rank: int = 0, processes: int = 1) -> tuple[Ints, Ints]:
        """Return where the rows of a step begin and how long they are."""
        offset = step % self.steps * self.length
        starts = np.arange(self.count)[rank::processes] * self.size
        ends = np.minimum(starts + np.minimum(offset + self.length, self.size), self.total)
        return starts + offset, np.maximum(ends - starts - offset, 0)


def _pieces(ids: NDArray[np.int32], longest: int) -> tuple[Ints, Ints]:
    """Return where each sentence, or each piece of a long one, begins, and how many words it has with its end."""
    ends = np.flatnonzero(ids == END) + 1
    starts = np.append(0, ends[:-1])
    counts = -(-(ends - starts) // longest)
    sentence = np.repeat(np.arange(len(ends)), counts)
    number = np.arange(len(sentence)) - np.repeat(np.cumsum(counts) - counts, counts)
    begin = starts[sentence] + number * longest
    return begin, np.minimum(ends[sentence] - begin, longest)


def _cut(lengths: Ints, words: int) -> list[int]:
    """Return where batches begin among ascending lengths, so that rows times the longest of them stay within words."""
    edges = [0]
    while edges[-1] < len(lengths):
        # The longest row decides: first as many as if all were like the shortest, then as many as fit.
        first = edges[-1]
        last = min(first + max(words // int(lengths[first]), 1), len(lengths))
        fits = np.arange(1, last - first + 1) * lengths[first:last] <= words
        edges.append(first + max(int(fits.sum()), 1))
    return edges
