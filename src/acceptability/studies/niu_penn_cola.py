"""Tables 2 and 5 of Niu and Penn (2020) for a model of the user's own: CoLA, raw, per token and as SLOR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.studies.cells import Cell
from acceptability.studies.niu_penn_pbc import SCALES, Scored, model_cell, pbc
from acceptability.suites import load_suite
from acceptability.types import Suite

_PARTS = ("cola/train", "cola/in_domain_dev", "cola/out_of_domain_dev")


def labelled_cola() -> Suite:
    """Return all sentences of CoLA whose labels are published: training set and both development sets, 9,594."""
    return Suite("cola, labelled", tuple(each for name in _PARTS for each in load_suite(name).sentences))


def in_lower_case(suite: Suite) -> Suite:
    """Return a suite with its sentences in lower case."""
    return Suite(f"{suite.name}, lower case", tuple(replace(each, text=each.text.lower()) for each in suite.sentences))


def table_2(model: str, suite: Suite, found: Scored, unigrams: str, missing: str) -> Iterator[Cell]:
    """Yield the correlation of each normalisation.

    Args:
        unigrams: Whose unigrams SLOR subtracts.
        missing: Why there is no SLOR, if there is none.
    """
    for norm, scores in found.items():
        notes = (f"{len(suite.sentences)} sentences", *([unigrams] if norm == "SLOR" else []), *scores.notes)
        for name, scale in SCALES.items():
            number = pbc(suite.sentences, scores, scale)
            yield model_cell("Table 2", f"{model}, {norm}", name, number, model, *notes)
    if missing:
        yield from (model_cell("Table 2", f"{model}, SLOR", name, (None, missing), model) for name in SCALES)


def table_5(model: str, suite: Suite, found: Mapping[str, Scored], norms: Mapping[str, str]) -> Iterator[Cell]:
    """Yield the correlations with the sentences as they are, and in lower case."""
    for norm in norms:
        for name, scale in SCALES.items():
            for case, scores in found.items():
                number = pbc(suite.sentences, scores[norm], scale)
                yield model_cell("Table 5", f"{model}, {norm}", f"{name} {case}", number, model)
