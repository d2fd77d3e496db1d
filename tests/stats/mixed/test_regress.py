"""`regress` and what takes its result: formulas, tables, tests of terms, comparisons, means, intervals."""

from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest
from scipy import stats as scipy_stats

import acceptability
import lme4_data
from acceptability.errors import MeasureError, MissingExtra, Undefined
from acceptability.stats import (
    compare_models,
    estimate_intervals,
    estimate_means,
    linear_regression,
    mixed_linear,
    mixed_logistic,
    regress,
)
from acceptability.stats.mixed.mixed_formula import RandomPart, parse_mixed_formula
from acceptability.stats.mixed.model_comparison import simulate_outcome
from acceptability.stats.mixed.optimiser import minimise
from crossed_data import draw_columns

REACTION, DAYS, PERSON = lme4_data.sleepstudy()
SLEEP = {"reaction": REACTION, "days": DAYS, "person": PERSON}
SLOPES = regress("reaction ~ days + (1 + days | person)", SLEEP)


def make_experiment(seed: int = 1) -> pandas.DataFrame:
    """24 people × 12 items, a within-factor of three levels and one of two, right or wrong and a time."""
    generator = np.random.default_rng(seed)
    person, item = np.repeat(np.arange(24), 12), np.tile(np.arange(12), 24)
    kind, load = (person + item) % 3, (person // 3 + item) % 2
    line = np.array([0.0, 0.6, 0.9])[kind] + generator.normal(0, 0.7, 24)[person] + generator.normal(0, 0.5, 12)[item]
    line = line + generator.normal(0, 0.4, 24)[person] * load
    return pandas.DataFrame(
        {
            "time": line + generator.normal(0, 0.8, len(line)),
            "right": (generator.random(len(line)) < 1 / (1 + np.exp(-line))).astype(int),
            "kind": np.array(["causal", "masked", "ngram"])[kind],
            "load": np.array(["high", "low"])[load],
            "length": generator.normal(8, 2, len(line)),
            "person": [f"p{k}" for k in person],
            "item": [f"i{k}" for k in item],
        }
    )


EXPERIMENT = make_experiment()
FULL = regress("time ~ kind * load + length + (1 + load | person) + (1 | item)", EXPERIMENT, reml=False)


# --- formulas ---


def test_a_formula_is_taken_apart() -> None:
    parsed = parse_mixed_formula("correct ~ model + log(length) - 1 + (1 + model|paradigm) + (1 | set/item)")
    assert (parsed.outcome, parsed.fixed) == ("correct", "model + log(length) - 1")
    assert parsed.random == (
        RandomPart("1 + model", ("paradigm",), True),
        RandomPart("1", ("set",), True),
        RandomPart("1", ("set", "item"), True),
    )
    assert parse_mixed_formula("y ~ (x || a:b)").random == (RandomPart("x", ("a", "b"), False),)
    assert parse_mixed_formula("y ~ (x || a)").fixed == "1"
    assert parse_mixed_formula("y ~ (a + b) * c + (1 | g)").fixed == "(a + b) * c"
    assert parse_mixed_formula("y ~ (1 | `my group`)").random[0].groups == ("my group",)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y", "not of the form"),
        ("y ~ ", "not of the form"),
        ("y ~ x ~ z", "not of the form"),
        ("y ~ x + (1 | item", "without its partner"),
        ("y ~ x) + (1 | item)", "without its partner"),
        ("y ~ x - (1 | item)", "subtracts the random part"),
        ("y ~ x + 1 | item", "outside of parentheses"),
        ("y ~ x + (1 | )", "not of the form"),
        ("y ~ x + ( | item)", "not of the form"),
        ("y ~ x + (1 | item | z)", "not of the form"),
    ],
)
def test_a_formula_that_cannot_be_read(formula: str, message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        parse_mixed_formula(formula)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("reaction ~ dayz + (1 | person)", "no column 'dayz'. Did you mean 'days'"),
        ("reaction ~ days + (1 | persons)", "no column 'persons'. Did you mean 'person'"),
        ("reaction ~ days", "no random part"),
        ("person ~ days + (1 | person)", "outcome 'person' is not numeric"),
        ("reaction ~ days ++ (1 | person)", "a sign without a term"),
        ("reaction ~ days + (1 | person) +", "a sign without a term"),
        ("reaction ~ days * + (1 | person)", "cannot be read"),
        ("reaction ~ nothing(days) + (1 | person)", r"has nothing\(\); functions of a formula"),
        ("reaction ~ log(person) + (1 | person)", "cannot be computed"),
        ("reaction ~ days + days2 + (1 | person)", "linear combination"),
        ("reaction ~ empty + (1 | person)", "column 'empty' has 2 missing values, the first in row 4"),
    ],
)
def test_a_model_that_cannot_be_built(formula: str, message: str) -> None:
    frame = pandas.DataFrame(SLEEP).assign(days2=2 * np.array(DAYS), empty=np.array(DAYS, dtype=float))
    frame.loc[[3, 8], "empty"] = np.nan
    with pytest.raises(MeasureError, match=message):
        regress(formula, frame)


