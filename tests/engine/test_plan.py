from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acceptability.engine import local
from acceptability.engine.plan import batches
from acceptability.models.uniform import Uniform
from acceptability.types import Query


@given(st.lists(st.integers(1, 200), max_size=80), st.integers(1, 300))
def test_every_query_stands_in_exactly_one_batch_within_the_budget(sizes: list[int], budget: int) -> None:
    plan = batches(sizes, budget=budget)
    assert sorted(place for batch in plan for place in batch) == list(range(len(sizes)))
    for batch in plan:
        assert len(batch) == 1 or max(sizes[place] for place in batch) * len(batch) <= budget


@given(st.lists(st.integers(1, 9), min_size=1, max_size=40), st.sets(st.integers(0, 39)), st.integers(1, 12))
def test_only_what_is_unknown_is_asked_and_batches_stay_the_same(lengths, known, window) -> None:
    queries = [Query(" ".join(["w"] * length)) for length in lengths]
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
