"""The engine that runs a model on this machine: windows of queries, batches, and halves of a batch that does not fit.

``run_queries`` is the entry, and the rest follows in the order in which it is called: queries are encoded and planned
a window at a time (``plan.py`` packs the batches), and a ``_BatchRunner`` puts the batches through the model. It starts
each batch before it collects the previous one, so that a GPU computes while the CPU prepares, stores and reduces. A
batch that runs out of memory is halved until it fits (``_run_halves``), and later batches are cut to that size.
"""

from __future__ import annotations

import gc
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from acceptability.engine.plan import batch_by_length, batch_by_prefix, batch_by_size, group_duplicates
from acceptability.errors import OutOfMemory, QueryError
from acceptability.outputs import EncodedColumns, FlatRows, IndexedOutputs
from acceptability.protocols import EncodedQuery, Model
from acceptability.timings import time_stage
from acceptability.types import ModelOutput, Query

_log = logging.getLogger(__name__)

# Encoded queries take far more memory than their texts. A window bounds them whatever the size of the request, and is
# still long enough for sentences with a shared prefix to meet in one batch.
WINDOW = 65_536
"""The number of queries that are encoded at once."""

_SECONDS_BETWEEN_GC = 30.0

IndexedRows = tuple[NDArray[np.int64], NDArray[np.int64] | None]
"""Indices of queries, and the row of each; None if each has a row of its own."""

IndexedScores = Sequence[tuple[int, ModelOutput]]
"""Outputs of a batch, each with the index of its query in the request."""

ReturnType = TypeVar("ReturnType")


@dataclass(frozen=True)
class QueryWindow:
    """Consecutive queries of a request, without duplicates, encoded and packed into batches.

    Args:
        indices: For each distinct query, all its indices in the request, of which the first comes first.
        encoded_queries: The distinct queries, encoded by the model.
        sizes: The size of each encoded query.
        batches: The batches, as row numbers of ``encoded_queries``.
    """

    indices: FlatRows
    encoded_queries: Sequence[EncodedQuery]
    sizes: Sequence[int]
    batches: Sequence[Sequence[int]]

    @cached_property
    def first_indices(self) -> list[int]:
        """The index of the first occurrence of each distinct query in the request."""
        indices: list[int] = self.indices.values[self.indices.starts].tolist()
        return indices

    def take_indices(self, rows: Sequence[int]) -> IndexedRows:
        """Return the indices in the request of some distinct queries, and the place of each one's query among these."""
        flat = self.indices.take(np.array(rows, np.int64))
        return flat.values, None if len(flat.values) == len(rows) else np.repeat(np.arange(len(rows)), flat.lengths)


def run_queries(model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]) -> Iterator[IndexedScores]:
    """Yield the outputs of a model batch by batch, each output with the index of its query.

    A query that occurs several times is run once.

    Args:
        is_known: Whether the output of the query at an index is stored already; such queries are not run.
    """
    runner = _BatchRunner()
    with _pause_gc() as collect_garbage:
        for window in _iterate_windows(model, queries, is_known):
            any_known = any(map(is_known, window.first_indices))
            for batch in window.batches:
                # Known queries are dropped from the finished plan and not before planning: what a resumed run has
                # left is then batched as in an uninterrupted one.
                unknown_rows = [row for row in batch if not is_known(window.first_indices[row])] if any_known else batch
                for rows in runner.cut_to_limit(window, unknown_rows):
                    collect_garbage()
                    yield from runner.start_batch(model, window, rows)
        yield from runner.collect_pending()


def _iterate_windows(model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]) -> Iterator[QueryWindow]:
    """Yield the windows of a request, without those whose outputs are all known."""
    starts = [
        start
        for start in range(0, len(queries), WINDOW)
        if not all(map(is_known, range(start, min(start + WINDOW, len(queries)))))
    ]
    for window in _prepare_windows(model, queries, starts):
        # A window holds many objects that live until its end. Frozen, they are left out of every garbage collection
        # that runs meanwhile, here or in the caller.
        gc.freeze()
        try:
            yield window
        finally:
            gc.unfreeze()


