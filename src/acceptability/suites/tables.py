"""Tables of sentences: a user's CSV, TSV, JSONL or Parquet file, or a data set of the Hugging Face Hub.

Three layouts are recognised by their columns:

- sentences: ``text`` (or ``sentence``), with ``label`` and/or ``rating``;
- pairs: ``good`` and ``bad`` (or ``sentence_good`` and ``sentence_bad``), perhaps with ``rating_good``
  and ``rating_bad``;
- our own JSONL format: ``id, text, label, rating, regions, tags, better_than``.

``id`` is optional (without it, rows are numbered); every further column becomes a tag.
Columns with other names are given by the user: ``{"text": "Sentence"}``. In CSV and
TSV, ``better_than`` holds ids separated by semicolons. A TSV file of two columns without a
header, whose first row contains two sentences, is read as pairs, the better one first.
The log says how columns were interpreted.

Parquet files need pyarrow. ``hf:owner/name[:config][@revision]`` is read with the library
``datasets``, all splits together with the tag ``split``; ``hf:FOLDER`` is a data set on disk.
"""

from __future__ import annotations

import io
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from acceptability.errors import MissingExtra, SuiteError, first_error_line, suggest_name
from acceptability.text.io import parse_number, read_content, read_delimited, read_lines
from acceptability.types import SINGLE_ROWS, Contrast, Sentence, Span, Suite, Tags, make_contrast

TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".parquet")
TEXT_COLUMNS = ("text", "sentence")
"""The usual names of the column of sentences."""

# The column names that are recognised for each meaning; the first one present in the header counts.
_ALIASES = {
    "id": ("id", "sentence_id"),
    "text": TEXT_COLUMNS,
    "good": ("good", "sentence_good", "good_sentence", "Good Sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence", "Bad Sentence"),
    "rating_good": ("rating_good",),
    "rating_bad": ("rating_bad",),
    "label": ("label",),
    "rating": ("rating",),
    "regions": ("regions",),
    "tags": ("tags",),
    "better_than": ("better_than",),
    "contrast_tags": ("contrast_tags",),
}

# The tags that hold items by convention. "set" is unique within a suite; numbers of items may repeat.
_UNIT_TAGS = ("set", "item")

# The only key of a first line that declares something about the whole suite.
_DECLARATION = "suite"

_PAIR_COLUMNS = ("good", "bad", "rating_good", "rating_bad")


# In a file without a header the first row is data. A header may contain spaces too ("Good Sentence"), but has one of
# these words, and no sentence-final punctuation after it.
_HEADER_WORD = re.compile(
    r"\b(?:good|bad|sentence|acceptable|unacceptable|grammatical|ungrammatical)\b(?!.*[.?!])", re.IGNORECASE
)

_HEADERLESS = "two columns of sentences and no header: read as pairs, the better one first"

_log = logging.getLogger(__name__)


CellValue = object

TableRow = Mapping[str, CellValue]


def is_table_file(name: str) -> bool:
    """Return whether a name is that of a table of sentences, by its ending."""
    return name.lower().endswith(TABLE_SUFFIXES)


def read_table(path: Path, *, columns: Mapping[str, str]) -> Suite:
    """Return the suite in a file; its sampling unit is the one that the file declares, or else that of `infer_unit`.

    Args:
        columns: The file's column names by their meaning, such as ``{"text": "Sentence"}``.
    """
    return parse_table(path, read_content(path), columns=columns)[0]


