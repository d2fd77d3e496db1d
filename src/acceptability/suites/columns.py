"""Suites as columns: arrays that hold all sentences and contrasts, of which each is built when it is looked at.

A ``SuiteTable`` has the columns of one suite, in memory or mapped from a file (``suites.suite_cache``). Texts stand one
after the other as UTF-8, each followed by a NUL. Tags are rows of their own, since the two sentences of a pair and
their contrast usually share them: for each row the codes of its names and of its values, in the order of the reader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from acceptability.types import (
    Contrast,
    ContrastColumns,
    Floats,
    Rows,
    Sentence,
    SentenceColumns,
    Span,
    Suite,
    TagColumn,
    Tags,
)

Column: TypeAlias = NDArray[Any]
Row = TypeVar("Row")

# The objects of a suite of up to this many rows are kept once all have been looked at, since most code looks at them
# several times. Those of a larger suite, which would need gigabytes, are built again each time.
_MAX_KEPT = 250_000
# So many looks at single rows of a suite are followed by looks at the rest, which is built faster at once.
_MANY_LOOKS = 1_000
_BLOCK = 4_096

# Strings may come with lone surrogates (in the tags of contrasts, which are not validated).
_ERRORS = "surrogatepass"


class TextColumn(Sequence[str]):
    """Strings in one array of bytes, decoded when they are looked at.

    >>> column = TextColumn.build(["Cats", "sleep"])
    >>> column[1], list(column)
    ('sleep', ['Cats', 'sleep'])
    """

    def __init__(self, content: NDArray[np.uint8], ends: Column) -> None:
        """Keep the bytes, and the boundaries: where each string begins, and at last where the last one ends."""
        self.content = content
        self.ends = ends
        # Views of memory give plain bytes and integers, several times as fast as arrays do.
        self._bytes = content.data
        self._bounds = ends.data

    @classmethod
    def build(cls, texts: Iterable[str]) -> TextColumn:
        """Return the column of some strings."""
        content, ends = bytearray(), [0]
        for text in texts:
            content += text.encode("utf-8", _ERRORS)
            content.append(0)
            ends.append(len(content))
        return cls(np.frombuffer(content, dtype=np.uint8), shrink_integers(ends))

    def __len__(self) -> int:
        return len(self.ends) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        if isinstance(index, slice):
            return tuple(self.take(np.arange(len(self))[index]))
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(f"there are {len(self)} strings")
        return str(self._bytes[self._bounds[index] : self._bounds[index + 1] - 1], "utf-8", _ERRORS)

    def __iter__(self) -> Iterator[str]:
        for start in range(0, len(self), _BLOCK):
            yield from self._decode(start, min(start + _BLOCK, len(self)))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (tuple, TextColumn)):
            return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"TextColumn({len(self)} texts)"

    def __reduce__(self) -> tuple[object, ...]:
        return TextColumn, (self.content, self.ends)

    def slice(self, start: int, stop: int) -> TextColumn:
        """Return a part of the column, without a copy of its bytes."""
        return TextColumn(self.content, self.ends[start : stop + 1])

    def take(self, rows: NDArray[np.integer[Any]]) -> list[str]:
        """Return some of the strings, given by their positions."""
        if not len(rows):
            return []
        start, stop = int(rows.min()), int(rows.max()) + 1
        # Texts that stand close together are faster decoded all at once, even if not all of them are asked for.
        if stop - start > 4 * len(rows):
            return [self[row] for row in rows.tolist()]
        texts = self._decode(start, stop)
        if stop - start == len(rows) and bool((np.diff(rows) == 1).all()):
            return texts
        return [texts[row] for row in (rows.astype(np.int64) - start).tolist()]

    def find_below(self, path: str) -> NDArray[np.bool_]:
        """Tell for each string whether it is a path, or begins with it and a slash."""
        prefix = path.encode("utf-8", _ERRORS)
        ends = self.ends.astype(np.int64)
        starts, sizes = ends[:-1], np.diff(ends) - 1
        rows = np.flatnonzero(sizes >= len(prefix))
        # Byte by byte, since only few strings are left after the first ones.
        for position, byte in enumerate(prefix):
            rows = rows[self.content[starts[rows] + position] == byte]
        # After the path comes the NUL at the end of the string, or a slash. (A path itself may contain a NUL.)
        is_whole = sizes[rows] == len(prefix)
        is_below = np.zeros(len(self), dtype=bool)
        is_below[rows[is_whole | (self.content[starts[rows] + len(prefix)] == ord("/"))]] = True
        return is_below

    def _decode(self, start: int, stop: int) -> list[str]:
        text = str(self._bytes[self._bounds[start] : self._bounds[stop]], "utf-8", _ERRORS)
        texts = text.split("\0")
        texts.pop()
        # Otherwise a string contains a NUL itself.
        return texts if len(texts) == stop - start else [self[row] for row in range(start, stop)]


def shrink_integers(numbers: Iterable[int] | Column) -> Column:
    """Return integers as an array of the smallest type that holds them all.

    >>> shrink_integers([0, 300]).dtype
    dtype('int16')
    """
    array = np.asarray(numbers if isinstance(numbers, np.ndarray) else list(numbers), dtype=np.int64)
    low, high = (int(array.min()), int(array.max())) if len(array) else (0, 0)
    dtypes = (np.int8, np.int16, np.int32, np.int64)
    return array.astype(next(one for one in dtypes if np.iinfo(one).min <= low and high <= np.iinfo(one).max))


# Frozen classes check what they are given, and set each field through a function. What is in a table was checked before
# it was written, and setting the slots themselves takes a fifth of the time.
_set_id, _set_text, _set_label, _set_rating, _set_regions, _set_tags = (
    vars(Sentence)[name].__set__ for name in ("id", "text", "label", "rating", "regions", "tags")
)
_set_better, _set_worse, _set_contrast_tags = (vars(Contrast)[name].__set__ for name in ("better", "worse", "tags"))


@dataclass(frozen=True, eq=False)
class SuiteTable:
    """The columns of a valid suite.

    Args:
        arrays: The columns by their names, see ``build_table``.
        hash: The suite's hash.
        derived_tags: The tags that are not part of it.
    """

    arrays: Mapping[str, Column]
    hash: str
    derived_tags: tuple[str, ...]

    def __getstate__(self) -> dict[str, object]:
        # Without what was computed from them, which has views of memory that cannot be pickled.
        return {"arrays": dict(self.arrays), "hash": self.hash, "derived_tags": self.derived_tags}

    def open_suite(self, name: str, unit: str) -> Suite:
        """Return the suite, whose rows are views of these columns."""
        contrasts: Sequence[Contrast] = ContrastView(self) if len(self.arrays["better"]) else ()
        return Suite(name, SentenceView(self), contrasts, unit=unit, derived_tags=self.derived_tags)

    @cached_property
    def ids(self) -> TextColumn:
        """The ids of the sentences."""
        return self._text_column("id")

    @cached_property
    def texts(self) -> TextColumn:
        """The texts of the sentences."""
        return self._text_column("text")

    @cached_property
    def tag_names(self) -> list[str]:
        """The names of tags, by their codes."""
        return list(self._text_column("tag_name"))

    @cached_property
    def region_names(self) -> list[str]:
        """The names of regions, by their codes."""
        return list(self._text_column("region_name"))

    @cached_property
    def _values(self) -> TextColumn:
        return self._text_column("tag_value")

    @cached_property
    def _known(self) -> dict[str, list[str]]:
        """The ids and the values of tags, by ``id`` and ``value``, once most of them have been decoded."""
        return {}

    def _find_known(self, kind: str, column: TextColumn, count: int) -> list[str] | None:
        """Return all ids or values as a list if that many looks at them are worth it, so that rows share the strings.

        A part of a suite decodes only its own.
        """
        if kind not in self._known and len(column) <= min(4 * count, _MAX_KEPT):
            self._known[kind] = list(column)
        return self._known.get(kind)

    @cached_property
    def _tags_by_row(self) -> dict[int, Tags]:
        """The tags that were built so far; nothing is added for a table that is too large."""
        return {}

    @cached_property
    def _views(self) -> dict[str, memoryview]:
        return {name: array.data for name, array in self.arrays.items()}

    def _text_column(self, name: str) -> TextColumn:
        return TextColumn(self.arrays[f"{name}_bytes"], self.arrays[f"{name}_ends"])

    def take_ids(self, rows: Column) -> list[str]:
        """Return the ids of some sentences."""
        known = self._find_known("id", self.ids, len(rows))
        return self.ids.take(rows) if known is None else [known[row] for row in rows.tolist()]

    def build_sentence(self, row: int) -> Sentence:
        """Return one sentence."""
        views = self._views
        ids = self._known.get("id", self.ids)
        label, rating = views["labels"][row], views["ratings"][row] if len(views["ratings"]) else np.nan
        return _make_sentence(
            ids[row],
            self.texts[row],
            label if label >= 0 else None,
            # Only nan differs from itself.
            rating if rating == rating else None,
            self._build_regions(row),
            self._build_tags(views["sentence_tags"][row]),
        )

    def build_sentences(self, rows: Rows) -> list[Sentence]:
        """Return some sentences, which takes a third of the time of one after the other."""
        labels = [label if label >= 0 else None for label in self.arrays["labels"][rows].tolist()]
        ratings = self.find_ratings(rows).tolist()
        tags = self._build_many_tags(self.arrays["sentence_tags"][rows])
        regions: Iterable[dict[str, Span]]
        if len(self.arrays["region_codes"]):
            regions = [self._build_regions(row) for row in rows.tolist()]
        else:
            regions = ({} for _ in range(len(rows)))
        return [
            _make_sentence(name, text, label, rating if rating == rating else None, spans, row_tags)
            for name, text, label, rating, spans, row_tags in zip(
                self.take_ids(rows), self.texts.take(rows), labels, ratings, regions, tags, strict=True
            )
        ]

    def build_contrast(self, row: int) -> Contrast:
        """Return one contrast."""
        views = self._views
        ids = self._known.get("id", self.ids)
        better, worse = ids[views["better"][row]], ids[views["worse"][row]]
        return _make_contrast(better, worse, self._build_tags(views["contrast_tags"][row]))

    def build_contrasts(self, rows: Rows) -> list[Contrast]:
        """Return some contrasts."""
        better, worse = (self.take_ids(self.arrays[side][rows]) for side in ("better", "worse"))
        tags = self._build_many_tags(self.arrays["contrast_tags"][rows])
        return [_make_contrast(*fields) for fields in zip(better, worse, tags, strict=True)]

    def find_ratings(self, rows: Rows) -> Floats:
        """Return the ratings of some sentences; nan for none."""
        ratings = self.arrays["ratings"]
        return ratings[rows] if len(ratings) else np.full(len(rows), np.nan)

    def find_tag_column(self, tag: str, tag_rows: Column) -> TagColumn:
        """Return the values of a tag of sentences or contrasts, given by their rows of tags."""
        codes = self._find_values(tag)[tag_rows]
        present = np.flatnonzero(codes >= 0)
        values, first_rows, compact = np.unique(codes[present], return_index=True, return_inverse=True)
        order = np.argsort(first_rows, kind="stable")
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        renumbered = np.full(len(codes), -1, dtype=np.int32)
        renumbered[present] = rank[compact.reshape(-1)]
        return TagColumn(renumbered, tuple(self._values.take(values[order])))

    def _find_values(self, tag: str) -> Rows:
        """Return the code of the value of a tag in each row of tags; -1 for none."""
        sizes = np.asarray(np.diff(self.arrays["tag_ends"].astype(np.int64)), dtype=np.int64)
        values = np.full(len(sizes), -1, dtype=np.int64)
        if tag in self.tag_names:
            entries = self.arrays["tag_names"] == self.tag_names.index(tag)
            values[np.repeat(np.arange(len(sizes)), sizes)[entries]] = self.arrays["tag_values"][entries]
        return values

    def find_lacking(self, tag: str, tag_rows: Column) -> list[int]:
        """Return the positions of the sentences or contrasts, given by their rows of tags, that lack a tag."""
        positions: list[int] = np.flatnonzero(self._find_values(tag)[tag_rows] < 0).tolist()
        return positions

    def find_tag_names(self, tag_rows: Column) -> frozenset[str]:
        """Return the names of all tags of some sentences or contrasts, given by their rows of tags."""
        ends = self.arrays["tag_ends"].astype(np.int64)
        has_row = np.zeros(len(ends) - 1, dtype=bool)
        has_row[tag_rows] = True
        codes = np.unique(self.arrays["tag_names"][np.repeat(has_row, np.diff(ends))])
        return frozenset(self.tag_names[code] for code in codes.tolist())

    def _build_regions(self, row: int) -> dict[str, Span]:
        views = self._views
        codes = views["region_codes"]
        if not len(codes):
            return {}
        names, starts, stops = self.region_names, views["region_starts"], views["region_stops"]
        entries = range(views["region_ends"][row], views["region_ends"][row + 1])
        return {names[codes[entry]]: (starts[entry], stops[entry]) for entry in entries}

    def _build_tags(self, tag_row: int) -> Tags:
        known = self._tags_by_row.get(tag_row)
        if known is not None:
            return known
        views = self._views
        names, values = self.tag_names, self._known.get("value", self._values)
        name_codes, value_codes = views["tag_names"], views["tag_values"]
        entries = range(views["tag_ends"][tag_row], views["tag_ends"][tag_row + 1])
        tags = {names[name_codes[entry]]: values[value_codes[entry]] for entry in entries}
        if len(views["tag_ends"]) <= _MAX_KEPT:
            self._tags_by_row[tag_row] = tags
        return tags

    def _build_many_tags(self, tag_rows: Column) -> list[Tags]:
        """Return the tags of several rows; rows that share their tags get the same dictionary."""
        kept = self._tags_by_row if len(self.arrays["tag_ends"]) <= _MAX_KEPT else {}
        rows = tag_rows.tolist()
        needed = np.array(sorted(set(rows) - kept.keys()), dtype=np.int64)
        ends = self.arrays["tag_ends"].astype(np.int64)
        sizes = ends[needed + 1] - ends[needed]
        # The entries of the rows, one row after the other.
        entries = np.repeat(ends[needed] - np.cumsum(sizes) + sizes, sizes) + np.arange(int(sizes.sum()))
        names = [self.tag_names[code] for code in self.arrays["tag_names"][entries].tolist()]
        values = self._take_values(self.arrays["tag_values"][entries])
        bounds = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        for row, (start, stop) in zip(needed.tolist(), pairwise(bounds), strict=True):
            kept[row] = dict(zip(names[start:stop], values[start:stop], strict=True))
        return [kept[row] for row in rows]

    def _take_values(self, codes: Column) -> list[str]:
        known = self._find_known("value", self._values, len(codes))
        if known is not None:
            return [known[code] for code in codes.tolist()]
        # Each distinct value is decoded once, so that its rows share the string.
        distinct, inverse = np.unique(codes, return_inverse=True)
        texts = self._values.take(distinct)
        return [texts[index] for index in inverse.reshape(-1).tolist()]


def _make_sentence(
    name: str, text: str, label: int | None, rating: float | None, regions: Mapping[str, Span], tags: Tags
) -> Sentence:
    sentence = object.__new__(Sentence)
    _set_id(sentence, name)
    _set_text(sentence, text)
    _set_label(sentence, label)
    _set_rating(sentence, rating)
    _set_regions(sentence, regions)
    _set_tags(sentence, tags)
    return sentence


def _make_contrast(better: str, worse: str, tags: Tags) -> Contrast:
    contrast = object.__new__(Contrast)
    _set_better(contrast, better)
    _set_worse(contrast, worse)
    _set_contrast_tags(contrast, tags)
    return contrast


class _View(Sequence[Row]):
    """Rows of a table, built when they are looked at; equal to the tuple of them."""

    def __init__(self, table: SuiteTable, rows: Rows | None = None) -> None:
        """Keep a table and the positions of the rows; None means all."""
        self.table = table
        self.rows: Rows = np.arange(self._count()) if rows is None else rows
        self.is_whole = rows is None
        self._kept: tuple[Row, ...] | None = None
        self._looks = 0
        self._tag_columns: dict[str, TagColumn] = {}

    def _count(self) -> int:
        raise NotImplementedError

    def _build(self, row: int) -> Row:
        raise NotImplementedError

    def _build_many(self, rows: Rows) -> list[Row]:
        raise NotImplementedError

    def _find_tag_rows(self) -> Column:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            part: Sequence[Row] = self.select(np.arange(len(self))[index])
            return part
        if self._kept is None:
            self._looks += 1
            if self._looks < _MANY_LOOKS or len(self) > _MAX_KEPT:
                return self._build(int(self.rows[index]))
        return self._keep()[index]

    def __iter__(self) -> Iterator[Row]:
        if len(self) <= _MAX_KEPT:
            return iter(self._keep())
        blocks = (self._build_many(self.rows[start : start + _BLOCK]) for start in range(0, len(self), _BLOCK))
        return (row for block in blocks for row in block)

    def _keep(self) -> tuple[Row, ...]:
        if self._kept is None:
            self._kept = tuple(self._build_many(self.rows))
        return self._kept

    def __eq__(self, other: object) -> bool:
        if isinstance(other, type(self)) and other.table is self.table and np.array_equal(other.rows, self.rows):
            return True
        if isinstance(other, (tuple, type(self))):
            return len(self) == len(other) and all(ours == theirs for ours, theirs in zip(self, other, strict=True))
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __add__(self, other: tuple[Row, ...]) -> tuple[Row, ...]:
        return (*self, *other)

    def __radd__(self, other: tuple[Row, ...]) -> tuple[Row, ...]:
        return (*other, *self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)} rows)"

    def __reduce__(self) -> tuple[object, ...]:
        # A part is pickled as a tuple, since the table may be many times as large.
        return (type(self), (self.table,)) if self.is_whole else (tuple, (list(self),))

    def select(self, rows: Rows) -> Any:
        """Return some of the rows, given by their positions, each at most once."""
        return type(self)(self.table, self.rows[rows])

    @property
    def tag_names(self) -> frozenset[str]:
        """The names of all tags."""
        return self.table.find_tag_names(self._find_tag_rows())

    def tag_column(self, tag: str) -> TagColumn:
        """Return the values of a tag."""
        if tag not in self._tag_columns:
            self._tag_columns[tag] = self.table.find_tag_column(tag, self._find_tag_rows())
        return self._tag_columns[tag]

    def find_lacking(self, tag: str) -> list[int]:
        """Return the positions of the rows that lack a tag."""
        return self.table.find_lacking(tag, self._find_tag_rows())


class SentenceView(_View[Sentence], SentenceColumns):
    """Sentences of a table."""

    def _count(self) -> int:
        return len(self.table.ids)

    def _build(self, row: int) -> Sentence:
        return self.table.build_sentence(row)

    def _build_many(self, rows: Rows) -> list[Sentence]:
        return self.table.build_sentences(rows)

    def _find_tag_rows(self) -> Column:
        return np.asarray(self.table.arrays["sentence_tags"][self.rows])

    @cached_property
    def by_id(self) -> Mapping[str, Sentence]:
        """The sentences, by their ids."""
        if len(self) <= _MAX_KEPT:
            return dict(zip(self.table.take_ids(self.rows), self, strict=True))
        return _SentencesById(self)

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all sentences."""
        return self._take(self.table.ids)

    @property
    def texts(self) -> Sequence[str]:
        """The texts of all sentences."""
        return self._take(self.table.texts)

    @property
    def labels(self) -> NDArray[np.int8]:
        """The labels of all sentences; -1 for none."""
        return np.asarray(self.table.arrays["labels"][self.rows], dtype=np.int8)

    @property
    def ratings(self) -> Floats:
        """The ratings of all sentences; nan for none."""
        return self.table.find_ratings(self.rows)

    def find_below(self, path: str) -> NDArray[np.bool_]:
        """Tell for each sentence whether its id is a path, or begins with it and a slash."""
        return self.table.ids.find_below(path)[self.rows]

    def find_hash(self, contrasts: Sequence[Contrast], derived_tags: Iterable[str]) -> str | None:
        """Return the hash of the suite of these sentences and contrasts, if it was kept with the columns."""
        if isinstance(contrasts, ContrastView):
            is_whole = contrasts.table is self.table and contrasts.is_whole
        else:
            is_whole = len(contrasts) == len(self.table.arrays["better"]) == 0
        is_same = self.is_whole and is_whole and set(derived_tags) == set(self.table.derived_tags)
        return self.table.hash if is_same else None

    def _take(self, column: TextColumn) -> Sequence[str]:
        if self.is_whole:
            return column
        if len(self) and int(self.rows[-1]) - int(self.rows[0]) + 1 == len(self):
            return column.slice(int(self.rows[0]), int(self.rows[-1]) + 1)
        return tuple(column.take(self.rows))


