"""What a suite asks a model: each different query once, made when it is needed.

A request holds sixteen bytes and two numbers for each sentence, and no copy of the suite.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import numpy as np

from acceptability.errors import SuiteError
from acceptability.types import Query, Sentence, Suite

_DIGEST = "S16"


class Request(Sequence[Query]):
    """The different queries of a suite, in the order in which they first stand there.

    Args:
        region: Ask only about the region of this name.
    """

    def __init__(self, suite: Suite, region: str | None = None) -> None:
        self._suite, self._region = suite, region
        joined = b"".join(_query(sentence, region).key for sentence in suite.sentences)
        keys = np.frombuffer(joined, dtype=_DIGEST)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self._first = first[order]
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        # Sentences with the same query, one after another, and where each query's begin.
        self._sentences = np.argsort(number[which], kind="stable")
        self._begin = np.append(0, np.cumsum(np.bincount(number[which], minlength=len(order))))
        self.keys = _Keys(joined, self._first)

    def __len__(self) -> int:
        return len(self._first)

    @overload
    def __getitem__(self, place: int) -> Query: ...
    @overload
    def __getitem__(self, place: slice) -> list[Query]: ...
    def __getitem__(self, place: int | slice) -> Query | list[Query]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return _query(self._suite.sentences[self._first[place]], self._region)

    def sentences(self, place: int) -> list[int]:
        """Return which sentences of the suite ask the query at a place."""
        return [int(each) for each in self._sentences[self._begin[place] : self._begin[place + 1]]]


class _Keys(Sequence[bytes]):
    """The keys of the queries, in their order."""

    def __init__(self, joined: bytes, first: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        self._joined, self._first = joined, first

    def __len__(self) -> int:
        return len(self._first)

    @overload
    def __getitem__(self, place: int) -> bytes: ...
    @overload
    def __getitem__(self, place: slice) -> list[bytes]: ...
    def __getitem__(self, place: int | slice) -> bytes | list[bytes]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        start = 16 * int(self._first[place])
        return self._joined[start : start + 16]


def _query(sentence: Sentence, region: str | None) -> Query:
    context = sentence.tags.get("context", "")
    if region is None:
        return Query(sentence.text, context)
    if region not in sentence.regions:
        has = ", ".join(sentence.regions) or "none"
        raise SuiteError(f"sentence {sentence.id!r} has no region {region!r}; its regions: {has}")
    return Query(sentence.text, context, sentence.regions[region])
