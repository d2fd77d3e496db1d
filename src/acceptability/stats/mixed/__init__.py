"""Mixed-effects models: linear and logistic regression whose rows share items, paradigms, people or seeds.

`regress` fits a model by a formula. Below it stands a core that needs SciPy only and takes arrays: ``fitting``
(`fit_linear`, `fit_logistic`) over ``random_effects`` (what varies by group), ``blocked_cholesky`` (the normal
equations), ``linear_deviance`` and ``laplace`` (the two criteria with exact gradients) and ``optimiser``.
"""

from acceptability.stats.mixed.former_mixed import mixed_linear, mixed_logistic
from acceptability.stats.mixed.mixed_regression import regress

__all__ = ["mixed_linear", "mixed_logistic", "regress"]
