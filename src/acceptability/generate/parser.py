"""The parser of paradigm files (TOML): every mistake is reported with its file, its line and a remedy.

The page "Write your own paradigms" of the documentation describes the format. ``tomllib`` does not report the lines of
keys, so ``locate_keys`` finds them by a second, rough pass over the text.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from acceptability.errors import SuiteError, first_error_line, suggest_name
from acceptability.generate.checker import check_paradigm
from acceptability.generate.lexicon import TEXT_CATEGORY, LexiconEntry, parse_word
from acceptability.generate.paradigm import (
    Case,
    Paradigm,
    ParadigmFile,
    Slot,
    TemplatePiece,
    parse_slot_spec,
    parse_template,
    parse_terms,
)

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PIECE = re.compile(r""""[^"]*"|'[^']*'|[\w-]+""")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')
_LONG = re.compile(r'"""|\'\'\'')

KeyPath = tuple[str | int, ...]


def locate_keys(text: str) -> Mapping[KeyPath, int]:
    """Return the line of every table and key, by its path; a table in an array of tables is identified by its index.

    >>> lines = locate_keys('[[paradigm]]\\nname = "a"\\n[paradigm.slots]\\nn = "noun"\\n')
    >>> lines[("paradigm", 0, "slots", "n")]
    4
    """
    line_numbers: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    # Only a heuristic, run on text that tomllib accepts. A line that it misses makes a message less precise, no more.
    depth, long = 0, ""
    # Not splitlines(), which also breaks lines at characters that TOML does not count as line ends.
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), start=1):
        # Within a long string or an open list, a line that looks like a key is part of the value.
        if long or depth:
            long, depth = _scan_open_values(line, long, depth)
            continue
        header = _HEADER.fullmatch(line)
        if header:
            table = _build_table_path(_split_key(header[2]), header[1] == "[[", counts)
            line_numbers.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            line_numbers.setdefault((*table, *_split_key(key[1])), number)
            long, depth = _scan_open_values(line[key.end() :], "", 0)
    return line_numbers


def find_line(line_numbers: Mapping[KeyPath, int], path: KeyPath) -> int:
    """Return the line of a key, or of the innermost table on its path if the key is missing."""
    while path and path not in line_numbers:
        path = path[:-1]
    return line_numbers.get(path, 1)


def _split_key(name: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _PIECE.findall(name))


def _build_table_path(names: KeyPath, is_array: bool, counts: dict[KeyPath, int]) -> KeyPath:
    """Return the path of a table, with the indices of the arrays of tables that contain it."""
    path: KeyPath = ()
    for depth, name in enumerate(names):
        path = (*path, name)
        # [[paradigm]] starts the next element; [paradigm.slots] belongs to the latest one.
        if is_array and depth == len(names) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _scan_open_values(line: str, long: str, depth: int) -> tuple[str, int]:
    """Return the delimiter of the long string, and the number of brackets, still open after a line."""
    while True:
        if long:
            _, mark, line = line.partition(long)
            if not mark:
                return long, depth
            long = ""
        start = _LONG.search(line)
        before = line[: start.start()] if start else line
        # Brackets within strings and comments do not count.
        plain = _STRING.sub("", before)
        depth += sum(plain.count(mark) for mark in "[{") - sum(plain.count(mark) for mark in "]}")
        if not start:
            return "", depth
        long, line = start[0], line[start.end() :]


_Parsed = TypeVar("_Parsed")
# No valid file is nested as deep. repr() in error messages is recursive, and would fail on much deeper ones.
_MAX_DEPTH = 10
_FILE_KEYS = {"name": str, "title": str, "tags": dict, "splits": dict, "word": list, "paradigm": list}
_PARADIGM_KEYS = {
    "name": str,
    "sentence": str,
    "count": int,
    "slots": dict,
    "factors": dict,
    "parts": dict,
    "acceptable": list,
    "pairs": list,
    "tags": dict,
    "cross": list,
    "rows": dict,
    "repeats": bool,
}
# The forms that ``inflect`` may ask for. A plural is needed for count nouns only, which is checked apart.
_REQUIRED_FORMS = {
    "noun": ("lemma", "kind"),
    "verb": ("lemma", "third", "past", "participle", "ing", "frame"),
    "adjective": ("lemma", "comparative", "superlative"),
    "auxiliary": ("lemma", "sg", "pl", "selects"),
}
_TYPE_NAMES = {
    str: "a text in quotation marks",
    int: "a number",
    list: "a list in […]",
    dict: "a table",
    bool: "true or false",
}


