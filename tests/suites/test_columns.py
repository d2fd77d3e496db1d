"""Suites as columns: the same sentences and contrasts as suites of tuples, and the same parts, copies and errors."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from acceptability.errors import SuiteError
from acceptability.suites import add_minimal_pairs, columns, load_suite, pair_within_items
from acceptability.suites.columns import SentenceView, TextColumn, build_table
from acceptability.types import Contrast, ContrastColumns, Sentence, SentenceColumns, Suite, make_contrast

SHARED = {"item": "1", "set": "ä"}
PLAIN = Suite(
    "plain",
    (
        Sentence("x/1/good", "Cats sleep.", label=1, rating=1.5, regions={"verb": (5, 10), "np": (0, 4)}, tags=SHARED),
        Sentence("x/1/bad", "Cats\0 sleeps.", label=0, tags=SHARED),
        Sentence("x/2/good", "Кошки спят.", rating=-0.25, tags={"set": "b", "item": "2"}),
        Sentence("x/20", "一匹の猫。", tags={"item": "3", "extra": ""}),
        Sentence("y", "Dogs sleep.", label=1, tags={"item": "3"}),
    ),
    (
        Contrast("x/1/good", "x/1/bad", SHARED),
        Contrast("x/2/good", "x/20", {"varied": "\ud800", "item": "2"}),
        Contrast("y", "x/20", {"item": "3"}),
    ),
    unit="item",
    derived_tags=("set",),
)


def as_columns(suite: Suite) -> Suite:
    return build_table(suite).open_suite(suite.name, suite.unit)


def describe(suite: Suite) -> tuple[object, ...]:
    """Everything in a suite, also what equality does not see: types, and the order of tags and regions."""
    rows = [
        (type(one), one.id, one.text, repr(one.label), repr(one.rating), list(one.regions.items()), [*one.tags.items()])
        for one in suite.sentences
    ]
    pairs = [(type(one), one.better, one.worse, list(one.tags.items())) for one in suite.contrasts]
    return suite.name, suite.unit, suite.derived_tags, suite.hash, suite.tag_names, rows, pairs


def check_same(ours: Suite, plain: Suite) -> None:
    assert describe(ours) == describe(plain)
    assert ours == plain
    assert plain == ours
    assert hash(ours) == hash(plain)
    # What is read in whole columns.
    assert list(ours.ids) == list(plain.ids)
    assert list(ours.texts) == list(plain.texts)
    np.testing.assert_array_equal(ours.labels, plain.labels)
    np.testing.assert_array_equal(ours.ratings, plain.ratings)
    np.testing.assert_array_equal(ours.pairs, plain.pairs)
    for tag in (*plain.tag_names, "no such tag"):
        for column, expected in (
            (ours.sentence_tag(tag), plain.sentence_tag(tag)),
            (ours.contrast_tag(tag), plain.contrast_tag(tag)),
        ):
            assert column.values == expected.values
            np.testing.assert_array_equal(column.codes, expected.codes)
    assert dict(ours.by_id) == dict(plain.by_id)


def test_columns_are_the_suite() -> None:
    ours = as_columns(PLAIN)
    assert isinstance(ours.sentences, SentenceColumns)
    assert isinstance(ours.contrasts, ContrastColumns)
    check_same(ours, PLAIN)
    # Built one at a time, without those before.
    alone = as_columns(PLAIN)
    for position in (3, 0, -1, 2, 1):
        assert repr(alone.sentences[position]) == repr(PLAIN.sentences[position])
    for position in (2, -2, 0):
        assert repr(alone.contrasts[position]) == repr(PLAIN.contrasts[position])
    with pytest.raises(IndexError):
        alone.sentences[5]
    assert alone.sentences[1:4] == PLAIN.sentences[1:4]
    assert alone.sentences[::-2] == PLAIN.sentences[::-2]
    assert alone.sentences != list(PLAIN.sentences)
    assert PLAIN.sentences[:1] + alone.sentences == (PLAIN.sentences[0], *PLAIN.sentences)
    assert alone.sentences + PLAIN.sentences[:1] == (*PLAIN.sentences, PLAIN.sentences[0])
    assert len(repr(alone.sentences)) < 80
    assert PLAIN.sentences[2] in alone.sentences
    assert alone.sentences.index(PLAIN.sentences[2]) == 2


@pytest.mark.parametrize("make_large", [False, True])
def test_the_rows_of_a_large_suite_are_built_again_each_time(make_large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if make_large:
        monkeypatch.setattr(columns, "_MAX_KEPT", 1)
        monkeypatch.setattr(columns, "_BLOCK", 2)
    ours = as_columns(PLAIN)
    check_same(ours, PLAIN)
    assert (next(iter(ours.sentences)) is next(iter(ours.sentences))) == (not make_large)
    assert ours.by_id["x/20"] == PLAIN.by_id["x/20"]
    assert "x/3" not in ours.by_id
    with pytest.raises(KeyError):
        ours.by_id["x/3"]
    check_same(ours.filter(item="3"), PLAIN.filter(item="3"))


def test_many_looks_keep_what_was_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_MANY_LOOKS", 3)
    sentences = as_columns(PLAIN).sentences
    assert sentences[0] is not sentences[0]
    assert sentences[0] is sentences[0] is sentences[-5]


def test_the_two_sentences_of_a_pair_share_their_tags() -> None:
    ours = as_columns(PLAIN)
    good, bad = ours.sentences[0], ours.sentences[1]
    assert good.tags is bad.tags is ours.contrasts[0].tags
    first, second = list(as_columns(PLAIN).sentences)[:2]
    assert first.tags is second.tags


@pytest.mark.parametrize(
    "where", [{"item": "1"}, {"item": "3"}, {"varied": "\ud800"}, {"item": "2", "set": "b"}, {"extra": ""}]
)
def test_parts_are_those_of_the_suite(where: dict[str, str]) -> None:
    ours, plain = as_columns(PLAIN).filter(**where), PLAIN.filter(**where)
    assert isinstance(ours.sentences, SentenceColumns)
    check_same(ours, plain)
    # A part of a part.
    check_same(ours.filter(**where), plain.filter(**where))


def test_parts_below_a_path_are_those_of_the_suite() -> None:
    for path in ("x", "x/1", "x/2", "plain/x/2", "y", "x/20", "plain", "", "x/1/"):
        ours, plain = as_columns(PLAIN).select_below(path), PLAIN.select_below(path)
        assert (ours is None) == (plain is None), path
        if ours and plain:
            check_same(ours, plain)
    assert [sentence.id for sentence in PLAIN.select_below("plain/x/2").sentences] == ["x/2/good"]
    assert PLAIN.select_below("plain") is None


def test_a_value_that_no_sentence_has_is_refused_alike() -> None:
    for suite in (PLAIN, as_columns(PLAIN)):
        with pytest.raises(SuiteError, match="the values of item are 1, 2, 3"):
            suite.filter(item="9")
        with pytest.raises(SuiteError, match="no tag 'thing'"):
            suite.filter(thing="9")
        with pytest.raises(SuiteError, match="no sentence of suite 'plain' has all of"):
            suite.filter(item="1", extra="")


def test_restricting_and_replacing() -> None:
    ours = as_columns(PLAIN)
    check_same(ours.restrict({"y", "x/20"}), PLAIN.restrict({"y", "x/20"}))
    with pytest.raises(SuiteError, match="no sentences"):
        ours.restrict(set())
    for changes in (
        {"name": "other"},
        {"unit": "row"},
        {"derived_tags": ()},
        {"contrasts": ()},
        {"contrasts": (Contrast("y", "x/1/bad", {"item": "3"}),)},
        {"sentences": (*PLAIN.sentences, Sentence("z", "New.", tags={"item": "4"}))},
        {"sentences": tuple(PLAIN.sentences), "contrasts": tuple(PLAIN.contrasts)},
    ):
        check_same(replace(ours, **changes), replace(PLAIN, **changes))
    assert replace(ours, derived_tags=()).hash != ours.hash
    pairs = load_suite("starter")
    check_same(pair_within_items(as_columns(pairs)), pair_within_items(pairs))
    plain, minimal = (add_minimal_pairs(replace(one, contrasts=()), ["extra"]) for one in (PLAIN, ours))
    check_same(minimal, plain)


def test_what_is_wrong_is_found_in_columns_too() -> None:
    ours = as_columns(PLAIN)
    for suite in (ours, PLAIN):
        with pytest.raises(SuiteError, match="2 of 5 sentences have no tag 'set', such as 'x/20'"):
            replace(suite, unit="set")
    # Sentences that agree in a tag, which two of the contrasts lack all the same.
    agreeing = replace(PLAIN, unit="", sentences=tuple(replace(one, tags=SHARED) for one in PLAIN.sentences))
    for suite in (agreeing, as_columns(agreeing)):
        with pytest.raises(SuiteError, match="2 of 3 contrasts have no tag 'set', such as 'x/2/good > x/20'"):
            replace(suite, unit="set")


def test_contrasts_of_sentences_that_are_left_out_are_refused() -> None:
    ours = as_columns(PLAIN)
    with pytest.raises(SuiteError, match="which is no sentence of it"):
        replace(ours, sentences=ours.sentences[:3])
    # Columns of another suite, with the same positions.
    other = as_columns(
        replace(PLAIN, sentences=tuple(replace(one, id=f"{one.id}!") for one in PLAIN.sentences), contrasts=())
    )
    with pytest.raises(SuiteError, match="which is no sentence of it"):
        replace(ours, sentences=other.sentences)


def copy_to_process(suite: Suite) -> Suite:
    return pickle.loads(pickle.dumps(suite))  # noqa: S301


@pytest.mark.parametrize("copy_suite", [copy_to_process, copy.copy, copy.deepcopy])
def test_copies_are_the_same_suite(copy_suite) -> None:
    for used in (False, True):
        ours = as_columns(PLAIN)
        if used:
            check_same(ours, PLAIN)
        copied = copy_suite(ours)
        check_same(copied, PLAIN)
        assert isinstance(copied.sentences, SentenceColumns)
        check_same(copied.filter(item="3"), PLAIN.filter(item="3"))
        check_same(copy_suite(ours.filter(item="3")), PLAIN.filter(item="3"))
        check_same(replace(copied, name="x"), replace(PLAIN, name="x"))


def test_the_hash_of_columns_is_the_one_that_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = as_columns(PLAIN)
    monkeypatch.setattr(SentenceView, "__iter__", lambda self: pytest.fail("the sentences were hashed again"))
    assert ours.hash == PLAIN.hash
    assert replace(ours, name="other", unit="").hash == PLAIN.hash


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


@given(st.lists(texts, max_size=20), st.data())
def test_texts_come_back(strings: list[str], data: st.DataObject) -> None:
    column = TextColumn.build(strings)
    assert list(column) == strings
    assert [column[position] for position in range(-len(strings), len(strings))] == strings * 2
    assert column == tuple(strings)
    rows = data.draw(st.lists(st.integers(0, len(strings) - 1), max_size=10)) if strings else []
    assert column.take(np.array(rows, dtype=np.int64)) == [strings[row] for row in rows]
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(strings)), st.integers(0, len(strings)))))
    assert list(column.slice(start, stop)) == strings[start:stop]
    path = data.draw(texts)
    assert column.find_below(path).tolist() == [f"{one}/".startswith(f"{path}/") for one in strings]


@given(st.lists(st.dictionaries(st.sampled_from("abcd"), texts, max_size=4), min_size=2, max_size=8))
def test_tags_come_back_in_their_order(rows: list[dict[str, str]]) -> None:
    sentences = tuple(Sentence(str(number), "x", tags=tags) for number, tags in enumerate(rows))
    plain = Suite("s", sentences, (make_contrast(*sentences[:2]),))
    check_same(as_columns(plain), plain)
