"""Section 3.2, Figures 1 to 4 and the rank-sum tests of Park, Park and Song (2021), for a user's models.

As in the paper all models are taken together, a row a pair and model, and repulsion is in percentage points. A
figure is given by the numbers that draw it: the five of a box, and the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from acceptability.errors import MissingExtra, Undefined
from acceptability.stats.anova import tukey_hsd, two_way_anova
from acceptability.stats.ranks import rank_sum
from acceptability.stats.regression import logistic_regression
from acceptability.studies.cells import Cell, Key, Printed
from acceptability.studies.park_judged import Judged, Side, accuracy, by, repulsions
from acceptability.studies.park_types import Rated

Values = Mapping[Key, Printed]
Numbers = Mapping[str, float | None]

THRESHOLD = 0.80
_REPULSION = "repulsion"
_TABLE = "Section 3.2"
_LOGISTIC = ("b", "SE", "z", "p", "OR", "OR, low", "OR, high")
_FACTORS = {"test suites": "test suites", "correctness": "correctness", "test suites:correctness": "interaction"}


def regressions(values: Values, side: Side) -> Iterator[Cell]:
    """Yield the logistic regressions of the version and of the correctness on repulsion."""
    rows = [each for each in side.rows if each.repulsion is not None]
    test = partial(_logistic, rows, lambda each: each.is_correct)
    yield from _tested(values, side, "logistic regression, correctness", test)
    if len(side.models) == 1:
        note = "needs a second model: the version is which of two models it is"
        yield from _cells(values, side, "logistic regression, version", {_LOGISTIC[0]: None}, note)
    for model in side.models[1:]:
        yield from _version(values, side, [each for each in rows if each.model in (side.models[0], model)], model)


def _version(values: Values, side: Side, rows: Sequence[Judged], model: str) -> Iterator[Cell]:
    label = "" if len(side.models) == 2 else f" ({model})"
    test = partial(_logistic, rows, lambda each: each.model == model)
    note = f"{model} is 1, {side.models[0]} 0"
    yield from _tested(values, side, f"logistic regression, version{label}", test, note)


def _logistic(rows: Sequence[Judged], outcome: Callable[[Judged], bool]) -> Numbers:
    fit = logistic_regression([float(outcome(each)) for each in rows], {_REPULSION: repulsions(rows)})
    found = fit[_REPULSION]
    numbers = found.estimate, found.se, found.statistic, found.p, found.effect, found.effect_low, found.effect_high
    return dict(zip(_LOGISTIC, numbers, strict=True))


def variance(values: Values, side: Side) -> Iterator[Cell]:
    """Yield the analysis of variance of repulsion by suite and correctness, and Tukey's tests of the suites."""
    rows = [each for each in side.rows if each.repulsion is not None]
    y, parts = repulsions(rows), [each.part for each in rows]
    factors: Mapping[str, Sequence[object]] = {"test suites": parts, "correctness": [each.is_correct for each in rows]}
    note = f"{len(rows)} rows, a pair and model each; sums of squares of type II"
    try:
        found = two_way_anova(y, factors)
        yield from _cells(values, side, "ANOVA", {"residual df": float(found.residual_df)}, note)
        for each in found.effects:
            numbers = {"F": each.f, "df": float(each.df), "p": each.p, "partial eta squared": each.partial_eta_squared}
            yield from _cells(values, side, f"ANOVA, {_FACTORS[each.name]}", numbers, note)
    except Undefined as error:
        yield from _cells(values, side, "ANOVA", {"residual df": None}, str(error))
    try:
        for pair in tukey_hsd(y, parts):
            numbers = {"difference": pair.difference, "p": pair.p, "low": pair.low, "high": pair.high}
            yield from _cells(values, side, f"Tukey HSD, {pair.first} against {pair.second}", numbers, note)
    except Undefined as error:
        yield from _cells(values, side, "Tukey HSD, I against II", {"difference": None}, str(error))


