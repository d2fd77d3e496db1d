"""A linguist's own notation: a plain text file, one example a line.

    (12) a. The little boy is [speaking/*speak] to a policeman. (present progressive)
    Betsy buttered (*at) the toast.
    ??Who did you wonder whether left?

A mark before a sentence judges it: ``*``, ``*?``, ``?*``, ``??``, ``?``, ``#``. Within it, ``(at)``
may be left out, ``(*at)`` must be, ``*(at)`` must not; ``[has/*have]`` and ``{boil, fry}`` are
alternatives. Each choice gives a sentence of its own, as bad as the worst mark in it (Warstadt,
Singh and Bowman 2019, section 3), and two sentences that differ in one choice, one
acceptable and one not, are a contrast. A backslash takes a bracket, slash or mark as it is.

Numbers and letters before an example become its tag ``example``; what stands in brackets after
the end of a sentence becomes its tag ``phenomenon``. Glosses and translations are skipped, and
so are sentences whose mark has no label; a note in the log says which.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from acceptability.errors import SuiteError
from acceptability.text import lines
from acceptability.types import Contrast, Sentence, Suite, contrast

_log = logging.getLogger(__name__)

COLA_MARKS: Mapping[str, int | None] = {"": 1, "*": 0, "*?": 0, "?*": 0, "??": 0, "?": None, "#": None}
"""What each mark means by default: CoLA leaves out the sentences marked ? and #."""

_WORST_FIRST = ("*", "*?", "?*", "??", "?", "#", "")
_MARK = re.compile(r"(\*\?|\?\*|\?\?|\*|\?|#)\s*")
_NUMBER = re.compile(
    r"\s*(?:[-•]\s+)?(?P<number>\((?:\d+)(?P<inner>[a-z]?)\)|\d+\.)?\s*(?P<letter>[a-z]\.(?=\s)|\([a-z]\)|[ivx]+\.(?=\s))?\s*"
)
_AFTER_THE_END = re.compile(r"(?<=[.?!])\s+\((?P<phenomenon>[^()*?#][^()]*)\)\s*\Z")
_TRANSLATION = re.compile(r"\s*[‘“'\"].*[’”'\"]\s*\Z")
_GLOSS = re.compile(r"(?<![\w.])[\w-]*[-=.](?:[A-Z0-9]{2,}|\d?(?:SG|PL))(?![a-z])")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_MOST_VARIANTS = 1000


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


