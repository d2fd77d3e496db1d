"""Is a difference real, and how large is it? Intervals, tests between models, correlations, regressions.

Everything here is a pure function over numbers or rows, with a frozen result that carries its effect size. What is
random takes a ``seed``; what is drawn or swapped (single rows, or all rows that share a tag) is the argument ``by``.
Each docstring says what a test assumes. ``from acceptability.stats import NAME``:

Intervals: ``Bootstrap`` (how), ``interval``, ``macro_interval``, ``difference``, ``clopper_pearson``.
Two models over the same rows: ``permutation_test``, ``sign_flip_test``, ``mcnemar``, ``signed_rank``.
Two groups: ``rank_sum``, ``niu_penn_p``, ``levene``, ``shapiro_wilk``.
Many tests: ``holm``, ``benjamini_hochberg``.
Correlations: ``correlate``, ``correlation_matrix``, ``compare_correlations``, ``dependent``.
Several predictors: ``logistic_regression``, ``linear_regression``, ``two_way_anova``, ``tukey_hsd``, ``dummies``.
Rows that share items: ``mixed_linear``, ``mixed_logistic``.
How many pairs: ``exact_power``, ``critical``; by simulation, ``acceptability.stats.power.power``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

_HOMES = {
    "Bootstrap": "bootstrap",
    "Interval": "bootstrap",
    "interval": "bootstrap",
    "macro_interval": "bootstrap",
    "difference": "bootstrap",
    "clopper_pearson": "quantiles",
    "permutation_test": "permutation",
    "sign_flip_test": "permutation",
    "mcnemar": "shares",
    "signed_rank": "ranks",
    "rank_sum": "ranks",
    "niu_penn_p": "ranks",
    "levene": "variances",
    "shapiro_wilk": "variances",
    "holm": "corrections",
    "benjamini_hochberg": "corrections",
    "correlate": "correlations",
    "correlation_matrix": "correlations",
    "compare_correlations": "correlations",
    "dependent": "correlations",
    "logistic_regression": "regression",
    "linear_regression": "regression",
    "dummies": "design",
    "two_way_anova": "anova",
    "tukey_hsd": "anova",
    "mixed_linear": "mixed",
    "mixed_logistic": "mixed",
    "exact_power": "power",
    "critical": "power",
}

if TYPE_CHECKING:
    from acceptability.stats.anova import tukey_hsd, two_way_anova
    from acceptability.stats.bootstrap import Bootstrap, Interval, difference, interval, macro_interval
    from acceptability.stats.corrections import benjamini_hochberg, holm
    from acceptability.stats.correlations import compare_correlations, correlate, correlation_matrix, dependent
    from acceptability.stats.design import dummies
    from acceptability.stats.mixed import mixed_linear, mixed_logistic
    from acceptability.stats.permutation import permutation_test, sign_flip_test
    from acceptability.stats.power import critical, exact_power
    from acceptability.stats.quantiles import clopper_pearson
    from acceptability.stats.ranks import niu_penn_p, rank_sum, signed_rank
    from acceptability.stats.regression import linear_regression, logistic_regression
    from acceptability.stats.shares import mcnemar
    from acceptability.stats.variances import levene, shapiro_wilk

__all__ = [
    "Bootstrap",
    "Interval",
    "benjamini_hochberg",
    "clopper_pearson",
    "compare_correlations",
    "correlate",
    "correlation_matrix",
    "critical",
    "dependent",
    "difference",
    "dummies",
    "exact_power",
    "holm",
    "interval",
    "levene",
    "linear_regression",
    "logistic_regression",
    "macro_interval",
    "mcnemar",
    "mixed_linear",
    "mixed_logistic",
    "niu_penn_p",
    "permutation_test",
    "rank_sum",
    "shapiro_wilk",
    "sign_flip_test",
    "signed_rank",
    "tukey_hsd",
    "two_way_anova",
]


def __getattr__(name: str) -> object:
    """Load a name on first use, so that an interval does not wait for a regression."""
    if name not in _HOMES:
        raise AttributeError(f"module 'acceptability.stats' has no attribute {name!r}")
    found = getattr(import_module(f"acceptability.stats.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
