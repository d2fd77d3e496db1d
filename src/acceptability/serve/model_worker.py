"""Models as a server runs them: loaded once, with a thread each that batches waiting requests, and locks for fairness.

- ``ServedModel`` has a queue of requests. Its thread takes all that wait and scores them in one batch, which takes
  hardly longer than one request alone.
- ``InterleavingEngine`` runs evaluations, which take hours, on the same models. It holds a model's lock for one batch
  at a time, and ``FairLock`` gives it to the thread that has waited longest, so that judgements get in between.
- ``judge_sentences`` turns the scores of several models into verdicts, as pages and programs get them.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from threading import Lock

from fastapi import HTTPException

from acceptability.api.scoring import Judgement, find_deciding_words
from acceptability.engine import Local, local
from acceptability.errors import AcceptabilityError, ModelError, QueryError, UnknownName, shorten
from acceptability.models import list_named_models, load_model
from acceptability.protocols import Model
from acceptability.reductions import LP, LogOdds
from acceptability.types import LabelScores, ModelOutput, Query, Sentence, TokenScores

BUNDLED_MODELS = ("mini-masked", "mini-causal", "mini-lstm", "trigram", "uniform")
# A bound on the memory of one pass, and on how long a later request waits for an earlier one.
_MAX_BATCH_QUERIES = 256
_WARM_UP_QUERY = Query("It rains.", rival="It rain.")
_log = logging.getLogger(__name__)
# Libraries load weights under settings of the whole process, such as the default dtype, so that two models that are
# loaded at the same time could get each other's.
_load_lock = Lock()


@dataclass(frozen=True, eq=False)
class _PendingRequest:
    """The sentences of one request, and the future that gets their scores."""

    queries: Sequence[Query]
    future: Future[list[Judgement]] = field(default_factory=Future)


class FairLock:
    """A lock that goes to the thread that has waited longest.

    An ordinary lock may go back at once to the thread that has just released it, so that an evaluation, which takes
    it again for its next batch, could keep out all others.
    """

    def __init__(self) -> None:
        self._queue_lock, self._lock = Lock(), Lock()

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the lock within a ``with`` block."""
        # A thread that waits for the lock holds the queue lock. The thread that has just released the lock must get the
        # queue lock before it can take the lock again, and so comes after the waiting one.
        with self._queue_lock:
            self._lock.acquire()
        try:
            yield
        finally:
            self._lock.release()


class ServedModel:
    """A model of the server, which is loaded when it is first used.

    Args:
        name: The name or spec of the model.
        max_waiting: How many requests may wait for it.
    """

    def __init__(self, name: str, max_waiting: int) -> None:
        self.name, self.lock = name, FairLock()
        self._max_waiting = max_waiting
        self._waiting: deque[_PendingRequest] = deque()
        self._model: Model | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"judge-{name}")

    @property
    def about(self) -> str:
        """A description of the model, in one line."""
        known = list_named_models().get(self.name)
        return known.about if known else "given on the command line"

    def load(self) -> Model:
        """Return the model; it stays in memory from now on."""
        if self._model is None:
            # Always in this order: two threads that took the two locks in different orders would wait for ever.
            with _load_lock, self.lock.hold():
                # Another thread may have loaded it while this one waited for the locks.
                self._model = self._model or _load_and_warm_up(self.name)
        return self._model

    def submit(self, sentences: Sequence[str]) -> Future[list[Judgement]]:
        """Return a future with the judgement of each sentence, in their order."""
        # The checks of Sentence refuse empty and invalid texts now, and not within a batch with those of others.
        checked = [Sentence(str(number), text).text for number, text in enumerate(sentences, start=1)]
        if len(self._waiting) >= self._max_waiting:
            raise HTTPException(429, f"{len(self._waiting)} others are waiting for {self.name}. Try again in a moment.")
        request = _PendingRequest(
            [Query(text, rival=_find_rival(checked, index)) for index, text in enumerate(checked)]
        )
        self._waiting.append(request)
        # One task per request, of which the first takes all requests that wait; the others find the queue empty.
        self._thread.submit(self._process_waiting).add_done_callback(_log_failure)
        return request.future

    def close(self) -> None:
        """Cancel the waiting requests, and stop the thread."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _process_waiting(self) -> None:
        """Score the requests that wait, in one batch."""
        next_requests: list[_PendingRequest] = []
        while self._waiting and sum(len(request.queries) for request in next_requests) < _MAX_BATCH_QUERIES:
            next_requests.append(self._waiting.popleft())
        # A visitor who has closed the page has cancelled the request.
        requests = [request for request in next_requests if request.future.set_running_or_notify_cancel()]
        try:
            if requests:
                self._answer_requests(requests)
        finally:
            # After an unexpected error, which is logged: a future without a result would be waited for for ever.
            for request in requests:
                if not request.future.done():
                    request.future.set_exception(
                        ModelError(f"{self.name} failed unexpectedly. See the log of the server.")
                    )

    def _answer_requests(self, requests: Sequence[_PendingRequest]) -> None:
        """Score all requests in one batch; if one sentence is refused, each request by itself."""
        queries = [query for request in requests for query in request.queries]
        try:
            outputs = self._score_queries(queries)
        except AcceptabilityError as error:
            if len(requests) == 1:
                requests[0].future.set_exception(_name_sentence_in_error(error, queries, self.name))
                return
            # One visitor's impossible sentence must not be an error for the others in the batch.
            for request in requests:
                self._answer_requests([request])
            return
        start = 0
        for request in requests:
            end = start + len(request.queries)
            request.future.set_result([_make_judgement(outputs[index]) for index in range(start, end)])
            start = end

    def _score_queries(self, queries: Sequence[Query]) -> dict[int, ModelOutput]:
        """Return the model's output for each query, by the index of the query."""
        model = self.load()
        if not model.needs_rival:
            queries = [Query(query.text) for query in queries]
        elif any(not query.rival for query in queries):
            raise ModelError(f"{self.name} compares two sentences with each other: give it a pair")
        with self.lock.hold(), closing(_run_batches(model, queries)) as batches:
            return {index: output for batch in batches for index, output in batch}


