"""Masked copies: what each hides, and that none is made twice."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.models import masked
from acceptability.models.masked import Tokens, _copies, _ends_of_words, _slices, _unique
from acceptability.types import Query

pytest.importorskip("torch")
MASK = 99

tables = st.integers(1, 4).flatmap(
    lambda width: st.lists(st.lists(st.integers(0, 2), min_size=width, max_size=width), min_size=1, max_size=20)
)


@given(tables)
def test_different_rows_once_and_each_row_found_again(table: list[list[int]]) -> None:
    rows = np.array(table)
    found, which = _unique(rows)
    assert (found[which] == rows).all()
    assert len(found) == len({tuple(row) for row in table})


@pytest.mark.parametrize("weights", [0, 1])
def test_rows_that_a_projection_takes_for_one_stay_apart(weights: int, monkeypatch) -> None:
    blind = SimpleNamespace(integers=lambda low, high, size, dtype: np.full(size, weights, dtype))
    monkeypatch.setattr(masked.np.random, "default_rng", lambda seed: blind)
    rows = np.array([[1, 2], [2, 1], [1, 2], [0, 3]])
    found, which = _unique(rows)
    assert (found[which] == rows).all()
    assert len(found) == 3


def tokens(ids: list[int], scored: list[int], hidden: list[int] | None = None, *, together: bool = False) -> Tokens:
    return Tokens(Query("x"), ids, scored, hidden or scored, together, None)


def shown_for(batch: list[Tokens]) -> list[tuple[list[int], int, int]]:
    """Return for each scored token what the model is shown, where it looks, and what it looks for."""
    made = _copies(batch, MASK)
    return [
        (made.shown[row].tolist(), place, target)
        for row, place, target in zip(made.rows, made.places.tolist(), made.targets.tolist(), strict=True)
    ]


def test_one_token_is_hidden_at_a_time() -> None:
    assert shown_for([tokens([1, 5, 6, 2], [1, 2])]) == [([1, MASK, 6, 2], 1, 5), ([1, 5, MASK, 2], 2, 6)]


def test_the_rest_of_a_word_is_hidden_with_a_token() -> None:
    ends = _ends_of_words([1, 2, 3], [None, 0, 0, 1, None])
    assert ends == [2, 2, 3]
    found = shown_for([tokens([1, 5, 6, 7, 2], [1, 2, 3], ends)])
    assert [shown for shown, _, _ in found] == [[1, MASK, MASK, 7, 2], [1, 5, MASK, 7, 2], [1, 5, 6, MASK, 2]]


def test_a_target_is_hidden_as_one_in_a_single_copy() -> None:
    batch = [tokens([1, 5, 6, 7, 2], [1, 3], together=True)]
    assert shown_for(batch) == [([1, MASK, 6, MASK, 2], 1, 5), ([1, MASK, 6, MASK, 2], 3, 7)]
    assert len(_copies(batch, MASK).shown) == 1


def test_what_two_texts_show_alike_is_computed_once() -> None:
    pair = [tokens([1, 5, 6, 2], [1, 2]), tokens([1, 5, 7, 2], [1, 2])]
    made = _copies(pair, MASK)
    assert len(made.shown) == 3
    assert made.targets.tolist() == [5, 6, 5, 7]
    assert [shown for shown, _, _ in shown_for(pair)][1] == [shown for shown, _, _ in shown_for(pair)][3]


@given(st.lists(st.lists(st.integers(5, 7), min_size=3, max_size=3), min_size=1, max_size=8), st.integers(1, 9))
def test_slices_ask_every_target_once_with_its_own_copy(texts: list[list[int]], step: int) -> None:
    copies = _copies([tokens([1, *text, 2], [1, 2, 3]) for text in texts], MASK)
    parts = list(_slices(copies, step))
    assert sum(len(part.shown) for part in parts) == len(copies.shown)
    asked = []
    for part in parts:
        assert len(part.shown) <= step
        asked += [
            (part.shown[row].tolist(), place, target)
            for row, place, target in zip(part.rows, part.places.tolist(), part.targets.tolist(), strict=True)
        ]
    order = np.argsort(copies.rows, kind="stable")
    whole = [
        (copies.shown[copies.rows[each]].tolist(), int(copies.places[each]), int(copies.targets[each]))
        for each in order
    ]
    assert asked == whole
