"""The outputs of many queries at once, as flat columns: what models return, the store keeps and reductions sum.

A ``TokenScores`` object for each of a million sentences costs more than the arithmetic of a small model.
``TokenColumns`` holds the same in one array for all tokens of a batch, and makes an object only for those who look at
it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ScoreError
from acceptability.types import ModelOutput, Span, TokenScores

Ints = NDArray[np.int64]

KNOWN, UNKNOWN, UNSAID, SPELLED = range(4)
"""The flags of tokens: known to the model, unknown, of a model that does not say, and unknown with a log-probability of
its spelling. All tokens of a query are unsaid, or none is."""


@dataclass(frozen=True, eq=False)
class TextView(Sequence[str]):
    """Texts that are looked up when they are read.

    Args:
        lookup: Returns the text of a number.
        numbers: The number of each text.
    """

    lookup: Callable[[int], str]
    numbers: Ints

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> TextView: ...
    def __getitem__(self, index: int | slice) -> str | TextView:
        if isinstance(index, slice):
            return TextView(self.lookup, self.numbers[index])
        return self.lookup(int(self.numbers[index]))


@dataclass(frozen=True, eq=False)
class TokenColumns(Sequence[TokenScores]):
    """The token scores of many queries, in columns.

    Args:
        texts: The text of each query.
        counts: The number of tokens of each query.
        tokens: The tokens of all queries.
        spans: The position of each token in its text, one row of (start, end) for each.
        logprobs: Their log-probabilities in nats.
        flags: Whether they are unknown; None if the model does not say it of any.
        spellings: For each token that is ``SPELLED``, the log-probability of its spelling.
    """

    texts: Sequence[str]
    counts: Ints
    tokens: Sequence[str]
    spans: NDArray[np.uint32]
    logprobs: NDArray[np.float32]
    flags: NDArray[np.uint8] | None = None
    spellings: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        sizes = {len(self.tokens), len(self.spans), len(self.logprobs), int(self.counts.sum())}
        if len(sizes) > 1 or len(self.texts) != len(self.counts):
            raise ScoreError("the columns of a batch differ in length")
        wrong = np.flatnonzero(self.counts == 0)
        if not len(wrong) and not np.isfinite(self.logprobs).all():
            wrong = np.searchsorted(self.ends, np.flatnonzero(~np.isfinite(self.logprobs)), side="right")
        if len(wrong):
            # The object says what is wrong with it.
            _ = self[int(wrong[0])]

    def __len__(self) -> int:
        return len(self.counts)

    @cached_property
    def ends(self) -> Ints:
        """Where the tokens of each query end in the columns."""
        return np.cumsum(self.counts, dtype=np.int64)

    @cached_property
    def starts(self) -> Ints:
        """Where they start."""
        return self.ends - self.counts

    @overload
    def __getitem__(self, index: int) -> TokenScores: ...
    @overload
    def __getitem__(self, index: slice) -> TokenColumns: ...
    def __getitem__(self, index: int | slice) -> TokenScores | TokenColumns:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        start, end = int(self.starts[index]), int(self.ends[index])
        spans: tuple[Span, ...] = tuple(map(tuple, self.spans[start:end].tolist()))
        unknown: tuple[int, ...] | None = None
        spellings: tuple[float, ...] = ()
        if self.flags is not None and not (self.flags[start:end] == UNSAID).any():
            flags = self.flags[start:end]
            unknown = tuple(np.flatnonzero(flags).tolist())
            if self.spellings is not None and (flags == SPELLED).any():
                before = int(np.count_nonzero(self.flags[:start] == SPELLED))
                spellings = tuple(self.spellings[before : before + len(unknown)].tolist())
        tokens = tuple(self.tokens[start:end])
        return TokenScores(self.texts[index], tokens, spans, self.logprobs[start:end], unknown, spellings)

    def __iter__(self) -> Iterator[TokenScores]:
        return iter(self._objects)

    # Kept: several reductions may look at the objects of one batch.
    @cached_property
    def _objects(self) -> list[TokenScores]:
        """All token scores as objects."""
        # Converted as a whole, which takes a fraction of the time that slices of arrays take one by one.
        spans = list(zip(*self.spans.T.tolist(), strict=True)) if len(self.spans) else []
        flags = bytes(len(self.logprobs)) if self.flags is None else self.flags.tobytes()
        spellings = iter([] if self.spellings is None else self.spellings.tolist())
        objects = []
        for text, start, end in zip(self.texts, self.starts.tolist(), self.ends.tolist(), strict=True):
            own = flags[start:end]
            unknown: tuple[int, ...] | None = ()
            if self.flags is None or own[:1] == bytes([UNSAID]):
                unknown = None
            # Nearly all sentences consist of known tokens.
            elif any(own):
                unknown = tuple([position for position, flag in enumerate(own) if flag])
            spelled = own.count(SPELLED)
            objects.append(
                TokenScores(
                    text,
                    tuple(self.tokens[start:end]),
                    tuple(spans[start:end]),
                    self.logprobs[start:end],
                    unknown,
                    tuple([next(spellings) for _ in range(spelled)]) if spelled else (),
                )
            )
        return objects

    def take(self, rows: Ints) -> TokenColumns:
        """Return the columns of some queries only."""
        if len(rows) == len(self) and np.array_equal(rows, np.arange(len(self))):
            return self
        positions = expand_ranges(self.starts[rows], self.counts[rows])
        flags = None if self.flags is None else self.flags[positions]
        spellings = self.spellings
        if self.flags is not None and spellings is not None:
            spelled = self.flags == SPELLED
            number = np.cumsum(spelled) - 1
            spellings = spellings[number[positions[spelled[positions]]]]
        return TokenColumns(
            [self.texts[row] for row in rows.tolist()]
            if not isinstance(self.texts, TextView)
            else replace(self.texts, numbers=self.texts.numbers[rows]),
            self.counts[rows],
            [self.tokens[position] for position in positions.tolist()],
            self.spans[positions],
            self.logprobs[positions],
            flags,
            spellings,
        )


def make_columns(outputs: Sequence[TokenScores]) -> TokenColumns:
    """Return token scores as columns.

    >>> output = TokenScores("a b", ("a", "b"), ((0, 1), (2, 3)), np.array([-1, -3], dtype=np.float32), (1,))
    >>> columns = make_columns([output, output])
    >>> columns.counts.tolist(), columns[1].offsets, columns[1].unknown
    ([2, 2], ((0, 1), (2, 3)), (1,))
    """
    if isinstance(outputs, TokenColumns):
        return outputs
    counts = np.array([len(output.tokens) for output in outputs], np.int64)
    total = int(counts.sum())
    spans = chain.from_iterable(chain.from_iterable([output.offsets for output in outputs]))
    flags = spellings = None
    if any(output.unknown is not None for output in outputs):
        flags = np.frombuffer(b"".join(map(_make_flags, outputs)), np.uint8)
        added = chain.from_iterable(output.spelling_logprobs for output in outputs)
        spellings = np.fromiter(added, np.float32)
    return TokenColumns(
        [output.text for output in outputs],
        counts,
        list(chain.from_iterable([output.tokens for output in outputs])),
        np.fromiter(spans, np.uint32, 2 * total).reshape(-1, 2),
        np.concatenate([output.logprobs for output in outputs]).astype(np.float32, copy=False),
        flags,
        spellings,
    )


def _make_flags(output: TokenScores) -> bytes:
    """Return the flag of each token."""
    if output.unknown is None:
        return bytes([UNSAID]) * len(output.tokens)
    flags = bytearray(len(output.tokens))
    for position in output.unknown:
        flags[position] = SPELLED if output.spelling_logprobs else UNKNOWN
    return bytes(flags)


@dataclass(frozen=True, eq=False)
class IndexedOutputs(Sequence[tuple[int, ModelOutput]]):
    """The outputs of a batch, each with the index of its query, or of its sentence.

    Args:
        indices: The indices.
        outputs: The outputs.
        rows: For each index, which of the outputs it has, since equal queries share one; None if each has its own.
    """

    indices: Ints
    outputs: Sequence[ModelOutput]
    rows: Ints | None = None

    def __post_init__(self) -> None:
        if len(self.indices) != len(self.outputs if self.rows is None else self.rows):
            raise ValueError(f"{len(self.outputs)} outputs for {len(self.indices)} queries")

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ModelOutput]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[int, ModelOutput]]: ...
    def __getitem__(self, index: int | slice) -> tuple[int, ModelOutput] | list[tuple[int, ModelOutput]]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        return int(self.indices[index]), self.outputs[index if self.rows is None else int(self.rows[index])]

    def __iter__(self) -> Iterator[tuple[int, ModelOutput]]:
        outputs = list(self.outputs)
        if self.rows is not None:
            outputs = [outputs[row] for row in self.rows.tolist()]
        return zip(self.indices.tolist(), outputs, strict=True)

    @property
    def listed_outputs(self) -> Sequence[ModelOutput]:
        """The output of each index."""
        if self.rows is None:
            return self.outputs
        if isinstance(self.outputs, TokenColumns):
            return self.outputs.take(self.rows)
        return [self.outputs[row] for row in self.rows.tolist()]

    def spread(self, starts: Ints, members: Ints) -> IndexedOutputs:
        """Return the outputs with other indices, of which each of the present ones stands for several.

        Args:
            starts: For each present index, where its members begin; and where the last ones end.
            members: The other indices, grouped by the present ones.
        """
        counts = starts[self.indices + 1] - starts[self.indices]
        if (counts == 1).all():
            return replace(self, indices=members[starts[self.indices]])
        rows = np.arange(len(self.indices)) if self.rows is None else self.rows
        indices = members[expand_ranges(starts[self.indices], counts)]
        return IndexedOutputs(indices, self.outputs, np.repeat(rows, counts))


class EncodedColumns(ABC):
    """The encoded queries of a window in columns, of a model that makes no object for each of them."""

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """The size of each query, see ``EncodedQuery``."""

    @property
    def token_rows(self) -> FlatRows:
        """The token ids of each query, of a model whose batches are packed by prefix or by length."""
        raise TypeError(f"{type(self).__name__} has no token ids")

    @abstractmethod
    def take(self, rows: Sequence[int]) -> Sequence[Any]:
        """Return some of the queries, as a batch."""


@dataclass(frozen=True, eq=False)
class FlatRows(Sequence[Ints]):
    """Rows of integers of different lengths, in one array.

    Args:
        values: The integers of all rows.
        starts: The index in ``values`` at which each row begins.
        lengths: The length of each row.
    """

    values: Ints
    starts: Ints
    lengths: Ints

    def __len__(self) -> int:
        return len(self.lengths)

    @overload
    def __getitem__(self, index: int) -> Ints: ...
    @overload
    def __getitem__(self, index: slice) -> FlatRows: ...
    def __getitem__(self, index: int | slice) -> Ints | FlatRows:
        if isinstance(index, slice):
            return FlatRows(self.values, self.starts[index], self.lengths[index])
        return self.values[self.starts[index] : self.starts[index] + self.lengths[index]]

    def take(self, rows: Ints) -> FlatRows:
        """Return some of the rows, in an array of their own."""
        lengths = self.lengths[rows]
        values = self.values[expand_ranges(self.starts[rows], lengths)]
        return FlatRows(values, np.cumsum(lengths) - lengths, lengths)


def flatten_rows(rows: Sequence[Sequence[int]] | FlatRows) -> FlatRows:
    """Return rows of integers in one array; rows that are in one already stay as they are.

    >>> flatten_rows([[5, 6], [7]]).values.tolist()
    [5, 6, 7]
    """
    if isinstance(rows, FlatRows):
        return rows
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    values = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return FlatRows(values, np.cumsum(lengths) - lengths, lengths)


@dataclass(frozen=True, eq=False)
class TextColumns(EncodedColumns, Sequence["TextColumns"]):
    """Texts of which all tokens are scored, in columns. One of them by itself is such an object too.

    Args:
        texts: The texts.
        tokens: The token ids of each text, with the tokens that frame it.
        scored: The positions of the tokens that are scored.
        spans: The character span of each scored token.
        is_unknown: Whether it stands for something outside the vocabulary.
        mask_ends: Of a model that masks tokens, the last position that is masked with each scored one; else empty.
    """

    texts: Sequence[str]
    tokens: FlatRows
    scored: FlatRows
    spans: NDArray[np.uint32]
    is_unknown: NDArray[np.bool_]
    mask_ends: Ints = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: Any) -> TextColumns:
        rows = range(len(self))[index]
        return self.take(rows if isinstance(rows, range) else [rows])

    @property
    def sizes(self) -> list[int]:
        """The number of tokens of each text before the last that is scored, or those of all its masked copies."""
        lengths, counts = self.tokens.lengths, self.scored.lengths
        sizes = lengths * counts if len(self.mask_ends) else self.scored.values[self.scored.starts + counts - 1]
        listed: list[int] = sizes.tolist()
        return listed

    @property
    def size(self) -> int:
        """The size of all texts together."""
        return sum(self.sizes)

    @property
    def token_rows(self) -> FlatRows:
        """The token ids of each text."""
        return self.tokens

    @property
    def ids(self) -> list[int]:
        """The token ids of all texts."""
        ids: list[int] = self.tokens.take(np.arange(len(self))).values.tolist()
        return ids

    @property
    def length(self) -> int:
        """The number of tokens of all texts."""
        return int(self.tokens.lengths.sum())

    def take(self, rows: Sequence[int]) -> TextColumns:
        """Return some of the texts."""
        indices = np.array(rows, np.int64)
        counts = self.scored.lengths[indices]
        positions = expand_ranges(self.scored.starts[indices], counts)
        return TextColumns(
            [self.texts[row] for row in rows],
            self.tokens.take(indices),
            FlatRows(self.scored.values[positions], np.cumsum(counts) - counts, counts),
            self.spans[positions],
            self.is_unknown[positions],
            self.mask_ends[positions] if len(self.mask_ends) else self.mask_ends,
        )

    def to_token_columns(self, logprobs: NDArray[np.float32], names: NDArray[np.object_]) -> TokenColumns:
        """Return the scored tokens with their log-probabilities.

        Args:
            names: The tokens in the order of their ids.
        """
        ids = self.tokens.values[np.repeat(self.tokens.starts, self.scored.lengths) + self.scored.values]
        flags = np.where(self.is_unknown, UNKNOWN, KNOWN).astype(np.uint8)
        return TokenColumns(self.texts, self.scored.lengths, names[ids].tolist(), self.spans, logprobs, flags)


def join_text_columns(batch: Sequence[TextColumns]) -> TextColumns:
    """Return texts as one object, of which each may be one by itself."""
    if isinstance(batch, TextColumns):
        return batch
    return TextColumns(
        [text for part in batch for text in part.texts],
        flatten_rows([row.tolist() for part in batch for row in part.tokens]),
        flatten_rows([row.tolist() for part in batch for row in part.scored]),
        np.concatenate([part.spans for part in batch]),
        np.concatenate([part.is_unknown for part in batch]),
        np.concatenate([part.mask_ends for part in batch]),
    )


def index_outputs(batch: Sequence[tuple[int, ModelOutput]]) -> IndexedOutputs:
    """Return a batch of (index, output) as an object with both in columns; a batch that is one stays as it is."""
    if isinstance(batch, IndexedOutputs):
        return batch
    return IndexedOutputs(np.array([index for index, _ in batch], np.int64), [output for _, output in batch])


def expand_ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers of several ranges, one after the other.

    >>> expand_ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(counts, dtype=np.int64)
    numbers: Ints = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return numbers
