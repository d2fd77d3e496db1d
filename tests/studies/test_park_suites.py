"""Our 98 pairs, and the pairs that stand in CoLA's four textbooks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from acceptability.studies.park_suites import ours
from acceptability.studies.park_textbooks import textbook_pairs, textbook_sentences
from acceptability.suites.targets import counted, find_target, with_targets
from acceptability.types import Sentence


def test_ours_has_98_pairs_of_11_kinds() -> None:
    suite = ours()
    kinds = Counter(each.tags["kind"] for each in suite.contrasts)
    assert len(suite.contrasts) == 98
    assert len({each.text for each in suite.sentences}) == 196
    assert len(kinds) == 11
    assert sorted(kinds.values()) == [8] + [9] * 10


def test_every_pair_of_ours_differs_in_one_place() -> None:
    suite, excluded = with_targets(ours())
    assert excluded == ()
    assert {each.tags["edit"] for each in suite.contrasts} == {"substitution", "insertion", "deletion", "movement"}
    marked = [each for each in ours().contrasts if each.tags.get("nonword")]
    assert [each.tags["item"] for each in marked] == [
        "past_tense/3", "past_tense/4", "past_tense/7", "past_tense/9", "plural/6", "pronominalization/2"
    ]  # fmt: skip


@pytest.mark.parametrize(
    "known",
    [
        "The little boy is speaking to a policeman.",
        "Tom is reading a book in the bathtub.",
        "Peter made out the check but didn't sign it.",
        "What is Martha bringing to the party?",
        "Last night the old lady died in her sleep.",
        "The girl cut herself on a piece of glass.",
        "Kevin called Nancy up for a date.",
    ],
)
def test_no_sentence_of_ours_is_near_one_that_the_paper_quotes(known: str) -> None:
    words = set(known.lower().strip(".?").split())
    for each in ours().sentences:
        mine = set(each.text.lower().strip(".?").split())
        assert len(words & mine) / len(words | mine) < 0.5, each.text


def _read(*rows: tuple[int, str]) -> list[Sentence]:
    return [Sentence(str(n), text, label=label, tags={"book": "B"}) for n, (label, text) in enumerate(rows)]


def test_the_acceptable_sentence_that_differs_least_is_taken() -> None:
    sentences = _read(
        (1, "She could often sleep here."),
        (1, "She sleeps here."),
        (1, "He sleeps here."),
        (0, "She sleep here."),
        (0, "She sleep here."),
        (0, "Here there slept a tall man."),
        (0, "She sings about the large old houses here."),
        (0, "Ran."),
    )
    suite, excluded = textbook_pairs(sentences)
    assert [(each.better, each.worse) for each in suite.contrasts] == [("1", "3")]
    assert {each.contrast: each.reason.split(" ")[0] for each in excluded} == {
        "4": "the",
        "5": "no",
        "6": "acceptable",
        "7": "no",
    }


def test_books_are_not_mixed() -> None:
    good = Sentence("a", "The man sleeps.", label=1, tags={"book": "A"})
    bad = Sentence("b", "The man sleep.", label=0, tags={"book": "B"})
    suite, excluded = textbook_pairs([good, bad])
    assert suite.contrasts == ()
    assert [each.contrast for each in excluded] == ["b"]


def test_a_movement_may_be_long_and_one_word_may_stand_for_one() -> None:
    moved = _read((1, "He looked the long word up."), (0, "He looked up the long word."))
    assert len(textbook_pairs(moved)[0].contrasts) == 1
    two = _read((1, "He looked the word up."), (0, "He looked a big word up."))
    assert textbook_pairs(two)[0].contrasts == ()


def test_the_pairs_of_the_four_books(data: Path) -> None:
    sentences = textbook_sentences()
    suite, excluded = textbook_pairs(sentences)
    bad = [each for each in sentences if each.label == 0]
    assert len(sentences) == 2746
    assert len(suite.contrasts) + len(excluded) == len(bad) == 667
    assert Counter(each.tags["book"] for each in suite.contrasts) == {
        "Adger (2003)": 91,
        "Carnie (2013)": 74,
        "Miller (2002)": 20,
        "Sportiche et al. (2013)": 79,
    }
    assert sorted(counted(excluded).values()) == [2, 129, 272]
    for each in suite.contrasts:
        better, worse = suite.by_id[each.better], suite.by_id[each.worse]
        assert (better.label, worse.label) == (1, 0)
        assert better.tags["book"] == worse.tags["book"] == each.tags["book"]
        assert find_target(better.text, worse.text).edit
