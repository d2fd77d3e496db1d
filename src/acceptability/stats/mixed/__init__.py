"""Mixed-effects models: linear and logistic regression whose rows share items, paradigms or people."""

from acceptability.stats.mixed.former_mixed import mixed_linear, mixed_logistic

__all__ = ["mixed_linear", "mixed_logistic"]