def test_bad_arguments() -> None:
    with pytest.raises(MeasureError, match="family is 'poisson'"):
        regress("reaction ~ days + (1 | person)", SLEEP, family="poisson")
    with pytest.raises(MeasureError, match="a list; expected a pandas DataFrame"):
        regress("reaction ~ days + (1 | person)", [1, 2])
    with pytest.raises(MeasureError, match="different lengths: reaction 180, days 3"):
        regress("reaction ~ days + (1 | person)", {**SLEEP, "days": [1, 2, 3]})
    with pytest.raises(MeasureError, match="needs 0 and 1"):
        regress("reaction ~ days + (1 | person)", SLEEP, family="binomial")


def test_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic", None)
    with pytest.raises(
        MissingExtra, match=r"'regress' needs formulaic. Install with: pip install 'acceptability\[stats\]'"
    ):
        regress("reaction ~ days + (1 | person)", SLEEP)


def test_the_front_door_has_it() -> None:
    assert acceptability.regress is regress


# --- results ---


def test_nested_groups_are_a_group_and_its_combinations() -> None:
    frame = EXPERIMENT.assign(set=EXPERIMENT["item"].isin(["i0", "i1", "i2", "i3"]).map({True: "a", False: "b"}))
    # Items are numbered within sets, so that the same number is another item in another set.
    frame["number"] = [str(int(name[1:]) % 4) for name in frame["item"]]
    nested = regress("time ~ 1 + (1 | person/number)", frame)
    written = regress("time ~ 1 + (1 | person) + (1 | person:number)", frame)
    assert nested.deviance == written.deviance
    assert {effect.group: effect.groups for effect in nested.random_effects} == {"person": 24, "person:number": 96}


def test_a_balanced_design_has_the_tests_of_repeated_measures() -> None:
    """Random intercepts and slopes of a balanced design: the t test of the people's own slopes."""
    slopes = np.polyfit(np.arange(10), np.reshape(REACTION, (18, 10)).T, 1)[0]
    expected = scipy_stats.ttest_1samp(slopes, 0)
    days = SLOPES["days"]
    assert (days.estimate, days.statistic) == pytest.approx((slopes.mean(), expected.statistic), rel=1e-5)
    assert (days.df, days.p) == pytest.approx((17, expected.pvalue), rel=1e-4)
    assert (days.low, days.high) == pytest.approx(tuple(expected.confidence_interval(0.95)), rel=1e-4)
    assert days.test == "t test, Satterthwaite df"
    assert days.interval == "0.95 Wald, t with Satterthwaite df"
    (test,) = SLOPES.test_terms()
    assert (test.term, test.test) == ("days", "F test, Satterthwaite df")
    assert (test.statistic, test.denominator_df, test.p) == pytest.approx((days.statistic**2, days.df, days.p))


