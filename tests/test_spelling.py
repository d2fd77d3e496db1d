from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability import registry
from acceptability.errors import AcceptabilityError, SpellingError, UnknownName
from acceptability.spelling import read, read_located, write

VALUES = st.one_of(st.booleans(), st.none(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in __import__("keyword").kwlist
)


@given(NAMES, st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_written_reads_back(name: str, options: dict[str, object]) -> None:
    spelled = read(write(name, options))
    assert (spelled.name, dict(spelled.options)) == (name, options)


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_with_our_own_error(text: str) -> None:
    try:
        read(text)
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
def test_code_is_never_run(text: str) -> None:
    with pytest.raises(SpellingError, match="cannot read"):
        read(text)


def test_a_call_inside_is_only_ever_a_registered_name() -> None:
    with pytest.raises(UnknownName):
        registry.make("measure", "ADC(delta=open('x'))")


@pytest.mark.parametrize(
    ("text", "kind", "place", "options"),
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
def test_kind_place_and_options(text: str, kind: str, place: str, options: dict[str, object]) -> None:
    assert read_located(text) == (kind, place, options)


def test_a_wrong_name_gets_a_suggestion() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'PairAccuracy'"):
        registry.make("measure", "PairAcuracy")


def test_a_wrong_option_names_the_right_ones() -> None:
    with pytest.raises(SpellingError, match=r"delta=0\.5, standardise=True"):
        registry.make("measure", "ADC(dleta=1)")


def test_an_option_that_comes_twice_is_refused() -> None:
    with pytest.raises(SpellingError, match="ties comes twice"):
        registry.make("measure", "PairAccuracy(ties=0, ties=1)")


def test_reductions_nest() -> None:
    assert repr(registry.make("reduction", "exp(mean_lp)")) == "exp(of=mean_lp())"
    assert repr(registry.make("reduction", "exp(of=mean_lp())")) == "exp(of=mean_lp())"