class ContrastView(_View[Contrast], ContrastColumns):
    """Contrasts of a table."""

    def _count(self) -> int:
        return len(self.table.arrays["better"])

    def _build(self, row: int) -> Contrast:
        return self.table.build_contrast(row)

    def _build_many(self, rows: Rows) -> list[Contrast]:
        return self.table.build_contrasts(rows)

    def _find_tag_rows(self) -> Column:
        return np.asarray(self.table.arrays["contrast_tags"][self.rows])

    def find_pairs(self, sentences: Sequence[Sentence]) -> Rows | None:
        """Return the positions of the better and worse sentences; None if these are not columns that have them all."""
        if not isinstance(sentences, SentenceView) or sentences.table is not self.table:
            return None
        arrays = self.table.arrays
        pairs = np.stack([arrays["better"][self.rows], arrays["worse"][self.rows]], axis=1).astype(np.int64)
        if sentences.is_whole:
            return pairs
        position_of = np.full(len(self.table.ids), -1, dtype=np.int64)
        position_of[sentences.rows] = np.arange(len(sentences))
        positions: Rows = position_of[pairs]
        return positions if bool((positions >= 0).all()) else None


class _SentencesById(Mapping[str, Sentence]):
    """The sentences of a large suite by their ids, built when they are looked up."""

    def __init__(self, sentences: SentenceView) -> None:
        self._sentences = sentences
        self._positions = {name: position for position, name in enumerate(sentences.ids)}

    def __getitem__(self, name: str) -> Sentence:
        return self._sentences[self._positions[name]]

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


