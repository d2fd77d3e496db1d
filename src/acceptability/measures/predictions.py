"""Predictions about the surprisal of regions (SyntaxGym: Hu, Gauthier, Qian, Wilcox and Levy 2020).

A prediction is a formula in SyntaxGym's notation: ``[(6;%plaus%) + (7;%plaus%)] < (6;%implaus%)``. Its grammar, which
a recursive-descent parser reads:

    formula     conjunctions, joined by |   [..] | [..]
    conjunction claims, joined by &         [..] & [..]
    claim       sum < sum, sum > sum, sum = sum, or a formula in brackets
    sum         terms, joined by + and -, evaluated from the left
    term        a region, a number, or a sum in brackets
    region      (3;%condition%), the surprisal of region 3 in a condition; (*;%condition%), of the whole sentence

Brackets are [ ] or ( ). Numbers are in bits, as in SyntaxGym; surprisals are passed in nats. A formula is parsed as
data and never executed, and one that is too long or too deeply nested is an error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acceptability.errors import MeasureError, ScoreError, SpecError, SuiteError, shorten
from acceptability.measures.rows import group_prediction_items, mean, require_number
from acceptability.protocols import Measure
from acceptability.types import Scores, Sentence, Suite, Tags, Units

_NATS_PER_BIT = math.log(2)
# Suites are downloaded files. The limits keep a malicious one from exhausting time, memory or the recursion limit:
# every bracket costs several Python frames, in the parser and again in evaluation.
_MAX_CHARACTERS = 10_000
_MAX_BRACKETS = 40
_CLOSING = {"[": "]", "(": ")"}
# At most twelve decimals, as many as ``BitsConstant`` writes back. The region comes first, since its opening bracket
# would otherwise be read as a bracket.
_TOKEN = re.compile(
    r"\s*(?:(?P<region>\(\s*(?P<number>[0-9]{1,6}|\*)\s*;\s*%(?P<condition>[\w.-]+)%\s*\))"
    r"|(?P<figure>[0-9]{1,12}(?:\.[0-9]{1,12})?(?![\w.]))"
    r"|(?P<sign>[-+<>=&|()\[\]])"
    r"|(?P<end>\Z))"
)


@dataclass(frozen=True, slots=True)
class RegionTerm:
    """The surprisal of a region, given by its number and condition; ``*`` is the whole sentence."""

    number: str
    condition: str

    def __str__(self) -> str:
        return f"({self.number};%{self.condition}%)"


@dataclass(frozen=True, slots=True)
class BitsConstant:
    """A constant in bits."""

    value: float

    def __str__(self) -> str:
        # Not repr, which writes 1e-07: the grammar has no exponents, and the string has to parse back.
        return f"{self.value:.12f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum of signed terms; the sign of the first is ``+``."""

    terms: tuple[tuple[str, Quantity], ...]

    def __str__(self) -> str:
        shown = "".join(f" {sign} {_bracket_sum(term)}" for sign, term in self.terms)
        return shown.removeprefix(" + ")


@dataclass(frozen=True, slots=True)
class SurprisalComparison:
    """A comparison of two quantities: less (``<``), greater (``>``), or equal within a tolerance (``=``)."""

    left: Quantity
    sign: str
    right: Quantity

    def __str__(self) -> str:
        return f"{self.left} {self.sign} {self.right}"


@dataclass(frozen=True, slots=True)
class BooleanFormula:
    """A conjunction (``&``) or disjunction (``|``) of formulas."""

    sign: str
    parts: tuple[Formula, ...]

    def __str__(self) -> str:
        return f" {self.sign} ".join(f"[{part}]" for part in self.parts)


Quantity: TypeAlias = RegionTerm | BitsConstant | Sum
Formula: TypeAlias = SurprisalComparison | BooleanFormula
SurprisalLookup: TypeAlias = Callable[[RegionTerm], float]
"""From a region to its surprisal in nats."""


def parse_formula(text: str) -> Formula:
    """Return the parsed formula; its ``str`` parses back to the same formula.

    >>> str(parse_formula("[(6;%a%)+(7;%a%)]<(6;%b%) & [(6;%a%)>0]"))
    '[(6;%a%) + (7;%a%) < (6;%b%)] & [(6;%a%) > 0]'
    """
    if len(text) > _MAX_CHARACTERS:
        raise SpecError(f"a prediction of {len(text):,} characters is too long; {_MAX_CHARACTERS:,} are the most")
    parser = _FormulaParser(text)
    formula = parser.parse_or()
    if parser.kind != "end":
        raise parser.error("an operator, or the end")
    return parser.require_formula(formula, 0)


