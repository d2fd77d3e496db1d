"""The human validation of the NPI paper: people's ratings from 1 to 6, as agreement with the labels, and as a contrast.

The paper's 10,000 ratings are not published. A file of a user's own has a row an answer: participant, sentence (or its
id), response; perhaps environment, npi (the word) and label, which else come from the suite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from acceptability.errors import SuiteError, Undefined
from acceptability.people.reading import read_responses, rows_of_source
from acceptability.people.responses import Responses
from acceptability.people.validation import UNITS, by_tag, contrasted, validation
from acceptability.studies.cells import Cell, Key, Printed, not_compared
from acceptability.studies.npi_data import ENVIRONMENT, short, with_factors
from acceptability.suites import load_suite
from acceptability.types import Sentence

TABLE = "Human validation"
_AGREEMENT = "agreement %"
_OWN = (ENVIRONMENT, "label")
"""Columns with which a file of ratings says itself what the sentences are."""


def people_cells(file: str | Path, suite: str, values: Mapping[Key, Printed]) -> Iterator[Cell]:
    """Yield how ratings agree with labels: of all sentences, by NPI, by environment, and by both."""
    everyone = read_ratings(file, suite)
    source = f"ratings in {Path(file).name}"
    for row, some in _groups(everyone):
        for column, (ours, note) in _numbers(some):
            yield not_compared(values, (TABLE, row, column), ours, source, note=note)


def read_ratings(file: str | Path, suite: str = "") -> Responses:
    """Return ratings, their sentences with label, environment and ``word``, the NPI that the paradigm is about."""
    header, _ = rows_of_source(file)
    known = None if all(name in header for name in _OWN) else with_factors(load_suite(suite or "npi"))
    found = read_responses(file, kind="likert", suite=known)
    return replace(found, sentences=tuple(_with_word(each, found.name) for each in found.sentences))


def _with_word(each: Sentence, name: str) -> Sentence:
    """Return a sentence whose tag ``word`` is its NPI, or the one that its paradigm has."""
    if ENVIRONMENT not in each.tags:
        raise SuiteError(f"{name}: {each.id!r} has no tag {ENVIRONMENT!r}")
    told = (each.tags.get(tag, "") for tag in ("word", "npi_word", "npi"))
    word = next((word for word in told if word and word not in ("0", "1")), "")
    return replace(each, tags={**each.tags, "word": word} if word else each.tags)


def _groups(everyone: Responses) -> Iterator[tuple[str, Responses]]:
    """Yield the rows of the table, with the answers that each is about."""
    yield "all sentences", everyone
    for label, name in ((1, "acceptable sentences"), (0, "unacceptable sentences")):
        some = everyone.of(_labelled(label))
        if some.sentences:
            yield name, some
    yield from by_tag(everyone, "word")
    for environment, some in by_tag(everyone, ENVIRONMENT):
        yield short(environment), some
        for word, part in by_tag(some, "word"):
            yield f"{short(environment)}, {word}", part


def _labelled(label: int) -> Callable[[Sentence], bool]:
    return lambda sentence: sentence.label == label


def _numbers(some: Responses) -> Iterator[tuple[str, tuple[float | None, str]]]:
    found = validation(some)
    about = f"{found.answers} answers to {found.sentences} sentences"
    yield _AGREEMENT, (100 * found.overall, about)
    if found.acceptable is None or found.unacceptable is None:
        return
    yield "acceptable, rated acceptable %", (100 * found.acceptable, about)
    yield "unacceptable, rated acceptable %", (100 * (1 - found.unacceptable), about)
    for raw, what in ((True, "ratings"), (False, "Booleans")):
        for unit in UNITS:
            yield f"signed-rank p, {what}, by {unit}", _tested(some, unit, raw)


def _tested(some: Responses, unit: str, raw: bool) -> tuple[float | None, str]:
    try:
        found = contrasted(some, unit, raw=raw)
    except Undefined as error:
        return None, str(error)
    return found.p, f"one-sided, {found.n} pairs, rank-biserial {found.rank_biserial:.3f}"