def test_a_logistic_model_says_that_its_tests_are_walds() -> None:
    fit = regress("right ~ kind + (1 | person)", EXPERIMENT, family="binomial")
    effect = fit["kind[T.ngram]"]
    assert (effect.test, effect.df, effect.interval) == ("Wald z test", None, "0.95 Wald")
    assert effect.odds_ratio == pytest.approx(np.exp(effect.estimate))
    assert effect.p == pytest.approx(2 * scipy_stats.norm.sf(abs(effect.statistic)))
    (test,) = fit.test_terms()
    contrasts = np.eye(3)[1:]
    inner = np.linalg.inv(contrasts @ fit.fit.covariance @ contrasts.T)
    assert test.statistic == pytest.approx(fit.fit.estimates[1:] @ inner @ fit.fit.estimates[1:])
    assert (test.df, test.denominator_df, test.test) == (2, None, "Wald chi-squared test")


def test_what_is_shown_fits_into_80_columns_and_names_its_methods() -> None:
    text = str(FULL)
    assert max(map(len, text.splitlines())) <= 80
    for words in ("Linear mixed model (ML)", "288 rows", "24 person", "Satterthwaite", "kind[T.ngram]:load[T.low]"):
        assert words in text
    assert "<td>" in FULL._repr_html_()
    assert "Satterthwaite" in FULL._repr_html_()
    assert len(repr(FULL)) < 200
    frame = FULL.to_frame()
    assert frame["estimate"].tolist() == FULL.fit.estimates.tolist()
    assert set(frame["test"]) == {"t test, Satterthwaite df"}
    with pytest.raises(KeyError, match="no coefficient 'nothing'"):
        FULL["nothing"]


def test_the_shares_of_variance_with_slopes() -> None:
    """The variance of the random part is averaged over rows, whose slopes weigh by their predictor."""
    (intercept, slope) = SLOPES.random_effects
    covariance = intercept.sd * slope.sd * slope.correlations[0]
    days = np.array(DAYS)
    between = np.mean(intercept.sd**2 + 2 * days * covariance + days**2 * slope.sd**2)
    fixed = (SLOPES["days"].estimate * days).var()
    total = fixed + between + SLOPES.residual_sd**2
    assert SLOPES.r2_marginal == pytest.approx(fixed / total)
    assert SLOPES.r2_conditional == pytest.approx((fixed + between) / total)


def test_the_order_of_rows_and_the_names_of_groups_do_not_matter() -> None:
    shuffled = EXPERIMENT.sample(frac=1, random_state=3).assign(item=lambda frame: "x" + frame["item"])
    formula = "right ~ kind + (1 | person) + (1 + load | item)"
    first, second = (regress(formula, frame, family="binomial") for frame in (EXPERIMENT, shuffled))
    assert first.deviance == pytest.approx(second.deviance, abs=1e-7)
    assert first.fit.estimates == pytest.approx(second.fit.estimates, abs=1e-5)


def test_sum_coding_is_another_view_of_the_same_model() -> None:
    formula = "time ~ C(kind, contr.sum) * C(load, contr.sum) + length + (1 + load | person) + (1 | item)"
    coded = regress(formula, EXPERIMENT, reml=False)
    assert coded.deviance == pytest.approx(FULL.deviance, abs=1e-6)
    by_term = {test.term: test.statistic for test in FULL.test_terms()}
    coded_by_term = {test.term: test.statistic for test in coded.test_terms()}
    interaction = "C(kind, contr.sum):C(load, contr.sum)"
    assert coded_by_term[interaction] == pytest.approx(by_term["kind:load"], rel=1e-4)
    assert coded_by_term["C(kind, contr.sum)"] != pytest.approx(by_term["kind"], rel=1e-2)


# --- comparisons ---


