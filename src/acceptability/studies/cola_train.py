"""Carrying out the plan of ``cola_plan``: what is given is filled in, each kind is taught, and what was not is said.

Everything lies in one folder, in which ``acceptability study cola --restarts`` finds it again. What is finished is not
taught again, so that a plan that was stopped goes on. All that depends on nothing else is taught side by side; then
what is taught on top of an encoder, which must be known by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from acceptability import registry
from acceptability.errors import TrainError
from acceptability.models import delivered
from acceptability.spelling import read_located
from acceptability.studies.cells import printed
from acceptability.studies.cola_curve import subsets
from acceptability.studies.cola_groups import groups
from acceptability.studies.cola_plan import WANTED, Planned, Size, planned
from acceptability.studies.cola_splits import find_split, parts
from acceptability.suites import load_suite
from acceptability.train.checkpoint import atomic
from acceptability.train.classifiers.restarts import Task, carried_out, failures, sampler, tasks_of
from acceptability.train.ngram import NGram
from acceptability.train.tick import Tell
from acceptability.types import Suite

_ENCODER = re.compile(r"\{encoder:([a-z-]+):(\d+)\}")
_NETWORKS = ("masked", "causal")
_WORDS = 30_000
ORDERS = (2, 3, 4)
CLASSIFIERS, LANGUAGE_MODELS = "classifiers", "language-models"
"""The folders of a plan: what ``--restarts`` reads lies in the first."""
QUICK_MODELS = ("mini-lstm", "mini-masked")
"""What a quick plan is carried out with where nothing is given: models that come with the package."""


@dataclass(frozen=True)
class Given:
    """What a plan is carried out with.

    Args:
        lm: The language model whose states are embeddings and that makes fake sentences, as it is written.
        vectors: A file of word vectors.
        text: Text to make real and fake sentences of.
        dev: Other such text, that tells when to stop and which encoder is best.
        workers: How many classifiers are taught at once, and ``engine`` where.
    """

    lm: str = ""
    vectors: str = ""
    text: tuple[str, ...] = ()
    dev: tuple[str, ...] = ()
    workers: int | None = None
    engine: str = "local"


Teach = Callable[[Sequence[Task], Given, Tell], None]
"""Teaches restarts side by side."""


def carry_out(
    size: Size,
    out: str | Path,
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    dev: Sequence[str | Path] = (),
    vectors: str = "",
    workers: int | None = None,
    engine: str = "local",
    tell: Tell = lambda _: None,
    teach: Teach | None = None,
) -> list[str]:
    """Teach what the plan has, and return what was left out and what it needs.

    Args:
        models: A language model (``recurrent:DIR``), and networks to be fine-tuned (``masked:DIR``, ``causal:DIR``).
    """
    kinds = [(read_located(each)[0], each) for each in map(spelled_out, models)]
    lm = next((each for kind, each in kinds if kind == "recurrent"), "")
    given = Given(lm, vectors, tuple(map(str, corpus)), tuple(map(str, dev)), workers, engine)
    networks = [_network(each) for kind, each in kinds if kind in _NETWORKS]
    left: list[str] = []
    waves: dict[bool, list[Planned]] = {False: [], True: []}
    for run in planned(size, networks):
        lacking = [WANTED[each] for each in run.needs if not getattr(given, each)]
        if lacking:
            left.append(f"{run.fills} ({run.name}): needs {' and '.join(lacking)}")
        else:
            waves[is_transferred(run)].append(run)
    inside = Path(out) / CLASSIFIERS
    for follows, runs in waves.items():
        tasks = [task for run in runs for task in _tasks(_filled(run, given, inside), given, inside / run.name)]
        (teach or _together)([*tasks, *([] if follows else _word_models(out, given.text))], given, tell)
    return left


def _network(model: str) -> str:
    """Return a transformer as the recipe takes it: its place, or all that is written where options say more."""
    _, place, options = read_located(model)
    return model if options else place


def is_transferred(run: Planned) -> bool:
    """Tell whether a part of the plan is taught on top of an encoder that the plan teaches."""
    return any(_ENCODER.search(str(value)) for value in run.options.values())


def spelled_out(model: str) -> str:
    """Return a model that is called by its name as it is written in full."""
    return delivered()[model].spelling() if model in delivered() else model


def word_models(out: str | Path) -> list[str]:
    """Return the n-gram models of a plan that was carried out with text: those of Table 4, of 2, 3 and 4 words."""
    found = [Path(out) / LANGUAGE_MODELS / f"ngram-{order}" for order in ORDERS]
    return [f"ngram:{folder}" for folder in found if folder.is_dir()]


def _word_models(out: str | Path, text: tuple[str, ...]) -> list[Task]:
    inside = Path(out).resolve() / LANGUAGE_MODELS
    recipes = {f"ngram-{order}": NGram(order=order, vocabulary=_WORDS) for order in ORDERS if text}
    return [Task(recipe, inside / name, text=text) for name, recipe in recipes.items()]


def own_text(out: str | Path) -> tuple[Path, Path]:
    """Return text and dev text where none is given: CoLA's acceptable sentences to learn from, and every tenth of them.

    They are few, and no text from elsewhere: enough to see that everything works.
    """
    lines = [each.text for each in load_suite("cola/train").sentences if each.label]
    parts_of = {"text": [line for place, line in enumerate(lines) if place % 10], "dev": lines[::10]}
    paths = {name: Path(out) / f"{name}.txt" for name in parts_of}
    for name, some in parts_of.items():
        with atomic(paths[name]) as file:
            file.write(("\n".join(some) + "\n").encode())
    return paths["text"], paths["dev"]


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


def _tasks(run: Planned, given: Given, folder: Path) -> list[Task]:
    """Return the restarts of a part of the plan."""
    recipe: Any = registry.build(registry.find("recipe", run.kind), run.kind, [], run.options)
    search = sampler(recipe) if run.search else None
    is_text = run.data == "text"
    known: dict[str, Any] = {"text": given.text, "dev": given.dev} if is_text else {"data": (sentences(run.data),)}
    return tasks_of(recipe, folder, runs=run.restarts, search=search, **known)


def _together(tasks: Sequence[Task], given: Given, tell: Tell) -> None:
    """Teach restarts side by side, and say which failed."""
    found = carried_out(tasks, workers=given.workers, engine=given.engine, tell=tell)
    if problem := failures(found):
        raise TrainError(problem)
