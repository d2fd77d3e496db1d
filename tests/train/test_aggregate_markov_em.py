from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import tracemalloc
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acceptability.errors import TrainError
from acceptability.models.ngram import aggregate_markov as model_file
from acceptability.models.ngram.aggregate_markov import read_aggregate_markov
from acceptability.text.words import END, START, read_vocabulary
from acceptability.train import TrainingProgress, kneser_ney, train
from acceptability.train.aggregate_markov_em import (
    AggregateMarkovRecipe,
    BigramCounts,
    Factors,
    build_bigram_counts,
    draw_factors,
    run_em_step,
    smooth_factors,
)
from tiny import SENTENCES, TEXTS

SIZE = 12
CORPORA = st.lists(st.lists(st.integers(3, SIZE - 1), min_size=1, max_size=6), min_size=1, max_size=20)


def counted(sentences: list[list[int]], size: int = SIZE) -> BigramCounts:
    ids = np.array([word_id for sentence in sentences for word_id in (*sentence, END)], np.int32)
    return build_bigram_counts(
        kneser_ney.count_ngrams(ids, kneser_ney.find_previous_words(ids), size, on_progress=lambda _: None), size
    )


def run_em(pairs: BigramCounts, factors: Factors, number: int) -> tuple[Factors, list[float]]:
    probs = pairs.compute_probs(factors)
    losses = [pairs.compute_loss(probs)]
    for _ in range(number):
        factors = run_em_step(pairs, factors, probs)
        probs = pairs.compute_probs(factors)
        losses.append(pairs.compute_loss(probs))
    return factors, losses


def run_plain_em(
    counts: Counter[tuple[int, int]], before: list[list[float]], after: list[list[float]], number: int
) -> tuple[list[list[float]], list[list[float]], list[float]]:
    """Return factors and losses of EM as in the paper, bigram by bigram and class by class."""
    classes, losses = range(len(before[0])), []
    for _ in range(number + 1):
        shares = {}
        for first, second in counts:
            parts = [before[first][k] * after[second][k] for k in classes]
            shares[first, second] = [part / math.fsum(parts) for part in parts]
            losses.append((counts[first, second], math.log(math.fsum(parts))))
        if len(losses) > number * len(counts):
            break
        new_before, new_after = [[0.0] * len(row) for row in before], [[0.0] * len(row) for row in after]
        for (first, second), count in counts.items():
            for k in classes:
                new_before[first][k] += count * shares[first, second][k]
                new_after[second][k] += count * shares[first, second][k]
        sums = [math.fsum(row[k] for row in new_after) for k in classes]
        after = [[row[k] / sums[k] for k in classes] for row in new_after]
        before = [
            [value / math.fsum(row) for value in row] if any(row) else old
            for row, old in zip(new_before, before, strict=True)
        ]
    total = sum(counts.values())
    rounds = [losses[start : start + len(counts)] for start in range(0, len(losses), len(counts))]
    return before, after, [-math.fsum(count * log for count, log in one_round) / total for one_round in rounds]


def test_em_agrees_with_a_slow_implementation_of_the_paper() -> None:
    draws = np.random.default_rng(7)
    sentences = [draws.integers(3, SIZE, draws.integers(1, 9)).tolist() for _ in range(60)]
    counts = Counter(pair for sentence in sentences for pair in pairwise([START, *sentence, END]))
    first = draw_factors(SIZE, 4, seed=3)
    before, after, losses = run_plain_em(counts, first.histories.tolist(), first.followers.tolist(), 6)
    factors, ours = run_em(counted(sentences), first, 6)
    np.testing.assert_allclose(factors.histories, before, rtol=0, atol=1e-9)
    np.testing.assert_allclose(factors.followers, after, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours, losses, rtol=0, atol=1e-9)
    assert ours[-1] < ours[0] - 0.1


