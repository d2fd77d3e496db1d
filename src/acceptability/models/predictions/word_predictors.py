"""Predictions of n-gram models: the distribution over the words of the vocabulary after a history.

The probabilities of all words after a history are those of single words with the weights of the history, replaced where
the longer n-gram is in the table: a slice of the sorted n-grams. The distribution is normalised, since quantised values
need not sum to exactly 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, TrainError
from acceptability.models.ngram.arpa import Arpa, convert_arpa
from acceptability.models.ngram.trained import NGramTable
from acceptability.models.predictions import PredictionStats, Predictor
from acceptability.text.words import END, START, UNKNOWN
from acceptability.types import Floats, TokenPredictions, TokenScores

_MAX_CACHED = 256
"""The number of distributions that are kept, for histories that occur again: a full sentence has fewer."""


class HistoryTable(Protocol):
    """The distributions of a word model in memory."""

    @property
    def size(self) -> int:
        """The number of words."""
        ...

    def compute(self, history: Sequence[int]) -> Floats:
        """Return the log-probability of every word after a history of word ids, normalised."""
        ...


class BackoffDistributions:
    """The distributions of an n-gram model with back-off.

    Args:
        table: The n-grams.
        start: The id of the start symbol; None if the vocabulary has none.
    """

    def __init__(self, table: NGramTable, start: int | None) -> None:
        self._table, self._start = table, start
        self.size = table.size

    def compute(self, history: Sequence[int]) -> Floats:
        """Return the log-probability of every word after a history of word ids, normalised."""
        orders, size = self._table.orders, self.size
        logprobs = orders[0].logprobs.astype(np.float64)
        context = list(history)[-(len(orders) - 1) :] if len(orders) > 1 else []
        # From the last word alone to the whole history: a longer one takes weights only where it is in the table.
        for length in range(1, len(context) + 1):
            row = self._find_row(context[-length:])
            if row is None:
                break
            below, order = orders[length - 1], orders[length]
            first, last = np.searchsorted(order.keys, (row * size, (row + 1) * size))
            logprobs = logprobs + below.backoffs[row]
            logprobs[order.keys[first:last] % size] = order.logprobs[first:last]
        # The start symbol is never predicted: what a file has in the place of its probability is a filler, often 1.
        if self._start is not None:
            logprobs[self._start] = -np.inf
        return _normalise(logprobs)

    def _find_row(self, words: Sequence[int]) -> int | None:
        """Return the index of an n-gram among those of its order; None if it is not in the table."""
        row = words[0]
        for word, order in zip(words[1:], self._table.orders[1:], strict=False):
            key = row * self.size + word
            row = int(np.searchsorted(order.keys, key))
            if row == len(order.keys) or order.keys[row] != key:
                return None
        return row


class ClassDistributions:
    """The distributions of an aggregate Markov model.

    Args:
        table: Its class probabilities.
    """

    def __init__(self, table: Any) -> None:
        self._table = table
        self.size = int(table.size)

    def compute(self, history: Sequence[int]) -> Floats:
        """Return the log-probability of every word after a history of word ids, normalised."""
        # The last row of the table is that of an empty history.
        probabilities = self._table.followers @ self._table.histories[history[-1] if history else -1]
        logprobs = np.log(np.maximum(probabilities, np.finfo(float).tiny))
        logprobs[START] = -np.inf
        return _normalise(logprobs)


def _normalise(logprobs: Floats) -> Floats:
    highest = float(logprobs.max())
    return np.asarray(logprobs - (highest + np.log(np.exp(logprobs - highest).sum())))


class WordDistributions:
    """The distributions of a word model, with what is kept of each.

    Args:
        table: The distributions.
        words: The vocabulary, in the order of its ids.
        top: How many alternatives are kept.
    """

    def __init__(self, table: HistoryTable, words: Sequence[str], top: int) -> None:
        self._table, self._words, self._top = table, words, min(top, len(words))
        self._known: dict[tuple[int, ...], tuple[Floats, float, NDArray[np.int64]]] = {}

    def predict(self, scores: TokenScores, histories: Sequence[Sequence[int]], ids: Sequence[int]) -> TokenPredictions:
        """Return the predictions of a query.

        Args:
            scores: Its token scores.
            histories: The word ids before each scored token, and last those after the last one; empty where the history
                begins anew.
            ids: The id of each scored token; -1 for one that the model has no symbol for.
        """
        found = [self._look_up(tuple(history)) for history in histories]
        entropies = np.array([entropy for _, entropy, _ in found], np.float32)
        ranks, cumulative = np.zeros(len(ids), np.int64), np.full(len(ids), np.nan, np.float32)
        for row, word_id in enumerate(ids):
            if word_id >= 0:
                logprobs = found[row][0]
                is_better = logprobs > logprobs[word_id]
                ranks[row] = is_better.sum() + 1
                cumulative[row] = min(1.0, np.exp(logprobs[is_better]).sum() + np.exp(logprobs[word_id]))
        top_ids = np.array([best for _, _, best in found[: len(ids)]]).reshape(len(ids), self._top)
        tops = np.array([found[row][0][top_ids[row]] for row in range(len(ids))], np.float32)
        after = entropies[1:].copy()
        # Nothing is predicted after the end of a sentence.
        if scores.tokens[-1] == "</s>":
            after[-1] = np.nan
        kept = PredictionStats(entropies[:-1], after, ranks, cumulative, top_ids, tops.reshape(len(ids), self._top))
        return kept.add_to(scores, lambda word_id: self._words[word_id])

    def _look_up(self, history: tuple[int, ...]) -> tuple[Floats, float, NDArray[np.int64]]:
        if history not in self._known:
            if len(self._known) >= _MAX_CACHED:
                self._known.clear()
            logprobs = self._table.compute(history)
            possible = logprobs[np.isfinite(logprobs)]
            entropy = -float((np.exp(possible) * possible).sum())
            best = np.argpartition(-logprobs, self._top - 1)[: self._top]
            self._known[history] = logprobs, entropy, best[np.argsort(-logprobs[best], kind="stable")]
        return self._known[history]


class TrainedNGramPredictor(Predictor):
    """An n-gram or aggregate Markov model in a folder, whose outputs are ``TokenPredictions``."""

    @cached_property
    def distributions(self) -> HistoryTable:
        """The distributions after histories."""
        table = self.model.table
        return BackoffDistributions(table, START) if isinstance(table, NGramTable) else ClassDistributions(table)

    def run(self, batch: Any) -> list[TokenPredictions]:
        """Return the predictions of each query."""
        columns = self.model.run(batch)
        distributions = WordDistributions(self.distributions, self.model.vocabulary.words, self.top)
        outputs = []
        for encoded, scores in zip(batch, columns, strict=True):
            word_ids = [*([START] if self.model.bos else []), *encoded.word_ids.tolist(), END]
            shift = len(word_ids) - 1 - len(encoded.word_ids)
            positions = [shift + at for at in np.flatnonzero(encoded.is_scored).tolist()]
            if len(scores.tokens) > len(positions):
                positions.append(len(word_ids) - 1)
            histories = [_cut_history(word_ids[:at]) for at in (*positions, positions[-1] + 1)]
            outputs.append(distributions.predict(scores, histories, [word_ids[at] for at in positions]))
        return outputs


def _cut_history(word_ids: Sequence[int]) -> list[int]:
    """Return the words that the next one is conditioned on: after the last one without a symbol.

    >>> _cut_history([1, 7, -1, 8])
    [8]
    """
    last = max((at for at, word_id in enumerate(word_ids) if word_id < 0), default=-1)
    return list(word_ids[last + 1 :])


class NGramPredictor(Predictor):
    """An n-gram model in an ARPA file whose outputs are ``TokenPredictions``."""

    @cached_property
    def words(self) -> list[str]:
        """The words of the file."""
        return [gram[0] for gram in self.model.backend.logprobs if len(gram) == 1]

    @cached_property
    def distributions(self) -> BackoffDistributions:
        """The distributions after histories."""
        start = self.words.index("<s>") if "<s>" in self.words else None
        try:
            orders = tuple(convert_arpa(self.model.backend, self.words))
            return BackoffDistributions(NGramTable(len(self.words), orders), start)
        except TrainError as error:
            raise ModelError(f"{self.model.path.name}: {error}") from error

    def to_ids(self, words: Sequence[str]) -> list[int]:
        """Return the id of each word; -1 for one that the model has no symbol for."""
        index = {word: number for number, word in enumerate(self.words)}
        unknown = self.model.unknown_symbol
        return [index.get(word, -1 if unknown is None else index[unknown]) for word in words]

    def run(self, batch: Sequence[Any]) -> list[TokenPredictions]:
        """Return the predictions of each query."""
        distributions = WordDistributions(self.distributions, self.words, self.top)
        outputs = []
        for encoded, scores in zip(batch, self.model.run(batch), strict=True):
            start = ["<s>"] if self.model.bos is not None else []
            has_end = len(scores.tokens) > len(encoded.scored_positions)
            word_ids = self.to_ids([*start, *encoded.words, *(["</s>"] if has_end else [])])
            positions = [len(start) + at for at in encoded.scored_positions]
            positions += [len(word_ids) - 1] if has_end else []
            histories = [_cut_history(word_ids[:at]) for at in (*positions, positions[-1] + 1)]
            outputs.append(distributions.predict(scores, histories, [word_ids[at] for at in positions]))
        return outputs


def make_ngram_predictor(model: Any, top: int) -> NGramPredictor:
    """Return the variant of a model in a file that predicts; raise an error for files that do not list their words."""
    if not isinstance(model.backend, Arpa):
        raise ModelError(
            f"{model.path.name} is a {'KenLM' if model.kind == 'kenlm' else 'CMU Sphinx'} binary, which does not list "
            "its words, so that there is no distribution over them; use the ARPA file that it was made from"
        )
    return NGramPredictor(model, top)


class FollowingWords:
    """The distribution of a word model over the word after a text.

    Args:
        model: The model, for messages.
        table: Its distributions.
        words: The vocabulary.
        encode: Returns the word ids of a text, with the start symbol.
    """

    tokens_are_words = True
    fills_mask = False

    def __init__(self, table: HistoryTable, words: Sequence[str], encode: Any, specials: frozenset[int]) -> None:
        self._table, self._encode = table, encode
        self.token_texts = ["" if number in specials else word for number, word in enumerate(words)]
        self.end_ids = frozenset(number for number, word in enumerate(words) if word == "</s>")

    def encode_prefix(self, text: str) -> list[int]:
        """Return the words of the beginning of a text."""
        ids: list[int] = self._encode(text)
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of words."""
        return " ".join(self.token_texts[word_id] for word_id in ids)

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the log-probability of every word after each prefix."""
        return np.array([self._table.compute(_cut_history(prefix)) for prefix in prefixes], np.float32)


def make_trained_next_words(model: Any) -> FollowingWords:
    """Return the next words of an n-gram or aggregate Markov model in a folder."""

    def encode(text: str) -> list[int]:
        ids = model.vocabulary.to_ids(model.vocabulary.tokenize(text)[0])
        return [*([START] if model.bos else []), *ids]

    table = TrainedNGramPredictor(model, 1).distributions
    return FollowingWords(table, model.vocabulary.words, encode, frozenset((UNKNOWN, START, END)))


def make_arpa_next_words(model: Any) -> FollowingWords:
    """Return the next words of a model in an ARPA file."""
    predictor = make_ngram_predictor(model, 1)

    def encode(text: str) -> list[int]:
        return predictor.to_ids([*(["<s>"] if model.bos is not None else []), *model.split_words(text)])

    specials = frozenset(
        number for number, word in enumerate(predictor.words) if word in ("<s>", "</s>", "<unk>", "<UNK>")
    )
    return FollowingWords(predictor.distributions, predictor.words, encode, specials)
