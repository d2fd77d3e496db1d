"""The engine that runs a model on a Ray cluster: every node holds the model.

Queries travel in slices. A worker opens the model by its spelling, once, and answers a
slice as the local engine does. Ray Data hands the slices out, and hands those of a lost
worker or node out again; answers come back slice by slice, in any order, and each
query gets one, also where Ray has asked twice.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from acceptability.engine import local
from acceptability.engine.processes import Call, Hear, Outcome, once
from acceptability.errors import (
    AcceptabilityError,
    EngineError,
    MissingExtra,
    ModelError,
    QueryError,
    SpellingError,
    reason,
)
from acceptability.models import load_model
from acceptability.models.files import is_importable
from acceptability.protocols import Model
from acceptability.types import Query, Said

SLICE = 512
"""How many queries a worker gets at once: what a lost worker costs."""

WINDOW = 1 << 20
"""How many queries wait on the cluster at once, so that its memory does not grow with the request."""

_SECONDS_TO_CONNECT = 10.0
_FOUND_BY_RAY = ("auto", "local")


@dataclass(frozen=True)
class Ray:
    """A Ray cluster, where every node holds the model.

    Args:
        address: The cluster, as HOST:PORT; "auto" for the one that this machine belongs to; "local" for
            a Ray of its own on this machine. None takes the first of these two that there is.
        workers: How many hold the model: by default one for each GPU, or one for each node where there are none.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if not is_importable("ray"):
            raise MissingExtra("--engine ray", "ray", "'acceptability[cluster]'")
        if self.address is not None and self.address not in _FOUND_BY_RAY:
            _host_and_port(self.address)
        if self.workers is not None and (isinstance(self.workers, bool) or not _is_count(self.workers)):
            raise SpellingError(f"ray: workers is {self.workers!r}; expected a whole number above 0")

    def answers(
        self, model: Model, spelling: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        """Yield what the model says, slice by slice, with the place of each query."""
        if spelling is None:
            raise EngineError(
                f"the model {model.signature} was given as an object, and a cluster opens a model by its name. "
                "Give its spelling, such as 'causal:FOLDER', or leave the engine away."
            )
        told = (spelling, model.signature)
        with _connected(self.address):
            for start in range(0, len(queries), WINDOW):
                window = range(start, min(start + WINDOW, len(queries)))
                slices = _slices(queries, window, is_known)
                if slices:
                    # Closed here, while the connection still stands, also when the caller stops early.
                    with closing(_answered(told, slices, self.workers)) as found:
                        yield from _once(found, slices)

    def calls(
        self, function: Call, items: Sequence[Any], *, workers: int | None, hear: Hear
    ) -> Generator[Outcome, None, None]:
        """Yield the outcome of a function for each item, as they end; several share a GPU where there are fewer.

        What a call tells while it works does not come back.
        """
        with _connected(self.address), closing(_called(function, items, workers or self.workers)) as found:
            yield from found


@dataclass(frozen=True)
class _Slice:
    """Queries for one worker, their places in the request, and which of them are known already."""

    places: tuple[int, ...]
    queries: tuple[Query, ...]
    known: frozenset[int]


@dataclass(frozen=True)
class _Answer:
    """What a worker gives back for a slice: answers with their places, or why there are none.

    Args:
        problem: What is wrong, with one query if ``place`` says which, else with the worker.
    """

    said: tuple[tuple[int, Said], ...] = ()
    place: int | None = None
    problem: str | None = None


def _slices(queries: Sequence[Query], window: range, is_known: Callable[[int], bool]) -> list[_Slice]:
    """Return the slices that are not wholly known.

    Texts of like length go together, so that batches need little padding, and the longest go
    first: what is too long shows at once, and no worker is left alone with them at the end.
    The cut depends on the texts alone, so a run that goes on makes the same batches.
    """
    longest_first = sorted(window, key=lambda place: -len(queries[place].full))
    cuts = (tuple(longest_first[start : start + SLICE]) for start in range(0, len(longest_first), SLICE))
    slices = (
        _Slice(cut, tuple(queries[place] for place in cut), frozenset(i for i, p in enumerate(cut) if is_known(p)))
        for cut in cuts
    )
    return [each for each in slices if len(each.known) < len(each.places)]


class _Worker:
    """Holds the model and answers slices; one stands on each node. What goes wrong is an answer too."""

    def __init__(self, spelling: str, signature: str) -> None:
        self.spelling = spelling
        self.signature = signature

    @cached_property
    def model(self) -> Model:
        """The model, opened on first use and seen to be the one that was asked for."""
        model = load_model(self.spelling)
        if model.signature != self.signature:
            raise ModelError(
                f"{self.spelling} is another model there: {model.signature}, expected {self.signature}. "
                "Every node needs the same files."
            )
        return model

    def __call__(self, row: Mapping[str, _Slice]) -> dict[str, _Answer]:
        asked = row["item"]
        try:
            batches = local.answers(self.model, asked.queries, asked.known.__contains__)
            said = tuple((asked.places[i], each) for batch in batches for i, each in batch)
            return {"item": _Answer(said)}
        except QueryError as error:
            return {"item": _Answer(place=asked.places[error.index], problem=error.problem)}
        except AcceptabilityError as error:
            return {"item": _Answer(problem=f"on the node {socket.gethostname()}: {error}")}


def _answered(told: tuple[str, str], slices: list[_Slice], workers: int | None) -> Generator[_Answer, None, None]:
    """Yield the answers of workers, who are told a model's spelling and signature, as they are ready."""
    import ray.data
    from ray.data.exceptions import ExecutionTimeoutError
    from ray.exceptions import RayError

    count, resources = _share(ray.nodes(), workers)
    data = ray.data.from_items(slices, override_num_blocks=len(slices))
    data.context.enable_progress_bars = False
    data.context.print_on_execution_start = False
    data.context.raise_original_map_exception = True
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=count, initial_size=min(count, len(slices)))
    answers = data.map(_Worker, fn_constructor_args=told, compute=pool, **resources)
    try:
        for row in answers.iter_rows():
            yield row["item"]
    except (RayError, ExecutionTimeoutError) as error:
        first = _first_cause(error)
        # Ray's own errors quote a traceback, whose last line says what it was.
        said = str(first).strip().splitlines()[-1] if isinstance(first, RayError) else reason(first)
        raise EngineError(
            f"the cluster broke off: {type(first).__name__}: {said.strip(' .')}. What was scored is kept. "
            "Every node needs acceptability, the packages and files of the model, and memory for it."
        ) from error


