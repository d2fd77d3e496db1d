"""Worker processes: calls of one function that run in parallel on this machine, each in a process of its own.

``map_unordered`` is the entry: a pool of spawned processes that take one item after another from a pipe. Each has one
thread of arithmetic, so that a result does not depend on the number of workers. An error that a call raises becomes its
outcome; a process that dies takes only its own call with it and is replaced.

``multiprocessing.Pool`` and ``ProcessPoolExecutor`` do not serve here: when a worker is killed, for instance by the
kernel for want of memory, the former hangs and the latter gives up all calls.
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

WorkerFunction = Callable[[Any, Callable[[Any], None]], Any]
"""A module-level function, which another process can import, of an item and a function that reports progress."""

ProgressListener = Callable[[int, Any], None]
"""Called with the index of an item and the progress that its call reports."""

_THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_SECONDS_BETWEEN_REPORTS = 0.1
_SECONDS_TO_EXIT = 10.0


@dataclass(frozen=True)
class CallOutcome:
    """How a call ended.

    Args:
        item_index: The index of the item, counted from 0.
        value: What the function returned.
        problem: The error message if it returned nothing; None otherwise.
    """

    item_index: int
    value: Any = None
    problem: str | None = None


@dataclass(frozen=True)
class _WorkerProcess:
    """A process and the index of the item that it works on."""

    process: SpawnProcess
    item_index: int


def map_unordered(
    function: WorkerFunction, items: Sequence[Any], *, workers: int, on_progress: ProgressListener
) -> Generator[CallOutcome, None, None]:
    """Yield the outcome of a function for each item, in the order in which the calls end.

    Args:
        workers: The number of processes.
        on_progress: Called in this process with whatever a call reports.
    """
    waiting = deque(enumerate(items))
    running: dict[Connection, _WorkerProcess] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                pipe, process = _start_process(function)
                running[pipe] = _WorkerProcess(process, _send_item(pipe, waiting.popleft()))
            ready = wait(list(running))
            for pipe in [connection for connection in running if connection in ready]:
                outcome = _receive_outcome(pipe, running[pipe], on_progress)
                if outcome is not None:
                    process = running.pop(pipe).process
                    # The process is reused: starting one means importing PyTorch, which takes seconds. A closed
                    # pipe means that it died, and the loop above starts another.
                    if waiting and not pipe.closed:
                        running[pipe] = _WorkerProcess(process, _send_item(pipe, waiting.popleft()))
                    else:
                        _stop_process(pipe, process)
                    yield outcome
    finally:
        # Reached with calls still running if the caller stops early or is interrupted: nobody wants their outcomes.
        for pipe, worker in running.items():
            worker.process.terminate()
            _stop_process(pipe, worker.process)


def _start_process(function: WorkerFunction) -> tuple[Connection, SpawnProcess]:
    """Return the pipe to a new process that waits for items, and the process."""
    # Spawned, never forked: CUDA cannot be used in a fork of a process that has used it, and a fork copies locks of
    # OpenMP and of PyTorch in whatever state their threads have left them.
    context = multiprocessing.get_context("spawn")
    parent_end, child_end = context.Pipe()
    # A daemon ends with this process, also when this one ends without coming to its `finally`.
    process = context.Process(target=_serve, args=(function, child_end), daemon=True)
    with _limit_to_one_thread():
        process.start()
    # As long as this process held the child's end open too, the death of the child would never show as an EOF.
    child_end.close()
    return parent_end, process


@contextmanager
def _limit_to_one_thread() -> Iterator[None]:
    """Let processes that are started meanwhile compute in one thread.

    The number of threads changes the order in which sums are rounded, and processes with a thread for each core
    would slow each other down.
    """
    # Through the environment, since the libraries of arithmetic read it once, when the child loads them.
    before = {name: os.environ.get(name) for name in _THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(_THREAD_VARIABLES, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _send_item(pipe: Connection, item: tuple[int, Any]) -> int:
    """Send a process its next item, and return the index of the item."""
    try:
        pipe.send(item)
    except (BrokenPipeError, ConnectionResetError):
        # The process has died since its last outcome. The next read of the pipe reports that, with its exit status.
        pass
    return item[0]


def _receive_outcome(pipe: Connection, worker: _WorkerProcess, on_progress: ProgressListener) -> CallOutcome | None:
    """Return the outcome that a process sends, or one that reports its death; None for a progress report."""
    try:
        message = pipe.recv()
    except (EOFError, ConnectionResetError):
        pipe.close()
        # The exit status is known only once the process has been waited for.
        worker.process.join(_SECONDS_TO_EXIT)
        return CallOutcome(worker.item_index, problem=_describe_exit(worker.process.exitcode))
    if isinstance(message, CallOutcome):
        return message
    on_progress(worker.item_index, message)
    return None


def _describe_exit(status: int | None) -> str:
    """Return why a process died, as far as its exit status shows.

    >>> _describe_exit(-9)
    'its process was killed (SIGKILL), perhaps because memory ran out: try fewer workers'
    """
    if status is not None and status < 0:
        name = signal.Signals(-status).name
        # SIGKILL without anybody's doing is how Linux's out-of-memory killer ends a process.
        memory = ", perhaps because memory ran out: try fewer workers" if name == "SIGKILL" else ""
        return f"its process was killed ({name}){memory}"
    return f"its process ended with exit status {status}; its own error message is printed above"


def _stop_process(pipe: Connection, process: SpawnProcess) -> None:
    """End a process: it returns by itself once its pipe is closed, and is killed if it does not."""
    pipe.close()
    process.join(_SECONDS_TO_EXIT)
    if process.is_alive():
        process.kill()
        process.join()
    # Releases the file descriptors of the process now; a long study starts hundreds of them.
    process.close()


def _serve(function: WorkerFunction, pipe: Connection) -> None:
    """Answer items until the pipe is closed. This is the main function of a worker process."""
    # Ctrl-C goes to every process of the terminal. Only the parent acts on it, and then ends its workers; each of
    # them would print a traceback otherwise.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # stdout carries the data of the parent's command: a library that prints in a worker must not add to it.
    with closing(pipe), redirect_stdout(sys.stderr):
        while True:
            try:
                item_index, item = pipe.recv()
            except EOFError:
                return
            pipe.send(run_call(function, item, item_index, _throttle(pipe.send)))


def run_call(function: WorkerFunction, item: Any, item_index: int, report: Callable[[Any], None]) -> CallOutcome:
    """Return the outcome of one call, made in this process.

    Args:
        report: Called by the function with its progress.
    """
    # Only our own errors are outcomes. Any other is a defect: it ends the process, and its traceback is printed.
    try:
        return CallOutcome(item_index, function(item, report))
    except AcceptabilityError as error:
        return CallOutcome(item_index, problem=str(error))


def _throttle(send: Callable[[Any], None]) -> Callable[[Any], None]:
    """Return a function that sends progress reports, but drops those that follow within a tenth of a second.

    A training reports every step. All of them would keep the parent busy, and fill the pipe until the worker blocks.
    """
    last_sent = -_SECONDS_BETWEEN_REPORTS

    def report(update: Any) -> None:
        nonlocal last_sent
        if time.monotonic() - last_sent >= _SECONDS_BETWEEN_REPORTS:
            last_sent = time.monotonic()
            send(update)

    return report
