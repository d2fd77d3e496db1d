"""Masked copies: which tokens index masks, and that no copy is copies twice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.models.hf import masked
from acceptability.models.hf.masked import (
    MaskedEncoding,
    find_unique_rows,
    find_word_ends,
    make_masked_copies,
    make_texts_to_mask,
    slice_copies,
)
from acceptability.types import Query

pytest.importorskip("torch")
MASK = 99

tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 2), min_size=width, max_size=width), min_size=1, max_size=20)
)


@given(tables)
def test_distinct_rows_and_the_index_of_each_row(table: list[list[int]]) -> None:
    rows = np.array(table)
    distinct, index = find_unique_rows(rows)
    assert (distinct[index] == rows).all()
    assert len(distinct) == len({tuple(row) for row in table})


@pytest.mark.parametrize("weights", [0, 1])
def test_rows_with_equal_hashes_stay_distinct(weights: int, monkeypatch) -> None:
    constant = SimpleNamespace(integers=lambda low, high, size, dtype: np.full(size, weights, dtype))
    monkeypatch.setattr(masked.np.random, "default_rng", lambda seed: constant)
    rows = np.array([[1, 2], [2, 1], [1, 2], [0, 3]])
    distinct, index = find_unique_rows(rows)
    assert (distinct[index] == rows).all()
    assert len(distinct) == 3


def tokens(
    ids: list[int], scored: list[int], masked_with: list[int] | None = None, *, together: bool = False
) -> MaskedEncoding:
    return MaskedEncoding(Query("x"), ids, scored, masked_with or scored, together, None)


def list_copies(batch: list[MaskedEncoding]) -> list[tuple[list[int], int, int]]:
    """Return the masked copy, the position and the target of index scored token."""
    copies = make_masked_copies(make_texts_to_mask(batch), MASK)
    return [
        (copies.input_ids[row].tolist(), position, target)
        for row, position, target in zip(copies.rows, copies.positions.tolist(), copies.targets.tolist(), strict=True)
    ]


def test_one_token_is_masked_at_a_time() -> None:
    assert list_copies([tokens([1, 5, 6, 2], [1, 2])]) == [([1, MASK, 6, 2], 1, 5), ([1, 5, MASK, 2], 2, 6)]


def test_the_rest_of_a_word_is_masked_with_a_token() -> None:
    ends = find_word_ends([1, 2, 3], [None, 0, 0, 1, None])
    assert ends == [2, 2, 3]
    rows = list_copies([tokens([1, 5, 6, 7, 2], [1, 2, 3], ends)])
    assert [ids for ids, _, _ in rows] == [[1, MASK, MASK, 7, 2], [1, 5, MASK, 7, 2], [1, 5, 6, MASK, 2]]


def test_a_target_is_masked_in_a_single_copy() -> None:
    batch = [tokens([1, 5, 6, 7, 2], [1, 3], together=True)]
    assert list_copies(batch) == [([1, MASK, 6, MASK, 2], 1, 5), ([1, MASK, 6, MASK, 2], 3, 7)]
    assert len(make_masked_copies(make_texts_to_mask(batch), MASK).input_ids) == 1


def test_a_copy_that_two_texts_share_is_made_once() -> None:
    pair = [tokens([1, 5, 6, 2], [1, 2]), tokens([1, 5, 7, 2], [1, 2])]
    copies = make_masked_copies(make_texts_to_mask(pair), MASK)
    assert len(copies.input_ids) == 3
    assert copies.targets.tolist() == [5, 6, 5, 7]
    assert [ids for ids, _, _ in list_copies(pair)][1] == [ids for ids, _, _ in list_copies(pair)][3]


@given(st.lists(st.lists(st.integers(5, 7), min_size=3, max_size=3), min_size=1, max_size=8), st.integers(1, 9))
def test_slices_hold_every_target_once_with_its_copy(texts: list[list[int]], step: int) -> None:
    copies = make_masked_copies(make_texts_to_mask([tokens([1, *text, 2], [1, 2, 3]) for text in texts]), MASK)
    parts = list(slice_copies(copies, step))
    assert sum(len(part.input_ids) for part in parts) == len(copies.input_ids)
    sliced = []
    for part in parts:
        assert len(part.input_ids) <= step
        sliced += [
            (part.input_ids[row].tolist(), position, target)
            for row, position, target in zip(part.rows, part.positions.tolist(), part.targets.tolist(), strict=True)
        ]
    order = np.argsort(copies.rows, kind="stable")
    whole = [
        (copies.input_ids[copies.rows[index]].tolist(), int(copies.positions[index]), int(copies.targets[index]))
        for index in order
    ]
    assert sliced == whole
