"""Calls of one function that run side by side, each in a process of its own on this machine.

A process is started afresh (spawned, as CUDA wants it) with one thread of arithmetic, so that a number does not hang
on how many others are at work; it takes call after call. What goes wrong in a call is its outcome; a process that
dies takes only its own call with it, and another one stands in for it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any

from acceptability.errors import AcceptabilityError

Call = Callable[[Any, Callable[[Any], None]], Any]
"""A function that can be found by its name in another process: given an item, and what it may tell while it works."""

Hear = Callable[[int, Any], None]
"""Told the place of an item, and what its call says."""

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SECONDS_BETWEEN = 0.1
_SECONDS_TO_END = 10.0


@dataclass(frozen=True)
class Outcome:
    """How a call ended.

    Args:
        place: Which item it was about, counted from 0.
        value: What the function returned.
        problem: Why it returned nothing; None where all went well.
    """

    place: int
    value: Any = None
    problem: str | None = None


@dataclass(frozen=True)
class _Worker:
    """A process, and the item that it is at."""

    process: SpawnProcess
    place: int


def calls(function: Call, items: Sequence[Any], *, workers: int, hear: Hear) -> Generator[Outcome, None, None]:
    """Yield the outcome of a function for each item, in the order in which they end."""
    waiting = deque(enumerate(items))
    team: dict[Connection, _Worker] = {}
    try:
        while waiting or team:
            while waiting and len(team) < workers:
                pipe, process = _started(function)
                team[pipe] = _Worker(process, _handed(pipe, waiting.popleft()))
            ready = wait(list(team))
            for pipe in [each for each in team if each in ready]:
                outcome = _heard(pipe, team[pipe], hear)
                if outcome is not None:
                    process = team.pop(pipe).process
                    if waiting and not pipe.closed:
                        team[pipe] = _Worker(process, _handed(pipe, waiting.popleft()))
                    else:
                        _ended(pipe, process)
                    yield outcome
    finally:
        for pipe, worker in team.items():
            worker.process.terminate()
            _ended(pipe, worker.process)


def once(function: Call, item: Any, place: int, tell: Callable[[Any], None]) -> Outcome:
    """Return the outcome of one call, made here; only errors of ours are outcomes, others are not caught."""
    try:
        return Outcome(place, function(item, tell))
    except AcceptabilityError as error:
        return Outcome(place, problem=str(error))


def _started(function: Call) -> tuple[Connection, SpawnProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(function, theirs), daemon=True)
    with _one_thread():
        process.start()
    theirs.close()
    return ours, process


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let a process that is started here do its arithmetic in one thread: libraries read this when they are loaded."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _handed(pipe: Connection, item: tuple[int, Any]) -> int:
    """Give a process its next item, and return the item's place; one that died meanwhile shows when it is heard."""
    try:
        pipe.send(item)
    except (BrokenPipeError, ConnectionResetError):
        pass
    return item[0]


def _heard(pipe: Connection, worker: _Worker, hear: Hear) -> Outcome | None:
    """Return the outcome that a process sends, or that its death is; None where it only tells how far it is."""
    try:
        said = pipe.recv()
    except (EOFError, ConnectionResetError):
        pipe.close()
        worker.process.join(_SECONDS_TO_END)
        return Outcome(worker.place, problem=_death(worker.process.exitcode))
    if isinstance(said, Outcome):
        return said
    hear(worker.place, said)
    return None


def _death(status: int | None) -> str:
    """Return what is known of a process that died.

    >>> _death(-9)
    'its process was killed (SIGKILL), perhaps because the memory did not suffice: try fewer workers'
    """
    if status is not None and status < 0:
        name = signal.Signals(-status).name
        memory = ", perhaps because the memory did not suffice: try fewer workers" if name == "SIGKILL" else ""
        return f"its process was killed ({name}){memory}"
    return f"its process ended with exit status {status}; what went wrong is printed above"


def _ended(pipe: Connection, process: SpawnProcess) -> None:
    """Let a process go: with nobody at the other end of its pipe it ends by itself."""
    pipe.close()
    process.join(_SECONDS_TO_END)
    if process.is_alive():
        process.kill()
        process.join()
    process.close()


def _serve(function: Call, pipe: Connection) -> None:
    """Answer items until there are no more. An interrupt is for the process that started this one to act upon.

    Whatever is printed here is talk: stdout belongs to the data of the process that started this one.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with closing(pipe), redirect_stdout(sys.stderr):
        while True:
            try:
                place, item = pipe.recv()
            except EOFError:
                return
            pipe.send(once(function, item, place, _seldom(pipe.send)))


def _seldom(send: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return what sends news on, but not more often than anybody reads them."""
    last = -_SECONDS_BETWEEN

    def tell(news: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= _SECONDS_BETWEEN:
            last = time.monotonic()
            send(news)

    return tell
