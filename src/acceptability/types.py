"""The data that flows from a suite to a result: sentences, contrasts, queries, token scores, scores, results.

All of it is frozen and validated on construction, so that functions can rely on the types.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from itertools import compress
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from acceptability.display import ShownRow, collect_columns, format_html, make_frame
from acceptability.errors import ScoreError, SuiteError, shorten, suggest_name, warn_of_former_name
from acceptability.specs import fingerprint_lines

if TYPE_CHECKING:
    import pandas as pd

Floats: TypeAlias = NDArray[np.float64]
Rows: TypeAlias = NDArray[np.int64]
Tags: TypeAlias = Mapping[str, str]
Span: TypeAlias = tuple[int, int]

SINGLE_ROWS = "row"
"""The sampling unit of data whose rows (sentences, contrasts) were sampled one by one; no tag."""

_ROWS_SHOWN = 10


_CONTROL_CHARACTER = re.compile("[\x00-\x1f]")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a suite.

    Args:
        label: 1 if acceptable, 0 if not, None if it has no label.
        rating: The mean rating, None if nobody rated it. The tag ``rating_unit`` is ``z`` if ratings are
            already in z units.
        regions: Named parts of the text, each as (start, end) in characters.
        tags: Properties to group by: phenomenon, source, domain, condition, item, set, ...
    """

    id: str
    text: str
    label: int | None = None
    rating: float | None = None
    regions: Mapping[str, Span] = field(default_factory=dict, hash=False)
    tags: Tags = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        # Ids are written to tables and to the command line, where padding and control characters would get lost.
        if not self.id or self.id != self.id.strip() or _CONTROL_CHARACTER.search(self.id):
            raise SuiteError(f"sentence id {self.id!r} is empty, padded, or has a control character in it")
        # A lone surrogate cannot be encoded as UTF-8: hashing, storing or printing the sentence would fail later.
        if not _is_unicode("".join((self.id, self.text, *self.regions, *self.tags, *self.tags.values()))):
            raise SuiteError(f"sentence {self.id!a}: half of a surrogate pair is no character. Save the file as UTF-8.")
        # An empty text has no tokens to score. It is usually an empty cell of a table, found here with its id.
        if not self.text.strip():
            raise SuiteError(f"sentence {self.id!r} is empty. Give it a text or remove its row.")
        # True and 1.0 equal 1 and pass; -1, which some data sets use for hidden labels, does not.
        if self.label not in (0, 1, None):
            raise SuiteError(f"sentence {self.id!r}: label is {self.label!r}; expected 1, 0 or nothing")
        if self.rating is not None and not math.isfinite(self.rating):
            raise SuiteError(f"sentence {self.id!r}: rating is {self.rating}; expected a finite number")
        for name, (start, end) in self.regions.items():
            if not 0 <= start < end <= len(self.text):
                raise SuiteError(
                    f"sentence {self.id!r}: region {name!r} is {start}–{end}, "
                    f"which does not lie within its {len(self.text)} characters"
                )


def _is_unicode(text: str) -> bool:
    # The ASCII test takes constant time per string, and most sentences pass it.
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two sentences, given by their ids, of which people find one better."""

    better: str
    worse: str
    tags: Tags = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The name of the contrast in tables."""
        return f"{self.better} > {self.worse}"


def make_contrast(better: Sentence, worse: Sentence) -> Contrast:
    """Return the contrast of two sentences, with the tags that they share.

    >>> good = Sentence("a", "Cats sleep.", tags={"item": "1", "mark": ""})
    >>> bad = Sentence("b", "Cats sleeps.", tags={"item": "1", "mark": "*"})
    >>> make_contrast(good, bad).tags
    {'item': '1'}
    """
    # Readers give both members of a pair the same dictionary; this saves the comparison for BLiMP's 67,000 pairs.
    if better.tags is worse.tags:
        return Contrast(better.id, worse.id, better.tags)
    shared = {key: value for key, value in better.tags.items() if worse.tags.get(key) == value}
    return Contrast(better.id, worse.id, shared)


@dataclass(frozen=True, eq=False)
class TagColumn:
    """The values of one tag, as a code for each row.

    Args:
        codes: For each row, the index of its value; -1 for a row without the tag.
        values: The distinct values, in the order of their first rows.
    """

    codes: NDArray[np.int32]
    values: tuple[str, ...]

    def equals(self, value: str) -> NDArray[np.bool_]:
        """Tell for each row whether it has a value."""
        # A value that no row has gets a code that no row has.
        code = self.values.index(value) if value in self.values else -2
        return np.asarray(self.codes == code)


class SentenceColumns(Sequence[Sentence]):
    """Sentences that are kept as columns; each is built when it is looked at. They are valid and their ids unique."""

    # What a suite asks of them besides; ``suites.columns`` has the implementation.

    @property
    @abstractmethod
    def by_id(self) -> Mapping[str, Sentence]:
        """The sentences, by their ids."""

    @property
    @abstractmethod
    def ids(self) -> Sequence[str]:
        """The ids of all sentences."""

    @property
    @abstractmethod
    def texts(self) -> Sequence[str]:
        """The texts of all sentences."""

    @property
    @abstractmethod
    def labels(self) -> NDArray[np.int8]:
        """The labels of all sentences; -1 for none."""

    @property
    @abstractmethod
    def ratings(self) -> Floats:
        """The ratings of all sentences; nan for none."""

    @property
    @abstractmethod
    def tag_names(self) -> frozenset[str]:
        """The names of all tags."""

    @abstractmethod
    def tag_column(self, tag: str) -> TagColumn:
        """Return the values of a tag."""

    @abstractmethod
    def find_lacking(self, tag: str) -> Sequence[int]:
        """Return the positions of the rows that lack a tag."""

    @abstractmethod
    def select(self, rows: Rows) -> SentenceColumns:
        """Return some of the sentences, given by their positions, each at most once."""

    @abstractmethod
    def find_below(self, path: str) -> NDArray[np.bool_]:
        """Tell for each sentence whether its id is a path, or begins with it and a slash."""

    @abstractmethod
    def find_hash(self, contrasts: Sequence[Contrast], derived_tags: Iterable[str]) -> str | None:
        """Return the hash of the suite of these sentences and contrasts, if it was kept with the columns."""


