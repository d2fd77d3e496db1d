"""Linguists' notation: a plain text file with one example per line, marks for judgements, and brackets.

    (12) a. The little boy is [speaking/*speak] to a policeman. (present progressive)
    Betsy buttered (*at) the toast.
    ??Who did you wonder whether left?

A mark before a sentence is its judgement: ``*``, ``*?``, ``?*``, ``??``, ``?``, ``#``. Within a sentence,
``(at)`` is optional, ``(*at)`` must be left out, ``*(at)`` is obligatory; ``[has/*have]`` and ``{boil, fry}`` are
alternatives. Every combination of choices gives a sentence, which is as bad as the worst mark in it
(Warstadt, Singh and Bowman 2019, section 3). Two sentences that differ in one choice, one acceptable and one
not, are a contrast. A backslash escapes a bracket, slash or star; a star in the middle of a sentence is an
error.

Numbers and letters before an example become its tag ``example``; text in brackets after the end of a
sentence becomes its tag ``phenomenon``. Glosses, translations and sentences whose mark has no label are
skipped, and logged.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from acceptability.errors import SuiteError
from acceptability.text.io import read_content, read_lines
from acceptability.types import Contrast, Sentence, Suite, make_contrast

_log = logging.getLogger(__name__)


COLA_MARKS: Mapping[str, int | None] = {"": 1, "*": 0, "*?": 0, "?*": 0, "??": 0, "?": None, "#": None}
"""The label of each mark by default; None skips the sentence. CoLA excludes sentences marked ? and #."""


# Of all expanded sentences of a file together: each line may be within its limits, and the file still fill the memory.
_MAX_CHARACTERS = 50_000_000


def read_notation(path: Path, *, marks: Mapping[str, int | None] | None = None) -> Suite:
    """Return the suite in a file of examples.

    Args:
        marks: The labels of marks where they differ from CoLA's: ``{"?": 1}``; None skips the sentences.
    """
    where = str(path)
    content = read_content(path)
    labels = {**COLA_MARKS, **(marks or {})}
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    example = ""
    expanded_characters = 0
    for number, line in read_lines(content, where):
        if not line.strip() or _is_skipped(line, f"{where}, line {number}"):
            continue
        body, example, tags = _parse_line(line, example)
        if not body:
            _log.warning("%s, line %d: skipped, a number without an example", where, number)
            continue
        # The body may contain a mark from before the number, so only the rest of it can be located in the line.
        unmarked = body.lstrip("*?# ")
        start = line.find(unmarked) - (len(body) - len(unmarked))
        variants = expand_example(body, f"{where}, line {number}", start)
        expanded_characters += sum(len(variant.text) for variant in variants)
        if expanded_characters > _MAX_CHARACTERS:
            raise SuiteError(
                f"{where}, line {number}: the examples so far expand to more than {_MAX_CHARACTERS:,} characters. "
                "Use fewer brackets per line, or several files."
            )
        labelled = _label_variants(variants, number, tags, labels, where)
        sentences += labelled.values()
        contrasts += _find_contrasts(labelled)
    if not sentences:
        raise SuiteError(f"{where} has no examples")
    # The variants of one example share its words.
    return Suite(path.stem, tuple(sentences), tuple(contrasts), unit="item")


def read_marks(text: str) -> dict[str, int | None]:
    """Return the labels of marks in a text such as ``?=1,#=drop``.

    >>> read_marks("?=1,#=drop")
    {'?': 1, '#': None}
    """
    labels: dict[str, int | None] = {"0": 0, "1": 1, "drop": None}
    label_of = {}
    for part in text.split(","):
        mark, equals, label = part.strip().rpartition("=")
        if not equals or mark not in COLA_MARKS or label not in labels:
            known = " ".join(filter(None, COLA_MARKS))
            raise SuiteError(
                f"cannot read the marks {text!r}: write MARK=0, MARK=1 or MARK=drop; the marks are {known}"
            )
        label_of[mark] = labels[label]
    return label_of


