"""Masked copies through a masked network: all of one length, the head and the last layer only where it counts.

The last layer of a BERT-like network is needed at the scored position alone: all that
follows its attention is computed there and nowhere else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.attention import attention
from acceptability.models.head import Pending, logprobs, most_places, on, split
from acceptability.models.trial import Unfit, objection, slower, tuned
from acceptability.models.trie import Ints

_NAME = "acceptability_tiles"
_UNKNOWN = {"sliding_window", "softcap", "s_aux", "position_bias"}
_now = threading.local()
"""The positions that are scored, in the thread whose pass it is."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Masked copies of texts that all have the same length, and what is asked of them.

    Args:
        shown: The tokens of each copy, with masks.
        rows: In which copy each target stands.
        places: Where in it.
        targets: The tokens behind the masks.
    """

    shown: Ints
    rows: Ints
    places: Ints
    targets: Ints


class MaskedPass(Protocol):
    """A way through a masked network."""

    net: Any
    most: int
    """How many places it can take at once."""

    def __call__(self, given: Copies) -> Pending:
        """Return what gives the log-probability of each target."""
        ...


class WholeRows:
    """The plain way: all of the network at all places."""

    def __init__(self, net: Any) -> None:
        self.net, self.most = net, most_places(net)

    @torch.inference_mode()
    def __call__(self, given: Copies) -> Pending:
        """Return what gives the log-probability of each target."""
        shown, rows, places, targets = on(self.net.device, given.shown, given.rows, given.places, given.targets)
        logits = self.net(input_ids=shown, attention_mask=torch.ones_like(shown)).logits
        table = logits[rows, places].float().log_softmax(1)
        found: NDArray[np.float32] = table.gather(1, targets[:, None])[:, 0].cpu().numpy()
        return lambda: found


class ScoredRows:
    """The fast way: the head, and where the network allows it the last layer, only where a token is scored."""

    most = sys.maxsize

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, given: Copies) -> Pending:
        """Return what gives the log-probability of each target."""
        device, cells = self.net.device, given.rows * given.shown.shape[1] + given.places
        shown, cells = on(device, given.shown if device.type == "cpu" else _rounded(given.shown), cells)
        _now.cells, _now.done = cells, False
        try:
            states = self.net.base_model(input_ids=shown).last_hidden_state.flatten(0, 1)
        finally:
            _now.cells = None
        if not _now.done:
            states = states[cells]
        return logprobs(self.net, states, np.arange(len(cells)), given.targets)


def _rounded(shown: Ints) -> Ints:
    """Fill up many copies to a round number: for a GPU each new number of rows is a new problem to think about."""
    missing = -len(shown) % 64 if len(shown) > 64 else 0
    return np.concatenate([shown, np.repeat(shown[:1], missing, axis=0)])


def masked_pass(opened: Callable[[], Any], folder: Path) -> MaskedPass:
    """Return the fastest way through a network that gives what the plain way gives.

    Args:
        opened: What reads the network, anew each time that it is called.
        folder: Where its weights lie.
    """
    return tuned(opened, lambda net: _untuned(net, folder), _tried, folder)


def _untuned(net: Any, folder: Path) -> tuple[MaskedPass, NDArray[np.float32]]:
    """Return the fastest way through a network as it is, and what the plain way says of the sample."""
    plain, fast = WholeRows(net), ScoredRows(net)
    expected, before = _tried(plain), net.config._attn_implementation
    way: MaskedPass = plain
    for prepare in (_ready, _tile):

        def tried(prepare: Callable[[Any], None] = prepare) -> NDArray[np.float32]:
            prepare(net)
            return _tried(fast)

        if problem := objection(tried, expected, net.dtype):
            net.set_attn_implementation(before)
            slower(folder, problem)
            break
        way = fast
    return way, expected


def _tried(way: MaskedPass) -> NDArray[np.float32]:
    """Return what a way says of the sample."""
    return way(_sample(way.net))()


def _ready(net: Any) -> None:
    """Make a network ready for the fast way."""
    split(net)
    _shorten(net)


def _tile(net: Any) -> None:
    """Let several copies share a tile of the GPU's attention, where the network takes its attention from outside."""
    from transformers import AttentionInterface

    AttentionInterface.register(_NAME, _attend)
    net.set_attn_implementation(_NAME)


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **others: Any
) -> tuple[Any, None]:
    odd = [name for name, each in others.items() if name in _UNKNOWN and each is not None]
    if odd or attention_mask is not None or getattr(module, "is_causal", False):
        raise Unfit(f"its attention takes {', '.join(odd) or 'a mask'}")
    turned = (each.transpose(1, 2) for each in (query, key, value))
    return attention(*turned, causal=False, scaling=scaling), None


def _shorten(net: Any) -> None:
    """Let the last layer of a BERT-like network go on from its attention at the scored places alone."""
    layers = getattr(getattr(net.base_model, "encoder", None), "layer", None)
    output = getattr(getattr(layers[-1], "attention", None), "output", None) if layers else None
    if output is not None:
        output.register_forward_pre_hook(_at_scored_places)


def _at_scored_places(_: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    cells = getattr(_now, "cells", None)
    if cells is None:
        return given
    _now.done = True
    return tuple(each.flatten(0, 1)[cells].unsqueeze(0) for each in given)


def _sample(net: Any) -> Copies:
    """Return three rows with different places asked for."""
    tokens = np.random.default_rng(0).integers(0, net.config.get_text_config().vocab_size, (3, 6))
    return Copies(tokens, np.array([0, 1, 2, 2]), np.array([1, 3, 2, 4]), tokens[[0, 1, 2, 2], [0, 1, 4, 5]])
