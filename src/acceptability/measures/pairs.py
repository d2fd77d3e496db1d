"""Measures of minimal pairs and of sets of sentences.

- Pair accuracy, also called the BLiMP criterion.
- Pairs judged by a classifier: by its decisions, and by its probabilities (Warstadt et al. 2019, the NPI paper).
- What probability can tell about grammaticality (Hu et al. 2026). The two sentences of a pair share most of their
  content, so their probabilities correlate (``PairCorrelation``); the rest of the difference may follow human
  judgements (``DeltaCorrelation``, in the module ``delta``); and unrelated strings separate badly, however well pairs
  do (``UnpairedAUC``).
- Accuracy over sets of three classes of sentences (Hu, Chen and Levy 2020).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError
from acceptability.measures.classification import find_natural_threshold
from acceptability.measures.correlation import CORRELATION_KINDS, auc, compute_correlation, name_correlation
from acceptability.measures.rows import (
    check_choice,
    check_has_tag,
    check_tag_name,
    find_shared_tags,
    format_exclusion_notes,
    group_by_tag,
    mean,
    require_contrasts,
    require_number,
)
from acceptability.measures.weighting import weigh_auc, weigh_correlation
from acceptability.protocols import Measure, Moments, RowWeighting
from acceptability.types import Floats, Scores, Sentence, Suite, Units


@dataclass(frozen=True)
class PairAccuracy(Measure):
    """How often the better sentence of a contrast gets the higher score.

    Args:
        ties: The credit for an exact tie. With 0, the default as in the papers, the better sentence has to score
            strictly higher; 0.5 is the expected credit of a coin toss. As soon as a contrast has half a credit, a
            comparison has no McNemar test, which counts right and wrong contrasts.
    """

    ties: float = 0.0

    needs = "contrasts"
    mean_of = "correct"
    chance = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "ties", require_number("PairAccuracy: ties", self.ties))
        if not 0 <= self.ties <= 1:
            raise MeasureError(f"PairAccuracy: ties is {self.ties!r}; expected a number from 0 to 1")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: the score difference, and the credit."""
        contrasts = require_contrasts(suite, self)
        gaps = scores.of(contrast.better for contrast in contrasts) - scores.of(
            contrast.worse for contrast in contrasts
        )
        # Compared without a tolerance: log-probabilities are sums in float64 and are not rounded.
        correct = np.where(gaps == 0, self.ties, (gaps > 0).astype(np.float64))
        return Units(
            tuple(contrast.id for contrast in contrasts),
            {"gap": gaps, "correct": correct},
            tuple(contrast.tags for contrast in contrasts),
        )

    def value(self, units: Units) -> float:
        """Return the mean credit of the contrasts."""
        return mean(units["correct"])


@dataclass(frozen=True)
class AbsolutePair(Measure):
    """How often both sentences of a contrast are classified correctly: the better one acceptable, the worse one not.

    Args:
        threshold: A score above it means "acceptable", any other score "unacceptable". "auto" is 0 for a classifier's
            log-odds and 0.5 for its probability of "acceptable"; all other scores, also those of a file, have none of
            their own, and are refused without a number.
    """

    threshold: float | str = "auto"

    needs = "contrasts"
    mean_of = "correct"

    def __post_init__(self) -> None:
        if self.threshold != "auto":
            object.__setattr__(self, "threshold", require_number("AbsolutePair: threshold", self.threshold))

    def resolve(self, scores: Sequence[Scores], by: str) -> AbsolutePair:
        """Return the measure with the threshold of a classifier, unless classifiers have different ones."""
        thresholds = {self._find_threshold(given) for given in scores}
        return AbsolutePair(thresholds.pop()) if len(thresholds) == 1 else self

    def _find_threshold(self, scores: Scores) -> float:
        if not isinstance(self.threshold, str):
            return self.threshold
        natural = find_natural_threshold(scores)
        if natural is None:
            # A log-probability is below 0 whatever the sentence: every pair would be wrong.
            raise MeasureError(
                f"AbsolutePair: the scores of {scores.model!r} ({scores.reduction or 'a file'}) have no threshold of "
                "their own: give one that was fitted to other sentences, such as AbsolutePair(threshold=-30), or use "
                "PairAccuracy, which needs none. `acceptability methods` fits one by cross-validation."
            )
        return natural

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: both scores, and whether both sentences are classified correctly."""
        rows, threshold = pair_scores(suite, scores, self), self._find_threshold(scores)
        right = (rows["better"] > threshold) & (rows["worse"] <= threshold)
        return Units(rows.ids, {**rows.columns, "correct": right.astype(np.float64)}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the share of contrasts classified correctly."""
        return mean(units["correct"])


