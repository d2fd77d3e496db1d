from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy import stats

from acceptability import PairAccuracy, Pearson
from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure, Moments
from acceptability.stats.bootstrap import Bootstrap, Interval, build_stratum, compute_acceleration, parse_bootstrap
from acceptability.stats.intervals import bootstrap_difference, bootstrap_interval, bootstrap_macro_interval
from acceptability.stats.intervals.closed_forms import clopper_pearson
from acceptability.stats.resampling import make_jackknife_groups, nest_rows
from acceptability.types import Units


def rows(correct, items: list[str] | None = None) -> Units:
    tags = tuple({"item": item} for item in items) if items else ({},) * len(correct)
    return Units(tuple(map(str, range(len(correct)))), {"correct": np.array(correct, dtype=float)}, tags)


def pairs_of(first, second) -> Units:
    return Units(tuple(map(str, range(len(first)))), {"score": first, "rating": second}, ({},) * len(first))


@dataclass(frozen=True)
class AnyMean(Measure):
    """The mean again, but not declared as one."""

    needs = "contrasts"
    mean_of = None

    def value(self, units: Units) -> float:
        return float(units["correct"].mean())


def compute_coverage(make, truth: float, how, n: int = 300) -> float:
    """Return how often the intervals of n simulated data sets cover the truth."""
    generator = np.random.default_rng(7)
    result = [make(generator, how(seed)) for seed in range(n)]
    return float(np.mean([interval.low <= truth <= interval.high for interval in result]))


def of_mean(generator, how) -> Interval:
    return bootstrap_interval(PairAccuracy(), rows(generator.random(150) < 0.7), how)


def of_skewed_mean(generator, how) -> Interval:
    return bootstrap_interval(PairAccuracy(), rows(generator.exponential(size=80)), how)


def of_correlation(generator, how) -> Interval:
    first = generator.normal(size=80)
    return bootstrap_interval(Pearson(), pairs_of(first, 0.6 * first + 0.8 * generator.normal(size=80)), how)


