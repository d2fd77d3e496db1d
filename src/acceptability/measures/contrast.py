"""Contrasts on a target: four ways to look at a minimal pair (Song and Oh 2017; Park, Park and Song 2021).

Directionality asks which member is more surprising, repulsion how far apart the two are, goodness whether
each lies on its side of a zero, intensity how much raters or restarts agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acceptability.errors import MeasureError, Undefined
from acceptability.measures.pairs import mean
from acceptability.measures.rows import checked_number, contrasts_of, scores_z
from acceptability.types import Contrast, Floats, Scores, Suite, Units

_WITH_ZERO = ("log_odds", "signed_confidence")
_ROUNDING = 1e-6


@dataclass(frozen=True)
class Directionality:
    """How often the target of the worse sentence is more surprising than that of the better one; a tie is not."""

    needs = "contrasts"
    mean_of = "correct"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: both surprisals in nats, and whether they are in order."""
        contrasts = contrasts_of(suite, self)
        better, worse = _surprisals(contrasts, scores)
        columns = {"better": better, "worse": worse, "correct": (worse > better).astype(np.float64)}
        return _rows(contrasts, columns)

    def value(self, units: Units) -> float:
        """Return the share of contrasts that are in order."""
        return mean(units["correct"])


@dataclass(frozen=True)
class Repulsion:
    """How far apart the two targets of a contrast are, on average: |a − b| / (a + b) of their surprisals.

    It lies between 0 and 1 and does not tell which of the two is more surprising. A contrast whose
    targets are both certain has none, and is left out with a note.
    """

    needs = "contrasts"
    mean_of = "repulsion"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast that has a repulsion: both surprisals in nats, and the repulsion."""
        everyone = contrasts_of(suite, self)
        better, worse = (_checked(each, self) for each in _surprisals(everyone, scores))
        kept = np.flatnonzero(better + worse > 0)
        better, worse = better[kept], worse[kept]
        columns = {"better": better, "worse": worse, "repulsion": np.abs(better - worse) / (better + worse)}
        left_out = len(everyone) - len(kept)
        notes = (f"{left_out} contrasts whose surprisals are both 0 left out",) if left_out else ()
        return _rows([everyone[place] for place in kept], columns, notes)

    def value(self, units: Units) -> float:
        """Return the mean repulsion."""
        return mean(units["repulsion"])


@dataclass(frozen=True)
class ClozePair:
    """How often the better one of two sentences that differ in one word has the more probable word.

    The sentences of a contrast must have as many words as each other, between spaces, and differ in one;
    others are left out with a note. The scores are those of the word, hidden, as ``contrasts`` gives them.

    Args:
        single_token: Leave out contrasts whose word is several tokens of the model: those whose tag
            ``tokens``, which ``contrasts`` sets, is not 1.
    """

    single_token: bool = False

    needs = "contrasts"
    mean_of = "correct"

    def __post_init__(self) -> None:
        if not isinstance(self.single_token, bool):
            raise MeasureError(f"ClozePair: single_token is {self.single_token!r}; expected True or False")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast that differs in one word: both surprisals, and whether they are in order."""
        everyone = contrasts_of(suite, self)
        clozes = [each for each in everyone if _differs_in_one_word(suite, each)]
        kept = [each for each in clozes if self._is_single(each)] if self.single_token else clozes
        counts = {
            "differ in more than one word": len(everyone) - len(clozes),
            "several tokens": len(clozes) - len(kept),
        }
        better, worse = _surprisals(kept, scores)
        columns = {"better": better, "worse": worse, "correct": (worse > better).astype(np.float64)}
        return _rows(kept, columns, tuple(f"{n} contrasts left out: {why}" for why, n in counts.items() if n))

    def _is_single(self, each: Contrast) -> bool:
        if "tokens" not in each.tags:
            raise MeasureError(
                f"{self!r}: the contrast {each.id} has no tag 'tokens'. `acceptability contrasts` and "
                "acceptability.contrasts.target_contrasts count the tokens of targets."
            )
        return each.tags["tokens"] == "1"

    def value(self, units: Units) -> float:
        """Return the share of contrasts that are in order."""
        return mean(units["correct"])


