"""Acceptability classifiers: transformers with a classification head of one or two labels, and those taught here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError, QueryError
from acceptability.models.huggingface import (
    Checkpoint,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    padded,
)
from acceptability.models.once import once
from acceptability.models.sentence_classifier import SentenceClassifier, folder_hash, open_folder
from acceptability.models.sentence_shape import is_ours
from acceptability.spelling import write
from acceptability.types import LabelScores, Query


@dataclass(frozen=True)
class Tokens:
    """A query as token ids."""

    query: Query
    ids: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of tokens."""
        return len(self.ids)


@dataclass(frozen=True)
class Classifier:
    """A classifier of transformers.

    Args:
        acceptable: Which of two labels means "acceptable": 1, as in CoLA, or 0.
    """

    files: Checkpoint
    acceptable: int
    dtype: str
    device: str

    @property
    def signature(self) -> str:
        """The files and whatever changes a forward pass."""
        options = {"acceptable": self.acceptable, "dtype": self.dtype}
        return write(f"classifier:{self.files.signature}", {**options, **self.files.options})

    @once
    def net(self) -> Any:
        """The weights, read on first use."""
        labels = self.files.config.num_labels
        if labels not in (1, 2):
            raise ModelError(f"{self.files.name} tells {labels} labels apart; acceptability needs one or two")
        return self.files.net("AutoModelForSequenceClassification", dtype=self.dtype, device=self.device)

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens; a classifier cannot be asked about a part or a context."""
        for index, query in enumerate(queries):
            if query.target or query.context:
                raise QueryError(index, "a classifier judges whole sentences, not regions or continuations")
        limit = self.files.positions
        coded = self.files.tokenizer([query.text for query in queries], return_special_tokens_mask=True, verbose=False)
        return [
            self._tokens(index, query, coded["input_ids"][index], coded["special_tokens_mask"][index], limit)
            for index, query in enumerate(queries)
        ]

    def _tokens(self, index: int, query: Query, ids: list[int], special: list[int], limit: int) -> Tokens:
        check_length(len(ids), limit, index)
        unknown = self.files.tokenizer.unk_token_id
        if not any(token != unknown and not mark for token, mark in zip(ids, special, strict=True)):
            raise QueryError(index, "the model knows none of its tokens")
        return Tokens(query, tuple(ids))

    def run(self, batch: Sequence[Tokens]) -> list[LabelScores]:
        """Return the logits of both labels, from one forward pass where the model can tell padding from text."""
        if self.net.config.pad_token_id is None:
            rows = [row for each in batch for row in self._forward([each])]
        else:
            rows = self._forward(batch)
        return [LabelScores(each.query.text, self._both(row)) for each, row in zip(batch, rows, strict=True)]

    def _forward(self, batch: Sequence[Tokens]) -> list[list[float]]:
        import torch

        net = self.net
        ids, mask = padded([each.ids for each in batch], net.config.pad_token_id or 0)
        with enough_memory(f"{self.files.name}: a batch of {len(batch)} texts"), torch.inference_mode():
            logits = net(input_ids=ids.to(net.device), attention_mask=mask.to(net.device)).logits
            found: list[list[float]] = logits.float().cpu().tolist()
            return found

    def _both(self, row: list[float]) -> tuple[float, float]:
        if len(row) == 1:
            return (0.0, row[0]) if self.acceptable else (row[0], 0.0)
        return row[1 - self.acceptable], row[self.acceptable]


def open_model(
    place: str,
    *,
    acceptable: int = 1,
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Classifier | SentenceClassifier:
    """Return the classifier at a place: one that was taught here, if its folder says so, else one of transformers."""
    if isinstance(acceptable, bool) or not isinstance(acceptable, int) or acceptable not in (0, 1):
        raise ModelError(f"classifier: acceptable is {acceptable!r}; expected the label 0 or 1")
    if (folder := _ours(place)) is not None:
        if acceptable != 1 or checked_dtype(dtype) != "float32":
            raise ModelError(f"classifier:{place} was taught here: 1 means acceptable, and it computes in float32 only")
        return open_folder(folder, device=device)
    files = checkpoint("classifier", place, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    return Classifier(files, acceptable, checked_dtype(dtype), device)


def _ours(place: str) -> Path | None:
    """Return the folder of a classifier that was taught here, which ``FOLDER@HASH`` names too; None for any other."""
    folder = Path(place).expanduser()
    if place and is_ours(folder):
        return folder
    bare, _, version = str(folder).rpartition("@")
    if not bare or folder.exists() or not is_ours(Path(bare)):
        return None
    if folder_hash(Path(bare)) != version:
        raise ModelError(f"{bare} has the content hash {folder_hash(Path(bare))}, not {version}: it is another model")
    return Path(bare)
