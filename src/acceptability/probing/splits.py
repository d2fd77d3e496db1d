"""Which sentences a probe learns from, and which it is tested on: no item is on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.types import Sentence, Suite

Rows = NDArray[np.int64]

ITEM_TAGS = ("set", "item", "paradigm")
"""The tags that say which sentences share an item, the first one that a sentence has."""

_NAMES = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test", "test_full": "test"}
_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Part:
    """One training and its test.

    Args:
        train: What the probe learns from.
        held_out: What the strength of its penalty is chosen on, by a probe that learns from ``train`` without it.
    """

    train: Rows
    held_out: Rows
    test: Rows


def items_of(suite: Suite, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
    """Return the number of each sentence's item; the two sentences of a contrast are of one item in any case."""
    names = {each.id: _item(each) for each in suite.sentences}
    leader: dict[str, str] = {}

    def leading(name: str) -> str:
        while leader.get(name, name) != name:
            name = leader[name]
        return name

    for each in suite.contrasts:
        leader[leading(names[each.better])] = leading(names[each.worse])
    numbers: dict[str, int] = {}
    found = [numbers.setdefault(leading(names[each.id]), len(numbers)) for each in sentences]
    return np.array(found, np.int64)


def _item(sentence: Sentence) -> str:
    tag = next((tag for tag in ITEM_TAGS if tag in sentence.tags), None)
    return f"{tag}={sentence.tags[tag]}" if tag else f"id={sentence.id}"


def published(sentences: Sequence[Sentence]) -> NDArray[np.str_] | None:
    """Return "train", "dev" or "test" for each sentence, if the tag ``split`` says so for all and has a test part."""
    found = [_NAMES.get(each.tags.get("split", ""), "") for each in sentences]
    return np.array(found) if {"train", "test"} <= set(found) and "" not in found else None


def within(rows: Rows, items: NDArray[np.int64], splits: NDArray[np.str_] | None, seed: int) -> list[Part]:
    """Return how the sentences of a group are learnt from and tested: the published split, else five folds of items."""
    if splits is not None:
        return [_as_published(rows, rows, items, splits, seed)]
    folds = _dealt(items[rows], _FOLDS, seed)
    return [
        _with_held_out(rows[folds != number], items, rows[folds == number], seed)
        for number in range(_FOLDS)
        if (folds == number).any()
    ]


def across(
    rows: Rows, others: Rows, items: NDArray[np.int64], splits: NDArray[np.str_] | None, seed: int
) -> list[Part]:
    """Return how a group is tested by what was learnt from all other groups."""
    if splits is not None:
        return [_as_published(others, rows, items, splits, seed)]
    return [_with_held_out(others[~np.isin(items[others], items[rows])], items, rows, seed)]


def limited(
    groups: Sequence[Rows], items: NDArray[np.int64], splits: NDArray[np.str_] | None, most: int, seed: int
) -> Rows:
    """Return at most so many sentences of each group: whole items, drawn at random, from each split its share."""
    kept: list[Rows] = []
    for rows in groups:
        parts = [rows] if splits is None else [rows[splits[rows] == name] for name in ("train", "dev", "test")]
        for part in parts:
            kept += _drawn(part, items, most * len(part) / len(rows), seed)
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, np.int64)


def _drawn(rows: Rows, items: NDArray[np.int64], most: float, seed: int) -> Iterator[Rows]:
    """Yield the sentences of items in a random order, as long as there are no more than wanted."""
    different, which = np.unique(items[rows], return_inverse=True)
    members = np.split(rows[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1])
    count = 0
    for number in np.random.default_rng(seed).permutation(len(different)):
        count += len(members[number])
        if count > most:
            return
        yield members[number]


def _as_published(learnt: Rows, tested: Rows, items: NDArray[np.int64], splits: NDArray[np.str_], seed: int) -> Part:
    train, dev = learnt[splits[learnt] == "train"], learnt[splits[learnt] == "dev"]
    test = tested[splits[tested] == "test"]
    return Part(train, dev, test) if len(dev) else _with_held_out(train, items, test, seed)


def _with_held_out(train: Rows, items: NDArray[np.int64], test: Rows, seed: int) -> Part:
    return Part(train, train[_dealt(items[train], _FOLDS, seed + 1) == 0], test)


def _dealt(items: NDArray[np.int64], folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row: different items are shuffled and dealt out in turn."""
    different, which = np.unique(items, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(different))
    return np.asarray(order[which] % folds)
