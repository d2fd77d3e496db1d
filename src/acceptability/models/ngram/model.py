"""N-gram models in files: ARPA text, KenLM and CMU Sphinx binaries, recognised by their first bytes; uniform baseline.

Words are what spaces separate (``units='spaces'``), or runs of letters, digits and inner apostrophes or hyphens without
punctuation (``units='words'``), or such runs and each punctuation mark (``units='punctuation'``), or as ``acceptability
train`` splits text (``units='split'``). A Sphinx model has lower-case words only. A folder that was trained by this
package has its own rule (see ``trained``).

A word outside the vocabulary gets its share of the probability of ``<unk>`` by its spelling, or in a model without
``<unk>``, such as those of Sphinx, 1 / vocabulary; the option ``unknown`` changes that (``models/unknown_words.py``).
The binaries of KenLM do not list their words, of which spelling is learned: an unknown word gets the whole probability
of ``<unk>`` there. Without ``<unk>``, the history restarts after the word. Sentences begin after ``<s>`` where the
model has one; ``eos=True`` scores ``</s>`` too. The signature holds which of these applied.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models.files import get_cached_fact, hash_file, resolve_version, validate_bool, validate_choice
from acceptability.models.ngram.arpa import LN10, Arpa
from acceptability.models.ngram.trained import TrainedNGram, is_model_folder, open_trained_ngram
from acceptability.models.unknown_words import (
    DEFAULT_POLICY,
    SpellingModel,
    add_spelling,
    fit_spelling,
    refuse_unknown_words,
    validate_unknown_policy,
)
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import format_spec
from acceptability.text.words import SPLIT_RULES, normalize_word
from acceptability.types import Query, Span, TokenScores

_KENLM_MAGIC = b"mmap lm http://kheafield.com/code"
_SPHINX_MAGIC = b"Trie Language Model"


@dataclass(frozen=True)
class NGramEncoding:
    """The words of a query as the model spells them, and which of them are scored.

    Args:
        offsets: The character span of each word in the query's text.
    """

    query: Query
    words: tuple[str, ...]
    offsets: tuple[Span, ...]
    scored_positions: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.words)


@dataclass(frozen=True)
class NGram(Model):
    """An n-gram model in a file.

    Args:
        kind: The file format: "arpa", "kenlm" or "sphinx".
        units: The rule that splits text into words.
        lower: Whether text is put in lower case.
        start: The option ``bos``: "auto", "<s>" or None.
        eos: Whether ``</s>`` is scored.
        unknown_policy: The option ``unknown``: "auto", or what an unknown word gets, see ``unknown_words``.
        lenient: Whether a text may consist of unknown words alone.
    """

    path: Path
    kind: str
    units: str
    lower: bool
    start: str | None
    eos: bool
    unknown_policy: str | float
    lenient: bool = False

    @property
    def signature(self) -> str:
        """The file's name, a hash of its content, and the options that change a score."""
        options = {"units": self.units, "lower": self.lower, "bos": self.bos, "eos": self.eos, "unknown": self.unknown}
        return format_spec(f"ngram:{self.path.name}@{hash_file(self.path)}", options)

    @property
    def word_rule(self) -> str:
        """The rule that splits text into words."""
        return self.units

    @cached_property
    def bos(self) -> str | None:
        """The start symbol, or None if the model has none or the option is None."""
        if self.start is None:
            return None
        return "<s>" if self._get_cached_fact("bos", lambda: self.backend.knows("<s>")) else None

    # Cached, since every query needs it and the cached facts are files.
    @cached_property
    def unknown(self) -> str | float:
        """What an unknown word gets, see ``unknown_words``."""
        if self.unknown_policy != "auto":
            return self.unknown_policy
        if not self._get_cached_fact("unk", lambda: self.backend.unknown_token is not None):
            return "uniform"
        return DEFAULT_POLICY if self._get_cached_fact("words", lambda: self.backend.words is not None) else "<unk>"

    def _get_cached_fact(self, name: str, compute: Callable[[], bool]) -> bool:
        # Kept on disk: a signature should not need the whole model, which may take a minute to read.
        return bool(get_cached_fact(hash_file(self.path), name, compute))

    @cached_property
    def backend(self) -> NGramBackend:
        """The reader of the file, opened on first use."""
        readers: dict[str, Callable[[Path], NGramBackend]] = {"arpa": Arpa, "sphinx": Sphinx, "kenlm": KenLM}
        return readers[self.kind](self.path)

    def is_unknown(self, token: str) -> bool:
        """Return whether a token, as the model spells it, is outside the vocabulary."""
        return not self.backend.knows(token)

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score."""
        return self.unknown == "omit"

    @cached_property
    def spelling(self) -> SpellingModel:
        """The model of the spelling of unknown words, fitted on first use."""
        if self.backend.words is None:
            raise ModelError(f"{self.path.name} does not list its words, of which spelling is learned; omit 'spelling'")
        return fit_spelling(tuple(self.backend.words))

    def encode(self, queries: Sequence[Query]) -> list[NGramEncoding]:
        """Return the words of each query; a query without a known word is an error."""
        return [self._encode_query(query, index) for index, query in enumerate(queries)]

    def as_lenient(self) -> NGram:
        """Return the same model, which also scores texts in which every word is unknown."""
        return replace(self, lenient=True)

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also predicts; raise ModelError for a binary that does not list its words."""
        from acceptability.models.predictions.word_predictors import make_ngram_predictor

        return make_ngram_predictor(self, top)

    @property
    def next_tokens(self) -> NextTokenModel:
        """The distribution over the word after a text."""
        from acceptability.models.predictions.word_predictors import make_arpa_next_words

        return make_arpa_next_words(self)

    @property
    def unknown_symbol(self) -> str | None:
        """The symbol that unknown words have in histories; None if they have none, and a history begins anew."""
        return self.backend.unknown_token if self._unknown_logprob is None else None

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text, as the model spells them."""
        return [normalize_word(match.group(), lower=self.lower) for match in re.finditer(SPLIT_RULES[self.units], text)]

    def run(self, batch: Sequence[NGramEncoding]) -> list[TokenScores]:
        """Return the log-probability of every scored word, given the words before it."""
        return [self._score_query(encoded) for encoded in batch]

    def _encode_query(self, query: Query, index: int) -> NGramEncoding:
        full_query = Query(query.full_text)
        spans = find_target_word_spans(full_query, SPLIT_RULES[self.units], index)
        words = tuple(normalize_word(query.full_text[start:end], lower=self.lower) for start, end in spans)
        if not (self.lenient or any(map(self.backend.knows, words))):
            raise QueryError(index, f"the model {self.path.name} knows none of its words")
        start, end = query.target or (0, len(query.text))
        scored_positions = tuple(
            position
            for position, span in enumerate(spans)
            if span[0] < query.text_start + end and span[1] > query.text_start + start
        )
        if not scored_positions:
            raise QueryError(index, "there is no word in its target")
        if self.unknown == "refuse":
            scored_words = [words[position] for position in scored_positions]
            refuse_unknown_words(self.path.name, list(filter(self.is_unknown, scored_words)), index)
        # Words of the context get empty or cut spans; they are never among the scored positions.
        offsets = tuple((max(a - query.text_start, 0), max(b - query.text_start, 0)) for a, b in spans)
        return NGramEncoding(query, words, offsets, scored_positions)

    def _score_query(self, encoded: NGramEncoding) -> TokenScores:
        # KenLM scores a whole sentence in one call, but cannot restart the history after an unknown word.
        if isinstance(self.backend, KenLM) and self._unknown_logprob is None:
            return self._finish_scores(encoded, *self._score_words_with_kenlm(self.backend, encoded))
        history = ["<s>"] if self._has_bos else []
        unknown_token = self.backend.unknown_token if self._unknown_logprob is None else None
        logprobs: list[float] = []
        for position, word in enumerate(encoded.words):
            known_word = word if self.backend.knows(word) else unknown_token
            if position in encoded.scored_positions:
                # Without a fixed log-probability, every word has a symbol.
                fixed = self._unknown_logprob if known_word is None else None
                logprobs.append(self.backend.logprob(known_word or word, history) if fixed is None else fixed)
            # Nothing can be conditioned on a word that the model has no symbol for: the history restarts.
            history = [*history, known_word] if known_word else []
        ends = [self.backend.logprob("</s>", history)] if self.eos and not encoded.query.target else []
        return self._finish_scores(encoded, logprobs, ends)

    def _score_words_with_kenlm(self, backend: KenLM, encoded: NGramEncoding) -> tuple[list[float], list[float]]:
        """Return the log-probabilities of the scored words, and of ``</s>`` if it is scored, from one call of KenLM."""
        eos = self.eos and not encoded.query.target
        all_logprobs = backend.logprobs(encoded.words, bos=self._has_bos, eos=eos)
        # With eos, KenLM returns one log-probability more than there are words.
        return [all_logprobs[position] for position in encoded.scored_positions], all_logprobs[len(encoded.words) :]

    def _finish_scores(self, encoded: NGramEncoding, logprobs: list[float], ends: list[float]) -> TokenScores:
        """Return the scores of a query, with what spelling adds to the log-probabilities of unknown words.

        Args:
            logprobs: The log-probabilities of the scored words.
            ends: That of ``</s>``, if it is scored.
        """
        words = [encoded.words[position] for position in encoded.scored_positions]
        unknown = tuple(number for number, word in enumerate(words) if self.is_unknown(word))
        token_logprobs = np.array([*logprobs, *ends], dtype=np.float32)
        added: tuple[float, ...] = ()
        if self.unknown == "spelling" and unknown:
            added = tuple(add_spelling(token_logprobs, words, unknown, self.spelling).tolist())
        offsets = [encoded.offsets[position] for position in encoded.scored_positions]
        return TokenScores(
            encoded.query.text,
            (*words, *["</s>"] * len(ends)),
            (*offsets, *[(len(encoded.query.text),) * 2] * len(ends)),
            token_logprobs,
            unknown,
            added,
        )

    @cached_property
    def _has_bos(self) -> bool:
        return self.bos is not None

    @cached_property
    def _unknown_logprob(self) -> float | None:
        """The fixed log-probability of an unknown word; None if it depends on that of <unk>."""
        if isinstance(self.unknown, float):
            return self.unknown
        if self.unknown != "uniform" and self.backend.unknown_token is not None:
            return None
        if self.unknown in ("<unk>", "spelling"):
            raise ModelError(
                f"{self.path.name} has no <unk>, whose probability an unknown word would get; omit unknown"
            )
        return -math.log(self.backend.vocabulary_size)


def open_model(
    location: str,
    *,
    units: str = "auto",
    lower: bool | None = None,
    bos: str | None = "auto",
    eos: bool = False,
    unknown: str | float = "auto",
) -> NGram | TrainedNGram:
    """Return the n-gram model in a file, whatever its format, or in a folder that was trained by this package.

    Args:
        location: The file or folder, perhaps with ``@HASH`` as in a signature; its content must then have that hash.
        units: The rule that splits text into words: "spaces", "words", "punctuation" or "split"; "auto" is "words" for
            Sphinx and "spaces" for other files.
        lower: Whether text is put in lower case; None does so for Sphinx only.
        bos: "<s>", or None to score the first word without a history; "auto" is "<s>" where the model has it.
        eos: Whether ``</s>`` is scored.
        unknown: What an unknown word gets: "spelling", "<unk>", "uniform", a log-probability, "refuse" or "omit";
            "auto" is "spelling" where the model has ``<unk>`` and lists its words.
    """
    if bos not in ("auto", "<s>", None):
        raise ModelError(f"ngram: bos is {bos!r}; expected '<s>' or None")
    validate_choice("units", units, ("auto", *SPLIT_RULES))
    if is_model_folder(Path(location)):
        trained = open_trained_ngram(
            Path(location), bos=bos, eos=validate_bool("eos", eos), unknown=validate_unknown_policy(unknown, "auto")
        )
        # A signature writes them out, as the folder has them.
        if units not in ("auto", trained.word_rule) or lower not in (None, trained.vocabulary.lower):
            raise ModelError(f"ngram:{location} defines how text is split into words; remove units and lower")
        return trained
    path = resolve_version(Path(location))
    kind = _detect_format(path)
    # The vocabulary of a Sphinx model is that of a speech recogniser: no punctuation, no capitals.
    if units == "auto":
        units = "words" if kind == "sphinx" else "spaces"
    lower = kind == "sphinx" if lower is None else validate_bool("lower", lower)
    return NGram(path, kind, units, lower, bos, validate_bool("eos", eos), validate_unknown_policy(unknown, "auto"))


def _detect_format(path: Path) -> str:
    """Return the format of a file, recognised by its first bytes: extensions differ from toolkit to toolkit."""
    try:
        with path.open("rb") as file:
            # More than a few bytes, because ARPA files may have comments before their first section.
            header = file.read(4096)
    except OSError as error:
        raise ModelError(f"cannot open the n-gram model {path}: {error.strerror}") from error
    if header.startswith(_KENLM_MAGIC):
        return "kenlm"
    if header.startswith(_SPHINX_MAGIC):
        return "sphinx"
    # ARPA files are often gzipped, the binary formats never.
    if header.startswith(b"\x1f\x8b") or b"\\data\\" in header:
        return "arpa"
    raise ModelError(f"{path} is no n-gram model in a known format: neither ARPA text, nor KenLM, nor CMU Sphinx")


def find_target_word_spans(query: Query, pattern: str, index: int) -> tuple[Span, ...]:
    """Return the spans of the words in a query's text, or in its target if it has one.

    Args:
        pattern: A regular expression that matches words.
        index: The index of the query, for the error.
    """
    spans = [match.span() for match in re.finditer(pattern, query.text)]
    if query.target:
        start, end = query.target
        spans = [span for span in spans if span[0] < end and span[1] > start]
    if not spans:
        raise QueryError(index, "there is no word in it")
    return tuple(spans)


class NGramBackend(Protocol):
    """A reader of one file format."""

    order: int
    unknown_token: str | None

    @property
    def words(self) -> Sequence[str] | None:
        """The words of the vocabulary without special ones; None if the file cannot be asked for them."""
        ...

    @property
    def vocabulary_size(self) -> int:
        """The number of words in the vocabulary."""
        ...

    def knows(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        ...

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history) in nats."""
        ...


