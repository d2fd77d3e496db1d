"""Confidence intervals of a mixed model's parameters: by the profile likelihood, or by parametric bootstrap.

The profile interval of a parameter holds the values that a likelihood-ratio test does not reject: with the parameter
held there, all others are optimised anew. It suits standard deviations, whose estimates are skewed, as no Wald interval
does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.stats import chi2

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed.fitting import FixedEffects, MixedFit, fit_linear
from acceptability.stats.mixed.laplace import LaplaceDeviance, build_logistic_likelihood
from acceptability.stats.mixed.mixed_regression import MixedRegression, build_random_effect_sds
from acceptability.stats.mixed.model_comparison import iterate_simulations, refit
from acceptability.stats.mixed.optimiser import DevianceAndGradient, differentiate_gradient, minimise
from acceptability.stats.mixed.ordinal.ordinal_fit import OrdinalFit, build_ordinal_deviance, minimise_ordinal
from acceptability.stats.mixed.random_effects import RandomEffects
from acceptability.stats.mixed.summary_tables import Cell, build_frame, format_table
from acceptability.stats.samples import check_choice, check_level
from acceptability.types import Floats

# A standard deviation of this share of its estimate stands for 0, where it has no derivative.
_NEAR_ZERO = 1e-3
# How far, in doublings of the first step, an end of an interval is searched for.
_DOUBLINGS = 12


@dataclass(frozen=True)
class ParameterInterval:
    """The confidence interval of a parameter.

    Args:
        parameter: A coefficient's name; "sd: group: effect" or "sd: residual" for a standard deviation.
        estimate: The estimate (for a profile that of maximum likelihood).
        low, high: The ends.
        method: The name and the level of the interval.
    """

    parameter: str
    estimate: float
    low: float
    high: float
    method: str


@dataclass(frozen=True, eq=False)
class ParameterIntervals:
    """The confidence intervals of a model's parameters.

    Args:
        intervals: The intervals.
        note: What to know about them; often empty.
    """

    intervals: tuple[ParameterInterval, ...]
    note: str = ""

    def __getitem__(self, parameter: str) -> ParameterInterval:
        by_name = {interval.parameter: interval for interval in self.intervals}
        if parameter not in by_name:
            raise KeyError(f"no parameter {parameter!r}; there are {', '.join(by_name)}")
        return by_name[parameter]

    def to_frame(self) -> Any:
        """Return the intervals as a pandas data frame."""
        return build_frame([asdict(interval) for interval in self.intervals])

    def __str__(self) -> str:
        rows: list[list[Cell]] = [[it.parameter, it.estimate, it.low, it.high] for it in self.intervals]
        table = format_table(["parameter", "estimate", "low", "high"], rows)
        return "\n\n".join(part for part in (table, f"Intervals: {self.intervals[0].method}.", self.note) if part)

    def __repr__(self) -> str:
        method = self.intervals[0].method if self.intervals else "none"
        return f"<ParameterIntervals of {len(self.intervals)} parameters, {method}>"


def estimate_intervals(
    regression: MixedRegression, *, method: str = "profile", level: float = 0.95, draws: int = 1000, seed: int = 0
) -> ParameterIntervals:
    """Return confidence intervals of the coefficients and of the standard deviations.

    Args:
        regression: The fitted model.
        method: "profile" (likelihood; a REML fit is refitted by maximum likelihood) or "bootstrap" (parametric:
            percentiles of the estimates in simulated data).
        level: The confidence level.
        draws: The number of simulated data sets of the bootstrap.
        seed: Its seed.
    """
    check_level(level)
    check_choice("method", method, ("profile", "bootstrap"))
    if method == "bootstrap":
        return _bootstrap(regression.fit, level, draws, seed)
    fit = regression.fit
    if fit.method == "REML":
        fit = fit_linear(regression.data.outcome, fit.fixed, fit.random, reml=False, start=_move_from_zero(fit.theta))
    name = f"{level:.12g} profile likelihood"
    coefficients = [_profile_coefficient(fit, regression.data.outcome, k, level) for k in _list_coefficients(fit)]
    sds = [_profile_sd(fit, regression.data.outcome, k, level) for k in range(len(_name_sds(fit)))]
    return ParameterIntervals(tuple(replace(interval, method=name) for interval in [*coefficients, *sds]))


def _move_from_zero(theta: Floats) -> Floats:
    # A variance of 0 is stationary, and no place to start from.
    return np.where(np.abs(theta) < 0.1, 0.3, theta)


def _list_coefficients(fit: MixedFit) -> list[int]:
    """Return the indices of the coefficients that have an interval."""
    # The intercept of an ordinal model is minus the mean of its thresholds, and no parameter.
    return list(range(1 if isinstance(fit, OrdinalFit) else 0, len(fit.estimates)))


def _name_sds(fit: MixedFit) -> list[str]:
    """Return the names of the standard deviations, the residual one last."""
    names = [f"sd: {factor.group}: {name}" for factor in fit.random.factors for name in factor.columns]
    return names if fit.residual_variance is None else [*names, "sd: residual"]


def _list_sds(fit: MixedFit) -> list[float]:
    sds = [effect.sd for effect in build_random_effect_sds(fit)]
    return sds if fit.residual_variance is None else [*sds, math.sqrt(fit.residual_variance)]


def _bootstrap(fit: MixedFit, level: float, draws: int, seed: int) -> ParameterIntervals:
    indices = _list_coefficients(fit)

    def compute(outcome: Floats) -> Floats:
        simulated = refit(fit, outcome)
        return np.array([*simulated.estimates[indices], *_list_sds(simulated)])

    outcomes = list(iterate_simulations(fit, compute, draws, seed))
    values = np.array([outcome for outcome in outcomes if outcome is not None])
    lows, highs = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    method = f"{level:.12g} parametric bootstrap, percentiles, {draws} draws"
    names = [*(fit.fixed.names[k] for k in indices), *_name_sds(fit)]
    estimates = [*fit.estimates[indices].tolist(), *_list_sds(fit)]
    rows = zip(names, estimates, lows.tolist(), highs.tolist(), strict=True)
    undefined = draws - len(values)
    note = f"{undefined} simulated data sets without a fit were left out" if undefined else ""
    return ParameterIntervals(tuple(ParameterInterval(*row, method) for row in rows), note)


def _find_end(rise: Callable[[float], float], estimate: float, step: float, limit: float | None) -> float:
    """Return where the deviance has risen by as much as the level allows, in the direction of the step.

    Args:
        rise: How much more than allowed the deviance rises with the parameter at a value; negative near the estimate.
        estimate: The estimate.
        step: The first step.
        limit: A value that the parameter cannot pass; it is returned where the deviance does not rise enough before.
    """
    inner, outer = estimate, estimate + step
    for _ in range(_DOUBLINGS):
        if limit is not None and (outer - limit) * math.copysign(1, step) >= 0:
            return float(brentq(rise, limit, inner, xtol=1e-6 * abs(step))) if rise(limit) > 0 else limit
        if rise(outer) > 0:
            return float(brentq(rise, min(inner, outer), max(inner, outer), xtol=1e-6 * abs(step)))
        inner, outer = outer, outer + 2 * (outer - estimate)
    raise Undefined("the profile likelihood does not fall on one side: the data give no interval. Use the bootstrap")


def _profile_coefficient(fit: MixedFit, outcome: Floats, k: int, level: float) -> ParameterInterval:
    """Return the profile interval of a coefficient."""
    column, allowed = fit.fixed.table[:, k], float(chi2.ppf(level, 1))
    others = FixedEffects(
        tuple(np.delete(np.array(fit.fixed.names), k).tolist()), np.delete(fit.fixed.table, k, axis=1)
    )
    estimate, se = float(fit.estimates[k]), math.sqrt(fit.covariance[k, k])

    def rise(value: float) -> float:
        return _minimise_with_offset(fit, outcome, others, value * column) - fit.deviance - allowed

    low, high = (_find_end(rise, estimate, side * 2 * se, None) for side in (-1, 1))
    return ParameterInterval(fit.fixed.names[k], estimate, low, high, "")


def _minimise_with_offset(fit: MixedFit, outcome: Floats, others: FixedEffects, offset: Floats) -> float:
    """Return the deviance of a model with other fixed effects, whose linear predictor has an offset."""
    if isinstance(fit, OrdinalFit):
        return minimise_ordinal(fit, outcome, others, offset)
    if fit.residual_variance is None:
        return _minimise_logistic_offset(fit, outcome, others, offset)
    return _minimise_linear_offset(fit, outcome, others, offset)


def _minimise_linear_offset(fit: MixedFit, outcome: Floats, others: FixedEffects, offset: Floats) -> float:
    """Return the deviance of a linear model whose outcome has an offset taken off."""
    if not others.names:
        # Without any coefficient left, the profiled deviance needs no design: a column of zeros is none.
        others = FixedEffects((), np.zeros((len(outcome), 0)))
    return fit_linear(outcome - offset, others, fit.random, reml=False, start=_move_from_zero(fit.theta)).deviance


def _minimise_logistic_offset(fit: MixedFit, outcome: Floats, others: FixedEffects, offset: Floats) -> float:
    """Return the deviance of a logistic model with an offset."""
    function = _build_laplace(fit.random, outcome, others, offset)
    start = np.linalg.lstsq(others.basis, fit.fixed.table @ fit.estimates - offset, rcond=None)[0]
    return minimise(function, np.concatenate([_move_from_zero(fit.theta), start])).value


def _build_laplace(random: RandomEffects, outcome: Floats, fixed: FixedEffects, offset: Floats) -> DevianceAndGradient:
    model, likelihood, count = LaplaceDeviance(random), build_logistic_likelihood(outcome), random.theta_size

    def evaluate(parameters: Floats) -> tuple[float, Floats]:
        point = model.evaluate(parameters[:count], offset + fixed.basis @ parameters[count:], likelihood)
        return point.deviance, np.concatenate([point.theta_gradient, fixed.basis.T @ point.predictor_gradient])

    return evaluate


def _profile_sd(fit: MixedFit, outcome: Floats, k: int, level: float) -> ParameterInterval:
    """Return the profile interval of a standard deviation."""
    allowed, estimate = float(chi2.ppf(level, 1)), _list_sds(fit)[k]
    function: DevianceAndGradient
    if isinstance(fit, OrdinalFit):
        function, start, shift = build_ordinal_deviance(fit, outcome).evaluate, fit.minimum.x, 0.0
    elif fit.residual_variance is None:
        function = _build_laplace(fit.random, outcome, fit.fixed, np.zeros(fit.n))
        start, shift = fit.minimum.x, 0.0
    else:
        function = _build_linear(fit)
        start = np.append(fit.theta, math.log(fit.residual_variance / fit.scale**2) / 2)
        shift = fit.deviance - function(start)[0]
    compute_sd = _build_sd(fit, k)
    # At 0 a standard deviation has no slope, along which the search could make it larger.
    start = np.concatenate([_move_from_zero(start[: len(fit.theta)]), start[len(fit.theta) :]])
    path = {estimate: start}

    def rise(value: float) -> float:
        # From the nearest solution: along the profile the other parameters move smoothly.
        nearest = path[min(path, key=lambda known: abs(known - value))]
        found = _minimise_with_sd(function, compute_sd, nearest, value)
        path[value] = found
        return function(found)[0] + shift - fit.deviance - allowed

    step = max(estimate / 2, 1e-3 * max(_list_sds(fit)))
    floor = _NEAR_ZERO * step
    low = 0.0 if estimate <= floor else _find_end(rise, estimate, -step, floor)
    high = _find_end(rise, estimate, step, None)
    return ParameterInterval(_name_sds(fit)[k], estimate, 0.0 if low <= floor else low, high, "")


def _build_linear(fit: MixedFit) -> DevianceAndGradient:
    """Return the deviance of a linear model by theta and the log of the residual standard deviation."""
    model = fit.linear
    if model is None:
        raise MeasureError("the fit is not of a linear model")

    def evaluate(parameters: Floats) -> tuple[float, Floats]:
        point, variance = model.evaluate(parameters[:-1]), math.exp(2 * parameters[-1])
        log_determinants, squares = point.differentiate()
        value = point.log_determinants + model.df * math.log(2 * math.pi * variance) + point.squares / variance
        slope = 2 * model.df - 2 * point.squares / variance
        return value, np.append(log_determinants + squares / variance, slope)

    return evaluate


def _build_sd(fit: MixedFit, k: int) -> Callable[[Floats], float]:
    """Return a standard deviation on the user's scale as a function of the parameters."""
    names, count = _name_sds(fit), len(fit.theta)

    def compute(parameters: Floats) -> float:
        residual = 1.0 if fit.residual_variance is None else math.exp(parameters[count]) * fit.scale
        if names[k] == "sd: residual":
            return residual
        covariances = fit.random.compute_covariances(parameters[:count])
        return residual * math.sqrt(np.concatenate([np.diag(covariance) for covariance in covariances])[k])

    return compute


def _minimise_with_sd(
    function: DevianceAndGradient, compute_sd: Callable[[Floats], float], start: Floats, value: float
) -> Floats:
    """Return the parameters with the lowest deviance at which a standard deviation has a value."""
    # In units of the standard deviation, so that the constraint is of the parameters' scale, whatever the outcome's.
    # Not as a ratio: a standard deviation is linear in the parameters, or nearly, and its logarithm far from it near 0.
    unit = max(compute_sd(start), value)
    constraint = {
        "type": "eq",
        "fun": lambda x: (compute_sd(x) - value) / unit,
        "jac": lambda x: differentiate_gradient(lambda at: np.array([compute_sd(at) / unit]), x)[:, 0],
    }
    result = minimize(
        function, start, jac=True, method="SLSQP", constraints=[constraint], options={"maxiter": 500, "ftol": 1e-10}
    )
    if abs(constraint["fun"](result.x)) > 1e-5:  # type: ignore[operator]
        raise MeasureError("the profile likelihood of a standard deviation was not found; use method='bootstrap'")
    return np.asarray(result.x)
