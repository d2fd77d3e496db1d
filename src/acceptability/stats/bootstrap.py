"""The settings of confidence intervals, and the bootstrap: percentile and BCa intervals (Efron 1987) of any measure.

Rows, or clusters of rows that share a tag (items, sets), are resampled with replacement by a local, seeded generator;
the interval is read off the distribution of the resampled values, by percentiles or by BCa (bias-corrected and
accelerated), which also corrects for bias and skewness. What is resampled must be independent: where several rows
share an item, resample items (``by="item"``).

A resample is a row of weights, of how often it has each unit, and a measure says how its value follows from weights
(``Statistic.weigh``): many resamples are then computed at a time, from sums over the rows of each unit, or from rows
that are sorted once. ``value`` gets the rows of each resample only where a measure does not say it, and the numbers are
the same. The jackknife that BCa needs leaves out each row (or cluster) in turn or, if the value is no mean and there
are more than 400, each of 400 random groups of them. Where something was fitted to the rows, such as a threshold, it is
fitted again in every resample (``Units.refit``): an interval for one fixed threshold would leave out that another
sample gives another one.

`acceptability.stats.intervals` has the functions that choose between the bootstrap and intervals in closed form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import scipy

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Moments, Statistic
from acceptability.stats.resampling import (
    LEAST_AT_ONCE,
    UnitIndices,
    count_sampling_units,
    draw_weights,
    encode_clusters,
    make_generator,
    make_jackknife_groups,
    nest_rows,
)
from acceptability.types import SINGLE_ROWS, Floats, Units

INTERVAL_METHODS = ("auto", "percentile", "bca")
"""How intervals are asked for: by resampling, or "auto", a closed form where one covers better."""

CLOSED_FORMS = ("wilson", "tango", "t", "jackknife", "hanley-mcneil", "dirichlet")
"""What "auto" may choose, as signatures name it; see `acceptability.stats.intervals`."""

# These need random numbers, and their signatures the number of draws and the seed.
_RANDOM_METHODS = (*INTERVAL_METHODS, "dirichlet")

MAX_RESAMPLES = 10_000_000
"""The largest number of bootstrap resamples, or of draws of a permutation test, that may be requested."""

# With fewer resamples a 95 % interval would end at the smallest and the largest resample, or beyond them.
_MIN_RESAMPLES = 40
# A measure may be undefined on some resamples, such as a correlation where all drawn ratings are equal. A few of them
# can be left out; many would mean an interval of a selection that is no longer random.
_MIN_DEFINED_SHARE = 0.95
# Each left-out row costs one evaluation of the measure. BCa needs the jackknife for one number only, the acceleration,
# which 400 random groups estimate well enough (tests/stats/test_bootstrap.py compares them).
_MAX_JACKKNIFE_GROUPS = 400
# As many resamples are evaluated at once as have so many rows together, half a megabyte of weights.
_WEIGHTS_AT_ONCE = 1 << 16
# OpenBLAS multiplies matrices in one thread up to so many multiplications, and a matrix with a vector up to so many.
_SERIAL_PRODUCT = 1 << 18
_SERIAL_VECTOR = 9_000
# Relative to the largest value: resampled values that differ by less are equal but for rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Bootstrap:
    """How confidence intervals are computed.

    Args:
        resamples: The number of resamples; 0 for no intervals.
        level: The confidence level.
        by: The tag whose values are resampled whole (cluster bootstrap); empty, or "row", to resample single rows. None
            is the sampling unit of the suite; where there are rows but no suite, it is single rows.
        method: "auto": a closed form where there is one for the measure, else the percentile bootstrap. "percentile" or
            "bca" (which corrects for bias and skewness): the bootstrap for every measure. A closed form by the name
            that signatures have for it is read as "auto".
        within: A tag, or "row": the two-level bootstrap, which resamples the values of ``by``, and inside each drawn
            one the values of this tag, or single rows. Empty for one level.
    """

    resamples: int = 1000
    level: float = 0.95
    by: str | None = None
    seed: int = 0
    method: str = "auto"
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
        if self.method not in (*INTERVAL_METHODS, *CLOSED_FORMS):
            raise MeasureError(f"the interval is {self.method!r}; expected auto, percentile or bca")
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
        """All settings that can change the interval, for the signature of a result."""
        if not self.resamples:
            return "none"
        unit = f"{self.by}/{self.within}" if self.within else self.by or SINGLE_ROWS
        if self.method not in _RANDOM_METHODS:
            return f"{self.method}({self.level:g},by={unit})"
        return f"{self.method}({self.level:g},resamples={self.resamples},by={unit},seed={self.seed})"

    @property
    def is_resampled(self) -> bool:
        """Whether every measure gets a bootstrap interval; the two levels of ``within`` have no closed form."""
        return self.method in ("percentile", "bca") or bool(self.within)


_SIGNED_RESAMPLES = re.compile(
    r"(?P<method>[\w-]+)\((?P<level>[^,]+),resamples=(?P<resamples>\d+),by=(?P<by>.*),seed=(?P<seed>\d+)\)\Z", re.DOTALL
)
_SIGNED_CLOSED_FORM = re.compile(r"(?P<method>[\w-]+)\((?P<level>[^,]+),by=(?P<by>.*)\)\Z", re.DOTALL)


def parse_bootstrap(signature: str) -> Bootstrap:
    """Return the bootstrap that the signature of a result names in its field ``ci``.

    >>> parse_bootstrap("percentile(0.95,resamples=1000,by=item,seed=0)").by
    'item'
    >>> parse_bootstrap("percentile(0.95,resamples=1000,by=paradigm/item,seed=0)").within
    'item'
    >>> parse_bootstrap("wilson(0.95,by=row)").method
    'wilson'
    """
    # Never None, the unit of the suite: a signature says what was resampled.
    if signature == "none":
        return Bootstrap(resamples=0, by="")
    match = _SIGNED_RESAMPLES.match(signature) or _SIGNED_CLOSED_FORM.match(signature)
    if match is None:
        raise MeasureError(
            f"{signature!r} is no interval: expected METHOD(LEVEL,resamples=N,by=UNIT,seed=N) or METHOD(LEVEL,by=UNIT)"
        )
    by, _, within = match["by"].partition("/")
    options = {name: int(match[name]) for name in ("resamples", "seed") if name in match.groupdict()}
    return Bootstrap(level=float(match["level"]), by=by, method=match["method"], within=within, **options)


@dataclass(frozen=True)
class Interval:
    """A confidence interval; its ends are None where there is none, and the note says why.

    Args:
        low, high: Its ends.
        note: Why there is none, or what its reader has to know.
        method: How it was computed, as signatures name it; empty without an interval.
    """

    low: float | None = None
    high: float | None = None
    note: str | None = None
    method: str = ""


@dataclass(frozen=True, eq=False)
class Stratum:
    """Rows that are resampled by themselves (stratified bootstrap).

    Args:
        value: The measure on the rows themselves.
        size: The number of rows, or of clusters.
        resample: From the number of a stream of random numbers to the measure on each resample, nan where undefined.
        jackknife: The measure with each row, cluster or group of them left out.
        arrange: From an order of the rows, or clusters, to the measure on resamples, which are given by weights in this
            order; None where resamples have two levels.
    """

    value: float
    size: int
    resample: Callable[[int], Floats]
    jackknife: Callable[[], Floats]
    arrange: Callable[[UnitIndices], Callable[[Floats], Floats]] | None = None


def build_stratum(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Stratum:
    """Return the rows of a measure as a stratum."""
    return _build_stratum(lambda unit_of_row, n: _WeightedUnits(measure, units, unit_of_row, n), units, bootstrap)


def build_difference_stratum(measure: Statistic, first: Units, second: Units, bootstrap: Bootstrap) -> Stratum:
    """Return the rows of two models as a stratum whose value is the difference of their values."""
    # The same rows are taken from both models. They are equally hard for both, so that the difference varies less
    # between resamples than with rows of each model's own.
    return _build_stratum(
        lambda unit_of_row, n: _WeightedDifference(
            *(_WeightedUnits(measure, units, unit_of_row, n) for units in (first, second))
        ),
        first,
        bootstrap,
    )


class _WeightedUnits:
    """Sampling units of several rows or of one, and the value of a measure on resamples of them.

    Args:
        measure: The measure.
        units: Its rows.
        unit_of_row: The index of each row's sampling unit; None if each row is one.
        n: The number of sampling units.
    """

    def __init__(self, measure: Statistic, units: Units, unit_of_row: UnitIndices | None, n: int) -> None:
        self._measure, self._units, self._unit_of_row, self._n = measure, units, unit_of_row, n
        self._slot_of_unit: UnitIndices | None = None
        self._refit = units.refit
        weighting = None if self._refit else measure.weigh(units)
        self._moments = weighting if isinstance(weighting, Moments) else None
        self._of_rows = None if isinstance(weighting, Moments) else weighting
        if self._moments:
            self._sums = self._moments.of_rows
            # The rows of a unit are always drawn together: only their sums matter, and these are taken once.
            if unit_of_row is not None:
                self._sums = np.array([np.bincount(unit_of_row, row, n) for row in self._sums], dtype=np.float64)

    @property
    def value(self) -> float:
        """The value of all rows; nan if it is undefined."""
        return _evaluate(self._measure, self._units)

    def arrange(self, order: UnitIndices) -> _WeightedUnits:
        """Return the same units in another order, which is that of the weights."""
        arranged = copy(self)
        arranged._slot_of_unit = np.argsort(order)
        if self._moments:
            arranged._sums = self._sums[:, order]
        return arranged

    def evaluate(self, weights: Floats) -> Floats:
        """Return the value of each resample, given how often it has each unit, (resamples, units)."""
        if self._moments:
            # At least as many as are drawn at a time: a product with one of them takes twice as long.
            parts = _split(len(weights), self._n, LEAST_AT_ONCE)
            sums = np.concatenate([_sum_products(weights[part], self._sums) for part in parts], axis=1)
            return self._combine(sums, weights.__getitem__)
        parts = _split(len(weights), len(self._units))
        return np.concatenate([self._evaluate_rows(weights[part]) for part in parts])

    def leave_out(self, seed: int) -> Floats:
        """Return the value without each unit or, where they are many, without random groups of units."""
        # The influence of each row on a mean is known without evaluating anything.
        is_mean = self._measure.mean_of is not None and self._moments is not None
        groups = make_jackknife_groups(self._n, self._n if is_mean else _MAX_JACKKNIFE_GROUPS, seed)
        if self._moments:
            group_of_unit = np.empty(self._n, dtype=np.int64)
            group_of_unit[np.concatenate(groups)] = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
            sums = np.stack([_sum_others(np.bincount(group_of_unit, row).astype(np.float64)) for row in self._sums])
            return self._combine(sums, lambda index: (group_of_unit != index).astype(np.float64))
        parts = _split(len(groups), len(self._units))
        return np.concatenate([self._evaluate_rows(_leave_out_weights(self._n, groups[part])) for part in parts])

    def _combine(self, sums: Floats, get_weights: Callable[[int], Floats]) -> Floats:
        assert self._moments is not None
        values = self._moments.combine(sums)
        if self._moments.are_precise:
            for index in np.flatnonzero(~self._moments.are_precise(sums)).tolist():
                values[index] = self._evaluate_one(self._spread(get_weights(index)))
        return values

    def _evaluate_rows(self, weights: Floats) -> Floats:
        weights = self._spread(weights)
        if self._refit:
            return np.array([self._refit(row_weights) for row_weights in weights])
        if self._of_rows:
            return self._of_rows(weights)
        return np.array([self._evaluate_one(row_weights) for row_weights in weights])

    def _evaluate_one(self, row_weights: Floats) -> float:
        rows = np.repeat(np.arange(len(self._units)), row_weights.astype(np.int64))
        return _evaluate(self._measure, self._units.take_columns(rows))

    def _spread(self, weights: Floats) -> Floats:
        """Return the weights of rows, given those of their units."""
        if self._slot_of_unit is not None:
            weights = weights[..., self._slot_of_unit]
        return weights if self._unit_of_row is None else weights[..., self._unit_of_row]


def _split(resamples: int, columns: int, least: int = 1) -> list[slice]:
    """Return parts of resamples that are so small that their weights stay in the cache while they are evaluated."""
    at_once = max(least, _WEIGHTS_AT_ONCE // max(columns, 1))
    return [slice(start, start + at_once) for start in range(0, resamples, at_once)]


class _WeightedDifference:
    """The difference between the values of two models over the same sampling units."""

    def __init__(self, first: _WeightedUnits, second: _WeightedUnits) -> None:
        self._first, self._second = first, second

    @property
    def value(self) -> float:
        return self._first.value - self._second.value

    def arrange(self, order: UnitIndices) -> _WeightedDifference:
        return _WeightedDifference(self._first.arrange(order), self._second.arrange(order))

    def evaluate(self, weights: Floats) -> Floats:
        return self._first.evaluate(weights) - self._second.evaluate(weights)

    def leave_out(self, seed: int) -> Floats:
        return self._first.leave_out(seed) - self._second.leave_out(seed)


def _evaluate(measure: Statistic, units: Units) -> float:
    try:
        return measure.value(units)
    except Undefined:
        return float("nan")


def _sum_products(weights: Floats, sums: Floats) -> Floats:
    """Return the weighted sums of each resample, (moments, resamples)."""
    (resamples, n), moments = weights.shape, len(sums)
    # In products so small that BLAS gives each to one thread. Those of a larger product spend more on waiting for each
    # other than it takes, above all where other processes want the same cores; and einsum, which calls no BLAS, reads
    # the weights once for each moment and takes three times as long.
    width = max(1, (_SERIAL_PRODUCT if resamples > 1 and moments > 1 else _SERIAL_VECTOR) // (resamples * moments))
    end = n - n % width
    blocks = np.matmul(
        weights[:, :end].reshape(resamples, -1, width).transpose(1, 0, 2),
        sums[:, :end].reshape(moments, -1, width).transpose(1, 2, 0),
    )
    return np.asarray((blocks.sum(axis=0) + weights[:, end:] @ sums[:, end:].T).T)


def _sum_others(values: Floats) -> Floats:
    """Return the sum of all values but one, for each of them."""
    # Those before it and those behind it: the sum of all less an outlier would have lost the digits of the others.
    before = np.append(0.0, np.cumsum(values)[:-1])
    behind = np.append(np.cumsum(values[::-1])[::-1][1:], 0.0)
    return np.asarray(before + behind)


def _leave_out_weights(n: int, groups: Sequence[UnitIndices]) -> Floats:
    weights = np.ones((len(groups), n))
    for row, group in zip(weights, groups, strict=True):
        row[group] = 0
    return weights


def _build_stratum(
    weigh: Callable[[UnitIndices | None, int], _WeightedUnits | _WeightedDifference],
    units: Units,
    bootstrap: Bootstrap,
) -> Stratum:
    """Return rows as a stratum.

    Args:
        weigh: From the sampling unit of each row, and the number of units, to these units.
    """
    n = count_sampling_units(units, bootstrap.by)
    weighted = weigh(encode_clusters(units, bootstrap.by) if bootstrap.by else None, n)

    def resample_nested(stream: int) -> Floats:
        nested = nest_rows(units, bootstrap.by or "", bootstrap.within)
        parts = weigh(nested.part_of_row, int(nested.sizes.sum()))
        generator = make_generator(bootstrap.seed, stream)
        return np.concatenate(
            [parts.evaluate(weights) for weights in nested.draw_weights(bootstrap.resamples, generator)]
        )

    def resample(stream: int) -> Floats:
        batches = draw_weights(n, bootstrap.resamples, bootstrap.seed, stream)
        return np.concatenate([weighted.evaluate(weights) for weights in batches])

    def jackknife() -> Floats:
        return weighted.leave_out(bootstrap.seed)

    if bootstrap.within:
        return Stratum(weighted.value, n, resample_nested, jackknife)
    return Stratum(weighted.value, n, resample, jackknife, lambda order: weighted.arrange(order).evaluate)


def resample_groups(
    groups: Sequence[Units], builders: Sequence[Callable[[Bootstrap], Stratum]], bootstrap: Bootstrap
) -> Interval:
    """Return the interval of a mean over groups, which are a sample themselves or have one inside.

    Args:
        builders: From the bootstrap to the stratum of each group.
    """
    if not are_sampled(groups, bootstrap.by):
        return resample_strata([build(bootstrap) for build in builders], bootstrap, _average)
    inner = replace(bootstrap, by="" if bootstrap.within == "row" else bootstrap.within, within="")
    group_stratum = _build_sampled_groups([build(inner) for build in builders], bootstrap)
    return resample_strata([group_stratum], bootstrap, take_only)


def are_sampled(groups: Sequence[Units], by: str | None) -> bool:
    """Return whether each group is one sampling unit, so that the groups are what is sampled."""
    if not by or not groups or any(count_sampling_units(units, by) != 1 for units in groups):
        return False
    return len({units.encode_tag(by)[0] for units in groups}) == len(groups)


def _build_sampled_groups(strata: Sequence[Stratum], bootstrap: Bootstrap) -> Stratum:
    """Return a stratum whose units are groups, each with its own value, or with a resampled one in two levels."""
    values, n = np.array([stratum.value for stratum in strata]), len(strata)

    def resample(stream: int) -> Floats:
        generator, inner = make_generator(bootstrap.seed, stream), values[:, None]
        if bootstrap.within:
            inner = np.stack(_resample_apart(strata, bootstrap, first_stream=1))
        drawn = generator.integers(0, n, size=(bootstrap.resamples, n))
        # A group that is drawn twice needs two resamples of its own, so that each time one of them is chosen anew.
        return np.asarray(inner[drawn, generator.integers(0, inner.shape[1], size=drawn.shape)].mean(axis=1))

    return Stratum(float(values.mean()), n, resample, lambda: (values.sum() - values) / (n - 1))


def resample_strata(
    strata: Sequence[Stratum], bootstrap: Bootstrap, join: Callable[[Sequence[Floats]], Floats]
) -> Interval:
    """Return the interval of a value over strata.

    Args:
        join: From the resampled values of each stratum to those of the whole.
    """
    if any(stratum.size < 2 for stratum in strata):
        unit_name = f"values of {bootstrap.by!r}" if bootstrap.by else "rows"
        return Interval(note=f"no interval: there are fewer than two {unit_name} to resample")
    values = join(_resample_apart(strata, bootstrap))
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


def _resample_apart(strata: Sequence[Stratum], bootstrap: Bootstrap, first_stream: int = 0) -> list[Floats]:
    """Return the values of strata on resamples that are independent of those of the other strata."""
    if any(stratum.arrange is None for stratum in strata):
        return [stratum.resample(first_stream + i) for i, stratum in enumerate(strata)]
    # Nearly all of the time would go into drawing random numbers. Strata of one size share theirs: each takes them in
    # an order of its own, and not for the same resample as any other, so that all those of a resample are independent.
    by_size: dict[int, list[int]] = {}
    for i, stratum in enumerate(strata):
        by_size.setdefault(stratum.size, []).append(i)
    most = bootstrap.resamples
    shared = [part[start : start + most] for part in by_size.values() for start in range(0, len(part), most)]
    values: dict[int, Floats] = {}
    for stream, members in enumerate(shared, start=first_stream):
        resampled = _resample_together([strata[i] for i in members], bootstrap, stream)
        values |= dict(zip(members, resampled, strict=True))
    return [values[i] for i in range(len(strata))]


def _resample_together(strata: Sequence[Stratum], bootstrap: Bootstrap, stream: int) -> list[Floats]:
    """Return the values of strata of one size, at most as many as there are resamples, on the same resamples."""
    if len(strata) == 1:
        return [strata[0].resample(stream)]
    size, times = strata[0].size, bootstrap.resamples
    # Other numbers than those of the resamples, which have two numbers for a seed.
    generator = np.random.default_rng([bootstrap.seed, stream, 1])
    # The first stratum has the resamples that it would have alone.
    orders = [np.arange(size), *(generator.permutation(size) for _ in strata[1:])]
    shifts = [0, *(1 + generator.permutation(times - 1)[: len(strata) - 1])]
    evaluations = [stratum.arrange(order) for stratum, order in zip(strata, orders, strict=True) if stratum.arrange]
    batches = [
        [evaluate(weights) for evaluate in evaluations] for weights in draw_weights(size, times, bootstrap.seed, stream)
    ]
    return [
        np.roll(np.concatenate(parts), shift) for parts, shift in zip(zip(*batches, strict=True), shifts, strict=True)
    ]


def take_only(values_by_stratum: Sequence[Floats]) -> Floats:
    """Return the values of the only stratum."""
    return values_by_stratum[0]


def _average(values_by_stratum: Sequence[Floats]) -> Floats:
    return np.asarray(np.mean(values_by_stratum, axis=0))


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
    squares = sum(float((influence**2).sum()) for influence in influences)
    # No row matters to the value: there is no skewness to correct for, and nothing to divide by.
    if squares == 0:
        return 0.0
    return float(sum(float((influence**3).sum()) for influence in influences) / (6 * squares**1.5))