def _tested(values: Values, side: Side, row: str, test: Callable[[], Numbers], note: str = "") -> Iterator[Cell]:
    """Yield the numbers of a logistic regression, or why there are none."""
    try:
        numbers = test()
    except (Undefined, MissingExtra) as error:
        numbers, note = {_LOGISTIC[0]: None}, str(error)
    yield from _cells(values, side, row, numbers, note)


def _cells(values: Values, side: Side, row: str, numbers: Numbers, note: str) -> Iterator[Cell]:
    for column, ours in numbers.items():
        there = values.get((_TABLE, row.partition(" (")[0], column))
        paper = there.value if there and ours is not None else None
        yield Cell(_TABLE, f"{side.name}: {row}", column, paper, ours, side.source, None, note)


def figures(side: Side) -> Iterator[Cell]:
    """Yield the boxes of Figures 1 and 2, and the means of Figure 3."""
    rows = [each for each in side.rows if each.repulsion is not None]
    boxes = {
        "Figure 1": {**by(rows, lambda each: each.model), **by(rows, _correctness)},
        "Figure 2": by(rows, lambda each: f"test suite {each.part}"),
    }
    for figure, groups in boxes.items():
        for name, chosen in groups.items():
            yield from _box(figure, f"{side.name}: {name}", repulsions(chosen), side.source)
    for name, chosen in by(rows, lambda each: f"test suite {each.part}, {_correctness(each)}").items():
        mean = float(np.mean(repulsions(chosen)))
        for column, ours in (("n", str(len(chosen))), ("mean", mean)):
            yield Cell("Figure 3", f"{side.name}: {name}", column, None, ours, side.source, None)


def _correctness(each: Judged) -> str:
    return "correct" if each.is_correct else "incorrect"


def _box(figure: str, row: str, numbers: Sequence[float], source: str) -> Iterator[Cell]:
    yield Cell(figure, row, "n", None, str(len(numbers)), source, None)
    for column, share in (
        ("lowest", 0),
        ("lower quartile", 25),
        ("median", 50),
        ("upper quartile", 75),
        ("highest", 100),
    ):
        yield Cell(figure, row, column, None, float(np.percentile(numbers, share)), source, None)
    yield Cell(figure, row, "mean", None, float(np.mean(numbers)), source, None)


def accuracies(side: Side) -> dict[str, float]:
    """Return how often the models are right on each error type that has pairs."""
    return {name: accuracy(rows) for name, rows in by(side.of(part="III"), lambda each: each.kind).items()}


def ratings(
    values: Values, types: Sequence[Rated], right: Mapping[str, float], label: str, source: str
) -> Iterator[Cell]:
    """Yield Figure 4, people's ratings of types above and below the threshold of accuracy, and its two tests.

    Args:
        right: The accuracy on each type; a type without one is left out.
    """
    known = [each for each in types if each.name in right]
    above = [each for each in known if right[each.name] >= THRESHOLD]
    below = [each for each in known if right[each.name] < THRESHOLD]
    for role in ("acceptable", "unacceptable"):
        groups = [[getattr(each, role) for each in group] for group in (above, below)]
        for name, numbers in zip(("above", "below"), groups, strict=True):
            if numbers:
                yield from _box("Figure 4", f"{label}: {name}, {role}", numbers, source)
        yield from _rank_sum(values, role, groups, label, source)


def _rank_sum(values: Values, role: str, groups: Sequence[Sequence[float]], label: str, source: str) -> Iterator[Cell]:
    row, note = f"{role}, below against above", f"{len(groups[0])} types above, {len(groups[1])} below"
    if not all(groups):
        yield Cell("Section 3.3", f"{label}: {row}", "W", None, None, source, None, note)
        return
    test = rank_sum(*groups)
    for column, ours in (("W", test.w), ("p", test.p)):
        paper = values["Section 3.3", row, column].value
        yield Cell("Section 3.3", f"{label}: {row}", column, paper, ours, source, None, note)
