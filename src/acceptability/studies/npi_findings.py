"""What the NPI paper says of its figures in words, and the mean of the same places of ours beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.npi_data import FACTORS
from acceptability.studies.npi_judged import MEASURES, Verdicts
from acceptability.studies.npi_plan import BAG
from acceptability.train.classifiers.configurations import ROWS, told_of

TABLE = "Findings"
_PAPERS = {"cbow": "GloVe BoW", "transformer": "BERT"}


def findings(everyone: Sequence[Verdicts], values: Mapping[Key, Printed]) -> Iterator[Cell]:
    """Yield means over all configurations and environments, and how often an encoder is above the bag of words."""
    for found in everyone:
        for changed in FACTORS:
            for measure in MEASURES:
                right = _pairs(found, changed, measure)
                row = f"{changed}, {measure}"
                yield _beside(values, found, row, "mean", fmean(right) if right else None, len(right))
    bag = next((each for each in everyone if each.model.name == BAG), None)
    for found in everyone if bag else ():
        if bag and found is not bag:
            yield _above(values, found, bag)


def _pairs(found: Verdicts, changed: str, measure: str) -> list[float]:
    groups = found.material.groups
    told = (found.pairs(told_of(row, each, groups), measure, changed, each) for row in ROWS for each in groups)
    return [each.value for each in told if each.value is not None]


def _above(values: Mapping[Key, Printed], found: Verdicts, bag: Verdicts) -> Cell:
    groups = found.material.groups
    both = [
        (mine.value, its.value)
        for row in ROWS
        for each in groups
        for mine, its in [(one.boolean(told_of(row, each, groups), each) for one in (found, bag))]
        if mine.value is not None and its.value is not None
    ]
    above = sum(mine > its for mine, its in both)
    return _beside(values, found, "Boolean: above the bag of words", "places", f"{above} of {len(both)}", len(both))


def _beside(
    values: Mapping[Key, Printed], found: Verdicts, row: str, column: str, ours: float | str | None, places: int
) -> Cell:
    there = values.get((TABLE, f"{_PAPERS[found.model.kind]}: {row}", column))
    note = f"over {places} places: configurations by environments"
    said = f"{note}; the paper's is of {_PAPERS[found.model.kind]}" if there else note
    name = f"{found.model.name}: {row}"
    return Cell(TABLE, name, column, there.value if there else None, ours, found.model.name, None, said)
