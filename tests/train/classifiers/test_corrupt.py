"""Fakes by permutation: some words change places, everything else stays, and the result is never the real sentence."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from acceptability.train.classifiers.real_fake import collect_lowercase_words, permute_text, permute_words
from tiny import TEXTS


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_words_change_places_and_none_is_lost() -> None:
    words = ["the", "dog", "that", "the", "cat", "chased", "has", "slept", "since", "noon"]
    sizes = Counter()
    for seed in range(400):
        permuted = permute_words(words, random(seed))
        assert permuted != words
        assert Counter(permuted) == Counter(words)
        sizes[sum(one != two for one, two in zip(permuted, words, strict=True))] += 1
    # From a single exchange to a whole jumble, and some words stay in most.
    assert {2, 3, 5, 8} <= set(sizes)
    assert max(sizes.values()) < 200


def test_every_order_of_three_words_is_reached() -> None:
    permuted = Counter(tuple(permute_words(["a", "b", "c"], random(seed))) for seed in range(3000))
    assert len(permuted) == 5
    # Exchanges come from subsets of two and of three words, the two rotations from those of three only.
    exchange = 0.5 / 3 * 0.5 + 0.5 / 6
    rotation = 0.5 / 6
    kept = 3 * exchange + 2 * rotation
    for order, count in permuted.items():
        expected = rotation if order in (("b", "c", "a"), ("c", "a", "b")) else exchange
        assert count / 3000 == pytest.approx(expected / kept, abs=0.03)


@pytest.mark.parametrize("words", [[], ["one"], ["very", "very", "very"]])
def test_words_with_only_one_order_are_rejected(words: list[str]) -> None:
    assert permute_words(words, random()) is None


@pytest.mark.parametrize("text", ["", "...", "Stop!", "Never, never, never.", "Mr. Fox"])
def test_a_text_with_only_one_order_is_rejected(text: str) -> None:
    assert permute_text(text, random(), lowercase_words={"never"}) is None


def test_punctuation_spaces_and_the_initial_capital_stay() -> None:
    text = 'The cat, said  Ann ("no fool"), isn\'t well-known in the U.S. Senate; is it?'
    shape = re.sub(r"[\w'-]+", "w", text)
    for seed in range(200):
        permuted = permute_text(text, random(seed), lowercase_words=collect_lowercase_words([text, "we saw the sea"]))
        assert permuted != text
        assert re.sub(r"[\w'-]+", "w", permuted) == shape
        assert permuted[0].isupper()
        assert "U.S. " in permuted
        assert permuted.lower().count("isn't") == 1
        assert Counter(re.findall(r"[\w'-]+", permuted.lower())) == Counter(re.findall(r"[\w'-]+", text.lower()))


def test_the_first_word_moves_if_it_occurs_in_lower_case_and_a_name_stays() -> None:
    common = {permute_text("The dogs chase cats.", random(seed), {"the"}).split()[0] for seed in range(100)}
    assert common == {"The", "Dogs", "Chase", "Cats"}
    named = {permute_text("Ann saw the dogs.", random(seed), {"the"}).split()[0] for seed in range(100)}
    assert named == {"Ann"}
    assert all("The" not in permute_text("The dogs chase cats.", random(seed), {"the"})[1:] for seed in range(100))


def test_the_same_seed_gives_the_same_fakes() -> None:
    def all_of(seed: int) -> list[str | None]:
        generator = random(seed)
        return [permute_text(text, generator, collect_lowercase_words(TEXTS)) for text in TEXTS]

    assert all_of(1) == all_of(1)
    assert all_of(1) != all_of(2)
