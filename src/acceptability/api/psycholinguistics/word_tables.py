"""Tables with a word a row, as experiments on reading have them: ``word``, ``item``, ``zone``, and reading times.

The words of an item, in the order of their positions, are one text; spaces join them. Rows of several readers may share
a word: they have the same item and position. All columns are kept as they are, so that what is computed for a word
stands beside what was measured.
"""

from __future__ import annotations

import csv
import io
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from acceptability.errors import SuiteError, shorten, suggest_name
from acceptability.suites.column_names import normalise_name
from acceptability.suites.table_files import is_table_file, read_rows
from acceptability.text.containers import drop_gzip_suffix, read_unpacked
from acceptability.text.encodings import decode_text
from acceptability.text.io import parse_number
from acceptability.types import Sentence, Span, Suite

_MEANINGS = {
    "word": ("word",),
    "item": (
        "item",
        "item_no",
        "item_number",
        "item_id",
        "story",
        "text_id",
        "textid",
        "docid",
        "doc_id",
        "document",
        "passage",
        "sent_id",
        "sentence_id",
    ),
    "position": (
        "zone",
        "position",
        "word_number",
        "word_num",
        "word_no",
        "wordnum",
        "word_id",
        "wordid",
        "word_index",
    ),
}
"""What the columns of such tables are called, in lower case."""

# A table with one of these has sentences in it, whatever else it has.
_TEXT_COLUMNS = {"text", "sentence", "good", "bad"}
Cells = Mapping[str, Any]
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableWord:
    """A word of a text.

    Args:
        text: The word.
        span: Its characters in the text.
        rows: The rows of the table that are about it: one, or one for each reader.
    """

    text: str
    span: Span
    rows: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class WordTable:
    """A table with a word a row.

    Args:
        name: Its name.
        header: The names of its columns.
        rows: Its rows.
        words: The words of each text, by the item.
        columns: The columns of ``word``, ``item`` and ``position``; the latter two only if the table has them.
    """

    name: str
    header: tuple[str, ...]
    rows: Sequence[Cells]
    words: Mapping[str, Sequence[TableWord]]
    columns: Mapping[str, str]

    def __repr__(self) -> str:
        count = sum(map(len, self.words.values()))
        return f"WordTable({self.name!r}, {len(self.rows)} rows, {count} words in {len(self.words)} texts)"

    @cached_property
    def suite(self) -> Suite:
        """The texts, with their items as ids."""
        return Suite(
            self.name,
            tuple(Sentence(item, " ".join(word.text for word in words)) for item, words in self.words.items()),
        )

    def describe(self) -> list[str]:
        """Return what was assumed about the texts, since no column says it."""
        # Rows of several readers would make a text in which each word is repeated.
        remarks = {
            "item": "no column is known as that of items, so that the table is one text",
            "position": "no column is known as that of positions, so that each row is a word of its own, in this order",
        }
        return [
            f"{remark}; if there is one: --columns {meaning}=COLUMN"
            for meaning, remark in remarks.items()
            if meaning not in self.columns
        ]


def is_word_table(path: Path, columns: Mapping[str, str] | None = None) -> bool:
    """Return whether a file is a table with a word a row: it has a column ``word``, and none of sentences.

    Args:
        path: The file.
        columns: The names of columns by their meaning; a column that is named as the word decides.
    """
    if not path.is_file():
        return False
    if "word" in (columns or {}):
        return True
    try:
        header, _ = _read_rows(path)
    except SuiteError:
        return False
    names = {name.strip().lower() for name in header}
    return "word" in names and not names & _TEXT_COLUMNS


def read_word_table(path: Path, columns: Mapping[str, str] | None = None) -> WordTable:
    """Return the words of a file: separated by tabs, commas or semicolons, perhaps compressed by gzip, or JSONL.

    Args:
        path: The file.
        columns: The names of its columns by their meaning (``word``, ``item``, ``position``), where they differ from
            the usual ones. Case does not matter for the usual ones.
    """
    header, rows = _read_rows(path)
    return make_word_table(path.stem, header, list(rows), columns)


def make_word_table(
    name: str, header: Sequence[str], rows: Sequence[tuple[int, Cells]], columns: Mapping[str, str] | None = None
) -> WordTable:
    """Return the words of a table.

    Args:
        name: The name of the table, for messages.
        header: Its columns.
        rows: Its rows, each with the number of its line.
        columns: The names of columns by their meaning.
    """
    if not rows:
        raise SuiteError(f"{name} has no rows")
    # Rows are mappings, which would lose all but one of the columns of a name.
    if repeated := [column for column, count in Counter(header).items() if count > 1 and str(column).strip()]:
        raise SuiteError(f"{name}: two columns are named {repeated[0]!r}; rename one")
    known = _match_columns(name, header, columns or {})
    words: dict[str, list[TableWord]] = {}
    for item, placed in _group_rows(name, rows, known).items():
        start = 0
        words[item] = []
        for text, numbers in placed:
            words[item].append(TableWord(text, (start, start + len(text)), tuple(numbers)))
            start += len(text) + 1
    return WordTable(name, tuple(header), [row for _, row in rows], words, known)


