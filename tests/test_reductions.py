from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from acceptability import registry
from acceptability.errors import ScoreError, SpecError, SuiteError
from acceptability.reductions import load_unigrams, sum_logprobs_by_word
from acceptability.types import LabelScores, TokenScores

LOGPROBS = st.lists(st.floats(-30, -0.125, width=32), min_size=1, max_size=12)


def make_token_scores(logprobs: list[float], text: str = "") -> TokenScores:
    tokens = text.split() or [f"w{index}" for index in range(len(logprobs))]
    starts = np.cumsum([0, *(len(token) + 1 for token in tokens[:-1])]).tolist()
    offsets = tuple((start, start + len(token)) for start, token in zip(starts, tokens, strict=True))
    return TokenScores(" ".join(tokens), tuple(tokens), offsets, np.array(logprobs, dtype=np.float32))


@pytest.fixture
def table(tmp_path, monkeypatch) -> str:
    path = tmp_path / "counts.tsv"
    path.write_text("word\tcount\nthe\t7\ncat\t2\n", encoding="utf-8")
    return str(path)


@given(LOGPROBS)
def test_reductions_of_log_probabilities_alone(logprobs: list[float]) -> None:
    n, total = len(logprobs), sum(np.float32(logprob) for logprob in logprobs)
    output = make_token_scores(logprobs)
    assert registry.make("reduction", "lp")(output) == pytest.approx(total, rel=1e-5)
    assert registry.make("reduction", "mean_lp")(output) == pytest.approx(total / n, rel=1e-5)
    assert registry.make("reduction", "pen_lp")(output) == pytest.approx(total / ((5 + n) / 6) ** 0.8, rel=1e-5)
    assert registry.make("reduction", "exp(mean_lp)")(output) == pytest.approx(math.exp(total / n), rel=1e-5)


@given(LOGPROBS)
def test_slln_lp_lies_between_lp_and_mean_lp(logprobs: list[float]) -> None:
    output = make_token_scores(logprobs)
    at = {alpha: registry.make("reduction", f"slln_lp(alpha={alpha})")(output) for alpha in (0, 0.4, 1)}
    assert at[0] == registry.make("reduction", "lp")(output)
    assert at[1] == pytest.approx(registry.make("reduction", "mean_lp")(output), rel=1e-12)
    assert at[0] <= at[0.4] <= at[1] + 1e-12


def test_slln_lp_by_hand() -> None:
    # Four tokens, whose square root is 2: -12 / 2.
    assert registry.make("reduction", "slln_lp(alpha=0.5)")(make_token_scores([-1.0, -2.0, -3.0, -6.0])) == -6.0


def test_the_alpha_of_slln_lp_is_given() -> None:
    with pytest.raises(SpecError, match="missing a required argument: 'alpha'"):
        registry.make("reduction", "slln_lp")
    for alpha in ("1.5", "-0.1", "True", "'x'"):
        with pytest.raises(ScoreError, match=r"expected a number from 0 \(as lp\) to 1 \(as mean_lp\)"):
            registry.make("reduction", f"slln_lp(alpha={alpha})")


def test_reductions_with_unigrams(table: str) -> None:
    output = make_token_scores([-1.0, -3.0, -8.0], "The cat sneezed")
    # Counts 7 and 2, one added to each and to the unknown: 8/12, 3/12, 1/12.
    unigrams = np.log(np.array([8, 3, 1]) / 12)
    total, base = -12.0, unigrams.sum()
    ratios = np.sort(-np.array([-1.0, -3.0, -8.0]) / unigrams)
    expected = {
        "slor": (total - base) / 3,
        "norm_lp_sub": total - base,
        "norm_lp_div": -(total / base),
        "word_lp_min": ratios[0],
        "word_lp_mean": ratios.mean(),
        "word_lp_mean_q1": ratios[0],
        "word_lp_mean_q2": ratios[:2].mean(),
        "morcela": (total - base) / 3,
    }
    for name, value in expected.items():
        assert registry.make("reduction", f"{name}(unigrams={table!r})")(output) == pytest.approx(value), name
    second = registry.make("reduction", f"word_lp_min(k=2, unigrams={table!r})")
    assert second(output) == pytest.approx(ratios[1])
    fitted = registry.make("reduction", f"morcela(beta=0.5, gamma=2, unigrams={table!r})")
    assert fitted(output) == pytest.approx((total - 0.5 * base + 2) / 3)


