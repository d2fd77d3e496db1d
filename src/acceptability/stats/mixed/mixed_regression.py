"""`regress`: a linear, logistic or ordinal mixed model by a formula, with its tests and intervals, each named."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from acceptability.errors import MeasureError
from acceptability.stats.mixed.fitting import MixedFit, fit_linear, fit_logistic
from acceptability.stats.mixed.mixed_formula import ModelData, build_model_data
from acceptability.stats.mixed.random_effects import build_random_effects
from acceptability.stats.mixed.satterthwaite import (
    T_SATTERTHWAITE,
    WALD_Z,
    Satterthwaite,
    TermTest,
    build_satterthwaite,
    compute_joint_test,
    t_quantile,
    two_sided_t,
)
from acceptability.stats.mixed.summary_tables import FixedEffect, RandomEffectSd, RegressionSummary
from acceptability.stats.samples import check_choice, check_level
from acceptability.types import Floats

if TYPE_CHECKING:
    from acceptability.stats.mixed.lme4.lme4_regression import Lme4Regression

FAMILIES = ("gaussian", "binomial", "ordinal", "ordinal-probit")
ENGINES = ("acceptability", "lme4")


@dataclass(frozen=True, eq=False, repr=False)
class MixedRegression(RegressionSummary):
    """A fitted mixed model.

    Args:
        r2_marginal, r2_conditional: The share of the variance that the predictors explain, and predictors and groups
            together (Nakagawa and Schielzeth 2013; with slopes Johnson 2014); of log-odds in a logistic model, of the
            latent variable in an ordinal one.
        fit: The arrays of the fit.
        data: The arrays of the data.
    """

    r2_marginal: float
    r2_conditional: float
    fit: MixedFit
    data: ModelData

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.fit.n

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return self.fit.parameters

    @cached_property
    def satterthwaite(self) -> Satterthwaite | None:
        """What Satterthwaite's degrees of freedom are computed from; None in a logistic model."""
        return build_satterthwaite(self.fit) if self.family == "gaussian" else None

    def test_terms(self) -> tuple[TermTest, ...]:
        """Return for each term of the formula the test that all its coefficients are 0, given all others.

        With treatment coding the test of a factor that takes part in an interaction is of its effect at the other
        factor's reference level; code factors by ``C(x, contr.sum)`` to test main effects.
        """
        tests = []
        for term, columns in self.data.term_columns.items():
            contrasts = np.eye(len(self.fit.estimates))[list(columns)]
            tests.append(compute_joint_test(self.fit, contrasts, term, self.satterthwaite))
        return tuple(tests)


@overload
def regress(
    formula: str,
    frame: Any,
    *,
    family: str = ...,
    reml: bool = ...,
    level: float = ...,
    engine: Literal["acceptability"] = ...,
) -> MixedRegression: ...


@overload
def regress(
    formula: str, frame: Any, *, family: str = ..., reml: bool = ..., level: float = ..., engine: Literal["lme4"]
) -> Lme4Regression: ...


@overload
def regress(
    formula: str, frame: Any, *, family: str = ..., reml: bool = ..., level: float = ..., engine: str
) -> RegressionSummary: ...


def regress(
    formula: str,
    frame: Any,
    *,
    family: str = "gaussian",
    reml: bool = True,
    level: float = 0.95,
    engine: str = "acceptability",
) -> RegressionSummary:
    """Fit a mixed model: how an outcome depends on predictors where rows share items, paradigms, people or seeds.

    The linear model is fitted by (restricted) maximum likelihood and has t tests with Satterthwaite's degrees of
    freedom; the logistic and the ordinal one by the Laplace approximation, with Wald's z tests. Random effects are
    assumed to be normal and independent of the predictors.

    Args:
        formula: The outcome, fixed effects, and random effects in parentheses, in lme4's notation:
            "correct ~ model + (1 + model | paradigm) + (1 | item)". Factors have treatment coding, with the first
            level as reference; ``C(model, contr.sum)`` is sum coding. After ``||`` all columns of the effects are
            uncorrelated, those of a factor included.
        frame: A pandas data frame, or a mapping of columns.
        family: "gaussian" for a linear model; "binomial" for a logistic one, whose outcome is 0 or 1; "ordinal" for
            ratings on a scale of ordered levels (a cumulative-link model with the logit link), "ordinal-probit" with
            the probit link.
        reml: Restricted maximum likelihood for a linear model; False to compare models with different fixed effects.
        level: The confidence level of the intervals.
        engine: "acceptability", or "lme4" to fit the same formula in R by lmerTest, lme4 or ordinal, where they are
            installed; the result then is an ``Lme4Regression``.

    >>> from acceptability.stats import regress
    >>> days = [0, 1, 2, 3] * 4
    >>> people = [person for person in "abcd" for _ in range(4)]
    >>> times = [250, 259, 251, 321, 223, 205, 203, 205, 199, 194, 234, 233, 322, 300, 284, 285]
    >>> result = regress("time ~ day + (1 | person)", {"time": times, "day": days, "person": people})
    >>> result
    <MixedRegression 'time ~ day + (1 | person)', gaussian, REML, 16 rows>
    >>> round(result["day"].estimate, 2), round(result["day"].df, 1)
    (4.1, 11.0)
    """
    check_level(level)
    check_choice("family", family, FAMILIES)
    check_choice("engine", engine, ENGINES)
    # Imported where used, since the results of ordinal models and of R build on this module's.
    if engine == "lme4":
        from acceptability.stats.mixed.lme4.lme4_regression import regress_in_r

        return regress_in_r(formula, frame, family=family, reml=reml, level=level)
    if family.startswith("ordinal"):
        from acceptability.stats.mixed.ordinal.ordinal_regression import LINK_BY_FAMILY, regress_ordinal

        return regress_ordinal(formula, frame, link=LINK_BY_FAMILY[family], level=level)
    data = build_model_data(formula, frame)
    if not data.random:
        raise MeasureError(
            f"the formula {formula!r} has no random part such as (1 | item); for independent rows use "
            "linear_regression or logistic_regression"
        )
    random = build_random_effects(data.random)
    if family == "binomial":
        fit = fit_logistic(data.outcome, data.fixed, random)
    else:
        fit = fit_linear(data.outcome, data.fixed, random, reml=reml)
    return summarise_fit(fit, data, formula=" ".join(formula.split()), level=level)