def build_table(suite: Suite) -> SuiteTable:
    """Return the columns of a suite, with its hash.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> build_table(suite).open_suite("two", "") == suite
    True
    """
    sentences, tags, regions = suite.sentences, _TagTable(), _RegionTable()
    # Contrasts first or sentences first makes no difference: equal objects get the same row of tags.
    arrays: dict[str, Column] = {
        "labels": suite.labels,
        "ratings": suite.ratings if any(sentence.rating is not None for sentence in sentences) else np.zeros(0),
        "sentence_tags": shrink_integers([tags.add(sentence.tags) for sentence in sentences]),
        "contrast_tags": shrink_integers([tags.add(contrast.tags) for contrast in suite.contrasts]),
        "better": shrink_integers(suite.pairs[:, 0]),
        "worse": shrink_integers(suite.pairs[:, 1]),
    }
    for sentence in sentences:
        regions.add(sentence.regions)
    texts = {"id": suite.ids, "text": suite.texts, "tag_name": tags.names, "tag_value": tags.values}
    for name, column in (texts | {"region_name": regions.names}).items():
        built = TextColumn.build(column)
        arrays |= {f"{name}_bytes": built.content, f"{name}_ends": built.ends}
    return SuiteTable(arrays | tags.list_arrays() | regions.list_arrays(), suite.hash, suite.derived_tags)


