"""Which sentences are learnt from and which are tested on; control tasks."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability.errors import SuiteError
from acceptability.probing import factors_of
from acceptability.probing.control import control_labels
from acceptability.probing.design import designed
from acceptability.probing.splits import items_of, published
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
    return Suite("made", tuple(sentences))


def plan(given: Suite, **options: object):
    chosen = {"by": None, "held_out": None, "limit": None, "seed": 0} | options
    return designed(given, ["number", "definite"], **chosen)


@pytest.mark.parametrize("by", [None, "topic"])
def test_no_item_is_on_both_sides_and_every_sentence_is_tested_once(by: str | None) -> None:
    made = plan(suite(), by=by)
    tested = []
    for field in made.fields:
        for part in field.parts:
            assert not set(made.items[part.train]) & set(made.items[part.test])
            assert set(part.held_out) < set(part.train)
            tested += part.test.tolist()
    assert sorted(tested) == list(range(40))
    assert made.cut == "folds(5,by=item)"


def test_the_published_split_is_kept() -> None:
    made = plan(suite(splits=True))
    ((part,),) = [field.parts for field in made.fields]
    splits = published(made.sentences)
    assert set(splits[part.train]) == {"train"}
    assert len(part.train) == 24
    assert set(splits[part.held_out]) == {"dev"}
    assert set(splits[part.test]) == {"test"}
    assert made.cut == "published"


def test_a_held_out_group_is_never_learnt_from() -> None:
    made = plan(suite(), held_out="topic")
    for field in made.fields:
        (part,) = field.parts
        groups = {made.sentences[row].tags["topic"] for row in part.train}
        assert field.trained == "others"
        assert field.group not in groups
        assert {made.sentences[row].tags["topic"] for row in part.test} == {field.group}


def test_a_limit_keeps_whole_items_and_says_so() -> None:
    made = plan(suite(), by="topic", limit=13)
    assert len(made.sentences) == 24
    assert np.bincount(made.items).tolist() == [4] * 6
    assert made.notes == ("limited to at most 13 sentences of each topic, whole items drawn with seed 0: 24 of 40",)


def test_a_limit_takes_its_share_of_each_split() -> None:
    made = plan(suite(items=20, splits=True), limit=40)
    counts = {name: int((published(made.sentences) == name).sum()) for name in ("train", "dev", "test")}
    assert counts == {"train": 24, "dev": 8, "test": 8}


def test_the_members_of_a_contrast_are_of_one_item() -> None:
    sentences = tuple(Sentence(name, name) for name in "abc")
    assert items_of(Suite("s", sentences, (Contrast("a", "c"),)), sentences).tolist() == [0, 1, 0]


def test_factors_are_the_tags_that_vary_within_items() -> None:
    assert factors_of(suite()) == ("number", "definite")


def test_too_few_items_and_wrong_tags_are_said() -> None:
    with pytest.raises(SuiteError, match="at least 5 items"):
        plan(suite(items=1))
    with pytest.raises(SuiteError, match=r"no sentence of suite 'made' has the tag 'numbr'.*Did you mean 'number'"):
        designed(suite(), ["numbr"], by=None, held_out=None, limit=None, seed=0)


def test_control_labels_have_the_balance_of_the_factor() -> None:
    generator = np.random.default_rng(0)
    texts = [" ".join(generator.choice(list("abcdefghijklmnop"), 6)) for _ in range(200)]
    labels = np.array([0] * 50 + [1] * 150)
    for kind in ("words", "items"):
        found = control_labels(kind, texts, np.arange(200), labels, "0")
        assert np.bincount(found).tolist() == pytest.approx([50, 150], abs=3)
        assert (found == control_labels(kind, texts, np.arange(200), labels, "0")).all()
        assert (found != control_labels(kind, texts, np.arange(200), labels, "1")).any()


def test_a_control_of_items_is_the_same_for_an_item_and_one_of_words_for_its_words() -> None:
    items = np.arange(60) // 4
    labels = np.arange(60) % 2
    found = control_labels("items", ["x"] * 60, items, labels, "0")
    assert all(len(set(found[items == item])) == 1 for item in range(15))
    turned = control_labels("words", ["a b c", "c b a", "d e f", "f d e"], np.arange(4), np.array([0, 0, 1, 1]), "0")
    assert turned[0] == turned[1] != turned[2] == turned[3]


def test_a_split_of_some_sentences_only_is_said_and_not_followed() -> None:
    given = suite(splits=True)
    some = tuple(
        Sentence(each.id, each.text, tags={key: value for key, value in each.tags.items() if key != "split"})
        if each.tags["split"] == "dev"
        else each
        for each in given.sentences
    )
    made = plan(Suite("some", some))
    assert made.cut == "folds(5,by=item)"
    assert "five folds of items instead" in made.notes[0]
