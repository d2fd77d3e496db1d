"""`regress` of the family ordinal: what the outcome may be, what is shown, and what works on the result."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import regress
from acceptability.stats.mixed.marginal_means import estimate_means
from acceptability.stats.mixed.mixed_intervals import estimate_intervals
from acceptability.stats.mixed.model_comparison import compare_models, simulate_outcome
from acceptability.stats.mixed.ordinal.ordinal_regression import OrdinalRegression

LABELS = ["bad", "odd", "fine", "good"]


def draw_frame(n: int = 300) -> pandas.DataFrame:
    generator = np.random.default_rng(11)
    subject, item = np.arange(n) % 15, np.arange(n) // 15
    condition = generator.integers(0, 2, n)
    latent = 1.2 * condition + generator.normal(0, 0.8, 15)[subject] + generator.normal(0, 0.5, 20)[item]
    codes = np.digitize(latent + generator.logistic(size=n), [-0.7, 0.6, 1.9])
    return pandas.DataFrame(
        {
            "rating": codes + 1,
            "label": pandas.Categorical.from_codes(codes, LABELS, ordered=True),
            "condition": np.where(condition, "full", "elided"),
            "subject": [f"s{k}" for k in subject],
            "item": item,
        }
    )


FRAME = draw_frame()
FORMULA = "rating ~ condition + (1 | subject) + (1 | item)"


@pytest.fixture(scope="module")
def result() -> OrdinalRegression:
    fitted = regress(FORMULA, FRAME, family="ordinal")
    assert isinstance(fitted, OrdinalRegression)
    return fitted


def test_an_ordered_categorical_is_fitted_as_its_codes(result: OrdinalRegression) -> None:
    labelled = regress(FORMULA.replace("rating", "label"), FRAME, family="ordinal")
    assert isinstance(labelled, OrdinalRegression)
    assert labelled.deviance == pytest.approx(result.deviance, abs=1e-9)
    assert [it.name for it in labelled.thresholds] == ["bad|odd", "odd|fine", "fine|good"]
    assert [it.name for it in result.thresholds] == ["1|2", "2|3", "3|4"]
    # Only the order of the levels counts.
    spread = regress(FORMULA, FRAME.assign(rating=FRAME["rating"] ** 2 / 2), family="ordinal")
    assert spread.deviance == pytest.approx(result.deviance, abs=1e-9)
    assert [it.name for it in spread.thresholds] == ["0.5|2", "2|4.5", "4.5|8"]


def test_reference_level_and_sign(result: OrdinalRegression) -> None:
    (effect,) = result.coefficients
    assert effect.name == "condition[T.full]"
    assert 0.6 < effect.estimate < 1.8
    assert effect.odds_ratio == pytest.approx(np.exp(effect.estimate))
    probit = regress(FORMULA, FRAME, family="ordinal-probit")
    assert probit["condition[T.full]"].odds_ratio is None
    # A logistic variable has about 1.7 times the standard deviation of a normal one.
    assert effect.estimate / probit["condition[T.full]"].estimate == pytest.approx(1.7, abs=0.15)
    assert probit.r2_conditional > probit.r2_marginal > 0
    # Variances of condition, subjects and items over the same with π²/3.
    sds = {it.group: it.sd for it in result.random_effects}
    fixed = float(np.var(effect.estimate * (FRAME["condition"] == "full")))
    between = sds["subject"] ** 2 + sds["item"] ** 2
    assert result.r2_conditional == pytest.approx((fixed + between) / (fixed + between + np.pi**2 / 3), rel=1e-9)


def test_what_is_shown_fits_80_columns(result: OrdinalRegression) -> None:
    shown = str(result)
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.startswith("Ordinal mixed model (logit link, Laplace): rating ~ condition")
    assert "300 rows; 20 item, 15 subject" in shown
    assert repr(result) == f"<OrdinalRegression {FORMULA!r}, ordinal, Laplace, 300 rows>"
    for threshold in result.thresholds:
        assert f"{threshold.estimate:.4g}" in shown
        assert f"<td>{threshold.estimate:.4g}</td>" in result._repr_html_()
    assert list(result.thresholds_frame()["name"]) == ["1|2", "2|3", "3|4"]
    assert "Intervals: 0.9 Wald." in str(regress("rating ~ 1 + (1 | item)", FRAME, family="ordinal", level=0.9))


def test_intervals_of_thresholds_are_waldian(result: OrdinalRegression) -> None:
    wide = regress(FORMULA, FRAME, family="ordinal", level=0.99)
    assert isinstance(wide, OrdinalRegression)
    for narrow, it in zip(result.thresholds, wide.thresholds, strict=True):
        assert it.high - it.estimate == pytest.approx(2.575829 * it.se, rel=1e-6)
        assert narrow.high - narrow.estimate == pytest.approx(1.959964 * it.se, rel=1e-6)


def test_without_random_effects_it_is_an_ordinary_ordinal_model() -> None:
    plain = regress("rating ~ condition", FRAME, family="ordinal")
    assert (plain.method, plain.random_effects, plain.is_singular) == ("ML", (), False)
    assert plain.describe().startswith("Ordinal model (logit link, ML)")


def test_wald_and_likelihood_ratio_of_one_coefficient(result: OrdinalRegression) -> None:
    (test,) = result.test_terms()
    assert test.statistic == pytest.approx(result.coefficients[0].statistic ** 2, rel=1e-9)
    smaller = regress("rating ~ 1 + (1 | subject) + (1 | item)", FRAME, family="ordinal")
    ratio = compare_models(smaller, result)
    assert (ratio.df, ratio.statistic) == (1, pytest.approx(smaller.deviance - result.deviance))
    assert ratio.statistic == pytest.approx(test.statistic, rel=0.15)
    with pytest.raises(MeasureError, match="cannot be compared"):
        compare_models(result, regress(FORMULA, FRAME, reml=False))


def test_differences_of_marginal_means_are_coefficients(result: OrdinalRegression) -> None:
    means = estimate_means(result, "condition")
    (difference,) = means.contrasts
    assert -difference.estimate == pytest.approx(result.coefficients[0].estimate, rel=1e-9)
    assert difference.se == pytest.approx(result.coefficients[0].se, rel=1e-9)
    assert means.scale == "latent variable"
    # The reference level's mean is 0 less the mean threshold.
    assert means.means[0].estimate == pytest.approx(-np.mean([it.estimate for it in result.thresholds]), rel=1e-9)


def test_simulated_outcomes_have_the_levels_of_the_model() -> None:
    plain = regress("rating ~ condition", FRAME, family="ordinal")
    generator = np.random.default_rng(0)
    drawn = np.array([simulate_outcome(plain.fit, generator) for _ in range(300)])
    edges = np.array([it.estimate for it in plain.thresholds])
    for name, shift in (("elided", 0.0), ("full", plain.coefficients[0].estimate)):
        shares = np.diff([0, *(1 / (1 + np.exp(shift - edges))), 1])
        observed = np.bincount(drawn[:, FRAME["condition"] == name].astype(int).ravel(), minlength=4) / 300
        # 300 draws of some 150 rows: a standard error of .0024 at most.
        assert observed / observed.sum() == pytest.approx(shares, abs=0.01)


def test_bootstrap_intervals_hold_the_estimates(result: OrdinalRegression) -> None:
    intervals = estimate_intervals(result, method="bootstrap", draws=20)
    assert [it.parameter for it in intervals.intervals] == [
        "condition[T.full]",
        "sd: item: Intercept",
        "sd: subject: Intercept",
    ]
    effect = intervals["condition[T.full]"]
    assert effect.low < effect.estimate < effect.high


def test_outcomes_without_an_order_are_refused() -> None:
    with pytest.raises(MeasureError, match="the categories of 'label' have no order"):
        regress(
            "label ~ condition", FRAME.assign(label=FRAME["label"].astype(str).astype("category")), family="ordinal"
        )
    with pytest.raises(MeasureError, match="'label' is not numeric"):
        regress("label ~ condition", FRAME.assign(label=FRAME["label"].astype(str)), family="ordinal")
    with pytest.raises(MeasureError, match="2 missing values"):
        regress("label ~ condition", FRAME.assign(label=FRAME["label"].where(FRAME.index > 1)), family="ordinal")
    with pytest.raises(Undefined, match=r"has 2 levels \(1, 2\).*use a binomial"):
        regress("rating ~ condition", FRAME.assign(rating=FRAME["rating"].clip(upper=2)), family="ordinal")
    with pytest.raises(MeasureError, match="expected a pandas DataFrame"):
        regress("rating ~ condition", [1, 2, 3], family="ordinal")
    with pytest.raises(MeasureError, match="leave out '0 \\+'"):
        regress("rating ~ 0 + condition + (1 | item)", FRAME, family="ordinal")