class _TagTable:
    """Rows of tags under construction."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.values: dict[str, int] = {}
        self._ends = [0]
        self._name_codes: list[int] = []
        self._value_codes: list[int] = []
        # The tags are kept besides, so that none of them can go and leave its identity to another.
        self._rows: dict[int, tuple[int, Tags]] = {}

    def add(self, tags: Tags) -> int:
        """Return the row of some tags; the same one for the same object."""
        if id(tags) not in self._rows:
            for name, value in tags.items():
                self._name_codes.append(self.names.setdefault(name, len(self.names)))
                self._value_codes.append(self.values.setdefault(value, len(self.values)))
            self._rows[id(tags)] = len(self._rows), tags
            self._ends.append(len(self._name_codes))
        return self._rows[id(tags)][0]

    def list_arrays(self) -> dict[str, Column]:
        """Return the columns, by their names."""
        columns = {"tag_ends": self._ends, "tag_names": self._name_codes, "tag_values": self._value_codes}
        return {name: shrink_integers(column) for name, column in columns.items()}


class _RegionTable:
    """The regions of all sentences under construction."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self._ends = [0]
        self._codes: list[int] = []
        self._spans: list[Span] = []

    def add(self, regions: Mapping[str, Span]) -> None:
        """Add the regions of the next sentence."""
        for name, span in regions.items():
            self._codes.append(self.names.setdefault(name, len(self.names)))
            self._spans.append(span)
        self._ends.append(len(self._codes))

    def list_arrays(self) -> dict[str, Column]:
        """Return the columns, by their names."""
        columns = {
            "region_codes": self._codes,
            "region_starts": [start for start, _ in self._spans],
            "region_stops": [stop for _, stop in self._spans],
            # Most suites have none, and then need no boundaries either.
            "region_ends": self._ends if self._codes else [],
        }
        return {name: shrink_integers(column) for name, column in columns.items()}
