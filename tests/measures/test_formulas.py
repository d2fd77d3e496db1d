"""The formulas of predictions: parsing, syntax errors and evaluation."""

from __future__ import annotations

import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability.errors import SpecError
from acceptability.measures import predictions
from acceptability.measures.predictions import (
    BitsConstant,
    BooleanFormula,
    Formula,
    Quantity,
    RegionTerm,
    Sum,
    SurprisalComparison,
    formula_holds,
    iter_regions,
    parse_formula,
)

NAMES = st.text("abcXYZ019_-é.", min_size=1, max_size=6)
REGIONS = st.builds(RegionTerm, st.one_of(st.just("*"), st.integers(0, 99).map(str)), NAMES)
NUMBERS = st.decimals(-999, 999, places=3).map(lambda value: BitsConstant(float(value)))


def _sums(terms: st.SearchStrategy[Quantity]) -> st.SearchStrategy[Sum]:
    more = st.lists(st.tuples(st.sampled_from("+-"), terms), min_size=1, max_size=3)
    return st.builds(lambda first, rest: Sum((("+", first), *rest)), terms, more)


QUANTITIES = st.recursive(REGIONS | NUMBERS, _sums, max_leaves=6)
COMPARISONS = st.builds(SurprisalComparison, QUANTITIES, st.sampled_from("<>="), QUANTITIES)
FORMULAS = st.recursive(
    COMPARISONS,
    lambda parts: st.builds(BooleanFormula, st.sampled_from("&|"), st.lists(parts, min_size=2, max_size=3).map(tuple)),
    max_leaves=6,
)


@given(FORMULAS)
def test_the_string_of_a_formula_parses_back(formula: Formula) -> None:
    assert parse_formula(str(formula)) == formula


@given(st.text("(*;%ab%)[]+-<>=&|0123. \n", max_size=60) | st.text(max_size=60))
def test_any_text_is_a_formula_or_a_spec_error(text: str) -> None:
    try:
        formula = parse_formula(text)
    except SpecError:
        return
    assert parse_formula(str(formula)) == formula


@given(FORMULAS, st.data())
def test_a_damaged_formula_raises_only_spec_errors(formula: Formula, data: st.DataObject) -> None:
    text = str(formula)
    position = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(["", "(", "]", "&", "=", "%", ";", "__import__('os')", "lambda: 0", "**", "1e9"]))
    with suppress(SpecError):
        parse_formula(text[:position] + put + text[position + 1 :])


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("", 1, "a region"),
        ("(1;%a%)", 1, "a comparison"),
        ("(1;%a%) <", 10, "a region"),
        ("(1;%a%) < (1;%b%) < (1;%c%)", 19, "& or | between two comparisons"),
        ("(1;%a%) & (1;%b%)", 1, "a comparison"),
        ("[(1;%a%) < (1;%b%)] + (1;%c%) > 0", 1, "a quantity"),
        ("[(1;%a%) < (1;%b%)", 19, "']'"),
        ("[(1;%a%) < (1;%b%))", 19, "']'"),
        ("(1;%a%) < (1;%b%) x", 19, "a region"),
        ("(1;%a%) < (1;%b%) 3", 19, "an operator"),
        ("(1;a) < (1;b)", 3, "a region"),
        ("(x;%a%) < 3", 2, "a region"),
        ("(1;%a%) <= (1;%b%)", 10, "a region"),
        ("(1;%a%) * 2 < 3", 9, "a region"),
        ("(1;%a%) < 1e3", 11, "a region"),
        ("(1;%a%) < -(1;%b%)", 12, "a number after -"),
        ("a.__class__", 1, "a region"),
    ],
)
def test_syntax_errors_report_the_position(text: str, position: int, expected: str) -> None:
    with pytest.raises(SpecError, match=f"at character {position} ") as caught:
        parse_formula(text)
    assert f"expected {expected}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "[" * 9000 + "]", "(" * 9_999, "-" * 9_999, "[" * 41 + "1<2" + "]" * 41, "&".join(["[1<2"] * 2000)],
)
def test_hostile_depth_is_an_error_without_backtracking(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens_read = 0
    advance = predictions._FormulaParser.advance

    def count_and_advance(parser: predictions._FormulaParser) -> None:
        nonlocal tokens_read
        tokens_read += 1
        advance(parser)

    monkeypatch.setattr(predictions._FormulaParser, "advance", count_and_advance)
    with pytest.raises(SpecError):
        parse_formula(text)
    # Each token is read once: the work grows with the length of the text only.
    assert tokens_read <= len(text) + 1


def test_a_formula_that_is_too_long_is_an_error() -> None:
    with pytest.raises(SpecError, match="too long"):
        parse_formula("1<2" + " " * 10_000)


def test_a_long_conjunction_is_not_deep() -> None:
    formula = parse_formula("&".join(["(1;%a%)<2"] * 900))
    assert isinstance(formula, BooleanFormula)
    assert len(formula.parts) == 900
    assert formula_holds(formula, lambda region: 1.0)


def test_brackets_and_spaces_do_not_matter() -> None:
    assert parse_formula(" [ ( (2;%a%) - (2;%b%) ) ]>0 ") == parse_formula("(2;%a%)-(2;%b%)>0")


def test_and_binds_more_than_or_and_sums_go_from_the_left() -> None:
    formula = parse_formula("1<2 | 1>2 & 1>2")
    assert isinstance(formula, BooleanFormula)
    assert formula.sign == "|"
    assert formula_holds(formula, lambda region: 0.0)
    assert formula_holds(parse_formula("5 - 2 + 1 = 4"), lambda region: 0.0)


def test_all_parts_of_a_conjunction_count() -> None:
    assert not formula_holds(parse_formula("1<2 & 1<2 & 2<1"), lambda region: 0.0)
    assert formula_holds(parse_formula("2<1 | 2<1 | 1<2"), lambda region: 0.0)


def test_equal_means_within_the_tolerance() -> None:
    formula = parse_formula("(1;%a%) = (1;%b%)")
    surprisals = {"a": 7.0 * math.log(2), "b": 7.0008 * math.log(2)}
    assert formula_holds(formula, lambda region: surprisals[region.condition])
    assert not formula_holds(formula, lambda region: surprisals[region.condition], tolerance=0.0005)


def test_regions_of_a_formula() -> None:
    formula = parse_formula("[(5;%a%)+(6;%a%)] > (*;%b%) & (5;%a%) > 3")
    assert [str(region) for region in iter_regions(formula)] == ["(5;%a%)", "(6;%a%)", "(*;%b%)", "(5;%a%)"]


@settings(max_examples=30)
@given(COMPARISONS)
def test_evaluation_agrees_with_python_arithmetic(formula: SurprisalComparison) -> None:
    def value(quantity: Quantity) -> float:
        if isinstance(quantity, Sum):
            return sum(value(term) if sign == "+" else -value(term) for sign, term in quantity.terms)
        return quantity.value if isinstance(quantity, BitsConstant) else float(len(quantity.condition))  # bits

    left, right = value(formula.left), value(formula.right)
    if abs(left - right) > 0.01:
        expected = {"<": left < right, ">": left > right, "=": False}[formula.sign]
        assert formula_holds(formula, lambda region: math.log(2) * len(region.condition)) == expected
