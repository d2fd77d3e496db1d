"""Sentences drawn from a recurrent network, many at once, on its device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from acceptability.models.recurrent_networks import Network
from acceptability.models.vocabulary import END, START


@torch.inference_mode()
def sentences(
    net: Network, count: int, longest: int, temperature: float, banned: frozenset[int], random: np.random.Generator
) -> list[list[int] | None]:
    """Return sentences as numbers of words; None for one that has not ended after so many words."""
    device = net.table.device
    drawn = np.full((longest + 1, count), END)
    going, last, states = np.arange(count), torch.full((count,), START, device=device), None
    for step in range(longest + 1):
        said, states = net.states(last.unsqueeze(0), states)
        logs = net.output.everything(said[-1][0], net.table)
        last = picked(logs, temperature, banned, random)
        words = last.cpu().numpy()
        drawn[step, going] = words
        is_open = words != END
        going = going[is_open]
        if not len(going):
            break
        kept = torch.from_numpy(np.flatnonzero(is_open)).to(device)
        last, states = last[kept], [tuple(part[kept] for part in layer) for layer in states]
    unfinished = set(going.tolist())
    return [None if row in unfinished else _until_end(drawn[:, row]) for row in range(count)]


def picked(logs: Tensor, temperature: float, banned: frozenset[int], random: np.random.Generator) -> Tensor:
    """Return one entry of each row, drawn by the probabilities that its logarithms stand for.

    The random numbers come from NumPy, so that every device draws with the same.
    """
    if temperature != 1:
        logs = logs / temperature
    weights = torch.softmax(logs, 1).double()
    weights[:, sorted(banned)] = 0
    sums = weights.cumsum_(1)
    wanted = torch.from_numpy(random.random((len(logs), 1))).to(logs.device) * sums[:, -1:]
    found: Any = torch.searchsorted(sums, wanted, right=True).squeeze(1)
    return found.clamp_(max=logs.shape[1] - 1)  # type: ignore[no-any-return]


def _until_end(column: Any) -> list[int]:
    found: list[int] = column[: int(np.argmax(column == END))].tolist()
    return found
