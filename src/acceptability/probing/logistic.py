"""Light classifiers: logistic regression with an L2 penalty, several at once, the same on every run.

The loss is the mean negative log-likelihood plus strength/2 times the squared weights of standardised features.
Features are first turned into their principal directions, which changes nothing in the solution and leaves no more
numbers than sentences; there the curvature is known in advance, and L-BFGS needs few steps. All in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.probing.descent import lowest
from acceptability.types import Floats

STRENGTHS = (1.0, 0.1, 0.01, 0.001, 0.0001)
"""The penalties that are tried, the strongest first."""

_LEAST = 1e-10


@dataclass(frozen=True, eq=False)
class Turned:
    """Features as they are learnt from: standardised on the training sentences, and turned.

    Args:
        values: The training sentences, (sentences, directions).
        spread: The mean square of each direction.
    """

    middle: Floats
    scale: Floats
    directions: Floats
    values: Floats
    spread: Floats

    def __call__(self, features: NDArray[np.float32]) -> Floats:
        """Return other sentences in the same directions."""
        return ((features - self.middle) / self.scale) @ self.directions


def turned(features: NDArray[np.float32]) -> Turned:
    """Return features of training sentences in their principal directions; what never varies counts for nothing."""
    values = features.astype(np.float64)
    middle, scale = values.mean(0), values.std(0)
    # What differs by no more than rounding is a constant.
    scale = np.where(scale > 1e-6 * np.maximum(1.0, np.abs(middle)), scale, np.inf)
    values -= middle
    values /= scale
    n, width = values.shape
    squares, vectors = np.linalg.eigh(values.T @ values if width <= n else values @ values.T)
    kept = squares > _LEAST * max(float(squares.max(initial=0.0)), 1.0)
    squares, vectors = squares[kept], vectors[:, kept]
    directions = vectors if width <= n else values.T @ vectors / np.sqrt(squares)
    return Turned(middle, scale, directions, values @ directions, squares / n)


@dataclass(frozen=True, eq=False)
class Probe:
    """The weights of several classifiers of yes or no: (directions, classifiers), and where each begins."""

    weights: Floats
    offsets: Floats

    def logits(self, values: Floats) -> Floats:
        """Return the log-odds of yes for each sentence and classifier."""
        return values @ self.weights + self.offsets


def fitted(given: Turned, answers: Floats, strength: float, start: Probe | None = None) -> Probe:
    """Return the classifiers that answer best, (sentences, classifiers) of 0 and 1; each is fitted by itself.

    Args:
        start: Where to begin, such as the classifiers of a stronger penalty; it changes only how long it takes.
    """
    # In these units the curvature is at most about 1 in every direction.
    unit = np.concatenate([[0.5], np.sqrt(0.25 * given.spread + strength)])[:, None]
    first = start or _ignorant(given, answers)

    def loss(scaled: Floats) -> tuple[Floats, Floats]:
        offsets, weights = np.split(scaled / unit, [1])
        logits = given.values @ weights + offsets
        lost = (np.logaddexp(0.0, logits) - answers * logits).mean(0) + strength / 2 * (weights**2).sum(0)
        wrong = (_yes(logits) - answers) / len(answers)
        slopes = np.vstack([wrong.sum(0), given.values.T @ wrong + strength * weights])
        return lost, slopes / unit

    found = lowest(loss, np.vstack([first.offsets, first.weights]) * unit) / unit
    return Probe(found[1:], found[0])


def held_out_losses(
    given: Turned, answers: Floats, others: Floats, other_answers: Floats, strengths: Sequence[float] = STRENGTHS
) -> Floats:
    """Return how much classifiers lose on held-out sentences, (strengths, classifiers), for each strength."""
    probe: Probe | None = None
    lost = []
    for strength in strengths:
        probe = fitted(given, answers, strength, probe)
        logits = probe.logits(others)
        lost.append((np.logaddexp(0.0, logits) - other_answers * logits).mean(0))
    return np.array(lost)


def _ignorant(given: Turned, answers: Floats) -> Probe:
    """Return classifiers that know only how frequent each answer is."""
    shares = np.clip(answers.mean(0), 1e-6, 1 - 1e-6)
    return Probe(np.zeros((given.values.shape[1], answers.shape[1])), np.log(shares / (1 - shares)))


def _yes(logits: Floats) -> Floats:
    from scipy.special import expit

    found: Floats = expit(logits)
    return found
