"""Cumulative-link likelihoods of ordered outcomes, such as ratings on a Likert scale.

A row's probability of level k is F(τₖ − η) − F(τₖ₋₁ − η), with the linear predictor η, thresholds τ that increase from
−∞ to ∞, and the distribution F of a latent variable: logistic (proportional odds) or normal (probit). A higher η makes
higher levels likelier (McCullagh 1980).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, log_expit, log_ndtr

from acceptability.stats.mixed.laplace import RowTerms
from acceptability.stats.samples import LevelCodes
from acceptability.types import Floats

_HALF_LOG_2_PI = 0.5 * float(np.log(2 * np.pi))


@dataclass(frozen=True)
class Link:
    """The distribution of the latent variable behind an ordered outcome; symmetric around 0.

    Args:
        name: "logit" or "probit".
        log_cdf: The logarithm of the distribution function F.
        log_density: The logarithm of the density F′.
        slope, curvature: F″ / F′ and F‴ / F′.
        variance: The variance of the latent variable given the linear predictor.
    """

    name: str
    log_cdf: Callable[[Floats], Floats]
    log_density: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    curvature: Callable[[Floats], Floats]
    variance: float


def _logistic_curvature(x: Floats) -> Floats:
    share = expit(x)
    return np.asarray((1 - 2 * share) ** 2 - 2 * share * (1 - share))


LINKS = {
    "logit": Link(
        "logit",
        log_expit,
        lambda x: log_expit(x) + log_expit(-x),
        lambda x: -np.tanh(x / 2),
        _logistic_curvature,
        float(np.pi**2 / 3),
    ),
    "probit": Link("probit", log_ndtr, lambda x: -(x**2) / 2 - _HALF_LOG_2_PI, lambda x: -x, lambda x: x**2 - 1, 1.0),
}


def _log_difference(larger: Floats, smaller: Floats) -> Floats:
    """Return log(exp(larger) − exp(smaller)), without cancellation where the two are close."""
    gap = larger - smaller
    with np.errstate(divide="ignore"):
        return np.asarray(larger + np.where(gap < 0.7, np.log(-np.expm1(-gap)), np.log1p(-np.exp(-gap))))


@dataclass(frozen=True, eq=False)
class LevelProbabilities:
    """The log-probability of each row's level, and its derivatives by the distances to the thresholds around it.

    The row's distances are upper = τₖ − η and lower = τₖ₋₁ − η. The derivatives by both of a log-probability ℓ follow
    from three ratios at each of the two: the density and its first two derivatives, divided by the probability.

    Args:
        link: The distribution of the latent variable.
        upper, lower: The distances, in units of the latent variable; infinite for the highest and the lowest level.
    """

    link: Link
    upper: Floats
    lower: Floats

    @cached_property
    def log_probabilities(self) -> Floats:
        """The log-probability of each row's level."""
        # In the upper tail both F are near 1 and their difference would be lost; there 1 − F is subtracted instead.
        is_high = self.upper + self.lower > 0
        larger = np.where(is_high, -self.lower, self.upper)
        smaller = np.where(is_high, -self.upper, self.lower)
        return _log_difference(self.link.log_cdf(larger), self.link.log_cdf(smaller))

    @cached_property
    def _upper_ratios(self) -> tuple[Floats, Floats, Floats]:
        return self._divide_densities(self.upper)

    @cached_property
    def _lower_ratios(self) -> tuple[Floats, Floats, Floats]:
        return self._divide_densities(self.lower)

    def _divide_densities(self, distances: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the density and its first two derivatives, divided by the probability of the row's level."""
        # At an infinite distance all three are 0, but infinity times 0 would make them nan. The logarithm is replaced
        # before exp, which overflows at any other stand-in where the row's level is very improbable.
        is_finite = np.isfinite(distances)
        finite = np.where(is_finite, distances, 0.0)
        ratios = np.exp(np.where(is_finite, self.link.log_density(finite) - self.log_probabilities, -np.inf))
        return ratios, ratios * self.link.slope(finite), ratios * self.link.curvature(finite)

    @cached_property
    def first(self) -> tuple[Floats, Floats]:
        """∂ℓ by upper and by lower."""
        return self._upper_ratios[0], -self._lower_ratios[0]

    @cached_property
    def second(self) -> tuple[Floats, Floats, Floats]:
        """∂²ℓ by upper twice, by both, and by lower twice."""
        by_upper, by_lower = self.first
        return self._upper_ratios[1] - by_upper**2, -by_upper * by_lower, -self._lower_ratios[1] - by_lower**2

    @cached_property
    def third(self) -> tuple[Floats, Floats, Floats, Floats]:
        """∂³ℓ by upper three times, twice, once and never, and by lower for the rest."""
        (a, b), (aa, ab, bb) = self.first, self.second
        (_, a1, a2), (_, b1, b2) = self._upper_ratios, self._lower_ratios
        return a2 - a1 * a - 2 * a * aa, -a1 * b - 2 * a * ab, -ab * b - a * bb, b1 * b - b2 - 2 * b * bb

    @property
    def score_slopes(self) -> tuple[Floats, Floats]:
        """The derivatives of each row's score ∂ℓ/∂η by upper and by lower."""
        aa, ab, bb = self.second
        return -(aa + ab), -(ab + bb)

    @property
    def weight_slopes(self) -> tuple[Floats, Floats]:
        """The derivatives of each row's weight −∂²ℓ/∂η² by upper and by lower."""
        aaa, aab, abb, bbb = self.third
        return -(aaa + 2 * aab + abb), -(aab + 2 * abb + bbb)

    @property
    def terms(self) -> RowTerms:
        """The log-likelihood with its derivatives by the linear predictor, which lowers both distances alike."""
        (a, b), (aa, ab, bb), (by_upper, by_lower) = self.first, self.second, self.weight_slopes
        # Both distributions are log-concave; a negative weight is a rounding error, and would break the Cholesky.
        weights = np.maximum(-(aa + 2 * ab + bb), 0.0)
        return RowTerms(float(self.log_probabilities.sum()), -(a + b), weights, -(by_upper + by_lower))


def compute_level_probabilities(
    link: Link, codes: LevelCodes, thresholds: Floats, predictor: Floats
) -> LevelProbabilities:
    """Return the probabilities of the rows' own levels.

    Args:
        link: The distribution of the latent variable.
        codes: The level of each row, from 0.
        thresholds: The thresholds between neighbouring levels, in increasing order.
        predictor: The linear predictor of each row.
    """
    padded = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return LevelProbabilities(link, padded[codes + 1] - predictor, padded[codes] - predictor)


def sum_by_threshold(codes: LevelCodes, by_upper: Floats, by_lower: Floats, levels: int) -> Floats:
    """Return, for each threshold, the sum over rows of a derivative by the threshold above and the one below."""
    return np.asarray(np.bincount(codes, by_upper, levels)[:-1] + np.bincount(codes, by_lower, levels)[1:])
