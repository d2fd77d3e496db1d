"""A linguist's own notation: a plain text file, one example a line.

    (12) a. The little boy is [speaking/*speak] to a policeman. (present progressive)
    Betsy buttered (*at) the toast.
    ??Who did you wonder whether left?

A mark before a sentence judges it: ``*``, ``*?``, ``?*``, ``??``, ``?``, ``#``. Within it, ``(at)``
may be left out, ``(*at)`` must be, ``*(at)`` must not; ``[has/*have]`` and ``{boil, fry}`` are
alternatives. Each choice gives a sentence of its own, as bad as the worst mark in it (Warstadt,
Singh and Bowman 2019, section 3), and two sentences that differ in one choice, one
acceptable and one not, are a contrast. A backslash takes a bracket, slash or star as it is; a star
in the middle of a sentence is an error.

Numbers and letters before an example become its tag ``example``; what stands in brackets after
the end of a sentence becomes its tag ``phenomenon``. Glosses and translations are skipped, and
so are sentences whose mark has no label; a note in the log says which.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from acceptability.errors import SuiteError
from acceptability.suites.brackets import Variant, expand
from acceptability.text import content_of, lines
from acceptability.types import Contrast, Sentence, Suite, contrast

_log = logging.getLogger(__name__)

COLA_MARKS: Mapping[str, int | None] = {"": 1, "*": 0, "*?": 0, "?*": 0, "??": 0, "?": None, "#": None}
"""What each mark means by default: CoLA leaves out the sentences marked ? and #."""

_MOST_CHARACTERS = 50_000_000

_NUMBER = re.compile(
    r"\s*(?:[-•]\s+)?(?P<first>[*?#]+\s*)?"
    r"(?P<number>\(\d+'*[a-z]?\)|\([ivxl]+\)|\d+[a-z]?[.)](?=\s))?\s*"
    r"(?P<second>[*?#]+\s*)?(?P<letter>(?:[a-z]|[ivx]+)[.)](?=\s|[*?#]|\Z)|\([a-z]\))?\s*"
)
_BULLET = re.compile(r"\s*[-•]\s+")
_AFTER_THE_END = re.compile(r"(?<=[.?!])\s+\((?P<phenomenon>[^()*?#][^()]*)\)\s*\Z")
_TRANSLATION = re.compile(r"\s*(?:‘[^‘’]*’|“[^“”]*”|'[^']*'|\"[^\"]*\")\s*\Z")
_GLOSS = re.compile(
    r"\S[-=.](?:[123]?(?:SG|PL|DU)|[123]|NOM|ACC|DAT|GEN|ABS|ERG|LOC|INS|ABL|TOP|PST|PAST|PRS|PRES|FUT|PFV|IPFV|PROG"
    r"|NEG|INF|PASS|CAUS|COP|DEF|INDF|COMP|REL|SUBJ|OBJ|SBJV|IMP|COND|HON|DECL|PTCP|AUX|POSS|REFL)(?![a-z])",
    re.IGNORECASE,
)


def read_notation(path: Path, *, marks: Mapping[str, int | None] | None = None) -> Suite:
    """Return the suite that a file of examples stands for.

    Args:
        marks: The label of each mark where it is not CoLA's: ``{"?": 1}``; None leaves its sentences out.
    """
    where = str(path)
    content = content_of(path)
    labels = {**COLA_MARKS, **(marks or {})}
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    example = ""
    made = 0
    for number, line in lines(content, where):
        if not line.strip() or _is_skipped(line, f"{where}, line {number}"):
            continue
        body, example, tags = _opened(line, example)
        if not body:
            _log.warning("%s, line %d: skipped, a number without an example", where, number)
            continue
        unmarked = body.lstrip("*?# ")
        start = line.find(unmarked) - (len(body) - len(unmarked))
        variants = expand(body, f"{where}, line {number}", start)
        made += sum(len(each.text) for each in variants)
        if made > _MOST_CHARACTERS:
            raise SuiteError(
                f"{where}, line {number}: the examples so far stand for more than {_MOST_CHARACTERS:,} characters. "
                "Use fewer brackets in a line, or several files."
            )
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


