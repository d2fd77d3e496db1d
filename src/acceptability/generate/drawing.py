"""Words for the slots of a paradigm: each fits what its slot asks, and no content word comes twice.

Slots are filled in the order of the file, since a slot may ask what an earlier one has. Which words fit is worked out
once for each combination of what it asks, and remembered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random

from acceptability.errors import SuiteError
from acceptability.generate.constraints import Reference, Term, agree
from acceptability.generate.features import Feature, Values, features
from acceptability.generate.paradigm import Paradigm, Slot
from acceptability.generate.words import TEXT, Word, lexicon, numbers

_CONTENT = ("noun", "name", "verb", "adjective", "adverb", TEXT)
_IN_VAIN = 30
_COMBINATIONS_IN_VAIN = 5_000
_ATTEMPTS = 500


@dataclass(frozen=True, slots=True)
class Filled:
    """A slot's word, with what was chosen for it."""

    word: Word
    chosen: Mapping[str, str] = field(default_factory=dict)

    def values(self, feature: str) -> Values:
        """Return the values of a feature: the one chosen, or those of the word."""
        return (self.chosen[feature],) if feature in self.chosen else self.word.values(feature)


Drawn = dict[str, Filled]
Options = tuple[tuple[str, Values], ...]
Candidate = tuple[Word, Options]


@dataclass(frozen=True)
class Drawer:
    """Draws words for a paradigm from the lexicon and a file's own words."""

    paradigm: Paradigm
    own: tuple[Word, ...]
    random: Random
    _known: dict[tuple[object, ...], tuple[Candidate, ...]] = field(default_factory=dict)
    _words: dict[str, Sequence[Word]] = field(default_factory=dict)

    def many(self) -> Iterator[Drawn]:
        """Yield words for one paradigm after the other: without end, or for all combinations of crossed slots."""
        if self.paradigm.cross:
            yield from self._crossed()
            return
        while True:
            yield self._one(self._rows())

    def _rows(self) -> dict[str, str]:
        """Return the words of one row of every table."""
        tables = self.paradigm.rows.values()
        return {slot: word for table in tables for slot, word in self.random.choice(_as_rows(table)).items()}

    def _crossed(self) -> Iterator[Drawn]:
        """Yield words for every combination of the crossed slots in which they fit together."""
        found, in_vain = False, 0
        for combination in product(*(self._alternatives(name) for name in self.paradigm.cross)):
            fixed = {slot: lemma for each in combination for slot, lemma in each.items()}
            in_vain += 1
            if self._fits(fixed):
                found, in_vain = True, 0
                yield self._one(fixed)
            elif in_vain == _COMBINATIONS_IN_VAIN:
                raise SuiteError(self._stuck(fixed))
        if not found:
            raise SuiteError(f"{self.paradigm.where}: no combination of {', '.join(self.paradigm.cross)} fits")

    def _alternatives(self, name: str) -> list[dict[str, str]]:
        if name in self.paradigm.rows:
            return _as_rows(self.paradigm.rows[name])
        slot = self.paradigm.slots[name]
        words = self._free(slot) if slot.spec else _texts(slot)
        return [{name: word.lemma} for word in words]

    def _fits(self, fixed: Mapping[str, str]) -> bool:
        return any(self._try(fixed) is not None for _ in range(_IN_VAIN))

    def _one(self, fixed: Mapping[str, str]) -> Drawn:
        """Return words for one paradigm; a slot that no word fits, again and again, is an error."""
        for _ in range(_ATTEMPTS):
            drawn = self._try(fixed)
            if drawn is not None:
                return drawn
        raise SuiteError(self._stuck(fixed))

    def _try(self, fixed: Mapping[str, str]) -> Drawn | None:
        drawn: Drawn = {}
        used: set[str] = set()
        for name, slot in self.paradigm.slots.items():
            found = self._fill(slot, drawn, fixed.get(name), used)
            if found is None:
                return None
            drawn[name] = found
            if found.word.category in _CONTENT:
                used.add(found.word.lemma)
        return drawn

    def _fill(self, slot: Slot, drawn: Drawn, lemma: str | None, used: set[str]) -> Filled | None:
        candidates = self._candidates(slot, drawn, lemma)
        if not candidates:
            return None
        for _ in range(_IN_VAIN):
            word, options = candidates[int(self.random.random() * len(candidates))]
            if lemma is not None or word.lemma not in used:
                return Filled(word, {name: _pick(values, self.random) for name, values in options})
        return None

    def _candidates(self, slot: Slot, drawn: Drawn, lemma: str | None) -> tuple[Candidate, ...]:
        terms = slot.spec.terms if slot.spec else ()
        asked = [(term, _asked(term, drawn)) for term in terms]
        key = (slot.name, lemma, *(values for _, values in asked))
        if key not in self._known:
            words = [word for word in self._free(slot) if lemma is None or word.lemma == lemma]
            self._known[key] = tuple(_fitting(slot, words, asked))
        return self._known[key]

    def _free(self, slot: Slot) -> Sequence[Word]:
        """Return the words that fit whatever the other slots have; worked out once."""
        if slot.name not in self._words:
            self._words[slot.name] = free_words(slot, self.vocabulary(slot))
        return self._words[slot.name]

    def vocabulary(self, slot: Slot) -> tuple[Word, ...]:
        """Return the words among which those of a slot are sought."""
        if slot.spec is None:
            return _texts(slot) if slot.texts else self._cells(slot)
        own = tuple(each for each in self.own if each.category == slot.spec.category)
        return lexicon()[slot.spec.category] + own

    def _cells(self, slot: Slot) -> tuple[Word, ...]:
        """Return the texts that the rows have for a slot."""
        rows = [row for table in self.paradigm.rows.values() for row in _as_rows(table)]
        return tuple(Word(TEXT, row[slot.name]) for row in rows if slot.name in row)

    def _stuck(self, fixed: Mapping[str, str]) -> str:
        """Return the message about the first slot that no word fits."""
        for _ in range(_ATTEMPTS):
            drawn: Drawn = {}
            for name, slot in self.paradigm.slots.items():
                found = self._fill(slot, drawn, fixed.get(name), set())
                if found is None:
                    return f"{slot.where}: {_nothing_fits(slot, drawn)}"
                drawn[name] = found
        return f"{self.paradigm.where}: there are not enough words to fill every slot with another. Widen the slots."


