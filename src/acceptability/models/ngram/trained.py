"""N-gram models with back-off that were trained by this package: a folder with sorted arrays and a vocabulary.

``TrainedNGram`` scores sentences, ``NGramTable`` holds the n-grams, and ``NGramSampler`` samples sentences. All of them
work on many words at once with NumPy.

The weights file is a trie in safetensors. For each order, ``words`` holds the last word of every n-gram, and
``followers`` the number of n-grams that extend each (n-1)-gram, in the order of the (n-1)-grams. Log-probabilities and
back-off weights (natural logs) are float32; above the first order they may be float16, or one byte that indexes a table
of 256 values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.files import hash_files, resolve_folder_version
from acceptability.models.ngram.word_columns import WordColumns, join_word_columns, split_texts
from acceptability.models.unknown_words import (
    DEFAULT_POLICY,
    SpellingModel,
    add_spelling,
    fit_spelling,
    refuse_unknown_words,
)
from acceptability.outputs import SPELLED, Ints, TokenColumns, expand_ranges
from acceptability.outputs import UNKNOWN as UNKNOWN_FLAG
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import format_spec
from acceptability.text.words import (
    END,
    SPECIAL_WORDS,
    START,
    UNKNOWN,
    VOCABULARY_FILE,
    Vocabulary,
    read_vocabulary,
)
from acceptability.types import Floats, Query

WEIGHTS_FILE = "model.safetensors"
FORMAT = "acceptability n-gram 1"

Arrays = dict[str, NDArray[Any]]
_NOT_FOUND = -1
_MAX_DRAWS = 10_000


class LogprobTable(Protocol):
    """A model's probabilities in memory, such as ``NGramTable``."""

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        ...

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word, given the words before it, for many sentences at once."""
        ...


@dataclass(frozen=True)
class TrainedNGram(Model):
    """An n-gram model in a folder.

    Args:
        bos: "<s>", or None to score the first word without a history.
        eos: Whether ``</s>`` is scored.
        unknown: What an unknown word gets, see ``unknown_words``.
        lenient: Whether a text may consist of unknown words alone.
    """

    folder: Path
    bos: str | None
    eos: bool
    unknown: str | float
    lenient: bool = False
    budget: int = 65_536

    kind: ClassVar[str] = "ngram"

    @property
    def signature(self) -> str:
        """The folder's name, a hash of its files, and the options that change a score."""
        options = {"units": self.word_rule, "lower": self.vocabulary.lower, "bos": self.bos, "eos": self.eos}
        return format_spec(
            f"{self.kind}:{self.folder.name}@{_hash_folder(self.folder)}", options | {"unknown": self.unknown}
        )

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The words, and how text is split into them."""
        return read_vocabulary(self.folder)

    @property
    def word_rule(self) -> str:
        """The name of the rule that splits text into words."""
        return self.vocabulary.rule

    def is_unknown(self, token: str) -> bool:
        """Return whether a token, as the model spells it, is outside the vocabulary."""
        return token not in self.vocabulary.index

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score."""
        return self.unknown == "omit"

    @cached_property
    def spelling(self) -> SpellingModel:
        """The model of the spelling of unknown words, fitted on first use."""
        return fit_spelling(tuple(self.vocabulary.words[len(SPECIAL_WORDS) :]))

    @cached_property
    def table(self) -> LogprobTable:
        """The n-grams, loaded on first use."""
        table = read_ngram_table(self.folder / WEIGHTS_FILE)
        if table.size != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {WEIGHTS_FILE} and {VOCABULARY_FILE} belong to different models")
        return table

    def encode(self, queries: Sequence[Query]) -> WordColumns:
        """Return the words of the queries; a query without a known word is an error."""
        texts = [query.full_text for query in queries]
        split = split_texts(texts, self.vocabulary)
        # Words of the context get empty or cut spans; they are never scored.
        leads = np.array([query.text_start if query.context else 0 for query in queries], np.int64)
        targets = np.array([query.target or (0, len(query.text)) for query in queries], np.int64).reshape(-1, 2)
        owners = np.repeat(np.arange(len(queries)), split.counts)
        spans = split.spans - leads[owners, None]
        is_scored = (spans[:, 0] < targets[owners, 1]) & (spans[:, 1] > targets[owners, 0])
        word_ids = split.word_ids
        is_unknown = word_ids == UNKNOWN
        encoded = WordColumns(
            queries,
            split.counts,
            split.words,
            np.maximum(spans, 0),
            # With a fixed log-probability, the word has no symbol in the model, and nothing can be conditioned on it.
            word_ids if self._unknown_logprob is None else np.where(is_unknown, -1, word_ids),
            is_scored,
            is_unknown,
        )
        self._check_queries(encoded, owners)
        return encoded

    def _check_queries(self, encoded: WordColumns, owners: Ints) -> None:
        """Raise an error for the first query that cannot be scored.

        Args:
            owners: The query of each word.
        """
        known, scored, refused = (
            np.bincount(owners[chosen], minlength=len(encoded))
            for chosen in (~encoded.is_unknown, encoded.is_scored, encoded.is_scored & encoded.is_unknown)
        )
        is_wrong = (encoded.counts == 0) | (scored == 0)
        is_wrong |= (known == 0) & (not self.lenient)
        is_wrong |= (refused > 0) & (self.unknown == "refuse")
        if not is_wrong.any():
            return
        index = int(is_wrong.argmax())
        if not encoded.counts[index]:
            raise QueryError(index, "there is no word in it")
        if not (self.lenient or known[index]):
            raise QueryError(index, f"the model {self.folder.name} knows none of its words")
        if not scored[index]:
            raise QueryError(index, "there is no word in its target")
        own = encoded[index]
        refuse_unknown_words(self.folder.name, own.words[own.is_scored & own.is_unknown].tolist(), index)

    def as_lenient(self) -> TrainedNGram:
        """Return the same model, which also scores texts in which every word is unknown."""
        return replace(self, lenient=True)

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also predicts: the distribution before each word, and after it."""
        from acceptability.models.predictions.word_predictors import TrainedNGramPredictor

        return TrainedNGramPredictor(self, top)

    @property
    def next_tokens(self) -> NextTokenModel:
        """The distribution over the word after a text."""
        from acceptability.models.predictions.word_predictors import make_trained_next_words

        return make_trained_next_words(self)

    def run(self, batch: Sequence[WordColumns]) -> TokenColumns:
        """Return the log-probability of every scored word, given the words before it."""
        encoded = batch if isinstance(batch, WordColumns) else join_word_columns(batch)
        # All sentences are concatenated, so that the table is searched once per order and not once per word.
        bos = int(bool(self.bos))
        lengths = encoded.counts + bos + 1
        first_rows = np.cumsum(lengths) - lengths
        end_rows, word_rows = first_rows + lengths - 1, expand_ranges(first_rows + bos, encoded.counts)
        word_ids = np.full(int(lengths.sum()), END, np.int64)
        if bos:
            word_ids[first_rows] = START
        word_ids[word_rows] = encoded.word_ids
        starts = np.zeros(len(word_ids), bool)
        starts[first_rows] = True
        logprobs = self.table.logprobs(word_ids, starts)
        if self._unknown_logprob is not None:
            logprobs[word_ids < 0] = self._unknown_logprob
        # The columns of what is scored are cut out of columns with a row for each symbol.
        is_scored = np.zeros(len(word_ids), bool)
        is_scored[word_rows] = encoded.is_scored
        is_scored[end_rows] = self.eos and np.array([query.target is None for query in encoded.queries])
        tokens = np.full(len(word_ids), "</s>", object)
        tokens[word_rows] = encoded.words
        # The end symbol is not in the text: it gets an empty span behind the last character.
        spans = np.zeros((len(word_ids), 2), np.uint32)
        spans[end_rows] = np.array([len(query.text) for query in encoded.queries])[:, None]
        spans[word_rows] = encoded.spans
        is_unknown = np.zeros(len(word_ids), bool)
        is_unknown[word_rows] = encoded.is_unknown
        scored_tokens, scored_logprobs, is_unknown = tokens[is_scored], logprobs[is_scored], is_unknown[is_scored]
        flags, spellings = np.where(is_unknown, np.uint8(UNKNOWN_FLAG), np.uint8(0)), None
        if self.unknown == "spelling":
            unknown = np.flatnonzero(is_unknown)
            spellings = add_spelling(scored_logprobs, scored_tokens, unknown, self.spelling)
            flags[unknown] = SPELLED
        counts = np.add.reduceat(is_scored, first_rows, dtype=np.int64)
        texts = [query.text for query in encoded.queries]
        return TokenColumns(texts, counts, scored_tokens.tolist(), spans[is_scored], scored_logprobs, flags, spellings)

    @cached_property
    def _unknown_logprob(self) -> float | None:
        """The fixed log-probability of an unknown word; None if it depends on that of <unk>."""
        if isinstance(self.unknown, float):
            return self.unknown
        return -math.log(len(self.vocabulary)) if self.unknown == "uniform" else None


def open_trained_ngram(folder: Path, *, bos: str | None, eos: bool, unknown: str | float) -> TrainedNGram:
    """Return the n-gram model in a folder; the arguments are those of ``ngram.model.open_model``."""
    folder = resolve_folder_version(folder, (WEIGHTS_FILE, VOCABULARY_FILE))
    for name in (WEIGHTS_FILE, VOCABULARY_FILE):
        if not (folder / name).is_file():
            raise ModelError(
                f"the folder {folder} has no {name}: it is no n-gram model that was trained by this package"
            )
    return TrainedNGram(folder, "<s>" if bos else None, eos, DEFAULT_POLICY if unknown == "auto" else unknown)


def is_model_folder(path: Path) -> bool:
    """Return whether a path, perhaps without its ``@HASH``, is a folder."""
    bare, _, _ = str(path).rpartition("@")
    return path.is_dir() or (bool(bare) and not path.exists() and Path(bare).is_dir())


def _hash_folder(folder: Path) -> str:
    return hash_files([folder / WEIGHTS_FILE, folder / VOCABULARY_FILE])


@dataclass(frozen=True)
class NGramOrder:
    """The n-grams of one order.

    Args:
        keys: For each n-gram, the index of its history among those of the order below, times the vocabulary's size,
            plus the id of its last word; ascending, for binary search.
        logprobs: The log-probability of the last word, given the others.
        backoffs: The log back-off weight: added for a word that was not seen after the n-gram. Empty for the highest
            order.
    """

    keys: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    backoffs: NDArray[np.float32]


@dataclass(frozen=True)
class NGramTable:
    """An n-gram model in memory.

    Args:
        size: The number of words in the vocabulary.
    """

    size: int
    orders: tuple[NGramOrder, ...]

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word, given the words before it, for many sentences at once.

        Args:
            words: The word ids of all sentences, concatenated; -1 is an unknown word, which gets 0 and ends the
                history.
            starts: True at the first word of each sentence, which has no history.
        """
        known = words >= 0
        # From unigrams upwards: the log-probability of a shorter n-gram gets the back-off weight of the longer history,
        # or is replaced where the longer n-gram is in the table.
        lookup_ids = np.where(known, words, 0)
        logprobs = np.where(known, self.orders[0].logprobs[lookup_ids], np.float32(0.0))
        ngram_rows = np.where(known, words, -1)
        for below, order in pairwise(self.orders):
            history = np.append(-1, ngram_rows[:-1])
            history[starts] = -1
            has_history = history >= 0
            ngram_rows = np.full(len(words), -1)
            rows = np.flatnonzero(has_history & known)
            positions, is_found = _find_keys(order.keys, history[rows] * self.size + words[rows])
            ngram_rows[rows[is_found]] = positions[is_found]
            logprobs[rows] += below.backoffs[history[rows]]
            logprobs[rows[is_found]] = order.logprobs[positions[is_found]]
        # Quantised values may add up to a little more than 0.
        return np.minimum(logprobs, np.float32(0.0))


