"""Attention in tiles, in windows and with shared heads, against attention written out place by place."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")

from acceptability.models import attention as ours  # noqa: E402


def spelled_out(query, key, value, *, causal: bool, scaling: float | None, window: int | None = None):
    """One sentence, one place, one head at a time."""
    count, length, heads, width = query.shape
    shared = heads // key.shape[2]
    made = torch.zeros(count, length, heads, value.shape[-1])
    for row in range(count):
        for head in range(heads):
            for place in range(length):
                seen = [
                    other
                    for other in range(length)
                    if not (causal and other > place) and not (window and abs(place - other) >= window)
                ]
                scale = width**-0.5 if scaling is None else scaling
                logits = [float(query[row, place, head] @ key[row, each, head // shared]) * scale for each in seen]
                weights = [math.exp(each - max(logits)) for each in logits]
                made[row, place, head] = sum(
                    weight / sum(weights) * value[row, each, head // shared]
                    for weight, each in zip(weights, seen, strict=True)
                )
    return made


def states(count: int, length: int, heads: int, shared: int, *, wide: int = 4):
    generator = torch.Generator().manual_seed(count * 100 + length)
    kept = heads // shared
    return [
        torch.randn(count, length, each, size, generator=generator)
        for each, size in ((heads, 4), (kept, 4), (kept, wide))
    ]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("scaling", [None, 0.9])
@pytest.mark.parametrize("shared", [1, 2, 4])
@pytest.mark.parametrize(("count", "length", "group"), [(1, 5, 3), (6, 5, 3), (7, 5, 3), (2, 1, 4), (5, 6, 2)])
def test_tiles_keep_sentences_apart(causal, scaling, shared, count, length, group) -> None:
    given = states(count, length, 4, shared, wide=3)
    expected = spelled_out(*given, causal=causal, scaling=scaling)
    torch.testing.assert_close(ours._in_tiles(*given, group, causal, scaling), expected, atol=1e-5, rtol=0)
    plain = ours._plainly(*given, causal, scaling).transpose(1, 2)
    torch.testing.assert_close(plain, expected, atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.attention(*given, causal=causal, scaling=scaling), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("window", [None, 1, 2, 6, 7, 8, 100])
def test_a_window_hides_what_lies_beyond(causal, window) -> None:
    given = states(3, 7, 4, 2)
    expected = spelled_out(*given, causal=causal, scaling=0.5, window=window)
    found = ours.attention(*given, causal=causal, scaling=0.5, window=window)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


def test_long_sentences_take_the_way_of_pytorch(monkeypatch) -> None:
    monkeypatch.setattr(ours, "_SHORT", 3)
    given = states(2, 5, 2, 1)
    expected = spelled_out(*given, causal=True, scaling=None)
    torch.testing.assert_close(ours.attention(*given, causal=True, scaling=None), expected, atol=1e-5, rtol=0)


def test_a_batch_of_tiles_is_filled_up_and_cut_again() -> None:
    filled = ours._tiles(torch.arange(5.0).reshape(5, 1, 1, 1), 2)
    assert filled.flatten(1).tolist() == [[0, 1], [2, 3], [4, 0]]
