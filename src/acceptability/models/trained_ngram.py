"""N-gram models that were trained here: a folder with sorted arrays and a vocabulary, asked in bulk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models import arrays, vocabulary
from acceptability.models.files import files_hash
from acceptability.models.vocabulary import END, START, UNKNOWN, Vocabulary, read_vocabulary
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores


@dataclass(frozen=True)
class Words:
    """The words of a query, their numbers, and which of them are scored.

    Args:
        numbers: -1 for an unknown word that has its own log-probability, and ends the history.
    """

    query: Query
    words: tuple[str, ...]
    offsets: tuple[Span, ...]
    numbers: tuple[int, ...]
    scored: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.words)


class Table(Protocol):
    """What tells the log-probabilities of numbered words, as ``arrays.Table`` does."""

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        ...

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word after those before it, for many sentences at once."""
        ...


@dataclass(frozen=True)
class TrainedNGram:
    """An n-gram model in a folder.

    Args:
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
        """The folder's name and the content of its files, how text becomes words, and what frames it."""
        options = {"units": self.units, "lower": self.vocabulary.lower, "bos": self.bos, "eos": self.eos}
        return write(f"{self.kind}:{self.folder.name}@{_hash(self.folder)}", options | {"unknown": self.unknown})

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Its words."""
        return read_vocabulary(self.folder)

    @property
    def units(self) -> str:
        """The name of the rule that cuts text into words."""
        return self.vocabulary.rule

    def is_unknown(self, token: str) -> bool:
        """Tell whether a token, as the model spells it, is not in the vocabulary."""
        return token not in self.vocabulary.index

    @cached_property
    def table(self) -> Table:
        """The n-grams, read on first use."""
        table = arrays.read_table(self.folder / arrays.FILE)
        if table.size != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {arrays.FILE} and {vocabulary.FILE} are not of the same model")
        return table

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query; one without a known word is an error."""
        return [self._words(query, index) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[TokenScores]:
        """Return the log-probability of every word after those before it, of all sentences at once."""
        frame = ([START] if self.bos else [], [END])
        numbers = np.array([number for each in batch for number in (*frame[0], *each.numbers, *frame[1])], np.int64)
        lengths = np.array([each.size + len(frame[0]) + 1 for each in batch])
        begin = np.cumsum(lengths) - lengths
        starts = np.zeros(len(numbers), bool)
        starts[begin] = True
        said = self.table.logprobs(numbers, starts)
        if self._unknown_lp is not None:
            said[numbers < 0] = self._unknown_lp
        return [
            self._told(each, said[start : start + length])
            for each, start, length in zip(batch, (begin + len(frame[0])).tolist(), lengths.tolist(), strict=True)
        ]

    def _told(self, each: Words, said: NDArray[np.float32]) -> TokenScores:
        ends = self.eos and not each.query.target
        places = [*each.scored, *([each.size] if ends else [])]
        tokens = (*(each.words[place] for place in each.scored), *(["</s>"] if ends else []))
        offsets = (*(each.offsets[place] for place in each.scored), *([(len(each.query.text),) * 2] if ends else []))
        return TokenScores(each.query.text, tokens, offsets, said[places])

    def _words(self, query: Query, index: int) -> Words:
        words, spans = self.vocabulary.cut(query.full)
        if not words:
            raise QueryError(index, "there is no word in it")
        numbers = self.vocabulary.numbers(words)
        if not (self.lenient or any(number != UNKNOWN for number in numbers)):
            raise QueryError(index, f"the model {self.folder.name} knows none of its words")
        start, end = (query.start + edge for edge in query.target or (0, len(query.text)))
        scored = tuple(place for place, span in enumerate(spans) if span[0] < end and span[1] > start)
        if not scored:
            raise QueryError(index, "there is no word in its target")
        if self._unknown_lp is not None:
            numbers = [-1 if number == UNKNOWN else number for number in numbers]
        offsets = tuple((max(a - query.start, 0), max(b - query.start, 0)) for a, b in spans)
        return Words(query, tuple(words), offsets, tuple(numbers), scored)

    @cached_property
    def _unknown_lp(self) -> float | None:
        """What an unknown word gets; None where <unk> stands in for it."""
        if self.unknown == "<unk>":
            return None
        return -math.log(len(self.vocabulary)) if self.unknown == "uniform" else float(self.unknown)


def open_folder(folder: Path, *, bos: str | None, eos: bool, unknown: str | float) -> TrainedNGram:
    """Return the n-gram model in a folder; ``FOLDER@HASH``, as a signature writes it, must have that content."""
    folder = folder_at_version(folder)
    for name in (arrays.FILE, vocabulary.FILE):
        if not (folder / name).is_file():
            raise ModelError(f"the folder {folder} has no {name}: it is no n-gram model that was trained here")
    return TrainedNGram(folder, "<s>" if bos else None, eos, "<unk>" if unknown == "auto" else unknown)


def is_folder(place: Path) -> bool:
    """Tell whether a place, or what stands before its ``@HASH``, is a folder."""
    bare, _, _ = str(place).rpartition("@")
    return place.is_dir() or (bool(bare) and not place.exists() and Path(bare).is_dir())


def folder_at_version(folder: Path) -> Path:
    """Return the folder that ``FOLDER@HASH`` names, as a signature writes it; the content must match."""
    bare, at, version = str(folder).rpartition("@")
    if not at or folder.exists() or not Path(bare).is_dir():
        return folder
    if _hash(Path(bare)) != version:
        raise ModelError(f"{bare} has the content hash {_hash(Path(bare))}, not {version}: it is another model")
    return Path(bare)


def _hash(folder: Path) -> str:
    return files_hash([folder / arrays.FILE, folder / vocabulary.FILE])
