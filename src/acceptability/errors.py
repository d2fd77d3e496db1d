"""The exceptions that this package raises, and helpers that keep their messages short and safe to print.

    AcceptabilityError
    ├── SpecError         a name or an option that cannot be parsed: 'ADC(delta='
    ├── UnknownName       no suite, model, measure or reduction of that name
    ├── SuiteError        invalid sentences, contrasts or files of sentences
    ├── ScoreError        scores that are missing, not finite, or of unknown sentences
    ├── ModelError        a model that cannot be loaded, or cannot score a sentence
    │   ├── QueryError    ... because of one query, which it identifies by its index
    │   └── OutOfMemory   ... because the machine runs out of memory
    ├── CorpusError       invalid text for training or for measuring perplexity
    ├── TrainError        an invalid recipe, or a training run that cannot continue
    ├── EngineError       a cluster that cannot be reached, or fails during a run
    ├── MeasureError      a measure that does not apply to the suite
    │   └── Undefined     a value that is mathematically undefined, with the reason
    ├── StoreError        the database of stored scores, or the folder of runs, cannot be used
    ├── ReportError       a page or a file of results cannot be written
    └── MissingExtra      an optional package is not installed

Every message states what was wrong, where, what was expected and what to do next.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from difflib import get_close_matches

# Messages quote files and other libraries, whose text can be megabytes long on a single line.
_MAX_LENGTH = 2_000
# C0 and C1 controls except tab and newline (ESC starts terminal commands), line separators, bidirectional overrides
# (which make a terminal show other text than the file holds), lone surrogates and noncharacters.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufff9-\ufffb\ufffe\uffff]"
)


class AcceptabilityError(Exception):
    """Base class of all errors that this package raises deliberately.

    Whatever a file, a name or another library contributed to it, the message is a single line of limited length
    without terminal control sequences.

    >>> print(AcceptabilityError("the column 'a" + chr(10) + "b' is " + chr(27) + "[31mred"))
    the column 'a b' is \\x1b[31mred
    """

    def __str__(self) -> str:
        # Sanitised when shown rather than when raised, so that `args` keeps the original for debugging.
        return to_one_line(super().__str__())


class SpecError(AcceptabilityError):
    """A spec (a name with options) that cannot be parsed."""


class UnknownName(AcceptabilityError):
    """A name under which nothing is registered.

    Args:
        kind: What was looked up: "model", "measure", "suite" and so on.
        known: The registered names, from which the closest one is suggested.
        hint: A sentence that says where the valid names are listed.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], *, hint: str) -> None:
        super().__init__(f"no {kind} named {name!r}.{suggest_name(name, known)} {hint}")


class SuiteError(AcceptabilityError):
    """Invalid sentences, contrasts or files of sentences."""


class ScoreError(AcceptabilityError):
    """Scores that are missing, not finite, or of unknown sentences."""


class ModelError(AcceptabilityError):
    """A model that cannot be loaded, or cannot do what was requested."""


class QueryError(ModelError):
    """A query that a model cannot score.

    Args:
        index: The index of the query in the sequence passed to the model, from 0.
        problem: What is wrong with it, phrased so that it can follow a colon.
    """

    def __init__(self, index: int, problem: str) -> None:
        super().__init__(f"query {index}: {problem}")
        # The caller maps the index back to a sentence, so both parts are kept beside the formatted message.
        self.index = index
        self.problem = problem


class OutOfMemory(ModelError):
    """The machine runs out of memory for a batch."""


class CorpusError(AcceptabilityError):
    """Invalid text for training, or for measuring perplexity."""


class TrainError(AcceptabilityError):
    """An invalid recipe, or a training run that cannot continue."""


class EngineError(AcceptabilityError):
    """An engine that cannot be reached, cannot run a model, or fails during a run."""


class MeasureError(AcceptabilityError):
    """A measure that does not apply to a suite."""


class Undefined(MeasureError):
    """A value that is mathematically undefined for the given rows; results hold None and the reason."""


class StoreError(AcceptabilityError):
    """The database of stored scores, or the folder of runs, cannot be used."""


class ReportError(AcceptabilityError):
    """A page or a file of results cannot be written."""


class MissingExtra(AcceptabilityError):
    """An optional package is not installed.

    Args:
        feature: What the user requested.
        packages: The packages that it needs, as the object of "needs".
        install: What to pass to ``pip install``, or to another command.
        command: Another command, for what is no package of Python.
    """

    def __init__(self, feature: str, packages: str, install: str, *, command: str = "pip install") -> None:
        super().__init__(f"{feature!r} needs {packages}. Install with: {command} {install}")


def closest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name closest to a misspelt one, ignoring case; None if none is close.

    >>> closest_name("blmip", ["blimp", "cola/train"])
    'blimp'
    >>> closest_name("pbc", ["PBC", "MCC"])
    'PBC'
    """
    # Names of measures are mostly capitals (PBC, MCC), which difflib would count as different from small letters.
    by_lower_case = {known_name.lower(): known_name for known_name in known}
    matches = get_close_matches(name.lower(), by_lower_case, n=1)
    return by_lower_case[matches[0]] if matches else None


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Return " Did you mean …?" if a known name is close, else an empty string.

    >>> suggest_name("blmip", ["blimp"])
    " Did you mean 'blimp'?"
    """
    match = closest_name(name, known)
    return f" Did you mean {match!r}?" if match else ""


def first_error_line(error: BaseException) -> str:
    """Return the first line of another library's error message, or the exception's class name if it has none."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def to_one_line(message: str) -> str:
    """Return a message as one line; a long one loses its middle.

    Unprintable characters, bidirectional overrides and terminal control characters are shown as escapes.
    """
    line = " ".join(message.split())
    if not line.isprintable():
        line = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in line)
    # The beginning names the file and the end says what to do, so the middle is the part to cut.
    half = _MAX_LENGTH // 2
    return line if len(line) <= _MAX_LENGTH else f"{line[:half]} … {line[-half:]}"


def escape_control_chars(text: str) -> str:
    """Return a text whose terminal control characters and bidirectional overrides are shown as escapes.

    Newlines and tabs stay, and so do the letters and signs of every script.

    >>> print(escape_control_chars("a" + chr(27) + "[31mb, Ünïcödë"))
    a\\x1b[31mb, Ünïcödë
    """
    return _CONTROL_CHARACTERS.sub(lambda match: ascii(match[0])[1:-1], text)


def shorten(text: str, width: int = 60) -> str:
    """Return a text truncated to a width in characters, with an ellipsis if something was cut.

    >>> shorten("a b c", width=4)
    'a b…'
    """
    return text if len(text) <= width else text[: width - 1].rstrip() + "…"


def warn_of_former_name(former: str, present: str) -> None:
    """Warn that a function, class or attribute of the Python interface has another name now.

    Called by the alias itself, so that the warning names the line of the program that used it.
    """
    warnings.warn(
        f"{former} is now called {present}; the old name will be removed in the next release",
        DeprecationWarning,
        stacklevel=3,
    )
