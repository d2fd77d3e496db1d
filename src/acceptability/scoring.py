"""From a suite to scores: each sentence is put to a model, and what it says is reduced to a number.

What a model has said before comes from the store; what it says now is kept there, batch by batch.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import cast

from acceptability import registry
from acceptability.engine import load_engine
from acceptability.errors import ModelError, QueryError, ScoreError, SpellingError, shorten
from acceptability.models import load_model
from acceptability.protocols import Engine, Model, Reduction
from acceptability.reductions import LP, LogOdds, against_unigrams
from acceptability.regions import RegionScores
from acceptability.request import Request
from acceptability.store.said import Store
from acceptability.suites import load_suite
from acceptability.types import LabelScores, Query, Said, Scores, Sentence, Suite

Progress = Callable[[str, int, int], None]
"""Told the model's name, how many queries are answered, and how many there are."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a model makes of one sentence."""

    text: str
    score: float
    said: Said


def score(
    suite: Suite | str,
    model: str | Model,
    reduce: str | None = None,
    *,
    region: str | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> Scores:
    """Return one number for each sentence of a suite; what was scored before comes from the store.

    Args:
        reduce: The reduction, such as ``slor(unigrams='wordfreq:en')``. By default ``lp`` for
            a language model and ``log_odds`` for a classifier.
        region: Score only the region of this name, given the rest of the sentence.
        engine: Where the model runs: ``local``, or on a cluster, ``ray(address='HOST:PORT')``.
    """
    return scored(suite, model, [reduce], region=region, engine=engine, progress=progress)[0]


def region_scores(
    suite: Suite | str, model: str | Model, *, engine: str | Engine = "local", progress: Progress | None = None
) -> Scores:
    """Return the log-probability of each region of each sentence, under ``id#region``, and of the whole, under ``id``.

    The model passes over each sentence once; a token counts for the region in which it begins.
    """
    return scored(suite, model, ["lp"], by_region=True, engine=engine, progress=progress)[0]


def scored(
    suite: Suite | str,
    model: str | Model,
    reductions: Sequence[str | None],
    *,
    region: str | None = None,
    by_region: bool = False,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Scores]:
    """Return the scores of a suite under several reductions, from one pass of the model.

    Args:
        by_region: Add the log-probability of each region, under ``id#region``.
    """
    suite, asked = as_suite(suite), _asked_model(model, engine)
    makers = [_Scorer(load_reduction(each) if each else None, len(suite.sentences)) for each in reductions]
    parts = RegionScores(suite) if by_region else None
    with closing(_said(asked, suite, region, progress)) as batches:
        for batch in batches:
            for maker in makers:
                maker.take(batch)
            if parts:
                parts.take(batch)
    where = f"#{region}" if region else ""
    ids = [sentence.id for sentence in suite.sentences]
    found = [maker.scores(ids, asked.name, asked.model.signature, where) for maker in makers]
    return [parts.added(each) for each in found] if parts else found


class _Scorer:
    """Turns what a model says into scores by one reduction, and counts what its table lacks.

    A sentence that was weighed against several rivals gets the mean.
    """

    def __init__(self, reduction: Reduction | None, sentences: int) -> None:
        self.reduction = reduction
        self.values = array("d", [math.nan]) * sentences
        self.several: dict[int, list[float]] = {}
        self.lacking = self.units = 0

    def take(self, batch: Sequence[tuple[int, Said]]) -> None:
        """Take what was said to some sentences, named by their places."""
        values, reduction = self.values, self.reduction or _default_reduction(batch[0][1])
        self.reduction = reduction
        for place, said in batch:
            value = reduction(said)
            if not math.isnan(values[place]):
                self.several.setdefault(place, [values[place]]).append(value)
            values[place] = value
        if against := against_unigrams(reduction):
            for _, said in batch:
                lacking, units = against.coverage(said)
                self.lacking += lacking
                self.units += units

    def scores(self, ids: Sequence[str], model: str, signature: str, where: str) -> Scores:
        assert self.reduction is not None
        return Scores(
            {name: self._mean(place) for place, name in enumerate(ids)},
            model,
            reduction=repr(self.reduction) + where,
            signature=f"{signature}.{self.reduction.signature}{where}",
            notes=self._notes(),
        )

    def _mean(self, place: int) -> float:
        values = self.several.get(place)
        return math.fsum(values) / len(values) if values else self.values[place]

    def _notes(self) -> tuple[str, ...]:
        against = against_unigrams(self.reduction) if self.reduction else None
        if not self.lacking or not against:
            return ()
        table = against.table
        if self.lacking == self.units:
            raise ScoreError(f"{table.signature} lists not one of the {self.units} {table.unit}s of the suite")
        return (f"{self.lacking} of {self.units} {table.unit}s are not in {table.signature}",)


def tokens(
    suite: Suite | str,
    model: str | Model,
    *,
    region: str | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> Iterator[tuple[Sentence, Said]]:
    """Yield each sentence of a suite with what the model said to it, once for each rival if it needs one."""
    suite, asked = as_suite(suite), _asked_model(model, engine)
    said: dict[int, list[Said]] = {}
    for batch in _said(asked, suite, region, progress):
        for place, each in batch:
            said.setdefault(place, []).append(each)
    for place, sentence in enumerate(suite.sentences):
        yield from ((sentence, each) for each in said[place])


def judge(
    sentences: Sequence[str], model: str | Model, reduce: str | None = None, *, progress: Progress | None = None
) -> list[Judgement]:
    """Return the score of each sentence, and what the model said to it.

    >>> first, second = judge(["Cats sleep.", "Cats sleep sleep."], "uniform")
    >>> first.score > second.score
    True
    """
    check_list("sentences", sentences)
    suite = Suite("judge", tuple(Sentence(str(place), text) for place, text in enumerate(sentences, start=1)))
    reducer = load_reduction(reduce) if reduce else None
    return [
        Judgement(sentence.text, (reducer or _default_reduction(said))(said), said)
        for sentence, said in tokens(suite, model, progress=progress)
    ]


def load_reduction(text: str) -> Reduction:
    """Return the reduction of a spelling; a unigram table that it needs must be there."""
    reduction: Reduction = registry.make("reduction", text)
    _ = reduction.signature  # which reads the table
    return reduction


def check_list(name: str, given: object) -> None:
    """Refuse a single text where several are meant: Python would take its letters."""
    if isinstance(given, str):
        raise SpellingError(f"{name} is the text {shorten(given)!r}; expected a list of texts: [{shorten(given)!r}]")


def as_model(model: str | Model) -> tuple[str, Model]:
    """Return what a model is called, and the model, loaded if only its name was given."""
    return (model, load_model(model)) if isinstance(model, str) else (model.signature, model)


def as_engine(engine: str | Engine) -> Engine:
    """Return an engine, made if only its spelling was given."""
    return load_engine(engine) if isinstance(engine, str) else engine


def as_suite(suite: Suite | str) -> Suite:
    """Return a suite, loaded if only its name was given."""
    return load_suite(suite) if isinstance(suite, str) else suite


def _default_reduction(said: Said) -> Reduction:
    return LogOdds() if isinstance(said, LabelScores) else LP()


@dataclass(frozen=True)
class _Asked:
    """A model that is asked: what it is called, how it is written if it has a name, and where it runs."""

    name: str
    model: Model
    spelling: str | None
    engine: Engine

    def answers(
        self, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[list[tuple[int, Said]], None, None]:
        return self.engine.answers(self.model, self.spelling, queries, is_known)


def _asked_model(model: str | Model, engine: str | Engine) -> _Asked:
    return _Asked(*as_model(model), model if isinstance(model, str) else None, as_engine(engine))


def _said(
    asked: _Asked, suite: Suite, region: str | None, progress: Progress | None
) -> Generator[list[tuple[int, Said]], None, None]:
    """Yield what a model says to each sentence, some at a time: first from the store, then from the model itself."""
    request = Request(suite, region, against_rivals=getattr(asked.model, "needs_rival", False))
    signature, name = asked.model.signature, asked.name
    is_known = bytearray(len(request))
    with Store() as store:
        for place, said in store.known(signature, request.keys, lambda place: request[place].text):
            is_known[place] = True
            yield [(sentence, said) for sentence in request.sentences(place)]
        done = sum(is_known)
        _tell(progress, name, done, len(request))
        if all(is_known):
            return
        try:
            with closing(asked.answers(request, cast(Callable[[int], bool], is_known.__getitem__))) as batches:
                for batch in batches:
                    store.add(signature, [(request.keys[place], said) for place, said in batch])
                    yield [(sentence, said) for place, said in batch for sentence in request.sentences(place)]
                    done += len(batch)
                    _tell(progress, name, done, len(request))
        except QueryError as error:
            raise _named(error, suite.sentences[request.sentences(error.index)[0]], name) from error


def _named(error: QueryError, sentence: Sentence, model: str) -> ModelError:
    return ModelError(f"{model} cannot score sentence {sentence.id!r} ({shorten(sentence.text)!r}): {error.problem}.")


def _tell(progress: Progress | None, name: str, done: int, total: int) -> None:
    if progress:
        progress(name, done, total)
