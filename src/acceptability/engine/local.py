"""The engine that runs a model on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from acceptability.engine.plan import batches
from acceptability.errors import QueryError
from acceptability.protocols import Model
from acceptability.types import Query, Said

BUDGET = 1024
"""How many token positions go through a model at once."""

WINDOW = 65_536
"""How many queries are encoded at once, so that memory does not grow with the request."""


def answers(
    model: Model, queries: Sequence[Query], is_known: Callable[[int], bool]
) -> Iterator[list[tuple[int, Said]]]:
    """Yield what the model says, batch by batch, with the place of each query.

    Batches are planned over all queries; those that are wholly known are skipped, and
    known queries of the others are left out.
    """
    for start in range(0, len(queries), WINDOW):
        window = queries[start : start + WINDOW]
        if all(is_known(start + place) for place in range(len(window))):
            continue
        try:
            encoded = model.encode(window)
        except QueryError as error:
            raise QueryError(start + error.index, error.problem) from error
        for batch in batches([each.size for each in encoded], budget=BUDGET):
            asked = [place for place in batch if not is_known(start + place)]
            if asked:
                said = model.run([encoded[place] for place in asked])
                yield [(start + place, each) for place, each in zip(asked, said, strict=True)]
