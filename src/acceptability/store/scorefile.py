"""Files of scores, one's own or published ones, as CSV, TSV or JSONL.

The columns are ``sentence_id`` and ``score``, and optionally ``text`` (or ``sentence``) and ``model``; other names are
given as ``{"id": "gramm_id", "score": "slor_zscores_gramm"}``. A file with one row for each pair is read twice, once
for each member; a sentence may then occur again, with the same score. An empty field is a missing score: a note says
how many there are, and a measure that needs one of them raises an error.

Rows are joined to the sentences of the suite by id, and their texts have to agree. Ids that merely number the rows say
nothing about another file with another order: such rows, and rows without an id, are joined by text, or without texts
by position, which a note says. Without texts, numbers can only be taken at their word, and a note says that too.
"""

from __future__ import annotations

import logging
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acceptability.errors import ScoreError, SuiteError, shorten, suggest_name
from acceptability.models.files import hash_file
from acceptability.suites.column_names import TEXT_COLUMNS
from acceptability.suites.table_files import read_rows
from acceptability.text.io import normalise_text, parse_number
from acceptability.types import Scores, Sentence, Suite, restrict_to_scored

_MEANINGS = ("id", "score", "model", "text")

_log = logging.getLogger(__name__)


def read_scores(
    path: Path,
    suite: Suite,
    columns: Sequence[Mapping[str, str]] = ({},),
    *,
    partial: bool = False,
    where: Mapping[str, str] | None = None,
) -> list[Scores]:
    """Return the scores in a file, one ``Scores`` for each model that it names.

    Args:
        path: A CSV, TSV or JSONL file.
        suite: The suite of its sentences.
        columns: The names of the columns that hold "id", "score", "text" and "model". The file is read once for each
            mapping: a file with one row for each pair takes two.
        partial: Whether sentences without a score are left out of results, with a note; otherwise a measure that needs
            one of them raises an error.
        where: Values of tags: only the scores of this part of the suite are returned, for ``suite.filter(**where)``.
    """
    part = suite.filter(**(where or {}))
    scores_by_model: dict[str, dict[str, tuple[float, int]]] = {}
    empty, notes = 0, []
    for named in columns or ({},):
        rows = _read_score_rows(path, named, columns)
        joined, note = _join_rows(path, rows, suite, part, by_position=len(columns) <= 1)
        empty += _add_scores(path, suite, part, joined, scores_by_model, may_repeat=len(columns) > 1)
        notes.append(note)
    if not scores_by_model:
        raise ScoreError(f"{path} has no scores" + (f" of suite {part.name!r}" if where else ""))
    notes.append(f"{empty} rows of {path.name} have no score" if empty else "")
    notes.append(_describe_part(suite, part) if where else "")
    options = _format_columns(columns) + ("(partial)" if partial else "") + _format_where(where)
    content = hash_file(path)
    all_scores = [
        _add_missing(
            Scores(
                {key: score for key, (score, _) in values.items()},
                model,
                signature=f"file:{path.name}@{content}{options}:{model}",
                notes=tuple(dict.fromkeys(filter(None, notes))),
                partial=partial,
            ),
            path,
            part,
        )
        for model, values in scores_by_model.items()
    ]
    # Said now, and not only in the notes of results: with --json, these are easily overlooked.
    for note in dict.fromkeys(note for scores in all_scores for note in scores.notes):
        _log.info("%s", note)
    return all_scores


def _add_missing(scores: Scores, path: Path, part: Suite) -> Scores:
    """Return the scores with the number of sentences that lack one, and a note on them if they are left out."""
    missing = sum(not scores.has_score_of(sentence) for sentence in part.sentences)
    if not missing or not scores.partial:
        return replace(scores, missing=missing)
    scored = restrict_to_scored(part, [scores])
    dropped = len(part.sentences) - len(scored.sentences)
    lost = len(part.contrasts) - len(scored.contrasts)
    note = (
        f"partial: {missing} of {len(part.sentences)} sentences have no score of {scores.model!r} in {path.name}; "
        f"{dropped} sentences and {lost} of {len(part.contrasts)} contrasts left out"
    )
    return replace(scores, notes=(*scores.notes, note))


def _describe_part(suite: Suite, part: Suite) -> str:
    return (
        f"{part.name}: {len(part.sentences)} of {len(suite.sentences)} sentences and {len(part.contrasts)} of "
        f"{len(suite.contrasts)} contrasts of suite {suite.name!r}"
    )


def _format_where(where: Mapping[str, str] | None) -> str:
    """Return the part of the suite as it stands in a signature; nothing for the whole suite."""
    return f"(where:{','.join(f'{tag}={value}' for tag, value in where.items())})" if where else ""


