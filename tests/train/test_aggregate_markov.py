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
from acceptability.models import aggregate_markov as model_file
from acceptability.models.aggregate_markov import read_classes
from acceptability.models.vocabulary import END, START, read_vocabulary
from acceptability.train import Tick, counting, train
from acceptability.train.aggregate_markov import AggregateMarkov
from acceptability.train.class_bigrams import Factors, Pairs, begun, improved, pairs_of, smoothed
from tiny import SENTENCES, TEXTS

SIZE = 12
CORPORA = st.lists(st.lists(st.integers(3, SIZE - 1), min_size=1, max_size=6), min_size=1, max_size=20)


def counted(sentences: list[list[int]], size: int = SIZE) -> Pairs:
    ids = np.array([number for sentence in sentences for number in (*sentence, END)], np.int32)
    return pairs_of(counting.next_order(ids, counting.before_words(ids), size, told=lambda _: None), size)


def passes(pairs: Pairs, factors: Factors, number: int) -> tuple[Factors, list[float]]:
    probs = pairs.probs(factors)
    losses = [pairs.loss(probs)]
    for _ in range(number):
        factors = improved(pairs, factors, probs)
        probs = pairs.probs(factors)
        losses.append(pairs.loss(probs))
    return factors, losses


def plain(
    counts: Counter[tuple[int, int]], before: list[list[float]], after: list[list[float]], number: int
) -> tuple[list[list[float]], list[list[float]], list[float]]:
    """Expectation and maximisation as the paper writes it, pair by pair and class by class."""
    classes, losses = range(len(before[0])), []
    for _ in range(number + 1):
        shares = {}
        for one, two in counts:
            parts = [before[one][each] * after[two][each] for each in classes]
            shares[one, two] = [part / math.fsum(parts) for part in parts]
            losses.append((counts[one, two], math.log(math.fsum(parts))))
        if len(losses) > number * len(counts):
            break
        new_before, new_after = [[0.0] * len(row) for row in before], [[0.0] * len(row) for row in after]
        for (one, two), often in counts.items():
            for each in classes:
                new_before[one][each] += often * shares[one, two][each]
                new_after[two][each] += often * shares[one, two][each]
        sums = [math.fsum(row[each] for row in new_after) for each in classes]
        after = [[row[each] / sums[each] for each in classes] for row in new_after]
        before = [
            [each / math.fsum(row) for each in row] if any(row) else old
            for row, old in zip(new_before, before, strict=True)
        ]
    total = sum(counts.values())
    rounds = [losses[start : start + len(counts)] for start in range(0, len(losses), len(counts))]
    return before, after, [-math.fsum(often * log for often, log in each) / total for each in rounds]


def test_it_agrees_with_a_slow_one_written_out_in_full() -> None:
    draws = np.random.default_rng(7)
    sentences = [draws.integers(3, SIZE, draws.integers(1, 9)).tolist() for _ in range(60)]
    counts = Counter(pair for each in sentences for pair in pairwise([START, *each, END]))
    first = begun(SIZE, 4, seed=3)
    before, after, losses = plain(counts, first.histories.tolist(), first.followers.tolist(), 6)
    found, ours = passes(counted(sentences), first, 6)
    np.testing.assert_allclose(found.histories, before, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.followers, after, rtol=0, atol=1e-9)
    np.testing.assert_allclose(ours, losses, rtol=0, atol=1e-9)
    assert ours[-1] < ours[0] - 0.1


