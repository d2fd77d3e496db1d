"""Splits of probing designs, and control tasks."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability.errors import SuiteError
from acceptability.probing import find_factors
from acceptability.probing.design import make_design, number_items, read_published_splits
from acceptability.probing.representations import make_control_labels
from acceptability.types import Contrast, Sentence, Suite


def suite(items: int = 10, splits: bool = False) -> Suite:
    sentences = []
    for item in range(items):
        for number in ("singular", "plural"):
            for definite in ("yes", "no"):
                tags = {"item": str(item), "number": number, "definite": definite, "topic": f"t{item % 2}"}
                if splits:
                    tags["split"] = ["train", "train", "train", "dev", "test_full"][item % 5]
                name = f"{item}/{number}/{definite}"
                sentences.append(Sentence(name, f"word{item} {number} {definite} w{item % 3}.", tags=tags))
    return Suite("design", tuple(sentences))


def plan(given: Suite, **options: object):
    chosen = {"by": None, "held_out": None, "limit": None, "seed": 0} | options
    return make_design(given, ["number", "definite"], **chosen)


@pytest.mark.parametrize("by", [None, "topic"])
def test_no_item_is_on_both_sides_and_every_sentence_is_tested_once(by: str | None) -> None:
    design = plan(suite(), by=by)
    tested = []
    for group in design.groups:
        for split in group.splits:
            assert not set(design.items[split.train]) & set(design.items[split.test])
            assert set(split.held_out) < set(split.train)
            tested += split.test.tolist()
    assert sorted(tested) == list(range(40))
    assert design.split_method == "folds(5,by=item)"


def test_the_published_split_is_kept() -> None:
    design = plan(suite(splits=True))
    ((split,),) = [group.splits for group in design.groups]
    splits = read_published_splits(design.sentences)
    assert set(splits[split.train]) == {"train"}
    assert len(split.train) == 24
    assert set(splits[split.held_out]) == {"dev"}
    assert set(splits[split.test]) == {"test"}
    assert design.split_method == "published"


def test_a_held_out_group_is_never_trained_on() -> None:
    design = plan(suite(), held_out="topic")
    for group in design.groups:
        (split,) = group.splits
        groups = {design.sentences[row].tags["topic"] for row in split.train}
        assert group.trained_on == "others"
        assert group.name not in groups
        assert {design.sentences[row].tags["topic"] for row in split.test} == {group.name}


def test_a_limit_keeps_whole_items_and_is_noted() -> None:
    design = plan(suite(), by="topic", limit=13)
    assert len(design.sentences) == 24
    assert np.bincount(design.items).tolist() == [4] * 6
    assert design.notes == ("limited to at most 13 sentences of each topic, whole items drawn with seed 0: 24 of 40",)


def test_a_limit_takes_its_share_of_each_split() -> None:
    design = plan(suite(items=20, splits=True), limit=40)
    counts = {name: int((read_published_splits(design.sentences) == name).sum()) for name in ("train", "dev", "test")}
    assert counts == {"train": 24, "dev": 8, "test": 8}


def test_the_members_of_a_contrast_are_of_one_item() -> None:
    sentences = tuple(Sentence(name, name) for name in "abc")
    assert number_items(Suite("s", sentences, (Contrast("a", "c"),)), sentences).tolist() == [0, 1, 0]


def test_factors_are_the_tags_that_vary_within_items() -> None:
    assert find_factors(suite()) == ("number", "definite")


def test_too_few_items_and_unknown_tags_are_refused() -> None:
    with pytest.raises(SuiteError, match="at least 5 items"):
        plan(suite(items=1))
    with pytest.raises(SuiteError, match=r"no sentence of suite 'design' has the tag 'numbr'.*Did you mean 'number'"):
        make_design(suite(), ["numbr"], by=None, held_out=None, limit=None, seed=0)


def test_control_labels_have_the_balance_of_the_factor() -> None:
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(list("abcdefghijklmnop"), 6)) for _ in range(200)]
    labels = np.array([0] * 50 + [1] * 150)
    for kind in ("words", "items"):
        result = make_control_labels(kind, texts, np.arange(200), labels, "0")
        assert np.bincount(result).tolist() == pytest.approx([50, 150], abs=3)
        assert (result == make_control_labels(kind, texts, np.arange(200), labels, "0")).all()
        assert (result != make_control_labels(kind, texts, np.arange(200), labels, "1")).any()


def test_a_control_of_items_is_the_same_for_an_item_and_one_of_words_for_its_words() -> None:
    items = np.arange(60) // 4
    labels = np.arange(60) % 2
    result = make_control_labels("items", ["x"] * 60, items, labels, "0")
    assert all(len(set(result[items == item])) == 1 for item in range(15))
    labels = make_control_labels(
        "words", ["a b c", "c b a", "d e f", "f d e"], np.arange(4), np.array([0, 0, 1, 1]), "0"
    )
    assert labels[0] == labels[1] != labels[2] == labels[3]


def test_a_split_of_some_sentences_only_is_noted_and_ignored() -> None:
    given = suite(splits=True)
    some = tuple(
        Sentence(
            sentence.id, sentence.text, tags={key: value for key, value in sentence.tags.items() if key != "split"}
        )
        if sentence.tags["split"] == "dev"
        else sentence
        for sentence in given.sentences
    )
    design = plan(Suite("some", some))
    assert design.split_method == "folds(5,by=item)"
    assert "five folds of items instead" in design.notes[0]