def summarise_fit(fit: MixedFit, data: ModelData, *, formula: str, level: float = 0.95) -> MixedRegression:
    """Return a fit with its tests and intervals."""
    is_linear = fit.residual_variance is not None
    approximation = build_satterthwaite(fit) if is_linear else None
    marginal, conditional = compute_r2(fit)
    return MixedRegression(
        formula,
        "gaussian" if is_linear else "binomial",
        build_coefficients(fit, approximation, level),
        build_random_effect_sds(fit),
        None if fit.residual_variance is None else math.sqrt(fit.residual_variance),
        -fit.deviance / 2,
        fit.method,
        fit.is_singular,
        marginal,
        conditional,
        fit,
        data,
    )


def build_coefficients(fit: MixedFit, approximation: Satterthwaite | None, level: float) -> tuple[FixedEffect, ...]:
    """Return the coefficients with their tests: t with Satterthwaite's df, or z without an approximation."""
    effects = []
    contrasts = np.eye(len(fit.estimates))
    for name, estimate, contrast in zip(fit.fixed.names, fit.estimates.tolist(), contrasts, strict=True):
        se = math.sqrt(contrast @ fit.covariance @ contrast)
        df = math.inf if approximation is None else approximation.compute_df(contrast)
        reach = t_quantile(level, df) * se
        effects.append(
            FixedEffect(
                name,
                estimate,
                se,
                estimate / se,
                None if approximation is None else df,
                two_sided_t(estimate / se, df),
                estimate - reach,
                estimate + reach,
                math.exp(estimate) if approximation is None else None,
                WALD_Z if approximation is None else T_SATTERTHWAITE,
                f"{level:.12g} Wald" if approximation is None else f"{level:.12g} Wald, t with Satterthwaite df",
            )
        )
    return tuple(effects)


def build_random_effect_sds(fit: MixedFit) -> tuple[RandomEffectSd, ...]:
    """Return the standard deviations and correlations of the random effects."""
    effects = []
    for factor, covariance in zip(fit.random.factors, fit.covariances, strict=True):
        sds = np.sqrt(np.diag(covariance)).tolist()
        for k, name in enumerate(factor.columns):
            correlations = tuple(
                _correlate(covariance, k, other) if factor.is_free[k, other] else None for other in range(k)
            )
            effects.append(RandomEffectSd(factor.group, name, sds[k], correlations, len(factor.levels)))
    return tuple(effects)


def _correlate(covariance: Floats, first: int, second: int) -> float | None:
    product = float(covariance[first, first] * covariance[second, second])
    return float(covariance[first, second]) / math.sqrt(product) if product > 0 else None


def compute_r2(fit: MixedFit) -> tuple[float, float]:
    """Return the marginal and the conditional R²."""
    explained = float((fit.fixed.table @ fit.estimates).var())
    scale = 1.0 if fit.residual_variance is None else fit.residual_variance
    templates: Sequence[Floats] = fit.random.build_templates(fit.theta)
    between = sum(
        scale * float(((factor.values @ template) ** 2).sum(axis=1).mean())
        for factor, template in zip(fit.random.factors, templates, strict=True)
    )
    total = explained + between + fit.latent_variance
    return explained / total, (explained + between) / total
