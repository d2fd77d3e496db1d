"""The nouns: what flows from a suite to a result. Frozen data, checked when built."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ScoreError, SuiteError, shorten
from acceptability.signature import fingerprint_of_lines

Floats: TypeAlias = NDArray[np.float64]
Tags: TypeAlias = Mapping[str, str]
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a suite.

    Args:
        label: 1 if acceptable, 0 if not, None if nobody said.
        rating: What people gave it on average, None if nobody rated it. The tag
            ``rating_unit`` is ``z`` where ratings are already in z units.
        regions: Named parts of the text, each as (start, end) in characters.
        tags: What groups it with others: phenomenon, source, domain, condition, item, set, ...
    """

    id: str
    text: str
    label: int | None = None
    rating: float | None = None
    regions: Mapping[str, Span] = field(default_factory=dict, hash=False)
    tags: Tags = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.id or self.id != self.id.strip() or any(ord(each) < 32 for each in self.id):
            raise SuiteError(f"sentence id {self.id!r} is empty, padded, or has a control character in it")
        if not _is_unicode("".join((self.id, self.text, *self.regions, *self.tags, *self.tags.values()))):
            raise SuiteError(f"sentence {self.id!a}: half of a surrogate pair is no character. Save the file as UTF-8.")
        if not self.text.strip():
            raise SuiteError(f"sentence {self.id!r} is empty. Give it a text or remove its row.")
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
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Contrast:
    """Two sentences, named by id, of which people find one better."""

    better: str
    worse: str
    tags: Tags = field(default_factory=dict, hash=False)

    @property
    def id(self) -> str:
        """The name under which the contrast stands in tables."""
        return f"{self.better} > {self.worse}"


def contrast(better: Sentence, worse: Sentence) -> Contrast:
    """Return the contrast of two sentences, with the tags that they share.

    >>> good = Sentence("a", "Cats sleep.", tags={"item": "1", "mark": ""})
    >>> bad = Sentence("b", "Cats sleeps.", tags={"item": "1", "mark": "*"})
    >>> contrast(good, bad).tags
    {'item': '1'}
    """
    if better.tags is worse.tags:
        return Contrast(better.id, worse.id, better.tags)
    shared = {key: value for key, value in better.tags.items() if worse.tags.get(key) == value}
    return Contrast(better.id, worse.id, shared)


@dataclass(frozen=True)
class Suite:
    """Sentences, and the contrasts between them.

    >>> Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    Suite('two', 2 sentences, 1 contrasts)
    """

    name: str
    sentences: tuple[Sentence, ...]
    contrasts: tuple[Contrast, ...] = ()

    def __post_init__(self) -> None:
        if not self.sentences:
            raise SuiteError(f"suite {self.name!r} has no sentences")
        if len(self.by_id) < len(self.sentences):
            twice = next(name for name, count in Counter(each.id for each in self.sentences).items() if count > 1)
            raise SuiteError(f"suite {self.name!r}: two sentences have the id {twice!r}. Ids must be unique.")
        pairs: set[tuple[str, str]] = set()
        for each in self.contrasts:
            self._check(each)
            if (each.better, each.worse) in pairs:
                raise SuiteError(f"suite {self.name!r}: the contrast {each.id} stands there twice")
            pairs.add((each.better, each.worse))

    def _check(self, each: Contrast) -> None:
        for member in (each.better, each.worse):
            if member not in self.by_id:
                raise SuiteError(
                    f"suite {self.name!r}: the contrast {each.id} names {member!r}, which is no sentence of the suite"
                )
        if each.better == each.worse:
            raise SuiteError(f"suite {self.name!r}: {each.better!r} is contrasted with itself")

    @cached_property
    def by_id(self) -> Mapping[str, Sentence]:
        """The sentences, by their ids."""
        return {each.id: each for each in self.sentences}

    @cached_property
    def hash(self) -> str:
        """A fingerprint of all that the suite says; its name and its order are not part of it."""
        # Rows are put in alphabetical order, for which their beginnings suffice: no two are alike.
        sentences = sorted(self.sentences, key=lambda each: json.dumps(each.id))
        contrasts = sorted(self.contrasts, key=lambda each: json.dumps([each.better, each.worse]))
        return fingerprint_of_lines(lambda: map(_canonical, sentences), lambda: map(_canonical_pair, contrasts))

    @property
    def signature(self) -> str:
        """The suite's name and fingerprint."""
        return f"{self.name}#{self.hash}"

    @cached_property
    def tag_names(self) -> tuple[str, ...]:
        """Every tag that some sentence or contrast carries, in alphabetical order."""
        return tuple(sorted({key for tags in self._all_tags() for key in tags}))

    def _all_tags(self) -> Iterator[Tags]:
        yield from (each.tags for each in self.sentences)
        yield from (each.tags for each in self.contrasts)

    def __repr__(self) -> str:
        return f"Suite({self.name!r}, {len(self.sentences)} sentences, {len(self.contrasts)} contrasts)"


