"""Modified Kneser–Ney smoothing against a slow computation from the definition, and against sums by hand."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability.models.ngram.trained import NGramTable, pack_ngrams, unpack_ngrams
from acceptability.text.words import END, START, UNKNOWN
from acceptability.train import kneser_ney
from acceptability.train.kneser_ney import (
    KneserNeyModel,
    NGramCounts,
    compute_pruning_losses,
    estimate_kneser_ney,
    merge_counts,
    prune_ngrams,
)
from acceptability.train.ngram_recipes import build_log_tables

WORDS = 5
"""How many words the corpora here have besides the three special ones."""
SIZE = WORDS + 3

corpora = st.lists(
    st.lists(st.integers(3, SIZE - 1) | st.just(UNKNOWN), min_size=1, max_size=6), min_size=1, max_size=8
)


def flat(corpus: list[list[int]]) -> np.ndarray:
    return np.array([word for sentence in corpus for word in (*sentence, END)], np.int32)


def counted(corpus: list[list[int]], order: int, chunk: int = 1 << 20) -> list[NGramCounts]:
    ids = flat(corpus)
    orders, before = [kneser_ney.count_unigrams(ids, SIZE)], kneser_ney.find_previous_words(ids)
    for _ in range(2, order + 1):
        orders.append(kneser_ney.count_ngrams(ids, before, SIZE, chunk=chunk, on_progress=lambda _: None))
        before = kneser_ney.find_next_histories(ids, before, SIZE, orders[-1], chunk=chunk)
    return orders


def model_of(corpus: list[list[int]], order: int) -> KneserNeyModel:
    return estimate_kneser_ney(counted(corpus, order), SIZE)


def ask(table: NGramTable, history: list[int], word: int) -> float:
    words = np.array([*history, word], np.int64)
    return float(table.logprobs(words, np.arange(len(words)) == 0)[-1])


class Slow:
    """Modified Kneser–Ney by its definition, with dictionaries."""

    def __init__(self, corpus: list[list[int]], order: int) -> None:
        self.order = order
        raw = defaultdict(Counter)
        for sentence in corpus:
            framed = (START, *sentence, END)
            for n in range(1, order + 1):
                for end in range(n, len(framed) + 1):
                    raw[n][framed[end - n : end]] += 1
        del raw[1][(START,)]
        self.counts = {order: raw[order]}
        for n in range(1, order):
            before = Counter(gram[1:] for gram in raw[n + 1])
            self.counts[n] = {gram: count if gram[0] == START else before[gram] for gram, count in raw[n].items()}
        self.discounts = {n: self._discounts(Counter(self.counts[n].values())) for n in self.counts}

    @staticmethod
    def _discounts(n: Counter) -> tuple[float, ...]:
        if n[1] and n[2] and n[3]:
            y = n[1] / (n[1] + 2 * n[2])
            discounts = (1 - 2 * y * n[2] / n[1], 2 - 3 * y * n[3] / n[2], 3 - 4 * y * n[4] / n[3])
            if all(0 <= discount <= top for top, discount in enumerate(discounts, start=1)):
                return discounts
        return 0.5, 1.0, 1.5

    def prob(self, history: tuple[int, ...], word: int) -> float:
        history = history[-(self.order - 1) :] if self.order > 1 else ()
        n = len(history) + 1
        followers = {gram: count for gram, count in self.counts[n].items() if gram[:-1] == history}
        lower = 1 / (SIZE - 1) if not history else self.prob(history[1:], word)
        total = sum(followers.values())
        if not total:
            return lower
        cut = self.discounts[n]
        count = followers.get((*history, word), 0)
        discounted = count - cut[min(count, 3) - 1] if count else 0.0
        left = sum(cut[min(times, 3) - 1] for times in followers.values())
        return (discounted + left * lower) / total


@settings(max_examples=60)
@given(corpora, st.integers(1, 4), st.data())
def test_the_model_agrees_with_the_definition(corpus: list[list[int]], order: int, data) -> None:
    table, slow = NGramTable(SIZE, tuple(build_log_tables(model_of(corpus, order)))), Slow(corpus, order)
    words = st.integers(3, SIZE - 1) | st.just(UNKNOWN)
    history = [START] * data.draw(st.booleans()) + data.draw(st.lists(words, max_size=4))
    for word in (UNKNOWN, END, *range(3, SIZE)):
        assert math.exp(ask(table, history, word)) == pytest.approx(slow.prob(tuple(history), word), rel=1e-5)


@settings(max_examples=60)
@given(corpora, st.integers(1, 4), st.sampled_from([0.0, 1e-3, 0.02, 0.3]), st.data())
def test_probabilities_sum_to_one_after_any_history(corpus, order: int, threshold: float, data) -> None:
    model = model_of(corpus, order)
    table = NGramTable(SIZE, tuple(build_log_tables(prune_ngrams(model, threshold) if threshold else model)))
    words = st.integers(3, SIZE - 1) | st.just(UNKNOWN)
    history = [START] * data.draw(st.booleans()) + data.draw(st.lists(words, max_size=4))
    total = sum(math.exp(ask(table, history, word)) for word in range(SIZE) if word != START)
    assert total == pytest.approx(1.0, abs=1e-5)


def test_a_bigram_by_hand() -> None:
    """Sentences "a b", "a b", "a c" with a=3, b=4, c=5; single words are too few for closed discounts: 0.5, 1, 1.5."""
    table = NGramTable(SIZE, tuple(build_log_tables(model_of([[3, 4], [3, 4], [3, 5]], 2))))
    # Different words stand before: a: <s>; b: a; c: a; </s>: b and c. Five in all.
    left = (0.5 + 0.5 + 0.5 + 1.0) / 5
    single = {3: 0.5 / 5 + left / 7, 4: 0.5 / 5 + left / 7, END: (2 - 1.0) / 5 + left / 7, UNKNOWN: left / 7}
    for word, prob in single.items():
        assert math.exp(ask(table, [], word)) == pytest.approx(prob)
    # Bigrams: a-c and c-</s> once, a-b and b-</s> twice, <s>-a three times. Y = 2 / (2 + 2·2) = 1/3;
    # D1 = 1 - 2·Y·2/2 = 1/3, D2 = 2 - 3·Y·1/2 = 3/2, D3 = 3 - 4·Y·0/1 = 3.
    # After a: (2 - 3/2 + (3/2 + 1/3) p(b)) / 3, and for what never followed only the second part.
    assert math.exp(ask(table, [3], 4)) == pytest.approx((0.5 + (1.5 + 1 / 3) * single[4]) / 3)
    assert math.exp(ask(table, [3], END)) == pytest.approx((1.5 + 1 / 3) / 3 * single[END])
    # After <s>: (3 - 3 + 3 p(a)) / 3. After an unknown word nothing was seen.
    assert math.exp(ask(table, [START], 3)) == pytest.approx(single[3])
    assert math.exp(ask(table, [UNKNOWN], 4)) == pytest.approx(single[4])


def test_closed_discounts_by_hand() -> None:
    """Counts of counts n1=4, n2=2, n3=1, n4=1: Y = 4/8; D1 = 1-2Y·2/4, D2 = 2-3Y·1/2, D3 = 3-4Y·1/1."""
    counts = [1, 1, 1, 1, 2, 2, 3, 4]
    orders = [NGramCounts(np.arange(11), np.array([0, 9, 9, *counts]))]
    # </s> counts too: give it a count that no discount is estimated from.
    assert estimate_kneser_ney(orders, 11).discounts == ((0.5, 1.25, 1.0),)


@settings(max_examples=40)
@given(corpora, st.integers(1, 7))
def test_counting_in_chunks_changes_nothing(corpus, chunk: int) -> None:
    for whole, parts in zip(counted(corpus, 3), counted(corpus, 3, chunk=chunk), strict=True):
        assert whole.keys.tolist() == parts.keys.tolist()
        assert whole.counts.tolist() == parts.counts.tolist()


@settings(max_examples=40)
@given(st.dictionaries(st.integers(0, 20), st.integers(1, 5)), st.dictionaries(st.integers(0, 20), st.integers(1, 5)))
def test_merging_adds_counts(one: dict[int, int], other: dict[int, int]) -> None:
    def grams(counts: dict[int, int]) -> NGramCounts:
        keys = sorted(counts)
        return NGramCounts(np.array(keys, np.int64), np.array([counts[key] for key in keys], np.int64))

    both = merge_counts(grams(one), grams(other))
    assert dict(zip(both.keys.tolist(), both.counts.tolist(), strict=True)) == dict(Counter(one) + Counter(other))
    assert both.keys.tolist() == sorted(both.keys.tolist())


def _entropy(model: NGramTable, against: NGramTable, histories: dict[tuple[int, ...], float]) -> float:
    """Return the relative entropy of two models, over histories with their weights."""
    total = 0.0
    for history, weight in histories.items():
        for word in (UNKNOWN, *range(END, SIZE)):
            one, other = ask(model, list(history), word), ask(against, list(history), word)
            total += weight * math.exp(one) * (one - other)
    return total


def test_the_loss_of_an_ngram_is_the_relative_entropy_without_it() -> None:
    """Every bigram is taken out by itself, and the two models are compared word by word."""
    generator = np.random.default_rng(1)
    corpus = [generator.integers(3, SIZE, size=5).tolist() for _ in range(12)]
    model = model_of(corpus, 2)
    whole = NGramTable(SIZE, tuple(build_log_tables(model)))
    losses = compute_pruning_losses(model, 1)
    tokens = sum(len(sentence) + 1 for sentence in corpus)
    histories = {(word,): model.levels[0].counts[word] / tokens for word in range(SIZE) if word != END}
    for index in range(len(losses)):
        alone = np.arange(len(losses)) != index
        smaller = _without(model, alone)
        expected = math.expm1(_entropy(whole, NGramTable(SIZE, tuple(build_log_tables(smaller))), histories))
        assert losses[index] == pytest.approx(expected, rel=1e-3, abs=1e-7)


def _without(model: KneserNeyModel, stays: np.ndarray) -> KneserNeyModel:
    from dataclasses import replace

    first, second = model.levels
    histories = second.keys[stays] // SIZE
    seen = np.bincount(histories, weights=second.probs[stays], minlength=SIZE)
    below = np.bincount(histories, weights=first.probs[second.suffixes[stays]], minlength=SIZE)
    weights = (1 - seen) / (1 - below)
    kept = replace(second, keys=second.keys[stays], probs=second.probs[stays], backoffs=second.backoffs[stays])
    return replace(model, levels=(replace(first, backoffs=weights), kept))


def test_pruning_keeps_histories_and_removes_more_at_a_higher_threshold() -> None:
    generator = np.random.default_rng(2)
    corpus = [generator.integers(3, SIZE, size=6).tolist() for _ in range(30)]
    model = model_of(corpus, 3)
    sizes = []
    for threshold in (1e-6, 1e-3, 5e-3, 0.5):
        smaller = prune_ngrams(model, threshold)
        histories = smaller.levels[2].keys // SIZE
        assert (histories < len(smaller.levels[1].keys)).all()
        assert (np.diff(smaller.levels[2].keys) > 0).all()
        sizes.append(sum(len(level.keys) for level in smaller.levels))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1] == SIZE


@pytest.mark.parametrize(("bits", "tolerance"), [(32, 0.0), (16, 5e-3), (8, 0.05)])
def test_packed_arrays_give_the_table_back(bits: int, tolerance: float, tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    corpus = [generator.integers(3, SIZE, size=6).tolist() for _ in range(60)]
    orders = build_log_tables(model_of(corpus, 3))
    table = unpack_ngrams(pack_ngrams(SIZE, orders, bits))
    for order, packed in zip(orders, table.orders, strict=True):
        assert order.keys.tolist() == packed.keys.tolist()
        assert packed.logprobs.dtype == packed.backoffs.dtype == np.float32
        np.testing.assert_allclose(packed.logprobs, order.logprobs, atol=tolerance, rtol=0)
        np.testing.assert_allclose(packed.backoffs, order.backoffs, atol=tolerance, rtol=0)
