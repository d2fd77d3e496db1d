"""The engine that runs a model on this machine.

A batch is begun before the one before it is collected, so that a GPU computes while we
prepare, store and reduce. One that does not fit into memory goes on in halves.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from acceptability.engine.plan import by_length, by_prefix, by_size, distinct
from acceptability.errors import OutOfMemory, QueryError
from acceptability.protocols import Encoded, Model
from acceptability.types import Query, Said

_log = logging.getLogger(__name__)

BUDGET = 1024
"""How many token positions go through a model at once, unless it says otherwise."""

WINDOW = 65_536
"""How many queries are encoded at once, so that memory does not grow with the request."""

_SECONDS_BETWEEN_SEARCHES = 30.0

Answers = list[tuple[int, Said]]
Done = TypeVar("Done")


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
    memory = _Memory()
    with _no_search() as search:
        for window in _windows(model, queries, is_known):
            for batch in window.plan:
                asked = [each for each in batch if not is_known(window.places[each][0])]
                for some in memory.cut(window, asked):
                    search()
                    yield from memory.begin(model, window, some)
        yield from memory.collected()


def _windows(model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]) -> Iterator[Window]:
    for start in range(0, len(queries), WINDOW):
        if not all(map(is_known, range(start, min(start + WINDOW, len(queries))))):
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


@dataclass
class _Memory:
    """What is on its way, and how much of it the memory holds, once it has been found too small.

    Args:
        most: How many token positions go through the model at once; None as long as everything has fitted.
        waiting: What collects the batch that was begun last.
    """

    most: int | None = None
    waiting: Callable[[], Answers] | None = None

    def cut(self, window: Window, asked: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield a batch, in as many pieces as the memory wants."""
        piece: list[int] = []
        size = 0
        for each in asked:
            size += window.encoded[each].size
            if piece and self.most is not None and size > self.most:
                yield piece
                piece, size = [], window.encoded[each].size
            piece.append(each)
        if piece:
            yield piece

    def begin(self, model: Model, window: Window, asked: Sequence[int]) -> Iterator[Answers]:
        """Begin a batch, and yield the one before it; one that does not fit is begun again in halves."""
        collect, problem = _tried(lambda: _begun(model, window, asked))
        if collect is None:
            # What the batch before it holds is given back first.
            yield from self.collected()
            yield from self._halved(model, window, asked, problem)
        else:
            before, self.waiting = self.waiting, lambda: self._within(model, window, asked, collect)
            if before:
                yield before()

    def collected(self) -> Iterator[Answers]:
        """Yield the batch that was begun last."""
        before, self.waiting = self.waiting, None
        if before:
            yield before()

    def _within(self, model: Model, window: Window, asked: Sequence[int], collect: Callable[[], Answers]) -> Answers:
        """Return the answers of a batch, also where its lack of memory shows only now."""
        found, problem = _tried(collect)
        return found or list(chain.from_iterable(self._halved(model, window, asked, problem)))

    def _halved(self, model: Model, window: Window, asked: Sequence[int], problem: str) -> Iterator[Answers]:
        """Yield the answers to a batch that did not fit, from batches half as large, or smaller."""
        if len(asked) == 1:
            raise QueryError(window.places[asked[0]][0], f"it does not fit into memory even alone ({problem})")
        if self.most is None:
            _log.warning("%s; going on with smaller batches", problem)
        size = sum(window.encoded[each].size for each in asked)
        self.most = min(self.most or size, max(size // 2, 1))
        middle = len(asked) // 2
        for half in (asked[:middle], asked[middle:]):
            found, again = _tried(lambda half=half: _begun(model, window, half)())  # type: ignore[misc]
            if found is None:
                yield from self._halved(model, window, half, again)
            else:
                yield found


def _tried(work: Callable[[], Done]) -> tuple[Done | None, str]:
    """Return what some work gives, or None and the problem if the memory does not suffice for it.

    The error itself is let go, since it would hold on to all that was in memory when it was raised.
    """
    try:
        return work(), ""
    except OutOfMemory as error:
        return None, str(error)


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
def _no_search() -> Iterator[Callable[[], None]]:
    """Keep Python from searching for cycles among millions of fresh tokens, which have none.

    Gives what searches once in a while, for what others leave behind; windows are never searched.
    """
    was_on, last = gc.isenabled(), time.monotonic()

    def search() -> None:
        nonlocal last
        if time.monotonic() - last > _SECONDS_BETWEEN_SEARCHES:
            gc.collect(1)
            last = time.monotonic()

    gc.disable()
    try:
        yield search
    finally:
        if was_on:
            gc.enable()
