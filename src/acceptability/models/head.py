"""The head of a network of transformers, computed only where a score is asked for, a few rows at a time.

A network is cut between its body and its head, so that the head, with a whole vocabulary
behind it, sees only the positions that are scored. The cut holds for every architecture
that is built in the usual way, and is tried before it is relied on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.trial import Unfit
from acceptability.models.trie import Ints

_ROWS = {"cpu": 32}
_LOGITS = 512 << 20
"""How many rows of logits stand in memory at once: on a CPU what stays in its cache, else so many bytes."""

_TABLE = 1 << 30
"""How many bytes the logits of a whole batch may take, where none can be left out."""

Pending: TypeAlias = Callable[[], NDArray[np.float32]]
"""Numbers that a device may still be computing."""

_now = threading.local()
"""The states that stand for the body's, in the thread that asks the head alone."""


def logprobs(net: Any, states: Any, rows: Ints, targets: Ints, among: Ints | None = None) -> Pending:
    """Return what gives the log-probability of each target token at a row of the body's states, in float32.

    Args:
        states: One row of hidden states for each position that was computed.
        rows: Which row predicts each target.
        targets: The tokens asked for.
        among: Tokens whose joint log-probability is wanted too, as a second row of numbers.
    """
    order = np.argsort(rows, kind="stable")
    needed, inverse = np.unique(rows[order], return_inverse=True)
    device = states.device
    chosen, wanted, where = on(device, needed, targets[order], inverse)
    chosen = states[chosen]
    several = None if among is None else on(device, among)[0]
    vocabulary = net.config.get_text_config().vocab_size
    step = _ROWS.get(device.type, max(1, _LOGITS // (4 * vocabulary)))
    found = []
    for start in range(0, len(needed), step):
        first, last = np.searchsorted(inverse, (start, start + step))
        table = headed(net, chosen[start : start + step])
        found.append(picked(table, where[first:last] - start, wanted[first:last], several))
    return _pending(torch.cat(found, dim=-1), order)


def _pending(found: Any, order: Ints) -> Pending:
    """Return what waits for numbers on a device, and puts them into the order in which they were asked for."""
    if found.device.type == "cuda":
        copy = torch.empty(found.shape, dtype=found.dtype, pin_memory=True)
        copy.copy_(found, non_blocking=True)
        ready: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        ready.record()
    else:
        copy, ready = found.cpu(), None

    def wait() -> NDArray[np.float32]:
        if ready is not None:
            ready.synchronize()
        result = np.empty(copy.shape, np.float32)
        result[..., order] = copy.numpy()
        return result

    return wait


def picked(logits: Any, rows: Any, targets: Any, among: Any = None) -> Any:
    """Return the log-probabilities of targets in rows of logits, and below them those of several tokens together."""
    table = logits.float()
    if table.device.type == "cpu":
        # In place, since the logits are ours: a second table of this size would be the largest thing in memory.
        torch.ops.aten._log_softmax.out(table, 1, False, out=table)
    else:
        table = table.log_softmax(1)
    found = table[rows, targets]
    return found if among is None else torch.stack([found, table[:, among].logsumexp(1)[rows]])


def most_places(net: Any) -> int:
    """Return how many places may go through a network at once if the whole vocabulary is computed at each."""
    return max(1, int(_TABLE // (4 * net.config.get_text_config().vocab_size)))


def headed(net: Any, states: Any) -> Any:
    """Return the logits that the head of a network gives to rows of its body's states."""
    _now.states = states
    try:
        blank = torch.zeros((1, len(states)), dtype=torch.long, device=states.device)
        return net(input_ids=blank).logits[0]
    finally:
        _now.states = None


def split(net: Any) -> None:
    """Let the head of a network be used without its body."""
    body = net.base_model
    if body is net:
        raise Unfit("its head cannot be told from its body")
    _skip(body)
    # Some networks, such as OPT, go past the body to the decoder in it.
    if isinstance(decoder := getattr(body, "decoder", None), torch.nn.Module):
        _skip(decoder)


def _skip(body: Any) -> None:
    """Let a part of a network give, when it is told to, the states that stand for its own."""
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    whole = body.forward

    def forward(*args: Any, **options: Any) -> Any:
        given = getattr(_now, "states", None)
        if given is None:
            return whole(*args, **options)
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=given.unsqueeze(0))

    body.forward = forward


def on(device: Any, *arrays: Ints) -> list[Any]:
    """Return arrays as tensors on a device, all sent together."""
    if device.type != "cuda":
        return [torch.from_numpy(np.ascontiguousarray(each)).to(device) for each in arrays]
    ends = np.cumsum([each.size for each in arrays])
    sent = torch.empty(int(ends[-1]), dtype=torch.long, pin_memory=True)
    for each, end in zip(arrays, ends, strict=True):
        sent.numpy()[end - each.size : end] = each.ravel()
    there = sent.to(device, non_blocking=True)
    return [there[end - each.size : end].view(each.shape) for each, end in zip(arrays, ends.tolist(), strict=True)]
