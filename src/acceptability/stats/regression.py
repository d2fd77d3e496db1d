"""Regression: which predictors make a model right more often (logistic), or its scores higher (linear).

`logistic_regression` is fitted by maximum likelihood and `linear_regression` by least squares, both with statsmodels
(the extra ``stats``). Before a logistic fit, complete and quasi-complete separation are detected by linear programming
(Konis 2007): separated data have no finite maximum-likelihood estimate, and statsmodels would return an arbitrary
large one.

The design matrix, its checks and the `Coefficient` are shared with the mixed models of `acceptability.stats.mixed`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.effects.effect_sizes import partial_eta_squared
from acceptability.stats.samples import as_columns, as_sample, check_level, import_statsmodels
from acceptability.types import Floats

CONSTANT = "(constant)"
"""The name of the intercept among the coefficients."""

# Relative to the outcome's sum of squares: a residual below is the rounding error of an exact fit, whose t values are
# noise.
_MIN_RESIDUAL_SHARE = 1e-24
# The linear program's optimum, per row and for columns scaled to at most 1, that counts as separation and not as
# rounding.
_MIN_SEPARATION = 1e-7
_MIN_DIRECTION = 1e-9


@dataclass(frozen=True)
class Coefficient:
    """The estimated coefficient of one predictor.

    Args:
        estimate: The change of the outcome (in a logistic model: of its log-odds) per unit of the predictor.
        se: The standard error of the estimate.
        statistic: The estimate divided by its standard error: z, or t where there are degrees of freedom.
        low, high: The confidence interval of the estimate.
        effect: The effect size: an odds ratio in a logistic model, partial eta squared in a linear one.
        effect_low, effect_high: Its interval, by Wald for an odds ratio and by the noncentral F distribution for
            partial eta squared; None where there is none.
    """

    name: str
    estimate: float
    se: float
    statistic: float
    p: float
    low: float
    high: float
    effect: float | None = None
    effect_low: float | None = None
    effect_high: float | None = None


@dataclass(frozen=True)
class LogisticRegression:
    """A fitted logistic regression; the effect size of each coefficient is its odds ratio, with interval.

    Args:
        pseudo_r2: McFadden's R²: 1 − log-likelihood / log-likelihood of the intercept alone.
    """

    coefficients: tuple[Coefficient, ...]
    log_likelihood: float
    pseudo_r2: float
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return find_coefficient(self.coefficients, name)


@dataclass(frozen=True)
class LinearRegression:
    """A fitted linear regression; the effect size of each coefficient is its partial eta squared, t² / (t² + df).

    Args:
        f, p: The F test of all predictors together; None without predictors.
        df: The residual degrees of freedom.
    """

    coefficients: tuple[Coefficient, ...]
    r2: float
    f: float | None
    p: float | None
    df: int
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return find_coefficient(self.coefficients, name)


def logistic_regression(
    outcome: ArrayLike, predictors: Mapping[str, ArrayLike], *, level: float = 0.95
) -> LogisticRegression:
    """Fit how the log-odds of a binary outcome depend on predictors, by maximum likelihood.

    Assumes independent rows and log-odds that are linear in the predictors; where rows share items, use
    ``mixed_logistic``.

    Args:
        outcome: 0 or 1 for each row.
        predictors: The value of each predictor in each row, by name; for factors see `dummies`.
        level: The confidence level of the intervals.

    Raises:
        Undefined: The outcome has one class, the predictors separate it, or they are linearly dependent.
        MissingExtra: statsmodels is not installed.
    """
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    check_binary(y)
    if culprits := find_separating_predictors(y, table, names):
        raise Undefined(
            f"{', '.join(culprits)} separate the outcomes: some value occurs with 0 only, or with 1 only, "
            "and the coefficients have no finite estimate. Leave a predictor out, or merge its levels"
        )
    api = import_statsmodels("logistic_regression")
    # Newton's method on the raw scale can overflow, or stop early, where a predictor is in the thousands.
    scaled, back_transform = _standardise_predictors(table)
    fit = api.Logit(y, scaled).fit(disp=0, method="newton", maxiter=200, tol=1e-10)
    estimates, covariance = back_transform @ fit.params, back_transform @ fit.cov_params() @ back_transform.T
    coefficients = tuple(
        wald_coefficient(name, float(estimate), math.sqrt(variance), level, is_odds=True)
        for name, estimate, variance in zip(names, estimates, np.diag(covariance), strict=True)
    )
    return LogisticRegression(coefficients, float(fit.llf), float(1 - fit.llf / fit.llnull), len(y))


def _standardise_predictors(table: Floats) -> tuple[Floats, Floats]:
    """Return the design matrix with standardised predictors, and the matrix that maps coefficients to the raw scale.

    The intercept, the first column, stays as it is.
    """
    means, sds = table.mean(axis=0), table.std(axis=0)
    means[0], sds[0] = 0.0, 1.0
    back_transform = np.diag(1 / sds)
    back_transform[0, 1:] = -means[1:] / sds[1:]
    return (table - means) / sds, back_transform


def linear_regression(
    outcome: ArrayLike, predictors: Mapping[str, ArrayLike], *, level: float = 0.95
) -> LinearRegression:
    """Fit how an outcome depends on predictors, by ordinary least squares.

    Assumes independent rows, a linear relation, and residuals that are normal and of equal variance.

    Args:
        predictors: The value of each predictor in each row, by name; for factors see `dummies`.
        level: The confidence level of the intervals.

    Raises:
        Undefined: There are too few rows, the predictors are linearly dependent, or the fit is exact.
        MissingExtra: statsmodels is not installed.
    """
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    df = len(y) - len(names)
    if df < 1:
        raise Undefined(f"{len(y)} rows leave no degrees of freedom for the errors of {len(names)} coefficients")
    fit = import_statsmodels("linear_regression").OLS(y, table).fit()
    # An exact fit leaves residuals of rounding errors, not of 0.
    if fit.ssr <= _MIN_RESIDUAL_SHARE * float(y @ y):
        raise Undefined("the predictors give the outcome exactly: there is no error to compare with")
    ends = fit.conf_int(alpha=1 - level)
    # F of a single coefficient is t².
    sizes = [partial_eta_squared(t * t, 1, df, len(y), level=level) for t in fit.tvalues.tolist()]
    coefficients = tuple(
        Coefficient(
            name,
            estimate=float(fit.params[i]),
            se=float(fit.bse[i]),
            statistic=float(fit.tvalues[i]),
            p=float(fit.pvalues[i]),
            low=float(ends[i][0]),
            high=float(ends[i][1]),
            effect=size.value,
            effect_low=size.low,
            effect_high=size.high,
        )
        for i, (name, size) in enumerate(zip(names, sizes, strict=True))
    )
    has_f = len(names) > 1
    return LinearRegression(
        coefficients,
        float(fit.rsquared),
        float(fit.fvalue) if has_f else None,
        float(fit.f_pvalue) if has_f else None,
        df,
        len(y),
    )


def dummies(name: str, labels: ArrayLike) -> dict[str, Floats]:
    """Return dummy variables of a factor: a predictor of 0 and 1 for each level but the first, the reference level.

    >>> dummies("suite", ["a", "b", "a"])
    {'suite=b': array([0., 1., 0.])}
    """
    texts = np.asarray(labels, dtype=str)
    return {f"{name}={level}": (texts == level).astype(np.float64) for level in np.unique(texts)[1:].tolist()}


def build_design_matrix(outcome: ArrayLike, predictors: Mapping[str, ArrayLike]) -> tuple[Floats, Floats, list[str]]:
    """Return the outcome, the design matrix (intercept first) and the names of its columns.

    Raises:
        Undefined: There are fewer rows than columns, or the columns are linearly dependent.
    """
    y = as_sample("the outcome", outcome)
    columns = as_columns({"outcome": y, **predictors})
    if "outcome" in predictors or CONSTANT in predictors:
        raise MeasureError(f"a predictor may be called neither 'outcome' nor {CONSTANT!r}")
    names = [CONSTANT, *predictors]
    table = np.column_stack([np.ones(len(y)), *(columns[name] for name in predictors)])
    if len(y) < len(names):
        raise Undefined(f"{len(names)} coefficients cannot be estimated from {len(y)} rows")
    if np.linalg.matrix_rank(table) < len(names):
        raise Undefined(f"of {', '.join(names)} one is constant, or a linear combination of the others: leave it out")
    return y, table, names


def check_binary(values: Floats) -> Floats:
    """Return a binary outcome unchanged; other values are an error, and a single class is Undefined."""
    if wrong := sorted(set(values.tolist()) - {0.0, 1.0}):
        raise MeasureError(f"the outcome has the value {wrong[0]:g}; a logistic model needs 0 and 1")
    if values.min() == values.max():
        raise Undefined(f"the outcome is {values[0]:g} in every row")
    return values


def find_separating_predictors(y: Floats, table: Floats, names: list[str]) -> list[str]:
    """Return the predictors that separate a binary outcome, completely or up to ties (Konis 2007); mostly none.

    The linear program looks for a direction in which no row lies on the wrong side of 0, and which moves as far as
    possible to the right side, all rows together. There is one exactly if the maximum-likelihood estimate is infinite.
    """
    from scipy.optimize import linprog

    # Columns scaled to at most 1, so that the bounds and tolerances mean the same for each. Without bounds on the
    # direction the program would be unbounded for separated data.
    signed_table = (2 * y - 1)[:, None] * (table / np.abs(table).max(axis=0))
    solution = linprog(
        -signed_table.sum(axis=0), A_ub=-signed_table, b_ub=np.zeros(len(y)), bounds=[(-1, 1)] * len(names)
    )
    if not solution.success or -solution.fun < _MIN_SEPARATION * len(y):
        return []
    weights = zip(names[1:], solution.x[1:], strict=True)
    return [name for name, weight in weights if abs(weight) > _MIN_DIRECTION] or names[1:]


def find_coefficient(coefficients: tuple[Coefficient, ...], name: str) -> Coefficient:
    """Return the coefficient of a predictor, or raise KeyError with the names that there are."""
    by_name = {coefficient.name: coefficient for coefficient in coefficients}
    if name not in by_name:
        raise KeyError(f"no coefficient {name!r}; there are {', '.join(by_name)}")
    return by_name[name]


def wald_coefficient(name: str, estimate: float, se: float, level: float, *, is_odds: bool) -> Coefficient:
    """Return a coefficient with Wald's z test and interval, which assume a normal estimate.

    Args:
        is_odds: Whether the estimate is of log-odds, so that its exponential is an odds ratio.
    """
    z = estimate / se
    half_width = float(ndtri((1 + level) / 2)) * se
    ends = estimate - half_width, estimate + half_width
    odds = [float(np.exp(log_odds)) for log_odds in (estimate, *ends)] if is_odds else [None, None, None]
    return Coefficient(name, estimate, se, z, 2 * float(ndtr(-abs(z))), *ends, *odds)
