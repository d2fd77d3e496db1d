"""Fit linear and logistic mixed models to arrays: the core behind formulas and tables, which needs SciPy only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed.laplace import LaplaceDeviance, build_logistic_likelihood
from acceptability.stats.mixed.linear_deviance import LinearDeviance, LinearPoint
from acceptability.stats.mixed.optimiser import Minimum, invert_hessian, minimise
from acceptability.stats.mixed.random_effects import RandomEffects
from acceptability.stats.regression import check_binary, find_separating_predictors
from acceptability.stats.samples import as_sample, require_variation
from acceptability.types import Floats

# A standard deviation of a random effect, relative to the residual one, below which the fit is called singular.
_SINGULAR = 1e-4
# A parameter below changes a deviance by its square at most, which is a rounding error.
_ZERO_THETA = 1e-6
# The largest standard deviation of random effects that is believed: in the linear model as a multiple of the residual
# one. A search that gets near it is following a likelihood without a maximum.
_MAX_SD_RATIO = 1e5
# In log-odds 20 means groups that are all right or all wrong.
_MAX_SD_LOG_ODDS = 20.0
# Relative to the outcome's sum of squares: a residual below is the rounding error of an exact fit.
_MIN_RESIDUAL_SHARE = 1e-14


@dataclass(frozen=True, eq=False)
class FixedEffects:
    """The design matrix of the fixed effects.

    Args:
        names: The names of its columns.
        table: The columns, of shape (rows, columns).
    """

    names: tuple[str, ...]
    table: Floats

    @cached_property
    def basis(self) -> Floats:
        """An orthogonal basis of the columns, each with mean square 1.

        Predictors of very different scales, or that are nearly collinear, would make the search slow.
        """
        return np.asarray(np.linalg.qr(self.table)[0] * math.sqrt(len(self.table)))

    @cached_property
    def back_transform(self) -> Floats:
        """The matrix from coefficients of the basis to coefficients of the columns."""
        return np.asarray(np.linalg.inv(np.linalg.qr(self.table)[1]) * math.sqrt(len(self.table)))


@dataclass(frozen=True, eq=False)
class MixedFit:
    """The numbers of a fitted mixed model.

    Args:
        fixed: The design of the fixed effects.
        random: The random effects.
        estimates: The coefficients.
        covariance: Their covariance matrix.
        theta: The covariance parameters of the random effects, on the scale of scaled columns.
        residual_variance: The variance within groups; None in a logistic model.
        deviance: Minus twice the log-likelihood (for REML: the restricted one).
        method: "REML", "ML" or "Laplace".
        minimum: Where the search ended.
        linear: The linear model's deviance, with standardised outcome; None in a logistic model.
        scale: The standard deviation by which the linear model's outcome was divided.
    """

    fixed: FixedEffects
    random: RandomEffects
    estimates: Floats
    covariance: Floats
    theta: Floats
    residual_variance: float | None
    deviance: float
    method: str
    minimum: Minimum
    linear: LinearDeviance | None = None
    scale: float = 1.0

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.random.n

    @property
    def parameters(self) -> int:
        """The number of parameters: coefficients, covariance parameters, and the residual variance if there is one."""
        return len(self.estimates) + len(self.theta) + (self.residual_variance is not None)

    @property
    def latent_variance(self) -> float:
        """The residual variance; on the scale of log-odds that of the standard logistic distribution, π²/3."""
        return math.pi**2 / 3 if self.residual_variance is None else self.residual_variance

    @cached_property
    def covariances(self) -> list[Floats]:
        """The covariance matrix of each grouping factor's random effects."""
        scale = 1.0 if self.residual_variance is None else self.residual_variance
        return [scale * covariance for covariance in self.random.compute_covariances(self.theta)]

    @cached_property
    def is_singular(self) -> bool:
        """Whether some random effect has no variance, or is a linear combination of others."""
        templates = self.random.build_templates(self.theta)
        return any(np.linalg.svd(template, compute_uv=False)[-1] < _SINGULAR for template in templates)


