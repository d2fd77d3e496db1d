"""Unknown words, those outside the vocabulary of a word model: the option ``unknown``, and their spelling.

A word model has one symbol, ``<unk>``, for all words that it does not know, with the probability of all of them
together. An unknown word that gets this whole probability seems likelier than most words of the vocabulary, so a
nonsense word or a misspelling wins against the right word. The option ``unknown`` says what such a word gets instead:

- ``'spelling'``: its share of that probability, P(<unk> | history) · P(spelling | not in the vocabulary), from a model
  of the characters of the vocabulary (``SpellingModel``). The probabilities of all strings then sum to 1.
- ``'<unk>'``: the whole probability, as most toolkits have it.
- ``'uniform'``: 1 / vocabulary, without a history; and a number: that log-probability.
- ``'refuse'``: a sentence with an unknown word is an error.
- ``'omit'``: a sentence with an unknown word has no score, and results leave it out and count it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError

POLICIES = ("spelling", "<unk>", "uniform", "refuse", "omit")
"""The values of the option ``unknown``, besides numbers."""

DEFAULT_POLICY = "spelling"
"""The policy with the highest accuracy over BLiMP and LI-Adger; see docs/why/numbers.md."""

# Longer contexts give known words most of the probability, which then says little about other words.
_ORDER = 5
_START, _END = "\x02", "\x03"
_CODE_POINTS = 0x110000


def validate_unknown_policy(unknown: object, *more: str) -> str | float:
    """Return the option ``unknown``: one of ``POLICIES``, or a log-probability.

    Args:
        unknown: The option as it was given.
        more: Further words that are accepted.
    """
    # Bounded below, since minus infinity would make every sum of log-probabilities meaningless.
    if isinstance(unknown, (int, float)) and not isinstance(unknown, bool) and -1e30 < unknown <= 0:
        return float(unknown)
    if isinstance(unknown, str) and unknown in (*POLICIES, *more):
        return unknown
    choices = ", ".join(map(repr, POLICIES))
    raise ModelError(f"unknown is {unknown!r}; expected {choices} or a log-probability, at most 0")


def refuse_unknown_words(model: str, words: Sequence[str], index: int) -> None:
    """Raise an error if there are unknown words, for the policy ``'refuse'``.

    Args:
        model: The model's name.
        words: The unknown words of a query.
        index: The index of the query.
    """
    if words:
        shown = ", ".join(map(repr, dict.fromkeys(words)))
        raise QueryError(
            index, f"{model} does not know {shown}, and unknown='refuse'; unknown='omit' leaves such sentences out"
        )


def add_spelling(
    logprobs: NDArray[np.float32],
    tokens: Sequence[str] | NDArray[np.object_],
    unknown: Sequence[int] | NDArray[np.int64],
    spelling: SpellingModel,
) -> NDArray[np.float32]:
    """Add the log-probability of its spelling to that of each unknown token, and return what was added.

    Args:
        logprobs: The log-probabilities of the tokens, which are changed. That of an unknown one is that of ``<unk>``,
            which stands for all unknown words together.
        tokens: The tokens.
        unknown: The positions of the unknown tokens.
        spelling: The model of their spelling.
    """
    # As float32, so that what the store keeps is what was added.
    added = np.array([spelling.logprob(tokens[position]) for position in unknown], np.float32)
    logprobs[np.array(unknown, np.int64)] += added
    return added


@lru_cache(maxsize=2)
def fit_spelling(vocabulary: tuple[str, ...]) -> SpellingModel:
    """Return the spelling model of a vocabulary, which later models with the same vocabulary share.

    Args:
        vocabulary: Its words, without the special ones.
    """
    # A vocabulary of 30,000 words takes half a second, which a process that opens one model many times pays once.
    return SpellingModel(vocabulary)


class SpellingModel:
    """The probability of the spelling of a word that is not in a vocabulary.

    An n-gram model of characters with Witten–Bell smoothing (1991), whose training text is the vocabulary, each word
    once: words that are rare or were never seen are spelled like the many rare words of a vocabulary, not like
    the few frequent ones.

    Args:
        vocabulary: The words of the vocabulary, without the special ones.

    >>> spelling = SpellingModel(["bark", "barks", "cat", "cats", "dog", "sleep"])
    >>> spelling.logprob("dogs") > spelling.logprob("xqzw")
    True
    """

    def __init__(self, vocabulary: Iterable[str]) -> None:
        self._vocabulary = tuple(vocabulary)
        counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
        # Only the distinct n-grams of the highest order are divided into shorter ones: a fifth of all.
        for ngram, times in Counter(ngram for word in self._vocabulary for ngram in _list_ngrams(word)).items():
            for length in range(_ORDER):
                counts[ngram[_ORDER - 1 - length : -1]][ngram[-1]] += times
        self._counts = dict(counts)
        self._totals = {context: followers.total() for context, followers in counts.items()}
        self._unseen = 1 / (len(self._counts.get("", ())) + 1)
        self._probabilities: dict[str, float] = {}
        self._ngram_logprobs: dict[str, float] = {}
        self._logprobs: dict[str, float] = {}

    def logprob(self, word: str) -> float:
        """Return log P(word | not in the vocabulary), in nats."""
        # Unknown words recur within a suite, often in both sentences of a contrast.
        if word not in self._logprobs:
            self._logprobs[word] = self._compute_logprob(word) - self._log_remainder
        return self._logprobs[word]

    @cached_property
    def _log_remainder(self) -> float:
        """The logarithm of the probability that is left for all strings outside the vocabulary."""
        return math.log1p(-math.fsum(math.exp(self._compute_logprob(word)) for word in set(self._vocabulary)))

    def _compute_logprob(self, word: str) -> float:
        """Return the log-probability of a string among all strings."""
        return math.fsum(map(self._compute_ngram_logprob, _list_ngrams(word)))

    def _compute_ngram_logprob(self, ngram: str) -> float:
        """Return the log-probability of the last character given the ones before it."""
        # The words of a vocabulary share most of their n-grams.
        if ngram not in self._ngram_logprobs:
            self._ngram_logprobs[ngram] = math.log(self._compute_probability(ngram))
        return self._ngram_logprobs[ngram]

    def _compute_probability(self, ngram: str) -> float:
        """Return the probability of the last character, interpolated with all shorter contexts."""
        if ngram in self._probabilities:
            return self._probabilities[ngram]
        context, character = ngram[:-1], ngram[-1]
        shorter = self._compute_probability(ngram[1:]) if context else self._compute_unseen(character)
        if context not in self._counts:
            return shorter
        followers, total = self._counts[context], self._totals[context]
        probability = (followers[character] + len(followers) * shorter) / (total + len(followers))
        self._probabilities[ngram] = probability
        return probability

    def _compute_unseen(self, character: str) -> float:
        """Return the probability of a character before any is counted."""
        # One share for every character of the vocabulary and one for all others together, so that a letter of another
        # script is improbable and not impossible.
        return self._unseen if character in self._counts.get("", ()) else self._unseen / _CODE_POINTS


def _list_ngrams(word: str) -> list[str]:
    """Return the n-grams of the highest order that end with each character of a word, and with its end."""
    text = _START * (_ORDER - 1) + word + _END
    return [text[end - _ORDER : end] for end in range(_ORDER, len(text) + 1)]
