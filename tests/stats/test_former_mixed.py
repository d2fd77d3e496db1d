"""The former functions for mixed models against lme4's published output and other ways to compute a likelihood."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest
import statsmodels.formula.api as smf
from scipy import integrate, optimize, special
from scipy.stats import multivariate_normal

import lme4_data
from acceptability.errors import MeasureError, Undefined
from acceptability.stats import dummies, logistic_regression, mixed_linear, mixed_logistic

pytestmark = pytest.mark.filterwarnings("ignore:acceptability.stats.mixed_:DeprecationWarning")


def test_penicillin_crossed_by_reml() -> None:
    """lme4's lmer(diameter ~ (1|plate) + (1|sample)), to its printed digits."""
    diameter, plate, kind = lme4_data.penicillin()
    result = mixed_linear(diameter, {}, {"plate": plate, "sample": kind})
    assert result.criterion == pytest.approx(330.86, abs=0.005)
    assert [intercept.sd**2 for intercept in result.random_intercepts] == pytest.approx([0.7169, 3.7309], abs=5e-5)
    assert [intercept.sd for intercept in result.random_intercepts] == pytest.approx([0.8467, 1.9316], abs=5e-5)
    assert result.residual_sd == pytest.approx(0.5499, abs=5e-5)
    constant = result["(constant)"]
    assert (constant.estimate, constant.se) == pytest.approx((22.9722, 0.8086), abs=5e-5)
    assert constant.statistic == pytest.approx(28.41, abs=0.005)
    assert [intercept.groups for intercept in result.random_intercepts] == [24, 6]


def test_penicillin_by_maximum_likelihood() -> None:
    """The criterion that lme4 and MixedModels.jl print: 332.1883."""
    diameter, plate, kind = lme4_data.penicillin()
    result = mixed_linear(diameter, {}, {"plate": plate, "sample": kind}, reml=False)
    assert result.criterion == pytest.approx(332.1883, abs=5e-5)
    assert [intercept.sd for intercept in result.random_intercepts] == pytest.approx([0.8456, 1.7706], abs=5e-5)
    assert result["(constant)"].se == pytest.approx(0.7446, abs=5e-5)


def test_sleepstudy_by_reml() -> None:
    """lme4's lmer(Reaction ~ Days + (1|Subject)), to its printed digits."""
    reaction, days, person = lme4_data.sleepstudy()
    result = mixed_linear(reaction, {"days": days}, {"person": person})
    assert result.criterion == pytest.approx(1786.5, abs=0.05)
    assert result.random_intercepts[0].sd ** 2 == pytest.approx(1378.2, abs=0.05)
    assert result.residual_sd**2 == pytest.approx(960.5, abs=0.05)
    assert (result["(constant)"].estimate, result["(constant)"].se) == pytest.approx((251.4051, 9.7467), abs=5e-5)
    assert (result["days"].estimate, result["days"].se) == pytest.approx((10.4673, 0.8042), abs=5e-5)
    assert result["days"].statistic == pytest.approx(13.02, abs=0.005)
    # Balanced data: the spreads follow from the analysis of variance by hand.
    table = np.reshape(reaction, (18, 10))
    slope = np.polyfit(np.arange(10), table.mean(axis=0), 1)[0]
    flat = table - slope * np.arange(10)
    within = ((flat - flat.mean(axis=1, keepdims=True)) ** 2).sum() / (18 * 9 - 1)
    between = 10 * flat.mean(axis=1).var(ddof=1)
    assert result.residual_sd**2 == pytest.approx(within, rel=1e-6)
    assert result.random_intercepts[0].sd ** 2 == pytest.approx((between - within) / 10, rel=1e-6)


def test_cbpp_by_laplace() -> None:
    """lme4's glmer(cbind(incidence, size − incidence) ~ period + (1|herd)): coefficients to .001, errors to .006."""
    ill, period, herd = lme4_data.cbpp()
    result = mixed_logistic(ill, dummies("period", period), {"herd": herd})
    assert [coefficient.estimate for coefficient in result.coefficients] == pytest.approx(
        [-1.3983, -0.9919, -1.1282, -1.5797], abs=0.001
    )
    assert [coefficient.se for coefficient in result.coefficients] == pytest.approx(
        [0.2312, 0.3032, 0.3228, 0.4220], abs=0.006
    )
    assert result.random_intercepts[0].sd == pytest.approx(0.6421, abs=0.001)
    # One row an animal instead of one a herd and period: lme4 prints 555.0 for these.
    assert result.criterion == pytest.approx(555.0, abs=0.05)
    assert result["period=2"].effect == pytest.approx(np.exp(result["period=2"].estimate))


