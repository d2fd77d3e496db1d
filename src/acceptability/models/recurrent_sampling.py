"""Sentences drawn from a recurrent network, many at once, on its device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from acceptability.models.output_layers import _Grouped
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
        last = _following(net, said[-1][0], temperature, banned, random)
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


def _following(
    net: Network, hidden: Tensor, temperature: float, banned: frozenset[int], random: np.random.Generator
) -> Tensor:
    """Return a word after what the network has in mind in each row."""
    output: Any = net.output
    # A temperature changes what a whole group has in a way that only all of its words tell.
    if isinstance(output, _Grouped) and temperature == 1 and max(banned) < output.edges[1]:
        return _by_groups(output, net.table, hidden, banned, random)
    return picked(output.everything(hidden, net.table), temperature, banned, random)


def _by_groups(
    output: _Grouped, table: Tensor, hidden: Tensor, banned: frozenset[int], random: np.random.Generator
) -> Tensor:
    """Draw a frequent word or a group, and then a word of the group: rare words are computed where they are needed."""
    head, tail = output._layers(table)
    frequent = output.edges[1]
    found = picked(torch.cat(head(hidden), 1), 1.0, banned, random)
    for number, start in enumerate(output.edges[1:-1]):
        rows = (found == frequent + number).nonzero().squeeze(1)
        if len(rows):
            # Marked by negative numbers first, so that no word is taken for a group that comes later.
            found[rows] = -1 - (start + picked(tail(number, hidden[rows]), 1.0, frozenset(), random))
    return torch.where(found < 0, -1 - found, found)


def picked(logs: Tensor, temperature: float, banned: frozenset[int], random: np.random.Generator) -> Tensor:
    """Return one entry of each row, drawn by the probabilities that its logarithms stand for.

    The random numbers come from NumPy, so that every device draws with the same.
    """
    weights = (logs.exp() if temperature == 1 else torch.softmax(logs / temperature, 1)).double()
    if banned:
        weights[:, sorted(banned)] = 0
    sums = weights.cumsum_(1)
    wanted = torch.from_numpy(random.random((len(logs), 1))).to(logs.device) * sums[:, -1:]
    return torch.searchsorted(sums, wanted, right=True).squeeze(1).clamp_(max=logs.shape[1] - 1)


def _until_end(column: Any) -> list[int]:
    found: list[int] = column[: int(np.argmax(column == END))].tolist()
    return found