def test_a_token_table_counts_tokens(tmp_path) -> None:
    path = tmp_path / "tokens.tsv"
    path.write_text("token\tlogprob\nun\t-2\n##do\t-4\n", encoding="utf-8")
    output = TokenScores("undo", ("un", "##do"), ((0, 2), (2, 4)), np.array([-1, -1], dtype=np.float32))
    slor = registry.make("reduction", f"slor(unigrams={str(path)!r})")
    assert slor(output) == pytest.approx(2.0)
    assert "per token" in slor.signature
    assert load_unigrams(str(path)).signature in slor.signature


def test_the_signature_changes_with_the_table(tmp_path) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("word\tcount\nthe\t7\n", encoding="utf-8")
    before = registry.make("reduction", f"exp(slor(unigrams={str(path)!r}))").signature
    path.write_text("word\tcount\nthe\t8\n", encoding="utf-8")
    assert registry.make("reduction", f"exp(slor(unigrams={str(path)!r}))").signature != before


def test_the_error_without_a_table_names_the_choices() -> None:
    with pytest.raises(ScoreError, match="wordfreq:LANGUAGE"):
        registry.make("reduction", "slor")(make_token_scores([-1.0]))


def test_wordfreq_knows_words_and_has_a_floor() -> None:
    english = load_unigrams("wordfreq:en")
    assert english.logprob("the") > english.logprob("cat") > english.logprob("zzzzqqq")
    assert english.logprob("zzzzqqq") == pytest.approx(math.log(1e-9))
    with pytest.raises(ScoreError, match="no language 'xx'"):
        load_unigrams("wordfreq:xx")


def test_free_standing_punctuation_belongs_to_a_word() -> None:
    words, sums = sum_logprobs_by_word(make_token_scores([-1.0, -2.0, -3.0, -4.0], "“ Cats sleep ."))
    assert words == ["“ Cats", "sleep ."]
    assert sums.tolist() == [-3.0, -7.0]


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_classifier_reductions(bad: float, good: float) -> None:
    output = LabelScores("x", (bad, good))
    p = registry.make("reduction", "p_acceptable")(output)
    signed = registry.make("reduction", "signed_confidence")(output)
    assert p == pytest.approx(math.exp(good) / (math.exp(good) + math.exp(bad)), abs=1e-12)
    assert signed == pytest.approx(p if good >= bad else p - 1, abs=1e-12)
    assert registry.make("reduction", "log_odds")(output) == good - bad


@example(-5e-324, 2.0)
@given(st.floats(-20, 20), st.floats(0.05, 50))
def test_a_temperature_divides_the_log_odds(odds: float, temperature: float) -> None:
    output = LabelScores("x", (0.0, odds))
    p = registry.make("reduction", f"p_acceptable(temperature={temperature!r})")(output)
    signed = registry.make("reduction", f"signed_confidence(temperature={temperature!r})")(output)
    assert p == pytest.approx(1 / (1 + math.exp(-odds / temperature)), abs=1e-12)
    assert signed == pytest.approx(p if odds >= 0 else p - 1, abs=1e-12)


def test_a_temperature_is_part_of_the_signature_and_must_be_positive() -> None:
    for name in ("p_acceptable", "signed_confidence"):
        assert registry.make("reduction", f"{name}(temperature=1.7)").signature == f"{name}(temperature=1.7)"
        assert registry.make("reduction", f"{name}(temperature=1)").signature == f"{name}()"
        for wrong in ("0", "-1.0", "'warm'", "True", "1e999"):
            with pytest.raises(ScoreError, match=f"{name}: temperature is .*expected a number above 0"):
                registry.make("reduction", f"{name}(temperature={wrong})")


