"""Linguists' notation: a plain text file with one example per line, marks for judgements, and brackets.

    (12) a. The little boy is [speaking/*speak] to a policeman. (present progressive)
    Betsy buttered (*at) the toast.
    ??Who did you wonder whether left?

A mark before a sentence is its judgement: ``*``, ``*?``, ``?*``, ``??``, ``?``, ``#``, ``%``, ``(?)``, ``✓``, ``OK``;
so is a word before a tab (``good``, ``ungrammatical``). Within a sentence, ``(at)`` is optional, ``(*at)`` must be left
out, ``*(at)`` is obligatory; ``[has/*have]`` and ``{boil, fry}`` are alternatives; a labelled bracket,
``[NP the dog]``, is a constituent, whose bracket and label are left out. Every combination of choices gives a sentence,
which is as bad as the worst mark in it (Warstadt, Singh and Bowman 2019, section 3). Two sentences that differ in one
choice, one acceptable and one not, are a contrast. A backslash escapes a bracket, slash or star; a mark in the middle
of a sentence is an error.

Numbers and letters before an example become its tag ``example``; text in brackets after the end of a
sentence becomes its tag ``phenomenon``. An example may go on in the next line, and a line may hold several (``a.``,
``b.``). Glosses, translations, comments (``%%``) and sentences whose mark has no label are skipped, and logged.

A file without any mark or bracket may as well be a text: it is read only if the caller says what it is.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from acceptability.errors import SuiteError, shorten
from acceptability.suites.brackets import (
    COLA_MARKS,
    CONSTITUENT_PATTERN,
    MARK_PATTERN,
    PLAIN_TEXT,
    Variant,
    begins_with_mark,
    escape_notation,
    expand_example,
    split_mark,
)
from acceptability.text.io import read_content, read_lines
from acceptability.types import Contrast, Sentence, Suite, make_contrast

_log = logging.getLogger(__name__)


# Of all expanded sentences of a file together: each line may be within its limits, and the file still fill the memory.
_MAX_CHARACTERS = 50_000_000


def read_notation(path: Path, *, marks: Mapping[str, int | None] | None = None) -> Suite:
    """Return the suite in a file of examples.

    Args:
        marks: The labels of marks where they differ from CoLA's: ``{"?": 1}``; None skips the sentences. With
            ``PLAIN_TEXT`` every line is a sentence without a label. Without any, the file needs marks or brackets.
    """
    where = str(path)
    lines = [_Line(number, line) for number, line in read_lines(read_content(path), where) if line.strip()]
    if marks == PLAIN_TEXT:
        return _read_plain(path, lines)
    if marks is None and lines and not _is_notation(lines):
        raise SuiteError(
            f"{where} has neither judgement marks nor alternatives in brackets: is it a list of examples, or a text? "
            "--marks none (marks='none') reads a sentence a line, without labels; --marks '=1' (marks='=1') reads "
            "examples that are all acceptable"
        )
    labels = {**COLA_MARKS, **(marks or {})}
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    example = ""
    expanded_characters = 0
    for line in _list_examples(lines, where):
        body, example, tags = _parse_line(line.text, example)
        place = f"{where}, line {line.number}"
        if tags.get("phenomenon", "").lower() in _JUDGEMENT_WORDS:
            raise SuiteError(
                f"{place}: the judgement ({tags['phenomenon']}) stands after the sentence; write it before"
            )
        if not body:
            _log.warning("%s: skipped, a number without an example", place)
            continue
        variants = expand_example(*_read_judgement(body, line.text, place))
        expanded_characters += sum(len(variant.text) for variant in variants)
        if expanded_characters > _MAX_CHARACTERS:
            raise SuiteError(
                f"{place}: the examples so far expand to more than {_MAX_CHARACTERS:,} characters. "
                "Use fewer brackets per line, or several files."
            )
        labelled = _label_variants(variants, line.name, tags, labels, place)
        sentences += labelled.values()
        contrasts += _find_contrasts(labelled)
    if not sentences:
        raise SuiteError(f"{where} has no examples")
    # The variants of one example share its words.
    return Suite(path.stem, tuple(sentences), tuple(contrasts), unit="item")


@dataclass(frozen=True)
class _Line:
    """A line of a file, or one of several examples in it.

    Args:
        number: The number of the line, or of the first of several that hold one example.
        part: The letter of an example that shares its line with others.
    """

    number: int
    text: str
    part: str = ""

    @property
    def name(self) -> str:
        return f"{self.number}{self.part}"


def _read_plain(path: Path, lines: Sequence[_Line]) -> Suite:
    """Return the suite of a file with a sentence a line, without labels."""
    for line in lines:
        if begins_with_mark(line.text):
            raise SuiteError(
                f"{path}, line {line.number}: {shorten(line.text.strip())!r} begins with a mark, and the file was said "
                "to have none. Remove it, or read the marks as labels: leave out --marks none"
            )
    if not lines:
        raise SuiteError(f"{path} has no sentences")
    return Suite(path.stem, tuple(Sentence(line.name, line.text.strip()) for line in lines))


# What no text has by chance: a mark attached to a word at the beginning or in a bracket, an obligatory or a labelled
# bracket, or alternatives one of which has a mark.
_NOTATION = re.compile(
    rf"\A(?:[*?#%＊∗⁎？＃％]+(?=[^\W\d_])|[✓✔√]|\([*?#%]+\))|(?<=[/(\[{{,])[*?#%]+\w|(?<=\s)\*+\w|\*\("
    rf"|{CONSTITUENT_PATTERN}"
)
# No bracket inside: a line of many opening ones would otherwise be looked through from each of them.
_BRACKET = re.compile(r"[\[{]([^\[\]{}]*)[\]}]")

# A list in a text has stars before all of its lines, where examples have them before some.
_WEAK_MARK = re.compile(r"[*?%]+\s")


def _is_notation(lines: Sequence[_Line]) -> bool:
    bodies = [_parse_line(line.text, "")[0] for line in lines]
    weak = [bool(_WEAK_MARK.match(body)) for body in bodies]
    return any(map(_has_notation, bodies)) or (any(weak) and not all(weak))


def _has_notation(body: str) -> bool:
    alternatives = (re.split("[/,]", inside) for inside in _BRACKET.findall(body))
    return bool(
        _NOTATION.search(body)
        or _find_judgement_word(body)
        or any(
            len(parts) > 1 and any(re.match(rf"\s*{MARK_PATTERN}", part) for part in parts) for parts in alternatives
        )
    )


# Words that tables of linguists have for judgements, and the marks that they mean.
_JUDGEMENT_WORDS = {
    **dict.fromkeys(("good", "acceptable", "grammatical", "true", "ok"), "OK"),
    **dict.fromkeys(("bad", "unacceptable", "ungrammatical", "false"), "*"),
}


def _find_judgement_word(body: str) -> str:
    """Return the mark that the word before a tab means; empty if there is none."""
    word, tab, _ = body.partition("\t")
    return _JUDGEMENT_WORDS.get(word.strip().lower(), "") if tab else ""


def _read_judgement(body: str, line: str, place: str) -> tuple[str, str, int]:
    """Return an example with its judgement before a tab as a mark, the place, and the column of the example."""
    # The body may contain a mark from before the number, so only the rest of it can be located in the line.
    unmarked = re.sub(rf"\A{MARK_PATTERN}\s*", "", body)
    start = max(line.find(unmarked) - (len(body) - len(unmarked)), 0)
    if word_mark := _find_judgement_word(body):
        sentence = body.partition("\t")[2].strip()
        if split_mark(sentence, place)[0]:
            raise SuiteError(f"{place}: two judgements, one before the tab and one before the sentence")
        body, unmarked, start = f"{word_mark} {sentence}", sentence, line.find(sentence) - len(word_mark) - 1
    if "\t" in unmarked:
        raise SuiteError(
            f"{place}: a tab within {shorten(unmarked)!r}. Before a tab stands a mark or one of the words "
            f"{', '.join(_JUDGEMENT_WORDS)}; a table has a header, and a name that ends in .tsv"
        )
    return body, place, start


# Numbers as linguists write them: "(12)", "(12')", "(iv)", "12a.", "a.", "(b)", after an optional bullet, with a mark
# before or after the number. A bare "12" is a number only with a full stop or bracket and a space after it, since
# sentences may start with numerals.
_NUMBER = re.compile(
    rf"\s*(?:[-•]\s+)?(?P<first>{MARK_PATTERN}\s*)?"
    r"(?P<number>\(\d+'*[a-z]?\)|\([ivxl]+\)|\d+[a-z]?[.)](?=\s))?\s*"
    rf"(?P<second>{MARK_PATTERN}\s*)?(?P<letter>(?:[a-z]|[ivx]+)[.)](?=\s|[*?#%✓✔√]|\Z)|\([a-z]\))?\s*"
)

_BULLET = re.compile(r"\s*[-•]\s+")

_TRAILING_NOTE = re.compile(r"(?<=[.?!])\s+\((?P<phenomenon>[^()*?#%✓✔√][^()]*)\)\s*\Z")


def _parse_line(line: str, example: str) -> tuple[str, str, dict[str, str]]:
    """Return the body of an example without number and note, the number, and the tags.

    Args:
        example: The number of the previous example, which a line with a letter alone ("b.") continues.
    """
    match = _NUMBER.match(line)
    assert match is not None
    tags: dict[str, str] = {}
    if match["number"] or match["letter"]:
        # A mark may stand before the number: *(12) a. The dog bark. The space keeps OK a word of its own.
        mark = (match["first"] or "").strip() + (match["second"] or "").strip()
        body = f"{mark} {line[match.end() :]}" if mark else line[match.end() :]
        parsed_number = re.fullmatch(r"\W*(\d+|[ivxl]+)?'*([a-z]?)\W*", match["number"] or "")
        number = (parsed_number[1] if parsed_number else None) or example
        letter = (match["letter"] or "").strip("().") or (parsed_number[2] if parsed_number else "")
        tags["example"] = number + letter
    else:
        bullet = _BULLET.match(line)
        body, number = line[bullet.end() :] if bullet else line.lstrip(), example
    body = body.strip()
    if after := _TRAILING_NOTE.search(body):
        tags["phenomenon"] = after["phenomenon"]
        body = body[: after.start()]
    return body, number, tags


def _list_examples(lines: Sequence[_Line], where: str) -> Iterator[_Line]:
    """Yield the examples of a file, in one line each, without what is none; what is skipped or joined is logged."""
    kept: list[_Line] = []
    for index, line in enumerate(lines):
        following = lines[index + 1].text if index + 1 < len(lines) else ""
        if kind := _find_skipped(line.text, kept[-1].text if kept else "", following):
            _log.warning("%s, line %d: skipped, %s: %s", where, line.number, kind, shorten(line.text.strip()))
        elif kept and _continues(kept[-1].text, line.text):
            _log.warning("%s, line %d: read as the rest of line %d", where, line.number, kept[-1].number)
            kept[-1] = replace(kept[-1], text=f"{kept[-1].text.rstrip()} {line.text.strip()}")
        else:
            kept.append(line)
    for line in kept:
        yield from _split_letters(line)


_CLOSING_QUOTE = r"”’\"')\]}」』"
_SENTENCE_END = rf"[.?!…。？！][{_CLOSING_QUOTE}]*"


def _continues(example: str, line: str) -> bool:
    """Tell whether a line is the rest of a numbered example whose sentence has not ended."""
    match, before = _NUMBER.match(line), _NUMBER.match(example)
    assert match is not None
    assert before is not None
    has_number = any(match[name] for name in ("first", "number", "second", "letter")) or _BULLET.match(line)
    is_open = not re.search(rf"{_SENTENCE_END}(?:\s+\([^()]*\))?\s*\Z", example) and example[before.end() :].strip()
    first = line.lstrip()[0]
    return bool(
        (before["number"] or before["letter"]) and is_open and not has_number and (line[0].isspace() or first.islower())
    )


def _split_letters(line: _Line) -> Iterator[_Line]:
    """Yield the examples of a line that holds several: (12) a. The dog barks. b. *The dog bark."""
    match = _NUMBER.match(line.text)
    assert match is not None
    if (match["letter"] or "").strip("().") != "a":
        yield line
        return
    # Runs of spaces are shortened, since each of them would be tried as the beginning of a wide space.
    opening = len(re.sub(r"\s{2,}", "  ", line.text[: match.end()]))
    rest, letter = re.sub(r"\s{2,}", "  ", line.text), "a"
    while letter < "z":
        # A letter is one of the enumeration only in order, and after the end of a sentence or a wide space.
        following = chr(ord(letter) + 1)
        pattern = rf"(?:(?<=[.?!…。？！{_CLOSING_QUOTE}])|(?<=\s))\s+(?=\(?{following}[.)]\s*\S)"
        found = re.compile(pattern).search(rest, opening)
        if not found:
            break
        yield replace(line, text=rest[: found.start()].rstrip(), part=letter)
        rest, letter, opening = rest[found.end() :], following, 0
    yield replace(line, text=rest, part=letter if letter > "a" else "")


_COMMENT = re.compile(r"\s*%%")

# Within quotation marks an apostrophe is followed by a letter, which a closing one is not.
_TRANSLATION = re.compile(
    r"\s*(?:(?:(?:lit|int)\.?:?|(?:literally|intended(?: (?:meaning|reading))?|meaning|reading|translation):)\s*)?"
    r"(?:‘(?:[^‘’]|’(?=\w))*’|“[^“”]*”|'(?:[^']|'(?=\w))*'|\"[^\"]*\")\.?(?:\s*\([^()]*\))?\s*\Z",
    re.IGNORECASE,
)

# The glossing abbreviations of the Leipzig Glossing Rules after a hyphen, equals sign or full stop ("dog-PL.NOM"). A
# single such word may be an ordinary hyphenated one, so a line needs two of them to count as a gloss.
_ABBREVIATIONS = (
    r"(?:[123]?(?:SG|PL|DU)|[123]|NOM|ACC|DAT|GEN|ABS|ERG|LOC|INS|ABL|TOP|PST|PAST|PRS|PRES|FUT|PFV|IPFV|PROG"
    r"|NEG|INF|PASS|CAUS|COP|DEF|INDF|COMP|REL|SUBJ|OBJ|SBJV|IMP|COND|HON|DECL|PTCP|AUX|POSS|REFL)"
)
_GLOSS = re.compile(rf"\S[-=.]{_ABBREVIATIONS}(?![a-z])", re.IGNORECASE)

# An abbreviation as a word of its own, in capitals: "NEG", "3SG". The numbers alone are none.
_GLOSS_WORD = re.compile(rf"(?![123]\b){_ABBREVIATIONS}(?:[-=.]\S+)?")

# Small capitals, of Unicode or of LaTeX, which no sentence has.
_SMALL_CAPITALS = re.compile(r"[ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ]{2}|\\textsc\{")


def _find_skipped(line: str, before: str, following: str) -> str:
    """Return what a line is that is no example, or an empty text.

    Args:
        before, following: The example before it and the line after it.
    """
    if _COMMENT.match(line):
        return "a comment"
    if _TRANSLATION.match(line):
        return "a translation"
    is_between = _TRANSLATION.match(following) and _is_aligned(before, line)
    return "a gloss" if _is_gloss(line) or is_between else ""


def _is_gloss(line: str) -> bool:
    # A gloss has neither stars nor alternatives, and no backslash before its first word.
    if _SMALL_CAPITALS.search(line) and not (
        "*" in line or ("[" in line and "/" in line) or re.match(r"\s*\\(?!textsc)", line)
    ):
        return True
    glossed = sum(bool(_GLOSS.search(word) or _GLOSS_WORD.fullmatch(word)) for word in line.split())
    # Brackets and stars do not occur in glosses, but they do in examples.
    return glossed > 1 and not re.search(r"[\[\]{}()*\\]", line)


def _is_aligned(example: str, line: str) -> bool:
    """Tell whether a line without a number has as many words as the example before it, as a gloss has."""
    match = _NUMBER.match(line)
    assert match is not None
    has_number = any(match[name] for name in ("first", "number", "second", "letter"))
    words = _parse_line(example, "")[0].split() if example else []
    return not has_number and len(words) == len(line.split()) > 1


def _label_variants(
    variants: list[Variant], item: str, tags: Mapping[str, str], labels: Mapping[str, int | None], place: str
) -> dict[tuple[int, ...], Sentence]:
    """Return the labelled sentences of an example by their choices, and log those whose mark has no label."""
    labelled = {}
    for variant_number, variant in enumerate(variants, start=1):
        label = labels[variant.mark]
        if label is None:
            _log.warning("%s: left out, marked %s: %s", place, variant.mark, variant.text)
            continue
        name = item if len(variants) == 1 else f"{item}/{variant_number}"
        own = {"item": item, **tags, "mark": variant.mark}
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
    # An example is one line, whatever the texts are.
    better, worse = " ".join(better.split()), " ".join(worse.split())
    expected = {(better, ""), (worse, "*")}
    row = _bracket_difference(better.split(), worse.split())
    # Spacing around punctuation and capitals at a bracket's edge can be lost, so the result is parsed again to see.
    if _read_back(row) != expected:
        row = f"[{escape_notation(better)}/*{escape_notation(worse)}]"
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
    before, good, bad, after = (escape_notation(" ".join(part)) for part in parts)
    middle = f"[{good}/*{bad}]" if good and bad else f"(*{bad})" if bad else f"*({good})"
    return " ".join(filter(None, (before, middle, after)))


def _format_sentence(sentence: Sentence) -> str:
    if sentence.label is None:
        raise SuiteError(
            f"sentence {sentence.id!r} has no label, which linguists' notation cannot express; write .jsonl"
        )
    mark = sentence.tags.get("mark", "").strip()
    mark = "" if sentence.label else mark if COLA_MARKS.get(mark) == 0 else "*"
    row = mark + escape_notation(sentence.text)
    expected = {(" ".join(sentence.text.split()), mark)}
    if _read_back(row) == expected:
        return row
    # A sentence that starts with a numeral would lose it as the number of an example; a backslash prevents that.
    return f"{mark}\\{escape_notation(sentence.text)}" if escape_notation(sentence.text)[0] != "\\" else row


def _read_back(row: str) -> set[tuple[str, str]]:
    """Return the sentences and marks that result from parsing a line; none if it would be skipped or get tags."""
    if _find_skipped(row, "", ""):
        return set()
    body, _, tags = _parse_line(row, "")
    if tags or not body or "\t" in body:
        return set()
    try:
        return {(variant.text, variant.mark) for variant in expand_example(body)}
    except SuiteError:
        return set()
