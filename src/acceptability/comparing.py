"""Is one model better than another on the same rows: by how much, how surely, and for which groups of rows?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measuring import checked_measures, grouped_rows, left_out, signed_fields
from acceptability.protocols import Measure
from acceptability.scoring import as_suite
from acceptability.signature import parse, sign
from acceptability.stats.bootstrap import MOST_DRAWS, Bootstrap, Interval, difference, macro_difference, mean_of
from acceptability.stats.corrections import benjamini_hochberg, holm
from acceptability.stats.permutation import permutation_test
from acceptability.stats.shares import McNemar, mcnemar
from acceptability.types import Scores, Suite, Units

_ON_A_SCALE_OF_ITS_OWN = ("score", "better", "worse", "gap")
"""Columns that are in a model's own units: they are standardised before what two models said is swapped."""

_NO_ROWS = Units((), {}, ())


@dataclass(frozen=True, eq=False)
class Comparison:
    """How much better one model does than another, over the same rows.

    Args:
        group: Which rows: None for all, ``tag=value`` for some, ``macro(tag)`` for the mean of groups.
        low, high: The interval of the difference; the same rows are drawn for both models.
        p: Of a permutation test, two-sided: how often a difference as large comes of swapping the two models.
        holm, benjamini_hochberg: p, corrected for the number of groups; None outside groups.
        only_first, only_second: Where a row is right or wrong: how many only one of the models gets right.
        mcnemar_p: Of McNemar's exact test on these, which takes rows as independent: None where clusters are drawn.
        odds_ratio: ``only_first / only_second``.
        reason: Why there is no difference, where it is undefined.
    """

    measure: str
    suite: str
    group: str | None
    first: str
    second: str
    first_value: float | None
    second_value: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    signature: str
    units: tuple[Units, Units] = field(repr=False)
    p: float | None = None
    holm: float | None = None
    benjamini_hochberg: float | None = None
    only_first: int | None = None
    only_second: int | None = None
    mcnemar_p: float | None = None
    odds_ratio: float | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the comparison as one flat row, for JSON and tables."""
        row = {name: value for name, value in vars(self).items() if name != "units"}
        return row | {"notes": "; ".join(self.notes)}


@dataclass(frozen=True)
class Tests:
    """How a difference is told from chance.

    Args:
        draws: How many swaps of a permutation test are drawn where they are too many to count; 0 makes no test.
    """

    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    draws: int = 2000

    def __post_init__(self) -> None:
        if not 0 <= self.draws <= MOST_DRAWS:
            raise MeasureError(f"draws is {self.draws}; expected a whole number from 0 to {MOST_DRAWS:,}")

    @property
    def signature(self) -> str:
        """How p was made."""
        if not self.draws:
            return "none"
        how = self.bootstrap
        return f"permutation(draws={self.draws},by={how.by or 'row'},seed={how.seed})"


def compare(
    suite: Suite | str,
    scores: Sequence[Scores],
    measures: Sequence[str | Measure] = (),
    *,
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
    draws: int = 2000,
) -> list[Comparison]:
    """Return how much the first model differs from each other one: a paired interval, and tests.

    Args:
        by: A tag: comparisons for each of its values come too, with p corrected for their number, and their macro mean.
        draws: How many swaps a permutation test draws where they are too many to count; 0 for no test.
    """
    suite, how = as_suite(suite), Tests(bootstrap or Bootstrap(), draws)
    if len(scores) < 2:
        raise MeasureError(f"a comparison needs the scores of two models; there are {len(scores)}")
    return [
        found
        for each in checked_measures(suite, measures, by=by, resample_by=how.bootstrap.by)
        for other in scores[1:]
        for found in _compared(suite, each, (scores[0], other), by, how)
    ]


def _compared(
    suite: Suite, measure: Measure, models: tuple[Scores, Scores], by: str | None, how: Tests
) -> Iterator[Comparison]:
    """Yield the comparison over all rows, over each group, and over the mean of groups."""
    try:
        one, two, shared = _shared(measure.units(suite, models[0]), measure.units(suite, models[1]))
    except Undefined as error:
        nothing = _nothing(suite, measure, models, (_NO_ROWS, _NO_ROWS), how, group=None, shared="")
        yield replace(nothing, reason=str(error))
        return
    notes = tuple(dict.fromkeys((*one.notes, *two.notes, *models[0].notes, *models[1].notes)))
    overall = _comparison(suite, measure, models, (one, two), how, group=None, shared=shared)
    yield replace(overall, notes=(*notes, *overall.notes))
    if not by:
        return
    groups = grouped_rows(suite, measure, one, by)
    parts = {name: (one.take(rows), two.take(rows)) for name, rows in groups.items()}
    found = [
        _comparison(suite, measure, models, part, how, group=f"{by}={name}", shared=shared)
        for name, part in parts.items()
    ]
    yield from _corrected(found)
    if found:
        macro = _macro(found, list(parts.values()), measure, by, how)
        yield replace(macro, units=(one, two), notes=(*left_out(len(one) - macro.n, by), *macro.notes))


def _comparison(
    suite: Suite,
    measure: Measure,
    models: tuple[Scores, Scores],
    units: tuple[Units, Units],
    how: Tests,
    *,
    group: str | None,
    shared: str,
) -> Comparison:
    nothing = _nothing(suite, measure, models, units, how, group=group, shared=shared)
    first, no_first = _value(measure, units[0], nothing.first)
    second, no_second = _value(measure, units[1], nothing.second)
    found = replace(nothing, first_value=first, second_value=second)
    if first is None or second is None:
        return replace(found, reason="; ".join(filter(None, (no_first, no_second))))
    return _tested(found, measure, how)


def _nothing(
    suite: Suite,
    measure: Measure,
    models: tuple[Scores, Scores],
    units: tuple[Units, Units],
    how: Tests,
    *,
    group: str | None,
    shared: str,
) -> Comparison:
    """Return a comparison without numbers."""
    first, second = models
    fields = dict(signed_fields(suite, first, measure, group, len(units[0]), how.bootstrap))
    fields["model"] += f" minus {second.signature or second.model}"
    fields |= {"rows": shared} if shared else {}
    return Comparison(
        repr(measure),
        suite.name,
        group,
        f"{first.model} {first.reduction}".strip(),
        f"{second.model} {second.reduction}".strip(),
        *(None, None, None, None, None),
        len(units[0]),
        sign(repr(measure), fields | {"test": how.signature}),
        units,
    )


def _value(measure: Measure, units: Units, model: str) -> tuple[float | None, str]:
    """Return a model's value, or why it has none."""
    try:
        return measure.value(units), ""
    except Undefined as error:
        return None, f"{model}: {error}"