@settings(max_examples=60, deadline=None)
@given(CORPORA, st.integers(1, 6), st.integers(0, 1000))
def test_no_pass_makes_the_corpus_less_probable(sentences: list[list[int]], classes: int, seed: int) -> None:
    factors, losses = passes(counted(sentences), begun(SIZE, classes, seed), 25)
    for before, after in pairwise(losses):
        assert after <= before + 1e-12
    np.testing.assert_allclose(factors.histories.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(factors.followers.sum(axis=0), 1, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(CORPORA, st.integers(1, 5), st.floats(1e-3, 100), st.floats(1e-3, 100))
def test_what_follows_any_word_sums_to_1_and_nothing_is_impossible(
    sentences: list[list[int]], classes: int, before: float, after: float
) -> None:
    pairs = counted(sentences)
    factors, _ = passes(pairs, begun(SIZE, classes, 1), 5)
    model = smoothed(pairs, factors, before=before, after=after)
    every = model.histories @ model.followers.T
    assert every.shape == (SIZE + 1, SIZE)
    np.testing.assert_allclose(every.sum(axis=1), 1, atol=1e-12)
    assert (every[:, START] == 0).all()
    assert (np.delete(every, START, axis=1) > 0).all()


def test_without_a_word_before_it_a_word_has_its_share_of_the_corpus() -> None:
    pairs = counted([[3, 4, 5], [3, 3], [6, 4]])
    factors, _ = passes(pairs, begun(SIZE, 3, 1), 4)
    model = smoothed(pairs, factors, before=2.0, after=1e-12)
    share = np.bincount(pairs.words, weights=pairs.counts, minlength=SIZE) / pairs.total
    np.testing.assert_allclose(model.histories[-1] @ model.followers.T, share, atol=1e-9)
    # A word that never stands before another foretells no more than nothing does.
    np.testing.assert_allclose(model.histories[END], model.histories[-1])


def test_smoothing_is_the_counts_that_it_says() -> None:
    """With one class by hand: 4 words were foretold, twice </s>; each of 11 words gets half a count more."""
    pairs = counted([[3], [4]])
    model = smoothed(pairs, passes(pairs, begun(SIZE, 1, 1), 1)[0], before=1.0, after=0.5)
    assert model.followers[[3, END, 5], 0] == pytest.approx([1.5 / 9.5, 2.5 / 9.5, 0.5 / 9.5])


def test_a_small_budget_changes_no_bit(monkeypatch) -> None:
    pairs, factors = counted([[3, 4, 5, 6, 7, 8], [9, 10, 11, 3]] * 3), begun(SIZE, 3, 1)
    whole = pairs.probs(factors)
    monkeypatch.setattr(model_file, "BUDGET", 100)
    assert pairs.probs(factors).tobytes() == whole.tobytes()


def test_memory_stays_far_below_pairs_times_classes() -> None:
    draws = np.random.default_rng(1)
    size, classes, number = 2000, 128, 200_000
    keys = np.unique(draws.integers(3 * size, size * size, number))
    keys = keys[keys % size != START]
    pairs = pairs_of(counting.Grams(keys, np.ones(len(keys), np.int64)), size)
    factors = begun(size, classes, 1)
    tracemalloc.start()
    improved(pairs, factors, pairs.probs(factors))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < model_file.BUDGET + 64 * len(keys) + 10 * factors.histories.nbytes < len(keys) * classes * 8 / 3


def test_an_empty_class_stays_as_it_was() -> None:
    pairs, start = counted([[3, 4], [3, 5], [6, 4]] * 5), begun(SIZE, 3, 1)
    start.histories[:, 2] = 0
    factors, losses = passes(pairs, start, 50)
    assert np.isfinite(losses).all()
    assert factors.followers[:, 2].tolist() == start.followers[:, 2].tolist()


def test_no_number_becomes_so_small_that_arithmetic_is_slow() -> None:
    pairs, factors, zeros = counted([[3, 4], [3, 5], [6, 4], [7, 8]] * 5), begun(SIZE, 3, 1), 0
    for _ in range(600):
        factors, losses = passes(pairs, factors, 1)
        assert np.isfinite(losses).all()
        numbers = np.concatenate([factors.histories.ravel(), np.delete(factors.followers, START, axis=0).ravel()])
        assert not ((numbers > 0) & (numbers < 1e-150)).any()
        zeros = int((numbers == 0).sum())
    assert zeros


def corpus(folder: Path, sentences: list[str] = SENTENCES * 4, name: str = "train.txt") -> Path:
    path = folder / name
    path.write_text("\n".join(sentences) + "\n")
    return path


def test_a_whole_run_tells_what_it_did(tmp_path: Path) -> None:
    ticks: list[Tick] = []
    dev = corpus(tmp_path, TEXTS[-3:], "dev.txt")
    told = train(
        AggregateMarkov(classes=3, lower=True, vocabulary=20),
        [corpus(tmp_path)],
        tmp_path / "m",
        dev=[dev],
        tell=ticks.append,
    )
    learning = [tick for tick in ticks if tick.stage == "learning classes"]
    assert [tick.done for tick in learning] == list(range(told["facts"]["passes"] + 1))
    assert learning[0].loss is None
    assert learning[1].tokens == learning[-1].tokens // learning[-1].done
    # What was watched while learning is what is measured in the end, from the file and through the model.
    assert told["results"]["dev"]["perplexity"] == pytest.approx(math.exp(learning[-1].loss), rel=1e-5)
    assert len(told["facts"]["words that each class foretells most"]) == 3
    words = read_vocabulary(tmp_path / "m")
    assert words.lower
    assert len(words) == 23
    table = read_classes(tmp_path / "m" / "model.safetensors")
    np.testing.assert_allclose((table.histories @ table.followers.T).sum(axis=1), 1, atol=1e-6)
    counts = dict(line.split("\t") for line in (tmp_path / "m" / "unigrams.tsv").read_text().splitlines()[1:])
    assert sum(map(int, counts.values())) == learning[1].tokens
    assert not (tmp_path / "m" / ".checkpoint").exists()


def losses(told: dict) -> list[float]:
    return told["facts"]["perplexity of the corpus after each pass"]


def test_it_stops_when_little_is_gained_or_after_so_many_passes(tmp_path: Path) -> None:
    text = [corpus(tmp_path)]
    few = train(AggregateMarkov(classes=3, gain=0.0, passes=4), text, tmp_path / "few")
    assert few["facts"]["passes"] == 4
    settled = losses(train(AggregateMarkov(classes=3, gain=0.05), text, tmp_path / "settled"))
    gains = [1 - after / before for before, after in pairwise(settled)]
    assert gains[-1] < 0.05
    assert all(gain >= 0.049 for gain in gains[:-1])
    assert settled[: len(losses(few))] == losses(few)[: len(settled)]


def test_it_keeps_the_pass_before_the_dev_set_gets_less_probable(tmp_path: Path) -> None:
    told: list[Tick] = []
    dev = corpus(
        tmp_path, ["The dog is reading.", "Noon sleeps again, it rains!", "She has no cats that chase."], "dev.txt"
    )
    recipe = AggregateMarkov(classes=8, gain=0.0, before=0.01, after=0.01)
    found = train(recipe, [corpus(tmp_path)], tmp_path / "m", dev=[dev], tell=told.append)
    watched = [tick.loss for tick in told if tick.stage == "learning classes" and tick.loss is not None]
    assert 1 < len(watched) < recipe.passes
    assert min(watched) == watched[-1]
    assert found["results"]["dev"]["perplexity"] == pytest.approx(math.exp(min(watched)), rel=1e-5)


def test_the_seed_decides(tmp_path: Path) -> None:
    text = [corpus(tmp_path)]
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(AggregateMarkov(classes=3, seed=seed, passes=5), text, tmp_path / name)
    one, same, other = ((tmp_path / name / "model.safetensors").read_bytes() for name in "abc")
    assert one == same
    assert one != other


KILLED = """
import sys, time
from acceptability.train import train
from acceptability.train.aggregate_markov import AggregateMarkov

def tell(tick):
    print(tick.stage, tick.done, flush=True)
    time.sleep(0.05)

train(AggregateMarkov(classes=4, gain=0.0, passes=30), [sys.argv[1]], sys.argv[2], tell=tell)
"""


@pytest.mark.parametrize("at", ["counting pairs", "learning classes 0", "learning classes 3", "learning classes 11"])
def test_a_run_that_is_killed_goes_on_to_the_very_same_model(tmp_path: Path, at: str) -> None:
    text, out = corpus(tmp_path), tmp_path / "killed"
    with subprocess.Popen([sys.executable, "-c", KILLED, text, out], stdout=subprocess.PIPE, text=True) as run:
        next(line for line in run.stdout if line.startswith(at))
        run.kill()
    assert run.returncode == -signal.SIGKILL
    assert not (out / "recipe.json").exists()
    recipe, ticks = AggregateMarkov(classes=4, gain=0.0, passes=30), []
    went_on = train(recipe, [text], out, tell=ticks.append)
    whole = train(recipe, [text], tmp_path / "whole")
    if at.startswith("learning"):
        assert {tick.stage for tick in ticks} == {"learning classes"}
        assert ticks[0].done >= int(at.split()[-1])
    for name in ("model.safetensors", "vocabulary.json", "unigrams.tsv"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert went_on["facts"] == whole["facts"] == json.loads((out / "recipe.json").read_text())["facts"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"classes": 0}, "classes is 0; expected a whole number from 1"),
        ({"vocabulary": -1}, "vocabulary is -1"),
        ({"passes": 0}, "passes is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"words": "letters"}, "words is 'letters'; expected one of spaces"),
        ({"gain": 1.0}, "gain is 1.0"),
        ({"before": 0.0}, "before is 0.0; expected a number above 0"),
        ({"after": math.inf}, "after is inf"),
    ],
)
def test_options_that_make_no_sense(options: dict, problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        AggregateMarkov(**options)
