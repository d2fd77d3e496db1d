"""Niu and Penn (2020), "Grammaticality and Language Modelling": every number that follows from published data.

Sections 3 and 4 test and correlate the surprisals of Hu, Chen and Levy (2020) anew. Tables 1 to 6 are of models
that were not published; what is printed there is shown, is compared with itself where it contradicts itself, and
a model of the user's own joins every table under the paper's protocol. One that was trained here by the recipe of
a row of the paper stands in that row too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from acceptability.errors import SpellingError
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell, Key, Printed, beside, printed, same
from acceptability.studies.hu import combinations
from acceptability.studies.hu_accuracy import accuracy_cells
from acceptability.studies.minimal import minimal_structures
from acceptability.studies.niu_penn_gpt2 import PLACES, called, name_in, ours
from acceptability.studies.niu_penn_groups import Group, group_counts, microgroups, told_counts
from acceptability.studies.niu_penn_models import Asked, rescored, with_text
from acceptability.studies.niu_penn_rows import NOT_COMPUTED, in_paper, place_in, placed
from acceptability.studies.niu_penn_sets import set_cells
from acceptability.studies.niu_penn_texts import given
from acceptability.suites import load_suite
from acceptability.types import Suite

_ITSELF = "the paper's own tables"
_SENTENCES = "published sentences"

_NOT_AVAILABLE = "not available"
_UNPUBLISHED = "the paper's own models are not published"
_NEEDS = {
    "Section 5": f"{_UNPUBLISHED}; --model adds a row",
    "Table 1": f"{_UNPUBLISHED}, nor are its test sets",
    "Table 2": _UNPUBLISHED,
    "Table 3": _UNPUBLISHED,
    "Table 4": f"{_UNPUBLISHED}, nor are its microgroups of CoLA: ours are on groups of our own",
    "Table 5": _UNPUBLISHED,
    "Table 6": f"{_UNPUBLISHED}, nor are its 36 strings of the BNC: ours are on strings of our own",
}
_OTHER_DATA = {
    "Table 1": "the paper's test sets are not published; --model and --corpus add rows on another text",
    "Table 4": "the microgroups of CoLA are not published; --model adds rows on groups of our own",
    "Table 6": "the 36 strings of the BNC are not published; --model adds rows on strings of our own",
}
_TRAINED = ("Mikolov", "QRNN regular", "QRNN TAS")


def cells(
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and those of a user's models.

    Args:
        corpus: Texts for the perplexities of Table 1, a column each, of which the first is the one for the paper's own
            rows; and treebanks (CoNLL-U files) for Table 6.
    """
    if corpus and not models:
        raise SpellingError("--corpus is text to measure models on: give a --model too")
    trained = placed(models)
    texts, values, groups = given(corpus), printed("niu_penn"), microgroups()
    every = combinations()
    found = [*set_cells(values, every), *accuracy_cells(every), *_counts(values, groups), *_contradictions(values)]
    own = {model: rescored(Asked(model, engine, progress), texts, groups, values) for model in models}
    asked = [cell for model, its in own.items() for cell in with_text(model, its)]
    known = _of_gpt2(values, models, asked)
    known |= in_paper(values, trained, _by_key(cell for its in own.values() for cell in its))
    for table in _NEEDS:
        found += [known.get(key) or _missing(values, key) for key in values if key[0] == table]
        found += [cell for cell in asked if cell.table == table]
    return found


def _missing(values: Mapping[Key, Printed], key: Key) -> Cell:
    """Return what the paper prints where no model was given that could stand there."""
    place = place_in(key)
    note = "; ".join(filter(None, (_NEEDS[key[0]], place.wanted() if place else "")))
    return beside(values, key, None, NOT_COMPUTED, note=note)