def read_notation(path: Path, *, marks: Mapping[str, int | None] | None = None) -> Suite:
    """Return the suite that a file of examples stands for.

    Args:
        marks: The label of each mark where it is not CoLA's: ``{"?": 1}``; None leaves its sentences out.
    """
    where = str(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SuiteError(f"cannot read {path}: {error.strerror}") from error
    labels = {**COLA_MARKS, **(marks or {})}
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    example = ""
    for number, line in lines(content, where):
        if not line.strip() or _is_skipped(line, f"{where}, line {number}"):
            continue
        body, example, tags = _opened(line, example)
        variants = expand(body, f"{where}, line {number}", line.find(body))
        found = _taken(variants, number, tags, labels, where)
        sentences += found.values()
        contrasts += _contrasts(found)
    if not sentences:
        raise SuiteError(f"{where} has no examples")
    return Suite(path.stem, tuple(sentences), tuple(contrasts))


def read_marks(text: str) -> dict[str, int | None]:
    """Return the labels that ``?=1,#=drop`` gives to marks.

    >>> read_marks("?=1,#=drop")
    {'?': 1, '#': None}
    """
    labels: dict[str, int | None] = {"0": 0, "1": 1, "drop": None}
    found = {}
    for part in text.split(","):
        mark, equals, label = part.strip().rpartition("=")
        if not equals or mark not in COLA_MARKS or label not in labels:
            known = " ".join(filter(None, COLA_MARKS))
            raise SuiteError(
                f"cannot read the marks {text!r}: write MARK=0, MARK=1 or MARK=drop; the marks are {known}"
            )
        found[mark] = labels[label]
    return found


def expand(text: str, where: str = "line 1", start: int = 0) -> list[Variant]:
    """Return every sentence that an example stands for.

    >>> [variant.mark + variant.text for variant in expand("Betsy buttered (*at) the toast.")]
    ['Betsy buttered the toast.', '*Betsy buttered at the toast.']
    """
    mark, rest = _marked(text)
    pieces = _pieces(rest, where, start + len(text) - len(rest))
    places = [piece for piece in pieces if isinstance(piece, tuple)]
    count = 1
    for place in places:
        count *= len(place)
    if count > _MOST_VARIANTS:
        raise SuiteError(f"{where}: the example stands for {count:,} sentences; at most {_MOST_VARIANTS:,} are made")
    variants = []
    for picks in product(*(range(len(place)) for place in places)):
        chosen = [place[pick] for place, pick in zip(places, picks, strict=True)]
        marks = [mark, *(choice.mark for choice in chosen)]
        variants.append(Variant(picks, _filled(pieces, chosen), min(marks, key=_WORST_FIRST.index)))
    return variants


def write_notation(suite: Suite) -> str:
    """Return a suite's contrasts, and then its other sentences, in this notation.

    A sentence that is in no contrast needs a label: the notation cannot leave it open.
    """
    rows = [_contrasted(suite.by_id[each.better].text, suite.by_id[each.worse].text) for each in suite.contrasts]
    paired = {name for each in suite.contrasts for name in (each.better, each.worse)}
    for sentence in suite.sentences:
        if sentence.id not in paired:
            rows.append(_own_mark(sentence) + _escaped(sentence.text))
    return "".join(f"{row}\n" for row in rows)


def _opened(line: str, example: str) -> tuple[str, str, dict[str, str]]:
    """Return an example without what stands around it, its number, and its tags."""
    found = _NUMBER.match(line)
    assert found is not None
    number = re.sub(r"\D", "", found["number"] or "") or example
    letter = (found["letter"] or "").strip("(). ") or (found["inner"] or "")
    body = line[found.end() :].rstrip()
    tags = {"example": number + letter} if found["number"] or found["letter"] else {}
    if after := _AFTER_THE_END.search(body):
        tags["phenomenon"] = after["phenomenon"]
        body = body[: after.start()]
    return body, number, tags


def _is_skipped(line: str, where: str) -> bool:
    """Tell whether a line is a gloss or a translation, and say so in the log."""
    what = "a translation" if _TRANSLATION.match(line) else "a gloss" if _GLOSS.search(line) else ""
    if what:
        _log.warning("%s: skipped, %s: %s", where, what, line.strip())
    return bool(what)


def _marked(text: str) -> tuple[str, str]:
    found = _MARK.match(text)
    # A star before a bracket belongs to the bracket: what is in it must not be left out.
    if not found or (found[1] == "*" and text[found.end() :].startswith("(")):
        return "", text
    return found[1], text[found.end() :]


def _pieces(text: str, where: str, start: int) -> list[str | tuple[Choice, ...]]:
    """Return plain text and places to fill, in turn."""
    pieces: list[str | tuple[Choice, ...]] = []
    plain = ""
    at = 0
    while at < len(text):
        letter = text[at]
        if letter == "\\" and at + 1 < len(text):
            plain += text[at + 1]
            at += 2
        elif letter in _CLOSING:
            end = _closed(text, at, where, start)
            is_needed = letter == "(" and plain.endswith("*")
            pieces.append(plain[:-1] if is_needed else plain)
            pieces.append(_choices(letter, text[at + 1 : end], is_needed, f"{where}, column {start + at + 1}"))
            plain = ""
            at = end + 1
        elif letter in _CLOSING.values():
            raise SuiteError(
                f"{where}, column {start + at + 1}: {letter!r} closes nothing. Write \\{letter} for the letter."
            )
        else:
            plain += letter
            at += 1
    return [*pieces, plain]


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
    if kind == "(":
        mark, words = _marked(inside.strip())
        return (Choice("", "*" if is_needed else ""), Choice(_plain(words), mark))
    parts = _split(inside, "/")
    separator = "/" if kind == "[" or len(parts) > 1 else ","
    parts = parts if separator == "/" else _split(inside, ",")
    if len(parts) < 2:
        raise SuiteError(
            f"{where}: only one alternative in {kind}{inside}{_CLOSING[kind]}. Separate alternatives by "
            f"{separator!r}, or write ( ) round words that may be left out."
        )
    marked = [_marked(part.strip()) for part in parts]
    return tuple(Choice(_plain(words), mark) for mark, words in marked)


def _split(text: str, separator: str) -> list[str]:
    """Return the parts between separators; one behind a backslash separates nothing."""
    parts = [""]
    for piece in re.findall(r"\\.|.", text):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _own_mark(sentence: Sentence) -> str:
    if sentence.label is None:
        raise SuiteError(f"sentence {sentence.id!r} has no label, which linguists' notation cannot say; write .jsonl")
    mark = sentence.tags.get("mark", "").strip()
    return "" if sentence.label else mark if COLA_MARKS.get(mark) == 0 else "*"


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text).strip()


