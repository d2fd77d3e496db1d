"""Sentences as a network takes them, batch by batch, ready on the device: numbers of words, states, or vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from acceptability.models.recurrent_networks import Network
from acceptability.models.sentence_networks import SentenceNetwork, lm_states, stacked

Rows = Sequence[Sequence[int]]
_AT_ONCE = 256
_ROOM = {"cpu": 4 << 30, "cuda": 32 << 30}
"""How many bytes of states are kept; more are computed anew for each batch."""


class Source(Protocol):
    """Sentences that can be had in any order."""

    lengths: NDArray[np.int64]

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return what a network is called with, for the sentences at some places."""
        ...


class Numbers:
    """Sentences as the numbers of their words."""

    def __init__(self, rows: Rows, device: torch.device | str) -> None:
        self.lengths = _lengths(rows)
        self.table = stacked(rows).to(device)
        self.sizes = torch.from_numpy(self.lengths).to(device)

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return numbers of words, (time, rows), and how many words each sentence has."""
        longest = int(self.lengths[places].max())
        chosen = torch.tensor(places, device=self.sizes.device)
        return self.table[:longest, chosen], self.sizes[chosen]


class States:
    """Sentences as the states that a language model is in at their words, computed once if there is room for them."""

    def __init__(self, rows: Rows, lm: Network, room: int | None = None) -> None:
        device = lm.table.device
        self.rows, self.lm, self.lengths = rows, lm, _lengths(rows)
        self.sizes = torch.from_numpy(self.lengths).to(device)
        numbers = lm.shape.directions * lm.shape.layers * max(lm.shape.widths[1:])
        room = _ROOM.get(device.type, 4 << 30) if room is None else room
        self.kept = self._all() if 4 * numbers * int(self.lengths.sum()) <= room else None

    def batch(self, places: Sequence[int]) -> tuple[Tensor, ...]:
        """Return states, (time, rows, directions, layers, numbers), and how many words each sentence has."""
        chosen = torch.tensor(places, device=self.sizes.device)
        if self.kept is None:
            return lm_states(self.lm, [self.rows[place] for place in places]), self.sizes[chosen]
        longest = int(self.lengths[places].max())
        times = torch.arange(longest, device=chosen.device).unsqueeze(1)
        # What fills a sentence up may be any state: networks leave it out.
        first = self.begins[chosen]
        return self.kept[first + times.minimum(self.sizes[chosen] - 1)], self.sizes[chosen]

    def _all(self) -> Tensor:
        """Return the states at all words, sentence after sentence."""
        self.begins = self.sizes.cumsum(0) - self.sizes
        order = np.argsort(self.lengths, kind="stable").tolist()
        found: dict[int, Tensor] = {}
        for start in range(0, len(order), _AT_ONCE):
            places = order[start : start + _AT_ONCE]
            states = lm_states(self.lm, [self.rows[place] for place in places])
            found |= {place: states[: self.lengths[place], column] for column, place in enumerate(places)}
        return torch.cat([found[place] for place in range(len(order))])


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


def source_of(rows: Rows, lm: Network | None, device: torch.device | str) -> Source:
    """Return sentences as a network reads them: as states of a language model, or as numbers of words."""
    return Numbers(rows, device) if lm is None else States(rows, lm)


def _lengths(rows: Rows) -> NDArray[np.int64]:
    return np.array([len(row) for row in rows], np.int64)
