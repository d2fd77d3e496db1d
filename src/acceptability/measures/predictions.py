"""Predictions about the surprisal of regions (SyntaxGym: Hu, Gauthier, Qian, Wilcox and Levy 2020)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, ScoreError, SpellingError, SuiteError
from acceptability.formulas import Formula, Region, holds, parse, regions
from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, items_with_predictions
from acceptability.types import Scores, Sentence, Suite, Tags, Units

_PER = ("prediction", "item", "first")
_TAG = re.compile(r"prediction(_[0-9]+)?")


@dataclass(frozen=True)
class Predictions:
    """How often what a suite predicts about the surprisal of regions is true of an item.

    Surprisal is minus the log-probability of a region; numbers in a prediction are in bits.

    Args:
        per: What counts as a row. "prediction": every prediction of every item. "item": an item,
            which is right when all its predictions hold. "first": an item, by its first prediction
            alone, which the accuracies published with SyntaxGym follow.
        tolerance: By how many bits two surprisals may differ that a prediction calls equal.
    """

    per: str = "prediction"
    tolerance: float = 0.001

    needs = "predictions"
    mean_of = "holds"

    def __post_init__(self) -> None:
        if self.per not in _PER:
            raise MeasureError(f"Predictions: per is {self.per!r}; expected {', '.join(map(repr, _PER))}")
        object.__setattr__(self, "tolerance", checked_number("Predictions: tolerance", self.tolerance))
        if self.tolerance < 0:
            raise MeasureError(f"Predictions: tolerance is {self.tolerance!r}; expected a number from 0")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a prediction or an item, with 1 where it holds; scores of regions are ``id#region``."""
        read: dict[str, Formula] = {}
        rows = [
            row
            for name, sentences in items_with_predictions(suite, self).items()
            for row in self._rows(name, sentences, scores, read)
        ]
        ids, held, tags = zip(*rows, strict=True)
        return Units(ids, {"holds": np.array(held, np.float64)}, tags)

    def value(self, units: Units) -> float:
        """Return the share of rows that hold."""
        return mean(units["holds"])

    def _rows(
        self, name: str, sentences: Sequence[Sentence], scores: Scores, read: dict[str, Formula]
    ) -> Iterator[tuple[str, bool, Tags]]:
        shared = _shared(sentences)
        formulas = _formulas(name, sentences, shared, read)
        conditions = _conditions(name, sentences)

        def surprisal(region: Region) -> float:
            return _surprisal(region, conditions, scores)

        held = {number: holds(each, surprisal, tolerance=self.tolerance) for number, each in formulas.items()}
        about = {key: value for key, value in shared.items() if not _is_prediction(key)}
        if self.per == "prediction":
            for number, formula in formulas.items():
                tags = {**about, "prediction": number, "formula": str(formula), "conditions": _named(formula)}
                yield f"{name}/prediction {number}", held[number], tags
        else:
            yield name, all(held.values()) if self.per == "item" else held["1"], about


def _shared(sentences: Sequence[Sentence]) -> dict[str, str]:
    first, *others = sentences
    return {
        key: value
        for key, value in first.tags.items()
        if all(other.tags.get(key) == value for other in others) and key not in ("condition", "empty_regions")
    }


def _is_prediction(tag: str) -> bool:
    return _TAG.fullmatch(tag) is not None


def _formulas(
    name: str, sentences: Sequence[Sentence], shared: Mapping[str, str], read: dict[str, Formula]
) -> dict[str, Formula]:
    """Return the formulas of an item by their numbers, each text read once."""
    stated = {key for sentence in sentences for key in sentence.tags if _is_prediction(key)}
    if torn := sorted(stated - shared.keys()):
        raise SuiteError(f"item {name!r}: its sentences do not all have the same {torn[0]}")
    found: dict[str, Formula] = {}
    for key in sorted(stated, key=lambda key: (len(key), key)):
        text = shared[key]
        try:
            found[key.partition("_")[2] or "1"] = read[text] if text in read else read.setdefault(text, parse(text))
        except SpellingError as error:
            raise SuiteError(f"item {name!r}: {error}") from error
    return found


def _conditions(name: str, sentences: Sequence[Sentence]) -> dict[str, Sentence]:
    conditions = {each.tags["condition"]: each for each in sentences}
    if len(conditions) < len(sentences):
        raise SuiteError(f"item {name!r} has two sentences in one condition; it has {', '.join(conditions)}")
    return conditions


def _surprisal(region: Region, conditions: Mapping[str, Sentence], scores: Scores) -> float:
    """Return minus the log-probability of a region; a region without text has none, that is 0."""
    sentence = conditions.get(region.condition)
    if sentence is None:
        raise SuiteError(f"a prediction speaks of {region}, but the item has the conditions {', '.join(conditions)}")
    if region.number == "*":
        return -scores[sentence.id]
    if region.number in sentence.tags.get("empty_regions", "").split():
        return 0.0
    if region.number not in sentence.regions:
        raise SuiteError(f"a prediction speaks of {region}, but sentence {sentence.id!r} has no region {region.number}")
    if (key := f"{sentence.id}#{region.number}") not in scores.values:
        raise ScoreError(
            f"no score of {scores.model!r} for {key!r}, that is {region}, which a prediction needs. Regions are scored "
            "by `acceptability score --regions` and region_scores; a region whose words the model skips has no score."
        )
    return -scores[key]


def _named(formula: Formula) -> str:
    return ", ".join(dict.fromkeys(region.condition for region in regions(formula)))