def iter_regions(formula: Formula | Quantity) -> Iterator[RegionTerm]:
    """Yield every region in a formula, from left to right."""
    if isinstance(formula, RegionTerm):
        yield formula
    elif isinstance(formula, Sum):
        for _, term in formula.terms:
            yield from iter_regions(term)
    elif isinstance(formula, SurprisalComparison):
        yield from iter_regions(formula.left)
        yield from iter_regions(formula.right)
    elif isinstance(formula, BooleanFormula):
        for part in formula.parts:
            yield from iter_regions(part)


def formula_holds(formula: Formula, surprisal: SurprisalLookup, *, tolerance: float = 0.001) -> bool:
    """Return whether a formula is true.

    Args:
        formula: A parsed formula.
        surprisal: The surprisal of a region, in nats.
        tolerance: The largest difference, in bits, between two quantities that count as equal.

    >>> nats = {"a": 3.0, "b": 5.0}
    >>> formula_holds(parse_formula("(1;%a%) < (1;%b%)"), lambda region: nats[region.condition])
    True
    """
    if isinstance(formula, BooleanFormula):
        # No short circuit: a missing surprisal is an error wherever in the formula it is, and not only if it decides.
        truths = [formula_holds(part, surprisal, tolerance=tolerance) for part in formula.parts]
        return all(truths) if formula.sign == "&" else any(truths)
    left, right = evaluate_quantity(formula.left, surprisal), evaluate_quantity(formula.right, surprisal)
    if formula.sign == "=":
        return abs(left - right) <= tolerance * _NATS_PER_BIT
    return left < right if formula.sign == "<" else left > right


def evaluate_quantity(quantity: Quantity, surprisal: SurprisalLookup) -> float:
    """Return the value of a quantity in nats."""
    if isinstance(quantity, RegionTerm):
        return surprisal(quantity)
    if isinstance(quantity, BitsConstant):
        return quantity.value * _NATS_PER_BIT
    # fsum rounds only once, so that two sums of the same surprisals in different order remain equal.
    return math.fsum(evaluate_quantity(term, surprisal) * (-1 if sign == "-" else 1) for sign, term in quantity.terms)


def _bracket_sum(quantity: Quantity) -> str:
    return f"[{quantity}]" if isinstance(quantity, Sum) else str(quantity)


