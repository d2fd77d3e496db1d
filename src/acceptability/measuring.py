"""From scores to results: measures, groups, intervals, comparisons. Nothing is printed, no model is opened here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acceptability import __version__
from acceptability.errors import MeasureError, SuiteError, Undefined, suggestion
from acceptability.measures import default_measures, load_measure
from acceptability.measures.rows import check_measurable, ratings_are_z
from acceptability.protocols import Measure
from acceptability.scoring import Progress, as_suite, check_list, scored
from acceptability.signature import parse, sign
from acceptability.stats.bootstrap import Bootstrap, difference, interval, macro_interval
from acceptability.types import Result, Scores, Suite, Units


@dataclass(frozen=True, eq=False)
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
    units: tuple[Units, Units] = field(repr=False)

    def row(self) -> dict[str, object]:
        """Return the comparison as one flat row, for JSON and tables."""
        return {name: value for name, value in vars(self).items() if name != "units"}


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
    for name, given in (("models", models), ("reductions", reductions), ("measures", measures)):
        check_list(name, given)
    suite = as_suite(suite)
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
    suite, how = as_suite(suite), bootstrap or Bootstrap()
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
    suite, how = as_suite(suite), bootstrap or Bootstrap()
    if len(scores) < 2:
        raise MeasureError(f"a comparison needs the scores of two models; there are {len(scores)}")
    return [
        _comparison(suite, each, scores[0], other, how) for each in _measures(suite, measures) for other in scores[1:]
    ]


def _measures(suite: Suite, measures: Sequence[str | Measure]) -> list[Measure]:
    check_list("measures", measures)
    asked = [load_measure(each) if isinstance(each, str) else each for each in measures]
    for each in asked:
        check_measurable(suite, each)
    if asked:
        return asked
    found = default_measures(suite)
    if not found:
        raise MeasureError(f"suite {suite.name!r} has neither contrasts, nor labels of both classes, nor ratings")
    return found


def _check_tag(suite: Suite, by: str | None) -> None:
    if by is not None and by not in suite.tag_names:
        has = ", ".join(suite.tag_names) or "none"
        raise SuiteError(f"suite {suite.name!r} has no tag {by!r}; its tags: {has}.{suggestion(by, suite.tag_names)}")


def _grouped(suite: Suite, scores: Scores, measure: Measure, units: Units, by: str, how: Bootstrap) -> Iterator[Result]:
    """Yield a result for each value of a tag, and then the mean of these results."""
    groups: dict[str, list[int]] = {}
    for row, tags in enumerate(units.tags):
        if by in tags:
            groups.setdefault(tags[by], []).append(row)
    if not groups:
        raise SuiteError(f"the tag {by!r} stands on none of the rows of {measure!r} in suite {suite.name!r}")
    parts = {name: units.take(np.array(rows)) for name, rows in groups.items()}
    results = [_result(suite, scores, measure, part, f"{by}={name}", how) for name, part in parts.items()]
    yield from results
    yield _macro(results, list(parts.values()), len(units), measure, by, how)


def _macro(
    results: Sequence[Result], parts: Sequence[Units], n: int, measure: Measure, by: str, how: Bootstrap
) -> Result:
    """Return the mean of groups' results; rows without the tag are in none of them, and a note says so."""
    counted = sum(map(len, parts))
    lacking = [str(result.group) for result in results if result.value is None]
    values = [result.value for result in results if result.value is not None]
    low, high = (None, None) if lacking else macro_interval(measure, parts, how)
    fields = parse(results[0].signature) | {"group": f"macro({by})", "n": str(counted)}
    return replace(
        results[0],
        group=f"macro({by})",
        value=None if lacking else float(np.mean(values)),
        low=low,
        high=high,
        n=counted,
        signature=sign(fields.pop("measure"), fields),
        reason=f"undefined for {', '.join(lacking)}" if lacking else None,
        notes=(f"{n - counted} rows without the tag {by!r} are in no group",) if n > counted else (),
        units=None,
    )


def _result(suite: Suite, scores: Scores, measure: Measure, units: Units, group: str | None, how: Bootstrap) -> Result:
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
        notes=(*units.notes, *scores.notes) if group is None else (),
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
    return Comparison(
        repr(measure),
        suite.name,
        f"{first.model} {first.reduction}".strip(),
        f"{second.model} {second.reduction}".strip(),
        values[0],
        values[1],
        values[0] - values[1],
        low,
        high,
        len(one),
        sign(repr(measure), fields),
        (one, two),
    )