def build_fixed_effects(names: Sequence[str], table: Floats) -> FixedEffects:
    """Return the design of the fixed effects, after checking that its columns are linearly independent."""
    if table.ndim != 2 or table.shape[1] != len(names):
        raise MeasureError(f"the design matrix has the shape {table.shape}; expected {len(names)} columns")
    if not names:
        raise MeasureError("the model has no fixed effects; expected at least an intercept")
    if not np.isfinite(table).all():
        raise MeasureError("the design matrix has values that are not finite: leave such rows out")
    if len(table) <= len(names):
        raise Undefined(f"{len(names)} coefficients cannot be estimated from {len(table)} rows")
    norms = np.linalg.norm(table, axis=0)
    is_dependent = np.abs(np.diag(np.linalg.qr(table / np.where(norms > 0, norms, 1))[1])) < 1e-9
    if is_dependent.any():
        culprit = names[int(np.argmax(is_dependent))]
        raise Undefined(f"{culprit} is constant, or a linear combination of the columns before it: leave it out")
    return FixedEffects(tuple(names), table)


def fit_linear(
    outcome: Floats, fixed: FixedEffects, random: RandomEffects, *, reml: bool = True, start: Floats | None = None
) -> MixedFit:
    """Fit a linear mixed model.

    Args:
        outcome: The outcome of each row.
        fixed: The fixed effects.
        random: The random effects, from ``build_random_effects``.
        reml: Restricted maximum likelihood, else maximum likelihood.
        start: The covariance parameters from which the search starts, such as those of a fit to similar data.
    """
    y = require_variation("the outcome", as_sample("the outcome", outcome))
    _check_rows(y, fixed, random)
    _check_sizes(random, len(y))
    # Standardised, so that rounding errors and tolerances are those of numbers near 1, whatever the outcome's unit.
    # The random effects are fitted to the residuals of ordinary least squares, which loses fewer digits.
    plain = fixed.basis.T @ y / len(y)
    residuals = y - fixed.basis @ plain
    scale = float(np.sqrt(np.mean(residuals**2)))
    if scale**2 <= _MIN_RESIDUAL_SHARE * float(np.mean(y**2)):
        raise Undefined("groups and predictors give the outcome exactly: there is no error left")
    model = LinearDeviance(residuals / scale, fixed.basis, random, reml=reml)

    def evaluate(theta: Floats) -> tuple[float, Floats]:
        point = model.evaluate(theta)
        return point.deviance, point.gradient

    minimum = minimise(evaluate, random.build_start() if start is None else start, limit=_MAX_SD_RATIO)
    if (np.abs(minimum.x) > _MAX_SD_RATIO).any():
        raise Undefined("the variance of a random effect grows without bound: within its groups all rows are alike")
    return _collect_linear(model.evaluate(round_to_zero(minimum.x)), fixed, minimum, plain=plain, scale=scale)


def _collect_linear(
    point: LinearPoint, fixed: FixedEffects, minimum: Minimum, *, plain: Floats, scale: float
) -> MixedFit:
    """Return the fit on the scales of the user's outcome and columns."""
    model, back = point.model, fixed.back_transform
    half = back @ point.inverse_root * scale * math.sqrt(point.variance)
    deviance = point.deviance + model.df * math.log(scale**2)
    # REML depends on the scale of the predictors: this is the log-determinant of their own table.
    deviance -= 2 * float(np.linalg.slogdet(back)[1]) if model.reml else 0.0
    return MixedFit(
        fixed,
        model.random,
        back @ (plain + scale * point.estimates),
        half @ half.T,
        point.theta,
        point.variance * scale**2,
        deviance,
        "REML" if model.reml else "ML",
        minimum,
        model,
        scale,
    )


