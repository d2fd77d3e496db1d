"""The verbs: score, evaluate, measure, compare, judge. Data goes in, data comes out; nothing is printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability import __version__, registry
from acceptability.engine.local import answers
from acceptability.errors import MeasureError, ModelError, QueryError, SuiteError, Undefined, closest, shorten
from acceptability.measures import default_measures, load_measure
from acceptability.measures.rows import ratings_are_z
from acceptability.models import load_model
from acceptability.reductions import LP, LogOdds
from acceptability.signature import sign
from acceptability.stats.bootstrap import Bootstrap, difference, interval, macro_interval
from acceptability.store.said import Store
from acceptability.suites import load_suite
from acceptability.types import (
    LabelScores,
    Measure,
    Model,
    Query,
    Reduction,
    Result,
    Said,
    Scores,
    Sentence,
    Suite,
    Units,
)

Progress = Callable[[str, int, int], None]
"""Told the model's name, how many queries are answered, and how many there are."""


@dataclass(frozen=True, eq=False)
class Judgement:
    """What a model makes of one sentence."""

    text: str
    score: float
    said: Said


@dataclass(frozen=True)
class Comparison:
    """How much better one model does than another, over the same rows."""

    measure: str
    suite: str
    first: str
    second: str
    first_value: float
    second_value: float
    difference: float
    low: float | None
    high: float | None
    n: int
    signature: str


def score(
    suite: Suite | str,
    model: str,
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
    model: str,
    reductions: Sequence[str | None],
    *,
    region: str | None = None,
    progress: Progress | None = None,
) -> list[Scores]:
    """Return the scores of a suite under several reductions, from one pass of the model."""
    suite, opened = _suite(suite), load_model(model)
    reducers = [registry.make("reduction", each) if each else None for each in reductions]
    queries = [_query(sentence, region) for sentence in suite.sentences]
    values: list[dict[str, float]] = [{} for _ in reducers]
    used: list[Reduction | None] = list(reducers)
    for place, said in _asked(opened, model, suite, queries, progress):
        for number, reducer in enumerate(reducers):
            used[number] = reducer or _default_reduction(said)
            values[number][suite.sentences[place].id] = used[number](said)  # type: ignore[misc]
    where = f"#{region}" if region else ""
    ids = [sentence.id for sentence in suite.sentences]
    return [
        Scores(
            {name: given[name] for name in ids},
            model,
            reduction=repr(reducer) + where,
            signature=f"{opened.signature}.{reducer.signature}{where}",  # type: ignore[union-attr]
        )
        for given, reducer in zip(values, used, strict=True)
    ]


def tokens(suite: Suite | str, model: str, *, progress: Progress | None = None) -> Iterator[tuple[Sentence, Said]]:
    """Yield each sentence of a suite with what the model said to it."""
    suite, opened = _suite(suite), load_model(model)
    said = dict(_asked(opened, model, suite, [Query(each.text) for each in suite.sentences], progress))
    for place, sentence in enumerate(suite.sentences):
        yield sentence, said[place]


def evaluate(
    suite: Suite | str,
    models: Sequence[str],
    *,
    reductions: Sequence[str] = (),
    measures: Sequence[str | Measure] = (),
    by: str | None = None,
    region: str | None = None,
    bootstrap: Bootstrap | None = None,
    progress: Progress | None = None,
) -> list[Result]:
    """Return what each measure makes of each model on a suite.

    Args:
        measures: Measures or their spellings; by default those that the suite can answer.
        by: A tag: results for each of its values come too, and their macro mean.
    """
    suite = _suite(suite)
    asked = _measures(suite, measures)
    _check_tag(suite, by)
    return [
        result
        for model in models
        for scores in scored(suite, model, list(reductions) or [None], region=region, progress=progress)
        for result in measure(suite, scores, asked, by=by, bootstrap=bootstrap)
    ]


