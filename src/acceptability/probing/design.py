"""The design of a probing experiment: its sentences, their classes, and the splits for training and test.

`make_design` turns a suite into groups of sentences with splits. Splits follow the published tag ``split`` where every
sentence has one; otherwise they are five-fold cross-validation over items. Sentences of one item (a pair or paradigm)
are never on both sides of a split, since they share most of their words: a probe could recognise the item rather than
the factor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import SuiteError, suggest_name
from acceptability.types import Sentence, Suite

RowIndices = NDArray[np.int64]

ALL_SENTENCES = "all"
"""The name of the group of all sentences, where there are no groups."""

ITEM_TAGS = ("set", "item", "paradigm")
"""The tags that name a sentence's item; the first one that a sentence has counts."""

# Tags that vary within items without being a linguistic factor: they number, split or describe the sentences.
_NON_FACTOR_TAGS = (*ITEM_TAGS, "split", "condition", "context")
# A tag with more values is rather free text, such as the noun that fills a slot, than a factor.
_MAX_VALUES = 5
_FOLDS = 5
_MIN_ITEMS = 5

# The names of parts in published suites; "test_full" is that of the NPI suite.
_SPLIT_NAMES = {
    "train": "train",
    "dev": "dev",
    "valid": "dev",
    "validation": "dev",
    "test": "test",
    "test_full": "test",
}


@dataclass(frozen=True, eq=False)
class ProbeSplit:
    """The rows of one training and test.

    Args:
        train: The training sentences.
        held_out: The sentences that the penalty is chosen on, by probes trained on the others of ``train``; a part of
            ``train``, or a published dev set beside it.
        test: The test sentences.
    """

    train: RowIndices
    held_out: RowIndices
    test: RowIndices


@dataclass(frozen=True, eq=False)
class ProbeGroup:
    """One group of sentences, with the splits of the probes that are tested on it.

    Args:
        trained_on: "group" where probes are trained on the group's own sentences, "others" where on all other groups'.
        rows: The group's sentences.
    """

    name: str
    trained_on: str
    rows: RowIndices
    splits: tuple[ProbeSplit, ...]


@dataclass(frozen=True, eq=False)
class ProbingDesign:
    """The sentences of a suite that are probed, with labels and splits.

    Args:
        items: The number of each sentence's item.
        labels: For each factor the class of each sentence, an index into ``classes``.
        classes: The values of each factor, in alphabetical order.
        notes: What was left out, and why.
        split_method: "published" or "folds(5,by=item)", for the signature.
    """

    sentences: tuple[Sentence, ...]
    items: NDArray[np.int64]
    labels: Mapping[str, NDArray[np.int64]]
    classes: Mapping[str, tuple[str, ...]]
    groups: tuple[ProbeGroup, ...]
    notes: tuple[str, ...]
    split_method: str


def find_factors(suite: Suite) -> tuple[str, ...]:
    """Return the tags that are probably factors: they vary within items, and have at most five values.

    >>> def sentence(name, number):
    ...     return Sentence(name, name, tags={"item": "1", "number": number, "topic": "cats"})
    >>> find_factors(Suite("s", (sentence("a", "singular"), sentence("b", "plural"))))
    ('number',)
    """
    values: dict[str, set[str]] = {}
    first_values: dict[tuple[int, str], str] = {}
    varying_tags: set[str] = set()
    items = number_items(suite, suite.sentences).tolist()
    for item, sentence in zip(items, suite.sentences, strict=True):
        for tag, value in sentence.tags.items():
            values.setdefault(tag, set()).add(value)
            if first_values.setdefault((item, tag), value) != value:
                varying_tags.add(tag)
    return tuple(tag for tag in values if tag in varying_tags - {*_NON_FACTOR_TAGS} and len(values[tag]) <= _MAX_VALUES)


