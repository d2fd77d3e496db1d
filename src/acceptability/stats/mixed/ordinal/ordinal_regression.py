"""Ordinal regression by a formula: what `regress` returns for the families "ordinal" and "ordinal-probit"."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from acceptability.errors import MeasureError
from acceptability.stats.mixed.mixed_formula import ModelData, build_model_data, parse_mixed_formula
from acceptability.stats.mixed.mixed_regression import (
    MixedRegression,
    build_coefficients,
    build_random_effect_sds,
    compute_r2,
)
from acceptability.stats.mixed.ordinal.ordinal_fit import OrdinalFit, fit_ordinal
from acceptability.stats.mixed.random_effects import INTERCEPT, RandomEffects, build_random_effects
from acceptability.stats.mixed.satterthwaite import t_quantile
from acceptability.stats.mixed.summary_tables import FixedEffect, Threshold

LINK_BY_FAMILY = {"ordinal": "logit", "ordinal-probit": "probit"}


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalRegression(MixedRegression):
    """A fitted ordinal model; there is no intercept among the coefficients, for which the thresholds stand.

    A positive coefficient makes higher levels likelier. With the logit link its exponential is the ratio of the odds of
    a level above any threshold.

    Args:
        thresholds: The thresholds between the levels, from the lowest.
        link: "logit" (proportional odds) or "probit".
    """

    thresholds: tuple[Threshold, ...]
    link: str

    def list_thresholds(self) -> tuple[Threshold, ...]:
        """Return the thresholds."""
        return self.thresholds

    def list_notes(self) -> list[str]:
        """Return what has to stand beside the numbers."""
        # Without predictors there is no coefficient whose note names the intervals.
        own = [] if self.coefficients else [f"Intervals: {self.thresholds[0].interval}."]
        return [*own, *super().list_notes()]

    def describe_model(self) -> str:
        """Return the kind of model."""
        kind = "Ordinal mixed model" if self.random_effects else "Ordinal model"
        return f"{kind} ({self.link} link, {self.method})"


def regress_ordinal(formula: str, frame: Any, *, link: str = "logit", level: float = 0.95) -> OrdinalRegression:
    """Fit an ordinal model by a formula; random effects may be left out.

    Args:
        formula: As for ``regress``: "rating ~ condition + (1 | subject) + (1 | item)".
        frame: A pandas data frame, or a mapping of columns. The outcome's levels are its distinct numbers in increasing
            order, or the categories of an ordered pandas Categorical.
        link: "logit" (proportional odds) or "probit".
        level: The confidence level of the intervals.

    >>> ratings = [1, 1, 2, 3, 1, 2, 3, 3, 2, 3, 1, 2]
    >>> result = regress_ordinal("rating ~ length", {"rating": ratings, "length": [4, 5, 6, 8, 3, 6, 7, 9, 4, 7, 5, 5]})
    >>> [threshold.name for threshold in result.thresholds], round(result["length"].estimate, 2)
    (['1|2', '2|3'], 2.45)
    """
    data, levels, codes = encode_outcome(formula, frame)
    random = build_random_effects(data.random) if data.random else RandomEffects((), len(codes))
    fit = fit_ordinal(codes, levels, data.fixed, random, link=link)
    marginal, conditional = compute_r2(fit)
    return OrdinalRegression(
        formula=" ".join(formula.split()),
        family="ordinal" if link == "logit" else f"ordinal-{link}",
        coefficients=_build_slopes(fit, level),
        random_effects=build_random_effect_sds(fit),
        residual_sd=None,
        log_likelihood=-fit.deviance / 2,
        method=fit.method,
        is_singular=fit.is_singular,
        r2_marginal=marginal,
        r2_conditional=conditional,
        fit=fit,
        data=data,
        thresholds=_build_thresholds(fit, level),
        link=link,
    )


def encode_outcome(formula: str, frame: Any) -> tuple[ModelData, list[str], Any]:
    """Return the arrays of the model, the levels of its outcome, and each row's level."""
    outcome = parse_mixed_formula(formula).outcome
    column: Any = frame.get(outcome) if hasattr(frame, "get") else None
    dtype: Any = getattr(column, "dtype", None)
    if not hasattr(dtype, "categories"):
        data = build_model_data(formula, frame)
        numbers, codes = np.unique(data.outcome, return_inverse=True)
        return data, [f"{number:.12g}" for number in numbers], codes.astype(np.int64)
    if not dtype.ordered:
        raise MeasureError(f"the categories of {outcome!r} have no order: make it an ordered Categorical, or numbers")
    # The codes in the place of the categories: formulaic would make one column of each. Missing answers stay missing.
    numbers = column.cat.codes if hasattr(column, "cat") else column.codes
    data = build_model_data(formula, {**dict(frame), outcome: np.where(np.asarray(numbers) < 0, np.nan, numbers)})
    used, codes = np.unique(data.outcome.astype(np.int64), return_inverse=True)
    return data, [str(dtype.categories[k]) for k in used], codes.astype(np.int64)


def _build_slopes(fit: OrdinalFit, level: float) -> tuple[FixedEffect, ...]:
    effects = [effect for effect in build_coefficients(fit, None, level) if effect.name != INTERCEPT]
    if fit.link.name == "logit":
        return tuple(effects)
    # The exponential of a difference in standard deviations of the latent variable is no ratio of odds.
    return tuple(replace(effect, odds_ratio=None) for effect in effects)


def _build_thresholds(fit: OrdinalFit, level: float) -> tuple[Threshold, ...]:
    reach = t_quantile(level, math.inf)
    ses = np.sqrt(np.diag(fit.threshold_covariance)).tolist()
    return tuple(
        Threshold(name, estimate, se, estimate - reach * se, estimate + reach * se, f"{level:.12g} Wald")
        for name, estimate, se in zip(fit.threshold_names, fit.thresholds.tolist(), ses, strict=True)
    )
