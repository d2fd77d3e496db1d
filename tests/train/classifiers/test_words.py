"""Classifiers over words: the same seed gives the same bytes, vectors of all kinds, transfer."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from acceptability import Sentence, Suite, load_model
from acceptability.errors import MissingExtra, ModelError, TrainError
from acceptability.models.sentence import SentenceClassifier, SentenceNetworkShape
from acceptability.models.sentence.network import build_sentence_network, read_sentence_network
from acceptability.train.checkpoint import CheckpointManager
from acceptability.train.classifiers import LabelledSentences, read_labelled_sentences, train_classifier, word_training
from acceptability.train.classifiers.recipe import EpochBatches
from acceptability.train.classifiers.word_classifiers import (
    CbowRecipe,
    PoolingRecipe,
    WordTokenizer,
    build_inputs,
    sample_hyperparameters,
)
from acceptability.train.classifiers.word_training import (
    LabelledSource,
    LMStateSource,
    WordIdSource,
    fit_network,
    pack_sentences,
    predict_logits,
)
from acceptability.train.recipe import CheckpointedRun, TrainingProgress
from acceptability.train.trainer import TrainingSchedule
from acceptability.types import Query
from tiny import TEXTS, make_recurrent

SMALL = {"embedding": 8, "hidden": 8, "batch_size": 16, "epochs": 4, "patience": 0, "learning_rate": 0.02}
NOUNS, VERBS = ("cat", "dog", "linguist", "bird", "child"), ("sleeps", "runs", "reads", "sings", "thinks")


def make_suite(reverse: bool = True) -> Suite:
    """Sentences whose words stand in the right order, or in the wrong one."""
    sentences = []
    for number in range(120):
        noun, verb = NOUNS[number % 5], VERBS[number // 5 % 5]
        label = number % 2
        words = ["the", noun, verb, *["again"] * (number % 3)]
        sentences.append(Sentence(str(number), " ".join(words if label or not reverse else words[::-1]) + ".", label))
    return Suite("made", tuple(sentences))


def files(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".md"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def glove(folder: Path) -> str:
    random = np.random.default_rng(1)
    words = ["the", *NOUNS, *VERBS, ".", "walks"]
    path = folder / "glove.txt"
    path.write_text("".join(f"{word} {' '.join(map(str, random.normal(size=6).round(3)))}\n" for word in words))
    return str(path)


def score_texts(folder: Path, texts: list[str]) -> list[float]:
    model = load_model(f"classifier:{folder}")
    return [each.logits[1] for each in model.run(model.encode([Query(text) for text in texts]))]


@pytest.mark.parametrize(
    "recipe", [CbowRecipe(**SMALL), PoolingRecipe(**SMALL, layers=2, head_hidden=4)], ids=lambda recipe: recipe.kind
)
def test_the_same_seed_gives_the_same_bytes_on_any_number_of_threads(
    recipe: CbowRecipe | PoolingRecipe, tmp_path: Path
) -> None:
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        torch.manual_seed(threads)
        train_classifier(recipe, [make_suite()], tmp_path / str(threads))
        found.append((tmp_path / str(threads) / "model.safetensors").read_bytes())
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert found[0] == found[1]
    train_classifier(type(recipe)(**{**vars(recipe), "seed": 2}), [make_suite()], tmp_path / "other")
    assert (tmp_path / "other" / "model.safetensors").read_bytes() != found[0]


def test_the_global_generator_is_restored(tmp_path: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    train_classifier(PoolingRecipe(**SMALL), [make_suite()], tmp_path / "made")
    assert torch.equal(torch.get_rng_state(), before)


def test_pooling_learns_the_order_of_words_and_cbow_cannot(tmp_path: Path) -> None:
    ticks: list[TrainingProgress] = []
    metadata = train_classifier(
        PoolingRecipe(**{**SMALL, "epochs": 12}), [make_suite()], tmp_path / "pooling", progress=ticks.append
    )
    assert metadata["results"]["held out"] == {"mcc": 1.0, "accuracy": 1.0}
    good, bad = score_texts(tmp_path / "pooling", ["the bird reads.", ".reads bird the"])
    assert good > 0 > bad
    # 108 sentences are 7 batches of 16; the held-out sentences are evaluated after every epoch.
    evaluations = [(tick.done, tick.total) for tick in ticks if tick.stage == "dev set"]
    assert evaluations == [(7 * epoch, 84) for epoch in range(1, 13)]
    blind = train_classifier(CbowRecipe(**SMALL), [make_suite()], tmp_path / "cbow")
    assert abs(blind["results"]["held out"]["mcc"]) < 0.5


def test_the_folder_and_its_facts(tmp_path: Path) -> None:
    metadata = train_classifier(PoolingRecipe(**SMALL, vectors=glove(tmp_path)), [make_suite()], tmp_path / "made")
    assert set(files(tmp_path / "made")) == {"model.safetensors", "vocabulary.json", "recipe.json"}
    facts = metadata["facts"]
    assert (facts["words in the vocabulary"], facts["dimension of word vectors"]) == (13, 6)
    # Of 13 different words only 'again' has no vector.
    assert facts["type coverage"] == round(12 / 13, 4)
    assert facts["file of vectors"].startswith("glove.txt@")
    assert json.loads((tmp_path / "made" / "recipe.json").read_text())["recipe"]["hidden"] == 8


def test_vectors_from_a_file_are_frozen_and_others_are_trained(tmp_path: Path) -> None:
    train_classifier(CbowRecipe(**SMALL, vectors=glove(tmp_path)), [make_suite()], tmp_path / "fixed")
    table = read_sentence_network(tmp_path / "fixed", "cpu").inputs.table.detach().numpy()
    lines = Path(glove(tmp_path)).read_text().splitlines()
    assert table[3:].tolist() == np.array([line.split()[1:] for line in lines], np.float32).tolist()
    assert table[0] == pytest.approx(table[3:].mean(0), abs=1e-6)
    inputs = build_inputs("", [each.text for each in make_suite().sentences], WordTokenizer(min_count=2), 8)
    assert inputs.table is None


def test_words_of_the_file_are_in_the_vocabulary_and_rare_words_are_not(tmp_path: Path) -> None:
    train_classifier(PoolingRecipe(**SMALL, vectors=glove(tmp_path)), [make_suite()], tmp_path / "fixed")
    walks, sleeps = score_texts(tmp_path / "fixed", ["the cat walks.", "the cat sleeps."])
    assert walks != sleeps
    inputs = build_inputs("", ["a b a c", "c d"], WordTokenizer(min_count=2), 8)
    assert inputs.vocabulary.words[3:] == ("a", "c")
    assert inputs.facts["token coverage"] == round(4 / 6, 4)
    with pytest.raises(TrainError, match="no word occurs 3 times"):
        build_inputs("", ["a b a c", "c d"], WordTokenizer(min_count=3), 8)


@pytest.mark.parametrize("prefix", ["elmo:recurrent:", "recurrent:"])
def test_vectors_of_a_language_model(prefix: str, tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm", directions=2)
    suite = Suite(
        "made", tuple(Sentence(str(n), text, n % 2) for n, text in enumerate([*TEXTS * 3, *(t[:-1] for t in TEXTS)]))
    )
    for name in ("one", "two"):
        metadata = train_classifier(PoolingRecipe(**SMALL, vectors=f"{prefix}{lm}"), [suite], tmp_path / name)
    one, two = ({**files(tmp_path / name), "recipe.json": b""} for name in ("one", "two"))
    assert one == two
    if prefix == "recurrent:":
        assert metadata["facts"]["dimension of word vectors"] == 6
        return
    assert metadata["facts"]["dimension of word vectors"] == 20
    assert one["lm/model.safetensors"] == (lm / "model.safetensors").read_bytes()
    # Trained on cached states, and opened with states computed anew.
    held = metadata["results"]["held out"]
    assert set(held) == {"mcc", "accuracy"}
    assert np.isfinite(score_texts(tmp_path / "one", TEXTS)).all()


def test_states_that_do_not_fit_into_the_cache_are_computed_for_each_batch(tmp_path: Path) -> None:
    model = load_model(f"recurrent:{make_recurrent(tmp_path / 'lm', directions=2)}")
    rows = pack_sentences([encoding.word_ids for encoding in model.encode([Query(text) for text in TEXTS])])
    cached, fresh = LMStateSource(rows, model.net), LMStateSource(rows, model.net, max_cache_bytes=0)
    assert cached.cached_states is not None
    assert fresh.cached_states is None
    net = build_sentence_network(
        SentenceNetworkShape("pooling", "max", 10, mixed=2, directions=2, layers=1, hidden=4)
    ).eval()
    for indices in ([0, 3, 1], [5], list(range(len(TEXTS)))):
        one, other = (net(*source.get_batch(indices)) for source in (cached, fresh))
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-6)


@pytest.mark.parametrize("vectors", ["", "elmo"])
def test_a_frozen_encoder_keeps_its_weights_and_gets_a_hidden_layer(vectors: str, tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm") if vectors else None
    train_classifier(
        PoolingRecipe(**SMALL, vectors=f"elmo:recurrent:{lm}" if lm else ""), [make_suite()], tmp_path / "first"
    )
    recipe = PoolingRecipe(encoder=str(tmp_path / "first"), head_hidden=7, epochs=3, learning_rate=0.01)
    for name in ("second", "again"):
        metadata = train_classifier(recipe, [make_suite(reverse=False)], tmp_path / name)
    first, second = (read_sentence_network(tmp_path / name, "cpu").state_dict() for name in ("first", "second"))
    for name in first:
        if not name.startswith("head."):
            assert torch.equal(first[name], second[name])
    assert second["head.hidden.weight"].shape == (7, 16)
    assert metadata["facts"]["parameters"] == 7 * 16 + 7 + 7 + 1
    assert "encoder" in metadata["facts"]
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("second", "again"))
    assert one == two
    assert len(score_texts(tmp_path / "second", ["The cat sleeps."])) == 1


def test_the_reported_scores_are_those_of_the_saved_classifier(tmp_path: Path) -> None:
    from acceptability.measures.classification import matthews
    from acceptability.train.classifiers import split_held_out

    metadata = train_classifier(PoolingRecipe(**{**SMALL, "epochs": 2}), [make_suite()], tmp_path / "made")
    _, held = split_held_out(read_labelled_sentences([make_suite()]))
    found = np.array(score_texts(tmp_path / "made", list(held.texts)))
    labels = np.array(held.labels, np.float64)
    assert metadata["results"]["held out"]["mcc"] == pytest.approx(matthews((found > 0).astype(float), labels))
    assert metadata["results"]["held out"]["accuracy"] == pytest.approx(((found > 0) == (labels > 0)).mean())


def run(out: Path) -> CheckpointedRun:
    checkpoints = CheckpointManager(out / ".checkpoint", {})
    return CheckpointedRun(checkpoints=checkpoints, report_progress=lambda _: None)


def make_source(rows: list[list[int]], labels: list[int]) -> LabelledSource:
    return LabelledSource(WordIdSource(pack_sentences(rows), "cpu"), np.array(labels, np.float64))


def test_training_stops_out_of_patience_and_keeps_the_best_weights(tmp_path: Path) -> None:
    rows, labels = [[3, 4], [4, 3], [3, 3, 4], [4, 4, 3]], [1, 0, 1, 0]
    torch.manual_seed(1)
    net = build_sentence_network(SentenceNetworkShape("pooling", "max", 4, words=5, layers=1, hidden=4))
    # The held-out labels are inverted: the better the training, the lower the held-out MCC.
    held = make_source(rows, [1 - label for label in labels])
    recipe = PoolingRecipe(learning_rate=0.05, batch_size=2, epochs=200, patience=3, seed=1)
    result = fit_network(net, make_source(rows, labels), held, recipe, run(tmp_path))
    assert result.stopped_early
    assert result.epochs == result.best_epoch + 3
    accuracy = ((predict_logits(net, held.source) > 0) == (held.labels > 0)).mean()
    assert result.accuracy == accuracy


def test_an_epoch_has_every_sentence_once_in_batches_of_similar_length() -> None:
    lengths = np.random.default_rng(1).integers(1, 40, 1000)
    batches = EpochBatches(lengths.tolist(), 16, seed=2, batches_per_bucket=50)
    assert batches.steps_per_epoch == 63
    first, second = ([batches.get_batch(step) for step in range(start, start + 63)] for start in (0, 63))
    assert sorted(index for indices in first for index in indices) == list(range(1000))
    assert sorted(index for indices in second for index in indices) == list(range(1000))
    assert first != second
    assert batches.get_batch(0) == first[0]
    assert np.mean([np.ptp(lengths[indices]) for indices in first]) < 3
    full = EpochBatches(lengths.tolist(), 16, seed=2, drop_last=True)
    assert {len(full.get_batch(step)) for step in range(full.steps_per_epoch)} == {16}
    assert full.steps_per_epoch == 62


def test_a_loss_that_is_not_finite_is_an_error(tmp_path: Path) -> None:
    net = build_sentence_network(SentenceNetworkShape("cbow", "sum", 4, words=5))
    one = make_source([[3, 4], [4, 3, 3]], [1, 0])
    with pytest.raises(TrainError, match="choose a lower learning rate"):
        fit_network(net, one, one, CbowRecipe(learning_rate=float("inf"), batch_size=2, epochs=3), run(tmp_path))


@pytest.mark.parametrize("kind", [CbowRecipe, PoolingRecipe])
def test_a_killed_run_resumes_and_ends_with_the_same_bytes(
    kind: type[CbowRecipe | PoolingRecipe], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_training, "TrainingSchedule", partial(TrainingSchedule, save_every=5))
    train_classifier(kind(**SMALL), [make_suite()], tmp_path / "straight")

    def kill_in_third_epoch(progress: TrainingProgress) -> None:
        if progress.stage == "dev set" and progress.done > 14:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_classifier(kind(**SMALL), [make_suite()], tmp_path / "killed", progress=kill_in_third_epoch)
    evaluations: list[int] = []
    train_classifier(
        kind(**SMALL),
        [make_suite()],
        tmp_path / "killed",
        progress=lambda tick: evaluations.append(tick.done) if tick.stage == "dev set" else None,
    )
    assert evaluations == [21, 28]
    straight, killed = ({**files(tmp_path / name), "recipe.json": b""} for name in ("straight", "killed"))
    assert straight == killed
    facts = [json.loads((tmp_path / name / "recipe.json").read_text())["facts"] for name in ("straight", "killed")]
    assert facts[0] == facts[1]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_drawn_hyperparameters_are_in_the_ranges_of_the_paper(seed: int) -> None:
    drawn = sample_hyperparameters(seed, PoolingRecipe(vectors="glove.txt"))
    assert drawn == sample_hyperparameters(seed, PoolingRecipe(vectors="glove.txt"))
    assert 500 <= drawn.hidden <= 1500
    assert 1 <= drawn.layers <= 5
    assert 1e-5 <= drawn.learning_rate <= 3e-3
    assert drawn.dropout in (0.2, 0.5)
    assert (drawn.vectors, drawn.seed, drawn.patience) == ("glove.txt", seed, 4)
    above = sample_hyperparameters(seed, PoolingRecipe(encoder="real-fake", head_hidden=5))
    assert 20 <= above.head_hidden <= 1200
    assert 1e-5 <= above.learning_rate <= 1e-2
    assert (above.hidden, above.patience) == (PoolingRecipe().hidden, 20)
    assert 20 <= sample_hyperparameters(seed, CbowRecipe()).hidden <= 1200


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hidden": 0}, "hidden is 0; expected a whole number from 1"),
        ({"patience": -1}, "patience is -1"),
        ({"dropout": 1.0}, "dropout is 1.0; expected a share"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"words": "letters"}, "words is 'letters'; expected one of"),
        ({"encoder": "x", "vectors": "y", "head_hidden": 1}, "vectors and encoder are both given"),
        ({"encoder": "x"}, "such as head_hidden=200"),
    ],
)
def test_invalid_options_are_named(options: dict[str, object], problem: str) -> None:
    with pytest.raises(TrainError, match=problem):
        PoolingRecipe(**options)


def test_wrong_paths_are_named(tmp_path: Path, recurrent_dir: Path) -> None:
    for recipe, problem in (
        (CbowRecipe(vectors="nowhere.txt"), "no file of word vectors nowhere.txt"),
        (CbowRecipe(vectors="elmo:causal:gpt2"), "only a language model of this package"),
        (PoolingRecipe(encoder=str(recurrent_dir), head_hidden=3), "no classifier of this package"),
    ):
        with pytest.raises((TrainError, ModelError), match=problem):
            train_classifier(recipe, [make_suite()], tmp_path / "made")
    train_classifier(CbowRecipe(**SMALL), [make_suite()], tmp_path / "cbow")
    with pytest.raises(TrainError, match="of the kind 'cbow'; expected a pooling"):
        train_classifier(
            PoolingRecipe(encoder=str(tmp_path / "cbow"), head_hidden=3), [make_suite()], tmp_path / "made"
        )


def test_sentences_without_words_or_with_too_many_are_named(tmp_path: Path) -> None:
    sentences = [*make_suite().sentences, Sentence("long", "the " * 600, 1)]
    with pytest.raises(TrainError, match=r"has 600 words; a classifier reads from 1 to 512"):
        CbowRecipe(**SMALL).fit(
            LabelledSentences(tuple(sentences)), LabelledSentences(make_suite().sentences), tmp_path, lambda _: None
        )
    sentences[-1] = Sentence("none", "…", 1)
    with pytest.raises(TrainError, match="'…' has 0 words"):
        CbowRecipe(**SMALL, words="words").fit(
            LabelledSentences(tuple(sentences)), LabelledSentences(make_suite().sentences), tmp_path, lambda _: None
        )


def test_the_command_trains_a_model_that_can_be_loaded(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from acceptability.cli import app

    rows = "".join(f"{each.text}\t{each.label}\n" for each in make_suite().sentences)
    (tmp_path / "mine.tsv").write_text("sentence\tlabel\n" + rows)
    options = [f"--set={name}={value}" for name, value in SMALL.items()]
    done = CliRunner().invoke(
        app, ["train", "cbow", "--data", str(tmp_path / "mine.tsv"), "--out", str(tmp_path / "c"), *options]
    )
    assert done.exit_code == 0, done.output
    assert f"classifier:{tmp_path / 'c'}" in done.stdout
    assert isinstance(load_model(f"classifier:{tmp_path / 'c'}"), SentenceClassifier)


def test_recipes_can_be_imported_without_torch_and_name_the_missing_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; sys.modules['torch'] = None; import acceptability.train.classifiers.real_fake as e; print(e)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    monkeypatch.setattr("acceptability.train.classifiers.word_classifiers.is_importable", lambda name: name != "torch")
    with pytest.raises(MissingExtra, match="'train cbow' needs torch and safetensors"):
        train_classifier(CbowRecipe(**SMALL), [make_suite()], tmp_path / "made")
