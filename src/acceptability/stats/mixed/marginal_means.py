"""Estimated marginal means of a mixed model, and their pairwise contrasts with correction for all pairs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy.stats import norm, studentized_range

from acceptability.errors import MeasureError
from acceptability.stats.mixed.mixed_regression import MixedRegression
from acceptability.stats.mixed.satterthwaite import t_quantile, two_sided_t
from acceptability.stats.mixed.summary_tables import build_frame, format_html_table, format_table
from acceptability.stats.permutation import holm
from acceptability.stats.samples import check_choice, check_level
from acceptability.types import Floats

_SCALES = {"binomial": "log-odds", "ordinal": "latent variable", "ordinal-probit": "latent variable"}


@dataclass(frozen=True)
class MarginalMean:
    """An estimated marginal mean, or a difference between two.

    Args:
        name: The level, or "a - b" for a difference.
        estimate: The mean or the difference, in units of the outcome (log-odds in a logistic model).
        se: Its standard error.
        df: Degrees of freedom; None for z.
        low, high: Its confidence interval.
        p: The p value of a difference, corrected for all pairs; None for a mean.
        test: The name of the test and of its correction; for a mean that of the interval.
        interval: The name and the level of the interval, and the correction in it.
    """

    name: str
    estimate: float
    se: float
    df: float | None
    low: float
    high: float
    p: float | None
    test: str
    interval: str


@dataclass(frozen=True, eq=False)
class MarginalMeans:
    """The estimated marginal means of a factor, and the differences between all pairs.

    Args:
        factor: The factor.
        means: The mean of each level: other factors count with equal weight for each level, numeric predictors are at
            their means.
        contrasts: The differences of all pairs, first minus second.
        scale: "outcome", "log-odds", or in an ordinal model "latent variable", whose 0 is the mean threshold.
    """

    factor: str
    means: tuple[MarginalMean, ...]
    contrasts: tuple[MarginalMean, ...]
    scale: str

    def to_frame(self) -> Any:
        """Return means and contrasts as a pandas data frame."""
        rows = [{"kind": "mean", **asdict(mean)} for mean in self.means]
        return build_frame([*rows, *({"kind": "contrast", **asdict(contrast)} for contrast in self.contrasts)])

    def __repr__(self) -> str:
        return f"<MarginalMeans of {self.factor}, {len(self.means)} levels, {self.scale}>"

    def __str__(self) -> str:
        means = format_table(
            [self.factor, "mean", "SE", "df", "low", "high"],
            [[m.name, m.estimate, m.se, m.df, m.low, m.high] for m in self.means],
        )
        contrasts = format_table(
            ["difference", "estimate", "SE", "df", "p", "low", "high"],
            [[c.name, c.estimate, c.se, c.df, c.p, c.low, c.high] for c in self.contrasts],
        )
        return f"{means}\n\n{contrasts}\n\n{self._describe()}"

    def _repr_html_(self) -> str:
        rows = [[c.name, c.estimate, c.se, c.df, c.p, c.low, c.high] for c in (*self.means, *self.contrasts)]
        header = [self.factor, "estimate", "SE", "df", "p", "low", "high"]
        return format_html_table(header, rows, self._describe())

    def _describe(self) -> str:
        contrast = self.contrasts[0]
        return f"Scale: {self.scale}. {contrast.test}.\nIntervals: {contrast.interval}."


def estimate_means(
    regression: MixedRegression, factor: str, *, correction: str = "tukey", level: float = 0.95
) -> MarginalMeans:
    """Return the estimated marginal means of a factor with all pairwise differences.

    Args:
        regression: The fitted model.
        factor: The name of the factor's column.
        correction: How p values allow for all pairs: "tukey" (the studentised range), "holm" or "none". The intervals
            of the differences allow for them likewise; with "holm" by Bonferroni, since Holm's method has none.
        level: The confidence level of the intervals.
    """
    check_level(level)
    check_choice("correction", correction, ("tukey", "holm", "none"))
    levels, rows = _average_grid(regression, factor)
    means = tuple(_estimate(regression, name, row, level) for name, row in zip(levels, rows, strict=True))
    pairs = [(f"{levels[i]} - {levels[j]}", rows[i] - rows[j]) for i, j in combinations(range(len(levels)), 2)]
    contrasts = _correct([(name, _solve(regression, row)) for name, row in pairs], len(levels), correction, level)
    return MarginalMeans(factor, means, contrasts, _SCALES.get(regression.family, "outcome"))


def _average_grid(regression: MixedRegression, factor: str) -> tuple[list[str], Floats]:
    """Return the levels of a factor, and for each the average row of the design matrix."""
    spec, frame = regression.data.spec, regression.data.frame
    factors = sorted(_find_factors(spec))
    if factor not in factors:
        raise MeasureError(f"{factor!r} is not a factor of the model; its factors are {', '.join(factors) or 'none'}")
    numeric = sorted({str(name) for name in spec.required_variables} - set(factors))
    levels = {name: _list_levels(frame[name]) for name in factors}
    cells = [dict(zip(factors, cell, strict=True)) for cell in product(*levels.values())]
    grid = frame.iloc[[0] * len(cells)].reset_index(drop=True)
    for name in factors:
        grid[name] = [cell[name] for cell in cells]
    for name in numeric:
        grid[name] = [float(frame[name].mean())] * len(cells)
    table = np.asarray(spec.get_model_matrix(grid, context=None), dtype=np.float64)
    rows = [table[[cell[factor] == level for cell in cells]].mean(axis=0) for level in levels[factor]]
    return [str(level) for level in levels[factor]], np.array(rows)


def _find_factors(spec: Any) -> set[str]:
    """Return the columns that enter the fixed effects as factors."""
    kinds = {str(expression): kind for expression, (kind, _) in spec.encoder_state.items()}
    return {
        str(variable)
        for factor in spec.factors
        if str(kinds.get(str(factor), "")).endswith("CATEGORICAL")
        for variable in spec.factor_variables[factor]
        if str(variable) in map(str, spec.required_variables)
    }


def _list_levels(column: Any) -> list[Any]:
    if hasattr(column, "cat"):
        return [level for level in column.cat.categories if (column == level).any()]
    return sorted(column.unique().tolist())


def _solve(regression: MixedRegression, row: Floats) -> tuple[float, float, float]:
    """Return the estimate of a linear combination of coefficients, its standard error and its degrees of freedom."""
    approximation = regression.satterthwaite
    df = math.inf if approximation is None else approximation.compute_df(row)
    return float(row @ regression.fit.estimates), math.sqrt(row @ regression.fit.covariance @ row), df


def _estimate(regression: MixedRegression, name: str, row: Floats, level: float) -> MarginalMean:
    estimate, se, df = _solve(regression, row)
    reach = t_quantile(level, df) * se
    method = _name_method(df)
    return MarginalMean(
        name, estimate, se, _hide(df), estimate - reach, estimate + reach, None, method, f"{level:.12g} Wald, {method}"
    )


def _correct(
    pairs: list[tuple[str, tuple[float, float, float]]], levels: int, correction: str, level: float
) -> tuple[MarginalMean, ...]:
    """Return the differences with corrected p values and intervals."""
    statistics = [abs(estimate / se) for _, (estimate, se, _) in pairs]
    dfs = [df for _, (_, _, df) in pairs]
    if correction == "tukey":
        p_values = [tukey_p(statistic, levels, df) for statistic, df in zip(statistics, dfs, strict=True)]
        reaches = [tukey_quantile(level, levels, df) for df in dfs]
        interval = f"{level:.12g} simultaneous, Tukey"
    else:
        p_values = [two_sided_t(statistic, df) for statistic, df in zip(statistics, dfs, strict=True)]
        single = 1 - (1 - level) / (len(pairs) if correction == "holm" else 1)
        reaches = [t_quantile(single, df) for df in dfs]
        # None of the p values is undefined, so that none is after the correction.
        p_values = [p for p in holm(p_values) if p is not None] if correction == "holm" else p_values
        interval = f"{level:.12g}" + (" simultaneous, Bonferroni" if correction == "holm" else ", uncorrected")
    label = {"tukey": "Tukey's correction", "holm": "Holm's correction", "none": "no correction"}[correction]
    return tuple(
        MarginalMean(
            name,
            estimate,
            se,
            _hide(df),
            estimate - reach * se,
            estimate + reach * se,
            p,
            f"{_name_method(df)}, {label} for {len(pairs)} pairs",
            interval,
        )
        for (name, (estimate, se, df)), p, reach in zip(pairs, p_values, reaches, strict=True)
    )


def tukey_p(statistic: float, levels: int, df: float) -> float:
    """Return the p value of one of all pairwise differences among some means, by the studentised range."""
    # SciPy's distribution takes infinite degrees of freedom; for two levels the t distribution is the same and exact.
    if levels == 2:
        return two_sided_t(statistic, df)
    return float(studentized_range.sf(statistic * math.sqrt(2), levels, df))


def tukey_quantile(level: float, levels: int, df: float) -> float:
    """Return how many standard errors a simultaneous interval of a difference reaches to each side."""
    if levels == 2:
        return float(norm.ppf((1 + level) / 2)) if math.isinf(df) else t_quantile(level, df)
    return float(studentized_range.ppf(level, levels, df)) / math.sqrt(2)


def _name_method(df: float) -> str:
    return "Wald z" if math.isinf(df) else "t, Satterthwaite df"


def _hide(df: float) -> float | None:
    return None if math.isinf(df) else df