def _called(function: Call, items: Sequence[Any], workers: int | None) -> Generator[Outcome, None, None]:
    """Yield the outcome of a function for each item; as many are on the cluster at once as there are workers."""
    import ray
    from ray.exceptions import RayError

    count, resources = _parts(ray.nodes(), workers)
    remote = ray.remote(max_retries=1, **resources)(once)
    running: dict[Any, int] = {}
    waiting = list(range(len(items)))[::-1]
    while waiting or running:
        while waiting and len(running) < count:
            place = waiting.pop()
            running[remote.remote(function, items[place], place, _unheard)] = place
        (done,), _ = ray.wait(list(running), num_returns=1)
        place = running.pop(done)
        try:
            yield ray.get(done)
        except RayError as error:
            first = _first_cause(error)
            said = str(first).strip().splitlines()[-1] if isinstance(first, RayError) else reason(first)
            yield Outcome(place, problem=f"it broke off on the cluster: {type(first).__name__}: {said.strip(' .')}")


def _unheard(_: object) -> None:
    """What a call on the cluster tells while it works."""


def _parts(nodes: Sequence[Mapping[str, Any]], workers: int | None) -> tuple[int, dict[str, float]]:
    """Return how many calls run at once, and what each takes of a node: a core, and a GPU or a part of one.

    >>> _parts([{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}], 4)
    (4, {'num_cpus': 1, 'num_gpus': 0.5})
    >>> _parts([{"Alive": True, "Resources": {"CPU": 8.0}}], None)
    (8, {'num_cpus': 1})
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus, cpus = (int(sum(each.get(name, 0) for each in alive)) for name in ("GPU", "CPU"))
    if gpus:
        count = workers or gpus
        return count, {"num_cpus": 1, "num_gpus": 1 / -(-count // gpus)}
    if not cpus:
        raise EngineError("the cluster has neither GPUs nor CPUs to work with. Start a node with `ray start`.")
    return workers or cpus, {"num_cpus": 1}


def _first_cause(error: BaseException) -> BaseException:
    """Return the error that all began with: Ray wraps it several times, and gives some an empty one as cause."""
    cause = getattr(error, "cause", None) or error.__cause__
    return _first_cause(cause) if isinstance(cause, BaseException) and str(cause) else error


def _once(answers: Iterator[_Answer], slices: Sequence[_Slice]) -> Iterator[list[tuple[int, Said]]]:
    """Yield each query's first answer, also where Ray has asked twice; raise what a worker could not do."""
    wanted = {place for each in slices for i, place in enumerate(each.places) if i not in each.known}
    for answer in answers:
        if answer.problem and answer.place is not None:
            raise QueryError(answer.place, answer.problem)
        if answer.problem:
            raise ModelError(answer.problem)
        new = [(place, said) for place, said in answer.said if place in wanted]
        wanted.difference_update(place for place, _ in new)
        if new:
            yield new
    if wanted:
        raise EngineError(f"the cluster left {len(wanted)} queries without an answer. Run it again to ask for these.")


