"""Values as people see them: rows as a plain table, as HTML in a notebook, and as a pandas data frame.

``RowList`` is the list that the public functions return: a list like any other, which shows itself as a table.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, SupportsIndex, TypeVar, overload

from acceptability.errors import MissingExtra, escape_control_chars, shorten

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, object]

_PLAIN_ROWS = 20
_HTML_ROWS = 60
_TEXT_WIDTH = 40
_LINE_WIDTH = 118
_ELLIPSIS = "…"


class RowSource(Protocol):
    """A value that is one row of a table, such as a ``Result``."""

    def row(self) -> dict[str, object]:
        """Return its columns."""
        ...


SourceT = TypeVar("SourceT", bound=RowSource)


def make_frame(columns: Mapping[str, Sequence[object]]) -> pd.DataFrame:
    """Return columns as a pandas data frame; raise an error if pandas is not installed."""
    # Imported here, since it takes half a second, and is needed only by those who ask for a frame.
    try:
        import pandas as pd
    except ImportError as error:
        raise MissingExtra("to_frame", "the package pandas", "pandas") from error
    return pd.DataFrame({name: list(cells) for name, cells in columns.items()})


def collect_columns(rows: Sequence[Row]) -> dict[str, list[object]]:
    """Return the columns of rows, in the order in which the rows name them; a cell that a row lacks is None.

    >>> collect_columns([{"a": 1}, {"a": 2, "b": 3}])
    {'a': [1, 2], 'b': [None, 3]}
    """
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def format_cell(cell: object) -> str:
    """Return a cell of a table as text: numbers with three decimals, which are never cut.

    >>> format_cell(0.64881), format_cell(0.00002), format_cell(336), format_cell(None)
    ('0.649', '2.0e-05', '336', '')
    """
    if cell is None:
        return ""
    if isinstance(cell, float):
        # Three decimals would round a small p value to zero.
        return f"{cell:.1e}" if 0 < abs(cell) < 0.0005 else f"{cell:.3f}"
    return escape_control_chars(str(cell)).replace("\n", " ")


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def format_plain(rows: Sequence[Row], *, max_rows: int = _PLAIN_ROWS) -> str:
    """Return rows as a plain table under a header; of many rows the first ones, and how many more there are.

    >>> print(format_plain([{"model": "trigram", "value": 0.64881, "n": 336}]))
    model    value    n
    trigram  0.649  336
    """
    columns = {name: cells for name, cells in collect_columns(rows[:max_rows]).items() if any(_has_content(cells))}
    lines = [[name, *(_cut(cell) for cell in cells)] for name, cells in columns.items()]
    widths = [max(map(len, line)) for line in lines]
    right = [all(cell is None or _is_number(cell) for cell in cells) for cells in columns.values()]
    kept = _fit_columns(widths)
    text = "\n".join(
        "  ".join(
            lines[column][row].rjust(widths[column]) if right[column] else lines[column][row].ljust(widths[column])
            for column in kept
        ).rstrip()
        for row in range(len(rows[:max_rows]) + 1)
    )
    rest = [f"{len(rows) - max_rows} more rows"] if len(rows) > max_rows else []
    hidden = [name for column, name in enumerate(columns) if column not in kept]
    rest += [f"more columns: {', '.join(hidden)}"] if hidden else []
    return f"{text}\n{_ELLIPSIS} {'; '.join(rest)}" if rest else text


def _has_content(cells: Iterable[object]) -> Iterable[bool]:
    return (cell is not None and cell != "" for cell in cells)


def _cut(cell: object) -> str:
    text = format_cell(cell)
    return text if _is_number(cell) else shorten(text, _TEXT_WIDTH)


def _fit_columns(widths: Sequence[int]) -> list[int]:
    """Return the columns that fit on a line; whole columns are left out, since half a number would mislead."""
    kept: list[int] = []
    used = 0
    for column, width in enumerate(widths):
        used += width + 2 * bool(kept)
        if used > _LINE_WIDTH and kept:
            break
        kept.append(column)
    return kept


def format_html(rows: Sequence[Row], *, caption: str = "", notes: Sequence[str] = ()) -> str:
    """Return rows as an HTML table, for a notebook.

    Args:
        rows: The rows; of many, the first ones are shown.
        caption: A line above the table.
        notes: Lines below it.

    >>> format_html([{"text": "a<b"}]).count("a&lt;b")
    1
    """
    columns = {name: cells for name, cells in collect_columns(rows[:_HTML_ROWS]).items() if any(_has_content(cells))}
    right = {name for name, cells in columns.items() if all(cell is None or _is_number(cell) for cell in cells)}

    def write(tag: str, name: str, text: str) -> str:
        align = "right" if name in right else "left"
        # Texts come from files and models, and a notebook would run a script in them.
        return f'<{tag} style="text-align:{align}">{html.escape(text)}</{tag}>'

    head = "".join(write("th", name, name) for name in columns)
    body = "".join(
        f"<tr>{''.join(write('td', name, format_cell(cells[row])) for name, cells in columns.items())}</tr>"
        for row in range(len(rows[:_HTML_ROWS]))
    )
    more = [f"{_ELLIPSIS} {len(rows) - _HTML_ROWS} more rows"] if len(rows) > _HTML_ROWS else []
    title = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    below = "".join(f"<div>{html.escape(escape_control_chars(line))}</div>" for line in (*more, *notes))
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


class ShownRow:
    """A mixin for values that are one row: shows its main columns on a line, and in a notebook all of them."""

    hidden_columns: ClassVar[tuple[str, ...]] = ("signature", "notes", "reason")
    row: Callable[[], dict[str, object]]

    def __repr__(self) -> str:
        shown = {
            name: cell
            for name, cell in self.row().items()
            if name not in self.hidden_columns and cell is not None and cell != ""
        }
        # A list in a cell, such as the tokens of a judgement, is counted.
        cells = (
            f"{name}={len(cell)} {name}" if isinstance(cell, list | dict) else f"{name}={_show(cell)}"
            for name, cell in shown.items()
        )
        return f"{type(self).__name__}({', '.join(cells)})"

    def _repr_html_(self) -> str:
        row = {name: cell for name, cell in self.row().items() if not isinstance(cell, list | dict)}
        return format_html([{"": name, type(self).__name__: format_cell(cell)} for name, cell in row.items()])


def _show(cell: object) -> str:
    if isinstance(cell, str):
        return repr(shorten(cell, 60))
    return format_cell(cell)


class RowList(list[SourceT]):
    """A list of values that are rows: it shows itself as a table, and becomes a pandas data frame.

    >>> Table([TableRow({"word": "Cats", "surprisal_bits": 15.61})])
    word  surprisal_bits
    Cats          15.610
    """

    hidden_columns: ClassVar[tuple[str, ...]] = ("signature", "notes", "reason")

    def rows(self) -> list[dict[str, object]]:
        """Return all columns of each row."""
        return [item.row() for item in self]

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with all columns, one row for each value.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return make_frame(collect_columns(self.rows()))

    def shown_rows(self) -> list[dict[str, object]]:
        """Return the columns that fit in front of people's eyes: neither signatures nor notes."""
        return [{name: cell for name, cell in row.items() if name not in self.hidden_columns} for row in self.rows()]

    def footnotes(self) -> list[str]:
        """Return what stands below the table in a notebook: the notes of the rows, each once."""
        notes = (str(row.get(name) or "") for row in self.rows() for name in ("reason", "notes"))
        return list(dict.fromkeys(filter(None, notes)))

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> SourceT: ...
    @overload
    def __getitem__(self, index: slice, /) -> Self: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> SourceT | Self:
        if not isinstance(index, slice):
            return super().__getitem__(index)
        part = type(self)(super().__getitem__(index))
        # What belongs to the whole list, such as the suites of results, belongs to its parts.
        part.__dict__.update(self.__dict__)
        return part

    def __repr__(self) -> str:
        return format_plain(self.shown_rows()) if self else f"{type(self).__name__}([])"

    def _repr_html_(self) -> str:
        return format_html(self.shown_rows(), notes=self.footnotes())


ValueT = TypeVar("ValueT")


class ShownMapping(dict[str, ValueT]):
    """A dictionary that shows itself as a table, and becomes a pandas data frame."""

    def rows(self) -> list[dict[str, object]]:
        """Return the rows of its table."""
        raise NotImplementedError

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with all columns.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return make_frame(collect_columns(self.rows()))

    def __repr__(self) -> str:
        return format_plain(self.rows()) if self else f"{type(self).__name__}({{}})"

    def _repr_html_(self) -> str:
        return format_html(self.rows())


class TableRow(dict[str, Any]):
    """One row of a ``Table``: its cells by the names of its columns."""

    def row(self) -> dict[str, object]:
        """Return its columns."""
        return dict(self)


class Table(RowList[TableRow]):
    """A table, as a list of rows: ``table[0]["word"]``."""

    hidden_columns: ClassVar[tuple[str, ...]] = ()
