"""What accuracy and repulsion say together of a phenomenon (Park, Park and Song 2021, Tables 3 and 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

from acceptability.errors import MeasureError
from acceptability.measures.rows import checked_number

GRADES = ("high", "intermediate", "low")

CLASSES = {
    ("high", "high"): "strongly learned",
    ("high", "intermediate"): "moderately learned",
    ("high", "low"): "weakly learned",
    ("intermediate", "high"): "slightly confused",
    ("intermediate", "intermediate"): "moderately confused",
    ("intermediate", "low"): "highly confused",
    ("low", "high"): "strongly mis-learned",
    ("low", "intermediate"): "moderately mis-learned",
    ("low", "low"): "weakly mis-learned",
}
"""What is said, by the grade of the accuracy and that of the repulsion."""


@dataclass(frozen=True)
class Cutoffs:
    """Where accuracy and repulsion count as high or low.

    The paper gives none; these give its calls on all 22 types of its Table 4.

    Args:
        accuracy_high: High from here on.
        accuracy_low: Low up to here.
        repulsion_high: High from here on.
        repulsion_low: Low below this.
    """

    accuracy_high: float = 0.80
    accuracy_low: float = 0.35
    repulsion_high: float = 0.70
    repulsion_low: float = 0.40

    def __post_init__(self) -> None:
        for each in fields(self):
            value = checked_number(f"cut-offs: {each.name}", getattr(self, each.name))
            object.__setattr__(self, each.name, value)
        if not (self.accuracy_low < self.accuracy_high and self.repulsion_low <= self.repulsion_high):
            raise MeasureError(f"{self!r}: what is low must lie below what is high")


@dataclass(frozen=True)
class ErrorType:
    """A kind of contrast that a model errs on.

    Args:
        accuracy: The share of its contrasts that are in order.
        rating: What people gave its unacceptable sentences, on average.
    """

    name: str
    accuracy: float
    rating: float


def grades(accuracy: float, repulsion: float, cutoffs: Cutoffs | None = None) -> tuple[str, str]:
    """Return whether accuracy and repulsion are "high", "intermediate" or "low".

    >>> grades(0.297, 0.29)
    ('low', 'low')
    """
    at = cutoffs or Cutoffs()
    is_low, is_high = accuracy <= at.accuracy_low, accuracy >= at.accuracy_high
    accuracy_grade = GRADES[0] if is_high else GRADES[2] if is_low else GRADES[1]
    is_low, is_high = repulsion < at.repulsion_low, repulsion >= at.repulsion_high
    return accuracy_grade, GRADES[0] if is_high else GRADES[2] if is_low else GRADES[1]


def interaction(accuracy: float, repulsion: float, cutoffs: Cutoffs | None = None) -> str:
    """Return what accuracy and repulsion say together.

    >>> interaction(0.0, 0.88), interaction(0.563, 0.52)
    ('strongly mis-learned', 'moderately confused')
    """
    return CLASSES[grades(accuracy, repulsion, cutoffs)]


def error_types(rows: Sequence[ErrorType], threshold: float = 0.80) -> tuple[list[ErrorType], list[ErrorType]]:
    """Return the types that a model has not learned, below a threshold of accuracy, and those that it has.

    A type at the threshold is learned. A rank-sum test of their ratings tells whether people too are less
    sure of what the model has not learned.

    >>> below, above = error_types([ErrorType("a", 0.5, -0.1), ErrorType("b", 0.8, -0.6)])
    >>> [each.name for each in below], [each.rating for each in above]
    (['a'], [-0.6])
    """
    below = [each for each in rows if each.accuracy < threshold]
    return below, [each for each in rows if each.accuracy >= threshold]