@dataclass(frozen=True)
class GradientPair(Measure):
    """How often a classifier gives the better sentence of a contrast the higher probability of "acceptable".

    A tie counts as wrong. Log-odds give the same value as probabilities, since both have the same order.
    """

    needs = "contrasts"
    mean_of = "correct"
    chance = 0.5

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: both scores, and whether the better sentence has the higher one."""
        rows = pair_scores(suite, scores, self)
        right = rows["better"] > rows["worse"]
        return Units(rows.ids, {**rows.columns, "correct": right.astype(np.float64)}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the share of contrasts whose better sentence has the higher score."""
        return mean(units["correct"])


PROBABILITY_MEASURES = ("PairCorrelation()", "DeltaCorrelation()", "UnpairedAUC()")
"""The specs of the three measures of Hu et al. (2026); the second needs ratings of both sentences."""


@dataclass(frozen=True)
class PairCorrelation(Measure):
    """The correlation between the scores of the two sentences of a contrast, over all contrasts.

    Args:
        kind: "pearson", "spearman" or "kendall" (tau-b).
    """

    kind: str = "pearson"

    needs = "contrasts"

    @property
    def statistic(self) -> str:
        """A correlation, of ranks or of the scores themselves."""
        return name_correlation(self.kind)

    def __post_init__(self) -> None:
        check_choice("PairCorrelation: kind", self.kind, CORRELATION_KINDS)

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast, with both scores."""
        return pair_scores(suite, scores, self)

    def value(self, units: Units) -> float:
        """Return the correlation of the better sentences' scores with the worse ones'."""
        return compute_correlation(self.kind, units["better"], units["worse"])

    def weigh(self, units: Units) -> Moments | RowWeighting:
        """Return the correlation of weighted contrasts."""
        return weigh_correlation(self.kind, units["better"], units["worse"])


@dataclass(frozen=True)
class UnpairedAUC(Measure):
    """The area under the ROC curve of all better sentences against all worse ones, whether or not two form a contrast.

    A tie counts one half. A sentence in several contrasts has a total weight of one, in equal parts.
    """

    needs = "contrasts"
    statistic = "auc"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast, with both scores and the weight of each sentence in this contrast."""
        rows = pair_scores(suite, scores, self)
        better, worse = (
            Counter(getattr(contrast, side) for contrast in suite.contrasts) for side in ("better", "worse")
        )
        # Weights sum to 1 over the contrasts of a sentence. Otherwise a sentence paired with ten others, as in suites
        # with one grammatical variant, would count ten times.
        shares = {
            "better_share": np.array([1 / better[contrast.better] for contrast in suite.contrasts]),
            "worse_share": np.array([1 / worse[contrast.worse] for contrast in suite.contrasts]),
        }
        return Units(rows.ids, {**rows.columns, **shares}, rows.tags)

    def value(self, units: Units) -> float:
        """Return the area under the ROC curve of better against worse sentences."""
        return auc(units["better"], units["worse"], units["better_share"], units["worse_share"])

    def weigh(self, units: Units) -> RowWeighting:
        """Return the area of weighted contrasts, each of which has a better and a worse sentence."""
        rows, none = np.arange(len(units["better"])), np.zeros(len(units["better"]))
        return weigh_auc(
            np.concatenate([units["better"], units["worse"]]),
            np.concatenate([rows, rows]),
            good=np.concatenate([units["better_share"], none]),
            bad=np.concatenate([none, units["worse_share"]]),
        )


SENTENCE_CLASSES = ("baseline", "distractor", "ungrammatical")


