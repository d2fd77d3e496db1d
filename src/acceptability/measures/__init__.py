"""Questions about scores: each a value with ``units`` (which rows count) and ``value`` (what they give)."""

from __future__ import annotations

from acceptability import registry
from acceptability.measures.rows import states_predictions
from acceptability.protocols import Measure
from acceptability.types import Suite

DEFAULTS = ("PairAccuracy()", "ADC()", "PBC()", "Pearson()", "Spearman()", "Predictions()")
"""What is asked of a suite when nobody says: of these, those that it can answer."""


def load_measure(text: str) -> Measure:
    """Return the measure of a spelling.

    >>> load_measure("ADC(delta=1)")
    ADC(delta=1.0, standardise=True, tie='positive')
    """
    measure: Measure = registry.make("measure", text)
    return measure


def default_measures(suite: Suite) -> list[Measure]:
    """Return the measures that a suite can answer."""
    has = offers(suite)
    return [measure for measure in map(load_measure, DEFAULTS) if measure.needs in has]


def offers(suite: Suite) -> set[str]:
    """Return what a suite gives to measures."""
    labels = {sentence.label for sentence in suite.sentences} - {None}
    rated = {sentence.id for sentence in suite.sentences if sentence.rating is not None}
    has = {"contrasts"} if suite.contrasts else set()
    has |= {"labels"} if len(labels) == 2 else set()
    has |= {"ratings"} if len(rated) > 1 else set()
    has |= {"rated contrasts"} if any({each.better, each.worse} <= rated for each in suite.contrasts) else set()
    has |= {"predictions"} if any(states_predictions(each) for each in suite.sentences) else set()
    has |= {"sets"} if any({"set", "class"} <= each.tags.keys() for each in suite.sentences) else set()
    return has
