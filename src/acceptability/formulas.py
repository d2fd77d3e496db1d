"""Predictions about surprisal, as SyntaxGym writes them: ``[(6;%plaus%) + (7;%plaus%)] < (6;%implaus%)``.

    formula     any of, joined by |        [..] | [..]
    any of      claims, joined by &        [..] & [..]
    claim       sum < sum, sum > sum, sum = sum, or a formula in brackets
    sum         terms, joined by + and -, read from the left
    term        a region, a number, or a sum in brackets
    region      (3;%condition%), the surprisal of region 3 in a condition; (*;%condition%), of the whole sentence

Brackets are [ ] or ( ). Numbers are in bits, as in SyntaxGym; surprisals are handed in as natural logs. A
formula is read as data: nothing in it is ever executed, and one that is too long or too deep is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from acceptability.errors import SpellingError, shorten

_NATS_A_BIT = math.log(2)
_MOST_CHARACTERS = 10_000
_MOST_BRACKETS = 40
_CLOSING = {"[": "]", "(": ")"}
_TOKEN = re.compile(
    r"\s*(?:(?P<region>\(\s*(?P<number>[0-9]{1,6}|\*)\s*;\s*%(?P<condition>[\w.-]+)%\s*\))"
    r"|(?P<figure>[0-9]{1,12}(?:\.[0-9]{1,12})?(?![\w.]))"
    r"|(?P<sign>[-+<>=&|()\[\]])"
    r"|(?P<end>\Z))"
)


@dataclass(frozen=True, slots=True)
class Region:
    """The surprisal of a region, by its number, in a condition; ``*`` is the whole sentence."""

    number: str
    condition: str

    def __str__(self) -> str:
        return f"({self.number};%{self.condition}%)"


@dataclass(frozen=True, slots=True)
class Number:
    """A number of bits."""

    value: float

    def __str__(self) -> str:
        # Never 1e-07, which the grammar does not have.
        return f"{self.value:.12f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Sum:
    """Terms with the signs before them; the first one's is ``+``."""

    terms: tuple[tuple[str, Quantity], ...]

    def __str__(self) -> str:
        shown = "".join(f" {sign} {_inside(each)}" for sign, each in self.terms)
        return shown.removeprefix(" + ")


@dataclass(frozen=True, slots=True)
class Comparison:
    """That one quantity is below (``<``), above (``>``) or about the same as (``=``) another."""

    left: Quantity
    sign: str
    right: Quantity

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class Joined:
    """Claims of which all must hold (``&``), or one (``|``)."""

    sign: str
    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return f" {self.sign} ".join(f"[{each}]" for each in self.parts)


Quantity: TypeAlias = Region | Number | Sum
Formula: TypeAlias = Comparison | Joined
Given: TypeAlias = Callable[[Region], float]
"""Tells the surprisal of a region, minus its natural-log probability."""


def parse(text: str) -> Formula:
    """Return the formula that a text spells; its ``str`` reads back as the same formula.

    >>> str(parse("[(6;%a%)+(7;%a%)]<(6;%b%) & [(6;%a%)>0]"))
    '[(6;%a%) + (7;%a%) < (6;%b%)] & [(6;%a%) > 0]'
    """
    if len(text) > _MOST_CHARACTERS:
        raise SpellingError(f"a prediction of {len(text):,} characters is too long; {_MOST_CHARACTERS:,} are the most")
    reader = _Reader(text)
    found = reader.either()
    if reader.kind != "end":
        raise reader.error("an operator, or the end")
    return reader.claim(found, 0)


def regions(formula: Formula | Quantity) -> Iterator[Region]:
    """Yield every region that a formula speaks of, in its order."""
    if isinstance(formula, Region):
        yield formula
    elif isinstance(formula, Sum):
        for _, term in formula.terms:
            yield from regions(term)
    elif isinstance(formula, Comparison):
        yield from regions(formula.left)
        yield from regions(formula.right)
    elif isinstance(formula, Joined):
        for part in formula.parts:
            yield from regions(part)


def holds(formula: Formula, given: Given, *, tolerance: float = 0.001) -> bool:
    """Tell whether a formula is true of surprisals.

    Args:
        tolerance: By how many bits two quantities that are "the same" may differ.

    >>> nats = {"a": 3.0, "b": 5.0}
    >>> holds(parse("(1;%a%) < (1;%b%)"), lambda region: nats[region.condition])
    True
    """
    if isinstance(formula, Joined):
        # All parts are asked, so that a missing surprisal is noticed wherever it is.
        held = [holds(each, given, tolerance=tolerance) for each in formula.parts]
        return all(held) if formula.sign == "&" else any(held)
    left, right = amount(formula.left, given), amount(formula.right, given)
    if formula.sign == "=":
        return abs(left - right) <= tolerance * _NATS_A_BIT
    return left < right if formula.sign == "<" else left > right


