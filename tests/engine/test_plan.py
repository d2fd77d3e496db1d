from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.engine import local
from acceptability.engine.plan import by_length, by_prefix, by_size, distinct
from acceptability.errors import QueryError
from acceptability.models.uniform import Uniform
from acceptability.types import Query, TokenScores

rows_of_tokens = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=9).map(tuple), max_size=60)


def once_each(plan: list[list[int]], count: int) -> bool:
    return sorted(place for batch in plan for place in batch) == list(range(count)) and all(plan)


@given(st.lists(st.integers(1, 200), max_size=80), st.integers(1, 300))
def test_by_size_every_query_stands_in_one_batch_within_the_budget(sizes: list[int], budget: int) -> None:
    plan = by_size(sizes, budget=budget)
    assert once_each(plan, len(sizes))
    for batch in plan:
        assert len(batch) == 1 or max(sizes[place] for place in batch) * len(batch) <= budget


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 5)), max_size=80), st.integers(1, 90))
def test_by_length_only_equals_go_together_within_the_budget(shapes: list[tuple[int, int]], budget: int) -> None:
    lengths = [length for length, _ in shapes]
    sizes = [length * copies for length, copies in shapes]
    plan = by_length(lengths, sizes, budget=budget)
    assert once_each(plan, len(shapes))
    for batch in plan:
        assert len({lengths[place] for place in batch}) == 1
        assert len(batch) == 1 or sum(sizes[place] for place in batch) <= budget
    for one, other in pairwise(plan):
        if lengths[one[0]] == lengths[other[0]]:
            assert sum(sizes[place] for place in one) + sizes[other[0]] > budget, "a batch could have held more"


@given(rows_of_tokens, st.integers(1, 40))
def test_by_prefix_a_shared_beginning_counts_once(rows: list[tuple[int, ...]], budget: int) -> None:
    plan = by_prefix(rows, [len(row) for row in rows], budget=budget)
    assert once_each(plan, len(rows))
    for batch in plan:
        nodes = {rows[place][:end] for place in batch for end in range(1, len(rows[place]) + 1)}
        assert len(batch) == 1 or len(nodes) <= budget
        assert len(batch) == 1 or len(batch) * max(len(rows[place]) for place in batch) <= 8 * budget
    order = [rows[place] for batch in plan for place in batch]
    assert order == sorted(rows)


@given(st.lists(st.integers(0, 5), max_size=40))
def test_different_queries_keep_their_order_and_all_their_places(asked: list[int]) -> None:
    places = distinct(asked)
    assert [asked[each[0]] for each in places] == list(dict.fromkeys(asked))
    assert sorted(place for each in places for place in each) == list(range(len(asked)))


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.sets(st.integers(0, 39)), st.integers(1, 12))
def test_only_what_is_unknown_is_asked_and_batches_stay_the_same(lengths, known, window) -> None:
    queries = [Query(" ".join([f"w{place}"] * length)) for place, length in enumerate(lengths)]
    model = Uniform()
    whole, rest = [], []
    for target, stored in ((whole, set()), (rest, known)):
        before = local.WINDOW
        local.WINDOW = window
        try:
            target += [[place for place, _ in batch] for batch in local.answers(model, queries, stored.__contains__)]
        finally:
            local.WINDOW = before
    assert sorted(place for batch in whole for place in batch) == list(range(len(queries)))
    assert rest == [kept for batch in whole if (kept := [place for place in batch if place not in known])]


@dataclass
class Counting:
    """A model of one token a letter that counts what it is asked, and packs as it is told."""

    packing: str
    budget: int
    asked: Counter[str]
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
def test_every_text_is_run_once_and_answered_at_its_own_places(texts, packing, budget, lanes) -> None:
    model = Counting(packing, budget, Counter())
    found = [each for batch in local.answers(model, [Query(text) for text in texts], lambda _: False) for each in batch]
    assert sorted(place for place, _ in found) == list(range(len(texts)))
    assert all(said.text == texts[place] for place, said in found)
    assert model.asked == Counter(set(texts))


def test_an_error_names_the_place_in_the_whole_request(monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", 3)
    queries = [Query(text) for text in ("a", "b", "a", "c", "c", "?")]
    with pytest.raises(QueryError) as caught:
        list(local.answers(Counting("size", 9, Counter()), queries, lambda _: False))
    assert caught.value.index == 5


def test_a_caller_who_stops_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    stream = local.answers(
        Counting("size", 1, Counter()), [Query("a" * each) for each in range(1, 50)], lambda _: False
    )
    next(stream)
    stream.close()
    assert threading.active_count() == before
