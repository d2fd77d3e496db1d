"""Human judgements: responses, ratings computed from them, forced choices, and inter-rater agreement."""

from __future__ import annotations

from acceptability.people.ratings import RatingRules, Ratings, rate
from acceptability.people.responses import Responses, read_responses

__all__ = ["RatingRules", "Ratings", "Responses", "rate", "read_responses"]
