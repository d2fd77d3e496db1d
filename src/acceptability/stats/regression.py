"""Regressions: what makes a model right more often (logistic), or its scores higher (linear)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import MissingExtra, Undefined
from acceptability.stats.design import Coefficient, binary, design, named, separating, wald
from acceptability.stats.samples import check_level
from acceptability.types import Floats


@dataclass(frozen=True)
class LogisticRegression:
    """A fitted logistic regression; the effect of each coefficient is its odds ratio, with interval.

    Args:
        pseudo_r2: McFadden's: 1 − log-likelihood / that of the constant alone.
    """

    coefficients: tuple[Coefficient, ...]
    log_likelihood: float
    pseudo_r2: float
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return named(self.coefficients, name)


@dataclass(frozen=True)
class LinearRegression:
    """A fitted linear regression; the effect of each coefficient is its partial eta squared, t² / (t² + df)."""

    coefficients: tuple[Coefficient, ...]
    r2: float
    f: float | None
    p: float | None
    df: int
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return named(self.coefficients, name)


def logistic_regression(
    outcome: ArrayLike, predictors: Mapping[str, ArrayLike], *, level: float = 0.95
) -> LogisticRegression:
    """Fit how the log-odds of an outcome of 0 and 1 depend on predictors, by maximum likelihood.

    Assumes independent rows and log-odds that are linear in the predictors; where rows share items, use
    ``mixed_logistic``. Predictors that separate the outcomes have no finite coefficients: that is found by linear
    programming and is Undefined, with the predictors that do it.

    Raises:
        Undefined: The outcome has one class, the predictors separate it, or they cannot be told apart.
    """
    check_level(level)
    y, table, names = design(outcome, predictors)
    binary(y)
    if culprits := separating(y, table, names):
        raise Undefined(
            f"{', '.join(culprits)} separate the outcomes: some value is never met with a 0, or never with a 1, "
            "and the coefficients have no finite estimate. Leave a predictor away, or join its levels"
        )
    api = _statsmodels("logistic_regression")
    # Centred and scaled, predictors in thousands neither stall nor overflow the search.
    scaled, turn = _scaled(table)
    fit = api.Logit(y, scaled).fit(disp=0, method="newton", maxiter=200, tol=1e-10)
    estimates, covariance = turn @ fit.params, turn @ fit.cov_params() @ turn.T
    found = tuple(
        wald(name, float(each), math.sqrt(variance), level, is_odds=True)
        for name, each, variance in zip(names, estimates, np.diag(covariance), strict=True)
    )
    return LogisticRegression(found, float(fit.llf), float(1 - fit.llf / fit.llnull), len(y))


def linear_regression(
    outcome: ArrayLike, predictors: Mapping[str, ArrayLike], *, level: float = 0.95
) -> LinearRegression:
    """Fit how an outcome depends on predictors, by least squares.

    Assumes independent rows, a linear relation, and residuals that are normal and of equal spread.
    """
    check_level(level)
    y, table, names = design(outcome, predictors)
    df = len(y) - len(names)
    if df < 1:
        raise Undefined(f"{len(y)} rows leave nothing to tell the error of {len(names)} coefficients from")
    fit = _statsmodels("linear_regression").OLS(y, table).fit()
    if fit.ssr <= 1e-24 * max(float(y @ y), 1e-300):
        raise Undefined("the predictors give the outcome exactly: there is no error to compare with")
    ends = fit.conf_int(alpha=1 - level)
    found = tuple(
        Coefficient(name, *map(float, (fit.params[i], fit.bse[i], t, fit.pvalues[i], *ends[i], t * t / (t * t + df))))
        for i, (name, t) in enumerate(zip(names, fit.tvalues.tolist(), strict=True))
    )
    has_f = len(names) > 1
    return LinearRegression(
        found,
        float(fit.rsquared),
        float(fit.fvalue) if has_f else None,
        float(fit.f_pvalue) if has_f else None,
        df,
        len(y),
    )


def _scaled(table: Floats) -> tuple[Floats, Floats]:
    """Return the table with predictors in standard units, and the matrix that turns coefficients back."""
    middle, spread = table.mean(axis=0), table.std(axis=0)
    middle[0], spread[0] = 0.0, 1.0
    turn = np.diag(1 / spread)
    turn[0, 1:] = -middle[1:] / spread[1:]
    return (table - middle) / spread, turn


def _statsmodels(what: str) -> Any:
    try:
        import statsmodels.api
    except ImportError as error:
        raise MissingExtra(what, "statsmodels", "'acceptability[stats]'") from error
    return statsmodels.api
