"""Confidence intervals of measures, of macro means over groups, and of differences between two models.

What a measure is decides (``Bootstrap(method="auto")``), and its signature names what was chosen:

- ``wilson``: a mean of right and wrong answers; ``tango``: a difference of two such means over the same rows.
- ``t``: any other mean, and any mean over groups that are a sample themselves; corrected for skewness.
- ``jackknife``: correlations, on the scale of Fisher's z, and their differences, on their own.
- ``hanley-mcneil``: areas under the ROC curve. ``dirichlet``: Matthews' correlation by a given threshold.
- ``percentile``: everything else, such as values with fitted thresholds and measures of plug-ins.

`acceptability.stats.intervals.closed_forms` has the formulas, and docs/results/coverage.md how often each of them
covers. "percentile" and "bca" are bootstrap intervals for every measure. There a proportion whose rows are all 0 or all
1 gets the exact interval of Clopper and Pearson instead, since all resamples of such rows are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from acceptability.protocols import Statistic
from acceptability.stats.bootstrap import (
    Bootstrap,
    Interval,
    Stratum,
    are_sampled,
    build_difference_stratum,
    build_stratum,
    resample_groups,
    resample_strata,
    take_only,
)
from acceptability.stats.intervals.closed_forms import (
    Bounds,
    ClusterSums,
    auc_interval,
    clopper_pearson,
    compute_jackknife_skewness,
    correlation_interval,
    difference_interval_of_strata,
    jackknife_variance,
    matthews_interval,
    proportion_interval_of_groups,
    proportion_interval_of_strata,
    summarise_strata,
    t_interval,
)
from acceptability.stats.intervals.crossed_groups import MeanOverGroups, join_groups, weigh_rows
from acceptability.stats.resampling import (
    count_sampling_units,
    encode_clusters,
    have_common_units,
    make_generator,
    sum_by_cluster,
)
from acceptability.types import Floats, Units

_SINGLE_ANSWERS = (0.0, 0.5, 1.0)
"""What a row of a proportion can be: wrong, tied, right."""
_NO_VARIATION = "all rows are equal, so the interval says nothing about other rows"


def bootstrap_interval(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Interval:
    """Return the interval of a measure over its rows; there is none for fewer than two rows or clusters."""
    if not bootstrap.resamples:
        return Interval()
    if bootstrap.is_resampled:
        exact = _exact_if_constant(measure, units, bootstrap)
        return exact or _resample(build_stratum(measure, units, bootstrap), bootstrap)
    if few := _find_few_units([units], bootstrap):
        return few
    if not units.refit:
        if measure.mean_of:
            return _interval_of_mean([units[measure.mean_of]], [units], bootstrap)
        if measure.statistic in ("correlation", "rank correlation"):
            return _interval_of_correlation(measure, units, bootstrap)
        if measure.statistic == "auc":
            return _interval_of_auc(measure, units, bootstrap)
        if measure.statistic == "mcc":
            return _interval_of_matthews(measure, units, bootstrap)
    return _resample(build_stratum(measure, units, bootstrap), bootstrap)


def bootstrap_macro_interval(measure: Statistic, groups: Sequence[Units], bootstrap: Bootstrap) -> Interval:
    """Return the interval of the mean over groups.

    What is sampled are the rows within groups, each of which needs two. Where it is the groups themselves (each is one
    value of ``by``, as paradigms are with ``by="paradigm"``), the interval rests on how their values vary; the
    bootstrap resamples them, and with ``within`` the rows inside them. Units that have rows in several groups are
    resampled with all their rows.
    """
    if not bootstrap.resamples:
        return Interval()
    if have_common_units(groups, bootstrap.by):
        return _interval_of_crossed_groups(measure, groups, bootstrap)
    builders = [partial(build_stratum, measure, units) for units in groups]
    if bootstrap.is_resampled:
        return _resample_groups(groups, builders, bootstrap)
    if are_sampled(groups, bootstrap.by):
        values = np.array([measure.value(units) for units in groups])
        return _interval_of_groups(values, bootstrap, is_proportion=_are_proportions(measure, groups))
    if (column := measure.mean_of) and not any(units.refit for units in groups):
        return _find_few_units(groups, bootstrap) or _interval_of_mean(
            [units[column] for units in groups], groups, bootstrap
        )
    return _resample_groups(groups, builders, bootstrap)


def bootstrap_difference(measure: Statistic, first: Units, second: Units, bootstrap: Bootstrap) -> Interval:
    """Return the interval of the difference between two models over the same rows."""
    if not bootstrap.resamples:
        return Interval()
    if bootstrap.is_resampled:
        return _resample(build_difference_stratum(measure, first, second, bootstrap), bootstrap)
    if few := _find_few_units([first], bootstrap):
        return few
    if not (first.refit or second.refit):
        if measure.mean_of:
            return _interval_of_difference(measure.mean_of, [(first, second)], bootstrap)
        if measure.statistic in ("correlation", "rank correlation"):
            return _interval_of_correlation_difference(measure, first, second, bootstrap)
    return _resample(build_difference_stratum(measure, first, second, bootstrap), bootstrap)


def bootstrap_macro_difference(
    measure: Statistic, groups: Sequence[tuple[Units, Units]], bootstrap: Bootstrap
) -> Interval:
    """Return the interval of the mean over groups of the difference between two models; see the interval of a mean."""
    if not bootstrap.resamples:
        return Interval()
    firsts = [first for first, _ in groups]
    if have_common_units(firsts, bootstrap.by):
        return _interval_of_crossed_difference(measure, groups, bootstrap)
    builders = [partial(build_difference_stratum, measure, first, second) for first, second in groups]
    if bootstrap.is_resampled:
        return _resample_groups(firsts, builders, bootstrap)
    if are_sampled(firsts, bootstrap.by):
        differences = [measure.value(first) - measure.value(second) for first, second in groups]
        return _interval_of_groups(np.array(differences), bootstrap, is_proportion=False)
    if (column := measure.mean_of) and not any(first.refit or second.refit for first, second in groups):
        return _find_few_units(firsts, bootstrap) or _interval_of_difference(column, groups, bootstrap)
    return _resample_groups(firsts, builders, bootstrap)


def _interval_of_crossed_groups(measure: Statistic, groups: Sequence[Units], bootstrap: Bootstrap) -> Interval:
    """Return the interval of the mean over groups that have sampling units in common."""
    joined = join_groups(groups)
    if few := _find_few_units([joined], bootstrap):
        return few
    if bootstrap.is_resampled or measure.mean_of is None:
        return _resample(build_stratum(MeanOverGroups(measure, len(groups)), joined, bootstrap), bootstrap)
    weights, column = weigh_rows(groups), joined[measure.mean_of]
    strata = [_sum_weighted(column, weights, joined, bootstrap)]
    if _are_answers([column]):
        return _make_interval(proportion_interval_of_strata(strata, bootstrap.level), "wilson")
    return _t_interval_of_strata(strata, bootstrap)


def _interval_of_crossed_difference(
    measure: Statistic, groups: Sequence[tuple[Units, Units]], bootstrap: Bootstrap
) -> Interval:
    """Return the interval of the mean difference over groups that have sampling units in common."""
    first, second = (join_groups([pair[model] for pair in groups]) for model in (0, 1))
    if few := _find_few_units([first], bootstrap):
        return few
    if bootstrap.is_resampled or measure.mean_of is None:
        macro = MeanOverGroups(measure, len(groups))
        return _resample(build_difference_stratum(macro, first, second, bootstrap), bootstrap)
    weights = weigh_rows([units for units, _ in groups])
    differences = first[measure.mean_of] - second[measure.mean_of]
    strata = [_sum_weighted(differences, weights, first, bootstrap)]
    if _are_answers([units[measure.mean_of] for units in (first, second)]):
        squares = [_sum_weighted(differences**2, weights, first, bootstrap)]
        return _make_interval(difference_interval_of_strata(strata, squares, bootstrap.level), "tango")
    return _t_interval_of_strata(strata, bootstrap)


def _sum_weighted(column: Floats, weights: Floats, units: Units, bootstrap: Bootstrap) -> ClusterSums:
    """Return the sum of a weighted column and the weight of the rows, for each sampling unit."""
    return sum_by_cluster(column * weights, units, bootstrap.by)[0], sum_by_cluster(weights, units, bootstrap.by)[0]


def _resample(stratum: Stratum, bootstrap: Bootstrap) -> Interval:
    resampled = _as_resampled(bootstrap)
    return replace(resample_strata([stratum], resampled, take_only), method=resampled.method)


def _resample_groups(
    groups: Sequence[Units], builders: Sequence[Callable[[Bootstrap], Stratum]], bootstrap: Bootstrap
) -> Interval:
    resampled = _as_resampled(bootstrap)
    return replace(resample_groups(groups, builders, resampled), method=resampled.method)


def _as_resampled(bootstrap: Bootstrap) -> Bootstrap:
    return bootstrap if bootstrap.method == "bca" else replace(bootstrap, method="percentile")


def _find_few_units(groups: Sequence[Units], bootstrap: Bootstrap) -> Interval | None:
    """Return that there is no interval if a group has fewer than two sampling units."""
    if all(count_sampling_units(units, bootstrap.by) >= 2 for units in groups):
        return None
    unit_name = f"values of {bootstrap.by!r}" if bootstrap.by else "rows"
    return Interval(note=f"no interval: there are fewer than two {unit_name} to resample")


def _make_interval(bounds: Bounds, method: str, note: str | None = None) -> Interval:
    low, high = (float(end) for end in bounds)
    return Interval(low, high, note, method)


def _interval_of_mean(columns: Sequence[Floats], groups: Sequence[Units], bootstrap: Bootstrap) -> Interval:
    """Return the interval of the mean over groups of a column: of a proportion if its rows are right or wrong."""
    strata = [sum_by_cluster(column, units, bootstrap.by) for column, units in zip(columns, groups, strict=True)]
    if _are_answers(columns):
        return _make_interval(proportion_interval_of_strata(strata, bootstrap.level), "wilson")
    return _t_interval_of_strata(strata, bootstrap)


def _interval_of_difference(column: str, groups: Sequence[tuple[Units, Units]], bootstrap: Bootstrap) -> Interval:
    """Return the interval of the mean over groups of a column's difference between two models."""
    strata, squares = [], []
    for first, second in groups:
        differences = first[column] - second[column]
        strata.append(sum_by_cluster(differences, first, bootstrap.by))
        squares.append(sum_by_cluster(differences**2, first, bootstrap.by))
    if _are_answers([units[column] for pair in groups for units in pair]):
        return _make_interval(difference_interval_of_strata(strata, squares, bootstrap.level), "tango")
    return _t_interval_of_strata(strata, bootstrap)