def test_reductions_refuse_the_wrong_kind_of_model() -> None:
    with pytest.raises(ScoreError, match="log_odds"):
        registry.make("reduction", "lp")(LabelScores("x", (0.0, 1.0)))
    with pytest.raises(ScoreError, match="language model"):
        registry.make("reduction", "log_odds")(make_token_scores([-1.0]))


def test_a_full_stop_after_a_space_does_not_change_slor(table: str) -> None:
    together = make_token_scores([-1.0, -3.0], "the cat.")
    apart = TokenScores("the cat .", ("the", "cat", "."), ((0, 3), (4, 7), (8, 9)), np.float32([-1, -2, -1]))
    slor = registry.make("reduction", f"slor(unigrams={table!r})")
    assert slor(together) == slor(apart)


def test_a_partly_scored_word_is_left_out(table: str) -> None:
    """Without a start token the first token is not scored, and its word is left out."""
    cut = TokenScores("unhappy cats", ("happy", "cats"), ((2, 7), (8, 12)), np.float32([-1, -2]))
    words, logprobs = sum_logprobs_by_word(cut)
    assert (words, logprobs.tolist()) == (["cats"], [-2.0])
    with pytest.raises(ScoreError, match="no word of it was scored as a whole"):
        sum_logprobs_by_word(TokenScores("unhappy", ("happy",), ((2, 7),), np.float32([-1])))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("word\tcount\nthe\t-1\n", "line 2: '-1' is not a count from 0"),
        ("word\tlogprob\nthe\t0\n", "line 2: '0' is not a natural log below 0"),
        ("word\tcount\nthe\t1\nthe\t2\n", "line 3: the word 'the' is listed twice"),
        ("word\tcount\nthe\tmany\n", "line 2: 'many'"),
        ("words\tcount\n", "line 1: expected a header"),
    ],
)
def test_errors_in_unigram_tables(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "u.tsv"
    path.write_text(text)
    with pytest.raises(SuiteError, match=message):
        load_unigrams(str(path))


@pytest.mark.parametrize(
    "text", ["exp(3)", "exp('lp')", "slor(unigrams=5)", "morcela(beta='x')", "morcela(gamma=True)"]
)
def test_options_of_the_wrong_kind(text: str) -> None:
    with pytest.raises(ScoreError):
        registry.make("reduction", text)


def test_word_lp_min_needs_enough_words(table: str) -> None:
    with pytest.raises(ScoreError, match="has 1 words"):
        registry.make("reduction", f"word_lp_min(k=2, unigrams={table!r})")(make_token_scores([-1.0]))
    with pytest.raises(ScoreError, match="from 1"):
        registry.make("reduction", "word_lp_min(k=0)")


@pytest.mark.parametrize("unknown", ["<unk>", "<UNK>"])
def test_a_row_for_unknown_words_stands_for_all_other_words(tmp_path, unknown: str) -> None:
    """With that row no pseudo-count is added and all shares sum to 1; its capitals do not make the table cased."""
    path = tmp_path / "u.tsv"
    path.write_text(f"word\tcount\nthe\t7\ncat\t2\n{unknown}\t3\n")
    table = load_unigrams(str(path))
    assert [math.exp(table.logprob(word)) for word in ("The", "cat", "zebra")] == pytest.approx(
        [8 / 15, 3 / 15, 4 / 15]
    )


def test_a_listed_word_as_rare_as_unknown_ones_counts_as_listed(tmp_path) -> None:
    path = tmp_path / "u.tsv"
    path.write_text("word\tlogprob\nthe\t-1\ncat\t-3\n<unk>\t-3\n")
    slor = registry.make("reduction", f"slor(unigrams={str(path)!r})")
    assert slor.count_unlisted(make_token_scores([-1.0, -2.0, -3.0], "The cat sneezed")) == (1, 3)
    english = registry.make("reduction", "slor(unigrams='wordfreq:en')")
    assert english.count_unlisted(make_token_scores([-1.0, -2.0], "The zzzzqqq")) == (1, 2)
