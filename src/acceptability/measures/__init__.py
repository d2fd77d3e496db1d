"""Measures: statistics of scores, from pair accuracy to correlations with ratings.

Each is a value with two methods: ``units`` selects and prepares the rows, ``value`` computes the statistic from rows.
"""

from __future__ import annotations

import numpy as np

from acceptability import registry
from acceptability.measures.rows import PREDICTION_TAGS, has_predictions
from acceptability.protocols import Measure, complete_measure
from acceptability.types import Suite

DEFAULT_MEASURES = ("PairAccuracy()", "ADC()", "PBC()", "Pearson()", "Spearman()", "Predictions()")
"""The measures computed by default: of these, the ones that the suite has data for, and of labels without contrasts."""


def load_measure(text: str) -> Measure:
    """Return the measure that a spec describes.

    Args:
        text: A spec: the name of a measure, optionally with options.

    >>> load_measure("ADC(delta=1)")
    ADC(delta=1.0, standardise=True, tie='positive')
    """
    return complete_measure(registry.make("measure", text))


def choose_default_measures(suite: Suite) -> list[Measure]:
    """Return the default measures that the suite has data for.

    A suite of contrasts gets `PairAccuracy`, which is what it was made for. Its labels only say again which sentence of
    a contrast is the better one, and their correlation with scores (`PBC`) depends more on how much sentences differ in
    length and words than on the contrasts: it is a default for labelled sentences without contrasts, and has to be
    asked for otherwise. Ratings do say more than the contrasts, and were collected for it. A suite with contrasts and
    ratings, such as ``li_adger``, keeps the measures of them: `ADC`, `Pearson` and `Spearman`.

    >>> from acceptability.types import Contrast, Sentence
    >>> sentences = Sentence("a", "Cats sleep.", label=1), Sentence("b", "Cats sleeps.", label=0)
    >>> choose_default_measures(Suite("pairs", sentences, (Contrast("a", "b"),)))
    [PairAccuracy(ties=0.0)]
    >>> choose_default_measures(Suite("judgements", sentences))
    [PBC()]
    """
    # By the kind of data alone: a measure that needs more, such as a tag, is no default.
    has = list_available_data(suite) - ({"labels"} if suite.contrasts else set())
    return [measure for measure in map(load_measure, DEFAULT_MEASURES) if measure.needs in has]


def list_available_data(suite: Suite) -> set[str]:
    """Return the kinds of data that a suite contains, under the names that ``Measure.needs`` uses."""
    # Whole columns are looked at, so that a suite that was read before need not build a sentence.
    labels, is_rated = suite.labels, ~np.isnan(suite.ratings)
    has = {"contrasts"} if suite.contrasts else set()
    # Labels of one class alone are not counted, since most measures of labels are undefined for them.
    has |= {"labels"} if (labels == 0).any() and (labels == 1).any() else set()
    # One rating has no correlation with anything.
    has |= {"ratings"} if np.count_nonzero(is_rated) > 1 else set()
    # One contrast with two ratings is enough here; the others are excluded by the measure, with a note.
    has |= {"rated contrasts"} if is_rated.any() and is_rated[suite.pairs].all(axis=1).any() else set()
    tags = set(suite.tag_names)
    if tags >= PREDICTION_TAGS and any(has_predictions(sentence) for sentence in suite.sentences):
        has.add("predictions")
    has_set = {"set", "class"} <= tags and (suite.sentence_tag("set").codes >= 0) & (
        suite.sentence_tag("class").codes >= 0
    )
    return has | ({"sets"} if np.any(has_set) else set())
