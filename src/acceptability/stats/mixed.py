"""Mixed-effects models: regressions whose rows share items, types or people.

Each kind of group has a random intercept, and kinds may be crossed. The linear model is fitted by REML or maximum
likelihood over the profiled deviance, the logistic one by the Laplace approximation, both as in lme4 (Bates et al.
2015). The numbers commonly quoted for lme4's fits of ``sleepstudy`` and ``Penicillin`` (crossed) come out; of ``cbpp``
(logistic) the criterion does, coefficients and spread to .001, standard errors to .006, since our search for the
random effects goes further. statsmodels has both models too: its linear one agrees with ours, more slowly; its
logistic one is a variational approximation whose errors are too small (.11 instead of .23 for the constant of
``cbpp``), which is why ours is not built on it. There are no random slopes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.crossed import Groups, curvature, grouped, minimum
from acceptability.stats.design import Coefficient, binary, design, named, separating, wald
from acceptability.stats.samples import check_level, varies
from acceptability.types import Floats

_NEWTON_STEPS = 100
_LARGEST_RATIO = 1e5
"""How many times the error a spread may be."""
_LARGEST_LOG_ODDS = 20.0
"""A spread beyond this one says that groups are all right or all wrong."""


@dataclass(frozen=True)
class Spread:
    """The standard deviation of a random effect's intercepts, and over how many groups; 0 where they do not differ."""

    name: str
    sd: float
    groups: int


@dataclass(frozen=True)
class MixedModel:
    """A fitted mixed model.

    Args:
        coefficients: With Wald z and p, which are too small where groups are few; in a logistic model the effect is
            an odds ratio.
        residual_sd: The standard deviation within groups; None in a logistic model.
        criterion: Minus twice the log-likelihood (for REML: the restricted one).
        method: "REML", "ML" or "Laplace".
        r2_marginal, r2_conditional: The effect size of the whole (Nakagawa and Schielzeth 2013): the share of the
            variance that predictors explain, and that predictors and groups explain together.
    """

    coefficients: tuple[Coefficient, ...]
    spreads: tuple[Spread, ...]
    residual_sd: float | None
    criterion: float
    method: str
    r2_marginal: float
    r2_conditional: float
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return named(self.coefficients, name)


def mixed_linear(
    outcome: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[object]],
    *,
    reml: bool = True,
    level: float = 0.95,
) -> MixedModel:
    """Fit how an outcome depends on predictors, with random intercepts for groups of rows.

    Assumes that intercepts and residuals are normal, independent of each other and of the predictors.

    Args:
        random: For each kind of group, such as ``item`` and ``type``, which one each row is in.
        reml: Restricted maximum likelihood, whose spreads are unbiased; False to compare models by their criterion.
    """
    check_level(level)
    y, table, names = design(outcome, predictors)
    varies("the outcome", y)
    groups = grouped(random, len(y))
    if any(size >= len(y) for size in groups.sizes):
        raise Undefined("a kind of group has a single row in each: its spread cannot be told from the error")
    basis, turn = _orthonormal(table)
    fit = _profiled(y, basis, groups, reml=reml)
    thetas = minimum(lambda each: fit(each)[0], np.ones(len(groups.names)), len(groups.names), _LARGEST_RATIO)
    # The determinant of the predictors' own table, which the orthonormal basis leaves out.
    criterion, estimates, covariance, variance = fit(thetas)
    criterion -= 2 * float(np.linalg.slogdet(turn)[1]) if reml else 0.0
    coefficients = _coefficients(names, turn @ estimates, turn @ covariance @ turn.T, level, is_odds=False)
    sds = thetas * math.sqrt(variance)
    method = "REML" if reml else "ML"
    explained = _explained(basis @ estimates, sds, variance)
    return MixedModel(coefficients, _spreads(groups, sds), math.sqrt(variance), criterion, method, *explained, len(y))


def mixed_logistic(
    outcome: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[object]],
    *,
    level: float = 0.95,
) -> MixedModel:
    """Fit how the log-odds of an outcome of 0 and 1 depend on predictors, with random intercepts for groups of rows.

    Assumes that intercepts are normal and independent of the predictors. By the Laplace approximation, which makes
    spreads a little too small where groups have few rows. Standard errors are from the curvature over all
    parameters, as in lme4.
    """
    check_level(level)
    y, table, names = design(outcome, predictors)
    binary(y)
    if culprits := separating(y, table, names):
        raise Undefined(f"{', '.join(culprits)} separate the outcomes: there is no finite estimate")
    groups = grouped(random, len(y))
    basis, turn = _orthonormal(table)
    kinds = len(groups.names)
    value = _laplace(y, basis, groups)
    at = minimum(value, np.concatenate([np.ones(kinds), _plain_logistic(y, basis)]), kinds, _LARGEST_LOG_ODDS)
    thetas, estimates = at[:kinds], at[kinds:]
    covariance = _covariance(value, at, kinds)
    coefficients = _coefficients(names, turn @ estimates, turn @ covariance @ turn.T, level, is_odds=True)
    explained = _explained(basis @ estimates, thetas, math.pi**2 / 3)
    return MixedModel(coefficients, _spreads(groups, thetas), None, value(at), "Laplace", *explained, len(y))


_Profiled = Callable[[Floats], tuple[float, Floats, Floats, float]]