def _format_columns(columns: Sequence[Mapping[str, str]]) -> str:
    """Return the column mappings as they stand in a signature; nothing for the default names."""
    named = "+".join(",".join(f"{meaning}={column}" for meaning, column in reading.items()) for reading in columns)
    return f"({named})" if named else ""


@dataclass(frozen=True)
class SignedScores:
    """A column of scores in a file, as a signature names it.

    Args:
        file: The name of the file, without its folder.
        content: The hash of its content.
        columns, partial, where: The arguments of ``read_scores``.
        model: The name of the model.
    """

    file: str
    content: str
    columns: tuple[Mapping[str, str], ...]
    partial: bool
    where: Mapping[str, str]
    model: str


_SIGNED_FILE = re.compile(r"file:(?P<file>.+)@(?P<content>[0-9a-f]{12})(?P<rest>.*)\Z", re.DOTALL)


def parse_score_signature(signature: str) -> SignedScores | None:
    """Return what the signature of scores from a file names; None if it is that of a model's scores.

    >>> parse_score_signature("file:mine.csv@5f3e8a0b1c2d(id=key,score=slor)(partial):GPT").columns
    ({'id': 'key', 'score': 'slor'},)
    """
    match = _SIGNED_FILE.match(signature)
    if match is None:
        return None
    options, _, model = match["rest"].rpartition("):") if match["rest"].startswith("(") else ("", "", match["rest"][1:])
    named: tuple[Mapping[str, str], ...] = ({},)
    where: dict[str, str] = {}
    # Names of columns may contain brackets: only what is between two of ours ends an option.
    for option in options.removeprefix("(").split(")(") if options else ():
        if option.startswith("where:"):
            where = _parse_pairs(option.removeprefix("where:"))
        elif option != "partial":
            named = tuple(_parse_pairs(reading) for reading in re.split(rf"\+(?=(?:{'|'.join(_MEANINGS)})=)", option))
    return SignedScores(match["file"], match["content"], named, "(partial)" in f"({options})", where, model)


def _parse_pairs(text: str) -> dict[str, str]:
    """Return the pairs of NAME=VALUE,NAME=VALUE; a comma that no name follows belongs to the value before it."""
    pairs = (part.partition("=") for part in re.split(r",(?=[^,=]+=)", text))
    return {name: value for name, _, value in pairs}


@dataclass(frozen=True, slots=True)
class _ScoreRow:
    """A row of a file of scores: what identifies its sentence, and the cell with its score."""

    line: int
    model: str
    id: str | None
    text: str
    cell: object


def _read_score_rows(path: Path, named: Mapping[str, str], columns: Sequence[Mapping[str, str]]) -> list[_ScoreRow]:
    """Return the rows of a file under one column mapping."""
    try:
        header, rows = read_rows(path)
    except SuiteError as error:
        raise ScoreError(str(error)) from error
    # With an id column for each member of a pair, one text column cannot be that of both: it has to be named.
    is_pairs = len({reading.get("id", "") for reading in columns}) > 1
    column_of = _resolve_columns(path, header, named, find_text=not is_pairs)
    # A file without a column of models is named after its score column, unless several columns are members of pairs.
    named_by = path.stem if len(columns) > 1 else named.get("score", path.stem)
    return [
        _ScoreRow(
            line,
            _to_string(row.get(column_of["model"])) if "model" in column_of else named_by,
            _to_string(row.get(column_of["id"])) if "id" in column_of else None,
            _to_string(row.get(column_of["text"])) if "text" in column_of else "",
            row.get(column_of["score"]),
        )
        for line, row in rows
    ]


def _resolve_columns(path: Path, header: Sequence[str], named: Mapping[str, str], *, find_text: bool) -> dict[str, str]:
    """Return the column of each meaning, after checking that the file has it.

    Args:
        find_text: Whether a column with a usual name is the column of texts if none is named.
    """
    for meaning in named:
        if meaning not in _MEANINGS:
            raise ScoreError(f"no column has the meaning {meaning!r}; the meanings are {', '.join(_MEANINGS)}")
    # A column that the user gave another meaning is not guessed to be the text.
    text_column = next((name for name in TEXT_COLUMNS if name in header and name not in named.values()), None)
    column_of = {"id": "sentence_id", "score": "score"}
    column_of |= {"model": "model"} if "model" in header else {}
    column_of |= {"text": text_column} if text_column and find_text else {}
    column_of |= named
    # The text identifies a sentence as well as an id does.
    if "text" in column_of and "id" not in named and column_of["id"] not in header:
        del column_of["id"]
    for meaning, column in column_of.items():
        if column not in header:
            raise ScoreError(
                f"{path} has no column {column!r} for the {meaning}; it has {', '.join(header) or 'no header'}."
                f"{suggest_name(column, header)} Say which it is: --columns {meaning}=NAME"
            )
    return column_of