def _share(nodes: Sequence[Mapping[str, Any]], workers: int | None) -> tuple[int, dict[str, float]]:
    """Return how many workers there are, and what each takes of a node.

    >>> _share([{"Alive": True, "Resources": {"CPU": 8.0}}, {"Alive": True, "Resources": {"CPU": 4.0}}], None)
    (2, {'num_cpus': 4})
    >>> _share([{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}], None)
    (2, {'num_cpus': 0, 'num_gpus': 1})
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = sum(int(each.get("GPU", 0)) for each in alive)
    cpus = [int(each["CPU"]) for each in alive if each.get("CPU", 0) >= 1]
    if gpus:
        return workers or gpus, {"num_cpus": 0, "num_gpus": 1}
    if not cpus:
        raise EngineError("the cluster has neither GPUs nor CPUs to work with. Start a node with `ray start`.")
    count = workers or len(cpus)
    return count, {"num_cpus": max(1, min(min(cpus), sum(cpus) // count))}


@contextmanager
def _connected(address: str | None) -> Iterator[None]:
    """Be connected to a cluster; a connection that the caller has made already is used, and left as it is."""
    import ray
    import ray.data
    from ray.exceptions import RayError

    if ray.is_initialized():
        _check_same(address, ray.get_runtime_context().gcs_address)
        yield
        return
    _check_reachable(address)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        with _silent_stderr():
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise EngineError(f"cannot use Ray at {address or 'this machine'}: {reason(error)}") from error
    try:
        with _hushed("ray.data"):
            yield
    finally:
        ray.shutdown()


def _check_same(address: str | None, connected: str) -> None:
    if address not in (None, "auto", connected):
        raise EngineError(
            f"Ray is connected to {connected} already, not to {address}. Call ray.shutdown() first, or name no address."
        )


def _check_reachable(address: str | None) -> None:
    """Refuse a place where nobody answers: Ray itself would try for minutes."""
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address in _FOUND_BY_RAY:
        return
    try:
        socket.create_connection(_host_and_port(address), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise EngineError(
            f"no Ray cluster answers at {address}: {reason(error)}. "
            "`ray status` on its head node shows whether it runs, and `ray start` starts one."
        ) from error


def _host_and_port(address: str) -> tuple[str, int]:
    """Return the two parts of an address.

    >>> _host_and_port("head:6379")
    ('head', 6379)
    """
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise SpellingError(
            f"the address {address!r} is for Ray's client, which cannot run Ray Data. "
            "Run the command on a node of the cluster, and write HOST:PORT, or auto."
        )
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SpellingError(f"the address {address!r} does not read: write HOST:PORT, auto or local")
    return host.strip("[]"), int(port)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Keep what Ray's own processes write to the terminal while they start away from it."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _hushed(name: str) -> Iterator[None]:
    """Keep a library's chatter off the terminal while it works for us; its files of logs stay as they are."""
    shown = [each for each in logging.getLogger(name).handlers if isinstance(each, logging.StreamHandler)]
    levels = [each.level for each in shown]
    for each in shown:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in zip(shown, levels, strict=True):
            each.setLevel(level)
