"""Baselines that see words without their order: a bag of the suite's own words, and one of word vectors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError
from acceptability.models.files import files_hash
from acceptability.models.word_vectors import WordVectors, read_vectors

_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_AT_ONCE = 4096
_LEAST = 2

Batch = tuple[NDArray[np.int64], NDArray[np.float32]]


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text, in small letters.

    >>> words_of("Any cookies haven't been eaten.")
    ['any', 'cookies', "haven't", 'been', 'eaten', '.']
    """
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class BagOfWords:
    """Which words a sentence has, of those that at least two sentences of the suite have."""

    signature = f"bag-of-words(least={_LEAST})"
    layers = (0,)

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[Batch]:
        """Yield a row of 0 and 1 for each text, some at a time."""
        bags = [set(words_of(text)) for text in texts]
        counts = Counter(word for bag in bags for word in bag)
        place = {word: number for number, word in enumerate(sorted(w for w in counts if counts[w] >= _LEAST))}
        for start in range(0, len(texts), _AT_ONCE):
            some = bags[start : start + _AT_ONCE]
            found = np.zeros((1, len(some), max(1, len(place))), np.float32)
            for row, bag in enumerate(some):
                found[0, row, [place[word] for word in bag if word in place]] = 1
            yield np.arange(start, start + len(some)), found


@dataclass(frozen=True)
class BagOfVectors:
    """The greatest of each number of a sentence's word vectors, as in Warstadt et al. (2019), the NPI paper."""

    path: Path

    layers = (0,)

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise ModelError(f"glove:{self.path}: there is no such file of word vectors")

    @property
    def signature(self) -> str:
        """The file's name and content."""
        return f"glove:{self.path.name}@{files_hash([self.path])}.max"

    @cached_property
    def table(self) -> WordVectors:
        """The vectors, read on first use."""
        return read_vectors(self.path)

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[Batch]:
        """Yield the pooled vectors of texts, some at a time; a text none of whose words is known is an error."""
        vectors = self.table.table.astype(np.float32)
        for start in range(0, len(texts), _AT_ONCE):
            some = texts[start : start + _AT_ONCE]
            rows = [[row for word in _WORD.findall(text) if (row := self._row(word)) is not None] for text in some]
            if lost := [text for text, row in zip(some, rows, strict=True) if not row]:
                raise ModelError(f"{self.path} has a vector for none of the words of {lost[0]!r}")
            yield np.arange(start, start + len(some)), np.stack([vectors[row].max(0) for row in rows])[None]

    def _row(self, word: str) -> int | None:
        """Return where a word stands in the table, as it is written or in small letters."""
        return self.table.index.get(word, self.table.index.get(word.lower()))
