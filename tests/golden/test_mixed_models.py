"""`regress` beside lme4, lmerTest, ordinal and emmeans (mixed/SOURCES.md says how their numbers were made).

Tolerances: 1e-3 relative or 1e-4 on the standardised scale, log-likelihoods 1e-4, degrees of freedom 1 %.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.stats import chi2

from acceptability.stats import regress
from acceptability.stats.mixed.marginal_means import estimate_means
from acceptability.stats.mixed.mixed_intervals import estimate_intervals

FOLDER = Path(__file__).parent / "mixed"
FAMILIES = {"linear": "gaussian", "logistic": "binomial", "ordinal": "ordinal"}
RELATIVE, ABSOLUTE = 1e-3, 1e-4
GROUPS = ["Subject", "plate", "sample", "herd", "period", "s", "d", "dept", "service", "judge", "bottle"]


def read_golden(name: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


GOLDEN = {name: read_golden(name) for name in FAMILIES}
FITS = {f"{kind}: {fit['name']}": (kind, fit) for kind in FAMILIES for fit in GOLDEN[kind]["fits"]}
LINEAR = [name for name, (kind, _) in FITS.items() if kind == "linear"]
TESTS = {f"{kind}: {test['name']}": (kind, test) for kind in FAMILIES for test in GOLDEN[kind]["tests"]}


@cache
def read_table(name: str) -> pandas.DataFrame:
    if name == "unbalanced":
        return read_table("experiment").query("kept == 1")
    return pandas.read_csv(FOLDER / "data" / f"{name}.csv", dtype=dict.fromkeys(GROUPS, str))


@cache
def fit_model(data: str, formula: str, family: str, reml: bool = True) -> Any:
    """Return a fit; several tests look at the same one."""
    return regress(formula, read_table(data), family=family, reml=reml)


def fit_golden(name: str) -> tuple[Any, dict[str, Any]]:
    kind, fit = FITS[name]
    family = FAMILIES[kind] + {"probit": "-probit"}.get(fit.get("link", ""), "")
    return fit_model(fit["data"], fit["formula"], family, fit.get("reml", True)), fit


def to_r_name(name: str) -> str:
    """Return R's name of a coefficient: conditionlong for condition[T.long]."""
    return re.sub(r"\[T\.([^]]*)\]", r"\1", name).replace("Intercept", "(Intercept)")


def outcome_sd(fit: dict[str, Any]) -> float:
    """The unit of the standardised scale; log-odds have none."""
    column = read_table(fit["data"])[fit["formula"].split(" ~ ")[0]]
    return float(column.std()) if fit["name"] in {it["name"] for it in GOLDEN["linear"]["fits"]} else 1.0


def near(expected: float, unit: float = 1.0) -> Any:
    return pytest.approx(expected, rel=RELATIVE, abs=ABSOLUTE * unit)


@pytest.mark.parametrize("name", FITS)
def test_estimates_and_errors_are_those_of_lme4(name: str) -> None:
    result, fit = fit_golden(name)
    unit = outcome_sd(fit)
    assert [to_r_name(it.name) for it in result.coefficients] == [row["term"] for row in fit["fixed"]]
    for ours, row in zip(result.coefficients, fit["fixed"], strict=True):
        assert ours.estimate == near(row["estimate"], unit)
        # Relative alone: a standard error is never near 0.
        assert ours.se == pytest.approx(row["se"], rel=RELATIVE)
        assert ours.statistic == near(row.get("t", row.get("z")))
        # The p of a large statistic is the small tail of the same distribution.
        assert ours.p == pytest.approx(row["p"], rel=0.02, abs=1e-6)


@pytest.mark.parametrize("name", FITS)
def test_variance_components_are_those_of_lme4(name: str) -> None:
    result, fit = fit_golden(name)
    unit = outcome_sd(fit)
    sds = {(effect.group, to_r_name(effect.name)): effect.sd for effect in result.random_effects}
    # clmm does not say whether a fit is singular; one standard deviation is 0 in one of its fits.
    assert result.is_singular == fit.get("singular", name == "ordinal: wine_crossed")
    for part in fit["random"]:
        if part["kind"] == "residual":
            assert result.residual_sd == pytest.approx(part["sd"], rel=RELATIVE)
        elif part["kind"] == "sd":
            assert sds.pop((part["group"], part["term"])) == near(part["sd"], unit)
    assert sds == {}


