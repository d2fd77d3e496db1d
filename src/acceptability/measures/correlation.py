"""How scores go together with labels (point-biserial) and with ratings (Pearson, Spearman, Kendall)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.gathering import check_has_tag, gathered, notes_on, shared_tags
from acceptability.measures.options import check_choice, check_count, check_tag_name
from acceptability.measures.ordering import kendall
from acceptability.measures.rows import labelled, rated
from acceptability.spelling import write
from acceptability.types import Floats, Scores, Sentence, Suite, Units

KINDS = ("pearson", "spearman", "kendall")
_OVER = {"mean": None, "median": 0.5, "q1": 0.25, "q3": 0.75, "min": 0.0, "max": 1.0}


@dataclass(frozen=True, repr=False)
class PBC:
    """The point-biserial correlation of scores with labels: over all sentences, or within each set (Niu and Penn 2020).

    Within sets, a set is one row, and the bootstrap draws sets. A set that has not both classes,
    or whose scores are all the same, has no correlation: it is left out, and a note counts it.

    Args:
        per: The tag that says which set a sentence is in; empty for one correlation over all sentences.
        over: What is told of the sets' correlations: "mean", "median", "q1" and "q3" (quartiles, between
            two sets by linear interpolation), "min" or "max".
        at_least: The smallest set that counts, in labelled sentences.
        scale: "log" takes scores as they are; "exp" takes e to their power: probabilities, where scores are logs.
    """

    per: str = ""
    over: str = "mean"
    at_least: int = 2
    scale: str = "log"

    needs = "labels"

    def __post_init__(self) -> None:
        check_choice("PBC: over", self.over, tuple(_OVER))
        check_count("PBC: at_least", self.at_least, 2)
        check_choice("PBC: scale", self.scale, ("log", "exp"))
        if self.per != "":
            check_tag_name("PBC: per", self.per)
        elif (self.over, self.at_least) != ("mean", 2):
            raise MeasureError("PBC: over and at_least are about sets; name the tag of the sets, as in PBC(per='set')")

    def __repr__(self) -> str:
        sets = {"per": self.per, "over": self.over, "at_least": self.at_least} if self.per else {}
        return write("PBC", sets | ({"scale": self.scale} if self.scale != "log" else {}))

    @property
    def gathered_by(self) -> str:
        """The tag that makes one row of several sentences; empty where a sentence is a row."""
        return self.per

    @property
    def mean_of(self) -> str | None:
        """The column whose mean the value is: the sets' correlations, where their mean is asked for."""
        return "pbc" if self.per and self.over == "mean" else None

    @property
    def needs_tags(self) -> tuple[str, ...]:
        """The tags without which there is nothing to measure."""
        return (self.per,) if self.per else ()

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a labelled sentence, or one row a set with its own correlation."""
        kept, notes = labelled(suite, self)
        if self.per:
            return self._sets(suite, kept, scores, notes)
        return _rows(kept, scores, "label", [float(each.label or 0) for each in kept], notes)

    def value(self, units: Units) -> float:
        """Return Pearson's r with labels as 0 and 1, or what is told of the sets' correlations."""
        if not self.per:
            return point_biserial(units["score"], units["label"], self.scale)
        found = units["pbc"]
        if not len(found):
            raise Undefined(f"no set has a correlation: {'; '.join(units.notes) or 'there are none'}")
        share = _OVER[self.over]
        return float(found.mean() if share is None else np.quantile(found, share))

    def _sets(self, suite: Suite, kept: list[Sentence], scores: Scores, notes: tuple[str, ...]) -> Units:
        check_has_tag(suite, self, self.per)
        left_out: Counter[str] = Counter()
        rows: dict[str, float] = {}
        sets = gathered(kept, self.per)
        left_out[f"sentences without the tag {self.per!r}"] = len(kept) - sum(map(len, sets.values()))
        for name, members in sets.items():
            if len(members) < self.at_least:
                left_out[f"sets of fewer than {self.at_least} sentences"] += 1
                continue
            given = scores.of(each.id for each in members)
            labels = np.array([float(each.label or 0) for each in members])
            try:
                rows[name] = point_biserial(given, labels, self.scale)
            except Undefined:
                why = "both classes" if labels.min() == labels.max() else "different scores"
                left_out[f"sets without {why}"] += 1
        columns = {"pbc": np.array([*rows.values()]), "sentences": np.array([float(len(sets[name])) for name in rows])}
        return Units(tuple(rows), columns, tuple(shared_tags(sets[name]) for name in rows), notes + notes_on(left_out))


@dataclass(frozen=True)
class Pearson:
    """The linear correlation of scores with people's ratings."""

    needs = "ratings"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a rated sentence."""
        return _rated_rows(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r."""
        return pearson(units["score"], units["rating"])


