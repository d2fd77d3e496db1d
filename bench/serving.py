"""A worker: a process with one tool and one model in it, asked and answering in lines of JSON.

    {"do": "load", "folder": …, "dtype": …, …}  ->  {"seconds": …, "notes": […], "versions": {…}, …}
    {"do": "score", "texts": […], "batch": …}   ->  {"seconds": …, "scores": […], "before": …, "peak": …}

Nothing here needs more than Python, so that a tool in an environment of its own can be served. Whatever a tool prints
goes to the log: the answers have a channel of their own. A worker that fails ends, and its log says why.
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
    """What a worker is to load.

    Args:
        options: What only this tool knows: a spelling, a metric.
    """

    folder: str
    dtype: str
    device: str
    threads: int
    options: Mapping[str, Any] = field(default_factory=dict)


class Scorer(Protocol):
    """A loaded model: the summed log-probability of each text, in nats.

    ``notes`` says what had to be mended before the tool ran at all.
    """

    notes: Sequence[str]

    def scores(self, texts: Sequence[str], batch: int) -> list[float]: ...


def serve(load: Callable[[Order], Scorer], packages: Sequence[str]) -> None:
    """Answer until the input ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    order = Order(**_asked("load", sys.stdin.readline()))
    _settle(order)
    meter, start = Meter("cpu"), time.perf_counter()
    scorer = load(order)
    seconds = time.perf_counter() - start
    versions = {name: _release(name) for name in packages}
    _say(answers, {"seconds": seconds, "notes": list(scorer.notes), "versions": versions, **asdict(meter.found())})
    for line in sys.stdin:
        asked = _asked("score", line)
        _say(answers, _timed(scorer, asked["texts"], asked["batch"], order.device))


def _timed(scorer: Scorer, texts: Sequence[str], batch: int, device: str) -> dict[str, Any]:
    meter, start = Meter(device), time.perf_counter()
    scores = scorer.scores(texts, batch)
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "scores": scores, **asdict(meter.found())}


def _settle(order: Order) -> None:
    """Give every tool the same number of threads, and no reason to ask a network for anything."""
    os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", TOKENIZERS_PARALLELISM="true")
    import torch

    torch.set_num_threads(order.threads)


def _release(name: str) -> str:
    """Return the release of a package, also of one that is found on PYTHONPATH and not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return str(getattr(import_module(name), "__version__", "of unknown version"))


def _asked(what: str, line: str) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(line)
    found = asked.pop("do")
    if found != what:
        raise ValueError(f"a worker was asked to {found}; expected {what}")
    return asked


def _say(answers: Any, answer: Mapping[str, Any]) -> None:
    print(json.dumps(answer), file=answers, flush=True)
