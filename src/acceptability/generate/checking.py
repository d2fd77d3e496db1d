"""Whether a paradigm can be made: known names, fitting values, a text for every condition, words for every slot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from acceptability.errors import SuiteError, shorten, suggestion
from acceptability.generate.constraints import Reference, Term, check_values
from acceptability.generate.drawing import free_words
from acceptability.generate.features import Values, features
from acceptability.generate.paradigm import Paradigm, Slot, meets
from acceptability.generate.template import Hole, Piece
from acceptability.generate.words import Word, lexicon

At = Callable[..., str]
MOST_CONDITIONS = 1_000
MOST_PARADIGMS = 1_000_000
"""More than these would fill the memory, or never end."""


def check_paradigm(paradigm: Paradigm, words: Sequence[Word], at: At) -> None:
    """Refuse a paradigm with a mistake in it.

    Args:
        words: The file's own words.
        at: Tells the file and the line of a key.
    """
    _Check(paradigm, words, at).all()


class _Check:
    def __init__(self, paradigm: Paradigm, words: Sequence[Word], at: At) -> None:
        self.paradigm = paradigm
        self.words = words
        self.at = at

    def all(self) -> None:
        self._names()
        self._counts()
        earlier: list[str] = []
        for slot in self.paradigm.slots.values():
            self._slot(slot, earlier)
            earlier.append(slot.name)
        for name, table in self.paradigm.rows.items():
            self._rows(name, table)
        self._holes(("sentence",), self.paradigm.sentence, nested=True)
        for name, pieces in self.paradigm.tags.items():
            self._holes(("tags", name), pieces, nested=True)
        for name in self.paradigm.parts:
            self._part(name)
        self._label()
        self._factors_matter()

    def _require(self, truth: bool, path: tuple[str, ...], message: str) -> None:
        if not truth:
            raise SuiteError(f"{self.at(*path)}: {message}")

    def _known(self, path: tuple[str, ...], what: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        listed = f"There is {', '.join(known)}." if known else "There is none."
        self._require(name in known, path, f"there is no {what} {name!r}.{suggestion(name, known)} {listed}")

    def _names(self) -> None:
        for name in self.paradigm.parts:
            self._require(
                name not in self.paradigm.slots, ("parts", name), f"{name!r} is a slot and a part; rename one"
            )
        for name in self.paradigm.pairs:
            self._known(("pairs",), "factor", name, self.paradigm.factors)
        for name in self.paradigm.cross:
            self._known(("cross",), "slot or table", name, [*self.paradigm.slots, *self.paradigm.rows])

    def _counts(self) -> None:
        has = (self.paradigm.count > 0) != bool(self.paradigm.cross)
        self._require(
            has, ("count",), "say either count, how many paradigms to make, or cross, the slots to go through"
        )
        self._require(
            0 <= self.paradigm.count <= MOST_PARADIGMS,
            ("count",),
            f"count is {shorten(str(self.paradigm.count))}; at most {MOST_PARADIGMS:,} paradigms are made",
        )
        conditions = prod(map(len, self.paradigm.factors.values()))
        self._require(
            conditions <= MOST_CONDITIONS,
            ("factors",),
            f"the factors have {conditions:,} combinations; a paradigm has at most {MOST_CONDITIONS:,} sentences",
        )

    def _slot(self, slot: Slot, earlier: Sequence[str]) -> None:
        path = ("slots", slot.name)
        if slot.spec is None:
            self._require(
                bool(slot.texts) or self._is_in_rows(slot.name), path, f"slot {slot.name!r} has nothing to choose from"
            )
            return
        for term in slot.spec.terms:
            self._require(
                not term.slot and not term.factor, path, f"{term}: a slot asks feature=value or feature=@slot.feature"
            )
            self._feature(path, slot.spec.category, term)
            if term.reference:
                self._known(path, "earlier slot", term.reference.slot, earlier)
                self._reference(path, term.reference)
        self._satisfiable(slot, path)

    def _is_in_rows(self, name: str) -> bool:
        return any(name in table[0] for table in self.paradigm.rows.values())

    def _feature(self, path: tuple[str, ...], category: str, term: Term) -> None:
        try:
            check_values(category, term)
        except SuiteError as error:
            raise SuiteError(f"{self.at(*path)}: {error}") from error

    def _reference(self, path: tuple[str, ...], reference: Reference) -> None:
        spec = self.paradigm.slots[reference.slot].spec
        self._require(spec is not None, path, f"{reference.slot!r} is a text and has no features")
        if spec:
            self._feature(path, spec.category, Term(reference.feature, True))

    def _satisfiable(self, slot: Slot, path: tuple[str, ...]) -> None:
        assert slot.spec is not None
        words = self._vocabulary(slot.spec.category)
        if free_words(slot, words):
            return
        for place, term in enumerate(slot.spec.terms):
            shorter = Slot(slot.name, slot.where, type(slot.spec)(slot.spec.category, slot.spec.terms[: place + 1]))
            self._require(
                bool(free_words(shorter, words)),
                path,
                f"no word fits the slot {slot.name!r}: none is left after {term}. Ask for less, or add a [[word]].",
            )

    def _rows(self, name: str, table: tuple[Values, ...]) -> None:
        path = ("rows", name)
        header, *rows = table
        for slot in header:
            self._known(path, "slot", slot, self.paradigm.slots)
        for row in rows:
            self._require(len(row) == len(header), path, f"the row {', '.join(row)} has not {len(header)} words")
            for slot, lemma in zip(header, row, strict=True):
                self._cell(path, self.paradigm.slots[slot], lemma)

    def _cell(self, path: tuple[str, ...], slot: Slot, lemma: str) -> None:
        if slot.spec is None:
            return
        category = slot.spec.category
        words = [each for each in self._vocabulary(category) if each.lemma == lemma]
        self._require(
            bool(free_words(slot, words)),
            path,
            f"{lemma!r} is no {category} that fits the slot {slot.name!r}. Take another, or add it as a [[word]].",
        )

    def _vocabulary(self, category: str) -> list[Word]:
        return [*lexicon()[category], *(each for each in self.words if each.category == category)]

    def _holes(self, path: tuple[str, ...], pieces: Sequence[Piece], *, nested: bool) -> None:
        known = [*self.paradigm.slots, *(self.paradigm.parts if nested else ())]
        for hole in (each for each in pieces if isinstance(each, Hole)):
            self._known(path, "slot or part" if nested else "slot", hole.name, known)
            for term in hole.terms:
                self._choice(path, hole, term)

    def _choice(self, path: tuple[str, ...], hole: Hole, term: Term) -> None:
        slot = self.paradigm.slots.get(hole.name)
        self._require(slot is not None and slot.spec is not None, path, f"{hole.name!r} has no forms to choose: {term}")
        if slot is None or slot.spec is None:
            return
        category = slot.spec.category
        if term.factor:
            self._known(path, "factor", term.factor, self.paradigm.factors)
            term = Term(term.left, True, values=self.paradigm.factors[term.factor])
        self._feature(path, category, term)
        is_choice = category in features().feature(category, term.left).choice
        self._require(is_choice, path, f"{term.left} of a {category} is not chosen in a sentence; ask it of the slot")
        if term.reference:
            self._known(path, "slot", term.reference.slot, self.paradigm.slots)
            self._reference(path, term.reference)
            self._same_values(path, category, term, term.reference)

    def _same_values(self, path: tuple[str, ...], category: str, term: Term, reference: Reference) -> None:
        """Refuse a choice that takes its value from a feature of other values: a number from a gender."""
        other = self.paradigm.slots[reference.slot].spec
        assert other is not None
        wanted = features().feature(category, term.left).values
        given = features().feature(other.category, reference.feature).values
        self._require(
            not set(wanted).isdisjoint(given),
            path,
            f"{term}: {reference.feature} never has a value of {term.left}, which are {', '.join(wanted)}",
        )

    def _part(self, name: str) -> None:
        path = ("parts", name)
        for case in self.paradigm.parts[name]:
            self._conditions(path, case.terms, slots=False)
            self._holes(path, case.pieces, nested=False)
        for condition in self.paradigm.conditions:
            fitting = sum(meets(case.terms, condition) for case in self.paradigm.parts[name])
            said = " ".join(f"{factor}={value}" for factor, value in condition.items())
            self._require(fitting > 0, path, f"the part {name!r} has no text for {said}. Add one, empty if need be.")
            self._require(fitting == 1, path, f"the part {name!r} has {fitting} texts for {said}; one must be left")

    def _conditions(self, path: tuple[str, ...], terms: Sequence[Term], *, slots: bool) -> None:
        for term in terms:
            if slots and term.slot:
                self._known(path, "slot", term.slot, self.paradigm.slots)
                self._reference(path, Reference(term.slot, term.left))
                if term.reference:
                    self._known(path, "slot", term.reference.slot, self.paradigm.slots)
                    self._reference(path, term.reference)
                continue
            self._require(not (term.slot or term.reference or term.factor), path, f"{term}: expected factor=value")
            self._known(path, "factor", term.left, self.paradigm.factors)
            for value in term.values:
                self._known(path, f"value of {term.left}", value, self.paradigm.factors[term.left])

    def _label(self) -> None:
        for terms in self.paradigm.acceptable:
            self._conditions(("acceptable",), terms, slots=True)
        if any(term.slot for terms in self.paradigm.acceptable for term in terms):
            return
        good = [any(meets(terms, each) for terms in self.paradigm.acceptable) for each in self.paradigm.conditions]
        self._require(any(good), ("acceptable",), "no condition of the paradigm is acceptable")

    def _factors_matter(self) -> None:
        """Refuse a factor of several values that changes nothing in the sentence."""
        terms = [term for cases in self.paradigm.parts.values() for case in cases for term in case.terms]
        pieces = [
            *self.paradigm.sentence,
            *(p for cases in self.paradigm.parts.values() for c in cases for p in c.pieces),
        ]
        used = {term.left for term in terms}
        used |= {term.factor for piece in pieces if isinstance(piece, Hole) for term in piece.terms}
        for name, values in self.paradigm.factors.items():
            self._require(
                len(values) == 1 or name in used,
                ("factors", name),
                f"the factor {name!r} changes nothing: no part asks for it, and no hole has it as ${name}",
            )