def test_the_likelihood_ratio_of_nested_models() -> None:
    smaller = regress("time ~ kind + load + length + (1 + load | person) + (1 | item)", EXPERIMENT, reml=False)
    for test in (compare_models(smaller, FULL), compare_models(FULL, smaller)):
        assert test.statistic == pytest.approx(smaller.deviance - FULL.deviance)
        assert (test.df, test.note) == (2, "")
        assert test.p == pytest.approx(scipy_stats.chi2.sf(test.statistic, 2))
        assert test.test == "likelihood-ratio test, chi-squared"
    intercepts = regress("time ~ kind * load + length + (1 | person) + (1 | item)", EXPERIMENT, reml=False)
    assert "p is too large" in compare_models(intercepts, FULL).note


def test_a_bootstrap_says_the_same_where_groups_are_many() -> None:
    small, large = (
        regress(
            f"reaction ~ {fixed} + (1 | person)",
            {**SLEEP, "noise": np.random.default_rng(3).normal(size=180)},
            reml=False,
        )
        for fixed in ("days", "days + noise")
    )
    test = compare_models(small, large, method="bootstrap", draws=39)
    assert test.test == "likelihood-ratio test, parametric bootstrap, 39 draws"
    # Three standard errors of a share of 39 draws.
    assert test.p == pytest.approx(compare_models(small, large).p, abs=0.24)
    assert test == compare_models(small, large, method="bootstrap", draws=39)


@pytest.mark.parametrize(
    ("formula", "changes", "message"),
    [
        (
            "time ~ kind + (1 + load | person) + (1 | item)",
            {"reml": True},
            "by REML, the other by ML|by ML, the other by REML",
        ),
        ("right ~ kind + (1 | person)", {"family": "binomial"}, "binomial"),
        ("log(time + 9) ~ kind + (1 | person)", {}, "different outcomes"),
        ("time ~ kind * load + length + (1 + load | item) + (1 | person)", {}, "same number of parameters"),
        ("time ~ kind + (1 + length | person) + (1 | item)", {}, "by person of .* are not in the larger"),
        ("time ~ kind + length:load + (1 | person)", {}, "fixed effects of .* are not among"),
    ],
)
def test_models_that_cannot_be_compared(formula: str, changes: dict, message: str) -> None:
    other = regress(formula, EXPERIMENT, **{"reml": False, **changes})
    with pytest.raises(MeasureError, match=message):
        compare_models(other, FULL)


def test_restricted_likelihoods_of_different_fixed_effects_are_refused() -> None:
    plain = regress("reaction ~ 1 + (1 + days | person)", SLEEP)
    with pytest.raises(MeasureError, match="fit both with reml=False"):
        compare_models(plain, SLOPES)
    intercepts = regress("reaction ~ days + (1 | person)", SLEEP)
    assert compare_models(intercepts, SLOPES).df == 2


# --- means ---


def test_marginal_means_average_the_other_factors_evenly() -> None:
    means = estimate_means(FULL, "kind")
    names, estimates = FULL.fit.fixed.names, FULL.fit.estimates
    by_name = dict(zip(names, estimates.tolist(), strict=True))
    length = by_name["length"] * EXPERIMENT["length"].mean()
    masked = (
        by_name["Intercept"] + by_name["kind[T.masked]"] + length
        + (by_name["load[T.low]"] + by_name["kind[T.masked]:load[T.low]"]) / 2
    )  # fmt: skip
    assert [mean.name for mean in means.means] == ["causal", "masked", "ngram"]
    assert means.means[1].estimate == pytest.approx(masked)
    first = means.contrasts[0]
    assert (first.name, first.estimate) == ("causal - masked", pytest.approx(means.means[0].estimate - masked))
    assert "Tukey's correction for 3 pairs" in first.test
    assert max(map(len, str(means).splitlines())) <= 80
    assert len(means.to_frame()) == 6


