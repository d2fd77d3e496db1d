"""Labelled sentences as rows of tokens, and which of them go together into a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acceptability.errors import TrainError, shorten
from acceptability.train.classifiers.examples import Examples

_POOL = 16
"""From how many batches' sentences those of like length are put together."""


@dataclass(frozen=True)
class Rows:
    """Sentences as tokens.

    Args:
        cut: How many sentences were longer than a row may be.
    """

    ids: tuple[tuple[int, ...], ...]
    labels: tuple[int, ...]
    cut: int

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def longest(self) -> tuple[int, ...]:
        """The row with the most tokens."""
        return max(self.ids, key=len)


def read_rows(examples: Examples, tokenizer: Any, limit: int, *, cut: bool) -> Rows:
    """Return sentences as the tokenizer frames them; too long ones are cut if that is asked for, else an error."""
    coded = tokenizer(list(examples.texts), verbose=False)["input_ids"]
    long = [place for place, ids in enumerate(coded) if len(ids) > limit]
    if long and not cut:
        each = examples.sentences[long[0]]
        raise TrainError(
            f"{each.id}: {shorten(each.text)!r} has {len(coded[long[0]])} tokens, and {limit} are read at most "
            f"({len(long)} sentences are longer). Set longest=… higher if the model can read more, or cut=true."
        )
    if long:
        coded = tokenizer(list(examples.texts), truncation=True, max_length=limit, verbose=False)["input_ids"]
    return Rows(tuple(map(tuple, coded)), examples.labels, len(long))


def check_ends(rows: Rows, examples: Examples, filler: int) -> None:
    """Refuse sentences whose last token is the one for padding: the head would read another one's state."""
    for ids, each in zip(rows.ids, examples.sentences, strict=True):
        if ids[-1] == filler:
            raise TrainError(
                f"{each.id} ends with the token for padding ({filler}), so that its end cannot be told. "
                "Give the tokenizer a pad_token of its own."
            )


def dealt(lengths: Sequence[int], batch: int, random: np.random.Generator) -> list[list[int]]:
    """Return an epoch's batches: every place once, in random order, with neighbours in length where it can be had.

    >>> dealt([5, 9, 5, 9], 2, np.random.default_rng(0))
    [[1, 3], [2, 0]]
    """
    order, found = random.permutation(len(lengths)), []
    for begin in range(0, len(order), _POOL * batch):
        pool = sorted(order[begin : begin + _POOL * batch].tolist(), key=lambda place: lengths[place])
        found += [pool[first : first + batch] for first in range(0, len(pool), batch)]
    return [found[place] for place in random.permutation(len(found))]
