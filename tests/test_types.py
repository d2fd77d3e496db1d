from __future__ import annotations

import numpy as np
import pytest

from acceptability.errors import ScoreError, SuiteError
from acceptability.types import Contrast, Query, Scores, Sentence, Suite, TokenScores, Units, make_contrast

GOOD, BAD = Sentence("g", "Cats sleep.", tags={"item": "1"}), Sentence("b", "Cats sleeps.", tags={"item": "1"})


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"id": "", "text": "x"}, "id '' is empty"),
        ({"id": "a", "text": "  "}, "'a' is empty"),
        ({"id": "a", "text": "x\ud800"}, "surrogate"),
        ({"id": "\udc00", "text": "x"}, "surrogate"),
        ({"id": "a", "text": "x", "label": 2}, "label is 2"),
        ({"id": "a", "text": "x", "rating": float("nan")}, "finite"),
        ({"id": "a", "text": "x", "regions": {"t": (0, 2)}}, "does not lie within"),
        ({"id": "a", "text": "x", "regions": {"t": (0, 0)}}, "does not lie within"),
    ],
)
def test_a_sentence_is_validated_on_construction(kwargs: dict[str, object], message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        Sentence(**kwargs)


@pytest.mark.parametrize(
    ("sentences", "contrasts", "message"),
    [
        ((), (), "no sentences"),
        ((GOOD, GOOD), (), "two sentences have the id 'g'"),
        ((GOOD,), (Contrast("g", "b"),), "names 'b', which is no sentence"),
        ((GOOD,), (Contrast("g", "g"),), "contrasted with itself"),
        ((GOOD, BAD), (Contrast("g", "b"), Contrast("g", "b")), "twice"),
    ],
)
def test_a_suite_is_validated_on_construction(sentences: tuple, contrasts: tuple, message: str) -> None:
    with pytest.raises(SuiteError, match=message):
        Suite("s", sentences, contrasts)


def test_the_hash_depends_on_everything_but_order_and_name() -> None:
    suite = Suite("s", (GOOD, BAD), (make_contrast(GOOD, BAD),))
    assert Suite("t", (BAD, GOOD), suite.contrasts).hash == suite.hash
    other = Sentence("b", "Cats sleeps.", tags={"item": "2"})
    assert Suite("s", (GOOD, other), (make_contrast(GOOD, other),)).hash != suite.hash
    assert Suite("s", (GOOD, BAD)).hash != suite.hash
    assert Suite("s", (GOOD, BAD), (Contrast("g", "b", {"item": "9"}),)).hash != suite.hash


def test_a_missing_score_names_the_sentence() -> None:
    with pytest.raises(ScoreError, match="for sentence 'b'"):
        Scores({"a": 1.0}, "m")["b"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_scores_are_finite(value: float) -> None:
    with pytest.raises(ScoreError, match="'a'"):
        Scores({"a": value}, "m")


def test_token_scores_are_complete_and_finite() -> None:
    with pytest.raises(ScoreError, match="differ in number"):
        TokenScores("a", ("a",), ((0, 1),), np.zeros(2, dtype=np.float32))
    with pytest.raises(ScoreError, match="not finite"):
        TokenScores("a", ("a",), ((0, 1),), np.array([-np.inf], dtype=np.float32))


def test_queries_have_different_keys() -> None:
    queries = [Query("a b"), Query("b", context="a"), Query("a b", target=(0, 1)), Query("a b", target=(2, 3))]
    assert len({query.key for query in queries}) == 4


def test_context_and_text_are_joined_by_one_space() -> None:
    assert Query("b", context="a").full_text == Query("b", context="a ").full_text == "a b"
    assert Query("b", context="a").text_start == 2


def test_the_codes_of_tags_are_those_of_the_rows_that_are_taken() -> None:
    tags = ({"item": "b"}, {"item": "a"}, {}, {"item": "c"}, {"item": "a"})
    units = Units(tuple("vwxyz"), {}, tags)
    values, codes = units.encode_tag("item")
    assert (values, codes.tolist()) == (("a", "b", "c"), [1, 0, -1, 2, 0])
    # Taken from the codes of all rows here, and computed from the tags of its own rows there.
    for rows in ([3, 1, 1], [2, 0], [2], [], [0, 1, 2, 3, 4]):
        part = units.take(np.array(rows, dtype=np.int64))
        values, codes = Units(part.ids, {}, part.tags).encode_tag("item")
        assert part.encode_tag("item")[0] == values
        assert part.encode_tag("item")[1].tolist() == codes.tolist()
    assert units.encode_tag("mark")[1].tolist() == [-1] * 5
