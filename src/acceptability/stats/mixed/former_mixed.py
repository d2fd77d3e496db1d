"""Mixed-effects models: linear and logistic regression whose rows share items, types or people.

Each kind of group has a random intercept, and kinds may be crossed; there are no random slopes. The linear model is
fitted by REML or maximum likelihood over the profiled deviance, the logistic one by maximum likelihood in the Laplace
approximation, both as in lme4 (Bates et al. 2015). The search over the parameters is SciPy's L-BFGS-B.

The numbers commonly quoted for lme4's fits of ``sleepstudy`` and ``Penicillin`` (crossed) come out; of ``cbpp``
(logistic) the criterion does, coefficients and standard deviation to .001, standard errors to .006, since our search
for the random effects is carried further. statsmodels has both models too. Its linear one agrees with ours but is
slower; its logistic one is a variational approximation whose standard errors are too small (.11 instead of .23 for the
intercept of ``cbpp``), which is why ours is not built on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.regression import (
    Coefficient,
    build_design_matrix,
    check_binary,
    find_coefficient,
    find_separating_predictors,
    wald_coefficient,
)
from acceptability.stats.samples import check_level, encode_levels, require_variation
from acceptability.types import Floats

# The largest standard deviation of random intercepts that is believed: in the linear model as a multiple of the
# residual one, in the logistic model in log-odds, where 20 means groups that are all right or all wrong. A search that
# gets near it is following a likelihood without a maximum.
_MAX_SD_RATIO = 1e5
_MAX_SD_LOG_ODDS = 20.0
# The largest slope of the criterion at an end of the search. L-BFGS-B also stops where rounding hides further progress,
# which is fine at a slope like this one, and anywhere else not a solution.
_MAX_SLOPE = 0.01
# Newton steps towards the modes of the random effects; a handful is usual.
_NEWTON_STEPS = 100
_MODE_TOLERANCE = 1e-10
# A standard deviation below this counts as 0, on the border of its range, when the Hessian is computed.
_MIN_FREE_SD = 1e-2
# Relative to the outcome's sum of squares: a residual below is the rounding error of an exact fit.
_MIN_RESIDUAL_SHARE = 1e-14


@dataclass(frozen=True)
class RandomIntercept:
    """The standard deviation of a kind of group's random intercepts (0 where groups do not differ), and its groups."""

    name: str
    sd: float
    groups: int


@dataclass(frozen=True)
class MixedModel:
    """A fitted mixed-effects model.

    Args:
        coefficients: The fixed effects with Wald's z and p, which are too small where groups are few; in a logistic
            model the effect size is an odds ratio.
        residual_sd: The standard deviation within groups; None in a logistic model.
        criterion: Minus twice the log-likelihood (for REML: the restricted one).
        method: "REML", "ML" or "Laplace".
        r2_marginal, r2_conditional: The effect size of the whole model (Nakagawa and Schielzeth 2013): the share of the
            variance explained by the predictors, and by predictors and groups together.
    """

    coefficients: tuple[Coefficient, ...]
    random_intercepts: tuple[RandomIntercept, ...]
    residual_sd: float | None
    criterion: float
    method: str
    r2_marginal: float
    r2_conditional: float
    n: int

    def __getitem__(self, name: str) -> Coefficient:
        return find_coefficient(self.coefficients, name)


def mixed_linear(
    outcome: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[object]],
    *,
    reml: bool = True,
    level: float = 0.95,
) -> MixedModel:
    """Fit a linear mixed model: how an outcome depends on predictors, with random intercepts for groups of rows.

    Assumes that intercepts and residuals are normal, independent of each other and of the predictors.

    Args:
        predictors: The value of each predictor in each row, by name; for factors see ``dummies``.
        random: For each kind of group, such as ``item`` and ``type``, the group of each row.
        reml: Restricted maximum likelihood, whose variances are unbiased; False to compare the criteria of models with
            different predictors.
        level: The confidence level of the intervals.

    Raises:
        Undefined: A kind has one group, or one row per group; the predictors are linearly dependent; the fit is exact.
    """
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    require_variation("the outcome", y)
    groups = build_random_design(random, len(y))
    if any(size >= len(y) for size in groups.sizes):
        raise Undefined(
            "a kind of group has a single row in each: its variance cannot be separated from the residual one"
        )
    basis, back_transform = _orthonormalise(table)
    compute_fit = _profile_deviance(y, basis, groups, reml=reml)
    kinds = len(groups.names)
    sd_ratios = minimise_lbfgs(lambda ratios: compute_fit(ratios)[0], np.ones(kinds), kinds, _MAX_SD_RATIO)
    criterion, estimates, covariance, variance = compute_fit(sd_ratios)
    # REML depends on the scale of the predictors: this is the log-determinant of their own table, which the orthonormal
    # basis leaves out, and without which the criterion would not be lme4's.
    criterion -= 2 * float(np.linalg.slogdet(back_transform)[1]) if reml else 0.0
    sds = sd_ratios * math.sqrt(variance)
    r2_marginal, r2_conditional = _compute_r2(basis @ estimates, sds, variance)
    return MixedModel(
        _build_coefficients(names, estimates, covariance, back_transform, level, is_odds=False),
        _build_random_intercepts(groups, sds),
        math.sqrt(variance),
        criterion,
        "REML" if reml else "ML",
        r2_marginal,
        r2_conditional,
        len(y),
    )