def _find_keys(keys: NDArray[np.int64], queries: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the indices of numbers in an ascending array by binary search, and which of them are in it."""
    # A pruned model may have no n-grams of an order; an empty array cannot be indexed below.
    if not len(keys):
        return np.zeros(len(queries), np.int64), np.zeros(len(queries), bool)
    # searchsorted returns len(keys) for numbers above all keys.
    indices = np.minimum(np.searchsorted(keys, queries), len(keys) - 1)
    return indices, keys[indices] == queries


def pack_ngrams(size: int, orders: Sequence[NGramOrder], bits: int) -> Arrays:
    """Return the arrays of a weights file: keys as a trie, values quantised.

    Args:
        size: The number of words in the vocabulary.
        bits: The precision of values above the first order: 32, 16 or 8.
    """
    arrays: Arrays = {}
    lower_order_count = 0
    for number, order in enumerate(orders, start=1):
        if number > 1:
            # Keys need 8 bytes each; last words and counts need 2 or 4, and the keys follow from them.
            histories, words = np.divmod(order.keys, size)
            arrays[f"words_{number}"] = _to_smallest_uint(words, size - 1)
            followers = np.bincount(histories, minlength=lower_order_count)
            arrays[f"followers_{number}"] = _to_smallest_uint(followers, int(followers.max(initial=0)))
        lower_order_count = len(order.logprobs)
        # Unigrams are few, and every probability that backs off completely rests on theirs.
        value_bits = 32 if number == 1 else bits
        arrays |= _quantize_values(f"logprobs_{number}", order.logprobs, value_bits)
        if number < len(orders):
            arrays |= _quantize_values(f"backoffs_{number}", order.backoffs, value_bits)
    return arrays


def unpack_ngrams(arrays: Mapping[str, NDArray[Any]]) -> NGramTable:
    """Return the table in the arrays of a weights file."""
    size = len(arrays["logprobs_1"])
    highest = max(int(name.rpartition("_")[2]) for name in arrays if name.startswith("logprobs_"))
    orders: list[NGramOrder] = []
    keys = np.arange(size)
    for number in range(1, highest + 1):
        if number > 1:
            followers = arrays[f"followers_{number}"].astype(np.int64)
            # Checked here, since a damaged file could otherwise give some n-grams the histories of others.
            if len(followers) != len(keys) or followers.sum() != len(arrays[f"words_{number}"]):
                raise ValueError(f"the n-grams of order {number} do not fit those of the order below")
            keys = np.repeat(np.arange(len(followers)), followers) * size + arrays[f"words_{number}"]
        backoffs = _dequantize_values(arrays, f"backoffs_{number}") if number < highest else np.array([], np.float32)
        orders.append(NGramOrder(keys, _dequantize_values(arrays, f"logprobs_{number}"), backoffs))
    return NGramTable(size, tuple(orders))


def read_ngram_table(path: Path) -> NGramTable:
    """Return the table in a weights file."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(path, framework="numpy") as file:
            stored_format = (file.metadata() or {}).get("format")
        if stored_format != FORMAT:
            raise ModelError(f"{path} holds {stored_format or 'other weights'}, not {FORMAT}: it is no n-gram model")
        return unpack_ngrams(load_file(path))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as an n-gram model: {error}") from error


def _to_smallest_uint(numbers: NDArray[np.int64], largest: int) -> NDArray[Any]:
    return numbers.astype(np.uint16 if largest < 1 << 16 else np.uint32)


def _quantize_values(name: str, values: NDArray[np.float32], bits: int) -> Arrays:
    if bits == 8:
        table, codes = _quantize_to_bytes(values.astype(np.float64))
        return {name: codes, f"table_of_{name}": table}
    return {name: values.astype({16: np.float16, 32: np.float32}[bits])}


def _dequantize_values(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    values = arrays[name]
    return arrays[f"table_of_{name}"][values] if values.dtype == np.uint8 else values.astype(np.float32)


def _quantize_to_bytes(values: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return a table of 256 values and the index of the nearest one for each number, by k-means (Lloyd's algorithm)."""
    if not len(values):
        return np.zeros(256, np.float32), np.zeros(0, np.uint8)
    # Half of the initial values are quantiles and half equally spaced: by quantiles alone, the few n-grams with high
    # probabilities, which are the frequent ones, would get hardly any value of their own.
    equal = np.linspace(values.min(), values.max(), 128)
    table = np.unique(np.concatenate([np.quantile(values, np.linspace(0, 1, 128)), equal]))
    for _ in range(10):
        # Between two neighbouring values, the nearest one changes at their midpoint.
        codes = np.searchsorted((table[1:] + table[:-1]) / 2, values)
        counts = np.bincount(codes, minlength=len(table))
        sums = np.bincount(codes, weights=values, minlength=len(table))
        # A value that is nearest to no number stays where it is.
        table = np.where(counts > 0, sums / np.maximum(counts, 1), table)
    codes = np.searchsorted((table[1:] + table[:-1]) / 2, values)
    return np.pad(table, (0, 256 - len(table)), mode="edge").astype(np.float32), codes.astype(np.uint8)


@dataclass(frozen=True)
class SamplingOrder:
    """The n-grams of one order, prepared for sampling.

    Args:
        keys: As in ``NGramOrder``.
        cumulative_probabilities: The sum of the probabilities of all n-grams before each one, and of all.
        starts: The index of the first n-gram of each history, and the number of all n-grams.
        backoff_weights: The back-off weight of each history.
    """

    keys: Ints
    cumulative_probabilities: Floats
    starts: Ints
    backoff_weights: Floats


class NGramSampler:
    """Samples sentences from an n-gram model with back-off, by rejection sampling.

    The probability of a word after a history is p if the n-gram is in the table, else the product of the back-off
    weights of the histories that are given up and the probability after the shorter history. Each order thus has a
    mass: the sum over its n-grams of the history, times the back-off weights on the way to it. A proposal chooses an
    order by these masses, then one of its words. A word for which a longer n-gram is in the table has been reached by a
    wrong path and is rejected; so are banned words. Accepted words follow the model's probabilities exactly, even if
    these do not sum to 1 because values are quantised.

    Args:
        temperature: Divides all log-probabilities and back-off weights; 1 samples by the model's own probabilities.
        banned: Word ids that are never sampled.
    """

    def __init__(self, table: NGramTable, temperature: float, banned: frozenset[int]) -> None:
        self.size, self.banned_words = table.size, np.array(sorted(banned))
        self.orders: list[SamplingOrder] = []
        history_count, weights = 1, np.ones(1)
        for order in table.orders:
            # Summed in float64: among millions of n-grams, the differences of float32 sums would lose the rare ones.
            sums = np.append(0.0, np.cumsum(np.exp(order.logprobs.astype(np.float64) / temperature)))
            counts = np.bincount(order.keys // self.size, minlength=history_count)
            self.orders.append(SamplingOrder(order.keys, sums, np.append(0, np.cumsum(counts)), weights))
            history_count, weights = len(order.keys), np.exp(order.backoffs.astype(np.float64) / temperature)

    def sample_word_ids(
        self, count: int, longest: int, after_bos: bool, random: np.random.Generator
    ) -> list[list[int] | None]:
        """Return sampled sentences as word ids; None for one that does not end after ``longest`` words.

        Args:
            count: The number of sentences, which are sampled in parallel.
            after_bos: Whether the first word has the history ``<s>``, or none.
        """
        sampled_words = np.full((longest + 1, count), END)
        active_rows = np.arange(count)
        # For each order, the index of the history among the n-grams of the order below; that of the empty history is 0.
        histories = np.full((len(self.orders), count), _NOT_FOUND)
        histories[0] = 0
        if after_bos and len(self.orders) > 1:
            histories[1] = START
        # One step more than words, for the end symbol.
        for step in range(longest + 1):
            sampled_words[step, active_rows], histories = self._sample_next_words(histories, random)
            is_unfinished = sampled_words[step, active_rows] != END
            active_rows, histories = active_rows[is_unfinished], histories[:, is_unfinished]
            if not len(active_rows):
                break
        unfinished = set(active_rows.tolist())
        return [None if row in unfinished else _truncate_at_end(sampled_words[:, row]) for row in range(count)]

    def _sample_next_words(self, histories: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return a word after each history, and the histories that end in it."""
        words, after = np.empty(histories.shape[1], np.int64), np.empty_like(histories)
        pending = np.arange(histories.shape[1])
        # Rejected words are proposed again. The bound is for models that give banned words almost all probability,
        # where the loop would not end.
        for _ in range(_MAX_DRAWS):
            if not len(pending):
                return words, after
            proposals, proposal_orders = self._propose_words(histories[:, pending], random)
            extended, highest = self._extend_histories(histories[:, pending], proposals)
            is_accepted = (highest == proposal_orders) & ~np.isin(proposals, self.banned_words)
            words[pending[is_accepted]], after[:, pending[is_accepted]] = (
                proposals[is_accepted],
                extended[:, is_accepted],
            )
            pending = pending[~is_accepted]
        raise ModelError("the n-gram model gives almost all probability to words that must not be sampled")

    def _propose_words(self, histories: Ints, random: np.random.Generator) -> tuple[Ints, Ints]:
        """Return a proposed word for each history, and the order that it comes from."""
        masses = np.zeros(histories.shape)
        weight = np.ones(histories.shape[1])
        for number in reversed(range(len(self.orders))):
            order, known = self.orders[number], histories[number] >= 0
            history_rows = histories[number, known]
            masses[number, known] = weight[known] * (
                order.cumulative_probabilities[order.starts[history_rows + 1]]
                - order.cumulative_probabilities[order.starts[history_rows]]
            )
            weight[known] *= order.backoff_weights[history_rows]
        sums = np.cumsum(masses, 0)
        chosen_orders = (random.random(len(weight)) * sums[-1] >= sums).sum(0)
        words = np.empty(len(weight), np.int64)
        for number, order in enumerate(self.orders):
            rows = np.flatnonzero(chosen_orders == number)
            start, end = (order.starts[histories[number, rows] + offset] for offset in (0, 1))
            target_mass = order.cumulative_probabilities[start] + random.random(len(rows)) * (
                order.cumulative_probabilities[end] - order.cumulative_probabilities[start]
            )
            # Clipped, since rounding can put the sum outside the range of the history.
            positions = np.clip(
                np.searchsorted(order.cumulative_probabilities, target_mass, side="right") - 1, start, end - 1
            )
            words[rows] = order.keys[positions] % self.size
        return words, chosen_orders

    def _extend_histories(self, before: Ints, words: Ints) -> tuple[Ints, Ints]:
        """Return the histories that end in new words, and the highest order that has an n-gram with them."""
        after, highest = np.full_like(before, _NOT_FOUND), np.zeros(len(words), np.int64)
        after[0] = 0
        for number, order in enumerate(self.orders):
            known = np.flatnonzero(before[number] >= 0)
            keys = before[number, known] * self.size + words[known]
            positions = np.minimum(np.searchsorted(order.keys, keys), max(len(order.keys) - 1, 0))
            is_found = order.keys[positions] == keys if len(order.keys) else np.zeros(len(keys), bool)
            highest[known[is_found]] = number
            if number + 1 < len(self.orders):
                after[number + 1, known[is_found]] = positions[is_found]
        return after, highest


def _truncate_at_end(column: Ints) -> list[int]:
    words: list[int] = column[: int(np.argmax(column == END))].tolist()
    return words
