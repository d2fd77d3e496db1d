"""Carrying out the plan of ``cola_plan``: what is given is filled in, each kind is taught, and what was not is said.

Everything lies in one folder, in which ``acceptability study cola --restarts`` finds it again. What is finished is not
taught again, so that a plan that was stopped goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.errors import TrainError
from acceptability.spelling import read_located
from acceptability.studies.cells import printed
from acceptability.studies.cola_curve import subsets
from acceptability.studies.cola_groups import groups
from acceptability.studies.cola_plan import WANTED, Planned, Size, planned
from acceptability.studies.cola_splits import find_split, parts
from acceptability.suites import load_suite
from acceptability.train import train
from acceptability.train.tick import Tell
from acceptability.types import Suite

_ENCODER = re.compile(r"\{encoder:([a-z-]+):(\d+)\}")
_NETWORKS = ("masked", "causal")


@dataclass(frozen=True)
class Given:
    """What a plan is carried out with.

    Args:
        lm: The language model whose states are embeddings and that makes fake sentences, as it is written.
        vectors: A file of word vectors.
        text: Text to make real and fake sentences of.
        dev: Other such text, that tells when to stop and which encoder is best.
    """

    lm: str = ""
    vectors: str = ""
    text: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()


Teach = Callable[[Planned, Given, Path, Tell], None]
"""Teaches all restarts of a part of the plan into a folder."""


def carry_out(
    size: Size,
    out: str | Path,
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    dev: Sequence[str | Path] = (),
    vectors: str = "",
    tell: Tell = lambda _: None,
    teach: Teach | None = None,
) -> list[str]:
    """Teach what the plan has, and return what was left out and what it needs.

    Args:
        models: A language model (``recurrent:DIR``), and networks to be fine-tuned (``masked:DIR``, ``causal:DIR``).
    """
    kinds = [(read_located(each)[0], each) for each in models]
    lm = next((each for kind, each in kinds if kind == "recurrent"), "")
    given = Given(lm, vectors, tuple(map(str, corpus)), tuple(map(str, dev)))
    networks = [read_located(each)[1] for kind, each in kinds if kind in _NETWORKS]
    left: list[str] = []
    for run in planned(size, networks):
        lacking = [WANTED[each] for each in run.needs if not getattr(given, each)]
        if lacking:
            left.append(f"{run.fills} ({run.name}): needs {' and '.join(lacking)}")
            continue
        folder = Path(out) / run.name
        (teach or _restarts)(_filled(run, given, Path(out)), given, folder, tell)
    return left


def sentences(data: str) -> Suite:
    """Return the labelled sentences that a plan calls ``train``, ``split NAME`` or ``size N``."""
    kind, _, name = data.partition(" ")
    if kind == "split":
        return parts(find_split(name, printed("cola"))).train
    train_set = load_suite("cola/train")
    return subsets(train_set, [int(name)])[int(name)] if kind == "size" else train_set


def _filled(run: Planned, given: Given, out: Path) -> Planned:
    """Return a part of the plan with what is known now in its options."""
    known = {"{lm}": given.lm, "{vectors}": given.vectors}
    options = {name: _fill(value, known, out) for name, value in run.options.items()}
    return replace(run, options=options)


def _fill(value: object, known: Mapping[str, str], out: Path) -> object:
    if not isinstance(value, str):
        return value
    for name, real in known.items():
        value = value.replace(name, real)
    return _ENCODER.sub(lambda found: str(_encoder(out, found[1], int(found[2]))), value)


def _encoder(out: Path, style: str, rank: int) -> Path:
    """Return the folder of the encoder that is the best, second best, ... on held-out sentences."""
    (group,) = groups([out / "real-fake" / style])
    untold = [each.folder for each in group.runs if each.held is None]
    if untold:
        raise TrainError(
            f"{untold[0]} does not tell its MCC on a dev set, by which encoders are ranked: teach it with one"
        )
    ranked = sorted(group.runs, key=lambda each: -(each.held or 0.0))
    if rank > len(ranked):
        raise TrainError(f"{out / 'real-fake' / style} has {len(ranked)} encoders, and the plan wants number {rank}")
    return ranked[rank - 1].folder


def _restarts(run: Planned, given: Given, folder: Path, tell: Tell) -> None:
    """Teach the restarts: the one place that knows how this is done."""
    protocol = import_module("acceptability.train.classifiers.restarts")
    recipe: Any = registry.build(registry.find("recipe", run.kind), run.kind, [], run.options)
    search = protocol.sampler(recipe) if run.search else None
    if run.data == "text":
        for seed in range(recipe.seed, recipe.seed + run.restarts):
            drawn = replace(search(seed, recipe) if search else recipe, seed=seed)
            train(drawn, given.text, folder / f"{run.kind}-{seed}", dev=given.dev, tell=tell)
        return
    found = protocol.restarts(recipe, [sentences(run.data)], folder, runs=run.restarts, search=search, tell=tell)
    if problem := protocol.failures(found):
        raise TrainError(problem)
