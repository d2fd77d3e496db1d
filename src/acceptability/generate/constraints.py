"""What a slot asks of its word, and what a condition asks of a sentence, in a language of a few marks.

A slot: a category and what the word must be, ``noun kind=person number=pl`` or ``verb subject=@doer.kind form!=base``.
After ``=`` stand values, several of them separated by ``|``, or ``@slot.feature``: what an earlier slot has. ``!=``
asks for the opposite. Two features agree if they share a value; a kind agrees with the kinds above it, so that
``kind=@verb.object`` takes a noun that denotes something which the verb takes as its object.

A condition, in a part or a label: ``licensor=1 scope=0``, or ``anaphor.agreement=@subject.agreement``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from acceptability.errors import SuiteError
from acceptability.generate.features import Feature, Values, features

NAME = r"[A-Za-z][A-Za-z0-9_]*"
_TERM = re.compile(rf"(?P<left>{NAME}(?:\.{NAME})?)(?P<sign>!=|=)(?P<right>\S+)")
_REFERENCE = re.compile(rf"@({NAME})\.({NAME})")


@dataclass(frozen=True)
class Reference:
    """A feature of another slot: ``@doer.number``."""

    slot: str
    feature: str


@dataclass(frozen=True)
class Term:
    """One requirement: ``feature=values``, ``feature!=values``, or the same with a reference or a factor's value.

    Args:
        slot: The slot whose feature it is, in a condition; empty for the slot's own, or for a factor.
        factor: The factor whose value is meant: ``number=$verb``.
    """

    left: str
    is_equal: bool
    values: Values = ()
    reference: Reference | None = None
    slot: str = ""
    factor: str = ""

    def __str__(self) -> str:
        left = f"{self.slot}.{self.left}" if self.slot else self.left
        right = "|".join(self.values) or f"${self.factor}"
        if self.reference:
            right = f"@{self.reference.slot}.{self.reference.feature}"
        return f"{left}{'=' if self.is_equal else '!='}{right}"


@dataclass(frozen=True)
class Spec:
    """What a slot asks for: a category, and terms."""

    category: str
    terms: tuple[Term, ...]


def read_spec(text: str) -> Spec:
    """Return what a slot asks for.

    >>> [str(each) for each in read_spec("noun kind=person number!=@other.number").terms]
    ['kind=person', 'number!=@other.number']
    """
    category, *rest = text.split() or [""]
    return Spec(features().category(category), tuple(read_term(each) for each in rest))


def read_terms(text: str) -> tuple[Term, ...]:
    """Return the terms of a condition."""
    return tuple(read_term(each) for each in text.split())


def read_term(text: str) -> Term:
    """Return one requirement.

    >>> read_term("verb.object=@noun.kind").reference
    Reference(slot='noun', feature='kind')
    """
    found = _TERM.fullmatch(text)
    if not found:
        raise SuiteError(f"cannot read {text!r}; expected feature=value, feature=value|value or feature=@slot.feature")
    slot, _, left = found["left"].rpartition(".")
    is_equal = found["sign"] == "="
    right = found["right"]
    if right.startswith("@"):
        reference = _REFERENCE.fullmatch(right)
        if not reference:
            raise SuiteError(f"cannot read {right!r}; expected @slot.feature")
        return Term(left, is_equal, reference=Reference(reference[1], reference[2]), slot=slot)
    if right.startswith("$"):
        return Term(left, is_equal, slot=slot, factor=right[1:])
    return Term(left, is_equal, values=tuple(right.split("|")), slot=slot)


def check_values(category: str, term: Term) -> Feature:
    """Return the feature that a term is about, if the category has it and it can have the values."""
    feature = features().feature(category, term.left)
    for value in term.values:
        feature.check(value, features().kinds)
    return feature


def agree(type_: str, own: Values, other: Iterable[str]) -> bool:
    """Tell whether the values of a feature agree with others.

    >>> agree("kind", ("adult",), ["person"]), agree("kinds", ("person",), ["adult"]), agree("word", ("sg",), ["pl"])
    (True, True, False)
    """
    kinds = features().kinds
    if type_ == "kind":
        return kinds.is_among(own, other)
    if type_ == "kinds":
        return kinds.is_among(other, own)
    return not set(own).isdisjoint(other)