class ContrastColumns(Sequence[Contrast]):
    """Contrasts that are kept as columns; each is built when it is looked at. They are valid and all different."""

    @property
    @abstractmethod
    def tag_names(self) -> frozenset[str]:
        """The names of all tags."""

    @abstractmethod
    def tag_column(self, tag: str) -> TagColumn:
        """Return the values of a tag."""

    @abstractmethod
    def find_lacking(self, tag: str) -> Sequence[int]:
        """Return the positions of the rows that lack a tag."""

    @abstractmethod
    def select(self, rows: Rows) -> ContrastColumns:
        """Return some of the contrasts, given by their positions, each at most once."""

    @abstractmethod
    def find_pairs(self, sentences: Sequence[Sentence]) -> Rows | None:
        """Return the positions of the better and worse sentences; None if these are not columns that have them all."""


@dataclass(frozen=True)
class Suite:
    """Sentences, and the contrasts between them.

    Args:
        name: The suite's name in tables and signatures.
        sentences: At least one; their ids have to be unique. A tuple, or columns, which a reader may have kept.
        contrasts: Pairs of ids, each pair once.
        unit: The sampling unit, which intervals, tests and folds keep together: a tag that every sentence and contrast
            has, such as ``item``, or two of them, the outer one first (``paradigm/item``). Empty if each sentence, or
            contrast, was sampled by itself.
        derived_tags: The tags that a reader computed from other parts of the data. They are not part of the hash, so
            that a reader may add one without changing the signatures of results.
        notes: What the reader of a user's file took for what; no part of the suite's content.

    A suite is a collection of its sentences: it has a length, can be iterated, and gives a sentence by its id.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> suite
    Suite('two', 2 sentences, 1 contrasts)
    >>> len(suite), suite["b"].text, [sentence.id for sentence in suite]
    (2, 'Cats sleeps.', ['a', 'b'])
    """

    name: str
    sentences: Sequence[Sentence]
    contrasts: Sequence[Contrast] = ()
    unit: str = ""
    derived_tags: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        # The word for single rows on the command line; one spelling only, so that equal suites are equal.
        if self.unit == SINGLE_ROWS:
            object.__setattr__(self, "unit", "")
        if not self.sentences:
            raise SuiteError(f"suite {self.name!r} has no sentences")
        # Columns were checked before they were written; a million sentences need not be built to look at them again.
        if not self._has_checked_columns:
            self._check_rows()
        for tag in self.unit_tags:
            self._check_unit(tag)

    @property
    def _has_checked_columns(self) -> bool:
        return isinstance(self.sentences, SentenceColumns) and (
            not self.contrasts
            or (isinstance(self.contrasts, ContrastColumns) and self.contrasts.find_pairs(self.sentences) is not None)
        )

    def _check_rows(self) -> None:
        """Raise an error unless ids are unique and contrasts are different pairs of them."""
        if len(self.by_id) < len(self.sentences):
            counts = Counter(sentence.id for sentence in self.sentences)
            duplicate = next(name for name, count in counts.items() if count > 1)
            raise SuiteError(f"suite {self.name!r}: two sentences have the id {duplicate!r}. Ids must be unique.")
        pairs: set[tuple[str, str]] = set()
        for contrast in self.contrasts:
            self._check_contrast(contrast)
            # The ids themselves may contain " > ", so contrast.id is not a safe key.
            if (contrast.better, contrast.worse) in pairs:
                raise SuiteError(f"suite {self.name!r}: the contrast {contrast.id} is listed twice")
            pairs.add((contrast.better, contrast.worse))

    def _check_unit(self, tag: str) -> None:
        """Raise an error unless every sentence and every contrast has the tag of the sampling unit."""
        kinds: tuple[tuple[str, Sequence[Sentence | Contrast]], ...]
        kinds = ("sentences", self.sentences), ("contrasts", self.contrasts)
        for kind, rows in kinds:
            lacking = _find_lacking(rows, tag)
            if not len(lacking):
                continue
            # A contrast has the tags on which its two sentences agree.
            hint = ", since its two sentences differ in it" if kind == "contrasts" else ""
            raise SuiteError(
                f"suite {self.name!r}: the sampling unit is {self.unit!r}, but {len(lacking)} of {len(rows)} {kind} "
                f"have no tag {tag!r}, such as {rows[lacking[0]].id!r}{hint}. Name another tag, or 'row'."
                f"{suggest_name(tag, self.tag_names)}"
            )

    def _check_contrast(self, contrast: Contrast) -> None:
        for member in (contrast.better, contrast.worse):
            if member not in self.by_id:
                raise SuiteError(
                    f"suite {self.name!r}: the contrast {contrast.id} names {member!r}, which is no sentence of it"
                )
        if contrast.better == contrast.worse:
            raise SuiteError(f"suite {self.name!r}: {contrast.better!r} is contrasted with itself")

    @cached_property
    def by_id(self) -> Mapping[str, Sentence]:
        """The sentences, by their ids."""
        if isinstance(self.sentences, SentenceColumns):
            return self.sentences.by_id
        return {sentence.id: sentence for sentence in self.sentences}

    @property
    def ids(self) -> Sequence[str]:
        """The ids of all sentences, for which none needs to be built."""
        if isinstance(self.sentences, SentenceColumns):
            return self.sentences.ids
        return tuple(sentence.id for sentence in self.sentences)

    @property
    def texts(self) -> Sequence[str]:
        """The texts of all sentences.

        >>> Suite("one", (Sentence("a", "Cats sleep."),)).texts
        ('Cats sleep.',)
        """
        if isinstance(self.sentences, SentenceColumns):
            return self.sentences.texts
        return tuple(sentence.text for sentence in self.sentences)

    @property
    def labels(self) -> NDArray[np.int8]:
        """The labels of all sentences; -1 for none."""
        if isinstance(self.sentences, SentenceColumns):
            return self.sentences.labels
        return np.array([-1 if one.label is None else one.label for one in self.sentences], dtype=np.int8)

    @property
    def ratings(self) -> Floats:
        """The ratings of all sentences; nan for none."""
        if isinstance(self.sentences, SentenceColumns):
            return self.sentences.ratings
        return np.array([math.nan if one.rating is None else one.rating for one in self.sentences], dtype=np.float64)

    @cached_property
    def pairs(self) -> Rows:
        """The contrasts as positions in ``sentences``: a row for each, the better sentence first.

        >>> Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),)).pairs
        array([[0, 1]])
        """
        known = self.contrasts.find_pairs(self.sentences) if isinstance(self.contrasts, ContrastColumns) else None
        if known is not None:
            return known
        positions = {sentence_id: position for position, sentence_id in enumerate(self.ids)}
        found = [(positions[contrast.better], positions[contrast.worse]) for contrast in self.contrasts]
        return np.array(found, dtype=np.int64).reshape(-1, 2)

    def sentence_tag(self, tag: str) -> TagColumn:
        """Return the values of a tag of all sentences.

        >>> two = Suite("two", (Sentence("a", "Cats sleep.", tags={"item": "1"}), Sentence("b", "Dogs sleep.")))
        >>> two.sentence_tag("item").codes.tolist(), two.sentence_tag("item").values
        ([0, -1], ('1',))
        """
        return _find_tag_column(self.sentences, tag)

    def contrast_tag(self, tag: str) -> TagColumn:
        """Return the values of a tag of all contrasts."""
        return _find_tag_column(self.contrasts, tag)

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all sentences and contrasts, regardless of their order and of the suite's name."""
        if isinstance(self.sentences, SentenceColumns):
            known = self.sentences.find_hash(self.contrasts, self.derived_tags)
            if known:
                return known
        # The hash is defined over the alphabetically sorted JSON rows. Sorting by the unique first fields alone gives
        # that order without holding all rows in memory.
        sentences = sorted(self.sentences, key=lambda sentence: encode_basestring_ascii(sentence.id))
        contrasts = sorted(self.contrasts, key=_serialize_pair)
        derived = frozenset(self.derived_tags)
        return fingerprint_lines(
            lambda: _serialize_sentences(sentences, derived), lambda: _serialize_contrasts(contrasts, derived)
        )

    @property
    def signature(self) -> str:
        """The suite's name and fingerprint."""
        return f"{self.name}#{self.hash}"

    @cached_property
    def tag_names(self) -> tuple[str, ...]:
        """The names of all tags of sentences and contrasts, in alphabetical order."""
        return tuple(sorted(_find_tag_names(self.sentences) | _find_tag_names(self.contrasts)))

    @property
    def unit_tags(self) -> tuple[str, ...]:
        """The tags of the sampling unit: none, one, or two, of which the outer one is first.

        >>> Suite("one", (Sentence("a", "Cats sleep.", tags={"item": "1"}),), unit="item").unit_tags
        ('item',)
        """
        return tuple(tag for tag in self.unit.split("/") if tag not in ("", SINGLE_ROWS))

    def filter(self, /, **where: str) -> Suite:
        """Return the part of the suite that has these values of tags; its name says which part it is.

        A contrast is kept if it has the values itself or both its sentences have them, and keeps its sentences.

        >>> two = Suite("two", (Sentence("a", "Cats sleep.", tags={"item": "1"}), Sentence("b", "Dogs sleep.")))
        >>> two.filter(item="1")
        Suite('two[item=1]', 1 sentences, 0 contrasts)
        """
        if not where:
            return self
        for tag, value in where.items():
            self._check_tag_value(tag, value)
        is_sentence = np.ones(len(self.sentences), dtype=bool)
        # Some tags belong to contrasts alone, such as what is varied in a pair.
        is_contrast = np.ones(len(self.contrasts), dtype=bool)
        for tag, value in where.items():
            is_sentence &= self.sentence_tag(tag).equals(value)
            is_contrast &= self.contrast_tag(tag).equals(value)
        is_contrast |= np.all(is_sentence[self.pairs], axis=1)
        is_sentence[self.pairs[is_contrast]] = True
        description = ",".join(f"{tag}={value}" for tag, value in where.items())
        if not is_sentence.any():
            raise SuiteError(f"no sentence of suite {self.name!r} has all of {description}")
        return replace(self._select(is_sentence, is_contrast), name=f"{self.name}[{description}]")

    def _check_tag_value(self, tag: str, value: str) -> None:
        """Raise an error unless something in the suite has this value of a tag."""
        if tag not in self.tag_names:
            raise SuiteError(
                f"suite {self.name!r} has no tag {tag!r}; it has {', '.join(self.tag_names) or 'none'}."
                f"{suggest_name(tag, self.tag_names)}"
            )
        values = {*self.sentence_tag(tag).values, *self.contrast_tag(tag).values}
        if value not in values:
            shown = ", ".join(sorted(values)[:10]) + (", …" if len(values) > 10 else "")
            raise SuiteError(
                f"nothing in suite {self.name!r} has {tag}={value}; the values of {tag} are {shown}."
                f"{suggest_name(value, values)}"
            )

    def restrict(self, ids: Container[str]) -> Suite:
        """Return the suite with only some of its sentences, given by their ids, and the contrasts between these."""
        is_sentence = np.array([sentence_id in ids for sentence_id in self.ids], dtype=bool)
        return self._select(is_sentence, np.asarray(is_sentence[self.pairs].all(axis=1)))

    def sample(self, n: int, seed: int = 0) -> Suite:
        """Return a random part of the suite, drawn without replacement and in the suite's order.

        Args:
            n: How many contrasts, with their sentences; of a suite without contrasts, how many sentences.
            seed: The same seed draws the same part.

        >>> sentences = (Sentence("a", "Cats sleep."), Sentence("b", "Dogs sleep."), Sentence("c", "Mice sleep."))
        >>> Suite("three", sentences).sample(2)
        Suite('three(sample=2,seed=0)', 2 sentences, 0 contrasts)
        """
        rows: Sequence[object]
        rows, kind = (self.contrasts, "contrasts") if self.contrasts else (self.sentences, "sentences")
        # True is an int too, and a share such as 0.1 is a frequent slip.
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise SuiteError(f"sample: seed is {seed!r}; expected a whole number from 0")
        if isinstance(n, bool) or not isinstance(n, int) or not 0 < n <= len(rows):
            raise SuiteError(
                f"sample: n is {n!r}; suite {self.name!r} has {len(rows)} {kind}, so give 1 to {len(rows)}"
            )
        is_drawn = np.zeros(len(rows), dtype=bool)
        is_drawn[np.random.default_rng(seed).choice(len(rows), n, replace=False)] = True
        is_sentence, is_contrast = is_drawn, np.zeros(0, dtype=bool)
        if self.contrasts:
            is_sentence, is_contrast = np.zeros(len(self.sentences), dtype=bool), is_drawn
            is_sentence[self.pairs[is_drawn].ravel()] = True
        return replace(self._select(is_sentence, is_contrast), name=f"{self.name}(sample={n},seed={seed})")

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with a row for each sentence: id, text, label, rating, and a column for each tag.

        ``better_than`` has the ids of the sentences that it is contrasted with as the better one, so that
        ``Suite.from_frame`` reads the suite back; regions are not part of the frame.

        Raises:
            MissingExtra: pandas is not installed.
        """
        worse: dict[str, list[str]] = {}
        for contrast in self.contrasts:
            worse.setdefault(contrast.better, []).append(contrast.worse)
        rows: list[dict[str, object]] = [
            {"id": sentence.id, "text": sentence.text, "label": sentence.label, "rating": sentence.rating}
            | dict(sentence.tags)
            | ({"better_than": worse.get(sentence.id, [])} if self.contrasts else {})
            for sentence in self.sentences
        ]
        # Columns of nothing, such as the ratings of a suite without any, are left out.
        columns = {name: cells for name, cells in collect_columns(rows).items() if set(map(repr, cells)) != {"None"}}
        return make_frame(columns)

    @classmethod
    def from_frame(cls, frame: pd.DataFrame, name: str = "frame", *, unit: str | None = None, **columns: str) -> Suite:
        """Return the suite in a pandas data frame, by the rules for tables.

        Args:
            frame: A column ``text`` (perhaps ``label``, ``rating``), or ``good`` and ``bad``; others become tags.
            name: The name of the suite in tables and signatures.
            unit: The sampling unit, see ``Suite``; by default the tag ``set`` or ``item`` if all rows have it.
            columns: The frame's names of these columns where they differ: ``good="g", bad="b"``.
        """
        # The rules for tables stand in a room above this one, and are loaded when they are needed.
        suite: Suite = import_module("acceptability.suites.frames").read_frame(frame, name, columns)
        return suite if unit is None else replace(suite, unit=unit)

    def __len__(self) -> int:
        return len(self.sentences)

    def __iter__(self) -> Iterator[Sentence]:
        return iter(self.sentences)

    def __contains__(self, sentence_id: object) -> bool:
        return sentence_id in self.by_id

    def __getitem__(self, sentence_id: str) -> Sentence:
        try:
            return self.by_id[sentence_id]
        except (KeyError, TypeError):
            hint = suggest_name(sentence_id, self.by_id) if isinstance(sentence_id, str) else " Ids are texts."
            raise SuiteError(f"suite {self.name!r} has no sentence {sentence_id!r}.{hint}") from None

    def select_below(self, path: str) -> Suite | None:
        """Return the sentences whose ids are a path, or begin with it and a slash, and the contrasts between these.

        The ids may begin with the suite's name or not, as the path does; None if there is no such sentence.

        >>> two = Suite("two", (Sentence("a/1", "Cats sleep."), Sentence("ab/1", "Dogs sleep.")))
        >>> two.select_below("two/a").sentences[0].text, two.select_below("b")
        ('Cats sleep.', None)
        """
        paths = [path, *([path.removeprefix(f"{self.name}/")] if path.startswith(f"{self.name}/") else [])]
        is_below = np.zeros(len(self.sentences), dtype=bool)
        for one in paths:
            if isinstance(self.sentences, SentenceColumns):
                is_below |= self.sentences.find_below(one)
            else:
                is_below |= np.array([f"{sentence_id}/".startswith(f"{one}/") for sentence_id in self.ids])
        return self._select(is_below, np.asarray(is_below[self.pairs].all(axis=1))) if is_below.any() else None

    def _select(self, is_sentence: NDArray[np.bool_], is_contrast: NDArray[np.bool_]) -> Suite:
        """Return the suite with some of its sentences and contrasts."""
        sentences: Sequence[Sentence]
        contrasts: Sequence[Contrast]
        if isinstance(self.sentences, SentenceColumns):
            sentences = self.sentences.select(np.flatnonzero(is_sentence))
        else:
            sentences = tuple(compress(self.sentences, is_sentence))
        if isinstance(self.contrasts, ContrastColumns):
            contrasts = self.contrasts.select(np.flatnonzero(is_contrast))
        else:
            contrasts = tuple(compress(self.contrasts, is_contrast))
        return replace(self, sentences=sentences, contrasts=contrasts)

    def __repr__(self) -> str:
        unit = f", unit={self.unit!r}" if self.unit else ""
        return f"Suite({self.name!r}, {len(self.sentences)} sentences, {len(self.contrasts)} contrasts{unit})"

    def _repr_html_(self) -> str:
        rows: list[dict[str, object]] = [
            {"id": sentence.id, "text": sentence.text, "label": sentence.label, "rating": sentence.rating}
            for sentence in self.sentences[:_ROWS_SHOWN]
        ]
        more = len(self.sentences) - len(rows)
        notes = [*self.notes, *([f"… {more} more sentences"] if more else [])]
        return format_html(rows, caption=repr(self), notes=notes)


def split_part_name(name: str) -> tuple[str, dict[str, str]]:
    """Return the name of a suite, and the values of tags that ``Suite.filter`` chose a part of it by.

    >>> split_part_name("blimp[phenomenon=npi,item=1]")
    ('blimp', {'phenomenon': 'npi', 'item': '1'})
    """
    # A sample of a part: what was drawn comes after it, see ``find_named_part``.
    if sample := _SAMPLE.fullmatch(name):
        return split_part_name(sample[1])
    base, bracket, description = name.removesuffix("]").partition("[")
    if not (bracket and name.endswith("]") and "=" in description):
        return name, {}
    # Values of tags may contain commas: one that no name of a tag follows belongs to the value before it.
    pairs = (part.partition("=") for part in re.split(r",(?=[^,=]+=)", description))
    return base, {tag: value for tag, _, value in pairs}


_SAMPLE = re.compile(r"(.+)\(sample=(\d+),seed=(\d+)\)", re.DOTALL)


def find_named_part(suite: Suite, name: str) -> Suite | None:
    """Return the suite itself, or the part of it (of tags, or a sample) that has a name; None if neither has.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep.", tags={"item": "1"}), Sentence("b", "Dogs sleep.")))
    >>> find_named_part(suite, suite.filter(item="1").sample(1, seed=3).name)
    Suite('two[item=1](sample=1,seed=3)', 1 sentences, 0 contrasts)
    """
    # A suite may itself be called like a part.
    if suite.name == name:
        return suite
    try:
        if sample := _SAMPLE.fullmatch(name):
            whole = find_named_part(suite, sample[1])
            return whole and whole.sample(int(sample[2]), int(sample[3]))
        base, where = split_part_name(name)
        return suite.filter(**where) if where and suite.name == base else None
    except SuiteError:
        return None


def _find_tag_column(rows: Sequence[Sentence] | Sequence[Contrast], tag: str) -> TagColumn:
    if isinstance(rows, (SentenceColumns, ContrastColumns)):
        return rows.tag_column(tag)
    code_of: dict[str, int] = {}
    codes = [code_of.setdefault(row.tags[tag], len(code_of)) if tag in row.tags else -1 for row in rows]
    return TagColumn(np.array(codes, dtype=np.int32), tuple(code_of))


def _find_lacking(rows: Sequence[Sentence | Contrast], tag: str) -> Sequence[int]:
    """Return the positions of the rows that lack a tag."""
    if isinstance(rows, (SentenceColumns, ContrastColumns)):
        return rows.find_lacking(tag)
    return [position for position, row in enumerate(rows) if tag not in row.tags]


def _find_tag_names(rows: Sequence[Sentence] | Sequence[Contrast]) -> frozenset[str]:
    if isinstance(rows, (SentenceColumns, ContrastColumns)):
        return rows.tag_names
    return frozenset(name for row in rows for name in row.tags)


# The rows of the hash are those of json.dumps with its defaults. Each is put together here from its encoded texts,
# which takes a third of the time: the encoder of texts is C code, and json.dumps makes an object for every call.


def _serialize_sentences(sentences: Iterable[Sentence], derived: frozenset[str]) -> Iterator[str]:
    encode, serialize_tags = encode_basestring_ascii, _TagSerializer(derived)
    for sentence in sentences:
        label, rating = _serialize_number(sentence.label), _serialize_number(sentence.rating)
        regions = json.dumps(sorted(sentence.regions.items())) if sentence.regions else "[]"
        tags = serialize_tags(sentence.tags)
        yield f"[{encode(sentence.id)}, {encode(sentence.text)}, {label}, {rating}, {regions}, {tags}]"


def _serialize_contrasts(contrasts: Iterable[Contrast], derived: frozenset[str]) -> Iterator[str]:
    serialize_tags = _TagSerializer(derived)
    for contrast in contrasts:
        yield f"[{_serialize_pair(contrast)}, {serialize_tags(contrast.tags)}]"


def _serialize_number(number: float | None) -> str:
    # True and 1.0 are labels too, with another JSON than 1; NumPy's floats have a representation of their own.
    return repr(number) if type(number) in (int, float) else json.dumps(number)


def _serialize_pair(contrast: Contrast) -> str:
    return f"{encode_basestring_ascii(contrast.better)}, {encode_basestring_ascii(contrast.worse)}"


class _TagSerializer:
    """Serializes tags as sorted pairs, without the derived ones."""

    def __init__(self, derived: frozenset[str]) -> None:
        self._derived = derived
        self._names: dict[str, str] = {}
        self._last: Tags | None = None
        self._text = ""

    def __call__(self, tags: Tags) -> str:
        # The sentences of a pair share their tags, and stand together when sorted.
        if tags is not self._last:
            pairs = [self._serialize_item(name, tags[name]) for name in sorted(tags) if name not in self._derived]
            self._last, self._text = tags, f"[{', '.join(pairs)}]"
        return self._text

    def _serialize_item(self, name: str, value: str) -> str:
        encoded = self._names.get(name)
        if encoded is None:
            encoded = self._names[name] = encode_basestring_ascii(name)
        return f"[{encoded}, {encode_basestring_ascii(value)}]"


def _length_prefixed(part: str) -> bytes:
    # With its length in front, ("a", "bc") and ("ab", "c") give different bytes.
    encoded = part.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "big") + encoded


_EMPTY_PART = _length_prefixed("")


def hash_text(text: str, context: str = "") -> bytes:
    """Return the key of the query that has a text and a context, and neither a target nor a rival.

    >>> hash_text("Cats sleep.") == Query("Cats sleep.").key
    True
    """
    content = _length_prefixed(text) + (_length_prefixed(context) if context else _EMPTY_PART)
    return hashlib.sha256(content).digest()[:16]


def hash_texts(texts: Iterable[str]) -> list[bytes]:
    """Return the key of the query of each text, without a context.

    >>> hash_texts(["Cats sleep."]) == [hash_text("Cats sleep.")]
    True
    """
    # As above, in one expression without calls of ours: a suite has a hundred thousand texts, and millions are scored.
    sha256, empty = hashlib.sha256, _EMPTY_PART
    encoded = (text.encode("utf-8", "surrogatepass") for text in texts)
    return [sha256(len(text).to_bytes(8, "big") + text + empty).digest()[:16] for text in encoded]


@dataclass(frozen=True, slots=True)
class Query:
    """The input of a model: a text, optionally with a context before it and a target within it.

    Args:
        text: The text to score.
        context: Text before it, which conditions the model but is not scored.
        target: The characters (start, end) to score; None means the whole text.
            A masked model masks all tokens of the target together.
        rival: The other sentence of a contrast, for a model that weighs two sentences against each other.
    """

    text: str
    context: str = ""
    target: Span | None = None
    rival: str = ""

    @property
    def full_text(self) -> str:
        """Context and text as the model reads them, separated by one space."""
        if not self.context or self.context[-1].isspace():
            return self.context + self.text
        return f"{self.context} {self.text}"

    @property
    def text_start(self) -> int:
        """The character at which the text starts in ``full_text``."""
        return len(self.full_text) - len(self.text)

    @property
    def full(self) -> str:
        """An alias of ``full_text``, its former name, for one release: models of users read it."""
        warn_of_former_name("Query.full", "full_text")
        return self.full_text

    @property
    def start(self) -> int:
        """An alias of ``text_start``, its former name, for one release."""
        warn_of_former_name("Query.start", "text_start")
        return self.text_start

    @property
    def key(self) -> bytes:
        """A 16-byte hash of the query, under which its output is stored."""
        # Target and rival are added only if present, so that outputs stored for plain queries keep their keys.
        if not self.target and not self.rival:
            return hash_text(self.text, self.context)
        content = _length_prefixed(self.text) + (_length_prefixed(self.context) if self.context else _EMPTY_PART)
        for part in (*(self.target or ()), *([self.rival] if self.rival else ())):
            content += _length_prefixed(str(part))
        return hashlib.sha256(content).digest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """A language model's output for one query: the log-probability of each scored token.

    Args:
        text: The query's text, to which the offsets refer.
        tokens: The scored tokens, as the model's vocabulary spells them.
        offsets: The position of each token in the text: (start, end) in characters.
        logprobs: Their log-probabilities in nats, as float32.
        unknown: The positions of the tokens that are not in the model's vocabulary, such as unknown words; None if the
            model does not say.
        spelling_logprobs: For each unknown token, the log-probability of its spelling, which is part of its
            log-probability; empty if the model gives unknown tokens none.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[Span, ...]
    logprobs: NDArray[np.float32]
    unknown: tuple[int, ...] | None = None
    spelling_logprobs: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.offsets) == len(self.logprobs):
            raise ScoreError(f"{shorten(self.text)!r}: tokens, offsets and log-probabilities differ in number")
        if not len(self.tokens):
            raise ScoreError(f"{shorten(self.text)!r}: the model scored no token of it")
        # The dot product with itself is finite only if every entry is, and is faster than np.isfinite(...).all() on
        # arrays as short as a sentence. It cannot overflow: log-probabilities are far smaller than 1e19.
        if not math.isfinite(self.logprobs.dot(self.logprobs)):
            raise ScoreError(f"{shorten(self.text)!r}: the model gave a log-probability that is not finite")
        if self.unknown and not 0 <= min(self.unknown) <= max(self.unknown) < len(self.tokens):
            raise ScoreError(f"{shorten(self.text)!r}: an unknown token is none of its {len(self.tokens)} tokens")
        if self.spelling_logprobs and len(self.spelling_logprobs) != len(self.unknown or ()):
            raise ScoreError(f"{shorten(self.text)!r}: unknown tokens and their spellings differ in number")

    def __repr__(self) -> str:
        total = float(self.logprobs.sum(dtype=np.float64))
        return f"TokenScores({shorten(self.text)!r}, {len(self.tokens)} tokens, log-probability {total:.3f})"

    def _repr_html_(self) -> str:
        rows: list[dict[str, object]] = [
            {
                "token": self.text[start:end].strip() or token,
                "logprob": logprob,
                "surprisal_bits": -logprob / math.log(2),
            }
            for token, (start, end), logprob in zip(self.tokens, self.offsets, self.logprobs.tolist(), strict=True)
        ]
        return format_html(rows, caption=self.text)

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """The unknown tokens, as they stand in the text."""
        return tuple(
            self.text[slice(*self.offsets[position])].strip() or self.tokens[position]
            for position in self.unknown or ()
        )


