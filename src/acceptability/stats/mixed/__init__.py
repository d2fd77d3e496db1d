"""Mixed-effects models: linear and logistic regression whose rows share items, paradigms, people or seeds.

`regress` fits a model by a formula; `compare_models`, `estimate_means` and `estimate_intervals` take its result. Below
stands a core that needs SciPy only and takes arrays: ``fitting`` (`fit_linear`, `fit_logistic`) over ``random_effects``
(what varies by group), ``blocked_cholesky`` (the normal equations), ``linear_deviance`` and ``laplace`` (the two
criteria with exact gradients) and ``optimiser``.
"""

from acceptability.stats.mixed.marginal_means import estimate_means
from acceptability.stats.mixed.mixed_intervals import estimate_intervals
from acceptability.stats.mixed.mixed_regression import regress
from acceptability.stats.mixed.model_comparison import compare_models

__all__ = ["compare_models", "estimate_intervals", "estimate_means", "regress"]
