"""Validation of labels on simulated ratings: the simulated agreement is recovered, the difference is significant."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import wilcoxon

from acceptability.errors import SuiteError, Undefined
from acceptability.people.choices import signed_rank_by_label, split_by_tag, validate_labels
from acceptability.people.responses import Responses
from acceptability.types import Sentence


def simulated(right: dict[int, float], people: int = 20, sets: int = 60, seed: int = 0) -> Responses:
    """Return ratings of people who follow the label of a sentence with some probability; 5 of 8 are acceptable."""
    random = np.random.default_rng(seed)
    sentences = tuple(
        Sentence(
            f"{number}/{index}", f"{number} {index}.", int(index < 5), tags={"set": str(number), "g": str(number % 2)}
        )
        for number in range(sets)
        for index in range(8)
    )
    labels = np.array([sentence.label for sentence in sentences])
    follows = random.random((people, len(labels))) < np.where(labels == 1, right[1], right[0])
    yes = np.where(labels == 1, follows, ~follows)
    values = np.where(yes, random.integers(4, 7, yes.shape), random.integers(1, 4, yes.shape)).astype(float)
    return Responses("simulated", "likert", tuple(f"p{n}" for n in range(people)), sentences, values)


def test_simulated_agreement_is_recovered() -> None:
    result = validate_labels(simulated({1: 0.813, 0: 0.852}))
    assert result.acceptable == pytest.approx(0.813, abs=0.01)
    assert result.unacceptable == pytest.approx(0.852, abs=0.01)
    # 62.5 % of the sentences are acceptable: 81.3 and 85.2 make the printed 82.8.
    assert result.overall == pytest.approx(0.828, abs=0.01)
    assert (result.sentences, result.answers) == (480, 9600)


def test_three_is_a_no_and_four_a_yes() -> None:
    sentences = (Sentence("a", "A.", 1), Sentence("b", "B.", 0))
    result = validate_labels(Responses("r", "likert", ("x", "y"), sentences, np.array([[3.0, 3.0], [4.0, 4.0]])))
    assert (result.acceptable, result.unacceptable, result.overall) == (0.5, 0.5, 0.5)


def test_missing_answers_are_left_out() -> None:
    sentences = (Sentence("a", "A.", 1), Sentence("b", "B.", 0))
    result = validate_labels(Responses("r", "likert", ("x", "y"), sentences, np.array([[6.0, np.nan], [1.0, np.nan]])))
    assert (result.acceptable, result.unacceptable, result.answers) == (0.5, None, 2)


@pytest.mark.parametrize("unit", ["participant", "set"])
@pytest.mark.parametrize("raw", [True, False])
def test_ratings_that_follow_labels_are_significant(unit: str, raw: bool) -> None:
    result = signed_rank_by_label(simulated({1: 0.813, 0: 0.852}), unit, raw=raw)
    assert result.p < 0.001
    assert result.rank_biserial > 0.9
    assert signed_rank_by_label(simulated({1: 0.5, 0: 0.5}, seed=3), unit, raw=raw).p > 0.001


def test_the_test_is_scipys_on_the_means_of_participants() -> None:
    responses = simulated({1: 0.55, 0: 0.55}, people=15, sets=4, seed=5)
    means = [[row[responses.labels == kind].mean() for row in responses.values] for kind in (1, 0)]
    theirs = wilcoxon(*means, alternative="greater", method="asymptotic", correction=True)
    assert signed_rank_by_label(responses).p == pytest.approx(theirs.pvalue, rel=1e-9)


def test_split_by_tag() -> None:
    result = dict(split_by_tag(simulated({1: 0.8, 0: 0.8}, sets=4), "g"))
    assert {name: len(item.sentences) for name, item in result.items()} == {"0": 16, "1": 16}


@pytest.mark.parametrize("rating", [0.0, 7.0, 3.5])
def test_a_rating_off_the_scale_is_an_error(rating: float) -> None:
    with pytest.raises(SuiteError, match="x gave 'a' the rating .*; expected a whole number from 1 to 6"):
        validate_labels(Responses("r", "likert", ("x",), (Sentence("a", "A.", 1),), np.array([[rating]])))


def test_what_cannot_be_compared_is_undefined() -> None:
    good = Responses("r", "likert", ("x",), (Sentence("a", "A.", 1),), np.array([[5.0]]))
    with pytest.raises(Undefined, match="no participant has answers to both"):
        signed_rank_by_label(good)
    with pytest.raises(Undefined, match="there are no answers"):
        validate_labels(Responses("r", "likert", ("x",), good.sentences, np.array([[np.nan]])))
    with pytest.raises(SuiteError, match="'a' has no label"):
        validate_labels(Responses("r", "likert", ("x",), (Sentence("a", "A."),), np.array([[5.0]])))
