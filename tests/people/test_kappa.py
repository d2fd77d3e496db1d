"""Kappas, alpha and intraclass correlations against R (golden/effects), statsmodels and ordinary least squares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.inter_rater import aggregate_raters, cohens_kappa
from statsmodels.stats.inter_rater import fleiss_kappa as theirs

from acceptability.errors import Undefined
from acceptability.people.kappa import cohen_kappa, fleiss_kappa
from acceptability.people.reliability import compute_icc, compute_mean_squares, cronbach_alpha, cronbach_alpha_effect
from acceptability.stats.effects.effect_sizes import ICC_KINDS

GOLDEN: dict[str, Any] = json.loads(
    (Path(__file__).parents[1] / "golden" / "effects" / "effects.json").read_text(encoding="utf-8")
)
VOTES = np.array(GOLDEN["agreement"]["votes"], dtype=float).T
RELIABILITY = GOLDEN["reliability"]
COMPLETE = np.array(RELIABILITY["ratings"], dtype=float).T
HOLED = np.array(
    [[np.nan if cell is None else cell for cell in row] for row in RELIABILITY["with_missing"]], dtype=float
).T


def test_cohens_kappa_is_that_of_psych_and_of_statsmodels() -> None:
    golden, ours = GOLDEN["agreement"]["cohen"], cohen_kappa(VOTES[0], VOTES[1])
    assert (ours.value, ours.se, ours.low, ours.high) == pytest.approx(
        (golden["kappa"], golden["se"], golden["low"], golden["high"]), abs=1e-9
    )
    table = np.array([[((VOTES[0] == a) & (VOTES[1] == b)).sum() for b in (1, 2, 3)] for a in (1, 2, 3)])
    result = cohens_kappa(table)
    assert (ours.value, ours.se, ours.z) == pytest.approx((result.kappa, result.std_kappa, result.z_value), abs=1e-12)
    assert ours.p == pytest.approx(result.pvalue_two_sided, rel=1e-9)


def test_a_missing_answer_leaves_a_sentence_out_of_cohens_kappa() -> None:
    holed = VOTES[0].copy()
    holed[3] = np.nan
    rest = np.delete(np.arange(VOTES.shape[1]), 3)
    assert cohen_kappa(holed, VOTES[1]) == cohen_kappa(VOTES[0, rest], VOTES[1, rest])


def test_fleiss_kappa_is_that_of_r_and_of_statsmodels() -> None:
    golden, ours = GOLDEN["agreement"]["fleiss"], fleiss_kappa(VOTES)
    assert (ours.value, ours.z, ours.p) == pytest.approx((golden["kappa"], golden["z"], golden["p"]), rel=1e-9)
    assert ours.value == pytest.approx(theirs(aggregate_raters(VOTES.T)[0]), abs=1e-12)
    # The jackknife, with each sentence left out by hand.
    left_out = np.array([theirs(aggregate_raters(np.delete(VOTES, i, axis=1).T)[0]) for i in range(50)])
    assert ours.se == pytest.approx(np.sqrt(49 / 50 * ((left_out - left_out.mean()) ** 2).sum()), abs=1e-12)


def test_fleiss_kappa_with_missing_answers_weights_sentences_by_their_answers() -> None:
    """By hand: two sentences of three answers and one of two, of which one answer pair agrees."""
    values = np.array([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, np.nan]])
    observed = (3 * 1.0 + 3 * (1 / 3) + 2 * 0.0) / 8
    expected = (5 / 8) ** 2 + (3 / 8) ** 2
    assert fleiss_kappa(values).value == pytest.approx((observed - expected) / (1 - expected), abs=1e-12)
    # A sentence with one answer says nothing about agreement.
    alone = np.column_stack([values, [1.0, np.nan, np.nan]])
    assert fleiss_kappa(alone) == fleiss_kappa(values)


def test_the_interval_of_fleiss_kappa_covers() -> None:
    """Four raters, who each give the true answer three times in four, else toss a coin; 60 sentences."""
    generator, hits, rounds = np.random.default_rng(8), 0, 300
    for _ in range(rounds):
        truth = generator.integers(0, 2, 60)
        values = np.where(generator.random((4, 60)) < 0.75, truth, generator.integers(0, 2, (4, 60))).astype(float)
        kappa = fleiss_kappa(values)
        hits += kappa.low <= 0.75**2 <= kappa.high
    assert 0.91 <= hits / rounds <= 0.98


def test_undefined_kappas() -> None:
    same = np.ones(4)
    with pytest.raises(Undefined, match="one and the same answer"):
        cohen_kappa(same, same)
    with pytest.raises(Undefined, match="share 1 sentences"):
        cohen_kappa(np.array([1.0, np.nan]), np.array([1.0, 0.0]))
    with pytest.raises(Undefined, match="all answers are the same"):
        fleiss_kappa(np.ones((3, 4)))
    with pytest.raises(Undefined, match="two such sentences"):
        fleiss_kappa(np.ones((3, 1)))
    with pytest.raises(Undefined, match="no standard error"):
        fleiss_kappa(np.array([[1.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))


@pytest.mark.parametrize("row", RELIABILITY["icc"], ids=lambda row: row["type"])
def test_intraclass_correlations_and_intervals_are_those_of_psych(row: dict[str, Any]) -> None:
    kind = next(
        kind for kind in ICC_KINDS if kind == f"ICC({row['type'][3]},{'k' if row['type'].endswith('k') else 1})"
    )
    ours = compute_icc(COMPLETE, kind)
    expected = row["ICC"], row["lower bound"], row["upper bound"]
    assert (ours.value, ours.low, ours.high) == pytest.approx(expected, abs=1e-9)


def test_alpha_and_its_interval_are_those_of_psych() -> None:
    golden, ours = RELIABILITY["alpha"], cronbach_alpha_effect(COMPLETE)
    expected = golden["raw"], golden["feldt_low"], golden["feldt_high"]
    assert (ours.value, ours.low, ours.high) == pytest.approx(expected, abs=1e-9)
    assert cronbach_alpha(HOLED) == pytest.approx(RELIABILITY["missing_alpha"]["raw"], abs=1e-9)


def test_intraclass_correlations_with_missing_answers_are_near_those_of_lme4() -> None:
    """lme4's are by restricted maximum likelihood, which agrees with sums of squares up to a few thousandths here."""
    golden = RELIABILITY["missing_variances"]
    kinds = {"icc2": "ICC(2,1)", "icc2k": "ICC(2,k)", "icc3": "ICC(3,1)"}
    for name, kind in kinds.items():
        assert compute_icc(HOLED, kind).value == pytest.approx(golden[name], abs=6e-3)


