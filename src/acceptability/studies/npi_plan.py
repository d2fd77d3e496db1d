"""Which classifiers the study of NPIs teaches, as plain data: a small plan for two cores, and the paper's own.

Warstadt et al. (2019), section 5: a bag of words over GloVe's vectors, and encoders that are fine-tuned, perhaps after
another task. Each is taught on CoLA, on each environment, on all but each, and on all. The paper does not print epochs,
rates or batches; these are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from acceptability.errors import SpellingError
from acceptability.train.classifiers.configurations import ALL, ALL_BUT, ONE, OTHER, Configuration, configurations

Size = Literal["quick", "full"]

BAG = "bag-of-words"
QUICK_MODELS = ("mini-masked",)
"""Which encoders are taught where none is given: one that comes with the package."""

_SMALL_ENCODER, _RATE = 2e-4, 2e-5
_SMALL = ("mini-masked", "mini-causal")


@dataclass(frozen=True)
class Taught:
    """A model that learns in every configuration.

    Args:
        name: What its rows and its folder are called.
        kind: The recipe.
        options: Its options; ``by_kind`` those that hold in one kind of configuration only.
        start: The language model that it was before, which cloze test and probes ask; empty for a bag of words.
        after: A file of another task that it learns first; empty where there is none.
        most: From how many sentences a classifier learns at most; 0 means all.
        judged: How many test sentences of each environment it judges, about; 0 means all, and all pairs.
        probed: From how many training sentences of each environment a probe of it learns, about.
    """

    name: str
    kind: str
    options: Mapping[str, object] = field(default_factory=dict)
    by_kind: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    start: str = ""
    after: str = ""
    most: int = 0
    judged: int = 0
    probed: int = 2000


@dataclass(frozen=True)
class Planned:
    """One classifier: a model, what it learns from, and the seed."""

    model: Taught
    configuration: Configuration
    seed: int

    @property
    def folder(self) -> Path:
        """Where it lies, below the folder of the plan."""
        return Path(self.model.name) / self.configuration.folder / f"{self.model.kind}-{self.seed}"

    @property
    def options(self) -> dict[str, object]:
        """The options of its recipe."""
        return {
            **self.model.options,
            **self.model.by_kind.get(self.configuration.kind, {}),
            "seed": self.seed,
        }


@dataclass(frozen=True)
class _Scale:
    """How large a plan is: for bags of words, and for encoders."""

    bag: Taught
    encoder: Taught


_MAX = {"pool": "max", "activation": "relu", "hidden": 512, "words": "punctuation", "patience": 2}
_FEW: dict[str, Mapping[str, object]] = {
    kind: {"epochs": epochs, "looks": looks}
    for kind, epochs, looks in ((OTHER, 3, 2), (ONE, 3, 1), (ALL_BUT, 1, 2), (ALL, 1, 2))
}
_SCALES: dict[Size, _Scale] = {
    "quick": _Scale(
        Taught(BAG, "cbow", {**_MAX, "epochs": 5, "batch": 64}, most=10_000, probed=240),
        Taught("", "transformer", {"epochs": 2, "batch": 16, "looks": 1}, most=320, judged=64, probed=64),
    ),
    "full": _Scale(
        Taught(BAG, "cbow", {**_MAX, "epochs": 10, "batch": 64}),
        Taught("", "transformer", {"batch": 64}, _FEW),
    ),
}


def taught_models(
    size: Size, encoders: Sequence[str], *, vectors: str = "", intermediate: Sequence[str] = ()
) -> list[Taught]:
    """Return the models of a plan: the bag of words, each encoder, and each encoder after another task.

    Args:
        encoders: Models to be fine-tuned, as they are written.
        vectors: A file of word vectors for the bag of words; without it these are learnt.
        intermediate: Files of labelled sentence pairs or tagged words that encoders learn from first.
    """
    if size not in _SCALES:
        raise SpellingError(f"there is no plan {size!r}; there are {', '.join(_SCALES)}")
    scale = _SCALES[size]
    bag = {**scale.bag.options, "vectors": vectors} if vectors else scale.bag.options
    found = [replace(scale.bag, options=bag)]
    for model in encoders:
        found += _encoder(scale.encoder, model, intermediate)
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise SpellingError(f"two models of the plan would be called the same: {', '.join(sorted(names))}")
    return found


def _encoder(scale: Taught, model: str, intermediate: Sequence[str]) -> Iterator[Taught]:
    """Yield an encoder as it is, and after each other task."""
    short = short_name(model)
    rate = {"rate": _SMALL_ENCODER if short in _SMALL else _RATE}
    for file in ("", *intermediate):
        name = f"{short}+{Path(file).name.partition('.')[0]}" if file else short
        options = {**scale.options, **rate, "model": model}
        yield replace(scale, name=name, options=options, start=model, after=file)


def short_name(model: str) -> str:
    """Return what a model is called in rows and folders.

    >>> short_name("masked:/models/bert-large-cased"), short_name("mini-masked")
    ('bert-large-cased', 'mini-masked')
    """
    return model.partition("(")[0].rpartition(":")[2].rstrip("/").rpartition("/")[2]


def planned(models: Sequence[Taught], groups: Sequence[str], restarts: int = 1) -> list[Planned]:
    """Return every classifier, those that learn longest first, so that workers end together."""
    if restarts < 1:
        raise SpellingError(f"--restarts-each is {restarts}; expected a whole number from 1")
    order = {ALL: 0, ALL_BUT: 1, ONE: 2, OTHER: 3}
    found = [
        Planned(model, configuration, seed)
        for model in models
        for configuration in configurations(groups)
        for seed in range(1, restarts + 1)
    ]
    return sorted(found, key=lambda each: (each.model.kind == "cbow", order[each.configuration.kind]))
