"""Who is timed against whom, and the processes they run in: each in its own, one at work at a time."""

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
    """Something that stops the bench, with what to do about it."""


@dataclass(frozen=True)
class Contender:
    """One tool with the settings it is timed under.

    Args:
        tool: ``ours``, ``minicons`` or ``lm-eval``: which worker it runs in.
        options: What that worker is told (see there).
        batches: The batch sizes to try; the fastest is kept. One means that the tool chooses by itself.
    """

    name: str
    tool: str
    options: Mapping[str, Any] = field(default_factory=dict)
    batches: tuple[int, ...] = (1,)


@dataclass(frozen=True)
class Match:
    """Ours under a peer's conventions, and that peer.

    Args:
        lead: What stands before a text, after a start token; None where there is no start token.
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


def _ours(spelling: str) -> Contender:
    return Contender("ours", "ours", {"spelling": spelling})


def matches(kind: str, device: str) -> list[Match]:
    """Return what is timed for a kind of model. The spellings give the very numbers that the peer gives."""

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
    """A running worker. Use it in a ``with`` statement; it ends with it."""

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
        """Have the worker load a model, and return what it says of itself."""
        return self._ask("load", asdict(Order(folder, dtype, device, threads, dict(self.contender.options))))

    def score(self, texts: Sequence[str], batch: int) -> dict[str, Any]:
        """Have the worker score texts, and return seconds, scores and memory."""
        return self._ask("score", {"texts": list(texts), "batch": batch})

    def _ask(self, what: str, order: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(json.dumps({"do": what, **order}), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            said = self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
            raise BenchError(
                "\n".join([f"{self.contender.name} failed to {what}; the end of {self._log}:", *said])
            ) from None
        answer: dict[str, Any] = json.loads(line)
        return answer


def environment(*, ours: bool) -> dict[str, str]:
    """Return a worker's environment: it finds the bench, our own worker also the package; PYTHONPATH is kept."""
    found = [ROOT, *([ROOT / "src"] if ours else [])]
    given = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*map(str, found), *([given] if given else [])])}
