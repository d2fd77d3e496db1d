"""Forward passes of masked networks: the path that computes only what is scored, and the plain path.

``Masked.begin`` (``masked.py``) hands over masked copies of equal length, so there is no padding. In each copy, one
position is scored as a rule. ``ScoredOnlyMaskedPath`` therefore computes the head at these positions alone
(``kernels/head.py``), and in BERT-like networks also all that follows the attention of the last layer: no other
position needs it any more. Where a network takes its attention from outside, several copies share a tile of a GPU's
attention (``kernels/attention.py``).

``choose_masked_path`` decides which of these a network takes, when it is loaded.
"""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.kernels.attention import compute_attention, count_tile_sentences
from acceptability.models.kernels.head import (
    PendingLogprobs,
    compute_logprobs,
    compute_max_tokens,
    make_head_separable,
    to_device,
)
from acceptability.models.kernels.trie import IntArray
from acceptability.models.kernels.verify import UnsupportedNetwork, tune_forward_path, verify_logprobs, warn_slower_path

_ATTENTION_NAME = "acceptability_tiles"
_ROUND_ROWS = 16
"""The number of copies in a pass on a GPU is a multiple of this."""
# Fewer copies are rounded up to whole tiles only: the rest of a large multiple would be most of the work.
_MIN_ROUNDED_TILES = 8
# What a network hands to its attention and `compute_attention` would ignore. A network with any of these keeps its own.
_UNSUPPORTED_ARGUMENTS = {"sliding_window", "softcap", "s_aux", "position_bias"}
# Thread-local, since a hook cannot be given arguments, and several threads may score with one network at a time.
_pass_state = threading.local()
"""``cells``: the flat indices of the scored positions, in the pass of this thread; ``done``: whether the last layer has
selected them."""


@dataclass(frozen=True, eq=False)
class MaskedCopies:
    """Masked copies of texts, all of the same length, and the masked tokens that are scored.

    Args:
        input_ids: The token ids of each copy.
        rows: The copy in which each target is masked.
        positions: Its position there.
        targets: The ids of the masked tokens.
    """

    input_ids: IntArray
    rows: IntArray
    positions: IntArray
    targets: IntArray


class MaskedForwardPath(Protocol):
    """A way of running masked copies through a network."""

    net: Any
    max_tokens: int
    """The maximal number of token positions in a pass."""

    def __call__(self, copies: MaskedCopies) -> PendingLogprobs:
        """Start a forward pass, and return the function that waits for the log-probability of each target."""
        ...


class FullMaskedPath:
    """The plain path: the whole network at all positions."""

    def __init__(self, net: Any) -> None:
        self.net, self.max_tokens = net, compute_max_tokens(net)

    @torch.inference_mode()
    def __call__(self, copies: MaskedCopies) -> PendingLogprobs:
        """Start a forward pass, and return the function that waits for the log-probability of each target."""
        input_ids, rows, positions, targets = to_device(
            self.net.device, copies.input_ids, copies.rows, copies.positions, copies.targets
        )
        logits = self.net(input_ids=input_ids, attention_mask=torch.ones_like(input_ids)).logits
        table = logits[rows, positions].float().log_softmax(1)
        target_logprobs: NDArray[np.float32] = table.gather(1, targets[:, None])[:, 0].cpu().numpy()
        return lambda: target_logprobs


class ScoredOnlyMaskedPath:
    """The fast path: the head, and if the network allows it the last layer, only where a token is scored."""

    # No limit: the logits, which fill memory first in the plain path, are computed in chunks here.
    max_tokens = sys.maxsize

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, copies: MaskedCopies) -> PendingLogprobs:
        """Start a forward pass, and return the function that waits for the log-probability of each target."""
        device, cells = self.net.device, copies.rows * copies.input_ids.shape[1] + copies.positions
        input_ids, cells = to_device(
            device, copies.input_ids if device.type == "cpu" else _pad_row_count(copies.input_ids), cells
        )
        # `done` tells whether the hook of the last layer ran: the states then are those of the scored positions only.
        _pass_state.cells, _pass_state.done = cells, False
        try:
            states = self.net.base_model(input_ids=input_ids).last_hidden_state.flatten(0, 1)
        finally:
            _pass_state.cells = None
        if not _pass_state.done:
            states = states[cells]
        return compute_logprobs(self.net, states, np.arange(len(cells)), copies.targets)


