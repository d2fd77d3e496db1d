"""Masked language models: each token given all others (pseudo-log-likelihood).

``variant='pll'`` masks one token at a time (Salazar et al. 2020); ``variant='word_l2r'``
masks the later tokens of the same word too (Kauf and Ivanova 2023). A query with a
target has all tokens of the target masked together. Special tokens are never scored.
``preset='minicons'`` may be said, and changes nothing: minicons scores in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_choice
from acceptability.models.huggingface import (
    Checkpoint,
    budget,
    check_length,
    checked_dtype,
    checkpoint,
    enough_memory,
    in_target,
    within,
)
from acceptability.models.once import once
from acceptability.spelling import write
from acceptability.types import Query, TokenScores

if TYPE_CHECKING:
    from acceptability.models.masking import Copies, MaskedPass

VARIANTS = ("pll", "word_l2r")


class Tokens(NamedTuple):
    """A query as token ids, with what is hidden while each of its tokens is scored.

    Args:
        scored: The places of the scored tokens, which are also those that may be hidden.
        hidden: For each of them, where the tokens end that are hidden with it: it alone, or all up to there.
        together: Whether all scored tokens are hidden at once.
    """

    query: Query
    ids: Sequence[int]
    scored: Sequence[int]
    hidden: Sequence[int]
    together: bool
    coded: Any

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """The number of tokens in all masked copies."""
        return len(self.ids) * (1 if self.together else len(self.scored))

    def said(self, logprobs: NDArray[np.float32], names: Sequence[str]) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        query, ids, spans = self.query, self.ids, self.coded.offsets
        tokens = tuple([names[ids[place]] for place in self.scored])
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
        options = {"variant": self.variant, "dtype": self.dtype}
        return write(f"masked:{self.files.signature}", {**options, **self.files.options})

    @property
    def net(self) -> Any:
        """The network, made ready on first use."""
        return self.forward.net

    def _opened(self) -> Any:
        """Return the network as it was saved."""
        return self.files.net("AutoModelForMaskedLM", dtype=self.dtype, device=self.device)

    @once
    def forward(self) -> MaskedPass:
        """The fastest way through the network that gives what the plain way gives."""
        from acceptability.models.masking import masked_pass

        return masked_pass(self._opened, self.files.folder)

    packing = "length"

    @property
    def budget(self) -> int:
        """How many tokens should go through the network at once."""
        return min(budget(self.net.device.type), self.forward.most)

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
            return [each.said(found[place], self.files.names) for place, each in enumerate(batch)]

        return collect

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token, from as many copies as fit at once."""
        return self.begin(batch)()

    def _at_once(self, length: int) -> int:
        """Return how many copies go through the network together; a GPU likes round numbers."""
        count = max(1, self.budget // length)
        return count if count < 128 else count // 64 * 64

    def _same_length(self, batch: Sequence[Tokens]) -> Callable[[], list[NDArray[np.float32]]]:
        copies = _copies(batch, self.files.tokenizer.mask_token_id)
        with enough_memory(f"{self.files.name}: {len(copies.shown)} masked copies"):
            parts = [self.forward(each) for each in _slices(copies, self._at_once(batch[0].length))]
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
    is_whole = query.target is None
    ends = _ends_of_words(scored, coded.word_ids) if is_whole and variant == "word_l2r" else scored
    return Tokens(query, ids, scored, ends, not is_whole, coded)


def _ends_of_words(scored: Sequence[int], words: Sequence[int | None]) -> list[int]:
    """Return for each scored place the last one of the same word."""
    last = {words[place]: place for place in scored}
    return [place if words[place] is None else last[words[place]] for place in scored]


def _copies(batch: Sequence[Tokens], mask: int) -> Copies:
    """Return the masked copies of texts of one length; copies that show the same are made once."""
    from acceptability.models.masking import Copies

    texts = np.array([each.ids for each in batch])
    counts = np.array([len(each.scored) for each in batch])
    text = np.repeat(np.arange(len(batch)), counts)
    place = _flat([each.scored for each in batch], len(text))
    last = _flat([each.hidden for each in batch], len(text))
    together = np.repeat([each.together for each in batch], counts)
    may_hide = np.zeros(texts.shape, bool)
    may_hide[text, place] = True
    columns = np.arange(texts.shape[1])
    is_hidden = may_hide[text] & (together[:, None] | (columns >= place[:, None]) & (columns <= last[:, None]))
    shown, rows = _unique(np.where(is_hidden, mask, texts[text]))
    return Copies(shown, rows, place, texts[text, place])


def _flat(rows: Iterable[Sequence[int]], count: int) -> NDArray[np.int64]:
    return np.fromiter(chain.from_iterable(rows), np.int64, count)


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
    preset: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Masked:
    """Return the masked model at a place."""
    if preset is not None:  # minicons frames and scores as we do by default
        checked_choice("preset", preset, ("minicons",))
    files = checkpoint("masked", place, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    return Masked(files, checked_choice("variant", variant, VARIANTS), checked_dtype(dtype), device)
