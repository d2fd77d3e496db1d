"""Attention over batches of short sentences: written out on a CPU, in shared tiles on a GPU.

``compute_attention`` chooses one of four ways, all of which give the same result:

- a sliding window that is shorter than the sentence: PyTorch's scaled dot-product attention (SDPA) with a mask;
- a CPU and a sentence of up to 64 tokens: the formula written out (``attend_eagerly``);
- a GPU and a sentence of up to 32 tokens: several sentences in one tile of a block-diagonal mask (``attend_in_tiles``);
- anything else: SDPA.

The networks of ``causal_forward.py`` and ``masked_forward.py`` call it in place of their own attention.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

# The fused kernels of a GPU compute attention in tiles of 64 positions or more. With one sentence of a dozen tokens
# in each, most of the work would be on empty positions.
_TILE_POSITIONS = 64

# On a CPU, a batched matrix product of short sentences is faster than SDPA, which is built for long ones. The
# table of logits that it needs grows with the square of the length, hence the limit.
_MAX_EAGER_LENGTH = 64


def compute_attention(
    query: Any, key: Any, value: Any, *, causal: bool, scaling: float | None, window: int | None = None
) -> Any:
    """Return the attention output at each position, computed within each sentence.

    Args:
        query, key, value: Tensors of shape sentence × position × head × dimension; keys and values may have fewer
            heads than queries (grouped-query attention).
        causal: Whether a position sees only itself and those before it.
        scaling: The factor of the logits; None for 1 / √dimension.
        window: The number of positions that a position sees, itself included; None for all.
    """
    length = query.shape[1]
    if window and window < length:
        mask = _make_window_mask(length, window, causal, query.device)
        return _attend_sdpa(query, key, value, mask, False, scaling).transpose(1, 2)
    if query.device.type == "cpu" and length <= _MAX_EAGER_LENGTH:
        return attend_eagerly(query, key, value, causal, scaling).transpose(1, 2)
    group = count_tile_sentences(length) if query.device.type == "cuda" else 1
    if group < 2:
        return _attend_sdpa(query, key, value, None, causal, scaling).transpose(1, 2)
    return attend_in_tiles(query, key, value, group, causal, scaling)


def count_tile_sentences(length: int) -> int:
    """Return how many sentences of a length share a tile of a GPU's attention."""
    return max(1, _TILE_POSITIONS // length)


def attend_eagerly(query: Any, key: Any, value: Any, causal: bool, scaling: float | None) -> Any:
    """Return attention computed by its formula, softmax(QKᵀ · scaling) V, as sentence × head × position × dimension."""
    query, key, value = (tensor.transpose(1, 2) for tensor in (query, key, value))
    # Grouped-query attention: several query heads share a key head, and a matrix product needs one for each.
    if key.shape[1] != query.shape[1]:
        key, value = (tensor.repeat_interleave(query.shape[1] // tensor.shape[1], dim=1) for tensor in (key, value))
    # The softmax is in float32 whatever the precision of the states, as in the fused kernels.
    logits = torch.matmul(query, key.transpose(-1, -2)).float() * (scaling or query.shape[-1] ** -0.5)
    if causal:
        logits += _make_block_mask(1, query.shape[2], True, torch.float32, query.device)
    return torch.matmul(logits.softmax(-1).to(value.dtype), value)


def attend_in_tiles(query: Any, key: Any, value: Any, group: int, causal: bool, scaling: float | None) -> Any:
    """Return attention with several sentences in each tile, as sentence × position × head × dimension.

    Args:
        group: The number of sentences in a tile.
    """
    count, length, heads, _ = query.shape
    # Of the fused kernels, only the one without grouped-query attention takes a mask: with fewer key heads than query
    # heads, PyTorch would compute the formula step by step in float32, in a third of the time of a large network.
    repeats = heads // key.shape[2]
    if repeats > 1:
        key, value = (states.repeat_interleave(repeats, dim=2) for states in (key, value))
    tiled = [_pack_tiles(states, group) for states in (query, key, value)]
    mask = _make_block_mask(group, length, causal, query.dtype, query.device)
    attended = _attend_sdpa(tiled[0], tiled[1], tiled[2], mask, False, scaling)
    return attended.transpose(1, 2).reshape(-1, length, heads, value.shape[-1])[:count]


def _pack_tiles(states: Any, group: int) -> Any:
    """Return the states of sentences with several sentences in each row."""
    # Copies of the first sentence fill up the last row; the caller drops their results.
    if padding := -len(states) % group:
        states = torch.cat([states, states[:1].expand(padding, -1, -1, -1)])
    return states.reshape(-1, group * states.shape[1], *states.shape[2:])


def _attend_sdpa(query: Any, key: Any, value: Any, mask: Any, causal: bool, scaling: float | None) -> Any:
    """Return PyTorch's scaled dot-product attention, as sentence × head × position × dimension."""
    # Every kernel but cuDNN's, which compiles a plan for each new shape: among sentences nearly every shape is new.
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


def _make_window_mask(length: int, window: int, causal: bool, device: Any) -> Any:
    """Return a mask in which a position sees those nearer than the window."""
    positions = torch.arange(length, device=device)
    distance = positions[:, None] - positions
    return (distance >= 0) & (distance < window) if causal else distance.abs() < window


# Cached, since every layer of a network asks for the same mask, and batches of equal length follow one another.
@lru_cache(maxsize=128)
def _make_block_mask(group: int, length: int, causal: bool, dtype: Any, device: Any) -> Any:
    """Return a mask in which each sentence of a tile sees only itself: 0 where it sees, -inf elsewhere."""
    positions = torch.arange(group * length, device=device)
    visible = positions[:, None] // length == positions // length
    if causal:
        visible &= positions[:, None] >= positions
    return torch.zeros(visible.shape, dtype=dtype, device=device).masked_fill_(~visible, float("-inf"))