def test_laplace_is_what_each_herd_gives_by_itself() -> None:
    """Herds are independent, so the criterion is a sum of one-dimensional approximations."""
    ill, period, herd = (np.array(values) for values in lme4_data.cbpp())
    columns = dummies("period", period)
    result = mixed_logistic(ill, columns, {"herd": herd})
    line = sum(
        coefficient.estimate * (columns.get(coefficient.name, 1.0)) for coefficient in result.coefficients
    ) + np.zeros(len(ill))

    def parts(sd: float, shift: float) -> float:
        total = 0.0
        for name in np.unique(herd):
            here, there = ill[herd == name], line[herd == name] + shift

            def bad(u: float, here=here, there=there) -> float:
                return float((np.logaddexp(0, there + sd * u) - here * (there + sd * u)).sum() + u * u / 2)

            mode = optimize.minimize_scalar(bad, bracket=(-1, 1), tol=1e-12).x
            share = special.expit(there + sd * mode)
            total += 2 * bad(mode) + np.log(1 + sd**2 * (share * (1 - share)).sum())
        return total

    sd = result.random_intercepts[0].sd
    least = parts(sd, 0.0)
    assert result.criterion == pytest.approx(least, abs=1e-7)
    for other in ((sd + 0.01, 0.0), (sd - 0.01, 0.0), (sd, 0.01), (sd, -0.01)):
        assert parts(*other) > least


def test_laplace_is_near_the_integral_itself() -> None:
    ill, period, herd = (np.array(values) for values in lme4_data.cbpp())
    columns = dummies("period", period)
    table = np.column_stack([np.ones(len(ill)), *columns.values()])

    def criterion(at: np.ndarray) -> float:
        nodes, weights = special.roots_hermitenorm(40)
        line = (table @ at[1:])[:, None] + at[0] * nodes
        logs = ill[:, None] * line - np.logaddexp(0, line)
        parts = [special.logsumexp(logs[herd == name].sum(axis=0), b=weights) for name in np.unique(herd)]
        return -2 * (sum(parts) - len(parts) * np.log(weights.sum()))

    result = mixed_logistic(ill, columns, {"herd": herd})
    start = np.array([result.random_intercepts[0].sd, *(coefficient.estimate for coefficient in result.coefficients)])
    exact = optimize.minimize(criterion, start, method="BFGS").x
    assert start.tolist() == pytest.approx(exact.tolist(), abs=0.01)


def crossed(binary: bool) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
    generator = np.random.default_rng(12)
    item, kind = generator.integers(0, 15, size=260), generator.integers(0, 8, size=260)
    x = generator.normal(size=260)
    line = 0.3 + 0.8 * x + generator.normal(0, 0.9, size=15)[item] + generator.normal(0, 0.6, size=8)[kind]
    y = generator.random(260) < special.expit(line) if binary else line + generator.normal(0, 0.7, size=260)
    return y.astype(float), x, [f"i{i}" for i in item], [f"t{i}" for i in kind]