@dataclass(frozen=True)
class SetAccuracy(Measure):
    """How often the ungrammatical sentences of a set score below its baseline and below its distractor sentences.

    The mean scores of the classes are compared; a tie counts as wrong. A set is one row; sets that lack a class are
    excluded and counted in a note.

    Args:
        sets: The tag whose value is a sentence's set.
        classes: The tag whose value is its class: baseline, distractor or ungrammatical.
        against: The classes to compare with: "both", or only "baseline" or "distractor".
        grammatical: A tag that is 1 or 0. Sentences whose class contradicts it (1 on an ungrammatical one, 0 on
            another) are excluded; with the column of that name the published accuracies are reproduced.
    """

    sets: str = "set"
    classes: str = "class"
    against: str = "both"
    grammatical: str = ""

    needs = "sets"
    mean_of = "correct"

    def __post_init__(self) -> None:
        check_tag_name("SetAccuracy: sets", self.sets)
        check_tag_name("SetAccuracy: classes", self.classes)
        check_choice("SetAccuracy: against", self.against, ("both", "baseline", "distractor"))
        if self.grammatical != "":
            check_tag_name("SetAccuracy: grammatical", self.grammatical)

    @property
    def gathered_by(self) -> str:
        """The tag that groups sentences into one row."""
        return self.sets

    @property
    def needs_tags(self) -> tuple[str, ...]:
        """The tags that the options name."""
        return tuple(filter(None, (self.sets, self.classes, self.grammatical)))

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per set: the other two class means minus the ungrammatical one, and whether they are higher."""
        # Also checked before scoring; here for those who call the method with scores from elsewhere.
        for tag in self.needs_tags:
            check_has_tag(suite, self, tag)
        left_out: Counter[str] = Counter()
        kept = [sentence for sentence in suite.sentences if self._is_counted(suite, sentence, left_out)]
        rows, tags = {}, {}
        for name, members in group_by_tag(kept, self.sets).items():
            means = self._compute_class_means(members, scores)
            # An incomplete set has nothing to compare with; it would count as wrong, or as right, by accident.
            if len(means) < len(SENTENCE_CLASSES):
                left_out["sets without all three classes"] += 1
                continue
            rows[name] = [
                means[sentence_class] - means["ungrammatical"] for sentence_class in ("baseline", "distractor")
            ]
            tags[name] = find_shared_tags(members)
        # Reshaped for the case without any complete set, where the array would have no second axis to index.
        gaps = np.array([*rows.values()], dtype=np.float64).reshape(-1, 2)
        # Below both means below the lower of the two: the smaller gap decides.
        decisive = {"both": gaps.min(axis=1), "baseline": gaps[:, 0], "distractor": gaps[:, 1]}[self.against]
        columns = {"below_baseline": gaps[:, 0], "below_distractor": gaps[:, 1]}
        columns["correct"] = (decisive > 0).astype(np.float64)
        return Units(tuple(rows), columns, tuple(tags.values()), format_exclusion_notes(left_out))

    def value(self, units: Units) -> float:
        """Return the share of correct sets."""
        return mean(units["correct"])

    def _is_counted(self, suite: Suite, sentence: Sentence, left_out: Counter[str]) -> bool:
        sentence_class = sentence.tags.get(self.classes)
        # A missing tag is common and counted; an unknown class is a misspelling or a wrong column, and an error.
        if self.sets not in sentence.tags or sentence_class is None:
            left_out[f"sentences without the tags {self.sets!r} and {self.classes!r}"] += 1
            return False
        if sentence_class not in SENTENCE_CLASSES:
            raise MeasureError(
                f"suite {suite.name!r}: sentence {sentence.id!r} has {self.classes}={sentence_class!r}; "
                f"expected {', '.join(SENTENCE_CLASSES)}"
            )
        if self.grammatical and sentence.tags.get(self.grammatical) != (
            "0" if sentence_class == "ungrammatical" else "1"
        ):
            left_out[f"sentences whose tag {self.grammatical!r} contradicts their class"] += 1
            return False
        return True

    def _compute_class_means(self, members: list[Sentence], scores: Scores) -> dict[str, float]:
        scores_by_class: dict[str, list[float]] = {}
        for sentence in members:
            scores_by_class.setdefault(sentence.tags[self.classes], []).append(scores[sentence.id])
        # fsum rounds only once. With plain addition, the order of sentences could make or break a tie.
        return {name: math.fsum(values) / len(values) for name, values in scores_by_class.items()}


def pair_scores(suite: Suite, scores: Scores, measure: object) -> Units:
    """Return a row per contrast, with the scores of its two sentences."""
    contrasts = require_contrasts(suite, measure)
    # Both scores as columns, so that the bootstrap resamples them together.
    columns: dict[str, Floats] = {
        "better": scores.of(contrast.better for contrast in contrasts),
        "worse": scores.of(contrast.worse for contrast in contrasts),
    }
    return Units(tuple(contrast.id for contrast in contrasts), columns, tuple(contrast.tags for contrast in contrasts))