def _make_empty_floats() -> NDArray[np.float32]:
    return np.zeros(0, np.float32)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TokenPredictions(TokenScores):
    """Token scores with what the model predicted at each scored token: the distribution over the next token.

    Args:
        entropies: The entropy of the distribution before each token, in nats; nan where the model does not give it.
        entropies_after: The entropy of the distribution after each token, in nats; nan where there is none.
        ranks: How many tokens are more probable than the one in the text, plus 1; 0 where it is unknown.
        cumulative: The probability of all these tokens, and of the one in the text; nan where it is unknown.
        top_tokens: The most probable tokens, the best first, as they would stand in the text, with a space before them.
        top_logprobs: Their log-probabilities in nats, a row for each token; -inf fills rows with fewer alternatives.
    """

    entropies: NDArray[np.float32] = field(default_factory=_make_empty_floats)
    entropies_after: NDArray[np.float32] = field(default_factory=_make_empty_floats)
    ranks: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    cumulative: NDArray[np.float32] = field(default_factory=_make_empty_floats)
    top_tokens: tuple[tuple[str, ...], ...] = ()
    top_logprobs: NDArray[np.float32] = field(default_factory=_make_empty_floats)

    def __post_init__(self) -> None:
        # By name: a class with slots is made anew by the decorator, and super() would refer to the one before.
        TokenScores.__post_init__(self)
        columns = self.entropies, self.entropies_after, self.ranks, self.cumulative, self.top_tokens, self.top_logprobs
        if {len(column) for column in columns} != {len(self.tokens)}:
            raise ScoreError(f"{shorten(self.text)!r}: tokens and predictions differ in number")

    def __repr__(self) -> str:
        return f"TokenPredictions({shorten(self.text)!r}, {len(self.tokens)} tokens)"


