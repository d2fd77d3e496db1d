"""Comparison of nested mixed models by the likelihood ratio, and simulation from a fitted model."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed.fitting import MixedFit, fit_linear, fit_logistic
from acceptability.stats.mixed.mixed_regression import MixedRegression
from acceptability.stats.mixed.ordinal.ordinal_fit import OrdinalFit, draw_levels, refit_ordinal
from acceptability.stats.mixed.summary_tables import build_frame
from acceptability.stats.samples import check_choice
from acceptability.types import Floats

# Columns whose projection on others leaves less than this, relative to their length, are combinations of the others.
_MIN_REMAINDER = 1e-7
# By how much the larger model may be worse before it is said not to have converged, or not to be larger.
_MAX_LOSS = 1e-3
# More simulated data sets than this share without a fit, and the distribution is not the statistic's.
_MAX_UNDEFINED = 0.1


@dataclass(frozen=True)
class ModelComparison:
    """The likelihood-ratio test of two nested models.

    Args:
        smaller, larger: Their formulas.
        statistic: Twice the difference of the log-likelihoods.
        df: The difference in the number of parameters.
        p: The p value.
        test: The name of the test.
        note: What to know about the p value; often empty.
    """

    smaller: str
    larger: str
    statistic: float
    df: int
    p: float
    test: str
    note: str

    def to_frame(self) -> Any:
        """Return the test as a pandas data frame of one row."""
        return build_frame([asdict(self)])


def compare_models(
    first: MixedRegression, second: MixedRegression, *, method: str = "chi-squared", draws: int = 1000, seed: int = 0
) -> ModelComparison:
    """Compare two nested mixed models by the likelihood-ratio test.

    Args:
        first, second: The models, in any order, fitted to the same rows. Linear models with different fixed effects
            need ``reml=False``.
        method: "chi-squared", which assumes many groups, or "bootstrap": both models are fitted to data that are
            simulated from the smaller one, which holds for few groups as well and takes as many fits.
        draws: The number of simulated data sets.
        seed: The seed of the simulation.

    Raises:
        MeasureError: The models are not nested, are of different rows, or were fitted by REML with different fixed
            effects.
    """
    check_choice("method", method, ("chi-squared", "bootstrap"))
    smaller, larger = sorted((first, second), key=lambda model: model.fit.parameters)
    _check_comparable(smaller, larger)
    statistic = smaller.deviance - larger.deviance
    if statistic < -_MAX_LOSS:
        raise MeasureError(
            f"{larger.formula!r} has a lower likelihood than {smaller.formula!r}: the models are not nested"
        )
    statistic, df = max(statistic, 0.0), larger.fit.parameters - smaller.fit.parameters
    has_variances = len(larger.fit.theta) > len(smaller.fit.theta)
    if method == "chi-squared":
        note = "a variance of 0 lies on the border of its range: p is too large" if has_variances else ""
        p, test = float(chi2.sf(statistic, df)), "likelihood-ratio test, chi-squared"
    else:
        p, undefined = compute_bootstrap_p(smaller.fit, larger.fit, draws=draws, seed=seed)
        test = f"likelihood-ratio test, parametric bootstrap, {draws} draws"
        note = f"{undefined} simulated data sets without a fit were left out" if undefined else ""
    return ModelComparison(smaller.formula, larger.formula, statistic, df, p, test, note)


def _check_comparable(smaller: MixedRegression, larger: MixedRegression) -> None:
    """Raise MeasureError for models whose likelihoods cannot be compared, or that are not nested."""
    if smaller.family != larger.family:
        raise MeasureError(f"a {smaller.family} and a {larger.family} model cannot be compared")
    if smaller.method != larger.method:
        raise MeasureError(f"one model was fitted by {smaller.method}, the other by {larger.method}: use one for both")
    if not np.array_equal(smaller.data.outcome, larger.data.outcome):
        raise MeasureError("the models were fitted to different outcomes or rows: fit both to the same table")
    if smaller.fit.parameters == larger.fit.parameters:
        raise MeasureError("the models have the same number of parameters: neither is nested in the other")
    fixed, other = smaller.fit.fixed.basis, larger.fit.fixed.basis
    if not _spans(other, fixed):
        raise MeasureError(f"the fixed effects of {smaller.formula!r} are not among those of {larger.formula!r}")
    if smaller.method == "REML" and not _spans(fixed, other):
        raise MeasureError(
            "models with different fixed effects were fitted by REML, whose likelihoods differ in meaning: "
            "fit both with reml=False"
        )
    by_group = {factor.group: factor for factor in larger.fit.random.factors}
    for factor in smaller.fit.random.factors:
        if factor.group not in by_group or not _spans(by_group[factor.group].values, factor.values):
            raise MeasureError(
                f"the random effects by {factor.group} of {smaller.formula!r} are not in the larger model"
            )


def _spans(columns: Floats, others: Floats) -> bool:
    """Whether all other columns are linear combinations of the columns."""
    q = np.linalg.qr(columns)[0]
    remainders = np.linalg.norm(others - q @ (q.T @ others), axis=0)
    return bool((remainders <= _MIN_REMAINDER * np.linalg.norm(others, axis=0)).all())


def simulate_outcome(fit: MixedFit, generator: np.random.Generator) -> Floats:
    """Return an outcome that is drawn from a fitted model, with new random effects."""
    predictor = fit.fixed.table @ fit.estimates
    scale = 1.0 if fit.residual_variance is None else math.sqrt(fit.residual_variance)
    for factor, template in zip(fit.random.factors, fit.random.build_templates(fit.theta), strict=True):
        effects = generator.normal(size=(len(factor.levels), factor.effects)) @ template.T
        predictor = predictor + scale * np.einsum("na,na->n", factor.values, effects[factor.codes])
    if isinstance(fit, OrdinalFit):
        return draw_levels(fit, predictor, generator)
    if fit.residual_variance is None:
        return np.asarray((generator.random(len(predictor)) < expit(predictor)).astype(np.float64))
    return np.asarray(predictor + scale * generator.normal(size=len(predictor)))


def refit(fit: MixedFit, outcome: Floats) -> MixedFit:
    """Return the fit of the same model to another outcome."""
    # A variance of 0 is stationary, and no place to start from.
    start = np.where(np.abs(fit.theta) < 0.1, 0.3, fit.theta)
    if isinstance(fit, OrdinalFit):
        return refit_ordinal(fit, outcome, start=start)
    if fit.residual_variance is None:
        return fit_logistic(outcome, fit.fixed, fit.random, start=start)
    return fit_linear(outcome, fit.fixed, fit.random, reml=fit.method == "REML", start=start)


def iterate_simulations(
    fit: MixedFit, compute: Callable[[Floats], Floats], draws: int, seed: int
) -> Iterator[Floats | None]:
    """Yield a statistic of data sets that are simulated from a model, None for a data set that has none.

    Args:
        fit: The model to simulate from.
        compute: The statistic (one or several numbers) of an outcome; Undefined where it has none.
        draws: The number of data sets.
        seed: The seed.

    Raises:
        Undefined: More than a tenth of all the data sets have none.
    """
    generator = np.random.default_rng(seed)
    undefined = 0
    for _ in range(draws):
        try:
            yield compute(simulate_outcome(fit, generator))
        except Undefined as error:
            undefined += 1
            if undefined > _MAX_UNDEFINED * draws:
                raise Undefined(f"the data are too few for a bootstrap: in many simulated data sets {error}") from error
            yield None


def compute_bootstrap_p(
    smaller: MixedFit, larger: MixedFit, *, draws: int, seed: int, enough: int | None = None
) -> tuple[float, int]:
    """Return the p value of a likelihood-ratio test by parametric bootstrap, and how many draws had no fit.

    Args:
        smaller, larger: The fits of nested models to the same rows.
        draws: The number of data sets simulated from the smaller model.
        seed: The seed.
        enough: Stop after this many data sets whose statistic is as large as the observed one (Besag and Clifford
            1991), when p is clearly not small; None for never.
    """
    statistic = smaller.deviance - larger.deviance

    def compute(outcome: Floats) -> Floats:
        return np.array([refit(smaller, outcome).deviance - refit(larger, outcome).deviance])

    extreme, valid, undefined = 0, 0, 0
    for value in iterate_simulations(smaller, compute, draws, seed):
        if value is None:
            undefined += 1
            continue
        valid += 1
        # The slack is for statistics of 0 that rounding errors separate.
        extreme += bool(value[0] >= statistic - 1e-8)
        if enough is not None and extreme >= enough:
            return extreme / valid, undefined
    # The observed data count as one of the draws, so that p is never 0.
    return (extreme + 1) / (valid + 1), undefined