class Sphinx:
    """A CMU Sphinx binary, read by the package pocketsphinx."""

    unknown_token: str | None = None
    words: Sequence[str] | None = None

    def __init__(self, path: Path) -> None:
        try:
            from pocketsphinx import Config, LogMath, NGramModel
        except ImportError as error:
            raise MissingExtra(f"ngram:{path.name}", "pocketsphinx", "--no-deps pocketsphinx") from error
        # The package does not expose the order and the vocabulary size; they follow the magic bytes of the file.
        header = path.read_bytes()[: len(_SPHINX_MAGIC) + 5]
        self.order = header[len(_SPHINX_MAGIC)]
        self.vocabulary_size = int.from_bytes(header[len(_SPHINX_MAGIC) + 1 :], "little")
        # The package computes in logarithms of the base 1.0001, as integers.
        self._logmath = LogMath()
        try:
            self._model: Any = NGramModel(Config(), self._logmath, str(path))
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{path} cannot be read as a CMU Sphinx model: {error}") from error
        self._log_zero = self._logmath.log_to_ln(self._logmath.get_zero())

    def knows(self, word: str) -> bool:
        """Return whether a word is in the vocabulary: the package gives unknown ones its logarithm of zero."""
        return bool(self._logmath.log_to_ln(self._model.prob([word])) > self._log_zero)

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history)."""
        # The package expects the word first, then the history from its end.
        ngram = [word, *reversed(history[-(self.order - 1) :])]
        return float(self._logmath.log_to_ln(self._model.prob(ngram)))


class KenLM:
    """A KenLM binary, read by the package kenlm."""

    unknown_token: str | None = "<unk>"
    words: Sequence[str] | None = None

    def __init__(self, path: Path) -> None:
        # Imported only here: it is compiled during installation, and not available on every machine.
        try:
            import kenlm
        except ImportError as error:
            raise MissingExtra(f"ngram:{path.name}", "kenlm", "'acceptability[ngram]'") from error
        self._kenlm: Any = kenlm
        try:
            self._model: Any = kenlm.Model(str(path))
        except (OSError, RuntimeError) as error:
            raise ModelError(f"{path} cannot be read as a KenLM model: {error}") from error
        self.order = int(self._model.order)

    @property
    def vocabulary_size(self) -> int:
        """Raises an error: the package does not expose it."""
        raise ModelError(
            "KenLM does not report the size of its vocabulary; set unknown= to a number instead of 'uniform'"
        )

    def knows(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        return word in self._model

    def logprobs(self, words: Sequence[str], *, bos: bool, eos: bool) -> list[float]:
        """Return log p of each word, given the words before it, and of ``</s>`` if ``eos``."""
        return [score[0] * LN10 for score in self._model.full_scores(" ".join(words), bos=bos, eos=eos)]

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history)."""
        # Word by word with explicit states: the package's other functions score whole sentences only.
        state, after = self._kenlm.State(), self._kenlm.State()
        self._model.NullContextWrite(state)
        context = list(history[-(self.order - 1) :]) if self.order > 1 else []
        # In KenLM <s> is a start state, and cannot be scored like a word.
        if context[:1] == ["<s>"]:
            self._model.BeginSentenceWrite(state)
            context = context[1:]
        for context_word in context:
            self._model.BaseScore(state, context_word, after)
            state, after = after, state
        return float(self._model.BaseScore(state, word, after)) * LN10