def mixed_logistic(
    outcome: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[object]],
    *,
    level: float = 0.95,
) -> MixedModel:
    """Fit a logistic mixed model: how the log-odds of a binary outcome depend on predictors, with random intercepts.

    Assumes that intercepts are normal and independent of the predictors. The likelihood is the Laplace approximation,
    which makes standard deviations of intercepts a little too small where groups have few rows. Standard errors are
    from the Hessian over all parameters, as in lme4.

    Args:
        outcome: 0 or 1 for each row.
        predictors: The value of each predictor in each row, by name; for factors see ``dummies``.
        random: For each kind of group, such as ``item`` and ``type``, the group of each row.
        level: The confidence level of the intervals.

    Raises:
        Undefined: The outcome has one class, the predictors separate it, or groups differ without bound.
    """
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    check_binary(y)
    if culprits := find_separating_predictors(y, table, names):
        raise Undefined(f"{', '.join(culprits)} separate the outcomes: there is no finite estimate")
    groups = build_random_design(random, len(y))
    basis, back_transform = _orthonormalise(table)
    kinds = len(groups.names)
    deviance = _laplace_deviance(y, basis, groups)
    start = np.concatenate([np.ones(kinds), _fit_plain_logistic(y, basis)])
    solution = minimise_lbfgs(deviance, start, kinds, _MAX_SD_LOG_ODDS)
    sds, estimates = solution[:kinds], solution[kinds:]
    covariance = _compute_covariance(deviance, solution, kinds)
    # On the latent scale of log-odds the residual variance is that of the standard logistic distribution, π²/3.
    r2_marginal, r2_conditional = _compute_r2(basis @ estimates, sds, math.pi**2 / 3)
    return MixedModel(
        _build_coefficients(names, estimates, covariance, back_transform, level, is_odds=True),
        _build_random_intercepts(groups, sds),
        None,
        deviance(solution),
        "Laplace",
        r2_marginal,
        r2_conditional,
        len(y),
    )


@dataclass(frozen=True, eq=False)
class RandomEffectsDesign:
    """The random-effects design matrix: a sparse table of 0 and 1, (rows, groups), the kinds of groups side by side.

    Args:
        names: The kinds of groups.
        sizes: The number of groups of each kind.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    table: Any

    def expand_sds(self, sds: Floats) -> Floats:
        """Return the standard deviation of each group's intercept, from those of the kinds."""
        return np.repeat(sds, self.sizes)


def build_random_design(random: Mapping[str, Sequence[object]], n: int) -> RandomEffectsDesign:
    """Return the design of random intercepts for n rows; a kind with one group only is Undefined."""
    from scipy import sparse

    if not random:
        raise MeasureError("a mixed model needs random effects, such as {'item': [...]}; without, use a regression")
    tables, sizes = [], []
    for name, labels in random.items():
        levels, codes = encode_levels(name, labels, n)
        if len(levels) < 2:
            raise Undefined(f"all rows have the same {name}, {levels[0]!r}: its variance cannot be estimated")
        # Sparse: each row has one 1 per kind, and a dense table of thousands of items may not fit into memory.
        tables.append(sparse.csr_matrix((np.ones(n), (np.arange(n), codes)), shape=(n, len(levels))))
        sizes.append(len(levels))
    return RandomEffectsDesign(tuple(random), tuple(sizes), sparse.hstack(tables, format="csr"))


_DevianceFunction = Callable[[Floats], tuple[float, Floats, Floats, float]]


