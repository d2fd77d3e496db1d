"""Correlations of scores with labels (point-biserial) and with ratings (Pearson, Spearman, Kendall's tau-b).

The module also has the rank statistics themselves: Kendall's tau-b by counting inversions, and the area under the ROC
curve (the Mann-Whitney statistic).
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.rows import (
    check_choice,
    check_count,
    check_has_tag,
    check_tag_name,
    find_shared_tags,
    format_exclusion_notes,
    group_by_tag,
    require_labelled,
    require_rated,
)
from acceptability.measures.weighting import weigh_correlation, weigh_pearson, weigh_quantile
from acceptability.protocols import Measure, Moments, RowWeighting
from acceptability.specs import format_spec
from acceptability.types import Floats, Scores, Sentence, Suite, Units

Ints = NDArray[np.int64]


CORRELATION_KINDS = ("pearson", "spearman", "kendall")
# The mean is no quantile: None.
_QUANTILE_OF = {"mean": None, "median": 0.5, "q1": 0.25, "q3": 0.75, "min": 0.0, "max": 1.0}

# OpenBLAS computes dot products of up to 10,000 numbers in one thread.
_PIECE = 1 << 13


@dataclass(frozen=True, repr=False)
class PBC(Measure):
    """The point-biserial correlation of scores with labels: over all sentences, or within each set (Niu and Penn 2020).

    Within sets, a set is one row, and the bootstrap draws sets. A set without both classes, or with constant scores,
    has no correlation: it is excluded and counted in a note.

    Args:
        per: The tag whose value is a sentence's set; empty for one correlation over all sentences.
        over: The summary of the sets' correlations: "mean", "median", "q1" and "q3" (quartiles, with linear
            interpolation), "min" or "max".
        at_least: The minimal number of labelled sentences in a set.
        scale: "log" takes scores as they are; "exp" exponentiates them, which turns log-probabilities into
            probabilities.
    """

    per: str = ""
    over: str = "mean"
    at_least: int = 2
    scale: str = "log"

    needs = "labels"

    def __post_init__(self) -> None:
        check_choice("PBC: over", self.over, tuple(_QUANTILE_OF))
        check_count("PBC: at_least", self.at_least, 2)
        check_choice("PBC: scale", self.scale, ("log", "exp"))
        if self.per != "":
            check_tag_name("PBC: per", self.per)
        # Refused rather than ignored, as the user evidently meant correlations within sets.
        elif (self.over, self.at_least) != ("mean", 2):
            raise MeasureError("PBC: over and at_least apply to sets; name the tag of the sets, as in PBC(per='set')")

    def __repr__(self) -> str:
        # Options without effect are left out, so that equal measures have equal signatures.
        sets = {"per": self.per, "over": self.over, "at_least": self.at_least} if self.per else {}
        return format_spec("PBC", sets | ({"scale": self.scale} if self.scale != "log" else {}))

    @property
    def gathered_by(self) -> str:
        """The tag that groups sentences into one row; empty if a row is a sentence."""
        return self.per

    @property
    def mean_of(self) -> str | None:
        """The column of the sets' correlations, if the value is their mean; else None."""
        return "pbc" if self.per and self.over == "mean" else None

    @property
    def statistic(self) -> str | None:
        """A correlation over all sentences; a summary of sets is none."""
        return None if self.per else "correlation"

    @property
    def needs_tags(self) -> tuple[str, ...]:
        """The tag of the sets, if there are sets."""
        return (self.per,) if self.per else ()

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per labelled sentence, or a row per set with its correlation."""
        kept, notes = require_labelled(suite, self)
        if self.per:
            return self._build_set_units(suite, kept, scores, notes)
        return _build_units(kept, scores, "label", [float(sentence.label or 0) for sentence in kept], notes)

    def value(self, units: Units) -> float:
        """Return Pearson's r with labels as 0 and 1, or the summary of the sets' correlations."""
        if not self.per:
            return point_biserial(units["score"], units["label"], self.scale)
        correlations = units["pbc"]
        if not len(correlations):
            raise Undefined(f"no set has a correlation: {'; '.join(units.notes) or 'there are none'}")
        share = _QUANTILE_OF[self.over]
        return float(correlations.mean() if share is None else np.quantile(correlations, share))

    def weigh(self, units: Units) -> Moments | RowWeighting | None:
        """Return the correlation as a function of sums, or the summary of weighted sets."""
        if not self.per:
            return weigh_pearson(_scale_scores(units["score"], self.scale), units["label"])
        share = _QUANTILE_OF[self.over]
        return super().weigh(units) if share is None else weigh_quantile(units["pbc"], share)

    def _build_set_units(self, suite: Suite, kept: list[Sentence], scores: Scores, notes: tuple[str, ...]) -> Units:
        check_has_tag(suite, self, self.per)
        left_out: Counter[str] = Counter()
        rows: dict[str, float] = {}
        sets = group_by_tag(kept, self.per)
        left_out[f"sentences without the tag {self.per!r}"] = len(kept) - sum(map(len, sets.values()))
        for name, members in sets.items():
            if len(members) < self.at_least:
                left_out[f"sets of fewer than {self.at_least} sentences"] += 1
                continue
            set_scores = scores.of(sentence.id for sentence in members)
            labels = np.array([float(sentence.label or 0) for sentence in members])
            # Undefined within one set is data, not an error: most suites have sets with sentences of one class only.
            try:
                rows[name] = point_biserial(set_scores, labels, self.scale)
            except Undefined:
                why = "both classes" if labels.min() == labels.max() else "different scores"
                left_out[f"sets without {why}"] += 1
        # The sizes of the sets are for those who look at the rows; the value does not use them.
        columns = {"pbc": np.array([*rows.values()]), "sentences": np.array([float(len(sets[name])) for name in rows])}
        return Units(
            tuple(rows),
            columns,
            tuple(find_shared_tags(sets[name]) for name in rows),
            notes + format_exclusion_notes(left_out),
        )


@dataclass(frozen=True)
class Pearson(Measure):
    """The linear correlation (Pearson's r) of scores with human ratings."""

    needs = "ratings"
    statistic = "correlation"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per rated sentence."""
        return _build_rating_units(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r."""
        return pearson(units["score"], units["rating"])

    def weigh(self, units: Units) -> Moments | RowWeighting:
        """Return the same of weighted sentences."""
        return weigh_correlation("pearson", units["score"], units["rating"])


@dataclass(frozen=True)
class Spearman(Measure):
    """The rank correlation (Spearman's rho) of scores with human ratings; ties share their mean rank."""

    needs = "ratings"
    statistic = "rank correlation"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per rated sentence."""
        return _build_rating_units(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r of the ranks."""
        return pearson(average_ranks(units["score"]), average_ranks(units["rating"]))

    def weigh(self, units: Units) -> Moments | RowWeighting:
        """Return the same of weighted sentences."""
        return weigh_correlation("spearman", units["score"], units["rating"])


@dataclass(frozen=True)
class Kendall(Measure):
    """Kendall's tau-b of scores with human ratings: concordant minus discordant pairs of sentences."""

    needs = "ratings"
    statistic = "rank correlation"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per rated sentence."""
        return _build_rating_units(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Kendall's tau-b."""
        return kendall(units["score"], units["rating"])

    def weigh(self, units: Units) -> Moments | RowWeighting:
        """Return the same of weighted sentences."""
        return weigh_correlation("kendall", units["score"], units["rating"])


def name_correlation(kind: str) -> str:
    """Return what statistic a correlation of some kind is, for its interval.

    >>> name_correlation("kendall")
    'rank correlation'
    """
    return "correlation" if kind == "pearson" else "rank correlation"


def compute_correlation(kind: str, first: Floats, second: Floats) -> float:
    """Return a correlation coefficient; ``kind`` is "pearson", "spearman" or "kendall"."""
    if kind == "kendall":
        return kendall(first, second)
    return pearson(first, second) if kind == "pearson" else pearson(average_ranks(first), average_ranks(second))


def point_biserial(scores: Floats, labels: Floats, scale: str = "log") -> float:
    """Return Pearson's r of scores with labels as 0 and 1; undefined for one class only."""
    if len(labels) and labels.min() == labels.max():
        raise Undefined(f"all {len(labels)} sentences have the label {labels[0]:g}")
    return pearson(_scale_scores(scores, scale), labels)


def _scale_scores(scores: Floats, scale: str) -> Floats:
    # Subtracting the maximum rescales all probabilities, which changes no correlation. Without it exp(-800), a normal
    # score of a long sentence, underflows to 0, and all scores would be the same.
    return np.asarray(np.exp(scores - scores.max())) if scale == "exp" and len(scores) else scores


def pearson(first: Floats, second: Floats) -> float:
    """Return Pearson's r; undefined for fewer than two rows, or if one variable is constant.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])), 4)
    0.9286
    """
    if len(first) < 2:
        raise Undefined(f"a correlation needs two rows; there are {len(first)}")
    if first.min() == first.max() or second.min() == second.max():
        raise Undefined("one side has the same value in every row")
    # The dot product of two unit vectors exceeds 1 by rounding now and then.
    a, b = _normalise_centred(first), _normalise_centred(second)
    return float(np.clip(_sum_of_products(a, b), -1.0, 1.0))


def average_ranks(values: Floats) -> Floats:
    """Return ranks from 1; ties share their mean rank.

    >>> average_ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    # A group of ties occupies the ranks up to its cumulative count; their mean is half its size below the last one.
    highest = np.cumsum(counts)
    return np.asarray((highest - (counts - 1) / 2)[inverse])


def kendall(first: Floats, second: Floats) -> float:
    """Return Kendall's tau-b: concordant minus discordant pairs of rows, corrected for ties (Knight 1966).

    Undefined for fewer than two rows, or if one variable is constant. The time grows as n log n.

    >>> round(kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])), 4)
    0.3333
    """
    if len(first) < 2:
        raise Undefined(f"a correlation needs two rows; there are {len(first)}")
    a, b = _rank_dense(first), _rank_dense(second)
    if not a.any() or not b.any():
        raise Undefined("one side has the same value in every row")
    # Sorted by the first variable, with its ties sorted by the second: every inversion of the second that is left is
    # then a discordant pair, and pairs tied in either variable are none.
    order = np.lexsort((b, a))
    pairs = math.comb(len(a), 2)
    # The code a * (max b + 1) + b is different for every pair of ranks, so its ties are the rows tied in both.
    tied_a, tied_b, tied_both = (
        _count_tied_pairs(a),
        _count_tied_pairs(b),
        _count_tied_pairs(a * (int(b.max()) + 1) + b),
    )
    opposite = _count_inversions(b[order])
    same = pairs - tied_a - tied_b + tied_both - opposite
    tau = (same - opposite) / math.sqrt(pairs - tied_a) / math.sqrt(pairs - tied_b)
    # Rounding may push a perfect correlation just above 1.
    return max(-1.0, min(1.0, tau))


def auc(good: Floats, bad: Floats, good_weights: Floats | None = None, bad_weights: Floats | None = None) -> float:
    """Return the area under the ROC curve: how often a good score is above a bad one; a tie counts one half.

    Args:
        good: The scores of acceptable sentences.
        bad: The scores of unacceptable sentences.
        good_weights: The weights of the acceptable sentences; by default all 1.
        bad_weights: The weights of the unacceptable sentences; by default all 1.

    >>> auc(np.array([3.0, 1.0]), np.array([1.0, 0.0]))
    0.875
    """
    if not len(good) or not len(bad):
        raise Undefined("the rows are all of one class")
    # Sorted and counted by value, instead of compared pair by pair: n log n in time, and linear in memory.
    values, value_indices = np.unique(np.concatenate([good, bad]), return_inverse=True)
    above = np.bincount(value_indices[: len(good)], good_weights, minlength=len(values))
    below = np.bincount(value_indices[len(good) :], bad_weights, minlength=len(values))
    # The weight of bad scores below each value, with half of those equal to it.
    lower = np.cumsum(below) - below / 2
    return float(_sum_of_products(above, lower) / (above.sum() * below.sum()))


def _rank_dense(values: Floats) -> Ints:
    # Dense ranks need the fewest bits, and one pass over the rows per bit counts the inversions.
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def _count_tied_pairs(values: Ints) -> int:
    counts = np.unique(values, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


def _count_inversions(values: Ints) -> int:
    """Return the number of inversions: pairs of rows of which the first is larger.

    This is merge sort turned into a radix sort from the highest bit down, which NumPy can run on whole arrays. Rows
    that agree in all higher bits form a block, in their original order. Within a block, a pair is an inversion at
    this bit if the first row has it and the second has not; then the rows with the bit move behind those without.
    """
    inversions, positions = 0, np.arange(len(values))
    for bit in reversed(range(int(values.max()).bit_length())):
        has = (values >> bit) & 1
        starts = np.flatnonzero(np.diff(values >> (bit + 1), prepend=-1))
        sizes = np.diff(starts, append=len(values))
        # Exclusive running count of set bits, and from it the count within the block.
        before = np.cumsum(has) - has
        ones = before - np.repeat(before[starts], sizes)
        inversions += int(ones @ (1 - has))
        lacking = np.repeat(sizes - np.add.reduceat(has, starts), sizes)
        moved = np.where(has == 1, np.repeat(starts, sizes) + lacking + ones, positions - ones)
        arranged = np.empty_like(values)
        arranged[moved] = values
        values = arranged
    return inversions


def _normalise_centred(values: Floats) -> Floats:
    # Scaled before squaring: squares of very small scores would underflow to 0, those of very large ones overflow.
    centred = values - values.mean()
    scale = np.abs(centred).max()
    if scale == 0:
        raise Undefined("one side varies by less than floating-point precision")
    centred = centred / scale
    return np.asarray(centred / np.sqrt(_sum_of_products(centred, centred)))


def _sum_of_products(first: Floats | Ints, second: Floats) -> float:
    # In pieces that BLAS gives to one thread. Several would wait for each other in busy loops, which costs more than
    # the sum where other processes want the same cores, and their number would change the last digit.
    pieces = range(0, len(first), _PIECE)
    return float(sum(first[start : start + _PIECE] @ second[start : start + _PIECE] for start in pieces))


def _build_rating_units(suite: Suite, scores: Scores, measure: object) -> Units:
    kept, notes = require_rated(suite, measure)
    return _build_units(kept, scores, "rating", [sentence.rating or 0.0 for sentence in kept], notes)


def _build_units(kept: list[Sentence], scores: Scores, name: str, values: list[float], notes: tuple[str, ...]) -> Units:
    ids = tuple(sentence.id for sentence in kept)
    columns = {"score": scores.of(ids), name: np.array(values)}
    return Units(ids, columns, tuple(sentence.tags for sentence in kept), notes)
