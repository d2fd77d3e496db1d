"""Table 6 of Niu and Penn (2020) for a model of the user's own, and Chomsky's sentence against its reversal.

Table 6 correlates log-probabilities with sense (1) and nonsense (0). Beside it stand the judgements of the
authors on the permutations of "colourless green ideas sleep furiously": grammatical (1) or not (0), all without sense.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.errors import ModelError, Undefined
from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.colorless import ratio
from acceptability.studies.niu_penn_pbc import SCALES, Number, Scored, model_cell, pbc
from acceptability.studies.sense import SEED, nonsense
from acceptability.suites import load_suite
from acceptability.types import Suite

PEREIRA: Key = ("Section 5", "Pereira", "Colorless green ideas … against its reversal, times as probable")
NORMS = ("Raw", "SLOR")
"""What Table 6 has; SLOR where there are unigrams."""

_PERMUTATIONS = "permutations of colourless green ideas sleep furiously, grammatical against not"
SENSE = "our sense against our nonsense"
_NEEDS = "needs a treebank of English to draw strings that make sense from: add --corpus FILE.conllu (or .conllu.xz)"


def permutations() -> Suite:
    """Return the permutations on which the authors decided: 28 grammatical ones and 88 others."""
    decided = tuple(each for each in load_suite("niu_penn2020").sentences if each.label is not None)
    return Suite("niu_penn2020, decided", decided)


def table_6(model: str, permuted: tuple[Suite, Scored], sense: tuple[Suite, Scored] | None) -> Iterator[Cell]:
    """Yield the correlations with sense, and with the grammar of nonsense."""
    yield from _cells(model, _PERMUTATIONS, *permuted, "no sense in either: another question than the paper's")
    if sense is None:
        yield from (model_cell("Table 6", f"{model}, {norm}", SENSE, (None, _NEEDS), model) for norm in permuted[1])
        return
    half, every = len(sense[0].sentences) // 2, len(nonsense())
    note = f"each with a string of the treebank of the same parts of speech, drawn with seed {SEED}; not the paper's"
    yield from _cells(model, SENSE, *sense, f"{half} of our {every} nonsense sentences, {note}")


def _cells(model: str, column: str, suite: Suite, found: Scored, note: str) -> Iterator[Cell]:
    for norm, scores in found.items():
        number = pbc(suite.sentences, scores, SCALES["LOG"])
        yield model_cell("Table 6", f"{model}, {norm}", column, number, model, note, *scores.notes)


def colorless_cell(model: str, values: Mapping[Key, Printed]) -> Cell:
    """Return how many times as probable Chomsky's sentence is as its reversal, beside what the paper quotes."""
    cell = model_cell(PEREIRA[0], model, PEREIRA[2], _times(model), model)
    return replace(cell, paper=values[PEREIRA].value)


def _times(model: str) -> Number:
    try:
        found = ratio(model, lower=True)
        times = found.times
    except (ModelError, Undefined) as error:
        return None, str(error)
    power = f"10 to the power of {found.log10:.2f}; both sentences in lower case"
    other = "the paper's number is of another model and text, so that nothing is compared"
    return times, "; ".join(filter(None, (power, other, found.note)))