# Numbers as linguists write them: "(12)", "(12')", "(iv)", "12a.", "a.", "(b)", after an optional bullet, with a mark
# before or after the number. A bare "12" is a number only with a full stop or bracket and a space after it, since
# sentences may start with numerals.
_NUMBER = re.compile(
    r"\s*(?:[-•]\s+)?(?P<first>[*?#]+\s*)?"
    r"(?P<number>\(\d+'*[a-z]?\)|\([ivxl]+\)|\d+[a-z]?[.)](?=\s))?\s*"
    r"(?P<second>[*?#]+\s*)?(?P<letter>(?:[a-z]|[ivx]+)[.)](?=\s|[*?#]|\Z)|\([a-z]\))?\s*"
)

_BULLET = re.compile(r"\s*[-•]\s+")

_TRAILING_NOTE = re.compile(r"(?<=[.?!])\s+\((?P<phenomenon>[^()*?#][^()]*)\)\s*\Z")


def _parse_line(line: str, example: str) -> tuple[str, str, dict[str, str]]:
    """Return the body of an example without number and note, the number, and the tags.

    Args:
        example: The number of the previous example, which a line with a letter alone ("b.") continues.
    """
    match = _NUMBER.match(line)
    assert match is not None
    tags: dict[str, str] = {}
    if match["number"] or match["letter"]:
        # A mark may stand before the number: *(12) a. The dog bark.
        body = (match["first"] or "").strip() + (match["second"] or "").strip() + line[match.end() :]
        parsed_number = re.fullmatch(r"\W*(\d+|[ivxl]+)?'*([a-z]?)\W*", match["number"] or "")
        number = (parsed_number[1] if parsed_number else None) or example
        letter = (match["letter"] or "").strip("().") or (parsed_number[2] if parsed_number else "")
        tags["example"] = number + letter
    else:
        bullet = _BULLET.match(line)
        body, number = line[bullet.end() :] if bullet else line.lstrip(), example
    body = body.rstrip()
    if after := _TRAILING_NOTE.search(body):
        tags["phenomenon"] = after["phenomenon"]
        body = body[: after.start()]
    return body, number, tags


_TRANSLATION = re.compile(r"\s*(?:‘[^‘’]*’|“[^“”]*”|'[^']*'|\"[^\"]*\")\s*\Z")

# The glossing abbreviations of the Leipzig Glossing Rules after a hyphen, equals sign or full stop ("dog-PL.NOM"). A
# single such word may be an ordinary hyphenated one, so a line needs two of them to count as a gloss.
_GLOSS = re.compile(
    r"\S[-=.](?:[123]?(?:SG|PL|DU)|[123]|NOM|ACC|DAT|GEN|ABS|ERG|LOC|INS|ABL|TOP|PST|PAST|PRS|PRES|FUT|PFV|IPFV|PROG"
    r"|NEG|INF|PASS|CAUS|COP|DEF|INDF|COMP|REL|SUBJ|OBJ|SBJV|IMP|COND|HON|DECL|PTCP|AUX|POSS|REFL)(?![a-z])",
    re.IGNORECASE,
)


def _is_skipped(line: str, where: str) -> bool:
    """Return whether a line is a gloss or a translation, and log it if so."""
    # Brackets and stars do not occur in glosses, but they do in examples.
    is_gloss = sum(bool(_GLOSS.search(word)) for word in line.split()) > 1 and not re.search(r"[\[\]{}()*\\]", line)
    line_kind = "a translation" if _TRANSLATION.match(line) else "a gloss" if is_gloss else ""
    if line_kind:
        _log.warning("%s: skipped, %s: %s", where, line_kind, line.strip())
    return bool(line_kind)


def _label_variants(
    variants: list[Variant], number: int, tags: Mapping[str, str], labels: Mapping[str, int | None], where: str
) -> dict[tuple[int, ...], Sentence]:
    """Return the labelled sentences of an example by their choices, and log those whose mark has no label."""
    labelled = {}
    for variant_number, variant in enumerate(variants, start=1):
        label = labels[variant.mark]
        if label is None:
            _log.warning("%s, line %d: left out, marked %s: %s", where, number, variant.mark, variant.text)
            continue
        name = str(number) if len(variants) == 1 else f"{number}/{variant_number}"
        own = {"item": str(number), **tags, "mark": variant.mark}
        labelled[variant.picks] = Sentence(name, variant.text, label=label, tags=own)
    return labelled


