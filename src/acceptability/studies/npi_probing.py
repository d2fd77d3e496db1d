"""Figure 4 of the NPI paper, and 9 of its appendix: what a light classifier finds in the states of frozen encoders.

Whether licensor and NPI are there, and whether the NPI is in the licensor's scope, by environment: in the encoder as it
is, and after it was fine-tuned in each configuration; in the bag of words; and in nothing (the majority).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from acceptability.scoring import Progress
from acceptability.studies.cells import Cell
from acceptability.studies.npi_data import ENVIRONMENT, FACTORS, Material, material, short
from acceptability.studies.npi_figures import NAMES
from acceptability.studies.npi_plan import BAG, Planned, Taught, planned
from acceptability.studies.npi_train import Folder
from acceptability.train.classifiers.configurations import chosen, some_of
from acceptability.train.recipe import FILE
from acceptability.types import Suite

MAJORITY = "majority"
Probe = Callable[..., Sequence[Any]]
"""``acceptability.probing.probe``: scores of encoders with factor, group, layer and MCC."""


@dataclass(frozen=True)
class _Encoder:
    """What is probed: its row, how it is written, and in which environments; a fine-tuned one in those of its row."""

    row: str
    spelling: str
    groups: tuple[str, ...]


def probing_cells(folder: Folder, progress: Progress | None = None, probe: Probe | None = None) -> Iterator[Cell]:
    """Yield what probes find in the encoders of a folder.

    Args:
        probe: What probes; that of ``acceptability.probing`` if it is not said.
    """
    probe = probe or import_module("acceptability.probing").probe
    found = material(folder.suite)
    for model in folder.models:
        sentences = _sentences(found, model.probed)
        for encoder in _encoders(folder, model, found):
            suite = chosen(sentences, ENVIRONMENT, encoder.groups)
            scores = probe(suite, encoder.spelling, factors=FACTORS, by=ENVIRONMENT, layers=[-1], tell=progress)
            yield from _rows(encoder, "Figure 9" if model.after else "Figure 4", scores)


def _sentences(found: Material, most: int) -> Suite:
    """Return about so many training sentences of each environment, and as many test sentences at most."""
    parts = (some_of(each, ENVIRONMENT, most * len(found.groups)) for each in (found.learn, found.test))
    return Suite(found.learn.name, tuple(sentence for part in parts for sentence in part.sentences))


def _encoders(folder: Folder, model: Taught, found: Material) -> Iterator[_Encoder]:
    """Yield the encoders of a model: untouched, and the first restart of each configuration."""
    if model.name == BAG:
        vectors = str(model.options.get("vectors", ""))
        yield _Encoder(f"{BAG}: untouched", f"glove:{vectors}" if vectors else BAG, found.groups)
        yield _Encoder(MAJORITY, MAJORITY, found.groups)
        return
    if not model.after:
        yield _Encoder(f"{model.name}: untouched", model.start, found.groups)
    for run in planned([model], found.groups):
        if (folder.path / run.folder / FILE).is_file():
            yield _tuned(folder, run, found.groups)


def _tuned(folder: Folder, run: Planned, groups: tuple[str, ...]) -> _Encoder:
    kind, group = run.configuration.kind, run.configuration.group
    name = f"{run.model.name}: {NAMES[kind]}"
    return _Encoder(name, f"classifier:{folder.path / run.folder}", (group,) if group else groups)


def _rows(encoder: _Encoder, table: str, scores: Sequence[Any]) -> Iterator[Cell]:
    """Yield the MCC of probes, a row for each factor; a factor that does not vary in an environment has none."""
    for each in sorted(scores, key=lambda one: (FACTORS.index(one.factor), encoder.groups.index(one.group))):
        reason = getattr(each, "reason", None) or ""
        control = "" if each.control is None else f"the control task has {each.control:.3f}"
        sizes = f"learnt from {each.train} sentences, measured on {each.test}"
        note = "; ".join(filter(None, (reason, f"layer {each.layer}", sizes, control)))
        row, source = f"{encoder.row}, {each.factor}", f"probes of {encoder.spelling}"
        yield Cell(table, row, short(each.group), None, each.mcc, source, None, note)
