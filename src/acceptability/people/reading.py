"""Files of answers: CSV, TSV, JSONL or Parquet, or a suite whose tags hold them.

Two layouts:

- long: a row an answer, with ``participant``, ``sentence`` (its text, or its id in a suite that is named) and
  ``response``;
- wide: a row a sentence and a column a participant; the participants' columns are named, as ``annotator_*``.

Perhaps ``id``, ``label`` (or ``gold``: 1 acceptable, 0 not) and ``catch`` (the right answer of a catch item; empty
for other sentences). A further column that has one value for each sentence becomes a tag. An empty cell, or NA,
is a missing answer, which is counted; anything else that is no answer is an error with its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from acceptability.errors import SuiteError, shorten, suggestion
from acceptability.people.responses import ANSWERS, NO, YES, NeitherYesNorNo, Responses, is_missing
from acceptability.suites import load_suite
from acceptability.suites.tables import Row, is_table, rows_of
from acceptability.types import Sentence, Suite

OTHERS = ("refuse", "no", "missing")
"""What an answer that is neither yes nor no may be: an error, a no, or no answer."""
_ALIASES = {
    "participant": ("participant", "participant_id", "subject", "rater", "annotator", "worker"),
    "sentence": ("sentence", "text"),
    "id": ("id", "sentence_id"),
    "response": ("response", "answer", "judgement", "judgment", "rating"),
    "label": ("label", "gold"),
    "catch": ("catch",),
}

Rows = tuple[list[str], Iterable[tuple[int, Row]]]


def read_responses(
    source: str | Path,
    *,
    kind: str,
    columns: Mapping[str, str] | None = None,
    raters: str = "",
    suite: Suite | None = None,
    other: str = "refuse",
) -> Responses:
    """Return the answers in a file, or in the tags of a suite.

    Args:
        kind: "magnitude", "likert" or "yes-no".
        columns: Which column means what: ``{"participant": "Worker", "response": "Score"}``.
        raters: For the wide layout, the participants' columns: names or patterns with ``*``, separated by commas.
        suite: The suite whose sentences were asked about, by id or by text.
        other: What an answer that is neither yes nor no is: "refuse" for an error, "no", or "missing".
    """
    if kind not in ANSWERS:
        raise SuiteError(f"no kind of response is named {kind!r}; there are {', '.join(ANSWERS)}")
    if other not in OTHERS:
        raise SuiteError(f"other is {other!r}; expected {', '.join(OTHERS)}")
    header, rows = rows_of_source(source)
    named = _rater_columns(header, raters, str(source)) if raters else []
    found = found_columns(
        header, columns or {}, str(source), _ALIASES, skipped=("participant", "response") * bool(raters)
    )
    _check_layout(found, header, str(source), named, suite)
    draft = _Draft(str(source), kind, other, suite)
    used = {*found.values(), *named}
    for line, participant, cell, row in _answers(rows, found, named):
        try:
            key = draft.sentence(row, found, used)
            draft.answer(key, participant, cell, line)
        except SuiteError as error:
            raise SuiteError(f"{source}, line {line}: {error}") from error
    return draft.responses()


def rows_of_source(source: str | Path) -> Rows:
    """Return the names of the columns, and the numbered rows, of a file or of a suite with its tags."""
    if is_table(str(source)):
        return rows_of(Path(source))
    suite = load_suite(str(source))
    rows = [
        (number, {"id": each.id, "sentence": each.text, "label": each.label, **each.tags})
        for number, each in enumerate(suite.sentences, start=1)
    ]
    return ["id", "sentence", "label", *suite.tag_names], rows


def found_columns(
    header: list[str],
    named: Mapping[str, str],
    where: str,
    aliases: Mapping[str, tuple[str, ...]],
    *,
    skipped: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return which column means what: as named, else by the usual names."""
    for meaning, column in named.items():
        if meaning not in aliases:
            raise SuiteError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(aliases)}")
        if column not in header:
            raise SuiteError(
                f"{where} has no column {column!r}; it has {', '.join(header)}.{suggestion(column, header)}"
            )
    guessed = {
        meaning: next((each for each in names if each in header and each not in named.values()), "")
        for meaning, names in aliases.items()
        if meaning not in skipped
    }
    return {meaning: column for meaning, column in (guessed | dict(named)).items() if column}


def _rater_columns(header: list[str], raters: str, where: str) -> list[str]:
    chosen: list[str] = []
    for pattern in (each.strip() for each in raters.split(",")):
        matching = [name for name in header if fnmatchcase(name, pattern)]
        if not matching:
            raise SuiteError(f"{where} has no column {pattern!r}; it has {', '.join(header)}")
        chosen += [name for name in matching if name not in chosen]
    return chosen


def _check_layout(
    found: Mapping[str, str], header: list[str], where: str, raters: list[str], suite: Suite | None
) -> None:
    needed = [] if raters else ["participant", "response"]
    needed += [] if "id" in found and suite else ["sentence"]
    missing = next((meaning for meaning in needed if meaning not in found), None)
    if missing is None:
        return
    hint = (
        "name the suite that has the texts: --suite NAME"
        if "id" in found and missing == "sentence"
        else (
            f"say which it is: --columns {missing}=NAME"
            + ("" if missing == "sentence" else "; for a file with a column a participant: --raters NAMES")
        )
    )
    raise SuiteError(f"{where} has no column of {missing}s; it has {', '.join(header) or 'no header'}. Please {hint}")


