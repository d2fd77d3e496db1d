"""Forced choices between two sentences, and the validation of labels by ratings.

A file of forced choices has a row per choice: ``participant``, ``pair`` and ``chosen``. The choice is ``good`` or
``bad`` (also better and worse, 1 and 0), or the text in one of the columns ``good`` and ``bad``.

``validate_labels`` and ``signed_rank_by_label`` check whether human ratings confirm the labels of a suite, as Warstadt
et al. (2019, the NPI paper) do. Ratings on a scale from 1 to 6 are binarised: up to 3 is a no, from 4 a yes. The
agreement is the share of all answers that equal the label. Wilcoxon's signed-rank test is about whether acceptable
sentences are rated higher than unacceptable ones. The paper does not state what it pairs; here the pairs are each
participant's mean ratings of the two classes or, alternatively, each paradigm's (tag ``set``), raw or binarised.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from acceptability.errors import SuiteError, Undefined
from acceptability.people.responses import Responses, is_missing, match_columns, name_source, read_source_rows
from acceptability.stats.hypothesis_tests import SignedRank, signed_rank
from acceptability.stats.proportions import proportion_interval, sign_test
from acceptability.suites.table_files import TableRow
from acceptability.types import Floats, Sentence

if TYPE_CHECKING:
    import pandas as pd

# In order of preference: a file may have both a pair and an item.
_ALIASES = {
    "participant": ("participant", "participant_id", "subject", "rater", "annotator", "worker"),
    "pair": ("pair", "pair_id", "item"),
    "chosen": ("chosen", "choice", "response"),
    "good": ("good", "better", "sentence_good"),
    "bad": ("bad", "worse", "sentence_bad"),
}
_GOOD_ANSWERS, _BAD_ANSWERS = ("good", "better", "1"), ("bad", "worse", "0")


@dataclass(frozen=True)
class PairChoices:
    """The choices between the two sentences of one pair.

    Args:
        pair: The name of the pair.
        good: The better sentence; empty if the file has no texts.
        bad: The worse sentence.
        hits: The number of choices of the better sentence.
        n: The number of choices.
        share: hits / n; None if nobody chose.
        low: The lower end of the exact binomial interval of the share; None if nobody chose.
        high: The upper end of the interval.
        p: The p-value of the two-sided sign test against equal shares; None if nobody chose.
    """

    pair: str
    good: str
    bad: str
    hits: int
    n: int
    share: float | None
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Choices:
    """The choices per pair, in the order of the file, and notes on missing ones."""

    pairs: tuple[PairChoices, ...]
    participants: int
    notes: tuple[str, ...] = ()


@dataclass
class _PairTally:
    good: str
    bad: str
    # By participant: whether the better sentence was chosen, and the line, for the message about a second choice.
    choices: dict[str, tuple[bool, int]] = field(default_factory=dict)


def read_choices(
    source: str | Path | pd.DataFrame, *, columns: Mapping[str, str] | None = None, level: float = 0.95
) -> Choices:
    """Return the choices in a file, pair by pair.

    Args:
        source: A table (CSV, TSV, JSONL or Parquet), or the name of a suite whose tags hold the choices.
        columns: Column names by meaning, such as ``{"participant": "Worker"}``; other columns have their usual names.
        level: The confidence level of the intervals.
    """
    # The texts are optional: without them a choice has to be given as good or bad.
    header, rows = read_source_rows(source)
    where = name_source(source)
    column_of = match_columns(header, columns or {}, where, _ALIASES)
    for meaning in ("participant", "pair", "chosen"):
        if meaning not in column_of:
            raise SuiteError(
                f"{where} has no column for the {meaning}; it has {', '.join(header) or 'no header'}. "
                f"Name it: --columns {meaning}=NAME"
            )
    pairs: dict[str, _PairTally] = {}
    people: set[str] = set()
    missing = 0
    for line, row in rows:
        try:
            missing += _add_choice(pairs, people, row, column_of, line)
        except SuiteError as error:
            raise SuiteError(f"{where}, line {line}: {error}") from error
    if not any(tally.choices for tally in pairs.values()):
        raise SuiteError(f"{where} has no choices")
    notes = (f"{missing} choices are missing",) if missing else ()
    return Choices(tuple(_count_choices(name, tally, level) for name, tally in pairs.items()), len(people), notes)


def summarise_choices(choices: Choices) -> dict[str, object]:
    """Return statistics over all pairs: the share of choices of the better sentence, and the pairs that it wins."""
    hits, n = sum(pair.hits for pair in choices.pairs), sum(pair.n for pair in choices.pairs)
    # Compared in integers, as the share 1/2 must be a tie exactly.
    won = sum(2 * pair.hits > pair.n for pair in choices.pairs)
    lost = sum(2 * pair.hits < pair.n for pair in choices.pairs)
    # The unweighted mean over pairs, beside the share of all choices, in which pairs with many answers weigh more.
    shares = [pair.share for pair in choices.pairs if pair.share is not None]
    return {
        "choices": n,
        "share": hits / n,
        "mean_share": float(np.mean(shares)),
        "pairs": len(choices.pairs),
        "pairs_won": won,
        "pairs_lost": lost,
        "pairs_tied": len(choices.pairs) - won - lost,
        # The usual treatment of ties in a sign test: tied pairs are dropped.
        "p_over_pairs": sign_test(won, won + lost) if won + lost else None,
    }


def build_choice_rows(choices: Choices) -> list[dict[str, object]]:
    """Return a row per pair with its choices; with texts, a file of these rows loads as a suite of contrasts."""
    return list(_build_rows(choices.pairs))


def _build_rows(pairs: Sequence[PairChoices]) -> Iterator[dict[str, object]]:
    for pair in pairs:
        row: dict[str, object] = {"id": pair.pair}
        # Empty sentences would load as a suite of empty texts.
        row |= {"good": pair.good, "bad": pair.bad} if pair.good else {}
        yield row | {name: getattr(pair, name) for name in ("share", "hits", "n", "low", "high", "p")}


def _add_choice(
    pairs: dict[str, _PairTally], people: set[str], row: TableRow, column_of: Mapping[str, str], line: int
) -> bool:
    """Add the choice in a row; return whether it is missing."""
    participant, name, good, bad = (
        _read_string(row, column_of, meaning) for meaning in ("participant", "pair", "good", "bad")
    )
    if not (participant and name):
        raise SuiteError("a choice needs a participant and a pair")
    # The sentences of a pair are repeated in every row; a difference means that two pairs have the same name.
    pair = pairs.setdefault(name, _PairTally(good, bad))
    if (pair.good, pair.bad) != (good, bad):
        raise SuiteError(f"pair {name!r} has different sentences in an earlier line")
    # Before the check for a missing choice: someone who never chose was still a participant.
    people.add(participant)
    cell = row.get(column_of["chosen"])
    if is_missing(cell):
        return True
    if participant in pair.choices:
        raise SuiteError(f"{participant!r} chose in pair {name!r} already in line {pair.choices[participant][1]}")
    pair.choices[participant] = _is_good_choice(_read_string(row, column_of, "chosen"), pair), line
    return False


def _is_good_choice(chosen: str, pair: _PairTally) -> bool:
    # Exactly one of the two has to apply: a text may itself be "good", or be the same in both columns.
    is_good = chosen.lower() in _GOOD_ANSWERS or chosen == pair.good != ""
    if is_good == (chosen.lower() in _BAD_ANSWERS or chosen == pair.bad != ""):
        sentences = f", {pair.good!r} or {pair.bad!r}" if pair.good else ""
        raise SuiteError(f"chosen is {chosen!r}; expected good or bad{sentences}")
    return is_good


def _read_string(row: TableRow, column_of: Mapping[str, str], meaning: str) -> str:
    cell = row.get(column_of.get(meaning, ""))
    return "" if cell is None else str(cell).strip()


def _count_choices(name: str, pair: _PairTally, level: float) -> PairChoices:
    hits, n = sum(is_good for is_good, _ in pair.choices.values()), len(pair.choices)
    low, high = proportion_interval(hits, n, level)
    share, p = (hits / n, sign_test(hits, n)) if n else (None, None)
    return PairChoices(name, pair.good, pair.bad, hits, n, share, low, high, p)


SCALE_MIN, SCALE_MAX, MAX_NO_RATING = 1, 6, 3
"""The ends of the rating scale, and the highest rating that counts as a no."""

PAIRING_UNITS = ("participant", "set")
"""The units whose mean ratings are paired: participants, or paradigms."""


@dataclass(frozen=True)
class LabelValidation:
    """The agreement of binarised ratings with labels.

    Args:
        acceptable: The share of yes among the answers to acceptable sentences; None if there are none.
        unacceptable: The share of no among the answers to unacceptable sentences; None if there are none.
        overall: The share of all answers that equal the label.
        sentences: The number of sentences.
        answers: The number of answers.
    """

    acceptable: float | None
    unacceptable: float | None
    overall: float
    sentences: int
    answers: int


def validate_labels(responses: Responses) -> LabelValidation:
    """Return the agreement of human ratings with the labels of their sentences.

    >>> from acceptability.people.responses import Responses
    >>> from acceptability.types import Sentence
    >>> sentences = (Sentence("a", "Cats sleep.", label=1), Sentence("b", "Cats sleeps.", label=0))
    >>> validate_labels(Responses("toy", "likert", ("x", "y"), sentences, np.array([[6.0, 3.0], [4.0, 5.0]]))).overall
    0.75
    """
    binary_answers, labels = collect_answers(responses)
    right = binary_answers == labels
    kinds = {kind: right[labels == kind] for kind in (0, 1)}
    shares = {kind: float(is_right.mean()) if len(is_right) else None for kind, is_right in kinds.items()}
    return LabelValidation(shares[1], shares[0], float(right.mean()), len(responses.sentences), len(binary_answers))


def collect_answers(responses: Responses) -> tuple[Floats, Floats]:
    """Return all binarised answers, and the labels of their sentences, as two arrays of equal length."""
    values = binarise_ratings(responses)
    given = ~np.isnan(values)
    if not given.any():
        raise Undefined(f"{responses.name}: there are no answers")
    # The labels are repeated for every participant, and then thinned by the same mask as the answers.
    return values[given], np.broadcast_to(responses.labels, values.shape)[given]


def binarise_ratings(responses: Responses) -> Floats:
    """Return the table of answers as 1 for a yes, 0 for a no, nan for none; a rating off the scale is an error."""
    # Checked rating by rating: a file on another scale (1 to 7, or 0 to 100) would otherwise be binarised at 3 without
    # any sign that something is wrong.
    values = responses.values
    for row, column in np.argwhere(~np.isnan(values)).tolist():
        rating = values[row, column]
        if not SCALE_MIN <= rating <= SCALE_MAX or rating != round(rating):
            raise SuiteError(
                f"{responses.name}: {responses.participants[row]} gave {responses.sentences[column].id!r} the rating "
                f"{rating:g}; expected a whole number from {SCALE_MIN} to {SCALE_MAX}"
            )
    unlabelled = [sentence.id for sentence in responses.sentences if sentence.label is None]
    if unlabelled:
        raise SuiteError(
            f"{responses.name}: {unlabelled[0]!r} has no label to compare with ({len(unlabelled)} have none)"
        )
    return np.where(np.isnan(values), np.nan, (values > MAX_NO_RATING).astype(np.float64))


def signed_rank_by_label(responses: Responses, unit: str = "participant", *, raw: bool = True) -> SignedRank:
    """Return Wilcoxon's signed-rank test, one-sided: acceptable sentences are rated higher than unacceptable ones.

    Args:
        responses: Ratings of labelled sentences.
        unit: The unit whose mean ratings are paired: "participant", or "set", the paradigm of a sentence.
        raw: Whether the test uses raw ratings; otherwise they are binarised.
    """
    values = responses.values if raw else binarise_ratings(responses)
    pairs = [
        pair
        for answers in _iter_unit_answers(responses, values, unit)
        if (pair := _mean_by_label(answers, responses.labels)) is not None
    ]
    if not pairs:
        raise Undefined(f"no {unit} has answers to both acceptable and unacceptable sentences")
    good, bad = zip(*pairs, strict=True)
    return signed_rank(good, bad, alternative="greater")


def _iter_unit_answers(responses: Responses, values: Floats, unit: str) -> Iterator[Floats]:
    """Yield the table of answers of each participant or paradigm, with nan for the answers of others."""
    if unit == "participant":
        yield from (row[None] for row in values)
        return
    if unit not in PAIRING_UNITS:
        raise Undefined(f"answers are paired by {' or '.join(PAIRING_UNITS)}, not by {unit!r}")
    # A sentence without a paradigm is its own, and then has no partner of the other class.
    names = np.array([sentence.tags.get("set", sentence.id) for sentence in responses.sentences])
    for name in dict.fromkeys(names.tolist()):
        yield np.where(names == name, values, np.nan)


def _mean_by_label(values: Floats, labels: Floats) -> tuple[float, float] | None:
    """Return the mean answers to acceptable and to unacceptable sentences; None if either has no answer."""
    good, bad = (values[:, labels == label] for label in (1, 0))
    good, bad = good[~np.isnan(good)], bad[~np.isnan(bad)]
    return (float(good.mean()), float(bad.mean())) if len(good) and len(bad) else None


def split_by_tag(responses: Responses, tag: str) -> Iterator[tuple[str, Responses]]:
    """Yield each value of a tag with the answers to its sentences, in the order of the sentences."""
    for value in dict.fromkeys(sentence.tags[tag] for sentence in responses.sentences if tag in sentence.tags):
        yield value, responses.select(partial(_has_tag, tag, value))


def _has_tag(tag: str, value: str, sentence: Sentence) -> bool:
    return sentence.tags.get(tag) == value
