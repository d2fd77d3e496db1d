"""Cumulative-link models: derivatives by differences, the likelihood by quadrature, and what has no estimate."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import stats
from statsmodels.miscmodels.ordinal_model import OrderedModel

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.mixed.fitting import FixedEffects, build_fixed_effects
from acceptability.stats.mixed.ordinal.cumulative_link import LINKS, LevelProbabilities
from acceptability.stats.mixed.ordinal.ordinal_fit import CumulativeLinkDeviance, OrdinalFit, fit_ordinal
from acceptability.stats.mixed.random_effects import RandomEffects, RandomTerm, build_random_effects, build_random_term

CDF = {"logit": stats.logistic.cdf, "probit": stats.norm.cdf}
STEP = 1e-5


def draw_distances(n: int = 60) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(5)
    lower = generator.normal(0, 2, n)
    upper = lower + 0.3 + generator.gamma(1, 1, n)
    lower[:10], upper[10:20] = -np.inf, np.inf
    return upper, lower


@pytest.mark.parametrize("name", list(LINKS))
def test_log_probabilities_are_those_of_scipy(name: str) -> None:
    upper, lower = draw_distances()
    expected = np.log(CDF[name](upper) - CDF[name](lower))
    ours = LevelProbabilities(LINKS[name], upper, lower).log_probabilities
    assert ours == pytest.approx(expected, rel=1e-8)


def test_probabilities_far_in_the_tails_keep_their_digits() -> None:
    """Symmetry: the level between 40 and 41 is as likely as the one between −41 and −40, though 1 − F is 0 there."""
    for name, link in LINKS.items():
        high = LevelProbabilities(link, np.array([41.0]), np.array([40.0]))
        low = LevelProbabilities(link, np.array([-40.0]), np.array([-41.0]))
        assert high.log_probabilities == pytest.approx(low.log_probabilities, rel=1e-12)
        assert high.terms.scores == pytest.approx(-low.terms.scores, rel=1e-9)
        if name == "logit":
            assert low.log_probabilities == pytest.approx(-40 + np.log(-np.expm1(-1.0)), rel=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_a_very_improbable_end_of_the_scale_has_finite_derivatives(name: str) -> None:
    # The lowest level far above its threshold, and the highest one far below it.
    far = LevelProbabilities(LINKS[name], np.array([-800.0, np.inf]), np.array([-np.inf, 800.0]))
    assert np.isfinite(far.log_probabilities).all()
    assert (far.log_probabilities < -700).all()
    terms = far.terms
    assert np.isfinite(terms.scores).all()
    assert np.isfinite(terms.weights).all()
    assert terms.scores[0] < 0 < terms.scores[1]


@pytest.mark.parametrize("name", list(LINKS))
def test_derivatives_equal_differences(name: str) -> None:
    upper, lower = draw_distances()

    def at(by_upper: float, by_lower: float) -> LevelProbabilities:
        return LevelProbabilities(LINKS[name], upper + by_upper, lower + by_lower)

    def differences(of, by_upper: float, by_lower: float) -> np.ndarray:
        return (np.array(of(at(by_upper, by_lower))) - np.array(of(at(-by_upper, -by_lower)))) / (2 * STEP)

    rows = at(0, 0)
    for by_upper, by_lower, side in ((STEP, 0, 0), (0, STEP, 1)):
        slopes = differences(lambda it: it.log_probabilities, by_upper, by_lower)
        assert rows.first[side] == pytest.approx(slopes, abs=1e-7)
        slopes = differences(lambda it: it.first, by_upper, by_lower)
        assert np.array(rows.second[side : side + 2]) == pytest.approx(slopes, abs=1e-6)
        slopes = differences(lambda it: it.second, by_upper, by_lower)
        assert np.array(rows.third[side : side + 3]) == pytest.approx(slopes, abs=1e-5)
        slopes = differences(lambda it: (it.terms.scores, it.terms.weights), by_upper, by_lower)
        assert rows.score_slopes[side] == pytest.approx(slopes[0], abs=1e-6)
        assert rows.weight_slopes[side] == pytest.approx(slopes[1], abs=1e-5)
    # A higher predictor lowers both distances.
    slopes = differences(lambda it: (it.log_probabilities, it.terms.scores, it.terms.weights), -STEP, -STEP)
    assert rows.terms.scores == pytest.approx(slopes[0], abs=1e-7)
    assert rows.terms.weights == pytest.approx(-slopes[1], abs=1e-6)
    assert rows.terms.weight_slopes == pytest.approx(slopes[2], abs=1e-5)


def draw_ratings(n: int = 240, *, subjects: int = 12, items: int = 10) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(3)
    subject, item = np.arange(n) % subjects, generator.integers(0, items, n)
    x = generator.normal(5, 2, n)
    latent = 0.4 * x + generator.normal(0, 0.8, subjects)[subject] + generator.normal(0, 0.6, items)[item]
    latent += generator.normal(0, 0.3, subjects)[subject] * x + generator.logistic(size=n)
    codes = np.digitize(latent, [0.5, 1.8, 3.0])
    return {"codes": codes, "x": x, "subject": subject, "item": item}


def build_design(data: dict[str, np.ndarray]) -> FixedEffects:
    return build_fixed_effects(["Intercept", "x"], np.column_stack([np.ones(len(data["x"])), data["x"]]))


def build_terms(data: dict[str, np.ndarray]) -> list[RandomTerm]:
    return [
        build_random_term("subject", data["subject"].tolist(), {"x": data["x"]}),
        build_random_term("item", data["item"].tolist()),
    ]


def group(terms: list[RandomTerm], n: int = 240) -> RandomEffects:
    return build_random_effects(terms) if terms else RandomEffects((), n)


def fit(data: dict[str, np.ndarray], terms: list[RandomTerm], link: str = "logit") -> OrdinalFit:
    return fit_ordinal(data["codes"], ["1", "2", "3", "4"], build_design(data), group(terms), link=link)


@pytest.mark.parametrize("link", list(LINKS))
def test_without_random_effects_it_is_the_ordered_model_of_statsmodels(link: str) -> None:
    data = draw_ratings()
    result = fit(data, [], link)
    model = OrderedModel(data["codes"], data["x"], distr=link)
    reference = model.fit(method="bfgs", disp=False, gtol=1e-6)
    assert -result.deviance / 2 == pytest.approx(reference.llf, abs=1e-7)
    assert result.thresholds == pytest.approx(model.transform_threshold_params(reference.params)[1:-1], rel=1e-5)
    assert result.estimates[1] == pytest.approx(reference.params[0], rel=1e-5)
    # Their lowest threshold is a parameter as ours is, the others are logarithms of distances.
    assert [np.sqrt(result.covariance[1, 1]), np.sqrt(result.threshold_covariance[0, 0])] == pytest.approx(
        reference.bse[:2], rel=1e-4
    )
    assert (result.method, result.parameters, result.threshold_names) == ("ML", 4, ("1|2", "2|3", "3|4"))


@pytest.mark.parametrize("link", list(LINKS))
def test_the_laplace_likelihood_is_near_the_integral(link: str) -> None:
    """Subjects are independent, so that the likelihood is a product of one-dimensional integrals."""
    data = draw_ratings(480, subjects=12)
    result = fit(data, [build_random_term("subject", data["subject"].tolist())], link)
    sd = float(np.sqrt(result.covariances[0][0, 0]))
    nodes, weights = hermegauss(60)
    edges = np.concatenate([[-np.inf], result.thresholds, [np.inf]])
    predictor = (result.estimates[1] * data["x"])[:, None] + sd * nodes
    upper, lower = edges[data["codes"] + 1][:, None], edges[data["codes"]][:, None]
    # Far from the mode some probabilities are 0, and add nothing to the integral.
    with np.errstate(divide="ignore"):
        logs = np.log(CDF[link](upper - predictor) - CDF[link](lower - predictor))
    by_subject = np.array([logs[data["subject"] == k].sum(axis=0) for k in range(12)])
    integral = np.log(np.exp(by_subject) @ weights / np.sqrt(2 * np.pi)).sum()
    # With 40 rows a subject the approximation is good, and not exact.
    assert -result.deviance / 2 == pytest.approx(integral, abs=0.05)
    assert sd > 0.2


def test_the_deviance_has_a_horizontal_tangent_and_its_hessian_gives_the_errors() -> None:
    """The standard errors by second differences of the deviance itself, in thresholds and coefficients."""
    data = draw_ratings()
    result = fit(data, build_terms(data))
    model = CumulativeLinkDeviance(data["codes"], 4, build_design(data).basis[:, 1:], result.random, LINKS["logit"])
    x = result.minimum.x + np.linspace(-0.2, 0.3, len(result.minimum.x))
    value, gradient = model.evaluate(x)
    for i in range(len(x)):
        shift = np.zeros_like(x)
        shift[i] = 1e-5
        slope = (model.evaluate(x + shift)[0] - model.evaluate(x - shift)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-5)
    assert model.evaluate(result.minimum.x)[1] == pytest.approx(0, abs=1e-4)
    assert value > result.deviance
    assert len(result.theta) == 4
    assert result.parameters == 3 + 1 + 4
    assert not result.is_singular


def test_another_unit_and_origin_of_a_predictor_only_rescale() -> None:
    data = draw_ratings()
    plain = fit(data, build_terms(data))
    moved = {**data, "x": 1000 * data["x"] - 7000}
    result = fit(moved, build_terms(moved))
    assert result.deviance == pytest.approx(plain.deviance, abs=1e-7)
    assert 1000 * result.estimates[1] == pytest.approx(plain.estimates[1], rel=1e-5)
    assert 1000 * np.sqrt(result.covariance[1, 1]) == pytest.approx(np.sqrt(plain.covariance[1, 1]), rel=1e-4)
    assert result.thresholds == pytest.approx(plain.thresholds - 7 * plain.estimates[1], rel=1e-5, abs=1e-5)
    slopes = [np.sqrt(fit.covariances[0][1, 1]) for fit in (plain, result)]
    assert 1000 * slopes[1] == pytest.approx(slopes[0], rel=1e-4)


def test_reversed_levels_change_signs_only() -> None:
    data = draw_ratings()
    plain = fit(data, build_terms(data))
    result = fit({**data, "codes": 3 - data["codes"]}, build_terms(data))
    assert result.deviance == pytest.approx(plain.deviance, abs=1e-7)
    assert result.estimates == pytest.approx(-plain.estimates, rel=1e-5)
    assert result.thresholds == pytest.approx(-plain.thresholds[::-1], rel=1e-5)


def test_groups_that_do_not_differ_make_a_singular_fit() -> None:
    generator = np.random.default_rng(8)
    data = draw_ratings()
    data["codes"] = np.digitize(0.3 * data["x"] + generator.logistic(size=240), [0.5, 1.5, 2.5])
    terms = [build_random_term("group", [f"g{i % 24}" for i in range(240)])]
    plain, result = fit(data, []), fit(data, terms)
    assert result.is_singular
    assert result.deviance == pytest.approx(plain.deviance, abs=1e-7)
    assert np.diag(result.covariance) == pytest.approx(np.diag(plain.covariance), rel=1e-5)


def test_what_has_no_estimate_is_refused() -> None:
    data = draw_ratings()
    design = build_design(data)
    with pytest.raises(Undefined, match=r"2 levels \(no, yes\)"):
        fit_ordinal(data["codes"] // 2, ["no", "yes"], design, group([]))
    with pytest.raises(Undefined, match="no row has the level '5'"):
        fit_ordinal(data["codes"], ["1", "2", "3", "4", "5"], design, group([]))
    with pytest.raises(Undefined, match="x separate the levels"):
        fit({**data, "x": data["codes"] * 3.0 + np.arange(240) % 3}, [])
    with pytest.raises(MeasureError, match="expected 'logit', 'probit'"):
        fit(data, [], link="cauchit")
    with pytest.raises(MeasureError, match="needs an intercept"):
        fit_ordinal(data["codes"], ["1", "2", "3", "4"], FixedEffects(("x",), data["x"][:, None]), group([]))
    with pytest.raises(Undefined, match="without bound"):
        fit({**data, "codes": data["subject"] % 4}, [build_random_term("subject", data["subject"].tolist())])
