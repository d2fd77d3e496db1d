"""Warstadt, Singh and Bowman (2019), "Neural Network Acceptability Judgments" (CoLA), computed again.

What needs no model is always there: the corpus, its splits, and people. Language models and classifiers of the user's
own join under the paper's protocol; folders of restarts fill the rows that are means over restarts, the learning curve
and the splits. Table 5 and Figures 2 and 3 of the ADC paper, which are of classifiers on CoLA too, are here as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from acceptability.errors import SpellingError
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.spelling import read_located
from acceptability.studies.cells import Cell, Key, Printed, beside, printed
from acceptability.studies.cola_classifiers import ADC_TABLE, Judges, adc_values, classifier_cells, of_group
from acceptability.studies.cola_corpus import corpus_cells
from acceptability.studies.cola_design import figure_3, table_5
from acceptability.studies.cola_groups import Group, groups
from acceptability.studies.cola_models import language_model_cells
from acceptability.studies.cola_rows import taught_model
from acceptability.studies.cola_splits import split_cells, told_cells
from acceptability.studies.humans import cola_people
from acceptability.studies.niu_penn_models import Asked
from acceptability.studies.niu_penn_texts import Texts, given

_PEOPLE = {
    "CoLA (Warstadt et al. 2019), Table 4": "Table 4",
    "CoLA (Warstadt et al. 2019), section 3": "Section 3",
    "ADC (Vázquez Martínez 2021), Table 5": ADC_TABLE,
}
_NEEDS = {
    "Section 4.1": "needs the language model: --model recurrent:DIR with --corpus FILE",
    "Table 4": "the paper's models are not published; --model and --restarts fill the row with ours",
    "Table 5": "the paper's models are not published; --restarts DIR, with folders split-NAME, fills the row with ours",
    "Table 6": "the paper's models are not published; --model and --restarts fill the row with ours",
    ADC_TABLE: "the papers' models are not published; --restarts fills the row of a classifier of the same kind",
}
_ORDER = (
    "Section 3",
    "Table 2",
    "Table 3",
    "Figure 1",
    "Section 4.1",
    "Table 4",
    "Figure 3",
    "Table 5",
    "Section 6",
    "Figure 4",
    "Section 7.2",
    "Table 6",
    ADC_TABLE,
    "ADC paper, Figure 2",
    "ADC paper, Figure 3",
)


def cells(
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    restarts: Sequence[str | Path] = (),
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and those of a user's models.

    Args:
        models: Language models, and classifiers (``classifier:DIR``).
        corpus: Texts for the perplexities of language models.
        restarts: Folders of classifiers that were taught from several seeds.
    """
    if corpus and not models:
        raise SpellingError("--corpus is text to measure models on: give a --model too")
    values, texts, found_groups = printed("cola") | adc_values(), given(corpus), groups(restarts)
    found = [*corpus_cells(values), *split_cells(values), *told_cells(values), *_people()]
    for model in models:
        found += _of_model(Asked(model, engine, progress), values, texts)
    found += _of_groups(found_groups, values, Asked("", engine, progress))
    found += _missing(values, found)
    return _in_order(found, values)


def _in_order(found: Sequence[Cell], values: Mapping[Key, Printed]) -> list[Cell]:
    """Return the cells by table, what is printed first and in its order."""
    place = {key: number for number, key in enumerate(values)}

    def order(cell: Cell) -> tuple[int, int]:
        return _ORDER.index(cell.table), place.get((cell.table, cell.row, cell.column), len(place))

    return sorted(found, key=order)


def _people() -> list[Cell]:
    """Return the rows of people, under the tables' names here."""
    columns = {"Mean": "mean", "STD": "standard deviation", "Max": "max", "Ensemble": "ensemble"}
    found = [replace(cell, table=_PEOPLE[cell.table]) for cell in cola_people()]
    return [
        replace(cell, row="Human (Warstadt et al.)", column=columns[cell.column]) if cell.table == ADC_TABLE else cell
        for cell in found
    ]


def _of_model(asked: Asked, values: Mapping[Key, Printed], texts: Texts) -> list[Cell]:
    if read_located(asked.model)[0] != "classifier":
        return language_model_cells(asked, values, texts.plain)
    return classifier_cells(Judges(asked.model, (asked,), taught_model(asked.model)), values)


def _of_groups(given_ones: Sequence[Group], values: Mapping[Key, Printed], like: Asked) -> list[Cell]:
    curve = [each for each in given_ones if each.size is not None]
    splits = [each for each in given_ones if each.split]
    found = [*figure_3(curve, like), *table_5(splits, values, like)]
    for group in given_ones:
        if group not in curve and group not in splits:
            found += classifier_cells(of_group(group, like), values)
    return found


def _missing(values: Mapping[Key, Printed], found: Sequence[Cell]) -> list[Cell]:
    """Return what the paper prints where nothing of ours stands yet."""
    known = {(cell.table, cell.row, cell.column) for cell in found}
    return [
        beside(values, key, None, "not computed", note=_NEEDS.get(key[0], "")) for key in values if key not in known
    ]
