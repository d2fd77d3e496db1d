"""Forced choice: which of two sentences people took.

A row a choice: ``participant``, ``pair`` and ``chosen``. What was chosen is ``good`` or ``bad`` (also better and
worse, 1 and 0), or the text of one of the columns ``good`` and ``bad``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from acceptability.errors import SuiteError
from acceptability.people.intervals import share_interval, sign_test
from acceptability.people.reading import found_columns, rows_of_source
from acceptability.people.responses import is_missing
from acceptability.suites.tables import Row

_ALIASES = {
    "participant": ("participant", "participant_id", "subject", "rater", "annotator", "worker"),
    "pair": ("pair", "pair_id", "item"),
    "chosen": ("chosen", "choice", "response"),
    "good": ("good", "better", "sentence_good"),
    "bad": ("bad", "worse", "sentence_bad"),
}
_GOOD, _BAD = ("good", "better", "1"), ("bad", "worse", "0")


@dataclass(frozen=True)
class PairChoices:
    """The choices between the two sentences of one pair.

    Args:
        hits: How many took the better sentence, of n.
        low: The exact binomial interval of the share (with high); None where nobody chose.
        p: The two-sided sign test against equal shares; None where nobody chose.
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
    """Pairs, in the order of the file, and what was missing."""

    pairs: tuple[PairChoices, ...]
    participants: int
    notes: tuple[str, ...] = ()


@dataclass
class _Pair:
    good: str
    bad: str
    chosen: dict[str, tuple[bool, int]] = field(default_factory=dict)


def read_choices(source: str | Path, *, columns: Mapping[str, str] | None = None, level: float = 0.95) -> Choices:
    """Return the choices in a file, pair by pair."""
    header, rows = rows_of_source(source)
    found = found_columns(header, columns or {}, str(source), _ALIASES)
    for meaning in ("participant", "pair", "chosen"):
        if meaning not in found:
            raise SuiteError(
                f"{source} has no column for the {meaning}; it has {', '.join(header) or 'no header'}. "
                f"Say which it is: --columns {meaning}=NAME"
            )
    pairs: dict[str, _Pair] = {}
    people: set[str] = set()
    missing = 0
    for line, row in rows:
        try:
            missing += _take(pairs, people, row, found, line)
        except SuiteError as error:
            raise SuiteError(f"{source}, line {line}: {error}") from error
    if not any(each.chosen for each in pairs.values()):
        raise SuiteError(f"{source} has no choices")
    notes = (f"{missing} choices are missing",) if missing else ()
    return Choices(tuple(_counted(name, each, level) for name, each in pairs.items()), len(people), notes)


def overall(choices: Choices) -> dict[str, object]:
    """Return all pairs together: the share of choices for the better sentence, and in how many pairs it wins."""
    hits, n = sum(each.hits for each in choices.pairs), sum(each.n for each in choices.pairs)
    won = sum(2 * each.hits > each.n for each in choices.pairs)
    lost = sum(2 * each.hits < each.n for each in choices.pairs)
    shares = [each.share for each in choices.pairs if each.share is not None]
    return {
        "choices": n,
        "share": hits / n,
        "mean_share": float(np.mean(shares)),
        "pairs": len(choices.pairs),
        "pairs_won": won,
        "pairs_lost": lost,
        "pairs_tied": len(choices.pairs) - won - lost,
        "p_over_pairs": sign_test(won, won + lost) if won + lost else None,
    }


def choice_rows(choices: Choices) -> list[dict[str, object]]:
    """Return a row a pair, as ``good`` and ``bad`` with what people took; it loads as a suite where there are texts."""
    return list(_rows(choices.pairs))


def _rows(pairs: Sequence[PairChoices]) -> Iterator[dict[str, object]]:
    for each in pairs:
        row: dict[str, object] = {"id": each.pair}
        row |= {"good": each.good, "bad": each.bad} if each.good else {}
        yield row | {name: getattr(each, name) for name in ("share", "hits", "n", "low", "high", "p")}


def _take(pairs: dict[str, _Pair], people: set[str], row: Row, found: Mapping[str, str], line: int) -> bool:
    """Add the choice of a row; return whether it is missing."""
    participant, name, good, bad = (_string(row, found, each) for each in ("participant", "pair", "good", "bad"))
    if not (participant and name):
        raise SuiteError("a choice needs a participant and a pair")
    pair = pairs.setdefault(name, _Pair(good, bad))
    if (pair.good, pair.bad) != (good, bad):
        raise SuiteError(f"pair {name!r} has other sentences here than in an earlier line")
    people.add(participant)
    cell = row.get(found["chosen"])
    if is_missing(cell):
        return True
    if participant in pair.chosen:
        raise SuiteError(f"{participant!r} chose in pair {name!r} already in line {pair.chosen[participant][1]}")
    pair.chosen[participant] = _is_good(_string(row, found, "chosen"), pair), line
    return False


def _is_good(chosen: str, pair: _Pair) -> bool:
    is_good = chosen.lower() in _GOOD or chosen == pair.good != ""
    if is_good == (chosen.lower() in _BAD or chosen == pair.bad != ""):
        sentences = f", {pair.good!r} or {pair.bad!r}" if pair.good else ""
        raise SuiteError(f"chosen is {chosen!r}; expected good or bad{sentences}")
    return is_good


def _string(row: Row, found: Mapping[str, str], meaning: str) -> str:
    cell = row.get(found.get(meaning, ""))
    return "" if cell is None else str(cell).strip()


def _counted(name: str, pair: _Pair, level: float) -> PairChoices:
    hits, n = sum(is_good for is_good, _ in pair.chosen.values()), len(pair.chosen)
    low, high = share_interval(hits, n, level)
    share, p = (hits / n, sign_test(hits, n)) if n else (None, None)
    return PairChoices(name, pair.good, pair.bad, hits, n, share, low, high, p)