class _FormulaParser:
    """A recursive-descent parser with one token of look-ahead; only brackets nest, and their depth is limited.

    One bracket may enclose a formula or a sum, which only shows behind it. So every method returns either, and
    ``require_formula`` and ``require_quantity`` check the type where it is known.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.depth = self.position = self.next_position = 0
        self.kind = self.token = ""
        self.advance()

    def advance(self) -> None:
        """Read the next token."""
        match = _TOKEN.match(self.text, self.next_position)
        if match is None:
            # The error message points at the offending character, not at the blanks before it.
            self.position = (
                self.next_position
                + len(self.text[self.next_position :])
                - len(self.text[self.next_position :].lstrip())
            )
            raise self.error("a region such as (3;%condition%), a number, a bracket, or one of + - < > = & |")
        self.match, self.kind = match, str(match.lastgroup)
        self.position, self.next_position, self.token = match.start(self.kind), match.end(), match[self.kind]

    def error(self, expected: str, position: int | None = None) -> SpecError:
        """Return a syntax error at a position, by default that of the current token."""
        position = self.position if position is None else position
        shown = repr(shorten(self.text[position:], 20)) if position < len(self.text) else "its end"
        return SpecError(
            f"cannot parse the prediction {shorten(self.text, 80)!r}: at character {position + 1} there is {shown}; "
            f"expected {expected}."
        )

    def parse_or(self) -> Formula | Quantity:
        return self.parse_joined("|", self.parse_and)

    def parse_and(self) -> Formula | Quantity:
        return self.parse_joined("&", self.parse_comparison)

    def parse_joined(self, sign: str, parse_part: Callable[[], Formula | Quantity]) -> Formula | Quantity:
        start = self.position
        parts = [parse_part()]
        while self.token == sign:
            self.require_formula(parts[-1], start)
            self.advance()
            start = self.position
            parts.append(parse_part())
        if len(parts) == 1:
            return parts[0]
        return BooleanFormula(sign, (*(self.require_formula(part, start) for part in parts),))

    def parse_comparison(self) -> Formula | Quantity:
        start = self.position
        left = self.parse_sum()
        if self.kind != "sign" or self.token not in "<>=":
            return left
        sign = self.token
        left = self.require_quantity(left, start)
        self.advance()
        start = self.position
        right = self.require_quantity(self.parse_sum(), start)
        # Python would read a < b < c as a conjunction; here it must be written as one.
        if self.kind == "sign" and self.token in "<>=":
            raise self.error("& or | between two comparisons")
        return SurprisalComparison(left, sign, right)

    def parse_sum(self) -> Formula | Quantity:
        start = self.position
        first = self.parse_term()
        terms = [("+", first)]
        while self.kind == "sign" and self.token in "+-":
            sign = self.token
            self.require_quantity(terms[-1][1], start)
            self.advance()
            start = self.position
            terms.append((sign, self.parse_term()))
        if len(terms) == 1:
            return first
        return Sum(tuple((sign, self.require_quantity(term, start)) for sign, term in terms))

    def parse_term(self) -> Formula | Quantity:
        kind, token, match = self.kind, self.token, self.match
        if kind == "region":
            self.advance()
            # Numbers are normalised, as "06" in a formula means the region tagged "6".
            number = match["number"]
            return RegionTerm(number if number == "*" else str(int(number)), match["condition"])
        if kind == "figure":
            self.advance()
            return BitsConstant(float(token))
        if token == "-":
            self.advance()
            if self.kind == "figure":
                negative = -float(self.token)
                self.advance()
                return BitsConstant(negative)
            raise self.error("a number after -")
        if token not in _CLOSING:
            raise self.error("a region such as (3;%condition%), a number, or an opening bracket")
        return self.parse_bracketed(_CLOSING[token])

    def parse_bracketed(self, closing: str) -> Formula | Quantity:
        # Checked before the recursion, so that the parser stops at the limit and not at the end of the brackets.
        if self.depth == _MAX_BRACKETS:
            raise self.error(f"at most {_MAX_BRACKETS} brackets inside each other")
        self.depth += 1
        self.advance()
        inside = self.parse_or()
        if self.token != closing:
            raise self.error(f"{closing!r}")
        self.depth -= 1
        self.advance()
        return inside

    def require_formula(self, parsed: Formula | Quantity, start: int) -> Formula:
        if isinstance(parsed, SurprisalComparison | BooleanFormula):
            return parsed
        raise self.error("a comparison: a quantity alone is neither true nor false", start)

    def require_quantity(self, parsed: Formula | Quantity, start: int) -> Quantity:
        if isinstance(parsed, SurprisalComparison | BooleanFormula):
            raise self.error("a quantity: a comparison cannot be added or compared", start)
        return parsed


_ROW_KINDS = ("prediction", "item", "first")
_TAG = re.compile(r"prediction(_[0-9]+)?")


@dataclass(frozen=True)
class Predictions(Measure):
    """How often a suite's predictions about the surprisal of regions are true.

    Surprisal is minus the log-probability of a region; numbers in a prediction are in bits.

    Args:
        per: The rows. "prediction": every prediction of every item. "item": an item, which is correct if all its
            predictions hold. "first": an item, judged by its first prediction alone, as in the accuracies published
            with SyntaxGym.
        tolerance: The largest difference, in bits, between two surprisals that count as equal.
    """

    per: str = "prediction"
    tolerance: float = 0.001

    needs = "predictions"
    mean_of = "holds"

    def __post_init__(self) -> None:
        if self.per not in _ROW_KINDS:
            raise MeasureError(f"Predictions: per is {self.per!r}; expected {', '.join(map(repr, _ROW_KINDS))}")
        object.__setattr__(self, "tolerance", require_number("Predictions: tolerance", self.tolerance))
        if self.tolerance < 0:
            raise MeasureError(f"Predictions: tolerance is {self.tolerance!r}; expected a number from 0")

    def units(self, suite: Suite, scores: Scores) -> Units:
        """Return a row per prediction or item, with 1 if it holds; scores of regions have the keys ``id#region``."""
        # All items of a suite have the same few formulas, so each text is parsed once.
        formula_cache: dict[str, Formula] = {}
        rows = [
            row
            for name, sentences in group_prediction_items(suite, self).items()
            for row in self._iter_rows(name, sentences, scores, formula_cache)
        ]
        ids, held, tags = zip(*rows, strict=True)
        return Units(ids, {"holds": np.array(held, np.float64)}, tags)

    def value(self, units: Units) -> float:
        """Return the share of rows that hold."""
        return mean(units["holds"])

    def _iter_rows(
        self, name: str, sentences: Sequence[Sentence], scores: Scores, formula_cache: dict[str, Formula]
    ) -> Iterator[tuple[str, bool, Tags]]:
        shared = _find_constant_tags(sentences)
        formulas = _parse_formulas(name, sentences, shared, formula_cache)
        conditions = _index_conditions(name, sentences)

        def surprisal(region: RegionTerm) -> float:
            return _compute_surprisal(region, conditions, scores)

        outcomes = {
            number: formula_holds(formula, surprisal, tolerance=self.tolerance) for number, formula in formulas.items()
        }
        # Replaced by the number and the formula below: a row is about one prediction, not about all of its item.
        row_tags = {key: value for key, value in shared.items() if not _is_prediction_tag(key)}
        if self.per == "prediction":
            for number, formula in formulas.items():
                tags = {
                    **row_tags,
                    "prediction": number,
                    "formula": str(formula),
                    "conditions": _list_conditions(formula),
                }
                yield f"{name}/prediction {number}", outcomes[number], tags
        else:
            yield name, all(outcomes.values()) if self.per == "item" else outcomes["1"], row_tags


