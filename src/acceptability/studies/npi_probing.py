"""Figure 4 of the NPI paper, and 9 of its appendix: what a light classifier finds in the states of frozen encoders.

Whether licensor and NPI are there, and whether the NPI is in the licensor's scope, by environment: in the encoder as it
is, and after it was fine-tuned in each configuration; in the bag of words; and in nothing (the majority).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any

from acceptability import probing
from acceptability.engine.processes import calls
from acceptability.errors import MeasureError
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell
from acceptability.studies.npi_data import ENVIRONMENT, FACTORS, Material, material, short
from acceptability.studies.npi_figures import NAMES
from acceptability.studies.npi_plan import BAG, Planned, Taught, planned
from acceptability.studies.npi_train import Folder, workers_here
from acceptability.train.classifiers.configurations import chosen, some_of
from acceptability.train.recipe import FILE
from acceptability.train.tick import Tell
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


@dataclass(frozen=True)
class _Asked:
    """What one process needs to know to probe an encoder."""

    encoder: _Encoder
    table: str
    suite: str
    probed: int


def probing_cells(folder: Folder, progress: Progress | None = None, probe: Probe | None = None) -> Iterator[Cell]:
    """Yield what probes find in the encoders of a folder; where there are cores for it, several are probed at once.

    Args:
        probe: What probes; that of ``acceptability.probing`` if it is not said.
    """
    found = material(folder.suite)
    asked = [
        _Asked(encoder, "Figure 9" if model.after else "Figure 4", folder.suite, model.probed)
        for model in folder.models
        for encoder in _encoders(folder, model, found)
    ]
    workers = workers_here()
    scores: Iterable[Sequence[Any]]
    if probe is not None or workers == 1:
        scores = (_probed(each, progress, probe) for each in asked)
    else:
        scores = _side_by_side(asked, workers, progress)
    for each, some in zip(asked, scores, strict=True):
        yield from _rows(each.encoder, each.table, some)


def _side_by_side(asked: Sequence[_Asked], workers: int, progress: Progress | None) -> list[Sequence[Any]]:
    """Return what probes find in each encoder, in their order; one that fails is an error."""
    found: dict[int, Sequence[Any]] = {}
    with closing(calls(probed_alone, asked, workers=workers, hear=lambda *_: None)) as outcomes:
        for outcome in outcomes:
            if outcome.problem is not None:
                raise MeasureError(f"cannot probe {asked[outcome.place].encoder.spelling}: {outcome.problem}")
            found[outcome.place] = outcome.value
            if progress:
                progress("probed encoders", len(found), len(asked))
    return [found[place] for place in range(len(asked))]


def probed_alone(each: _Asked, tell: Tell) -> Sequence[Any]:
    """Probe one encoder; called in a process of its own."""
    return _probed(each, None, None)


def _probed(each: _Asked, progress: Progress | None, probe: Probe | None) -> Sequence[Any]:
    asked = probe or probing.probe
    suite = chosen(_sentences(each.suite, each.probed), ENVIRONMENT, each.encoder.groups)
    found: Sequence[Any] = asked(
        suite, each.encoder.spelling, factors=FACTORS, by=ENVIRONMENT, layers=[-1], tell=progress
    )
    return found


@cache
def _sentences(place: str, most: int) -> Suite:
    """Return about so many training sentences of each environment, and as many test sentences at most."""
    found = material(place)
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