class ServedModels:
    """The models of the server, by name."""

    def __init__(self, names: Sequence[str], max_waiting: int) -> None:
        self._models = {name: ServedModel(name, max_waiting) for name in names}

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models.values())

    def __getitem__(self, name: str) -> ServedModel:
        if name not in self._models:
            hint = f"The models here are {', '.join(self._models)}; add another with --model when the server starts."
            raise UnknownName("model", name, self._models, hint=hint)
        return self._models[name]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models, in the order of the pages."""
        return tuple(self._models)

    def select(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names without repetition; a name of no model of the server is an error."""
        return tuple(dict.fromkeys(self[name].name for name in names))

    def close(self) -> None:
        """Stop all threads."""
        for model in self:
            model.close()


@dataclass(frozen=True)
class InterleavingEngine(Local):
    """A local engine for evaluations that holds a model's lock for one batch at a time."""

    served_models: ServedModels

    def answers(
        self, model: Model, spec: str | None, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[Sequence[tuple[int, ModelOutput]], None, None]:
        """Yield batches of (query index, output)."""
        lock = self.served_models[spec or ""].lock
        with closing(_run_batches(model, queries, is_known)) as batches:
            while True:
                # Released before the batch is yielded: its outputs are stored and measured without the model.
                with lock.hold():
                    batch = next(batches, None)
                if batch is None:
                    return
                yield batch


def list_served_models(extra: Sequence[str]) -> tuple[str, ...]:
    """Return the bundled models that are installed, followed by further ones, without repetition.

    Args:
        extra: The names or specs of further models.
    """
    bundled = [name for name in BUNDLED_MODELS if list_named_models()[name].is_installed()]
    return tuple(dict.fromkeys([*bundled, *extra]))


def _load_and_warm_up(name: str) -> Model:
    """Return a model that has scored a sentence once, so that its weights are in memory."""
    # Models are lazy: without this, the first visitor would wait for the weights while holding the model's lock.
    model = load_model(name)
    for _ in local.run_queries(
        model, [_WARM_UP_QUERY if model.needs_rival else Query(_WARM_UP_QUERY.text)], lambda _: False
    ):
        pass
    return model


def _run_batches(
    model: Model, queries: Sequence[Query], is_known: Callable[[int], bool] = lambda _: False
) -> Generator[Sequence[tuple[int, ModelOutput]], None, None]:
    yield from local.run_queries(model, queries, is_known)


def _find_rival(sentences: Sequence[str], index: int) -> str:
    """Return the other sentence of a pair; empty if there is no pair."""
    return sentences[1 - index] if len(sentences) == 2 else ""


def _make_judgement(output: ModelOutput) -> Judgement:
    return Judgement(output.text, (LogOdds() if isinstance(output, LabelScores) else LP())(output), output)


def _name_sentence_in_error(error: AcceptabilityError, queries: Sequence[Query], name: str) -> AcceptabilityError:
    """Return an error that quotes the sentence that is at fault, if one is."""
    # A QueryError has the index in the batch, in which a visitor's sentence is one of many.
    if not isinstance(error, QueryError):
        return error
    return ModelError(f"{name} cannot score {shorten(queries[error.index].text)!r}: {error.problem}.")


def _log_failure(done: Future[None]) -> None:
    # A pool of threads keeps an exception to itself until somebody asks for the result, which nobody does here.
    if not done.cancelled() and (error := done.exception()):
        _log.error("a model failed", exc_info=error)


# The colours of page.css: ten shades reach 20 bits, beyond which tokens are all very surprising.
_BITS_PER_SHADE = 2.0
_SHADES = 10


@dataclass(frozen=True)
class ShadedToken:
    """A token as it stands in the text, its surprisal, and the number of its colour, from 0 to 9.

    Args:
        is_unknown: Whether it is not in the model's vocabulary.
    """

    token: str
    surprisal_bits: float
    shade: int
    is_unknown: bool = False


@dataclass(frozen=True)
class ScoredSentence:
    """A sentence with its score and its tokens; a classifier has no tokens."""

    text: str
    score: float
    tokens: tuple[ShadedToken, ...]


@dataclass(frozen=True)
class Verdict:
    """The scores that one model gives to sentences.

    Args:
        about: A description of the model.
        scale: The unit of the scores: "log-probability", in nats, or "log-odds".
        better: The number of the sentence with the highest score, from 1; None for a tie or a single sentence.
        by: The difference between the highest score and the next one.
        problem: Why there are no scores.
        deciding_words: The unknown words on which the comparison depends.
    """

    model: str
    about: str
    sentences: tuple[ScoredSentence, ...] = ()
    scale: str = ""
    better: int | None = None
    by: float | None = None
    problem: str = ""
    deciding_words: tuple[str, ...] = ()


async def judge_sentences(models: ServedModels, names: Sequence[str], sentences: Sequence[str]) -> list[Verdict]:
    """Return the verdict of each model on the sentences; all models run at the same time."""
    selected = [models[name] for name in names]
    return list(await asyncio.gather(*(_judge_with_model(model, sentences) for model in selected)))


def summarise_verdicts(all_verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts on a pair in one sentence; empty for a single sentence.

    >>> summarise_verdicts([Verdict("a", "", better=1), Verdict("b", "", better=2), Verdict("c", "", better=1)])
    '2 of 3 models find the first sentence better, 1 the second.'
    """
    if not any(len(verdict.sentences) > 1 or verdict.better for verdict in all_verdicts):
        return ""
    first, second = (sum(verdict.better == number for verdict in all_verdicts) for number in (1, 2))
    answered = sum(not verdict.problem for verdict in all_verdicts)
    ties = answered - first - second
    text = f"{first} of {answered} models find the first sentence better, {second} the second"
    return text + (f"; for {ties} they are equal." if ties else ".")


async def _judge_with_model(model: ServedModel, sentences: Sequence[str]) -> Verdict:
    try:
        judgements = await asyncio.wrap_future(model.submit(sentences))
    except AcceptabilityError as error:
        return Verdict(model.name, model.about, problem=" ".join(str(error).split()))
    is_language_model = isinstance(judgements[0].output, TokenScores)
    return Verdict(
        model.name,
        model.about,
        tuple(ScoredSentence(judgement.text, judgement.score, _shade_tokens(judgement)) for judgement in judgements),
        "log-probability" if is_language_model else "log-odds",
        *_find_better([judgement.score for judgement in judgements]),
        deciding_words=tuple(find_deciding_words(judgements)),
    )


def _find_better(scores: Sequence[float]) -> tuple[int | None, float | None]:
    """Return the number of the highest score, from 1, and by how much it is higher; (None, 0) for a tie."""
    if len(scores) < 2:
        return None, None
    first, second = sorted(scores, reverse=True)[:2]
    return (None, 0.0) if first == second else (list(scores).index(first) + 1, first - second)


def _shade_tokens(judgement: Judgement) -> tuple[ShadedToken, ...]:
    unknown = judgement.output.unknown if isinstance(judgement.output, TokenScores) else ()
    return tuple(
        _make_token(text, bits, position in (unknown or ()))
        for position, (text, bits) in enumerate(judgement.token_surprisals())
    )


def _make_token(text: str, surprisal_bits: float, is_unknown: bool) -> ShadedToken:
    # Adding 0 turns -0 into 0: a token of probability 1 would be shown with a surprisal of "-0.0".
    bits = surprisal_bits + 0.0
    return ShadedToken(text, bits, min(_SHADES - 1, max(0, int(bits / _BITS_PER_SHADE))), is_unknown)
