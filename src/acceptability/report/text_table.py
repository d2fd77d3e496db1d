"""Tables of text that fit a width: names are wrapped, numbers never are, and nothing is ever cut.

``render_table`` takes the first layout that fits. A table whose columns fit is printed as it is; otherwise headers and
names are wrapped; a table with a column for each of many things, such as models, continues in further blocks; and where
even that is too wide, each row becomes a list of its cells, one to a line.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from acceptability.errors import escape_control_chars

_GAP = "  "
# A narrower column of names would be a column of syllables.
_MIN_NAME_WIDTH = 14
# A column that is all this tells nobody anything.
_BLANK = ("", "–")
# What a number consists of: digits with signs and brackets, "95 %", "<.001", "1e-05"; or the dash of no number.
_NUMBER = re.compile(r"(?=.*\d)[\d.,:+\-−–±<>=~/ %()\[\]×]*(?:(?<=\d)[eE][-+]?\d+)?[\d.,)\] ]*\Z|–?\Z")
# Where a word that is longer than its column is divided: after a sign within specs, paths and identifiers, but not
# within a number.
_BREAKS = re.compile(r"(?<=[_/,|:;–-])(?=[^\s\d.])|(?<=\w\()(?=[^\s\d.])|(?<==)(?=[^\W\d])")


@dataclass(frozen=True)
class TextTable:
    """A table for people, of texts.

    Args:
        header: The names of the columns.
        rows: The cells of each row; a cell may have several lines.
        title: A line above the table.
        keys: How many columns on the left say what a row is about; they are repeated in further blocks.
        is_pivot: Whether the other columns are alike, one for each model for example, so that those that do not fit
            may be printed in further blocks.
        kept: Columns that are shown even if all their cells are blank; other blank columns are left out.
        notes: Lines below the table.
        unbroken: Columns of names that are copied, such as ids, and are not wrapped either.
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    keys: int = 1
    is_pivot: bool = False
    kept: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unbroken: tuple[str, ...] = ()


def make_table(
    header: Sequence[str],
    rows: Sequence[Sequence[object]],
    title: str = "",
    *,
    keys: int = 1,
    is_pivot: bool = False,
    kept: Sequence[str] = (),
    notes: Sequence[str] = (),
    unbroken: Sequence[str] = (),
) -> TextTable:
    """Return a table of any cells, as texts without control characters; None is an empty cell.

    >>> make_table(["model", "n"], [["trigram", 383], ["uniform", None]]).rows
    (('trigram', '383'), ('uniform', ''))
    """
    cells = tuple(tuple("" if cell is None else _escape(str(cell)) for cell in row) for row in rows)
    below = tuple(map(_escape, notes))
    return TextTable(
        tuple(map(_escape, header)), cells, _escape(title), keys, is_pivot, tuple(kept), below, tuple(unbroken)
    )


def _escape(text: str) -> str:
    # Line breaks are the layout of a cell; a tab would break that of the table, and others may come from any file.
    return escape_control_chars(text.replace("\t", " "))


def render_table(table: TextTable, width: int, *, rule: str = "─") -> list[str]:
    """Return the lines of a table, none of which is wider than a width, if its longest number is not.

    Args:
        table: The table.
        width: The number of columns of the terminal.
        rule: The character of the line below the header.

    >>> table = make_table(["model", "value"], [["trigram", "0.648"], ["a long name", "0.5"]])
    >>> print("\\n".join(render_table(table, 40)))
    model        value
    ───────────  ─────
    trigram      0.648
    a long name    0.5
    >>> print("\\n".join(render_table(table, 9)))
    trigram
      value
      0.648
    a long
    name
      value
      0.5
    """
    table = _drop_blank_columns(table)
    title = wrap_text(table.title, width) if table.title else []
    notes = [line for note in table.notes for line in wrap_text(note, width)]
    return [*title, *(_render_body(table, width, rule) if table.rows else []), *notes]


def _render_body(table: TextTable, width: int, rule: str) -> list[str]:
    numeric = [_is_numeric(table, index) for index in range(len(table.header))]
    if widths := _fit_widths(table, numeric, range(len(table.header)), width):
        return _render_columns(table, numeric, widths, rule)
    if table.is_pivot and (blocks := _divide(table, numeric, width)):
        parts = [_render_columns(table, numeric, block, rule) for block in blocks]
        # An empty line between two blocks.
        return [line for number, part in enumerate(parts) for line in [""] * (number > 0) + part]
    return _render_stacked(table, width)


def text_width(text: str) -> int:
    """Return how many columns of a terminal a text takes: two for each wide character, none for a combining one.

    >>> text_width("né"), text_width("文法")
    (2, 4)
    """
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


def wrap_text(text: str, width: int) -> list[str]:
    """Return the lines of a text, wrapped at spaces and after the signs of specs; only longer words are divided.

    >>> wrap_text("PairAccuracy(ties=0.5), starter", 18)
    ['PairAccuracy(', 'ties=0.5), starter']
    """
    lines = []
    for paragraph in text.split("\n"):
        line = ""
        for word in re.findall(r"\s*\S+", paragraph):
            if text_width(line + word) <= width:
                line += word
                continue
            # A word that fits into a line of its own is not divided.
            parts = [word.strip()] if line and text_width(word.strip()) <= width else _BREAKS.split(word)
            for part in parts:
                if (line and text_width(line + part) > width) or len(parts) == 1:
                    lines.append(line)
                    line = ""
                    part = part.lstrip()
                line += part
                while text_width(line) > width:
                    head = _take_width(line, width)
                    lines.append(head)
                    line = line[len(head) :]
        lines.append(line)
    return lines