def test_tukeys_contrasts_of_independent_groups_are_tukeys() -> None:
    """With a random effect without variance the contrasts are those of a one-way analysis of variance."""
    generator = np.random.default_rng(8)
    group = np.repeat(["a", "b", "c"], 20)
    y = generator.normal(size=60) + (group == "c")
    # Each level of the random factor has the same mean in each group: its variance is 0.
    item = np.tile(np.arange(4), 15)
    for level in "abc":
        for k in range(4):
            rows = (group == level) & (item == k)
            y[rows] += y[group == level].mean() - y[rows].mean()
    fit = regress("y ~ group + (1 | item)", {"y": y, "group": group, "item": item})
    assert fit.is_singular
    assert "Singular fit" in str(fit)
    expected = scipy_stats.tukey_hsd(*(y[group == level] for level in "abc"))
    means = estimate_means(fit, "group")
    for contrast, (i, j) in zip(means.contrasts, [(0, 1), (0, 2), (1, 2)], strict=True):
        assert contrast.estimate == pytest.approx(expected.statistic[i, j])
        assert contrast.se == pytest.approx(np.sqrt(2 / 20 * sum(y[group == g].var() * 20 for g in "abc") / 57))
    plain = linear_regression(y, {"b": group == "b", "c": group == "c"})
    assert plain.p == pytest.approx(fit.test_terms()[0].p, rel=0.05)


def test_holms_and_no_correction() -> None:
    raw, holm = (estimate_means(FULL, "kind", correction=name).contrasts for name in ("none", "holm"))
    assert [c.p for c in raw] == pytest.approx([2 * scipy_stats.t.sf(abs(c.estimate / c.se), c.df) for c in raw])
    smallest = min(range(3), key=lambda k: raw[k].p)
    assert holm[smallest].p == pytest.approx(min(1, 3 * raw[smallest].p))
    assert "Bonferroni" in holm[0].interval
    with pytest.raises(MeasureError, match="'length' is not a factor of the model; its factors are kind, load"):
        estimate_means(FULL, "length")


# --- intervals ---


def test_the_ends_of_a_profile_interval_are_rejected_at_its_level() -> None:
    intervals = estimate_intervals(SLOPES, level=0.9)
    fit = regress("reaction ~ days + (1 + days | person)", SLEEP, reml=False)
    allowed = scipy_stats.chi2.ppf(0.9, 1)
    days = intervals["days"]
    assert days.method == "0.9 profile likelihood"
    for end in (days.low, days.high):
        held = {**SLEEP, "reaction": np.array(REACTION) - end * np.array(DAYS)}
        held_fit = regress("reaction ~ 1 + (1 + days | person)", held, reml=False)
        assert held_fit.deviance - fit.deviance == pytest.approx(allowed, abs=1e-3)
    assert intervals["sd: person: days"].low < fit.random_effects[1].sd < intervals["sd: person: days"].high
    with pytest.raises(KeyError, match="no parameter 'nothing'"):
        intervals["nothing"]


def test_the_residual_interval_of_a_balanced_design_is_near_the_exact_one() -> None:
    intervals = estimate_intervals(regress("reaction ~ days + (1 | person)", SLEEP))
    residual = intervals["sd: residual"]
    squares = regress("reaction ~ days + (1 | person)", SLEEP).residual_sd ** 2 * 161
    exact = [np.sqrt(squares / scipy_stats.chi2.ppf(q, 161)) for q in (0.975, 0.025)]
    assert (residual.low, residual.high) == pytest.approx(tuple(exact), rel=0.01)


def test_a_profile_interval_of_a_model_without_predictors() -> None:
    interval = estimate_intervals(regress("reaction ~ 1 + (1 | person)", SLEEP))["Intercept"]
    means = np.reshape(REACTION, (18, 10)).mean(axis=1)
    # Balanced data: the likelihood ratio of the mean of the people's means.
    half = np.sqrt(18 * means.var() / 18 * (np.exp(scipy_stats.chi2.ppf(0.95, 1) / 18) - 1))
    assert (interval.low, interval.high) == pytest.approx((means.mean() - half, means.mean() + half), abs=0.01)


def test_a_standard_deviation_near_zero_has_an_interval_from_zero() -> None:
    noise = {**SLEEP, "y": np.random.default_rng(2).normal(size=180)}
    interval = estimate_intervals(regress("y ~ 1 + (1 | person)", noise))["sd: person: Intercept"]
    assert interval.low == 0
    assert 0 < interval.high < 1