def _find_contrasts(labelled: Mapping[tuple[int, ...], Sentence]) -> Iterator[Contrast]:
    """Yield the contrasts of an example: an acceptable and an unacceptable sentence that differ in one choice."""
    # For each sentence its neighbours are looked up; comparing all pairs of up to 1,000 sentences would be slow.
    choices = [max(picks) + 1 for picks in zip(*labelled, strict=True)]
    for picks, better in labelled.items():
        if better.label != 1:
            continue
        others = ((*picks[:at], pick, *picks[at + 1 :]) for at, most in enumerate(choices) for pick in range(most))
        for worse in (labelled[other] for other in sorted(others) if other in labelled):
            if worse.label == 0:
                yield make_contrast(better, worse)


# The order decides which mark an expanded sentence gets if its choices have several.
_WORST_FIRST = ("*", "*?", "?*", "??", "?", "#", "")

_MARK = re.compile(r"[*?#]+")

_CLOSING = {"(": ")", "[": "]", "{": "}"}

_PUNCTUATION = ".,;:?!"

# The number of sentences is the product of the numbers of choices, so twenty brackets in a line would be a million.
_MAX_VARIANTS = 1000

_MAX_EXPANSION_CHARACTERS = 10_000_000


@dataclass(frozen=True)
class Alternative:
    """One alternative in a bracket: its words, possibly none, and its mark."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Variant:
    """One of the sentences of an example: the index of the choice in each bracket, the text, and the mark."""

    picks: tuple[int, ...]
    text: str
    mark: str


def expand_example(text: str, where: str = "line 1", start: int = 0) -> list[Variant]:
    """Return every sentence of an example with brackets.

    Args:
        where: The line, for error messages.
        start: The column of the text in the line, for error messages.

    >>> [variant.mark + variant.text for variant in expand_example("Betsy buttered (*at) the toast.")]
    ['Betsy buttered the toast.', '*Betsy buttered at the toast.']
    """
    mark, rest = _split_mark(text, f"{where}, column {start + 1}")
    pieces = _parse_pieces(rest, where, start + len(text) - len(rest))
    brackets = [piece for piece in pieces if isinstance(piece, tuple)]
    # Checked before any sentence is built: the product can be astronomically large.
    count = math.prod(map(len, brackets))
    if count > _MAX_VARIANTS:
        raise SuiteError(f"{where}: the example expands to {count:,} sentences; at most {_MAX_VARIANTS:,} are allowed")
    if count > 1 and count * len(rest) > _MAX_EXPANSION_CHARACTERS:
        raise SuiteError(
            f"{where}: {count:,} sentences of up to {len(rest):,} characters are too much for one example; write "
            "shorter ones"
        )
    variants = []
    for picks in product(*(range(len(bracket)) for bracket in brackets)):
        chosen = [bracket[pick] for bracket, pick in zip(brackets, picks, strict=True)]
        marks = [mark, *(choice.mark for choice in chosen)]
        text = _fill_choices(pieces, chosen)
        if not text:
            raise SuiteError(
                f"{where}, column {start + 1}: nothing is left of the example without the text in brackets"
            )
        variants.append(Variant(picks, text, min(marks, key=_WORST_FIRST.index)))
    return variants


def _split_mark(text: str, where: str) -> tuple[str, str]:
    """Return the mark at the beginning of a text, and the text without it."""
    match = _MARK.match(text)
    # A star directly before a bracket belongs to the bracket, whose content is obligatory.
    if not match or text.startswith("*("):
        return "", text
    if match[0] not in _WORST_FIRST:
        known = " ".join(filter(None, _WORST_FIRST))
        raise SuiteError(
            f"{where}: {match[0]!r} is not a mark; the marks are {known}. Write \\{match[0][0]} for the character."
        )
    return match[0], text[match.end() :].lstrip()


def _parse_pieces(text: str, where: str, start: int) -> list[str | tuple[Alternative, ...]]:
    """Return the pieces of an example: strings of plain text, and tuples of the choices in a bracket."""
    pieces: list[str | tuple[Alternative, ...]] = []
    plain, is_obligatory = "", False
    position = 0
    while position < len(text):
        letter = text[position]
        if letter == "\\" and position + 1 < len(text):
            plain += text[position + 1]
            position += 2
        elif letter in _CLOSING:
            end = _find_closing_bracket(text, position, where, start)
            pieces.append(plain)
            pieces.append(
                _parse_choices(
                    letter, text[position + 1 : end], is_obligatory, f"{where}, column {start + position + 1}"
                )
            )
            plain, is_obligatory = "", False
            position = end + 1
        elif letter in _CLOSING.values():
            raise SuiteError(
                f"{where}, column {start + position + 1}: {letter!r} closes nothing. Write \\{letter} instead."
            )
        elif letter == "*":
            is_obligatory = text[position + 1 : position + 2] == "("
            if not is_obligatory:
                raise _stray_star_error(f"{where}, column {start + position + 1}")
            position += 1
        else:
            plain += letter
            position += 1
    return [*pieces, plain]


def _stray_star_error(where: str) -> SuiteError:
    return SuiteError(
        f"{where}: a star in the middle of a sentence is no judgement. Put alternatives in brackets, [good/*bad], "
        "or write \\* for the character."
    )


def _find_closing_bracket(text: str, opening: int, where: str, start: int) -> int:
    """Return the position of the bracket that closes the one at a position."""
    position = opening + 1
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] == _CLOSING[text[opening]]:
            return position
        if text[position] in "([{)]}":
            raise SuiteError(
                f"{where}, column {start + position + 1}: {text[position]!r} inside {text[opening]!r}. "
                f"Brackets cannot be nested; write \\{text[position]} for the character."
            )
        position += 1
    raise SuiteError(
        f"{where}, column {start + opening + 1}: {text[opening]!r} is not closed. "
        f"Write \\{text[opening]} for the character."
    )


def _parse_choices(kind: str, inside: str, is_obligatory: bool, where: str) -> tuple[Alternative, ...]:
    if not inside.strip():
        raise SuiteError(f"{where}: the brackets are empty")
    parts = _split_unescaped(inside, "/")
    if kind == "(":
        if len(parts) > 1:
            raise SuiteError(f"{where}: write alternatives in [ ], and optional words in ( ): [{inside}]")
        mark, words = _split_mark(inside.lstrip(), where)
        # A space inside the bracket, as in "butter( the)", is part of the optional text.
        blank = inside[: len(inside) - len(inside.lstrip())]
        return (Alternative("", "*" if is_obligatory else ""), Alternative(blank + _unescape_plain(words, where), mark))
    # Braces may use commas, as in {boil, fry}; in square brackets commas belong to the words.
    separator = "/" if kind == "[" or len(parts) > 1 else ","
    parts = parts if separator == "/" else _split_unescaped(inside, ",")
    if len(parts) < 2:
        raise SuiteError(
            f"{where}: only one alternative in {kind}{inside}{_CLOSING[kind]}. Separate alternatives by "
            f"{separator!r}, or write ( ) around optional words."
        )
    marked_parts = [_split_mark(part.strip(), where) for part in parts]
    return tuple(Alternative(_unescape_plain(words, where).strip(), mark) for mark, words in marked_parts)


def _split_unescaped(text: str, separator: str) -> list[str]:
    """Return the parts of a text between separators that are not escaped by a backslash."""
    parts = [""]
    for piece in re.findall(r"\\.|.", text):
        if piece == separator:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _unescape_plain(text: str, where: str) -> str:
    # A star after an even number of backslashes is not escaped: the backslashes escape each other.
    if re.search(r"(?<!\\)(?:\\\\)*\*", text):
        raise _stray_star_error(where)
    return re.sub(r"\\(.)", r"\1", text)


def _fill_choices(pieces: list[str | tuple[Alternative, ...]], chosen: list[Alternative]) -> str:
    """Return the sentence with the given choices, with single spaces and none before punctuation after a bracket."""
    text = ""
    picks = iter(chosen)
    for piece in pieces:
        part = next(picks).text if isinstance(piece, tuple) else piece
        # Leaving out the last optional word must not leave a space before the full stop.
        if part.lstrip()[:1] and part.lstrip()[0] in _PUNCTUATION and len(pieces) > 1 and text:
            text, part = text.rstrip(), part.lstrip()
        text += part
    text = " ".join(text.split())
    # "(The) cats sleep." without its first word is "Cats sleep."
    opening = next((piece for piece in pieces if piece), "")
    is_omitted = isinstance(opening, tuple) and opening[0].text == "" and not chosen[0].text
    if is_omitted and opening[1].text.lstrip()[:1].isupper():  # type: ignore[union-attr]
        text = text[:1].upper() + text[1:]
    return text


def write_notation(suite: Suite) -> str:
    """Return a suite in linguists' notation: its contrasts, and then its other sentences.

    A sentence outside all contrasts needs a label, since the notation has no way to leave it open.
    """
    texts = suite.by_id
    rows = [_format_pair(texts[contrast.better].text, texts[contrast.worse].text) for contrast in suite.contrasts]
    paired = {name for contrast in suite.contrasts for name in (contrast.better, contrast.worse)}
    rows += [_format_sentence(sentence) for sentence in suite.sentences if sentence.id not in paired]
    return "".join(f"{row}\n" for row in rows)


def _format_pair(better: str, worse: str) -> str:
    """Return two sentences as one example, with brackets around the difference, or around both as a whole."""
    expected = {(" ".join(better.split()), ""), (" ".join(worse.split()), "*")}
    row = _bracket_difference(better.split(), worse.split())
    # Spacing around punctuation and capitals at a bracket's edge can be lost, so the result is parsed again to see.
    if _read_back(row) != expected:
        row = f"[{_escape_notation(better)}/*{_escape_notation(worse)}]"
    return row


def _bracket_difference(better_words: list[str], worse_words: list[str]) -> str:
    first = 0
    while first < min(len(better_words), len(worse_words)) and better_words[first] == worse_words[first]:
        first += 1
    last = 0
    while last < min(len(better_words), len(worse_words)) - first and better_words[-1 - last] == worse_words[-1 - last]:
        last += 1
    # The same words in both: their last one is put into the brackets, which cannot be empty.
    if first == len(better_words) == len(worse_words):
        first -= 1
    parts = (
        better_words[:first],
        better_words[first : len(better_words) - last],
        worse_words[first : len(worse_words) - last],
        better_words[len(better_words) - last :],
    )
    before, good, bad, after = (_escape_notation(" ".join(part)) for part in parts)
    middle = f"[{good}/*{bad}]" if good and bad else f"(*{bad})" if bad else f"*({good})"
    return " ".join(filter(None, (before, middle, after)))


def _format_sentence(sentence: Sentence) -> str:
    if sentence.label is None:
        raise SuiteError(
            f"sentence {sentence.id!r} has no label, which linguists' notation cannot express; write .jsonl"
        )
    mark = sentence.tags.get("mark", "").strip()
    mark = "" if sentence.label else mark if COLA_MARKS.get(mark) == 0 else "*"
    row = mark + _escape_notation(sentence.text)
    expected = {(" ".join(sentence.text.split()), mark)}
    if _read_back(row) == expected:
        return row
    # A sentence that starts with a numeral would lose it as the number of an example; a backslash prevents that.
    return f"{mark}\\{_escape_notation(sentence.text)}" if _escape_notation(sentence.text)[0] != "\\" else row


def _read_back(row: str) -> set[tuple[str, str]]:
    """Return the sentences and marks that result from parsing a line; none if it would be skipped or get tags."""
    if _TRANSLATION.match(row) or sum(bool(_GLOSS.search(word)) for word in row.split()) > 1:
        return set()
    body, _, tags = _parse_line(row, "")
    if tags or not body:
        return set()
    try:
        return {(variant.text, variant.mark) for variant in expand_example(body)}
    except SuiteError:
        return set()


def _escape_notation(text: str) -> str:
    escaped = re.sub(r"([\\()\[\]{}/*])", r"\\\1", text)
    return re.sub(r"\A(?=[?#])", r"\\", escaped)