@dataclass(frozen=True)
class Goodness:
    """How often the better sentence lies above a zero and the worse one below it.

    A log-probability has no such zero: no number divides acceptable from unacceptable sentences. So
    the scores are taken as z-scores over the suite, or they are a classifier's.

    Args:
        scale: "z" for z-scores over all sentences of the suite; "logit" for scores with a zero of their
            own, such as a classifier's log-odds. Plain log-probabilities are refused.
        zero: Where the middle lies on that scale.
    """

    scale: str = "z"
    zero: float = 0.0

    needs = "contrasts"
    mean_of = "both"

    def __post_init__(self) -> None:
        object.__setattr__(self, "zero", checked_number("Goodness: zero", self.zero))
        if self.scale not in ("z", "logit"):
            raise MeasureError(f"Goodness: scale is {self.scale!r}; expected 'z' or 'logit'")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a contrast: both scores on the scale, and which of them lie on their side."""
        contrasts = contrasts_of(suite, self)
        placed = scores_z(suite, scores) if self.scale == "z" else self._with_zero(scores)
        better = np.array([placed[each.better] for each in contrasts])
        worse = np.array([placed[each.worse] for each in contrasts])
        good, bad = better > self.zero, worse < self.zero
        columns = {"better": better, "worse": worse, "good": good, "bad": bad, "both": good & bad}
        return _rows(contrasts, {name: column.astype(np.float64) for name, column in columns.items()})

    def _with_zero(self, scores: Scores) -> Scores:
        name = scores.reduction.partition("(")[0]
        is_one_sided = not name and max(scores.values.values()) <= 0
        if name not in ("", *_WITH_ZERO) or is_one_sided:
            raise MeasureError(
                f"{self!r}: the scores of {scores.model!r} ({scores.reduction or 'none above 0'}) are made of "
                "log-probabilities, which have no zero between good and bad. Take Goodness(scale='z'), or a classifier."
            )
        return scores

    def value(self, units: Units) -> float:
        """Return the share of contrasts whose members both lie on their side."""
        return mean(units["both"])


@dataclass(frozen=True)
class Intensity:
    """How far judgements of the same sentence lie apart, on average: the standard deviation over raters or restarts.

    Smaller is more intense. The scores have the keys ``id#rater``; ``together`` makes them from several
    models. One score for each sentence, such as a single model's surprisal, has no spread and is refused.
    """

    needs = "several scores for each sentence"
    mean_of = "spread"

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return one row a sentence that was judged: the mean, the spread (ddof 1), and how many judged it."""
        given: dict[str, list[float]] = {each.id: [] for each in suite.sentences}
        for key, value in scores.values.items():
            name = key.rpartition("#")[0]
            if name in given:
                given[name].append(value)
        judged = [each for each in suite.sentences if given[each.id]]
        if not judged or min(len(given[each.id]) for each in judged) < 2:
            raise MeasureError(
                f"{self!r} needs several scores for each sentence, with the keys id#rater; {scores.model!r} gives "
                "fewer than two. One judge's score, such as a single model's surprisal, has no spread."
            )
        rows = [np.array(given[each.id]) for each in judged]
        columns = {
            "mean": np.array([row.mean() for row in rows]),
            "spread": np.array([row.std(ddof=1) for row in rows]),
            "judges": np.array([float(len(row)) for row in rows]),
        }
        left_out = len(suite.sentences) - len(judged)
        notes = (f"{left_out} sentences that nobody judged left out",) if left_out else ()
        return Units(tuple(each.id for each in judged), columns, tuple(each.tags for each in judged), notes)

    def value(self, units: Units) -> float:
        """Return the mean spread."""
        return mean(units["spread"])


def together(given: Sequence[Scores]) -> Scores:
    """Return the scores of several judges as one, under the keys ``id#1``, ``id#2``, ...

    >>> joined = together([Scores({"a": 1.0}, "seed 0"), Scores({"a": 3.0}, "seed 1")])
    >>> dict(joined.values), joined.model
    ({'a#1': 1.0, 'a#2': 3.0}, 'seed 0, seed 1')
    """
    values = {f"{key}#{number}": value for number, each in enumerate(given, 1) for key, value in each.values.items()}
    joined = {name: ", ".join(dict.fromkeys(getattr(each, name) for each in given)) for name in _JOINED}
    return Scores(values, **joined, notes=tuple(dict.fromkeys(note for each in given for note in each.notes)))


_JOINED = ("model", "reduction", "signature")


def repulsion(better: float, worse: float) -> float:
    """Return |a − b| / (a + b) of two surprisals, in whatever unit; undefined where both are 0.

    >>> round(repulsion(7.7254944, 15.612077), 3), round(repulsion(0.01847287, 7.476947), 3)
    (0.338, 0.995)
    """
    if min(better, worse) < 0:
        raise MeasureError(f"the surprisals are {better:g} and {worse:g}; a surprisal is never below 0")
    if better + worse == 0:
        raise Undefined("both surprisals are 0")
    return abs(better - worse) / (better + worse)


def _surprisals(contrasts: Sequence[Contrast], scores: Scores) -> tuple[Floats, Floats]:
    return -scores.of(each.better for each in contrasts), -scores.of(each.worse for each in contrasts)


def _checked(surprisals: Floats, measure: object) -> Floats:
    if len(surprisals) and surprisals.min() < -_ROUNDING:
        raise MeasureError(
            f"{measure!r} takes log-probabilities, which are never above 0, and a score is {-surprisals.min():g}"
        )
    return np.maximum(surprisals, 0.0)


def _differs_in_one_word(suite: Suite, each: Contrast) -> bool:
    better, worse = suite.by_id[each.better].text.split(), suite.by_id[each.worse].text.split()
    return len(better) == len(worse) and sum(map(str.__ne__, better, worse)) == 1


def _rows(contrasts: Sequence[Contrast], columns: dict[str, Floats], notes: tuple[str, ...] = ()) -> Units:
    return Units(tuple(each.id for each in contrasts), columns, tuple(each.tags for each in contrasts), notes)
