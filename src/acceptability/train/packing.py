"""Rows of equal length from a corpus in numbers: each begins at the beginning of a sentence, and several may follow.

Every sentence begins a row once before any does so for a second time; the order comes from a seed. The
corpus is taken as a ring, so that a row at its end goes on at its beginning. All is
done with whole tensors, on the device where the corpus lies.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.errors import CorpusError


class Rows:
    """A corpus cut into rows.

    Args:
        ids: The tokens, with ``edge`` before each sentence.
        length: The tokens of a row.
    """

    def __init__(
        self, ids: NDArray[Any], edge: int, length: int, *, seed: int, device: torch.device | str = "cpu"
    ) -> None:
        if len(ids) < 2:
            raise CorpusError("the corpus is too small: it has no two tokens")
        self.length, self.seed, self.device = length, seed, device
        self.ids = torch.from_numpy(ids.astype(np.int32)).to(device)
        self.starts = torch.from_numpy(np.flatnonzero(ids == edge)).to(device)
        self._offsets = torch.arange(length, device=device)
        self._order = lru_cache(maxsize=2)(self._drawn)

    def __len__(self) -> int:
        """Return how many rows there are before one begins at the same sentence again."""
        return len(self.starts)

    def at(self, first: int, count: int) -> torch.Tensor:
        """Return some rows of the endless sequence of rows, from a place on."""
        chosen = []
        while count:
            turn, place = divmod(first, len(self))
            taken = min(count, len(self) - place)
            chosen.append(self._order(turn)[place : place + taken])
            first, count = first + taken, count - taken
        places = self.starts[torch.cat(chosen)].unsqueeze(1) + self._offsets
        return self.ids[places % len(self.ids)].long()

    def _drawn(self, turn: int) -> torch.Tensor:
        order = np.random.default_rng([self.seed, turn]).permutation(len(self))
        return torch.from_numpy(order).to(self.device)
