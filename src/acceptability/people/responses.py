"""Responses of participants to sentences: one table, with a row per participant and a column per sentence.

``read_responses`` reads them from a file (CSV, TSV, JSONL or Parquet) or from the tags of a suite. Two layouts:

- long: a row per answer, with ``participant``, ``sentence`` (its text, or its id in a given suite) and ``response``;
- wide: a row per sentence and a column per participant; the participants' columns are given, as ``annotator_*``.

Optional columns are ``id``, ``label`` (or ``gold``: 1 acceptable, 0 not) and ``catch`` (the correct answer of a catch
item; empty for other sentences). Any further column with one value per sentence becomes a tag. An empty cell, or NA, is
a missing answer, which is counted; anything else that is not an answer is an error with its line number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import SuiteError, shorten, suggest_name
from acceptability.suites import load_suite
from acceptability.suites.frames import list_frame_rows
from acceptability.suites.table_files import TableRow, is_table_file, read_rows
from acceptability.text.io import normalise_text, parse_number
from acceptability.types import Floats, Sentence, Suite

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]

MISSING_VALUES = ("", "NA")
"""The cells that mean a missing answer: empty ones, and R's NA."""
# pandas writes "1.0" and "0.0" for whole numbers in a column with missing answers.
YES_ANSWERS = ("1", "1.0", "yes", "y", "true")
NO_ANSWERS = ("0", "0.0", "no", "n", "false")


@dataclass(frozen=True, eq=False)
class Responses:
    """The answers of participants to sentences.

    Args:
        name: The name of the data, for messages.
        kind: "magnitude" (positive numbers), "likert" (points of a scale) or "yes-no" (1 and 0).
        participants: The names of the participants.
        sentences: The sentences.
        values: A row per participant, a column per sentence; nan for a missing answer.
        catch: The correct answers (1 acceptable, 0 not) of catch items, by sentence id.
        notes: Notes on missing answers, and on answers that were reinterpreted.
    """

    name: str
    kind: str
    participants: tuple[str, ...]
    sentences: tuple[Sentence, ...]
    values: Floats
    catch: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in ANSWER_PARSERS:
            raise SuiteError(f"no kind of response is named {self.kind!r}; there are {', '.join(ANSWER_PARSERS)}")
        if self.values.shape != (len(self.participants), len(self.sentences)):
            raise SuiteError(
                f"{self.name}: the table of answers is {self.values.shape}, but there are "
                f"{len(self.participants)} participants and {len(self.sentences)} sentences"
            )

    def select(self, keep: Callable[[Sentence], bool]) -> Responses:
        """Return the answers to the sentences for which ``keep`` is true."""
        columns = [index for index, sentence in enumerate(self.sentences) if keep(sentence)]
        return replace(
            self, sentences=tuple(self.sentences[index] for index in columns), values=self.values[:, columns]
        )

    @property
    def labels(self) -> Floats:
        """The labels of the sentences; nan if there is none."""
        return np.array([np.nan if sentence.label is None else float(sentence.label) for sentence in self.sentences])


def responses_from_rows(name: str, kind: str, rows: Sequence[Sequence[float | None]]) -> Responses:
    """Return responses from plain rows of numbers, one per participant; None is a missing answer.

    Args:
        name: The name of the data, for messages.
        kind: "magnitude", "likert" or "yes-no".
        rows: An answer per sentence, for each participant.

    >>> responses_from_rows("toy", "likert", [[1, 5, None], [2, 7, 6]]).values.shape
    (2, 3)
    """
    values = np.array([[np.nan if cell is None else float(cell) for cell in row] for row in rows], dtype=np.float64)
    sentences = tuple(Sentence(str(number), f"sentence {number}") for number in range(1, values.shape[1] + 1))
    return Responses(name, kind, tuple(str(number) for number in range(1, len(rows) + 1)), sentences, values)


def is_missing(cell: object) -> bool:
    """Return whether a cell holds no answer."""
    return cell is None or (isinstance(cell, str) and cell.strip() in MISSING_VALUES)


def _parse_likert(cell: object) -> float:
    number = parse_number(cell)
    if number is None or not np.isfinite(number):
        raise SuiteError(f"response is {cell!r}; expected a number, or an empty cell for a missing answer")
    return number


def _parse_magnitude(cell: object) -> float:
    number = _parse_likert(cell)
    if number <= 0:
        raise SuiteError(f"response is {cell!r}; magnitude estimates are positive numbers, as their logs are taken")
    return number


