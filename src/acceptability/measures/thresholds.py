"""Where the line between acceptable and unacceptable scores is drawn: a score above it predicts "acceptable"."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError
from acceptability.types import Floats

FITTED = ("cv", "pooled-mean", "class-midpoint")
"""The thresholds that are taken from the scores themselves."""

Merit = Callable[[Floats, Floats, float, float], Floats]
"""From hits and false alarms at each threshold, and how many there are of each class, to what each is worth."""

_DIGITS = 12


def pooled_mean(scores: Floats) -> float:
    """Return the mean of all scores, whatever their labels (Niu and Penn 2020)."""
    return float(scores.mean())


def class_midpoint(scores: Floats, labels: Floats) -> float:
    """Return the middle between the mean score of acceptable and that of unacceptable sentences.

    >>> class_midpoint(np.array([4.0, 2.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0, 0.0]))
    2.0
    """
    return float(scores[labels == 1].mean() / 2 + scores[labels == 0].mean() / 2)


def best_threshold(scores: Floats, labels: Floats, merit: Merit) -> float:
    """Return the threshold of most merit: below all scores, half-way between two neighbours, or above all.

    Of several that are equally good (to twelve digits) it is the lowest, which accepts most.

    >>> best_threshold(np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0]), accuracies)
    1.5
    """
    values, places = np.unique(scores, return_inverse=True)
    good = np.bincount(places, labels)
    bad = np.bincount(places, 1 - labels)
    hits = good.sum() - np.concatenate([[0.0], np.cumsum(good)])
    false_alarms = bad.sum() - np.concatenate([[0.0], np.cumsum(bad)])
    worth = np.round(merit(hits, false_alarms, float(good.sum()), float(bad.sum())), _DIGITS)
    return float(_candidates(values)[int(np.argmax(worth))])


def accuracies(hits: Floats, false_alarms: Floats, good: float, bad: float) -> Floats:
    """Return the share of right predictions at each threshold."""
    return (hits + bad - false_alarms) / (good + bad)


def correlations(hits: Floats, false_alarms: Floats, good: float, bad: float) -> Floats:
    """Return Matthews' correlation at each threshold; 0 where all predictions are the same."""
    yes = hits + false_alarms
    spread = yes * (good + bad - yes) * good * bad
    top = hits * bad - false_alarms * good
    return np.divide(top, np.sqrt(spread), out=np.zeros_like(top), where=spread > 0)


def cross_validated(
    ids: Sequence[str], scores: Floats, labels: Floats, merit: Merit, *, folds: int, seed: int
) -> tuple[Floats, Floats]:
    """Return the threshold that holds for each sentence, fitted on the other folds, and the one of each fold."""
    each_fold = list(dealt(ids, labels, folds, seed))
    thresholds = np.empty(len(scores))
    fitted = np.empty(len(each_fold))
    for number, inside in enumerate(each_fold):
        fitted[number] = best_threshold(scores[~inside], labels[~inside], merit)
        thresholds[inside] = fitted[number]
    return thresholds, fitted


def dealt(ids: Sequence[str], labels: Floats, folds: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    """Yield which rows are in each fold: each class is shuffled and dealt out in turn, whatever the order of rows."""
    fewest = int(min((labels == 0).sum(), (labels == 1).sum()))
    if fewest < 2 or folds > len(ids):
        raise MeasureError(
            f"{folds} folds of {len(ids)} sentences, {fewest} of the smaller class: "
            "cross-validation needs two sentences of each class, and no more folds than sentences"
        )
    generator = np.random.default_rng(seed)
    by_id = np.argsort(np.array(ids))
    classes = [generator.permutation(by_id[labels[by_id] == label]) for label in (0, 1)]
    fold = np.empty(len(ids), dtype=np.int64)
    fold[np.concatenate(classes)] = np.arange(len(ids)) % folds
    return (fold == number for number in range(folds))


def _candidates(values: Floats) -> Floats:
    lower, upper = values[:-1], values[1:]
    # Halved before they are added, so that the largest numbers do not overflow; and never as high as the upper one.
    middles = np.clip(lower / 2 + upper / 2, lower, np.nextafter(upper, -np.inf))
    return np.concatenate([[-np.inf], middles, [np.inf]])