def _find_constant_tags(sentences: Sequence[Sentence]) -> dict[str, str]:
    """Return the tags that are the same in all sentences of an item; the condition is theirs alone, by definition."""
    first, *others = sentences
    return {
        key: value
        for key, value in first.tags.items()
        if all(sentence.tags.get(key) == value for sentence in others) and key not in ("condition", "empty_regions")
    }


def _is_prediction_tag(tag: str) -> bool:
    return _TAG.fullmatch(tag) is not None


def _parse_formulas(
    name: str, sentences: Sequence[Sentence], shared: Mapping[str, str], formula_cache: dict[str, Formula]
) -> dict[str, Formula]:
    """Return the formulas of an item by their numbers: "1" for the tag prediction, "2" for prediction_2, and so on."""
    prediction_tags = {key for sentence in sentences for key in sentence.tags if _is_prediction_tag(key)}
    # Every sentence repeats the predictions of its item; a difference means that items were mixed up.
    if unshared := sorted(prediction_tags - shared.keys()):
        raise SuiteError(f"item {name!r}: its sentences do not all have the same {unshared[0]}")
    formulas: dict[str, Formula] = {}
    # By length first: prediction_10 comes after prediction_2.
    for key in sorted(prediction_tags, key=lambda key: (len(key), key)):
        text = shared[key]
        try:
            formulas[key.partition("_")[2] or "1"] = (
                formula_cache[text] if text in formula_cache else formula_cache.setdefault(text, parse_formula(text))
            )
        except SpecError as error:
            raise SuiteError(f"item {name!r}: {error}") from error
    return formulas


def _index_conditions(name: str, sentences: Sequence[Sentence]) -> dict[str, Sentence]:
    # Two sentences in one condition would leave it open whose surprisal a formula means.
    conditions = {sentence.tags["condition"]: sentence for sentence in sentences}
    if len(conditions) < len(sentences):
        raise SuiteError(f"item {name!r} has two sentences in one condition; it has {', '.join(conditions)}")
    return conditions


def _compute_surprisal(region: RegionTerm, conditions: Mapping[str, Sentence], scores: Scores) -> float:
    """Return the surprisal of a region in nats; it is 0 for a region without text."""
    sentence = conditions.get(region.condition)
    if sentence is None:
        raise SuiteError(f"a prediction mentions {region}, but the item has the conditions {', '.join(conditions)}")
    if region.number == "*":
        return -scores[sentence.id]
    # Some regions are empty in some conditions, as where a word is omitted. They have no score, and add 0 to a sum.
    if region.number in sentence.tags.get("empty_regions", "").split():
        return 0.0
    if region.number not in sentence.regions:
        raise SuiteError(f"a prediction mentions {region}, but sentence {sentence.id!r} has no region {region.number}")
    if (key := f"{sentence.id}#{region.number}") not in scores.values:
        raise ScoreError(
            f"no score of {scores.model!r} for {key!r}, that is {region}, which a prediction needs. Regions are scored "
            "by `acceptability score --regions` and region_scores; a region whose words the model skips has no score"
            f"{scores.missing_hint}."
        )
    return -scores[key]


def _list_conditions(formula: Formula) -> str:
    return ", ".join(dict.fromkeys(region.condition for region in iter_regions(formula)))