@pytest.mark.parametrize("name", FITS)
def test_correlations_are_those_of_lme4(name: str) -> None:
    result, fit = fit_golden(name)
    ours = {}
    for effect in result.random_effects:
        before = [other.name for other in result.random_effects if other.group == effect.group]
        for other, value in zip(before, effect.correlations, strict=False):
            if value is not None:
                ours[effect.group, to_r_name(other), to_r_name(effect.name)] = value
    expected = {
        (part["group"], part["term"], part["other"]): part["value"]
        for part in fit["random"]
        if part["kind"] == "correlation"
    }
    assert set(ours) == set(expected)
    for pair, value in expected.items():
        assert ours[pair] == near(value)


@pytest.mark.parametrize("name", FITS)
def test_likelihoods_are_those_of_lme4(name: str) -> None:
    result, fit = fit_golden(name)
    assert result.log_likelihood == pytest.approx(fit["loglik"], abs=1e-4)
    assert result.deviance == pytest.approx(fit.get("criterion", -2 * fit["loglik"]), abs=2e-4)
    assert result.aic == pytest.approx(fit["aic"], abs=2e-4)
    assert result.fit.parameters == fit["parameters"]
    assert result.n == fit["rows"]


@pytest.mark.parametrize("name", [name for name, (kind, _) in FITS.items() if kind == "ordinal"])
def test_thresholds_are_those_of_ordinal(name: str) -> None:
    result, fit = fit_golden(name)
    assert [it.name for it in result.thresholds] == [row["term"] for row in fit["thresholds"]]
    for ours, row in zip(result.thresholds, fit["thresholds"], strict=True):
        assert ours.estimate == near(row["estimate"])
        assert ours.se == pytest.approx(row["se"], rel=RELATIVE)


@pytest.mark.parametrize("name", LINEAR)
def test_degrees_of_freedom_are_those_of_lmertest(name: str) -> None:
    result, fit = fit_golden(name)
    for ours, row in zip(result.coefficients, fit["fixed"], strict=True):
        assert ours.df == pytest.approx(row["df"], rel=0.01)
        assert ours.p == pytest.approx(row["p"], rel=0.02, abs=1e-6)


@pytest.mark.parametrize("name", [name for name in LINEAR if "anova" in FITS[name][1]])
def test_f_tests_are_those_of_lmertest(name: str) -> None:
    _, fit = FITS[name]
    # lmerTest's type III tests are those of sum coding, where there is an interaction.
    formula = re.sub(r"condition \* kind", "C(condition, contr.sum) * C(kind, contr.sum)", fit["formula"])
    result = fit_model(fit["data"], formula, "gaussian", fit["reml"])
    ours = {re.sub(r"C\((\w+), contr.sum\)", r"\1", test.term): test for test in result.test_terms()}
    for row in fit["anova"]["rows"]:
        test = ours.pop(row["term"])
        assert test.statistic == pytest.approx(row["f"], rel=RELATIVE)
        assert test.df == row["numerator_df"]
        assert test.denominator_df == pytest.approx(row["denominator_df"], rel=0.01)
        assert test.p == pytest.approx(row["p"], rel=0.02, abs=1e-6)
    assert ours == {}


@pytest.mark.parametrize("name", TESTS)
def test_likelihood_ratios_are_those_of_lme4(name: str) -> None:
    kind, test = TESTS[name]
    full, reduced = (fit_model(test["data"], test[key], FAMILIES[kind], False) for key in ("full", "reduced"))
    assert full.fit.parameters - reduced.fit.parameters == test["df"]
    statistic = reduced.deviance - full.deviance
    assert statistic == pytest.approx(test["statistic"], rel=RELATIVE, abs=1e-4)
    assert chi2.sf(statistic, test["df"]) == pytest.approx(test["p"], rel=1e-3)


def test_nothing_of_the_golden_output_is_left_out() -> None:
    data = {fit["data"] for _, fit in FITS.values()}
    assert data == {"sleepstudy", "penicillin", "cbpp", "insteval", "experiment", "unbalanced", "wine"}
    assert sum(fit.get("singular", False) for _, fit in FITS.values()) == 2
    assert len(read_table("insteval")) == 3297
    assert np.mean(read_table("experiment")["reaction_time"]) > 300


