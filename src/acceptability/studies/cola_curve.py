"""How well a classifier does as it learns from more sentences: nested training sets, and a line through the results.

Figure 3 of Warstadt, Singh and Bowman (2019): 100, 300, 1,000, 3,000 and all 8,551 sentences of CoLA's training set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from acceptability.errors import SuiteError, Undefined
from acceptability.stats.samples import check_level
from acceptability.types import Sentence, Suite

SIZES = (100, 300, 1000, 3000, 8551)


@dataclass(frozen=True)
class Point:
    """What one restart reaches after so many sentences."""

    size: int
    seed: int
    mcc: float


@dataclass(frozen=True)
class Line:
    """A least-squares line through MCC against the logarithm (base 10) of the size.

    Args:
        slope: What ten times as many sentences add.
        low, high: The interval of the slope.
    """

    intercept: float
    slope: float
    low: float
    high: float
    n: int
    level: float
    _middle: float
    _spread: float
    _error: float

    def at(self, size: int) -> tuple[float, float, float]:
        """Return the mean MCC that the line gives for a size, and the ends of its interval."""
        x = math.log10(size)
        fitted = self.intercept + self.slope * x
        reach = _quantile(self.level, self.n - 2) * self._error
        reach *= math.sqrt(1 / self.n + (x - self._middle) ** 2 / self._spread)
        return fitted, fitted - reach, fitted + reach


def subsets(suite: Suite, sizes: Sequence[int] = SIZES, *, seed: int = 0) -> dict[int, Suite]:
    """Return training sets of several sizes, each within all larger ones, by a seed.

    Each has the labels in the shares of the whole, to the nearest sentence, and the sources nearly so. The order is
    that of the suite; the largest size may be the whole suite, which is then itself.
    """
    whole = len(suite.sentences)
    for size in sizes:
        if not 2 <= size <= whole:
            raise SuiteError(f"{size} sentences cannot be drawn from the {whole:,} of suite {suite.name!r}")
    random = np.random.default_rng(seed)
    good, bad = (_ordered(suite.sentences, label, random) for label in (1, 0))
    return {size: _subset(suite, size, seed, good, bad) for size in sizes}


def _subset(suite: Suite, size: int, seed: int, good: Sequence[int], bad: Sequence[int]) -> Suite:
    if size == len(suite.sentences):
        return suite
    first = round(size * len(good) / len(suite.sentences))
    places = sorted((*good[:first], *bad[: size - first]))
    return Suite(f"{suite.name}, {size} by seed {seed}", tuple(suite.sentences[place] for place in places))


def _ordered(sentences: Sequence[Sentence], label: int, random: np.random.Generator) -> list[int]:
    """Return the places of a label's sentences, so that whatever comes first has all sources in their shares."""
    by_source: dict[str, list[int]] = {}
    for place, each in enumerate(sentences):
        if each.label == label:
            by_source.setdefault(each.tags.get("source", ""), []).append(place)
    when: dict[int, float] = {}
    for source in sorted(by_source):
        places = random.permutation(by_source[source]).tolist()
        # A source's sentences come at even steps, from a random first one on.
        began = random.random()
        when |= {place: (number + began) / len(places) for number, place in enumerate(places)}
    return sorted(when, key=lambda place: (when[place], place))


def fitted_line(points: Sequence[Point], *, level: float = 0.95) -> Line:
    """Return the line through all points; the interval takes them as independent, with errors of equal spread.

    >>> line = fitted_line([Point(100, 0, 0.1), Point(1000, 0, 0.25), Point(1000, 1, 0.15), Point(10000, 0, 0.3)])
    >>> round(line.slope, 6), round(line.at(100)[0], 6)
    (0.1, 0.1)
    """
    check_level(level)
    x, y = np.log10([each.size for each in points]), np.array([each.mcc for each in points])
    if len(points) < 3 or x.min() == x.max():
        raise Undefined(
            f"{len(points)} points of {len(set(x.tolist()))} sizes: a line with its interval needs three of two"
        )
    middle, spread = float(x.mean()), float(((x - x.mean()) ** 2).sum())
    slope = float((x - middle) @ (y - y.mean())) / spread
    intercept = float(y.mean()) - slope * middle
    rest = float(((y - intercept - slope * x) ** 2).sum())
    if rest <= 1e-24 * float(y @ y):
        raise Undefined("all points lie on the line: nothing tells how far it may be off, so that there is no interval")
    error = math.sqrt(rest / (len(points) - 2))
    reach = _quantile(level, len(points) - 2) * error / math.sqrt(spread)
    return Line(intercept, slope, slope - reach, slope + reach, len(points), level, middle, spread, error)


def _quantile(level: float, df: int) -> float:
    """Return how many standard errors an interval reaches to each side, by Student's t."""
    return float(scipy.special.stdtrit(df, 0.5 + level / 2))
