"""The two criteria against dense matrices and SciPy's normal distribution, and their gradients by differences."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit
from scipy.stats import multivariate_normal

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed import blocked_cholesky
from acceptability.stats.mixed.fitting import build_fixed_effects, fit_linear, fit_logistic
from acceptability.stats.mixed.laplace import LaplaceDeviance, build_logistic_likelihood
from acceptability.stats.mixed.linear_deviance import LinearDeviance
from acceptability.stats.mixed.random_effects import build_random_effects, build_random_term
from crossed_data import STRUCTURES, build_dense_root, build_structure, draw_columns

COLUMNS = draw_columns()
TABLE = np.column_stack([np.ones(len(COLUMNS["x"])), COLUMNS["x"]])


@pytest.fixture(params=[False, True], ids=["one pattern", "many patterns"])
def _patterns(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    # A handful of groups would all be one dense pattern.
    if request.param:
        monkeypatch.setattr(blocked_cholesky, "_PATTERN_COST", 0)
        monkeypatch.setattr(blocked_cholesky, "_MAX_DENSE_TABLE", 0)


def differentiate(function, at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return np.array([(function(at + shift) - function(at - shift)) / (2 * step) for shift in np.eye(len(at)) * step])


def make_theta(size: int, *, singular: bool) -> np.ndarray:
    theta = np.random.default_rng(3).normal(size=size)
    theta[:1] = 0.0 if singular else theta[:1]
    return theta


@pytest.mark.usefixtures("_patterns")
@pytest.mark.parametrize("singular", [False, True])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_linear_deviance_is_the_normal_density(name: str, singular: bool) -> None:
    random = build_structure(name, COLUMNS)
    theta = make_theta(random.theta_size, singular=singular)
    point = LinearDeviance(COLUMNS["y"], TABLE, random, reml=False).evaluate(theta)
    root = build_dense_root(random, theta)
    cover = (root @ root.T + np.eye(random.n)) * point.variance
    density = multivariate_normal(TABLE @ point.estimates, cover).logpdf(COLUMNS["y"])
    assert point.deviance == pytest.approx(-2 * density, abs=1e-8)
    # Generalised least squares, and the variance that maximises the density.
    inverse = np.linalg.inv(cover)
    expected = np.linalg.solve(TABLE.T @ inverse @ TABLE, TABLE.T @ inverse @ COLUMNS["y"])
    assert point.estimates == pytest.approx(expected, abs=1e-10)
    other = multivariate_normal(TABLE @ point.estimates, cover * 1.01).logpdf(COLUMNS["y"])
    assert other < density


@pytest.mark.usefixtures("_patterns")
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_restricted_deviance_is_that_of_error_contrasts(name: str) -> None:
    """REML is the density of n − p orthonormal contrasts of the outcome that have no fixed effect, up to |XᵀX|."""
    random = build_structure(name, COLUMNS)
    theta = make_theta(random.theta_size, singular=False)
    point = LinearDeviance(COLUMNS["y"], TABLE, random, reml=True).evaluate(theta)
    root = build_dense_root(random, theta)
    contrasts = np.linalg.qr(TABLE, mode="complete")[0][:, 2:].T
    cover = contrasts @ (root @ root.T + np.eye(random.n)) @ contrasts.T * point.variance
    density = multivariate_normal(np.zeros(random.n - 2), cover).logpdf(contrasts @ COLUMNS["y"])
    shift = np.linalg.slogdet(TABLE.T @ TABLE)[1]
    assert point.deviance == pytest.approx(-2 * density + shift, abs=1e-8)


@pytest.mark.usefixtures("_patterns")
@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_linear_gradient_is_that_of_differences(name: str, reml: bool) -> None:
    random = build_structure(name, COLUMNS)
    model = LinearDeviance(COLUMNS["y"], TABLE, random, reml=reml)
    for singular in (False, True):
        theta = make_theta(random.theta_size, singular=singular)
        expected = differentiate(lambda at: model.evaluate(at).deviance, theta)
        assert model.evaluate(theta).gradient == pytest.approx(expected, abs=1e-5)


@pytest.mark.usefixtures("_patterns")
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_laplace_deviance_is_that_of_dense_matrices(name: str) -> None:
    random = build_structure(name, COLUMNS)
    theta, fixed = make_theta(random.theta_size, singular=False), TABLE @ [0.2, 0.5]
    point = LaplaceDeviance(random).evaluate(theta, fixed, build_logistic_likelihood(COLUMNS["right"]))
    root, y = build_dense_root(random, theta), COLUMNS["right"]

    def penalised(u: np.ndarray) -> float:
        line = fixed + root @ u
        return float((np.logaddexp(0, line) - y * line).sum() + u @ u / 2)

    def slope(u: np.ndarray) -> np.ndarray:
        return root.T @ (expit(fixed + root @ u) - y) + u

    mode = optimize.minimize(penalised, np.zeros(root.shape[1]), jac=slope, method="BFGS", options={"gtol": 1e-9}).x
    share = expit(fixed + root @ mode)
    hessian = root.T @ (root * (share * (1 - share))[:, None]) + np.eye(root.shape[1])
    assert point.deviance == pytest.approx(2 * penalised(mode) + np.linalg.slogdet(hessian)[1], abs=1e-7)
    assert point.leverages == pytest.approx(np.einsum("ij,jk,ik->i", root, np.linalg.inv(hessian), root), abs=1e-6)


@pytest.mark.usefixtures("_patterns")
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_laplace_gradient_is_that_of_differences(name: str) -> None:
    random = build_structure(name, COLUMNS)
    model, likelihood, count = LaplaceDeviance(random), build_logistic_likelihood(COLUMNS["right"]), random.theta_size
    at = np.append(make_theta(count, singular=False), [0.2, 0.5])

    def evaluate(parameters: np.ndarray) -> float:
        return model.evaluate(parameters[:count], TABLE @ parameters[count:], likelihood).deviance

    point = model.evaluate(at[:count], TABLE @ at[count:], likelihood)
    gradient = np.append(point.theta_gradient, TABLE.T @ point.predictor_gradient)
    assert gradient == pytest.approx(differentiate(evaluate, at), abs=1e-4)


def test_a_fit_is_the_same_whatever_the_scale_of_its_numbers() -> None:
    """Outcome in another unit, a slope's predictor far from 0: the same model, and the same predictions."""
    x, item = COLUMNS["x"], COLUMNS["item"].tolist()
    plain = fit_linear(
        COLUMNS["y"],
        build_fixed_effects(["1", "x"], TABLE),
        build_random_effects([build_random_term("item", item, {"x": x})]),
    )
    year = 2000 + 10 * x
    shifted = fit_linear(
        1000 * COLUMNS["y"],
        build_fixed_effects(["1", "year"], np.column_stack([np.ones(len(x)), year])),
        build_random_effects([build_random_term("item", item, {"year": year})]),
    )
    assert shifted.estimates[1] == pytest.approx(100 * plain.estimates[1], rel=1e-6)
    assert shifted.covariances[0][1, 1] == pytest.approx(1e4 * plain.covariances[0][1, 1], rel=1e-5)
    n = len(x)
    # The restricted likelihood depends on the scale of the predictors as well: |XᵀX| is 100 times as large.
    assert shifted.deviance == pytest.approx(plain.deviance + (n - 2) * np.log(1e6) + np.log(100), abs=1e-5)


