"""A training run from beginning to end: what it is told, what it keeps beside the weights, and how it goes on.

A recipe is a frozen dataclass: its fields are all that can change the model, besides the corpus. In the
model's folder lie the weights, ``vocabulary.json`` or a tokenizer, ``unigrams.tsv`` for SLOR, ``README.md``
with what people want to know, and, written last, ``recipe.json`` with what repeats the run.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Protocol

from acceptability import __version__
from acceptability.errors import ModelError, SpellingError, TrainError
from acceptability.train.card import card
from acceptability.train.checkpoint import Checkpoints, State, Write, atomic
from acceptability.train.corpus import Corpus, Counts, counts, open_corpus, overlap
from acceptability.train.perplexity import perplexity
from acceptability.train.tick import Tell

_log = logging.getLogger(__name__)
_PACKAGES = ("numpy", "torch", "transformers", "tokenizers", "safetensors", "varikn")
FILE = "recipe.json"


@dataclass(frozen=True)
class Job:
    """What a recipe works on.

    Args:
        out: The folder of the model; the recipe puts its weights there, each file through ``checkpoint.atomic``.
        dev: Text that is not trained on, for a recipe that stops when it learns no more.
        before: How many seconds earlier runs took that this one goes on from.
    """

    corpus: Corpus
    counts: Counts
    out: Path
    dev: Corpus | None
    checkpoints: Checkpoints
    tell: Tell
    before: float = 0.0
    began: float = field(default_factory=time.monotonic)

    def seconds(self) -> float:
        """Return how long the training took until now, with all the runs that it goes on from."""
        return self.before + time.monotonic() - self.began

    def save(self, step: int, parts: Mapping[str, Write], facts: Mapping[str, object] | None = None) -> State:
        """Write a checkpoint, from which the same command goes on after anything that ends this process."""
        return self.checkpoints.save(step, parts, facts={**(facts or {}), "seconds": self.seconds()})


@dataclass(frozen=True)
class Trained:
    """What a recipe has made.

    Args:
        unigrams: How often each unit of the model stands in the corpus, in its own spelling.
        facts: What is worth knowing of the run: sizes, discounts, losses.
    """

    unigrams: Mapping[str, int]
    facts: Mapping[str, object]


class Recipe(Protocol):
    """A way to train: a frozen dataclass, whose options the command line takes as ``--set name=value``."""

    kind: ClassVar[str]
    opened_as: ClassVar[str]

    def follow(self, job: Job) -> Trained:
        """Train, from the last checkpoint if there is one, and put the weights into ``job.out``."""
        ...


def train(
    recipe: Recipe,
    corpus: Sequence[str | Path],
    out: str | Path,
    *,
    dev: Sequence[str | Path] = (),
    licence: str = "",
    tell: Tell = lambda _: None,
) -> dict[str, Any]:
    """Train a model and return what its ``recipe.json`` says; a run that was killed goes on where it stopped.

    Args:
        corpus: Files and folders of text, one sentence a line.
        out: The folder for the model; it is made if it is not there.
        dev: Text to measure the perplexity on.
        licence: What users of the model must know of the rights in its text.
    """
    out, text, held = _folder(Path(out)), open_corpus(corpus), open_corpus(dev) if dev else None
    known, known_dev = counts(text), counts(held) if held else None
    about = _about(recipe, known, known_dev)
    if (there := finished(out, about)) is not None:
        _log.info("%s holds this very model already; nothing was done", out)
        # A run that was killed after its last word leaves this behind.
        Checkpoints(out / ".checkpoint", about).clear()
        return there
    shared = _overlap(held, text)
    job = Job(text, known, out, held, Checkpoints(out / ".checkpoint", about), tell)
    before = job.checkpoints.latest()
    trained = recipe.follow(replace(job, before=_seconds(before)))
    told = {
        **about,
        "files": [path.name for path in text.files],
        "sentences": known.sentences,
        "words": known.words,
        "licence": licence,
        "seed": getattr(recipe, "seed", None),
        "versions": versions(),
        "seconds": round(replace(job, before=_seconds(before)).seconds(), 1),
        "machine": machine(),
        "facts": dict(trained.facts),
        "results": _measured(f"{recipe.opened_as}:{out}", held, shared),
    }
    _write(out / "unigrams.tsv", _table(trained.unigrams))
    _write(out / "README.md", card(out.resolve().name, recipe.opened_as, told))
    _write(out / FILE, json.dumps(told, indent=1, ensure_ascii=False))
    job.checkpoints.clear()
    return told


def _folder(out: Path) -> Path:
    """Return the folder of a model, made before any work is done for it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainError(f"cannot make the folder {out}: {error.strerror}. Choose another --out.") from error
    return out


def _about(recipe: Recipe, known: Counts, dev: Counts | None) -> dict[str, Any]:
    """Return what makes two runs the same."""
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(recipe).items()}  # type: ignore[call-overload]
    return {
        "kind": recipe.kind,
        "recipe": options,
        "corpus": known.sha256,
        "dev": dev.sha256 if dev else None,
        "acceptability": __version__,
    }


def finished(out: Path, about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what was told of a model that lies there already; another one is an error."""
    try:
        told: dict[str, Any] = json.loads((out / FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise TrainError(f"cannot read {out / FILE}: {error}. Choose another --out, or delete that folder.") from error
    differing = [name for name in about if told.get(name) != about[name]]
    if differing:
        raise TrainError(
            f"{out} holds another model: its {' and '.join(differing)} differ. Choose another --out, or delete it."
        )
    return told


def _seconds(state: State | None) -> float:
    return float(str(state.facts.get("seconds", 0.0))) if state else 0.0


def _overlap(dev: Corpus | None, text: Corpus) -> int:
    shared = overlap(dev, text) if dev else 0
    if shared:
        _log.warning("%s sentences of the dev set stand in the training text too: what it says is too good", shared)
    return shared


def _measured(model: str, dev: Corpus | None, shared: int) -> dict[str, object]:
    if dev is None:
        return {}
    if model.startswith("classifier:"):
        return {"sentences of dev also in training": shared}
    try:
        found = perplexity(model, dev).row()
    except (ModelError, SpellingError) as error:  # a masked model gives no text a probability
        _log.warning("the perplexity on the dev set is not known: %s", error)
        found = {"perplexity": None, "why": str(error).replace(model, model.partition(":")[0] + ":FOLDER")}
    return {"dev": found, "sentences of dev also in training": shared}


def _table(unigrams: Mapping[str, int]) -> str:
    return "token\tcount\n" + "".join(f"{token}\t{number}\n" for token, number in unigrams.items())


def _write(path: Path, text: str) -> None:
    with atomic(path) as out:
        out.write(text.encode())


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a training depends on."""
    found = {"python": platform.python_version(), "acceptability": __version__}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Return what a training ran on."""
    torch = sys.modules.get("torch")
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())] if torch else []
    return ", ".join((f"{platform.system()} {platform.machine()}", f"{os.cpu_count()} cores", *gpus))
