from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest
import statsmodels.api as sm
from scipy import stats
from sklearn.linear_model import LogisticRegression
from statsmodels.formula.api import ols
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from acceptability.errors import MeasureError, MissingExtra, Undefined
from acceptability.stats import dummies, exact_power, linear_regression, logistic_regression, tukey_hsd, two_way_anova
from acceptability.stats.power import critical, power

GENERATOR = np.random.default_rng(0)
LENGTH = GENERATOR.normal(size=300)
RARE = GENERATOR.normal(size=300)
RIGHT = (GENERATOR.random(300) < 1 / (1 + np.exp(-0.5 - LENGTH))).astype(float)


def test_a_two_by_two_table_by_hand() -> None:
    """With one predictor of 0 and 1 the odds ratio is that of the table, and its error Woolf's."""
    cells = {(0, 0): 20, (0, 1): 10, (1, 0): 8, (1, 1): 22}
    rows = [cell for cell, n in cells.items() for _ in range(n)]
    found = logistic_regression([y for _, y in rows], {"x": [x for x, _ in rows]})
    assert found["x"].effect == pytest.approx((22 / 8) / (10 / 20), abs=1e-9)
    se = np.sqrt(1 / 20 + 1 / 10 + 1 / 8 + 1 / 22)
    assert found["x"].se == pytest.approx(se, abs=1e-9)
    assert found["x"].statistic == pytest.approx(np.log(5.5) / se, abs=1e-9)
    assert found["x"].p == pytest.approx(2 * stats.norm.sf(np.log(5.5) / se), abs=1e-9)
    assert found["x"].effect_low == pytest.approx(5.5 * np.exp(-1.959963984540054 * se), abs=1e-8)
    assert found["(constant)"].estimate == pytest.approx(np.log(10 / 20), abs=1e-9)


def test_logistic_regression_is_scikit_learns_and_statsmodels() -> None:
    found = logistic_regression(RIGHT, {"length": LENGTH, "rare": RARE})
    table = np.column_stack([LENGTH, RARE])
    learned = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(table, RIGHT)
    assert [each.estimate for each in found.coefficients] == pytest.approx(
        [*learned.intercept_, *learned.coef_[0]], abs=1e-5
    )
    theirs = sm.GLM(RIGHT, sm.add_constant(table), family=sm.families.Binomial()).fit(tol=1e-14)
    assert [each.estimate for each in found.coefficients] == pytest.approx(theirs.params.tolist(), abs=1e-9)
    assert [each.se for each in found.coefficients] == pytest.approx(theirs.bse.tolist(), abs=1e-9)
    assert [each.p for each in found.coefficients] == pytest.approx(theirs.pvalues.tolist(), abs=1e-9)
    assert found.log_likelihood == pytest.approx(theirs.llf, abs=1e-9)
    assert found.pseudo_r2 == pytest.approx(1 - theirs.llf / theirs.llnull, abs=1e-9)


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
def test_separation_is_said(outcome: list[int], x: list[int]) -> None:
    with pytest.raises(Undefined, match="x separate the outcomes"):
        logistic_regression(outcome, {"x": x})


def test_what_has_no_regression() -> None:
    with pytest.raises(Undefined, match="is 1 in every row"):
        logistic_regression([1, 1, 1], {"x": [1, 2, 4]})
    with pytest.raises(MeasureError, match="needs 0 and 1"):
        logistic_regression([0, 1, 2], {"x": [1, 2, 4]})
    with pytest.raises(Undefined, match="one is constant"):
        logistic_regression([0, 1, 1], {"x": [1, 1, 1]})
    with pytest.raises(Undefined, match="cannot be told from 1 rows"):
        linear_regression([0], {"x": [1]})
    with pytest.raises(Undefined, match="nothing to tell the error"):
        linear_regression([0, 1], {"x": [1, 2]})
    with pytest.raises(Undefined, match="exactly"):
        linear_regression([1, 2, 3], {"x": [1, 2, 3]})
    with pytest.raises(MeasureError, match="nan at place 0"):
        linear_regression([float("nan"), 1, 2], {"x": [1, 2, 3]})
    with pytest.raises(KeyError, match="no coefficient 'y'"):
        linear_regression([1, 2, 2], {"x": [1, 2, 3]})["y"]


def test_linear_regression_is_scipys() -> None:
    found = linear_regression(RARE, {"length": LENGTH})
    theirs = stats.linregress(LENGTH, RARE)
    assert found["length"].estimate == pytest.approx(theirs.slope, abs=1e-9)
    assert found["length"].se == pytest.approx(theirs.stderr, abs=1e-9)
    assert found["length"].p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert found["(constant)"].se == pytest.approx(theirs.intercept_stderr, abs=1e-9)
    # With one predictor its partial eta squared is the whole R squared.
    assert found["length"].effect == pytest.approx(found.r2, abs=1e-12) == pytest.approx(theirs.rvalue**2, abs=1e-12)
    assert found.p == pytest.approx(theirs.pvalue, abs=1e-9)
    assert linear_regression([1, 2, 4], {}).f is None


def test_a_missing_extra(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "statsmodels.api", None)
    with pytest.raises(MissingExtra, match=r"acceptability\[stats\]"):
        linear_regression([1, 2, 4], {"x": [1, 2, 3]})


def unequal_cells() -> pandas.DataFrame:
    generator = np.random.default_rng(3)
    suite, model = generator.choice(list("abc"), p=[0.5, 0.3, 0.2], size=120), generator.choice(list("xy"), size=120)
    y = generator.normal(size=120) + (suite == "a") + 0.5 * ((suite == "b") & (model == "x"))
    return pandas.DataFrame({"y": y, "suite": suite, "model": model})


