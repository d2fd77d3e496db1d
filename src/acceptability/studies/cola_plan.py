"""Which classifiers the study of CoLA teaches, as plain data: a plan for two cores, one for a GPU, and the paper's own.

Warstadt, Singh and Bowman (2019), sections 4.3 and 6: 20 classifiers of each kind, hyper-parameters drawn at random;
for transfer the 5 best encoders of the real/fake task, 10 classifiers on each; 20 restarts on the best encoder with
ELMo-style embeddings for every split and every size. Transformers are those of the ADC paper's Table 5.

Options may name what is not known before: ``{lm}``, ``{vectors}``, and ``{encoder:STYLE:RANK}``, an encoder by its rank
in MCC on held-out sentences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from acceptability.errors import SpellingError
from acceptability.spelling import read_located
from acceptability.studies.cola_curve import SIZES
from acceptability.studies.cola_splits import paper_splits

Size = Literal["quick", "short", "full"]

STYLES = {"bnc": "BNC", "glove": "GloVe", "elmo-style": "ELMo-Style"}
"""Kinds of input: as folders are called, and as Table 4 does."""

_VECTORS = {"bnc": "{lm}", "glove": "{vectors}", "elmo-style": "elmo:{lm}"}
_TOP = 200
"""How large the hidden layer on top of an encoder is, where it is not drawn at random."""

_BEST = "elmo-style"
WANTED = {
    "lm": "a language model: --model recurrent:DIR",
    "vectors": "word vectors: --vectors FILE",
    "text": "text to make real and fake sentences of: --corpus FILE",
    "dev": "other such text, to stop by and to rank encoders: --dev FILE",
}


@dataclass(frozen=True)
class Planned:
    """Restarts of one classifier.

    Args:
        name: The folder that they lie in, below that of the plan; two may share one, with seeds apart.
        kind: The recipe.
        options: Its options, all others as the recipe has them.
        data: What they learn from: ``train``, ``split NAME``, ``size N``, or ``text``.
        restarts: How many.
        search: Whether each draws its own hyper-parameters in the paper's ranges.
        fills: The rows that they stand in.
        needs: What must be given for them.
    """

    name: str
    kind: str
    data: str
    restarts: int
    fills: str
    options: Mapping[str, object] = field(default_factory=dict)
    search: bool = False
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Scale:
    """How large a plan is.

    Args:
        made: How many encoders of each style are taught on text, and ``encoders`` how many of them are taken further.
    """

    restarts: int
    made: int
    encoders: int
    on_each: int
    sizes: tuple[int, ...]
    splits: tuple[str, ...]
    options: Mapping[str, Mapping[str, object]]
    search: bool

    def of(self, kind: str, **options: object) -> dict[str, object]:
        """Return the options of a kind of run: those of this scale, and others."""
        return {**self.options.get(kind, {}), **options}


_TRANSFERRED = "pooling on an encoder"
_SMALL: dict[str, dict[str, object]] = {
    "cbow": {"epochs": 5},
    "pooling": {"epochs": 3, "hidden": 100},
    _TRANSFERRED: {"epochs": 10, "rate": 3e-3},
    "real-fake": {"epochs": 1, "hidden": 100, "sentences": 4000, "held": 500},
    "transformer": {"epochs": 1},
}
_FEW: dict[str, dict[str, object]] = {
    "real-fake": {"epochs": 4, "hidden": 1000, "batch": 512, "rate": 1.5e-3, "sentences": 1_000_000},
    "transformer": {"epochs": 5},
}
_NAMES = tuple(split.name for split in paper_splits())
_SCALES: dict[Size, _Scale] = {
    "quick": _Scale(2, 1, 1, 2, (100, 300, 1000), ("orig.", "4", "random-0"), _SMALL, search=False),
    "short": _Scale(5, 1, 1, 10, SIZES, (*_NAMES, "random-0", "random-1"), _FEW, search=True),
    "full": _Scale(20, 20, 5, 10, SIZES, (*_NAMES, *(f"random-{seed}" for seed in range(5))), {}, search=True),
}


def planned(size: Size, transformers: Sequence[str] = ()) -> list[Planned]:
    """Return what is taught, in this order: encoders come before what is taught on them.

    Args:
        transformers: Models to be fine-tuned, and probed: folders or names.
    """
    if size not in _SCALES:
        raise SpellingError(f"there is no plan {size!r}; there are {', '.join(_SCALES)}")
    scale = _SCALES[size]
    return [
        *_encoders(scale),
        *_table_4(scale),
        *_table_5(scale),
        *_figure_3(scale),
        *_transformers(scale, transformers),
    ]


def _encoders(scale: _Scale) -> Iterator[Planned]:
    for style, shown in STYLES.items():
        yield Planned(
            f"real-fake/{style}",
            "real-fake",
            "text",
            scale.made,
            f"Table 4: Pooling, {shown}, Real/Fake, Real/Fake",
            scale.of("real-fake", vectors=_VECTORS[style], lm="{lm}"),
            scale.search and "real-fake" not in scale.options,
            _needs(style),
        )


def _table_4(scale: _Scale) -> Iterator[Planned]:
    words = scale.of("cbow", vectors=_VECTORS["bnc"])
    yield Planned("table-4/cbow", "cbow", "train", scale.restarts, "Table 4: CBOW", words, scale.search, ("lm",))
    fills = "beside Table 4: CBOW, with word vectors learnt from CoLA"
    yield Planned("table-4/cbow-alone", "cbow", "train", scale.restarts, fills, scale.of("cbow"), scale.search)
    yield Planned(
        "table-4/elmo-style-cola",
        "pooling",
        "train",
        scale.restarts,
        "Tables 4 and 6: Pooling, ELMo-Style, CoLA, CoLA",
        scale.of("pooling", vectors=_VECTORS["elmo-style"]),
        scale.search,
        ("lm",),
    )
    for style, shown in STYLES.items():
        for rank in range(scale.encoders):
            options = scale.of(_TRANSFERRED, **_transferred(style, rank + 1), seed=1 + rank * scale.on_each)
            fills = f"Tables 4 and 6, Figure 4: Pooling, {shown}, Real/Fake, CoLA"
            needs = _needs(style)
            yield Planned(
                f"table-4/{style}-real-fake-cola",
                "pooling",
                "train",
                scale.on_each,
                fills,
                options,
                scale.search,
                needs,
            )


def _table_5(scale: _Scale) -> Iterator[Planned]:
    for name in scale.splits:
        yield from _both(scale, f"table-5/split-{name}", f"split {name}", f"Table 5: {name}")


def _figure_3(scale: _Scale) -> Iterator[Planned]:
    for size in scale.sizes:
        yield from _both(scale, f"figure-3/{size}", f"size {size}", f"Figure 3: {size} sentences")


def _both(scale: _Scale, name: str, data: str, fills: str) -> Iterator[Planned]:
    """Yield the paper's classifier for its design experiments, and the bag of words beside it, which needs nothing."""
    options = scale.of(_TRANSFERRED, **_transferred(_BEST, 1))
    yield Planned(name, "pooling", data, scale.restarts, fills, options, scale.search, _needs(_BEST))
    fills = f"{fills}, a bag of words beside"
    yield Planned(name, "cbow", data, scale.restarts, fills, scale.of("cbow"), scale.search)


def _transformers(scale: _Scale, models: Sequence[str]) -> Iterator[Planned]:
    for model in models:
        short = Path(read_located(model)[1] if ":" in model else model).name.removesuffix(".gguf")
        for name, frozen in ((short, False), (f"{short}-probe", True)):
            options = scale.of("transformer", model=model, frozen=frozen)
            fills = "ADC paper, Table 5 and Figures 2 and 3"
            yield Planned(f"transformers/{name}", "transformer", "train", scale.restarts, fills, options)


def _transferred(style: str, rank: int) -> dict[str, object]:
    return {"encoder": f"{{encoder:{style}:{rank}}}", "top": _TOP}


def _needs(style: str) -> tuple[str, ...]:
    """Return what the encoders of a style need: fakes are drawn from a language model, and permuted text."""
    return ("lm", "text", "dev", "vectors") if style == "glove" else ("lm", "text", "dev")
