"""Attention in tiles, in windows and with shared heads, against attention computed position by position."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from acceptability.models.kernels import attention


def compute_by_position(query, key, value, *, causal: bool, scaling: float | None, window: int | None = None):
    """One sentence, one position, one head at a time."""
    count, length, heads, width = query.shape
    shared = heads // key.shape[2]
    result = torch.zeros(count, length, heads, value.shape[-1])
    for row in range(count):
        for head in range(heads):
            for position in range(length):
                seen = [
                    index
                    for index in range(length)
                    if not (causal and index > position) and not (window and abs(position - index) >= window)
                ]
                scale = width**-0.5 if scaling is None else scaling
                logits = [float(query[row, position, head] @ key[row, index, head // shared]) * scale for index in seen]
                weights = [math.exp(logit - max(logits)) for logit in logits]
                result[row, position, head] = sum(
                    weight / sum(weights) * value[row, index, head // shared]
                    for weight, index in zip(weights, seen, strict=True)
                )
    return result


def states(count: int, length: int, heads: int, shared: int, *, wide: int = 4):
    generator = torch.Generator().manual_seed(count * 100 + length)
    key_heads = heads // shared
    return [
        torch.randn(count, length, head_count, size, generator=generator)
        for head_count, size in ((heads, 4), (key_heads, 4), (key_heads, wide))
    ]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("scaling", [None, 0.9])
@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize(("count", "length", "group"), [(1, 5, 3), (6, 5, 3), (7, 5, 3), (2, 1, 4), (5, 6, 2)])
def test_tiles_keep_sentences_apart(causal, scaling, shared, count, length, group) -> None:
    tensors = states(count, length, 4, shared, wide=3)
    expected = compute_by_position(*tensors, causal=causal, scaling=scaling)
    torch.testing.assert_close(attention.attend_in_tiles(*tensors, group, causal, scaling), expected, atol=1e-5, rtol=0)
    plain = attention.attend_eagerly(*tensors, causal, scaling).transpose(1, 2)
    torch.testing.assert_close(plain, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        attention.compute_attention(*tensors, causal=causal, scaling=scaling), expected, atol=1e-5, rtol=0
    )


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 6, 7, 8, 100])
def test_a_window_hides_what_lies_beyond(causal, window) -> None:
    tensors = states(3, 7, 4, 2)
    expected = compute_by_position(*tensors, causal=causal, scaling=0.5, window=window)
    actual = attention.compute_attention(*tensors, causal=causal, scaling=0.5, window=window)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=0)


def test_long_sentences_use_the_attention_of_pytorch(monkeypatch) -> None:
    monkeypatch.setattr(attention, "_MAX_EAGER_LENGTH", 3)
    tensors = states(2, 5, 2, 1)
    expected = compute_by_position(*tensors, causal=True, scaling=None)
    torch.testing.assert_close(
        attention.compute_attention(*tensors, causal=True, scaling=None), expected, atol=1e-5, rtol=0
    )


def test_the_last_tile_is_filled_up() -> None:
    tiles = attention._pack_tiles(torch.arange(5.0).reshape(5, 1, 1, 1), 2)
    assert tiles.flatten(1).tolist() == [[0, 1], [2, 3], [4, 0]]
