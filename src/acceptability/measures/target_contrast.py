"""Contrasts on a target word: four measures of a minimal pair (Song and Oh 2017; Park, Park and Song 2021).

Directionality is about which member is more surprising, repulsion about how far apart the two are, goodness about
whether each lies on the correct side of a zero point, intensity about how much raters or restarts agree. Accuracy
(directionality) and repulsion together classify how well a phenomenon is learned (Park, Park and Song 2021, Tables 3
and 4; ``classify_learning``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.rows import mean, require_contrasts, require_number, standardise_scores
from acceptability.protocols import Measure
from acceptability.types import Contrast, Floats, Scores, Suite, Units

# A classifier's scores: positive for "acceptable", negative for "unacceptable".
_ZERO_POINT_REDUCTIONS = ("log_odds", "signed_confidence")
# The log-probability of a near-certain word may come out slightly above 0, since softmax is computed in floats.
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Directionality(Measure):
    """How often the target of the worse sentence is more surprising than that of the better one; a tie is wrong."""

    needs = "contrasts"
    mean_of = "correct"
    chance = 0.5

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: both surprisals in nats, and whether the worse target is more surprising."""
        contrasts = require_contrasts(suite, self)
        better, worse = _compute_surprisals(contrasts, scores)
        columns = {"better": better, "worse": worse, "correct": (worse > better).astype(np.float64)}
        return _build_units(contrasts, columns)

    def value(self, units: Units) -> float:
        """Return the share of contrasts that are right."""
        return mean(units["correct"])


@dataclass(frozen=True)
class Repulsion(Measure):
    """How far apart the two targets of a contrast are, on average: |a − b| / (a + b) of their surprisals.

    It lies between 0 and 1 and does not depend on which of the two is more surprising. It is undefined for a contrast
    whose targets are both certain, which is excluded and counted in a note.
    """

    needs = "contrasts"
    mean_of = "repulsion"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast with a repulsion: both surprisals in nats, and the repulsion."""
        all_contrasts = require_contrasts(suite, self)
        better, worse = (
            _clip_surprisals(surprisals, self) for surprisals in _compute_surprisals(all_contrasts, scores)
        )
        # 0/0 otherwise: two surprisals of 0 have no ratio.
        kept = np.flatnonzero(better + worse > 0)
        better, worse = better[kept], worse[kept]
        columns = {"better": better, "worse": worse, "repulsion": np.abs(better - worse) / (better + worse)}
        left_out = len(all_contrasts) - len(kept)
        notes = (f"{left_out} contrasts whose surprisals are both 0 left out",) if left_out else ()
        return _build_units([all_contrasts[index] for index in kept], columns, notes)

    def value(self, units: Units) -> float:
        """Return the mean repulsion."""
        return mean(units["repulsion"])


@dataclass(frozen=True)
class ClozePair(Measure):
    """Cloze accuracy: how often the one word that differs is more probable in the better sentence.

    The sentences of a contrast must have equally many words, separated by spaces, and differ in one of them; other
    contrasts are excluded and counted in a note. The scores are those of the masked word, from ``contrasts``.

    Args:
        single_token: Whether to exclude contrasts whose word has several tokens in the model: those whose tag
            ``tokens``, which ``contrasts`` sets, is not 1.
    """

    single_token: bool = False

    needs = "contrasts"
    mean_of = "correct"
    chance = 0.5

    def __post_init__(self) -> None:
        if not isinstance(self.single_token, bool):
            raise MeasureError(f"ClozePair: single_token is {self.single_token!r}; expected True or False")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast that differs in one word: both surprisals, and whether the contrast is right."""
        all_contrasts = require_contrasts(suite, self)
        clozes = [contrast for contrast in all_contrasts if _differs_in_one_word(suite, contrast)]
        kept = [contrast for contrast in clozes if self._is_single_token(contrast)] if self.single_token else clozes
        counts = {
            "differ in more than one word": len(all_contrasts) - len(clozes),
            "several tokens": len(clozes) - len(kept),
        }
        better, worse = _compute_surprisals(kept, scores)
        columns = {"better": better, "worse": worse, "correct": (worse > better).astype(np.float64)}
        return _build_units(kept, columns, tuple(f"{n} contrasts left out: {why}" for why, n in counts.items() if n))

    def _is_single_token(self, contrast: Contrast) -> bool:
        if "tokens" not in contrast.tags:
            raise MeasureError(
                f"{self!r}: the contrast {contrast.id} has no tag 'tokens'. `acceptability contrasts` and "
                "acceptability.api.contrasts.score_target_contrasts count the tokens of targets."
            )
        return contrast.tags["tokens"] == "1"

    def value(self, units: Units) -> float:
        """Return the share of contrasts that are right."""
        return mean(units["correct"])


