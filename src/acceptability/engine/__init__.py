"""What runs when, and where: plans of work, and engines that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from acceptability import registry
from acceptability.engine import local
from acceptability.protocols import Engine, Model
from acceptability.types import Query, Said


@dataclass(frozen=True)
class Local:
    """This machine, where the model is already open."""

    def answers(
        self, model: Model, spelling: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        """Yield what the model says, batch by batch, with the place of each query."""
        yield from local.answers(model, queries, is_known)


def load_engine(text: str) -> Engine:
    """Return the engine of a spelling.

    >>> load_engine("local")
    Local()
    """
    engine: Engine = registry.make("engine", text)
    return engine
