"""Encoder-decoder models, such as T5 and BART: the log-probability of each token that the decoder writes.

``variant='lp'`` is the decoder's log-probability of each token given those before it, with the query's context as the
encoder's input; without a context, the encoder reads the special tokens that the tokenizer gives to an empty text. What
the tokenizer puts before a text, such as BART's ``<s>``, stands after the decoder's start token, and is not scored.
``eos=True`` scores the end token too.

``variant='pll'`` masks one token at a time in the encoder's input, and scores it in the decoder (after Salazar et al.
2020). Models with sentinels, such as T5, read ``<extra_id_0>`` for it, and the decoder has read nothing but that
sentinel. Models with a mask token, such as BART, read the mask, and the decoder has read the true text up to it. A
context stands before the text in the encoder's input, neither masked nor scored. All tokens of a query's target are
masked together by one sentinel or one mask, since such models are trained to fill gaps of any length, and scored from
left to right, each given those of the target before it.

``Seq2Seq.encode`` tokenizes queries, ``begin`` turns them into rows for encoder and decoder, and
``seq2seq_forward.py`` runs these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import locked_cached_property, validate_bool, validate_choice
from acceptability.models.hf.loading import (
    Checkpoint,
    check_length,
    convert_out_of_memory,
    find_checkpoint,
    find_target_tokens,
    find_unknown_tokens,
    get_device_class,
    get_token_budget,
    to_query_span,
    validate_dtype,
)
from acceptability.protocols import Model
from acceptability.specs import format_spec
from acceptability.types import Query, Span, TokenScores

if TYPE_CHECKING:
    from acceptability.models.hf.seq2seq_forward import Seq2SeqForwardPath, Seq2SeqRow

VARIANTS = ("lp", "pll")
# SentencePiece may split a word into a space of its own and the unknown token.
_SPACE_TOKEN = "▁"
# Most conversions of T5 write the sentinel without a space, some with one.
_SENTINEL_TOKENS = ("<extra_id_0>", "▁<extra_id_0>")


class GapToken(NamedTuple):
    """The token that replaces masked tokens in the text that the encoder reads.

    Args:
        token: Its id.
        is_sentinel: Whether the decoder, after the same token, writes the masked tokens alone; it writes the whole
            text otherwise.
    """

    token: int
    is_sentinel: bool


class Seq2SeqEncoding(NamedTuple):
    """A query as token ids, with the positions to score.

    Args:
        ids: The tokens that the decoder writes, with those that frame the text.
        scored: The positions in ``ids`` that are scored.
        spans: The character span of each scored token in the query's text.
        source: The tokens that the encoder reads; None for the text itself, with masked tokens.
        gap: The token that replaces masked tokens; None if none are masked.
    """

    query: Query
    ids: Sequence[int]
    scored: Sequence[int]
    spans: Sequence[Span]
    source: Sequence[int] | None = None
    gap: GapToken | None = None

    @property
    def size(self) -> int:
        """The number of tokens that the network reads, in all masked copies of the text."""
        if self.source is not None:
            return len(self.source) + self.scored[-1] + 1
        copies = 1 if self.query.target else len(self.scored)
        return copies * 2 * len(self.ids)

    def make_rows(self, start: int) -> list[Seq2SeqRow]:
        """Return the inputs of encoder and decoder: one row, or one for each token that is masked alone.

        Args:
            start: The id of the decoder's start token.
        """
        from acceptability.models.hf.seq2seq_forward import Seq2SeqRow

        if self.gap is None:
            assert self.source is not None
            return [
                Seq2SeqRow(self.source, [start, *self.ids[: self.scored[-1]]], self.scored, self._ids_at(self.scored))
            ]
        # A target is masked as a whole, since these models are trained to fill gaps of several tokens.
        masked = [self.scored] if self.query.target else [[position] for position in self.scored]
        return [self._make_gap_row(positions, self.gap, start) for positions in masked]

    def _make_gap_row(self, positions: Sequence[int], gap: GapToken, start: int) -> Seq2SeqRow:
        """Return the row in which the tokens at some positions are masked."""
        from acceptability.models.hf.seq2seq_forward import Seq2SeqRow

        first, last = positions[0], positions[-1]
        source = [*self.ids[:first], gap.token, *self.ids[last + 1 :]]
        if gap.is_sentinel:
            decoder_ids = [start, gap.token, *self.ids[first:last]]
            return Seq2SeqRow(
                source, decoder_ids, [position - first + 1 for position in positions], self._ids_at(positions)
            )
        return Seq2SeqRow(source, [start, *self.ids[:last]], positions, self._ids_at(positions))

    def _ids_at(self, positions: Sequence[int]) -> list[int]:
        """Return the token ids at some positions."""
        return [self.ids[position] for position in positions]

    def to_token_scores(
        self, logprobs: NDArray[np.float32], names: Sequence[str], unknown_token: str | None
    ) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        tokens = tuple([names[token_id] for token_id in self._ids_at(self.scored)])
        unknown = find_unknown_tokens(tokens, self.spans, unknown_token)
        return TokenScores(self.query.text, tokens, tuple(self.spans), logprobs, unknown)


@dataclass(frozen=True)
class Seq2Seq(Model):
    """An encoder-decoder model of transformers.

    Args:
        variant: "lp" or "pll".
        eos: Whether the end token is scored.
    """

    files: Checkpoint
    variant: str
    eos: bool
    dtype: str
    device: str

    packing = "size"

    @property
    def signature(self) -> str:
        """The files and the options that change a forward pass."""
        options = {"variant": self.variant, "eos": self.eos, "dtype": self.dtype}
        return format_spec(f"seq2seq:{self.files.signature}", {**options, **self.files.options})

    @property
    def device_class(self) -> str | None:
        """The class of device, if the network is in half precision."""
        return get_device_class(self.dtype, self.device)

    @property
    def net(self) -> Any:
        """The network, loaded on first use."""
        return self.forward.net

    def _load_seq2seq_net(self) -> Any:
        """Return the network as it was saved."""
        return self.files.load_net("AutoModelForSeq2SeqLM", dtype=self.dtype, device=self.device)

    @locked_cached_property
    def forward(self) -> Seq2SeqForwardPath:
        """The fastest path through the network that gives the scores of the plain path."""
        # Imported here, since a signature and stored scores need no PyTorch.
        from acceptability.models.hf.seq2seq_forward import choose_seq2seq_path

        return choose_seq2seq_path(self._load_seq2seq_net, self.files.folder)

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a batch."""
        return get_token_budget(self.net.device.type)

    @locked_cached_property
    def decoder_start_id(self) -> int:
        """The id of the decoder's start token."""
        if not getattr(self.files.config, "is_encoder_decoder", False):
            raise ModelError(f"{self.files.name} has no encoder and decoder; write causal:… or masked:…")
        token_id = getattr(self.files.config, "decoder_start_token_id", None)
        if not isinstance(token_id, int):
            raise ModelError(
                f"{self.files.name} does not say which token its decoder starts with: "
                "give its config.json a decoder_start_token_id"
            )
        return token_id

    @locked_cached_property
    def gap_token(self) -> GapToken:
        """The token that replaces masked tokens: a sentinel if the tokenizer has one, its mask token otherwise."""
        for name in _SENTINEL_TOKENS:
            if name in self.files.token_names:
                return GapToken(self.files.token_names.index(name), is_sentinel=True)
        if self.files.tokenizer.mask_token_id is None:
            raise ModelError(
                f"{self.files.name} has neither sentinels such as <extra_id_0> nor a mask token, "
                "so no token can be masked; write variant='lp'"
            )
        return GapToken(self.files.tokenizer.mask_token_id, is_sentinel=False)

    def encode(self, queries: Sequence[Query]) -> list[Seq2SeqEncoding]:
        """Return the queries as token ids, tokenized in one call."""
        # Raises the error for a model that is not an encoder-decoder, before a message about its tokens misleads.
        _ = self.decoder_start_id
        encode = self._encode_decoder_texts if self.variant == "lp" else self._encode_gapped_texts
        encodings = encode(queries)
        for index, encoding in enumerate(encodings):
            if self._is_unknown({encoding.ids[position] for position in encoding.scored}):
                raise QueryError(index, "the model knows none of its tokens")
        if self.eos:
            encodings = [self._append_end_token(encoding) for encoding in encodings]
        # After the end token has been added, which counts towards the limit of the decoder.
        encoder_limit, decoder_limit = self._get_max_length("encoder"), self._get_max_length("decoder")
        for index, encoding in enumerate(encodings):
            check_length(len(encoding.ids if encoding.source is None else encoding.source), encoder_limit, index)
            check_length(encoding.scored[-1] + 1, decoder_limit, index)
        return encodings

    def _is_unknown(self, tokens: set[int]) -> bool:
        """Return whether there is nothing to score: no tokens, or only unknown ones and spaces."""
        unknown, space = (
            self.files.tokenizer.unk_token_id,
            (self.files.token_names.index(_SPACE_TOKEN) if _SPACE_TOKEN in self.files.token_names else None),
        )
        return not tokens or (unknown in tokens and tokens <= {unknown, space})

    def _encode_decoder_texts(self, queries: Sequence[Query]) -> list[Seq2SeqEncoding]:
        """Return encodings of texts that the decoder writes after the encoder has read their contexts."""
        # Contexts repeat, often as the empty one: each is tokenized once, and equal sources are encoded once per batch.
        contexts = list(dict.fromkeys([query.context for query in queries]))
        context_encodings = self.files.tokenize(contexts, add_special_tokens=True)
        sources = {context: encoding.ids for context, encoding in zip(contexts, context_encodings, strict=True)}
        encodings = self.files.tokenize([query.text for query in queries], add_special_tokens=True)
        unknown = self.files.tokenizer.unk_token_id
        for index, query in enumerate(queries):
            if not sources[query.context]:
                raise QueryError(index, "it has no context, and the tokenizer has no special tokens to read instead")
        return [
            _encode_query(query, Query(query.text, target=query.target), encoding, unknown)._replace(
                source=sources[query.context]
            )
            for query, encoding in zip(queries, encodings, strict=True)
        ]

    def _encode_gapped_texts(self, queries: Sequence[Query]) -> list[Seq2SeqEncoding]:
        """Return encodings of texts, each after its context, whose tokens are masked in turn."""
        encodings = self.files.tokenize([query.full_text for query in queries], add_special_tokens=True)
        gap, unknown = self.gap_token, self.files.tokenizer.unk_token_id
        return [
            _encode_query(query, query, encoding, unknown)._replace(gap=gap)
            for query, encoding in zip(queries, encodings, strict=True)
        ]

    def _append_end_token(self, encoding: Seq2SeqEncoding) -> Seq2SeqEncoding:
        """Return an encoding in which the end token is scored too, unless only a target is scored."""
        end = self.files.tokenizer.eos_token_id
        if end is None:
            raise ModelError(f"{self.files.name} has no end token; leave out eos=True")
        if encoding.query.target:
            return encoding
        # What the tokenizer puts behind the text is replaced, since it may be the end token already or none.
        last = encoding.scored[-1] + 1
        end_offset = len(encoding.query.text)
        return encoding._replace(
            ids=[*encoding.ids[:last], end],
            scored=[*encoding.scored, last],
            spans=[*encoding.spans, (end_offset, end_offset)],
        )

    def _get_max_length(self, half: str) -> int:
        """Return the maximal number of tokens of a half of the network, "encoder" or "decoder"."""
        own = getattr(self.files.config, f"max_{half}_position_embeddings", None)
        return min(self.files.max_length, own or self.files.max_length)

    def begin(self, batch: Sequence[Seq2SeqEncoding]) -> Callable[[], list[TokenScores]]:
        """Start forward passes over all rows, and return the function that waits for the scores."""
        from acceptability.models.hf.seq2seq_forward import batch_rows

        rows = [row for encoding in batch for row in encoding.make_rows(self.decoder_start_id)]
        order = list(batch_rows(rows, self.budget))
        with convert_out_of_memory(f"{self.files.name}: a batch of {len(batch)} texts"):
            parts = [self.forward([rows[row_index] for row_index in row_indices]) for row_indices in order]

        def collect() -> list[TokenScores]:
            logprobs_by_row: dict[int, NDArray[np.float32]] = {}
            for row_indices, part in zip(order, parts, strict=True):
                row_logprobs = _split_by_counts(part(), [len(rows[row_index].targets) for row_index in row_indices])
                logprobs_by_row |= dict(zip(row_indices, row_logprobs, strict=True))
            # Back in the order of the rows, in which the rows of an encoding are neighbours.
            flat = np.concatenate([logprobs_by_row[row_index] for row_index in range(len(rows))])
            logprobs_by_encoding = _split_by_counts(flat, [len(encoding.scored) for encoding in batch])
            return [
                encoding.to_token_scores(logprobs, self.files.token_names, self.files.tokenizer.unk_token)
                for encoding, logprobs in zip(batch, logprobs_by_encoding, strict=True)
            ]

        return collect

    def run(self, batch: Sequence[Seq2SeqEncoding]) -> list[TokenScores]:
        """Return the scores of each query."""
        return self.begin(batch)()