def parse_table(path: Path, content: bytes, *, columns: Mapping[str, str]) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite in the content of a file, and the remarks on how it was interpreted, which the log has too.

    Args:
        path: The file, whose ending says what format it has.
        columns: The file's column names by their meaning.
    """
    where, remarks = str(path), list[str]()
    pairs = None if columns or path.suffix.lower() != ".tsv" else _parse_headerless_pairs(content, where)
    if pairs:
        remarks.append(_HEADERLESS)
    header, numbered_rows = pairs or parse_rows(path, content)
    rows = list(numbered_rows)
    declared = _pop_declaration(rows, where) if path.suffix.lower() == ".jsonl" else None
    if declared:
        header = list(dict.fromkeys(name for _, row in rows for name in row))
    column_of = _match_columns(header, columns, where)
    remarks += _describe_columns(column_of)
    for remark in remarks:
        _log.info("%s: %s", where, remark)
    suite = _build_suite(path.stem, where, rows, column_of)
    if declared:
        suite = replace(suite, unit=declared.unit, derived_tags=declared.derived_tags)
    return suite, tuple(remarks)


@dataclass(frozen=True)
class _Declaration:
    """What the first line of a JSONL file declares about the whole suite."""

    unit: str = ""
    derived_tags: tuple[str, ...] = ()


def _pop_declaration(rows: list[tuple[int, TableRow]], where: str) -> _Declaration | None:
    """Remove the first row if it declares something about the whole suite, and return what it declares."""
    if not rows or list(rows[0][1]) != [_DECLARATION]:
        return None
    _, first = rows.pop(0)
    match first[_DECLARATION]:
        case {"unit": str(unit), **others} if (
            isinstance(derived := others.pop("derived_tags", []), list) and not others
        ):
            return _Declaration(unit, tuple(map(str, derived)))
    raise SuiteError(
        f"{where}, line 1: {first[_DECLARATION]!r}; expected "
        '{"suite": {"unit": "TAG"}}, if wanted with "derived_tags": ["TAG"]'
    )


def infer_unit(sentences: Sequence[Sentence], contrasts: Sequence[Contrast]) -> str:
    """Return the sampling unit of a suite that declares none: ``set``, or else ``item``, if all rows have that tag.

    >>> infer_unit([Sentence("a", "Cats sleep.", tags={"item": "1"})], [])
    'item'
    """
    rows: list[Sentence | Contrast] = [*sentences, *contrasts]
    return next((tag for tag in _UNIT_TAGS if all(tag in row.tags for row in rows)), "")


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


def read_rows(path: Path) -> tuple[list[str], Iterable[tuple[int, TableRow]]]:
    """Return the column names and the numbered rows of a file."""
    return parse_rows(path, read_content(path))


def parse_rows(path: Path, content: bytes) -> tuple[list[str], Iterable[tuple[int, TableRow]]]:
    """Return the column names and the numbered rows in the content of a file, whose ending says what format it has."""
    if path.suffix.lower() == ".jsonl":
        rows = list(_read_json_rows(content, str(path)))
        return list(dict.fromkeys(name for _, row in rows for name in row)), rows
    if path.suffix.lower() == ".parquet":
        return read_parquet_rows(content, str(path))
    return read_delimited(content, str(path), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")


def _parse_headerless_pairs(content: bytes, where: str) -> tuple[list[str], Iterable[tuple[int, TableRow]]] | None:
    """Return the rows of a TSV file of pairs without a header, or None if it is not such a file."""
    rows = [(number, line.split("\t")) for number, line in read_lines(content, where)]
    first = rows[0][1] if rows else []
    is_sentences = len(first) == 2 and all(" " in cell.strip() and not _HEADER_WORD.search(cell) for cell in first)
    if not is_sentences or any(len(row) != 2 for _, row in rows):
        return None
    return ["good", "bad"], [(number, {"good": good, "bad": bad}) for number, (good, bad) in rows]


def _read_json_rows(content: bytes, where: str) -> Iterator[tuple[int, TableRow]]:
    for number, line in read_lines(content, where):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        # json raises RecursionError on deeply nested brackets.
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{where}, line {number}: not a line of JSON: {error}") from error
        if not isinstance(row, dict):
            raise SuiteError(f'{where}, line {number}: expected a JSON object, such as {{"text": …}}')
        yield number, row


def build_suite_from_rows(
    name: str, where: str, header: list[str], rows: Iterable[tuple[int, TableRow]], columns: Mapping[str, str]
) -> Suite:
    """Return the suite in a table.

    Args:
        name: The name of the suite.
        where: The file or data set, for error messages.
        header: The column names.
        rows: Pairs of a line number and a row.
        columns: The column names by their meaning, where they are not the usual ones.
    """
    column_of = _match_columns(header, columns, where)
    for remark in _describe_columns(column_of):
        _log.info("%s: %s", where, remark)
    return _build_suite(name, where, rows, column_of)


def _describe_columns(column_of: Mapping[str, str]) -> list[str]:
    """Return a remark on what the columns mean, if their names do not say it."""
    if all(column == meaning for meaning, column in column_of.items()):
        return []
    return [", ".join(f"{meaning} is {column!r}" for meaning, column in column_of.items())]


def _build_suite(name: str, where: str, rows: Iterable[tuple[int, TableRow]], column_of: Mapping[str, str]) -> Suite:
    builder = _SuiteBuilder(name, where)
    for number, (line, row) in enumerate(rows, start=1):
        try:
            _add_row(builder, row, column_of, number, line)
        except SuiteError as error:
            # Errors about single cells do not know their line; those of the builder do.
            if str(error).startswith(where):
                raise
            raise SuiteError(f"{where}, line {line}: {error}") from error
        except RecursionError as error:
            raise SuiteError(f"{where}, line {line}: the brackets are nested too deeply") from error
    return builder.build()


@dataclass
class _SuiteBuilder:
    """A suite under construction, with the line of each sentence for error messages."""

    name: str
    where: str
    sentences: dict[str, Sentence] = field(default_factory=dict)
    line_of: dict[str, int] = field(default_factory=dict)
    better_than: list[tuple[str, str, int, Tags]] = field(default_factory=list)

    def add(self, sentence: Sentence, line: int) -> Sentence:
        if sentence.id in self.sentences:
            raise SuiteError(
                f"{self.where}, line {line}: the id {sentence.id!r} is already used in line "
                f"{self.line_of[sentence.id]}. Ids must be unique."
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
                f"{self.where}, line {line}: {better!r} is better than {worse!r}, "
                "but the file has no sentence of that id"
            )
        contrast = make_contrast(self.sentences[better], self.sentences[worse])
        return replace(contrast, tags={**contrast.tags, **own_tags}) if own_tags else contrast


def _match_columns(header: list[str], named: Mapping[str, str], where: str) -> dict[str, str]:
    """Return the column of each meaning: the one that the user gave, or else one of the usual names."""
    if not header:
        raise SuiteError(f"{where} is empty; expected rows with a column 'text', or 'good' and 'bad' for pairs")
    for meaning, column in named.items():
        if meaning not in _ALIASES:
            raise SuiteError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(_ALIASES)}")
        if column not in header:
            raise SuiteError(
                f"{where} has no column {column!r}; it has {', '.join(header)}.{suggest_name(column, header)}"
            )
    guessed = {
        meaning: next((alias for alias in aliases if alias in header), "") for meaning, aliases in _ALIASES.items()
    }
    # Columns that the user names decide the layout, even if the file has the columns of another one as well.
    if {"good", "bad"} & named.keys():
        guessed["text"] = ""
    elif "text" in named:
        guessed["good"] = guessed["bad"] = ""
    column_of = {meaning: column for meaning, column in (guessed | dict(named)).items() if column}
    _check_layout(column_of, header, where)
    # A column without a meaning in the layout, such as "label" in a table of pairs, is kept as a tag.
    return {
        meaning: column for meaning, column in column_of.items() if ("text" in column_of) != (meaning in _PAIR_COLUMNS)
    } | {meaning: column for meaning, column in column_of.items() if meaning == "id"}


def _check_layout(column_of: Mapping[str, str], header: list[str], where: str) -> None:
    is_pairs = {"good", "bad"} <= column_of.keys()
    if "text" in column_of and is_pairs:
        raise SuiteError(
            f"{where} has sentences ({column_of['text']}) and pairs ({column_of['good']}, {column_of['bad']}). "
            "Choose one: --columns text=NAME or --columns good=NAME,bad=NAME"
        )
    if "text" not in column_of and not is_pairs:
        missing = (
            "column 'bad'" if "good" in column_of else "column 'good'" if "bad" in column_of else "column of sentences"
        )
        raise SuiteError(
            f"{where} has no {missing}; it has {', '.join(header)}. Name it 'text' (or 'good' "
            "and 'bad' for pairs), or give its name: --columns text=NAME, or --columns good=NAME,bad=NAME"
        )


def _add_row(builder: _SuiteBuilder, row: TableRow, column_of: Mapping[str, str], row_number: int, line: int) -> None:
    """Add the sentence or the pair in a row; a row without an id is identified by its number."""
    used = set(column_of.values())
    tags = {name: _to_string(cell) for name, cell in row.items() if name not in used and not _is_empty(cell)}
    row_id = _to_string(row.get(column_of["id"])) if "id" in column_of else str(row_number)
    if "text" not in column_of:
        # A pair is an item of its own, unless the table has a column "item" that groups several.
        tags = {"item": row_id} | tags
        good, bad = (
            Sentence(
                f"{row_id}/{member}",
                _parse_text(row.get(column_of[member])),
                label=int(member == "good"),
                rating=_parse_rating(row.get(column_of.get(f"rating_{member}", ""))),
                tags=tags,
            )
            for member in ("good", "bad")
        )
        builder.add(good, line)
        builder.add(bad, line)
        builder.better_than.append((good.id, bad.id, line, {}))
        return
    tags_cell = row.get(column_of["tags"]) if "tags" in column_of else None
    sentence = Sentence(
        row_id,
        _parse_text(row.get(column_of["text"])),
        label=_parse_label(row.get(column_of.get("label", ""))),
        rating=_parse_rating(row.get(column_of.get("rating", ""))),
        regions=_parse_regions(row.get(column_of.get("regions", ""))),
        tags=tags | (_parse_tags(tags_cell) if not _is_empty(tags_cell) else {}),
    )
    builder.add(sentence, line)
    worse_ids = _parse_ids(row.get(column_of.get("better_than", "")))
    own_tags = _parse_contrast_tags(row.get(column_of.get("contrast_tags", "")), len(worse_ids))
    builder.better_than += [(sentence.id, worse, line, own) for worse, own in zip(worse_ids, own_tags, strict=True)]


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


def _parse_label(cell: CellValue) -> int | None:
    if _is_empty(cell):
        return None
    # JSON and Parquet give numbers, of which True and 1.0 equal 1; CSV gives strings.
    if isinstance(cell, (int, float, str)) and cell in (0, 1, "0", "1"):
        return int(cell)
    raise SuiteError(f"label is {cell!r}; expected 1 (acceptable) or 0. Leave it empty if there is no label.")


def _parse_rating(cell: CellValue) -> float | None:
    if _is_empty(cell):
        return None
    rating = parse_number(cell)
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


# Parquet compresses so well that a file of a few kilobytes can declare billions of rows or contain one long text
# millions of times. Both limits are far above any suite and below what fills the memory.
_MAX_CELLS = 50_000_000

_MAX_BYTES = 1 << 30


NumberedRows = Iterable[tuple[int, Mapping[str, object]]]


def read_parquet_rows(content: bytes, where: str) -> tuple[list[str], NumberedRows]:
    """Return the column names and the numbered rows of a Parquet file."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise MissingExtra(where, "pyarrow", "'acceptability[data]'") from error
    try:
        # The number of cells is in the file's footer, and can be checked before any data are decompressed.
        metadata = parquet.ParquetFile(io.BytesIO(content)).metadata
        cells = metadata.num_rows * metadata.num_columns
        if cells > _MAX_CELLS:
            raise ValueError(f"it declares {cells:,} cells; at most {_MAX_CELLS:,} are read")
        # Read as dictionaries, repeated texts are held once, so that their total size can be checked before to_pylist
        # copies each of them. Nested columns, which have a dot in their path, cannot be read so.
        texts = [
            column.name for column in metadata.schema if column.physical_type == "BYTE_ARRAY" and "." not in column.path
        ]
        table = parquet.ParquetFile(io.BytesIO(content), read_dictionary=texts).read()
        _check_bytes(table)
        rows = table.to_pylist()
    except (ArrowException, OSError, ValueError, OverflowError) as error:
        raise SuiteError(f"{where} cannot be read as a Parquet file: {first_error_line(error)}") from error
    return list(table.column_names), enumerate((_normalise_row(row, "") for row in rows), start=1)