def _answers(
    rows: Iterable[tuple[int, Row]], found: Mapping[str, str], raters: list[str]
) -> Iterator[tuple[int, str, object, Row]]:
    """Yield line, participant, answer and row of every cell that could hold an answer."""
    for line, row in rows:
        if not raters:
            yield line, _string(row.get(found["participant"])), row.get(found["response"]), row
        for name in raters:
            yield line, name, row.get(name), row


@dataclass
class _Draft:
    """What has been read so far."""

    where: str
    kind: str
    other: str
    suite: Suite | None
    sentences: dict[str, Sentence] = field(default_factory=dict)
    catch: dict[str, int] = field(default_factory=dict)
    answers: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    participants: dict[str, None] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)
    missing: int = 0
    others: list[str] = field(default_factory=list)
    texts: dict[str, Sentence] = field(init=False)

    def __post_init__(self) -> None:
        self.texts = {each.text: each for each in self.suite.sentences} if self.suite else {}

    def sentence(self, row: Row, found: Mapping[str, str], used: set[str]) -> str:
        """Return the key of the row's sentence, which is added if it is new."""
        text = _string(row.get(found.get("sentence", ""))).strip()
        key = _string(row.get(found["id"])).strip() if "id" in found else text
        label, catch = (_judged(row.get(found.get(name, "")), name) for name in ("label", "catch"))
        tags = {name: _string(cell) for name, cell in row.items() if name not in used and not is_missing(cell)}
        known = self.sentences.get(key)
        if known is None:
            number = key if "id" in found else str(len(self.sentences) + 1)
            self.sentences[key] = self._of_suite(key) if self.suite else Sentence(number, text, label, tags=tags)
            if catch is not None:
                self.catch[self.sentences[key].id] = catch
            return key
        if not self.suite and (known.text, known.label) != (text, label):
            raise SuiteError(f"sentence {known.id!r} has another text or label here than in an earlier line")
        if self.catch.get(known.id) != catch:
            raise SuiteError(f"sentence {known.id!r} has another catch answer here than in an earlier line")
        if known.tags != tags:
            self.varying |= {name for name in {**known.tags, **tags} if known.tags.get(name) != tags.get(name)}
        return key

    def _of_suite(self, key: str) -> Sentence:
        assert self.suite is not None
        found = self.suite.by_id.get(key) or self.texts.get(key)
        if found is None:
            raise SuiteError(f"suite {self.suite.name!r} has no sentence with the id or text {shorten(key)!r}")
        return found

    def answer(self, key: str, participant: str, cell: object, line: int) -> None:
        """Add an answer; a second one of the same participant to the same sentence is an error."""
        if not participant.strip():
            raise SuiteError("the participant has no name")
        self.participants.setdefault(participant)
        if is_missing(cell):
            self.missing += 1
            return
        value = self._value(cell, line)
        if value is None:
            return
        if (participant, key) in self.answers:
            earlier = self.answers[participant, key][1]
            raise SuiteError(f"{participant!r} answered {shorten(key)!r} already in line {earlier}")
        self.answers[participant, key] = value, line

    def _value(self, cell: object, line: int) -> float | None:
        try:
            return ANSWERS[self.kind](cell)
        except NeitherYesNorNo:
            if self.other == "refuse":
                raise
            self.others.append(f"{_string(cell)!r} in line {line}")
            return 0.0 if self.other == "no" else None

    def responses(self) -> Responses:
        if not self.answers:
            raise SuiteError(f"{self.where} has no answers")
        rows = {name: place for place, name in enumerate(self.participants)}
        places = {key: place for place, key in enumerate(self.sentences)}
        values = np.full((len(rows), len(places)), np.nan)
        for (participant, key), (value, _) in self.answers.items():
            values[rows[participant], places[key]] = value
        sentences = tuple(self._tagged(each) for each in self.sentences.values())
        return Responses(self.where, self.kind, tuple(rows), sentences, values, self.catch, tuple(self._notes()))

    def _tagged(self, each: Sentence) -> Sentence:
        if self.suite or not self.varying:
            return each
        kept = {name: value for name, value in each.tags.items() if name not in self.varying}
        return Sentence(each.id, each.text, each.label, tags=kept)

    def _notes(self) -> Iterator[str]:
        if self.missing:
            yield f"{self.missing} of {self.missing + len(self.answers)} answers are missing"
        if self.others:
            counted = "a no" if self.other == "no" else "no answer"
            yield f"neither yes nor no, and counted as {counted}: {', '.join(self.others)}"
        if self.varying and not self.suite:
            names = ", ".join(sorted(self.varying))
            yield f"columns that differ between answers to one sentence, and are no tags: {names}"


def _judged(cell: object, name: str) -> int | None:
    if is_missing(cell):
        return None
    said = str(cell).strip().lower()
    if said not in YES + NO:
        raise SuiteError(f"{name} is {cell!r}; expected 1 (acceptable), 0, or nothing")
    return int(said in YES)


def _string(cell: object) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else str(cell)
