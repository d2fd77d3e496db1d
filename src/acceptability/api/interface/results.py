"""Results as lists that show themselves: tables, the best model, figures, a report, LaTeX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from acceptability import registry
from acceptability.display import RowList, RowSource, Table, TableRow, format_plain
from acceptability.errors import MeasureError, suggest_name
from acceptability.specs import shorten_signature
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.types import Result, Suite


class Figure(Protocol):
    """A figure, which shows itself in a notebook."""

    @property
    def name(self) -> str:
        """The name of the kind of figure."""
        ...

    @property
    def title(self) -> str:
        """The line above it."""
        ...

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file, whose ending (.svg, .png, .pdf or .json) decides the format."""
        ...

    def _repr_html_(self) -> str: ...


@dataclass(frozen=True)
class OutputRows:
    """What figures, reports and tables for papers are made of.

    Args:
        rows: The rows of results.
        units: The rows that the results are computed from.
        suites: The suites of the results.
    """

    rows: Sequence[Mapping[str, object]]
    units: Iterable[Mapping[str, object]]
    suites: Sequence[Suite]


SourceT = TypeVar("SourceT", bound=RowSource)


class ReportedRows(RowList[SourceT]):
    """Rows that can be drawn and reported.

    Args:
        rows: The rows.
        suites: The suites that they are about, whose sentences a report shows.
    """

    def __init__(self, rows: Iterable[SourceT] = (), suites: Sequence[Suite] = ()) -> None:
        super().__init__(rows)
        self.suites = tuple(suites)

    def figure(self, name: str = "") -> Figure:
        """Return a figure of the results, which a notebook shows and ``save`` writes to a file.

        Args:
            name: The kind of figure, such as ``by-group``; by default the first for which there are rows.

        Raises:
            MissingExtra: The packages that draw are not installed.
            ReportError: There is no such figure; the error names those that there are.
        """
        # By the registry, since reports stand in a room above this one.
        figure: Figure = registry.find("output", "figure")(self._collect_output(), name)
        return figure

    def report(self, path: str | Path, *, title: str = "Acceptability") -> Path:
        """Write a report, one HTML file with tables, figures and sentences that opens offline, and return its path.

        Args:
            path: The file.
            title: The title of the page.
        """
        written: Path = registry.find("output", "report")(self._collect_output(), Path(path), title)
        return written

    def to_latex(self) -> str:
        """Return the tables of a paper in LaTeX (booktabs)."""
        latex: str = registry.find("output", "latex")(self._collect_output())
        return latex

    def unit_rows(self) -> Iterable[Mapping[str, object]]:
        """Return the rows that these are computed from; none for rows that do not have them."""
        return ()

    def _collect_output(self) -> OutputRows:
        if not self:
            raise MeasureError("there are no results to show")
        return OutputRows(self.rows(), self.unit_rows(), self.suites)


