"""Figure 4 of the NPI paper, and 9 of its appendix: what a light classifier finds in the states of frozen encoders.

Whether licensor and NPI are there, and whether the NPI is in the licensor's scope, by environment: in the encoder as it
is, and after it was fine-tuned in each configuration; in the bag of words; and in nothing (the majority).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from acceptability.studies.cells import Cell
from acceptability.studies.npi_data import ENVIRONMENT, FACTORS, Material, material, short
from acceptability.studies.npi_figures import NAMES
from acceptability.studies.npi_plan import BAG, Planned, Taught, planned
from acceptability.studies.npi_train import Folder
from acceptability.train.classifiers.configurations import chosen, some_of
from acceptability.train.recipe import FILE
from acceptability.train.tick import Tell
from acceptability.types import Suite

MAJORITY = "majority"
_PROBED = 2000

Probe = Callable[..., Sequence[Any]]
"""``acceptability.probing.probe``: scores of encoders with factor, group, layer and MCC."""


@dataclass(frozen=True)
class _Encoder:
    """What is probed: its row, how it is written, and in which environments; a fine-tuned one in those of its row."""

    row: str
    spelling: str
    groups: tuple[str, ...]


def probing_cells(folder: Folder, tell: Tell, probe: Probe | None = None) -> Iterator[Cell]:
    """Yield what probes find in the encoders of a folder.

    Args:
        probe: What probes; that of ``acceptability.probing`` if it is not said.
    """
    probe = probe or import_module("acceptability.probing").probe
    found = material(folder.suite)
    for model in folder.models:
        most = (model.judged or _PROBED) * len(found.groups)
        sentences = some_of(found.learn, ENVIRONMENT, most)
        for encoder in _encoders(folder, model, found):
            yield from _of(encoder, model, chosen(sentences, ENVIRONMENT, encoder.groups), probe, tell)


def _encoders(folder: Folder, model: Taught, found: Material) -> Iterator[_Encoder]:
    """Yield the encoders of a model: untouched, and the first restart of each configuration."""
    if model.name == BAG:
        vectors = str(model.options.get("vectors", ""))
        yield _Encoder(f"{BAG}: untouched", f"glove:{vectors}" if vectors else BAG, found.groups)
        yield _Encoder(MAJORITY, MAJORITY, found.groups)
        return
    if "intermediate" not in model.options:
        yield _Encoder(f"{model.name}: untouched", model.start, found.groups)
    for run in planned([model], found.groups):
        if (folder.path / run.folder / FILE).is_file():
            yield _tuned(folder, run, found.groups)


def _tuned(folder: Folder, run: Planned, groups: tuple[str, ...]) -> _Encoder:
    kind, group = run.configuration.kind, run.configuration.group
    name = f"{run.model.name}: {NAMES[kind]}"
    return _Encoder(name, f"classifier:{folder.path / run.folder}", (group,) if group else groups)


def _of(encoder: _Encoder, model: Taught, suite: Suite, probe: Probe, tell: Tell) -> Iterator[Cell]:
    """Yield the MCC of probes in the last layer, a row for each factor."""
    table = "Figure 9" if "intermediate" in model.options else "Figure 4"
    for factor in FACTORS:
        asked = _varying(suite, factor)
        if asked is None:
            continue
        scores = probe(asked, encoder.spelling, factors=[factor], by=ENVIRONMENT, tell=tell)
        for group in encoder.groups:
            here = [each for each in scores if each.group in (group, f"{ENVIRONMENT}={group}")]
            if not here:
                continue
            last = max(here, key=lambda each: -1 if each.layer is None else each.layer)
            note = f"layer {last.layer}; learnt from {last.train} sentences, measured on {last.test}"
            control = f"; control {last.control:.3f}" if last.control is not None else ""
            row, source = f"{encoder.row}, {factor}", f"probes of {encoder.spelling}"
            yield Cell(table, row, short(group), None, last.mcc, source, None, note + control)


def _varying(suite: Suite, factor: str) -> Suite | None:
    """Return the sentences of those environments in which a factor has both values; None where there are none."""
    values: dict[str, set[str]] = {}
    for each in suite.sentences:
        values.setdefault(each.tags[ENVIRONMENT], set()).add(each.tags[factor])
    wanted = [group for group, both in values.items() if len(both) > 1]
    return chosen(suite, ENVIRONMENT, wanted) if wanted else None
