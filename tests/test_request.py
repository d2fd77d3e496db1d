"""What a suite asks: each different query once, with its key and its sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.request import Request
from acceptability.types import Contrast, Query, Sentence, Suite


def suite(*texts: str, contrasts: tuple[tuple[int, int], ...] = ()) -> Suite:
    sentences = tuple(Sentence(f"s{place}", text) for place, text in enumerate(texts))
    return Suite("toy", sentences, tuple(Contrast(f"s{a}", f"s{b}") for a, b in contrasts))


@given(st.lists(st.sampled_from(["a", "b", "c", "a b", "ü"]), min_size=1, max_size=30))
def test_each_different_query_once_in_order_with_all_its_sentences(texts: list[str]) -> None:
    request = Request(suite(*texts))
    different = list(dict.fromkeys(texts))
    assert [each.text for each in request] == different
    assert request[:] == [Query(text) for text in different]
    assert list(request.keys) == [Query(text).key for text in different]
    assert request.keys[1:] == [Query(text).key for text in different[1:]]
    assert len(request) == len(request.keys) == len(different)
    for place, text in enumerate(different):
        assert request.sentences(place) == [other for other, each in enumerate(texts) if each == text]
    assert request[-1] == Query(different[-1])
    with pytest.raises(IndexError):
        request[len(different)]


def test_a_key_may_end_in_zeros() -> None:
    """NumPy's strings drop zeros at their end; keys must not."""
    texts = [str(number) for number in range(3000)]
    keys = [Query(text).key for text in texts]
    assert any(key.endswith(b"\0") for key in keys), "a test that cannot fail"
    request = Request(suite(*texts))
    assert list(request.keys) == keys
    assert len(request) == len(texts)


def test_context_and_region_make_queries_differ() -> None:
    sentences = (
        Sentence("a", "he sleeps", regions={"verb": (3, 9)}),
        Sentence("b", "he sleeps", regions={"verb": (0, 2)}),
        Sentence("c", "he sleeps", regions={"verb": (3, 9)}, tags={"context": "Now"}),
        Sentence("d", "he sleeps", regions={"verb": (3, 9)}),
    )
    whole, parts = Request(Suite("toy", sentences)), Request(Suite("toy", sentences), "verb")
    assert list(whole) == [Query("he sleeps"), Query("he sleeps", "Now")]
    assert [whole.sentences(place) for place in range(2)] == [[0, 1, 3], [2]]
    assert list(parts) == [
        Query("he sleeps", "", (3, 9)),
        Query("he sleeps", "", (0, 2)),
        Query("he sleeps", "Now", (3, 9)),
    ]
    assert [parts.sentences(place) for place in range(3)] == [[0, 3], [1], [2]]
    with pytest.raises(SuiteError, match="no region 'noun'; its regions: verb"):
        Request(Suite("toy", sentences), "noun")


def test_rivals_are_asked_about_both_ways() -> None:
    request = Request(suite("a", "b", "c", contrasts=((0, 1), (0, 2))), against_rivals=True)
    found = {(each.text, each.rival): request.sentences(place) for place, each in enumerate(request)}
    assert found == {("a", "b"): [0], ("a", "c"): [0], ("b", "a"): [1], ("c", "a"): [2]}
    assert list(request.keys) == [each.key for each in request]


def test_the_same_pair_of_texts_is_asked_about_once() -> None:
    request = Request(suite("a", "b", "a", "b", contrasts=((0, 1), (2, 3))), against_rivals=True)
    assert [(each.text, each.rival) for each in request] == [("a", "b"), ("b", "a")]
    assert [request.sentences(place) for place in range(2)] == [[0, 2], [1, 3]]


def test_a_sentence_without_a_rival_is_named() -> None:
    with pytest.raises(SuiteError, match="sentence 's2' stands in no contrast"):
        Request(suite("a", "b", "c", contrasts=((0, 1),)), against_rivals=True)