@dataclass(frozen=True, slots=True, eq=False)
class LabelScores:
    """A classifier's output for one query: the logits of (unacceptable, acceptable)."""

    text: str
    logits: tuple[float, float]

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.logits)):
            raise ScoreError(f"{shorten(self.text)!r}: the classifier gave a logit that is not finite")


ModelOutput: TypeAlias = TokenScores | LabelScores


@dataclass(frozen=True, eq=False)
class Scores:
    """One finite number per sentence id, with the model and the reduction that gave it.

    Args:
        values: The score of each sentence id; scores of the regions of a sentence have the keys ``id#region``.
        model: The model's name in tables.
        reduction: The reduction's spec.
        signature: What is needed to compute the scores again.
        notes: Remarks for the reader of a table, such as how many words a unigram table lacks.
        missing: How many sentences of the suite have no score in the file that the scores come from.
        partial: Whether sentences without a score are left out of results; otherwise they are an error.
        unknown_words: The words of a sentence that are not in the model's vocabulary, for each sentence id that has
            some.
        suite: The suite of the sentences, if it is known, for the texts in ``to_frame``.

    >>> scores = Scores({"a": -3.5}, model="toy")
    >>> scores
    Scores(of 'toy', 1 score, mean -3.500)
    >>> scores["a"], len(scores), list(scores)
    (-3.5, 1, ['a'])
    """

    values: Mapping[str, float]
    model: str
    reduction: str = ""
    signature: str = ""
    notes: tuple[str, ...] = ()
    missing: int = 0
    partial: bool = False
    unknown_words: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    suite: Suite | None = None

    def __post_init__(self) -> None:
        for key, value in self.values.items():
            if not math.isfinite(value):
                raise ScoreError(f"the score of {key!r} is {value}; expected a finite number")

    def __getitem__(self, sentence_id: str) -> float:
        try:
            return self.values[sentence_id]
        except KeyError:
            raise ScoreError(
                f"no score of {self.model!r} for sentence {sentence_id!r}, which the measure needs. "
                f"There are scores for {len(self.values)} sentences{self.missing_hint}."
            ) from None

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def __contains__(self, sentence_id: object) -> bool:
        return sentence_id in self.values

    def keys(self) -> Iterable[str]:
        """Return the ids of the sentences, so that ``dict(scores)`` has a score for each."""
        return self.values.keys()

    def __repr__(self) -> str:
        reduction = f" by {self.reduction}" if self.reduction else ""
        mean = f", mean {math.fsum(self.values.values()) / len(self.values):.3f}" if self.values else ""
        plural = "" if len(self.values) == 1 else "s"
        return f"Scores(of {self.model!r}{reduction}, {len(self.values)} score{plural}{mean})"

    def _repr_html_(self) -> str:
        more = len(self.values) - _ROWS_SHOWN
        notes = [*self.notes, *([f"… {more} more scores"] if more > 0 else [])]
        return format_html(self._list_rows(_ROWS_SHOWN), caption=repr(self), notes=notes)

    def to_frame(self) -> pd.DataFrame:
        """Return a pandas data frame with a row for each sentence: its id, and the text if it is known, and its score.

        Raises:
            MissingExtra: pandas is not installed.
        """
        return make_frame(collect_columns(self._list_rows()))

    def _list_rows(self, count: int | None = None) -> list[dict[str, object]]:
        by_id = self.suite.by_id if self.suite else {}
        rows: list[dict[str, object]] = []
        for key, value in list(self.values.items())[:count]:
            text = {"text": by_id[key].text if key in by_id else None} if by_id else {}
            rows.append({"sentence_id": key, **text, "score": value})
            if self.unknown_words:
                rows[-1]["unknown_words"] = " ".join(self.unknown_words.get(key, ()))
        return rows

    @property
    def missing_hint(self) -> str:
        """What an error about a missing score adds: how many are missing, and how to continue without them."""
        if not self.missing:
            return ""
        return (
            f", and none for {self.missing} of the suite: leave these out (--partial, partial=True), "
            "or measure a part of the suite (--where TAG=VALUE, where={...})"
        )

    def has_score_of(self, sentence: Sentence) -> bool:
        """Tell whether a sentence has a score: its own, or that of one of its regions."""
        return sentence.id in self.values or any(
            f"{sentence.id}#{region}" in self.values for region in sentence.regions
        )

    def of(self, ids: Iterable[str]) -> Floats:
        """Return the scores of several sentences, in the order of the ids."""
        ids = list(ids)
        try:
            return np.fromiter(map(self.values.__getitem__, ids), dtype=np.float64, count=len(ids))
        # Raised again with an explanation, by the id without a score.
        except KeyError:
            return np.array([self[sentence_id] for sentence_id in ids], dtype=np.float64)


