"""Causal networks on a trie of tokens: what sentences share at their beginning is computed once.

All nodes of the trie go through the layers of the network as one flat row, without padding.
Only attention must know better: it is replaced by one that lets each token see the
tokens before it in its own sentence. This works for every decoder of transformers that takes
its attention and its positions from outside; whether one does is tried before it is relied on.
"""

from __future__ import annotations

import threading
from inspect import signature
from typing import Any

from acceptability.models.attention import attention
from acceptability.models.head import on
from acceptability.models.trial import Unfit
from acceptability.models.trie import Trie

_NAME = "acceptability_trie"
_KNOWN = {"position_ids", "use_cache", "cache_position", "output_attentions", "is_causal", "dropout", "layer_type"}
_now = threading.local()
"""The trie that goes through the network, in the thread that runs it."""


def share_prefixes(net: Any) -> None:
    """Let a network take tries."""
    from transformers import AttentionInterface

    if "position_ids" not in signature(type(net.base_model).forward).parameters:
        raise Unfit("its positions cannot be given")
    AttentionInterface.register(_NAME, _attend)
    try:
        net.set_attn_implementation(_NAME)
    except (ValueError, AttributeError, ImportError) as error:
        raise Unfit("its attention cannot be replaced") from error


def states(net: Any, given: Trie) -> Any:
    """Return the hidden states of the body at each node of a trie."""
    device = net.device
    path, born = given.branches()
    _now.shape, _now.windows = path.shape, set()
    ids, depths, _now.path, _now.born = on(device, given.ids[None], given.depths[None], path.ravel(), born)
    try:
        made = net.base_model(input_ids=ids, position_ids=depths, use_cache=False)
    finally:
        _now.path = None
    if not _now.windows:
        raise Unfit("it does not use the attention that it is given")
    _check_reach(net.config.get_text_config(), _now.windows)
    return made.last_hidden_state[0]


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """Return what each node takes from those before it in its own sentence."""
    odd = [name for name, each in others.items() if name not in _KNOWN and each is not None]
    if odd or getattr(_now, "path", None) is None or not getattr(module, "is_causal", True):
        raise Unfit(f"its attention takes {', '.join(odd) or 'more than one row'}")
    _now.windows.add(sliding_window)
    seen = _unrolled(query), _unrolled(key), _unrolled(value)
    made = attention(*seen, causal=True, scaling=scaling, window=sliding_window)
    return made.reshape(-1, *made.shape[2:]).index_select(0, _now.born).unsqueeze(0), None


def _check_reach(config: Any, windows: set[int | None]) -> None:
    """Refuse a network that sees only so far, but does not tell its attention: a short sample would not show it."""
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention"])
    unknown = kinds - {"full_attention", "sliding_attention"}
    window = getattr(config, "sliding_window", None) if "sliding_attention" in kinds else None
    if unknown or (window and window not in windows):
        raise Unfit(f"its attention does not say how far it sees: {', '.join(sorted(unknown)) or window}")


def _unrolled(states: Any) -> Any:
    """Return the states of a trie's nodes as those of whole sentences: sentence × place × head × dimension."""
    nodes = states[0].transpose(0, 1)
    return nodes.index_select(0, _now.path).view(*_now.shape, *nodes.shape[1:])