@dataclass(frozen=True)
class Goodness(Measure):
    """How often the better sentence lies above a zero point and the worse one below it.

    A log-probability has no such zero: no number separates acceptable from unacceptable sentences. So the scores are
    converted to z-scores over the suite, or they come from a classifier.

    Args:
        scale: "z" for z-scores over all sentences of the suite; "logit" for scores that have a zero point, such as a
            classifier's log-odds. Plain log-probabilities are an error.
        zero: The zero point on that scale.
    """

    scale: str = "z"
    zero: float = 0.0

    needs = "contrasts"
    mean_of = "both"

    def __post_init__(self) -> None:
        object.__setattr__(self, "zero", require_number("Goodness: zero", self.zero))
        if self.scale not in ("z", "logit"):
            raise MeasureError(f"Goodness: scale is {self.scale!r}; expected 'z' or 'logit'")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per contrast: both scores on the scale, and which of them lie on the correct side."""
        contrasts = require_contrasts(suite, self)
        scaled_scores = standardise_scores(suite, scores) if self.scale == "z" else self._require_zero_point(scores)
        better = np.array([scaled_scores[contrast.better] for contrast in contrasts])
        worse = np.array([scaled_scores[contrast.worse] for contrast in contrasts])
        good, bad = better > self.zero, worse < self.zero
        columns = {"better": better, "worse": worse, "good": good, "bad": bad, "both": good & bad}
        return _build_units(contrasts, {name: column.astype(np.float64) for name, column in columns.items()})

    def _require_zero_point(self, scores: Scores) -> Scores:
        # Scores from a file have no reduction. If none of them is positive they are taken for log-probabilities.
        name = scores.reduction.partition("(")[0]
        is_one_sided = not name and max(scores.values.values()) <= 0
        if name not in ("", *_ZERO_POINT_REDUCTIONS) or is_one_sided:
            raise MeasureError(
                f"{self!r}: the scores of {scores.model!r} ({scores.reduction or 'none above 0'}) are computed from "
                "log-probabilities, which have no zero between good and bad. Use Goodness(scale='z'), or a classifier."
            )
        return scores

    def value(self, units: Units) -> float:
        """Return the share of contrasts whose members both lie on the correct side."""
        return mean(units["both"])


@dataclass(frozen=True)
class Intensity(Measure):
    """The mean standard deviation of the judgements of one sentence, over raters or restarts.

    Smaller is more intense. The scores have the keys ``id#rater``; ``combine_scores`` builds them from several
    models. One score per sentence, such as a single model's surprisal, has no deviation and is an error.
    """

    needs = "several scores for each sentence"
    mean_of = "spread"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per judged sentence: the mean, the standard deviation (ddof 1), and the number of judges."""
        judgements: dict[str, list[float]] = {sentence.id: [] for sentence in suite.sentences}
        for key, value in scores.values.items():
            # Split at the last #, since the id of a sentence may contain one itself.
            name = key.rpartition("#")[0]
            if name in judgements:
                judgements[name].append(value)
        judged = [sentence for sentence in suite.sentences if judgements[sentence.id]]
        if not judged or min(len(judgements[sentence.id]) for sentence in judged) < 2:
            raise MeasureError(
                f"{self!r} needs several scores for each sentence, with the keys id#rater; {scores.model!r} gives "
                "fewer than two. The score of one judge, such as a single model's surprisal, has no spread."
            )
        rows = [np.array(judgements[sentence.id]) for sentence in judged]
        columns = {
            "mean": np.array([row.mean() for row in rows]),
            "spread": np.array([row.std(ddof=1) for row in rows]),
            "judges": np.array([float(len(row)) for row in rows]),
        }
        left_out = len(suite.sentences) - len(judged)
        notes = (f"{left_out} sentences that nobody judged left out",) if left_out else ()
        return Units(
            tuple(sentence.id for sentence in judged), columns, tuple(sentence.tags for sentence in judged), notes
        )

    def value(self, units: Units) -> float:
        """Return the mean standard deviation."""
        return mean(units["spread"])


