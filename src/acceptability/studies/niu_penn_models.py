"""Tables 2, 3 and 5 of Niu and Penn (2020) for a model of the user's own, under the paper's protocol.

A sentence's log-probability is taken raw, per token, and as SLOR; each as it is and as a power of e.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from acceptability.errors import MissingExtra, Undefined
from acceptability.measures.correlation import pearson
from acceptability.protocols import Engine
from acceptability.scoring import Progress, load_reduction, scored
from acceptability.studies.cells import Cell, beside
from acceptability.studies.minimal import Structures, minimal_structures
from acceptability.suites import load_suite
from acceptability.types import Floats, Scores, Sentence, Suite

_PLAIN = {"Raw": "lp", "Norm": "mean_lp"}
_SLOR = "slor(unigrams='wordfreq:en')"
_WORDFREQ = "unigrams of wordfreq, where the paper counts those of its training corpus"
_COLA = ("cola/train", "cola/in_domain_dev", "cola/out_of_domain_dev")

Scored = Mapping[str, Scores]
"""The scores of one model, by normalisation."""

Number = tuple[float | None, str]
"""A number, or None; and what to know about it, or why there is none."""


def rescored(model: str, *, engine: str | Engine, progress: Progress | None) -> list[Cell]:
    """Return the rows of one model in Tables 2, 3 and 5."""

    def by_norm(suite: Suite, reductions: Mapping[str, str]) -> dict[str, Scores]:
        found = scored(suite, model, list(reductions.values()), engine=engine, progress=progress)
        return dict(zip(reductions, found, strict=True))

    reductions, missing = _reductions()
    cola = labelled_cola()
    with_case = by_norm(cola, reductions)
    lower = by_norm(_lower(cola), _PLAIN)
    inquiry = load_suite("li_adger")
    minimal = minimal_structures(inquiry)
    strings = Suite("minimal structures", tuple(each for strings in minimal.values() for each in strings))
    return [
        *_table_2(model, cola, with_case, missing),
        *_table_3(model, minimal, by_norm(strings, _PLAIN)),
        *_table_5(model, cola, {"with case": with_case, "lower": lower}),
    ]


def labelled_cola() -> Suite:
    """Return all sentences of CoLA whose labels are published: training set and both development sets, 9,594."""
    return Suite("cola, labelled", tuple(each for name in _COLA for each in load_suite(name).sentences))


def _lower(suite: Suite) -> Suite:
    return Suite(f"{suite.name}, lower case", tuple(replace(each, text=each.text.lower()) for each in suite.sentences))


def _reductions() -> tuple[dict[str, str], str]:
    """Return the reductions of Table 2, and why SLOR is not among them if it is not."""
    try:
        load_reduction(_SLOR)
    except MissingExtra as error:
        return _PLAIN, str(error)
    return {**_PLAIN, "SLOR": _SLOR}, ""


def _table_2(model: str, suite: Suite, found: Scored, missing: str) -> Iterator[Cell]:
    for norm, scores in found.items():
        notes = (f"{len(suite.sentences)} sentences", *([_WORDFREQ] if norm == "SLOR" else []), *scores.notes)
        for scale, power in _SCALES.items():
            yield _cell("Table 2", f"{model}, {norm}", scale, _pbc(suite.sentences, scores, power), model, *notes)
    if missing:
        yield from (_cell("Table 2", f"{model}, SLOR", scale, (None, missing), model) for scale in _SCALES)


def _table_3(model: str, minimal: Structures, found: Scored) -> Iterator[Cell]:
    for norm, scores in found.items():
        for scale, power in _SCALES.items():
            number = _median([_pbc(strings, scores, power) for strings in minimal.values()])
            yield _cell("Table 3", f"{model}, {norm}", scale, number, model)


def _table_5(model: str, suite: Suite, found: Mapping[str, Scored]) -> Iterator[Cell]:
    for norm in _PLAIN:
        for scale, power in _SCALES.items():
            for case, scores in found.items():
                number = _pbc(suite.sentences, scores[norm], power)
                yield _cell("Table 5", f"{model}, {norm}", f"{scale} {case}", number, model)


def _cell(table: str, row: str, column: str, number: Number, model: str, *notes: str) -> Cell:
    value, note = number
    return beside(
        {}, (table, row, column), value, f"re-scored with {model}", note="; ".join(filter(None, (note, *notes)))
    )


def _pbc(sentences: Sequence[Sentence], scores: Scores, power: Callable[[Floats], Floats]) -> Number:
    """Return the point-biserial correlation of scores and labels."""
    labels = np.array([float(each.label or 0) for each in sentences])
    try:
        return pearson(power(scores.of(each.id for each in sentences)), labels), ""
    except Undefined as error:
        return None, str(error)


def _median(of: Sequence[Number]) -> Number:
    """Return the median over the sets that have a correlation, and say how many have none."""
    values = [value for value, _ in of if value is not None]
    if not values:
        return None, f"no set has a correlation: {of[0][1]}"
    without = len(of) - len(values)
    left_out = f"; {without} more have none and are left out" if without else ""
    return float(np.median(values)), f"median of {len(values)} sets{left_out}"


def _raised(logs: Floats) -> Floats:
    """Return e to the power of logs, up to a factor, which no correlation sees; so that the largest is 1."""
    return np.asarray(np.exp(logs - logs.max()))


def _as_they_are(logs: Floats) -> Floats:
    return logs


_SCALES: dict[str, Callable[[Floats], Floats]] = {"LOG": _as_they_are, "EXP": _raised}
