"""What runs when, and where: plans of work, and engines that carry them out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acceptability import registry
from acceptability.engine import local
from acceptability.protocols import Engine, Model
from acceptability.types import Query, Said

if TYPE_CHECKING:
    from acceptability.engine.processes import Call, Hear, Outcome


@dataclass(frozen=True)
class Local:
    """This machine, where the model is already open."""

    def answers(
        self, model: Model, spelling: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        """Yield what the model says, batch by batch, with the place of each query."""
        yield from local.answers(model, queries, is_known)

    def calls(
        self, function: Call, items: Sequence[Any], *, workers: int | None, hear: Hear
    ) -> Generator[Outcome, None, None]:
        """Yield the outcome of a function for each item, as they end; so many processes of this machine work."""
        from acceptability.engine import processes

        yield from processes.calls(function, items, workers=workers or 1, hear=hear)


def load_engine(text: str) -> Engine:
    """Return the engine of a spelling.

    >>> load_engine("local")
    Local()
    """
    engine: Engine = registry.make("engine", text)
    return engine
