"""What a suite asks a model: each different query once, made when it is needed.

A request holds sixteen bytes and a few numbers for each sentence, and no copy of the suite.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import SuiteError
from acceptability.types import Query, Sentence, Suite

_DIGEST = "S16"


class Request(Sequence[Query]):
    """The different queries of a suite, in the order in which they first stand there.

    Args:
        region: Ask only about the region of this name.
        against_rivals: Ask about each sentence against the others that it is contrasted with.
    """

    def __init__(self, suite: Suite, region: str | None = None, *, against_rivals: bool = False) -> None:
        self._suite, self._region = suite, region
        self._asked = _rivals(suite) if against_rivals else None
        count = len(self._asked) if self._asked is not None else len(suite.sentences)
        joined = b"".join(self._query(place).key for place in range(count))
        keys = np.frombuffer(joined, dtype=_DIGEST)
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self._first = first[order]
        number = np.empty_like(order)
        number[order] = np.arange(len(order))
        # Sentences with the same query, one after another, and where each query's begin.
        groups = np.argsort(number[which], kind="stable")
        self._sentences = array("q", (groups if self._asked is None else self._asked[groups, 0]).astype("i8").tobytes())
        counts = np.bincount(number[which], minlength=len(order))
        self._begin = array("q", np.append(0, np.cumsum(counts)).astype("i8").tobytes())
        self.keys = _Keys(joined, self._first)

    def __len__(self) -> int:
        return len(self._first)

    @overload
    def __getitem__(self, place: int) -> Query: ...
    @overload
    def __getitem__(self, place: slice) -> list[Query]: ...
    def __getitem__(self, place: int | slice) -> Query | list[Query]:
        if isinstance(place, slice):
            return [self._query(each) for each in self._first[place].tolist()]
        return self._query(int(self._first[place]))

    def _query(self, place: int) -> Query:
        """Return the query at a place among all, of which some may be the same."""
        if self._asked is None:
            return _query(self._suite.sentences[place], self._region)
        sentence, rival = (self._suite.sentences[each] for each in self._asked[place])
        return replace(_query(sentence, self._region), rival=rival.text)

    def sentences(self, place: int) -> list[int]:
        """Return which sentences of the suite ask the query at a place."""
        return self._sentences[self._begin[place] : self._begin[place + 1]].tolist()


class _Keys(Sequence[bytes]):
    """The keys of the queries, in their order."""

    def __init__(self, joined: bytes, first: NDArray[np.int64]) -> None:
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


def _rivals(suite: Suite) -> NDArray[np.int64]:
    """Return the places of each sentence and of one that it is contrasted with; there must be one for each."""
    places = {sentence.id: place for place, sentence in enumerate(suite.sentences)}
    pairs = [(places[each.better], places[each.worse]) for each in suite.contrasts]
    asked = sorted(pairs + [(worse, better) for better, worse in pairs])
    if alone := sorted(set(range(len(suite.sentences))) - {place for place, _ in asked}):
        raise SuiteError(
            f"suite {suite.name!r}: sentence {suite.sentences[alone[0]].id!r} stands in no contrast, and the model "
            "weighs each sentence against another. Take a method that judges sentences one by one, or leave such "
            "sentences out."
        )
    return np.array(asked, np.int64)


def _query(sentence: Sentence, region: str | None) -> Query:
    context = sentence.tags.get("context", "")
    if region is None:
        return Query(sentence.text, context)
    if region not in sentence.regions:
        has = ", ".join(sentence.regions) or "none"
        raise SuiteError(f"sentence {sentence.id!r} has no region {region!r}; its regions: {has}")
    return Query(sentence.text, context, sentence.regions[region])
