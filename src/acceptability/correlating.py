"""How models' scores go together with people's ratings and with each other: every two of them, with p values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from acceptability import __version__
from acceptability.errors import MeasureError
from acceptability.scoring import as_suite
from acceptability.signature import sign
from acceptability.spelling import write
from acceptability.stats.corrections import benjamini_hochberg, holm
from acceptability.stats.correlations import KINDS, correlation_matrix
from acceptability.stats.samples import check_choice
from acceptability.types import Floats, Scores, Suite

PEOPLE = "people"


@dataclass(frozen=True)
class Correlated:
    """The correlation of two columns: two models, or a model and people.

    Args:
        r: None where it is undefined, and ``reason`` says why.
        low, high: Its interval (Fisher's), None where there is none.
        p: Two-sided; ``holm`` and ``benjamini_hochberg`` are corrected for the number of correlations.
        n: How many sentences or contrasts it rests on.
        notes: What was left out.
    """

    first: str
    second: str
    r: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    benjamini_hochberg: float | None
    n: int
    signature: str
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the correlation as one flat row, for JSON and tables."""
        return vars(self) | {"notes": "; ".join(self.notes)}


def correlate_all(
    suite: Suite | str, scores: Sequence[Scores], *, of: str = "scores", kind: str = "pearson"
) -> list[Correlated]:
    """Return the correlation of every two among models and people.

    Args:
        of: "scores", over sentences, or "gaps", better minus worse, over contrasts. Only what people rated counts,
            where anything is rated; a suite without ratings sets models against each other alone.
        kind: "pearson", "spearman" or "kendall".
    """
    suite = as_suite(suite)
    check_correlations(suite, of, kind)
    columns = _WAYS[of](suite, scores)
    if len(columns) < 2:
        raise MeasureError(f"nobody rated suite {suite.name!r}, so a correlation needs the scores of two models")
    found = correlation_matrix(columns, kind)
    ps = [each.correlation.p if each.correlation else None for each in found]
    n = len(next(iter(columns.values())))
    fields = {
        "suite": suite.signature,
        "models": " and ".join(each.signature or each.model for each in scores),
        "n": str(n),
        "acceptability": __version__,
    }
    signature = sign(write("correlate", {"of": of, "kind": kind}), fields)
    everything = len(suite.sentences if of == "scores" else suite.contrasts)
    unrated = (f"{everything - n} of {everything} that nobody rated left out",) if everything > n else ()
    notes = tuple(dict.fromkeys((*unrated, *(note for each in scores for note in each.notes))))
    return [
        Correlated(
            each.first,
            each.second,
            each.correlation.r if each.correlation else None,
            each.correlation.low if each.correlation else None,
            each.correlation.high if each.correlation else None,
            p,
            strict,
            lenient,
            n,
            signature,
            each.reason,
            notes,
        )
        for each, p, strict, lenient in zip(found, ps, holm(ps), benjamini_hochberg(ps), strict=True)
    ]


def check_correlations(suite: Suite, of: str, kind: str) -> None:
    """Refuse correlations that the suite cannot give, before anything is scored."""
    if of not in _WAYS:
        raise MeasureError(f"correlations are of 'scores' or of 'gaps', not of {of!r}")
    check_choice("kind", kind, KINDS)
    if of == "gaps" and not suite.contrasts:
        raise MeasureError(f"suite {suite.name!r} has no contrasts, and so no gaps. Ask for the correlation of scores.")


def _scores(suite: Suite, scores: Sequence[Scores]) -> dict[str, Floats]:
    rated = [each for each in suite.sentences if each.rating is not None]
    ids = [each.id for each in rated or suite.sentences]
    people = {PEOPLE: np.array([each.rating for each in rated], dtype=np.float64)} if rated else {}
    return people | {name: each.of(ids) for name, each in _named(scores).items()}


def _gaps(suite: Suite, scores: Sequence[Scores]) -> dict[str, Floats]:
    ratings = {each.id: each.rating for each in suite.sentences if each.rating is not None}
    rated = [each for each in suite.contrasts if each.better in ratings and each.worse in ratings]
    kept = rated or suite.contrasts
    people = {PEOPLE: np.array([ratings[each.better] - ratings[each.worse] for each in rated])} if rated else {}
    return people | {
        name: given.of(each.better for each in kept) - given.of(each.worse for each in kept)
        for name, given in _named(scores).items()
    }


_WAYS: dict[str, Callable[[Suite, Sequence[Scores]], dict[str, Floats]]] = {"scores": _scores, "gaps": _gaps}


def _named(scores: Sequence[Scores]) -> dict[str, Scores]:
    """Return scores by who gave them; one name for two is an error."""
    names = [f"{each.model} {each.reduction}".strip() for each in scores]
    if twice := [name for name, count in Counter([*names, PEOPLE]).items() if count > 1]:
        raise MeasureError(f"two columns of scores are called {twice[0]!r}; give each model once")
    return dict(zip(names, scores, strict=True))
