"""The tools that are timed against each other, and their worker processes, of which only one works at a time."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.serving import Order

ROOT = Path(__file__).resolve().parents[1]
_LAST_LINES = 25


class BenchError(Exception):
    """An error that ends a benchmark; the message says what to do."""


@dataclass(frozen=True)
class Contender:
    """A tool with the settings under which it is timed.

    Args:
        tool: ``ours``, ``minicons`` or ``lm-eval``, which selects the worker.
        options: The options of that worker (see its module).
        batches: The batch sizes to try; the fastest is used. With a single 1 the tool chooses its batches itself.
    """

    name: str
    tool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    batches: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Match:
    """Our package under the conventions of another tool, and that tool.

    Args:
        lead: The text between the start token and the sentence; None if there is no start token.
    """

    name: str
    ours: Contender
    peer: Contender
    lead: str | None = None


_WORKERS = {"ours": "bench.worker_ours", "minicons": "bench.worker_minicons", "lm-eval": "bench.worker_lm_eval"}
PEERS = tuple(tool for tool in _WORKERS if tool != "ours")

_BATCHES = {
    ("minicons", "causal"): (1, 8, 16, 32),
    ("minicons", "masked"): (1, 8, 32),
    ("lm-eval", "causal"): (8, 16, 32, 64),
}
_MORE_ON_A_GPU = (128, 256, 512)


def _ours(spec: str) -> Contender:
    return Contender("ours", "ours", {"spec": spec})


def matches(kind: str, device: str) -> list[Match]:
    """Return the comparisons for a kind of model. The specs reproduce the scores of the other tool exactly."""

    def peer(tool: str, **options: Any) -> Contender:
        more = _MORE_ON_A_GPU if device.startswith("cuda") else ()
        return Contender(tool, tool, options, _BATCHES[tool, kind] + more)

    end = "dtype='{dtype}', device='{device}')"
    if kind == "causal":
        return [
            Match("as minicons", _ours("causal:{folder}(preset='minicons', " + end), peer("minicons")),
            Match("as lm-eval", _ours("causal:{folder}(preset='lm-eval', " + end), peer("lm-eval"), " "),
        ]
    return [
        Match(
            name,
            _ours("masked:{folder}(preset='minicons', variant='" + variant + "', " + end),
            peer("minicons", metric=metric),
        )
        for name, variant, metric in (("PLL", "pll", "original"), ("PLL word l2r", "word_l2r", "within_word_l2r"))
    ]


class Worker:
    """A worker process. It starts and ends with a ``with`` statement."""

    def __init__(self, contender: Contender, python: Path, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self.contender = contender
        self._log = logs / f"{contender.name}.log"
        self._python = python

    def __enter__(self) -> Worker:
        with self._log.open("w", encoding="utf-8") as log:
            self._process = subprocess.Popen(
                [str(self._python), "-m", _WORKERS[self.contender.tool]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment(ours=self.contender.tool == "ours"),
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error:
            self._process.kill()
        self._process.communicate()

    def load(self, folder: str, *, dtype: str, device: str, threads: int) -> dict[str, Any]:
        """Have the worker load a model, and return the time, the notes and the versions of its packages."""
        return self._request("load", asdict(Order(folder, dtype, device, threads, dict(self.contender.options))))

    def score(self, texts: Sequence[str], batch: int) -> dict[str, Any]:
        """Have the worker score texts, and return seconds, scores and memory."""
        return self._request("score", {"texts": list(texts), "batch": batch})

    def _request(self, action: str, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": action, **order}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            log_lines = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
            raise BenchError(
                "\n".join([f"{self.contender.name} failed to {action}; the end of {self._log}:", *log_lines])
            ) from None
        answer: dict[str, Any] = json.loads(line)
        return answer


def environment(*, ours: bool) -> dict[str, str]:
    """Return a worker's environment variables: its PYTHONPATH has the benchmarks and, for our worker, the package."""
    # An installed package has its bytecode. Where none is written, each start would compile all of our modules anew.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    paths = [ROOT, *([ROOT / "src"] if ours else [])]
    inherited = os.environ.get("PYTHONPATH")
    return {**kept, "PYTHONPATH": os.pathsep.join([*map(str, paths), *([inherited] if inherited else [])])}