def _prepare_windows(model: Model, queries: Sequence[Query], starts: Sequence[int]) -> Iterator[QueryWindow]:
    """Yield the windows that begin at some queries, each but the first prepared while the one before is running."""
    if not starts:
        return
    # The first in this thread, since it loads the network: only then does the model know whether a GPU will run it.
    window = _prepare_window(model, queries, starts[0])
    if not model.encodes_in_background:
        yield window
        yield from (_prepare_window(model, queries, start) for start in starts[1:])
        return
    # While a GPU computes, this thread mostly waits. One window ahead, not all of them, so that memory stays bounded.
    with ThreadPoolExecutor(max_workers=1) as pool:
        for start in starts[1:]:
            following = pool.submit(_prepare_window, model, queries, start)
            yield window
            with time_stage("tokenise"):
                window = following.result()
        yield window


def _prepare_window(model: Model, queries: Sequence[Query], start: int) -> QueryWindow:
    """Return the window that begins at a query, encoded and planned."""
    window = queries[start : start + WINDOW]
    indices = group_duplicates(window)
    try:
        with time_stage("tokenise"):
            encoded = model.encode([window[index] for index in indices.values[indices.starts].tolist()])
    except QueryError as error:
        # The model counts within what it was given; the caller knows the queries of the whole request.
        raise QueryError(start + int(indices[error.index][0]), error.problem) from error
    request_indices = replace(indices, values=indices.values + start)
    sizes = encoded.sizes if isinstance(encoded, EncodedColumns) else [query.size for query in encoded]
    with time_stage("open model"):
        # How a network packs its batches shows when its weights are loaded.
        packing, budget = model.packing, model.budget
    with time_stage("tokenise"):
        return QueryWindow(request_indices, encoded, sizes, _plan_batches(encoded, sizes, packing, budget))


def _plan_batches(encoded_queries: Any, sizes: Sequence[int], packing: str, budget: int) -> list[list[int]]:
    """Return the batches, packed as the model prefers."""
    in_columns = isinstance(encoded_queries, EncodedColumns)
    if packing == "prefix":
        rows = encoded_queries.token_rows if in_columns else [encoded.ids for encoded in encoded_queries]
        return batch_by_prefix(rows, sizes, budget=budget)
    if packing == "length":
        lengths = (
            encoded_queries.token_rows.lengths.tolist()
            if in_columns
            else [encoded.length for encoded in encoded_queries]
        )
        return batch_by_length(lengths, sizes, budget=budget)
    return batch_by_size(sizes, budget=budget)


