"""One model for many visitors: everybody gets the answers to their own sentences."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

pytest.importorskip("fastapi", reason="the page needs the extra [web]")

from fastapi import HTTPException

from acceptability.errors import ModelError, QueryError, SuiteError, UnknownName
from acceptability.models import load_model
from acceptability.scoring import judge
from acceptability.serve import judging
from acceptability.serve.judging import Judge, Judges, TakingTurns, Turn, installed
from acceptability.types import Query


class Picky:
    """A model that refuses one sentence, counts its batches, and otherwise is uniform."""

    def __init__(self) -> None:
        self._inner = load_model("uniform")
        self.signature = "picky"
        self.batches: list[int] = []
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, queries):
        for place, query in enumerate(queries):
            if query.text == "refuse me":
                raise QueryError(place, "it is refused")
            if query.text == "break me":
                raise RuntimeError("a fault of ours")
        return self._inner.encode(queries)

    def run(self, batch):
        self.gate.wait(10)
        self.batches.append(len(batch))
        return self._inner.run(batch)


@pytest.fixture
def picky(monkeypatch) -> tuple[Picky, Judge]:
    model = Picky()
    monkeypatch.setattr(judging, "load_model", lambda name: model)
    return model, Judge("picky", 100)


def test_every_visitor_gets_their_own_answer() -> None:
    asked = Judge("trigram", 1000)
    texts = [f"The {word} was late." for word in ("boy", "girl", "king", "train", "letter", "answer", "doctor")] * 20
    with ThreadPoolExecutor(30) as pool:
        found = list(pool.map(lambda text: asked.ask([text, text + " Really."]).result(30), texts))
    expected = {each.text: each.score for each in judge(sorted(set(texts)), "trigram")}
    for text, (first, second) in zip(texts, found, strict=True):
        assert first.text == text
        assert first.score == pytest.approx(expected[text], abs=1e-5)
        assert second.text == f"{text} Really."


def test_those_who_wait_are_answered_together(picky) -> None:
    model, asked = picky
    asked.model()
    model.batches.clear()
    model.gate.clear()
    answers = [asked.ask([f"sentence number {place}"]) for place in range(9)]
    model.gate.set()
    assert [answer.result(10)[0].text for answer in answers] == [f"sentence number {place}" for place in range(9)]
    assert len(model.batches) < 9
    assert sum(model.batches) == 9


def test_a_refused_sentence_harms_nobody_else(picky) -> None:
    model, asked = picky
    model.gate.clear()
    good, bad, other = (asked.ask([text]) for text in ("Cats sleep.", "refuse me", "Dogs bark."))
    model.gate.set()
    assert good.result(10)[0].text == "Cats sleep."
    assert other.result(10)[0].text == "Dogs bark."
    with pytest.raises(ModelError, match="picky cannot score 'refuse me': it is refused"):
        bad.result(10)


def test_a_fault_does_not_leave_visitors_waiting(picky, caplog) -> None:
    _, asked = picky
    with pytest.raises(ModelError, match="broke off"):
        asked.ask(["break me"]).result(10)
    assert asked.ask(["Cats sleep."]).result(10)[0].text == "Cats sleep."
    assert "a fault of ours" in caplog.text


def test_too_many_waiting_are_turned_away(picky) -> None:
    model, _ = picky
    asked = Judge("picky", 2)
    model.gate.clear()
    answers = [asked.ask(["Cats sleep."])]
    deadline = time.monotonic() + 10
    while asked._waiting and time.monotonic() < deadline:
        time.sleep(0.01)
    answers += [asked.ask(["Cats sleep."]) for _ in range(2)]
    with pytest.raises(HTTPException, match="2 others wait") as refused:
        asked.ask(["Cats sleep."])
    assert refused.value.status_code == 429
    model.gate.set()
    assert all(answer.result(10) for answer in answers)


def test_an_empty_sentence_is_refused_at_once() -> None:
    with pytest.raises(SuiteError, match="empty"):
        Judge("uniform", 1).ask(["  "])


def test_the_model_is_loaded_once() -> None:
    asked = Judge("trigram", 10)
    with ThreadPoolExecutor(5) as pool:
        assert len({id(model) for model in pool.map(lambda _: asked.model(), range(5))}) == 1
    assert load_model("trigram") is asked.model()


def test_an_evaluation_lets_judgements_in_between_its_batches() -> None:
    judges = Judges(["uniform"], 10)
    model = judges["uniform"].model()
    queries = [Query("word " * (place + 1)) for place in range(300)]
    batches = TakingTurns(judges).answers(model, "uniform", queries, lambda _: False)
    first = next(batches)
    # The evaluation is under way, and the judge answers nevertheless.
    assert judges["uniform"].ask(["Cats sleep."]).result(10)[0].text == "Cats sleep."
    places = [place for batch in [first, *batches] for place, _ in batch]
    assert sorted(places) == list(range(300))


def test_a_turn_goes_to_whoever_waits() -> None:
    turn, order, waiting = Turn(), [], threading.Event()

    def other() -> None:
        waiting.set()
        with turn.taken():
            order.append("other")

    with turn.taken():
        thread = threading.Thread(target=other)
        thread.start()
        waiting.wait(5)
        while not turn._door.locked():
            pass
    with turn.taken():
        order.append("again")
    thread.join(5)
    assert order == ["other", "again"]


def test_unknown_models_are_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'trigram'"):
        _ = Judges(["trigram"], 1)["trigam"]


def test_added_models_come_after_those_of_the_package() -> None:
    names = installed(["uniform", "uniform(vocabulary=10)"])
    assert names[-1] == "uniform(vocabulary=10)"
    assert names.count("uniform") == 1
    assert "trigram" in names