def test_groups_that_do_not_differ_are_a_singular_fit() -> None:
    """Every group has the same outcomes, so that the variance between groups is 0."""
    y = np.tile([1.0, 2.0, 4.0, 3.0], 6)
    random = build_random_effects([build_random_term("item", np.repeat(np.arange(6), 4).tolist())])
    fit = fit_linear(y, build_fixed_effects(["1"], np.ones((24, 1))), random)
    assert fit.is_singular
    assert fit.covariances[0][0, 0] == pytest.approx(0, abs=1e-8)
    assert fit.residual_variance == pytest.approx(y.var(ddof=1))


def test_a_start_at_a_variance_of_zero_is_left() -> None:
    random = build_structure("intercepts", COLUMNS)
    fixed = build_fixed_effects(["1", "x"], TABLE)
    usual, stuck = (fit_linear(COLUMNS["y"], fixed, random, start=start) for start in (None, np.zeros(1)))
    assert stuck.deviance == pytest.approx(usual.deviance, abs=1e-8)
    assert not stuck.is_singular


def test_rows_of_items_alone_are_the_one_way_analysis_of_variance() -> None:
    generator = np.random.default_rng(4)
    y = (generator.normal(0, 2, 30)[:, None] + generator.normal(size=(30, 5))).ravel()
    random = build_random_effects([build_random_term("item", np.repeat(np.arange(30), 5).tolist())])
    fit = fit_linear(y, build_fixed_effects(["1"], np.ones((150, 1))), random)
    means = y.reshape(30, 5).mean(axis=1)
    within = ((y.reshape(30, 5) - means[:, None]) ** 2).sum() / 120
    assert fit.residual_variance == pytest.approx(within, rel=1e-6)
    assert fit.covariances[0][0, 0] == pytest.approx(means.var(ddof=1) - within / 5, rel=1e-6)
    assert fit.covariance[0, 0] == pytest.approx(means.var(ddof=1) / 30, rel=1e-6)


def test_what_cannot_be_fitted_is_refused() -> None:
    fixed, x = build_fixed_effects(["1", "x"], TABLE), COLUMNS["x"]
    item = COLUMNS["item"].tolist()
    slopes = {name: np.random.default_rng(k).normal(size=120) for k, name in enumerate("abc")}
    many = build_random_effects([build_random_term("item", np.repeat(np.arange(60), 2).tolist(), slopes)])
    with pytest.raises(Undefined, match="240 random effects in 120 rows"):
        fit_linear(COLUMNS["y"], fixed, many)
    with pytest.raises(Undefined, match="linear combination"):
        build_random_effects([build_random_term("item", item, {"x": x, "twice": 2 * x})])
    with pytest.raises(Undefined, match="0 in every row"):
        build_random_effects([build_random_term("item", item, {"x": 0 * x})])
    with pytest.raises(MeasureError, match="in two terms"):
        build_random_effects([build_random_term("item", item), build_random_term("item", item, {"x": x})])
    with pytest.raises(MeasureError, match="expected the same rows in all"):
        fit_linear(COLUMNS["y"][:-1], fixed, build_structure("intercepts", COLUMNS))
    with pytest.raises(Undefined, match="twice is constant, or a linear combination"):
        build_fixed_effects(["1", "x", "twice"], np.column_stack([TABLE, 2 * x]))
    with pytest.raises(Undefined, match="x separate the outcomes"):
        fit_logistic((x > 0).astype(float), fixed, build_structure("intercepts", COLUMNS))


def test_too_many_random_effects_in_two_kinds_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocked_cholesky, "_MAX_REST_COLUMNS", 5)
    random = build_random_effects([build_random_term(name, COLUMNS[name].tolist()) for name in ("kind", "item")])
    with pytest.raises(MeasureError, match=r"too many \(item 15, kind 6\)"):
        blocked_cholesky.BlockLayout(random)