def amount(quantity: Quantity, given: Given) -> float:
    """Return what a quantity comes to, as a natural log: sums of stored numbers are exact, and ties remain ties."""
    if isinstance(quantity, Region):
        return given(quantity)
    if isinstance(quantity, Number):
        return quantity.value * _NATS_A_BIT
    return math.fsum(amount(each, given) * (-1 if sign == "-" else 1) for sign, each in quantity.terms)


def _inside(quantity: Quantity) -> str:
    return f"[{quantity}]" if isinstance(quantity, Sum) else str(quantity)


class _Reader:
    """Reads a formula from left to right, one token ahead. Brackets alone nest, and their depth is limited."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = self.place = self.next = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> None:
        """Go to the next token."""
        found = _TOKEN.match(self.text, self.next)
        if found is None:
            self.place = self.next + len(self.text[self.next :]) - len(self.text[self.next :].lstrip())
            raise self.error("a region such as (3;%condition%), a number, a bracket, or one of + - < > = & |")
        self.found, self.kind = found, str(found.lastgroup)
        self.place, self.next, self.token = found.start(self.kind), found.end(), found[self.kind]

    def error(self, expected: str, place: int | None = None) -> SpellingError:
        """Return the error that something else was expected at a place, by default here."""
        place = self.place if place is None else place
        shown = repr(shorten(self.text[place:], 20)) if place < len(self.text) else "its end"
        return SpellingError(
            f"cannot read the prediction {shorten(self.text, 80)!r}: at character {place + 1} there is {shown}; "
            f"expected {expected}."
        )

    def either(self) -> Formula | Quantity:
        return self.joined("|", self.both)

    def both(self) -> Formula | Quantity:
        return self.joined("&", self.compared)

    def joined(self, sign: str, part: Callable[[], Formula | Quantity]) -> Formula | Quantity:
        start = self.place
        parts = [part()]
        while self.token == sign:
            self.claim(parts[-1], start)
            self.advance()
            start = self.place
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        return Joined(sign, (*(self.claim(each, start) for each in parts),))

    def compared(self) -> Formula | Quantity:
        start = self.place
        left = self.added()
        if self.kind != "sign" or self.token not in "<>=":
            return left
        sign = self.token
        left = self.quantity(left, start)
        self.advance()
        start = self.place
        right = self.quantity(self.added(), start)
        if self.kind == "sign" and self.token in "<>=":
            raise self.error("& or | between two comparisons")
        return Comparison(left, sign, right)

    def added(self) -> Formula | Quantity:
        start = self.place
        first = self.term()
        terms = [("+", first)]
        while self.kind == "sign" and self.token in "+-":
            sign = self.token
            self.quantity(terms[-1][1], start)
            self.advance()
            start = self.place
            terms.append((sign, self.term()))
        if len(terms) == 1:
            return first
        return Sum(tuple((sign, self.quantity(each, start)) for sign, each in terms))

    def term(self) -> Formula | Quantity:
        kind, token, found = self.kind, self.token, self.found
        if kind == "region":
            self.advance()
            number = found["number"]
            return Region(number if number == "*" else str(int(number)), found["condition"])
        if kind == "figure":
            self.advance()
            return Number(float(token))
        if token == "-":
            self.advance()
            if self.kind == "figure":
                negative = -float(self.token)
                self.advance()
                return Number(negative)
            raise self.error("a number after -")
        if token not in _CLOSING:
            raise self.error("a region such as (3;%condition%), a number, or an opening bracket")
        return self.bracketed(_CLOSING[token])

    def bracketed(self, closing: str) -> Formula | Quantity:
        if self.depth == _MOST_BRACKETS:
            raise self.error(f"at most {_MOST_BRACKETS} brackets inside each other")
        self.depth += 1
        self.advance()
        inside = self.either()
        if self.token != closing:
            raise self.error(f"{closing!r}")
        self.depth -= 1
        self.advance()
        return inside

    def claim(self, found: Formula | Quantity, start: int) -> Formula:
        if isinstance(found, Comparison | Joined):
            return found
        raise self.error("a comparison: a quantity alone is neither true nor false", start)

    def quantity(self, found: Formula | Quantity, start: int) -> Quantity:
        if isinstance(found, Comparison | Joined):
            raise self.error("a quantity: a comparison cannot be added or compared", start)
        return found
