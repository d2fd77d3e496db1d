"""Acceptability classifiers: transformers with a classification head of one or two labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from acceptability.errors import ModelError, OutOfMemory, QueryError
from acceptability.models.huggingface import Checkpoint, check_length, checked_dtype, checkpoint
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
        return write(f"classifier:{self.files.signature}", {"acceptable": self.acceptable, "dtype": self.dtype})

    @cached_property
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
        coded = self.files.tokenizer([query.text for query in queries], verbose=False)
        for index, ids in enumerate(coded["input_ids"]):
            check_length(len(ids), limit, index)
        return [Tokens(query, tuple(ids)) for query, ids in zip(queries, coded["input_ids"], strict=True)]

    def run(self, batch: Sequence[Tokens]) -> list[LabelScores]:
        """Return the logits of both labels, from one forward pass."""
        import torch

        longest = max(each.size for each in batch)
        filler = self.files.tokenizer.pad_token_id or 0
        ids = torch.full((len(batch), longest), filler, dtype=torch.long)
        mask = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, each in enumerate(batch):
            ids[row, : each.size] = torch.tensor(each.ids)
            mask[row, : each.size] = 1
        device = self.net.device
        try:
            with torch.inference_mode():
                logits = self.net(input_ids=ids.to(device), attention_mask=mask.to(device)).logits.float().cpu()
        except torch.OutOfMemoryError as error:
            raise OutOfMemory(f"{self.files.name}: a batch of {len(batch)} texts does not fit: {error}") from error
        return [LabelScores(each.query.text, self._both(row)) for each, row in zip(batch, logits.tolist(), strict=True)]

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
) -> Classifier:
    """Return the classifier at a place."""
    if acceptable not in (0, 1):
        raise ModelError(f"classifier: acceptable is {acceptable!r}; expected the label 0 or 1")
    files = checkpoint("classifier", place, allow_pickle=allow_pickle)
    return Classifier(files, acceptable, checked_dtype(dtype), device)
