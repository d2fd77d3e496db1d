"""Tests between two models over the same rows, and the adjustment of many p values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar
from statsmodels.stats.multitest import multipletests

from acceptability import MCC, PairAccuracy, Pearson
from acceptability.errors import MeasureError, Undefined
from acceptability.stats import benjamini_hochberg, holm, mcnemar, permutation_test, sign_flip_test
from acceptability.types import Units


def rows(items: list[str] | None = None, **columns) -> Units:
    result = {name: np.asarray(values, dtype=float) for name, values in columns.items()}
    n = len(next(iter(result.values())))
    tags = tuple({"item": item} for item in items) if items else ({},) * n
    return Units(tuple(map(str, range(n))), result, tags)


class UndeclaredMean(PairAccuracy):
    """Pair accuracy that does not declare that it is a mean."""

    mean_of = None


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_all_flips_are_enumerated_where_that_is_feasible(alternative: str) -> None:
    gaps = np.array([0.4, -1.0, 2.5, 0.0, 0.7, 2.5])
    theirs = stats.permutation_test(
        (gaps,), np.sum, permutation_type="samples", n_resamples=np.inf, alternative=alternative, vectorized=False
    )
    p, draws = sign_flip_test(gaps, alternative=alternative)
    assert p == pytest.approx(theirs.pvalue, abs=1e-12)
    assert draws is None
    by_hand = [sum(s * g for s, g in zip(signs, gaps, strict=True)) for signs in product((1, -1), repeat=6)]
    far = {
        "two-sided": np.abs(by_hand) >= gaps.sum() - 1e-12,
        "greater": np.array(by_hand) >= gaps.sum() - 1e-12,
        "less": np.array(by_hand) <= gaps.sum() + 1e-12,
    }
    assert p == pytest.approx(far[alternative].mean(), abs=1e-12)


def test_right_and_wrong_answers_give_the_exact_test_of_mcnemar() -> None:
    generator = np.random.default_rng(0)
    first, second = (generator.random(5000) < 0.70).astype(float), (generator.random(5000) < 0.68).astype(float)
    result = permutation_test(PairAccuracy(), rows(correct=first), rows(correct=second))
    assert result.draws is None
    assert result.p == pytest.approx(mcnemar(first, second).p, rel=1e-9)
    assert result.difference == pytest.approx(first.mean() - second.mean())
    assert (result.unit, result.n) == ("row", 5000)


def test_sampled_flips_approach_the_exact_p_and_depend_on_the_seed() -> None:
    gaps = np.random.default_rng(3).normal(0.35, size=30)
    p, draws = sign_flip_test(gaps, draws=20_000, seed=1)
    assert draws == 20_000
    theirs = stats.permutation_test(
        (gaps,), lambda x, axis: x.sum(axis=axis), permutation_type="samples", n_resamples=20_000, rng=2
    )
    assert p == pytest.approx(theirs.pvalue, abs=0.01)
    assert sign_flip_test(gaps, draws=500, seed=1) == sign_flip_test(gaps, draws=500, seed=1)
    assert sign_flip_test(np.full(30, 1.0) + np.arange(30) / 100, draws=99)[0] == 0.01


def test_swapping_rows_gives_what_flipping_signs_gives() -> None:
    generator = np.random.default_rng(5)
    first, second = ((generator.random(12) < share).astype(float) for share in (0.9, 0.4))
    one, two = rows(correct=first), rows(correct=second)
    flipped = permutation_test(PairAccuracy(), one, two)
    swapped = permutation_test(UndeclaredMean(), one, two)
    assert swapped.draws is None
    assert swapped.p == pytest.approx(flipped.p, abs=1e-12)
    drawn = permutation_test(UndeclaredMean(), one, two, draws=4000)
    assert drawn.draws == 4000
    assert drawn.p == pytest.approx(flipped.p, abs=0.03)


def test_clusters_are_swapped_whole() -> None:
    first, second = np.ones(20), np.concatenate([np.zeros(10), np.ones(10)])
    items = ["a"] * 5 + ["b"] * 5 + ["c"] * 10
    for measure in (PairAccuracy(), UndeclaredMean()):
        alone = permutation_test(measure, rows(correct=first), rows(correct=second), draws=2000)
        clustered = permutation_test(
            measure, rows(items, correct=first), rows(items, correct=second), by="item", draws=2000
        )
        assert alone.p < 0.01
        # Two clusters differ: of four flips two are as far.
        assert clustered.p == pytest.approx(0.5)
        assert (clustered.unit, clustered.n) == ("item", 3)


def test_correlations_are_compared_on_one_scale() -> None:
    generator = np.random.default_rng(8)
    rating = generator.normal(size=60)
    good, bad = rating + generator.normal(size=60), generator.normal(size=60)
    test = lambda a, b, **how: permutation_test(  # noqa: E731
        Pearson(), rows(score=a, rating=rating), rows(score=b, rating=rating), draws=800, **how
    )
    plain = test(good, bad, standardise=("score",))
    rescaled = test(1000 * good + 7, bad, standardise=("score",))
    assert plain.p < 0.01
    assert (plain.p, plain.difference) == pytest.approx((rescaled.p, rescaled.difference))
    with pytest.raises(MeasureError, match="no column 'z'"):
        test(good, bad, standardise=("z",))


@pytest.mark.parametrize(("measure", "column"), [(PairAccuracy(), "correct"), (UndeclaredMean(), "correct")])
def test_p_is_uniform_if_nothing_differs(measure, column: str) -> None:
    generator = np.random.default_rng(11)
    ps = []
    for _ in range(200):
        first, second = generator.random(25), generator.random(25)
        ps.append(permutation_test(measure, rows(correct=first), rows(correct=second), draws=99).p)
    assert 0.01 <= np.mean(np.array(ps) <= 0.05) <= 0.10
    assert 0.42 <= np.mean(ps) <= 0.58


def test_invalid_permutation_tests() -> None:
    with pytest.raises(MeasureError, match="different rows"):
        permutation_test(PairAccuracy(), rows(correct=[1]), rows(correct=[1, 0]))
    with pytest.raises(Undefined, match="no rows"):
        permutation_test(PairAccuracy(), rows(correct=[]), rows(correct=[]))
    one = rows(predicted=[1, 0], label=[1, 1])
    with pytest.raises(Undefined, match="undefined for one of the models"):
        permutation_test(MCC(), one, one)
    same = rows(correct=[1, 0, 1])
    assert permutation_test(PairAccuracy(), same, same).p == 1
    single = permutation_test(PairAccuracy(), rows(correct=[1]), rows(correct=[0]))
    assert (single.p, single.difference) == (1.0, 1.0)


@pytest.mark.parametrize("table", [(10, 25, 9, 6), (50, 3, 3, 2), (0, 1, 0, 0), (5, 12, 0, 3), (4, 0, 7, 1)])
def test_mcnemar_is_statsmodels(table: tuple[int, int, int, int]) -> None:
    both, only_first, only_second, neither = table
    first = [1] * (both + only_first) + [0] * (only_second + neither)
    second = [1] * both + [0] * only_first + [1] * only_second + [0] * neither
    result = mcnemar(first, second)
    assert (result.both, result.only_first, result.only_second, result.neither) == table
    grid = [[both, only_first], [only_second, neither]]
    assert result.p == pytest.approx(statsmodels_mcnemar(grid, exact=True).pvalue, abs=1e-12)
    theirs = statsmodels_mcnemar(grid, exact=False, correction=True)
    if only_first != only_second:
        assert (result.chi2, result.chi2_p) == pytest.approx((theirs.statistic, theirs.pvalue), abs=1e-12)
    assert result.difference == pytest.approx((only_first - only_second) / sum(table))
    assert result.difference_low <= result.difference <= result.difference_high


def test_the_effect_sizes_of_mcnemar_by_hand() -> None:
    result = mcnemar([1] * 20 + [0] * 10 + [1] * 70, [0] * 20 + [1] * 10 + [1] * 70)
    assert result.odds_ratio == 2
    share = stats.binomtest(20, 30).proportion_ci()
    assert result.odds_low == pytest.approx(share.low / (1 - share.low), abs=1e-9)
    assert result.odds_high == pytest.approx(share.high / (1 - share.high), abs=1e-9)
    half = 1.959963984540054 * np.sqrt(0.3 - 0.01) / 10
    assert (result.difference_low, result.difference_high) == pytest.approx((0.1 - half, 0.1 + half), abs=1e-9)


def test_degenerate_tables() -> None:
    same = mcnemar([1, 0], [1, 0])
    assert (same.p, same.chi2, same.odds_ratio, same.odds_low) == (1.0, None, None, None)
    assert (same.difference_low, same.difference_high) == (0, 0)
    one_sided = mcnemar([1, 1, 1], [0, 0, 0])
    assert (one_sided.odds_ratio, one_sided.odds_high) == (None, None)
    assert one_sided.odds_low == pytest.approx(0.025 ** (1 / 3) / (1 - 0.025 ** (1 / 3)))
    assert mcnemar([1, 0], [0, 1]).chi2 == 0
    with pytest.raises(MeasureError, match="a row has 0.5"):
        mcnemar([0.5], [1])
    with pytest.raises(MeasureError, match="nan"):
        mcnemar([float("nan")], [1])
    with pytest.raises(Undefined):
        mcnemar([], [])


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
def test_corrections_are_statsmodels(ours, theirs: str) -> None:
    generator = np.random.default_rng(0)
    for n in (1, 2, 7, 100):
        ps = generator.random(n) ** 3
        assert ours(ps.tolist()) == pytest.approx(multipletests(ps, method=theirs)[1].tolist(), abs=1e-12)
    tied = [0.02, 0.02, 0.5, 0.0, 1.0]
    assert ours(tied) == pytest.approx(multipletests(tied, method=theirs)[1].tolist(), abs=1e-12)
    holes = ours([0.02, None, 0.3, float("nan")])
    assert (holes[1], holes[3]) == (None, None)
    assert [holes[0], holes[2]] == ours([0.02, 0.3])
    assert ours([]) == []
    assert ours([None]) == [None]
    with pytest.raises(MeasureError, match="no p value"):
        ours([1.5])
