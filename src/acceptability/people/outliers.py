"""Rules by which single answers are left out: ``none``, ``sd(3)``, ``mad(3.5)``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acceptability import registry
from acceptability.errors import MeasureError, UnknownName
from acceptability.measures.rows import checked_number
from acceptability.people.responses import Bools
from acceptability.spelling import read
from acceptability.types import Floats

_GROUPS = ("participant", "sentence")
_MAD_OF_NORMAL = 0.6744897501960817


class Outliers(Protocol):
    """A rule that tells which answers lie too far out."""

    def among(self, values: Floats) -> Bools:
        """Return the outliers in a table of participants and sentences."""
        ...

    def untold(self, values: Floats) -> int:
        """Return in how many participants, or sentences, the rule can tell no outlier from the rest."""
        ...


@dataclass(frozen=True)
class Nothing:
    """Every answer is kept."""

    def among(self, values: Floats) -> Bools:
        """Return that there is no outlier."""
        return np.zeros(values.shape, dtype=bool)

    def untold(self, values: Floats) -> int:
        """Return 0: there is nothing to tell."""
        return 0


@dataclass(frozen=True)
class SD:
    """Answers further from the mean than so many standard deviations (ddof 1) are left out.

    Args:
        over: Whose mean and deviation: all answers of the same "participant", or to the same "sentence".
    """

    limit: float = 3.0
    over: str = "participant"

    def __post_init__(self) -> None:
        _check(self, "sd")

    def among(self, values: Floats) -> Bools:
        """Return the outliers, once: what remains is not searched again."""
        return _by_group(values, self.over, self._far)

    def untold(self, values: Floats) -> int:
        """Return 0: answers that do not vary have no outlier."""
        return 0

    def _far(self, group: Floats) -> Bools:
        if len(group) < 2:
            return np.zeros(len(group), dtype=bool)
        return np.asarray(np.abs(group - group.mean()) > self.limit * group.std(ddof=1))


@dataclass(frozen=True)
class MAD:
    """Answers whose modified z-score, 0.6745 (x − median) / MAD, lies beyond the limit are left out.

    MAD is the median of the distances from the median (Iglewicz and Hoaglin 1993). Where more than half of
    the answers are the same it is 0, and nothing is left out of that group; a note says in how many.

    Args:
        over: Whose median: all answers of the same "participant", or to the same "sentence".
    """

    limit: float = 3.5
    over: str = "participant"

    def __post_init__(self) -> None:
        _check(self, "mad")

    def among(self, values: Floats) -> Bools:
        """Return the outliers, once: what remains is not searched again."""
        return _by_group(values, self.over, self._far)

    def untold(self, values: Floats) -> int:
        """Return how many groups that do vary have a MAD of 0."""
        groups = (row[~np.isnan(row)] for row in (values if self.over == "participant" else values.T))
        varying = (group for group in groups if len(group) and np.ptp(group) > 0)
        return sum(bool(np.median(np.abs(group - np.median(group))) == 0) for group in varying)

    def _far(self, group: Floats) -> Bools:
        distances = np.abs(group - np.median(group))
        spread = np.median(distances)
        if spread == 0:
            return np.zeros(len(group), dtype=bool)
        return np.asarray(_MAD_OF_NORMAL * distances / spread > self.limit)


RULES = {"none": Nothing, "sd": SD, "mad": MAD}


def load_outliers(text: str) -> Outliers:
    """Return the rule of a spelling.

    >>> load_outliers("mad(3.5, over='sentence')")
    MAD(limit=3.5, over='sentence')
    """
    spelled = read(text)
    if spelled.name not in RULES:
        raise UnknownName("rule for outliers", spelled.name, RULES, hint=f"The rules are: {', '.join(RULES)}.")
    rule: Outliers = registry.build(RULES[spelled.name], spelled.name, spelled.args, spelled.options)
    return rule


def _check(rule: SD | MAD, name: str) -> None:
    object.__setattr__(rule, "limit", checked_number(f"{name}: limit", rule.limit))
    if rule.limit <= 0:
        raise MeasureError(f"{name}: limit is {rule.limit:g}; expected a number above 0")
    if rule.over not in _GROUPS:
        raise MeasureError(f"{name}: over is {rule.over!r}; expected {' or '.join(map(repr, _GROUPS))}")


def _by_group(values: Floats, over: str, far: Callable[[Floats], Bools]) -> Bools:
    """Return the outliers of each row, or of each column; no answer is no outlier."""
    table = values if over == "participant" else values.T
    found = np.zeros(table.shape, dtype=bool)
    for row, marks in zip(table, found, strict=True):
        given = ~np.isnan(row)
        if given.any():
            marks[given] = far(row[given])
    return found if over == "participant" else found.T
