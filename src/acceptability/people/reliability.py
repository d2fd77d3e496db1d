"""How far people agree with each other: reliability, and the ceiling that it sets for a model.

Every function takes a table of answers: a row a participant, a column a sentence, nan where there is no answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.correlation import pearson, ranks
from acceptability.people.responses import Bools
from acceptability.types import Floats

Places = NDArray[np.int64]

_LEAST_DEFINED = 0.95
_LEAST_SPLITS = 40


@dataclass(frozen=True)
class SplitHalf:
    """How two random halves of the participants agree, over many splits.

    Args:
        reliability: The mean of the corrected correlations, with the middle of them (low, high): how much the
            choice of halves matters, and not how much another sample of people would.
        correlation: The mean correlation of two halves, not corrected.
        undefined: How many splits had no correlation.
    """

    reliability: float
    low: float
    high: float
    correlation: float
    splits: int
    undefined: int = 0


@dataclass(frozen=True)
class LeaveOneOut:
    """How each participant agrees with the mean of the others; None where that is undefined."""

    each: tuple[float | None, ...]

    @property
    def mean(self) -> float:
        """The mean correlation, over those that are defined."""
        return float(np.mean([value for value in self.each if value is not None]))


@dataclass(frozen=True)
class Ceiling:
    """A model's correlation with ratings, set against the most that it could be.

    Args:
        ceiling: The square root of the ratings' reliability: how the true ratings would correlate with these means.
        share: Correlation through ceiling (Spearman's correction for attenuation); it may exceed 1 by chance.
    """

    correlation: float
    reliability: float
    ceiling: float
    share: float


def split_half(values: Floats, *, splits: int = 1000, seed: int = 0, level: float = 0.95) -> SplitHalf:
    """Return how two halves of the participants agree, corrected to the full number by Spearman and Brown.

    A split of an odd number leaves one half larger by one. A sentence that a half did not answer is left out of
    that split.
    """
    if splits < _LEAST_SPLITS:
        raise MeasureError(f"splits is {splits}; expected at least {_LEAST_SPLITS}")
    if len(values) < 2:
        raise Undefined(f"halves need two participants; there are {len(values)}")
    generator = np.random.default_rng(seed)
    given, filled = ~np.isnan(values), np.nan_to_num(values)
    orders = (generator.permutation(len(values)) for _ in range(splits))
    half = len(values) // 2
    found = [_correlated(given, filled, order[:half], order[half:]) for order in orders]
    defined = np.array([each for each in found if each is not None])
    if len(defined) < _LEAST_DEFINED * splits:
        raise Undefined(f"{splits - len(defined)} of {splits} splits have halves without a correlation")
    corrected = np.array([spearman_brown(each) for each in defined.tolist()])
    low, high = np.quantile(corrected, [(1 - level) / 2, (1 + level) / 2])
    missed = splits - len(defined)
    return SplitHalf(float(corrected.mean()), float(low), float(high), float(defined.mean()), splits, missed)


def spearman_brown(correlation: float, times: float = 2.0) -> float:
    """Return the reliability of so many times the raters (Spearman 1910; Brown 1910).

    A negative correlation gets the same correction with its sign kept, so that -1 stays -1.

    >>> spearman_brown(0.5), spearman_brown(-0.5)
    (0.6666666666666666, -0.6666666666666666)
    """
    return times * correlation / (1 + (times - 1) * abs(correlation))


def leave_one_out(values: Floats) -> LeaveOneOut:
    """Return how each participant's answers correlate with the means of all others', over shared sentences."""
    given, filled = ~np.isnan(values), np.nan_to_num(values)
    everyone = np.arange(len(values))
    each = tuple(_correlated(given, filled, everyone[[place]], np.delete(everyone, place)) for place in everyone)
    if all(value is None for value in each):
        raise Undefined("no participant's answers correlate with the others'")
    return LeaveOneOut(each)


def cronbach(values: Floats) -> float:
    """Return Cronbach's alpha, with the participants as the items of the test; the design must be complete.

    >>> round(cronbach(np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 5.0]])), 4)
    0.8889
    """
    _check_complete(values, "Cronbach's alpha")
    raters = len(values)
    total = values.sum(axis=0)
    if total.min() == total.max():
        raise Undefined("all sentences have the same sum of answers")
    return float(raters / (raters - 1) * (1 - values.var(axis=1, ddof=1).sum() / total.var(ddof=1)))


def icc(values: Floats) -> dict[str, float]:
    """Return the six intraclass correlations of Shrout and Fleiss (1979); the design must be complete.

    ``ICC(2,1)`` is the agreement of single raters who stand for others, ``ICC(2,k)`` that of the mean of these
    k; 3 takes these raters as all there are (``ICC(3,k)`` is Cronbach's alpha), 1 has other raters for each sentence.
    """
    _check_complete(values, "an intraclass correlation")
    k, n = values.shape
    grand = values.mean()
    between = k * float(((values.mean(axis=0) - grand) ** 2).sum()) / (n - 1)
    raters = n * float(((values.mean(axis=1) - grand) ** 2).sum()) / (k - 1)
    within = float(((values - values.mean(axis=0)) ** 2).sum()) / (n * (k - 1))
    error = (within * n * (k - 1) - raters * (k - 1)) / ((n - 1) * (k - 1))
    if np.ptp(values.mean(axis=0)) == 0:
        raise Undefined("all sentences have the same mean")
    return {
        "ICC(1,1)": _through(between - within, between + (k - 1) * within),
        "ICC(2,1)": _through(between - error, between + (k - 1) * error + k * (raters - error) / n),
        "ICC(3,1)": _through(between - error, between + (k - 1) * error),
        "ICC(1,k)": _through(between - within, between),
        "ICC(2,k)": _through(between - error, between + (raters - error) / n),
        "ICC(3,k)": _through(between - error, between),
    }


def krippendorff(values: Floats, *, level: str = "interval") -> float:
    """Return Krippendorff's alpha: 1 for perfect agreement, 0 for that of chance; answers may be missing.

    Args:
        level: "nominal" (the same or not), "ordinal" (ranks) or "interval" (distances).
    """
    pairable = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    given = pairable[~np.isnan(pairable)]
    if not len(given) or given.min() == given.max():
        raise Undefined("no two answers to one sentence" if not len(given) else "all answers are the same")
    if level == "nominal":
        tables = [np.where(np.isnan(pairable), np.nan, pairable == each) for each in np.unique(given)]
    elif level == "ordinal":
        ranked = pairable.copy()
        ranked[~np.isnan(pairable)] = ranks(given)
        tables = [ranked]
    elif level == "interval":
        tables = [pairable]
    else:
        raise MeasureError(f"level is {level!r}; expected 'nominal', 'ordinal' or 'interval'")
    # Squared distances of pairs are twice a variance; that of categories is the sum over their 0/1 columns.
    counts = (~np.isnan(pairable)).sum(axis=0)
    observed = sum(float((counts * np.nanvar(each, axis=0, ddof=1)).sum()) / len(given) for each in tables)
    expected = sum(float(np.nanvar(each, ddof=1)) for each in tables)
    return 1 - observed / expected


def ceiling(correlation: float, reliability: float) -> Ceiling:
    """Return a model's correlation with mean ratings, set against their reliability.

    >>> ceiling(0.6, 0.81)
    Ceiling(correlation=0.6, reliability=0.81, ceiling=0.9, share=0.6666666666666666)
    """
    if not (-1 <= correlation <= 1 and reliability <= 1):
        raise MeasureError(f"a correlation of {correlation} and a reliability of {reliability}: expected at most 1")
    if reliability <= 0:
        raise Undefined(f"the reliability is {reliability:.4g}: people do not agree, and set no ceiling")
    top = math.sqrt(reliability)
    return Ceiling(correlation, reliability, top, correlation / top)


def _correlated(given: Bools, filled: Floats, first: Places, second: Places) -> float | None:
    """Return how the means of two groups of participants correlate, over what both answered; None if undefined."""
    counts, other_counts = given[first].sum(axis=0), given[second].sum(axis=0)
    shared = (counts > 0) & (other_counts > 0)
    sums, other_sums = filled[first].sum(axis=0), filled[second].sum(axis=0)
    try:
        return pearson(sums[shared] / counts[shared], other_sums[shared] / other_counts[shared])
    except Undefined:
        return None


def _through(part: float, whole: float) -> float:
    if whole == 0:
        raise Undefined("the variances cancel each other out")
    return part / whole


def _check_complete(values: Floats, what: str) -> None:
    if missing := int(np.isnan(values).sum()):
        raise Undefined(f"{what} needs every participant's answer to every sentence; {missing} are missing")
    if len(values) < 2 or values.shape[1] < 2:
        raise Undefined(f"{what} needs two participants and two sentences; the table is {values.shape}")
