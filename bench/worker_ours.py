"""The worker that scores with this package: without the store, through it, or from it.

Options of a load request: ``spec``, the model with ``{folder}`` for its location, and ``{dtype}`` and ``{device}``;
``mode``, one of

- ``answers``: the engine alone, nothing is stored (as the other tools work);
- ``store``: ``score()`` with an empty store, in a temporary home folder;
- ``known``: ``score()`` of texts whose scores are stored already.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from acceptability import Sentence, Suite, load_model, score
from acceptability.engine.local import run_queries
from acceptability.types import ModelOutput, Query, TokenScores
from bench.serving import Order, Scorer, serve


class Ours:
    """A model of this package, which chooses its batches itself."""

    notes: Sequence[str] = ()

    def __init__(self, order: Order) -> None:
        spec = order.options["spec"].format(folder=order.folder, dtype=order.dtype, device=order.device)
        self.model: Any = load_model(spec)
        modes: dict[str, Callable[[Sequence[str]], list[float]]] = {
            "answers": self._score_with_engine,
            "store": self._score_with_empty_store,
            "known": self._score_with_store,
        }
        self._score = modes[order.options.get("mode", "answers")]
        self._home: tempfile.TemporaryDirectory[str] | None = None
        # The first run initialises kernels and buffers, which must not be timed.
        self._score_with_engine(["The cat sleeps."])

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the summed log-probability of each text."""
        return self._score(texts)

    def _score_with_engine(self, texts: Sequence[str]) -> list[float]:
        scores = [0.0] * len(texts)
        for batch in run_queries(self.model, [Query(text) for text in texts], lambda index: False):
            for index, output in batch:
                scores[index] = _sum_logprobs(output)
        return scores

    def _score_with_empty_store(self, texts: Sequence[str]) -> list[float]:
        self._home = tempfile.TemporaryDirectory(prefix="bench-home-")
        return self._score_with_store(texts)

    def _score_with_store(self, texts: Sequence[str]) -> list[float]:
        self._home = self._home or tempfile.TemporaryDirectory(prefix="bench-home-")
        os.environ["ACCEPTABILITY_HOME"] = self._home.name
        suite = Suite("bench", tuple(Sentence(str(index), text) for index, text in enumerate(texts)))
        scores = score(suite, self.model)
        return [scores[str(index)] for index in range(len(texts))]


def _sum_logprobs(output: ModelOutput) -> float:
    assert isinstance(output, TokenScores)
    return float(output.logprobs.sum())


def load(order: Order) -> Scorer:
    """Return the requested model, loaded and run once."""
    return Ours(order)


if __name__ == "__main__":
    serve(load, ["acceptability", "torch", "transformers", "numpy"])
