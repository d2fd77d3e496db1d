"""One example in linguists' notation: its judgement mark, alternatives, optional words and constituents.

A mark stands before a sentence, or before an alternative in brackets. Every combination of choices gives a sentence,
which is as bad as the worst mark in it (Warstadt, Singh and Bowman 2019, section 3).

What looks like a mark is never a part of a sentence: a mark in any other place is an error, which says how to write the
character itself.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

from acceptability.errors import SuiteError, shorten

COLA_MARKS: Mapping[str, int | None] = {
    "": 1,
    "OK": 1,
    "✓": 1,
    "*": 0,
    "*?": 0,
    "?*": 0,
    "??": 0,
    "?": None,
    "#": None,
    "%": None,
    "(*)": None,
    "(?)": None,
}
"""The label of each mark by default; None skips the sentence. CoLA excludes sentences marked ? and #.

``%`` marks what some speakers accept, and a mark in brackets what is marginal.
"""

PLAIN_TEXT: Mapping[str, int | None] = {"none": None}
"""What stands for the marks of a file that has none: a sentence a line, without labels."""


def read_marks(text: str) -> dict[str, int | None]:
    """Return the labels of marks in a text such as ``?=1,#=drop``; ``none`` is a file without marks.

    >>> read_marks("?=1,#=drop")
    {'?': 1, '#': None}
    """
    if text.strip() == "none":
        return dict(PLAIN_TEXT)
    labels: dict[str, int | None] = {"0": 0, "1": 1, "drop": None}
    label_of = {}
    for part in text.split(","):
        mark, equals, label = part.strip().rpartition("=")
        if not equals or mark not in COLA_MARKS or label not in labels:
            known = " ".join(filter(None, COLA_MARKS))
            raise SuiteError(
                f"cannot read the marks {text!r}: write MARK=0, MARK=1 or MARK=drop, or none for a sentence a line; "
                f"the marks are {known}"
            )
        label_of[mark] = labels[label]
    return label_of


# The order decides which mark an expanded sentence gets if its choices have several.
_WORST_FIRST = ("*", "*?", "?*", "??", "(*)", "?", "(?)", "#", "%", "OK", "✓", "")

# "OK" is a word as well: a mark only where a space follows, and not before a comma ("OK, let's go").
MARK_PATTERN = r"(?:\([*?#%]+\)|[*?#%＊∗⁎？＃％]+|[✓✔√]|(?:OK|ok)(?=\s))"
_MARK = re.compile(MARK_PATTERN)

# Stars and question marks as other keyboards and typesetters write them, and other ticks.
_SAME_MARK = str.maketrans("＊∗⁎？＃％✔√", "***?#%✓✓")

# A mark within a sentence, or what stands for a gap or an index (which book_i, __), would be scored as a word.
_STRAY_MARK = re.compile(r"[✓✔√＊∗⁎]|(?<!\S)[?#%](?=[^\W\d_])")
_GAP_OR_INDEX = re.compile(r"__+|(?<!\S)_(?!\S)|(?<=[^\W_])_(?:[a-z]|\d)(?!\w)")

# Labels of constituents: NP, AdvP, vP, N', V-bar is not, S, CP1, DP_i. Neither A nor I, which are words.
CONSTITUENT_PATTERN = (
    r"\[(?:[A-Za-z&]{0,5}P|[SNVDCTP]|Adj|Adv|Det|Aux|Infl|Comp|RC|SC)['’′]{0,2}(?:_?[0-9ijkmn]{1,2})?(?=[\s\[])\s*"
)
_CONSTITUENT = re.compile(CONSTITUENT_PATTERN)

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
    mark, rest = split_mark(text, f"{where}, column {start + 1}")
    pieces = _Pieces(rest, where, start + len(text) - len(rest)).parse()
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


def split_mark(text: str, where: str) -> tuple[str, str]:
    """Return the mark at the beginning of a text, and the text without it.

    >>> split_mark("?* The dog bark.", "line 1"), split_mark("OK The dog barks.", "line 1")
    (('?*', 'The dog bark.'), ('OK', 'The dog barks.'))
    """
    match = _MARK.match(text)
    # A star directly before a bracket belongs to the bracket, whose content is obligatory.
    if not match or text.startswith("*("):
        return "", text
    mark = match[0].translate(_SAME_MARK).replace("ok", "OK")
    if mark not in _WORST_FIRST:
        known = " ".join(filter(None, _WORST_FIRST))
        raise SuiteError(
            f"{where}: {shorten(match[0])!r} is not a mark; the marks are {known}. Write \\{match[0][0]} for the "
            "character."
        )
    return mark, text[match.end() :].lstrip()


# In a text, "# a comment", "OK then" and "(?)" are no marks.
_MARK_OF_WORD = re.compile(r"\s*(?:[*?#%]+(?=\w)|[✓✔√])")


def begins_with_mark(line: str) -> bool:
    """Tell whether a line of a text begins with what linguists put directly before a sentence.

    >>> begins_with_mark("*The dog bark."), begins_with_mark("# 1 is here.")
    (True, False)
    """
    return bool(_MARK_OF_WORD.match(line))


@dataclass
class _Pieces:
    """What an example consists of: strings of plain text, and tuples of the choices in a bracket.

    Args:
        text: The example without its mark.
        where: The line, for error messages.
        start: The column of the text in the line, for error messages.
    """

    text: str
    where: str
    start: int

    def __post_init__(self) -> None:
        self.found: list[str | tuple[Alternative, ...]] = []
        self._plain, self._is_obligatory = "", False
        self._constituents: list[int] = []

    def parse(self) -> list[str | tuple[Alternative, ...]]:
        """Return the pieces of the text."""
        position = 0
        while position < len(self.text):
            position = self._read(position)
        if self._constituents:
            raise _unclosed_error(self.text, self._constituents[-1], self.where, self.start)
        return [*self.found, self._plain]

    def _read(self, position: int) -> int:
        """Read what begins at a position, and return where the next part begins."""
        letter = self.text[position]
        if letter == "\\" and position + 1 < len(self.text):
            self._plain += self.text[position + 1]
            return position + 2
        if constituent := _CONSTITUENT.match(self.text, position):
            self._constituents.append(position)
            # "[V saw][NP her]" has a space too few.
            self._plain += " " if self.text[:position].endswith("]") else ""
            return constituent.end()
        if letter in _CLOSING:
            return self._read_bracket(letter, position)
        if letter == "]" and self._constituents:
            self._constituents.pop()
            # "[VP barks ]." has a space too many.
            if self.text[position + 1 : position + 2] in tuple(_PUNCTUATION):
                self._plain = self._plain.rstrip()
            return position + 1
        return self._read_letter(letter, position)

    def _read_bracket(self, letter: str, position: int) -> int:
        end = _find_closing_bracket(self.text, position, self.where, self.start)
        inside = self.text[position + 1 : end]
        self.found += [self._plain, _parse_choices(letter, inside, self._is_obligatory, self._place(position))]
        self._plain, self._is_obligatory = "", False
        return end + 1

    def _read_letter(self, letter: str, position: int) -> int:
        if letter in _CLOSING.values():
            raise SuiteError(f"{self._place(position)}: {letter!r} closes nothing. Write \\{letter} instead.")
        if letter == "/" and self._constituents:
            raise SuiteError(
                f"{self._place(self._constituents[-1])}: a label of a constituent and alternatives in one pair of "
                "brackets. Put the alternatives into brackets of their own: [NP [the dog/*the dogs]]"
            )
        if letter == "*":
            self._is_obligatory = self.text[position + 1 : position + 2] == "("
            if not self._is_obligatory:
                raise _stray_mark_error("*", self._place(position))
        elif _STRAY_MARK.match(self.text, position):
            raise _stray_mark_error(letter, self._place(position))
        elif gap := _GAP_OR_INDEX.match(self.text, position):
            raise _gap_error(gap[0], self._place(position))
        else:
            self._plain += letter
        return position + 1

    def _place(self, position: int) -> str:
        return f"{self.where}, column {self.start + position + 1}"


def _stray_mark_error(mark: str, where: str) -> SuiteError:
    name = "a star" if mark == "*" else repr(mark)
    return SuiteError(
        f"{where}: {name} in the middle of a sentence is no judgement. Put alternatives in brackets, [good/*bad], "
        f"or write \\{mark} for the character."
    )


def _gap_error(gap: str, where: str) -> SuiteError:
    return SuiteError(
        f"{where}: {shorten(gap)!r} looks like a gap or an index, which is no part of the sentence. Remove it, or "
        "write \\_ for the character."
    )


def _unclosed_error(text: str, opening: int, where: str, start: int) -> SuiteError:
    return SuiteError(
        f"{where}, column {start + opening + 1}: {text[opening]!r} is not closed. "
        f"Write \\{text[opening]} for the character."
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
    raise _unclosed_error(text, opening, where, start)


def _parse_choices(kind: str, inside: str, is_obligatory: bool, where: str) -> tuple[Alternative, ...]:
    if not inside.strip():
        raise SuiteError(f"{where}: the brackets are empty")
    parts = _split_unescaped(inside, "/")
    if kind == "(":
        if len(parts) > 1:
            raise SuiteError(f"{where}: write alternatives in [ ], and optional words in ( ): [{inside}]")
        if _MARK.fullmatch(inside.strip().translate(_SAME_MARK)):
            raise SuiteError(f"{where}: ({inside}) holds a mark and no words. Write the mark before the sentence.")
        mark, words = split_mark(inside.lstrip(), where)
        # A space inside the bracket, as in "butter( the)", is part of the optional text.
        blank = inside[: len(inside) - len(inside.lstrip())]
        return (Alternative("", "*" if is_obligatory else ""), Alternative(blank + _unescape_plain(words, where), mark))
    # Braces may use commas, as in {boil, fry}; in square brackets commas belong to the words.
    separator = "/" if kind == "[" or len(parts) > 1 else ","
    parts = parts if separator == "/" else _split_unescaped(inside, ",")
    if len(parts) < 2:
        raise SuiteError(
            f"{where}: only one alternative in {kind}{shorten(inside)}{_CLOSING[kind]}. Separate alternatives by "
            f"{separator!r}, write ( ) around optional words, or label a constituent: [NP the dog]."
        )
    marked_parts = [split_mark(part.strip(), where) for part in parts]
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
    # Backslashes escape each other too, so that pairs of a backslash and what follows are passed over one by one.
    position = 0
    while position < len(text):
        if text[position] == "\\":
            position += 2
            continue
        if text[position] == "*" or _STRAY_MARK.match(text, position):
            raise _stray_mark_error(text[position], where)
        if gap := _GAP_OR_INDEX.match(text, position):
            raise _gap_error(gap[0], where)
        position += 1
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


def escape_notation(text: str) -> str:
    r"""Return a text with backslashes before all that would be read as notation.

    >>> escape_notation("a*b (c) #d")
    'a\\*b \\(c\\) \\#d'
    """
    escaped = re.sub(r"([\\()\[\]{}/*✓✔√＊∗⁎_])", r"\\\1", text)
    escaped = re.sub(r"(?<!\S)(?=[?#%？＃％])", r"\\", escaped)
    return re.sub(r"\A(?=(?:OK|ok)\s)", r"\\", escaped)
