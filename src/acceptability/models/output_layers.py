"""From what a network holds in mind to a probability for every word: four ways that cost differently.

- ``Softmax``: all words at once, with weights of its own or, tied, with the word vectors (Press and Wolf 2017).
- ``Classes``: P(word) = P(class) · P(word | class), with frequency classes (Mikolov et al. 2011).
- ``Adaptive``: frequent words and the groups of rarer ones first, then the words of a group, which get fewer
  numbers each (Grave et al. 2017).
- ``TiedAdaptive``: the same with the word vectors as weights (Merity et al. 2018), which Niu and Penn (2020) call TAS.

Each has two functions: the log-probability of one word a row, and of every word.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

_NARROWER = 4
"""How many times fewer numbers each further group of an adaptive softmax has for a word."""


class Output(Protocol):
    """An output layer."""

    def __call__(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one word for each row of hidden states.

        Args:
            table: The word vectors, for a layer that is tied to them.
        """
        ...

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word for each row."""
        ...


def output_layer(name: str, width: int, edges: Sequence[int]) -> nn.Module:
    """Return a new output layer.

    Args:
        width: How many numbers a hidden state has.
        edges: Where the groups of words begin, and the size of the vocabulary last: (0, 100, 5000) are two groups.
    """
    if name in ("softmax", "tied_softmax"):
        return Softmax(width, edges[-1], tied=name == "tied_softmax")
    if name == "classes":
        return Classes(width, edges)
    if name == "adaptive":
        return Adaptive(width, edges)
    return TiedAdaptive(width, edges, twice=name == "tas_double")


class Softmax(nn.Module):
    """All words at once."""

    def __init__(self, width: int, words: int, *, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else _weights(words, width)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one word a row."""
        return _picked(self.everything(hidden, table), targets)

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word."""
        return _logs(linear(hidden, table if self.weight is None else self.weight, self.bias))


class Classes(nn.Module):
    """First the class, then the word among those of the class."""

    def __init__(self, width: int, edges: Sequence[int]) -> None:
        super().__init__()
        self.edges = tuple(edges)
        self.classes = nn.Linear(width, len(edges) - 1)
        self.weight = _weights(edges[-1], width)
        self.bias = nn.Parameter(torch.zeros(edges[-1]))

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one word a row."""
        group, parts = _grouped(targets, self.edges)
        of_class = _picked(_logs(self.classes(hidden)), group)
        within = [
            _picked(self._words(hidden[rows], number), targets[rows] - self.edges[number])
            for number, rows in enumerate(parts)
        ]
        return of_class + _in_place(within, parts)

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word."""
        of_class = _logs(self.classes(hidden))
        parts = [self._words(hidden, number) + of_class[:, [number]] for number in range(len(self.edges) - 1)]
        return torch.cat(parts, 1)

    def _words(self, hidden: Tensor, number: int) -> Tensor:
        start, end = self.edges[number : number + 2]
        return _logs(linear(hidden, self.weight[start:end], self.bias[start:end]))


class _Grouped(nn.Module):
    """First the frequent words and the groups of rarer ones, then the words of a group."""

    edges: tuple[int, ...]

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one word a row."""
        group, parts = _grouped(targets, self.edges)
        words, groups = self._head(hidden, table)
        frequent = self.edges[1]
        # A rarer word begins with the log-probability of its group.
        begin = _picked(words, targets.clamp(max=frequent - 1))
        if len(parts) == 1:
            return begin
        begin = torch.where(group == 0, begin, _picked(groups, (group - 1).clamp(min=0)))
        within = [begin.new_zeros(len(parts[0]))]
        for number, rows in enumerate(parts[1:], start=1):
            within.append(_picked(self._tail(hidden[rows], number, table), targets[rows] - self.edges[number]))
        return begin + _in_place(within, parts)

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word."""
        words, groups = self._head(hidden, table)
        tails = [
            self._tail(hidden, number, table) + groups[:, [number - 1]] for number in range(1, len(self.edges) - 1)
        ]
        return torch.cat([words, *tails], 1)

    def _head(self, hidden: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        """Return the log-probabilities of the frequent words, and those of the groups."""
        raise NotImplementedError

    def _tail(self, hidden: Tensor, number: int, table: Tensor) -> Tensor:
        """Return the log-probabilities of the words of a group, given that it is that group."""
        raise NotImplementedError


class Adaptive(_Grouped):
    """Rarer words have fewer numbers."""

    def __init__(self, width: int, edges: Sequence[int]) -> None:
        super().__init__()
        self.edges = tuple(edges)
        self.head = nn.Linear(width, edges[1] + len(edges) - 2)
        widths = [max(width // _NARROWER**number, 1) for number in range(1, len(edges) - 1)]
        self.narrow = nn.ModuleList(nn.Linear(width, each, bias=False) for each in widths)
        self.tails = nn.ModuleList(
            nn.Linear(each, end - start) for each, (start, end) in zip(widths, pairwise(edges[1:]), strict=True)
        )

    def _head(self, hidden: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        logs = _logs(self.head(hidden))
        return logs[:, : self.edges[1]], logs[:, self.edges[1] :]

    def _tail(self, hidden: Tensor, number: int, table: Tensor) -> Tensor:
        return _logs(self.tails[number - 1](self.narrow[number - 1](hidden)))


class TiedAdaptive(_Grouped):
    """The word vectors are the weights; each group of rarer words has a vector of its own.

    Args:
        twice: Put the frequent words through a second softmax, without the groups. Probabilities then sum to more
            than 1, and what looks like a perplexity is none.
    """

    def __init__(self, width: int, edges: Sequence[int], *, twice: bool) -> None:
        super().__init__()
        self.edges, self.twice = tuple(edges), twice
        self.groups = _weights(len(edges) - 2, width)
        self.bias = nn.Parameter(torch.zeros(edges[-1]))
        self.group_bias = nn.Parameter(torch.zeros(len(edges) - 2))

    def _head(self, hidden: Tensor, table: Tensor) -> tuple[Tensor, Tensor]:
        frequent = self.edges[1]
        weight = torch.cat([table[:frequent], self.groups])
        logs = _logs(linear(hidden, weight, torch.cat([self.bias[:frequent], self.group_bias])))
        words = logs[:, :frequent]
        return _logs(words) if self.twice else words, logs[:, frequent:]

    def _tail(self, hidden: Tensor, number: int, table: Tensor) -> Tensor:
        start, end = self.edges[number : number + 2]
        return _logs(linear(hidden, table[start:end], self.bias[start:end]))


def _weights(rows: int, width: int) -> nn.Parameter:
    bound = 1 / math.sqrt(width)
    return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound))


def _logs(logits: Tensor) -> Tensor:
    return logits.float().log_softmax(-1)


def _picked(logs: Tensor, which: Tensor) -> Tensor:
    return logs.gather(1, which.unsqueeze(1)).squeeze(1)


def _grouped(targets: Tensor, edges: Sequence[int]) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return the group of each word, and the rows of each group."""
    inner = torch.tensor(edges[1:-1], device=targets.device, dtype=targets.dtype)
    group = torch.bucketize(targets, inner, right=True)
    sizes = torch.bincount(group, minlength=len(edges) - 1).tolist()
    return group, torch.split(group.argsort(stable=True), sizes)


def _in_place(parts: Sequence[Tensor], rows: Sequence[Tensor]) -> Tensor:
    """Return the numbers of all groups, each in the row that it belongs to."""
    return torch.cat(list(parts))[torch.cat(list(rows)).argsort()]
