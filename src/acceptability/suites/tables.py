"""A user's own table of sentences: CSV, TSV, JSONL or Parquet, or the rows of a data set.

Three layouts are recognised by their columns:

- sentences: ``text`` (or ``sentence``), with ``label`` and/or ``rating``;
- pairs: ``good`` and ``bad`` (or ``sentence_good`` and ``sentence_bad``), perhaps with ``rating_good``
  and ``rating_bad``;
- our own JSONL: ``id, text, label, rating, regions, tags, better_than``.

``id`` is optional (rows are numbered without it); every further column becomes a tag.
Columns with other names are named by the user: ``{"text": "Sentence"}``. In CSV and
TSV, ``better_than`` holds ids separated by semicolons. A file of two columns without a
header, whose first row has two sentences in it, is read as pairs, the better one first.
What was recognised stands in the log.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptability.errors import SuiteError, suggestion
from acceptability.suites.frames import parquet_rows
from acceptability.text import as_number, content_of, delimited, lines
from acceptability.types import Contrast, Sentence, Span, Suite, contrast

ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
_ALIASES = {
    "id": ("id", "sentence_id"),
    "text": ("text", "sentence"),
    "good": ("good", "sentence_good", "good_sentence", "Good Sentence"),
    "bad": ("bad", "sentence_bad", "bad_sentence", "Bad Sentence"),
    "rating_good": ("rating_good",),
    "rating_bad": ("rating_bad",),
    "label": ("label",),
    "rating": ("rating",),
    "regions": ("regions",),
    "tags": ("tags",),
    "better_than": ("better_than",),
}

_NAMES = re.compile(
    r"\b(?:good|bad|sentence|acceptable|unacceptable|grammatical|ungrammatical)\b(?!.*[.?!])", re.IGNORECASE
)
_OF_PAIRS = ("good", "bad", "rating_good", "rating_bad")
_log = logging.getLogger(__name__)

Cell = object
Row = Mapping[str, Cell]


@dataclass
class _Draft:
    """What has been read so far of a suite, with the line that each sentence came from."""

    name: str
    where: str
    sentences: dict[str, Sentence] = field(default_factory=dict)
    line_of: dict[str, int] = field(default_factory=dict)
    better_than: list[tuple[str, str, int]] = field(default_factory=list)

    def add(self, sentence: Sentence, line: int) -> Sentence:
        if sentence.id in self.sentences:
            raise SuiteError(
                f"{self.where}, line {line}: the id {sentence.id!r} stands already in line "
                f"{self.line_of[sentence.id]}. Ids must be unique."
            )
        self.sentences[sentence.id] = sentence
        self.line_of[sentence.id] = line
        return sentence

    def suite(self) -> Suite:
        if not self.sentences:
            raise SuiteError(f"{self.where} has no rows")
        contrasts = tuple(self._contrast(*each) for each in self.better_than)
        return Suite(self.name, tuple(self.sentences.values()), contrasts)

    def _contrast(self, better: str, worse: str, line: int) -> Contrast:
        if worse not in self.sentences:
            raise SuiteError(
                f"{self.where}, line {line}: {better!r} is better than {worse!r}, "
                "but the file has no sentence of that id"
            )
        return contrast(self.sentences[better], self.sentences[worse])


def is_table(name: str) -> bool:
    """Tell whether a name means a file of sentences."""
    return name.lower().endswith(ENDINGS)


def read_table(path: Path, *, columns: Mapping[str, str]) -> Suite:
    """Return the suite that a file holds."""
    header, rows = (None if columns else _headerless_pairs(path)) or rows_of(path)
    return suite_of_rows(path.stem, str(path), header, rows, columns)


def suite_of_rows(
    name: str, where: str, header: list[str], rows: Iterable[tuple[int, Row]], columns: Mapping[str, str]
) -> Suite:
    """Return the suite that numbered rows of named cells make."""
    found = _columns(header, columns, where)
    if any(column != meaning for meaning, column in found.items()):
        said = ", ".join(f"{meaning} is {column!r}" for meaning, column in found.items())
        _log.info("%s: %s", where, said)
    draft = _Draft(name, where)
    for number, (line, row) in enumerate(rows, start=1):
        try:
            _take(draft, row, found, number, line)
        except SuiteError as error:
            if str(error).startswith(where):
                raise
            raise SuiteError(f"{where}, line {line}: {error}") from error
        except RecursionError as error:
            raise SuiteError(f"{where}, line {line}: there are too many brackets inside each other") from error
    return draft.suite()


def write_jsonl(suite: Suite, path: Path) -> None:
    """Write a suite in our own format, one sentence a line."""
    worse: dict[str, list[str]] = {}
    for each in suite.contrasts:
        worse.setdefault(each.better, []).append(each.worse)
    with path.open("w", encoding="utf-8", newline="\n") as out:
        for sentence in suite.sentences:
            row = {
                "id": sentence.id,
                "text": sentence.text,
                "label": sentence.label,
                "rating": sentence.rating,
                "regions": dict(sentence.regions),
                "tags": dict(sentence.tags),
                "better_than": worse.get(sentence.id, []),
            }
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def rows_of(path: Path) -> tuple[list[str], Iterable[tuple[int, Row]]]:
    """Return the names of a file's columns, and its numbered rows."""
    content = content_of(path)
    if path.suffix.lower() == ".jsonl":
        rows = list(_json_rows(content, str(path)))
        return list(dict.fromkeys(name for _, row in rows for name in row)), rows
    if path.suffix.lower() == ".parquet":
        return parquet_rows(content, str(path))
    return delimited(content, str(path), delimiter="\t" if path.suffix.lower() == ".tsv" else ",")