def _residual_ss(columns: list[np.ndarray], y: np.ndarray) -> float:
    table = np.column_stack(columns)
    return float(((y - table @ np.linalg.lstsq(table, y, rcond=None)[0]) ** 2).sum())


def test_mean_squares_with_missing_answers_solve_hendersons_equations() -> None:
    """Method 3 with sums of squares by least squares on dummies, and expectations by traces."""
    given = ~np.isnan(HOLED)
    raters, sentences = np.nonzero(given)
    y = HOLED[given]
    zr = np.eye(len(HOLED))[raters]
    zs = np.eye(HOLED.shape[1])[sentences]
    n_answers, k, n = len(y), len(HOLED), HOLED.shape[1]
    both, only_r, only_s = _residual_ss([zr, zs], y), _residual_ss([zr], y), _residual_ss([zs], y)
    error = both / (n_answers - n - k + 1)
    left = [np.eye(n_answers) - z @ np.linalg.pinv(z) for z in (zr, zs)]
    sentence = (only_r - both - (n - 1) * error) / np.trace(zs.T @ left[0] @ zs)
    rater = (only_s - both - (k - 1) * error) / np.trace(zr.T @ left[1] @ zr)
    squares = compute_mean_squares(HOLED)
    assert squares.error == pytest.approx(error, rel=1e-9)
    assert (squares.between - squares.error) / squares.k == pytest.approx(sentence, rel=1e-9)
    assert (squares.raters - squares.error) / squares.n == pytest.approx(rater, rel=1e-9)


def test_alpha_above_1_is_refused() -> None:
    values = np.array([[1.0, 5, 7, 3], [2, 4, 6, np.nan], [1, 6, 7, 2]])
    standard = (values - np.nanmean(values, axis=1, keepdims=True)) / np.nanstd(values, axis=1, ddof=1, keepdims=True)
    with pytest.raises(Undefined, match="contradict each other"):
        cronbach_alpha(standard)


def test_raters_without_a_common_sentence_cannot_be_compared() -> None:
    values = np.full((4, 6), np.nan)
    values[:2, :3], values[2:, 3:] = [[1, 2, 3], [1, 3, 2]], [[4, 5, 6], [4, 6, 5]]
    with pytest.raises(Undefined, match="share no sentences"):
        compute_mean_squares(values)
    with pytest.raises(Undefined, match="share 0 sentences"):
        cronbach_alpha(values)