def _pad_row_count(input_ids: IntArray) -> IntArray:
    """Return token ids with the number of rows rounded up by copies of the first row.

    The targets refer to the original rows alone, so that the results of the copies are not used.
    """
    # To whole tiles of the attention, which would otherwise fill up the last tile by copying all states in every layer.
    # And to round numbers: the libraries of a GPU choose an algorithm for each new shape of a product.
    count, tile = len(input_ids), count_tile_sentences(input_ids.shape[1])
    multiple = math.lcm(tile, _ROUND_ROWS) if count > _MIN_ROUNDED_TILES * tile * _ROUND_ROWS else tile
    return np.concatenate([input_ids, np.repeat(input_ids[:1], -count % multiple, axis=0)])


def choose_masked_path(load_net: Callable[[], Any], folder: Path) -> MaskedForwardPath:
    """Return the fastest path through a network that gives the scores of the plain path.

    Args:
        load_net: Loads the network, anew at each call.
        folder: The folder of its weights.
    """
    return tune_forward_path(load_net, lambda net: _choose_untuned_path(net, folder), _run_sample, folder)


def _choose_untuned_path(net: Any, folder: Path) -> tuple[MaskedForwardPath, NDArray[np.float32]]:
    """Return the fastest correct path through a network as it was loaded, and the sample's scores by the plain path."""
    plain, fast = FullMaskedPath(net), ScoredOnlyMaskedPath(net)
    expected, original_attention = _run_sample(plain), net.config._attn_implementation
    forward_path: MaskedForwardPath = plain
    # Two steps, each verified: a network whose attention cannot be replaced still takes the fast path with its own.
    for prepare in (_prepare_scored_only, _use_tiled_attention):

        def run_prepared(prepare: Callable[[Any], None] = prepare) -> NDArray[np.float32]:
            prepare(net)
            return _run_sample(fast)

        if problem := verify_logprobs(run_prepared, expected, net.dtype):
            net.set_attn_implementation(original_attention)
            warn_slower_path(folder, problem)
            break
        forward_path = fast
    return forward_path, expected


def _run_sample(forward_path: MaskedForwardPath) -> NDArray[np.float32]:
    """Return the log-probabilities of the sample by a path."""
    return forward_path(_make_sample_copies(forward_path.net))()


def _prepare_scored_only(net: Any) -> None:
    """Patch the head and the last layer of a network."""
    make_head_separable(net)
    _shorten_last_layer(net)


def _use_tiled_attention(net: Any) -> None:
    """Replace the attention function of a network by ``compute_attention``, in which copies share a tile of a GPU."""
    from transformers import AttentionInterface

    AttentionInterface.register(_ATTENTION_NAME, _attend)
    net.set_attn_implementation(_ATTENTION_NAME)


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **others: Any
) -> tuple[Any, None]:
    """Return the attention output of all positions. Called by transformers."""
    unsupported = [name for name, argument in others.items() if name in _UNSUPPORTED_ARGUMENTS and argument is not None]
    if unsupported or attention_mask is not None or getattr(module, "is_causal", False):
        raise UnsupportedNetwork(f"its attention takes {', '.join(unsupported) or 'a mask'}")
    transposed = (states.transpose(1, 2) for states in (query, key, value))
    return compute_attention(*transposed, causal=False, scaling=scaling), None


def _shorten_last_layer(net: Any) -> None:
    """Make the last layer of a BERT-like network continue behind its attention at the scored positions alone."""
    # The module `attention.output` gets two inputs with a row for each position: the attention's result and the states
    # for the residual connection. All that follows treats rows independently. Networks without these names are left
    # as they are.
    layers = getattr(getattr(net.base_model, "encoder", None), "layer", None)
    output = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    if output is not None:
        output.register_forward_pre_hook(_select_scored_positions)


def _select_scored_positions(_: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the inputs of a module at the scored positions. A hook that PyTorch calls before the module."""
    # Set only during a pass of `ScoredOnlyMaskedPath`; any other pass through the network needs all positions.
    cells = getattr(_pass_state, "cells", None)
    if cells is None:
        return inputs
    _pass_state.done = True
    return tuple(states.flatten(0, 1)[cells].unsqueeze(0) for states in inputs)


def _make_sample_copies(net: Any) -> MaskedCopies:
    """Return three copies of random tokens, in which different positions are scored, two of them in one copy."""
    tokens = np.random.default_rng(0).integers(0, net.config.get_text_config().vocab_size, (3, 6))
    return MaskedCopies(tokens, np.array([0, 1, 2, 2]), np.array([1, 3, 2, 4]), tokens[[0, 1, 2, 2], [0, 1, 4, 5]])