def combine_scores(given: Sequence[Scores]) -> Scores:
    """Return the scores of several judges combined, under the keys ``id#1``, ``id#2``, ...

    >>> joined = combine_scores([Scores({"a": 1.0}, "seed 0"), Scores({"a": 3.0}, "seed 1")])
    >>> dict(joined.values), joined.model
    ({'a#1': 1.0, 'a#2': 3.0}, 'seed 0, seed 1')
    """
    values = {f"{key}#{number}": value for number, judge in enumerate(given, 1) for key, value in judge.values.items()}
    model, reduction, signature = (
        ", ".join(dict.fromkeys(getattr(judge, name) for judge in given))
        for name in ("model", "reduction", "signature")
    )
    notes = tuple(dict.fromkeys(note for judge in given for note in judge.notes))
    return Scores(values, model, reduction, signature, notes)


def compute_repulsion(better: float, worse: float) -> float:
    """Return |a − b| / (a + b) of two surprisals, in any unit; undefined if both are 0.

    >>> round(compute_repulsion(7.7254944, 15.612077), 3), round(compute_repulsion(0.01847287, 7.476947), 3)
    (0.338, 0.995)
    """
    if min(better, worse) < 0:
        raise MeasureError(f"the surprisals are {better:g} and {worse:g}; a surprisal is never below 0")
    if better + worse == 0:
        raise Undefined("both surprisals are 0")
    return abs(better - worse) / (better + worse)


GRADES = ("high", "intermediate", "low")

LEARNING_CLASSES = {
    ("high", "high"): "strongly learned",
    ("high", "intermediate"): "moderately learned",
    ("high", "low"): "weakly learned",
    ("intermediate", "high"): "slightly confused",
    ("intermediate", "intermediate"): "moderately confused",
    ("intermediate", "low"): "highly confused",
    ("low", "high"): "strongly mis-learned",
    ("low", "intermediate"): "moderately mis-learned",
    ("low", "low"): "weakly mis-learned",
}
"""The class of a phenomenon, by the grade of its accuracy and that of its repulsion."""


LEARNED_ACCURACY = 0.80
"""The accuracy from which on an error type counts as learned, in section 3.3 of Park, Park and Song (2021)."""


@dataclass(frozen=True)
class Cutoffs:
    """The cut-offs at which accuracy and repulsion count as high or low, in Table 3 of Park, Park and Song (2021).

    The paper gives none; these reproduce its classes for all 22 types of its Table 4.

    Args:
        accuracy_high: The smallest high accuracy.
        accuracy_low: The largest low accuracy.
        repulsion_high: The smallest high repulsion.
        repulsion_low: Repulsion below this is low.
    """

    accuracy_high: float = 0.80
    accuracy_low: float = 0.35
    repulsion_high: float = 0.70
    repulsion_low: float = 0.40

    def __post_init__(self) -> None:
        for cutoff in fields(self):
            value = require_number(f"cut-offs: {cutoff.name}", getattr(self, cutoff.name))
            object.__setattr__(self, cutoff.name, value)
        if not (self.accuracy_low < self.accuracy_high and self.repulsion_low <= self.repulsion_high):
            raise MeasureError(f"{self!r}: the cut-offs of low must lie below those of high")