@settings(max_examples=60)
@given(CORPORA, st.integers(1, 6), st.integers(0, 1000))
def test_no_iteration_lowers_the_likelihood(sentences: list[list[int]], classes: int, seed: int) -> None:
    factors, losses = run_em(counted(sentences), draw_factors(SIZE, classes, seed), 25)
    for before, after in pairwise(losses):
        assert after <= before + 1e-12
    np.testing.assert_allclose(factors.histories.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(factors.followers.sum(axis=0), 1, atol=1e-12)


@settings(max_examples=60)
@given(CORPORA, st.integers(1, 5), st.floats(1e-3, 100), st.floats(1e-3, 100))
def test_smoothed_probabilities_sum_to_1_and_are_positive(
    sentences: list[list[int]], classes: int, before: float, after: float
) -> None:
    pairs = counted(sentences)
    factors, _ = run_em(pairs, draw_factors(SIZE, classes, 1), 5)
    model = smooth_factors(pairs, factors, history_pseudocount=before, target_pseudocount=after)
    probs = model.histories @ model.followers.T
    assert probs.shape == (SIZE + 1, SIZE)
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    assert (probs[:, START] == 0).all()
    assert (np.delete(probs, START, axis=1) > 0).all()


def test_an_empty_history_gives_the_unigram_distribution() -> None:
    pairs = counted([[3, 4, 5], [3, 3], [6, 4]])
    factors, _ = run_em(pairs, draw_factors(SIZE, 3, 1), 4)
    model = smooth_factors(pairs, factors, history_pseudocount=2.0, target_pseudocount=1e-12)
    share = np.bincount(pairs.second_words, weights=pairs.counts, minlength=SIZE) / pairs.total
    np.testing.assert_allclose(model.histories[-1] @ model.followers.T, share, atol=1e-9)
    # A word without followers in the corpus predicts what the empty history predicts.
    np.testing.assert_allclose(model.histories[END], model.histories[-1])


def test_smoothing_adds_the_given_pseudo_counts() -> None:
    """By hand, one class: 4 predicted words, two of them </s>; each of 11 words gets half a count more."""
    pairs = counted([[3], [4]])
    model = smooth_factors(
        pairs, run_em(pairs, draw_factors(SIZE, 1, 1), 1)[0], history_pseudocount=1.0, target_pseudocount=0.5
    )
    assert model.followers[[3, END, 5], 0] == pytest.approx([1.5 / 9.5, 2.5 / 9.5, 0.5 / 9.5])


def test_the_chunk_size_changes_no_bit(monkeypatch) -> None:
    pairs, factors = counted([[3, 4, 5, 6, 7, 8], [9, 10, 11, 3]] * 3), draw_factors(SIZE, 3, 1)
    whole = pairs.compute_probs(factors)
    monkeypatch.setattr(model_file, "CHUNK_BYTES", 100)
    assert pairs.compute_probs(factors).tobytes() == whole.tobytes()


def test_memory_stays_far_below_bigrams_times_classes() -> None:
    draws = np.random.default_rng(1)
    size, classes, number = 2000, 128, 200_000
    keys = np.unique(draws.integers(3 * size, size * size, number))
    keys = keys[keys % size != START]
    pairs = build_bigram_counts(kneser_ney.NGramCounts(keys, np.ones(len(keys), np.int64)), size)
    factors = draw_factors(size, classes, 1)
    tracemalloc.start()
    run_em_step(pairs, factors, pairs.compute_probs(factors))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < model_file.CHUNK_BYTES + 64 * len(keys) + 10 * factors.histories.nbytes < len(keys) * classes * 8 / 3


def test_an_empty_class_keeps_its_distribution() -> None:
    pairs, start = counted([[3, 4], [3, 5], [6, 4]] * 5), draw_factors(SIZE, 3, 1)
    start.histories[:, 2] = 0
    factors, losses = run_em(pairs, start, 50)
    assert np.isfinite(losses).all()
    assert factors.followers[:, 2].tolist() == start.followers[:, 2].tolist()


def test_tiny_factors_become_zero_instead_of_denormal() -> None:
    pairs, factors, zeros = counted([[3, 4], [3, 5], [6, 4], [7, 8]] * 5), draw_factors(SIZE, 3, 1), 0
    for _ in range(600):
        factors, losses = run_em(pairs, factors, 1)
        assert np.isfinite(losses).all()
        numbers = np.concatenate([factors.histories.ravel(), np.delete(factors.followers, START, axis=0).ravel()])
        assert not ((numbers > 0) & (numbers < 1e-150)).any()
        zeros = int((numbers == 0).sum())
    assert zeros


def corpus(folder: Path, sentences: list[str] = SENTENCES * 4, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(sentences) + "\n")
    return path


def test_a_whole_run_records_what_it_did(tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    dev = corpus(tmp_path, TEXTS[-3:], "dev.txt")
    metadata = train(
        AggregateMarkovRecipe(classes=3, lower=True, vocabulary=20),
        [corpus(tmp_path)],
        tmp_path / "m",
        dev=[dev],
        progress=reports.append,
    )
    learning = [report for report in reports if report.stage == "learning classes"]
    assert [report.done for report in learning] == list(range(metadata["facts"]["iterations"] + 1))
    assert learning[0].loss is None
    assert learning[1].tokens == learning[-1].tokens // learning[-1].done
    # The last stopping loss is the dev loss of the saved model, computed by EM and by the model.
    assert metadata["results"]["dev"]["perplexity"] == pytest.approx(math.exp(learning[-1].loss), rel=1e-5)
    assert len(metadata["facts"]["most probable words of each class"]) == 3
    words = read_vocabulary(tmp_path / "m")
    assert words.lower
    assert len(words) == 23
    table = read_aggregate_markov(tmp_path / "m" / "model.safetensors")
    np.testing.assert_allclose((table.histories @ table.followers.T).sum(axis=1), 1, atol=1e-6)
    counts = dict(line.split("\t") for line in (tmp_path / "m" / "unigrams.tsv").read_text().splitlines()[1:])
    assert sum(map(int, counts.values())) == learning[1].tokens
    assert not (tmp_path / "m" / ".checkpoint").exists()


def losses(metadata: dict) -> list[float]:
    return metadata["facts"]["perplexity of the corpus after each iteration"]


def test_em_stops_when_the_gain_is_small_or_after_the_allowed_iterations(tmp_path: Path) -> None:
    text = [corpus(tmp_path)]
    few = train(AggregateMarkovRecipe(classes=3, tolerance=0.0, max_iterations=4), text, tmp_path / "few")
    assert few["facts"]["iterations"] == 4
    settled = losses(train(AggregateMarkovRecipe(classes=3, tolerance=0.05), text, tmp_path / "settled"))
    gains = [1 - after / before for before, after in pairwise(settled)]
    assert gains[-1] < 0.05
    assert all(gain >= 0.049 for gain in gains[:-1])
    assert settled[: len(losses(few))] == losses(few)[: len(settled)]


def test_early_stopping_keeps_the_pass_before_the_dev_loss_rises(tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    dev = corpus(
        tmp_path, ["The dog is reading.", "Noon sleeps again, it rains!", "She has no cats that chase."], "dev.txt"
    )
    recipe = AggregateMarkovRecipe(classes=8, tolerance=0.0, history_pseudocount=0.01, target_pseudocount=0.01)
    metadata = train(recipe, [corpus(tmp_path)], tmp_path / "m", dev=[dev], progress=reports.append)
    dev_losses = [report.loss for report in reports if report.stage == "learning classes" and report.loss is not None]
    assert 1 < len(dev_losses) < recipe.max_iterations
    assert min(dev_losses) == dev_losses[-1]
    assert metadata["results"]["dev"]["perplexity"] == pytest.approx(math.exp(min(dev_losses)), rel=1e-5)


def test_the_seed_determines_the_model(tmp_path: Path) -> None:
    text = [corpus(tmp_path)]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(AggregateMarkovRecipe(classes=3, seed=seed, max_iterations=5), text, tmp_path / name)
    one, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert one == same
    assert one != other


KILLED = """
import os, signal, sys
from acceptability.train import train
from acceptability.train.aggregate_markov_em import AggregateMarkovRecipe

corpus, out, last_report = sys.argv[1:]

def kill_itself(progress):
    if f"{progress.stage} {progress.done}".startswith(last_report):
        os.kill(os.getpid(), signal.SIGKILL)

train(AggregateMarkovRecipe(classes=4, tolerance=0.0, max_iterations=30), [corpus], out, progress=kill_itself)
"""


@pytest.mark.parametrize("at", ["counting pairs", "learning classes 0", "learning classes 3", "learning classes 11"])
def test_a_killed_run_resumes_to_the_very_same_model(tmp_path: Path, at: str) -> None:
    text, out = corpus(tmp_path), tmp_path / "killed"
    run = subprocess.run([sys.executable, "-c", KILLED, text, out, at], check=False)
    assert run.returncode == -signal.SIGKILL
    assert not (out / "recipe.json").exists()
    recipe, reports = AggregateMarkovRecipe(classes=4, tolerance=0.0, max_iterations=30), []
    resumed = train(recipe, [text], out, progress=reports.append)
    whole = train(recipe, [text], tmp_path / "whole")
    if at.startswith("learning"):
        assert {report.stage for report in reports} == {"learning classes"}
        assert reports[0].done >= int(at.split()[-1])
    for name in ("model.safetensors", "vocabulary.json", "unigrams.tsv"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert resumed["facts"] == whole["facts"] == json.loads((out / "recipe.json").read_text())["facts"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"classes": 0}, "classes is 0; expected a whole number from 1"),
        ({"vocabulary": -1}, "vocabulary is -1"),
        ({"max_iterations": 0}, "max_iterations is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"words": "letters"}, "words is 'letters'; expected one of spaces"),
        ({"tolerance": 1.0}, "tolerance is 1.0"),
        ({"history_pseudocount": 0.0}, "history_pseudocount is 0.0; expected a number above 0"),
        ({"target_pseudocount": math.inf}, "target_pseudocount is inf"),
    ],
)
def test_options_that_make_no_sense(options: dict, problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        AggregateMarkovRecipe(**options)