def read_paradigms(content: str, where: str) -> ParadigmFile:
    """Return the parsed and validated paradigms of a file.

    Args:
        content: The text of the file.
        where: The name of the file, for messages.
    """
    try:
        table = tomllib.loads(content)
    # tomllib is recursive, and a file of opening brackets alone exceeds the recursion limit.
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: not TOML: {first_error_line(error)}") from error
    if _is_too_deep(table):
        raise SuiteError(f"{where}: tables or lists are nested more than {_MAX_DEPTH} deep")
    return _ParadigmReader(table, locate_keys(content), where).read_file()


def _is_too_deep(table: object) -> bool:
    """Return whether tables and lists are nested deeper than any paradigm needs."""
    # Level by level, as a recursive function would itself exceed the limit.
    level = [table]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for value in level
            for inner in (value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        ]
        if not level:
            return False
    return True


@dataclass(frozen=True)
class _ParadigmReader:
    table: Mapping[str, Any]
    lines: Mapping[KeyPath, int]
    where: str

    def locate(self, *path: str | int) -> str:
        return f"{self.where}, line {find_line(self.lines, path)}"

    def fail(self, path: KeyPath, message: object) -> NoReturn:
        raise SuiteError(f"{self.locate(*path)}: {message}")

    def read_file(self) -> ParadigmFile:
        self.check_keys(self.table, _FILE_KEYS, (), "a file of paradigms", ("name", "paradigm"))
        words = tuple(self.read_word(index, row) for index, row in enumerate(self.table.get("word", [])))
        paradigms = [self.read_paradigm(index, row, words) for index, row in enumerate(self.table["paradigm"])]
        names = [paradigm.name for paradigm in paradigms]
        for index, name in enumerate(names):
            if name in names[:index]:
                self.fail(("paradigm", index, "name"), f"there is a paradigm {name!r} already; choose another name")
        splits = self.read_splits(paradigms)
        tags = {name: str(value) for name, value in self.table.get("tags", {}).items()}
        return ParadigmFile(self.table["name"], self.table.get("title", ""), tuple(paradigms), tags, splits, words)

    def read_splits(self, paradigms: Sequence[Paradigm]) -> dict[str, int]:
        splits = self.table.get("splits", {})
        for name, count in splits.items():
            # Not isinstance: true is an int in Python.
            if type(count) is not int or count < 1:
                self.fail(("splits", name), f"split {name!r} is {count!r}; expected a number of paradigms")
        total = sum(paradigm.count for paradigm in paradigms)
        # The number of crossed paradigms is known only when they are generated.
        if splits and any(paradigm.cross for paradigm in paradigms):
            self.fail(("splits",), "splits need paradigms with a count, not with cross")
        if sum(splits.values()) > total:
            self.fail(("splits",), f"the splits have {sum(splits.values())} paradigms, but only {total} are generated")
        return dict(splits)

    def check_keys(
        self, row: object, known: Mapping[str, type], path: KeyPath, kind: str, needed: Iterable[str]
    ) -> None:
        """Raise an error for an unknown key, a value of the wrong type, or a missing key."""
        if not isinstance(row, dict):
            self.fail(path, f"{kind} is {row!r}; expected {_TYPE_NAMES[dict]}")
        for name, value in row.items():
            if name not in known:
                self.fail(
                    (*path, name), f"{kind} has no key {name!r}.{suggest_name(name, known)} It has {', '.join(known)}."
                )
            # Not isinstance: true would pass as an int.
            if type(value) is not known[name]:
                self.fail((*path, name), f"{name} is {value!r}; expected {_TYPE_NAMES[known[name]]}")
        for name in needed:
            if not row.get(name):
                self.fail(path, f"{kind} needs {name!r}")

    def read_word(self, index: int, row: object) -> LexiconEntry:
        path: KeyPath = ("word", index)
        if not isinstance(row, dict):
            self.fail(path, f"a word is {row!r}; expected {_TYPE_NAMES[dict]}")
        category = row.get("category")
        if not isinstance(category, str):
            self.fail(path, 'a word needs its category, such as category = "noun"')
        cells = {name: value for name, value in row.items() if name != "category"}
        for name, value in cells.items():
            if not isinstance(value, str):
                self.fail((*path, name), f"{name} is {value!r}; expected {_TYPE_NAMES[str]}")
        for name in _REQUIRED_FORMS.get(category, ("lemma",)):
            if name not in cells:
                self.fail(path, f"a {category} needs {name!r}")
        # Plural forms are listed and never derived by rule, so a missing one would surface as an empty word.
        if category == "noun" and "plural" not in cells and cells.get("countability") != "mass":
            self.fail(path, "a noun needs 'plural', or countability = \"mass\"")
        return parse_word(category, cells, self.locate(*path))

    def read_paradigm(self, index: int, row: Mapping[str, Any], words: tuple[LexiconEntry, ...]) -> Paradigm:
        path: KeyPath = ("paradigm", index)
        self.check_keys(row, _PARADIGM_KEYS, path, "a paradigm", ("name", "sentence", "factors", "acceptable"))
        factors = {name: self.read_factor((*path, "factors", name), value) for name, value in row["factors"].items()}
        parsed = Paradigm(
            name=row["name"],
            where=self.locate(*path),
            sentence=self.read_pieces((*path, "sentence"), row["sentence"]),
            slots={name: self.read_slot((*path, "slots", name), value) for name, value in row.get("slots", {}).items()},
            factors=factors,
            parts={name: self.read_part((*path, "parts", name), value) for name, value in row.get("parts", {}).items()},
            acceptable=tuple(self.parse_at(parse_terms, (*path, "acceptable"), terms) for terms in row["acceptable"]),
            pairs=tuple(self.read_texts((*path, "pairs"), row.get("pairs", list(factors)))),
            tags={
                name: self.read_pieces((*path, "tags", name), template)
                for name, template in row.get("tags", {}).items()
            },
            count=row.get("count", 0),
            cross=tuple(self.read_texts((*path, "cross"), row.get("cross", []))),
            rows={name: self.read_rows((*path, "rows", name), value) for name, value in row.get("rows", {}).items()},
            repeats=row.get("repeats", False),
        )
        # Checked here, where the lines are known, and before any other paradigm is read.
        check_paradigm(parsed, words, lambda *rest: self.locate(*path, *rest))
        return parsed

    def read_factor(self, path: KeyPath, values: object) -> tuple[str, ...]:
        levels = tuple(self.read_texts(path, values))
        if len(set(levels)) < len(levels) or not levels:
            self.fail(path, f'the factor {path[-1]!r} needs distinct values, such as ["1", "0"]')
        return levels

    def read_slot(self, path: KeyPath, value: object) -> Slot:
        name = str(path[-1])
        if isinstance(value, list):
            return Slot(name, self.locate(*path), texts=tuple(self.read_texts(path, value)))
        # A slot that gets its texts from a table of rows.
        if value == TEXT_CATEGORY:
            return Slot(name, self.locate(*path))
        return Slot(name, self.locate(*path), spec=self.parse_at(parse_slot_spec, path, value))

    def read_part(self, path: KeyPath, value: object) -> tuple[Case, ...]:
        if not isinstance(value, dict):
            self.fail(path, f'the part {path[-1]!r} needs a text for each condition: "factor=value" = "text"')
        return tuple(
            Case(self.parse_at(parse_terms, (*path, when), when), self.read_pieces((*path, when), text))
            for when, text in value.items()
        )

    def read_rows(self, path: KeyPath, value: object) -> tuple[tuple[str, ...], ...]:
        if not isinstance(value, list) or len(value) < 2:
            self.fail(path, f"the table {path[-1]!r} needs the names of slots, and then a list of words for each row")
        return tuple(tuple(self.read_texts(path, item)) for item in value)

    def read_pieces(self, path: KeyPath, text: object) -> tuple[TemplatePiece, ...]:
        return self.parse_at(parse_template, path, text)

    def read_texts(self, path: KeyPath, value: object) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.fail(path, f"{path[-1]} is {value!r}; expected a list of texts in quotation marks")
        return value

    def parse_at(self, parser: Callable[[str], _Parsed], path: KeyPath, text: object) -> _Parsed:
        """Return the result of a parser on a text, with the line added to its error messages."""
        if not isinstance(text, str):
            self.fail(path, f"{path[-1]} is {text!r}; expected {_TYPE_NAMES[str]}")
        try:
            return parser(text)
        except SuiteError as error:
            self.fail(path, error)