def _parse_yes_no(cell: object) -> float:
    # Cells come as text, numbers or booleans, depending on the file format.
    answer = str(cell).strip().lower()
    if answer in YES_ANSWERS or answer in NO_ANSWERS:
        return float(answer in YES_ANSWERS)
    raise NeitherYesNorNo(
        f"response is {cell!r}; expected 1 or 0, yes or no. To count it as a no or as missing: --other no or missing"
    )


# A class of its own, because the option ``other`` makes this error, and no other, acceptable.
class NeitherYesNorNo(SuiteError):
    """An answer that is neither yes nor no."""


ANSWER_PARSERS: dict[str, Callable[[object], float]] = {
    "magnitude": _parse_magnitude,
    "likert": _parse_likert,
    "yes-no": _parse_yes_no,
}
"""The parser of a cell, for each kind of response."""


OTHER_POLICIES = ("refuse", "no", "missing")
"""How an answer that is neither yes nor no is treated: as an error, as a no, or as missing."""

# In order of preference: a file of ratings may have both a response and a mean rating.
_ALIASES = {
    "participant": ("participant", "participant_id", "subject", "rater", "annotator", "worker"),
    "sentence": ("sentence", "text"),
    "id": ("id", "sentence_id"),
    "response": ("response", "answer", "judgement", "judgment", "rating"),
    "label": ("label", "gold"),
    "catch": ("catch",),
}

HeaderAndRows = tuple[list[str], Iterable[tuple[int, TableRow]]]


def read_responses(
    source: str | Path | pd.DataFrame,
    *,
    kind: str,
    columns: Mapping[str, str] | None = None,
    raters: str = "",
    suite: Suite | None = None,
    other: str = "refuse",
) -> Responses:
    """Return the responses in a file, or in the tags of a suite.

    Args:
        source: A table (CSV, TSV, JSONL or Parquet), a data frame, or the name of a suite.
        kind: "magnitude", "likert" or "yes-no".
        columns: Column names by meaning, such as ``{"participant": "Worker", "response": "Score"}``.
        raters: For the wide layout, the participants' columns: names or patterns with ``*``, separated by commas.
        suite: The suite that contains the sentences, found by id or by text.
        other: How to treat an answer that is neither yes nor no: "refuse" for an error, "no", or "missing".
    """
    if kind not in ANSWER_PARSERS:
        raise SuiteError(f"no kind of response is named {kind!r}; there are {', '.join(ANSWER_PARSERS)}")
    if other not in OTHER_POLICIES:
        raise SuiteError(f"other is {other!r}; expected {', '.join(OTHER_POLICIES)}")
    header, rows = read_source_rows(source)
    where = name_source(source)
    rater_columns = _match_rater_columns(header, raters, where) if raters else []
    # In the wide layout a column named "rating" is a tag, not the responses.
    column_of = match_columns(
        header, columns or {}, where, _ALIASES, skipped=("participant", "response") * bool(raters)
    )
    _check_layout(column_of, header, where, rater_columns, suite)
    builder = _ResponsesBuilder(where, kind, other, suite)
    used = {*column_of.values(), *rater_columns}
    for line, participant, cell, row in _iter_answers(rows, column_of, rater_columns):
        try:
            key = builder.add_sentence(row, column_of, used)
            builder.add_answer(key, participant, cell, line)
        except SuiteError as error:
            raise SuiteError(f"{where}, line {line}: {error}") from error
    return builder.build()


def name_source(source: str | Path | pd.DataFrame) -> str:
    """Return the name of a file or suite, or "the data frame", for messages."""
    return str(source) if isinstance(source, str | Path) else "the data frame"


def read_source_rows(source: str | Path | pd.DataFrame) -> HeaderAndRows:
    """Return the column names and the numbered rows of a file, of a data frame, or of a suite with its tags."""
    if not isinstance(source, str | Path):
        return list_frame_rows(source)
    if is_table_file(str(source)):
        return read_rows(Path(source))
    suite = load_suite(str(source))
    rows = [
        (number, {"id": sentence.id, "sentence": sentence.text, "label": sentence.label, **sentence.tags})
        for number, sentence in enumerate(suite.sentences, start=1)
    ]
    return ["id", "sentence", "label", *suite.tag_names], rows


