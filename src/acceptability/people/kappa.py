"""Chance-corrected agreement on categories: Cohen's kappa of two raters, and Fleiss' kappa of several.

Kappa is 1 for perfect agreement and 0 for the agreement that raters with the same shares of answers would reach by
chance. Cohen's gives each rater shares of their own, Fleiss' all raters the same; Fleiss' is that of Krippendorff's
alpha, but for the correction for few answers (`acceptability.people.reliability.krippendorff_alpha`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from acceptability.errors import Undefined
from acceptability.stats.samples import check_level
from acceptability.types import Floats

COHEN_INTERVAL = "normal, se of Fleiss, Cohen and Everitt (1969)"
FLEISS_INTERVAL = "t, jackknife over sentences"


@dataclass(frozen=True)
class Kappa:
    """A kappa coefficient with its interval and its test against chance.

    Args:
        value: The coefficient.
        se: Its standard error.
        low, high: Its interval, not below −1 nor above 1.
        level: The confidence level.
        method: How the interval was computed.
        z, p: The test that agreement is at chance level, two-sided, by the standard error under that hypothesis.
        n: The number of sentences with two answers or more.
        raters: The number of raters.
    """

    value: float
    se: float
    low: float
    high: float
    level: float
    method: str
    z: float
    p: float
    n: int
    raters: int


def cohen_kappa(first: Floats, second: Floats, *, level: float = 0.95) -> Kappa:
    """Return Cohen's kappa (1960) of two raters, over the sentences that both have answered.

    The standard errors are those of Fleiss, Cohen and Everitt (1969) for large samples.

    Args:
        first, second: The category that each rater gave each sentence, as a number; nan for a missing answer.
        level: The confidence level.

    >>> kappa = cohen_kappa(np.array([1.0, 1.0, 0.0, 0.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0]))
    >>> round(kappa.value, 4), round(kappa.se, 4)
    (0.6667, 0.2869)
    """
    check_level(level)
    both = ~(np.isnan(first) | np.isnan(second))
    n = int(both.sum())
    if n < 2:
        raise Undefined(f"the two raters share {n} sentences; two are needed")
    categories, codes = np.unique(np.concatenate([first[both], second[both]]), return_inverse=True)
    table = np.zeros((len(categories), len(categories)))
    np.add.at(table, (codes[:n], codes[n:]), 1 / n)
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    observed, expected = float(np.trace(table)), float(rows @ columns)
    if expected == 1:
        raise Undefined("both raters gave one and the same answer to everything")
    kappa = (observed - expected) / (1 - expected)
    # The variance at the value of kappa, and that under the hypothesis of chance agreement, for the test.
    diagonal = np.diag(table) * (1 - (rows + columns) * (1 - kappa)) ** 2
    sums = (columns[:, None] + rows[None, :]) ** 2
    off_diagonal = (1 - kappa) ** 2 * float((table * sums).sum() - (np.diag(table) * np.diag(sums)).sum())
    variance = float(diagonal.sum()) + off_diagonal - (kappa - expected * (1 - kappa)) ** 2
    null = expected + expected**2 - float((rows * columns * (rows + columns)).sum())
    se, null_se = (math.sqrt(max(part, 0.0) / n) / (1 - expected) for part in (variance, null))
    half_width = float(ndtri((1 + level) / 2)) * se
    z = kappa / null_se if null_se else math.inf
    ends = max(-1.0, kappa - half_width), min(1.0, kappa + half_width)
    return Kappa(kappa, se, *ends, level, COHEN_INTERVAL, z, 2 * float(ndtr(-abs(z))), n, 2)


def fleiss_kappa(values: Floats, *, level: float = 0.95) -> Kappa:
    """Return Fleiss' kappa (1971) of several raters; answers may be missing.

    A sentence counts by its number of answers, so that a sentence with fewer of them counts less. The interval is by
    the jackknife over sentences, for sentences like these and the same raters; the test is by the standard error of
    Fleiss, Nee and Landis (1979), which assumes equally many answers to each sentence (their harmonic mean is taken).

    Args:
        values: A row per rater, a column per sentence: the category as a number; nan for a missing answer.
        level: The confidence level.

    >>> round(fleiss_kappa(np.array([[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])).value, 4)
    0.3333
    """
    check_level(level)
    counted = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    n = counted.shape[1]
    if n < 2:
        raise Undefined(f"{n} sentences have two answers or more; two such sentences are needed")
    categories = np.unique(counted[~np.isnan(counted)])
    # Sentences by categories: how many raters chose each.
    counts = np.stack([(counted == category).sum(axis=0) for category in categories], axis=1).astype(np.float64)
    if len(categories) < 2:
        raise Undefined("all answers are the same")
    kappa, left_out = _fleiss_value(counts), _leave_each_out(counts)
    if np.isnan(left_out).any():
        raise Undefined("without one of the sentences all answers are the same, so that kappa has no standard error")
    se = math.sqrt((n - 1) / n * float(((left_out - left_out.mean()) ** 2).sum()))
    from scipy.special import stdtrit

    half_width = float(stdtrit(n - 1, (1 + level) / 2)) * se
    z = kappa / _null_se(counts)
    ends = max(-1.0, kappa - half_width), min(1.0, kappa + half_width)
    return Kappa(kappa, se, *ends, level, FLEISS_INTERVAL, z, 2 * float(ndtr(-abs(z))), n, len(values))


def _fleiss_value(counts: Floats) -> float:
    answers = counts.sum(axis=1)
    # The share of agreeing pairs of each sentence, weighted by its answers.
    agreeing = (counts * (counts - 1)).sum(axis=1) / (answers - 1)
    shares = counts.sum(axis=0) / answers.sum()
    expected = float(shares @ shares)
    return (float(agreeing.sum() / answers.sum()) - expected) / (1 - expected)


def _leave_each_out(counts: Floats) -> Floats:
    """Return kappa without each of the sentences in turn; nan where it is undefined."""
    answers = counts.sum(axis=1)
    agreeing = (counts * (counts - 1)).sum(axis=1) / (answers - 1)
    totals, rest = counts.sum(axis=0) - counts, answers.sum() - answers
    expected = ((totals / rest[:, None]) ** 2).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        left_out = ((agreeing.sum() - agreeing) / rest - expected) / (1 - expected)
    return np.where(expected < 1, left_out, np.nan)


def _null_se(counts: Floats) -> float:
    """Return the standard error of Fleiss' kappa where agreement is at chance level (Fleiss, Nee and Landis 1979)."""
    n, answers = len(counts), counts.sum(axis=1)
    raters = n / float((1 / answers).sum())
    shares = counts.sum(axis=0) / answers.sum()
    spread = float((shares * (1 - shares)).sum())
    skew = float((shares * (1 - shares) * (1 - 2 * shares)).sum())
    return math.sqrt(2 * (spread**2 - skew)) / (spread * math.sqrt(n * raters * (raters - 1)))