def measure(
    suite: Suite | str,
    scores: Scores,
    measures: Sequence[str | Measure] = (),
    *,
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> list[Result]:
    """Return what each measure makes of scores, in the order asked; no model is needed."""
    suite, how = _suite(suite), bootstrap or Bootstrap()
    _check_tag(suite, by)
    results: list[Result] = []
    for each in _measures(suite, measures):
        units = each.units(suite, scores)
        results.append(_result(suite, scores, each, units, None, how))
        if by:
            results += _grouped(suite, scores, each, units, by, how)
    return results


def compare(
    suite: Suite | str,
    scores: Sequence[Scores],
    measures: Sequence[str | Measure] = (),
    *,
    bootstrap: Bootstrap | None = None,
) -> list[Comparison]:
    """Return how much the first model differs from each other one, with a paired interval."""
    suite, how = _suite(suite), bootstrap or Bootstrap()
    if len(scores) < 2:
        raise MeasureError(f"a comparison needs the scores of two models; there are {len(scores)}")
    return [
        _comparison(suite, each, scores[0], other, how)
        for each in _measures(suite, measures)
        for other in scores[1:]
    ]


def judge(
    sentences: Sequence[str], model: str, reduce: str | None = None, *, progress: Progress | None = None
) -> list[Judgement]:
    """Return the score of each sentence, and what the model said to it.

    >>> first, second = judge(["Cats sleep.", "Cats sleep sleep."], "uniform")
    >>> first.score > second.score
    True
    """
    suite = Suite("judge", tuple(Sentence(str(place), text) for place, text in enumerate(sentences, start=1)))
    reducer: Reduction | None = registry.make("reduction", reduce) if reduce else None
    return [
        Judgement(sentence.text, (reducer or _default_reduction(said))(said), said)
        for sentence, said in tokens(suite, model, progress=progress)
    ]


def _suite(suite: Suite | str) -> Suite:
    return load_suite(suite) if isinstance(suite, str) else suite


def _measures(suite: Suite, measures: Sequence[str | Measure]) -> list[Measure]:
    if measures:
        return [load_measure(each) if isinstance(each, str) else each for each in measures]
    found = default_measures(suite)
    if not found:
        raise MeasureError(f"suite {suite.name!r} has neither contrasts, nor labels of both classes, nor ratings")
    return found


def _default_reduction(said: Said) -> Reduction:
    return LogOdds() if isinstance(said, LabelScores) else LP()


def _query(sentence: Sentence, region: str | None) -> Query:
    if region is None:
        return Query(sentence.text)
    if region not in sentence.regions:
        has = ", ".join(sentence.regions) or "none"
        raise SuiteError(f"sentence {sentence.id!r} has no region {region!r}; its regions: {has}")
    return Query(sentence.text, target=sentence.regions[region])


def _asked(
    model: Model, name: str, suite: Suite, queries: Sequence[Query], progress: Progress | None
) -> Iterator[tuple[int, Said]]:
    """Yield what a model says to each query: first from the store, then from the model itself."""
    places: dict[str, list[int]] = {}
    for place, query in enumerate(queries):
        places.setdefault(query.key, []).append(place)
    distinct = [queries[found[0]] for found in places.values()]
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
            raise _named(error, suite.sentences[places[keys[error.index]][0]], name) from error


def _named(error: QueryError, sentence: Sentence, model: str) -> ModelError:
    return ModelError(f"{model} cannot score sentence {sentence.id!r} ({shorten(sentence.text)!r}): {error.problem}.")


def _tell(progress: Progress | None, name: str, done: int, total: int) -> None:
    if progress:
        progress(name, done, total)


def _check_tag(suite: Suite, by: str | None) -> None:
    if by is not None and by not in suite.tag_names:
        guess = closest(by, suite.tag_names)
        hint = f" Did you mean {guess!r}?" if guess else ""
        raise SuiteError(f"suite {suite.name!r} has no tag {by!r}; it has {', '.join(suite.tag_names)}.{hint}")


def _grouped(
    suite: Suite, scores: Scores, measure: Measure, units: Units, by: str, how: Bootstrap
) -> Iterator[Result]:
    """Yield a result for each value of a tag, and then the mean of these results."""
    groups: dict[str, list[int]] = {}
    for row, tags in enumerate(units.tags):
        groups.setdefault(tags.get(by, ""), []).append(row)
    if set(groups) == {""}:
        raise SuiteError(f"the tag {by!r} stands on none of the rows of {measure!r} in suite {suite.name!r}")
    parts = {name: units.take(np.array(rows)) for name, rows in groups.items()}
    results = [_result(suite, scores, measure, part, f"{by}={name}", how) for name, part in parts.items()]
    yield from results
    lacking = [result.group for result in results if result.value is None]
    fields = _fields(suite, scores, measure, f"macro({by})", len(units), how)
    values = [result.value for result in results if result.value is not None]
    low, high = macro_interval(measure, list(parts.values()), how) if not lacking else (None, None)
    yield Result(
        repr(measure),
        scores.model,
        scores.reduction,
        suite.name,
        f"macro({by})",
        float(np.mean(values)) if not lacking else None,
        low,
        high,
        len(units),
        sign(repr(measure), fields),
        reason=f"undefined for {', '.join(map(str, lacking))}" if lacking else None,
        notes=units.notes,
        units=units,
    )


def _result(
    suite: Suite, scores: Scores, measure: Measure, units: Units, group: str | None, how: Bootstrap
) -> Result:
    value, low, high, reason = None, None, None, None
    try:
        value = measure.value(units)
        low, high = interval(measure, units, how)
    except Undefined as error:
        reason = str(error)
    return Result(
        repr(measure),
        scores.model,
        scores.reduction,
        suite.name,
        group,
        value,
        low,
        high,
        len(units),
        sign(repr(measure), _fields(suite, scores, measure, group, len(units), how)),
        reason=reason,
        notes=units.notes if group is None else (),
        units=units,
    )


def _fields(
    suite: Suite, scores: Scores, measure: Measure, group: str | None, n: int, how: Bootstrap
) -> Mapping[str, str]:
    """Return what can change a number, for its signature."""
    fields = {"suite": suite.signature, "model": scores.signature or scores.model}
    if measure.needs == "rated contrasts":
        fields["ratings"] = "z as given" if ratings_are_z(suite) else "standardised(ddof=0)"
    if group:
        fields["group"] = group
    return fields | {"n": str(n), "ci": how.signature, "acceptability": __version__}


def _comparison(suite: Suite, measure: Measure, first: Scores, second: Scores, how: Bootstrap) -> Comparison:
    one, two = measure.units(suite, first), measure.units(suite, second)
    try:
        values = measure.value(one), measure.value(two)
    except Undefined as error:
        raise MeasureError(f"{measure!r} cannot be compared: {error}") from error
    low, high = difference(measure, one, two, how)
    fields = dict(_fields(suite, first, measure, None, len(one), how))
    fields["model"] += f" minus {second.signature or second.model}"
    names = [f"{each.model} {each.reduction}".strip() for each in (first, second)]
    return Comparison(
        repr(measure),
        suite.name,
        *names,
        *values,
        values[0] - values[1],
        low,
        high,
        len(one),
        sign(repr(measure), fields),
    )