def restrict_to_scored(suite: Suite, scores: Sequence[Scores]) -> Suite:
    """Return the suite without the sentences that partial scores lack; the same suite if no scores are partial.

    An item with predictions is left out as a whole, since a prediction relates several of its sentences.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> restrict_to_scored(suite, [Scores({"a": -1.0}, "toy", partial=True)])
    Suite('two', 1 sentences, 0 contrasts)
    """
    partial = [given for given in scores if given.partial]
    if not partial:
        return suite
    unscored = [sentence for sentence in suite.sentences if not all(given.has_score_of(sentence) for given in partial)]
    if not unscored:
        return suite
    broken_items = {_find_prediction_item(sentence) for sentence in unscored} - {None}
    left_out = {sentence.id for sentence in unscored}
    kept = {
        sentence.id
        for sentence in suite.sentences
        if sentence.id not in left_out and _find_prediction_item(sentence) not in broken_items
    }
    if not kept:
        models = ", ".join(repr(given.model) for given in partial)
        raise ScoreError(f"suite {suite.name!r} has no sentence, or no whole item, with a score of {models}")
    return suite.restrict(kept)


def _find_prediction_item(sentence: Sentence) -> str | None:
    """Return the item of a sentence with predictions; None for any other sentence."""
    return sentence.tags.get("set", sentence.tags.get("item")) if "prediction" in sentence.tags else None


