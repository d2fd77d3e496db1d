"""Engines: where models run (this machine, or a Ray cluster), and in which batches.

``load_engine`` gives an engine by its spec. ``local.py`` runs the batches that ``plan.py`` packs, ``ray.py`` sends the
slices of a request over a cluster, and ``processes.py`` runs independent calls, such as trainings, in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from acceptability import registry
from acceptability.engine import local
from acceptability.protocols import Engine, Model
from acceptability.types import ModelOutput, Query

if TYPE_CHECKING:
    from acceptability.engine.processes import CallOutcome, ProgressListener, WorkerFunction


@dataclass(frozen=True)
class Local:
    """The engine for this machine, which runs the model object that it is given."""

    def answers(
        self, model: Model, spec: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[Sequence[tuple[int, ModelOutput]], None, None]:
        """Yield the outputs of the model batch by batch, each with the index of its query.

        Args:
            spec: Not needed here, since the model is loaded already.
            is_known: Whether the output of the query at an index is stored already; such queries are not run.
        """
        yield from local.run_queries(model, queries, is_known)

    def map_unordered(
        self, function: WorkerFunction, items: Sequence[Any], *, workers: int | None, on_progress: ProgressListener
    ) -> Generator[CallOutcome, None, None]:
        """Yield the outcome of a function for each item, as the calls end.

        Args:
            workers: The number of processes; one by default.
            on_progress: Called with the index of an item and what its call reports.
        """
        # Imported here, since scoring never needs it and `import acceptability` has to stay fast.
        from acceptability.engine import processes

        yield from processes.map_unordered(function, items, workers=workers or 1, on_progress=on_progress)


def load_engine(spec: str) -> Engine:
    """Return the engine that a spec describes.

    >>> load_engine("local")
    Local()
    """
    engine: Engine = registry.make("engine", spec)
    return engine
