"""From scores to results: measures, groups, intervals. Nothing is printed, no model is opened here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.errors import MeasureError, SuiteError, Undefined, suggestion
from acceptability.measures import default_measures, load_measure
from acceptability.measures.gathering import row_tags
from acceptability.measures.rows import check_measurable, ratings_are_z
from acceptability.protocols import Engine, Measure, Model
from acceptability.reductions import LP
from acceptability.scoring import Progress, as_engine, as_model, as_suite, check_list, load_reduction, scored
from acceptability.signature import parse, sign
from acceptability.stats.bootstrap import Bootstrap, Interval, interval, macro_interval
from acceptability.types import Result, Scores, Suite, Units


def evaluate(
    suite: Suite | str,
    models: Sequence[str | Model],
    *,
    reductions: Sequence[str] = (),
    measures: Sequence[str | Measure] = (),
    by: str | None = None,
    region: str | None = None,
    bootstrap: Bootstrap | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Result]:
    """Return what each measure makes of each model on a suite.

    Args:
        measures: Measures or their spellings; by default those that the suite can answer.
        by: A tag: results for each of its values come too, and their macro mean.
        engine: Where the models run: ``local``, or on a cluster, ``ray(address='HOST:PORT')``.
    """
    return evaluate_all(
        [as_suite(suite)],
        models,
        reductions=reductions,
        measures=measures,
        by=by,
        region=region,
        bootstrap=bootstrap,
        engine=engine,
        progress=progress,
    )


def evaluate_all(
    suites: Sequence[Suite],
    models: Sequence[str | Model],
    *,
    reductions: Sequence[str] = (),
    measures: Sequence[str | Measure] = (),
    by: str | None = None,
    region: str | None = None,
    bootstrap: Bootstrap | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Result]:
    """Return what each measure makes of each model on several suites, suite by suite.

    Everything is checked before anything is scored, and each model is opened once.
    """
    for name, given in (("models", models), ("reductions", reductions), ("measures", measures)):
        check_list(name, given)
    by_region: list[bool] = []
    for suite in suites:
        found = checked_measures(suite, measures, by=by, resample_by=bootstrap.by if bootstrap else "")
        by_region.append(needs_regions(found, reductions, region))
    for model in models:
        as_model(model)
    results: list[list[Result]] = [[] for _ in suites]
    runner = as_engine(engine)
    asked: list[str | None] = [*reductions] or [None]
    for model in models:
        _, in_use = as_model(model)
        for suite, parts, gained in zip(suites, by_region, results, strict=True):
            for scores in scored(suite, model, asked, region=region, by_region=parts, engine=runner, progress=progress):
                gained += measure(suite, scores, measures, by=by, bootstrap=bootstrap)
        del in_use
    return [result for gained in results for result in gained]


def needs_regions(measures: Sequence[Measure], reductions: Sequence[str], region: str | None) -> bool:
    """Tell whether measures read the scores of regions, and refuse what they could not be read from."""
    if not any(each.needs == "predictions" for each in measures):
        return False
    if region:
        raise MeasureError(f"predictions need the surprisal of every region, and only {region!r} was asked for")
    if other := [each for each in reductions if not isinstance(load_reduction(each), LP)]:
        raise MeasureError(f"predictions are about surprisal, which lp gives; leave the reduction {other[0]} away")
    return True


def measure(
    suite: Suite | str,
    scores: Scores,
    measures: Sequence[str | Measure] = (),
    *,
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> list[Result]:
    """Return what each measure makes of scores, in the order asked; no model is needed."""
    suite, how = as_suite(suite), bootstrap or Bootstrap()
    results: list[Result] = []
    for each in checked_measures(suite, measures, by=by, resample_by=how.by):
        try:
            units = each.units(suite, scores)
        except Undefined as error:
            results.append(_without_rows(suite, scores, each, how, str(error)))
            continue
        results.append(_result(suite, scores, each, units, None, how))
        if by:
            results += _grouped(suite, scores, each, units, by, how)
    return results


def checked_measures(
    suite: Suite, measures: Sequence[str | Measure], *, by: str | None = None, resample_by: str = ""
) -> list[Measure]:
    """Return the measures asked for, or those that the suite can answer; all that can be wrong is said here."""
    check_list("measures", measures)
    asked = [load_measure(each) if isinstance(each, str) else each for each in measures]
    for each in asked:
        check_measurable(suite, each)
    found = asked or default_measures(suite)
    if not found:
        raise MeasureError(
            f"suite {suite.name!r} has neither contrasts, nor labels of both classes, nor ratings, nor predictions"
        )
    for tag in filter(None, (by, resample_by)):
        for each in found:
            _check_tag(suite, tag, each)
    return found


def _check_tag(suite: Suite, tag: str, measure: Measure) -> None:
    """Refuse a tag that stands on none of the rows that a measure counts."""
    what, rows = row_tags(suite, measure)
    has = sorted({name for tags in rows for name in tags})
    if tag not in has:
        shown = ", ".join(has) or "none"
        raise SuiteError(
            f"the {what} of suite {suite.name!r} have no tag {tag!r}; they have {shown}.{suggestion(tag, has)}"
        )


def _grouped(suite: Suite, scores: Scores, measure: Measure, units: Units, by: str, how: Bootstrap) -> Iterator[Result]:
    """Yield a result for each value of a tag, and then the mean of these results."""
    parts = {name: units.take(rows) for name, rows in grouped_rows(suite, measure, units, by).items()}
    results = [_result(suite, scores, measure, part, f"{by}={name}", how) for name, part in parts.items()]
    yield from results
    if results:
        yield _macro(results, list(parts.values()), len(units), measure, by, how)


def grouped_rows(suite: Suite, measure: Measure, units: Units, by: str) -> dict[str, NDArray[np.int64]]:
    """Return which rows have each value of a tag; none where no row is left, which a note on all of them explains."""
    groups: dict[str, list[int]] = {}
    for row, tags in enumerate(units.tags):
        if by in tags:
            groups.setdefault(tags[by], []).append(row)
    if not groups and any(units.tags):
        has = ", ".join(sorted({name for tags in units.tags for name in tags}))
        raise SuiteError(f"no row of {measure!r} on suite {suite.name!r} has the tag {by!r}; they have {has}.")
    return {name: np.array(rows) for name, rows in groups.items()}


def _macro(
    results: Sequence[Result], parts: Sequence[Units], n: int, measure: Measure, by: str, how: Bootstrap
) -> Result:
    """Return the mean of groups' results; rows without the tag are in none of them, and a note says so."""
    counted = sum(map(len, parts))
    lacking = [str(result.group) for result in results if result.value is None]
    values = [result.value for result in results if result.value is not None]
    found = Interval() if lacking else macro_interval(measure, parts, how)
    fields = parse(results[0].signature) | {"group": f"macro({by})", "n": str(counted)}
    return replace(
        results[0],
        group=f"macro({by})",
        value=None if lacking else float(np.mean(values)),
        low=found.low,
        high=found.high,
        n=counted,
        signature=sign(fields.pop("measure"), fields),
        reason=f"undefined for {', '.join(lacking)}" if lacking else None,
        notes=(*left_out(n - counted, by), *_noted(found)),
        units=None,
    )