def _nothing_fits(slot: Slot, drawn: Drawn) -> str:
    terms = slot.spec.terms if slot.spec else ()
    asked = [
        f"{term} ({'|'.join(_asked(term, drawn)) or 'nothing'})" if term.reference else str(term) for term in terms
    ]
    return f"no word fits the slot {slot.name!r}: {', '.join(asked)}. Ask for less here or in an earlier slot."


def free_words(slot: Slot, words: Sequence[Word]) -> list[Word]:
    """Return the words that fit what a slot asks without looking at other slots."""
    terms = slot.spec.terms if slot.spec else ()
    return [word for word, _ in _fitting(slot, words, [(each, each.values) for each in terms if not each.reference])]


def _texts(slot: Slot) -> tuple[Word, ...]:
    return tuple(Word(TEXT, text) for text in slot.texts)


def _as_rows(table: tuple[Values, ...]) -> list[dict[str, str]]:
    header, *rows = table
    return [dict(zip(header, row, strict=True)) for row in rows]


def _asked(term: Term, drawn: Drawn) -> Values:
    return value_of(term.reference, drawn) if term.reference else term.values


def value_of(reference: Reference, drawn: Drawn) -> Values:
    """Return what a slot has for a feature."""
    return drawn[reference.slot].values(reference.feature)


def _pick(values: Values, random: Random) -> str:
    return values[0] if len(values) == 1 else random.choice(values)


def _fitting(slot: Slot, words: Sequence[Word], asked: Sequence[tuple[Term, Values]]) -> list[Candidate]:
    """Return the words that are as the slot asks, each with what can be chosen for it."""
    if slot.spec is None:
        return [(word, ()) for word in words]
    category = slot.spec.category
    known = [(features().feature(category, term.left), term.is_equal, values) for term, values in asked]
    for feature, is_equal, values in known:
        if category not in feature.choice:
            words = [word for word in words if agree(feature.type, word.values(feature.name), values) == is_equal]
    chosen = [each for each in known if category in each[0].choice]
    options = [(word, _options(word, chosen)) for word in words]
    return [(word, found) for word, found in options if all(values for _, values in found)]


def _options(word: Word, asked: Sequence[tuple[Feature, bool, Values]]) -> Options:
    """Return what can be chosen for a word, by feature."""
    options: dict[str, Values] = {"number": numbers(word)} if word.category == "noun" else {}
    for feature, is_equal, values in asked:
        before = options.get(feature.name, feature.values)
        options[feature.name] = tuple(each for each in before if (each in values) == is_equal)
    return tuple(options.items())
