"""Niu and Penn (2020), "Grammaticality and Language Modelling", recomputed as far as the data are published.

Sections 3 and 4 test and correlate the published surprisals of Hu, Chen and Levy (2020). Tables 1 to 6 are of models
that are not published. Their values are shown, and where the paper prints two numbers for one thing, both. A user's own
model joins every table under the paper's protocol; one that was trained by our recipe for a row of the paper is shown
in that row as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from acceptability.api.scoring import ProgressCallback
from acceptability.errors import SpecError
from acceptability.papers import CORPUS, Paper
from acceptability.papers.cells import Cell, CellKey, PublishedValues, make_cell, read_published_values, rounds_to
from acceptability.papers.niu_penn.hu_surprisals import compute_accuracy_cells, compute_set_cells, load_combinations
from acceptability.papers.niu_penn.model_rows import (
    CHECKPOINTS,
    NOT_COMPUTED,
    fill_paper_cells,
    find_gpt2_name,
    find_paper_model,
    find_user_cell,
    index_by_paper_model,
    match_gpt2_models,
)
from acceptability.papers.niu_penn.pbc_tables import (
    Microgroup,
    compare_group_counts,
    count_groups,
    find_microgroups,
    select_minimal_structures,
)
from acceptability.papers.niu_penn.user_models import StudyModel, add_training_notes, read_study_texts, rescore_model
from acceptability.protocols import Engine
from acceptability.suites import load_suite
from acceptability.types import Suite

_OWN_TABLES = "the paper's own tables"
_PUBLISHED_SENTENCES = "published sentences"

_NOT_AVAILABLE = "not available"
_UNPUBLISHED = "the paper's own models are not published"
_MISSING_NOTES = {
    "Section 5": f"{_UNPUBLISHED}; --model adds a row",
    "Table 1": f"{_UNPUBLISHED}, nor are its test sets",
    "Table 2": _UNPUBLISHED,
    "Table 3": _UNPUBLISHED,
    "Table 4": f"{_UNPUBLISHED}, nor are its microgroups of CoLA: ours are on groups of our own",
    "Table 5": _UNPUBLISHED,
    "Table 6": f"{_UNPUBLISHED}, nor are its 36 strings of the BNC: ours are on strings of our own",
}
_GPT2_MISSING_NOTES = {
    "Table 1": "the paper's test sets are not published; --model and --corpus add rows on another text",
    "Table 4": "the microgroups of CoLA are not published; --model adds rows on groups of our own",
    "Table 6": "the 36 strings of the BNC are not published; --model adds rows on strings of our own",
}
# The models whose training text the paper varies: they have columns for the BNC and for WikiText-103.
_TRAINED_MODELS = ("Mikolov", "QRNN regular", "QRNN TAS")


def cells(
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and those of the user's models.

    Args:
        models: Language models.
        corpus: Texts for the perplexities of Table 1, one column each, of which the first is used in the paper's own
            rows; and treebanks (CoNLL-U files) for Table 6.
        engine: Where the models run: ``local`` or ``ray(...)``.
        progress: Called with the progress of scoring.
    """
    if corpus and not models:
        raise SpecError("--corpus is text to measure models on: give a --model too")
    # First, because two models for one row are an error, which should not wait for the scoring.
    models_by_paper_model = index_by_paper_model(models)
    texts, values, groups = read_study_texts(corpus), read_published_values("niu_penn"), find_microgroups()
    all_combinations = load_combinations()
    all_cells = [
        *compute_set_cells(values, all_combinations),
        *compute_accuracy_cells(all_combinations),
        *_compute_corpus_counts(values, groups),
        *_find_contradictions(values),
    ]
    # Twice by design: a user's model has rows of its own, and those of the paper's model that it corresponds to.
    cells_by_model = {
        model: rescore_model(StudyModel(model, engine, progress), texts, groups, values) for model in models
    }
    model_cells = [cell for model, own_cells in cells_by_model.items() for cell in add_training_notes(model, own_cells)]
    filled_cells = compute_gpt2_cells(values, models, model_cells)
    filled_cells |= fill_paper_cells(
        values,
        models_by_paper_model,
        _index_by_key(cell for own_cells in cells_by_model.values() for cell in own_cells),
    )
    for table in _MISSING_NOTES:
        all_cells += [filled_cells.get(key) or _make_missing_cell(values, key) for key in values if key[0] == table]
        all_cells += [cell for cell in model_cells if cell.table == table]
    return all_cells


def _make_missing_cell(values: PublishedValues, key: CellKey) -> Cell:
    """Return the paper's value for a cell that no given model can fill, with a note on which model would."""
    paper_model = find_paper_model(key)
    note = "; ".join(filter(None, (_MISSING_NOTES[key[0]], paper_model.describe_wanted_model() if paper_model else "")))
    return make_cell(values, key, None, NOT_COMPUTED, note=note)


def _index_by_key(cells: Iterable[Cell]) -> dict[CellKey, Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in cells}


def compute_gpt2_cells(
    values: PublishedValues, models: Sequence[str], model_cells: Sequence[Cell]
) -> dict[CellKey, Cell]:
    """Return the paper's rows of GPT-2, filled if the user has the same model and the sentences are published.

    Args:
        values: The paper's values.
        models: The user's models.
        model_cells: The cells of the user's models in rows of their own.
    """
    by_key, user_models, filled_cells = _index_by_key(model_cells), match_gpt2_models(models), dict[CellKey, Cell]()
    for key in values:
        name = find_gpt2_name(key) if key[0] in _MISSING_NOTES else None
        if name is None:
            continue
        model = user_models.get(name)
        cell = find_user_cell(key, model, by_key) if model else None
        if cell:
            # The same model on the same sentences: unlike all other rows of models, these numbers should agree.
            filled_cells[key] = make_cell(values, key, cell.ours, cell.source, note=cell.note)
        else:
            note = _GPT2_MISSING_NOTES.get(key[0], f"GPT-2 is public: give --model causal:{CHECKPOINTS[name]}")
            filled_cells[key] = make_cell(values, key, None, _NOT_AVAILABLE, note=note)
    return filled_cells


