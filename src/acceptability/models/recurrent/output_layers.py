"""Output layers of recurrent language models: from hidden states to log-probabilities of words, at different costs.

- ``Softmax``: over the whole vocabulary, with its own weights or tied to the word embeddings (Press and Wolf 2017).
- ``ClassSoftmax``: P(word) = P(class) · P(word | class), with frequency classes (Mikolov et al. 2011).
- ``AdaptiveSoftmax``: a softmax over the frequent words and the groups of rarer ones, then one over the words of a
  group, in fewer dimensions (Grave et al. 2017).
- ``TiedAdaptiveSoftmax``: the same with the word embeddings as weights (Merity et al. 2018); the TAS of Niu and Penn
(2020).

Each has two methods: the log-probability of one word per row, for training and scoring, and of every word, for
sampling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

HeadFunction = Callable[[Tensor], tuple[Tensor, Tensor]]
TailFunction = Callable[[int, Tensor], Tensor]
_NARROWING_FACTOR = 4
"""The dimension of each further group of an adaptive softmax is smaller by this factor."""


def build_output_layer(name: str, width: int, edges: Sequence[int]) -> nn.Module:
    """Return a new output layer.

    Args:
        name: One of ``recurrent.OUTPUTS``.
        width: The dimension of a hidden state.
        edges: The first word of each group, and the size of the vocabulary last: (0, 100, 5000) are two groups.
    """
    if name in ("softmax", "tied_softmax"):
        return Softmax(width, edges[-1], tied=name == "tied_softmax")
    if name == "classes":
        return ClassSoftmax(width, edges)
    if name == "adaptive":
        return AdaptiveSoftmax(width, edges)
    return TiedAdaptiveSoftmax(width, edges, double_softmax=name == "tas_double")


class Softmax(nn.Module):
    """A softmax over the whole vocabulary.

    Args:
        tied: Whether the word embeddings are the weights.
    """

    def __init__(self, width: int, words: int, *, tied: bool) -> None:
        super().__init__()
        self.weight = None if tied else _init_weights(words, width)
        self.bias = nn.Parameter(torch.zeros(words))

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one target word per row.

        Args:
            hidden: Hidden states, (rows, width).
            targets: The word ids, (rows).
            table: The word embeddings, for a layer that is tied to them.
        """
        return _gather_targets(self.all_logprobs(hidden, table), targets)

    def all_logprobs(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word, (rows, words)."""
        return _log_softmax(linear(hidden, table if self.weight is None else self.weight, self.bias))


class ClassSoftmax(nn.Module):
    """A softmax over classes of words, then one over the words of a class."""

    def __init__(self, width: int, edges: Sequence[int]) -> None:
        super().__init__()
        self.edges = tuple(edges)
        self.classes = nn.Linear(width, len(edges) - 1)
        self.weight = _init_weights(edges[-1], width)
        self.bias = nn.Parameter(torch.zeros(edges[-1]))

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one target word per row."""
        grouped = _GroupedTargets(targets, self.edges)
        hidden = hidden[grouped.order]
        of_class = _gather_targets(_log_softmax(self.classes(hidden)), grouped.groups)
        classes = zip(
            torch.split(hidden, grouped.sizes),
            torch.split(grouped.index_in_group, grouped.sizes),
            self._split_class_weights(),
            strict=True,
        )
        # Only the classes that occur: in a small batch, most classes have no target.
        of_word = [
            _gather_targets(_log_softmax(linear(rows, *weights)), words)
            for rows, words, weights in classes
            if len(words)
        ]
        return (of_class + torch.cat(of_word))[grouped.inverse_order]

    def all_logprobs(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word, (rows, words)."""
        of_class = torch.split(_log_softmax(self.classes(hidden)), 1, 1)
        of_word = [_log_softmax(linear(hidden, *weights)) for weights in self._split_class_weights()]
        return torch.cat([class_part + word_part for class_part, word_part in zip(of_class, of_word, strict=True)], 1)

    def _split_class_weights(self) -> list[tuple[Tensor, Tensor]]:
        """Return the weights and biases of each class."""
        return _split_by_group(self.weight, self.bias, self.edges)


class GroupedSoftmax(nn.Module, ABC):
    """A head, the softmax over frequent words and groups of rarer ones, and tails, each over the words of a group."""

    edges: tuple[int, ...]

    def forward(self, hidden: Tensor, targets: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of one target word per row."""
        grouped = _GroupedTargets(targets, self.edges)
        frequent, *tails = torch.split(hidden[grouped.order], grouped.sizes)
        head, tail = self.build_head_and_tail(table)
        words, groups = head(torch.cat([frequent, *tails]))
        count = len(frequent)
        logprobs = [_gather_targets(words[:count], grouped.index_in_group[:count])]
        # A rarer word has the log-probability of its group plus its own within the group. Tails are evaluated only for
        # the rows whose target is in their group, which is where an adaptive softmax saves its time.
        of_group = (
            torch.split(_gather_targets(groups[count:], grouped.groups[count:] - 1), grouped.sizes[1:]) if tails else ()
        )
        within = torch.split(grouped.index_in_group, grouped.sizes)[1:]
        for number, (group_logprobs, rows, word_indices) in enumerate(zip(of_group, tails, within, strict=True)):
            logprobs.append(group_logprobs + _gather_targets(tail(number, rows), word_indices))
        return torch.cat(logprobs)[grouped.inverse_order]

    def all_logprobs(self, hidden: Tensor, table: Tensor) -> Tensor:
        """Return the log-probability of every word, (rows, words)."""
        head, tail = self.build_head_and_tail(table)
        words, groups = head(hidden)
        tails = [tail(number, hidden) + groups[:, [number]] for number in range(len(self.edges) - 2)]
        return torch.cat([words, *tails], 1)

    @abstractmethod
    def build_head_and_tail(self, table: Tensor) -> tuple[HeadFunction, TailFunction]:
        """Return the functions of the head and of the tails.

        The head takes hidden states and returns the log-probabilities of the frequent words and of the groups. The tail
        takes the number of a group and hidden states, and returns the log-probabilities of the group's words.
        """


class AdaptiveSoftmax(GroupedSoftmax):
    """An adaptive softmax: hidden states are projected to fewer dimensions for rarer groups."""

    def __init__(self, width: int, edges: Sequence[int]) -> None:
        super().__init__()
        self.edges = tuple(edges)
        self.head = nn.Linear(width, edges[1] + len(edges) - 2)
        tail_widths = [max(width // _NARROWING_FACTOR**number, 1) for number in range(1, len(edges) - 1)]
        self.narrow = nn.ModuleList(nn.Linear(width, tail_width, bias=False) for tail_width in tail_widths)
        self.tails = nn.ModuleList(
            nn.Linear(tail_width, end - start)
            for tail_width, (start, end) in zip(tail_widths, pairwise(edges[1:]), strict=True)
        )

    def build_head_and_tail(self, table: Tensor) -> tuple[HeadFunction, TailFunction]:
        def head(hidden: Tensor) -> tuple[Tensor, Tensor]:
            logprobs = _log_softmax(self.head(hidden))
            return logprobs[:, : self.edges[1]], logprobs[:, self.edges[1] :]

        return head, lambda number, hidden: _log_softmax(self.tails[number](self.narrow[number](hidden)))


class TiedAdaptiveSoftmax(GroupedSoftmax):
    """A grouped softmax with the word embeddings as weights; each group of rarer words has a vector of its own.

    Args:
        double_softmax: Renormalise the frequent words by a second softmax, without the groups. The probabilities then
            sum to more than 1, and what looks like a perplexity is none.
    """

    def __init__(self, width: int, edges: Sequence[int], *, double_softmax: bool) -> None:
        super().__init__()
        self.edges, self.double_softmax = tuple(edges), double_softmax
        self.groups = _init_weights(len(edges) - 2, width)
        self.bias = nn.Parameter(torch.zeros(edges[-1]))
        self.group_bias = nn.Parameter(torch.zeros(len(edges) - 2))

    def build_head_and_tail(self, table: Tensor) -> tuple[HeadFunction, TailFunction]:
        (weight, bias), *tails = _split_by_group(table, self.bias, self.edges)

        def head(hidden: Tensor) -> tuple[Tensor, Tensor]:
            logits = linear(hidden, torch.cat([weight, self.groups]), torch.cat([bias, self.group_bias]))
            logprobs = _log_softmax(logits)
            words = logprobs[:, : self.edges[1]]
            return _log_softmax(words) if self.double_softmax else words, logprobs[:, self.edges[1] :]

        return head, lambda number, hidden: _log_softmax(linear(hidden, *tails[number]))


class _GroupedTargets:
    """Target words sorted by group, so that rows and weights are split once and their gradients joined once.

    Attributes:
        order: The rows, group by group.
        inverse_order: The permutation that undoes ``order``.
        groups: The group of each word, in the new order.
        index_in_group: The index of each word in its group, in the new order.
        sizes: The number of words in each group.
    """

    def __init__(self, words: Tensor, edges: Sequence[int]) -> None:
        starts = torch.tensor(edges[:-1], device=words.device, dtype=words.dtype)
        group = torch.bucketize(words, starts[1:], right=True)
        # Groups without any target need a size too, or the weights would be paired with the wrong rows.
        self.sizes: list[int] = torch.bincount(group, minlength=len(starts)).tolist()
        self.order = group.argsort(stable=True)
        self.inverse_order = self.order.argsort()
        self.groups = group[self.order]
        self.index_in_group = words[self.order] - starts[self.groups]


def _split_by_group(weight: Tensor, bias: Tensor, edges: Sequence[int]) -> list[tuple[Tensor, Tensor]]:
    """Return the weights and biases of each group of words."""
    sizes = [end - start for start, end in pairwise(edges)]
    return list(zip(torch.split(weight, sizes), torch.split(bias, sizes), strict=True))


def _init_weights(rows: int, width: int) -> nn.Parameter:
    # The bound that nn.Linear uses for its own weights.
    bound = 1 / math.sqrt(width)
    return nn.Parameter(torch.empty(rows, width).uniform_(-bound, bound))


def _log_softmax(logits: Tensor) -> Tensor:
    # In float32 even under autocast: in half precision, log-probabilities of rare words would be rounded away.
    return logits.float().log_softmax(-1)


def _gather_targets(logprobs: Tensor, targets: Tensor) -> Tensor:
    return logprobs.gather(1, targets.unsqueeze(1)).squeeze(1)
