"""Recurrent recipes: training, early stopping, the same weights after a kill, wrong options."""

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
from acceptability.errors import ModelError, SpecError, TrainError
from acceptability.models.recurrent import compute_hidden_states
from acceptability.models.recurrent.network import IGNORE_INDEX
from acceptability.reductions import load_unigrams
from acceptability.text.words import END, START
from acceptability.train import TrainingProgress, train
from acceptability.train.corpus import open_corpus
from acceptability.train.perplexity import perplexity
from acceptability.train.recipe import read_options
from acceptability.train.recurrent_recipes import (
    LSTMRecipe,
    QRNNRecipe,
    RNNRecipe,
    find_class_edges,
    sample_hyperparameters,
    search,
)
from acceptability.train.recurrent_task import SentenceBatches, StreamBatches, build_encoded_text, reverse_batch
from acceptability.types import Query

SMALL = {
    "embedding": 12,
    "hidden": 16,
    "layers": 1,
    "batch_words": 64,
    "epochs": 12,
    "learning_rate": 0.02,
    "cutoffs": (5, 9),
}
SMALL |= {"dropout": 0.0, "dropout_hidden": 0.0, "dropout_inputs": 0.0, "classes": 4}
RECIPES = {
    "rnn": RNNRecipe(**SMALL),
    "lstm": LSTMRecipe(**SMALL),
    "qrnn": QRNNRecipe(**SMALL),
    "streams": LSTMRecipe(**SMALL | {"sentence_level": False, "bptt_length": 5, "layers": 2}),
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
def test_a_tiny_corpus_is_learned(name: str, corpus: Path, dev: Path, tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    metadata = train(RECIPES[name], [corpus], tmp_path / "m", dev=[dev], progress=reports.append)
    dev_perplexity = metadata["results"]["dev"]["perplexity"]
    assert math.log(dev_perplexity) < 0.6 * unigram_entropy(corpus)
    assert math.log(dev_perplexity) == pytest.approx(metadata["facts"]["best loss on the dev set"], abs=2e-4), (
        "the loop and the perplexity command compute the same number"
    )
    assert [report.stage for report in reports if report.stage == "dev set"]
    again = perplexity(f"recurrent:{tmp_path / 'm'}", open_corpus([dev]))
    assert again.perplexity == dev_perplexity
    model = load_model(f"recurrent:{tmp_path / 'm'}")
    good, bad = (
        float(token_scores.logprobs.sum())
        for token_scores in model.run(model.encode([Query("the old cats sleep ."), Query("the old cats sleeps .")]))
    )
    assert good > bad + 0.5
    files = {path.name for path in (tmp_path / "m").iterdir()}
    assert files == {"README.md", "model.safetensors", "recipe.json", "unigrams.tsv", "vocabulary.json"}
    assert load_unigrams(str(tmp_path / "m" / "unigrams.tsv"))


@pytest.mark.parametrize("output", ["softmax", "tied_softmax", "classes", "adaptive", "tas"])
def test_every_output_layer_trains(output: str, corpus: Path, tmp_path: Path) -> None:
    metadata = train(replace(RECIPES["qrnn"], output=output, epochs=4, max_length=5), [corpus], tmp_path / "m")
    lengths = [len(line.split()) + 1 for line in corpus.read_text().splitlines()]
    assert metadata["facts"]["sentences divided into pieces"] == sum(length > 5 for length in lengths) > 0
    assert metadata["facts"]["loss at the end"] < unigram_entropy(corpus)
    assert "perplexity" not in metadata["facts"]


def test_a_double_softmax_is_marked_as_improper(corpus: Path, dev: Path, tmp_path: Path) -> None:
    metadata = train(replace(RECIPES["qrnn"], output="tas_double", epochs=1), [corpus], tmp_path / "m", dev=[dev])
    assert "sum to more than 1" in metadata["facts"]["perplexity"]
    assert metadata["results"]["dev"]["perplexity"] is None
    assert "improper=True" in metadata["results"]["dev"]["why"]
    with pytest.raises(ModelError, match="has no perplexity"):
        load_model(f"recurrent:{tmp_path / 'm'}")
    assert "improper=True" in load_model(f"recurrent:{tmp_path / 'm'}(improper=True)").signature


def test_both_directions_are_trained_and_scores_use_the_forward_one(corpus: Path, tmp_path: Path) -> None:
    recipe = replace(RECIPES["lstm"], bidirectional=True, layers=2, epochs=40)
    train(recipe, [corpus], tmp_path / "m")
    model = load_model(f"recurrent:{tmp_path / 'm'}")
    states = compute_hidden_states(model, ["the cats sing ."])[0]
    assert [layer.shape for layer in states["backwards"]] == [(4, 12), (4, 16), (4, 16)]
    token_scores = model.run(model.encode([Query("the cats sing .")]))[0]
    hidden = torch.from_numpy(states["forwards"][-1][:-1])
    ids = torch.tensor(model.vocabulary.to_ids(["cats", "sing", "."]))
    assert token_scores.logprobs[1:] == pytest.approx(model.net.output(hidden, ids, model.net.table).tolist(), abs=1e-5)
    # Read backwards, the verb predicts the number of the noun.
    before = torch.from_numpy(states["backwards"][-1][2:3])
    cat, cats = model.vocabulary.to_ids(["cat", "cats"])
    logs = model.net.output.all_logprobs(before, model.net.table)[0]
    assert logs[cats] > logs[cat] + 2


KILLED = """
import os, sys, json, signal
from pathlib import Path
import torch
from acceptability import registry
from acceptability.train import train
from acceptability.train.recurrent_task import SentenceBatches, StreamBatches
torch.set_num_threads(1)

def kill_in_step_7(select_rows):
    def wrapped(self, step, *others):
        if step == 7:
            os.kill(os.getpid(), signal.SIGKILL)
        return select_rows(self, step, *others)
    return wrapped

corpus, dev, cases = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
for out, kind, options in cases:
    options["cutoffs"] = tuple(options["cutoffs"])
    if (child := os.fork()) == 0:
        for plan in (SentenceBatches, StreamBatches):
            plan.select_rows = kill_in_step_7(plan.select_rows)
        train(registry.find("recipe", kind)(**options), [corpus], out, dev=[dev])
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.WTERMSIG(status))
"""


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_weights(corpus: Path, dev: Path, tmp_path: Path) -> None:
    """Killed by SIGKILL in step 8 of some twenty, after a checkpoint in step 6."""
    dropping = {"save_every": 6, "dropout": 0.2, "dropout_recurrent": 0.2, "epochs": 2, "evaluate_every": 5}
    recipes = {name: replace(recipe, **dropping, batch_words=100) for name, recipe in RECIPES.items()}
    cases = [(str(tmp_path / name), recipe.kind, asdict(recipe)) for name, recipe in recipes.items()]
    command = [sys.executable, "-c", KILLED, str(corpus), str(dev), json.dumps(cases)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.stdout.split() == ["9"] * len(cases), done.stderr
    for name, recipe in recipes.items():
        state = json.loads((tmp_path / name / ".checkpoint" / "state.json").read_text())
        assert state["step"] == 6
        assert not (tmp_path / name / "model.safetensors").exists()
        train(recipe, [corpus], tmp_path / name, dev=[dev])
        train(recipe, [corpus], tmp_path / f"{name}-straight", dev=[dev])
        weights = [(tmp_path / folder / "model.safetensors").read_bytes() for folder in (name, f"{name}-straight")]
        assert weights[0] == weights[1], name
        assert not (tmp_path / name / ".checkpoint").exists()


def test_the_dev_set_stops_a_run_early(corpus: Path, dev: Path, tmp_path: Path) -> None:
    recipe = replace(RECIPES["lstm"], epochs=1000, evaluate_every=5, patience=2, learning_rate=0.1, decay_fraction=0.0)
    metadata = train(recipe, [corpus], tmp_path / "m", dev=[dev])
    assert metadata["facts"]["stopped early"]
    assert math.log(metadata["results"]["dev"]["perplexity"]) == pytest.approx(
        metadata["facts"]["best loss on the dev set"], abs=2e-4
    )


def ids_of(*lengths: int) -> np.ndarray:
    random = np.random.default_rng(0)
    rows = [[*random.integers(3, 50, length), END] for length in lengths]
    return np.concatenate(rows).astype(np.int32)


@pytest.mark.parametrize("processes", [1, 2])
def test_sentences_are_read_once_in_an_epoch(processes: int) -> None:
    ids = ids_of(3, 1, 30, 4, 4, 7, 2, 11)
    plan, text = (
        SentenceBatches(ids, words_per_step=24, max_length=10, seed=1),
        build_encoded_text(ids, torch.device("cpu")),
    )
    seen: list[int] = []
    for step in range(plan.steps):
        rows = [plan.select_rows(step, rank, processes) for rank in range(processes)]
        assert len({len(starts) for starts, _ in rows}) == 1, "all processes have equally many rows"
        for starts, lengths in rows:
            assert len(starts) * lengths.max() <= 24 or len(starts) == 1
            batch = text.take_rows(starts, lengths)
            assert batch.targets.shape == (lengths.max(), len(starts))
            assert int((batch.targets != IGNORE_INDEX).sum()) == lengths.sum()
            seen += [i for start, size in zip(starts, lengths, strict=True) for i in range(start, start + size)]
    assert set(seen) == set(range(len(ids)))
    if processes == 1:
        assert len(seen) == len(ids)
    orders = [[plan.select_rows(step)[0].tolist() for step in range(plan.steps)] for _ in range(2)]
    assert orders[0] == orders[1]
    assert orders[0] != [plan.select_rows(step)[0].tolist() for step in range(plan.steps, 2 * plan.steps)]


def test_streams_read_everything_once_and_in_order() -> None:
    ids = ids_of(3, 1, 30, 4, 4, 7, 2, 11)
    plan, text = StreamBatches(ids, words_per_step=24, length=6), build_encoded_text(ids, torch.device("cpu"))
    steps = [text.take_rows(*plan.select_rows(step)) for step in range(plan.steps)]
    assert plan.count == 4
    streams = torch.cat([step.targets for step in steps]).T.reshape(-1)
    assert streams[streams != IGNORE_INDEX].tolist() == ids.tolist()
    inputs = torch.cat([step.inputs for step in steps]).T.reshape(-1)[streams != IGNORE_INDEX].tolist()
    assert inputs == [START, *(START if word == END else word for word in ids[:-1].tolist())]


def test_the_backward_network_reads_reversed_sentences() -> None:
    ids = np.array([5, 6, 7, END, 8, END], np.int32)
    batch = build_encoded_text(ids, torch.device("cpu")).take_rows(np.array([0, 4]), np.array([4, 2]))
    inputs, targets = reverse_batch(batch)
    assert inputs[:, 0].tolist() == [END, 7, 6, 5]
    assert targets[:, 0].tolist() == [7, 6, 5, START]
    assert targets[:, 1].tolist() == [8, START, IGNORE_INDEX, IGNORE_INDEX]
    assert inputs[:2, 1].tolist() == [END, 8]


def test_classes_have_similar_shares_of_the_words() -> None:
    counts = np.array([50, 0, 40, *(1000 // np.arange(1, 400))])
    edges = find_class_edges(counts, 10)
    shares = np.add.reduceat(counts, edges[:-1]) / counts.sum()
    assert edges[0] == 0
    assert edges[-1] == len(counts)
    assert len(edges) <= 11
    # A class cannot be finer than a word.
    assert (shares <= 0.1 + counts.max() / counts.sum()).all()
    assert find_class_edges(np.array([1, 1]), 100) == (0, 1, 2)


def test_recipes_are_drawn_from_the_published_ranges() -> None:
    drawn = [sample_hyperparameters(seed) for seed in range(60)]
    assert {recipe.dropout for recipe in drawn} == {0.2, 0.5}
    assert {recipe.layers for recipe in drawn} == {1, 2, 3, 4}
    assert all(200 <= recipe.embedding <= 600 and 600 <= recipe.hidden <= 1200 for recipe in drawn)
    assert all(1e-5 <= recipe.learning_rate <= 3e-3 for recipe in drawn)
    assert sum(recipe.learning_rate < 1e-4 for recipe in drawn) > 10, "rates are drawn on a logarithmic scale"
    assert sample_hyperparameters(4) == sample_hyperparameters(4) != sample_hyperparameters(5)
    assert sample_hyperparameters(4, QRNNRecipe(lower=True)).kind == "qrnn"


def test_a_search_ranks_models_by_perplexity(corpus: Path, dev: Path, tmp_path: Path) -> None:
    recipes = [
        replace(RECIPES["rnn"], seed=seed, learning_rate=rate, epochs=3) for seed, rate in ((1, 1e-5), (2, 0.02))
    ]
    ranked = search(recipes, [corpus], tmp_path, dev=[dev])
    assert [folder.name for _, folder in ranked] == ["rnn-2", "rnn-1"]
    assert ranked[0][0] < ranked[1][0]
    assert search(recipes, [corpus], tmp_path, dev=[dev]) == ranked
    with pytest.raises(TrainError, match="by which a search ranks models"):
        search(recipes, [corpus], tmp_path / "other", dev=[])


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("output=hierarchical", "output is 'hierarchical'; expected one of softmax"),
        ("hidden=0", "hidden is 0; expected a whole number from 1"),
        ("dropout=1.5", r"dropout is 1\.5; expected a share"),
        ("epochs=0", "epochs and minutes are both 0"),
        ("cutoffs=(9, 4)", r"cutoffs are \(9, 4\); expected ranks"),
        ("learning_rate=-1", r"learning_rate is -1\.0; expected a learning rate"),
        ("words=letters", "words is 'letters'"),
        ("patience=-1", "patience is -1; expected 0 or more"),
    ],
)
@pytest.mark.parametrize("kind", ["rnn", "lstm", "qrnn"])
def test_bad_options(kind: str, option: str, message: str) -> None:
    with pytest.raises(TrainError, match=message):
        read_options(registry.find("recipe", kind), [option])


def test_options_that_exclude_each_other() -> None:
    with pytest.raises(TrainError, match="bidirectional needs sentence_level"):
        LSTMRecipe(bidirectional=True, sentence_level=False)
    with pytest.raises(SpecError, match="has no option 'hiden'. Did you mean 'hidden'"):
        read_options(LSTMRecipe, ["hiden=3"])