def _check_bytes(table: Any) -> None:
    """Raise an error for a table whose texts would fill the memory when they are copied out."""
    from pyarrow import compute, types

    size = 0
    for column in table.columns:
        for part in column.chunks if types.is_dictionary(column.type) else ():
            lengths = compute.take(compute.binary_length(part.dictionary), part.indices)
            size += compute.sum(lengths.cast("int64")).as_py() or 0
    if size > _MAX_BYTES:
        raise ValueError(f"its texts have {size:,} bytes; at most {_MAX_BYTES:,} are read")


def load_hub_rows(name: str) -> tuple[str, list[str], NumberedRows]:
    """Return a title (the last part of a data set's name), the column names and the numbered rows."""
    try:
        import datasets
    except ImportError as error:
        raise MissingExtra(f"hf:{name}", "the library datasets", "'acceptability[data]'") from error
    name_or_path, config, revision = _parse_dataset_name(name)
    if not name_or_path:
        raise SuiteError("hf: which data set? Write hf:owner/name, or hf:FOLDER")
    if Path(name_or_path).is_dir() and revision:
        raise SuiteError(f"hf:{name}: a folder on disk has no revision")
    try:
        # Folders written by save_to_disk have one of these files, and load_dataset cannot read them.
        if (Path(name_or_path) / "dataset_dict.json").is_file() or (Path(name_or_path) / "state.json").is_file():
            dataset = datasets.load_from_disk(name_or_path)
        else:
            dataset = datasets.load_dataset(name_or_path, config, revision=revision)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise SuiteError(f"hf:{name} cannot be loaded: {first_error_line(error)}") from error
    # A folder on disk may hold a single data set without splits.
    splits = dict(dataset) if isinstance(dataset, dict) else {"": dataset}
    rows = [
        _normalise_row(row, str(split) if len(splits) > 1 else "") for split, part in splits.items() for row in part
    ]
    header = list(dict.fromkeys(column for row in rows[:1] for column in row))
    return Path(name_or_path).name, header, enumerate(rows, start=1)


def _parse_dataset_name(name: str) -> tuple[str, str | None, str | None]:
    """Return the name, the configuration and the revision of a data set.

    >>> _parse_dataset_name("nyu-mll/blimp:adjunct_island@main")
    ('nyu-mll/blimp', 'adjunct_island', 'main')
    """
    name_or_path, _, revision = name.partition("@")
    name_or_path, _, config = name_or_path.partition(":")
    return name_or_path, config or None, revision or None


def _normalise_row(row: Mapping[str, object], split: str) -> Mapping[str, object]:
    """Return a row in the form of a text file: no NaN, no label of -1, and ids that start with the split.

    Args:
        split: The name of the split; empty if there is only one.
    """
    # pandas writes missing numbers as NaN, and data sets on the Hub mark hidden test labels by -1.
    cells = {name: None if isinstance(cell, float) and math.isnan(cell) else cell for name, cell in row.items()}
    if cells.get("label") == -1:
        cells["label"] = None
    # Ids are often numbered anew in every split, but have to be unique in a suite.
    if split:
        cells |= {"split": split} | ({"id": f"{split}/{cells['id']}"} if "id" in cells else {})
    return cells
