"""The engine of this machine: what is begun before what is collected, and what a caller leaves behind who stops."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from acceptability.engine import local
from acceptability.errors import OutOfMemory, QueryError
from acceptability.types import Query, TokenScores


@dataclass(frozen=True)
class Word:
    query: Query
    size: int = 1


@dataclass
class Noting:
    """A model that notes when a batch is begun and when it is collected, and whether Python searches for cycles."""

    budget: int = 1
    signature: str = "noting"
    notes: list[tuple[str, str]] = field(default_factory=list)
    searched: list[bool] = field(default_factory=list)
    fails_at: str = ""

    def encode(self, queries: Sequence[Query]) -> list[Word]:
        return [Word(query) for query in queries]

    def begin(self, batch: Sequence[Word]) -> Callable[[], list[TokenScores]]:
        name = "".join(each.query.text for each in batch)
        self.notes.append(("begun", name))
        self.searched.append(gc.isenabled())
        if name == self.fails_at:
            raise ZeroDivisionError(name)

        def collect() -> list[TokenScores]:
            self.notes.append(("collected", name))
            return [TokenScores(each.query.text, ("x",), ((0, 1),), np.array([-1.0])) for each in batch]

        return collect

    def run(self, batch: Sequence[Word]) -> list[TokenScores]:
        raise AssertionError("a model that can begin is not asked to run")


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Nothing stays frozen, and the search for cycles goes on."""
    before = gc.get_freeze_count()
    yield
    assert gc.isenabled()
    assert gc.get_freeze_count() <= before


def asked(model: Noting, texts: str) -> Iterator[local.Answers]:
    return local.answers(model, [Query(text) for text in texts], lambda _: False)


@pytest.mark.parametrize("window", [1, 2, 65_536])
def test_a_batch_is_begun_before_the_one_before_it_is_collected(window: int, monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", window)
    model = Noting()
    found = list(asked(model, "abc"))
    assert [[(place, said.text) for place, said in batch] for batch in found] == [[(0, "a")], [(1, "b")], [(2, "c")]]
    order = [f"{what} {name}" for what, name in model.notes]
    assert order == ["begun a", "begun b", "collected a", "begun c", "collected b", "collected c"]
    assert model.searched == [False] * 3


def test_one_batch_and_none() -> None:
    model = Noting(budget=9)
    assert [[place for place, _ in batch] for batch in asked(model, "aab")] == [[0, 1, 2]]
    assert model.notes == [("begun", "ab"), ("collected", "ab")]
    assert list(asked(model, "")) == []
    assert list(local.answers(model, [Query("a")], lambda _: True)) == []


def test_a_caller_who_stops_leaves_nothing_frozen() -> None:
    stream = asked(Noting(), "abcdef")
    next(stream)
    assert gc.get_freeze_count() > 0
    stream.close()


def test_an_error_leaves_nothing_frozen_even_while_it_is_looked_at() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(asked(Noting(fails_at="c"), "abcdef"))
    assert caught.value.__traceback__ is not None
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_caller_who_keeps_python_from_searching_still_does_so_afterwards() -> None:
    gc.disable()
    try:
        list(asked(Noting(), "abc"))
        assert not gc.isenabled()
    finally:
        gc.enable()


@dataclass
class Small(Noting):
    """A model whose memory holds batches of some size, and which finds that out when it begins or when it collects."""

    holds: int = 3
    when: str = "begin"
    ran: list[str] = field(default_factory=list)

    def begin(self, batch: Sequence[Word]) -> Callable[[], list[TokenScores]]:
        def check(when: str) -> None:
            if when == self.when and len(batch) > self.holds:
                raise OutOfMemory(f"a batch of {len(batch)} texts does not fit into memory")

        check("begin")
        collect = super().begin(batch)

        def checked() -> list[TokenScores]:
            check("collect")
            self.ran.append("".join(each.query.text for each in batch))
            return collect()

        return checked


@pytest.mark.parametrize("when", ["begin", "collect"])
@pytest.mark.parametrize("holds", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 7, 26])
def test_a_batch_that_does_not_fit_goes_on_in_halves(when: str, holds: int, count: int, caplog) -> None:
    texts = "abcdefghijklmnopqrstuvwxyz"[:count]
    model = Small(budget=8, holds=holds, when=when)
    found = [each for batch in asked(model, texts) for each in batch]
    assert sorted((place, said.text) for place, said in found) == list(enumerate(texts))
    assert "".join(sorted("".join(model.ran))) == texts
    assert max(map(len, model.ran)) <= holds
    warned = [each for each in caplog.messages if "going on with smaller batches" in each]
    assert len(warned) == (min(count, 8) > holds)


def test_after_a_batch_that_did_not_fit_the_others_are_smaller_from_the_start() -> None:
    model = Small(budget=8, holds=4)
    list(asked(model, "abcdefghijklmnopqrstuvwx"))
    assert [len(each) for each in model.ran] == [4] * 6
    assert [name for what, name in model.notes if what == "begun"] == model.ran


@pytest.mark.parametrize("when", ["begin", "collect"])
def test_a_text_that_does_not_fit_alone_is_named(when: str) -> None:
    with pytest.raises(QueryError, match="query 0: it does not fit into memory even alone") as caught:
        list(asked(Small(budget=8, holds=0, when=when), "abc"))
    assert caught.value.index == 0
