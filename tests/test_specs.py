from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability import registry
from acceptability.errors import AcceptabilityError, SpecError, UnknownName
from acceptability.specs import format_spec, parse_model_spec, parse_spec

VALUES = st.one_of(st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in __import__("keyword").kwlist
)


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=4))
def test_a_formatted_spec_parses_back(name: str, options: dict[str, object]) -> None:
    spec = parse_spec(format_spec(name, options))
    assert (spec.name, dict(spec.options)) == (name, options)


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_raises_our_own_error(text: str) -> None:
    try:
        parse_spec(text)
    except AcceptabilityError:
        pass


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').system('x')",
        "ADC(delta=",
        "ADC(**{'delta': 1})",
        "1 + 1",
        "ADC(delta=open('x'))(1)",
        "",
        "a b",
    ],
)
def test_code_in_a_spec_is_never_executed(text: str) -> None:
    with pytest.raises(SpecError, match="cannot read"):
        parse_spec(text)


def test_a_nested_call_can_only_be_a_registered_name() -> None:
    with pytest.raises(UnknownName):
        registry.make("measure", "ADC(delta=open('x'))")


@pytest.mark.parametrize(
    ("text", "kind", "location", "options"),
    [
        ("causal:gpt2", "causal", "gpt2", {}),
        ("causal:a/b@main(bos=None)", "causal", "a/b@main", {"bos": None}),
        ("masked:C:/x (old)/m", "masked", "C:/x (old)/m", {}),
        ("masked:x (old)(variant='pll')", "masked", "x (old)", {"variant": "pll"}),
        ("ngram:f()", "ngram", "f", {}),
        ("uniform(vocabulary=10)", "uniform", "", {"vocabulary": 10}),
        ("causal:m(bos='(a=1)')", "causal", "m", {"bos": "(a=1)"}),
        ("causal:my (a=b)/v1(bos=None)", "causal", "my (a=b)/v1", {"bos": None}),
        ("sphinx-trigram(lower=True)", "sphinx-trigram", "", {"lower": True}),
    ],
)
def test_model_specs_have_kind_location_and_options(
    text: str, kind: str, location: str, options: dict[str, object]
) -> None:
    assert parse_model_spec(text) == (kind, location, options)


def test_the_error_about_a_misspelt_name_suggests_the_closest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'PairAccuracy'"):
        registry.make("measure", "PairAcuracy")


def test_the_error_about_an_unknown_option_lists_the_options() -> None:
    with pytest.raises(SpecError, match=r"delta=0\.5, standardise=True"):
        registry.make("measure", "ADC(dleta=1)")


def test_a_repeated_option_is_refused() -> None:
    with pytest.raises(SpecError, match="ties is given twice"):
        registry.make("measure", "PairAccuracy(ties=0, ties=1)")


def test_reductions_nest() -> None:
    assert repr(registry.make("reduction", "exp(mean_lp)")) == "exp(of=mean_lp())"
    assert repr(registry.make("reduction", "exp(of=mean_lp())")) == "exp(of=mean_lp())"
