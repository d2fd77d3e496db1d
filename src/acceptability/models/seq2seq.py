"""Encoder-decoder models, such as T5 and BART: each token of what the decoder writes.

``variant='lp'`` is the decoder's log-probability of each token after those before it, with
the query's context as what the encoder reads; where there is no context, it reads the
special tokens that the tokenizer gives to an empty text. What the tokenizer puts before a
text, such as BART's ``<s>``, stands after the decoder's start token, and is not scored.
``eos=True`` scores the end token too.

``variant='pll'`` hides one token at a time from the encoder, and asks the decoder for it
(after Salazar et al. 2020). Models with sentinels, such as T5, read ``<extra_id_0>`` in
its place, and the decoder has read nothing but that sentinel. Models with a mask token,
such as BART, read the mask in its place, and the decoder has read the true text up to it.
A context stands before the text in what the encoder reads, neither hidden nor scored.
All tokens of a query's target are hidden together behind one sentinel or one mask, since
such models learn to fill gaps of any length, and are scored from left to right: each
after those of the target before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import checked_bool, checked_choice
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
from acceptability.types import Query, Span, TokenScores

if TYPE_CHECKING:
    from acceptability.models.encoder_decoder import Row, Seq2SeqPass

VARIANTS = ("lp", "pll")
_SPACE = "▁"
_SENTINELS = ("<extra_id_0>", "▁<extra_id_0>")


class Gap(NamedTuple):
    """What stands for hidden tokens in the text that the encoder reads.

    Args:
        is_sentinel: Whether the decoder writes what is hidden alone, after the same token; else it writes all.
    """

    token: int
    is_sentinel: bool


class Tokens(NamedTuple):
    """A query as token ids, with the places whose log-probability is wanted.

    Args:
        ids: The tokens that the decoder writes, with those that frame the text.
        scored: The places of the scored tokens among them.
        spans: Where each scored token stands in the query's text.
        source: What the encoder reads; None if that is the text itself, with gaps.
        gap: What stands for hidden tokens; None if nothing is hidden.
    """

    query: Query
    ids: Sequence[int]
    scored: Sequence[int]
    spans: Sequence[Span]
    source: Sequence[int] | None = None
    gap: Gap | None = None

    @property
    def size(self) -> int:
        """How many tokens the network reads, in all copies of the text."""
        if self.source is not None:
            return len(self.source) + self.scored[-1] + 1
        copies = 1 if self.query.target else len(self.scored)
        return copies * 2 * len(self.ids)

    def rows(self, start: int) -> list[Row]:
        """Return what encoder and decoder read: one row, or one for each token that is hidden alone."""
        from acceptability.models.encoder_decoder import Row

        if self.gap is None:
            assert self.source is not None
            return [Row(self.source, [start, *self.ids[: self.scored[-1]]], self.scored, self._at(self.scored))]
        hidden = [self.scored] if self.query.target else [[place] for place in self.scored]
        return [self._with_gap(places, self.gap, start) for places in hidden]

    def _with_gap(self, places: Sequence[int], gap: Gap, start: int) -> Row:
        from acceptability.models.encoder_decoder import Row

        first, last = places[0], places[-1]
        source = [*self.ids[:first], gap.token, *self.ids[last + 1 :]]
        if gap.is_sentinel:
            given = [start, gap.token, *self.ids[first:last]]
            return Row(source, given, [place - first + 1 for place in places], self._at(places))
        return Row(source, [start, *self.ids[:last]], places, self._at(places))

    def _at(self, places: Sequence[int]) -> list[int]:
        return [self.ids[place] for place in places]

    def said(self, logprobs: NDArray[np.float32], names: Sequence[str]) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        tokens = tuple([names[token] for token in self._at(self.scored)])
        return TokenScores(self.query.text, tokens, tuple(self.spans), logprobs)


@dataclass(frozen=True)
class Seq2Seq:
    """An encoder-decoder model of transformers."""

    files: Checkpoint
    variant: str
    eos: bool
    dtype: str
    device: str

    packing = "size"

    @property
    def signature(self) -> str:
        """The files and whatever changes a forward pass."""
        options = {"variant": self.variant, "eos": self.eos, "dtype": self.dtype}
        return write(f"seq2seq:{self.files.signature}", {**options, **self.files.options})

    @property
    def net(self) -> Any:
        """The network, made ready on first use."""
        return self.forward.net

    def _opened(self) -> Any:
        """Return the network as it was saved."""
        return self.files.net("AutoModelForSeq2SeqLM", dtype=self.dtype, device=self.device)

    @once
    def forward(self) -> Seq2SeqPass:
        """The fastest way through the network that gives what the plain way gives."""
        from acceptability.models.encoder_decoder import seq2seq_pass

        return seq2seq_pass(self._opened, self.files.folder)

    @property
    def budget(self) -> int:
        """How many tokens should go through the network at once."""
        return budget(self.net.device.type)

    @once
    def start(self) -> int:
        """The token that the decoder begins with."""
        if not getattr(self.files.config, "is_encoder_decoder", False):
            raise ModelError(f"{self.files.name} has no encoder and decoder; write causal:… or masked:…")
        found = getattr(self.files.config, "decoder_start_token_id", None)
        if not isinstance(found, int):
            raise ModelError(
                f"{self.files.name} does not say which token its decoder starts with: "
                "give its config.json a decoder_start_token_id"
            )
        return found

    @once
    def gap(self) -> Gap:
        """What stands for a hidden token: a sentinel if the tokenizer has them, else its mask."""
        for name in _SENTINELS:
            if name in self.files.names:
                return Gap(self.files.names.index(name), is_sentinel=True)
        if self.files.tokenizer.mask_token_id is None:
            raise ModelError(
                f"{self.files.name} has neither sentinels such as <extra_id_0> nor a mask token, "
                "so that nothing can be hidden; write variant='lp'"
            )
        return Gap(self.files.tokenizer.mask_token_id, is_sentinel=False)

    def encode(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return the queries as tokens, all tokenized at once."""
        _ = self.start  # refuses what is no encoder-decoder before anything is read of it
        encode = self._written if self.variant == "lp" else self._with_gaps
        found = encode(queries)
        for index, each in enumerate(found):
            if self._is_unknown({each.ids[place] for place in each.scored}):
                raise QueryError(index, "the model knows none of its tokens")
        if self.eos:
            found = [self._ended(each) for each in found]
        reads, writes = self._limit("encoder"), self._limit("decoder")
        for index, each in enumerate(found):
            check_length(len(each.ids if each.source is None else each.source), reads, index)
            check_length(each.scored[-1] + 1, writes, index)
        return found

    def _is_unknown(self, tokens: set[int]) -> bool:
        """Tell whether tokens say nothing: there are none, or they are unknown, perhaps with a space before them."""
        unknown, space = (
            self.files.tokenizer.unk_token_id,
            (self.files.names.index(_SPACE) if _SPACE in self.files.names else None),
        )
        return not tokens or (unknown in tokens and tokens <= {unknown, space})

    def _written(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return texts that the decoder writes after the encoder has read their contexts."""
        contexts = list(dict.fromkeys([query.context for query in queries]))
        read = self.files.encoded(contexts, special=True)
        sources = {context: each.ids for context, each in zip(contexts, read, strict=True)}
        coded = self.files.encoded([query.text for query in queries], special=True)
        unknown = self.files.tokenizer.unk_token_id
        for index, query in enumerate(queries):
            if not sources[query.context]:
                raise QueryError(index, "it has no context, and the tokenizer has no special tokens to read instead")
        return [
            _tokens(query, Query(query.text, target=query.target), each, unknown)._replace(
                source=sources[query.context]
            )
            for query, each in zip(queries, coded, strict=True)
        ]

    def _with_gaps(self, queries: Sequence[Query]) -> list[Tokens]:
        """Return texts, each after its context, whose tokens are to be hidden."""
        coded = self.files.encoded([query.full for query in queries], special=True)
        gap, unknown = self.gap, self.files.tokenizer.unk_token_id
        return [
            _tokens(query, query, each, unknown)._replace(gap=gap) for query, each in zip(queries, coded, strict=True)
        ]

    def _ended(self, each: Tokens) -> Tokens:
        """Return tokens with the end token scored behind them; not if only a part of the text is asked for."""
        end = self.files.tokenizer.eos_token_id
        if end is None:
            raise ModelError(f"{self.files.name} has no end token; leave eos=True away")
        if each.query.target:
            return each
        last = each.scored[-1] + 1
        where = len(each.query.text)
        return each._replace(
            ids=[*each.ids[:last], end], scored=[*each.scored, last], spans=[*each.spans, (where, where)]
        )

    def _limit(self, half: str) -> int:
        own = getattr(self.files.config, f"max_{half}_position_embeddings", None)
        return min(self.files.positions, own or self.files.positions)

    def begin(self, batch: Sequence[Tokens]) -> Callable[[], list[TokenScores]]:
        """Begin forward passes over all rows, and return what collects the log-probabilities."""
        from acceptability.models.encoder_decoder import portions

        rows = [row for each in batch for row in each.rows(self.start)]
        order = list(portions(rows, self.budget))
        with enough_memory(f"{self.files.name}: a batch of {len(batch)} texts"):
            parts = [self.forward([rows[place] for place in places]) for places in order]

        def collect() -> list[TokenScores]:
            found: dict[int, NDArray[np.float32]] = {}
            for places, part in zip(order, parts, strict=True):
                answers = _cut(part(), [len(rows[place].targets) for place in places])
                found |= dict(zip(places, answers, strict=True))
            flat = np.concatenate([found[place] for place in range(len(rows))])
            each_own = _cut(flat, [len(each.scored) for each in batch])
            return [each.said(own, self.files.names) for each, own in zip(batch, each_own, strict=True)]

        return collect

    def run(self, batch: Sequence[Tokens]) -> list[TokenScores]:
        """Return the log-probability of every wanted token."""
        return self.begin(batch)()


def _tokens(query: Query, asked: Query, coded: Any, unknown: int | None) -> Tokens:
    """Return a query as tokens.

    Args:
        asked: The query that the tokens are of: the same, or the same without its context.
    """
    places = in_target(asked, coded.offsets) if asked.target or asked.context else range(len(coded.ids))
    special = coded.special_tokens_mask
    scored = [place for place in places if not special[place] or coded.ids[place] == unknown]
    spans = [within(asked, coded.offsets[place]) for place in scored]
    return Tokens(query, coded.ids, scored, spans)


def _cut(numbers: NDArray[np.float32], counts: Sequence[int]) -> list[NDArray[np.float32]]:
    """Return numbers that stand one after another in parts, so many in each."""
    return np.split(numbers, np.cumsum(counts)[:-1])


def open_model(
    place: str,
    *,
    variant: str = "lp",
    eos: bool = False,
    dtype: str = "float32",
    device: str = "auto",
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Seq2Seq:
    """Return the encoder-decoder model at a place."""
    checked_choice("variant", variant, VARIANTS)
    if checked_bool("eos", eos) and variant == "pll":
        raise ModelError("seq2seq: variant='pll' scores no end token; leave eos=True away")
    files = checkpoint("seq2seq", place, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
    return Seq2Seq(files, variant, eos, checked_dtype(dtype), device)
