"""A worker: a process with one tool and one model, which reads requests and writes responses as lines of JSON.

    {"do": "load", "folder": …, "dtype": …, …}  ->  {"seconds": …, "notes": […], "versions": {…}, …}
    {"do": "score", "texts": […], "batch": …}   ->  {"seconds": …, "scores": […], "before": …, "peak": …}

This module needs only Python, so that it also runs in the environment of another tool. Whatever a tool prints goes to
the log, since the responses have a stream of their own. A worker that fails ends, and its log has the error.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Protocol

from bench.memory import Meter


@dataclass(frozen=True)
class Order:
    """The model that a worker loads, and how.

    Args:
        options: Options of this tool only, such as a spec or a metric.
    """

    folder: str
    dtype: str
    device: str
    threads: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """A loaded model: the summed log-probability of each text, in nats.

    ``notes`` lists the changes that the tool needed to run at all.
    """

    notes: Sequence[str]

    def scores(self, texts: Sequence[str], batch: int) -> list[float]: ...


def serve(load: Callable[[Order], Scorer], packages: Sequence[str]) -> None:
    """Process requests until the input ends."""
    # Standard output becomes the log, so that nothing that a tool prints is taken for a response.
    responses = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    order = Order(**_parse_request("load", sys.stdin.readline()))
    _configure_process(order)
    meter, start = Meter("cpu"), time.perf_counter()
    scorer = load(order)
    seconds = time.perf_counter() - start
    versions = {name: _find_release(name) for name in packages}
    _respond(
        responses, {"seconds": seconds, "notes": list(scorer.notes), "versions": versions, **asdict(meter.measure())}
    )
    for line in sys.stdin:
        request = _parse_request("score", line)
        _respond(responses, _time_scoring(scorer, request["texts"], request["batch"], order.device))


def _time_scoring(scorer: Scorer, texts: Sequence[str], batch: int, device: str) -> dict[str, Any]:
    meter, start = Meter(device), time.perf_counter()
    scores = scorer.scores(texts, batch)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "scores": scores, **asdict(meter.measure())}


def _configure_process(order: Order) -> None:
    """Give every tool the same number of threads, and keep it from using the network."""
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", TOKENIZERS_PARALLELISM="true")
    import torch

    torch.set_num_threads(order.threads)


def _find_release(name: str) -> str:
    """Return the release of a package, which may be on PYTHONPATH without being installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return str(getattr(import_module(name), "__version__", "unknown"))


def _parse_request(action: str, line: str) -> dict[str, Any]:
    request: dict[str, Any] = json.loads(line)
    requested = request.pop("do")
    if requested != action:
        raise ValueError(f"a worker got the request {requested!r}; expected {action!r}")
    return request


def _respond(responses: Any, response: Mapping[str, Any]) -> None:
    print(json.dumps(response), file=responses, flush=True)
