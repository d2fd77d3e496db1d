"""Masked language models: each token given all others (pseudo-log-likelihood).

``variant='pll'`` masks one token at a time (Salazar et al. 2020); ``variant='word_l2r'``
masks the later tokens of the same word too (Kauf and Ivanova 2023). A query with a
target has all tokens of the target masked together. Special tokens are never scored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_choice
from acceptability.models.huggingface import (
    BUDGETS,
    Checkpoint,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    in_target,
    within,
)
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

if TYPE_CHECKING:
    from acceptability.models.masking import Copies, MaskedPass

VARIANTS = ("pll", "word_l2r")


class Tokens(NamedTuple):
    """A query as token ids, with what is hidden while each of its tokens is scored.

    Args:
        scored: The places of the scored tokens, which are also those that may be hidden.
        hidden: For each of them, from where to where (exclusive) tokens are hidden.
    """

    query: Query
    ids: Sequence[int]
    scored: Sequence[int]
    hidden: Sequence[Span]
    coded: Any

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """The number of tokens in all masked copies."""
        return len(self.ids) * (len(self.scored) if self.hidden[0] != self.hidden[-1] else 1)

    def said(self, logprobs: NDArray[np.float32]) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        query, names, spans = self.query, self.coded.tokens, self.coded.offsets
        tokens = tuple([names[place] for place in self.scored])
        offsets = tuple([spans[place] for place in self.scored])
        if query.context:
            offsets = tuple([within(query, span) for span in offsets])
        return TokenScores(query.text, tokens, offsets, logprobs)


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

    @cached_property
    def forward(self) -> MaskedPass:
        """The fastest way through the network that gives what the plain way gives."""
        from acceptability.models.masking import masked_pass

        return masked_pass(self.net, self.files.name)

    packing = "length"

    @property
    def budget(self) -> int:
        """How many tokens should go through the network at once."""
        return BUDGETS[self.net.device.type]

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens, all tokenized at once."""
        if self.files.tokenizer.mask_token_id is None:
            raise ModelError(f"{self.files.name} has no mask token; if it is a causal model, write causal:…")
        coded = self.files.encoded([query.full for query in queries], special=True)
        limit, unknown = self.files.positions, self.files.tokenizer.unk_token_id
        return [
            _tokens(index, query, each, limit, unknown, self.variant)
            for index, (query, each) in enumerate(zip(queries, coded, strict=True))
        ]

    def begin(self, batch: Sequence[Tokens]) -> Callable[[], list[TokenScores]]:
        """Begin forward passes over all masked copies, and return what collects the log-probabilities."""
        begun = []
        for length in sorted({each.length for each in batch}):
            places = [place for place, each in enumerate(batch) if each.length == length]
            begun.append((places, self._same_length([batch[place] for place in places])))

        def collect() -> list[TokenScores]:
            found = {place: part for places, pending in begun for place, part in zip(places, pending(), strict=True)}
            return [each.said(found[place]) for place, each in enumerate(batch)]

        return collect

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token, from as many copies as fit at once."""
        return self.begin(batch)()

    def _same_length(self, batch: Sequence[Tokens]) -> Callable[[], list[NDArray[np.float32]]]:
        copies = _copies(batch, self.files.tokenizer.mask_token_id)
        with enough_memory(f"{self.files.name}: {len(copies.shown)} masked copies"):
            parts = [self.forward(each) for each in _slices(copies, max(1, self.budget // batch[0].length))]
        counts = np.array([len(each.scored) for each in batch])
        order, ends = np.argsort(copies.rows, kind="stable"), np.cumsum(counts)

        def collect() -> list[NDArray[np.float32]]:
            flat = np.empty(len(order), np.float32)
            flat[order] = np.concatenate([part() for part in parts])
            return [flat[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)]

        return collect


def _tokens(index: int, query: Query, coded: Any, limit: int, unknown: int | None, variant: str) -> Tokens:
    ids, special = coded.ids, coded.special_tokens_mask
    check_length(len(ids), limit, index)
    places = in_target(query, coded.offsets) if query.target or query.context else range(len(ids))
    scored = [place for place in places if not special[place] or ids[place] == unknown]
    if not scored or (unknown is not None and all(ids[place] == unknown for place in scored)):
        raise QueryError(index, "the model knows none of its tokens")
    hidden: Sequence[Span] = [(place, place + 1) for place in scored]
    if query.target:
        hidden = [(scored[0], scored[-1] + 1)] * len(scored)
    elif variant == "word_l2r":
        hidden = list(_to_the_end_of_the_word(scored, coded.word_ids))
    return Tokens(query, ids, scored, hidden, coded)


def _to_the_end_of_the_word(wanted: Sequence[int], words: Sequence[int | None]) -> Iterator[Span]:
    last = {words[place]: place for place in wanted}
    for place in wanted:
        yield place, place + 1 if words[place] is None else last[words[place]] + 1


def _copies(batch: Sequence[Tokens], mask: int) -> Copies:
    """Return the masked copies of texts of one length; copies that show the same are made once."""
    from acceptability.models.masking import Copies

    texts = np.array([each.ids for each in batch])
    may_hide = np.zeros(texts.shape, bool)
    counts = [len(each.scored) for each in batch]
    text = np.repeat(np.arange(len(batch)), counts)
    place = _flat((each.scored for each in batch), sum(counts))
    may_hide[text, place] = True
    spans = _flat((span for each in batch for span in each.hidden), 2 * sum(counts)).reshape(-1, 2)
    columns = np.arange(texts.shape[1])
    is_hidden = may_hide[text] & (columns >= spans[:, :1]) & (columns < spans[:, 1:])
    shown, rows = _unique(np.where(is_hidden, mask, texts[text]))
    return Copies(shown, rows, place, texts[text, place])


def _flat(rows: Iterable[Sequence[int]], count: int) -> NDArray[np.int64]:
    return np.fromiter((each for row in rows for each in row), np.int64, count)


def _unique(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the different rows, and which of them each row is.

    Rows are told apart by a random projection, which is seen to be right before it is used.
    """
    with np.errstate(over="ignore"):
        marks = rows.astype(np.uint64) @ np.random.default_rng(0).integers(1, 2**63, rows.shape[1], dtype=np.uint64)
    _, first, which = np.unique(marks, return_index=True, return_inverse=True)
    if not (rows[first[which]] == rows).all():
        found, which = np.unique(rows, axis=0, return_inverse=True)
        return found, which.ravel()
    return rows[first], which


def _slices(copies: Copies, step: int) -> Iterator[Copies]:
    """Yield the copies, a few at a time, in the order of their rows."""
    from acceptability.models.masking import Copies

    order = np.argsort(copies.rows, kind="stable")
    rows = copies.rows[order]
    for start in range(0, len(copies.shown), step):
        first, last = np.searchsorted(rows, (start, start + step))
        chosen = order[first:last]
        yield Copies(
            copies.shown[start : start + step], rows[first:last] - start, copies.places[chosen], copies.targets[chosen]
        )


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
