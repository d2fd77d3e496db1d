"""What probes answer about sentences that they have not seen, and how far they are right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import Undefined
from acceptability.probing.logistic import STRENGTHS, fitted, held_out_losses, turned
from acceptability.probing.splits import Part
from acceptability.protocols import Measure
from acceptability.stats.bootstrap import Bootstrap, Interval, interval
from acceptability.types import Floats, Units

Labels = NDArray[np.int64]


def answered(features: NDArray[np.float32], part: Part, tasks: Sequence[Labels]) -> list[Labels]:
    """Return what a probe of each task says of the test sentences.

    Args:
        features: A vector for each sentence of the suite.
        tasks: The class of each sentence of the suite, counted from 0. Two classes make one classifier, more make one
            for each class, and the most confident one wins.
    """
    columns = [_columns(labels) for labels in tasks]
    answers = np.concatenate(columns, axis=1)
    owner = np.repeat(np.arange(len(tasks)), [each.shape[1] for each in columns])
    learnt = np.setdiff1d(part.train, part.held_out)
    given = turned(features[learnt])
    others = given(features[part.held_out])
    lost = held_out_losses(given, answers[learnt], others, answers[part.held_out])
    best = np.array([lost[:, owner == task].sum(1).argmin() for task in range(len(tasks))])[owner]
    if len(learnt) < len(part.train):
        given = turned(features[part.train])
    logits = np.empty((len(part.test), len(owner)))
    for place in np.unique(best):
        probe = fitted(given, answers[part.train][:, best == place], STRENGTHS[place])
        logits[:, best == place] = probe.logits(given(features[part.test]))
    return [_decided(logits[:, owner == task]) for task in range(len(tasks))]


def most_frequent(part: Part, labels: Labels) -> Labels:
    """Return the most frequent class of the training sentences, for each test sentence."""
    return np.full(len(part.test), np.bincount(labels[part.train]).argmax())


def _columns(labels: Labels) -> Floats:
    count = int(labels.max()) + 1
    if count <= 2:
        return np.asarray(labels == 1, np.float64)[:, None]
    return np.asarray(labels[:, None] == np.arange(count), np.float64)


def _decided(logits: Floats) -> Labels:
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).astype(np.int64)
    return np.asarray(logits.argmax(1), np.int64)


def correlation(predicted: Labels, labels: Labels) -> float:
    """Return Matthews' correlation of predicted and true classes, for two classes or more (Gorodkin 2004).

    Where all predictions are the same it is 0 by convention; where all labels are, it is undefined.

    >>> correlation(np.array([1, 1, 0, 0]), np.array([1, 0, 0, 0]))
    0.5773502691896258
    """
    count = int(max(predicted.max(initial=0), labels.max(initial=0))) + 1
    said = np.bincount(predicted, minlength=count).astype(np.float64)
    true = np.bincount(labels, minlength=count).astype(np.float64)
    n, right = float(len(labels)), float((predicted == labels).sum())
    if n * n == true @ true:
        raise Undefined("the sentences are all of one class")
    spread = (n * n - said @ said) * (n * n - true @ true)
    return float((right * n - said @ true) / math.sqrt(spread)) if spread else 0.0


@dataclass(frozen=True)
class _Correlation:
    """The correlation as the bootstrap asks for it."""

    def value(self, units: Units) -> float:
        return correlation(units["predicted"].astype(np.int64), units["label"].astype(np.int64))


def correlation_interval(predicted: Labels, labels: Labels, items: NDArray[np.int64], how: Bootstrap) -> Interval:
    """Return where the correlation lies when items are drawn anew."""
    columns = {"predicted": predicted.astype(np.float64), "label": labels.astype(np.float64)}
    tags = tuple({how.by: str(item)} for item in items.tolist())
    return interval(cast(Measure, _Correlation()), Units(tuple(map(str, range(len(labels)))), columns, tags), how)