def make_design(
    suite: Suite, factors: Sequence[str], *, by: str | None, held_out: str | None, limit: int | None, seed: int
) -> ProbingDesign:
    """Return the design of probing a suite.

    Args:
        factors: The tags to predict; sentences that lack one are left out.
        by: A tag whose groups have probes of their own.
        held_out: A tag whose groups are tested by probes that were trained on all other groups.
        limit: The largest number of sentences per group.
        seed: Seeds the sample and the folds.

    Raises:
        SuiteError: A tag is unknown, or a split has too few sentences.
    """
    for tag in (*factors, *filter(None, (by, held_out))):
        _check_tag(suite, tag)
    if not factors:
        raise SuiteError(f"suite {suite.name!r}: which factors? Name the tags that probes should predict: --factor TAG")
    sentences = [sentence for sentence in suite.sentences if all(factor in sentence.tags for factor in factors)]
    notes = _note_omitted(len(suite.sentences) - len(sentences), f"without {' or '.join(factors)}")
    if limit is not None:
        sentences, limit_notes = _limit_sentences(suite, sentences, by or held_out, limit, seed)
        notes += limit_notes
    published_splits, items = read_published_splits(sentences), number_items(suite, sentences)
    if published_splits is None and any("split" in sentence.tags for sentence in sentences):
        notes += ("the tag split is not train, dev or test for every sentence: five folds of items instead",)
    groups = [
        *_make_own_groups(sentences, items, published_splits, by, held_out, seed),
        *_make_held_out_groups(sentences, items, published_splits, held_out, seed),
    ]
    for group in groups:
        _check_group(suite, group)
    ungrouped_count = sum(by not in sentence.tags for sentence in sentences) if by else 0
    # Sorted, so that the labels do not depend on the order of the sentences.
    classes = {factor: tuple(sorted({sentence.tags[factor] for sentence in sentences})) for factor in factors}
    labels = {
        factor: np.array([classes[factor].index(sentence.tags[factor]) for sentence in sentences], np.int64)
        for factor in factors
    }
    split_method = "published" if published_splits is not None else "folds(5,by=item)"
    notes += _note_omitted(ungrouped_count, f"without {by}")
    return ProbingDesign(tuple(sentences), items, labels, classes, tuple(groups), notes, split_method)


def _check_tag(suite: Suite, tag: str) -> None:
    known_tags = sorted({name for sentence in suite.sentences for name in sentence.tags})
    if tag not in known_tags:
        listed = ", ".join(known_tags) or "none"
        hint = suggest_name(tag, known_tags)
        raise SuiteError(f"no sentence of suite {suite.name!r} has the tag {tag!r}; they have {listed}.{hint}")


def _note_omitted(count: int, description: str) -> tuple[str, ...]:
    return (f"{count} sentences {description} left out",) if count else ()


def _limit_sentences(
    suite: Suite, sentences: Sequence[Sentence], by: str | None, limit: int, seed: int
) -> tuple[list[Sentence], tuple[str, ...]]:
    groups = list(_group_rows(sentences, by).values())
    rows = sample_whole_items(groups, number_items(suite, sentences), read_published_splits(sentences), limit, seed)
    scope = f"of each {by}" if by else "in all"
    sampling_note = f"whole items drawn with seed {seed}: {len(rows)} of {len(sentences)}"
    note = f"limited to at most {limit} sentences {scope}, {sampling_note}"
    return [sentences[row] for row in rows], (note,)


def _group_rows(sentences: Sequence[Sentence], by: str | None) -> dict[str, RowIndices]:
    if by is None:
        return {ALL_SENTENCES: np.arange(len(sentences))}
    rows_by_group: dict[str, list[int]] = {}
    for row, sentence in enumerate(sentences):
        if by in sentence.tags:
            rows_by_group.setdefault(sentence.tags[by], []).append(row)
    return {name: np.array(rows) for name, rows in rows_by_group.items()}


def _make_own_groups(
    sentences: Sequence[Sentence],
    items: NDArray[np.int64],
    splits: NDArray[np.str_] | None,
    by: str | None,
    held_out: str | None,
    seed: int,
) -> list[ProbeGroup]:
    # With held-out groups only, probes of all sentences together were not requested.
    if by is None and held_out is not None:
        return []
    groups = _group_rows(sentences, by)
    return [
        ProbeGroup(name, "group", rows, tuple(make_group_splits(rows, items, splits, seed)))
        for name, rows in groups.items()
    ]


def _make_held_out_groups(
    sentences: Sequence[Sentence],
    items: NDArray[np.int64],
    splits: NDArray[np.str_] | None,
    held_out: str | None,
    seed: int,
) -> list[ProbeGroup]:
    if held_out is None:
        return []
    groups = _group_rows(sentences, held_out)
    if len(groups) < 2:
        raise SuiteError(f"all sentences have {held_out}={next(iter(groups), '')!r}: there are no others to train on")
    all_rows = np.concatenate(list(groups.values()))
    return [
        ProbeGroup(
            name, "others", rows, tuple(make_held_out_splits(rows, np.setdiff1d(all_rows, rows), items, splits, seed))
        )
        for name, rows in groups.items()
    ]


def _check_group(suite: Suite, group: ProbeGroup) -> None:
    for split in group.splits:
        train_count = len(np.setdiff1d(split.train, split.held_out))
        if not (train_count and len(split.held_out) and len(split.test)):
            raise SuiteError(
                f"suite {suite.name!r}, {group.name}: {train_count} sentences to train on, {len(split.held_out)} to "
                f"choose a penalty on and {len(split.test)} to test on. A probe needs some of each: at least "
                f"{_MIN_ITEMS} items (tag item, set or paradigm), or a tag split with the values train, dev and test."
            )


