"""Tables of sentences: a user's table, whatever it was saved as, read as a suite.

Four layouts are recognised by their columns (``column_names`` has the names that count):

- sentences: ``text`` (or ``sentence``), with ``label`` and/or ``rating``;
- pairs: ``good`` and ``bad`` (or ``sentence_good`` and ``sentence_bad``), perhaps with ``rating_good`` and
  ``rating_bad``, ``context_good`` and ``context_bad``, and further bad sentences (``bad_2``, …);
- two sentences and which of them is better: ``a``, ``b`` and ``better``, which the user names;
- our own JSONL format: ``id, text, label, rating, regions, tags, better_than``.

``id`` is optional (without it, rows are numbered); every further column becomes a tag. In CSV and TSV, ``better_than``
holds ids separated by semicolons. Two layouts need no header: two columns of sentences, separated by a tab, are read as
pairs, the better one first; and a column of labels in words beside one of sentences (``True⇥…``, ``False⇥…``), in which
a true line followed by false ones is an item, and its contrasts.

The remarks say in one line what was taken for what.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from acceptability.errors import SuiteError, shorten
from acceptability.suites.column_names import (
    FIRST,
    ColumnMatch,
    LabelColumn,
    match_columns,
    normalise_name,
    read_choice_words,
    read_label_column,
    read_label_key,
)
from acceptability.suites.pairing import describe_pairing, pair_within_items
from acceptability.suites.table_files import (
    CellValue,
    ParsedTable,
    TableOptions,
    TableRow,
    parse_table_file,
)
from acceptability.text.containers import drop_gzip_suffix, read_unpacked
from acceptability.text.dialect import find_decimal_mark
from acceptability.text.io import parse_number
from acceptability.types import SINGLE_ROWS, Contrast, Sentence, Span, Suite, Tags, make_contrast

# The tags that hold items by convention. "set" is unique within a suite; numbers of items may repeat.
_UNIT_TAGS = ("set", "item")
_ITEM_NAMES = ("item", "item_no", "item_nr", "item_number")

# The only key of a first line that declares something about the whole suite.
_DECLARATION = "suite"


def read_table(path: Path, options: TableOptions | None = None, **named: Any) -> Suite:
    """Return the suite in a file; its sampling unit is the one that the file declares, or else that of `infer_unit`.

    Args:
        path: The file.
        options: What the user says about it.
        named: The same by name, such as ``columns={"text": "Sentence"}`` and ``labels={"yes": 1, "no": 0}``.
    """
    options = options or TableOptions(**named)
    return parse_table(drop_gzip_suffix(path.name), read_unpacked(path), str(path), options)


def parse_table(name: str, content: bytes, where: str, options: TableOptions) -> Suite:
    """Return the suite in the content of a file, whose notes say how it was interpreted.

    Args:
        name: The name of the file, whose ending says what format it has.
        content: What is in it.
        where: The file, for errors.
        options: What the user says about it.
    """
    table = parse_table_file(name, content, where, options)
    declared = _pop_declaration(table) if name.lower().endswith(".jsonl") else None
    if declared:
        table = replace(table, header=list(dict.fromkeys(name for _, row in table.rows for name in row)))
    suite = build_suite(Path(name).stem, table, options)
    if declared:
        suite = replace(suite, unit=declared.unit, derived_tags=declared.derived_tags)
    return suite


@dataclass(frozen=True)
class _Declaration:
    """What the first line of a JSONL file declares about the whole suite."""

    unit: str = ""
    derived_tags: tuple[str, ...] = ()


def _pop_declaration(table: ParsedTable) -> _Declaration | None:
    """Remove the first row if it declares something about the whole suite, and return what it declares."""
    rows = table.rows
    if not rows or list(rows[0][1]) != [_DECLARATION]:
        return None
    _, first = rows.pop(0)
    match first[_DECLARATION]:
        case {"unit": str(unit), **others} if (
            isinstance(derived := others.pop("derived_tags", []), list) and not others
        ):
            return _Declaration(unit, tuple(map(str, derived)))
    raise SuiteError(
        f"{table.where}, line 1: {first[_DECLARATION]!r}; expected "
        '{"suite": {"unit": "TAG"}}, if wanted with "derived_tags": ["TAG"]'
    )


def infer_unit(sentences: Sequence[Sentence], contrasts: Sequence[Contrast]) -> str:
    """Return the sampling unit of a suite that declares none: ``set``, or else ``item``, if all rows have that tag.

    Spreadsheets write ``Item`` or ``Item no.``, which is the same, if no other tag is.

    >>> infer_unit([Sentence("a", "Cats sleep.", tags={"item": "1"})], [])
    'item'
    >>> infer_unit([Sentence("a", "Cats sleep.", tags={"Item": "1"})], [])
    'Item'
    """
    rows: list[Sentence | Contrast] = [*sentences, *contrasts]
    if unit := next((tag for tag in _UNIT_TAGS if all(tag in row.tags for row in rows)), ""):
        return unit
    for names in (("set",), _ITEM_NAMES):
        alike = [name for name in rows[0].tags if normalise_name(name) in names] if rows else []
        if len(alike) == 1 and all(alike[0] in row.tags for row in rows):
            return alike[0]
    return ""


def write_jsonl(suite: Suite, path: Path) -> None:
    """Write a suite in our own JSONL format, one sentence per line.

    What a reader could not infer, the sampling unit and which tags are derived, stands in a first line of its own:
    ``{"suite": {"unit": "type_pair", "derived_tags": ["type_pair"]}}``.
    """
    contrasts: dict[str, list[Contrast]] = {}
    for contrast in suite.contrasts:
        contrasts.setdefault(contrast.better, []).append(contrast)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        if suite.derived_tags or suite.unit != infer_unit(suite.sentences, suite.contrasts):
            declared = {"unit": suite.unit or SINGLE_ROWS, "derived_tags": suite.derived_tags}
            out.write(json.dumps({_DECLARATION: declared}, ensure_ascii=False) + "\n")
        for sentence in suite.sentences:
            row: dict[str, object] = {
                "id": sentence.id,
                "text": sentence.text,
                "label": sentence.label,
                "rating": sentence.rating,
                "regions": dict(sentence.regions),
                "tags": dict(sentence.tags),
                "better_than": [contrast.worse for contrast in contrasts.get(sentence.id, [])],
            }
            own_tags = [_find_own_tags(suite, contrast) for contrast in contrasts.get(sentence.id, [])]
            if any(own_tags):
                row["contrast_tags"] = own_tags
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def _find_own_tags(suite: Suite, contrast: Contrast) -> dict[str, str]:
    """Return the tags of a contrast that do not follow from those of its sentences."""
    shared = make_contrast(suite.by_id[contrast.better], suite.by_id[contrast.worse]).tags
    return {name: value for name, value in contrast.tags.items() if shared.get(name) != value}


def build_suite(name: str, table: ParsedTable, options: TableOptions) -> Suite:
    """Return the suite in a table; its notes say how it was interpreted.

    Args:
        name: The name of the suite.
        table: The rows.
        options: What the user says about it.
    """
    match = match_columns(table.header, options.columns, table.where, table.cells)
    reader = _make_reader(table, match, options)
    builder = _SuiteBuilder(name, table.where, table.row_word)
    for number, (line, row) in enumerate(table.rows, start=1):
        try:
            reader.add_row(builder, row, number, line)
        except SuiteError as error:
            # Errors about single cells do not know their line; those of the builder do.
            if str(error).startswith(table.where):
                raise
            raise SuiteError(f"{builder.name_row(line)}: {error}") from error
        except RecursionError as error:
            raise SuiteError(f"{builder.name_row(line)}: the brackets are nested too deeply") from error
    built = builder.build()
    suite = replace(
        built, notes=(*table.remarks, *reader.describe(), *_note_missing_items(built), *_note_odd_texts(built, reader))
    )
    if table.has_items:
        suite = pair_within_items(suite, "item")
    if not options.pair_by:
        return suite
    paired = pair_within_items(suite, options.pair_by)
    return replace(paired, notes=(*suite.notes, describe_pairing(paired, options.pair_by)))


def _note_missing_items(suite: Suite) -> list[str]:
    """Return a remark if some rows have an item and others none, so that items are not the sampling unit."""
    if suite.unit:
        return []
    total = len(suite.sentences)
    counts = Counter(
        tag for sentence in suite.sentences for tag in sentence.tags if normalise_name(tag) in ("set", *_ITEM_NAMES)
    )
    return [
        f"{tag!r} is empty in {total - count} of {total} rows and not filled in, so that it is no sampling unit"
        for tag, count in counts.items()
        if count < total
    ]


# French puts a narrow no-break space before some marks, and Chinese a wide one between words.
_ODD_SPACES = re.compile(r"^\s|\s$|\s\s|[\t\n\r\xa0\u200b\ufeff]")
_NUMBERED = re.compile(r"\s*(?:\(\w{1,4}\)|\d{1,4}[a-z]?[.)])\s")


def _note_odd_texts(suite: Suite, reader: _RowReader) -> list[str]:
    """Return remarks on what people overlook in the cells of a table, and models read."""
    if not reader.is_typed:
        return []
    remarks = []
    if odd := [sentence.id for sentence in suite.sentences if _ODD_SPACES.search(sentence.text)]:
        named = ", ".join(odd[:5]) + ", …" * (len(odd) > 5)
        remarks.append(
            f"{len(odd)} of {len(suite.sentences)} sentences have spaces at an end, two together, no-break ones or "
            f"line breaks, which models read and score as they are ({named}): if they are no part of them, remove them"
        )
    if all(_NUMBERED.match(sentence.text) for sentence in suite.sentences):
        first = suite.sentences[0].text
        remarks.append(f"all sentences begin with a number, which is scored with them: {shorten(first)!r}")
    return remarks


@dataclass
class _SuiteBuilder:
    """A suite under construction, with the line of each sentence for error messages."""

    name: str
    where: str
    row_word: str = "line"
    sentences: dict[str, Sentence] = field(default_factory=dict)
    line_of: dict[str, int] = field(default_factory=dict)
    better_than: list[tuple[str, str, int, Tags]] = field(default_factory=list)

    def name_row(self, line: int) -> str:
        """Return the place of a row, for errors."""
        return f"{self.where}, {self.row_word} {line}"

    def add(self, sentence: Sentence, line: int) -> Sentence:
        if sentence.id in self.sentences:
            raise SuiteError(
                f"{self.name_row(line)}: the id {sentence.id!r} is already used in {self.row_word} "
                f"{self.line_of[sentence.id]}. Ids must be unique. If they are none: --columns id=-"
            )
        self.sentences[sentence.id] = sentence
        self.line_of[sentence.id] = line
        return sentence

    def build(self) -> Suite:
        if not self.sentences:
            raise SuiteError(f"{self.where} has no rows")
        # Contrasts are built last, since a sentence may be better than one in a later line.
        contrasts = tuple(self._build_contrast(*row) for row in self.better_than)
        sentences = tuple(self.sentences.values())
        return Suite(self.name, sentences, contrasts, unit=infer_unit(sentences, contrasts))

    def _build_contrast(self, better: str, worse: str, line: int, own_tags: Tags) -> Contrast:
        if worse not in self.sentences:
            raise SuiteError(
                f"{self.name_row(line)}: {better!r} is better than {worse!r}, but the file has no sentence of that id"
            )
        contrast = make_contrast(self.sentences[better], self.sentences[worse])
        return replace(contrast, tags={**contrast.tags, **own_tags}) if own_tags else contrast


@dataclass(frozen=True)
class _RowReader:
    """Reads the rows of a table whose columns are known.

    Args:
        match: The columns.
        labels: What the column of labels means, if there is one.
        choices: What the words in the column ``better`` mean.
        decimals: The decimal mark of each column of ratings.
        remarks: What else there is to say about the columns.
        is_typed: Whether a cell may hold a judgement mark or a sign for nothing, which are no part of a sentence.
    """

    match: ColumnMatch
    labels: LabelColumn | None = None
    choices: Mapping[str, str] = field(default_factory=dict)
    decimals: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    is_typed: bool = False

    def add_row(self, builder: _SuiteBuilder, row: TableRow, row_number: int, line: int) -> None:
        """Add the sentence or the pair in a row; a row without an id is identified by its number."""
        used = self._used_columns
        tags = {name: _to_string(cell) for name, cell in row.items() if name not in used and not _is_empty(cell)}
        row_id = _to_string(self._take(row, "id")) if "id" in self.match.column_of else str(row_number)
        if context := self._take(row, "context"):
            tags["context"] = _to_string(context)
        if self.match.layout == "sentences":
            self._add_sentence(builder, row, line, row_id, tags)
        else:
            # A pair is an item of its own, unless the table has a column "item" that groups several.
            self._add_pair(builder, row, line, row_id, {"item": row_id} | tags)

    @cached_property
    def _used_columns(self) -> frozenset[str]:
        return frozenset({*self.match.column_of.values(), *self.match.further_bad})

    @cached_property
    def _has_own_columns(self) -> bool:
        # Most tables have none of them, and a million rows need not be asked for each.
        return not {"regions", "tags", "better_than", "contrast_tags"}.isdisjoint(self.match.column_of)

    def _read_text(self, cell: CellValue) -> str:
        text = _parse_text(cell)
        if self.is_typed:
            _check_typed_text(text)
        return text

    def _take(self, row: TableRow, meaning: str) -> CellValue:
        return row.get(self.match.column_of.get(meaning, ""))

    def _add_sentence(
        self, builder: _SuiteBuilder, row: TableRow, line: int, row_id: str, tags: dict[str, str]
    ) -> None:
        if self._has_own_columns:
            self._add_own_sentence(builder, row, line, row_id, tags)
            return
        sentence = Sentence(
            row_id,
            self._read_text(self._take(row, "text")),
            label=self.labels.read(self._take(row, "label")) if self.labels else None,
            rating=self._read_rating(row, "rating"),
            tags=tags,
        )
        builder.add(sentence, line)

    def _add_own_sentence(
        self, builder: _SuiteBuilder, row: TableRow, line: int, row_id: str, tags: dict[str, str]
    ) -> None:
        """Add a sentence with the columns of our own format."""
        tags_cell = self._take(row, "tags")
        sentence = Sentence(
            row_id,
            self._read_text(self._take(row, "text")),
            label=self.labels.read(self._take(row, "label")) if self.labels else None,
            rating=self._read_rating(row, "rating"),
            regions=_parse_regions(self._take(row, "regions")),
            tags=tags | (_parse_tags(tags_cell) if not _is_empty(tags_cell) else {}),
        )
        builder.add(sentence, line)
        worse_ids = _parse_ids(self._take(row, "better_than"))
        own_tags = _parse_contrast_tags(self._take(row, "contrast_tags"), len(worse_ids))
        builder.better_than += [(sentence.id, worse, line, own) for worse, own in zip(worse_ids, own_tags, strict=True)]

    def _add_pair(self, builder: _SuiteBuilder, row: TableRow, line: int, row_id: str, tags: dict[str, str]) -> None:
        """Add the better sentence of a row, the worse ones, and their contrasts."""
        members = list(self._iter_members(row, tags))
        sentences = [
            builder.add(Sentence(f"{row_id}/{name}", text, label=int(name == "good"), rating=rating, tags=own), line)
            for name, text, rating, own in members
        ]
        builder.better_than += [(sentences[0].id, worse.id, line, {}) for worse in sentences[1:]]

    def _iter_members(
        self, row: TableRow, tags: dict[str, str]
    ) -> Iterator[tuple[str, str, float | None, dict[str, str]]]:
        """Yield the name, the text, the rating and the tags of each sentence of a pair, the better one first."""
        columns = self._order_columns(row)
        for name, cell in zip(("good", "bad"), columns, strict=True):
            context = self._take(row, f"context_{name}")
            own = tags if _is_empty(context) else tags | {"context": _to_string(context)}
            texts = cell if isinstance(cell, list) and name == "bad" else [cell]
            for number, text in enumerate(texts, start=1):
                member = name if number == 1 else f"{name}_{number}"
                yield member, self._read_text(text), self._read_rating(row, f"rating_{name}"), own
        for number, column in enumerate(self.match.further_bad, start=2):
            if not _is_empty(row.get(column)):
                yield f"bad_{number}", self._read_text(row.get(column)), None, own

    def _order_columns(self, row: TableRow) -> tuple[CellValue, CellValue]:
        """Return the better and the worse sentence of a row."""
        if self.match.layout == "pairs":
            return self._take(row, "good"), self._take(row, "bad")
        first, second = self._take(row, "a"), self._take(row, "b")
        is_first = self.choices[read_label_key(self._take(row, "better"))] == FIRST
        return (first, second) if is_first else (second, first)

    def _read_rating(self, row: TableRow, meaning: str) -> float | None:
        return _parse_rating(self._take(row, meaning), self.decimals.get(meaning, "."))

    def describe(self) -> list[str]:
        """Return what the columns and their words were taken for, if their names do not say it."""
        remarks = list(self.remarks)
        columns = self.match.column_of
        if unusual := [f"{meaning} is {column!r}" for meaning, column in columns.items() if column != meaning]:
            remarks.append(", ".join(unusual))
        if self.match.further_bad:
            remarks.append(f"further bad sentences are {', '.join(map(repr, self.match.further_bad))}")
        if self.labels and self.labels.remark:
            remarks.append(self.labels.remark)
        if any(mark == "," for mark in self.decimals.values()):
            remarks.append("decimal commas")
        return remarks


_RATING_MEANINGS = ("rating", "rating_good", "rating_bad")


def _make_reader(table: ParsedTable, match: ColumnMatch, options: TableOptions) -> _RowReader:
    """Return what reads the rows, after looking at all cells of the columns of labels and ratings."""
    columns = match.column_of
    label = columns.get("label")
    labels = read_label_column(label, table.cells(label), options.labels, table.where) if label else None
    if options.labels and not labels and match.layout != "choices":
        raise SuiteError(f"{table.where}: --labels says what labels mean, and the table has no column of labels")
    choices = (
        read_choice_words(match, table.cells(columns["better"]), options.labels, table.where)
        if match.layout == "choices"
        else {}
    )
    decimals = {
        meaning: find_decimal_mark(
            table.cells(column), f"{table.where}: the column {column!r}", table.separator, options
        )
        for meaning, column in columns.items()
        if meaning in _RATING_MEANINGS
    }
    if not _has_doubtful_id(table, match):
        return _RowReader(match, labels, choices, decimals, is_typed=table.is_typed)
    remark = f"{columns['id']!r} is a tag and no id, since it repeats or is empty in some rows"
    without_id = {meaning: column for meaning, column in columns.items() if meaning != "id"}
    return _RowReader(replace(match, column_of=without_id), labels, choices, decimals, (remark,), table.is_typed)


def _has_doubtful_id(table: ParsedTable, match: ColumnMatch) -> bool:
    """Tell whether the column of ids is only named like one, and has repeated or empty cells."""
    column = match.column_of.get("id", "id")
    # Under the package's own name, an id that repeats is an error.
    if column == "id" or normalise_name(column) != "id":
        return False
    cells = [_to_string(cell) for cell in table.cells(column)]
    return len(set(cells)) < len(cells) or "" in cells


def _is_empty(cell: CellValue) -> bool:
    return cell is None or (isinstance(cell, str) and cell == "")


def _to_string(cell: CellValue) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)


def _parse_text(cell: CellValue) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    raise SuiteError(f"the text is {cell!r}; expected a sentence")


# What programs write for a missing value or an error; spreadsheets make #NAME? of a sentence that begins with a dash.
_NOTHING = re.compile(r"NA|N/A|NaN|nan|NULL|None|#N/A|#(?:NAME|REF|VALUE|NULL|DIV/0)[?!]")
# What linguists put before a sentence. A dash or a hash may be a part of it.
_JUDGEMENT_MARK = re.compile(r"(?:[*✓✔]|\?{1,2})[*?]*\s?(?=\w)|%{1,2}(?=[^\W\d])")
# A star before a word or a bracket, as in [has/*have] and *(at), or after the sentence; 5*3, d*mn and *emphasis* are no
# marks.
_INNER_MARK = re.compile(r"(?<![\w*])\*(?=[\w(])|(?<=[\w.!?…)\]\"”’])\s?\*$")
_EMPHASIS = re.compile(r"(?<![\w*])\*\w[^*]*\*(?![\w*(])")


def _check_typed_text(text: str) -> None:
    """Raise an error for a cell that stands for nothing, and for one that begins with a judgement mark."""
    # Nearly all sentences, of which there may be a million.
    if len(text) > 6 and text[0].isalpha() and "*" not in text:
        return
    if _NOTHING.fullmatch(text):
        raise SuiteError(f"the sentence is {text!r}, which stands for none: write it, or remove the row")
    if mark := _JUDGEMENT_MARK.match(text):
        raise SuiteError(
            f"{shorten(text)!r} begins with the mark {mark[0].strip()!r}, which would be scored as a part of the "
            "sentence: move marks to a column 'judgement', or save the sentences as a .txt file of examples. If it is "
            "no mark, save the table as .jsonl"
        )
    if "*" in text and _INNER_MARK.search(_EMPHASIS.sub("", text)):
        raise SuiteError(
            f"{shorten(text)!r} has the mark '*', which would be scored as a part of the "
            "sentence: move marks to a column 'judgement', or save the sentences as a .txt file of examples, where "
            "[has/*have] stands for two. If it is no mark, save the table as .jsonl"
        )


def _parse_rating(cell: CellValue, decimal: str) -> float | None:
    if _is_empty(cell):
        return None
    rating = parse_number(cell.replace(",", ".") if isinstance(cell, str) and decimal == "," else cell)
    if rating is None:
        raise SuiteError(f"rating is {cell!r}; expected a number. Leave it empty if there is no rating.")
    return rating


def _parse_regions(cell: CellValue) -> dict[str, Span]:
    if _is_empty(cell):
        return {}
    # Anything can be in this cell, so the errors of unpacking it are translated rather than foreseen one by one.
    try:
        regions: Any = json.loads(cell) if isinstance(cell, str) else cell
        return {str(name): (int(start), int(end)) for name, (start, end) in regions.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise SuiteError(f'regions are {cell!r}; expected {{"name": [start, end]}}') from None


def _parse_tags(cell: CellValue) -> dict[str, str]:
    # In CSV a column that happens to be called "tags" is just another tag.
    if isinstance(cell, str):
        return {"tags": cell}
    if not isinstance(cell, dict):
        raise SuiteError(f'tags are {cell!r}; expected {{"name": "value"}}')
    return {str(name): _to_string(value) for name, value in cell.items()}


def _parse_contrast_tags(cell: CellValue, count: int) -> list[dict[str, str]]:
    """Return the tags of a contrast for each id in ``better_than``."""
    if _is_empty(cell):
        return [{} for _ in range(count)]
    if not isinstance(cell, list) or len(cell) != count:
        raise SuiteError(f"contrast_tags are {cell!r}; expected a list of {count} objects, one for each in better_than")
    return [_parse_tags(tags) for tags in cell]


def _parse_ids(cell: CellValue) -> list[str]:
    if _is_empty(cell):
        return []
    if isinstance(cell, str):
        return [item.strip() for item in cell.split(";") if item.strip()]
    if isinstance(cell, list) and all(isinstance(item, str) for item in cell):
        return cell
    raise SuiteError(f"better_than is {cell!r}; expected a list of ids")