def _tested(found: Comparison, measure: Measure, how: Tests) -> Comparison:
    """Return a comparison with its interval and its tests."""
    assert found.first_value is not None
    assert found.second_value is not None
    one, two = found.units
    interval = difference(measure, one, two, how.bootstrap)
    p, untested = _p(measure, one, two, how) if how.draws else (None, "")
    counts = _discordant(measure, one, two)
    return replace(
        found,
        difference=found.first_value - found.second_value,
        low=interval.low,
        high=interval.high,
        p=p,
        only_first=counts.only_first if counts else None,
        only_second=counts.only_second if counts else None,
        mcnemar_p=counts.p if counts and not how.bootstrap.by else None,
        odds_ratio=counts.odds_ratio if counts else None,
        notes=tuple(filter(None, (interval.note, untested))),
    )


def _p(measure: Measure, one: Units, two: Units, how: Tests) -> tuple[float | None, str]:
    """Return p of a permutation test, or why there is none."""
    is_mean = mean_of(measure) is not None
    columns = () if is_mean else tuple(name for name in _ON_A_SCALE_OF_ITS_OWN if name in one.columns)
    options = {"by": how.bootstrap.by, "draws": how.draws, "seed": how.bootstrap.seed, "standardise": columns}
    try:
        return permutation_test(measure, one, two, **options).p, ""  # type: ignore[arg-type]
    except Undefined as error:
        return None, f"no permutation test: {error}"


def _discordant(measure: Measure, one: Units, two: Units) -> McNemar | None:
    """Return McNemar's test, for a measure whose rows are right or wrong."""
    column = mean_of(measure)
    if column is None or not len(one) or not all(np.isin(units[column], (0.0, 1.0)).all() for units in (one, two)):
        return None
    return mcnemar(one[column], two[column])


def _corrected(found: Sequence[Comparison]) -> Iterator[Comparison]:
    ps = [each.p for each in found]
    for each, strict, lenient in zip(found, holm(ps), benjamini_hochberg(ps), strict=True):
        yield replace(each, holm=strict, benjamini_hochberg=lenient)


def _macro(
    found: Sequence[Comparison], parts: Sequence[tuple[Units, Units]], measure: Measure, by: str, how: Tests
) -> Comparison:
    """Return the mean of groups' differences; groups where one is undefined leave it undefined."""
    lacking = [str(each.group) for each in found if each.difference is None]
    interval = Interval() if lacking else macro_difference(measure, parts, how.bootstrap)
    n = sum(each.n for each in found)
    fields = parse(found[0].signature) | {"group": f"macro({by})", "n": str(n), "test": "none"}
    like = found[0]
    return Comparison(
        like.measure,
        like.suite,
        f"macro({by})",
        like.first,
        like.second,
        _mean([each.first_value for each in found]),
        _mean([each.second_value for each in found]),
        _mean([each.difference for each in found]),
        interval.low,
        interval.high,
        n,
        sign(fields.pop("measure"), fields),
        like.units,
        reason=f"undefined for {', '.join(lacking)}" if lacking else None,
        notes=(interval.note,) if interval.note else (),
    )


def _mean(values: Sequence[float | None]) -> float | None:
    defined = [each for each in values if each is not None]
    return float(np.mean(defined)) if len(defined) == len(values) else None


def _shared(one: Units, two: Units) -> tuple[Units, Units, str]:
    """Return the rows that two models both have, in one order, and what to say where one of them lacks some.

    Rows differ where a measure leaves some out by their scores: sets within which a model gives all sentences the same.
    """
    if one.ids == two.ids:
        return one, two, ""
    places = {name: row for row, name in enumerate(two.ids)}
    kept = [(row, places[name]) for row, name in enumerate(one.ids) if name in places]
    first, second = np.array(kept, dtype=np.int64).reshape(-1, 2).T
    return one.take(first), two.take(second), f"{len(kept)} shared, of {len(one)} and {len(two)}"
