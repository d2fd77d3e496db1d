"""The engine that runs a model on a Ray cluster, where every node holds the model's files.

``Ray`` is the engine. A request is cut into slices; Ray Data hands the slices to actors (``_ModelWorker``), each of
which loads the model once by its spec and answers a slice as the local engine does; and it hands the slices of a lost
actor or node out again. Answers return slice by slice in any order, and duplicates that a retry causes are dropped.
The functions follow in the order of a request: connecting, cutting, answering, deduplicating; then come single calls
(``map_unordered``) and what both need.
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
from acceptability.engine.processes import CallOutcome, ProgressListener, WorkerFunction, run_call
from acceptability.errors import (
    AcceptabilityError,
    EngineError,
    MissingExtra,
    ModelError,
    QueryError,
    SpecError,
    first_error_line,
)
from acceptability.models import load_model
from acceptability.models.files import is_importable
from acceptability.protocols import Model
from acceptability.types import ModelOutput, Query

# Small enough that losing a worker costs seconds of work, large enough that sentences share batches and prefixes.
SLICE = 512
"""The number of queries that a worker gets at once."""

# The slices of a window lie in Ray's object store, whose memory must not grow with the request.
WINDOW = 1 << 20
"""The number of queries that are on the cluster at once."""

_SECONDS_TO_CONNECT = 10.0
_SPECIAL_ADDRESSES = ("auto", "local")


@dataclass(frozen=True)
class Ray:
    """A Ray cluster, where every node holds the model.

    Args:
        address: The cluster, as HOST:PORT; "auto" for the one that this machine belongs to; "local" for
            a new one on this machine alone. None means "auto" if there is such a cluster, and "local" otherwise.
        workers: How many actors hold the model: by default one for each GPU, or one for each node of a cluster
            without GPUs.
    """

    address: str | None = None
    workers: int | None = None

    def __post_init__(self) -> None:
        if not is_importable("ray"):
            raise MissingExtra("--engine ray", "ray", "'acceptability[cluster]'")
        if self.address is not None and self.address not in _SPECIAL_ADDRESSES:
            _parse_address(self.address)
        if self.workers is not None and (isinstance(self.workers, bool) or not _is_count(self.workers)):
            raise SpecError(f"ray: workers is {self.workers!r}; expected a whole number above 0")

    def answers(
        self, model: Model, spec: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, ModelOutput]], None, None]:
        """Yield the outputs of the model slice by slice, each with the index of its query.

        Args:
            spec: The model's spec, by which the nodes load it.
            is_known: Whether the output of the query at an index is stored already; such queries are not run.
        """
        if spec is None:
            raise EngineError(
                f"the model {model.signature} was given as an object, but the nodes of a cluster load a model by its "
                "spec. Give a spec such as 'causal:FOLDER', or use the local engine."
            )
        worker_args = (spec, model.signature, model.device_class)
        with _connect_to_cluster(self.address):
            for start in range(0, len(queries), WINDOW):
                window = range(start, min(start + WINDOW, len(queries)))
                slices = _cut_slices(queries, window, is_known)
                if slices:
                    # Closed before the connection is: if the caller stops early, Ray Data has to cancel its tasks
                    # while the cluster can still be reached.
                    with closing(_stream_answers(worker_args, slices, self.workers)) as slice_answers:
                        yield from _deduplicate_answers(slice_answers, slices)

    def map_unordered(
        self, function: WorkerFunction, items: Sequence[Any], *, workers: int | None, on_progress: ProgressListener
    ) -> Generator[CallOutcome, None, None]:
        """Yield the outcome of a function for each item, as the calls end; they share GPUs if there are too few.

        Args:
            workers: The number of calls at once.
            on_progress: Never called: progress is not sent over the cluster.
        """
        with (
            _connect_to_cluster(self.address),
            closing(_run_calls(function, items, workers or self.workers)) as outcomes,
        ):
            yield from outcomes


@dataclass(frozen=True)
class _QuerySlice:
    """The queries that a worker gets at once.

    Args:
        indices: Their indices in the request.
        known_positions: The positions within the slice of those whose outputs are stored already.
    """

    indices: tuple[int, ...]
    queries: tuple[Query, ...]
    known_positions: frozenset[int]


@dataclass(frozen=True)
class _SliceAnswer:
    """What a worker returns for a slice: the outputs with their query indices, or an error.

    Errors travel as data: an exception in an actor would make Ray retry the slice, and wrap the message in tracebacks.

    Args:
        problem: The error message; it concerns one query if ``failed_index`` is given, and the worker otherwise.
    """

    scores: tuple[tuple[int, ModelOutput], ...] = ()
    failed_index: int | None = None
    problem: str | None = None


def _cut_slices(queries: Sequence[Query], window: range, is_known: Callable[[int], bool]) -> list[_QuerySlice]:
    """Return the slices of a window, without those whose outputs are all known.

    Slices hold texts of similar length, so that batches need little padding, the longest first.
    """
    # Longest first: a text that exceeds the model's limit fails at once and not after hours, and no worker is left
    # with the longest slice when the others have finished. The cut depends on the texts alone, and not on what is
    # known, so that a resumed run forms the same batches.
    longest_first = sorted(window, key=lambda index: -len(queries[index].full_text))
    cuts = (tuple(longest_first[start : start + SLICE]) for start in range(0, len(longest_first), SLICE))
    slices = (
        _QuerySlice(
            cut,
            tuple(queries[index] for index in cut),
            frozenset(position for position, index in enumerate(cut) if is_known(index)),
        )
        for cut in cuts
    )
    return [query_slice for query_slice in slices if len(query_slice.known_positions) < len(query_slice.indices)]


class _ModelWorker:
    """A Ray actor that holds the model and scores slices; its errors are answers too."""

    def __init__(self, spec: str, signature: str, device_class: str | None = None) -> None:
        self.spec = spec
        self.signature = signature
        self.device_class = device_class

    @cached_property
    def model(self) -> Model:
        """The model, loaded on first use."""
        model = load_model(self.spec)
        # Nodes may have other files under the same path. Their scores would be stored under the signature of ours.
        if model.signature != self.signature:
            raise ModelError(
                f"{self.spec} is another model there: {model.signature}, expected {self.signature}. "
                "Every node needs the same files."
            )
        # In half precision, outputs are stored under the class of device, which "auto" chooses on each node.
        if model.device_class != self.device_class:
            raise ModelError(
                f"{self.spec} computes on {model.device_class} there, and on {self.device_class} here: in half "
                f"precision, these give different scores. Add device={model.device_class!r} to the spec."
            )
        return model

    def __call__(self, row: Mapping[str, _QuerySlice]) -> dict[str, _SliceAnswer]:
        query_slice = row["item"]
        try:
            batches = local.run_queries(self.model, query_slice.queries, query_slice.known_positions.__contains__)
            scores = tuple((query_slice.indices[position], output) for batch in batches for position, output in batch)
            return {"item": _SliceAnswer(scores)}
        except QueryError as error:
            return {"item": _SliceAnswer(failed_index=query_slice.indices[error.index], problem=error.problem)}
        except AcceptabilityError as error:
            return {"item": _SliceAnswer(problem=f"on the node {socket.gethostname()}: {error}")}


def _stream_answers(
    worker_args: tuple[str, str, str | None], slices: list[_QuerySlice], workers: int | None
) -> Generator[_SliceAnswer, None, None]:
    """Yield the answers of the workers as they arrive.

    Args:
        worker_args: The spec, the signature and the class of device of the model.
    """
    import ray.data
    from ray.data.exceptions import ExecutionTimeoutError
    from ray.exceptions import RayError

    count, resources = _plan_workers(ray.nodes(), workers)
    # One block for each slice: Ray Data would otherwise merge slices into blocks, and retry or wait for whole blocks.
    data = ray.data.from_items(slices, override_num_blocks=len(slices))
    data.context.enable_progress_bars = False
    data.context.print_on_execution_start = False
    # Without it, the error is one of Ray's, and names only the operator that failed.
    data.context.raise_original_map_exception = True
    pool = ray.data.ActorPoolStrategy(min_size=1, max_size=count, initial_size=min(count, len(slices)))
    answers = data.map(_ModelWorker, fn_constructor_args=worker_args, compute=pool, **resources)
    try:
        for row in answers.iter_rows():
            yield row["item"]
    except (RayError, ExecutionTimeoutError) as error:
        raise EngineError(
            f"the cluster stopped: {_describe_failure(error)}. What was scored is stored. "
            "Every node needs acceptability, the packages and files of the model, and memory for it."
        ) from error


def _plan_workers(nodes: Sequence[Mapping[str, Any]], workers: int | None) -> tuple[int, dict[str, float]]:
    """Return the number of actors, and the resources that each reserves on its node.

    >>> _plan_workers([{"Alive": True, "Resources": {"CPU": 8.0}}, {"Alive": True, "Resources": {"CPU": 4.0}}], None)
    (2, {'num_cpus': 4})
    >>> _plan_workers([{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}], None)
    (2, {'num_cpus': 0, 'num_gpus': 1})
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus = sum(int(resources.get("GPU", 0)) for resources in alive)
    cpus = [int(resources["CPU"]) for resources in alive if resources.get("CPU", 0) >= 1]
    if gpus:
        # No CPUs are reserved beside a GPU: on a node whose CPUs others have reserved, the GPU would stay idle.
        return workers or gpus, {"num_cpus": 0, "num_gpus": 1}
    if not cpus:
        raise EngineError("the cluster has neither GPUs nor CPUs to work with. Start a node with `ray start`.")
    count = workers or len(cpus)
    # Bounded by the smallest node, since an actor that wants more CPUs than a node has never starts there.
    return count, {"num_cpus": max(1, min(min(cpus), sum(cpus) // count))}


def _deduplicate_answers(
    answers: Iterator[_SliceAnswer], slices: Sequence[_QuerySlice]
) -> Iterator[list[tuple[int, ModelOutput]]]:
    """Yield the first output of each query; raise the error that a worker returned."""
    missing = {
        index
        for query_slice in slices
        for position, index in enumerate(query_slice.indices)
        if position not in query_slice.known_positions
    }
    for answer in answers:
        if answer.problem and answer.failed_index is not None:
            raise QueryError(answer.failed_index, answer.problem)
        if answer.problem:
            raise ModelError(answer.problem)
        # Ray may run a slice again whose worker died after it had answered. The two answers may differ in rounding,
        # and the caller has to see one.
        new = [(index, output) for index, output in answer.scores if index in missing]
        missing.difference_update(index for index, _ in new)
        if new:
            yield new
    # Seen once Ray Data has ended without an error: a result with gaps must not pass for a complete one.
    if missing:
        raise EngineError(f"the cluster returned no output for {len(missing)} queries. Run it again to score them.")


def _run_calls(
    function: WorkerFunction, items: Sequence[Any], workers: int | None
) -> Generator[CallOutcome, None, None]:
    """Yield the outcome of a function for each item, with a bounded number of calls on the cluster."""
    import ray
    from ray.exceptions import RayError

    count, resources = _plan_calls(ray.nodes(), workers)
    # One retry, for a call whose node was lost. A training that fails twice is not a matter of chance.
    remote = ray.remote(max_retries=1, **resources)(run_call)
    running: dict[Any, int] = {}
    waiting = list(range(len(items)))[::-1]
    while waiting or running:
        while waiting and len(running) < count:
            item_index = waiting.pop()
            running[remote.remote(function, items[item_index], item_index, _ignore_progress)] = item_index
        (done,), _ = ray.wait(list(running), num_returns=1)
        item_index = running.pop(done)
        try:
            yield ray.get(done)
        except RayError as error:
            yield CallOutcome(item_index, problem=f"it failed on the cluster: {_describe_failure(error)}")


def _ignore_progress(_: object) -> None:
    """Drop a progress report, which cannot be sent from the cluster."""


def _plan_calls(nodes: Sequence[Mapping[str, Any]], workers: int | None) -> tuple[int, dict[str, float]]:
    """Return how many calls run at once, and what each reserves: a CPU core, and a GPU or a fraction of one.

    >>> _plan_calls([{"Alive": True, "Resources": {"CPU": 8.0, "GPU": 2.0}}], 4)
    (4, {'num_cpus': 1, 'num_gpus': 0.5})
    >>> _plan_calls([{"Alive": True, "Resources": {"CPU": 8.0}}], None)
    (8, {'num_cpus': 1})
    """
    alive = [node["Resources"] for node in nodes if node["Alive"]]
    gpus, cpus = (int(sum(resources.get(name, 0) for resources in alive)) for name in ("GPU", "CPU"))
    if gpus:
        count = workers or gpus
        # Fractions 1/n with a whole n, so that the shares of a GPU add up to exactly one.
        return count, {"num_cpus": 1, "num_gpus": 1 / -(-count // gpus)}
    if not cpus:
        raise EngineError("the cluster has neither GPUs nor CPUs to work with. Start a node with `ray start`.")
    return workers or cpus, {"num_cpus": 1}


def _describe_failure(error: BaseException) -> str:
    """Return the type and the message of the error at the root of one of Ray's."""
    from ray.exceptions import RayError

    root_cause = _find_root_cause(error)
    # The text of Ray's own errors is a traceback of the remote process, whose last line is the message.
    message = (
        str(root_cause).strip().splitlines()[-1] if isinstance(root_cause, RayError) else first_error_line(root_cause)
    )
    return f"{type(root_cause).__name__}: {message.strip(' .')}"


def _find_root_cause(error: BaseException) -> BaseException:
    """Return the first error of a chain of causes."""
    # Ray wraps an error several times, keeps the wrapped one in an attribute of its own, and gives some errors a cause
    # without a message, which says less than the error itself.
    cause = getattr(error, "cause", None) or error.__cause__
    return _find_root_cause(cause) if isinstance(cause, BaseException) and str(cause) else error


@contextmanager
def _connect_to_cluster(address: str | None) -> Iterator[None]:
    """Connect to a cluster for the duration of a ``with`` statement; an existing connection is used and stays open."""
    import ray
    import ray.data
    from ray.exceptions import RayError

    if ray.is_initialized():
        _check_same_cluster(address, ray.get_runtime_context().gcs_address)
        yield
        return
    _check_reachable(address)
    # Ray reports usage statistics to its makers by default; this package sends nothing that nobody asked for.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # Ray's C++ processes write warnings to stderr on shutdown, which no Python logger can silence.
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        with _silence_stderr():
            ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, RayError) as error:
        raise EngineError(f"cannot use Ray at {address or 'this machine'}: {first_error_line(error)}") from error
    try:
        with _silence_logger("ray.data"):
            yield
    finally:
        ray.shutdown()


def _check_same_cluster(address: str | None, connected: str) -> None:
    if address not in (None, "auto", connected):
        raise EngineError(
            f"Ray is connected to {connected} already, not to {address}. Call ray.shutdown() first, or name no address."
        )


def _check_reachable(address: str | None) -> None:
    """Refuse an address where no server listens."""
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    if address in _SPECIAL_ADDRESSES:
        return
    # Tried first, since ray.init retries an address without a cluster for minutes before it gives up.
    try:
        socket.create_connection(_parse_address(address), timeout=_SECONDS_TO_CONNECT).close()
    except OSError as error:
        raise EngineError(
            f"no Ray cluster answers at {address}: {first_error_line(error)}. "
            "`ray status` on its head node shows whether it runs, and `ray start` starts one."
        ) from error


def _parse_address(address: str) -> tuple[str, int]:
    """Return the host and the port of an address.

    >>> _parse_address("head:6379")
    ('head', 6379)
    """
    host, _, port = address.rpartition(":")
    if "://" in address:
        raise SpecError(
            f"the address {address!r} is for Ray's client, which cannot run Ray Data. "
            "Run the command on a node of the cluster, and write HOST:PORT, or auto."
        )
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise SpecError(f"the address {address!r} is not valid: write HOST:PORT, auto or local")
    return host.strip("[]"), int(port)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and value > 0


@contextmanager
def _silence_stderr() -> Iterator[None]:
    """Send stderr to /dev/null, for this process and those that it starts."""
    # File descriptor 2 and not sys.stderr: Ray's processes inherit the descriptor and know nothing of Python's object.
    saved_stderr, devnull = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    try:
        yield
    finally:
        os.dup2(saved_stderr, 2)
        os.close(saved_stderr)
        os.close(devnull)


@contextmanager
def _silence_logger(name: str) -> Iterator[None]:
    """Keep a library's log messages off the terminal; its log files stay as they are."""
    handlers = [handler for handler in logging.getLogger(name).handlers if isinstance(handler, logging.StreamHandler)]
    levels = [handler.level for handler in handlers]
    for handler in handlers:
        handler.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for handler, level in zip(handlers, levels, strict=True):
            handler.setLevel(level)
