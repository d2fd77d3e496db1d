"""Masked language models: pseudo-log-likelihood (PLL), the log-probability of each token given all others.

``variant='pll'`` masks one token at a time (Salazar et al. 2020); ``variant='word_l2r'`` masks the later tokens of the
same word too (Kauf and Ivanova 2023). For a query with a target, all tokens of the target are masked together. Special
tokens are never scored. ``preset='minicons'`` is accepted and changes nothing: minicons scores in the same way.

``Masked.encode`` tokenizes queries and decides what is masked, ``begin`` turns a batch into masked copies of its texts,
each distinct copy once, and ``masked_forward.py`` runs them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import locked_cached_property, validate_choice
from acceptability.models.hf.devices import start_gpu
from acceptability.models.hf.loading import (
    Checkpoint,
    LanguageCheckpoint,
    check_length,
    convert_out_of_memory,
    find_checkpoint,
    find_target_tokens,
    find_unknown_tokens,
    get_token_budget,
    to_query_span,
    validate_dtype,
)
from acceptability.models.windows import (
    TokenSlice,
    check_stride,
    list_window_starts,
    make_windowed,
    warn_of_long_text,
)
from acceptability.outputs import FlatRows, TextColumns, expand_ranges, flatten_rows, join_text_columns
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import format_spec
from acceptability.types import Query, TokenScores

if TYPE_CHECKING:
    from acceptability.models.hf.masked_forward import MaskedCopies, MaskedForwardPath
    from acceptability.models.kernels.head import PendingLogprobs

VARIANTS = ("pll", "word_l2r")


class MaskedEncoding(NamedTuple):
    """A query as token ids, with what is masked while each of its tokens is scored.

    Args:
        ids: The tokens of the text, with special tokens.
        scored: The positions that are scored, which are also the only ones that may be masked.
        mask_ends: For each of these, the last position that is masked with it: its own, or the last of its word.
        masks_all_at_once: Whether all scored tokens are masked together.
        encoding: The tokenizer's encoding, with the character offsets of the tokens.
    """

    query: Query
    ids: Sequence[int]
    scored: Sequence[int]
    mask_ends: Sequence[int]
    masks_all_at_once: bool
    encoding: Any

    @property
    def length(self) -> int:
        """The number of tokens."""
        return len(self.ids)

    @property
    def size(self) -> int:
        """The number of tokens in all masked copies."""
        return len(self.ids) * (1 if self.masks_all_at_once else len(self.scored))

    def to_token_scores(
        self, logprobs: NDArray[np.float32], names: Sequence[str], unknown_token: str | None
    ) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        query, ids, spans = self.query, self.ids, self.encoding.offsets
        tokens = tuple([names[ids[position]] for position in self.scored])
        offsets = tuple([spans[position] for position in self.scored])
        if query.context:
            offsets = tuple([to_query_span(query, span) for span in offsets])
        return TokenScores(query.text, tokens, offsets, logprobs, find_unknown_tokens(tokens, offsets, unknown_token))


@dataclass(frozen=True)
class Masked(LanguageCheckpoint):
    """A masked language model of transformers.

    Args:
        variant: "pll" or "word_l2r".
    """

    files: Checkpoint
    variant: str
    dtype: str
    device: str

    @property
    def signature(self) -> str:
        """The files and the options that change a forward pass."""
        options = {"variant": self.variant, "dtype": self.dtype}
        return format_spec(f"masked:{self.files.signature}", {**options, **self.files.options})

    @property
    def encodes_in_background(self) -> bool:
        """Whether a GPU runs the batches, while which this machine can tokenize. On a CPU, both want the same cores."""
        return bool(self.net.device.type == "cuda")

    @property
    def net(self) -> Any:
        """The network, loaded on first use."""
        return self.forward.net

    def _load_masked_net(self) -> Any:
        """Return the network as it was saved."""
        return self.files.load_net("AutoModelForMaskedLM", dtype=self.dtype, device=self.device)

    @locked_cached_property
    def forward(self) -> MaskedForwardPath:
        """The fastest path through the network that gives the scores of the plain path."""
        # Imported here, since a signature and stored scores need no PyTorch.
        from acceptability.models.hf.masked_forward import choose_masked_path

        return choose_masked_path(self._load_masked_net, self.files.folder)

    # Copies of equal length need no padding, and so no attention mask, which the fast attention does not take.
    packing = "length"

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a forward pass."""
        return min(get_token_budget(self.net.device.type), self.forward.max_tokens)

    def encode(self, queries: Sequence[Query]) -> list[MaskedEncoding] | TextColumns:
        """Return the queries as token ids, tokenized in one call."""
        start_gpu(self.device)
        encodings = self._tokenize(queries)
        if (trained := self.trained_length) and max(map(len, encodings), default=0) > trained:
            warn_of_long_text(self.files.name, trained)
        limit, unknown = self.files.max_length, self.files.tokenizer.unk_token_id
        if not any(query.target or query.context for query in queries):
            return _encode_whole_texts(queries, encodings, limit, unknown, self.variant)
        return self._encode_each(queries, encodings, limit)

    def encode_each(self, queries: Sequence[Query]) -> list[MaskedEncoding]:
        """Return the queries as token ids, each as an object, which predictions need."""
        return self._encode_each(queries, self._tokenize(queries), self.files.max_length)

    def encode_long(self, queries: Sequence[Query]) -> list[MaskedEncoding]:
        """Return the queries as token ids, also those that are longer than the model's window."""
        return self._encode_each(queries, self._tokenize(queries), sys.maxsize)

    def split_windows(self, encoding: MaskedEncoding, window: int, stride: int) -> list[MaskedEncoding]:
        """Return the windows of an encoded query, in each of which other tokens are scored."""
        special = encoding.encoding.special_tokens_mask
        first = next(at for at, flag in enumerate(special) if not flag)
        last = next(at for at in reversed(range(len(special))) if not special[at]) + 1
        capacity = window - first - (len(special) - last)
        check_stride(stride, capacity, self.files.name)
        starts = [first + start for start in list_window_starts(last - first, capacity, stride)]
        if encoding.masks_all_at_once:
            # One window for all that is masked together, with as much on its left as on its right.
            middle = (encoding.scored[0] + encoding.scored[-1]) // 2
            starts = [min(max(middle - capacity // 2, first), last - capacity)]
        begin, windows = 0, []
        for start, following in zip(starts, [*starts[1:], None], strict=True):
            # A token in two windows is scored in the one in which it is farther from the edge.
            stop = len(special) if following is None else (following + start + capacity + 1) // 2
            chosen = [at for at, position in enumerate(encoding.scored) if begin <= position < stop]
            if chosen:
                windows.append(_cut_window(encoding, chosen, (first, start, start + capacity, last)))
            begin = stop
        if encoding.masks_all_at_once:
            # None, if what is masked together does not fit into one.
            return [one for one in windows if first <= min(one.scored) <= max(one.scored) < len(one.ids)]
        return windows

    def _tokenize(self, queries: Sequence[Query]) -> Sequence[Any]:
        """Return the tokenizer's encoding of each text."""
        if self.files.tokenizer.mask_token_id is None:
            raise ModelError(f"{self.files.name} has no mask token; if it is a causal model, write causal:…")
        return self.files.tokenize([query.full_text for query in queries], add_special_tokens=True)  # type: ignore[no-any-return]

    def _encode_each(self, queries: Sequence[Query], encodings: Sequence[Any], max_length: int) -> list[MaskedEncoding]:
        """Return each query by itself, with the positions to score and to mask."""
        unknown = self.files.tokenizer.unk_token_id
        return [
            _encode_query(index, query, encoding, max_length, unknown, self.variant)
            for index, (query, encoding) in enumerate(zip(queries, encodings, strict=True))
        ]

    def begin(self, batch: Sequence[Any]) -> Callable[[], Sequence[TokenScores]]:
        """Start forward passes over all masked copies, and return the function that waits for the scores."""
        names, unknown_token = self.files.token_names, self.files.tokenizer.unk_token
        if isinstance(batch[0], TextColumns):
            columns = join_text_columns(batch)
            all_rows = TextsToMask(columns.tokens, columns.scored, columns.mask_ends, np.zeros(len(columns), bool))
            collect_columns = self._begin_rows(all_rows)
            return lambda: columns.to_token_columns(collect_columns(), self.token_name_array)
        rows = make_texts_to_mask(batch)
        collect = self._begin_rows(rows)
        return lambda: [
            encoding.to_token_scores(own, names, unknown_token)
            for encoding, own in zip(batch, np.split(collect(), rows.scored.starts[1:]), strict=True)
        ]

    def run(self, batch: Sequence[Any]) -> Sequence[TokenScores]:
        """Return the scores of each query."""
        return self.begin(batch)()

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also predicts: the distribution at each masked token."""
        from acceptability.models.predictions.masked_predictor import MaskedPredictor

        return MaskedPredictor(self, top)

    @property
    def next_tokens(self) -> NextTokenModel:
        """The distribution over the token at the mask of a text."""
        from acceptability.models.predictions.masked_predictor import MaskedTokens

        return MaskedTokens(self)

    def _count_copies_per_pass(self, length: int) -> int:
        """Return the number of copies of a length in one forward pass."""
        # One long text has as many copies as tokens, and may exceed the budget by itself: it takes several passes.
        # Large numbers are rounded down to a multiple of 16, for which a GPU has its fastest matrix products, and of
        # the copies that share a tile of its attention.
        count, multiple = max(1, self.budget // length), 16 * max(1, 64 // length)
        return count if count < 2 * multiple else count // multiple * multiple

    def _begin_rows(self, rows: TextsToMask) -> PendingLogprobs:
        """Start the passes over texts, and return the function that waits for the log-probability of each position."""
        lengths = rows.tokens.lengths
        # The engine batches queries of one length, but a caller who batches by other rules is served too.
        parts = []
        for length in np.unique(lengths).tolist():
            indices = np.flatnonzero(lengths == length)
            positions = expand_ranges(rows.scored.starts[indices], rows.scored.lengths[indices])
            parts.append((positions, self._begin_same_length(rows.take(indices))))

        def collect() -> NDArray[np.float32]:
            logprobs = np.empty(len(rows.scored.values), np.float32)
            for positions, pending in parts:
                logprobs[positions] = pending()
            return logprobs

        return collect

    def _begin_same_length(self, rows: TextsToMask) -> PendingLogprobs:
        """Start the passes over texts of one length, see ``_begin_rows``."""
        copies = make_masked_copies(rows, self.files.tokenizer.mask_token_id)
        with convert_out_of_memory(f"{self.files.name}: {len(copies.input_ids)} masked copies"):
            step = self._count_copies_per_pass(copies.input_ids.shape[1])
            parts = [self.forward(part) for part in slice_copies(copies, step)]
        # Slices come in the order of the copies, while targets of several queries may share a copy.
        order = np.argsort(copies.rows, kind="stable")

        def collect() -> NDArray[np.float32]:
            logprobs = np.empty(len(order), np.float32)
            logprobs[order] = np.concatenate([part() for part in parts])
            return logprobs

        return collect


@dataclass(frozen=True, eq=False)
class TextsToMask:
    """Texts as token ids, with what is masked while each of their tokens is scored.

    Args:
        tokens: The token ids of each text, with special tokens.
        scored: The positions that are scored in each text, which are also the only ones that may be masked.
        mask_ends: For each of these, the last position that is masked with it: its own, or the last of its word.
        masks_all_at_once: Whether all scored tokens of a text are masked together.
    """

    tokens: FlatRows
    scored: FlatRows
    mask_ends: NDArray[np.int64]
    masks_all_at_once: NDArray[np.bool_]

    def take(self, indices: NDArray[np.int64]) -> TextsToMask:
        """Return some of the texts."""
        if len(indices) == len(self.tokens) and np.array_equal(indices, np.arange(len(indices))):
            return self
        positions = expand_ranges(self.scored.starts[indices], self.scored.lengths[indices])
        return TextsToMask(
            self.tokens.take(indices),
            self.scored.take(indices),
            self.mask_ends[positions],
            self.masks_all_at_once[indices],
        )


def make_texts_to_mask(batch: Sequence[MaskedEncoding]) -> TextsToMask:
    """Return encoded queries as rows in flat arrays."""
    return TextsToMask(
        flatten_rows([encoding.ids for encoding in batch]),
        flatten_rows([encoding.scored for encoding in batch]),
        flatten_rows([encoding.mask_ends for encoding in batch]).values,
        np.array([encoding.masks_all_at_once for encoding in batch]),
    )


def _encode_whole_texts(
    queries: Sequence[Query], encodings: Sequence[Any], limit: int, unknown_id: int | None, variant: str
) -> TextColumns:
    """Return texts of which all tokens are scored; the arguments are those of ``_encode_query``."""
    tokens = flatten_rows([encoding.ids for encoding in encodings])
    special = flatten_rows([encoding.special_tokens_mask for encoding in encodings]).values.astype(bool)
    is_unknown = np.zeros(len(tokens.values), bool) if unknown_id is None else tokens.values == unknown_id
    # An unknown token may be marked as special, but stands for a word of the text.
    is_scored = ~special | is_unknown
    text_indices = np.repeat(np.arange(len(tokens)), tokens.lengths)
    known_counts = np.bincount(text_indices[is_scored & ~is_unknown], minlength=len(tokens))
    for index in np.flatnonzero((known_counts == 0) | (tokens.lengths > limit)).tolist():
        # The errors, in the order of the queries, are those of a query by itself.
        _encode_query(index, queries[index], encodings[index], limit, unknown_id, variant)
    spans = chain.from_iterable(chain.from_iterable([encoding.offsets for encoding in encodings]))
    span_table = np.fromiter(spans, np.uint32, 2 * len(tokens.values)).reshape(-1, 2)[is_scored]
    counts = np.bincount(text_indices[is_scored], minlength=len(tokens))
    positions = (np.arange(len(tokens.values)) - np.repeat(tokens.starts, tokens.lengths))[is_scored]
    scored = FlatRows(positions, np.cumsum(counts) - counts, counts)
    ends = positions
    if variant == "word_l2r":
        ends = flatten_rows(
            [find_word_ends(own.tolist(), encoding.word_ids) for own, encoding in zip(scored, encodings, strict=True)]
        ).values
    # An unknown token with an empty span is none of the text, but one that frames it.
    is_unknown = is_unknown[is_scored] & (span_table[:, 0] < span_table[:, 1])
    return TextColumns([query.text for query in queries], tokens, scored, span_table, is_unknown, ends)


def _encode_query(
    index: int, query: Query, encoding: Any, limit: int, unknown_id: int | None, variant: str
) -> MaskedEncoding:
    """Return a query with the positions to score and to mask.

    Args:
        index: The index of the query, for messages.
        limit: The maximal number of tokens.
        unknown_id: The token for unknown words, if there is one.
    """
    ids, special = encoding.ids, encoding.special_tokens_mask
    check_length(len(ids), limit, index)
    candidates = find_target_tokens(query, encoding.offsets) if query.target or query.context else range(len(ids))
    # An unknown token may be marked as special, but stands for a word of the text.
    scored = [position for position in candidates if not special[position] or ids[position] == unknown_id]
    if not scored or (unknown_id is not None and all(ids[position] == unknown_id for position in scored)):
        raise QueryError(index, "the model knows none of its tokens")
    # The tokens of a target are masked together, as the answer to a cloze: no token of it may give another away.
    is_whole = query.target is None
    ends = find_word_ends(scored, encoding.word_ids) if is_whole and variant == "word_l2r" else scored
    return MaskedEncoding(query, ids, scored, ends, not is_whole, encoding)


def _cut_window(encoding: MaskedEncoding, chosen: Sequence[int], bounds: tuple[int, int, int, int]) -> MaskedEncoding:
    """Return a window of an encoded query, between the special tokens of the whole.

    Args:
        encoding: The whole query.
        chosen: Which of its scored tokens are scored in the window.
        bounds: The first position of the text, of the window, behind the window, and behind the text.
    """
    first, start, end, last = bounds
    ids, spans, shift = encoding.ids, encoding.encoding.offsets, start - first

    def cut(row: Sequence[Any]) -> list[Any]:
        return [*row[:first], *row[start:end], *row[last:]]

    scored = [encoding.scored[at] - shift for at in chosen]
    # A word that goes on behind the window is masked as far as it is there.
    ends = [min(encoding.mask_ends[at], end - 1) - shift for at in chosen]
    return MaskedEncoding(
        encoding.query, cut(ids), scored, ends, encoding.masks_all_at_once, TokenSlice(cut(ids), cut(spans))
    )


def find_word_ends(scored: Sequence[int], word_ids: Sequence[int | None]) -> list[int]:
    """Return the last scored position of the same word for each scored position."""
    last = {word_ids[position]: position for position in scored}
    return [position if word_ids[position] is None else last[word_ids[position]] for position in scored]


def make_masked_copies(rows: TextsToMask, mask_id: int) -> MaskedCopies:
    """Return the masked copies of texts of one length, without duplicates.

    The two sentences of a minimal pair that differ in one word give the same copy when that word is masked.

    Args:
        mask_id: The id of the mask token.
    """
    from acceptability.models.hf.masked_forward import MaskedCopies

    texts = rows.tokens.values[expand_ranges(rows.tokens.starts, rows.tokens.lengths)].reshape(len(rows.tokens), -1)
    # All copies at once, in arrays with a row for each scored token: a loop over copies takes longer in Python than a
    # small network takes to score them.
    text_indices = np.repeat(np.arange(len(texts)), rows.scored.lengths)
    positions, last = rows.scored.values, rows.mask_ends
    input_ids = texts[text_indices]
    targets = input_ids[np.arange(len(positions)), positions]
    if (last == positions).all() and not rows.masks_all_at_once.any():
        # The usual case, one mask in each copy, without a table of booleans.
        input_ids[np.arange(len(positions)), positions] = mask_id
    else:
        may_mask = np.zeros(texts.shape, bool)
        may_mask[text_indices, positions] = True
        columns = np.arange(texts.shape[1])
        together = np.repeat(rows.masks_all_at_once, rows.scored.lengths)
        in_word = (columns >= positions[:, None]) & (columns <= last[:, None])
        input_ids[may_mask[text_indices] & (together[:, None] | in_word)] = mask_id
    unique_ids, copy_rows = find_unique_rows(input_ids)
    return MaskedCopies(unique_ids, copy_rows, positions, targets)


def find_unique_rows(rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct rows of a table, and the index of the distinct row that equals each row."""
    # A random projection modulo 2^64 hashes each row to one integer, whose sorting is far faster than np.unique over
    # rows. A collision of hashes would give a copy the scores of another, so the result is compared with the table.
    with np.errstate(over="ignore"):
        row_hashes = rows.astype(np.uint64) @ np.random.default_rng(0).integers(
            1, 2**63, rows.shape[1], dtype=np.uint64
        )
    _, first, inverse = np.unique(row_hashes, return_index=True, return_inverse=True)
    if not (rows[first[inverse]] == rows).all():
        unique, inverse = np.unique(rows, axis=0, return_inverse=True)
        return unique, inverse.ravel()
    return rows[first], inverse


def slice_copies(copies: MaskedCopies, step: int) -> Iterator[MaskedCopies]:
    """Yield the copies in slices, in their order.

    Args:
        step: The number of copies in a slice.
    """
    from acceptability.models.hf.masked_forward import MaskedCopies

    order = np.argsort(copies.rows, kind="stable")
    rows = copies.rows[order]
    for start in range(0, len(copies.input_ids), step):
        first, last = np.searchsorted(rows, (start, start + step))
        selected = order[first:last]
        yield MaskedCopies(
            copies.input_ids[start : start + step],
            rows[first:last] - start,
            copies.positions[selected],
            copies.targets[selected],
        )


def open_model(
    location: str,
    *,
    variant: str = "pll",
    preset: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    stride: int | None = None,
    window: int | None = None,
    adapter: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Model:
    """Return the masked model at a location. The options are those of ``Masked`` and of ``find_checkpoint``.

    Args:
        stride: Read texts that are longer than the model's window in overlapping windows, each of which begins this
            many tokens after the one before; None to refuse such texts.
        window: The number of tokens in a window; by default as many as the model was trained on, or reads.
    """
    # minicons frames and scores as we do by default, so the preset is checked and not kept.
    if preset is not None:
        validate_choice("preset", preset, ("minicons",))
    files = find_checkpoint(
        "masked", location, adapter=adapter, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    return make_windowed(
        Masked(files, validate_choice("variant", variant, VARIANTS), validate_dtype(dtype), device), stride, window
    )
