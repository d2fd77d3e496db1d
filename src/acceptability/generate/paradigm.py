"""What a file of paradigms says, once it has been read: frozen data, checked by ``reading``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product

from acceptability.generate.constraints import Spec, Term
from acceptability.generate.features import Values
from acceptability.generate.template import Hole, Piece
from acceptability.generate.words import Word

Condition = Mapping[str, str]


@dataclass(frozen=True)
class Slot:
    """A place for a word: what it must be, or the texts to choose from; and where the file says so."""

    name: str
    where: str
    spec: Spec | None = None
    texts: Values = ()


@dataclass(frozen=True)
class Case:
    """One text of a part, and when it stands there."""

    terms: tuple[Term, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Paradigm:
    """A template with its slots and factors: the sentences that cross the factors are one paradigm.

    Args:
        parts: Texts that depend on factors.
        acceptable: Conditions; a sentence is acceptable if one of them holds.
        pairs: The factors in which the sentences of a contrast may differ.
        count: How many paradigms are made; 0 if ``cross`` says it.
        cross: Slots, or tables of rows, all of whose words are gone through, the last one fastest.
        rows: Tables of words that several slots have together: first the slots, then their words, row by row.
        repeats: Whether the same sentence may come twice.
    """

    name: str
    where: str
    sentence: tuple[Piece, ...]
    slots: Mapping[str, Slot]
    factors: Mapping[str, Values]
    parts: Mapping[str, tuple[Case, ...]]
    acceptable: tuple[tuple[Term, ...], ...]
    pairs: Values
    tags: Mapping[str, tuple[Piece, ...]]
    count: int = 0
    cross: Values = ()
    rows: Mapping[str, tuple[Values, ...]] = field(default_factory=dict)
    repeats: bool = False

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every combination of the factors' values."""
        return tuple(dict(zip(self.factors, each, strict=True)) for each in product(*self.factors.values()))

    @cached_property
    def neighbors(self) -> tuple[tuple[int, int], ...]:
        """The places of two conditions that differ in one factor, out of those that contrasts may differ in."""
        places = range(len(self.conditions))
        return tuple((one, two) for one, two in combinations(places, 2) if self._differing(one, two) in self.pairs)

    def _differing(self, one: int, two: int) -> str | None:
        first, second = self.conditions[one], self.conditions[two]
        found = [name for name in self.factors if first[name] != second[name]]
        return found[0] if len(found) == 1 else None

    def case(self, part: str, condition: Condition) -> tuple[Piece, ...]:
        """Return the text of a part in a condition."""
        return next(each.pieces for each in self.parts[part] if meets(each.terms, condition))

    def flat(self, pieces: tuple[Piece, ...], condition: Condition) -> tuple[Piece, ...]:
        """Return a template whose parts have been replaced by their texts, and factors by their values."""
        found: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Hole) and piece.name in self.parts:
                found += self.flat(self.case(piece.name, condition), condition)
            elif isinstance(piece, Hole):
                found.append(Hole(piece.name, tuple(_valued(term, condition) for term in piece.terms)))
            else:
                found.append(piece)
        return tuple(found)


@dataclass(frozen=True)
class ParadigmFile:
    """A file of paradigms: a name, what they share, how many go into which split, and words of its own."""

    name: str
    title: str
    paradigms: tuple[Paradigm, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    words: tuple[Word, ...] = ()

    def counting(self, counts: Mapping[str, int]) -> ParadigmFile:
        """Return the file with other counts of some paradigms; the splits change in proportion."""
        total = sum(each.count for each in self.paradigms)
        changed = tuple(replace(each, count=counts.get(each.name, each.count)) for each in self.paradigms)
        left = sum(each.count for each in changed)
        splits = {name: count * left // total for name, count in self.splits.items()}
        return replace(self, paradigms=changed, splits=splits)


def meets(terms: tuple[Term, ...], condition: Condition) -> bool:
    """Tell whether a combination of factors is as the terms want it."""
    return all((condition[term.left] in term.values) == term.is_equal for term in terms)


def _valued(term: Term, condition: Condition) -> Term:
    return replace(term, values=(condition[term.factor],), factor="") if term.factor else term
