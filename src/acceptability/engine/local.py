"""The engine that runs a model on this machine.

A batch is begun before the one before it is collected, so that a GPU computes while we
prepare, store and reduce.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from acceptability.engine.plan import by_length, by_prefix, by_size, distinct
from acceptability.errors import QueryError
from acceptability.protocols import Encoded, Model
from acceptability.types import Query, Said

BUDGET = 1024
"""How many token positions go through a model at once, unless it says otherwise."""

WINDOW = 65_536
"""How many queries are encoded at once, so that memory does not grow with the request."""

Answers = list[tuple[int, Said]]


@dataclass(frozen=True)
class Window:
    """Some of the queries, encoded and planned.

    Args:
        places: Where each different query stands in the request.
        plan: Which of the different queries go together.
    """

    places: Sequence[Sequence[int]]
    encoded: Sequence[Encoded]
    plan: Sequence[Sequence[int]]


def answers(model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]) -> Iterator[Answers]:
    """Yield what the model says, batch by batch, with the place of each query.

    Batches are planned over all queries; those that are wholly known are skipped, and
    known queries of the others are left out. A query that stands there twice is run once.
    """
    waiting: Callable[[], Answers] | None = None
    for window in _windows(model, queries, is_known):
        for batch in window.plan:
            asked = [each for each in batch if not is_known(window.places[each][0])]
            if asked:
                with _no_search():
                    begun, waiting = waiting, _begun(model, window, asked)
                    ready = begun() if begun else None
                if ready:
                    yield ready
    if waiting:
        yield waiting()


def _windows(model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]) -> Iterator[Window]:
    for start in range(0, len(queries), WINDOW):
        if not all(map(is_known, range(start, min(start + WINDOW, len(queries))))):
            with _no_search():
                window = _prepared(model, queries, start)
                gc.freeze()
            try:
                yield window
            finally:
                gc.unfreeze()


def _prepared(model: Model, queries: Sequence[Query], start: int) -> Window:
    window = queries[start : start + WINDOW]
    places = distinct(window)
    try:
        encoded = model.encode([window[each[0]] for each in places])
    except QueryError as error:
        raise QueryError(start + places[error.index][0], error.problem) from error
    return Window([[start + place for place in each] for each in places], encoded, _planned(model, encoded))


def _planned(model: Model, encoded: Sequence[Encoded]) -> list[list[int]]:
    """Return the batches, packed as the model likes it."""
    budget = getattr(model, "budget", BUDGET)
    packing = getattr(model, "packing", "size")
    if packing == "prefix":
        return by_prefix([each.ids for each in encoded], [each.size for each in encoded], budget=budget)  # type: ignore[attr-defined]
    sizes = [each.size for each in encoded]
    if packing == "length":
        return by_length([each.length for each in encoded], sizes, budget=budget)  # type: ignore[attr-defined]
    return by_size(sizes, budget=budget)


def _begun(model: Model, window: Window, asked: Sequence[int]) -> Callable[[], Answers]:
    """Put a batch to the model, and return what collects its answers."""
    batch = [window.encoded[each] for each in asked]
    begin = getattr(model, "begin", None)
    collect: Callable[[], Sequence[Said]] = begin(batch) if begin else lambda: model.run(batch)

    def collected() -> Answers:
        places = [window.places[each] for each in asked]
        return [(place, answer) for same, answer in zip(places, collect(), strict=True) for place in same]

    return collected


@contextmanager
def _no_search() -> Iterator[None]:
    """Keep Python from searching for cycles among millions of fresh tokens, which have none."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
