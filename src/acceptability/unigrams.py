"""How probable words are by themselves: the tables that SLOR and its relatives subtract.

A table is named in a reduction: ``slor(unigrams='wordfreq:en')`` or
``slor(unigrams='counts.tsv')``. Its unit, word or token, decides what SLOR counts.

A file has two tab-separated columns under a header: ``word`` or ``token``, and
``count`` (smoothed by adding one, also for what the file lacks) or ``logprob``
(natural logs; what the file lacks is an error). Words are looked up in lower case
unless the file itself has capitals.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

import numpy as np

from acceptability.errors import MissingExtra, ScoreError, SuiteError
from acceptability.signature import fingerprint
from acceptability.types import Floats, TokenScores

CHOICES = "Choose unigrams='wordfreq:LANGUAGE' or unigrams='FILE.tsv' (word or token, with count or logprob)."
WORDFREQ_FLOOR = 1e-9
"""What a word is taken to have when wordfreq, which stops at one in 10^8, does not list it."""

_EDGES = "\"'“”‘’.,;:!?()[]{}…–—-"


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
        return f"wordfreq:{self.language}"

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

    def logprob(self, unit: str) -> float:
        """Return the log-probability of a word or token, or that of an unknown one."""
        key = unit.lower() if self.is_lower and self.unit == "word" else unit
        found = self.logprobs.get(key, self.unknown)
        if found is None:
            raise ScoreError(f"{self.name} has no {self.unit} {key!r}, and log-probabilities cannot be smoothed")
        return found


@cache
def load_unigrams(name: str) -> UnigramTable:
    """Return the table of a name: ``wordfreq:en`` or the path of a file."""
    if name.startswith("wordfreq:"):
        return _wordfreq(name.removeprefix("wordfreq:"))
    if not name:
        raise ScoreError(f"this reduction needs a table of unigram probabilities. {CHOICES}")
    path = Path(name)
    if not path.is_file():
        raise ScoreError(f"no unigram table {name!r}. {CHOICES}")
    return _read(path)


def _wordfreq(language: str) -> WordFreq:
    try:
        from wordfreq import available_languages
    except ImportError as error:
        raise MissingExtra(f"wordfreq:{language}", "the package wordfreq", "wordfreq") from error
    if language not in available_languages():
        known = ", ".join(sorted(available_languages()))
        raise ScoreError(f"wordfreq has no language {language!r}; it has {known}")
    return WordFreq(language)


def _read(path: Path) -> FileTable:
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise SuiteError(f"{path} is not UTF-8 text (byte {error.start})") from error
    header = lines[0].split("\t") if lines else []
    if len(header) != 2 or header[0] not in ("word", "token") or header[1] not in ("count", "logprob"):
        raise SuiteError(f"{path}, line 1: expected a header 'word' or 'token', TAB, 'count' or 'logprob'")
    numbers: dict[str, float] = {}
    for line, row in enumerate(lines[1:], start=2):
        unit, _, number = row.partition("\t")
        numbers[unit] = _number(number, f"{path}, line {line}")
    unknown = None
    if header[1] == "count":
        total = sum(numbers.values()) + len(numbers) + 1
        numbers = {unit: math.log((count + 1) / total) for unit, count in numbers.items()}
        unknown = math.log(1 / total)
    is_lower = all(unit == unit.lower() for unit in numbers)
    return FileTable(path.name, header[0], numbers, unknown, is_lower, f"{path.name}#{fingerprint([content])}")


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise SuiteError(f"{where}: {text!r} is not a finite number")
    return number


def by_unit(said: TokenScores, table: UnigramTable) -> tuple[Floats, Floats]:
    """Return log-probabilities by model and by unigrams of the same units, words or tokens."""
    if table.unit == "token":
        return said.logprobs.astype(np.float64), np.array([table.logprob(each) for each in said.tokens])
    spelled, logprobs = words(said)
    return logprobs, np.array([table.logprob(each.strip(_EDGES) or each) for each in spelled])


def words(said: TokenScores) -> tuple[list[str], Floats]:
    """Return the words of a text and the log-probability of each.

    Words are what spaces separate. What has no letter or digit in it (a full stop
    with a space before it) belongs to the word before, or else to the one after,
    so that every token counts once.

    >>> said = TokenScores("The cat .", ("the", "c", "at", "."), ((0, 3), (4, 5), (5, 7), (8, 9)),
    ...     np.array([-1, -2, -3, -4], dtype=np.float32))
    >>> words(said)
    (['The', 'cat .'], array([-1., -9.]))
    """
    starts = _word_starts(said.text)
    sums: dict[int, float] = {}
    for (start, end), logprob in zip(said.offsets, said.logprobs.tolist(), strict=True):
        letters = said.text[start:end]
        first = start + len(letters) - len(letters.lstrip())
        word = max(int(np.searchsorted(starts, first, side="right")) - 1, 0)
        sums[word] = sums.get(word, 0.0) + logprob
    ends = [*starts[1:], len(said.text)]
    kept = sorted(sums)
    return [said.text[starts[i] : ends[i]].strip() for i in kept], np.array([sums[i] for i in kept])


def _word_starts(text: str) -> list[int]:
    starts: list[int] = []
    position = 0
    for chunk in text.split():
        position = text.index(chunk, position)
        if any(each.isalnum() for each in chunk):
            starts.append(position if starts else 0)
        position += len(chunk)
    return starts or [0]