class Refit(Protocol):
    """The value of a measure with what was fitted to its rows fitted again; nan where it is undefined."""

    def __call__(self, weights: Floats, new_scores: Floats | None = None) -> float:
        """Return the value of a resample, or of a permutation.

        Args:
            weights: The weight of each row: how often a resample contains it.
            new_scores: Other scores of the rows, which a permutation test swaps between two models.
        """
        ...


@dataclass(frozen=True, eq=False)
class Units:
    """The rows that a measure counts: contrasts, sentences or items.

    Args:
        ids: The id of each row.
        columns: What the measure needs of each row, as arrays of equal length.
        tags: The tags of each row, for grouping and for resampling by cluster.
        notes: What was excluded, and why.
        refit: If something was fitted to all rows, such as a threshold: the value with a new fit.
    """

    ids: tuple[str, ...]
    columns: Mapping[str, Floats]
    tags: tuple[Tags, ...]
    notes: tuple[str, ...] = ()
    refit: Refit | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Units({len(self.ids)} rows, columns {', '.join(self.columns)})"

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]

    def encode_tag(self, tag: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Return the values of a tag in alphabetical order, and the index of each row's value; -1 without the tag.

        >>> Units(("a", "b", "c"), {}, ({"item": "2"}, {}, {"item": "1"})).encode_tag("item")
        (('1', '2'), array([ 1, -1,  0]))
        """
        # Groups, sampling units and their counts all need it, and strings are slow to compare: encoded once.
        if tag not in self._encoded_tags:
            cells = [tags.get(tag) for tags in self.tags]
            values = tuple(sorted({cell for cell in cells if cell is not None}))
            index_of = {None: -1} | {value: index for index, value in enumerate(values)}
            codes = np.fromiter(map(index_of.__getitem__, cells), dtype=np.int64, count=len(cells))
            self._encoded_tags[tag] = values, codes
        return self._encoded_tags[tag]

    @cached_property
    def _encoded_tags(self) -> dict[str, tuple[tuple[str, ...], NDArray[np.int64]]]:
        return {}

    def take(self, rows: NDArray[np.int64]) -> Units:
        """Return only these rows, with their ids and tags."""
        indices = rows.tolist()
        part = replace(
            self,
            ids=tuple(map(self.ids.__getitem__, indices)),
            columns={name: column[rows] for name, column in self.columns.items()},
            tags=tuple(map(self.tags.__getitem__, indices)),
            # What was fitted to all rows stays as it is: a part of them may be too small to be fitted by itself.
            refit=None,
        )
        for tag, (values, codes) in self._encoded_tags.items():
            kept, new_codes = np.unique(codes[rows], return_inverse=True)
            # Without the -1 of rows that lack the tag, which comes first.
            lacking = int(len(kept) > 0 and kept[0] < 0)
            part._encoded_tags[tag] = tuple(values[code] for code in kept[lacking:].tolist()), new_codes - lacking
        return part

    def take_columns(self, rows: NDArray[np.int64]) -> Units:
        """Return only the columns of these rows, which is all that a bootstrap resample needs."""
        # Ids and tags are tuples of Python objects, far slower to copy for each resample than arrays.
        return Units((), {name: column[rows] for name, column in self.columns.items()}, ())

    def drawn(self, rows: NDArray[np.int64]) -> Units:
        """An alias of ``take_columns``, its former name, for one release."""
        warn_of_former_name("Units.drawn", "take_columns")
        return self.take_columns(rows)


@dataclass(frozen=True, eq=False, repr=False)
class Result(ShownRow):
    """The value of a measure, with its confidence interval, its rows and its signature.

    Args:
        group: Which rows: None for all, ``tag=value`` for some, ``macro(tag)`` for the mean over groups.
        value: The value; None if it is undefined.
        low, high: The confidence interval; None if there is none.
        n: The number of rows.
        signature: What is needed to compute the value again.
        reason: Why the value is undefined.
        notes: Remarks for the reader, such as what was excluded.
        units: The rows themselves; None for a mean over groups.
    """

    measure: str
    model: str
    reduction: str
    suite: str
    group: str | None
    value: float | None
    low: float | None
    high: float | None
    n: int
    signature: str
    reason: str | None = None
    notes: tuple[str, ...] = ()
    units: Units | None = field(default=None, repr=False)

    def row(self) -> dict[str, object]:
        """Return the result as one flat row, for JSON and tables."""
        names = ("measure", "model", "reduction", "suite", "group", "value", "low", "high", "n")
        row: dict[str, object] = {name: getattr(self, name) for name in names}
        return row | {"reason": self.reason, "notes": "; ".join(self.notes), "signature": self.signature}
