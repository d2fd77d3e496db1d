"""One model for many visitors: everybody gets the answers to their own sentences."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi", reason="the page needs the extra [web]")

from fastapi import HTTPException

from acceptability.api.scoring import judge
from acceptability.errors import ModelError, QueryError, SuiteError, UnknownName
from acceptability.models import load_model
from acceptability.protocols import Model
from acceptability.serve import model_worker
from acceptability.serve.model_worker import FairLock, InterleavingEngine, ServedModel, ServedModels, list_served_models
from acceptability.types import Query


class Picky(Model):
    """A model that refuses one sentence, counts its batches, and otherwise is uniform."""

    signature = "picky"

    def __init__(self) -> None:
        self._inner = load_model("uniform")
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, queries):
        for index, query in enumerate(queries):
            if query.text == "refuse me":
                raise QueryError(index, "it is refused")
            if query.text == "break me":
                raise RuntimeError("a fault of ours")
        return self._inner.encode(queries)

    def run(self, batch):
        self.gate.wait(120)
        self.batches.append(len(batch))
        return self._inner.run(batch)


@pytest.fixture
def picky(monkeypatch) -> tuple[Picky, ServedModel]:
    model = Picky()
    monkeypatch.setattr(model_worker, "load_model", lambda name: model)
    return model, ServedModel("picky", 100)


def test_every_visitor_gets_their_own_answer() -> None:
    asked = ServedModel("trigram", 1000)
    texts = [f"The {word} was late." for word in ("boy", "girl", "king", "train", "letter", "answer", "doctor")] * 20
    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda text: asked.submit([text, text + " Really."]).result(120), texts))
    expected = {each.text: each.score for each in judge(sorted(set(texts)), model="trigram")}
    for text, (first, second) in zip(texts, found, strict=True):
        assert first.text == text
        assert first.score == pytest.approx(expected[text], abs=1e-5)
        assert second.text == f"{text} Really."


def test_waiting_requests_are_scored_in_one_batch(picky) -> None:
    model, asked = picky
    asked.load()
    model.batches.clear()
    model.gate.clear()
    answers = [asked.submit([f"sentence number {index}"]) for index in range(9)]
    model.gate.set()
    assert [answer.result(120)[0].text for answer in answers] == [f"sentence number {index}" for index in range(9)]
    assert len(model.batches) < 9
    assert sum(model.batches) == 9


def test_a_refused_sentence_fails_only_its_own_request(picky) -> None:
    model, asked = picky
    model.gate.clear()
    good, bad, other = (asked.submit([text]) for text in ("Cats sleep.", "refuse me", "Dogs bark."))
    model.gate.set()
    assert good.result(120)[0].text == "Cats sleep."
    assert other.result(120)[0].text == "Dogs bark."
    with pytest.raises(ModelError, match="picky cannot score 'refuse me': it is refused"):
        bad.result(120)


def test_an_unexpected_error_ends_the_waiting_requests(picky, caplog) -> None:
    _, asked = picky
    with pytest.raises(ModelError, match="failed unexpectedly"):
        asked.submit(["break me"]).result(120)
    assert asked.submit(["Cats sleep."]).result(120)[0].text == "Cats sleep."
    assert "a fault of ours" in caplog.text


def test_requests_beyond_the_queue_limit_are_refused(picky) -> None:
    model, _ = picky
    asked = ServedModel("picky", 2)
    model.gate.clear()
    answers = [asked.submit(["Cats sleep."])]
    deadline = time.monotonic() + 120
    while asked._waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    answers += [asked.submit(["Cats sleep."]) for _ in range(2)]
    with pytest.raises(HTTPException, match="2 others are waiting") as refused:
        asked.submit(["Cats sleep."])
    assert refused.value.status_code == 429
    model.gate.set()
    assert all(answer.result(120) for answer in answers)


def test_an_empty_sentence_is_refused_at_once() -> None:
    with pytest.raises(SuiteError, match="empty"):
        ServedModel("uniform", 1).submit(["  "])


def test_the_model_is_loaded_once() -> None:
    asked = ServedModel("trigram", 10)
    with ThreadPoolExecutor(5) as pool:
        assert len({id(model) for model in pool.map(lambda _: asked.load(), range(5))}) == 1
    assert load_model("trigram") is asked.load()


def test_an_evaluation_lets_judgements_in_between_its_batches() -> None:
    judges = ServedModels(["uniform"], 10)
    model = judges["uniform"].load()
    queries = [Query("word " * (index + 1)) for index in range(300)]
    batches = InterleavingEngine(judges).answers(model, "uniform", queries, lambda _: False)
    first = next(batches)
    # The evaluation is under way, and the judge answers nevertheless.
    assert judges["uniform"].submit(["Cats sleep."]).result(120)[0].text == "Cats sleep."
    indices = [index for batch in [first, *batches] for index, _ in batch]
    assert sorted(indices) == list(range(300))


def test_the_fair_lock_goes_to_the_thread_that_has_waited_longest() -> None:
    turn, order, waiting = FairLock(), [], threading.Event()

    def other() -> None:
        waiting.set()
        with turn.hold():
            order.append("other")

    with turn.hold():
        thread = threading.Thread(target=other)
        thread.start()
        waiting.wait(120)
        while not turn._queue_lock.locked():
            pass
    with turn.hold():
        order.append("again")
    thread.join(120)
    assert order == ["other", "again"]


def test_unknown_models_are_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'trigram'"):
        _ = ServedModels(["trigram"], 1)["trigam"]


def test_added_models_come_after_those_of_the_package() -> None:
    names = list_served_models(["uniform", "uniform(vocabulary=10)"])
    assert names[-1] == "uniform(vocabulary=10)"
    assert names.count("uniform") == 1
    assert "trigram" in names
