"""Causal language models: the log-probability of each token given those before it.

``Causal`` is the model: ``encode`` tokenizes queries and marks the positions to score, ``begin`` starts the forward
pass of a batch. To follow a pass, read on in ``causal_forward.py``, which merges a batch into a prefix trie
(``kernels/trie.py``) and computes log-probabilities from its hidden states (``kernels/head.py``).

The first token is scored after the start token (BOS): the tokenizer's own, or the one that ``bos='TOKEN'`` names. For a
model without one, or with ``bos=None``, the first token is not scored, and the signature records ``bos=None``.
``eos=True`` scores the end token too.

``preset='minicons'`` and ``preset='lm-eval'`` frame a text as these tools do, so that their numbers can be reproduced:
minicons adds what the tokenizer adds by itself, and never scores the first token; lm-eval puts a start token and a
space before the text.

``spaces='trailing'`` counts the space after a word towards that word and not towards the next: the probability of a
word then includes that it ends (Oh and Schuler 2024, Pimentel and Meister 2024). By default a space belongs to the word
that follows it, as in the tokens themselves.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import get_cached_fact, locked_cached_property, validate_bool, validate_choice
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
    from acceptability.models.hf.causal_forward import CausalForwardPath

PRESETS = ("minicons", "lm-eval")
# How byte-level BPE, SentencePiece and plain vocabularies write the space at the beginning of a token.
_SPACE_PREFIXES = ("Ġ", "▁", " ")
_log = logging.getLogger(__name__)


class CausalEncoding(NamedTuple):
    """A query as token ids, with the positions to score.

    Args:
        ids: The tokens of the text, between those that frame it.
        scored: The positions in ``ids`` that are scored.
        prefix_length: The number of tokens before those of the text.
        lead_chars: The number of characters that were put before the text.
        encoding: The tokenizer's encoding of the text, with the character offsets of its tokens.
    """

    query: Query
    ids: list[int]
    scored: Sequence[int]
    prefix_length: int
    lead_chars: int
    encoding: Any

    @property
    def size(self) -> int:
        """The number of tokens that the network reads: all before the last one that is scored."""
        return self.scored[-1]

    def to_token_scores(
        self, logprobs: NDArray[np.float32], names: Sequence[str], unknown_token: str | None
    ) -> TokenScores:
        """Return the tokens with their log-probabilities."""
        ids, query, spans = self.ids, self.query, self.encoding.offsets
        tokens = tuple([names[ids[position]] for position in self.scored])
        # The end token is not in the text: it gets an empty span behind the last character.
        spans.append((len(query.full_text) + self.lead_chars,) * 2)
        shifted = [(max(start - self.lead_chars, 0), max(end - self.lead_chars, 0)) for start, end in spans]
        offsets = tuple([to_query_span(query, shifted[position - self.prefix_length]) for position in self.scored])
        return TokenScores(query.text, tokens, offsets, logprobs, find_unknown_tokens(tokens, offsets, unknown_token))


@dataclass(frozen=True)
class Causal(LanguageCheckpoint):
    """A causal language model of transformers.

    Args:
        start: The start token; "auto" for the tokenizer's own, None for none.
        eos: Whether the end token is scored.
        preset: The tool whose framing is reproduced; None for our own.
        spaces: The word that a space counts towards: with "leading" the one after it, with "trailing" the one before.
    """

    files: Checkpoint
    start: str | None
    eos: bool
    dtype: str
    device: str
    preset: str | None = None
    spaces: str = "leading"

    @property
    def signature(self) -> str:
        """The files and the options that change a forward pass, with the start token written out."""
        framing = {"preset": self.preset} if self.preset else {"bos": self.bos, "eos": self.eos}
        spaces = {"spaces": self.spaces} if self.spaces != "leading" else {}
        return format_spec(
            f"causal:{self.files.signature}", {**framing, **spaces, "dtype": self.dtype, **self.files.options}
        )

    @property
    def bos(self) -> str | None:
        """The start token, or None if the first token is not scored."""
        if self.preset == "minicons":
            return None
        if self.start != "auto":
            return self.start
        # Cached beside the store: a signature then needs no tokenizer, which takes longer to load than stored scores.
        fact, names = ("prefix", ("bos_token", "eos_token")) if self.preset else ("bos", ("bos_token",))

        def find_token() -> str | None:
            # A model without this fact is a new one, of which no scores are stored: it will be loaded.
            start_gpu(self.device)
            return next(filter(None, (getattr(self.files.tokenizer, name) for name in names)), None)

        token = get_cached_fact(self.files.content_hash, fact, find_token)
        return token if isinstance(token, str) else None

    @property
    def encodes_in_background(self) -> bool:
        """Whether a GPU runs the batches, while which this machine can tokenize. On a CPU, both want the same cores."""
        return bool(self.net.device.type == "cuda")

    @property
    def net(self) -> Any:
        """The network, loaded on first use."""
        return self.forward.net

    def _load_causal_net(self) -> Any:
        """Return the network as it was saved, after checking that it is causal."""
        net = self.files.load_net("AutoModelForCausalLM", dtype=self.dtype, device=self.device)
        # transformers loads BERT as a causal model with a warning at most; its scores would be meaningless.
        if sees_future_tokens(net):
            raise ModelError(
                f"{self.files.name} is no causal model: its predictions depend on later tokens. "
                "If it is a masked model, write masked:…"
            )
        return net

    @locked_cached_property
    def forward(self) -> CausalForwardPath:
        """The fastest path through the network that gives the scores of the plain path."""
        # Imported here, since a signature and stored scores need no PyTorch.
        from acceptability.models.hf.causal_forward import choose_causal_path

        return choose_causal_path(self._load_causal_net, self.files.folder)

    @property
    def packing(self) -> str:
        """Which queries share a batch: those with a common prefix if the network takes the trie path."""
        return self.forward.packing

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a batch."""
        return min(get_token_budget(self.net.device.type), self.forward.max_tokens)

    def encode(self, queries: Sequence[Query]) -> list[CausalEncoding] | TextColumns:
        """Return the queries as token ids, tokenized in one call."""
        start_gpu(self.device)
        frame, encodings = self._tokenize(queries, self.files.max_length)
        if (trained := self.trained_length) and max(map(len, encodings), default=0) + len(self.bos_ids) > trained:
            warn_of_long_text(self.files.name, trained)
        unknown = self.files.tokenizer.unk_token_id
        if frame.scores_whole_texts and not any(query.target or query.context for query in queries):
            return _encode_whole_texts(queries, encodings, frame, unknown)
        return _encode_each(queries, encodings, frame, unknown)

    def encode_each(self, queries: Sequence[Query]) -> list[CausalEncoding]:
        """Return the queries as token ids, each as an object, which predictions need."""
        frame, encodings = self._tokenize(queries, self.files.max_length)
        return _encode_each(queries, encodings, frame, self.files.tokenizer.unk_token_id)

    def encode_long(self, queries: Sequence[Query]) -> list[CausalEncoding]:
        """Return the queries as token ids, also those that are longer than the model's window."""
        frame, encodings = self._tokenize(queries, sys.maxsize)
        return _encode_each(queries, encodings, frame, self.files.tokenizer.unk_token_id)

    def split_windows(self, encoding: CausalEncoding, window: int, stride: int) -> list[CausalEncoding]:
        """Return the windows of an encoded query, in each of which other tokens are scored."""
        first, capacity = encoding.prefix_length, window - encoding.prefix_length
        check_stride(stride, capacity, self.files.name)
        ids, text_ids, spans = encoding.ids[first:], encoding.encoding.ids, encoding.encoding.offsets
        windows, begin, wanted = [], 0, np.asarray(encoding.scored) - first
        for start in list_window_starts(len(ids), capacity, stride):
            end = start + capacity
            # The last token of a window shows whether the word before it ends there, and is scored in the next one.
            stop = end if end >= len(ids) else end - 1
            scored = wanted[(wanted >= begin) & (wanted < stop)] - start + first
            part = TokenSlice(text_ids[start:end], spans[start:end])
            begin = max(begin, stop)
            if len(scored):
                window_ids = [*encoding.ids[:first], *ids[start:end]]
                windows.append(
                    CausalEncoding(encoding.query, window_ids, scored.tolist(), first, encoding.lead_chars, part)
                )
        return windows

    def _tokenize(self, queries: Sequence[Query], max_length: int) -> tuple[TextFrame, Sequence[Any]]:
        """Return what is put around each text, and the tokenizer's encoding of each."""
        lead = " " if self.preset == "lm-eval" else ""
        texts = [query.full_text if query.context else lead + query.full_text for query in queries]
        encodings = self.files.tokenize(texts, add_special_tokens=self.preset == "minicons")
        if self.start == "auto" and self.bos is None and not self.preset:
            _log.warning("%s has no start token: first tokens are not scored; bos='TOKEN' names one", self.files.name)
        return TextFrame(self.bos_ids, self._eos_ids, len(lead), self.eos, max_length), encodings

    @property
    def bos_ids(self) -> tuple[int, ...]:
        """The id of the start token; none if the first token is not scored."""
        if self.bos is None:
            return ()
        if self.bos not in self.files.token_names:
            raise ModelError(f"{self.files.name} has no token {self.bos!r} to start with; choose another bos")
        return (self.files.token_names.index(self.bos),)

    @property
    def _eos_ids(self) -> tuple[int, ...]:
        """The id of the end token, if it is read: to be scored, or as the end of the last word."""
        if not self.eos and self.spaces == "leading":
            return ()
        if self.files.tokenizer.eos_token_id is None:
            raise ModelError(f"{self.files.name} has no end token; leave out eos=True and spaces='trailing'")
        return (self.files.tokenizer.eos_token_id,)

    def begin(self, batch: Sequence[Any]) -> Callable[[], Sequence[TokenScores]]:
        """Start a forward pass, and return the function that waits for the scores of each query."""
        from acceptability.models.hf.causal_forward import CausalRows, make_causal_rows

        names, unknown_token = self.files.token_names, self.files.tokenizer.unk_token
        with convert_out_of_memory(f"{self.files.name}: a batch of {len(batch)} texts"):
            if isinstance(batch[0], TextColumns):
                columns = join_text_columns(batch)
                collect_columns = self.forward(CausalRows(columns.tokens, columns.scored))
                return lambda: columns.to_token_columns(collect_columns(), self.token_name_array)
            if self.spaces == "trailing":
                return self._begin_trailing_spaces(batch)
            rows = make_causal_rows([(encoding.ids, encoding.scored) for encoding in batch])
            collect = self.forward(rows)

        def collect_scores() -> list[TokenScores]:
            return [
                encoding.to_token_scores(own, names, unknown_token)
                for encoding, own in zip(batch, np.split(collect(), rows.scored.starts[1:]), strict=True)
            ]

        return collect_scores

    def _begin_trailing_spaces(self, batch: Sequence[CausalEncoding]) -> Callable[[], list[TokenScores]]:
        """Start a forward pass, and return the function that waits for scores with trailing spaces."""
        from acceptability.models.hf.causal_forward import make_causal_rows

        # The end of a word shows at the position after it, in the joint probability of all tokens that open a word. It
        # is therefore needed there too, except behind the last token, where nothing is predicted.
        names, opening, unknown_token = (
            self.files.token_names,
            self.word_opening_ids,
            self.files.tokenizer.unk_token,
        )
        rows = [
            (encoding.ids, sorted({*encoding.scored, *(position + 1 for position in encoding.scored)}))
            for encoding in batch
        ]
        rows = [(ids, [position for position in positions if position < len(ids)]) for ids, positions in rows]
        flat_rows = make_causal_rows(rows)
        collect = self.forward(flat_rows, opening)
        space_ids = frozenset(opening.tolist())

        def collect_shifted() -> list[TokenScores]:
            return [
                encoding.to_token_scores(
                    _charge_trailing_spaces(encoding, positions, logprob_rows, space_ids), names, unknown_token
                )
                for encoding, (_, positions), logprob_rows in zip(
                    batch, rows, np.split(collect(), flat_rows.scored.starts[1:], axis=1), strict=True
                )
            ]

        return collect_shifted

    @locked_cached_property
    def word_opening_ids(self) -> NDArray[np.int64]:
        """The ids of the tokens that can follow a complete word: those that begin with a space, and the end token."""
        opening = [index for index, name in enumerate(self.files.token_names) if name.startswith(_SPACE_PREFIXES)]
        if not opening:
            raise ModelError(f"{self.files.name} has no tokens that begin with a space; leave out spaces='trailing'")
        return np.array(sorted({*opening, self.files.tokenizer.eos_token_id}))

    def run(self, batch: Sequence[Any]) -> Sequence[TokenScores]:
        """Return the scores of each query, from one forward pass."""
        return self.begin(batch)()

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also predicts: the distribution before each token, and after it."""
        from acceptability.models.predictions.causal_predictor import CausalPredictor

        return CausalPredictor(self, top)

    @property
    def next_tokens(self) -> NextTokenModel:
        """The distribution over the token after a text."""
        from acceptability.models.predictions.causal_predictor import FollowingTokens

        return FollowingTokens(self)


@dataclass(frozen=True, slots=True)
class TextFrame:
    """What is put around every text, and how long the result may be.

    Args:
        prefix_ids: The tokens before the text.
        suffix_ids: The tokens after it.
        lead_chars: The number of characters put before the text.
        scores_eos: Whether the end token is scored.
        max_length: The maximal number of tokens.
    """

    prefix_ids: tuple[int, ...]
    suffix_ids: tuple[int, ...]
    lead_chars: int
    scores_eos: bool
    max_length: int

    @property
    def scores_whole_texts(self) -> bool:
        """Whether all tokens of a text are scored, and nothing else."""
        return bool(self.prefix_ids) and not self.suffix_ids and not self.lead_chars


def _encode_whole_texts(
    queries: Sequence[Query], encodings: Sequence[Any], frame: TextFrame, unknown_id: int | None
) -> TextColumns:
    """Return texts of which all tokens are scored; the arguments are those of ``_encode_query``."""
    text_ids = flatten_rows([encoding.ids for encoding in encodings])
    spans = chain.from_iterable(chain.from_iterable([encoding.offsets for encoding in encodings]))
    span_table = np.fromiter(spans, np.uint32, 2 * len(text_ids.values)).reshape(-1, 2)
    first, counts = len(frame.prefix_ids), text_ids.lengths
    is_unknown = np.zeros(len(text_ids.values), bool) if unknown_id is None else text_ids.values == unknown_id
    known_counts = np.bincount(np.repeat(np.arange(len(counts)), counts)[~is_unknown], minlength=len(counts))
    for index in np.flatnonzero((known_counts == 0) | (counts + first > frame.max_length)).tolist():
        # The errors, in the order of the queries, are those of a query by itself.
        _encode_query(index, queries[index], encodings[index], frame, unknown_id)
    starts = text_ids.starts + first * np.arange(len(counts))
    tokens = np.empty(len(text_ids.values) + first * len(counts), np.int64)
    tokens[expand_ranges(starts + first, counts)] = text_ids.values
    for offset, token_id in enumerate(frame.prefix_ids):
        tokens[starts + offset] = token_id
    return TextColumns(
        [query.text for query in queries],
        FlatRows(tokens, starts, counts + first),
        FlatRows(expand_ranges(np.full(len(counts), first), counts), text_ids.starts, counts),
        span_table,
        # GPT-2 names its end token as its unknown one, which its tokenizer never needs. The end has an empty span.
        is_unknown & (span_table[:, 0] < span_table[:, 1]),
    )


def _encode_each(
    queries: Sequence[Query], encodings: Sequence[Any], frame: TextFrame, unknown_id: int | None
) -> list[CausalEncoding]:
    """Return each query by itself, with its frame and the positions to score."""
    return [
        _encode_query(index, query, encoding, frame, unknown_id)
        for index, (query, encoding) in enumerate(zip(queries, encodings, strict=True))
    ]


def _encode_query(index: int, query: Query, encoding: Any, frame: TextFrame, unknown_id: int | None) -> CausalEncoding:
    """Return a query with its frame, and the positions to score: those of its target, or of the whole text.

    Args:
        index: The index of the query, for messages.
        encoding: The tokenizer's encoding of the text.
        unknown_id: The token for unknown words, if there is one.
    """
    first = len(frame.prefix_ids)
    text_ids = encoding.ids
    ids = [*frame.prefix_ids, *text_ids, *frame.suffix_ids]
    check_length(len(ids), frame.max_length, index)
    lead = 0 if query.context else frame.lead_chars
    # Position 0 is never scored: without a start token, nothing predicts the first token.
    scored: Sequence[int] = range(max(first, 1), first + len(text_ids))
    if query.target or query.context:
        spans = [(start - lead, end - lead) for start, end in encoding.offsets] if lead else encoding.offsets
        scored = [position + first for position in find_target_tokens(query, spans) if position + first > 0]
    # A score of unknown tokens alone would tell more about the vocabulary than about the sentence.
    if not scored or (unknown_id is not None and all(ids[position] == unknown_id for position in scored)):
        raise QueryError(index, "the model scores none of its tokens: too short, or only unknown ones")
    if frame.scores_eos and not query.target:
        scored = [*scored, first + len(text_ids)]
    return CausalEncoding(query, ids, scored, first, lead, encoding)


def _charge_trailing_spaces(
    encoding: CausalEncoding, positions: Sequence[int], logprob_rows: NDArray[np.float32], space_ids: frozenset[int]
) -> NDArray[np.float32]:
    """Return log-probabilities with the space moved from the beginning of a word to its end.

    The token that opens a word no longer pays for the space before it, log P(any opening token), and the last token of
    a word pays for the space after it. The sum over a sentence changes only by the end of its last word.
    """
    # The two rows of numbers: the tokens themselves, and all opening tokens together.
    logprob, opening = (dict(zip(positions, row.tolist(), strict=True)) for row in logprob_rows)
    last = len(encoding.ids) - 1
    shifted = []
    for position in encoding.scored:
        value = logprob[position]
        if encoding.ids[position] in space_ids:
            value -= opening[position]
        if position < last and encoding.ids[position + 1] in space_ids:
            value += opening[position + 1]
        shifted.append(value)
    return np.array(shifted, np.float32)


def open_model(
    location: str,
    *,
    bos: str | None = "auto",
    eos: bool = False,
    preset: str | None = None,
    spaces: str = "leading",
    stride: int | None = None,
    window: int | None = None,
    dtype: str = "float32",
    device: str = "auto",
    adapter: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Model:
    """Return the causal model at a location. The options are those of ``Causal`` and of ``find_checkpoint``.

    Args:
        stride: Read texts that are longer than the model's window in overlapping windows, each of which begins this
            many tokens after the one before; None to refuse such texts.
        window: The number of tokens in a window; by default as many as the model was trained on, or reads.
    """
    validate_framing(bos, eos, preset, spaces)
    files = find_checkpoint(
        "causal", location, adapter=adapter, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code
    )
    return make_windowed(Causal(files, bos, eos, validate_dtype(dtype), device, preset, spaces), stride, window)


def validate_framing(bos: object, eos: object, preset: object, spaces: object) -> None:
    """Raise an error for options of ``Causal`` that do not say how a text is framed."""
    if bos is not None and not isinstance(bos, str):
        raise ModelError(f"causal: bos is {bos!r}; expected a token, 'auto' or None")
    validate_bool("eos", eos)
    if preset is not None:
        validate_choice("preset", preset, PRESETS)
        if bos != "auto" or eos:
            raise ModelError(f"causal: preset={preset!r} says how a text is framed; leave out bos and eos")
    validate_choice("spaces", spaces, ("leading", "trailing"))


def sees_future_tokens(net: Any) -> bool:
    """Return whether predictions after the first token change with later tokens, as they never do in a causal model."""
    import torch

    ids = torch.tensor([[1, 2, 3, 3, 3, 3], [1, 2, 4, 5, 4, 5]], device=net.device)
    # Tiny vocabularies too: the ids wrap around, and the two rows still differ.
    ids %= net.config.get_text_config().vocab_size
    with torch.inference_mode():
        first, second = net(input_ids=ids, use_cache=False).logits[:, 0].float()
    # Two rows of a batch may round differently, in proportion to the logits, whose scale depends on the model.
    noise = 1e-5 if net.dtype == torch.float32 else 3e-2
    return bool((first - second).abs().max() > noise * first.abs().max().clamp(min=1.0))
