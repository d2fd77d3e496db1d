"""From log-probabilities to ratings: the constants of MORCELA, fitted to what people said (Tjuatja et al. 2025).

MORCELA is (l - beta * u + gamma) / n. The beta and gamma whose scores go best together with ratings
(Pearson) are those of a linear regression of ratings on l / n, u / n and 1 / n. How well they do is told
on sentences that they were not fitted to, beside SLOR and the plain log-probability.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.measures.correlation import pearson
from acceptability.measures.options import check_count
from acceptability.measures.rows import rated, ratings_are_z, ratings_z
from acceptability.reductions import Morcela
from acceptability.signature import sign
from acceptability.spelling import write
from acceptability.types import Floats, Said, Suite, TokenScores
from acceptability.unigrams import by_unit, coverage, load_unigrams

LINKS = ("morcela", "slor", "lp")


@dataclass(frozen=True)
class Linking:
    """MORCELA fitted to all rated sentences, and what it is worth on sentences it was not fitted to.

    Args:
        reduction: The reduction with the fitted constants, to score other suites with.
        correlations: The mean over folds of Pearson's r with ratings within a fold, for "morcela" (fitted
            on the other folds), "slor" and "lp".
        by_fold: The correlations within each fold.
        notes: What was left out.
    """

    reduction: Morcela
    correlations: Mapping[str, float]
    by_fold: Mapping[str, tuple[float, ...]]
    n: int
    signature: str
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Sums:
    """What MORCELA reads of sentences: summed log-probabilities by model and by unigrams, and how many units."""

    model: Floats
    unigrams: Floats
    units: Floats

    def take(self, rows: NDArray[np.bool_]) -> _Sums:
        return _Sums(self.model[rows], self.unigrams[rows], self.units[rows])


def fit_morcela(
    suite: Suite,
    said: Mapping[str, Said],
    unigrams: str,
    *,
    group: str = "",
    folds: int = 10,
    seed: int = 0,
    model: str = "",
) -> Linking:
    """Return MORCELA's constants for a suite with ratings, and how well they do out of fold.

    Args:
        said: What a model said to each sentence, by its id.
        unigrams: The unigram table: ``wordfreq:en``, or the path of a file.
        group: The tag whose sentences stay in one fold, such as ``item``; empty where each stands alone.
        folds: How many folds; the fewer, the more sentences each correlation rests on.
        seed: How groups are shuffled before they are dealt out to the folds.
        model: The signature of the model that said it, which becomes part of this one's.
    """
    fold = rated_folds(suite, group=group, folds=folds, seed=seed)
    kept, notes = rated(suite, "fit_morcela")
    ids = [each.id for each in kept]
    people = ratings_z(suite)
    ratings = np.array([people[each] for each in ids])
    sums = _sums(ids, said, unigrams)
    found: dict[str, list[float]] = {name: [] for name in LINKS}
    for number in range(folds):
        inside = fold == number
        scores = _links(sums.take(inside), *fitted(ratings[~inside], *_columns(sums.take(~inside))))
        for name in LINKS:
            found[name].append(pearson(scores[name], ratings[inside]))
    beta, gamma = fitted(ratings, *_columns(sums))
    reduction = Morcela(unigrams, beta, gamma)
    return Linking(
        reduction,
        {name: float(np.mean(values)) for name, values in found.items()},
        {name: tuple(values) for name, values in found.items()},
        len(ids),
        sign(
            write("fit_morcela", {"group": group, "folds": folds, "seed": seed}),
            {
                "suite": suite.signature,
                **({"model": model} if model else {}),
                "reduction": reduction.signature,
                "ratings": "z as given" if ratings_are_z(suite) else "standardised(ddof=0)",
                "n": str(len(ids)),
                "acceptability": __version__,
            },
        ),
        (*notes, *_lacking(ids, said, unigrams)),
    )


def rated_folds(suite: Suite, *, group: str = "", folds: int = 10, seed: int = 0) -> NDArray[np.int64]:
    """Return the fold of each rated sentence; what cannot be dealt out is refused here, before any model is asked."""
    check_count("fit_morcela: folds", folds, 2)
    check_count("fit_morcela: seed", seed, 0)
    kept, _ = rated(suite, "fit_morcela")
    return _folds([each.tags.get(group, "") if group else each.id for each in kept], group, folds, seed)


def _lacking(ids: list[str], said: Mapping[str, Said], unigrams: str) -> Iterator[str]:
    """Yield a note on what the unigram table does not list."""
    table = load_unigrams(unigrams)
    told = [found for each in ids if isinstance(found := said[each], TokenScores)]
    lacking, units = np.sum([coverage(each, table) for each in told], axis=0).tolist()
    if lacking:
        yield f"{lacking} of {units} {table.unit}s are not in {table.signature}"


def fitted(ratings: Floats, model: Floats, unigrams: Floats, units: Floats) -> tuple[float, float]:
    """Return the beta and gamma under which (l - beta * u + gamma) / n correlates best with ratings.

    >>> l, u = np.array([-9.0, -8.0, -20.0, -7.0, -30.0]), np.array([-5.0, -9.0, -16.0, -6.0, -20.0])
    >>> n = np.array([2.0, 3.0, 4.0, 5.0, 6.0])
    >>> beta, gamma = fitted((l - 0.5 * u + 3) / n, l, u, n)
    >>> round(beta, 6), round(gamma, 6)
    (0.5, 3.0)
    """
    predictors = np.column_stack([model / units, unigrams / units, 1 / units])
    centred = predictors - predictors.mean(axis=0)
    spread = centred.std(axis=0)
    if not (spread > 0).all():
        raise Undefined("beta and gamma cannot be told: sentences need different lengths and different words")
    weights, _, rank, _ = np.linalg.lstsq(centred / spread, ratings - ratings.mean(), rcond=None)
    if rank < predictors.shape[1]:
        raise Undefined(f"beta and gamma cannot be told from {len(ratings)} sentences: too few, or too much alike")
    by_model, by_unigrams, by_length = (weights / spread).tolist()
    if not by_model > 0:
        raise Undefined("ratings do not rise with the model's log-probabilities, so no MORCELA fits them")
    return -by_unigrams / by_model, by_length / by_model


def _links(sums: _Sums, beta: float, gamma: float) -> dict[str, Floats]:
    return {
        "morcela": (sums.model - beta * sums.unigrams + gamma) / sums.units,
        "slor": (sums.model - sums.unigrams) / sums.units,
        "lp": sums.model,
    }


def _columns(sums: _Sums) -> tuple[Floats, Floats, Floats]:
    return sums.model, sums.unigrams, sums.units


def _sums(ids: list[str], said: Mapping[str, Said], unigrams: str) -> _Sums:
    table = load_unigrams(unigrams)
    rows = []
    for each in ids:
        found = said.get(each)
        if not isinstance(found, TokenScores):
            what = "nothing" if found is None else "a classifier's logits"
            raise ScoreError(f"fit_morcela needs log-probabilities of sentence {each!r}; there is {what}")
        model, single = by_unit(found, table)
        rows.append((model.sum(), single.sum(), float(len(model))))
    return _Sums(*np.array(rows, dtype=np.float64).T)


def _folds(groups: list[str], tag: str, folds: int, seed: int) -> NDArray[np.int64]:
    """Return the fold of each sentence: groups are sorted, shuffled and dealt out in turn."""
    if "" in groups:
        raise MeasureError(f"cannot make folds by {tag!r}: {groups.count('')} rated sentences lack that tag")
    names = np.random.default_rng(seed).permutation(sorted(set(groups)))
    if len(names) < folds:
        raise MeasureError(f"{folds} folds need as many groups; there are {len(names)}. Give fewer folds.")
    fold_of = {str(name): place % folds for place, name in enumerate(names)}
    found = np.array([fold_of[each] for each in groups], dtype=np.int64)
    if np.bincount(found).min() < 2:
        raise MeasureError(f"{folds} folds of {len(groups)} sentences: each needs two at least. Give fewer folds.")
    return found
