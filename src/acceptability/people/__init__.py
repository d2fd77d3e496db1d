"""What people said: their answers, the ratings that these make, and how far people agree."""

from __future__ import annotations

from acceptability.people.ratings import Ratings, Rules, rate
from acceptability.people.reading import read_responses
from acceptability.people.responses import Responses

__all__ = ["Ratings", "Responses", "Rules", "rate", "read_responses"]