@pytest.mark.parametrize(("kind", "number"), [("II", 2), ("III", 3)])
@pytest.mark.parametrize("interaction", [True, False])
def test_anova_is_statsmodels(kind: str, number: int, interaction: bool) -> None:
    data = unequal_cells()
    between = "*" if interaction else "+"
    theirs = sm.stats.anova_lm(ols(f"y ~ C(suite, Sum){between}C(model, Sum)", data).fit(), typ=number)
    found = two_way_anova(
        data.y, {"suite": data.suite, "model": data.model}, sums_of_squares=kind, interaction=interaction
    )
    effects = [row for row in theirs.index if row not in ("Intercept", "Residual")]
    assert len(found.effects) == len(effects)
    for ours, name in zip(found.effects, effects, strict=True):
        row = theirs.loc[name]
        assert (ours.ss, ours.df, ours.f, ours.p) == pytest.approx(
            (row["sum_sq"], row["df"], row["F"], row["PR(>F)"]), abs=1e-9
        )
        residual = theirs.loc["Residual", "sum_sq"]
        assert ours.partial_eta_squared == pytest.approx(row["sum_sq"] / (row["sum_sq"] + residual), abs=1e-9)
    assert found.residual_df == theirs.loc["Residual", "df"]


def test_park_et_al_have_2442_degrees_of_freedom() -> None:
    generator = np.random.default_rng(1)
    suite = generator.choice(["I", "II", "III"], size=1224).tolist() * 2
    found = two_way_anova(generator.normal(size=2448), {"suite": suite, "model": ["base"] * 1224 + ["large"] * 1224})
    assert found.residual_df == 2442


def test_equal_cells_give_one_answer() -> None:
    y = np.random.default_rng(0).normal(size=24)
    factors = {"a": list("xy") * 12, "b": list("pppqqqrrr"[:6]) * 4}
    two, three = (two_way_anova(y, factors, sums_of_squares=kind).effects for kind in ("II", "III"))
    assert [each.ss for each in two[2:]] == pytest.approx([each.ss for each in three[2:]])
    balanced = {"a": list("xy") * 12, "b": list("ppqq") * 6}
    two, three = (two_way_anova(y, balanced, sums_of_squares=kind).effects for kind in ("II", "III"))
    assert [each.ss for each in two] == pytest.approx([each.ss for each in three], abs=1e-12)


def test_degenerate_anova() -> None:
    with pytest.raises(Undefined, match="one level only, 'x'"):
        two_way_anova([1, 2, 3], {"a": "xxx", "b": "pqp"})
    with pytest.raises(Undefined, match="no row has a=y and b=q"):
        two_way_anova([1, 2, 3, 4], {"a": "xxyy", "b": "pqpp"})
    with pytest.raises(Undefined, match="nothing varies"):
        two_way_anova([1, 2, 3, 4], {"a": "xxyy", "b": "pqpq"})
    with pytest.raises(MeasureError, match="2 labels"):
        two_way_anova([1, 2, 3], {"a": "xy", "b": "pqp"})
    with pytest.raises(MeasureError, match="two factors"):
        two_way_anova([1, 2, 3], {"a": "xyx"})


def test_tukey_is_statsmodels() -> None:
    data = unequal_cells()
    theirs = pairwise_tukeyhsd(data.y.to_numpy(), data.suite.to_numpy())
    found = tukey_hsd(data.y, data.suite.tolist())
    assert [(each.first, each.second) for each in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    # They subtract the first from the second.
    assert [-each.difference for each in found] == pytest.approx(theirs.meandiffs.tolist(), abs=1e-9)
    assert [each.p for each in found] == pytest.approx(theirs.pvalues.tolist(), abs=1e-5)
    assert [(-each.high, -each.low) for each in found] == pytest.approx(
        [pytest.approx(tuple(each), abs=1e-4) for each in theirs.confint]
    )
    within = sum(((part - part.mean()) ** 2).sum() for _, part in data.groupby("suite").y)
    assert found[0].d == pytest.approx(found[0].difference / np.sqrt(within / 117), abs=1e-9)


def test_degenerate_tukey() -> None:
    with pytest.raises(Undefined, match="there are 1 groups"):
        tukey_hsd([1, 2, 3], "aaa")
    with pytest.raises(Undefined, match="nothing varies"):
        tukey_hsd([1, 1, 3, 3], "aabb")


def test_dummies_leave_the_first_level_away() -> None:
    found = dummies("period", ["2", "1", "3"])
    assert {name: each.tolist() for name, each in found.items()} == {"period=2": [1, 0, 0], "period=3": [0, 0, 1]}


@pytest.mark.parametrize(("n", "effect"), [(10, 0.9), (50, 0.6), (400, 0.6), (3, 0.9), (1, 1.0)])
def test_exact_power_is_what_simulation_approaches(n: int, effect: float) -> None:
    assert power(n, effect) == pytest.approx(exact_power(n, effect), abs=0.015)
    rejected = [hits for hits in range(n + 1) if stats.binomtest(hits, n).pvalue <= 0.05]
    assert exact_power(n, effect) == pytest.approx(stats.binom(n, effect).pmf(rejected).sum(), abs=1e-9)
    assert min((hits for hits in rejected if hits > n / 2), default=n + 1) == critical(n)


def test_power_of_nothing() -> None:
    with pytest.raises(MeasureError, match="at least one pair"):
        exact_power(0, 0.5)
