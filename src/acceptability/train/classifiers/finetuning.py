"""The recipe ``transformer``: fine-tune a Hugging Face transformer as a classifier of acceptability, or probe it.

Training starts from a pretrained language model and a randomly initialised head of two labels. The result is a folder
that ``AutoModelForSequenceClassification`` opens without any code of this package. This module has the options, and can
be imported without torch; ``finetuning_task`` has the training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.train.classifiers.recipe import ClassifierRecipe, FitResult, LabelledSentences, open_checkpointed_run
from acceptability.train.recipe import TrainingProgressCallback, rename_options

_REQUIRED_PACKAGES = ("torch", "transformers", "tokenizers", "safetensors", "accelerate")
_POOLING = ("auto", "first", "last", "mean")
_DTYPES = ("float32", "float16", "bfloat16")
# Here and not beside the reader of treebanks, since options are checked before torch is imported.
UPOS, XPOS = "upos", "xpos"
TAG_KINDS = (UPOS, XPOS)


@rename_options(
    looks="evaluations_per_epoch",
    longest="max_length",
    cut="truncate",
    rate="learning_rate",
    head_rate="head_learning_rate",
    decay="weight_decay",
    batch="batch_size",
)
@dataclass(frozen=True)
class FineTuningRecipe(ClassifierRecipe):
    """Transformer of Hugging Face, encoder or decoder, with a classification head: fine-tuned, or a linear probe.

    Args:
        model: The pretrained model: a folder of transformers, a name on the Hub, a GGUF file, a named model such as
            mini-masked, or a spec such as causal:FOLDER(bos='<s>'), whose start token then precedes every sentence.
        intermediate: A file of another task that all weights are trained on first: sentence pairs as in MNLI (.tsv,
            .jsonl), words with tags (.conllu), or with supertags (``word|category``, one sentence per line).
        intermediate_epochs: The number of epochs on that task.
        tags: Which tags of a .conllu file are predicted: upos or xpos.
        pooling: Which token's hidden state the head reads: first, last, or the mean of all; auto takes what the
            architecture's own class does, which is the first token for most encoders, the last one for decoders.
        frozen: Whether only the head is trained: a probe of what the model encodes. Hidden states are computed once.
        epochs: The largest number of epochs.
        batch_size: How many sentences a step reads.
        learning_rate: The peak learning rate of the pretrained weights.
        head_learning_rate: The peak learning rate of the randomly initialised head; 0 means that of the others.
        warmup: The share of the steps in which the learning rates rise; then they fall linearly to zero.
        weight_decay: The weight decay of matrices (AdamW).
        dropout: The dropout rate, wherever the architecture has dropout.
        evaluations_per_epoch: How often per epoch the held-out sentences are evaluated; the best weights are kept.
        patience: After how many evaluations without a better MCC the training stops; 0 means never.
        max_length: The most tokens a sentence may have; 0 means as many as the model reads.
        truncate: Whether longer sentences are truncated, and counted, instead of being an error.
        seed: Determines the head's initial weights, the order of the sentences, and dropout.
        dtype: How weights are saved: float32, float16 or bfloat16.
        device: Where to train: cpu, cuda, or auto, a GPU if there is one (in bfloat16 autocast).
    """

    model: str = ""
    intermediate: str = ""
    intermediate_epochs: int = 1
    tags: str = UPOS
    pooling: str = "auto"
    frozen: bool = False
    epochs: int = 3
    batch_size: int = 32
    learning_rate: float = 5e-5
    head_learning_rate: float = 0.0
    warmup: float = 0.1
    weight_decay: float = 0.01
    dropout: float = 0.1
    evaluations_per_epoch: int = 2
    patience: int = 0
    max_length: int = 0
    truncate: bool = False
    seed: int = 1
    dtype: str = "float32"
    device: str = "auto"

    kind: ClassVar[str] = "transformer"
    reads: ClassVar[str] = "labels"

    def sample_hyperparameters(self, seed: int) -> FineTuningRecipe:
        """Return the recipe with hyperparameters from the ranges of a search; see the function of this name."""
        return sample_hyperparameters(seed, self)

    def __post_init__(self) -> None:
        for name in ("epochs", "batch_size", "evaluations_per_epoch", "intermediate_epochs"):
            _check_option(getattr(self, name) >= 1, name, getattr(self, name), "a whole number above 0")
        for name in ("head_learning_rate", "weight_decay", "patience", "max_length"):
            _check_option(getattr(self, name) >= 0, name, getattr(self, name), "0 or a number above it")
        for name in ("warmup", "dropout"):
            _check_option(0 <= getattr(self, name) < 1, name, getattr(self, name), "a share from 0 to below 1")
        _check_option(self.learning_rate > 0, "learning_rate", self.learning_rate, "a number above 0")
        _check_option(self.tags in TAG_KINDS, "tags", self.tags, " or ".join(TAG_KINDS))
        _check_option(self.pooling in _POOLING, "pooling", self.pooling, f"one of {', '.join(_POOLING)}")
        _check_option(self.dtype in _DTYPES, "dtype", self.dtype, f"one of {', '.join(_DTYPES)}")

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
        """Fine-tune on some sentences, and save the weights that are best on the held-out ones."""
        if not self.model:
            raise TrainError(
                "which model is to be fine-tuned? Give --set model=FOLDER, a name on the Hub, or mini-masked"
            )
        if not all(map(is_importable, _REQUIRED_PACKAGES)):
            raise MissingExtra(f"train {self.kind}", " and ".join(_REQUIRED_PACKAGES), "'acceptability[neural]'")
        # Recipes are listed and their options checked without torch; importing it takes seconds.
        from acceptability.train.classifiers.finetuning_task import fine_tune_classifier

        run = open_checkpointed_run(self, train_set, held_out_set, out, progress)
        return fine_tune_classifier(self, train_set, held_out_set, out, run)


def sample_hyperparameters(seed: int, recipe: FineTuningRecipe) -> FineTuningRecipe:
    """Return a recipe with options drawn for a random search; the other options stay, and the seed is set.

    The ranges are ours, after common practice for CoLA: a rate from 1e-5 to 5e-4, log-uniform (small models need the
    higher ones), batches of 16 or 32, 2 to 6 epochs, dropout 0 or 0.1. A probe, of which only the head is trained, gets
    rates a hundred times as high.

    >>> drawn = sample_hyperparameters(3, FineTuningRecipe(model="mini-masked"))
    >>> drawn.batch_size, drawn.epochs, drawn.dropout, drawn.seed, 1e-5 <= drawn.learning_rate <= 5e-4
    (16, 3, 0.0, 3, True)
    """
    random = np.random.default_rng(seed)
    learning_rate = float(np.exp(random.uniform(np.log(1e-5), np.log(5e-4)))) * (100 if recipe.frozen else 1)
    # The order of the draws is fixed: with another one, the same seed would give other hyperparameters.
    batch_size, epochs = int(random.choice([16, 32])), int(random.integers(2, 7))
    dropout = float(random.choice([0.0, 0.1]))
    # Rounded to three digits, since the model card lists every option.
    return replace(
        recipe,
        learning_rate=float(f"{learning_rate:.3g}"),
        batch_size=batch_size,
        epochs=epochs,
        dropout=dropout,
        seed=seed,
    )


def _check_option(is_valid: bool, name: str, value: object, expected: str) -> None:
    if not is_valid:
        raise TrainError(f"{name} is {value!r}; expected {expected}")