@dataclass
class _BatchRunner:
    """Runs batches, one ahead of the one that is collected, and shrinks them once memory has run out.

    Args:
        max_tokens: The most token positions in a batch; None as long as every batch has fitted.
        pending: The function that collects the batch that was started last.
    """

    max_tokens: int | None = None
    pending: Callable[[], IndexedScores] | None = None

    def cut_to_limit(self, window: QueryWindow, rows: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield a batch in pieces that fit into ``max_tokens``."""
        # The usual case, without a look at each row.
        if self.max_tokens is None:
            yield from [rows] if rows else []
            return
        piece: list[int] = []
        size = 0
        for row in rows:
            size += window.sizes[row]
            # The limit is read for every row, since the piece that was yielded last may have lowered it.
            if piece and size > self.max_tokens:
                yield piece
                piece, size = [], window.sizes[row]
            piece.append(row)
        if piece:
            yield piece

    def start_batch(self, model: Model, window: QueryWindow, rows: Sequence[int]) -> Iterator[IndexedScores]:
        """Start a batch and yield the outputs of the previous one; halve a batch that does not fit."""
        collect, problem = _catch_out_of_memory(lambda: _begin_forward_pass(model, window, rows))
        if collect is None:
            # The previous batch may still hold device memory that only collecting it releases. Without that, the halves
            # could fail as well.
            yield from self.collect_pending()
            yield from self._run_halves(model, window, rows, problem)
        else:
            previous, self.pending = self.pending, lambda: self._collect_or_halve(model, window, rows, collect)
            if previous:
                yield previous()

    def collect_pending(self) -> Iterator[IndexedScores]:
        """Yield the outputs of the batch that was started last."""
        # Cleared before it is called: if collecting raises, the same batch is not collected a second time.
        previous, self.pending = self.pending, None
        if previous:
            yield previous()

    def _collect_or_halve(
        self, model: Model, window: QueryWindow, rows: Sequence[int], collect: Callable[[], IndexedScores]
    ) -> IndexedScores:
        """Return the outputs of a batch; if memory runs out only now, those of its halves."""
        # CUDA works asynchronously, so that a forward pass may fail as late as the copy of its results.
        scores, problem = _catch_out_of_memory(collect)
        # A batch is never empty, so that no scores mean that memory ran out.
        return scores or list(chain.from_iterable(self._run_halves(model, window, rows, problem)))

    def _run_halves(
        self, model: Model, window: QueryWindow, rows: Sequence[int], problem: str
    ) -> Iterator[IndexedScores]:
        """Yield the outputs of a batch that did not fit, from halves of it, or halves of these."""
        if len(rows) == 1:
            raise QueryError(window.first_indices[rows[0]], f"it does not fit into memory even alone ({problem})")
        # One warning per run: later batches are cut to the new limit without a message.
        if self.max_tokens is None:
            _log.warning("%s; continuing with smaller batches", problem)
        # Later batches are limited by token positions, with which memory grows; this batch is halved by rows, so that
        # both halves have at least one. The limit is at least 1, since the `or` of the next halving would ignore a 0.
        size = sum(window.sizes[row] for row in rows)
        self.max_tokens = min(self.max_tokens or size, max(size // 2, 1))
        middle = len(rows) // 2
        for half in (rows[:middle], rows[middle:]):
            # Collected at once, not one ahead: two halves in flight would need the memory of the whole.
            scores, half_problem = _catch_out_of_memory(lambda half=half: _begin_forward_pass(model, window, half)())  # type: ignore[misc]
            if scores is None:
                yield from self._run_halves(model, window, half, half_problem)
            else:
                yield scores


def _catch_out_of_memory(work: Callable[[], ReturnType]) -> tuple[ReturnType | None, str]:
    """Return the result of a function and "", or None and the problem if memory ran out."""
    try:
        return work(), ""
    except OutOfMemory as error:
        # Only the message is returned: the traceback refers to every tensor of the frames that it passed through, and
        # as long as the error lived, the retry would have less memory than the attempt that failed.
        return None, str(error)


def _begin_forward_pass(model: Model, window: QueryWindow, rows: Sequence[int]) -> Callable[[], IndexedScores]:
    """Start a forward pass, and return the function that collects its outputs for every duplicate of each query."""
    encoded = window.encoded_queries
    with time_stage("forward"):
        collect = model.begin(
            encoded.take(rows) if isinstance(encoded, EncodedColumns) else [encoded[row] for row in rows]
        )

    def collect_indexed() -> IndexedScores:
        with time_stage("forward"):
            outputs = collect()
        if len(outputs) != len(rows):
            raise ValueError(f"the model returned {len(outputs)} outputs for {len(rows)} queries")
        # A duplicate gets the output of its first occurrence.
        indices, owners = window.take_indices(rows)
        return IndexedOutputs(indices, outputs, owners)

    return collect_indexed


@contextmanager
def _pause_gc() -> Iterator[Callable[[], None]]:
    """Turn Python's cyclic garbage collector off, and yield a function that runs it at most every 30 seconds.

    Encoding allocates millions of tuples, which would trigger collection after collection, each walking over all of
    them to look for cycles that are not there. Reference counting, which frees nearly everything, continues.
    """
    was_enabled, last_collection = gc.isenabled(), time.monotonic()

    def collect_garbage() -> None:
        nonlocal last_collection
        if time.monotonic() - last_collection > _SECONDS_BETWEEN_GC:
            # Not never: the libraries behind a model may leave cycles, which would add up in a long run.
            gc.collect(1)
            last_collection = time.monotonic()

    gc.disable()
    try:
        yield collect_garbage
    finally:
        # A caller who had turned it off keeps it off.
        if was_enabled:
            gc.enable()