def _canonical(each: Sentence) -> str:
    row = [
        each.id,
        each.text,
        each.label,
        each.rating,
        sorted(each.regions.items()),
        sorted(each.tags.items()),
    ]
    return json.dumps(row, ensure_ascii=True)


def _canonical_pair(each: Contrast) -> str:
    return json.dumps([each.better, each.worse, sorted(each.tags.items())])


def _framed(part: str) -> bytes:
    coded = part.encode("utf-8", "surrogatepass")
    return len(coded).to_bytes(8, "big") + coded


_NOTHING = _framed("")


@dataclass(frozen=True, slots=True)
class Query:
    """What a model is asked: a text, perhaps after a context, perhaps only about a part of it.

    Args:
        context: Text before it, which conditions the model but is not scored.
        target: The characters (start, end) to be scored; None means the whole text.
            A masked model masks all tokens of the target together.
        rival: The other sentence of a contrast, for a model that weighs two against each other.
    """

    text: str
    context: str = ""
    target: Span | None = None
    rival: str = ""

    @property
    def full(self) -> str:
        """Context and text as the model reads them: one space between the two."""
        if not self.context or self.context[-1].isspace():
            return self.context + self.text
        return f"{self.context} {self.text}"

    @property
    def start(self) -> int:
        """Where the text begins in ``full``."""
        return len(self.full) - len(self.text)

    @property
    def key(self) -> bytes:
        """A fingerprint that tells this query from all others."""
        # A rival is added only where there is one: what is stored for other queries keeps its key.
        told = _framed(self.text) + (_framed(self.context) if self.context else _NOTHING)
        for part in (*(self.target or ()), *([self.rival] if self.rival else ())):
            told += _framed(str(part))
        return hashlib.sha256(told).digest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """What a language model said to one query.

    Args:
        text: The query's text, which the offsets point into.
        tokens: The scored tokens, in the model's own spelling.
        offsets: Where each token stands in the text: (start, end) in characters.
        logprobs: Their natural-log probabilities, as float32.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[Span, ...]
    logprobs: NDArray[np.float32]

    def __post_init__(self) -> None:
        if not len(self.tokens) == len(self.offsets) == len(self.logprobs):
            raise ScoreError(f"{shorten(self.text)!r}: tokens, offsets and log-probabilities differ in number")
        if not len(self.tokens):
            raise ScoreError(f"{shorten(self.text)!r}: the model scored no token of it")
        # A product with itself is finite only if every number is, and takes the least time to say so.
        if not math.isfinite(self.logprobs.dot(self.logprobs)):
            raise ScoreError(f"{shorten(self.text)!r}: the model gave a log-probability that is not finite")


@dataclass(frozen=True, slots=True, eq=False)
class LabelScores:
    """What a classifier said to one query: the logits of (unacceptable, acceptable)."""

    text: str
    logits: tuple[float, float]

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, self.logits)):
            raise ScoreError(f"{shorten(self.text)!r}: the classifier gave a logit that is not finite")


Said: TypeAlias = TokenScores | LabelScores


@dataclass(frozen=True, eq=False)
class Scores:
    """One finite number per sentence, and who gave it.

    Keys are sentence ids; scores of several regions of a sentence have the keys ``id#region``.
    Notes say what was left out.

    >>> Scores({"a": -3.5}, model="toy")["a"]
    -3.5
    """

    values: Mapping[str, float]
    model: str
    reduction: str = ""
    signature: str = ""
    notes: tuple[str, ...] = ()

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
                f"There are scores for {len(self.values)} sentences."
            ) from None

    def of(self, ids: Iterable[str]) -> Floats:
        """Return the scores of several sentences."""
        return np.array([self[each] for each in ids], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Units:
    """The rows that a measure counts: contrasts, sentences or items.

    Args:
        ids: What each row is called.
        columns: What the measure needs of each row, as arrays of equal length.
        tags: The tags of each row, for grouping and for resampling by cluster.
        notes: What was left out, and why.
    """

    ids: tuple[str, ...]
    columns: Mapping[str, Floats]
    tags: tuple[Tags, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.ids)

    def __getitem__(self, column: str) -> Floats:
        return self.columns[column]

    def take(self, rows: NDArray[np.int64]) -> Units:
        """Return only these rows, with all that belongs to them."""
        return replace(
            self,
            ids=tuple(self.ids[row] for row in rows),
            columns={name: column[rows] for name, column in self.columns.items()},
            tags=tuple(self.tags[row] for row in rows),
        )

    def drawn(self, rows: NDArray[np.int64]) -> Units:
        """Return only the columns of these rows: all that a resample needs."""
        return Units((), {name: column[rows] for name, column in self.columns.items()}, ())


@dataclass(frozen=True, eq=False)
class Result:
    """A number, its interval, its rows and its signature.

    Args:
        value: The number; None where it is undefined, and ``reason`` says why.
        low, high: The confidence interval, None where there is none.
        n: How many rows it rests on.
        group: Which rows: None for all, ``tag=value`` for some, ``macro(tag)`` for the mean of groups.
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