@dataclass(frozen=True)
class ErrorType:
    """A type of error in sentences: what a contrast of this type violates.

    Args:
        name: The name of the type.
        accuracy: The share of its contrasts that the model gets right.
        rating: The mean human rating of its unacceptable sentences.
    """

    name: str
    accuracy: float
    rating: float


def assign_grades(accuracy: float, repulsion: float, cutoffs: Cutoffs | None = None) -> tuple[str, str]:
    """Return the grades of accuracy and repulsion: "high", "intermediate" or "low".

    Args:
        accuracy: The share of contrasts in the predicted direction.
        repulsion: The mean repulsion of the contrasts.
        cutoffs: The cut-offs of the grades; by default those that reproduce the paper.

    >>> assign_grades(0.297, 0.29)
    ('low', 'low')
    """
    limits = cutoffs or Cutoffs()
    is_low, is_high = accuracy <= limits.accuracy_low, accuracy >= limits.accuracy_high
    accuracy_grade = GRADES[0] if is_high else GRADES[2] if is_low else GRADES[1]
    is_low, is_high = repulsion < limits.repulsion_low, repulsion >= limits.repulsion_high
    return accuracy_grade, GRADES[0] if is_high else GRADES[2] if is_low else GRADES[1]


def classify_learning(accuracy: float, repulsion: float, cutoffs: Cutoffs | None = None) -> str:
    """Return how well a phenomenon is learned, by its accuracy and repulsion.

    >>> classify_learning(0.0, 0.88), classify_learning(0.563, 0.52)
    ('strongly mis-learned', 'moderately confused')
    """
    return LEARNING_CLASSES[assign_grades(accuracy, repulsion, cutoffs)]


def split_by_accuracy(
    rows: Sequence[ErrorType], threshold: float = LEARNED_ACCURACY
) -> tuple[list[ErrorType], list[ErrorType]]:
    """Return the types that a model has not learned, below a threshold of accuracy, and those that it has.

    A type at the threshold counts as learned. A rank-sum test of the ratings shows whether humans too are less sure
    about the types that the model has not learned.

    Args:
        rows: Types of errors.
        threshold: The smallest accuracy of a learned type.

    >>> below, above = split_by_accuracy([ErrorType("a", 0.5, -0.1), ErrorType("b", 0.8, -0.6)])
    >>> [row.name for row in below], [row.rating for row in above]
    (['a'], [-0.6])
    """
    below = [error_type for error_type in rows if error_type.accuracy < threshold]
    return below, [error_type for error_type in rows if error_type.accuracy >= threshold]


def _compute_surprisals(contrasts: Sequence[Contrast], scores: Scores) -> tuple[Floats, Floats]:
    return -scores.of(contrast.better for contrast in contrasts), -scores.of(contrast.worse for contrast in contrasts)


def _clip_surprisals(surprisals: Floats, measure: object) -> Floats:
    # Above the rounding error a positive score is no log-probability, and its repulsion would be meaningless.
    if len(surprisals) and surprisals.min() < -_ROUNDING:
        raise MeasureError(
            f"{measure!r} takes log-probabilities, which are never above 0, and a score is {-surprisals.min():g}"
        )
    return np.maximum(surprisals, 0.0)


def _differs_in_one_word(suite: Suite, contrast: Contrast) -> bool:
    better, worse = suite.by_id[contrast.better].text.split(), suite.by_id[contrast.worse].text.split()
    return len(better) == len(worse) and sum(map(str.__ne__, better, worse)) == 1


def _build_units(contrasts: Sequence[Contrast], columns: dict[str, Floats], notes: tuple[str, ...] = ()) -> Units:
    return Units(
        tuple(contrast.id for contrast in contrasts), columns, tuple(contrast.tags for contrast in contrasts), notes
    )
