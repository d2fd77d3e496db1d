"""Satterthwaite's degrees of freedom for t and F tests of a linear mixed model's coefficients, as in lmerTest.

The variance of a coefficient is an estimate; its own variance follows from the curvature of the deviance in the
covariance parameters, and the degrees of freedom are those of the chi-squared distribution with the same mean and
variance (Giesbrecht and Burns 1985; Fai and Cornelius 1996 for several coefficients together).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from acceptability.errors import MeasureError
from acceptability.stats.mixed.fitting import MixedFit
from acceptability.stats.mixed.optimiser import differentiate_gradient, invert_hessian
from acceptability.stats.mixed.summary_tables import Cell, format_table
from acceptability.types import Floats

F_SATTERTHWAITE = "F test, Satterthwaite df"
T_SATTERTHWAITE = "t test, Satterthwaite df"
WALD_CHI2 = "Wald chi-squared test"
WALD_Z = "Wald z test"

# Directions of a contrast with a variance below this share of the largest are linear combinations of the others.
_MIN_RELATIVE_VARIANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Satterthwaite:
    """How the covariance of the coefficients depends on the variance parameters, and how certain these are.

    Args:
        covariance: The covariance of the coefficients.
        slopes: Its derivatives by the variance parameters, of shape (parameters, coefficients, coefficients).
        parameter_covariance: The covariance of the variance parameters.
    """

    covariance: Floats
    slopes: Floats
    parameter_covariance: Floats

    def compute_df(self, contrast: Floats) -> float:
        """Return the degrees of freedom of a linear combination of the coefficients."""
        variance = float(contrast @ self.covariance @ contrast)
        gradient = np.einsum("kij,i,j->k", self.slopes, contrast, contrast)
        uncertainty = float(gradient @ self.parameter_covariance @ gradient)
        # A variance that is known exactly, as far as rounding tells, has a normal estimate.
        return 2 * variance**2 / uncertainty if uncertainty > 0 else np.inf


@dataclass(frozen=True)
class TermTest:
    """The test that several coefficients are all 0.

    Args:
        term: The term of the formula, or what was tested.
        statistic: F, or chi-squared.
        df: The numerator's degrees of freedom.
        denominator_df: The denominator's; None for chi-squared.
        p: The p value.
        test: The name of the test and of its degrees of freedom.
    """

    term: str
    statistic: float
    df: int
    denominator_df: float | None
    p: float
    test: str


def build_satterthwaite(fit: MixedFit) -> Satterthwaite:
    """Return what Satterthwaite's approximation needs of a fitted linear model."""
    model = fit.linear
    if model is None or fit.residual_variance is None:
        raise MeasureError("Satterthwaite's degrees of freedom are for linear models; a logistic one has z tests")
    count, variance = len(fit.theta), fit.residual_variance / fit.scale**2

    # By theta at a given residual variance; what depends on that variance itself has a closed form.
    def evaluate(theta: Floats) -> Floats:
        point = model.evaluate(theta)
        log_determinants, squares = point.differentiate()
        unscaled = point.inverse_root @ point.inverse_root.T
        return np.concatenate([log_determinants + squares / variance, squares, unscaled.ravel()])

    table = differentiate_gradient(evaluate, fit.theta)
    point = model.evaluate(fit.theta)
    hessian = np.empty((count + 1, count + 1))
    hessian[:count, :count] = (table[:, :count] + table[:, :count].T) / 2
    hessian[:count, count] = hessian[count, :count] = -point.differentiate()[1] / variance**2
    hessian[count, count] = model.df / variance**2
    unscaled = point.inverse_root @ point.inverse_root.T
    slopes = np.concatenate([variance * table[:, 2 * count :].reshape(count, *unscaled.shape), unscaled[None]])
    back = fit.fixed.back_transform * fit.scale
    # The deviance is minus twice the log-likelihood.
    return Satterthwaite(fit.covariance, back @ slopes @ back.T, 2 * invert_hessian(hessian))


def compute_joint_test(fit: MixedFit, contrasts: Floats, name: str, approximation: Satterthwaite | None) -> TermTest:
    """Return the test that all rows of a table of contrasts are 0: F with Satterthwaite's df, or Wald's chi-squared.

    Args:
        fit: The fitted model.
        contrasts: Linear combinations of the coefficients, one in each row.
        name: What is tested.
        approximation: Satterthwaite's approximation; None for a logistic model.
    """
    values, vectors = np.linalg.eigh(contrasts @ fit.covariance @ contrasts.T)
    is_used = values > _MIN_RELATIVE_VARIANCE * values.max()
    directions = vectors[:, is_used].T @ contrasts
    squares = (directions @ fit.estimates) ** 2 / values[is_used]
    rank = int(is_used.sum())
    if approximation is None:
        return TermTest(name, float(squares.sum()), rank, None, float(chi2.sf(squares.sum(), rank)), WALD_CHI2)
    statistic = float(squares.mean())
    df = _combine_df([approximation.compute_df(direction) for direction in directions])
    return TermTest(name, statistic, rank, df, float(f_distribution.sf(statistic, rank, df)), F_SATTERTHWAITE)


def format_term_tests(tests: Sequence[TermTest]) -> str:
    """Return a table of tests with the names of the tests below it; empty without tests."""
    if not tests:
        return ""
    rows: list[list[Cell]] = [[it.term, it.statistic, str(it.df), it.denominator_df, it.p] for it in tests]
    statistic = "chi2" if tests[0].denominator_df is None else "F"
    table = format_table(["term", statistic, "df", "df2", "p"], rows)
    return f"{table}\n\nEach term given all others, as coded: {tests[0].test}."


def _combine_df(dfs: list[float]) -> float:
    """Return the denominator's degrees of freedom of an F test from those of its independent t tests."""
    if max(dfs) - min(dfs) < 1e-8:
        return float(np.mean(dfs))
    if min(dfs) <= 2:
        return 2.0
    total = sum(df / (df - 2) if np.isfinite(df) else 1.0 for df in dfs)
    return 2 * total / (total - len(dfs)) if total > len(dfs) else np.inf


def two_sided_t(statistic: float, df: float) -> float:
    """Return the two-sided p value of t; of z where the degrees of freedom are infinite."""
    return float(2 * t_distribution.sf(abs(statistic), df))


def t_quantile(level: float, df: float) -> float:
    """Return how many standard errors an interval reaches to each side."""
    return float(t_distribution.ppf((1 + level) / 2, df))
