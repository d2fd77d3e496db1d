"""Reliability against published examples, against second computations, and where it is undefined."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from acceptability.errors import MeasureError, Undefined
from acceptability.people import rate
from acceptability.people.kappa import cohen_kappa, fleiss_kappa
from acceptability.people.ratings import Ratings
from acceptability.people.reliability import (
    build_ceiling_rows,
    build_reliability_rows,
    cronbach_alpha,
    intraclass_correlations,
    krippendorff_alpha,
    leave_one_out_correlations,
    noise_ceiling,
    spearman_brown,
    split_half_reliability,
)
from acceptability.people.responses import responses_from_rows
from acceptability.types import Scores

NAN = np.nan
# Shrout and Fleiss (1979), Table 2: six targets rated by four judges; a row per judge here.
JUDGES = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float).T
# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", part C: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


def test_intraclass_correlations_of_shrout_and_fleiss() -> None:
    printed = {
        "ICC(1,1)": 0.17,
        "ICC(2,1)": 0.29,
        "ICC(3,1)": 0.71,
        "ICC(1,k)": 0.44,
        "ICC(2,k)": 0.62,
        "ICC(3,k)": 0.91,
    }
    result = intraclass_correlations(JUDGES)
    assert {name: round(value, 2) for name, value in result.items()} == printed


def test_intraclass_correlations_from_statsmodels_anova() -> None:
    """The mean squares come from another computation: a two-way analysis of variance."""
    formula = pytest.importorskip("statsmodels.formula.api")
    anova = pytest.importorskip("statsmodels.stats.anova")
    pandas = pytest.importorskip("pandas")
    k, n = JUDGES.shape
    frame = pandas.DataFrame(
        [{"y": JUDGES[j, t], "judge": f"j{j}", "target": f"t{t}"} for j in range(k) for t in range(n)]
    )
    table = anova.anova_lm(formula.ols("y ~ C(target) + C(judge)", frame).fit())
    squares = table["sum_sq"] / table["df"]
    between, raters, error = (float(squares[name]) for name in ("C(target)", "C(judge)", "Residual"))
    result = intraclass_correlations(JUDGES)
    assert result["ICC(3,1)"] == pytest.approx((between - error) / (between + (k - 1) * error), abs=1e-9)
    expected = (between - error) / (between + (k - 1) * error + k * (raters - error) / n)
    assert result["ICC(2,1)"] == pytest.approx(expected, abs=1e-9)


def test_icc_3k_equals_cronbachs_alpha() -> None:
    assert cronbach_alpha(JUDGES) == pytest.approx(intraclass_correlations(JUDGES)["ICC(3,k)"], abs=1e-12)
    covariance = np.cov(JUDGES)
    k = len(JUDGES)
    assert cronbach_alpha(JUDGES) == pytest.approx(
        k / (k - 1) * (1 - np.trace(covariance) / covariance.sum()), abs=1e-12
    )


@pytest.mark.parametrize(("level", "printed"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_krippendorffs_own_example(level: str, printed: float) -> None:
    assert round(krippendorff_alpha(OBSERVERS, level=level), 3) == printed


def alpha_by_pairs(values: np.ndarray, level: str) -> float:
    """Krippendorff's definition, pair by pair, through the matrix of coincidences."""
    units = [column[~np.isnan(column)] for column in values.T]
    units = [unit for unit in units if len(unit) > 1]
    points = np.unique(np.concatenate(units))
    coincidences = np.zeros((len(points), len(points)))
    for unit in units:
        for first, second in permutations(np.searchsorted(points, unit).tolist(), 2):
            coincidences[first, second] += 1 / (len(unit) - 1)
    counts = coincidences.sum(axis=0)

    def distance(c: int, k: int) -> float:
        if level == "nominal":
            return float(c != k)
        if level == "interval":
            return float((points[c] - points[k]) ** 2)
        low, high = min(c, k), max(c, k)
        return float((counts[low : high + 1].sum() - (counts[c] + counts[k]) / 2) ** 2)

    distances = np.array([[distance(c, k) for k in range(len(points))] for c in range(len(points))])
    n = counts.sum()
    expected = (np.outer(counts, counts) * distances).sum() / (n * (n - 1))
    return float(1 - (coincidences * distances).sum() / n / expected)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", range(4))
