"""One number for several trainings of the same model: mean, deviation, best, and their majority vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures.options import check_count
from acceptability.measures.rows import checked_number
from acceptability.types import Scores


@dataclass(frozen=True)
class Restarts:
    """What several restarts reach.

    Args:
        std: The standard deviation; None where there are too few restarts for it.
        ddof: What the deviation divides by is n - ddof.
        n: How many restarts there are.
    """

    mean: float
    std: float | None
    max: float
    ddof: int
    n: int


def over_restarts(values: Sequence[float], *, ddof: int = 1) -> Restarts:
    """Return mean, standard deviation and maximum of a measure over restarts.

    Args:
        ddof: 1 for the deviation of a sample, 0 for that of a population.

    >>> over_restarts([0.5, 1.0], ddof=0)
    Restarts(mean=0.75, std=0.25, max=1.0, ddof=0, n=2)
    """
    check_count("over_restarts: ddof", ddof, 0)
    given = np.array([checked_number("over_restarts: a value", each) for each in values])
    if not len(given):
        raise Undefined("there are no restarts")
    std = float(given.std(ddof=ddof)) if len(given) > ddof else None
    return Restarts(float(given.mean()), std, float(given.max()), ddof, len(given))


def majority(restarts: Sequence[Scores], *, threshold: float = 0.0, tie: int = 0) -> Scores:
    """Return 1 for each sentence that most restarts find acceptable, else 0; measure it with a threshold of 0.5.

    Args:
        threshold: A score above it is a vote for "acceptable".
        tie: What a sentence gets that as many find acceptable as not: 0, or 1.

    >>> votes = [Scores({"a": one, "b": other}, "m") for one, other in ((1.0, -1.0), (2.0, 3.0), (0.0, -2.0))]
    >>> dict(majority(votes).values)
    {'a': 1.0, 'b': 0.0}
    """
    if not restarts:
        raise MeasureError("a majority needs the scores of one restart at least; there are none")
    threshold = checked_number("majority: threshold", threshold)
    if isinstance(tie, bool) or tie not in (0, 1):
        raise MeasureError(f"majority: tie is {tie!r}; expected 0 or 1")
    first, *others = restarts
    for each in others:
        if each.values.keys() != first.values.keys():
            raise ScoreError(
                f"{first.model!r} and {each.model!r} have scores of different sentences; none can be missing"
            )
    votes = np.mean([each.of(first.values) > threshold for each in restarts], axis=0)
    elected = np.where(votes == 0.5, float(tie), (votes > 0.5).astype(np.float64))
    how = f"majority(threshold={threshold!r}, tie={tie})"
    return Scores(
        dict(zip(first.values, elected.tolist(), strict=True)),
        f"{how} of {', '.join(each.model for each in restarts)}",
        reduction=first.reduction if len({each.reduction for each in restarts}) == 1 else "",
        signature=f"{how}[{'; '.join(each.signature or each.model for each in restarts)}]",
    )
