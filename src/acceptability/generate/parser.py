"""The parser of paradigm files (TOML): every mistake is reported with its file, its line and a remedy.

The page "Write your own paradigms" of the documentation describes the format. ``tomllib`` does not report the lines of
keys, so ``locate_keys`` finds them by a second, rough pass over the text. Everything is checked when the file is read,
so that a mistake is not reported after hours of generation: known names, valid values, one text per condition, and a
word for every slot (``check_paradigm``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NoReturn, TypeVar

from acceptability.errors import SuiteError, first_error_line, shorten, suggest_name
from acceptability.generate.generator import filter_free_words
from acceptability.generate.lexicon import (
    TEXT_CATEGORY,
    FeatureValues,
    LexiconEntry,
    load_features,
    load_lexicon,
    parse_word,
)
from acceptability.generate.paradigm import (
    Case,
    Hole,
    Paradigm,
    ParadigmFile,
    Reference,
    Slot,
    TemplatePiece,
    Term,
    check_values,
    parse_slot_spec,
    parse_template,
    parse_terms,
    satisfies,
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


Locate = Callable[..., str]
MAX_CONDITIONS = 1_000
MAX_PARADIGMS = 1_000_000
"""Limits that keep a mistyped number from filling the memory, or from running without end."""


def check_paradigm(paradigm: Paradigm, words: Sequence[LexiconEntry], locate: Locate) -> None:
    """Raise an error for the first mistake in a paradigm.

    Args:
        paradigm: The parsed paradigm.
        words: The words that the file defines.
        locate: Returns the file and line of a key.
    """
    _ParadigmChecker(paradigm, words, locate).check_all()


class _ParadigmChecker:
    def __init__(self, paradigm: Paradigm, words: Sequence[LexiconEntry], locate: Locate) -> None:
        self.paradigm = paradigm
        self.words = words
        self.locate = locate

    def check_all(self) -> None:
        # Names come first: every later check looks slots, parts and factors up by name.
        self._check_names()
        self._check_counts()
        earlier: list[str] = []
        # A slot may refer to slots above it only, because slots are filled in this order.
        for slot in self.paradigm.slots.values():
            self._check_slot(slot, earlier)
            earlier.append(slot.name)
        for name, table in self.paradigm.rows.items():
            self._check_rows(name, table)
        self._check_holes(("sentence",), self.paradigm.sentence, nested=True)
        for name, pieces in self.paradigm.tags.items():
            self._check_holes(("tags", name), pieces, nested=True)
        for name in self.paradigm.parts:
            self._check_part(name)
        self._check_label()
        self._check_factors_used()

    def _require(self, truth: bool, path: tuple[str, ...], message: str) -> None:
        if not truth:
            raise SuiteError(f"{self.locate(*path)}: {message}")

    def _require_known(self, path: tuple[str, ...], kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        listed = f"There is {', '.join(known)}." if known else "There is none."
        self._require(name in known, path, f"there is no {kind} {name!r}.{suggest_name(name, known)} {listed}")

    def _check_names(self) -> None:
        for name in self.paradigm.parts:
            self._require(
                name not in self.paradigm.slots, ("parts", name), f"{name!r} is both a slot and a part; rename one"
            )
        for name in self.paradigm.pairs:
            self._require_known(("pairs",), "factor", name, self.paradigm.factors)
        for name in self.paradigm.cross:
            self._require_known(("cross",), "slot or table", name, [*self.paradigm.slots, *self.paradigm.rows])

    def _check_counts(self) -> None:
        # cross determines the number of paradigms, so that a count beside it would be contradictory.
        has_one_of_both = (self.paradigm.count > 0) != bool(self.paradigm.cross)
        self._require(
            has_one_of_both,
            ("count",),
            "set either count, the number of paradigms, or cross, the slots whose words are all combined",
        )
        self._require(
            0 <= self.paradigm.count <= MAX_PARADIGMS,
            ("count",),
            f"count is {shorten(str(self.paradigm.count))}; at most {MAX_PARADIGMS:,} paradigms can be generated",
        )
        # Multiplied before anything is enumerated: twenty binary factors alone have a million combinations.
        conditions = prod(map(len, self.paradigm.factors.values()))
        self._require(
            conditions <= MAX_CONDITIONS,
            ("factors",),
            f"the factors have {conditions:,} combinations; a paradigm has at most {MAX_CONDITIONS:,} sentences",
        )

    def _check_slot(self, slot: Slot, earlier: Sequence[str]) -> None:
        path = ("slots", slot.name)
        if slot.spec is None:
            self._require(
                bool(slot.texts) or self._is_in_rows(slot.name), path, f"slot {slot.name!r} has nothing to choose from"
            )
            return
        for term in slot.spec.terms:
            self._require(
                not term.slot and not term.factor,
                path,
                f"{term}: expected feature=value or feature=@slot.feature in a slot",
            )
            self._check_feature(path, slot.spec.category, term)
            if term.reference:
                self._require_known(path, "earlier slot", term.reference.slot, earlier)
                self._check_reference(path, term.reference)
        self._check_satisfiable(slot, path)

    # A slot without texts of its own is valid if a table of rows gives it words.
    def _is_in_rows(self, name: str) -> bool:
        return any(name in table[0] for table in self.paradigm.rows.values())

    def _check_feature(self, path: tuple[str, ...], category: str, term: Term) -> None:
        try:
            check_values(category, term)
        except SuiteError as error:
            raise SuiteError(f"{self.locate(*path)}: {error}") from error

    def _check_reference(self, path: tuple[str, ...], reference: Reference) -> None:
        spec = self.paradigm.slots[reference.slot].spec
        self._require(spec is not None, path, f"{reference.slot!r} is a plain text and has no features")
        if spec:
            self._check_feature(path, spec.category, Term(reference.feature, True))

    def _check_satisfiable(self, slot: Slot, path: tuple[str, ...]) -> None:
        assert slot.spec is not None
        words = self._list_vocabulary(slot.spec.category)
        if filter_free_words(slot, words):
            return
        # Constraints are added one by one again, to name the first that excludes all words.
        for term_index, term in enumerate(slot.spec.terms):
            shorter = Slot(
                slot.name, slot.where, type(slot.spec)(slot.spec.category, slot.spec.terms[: term_index + 1])
            )
            self._require(
                bool(filter_free_words(shorter, words)),
                path,
                f"no word fits the slot {slot.name!r}: none is left after {term}. "
                "Relax the constraints, or add a [[word]].",
            )

    def _check_rows(self, name: str, table: tuple[FeatureValues, ...]) -> None:
        path = ("rows", name)
        header, *rows = table
        for slot in header:
            self._require_known(path, "slot", slot, self.paradigm.slots)
        for row in rows:
            self._require(
                len(row) == len(header), path, f"the row {', '.join(row)} has {len(row)} words; expected {len(header)}"
            )
            for slot, lemma in zip(header, row, strict=True):
                self._check_cell(path, self.paradigm.slots[slot], lemma)

    def _check_cell(self, path: tuple[str, ...], slot: Slot, lemma: str) -> None:
        if slot.spec is None:
            return
        category = slot.spec.category
        # A lemma may have several entries, of which one has to fit.
        words = [word for word in self._list_vocabulary(category) if word.lemma == lemma]
        self._require(
            bool(filter_free_words(slot, words)),
            path,
            f"{lemma!r} is no {category} that fits the slot {slot.name!r}. Use another, or add it as a [[word]].",
        )

    def _list_vocabulary(self, category: str) -> list[LexiconEntry]:
        return [*load_lexicon()[category], *(word for word in self.words if word.category == category)]

    def _check_holes(self, path: tuple[str, ...], pieces: Sequence[TemplatePiece], *, nested: bool) -> None:
        # A part may contain slots but no parts, which rules out infinite recursion.
        known = [*self.paradigm.slots, *(self.paradigm.parts if nested else ())]
        for hole in (piece for piece in pieces if isinstance(piece, Hole)):
            self._require_known(path, "slot or part" if nested else "slot", hole.name, known)
            for term in hole.terms:
                self._check_choice(path, hole, term)

    def _check_choice(self, path: tuple[str, ...], hole: Hole, term: Term) -> None:
        slot = self.paradigm.slots.get(hole.name)
        self._require(slot is not None and slot.spec is not None, path, f"{hole.name!r} has no forms to choose: {term}")
        if slot is None or slot.spec is None:
            return
        category = slot.spec.category
        if term.factor:
            self._require_known(path, "factor", term.factor, self.paradigm.factors)
            # Replaced by a term with all values of the factor, so that each value is checked.
            term = Term(term.left, True, values=self.paradigm.factors[term.factor])
        self._check_feature(path, category, term)
        is_choice = category in load_features().get_feature(category, term.left).choice_categories
        self._require(is_choice, path, f"{term.left} of a {category} is not chosen in a sentence; put it in the slot")
        if term.reference:
            self._require_known(path, "slot", term.reference.slot, self.paradigm.slots)
            self._check_reference(path, term.reference)
            self._check_shared_values(path, category, term, term.reference)

    def _check_shared_values(self, path: tuple[str, ...], category: str, term: Term, reference: Reference) -> None:
        """Raise an error for a choice whose reference can never have a valid value: a number from a gender."""
        other = self.paradigm.slots[reference.slot].spec
        assert other is not None
        needed = load_features().get_feature(category, term.left).values
        given = load_features().get_feature(other.category, reference.feature).values
        self._require(
            not set(needed).isdisjoint(given),
            path,
            f"{term}: {reference.feature} never has a value of {term.left}, which are {', '.join(needed)}",
        )

    def _check_part(self, name: str) -> None:
        path = ("parts", name)
        for case in self.paradigm.parts[name]:
            self._check_conditions(path, case.terms, slots=False)
            self._check_holes(path, case.pieces, nested=False)
        for condition in self.paradigm.conditions:
            fitting = sum(satisfies(case.terms, condition) for case in self.paradigm.parts[name])
            condition_text = " ".join(f"{factor}={value}" for factor, value in condition.items())
            self._require(
                fitting > 0, path, f"the part {name!r} has no text for {condition_text}. Add one; it may be empty."
            )
            self._require(
                fitting == 1, path, f"the part {name!r} has {fitting} texts for {condition_text}; expected one"
            )

    def _check_conditions(self, path: tuple[str, ...], terms: Sequence[Term], *, slots: bool) -> None:
        for term in terms:
            # Acceptability may depend on the drawn words, as in agreement; a part only on the factors.
            if slots and term.slot:
                self._require_known(path, "slot", term.slot, self.paradigm.slots)
                self._check_reference(path, Reference(term.slot, term.left))
                if term.reference:
                    self._require_known(path, "slot", term.reference.slot, self.paradigm.slots)
                    self._check_reference(path, term.reference)
                continue
            self._require(not (term.slot or term.reference or term.factor), path, f"{term}: expected factor=value")
            self._require_known(path, "factor", term.left, self.paradigm.factors)
            for value in term.values:
                self._require_known(path, f"value of {term.left}", value, self.paradigm.factors[term.left])

    def _check_label(self) -> None:
        for terms in self.paradigm.acceptable:
            self._check_conditions(("acceptable",), terms, slots=True)
        # Whether a condition that depends on words is ever true is known only when words are drawn.
        if any(term.slot for terms in self.paradigm.acceptable for term in terms):
            return
        good = [
            any(satisfies(terms, condition) for terms in self.paradigm.acceptable)
            for condition in self.paradigm.conditions
        ]
        self._require(any(good), ("acceptable",), "no condition of the paradigm is acceptable")

    def _check_factors_used(self) -> None:
        """Raise an error for a factor with several values that does not change the sentence."""
        # Its values would give identical sentences with different labels or tags.
        terms = [term for cases in self.paradigm.parts.values() for case in cases for term in case.terms]
        pieces = [
            *self.paradigm.sentence,
            *(p for cases in self.paradigm.parts.values() for c in cases for p in c.pieces),
        ]
        used = {term.left for term in terms}
        used |= {term.factor for piece in pieces if isinstance(piece, Hole) for term in piece.terms}
        for name, values in self.paradigm.factors.items():
            self._require(
                len(values) == 1 or name in used,
                ("factors", name),
                f"the factor {name!r} has no effect: no part depends on it, and no hole uses it as ${name}",
            )
