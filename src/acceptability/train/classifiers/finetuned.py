"""Transformers with a head of two labels, taught on labelled sentences: all their weights, or the head alone.

What comes out is a folder of transformers: ``AutoModelForSequenceClassification`` opens it without code of ours. A
network begins as a language model that is there already; its head begins at random and is what the architecture's
own class for sentences has, pooling included.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.train.classifiers.course import Fitted
from acceptability.train.classifiers.examples import Examples
from acceptability.train.classifiers.intermediate import TAGS, UPOS
from acceptability.train.tick import Tell

_NEEDED = ("torch", "transformers", "tokenizers", "safetensors", "accelerate")
_POOLING = ("auto", "first", "last", "mean")
_DTYPES = ("float32", "float16", "bfloat16")


@dataclass(frozen=True)
class Finetuned:
    """Transformer of Hugging Face, encoder or decoder, with a classification head: fine-tuned, or a linear probe.

    Args:
        model: What it begins with: a folder of transformers, a name on the Hub, a GGUF file, a model such as
            mini-masked that has a name, or a spelling such as causal:FOLDER(bos='<s>'), whose start token is then
            put before every sentence.
        intermediate: A file of another task that all weights learn first: sentence pairs as MNLI has them (.tsv,
            .jsonl), words with tags (.conllu), or with supertags (``word|category``, a sentence a line).
        intermediate_epochs: How often each example of that task is learnt from.
        tags: Which tags of a .conllu file are learnt: upos or xpos.
        pooling: Which token's state the head reads: first, last, or the mean of all; auto takes what the
            architecture's own class does, which is the first token for most encoders, the last one for decoders.
        frozen: Whether only the head learns: a probe of what the model knows. States are then computed once.
        epochs: How often each sentence is learnt from, at most.
        batch: How many sentences go into a step.
        rate: The highest learning rate of what the model brings along.
        head_rate: The highest learning rate of the head, which begins at random; 0 means the same as rate.
        warmup: For which share of the steps the rates rise; then they fall to zero in a straight line.
        decay: The weight decay of matrices (AdamW).
        dropout: The share of values that are dropped, wherever the architecture can drop some.
        looks: How often in an epoch the sentences held out are judged; the weights of the best look are kept.
        patience: After how many looks without a better MCC the training stops; 0 means never.
        longest: The most tokens a sentence may have; 0 means as many as the model reads.
        cut: Whether longer sentences are cut, and counted, instead of being an error.
        seed: Decides on the head's first weights, the order of the sentences and what is dropped.
        dtype: How weights are saved: float32, float16 or bfloat16.
        device: Where it learns: cpu, cuda, or auto, a GPU where there is one (there in bfloat16 where that is safe).
    """

    model: str = ""
    intermediate: str = ""
    intermediate_epochs: int = 1
    tags: str = UPOS
    pooling: str = "auto"
    frozen: bool = False
    epochs: int = 3
    batch: int = 32
    rate: float = 5e-5
    head_rate: float = 0.0
    warmup: float = 0.1
    decay: float = 0.01
    dropout: float = 0.1
    looks: int = 2
    patience: int = 0
    longest: int = 0
    cut: bool = False
    seed: int = 1
    dtype: str = "float32"
    device: str = "auto"

    kind: ClassVar[str] = "transformer"
    reads: ClassVar[str] = "labels"

    def __post_init__(self) -> None:
        for name in ("epochs", "batch", "looks", "intermediate_epochs"):
            _check(getattr(self, name) >= 1, name, getattr(self, name), "a whole number above 0")
        for name in ("head_rate", "decay", "patience", "longest"):
            _check(getattr(self, name) >= 0, name, getattr(self, name), "0 or a number above it")
        for name in ("warmup", "dropout"):
            _check(0 <= getattr(self, name) < 1, name, getattr(self, name), "a share from 0 to below 1")
        _check(self.rate > 0, "rate", self.rate, "a number above 0")
        _check(self.tags in TAGS, "tags", self.tags, " or ".join(TAGS))
        _check(self.pooling in _POOLING, "pooling", self.pooling, f"one of {', '.join(_POOLING)}")
        _check(self.dtype in _DTYPES, "dtype", self.dtype, f"one of {', '.join(_DTYPES)}")

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        """Learn until the sentences held out are judged no better, and save the best weights."""
        if not self.model:
            raise TrainError("which model is to be taught? Give --set model=FOLDER, a name on the Hub, or mini-masked")
        if not all(map(is_importable, _NEEDED)):
            raise MissingExtra(f"train {self.kind}", " and ".join(_NEEDED), "'acceptability[neural]'")
        from acceptability.train.classifiers.finetuned_teaching import taught

        return taught(self, learn, held, out, tell)


def sampled(seed: int, recipe: Finetuned) -> Finetuned:
    """Return a recipe with options drawn for a random search; all else stays, and the seed is the recipe's too.

    The ranges are ours, after what is usual for CoLA: a rate from 1e-5 to 5e-4, evenly in its logarithm (small models
    want the higher ones), batches of 16 or 32, 2 to 6 epochs, dropout 0 or 0.1. A probe, whose head learns alone,
    gets rates a hundred times as high.

    >>> drawn = sampled(3, Finetuned(model="mini-masked"))
    >>> drawn.batch, drawn.epochs, drawn.dropout, drawn.seed, 1e-5 <= drawn.rate <= 5e-4
    (16, 3, 0.0, 3, True)
    """
    random = np.random.default_rng(seed)
    rate = float(np.exp(random.uniform(np.log(1e-5), np.log(5e-4)))) * (100 if recipe.frozen else 1)
    batch, epochs = int(random.choice([16, 32])), int(random.integers(2, 7))
    dropout = float(random.choice([0.0, 0.1]))
    return replace(recipe, rate=float(f"{rate:.3g}"), batch=batch, epochs=epochs, dropout=dropout, seed=seed)


def _check(is_right: bool, name: str, value: object, expected: str) -> None:
    if not is_right:
        raise TrainError(f"{name} is {value!r}; expected {expected}")
