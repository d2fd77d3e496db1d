"""The worker that scores with this package: without the store, through it, or from it.

Options of its order: ``spelling``, the model with ``{folder}`` for its place and ``{dtype}``, ``{device}``;
``way``, one of

- ``answers``: the engine alone, nothing kept (what the peers do);
- ``store``: ``score()`` into an empty store, in a home that is thrown away;
- ``known``: ``score()`` of texts that the store holds already.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from acceptability import Sentence, Suite, load_model, score
from acceptability.engine.local import answers
from acceptability.types import Query, Said, TokenScores
from bench.serving import Order, Scorer, serve


class Ours:
    """A model of ours; batches are its own affair."""

    notes: Sequence[str] = ()

    def __init__(self, order: Order) -> None:
        spelling = order.options["spelling"].format(folder=order.folder, dtype=order.dtype, device=order.device)
        self.model: Any = load_model(spelling)
        ways: dict[str, Callable[[Sequence[str]], list[float]]] = {
            "answers": self._answered,
            "store": self._stored,
            "known": self._known,
        }
        self._way = ways[order.options.get("way", "answers")]
        self._home: tempfile.TemporaryDirectory[str] | None = None
        self._answered(["The cat sleeps."])

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the summed log-probability of each text."""
        return self._way(texts)

    def _answered(self, texts: Sequence[str]) -> list[float]:
        found = [0.0] * len(texts)
        for batch in answers(self.model, [Query(text) for text in texts], lambda place: False):
            for place, said in batch:
                found[place] = _sum(said)
        return found

    def _stored(self, texts: Sequence[str]) -> list[float]:
        self._home = tempfile.TemporaryDirectory(prefix="bench-home-")
        return self._known(texts)

    def _known(self, texts: Sequence[str]) -> list[float]:
        self._home = self._home or tempfile.TemporaryDirectory(prefix="bench-home-")
        os.environ["ACCEPTABILITY_HOME"] = self._home.name
        suite = Suite("bench", tuple(Sentence(str(place), text) for place, text in enumerate(texts)))
        scores = score(suite, self.model)
        return [scores[str(place)] for place in range(len(texts))]


def _sum(said: Said) -> float:
    assert isinstance(said, TokenScores)
    return float(said.logprobs.sum())


def load(order: Order) -> Scorer:
    """Return the model of the order, read and run once."""
    return Ours(order)


if __name__ == "__main__":
    serve(load, ["acceptability", "torch", "transformers", "numpy"])
