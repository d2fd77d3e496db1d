"""What a model makes of CoLA's sentences: accuracy and MCC, for one run or over restarts.

A classifier accepts what has log-odds above 0. A language model's scores need a threshold, which is fitted: by ten-fold
cross-validation within a set, as Warstadt et al. (2019) do, or on another set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.classification import MCC, matthews
from acceptability.measures.restarts import majority, over_restarts
from acceptability.measures.thresholds import best_threshold, correlations
from acceptability.studies.niu_penn_pbc import Number
from acceptability.suites import load_suite
from acceptability.types import Floats, Scores, Sentence, Suite

DOMAINS = {"In-domain": "cola/in_domain_dev", "Out-of-domain": "cola/out_of_domain_dev"}
"""The columns of Table 4, and the sets on which ours are computed."""

MEASURES = ("Acc.", "MCC")
CHOSEN, MEAN, DEVIATION, BEST, ENSEMBLE = "chosen run", "mean", "standard deviation", "max", "ensemble"
_VOTE = 0.5


def both_domains() -> Suite:
    """Return the two development sets together, 1,043 sentences."""
    return Suite(
        "cola, development sets", tuple(each for name in DOMAINS.values() for each in load_suite(name).sentences)
    )


def at_threshold(sentences: Sequence[Sentence], scores: Scores, threshold: float = 0.0) -> dict[str, Number]:
    """Return accuracy and MCC where a score above the threshold means "acceptable"; MCC needs both labels."""
    predicted = (scores.of(each.id for each in sentences) > threshold).astype(np.float64)
    return _numbers(predicted, labels_of(sentences))


def cross_validated(suite: Suite, scores: Scores) -> dict[str, Number]:
    """Return accuracy and MCC of the same decisions, whose thresholds maximise MCC on nine of ten folds in turn."""
    units = MCC(threshold="cv").units(suite, scores)
    return _numbers(units["predicted"], units["label"])


def fitted_threshold(suite: Suite, scores: Scores) -> float:
    """Return the threshold with the highest MCC on a suite."""
    return best_threshold(scores.of(each.id for each in suite.sentences), labels_of(suite.sentences), correlations)


def labels_of(sentences: Sequence[Sentence]) -> Floats:
    """Return the labels as numbers."""
    return np.array([float(each.label or 0) for each in sentences])


def over_runs(
    sentences: Sequence[Sentence], runs: Sequence[Scores], chosen: int | None
) -> Iterator[tuple[str, str, Number]]:
    """Yield statistic, measure and number over the restarts of a classifier: one run has no statistic but itself.

    Args:
        runs: The log-odds of each restart.
        chosen: Which restart did best on held-out sentences; None where that is not known.
    """
    found = [at_threshold(sentences, each) for each in runs]
    if len(runs) == 1:
        yield from (("", measure, found[0][measure]) for measure in MEASURES)
        return
    elected = at_threshold(sentences, majority(runs), _VOTE)
    for measure in MEASURES:
        yield CHOSEN, measure, (None, "no held-out MCC") if chosen is None else found[chosen][measure]
        yield from ((name, measure, number) for name, number in _spread([each[measure] for each in found]).items())
        yield ENSEMBLE, measure, elected[measure]


def _spread(numbers: Sequence[Number]) -> Mapping[str, Number]:
    values = [value for value, _ in numbers if value is not None]
    if len(values) < len(numbers):
        why = next(note for value, note in numbers if value is None)
        return dict.fromkeys((MEAN, DEVIATION, BEST), (None, why))
    over = over_restarts(values)
    selected = "the best of the runs on the set that it is measured on: too good by what chance gives"
    return {MEAN: (over.mean, ""), DEVIATION: (over.std, "n - 1"), BEST: (over.max, selected)}


def _numbers(predicted: Floats, labels: Floats) -> dict[str, Number]:
    right: Number = (float((predicted == labels).mean()), "")
    try:
        return {"Acc.": right, "MCC": (matthews(predicted, labels), "")}
    except Undefined as error:
        return {"Acc.": right, "MCC": (None, str(error))}
