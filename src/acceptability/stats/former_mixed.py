"""`mixed_linear` and `mixed_logistic`, the functions for random intercepts that `regress` replaces.

They are kept for one release, with their result, whose tests of a linear model are Wald's z. The fits are those of
``fitting``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from acceptability.errors import warn_of_former_name
from acceptability.stats.mixed.fitting import MixedFit, build_fixed_effects, fit_linear, fit_logistic
from acceptability.stats.mixed.mixed_regression import compute_r2
from acceptability.stats.mixed.random_effects import RandomEffects, build_random_effects, build_random_term
from acceptability.stats.regression import Coefficient, build_design_matrix, find_coefficient, wald_coefficient
from acceptability.stats.samples import check_level, encode_levels


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
    """Fit a linear mixed model with random intercepts; ``regress`` does more.

    Args:
        outcome: The outcome of each row.
        predictors: The value of each predictor in each row, by name; for factors see ``dummies``.
        random: For each kind of group, such as ``item`` and ``type``, the group of each row.
        reml: Restricted maximum likelihood, whose variances are unbiased; False to compare the criteria of models with
            different predictors.
        level: The confidence level of the intervals.

    Raises:
        Undefined: A kind has one group, or one row per group; the predictors are linearly dependent; the fit is exact.
    """
    warn_of_former_name("acceptability.stats.mixed_linear", "acceptability.stats.regress")
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    fit = fit_linear(y, build_fixed_effects(names, table), _build_intercepts(random, len(y)), reml=reml)
    return _collect(fit, tuple(random), level)


def mixed_logistic(
    outcome: ArrayLike,
    predictors: Mapping[str, ArrayLike],
    random: Mapping[str, Sequence[object]],
    *,
    level: float = 0.95,
) -> MixedModel:
    """Fit a logistic mixed model with random intercepts; ``regress`` does more.

    Args:
        outcome: 0 or 1 for each row.
        predictors: The value of each predictor in each row, by name; for factors see ``dummies``.
        random: For each kind of group, such as ``item`` and ``type``, the group of each row.
        level: The confidence level of the intervals.

    Raises:
        Undefined: The outcome has one class, the predictors separate it, or groups differ without bound.
    """
    warn_of_former_name("acceptability.stats.mixed_logistic", "acceptability.stats.regress")
    check_level(level)
    y, table, names = build_design_matrix(outcome, predictors)
    fit = fit_logistic(y, build_fixed_effects(names, table), _build_intercepts(random, len(y)))
    return _collect(fit, tuple(random), level)


def _build_intercepts(random: Mapping[str, Sequence[object]], n: int) -> RandomEffects:
    for name, labels in random.items():
        encode_levels(name, labels, n)
    return build_random_effects([build_random_term(name, labels) for name, labels in random.items()])


def _collect(fit: MixedFit, names: Sequence[str], level: float) -> MixedModel:
    """Return a fit in the form that these functions return, with the kinds of groups in the caller's order."""
    is_odds = fit.residual_variance is None
    ses = np.sqrt(np.diag(fit.covariance)).tolist()
    intercepts = {
        factor.group: RandomIntercept(factor.group, math.sqrt(covariance[0, 0]), len(factor.levels))
        for factor, covariance in zip(fit.random.factors, fit.covariances, strict=True)
    }
    return MixedModel(
        tuple(
            wald_coefficient(name, estimate, se, level, is_odds=is_odds)
            for name, estimate, se in zip(fit.fixed.names, fit.estimates.tolist(), ses, strict=True)
        ),
        tuple(intercepts[name] for name in names),
        None if fit.residual_variance is None else math.sqrt(fit.residual_variance),
        fit.deviance,
        fit.method,
        *compute_r2(fit),
        fit.n,
    )