def _headerless_pairs(path: Path) -> tuple[list[str], Iterable[tuple[int, Row]]] | None:
    """Return the rows of a TSV file of two columns that has sentences where a header would be; else None."""
    if path.suffix.lower() != ".tsv" or not path.is_file():
        return None
    rows = [(number, line.split("\t")) for number, line in lines(content_of(path), str(path))]
    first = rows[0][1] if rows else []
    is_sentences = len(first) == 2 and all(" " in cell.strip() and not _NAMES.search(cell) for cell in first)
    if not is_sentences or any(len(row) != 2 for _, row in rows):
        return None
    _log.info("%s: two columns of sentences and no header: read as pairs, the better one first", path)
    return ["good", "bad"], [(number, {"good": good, "bad": bad}) for number, (good, bad) in rows]


def _json_rows(content: bytes, where: str) -> Iterator[tuple[int, Row]]:
    for number, line in lines(content, where):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise SuiteError(f"{where}, line {number}: not a line of JSON: {error}") from error
        if not isinstance(row, dict):
            raise SuiteError(f'{where}, line {number}: expected an object with names, such as {{"text": …}}')
        yield number, row


def _columns(header: list[str], named: Mapping[str, str], where: str) -> dict[str, str]:
    """Return which column of the file means what: as named, else by the usual names."""
    for meaning, column in named.items():
        if meaning not in _ALIASES:
            raise SuiteError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(_ALIASES)}")
        if column not in header:
            raise SuiteError(
                f"{where} has no column {column!r}; it has {', '.join(header)}.{suggestion(column, header)}"
            )
    guessed = {
        meaning: next((alias for alias in aliases if alias in header), "") for meaning, aliases in _ALIASES.items()
    }
    if {"good", "bad"} & named.keys():
        guessed["text"] = ""
    elif "text" in named:
        guessed["good"] = guessed["bad"] = ""
    found = {meaning: column for meaning, column in (guessed | dict(named)).items() if column}
    _check_layout(found, header, where)
    # What has no meaning in a layout is a tag there, and nothing is lost.
    return {meaning: column for meaning, column in found.items() if ("text" in found) != (meaning in _OF_PAIRS)} | {
        meaning: column for meaning, column in found.items() if meaning == "id"
    }


