"""Sentences as a network takes them, batch by batch, ready on the device: numbers of words, states, or vectors."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from acceptability.models.recurrent_networks import Network
from acceptability.models.sentence_networks import SentenceNetwork, lm_states, mixed_layers

_AT_ONCE = 256
_ROOM = {"cpu": 2 << 30, "cuda": 8 << 30}
"""How many bytes of states are kept; more are computed anew for each batch."""


@dataclass(frozen=True, eq=False)
class Texts:
    """Sentences as the numbers of their words, one after the other, and how many words each has."""

    numbers: NDArray[np.int32]
    lengths: NDArray[np.int64]

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """Where each sentence begins."""
        return np.cumsum(self.lengths) - self.lengths

    def rows(self, places: Sequence[int]) -> list[list[int]]:
        """Return the sentences at some places."""
        edges = ((self.begins[place], self.begins[place] + self.lengths[place]) for place in places)
        return [self.numbers[begin:end].tolist() for begin, end in edges]


def texts_of(rows: Iterable[Sequence[int]]) -> Texts:
    """Return sentences, each given as a row of numbers.

    >>> texts_of([[5, 6], [7]]).rows([1, 0])
    [[7], [5, 6]]
    """
    numbers, lengths = array("i"), array("q")
    for row in rows:
        numbers.extend(row)
        lengths.append(len(row))
    return Texts(np.array(numbers, np.int32), np.array(lengths, np.int64))


class Source(Protocol):
    """Sentences that can be had in any order."""

    lengths: NDArray[np.int64]

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return what a network is called with, for the sentences at some places."""
        ...


class _Places:
    """Where the words of sentences stand, on a device."""

    def __init__(self, texts: Texts, device: torch.device | str) -> None:
        self.lengths = texts.lengths
        self.begins, self.sizes = (torch.from_numpy(each).to(device) for each in (texts.begins, texts.lengths))

    def of(self, places: Sequence[int]) -> tuple[Tensor, Tensor]:
        """Return where the words stand, (time, rows), and how many words each sentence has.

        What fills a sentence up is its last word again: networks leave it out.
        """
        chosen = torch.tensor(places, device=self.sizes.device)
        sizes = self.sizes[chosen]
        times = torch.arange(int(self.lengths[places].max()), device=chosen.device).unsqueeze(1)
        return self.begins[chosen] + times.minimum(sizes - 1), sizes


class Numbers:
    """Sentences as the numbers of their words."""

    def __init__(self, texts: Texts, device: torch.device | str) -> None:
        self.lengths, self.places = texts.lengths, _Places(texts, device)
        self.numbers = torch.from_numpy(texts.numbers).to(device)

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return numbers of words, (time, rows), and how many words each sentence has."""
        where, sizes = self.places.of(places)
        return self.numbers[where].long(), sizes


class States:
    """Sentences as the states that a language model is in at their words, computed once if there is room for them."""

    def __init__(self, texts: Texts, lm: Network, room: int | None = None) -> None:
        device = lm.table.device
        self.texts, self.lm, self.lengths, self.places = texts, lm, texts.lengths, _Places(texts, device)
        room = _ROOM.get(device.type, 2 << 30) if room is None else room
        self._sizes = (lm.shape.directions, *mixed_layers(lm.shape.widths))
        self.kept = self._all() if 4 * math.prod(self._sizes) * len(texts.numbers) <= room else None

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return states, (time, rows, directions, layers, numbers), and how many words each sentence has."""
        where, sizes = self.places.of(places)
        return lm_states(self.lm, self.texts.rows(places)) if self.kept is None else self.kept[where], sizes

    def _all(self) -> Tensor:
        """Return the states at all words, sentence after sentence."""
        order = np.argsort(self.lengths, kind="stable").tolist()
        kept = torch.empty(len(self.texts.numbers), *self._sizes, device=self.lm.table.device)
        for start in range(0, len(order), _AT_ONCE):
            places = order[start : start + _AT_ONCE]
            states = lm_states(self.lm, self.texts.rows(places))
            for column, place in enumerate(places):
                begin, length = self.texts.begins[place], self.lengths[place]
                kept[begin : begin + length] = states[:length, column]
        return kept


class Vectors:
    """Sentences as vectors that a frozen encoder made of them, once."""

    def __init__(self, network: SentenceNetwork, source: Source) -> None:
        self.lengths = source.lengths
        network.eval()
        with torch.no_grad():
            starts = range(0, len(self.lengths), _AT_ONCE)
            places = [list(range(start, min(start + _AT_ONCE, len(self.lengths)))) for start in starts]
            self.kept = torch.cat([network.sentences(*source.batch(some)) for some in places])

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return the vectors of sentences."""
        return (self.kept[torch.tensor(places, device=self.kept.device)],)


def source_of(texts: Texts, lm: Network | None, device: torch.device | str) -> Source:
    """Return sentences as a network reads them: as states of a language model, or as numbers of words."""
    return Numbers(texts, device) if lm is None else States(texts, lm)