def write_notation(suite: Suite) -> str:
    """Return a suite's contrasts, and then its other sentences, in this notation.

    A sentence that is in no contrast needs a label: the notation cannot leave it open.
    """
    texts = suite.by_id
    rows = [_written_pair(texts[each.better].text, texts[each.worse].text) for each in suite.contrasts]
    paired = {name for each in suite.contrasts for name in (each.better, each.worse)}
    rows += [_written(sentence) for sentence in suite.sentences if sentence.id not in paired]
    return "".join(f"{row}\n" for row in rows)


def _opened(line: str, example: str) -> tuple[str, str, dict[str, str]]:
    """Return an example without what stands around it, its number, and its tags."""
    found = _NUMBER.match(line)
    assert found is not None
    tags: dict[str, str] = {}
    if found["number"] or found["letter"]:
        # A mark may stand before the number: *(12) a. The dog bark.
        body = (found["first"] or "").strip() + (found["second"] or "").strip() + line[found.end() :]
        spelled = re.fullmatch(r"\W*(\d+|[ivxl]+)?'*([a-z]?)\W*", found["number"] or "")
        number = (spelled[1] if spelled else None) or example
        letter = (found["letter"] or "").strip("().") or (spelled[2] if spelled else "")
        tags["example"] = number + letter
    else:
        bullet = _BULLET.match(line)
        body, number = line[bullet.end() :] if bullet else line.lstrip(), example
    body = body.rstrip()
    if after := _AFTER_THE_END.search(body):
        tags["phenomenon"] = after["phenomenon"]
        body = body[: after.start()]
    return body, number, tags


def _is_skipped(line: str, where: str) -> bool:
    """Tell whether a line is a gloss or a translation, and say so in the log."""
    is_gloss = sum(bool(_GLOSS.search(word)) for word in line.split()) > 1 and not re.search(r"[\[\]{}()*\\]", line)
    what = "a translation" if _TRANSLATION.match(line) else "a gloss" if is_gloss else ""
    if what:
        _log.warning("%s: skipped, %s: %s", where, what, line.strip())
    return bool(what)


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
    """Yield every two sentences of an example that differ in one choice, the acceptable one first."""
    choices = [max(picks) + 1 for picks in zip(*found, strict=True)]
    for picks, better in found.items():
        if better.label != 1:
            continue
        others = ((*picks[:at], pick, *picks[at + 1 :]) for at, most in enumerate(choices) for pick in range(most))
        for worse in (found[other] for other in sorted(others) if other in found):
            if worse.label == 0:
                yield contrast(better, worse)


def _written_pair(better: str, worse: str) -> str:
    """Return two sentences as one example: what differs in brackets, or both whole where that reads otherwise."""
    wanted = {(" ".join(better.split()), ""), (" ".join(worse.split()), "*")}
    row = _contrasted(better.split(), worse.split())
    if _read_back(row) != wanted:
        row = f"[{_escaped(better)}/*{_escaped(worse)}]"
    return row


def _contrasted(ones: list[str], others: list[str]) -> str:
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


def _written(sentence: Sentence) -> str:
    if sentence.label is None:
        raise SuiteError(f"sentence {sentence.id!r} has no label, which linguists' notation cannot say; write .jsonl")
    mark = sentence.tags.get("mark", "").strip()
    mark = "" if sentence.label else mark if COLA_MARKS.get(mark) == 0 else "*"
    row = mark + _escaped(sentence.text)
    wanted = {(" ".join(sentence.text.split()), mark)}
    if _read_back(row) == wanted:
        return row
    # A backslash keeps a number from being read as one; a trailing one, a bracket after the end as a note.
    return f"{mark}\\{_escaped(sentence.text)}" if _escaped(sentence.text)[0] != "\\" else row


def _read_back(row: str) -> set[tuple[str, str]]:
    """Return the sentences and marks that a written line gives when it is read."""
    if _TRANSLATION.match(row) or sum(bool(_GLOSS.search(word)) for word in row.split()) > 1:
        return set()
    body, _, tags = _opened(row, "")
    if tags or not body:
        return set()
    try:
        return {(variant.text, variant.mark) for variant in expand(body)}
    except SuiteError:
        return set()


def _escaped(text: str) -> str:
    escaped = re.sub(r"([\\()\[\]{}/*])", r"\\\1", text)
    return re.sub(r"\A(?=[?#])", r"\\", escaped)