def test_bootstrap_intervals_are_near_those_of_wald() -> None:
    fit = regress("right ~ kind + (1 | person)", EXPERIMENT, family="binomial")
    intervals = estimate_intervals(fit, method="bootstrap", draws=60, seed=4)
    effect, interval = fit["kind[T.ngram]"], intervals["kind[T.ngram]"]
    assert interval.method == "0.95 parametric bootstrap, percentiles, 60 draws"
    assert (interval.low, interval.high) == pytest.approx((effect.low, effect.high), abs=0.35)
    assert len(intervals.to_frame()) == 4


def test_simulated_outcomes_have_the_variance_of_the_model() -> None:
    generator = np.random.default_rng(0)
    draws = np.array([simulate_outcome(SLOPES.fit, generator) for _ in range(2000)])
    table = np.column_stack([np.ones(10), np.arange(10)])
    expected = table @ SLOPES.fit.covariances[0] @ table.T + SLOPES.residual_sd**2 * np.eye(10)
    assert np.cov(draws[:, :10].T) == pytest.approx(expected, rel=0.2, abs=150)
    assert draws[:, :10].mean(axis=0) == pytest.approx(table @ SLOPES.fit.estimates, abs=4)


# --- the search ---


def test_a_minimum_is_found_from_a_saddle() -> None:
    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        return float((x[0] ** 2 - 1) ** 2 + x[1] ** 2), np.array([4 * x[0] * (x[0] ** 2 - 1), 2 * x[1]])

    found = minimise(function, np.array([0.0, 0.5]))
    assert abs(found.x) == pytest.approx([1, 0], abs=1e-6)
    assert found.hessian == pytest.approx(np.diag([8, 2]), abs=1e-4)


def test_a_gradient_that_is_wrong_is_no_convergence() -> None:
    with pytest.raises(MeasureError, match="did not converge.*standardise the predictors"):
        minimise(lambda x: (float(x @ x), 2 * x + np.array([1.0, -1.0])), np.ones(2))


def test_groups_that_differ_without_bound() -> None:
    rows = {"y": np.repeat([0, 1] * 5, 50), "item": np.repeat(np.arange(10), 50)}
    with pytest.raises(Undefined, match="grows without bound"):
        regress("y ~ 1 + (1 | item)", rows, family="binomial")


# --- former names ---


def test_the_former_functions_give_the_same_fits_and_say_what_they_are_called_now() -> None:
    columns = draw_columns()
    rows = {name: values.tolist() for name, values in columns.items()}
    groups = {"item": rows["item"], "kind": rows["kind"]}
    with pytest.warns(DeprecationWarning, match=r"acceptability.stats.regress"):
        linear = mixed_linear(rows["y"], {"x": rows["x"]}, groups)
    with pytest.warns(DeprecationWarning, match=r"acceptability.stats.regress"):
        logistic = mixed_logistic(rows["right"], {"x": rows["x"]}, groups)
    for former, outcome, family in ((linear, "y", "gaussian"), (logistic, "right", "binomial")):
        fit = regress(f"{outcome} ~ x + (1 | item) + (1 | kind)", rows, family=family)
        assert former["x"].estimate == pytest.approx(fit["x"].estimate)
        assert former.criterion == pytest.approx(fit.deviance)
        by_group = {effect.group: effect.sd for effect in fit.random_effects}
        assert {effect.name: effect.sd for effect in former.random_intercepts} == pytest.approx(by_group)


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ open('x') + (1 | g)",
        "y ~ x.__class__ + (1 | g)",
        "y ~ I(eval('1')) + (1 | g)",
        "np.load('x') ~ 1 + (1 | g)",
    ],
)
def test_a_formula_calls_no_function_but_transforms(formula: str) -> None:
    with pytest.raises(MeasureError, match="functions of a formula are C, I"):
        regress(formula, {"y": [1.0, 2.0], "x": [0.0, 1.0], "g": ["a", "b"]})
