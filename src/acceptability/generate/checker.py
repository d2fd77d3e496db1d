"""The validation of a paradigm: known names, valid values, one text per condition, and a word for every slot.

Everything is checked when the file is read, so that a mistake is reported with its line and not after hours of
generation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod

from acceptability.errors import SuiteError, shorten, suggest_name
from acceptability.generate.generator import filter_free_words
from acceptability.generate.lexicon import FeatureValues, LexiconEntry, load_features, load_lexicon
from acceptability.generate.paradigm import (
    Hole,
    Paradigm,
    Reference,
    Slot,
    TemplatePiece,
    Term,
    check_values,
    satisfies,
)

Locate = Callable[..., str]
MAX_CONDITIONS = 1_000
MAX_PARADIGMS = 1_000_000
"""Limits that keep a mistyped number from filling the memory, or from running without end."""


def check_paradigm(paradigm: Paradigm, words: Sequence[LexiconEntry], locate: Locate) -> None:
    """Raise an error for the first mistake in a paradigm.

    Args:
        paradigm: The parsed paradigm.
        words: The words that the file defines.
        locate: Returns the file and line of a key.
    """
    _ParadigmChecker(paradigm, words, locate).check_all()


class _ParadigmChecker:
    def __init__(self, paradigm: Paradigm, words: Sequence[LexiconEntry], locate: Locate) -> None:
        self.paradigm = paradigm
        self.words = words
        self.locate = locate

    def check_all(self) -> None:
        # Names come first: every later check looks slots, parts and factors up by name.
        self._check_names()
        self._check_counts()
        earlier: list[str] = []
        # A slot may refer to slots above it only, because slots are filled in this order.
        for slot in self.paradigm.slots.values():
            self._check_slot(slot, earlier)
            earlier.append(slot.name)
        for name, table in self.paradigm.rows.items():
            self._check_rows(name, table)
        self._check_holes(("sentence",), self.paradigm.sentence, nested=True)
        for name, pieces in self.paradigm.tags.items():
            self._check_holes(("tags", name), pieces, nested=True)
        for name in self.paradigm.parts:
            self._check_part(name)
        self._check_label()
        self._check_factors_used()

    def _require(self, truth: bool, path: tuple[str, ...], message: str) -> None:
        if not truth:
            raise SuiteError(f"{self.locate(*path)}: {message}")

    def _require_known(self, path: tuple[str, ...], kind: str, name: str, known: Iterable[str]) -> None:
        known = list(known)
        listed = f"There is {', '.join(known)}." if known else "There is none."
        self._require(name in known, path, f"there is no {kind} {name!r}.{suggest_name(name, known)} {listed}")

    def _check_names(self) -> None:
        for name in self.paradigm.parts:
            self._require(
                name not in self.paradigm.slots, ("parts", name), f"{name!r} is both a slot and a part; rename one"
            )
        for name in self.paradigm.pairs:
            self._require_known(("pairs",), "factor", name, self.paradigm.factors)
        for name in self.paradigm.cross:
            self._require_known(("cross",), "slot or table", name, [*self.paradigm.slots, *self.paradigm.rows])

    def _check_counts(self) -> None:
        # cross determines the number of paradigms, so that a count beside it would be contradictory.
        has_one_of_both = (self.paradigm.count > 0) != bool(self.paradigm.cross)
        self._require(
            has_one_of_both,
            ("count",),
            "set either count, the number of paradigms, or cross, the slots whose words are all combined",
        )
        self._require(
            0 <= self.paradigm.count <= MAX_PARADIGMS,
            ("count",),
            f"count is {shorten(str(self.paradigm.count))}; at most {MAX_PARADIGMS:,} paradigms can be generated",
        )
        # Multiplied before anything is enumerated: twenty binary factors alone have a million combinations.
        conditions = prod(map(len, self.paradigm.factors.values()))
        self._require(
            conditions <= MAX_CONDITIONS,
            ("factors",),
            f"the factors have {conditions:,} combinations; a paradigm has at most {MAX_CONDITIONS:,} sentences",
        )

    def _check_slot(self, slot: Slot, earlier: Sequence[str]) -> None:
        path = ("slots", slot.name)
        if slot.spec is None:
            self._require(
                bool(slot.texts) or self._is_in_rows(slot.name), path, f"slot {slot.name!r} has nothing to choose from"
            )
            return
        for term in slot.spec.terms:
            self._require(
                not term.slot and not term.factor,
                path,
                f"{term}: expected feature=value or feature=@slot.feature in a slot",
            )
            self._check_feature(path, slot.spec.category, term)
            if term.reference:
                self._require_known(path, "earlier slot", term.reference.slot, earlier)
                self._check_reference(path, term.reference)
        self._check_satisfiable(slot, path)

    # A slot without texts of its own is valid if a table of rows gives it words.
    def _is_in_rows(self, name: str) -> bool:
        return any(name in table[0] for table in self.paradigm.rows.values())

    def _check_feature(self, path: tuple[str, ...], category: str, term: Term) -> None:
        try:
            check_values(category, term)
        except SuiteError as error:
            raise SuiteError(f"{self.locate(*path)}: {error}") from error

    def _check_reference(self, path: tuple[str, ...], reference: Reference) -> None:
        spec = self.paradigm.slots[reference.slot].spec
        self._require(spec is not None, path, f"{reference.slot!r} is a plain text and has no features")
        if spec:
            self._check_feature(path, spec.category, Term(reference.feature, True))

    def _check_satisfiable(self, slot: Slot, path: tuple[str, ...]) -> None:
        assert slot.spec is not None
        words = self._list_vocabulary(slot.spec.category)
        if filter_free_words(slot, words):
            return
        # Constraints are added one by one again, to name the first that excludes all words.
        for term_index, term in enumerate(slot.spec.terms):
            shorter = Slot(
                slot.name, slot.where, type(slot.spec)(slot.spec.category, slot.spec.terms[: term_index + 1])
            )
            self._require(
                bool(filter_free_words(shorter, words)),
                path,
                f"no word fits the slot {slot.name!r}: none is left after {term}. "
                "Relax the constraints, or add a [[word]].",
            )

    def _check_rows(self, name: str, table: tuple[FeatureValues, ...]) -> None:
        path = ("rows", name)
        header, *rows = table
        for slot in header:
            self._require_known(path, "slot", slot, self.paradigm.slots)
        for row in rows:
            self._require(
                len(row) == len(header), path, f"the row {', '.join(row)} has {len(row)} words; expected {len(header)}"
            )
            for slot, lemma in zip(header, row, strict=True):
                self._check_cell(path, self.paradigm.slots[slot], lemma)

    def _check_cell(self, path: tuple[str, ...], slot: Slot, lemma: str) -> None:
        if slot.spec is None:
            return
        category = slot.spec.category
        # A lemma may have several entries, of which one has to fit.
        words = [word for word in self._list_vocabulary(category) if word.lemma == lemma]
        self._require(
            bool(filter_free_words(slot, words)),
            path,
            f"{lemma!r} is no {category} that fits the slot {slot.name!r}. Use another, or add it as a [[word]].",
        )

    def _list_vocabulary(self, category: str) -> list[LexiconEntry]:
        return [*load_lexicon()[category], *(word for word in self.words if word.category == category)]

    def _check_holes(self, path: tuple[str, ...], pieces: Sequence[TemplatePiece], *, nested: bool) -> None:
        # A part may contain slots but no parts, which rules out infinite recursion.
        known = [*self.paradigm.slots, *(self.paradigm.parts if nested else ())]
        for hole in (piece for piece in pieces if isinstance(piece, Hole)):
            self._require_known(path, "slot or part" if nested else "slot", hole.name, known)
            for term in hole.terms:
                self._check_choice(path, hole, term)

    def _check_choice(self, path: tuple[str, ...], hole: Hole, term: Term) -> None:
        slot = self.paradigm.slots.get(hole.name)
        self._require(slot is not None and slot.spec is not None, path, f"{hole.name!r} has no forms to choose: {term}")
        if slot is None or slot.spec is None:
            return
        category = slot.spec.category
        if term.factor:
            self._require_known(path, "factor", term.factor, self.paradigm.factors)
            # Replaced by a term with all values of the factor, so that each value is checked.
            term = Term(term.left, True, values=self.paradigm.factors[term.factor])
        self._check_feature(path, category, term)
        is_choice = category in load_features().get_feature(category, term.left).choice_categories
        self._require(is_choice, path, f"{term.left} of a {category} is not chosen in a sentence; put it in the slot")
        if term.reference:
            self._require_known(path, "slot", term.reference.slot, self.paradigm.slots)
            self._check_reference(path, term.reference)
            self._check_shared_values(path, category, term, term.reference)

    def _check_shared_values(self, path: tuple[str, ...], category: str, term: Term, reference: Reference) -> None:
        """Raise an error for a choice whose reference can never have a valid value: a number from a gender."""
        other = self.paradigm.slots[reference.slot].spec
        assert other is not None
        needed = load_features().get_feature(category, term.left).values
        given = load_features().get_feature(other.category, reference.feature).values
        self._require(
            not set(needed).isdisjoint(given),
            path,
            f"{term}: {reference.feature} never has a value of {term.left}, which are {', '.join(needed)}",
        )

    def _check_part(self, name: str) -> None:
        path = ("parts", name)
        for case in self.paradigm.parts[name]:
            self._check_conditions(path, case.terms, slots=False)
            self._check_holes(path, case.pieces, nested=False)
        for condition in self.paradigm.conditions:
            fitting = sum(satisfies(case.terms, condition) for case in self.paradigm.parts[name])
            condition_text = " ".join(f"{factor}={value}" for factor, value in condition.items())
            self._require(
                fitting > 0, path, f"the part {name!r} has no text for {condition_text}. Add one; it may be empty."
            )
            self._require(
                fitting == 1, path, f"the part {name!r} has {fitting} texts for {condition_text}; expected one"
            )

    def _check_conditions(self, path: tuple[str, ...], terms: Sequence[Term], *, slots: bool) -> None:
        for term in terms:
            # Acceptability may depend on the drawn words, as in agreement; a part only on the factors.
            if slots and term.slot:
                self._require_known(path, "slot", term.slot, self.paradigm.slots)
                self._check_reference(path, Reference(term.slot, term.left))
                if term.reference:
                    self._require_known(path, "slot", term.reference.slot, self.paradigm.slots)
                    self._check_reference(path, term.reference)
                continue
            self._require(not (term.slot or term.reference or term.factor), path, f"{term}: expected factor=value")
            self._require_known(path, "factor", term.left, self.paradigm.factors)
            for value in term.values:
                self._require_known(path, f"value of {term.left}", value, self.paradigm.factors[term.left])

    def _check_label(self) -> None:
        for terms in self.paradigm.acceptable:
            self._check_conditions(("acceptable",), terms, slots=True)
        # Whether a condition that depends on words is ever true is known only when words are drawn.
        if any(term.slot for terms in self.paradigm.acceptable for term in terms):
            return
        good = [
            any(satisfies(terms, condition) for terms in self.paradigm.acceptable)
            for condition in self.paradigm.conditions
        ]
        self._require(any(good), ("acceptable",), "no condition of the paradigm is acceptable")

    def _check_factors_used(self) -> None:
        """Raise an error for a factor with several values that does not change the sentence."""
        # Its values would give identical sentences with different labels or tags.
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
                f"the factor {name!r} has no effect: no part depends on it, and no hole uses it as ${name}",
            )
