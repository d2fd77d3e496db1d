"""N-gram models: ARPA files, KenLM and CMU Sphinx binaries, told apart by their first bytes; folders trained here.

Words are what spaces separate (``units='spaces'``), or runs of letters, digits and inner
apostrophes or hyphens without punctuation (``units='words'``), or such runs and each
punctuation mark (``units='punctuation'``), or as ``acceptability train`` cuts them (``units='split'``).
A Sphinx model takes lower-case words only. A folder that was trained here says itself how it takes them.

A word that the model does not know gets the model's own ``<unk>``; where it has none, as
Sphinx models, it gets 1 / vocabulary. ``unknown='uniform'`` asks for the latter, and a number
gives it that log-probability. The history restarts after a word without ``<unk>``. Sentences
begin after ``<s>`` where the model has one; ``eos=True`` scores ``</s>`` too. The signature
spells out which of these applied.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models.arpa import LN10, Arpa
from acceptability.models.files import at_version, checked_bool, checked_choice, file_hash, remembered
from acceptability.models.splitting import RULES, spelled
from acceptability.models.trained_ngram import TrainedNGram, is_folder, open_folder
from acceptability.models.uniform import word_spans
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

_KENLM = b"mmap lm http://kheafield.com/code"
_SPHINX = b"Trie Language Model"


class Table(Protocol):
    """Whatever can tell the log-probability of a word after others."""

    order: int
    unknown: str | None

    @property
    def vocabulary(self) -> int:
        """How many words it knows."""
        ...

    def knows(self, word: str) -> bool:
        """Tell whether a word is in the vocabulary."""
        ...

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history) in nats."""
        ...


class Sphinx:
    """A CMU Sphinx binary, asked through the package pocketsphinx."""

    unknown: str | None = None

    def __init__(self, path: Path) -> None:
        try:
            from pocketsphinx import Config, LogMath, NGramModel
        except ImportError as error:
            raise MissingExtra(f"ngram:{path.name}", "pocketsphinx", "--no-deps pocketsphinx") from error
        header = path.read_bytes()[: len(_SPHINX) + 5]
        self.order = header[len(_SPHINX)]
        self.vocabulary = int.from_bytes(header[len(_SPHINX) + 1 :], "little")
        self._logs = LogMath()
        try:
            self._model: Any = NGramModel(Config(), self._logs, str(path))
        except (RuntimeError, ValueError) as error:
            raise ModelError(f"{path} cannot be read as a CMU Sphinx model: {error}") from error
        self._nothing = self._logs.log_to_ln(self._logs.get_zero())

    def knows(self, word: str) -> bool:
        """Tell whether a word is in the vocabulary: unknown ones get "zero"."""
        return bool(self._logs.log_to_ln(self._model.prob([word])) > self._nothing)

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history): Sphinx wants the word first and the history reversed."""
        asked = [word, *reversed(history[-(self.order - 1) :])]
        return float(self._logs.log_to_ln(self._model.prob(asked)))


class KenLM:
    """A KenLM binary, asked through the package kenlm."""

    unknown: str | None = "<unk>"

    def __init__(self, path: Path) -> None:
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
    def vocabulary(self) -> int:
        """KenLM does not tell; it is not needed, since every model has <unk>."""
        raise ModelError("KenLM does not tell the size of its vocabulary; give unknown= a number instead of 'uniform'")

    def knows(self, word: str) -> bool:
        """Tell whether a word is in the vocabulary."""
        return word in self._model

    def logprobs(self, words: Sequence[str], *, bos: bool, eos: bool) -> list[float]:
        """Return log p of each word after those before it, from one call."""
        return [found[0] * LN10 for found in self._model.full_scores(" ".join(words), bos=bos, eos=eos)]

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history)."""
        state, after = self._kenlm.State(), self._kenlm.State()
        self._model.NullContextWrite(state)
        context = list(history[-(self.order - 1) :]) if self.order > 1 else []
        if context[:1] == ["<s>"]:
            self._model.BeginSentenceWrite(state)
            context = context[1:]
        for each in context:
            self._model.BaseScore(state, each, after)
            state, after = after, state
        return float(self._model.BaseScore(state, word, after)) * LN10


@dataclass(frozen=True)
class Words:
    """The words of a query as the model spells them, and which of them are scored."""

    query: Query
    words: tuple[str, ...]
    offsets: tuple[Span, ...]
    scored: frozenset[int]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.words)


