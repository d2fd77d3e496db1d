"""The settings of confidence intervals, and the bootstrap: percentile and BCa intervals (Efron 1987) of any measure.

Rows, or clusters of rows that share a tag (items, sets), are resampled with replacement by a local, seeded generator;
the interval is read off the distribution of the resampled values, by percentiles or by BCa (bias-corrected and
accelerated), which also corrects for bias and skewness. What is resampled must be independent: where several rows
share an item, resample items (``by="item"``).

A measure whose value is the mean of one column declares it by an attribute ``mean_of = "column"``. Its resamples are
then computed many at a time, with the same numbers, and the jackknife that BCa needs has a closed form. For other
measures the jackknife leaves out each row (or cluster) in turn or, where there are more than 400, each of 400 random
groups of them. Where something was fitted to the rows, such as a threshold, it is fitted again in every resample
(``Units.refit``): an interval for one fixed threshold would leave out that another sample gives another one.

`acceptability.stats.intervals` has the functions that choose between the bootstrap and intervals in closed form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy

from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Statistic
from acceptability.stats.resampling import (
    UnitIndices,
    cluster_rows,
    draw_resamples,
    get_cluster_keys,
    make_jackknife_groups,
    nest_rows,
    sum_by_cluster,
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
        resample: From a generator to the measure on each resample, nan where undefined.
        jackknife: The measure with each row, cluster or group of them left out.
    """

    value: float
    size: int
    resample: Callable[[np.random.Generator], Floats]
    jackknife: Callable[[], Floats]


def build_stratum(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Stratum:
    """Return the rows of a measure as a stratum."""
    if units.refit:
        return _build_refitted_stratum(measure.value(units), units, bootstrap, units.refit)
    if column := measure.mean_of:
        return _build_mean_stratum(units[column], units, bootstrap)
    return _build_resampled_stratum(units, bootstrap, lambda rows: measure.value(units.take_columns(rows)))


def build_difference_stratum(measure: Statistic, first: Units, second: Units, bootstrap: Bootstrap) -> Stratum:
    """Return the rows of two models as a stratum whose value is the difference of their values."""
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


def _build_mean_stratum(column: Floats, units: Units, bootstrap: Bootstrap) -> Stratum:
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
    return Stratum(value, n, resample_nested if bootstrap.within else resample, jackknife)


def _build_resampled_stratum(units: Units, bootstrap: Bootstrap, value_of: Callable[[UnitIndices], float]) -> Stratum:
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

    return Stratum(evaluate_rows(np.arange(n)), n, resample_nested if bootstrap.within else resample, jackknife)


def _make_weighted_value(measure: Statistic, units: Units) -> Callable[[Floats], float]:
    """Return the function from the weights of rows to the value, for a comparison in which one model has no refit."""

    def evaluate_weights(weights: Floats) -> float:
        try:
            return measure.value(units.take_columns(np.repeat(np.arange(len(units)), weights.astype(np.int64))))
        except Undefined:
            return float("nan")

    return units.refit or evaluate_weights


def _build_refitted_stratum(
    value: float, units: Units, bootstrap: Bootstrap, value_of: Callable[[Floats], float]
) -> Stratum:
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

    return Stratum(value, n, resample_nested if bootstrap.within else resample, jackknife)


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
    keys = [set(get_cluster_keys(units, by)) for units in groups] if by else []
    return bool(keys) and all(len(values) == 1 for values in keys) and len(set().union(*keys)) == len(keys)


def _build_sampled_groups(strata: Sequence[Stratum], bootstrap: Bootstrap) -> Stratum:
    """Return a stratum whose units are groups, each with its own value, or with a resampled one in two levels."""
    values, n = np.array([stratum.value for stratum in strata]), len(strata)

    def resample(generator: np.random.Generator) -> Floats:
        inner = values[:, None]
        if bootstrap.within:
            inner = np.stack([part.resample(make_generator(bootstrap, 1 + i)) for i, part in enumerate(strata)])
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
    values = join([stratum.resample(make_generator(bootstrap, i)) for i, stratum in enumerate(strata)])
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


def take_only(values_by_stratum: Sequence[Floats]) -> Floats:
    """Return the values of the only stratum."""
    return values_by_stratum[0]


def _average(values_by_stratum: Sequence[Floats]) -> Floats:
    return np.asarray(np.mean(values_by_stratum, axis=0))


def make_generator(bootstrap: Bootstrap, stratum: int) -> np.random.Generator:
    """Return the random numbers of a stratum."""
    # A generator per stratum: with one and the same seed two groups of equal size would draw the same row numbers, and
    # their errors would be correlated. The first keeps the plain seed, as a measure without groups has it.
    return np.random.default_rng([bootstrap.seed, stratum] if stratum else bootstrap.seed)


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
