from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy import optimize, stats

from acceptability import AUC, MCC, PBC, Kendall, PairAccuracy, Pearson, Spearman, UnpairedAUC
from acceptability.measures.target_contrast import Repulsion
from acceptability.protocols import Measure
from acceptability.stats.bootstrap import Bootstrap, parse_bootstrap
from acceptability.stats.intervals import (
    bootstrap_difference,
    bootstrap_interval,
    bootstrap_macro_difference,
    bootstrap_macro_interval,
)
from acceptability.stats.intervals.closed_forms import (
    auc_interval,
    correlation_interval,
    difference_interval_of_strata,
    draw_matthews,
    jackknife_variance,
    proportion_interval_of_groups,
    proportion_interval_of_strata,
    summarise_strata,
    tango_interval,
    wilson_interval,
)
from acceptability.types import Units

AUTO = Bootstrap(200)


def rows(columns: dict[str, object], tags: dict[str, list[str]] | None = None) -> Units:
    arrays = {name: np.array(column, dtype=float) for name, column in columns.items()}
    n = len(next(iter(arrays.values())))
    row_tags = tuple({name: values[i] for name, values in (tags or {}).items()} for i in range(n))
    return Units(tuple(map(str, range(n))), arrays, row_tags)


def answers(correct, tags: dict[str, list[str]] | None = None) -> Units:
    return rows({"correct": correct}, tags)


def ends(interval) -> tuple[float, float]:
    return interval.low, interval.high


@pytest.mark.parametrize(("hits", "n"), [(30, 100), (50, 100), (70, 100), (500, 1000), (60, 200)])
def test_wilson_is_scipys_where_neither_end_is_near(hits: int, n: int) -> None:
    theirs = stats.binomtest(hits, n).proportion_ci(0.9, method="wilson")
    assert [float(end) for end in wilson_interval(hits / n, n, 0.9)] == pytest.approx([theirs.low, theirs.high])


@pytest.mark.parametrize(("misses", "n"), [(1, 20), (2, 20), (1, 100), (3, 1000)])
def test_wilson_reaches_to_the_one_sided_exact_limit_near_the_ends(misses: int, n: int) -> None:
    one_sided = stats.binomtest(misses, n, alternative="greater").proportion_ci(1 - 1.3 * 0.05, method="exact").low
    low, high = wilson_interval(misses / n, n)
    assert low == pytest.approx(one_sided)
    assert low < stats.binomtest(misses, n).proportion_ci(method="wilson").low
    mirrored = wilson_interval(1 - misses / n, n)
    assert (1 - mirrored[1], 1 - mirrored[0]) == pytest.approx((low, high))


@pytest.mark.parametrize(("gains", "losses", "n"), [(10, 2, 40), (1, 0, 20), (3, 9, 25), (7, 7, 30)])
def test_tango_solves_the_score_equation(gains: int, losses: int, n: int) -> None:
    """The likelihood of gains and losses is maximised numerically, with their difference held at each end."""
    for end, sign in zip(tango_interval(gains, losses, n), (1, -1), strict=True):

        def loss(loss_share: float, end: float = float(end)) -> float:
            gain_share = loss_share + end
            chances = np.maximum([gain_share, loss_share, 1 - gain_share - loss_share], 1e-15)
            return -float(np.array([gains, losses, n - gains - losses]) @ np.log(chances))

        low, high = max(0.0, -float(end)), (1 - float(end)) / 2
        loss_share = optimize.minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-12}).x
        spread = 2 * loss_share + end - end**2
        assert (gains - losses - n * end) / np.sqrt(n * spread) == pytest.approx(sign * stats.norm.ppf(0.975), abs=1e-4)


def test_tango_has_width_where_the_models_never_differ() -> None:
    z2 = stats.norm.ppf(0.975) ** 2
    low, high = tango_interval(0.0, 0.0, 20.0)
    assert (low, high) == pytest.approx((-z2 / (20 + z2), z2 / (20 + z2)))
    assert [float(end) for end in tango_interval(20.0, 0.0, 20.0)][1] == pytest.approx(1.0)