def test_krippendorff_by_its_definition(level: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(1, 5, (4, 15)).astype(float)
    values[generator.random(values.shape) < 0.3] = NAN
    assert krippendorff_alpha(values, level=level) == pytest.approx(alpha_by_pairs(values, level), abs=1e-9)


def noisy(people: int = 12, sentences: int = 30, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=sentences) + generator.normal(size=(people, sentences))


def test_split_half_by_a_second_computation() -> None:
    values = noisy()
    values[0, 3] = values[5, 7] = NAN
    generator = np.random.default_rng(7)
    corrected = []
    for _ in range(50):
        order = generator.permutation(12)
        first, second = (np.nanmean(values[part], axis=0) for part in (order[:6], order[6:]))
        r = stats.pearsonr(first, second).statistic
        corrected.append(2 * r / (1 + r))
    result = split_half_reliability(values, splits=50, seed=7)
    assert result.reliability == pytest.approx(np.mean(corrected), abs=1e-9)
    assert (result.low, result.high) == pytest.approx(np.quantile(corrected, [0.025, 0.975]), abs=1e-9)
    assert result == split_half_reliability(values, splits=50, seed=7)


def test_split_half_comes_near_alpha_where_the_design_is_complete() -> None:
    values = noisy(people=20, sentences=200)
    assert split_half_reliability(values, splits=300).reliability == pytest.approx(cronbach_alpha(values), abs=0.01)


def test_two_participants_have_one_split() -> None:
    values = noisy(people=2)
    r = stats.pearsonr(*values).statistic
    result = split_half_reliability(values, splits=40)
    assert (result.correlation, result.reliability) == pytest.approx((r, spearman_brown(r)), abs=1e-9)
    assert result.high - result.low == pytest.approx(0, abs=1e-12)


def test_leave_one_out_by_a_second_computation() -> None:
    values = noisy()
    values[2, :5] = NAN
    expected = []
    for index in range(len(values)):
        others = np.nanmean(np.delete(values, index, axis=0), axis=0)
        mine = ~np.isnan(values[index])
        expected.append(stats.pearsonr(values[index][mine], others[mine]).statistic)
    result = leave_one_out_correlations(values)
    assert result.correlations == pytest.approx(expected, abs=1e-9)
    assert result.mean == pytest.approx(np.mean(expected), abs=1e-9)


def test_a_constant_participant_has_no_correlation() -> None:
    values = np.array([[0.1, 0.1, 0.1], [1.0, 2.0, 3.0], [1.0, 2.0, 4.0]])
    assert leave_one_out_correlations(values).correlations[0] is None
    two = np.array([[0.1, 0.1, 0.1], [0.7, 2.3, 3.9]])
    with pytest.raises(Undefined):
        leave_one_out_correlations(two)


@given(st.floats(-1, 1))
def test_the_correction_keeps_order_sign_and_bounds(r: float) -> None:
    corrected = spearman_brown(r)
    assert -1 <= corrected <= 1
    assert corrected * r >= 0
    assert abs(corrected) >= abs(r) - 1e-12


@pytest.mark.parametrize("statistic", [cronbach_alpha, intraclass_correlations])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, NAN], [1.0, 2.0]], "two are needed|more answers than 3"),
        ([[NAN, NAN, NAN], [1.0, 2.0, 3.0], [1.0, 3.0, 2.0]], "one has none|share 0 sentences"),
        ([[1.0, 2.0]], "two participants and two sentences"),
        ([[1.0], [2.0]], "two participants and two sentences"),
        ([[1.0, 1.0], [2.0, 2.0]], "all sentences have the same"),
    ],
)
def test_undefined_for_incomplete_or_constant_tables(statistic, values: list[list[float]], message: str) -> None:
    with pytest.raises(Undefined, match=message):
        statistic(np.array(values))


def test_other_undefined_values() -> None:
    for values in ([[1.0, NAN], [NAN, 2.0]], [[3.0, 3.0], [3.0, 3.0]]):
        with pytest.raises(Undefined):
            krippendorff_alpha(np.array(values))
    with pytest.raises(MeasureError, match="level is 'ratio'"):
        krippendorff_alpha(OBSERVERS, level="ratio")
    with pytest.raises(Undefined, match="two participants"):
        split_half_reliability(np.array([[1.0, 2.0]]))
    with pytest.raises(Undefined, match="40 of 40 splits"):
        split_half_reliability(np.array([[1.0, 1.0], [2.0, 2.0]]), splits=40)
    with pytest.raises(MeasureError, match="splits is 1"):
        split_half_reliability(JUDGES, splits=1)


