"""Ordinal regression with random effects: cumulative-link models of ratings on a Likert scale.

The model of `cumulative_link`, with crossed random intercepts and slopes in the linear predictor, is fitted by maximum
likelihood in the Laplace approximation, as ``clmm`` of R's package ``ordinal`` does it (Christensen 2022); without
random effects it is an ordinary cumulative-link model, as ``clm`` fits it. Thresholds are free and the same for all
rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed.fitting import FixedEffects, MixedFit
from acceptability.stats.mixed.laplace import LaplaceDeviance, RowTerms
from acceptability.stats.mixed.optimiser import invert_hessian, minimise
from acceptability.stats.mixed.ordinal.cumulative_link import (
    LINKS,
    LevelProbabilities,
    Link,
    compute_level_probabilities,
    sum_by_threshold,
)
from acceptability.stats.mixed.random_effects import INTERCEPT, RandomEffects
from acceptability.stats.regression import find_separating_predictors
from acceptability.stats.samples import LevelCodes, check_choice
from acceptability.types import Floats

# The largest standard deviation of random effects that is believed, and the largest coefficient of the basis: log-odds,
# or standard deviations of the latent variable, of 20 mean levels that are certain.
_MAX_SIZE = 20.0


@dataclass(frozen=True, eq=False, kw_only=True)
class OrdinalFit(MixedFit):
    """The numbers of a fitted cumulative-link model.

    The thresholds stand for the intercept. Where an intercept is needed all the same, such as for marginal means on the
    scale of the latent variable, it is minus the mean threshold (as in R's emmeans).

    Args:
        levels: The levels of the outcome, from the lowest.
        link: The distribution of the latent variable.
        thresholds: The thresholds between neighbouring levels.
        threshold_covariance: Their covariance matrix.
    """

    levels: tuple[str, ...]
    link: Link
    thresholds: Floats
    threshold_covariance: Floats

    @property
    def parameters(self) -> int:
        """The number of parameters: thresholds, coefficients and covariance parameters."""
        return len(self.thresholds) + len(self.estimates) - 1 + len(self.theta)

    @property
    def latent_variance(self) -> float:
        """The variance of the latent variable given the linear predictor."""
        return self.link.variance

    @property
    def threshold_names(self) -> tuple[str, ...]:
        """The names of the thresholds: "1|2" is the one between the levels 1 and 2."""
        return tuple(f"{low}|{high}" for low, high in zip(self.levels, self.levels[1:], strict=False))


def fit_ordinal(
    codes: LevelCodes,
    levels: Sequence[str],
    fixed: FixedEffects,
    random: RandomEffects,
    *,
    link: str = "logit",
    start: Floats | None = None,
) -> OrdinalFit:
    """Fit a cumulative-link model by maximum likelihood, in the Laplace approximation where there are random effects.

    Args:
        codes: The level of each row's outcome, from 0 for the lowest.
        levels: The levels' names, from the lowest; each occurs in some row.
        fixed: The fixed effects, with an intercept as their first column.
        random: The random effects; may have no grouping factor.
        link: "logit" (proportional odds) or "probit".
        start: The covariance parameters from which the search starts.

    Raises:
        Undefined: The outcome has less than three levels, or predictors separate them.
    """
    check_choice("link", link, tuple(LINKS))
    _check_levels(codes, levels)
    if fixed.names[0] != INTERCEPT:
        raise MeasureError("an ordinal model needs an intercept, for which its thresholds stand: leave out '0 +'")
    _check_separation(codes, len(levels), fixed)
    model = CumulativeLinkDeviance(codes, len(levels), fixed.basis[:, 1:], random, LINKS[link])
    minimum = minimise(model.evaluate, model.build_start(start), limit=_MAX_SIZE)
    theta, thresholds, slopes = model.split(minimum.x)
    if (np.abs(minimum.x) > _MAX_SIZE).any():
        raise Undefined("the variance of a random effect grows without bound: within its groups all rows are alike")
    # The deviance is minus twice the log-likelihood, whose negative Hessian is the information matrix.
    spread = 2 * invert_hessian(minimum.hessian)[len(theta) :, len(theta) :]
    to_users_columns = _build_back_transform(fixed, len(thresholds))
    natural = to_users_columns @ np.concatenate([thresholds, slopes])
    jacobian = to_users_columns @ model.differentiate_thresholds(minimum.x)
    covariance = jacobian @ spread @ jacobian.T
    count = len(thresholds)
    # Minus the mean threshold as intercept, then the coefficients.
    select = np.zeros((len(fixed.names), len(natural)))
    select[0, :count], select[1:, count:] = -1 / count, np.eye(len(slopes))
    return OrdinalFit(
        fixed=fixed,
        random=random,
        estimates=select @ natural,
        covariance=select @ covariance @ select.T,
        theta=theta,
        residual_variance=None,
        deviance=minimum.value,
        method="Laplace" if random.factors else "ML",
        minimum=minimum,
        levels=tuple(levels),
        link=LINKS[link],
        thresholds=natural[:count],
        threshold_covariance=covariance[:count, :count],
    )


def draw_levels(fit: OrdinalFit, predictor: Floats, generator: np.random.Generator) -> Floats:
    """Return a level for each row, drawn with the probabilities that a linear predictor with intercept gives it."""
    # The intercept is minus the mean threshold, and counts in the thresholds already.
    distances = fit.thresholds - (predictor - fit.estimates[0])[:, None]
    shares = np.exp(fit.link.log_cdf(distances))
    return np.asarray((generator.random(len(predictor))[:, None] > shares).sum(axis=1).astype(np.float64))


def refit_ordinal(fit: OrdinalFit, outcome: Floats, *, start: Floats | None = None) -> OrdinalFit:
    """Return the fit of the same model to other levels, of which some may not occur: their thresholds fall together."""
    used, codes = np.unique(outcome.astype(np.int64), return_inverse=True)
    levels = [fit.levels[k] for k in used]
    return fit_ordinal(codes.astype(np.int64), levels, fit.fixed, fit.random, link=fit.link.name, start=start)


def build_ordinal_deviance(
    fit: OrdinalFit, outcome: Floats, fixed: FixedEffects | None = None, offset: Floats | float = 0.0
) -> CumulativeLinkDeviance:
    """Return the deviance of a fitted model's outcome, perhaps with other fixed effects and an offset.

    Args:
        fit: The model.
        outcome: The outcome that it was fitted to.
        fixed: Other fixed effects, with an intercept as their first column.
        offset: What is added to each row's linear predictor.
    """
    codes = np.unique(outcome, return_inverse=True)[1].astype(np.int64)
    basis = (fixed or fit.fixed).basis[:, 1:]
    return CumulativeLinkDeviance(codes, len(fit.levels), basis, fit.random, fit.link, offset=offset)


def minimise_ordinal(fit: OrdinalFit, outcome: Floats, fixed: FixedEffects, offset: Floats) -> float:
    """Return the lowest deviance of a fitted model with other fixed effects and an offset."""
    model = build_ordinal_deviance(fit, outcome, fixed, offset)
    # A variance of 0 is stationary, and no place to start from.
    theta = np.where(np.abs(fit.theta) < 0.1, 0.3, fit.theta)
    return minimise(model.evaluate, model.build_start(theta)).value


def _build_back_transform(fixed: FixedEffects, count: int) -> Floats:
    """Return the matrix from thresholds and coefficients of the basis to those of the user's columns.

    An intercept that the basis takes out of the predictors is subtracted from every threshold.
    """
    back = fixed.back_transform
    transform = np.eye(count + len(back) - 1)
    transform[:count, count:] = -back[0, 1:]
    transform[count:, count:] = back[1:, 1:]
    return transform


class CumulativeLinkDeviance:
    """The deviance of a cumulative-link model as a function of the search's parameters.

    These are the covariance parameters, the lowest threshold, the logarithms of the distances between neighbouring
    thresholds (so that every point of the search has increasing thresholds), and the coefficients of the basis.
    """

    def __init__(
        self,
        codes: LevelCodes,
        levels: int,
        basis: Floats,
        random: RandomEffects,
        link: Link,
        *,
        offset: Floats | float = 0.0,
    ) -> None:
        self.codes, self.levels, self.basis, self.link, self.offset = codes, levels, basis, link, offset
        self.random, self.theta_size = random, random.theta_size
        self.laplace = LaplaceDeviance(random) if random.factors else None

    def build_start(self, theta: Floats | None = None) -> Floats:
        """Return the thresholds of a model without predictors, and effects that vary as much as the latent variable."""
        from scipy.optimize import brentq

        shares = np.cumsum(np.bincount(self.codes, minlength=self.levels))[:-1] / len(self.codes)
        thresholds = np.array([brentq(lambda x, s=s: self.link.log_cdf(x) - np.log(s), -40, 40) for s in shares])
        if theta is None:
            theta = self.random.build_start() if self.random.factors else np.zeros(0)
        return np.concatenate([theta, thresholds[:1], np.log(np.diff(thresholds)), np.zeros(self.basis.shape[1])])

    def split(self, x: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the covariance parameters, the thresholds and the coefficients of the basis."""
        at = self.theta_size
        steps = x[at : at + self.levels - 1].copy()
        # A line search may try any distance; beyond this one the outcome is as good as impossible anyway.
        steps[1:] = np.exp(np.minimum(steps[1:], 50.0))
        return x[:at], np.cumsum(steps), x[at + self.levels - 1 :]

    def differentiate_thresholds(self, x: Floats) -> Floats:
        """Return the derivatives of thresholds and coefficients by the search's parameters, without the covariances."""
        _, thresholds, estimates = self.split(x)
        count = len(thresholds)
        jacobian = np.eye(count + len(estimates))
        steps = np.concatenate([[1.0], np.diff(thresholds)])
        jacobian[:count, :count] = np.tril(np.broadcast_to(steps, (count, count)))
        return jacobian

    def evaluate(self, x: Floats) -> tuple[float, Floats]:
        """Return the deviance and its gradient."""
        theta, thresholds, estimates = self.split(x)
        fixed = self.basis @ estimates + self.offset
        if self.laplace is None:
            deviance, by_theta, (by_upper, by_lower) = self._evaluate_rows(thresholds, fixed)
        else:
            deviance, by_theta, (by_upper, by_lower) = self._evaluate_laplace(self.laplace, theta, thresholds, fixed)
        by_threshold = sum_by_threshold(self.codes, by_upper, by_lower, self.levels)
        natural = np.concatenate([by_threshold, -self.basis.T @ (by_upper + by_lower)])
        return deviance, np.concatenate([by_theta, self.differentiate_thresholds(x).T @ natural])

    def _evaluate_rows(self, thresholds: Floats, fixed: Floats) -> tuple[float, Floats, tuple[Floats, Floats]]:
        """Return the deviance without random effects, and its derivatives by each row's distances to its thresholds."""
        rows = compute_level_probabilities(self.link, self.codes, thresholds, fixed)
        by_upper, by_lower = rows.first
        return -2 * rows.terms.log_likelihood, np.zeros(0), (-2 * by_upper, -2 * by_lower)

    def _evaluate_laplace(
        self, laplace: LaplaceDeviance, theta: Floats, thresholds: Floats, fixed: Floats
    ) -> tuple[float, Floats, tuple[Floats, Floats]]:
        """Return the Laplace deviance, its gradient by theta, and its derivatives by each row's distances."""

        def compute_rows(predictor: Floats) -> LevelProbabilities:
            return compute_level_probabilities(self.link, self.codes, thresholds, predictor)

        def evaluate_terms(predictor: Floats) -> RowTerms:
            return compute_rows(predictor).terms

        point = laplace.evaluate(theta, fixed, evaluate_terms)
        rows = compute_rows(fixed + laplace.predict(point.templates, point.modes))
        # Each distance changes the likelihood, the weight in the log-determinant, and the score that moves the modes.
        by_upper, by_lower = (
            -2 * slope + point.leverages * weight_slope + point.carried * score_slope
            for slope, weight_slope, score_slope in zip(rows.first, rows.weight_slopes, rows.score_slopes, strict=True)
        )
        return point.deviance, point.theta_gradient, (by_upper, by_lower)


def _check_levels(codes: LevelCodes, levels: Sequence[str]) -> None:
    counts = np.bincount(codes, minlength=len(levels))
    if len(levels) < 3:
        raise Undefined(
            f"the outcome has {len(levels)} levels ({', '.join(levels)}); an ordinal model needs three. "
            "For two use a binomial one"
        )
    if not counts.all():
        raise Undefined(f"no row has the level {levels[int(counts.argmin())]!r}: merge it with its neighbour")


def _check_separation(codes: LevelCodes, levels: int, fixed: FixedEffects) -> None:
    """Raise Undefined where predictors separate the levels, so that the likelihood has no maximum."""
    # Each row lies below its upper threshold and above its lower one. These are the conditions of a logistic model with
    # one column a threshold; infinite estimates of one are those of the other. Rows that are alike say the same.
    rows = np.unique(np.column_stack([codes, fixed.table[:, 1:]]), axis=0)
    distinct, predictors = rows[:, 0].astype(np.int64), rows[:, 1:]
    identity = np.eye(levels - 1)
    has_upper, has_lower = distinct < levels - 1, distinct > 0
    table = np.vstack(
        [
            np.column_stack([identity[distinct[has_upper]], -predictors[has_upper]]),
            np.column_stack([identity[distinct[has_lower] - 1], -predictors[has_lower]]),
        ]
    )
    is_upper = np.concatenate([np.ones(has_upper.sum()), np.zeros(has_lower.sum())])
    thresholds = [f"threshold {k}" for k in range(levels - 1)]
    culprits = find_separating_predictors(is_upper, table, [*thresholds, *fixed.names[1:]])
    if named := [name for name in culprits if name not in thresholds]:
        raise Undefined(
            f"{', '.join(named)} separate the levels of the outcome: there is no finite estimate. Leave a predictor "
            "out, or merge its levels"
        )
