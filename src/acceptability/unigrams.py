"""How probable words are by themselves: the tables that SLOR and its relatives subtract.

A table is named in a reduction: ``slor(unigrams='wordfreq:en')`` or
``slor(unigrams='counts.tsv')``. Its unit, word or token, decides what SLOR counts.

A file has two tab-separated columns under a header: ``word`` or ``token``, and
``count`` (smoothed by adding one, also for what the file lacks) or ``logprob``
(natural logs; what the file lacks is an error). Words are looked up in lower case
unless the file itself has capitals. A row ``<unk>`` (or ``<UNK>``) stands for all that the
file lacks: one share for all such words together, which is right for a model that reads them as
``<unk>``, and makes them too probable for one that tells them apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from acceptability.errors import MissingExtra, ScoreError, SuiteError, shorten
from acceptability.signature import fingerprint
from acceptability.text import as_number, lines
from acceptability.types import Floats, TokenScores

CHOICES = "Choose unigrams='wordfreq:LANGUAGE' or unigrams='FILE.tsv' (word or token, with count or logprob)."
WORDFREQ_FLOOR = 1e-9
"""What a word is taken to have when wordfreq, which stops at one in 10^8, does not list it."""

_UNKNOWN = ("<unk>", "<UNK>")
_EDGES = " \t\n\"'“”‘’.,;:!?()[]{}…–—-"


class UnigramTable(Protocol):
    """Natural-log probabilities of single words or tokens."""

    @property
    def unit(self) -> str:
        """What it lists: "word" or "token"."""
        ...

    @property
    def signature(self) -> str:
        """Its name, and its content where that can change."""
        ...

    def lists(self, unit: str) -> bool:
        """Tell whether a word or token is in the table, so that nothing stands in for it."""
        ...

    def logprob(self, unit: str) -> float:
        """Return the log-probability of one word or token."""
        ...


@dataclass(frozen=True)
class WordFreq:
    """Word frequencies of a language, from the package wordfreq."""

    language: str
    unit: str = "word"

    @property
    def signature(self) -> str:
        """The table's name; wordfreq's data are fixed since its version 3.1."""
        return f"wordfreq:{self.language}(floor={WORDFREQ_FLOOR:g})"

    def lists(self, unit: str) -> bool:
        """Tell whether the language's list has a word."""
        from wordfreq import word_frequency

        return bool(word_frequency(unit, self.language) > 0)

    def logprob(self, unit: str) -> float:
        """Return the log of a word's share of the language's words."""
        from wordfreq import word_frequency

        return math.log(word_frequency(unit, self.language, minimum=WORDFREQ_FLOOR))


@dataclass(frozen=True)
class FileTable:
    """A table read from a user's file."""

    name: str
    unit: str
    logprobs: dict[str, float]
    unknown: float | None
    is_lower: bool
    signature: str

    def lists(self, unit: str) -> bool:
        """Tell whether the file has a row for a word or token."""
        return self._key(unit) in self.logprobs

    def _key(self, unit: str) -> str:
        return unit.lower() if self.is_lower and self.unit == "word" else unit

    def logprob(self, unit: str) -> float:
        """Return the log-probability of a word or token, or that of an unknown one."""
        key = self._key(unit)
        found = self.logprobs.get(key, self.unknown)
        if found is None:
            raise ScoreError(f"{self.name} has no {self.unit} {key!r}, and log-probabilities cannot be smoothed")
        return found


def load_unigrams(name: str) -> UnigramTable:
    """Return the table of a name: ``wordfreq:en`` or the path of a file."""
    if not isinstance(name, str):
        raise ScoreError(f"unigrams is {name!r}; expected a text. {CHOICES}")
    if name.startswith("wordfreq:"):
        return _wordfreq(name.removeprefix("wordfreq:"))
    try:
        content = Path(name).read_bytes()
    except OSError as error:
        raise ScoreError(f"cannot read the unigram table {name!r}: {error.strerror}. {CHOICES}") from error
    return _read(name, content)


def _wordfreq(language: str) -> WordFreq:
    try:
        from wordfreq import available_languages
    except ImportError as error:
        raise MissingExtra(f"wordfreq:{language}", "the package wordfreq", "wordfreq") from error
    if language not in available_languages():
        known = ", ".join(sorted(available_languages()))
        raise ScoreError(f"wordfreq has no language {language!r}; it has {known}")
    return WordFreq(language)


