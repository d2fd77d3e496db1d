"""The formulas of predictions: what is read, what is refused, what they say."""

from __future__ import annotations

import math
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability.errors import SpellingError
from acceptability.formulas import Comparison, Formula, Joined, Number, Quantity, Region, Sum, holds, parse, regions

NAMES = st.text("abcXYZ019_-é.", min_size=1, max_size=6)
REGIONS = st.builds(Region, st.one_of(st.just("*"), st.integers(0, 99).map(str)), NAMES)
NUMBERS = st.decimals(-999, 999, places=3).map(lambda value: Number(float(value)))


def _sums(terms: st.SearchStrategy[Quantity]) -> st.SearchStrategy[Sum]:
    more = st.lists(st.tuples(st.sampled_from("+-"), terms), min_size=1, max_size=3)
    return st.builds(lambda first, rest: Sum((("+", first), *rest)), terms, more)


QUANTITIES = st.recursive(REGIONS | NUMBERS, _sums, max_leaves=6)
COMPARISONS = st.builds(Comparison, QUANTITIES, st.sampled_from("<>="), QUANTITIES)
FORMULAS = st.recursive(
    COMPARISONS,
    lambda parts: st.builds(Joined, st.sampled_from("&|"), st.lists(parts, min_size=2, max_size=3).map(tuple)),
    max_leaves=6,
)


@settings(deadline=None)
@given(FORMULAS)
def test_what_is_printed_reads_back(formula: Formula) -> None:
    assert parse(str(formula)) == formula


@settings(deadline=None)
@given(st.text("(*;%ab%)[]+-<>=&|0123. \n", max_size=60) | st.text(max_size=60))
def test_any_text_is_a_formula_or_a_spelling_error(text: str) -> None:
    try:
        formula = parse(text)
    except SpellingError:
        return
    assert parse(str(formula)) == formula


@settings(deadline=None)
@given(FORMULAS, st.data())
def test_a_damaged_formula_never_fails_otherwise(formula: Formula, data: st.DataObject) -> None:
    text = str(formula)
    place = data.draw(st.integers(0, len(text)))
    put = data.draw(st.sampled_from(["", "(", "]", "&", "=", "%", ";", "__import__('os')", "lambda: 0", "**", "1e9"]))
    with suppress(SpellingError):
        parse(text[:place] + put + text[place + 1 :])


@pytest.mark.parametrize(
    ("text", "place", "expected"),
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
def test_what_is_refused_is_named_with_its_place(text: str, place: int, expected: str) -> None:
    with pytest.raises(SpellingError, match=f"at character {place} ") as caught:
        parse(text)
    assert f"expected {expected}" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    ["[" * 5000, "[" * 9000 + "]", "(" * 9_999, "-" * 9_999, "[" * 41 + "1<2" + "]" * 41, "&".join(["[1<2"] * 2000)],
)
def test_hostile_depth_is_refused_at_once(text: str) -> None:
    start = time.process_time()
    with pytest.raises(SpellingError):
        parse(text)
    assert time.process_time() - start < 1


def test_a_formula_that_is_too_long_is_refused() -> None:
    with pytest.raises(SpellingError, match="too long"):
        parse("1<2" + " " * 10_000)


def test_a_long_chain_is_no_deep_one() -> None:
    formula = parse("&".join(["(1;%a%)<2"] * 900))
    assert isinstance(formula, Joined)
    assert len(formula.parts) == 900
    assert holds(formula, lambda region: 1.0)


def test_brackets_and_spaces_do_not_matter() -> None:
    assert parse(" [ ( (2;%a%) - (2;%b%) ) ]>0 ") == parse("(2;%a%)-(2;%b%)>0")


def test_and_binds_more_than_or_and_sums_go_from_the_left() -> None:
    formula = parse("1<2 | 1>2 & 1>2")
    assert isinstance(formula, Joined)
    assert formula.sign == "|"
    assert holds(formula, lambda region: 0.0)
    assert holds(parse("5 - 2 + 1 = 4"), lambda region: 0.0)


def test_all_parts_of_a_conjunction_count() -> None:
    assert not holds(parse("1<2 & 1<2 & 2<1"), lambda region: 0.0)
    assert holds(parse("2<1 | 2<1 | 1<2"), lambda region: 0.0)


def test_equal_means_within_the_tolerance() -> None:
    formula = parse("(1;%a%) = (1;%b%)")
    surprisals = {"a": 7.0 * math.log(2), "b": 7.0008 * math.log(2)}
    assert holds(formula, lambda region: surprisals[region.condition])
    assert not holds(formula, lambda region: surprisals[region.condition], tolerance=0.0005)


def test_the_regions_of_a_formula_are_known() -> None:
    formula = parse("[(5;%a%)+(6;%a%)] > (*;%b%) & (5;%a%) > 3")
    assert [str(each) for each in regions(formula)] == ["(5;%a%)", "(6;%a%)", "(*;%b%)", "(5;%a%)"]


@settings(max_examples=30, deadline=None)
@given(COMPARISONS)
def test_a_formula_is_true_of_surprisals_as_python_would_have_it(formula: Comparison) -> None:
    def value(quantity: Quantity) -> float:
        if isinstance(quantity, Sum):
            return sum(value(each) if sign == "+" else -value(each) for sign, each in quantity.terms)
        return quantity.value if isinstance(quantity, Number) else float(len(quantity.condition))  # bits

    left, right = value(formula.left), value(formula.right)
    if abs(left - right) > 0.01:
        wanted = {"<": left < right, ">": left > right, "=": False}[formula.sign]
        assert holds(formula, lambda region: math.log(2) * len(region.condition)) == wanted
