"""Attention among the tokens of short sentences.

A GPU computes attention in tiles of 64 places or more, most of which stay empty when a
sentence has a dozen tokens. There, several sentences share a tile, and a mask keeps them apart.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

_TILE = 64
_SHORT = 64


def attention(
    query: Any, key: Any, value: Any, *, causal: bool, scaling: float | None, window: int | None = None
) -> Any:
    """Return what each place takes from the others of its sentence.

    Args:
        query, key, value: Sentence × place × head × dimension.
        window: How many places a token sees, with its own; None for all.
    """
    length = query.shape[1]
    if window and window < length:
        mask = _banded(length, window, causal, query.device)
        return _attended(query, key, value, mask, False, scaling).transpose(1, 2)
    if query.device.type == "cpu" and length <= _SHORT:
        return _plainly(query, key, value, causal, scaling).transpose(1, 2)
    group = _TILE // length if query.device.type == "cuda" else 1
    if group < 2:
        return _attended(query, key, value, None, causal, scaling).transpose(1, 2)
    return _in_tiles(query, key, value, group, causal, scaling)


def _in_tiles(query: Any, key: Any, value: Any, group: int, causal: bool, scaling: float | None) -> Any:
    """Return attention with so many sentences to a tile."""
    count, length, heads, _ = query.shape
    tiled = [_tiles(each, group) for each in (query, key, value)]
    mask = _blocks(group, length, causal, query.dtype, query.device)
    made = _attended(tiled[0], tiled[1], tiled[2], mask, False, scaling)
    return made.transpose(1, 2).reshape(-1, length, heads, value.shape[-1])[:count]


def _tiles(states: Any, group: int) -> Any:
    """Return sentences, so many to a row; the last row is filled up with the first sentence."""
    if missing := -len(states) % group:
        states = torch.cat([states, states[:1].expand(missing, -1, -1, -1)])
    return states.reshape(-1, group * states.shape[1], *states.shape[2:])


def _plainly(query: Any, key: Any, value: Any, causal: bool, scaling: float | None) -> Any:
    """Return attention written out, which a CPU does faster for short sentences than its own way for long ones."""
    query, key, value = (each.transpose(1, 2) for each in (query, key, value))
    if key.shape[1] != query.shape[1]:
        key, value = (each.repeat_interleave(query.shape[1] // each.shape[1], dim=1) for each in (key, value))
    logits = torch.matmul(query, key.transpose(-1, -2)).float() * (scaling or query.shape[-1] ** -0.5)
    if causal:
        logits += _blocks(1, query.shape[2], True, torch.float32, query.device)
    return torch.matmul(logits.softmax(-1).to(value.dtype), value)


def _attended(query: Any, key: Any, value: Any, mask: Any, causal: bool, scaling: float | None) -> Any:
    # Not cuDNN's: it makes a plan for each new shape, and among sentences nearly every shape is new.
    with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
        return torch.nn.functional.scaled_dot_product_attention(
            query.transpose(1, 2),
            key.transpose(1, 2),
            value.transpose(1, 2),
            attn_mask=mask,
            is_causal=causal,
            scale=scaling,
            enable_gqa=key.shape[2] != query.shape[2],
        )


def _banded(length: int, window: int, causal: bool, device: Any) -> Any:
    """Return a mask that lets each place see only those nearer than the window."""
    places = torch.arange(length, device=device)
    behind = places[:, None] - places
    return (behind >= 0) & (behind < window) if causal else behind.abs() < window


@lru_cache(maxsize=128)
def _blocks(group: int, length: int, causal: bool, dtype: Any, device: Any) -> Any:
    """Return a mask that lets each sentence of a tile see itself alone."""
    places = torch.arange(group * length, device=device)
    seen = places[:, None] // length == places // length
    if causal:
        seen &= places[:, None] >= places
    return torch.zeros(seen.shape, dtype=dtype, device=device).masked_fill_(~seen, float("-inf"))
