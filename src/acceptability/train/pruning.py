"""A smaller n-gram model that loses little: n-grams go whose loss changes the model least (Stolcke 1998).

How much is lost is the relative entropy between the model with and without an n-gram, weighted by
how often its history stands in the corpus: the lower orders of a Kneser–Ney model say how many
words a word follows, and would misjudge how frequent a history is (Chelba et al. 2010).
An n-gram that others begin with stays. What is left keeps its probability, and back-off weights
are made new, so that all sums are 1 again.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from acceptability.models.vocabulary import START
from acceptability.train.kneser_ney import Estimate, Floats, Level

_NOTHING_LEFT = 1e-9


def pruned(model: Estimate, threshold: float) -> Estimate:
    """Return the model without the n-grams of order 2 and more that change its perplexity by less than a share.

    Args:
        threshold: The largest relative growth of the perplexity that one n-gram may cost, such as 1e-8.
    """
    kept = _kept(model, threshold)
    told = _told_by_rest(model, kept)
    levels: list[Level] = []
    numbers = np.arange(model.size)
    for place, level in enumerate(model.levels):
        stays = kept[place]
        # Where each n-gram that stays will stand in the shorter list.
        renumbered = np.cumsum(stays) - 1
        keys = level.keys[stays]
        if place:
            keys = numbers[keys // model.size] * model.size + keys % model.size
        levels.append(replace(level, keys=keys, probs=level.probs[stays], backoffs=told[place][stays]))
        numbers = renumbered
    return replace(model, levels=tuple(levels))


def losses(model: Estimate, place: int) -> Floats:
    """Return by which share the perplexity grows if one n-gram of an order goes, each alone."""
    level, below = model.levels[place], model.levels[place - 1]
    histories = level.keys // model.size
    lower = below.probs[level.suffixes]
    seen, seen_below = (
        np.bincount(histories, weights=each, minlength=len(below.keys)) for each in (level.probs, lower)
    )
    left = np.maximum(1 - seen, 0.0)[histories]
    left_below = np.maximum(1 - seen_below, _NOTHING_LEFT)[histories]
    weight = below.backoffs[histories]
    after = (left + level.probs) / (left_below + lower)
    often = below.counts[histories] / np.delete(model.levels[0].counts, START).sum()
    with np.errstate(divide="ignore"):
        change = level.probs * (np.log(level.probs) - np.log(lower) - np.log(after))
        change -= left * (np.log(after) - np.log(np.maximum(weight, _NOTHING_LEFT)))
    loss: Floats = np.expm1(often * change)
    return loss


def _kept(model: Estimate, threshold: float) -> list[NDArray[np.bool_]]:
    """Return which n-grams of each order stay, from the highest order down."""
    kept: list[NDArray[np.bool_]] = []
    needed: NDArray[np.int64] = np.array([], np.int64)
    for place in range(len(model.levels) - 1, 0, -1):
        stays = losses(model, place) >= threshold
        stays[needed] = True
        kept.insert(0, stays)
        needed = model.levels[place].keys[stays] // model.size
    return [np.ones(model.size, bool), *kept]


def _told_by_rest(model: Estimate, kept: list[NDArray[np.bool_]]) -> list[Floats]:
    """Return the new back-off weights of each order.

    ``now`` is what the smaller model says of each n-gram of the larger one.
    """
    now = model.levels[0].probs
    weights: list[Floats] = []
    for place in range(1, len(model.levels)):
        level, below, stays = model.levels[place], model.levels[place - 1], kept[place]
        histories, lower = level.keys // model.size, now[level.suffixes]
        seen = np.bincount(histories[stays], weights=level.probs[stays], minlength=len(below.keys))
        seen_below = np.bincount(histories[stays], weights=lower[stays], minlength=len(below.keys))
        left = 1 - seen_below
        is_open = left > _NOTHING_LEFT
        found = np.where(is_open, (1 - seen) / np.where(is_open, left, 1.0), below.backoffs)
        weights.append(np.where(kept[place - 1], np.maximum(found, 0.0), 1.0))
        now = np.where(stays, level.probs, weights[-1][histories] * lower)
    return [*weights, np.ones(len(model.levels[-1].keys))]
