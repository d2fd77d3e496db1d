"""How much a suite's scores depend on the precision of the arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.models import in_precision
from acceptability.scoring import Progress, as_suite, score
from acceptability.types import Suite

PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class Difference:
    """How far the scores in one precision are from those in another.

    Args:
        largest: The largest difference of a sentence's score, and ``sentence`` where it is.
        changed: How many contrasts are decided otherwise, of ``contrasts``.
    """

    dtype: str
    against: str
    largest: float
    sentence: str
    mean: float
    changed: int
    contrasts: int


def precision_differences(
    suite: Suite | str,
    model: str,
    reduce: str | None = None,
    *,
    dtypes: Sequence[str] = PRECISIONS[1:],
    against: str = PRECISIONS[0],
    progress: Progress | None = None,
) -> list[Difference]:
    """Return how far a suite's scores in each precision are from those in float32."""
    suite = as_suite(suite)
    ids = [sentence.id for sentence in suite.sentences]
    base = score(suite, in_precision(model, against), reduce, progress=progress)
    found = []
    for dtype in dtypes:
        other = score(suite, in_precision(model, dtype), reduce, progress=progress)
        gaps = np.abs(other.of(ids) - base.of(ids))
        sides = [(scores[each.better] > scores[each.worse]) for each in suite.contrasts for scores in (base, other)]
        changed = sum(one != two for one, two in zip(sides[::2], sides[1::2], strict=True))
        worst = int(gaps.argmax())
        found.append(
            Difference(
                dtype, against, float(gaps[worst]), ids[worst], float(gaps.mean()), changed, len(suite.contrasts)
            )
        )
    return found
