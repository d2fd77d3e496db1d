"""Figure 3 of the NPI paper: the cloze test, in which a language model weighs the word that two sentences differ in.

A masked model sees the rest of the sentence, the word hidden; a causal one only what stands before it. Words of
several tokens are hidden whole, their log-probabilities summed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import fmean

from acceptability.contrasts import target_contrasts
from acceptability.measures.contrast import ClozePair
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.npi_data import CHANGED, ENVIRONMENT, FACTORS, Material, short
from acceptability.studies.npi_plan import short_name

TABLE = "Figure 3"
_PAPERS = "BERT MLM"


def cloze_cells(
    model: str,
    material: Material,
    values: Mapping[Key, Printed],
    *,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> Iterator[Cell]:
    """Yield how often a language model finds the word of the acceptable sentence more probable."""
    found = target_contrasts(material.cloze, model, multi_token=True, engine=engine, progress=progress)
    units = ClozePair().units(found.suite, found.scores)
    about = "; ".join((f"{len(units.ids)} of {len(material.cloze.contrasts)} pairs", *found.notes(), *units.notes))
    rows = list(zip(units.tags, units["correct"].tolist(), strict=True))
    for changed in FACTORS:
        right = {
            group: [each for tags, each in rows if (tags[CHANGED], tags[ENVIRONMENT]) == (changed, group)]
            for group in material.groups
        }
        shares = {short(group): fmean(each) for group, each in right.items() if each}
        if not shares:
            continue
        notes = {short(group): f"{len(each)} pairs" for group, each in right.items()}
        ends = {"lowest": min(shares.values()), "highest": max(shares.values())}
        for column in (*notes, *ends):
            there = values.get((TABLE, f"{_PAPERS}: {changed}", column))
            papers = f"the paper's is of {_PAPERS}" if there else ""
            said = "; ".join(filter(None, (notes.get(column, ""), about, papers, found.scores.signature)))
            row, value = f"{short_name(model)}: {changed}", (shares | ends).get(column)
            yield Cell(TABLE, row, column, there.value if there else None, value, _source(model), None, said)


def _source(model: str) -> str:
    return f"re-scored with {model}"
