"""Section 6 of Warstadt, Singh and Bowman (2019) for classifiers taught here: Table 5, and the curve of Figure 3."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acceptability.errors import ModelError, Undefined
from acceptability.studies.cells import Cell, Key, Printed, beside, not_compared
from acceptability.studies.cola_classifiers import Judges, of_group
from acceptability.studies.cola_curve import Point, fitted_line
from acceptability.studies.cola_groups import Group, seed_of
from acceptability.studies.cola_judging import MEAN, at_threshold, both_domains, over_runs
from acceptability.studies.cola_rows import DESIGN_ROW, Taught, row_of
from acceptability.studies.cola_splits import Parts, find_split, parts
from acceptability.studies.niu_penn_models import Asked
from acceptability.train.classifiers.examples import Examples
from acceptability.types import Suite

_FIGURE = "Figure 3"
_SHARED = "restarts of one size share their sentences, and are less independent than the interval takes them"
_SPLIT = (
    "public sentences, a tenth of the training part held out to stop by; the paper: half of larger sets, as test sets"
)


def table_5(groups: Sequence[Group], values: Mapping[Key, Printed], like: Asked) -> Iterator[Cell]:
    """Yield the rows of the splits that classifiers were taught by: the mean over restarts, as the paper prints it."""
    for group in groups:
        split = find_split(group.split, values)
        found = parts(split)
        _check(group, found)
        judges = of_group(group, like)
        for title, suite in titled(found).items():
            yield from _split_cells(judges, split.name, title, suite, values)


def titled(found: Parts) -> dict[str, Suite]:
    """Return the sets of Table 5 by its columns."""
    both = Suite(f"{found.in_domain.name} and out", (*found.in_domain.sentences, *found.out_of_domain.sentences))
    return {"In-Domain": found.in_domain, "Out-of-Domain": found.out_of_domain, "Overall": both}


def _split_cells(judges: Judges, split: str, title: str, suite: Suite, values: Mapping[Key, Printed]) -> Iterator[Cell]:
    scores = judges.scores(suite)
    signature = judges.signature(scores)
    for statistic, measure, (value, note) in over_runs(suite.sentences, scores, judges.chosen):
        said = "; ".join(filter(None, (note, f"{len(suite.sentences):,} sentences", signature)))
        column = f"{title} {measure}"
        if statistic in (MEAN, "") and judges.taught and row_of(judges.taught) == DESIGN_ROW:
            source = f"{len(scores)} restarts in {judges.name}: {_SPLIT}"
            yield not_compared(values, ("Table 5", split, column), value, source, note=said)
        row = ", ".join(filter(None, (split, judges.name, statistic)))
        yield beside({}, ("Table 5", row, column), value, judges.source, note=said)


def _check(group: Group, found: Parts) -> None:
    """Refuse classifiers that learnt from other sentences: those out of domain could be among them."""
    wanted = Examples(found.train.sentences).hash
    for one in group.runs:
        if one.data != wanted:
            raise ModelError(
                f"{one.folder} was not taught on the training part of split {group.split} (data {one.data}, not "
                f"{wanted}), so that it may have learnt what it would be asked. Teach it with study cola --train."
            )


def figure_3(groups: Sequence[Group], like: Asked) -> list[Cell]:
    """Return the points of the learning curve, their means, and the line through them, for each kind of classifier."""
    found: list[Cell] = []
    for kind in dict.fromkeys(_called(group.runs[0]) for group in groups):
        points = {one.folder.parent.name + "/" + one.folder.name: point for one, point in _points(groups, kind, like)}
        found += [
            beside(
                {}, (_FIGURE, f"{kind}, {point.size}", f"MCC, seed {point.seed}"), point.mcc, f"re-scored with {name}"
            )
            for name, point in points.items()
        ]
        found += [*_means(kind, list(points.values())), *_line(kind, list(points.values()))]
    return found


def _called(one: Taught) -> str:
    return row_of(one) or one.about


def _points(groups: Sequence[Group], kind: str, like: Asked) -> Iterator[tuple[Taught, Point]]:
    """Yield the MCC of each restart on both development sets together, as the paper's figure has it."""
    suite = both_domains()
    for group in sorted(groups, key=lambda each: each.size or 0):
        if _called(group.runs[0]) != kind:
            continue
        for one, scores in zip(group.runs, of_group(group, like).scores(suite), strict=True):
            value, _ = at_threshold(suite.sentences, scores)["MCC"]
            assert value is not None
            assert group.size is not None
            yield one, Point(group.size, seed_of(one.folder)[0], value)


def _means(kind: str, points: Sequence[Point]) -> Iterator[Cell]:
    for size in sorted({each.size for each in points}):
        values = [each.mcc for each in points if each.size == size]
        source, row = f"{len(values)} restarts", f"{kind}, {size}"
        yield beside({}, (_FIGURE, row, "MCC, mean"), float(np.mean(values)), source)
        if len(values) > 1:
            spread = float(np.std(values, ddof=1))
            yield beside({}, (_FIGURE, row, "MCC, standard deviation"), spread, source, note="n - 1")


def _line(kind: str, points: Sequence[Point]) -> Iterator[Cell]:
    source = f"least squares over {len(points)} restarts"
    try:
        line = fitted_line(points)
    except Undefined as error:
        yield beside({}, (_FIGURE, f"{kind}, line", "slope"), None, source, note=str(error))
        return
    told = {"intercept": line.intercept, "slope": line.slope, "slope, low": line.low, "slope, high": line.high}
    for column, value in told.items():
        yield beside(
            {}, (_FIGURE, f"{kind}, line", column), value, source, note=f"MCC a tenfold of sentences; {_SHARED}"
        )
    for size in sorted({each.size for each in points}):
        for column, value in zip(("fitted", "fitted, low", "fitted, high"), line.at(size), strict=True):
            yield beside({}, (_FIGURE, f"{kind}, {size}", column), value, f"{source}, 95 % interval", note=_SHARED)