def _profiled(y: Floats, basis: Floats, groups: Groups, *, reml: bool) -> _Profiled:
    """Return the function from relative spreads to criterion, coefficients, their covariance and residual variance."""
    from scipy.linalg import cholesky, solve_triangular

    n, p = basis.shape
    start = np.linalg.lstsq(basis, y, rcond=None)[0]
    rest = y - basis @ start
    rows = n - p if reml else n
    within, across, onto = (groups.table.T @ each for each in (groups.table, basis, rest))
    within = within.toarray()

    def fit(thetas: Floats) -> tuple[float, Floats, Floats, float]:
        spread = groups.spread(thetas)
        lower = cholesky(spread[:, None] * within * spread + np.eye(len(spread)), lower=True)
        shared = solve_triangular(lower, spread[:, None] * np.column_stack([across, onto]), lower=True)
        inner = np.linalg.cholesky(basis.T @ basis - shared[:, :p].T @ shared[:, :p])
        shift = np.linalg.solve(inner, basis.T @ rest - shared[:, :p].T @ shared[:, p])
        squares = float(rest @ rest - shared[:, p] @ shared[:, p] - shift @ shift)
        if squares <= 1e-14 * float(y @ y):
            raise Undefined("groups and predictors give the outcome exactly: there is no error left")
        logs = float(np.log(np.diag(lower)).sum()) + (float(np.log(np.diag(inner)).sum()) if reml else 0.0)
        criterion = 2 * logs + rows * (1 + math.log(2 * math.pi * squares / rows))
        back = np.linalg.inv(inner).T
        return criterion, start + back @ shift, back @ back.T * squares / rows, squares / rows

    return fit


def _laplace(y: Floats, basis: Floats, groups: Groups) -> Callable[[Floats], float]:
    """Return the function from spreads and coefficients to minus twice the approximate log-likelihood."""
    from scipy.linalg import cho_factor, cho_solve

    kinds = len(groups.names)
    modes = np.zeros(sum(groups.sizes))

    def value(at: Floats) -> float:
        nonlocal modes
        spread, fixed = groups.spread(at[:kinds]), basis @ at[kinds:]

        def penalised(modes: Floats) -> tuple[float, Floats]:
            line = fixed + groups.table @ (spread * modes)
            return float(2 * (np.logaddexp(0, line) - y * line).sum() + modes @ modes), line

        here, line = penalised(modes)
        for _ in range(_NEWTON_STEPS):
            share = expit(line)
            pull = spread * (groups.table.T @ (y - share)) - modes
            weighted = groups.table.multiply((share * (1 - share))[:, None])
            bend = spread[:, None] * (groups.table.T @ weighted).toarray() * spread + np.eye(len(spread))
            factor = cho_factor(bend, lower=True)
            if np.abs(pull).max() < 1e-10:
                return here + 2 * float(np.log(np.diag(factor[0])).sum())
            step, scale = cho_solve(factor, pull), 1.0
            there, next_line = penalised(modes + step)
            while there > here + 1e-9 * abs(here) and scale > 1e-6:
                scale /= 2
                there, next_line = penalised(modes + scale * step)
            modes, here, line = modes + scale * step, there, next_line
        raise MeasureError("the most likely random effects were not found: is a predictor far out of scale?")

    return value


def _covariance(value: Callable[[Floats], float], at: Floats, kinds: int) -> Floats:
    """Return the covariance of the coefficients; a spread of 0 lies on its border and has no curvature."""
    free = [i for i in range(len(at)) if i >= kinds or at[i] > 1e-2]

    def moved(part: Floats) -> float:
        whole = at.copy()
        whole[free] = part
        return value(whole)

    whole = 2 * np.linalg.inv(curvature(moved, at[free]))
    inside = len(free) - (len(at) - kinds)
    return np.asarray(whole[inside:, inside:])


def _plain_logistic(y: Floats, basis: Floats) -> Floats:
    """Return the coefficients without random effects, to start from."""
    found = np.zeros(basis.shape[1])
    for _ in range(25):
        share = expit(basis @ found)
        bend = basis.T @ (basis * (share * (1 - share))[:, None])
        found = found + np.linalg.solve(bend, basis.T @ (y - share))
    return np.asarray(found)


def _orthonormal(table: Floats) -> tuple[Floats, Floats]:
    """Return predictors that are independent and of unit size, and the matrix that turns coefficients back."""
    q, r = np.linalg.qr(table)
    root = math.sqrt(len(table))
    return q * root, np.linalg.inv(r) * root


def _coefficients(
    names: Sequence[str], estimates: Floats, covariance: Floats, level: float, *, is_odds: bool
) -> tuple[Coefficient, ...]:
    errors = np.sqrt(np.diag(covariance)).tolist()
    return tuple(
        wald(name, each, error, level, is_odds=is_odds)
        for name, each, error in zip(names, estimates.tolist(), errors, strict=True)
    )


def _spreads(groups: Groups, sds: Floats) -> tuple[Spread, ...]:
    return tuple(map(Spread, groups.names, sds.tolist(), groups.sizes))


def _explained(fixed: Floats, sds: Floats, within: float) -> tuple[float, float]:
    """Return the shares of variance that predictors explain, and predictors with groups."""
    explained, between = float(fixed.var()), float(sds @ sds)
    whole = explained + between + within
    return explained / whole, (explained + between) / whole
