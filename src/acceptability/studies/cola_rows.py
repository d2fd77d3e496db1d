"""Which of the paper's classifiers one of ours answers to, by the ``recipe.json`` in its folder.

Rows of Table 4 are named by model, embeddings, training of the encoder and training of the classifier.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError
from acceptability.spelling import read_located
from acceptability.train.recipe import FILE

_TRANSFORMERS = {
    "bert-base-uncased": "BERT base-uncased",
    "bert-large-uncased": "BERT large-uncased",
    "bert-large-cased": "BERT large-cased",
    "openai-gpt": "GPT (W&B)",
}
"""Rows of the ADC paper's Table 5, by what the network began as."""

_FOLDERS = re.compile(r"[^:]*/")
BASELINE = "CoLA baseline (W&B)"
DESIGN_ROW = "Pooling, ELMo-Style, Real/Fake, CoLA"
"""The classifier of Table 5 and Figures 3 and 4, which is the baseline of Warstadt and Bowman (2019) too."""


@dataclass(frozen=True)
class Taught:
    """A classifier that was taught here.

    Args:
        held: Its MCC on sentences that were held out, of CoLA or of the real/fake task; None where that was not told.
        data: The fingerprint of what it learnt from.
        facts: What else is told of it.
    """

    folder: Path
    kind: str
    options: Mapping[str, Any]
    held: float | None
    data: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spelling(self) -> str:
        """How the model is written."""
        return f"classifier:{self.folder}"

    @property
    def about(self) -> str:
        """What it is, in a few words."""
        told = {name: self.options.get(name) for name in ("model", "vectors", "encoder", "frozen")}
        shown = ", ".join(f"{name}={_bare(value)}" for name, value in told.items() if value)
        return f"{self.kind} ({shown or 'word vectors learnt with it'})"

    @property
    def inputs(self) -> str:
        """How long its word vectors are, and how much of what it learnt from they cover, where that was told."""
        width, known = self.facts.get("numbers of a word"), self.facts.get("share of running words known")
        shown = (f"{width} numbers a word" if width else "", f"{known:.1%} of running words known" if known else "")
        return ", ".join(filter(None, shown))


def _bare(value: object) -> str:
    """Return an option without the folders of this machine.

    >>> _bare("elmo:recurrent:/data/models/lstm"), _bare("/data/glove.txt")
    ('elmo:recurrent:lstm', 'glove.txt')
    """
    return _FOLDERS.sub("", str(value))


def taught(folder: Path) -> Taught:
    """Return what the ``recipe.json`` of a classifier tells."""
    told = _read(folder / FILE)
    if not isinstance(told.get("kind"), str) or not isinstance(told.get("recipe"), dict):
        raise ModelError(f"{folder / FILE} does not tell kind and recipe, as those of classifiers taught here do")
    facts = told.get("facts", {})
    held = told.get("results", {}).get("held out", {}).get("mcc", facts.get("real/fake MCC on the dev set"))
    return Taught(folder, told["kind"], told["recipe"], held, str(told.get("data", "")), facts)


def taught_model(model: str) -> Taught | None:
    """Return what is told of a model that was taught here; None where its folder has no ``recipe.json``."""
    _, place, _ = read_located(model)
    return taught(Path(place)) if place and (Path(place) / FILE).is_file() else None


def is_taught(folder: Path) -> bool:
    """Tell whether a folder holds a finished classifier."""
    return (folder / FILE).is_file()


def row_of(one: Taught) -> str | None:
    """Return the row of Table 4 that a classifier answers to; None where the paper has none like it."""
    if one.kind == "cbow":
        # The paper's has the embeddings of a language model; one that learns its own from CoLA is another thing.
        return "CBOW" if str(one.options.get("vectors", "")).startswith("recurrent:") else None
    if one.kind == "real-fake":
        return f"Pooling, {_embeddings(one)}, Real/Fake, Real/Fake"
    if one.kind != "pooling":
        return None
    if one.options.get("encoder"):
        return f"Pooling, {_embeddings(one)}, Real/Fake, CoLA"
    # Without an encoder of the real/fake task the paper has ELMo-style embeddings only.
    return f"Pooling, {_embeddings(one)}, CoLA, CoLA" if _embeddings(one) == "ELMo-Style" else None


def adc_row_of(one: Taught) -> str | None:
    """Return the row of the ADC paper's Table 5 that a classifier answers to; None where there is none like it."""
    if one.kind == "transformer":
        return None if one.options.get("frozen") else _TRANSFORMERS.get(_bare(one.options.get("model", "")))
    return BASELINE if row_of(one) == DESIGN_ROW else None


def _embeddings(one: Taught) -> str:
    """Return the paper's word for the input: that of the encoder, if it was taken from another classifier.

    Its BNC embeddings are those of a language model; such as were learnt with the classifier stand there too.
    """
    vectors = next((each for each in _vectors(one) if each), "")
    if not vectors or vectors.startswith("recurrent:"):
        return "BNC"
    return "ELMo-Style" if vectors.startswith("elmo:") else "GloVe"


def _vectors(one: Taught) -> Iterator[str]:
    yield str(one.options.get("vectors", ""))
    encoder = one.options.get("encoder")
    if encoder and is_taught(Path(encoder)):
        yield str(taught(Path(encoder)).options.get("vectors", ""))


def _read(file: Path) -> dict[str, Any]:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"cannot read {file}: {error}. Delete that folder, or teach the classifier again.") from error
    return told if isinstance(told, dict) else {}
