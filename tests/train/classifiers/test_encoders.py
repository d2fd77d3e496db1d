"""``train real-fake``: an encoder from real and fake sentences, killed and resumed, transferred."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from acceptability import Sentence, Suite, load_model
from acceptability.errors import TrainError
from acceptability.train import train
from acceptability.train.classifiers import train_classifier, word_training
from acceptability.train.classifiers.real_fake import RealFakeRecipe, sample_hyperparameters
from acceptability.train.classifiers.word_classifiers import PoolingRecipe
from acceptability.train.corpus import Corpus
from acceptability.train.recipe import TrainingProgress
from acceptability.types import Query
from tiny import make_recurrent

NAMES = ("cat", "dog", "linguist", "bird", "child", "farmer")
SMALL = {
    "embedding": 8,
    "hidden": 8,
    "batch_size": 16,
    "epochs": 6,
    "learning_rate": 0.02,
    "patience": 0,
    "dropout": 0.1,
}
REQUESTED_MODELS: list[str] = []


def real_fake(
    corpus: Corpus, lm: str, *, seed: int, limit: int | None, tally: Counter[str]
) -> Iterator[tuple[str, int]]:
    """A stand-in without a language model: fakes are reversed sentences, and a tenth of the first words is unknown."""
    REQUESTED_MODELS.append(lm)
    random = np.random.default_rng(seed)
    for text in islice(corpus.sentences(), limit // 2 if limit else None):
        words = text.lower().split()
        words[0] = "<unk>" if random.random() < 0.1 else words[0]
        tally["real"] += 1
        yield " ".join(words), 1
        yield " ".join(words[::-1]), 0


@pytest.fixture(autouse=True)
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("acceptability.train.classifiers.real_fake")
    module.generate_real_fake_texts = real_fake
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    lines = [f"the {one} sees a {two} again ." for one in NAMES for two in NAMES]
    paths = tmp_path / "text.txt", tmp_path / "dev.txt"
    for path, some in zip(paths, (lines[:28], lines[28:]), strict=True):
        path.write_text("\n".join(some) + "\n")
    return paths


def test_it_learns_and_reports_its_accuracy(texts: tuple[Path, Path], tmp_path: Path) -> None:
    ticks: list[TrainingProgress] = []
    metadata = train(
        RealFakeRecipe(**SMALL, lm="recurrent:x"), texts[:1], tmp_path / "a", dev=texts[1:], progress=ticks.append
    )
    facts = metadata["facts"]
    assert REQUESTED_MODELS[-2:] == ["recurrent:x"] * 2
    assert (facts["sentences, real and fake"], facts["sentences of the dev set, real and fake"]) == (56, 16)
    assert facts["share of real sentences"] == 0.5
    assert facts["sentences generated and left out"] == {"real": 28}
    assert (facts["real/fake accuracy on the dev set"], facts["real/fake MCC on the dev set"]) == (1.0, 1.0)
    model = load_model(f"classifier:{tmp_path / 'a'}")
    good, bad = model.run(model.encode([Query("The cat sees a bird again."), Query(". again bird a sees cat the")]))
    assert good.logits[1] > 0 > bad.logits[1]
    assert {"training", "dev set"} <= {tick.stage for tick in ticks}
    assert metadata["results"] == {"sentences of dev also in training": 0}
    assert "the\t" in (tmp_path / "a" / "unigrams.tsv").read_text()


def test_the_numbers_of_training_and_dev_sentences(texts: tuple[Path, Path], tmp_path: Path) -> None:
    recipe = RealFakeRecipe(**{**SMALL, "epochs": 1}, sentences=20, dev_sentences=6)
    facts = train(recipe, texts[:1], tmp_path / "a", dev=texts[1:])["facts"]
    assert (facts["sentences, real and fake"], facts["sentences of the dev set, real and fake"]) == (20, 6)
    facts = train(recipe, texts[:1], tmp_path / "b")["facts"]
    assert not [name for name in facts if "dev set" in name]


def test_a_killed_run_resumes_and_ends_with_the_same_bytes(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = RealFakeRecipe(**SMALL, save_every=2, evaluate_every=3)
    train(recipe, texts[:1], tmp_path / "whole", dev=texts[1:])
    loss, steps = word_training.binary_cross_entropy_with_logits, []

    def fail_after_nine_steps(*arguments: object) -> object:
        steps.append(1)
        if len(steps) > 9:
            raise KeyboardInterrupt
        return loss(*arguments)

    monkeypatch.setattr(word_training, "binary_cross_entropy_with_logits", fail_after_nine_steps)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, texts[:1], tmp_path / "killed", dev=texts[1:])
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    monkeypatch.setattr(word_training, "binary_cross_entropy_with_logits", loss)
    n_requests = len(REQUESTED_MODELS)
    metadata = train(recipe, texts[:1], tmp_path / "killed", dev=texts[1:])
    assert metadata["facts"]["sentences generated and left out"] == {"real": 28}
    # The fakes are read from the checkpoint, not generated again.
    assert len(REQUESTED_MODELS) == n_requests
    for name in ("model.safetensors", "vocabulary.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_an_unknown_word_in_the_text_is_one_word(texts: tuple[Path, Path], tmp_path: Path) -> None:
    train(RealFakeRecipe(**{**SMALL, "epochs": 1}), texts[:1], tmp_path / "a")
    words = json.loads((tmp_path / "a" / "vocabulary.json").read_text())["words"]
    assert not {"<", ">", "unk"} & set(words)
    rows = dict(line.split("\t") for line in (tmp_path / "a" / "unigrams.tsv").read_text().splitlines()[1:])
    assert int(rows["<unk>"]) >= 1
    assert sum(map(int, rows.values())) == 28 * 7


def test_states_of_a_language_model_and_transfer(texts: tuple[Path, Path], tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm")
    recipe = RealFakeRecipe(**{**SMALL, "epochs": 1}, vectors=f"elmo:recurrent:{lm}")
    train(recipe, texts[:1], tmp_path / "encoder", dev=texts[1:])
    sentences = [
        Sentence(f"{index}{label}", " ".join(line.split()[:: 1 if label else -1]), label)
        for index, line in enumerate(texts[0].read_text().splitlines())
        for label in (0, 1)
    ]
    metadata = train_classifier(
        PoolingRecipe(encoder=str(tmp_path / "encoder"), head_hidden=5, epochs=2),
        [Suite("made", tuple(sentences))],
        tmp_path / "c",
    )
    assert metadata["facts"]["encoder"].startswith("classifier:encoder@")
    assert sorted(path.name for path in (tmp_path / "c" / "lm").iterdir()) == ["model.safetensors", "vocabulary.json"]


def test_a_text_without_fakes_is_an_error(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["acceptability.train.classifiers.real_fake"]
    monkeypatch.setattr(
        module, "generate_real_fake_texts", lambda corpus, lm, **_: ((text, 1) for text in corpus.sentences())
    )
    with pytest.raises(TrainError, match="28 sentences, not both real and fake ones"):
        train(RealFakeRecipe(**SMALL), texts[:1], tmp_path / "a")


def test_options() -> None:
    drawn = sample_hyperparameters(3, RealFakeRecipe(lm="recurrent:x", sentences=10))
    assert (drawn.lm, drawn.sentences, drawn.seed, drawn.patience) == ("recurrent:x", 10, 3, 4)
    assert 500 <= drawn.hidden <= 1500
    with pytest.raises(TrainError, match="dev_sentences is 0; expected a whole number from 1"):
        RealFakeRecipe(dev_sentences=0)
