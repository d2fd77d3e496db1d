"""Recurrent recipes: they learn, stop, go on after a kill with the same weights, and say what is wrong with options."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import load_model, registry
from acceptability.errors import ModelError, SpellingError, TrainError
from acceptability.models.recurrent import states
from acceptability.models.recurrent_networks import NOTHING
from acceptability.models.vocabulary import END, START
from acceptability.train import Tick, train
from acceptability.train.corpus import open_corpus
from acceptability.train.options import read_options
from acceptability.train.perplexity import perplexity
from acceptability.train.recurrent import LSTM, QRNN, RNN, class_edges, sampled, search
from acceptability.train.recurrent_loop import _backwards
from acceptability.train.sequences import Sentences, Streams, text_of
from acceptability.types import Query
from acceptability.unigrams import load_unigrams

SMALL = {"embedding": 12, "hidden": 16, "layers": 1, "batch": 64, "epochs": 12, "rate": 0.02, "cutoffs": (5, 9)}
SMALL |= {"dropout": 0.0, "dropout_between": 0.0, "dropout_inputs": 0.0, "classes": 4}
RECIPES = {
    "rnn": RNN(**SMALL),
    "lstm": LSTM(**SMALL),
    "qrnn": QRNN(**SMALL),
    "streams": LSTM(**SMALL | {"by_sentences": False, "steps_back": 5, "layers": 2}),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def sentences(count: int, seed: int) -> list[str]:
    """Return sentences in which the verb agrees with the noun."""
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        number = int(random.integers(2))
        noun = ("cat", "dog", "bird")[int(random.integers(3))] + "s" * number
        verb = ("sleep", "sing")[int(random.integers(2))] + "s" * (1 - number)
        made.append(f"the {'old ' * int(random.integers(3))}{noun} {verb} .")
    return made


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return written(tmp_path / "corpus.txt", sentences(120, 0))


@pytest.fixture
def dev(tmp_path: Path) -> Path:
    return written(tmp_path / "dev.txt", sentences(40, 1))


def unigram_entropy(path: Path) -> float:
    words = [word for line in path.read_text().splitlines() for word in [*line.split(), "</s>"]]
    counts = Counter(words)
    return -sum(count / len(words) * math.log(count / len(words)) for count in counts.values())


@pytest.mark.parametrize("name", RECIPES)
def test_a_tiny_corpus_is_learnt(name: str, corpus: Path, dev: Path, tmp_path: Path) -> None:
    ticks: list[Tick] = []
    told = train(RECIPES[name], [corpus], tmp_path / "m", dev=[dev], tell=ticks.append)
    reached = told["results"]["dev"]["perplexity"]
    assert math.log(reached) < 0.6 * unigram_entropy(corpus)
    assert math.log(reached) == pytest.approx(told["facts"]["best loss on the dev set"], abs=2e-4), (
        "two roads to one number"
    )
    assert [tick.stage for tick in ticks if tick.stage == "dev set"]
    again = perplexity(f"recurrent:{tmp_path / 'm'}", open_corpus([dev]))
    assert again.perplexity == reached
    model = load_model(f"recurrent:{tmp_path / 'm'}")
    good, bad = (
        float(each.logprobs.sum())
        for each in model.run(model.encode([Query("the old cats sleep ."), Query("the old cats sleeps .")]))
    )
    assert good > bad + 0.5
    files = {path.name for path in (tmp_path / "m").iterdir()}
    assert files == {"README.md", "model.safetensors", "recipe.json", "unigrams.tsv", "vocabulary.json"}
    assert load_unigrams(str(tmp_path / "m" / "unigrams.tsv"))


@pytest.mark.parametrize("output", ["softmax", "tied_softmax", "classes", "adaptive", "tas"])
def test_every_output_layer_learns(output: str, corpus: Path, tmp_path: Path) -> None:
    told = train(replace(RECIPES["qrnn"], output=output, epochs=4, longest=5), [corpus], tmp_path / "m")
    lengths = [len(line.split()) + 1 for line in corpus.read_text().splitlines()]
    assert told["facts"]["sentences read in pieces"] == sum(length > 5 for length in lengths) > 0
    assert told["facts"]["loss at the end"] < unigram_entropy(corpus)
    assert "perplexity" not in told["facts"]


def test_a_double_softmax_is_marked_as_improper(corpus: Path, dev: Path, tmp_path: Path) -> None:
    told = train(replace(RECIPES["qrnn"], output="tas_double", epochs=1), [corpus], tmp_path / "m", dev=[dev])
    assert "sum to more than 1" in told["facts"]["perplexity"]
    assert told["results"]["dev"]["perplexity"] is None
    assert "improper=True" in told["results"]["dev"]["why"]
    with pytest.raises(ModelError, match="has no perplexity"):
        load_model(f"recurrent:{tmp_path / 'm'}")
    assert "improper=True" in load_model(f"recurrent:{tmp_path / 'm'}(improper=True)").signature


def test_both_directions_learn_and_scores_use_one(corpus: Path, tmp_path: Path) -> None:
    recipe = replace(RECIPES["lstm"], both_directions=True, layers=2, epochs=40)
    train(recipe, [corpus], tmp_path / "m")
    model = load_model(f"recurrent:{tmp_path / 'm'}")
    found = states(model, ["the cats sing ."])[0]
    assert [each.shape for each in found["backwards"]] == [(4, 12), (4, 16), (4, 16)]
    said = model.run(model.encode([Query("the cats sing .")]))[0]
    hidden = torch.from_numpy(found["forwards"][-1][:-1])
    ids = torch.tensor(model.vocabulary.numbers(["cats", "sing", "."]))
    assert said.logprobs[1:] == pytest.approx(model.net.output(hidden, ids, model.net.table).tolist(), abs=1e-5)
    # Backwards the verb foretells the noun's number.
    before = torch.from_numpy(found["backwards"][-1][2:3])
    cat, cats = model.vocabulary.numbers(["cat", "cats"])
    logs = model.net.output.everything(before, model.net.table)[0]
    assert logs[cats] > logs[cat] + 2


KILLED = """
import os, sys, json, signal
from pathlib import Path
import torch
from acceptability import registry
from acceptability.train import train
from acceptability.train.sequences import Sentences, Streams
torch.set_num_threads(1)