def _take_width(text: str, width: int) -> str:
    taken = 0
    for index, character in enumerate(text):
        taken += text_width(character)
        # At least one character, however narrow the column, so that the loop of the caller ends.
        if taken > width and index:
            return text[:index]
    return text


def _drop_blank_columns(table: TextTable) -> TextTable:
    shown = [
        index
        for index, name in enumerate(table.header)
        if name in table.kept or any(row[index] not in _BLANK for row in table.rows)
    ]
    return replace(
        table,
        header=tuple(table.header[index] for index in shown),
        rows=tuple(tuple(row[index] for index in shown) for row in table.rows),
        keys=sum(index < table.keys for index in shown),
    )


def _is_numeric(table: TextTable, column: int) -> bool:
    return all(_NUMBER.match(line) for row in table.rows for line in row[column].split("\n"))


def _longest_word(text: str) -> int:
    return max((text_width(word) for part in text.split() for word in _BREAKS.split(part)), default=0)


def _line_width(text: str) -> int:
    return max(map(text_width, text.split("\n")))


def _fit_widths(table: TextTable, numeric: Sequence[bool], columns: Sequence[int], width: int) -> dict[int, int] | None:
    """Return widths with which some columns fit; None if not even the narrowest that cut no number do."""
    widest, narrowest = {}, {}
    for index in columns:
        cells = max(_line_width(row[index]) for row in table.rows)
        name = table.header[index]
        widest[index] = max(cells, text_width(name))
        texts = [] if numeric[index] else [row[index] for row in table.rows]
        words = max((_longest_word(text) for text in texts), default=cells)
        # Longer words, such as hashes and paths, are divided.
        is_whole = numeric[index] or name in table.unbroken
        # A line that is a number, such as an interval below a name, is not wrapped in a column of names either.
        numbers = max(
            (text_width(line) for text in texts for line in text.split("\n") if _NUMBER.match(line)), default=0
        )
        narrowest[index] = max(_longest_word(name), cells if is_whole else max(numbers, min(words, _MIN_NAME_WIDTH)))
    room = width - len(_GAP) * (len(widest) - 1)
    if sum(widest.values()) <= room:
        return widest
    if sum(narrowest.values()) > room:
        return None
    widths = dict(narrowest)
    for _ in range(room - sum(widths.values())):
        # The column whose text is most folded gets the next character.
        index = max(widths, key=lambda number: widest[number] / widths[number])
        widths[index] += widths[index] < widest[index]
    return widths


def _divide(table: TextTable, numeric: Sequence[bool], width: int) -> list[dict[int, int]]:
    """Return blocks of columns that fit, each with the keys; none if not even one column fits beside them."""
    keys = list(range(table.keys))
    blocks: list[dict[int, int]] = []
    start = table.keys
    while start < len(table.header):
        for stop in range(len(table.header), start, -1):
            if widths := _fit_widths(table, numeric, [*keys, *range(start, stop)], width):
                blocks.append(widths)
                start = stop
                break
        else:
            return []
    return blocks


def _render_columns(table: TextTable, numeric: Sequence[bool], widths: dict[int, int], rule: str) -> list[str]:
    header = _render_row([table.header[index] for index in widths], numeric, widths, is_header=True)
    lines = [*header, _GAP.join(rule * size for size in widths.values())]
    for row in table.rows:
        lines += _render_row([row[index] for index in widths], numeric, widths)
    return lines


def _render_row(
    cells: Sequence[str], numeric: Sequence[bool], widths: dict[int, int], *, is_header: bool = False
) -> list[str]:
    folded = [
        cell.split("\n") if numeric[index] and not is_header else wrap_text(cell, size)
        for cell, (index, size) in zip(cells, widths.items(), strict=True)
    ]
    height = max(map(len, folded))
    lines = []
    for number in range(height):
        parts = []
        for lines_of_cell, (index, size) in zip(folded, widths.items(), strict=True):
            # A header of several lines stands on the rule, a cell hangs from the line of its row.
            shift = height - len(lines_of_cell) if is_header else 0
            text = lines_of_cell[number - shift] if 0 <= number - shift < len(lines_of_cell) else ""
            padding = " " * (size - text_width(text))
            parts.append(padding + text if numeric[index] else text + padding)
        lines.append(_GAP.join(parts).rstrip())
    return lines


def _render_stacked(table: TextTable, width: int) -> list[str]:
    """Return each row as its first cell, with the others below it, each after the name of its column."""
    names = table.header[1:]
    column = max(map(text_width, names), default=0)
    lines = []
    for row in table.rows:
        lines += wrap_text(row[0] or "–", width)
        for name, cell in zip(names, row[1:], strict=True):
            if cell in _BLANK:
                continue
            room = width - column - 2 * len(_GAP)
            flat = cell.replace("\n", " ")
            # Beside its name if it fits there, else below it.
            if text_width(flat) <= room or room >= 2 * _MIN_NAME_WIDTH:
                first, *others = wrap_text(flat, room)
                lines.append(_GAP + name + " " * (column - text_width(name)) + _GAP + first)
                lines += [" " * (column + 2 * len(_GAP)) + line for line in others]
            else:
                lines += [_GAP + line for part in (name, cell) for line in wrap_text(part, width - len(_GAP))]
    return lines