# --- marginal means ---

MEANS = {name: fit["means"] for name, (_, fit) in FITS.items() if "means" in fit}
for _number, _means in enumerate(GOLDEN["ordinal"]["means"]):
    MEANS[f"ordinal: {_number}"] = _means


def fit_means(name: str) -> Any:
    if name in FITS:
        return fit_golden(name)[0]
    return fit_model(MEANS[name]["data"], MEANS[name]["formula"], "ordinal")


@pytest.mark.parametrize("name", MEANS)
def test_marginal_means_are_those_of_emmeans(name: str) -> None:
    expected = MEANS[name]
    ours = estimate_means(fit_means(name), expected["factor"])
    low, high = ("lower.CL", "upper.CL") if "lower.CL" in expected["means"][0] else ("asymp.LCL", "asymp.UCL")
    for mean, row in zip(ours.means, expected["means"], strict=True):
        assert mean.name == str(row[expected["factor"]])
        assert mean.estimate == near(row["emmean"], ours.means[0].se)
        assert mean.se == pytest.approx(row["SE"], rel=RELATIVE)
        assert [mean.low, mean.high] == pytest.approx([row[low], row[high]], rel=RELATIVE, abs=mean.se * 1e-2)
        if mean.df is not None:
            assert mean.df == pytest.approx(row["df"], rel=0.01)


@pytest.mark.parametrize("correction", ["tukey", "holm"])
@pytest.mark.parametrize("name", MEANS)
def test_contrasts_are_those_of_emmeans(name: str, correction: str) -> None:
    expected = MEANS[name]
    if correction not in expected:
        correction = "tukey"
    ours = estimate_means(fit_means(name), expected["factor"], correction=correction)
    rows = expected[correction]
    low, high = ("lower.CL", "upper.CL") if "lower.CL" in rows[0] else ("asymp.LCL", "asymp.UCL")
    for contrast, row in zip(ours.contrasts, rows, strict=True):
        # emmeans writes period1 - period2 for a factor whose levels are numbers.
        assert contrast.name == row["contrast"].replace(expected["factor"], "")
        assert contrast.estimate == near(row["estimate"], contrast.se)
        assert contrast.se == pytest.approx(row["SE"], rel=RELATIVE)
        assert contrast.p == pytest.approx(row["p.value"], rel=5e-3, abs=1e-5)
        limits = pytest.approx([row[low], row[high]], rel=RELATIVE, abs=contrast.se * 1e-2)
        assert [contrast.low, contrast.high] == limits


# --- profile intervals ---

PROFILES = {name: (fit["data"], fit["formula"], fit["profile"]) for name, (_, fit) in FITS.items() if "profile" in fit}
for _number, _profile in enumerate(GOLDEN["ordinal"]["profiles"]):
    PROFILES[f"ordinal: {_number}"] = (_profile["data"], _profile["formula"], _profile)


def to_profile_name(parameter: str) -> str:
    """Return lme4's name of a parameter: sd_Days|Subject for "sd: Subject: Days"."""
    if parameter == "sd: residual":
        return "sigma"
    kind, *rest = parameter.split(": ")
    return f"sd_{to_r_name(rest[1])}|{rest[0]}" if kind == "sd" else to_r_name(parameter)


# A profile is dozens of fits: those of models without a closed form are slow.
SLOW = {"logistic: cbpp", "ordinal: 1"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in PROFILES]
)
def test_profile_intervals_are_those_of_r(name: str) -> None:
    data, formula, expected = PROFILES[name]
    result = fit_model(data, formula, FAMILIES[name.split(":")[0]], False)
    ours = {to_profile_name(it.parameter): (it.low, it.high) for it in estimate_intervals(result).intervals}
    rows = {row["term"]: (row["low"], row["high"]) for row in expected["intervals"] if row["term"][:4] != "cor_"}
    # R interpolates between the points of its profile.
    for term, (low, high) in rows.items():
        assert ours[term] == pytest.approx((low, high), rel=2e-3, abs=2e-4)
