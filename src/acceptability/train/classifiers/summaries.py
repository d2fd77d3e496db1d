"""What restarts reach on labelled sentences: mean and deviation, the best, the chosen one, and their majority vote.

As Warstadt et al. (2019) and the tables after them report it. The best of N on a set is chosen on that set itself,
and is too good by what chance gives; the run chosen on held-out sentences stands beside it and is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from acceptability.errors import MeasureError, TrainError, Undefined
from acceptability.measures.classification import MCC, Accuracy
from acceptability.measures.restarts import majority, over_restarts
from acceptability.measuring import measure
from acceptability.scoring import Progress, as_model, score
from acceptability.stats.bootstrap import Bootstrap
from acceptability.train.classifiers.restarts import Run, chosen
from acceptability.types import Result, Scores, Suite

_MEASURES = (MCC, Accuracy)
_VOTE = 0.5


@dataclass(frozen=True)
class Summary:
    """What N restarts reach on a suite by one measure.

    Args:
        n: How many sentences have a label.
        runs: How many restarts there are.
        std: The standard deviation over restarts, with n - 1; None for a single one.
        max, max_seed: The best of the restarts on this suite, and its seed: chosen on the suite itself.
        chosen, chosen_seed: What the restart reaches that is best on sentences held out of the training data.
        ensemble, low, high: The majority vote of all restarts, with its bootstrap interval.
        ties: How many sentences as many restarts accept as not; they count as unacceptable.
    """

    suite: str
    measure: str
    n: int
    runs: int
    mean: float
    std: float | None
    max: float
    max_seed: int
    chosen: float
    chosen_seed: int
    ensemble: float
    low: float | None
    high: float | None
    ties: int
    signature: str
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return it as one flat row, for JSON and tables."""
        return asdict(self) | {"notes": "; ".join(self.notes)}


def summaries(
    runs: Sequence[Run],
    suites: Sequence[Suite],
    *,
    bootstrap: Bootstrap | None = None,
    progress: Progress | None = None,
) -> list[Summary]:
    """Return what finished runs reach on labelled suites, by MCC and accuracy."""
    taught = [each for each in runs if each.told is not None]
    best = chosen(taught)
    for suite in suites:
        check_both_labels(suite)
    found: list[list[Scores]] = [[] for _ in suites]
    for run in taught if suites else ():
        _, in_use = as_model(run.spelling)
        for suite, scores in zip(suites, found, strict=True):
            scores.append(score(suite, run.spelling, "log_odds", progress=progress))
        del in_use
    seeds = [each.seed for each in taught]
    return [
        each
        for suite, scores in zip(suites, found, strict=True)
        for each in summarised(suite, scores, seeds, best.seed, bootstrap=bootstrap)
    ]


def summarised(
    suite: Suite, scores: Sequence[Scores], seeds: Sequence[int], best: int, *, bootstrap: Bootstrap | None = None
) -> list[Summary]:
    """Return what restarts reach on a suite, from their log-odds.

    Args:
        scores: Those of each restart, whose seeds are given in the same order.
        best: The seed of the restart that held-out sentences chose.
    """
    if len(scores) != len(seeds) or best not in seeds:
        raise TrainError(f"{len(scores)} restarts have scores, and seeds {list(seeds)}, of which {best} is the chosen")
    vote, ties = majority(scores), tied(scores)
    noted = (f"{ties} sentences as many restarts accept as not: they count as unacceptable",) if ties else ()
    found = []
    for kind in _MEASURES:
        values = [_value(measure(suite, each, [kind()], bootstrap=Bootstrap(resamples=0))[0]) for each in scores]
        (elected,) = measure(suite, vote, [kind(threshold=_VOTE)], bootstrap=bootstrap)
        over = over_restarts(values)
        found.append(
            Summary(
                suite.name,
                kind.__name__,
                elected.n,
                over.n,
                over.mean,
                over.std,
                over.max,
                seeds[values.index(over.max)],
                values[seeds.index(best)],
                best,
                _value(elected),
                elected.low,
                elected.high,
                ties,
                elected.signature,
                (*elected.notes, *noted),
            )
        )
    return found


def tied(scores: Sequence[Scores]) -> int:
    """Return how many sentences as many restarts accept as not.

    >>> tied([Scores({"a": 1.0, "b": 1.0}, "m"), Scores({"a": -1.0, "b": 2.0}, "m")])
    1
    """
    no, yes = (majority(scores, tie=side).values for side in (0, 1))
    return sum(no[each] != yes[each] for each in no)


def check_both_labels(suite: Suite) -> None:
    """Refuse a suite on which restarts cannot be compared: it needs sentences of both labels."""
    found = {each.label for each in suite.sentences} - {None}
    if found != {0, 1}:
        has = "no labels" if not found else f"only labels {found.pop()}"
        raise MeasureError(f"suite {suite.name!r} has {has}: restarts are compared where both 0 and 1 are")


def _value(result: Result) -> float:
    if result.value is None:
        raise Undefined(f"{result.measure} on {result.suite}: {result.reason}")
    return result.value
