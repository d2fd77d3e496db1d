from __future__ import annotations

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from acceptability.models.kernels.trie import TokenTrie, build_trie

rows_of_tokens = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=7), min_size=1, max_size=25)


def make_trie(rows: list[list[int]], extra: int = 0) -> TokenTrie:
    """Return the trie of rows that lie in one array, each followed by tokens that are not part of it."""
    tokens = np.array([token for row in rows for token in [*row, *[9] * extra]])
    lengths = np.array([len(row) for row in rows])
    return build_trie(tokens, np.cumsum(lengths + extra) - lengths - extra, lengths)


def prefixes(rows: list[list[int]]) -> set[tuple[int, ...]]:
    return {tuple(row[:end]) for row in rows for end in range(1, len(row) + 1)}


@given(rows_of_tokens, st.integers(0, 2))
@example([[1, 2], [1], [0, 5], [1, 2]], 0)
@example([[2], [1], [2, 0]], 1)
def test_paths_spell_their_rows_and_every_prefix_is_one_node(rows, extra) -> None:
    trie = make_trie(rows, extra)
    prefix_of: dict[int, tuple[int, ...]] = {}
    for row, path in zip(rows, trie.node_table, strict=True):
        nodes = path[: len(row)]
        assert trie.ids[nodes].tolist() == row
        assert trie.depths[nodes].tolist() == list(range(len(row)))
        for end, node in enumerate(nodes.tolist(), start=1):
            assert prefix_of.setdefault(node, tuple(row[:end])) == tuple(row[:end])
    assert len(trie) == len(prefix_of) == len(prefixes(rows))
    assert set(prefix_of.values()) == prefixes(rows)


@given(rows_of_tokens)
@example([[1, 2], [1, 2], [1]])
def test_first_cells_hold_their_nodes(rows) -> None:
    trie = make_trie(rows)
    width = trie.node_table.shape[1]
    assert trie.node_table.ravel()[trie.first_cells].tolist() == list(range(len(trie)))
    assert all(cell % width < len(rows[cell // width]) for cell in trie.first_cells.tolist())


@given(rows_of_tokens)
@example([[3, 1], [3, 1], [0], [3]])
def test_branches_are_the_rows_that_contribute_nodes(rows) -> None:
    trie = make_trie(rows)
    table, first_cells = trie.select_branches()
    assert table.shape == (len(set((trie.first_cells // trie.node_table.shape[1]).tolist())), trie.node_table.shape[1])
    assert table.ravel()[first_cells].tolist() == list(range(len(trie)))
    for node, cell in enumerate(first_cells.tolist()):
        row, column = divmod(cell, table.shape[1])
        assert column == trie.depths[node]
        before = table[row, : column + 1]
        assert trie.depths[before].tolist() == list(range(column + 1)), "the cells before a node are its prefix"


def test_padding_is_no_token() -> None:
    trie = make_trie([[0, 0, 0], [0]])
    assert len(trie) == 3
    assert make_trie([[5]]).node_table.tolist() == [[0]]