def _profile_deviance(y: Floats, basis: Floats, groups: RandomEffectsDesign, *, reml: bool) -> _DevianceFunction:
    """Return the profiled deviance of a linear mixed model, by penalised least squares (Bates et al. 2015, section 3).

    Coefficients and residual variance have a closed form given the ratios of the intercepts' standard deviations to the
    residual one, so that the search is over these few ratios only.

    Returns:
        The function from the ratios to the deviance, the coefficients, their covariance and the residual variance.
    """
    from scipy.linalg import cholesky, solve_triangular

    n, p = basis.shape
    # The random effects are fitted to the residuals of ordinary least squares, which loses fewer digits where the
    # outcome is far from 0.
    plain_estimates = np.linalg.lstsq(basis, y, rcond=None)[0]
    residuals = y - basis @ plain_estimates
    df = n - p if reml else n
    # The products with the outcome and the predictors do not depend on the ratios, and are computed once for all steps.
    within, across, onto = (groups.table.T @ part for part in (groups.table, basis, residuals))
    within = within.toarray()

    def compute_fit(sd_ratios: Floats) -> tuple[float, Floats, Floats, float]:
        ratios = groups.expand_sds(sd_ratios)
        # The identity keeps this positive definite even for a ratio of 0, where the intercepts vanish.
        lower = cholesky(ratios[:, None] * within * ratios + np.eye(len(ratios)), lower=True)
        shared = solve_triangular(lower, ratios[:, None] * np.column_stack([across, onto]), lower=True)
        inner = np.linalg.cholesky(basis.T @ basis - shared[:, :p].T @ shared[:, :p])
        shift = np.linalg.solve(inner, basis.T @ residuals - shared[:, :p].T @ shared[:, p])
        squares = float(residuals @ residuals - shared[:, p] @ shared[:, p] - shift @ shift)
        if squares <= _MIN_RESIDUAL_SHARE * float(y @ y):
            raise Undefined("groups and predictors give the outcome exactly: there is no error left")
        log_determinant = float(np.log(np.diag(lower)).sum())
        log_determinant += float(np.log(np.diag(inner)).sum()) if reml else 0.0
        criterion = 2 * log_determinant + df * (1 + math.log(2 * math.pi * squares / df))
        back = np.linalg.inv(inner).T
        return criterion, plain_estimates + back @ shift, back @ back.T * squares / df, squares / df

    return compute_fit


def _laplace_deviance(y: Floats, basis: Floats, groups: RandomEffectsDesign) -> Callable[[Floats], float]:
    """Return the deviance of a logistic mixed model in the Laplace approximation.

    The integral over the random effects is approximated around their modes, which are found by Newton's method with
    step halving (penalised iteratively reweighted least squares).

    Returns:
        The function from the intercepts' standard deviations, followed by the coefficients, to the deviance.
    """
    from scipy.linalg import cho_factor, cho_solve

    kinds = len(groups.names)
    # Each call starts from the modes of the call before: the search moves in small steps, and so do the modes.
    modes = np.zeros(sum(groups.sizes))

    def deviance(parameters: Floats) -> float:
        nonlocal modes
        sds, fixed = groups.expand_sds(parameters[:kinds]), basis @ parameters[kinds:]

        def penalised_deviance(modes: Floats) -> tuple[float, Floats]:
            logits = fixed + groups.table @ (sds * modes)
            return float(2 * (np.logaddexp(0, logits) - y * logits).sum() + modes @ modes), logits

        current, logits = penalised_deviance(modes)
        for _ in range(_NEWTON_STEPS):
            probabilities = expit(logits)
            gradient = sds * (groups.table.T @ (y - probabilities)) - modes
            weighted = groups.table.multiply((probabilities * (1 - probabilities))[:, None])
            hessian = sds[:, None] * (groups.table.T @ weighted).toarray() * sds + np.eye(len(sds))
            factor = cho_factor(hessian, lower=True)
            # Tight, since the deviance is differenced twice for the standard errors: what the modes lack appears there
            # multiplied by a million.
            if np.abs(gradient).max() < _MODE_TOLERANCE:
                return current + 2 * float(np.log(np.diag(factor[0])).sum())
            step, scale = cho_solve(factor, gradient), 1.0
            candidate, logits = penalised_deviance(modes + step)
            # A full Newton step can overshoot where most predictions are near 0 or 1. The slack lets the last steps
            # pass, whose gain is below the rounding of the deviance.
            while candidate > current + 1e-9 * abs(current) and scale > 1e-6:
                scale /= 2
                candidate, logits = penalised_deviance(modes + scale * step)
            modes, current = modes + scale * step, candidate
        raise MeasureError("the modes of the random effects were not found: is a predictor far out of scale?")

    return deviance