def _check_layout(found: Mapping[str, str], header: list[str], where: str) -> None:
    is_pairs = {"good", "bad"} <= found.keys()
    if "text" in found and is_pairs:
        raise SuiteError(
            f"{where} has sentences ({found['text']}) and pairs ({found['good']}, {found['bad']}). "
            "Say which you mean: --columns text=NAME or --columns good=NAME,bad=NAME"
        )
    if "text" not in found and not is_pairs:
        missing = "column 'bad'" if "good" in found else "column 'good'" if "bad" in found else "column of sentences"
        raise SuiteError(
            f"{where} has no {missing}; it has {', '.join(header) or 'no header'}. Name it 'text' (or 'good' "
            "and 'bad' for pairs), or say which it is: --columns text=NAME"
        )


def _take(draft: _Draft, row: Row, found: Mapping[str, str], place: int, line: int) -> None:
    """Add the sentence, or the pair, that a row holds; its place is its id if it has none."""
    used = set(found.values())
    tags = {name: _string(cell) for name, cell in row.items() if name not in used and not _is_empty(cell)}
    number = _string(row.get(found["id"])) if "id" in found else str(place)
    if "text" not in found:
        tags = {"item": number} | tags
        good, bad = (
            Sentence(
                f"{number}/{member}",
                _text(row.get(found[member])),
                label=int(member == "good"),
                rating=_rating(row.get(found.get(f"rating_{member}", ""))),
                tags=tags,
            )
            for member in ("good", "bad")
        )
        draft.add(good, line)
        draft.add(bad, line)
        draft.better_than.append((good.id, bad.id, line))
        return
    given = row.get(found["tags"]) if "tags" in found else None
    sentence = Sentence(
        number,
        _text(row.get(found["text"])),
        label=_label(row.get(found.get("label", ""))),
        rating=_rating(row.get(found.get("rating", ""))),
        regions=_regions(row.get(found.get("regions", ""))),
        tags=tags | (_tags(given) if not _is_empty(given) else {}),
    )
    draft.add(sentence, line)
    for worse in _ids(row.get(found.get("better_than", ""))):
        draft.better_than.append((sentence.id, worse, line))


def _is_empty(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, str) and cell == "")


def _string(cell: Cell) -> str:
    if cell is None:
        return ""
    return cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)


def _text(cell: Cell) -> str:
    if cell is None or isinstance(cell, str):
        return cell or ""
    raise SuiteError(f"the text is {cell!r}; expected a sentence")


def _label(cell: Cell) -> int | None:
    if _is_empty(cell):
        return None
    if isinstance(cell, (int, float, str)) and cell in (0, 1, "0", "1"):
        return int(cell)
    raise SuiteError(f"label is {cell!r}; expected 1 (acceptable) or 0. Leave it empty if nobody judged it.")


def _rating(cell: Cell) -> float | None:
    if _is_empty(cell):
        return None
    rating = as_number(cell)
    if rating is None:
        raise SuiteError(f"rating is {cell!r}; expected a number. Leave the field empty if nobody rated it.")
    return rating


def _regions(cell: Cell) -> dict[str, Span]:
    if _is_empty(cell):
        return {}
    try:
        regions: Any = json.loads(cell) if isinstance(cell, str) else cell
        return {str(name): (int(start), int(end)) for name, (start, end) in regions.items()}
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        raise SuiteError(f'regions are {cell!r}; expected {{"name": [start, end]}}') from None


def _tags(cell: Cell) -> dict[str, str]:
    if isinstance(cell, str):
        return {"tags": cell}
    if not isinstance(cell, dict):
        raise SuiteError(f'tags are {cell!r}; expected {{"name": "value"}}')
    return {str(name): _string(value) for name, value in cell.items()}


def _ids(cell: Cell) -> list[str]:
    if _is_empty(cell):
        return []
    if isinstance(cell, str):
        return [each.strip() for each in cell.split(";") if each.strip()]
    if isinstance(cell, list) and all(isinstance(each, str) for each in cell):
        return cell
    raise SuiteError(f"better_than is {cell!r}; expected a list of ids")
