"""Warstadt et al. (2019), "Investigating BERT's Knowledge of Language: Five Analysis Methods with NPIs", done again.

Five methods by nine environments: Boolean acceptability (Figure 1), absolute and gradient minimal pairs (Figure 2), the
cloze test (Figure 3), and probing (Figure 4), with the variants of the appendix. What needs no model is always there:
the counts of the data. Language models join in the cloze test, folders of classifiers fill the other figures, and
ratings of people the validation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from acceptability.errors import SpellingError
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.spelling import read_located
from acceptability.studies.cells import Cell, Key, Printed, beside, printed
from acceptability.studies.npi_cloze import cloze_cells
from acceptability.studies.npi_corpus import corpus_cells
from acceptability.studies.npi_data import FACTORS, material
from acceptability.studies.npi_figures import BY_TRAINING, figures
from acceptability.studies.npi_findings import findings
from acceptability.studies.npi_judged import verdicts
from acceptability.studies.npi_people import TABLE as PEOPLE
from acceptability.studies.npi_people import people_cells
from acceptability.studies.npi_probing import Probe, probing_cells
from acceptability.studies.npi_train import read_folder

_NEEDS = {
    "Figure 1": "needs classifiers: --train --out DIR, or --restarts DIR",
    "Figure 3": "needs a language model: --model masked:DIR",
    "Findings": "needs classifiers: --train --out DIR, or --restarts DIR",
    PEOPLE: "the ratings are not published; --ratings FILE fills the row with yours",
}

_BESIDE = ("Figure 1", "Figure 3", "Findings")
"""Tables in which the paper's numbers, of other models, stand in the rows of ours."""

_ORDER = (
    "Section 4",
    PEOPLE,
    "Findings",
    "Figure 1",
    BY_TRAINING,
    *(f"Figure 2, {factor}" for factor in FACTORS),
    *(f"Figure {number}" for number in range(3, 10)),
)


def cells(
    models: Sequence[str] = (),
    *,
    restarts: Sequence[str | Path] = (),
    suite: str = "",
    ratings: str | Path = "",
    engine: str | Engine = "local",
    progress: Progress | None = None,
    probe: Probe | None = None,
) -> list[Cell]:
    """Return every number that the paper prints with ours beside it, and those of a user's models.

    Args:
        models: Language models, for the cloze test.
        restarts: Folders of classifiers that ``--train`` has left.
        suite: Sentences of one's own for the cloze test, in place of the published ones.
        ratings: A file of people's answers, for the validation.
        probe: What probes the encoders; that of ``acceptability.probing`` if it is not said.
    """
    values = printed("npi")
    found = [*corpus_cells(values)]
    for place in restarts:
        found += _of_folder(place, values, progress, probe)
    for model in models:
        if read_located(model)[0] == "classifier":
            raise SpellingError(f"{model}: a classifier has no cloze test; folders of classifiers join by --restarts")
        found += cloze_cells(model, material(suite), values, engine=engine, progress=progress)
    if ratings:
        found += people_cells(ratings, suite, values)
    return sorted([*found, *_missing(values, found)], key=lambda cell: _ORDER.index(cell.table))


def _of_folder(
    place: str | Path, values: Mapping[Key, Printed], progress: Progress | None, probe: Probe | None
) -> Iterator[Cell]:
    folder = read_folder(place)
    everyone = verdicts(folder, progress)
    yield from findings(everyone, values)
    for each in everyone:
        yield from figures(each, values)
    yield from probing_cells(folder, progress, probe)


def _missing(values: Mapping[Key, Printed], found: Sequence[Cell]) -> Iterator[Cell]:
    """Yield what the paper prints where nothing of ours stands yet; in the figures its numbers stand beside ours."""
    known = {(cell.table, cell.row, cell.column) for cell in found}
    filled = {cell.table for cell in found if cell.table in _BESIDE}
    for key in values:
        if key not in known and key[0] not in filled:
            yield beside(values, key, None, "not computed", note=_NEEDS.get(key[0], ""))
