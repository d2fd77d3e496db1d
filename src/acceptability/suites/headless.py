"""Tables without a header that are recognised by their cells: two columns, of sentences or of labels and sentences."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from acceptability.suites.column_names import LabelValue, is_usual_name, read_label_column, read_label_key
from acceptability.text.dialect import Cell, Grid

# A header may contain spaces too ("Good Sentence"), but has one of these words, and no sentence-final punctuation
# after it.
_HEADER_WORD = re.compile(
    r"\b(?:good|bad|sentence|acceptable|unacceptable|grammatical|ungrammatical)\b(?!.*[.?!])", re.IGNORECASE
)

# Words for labels that occur together. A word of another kind above them is the name of their column.
_WORD_FAMILIES = tuple(
    map(frozenset, (
        ("1", "0"), ("true", "false"), ("t", "f"), ("yes", "no"), ("y", "n"), ("good", "bad"), ("ok", "*", "?", "??"),
        ("grammatical", "ungrammatical"), ("acceptable", "unacceptable"), ("good", "*"), ("g", "*"),
    ))
)  # fmt: skip


@dataclass(frozen=True)
class HeadlessRows:
    """The rows of a table without a header, under names that say what its columns are.

    Args:
        header: The names.
        rows: Each row with the number of its line.
        remark: What the table was taken for.
        has_items: Whether the order of the rows told items apart.
    """

    header: list[str]
    rows: list[tuple[int, Mapping[str, Cell]]]
    remark: str
    has_items: bool = False


def find_headless_rows(grid: Grid, labels: Mapping[str, LabelValue], where: str) -> HeadlessRows | None:
    """Return the rows of a table without a header whose columns are recognised by their cells; None for any other.

    Args:
        grid: The cells.
        labels: The labels of words that the user gave.
        where: The table, for errors.
    """
    columns = list(zip(*(cells for _, cells in grid.rows), strict=False))
    if len(columns) != 2 or any(len(cells) != 2 for _, cells in grid.rows):
        return None
    if grid.separator == "\t" and all(map(_may_be_data, _first(grid))) and all(" " in cell for cell in _first(grid)):
        rows: list[tuple[int, Mapping[str, Cell]]] = [
            (number, {"good": good, "bad": bad}) for number, (good, bad) in grid.rows
        ]
        remark = "two columns of sentences and no header: read as pairs, the better one first"
        return HeadlessRows(["good", "bad"], rows, remark)
    for label, text in ((0, 1), (1, 0)):
        words = list(map(read_label_key, columns[label]))
        known = any(family.issuperset(words) for family in (*_WORD_FAMILIES, frozenset(labels)))
        # "Grammatical" may also be the name of a column of 1 and 0, which then has no such word again.
        is_data = not is_usual_name(words[0]) or words[0] in words[1:]
        if known and is_data and _looks_like_sentence(_first(grid)[text]):
            return _name_labelled(grid, label, labels, where)
    return None


def _first(grid: Grid) -> list[str]:
    return [str(cell).strip() for cell in grid.rows[0][1]]


def _name_labelled(grid: Grid, label: int, labels: Mapping[str, LabelValue], where: str) -> HeadlessRows:
    """Return a table of labels and sentences, with the items that its order tells of."""
    cells = [row[label] for _, row in grid.rows]
    column = read_label_column("label", cells, labels, where)
    named = [(number, {"label": row[label], "text": row[1 - label]}) for number, row in grid.rows]
    remark = "no header: a column of labels and one of sentences"
    items = _number_items([column.read(cell) for cell in cells])
    # Numbers are how lists of labelled sentences are published; words, with the sentences of an item together, pairs.
    if not items or {"0", "1"} & set(map(read_label_key, cells)):
        return HeadlessRows(["label", "text"], list(named), remark)
    with_items: list[tuple[int, Mapping[str, Cell]]] = [
        (number, {**row, "item": str(item)}) for (number, row), item in zip(named, items, strict=True)
    ]
    remark += ", each true line contrasted with the false ones that follow it"
    return HeadlessRows(["label", "text", "item"], with_items, remark, has_items=True)


def _number_items(labels: Sequence[int | None]) -> list[int]:
    """Return the number of the item of each label, if every 1 is followed by one 0 or several; empty otherwise.

    >>> _number_items([1, 0, 1, 0, 0]), _number_items([1, 1, 0])
    ([1, 1, 2, 2, 2], [])
    """
    items: list[int] = []
    before: int | None = 0
    for label in labels:
        if label is None or (label == 1 and before == 1) or (not items and label == 0):
            return []
        items.append((items[-1] if items else 0) + label)
        before = label
    return items if before == 0 else []


def is_labelled_list(lines: Sequence[str]) -> bool:
    r"""Tell whether the lines of a text are a table with tabs and a header, or labels in words beside sentences.

    >>> is_labelled_list(["True\tCats sleep.", "False\tCats sleeps."]), is_labelled_list(["*\tCats sleeps."])
    (True, False)
    """
    cells = [line.split("\t") for line in lines]
    if not cells or len({len(row) for row in cells}) != 1 or len(cells[0]) < 2:
        return False
    if any(map(is_usual_name, cells[0])):
        return True
    # Marks before a sentence are linguists' notation, which has a reader of its own.
    families = [family for family in _WORD_FAMILIES if "*" not in family]
    columns = [set(map(read_label_key, column)) for column in zip(*cells, strict=True)]
    return len(columns) == 2 and any(column <= family for family in families for column in columns)


def _looks_like_sentence(text: str) -> bool:
    """Tell whether a text is a sentence rather than the name of a column."""
    has_end = text.endswith((".", "?", "!", "。", "？", "！"))
    return (" " in text or has_end or not text.isascii()) and not is_usual_name(text)


def _may_be_data(text: str) -> bool:
    return not (is_usual_name(text) or _HEADER_WORD.search(text))
