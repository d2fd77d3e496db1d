"""The engine that runs a model on this machine.

Tokenising, computing and storing overlap: while a batch is computed, the one before it
is with the caller, and the next window of queries is being tokenised.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from acceptability.engine.plan import by_length, by_prefix, by_size, distinct
from acceptability.errors import QueryError
from acceptability.protocols import Encoded, Model
from acceptability.types import Query, Said

BUDGET = 1024
"""How many token positions go through a model at once, unless it says otherwise."""

WINDOW = 65_536
"""How many queries are encoded at once, so that memory does not grow with the request."""

Answers = list[tuple[int, Said]]
Result = TypeVar("Result")


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
    starts = (
        start
        for start in range(0, len(queries), WINDOW)
        if not all(map(is_known, range(start, min(start + WINDOW, len(queries)))))
    )
    with _pool(1) as preparing, _pool(getattr(model, "lanes", 1)) as running:
        windows = _ahead(preparing, (partial(_prepared, model, queries, start) for start in starts), 1)
        yield from _ahead(
            running,
            (
                partial(_run, model, window, asked)
                for window in windows
                for batch in window.plan
                if (asked := [each for each in batch if not is_known(window.places[each][0])])
            ),
            getattr(model, "lanes", 1),
        )


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
        return by_prefix([each.prefix for each in encoded], budget=budget)  # type: ignore[attr-defined]
    sizes = [each.size for each in encoded]
    if packing == "length":
        return by_length([each.length for each in encoded], sizes, budget=budget)  # type: ignore[attr-defined]
    return by_size(sizes, budget=budget)


def _run(model: Model, window: Window, asked: Sequence[int]) -> Answers:
    said = model.run([window.encoded[each] for each in asked])
    return [(place, answer) for each, answer in zip(asked, said, strict=True) for place in window.places[each]]


def _ahead(pool: ThreadPoolExecutor, calls: Iterable[Callable[[], Result]], depth: int) -> Iterator[Result]:
    """Yield what the calls return, in order, while up to so many of the next ones run."""
    pending: deque[Future[Result]] = deque()
    for call in calls:
        pending.append(pool.submit(call))
        if len(pending) > depth:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


@contextmanager
def _pool(threads: int) -> Iterator[ThreadPoolExecutor]:
    """Give a pool of threads that drops what waits as soon as the work is broken off."""
    pool = ThreadPoolExecutor(threads)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