def _filled(pieces: list[str | tuple[Choice, ...]], chosen: list[Choice]) -> str:
    """Return the text with a choice in each place; a place left empty leaves no double space."""
    text = ""
    picks = iter(chosen)
    for piece in pieces:
        if isinstance(piece, tuple):
            text += next(picks).text
        elif text.endswith(" ") and (not piece or piece[0] in " .,;:?!"):
            text = text[:-1] + piece
        else:
            text += piece if text else piece.lstrip()
    begins = next((piece for piece in pieces if piece), "")
    text = text.strip()
    if isinstance(begins, tuple) and any(choice.text[:1].isupper() for choice in begins):
        text = text[:1].upper() + text[1:]
    return text


def _taken(
    variants: list[Variant], number: int, tags: Mapping[str, str], labels: Mapping[str, int | None], where: str
) -> dict[tuple[int, ...], Sentence]:
    """Return the sentences of an example that have a label; a note tells of the others."""
    found = {}
    for place, variant in enumerate(variants, start=1):
        label = labels[variant.mark]
        if label is None:
            _log.warning("%s, line %d: left out, marked %s: %s", where, number, variant.mark, variant.text)
            continue
        name = str(number) if len(variants) == 1 else f"{number}/{place}"
        own = {"item": str(number), **tags, "mark": variant.mark}
        found[variant.picks] = Sentence(name, variant.text, label=label, tags=own)
    return found


def _contrasts(found: Mapping[tuple[int, ...], Sentence]) -> Iterator[Contrast]:
    for one, better in found.items():
        for other, worse in found.items():
            differ = sum(a != b for a, b in zip(one, other, strict=True))
            if differ == 1 and better.label == 1 and worse.label == 0:
                yield contrast(better, worse)


def _contrasted(better: str, worse: str) -> str:
    """Return two sentences as one example: what they share, and what differs in brackets."""
    ones, others = better.split(), worse.split()
    first = 0
    while first < min(len(ones), len(others)) and ones[first] == others[first]:
        first += 1
    last = 0
    while last < min(len(ones), len(others)) - first and ones[-1 - last] == others[-1 - last]:
        last += 1
    if first == len(ones) == len(others):
        first -= 1
    parts = ones[:first], ones[first : len(ones) - last], others[first : len(others) - last], ones[len(ones) - last :]
    before, good, bad, after = (_escaped(" ".join(part)) for part in parts)
    middle = f"[{good}/*{bad}]" if good and bad else f"(*{bad})" if bad else f"*({good})"
    return " ".join(filter(None, (before, middle, after)))


def _escaped(text: str) -> str:
    escaped = re.sub(r"([\\()\[\]{}/])", r"\\\1", text)
    return re.sub(r"\A(?=[*?#])", r"\\", escaped)
