"""What can go wrong, and how we say it.

    AcceptabilityError
    ├── SpellingError     a name or an option that does not read: 'ADC(delta='
    ├── UnknownName       no suite, model, measure or reduction of that name
    ├── SuiteError        sentences, contrasts or files of sentences that are not in order
    ├── ScoreError        scores that are missing, not finite, or of unknown sentences
    ├── ModelError        a model that cannot be opened, or cannot take a sentence
    │   ├── QueryError    ... because of one query, which it names by its place
    │   └── OutOfMemory   ... because the machine's memory does not suffice
    ├── CorpusError       text to train on, or to measure on, that is not in order
    ├── TrainError        a recipe or a training run that cannot go on
    ├── EngineError       a cluster that cannot be reached, or breaks off
    ├── MeasureError      a measure that the suite gives nothing to measure
    │   └── Undefined     a value that mathematics leaves undefined, with the reason
    ├── StoreError        the file of stored scores, or the folder of runs, cannot be used
    ├── ReportError       a page or a file of results cannot be written
    └── MissingExtra      an optional package is not installed

Every message says what was found, where, what was expected and what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import get_close_matches

_LONGEST = 2_000
_COMMANDS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)
"""Characters that steer a terminal, turn the direction of writing, or have no place in a text."""


class AcceptabilityError(Exception):
    """Any error that this package raises on purpose; its message is for people.

    Whatever a file, a name or another library put into it, the message is one line of a bearable length, and
    nothing in it is a command to a terminal.

    >>> print(AcceptabilityError("the column 'a" + chr(10) + "b' is " + chr(27) + "[31mred"))
    the column 'a b' is \\x1b[31mred
    """

    def __str__(self) -> str:
        return one_line(super().__str__())


class SpellingError(AcceptabilityError):
    """A name with options that cannot be read."""


class UnknownName(AcceptabilityError):
    """A name that nothing is registered under."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str) -> None:
        super().__init__(f"no {kind} named {name!r}.{suggestion(name, known)} {hint}")


class SuiteError(AcceptabilityError):
    """Sentences, contrasts or files of sentences that are not in order."""


class ScoreError(AcceptabilityError):
    """Scores that are missing, not finite, or of sentences nobody knows."""


class ModelError(AcceptabilityError):
    """A model that cannot be opened, or cannot do what it was asked."""


class QueryError(ModelError):
    """A query that a model cannot take.

    Args:
        index: Which of the queries it was given, counted from 0.
        problem: What is wrong with it, as the end of a sentence that names it.
    """

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(f"query {index}: {problem}")
        self.index = index
        self.problem = problem


class OutOfMemory(ModelError):
    """The machine's memory does not suffice for a batch."""


class CorpusError(AcceptabilityError):
    """Text to train on, or to measure a model on, that is not in order."""


class TrainError(AcceptabilityError):
    """A recipe that cannot be followed, or a training run that cannot go on."""


class EngineError(AcceptabilityError):
    """An engine that cannot be reached, cannot take a model, or breaks off."""


class MeasureError(AcceptabilityError):
    """A measure that the suite gives nothing to measure."""


class Undefined(MeasureError):
    """A value that is not defined for these rows: null in a result, with the reason."""


class StoreError(AcceptabilityError):
    """The file of stored scores cannot be used."""


class ReportError(AcceptabilityError):
    """A page or a file of results cannot be written."""


class MissingExtra(AcceptabilityError):
    """An optional package is not installed."""

    def __init__(self, what: str, packages: str, install: str) -> None:
        super().__init__(f"{what!r} needs {packages}. Install with: pip install {install}")


def closest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that the given one was probably meant to be.

    >>> closest("blmip", ["blimp", "cola/train"])
    'blimp'
    >>> closest("pbc", ["PBC", "MCC"])
    'PBC'
    """
    spelled = {each.lower(): each for each in known}
    found = get_close_matches(name.lower(), spelled, n=1)
    return spelled[found[0]] if found else None


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" where a known name is close, else nothing.

    >>> suggestion("blmip", ["blimp"])
    " Did you mean 'blimp'?"
    """
    found = closest(name, known)
    return f" Did you mean {found!r}?" if found else ""


def reason(error: BaseException) -> str:
    """Return the first line of what another library says went wrong."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def one_line(message: str) -> str:
    """Return a message as one line, its middle left out where it is long.

    What has no shape, turns the direction of writing or would be a command to a terminal is spelled out.
    """
    line = " ".join(message.split())
    if not line.isprintable():
        line = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in line)
    half = _LONGEST // 2
    return line if len(line) <= _LONGEST else f"{line[:half]} … {line[-half:]}"


def visible(text: str) -> str:
    """Return a text in which nothing is a command to a terminal or turns the direction of writing.

    Such characters are spelled out; newlines and tabs stay, and so do letters and signs of every script.

    >>> print(visible("a" + chr(27) + "[31mb, Ünïcödë"))
    a\\x1b[31mb, Ünïcödë
    """
    return _COMMANDS.sub(lambda found: ascii(found[0])[1:-1], text)


def shorten(text: str, width: int = 60) -> str:
    """Return a text cut to a width that fits into a message.

    >>> shorten("a b c", width=4)
    'a b…'
    """
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"
