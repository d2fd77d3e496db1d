"""From a suite to scores: each sentence is put to a model, and what it says is reduced to a number.

What a model has said before comes from the store; what it says now is kept there, batch by batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from acceptability import registry
from acceptability.engine.local import answers
from acceptability.errors import ModelError, QueryError, ScoreError, SpellingError, SuiteError, shorten
from acceptability.models import load_model
from acceptability.protocols import Model, Reduction
from acceptability.reductions import LP, AgainstUnigrams, LogOdds
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
    progress: Progress | None = None,
) -> Scores:
    """Return one number for each sentence of a suite; what was scored before comes from the store.

    Args:
        reduce: The reduction, such as ``slor(unigrams='wordfreq:en')``. By default ``lp`` for
            a language model and ``log_odds`` for a classifier.
        region: Score only the region of this name, given the rest of the sentence.
    """
    return scored(suite, model, [reduce], region=region, progress=progress)[0]


def scored(
    suite: Suite | str,
    model: str | Model,
    reductions: Sequence[str | None],
    *,
    region: str | None = None,
    progress: Progress | None = None,
) -> list[Scores]:
    """Return the scores of a suite under several reductions, from one pass of the model."""
    suite, (name, opened) = as_suite(suite), as_model(model)
    makers = [_Scorer(load_reduction(each) if each else None) for each in reductions]
    questions = _questions(suite, opened, region)
    for place, said in _asked(opened, name, questions, progress):
        for maker in makers:
            maker.take(questions[place][0].id, said)
    where = f"#{region}" if region else ""
    ids = [sentence.id for sentence in suite.sentences]
    return [maker.scores(ids, name, opened.signature, where) for maker in makers]


class _Scorer:
    """Turns what a model says into scores by one reduction, and counts what its table lacks.

    A sentence that was weighed against several rivals gets the mean.
    """

    def __init__(self, reduction: Reduction | None) -> None:
        self.reduction = reduction
        self.values: dict[str, list[float]] = {}
        self.lacking = self.units = 0

    def take(self, sentence_id: str, said: Said) -> None:
        self.reduction = self.reduction or _default_reduction(said)
        self.values.setdefault(sentence_id, []).append(self.reduction(said))
        if isinstance(self.reduction, AgainstUnigrams):
            lacking, units = self.reduction.coverage(said)
            self.lacking += lacking
            self.units += units

    def scores(self, ids: Sequence[str], model: str, signature: str, where: str) -> Scores:
        assert self.reduction is not None
        return Scores(
            {name: math.fsum(self.values[name]) / len(self.values[name]) for name in ids},
            model,
            reduction=repr(self.reduction) + where,
            signature=f"{signature}.{self.reduction.signature}{where}",
            notes=self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self.lacking or not isinstance(self.reduction, AgainstUnigrams):
            return ()
        table = self.reduction.table
        if self.lacking == self.units:
            raise ScoreError(f"{table.signature} lists not one of the {self.units} {table.unit}s of the suite")
        return (f"{self.lacking} of {self.units} {table.unit}s are not in {table.signature}",)


def tokens(
    suite: Suite | str, model: str | Model, *, progress: Progress | None = None
) -> Iterator[tuple[Sentence, Said]]:
    """Yield each sentence of a suite with what the model said to it, once for each rival if it needs one."""
    suite, (name, opened) = as_suite(suite), as_model(model)
    questions = _questions(suite, opened, None)
    said = dict(_asked(opened, name, questions, progress))
    for place, (sentence, _) in enumerate(questions):
        yield sentence, said[place]


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


def as_suite(suite: Suite | str) -> Suite:
    """Return a suite, loaded if only its name was given."""
    return load_suite(suite) if isinstance(suite, str) else suite


def _default_reduction(said: Said) -> Reduction:
    return LogOdds() if isinstance(said, LabelScores) else LP()


def _query(sentence: Sentence, region: str | None) -> Query:
    context = sentence.tags.get("context", "")
    if region is None:
        return Query(sentence.text, context)
    if region not in sentence.regions:
        has = ", ".join(sentence.regions) or "none"
        raise SuiteError(f"sentence {sentence.id!r} has no region {region!r}; its regions: {has}")
    return Query(sentence.text, context, sentence.regions[region])


def _questions(suite: Suite, model: Model, region: str | None) -> list[tuple[Sentence, Query]]:
    """Return what a model is asked of each sentence: one query, or one against each rival."""
    plain = [(sentence, _query(sentence, region)) for sentence in suite.sentences]
    if not getattr(model, "needs_rival", False):
        return plain
    rivals = _rivals(suite)
    return [(sentence, replace(query, rival=rival)) for sentence, query in plain for rival in rivals[sentence.id]]


def _rivals(suite: Suite) -> dict[str, list[str]]:
    """Return the texts that each sentence is contrasted with; there must be one for each."""
    rivals: dict[str, list[str]] = {sentence.id: [] for sentence in suite.sentences}
    for each in suite.contrasts:
        rivals[each.better].append(suite.by_id[each.worse].text)
        rivals[each.worse].append(suite.by_id[each.better].text)
    if alone := next((name for name, found in rivals.items() if not found), None):
        raise SuiteError(
            f"suite {suite.name!r}: sentence {alone!r} stands in no contrast, and the model weighs each sentence "
            "against another. Take a method that judges sentences one by one, or leave such sentences out."
        )
    return rivals


def _asked(
    model: Model, name: str, questions: Sequence[tuple[Sentence, Query]], progress: Progress | None
) -> Iterator[tuple[int, Said]]:
    """Yield what a model says to each query: first from the store, then from the model itself."""
    places: dict[str, list[int]] = {}
    for place, (_, query) in enumerate(questions):
        places.setdefault(query.key, []).append(place)
    distinct = [questions[found[0]][1] for found in places.values()]
    keys = list(places)
    done: set[str] = set()
    with Store() as store:
        for key, said in store.known(model.signature, distinct):
            done.add(key)
            yield from ((place, said) for place in places[key])
        _tell(progress, name, len(done), len(keys))
        if len(done) == len(keys):
            return
        try:
            for batch in answers(model, distinct, lambda place: keys[place] in done):
                store.add(model.signature, [(distinct[place], said) for place, said in batch])
                for place, said in batch:
                    done.add(keys[place])
                    yield from ((each, said) for each in places[keys[place]])
                _tell(progress, name, len(done), len(keys))
        except QueryError as error:
            raise _named(error, questions[places[keys[error.index]][0]][0], name) from error


def _named(error: QueryError, sentence: Sentence, model: str) -> ModelError:
    return ModelError(f"{model} cannot score sentence {sentence.id!r} ({shorten(sentence.text)!r}): {error.problem}.")


def _tell(progress: Progress | None, name: str, done: int, total: int) -> None:
    if progress:
        progress(name, done, total)