def minimise_lbfgs(criterion: Callable[[Floats], float], start: Floats, sd_count: int, max_sd: float) -> Floats:
    """Return the minimum of a smooth criterion, by SciPy's L-BFGS-B with bounds.

    Args:
        sd_count: The number of leading parameters that are standard deviations, and so are not negative.
        max_sd: Their upper bound.

    Raises:
        Undefined: A standard deviation reaches the upper bound.
        MeasureError: The search stopped on a slope.
    """
    from scipy.optimize import minimize

    bounds = [(0.0, max_sd)] * sd_count + [(None, None)] * (len(start) - sd_count)
    options = {"maxiter": 1000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-7}
    # Central differences: forward ones are accurate to about seven digits only, and so would the parameters be.
    result = minimize(criterion, start, method="L-BFGS-B", jac="3-point", bounds=bounds, options=options)
    solution = np.asarray(result.x, dtype=np.float64)
    if (solution[:sd_count] > 0.99 * max_sd).any():
        raise Undefined("the variance of a random effect grows without bound: within its groups all rows are alike")
    slope = np.asarray(result.jac)
    # At the border of 0 the criterion may rise inwards: groups that do not differ are a solution.
    slope[:sd_count] = np.where(solution[:sd_count] <= 0, np.minimum(slope[:sd_count], 0), slope[:sd_count])
    if np.abs(slope).max() > _MAX_SLOPE:
        raise MeasureError(f"the mixed model did not converge (slope {np.abs(slope).max():.3g}): use fewer predictors")
    return solution


def compute_hessian(function: Callable[[Floats], float], at: Floats, step: float = 1e-3) -> Floats:
    """Return the Hessian of a function by finite differences: of the fourth order on the diagonal, else the second."""
    n = len(at)
    hessian = np.empty((n, n))
    unit = np.eye(n) * step
    middle = function(at)
    for i in range(n):
        near, far = (function(at + k * unit[i]) + function(at - k * unit[i]) for k in (1, 2))
        hessian[i, i] = (16 * near - far - 30 * middle) / (12 * step**2)
        for j in range(i):
            corners = [function(at + a * unit[i] + b * unit[j]) * a * b for a in (1, -1) for b in (1, -1)]
            hessian[i, j] = hessian[j, i] = sum(corners) / (4 * step**2)
    return hessian


def _compute_covariance(deviance: Callable[[Floats], float], solution: Floats, kinds: int) -> Floats:
    """Return the covariance of the coefficients: their block of the inverse Hessian over all parameters."""
    # A standard deviation of 0 lies on the border of its range, where the likelihood need not have a horizontal tangent
    # and its curvature says nothing about the error: it counts as fixed.
    free = [i for i in range(len(solution)) if i >= kinds or solution[i] > _MIN_FREE_SD]

    def evaluate_free(free_parameters: Floats) -> float:
        parameters = solution.copy()
        parameters[free] = free_parameters
        return deviance(parameters)

    # The deviance is minus twice the log-likelihood, whose negative Hessian is the information matrix.
    covariance = 2 * np.linalg.inv(compute_hessian(evaluate_free, solution[free]))
    free_sds = len(free) - (len(solution) - kinds)
    return np.asarray(covariance[free_sds:, free_sds:])


def _fit_plain_logistic(y: Floats, basis: Floats) -> Floats:
    """Return the coefficients of a logistic regression without random effects, to start the search from."""
    # A few Newton steps rather than a library: a starting point need not be exact, and so this works without an extra.
    estimates = np.zeros(basis.shape[1])
    for _ in range(25):
        probabilities = expit(basis @ estimates)
        hessian = basis.T @ (basis * (probabilities * (1 - probabilities))[:, None])
        estimates = estimates + np.linalg.solve(hessian, basis.T @ (y - probabilities))
    return np.asarray(estimates)


def _orthonormalise(table: Floats) -> tuple[Floats, Floats]:
    """Return an orthogonal basis of the design matrix (QR), and the matrix that maps coefficients back from it.

    Predictors of very different scales, or that are nearly collinear, would make the search slow and the Hessian
    inaccurate. The columns have mean square 1, so that one step size fits all coefficients.
    """
    q, r = np.linalg.qr(table)
    root = math.sqrt(len(table))
    return q * root, np.linalg.inv(r) * root


def _build_coefficients(
    names: Sequence[str], estimates: Floats, covariance: Floats, back_transform: Floats, level: float, *, is_odds: bool
) -> tuple[Coefficient, ...]:
    """Return the coefficients of the predictors, from those of the basis."""
    ses = np.sqrt(np.diag(back_transform @ covariance @ back_transform.T)).tolist()
    return tuple(
        wald_coefficient(name, estimate, se, level, is_odds=is_odds)
        for name, estimate, se in zip(names, (back_transform @ estimates).tolist(), ses, strict=True)
    )


def _build_random_intercepts(groups: RandomEffectsDesign, sds: Floats) -> tuple[RandomIntercept, ...]:
    return tuple(map(RandomIntercept, groups.names, sds.tolist(), groups.sizes))


def _compute_r2(fixed: Floats, sds: Floats, residual_variance: float) -> tuple[float, float]:
    """Return the marginal and the conditional R² (Nakagawa and Schielzeth 2013)."""
    explained, between = float(fixed.var()), float(sds @ sds)
    total = explained + between + residual_variance
    return explained / total, (explained + between) / total
