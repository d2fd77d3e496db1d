"""The distinct queries of a suite, with their keys and sentences."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.api.scoring import SuiteQueries
from acceptability.errors import SuiteError
from acceptability.types import Contrast, Query, Sentence, Suite


def suite(*texts: str, contrasts: tuple[tuple[int, int], ...] = ()) -> Suite:
    sentences = tuple(Sentence(f"s{index}", text) for index, text in enumerate(texts))
    return Suite("toy", sentences, tuple(Contrast(f"s{a}", f"s{b}") for a, b in contrasts))


@given(st.lists(st.sampled_from(["a", "b", "c", "a b", "ü"]), min_size=1, max_size=30))
def test_distinct_queries_come_once_in_order_with_their_sentences(texts: list[str]) -> None:
    queries = SuiteQueries(suite(*texts))
    different = list(dict.fromkeys(texts))
    assert [query.text for query in queries] == different
    assert queries[:] == [Query(text) for text in different]
    assert list(queries.keys) == [Query(text).key for text in different]
    assert queries.keys[1:] == [Query(text).key for text in different[1:]]
    assert len(queries) == len(queries.keys) == len(different)
    for index, text in enumerate(different):
        assert queries.sentence_indices(index) == [i for i, other in enumerate(texts) if other == text]
    assert queries[-1] == Query(different[-1])
    with pytest.raises(IndexError):
        queries[len(different)]


def test_a_key_may_end_in_zeros() -> None:
    """NumPy strips trailing zero bytes from strings; keys must keep them."""
    texts = [str(number) for number in range(3000)]
    keys = [Query(text).key for text in texts]
    assert any(key.endswith(b"\0") for key in keys), "a test that cannot fail"
    queries = SuiteQueries(suite(*texts))
    assert list(queries.keys) == keys
    assert len(queries) == len(texts)


def test_context_and_region_make_queries_differ() -> None:
    sentences = (
        Sentence("a", "he sleeps", regions={"verb": (3, 9)}),
        Sentence("b", "he sleeps", regions={"verb": (0, 2)}),
        Sentence("c", "he sleeps", regions={"verb": (3, 9)}, tags={"context": "Now"}),
        Sentence("d", "he sleeps", regions={"verb": (3, 9)}),
    )
    whole, parts = SuiteQueries(Suite("toy", sentences)), SuiteQueries(Suite("toy", sentences), "verb")
    assert list(whole) == [Query("he sleeps"), Query("he sleeps", "Now")]
    assert [whole.sentence_indices(index) for index in range(2)] == [[0, 1, 3], [2]]
    assert list(parts) == [
        Query("he sleeps", "", (3, 9)),
        Query("he sleeps", "", (0, 2)),
        Query("he sleeps", "Now", (3, 9)),
    ]
    assert [parts.sentence_indices(index) for index in range(3)] == [[0, 3], [1], [2]]
    with pytest.raises(SuiteError, match="no region 'noun'; its regions: verb"):
        SuiteQueries(Suite("toy", sentences), "noun")


def test_rivals_give_a_query_in_each_direction() -> None:
    queries = SuiteQueries(suite("a", "b", "c", contrasts=((0, 1), (0, 2))), against_rivals=True)
    sentences_of = {(query.text, query.rival): queries.sentence_indices(index) for index, query in enumerate(queries)}
    assert sentences_of == {("a", "b"): [0], ("a", "c"): [0], ("b", "a"): [1], ("c", "a"): [2]}
    assert list(queries.keys) == [query.key for query in queries]


def test_a_repeated_pair_of_texts_gives_one_query() -> None:
    queries = SuiteQueries(suite("a", "b", "a", "b", contrasts=((0, 1), (2, 3))), against_rivals=True)
    assert [(query.text, query.rival) for query in queries] == [("a", "b"), ("b", "a")]
    assert [queries.sentence_indices(index) for index in range(2)] == [[0, 2], [1, 3]]


def test_a_sentence_without_a_rival_is_named() -> None:
    with pytest.raises(SuiteError, match="sentence 's2' is in no contrast"):
        SuiteQueries(suite("a", "b", "c", contrasts=((0, 1),)), against_rivals=True)