def _by_key(cells: Iterable[Cell]) -> dict[Key, Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def _of_gpt2(values: Mapping[Key, Printed], models: Sequence[str], asked: Sequence[Cell]) -> dict[Key, Cell]:
    """Return the paper's rows of GPT-2, filled where the user has the same model and we have the same sentences."""
    by_key, given_ones, found = _by_key(asked), called(models), dict[Key, Cell]()
    for key in values:
        name = name_in(key) if key[0] in _NEEDS else None
        if name is None:
            continue
        model = given_ones.get(name)
        cell = ours(key, model, by_key) if model else None
        if cell:
            found[key] = beside(values, key, cell.ours, cell.source, note=cell.note)
        else:
            note = _OTHER_DATA.get(key[0], f"GPT-2 is public: give --model causal:{PLACES[name]}")
            found[key] = beside(values, key, None, _NOT_AVAILABLE, note=note)
    return found


def _counts(values: Mapping[Key, Printed], groups: Sequence[Group]) -> list[Cell]:
    """Return how many sentences the paper's corpora have, as told in section 5."""
    told = [key for key in values if key[0] in ("Section 5.1", "Section 5.2", "Section 5.6")]
    counted = _cola() | _li(load_suite("li_adger")) | _nonsense(load_suite("niu_penn2020"))
    known = {key: beside(values, key, counted[key[1:]], _SENTENCES) for key in told if key[1:] in counted}
    known |= told_counts(values, groups)
    return [known.get(key) or beside(values, key, None, NOT_COMPUTED) for key in told] + group_counts(groups)


def _cola() -> dict[tuple[str, str], int]:
    train, *dev = (
        len(load_suite(f"cola/{part}").sentences) for part in ("train", "in_domain_dev", "out_of_domain_dev")
    )
    return {("CoLA", "training set"): train, ("CoLA", "development sets"): sum(dev)}


def _li(suite: Suite) -> dict[tuple[str, str], int]:
    inquiry, adger = ([each for each in suite.sentences if each.tags["source"] == name] for name in ("LI", "Adger"))
    structures = {each.tags["type"] for each in inquiry}
    minimal = minimal_structures(suite)
    row = "Linguistic Inquiry"
    return {
        (row, "structures"): len(structures),
        (row, "sentences a structure"): len(inquiry) // len(structures),
        (row, "strings"): len(inquiry),
        (row, "grammatical"): sum(each.label == 1 for each in inquiry),
        (row, "minimal structures"): len(minimal),
        (row, "strings in minimal structures"): sum(map(len, minimal.values())),
        ("Adger", "structures"): len({each.tags["type"] for each in adger}),
    }


def _nonsense(suite: Suite) -> dict[tuple[str, str], int]:
    return {("sensicality", "nonsense sentences"): sum(each.label == 1 for each in suite.sentences)}


def _contradictions(values: Mapping[Key, Printed]) -> list[Cell]:
    """Return the places where the paper prints two numbers for one thing."""
    found = []
    for norm in ("Raw", "Norm"):
        for scale in ("LOG", "EXP"):
            column = f"{scale} with case"
            for model in _TRAINED:
                key = "Table 2", f"{model}, {norm}", f"WT103 {scale}"
                found.append(_against(values, ("Table 5", f"{model}, {norm}", column), key))
            for model in ("GPT-2", "GPT-2 XL"):
                key = "Table 2", f"GPT-2 models, {norm}", f"{model} {scale}"
                found.append(_against(values, ("Table 5", f"{model}, {norm}", column), key))
    for scale in ("LOG", "EXP"):
        place = "Table 2", "QRNN TAS, Norm", f"BNC {scale}"
        found.append(_against(values, place, ("Table 5", "QRNN TAS, Norm", f"{scale} with case")))
    return sorted(found, key=lambda cell: cell.row)


def _against(values: Mapping[Key, Printed], first: Key, second: Key) -> Cell:
    """Return what the paper prints in one place, with what it prints for the same thing in another as ours."""
    one, other = values[first].value, values[second].value
    elsewhere = [key for key in values if key[0] == "Table 2" and key != first and values[key].value == one]
    where = " and ".join(f"{row}, {column}" for _, row, column in elsewhere)
    note = f"Table 2 prints {one} for {where}" if where else f"Table 2 prints {one} nowhere"
    note = f"ours is what {second[0]} prints for {second[1]}, {second[2]}; {note}"
    place = "Contradictions", ": ".join(first[:2]), first[2]
    return Cell(*place, one, float(other), _ITSELF, same(float(other), one), note)
