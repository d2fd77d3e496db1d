"""Whether people's ratings bear out the labels of a suite: the validation of Warstadt et al. (2019, the NPI paper).

Ratings on a scale from 1 to 6 become Boolean: at most 3 is a no, 4 and more a yes. The agreement is the share of all
answers that are the label's. Wilcoxon's signed-rank test asks whether acceptable sentences are rated higher than
unacceptable ones. The paper does not say what it pairs; here each participant's means of the two kinds are a pair, and,
beside that, each paradigm's (tag ``set``), raw and as Booleans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from acceptability.errors import SuiteError, Undefined
from acceptability.people.responses import Responses
from acceptability.stats.ranks import SignedRank, signed_rank
from acceptability.types import Floats

LOWEST, HIGHEST, LAST_NO = 1, 6, 3
"""The ends of the scale, and its highest point that is a no."""

UNITS = ("participant", "set")
"""By what ratings are paired: the means of each participant, or of each paradigm."""


@dataclass(frozen=True)
class Validation:
    """How ratings agree with labels.

    Args:
        acceptable: The share of the answers to acceptable sentences that are a yes; None where there are none.
        unacceptable: The share of the answers to unacceptable sentences that are a no.
        overall: The share of all answers that are the label's.
        sentences, answers: How many there are.
    """

    acceptable: float | None
    unacceptable: float | None
    overall: float
    sentences: int
    answers: int


def validation(responses: Responses) -> Validation:
    """Return how far the ratings of people agree with the labels.

    >>> from acceptability.people.responses import Responses
    >>> from acceptability.types import Sentence
    >>> both = (Sentence("a", "Cats sleep.", label=1), Sentence("b", "Cats sleeps.", label=0))
    >>> validation(Responses("toy", "likert", ("x", "y"), both, np.array([[6.0, 3.0], [4.0, 5.0]]))).overall
    0.75
    """
    said, labels = answers(responses)
    right = said == labels
    kinds = {kind: right[labels == kind] for kind in (0, 1)}
    shares = {kind: float(each.mean()) if len(each) else None for kind, each in kinds.items()}
    return Validation(shares[1], shares[0], float(right.mean()), len(responses.sentences), len(said))


def answers(responses: Responses) -> tuple[Floats, Floats]:
    """Return all answers as Booleans, and the label of the sentence that each is to."""
    values = boolean(responses)
    given = ~np.isnan(values)
    if not given.any():
        raise Undefined(f"{responses.name}: there are no answers")
    return values[given], np.broadcast_to(responses.labels, values.shape)[given]


def boolean(responses: Responses) -> Floats:
    """Return the table of answers as 1 for a yes, 0 for a no, nan for none; a rating off the scale is an error."""
    values = responses.values
    for row, column in np.argwhere(~np.isnan(values)).tolist():
        rating = values[row, column]
        if not LOWEST <= rating <= HIGHEST or rating != round(rating):
            raise SuiteError(
                f"{responses.name}: {responses.participants[row]} gave {responses.sentences[column].id!r} the rating "
                f"{rating:g}; expected a whole number from {LOWEST} to {HIGHEST}"
            )
    unlabelled = [each.id for each in responses.sentences if each.label is None]
    if unlabelled:
        raise SuiteError(
            f"{responses.name}: {unlabelled[0]!r} has no label to agree with ({len(unlabelled)} have none)"
        )
    return np.where(np.isnan(values), np.nan, (values > LAST_NO).astype(np.float64))


def contrasted(responses: Responses, unit: str = "participant", *, raw: bool = True) -> SignedRank:
    """Return Wilcoxon's signed-rank test of acceptable against unacceptable sentences, one-sided: rated higher.

    Args:
        unit: Whose means are paired: "participant", or "set", the paradigm of a sentence.
        raw: Whether ratings are taken as they are; else as Booleans.
    """
    values = responses.values if raw else boolean(responses)
    pairs = [
        pair for some in _of_units(responses, values, unit) if (pair := _means(some, responses.labels)) is not None
    ]
    if not pairs:
        raise Undefined(f"no {unit} has answers to both acceptable and unacceptable sentences")
    good, bad = zip(*pairs, strict=True)
    return signed_rank(good, bad, alternative="greater")


def _of_units(responses: Responses, values: Floats, unit: str) -> Iterator[Floats]:
    """Yield the table of answers of each participant or paradigm, nan where an answer is not theirs."""
    if unit == "participant":
        yield from (row[None] for row in values)
        return
    if unit not in UNITS:
        raise Undefined(f"answers are paired by {' or '.join(UNITS)}, not by {unit!r}")
    names = np.array([each.tags.get("set", each.id) for each in responses.sentences])
    for name in dict.fromkeys(names.tolist()):
        yield np.where(names == name, values, np.nan)


def _means(values: Floats, labels: Floats) -> tuple[float, float] | None:
    """Return the mean answer to acceptable and to unacceptable sentences; None where one kind has no answer."""
    kinds = [values[:, labels == kind] for kind in (1, 0)]
    found = [each[~np.isnan(each)] for each in kinds]
    return (float(found[0].mean()), float(found[1].mean())) if all(len(each) for each in found) else None


def by_tag(responses: Responses, tag: str) -> Iterator[tuple[str, Responses]]:
    """Yield the answers to the sentences of each value of a tag."""
    for value in dict.fromkeys(each.tags[tag] for each in responses.sentences if tag in each.tags):
        yield value, responses.of(_having(tag, value))


def _having(tag: str, value: str) -> Callable[[object], bool]:
    return lambda sentence: getattr(sentence, "tags", {}).get(tag) == value
