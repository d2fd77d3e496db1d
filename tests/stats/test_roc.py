"""DeLong's variance and test against pROC (golden/effects), brute force and simulation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from acceptability.errors import MeasureError, Undefined
from acceptability.stats import area_under_curve, delong_test

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "effects" / "effects.json").read_text(encoding="utf-8"))[
    "auc"
]


@pytest.mark.parametrize(
    ("scores", "labels", "curve"),
    [
        ("score", "label", "curve_score"),
        ("rival", "label", "curve_rival"),
        ("other_score", "other_label", "curve_other"),
    ],
)
def test_areas_and_variances_are_those_of_proc(scores: str, labels: str, curve: str) -> None:
    ours = area_under_curve(GOLDEN[scores], GOLDEN[labels])
    assert (ours.value, ours.variance) == pytest.approx((GOLDEN[curve]["auc"], GOLDEN[curve]["variance"]), abs=1e-9)
    assert ours.value == pytest.approx(roc_auc_score(GOLDEN[labels], GOLDEN[scores]), abs=1e-12)
    assert ours.n_positive + ours.n_negative == len(GOLDEN[scores])


def test_the_paired_test_is_that_of_proc() -> None:
    golden, test = GOLDEN["paired"], delong_test(GOLDEN["score"], GOLDEN["rival"], GOLDEN["label"])
    assert (test.z, test.p, test.low, test.high) == pytest.approx(
        (golden["z"], golden["p"], golden["low"], golden["high"]), abs=1e-9
    )
    back = delong_test(GOLDEN["rival"], GOLDEN["score"], GOLDEN["label"])
    assert (back.z, back.p, back.covariance) == pytest.approx((-test.z, test.p, test.covariance), abs=1e-12)


def test_placements_are_counted_over_all_pairs() -> None:
    generator = np.random.default_rng(4)
    scores, labels = generator.integers(0, 6, 40).astype(float), np.repeat([0.0, 1.0], [25, 15])
    better = scores[labels == 1][:, None] - scores[labels == 0][None, :]
    wins = (better > 0) + 0.5 * (better == 0)
    expected = wins.mean(axis=1).var(ddof=1) / 15 + wins.mean(axis=0).var(ddof=1) / 25
    ours = area_under_curve(scores, labels)
    assert (ours.value, ours.variance) == pytest.approx((wins.mean(), expected), abs=1e-12)


def test_false_alarms_are_one_in_twenty() -> None:
    generator, labels, rounds = np.random.default_rng(5), np.repeat([0.0, 1.0], 60), 800
    hits = 0
    for _ in range(rounds):
        shared = generator.normal(size=120)
        first, second = (0.8 * labels + shared + generator.normal(size=120) for _ in range(2))
        hits += delong_test(first, second, labels).p < 0.05
    assert 0.03 <= hits / rounds <= 0.07


def test_what_has_no_test() -> None:
    with pytest.raises(Undefined, match="order acceptable and unacceptable sentences alike"):
        delong_test([1, 2, 3, 4], [2, 4, 6, 8], [0, 1, 0, 1])
    with pytest.raises(Undefined, match="the acceptable sentences has 1"):
        area_under_curve([1, 2, 3], [0, 0, 1])
    with pytest.raises(MeasureError, match="a label is 2"):
        area_under_curve([1, 2, 3], [0, 2, 1])