def deadly(chosen):
    def wrapped(self, step, *others):
        if step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return chosen(self, step, *others)
    return wrapped

corpus, dev, cases = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for out, kind, options in cases:
    options["cutoffs"] = tuple(options["cutoffs"])
    if (child := os.fork()) == 0:
        for plan in (Sentences, Streams):
            plan.chosen = deadly(plan.chosen)
        train(registry.find("recipe", kind)(**options), [corpus], out, dev=[dev])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status))
"""


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(corpus: Path, dev: Path, tmp_path: Path) -> None:
    """Killed by SIGKILL in step 8 of some twenty, after a checkpoint in step 6."""
    dropping = {"save_every": 6, "dropout": 0.2, "dropout_recurrent": 0.2, "epochs": 2, "evaluate_every": 5}
    recipes = {name: replace(recipe, **dropping, batch=100) for name, recipe in RECIPES.items()}
    cases = [(str(tmp_path / name), recipe.kind, asdict(recipe)) for name, recipe in recipes.items()]
    command = [sys.executable, "-c", KILLED, str(corpus), str(dev), json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.stdout.split() == ["9"] * len(cases), done.stderr
    for name, recipe in recipes.items():
        kept = json.loads((tmp_path / name / ".checkpoint" / "state.json").read_text())
        assert kept["step"] == 6
        assert not (tmp_path / name / "model.safetensors").exists()
        train(recipe, [corpus], tmp_path / name, dev=[dev])
        train(recipe, [corpus], tmp_path / f"{name}-straight", dev=[dev])
        weights = [(tmp_path / each / "model.safetensors").read_bytes() for each in (name, f"{name}-straight")]
        assert weights[0] == weights[1], name
        assert not (tmp_path / name / ".checkpoint").exists()


def test_the_dev_set_ends_a_run(corpus: Path, dev: Path, tmp_path: Path) -> None:
    recipe = replace(RECIPES["lstm"], epochs=1000, evaluate_every=5, patience=2, rate=0.1, decay=0.0)
    told = train(recipe, [corpus], tmp_path / "m", dev=[dev])
    assert told["facts"]["stopped early"]
    assert math.log(told["results"]["dev"]["perplexity"]) == pytest.approx(
        told["facts"]["best loss on the dev set"], abs=2e-4
    )


def ids_of(*lengths: int) -> np.ndarray:
    random = np.random.default_rng(0)
    rows = [[*random.integers(3, 50, length), END] for length in lengths]
    return np.concatenate(rows).astype(np.int32)


@pytest.mark.parametrize("processes", [1, 2])
def test_sentences_are_read_once_in_an_epoch(processes: int) -> None:
    ids = ids_of(3, 1, 30, 4, 4, 7, 2, 11)
    plan, text = Sentences(ids, words=24, longest=10, seed=1), text_of(ids, torch.device("cpu"))
    seen: list[int] = []
    for step in range(plan.steps):
        rows = [plan.chosen(step, rank, processes) for rank in range(processes)]
        assert len({len(each[0]) for each in rows}) == 1, "each process has as many"
        for starts, lengths in rows:
            assert len(starts) * lengths.max() <= 24 or len(starts) == 1
            reading = text.rows(starts, lengths)
            assert reading.targets.shape == (lengths.max(), len(starts))
            assert int((reading.targets != NOTHING).sum()) == lengths.sum()
            seen += [place for start, size in zip(starts, lengths, strict=True) for place in range(start, start + size)]
    assert set(seen) == set(range(len(ids)))
    if processes == 1:
        assert len(seen) == len(ids)
    orders = [[plan.chosen(step)[0].tolist() for step in range(plan.steps)] for _ in range(2)]
    assert orders[0] == orders[1]
    assert orders[0] != [plan.chosen(step)[0].tolist() for step in range(plan.steps, 2 * plan.steps)]


def test_streams_read_everything_once_and_in_order() -> None:
    ids = ids_of(3, 1, 30, 4, 4, 7, 2, 11)
    plan, text = Streams(ids, words=24, length=6), text_of(ids, torch.device("cpu"))
    steps = [text.rows(*plan.chosen(step)) for step in range(plan.steps)]
    assert plan.count == 4
    streams = torch.cat([step.targets for step in steps]).T.reshape(-1)
    assert streams[streams != NOTHING].tolist() == ids.tolist()
    inputs = torch.cat([step.inputs for step in steps]).T.reshape(-1)[streams != NOTHING].tolist()
    assert inputs == [START, *(START if each == END else each for each in ids[:-1].tolist())]


def test_backwards_is_the_sentence_turned_round() -> None:
    ids = np.array([5, 6, 7, END, 8, END], np.int32)
    reading = text_of(ids, torch.device("cpu")).rows(np.array([0, 4]), np.array([4, 2]))
    inputs, targets = _backwards(reading)
    assert inputs[:, 0].tolist() == [END, 7, 6, 5]
    assert targets[:, 0].tolist() == [7, 6, 5, START]
    assert targets[:, 1].tolist() == [8, START, NOTHING, NOTHING]
    assert inputs[:2, 1].tolist() == [END, 8]


def test_classes_have_like_shares_of_the_words() -> None:
    counts = np.array([50, 0, 40, *(1000 // np.arange(1, 400))])
    edges = class_edges(counts, 10)
    shares = np.add.reduceat(counts, edges[:-1]) / counts.sum()
    assert edges[0] == 0
    assert edges[-1] == len(counts)
    assert len(edges) <= 11
    # A class cannot be finer than a word.
    assert (shares <= 0.1 + counts.max() / counts.sum()).all()
    assert class_edges(np.array([1, 1]), 100) == (0, 1, 2)


def test_recipes_are_drawn_from_the_published_ranges() -> None:
    drawn = [sampled(seed) for seed in range(60)]
    assert {each.dropout for each in drawn} == {0.2, 0.5}
    assert {each.layers for each in drawn} == {1, 2, 3, 4}
    assert all(200 <= each.embedding <= 600 and 600 <= each.hidden <= 1200 for each in drawn)
    assert all(1e-5 <= each.rate <= 3e-3 for each in drawn)
    assert sum(each.rate < 1e-4 for each in drawn) > 10, "rates are drawn on a logarithmic scale"
    assert sampled(4) == sampled(4) != sampled(5)
    assert sampled(4, QRNN(lower=True)).kind == "qrnn"


def test_a_search_tells_the_best(corpus: Path, dev: Path, tmp_path: Path) -> None:
    recipes = [replace(RECIPES["rnn"], seed=seed, rate=rate, epochs=3) for seed, rate in ((1, 1e-5), (2, 0.02))]
    found = search(recipes, [corpus], tmp_path, dev=[dev])
    assert [folder.name for _, folder in found] == ["rnn-2", "rnn-1"]
    assert found[0][0] < found[1][0]
    assert search(recipes, [corpus], tmp_path, dev=[dev]) == found
    with pytest.raises(TrainError, match="a search needs"):
        search(recipes, [corpus], tmp_path / "other", dev=[])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("output=hierarchical", "output is 'hierarchical'; expected one of softmax"),
        ("hidden=0", "hidden is 0; expected a whole number from 1"),
        ("dropout=1.5", r"dropout is 1\.5; expected a share"),
        ("epochs=0", "epochs and minutes are both 0"),
        ("cutoffs=(9, 4)", r"cutoffs are \(9, 4\); expected ranks"),
        ("rate=-1", r"rate is -1\.0; expected a learning rate"),
        ("words=letters", "words is 'letters'"),
        ("patience=-1", "patience is -1; expected 0 or more"),
    ],
)
@pytest.mark.parametrize("kind", ["rnn", "lstm", "qrnn"])
def test_bad_options(kind: str, option: str, message: str) -> None:
    with pytest.raises(TrainError, match=message):
        read_options(registry.find("recipe", kind), [option])


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(TrainError, match="both_directions needs by_sentences"):
        LSTM(both_directions=True, by_sentences=False)
    with pytest.raises(SpellingError, match="has no option 'hiden'. Did you mean 'hidden'"):
        read_options(LSTM, ["hiden=3"])
