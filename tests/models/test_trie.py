from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from acceptability.models.trie import Trie, trie

rows_of_tokens = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=25)


def grown(rows: list[list[int]], extra: int = 0) -> Trie:
    """Return the trie of rows that stand in one array, each followed by tokens that are not part of it."""
    tokens = np.array([token for row in rows for token in [*row, *[9] * extra]])
    lengths = np.array([len(row) for row in rows])
    return trie(tokens, np.cumsum(lengths + extra) - lengths - extra, lengths)


def beginnings(rows: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(row[:end]) for row in rows for end in range(1, len(row) + 1)}


@given(rows_of_tokens, st.integers(0, 2))
@example([[1, 2], [1], [0, 5], [1, 2]], 0)
@example([[2], [1], [2, 0]], 1)
def test_every_path_spells_its_row_and_every_beginning_stands_there_once(rows, extra) -> None:
    made = grown(rows, extra)
    found: dict[int, tuple[int, ...]] = {}
    for row, path in zip(rows, made.path, strict=True):
        nodes = path[: len(row)]
        assert made.ids[nodes].tolist() == row
        assert made.depths[nodes].tolist() == list(range(len(row)))
        for end, node in enumerate(nodes.tolist(), start=1):
            assert found.setdefault(node, tuple(row[:end])) == tuple(row[:end])
    assert len(made) == len(found) == len(beginnings(rows))
    assert set(found.values()) == beginnings(rows)


@given(rows_of_tokens)
@example([[1, 2], [1, 2], [1]])
def test_a_node_is_born_where_a_row_reaches_it(rows) -> None:
    made = grown(rows)
    width = made.path.shape[1]
    assert made.path.ravel()[made.born].tolist() == list(range(len(made)))
    assert all(place % width < len(rows[place // width]) for place in made.born.tolist())


@given(rows_of_tokens)
@example([[3, 1], [3, 1], [0], [3]])
def test_branches_are_the_rows_that_bring_nodes(rows) -> None:
    made = grown(rows)
    path, born = made.branches()
    assert path.shape == (len(set((made.born // made.path.shape[1]).tolist())), made.path.shape[1])
    assert path.ravel()[born].tolist() == list(range(len(made)))
    for node, place in enumerate(born.tolist()):
        row, column = divmod(place, path.shape[1])
        assert column == made.depths[node]
        before = path[row, : column + 1]
        assert made.depths[before].tolist() == list(range(column + 1)), "what stands before a node is its beginning"


def test_the_padding_beyond_a_row_is_no_token() -> None:
    made = grown([[0, 0, 0], [0]])
    assert len(made) == 3
    assert grown([[5]]).path.tolist() == [[0]]