def match_columns(
    header: list[str],
    named: Mapping[str, str],
    where: str,
    aliases: Mapping[str, tuple[str, ...]],
    *,
    skipped: tuple[str, ...] = (),
) -> dict[str, str]:
    """Return the column of each meaning: the one named by the user, else the first with a usual name.

    Args:
        header: The columns of the file.
        named: The columns named by the user, by meaning.
        where: The file, for messages.
        aliases: The usual names of each meaning.
        skipped: Meanings that are not searched for by their usual names.
    """
    for meaning, column in named.items():
        if meaning not in aliases:
            raise SuiteError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(aliases)}")
        if column not in header:
            raise SuiteError(
                f"{where} has no column {column!r}; it has {', '.join(header)}.{suggest_name(column, header)}"
            )
    # A column that the user named for one meaning is not taken for another by its name.
    guessed = {
        meaning: next((name for name in names if name in header and name not in named.values()), "")
        for meaning, names in aliases.items()
        if meaning not in skipped
    }
    return {meaning: column for meaning, column in (guessed | dict(named)).items() if column}


def _match_rater_columns(header: list[str], raters: str, where: str) -> list[str]:
    chosen: list[str] = []
    for pattern in (item.strip() for item in raters.split(",")):
        # Not fnmatch, which ignores case on some systems.
        matching = [name for name in header if fnmatchcase(name, pattern)]
        if not matching:
            raise SuiteError(f"{where} has no column {pattern!r}; it has {', '.join(header)}")
        chosen += [name for name in matching if name not in chosen]
    return chosen


def _check_layout(
    column_of: Mapping[str, str], header: list[str], where: str, raters: list[str], suite: Suite | None
) -> None:
    needed = [] if raters else ["participant", "response"]
    needed += [] if "id" in column_of and suite else ["sentence"]
    missing = next((meaning for meaning in needed if meaning not in column_of), None)
    if missing is None:
        return
    hint = (
        "name the suite with the texts: --suite NAME"
        if "id" in column_of and missing == "sentence"
        else (
            f"name it: --columns {missing}=NAME"
            + ("" if missing == "sentence" else "; for a file with a column per participant: --raters NAMES")
        )
    )
    raise SuiteError(f"{where} has no column of {missing}s; it has {', '.join(header) or 'no header'}. Please {hint}")


def _iter_answers(
    rows: Iterable[tuple[int, TableRow]], column_of: Mapping[str, str], raters: list[str]
) -> Iterator[tuple[int, str, object, TableRow]]:
    """Yield line, participant, cell and row for every cell that may hold an answer, in either layout."""
    for line, row in rows:
        if not raters:
            yield line, _to_string(row.get(column_of["participant"])), row.get(column_of["response"]), row
        for name in raters:
            yield line, name, row.get(name), row


