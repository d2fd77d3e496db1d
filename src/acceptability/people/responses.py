"""What people answered, as one table: a row a participant, a column a sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import SuiteError
from acceptability.text import as_number
from acceptability.types import Floats, Sentence

Bools = NDArray[np.bool_]

NOTHING = ("", "NA")
"""What stands for no answer in a file: an empty cell, or R's NA."""
YES = ("1", "1.0", "yes", "y", "true")
NO = ("0", "0.0", "no", "n", "false")


@dataclass(frozen=True, eq=False)
class Responses:
    """The answers of participants to sentences.

    Args:
        kind: "magnitude" (positive numbers), "likert" (points of a scale) or "yes-no" (1 and 0).
        values: A row a participant, a column a sentence; nan where there is no answer.
        catch: The right answers (1 good, 0 bad) of catch items, by sentence id.
        notes: What a reader should know of: missing answers, and answers that were reinterpreted.
    """

    name: str
    kind: str
    participants: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    values: Floats
    catch: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ANSWERS:
            raise SuiteError(f"no kind of response is named {self.kind!r}; there are {', '.join(ANSWERS)}")
        if self.values.shape != (len(self.participants), len(self.sentences)):
            raise SuiteError(
                f"{self.name}: the table of answers is {self.values.shape}, but there are "
                f"{len(self.participants)} participants and {len(self.sentences)} sentences"
            )

    def of(self, keep: Callable[[Sentence], bool]) -> Responses:
        """Return the answers to some of the sentences only."""
        places = [place for place, each in enumerate(self.sentences) if keep(each)]
        return replace(self, sentences=tuple(self.sentences[place] for place in places), values=self.values[:, places])

    @property
    def labels(self) -> Floats:
        """The sentences' labels; nan where there is none."""
        return np.array([np.nan if each.label is None else float(each.label) for each in self.sentences])


def of_rows(name: str, kind: str, rows: Sequence[Sequence[float | None]]) -> Responses:
    """Return responses from plain rows of numbers, a row a participant; None is no answer.

    >>> of_rows("toy", "likert", [[1, 5, None], [2, 7, 6]]).values.shape
    (2, 3)
    """
    values = np.array([[np.nan if each is None else float(each) for each in row] for row in rows], dtype=np.float64)
    sentences = tuple(Sentence(str(number), f"sentence {number}") for number in range(1, values.shape[1] + 1))
    return Responses(name, kind, tuple(str(number) for number in range(1, len(rows) + 1)), sentences, values)


def is_missing(cell: object) -> bool:
    """Tell whether a cell holds no answer."""
    return cell is None or (isinstance(cell, str) and cell.strip() in NOTHING)


def _likert(cell: object) -> float:
    number = as_number(cell)
    if number is None or not np.isfinite(number):
        raise SuiteError(f"response is {cell!r}; expected a number, or nothing where there was no answer")
    return number


def _magnitude(cell: object) -> float:
    number = _likert(cell)
    if number <= 0:
        raise SuiteError(f"response is {cell!r}; magnitude estimates are positive numbers, as their logs are taken")
    return number


def _yes_no(cell: object) -> float:
    said = str(cell).strip().lower()
    if said in YES or said in NO:
        return float(said in YES)
    raise NeitherYesNorNo(
        f"response is {cell!r}; expected 1 or 0, yes or no. If it is to count, say as what: --other no or missing"
    )


class NeitherYesNorNo(SuiteError):
    """An answer that is neither yes nor no."""


ANSWERS: dict[str, Callable[[object], float]] = {"magnitude": _magnitude, "likert": _likert, "yes-no": _yes_no}
"""How a cell is read, for each kind of response."""
