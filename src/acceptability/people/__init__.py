"""Human judgements: responses, ratings computed from them, forced choices, and inter-rater agreement."""

from __future__ import annotations

from typing import Any

from acceptability.errors import warn_of_former_name
from acceptability.people.ratings import RatingRules, Ratings, rate
from acceptability.people.responses import Responses, read_responses

__all__ = ["RatingRules", "Ratings", "Responses", "rate", "read_responses"]

_FORMER_RULES = {"least_responses": "min_responses", "least_catch": "min_catch"}


def __getattr__(name: str) -> Any:
    """Return ``Rules``, the former name of ``RatingRules``, for one release."""
    if name != "Rules":
        raise AttributeError(f"module 'acceptability.people' has no attribute {name!r}")
    warn_of_former_name("acceptability.people.Rules", "RatingRules")
    return _make_rules


def _make_rules(*args: Any, **options: Any) -> RatingRules:
    """Return rules from the arguments of ``Rules``, two of which have other names now."""
    return RatingRules(*args, **{_FORMER_RULES.get(name, name): value for name, value in options.items()})
