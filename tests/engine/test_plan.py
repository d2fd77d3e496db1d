from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.engine import local
from acceptability.engine.plan import batch_by_length, batch_by_prefix, batch_by_size, group_duplicates
from acceptability.errors import QueryError
from acceptability.models.ngram.model import Uniform
from acceptability.protocols import Model
from acceptability.types import Query, TokenScores

rows_of_tokens = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9).map(tuple), max_size=60)


def holds_each_once(plan: list[list[int]], count: int) -> bool:
    return sorted(index for batch in plan for index in batch) == list(range(count)) and all(plan)


@given(st.lists(st.integers(1, 200), max_size=80), st.integers(1, 300))
def test_by_size_every_query_is_in_one_batch_within_the_budget(sizes: list[int], budget: int) -> None:
    plan = batch_by_size(sizes, budget=budget)
    assert holds_each_once(plan, len(sizes))
    for batch in plan:
        assert len(batch) == 1 or max(sizes[index] for index in batch) * len(batch) <= budget


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=80), st.integers(1, 90))
def test_by_length_only_equal_lengths_share_a_batch_within_the_budget(
    shapes: list[tuple[int, int]], budget: int
) -> None:
    lengths = [length for length, _ in shapes]
    sizes = [length * copies for length, copies in shapes]
    plan = batch_by_length(lengths, sizes, budget=budget)
    assert holds_each_once(plan, len(shapes))
    for batch in plan:
        assert len({lengths[index] for index in batch}) == 1
        assert len(batch) == 1 or sum(sizes[index] for index in batch) <= budget
    for batch, following in pairwise(plan):
        if lengths[batch[0]] == lengths[following[0]]:
            assert sum(sizes[index] for index in batch) + sizes[following[0]] > budget, "a batch could have held more"


@given(rows_of_tokens, st.integers(1, 40))
def test_by_prefix_a_shared_prefix_counts_once(rows: list[tuple[int, ...]], budget: int) -> None:
    plan = batch_by_prefix(rows, [len(row) for row in rows], budget=budget)
    assert holds_each_once(plan, len(rows))
    for batch in plan:
        nodes = {rows[index][:end] for index in batch for end in range(1, len(rows[index]) + 1)}
        assert len(batch) == 1 or len(nodes) <= budget
        assert len(batch) == 1 or len(batch) * max(len(rows[index]) for index in batch) <= 8 * budget
    order = [rows[index] for batch in plan for index in batch]
    assert order == sorted(rows)


@given(st.lists(st.integers(0, 5), max_size=40))
def test_distinct_queries_keep_their_order_and_all_their_indices(queries: list[int]) -> None:
    groups = group_duplicates(queries)
    assert [queries[group[0]] for group in groups] == list(dict.fromkeys(queries))
    assert sorted(index for group in groups for index in group) == list(range(len(queries)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.sets(st.integers(0, 39)), st.integers(1, 12))
def test_only_unknown_queries_are_run_and_batches_stay_the_same(lengths, known, window) -> None:
    queries = [Query(" ".join([f"w{index}"] * length)) for index, length in enumerate(lengths)]
    model = Uniform()
    whole, rest = [], []
    for target, stored in ((whole, set()), (rest, known)):
        before = local.WINDOW
        local.WINDOW = window
        try:
            target += [
                [index for index, _ in batch] for batch in local.run_queries(model, queries, stored.__contains__)
            ]
        finally:
            local.WINDOW = before
    assert sorted(index for batch in whole for index in batch) == list(range(len(queries)))
    assert rest == [kept for batch in whole if (kept := [index for index in batch if index not in known])]


@dataclass
class Counting(Model):
    """A model with a token for each letter, which counts its texts, and packs by the given rule."""

    packing: str = "size"
    budget: int = 1
    asked: Counter[str] = field(default_factory=Counter)
    lanes: int = 1
    signature: str = "counting"

    @dataclass(frozen=True)
    class Letters:
        query: Query

        @property
        def ids(self) -> tuple[int, ...]:
            return tuple(map(ord, self.query.text))

        @property
        def length(self) -> int:
            return len(self.query.text)

        size = length

    def encode(self, queries: Sequence[Query]) -> list[Letters]:
        for index, query in enumerate(queries):
            if query.text == "?":
                raise QueryError(index, "it is a question")
        return [self.Letters(query) for query in queries]

    def run(self, batch: Sequence[Letters]) -> list[TokenScores]:
        self.asked.update(each.query.text for each in batch)
        return [
            TokenScores(each.query.text, (each.query.text,), ((0, 1),), np.array([-float(len(each.query.text))]))
            for each in batch
        ]


@given(
    st.lists(st.text("ab", min_size=1, max_size=7), min_size=1, max_size=50),
    st.sampled_from(["prefix", "length", "size"]),
    st.integers(1, 20),
    st.integers(1, 3),
)
def test_every_text_is_run_once_and_returned_at_all_its_indices(texts, packing, budget, lanes) -> None:
    model = Counting(packing, budget, Counter())
    found = [
        each for batch in local.run_queries(model, [Query(text) for text in texts], lambda _: False) for each in batch
    ]
    assert sorted(index for index, _ in found) == list(range(len(texts)))
    assert all(output.text == texts[index] for index, output in found)
    assert model.asked == Counter(set(texts))


def test_an_error_has_the_index_in_the_whole_request(monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", 3)
    queries = [Query(text) for text in ("a", "b", "a", "c", "c", "?")]
    with pytest.raises(QueryError) as caught:
        list(local.run_queries(Counting("size", 9, Counter()), queries, lambda _: False))
    assert caught.value.index == 5


def test_a_caller_who_stops_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    stream = local.run_queries(
        Counting("size", 1, Counter()), [Query("a" * each) for each in range(1, 50)], lambda _: False
    )
    next(stream)
    stream.close()
    assert threading.active_count() == before
