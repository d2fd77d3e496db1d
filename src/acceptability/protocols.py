"""What we need of a model, an engine, a reduction and a measure; anything that has it is one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Protocol

from acceptability.types import Query, Said, Scores, Suite, Units


class Encoded(Protocol):
    """A query in a model's own terms; ``size`` tells the plan how much work it is."""

    @property
    def size(self) -> int:
        """How many token positions a forward pass over it computes."""
        ...


class Model(Protocol):
    """Whatever can be asked about texts. It knows nothing of suites or stores.

    It may say how it likes its work: ``budget``, how many token positions at once; ``packing``, which
    queries go together, "size" (the default), "length" (its queries then have a ``length``) or "prefix"
    (they have ``ids``); and ``begin(batch)``, which returns what collects the answers of ``run``.

    One that weighs a sentence against the other one of its contrast says so by an attribute
    ``needs_rival = True``; its queries then carry a ``rival``.
    """

    @property
    def signature(self) -> str:
        """All that can change what it says, from its files, without loading it."""
        ...

    def encode(self, queries: Sequence[Query]) -> Sequence[Encoded]:
        """Return the queries in the model's own terms."""
        ...

    def run(self, batch: Sequence[Encoded]) -> Sequence[Said]:
        """Return what the model says to each, in the same order."""
        ...


class Engine(Protocol):
    """A place where models run: this machine, or a cluster."""

    def answers(
        self, model: Model, spelling: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        """Yield what the model says to the queries that are not known, each with its place, once.

        Args:
            spelling: How the model is written, for an engine that opens it elsewhere; None if it has no name.
        """
        ...


class Reduction(Protocol):
    """A way from what a model said to one number, where higher is more acceptable."""

    @property
    def signature(self) -> str:
        """All that can change the number."""
        ...

    def __call__(self, said: Said) -> float:
        """Return the number."""
        ...


class Measure(Protocol):
    """A question about scores, as a value whose ``repr`` reads back.

    One whose value is the mean of a column says so by an attribute ``mean_of = "column"``; intervals
    and tests then take less time. One that needs tags on sentences names them in ``needs_tags``; and
    one whose row is a set of sentences says by which tag these are ``gathered_by``.
    """

    @property
    def needs(self) -> str:
        """What a suite must have: "contrasts", "labels", "ratings", "rated contrasts", "sets" or "predictions"."""
        ...

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return the rows that count. Sees the whole suite; grouping comes afterwards."""
        ...

    def value(self, units: Units) -> float:
        """Return the one number that the rows give; raise Undefined where there is none."""
        ...