@dataclass(frozen=True)
class Spearman:
    """The rank correlation of scores with people's ratings; ties share their mean rank."""

    needs = "ratings"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a rated sentence."""
        return _rated_rows(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Pearson's r of the ranks."""
        return pearson(ranks(units["score"]), ranks(units["rating"]))


@dataclass(frozen=True)
class Kendall:
    """How often scores and people's ratings order two sentences alike, rather than oppositely (tau-b)."""

    needs = "ratings"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a rated sentence."""
        return _rated_rows(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return Kendall's tau-b."""
        return kendall(units["score"], units["rating"])


def correlation(kind: str, first: Floats, second: Floats) -> float:
    """Return the correlation of a kind: "pearson", "spearman" or "kendall"."""
    if kind == "kendall":
        return kendall(first, second)
    return pearson(first, second) if kind == "pearson" else pearson(ranks(first), ranks(second))


def point_biserial(scores: Floats, labels: Floats, scale: str = "log") -> float:
    """Return Pearson's r of scores with labels as 0 and 1; undefined for one class only."""
    if len(labels) and labels.min() == labels.max():
        raise Undefined(f"all {len(labels)} sentences have the label {labels[0]:g}")
    # Divided by the largest, which changes no correlation, since e to the power of a low score is no number.
    return pearson(np.exp(scores - scores.max()) if scale == "exp" and len(scores) else scores, labels)


def pearson(first: Floats, second: Floats) -> float:
    """Return Pearson's r; undefined for fewer than two rows, or where one side does not vary.

    >>> round(pearson(np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 4.0])), 4)
    0.9286
    """
    if len(first) < 2:
        raise Undefined(f"a correlation needs two rows; there are {len(first)}")
    if first.min() == first.max() or second.min() == second.max():
        raise Undefined("one side has the same value in every row")
    a, b = _unit_length(first), _unit_length(second)
    return float(np.clip(a @ b, -1.0, 1.0))


def ranks(values: Floats) -> Floats:
    """Return ranks from 1, ties sharing their mean rank.

    >>> ranks(np.array([3.0, 1.0, 3.0]))
    array([2.5, 1. , 2.5])
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    highest = np.cumsum(counts)
    return np.asarray((highest - (counts - 1) / 2)[inverse])


def _unit_length(values: Floats) -> Floats:
    # Scaled first, so that squares of very small or very large scores neither vanish nor overflow.
    centred = values - values.mean()
    scale = np.abs(centred).max()
    if scale == 0:
        raise Undefined("one side varies by less than numbers can tell")
    centred = centred / scale
    return np.asarray(centred / np.sqrt(centred @ centred))


def _rated_rows(suite: Suite, scores: Scores, measure: object) -> Units:
    kept, notes = rated(suite, measure)
    return _rows(kept, scores, "rating", [each.rating or 0.0 for each in kept], notes)


def _rows(kept: list[Sentence], scores: Scores, name: str, given: list[float], notes: tuple[str, ...]) -> Units:
    ids = tuple(each.id for each in kept)
    columns = {"score": scores.of(ids), name: np.array(given)}
    return Units(ids, columns, tuple(each.tags for each in kept), notes)
