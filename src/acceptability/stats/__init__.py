"""Statistics: confidence intervals, tests between models, correlations and regressions.

Everything here is a pure function over numbers or rows, with a frozen result that carries its effect size. Random
procedures take a ``seed``; the sampling unit (single rows, or all rows that share a tag) is the argument ``by``. Each
docstring says what a test assumes. ``from acceptability.stats import NAME``:

- Intervals: ``Bootstrap`` (the settings), ``bootstrap_interval``, ``bootstrap_macro_interval``,
  ``bootstrap_difference``, ``clopper_pearson``.
- Two models over the same rows: ``permutation_test``, ``sign_flip_test``, ``mcnemar``, ``signed_rank``.
- Two groups: ``rank_sum``, ``niu_penn_p``, ``levene``, ``shapiro_wilk``.
- Effect sizes with intervals: ``cohen_d``, ``cohen_d_paired``, ``rank_biserial``, ``partial_eta_squared``.
- Areas under the ROC curve: ``area_under_curve``, ``delong_test``.
- Equivalence (TOST): ``equivalence_of_proportions``, ``equivalence_of_means``.
- Multiple tests: ``holm``, ``benjamini_hochberg``.
- Correlations: ``correlate``, ``correlate_clustered``, ``correlation_matrix``, ``compare_correlations``,
  ``williams_steiger_test``.
- Several predictors (with the extra ``stats``): ``logistic_regression``, ``linear_regression``, ``two_way_anova``,
  ``tukey_hsd``; ``dummies`` codes factors.
- Rows that share items, paradigms or people: ``regress``, a mixed model by a formula, with ``compare_models``,
  ``estimate_means`` and ``estimate_intervals``
  (``mixed_linear`` and ``mixed_logistic`` are its former names); ready-made designs: ``fit_design``.
- How many pairs are needed: ``exact_power``, ``critical_count``; by simulation,
  ``acceptability.stats.proportions.simulate_power``.
- The power of a comparison of models: ``simulate_comparison_power`` and ``plan_sample_size`` of a ``ComparisonDesign``
  with ``VarianceComponents``, which ``estimate_components`` finds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from acceptability.errors import warn_of_former_name

_MODULES = {
    "Bootstrap": "bootstrap",
    "Interval": "bootstrap",
    "bootstrap_interval": "intervals",
    "bootstrap_macro_interval": "intervals",
    "bootstrap_difference": "intervals",
    "clopper_pearson": "intervals.closed_forms",
    "permutation_test": "permutation",
    "sign_flip_test": "permutation",
    "mcnemar": "proportions",
    "signed_rank": "hypothesis_tests",
    "rank_sum": "hypothesis_tests",
    "niu_penn_p": "hypothesis_tests",
    "levene": "hypothesis_tests",
    "shapiro_wilk": "hypothesis_tests",
    "area_under_curve": "effects.roc",
    "delong_test": "effects.roc",
    "cohen_d": "effects.effect_sizes",
    "cohen_d_paired": "effects.effect_sizes",
    "rank_biserial": "effects.effect_sizes",
    "partial_eta_squared": "effects.effect_sizes",
    "equivalence_of_proportions": "effects.equivalence_tests",
    "equivalence_of_means": "effects.equivalence_tests",
    "holm": "permutation",
    "benjamini_hochberg": "permutation",
    "correlate": "hypothesis_tests",
    "correlation_matrix": "hypothesis_tests",
    "correlate_clustered": "clustered_correlation",
    "compare_correlations": "hypothesis_tests",
    "williams_steiger_test": "hypothesis_tests",
    "logistic_regression": "regression",
    "linear_regression": "regression",
    "dummies": "regression",
    "two_way_anova": "hypothesis_tests",
    "tukey_hsd": "hypothesis_tests",
    "fit_design": "designs",
    "regress": "mixed",
    "compare_models": "mixed",
    "estimate_intervals": "mixed",
    "estimate_means": "mixed",
    "mixed_linear": "former_mixed",
    "mixed_logistic": "former_mixed",
    "ComparisonDesign": "effects.power",
    "VarianceComponents": "effects.power",
    "estimate_components": "effects.power",
    "plan_sample_size": "effects.power",
    "simulate_comparison_power": "effects.power",
    "exact_power": "proportions",
    "critical_count": "proportions",
}

# Functions that had another name in the version before: accepted for one release, with a warning.
_FORMER_NAMES = {
    "interval": "bootstrap_interval",
    "macro_interval": "bootstrap_macro_interval",
    "difference": "bootstrap_difference",
    "dependent": "williams_steiger_test",
    "critical": "critical_count",
}

if TYPE_CHECKING:
    from acceptability.stats.bootstrap import Bootstrap, Interval
    from acceptability.stats.clustered_correlation import correlate_clustered
    from acceptability.stats.designs import fit_design
    from acceptability.stats.effects.effect_sizes import cohen_d, cohen_d_paired, partial_eta_squared, rank_biserial
    from acceptability.stats.effects.equivalence_tests import equivalence_of_means, equivalence_of_proportions
    from acceptability.stats.effects.power import (
        ComparisonDesign,
        VarianceComponents,
        estimate_components,
        plan_sample_size,
        simulate_comparison_power,
    )
    from acceptability.stats.effects.roc import area_under_curve, delong_test
    from acceptability.stats.former_mixed import mixed_linear, mixed_logistic
    from acceptability.stats.hypothesis_tests import (
        compare_correlations,
        correlate,
        correlation_matrix,
        levene,
        niu_penn_p,
        rank_sum,
        shapiro_wilk,
        signed_rank,
        tukey_hsd,
        two_way_anova,
        williams_steiger_test,
    )
    from acceptability.stats.intervals import bootstrap_difference, bootstrap_interval, bootstrap_macro_interval
    from acceptability.stats.intervals.closed_forms import clopper_pearson
    from acceptability.stats.mixed import (
        compare_models,
        estimate_intervals,
        estimate_means,
        regress,
    )
    from acceptability.stats.permutation import benjamini_hochberg, holm, permutation_test, sign_flip_test
    from acceptability.stats.proportions import critical_count, exact_power, mcnemar
    from acceptability.stats.regression import dummies, linear_regression, logistic_regression

__all__ = [
    "Bootstrap",
    "ComparisonDesign",
    "Interval",
    "VarianceComponents",
    "area_under_curve",
    "benjamini_hochberg",
    "bootstrap_difference",
    "bootstrap_interval",
    "bootstrap_macro_interval",
    "clopper_pearson",
    "cohen_d",
    "cohen_d_paired",
    "compare_correlations",
    "compare_models",
    "correlate",
    "correlate_clustered",
    "correlation_matrix",
    "critical_count",
    "delong_test",
    "dummies",
    "equivalence_of_means",
    "equivalence_of_proportions",
    "estimate_components",
    "estimate_intervals",
    "estimate_means",
    "exact_power",
    "fit_design",
    "holm",
    "levene",
    "linear_regression",
    "logistic_regression",
    "mcnemar",
    "mixed_linear",
    "mixed_logistic",
    "niu_penn_p",
    "partial_eta_squared",
    "permutation_test",
    "plan_sample_size",
    "rank_biserial",
    "rank_sum",
    "regress",
    "shapiro_wilk",
    "sign_flip_test",
    "signed_rank",
    "simulate_comparison_power",
    "tukey_hsd",
    "two_way_anova",
    "williams_steiger_test",
]


def __getattr__(name: str) -> object:
    """Import a name on first use."""
    # Lazily, so that code that needs one interval does not pay for importing SciPy's optimisers and sparse matrices.
    if name in _FORMER_NAMES:
        present_name = _FORMER_NAMES[name]
        warn_of_former_name(f"acceptability.stats.{name}", present_name)
        # Not stored in the module, so that each use is reported.
        return getattr(import_module(f"acceptability.stats.{_MODULES[present_name]}"), present_name)
    if name not in _MODULES:
        raise AttributeError(f"module 'acceptability.stats' has no attribute {name!r}")
    value = getattr(import_module(f"acceptability.stats.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