def _compute_corpus_counts(values: PublishedValues, groups: Sequence[Microgroup]) -> list[Cell]:
    """Return the sizes of the paper's corpora, which section 5 gives."""
    printed_keys = [key for key in values if key[0] in ("Section 5.1", "Section 5.2", "Section 5.6")]
    counts = (
        _count_cola() | _count_linguistic_inquiry(load_suite("li_adger")) | _count_nonsense(load_suite("niu_penn2020"))
    )
    known_cells = {
        key: make_cell(values, key, counts[key[1:]], _PUBLISHED_SENTENCES) for key in printed_keys if key[1:] in counts
    }
    known_cells |= compare_group_counts(values, groups)
    return [known_cells.get(key) or make_cell(values, key, None, NOT_COMPUTED) for key in printed_keys] + count_groups(
        groups
    )


def _count_cola() -> dict[tuple[str, str], int]:
    train, *dev = (
        len(load_suite(f"cola/{part}").sentences) for part in ("train", "in_domain_dev", "out_of_domain_dev")
    )
    return {("CoLA", "training set"): train, ("CoLA", "development sets"): sum(dev)}


def _count_linguistic_inquiry(suite: Suite) -> dict[tuple[str, str], int]:
    inquiry, adger = (
        [sentence for sentence in suite.sentences if sentence.tags["source"] == name] for name in ("LI", "Adger")
    )
    structures = {sentence.tags["type"] for sentence in inquiry}
    minimal = select_minimal_structures(suite)
    row = "Linguistic Inquiry"
    return {
        (row, "structures"): len(structures),
        (row, "sentences a structure"): len(inquiry) // len(structures),
        (row, "strings"): len(inquiry),
        (row, "grammatical"): sum(sentence.label == 1 for sentence in inquiry),
        (row, "minimal structures"): len(minimal),
        (row, "strings in minimal structures"): sum(map(len, minimal.values())),
        ("Adger", "structures"): len({sentence.tags["type"] for sentence in adger}),
    }


def _count_nonsense(suite: Suite) -> dict[tuple[str, str], int]:
    return {("sensicality", "nonsense sentences"): sum(sentence.label == 1 for sentence in suite.sentences)}


def _find_contradictions(values: PublishedValues) -> list[Cell]:
    """Return the pairs of cells in which the paper prints two different numbers for the same thing."""
    # Table 5, "with case", repeats the experiment of Table 2 on WikiText-103, whose models have upper and lower case:
    # the numbers should be the same.
    contradictions = []
    for norm in ("Raw", "Norm"):
        for scale in ("LOG", "EXP"):
            column = f"{scale} with case"
            for model in _TRAINED_MODELS:
                key = "Table 2", f"{model}, {norm}", f"WT103 {scale}"
                contradictions.append(_compare_printed(values, ("Table 5", f"{model}, {norm}", column), key))
            for model in ("GPT-2", "GPT-2 XL"):
                key = "Table 2", f"GPT-2 models, {norm}", f"{model} {scale}"
                contradictions.append(_compare_printed(values, ("Table 5", f"{model}, {norm}", column), key))
    # Table 5 has the numbers of Table 2's column of the BNC, except in this row, where Table 2 repeats another one
    # (QRNN regular, Raw).
    for scale in ("LOG", "EXP"):
        first_key = "Table 2", "QRNN TAS, Norm", f"BNC {scale}"
        contradictions.append(_compare_printed(values, first_key, ("Table 5", "QRNN TAS, Norm", f"{scale} with case")))
    return sorted(contradictions, key=lambda cell: cell.row)


def _compare_printed(values: PublishedValues, first: CellKey, second: CellKey) -> Cell:
    """Return a cell that shows one printed number as the paper's, and the other, for the same thing, as ours."""
    first_value, second_value = values[first].value, values[second].value
    # Where else the same digits are printed hints at which row was copied into which.
    elsewhere = [key for key in values if key[0] == "Table 2" and key != first and values[key].value == first_value]
    where = " and ".join(f"{row}, {column}" for _, row, column in elsewhere)
    note = f"Table 2 prints {first_value} for {where}" if where else f"Table 2 prints {first_value} nowhere"
    note = f"ours is what {second[0]} prints for {second[1]}, {second[2]}; {note}"
    cell_key = "Contradictions", ": ".join(first[:2]), first[2]
    return Cell(
        *cell_key, first_value, float(second_value), _OWN_TABLES, rounds_to(float(second_value), first_value), note
    )


PAPER = Paper(
    "Niu and Penn (2020), Grammaticality and Language Modelling.",
    cells,
    tables=(
        "Section 1",
        "Section 3.1",
        "Section 3.2",
        "Figure 1",
        "Figure 2",
        "Section 4",
        "Hu et al. (2020)",
        "Section 5",
        "Section 5.1",
        "Section 5.2",
        "Section 5.6",
        *(f"Table {number}" for number in range(1, 7)),
        "Contradictions",
    ),
    options=(CORPUS,),
)