_JoinedRow = tuple[_ScoreRow, tuple[str, ...]]


def _join_rows(
    path: Path, rows: Sequence[_ScoreRow], suite: Suite, part: Suite, *, by_position: bool
) -> tuple[list[_JoinedRow], str]:
    """Return each row with the ids that its score belongs to, and a note if these are not the ids in the file.

    Args:
        by_position: Whether rows may be joined by their numbers, if there is nothing else to join them by.
    """
    if not rows:
        return [], ""
    if any(row.id is None for row in rows):
        return _join_by_text(path, rows, suite), f"rows of {path.name} were joined by text"
    are_numbers = _are_row_numbers(rows)
    unknown = next((row for row in rows if not _find_texts(row.id, suite)), None)
    differing = [
        row
        for row in rows
        if row.text and (texts := _find_texts(row.id, suite)) and normalise_text(row.text) not in texts
    ]
    if unknown is None and not differing:
        return [(row, (row.id or "",)) for row in rows], _describe_unchecked_numbers(path, rows, suite)
    # Numbers in another order than the suite's would give each sentence the score of another one.
    if are_numbers and any(row.text for row in rows):
        note = f"rows of {path.name} were joined by text, since its ids only number the rows"
        return _join_by_text(path, rows, suite), note
    if unknown is None:
        raise _contradiction_error(path, rows, differing, suite)
    if are_numbers and by_position:
        return _join_by_position(path, rows, unknown, suite, part)
    hint = f". {_TEXT_HINT}" if unknown.text else ""
    raise ScoreError(
        f"{path}, line {unknown.line}: suite {suite.name!r} has no sentence with the id {unknown.id!r}{hint}"
    )


_TEXT_HINT = "To join the rows by their text, remove the column of ids."


def _describe_unchecked_numbers(path: Path, rows: Sequence[_ScoreRow], suite: Suite) -> str:
    """Return a note on rows that were joined by numbers alone; nothing for other ids, or if all rows have texts."""
    unchecked = sum(not row.text for row in rows)
    # A file in another order may be numbered just as well, and no sentence of it could be told from another.
    if not unchecked or not all((row.id or "").isdecimal() for row in rows):
        return ""
    return (
        f"rows of {path.name} were joined by their numbers: whether these are those of the sentences of suite "
        f"{suite.name!r} cannot be checked, since {unchecked} of {len(rows)} rows have no text"
    )


def _are_row_numbers(rows: Sequence[_ScoreRow]) -> bool:
    """Tell whether the ids of each model are the numbers from 0 or 1 to that of its last row, in any order."""
    ids_of: dict[str, list[str]] = {}
    for row in rows:
        ids_of.setdefault(row.model, []).append(row.id or "")
    return all(
        set(ids) in ({str(number + first) for number in range(len(ids))} for first in (0, 1)) for ids in ids_of.values()
    )


def _find_texts(key: str | None, suite: Suite) -> tuple[str, ...]:
    """Return the texts that a row with an id may have; nothing for an id that the suite does not know."""
    sentence, region = _find_sentence(key or "", suite)
    if sentence is None:
        return ()
    texts = (sentence.text, sentence.text[slice(*sentence.regions[region])]) if region else (sentence.text,)
    return tuple(normalise_text(text) for text in texts)


def _find_sentence(key: str, suite: Suite) -> tuple[Sentence | None, str]:
    """Return the sentence that an id is of, and the region if it names one; None for an unknown id."""
    if key in suite.by_id:
        return suite.by_id[key], ""
    # The score of a region is written under SENTENCE#REGION.
    name, _, region = key.rpartition("#")
    sentence = suite.by_id.get(name)
    return (sentence, region) if sentence and region in sentence.regions else (None, "")


def _contradiction_error(
    path: Path, rows: Sequence[_ScoreRow], differing: Sequence[_ScoreRow], suite: Suite
) -> ScoreError:
    first = differing[0]
    sentence, _ = _find_sentence(first.id or "", suite)
    expected = sentence.text if sentence else ""
    return ScoreError(
        f"{path}: {len(differing)} of {len(rows)} rows have another text than suite {suite.name!r} has under their id; "
        f"the first is line {first.line}, {first.id!r}: {shorten(first.text)!r} in the file, "
        f"{shorten(expected)!r} in the suite. Are these scores of another version of the suite? {_TEXT_HINT}"
    )