def test_single_rows_have_their_own_number_as_the_effective_one() -> None:
    correct = np.array([1.0] * 27 + [0.0] * 3)
    strata = [(correct, np.ones(30))]
    assert np.array(proportion_interval_of_strata(strata, 0.95)) == pytest.approx(np.array(wilson_interval(0.9, 30)))
    differences = np.array([1.0] * 5 + [-1.0] * 2 + [0.0] * 23)
    found = difference_interval_of_strata([(differences, np.ones(30))], [(differences**2, np.ones(30))], 0.95)
    assert np.array(found) == pytest.approx(np.array(tango_interval(5, 2, 30)))


def test_copies_of_rows_are_worth_one_row() -> None:
    """Clusters whose rows are all alike have the interval of the clusters, but for Student's quantile."""
    correct = np.repeat([1.0] * 250 + [0.0] * 50, 7)
    units = answers(correct, {"item": [str(i // 7) for i in range(len(correct))]})
    clustered = bootstrap_interval(PairAccuracy(), units, replace(AUTO, by="item"))
    single = bootstrap_interval(PairAccuracy(), answers(correct[::7]), AUTO)
    assert ends(clustered) == pytest.approx(ends(single), abs=0.001)
    by_row = bootstrap_interval(PairAccuracy(), units, AUTO)
    assert by_row.high - by_row.low == pytest.approx((single.high - single.low) / 7**0.5, rel=0.03)
    assert clustered.method == single.method == "wilson"
    # Few of them too: copies cannot be worth less than the rows that were copied.
    few = bootstrap_interval(PairAccuracy(), units.take(np.arange(7 * 240, 7 * 260)), replace(AUTO, by="item"))
    assert ends(few) == pytest.approx([float(end) for end in wilson_interval(0.5, 20)])


def test_few_clusters_have_students_quantile() -> None:
    """Twelve clusters that all have both answers: little wider than Student's interval of their shares."""
    hits = np.array([30, 22, 27, 35, 19, 24, 31, 28, 25, 33, 21, 26])
    correct = np.concatenate([[1.0] * k + [0.0] * (50 - k) for k in hits])
    units = answers(correct, {"item": [str(i // 50) for i in range(600)]})
    clustered = bootstrap_interval(PairAccuracy(), units, replace(AUTO, by="item"))
    theirs = stats.ttest_1samp(hits / 50, 0).confidence_interval(0.95)
    # Groups that are a sample themselves are such clusters.
    groups = [units.take(np.arange(50) + 50 * i) for i in range(12)]
    sampled = bootstrap_macro_interval(PairAccuracy(), groups, replace(AUTO, by="item"))
    assert ends(sampled) == pytest.approx(ends(clustered), abs=0.003)
    widths = [interval.high - interval.low for interval in (clustered, sampled)]
    assert all(1 < width / (theirs.high - theirs.low) < 1.05 for width in widths)


def test_the_proportions_of_groups_are_corrected_for_skewness() -> None:
    """A mean over groups of which one is far below the others is less certain than their variance says."""
    values = np.array([0.9, 0.92, 0.88, 0.95, 0.86, 0.91, 0.93, 0.89, 0.9, 0.94, 0.87, 0.3])
    groups = [
        answers([1.0] * round(100 * p) + [0.0] * round(100 * (1 - p)), {"item": [str(i)] * 100})
        for i, p in enumerate(values)
    ]
    interval = bootstrap_macro_interval(PairAccuracy(), groups, replace(AUTO, by="item"))
    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert ends(interval) == pytest.approx([float(end) for end in proportion_interval_of_groups(values, 0.95)])
    assert interval.high - interval.low > 1.3 * (theirs.high - theirs.low)


def compute_skewness(deviations: np.ndarray) -> float:
    """Return the squared skewness of a mean of n: that of its values, by SciPy, divided by n."""
    return float(stats.skew(deviations) ** 2 / len(deviations))


def hall_quantile(degrees: float, skewness: float) -> float:
    """Return Student's quantile with the term of the skewness in Edgeworth's expansion (Hall 1992)."""
    z = stats.norm.ppf(0.975)
    return float(stats.t.ppf(0.975, degrees) * (1 + skewness * (z**4 + 2 * z**2 - 3) / 18))


def test_misses_in_large_groups_say_little_about_small_ones() -> None:
    """The macro mean of a group of 10 and one of 1,000: five misses in the large one are no news of the small one."""
    groups = [answers([1.0] * 10), answers([1.0] * 995 + [0.0] * 5)]
    interval = bootstrap_macro_interval(PairAccuracy(), groups, AUTO)
    # All rows together count as some 40, four times as many as the small group has.
    alone = bootstrap_interval(PairAccuracy(), answers([1.0] * 40), AUTO)
    assert interval.low == pytest.approx(alone.low, abs=0.01)


def test_right_rows_only_still_have_an_interval_with_width() -> None:
    right = answers([1.0] * 60, {"item": [str(i // 3) for i in range(60)], "group": ["a"] * 30 + ["b"] * 30})
    single = bootstrap_interval(PairAccuracy(), right, AUTO)
    assert ends(single) == pytest.approx([float(end) for end in wilson_interval(1.0, 60)])
    # All that is known then is the number of clusters.
    clustered = bootstrap_interval(PairAccuracy(), right, replace(AUTO, by="item"))
    assert ends(clustered) == pytest.approx([float(end) for end in wilson_interval(1.0, 20)])
    groups = [right.take(np.arange(30)), right.take(np.arange(30, 60))]
    macro = bootstrap_macro_interval(PairAccuracy(), groups, AUTO)
    assert ends(macro) == pytest.approx(ends(single))
    assert bootstrap_macro_interval(PairAccuracy(), groups, replace(AUTO, by="group")).low < 0.6
    equal = bootstrap_difference(PairAccuracy(), right, right, AUTO)
    assert (equal.method, equal.low) == ("tango", -equal.high)
    assert equal.high > 0.05
    assert bootstrap_macro_difference(PairAccuracy(), [(part, part) for part in groups], AUTO).high > 0.05


def test_a_mean_has_students_interval_widened_for_skewness() -> None:
    values = np.random.default_rng(1).normal(size=24)
    units = rows({"repulsion": values}, {"item": [str(i // 2) for i in range(24)]})
    interval = bootstrap_interval(Repulsion(), units, AUTO)

    def widen(plain, of: np.ndarray) -> tuple[float, float]:
        half_width = (plain.high - plain.low) / 2 * hall_quantile(9, compute_skewness(of)) / hall_quantile(9, 0)
        return (plain.high + plain.low) / 2 - half_width, (plain.high + plain.low) / 2 + half_width

    theirs = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval.method == "t"
    assert ends(interval) == pytest.approx(widen(theirs, values))
    # Values without skewness have Student's own.
    even = np.concatenate([values, -values])
    plain = stats.ttest_1samp(even, 0).confidence_interval(0.95)
    assert ends(bootstrap_interval(Repulsion(), rows({"repulsion": even}), AUTO)) == pytest.approx(tuple(plain))
    same = bootstrap_interval(Repulsion(), rows({"repulsion": [0.7] * 5}), AUTO)
    assert (same.low, same.high) == pytest.approx((0.7, 0.7))
    assert same.note == "all rows are equal, so the interval says nothing about other rows"
    assert interval.note is None
    # Clusters of equal size: Student's interval of their means.
    means = values.reshape(-1, 2).mean(axis=1)
    of_means = widen(stats.ttest_1samp(means, 0).confidence_interval(0.95), means)
    assert ends(bootstrap_interval(Repulsion(), units, replace(AUTO, by="item"))) == pytest.approx(of_means)
    other = rows({"repulsion": values[::-1]})
    # Antisymmetric differences have no skewness.
    paired = stats.ttest_rel(values, values[::-1]).confidence_interval(0.95)
    assert ends(bootstrap_difference(Repulsion(), units, other, AUTO)) == pytest.approx(tuple(paired))


def test_a_macro_mean_of_two_groups_has_welchs_interval_widened_for_skewness() -> None:
    """The sum of two independent means has the interval of their difference with one sign turned."""
    generator = np.random.default_rng(2)
    first, second = generator.normal(size=9), generator.normal(scale=3, size=14)
    groups = [rows({"repulsion": first}), rows({"repulsion": second})]
    theirs = stats.ttest_ind(first, -second, equal_var=False).confidence_interval(0.95)
    interval = bootstrap_macro_interval(Repulsion(), groups, AUTO)
    parts = [(values - values.mean()) / len(values) for values in (first, second)]
    skewness = sum((part**3).sum() for part in parts) ** 2 / sum((part**2).sum() for part in parts) ** 3
    centre, width = (theirs.high + theirs.low) / 4, (theirs.high - theirs.low) / 4
    width *= hall_quantile(9, skewness) / hall_quantile(9, 0)
    assert skewness > 0.001
    assert ends(interval) == pytest.approx((centre - width, centre + width))
    assert summarise_strata([(first, np.ones(9)), (second, np.ones(14))]).degrees < 22


@pytest.mark.parametrize(("measure", "quantile"), [(Pearson(), "t"), (Spearman(), "normal"), (Kendall(), "normal")])
def test_a_correlation_has_the_jackknife_interval_of_its_fisher_z(measure, quantile: str) -> None:
    generator = np.random.default_rng(3)
    score = generator.normal(size=25)
    units = rows({"score": score, "rating": np.round(score + generator.normal(size=25))})
    interval = bootstrap_interval(measure, units, AUTO)
    z = np.arctanh([measure.value(units.take_columns(np.delete(np.arange(25), i))) for i in range(25)])
    widened = hall_quantile(24, compute_skewness(z))
    half_width = np.sqrt(24 * z.var()) * (widened if quantile == "t" else stats.norm.ppf(0.975))
    centre = np.arctanh(measure.value(units))
    assert ends(interval) == pytest.approx(tuple(np.tanh([centre - half_width, centre + half_width])))
    assert interval.method == "jackknife"


def test_the_jackknife_knows_columns_that_are_not_normal() -> None:
    """Of independent columns with heavy tails a correlation varies as much as of normal ones, of copies it does not."""
    generator = np.random.default_rng(4)
    heavy = stats.t.rvs(5, size=(2, 4000), random_state=generator) * np.sqrt(5 / generator.chisquare(5, 4000))
    interval = bootstrap_interval(Pearson(), rows({"score": heavy[0], "rating": heavy[1]}), AUTO)
    width_if_normal = 2 * 1.96 / np.sqrt(4000)
    assert interval.high - interval.low > 1.3 * width_if_normal


def test_correlations_without_variation_have_a_reason() -> None:
    units = rows({"score": np.arange(8.0), "rating": np.arange(8.0)})
    assert "does not change if any row is left out" in bootstrap_interval(Kendall(), units, AUTO).note
    labels = rows({"score": np.arange(8.0), "label": [1.0] + [0.0] * 7})
    assert "undefined without some of the rows" in bootstrap_interval(PBC(), labels, AUTO).note


def test_a_difference_of_correlations_is_by_the_jackknife_too() -> None:
    generator = np.random.default_rng(5)
    rating, noise = generator.normal(size=40), generator.normal(size=(2, 40))
    first, second = (rows({"score": rating + part, "rating": rating}) for part in noise)
    interval = bootstrap_difference(Pearson(), first, second, AUTO)
    resampled = bootstrap_difference(Pearson(), first, second, Bootstrap(2000, method="percentile"))
    assert interval.method == "jackknife"
    assert interval.high - interval.low == pytest.approx(resampled.high - resampled.low, rel=0.2)


def hanley_mcneil(area: float, good: int, bad: int) -> float:
    others = (good + bad) / 2 - 1
    return area * (1 - area) * (1 + others * ((1 - area) / (2 - area) + area / (1 + area))) / (good * bad)


def test_a_perfect_area_has_newcombes_interval() -> None:
    units = rows({"score": np.arange(25.0), "label": [0.0] * 10 + [1.0] * 15})
    interval = bootstrap_interval(AUC(), units, AUTO)
    z = stats.norm.ppf(0.975)
    low = optimize.brentq(lambda area: 1 - area - z * np.sqrt(hanley_mcneil(area, 15, 10)), 0.3, 0.999)
    assert ends(interval) == pytest.approx((low, 1.0))
    assert interval.method == "hanley-mcneil"


def test_an_area_of_many_rows_has_its_own_variance() -> None:
    generator = np.random.default_rng(6)
    score = np.concatenate([generator.normal(1, 3, 300), generator.normal(0, 0.5, 100)])
    units = rows({"score": score, "label": [1.0] * 300 + [0.0] * 100})
    interval = bootstrap_interval(AUC(), units, AUTO)
    above = (score[:300, None] > score[None, 300:]).astype(float)
    delong = above.mean(axis=1).var(ddof=1) / 300 + above.mean(axis=0).var(ddof=1) / 100
    assert interval.high - interval.low == pytest.approx(2 * 1.96 * np.sqrt(delong), rel=0.03)
    theoretical = hanley_mcneil(float(above.mean()), 300, 100)
    assert abs(delong / theoretical - 1) > 0.2
    resampled = bootstrap_interval(AUC(), units, Bootstrap(1000, method="percentile"))
    assert ends(interval) == pytest.approx(ends(resampled), abs=0.02)


def test_areas_of_contrasts_count_sentences_once() -> None:
    generator = np.random.default_rng(7)
    better, worse = generator.normal(1, 1, 30), generator.normal(0, 1, 30)
    once = {"better": better, "worse": worse, "better_share": np.ones(30), "worse_share": np.ones(30)}
    tags = {"item": [str(i) for i in range(30)]}
    single = bootstrap_interval(UnpairedAUC(), rows(once, tags), AUTO)
    by_item = bootstrap_interval(UnpairedAUC(), rows(once, tags), replace(AUTO, by="item"))
    assert ends(single) == pytest.approx(ends(by_item))
    repeated = {name: np.repeat(column, 2) for name, column in once.items()}
    repeated |= {"better_share": np.full(60, 0.5), "worse_share": np.full(60, 0.5)}
    copies = rows(repeated, {"item": [str(i // 2) for i in range(60)]})
    assert ends(bootstrap_interval(UnpairedAUC(), copies, replace(AUTO, by="item"))) == pytest.approx(ends(single))


def test_a_class_of_one_row_leaves_the_theoretical_variance() -> None:
    units = rows({"score": np.arange(10.0), "label": [0.0] * 5 + [1.0] + [0.0] * 4})
    interval = bootstrap_interval(AUC(), units, AUTO)
    z = stats.norm.ppf(0.975)
    low = optimize.brentq(lambda area: 5 / 9 - area - z * np.sqrt(hanley_mcneil(area, 1, 9)), 0.001, 0.5)
    assert interval.low == pytest.approx(low)


def test_the_variance_of_an_area_counts_with_the_rows_that_it_rests_on() -> None:
    """Ten rows of each class, an area of .95: half a row of the smaller class, against a prior of .4."""
    variance, z = 0.0004, stats.norm.ppf(0.975)
    theoretical = hanley_mcneil(0.95, 10, 10)
    scale = (variance * 0.5 + theoretical * 0.4) / (theoretical * 0.9)
    low = optimize.brentq(lambda area: 0.95 - area - z * np.sqrt(scale * hanley_mcneil(area, 10, 10)), 0.2, 0.94)
    assert auc_interval(np.array(0.95), np.array(variance), 10, 10, 0.95)[0] == pytest.approx(low)


def predictions(hits: int, misses: int, alarms: int, rejections: int, copies: int = 1) -> Units:
    predicted = [1.0] * hits + [0.0] * misses + [1.0] * alarms + [0.0] * rejections
    label = [1.0] * (hits + misses) + [0.0] * (alarms + rejections)
    items = [str(i) for i in range(len(label)) for _ in range(copies)]
    return rows({"predicted": np.repeat(predicted, copies), "label": np.repeat(label, copies)}, {"item": items})


def draw_mcc(counts: list[float]) -> np.ndarray:
    shares = np.random.default_rng(8).dirichlet(np.array(counts), size=20_000)
    hits, misses, alarms, rejections = shares.T
    margins = (hits + misses) * (alarms + rejections) * (hits + alarms) * (misses + rejections)
    return (hits * rejections - misses * alarms) / np.sqrt(margins)


def test_matthews_has_the_quantiles_of_a_dirichlet_posterior() -> None:
    interval = bootstrap_interval(MCC(threshold=0.0), predictions(27, 6, 9, 18), Bootstrap(20_000))
    expected = np.quantile(draw_mcc([27.5, 6.5, 9.5, 18.5]), [0.025, 0.975])
    assert ends(interval) == pytest.approx(tuple(expected), abs=0.01)
    assert interval.method == "dirichlet"
    shape = draw_matthews(np.array([[9.0, 2, 3, 6]] * 3), (0.5,) * 4, 5, np.random.default_rng(1)).shape
    assert shape == (3, 5)


def test_matthews_reaches_the_one_sided_limit_near_one() -> None:
    """Where only one side can miss, that side has 1.3 of the error in all, as in Wilson's interval."""
    interval = bootstrap_interval(MCC(threshold=0.0), predictions(10, 1, 1, 8), Bootstrap(20_000))
    assert interval.high == pytest.approx(np.quantile(draw_mcc([11, 1, 1, 9]), 1 - 0.065), abs=0.005)
    assert interval.high > np.quantile(draw_mcc([10.5, 1.5, 1.5, 8.5]), 0.975) + 0.005
    perfect = bootstrap_interval(MCC(threshold=0.0), predictions(10, 0, 0, 10), Bootstrap(2000))
    assert perfect.high == 1
    wrong = bootstrap_interval(MCC(threshold=0.0), predictions(1, 8, 10, 1), Bootstrap(20_000))
    assert wrong.low == pytest.approx(-interval.high, abs=0.01)


def test_matthews_of_copies_has_the_interval_of_the_items() -> None:
    single = bootstrap_interval(MCC(threshold=0.0), predictions(30, 5, 6, 20), Bootstrap(4000))
    copied = predictions(30, 5, 6, 20, copies=4)
    clustered = bootstrap_interval(MCC(threshold=0.0), copied, Bootstrap(4000, by="item"))
    assert ends(clustered) == pytest.approx(ends(single), abs=0.02)
    by_row = bootstrap_interval(MCC(threshold=0.0), copied, Bootstrap(4000))
    assert by_row.high - by_row.low < 0.6 * (single.high - single.low)
    perfect = bootstrap_interval(MCC(threshold=0.0), predictions(10, 0, 0, 10, copies=4), Bootstrap(4000, by="item"))
    assert 0.4 < perfect.low < 0.85


def test_what_has_no_closed_form_is_resampled() -> None:
    generator = np.random.default_rng(9)
    score = generator.normal(size=40)
    units = rows({"score": score, "rating": score + generator.normal(size=40)}, {"group": ["a", "b"] * 20})
    groups = [units.take(np.arange(0, 40, 2)), units.take(np.arange(1, 40, 2))]
    macro = bootstrap_macro_interval(Pearson(), groups, AUTO)
    assert macro.method == "percentile"
    assert macro == bootstrap_macro_interval(Pearson(), groups, replace(AUTO, method="percentile"))

    class AnyMean(Measure):
        needs = "contrasts"

        def value(self, units: Units) -> float:
            return float(units["score"].mean())

    assert bootstrap_interval(AnyMean(), units, AUTO).method == "percentile"
    # Groups that are a sample have Student's interval of their values.
    sampled = bootstrap_macro_interval(AnyMean(), groups, replace(AUTO, by="group"))
    theirs = stats.ttest_1samp([part["score"].mean() for part in groups], 0).confidence_interval(0.95)
    assert sampled.method == "t"
    assert ends(sampled) == pytest.approx((theirs.low, theirs.high))
    two_levels = replace(AUTO, by="group", within="row")
    assert bootstrap_macro_interval(AnyMean(), groups, two_levels).method == "percentile"


def test_too_few_units_have_no_interval() -> None:
    one = answers([1.0], {"item": ["a"]})
    for interval in (
        bootstrap_interval(PairAccuracy(), one, AUTO),
        bootstrap_macro_interval(PairAccuracy(), [one, answers([1.0, 0.0])], AUTO),
        bootstrap_difference(PairAccuracy(), one, one, AUTO),
        bootstrap_macro_interval(PairAccuracy(), [one], replace(AUTO, by="item")),
    ):
        assert interval.low is None
        assert interval.note.startswith("no interval: there are fewer than two")


@pytest.mark.parametrize("method", ["auto", "percentile", "bca", "wilson", "tango", "t", "jackknife", "dirichlet"])
def test_signatures_are_read_back(method: str) -> None:
    settings = Bootstrap(300, by="item", method=method, seed=4)
    found = parse_bootstrap(settings.signature)
    assert found.signature == settings.signature
    assert ("seed" in settings.signature) == (method in ("auto", "percentile", "bca", "dirichlet"))


def test_a_closed_form_by_name_is_the_one_of_the_measure() -> None:
    units = answers([1.0] * 18 + [0.0] * 2)
    named = bootstrap_interval(PairAccuracy(), units, parse_bootstrap("wilson(0.95,by=row)"))
    assert named == bootstrap_interval(PairAccuracy(), units, AUTO)
    # What was computed by resampling before still is, with the same numbers.
    before = parse_bootstrap("percentile(0.95,resamples=200,by=row,seed=0)")
    resampled = bootstrap_interval(PairAccuracy(), units, before)
    assert resampled.method == "percentile"
    assert resampled.low == pytest.approx(0.74875)


def test_exact_coverage_of_right_and_wrong_rows() -> None:
    """All outcomes of 20 rows, through the function that `evaluate` calls; percentiles cover .8 in 88 to 92 %."""
    intervals = [
        bootstrap_interval(PairAccuracy(), answers([1.0] * hits + [0.0] * (20 - hits)), AUTO) for hits in range(21)
    ]
    low, high = np.array([ends(interval) for interval in intervals]).T
    for share, offset in product((0.5, 0.8, 0.9, 0.95, 0.98), np.linspace(-0.02, 0.015, 8)):
        p = share + offset
        assert stats.binom.pmf(np.arange(21), 20, p) @ ((low <= p) & (p <= high)) >= 0.92


def test_exact_coverage_of_paired_differences() -> None:
    """All outcomes of 16 paired rows; percentiles cover .95 − .85 in 83 %, and without differences never at all."""
    gain, loss = 0.12, 0.02
    covered = 0.0
    for gains, losses in product(range(17), range(17)):
        if gains + losses <= 16:
            first = answers([1.0] * (16 - losses) + [0.0] * losses)
            second = answers([0.0] * gains + [1.0] * (16 - gains))
            interval = bootstrap_difference(PairAccuracy(), first, second, AUTO)
            rest = 16 - gains - losses
            chance = stats.multinomial.pmf([gains, losses, rest], 16, [gain, loss, 1 - gain - loss])
            covered += chance * (interval.low <= gain - loss <= interval.high)
    assert 0.93 <= covered <= 0.99


def test_jackknife_variance_is_that_of_a_mean() -> None:
    values = np.array([1.0, 4.0, 2.0, 8.0])
    left_out = (values.sum() - values) / 3
    assert jackknife_variance(left_out) == pytest.approx(values.var(ddof=1) / 4)
    low, high = correlation_interval(np.array(0.5), np.array([0.5, 0.5, 0.5]), 0.95, 2)
    assert (low, high) == pytest.approx((0.5, 0.5))
