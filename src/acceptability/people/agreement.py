"""How far people's yes and no agree with labels, with the majority, and with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.classification import matthews
from acceptability.people.responses import Responses
from acceptability.types import Floats


@dataclass(frozen=True)
class Agreement:
    """How two rows of yes and no agree.

    Args:
        accuracy: The share of sentences with the same answer; None where no sentence has both.
        mcc: Matthews' correlation; None where all of the second row is of one class.
        n: How many sentences have both.
    """

    accuracy: float | None
    mcc: float | None
    n: int


@dataclass(frozen=True)
class Summary:
    """The agreement of several rows: means, standard deviation (ddof 0) and largest of MCC."""

    accuracy: float
    mcc: float
    mcc_sd: float
    mcc_max: float
    n: int


@dataclass(frozen=True)
class RaterAgreement:
    """All agreements of a group of raters.

    Args:
        raters: Each rater against the labels, by name.
        majority: The majority against the labels.
        to_majority: Each rater against the majority, to which that rater belongs.
        pairs: Each two raters; without MCC where either gave one answer to all that both answered.
        ties: How many sentences have no majority; they are left out of what involves it.
    """

    raters: dict[str, Agreement]
    majority: Agreement
    to_majority: dict[str, Agreement]
    pairs: dict[tuple[str, str], Agreement]
    ties: int


def rater_agreement(responses: Responses) -> RaterAgreement:
    """Return how raters agree with the labels, with their majority, and with each other."""
    if responses.kind != "yes-no":
        raise MeasureError(f"{responses.name}: answers are {responses.kind}; agreement with labels needs yes-no")
    names, values, labels = responses.participants, responses.values, responses.labels
    if np.isnan(labels).all():
        raise MeasureError(f"{responses.name}: no sentence has a label to agree with")
    voted = majority(values)
    answered = (~np.isnan(values)).any(axis=0)
    return RaterAgreement(
        {name: agreement(row, labels) for name, row in zip(names, values, strict=True)},
        agreement(voted, labels),
        {name: agreement(row, voted) for name, row in zip(names, values, strict=True)},
        {(names[i], names[j]): mutual(values[i], values[j]) for i, j in combinations(range(len(names)), 2)},
        int((np.isnan(voted) & answered).sum()),
    )


def agreement(predicted: Floats, labels: Floats) -> Agreement:
    """Return how two rows of 1 and 0 agree, where both have an answer.

    >>> agreement(np.array([1.0, 1.0, 0.0, np.nan]), np.array([1.0, 0.0, 0.0, 1.0]))
    Agreement(accuracy=0.6666666666666666, mcc=0.5, n=3)
    """
    both = ~(np.isnan(predicted) | np.isnan(labels))
    n = int(both.sum())
    if not n:
        return Agreement(None, None, 0)
    accuracy = float((predicted[both] == labels[both]).mean())
    try:
        return Agreement(accuracy, matthews(predicted[both], labels[both]), n)
    except Undefined:
        return Agreement(accuracy, None, n)


def mutual(first: Floats, second: Floats) -> Agreement:
    """Return how two rows of 1 and 0 agree of which neither is the right one: the same in either order.

    >>> mutual(np.array([1.0, 1.0]), np.array([1.0, 0.0])) == mutual(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    True
    """
    one, other = agreement(first, second), agreement(second, first)
    return replace(one, mcc=None) if other.mcc is None else one


def majority(values: Floats) -> Floats:
    """Return what more than half of those who answered said to each sentence; nan for a tie, or no answer.

    >>> majority(np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, np.nan, np.nan]]))
    array([ 1., nan,  0.])
    """
    given = (~np.isnan(values)).sum(axis=0)
    yes = np.nansum(values, axis=0)
    return np.where(2 * yes > given, 1.0, np.where(2 * yes < given, 0.0, np.nan))


def summary(found: Sequence[Agreement]) -> Summary:
    """Return means over several agreements; one that is undefined makes the mean undefined."""
    accuracies = [each.accuracy for each in found if each.accuracy is not None]
    correlations = [each.mcc for each in found if each.mcc is not None]
    if not found or len(accuracies) < len(found) or len(correlations) < len(found):
        raise Undefined(f"{len(found) - len(correlations)} of {len(found)} correlations are undefined")
    spread = float(np.std(correlations))
    return Summary(float(np.mean(accuracies)), float(np.mean(correlations)), spread, max(correlations), len(found))