@dataclass
class _ResponsesBuilder:
    """Collects sentences and answers row by row, and reports contradictions between rows."""

    where: str
    kind: str
    other: str
    suite: Suite | None
    sentences: dict[str, Sentence] = field(default_factory=dict)
    catch: dict[str, int] = field(default_factory=dict)
    # With the line, which the message about a second answer names.
    answers: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict)
    # A dict as an ordered set: participants keep the order of the file.
    participants: dict[str, None] = field(default_factory=dict)
    varying: set[str] = field(default_factory=set)
    missing: int = 0
    other_answers: list[str] = field(default_factory=list)
    texts: dict[str, Sentence] = field(init=False)

    def __post_init__(self) -> None:
        self.texts = {sentence.text: sentence for sentence in self.suite.sentences} if self.suite else {}

    def add_sentence(self, row: TableRow, column_of: Mapping[str, str], used: set[str]) -> str:
        """Return the key of the sentence in a row, which is added if it is new."""
        text = _to_string(row.get(column_of.get("sentence", ""))).strip()
        key = _to_string(row.get(column_of["id"])).strip() if "id" in column_of else text
        label, catch = (_parse_judgement(row.get(column_of.get(name, "")), name) for name in ("label", "catch"))
        tags = {name: _to_string(cell) for name, cell in row.items() if name not in used and not is_missing(cell)}
        known = self.sentences.get(key)
        # Without ids, sentences are identified by their text and numbered in the order of the file.
        if known is None:
            number = key if "id" in column_of else str(len(self.sentences) + 1)
            self.sentences[key] = (
                self._find_in_suite(key, text) if self.suite else Sentence(number, text, label, tags=tags)
            )
            if catch is not None:
                self.catch[self.sentences[key].id] = catch
            return key
        if not self.suite and (known.text, known.label) != (text, label):
            raise SuiteError(f"sentence {known.id!r} has a different text or label in an earlier line")
        if self.suite:
            _check_same_text(known, text, self.suite)
        if self.catch.get(known.id) != catch:
            raise SuiteError(f"sentence {known.id!r} has a different catch answer in an earlier line")
        # Columns that vary between the answers to a sentence, such as reaction times, describe the answer, not the
        # sentence. That shows only with later rows, so they are collected here and dropped in ``build``.
        if known.tags != tags:
            self.varying |= {name for name in {**known.tags, **tags} if known.tags.get(name) != tags.get(name)}
        return key

    def _find_in_suite(self, key: str, text: str) -> Sentence:
        assert self.suite is not None
        sentence = self.suite.by_id.get(key) or self.texts.get(key)
        if sentence is None:
            raise SuiteError(f"suite {self.suite.name!r} has no sentence with the id or text {shorten(key)!r}")
        _check_same_text(sentence, text, self.suite)
        return sentence

    def add_answer(self, key: str, participant: str, cell: object, line: int) -> None:
        """Add an answer; a second one of the same participant to the same sentence is an error."""
        if not participant.strip():
            raise SuiteError("the participant has no name")
        # Registered even without an answer, so that the exclusion of this participant is reported.
        self.participants.setdefault(participant)
        if is_missing(cell):
            self.missing += 1
            return
        value = self._parse_answer(cell, line)
        if value is None:
            return
        if (participant, key) in self.answers:
            earlier = self.answers[participant, key][1]
            raise SuiteError(f"{participant!r} answered {shorten(key)!r} already in line {earlier}")
        self.answers[participant, key] = value, line

    def _parse_answer(self, cell: object, line: int) -> float | None:
        try:
            return ANSWER_PARSERS[self.kind](cell)
        # Counted one way or the other, such answers are listed in a note, since they are often a data error.
        except NeitherYesNorNo:
            if self.other == "refuse":
                raise
            self.other_answers.append(f"{_to_string(cell)!r} in line {line}")
            return 0.0 if self.other == "no" else None

    def build(self) -> Responses:
        if not self.answers:
            raise SuiteError(f"{self.where} has no answers")
        # A dense table, because all statistics on it are array operations.
        rows = {name: index for index, name in enumerate(self.participants)}
        columns = {key: index for index, key in enumerate(self.sentences)}
        values = np.full((len(rows), len(columns)), np.nan)
        for (participant, key), (value, _) in self.answers.items():
            values[rows[participant], columns[key]] = value
        sentences = tuple(self._drop_varying_tags(sentence) for sentence in self.sentences.values())
        return Responses(self.where, self.kind, tuple(rows), sentences, values, self.catch, tuple(self._build_notes()))

    def _drop_varying_tags(self, sentence: Sentence) -> Sentence:
        # The sentences of a suite keep its own tags; those of the rows are ignored.
        if self.suite or not self.varying:
            return sentence
        kept = {name: value for name, value in sentence.tags.items() if name not in self.varying}
        return Sentence(sentence.id, sentence.text, sentence.label, tags=kept)

    def _build_notes(self) -> Iterator[str]:
        if self.missing:
            yield f"{self.missing} of {self.missing + len(self.answers)} answers are missing"
        if self.other_answers:
            counted = "a no" if self.other == "no" else "no answer"
            yield f"neither yes nor no, and counted as {counted}: {', '.join(self.other_answers)}"
        if self.varying and not self.suite:
            names = ", ".join(sorted(self.varying))
            yield f"columns that differ between answers to one sentence, and are no tags: {names}"


def _check_same_text(sentence: Sentence, text: str, suite: Suite) -> None:
    """Raise an error if a row has an id of a suite, and the text of another sentence."""
    # Ids that only number the rows would give each sentence the answers to another one. The column of texts may hold
    # ids too, if there is no other.
    if text and text != sentence.id and normalise_text(text) != normalise_text(sentence.text):
        raise SuiteError(
            f"the text is {shorten(text)!r}, but suite {suite.name!r} has {shorten(sentence.text)!r} under the id "
            f"{sentence.id!r}. To find the sentences by their text, remove the column of ids."
        )


def _parse_judgement(cell: object, name: str) -> int | None:
    if is_missing(cell):
        return None
    answer = str(cell).strip().lower()
    if answer not in YES_ANSWERS + NO_ANSWERS:
        raise SuiteError(f"{name} is {cell!r}; expected 1 (acceptable), 0, or nothing")
    return int(answer in YES_ANSWERS)


def _to_string(cell: object) -> str:
    return "" if cell is None else cell if isinstance(cell, str) else str(cell)