@dataclass(frozen=True)
class UniformEncoding:
    """A query split into words."""

    query: Query
    offsets: tuple[Span, ...]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.offsets)


@dataclass(frozen=True)
class Uniform(Model):
    """A baseline that gives every word the probability 1 / vocabulary.

    Its score is the negative number of words, times a constant: what it gets right on a suite, sentence length alone
    gets right.
    """

    vocabulary: int = 50_000

    def __post_init__(self) -> None:
        # True is an int in Python, and would be a vocabulary of one word.
        if isinstance(self.vocabulary, bool) or not isinstance(self.vocabulary, int) or self.vocabulary < 1:
            raise ModelError(f"uniform: vocabulary is {self.vocabulary!r}; expected a whole number from 1")

    @property
    def signature(self) -> str:
        """The spec, with its one option."""
        return format_spec("uniform", {"vocabulary": self.vocabulary})

    def encode(self, queries: Sequence[Query]) -> list[UniformEncoding]:
        """Return the words of each query."""
        return [
            UniformEncoding(query, find_target_word_spans(query, r"\S+", index)) for index, query in enumerate(queries)
        ]

    def run(self, batch: Sequence[UniformEncoding]) -> list[TokenScores]:
        """Return the same log-probability for every word."""
        return [self._score_words(encoding) for encoding in batch]

    def _score_words(self, encoding: UniformEncoding) -> TokenScores:
        logprobs = np.full(len(encoding.offsets), -math.log(self.vocabulary), dtype=np.float32)
        text = encoding.query.text
        return TokenScores(text, tuple(text[start:end] for start, end in encoding.offsets), encoding.offsets, logprobs)


def open_uniform(location: str, vocabulary: int = 50_000) -> Uniform:
    """Return the baseline.

    Args:
        location: Must be empty: the baseline has no files.
        vocabulary: The number of words.
    """
    if location:
        raise ModelError(f"uniform has no files; write uniform(vocabulary=50000), not 'uniform:{location}'")
    return Uniform(vocabulary)
