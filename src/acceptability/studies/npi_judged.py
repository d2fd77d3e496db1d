"""What the classifiers of a plan say, and the numbers that this gives for an environment: MCC, and pairs judged right.

Boolean acceptability is the MCC of decisions with the labels. Of a minimal pair the absolute measure wants both
sentences judged right, the gradient one only the acceptable sentence judged the more acceptable one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.classification import matthews
from acceptability.measures.decisions import AbsolutePair, GradientPair
from acceptability.protocols import Measure
from acceptability.scoring import Progress, score
from acceptability.signature import fingerprint
from acceptability.studies.npi_data import CHANGED, ENVIRONMENT, Material, material
from acceptability.studies.npi_plan import Planned, Taught, planned
from acceptability.studies.npi_train import WILCOX, Folder, judged_suite
from acceptability.suites import load_suite
from acceptability.train.classifiers.configurations import Configuration
from acceptability.train.recipe import FILE
from acceptability.types import Scores, Sentence, Suite

MEASURES: dict[str, Measure] = {"absolute": AbsolutePair(), "gradient": GradientPair()}

LogOdds = Mapping[str, float]
"""A classifier's log-odds of "acceptable", by text."""


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What all classifiers of a model say.

    Args:
        said: The log-odds of each restart, by what it was taught on.
        lacking: The folders of classifiers that are not finished.
        signature: A fingerprint of all of them.
    """

    model: Taught
    material: Material
    said: Mapping[Configuration, Sequence[LogOdds]]
    lacking: Sequence[str] = ()
    signature: str = ""

    def boolean(self, configurations: Iterable[Configuration], environment: str) -> Told:
        """Return the MCC on an environment, the mean over restarts and configurations."""
        found = [each for each in self.material.test.sentences if each.tags[ENVIRONMENT] == environment]
        return self._mean(configurations, lambda said: correlation(found, said))

    def elsewhere(self, configurations: Iterable[Configuration]) -> Told:
        """Return the MCC on the hand-made sentences after Wilcox et al. (2019)."""
        return self._mean(configurations, lambda said: correlation(load_suite(WILCOX).sentences, said))

    def pairs(self, configurations: Iterable[Configuration], measure: str, changed: str, environment: str) -> Told:
        """Return how many pairs of an environment are judged right, of those that differ in a factor."""
        suite = pairs_of(self.material.pairs, changed, environment)
        if suite is None:
            return Told(None, "there are no such pairs")
        wanted = list(configurations)
        told = self._mean(wanted, lambda said: _right(suite, measure, said))
        tied = self._mean(wanted, lambda said: _tied(suite, said))
        if measure != "gradient" or not tied.value:
            return told
        note = f"{tied.value:.1%} of the pairs tie, which counts as wrong: chance would decide half of them"
        return Told(told.value, "; ".join(filter(None, (told.note, note))))

    def _mean(self, configurations: Iterable[Configuration], value: Callable[[LogOdds], float]) -> Told:
        wanted = list(configurations)
        if any(not self.said.get(each) for each in wanted):
            return Told(None, "not every classifier that it needs is taught")
        try:
            return _told([value(said) for each in wanted for said in self.said[each]])
        except Undefined as error:
            return Told(None, str(error))


@dataclass(frozen=True)
class Told:
    """A number, or why there is none."""

    value: float | None
    note: str = ""


def _told(values: Sequence[float]) -> Told:
    several = f"mean of {len(values)} classifiers, standard deviation {stdev(values):.3f}" if len(values) > 1 else ""
    return Told(fmean(values), several)


def correlation(sentences: Sequence[Sentence], said: LogOdds) -> float:
    """Return the MCC of a classifier's decisions with the labels; log-odds above 0 mean "acceptable"."""
    predicted = np.array([said[each.text] > 0 for each in sentences], np.float64)
    return matthews(predicted, np.array([float(each.label or 0) for each in sentences]))


def pairs_of(suite: Suite, changed: str, environment: str) -> Suite | None:
    """Return the pairs of an environment that differ in a factor; None where there are none."""
    kept = tuple(
        each for each in suite.contrasts if each.tags[CHANGED] == changed and each.tags[ENVIRONMENT] == environment
    )
    names = {name for each in kept for name in (each.better, each.worse)}
    return Suite(suite.name, tuple(suite.by_id[name] for name in names), kept) if kept else None


def _right(suite: Suite, measure: str, said: LogOdds) -> float:
    scores = Scores({each.id: said[each.text] for each in suite.sentences}, "classifier", "log_odds", "")
    asked = MEASURES[measure]
    return float(asked.value(asked.units(suite, scores)))


def _tied(suite: Suite, said: LogOdds) -> float:
    """Return the share of pairs whose sentences a classifier cannot tell apart, as a bag of words does with orders."""
    texts = suite.by_id
    return fmean(said[texts[each.better].text] == said[texts[each.worse].text] for each in suite.contrasts)


def verdicts(folder: Folder, progress: Progress | None = None) -> list[Verdicts]:
    """Return what the classifiers in a folder say; what they said before comes from the store."""
    return [_of_model(folder, model, progress) for model in folder.models]


def _of_model(folder: Folder, model: Taught, progress: Progress | None) -> Verdicts:
    whole = material(folder.suite)
    runs = planned([model], whole.groups, folder.restarts)
    there = [each for each in runs if (folder.path / each.folder / FILE).is_file()]
    said: dict[Configuration, list[LogOdds]] = {}
    signatures = []
    for number, run in enumerate(there, start=1):
        log_odds, signature = _asked(folder, run)
        said.setdefault(run.configuration, []).append(log_odds)
        signatures.append(signature)
        if progress:
            progress(f"{model.name}: classifiers", number, len(there))
    lacking = [str(each.folder) for each in runs if each not in there]
    name = f"restarts:{len(there)}#{fingerprint(each.encode() for each in sorted(signatures))}.log_odds"
    return Verdicts(model, whole.judged(model.judged), said, lacking, name)


def _asked(folder: Folder, run: Planned) -> tuple[LogOdds, str]:
    suite = judged_suite(folder.suite, run.model.judged)
    found = score(suite, f"classifier:{folder.path / run.folder}")
    return {each.text: found[each.id] for each in suite.sentences}, found.signature
