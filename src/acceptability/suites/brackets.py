"""Examples with marks and brackets, expanded: what one line of linguists' notation stands for.

``(at)`` may be left out, ``(*at)`` must be, ``*(at)`` must not; ``[has/*have]`` and ``{boil, fry}`` are
alternatives; a backslash takes a letter as it is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from itertools import product

from acceptability.errors import SuiteError

_WORST_FIRST = ("*", "*?", "?*", "??", "?", "#", "")
_MARK = re.compile(r"[*?#]+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_PUNCTUATION = ".,;:?!"
_MOST_VARIANTS = 1000
_MOST_CHARACTERS = 10_000_000


@dataclass(frozen=True)
class Choice:
    """One way to fill a place in a sentence: some words, perhaps none, with their mark."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Variant:
    """One sentence that an example stands for: the choices made, its text, its mark."""

    picks: tuple[int, ...]
    text: str
    mark: str


def expand(text: str, where: str = "line 1", start: int = 0) -> list[Variant]:
    """Return every sentence that an example stands for.

    >>> [variant.mark + variant.text for variant in expand("Betsy buttered (*at) the toast.")]
    ['Betsy buttered the toast.', '*Betsy buttered at the toast.']
    """
    mark, rest = _marked(text, f"{where}, column {start + 1}")
    pieces = _pieces(rest, where, start + len(text) - len(rest))
    places = [piece for piece in pieces if isinstance(piece, tuple)]
    count = math.prod(map(len, places))
    if count > _MOST_VARIANTS:
        raise SuiteError(f"{where}: the example stands for {count:,} sentences; at most {_MOST_VARIANTS:,} are made")
    if count > 1 and count * len(rest) > _MOST_CHARACTERS:
        raise SuiteError(
            f"{where}: {count:,} sentences of up to {len(rest):,} characters are too much for one example; write "
            "shorter ones"
        )
    variants = []
    for picks in product(*(range(len(place)) for place in places)):
        chosen = [place[pick] for place, pick in zip(places, picks, strict=True)]
        marks = [mark, *(choice.mark for choice in chosen)]
        text = _filled(pieces, chosen)
        if not text:
            raise SuiteError(f"{where}, column {start + 1}: nothing is left of the example without what is in brackets")
        variants.append(Variant(picks, text, min(marks, key=_WORST_FIRST.index)))
    return variants


def _marked(text: str, where: str) -> tuple[str, str]:
    """Return the mark before a text, and the text without it."""
    found = _MARK.match(text)
    # A star right before a bracket belongs to the bracket: what is in it must not be left out.
    if not found or text.startswith("*("):
        return "", text
    if found[0] not in _WORST_FIRST:
        known = " ".join(filter(None, _WORST_FIRST))
        raise SuiteError(
            f"{where}: {found[0]!r} is no mark; the marks are {known}. Write \\{found[0][0]} for the letter."
        )
    return found[0], text[found.end() :].lstrip()


def _pieces(text: str, where: str, start: int) -> list[str | tuple[Choice, ...]]:
    """Return plain text and places to fill, in turn."""
    pieces: list[str | tuple[Choice, ...]] = []
    plain, is_needed = "", False
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and at + 1 < len(text):
            plain += text[at + 1]
            at += 2
        elif letter in _CLOSING:
            end = _closed(text, at, where, start)
            pieces.append(plain)
            pieces.append(_choices(letter, text[at + 1 : end], is_needed, f"{where}, column {start + at + 1}"))
            plain, is_needed = "", False
            at = end + 1
        elif letter in _CLOSING.values():
            raise SuiteError(
                f"{where}, column {start + at + 1}: {letter!r} closes nothing. Write \\{letter} for the letter."
            )
        elif letter == "*":
            is_needed = text[at + 1 : at + 2] == "("
            if not is_needed:
                raise _stray(f"{where}, column {start + at + 1}")
            at += 1
        else:
            plain += letter
            at += 1
    return [*pieces, plain]


def _stray(where: str) -> SuiteError:
    return SuiteError(
        f"{where}: a star in the middle of a sentence judges nothing. Put alternatives in brackets, [good/*bad], "
        "or write \\* for the letter."
    )


def _closed(text: str, at: int, where: str, start: int) -> int:
    """Return where the bracket that opens at a place is closed."""
    place = at + 1
    while place < len(text):
        if text[place] == "\\":
            place += 2
            continue
        if text[place] == _CLOSING[text[at]]:
            return place
        if text[place] in "([{)]}":
            raise SuiteError(
                f"{where}, column {start + place + 1}: {text[place]!r} inside {text[at]!r}. "
                f"Brackets cannot stand in brackets; write \\{text[place]} for the letter."
            )
        place += 1
    raise SuiteError(
        f"{where}, column {start + at + 1}: {text[at]!r} is not closed. Write \\{text[at]} for the letter."
    )


def _choices(kind: str, inside: str, is_needed: bool, where: str) -> tuple[Choice, ...]:
    if not inside.strip():
        raise SuiteError(f"{where}: there is nothing in the brackets")
    parts = _split(inside, "/")
    if kind == "(":
        if len(parts) > 1:
            raise SuiteError(f"{where}: alternatives stand in [ ], words that may be left out in ( ): [{inside}]")
        mark, words = _marked(inside.lstrip(), where)
        blank = inside[: len(inside) - len(inside.lstrip())]
        return (Choice("", "*" if is_needed else ""), Choice(blank + _plain(words, where), mark))
    separator = "/" if kind == "[" or len(parts) > 1 else ","
    parts = parts if separator == "/" else _split(inside, ",")
    if len(parts) < 2:
        raise SuiteError(
            f"{where}: only one alternative in {kind}{inside}{_CLOSING[kind]}. Separate alternatives by "
            f"{separator!r}, or write ( ) round words that may be left out."
        )
    marked = [_marked(part.strip(), where) for part in parts]
    return tuple(Choice(_plain(words, where).strip(), mark) for mark, words in marked)


def _split(text: str, separator: str) -> list[str]:
    """Return the parts between separators; one behind a backslash separates nothing."""
    parts = [""]
    for piece in re.findall(r"\\.|.", text):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _plain(text: str, where: str) -> str:
    if re.search(r"(?<!\\)(?:\\\\)*\*", text):
        raise _stray(where)
    return re.sub(r"\\(.)", r"\1", text)


def _filled(pieces: list[str | tuple[Choice, ...]], chosen: list[Choice]) -> str:
    """Return the text with a choice in each place: single spaces, and none before a mark at a bracket's edge."""
    text = ""
    picks = iter(chosen)
    for piece in pieces:
        part = next(picks).text if isinstance(piece, tuple) else piece
        if part.lstrip()[:1] and part.lstrip()[0] in _PUNCTUATION and len(pieces) > 1 and text:
            text, part = text.rstrip(), part.lstrip()
        text += part
    text = " ".join(text.split())
    opening = next((piece for piece in pieces if piece), "")
    is_omitted = isinstance(opening, tuple) and opening[0].text == "" and not chosen[0].text
    if is_omitted and opening[1].text.lstrip()[:1].isupper():  # type: ignore[union-attr]
        text = text[:1].upper() + text[1:]
    return text
