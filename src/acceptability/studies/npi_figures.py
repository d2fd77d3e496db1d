"""Figures 1 and 2 of the NPI paper, and 5 to 8 of its appendix: classifiers in every configuration, by environment.

Rows are a model and a configuration, columns the environments: what a heat map has on its two sides. Models that
learnt another task first stand in the figures of the appendix, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.npi_data import FACTORS, short
from acceptability.studies.npi_judged import MEASURES, Told, Verdicts
from acceptability.studies.npi_plan import BAG
from acceptability.train.classifiers.configurations import (
    ALL,
    ALL_BUT,
    AVERAGE_OTHER,
    ONE,
    OTHER,
    ROWS,
    Configuration,
    told_elsewhere,
    told_of,
)

NAMES = {OTHER: "CoLA", ONE: "1 NPI", AVERAGE_OTHER: "Avg Other NPI", ALL_BUT: "All-but-1 NPI", ALL: "All NPI"}
"""What the paper calls the configurations."""

WILCOX_COLUMN = "Wilcox et al."
BY_TRAINING = "Boolean acceptability by training environment"
_APPENDIX = {
    "Figure 1": "Figure 5",
    "Figure 2, npi": "Figure 6",
    "Figure 2, licensor": "Figure 7",
    "Figure 2, scope": "Figure 8",
}
_PAPERS = {"cbow": "GloVe BoW", "transformer": "BERT"}
Values = Mapping[Key, Printed]


def figures(found: Verdicts, values: Values) -> Iterator[Cell]:
    """Yield Figures 1 and 2 for one model, or those of the appendix, and what each environment teaches for each."""
    yield from _figure_1(found, values)
    yield from _by_training(found)
    yield from _figure_2(found, values)


def _figure_1(found: Verdicts, values: Values) -> Iterator[Cell]:
    groups = found.material.groups
    for row in ROWS:
        for group in groups:
            yield _cell(found, values, "Figure 1", (row, ""), group, found.boolean(told_of(row, group, groups), group))
        if several := told_elsewhere(row, groups):
            told = found.elsewhere(several)
            each = f"the mean over {len(several)} classifiers, since these sentences are of no environment"
            note = "; ".join(filter(None, (told.note, each if len(several) > 1 else "")))
            yield _cell(found, values, "Figure 1", (row, ""), WILCOX_COLUMN, replace(told, note=note))


def _by_training(found: Verdicts) -> Iterator[Cell]:
    """Yield a matrix: what one was taught on, and where it was measured."""
    groups = found.material.groups
    for learnt in groups:
        for group in groups:
            told = found.boolean([Configuration(ONE, learnt)], group)
            row = f"{found.model.name}: {short(learnt)} only"
            yield Cell(BY_TRAINING, row, short(group), None, told.value, _source(found), None, _note(found, told))


def _figure_2(found: Verdicts, values: Values) -> Iterator[Cell]:
    groups = found.material.groups
    for changed in FACTORS:
        for measure in MEASURES:
            for row in ROWS:
                for group in groups:
                    told = found.pairs(told_of(row, group, groups), measure, changed, group)
                    yield _cell(found, values, f"Figure 2, {changed}", (row, measure), group, told)


def _cell(found: Verdicts, values: Values, table: str, row: tuple[str, str], group: str, told: Told) -> Cell:
    """Return a number beside what the paper prints for a model of the same kind, which is another one."""
    configuration, measure = row
    tail = ", ".join(filter(None, (measure, NAMES[configuration])))
    there = values.get((table, f"{_PAPERS[found.model.kind]}: {tail}", short(group)))
    where = _APPENDIX[table] if found.model.after else table
    note = _note(found, told)
    if there:
        note = "; ".join(filter(None, (note, f"the paper's is of {_PAPERS[found.model.kind]}", there.note)))
    paper = there.value if there else None
    return Cell(where, f"{found.model.name}: {tail}", short(group), paper, told.value, _source(found), None, note)


def _source(found: Verdicts) -> str:
    vectors = f" over {found.model.options['vectors']}" if found.model.options.get("vectors") else ""
    what = (
        f"a bag of words{vectors}"
        if found.model.name == BAG
        else f"{found.model.name}, fine-tuned{f' after {found.model.after}' if found.model.after else ''}"
    )
    return f"{what}; sentences: {'published' if found.material.name == 'npi' else found.material.name}"


def _note(found: Verdicts, told: Told) -> str:
    few = f"learnt from at most {found.model.most} sentences" if found.model.most else ""
    part = f"measured on about {found.model.judged} test sentences of each environment" if found.model.judged else ""
    return "; ".join(filter(None, (told.note, few, part, found.signature)))
