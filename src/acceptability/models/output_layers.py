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
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

Head = Callable[[Tensor], tuple[Tensor, Tensor]]
Tail = Callable[[int, Tensor], Tensor]
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
        sort = _Sorted(targets, self.edges)
        hidden = hidden[sort.order]
        of_class = _picked(_logs(self.classes(hidden)), sort.group)
        each = zip(torch.split(hidden, sort.sizes), torch.split(sort.within, sort.sizes), self._words(), strict=True)
        of_word = [_picked(_logs(linear(rows, *weights)), words) for rows, words, weights in each if len(words)]
        return (of_class + torch.cat(of_word))[sort.back]

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word."""
        of_class = torch.split(_logs(self.classes(hidden)), 1, 1)
        of_word = [_logs(linear(hidden, *weights)) for weights in self._words()]
        return torch.cat([one + two for one, two in zip(of_class, of_word, strict=True)], 1)

    def _words(self) -> list[tuple[Tensor, Tensor]]:
        """Return weights and biases class by class."""
        return _divided(self.weight, self.bias, self.edges)


class _Grouped(nn.Module, ABC):
    """First the frequent words and the groups of rarer ones, then the words of a group."""

    edges: tuple[int, ...]

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one word a row."""
        sort = _Sorted(targets, self.edges)
        frequent, *tails = torch.split(hidden[sort.order], sort.sizes)
        head, tail = self._layers(table)
        words, groups = head(torch.cat([frequent, *tails]))
        count = len(frequent)
        found = [_picked(words[:count], sort.within[:count])]
        # A rarer word has the log-probability of its group, and its own within the group.
        of_group = torch.split(_picked(groups[count:], sort.group[count:] - 1), sort.sizes[1:]) if tails else ()
        within = torch.split(sort.within, sort.sizes)[1:]
        for number, (one, rows, numbers) in enumerate(zip(of_group, tails, within, strict=True)):
            found.append(one + _picked(tail(number, rows), numbers))
        return torch.cat(found)[sort.back]

    def everything(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word."""
        head, tail = self._layers(table)
        words, groups = head(hidden)
        tails = [tail(number, hidden) + groups[:, [number]] for number in range(len(self.edges) - 2)]
        return torch.cat([words, *tails], 1)

    @abstractmethod
    def _layers(self, table: Tensor) -> tuple[Head, Tail]:
        """Return what gives the log-probabilities of frequent words and groups, and those of the words of a group."""


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

    def _layers(self, table: Tensor) -> tuple[Head, Tail]:
        def head(hidden: Tensor) -> tuple[Tensor, Tensor]:
            logs = _logs(self.head(hidden))
            return logs[:, : self.edges[1]], logs[:, self.edges[1] :]

        return head, lambda number, hidden: _logs(self.tails[number](self.narrow[number](hidden)))


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

    def _layers(self, table: Tensor) -> tuple[Head, Tail]:
        (weight, bias), *tails = _divided(table, self.bias, self.edges)

        def head(hidden: Tensor) -> tuple[Tensor, Tensor]:
            logs = _logs(linear(hidden, torch.cat([weight, self.groups]), torch.cat([bias, self.group_bias])))
            words = logs[:, : self.edges[1]]
            return _logs(words) if self.twice else words, logs[:, self.edges[1] :]

        return head, lambda number, hidden: _logs(linear(hidden, *tails[number]))


class _Sorted:
    """Words in the order of their groups, so that rows and weights are cut apart once, and their gradients joined once.

    ``order`` are the rows group by group, ``back`` undoes it; ``group`` and ``within`` are the group of each word
    in that order and its number in it, and ``sizes`` tells how many words each group has.
    """

    def __init__(self, words: Tensor, edges: Sequence[int]) -> None:
        starts = torch.tensor(edges[:-1], device=words.device, dtype=words.dtype)
        group = torch.bucketize(words, starts[1:], right=True)
        self.sizes: list[int] = torch.bincount(group, minlength=len(starts)).tolist()
        self.order = group.argsort(stable=True)
        self.back = self.order.argsort()
        self.group = group[self.order]
        self.within = words[self.order] - starts[self.group]


def _divided(weight: Tensor, bias: Tensor, edges: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return the weights and biases of each group of words."""
    sizes = [end - start for start, end in pairwise(edges)]
    return list(zip(torch.split(weight, sizes), torch.split(bias, sizes), strict=True))


def _weights(rows: int, width: int) -> nn.Parameter:
    bound = 1 / math.sqrt(width)
    return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound))


def _logs(logits: Tensor) -> Tensor:
    return logits.float().log_softmax(-1)


def _picked(logs: Tensor, which: Tensor) -> Tensor:
    return logs.gather(1, which.unsqueeze(1)).squeeze(1)