def _are_answers(columns: Sequence[Floats]) -> bool:
    """Return whether all rows are right, wrong or tied, so that their mean is a proportion."""
    return all(np.isin(column, _SINGLE_ANSWERS).all() for column in columns)


def _are_proportions(measure: Statistic, groups: Sequence[Units]) -> bool:
    return measure.mean_of is not None and _are_answers([units[measure.mean_of] for units in groups])


def _t_interval_of_strata(strata: Sequence[ClusterSums], bootstrap: Bootstrap) -> Interval:
    summary = summarise_strata(strata)
    bounds = t_interval(summary.value, summary.variance, summary.degrees, bootstrap.level, skewness=summary.skewness)
    return _make_interval(bounds, "t", None if summary.variance > 0 else _NO_VARIATION)


def _interval_of_groups(values: Floats, bootstrap: Bootstrap, *, is_proportion: bool) -> Interval:
    """Return the interval of the mean of the values of groups that are a sample of groups."""
    if len(values) < 2:
        return Interval(note=f"no interval: there are fewer than two values of {bootstrap.by!r}")
    if is_proportion:
        return _make_interval(proportion_interval_of_groups(values, bootstrap.level), "wilson")
    return _t_interval_of_strata([(values, np.ones(len(values)))], bootstrap)


def _interval_of_correlation(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Interval:
    stratum = build_stratum(measure, units, bootstrap)
    left_out = stratum.jackknife()
    if np.isnan(left_out).any():
        return Interval(note="no interval: the correlation is undefined without some of the rows")
    if left_out.min() == left_out.max():
        return Interval(note="no interval: the correlation does not change if any row is left out")
    # The normal quantile covers rank correlations of rows better, but a variance of few clusters varies itself.
    is_normal = measure.statistic == "rank correlation" and not bootstrap.by
    degrees = np.inf if is_normal else len(left_out) - 1
    return _make_interval(
        correlation_interval(np.array(stratum.value), left_out, bootstrap.level, degrees), "jackknife"
    )


def _interval_of_correlation_difference(
    measure: Statistic, first: Units, second: Units, bootstrap: Bootstrap
) -> Interval:
    stratum = build_difference_stratum(measure, first, second, bootstrap)
    left_out = stratum.jackknife()
    if np.isnan(left_out).any():
        return Interval(note="no interval: a correlation is undefined without some of the rows")
    variance = jackknife_variance(left_out)
    skewness = compute_jackknife_skewness(left_out)
    low, high = t_interval(np.array(stratum.value), variance, len(left_out) - 1, bootstrap.level, skewness=skewness)
    return _make_interval(
        (np.maximum(low, -2.0), np.minimum(high, 2.0)), "jackknife", None if variance > 0 else _NO_VARIATION
    )


def _interval_of_auc(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Interval:
    stratum = build_stratum(measure, units, bootstrap)
    # Undefined without the only sampling unit of a class; then the variance is the theoretical one.
    variance = jackknife_variance(stratum.jackknife())
    good, bad = (_count_class_units(units, bootstrap.by, is_good) for is_good in (True, False))
    return _make_interval(auc_interval(np.array(stratum.value), variance, good, bad, bootstrap.level), "hanley-mcneil")


def _count_class_units(units: Units, by: str | None, is_good: bool) -> float:
    """Return the number of sampling units of a class: of acceptable sentences, or of unacceptable ones."""
    if "label" not in units.columns:
        # In contrasts a sentence may be repeated: its shares sum to one.
        sentences = float(units["better_share" if is_good else "worse_share"].sum())
        return min(sentences, float(count_sampling_units(units, by)))
    members = units["label"] == (1.0 if is_good else 0.0)
    if not by:
        return float(members.sum())
    return float(len(np.unique(encode_clusters(units, by)[members])))


def _interval_of_matthews(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Interval:
    said_yes, labels = units["predicted"] == 1, units["label"] == 1
    cells = (said_yes & labels, ~said_yes & labels, said_yes & ~labels, ~said_yes & ~labels)
    counts = np.array([float(cell.sum()) for cell in cells])
    effective = _count_effective_rows(measure, units, bootstrap)
    weighted = counts * (effective / len(units))
    bounds = matthews_interval(weighted, bootstrap.resamples, make_generator(bootstrap.seed, 0), bootstrap.level)
    return _make_interval(bounds, "dirichlet")


def _count_effective_rows(measure: Statistic, units: Units, bootstrap: Bootstrap) -> float:
    """Return how many independent rows the rows of sampling units are worth, by the variances of the jackknife."""
    if not bootstrap.by:
        return float(len(units))
    by_row, by_unit = (
        jackknife_variance(build_stratum(measure, units, settings).jackknife())
        for settings in (replace(bootstrap, by=""), bootstrap)
    )
    # Without variation, as with perfect predictions, the rows of a unit are taken to be copies.
    if not (by_row > 0 and by_unit > 0):
        return float(count_sampling_units(units, bootstrap.by))
    return len(units) * min(1.0, float(by_row / by_unit))


def _exact_if_constant(measure: Statistic, units: Units, bootstrap: Bootstrap) -> Interval | None:
    """Return the exact interval of a proportion whose rows are all 0 or all 1, None for all other rows."""
    column, n = measure.mean_of, count_sampling_units(units, bootstrap.by)
    if column is None or n < 2 or not (units[column] == units[column][0]).all() or units[column][0] not in (0, 1):
        return None
    low, high = clopper_pearson(n if units[column][0] else 0, n, bootstrap.level)
    trials = f"{n} values of {bootstrap.by!r}" if bootstrap.by else f"{n} rows"
    note = f"every row is {units[column][0]:g}: exact interval of Clopper and Pearson, {trials}"
    # The signature names what was asked for, as in the versions before.
    return Interval(low, high, note, _as_resampled(bootstrap).method)
