from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability.errors import MeasureError, ScoreError, Undefined
from acceptability.perplexity import perplexity
from acceptability.types import TokenScores


def said(text: str, *rows: tuple[str, int, int, float]) -> TokenScores:
    """Rows are token, start, end and probability."""
    logprobs = np.log([row[3] for row in rows]).astype(np.float32)
    return TokenScores(text, tuple(row[0] for row in rows), tuple((row[1], row[2]) for row in rows), logprobs)


CATS = said("Cats sleep", ("C", 0, 1, 1 / 2), ("ats", 1, 4, 1 / 4), (" sleep", 4, 10, 1 / 8))
ENDED = said("a b", ("a", 0, 1, 1 / 2), ("b", 2, 3, 1 / 4), ("</s>", 3, 3, 1 / 8))


def test_words_and_tokens_by_hand() -> None:
    by_token, by_word = perplexity([CATS], unit="token"), perplexity([CATS])
    assert (by_token.value, by_token.n) == (pytest.approx(4, rel=1e-6), 3)
    assert (by_word.value, by_word.n) == (pytest.approx(8, rel=1e-6), 2)
    assert by_word.signature == "perplexity(unit='word', end='unscored', unknown='as scored')"


@pytest.mark.parametrize("unit", ["word", "token"])
@pytest.mark.parametrize(
    ("end", "expected", "n"), [("counted", 64 ** (1 / 3), 3), ("free", 8, 2), ("left out", 8**0.5, 2)]
)
def test_three_ways_to_treat_the_end(unit: str, end: str, expected: float, n: int) -> None:
    found = perplexity([ENDED], unit=unit, end=end)
    assert (found.value, found.n) == (pytest.approx(expected, rel=1e-6), n)
    assert f"end={end!r}" in found.signature


def test_unknown_units_are_left_out_and_counted_where_there_is_a_vocabulary() -> None:
    found = perplexity([CATS], unit="token", vocabulary={"C", " sleep"})
    assert (found.value, found.n, found.unknown) == (pytest.approx(4, rel=1e-6), 2, 1)
    found = perplexity([CATS], vocabulary={"C", " sleep"})
    assert (found.value, found.n, found.unknown) == (pytest.approx(8, rel=1e-6), 1, 1)
    assert "unknown='left out'" in found.signature
    with pytest.raises(Undefined, match="no unit to count"):
        perplexity([CATS], vocabulary=set())


def test_a_word_of_which_only_a_part_was_scored_is_left_out_and_counted() -> None:
    partly = said("Cats sleep", ("ats", 1, 4, 1 / 4), (" sleep", 4, 10, 1 / 8))
    found = perplexity([partly])
    assert (found.value, found.n, found.partial) == (pytest.approx(8, rel=1e-6), 1, 1)
    unscored = said("Cats sleep", (" sleep", 4, 10, 1 / 8))
    assert perplexity([unscored]).partial == 1


@settings(deadline=None)
@given(st.lists(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=6), min_size=1, max_size=5))
def test_it_is_the_geometric_mean_over_all_units_of_all_sentences(sentences: list[list[float]]) -> None:
    given_said = [
        said(" ".join("w" for _ in each), *(("w", 2 * i, 2 * i + 1, p) for i, p in enumerate(each)))
        for each in sentences
    ]
    every = [p for each in sentences for p in each]
    expected = math.exp(-sum(map(math.log, every)) / len(every))
    assert perplexity(given_said).value == pytest.approx(expected, rel=1e-6)
    assert perplexity(given_said, unit="token").value == pytest.approx(expected, rel=1e-6)


def test_a_uniform_model_has_the_size_of_its_vocabulary() -> None:
    from acceptability import load_suite
    from acceptability.scoring import tokens

    suite = load_suite("starter/word_order")
    found = perplexity((each for _, each in tokens(suite, "uniform(vocabulary=77)")), unit="token")
    assert found.value == pytest.approx(77, rel=1e-6)


def test_what_cannot_be_told() -> None:
    with pytest.raises(ScoreError, match="the end of 1 of 2 sentences"):
        perplexity([CATS, ENDED])
    with pytest.raises(Undefined, match="no unit"):
        perplexity([])
    low = TokenScores("a", ("a",), ((0, 1),), np.array([-800.0], np.float32))
    with pytest.raises(Undefined, match="beyond"):
        perplexity([low])
    for options in ({"unit": "letter"}, {"end": "yes"}):
        with pytest.raises(MeasureError, match="perplexity"):
            perplexity([CATS], **options)
