"""One model, loaded once, with a thread of its own that answers everybody who waits together."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock

from fastapi import HTTPException

from acceptability.engine import Local, local
from acceptability.errors import AcceptabilityError, ModelError, QueryError, UnknownName, shorten
from acceptability.models import delivered, load_model
from acceptability.protocols import Model
from acceptability.reductions import LP, LogOdds
from acceptability.scoring import Judgement
from acceptability.types import LabelScores, Query, Said, Sentence

EMBEDDED = ("mini-masked", "mini-causal", "mini-lstm", "trigram", "uniform")
_TOGETHER = 256
_FIRST = Query("It rains.", rival="It rain.")
_log = logging.getLogger(__name__)
# Libraries read weights with settings of the whole process, so that only one model may be read at a time.
_loading = Lock()


@dataclass(frozen=True, eq=False)
class _Asked:
    """The sentences of one visitor, and where the answer to them goes."""

    queries: Sequence[Query]
    answer: Future[list[Judgement]] = field(default_factory=Future)


class Turn:
    """A lock that whoever waits longest gets next: a long evaluation lets judgements in between its batches."""

    def __init__(self) -> None:
        self._door, self._room = Lock(), Lock()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Hold the turn."""
        with self._door:
            self._room.acquire()
        try:
            yield
        finally:
            self._room.release()


class Judge:
    """A model that visitors ask. It is loaded when the first one does."""

    def __init__(self, name: str, most_waiting: int) -> None:
        self.name, self.turn = name, Turn()
        self._most = most_waiting
        self._waiting: deque[_Asked] = deque()
        self._model: Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"judge-{name}")

    @property
    def about(self) -> str:
        """What the model is, in one line."""
        known = delivered().get(self.name)
        return known.about if known else "given on the command line"

    def model(self) -> Model:
        """Return the model; it stays in use from now on, so that its weights are read once."""
        if self._model is None:
            with _loading, self.turn.taken():
                self._model = self._model or _loaded(self.name)
        return self._model

    def ask(self, sentences: Sequence[str]) -> Future[list[Judgement]]:
        """Return what will hold the judgement of each sentence, in their order."""
        checked = [Sentence(str(place), text).text for place, text in enumerate(sentences, start=1)]
        if len(self._waiting) >= self._most:
            raise HTTPException(429, f"{len(self._waiting)} others wait for {self.name}. Try again in a moment.")
        asked = _Asked([Query(text, rival=_rival(checked, place)) for place, text in enumerate(checked)])
        self._waiting.append(asked)
        self._thread.submit(self._answer_waiting).add_done_callback(_logged)
        return asked.answer

    def close(self) -> None:
        """Let go of what waits, and end the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answer_waiting(self) -> None:
        together: list[_Asked] = []
        while self._waiting and sum(len(each.queries) for each in together) < _TOGETHER:
            together.append(self._waiting.popleft())
        asked = [each for each in together if each.answer.set_running_or_notify_cancel()]
        try:
            if asked:
                self._answer(asked)
        finally:
            for each in asked:
                if not each.answer.done():
                    each.answer.set_exception(ModelError(f"{self.name} broke off. The log of the server says why."))

    def _answer(self, asked: Sequence[_Asked]) -> None:
        """Answer all together; where one question is refused, each alone, so that only its own asker hears of it."""
        queries = [query for each in asked for query in each.queries]
        try:
            said = self._said(queries)
        except AcceptabilityError as error:
            if len(asked) == 1:
                asked[0].answer.set_exception(_told(error, queries, self.name))
                return
            for each in asked:
                self._answer([each])
            return
        begin = 0
        for each in asked:
            end = begin + len(each.queries)
            each.answer.set_result([_judgement(said[place]) for place in range(begin, end)])
            begin = end

    def _said(self, queries: Sequence[Query]) -> dict[int, Said]:
        """Return what the model says to each query, by its place."""
        model = self.model()
        if not _needs_rival(model):
            queries = [Query(each.text) for each in queries]
        elif any(not each.rival for each in queries):
            raise ModelError(f"{self.name} weighs two sentences against each other: give it a pair")
        with self.turn.taken(), closing(_answers(model, queries)) as batches:
            return {place: said for batch in batches for place, said in batch}


class Judges:
    """Every model that visitors can ask, by name."""

    def __init__(self, names: Sequence[str], most_waiting: int) -> None:
        self._judges = {name: Judge(name, most_waiting) for name in names}

    def __iter__(self) -> Iterator[Judge]:
        return iter(self._judges.values())

    def __getitem__(self, name: str) -> Judge:
        if name not in self._judges:
            hint = f"The models here are {', '.join(self._judges)}; add another with --model when the server starts."
            raise UnknownName("model", name, self._judges, hint=hint)
        return self._judges[name]

    @property
    def names(self) -> tuple[str, ...]:
        """What the models are called, in the order in which they are shown."""
        return tuple(self._judges)

    def chosen(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the models of these names, each once; each must be one of ours."""
        return tuple(dict.fromkeys(self[name].name for name in names))

    def close(self) -> None:
        """End all threads."""
        for each in self:
            each.close()


@dataclass(frozen=True)
class TakingTurns(Local):
    """An engine for evaluations: this machine, with judgements let in between two batches."""

    judges: Judges

    def answers(
        self, model: Model, spelling: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        """Yield what the model says, batch by batch, with the place of each query."""
        turn = self.judges[spelling or ""].turn
        with closing(_answers(model, queries, is_known)) as batches:
            while True:
                with turn.taken():
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch


def installed(added: Sequence[str]) -> tuple[str, ...]:
    """Return the models that come with the package and work here, and those added, each once."""
    ours = [name for name in EMBEDDED if delivered()[name].is_installed()]
    return tuple(dict.fromkeys([*ours, *added]))


def _loaded(name: str) -> Model:
    """Return a model that has answered once, so that its weights are in memory."""
    model = load_model(name)
    for _ in local.answers(model, [_FIRST if _needs_rival(model) else Query(_FIRST.text)], lambda _: False):
        pass
    return model


def _needs_rival(model: Model) -> bool:
    return bool(getattr(model, "needs_rival", False))


def _answers(
    model: Model, queries: Sequence[Query], is_known: Callable[[int], bool] = lambda _: False
) -> Generator[list[tuple[int, Said]], None, None]:
    yield from local.answers(model, queries, is_known)


def _rival(sentences: Sequence[str], place: int) -> str:
    """Return the other sentence of a pair; nothing where there is no pair."""
    return sentences[1 - place] if len(sentences) == 2 else ""


def _judgement(said: Said) -> Judgement:
    return Judgement(said.text, (LogOdds() if isinstance(said, LabelScores) else LP())(said), said)


def _told(error: AcceptabilityError, queries: Sequence[Query], name: str) -> AcceptabilityError:
    """Return an error that names the sentence, where one is at fault."""
    if not isinstance(error, QueryError):
        return error
    return ModelError(f"{name} cannot score {shorten(queries[error.index].text)!r}: {error.problem}.")


def _logged(done: Future[None]) -> None:
    if not done.cancelled() and (error := done.exception()):
        _log.error("a model broke off", exc_info=error)