class Results(ReportedRows[Result]):
    """The values of measures, as a list that shows itself: ``results[0].value``, ``results.to_frame()``."""

    def shown_rows(self) -> list[dict[str, object]]:
        """Return the columns of a table: reductions and groups only where there are several."""
        rows = super().shown_rows()
        constant = [name for name in ("suite", "measure", "reduction") if len({row[name] for row in rows}) == 1]
        # One of each is said in the line above the table.
        return [{name: cell for name, cell in row.items() if name not in constant} for row in rows]

    def describe(self) -> str:
        """Return what all results have in common: suite, measure and reduction."""
        rows = self.rows()
        values = {name: {str(row[name]) for row in rows} for name in ("suite", "measure", "reduction")}
        return ", ".join(value for shared in values.values() if len(shared) == 1 for value in shared if value)

    def footnotes(self) -> list[str]:
        """Return the notes, and the short form of each signature."""
        signatures = dict.fromkeys(result.signature for result in self if result.group is None)
        return [*super().footnotes(), f"signatures: {', '.join(map(shorten_signature, signatures))}"]

    def __repr__(self) -> str:
        return f"{self.describe()}\n{format_plain(self.shown_rows())}" if self else "Results([])"

    def best(self, *, measure: str | None = None, suite: str | None = None) -> Result:
        """Return the result with the highest value over all rows; of equal ones the first.

        Args:
            measure: The measure, by its spec or its name, if there are results of several.
            suite: The suite, if there are results on several.

        >>> from acceptability import evaluate
        >>> evaluate("starter", ["uniform", "trigram"], measure="PairAccuracy").best().model
        'trigram'
        """
        candidates = [result for result in self if result.group is None]
        candidates = _select(candidates, "measure", measure)
        candidates = _select(candidates, "suite", suite)
        defined = [(result.value, result) for result in candidates if result.value is not None]
        if not defined:
            raise MeasureError("no result has a value: " + "; ".join(self.footnotes()[:3]))
        return max(defined, key=lambda pair: pair[0])[1]

    def pivot(self, columns: str = "model", values: str = "value") -> Table:
        """Return a table with a column for each model and a row for each group, whose first row, "all", is the whole.

        Where there are several suites, measures or reductions, the rows are divided by these too.

        Args:
            columns: What has a column for each of its values: ``model``, ``suite``, ``measure``, ``reduction`` or
                ``group``.
            values: The number in the cells: ``value``, ``low``, ``high`` or ``n``.
        """
        names = ("suite", "measure", "reduction", "model", "group")
        for given, known in ((columns, names), (values, ("value", "low", "high", "n"))):
            if given not in known:
                raise MeasureError(f"pivot: {given!r} is none of {', '.join(known)}.{suggest_name(given, known)}")
        tag, labels = self._name_groups()
        rows = [row | {"group": labels[str(row["group"] or "")]} for row in self.rows()]
        varied = [name for name in names if name != columns and (name == "group" or len({r[name] for r in rows}) > 1)]
        # A table without groups has one row for all; its name would be a column of nothing.
        if {row["group"] for row in rows} == {"all"} and len(varied) > 1:
            varied.remove("group")
        cells: dict[tuple[str, ...], dict[str, Any]] = {}
        for row in rows:
            key = tuple(str(row[name]) for name in varied)
            heads = (tag if name == "group" else name for name in varied)
            cells.setdefault(key, dict(zip(heads, key, strict=True)))[str(row[columns])] = row[values]
        return Table(map(TableRow, cells.values()))

    def _name_groups(self) -> tuple[str, dict[str, str]]:
        """Return the tag that results are grouped by, and what each group is called beside it."""
        groups = {str(result.group or "") for result in self}
        tags = {group.removeprefix("macro(").partition("=")[0].rstrip(")") for group in groups if group}
        # Results of several tags, joined by the user, need the tag in every row.
        if len(tags) != 1:
            return "group", {group: group or "all" for group in groups}
        (tag,) = tags
        shown = {f"macro({tag})": "macro mean", "": "all"}
        return tag, {group: shown.get(group, group.removeprefix(f"{tag}=")) for group in groups}

    def unit_rows(self) -> Iterable[Mapping[str, object]]:
        """Return the rows that results over the whole suite are computed from."""
        return collect_unit_rows(self)


def _select(results: Sequence[Result], column: str, wanted: str | None) -> list[Result]:
    """Return the results with a value in a column; without a choice there must be only one value."""
    known = list(dict.fromkeys(str(result.row()[column]) for result in results))
    if wanted is None:
        if len(known) > 1:
            raise MeasureError(f"the results have several values of {column} ({', '.join(known)}): give {column}=")
        return list(results)
    matching = [name for name in known if name == wanted or name.partition("(")[0] == wanted]
    if not matching:
        raise MeasureError(f"no result has the {column} {wanted!r}; there are {', '.join(known) or 'none'}")
    return [result for result in results if str(result.row()[column]) == matching[0]]
