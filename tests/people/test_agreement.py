"""Agreement of raters with labels, their majority and each other, compared with scikit-learn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

from acceptability.errors import MeasureError, Undefined
from acceptability.people.reliability import (
    Agreement,
    build_agreement_rows,
    compute_agreement,
    compute_rater_agreement,
    majority_answers,
    summarise_agreement,
)
from acceptability.people.responses import Responses, responses_from_rows
from acceptability.types import Sentence

NAN = np.nan


def labelled(values: list[list[float | None]], labels: list[int]) -> Responses:
    plain = responses_from_rows("toy", "yes-no", values)
    return replace(plain, sentences=tuple(Sentence(str(i), "x", label) for i, label in enumerate(labels)))


def test_agreement_equals_scikit_learns() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, 40)
    values = np.where(generator.random((5, 40)) < 0.8, labels, 1 - labels)
    result = compute_rater_agreement(labelled(values.tolist(), labels.tolist()))
    voted = (values.sum(axis=0) > 2).astype(int)
    for row, name in zip(values, result.raters, strict=True):
        to_labels, to_majority = result.raters[name], result.to_majority[name]
        assert (to_labels.accuracy, to_labels.mcc) == pytest.approx(
            (accuracy_score(labels, row), matthews_corrcoef(labels, row)), abs=1e-9
        )
        assert to_majority.mcc == pytest.approx(matthews_corrcoef(voted, row), abs=1e-9)
    assert result.majority.mcc == pytest.approx(matthews_corrcoef(labels, voted), abs=1e-9)
    assert result.pairs["1", "3"].mcc == pytest.approx(matthews_corrcoef(values[0], values[2]), abs=1e-9)
    assert (len(result.pairs), result.ties) == (10, 0)


def test_a_tie_is_no_majority() -> None:
    result = compute_rater_agreement(labelled([[1, 1, 0], [0, 1, 0]], [1, 1, 0]))
    assert (result.ties, result.majority) == (1, Agreement(1.0, 1.0, 2))
    rows = build_agreement_rows(labelled([[1, 1, 0], [0, 1, 0]], [1, 1, 0]))
    assert rows[3]["note"] == "1 sentences without a majority left out"


def test_a_sentence_that_nobody_answered_is_no_tie() -> None:
    assert compute_rater_agreement(labelled([[1, None, 0], [1, None, 0]], [1, 1, 0])).ties == 0
    np.testing.assert_array_equal(majority_answers(np.array([[NAN, 1.0]])), [NAN, 1.0])


def test_one_class_has_an_accuracy_and_no_correlation() -> None:
    ones = np.ones(3)
    assert compute_agreement(np.array([1.0, 0.0, 1.0]), ones) == Agreement(2 / 3, None, 3)
    assert compute_agreement(ones, np.array([1.0, 0.0, 1.0])).mcc == 0.0
    assert compute_agreement(np.array([NAN]), np.array([1.0])) == Agreement(None, None, 0)


def test_a_mean_over_undefined_values_is_undefined() -> None:
    with pytest.raises(Undefined, match="1 of 2"):
        summarise_agreement([Agreement(0.5, None, 2), Agreement(0.5, 0.1, 2)])
    with pytest.raises(Undefined):
        summarise_agreement([])
    rows = build_agreement_rows(labelled([[1, 1], [1, 0]], [1, 1]))
    assert rows[2]["mcc"] is None
    assert "undefined" in rows[2]["note"]


def test_the_mean_and_its_spread() -> None:
    result = summarise_agreement([Agreement(0.5, 0.2, 2), Agreement(0.7, 0.6, 2)])
    assert (result.accuracy, result.mcc, result.mcc_sd, result.mcc_max) == pytest.approx((0.6, 0.4, 0.2, 0.6))


def test_agreement_needs_labels_and_binary_answers() -> None:
    with pytest.raises(MeasureError, match="no sentence has a label"):
        compute_rater_agreement(responses_from_rows("toy", "yes-no", [[1, 0]]))
    with pytest.raises(MeasureError, match="needs yes-no"):
        compute_rater_agreement(responses_from_rows("toy", "likert", [[1, 0]]))


LABELLED = tuple(Sentence(str(i), f"s{i}", label=i % 2) for i in range(1, 5))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_agreement_of_two_raters_is_symmetric(order: tuple[int, int]) -> None:
    """One of them says yes to everything, which leaves Matthews' correlation undefined whoever comes first."""
    answers = [[1, 1, 1, 1], [1, 0, 1, 0]]
    result = compute_rater_agreement(
        replace(responses_from_rows("toy", "yes-no", [answers[row] for row in order]), sentences=LABELLED)
    )
    assert [*result.pairs.values()] == [Agreement(0.5, None, 4)]
