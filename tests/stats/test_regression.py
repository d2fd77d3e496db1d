from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.linear_model import LogisticRegression

from acceptability.errors import MeasureError, MissingExtra, Undefined
from acceptability.stats import dummies, exact_power, linear_regression, logistic_regression, tukey_hsd, two_way_anova
from acceptability.stats.proportions import critical_count, simulate_power

GENERATOR = np.random.default_rng(0)
LENGTH = GENERATOR.normal(size=300)
RARE = GENERATOR.normal(size=300)
RIGHT = (GENERATOR.random(300) < 1 / (1 + np.exp(-0.5 - LENGTH))).astype(float)


def test_a_two_by_two_table_by_hand() -> None:
    """With one predictor of 0 and 1 the odds ratio is that of the table, and its error Woolf's."""
    cells = {(0, 0): 20, (0, 1): 10, (1, 0): 8, (1, 1): 22}
    rows = [cell for cell, n in cells.items() for _ in range(n)]
    result = logistic_regression([y for _, y in rows], {"x": [x for x, _ in rows]})
    assert result["x"].effect == pytest.approx((22 / 8) / (10 / 20), abs=1e-9)
    se = np.sqrt(1 / 20 + 1 / 10 + 1 / 8 + 1 / 22)
    assert result["x"].se == pytest.approx(se, abs=1e-9)
    assert result["x"].statistic == pytest.approx(np.log(5.5) / se, abs=1e-9)
    assert result["x"].p == pytest.approx(2 * stats.norm.sf(np.log(5.5) / se), abs=1e-9)
    assert result["x"].effect_low == pytest.approx(5.5 * np.exp(-1.959963984540054 * se), abs=1e-8)
    assert result["(constant)"].estimate == pytest.approx(np.log(10 / 20), abs=1e-9)


def test_logistic_regression_is_scikit_learns_and_statsmodels() -> None:
    result = logistic_regression(RIGHT, {"length": LENGTH, "rare": RARE})
    table = np.column_stack([LENGTH, RARE])
    fitted = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(table, RIGHT)
    assert [coefficient.estimate for coefficient in result.coefficients] == pytest.approx(
        [*fitted.intercept_, *fitted.coef_[0]], abs=1e-5
    )
    theirs = sm.GLM(RIGHT, sm.add_constant(table), family=sm.families.Binomial()).fit(tol=1e-14)
    assert [coefficient.estimate for coefficient in result.coefficients] == pytest.approx(
        theirs.params.tolist(), abs=1e-9
    )
    assert [coefficient.se for coefficient in result.coefficients] == pytest.approx(theirs.bse.tolist(), abs=1e-9)
    assert [coefficient.p for coefficient in result.coefficients] == pytest.approx(theirs.pvalues.tolist(), abs=1e-9)
    assert result.log_likelihood == pytest.approx(theirs.llf, abs=1e-9)
    assert result.pseudo_r2 == pytest.approx(1 - theirs.llf / theirs.llnull, abs=1e-9)


def test_the_scale_of_a_predictor_does_not_matter() -> None:
    plain = logistic_regression(RIGHT, {"length": LENGTH})["length"]
    scaled = logistic_regression(RIGHT, {"length": 1e6 + 1e4 * LENGTH})["length"]
    assert (scaled.estimate * 1e4, scaled.p) == pytest.approx((plain.estimate, plain.p), rel=1e-6)


@pytest.mark.parametrize(
    ("outcome", "x"),
    [
        ([0, 0, 1, 1], [1, 2, 3, 4]),
        ([0, 0, 1, 1, 0, 1], [1, 2, 4, 5, 3, 3]),
        ([0, 1, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1]),
    ],
    ids=["complete", "but for ties", "a value that is always right"],
)
def test_separation_is_refused(outcome: list[int], x: list[int]) -> None:
    with pytest.raises(Undefined, match="x separate the outcomes"):
        logistic_regression(outcome, {"x": x})


def test_undefined_regressions() -> None:
    with pytest.raises(Undefined, match="is 1 in every row"):
        logistic_regression([1, 1, 1], {"x": [1, 2, 4]})
    with pytest.raises(MeasureError, match="needs 0 and 1"):
        logistic_regression([0, 1, 2], {"x": [1, 2, 4]})
    with pytest.raises(Undefined, match="one is constant"):
        logistic_regression([0, 1, 1], {"x": [1, 1, 1]})
    with pytest.raises(Undefined, match="cannot be estimated from 1 rows"):
        linear_regression([0], {"x": [1]})
    with pytest.raises(Undefined, match="no degrees of freedom"):
        linear_regression([0, 1], {"x": [1, 2]})
    with pytest.raises(Undefined, match="exactly"):
        linear_regression([1, 2, 3], {"x": [1, 2, 3]})
    with pytest.raises(MeasureError, match="nan at index 0"):
        linear_regression([float("nan"), 1, 2], {"x": [1, 2, 3]})
    with pytest.raises(KeyError, match="no coefficient 'y'"):
        linear_regression([1, 2, 2], {"x": [1, 2, 3]})["y"]


