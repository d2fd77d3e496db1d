"""Masked language models: each token given all others (pseudo-log-likelihood).

``variant='pll'`` masks one token at a time (Salazar et al. 2020); ``variant='word_l2r'``
masks the later tokens of the same word too (Kauf and Ivanova 2023). A query with a
target has all tokens of the target masked together. Special tokens are never scored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_choice
from acceptability.models.huggingface import (
    Checkpoint,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    in_target,
    logprobs_at,
    padded,
    within,
)
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

VARIANTS = ("pll", "word_l2r")
_TOKENS_AT_ONCE = 1024


@dataclass(frozen=True)
class Copy:
    """One masked copy of a text: what is hidden, and what is asked for."""

    hidden: tuple[int, ...]
    scored: tuple[int, ...]


@dataclass(frozen=True)
class Tokens:
    """A query as token ids, with its masked copies."""

    query: Query
    ids: tuple[int, ...]
    copies: tuple[Copy, ...]
    tokens: tuple[str, ...]
    offsets: tuple[Span, ...]

    @property
    def size(self) -> int:
        """The number of tokens in all copies."""
        return len(self.ids) * len(self.copies)


@dataclass(frozen=True)
class Masked:
    """A masked language model of transformers."""

    files: Checkpoint
    variant: str
    dtype: str
    device: str

    @property
    def signature(self) -> str:
        """The files and whatever changes a forward pass."""
        return write(f"masked:{self.files.signature}", {"variant": self.variant, "dtype": self.dtype})

    @cached_property
    def net(self) -> Any:
        """The weights, read on first use."""
        return self.files.net("AutoModelForMaskedLM", dtype=self.dtype, device=self.device)

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens, all tokenized at once."""
        if self.files.tokenizer.mask_token_id is None:
            raise ModelError(f"{self.files.name} has no mask token; if it is a causal model, write causal:…")
        limit = self.files.positions
        coded = self.files.tokenizer(
            [query.full for query in queries],
            return_offsets_mapping=True,
            return_special_tokens_mask=True,
            verbose=False,
        )
        return [self._tokens(query, coded, index, limit) for index, query in enumerate(queries)]

    def _tokens(self, query: Query, coded: Any, index: int, limit: int) -> Tokens:
        ids, offsets = coded["input_ids"][index], coded["offset_mapping"][index]
        check_length(len(ids), limit, index)
        special = coded["special_tokens_mask"][index]
        unknown = self.files.tokenizer.unk_token_id
        wanted = [place for place in in_target(query, offsets) if not special[place] or ids[place] == unknown]
        if not wanted or all(ids[place] == unknown for place in wanted):
            raise QueryError(index, "the model knows none of its tokens")
        if query.target:
            copies: tuple[Copy, ...] = (Copy(tuple(wanted), tuple(wanted)),)
        else:
            copies = tuple(_copies(wanted, coded.word_ids(index), self.variant))
        return Tokens(
            query,
            tuple(ids),
            copies,
            tuple(self.files.tokenizer.convert_ids_to_tokens([ids[place] for place in wanted])),
            tuple(within(query, offsets[place]) for place in wanted),
        )

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token, from as many copies as fit at once."""
        copies = [(each, copy) for each in batch for copy in each.copies]
        longest = max(len(each.ids) for each in batch)
        step = max(1, _TOKENS_AT_ONCE // longest)
        parts = [self._forward(copies[start : start + step]) for start in range(0, len(copies), step)]
        ends = np.cumsum([len(each.tokens) for each in batch])[:-1]
        return [
            TokenScores(each.query.text, each.tokens, each.offsets, part)
            for each, part in zip(batch, np.split(np.concatenate(parts), ends), strict=True)
        ]

    def _forward(self, copies: Sequence[tuple[Tokens, Copy]]) -> Any:
        import torch

        tokenizer, net = self.files.tokenizer, self.net
        truth, mask = padded([each.ids for each, _ in copies], tokenizer.pad_token_id or 0)
        hidden = torch.zeros_like(truth, dtype=torch.bool)
        for row, (_, copy) in enumerate(copies):
            hidden[row, list(copy.hidden)] = True
        shown = truth.masked_fill(hidden, tokenizer.mask_token_id)
        rows = torch.tensor([row for row, (_, copy) in enumerate(copies) for _ in copy.scored])
        places = torch.tensor([place for _, copy in copies for place in copy.scored])
        with enough_memory(f"{self.files.name}: {len(copies)} masked copies"), torch.inference_mode():
            logits = net(input_ids=shown.to(net.device), attention_mask=mask.to(net.device)).logits
            return logprobs_at(logits[rows, places], truth[rows, places])


def _copies(wanted: Sequence[int], words: Sequence[int | None], variant: str) -> Iterator[Copy]:
    for place in wanted:
        later = [
            other
            for other in wanted
            if variant == "word_l2r" and other > place and words[other] is not None and words[other] == words[place]
        ]
        yield Copy((place, *later), (place,))


def open_model(
    place: str,
    *,
    variant: str = "pll",
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
) -> Masked:
    """Return the masked model at a place."""
    files = checkpoint("masked", place, allow_pickle=allow_pickle)
    return Masked(files, checked_choice("variant", variant, VARIANTS), checked_dtype(dtype), device)