def _match_columns(name: str, header: Sequence[str], named: Mapping[str, str]) -> dict[str, str]:
    """Return the columns of a table by their meaning."""
    if unknown := named.keys() - _MEANINGS.keys():
        raise SuiteError(f"a table of words has no {sorted(unknown)[0]!r}; name {', '.join(_MEANINGS)}")
    found = {}
    for meaning, synonyms in _MEANINGS.items():
        if meaning in named:
            if named[meaning] not in header:
                raise SuiteError(f"{name} has no column {named[meaning]!r}.{suggest_name(named[meaning], header)}")
            found[meaning] = named[meaning]
            continue
        matching = [column for column in header if normalise_name(column) in synonyms]
        if len(matching) > 1:
            raise SuiteError(
                f"{name}: both {matching[0]!r} and {matching[1]!r} may be the {meaning}; say which: "
                f"--columns {meaning}={matching[0]}"
            )
        if matching:
            found[meaning] = matching[0]
    if "word" not in found:
        raise SuiteError(
            f"{name} has no column 'word'; its columns are {', '.join(header)}. Name it: --columns word=COLUMN"
        )
    return found


def _group_rows(
    name: str, rows: Sequence[tuple[int, Cells]], columns: Mapping[str, str]
) -> dict[str, list[tuple[str, list[int]]]]:
    """Return the words of each item in their order, each with the numbers of its rows."""
    places: dict[str, dict[float, tuple[str, list[int]]]] = {}
    last_item = None
    for number, (line, row) in enumerate(rows):
        word = _to_text(row.get(columns["word"]))
        if not word:
            is_written = row.get(columns["word"]) is None or isinstance(row.get(columns["word"]), str)
            # In a data frame, a missing word is one that pandas did not take for a word.
            hint = "" if is_written else ". pandas reads null and NA as words with keep_default_na=False"
            raise SuiteError(f"{name}, line {line}: the word is empty{hint}")
        item = _to_text(row.get(columns["item"])) if "item" in columns else "1"
        if not item:
            raise SuiteError(f"{name}, line {line}: the item is empty")
        own = places.setdefault(item, {})
        if "position" not in columns:
            if own and item != last_item:
                raise SuiteError(
                    f"{name}, line {line}: item {item!r} goes on after another, so that the order of its words is not "
                    "known: add a column with the position of each word in its item"
                )
            position = float(len(own))
        else:
            position = _parse_position(row.get(columns["position"]), f"{name}, line {line}")
        known = own.setdefault(position, (word, []))
        if known[0] != word:
            raise SuiteError(
                f"{name}, line {line}: item {item!r} has {known[0]!r} and {word!r} at the same position, {position:g}"
            )
        known[1].append(number)
        last_item = item
    return {item: [own[position] for position in sorted(own)] for item, own in places.items()}


def _to_text(cell: object) -> str:
    """Return a cell as text; empty for a missing one, which a data frame has as NaN or NA."""
    is_missing = cell is None or type(cell).__name__ in ("NAType", "NaTType")
    return "" if is_missing or (isinstance(cell, float) and math.isnan(cell)) else str(cell).strip()


def _parse_position(cell: object, where: str) -> float:
    position = parse_number(cell)
    if position is None or position != position:
        raise SuiteError(f"{where}: the position is {shorten(str(cell))!r}; expected a number")
    return position


def _read_rows(path: Path) -> tuple[list[str], Iterator[tuple[int, Cells]]]:
    """Return the header and the numbered rows of a file."""
    name = drop_gzip_suffix(path.name)
    # Text with separators is read here, since a word may be a quotation mark, and its cells are given back unchanged.
    if is_table_file(name) and not name.lower().endswith((".csv", ".tsv", ".tab")):
        header, rows = read_rows(path)
        return header, iter(rows)
    text, encoding = decode_text(read_unpacked(path), str(path))
    if encoding:
        _log.info("%s: read as %s", path, encoding)
    return read_separated(text, str(path))


def read_separated(text: str, where: str) -> tuple[list[str], Iterator[tuple[int, Cells]]]:
    """Return the header and the rows of a delimited text, whose header says what separates its columns.

    Args:
        text: The content.
        where: The name of the file, for messages.
    """
    first = text.partition("\n")[0]
    delimiter = next((sign for sign in ("\t", ";", ",") if sign in first), "\t")
    # Quotation marks are words here: in a file with tabs they quote nothing, unless the header itself is quoted.
    is_quoted = delimiter != "\t" or first.startswith('"')
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        header = next(reader, [])
    except csv.Error as error:
        raise SuiteError(f"{where}, line 1: {error}") from error
    return header, _iterate_rows(reader, header, where)


def _iterate_rows(reader: Any, header: list[str], where: str) -> Iterator[tuple[int, Cells]]:
    try:
        for cells in reader:
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise SuiteError(f"{where}, line {reader.line_num}: {len(cells)} columns; the header has {len(header)}")
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise SuiteError(f"{where}, line {reader.line_num}: {error}") from error


def read_any_rows(path: Path) -> tuple[list[str], list[tuple[int, Cells]]]:
    """Return the header and the rows of a table of tokens or words, perhaps compressed by gzip."""
    header, rows = _read_rows(path)
    return header, list(rows)
