"""All numbers on a set of answers as rows: reliability, agreement with labels, models against the ceiling."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.correlation import pearson
from acceptability.people.agreement import Agreement, rater_agreement, summary
from acceptability.people.ratings import Ratings
from acceptability.people.reliability import ceiling, cronbach, icc, krippendorff, leave_one_out, split_half
from acceptability.people.responses import Responses
from acceptability.types import Scores

Row = dict[str, object]


def reliability_rows(ratings: Ratings, *, splits: int = 1000, seed: int = 0) -> list[Row]:
    """Return every kind of reliability as a row: name, value, interval, and a note on what is undefined or left out."""
    values = ratings.values
    level = "nominal" if ratings.unit == "share" else "interval"

    def halves() -> Row:
        found = split_half(values, splits=splits, seed=seed)
        note = f"{found.undefined} splits without a correlation left out" if found.undefined else None
        return {"value": found.reliability, "low": found.low, "high": found.high, "note": note}

    def alone() -> Row:
        found = leave_one_out(values)
        none = sum(each is None for each in found.each)
        return {"value": found.mean, "note": f"{none} participants without a correlation left out" if none else None}

    def plain(compute: Callable[[], float]) -> Callable[[], Row]:
        return lambda: {"value": compute()}

    kinds: dict[str, Callable[[], Row]] = {
        f"split-half, Spearman-Brown (splits={splits}, seed={seed})": halves,
        "leave-one-out, mean r": alone,
        "Cronbach's alpha": plain(lambda: cronbach(values)),
        "ICC(2,1)": plain(lambda: icc(values)["ICC(2,1)"]),
        "ICC(2,k)": plain(lambda: icc(values)["ICC(2,k)"]),
        f"Krippendorff's alpha ({level})": plain(lambda: krippendorff(values, level=level)),
    }
    return [{"name": name, **_defined(compute)} for name, compute in kinds.items()]


def _defined(compute: Callable[[], Row]) -> Row:
    empty: Row = {"value": None, "low": None, "high": None, "note": None}
    try:
        return empty | compute()
    except Undefined as error:
        return empty | {"note": str(error)}


def agreement_rows(responses: Responses) -> list[Row]:
    """Return the agreement of each rater, of their mean, and of the majority, with the labels and with each other."""
    found = rater_agreement(responses)
    ties = f"{found.ties} sentences without a majority left out" if found.ties else None
    return [
        *({"who": name, "against": "labels", **asdict(each), "note": None} for name, each in found.raters.items()),
        _mean("mean of raters", "labels", list(found.raters.values())),
        {"who": "majority", "against": "labels", **asdict(found.majority), "note": ties},
        _mean("mean of raters", "majority", list(found.to_majority.values())),
        *([_mean("mean of pairs", "each other", list(found.pairs.values()))] if found.pairs else []),
    ]


def _mean(who: str, against: str, found: Sequence[Agreement]) -> Row:
    row: Row = {"who": who, "against": against, "accuracy": None, "mcc": None, "n": len(found), "note": None}
    try:
        each = summary(found)
    except Undefined as error:
        return row | {"note": str(error)}
    note = f"MCC: sd {each.mcc_sd:.4f} (ddof 0), largest {each.mcc_max:.4f}"
    return row | {"accuracy": each.accuracy, "mcc": each.mcc, "note": note}


def ceiling_rows(ratings: Ratings, scores: Sequence[Scores], *, splits: int = 1000, seed: int = 0) -> list[Row]:
    """Return each model's correlation with the ratings, set against the ceiling of their split-half reliability."""
    return list(_ceilings(ratings, scores, splits, seed))


def _ceilings(ratings: Ratings, scores: Sequence[Scores], splits: int, seed: int) -> Iterator[Row]:
    rated = [each.sentence.id for each in ratings.rows if each.mean is not None]
    means = ratings.means[~np.isnan(ratings.means)]
    for each in scores:
        row: Row = {"model": each.model, "correlation": None, "reliability": None, "ceiling": None, "share": None}
        try:
            row["correlation"] = found = pearson(each.of(rated), means)
            halves = split_half(ratings.values, splits=splits, seed=seed)
            yield row | asdict(ceiling(found, halves.reliability)) | {"n": len(rated), "reason": None}
        except Undefined as error:
            yield row | {"n": len(rated), "reason": str(error)}