def _join_by_text(path: Path, rows: Sequence[_ScoreRow], suite: Suite) -> list[_JoinedRow]:
    """Return each row with the ids of the sentences that have its text."""
    ids_of: dict[str, list[str]] = {}
    for sentence in suite.sentences:
        ids_of.setdefault(normalise_text(sentence.text), []).append(sentence.id)
    joined = [(row, tuple(ids_of.get(normalise_text(row.text), ()))) for row in rows]
    if unknown := [row for row, ids in joined if not ids]:
        raise ScoreError(
            f"{path}: {len(unknown)} of {len(rows)} rows have a text that no sentence of suite {suite.name!r} has; "
            f"the first is line {unknown[0].line}: {shorten(unknown[0].text)!r}. Remove them, or give the suite's ids: "
            "--columns id=NAME"
        )
    _check_unambiguous(path, joined, suite)
    return joined


def _check_unambiguous(path: Path, joined: Sequence[_JoinedRow], suite: Suite) -> None:
    """Raise an error if sentences with the same text have different scores, which could be exchanged."""
    first_of: dict[tuple[str, tuple[str, ...]], _ScoreRow] = {}
    for row, ids in joined:
        if row.cell is None or row.cell == "":
            continue
        first = first_of.setdefault((row.model, ids), row)
        if len(ids) > 1 and parse_number(first.cell) != parse_number(row.cell):
            raise ScoreError(
                f"{path}, line {row.line}: {len(ids)} sentences of suite {suite.name!r} have the text "
                f"{shorten(row.text)!r} ({', '.join(ids[:3])}{', …' if len(ids) > 3 else ''}), and their scores "
                f"differ: {first.cell} in line {first.line}, {row.cell} here. Give the suite's ids: --columns id=NAME"
            )


def _join_by_position(
    path: Path, rows: Sequence[_ScoreRow], unknown: _ScoreRow, suite: Suite, part: Suite
) -> tuple[list[_JoinedRow], str]:
    """Return each row with the id of the sentence that has its number, if there are as many rows as sentences."""
    counts = Counter(row.model for row in rows)
    # The file may be that of the whole suite, or of the part that is measured.
    whole = next((it for it in (suite, part) if set(counts.values()) == {len(it.sentences)}), None)
    if whole is None:
        raise ScoreError(
            f"{path}, line {unknown.line}: suite {suite.name!r} has no sentence with the id {unknown.id!r}. The ids "
            f"only number the rows, and {min(counts.values())} rows cannot be joined by position to "
            f"{len(part.sentences)} sentences: add a column text, or the suite's ids"
        )
    # Numbered from 1, unless the model has a row 0.
    from_zero = {row.model for row in rows if row.id == "0"}
    joined: list[_JoinedRow] = [
        (row, (whole.sentences[int(row.id or 0) - (row.model not in from_zero)].id,)) for row in rows
    ]
    note = (
        f"rows of {path.name} were joined by position: its ids only number the rows, and whether their order is that "
        f"of suite {whole.name!r} cannot be checked, since the file has no texts"
    )
    return joined, note


def _add_scores(
    path: Path,
    suite: Suite,
    part: Suite,
    joined: Sequence[_JoinedRow],
    scores_by_model: dict[str, dict[str, tuple[float, int]]],
    *,
    may_repeat: bool,
) -> int:
    """Add the scores of one column mapping, and return the number of rows without a score.

    Args:
        part: The part of the suite whose scores are added.
        joined: The rows with the ids that their scores belong to.
        scores_by_model: Score and line number by model and sentence id, to which scores are added.
        may_repeat: Whether a sentence may occur again with the same score, as in files of pairs.
    """
    empty = 0
    for row, keys in joined:
        where = f"{path}, line {row.line}"
        is_empty = row.cell is None or row.cell == ""
        score = None if is_empty else _parse_score(row.cell, where)
        wanted = [key for key in keys if (sentence := _find_sentence(key, suite)[0]) and sentence.id in part.by_id]
        if not wanted:
            continue
        # Missing and not 0: a measure that needs this sentence reports it.
        if score is None:
            empty += 1
            continue
        model_scores = scores_by_model.setdefault(row.model, {})
        for key in wanted:
            # Sentences with the same text have a row each, and every row gives all of them the same score.
            repeats = may_repeat or len(keys) > 1
            if key in model_scores and not (repeats and model_scores[key][0] == score):
                raise ScoreError(
                    f"{where}: sentence {key!r} has a score already in line {model_scores[key][1]}"
                    + (f", and another one: {model_scores[key][0]} against {score}" if repeats else "")
                )
            model_scores[key] = score, row.line
    return empty


def _to_string(cell: object) -> str:
    """Return a cell as text: in JSONL, an id may be a number."""
    return cell if isinstance(cell, str) else "" if cell is None else str(cell)


def _parse_score(cell: object, where: str) -> float:
    """Return the score in a cell; raise ScoreError for one that is not a finite number."""
    score = parse_number(cell)
    if score is None:
        raise ScoreError(f"{where}: score is {cell!r}; expected a number, or nothing if there is none")
    if not math.isfinite(score):
        raise ScoreError(f"{where}: score is {cell!r}; expected a finite number")
    return score
