"""Paradigms as frozen data: constraints, templates, slots, factors; read and checked by ``parser``.

**Constraints.** A slot is a category and what its word must be: ``noun kind=person number=pl`` or ``verb
subject=@doer.kind form!=base``. After ``=`` come values, separated by ``|``, or ``@slot.feature``: the values of an
earlier slot. ``!=`` negates. Two features agree if they share a value; a kind agrees with its ancestors, so that
``kind=@verb.object`` accepts a noun that denotes something the verb takes as its object. A condition of a part or of
acceptability has the same form: ``licensor=1 scope=0``, or ``anaphor.agreement=@subject.agreement``.

**Templates.** A sentence with holes: ``The {subject} {verb form=present number=@subject.number}.`` A hole names a slot
or a part. After a slot there may be choices for this occurrence alone: ``{verb number=$verb}`` takes the number from
the value of the factor ``verb``. Afterwards spaces are normalised, "a" becomes "an" where necessary, and the first
letter is capitalised.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product

from acceptability.errors import SuiteError
from acceptability.generate.lexicon import Feature, FeatureValues, LexiconEntry, correct_articles, load_features

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
    """A constraint: ``feature=values``, ``feature!=values``, or the same with a reference or the value of a factor.

    Args:
        left: The feature, or in a condition the factor.
        is_equal: Whether the values must agree; False for ``!=``.
        values: The listed values.
        reference: The feature of another slot, in place of listed values.
        slot: The slot with the feature, in a condition; empty for the slot's own feature, or for a factor.
        factor: The factor whose value is required: ``number=$verb``.
    """

    left: str
    is_equal: bool
    values: FeatureValues = ()
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
class SlotSpec:
    """The specification of a slot: a category, and constraints."""

    category: str
    terms: tuple[Term, ...]


def parse_slot_spec(text: str) -> SlotSpec:
    """Return the parsed specification of a slot.

    >>> [str(term) for term in parse_slot_spec("noun kind=person number!=@other.number").terms]
    ['kind=person', 'number!=@other.number']
    """
    category, *rest = text.split() or [""]
    return SlotSpec(load_features().check_category(category), tuple(parse_term(term) for term in rest))


def parse_terms(text: str) -> tuple[Term, ...]:
    """Return the constraints of a condition, which are separated by spaces."""
    return tuple(parse_term(term) for term in text.split())


def parse_term(text: str) -> Term:
    """Return one parsed constraint.

    >>> parse_term("verb.object=@noun.kind").reference
    Reference(slot='noun', feature='kind')
    """
    match = _TERM.fullmatch(text)
    if not match:
        raise SuiteError(f"cannot parse {text!r}; expected feature=value, feature=value|value or feature=@slot.feature")
    # Before the last dot, if there is one, stands a slot: conditions name it, slots and holes must not.
    slot, _, left = match["left"].rpartition(".")
    is_equal = match["sign"] == "="
    right = match["right"]
    if right.startswith("@"):
        reference = _REFERENCE.fullmatch(right)
        if not reference:
            raise SuiteError(f"cannot parse {right!r}; expected @slot.feature")
        return Term(left, is_equal, reference=Reference(reference[1], reference[2]), slot=slot)
    if right.startswith("$"):
        return Term(left, is_equal, slot=slot, factor=right[1:])
    return Term(left, is_equal, values=tuple(right.split("|")), slot=slot)


def check_values(category: str, term: Term) -> Feature:
    """Return the feature of a constraint; an error if the category lacks it, or if it cannot have the values."""
    feature = load_features().get_feature(category, term.left)
    for value in term.values:
        feature.check_value(value, load_features().kinds)
    return feature


def values_agree(feature_type: str, own: FeatureValues, other: Iterable[str]) -> bool:
    """Return whether the values of a feature agree with others.

    >>> values_agree("kind", ("adult",), ["person"]), values_agree("kinds", ("person",), ["adult"])
    (True, True)
    >>> values_agree("word", ("sg",), ["pl"])
    False
    """
    # Subsumption has a direction: a noun of a narrow kind fits a verb that selects a broad one, and not the reverse.
    kinds = load_features().kinds
    if feature_type == "kind":
        return kinds.is_any_subsumed(own, other)
    if feature_type == "kinds":
        return kinds.is_any_subsumed(other, own)
    return not set(own).isdisjoint(other)


_HOLE = re.compile(r"\{([^{}]*)\}")
_INSIDE = re.compile(rf"\s*({NAME})((?:\s+\S+)*)\s*")
_SPACES = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r" (?=[,.?!;:])")


@dataclass(frozen=True)
class Hole:
    """An occurrence of a slot or a part in a template, with the choices for this occurrence."""

    name: str
    terms: tuple[Term, ...] = ()


TemplatePiece = str | Hole


def parse_template(text: str) -> tuple[TemplatePiece, ...]:
    """Return the pieces of a template.

    >>> parse_template("The {cat} sleeps.")
    ('The ', Hole(name='cat', terms=()), ' sleeps.')
    """
    pieces: list[TemplatePiece] = []
    last = 0
    # Text between holes may contain no brace, so that a missing brace is not taken for text.
    for match in _HOLE.finditer(text):
        pieces += [_check_plain_text(text[last : match.start()]), _parse_hole(match[1])]
        last = match.end()
    return tuple(piece for piece in [*pieces, _check_plain_text(text[last:])] if piece != "")


def _check_plain_text(text: str) -> str:
    if "{" in text or "}" in text:
        raise SuiteError(f"a brace is not closed, or not opened, in {text!r}")
    return text


def _parse_hole(inside: str) -> Hole:
    match = _INSIDE.fullmatch(inside)
    if not match:
        raise SuiteError(f"cannot parse {{{inside}}}; expected the name of a slot or a part: {{subject}}")
    terms = parse_terms(match[2])
    # The hole needs one definite form, so that alternatives and negation have no meaning here.
    for term in terms:
        if not term.is_equal or term.slot or len(term.values) > 1:
            raise SuiteError(f"{{{inside}}}: {term} is not a single value; expected feature=value")
    return Hole(match[1], terms)


def fill_template(pieces: tuple[TemplatePiece, ...], fill: Callable[[Hole], str]) -> str:
    """Return the text of a template, with each hole replaced by the result of ``fill``."""
    return "".join([piece if isinstance(piece, str) else fill(piece) for piece in pieces])


def tidy_spaces(text: str) -> str:
    """Return a text without repeated spaces, spaces before punctuation, and spaces at either end.

    >>> tidy_spaces("the  cat  , they say , sleeps .")
    'the cat, they say, sleeps.'
    """
    # Empty parts and optional slots leave such spaces behind.
    return _BEFORE_MARK.sub("", _SPACES.sub(" ", text)).strip()


def format_sentence(text: str) -> str:
    """Return a text with normalised spaces, correct articles and an initial capital.

    >>> format_sentence("a owl  saw a mouse .")
    'An owl saw a mouse.'
    """
    # Not capitalize(), which would lower-case names. Articles come after spaces, as they depend on the next word.
    text = correct_articles(tidy_spaces(text))
    return text[:1].upper() + text[1:]


Condition = Mapping[str, str]


@dataclass(frozen=True)
class Slot:
    """A slot: a variable for a word.

    Args:
        name: The name of the slot.
        where: Its file and line, for messages.
        spec: The category and constraints of its word; None for a slot of plain texts.
        texts: The plain texts to choose from.
    """

    name: str
    where: str
    spec: SlotSpec | None = None
    texts: FeatureValues = ()


@dataclass(frozen=True)
class Case:
    """One text of a part, with the condition under which it is used."""

    terms: tuple[Term, ...]
    pieces: tuple[TemplatePiece, ...]


@dataclass(frozen=True)
class Paradigm:
    """A template with its slots and factors; every combination of factor values is one sentence of the paradigm.

    Args:
        name: The name of the paradigm.
        where: Its file and line, for messages.
        sentence: The template of the sentence.
        slots: The slots, in the order in which they are filled.
        factors: The values of each factor.
        parts: Texts that depend on factors.
        acceptable: Conditions; a sentence is acceptable if one of them holds.
        pairs: The factors in which the two sentences of a contrast may differ.
        tags: The templates of tags.
        count: The number of paradigms to generate; 0 if ``cross`` determines it.
        cross: Slots, or tables of rows, whose words are combined exhaustively, the last one varying fastest.
        rows: Tables of words that belong together: first a row of slots, then rows of their words.
        repeats: Whether a sentence may occur twice.
    """

    name: str
    where: str
    sentence: tuple[TemplatePiece, ...]
    slots: Mapping[str, Slot]
    factors: Mapping[str, FeatureValues]
    parts: Mapping[str, tuple[Case, ...]]
    acceptable: tuple[tuple[Term, ...], ...]
    pairs: FeatureValues
    tags: Mapping[str, tuple[TemplatePiece, ...]]
    count: int = 0
    cross: FeatureValues = ()
    rows: Mapping[str, tuple[FeatureValues, ...]] = field(default_factory=dict)
    repeats: bool = False

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """All combinations of factor values."""
        return tuple(dict(zip(self.factors, levels, strict=True)) for levels in product(*self.factors.values()))

    @cached_property
    def neighbors(self) -> tuple[tuple[int, int], ...]:
        """The index pairs of conditions that differ in exactly one factor, which must be one of ``pairs``."""
        indices = range(len(self.conditions))
        return tuple(
            (first, second)
            for first, second in combinations(indices, 2)
            if self._find_differing_factor(first, second) in self.pairs
        )

    def _find_differing_factor(self, first: int, second: int) -> str | None:
        left, right = self.conditions[first], self.conditions[second]
        differing = [name for name in self.factors if left[name] != right[name]]
        return differing[0] if len(differing) == 1 else None

    def select_case(self, part: str, condition: Condition) -> tuple[TemplatePiece, ...]:
        """Return the text of a part in a condition."""
        return next(case.pieces for case in self.parts[part] if satisfies(case.terms, condition))

    def flatten(self, pieces: tuple[TemplatePiece, ...], condition: Condition) -> tuple[TemplatePiece, ...]:
        """Return a template with parts replaced by their texts, and factors by their values."""
        flat_pieces: list[TemplatePiece] = []
        for piece in pieces:
            if isinstance(piece, Hole) and piece.name in self.parts:
                # Parts contain no parts, as ``check_paradigm`` ensures: this recursion is one level deep.
                flat_pieces += self.flatten(self.select_case(piece.name, condition), condition)
            elif isinstance(piece, Hole):
                flat_pieces.append(Hole(piece.name, tuple(_resolve_factor(term, condition) for term in piece.terms)))
            else:
                flat_pieces.append(piece)
        return tuple(flat_pieces)


@dataclass(frozen=True)
class ParadigmFile:
    """The content of a paradigm file.

    Args:
        name: The name of the file's suite.
        title: A line that describes it.
        paradigms: The paradigms.
        tags: Tags of all sentences.
        splits: The number of paradigms in each split.
        words: The words that the file adds to the lexicon.
    """

    name: str
    title: str
    paradigms: tuple[Paradigm, ...]
    tags: Mapping[str, str] = field(default_factory=dict)
    splits: Mapping[str, int] = field(default_factory=dict)
    words: tuple[LexiconEntry, ...] = ()

    def with_counts(self, counts: Mapping[str, int]) -> ParadigmFile:
        """Return the file with the counts of some paradigms replaced, and the splits scaled in proportion."""
        total = sum(paradigm.count for paradigm in self.paradigms)
        changed = tuple(
            replace(paradigm, count=counts.get(paradigm.name, paradigm.count)) for paradigm in self.paradigms
        )
        new_total = sum(paradigm.count for paradigm in changed)
        # Rounded down: the splits together may not exceed the number of paradigms. The difference goes to the rest.
        splits = {name: count * new_total // total for name, count in self.splits.items()}
        return replace(self, paradigms=changed, splits=splits)


def satisfies(terms: tuple[Term, ...], condition: Condition) -> bool:
    """Return whether a combination of factor values satisfies all terms."""
    return all((condition[term.left] in term.values) == term.is_equal for term in terms)


def _resolve_factor(term: Term, condition: Condition) -> Term:
    return replace(term, values=(condition[term.factor],), factor="") if term.factor else term