@cache
def _read(name: str, content: bytes) -> FileTable:
    rows = list(lines(content, name))
    header = rows[0][1].split("\t") if rows else []
    if len(header) != 2 or header[0] not in ("word", "token") or header[1] not in ("count", "logprob"):
        raise SuiteError(f"{name}, line 1: expected a header 'word' or 'token', TAB, 'count' or 'logprob'")
    unit, kind = header
    numbers: dict[str, float] = {}
    for line, row in rows[1:]:
        key, _, cell = row.partition("\t")
        number = as_number(cell)
        is_right = number is not None and math.isfinite(number) and (number >= 0 if kind == "count" else number < 0)
        if number is None or not is_right:
            expected = "a count from 0" if kind == "count" else "a natural log below 0"
            raise SuiteError(f"{name}, line {line}: {cell!r} is not {expected}")
        if key in numbers:
            raise SuiteError(f"{name}, line {line}: the {unit} {key!r} stands there twice")
        numbers[key] = number
    for_unknown = next((key for key in _UNKNOWN if key in numbers), None)
    unknown = None
    if kind == "count":
        total = sum(numbers.values()) + len(numbers) + (for_unknown is None)
        numbers = {key: math.log((count + 1) / total) for key, count in numbers.items()}
        unknown = math.log(1 / total)
    unknown = numbers[for_unknown] if for_unknown else unknown
    is_lower = all(key == key.lower() for key in numbers if key not in _UNKNOWN)
    title = Path(name).name
    return FileTable(title, unit, numbers, unknown, is_lower, f"{title}#{fingerprint([content])}")


def by_unit(said: TokenScores, table: UnigramTable) -> tuple[Floats, Floats]:
    """Return log-probabilities by model and by unigrams of the same units, words or tokens."""
    spelled, logprobs = spelled_units(said, table)
    return logprobs, np.array([table.logprob(each) for each in spelled])


def spelled_units(said: TokenScores, table: UnigramTable) -> tuple[Sequence[str], Floats]:
    """Return the units of a text as a table spells them, and the model's log-probability of each."""
    if table.unit == "token":
        return said.tokens, said.logprobs.astype(np.float64)
    spelled, logprobs = words(said)
    return [each.strip(_EDGES) or each for each in spelled], logprobs


def coverage(said: TokenScores, table: UnigramTable) -> tuple[int, int]:
    """Return how many units of a text a table does not list, and how many there are."""
    spelled, _ = spelled_units(said, table)
    return sum(not table.lists(each) for each in spelled), len(spelled)


def words(said: TokenScores) -> tuple[list[str], Floats]:
    """Return the words of a text that were scored, and the log-probability of each.

    Words are what spaces separate. What has no letter or digit in it (a full stop
    with a space before it) belongs to the word before, or else to the one after,
    so that every token counts once. A word of which only a part was scored, as the
    first one without a start token, is left out.

    >>> said = TokenScores("The cat .", ("the", "c", "at", "."), ((0, 3), (4, 5), (5, 7), (8, 9)),
    ...     np.array([-1, -2, -3, -4], dtype=np.float32))
    >>> words(said)
    (['The', 'cat .'], array([-1., -9.]))
    """
    starts = _word_starts(said.text)
    ends = [*starts[1:], len(said.text)]
    sums: dict[int, float] = {}
    unscored = np.array([character.isalnum() for character in said.text], dtype=bool)
    for (start, end), logprob in zip(said.offsets, said.logprobs.tolist(), strict=True):
        letters = said.text[start:end]
        first = start + len(letters) - len(letters.lstrip())
        word = max(int(np.searchsorted(starts, first, side="right")) - 1, 0)
        sums[word] = sums.get(word, 0.0) + logprob
        unscored[start:end] = False
    whole = [word for word in sorted(sums) if not unscored[starts[word] : ends[word]].any()]
    if not whole:
        raise ScoreError(f"{shorten(said.text)!r}: no word of it was scored as a whole")
    return [said.text[starts[word] : ends[word]].strip() for word in whole], np.array([sums[word] for word in whole])


def _word_starts(text: str) -> list[int]:
    starts: list[int] = []
    position = 0
    for chunk in text.split():
        position = text.index(chunk, position)
        if any(each.isalnum() for each in chunk):
            starts.append(position if starts else 0)
        position += len(chunk)
    return starts or [0]