def number_items(suite: Suite, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
    """Return the number of each sentence's item; sentences of one contrast are of one item, whatever their tags."""
    keys = {sentence.id: _make_item_key(sentence) for sentence in suite.sentences}
    # Union-find: contrasts chain sentences, so that a and c are of one item if both are in a contrast with b.
    parent: dict[str, str] = {}

    def find_root(key: str) -> str:
        while parent.get(key, key) != key:
            key = parent[key]
        return key

    for contrast in suite.contrasts:
        parent[find_root(keys[contrast.better])] = find_root(keys[contrast.worse])
    numbers: dict[str, int] = {}
    item_numbers = [numbers.setdefault(find_root(keys[sentence.id]), len(numbers)) for sentence in sentences]
    return np.array(item_numbers, np.int64)


def _make_item_key(sentence: Sentence) -> str:
    tag = next((tag for tag in ITEM_TAGS if tag in sentence.tags), None)
    return f"{tag}={sentence.tags[tag]}" if tag else f"id={sentence.id}"


def read_published_splits(sentences: Sequence[Sentence]) -> NDArray[np.str_] | None:
    """Return "train", "dev" or "test" for each sentence by its tag ``split``, or None.

    None if a sentence has no such tag or another value, or if there is no training or no test part.
    """
    split_names = [_SPLIT_NAMES.get(sentence.tags.get("split", ""), "") for sentence in sentences]
    return np.array(split_names) if {"train", "test"} <= set(split_names) and "" not in split_names else None


def make_group_splits(
    rows: RowIndices, items: NDArray[np.int64], splits: NDArray[np.str_] | None, seed: int
) -> list[ProbeSplit]:
    """Return the splits of a group's own sentences: the published split, else five folds of items."""
    if splits is not None:
        return [_make_published_split(rows, rows, items, splits, seed)]
    folds = _assign_folds(items[rows], _FOLDS, seed)
    return [
        _make_split(rows[folds != number], items, rows[folds == number], seed)
        for number in range(_FOLDS)
        if (folds == number).any()
    ]


def make_held_out_splits(
    rows: RowIndices, other_rows: RowIndices, items: NDArray[np.int64], splits: NDArray[np.str_] | None, seed: int
) -> list[ProbeSplit]:
    """Return the split that tests a group by probes trained on all other groups."""
    if splits is not None:
        return [_make_published_split(other_rows, rows, items, splits, seed)]
    # An item can have sentences in several groups: those of the tested items are left out of the training.
    return [_make_split(other_rows[~np.isin(items[other_rows], items[rows])], items, rows, seed)]


def sample_whole_items(
    groups: Sequence[RowIndices],
    items: NDArray[np.int64],
    splits: NDArray[np.str_] | None,
    max_sentences: int,
    seed: int,
) -> RowIndices:
    """Return a random sample of whole items, of at most ``max_sentences`` sentences per group.

    Train, dev and test keep their proportions.
    """
    sampled: list[RowIndices] = []
    for rows in groups:
        parts = [rows] if splits is None else [rows[splits[rows] == name] for name in ("train", "dev", "test")]
        for part in parts:
            sampled += _sample_items(part, items, max_sentences * len(part) / len(rows), seed)
    return np.sort(np.concatenate(sampled)) if sampled else np.zeros(0, np.int64)


def _sample_items(rows: RowIndices, items: NDArray[np.int64], max_sentences: float, seed: int) -> Iterator[RowIndices]:
    """Yield the sentences of items in random order, until the next item would exceed the limit."""
    distinct_items, item_index = np.unique(items[rows], return_inverse=True)
    members = np.split(rows[np.argsort(item_index, kind="stable")], np.cumsum(np.bincount(item_index))[:-1])
    count = 0
    for number in np.random.default_rng(seed).permutation(len(distinct_items)):
        count += len(members[number])
        # Not skipping to a later item that would still fit, which would favour small items.
        if count > max_sentences:
            return
        yield members[number]


def _make_published_split(
    train_rows: RowIndices, test_rows: RowIndices, items: NDArray[np.int64], splits: NDArray[np.str_], seed: int
) -> ProbeSplit:
    train, dev = train_rows[splits[train_rows] == "train"], train_rows[splits[train_rows] == "dev"]
    test = test_rows[splits[test_rows] == "test"]
    return ProbeSplit(train, dev, test) if len(dev) else _make_split(train, items, test, seed)


def _make_split(train: RowIndices, items: NDArray[np.int64], test: RowIndices, seed: int) -> ProbeSplit:
    # Another seed than that of the test folds, so that the held-out items are drawn independently of them.
    return ProbeSplit(train, train[_assign_folds(items[train], _FOLDS, seed + 1) == 0], test)


def _assign_folds(items: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row; items are shuffled and assigned to folds in turn."""
    distinct_items, item_index = np.unique(items, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(distinct_items))
    return np.asarray(order[item_index] % folds)