def _encode_query(query: Query, scored_query: Query, encoding: Any, unknown_id: int | None) -> Seq2SeqEncoding:
    """Return a query with the positions to score, as yet without the input of the encoder.

    Args:
        scored_query: The query as it was tokenized: the same one, or without its context.
        encoding: Its tokenization.
        unknown_id: The token for unknown words, if there is one.
    """
    candidates = (
        find_target_tokens(scored_query, encoding.offsets)
        if scored_query.target or scored_query.context
        else range(len(encoding.ids))
    )
    special = encoding.special_tokens_mask
    scored = [position for position in candidates if not special[position] or encoding.ids[position] == unknown_id]
    spans = [to_query_span(scored_query, encoding.offsets[position]) for position in scored]
    return Seq2SeqEncoding(query, encoding.ids, scored, spans)


def _split_by_counts(numbers: NDArray[np.float32], counts: Sequence[int]) -> list[NDArray[np.float32]]:
    """Return an array in consecutive parts of the given lengths."""
    return np.split(numbers, np.cumsum(counts)[:-1])


def open_model(
    location: str,
    *,
    variant: str = "lp",
    eos: bool = False,
    dtype: str = "float32",
    device: str = "auto",
    adapter: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Seq2Seq:
    """Return the encoder-decoder model at a location. The options are those of ``Seq2Seq`` and ``find_checkpoint``."""
    validate_choice("variant", variant, VARIANTS)
    if validate_bool("eos", eos) and variant == "pll":
        raise ModelError("seq2seq: variant='pll' scores no end token; leave out eos=True")
    files = find_checkpoint(
        "seq2seq", location, adapter=adapter, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    return Seq2Seq(files, variant, eos, validate_dtype(dtype), device)