def of_clusters(generator, how) -> Interval:
    chances = np.repeat(generator.beta(7, 3, size=60), 6)
    return bootstrap_interval(
        PairAccuracy(), rows(generator.random(360) < chances, [str(i // 6) for i in range(360)]), how
    )


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(
    ("make", "truth", "by"),
    [
        (of_mean, 0.7, ""),
        (of_skewed_mean, 1.0, ""),
        pytest.param(of_correlation, 0.6, "", marks=pytest.mark.slow),
        (of_clusters, 0.7, "item"),
    ],
)
def test_coverage_is_near_nominal(make, truth: float, by: str, method: str) -> None:
    covered = compute_coverage(make, truth, lambda seed: Bootstrap(200, seed=seed, by=by, method=method))
    assert 0.90 <= covered <= 0.985


def test_resampling_single_rows_of_clusters_undercovers() -> None:
    """Why the unit of resampling is an argument."""

    def equal_within(generator, how) -> Interval:
        return bootstrap_interval(PairAccuracy(), rows(np.repeat(generator.random(40) < 0.7, 10)), how)

    assert compute_coverage(equal_within, 0.7, lambda seed: Bootstrap(200, seed=seed, method="percentile"), 100) < 0.6


@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_scipy_gives_the_same_interval(method: str) -> None:
    sample = np.random.default_rng(3).exponential(size=60)
    theirs = stats.bootstrap(
        (sample,), np.mean, n_resamples=400, method=method, rng=np.random.default_rng(5), batch=400, vectorized=True
    ).confidence_interval
    ours = bootstrap_interval(PairAccuracy(), rows(sample), Bootstrap(400, seed=5, method=method))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=1e-12)


def test_scipy_gives_the_same_bca_interval_of_a_correlation() -> None:
    generator = np.random.default_rng(4)
    first = generator.normal(size=40)
    second = first + generator.normal(size=40)
    theirs = stats.bootstrap(
        (first, second),
        lambda a, b: stats.pearsonr(a, b).statistic,
        paired=True,
        vectorized=False,
        n_resamples=300,
        method="BCa",
        rng=np.random.default_rng(6),
    ).confidence_interval
    ours = bootstrap_interval(Pearson(), pairs_of(first, second), Bootstrap(300, seed=6, method="bca"))
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=1e-9)


@pytest.mark.parametrize("by", ["", "item"])
@pytest.mark.parametrize("method", ["percentile", "bca"])
def test_the_fast_path_for_means_gives_the_numbers_of_the_general_one(method: str, by: str) -> None:
    generator = np.random.default_rng(2)
    items = [f"i{i}" for i in generator.integers(0, 30, size=200)]
    first, second = (rows(generator.random(200) < share, items) for share in (0.8, 0.6))
    how = Bootstrap(300, seed=9, method=method, by=by)
    for compute in (
        lambda measure: bootstrap_interval(measure, first, how),
        lambda measure: bootstrap_macro_interval(measure, [first, second], how),
        lambda measure: bootstrap_difference(measure, first, second, how),
    ):
        quick, general = compute(PairAccuracy()), compute(AnyMean())
        assert (quick.low, quick.high) == pytest.approx((general.low, general.high), abs=1e-12)


@pytest.mark.parametrize("sizes", [[50] * 30, [50] * 20 + [60] * 10])
def test_groups_that_share_random_numbers_vary_independently(sizes: list[int]) -> None:
    """Equal groups, which would all be drawn alike: the mean would vary as much as one group."""
    groups = [rows(np.arange(size) % 2) for size in sizes]
    how = Bootstrap(200, by="", method="percentile", level=0.6827)
    intervals = [bootstrap_macro_interval(PairAccuracy(), groups, replace(how, seed=seed)) for seed in range(20)]
    deviation = np.sqrt(sum(0.25 / size for size in sizes)) / len(sizes)
    assert np.mean([interval.high - interval.low for interval in intervals]) / 2 == pytest.approx(deviation, rel=0.1)
    # The middle of an interval, an average over resamples: of groups in the same order it varies twice as much.
    middles = np.array([(interval.high + interval.low) / 2 for interval in intervals])
    assert np.sqrt(((middles - 0.5) ** 2).mean()) < 0.2 * deviation


@pytest.mark.parametrize(("resamples", "n", "moments"), [(1, 20_011, 6), (3, 30_000, 2), (64, 1_000, 6), (5, 7, 1)])
def test_sums_in_parts_are_those_of_the_whole(
    resamples: int, n: int, moments: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    generator = np.random.default_rng(1)
    weights, of_rows = generator.integers(0, 4, (resamples, n)).astype(float), generator.normal(size=(moments, n))

    class Sums(Measure):
        needs = "contrasts"

        def value(self, units: Units) -> float:
            return 0.0

        def weigh(self, units: Units) -> Moments:
            return Moments(of_rows, lambda sums: (sums * np.arange(1, moments + 1)[:, None]).sum(axis=0))

    stratum = build_stratum(Sums(), rows(np.zeros(n)), Bootstrap(40, by=""))
    assert stratum.arrange is not None
    multiply = np.matmul

    def multiply_serially(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        # Above these sizes OpenBLAS calls on its threads, of a matrix and of a vector.
        size = first.shape[1] * first.shape[2] * second.shape[2]
        assert size <= (2**18 if first.shape[1] > 1 and second.shape[2] > 1 else 2304 * 4)
        return multiply(first, second)

    monkeypatch.setattr(np, "matmul", multiply_serially)
    expected = (weights @ of_rows.T) @ np.arange(1, moments + 1)
    np.testing.assert_allclose(stratum.arrange(np.arange(n))(weights), expected, rtol=1e-11)
    order = generator.permutation(n)
    np.testing.assert_allclose(stratum.arrange(order)(weights[:, order]), expected, rtol=1e-11)


def test_leaving_out_groups_estimates_the_same_acceleration() -> None:
    sample = np.random.default_rng(1).exponential(size=20_000)
    centred = sample - sample.mean()
    alone = compute_acceleration([(sample.sum() - sample) / (len(sample) - 1)])
    assert alone == pytest.approx((centred**3).sum() / (6 * (centred**2).sum() ** 1.5), abs=1e-12)
    groups = make_jackknife_groups(len(sample), 400, seed=0)
    assert sorted(np.concatenate(groups).tolist()) == list(range(20_000))
    grouped = compute_acceleration([np.array([np.delete(sample, group).mean() for group in groups])])
    assert grouped == pytest.approx(alone, abs=0.005)


def test_the_seed_decides() -> None:
    units = rows([1.0, 0.0] * 20)
    one, same, other = (
        bootstrap_interval(PairAccuracy(), units, Bootstrap(200, seed=seed, method="percentile")) for seed in (1, 1, 2)
    )
    assert one == same != other


def test_clusters_are_resampled_whole() -> None:
    alone = rows([1.0] * 50 + [0.0] * 50)
    clustered = rows([1.0] * 50 + [0.0] * 50, ["a"] * 50 + ["b"] * 50)
    narrow = bootstrap_interval(PairAccuracy(), alone, Bootstrap(300, method="percentile"))
    wide = bootstrap_interval(PairAccuracy(), clustered, Bootstrap(300, by="item", method="percentile"))
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert narrow.high - narrow.low < 0.25
    with pytest.raises(MeasureError, match="100 of 100 rows lack that tag"):
        bootstrap_interval(PairAccuracy(), alone, Bootstrap(300, by="item"))


def test_a_paired_difference_is_narrower_than_two_samples() -> None:
    first = (np.random.default_rng(1).random(400) < 0.6).astype(float)
    second = first.copy()
    second[:20] = 0
    result = bootstrap_difference(PairAccuracy(), rows(first), rows(second), Bootstrap(500, method="percentile"))
    assert 0 < result.low < first.mean() - second.mean() < result.high < 0.06


@pytest.mark.parametrize("method", ["percentile", "bca"])
@pytest.mark.parametrize(("value", "low", "high"), [(1.0, 0.9288783, 1.0), (0.0, 0.0, 0.0711217)])
def test_constant_proportions_get_the_exact_interval(method: str, value: float, low: float, high: float) -> None:
    result = bootstrap_interval(PairAccuracy(), rows([value] * 50), Bootstrap(100, method=method))
    assert (result.low, result.high) == pytest.approx((low, high), abs=1e-6)
    assert result.note == f"every row is {value:g}: exact interval of Clopper and Pearson, 50 rows"
    clustered = bootstrap_interval(
        PairAccuracy(), rows([value] * 50, ["a", "b"] * 25), Bootstrap(100, by="item", method=method)
    )
    assert clustered.note.endswith("2 values of 'item'")
    assert clustered.high - clustered.low == pytest.approx(1 - 0.025**0.5)


def test_constant_rows_other_than_0_and_1() -> None:
    result = bootstrap_interval(PairAccuracy(), rows([0.5] * 20), Bootstrap(100, method="bca"))
    assert (result.low, result.high) == (0.5, 0.5)
    assert result.note.startswith("all resamples are equal")


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_clopper_pearson_is_scipys(n: int) -> None:
    for hits in range(n + 1):
        theirs = stats.binomtest(hits, n).proportion_ci(0.9)
        assert clopper_pearson(hits, n, 0.9) == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_a_share_of_no_trials_is_refused() -> None:
    with pytest.raises(MeasureError, match="0 of 0"):
        clopper_pearson(0, 0)


def test_no_interval_without_resamples_or_where_most_are_undefined() -> None:
    assert bootstrap_interval(PairAccuracy(), rows([1.0, 0.0]), Bootstrap(0)) == Interval()
    few = bootstrap_interval(PairAccuracy(), rows([1.0]), Bootstrap(100))
    assert (few.low, few.note) == (None, "no interval: there are fewer than two rows to resample")
    assert bootstrap_interval(PairAccuracy(), rows([]), Bootstrap(100)).low is None

    class Moody(AnyMean):
        def value(self, units: Units) -> float:
            if units["correct"].sum() < 1:
                raise Undefined("by chance")
            return 1.0

    # One hit among twenty rows is missed by about a third of the resamples.
    units = rows([1.0] + [0.0] * 19)
    result = bootstrap_interval(Moody(), units, Bootstrap(100))
    assert result.low is None
    assert "of 100 resamples are undefined" in result.note
    # Four hits are missed by about one in a hundred.
    result = bootstrap_interval(Moody(), rows([1.0] * 4 + [0.0] * 16), Bootstrap(1000))
    assert result.low == 1
    assert "of 1000 resamples are undefined and left out" in result.note


def test_undefined_bca_intervals_have_a_reason() -> None:
    class Fragile(AnyMean):
        def value(self, units: Units) -> float:
            if len(units["correct"]) < 20:
                raise Undefined("too few")
            return float(units["correct"].mean())

    result = bootstrap_interval(Fragile(), rows([1.0, 0.0] * 10), Bootstrap(100, method="bca"))
    assert (result.low, result.note) == (None, "no BCa interval: the value is undefined where some rows are left out")

    class Largest(AnyMean):
        def value(self, units: Units) -> float:
            return float(len(set(units["correct"].tolist())))

    result = bootstrap_interval(Largest(), rows(np.arange(30.0)), Bootstrap(100, method="bca"))
    assert result.note == "no BCa interval: the value itself lies outside all resampled values"


@pytest.mark.parametrize(
    "wrong", [{"resamples": -1}, {"resamples": 1}, {"level": 1.0}, {"seed": -1}, {"method": "normal"}]
)
def test_wrong_settings(wrong: dict[str, object]) -> None:
    with pytest.raises(MeasureError):
        Bootstrap(**wrong)


def test_two_levels_are_read_back_from_a_signature() -> None:
    nested = Bootstrap(200, by="paradigm", within="item", seed=3, method="percentile")
    assert nested.signature == "percentile(0.95,resamples=200,by=paradigm/item,seed=3)"
    assert parse_bootstrap(nested.signature) == nested
    with pytest.raises(MeasureError, match="name it, as by='paradigm'"):
        Bootstrap(within="item")
    with pytest.raises(MeasureError, match="for two levels give by='paradigm', within='item'"):
        Bootstrap(by="paradigm/item")


def nested_rows(correct, paradigms: list[str], items: list[str]) -> Units:
    tags = tuple({"paradigm": paradigm, "item": item} for paradigm, item in zip(paradigms, items, strict=True))
    return Units(tuple(map(str, range(len(correct)))), {"correct": np.array(correct, dtype=float)}, tags)


def test_two_levels_draw_parts_of_the_drawn_values_only() -> None:
    # Items 1 and 2 stand in both paradigms, where they are different items; paradigm b has a third.
    units = nested_rows([1] * 6, list("aaabbb"), ["1", "1", "2", "1", "2", "3"])
    nested = nest_rows(units, "paradigm", "item")
    assert [part.tolist() for part in nested.list_parts()] == [[0, 1], [2], [3], [4], [5]]
    assert nested.sizes.tolist() == [2, 3]
    draws = [tuple(drawn) for drawn in nested.draw(400, np.random.default_rng(1))]
    # Two paradigms of two or three items, each block of one paradigm.
    assert {len(drawn) for drawn in draws} == {4, 5, 6}
    assert all(set(drawn[:2]) <= {0, 1} or set(drawn[:3]) <= {2, 3, 4} for drawn in draws)
    assert set(np.concatenate(draws)) == set(range(5))


@pytest.mark.parametrize("within", ["item", "row"])
def test_two_levels_have_the_variance_of_both(within: str) -> None:
    """The variance of a two-level resample of equal groups: that of their means plus that inside them."""
    generator = np.random.default_rng(5)
    values = generator.normal(size=(6, 1)) + generator.normal(size=(6, 8))
    units = nested_rows(
        values.ravel(), [str(i) for i in range(6) for _ in range(8)], [str(i) for _ in range(6) for i in range(8)]
    )
    groups = [units.take(np.arange(8) + 8 * i) for i in range(6)]
    how = Bootstrap(4000, by="paradigm", within=within, seed=2)
    expected = np.sqrt(values.mean(axis=1).var() / 6 + values.var(axis=1).mean() / 48)
    for compute in (
        lambda: bootstrap_interval(PairAccuracy(), units, how),
        lambda: bootstrap_interval(AnyMean(), units, how),
        lambda: bootstrap_macro_interval(PairAccuracy(), groups, how),
    ):
        interval = compute()
        assert (interval.high - interval.low) / 2 / 1.96 == pytest.approx(expected, rel=0.05)


def test_groups_that_are_the_sampling_units_are_resampled() -> None:
    accuracies = np.array([0.5, 0.7, 0.8, 0.9, 1.0])
    groups = [
        # The items of each paradigm are others: those that appear in several are in test_crossed_groups.
        nested_rows([1] * round(10 * p) + [0] * round(10 - 10 * p), [str(i)] * 10, [f"{i}{x}" for x in "abcdefghij"])
        for i, p in enumerate(accuracies)
    ]
    result = bootstrap_macro_interval(PairAccuracy(), groups, Bootstrap(2000, by="paradigm", method="percentile"))
    # The bootstrap of the five accuracies, whatever the rows inside them.
    plain = bootstrap_interval(PairAccuracy(), rows(accuracies), Bootstrap(2000, method="percentile"))
    assert (result.low, result.high) == pytest.approx((plain.low, plain.high), abs=0.01)
    bca = bootstrap_macro_interval(PairAccuracy(), groups, Bootstrap(2000, by="paradigm", method="bca"))
    assert bca.low < result.low
    # Items are inside the groups: those are resampled, and the groups stay.
    fixed = bootstrap_macro_interval(PairAccuracy(), groups, Bootstrap(2000, by="item", method="percentile"))
    assert fixed.high - fixed.low < 0.9 * (result.high - result.low)