def test_linear_regression_is_scipys() -> None:
    result = linear_regression(RARE, {"length": LENGTH})
    theirs = stats.linregress(LENGTH, RARE)
    assert result["length"].estimate == pytest.approx(theirs.slope, abs=1e-9)
    assert result["length"].se == pytest.approx(theirs.stderr, abs=1e-9)
    assert result["length"].p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert result["(constant)"].se == pytest.approx(theirs.intercept_stderr, abs=1e-9)
    # With one predictor its partial eta squared is the whole R squared.
    assert result["length"].effect == pytest.approx(result.r2, abs=1e-12) == pytest.approx(theirs.rvalue**2, abs=1e-12)
    assert result.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert linear_regression([1, 2, 4], {}).f is None


@pytest.mark.parametrize(
    "call",
    [
        lambda: linear_regression([1, 2, 4], {"x": [1, 2, 3]}),
        lambda: logistic_regression([1, 0, 1, 0], {"x": [1, 2, 2, 1]}),
        lambda: two_way_anova([1, 2, 3, 5, 4], {"a": "xxyyy", "b": "pqpqp"}),
        lambda: tukey_hsd([1, 2, 4, 3], "aabb"),
    ],
    ids=["linear", "logistic", "anova", "tukey"],
)
def test_a_missing_extra_is_named(call, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    with pytest.raises(MissingExtra, match=r"needs statsmodels. Install with: pip install 'acceptability\[stats\]'"):
        call()


def unequal_cells() -> pandas.DataFrame:
    generator = np.random.default_rng(3)
    suite, model = generator.choice(list("abc"), p=[0.5, 0.3, 0.2], size=120), generator.choice(list("xy"), size=120)
    y = generator.normal(size=120) + (suite == "a") + 0.5 * ((suite == "b") & (model == "x"))
    return pandas.DataFrame({"y": y, "suite": suite, "model": model})


def residual_ss(y: np.ndarray, columns: list[np.ndarray]) -> float:
    table = np.column_stack([np.ones(len(y)), *columns])
    return float(((y - table @ np.linalg.lstsq(table, y, rcond=None)[0]) ** 2).sum())


@pytest.mark.parametrize("sums_of_squares", ["II", "III"])
@pytest.mark.parametrize("interaction", [True, False])
def test_anova_compares_nested_least_squares_fits(sums_of_squares: str, interaction: bool) -> None:
    data = unequal_cells()
    y = data.y.to_numpy()
    suite = np.array([np.eye(3)[["a", "b", "c"].index(name)] for name in data.suite])
    # Contrasts that sum to 0: the last level is minus one in each.
    blocks = {
        "suite": suite[:, :2] - suite[:, 2:],
        "model": np.where(data.model == "x", 1.0, -1.0)[:, None],
    }
    if interaction:
        blocks["suite:model"] = blocks["suite"] * blocks["model"]
    result = two_way_anova(
        data.y, {"suite": data.suite, "model": data.model}, sums_of_squares=sums_of_squares, interaction=interaction
    )
    whole = residual_ss(y, list(blocks.values()))
    assert result.residual_ss == pytest.approx(whole, rel=1e-9)
    assert result.residual_df == 120 - 1 - sum(block.shape[1] for block in blocks.values())
    assert [effect.name for effect in result.effects] == list(blocks)
    for effect in result.effects:
        # Type II leaves the interaction out of the models in which a factor is tested.
        others = [
            block
            for name, block in blocks.items()
            if name != effect.name and (sums_of_squares == "III" or ":" not in name)
        ]
        ss = residual_ss(y, others) - residual_ss(y, [*others, blocks[effect.name]])
        df = blocks[effect.name].shape[1]
        f = ss / df / (whole / result.residual_df)
        assert (effect.ss, effect.df, effect.f) == pytest.approx((ss, df, f), rel=1e-9)
        assert effect.p == pytest.approx(stats.f.sf(f, df, result.residual_df), rel=1e-9)
        assert effect.partial_eta_squared == pytest.approx(ss / (ss + whole), rel=1e-9)


def test_park_et_al_have_2442_degrees_of_freedom() -> None:
    generator = np.random.default_rng(1)
    suite = generator.choice(["I", "II", "III"], size=1224).tolist() * 2
    result = two_way_anova(generator.normal(size=2448), {"suite": suite, "model": ["base"] * 1224 + ["large"] * 1224})
    assert result.residual_df == 2442


def test_equal_cells_give_one_answer() -> None:
    y = np.random.default_rng(0).normal(size=24)
    factors = {"a": list("xy") * 12, "b": list("pppqqqrrr"[:6]) * 4}
    two, three = (two_way_anova(y, factors, sums_of_squares=kind).effects for kind in ("II", "III"))
    assert [effect.ss for effect in two[2:]] == pytest.approx([effect.ss for effect in three[2:]])
    balanced = {"a": list("xy") * 12, "b": list("ppqq") * 6}
    two, three = (two_way_anova(y, balanced, sums_of_squares=kind).effects for kind in ("II", "III"))
    assert [effect.ss for effect in two] == pytest.approx([effect.ss for effect in three], abs=1e-12)


def test_degenerate_anova() -> None:
    with pytest.raises(Undefined, match="one level only, 'x'"):
        two_way_anova([1, 2, 3], {"a": "xxx", "b": "pqp"})
    with pytest.raises(Undefined, match="no row has a=y and b=q"):
        two_way_anova([1, 2, 3, 4], {"a": "xxyy", "b": "pqpp"})
    with pytest.raises(Undefined, match="nothing varies"):
        two_way_anova([1, 2, 3, 4], {"a": "xxyy", "b": "pqpq"})
    with pytest.raises(Undefined, match="effects of a and b cannot be separated"):
        two_way_anova([1, 2, 3, 5, 4, 7], {"a": "xxyyzz", "b": "ppqqqq"}, interaction=False)
    with pytest.raises(MeasureError, match="2 labels"):
        two_way_anova([1, 2, 3], {"a": "xy", "b": "pqp"})
    with pytest.raises(MeasureError, match="two factors"):
        two_way_anova([1, 2, 3], {"a": "xyx"})


def test_tukey_is_scipys() -> None:
    data = unequal_cells()
    samples = [data.y[data.suite == name].to_numpy() for name in "abc"]
    theirs = stats.tukey_hsd(*samples)
    interval = theirs.confidence_interval(0.9)
    differences = tukey_hsd(data.y, data.suite.tolist(), level=0.9)
    assert [(row.first, row.second) for row in differences] == [("a", "b"), ("a", "c"), ("b", "c")]
    for row, (i, j) in zip(differences, [(0, 1), (0, 2), (1, 2)], strict=True):
        assert row.difference == pytest.approx(samples[i].mean() - samples[j].mean(), abs=1e-9)
        assert row.p == pytest.approx(theirs.pvalue[i, j], rel=1e-6)
        assert (row.low, row.high) == pytest.approx((interval.low[i, j], interval.high[i, j]), rel=1e-6)
    within = sum(((sample - sample.mean()) ** 2).sum() for sample in samples)
    assert differences[0].d == pytest.approx(differences[0].difference / np.sqrt(within / 117), abs=1e-9)


def test_degenerate_tukey() -> None:
    with pytest.raises(Undefined, match="there are 1 groups"):
        tukey_hsd([1, 2, 3], "aaa")
    with pytest.raises(Undefined, match="nothing varies"):
        tukey_hsd([1, 1, 3, 3], "aabb")


def test_dummies_leave_the_first_level_away() -> None:
    result = dummies("period", ["2", "1", "3"])
    assert {name: column.tolist() for name, column in result.items()} == {"period=2": [1, 0, 0], "period=3": [0, 0, 1]}


@pytest.mark.parametrize(("n", "effect"), [(10, 0.9), (50, 0.6), (400, 0.6), (3, 0.9), (1, 1.0)])
def test_exact_power_is_what_simulation_approaches(n: int, effect: float) -> None:
    assert simulate_power(n, effect) == pytest.approx(exact_power(n, effect), abs=0.015)
    rejected = [hits for hits in range(n + 1) if stats.binomtest(hits, n).pvalue <= 0.05]
    assert exact_power(n, effect) == pytest.approx(stats.binom(n, effect).pmf(rejected).sum(), abs=1e-9)
    assert min((hits for hits in rejected if hits > n / 2), default=n + 1) == critical_count(n)


def test_power_of_nothing() -> None:
    with pytest.raises(MeasureError, match="at least one pair"):
        exact_power(0, 0.5)