@pytest.mark.parametrize("reml", [True, False])
def test_a_crossed_linear_model_is_statsmodels(reml: bool) -> None:
    y, x, item, kind = crossed(binary=False)
    result = mixed_linear(y, {"x": x}, {"item": item, "type": kind}, reml=reml)
    data = pandas.DataFrame({"y": y, "x": x, "item": item, "type": kind, "one": 1})
    parts = {"item": "0 + C(item)", "type": "0 + C(type)"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = smf.mixedlm("y ~ x", data, groups="one", vc_formula=parts, re_formula="0").fit(reml=reml)
    # Their search stops earlier than ours: tolerance 1e-3.
    assert result["x"].estimate == pytest.approx(fit.fe_params["x"], abs=1e-3)
    assert result["x"].se == pytest.approx(fit.bse_fe["x"], abs=1e-3)
    assert [intercept.sd**2 for intercept in result.random_intercepts] == pytest.approx(fit.vcomp.tolist(), abs=5e-3)
    assert result.residual_sd**2 == pytest.approx(fit.scale, abs=1e-3)
    assert result.criterion <= -2 * fit.llf + 1e-6
    assert result.criterion == pytest.approx(-2 * fit.llf, abs=1e-2)


def test_a_crossed_linear_model_has_the_normal_likelihood() -> None:
    y, x, item, kind = crossed(binary=False)
    result = mixed_linear(y, {"x": x}, {"item": item, "type": kind}, reml=False)

    def criterion(sds: list[float], residual: float, constant: float, slope: float) -> float:
        same = [np.equal.outer(np.array(part), np.array(part)) for part in (item, kind)]
        cover = sum(sd**2 * is_same for sd, is_same in zip(sds, same, strict=True)) + residual**2 * np.eye(len(y))
        return -2 * multivariate_normal(constant + slope * x, cover).logpdf(y)

    at = (
        [intercept.sd for intercept in result.random_intercepts],
        result.residual_sd,
        result["(constant)"].estimate,
        result["x"].estimate,
    )
    assert result.criterion == pytest.approx(criterion(*at), abs=1e-6)
    for change in ((0.02, 0, 0, 0), (0, 0.02, 0, 0), (0, 0, 0.02, 0), (0, 0, 0, 0.02)):
        for sign in (1, -1):
            a, b, c, d = (sign * step for step in change)
            assert criterion([at[0][0] + a, at[0][1] - a / 2], at[1] + b, at[2] + c, at[3] + d) > result.criterion


def test_a_crossed_logistic_model_has_the_laplace_criterion() -> None:
    """The same approximation, with the mode found by SciPy and the determinant taken whole."""
    y, x, item, kind = crossed(binary=True)
    result = mixed_logistic(y, {"x": x}, {"item": item, "type": kind})
    groups = np.column_stack([*(np.array(item) == level for level in sorted(set(item)))]).astype(float)
    types = np.column_stack([*(np.array(kind) == level for level in sorted(set(kind)))]).astype(float)

    def criterion(sds: list[float], constant: float, slope: float) -> float:
        table = np.column_stack([sds[0] * groups, sds[1] * types])

        def bad(u: np.ndarray) -> float:
            line = constant + slope * x + table @ u
            return float((np.logaddexp(0, line) - y * line).sum() + u @ u / 2)

        def slope_of(u: np.ndarray) -> np.ndarray:
            return table.T @ (special.expit(constant + slope * x + table @ u) - y) + u

        mode = optimize.minimize(bad, np.zeros(table.shape[1]), jac=slope_of, method="BFGS", options={"gtol": 1e-9}).x
        share = special.expit(constant + slope * x + table @ mode)
        bend = table.T @ (table * (share * (1 - share))[:, None]) + np.eye(table.shape[1])
        return 2 * bad(mode) + np.linalg.slogdet(bend)[1]

    at = [intercept.sd for intercept in result.random_intercepts], result["(constant)"].estimate, result["x"].estimate
    assert result.criterion == pytest.approx(criterion(*at), abs=1e-6)
    for a, b, c, d in np.vstack([np.eye(4), -np.eye(4)]) * 0.02:
        assert criterion([at[0][0] + a, at[0][1] + b], at[1] + c, at[2] + d) > result.criterion


def test_groups_that_do_not_differ_leave_a_plain_regression() -> None:
    generator = np.random.default_rng(5)
    x, item = np.tile(generator.normal(size=50), 2), [str(i) for i in range(50)] * 2
    right = np.concatenate([generator.random(50) < 0.6, np.zeros(50)])
    right[50:] = 1 - right[:50]
    result = mixed_logistic(right, {"x": x}, {"item": item})
    plain = logistic_regression(right, {"x": x})
    assert result.random_intercepts[0].sd == pytest.approx(0, abs=1e-4)
    assert result["x"].estimate == pytest.approx(plain["x"].estimate, abs=1e-5)
    assert result["x"].se == pytest.approx(plain["x"].se, abs=1e-4)


def test_the_share_of_variance_that_is_explained() -> None:
    y, x, item, kind = crossed(binary=False)
    result = mixed_linear(y, {"x": x}, {"item": item, "type": kind})
    fixed = (result["x"].estimate * x).var()
    between = sum(intercept.sd**2 for intercept in result.random_intercepts)
    whole = fixed + between + result.residual_sd**2
    assert result.r2_marginal == pytest.approx(fixed / whole)
    assert result.r2_conditional == pytest.approx((fixed + between) / whole)


@pytest.mark.slow
def test_logistic_intervals_have_their_nominal_coverage() -> None:
    generator = np.random.default_rng(10)
    hits = 0
    for _ in range(40):
        item, kind = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
        x = generator.normal(size=200)
        line = 0.5 * x + generator.normal(size=20)[item] + generator.normal(size=10)[kind]
        y = (generator.random(200) < special.expit(line)).astype(float)
        result = mixed_logistic(y, {"x": x}, {"item": item.tolist(), "type": kind.tolist()})["x"]
        hits += result.low <= 0.5 <= result.high
    assert hits >= 34


def test_intervals_have_their_nominal_coverage() -> None:
    generator = np.random.default_rng(9)
    hits = 0
    for _ in range(100):
        item, kind = np.repeat(np.arange(20), 10), np.tile(np.arange(10), 20)
        x = generator.normal(size=200)
        y = 0.5 * x + generator.normal(size=20)[item] + generator.normal(size=10)[kind] + generator.normal(size=200)
        result = mixed_linear(y, {"x": x}, {"item": item.tolist(), "type": kind.tolist()})["x"]
        hits += result.low <= 0.5 <= result.high
    assert 0.88 <= hits / 100 <= 1


def test_undefined_mixed_models() -> None:
    y, x, item, _ = crossed(binary=True)
    with pytest.raises(MeasureError, match="needs random effects"):
        mixed_linear(y, {"x": x}, {})
    with pytest.raises(Undefined, match="all rows have the same item"):
        mixed_linear(y, {"x": x}, {"item": ["a"] * len(y)})
    with pytest.raises(Undefined, match="single row in each"):
        mixed_linear(x, {}, {"item": list(range(len(y)))})
    with pytest.raises(Undefined, match="same value in every row"):
        mixed_linear([1.0, 1.0], {}, {"item": ["a", "b"]})
    with pytest.raises(Undefined, match="separate the outcomes"):
        mixed_logistic(y, {"x": y}, {"item": item})
    with pytest.raises(Undefined, match="is 1 in every row"):
        mixed_logistic(np.ones(len(y)), {"x": x}, {"item": item})
    with pytest.raises(MeasureError, match="3 labels"):
        mixed_logistic(y, {"x": x}, {"item": item[:3]})
    with pytest.raises(MeasureError, match="nan"):
        mixed_linear([float("nan"), 1], {}, {"item": ["a", "b"]})
    with pytest.raises(Undefined, match="grows without bound"):
        mixed_logistic(np.repeat([0, 1] * 5, 50), {}, {"item": np.repeat(np.arange(10), 50).tolist()})
    with pytest.raises(Undefined, match="exactly"):
        mixed_linear(2 * x + 1, {"x": x}, {"item": item})
    with pytest.raises(Undefined, match="grows without bound"):
        mixed_linear([1.0, 1.0, 2.0, 2.0, 5.0, 5.0], {}, {"item": list("aabbcc")})


def test_integration_of_one_group_by_hand() -> None:
    """Two rows of one item, one of another: the integral is near what Laplace gives where the spread is small."""
    result = mixed_logistic([1, 0, 1, 1, 0, 0, 1, 0], {}, {"item": list("aabbccdd")})

    def exact(sd: float, constant: float) -> float:
        total = 0.0
        for rows in ((1, 0), (1, 1), (0, 0), (1, 0)):
            total += np.log(
                integrate.quad(
                    lambda u, rows=rows: (
                        np.exp(-u * u / 2)
                        / np.sqrt(2 * np.pi)
                        * np.prod([special.expit((2 * y - 1) * (constant + sd * u)) for y in rows])
                    ),
                    -12,
                    12,
                )[0]
            )
        return -2 * total

    assert result.criterion == pytest.approx(
        exact(result.random_intercepts[0].sd, result["(constant)"].estimate), abs=0.1
    )


def test_an_unknown_coefficient_is_named() -> None:
    result = mixed_linear([1.0, 2.0, 4.0, 3.0], {}, {"item": list("aabb")})
    with pytest.raises(KeyError, match="no coefficient 'x'; there are"):
        result["x"]
