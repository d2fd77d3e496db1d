"""How a result says how to get it again.

A signature is a line of fields, printed under every table and readable back:

    PairAccuracy(ties=0.0)|suite:starter#3fa9c1d2|model:causal(...).lp()|n:336|ci:...|acceptability:0.1.0

What can change a number is in it; what must not (batch size, device, cache) is not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping

_ESCAPES = {"%": "%25", "|": "%7C", "\n": "%0A", "\r": "%0D"}


def sign(measure: str, fields: Mapping[str, str]) -> str:
    """Return the signature made of a measure and named fields.

    >>> sign("PBC()", {"suite": "mine", "n": "12"})
    'PBC()|suite:mine|n:12'
    """
    return "|".join([_escape(measure), *(f"{key}:{_escape(value)}" for key, value in fields.items())])


def parse(signature: str) -> dict[str, str]:
    """Return the fields of a signature; the measure stands under 'measure'.

    >>> parse("PBC()|suite:mine|n:12")
    {'measure': 'PBC()', 'suite': 'mine', 'n': '12'}
    """
    measure, *fields = signature.split("|")
    pairs = (field.partition(":") for field in fields)
    return {"measure": _unescape(measure)} | {key: _unescape(value) for key, _, value in pairs}


def fingerprint(parts: Iterable[bytes], *, digits: int = 12) -> str:
    """Return a short hash of byte strings, which also depends on where each ends.

    >>> fingerprint([b"ab", b"c"]) == fingerprint([b"a", b"bc"])
    False
    """
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:digits]


def fingerprint_of_lines(*texts: Callable[[], Iterable[str]], digits: int = 12) -> str:
    """Return the fingerprint of texts whose lines are made anew, twice: no text is ever held as a whole.

    >>> fingerprint_of_lines(lambda: ["a", "b"], lambda: ["c"]) == fingerprint([b"a\\nb", b"c"])
    True
    """
    digest = hashlib.sha256()
    for lines in texts:
        size = sum(len(line.encode()) + 1 for line in lines())
        digest.update(max(size - 1, 0).to_bytes(8, "big"))
        for number, line in enumerate(lines()):
            digest.update((f"\n{line}" if number else line).encode())
    return digest.hexdigest()[:digits]


def _escape(text: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in text)


def _unescape(text: str) -> str:
    for character, escaped in reversed(_ESCAPES.items()):
        text = text.replace(escaped, character)
    return text
