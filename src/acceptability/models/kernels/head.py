"""The language-model head: log-softmax in chunks, computed only at the hidden states that predict a scored token.

``compute_logprobs`` turns hidden states into the log-probabilities of target tokens. It calls the head on a few rows at
a time, so that the table of logits, with a column for each token of the vocabulary, never exists as a whole.

The head of a transformers network is not one layer that could be called: BERT transforms the states before it, Gemma
caps the logits after it. ``make_head_separable`` therefore patches the body of the network, so that ``apply_head`` can
run the network's own code with given hidden states in place of the body. This works for every architecture that calls
its body and then its head; ``verify.py`` checks that it does before a score relies on it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.kernels.layers import keep_vocabulary_padding
from acceptability.models.kernels.trie import IntArray
from acceptability.models.kernels.verify import UnsupportedNetwork

# On a CPU, logits that fit into its cache: the log-softmax passes over them several times, and 32 rows of a large
# vocabulary take a few megabytes. On other devices, as many rows as fit into a fixed number of bytes.
LOGIT_ROWS = {"cpu": 32}
"""The number of rows in a chunk, by kind of device."""
_MAX_LOGITS_BYTES = 512 << 20
"""The size of a chunk on devices without an entry above."""

_MAX_TABLE_BYTES = 1 << 30
"""The size of the logits of a whole batch, in float32, for a network whose head cannot be split off."""

PendingLogprobs: TypeAlias = Callable[[], NDArray[np.float32]]
"""A function that waits for log-probabilities that a GPU may still be computing, and returns them."""

# Thread-local, since several threads may score with one network at a time: the states that one thread hands to
# the patched body must not reach another thread's forward pass.
_head_state = threading.local()
"""The hidden states that replace those of the body in the forward pass of this thread."""


def compute_logprobs(
    net: Any, states: Any, rows: IntArray, targets: IntArray, token_group: IntArray | None = None
) -> PendingLogprobs:
    """Start computing the log-probability of each target token, in float32, and return the function that waits for it.

    Args:
        net: A network that ``make_head_separable`` has prepared.
        states: The hidden states, one row for each position that was computed.
        rows: The row that predicts each target.
        targets: The ids of the target tokens.
        token_group: Token ids whose joint log-probability is returned too, as a second row of the result.
    """
    # Sorted by row, so that a chunk of rows needs a contiguous slice of the targets. A row that predicts several
    # targets, at the end of a shared prefix, goes through the head once.
    order = np.argsort(rows, kind="stable")
    sorted_rows = rows[order]
    is_first = np.append(True, sorted_rows[1:] != sorted_rows[:-1])
    needed, inverse = sorted_rows[is_first], np.cumsum(is_first) - 1
    device = states.device
    selected, target_ids, state_indices = to_device(device, needed, targets[order], inverse)
    selected = states[selected]
    group_ids = None if token_group is None else to_device(device, token_group)[0]
    vocabulary = net.config.get_text_config().vocab_size
    step = LOGIT_ROWS.get(device.type, max(1, _MAX_LOGITS_BYTES // (4 * vocabulary)))
    chunks = []
    for start in range(0, len(needed), step):
        # Found on the host, in NumPy: asking a GPU tensor for the bounds would wait for the GPU in every chunk.
        first, last = np.searchsorted(inverse, (start, start + step))
        with keep_vocabulary_padding():
            logits = apply_head(net, selected[start : start + step])
        chunks.append(gather_logprobs(logits, state_indices[first:last] - start, target_ids[first:last], group_ids))
    return _begin_copy_to_host(torch.cat(chunks, dim=-1), order)


def apply_head(net: Any, states: Any) -> Any:
    """Return the logits that the head of a network gives for rows of hidden states."""
    _head_state.states = states
    try:
        # The token ids are never looked up; some networks read the shape and the device of their input.
        dummy_ids = torch.zeros((1, len(states)), dtype=torch.long, device=states.device)
        return net(input_ids=dummy_ids).logits[0]
    finally:
        # Also after an error: the next ordinary forward pass of this thread would return these states otherwise.
        _head_state.states = None


def gather_logprobs(logits: Any, rows: Any, targets: Any, token_group: Any = None) -> Any:
    """Return the log-probabilities of target tokens; with a token group, its joint log-probability as a second row.

    Args:
        logits: A table of position × vocabulary, which may be overwritten.
        rows: The row of each target.
        targets: The ids of the target tokens.
    """
    # float32 whatever the precision of the network: the 8 significant bits of bfloat16 are too few for these numbers.
    logprob_table = logits.float()
    if logprob_table.device.type == "cpu":
        # In place, since nobody else needs the logits: a second table of this size would be the largest thing in
        # memory. The public log_softmax cannot write into its input.
        torch.ops.aten._log_softmax.out(logprob_table, 1, False, out=logprob_table)
    else:
        logprob_table = logprob_table.log_softmax(1)
    target_logprobs = logprob_table[rows, targets]
    return (
        target_logprobs
        if token_group is None
        else torch.stack([target_logprobs, logprob_table[:, token_group].logsumexp(1)[rows]])
    )


def _begin_copy_to_host(values: Any, order: IntArray) -> PendingLogprobs:
    """Start copying values to the CPU, and return the function that waits for them and undoes an ordering."""
    if values.device.type == "cuda":
        # Into page-locked memory, which alone can be copied to asynchronously. The event marks this copy, so that
        # waiting for it does not wait for the next batch, which is in the same queue by then.
        copy = torch.empty(values.shape, dtype=values.dtype, pin_memory=True)
        copy.copy_(values, non_blocking=True)
        ready: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
        ready.record()
    else:
        copy, ready = values.cpu(), None

    def wait() -> NDArray[np.float32]:
        if ready is not None:
            ready.synchronize()
        result = np.empty(copy.shape, np.float32)
        result[..., order] = copy.numpy()
        return result

    return wait


def to_device(device: Any, *arrays: IntArray) -> list[Any]:
    """Return integer arrays as tensors on a device."""
    if device.type != "cuda":
        return [torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in arrays]
    # One asynchronous transfer from page-locked memory for all arrays: each copy from ordinary memory would wait for
    # the work that the GPU is still doing.
    ends = np.cumsum([array.size for array in arrays])
    pinned = torch.empty(int(ends[-1]), dtype=torch.long, pin_memory=True)
    for array, end in zip(arrays, ends, strict=True):
        pinned.numpy()[end - array.size : end] = array.ravel()
    on_device = pinned.to(device, non_blocking=True)
    return [
        on_device[end - array.size : end].view(array.shape) for array, end in zip(arrays, ends.tolist(), strict=True)
    ]


def make_head_separable(net: Any) -> None:
    """Patch a network so that ``apply_head`` can run its head without its body."""
    body = net.base_model
    # transformers returns the network itself where it has no body of its own. Patching that would replace the head.
    if body is net:
        raise UnsupportedNetwork("its head cannot be separated from its body")
    _make_skippable(body)
    # Some networks, such as OPT, call the decoder inside their body and never the body itself.
    if isinstance(decoder := getattr(body, "decoder", None), torch.nn.Module):
        _make_skippable(decoder)


def _make_skippable(body: Any) -> None:
    """Patch the ``forward`` of a module so that it returns the hidden states of ``apply_head``, if there are any."""
    from transformers.modeling_outputs import BaseModelOutputWithPastAndCrossAttentions

    original_forward = body.forward

    def forward(*args: Any, **options: Any) -> Any:
        replacement = getattr(_head_state, "states", None)
        if replacement is None:
            return original_forward(*args, **options)
        # This class has every field that the heads of transformers read from the output of a body.
        return BaseModelOutputWithPastAndCrossAttentions(last_hidden_state=replacement.unsqueeze(0))

    # On the instance: the class serves other networks too.
    body.forward = forward


def compute_max_tokens(net: Any) -> int:
    """Return how many positions a batch may have if the whole vocabulary is computed at each of them."""
    return max(1, int(_MAX_TABLE_BYTES // (4 * net.config.get_text_config().vocab_size)))
