"""What is probed: sentences that carry the factors, their classes, their items, and the groups they are tested in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import SuiteError, suggestion
from acceptability.probing.splits import ITEM_TAGS, Part, Rows, across, items_of, limited, published, within
from acceptability.types import Sentence, Suite

EVERYTHING = "all"
_MOST_VALUES = 5
_NO_FACTORS = (*ITEM_TAGS, "split", "condition", "context")
_LEAST_ITEMS = 5


@dataclass(frozen=True, eq=False)
class Field:
    """One group of sentences, and what the probes that are tested on it learn from.

    Args:
        trained: On what the probes are trained: "group", the group's own sentences, or "others", those of all others.
    """

    group: str
    trained: str
    rows: Rows
    parts: tuple[Part, ...]


@dataclass(frozen=True, eq=False)
class Design:
    """The sentences of a suite that are probed.

    Args:
        classes: The values of each factor, in alphabetical order; a label is the place of a sentence's value there.
    """

    sentences: tuple[Sentence, ...]
    items: NDArray[np.int64]
    labels: Mapping[str, NDArray[np.int64]]
    classes: Mapping[str, tuple[str, ...]]
    fields: tuple[Field, ...]
    notes: tuple[str, ...]
    cut: str


def factors_of(suite: Suite) -> tuple[str, ...]:
    """Return the tags that seem to be factors: they vary within items, and have few values.

    >>> def sentence(name, number):
    ...     return Sentence(name, name, tags={"item": "1", "number": number, "topic": "cats"})
    >>> factors_of(Suite("s", (sentence("a", "singular"), sentence("b", "plural"))))
    ('number',)
    """
    values: dict[str, set[str]] = {}
    first: dict[tuple[int, str], str] = {}
    varies: set[str] = set()
    items = items_of(suite, suite.sentences).tolist()
    for item, sentence in zip(items, suite.sentences, strict=True):
        for tag, value in sentence.tags.items():
            values.setdefault(tag, set()).add(value)
            if first.setdefault((item, tag), value) != value:
                varies.add(tag)
    return tuple(tag for tag in values if tag in varies - {*_NO_FACTORS} and len(values[tag]) <= _MOST_VALUES)


def designed(
    suite: Suite, factors: Sequence[str], *, by: str | None, held_out: str | None, limit: int | None, seed: int
) -> Design:
    """Return what is probed on a suite; all that can be wrong with it is said here."""
    for tag in (*factors, *filter(None, (by, held_out))):
        _check_tag(suite, tag)
    if not factors:
        raise SuiteError(f"suite {suite.name!r}: which factors? Name the tags that a probe should tell: --factor TAG")
    kept = [each for each in suite.sentences if all(factor in each.tags for factor in factors)]
    notes = _lacking(len(suite.sentences) - len(kept), f"without {' or '.join(factors)}")
    if limit is not None:
        kept, more = _limited(suite, kept, by or held_out, limit, seed)
        notes += more
    splits, items = published(kept), items_of(suite, kept)
    if splits is None and any("split" in each.tags for each in kept):
        notes += ("the tag split does not say train, dev or test of every sentence: five folds of items instead",)
    fields = [*_within(kept, items, splits, by, held_out, seed), *_across(kept, items, splits, held_out, seed)]
    for each in fields:
        _check_field(suite, each)
    outside = sum(by not in each.tags for each in kept) if by else 0
    classes = {factor: tuple(sorted({each.tags[factor] for each in kept})) for factor in factors}
    labels = {
        factor: np.array([classes[factor].index(each.tags[factor]) for each in kept], np.int64) for factor in factors
    }
    cut = "published" if splits is not None else "folds(5,by=item)"
    notes += _lacking(outside, f"without {by}")
    return Design(tuple(kept), items, labels, classes, tuple(fields), notes, cut)


def _check_tag(suite: Suite, tag: str) -> None:
    has = sorted({name for each in suite.sentences for name in each.tags})
    if tag not in has:
        shown = ", ".join(has) or "none"
        raise SuiteError(
            f"no sentence of suite {suite.name!r} has the tag {tag!r}; they have {shown}.{suggestion(tag, has)}"
        )


def _lacking(count: int, what: str) -> tuple[str, ...]:
    return (f"{count} sentences {what} left out",) if count else ()


def _limited(
    suite: Suite, sentences: Sequence[Sentence], by: str | None, limit: int, seed: int
) -> tuple[list[Sentence], tuple[str, ...]]:
    groups = list(_groups(sentences, by).values())
    rows = limited(groups, items_of(suite, sentences), published(sentences), limit, seed)
    what = f"of each {by}" if by else "in all"
    drawn = f"whole items drawn with seed {seed}: {len(rows)} of {len(sentences)}"
    note = f"limited to at most {limit} sentences {what}, {drawn}"
    return [sentences[row] for row in rows], (note,)


def _groups(sentences: Sequence[Sentence], by: str | None) -> dict[str, Rows]:
    if by is None:
        return {EVERYTHING: np.arange(len(sentences))}
    found: dict[str, list[int]] = {}
    for row, each in enumerate(sentences):
        if by in each.tags:
            found.setdefault(each.tags[by], []).append(row)
    return {name: np.array(rows) for name, rows in found.items()}


def _within(
    sentences: Sequence[Sentence],
    items: NDArray[np.int64],
    splits: NDArray[np.str_] | None,
    by: str | None,
    held_out: str | None,
    seed: int,
) -> list[Field]:
    if by is None and held_out is not None:
        return []
    groups = _groups(sentences, by)
    return [Field(name, "group", rows, tuple(within(rows, items, splits, seed))) for name, rows in groups.items()]


def _across(
    sentences: Sequence[Sentence],
    items: NDArray[np.int64],
    splits: NDArray[np.str_] | None,
    held_out: str | None,
    seed: int,
) -> list[Field]:
    if held_out is None:
        return []
    groups = _groups(sentences, held_out)
    if len(groups) < 2:
        raise SuiteError(f"all sentences have {held_out}={next(iter(groups), '')!r}: there are no others to learn from")
    everyone = np.concatenate(list(groups.values()))
    return [
        Field(name, "others", rows, tuple(across(rows, np.setdiff1d(everyone, rows), items, splits, seed)))
        for name, rows in groups.items()
    ]


def _check_field(suite: Suite, field: Field) -> None:
    for part in field.parts:
        rest = len(np.setdiff1d(part.train, part.held_out))
        if not (rest and len(part.held_out) and len(part.test)):
            raise SuiteError(
                f"suite {suite.name!r}, {field.group}: {rest} sentences to learn from, {len(part.held_out)} to choose "
                f"a penalty on and {len(part.test)} to test on. A probe needs some of each: at least {_LEAST_ITEMS} "
                "items (tag item, set or paradigm), or a tag split that says train, dev and test."
            )
