"""The words of many texts in columns: split, spelled as a vocabulary has them, and numbered, all texts at once.

A call and an object for each word cost far more than looking the word up, and a suite repeats its words: what spaces
separate is split once for each distinct piece.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import overload

import numpy as np
from numpy.typing import NDArray

from acceptability.outputs import EncodedColumns, Ints, expand_ranges
from acceptability.text.words import Vocabulary
from acceptability.types import Query

# The last character that is a space, to ``str.split`` and to regular expressions alike, is the ideographic one.
_LAST_SPACE = 0x3000
_SPACES = np.array([chr(code).isspace() for code in range(_LAST_SPACE + 2)])


@dataclass(frozen=True, eq=False)
class SplitTexts:
    """The words of texts, one after the other.

    Args:
        counts: The number of words of each text.
        words: The words as the vocabulary spells them.
        spans: The characters (start, end) of each word in its text.
        word_ids: The numbers of the words in the vocabulary.
    """

    counts: Ints
    words: NDArray[np.object_]
    spans: Ints
    word_ids: Ints


def split_texts(texts: Sequence[str], vocabulary: Vocabulary) -> SplitTexts:
    """Return the words of texts, as ``vocabulary.tokenize`` splits and spells them.

    >>> from acceptability.text.words import SPECIAL_WORDS
    >>> vocabulary = Vocabulary((*SPECIAL_WORDS, "cats", "."), "split", lower=True)
    >>> split = split_texts(["Cats purr.", "Cats."], vocabulary)
    >>> split.counts.tolist(), split.words.tolist(), split.word_ids.tolist()
    ([3, 2], ['cats', 'purr', '.', 'cats', '.'], [3, 0, 4, 3, 4])
    >>> split.spans.tolist()
    [[0, 4], [5, 9], [9, 10], [0, 4], [4, 5]]
    """
    # No rule looks beyond a space, so that each piece between spaces is split by itself.
    joined = "\n".join(texts)
    pieces = joined.split()
    numbers = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    piece_ids = np.fromiter(map(numbers.__getitem__, pieces), np.int64, len(pieces))
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    text_starts = np.cumsum(lengths + 1) - lengths - 1
    piece_starts = _find_piece_starts(joined)
    owners = np.searchsorted(text_starts, piece_starts, side="right") - 1
    # The words of the distinct pieces.
    tokenized = [vocabulary.tokenize(piece) for piece in numbers]
    counts = np.array([len(words) for words, _ in tokenized], np.int64)
    distinct_words = np.array([word for words, _ in tokenized for word in words], object)
    distinct_ids = np.array(vocabulary.to_ids(distinct_words.tolist()), np.int64)
    distinct_spans = np.array([span for _, spans in tokenized for span in spans], np.int64).reshape(-1, 2)
    # And those of all pieces, in their order.
    piece_counts = counts[piece_ids]
    rows = expand_ranges((np.cumsum(counts) - counts)[piece_ids], piece_counts)
    spans = distinct_spans[rows] + np.repeat(piece_starts - text_starts[owners], piece_counts)[:, None]
    word_counts = np.bincount(np.repeat(owners, piece_counts), minlength=len(texts))
    return SplitTexts(word_counts, distinct_words[rows], spans, distinct_ids[rows])


def _find_piece_starts(text: str) -> Ints:
    """Return where the pieces of a text between spaces start."""
    # Half of a surrogate pair is no character, and no space either.
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    is_space = _SPACES[np.minimum(codes, _LAST_SPACE + 1)]
    return np.flatnonzero(~is_space & np.append(True, is_space[:-1])[: len(is_space)])


@dataclass(frozen=True, eq=False)
class WordColumns(EncodedColumns, Sequence["WordColumns"]):
    """The words of queries, one after the other.

    Args:
        counts: The number of words of each query.
        words: The words as the vocabulary spells them.
        spans: The character span of each word in the query's text.
        word_ids: -1 for an unknown word that gets a fixed log-probability and ends the history.
        is_scored: Whether each word is scored.
        is_unknown: Whether it is outside the vocabulary.
    """

    queries: Sequence[Query]
    counts: Ints
    words: NDArray[np.object_]
    spans: Ints
    word_ids: Ints
    is_scored: NDArray[np.bool_]
    is_unknown: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def sizes(self) -> list[int]:
        """The number of words of each query."""
        sizes: list[int] = self.counts.tolist()
        return sizes

    @property
    def size(self) -> int:
        """The number of words of all queries."""
        return len(self.words)

    @overload
    def __getitem__(self, index: int) -> WordColumns: ...
    @overload
    def __getitem__(self, index: slice) -> WordColumns: ...
    def __getitem__(self, index: int | slice) -> WordColumns:
        rows = range(len(self))[index]
        return self.take(rows if isinstance(rows, range) else [rows])

    def take(self, rows: Sequence[int]) -> WordColumns:
        """Return some of the queries."""
        numbers = np.array(rows, np.int64)
        positions = expand_ranges(self._starts[numbers], self.counts[numbers])
        return WordColumns(
            [self.queries[row] for row in rows],
            self.counts[numbers],
            self.words[positions],
            self.spans[positions],
            self.word_ids[positions],
            self.is_scored[positions],
            self.is_unknown[positions],
        )

    @cached_property
    def _starts(self) -> Ints:
        return np.cumsum(self.counts) - self.counts


def join_word_columns(parts: Sequence[WordColumns]) -> WordColumns:
    """Return the queries of several parts in one."""
    names = ("counts", "words", "spans", "word_ids", "is_scored", "is_unknown")
    columns = (np.concatenate([getattr(part, name) for part in parts]) for name in names)
    return WordColumns([query for part in parts for query in part.queries], *columns)