def fit_logistic(
    outcome: Floats, fixed: FixedEffects, random: RandomEffects, *, start: Floats | None = None
) -> MixedFit:
    """Fit a logistic mixed model by maximum likelihood in the Laplace approximation.

    The covariance of the coefficients is from the Hessian over all parameters, as in lme4.

    Args:
        outcome: 0 or 1 for each row.
        fixed: The fixed effects.
        random: The random effects, from ``build_random_effects``.
        start: The covariance parameters from which the search starts.
    """
    y = check_binary(as_sample("the outcome", outcome))
    _check_rows(y, fixed, random)
    # Rows that are alike say the same about separation, and the linear program is slow for many.
    rows = np.unique(np.column_stack([y, fixed.table]), axis=0)
    if culprits := find_separating_predictors(rows[:, 0], rows[:, 1:], list(fixed.names)):
        raise Undefined(
            f"{', '.join(culprits)} separate the outcomes: there is no finite estimate. Leave a predictor out, or "
            "merge its levels"
        )
    model, likelihood, count = LaplaceDeviance(random), build_logistic_likelihood(y), random.theta_size

    def evaluate(parameters: Floats) -> tuple[float, Floats]:
        point = model.evaluate(parameters[:count], fixed.basis @ parameters[count:], likelihood)
        return point.deviance, np.concatenate([point.theta_gradient, fixed.basis.T @ point.predictor_gradient])

    theta = random.build_start() if start is None else start
    whole_start = np.concatenate([theta, _fit_plain_logistic(y, fixed.basis)])
    # The coefficients of the basis are log-odds as well, and as far out as no data can tell.
    minimum = minimise(evaluate, whole_start, limit=_MAX_SD_LOG_ODDS)
    theta, back = round_to_zero(minimum.x[:count]), fixed.back_transform
    if (np.abs(theta) > _MAX_SD_LOG_ODDS).any():
        raise Undefined(
            "the variance of a random effect grows without bound: within its groups all rows are alike, or the rows "
            "are too few for the random slopes"
        )
    if (np.abs(minimum.x) > _MAX_SD_LOG_ODDS).any():
        raise Undefined("a coefficient grows without bound: given the groups, the predictors separate the outcomes")
    # The deviance is minus twice the log-likelihood, whose negative Hessian is the information matrix.
    covariance = 2 * invert_hessian(minimum.hessian)[count:, count:]
    return MixedFit(
        fixed,
        random,
        back @ minimum.x[count:],
        back @ covariance @ back.T,
        theta,
        None,
        minimum.value,
        "Laplace",
        minimum,
    )


def round_to_zero(theta: Floats) -> Floats:
    """Return covariance parameters with 0 for those that are 0 as far as a search can tell.

    The deviance is flat around a standard deviation of 0, and so it is found to half of the digits only: a table would
    show 1e-8.
    """
    return np.where(np.abs(theta) < _ZERO_THETA, 0.0, theta)


def _fit_plain_logistic(y: Floats, basis: Floats) -> Floats:
    """Return the coefficients of a logistic regression without random effects, to start the search from."""
    # A few Newton steps rather than a library: a starting point need not be exact, and so this works without an extra.
    estimates = np.zeros(basis.shape[1])
    for _ in range(25):
        probabilities = expit(basis @ estimates)
        hessian = basis.T @ (basis * (probabilities * (1 - probabilities))[:, None])
        estimates = estimates + np.linalg.solve(hessian, basis.T @ (y - probabilities))
    return np.asarray(estimates)


def _check_rows(y: Floats, fixed: FixedEffects, random: RandomEffects) -> None:
    if not len(y) == len(fixed.table) == random.n:
        raise MeasureError(
            f"there are {len(y)} outcomes, {len(fixed.table)} rows of fixed effects and {random.n} of random effects; "
            "expected the same rows in all"
        )


def _check_sizes(random: RandomEffects, n: int) -> None:
    """Raise Undefined where random effects cannot be told from residuals."""
    for factor in random.factors:
        if len(factor.levels) >= n:
            raise Undefined(
                f"{factor.group} has a single row in each group: its variance cannot be separated from the residual one"
            )
        if factor.size >= n:
            raise Undefined(
                f"{factor.group} has {factor.size:,} random effects in {n:,} rows: their variances cannot be separated "
                "from the residual one. Leave out random slopes"
            )
