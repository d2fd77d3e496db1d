"""Targets of contrasts: the paper's own examples, and random edits of random sentences."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from acceptability import load_suite
from acceptability.errors import SuiteError
from acceptability.suites.targets import (
    SIDES,
    Exclusion,
    Target,
    add_targets,
    count_exclusions,
    find_target,
    split_surface_tokens,
)
from acceptability.types import Sentence, Suite, make_contrast

WORDS = [f"{first}{second}" for first in "bdfgklmn" for second in ("a", "o", "isn't", "e-u")]


def masked(better: str, worse: str, side: str = "left") -> tuple[str, str, str]:
    target = find_target(better, worse, side=side)
    assert isinstance(target, Target), target
    return target.edit, better[slice(*target.better)], worse[slice(*target.worse)]


def reason(better: str, worse: str, side: str = "left") -> str:
    target = find_target(better, worse, side=side)
    assert isinstance(target, Exclusion), target
    return target.reason


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [
        # Park et al. 2021, examples 4 to 11.
        ("Last night the old lady died in her sleep.", "Last night the old lady die in her sleep.", "died/die"),
        ("The girl cut herself on a token of glass.", "The girl cut himself on a token of glass.", "herself/himself"),
        ("Which friend has Sarah painted a picture of?", "Which friend have Sarah painted a picture of?", "has/have"),
        ("It is likely that Jean left.", "It is reluctant that Jean left.", "likely/reluctant"),
        ("There was a boy in the garden.", "There was he in the garden.", "a boy/he"),
        ("We met him at the office.", "Us met him at the office.", "We/Us"),
    ],
)
def test_a_substitution_masks_the_differing_words(better: str, worse: str, expected: str) -> None:
    edit, *words = masked(better, worse)
    assert (edit, "/".join(words)) == ("substitution", expected)


def test_a_movement_masks_the_moved_part_in_both_positions() -> None:
    better, worse = "Kevin called Nancy up for a date.", "Kevin called Nancy for a date up."
    assert masked(better, worse) == ("movement", "up", "up")
    assert find_target(better, worse) == Target("movement", (19, 21), (30, 32))
    assert masked("What is Martha bringing?", "What Martha is bringing?") == ("movement", "is", "is")
    assert masked("Kate folded the laundry.", "Kate the laundry folded.") == ("movement", "folded", "folded")
    assert masked("He gave the man the book.", "He gave the book the man.") == ("movement", "the man", "the man")


def test_an_initial_capital_is_not_a_difference() -> None:
    assert masked("Who did she see?", "Did she see who?") == ("movement", "Who", "who")
    assert masked("John was kissed.", "Was kissed John.") == ("movement", "John", "John")
    assert masked('"Who left?" she said.', '"Left who?" she said.') == ("movement", "Who", "who")
    assert masked("She likes Polish food.", "She likes polish food.") == ("substitution", "Polish", "polish")
    assert reason("The dog slept.", "the dog slept.") == "the same words"


def test_an_insertion_masks_the_shared_word_beside_it() -> None:
    pair = "John must not have eaten.", "John must not do have eaten."
    assert masked(*pair) == ("insertion", "not", "not")
    assert masked(*pair[::-1]) == ("deletion", "not", "not")
    assert masked(*pair, "right") == ("insertion", "have", "have")
    assert masked(*pair, "bracket") == ("insertion", "not have", "not do have")
    assert masked("He left early.", "He, however, left early.") == ("insertion", "He", "He")


def test_an_edit_at_the_end_of_a_sentence_has_one_side_only() -> None:
    pair = "Peter didn't sign it.", "Peter didn't sign."
    assert masked(*pair) == ("deletion", "sign", "sign")
    assert reason(*pair, "right") == "no shared word to the right of the edit"
    assert masked(*pair, "bracket") == ("deletion", "sign it", "sign")
    pair = "The muffins are here.", "All the muffins are here."
    assert reason(*pair) == "no shared word to the left of the edit"
    assert masked(*pair, "right") == ("insertion", "The", "the")
    assert masked(*pair, "bracket") == ("insertion", "The", "All the")


@pytest.mark.parametrize(
    ("better", "worse", "expected"),
    [
        (
            "It appears that Monday Juanita was running late.",
            "Monday appears that Juanita was running late.",
            "more than one difference",
        ),
        ("She gave no book to any man.", "She gave any book to no man.", "more than one difference"),
        ("his book", "him book", "no whole sentence"),
        ("Cats sleep.", "Cats  sleep.", "the same words"),
        ("He left, quietly.", "He left quietly.", "only punctuation differs"),
        ("He left, quietly, then.", "He left quietly then.", "only punctuation differs"),
        ("He left , then.", "He , left then.", "only punctuation differs"),
        ("A week, he slept, and left.", "He slept a week and left.", "punctuation differs too"),
        ("Run away.", "Hide.", "a single word"),
        ("猫在睡觉。", "猫在睡觉了。", "a single word"),
        ("Cats sleep!", "Dogs bark!", "more than one difference"),
    ],
)
def test_pairs_without_a_single_difference_have_a_reason(better: str, worse: str, expected: str) -> None:
    assert reason(better, worse) == expected
    assert reason(worse, better) == expected


def test_a_wrong_side_is_refused() -> None:
    with pytest.raises(SuiteError, match="expected one of 'left', 'right', 'bracket'"):
        find_target("Cats sleep.", "Cats slept.", side="above")


SENTENCES = st.lists(st.sampled_from(WORDS), min_size=3, max_size=9, unique=True)


def written(words: list[str], end: str = ".") -> str:
    return " ".join([words[0].capitalize(), *words[1:]]) + end


@given(SENTENCES, st.data(), st.sampled_from(".?!"))
def test_any_substituted_word_is_found(words: list[str], data: st.DataObject, end: str) -> None:
    index = data.draw(st.integers(0, len(words) - 1))
    other = data.draw(st.sampled_from([word for word in WORDS if word not in words]))
    changed = [*words[:index], other, *words[index + 1 :]]
    edit, ours, theirs = masked(written(words, end), written(changed, end))
    assert (edit, ours.lower(), theirs.lower()) == ("substitution", words[index], other)


@given(SENTENCES, st.data(), st.sampled_from(SIDES))
def test_any_inserted_run_is_found_from_both_sides(words: list[str], data: st.DataObject, side: str) -> None:
    index = data.draw(st.integers(0, len(words)))
    fresh = [word for word in WORDS if word not in words]
    run = data.draw(st.lists(st.sampled_from(fresh), min_size=1, max_size=3, unique=True))
    longer = [*words[:index], *run, *words[index:]]
    left, right = words[max(index - 1, 0) : index], words[index : index + 1]
    expected = {"left": left, "right": right, "bracket": left + right}[side]
    there, back = (find_target(written(a), written(b), side=side) for a, b in ((words, longer), (longer, words)))
    if not expected:
        assert there == back == Exclusion(f"no shared word to the {side} of the edit")
        return
    assert isinstance(there, Target)
    assert isinstance(back, Target)
    assert (there.edit, back.edit) == ("insertion", "deletion")
    assert (there.better, there.worse) == (back.worse, back.better)
    assert written(words)[slice(*there.better)].lower() == " ".join(expected)
    inner = " ".join([*left, *run, *right] if side == "bracket" else expected)
    assert written(longer)[slice(*there.worse)].lower() == inner


@given(SENTENCES, st.data())
def test_any_moved_word_is_found(words: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(words) - 1))
    rest = [*words[:index], *words[index + 1 :]]
    to = data.draw(st.integers(0, len(rest)))
    assume(to != index)
    moved = [*rest[:to], words[index], *rest[to:]]
    target = find_target(written(words), written(moved))
    assert isinstance(target, Target)
    assert target.edit == "movement"
    ours, theirs = written(words)[slice(*target.better)].lower(), written(moved)[slice(*target.worse)].lower()
    # Two words that change places: the first of them counts as moved.
    expected = words[min(index, to)] if abs(index - to) == 1 else words[index]
    assert ours == theirs == expected


@given(st.text(max_size=30))
def test_tokens_cover_the_whole_text(text: str) -> None:
    tokens = split_surface_tokens(text)
    assert "".join(token.text for token in tokens) == "".join(text.split())
    assert all(text[slice(*token.span)] == token.text for token in tokens)
    assert sum(token.is_first for token in tokens) == min(1, sum(token.is_word for token in tokens))


@given(st.text(max_size=20), st.text(max_size=20), st.sampled_from(SIDES))
def test_any_two_texts_have_a_target_within_them_or_a_reason(better: str, worse: str, side: str) -> None:
    target = find_target(better, worse, side=side)
    if isinstance(target, Target):
        for text, (start, end) in ((better, target.better), (worse, target.worse)):
            assert 0 <= start < end <= len(text)
            assert text[start:end].strip() == text[start:end]
    else:
        assert target.reason


def suite(*pairs: tuple[str, str], **tags: str) -> Suite:
    sentences = [
        (Sentence(f"g{i}", good, label=1, tags=tags), Sentence(f"b{i}", bad, label=0, tags=tags | {"mark": "*"}))
        for i, (good, bad) in enumerate(pairs)
    ]
    return Suite(
        "s",
        tuple(sentence for pair in sentences for sentence in pair),
        tuple(make_contrast(*pair) for pair in sentences),
    )


def test_a_sentence_in_two_contrasts_gets_a_target_for_each() -> None:
    good, bad, worse = (
        Sentence(*arguments) for arguments in (("g", "A cat ran."), ("b", "A cat run."), ("w", "A cats ran."))
    )
    given_suite = Suite("s", (good, bad, worse), (make_contrast(good, bad), make_contrast(good, worse)))
    targeted, excluded = add_targets(given_suite)
    assert excluded == ()
    assert [contrast.tags["contrast"] for contrast in targeted.contrasts] == ["g > b", "g > w"]
    first, second = (targeted.by_id[contrast.better] for contrast in targeted.contrasts)
    assert first.text == second.text == good.text
    assert (first.regions, second.regions) == ({"target": (6, 9)}, {"target": (2, 5)})
    assert given_suite.by_id["g"].regions == {}


def test_exclusions_are_counted_and_tags_are_kept() -> None:
    given_suite = suite(("A cat ran.", "A cat run."), ("A cat ran.", "Some dogs run."), ("A b.", "A b."), kind="x")
    targeted, excluded = add_targets(given_suite)
    assert [(exclusion.contrast, exclusion.reason) for exclusion in excluded] == [
        ("g1 > b1", "more than one difference"),
        ("g2 > b2", "the same words"),
    ]
    assert count_exclusions(excluded) == {"more than one difference": 1, "the same words": 1}
    (only,) = targeted.contrasts
    assert only.tags == {"kind": "x", "mark": "*", "edit": "substitution", "contrast": "g0 > b0"}


def test_marked_fragments_are_left_out_and_an_empty_suite_is_an_error() -> None:
    with pytest.raises(SuiteError, match=r"none of its 1 contrasts has one target: no whole sentence \(1\)"):
        add_targets(suite(("His book there.", "Him book there."), fragment="yes"))
    with pytest.raises(SuiteError, match="it has no contrasts"):
        add_targets(Suite("s", (Sentence("a", "A."),)))


def test_every_contrast_of_li_adger_has_a_target_or_a_reason(data: Path) -> None:
    given_suite = load_suite("li_adger")
    targeted, excluded = add_targets(given_suite)
    assert len(targeted.contrasts) + len(excluded) == 2365
    assert count_exclusions(excluded)["the same words"] == 2
    assert len(targeted.contrasts) > 1300