def test_the_ceiling_is_the_root_of_the_reliability() -> None:
    result = noise_ceiling(0.45, 0.81)
    assert (result.ceiling, result.share) == pytest.approx((0.9, 0.5), abs=1e-12)
    with pytest.raises(Undefined, match="people do not agree"):
        noise_ceiling(0.5, -0.1)
    with pytest.raises(MeasureError):
        noise_ceiling(0.5, 1.5)


def test_true_ratings_reach_the_ceiling() -> None:
    """What people's answers scatter around correlates with their means as the ceiling says."""
    generator = np.random.default_rng(3)
    truth = generator.normal(size=2000)
    values = truth + 2 * generator.normal(size=(10, 2000))
    r = stats.pearsonr(truth, values.mean(axis=0)).statistic
    assert noise_ceiling(r, split_half_reliability(values, splits=100).reliability).share == pytest.approx(1, abs=0.03)


def test_rows_give_the_reason_for_an_undefined_value() -> None:
    ratings = rate(responses_from_rows("toy", "likert", [[1, 2, 3], [1, 3, None], [2, 3, 7]]))
    rows = {row["name"]: row for row in build_reliability_rows(ratings, splits=40)}
    assert rows["leave-one-out, mean r"]["note"] is None
    # One missing answer takes neither alpha nor the intraclass correlation away.
    alpha = rows["Cronbach's alpha"]
    assert alpha["note"] == "1 of 9 answers missing: covariances of pairs"
    assert alpha["low"] < alpha["value"] < alpha["high"]
    assert alpha["interval"] == "95 %, F (Feldt 1965), approximate"
    assert rows["ICC(2,1)"]["value"] is not None
    assert rows["ICC(2,1)"]["interval"].endswith("(McGraw and Wong 1996), approximate")
    split = next(row for name, row in rows.items() if name.startswith("split-half"))
    assert split["interval"] == "95 % range over random splits"
    constant = Ratings("toy", "likert", (), ("a", "b"), np.array([[1.0, 1.0], [2.0, 2.0]]), {}, ())
    assert "all sentences have the same" in build_reliability_rows(constant, splits=40)[2]["note"]


def test_kappas_are_shown_for_yes_and_no() -> None:
    answers = [[1, 0, 1, 1, 0, 1], [1, 0, 0, 1, 0, 1]]
    rows = {
        row["name"]: row for row in build_reliability_rows(rate(responses_from_rows("t", "yes-no", answers)), splits=40)
    }
    cohen = cohen_kappa(*np.array(answers, dtype=float))
    assert (rows["Cohen's kappa"]["value"], rows["Cohen's kappa"]["high"]) == (cohen.value, cohen.high)
    assert rows["Fleiss' kappa"]["value"] == fleiss_kappa(np.array(answers, dtype=float)).value
    assert "p = " in rows["Fleiss' kappa"]["note"]
    scale = build_reliability_rows(
        rate(responses_from_rows("t", "likert", [[1, 2, 4], [1, 3, 5], [2, 3, 7]])), splits=40
    )
    assert not [row for row in scale if "kappa" in str(row["name"])]


def test_models_against_the_ceiling() -> None:
    ratings = rate(responses_from_rows("toy", "likert", np.round(noisy(8, 20), 3).tolist()))
    scores = Scores({row.sentence.id: float(index) for index, row in enumerate(ratings.rows)}, "m")
    flat = Scores({row.sentence.id: 1.0 for row in ratings.rows}, "flat")
    first, second = build_ceiling_rows(ratings, [scores, flat], splits=40)
    r = stats.pearsonr(range(20), ratings.means).statistic
    reliability = split_half_reliability(ratings.values, splits=40).reliability
    assert (first["correlation"], first["share"]) == pytest.approx((r, r / reliability**0.5), abs=1e-9)
    assert second["share"] is None
    assert "same value" in second["reason"]


def test_rows_note_exclusions() -> None:
    ratings = rate(responses_from_rows("toy", "yes-no", [[1, 1, 1, 1], [1, 0, 1, 0], [1, 0, 0, 0]]))
    rows = {row["name"]: row for row in build_reliability_rows(ratings, splits=40)}
    assert rows["leave-one-out, mean r"]["note"] == "1 participants without a correlation left out"
