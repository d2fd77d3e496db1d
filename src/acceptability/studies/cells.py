"""A number as a paper prints it, and ours beside it."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import files

from acceptability.errors import MeasureError

Key = tuple[str, str, str]
"""Table, row and column."""

_SECOND_HAND = "printed value: "
_NUMBER = re.compile(r"[+-]?(\d*)\.?(\d*)")


@dataclass(frozen=True)
class Cell:
    """One place of a table or figure.

    Args:
        paper: What the paper prints there, as it prints it; None where it prints nothing.
        ours: What we computed; None where nothing could be, and the note says why.
        source: What ours was computed from: "published scores", or "re-scored with MODEL".
        agrees: Whether ours, rounded as the paper rounds, is what it prints; None where there is nothing to compare,
            or where the two stand side by side and are of other models or texts, as source and note say.
        note: Why the two differ, or what to know about either.
    """

    table: str
    row: str
    column: str
    paper: str | None
    ours: float | str | None
    source: str
    agrees: bool | None
    note: str = ""

    @property
    def is_not_compared(self) -> bool:
        """Whether ours stands beside what the paper prints without being an attempt at the same number."""
        return self.paper is not None and self.ours is not None and self.agrees is None

    @property
    def is_second_hand(self) -> bool:
        """Whether what the paper prints was taken from elsewhere than its text, as the note says."""
        return _SECOND_HAND in self.note

    def as_row(self) -> dict[str, object]:
        """Return the cell as one flat row, for JSON and tables."""
        return asdict(self)


@dataclass(frozen=True)
class Printed:
    """What a paper prints in one place.

    Args:
        note: Why it cannot be reproduced, where that is known.
        origin: Where the value was taken from, if not from the paper's own text; always shown.
    """

    value: str
    page: str = ""
    note: str = ""
    origin: str = ""


def printed(study: str) -> dict[Key, Printed]:
    """Return what a paper prints, by table, row and column, from the TOML file of its study.

    The file has entries ``[[value]]`` with table, row, column, value (a text, as printed), and perhaps page,
    note and origin.
    """
    text = files("acceptability.studies").joinpath(f"{study}.toml").read_text(encoding="utf-8")
    found: dict[Key, Printed] = {}
    for each in tomllib.loads(text)["value"]:
        key = each["table"], each["row"], each["column"]
        if key in found:
            raise MeasureError(f"{study}.toml has two values for {' / '.join(key)}")
        found[key] = Printed(each["value"], str(each.get("page", "")), each.get("note", ""), each.get("origin", ""))
    return found


def beside(values: Mapping[Key, Printed], key: Key, ours: float | str | None, source: str, *, note: str = "") -> Cell:
    """Return our number beside what the paper prints in the same place.

    >>> place = ("Table 1", "BERT", "ADC")
    >>> cell = beside({place: Printed(".36")}, place, 0.3645, "published scores")
    >>> cell.paper, cell.agrees
    ('.36', True)
    """
    there = values.get(key)
    agrees = None if there is None or ours is None else same(ours, there.value)
    known = there.note if there and not agrees else ""
    origin = f"{_SECOND_HAND}{there.origin}" if there and there.origin else ""
    notes = "; ".join(filter(None, (note, known, origin)))
    return Cell(*key, there.value if there else None, ours, source, agrees, notes)


def not_compared(
    values: Mapping[Key, Printed], key: Key, ours: float | str | None, source: str, *, note: str = ""
) -> Cell:
    """Return our number beside what the paper prints for another model or text: it neither agrees nor fails to.

    >>> place = ("Table 1", "Mikolov", "BNC")
    >>> cell = not_compared({place: Printed("332.04")}, place, 332.04, "another text")
    >>> cell.paper, cell.ours, cell.agrees
    ('332.04', 332.04, None)
    """
    return replace(beside(values, key, ours, source, note=note), agrees=None)


def same(ours: float | str, theirs: str) -> bool:
    """Tell whether our number, rounded as theirs is printed, is theirs.

    A printed bound, such as "< 0.0001", is met or not.

    >>> same(0.7666, ".77"), same(0.7649, ".77"), same("782/869", "782/869"), same(85.24, "85.2")
    (True, False, True, True)
    >>> same(0.00003, "< .0001"), same(0.12, "< .0001")
    (True, False)
    """
    if isinstance(ours, str):
        return ours == theirs
    if theirs.startswith("<"):
        return ours < float(theirs[1:])
    plain = theirs.strip().rstrip("%").strip().replace("−", "-").replace(",", "")
    match = _NUMBER.fullmatch(plain)
    if match is None or not (match[1] or match[2]) or not math.isfinite(ours):
        return False
    # Half a unit of the last printed digit, and a little for numbers that lie on the edge.
    return abs(ours - float(plain)) <= 0.5 * 10.0 ** -len(match[2]) + 1e-9