def left_out(rows: int, by: str) -> tuple[str, ...]:
    """Return a note on rows that are in no group."""
    return (f"{rows} rows without the tag {by!r} are in no group",) if rows else ()


def _noted(found: Interval) -> tuple[str, ...]:
    return (found.note,) if found.note else ()


def _result(suite: Suite, scores: Scores, measure: Measure, units: Units, group: str | None, how: Bootstrap) -> Result:
    value, found, reason = None, Interval(), None
    notes = (*units.notes, *scores.notes) if group is None else ()
    try:
        value = measure.value(units)
        found = interval(measure, units, how)
    except Undefined as error:
        reason = str(error)
    return Result(
        repr(measure),
        scores.model,
        scores.reduction,
        suite.name,
        group,
        value,
        found.low,
        found.high,
        len(units),
        sign(repr(measure), signed_fields(suite, scores, measure, group, len(units), how)),
        reason=reason,
        notes=(*notes, *_noted(found)),
        units=units,
    )


def _without_rows(suite: Suite, scores: Scores, measure: Measure, how: Bootstrap, reason: str) -> Result:
    """Return the result of a measure that these scores give no rows at all, such as z-scores of equal scores."""
    signature = sign(repr(measure), signed_fields(suite, scores, measure, None, 0, how))
    about = repr(measure), scores.model, scores.reduction, suite.name
    return Result(*about, None, None, None, None, 0, signature, reason=reason, notes=scores.notes)


def signed_fields(
    suite: Suite, scores: Scores, measure: Measure, group: str | None, n: int, how: Bootstrap
) -> Mapping[str, str]:
    """Return what can change a number, for its signature."""
    fields = {"suite": suite.signature, "model": scores.signature or scores.model}
    if measure.needs == "rated contrasts":
        fields["ratings"] = "z as given" if ratings_are_z(suite) else "standardised(ddof=0)"
    if group:
        fields["group"] = group
    return fields | {"n": str(n), "ci": how.signature, "acceptability": __version__}
