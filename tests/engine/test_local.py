"""The engine of this machine: what is begun before what is collected, and what a caller leaves behind who stops."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from acceptability.engine import local
from acceptability.errors import OutOfMemory, QueryError
from acceptability.protocols import Model
from acceptability.types import Query, TokenScores


@dataclass(frozen=True)
class Word:
    query: Query
    size: int = 1


@dataclass
class Recording(Model):
    """A model that records when a batch is started and collected, and whether the garbage collector is on."""

    budget: int = 1
    signature: str = "noting"
    notes: list[tuple[str, str]] = field(default_factory=list)
    gc_states: list[bool] = field(default_factory=list)
    fails_at: str = ""

    def encode(self, queries: Sequence[Query]) -> list[Word]:
        return [Word(query) for query in queries]

    def begin(self, batch: Sequence[Word]) -> Callable[[], list[TokenScores]]:
        name = "".join(encoded.query.text for encoded in batch)
        self.notes.append(("started", name))
        self.gc_states.append(gc.isenabled())
        if name == self.fails_at:
            raise ZeroDivisionError(name)

        def collect() -> list[TokenScores]:
            self.notes.append(("collected", name))
            return [TokenScores(encoded.query.text, ("x",), ((0, 1),), np.array([-1.0])) for encoded in batch]

        return collect

    def run(self, batch: Sequence[Word]) -> list[TokenScores]:
        raise AssertionError("a model that can begin is never run directly")


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    """Nothing stays frozen, and the garbage collector is on again."""
    before = gc.get_freeze_count()
    yield
    assert gc.isenabled()
    assert gc.get_freeze_count() <= before


def run_texts(model: Recording, texts: str) -> Iterator[local.IndexedScores]:
    return local.run_queries(model, [Query(text) for text in texts], lambda _: False)


@pytest.mark.parametrize("window", [1, 2, 65_536])
def test_a_batch_is_started_before_the_previous_one_is_collected(window: int, monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", window)
    model = Recording()
    batches = list(run_texts(model, "abc"))
    assert [[(index, output.text) for index, output in batch] for batch in batches] == [
        [(0, "a")],
        [(1, "b")],
        [(2, "c")],
    ]
    order = [f"{action} {name}" for action, name in model.notes]
    assert order == ["started a", "started b", "collected a", "started c", "collected b", "collected c"]
    assert model.gc_states == [False] * 3


@dataclass
class BackgroundEncoder(Recording):
    """A model that records the thread in which each window is encoded."""

    encodes_in_background: bool = True
    threads: list[int] = field(default_factory=list)

    def encode(self, queries: Sequence[Query]) -> list[Word]:
        self.threads.append(threading.get_ident())
        if any(query.text == "!" for query in queries):
            raise QueryError([query.text for query in queries].index("!"), "it is no text")
        return super().encode(queries)


def test_later_windows_are_encoded_in_another_thread_one_ahead(monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", 2)
    model = BackgroundEncoder()
    batches = list(run_texts(model, "abcdefg"))
    assert [(index, output.text) for batch in batches for index, output in batch] == list(enumerate("abcdefg"))
    own = threading.get_ident()
    assert [thread == own for thread in model.threads] == [True, False, False, False]


def test_an_error_in_a_window_encoded_ahead_is_raised_behind_the_outputs_before_it(monkeypatch) -> None:
    monkeypatch.setattr(local, "WINDOW", 2)
    texts: list[str] = []
    outputs = (output.text for batch in run_texts(BackgroundEncoder(), "abc!") for _, output in batch)
    with pytest.raises(QueryError) as caught:
        texts.extend(outputs)
    assert caught.value.index == 3
    # The batch that was started last is collected after the next one has started, which never comes.
    assert texts == ["a"]


def test_duplicates_within_a_window_run_once(monkeypatch) -> None:
    model = Recording(budget=4)
    (batch,) = run_texts(model, "abab")
    assert sorted((index, output.text) for index, output in batch) == [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
    assert model.notes[0] == ("started", "ab")


def test_one_batch_and_none() -> None:
    model = Recording(budget=9)
    assert [[index for index, _ in batch] for batch in run_texts(model, "aab")] == [[0, 1, 2]]
    assert model.notes == [("started", "ab"), ("collected", "ab")]
    assert list(run_texts(model, "")) == []
    assert list(local.run_queries(model, [Query("a")], lambda _: True)) == []


def test_a_caller_who_stops_leaves_nothing_frozen() -> None:
    stream = run_texts(Recording(), "abcdef")
    next(stream)
    assert gc.get_freeze_count() > 0
    stream.close()


def test_an_error_leaves_nothing_frozen_even_while_it_is_held() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        list(run_texts(Recording(fails_at="c"), "abcdef"))
    assert caught.value.__traceback__ is not None
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_a_caller_who_has_turned_gc_off_keeps_it_off() -> None:
    gc.disable()
    try:
        list(run_texts(Recording(), "abc"))
        assert not gc.isenabled()
    finally:
        gc.enable()


@dataclass
class Small(Recording):
    """A model whose memory holds batches of some size, and runs out when a batch is started or collected."""

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
            self.ran.append("".join(encoded.query.text for encoded in batch))
            return collect()

        return checked


@pytest.mark.parametrize("when", ["begin", "collect"])
@pytest.mark.parametrize("holds", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("count", [1, 7, 26])
def test_a_batch_that_does_not_fit_is_halved(when: str, holds: int, count: int, caplog) -> None:
    texts = "abcdefghijklmnopqrstuvwxyz"[:count]
    model = Small(budget=8, holds=holds, when=when)
    batches = [pair for batch in run_texts(model, texts) for pair in batch]
    assert sorted((index, output.text) for index, output in batches) == list(enumerate(texts))
    assert "".join(sorted("".join(model.ran))) == texts
    assert max(map(len, model.ran)) <= holds
    warnings = [message for message in caplog.messages if "continuing with smaller batches" in message]
    assert len(warnings) == (min(count, 8) > holds)


def test_after_a_batch_that_did_not_fit_the_others_are_smaller_from_the_start() -> None:
    model = Small(budget=8, holds=4)
    list(run_texts(model, "abcdefghijklmnopqrstuvwx"))
    assert [len(texts) for texts in model.ran] == [4] * 6
    assert [name for action, name in model.notes if action == "started"] == model.ran


@pytest.mark.parametrize("when", ["begin", "collect"])
def test_a_text_that_does_not_fit_alone_is_named(when: str) -> None:
    with pytest.raises(QueryError, match="query 0: it does not fit into memory even alone") as caught:
        list(run_texts(Small(budget=8, holds=0, when=when), "abc"))
    assert caught.value.index == 0
