"""Acceptability classifiers of transformers, with one or two labels: their logits for a sentence.

``open_model`` also opens the classifiers that this package trains, which ``models/sentence`` implements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import locked_cached_property
from acceptability.models.hf.loading import (
    Checkpoint,
    check_length,
    convert_out_of_memory,
    find_checkpoint,
    get_device_class,
    pad_rows,
    validate_dtype,
)
from acceptability.models.sentence import (
    SentenceClassifier,
    hash_classifier_folder,
    is_sentence_classifier,
    open_sentence_classifier,
)
from acceptability.protocols import Model
from acceptability.specs import format_spec
from acceptability.types import LabelScores, Query


@dataclass(frozen=True)
class ClassifierEncoding:
    """A query as token ids, with special tokens."""

    query: Query
    ids: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class Classifier(Model):
    """A sequence classifier of transformers.

    Args:
        acceptable: Which of two labels means "acceptable": 1, as in CoLA, or 0.
    """

    files: Checkpoint
    acceptable: int
    dtype: str
    device: str

    @property
    def signature(self) -> str:
        """The files and the options that change a forward pass."""
        options = {"acceptable": self.acceptable, "dtype": self.dtype}
        return format_spec(f"classifier:{self.files.signature}", {**options, **self.files.options})

    @property
    def device_class(self) -> str | None:
        """The class of device, if the network is in half precision."""
        return get_device_class(self.dtype, self.device)

    @locked_cached_property
    def net(self) -> Any:
        """The network, loaded on first use."""
        labels = self.files.config.num_labels
        if labels not in (1, 2):
            raise ModelError(f"{self.files.name} distinguishes {labels} labels; acceptability needs one or two")
        return self.files.load_net("AutoModelForSequenceClassification", dtype=self.dtype, device=self.device)

    def encode(self, queries: Sequence[Query]) -> list[ClassifierEncoding]:
        """Return the queries as token ids; raise QueryError for one with a target or a context."""
        for index, query in enumerate(queries):
            if query.target or query.context:
                raise QueryError(index, "a classifier judges whole sentences, not regions or continuations")
        limit = self.files.max_length
        # `verbose` off: the tokenizer's warning about long texts would come before our error, which names the text.
        batch_encoding = self.files.tokenizer(
            [query.text for query in queries], return_special_tokens_mask=True, verbose=False
        )
        return [
            self._encode_query(
                index, query, batch_encoding["input_ids"][index], batch_encoding["special_tokens_mask"][index], limit
            )
            for index, query in enumerate(queries)
        ]

    def _encode_query(
        self, index: int, query: Query, ids: list[int], special: list[int], limit: int
    ) -> ClassifierEncoding:
        """Return a query as token ids, after checking its length and that the model knows a token of it."""
        check_length(len(ids), limit, index)
        unknown_id = self.files.tokenizer.unk_token_id
        if not any(token != unknown_id and not mark for token, mark in zip(ids, special, strict=True)):
            raise QueryError(index, "the model knows none of its tokens")
        return ClassifierEncoding(query, tuple(ids))

    def run(self, batch: Sequence[ClassifierEncoding]) -> list[LabelScores]:
        """Return the logits of both labels for each query."""
        # Without a padding token, as in GPT-2, the network takes the last position of a row as the end of the text.
        # Texts then go through it singly, since padding would shift that position.
        if self.net.config.pad_token_id is None:
            rows = [row for encoding in batch for row in self._compute_logits([encoding])]
        else:
            rows = self._compute_logits(batch)
        return [
            LabelScores(encoding.query.text, self._order_logits(row)) for encoding, row in zip(batch, rows, strict=True)
        ]

    def _compute_logits(self, batch: Sequence[ClassifierEncoding]) -> list[list[float]]:
        """Return the logits of each query, in the order of the network's labels."""
        import torch

        net = self.net
        ids, mask = pad_rows([encoding.ids for encoding in batch], net.config.pad_token_id or 0)
        with convert_out_of_memory(f"{self.files.name}: a batch of {len(batch)} texts"), torch.inference_mode():
            logits = net(input_ids=ids.to(net.device), attention_mask=mask.to(net.device)).logits
            rows: list[list[float]] = logits.float().cpu().tolist()
            return rows

    def _order_logits(self, row: list[float]) -> tuple[float, float]:
        """Return the logits of "unacceptable" and "acceptable"."""
        # A single output is the log-odds of label 1: a softmax over it and a constant 0 is the same as a sigmoid.
        if len(row) == 1:
            return (0.0, row[0]) if self.acceptable else (row[0], 0.0)
        return row[1 - self.acceptable], row[self.acceptable]


def open_model(
    location: str,
    *,
    acceptable: int = 1,
    dtype: str = "float32",
    device: str = "auto",
    adapter: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Classifier | SentenceClassifier:
    """Return the classifier at a location: one trained by this package if the folder holds one, or one of transformers.

    Args:
        acceptable: Which of two labels means "acceptable".
    """
    if isinstance(acceptable, bool) or not isinstance(acceptable, int) or acceptable not in (0, 1):
        raise ModelError(f"classifier: acceptable is {acceptable!r}; expected the label 0 or 1")
    if (folder := _find_trained_folder(location)) is not None:
        if acceptable != 1 or validate_dtype(dtype) != "float32":
            raise ModelError(
                f"classifier:{location} was trained here: 1 means acceptable, and it computes in float32 only"
            )
        return open_sentence_classifier(folder, device=device)
    files = find_checkpoint(
        "classifier", location, adapter=adapter, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    return Classifier(files, acceptable, validate_dtype(dtype), device)


def _find_trained_folder(location: str) -> Path | None:
    """Return the folder of a classifier trained by this package, also for ``FOLDER@HASH``; None for any other."""
    folder = Path(location).expanduser()
    if location and is_sentence_classifier(folder):
        return folder
    bare, _, version = str(folder).rpartition("@")
    if not bare or folder.exists() or not is_sentence_classifier(Path(bare)):
        return None
    if hash_classifier_folder(Path(bare)) != version:
        raise ModelError(
            f"{bare} has the content hash {hash_classifier_folder(Path(bare))}, not {version}: it is another model"
        )
    return Path(bare)
