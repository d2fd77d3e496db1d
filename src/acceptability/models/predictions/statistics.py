"""From distributions over the next token to entropy, rank, cumulative probability and alternatives, in chunks.

A table of log-probabilities has a column for each token of the vocabulary. ``summarise_requests`` computes such tables
a few rows at a time, and keeps a few numbers of each row, so that no table of a whole batch ever exists.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.kernels.trie import IntArray
from acceptability.models.predictions import Requests, RequestStats

# On a CPU, tables that fit into its cache, as in kernels/head.py. On other devices, as many rows as fit into a number
# of bytes, of which three tables exist at a time: log-probabilities, probabilities, and which tokens are better.
_CHUNK_ROWS = {"cpu": 32}
_MAX_TABLE_BYTES = 256 << 20


@dataclass(frozen=True, eq=False)
class _TableStats:
    """What is kept of the rows of a table, and of the targets in it: tensors on the table's device."""

    entropies: Any
    top_logprobs: Any
    top_ids: Any
    logprobs: Any
    ranks: Any
    cumulative: Any
    masses: Any


def summarise(table: Any, rows: Any, targets: Any, top: int, masses: Any = None) -> _TableStats:
    """Return what is kept of a table of log-probabilities.

    Args:
        table: Log-probabilities in float32, a row for each distribution.
        rows: The row of each target.
        targets: The column of each target.
        top: The number of alternatives.
        masses: For each row, the log-probability of all its columns before they were normalised; None for 0.
    """
    probabilities = table.exp()
    # entr is -p·log p, and 0 at 0, where the product of p and log p would be nan.
    entropies = torch.special.entr(probabilities).sum(1)
    top_logprobs, top_ids = table.topk(top, dim=1)
    logprobs = table[rows, targets]
    # A row has one target as a rule; several where the texts of a batch share their first tokens.
    own, own_probabilities = (table, probabilities) if len(rows) == len(table) else (table[rows], probabilities[rows])
    is_better = own > logprobs[:, None]
    # The sum of many rounded numbers may exceed 1 by its last digits.
    cumulative = ((own_probabilities * is_better).sum(1) + logprobs.exp()).clamp(max=1.0)
    kept = torch.zeros(len(table), device=table.device) if masses is None else masses
    return _TableStats(entropies, top_logprobs, top_ids, logprobs, is_better.sum(1) + 1, cumulative, kept)


def summarise_requests(
    requests: Requests, compute_logits: Callable[[Any], Any], group: IntArray | None, top: int, size: int, device: Any
) -> Callable[[], RequestStats]:
    """Start to compute the statistics of distributions, and return the function that waits for them.

    Args:
        requests: The distributions, with their targets.
        compute_logits: Returns the logits of some states, given by their numbers, as a table with ``size`` columns.
        group: The tokens that ``requests.is_restricted`` restricts a distribution to.
        top: The number of alternatives.
        size: The number of tokens.
        device: Where the logits are.
    """
    step = _CHUNK_ROWS.get(device.type, max(1, _MAX_TABLE_BYTES // (4 * size)))
    width = min(top, size if group is None else len(group))
    group_ids = None if group is None else torch.from_numpy(group).to(device)
    parts: list[_Part] = []
    for is_restricted in (False, True):
        chosen = np.flatnonzero(requests.is_restricted == is_restricted)
        # Sorted by state, so that a chunk of states has a contiguous slice of the requests.
        chosen = chosen[np.argsort(requests.states[chosen], kind="stable")]
        states, inverse = np.unique(requests.states[chosen], return_inverse=True)
        targets = requests.targets[chosen]
        if is_restricted and group is not None:
            targets = np.searchsorted(group, targets)
        for start in range(0, len(states), step):
            first, last = np.searchsorted(inverse, (start, start + step))
            rows = inverse[first:last] - start
            table = compute_logits(torch.from_numpy(states[start : start + step]).to(device)).float().log_softmax(1)
            masses = None
            if is_restricted:
                table = table[:, group_ids]
                masses = table.logsumexp(1)
                table = table - masses[:, None]
            on_device = [torch.from_numpy(part).to(device) for part in (rows, np.maximum(targets[first:last], 0))]
            part = _Part(
                chosen[first:last], rows, is_restricted, summarise(table, on_device[0], on_device[1], width, masses)
            )
            parts.append(part)
    return lambda: _collect(parts, len(requests.targets), width, group)


@dataclass(frozen=True, eq=False)
class _Part:
    """The statistics of a chunk.

    Args:
        indices: The requests.
        rows: The row of the table that each of them refers to.
        is_restricted: Whether the columns of the table are those of the group.
        stats: The statistics.
    """

    indices: IntArray
    rows: IntArray
    is_restricted: bool
    stats: _TableStats


def _collect(parts: list[_Part], count: int, width: int, group: IntArray | None) -> RequestStats:
    """Return the statistics of all requests, in their order, on the CPU."""
    floats = {name: np.zeros(count, np.float32) for name in ("entropies", "logprobs", "cumulative", "masses")}
    ranks, top_ids = np.zeros(count, np.int64), np.zeros((count, width), np.int64)
    top_logprobs = np.zeros((count, width), np.float32)
    for part in parts:
        host: dict[str, NDArray[Any]] = {name: tensor.cpu().numpy() for name, tensor in vars(part.stats).items()}
        indices, rows = part.indices, part.rows
        floats["entropies"][indices], floats["masses"][indices] = host["entropies"][rows], host["masses"][rows]
        floats["logprobs"][indices], floats["cumulative"][indices] = host["logprobs"], host["cumulative"]
        ranks[indices], top_logprobs[indices] = host["ranks"], host["top_logprobs"][rows]
        columns = host["top_ids"][rows]
        top_ids[indices] = group[columns] if part.is_restricted and group is not None else columns
    return RequestStats(**floats, ranks=ranks, top_ids=top_ids, top_logprobs=top_logprobs)
