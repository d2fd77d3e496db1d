"""Models made of Python functions: what they score, and that no other function has their signature."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from acceptability import evaluate, from_function, judge, score, tokens
from acceptability.errors import ModelError, ScoreError, SpecError
from acceptability.models import function_model

FACTOR = 2.0
UNHASHED = object()


def brevity(sentence: str) -> float:
    return -float(len(sentence))


def weighted(sentence: str) -> float:
    return FACTOR * brevity(sentence)


def test_a_score_comes_back_as_it_was_given() -> None:
    model = from_function(lambda sentence: 0.1 * len(sentence), name="tenths")
    assert score(["Cats sleep."], model)["1"] == 0.1 * len("Cats sleep.")
    assert judge("aa", "a", model=model)[0].score == 0.2


def test_functions_take_part_by_their_names() -> None:
    results = evaluate("starter", [from_function(brevity, name="brevity"), "uniform"], measure="PairAccuracy")
    assert [result.model for result in results] == ["brevity", "uniform"]
    assert "model:function:brevity(source=" in results[0].signature


def test_tokens_are_found_in_the_text() -> None:
    def split(sentence: str) -> list[tuple[str, float]]:
        return [("Cats", -1.0), ("Ġsl", -2.0), ("eep", -3.0), (".", -4.0), ("</s>", -0.5)]

    model = from_function(split, name="split")
    assert [(row["token"], row["start"], row["end"]) for row in tokens("Cats sleep.", model)] == [
        ("Cats", 0, 4),
        ("sl", 5, 7),
        ("eep", 7, 10),
        (".", 10, 11),
        ("</s>", 11, 11),
    ]
    assert score(["Cats sleep."], model)["1"] == -10.5
    assert score(["Cats sleep."], model, "mean_lp")["1"] == -2.1


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "returned None; expected a number"),
        (True, "returned True; expected a number"),
        ("0.5", "returned '0.5'"),
        ({}, "returned dict"),
        ([("Cats", 0.5)], "0.5 for the token 'Cats'"),
        ([("Cats", -math.inf)], "-inf for the token"),
        ([("Dogs", -1.0)], "the token 'Dogs', which does not follow in the text at character 0"),
        ([("Cats", -1.0, 3)], "in its list; expected"),
    ],
)
def test_nonsense_is_refused(answer: Any, message: str) -> None:
    model = from_function(lambda sentence: answer, name="nonsense", version="1")
    with pytest.raises(ModelError, match=message):
        score(["Cats sleep."], model)


def test_scores_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ScoreError, match=r"nan: the function gave a score that is not finite for 'Cats sleep\.': nan"):
        score(["Cats sleep."], from_function(lambda sentence: math.nan, name="nan"))


def test_an_exception_of_the_function_names_sentence_and_model() -> None:
    def divide(sentence: str) -> float:
        return 1 / (len(sentence) - len("Cats sleep."))

    model = from_function(divide, name="quotient")
    with pytest.raises(
        ModelError, match=r"quotient: for 'Cats sleep\.' the function raised ZeroDivisionError"
    ) as raised:
        score(["Cats.", "Cats sleep."], model)
    assert isinstance(raised.value.__cause__, ZeroDivisionError)


def test_a_missing_name_is_an_error_of_ours() -> None:
    with pytest.raises(SpecError, match="name='mine'"):
        from_function(brevity)


def test_a_sentence_score_allows_no_reduction_of_tokens() -> None:
    with pytest.raises(ScoreError, match="which a classifier does not give"):
        score(["Cats sleep."], from_function(brevity, name="brevity"), "mean_lp")


def test_a_context_is_given_or_refused() -> None:
    with pytest.raises(ModelError, match="add a parameter context"):
        score(["Cats sleep."], from_function(brevity, name="brevity"), context="Look!")
    model = from_function(lambda sentence, context="": float(len(context)), name="lengths")
    assert score(["Cats sleep.", "Cats sleep."], model, context=["", "Look!"]).values == {"1": 0.0, "2": 5.0}


def test_regions_are_refused() -> None:
    from acceptability import Sentence, Suite

    suite = Suite("s", (Sentence("a", "Cats sleep.", regions={"verb": (5, 10)}),))
    with pytest.raises(ModelError, match="whole sentences"):
        score(suite, from_function(brevity, name="brevity"), region="verb")


# --- signatures ---


def make_scorer(weight: float) -> Any:
    def scorer(sentence: str) -> float:
        return weight * len(sentence)

    return scorer


def signature_of(function: Any, **options: str) -> str:
    return from_function(function, name="same", **options).signature


def test_the_signature_follows_what_the_function_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    assert signature_of(make_scorer(1.0)) == signature_of(make_scorer(1.0)) != signature_of(make_scorer(2.0))
    before = signature_of(weighted)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    assert signature_of(weighted) != before


def test_a_function_that_the_function_calls_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signature_of(weighted)
    monkeypatch.setitem(globals(), "brevity", lambda sentence: float(len(sentence)))
    assert signature_of(weighted) != before


def test_two_lambdas_on_a_line_differ() -> None:
    first, second = (lambda text: len(text)), (lambda text: -len(text))
    assert signature_of(first) != signature_of(second)


def test_defaults_and_inner_functions_count() -> None:
    assert signature_of(lambda text, weight=1.0: weight) != signature_of(lambda text, weight=2.0: weight)
    assert signature_of(lambda text: sum(len(word) * FACTOR for word in text)) != signature_of(
        lambda text: sum(len(word) + FACTOR for word in text)
    )


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda text: hash(UNHASHED), "it uses 'UNHASHED', which is of type object"),
        (partial(lambda weight, text: weight, 1.0), "an object of the class partial"),
        (lambda text: next(hash(UNHASHED) for _ in text), "it uses 'UNHASHED'"),
    ],
)
def test_what_cannot_be_hashed_needs_a_version(function: Any, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        signature_of(function)
    assert signature_of(function, version="1") != signature_of(function, version="2")


def test_two_objects_cannot_have_one_version() -> None:
    class Weight:
        def __init__(self, weight: float) -> None:
            self.weight = weight

        def __call__(self, text: str) -> float:
            return self.weight

    first, second = Weight(1.0), Weight(2.0)
    assert signature_of(first, version="1") == signature_of(first, version="1")
    with pytest.raises(SpecError, match="another object has the name 'same' and the version '1'"):
        signature_of(second, version="1")


def test_a_function_whose_globals_changed_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    model = from_function(weighted, name="weighted")
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    with pytest.raises(ModelError, match="has changed; call from_function again"):
        score(["Cats sleep."], model)


def test_outputs_are_stored_under_the_signature(own_home: Path) -> None:
    calls = []

    def counted(sentence: str) -> float:
        calls.append(sentence)
        return 1.0

    for _ in range(2):
        score(["Cats sleep."], from_function(counted, name="counted", version="1"))
    assert calls == ["Cats sleep."]
    score(["Cats sleep."], from_function(counted, name="counted", version="2"))
    assert len(calls) == 2


@pytest.mark.parametrize(("name", "version"), [("", "1"), ("a b", "1"), ("a|b", "1"), ("ok", 1)])
def test_wrong_names_and_versions_are_refused(name: str, version: Any) -> None:
    with pytest.raises(SpecError, match="from_function: the (name|version) is"):
        from_function(brevity, name=name, version=version)
    with pytest.raises(SpecError, match="expected a function"):
        from_function(3, name="three")  # type: ignore[arg-type]


def test_modules_of_the_user_are_not_taken_for_installed_ones() -> None:
    assert function_model._is_installed("math")
    assert function_model._is_installed("numpy.linalg")
    assert not function_model._is_installed("__main__")
    assert not function_model._is_installed(__name__)
