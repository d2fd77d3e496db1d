"""The cells of a study: a value as a paper prints it, our number beside it, and whether the two agree.

Printed values are read from ``values/STUDY.csv``. Our numbers are often computed from files that the authors published
with their sentences, such as model scores and human ratings; ``files.toml`` lists these files with their sha256.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from acceptability.display import RowList
from acceptability.errors import MeasureError, UnknownName
from acceptability.suites.catalog import CatalogEntry, read_contents, read_entries
from acceptability.text.io import read_dict_rows

CellKey = tuple[str, str, str]
"""Table, row and column."""

_ORIGIN_PREFIX = "printed value: "
# Papers leave out the zero before the point (".77") or print no decimals, so that both parts are optional. The second
# group is the decimals: their count says how the paper rounds.
_NUMBER = re.compile(r"[+-]?(\d*)\.?(\d*)")


@dataclass(frozen=True)
class Cell:
    """One cell of a table, or one number of a figure or of the text.

    Args:
        table: The table, figure or section of the paper.
        row: The row, in the paper's words.
        column: The column, in the paper's words.
        paper: The value exactly as the paper prints it; None where it prints none.
        ours: The value that we computed; None where that is impossible, and the note says why.
        source: The data behind ours: "published scores", or "re-scored with MODEL".
        agrees: Whether ours, rounded as the paper rounds, equals the printed value; None where there is nothing to
            compare, or where the two are of different models or texts, as source and note say.
        note: Why the two differ, or a caveat about either.
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
        """Whether ours is shown beside the printed value without being an attempt at the same number."""
        return self.paper is not None and self.ours is not None and self.agrees is None

    @property
    def is_second_hand(self) -> bool:
        """Whether the printed value was taken from another source than the paper's text, which the note names."""
        return _ORIGIN_PREFIX in self.note

    def as_row(self) -> dict[str, object]:
        """Return the cell as one flat row, for JSON and tables."""
        return asdict(self)


class Cells(RowList[Any]):
    """The cells of a paper's tables, as a list that shows itself: ``cells[0].ours``."""

    hidden_columns: ClassVar[tuple[str, ...]] = ("note", "source")

    def rows(self) -> list[dict[str, object]]:
        """Return all columns of each cell."""
        return [cell.as_row() for cell in self]


@dataclass(frozen=True)
class PublishedValue:
    """A value that a paper prints.

    Args:
        value: The value exactly as printed; its digits determine what agrees with it.
        section: The section of the text that reports it.
        note: Why it cannot be reproduced, where that is known.
        origin: The source of the value, if it is not the paper's own text; always shown.
    """

    value: str
    section: str = ""
    note: str = ""
    origin: str = ""


PublishedValues = Mapping[CellKey, PublishedValue]
"""The printed values of a paper, by table, row and column."""


def read_published_values(study: str) -> dict[CellKey, PublishedValue]:
    """Return the values that a paper prints, from ``values/STUDY.csv``, in the order of the file.

    Args:
        study: The name of the file. Its columns are table, row, column and value (as printed), and optionally section,
            note and origin; ``values/README.md`` explains them.
    """
    where = f"{study}.csv"
    content = files("acceptability.papers").joinpath("values", where).read_bytes()
    values: dict[CellKey, PublishedValue] = {}
    for line, row in read_dict_rows(content, where):
        key = row["table"], row["row"], row["column"]
        # A dictionary would silently keep the later of two values, and one of the two must be a slip.
        if key in values:
            raise MeasureError(f"{where}, line {line}: a second value for {' / '.join(key)}")
        values[key] = PublishedValue(row["value"], row.get("section", ""), row.get("note", ""), row.get("origin", ""))
    return values


def make_cell(values: PublishedValues, key: CellKey, ours: float | str | None, source: str, *, note: str = "") -> Cell:
    """Return a cell that compares our number with the printed value of the same key.

    Args:
        values: The printed values of the paper.
        key: Table, row and column.
        ours: Our number or text; None if there is none.
        source: The data behind it.
        note: A caveat; the printed value's own note follows it where the two disagree.

    >>> key = ("Table 1", "BERT", "ADC")
    >>> cell = make_cell({key: PublishedValue(".36")}, key, 0.3645, "published scores")
    >>> cell.paper, cell.agrees
    ('.36', True)
    """
    published = values.get(key)
    agrees = None if published is None or ours is None else rounds_to(ours, published.value)
    # The note of a printed value explains a discrepancy; where there is none it would only confuse.
    known_note = published.note if published and not agrees else ""
    origin = f"{_ORIGIN_PREFIX}{published.origin}" if published and published.origin else ""
    notes = "; ".join(filter(None, (note, known_note, origin)))
    return Cell(*key, published.value if published else None, ours, source, agrees, notes)


def make_uncompared_cell(
    values: PublishedValues, key: CellKey, ours: float | str | None, source: str, *, note: str = ""
) -> Cell:
    """Return a cell with our number beside a printed value of another model or text, which are not compared.

    >>> key = ("Table 1", "Mikolov", "BNC")
    >>> cell = make_uncompared_cell({key: PublishedValue("332.04")}, key, 332.04, "another text")
    >>> cell.paper, cell.ours, cell.agrees
    ('332.04', 332.04, None)
    """
    return replace(make_cell(values, key, ours, source, note=note), agrees=None)


def rounds_to(ours: float | str, theirs: str) -> bool:
    """Return whether our number, rounded to as many decimals as theirs is printed with, equals theirs.

    A printed bound, such as "< 0.0001", agrees with every number below it.

    >>> rounds_to(0.7666, ".77"), rounds_to(0.7649, ".77"), rounds_to("782/869", "782/869"), rounds_to(85.24, "85.2")
    (True, False, True, True)
    >>> rounds_to(0.00003, "< .0001"), rounds_to(0.12, "< .0001")
    (True, False)
    """
    # Examples, classes and counts such as "8 of 9" are texts, and agree only if they are the same.
    if isinstance(ours, str):
        return ours == theirs
    if theirs.startswith("<"):
        return ours < float(theirs[1:])
    # Papers print percent signs, thousands separators, and the typographic minus sign, which float() refuses.
    digits = theirs.strip().rstrip("%").strip().replace("−", "-").replace(",", "")
    match = _NUMBER.fullmatch(digits)
    # "N/A", a dash or an empty cell of a paper is no number, and agrees with none.
    if match is None or not (match[1] or match[2]) or not math.isfinite(ours):
        return False
    # Half a unit of the last printed digit. The margin lets 0.5 agree with ".5" when ours is off by rounding errors of
    # binary fractions, and lets papers round halves up or to even.
    return abs(ours - float(digits)) <= 0.5 * 10.0 ** -len(match[2]) + 1e-9


def read_published_files(name: str) -> dict[str, bytes]:
    """Return the contents of the files that a paper published beside its sentences, by path.

    They are searched for where suites are: in ``ACCEPTABILITY_DATA``, then among downloads; otherwise they are
    downloaded. Each is checked against its sha256.

    Args:
        name: The id of a set of files in ``files.toml``, such as ``"li_adger/published"``.
    """
    entries = _read_file_entries()
    if name not in entries:
        raise UnknownName("set of published files", name, entries, hint=f"There are: {', '.join(entries)}.")
    return read_contents(entries[name])


@cache
def _read_file_entries() -> dict[str, CatalogEntry]:
    # The file has the form of the catalog of suites, so that its code downloads and checks these files too.
    return {entry.id: entry for entry in read_entries(Path(__file__).with_name("files.toml"))}