@dataclass(frozen=True)
class NGram:
    """An n-gram model in a file.

    Args:
        lenient: Whether a text may consist of unknown words alone.
    """

    path: Path
    kind: str
    units: str
    lower: bool
    start: str | None
    eos: bool
    policy: str | float
    lenient: bool = False

    @property
    def signature(self) -> str:
        """The file's name and content, how text becomes words, and what frames it."""
        options = {"units": self.units, "lower": self.lower, "bos": self.bos, "eos": self.eos, "unknown": self.unknown}
        return write(f"ngram:{self.path.name}@{file_hash(self.path)}", options)

    @property
    def bos(self) -> str | None:
        """The start symbol, or None where the model has none, or none is wanted."""
        if self.start is None:
            return None
        return "<s>" if self._fact("bos", lambda: self.table.knows("<s>")) else None

    @property
    def unknown(self) -> str | float:
        """What an unknown word gets: "<unk>", "uniform", or a log-probability."""
        if self.policy != "auto":
            return self.policy
        return "<unk>" if self._fact("unk", lambda: self.table.unknown is not None) else "uniform"

    def _fact(self, name: str, find: Callable[[], bool]) -> bool:
        return bool(remembered(file_hash(self.path), name, find))

    @cached_property
    def table(self) -> Table:
        """The model itself, read on first use."""
        readers: dict[str, Callable[[Path], Table]] = {"arpa": Arpa, "sphinx": Sphinx, "kenlm": KenLM}
        return readers[self.kind](self.path)

    def is_unknown(self, token: str) -> bool:
        """Tell whether a token, as the model spells it, is not in the vocabulary."""
        return not self.table.knows(token)

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query; one without a known word is an error."""
        return [self._words(query, index) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[TokenScores]:
        """Return the log-probability of every word after those before it."""
        return [self._said(each) for each in batch]

    def _words(self, query: Query, index: int) -> Words:
        whole = Query(query.full)
        spans = word_spans(whole, RULES[self.units], index)
        words = tuple(spelled(query.full[start:end], lower=self.lower) for start, end in spans)
        if not (self.lenient or any(map(self.table.knows, words))):
            raise QueryError(index, f"the model {self.path.name} knows none of its words")
        start, end = query.target or (0, len(query.text))
        scored = frozenset(
            place for place, span in enumerate(spans) if span[0] < query.start + end and span[1] > query.start + start
        )
        if not scored:
            raise QueryError(index, "there is no word in its target")
        offsets = tuple((max(a - query.start, 0), max(b - query.start, 0)) for a, b in spans)
        return Words(query, words, offsets, scored)

    def _said(self, each: Words) -> TokenScores:
        if isinstance(self.table, KenLM) and self._unknown_lp is None:
            return self._said_at_once(self.table, each)
        history = ["<s>"] if self._starts else []
        stand_in = self.table.unknown if self._unknown_lp is None else None
        tokens, offsets, logprobs = [], [], []
        for place, word in enumerate(each.words):
            known = word if self.table.knows(word) else stand_in
            if place in each.scored:
                tokens.append(word)
                offsets.append(each.offsets[place])
                logprobs.append(self._unknown_lp if known is None else self.table.logprob(known, history))
            history = [*history, known] if known else []
        if self.eos and not each.query.target:
            tokens.append("</s>")
            offsets.append((len(each.query.text),) * 2)
            logprobs.append(self.table.logprob("</s>", history))
        return TokenScores(each.query.text, tuple(tokens), tuple(offsets), np.array(logprobs, dtype=np.float32))

    def _said_at_once(self, table: KenLM, each: Words) -> TokenScores:
        """Return what KenLM says of a whole sentence: it gives unknown words <unk> by itself."""
        eos = self.eos and not each.query.target
        found = table.logprobs(each.words, bos=self._starts, eos=eos)
        scored = sorted(each.scored)
        tokens = [each.words[place] for place in scored] + ["</s>"] * eos
        offsets = [each.offsets[place] for place in scored] + [(len(each.query.text),) * 2] * eos
        logprobs = [found[place] for place in scored] + found[len(each.words) :]
        return TokenScores(each.query.text, tuple(tokens), tuple(offsets), np.array(logprobs, dtype=np.float32))

    @cached_property
    def _starts(self) -> bool:
        return self.bos is not None

    @cached_property
    def _unknown_lp(self) -> float | None:
        """What an unknown word gets; None where <unk> stands in for it."""
        if self.unknown == "<unk>":
            if self.table.unknown is None:
                raise ModelError(f"{self.path.name} has no <unk>; leave unknown='<unk>' away")
            return None
        return -math.log(self.table.vocabulary) if self.unknown == "uniform" else float(self.unknown)


def open_model(
    place: str,
    *,
    units: str = "auto",
    lower: bool | None = None,
    bos: str | None = "auto",
    eos: bool = False,
    unknown: str | float = "auto",
) -> NGram | TrainedNGram:
    """Return the n-gram model in a file, whatever its format, or in a folder that was trained here."""
    if bos not in ("auto", "<s>", None):
        raise ModelError(f"ngram: bos is {bos!r}; expected '<s>' or None")
    checked_choice("units", units, ("auto", *RULES))
    if is_folder(Path(place)):
        if units != "auto" or lower is not None:
            raise ModelError(f"ngram:{place} says itself how it takes words; leave units and lower away")
        return open_folder(Path(place), bos=bos, eos=checked_bool("eos", eos), unknown=checked_unknown(unknown))
    path = at_version(Path(place))
    kind = _kind(path)
    if units == "auto":
        units = "words" if kind == "sphinx" else "spaces"
    lower = kind == "sphinx" if lower is None else checked_bool("lower", lower)
    return NGram(path, kind, units, lower, bos, checked_bool("eos", eos), checked_unknown(unknown))


def checked_unknown(unknown: object) -> str | float:
    """Return what an unknown word shall get: "auto", "<unk>", "uniform", or a log-probability."""
    is_number = isinstance(unknown, (int, float)) and not isinstance(unknown, bool)
    if is_number and -1e30 < unknown <= 0:  # type: ignore[operator]
        return float(unknown)  # type: ignore[arg-type]
    if unknown in ("auto", "uniform", "<unk>"):
        return str(unknown)
    raise ModelError(f"unknown is {unknown!r}; expected 'uniform', '<unk>' or a log-probability, at most 0")


def _kind(path: Path) -> str:
    """Return which format a file has, by its first bytes."""
    try:
        with path.open("rb") as opened:
            start = opened.read(4096)
    except OSError as error:
        raise ModelError(f"cannot open the n-gram model {path}: {error.strerror}") from error
    if start.startswith(_KENLM):
        return "kenlm"
    if start.startswith(_SPHINX):
        return "sphinx"
    if start.startswith(b"\x1f\x8b") or b"\\data\\" in start:
        return "arpa"
    raise ModelError(f"{path} is no n-gram model that we know: neither ARPA text, nor KenLM, nor CMU Sphinx")
