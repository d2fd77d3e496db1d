"""A file of paradigms, read and checked: every mistake is told with the file, the line and what to do.

The page "Write your own paradigms" of the documentation says what stands in such a file.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from acceptability.errors import SuiteError, reason, suggestion
from acceptability.generate.checking import check_paradigm
from acceptability.generate.constraints import read_spec, read_terms
from acceptability.generate.lines import Path, key_lines, line_of
from acceptability.generate.paradigm import Case, Paradigm, ParadigmFile, Slot
from acceptability.generate.template import Piece, read_template
from acceptability.generate.words import TEXT, Word, word_of

_Read = TypeVar("_Read")
_DEEPEST = 10
_FILE = {"name": str, "title": str, "tags": dict, "splits": dict, "word": list, "paradigm": list}
_PARADIGM = {
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
_FORMS = {
    "noun": ("lemma", "kind"),
    "verb": ("lemma", "third", "past", "participle", "ing", "frame"),
    "adjective": ("lemma", "comparative", "superlative"),
    "auxiliary": ("lemma", "sg", "pl", "selects"),
}
_SAID = {
    str: "a text in quotation marks",
    int: "a number",
    list: "a list in […]",
    dict: "a table",
    bool: "true or false",
}


def read_paradigms(content: str, where: str) -> ParadigmFile:
    """Return the paradigms of a file.

    Args:
        where: The name of the file, for messages.
    """
    try:
        table = tomllib.loads(content)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{where}: not TOML: {reason(error)}") from error
    if _is_deep(table):
        raise SuiteError(f"{where}: more than {_DEEPEST} tables or lists stand inside each other")
    return _Reader(table, key_lines(content), where).file()


def _is_deep(table: object) -> bool:
    """Tell whether tables and lists stand inside each other deeper than any paradigm needs."""
    level = [table]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
        if not level:
            return False
    return True


@dataclass(frozen=True)
class _Reader:
    table: Mapping[str, Any]
    lines: Mapping[Path, int]
    where: str

    def at(self, *path: str | int) -> str:
        return f"{self.where}, line {line_of(self.lines, path)}"

    def fail(self, path: Path, message: object) -> NoReturn:
        raise SuiteError(f"{self.at(*path)}: {message}")

    def file(self) -> ParadigmFile:
        self.check_keys(self.table, _FILE, (), "a file of paradigms", ("name", "paradigm"))
        words = tuple(self.word(place, row) for place, row in enumerate(self.table.get("word", [])))
        paradigms = [self.paradigm(place, row, words) for place, row in enumerate(self.table["paradigm"])]
        names = [each.name for each in paradigms]
        for place, name in enumerate(names):
            if name in names[:place]:
                self.fail(("paradigm", place, "name"), f"there is a paradigm {name!r} already; give it another name")
        splits = self.splits(paradigms)
        tags = {name: str(value) for name, value in self.table.get("tags", {}).items()}
        return ParadigmFile(self.table["name"], self.table.get("title", ""), tuple(paradigms), tags, splits, words)

    def splits(self, paradigms: Sequence[Paradigm]) -> dict[str, int]:
        splits = self.table.get("splits", {})
        for name, count in splits.items():
            if type(count) is not int or count < 1:
                self.fail(("splits", name), f"split {name!r} is {count!r}; expected a number of paradigms")
        total = sum(each.count for each in paradigms)
        if splits and any(each.cross for each in paradigms):
            self.fail(("splits",), "splits need paradigms with a count, not with cross")
        if sum(splits.values()) > total:
            self.fail(("splits",), f"the splits have {sum(splits.values())} paradigms, but only {total} are made")
        return dict(splits)

    def check_keys(self, row: object, known: Mapping[str, type], path: Path, what: str, needed: Iterable[str]) -> None:
        """Refuse keys that mean nothing, values of another type, and what lacks."""
        if not isinstance(row, dict):
            self.fail(path, f"{what} is {row!r}; expected {_SAID[dict]}")
        for name, value in row.items():
            if name not in known:
                self.fail(
                    (*path, name), f"{what} has no key {name!r}.{suggestion(name, known)} It has {', '.join(known)}."
                )
            if type(value) is not known[name]:
                self.fail((*path, name), f"{name} is {value!r}; expected {_SAID[known[name]]}")
        for name in needed:
            if not row.get(name):
                self.fail(path, f"{what} needs {name!r}")

    def word(self, place: int, row: object) -> Word:
        path: Path = ("word", place)
        if not isinstance(row, dict):
            self.fail(path, f"a word is {row!r}; expected {_SAID[dict]}")
        category = row.get("category")
        if not isinstance(category, str):
            self.fail(path, 'a word needs its category, such as category = "noun"')
        cells = {name: value for name, value in row.items() if name != "category"}
        for name, value in cells.items():
            if not isinstance(value, str):
                self.fail((*path, name), f"{name} is {value!r}; expected {_SAID[str]}")
        for name in _FORMS.get(category, ("lemma",)):
            if name not in cells:
                self.fail(path, f"a {category} needs {name!r}")
        if category == "noun" and "plural" not in cells and cells.get("countability") != "mass":
            self.fail(path, "a noun needs 'plural', or countability = \"mass\"")
        return word_of(category, cells, self.at(*path))

    def paradigm(self, place: int, row: Mapping[str, Any], words: tuple[Word, ...]) -> Paradigm:
        path: Path = ("paradigm", place)
        self.check_keys(row, _PARADIGM, path, "a paradigm", ("name", "sentence", "factors", "acceptable"))
        factors = {name: self.factor((*path, "factors", name), value) for name, value in row["factors"].items()}
        found = Paradigm(
            name=row["name"],
            where=self.at(*path),
            sentence=self.template((*path, "sentence"), row["sentence"]),
            slots={name: self.slot((*path, "slots", name), value) for name, value in row.get("slots", {}).items()},
            factors=factors,
            parts={name: self.part((*path, "parts", name), value) for name, value in row.get("parts", {}).items()},
            acceptable=tuple(self.read(read_terms, (*path, "acceptable"), each) for each in row["acceptable"]),
            pairs=tuple(self.texts((*path, "pairs"), row.get("pairs", list(factors)))),
            tags={name: self.template((*path, "tags", name), each) for name, each in row.get("tags", {}).items()},
            count=row.get("count", 0),
            cross=tuple(self.texts((*path, "cross"), row.get("cross", []))),
            rows={name: self.rows((*path, "rows", name), value) for name, value in row.get("rows", {}).items()},
            repeats=row.get("repeats", False),
        )
        check_paradigm(found, words, lambda *rest: self.at(*path, *rest))
        return found

    def factor(self, path: Path, values: object) -> tuple[str, ...]:
        found = tuple(self.texts(path, values))
        if len(set(found)) < len(found) or not found:
            self.fail(path, f'the factor {path[-1]!r} needs different values, such as ["1", "0"]')
        return found

    def slot(self, path: Path, value: object) -> Slot:
        name = str(path[-1])
        if isinstance(value, list):
            return Slot(name, self.at(*path), texts=tuple(self.texts(path, value)))
        if value == TEXT:
            return Slot(name, self.at(*path))
        return Slot(name, self.at(*path), spec=self.read(read_spec, path, value))

    def part(self, path: Path, value: object) -> tuple[Case, ...]:
        if not isinstance(value, dict):
            self.fail(path, f'the part {path[-1]!r} needs a text for each condition: "factor=value" = "text"')
        return tuple(
            Case(self.read(read_terms, (*path, when), when), self.template((*path, when), text))
            for when, text in value.items()
        )

    def rows(self, path: Path, value: object) -> tuple[tuple[str, ...], ...]:
        if not isinstance(value, list) or len(value) < 2:
            self.fail(path, f"the table {path[-1]!r} needs the names of slots, and then a list of words for each row")
        return tuple(tuple(self.texts(path, each)) for each in value)

    def template(self, path: Path, text: object) -> tuple[Piece, ...]:
        return self.read(read_template, path, text)

    def texts(self, path: Path, value: object) -> list[str]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            self.fail(path, f"{path[-1]} is {value!r}; expected a list of texts in quotation marks")
        return value

    def read(self, reader: Callable[[str], _Read], path: Path, text: object) -> _Read:
        """Return what a reader makes of a text; its errors get the line."""
        if not isinstance(text, str):
            self.fail(path, f"{path[-1]} is {text!r}; expected {_SAID[str]}")
        try:
            return reader(text)
        except SuiteError as error:
            self.fail(path, error)
