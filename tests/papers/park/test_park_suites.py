"""Our 98 pairs, and the pairs from CoLA's four textbooks."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from acceptability.papers.park.park_suites import load_own_pairs, load_textbook_sentences, pair_textbook_sentences
from acceptability.suites.targets import add_targets, count_exclusions, find_target
from acceptability.types import Sentence


def test_ours_has_98_pairs_of_11_kinds() -> None:
    suite = load_own_pairs()
    kinds = Counter(contrast.tags["kind"] for contrast in suite.contrasts)
    assert len(suite.contrasts) == 98
    assert len({each.text for each in suite.sentences}) == 196
    assert len(kinds) == 11
    assert sorted(kinds.values()) == [8] + [9] * 10


def test_every_pair_of_ours_differs_in_one_place() -> None:
    suite, excluded = add_targets(load_own_pairs())
    assert excluded == ()
    assert {each.tags["edit"] for each in suite.contrasts} == {"substitution", "insertion", "deletion", "movement"}
    marked = [each for each in load_own_pairs().contrasts if each.tags.get("nonword")]
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
    for sentence in load_own_pairs().sentences:
        mine = set(sentence.text.lower().strip(".?").split())
        assert len(words & mine) / len(words | mine) < 0.5, sentence.text


def _read(*rows: tuple[int, str]) -> list[Sentence]:
    return [Sentence(str(n), text, label=label, tags={"book": "B"}) for n, (label, text) in enumerate(rows)]


def test_the_acceptable_sentence_that_differs_least_is_chosen() -> None:
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
    suite, excluded = pair_textbook_sentences(sentences)
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
    suite, excluded = pair_textbook_sentences([good, bad])
    assert suite.contrasts == ()
    assert [each.contrast for each in excluded] == ["b"]


def test_movements_may_be_long_and_substitutions_are_of_one_word() -> None:
    moved = _read((1, "He looked the long word up."), (0, "He looked up the long word."))
    assert len(pair_textbook_sentences(moved)[0].contrasts) == 1
    two = _read((1, "He looked the word up."), (0, "He looked a big word up."))
    assert pair_textbook_sentences(two)[0].contrasts == ()


def test_the_pairs_of_the_four_books(data: Path) -> None:
    sentences = load_textbook_sentences()
    suite, excluded = pair_textbook_sentences(sentences)
    bad = [each for each in sentences if each.label == 0]
    assert len(sentences) == 2746
    assert len(suite.contrasts) + len(excluded) == len(bad) == 667
    assert Counter(each.tags["book"] for each in suite.contrasts) == {
        "Adger (2003)": 91,
        "Carnie (2013)": 74,
        "Miller (2002)": 20,
        "Sportiche et al. (2013)": 79,
    }
    assert sorted(count_exclusions(excluded).values()) == [2, 129, 272]
    for contrast in suite.contrasts:
        better, worse = suite.by_id[contrast.better], suite.by_id[contrast.worse]
        assert (better.label, worse.label) == (1, 0)
        assert better.tags["book"] == worse.tags["book"] == contrast.tags["book"]
        assert find_target(better.text, worse.text).edit
