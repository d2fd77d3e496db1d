"""Bootstrap confidence intervals for any measure: percentile and BCa (Efron 1987).

Rows, or clusters of rows that share a tag (items, sets), are resampled with replacement by a local, seeded generator;
the interval is read off the distribution of the resampled values, by percentiles or by BCa (bias-corrected and
accelerated), which also corrects for bias and skewness. What is resampled must be independent: where several rows
share an item, resample items (``by="item"``).

A measure whose value is the mean of one column declares it by an attribute ``mean_of = "column"``. Its resamples are
then computed many at a time, with the same numbers, and the jackknife that BCa needs has a closed form. For other
measures the jackknife leaves out each row (or cluster) in turn or, where there are more than 400, each of 400 random
groups of them. Where something was fitted to the rows, such as a threshold, it is fitted again in every resample
(``Units.refit``): an interval for one fixed threshold would leave out that another sample gives another one.

A proportion whose rows are all 0 or all 1 gets the exact interval of Clopper and Pearson instead (`clopper_pearson`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure
from acceptability.stats.resampling import (
    UnitIndices,
    cluster_rows,
    count_sampling_units,
    draw_resamples,
    get_cluster_keys,
    make_jackknife_groups,
    nest_rows,
    sum_by_cluster,
)
from acceptability.types import SINGLE_ROWS, Floats, Units

INTERVAL_METHODS = ("percentile", "bca")

MAX_RESAMPLES = 10_000_000
"""The largest number of bootstrap resamples, or of draws of a permutation test, that may be requested."""

# With fewer resamples a 95 % interval would end at the very least and greatest value, or beyond them.
_MIN_RESAMPLES = 40
# A measure may be undefined on some resamples, such as a correlation where all drawn ratings are equal. A few of them
# can be left out; many would mean an interval of a selection that is no longer random.
_MIN_DEFINED_SHARE = 0.95
# Each left-out row costs one evaluation of the measure. BCa needs the jackknife for one number only, the acceleration,
# which 400 random groups estimate well enough (tests/stats/test_bootstrap.py compares them).
_MAX_JACKKNIFE_GROUPS = 400
# Relative to the largest value: resampled values that differ by less are equal but for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Bootstrap:
    """How bootstrap intervals are computed.

    Args:
        resamples: The number of resamples; 0 for no intervals.
        level: The confidence level.
        by: The tag whose values are resampled whole (cluster bootstrap); empty, or "row", to resample single rows. None
            is the sampling unit of the suite; where there are rows but no suite, it is single rows.
        method: "percentile", or "bca", which corrects for bias and skewness.
        within: A tag, or "row": the two-level bootstrap, which resamples the values of ``by``, and inside each drawn
            one the values of this tag, or single rows. Empty for one level.
    """

    resamples: int = 1000
    level: float = 0.95
    by: str | None = None
    seed: int = 0
    method: str = "percentile"
    within: str = ""

    def __post_init__(self) -> None:
        if self.resamples and not _MIN_RESAMPLES <= self.resamples <= MAX_RESAMPLES:
            raise MeasureError(
                f"resamples is {self.resamples}; expected 0, or a number from {_MIN_RESAMPLES} to {MAX_RESAMPLES:,}"
            )
        if not 0 < self.level < 1:
            raise MeasureError(f"level is {self.level}; expected a share between 0 and 1")
        if self.seed < 0:
            raise MeasureError(f"seed is {self.seed}; expected a whole number from 0")
        if self.method not in INTERVAL_METHODS:
            raise MeasureError(f"the interval is {self.method!r}; expected {' or '.join(INTERVAL_METHODS)}")
        if self.by == SINGLE_ROWS:
            object.__setattr__(self, "by", "")
        if self.within and not self.by:
            raise MeasureError(
                f"within={self.within!r} resamples inside each value of a tag: name it, as by='paradigm'"
            )
        # A signature joins the two levels by a slash.
        if wrong := [tag for tag in (self.by, self.within) if tag and "/" in tag]:
            raise MeasureError(f"cannot resample by {wrong[0]!r}; for two levels give by='paradigm', within='item'")

    @property
    def signature(self) -> str:
        """All settings, for the signature of a result."""
        if not self.resamples:
            return "none"
        unit = f"{self.by}/{self.within}" if self.within else self.by or SINGLE_ROWS
        return f"{self.method}({self.level:g},resamples={self.resamples},by={unit},seed={self.seed})"


_SIGNED_BOOTSTRAP = re.compile(
    r"(?P<method>\w+)\((?P<level>[^,]+),resamples=(?P<resamples>\d+),by=(?P<by>.*),seed=(?P<seed>\d+)\)\Z", re.DOTALL
)


def parse_bootstrap(signature: str) -> Bootstrap:
    """Return the bootstrap that the signature of a result names in its field ``ci``.

    >>> parse_bootstrap("percentile(0.95,resamples=1000,by=item,seed=0)").by
    'item'
    >>> parse_bootstrap("percentile(0.95,resamples=1000,by=paradigm/item,seed=0)").within
    'item'
    """
    # Never None, the unit of the suite: a signature says what was resampled.
    if signature == "none":
        return Bootstrap(resamples=0, by="")
    match = _SIGNED_BOOTSTRAP.match(signature)
    if match is None:
        raise MeasureError(f"{signature!r} is no bootstrap: expected METHOD(LEVEL,resamples=N,by=UNIT,seed=N)")
    by, _, within = match["by"].partition("/")
    return Bootstrap(
        resamples=int(match["resamples"]),
        level=float(match["level"]),
        by=by,
        seed=int(match["seed"]),
        method=match["method"],
        within=within,
    )


@dataclass(frozen=True)
class Interval:
    """A confidence interval; its ends are None where there is none, and the note says why or how it was computed."""

    low: float | None = None
    high: float | None = None
    note: str | None = None


def bootstrap_interval(measure: Measure, units: Units, bootstrap: Bootstrap) -> Interval:
    """Return the interval of a measure over its rows; there is none for fewer than two rows or clusters.

    A proportion whose rows are all 0 or all 1 gets the exact interval of Clopper and Pearson, with each row or cluster
    as one trial, since all resamples of such rows are equal.
    """
    if not bootstrap.resamples:
        return Interval()
    if (exact := _exact_if_constant(measure, units, bootstrap)) is not None:
        return exact
    return _combine_strata([_build_stratum(measure, units, bootstrap)], bootstrap, _take_only)


def bootstrap_macro_interval(measure: Measure, groups: Sequence[Units], bootstrap: Bootstrap) -> Interval:
    """Return the interval of the mean over groups.

    Rows are resampled within groups, each of which needs two. Where the groups are what is sampled (each is one value
    of ``by``, as paradigms are with ``by="paradigm"``), groups are resampled, and with ``within`` the rows inside them.
    """
    if not bootstrap.resamples:
        return Interval()
    return _combine_groups(groups, [partial(_build_stratum, measure, units) for units in groups], bootstrap)


def bootstrap_difference(measure: Measure, first: Units, second: Units, bootstrap: Bootstrap) -> Interval:
    """Return the interval of the difference between two models over the same rows (paired bootstrap)."""
    if not bootstrap.resamples:
        return Interval()
    return _combine_strata([_build_difference_stratum(measure, first, second, bootstrap)], bootstrap, _take_only)


def resample_difference(measure: Measure, first: Units, second: Units, bootstrap: Bootstrap) -> Floats:
    """Return the difference between two models on each resample of the same rows; nan where it is undefined."""
    stratum = _build_difference_stratum(measure, first, second, bootstrap)
    if stratum.size < 2:
        raise Undefined("there are fewer than two rows or clusters to resample")
    return stratum.resample(_make_generator(bootstrap, 0))


def bootstrap_macro_difference(
    measure: Measure, groups: Sequence[tuple[Units, Units]], bootstrap: Bootstrap
) -> Interval:
    """Return the interval of the mean over groups of the difference between two models; see the interval of a mean."""
    if not bootstrap.resamples:
        return Interval()
    builders = [partial(_build_difference_stratum, measure, first, second) for first, second in groups]
    return _combine_groups([first for first, _ in groups], builders, bootstrap)


@dataclass(frozen=True, eq=False)
class _Stratum:
    """Rows that are resampled by themselves (stratified bootstrap).

    Args:
        value: The measure on the rows themselves.
        size: The number of rows, or of clusters.
        resample: From a generator to the measure on each resample, nan where undefined.
        jackknife: The measure with each row, cluster or group of them left out.
    """

    value: float
    size: int
    resample: Callable[[np.random.Generator], Floats]
    jackknife: Callable[[], Floats]


def _build_stratum(measure: Measure, units: Units, bootstrap: Bootstrap) -> _Stratum:
    if units.refit:
        return _build_refitted_stratum(measure.value(units), units, bootstrap, units.refit)
    if column := measure.mean_of:
        return _build_mean_stratum(units[column], units, bootstrap)
    return _build_resampled_stratum(units, bootstrap, lambda rows: measure.value(units.take_columns(rows)))


def _build_difference_stratum(measure: Measure, first: Units, second: Units, bootstrap: Bootstrap) -> _Stratum:
    # The same rows are taken from both models. They are equally hard for both, so that the difference varies less
    # between resamples than with rows of each model's own.
    if first.refit or second.refit:
        value_first, value_second = _make_weighted_value(measure, first), _make_weighted_value(measure, second)
        return _build_refitted_stratum(
            measure.value(first) - measure.value(second),
            first,
            bootstrap,
            lambda weights: value_first(weights) - value_second(weights),
        )
    if column := measure.mean_of:
        return _build_mean_stratum(first[column] - second[column], first, bootstrap)
    return _build_resampled_stratum(
        first,
        bootstrap,
        lambda rows: measure.value(first.take_columns(rows)) - measure.value(second.take_columns(rows)),
    )


def _build_mean_stratum(column: Floats, units: Units, bootstrap: Bootstrap) -> _Stratum:
    """Return a stratum whose value is a mean: a sum over clusters, divided by the number of their rows."""
    sums, counts = sum_by_cluster(column, units, bootstrap.by)
    n = len(sums)

    def resample_nested(generator: np.random.Generator) -> Floats:
        nested = nest_rows(units, bootstrap.by or "", bootstrap.within)
        part_sums, part_counts = np.bincount(nested.part_of_row, column), np.bincount(nested.part_of_row)
        return np.array(
            [part_sums[drawn].sum() / part_counts[drawn].sum() for drawn in nested.draw(bootstrap.resamples, generator)]
        )

    def resample(generator: np.random.Generator) -> Floats:
        # Clusters may differ in size, and then so does the number of rows in a resample.
        return np.concatenate(
            [
                sums[rows].sum(axis=1) / (counts[rows].sum(axis=1) if bootstrap.by else n)
                for rows in draw_resamples(n, bootstrap.resamples, generator)
            ]
        )

    def jackknife() -> Floats:
        return np.asarray((sums.sum() - sums) / (counts.sum() - counts))

    value = float(sums.sum() / counts.sum()) if n else float("nan")
    return _Stratum(value, n, resample_nested if bootstrap.within else resample, jackknife)


def _build_resampled_stratum(units: Units, bootstrap: Bootstrap, value_of: Callable[[UnitIndices], float]) -> _Stratum:
    """Return a stratum for any measure, which is evaluated on the rows of each resample.

    Args:
        value_of: From the indices of rows to the value on them.
    """
    clusters = cluster_rows(units, bootstrap.by) if bootstrap.by else []
    n = len(clusters) if bootstrap.by else len(units)

    def evaluate(rows: UnitIndices) -> float:
        try:
            return value_of(rows)
        except Undefined:
            return float("nan")

    def evaluate_rows(indices: UnitIndices) -> float:
        return evaluate(np.concatenate([clusters[index] for index in indices]) if bootstrap.by else indices)

    def resample_nested(generator: np.random.Generator) -> Floats:
        nested = nest_rows(units, bootstrap.by or "", bootstrap.within)
        parts = nested.list_parts()
        return np.array(
            [
                evaluate(np.concatenate([parts[index] for index in drawn]))
                for drawn in nested.draw(bootstrap.resamples, generator)
            ]
        )

    def resample(generator: np.random.Generator) -> Floats:
        return np.array(
            [evaluate_rows(rows) for batch in draw_resamples(n, bootstrap.resamples, generator) for rows in batch]
        )

    def jackknife() -> Floats:
        return np.array(
            [
                evaluate_rows(np.delete(np.arange(n), group))
                for group in make_jackknife_groups(n, _MAX_JACKKNIFE_GROUPS, bootstrap.seed)
            ]
        )

    return _Stratum(evaluate_rows(np.arange(n)), n, resample_nested if bootstrap.within else resample, jackknife)


def _make_weighted_value(measure: Measure, units: Units) -> Callable[[Floats], float]:
    """Return the function from the weights of rows to the value, for a comparison in which one model has no refit."""

    def evaluate_weights(weights: Floats) -> float:
        try:
            return measure.value(units.take_columns(np.repeat(np.arange(len(units)), weights.astype(np.int64))))
        except Undefined:
            return float("nan")

    return units.refit or evaluate_weights


def _build_refitted_stratum(
    value: float, units: Units, bootstrap: Bootstrap, value_of: Callable[[Floats], float]
) -> _Stratum:
    """Return a stratum for a measure that is fitted again in each resample.

    Args:
        value_of: From the weight of each row, which is how often it is drawn, to the value.
    """
    # Weights, and no copies of rows: all copies of a row are then in the fold that the row is in.
    keys = get_cluster_keys(units, bootstrap.by) if bootstrap.by else np.arange(len(units))
    names, cluster_of_row = np.unique(np.array(keys), return_inverse=True)
    n = len(names)

    def resample_nested(generator: np.random.Generator) -> Floats:
        nested = nest_rows(units, bootstrap.by or "", bootstrap.within)
        part_count = int(nested.sizes.sum())
        return np.array(
            [
                value_of(np.bincount(drawn, minlength=part_count).astype(np.float64)[nested.part_of_row])
                for drawn in nested.draw(bootstrap.resamples, generator)
            ]
        )

    def resample(generator: np.random.Generator) -> Floats:
        return np.array(
            [
                value_of(np.bincount(rows, minlength=n).astype(np.float64)[cluster_of_row])
                for batch in draw_resamples(n, bootstrap.resamples, generator)
                for rows in batch
            ]
        )

    def jackknife() -> Floats:
        return np.array(
            [
                value_of((~np.isin(np.arange(n), group)).astype(np.float64)[cluster_of_row])
                for group in make_jackknife_groups(n, _MAX_JACKKNIFE_GROUPS, bootstrap.seed)
            ]
        )

    return _Stratum(value, n, resample_nested if bootstrap.within else resample, jackknife)


def _combine_groups(
    groups: Sequence[Units], builders: Sequence[Callable[[Bootstrap], _Stratum]], bootstrap: Bootstrap
) -> Interval:
    """Return the interval of a mean over groups, which are a sample themselves or have one inside.

    Args:
        builders: From the bootstrap to the stratum of each group.
    """
    if not _are_sampled(groups, bootstrap.by):
        return _combine_strata([build(bootstrap) for build in builders], bootstrap, _average)
    inner = replace(bootstrap, by="" if bootstrap.within == "row" else bootstrap.within, within="")
    group_stratum = _build_sampled_groups([build(inner) for build in builders], bootstrap)
    return _combine_strata([group_stratum], bootstrap, _take_only)


def _are_sampled(groups: Sequence[Units], by: str | None) -> bool:
    """Return whether each group is one sampling unit, so that the groups are what is sampled."""
    keys = [set(get_cluster_keys(units, by)) for units in groups] if by else []
    return bool(keys) and all(len(values) == 1 for values in keys) and len(set().union(*keys)) == len(keys)


def _build_sampled_groups(strata: Sequence[_Stratum], bootstrap: Bootstrap) -> _Stratum:
    """Return a stratum whose units are groups, each with its own value, or with a resampled one in two levels."""
    values, n = np.array([stratum.value for stratum in strata]), len(strata)

    def resample(generator: np.random.Generator) -> Floats:
        inner = values[:, None]
        if bootstrap.within:
            inner = np.stack([part.resample(_make_generator(bootstrap, 1 + i)) for i, part in enumerate(strata)])
        drawn = generator.integers(0, n, size=(bootstrap.resamples, n))
        # A group that is drawn twice needs two resamples of its own, so that each time one of them is chosen anew.
        return np.asarray(inner[drawn, generator.integers(0, inner.shape[1], size=drawn.shape)].mean(axis=1))

    return _Stratum(float(values.mean()), n, resample, lambda: (values.sum() - values) / (n - 1))


def _combine_strata(
    strata: Sequence[_Stratum], bootstrap: Bootstrap, join: Callable[[Sequence[Floats]], Floats]
) -> Interval:
    """Return the interval of a value over strata.

    Args:
        join: From the resampled values of each stratum to those of the whole.
    """
    if any(stratum.size < 2 for stratum in strata):
        unit_name = f"values of {bootstrap.by!r}" if bootstrap.by else "rows"
        return Interval(note=f"no interval: there are fewer than two {unit_name} to resample")
    values = join([stratum.resample(_make_generator(bootstrap, i)) for i, stratum in enumerate(strata)])
    defined = values[~np.isnan(values)]
    undefined_count = len(values) - len(defined)
    if len(defined) < _MIN_DEFINED_SHARE * bootstrap.resamples:
        return Interval(note=f"no interval: {undefined_count} of {bootstrap.resamples} resamples are undefined")
    notes = []
    if undefined_count:
        notes.append(f"{undefined_count} of {bootstrap.resamples} resamples are undefined and left out")
    # An interval without width looks like certainty, while it only means that resampling cannot show any variation.
    if np.ptp(defined) <= _ROUNDING * np.abs(defined).max():
        notes.append("all resamples are equal, so the interval says nothing about other rows")
    note = "; ".join(notes) or None
    if bootstrap.method == "percentile":
        return Interval(*percentile_interval(defined, bootstrap.level), note)
    jackknife_values = [stratum.jackknife() for stratum in strata]
    if any(np.isnan(left_out).any() for left_out in jackknife_values):
        return Interval(note="no BCa interval: the value is undefined where some rows are left out")
    try:
        value = float(join([np.array(stratum.value) for stratum in strata]))
        return Interval(*bca_interval(defined, value, jackknife_values, bootstrap.level), note)
    except Undefined as error:
        return Interval(note=f"no BCa interval: {error}")


def _take_only(values_by_stratum: Sequence[Floats]) -> Floats:
    return values_by_stratum[0]


def _average(values_by_stratum: Sequence[Floats]) -> Floats:
    return np.asarray(np.mean(values_by_stratum, axis=0))


def _make_generator(bootstrap: Bootstrap, stratum: int) -> np.random.Generator:
    # A generator per stratum: with one and the same seed two groups of equal size would draw the same row numbers, and
    # their errors would be correlated. The first keeps the plain seed, as a measure without groups has it.
    return np.random.default_rng([bootstrap.seed, stratum] if stratum else bootstrap.seed)


def _exact_if_constant(measure: Measure, units: Units, bootstrap: Bootstrap) -> Interval | None:
    """Return the exact interval of a proportion whose rows are all 0 or all 1, None for all other rows."""
    column, n = measure.mean_of, count_sampling_units(units, bootstrap.by)
    if column is None or n < 2 or not (units[column] == units[column][0]).all() or units[column][0] not in (0, 1):
        return None
    low, high = clopper_pearson(n if units[column][0] else 0, n, bootstrap.level)
    trials = f"{n} values of {bootstrap.by!r}" if bootstrap.by else f"{n} rows"
    return Interval(low, high, f"every row is {units[column][0]:g}: exact interval of Clopper and Pearson, {trials}")


def percentile_interval(values: Floats, level: float) -> tuple[float, float]:
    """Return the percentile interval: the central share ``level`` of the resampled values.

    >>> percentile_interval(np.arange(101.0), 0.5)
    (25.0, 75.0)
    """
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def bca_interval(values: Floats, estimate: float, jackknife: Sequence[Floats], level: float) -> tuple[float, float]:
    """Return the BCa interval, bias-corrected and accelerated (Efron 1987): percentiles at adjusted levels.

    Args:
        values: The resampled values.
        estimate: The value on the rows themselves.
        jackknife: The values with each row or cluster left out in turn; one array per stratum.

    Raises:
        Undefined: The estimate lies outside the range of the resampled values, where the bias correction is infinite.
    """
    if values.min() == values.max():
        return float(values[0]), float(values[0])
    # Resamples equal to the estimate count one half on either side. Discrete measures have many of them, and which side
    # rounding puts them on must not decide.
    slack = _ROUNDING * float(np.abs(values).max())
    below = float(((values < estimate - slack).mean() + (values <= estimate + slack).mean()) / 2)
    if not 0 < below < 1:
        raise Undefined("the value itself lies outside all resampled values")
    bias, acceleration = float(scipy.special.ndtri(below)), compute_acceleration(jackknife)
    quantiles = [bias + float(scipy.special.ndtri((1 + side * level) / 2)) for side in (-1, 1)]
    levels = [float(scipy.special.ndtr(bias + z / (1 - acceleration * z))) for z in quantiles]
    low, high = np.quantile(values, levels)
    return float(low), float(high)


def compute_acceleration(jackknife: Sequence[Floats]) -> float:
    """Return the acceleration of BCa, the change of the standard error with the value.

    That is a sixth of the skewness of the jackknife's influence values, of all strata together.
    """
    influences = [(len(left_out) - 1) * (left_out.mean() - left_out) / len(left_out) for left_out in jackknife]
    squares = sum(float(influence @ influence) for influence in influences)
    # No row matters to the value: there is no skewness to correct for, and nothing to divide by.
    if squares == 0:
        return 0.0
    return float(sum(float((influence**3).sum()) for influence in influences) / (6 * squares**1.5))


def clopper_pearson(hits: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """Return the exact binomial interval of a proportion, hits out of n independent trials (Clopper and Pearson 1934).

    It covers the true probability at least as often as ``level``, mostly more often.

    >>> low, high = clopper_pearson(10, 10)
    >>> round(low, 4), high
    (0.6915, 1.0)
    """
    if n < 1 or not 0 <= hits <= n:
        raise MeasureError(f"{hits} of {n} is no share; expected 0 to n hits out of at least one trial")
    if not 0 < level < 1:
        raise MeasureError(f"level is {level}; expected a share between 0 and 1")
    tail = (1 - level) / 2
    # Quantiles of beta distributions, which have no parameter of 0: there the interval reaches to the end.
    low = 0.0 if hits == 0 else float(scipy.special.betaincinv(hits, n - hits + 1, tail))
    high = 1.0 if hits == n else float(scipy.special.betaincinv(hits + 1, n - hits, 1 - tail))
    return low, high
