"""Tokens hidden from a masked model while it learns: always behind ``<mask>``, drawn anew for every batch.

The rate falls while the model learns: much is hidden at first, little at the end (40 and 15 % by default).
In every row equally many tokens are hidden, so that all batches have one shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

IGNORED = -100


class Hidden(NamedTuple):
    """Rows with hidden tokens.

    Args:
        shown: The rows as the model sees them.
        places: Where tokens may be hidden, the same number in each row.
        targets: What stands there, or ``IGNORED`` where nothing is hidden.
    """

    shown: torch.Tensor
    places: torch.Tensor
    targets: torch.Tensor


@dataclass(frozen=True)
class Hiding:
    """How tokens are hidden.

    Args:
        mask: The number of the token behind which others are hidden.
        edge: The number of the token between sentences, which is never hidden.
        begin: Which share of a row is hidden at the beginning of the training, and ``end`` at its end.
    """

    mask: int
    edge: int
    begin: float
    end: float
    seed: int

    def hidden(self, rows: torch.Tensor, step: int, progress: float) -> Hidden:
        """Return rows with tokens hidden; the same ones whenever the same step is done."""
        draws = np.random.default_rng([self.seed, step])
        rate = self.begin + (self.end - self.begin) * progress
        # Rounded up or down at random, so that it is right on average.
        count = math.floor(rate * rows.shape[1] + draws.random())
        generator = torch.Generator(rows.device).manual_seed(int(draws.integers(2**62)))
        lots = torch.rand(rows.shape, generator=generator, device=rows.device)
        lots.masked_fill_(rows == self.edge, 2.0)
        drawn, places = lots.topk(self._most(rows.shape[1]), dim=1, largest=False)
        is_hidden = (drawn < 2.0) & (torch.arange(places.shape[1], device=rows.device) < count)
        found = rows.gather(1, places)
        shown = rows.scatter(1, places, torch.where(is_hidden, self.mask, found))
        return Hidden(shown, places, torch.where(is_hidden, found, IGNORED))

    def _most(self, length: int) -> int:
        return min(length, math.floor(max(self.begin, self.end) * length) + 1)
