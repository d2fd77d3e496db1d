"""N-gram models: ARPA files, KenLM binaries and CMU Sphinx binaries, told apart by their first bytes.

Words are what spaces separate (``units='spaces'``), or runs of letters, digits and inner
apostrophes or hyphens without punctuation (``units='words'``), or such runs and each
punctuation mark (``units='punctuation'``). A Sphinx model takes lower-case words only.

A word that the model does not know gets the model's own ``<unk>``; where it has none, as
Sphinx models, ``unknown='uniform'`` gives it 1 / vocabulary, and a number gives it that
log-probability. The history restarts after it. Sentences begin after ``<s>`` where the
model has one; ``eos=True`` scores ``</s>`` too.
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
from acceptability.models.files import file_hash
from acceptability.models.uniform import word_spans
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

_KENLM = b"mmap lm http://kheafield.com/code"
_SPHINX = b"Trie Language Model"
_PATTERNS = {
    "spaces": r"\S+",
    "words": r"[^\W_]+(?:['’-][^\W_]+)*",
    "punctuation": r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_",
}


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
        self._model: Any = NGramModel(Config(), self._logs, str(path))
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
        self._model: Any = kenlm.Model(str(path))
        self.order = int(self._model.order)

    @property
    def vocabulary(self) -> int:
        """KenLM does not tell; it is not needed, since every model has <unk>."""
        raise ModelError("KenLM does not tell the size of its vocabulary; leave unknown='uniform' away")

    def knows(self, word: str) -> bool:
        """Tell whether a word is in the vocabulary."""
        return word in self._model

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
    """An n-gram model in a file."""

    path: Path
    kind: str
    units: str
    lower: bool
    eos: bool
    unknown: str | float

    @property
    def signature(self) -> str:
        """The file's name and content, and how text becomes words."""
        options = {"units": self.units, "lower": self.lower, "eos": self.eos, "unknown": self.unknown}
        return write(f"ngram:{self.path.name}@{file_hash(self.path)}", options)

    @cached_property
    def table(self) -> Table:
        """The model itself, read on first use."""
        readers: dict[str, Callable[[Path], Table]] = {"arpa": Arpa, "sphinx": Sphinx, "kenlm": KenLM}
        return readers[self.kind](self.path)

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query; one without a known word is an error."""
        return [self._words(query, index) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[TokenScores]:
        """Return the log-probability of every word after those before it."""
        return [self._said(each) for each in batch]

    def _words(self, query: Query, index: int) -> Words:
        whole = Query(query.full)
        spans = word_spans(whole, _PATTERNS[self.units], index)
        words = tuple(self._spelled(query.full[start:end]) for start, end in spans)
        if not any(map(self.table.knows, words)):
            raise QueryError(index, f"the model {self.path.name} knows none of its words")
        start, end = query.target or (0, len(query.text))
        scored = frozenset(
            place for place, span in enumerate(spans) if span[0] < query.start + end and span[1] > query.start + start
        )
        if not scored:
            raise QueryError(index, "there is no word in its target")
        offsets = tuple((max(a - query.start, 0), max(b - query.start, 0)) for a, b in spans)
        return Words(query, words, offsets, scored)

    def _spelled(self, word: str) -> str:
        word = word.replace("’", "'")
        return word.lower() if self.lower else word

    def _said(self, each: Words) -> TokenScores:
        history = ["<s>"] if self.table.knows("<s>") else []
        tokens, offsets, logprobs = [], [], []
        for place, word in enumerate(each.words):
            known = word if self.table.knows(word) else self.table.unknown
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

    @cached_property
    def _unknown_lp(self) -> float:
        if isinstance(self.unknown, str):
            return -math.log(self.table.vocabulary)
        return float(self.unknown)


def open_model(
    place: str,
    *,
    units: str = "",
    lower: bool | None = None,
    eos: bool = False,
    unknown: str | float = "uniform",
) -> NGram:
    """Return the n-gram model in a file, whatever its format."""
    path = Path(place)
    kind = _kind(path)
    units = units or ("words" if kind == "sphinx" else "spaces")
    lower = kind == "sphinx" if lower is None else lower
    if units not in _PATTERNS:
        raise ModelError(f"ngram: units is {units!r}; expected one of {', '.join(_PATTERNS)}")
    if unknown != "uniform" and (isinstance(unknown, (str, bool)) or not -math.inf < unknown <= 0):
        raise ModelError(f"ngram: unknown is {unknown!r}; expected 'uniform' or a log-probability, at most 0")
    return NGram(path, kind, units, lower, eos, unknown)


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
