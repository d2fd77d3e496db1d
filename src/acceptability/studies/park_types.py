"""The error types of Park, Park and Song (2021), and what people think of their sentences.

``park_types.toml`` is ours: it says which examples of Linguistic Inquiry make up which of the 22 types of Table 4,
and what speaks for it. The magnitude estimates that section 3.3 prints are the check.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

import numpy as np

from acceptability.types import Suite

TOLERANCE = 0.02
"""How far a mean may lie from the printed one: the paper's are perhaps over fewer pairs than ours."""


@dataclass(frozen=True)
class Rated:
    """A type of Table 4, and people's mean ratings (z) of its sentences.

    Args:
        ids: The examples of Linguistic Inquiry that belong to it, without the numbers of items.
        evidence: What speaks for that.
        pairs: How many contrasts it has, with or without a target.
    """

    name: str
    ids: tuple[str, ...]
    evidence: str
    acceptable: float
    unacceptable: float
    pairs: int

    @property
    def is_fitted(self) -> bool:
        """Whether the set was chosen so that its mean is the printed one."""
        return "fitted" in self.evidence


def types_of_examples() -> Mapping[str, str]:
    """Return the type of each example that has one.

    >>> types_of_examples()["34.1.phillips.96a.*"]
    '20 VP fronting'
    """
    found: dict[str, str] = _file()["types"]
    return found


def rated_types(suite: Suite) -> list[Rated]:
    """Return the 22 types with the ratings of their sentences, in the order of Table 4."""
    named, evidence = types_of_examples(), _file()["evidence"]
    found = []
    for name in evidence:
        ids = tuple(each for each, its in named.items() if its == name)
        chosen = [each for each in suite.contrasts if suite.by_id[each.worse].tags["type"] in ids]
        better, worse = (_mean(suite, [getattr(each, role) for each in chosen]) for role in ("better", "worse"))
        found.append(Rated(name, ids, evidence[name], better, worse, len(chosen)))
    return found


def _mean(suite: Suite, names: list[str]) -> float:
    return float(np.mean([rating for name in names if (rating := suite.by_id[name].rating) is not None]))


def _file() -> dict[str, dict[str, str]]:
    text = files("acceptability.studies").joinpath("park_types.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
