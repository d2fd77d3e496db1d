"""``train real-fake``: an encoder from real and fake sentences, killed and taken up, transferred."""

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
from acceptability.train.classifiers import teach, telling_apart
from acceptability.train.classifiers.encoders import RealFake, sampled
from acceptability.train.classifiers.words import Pooling
from acceptability.train.corpus import Corpus
from acceptability.train.tick import Tick
from acceptability.types import Query
from tiny import make_recurrent

NAMES = ("cat", "dog", "linguist", "bird", "child", "farmer")
SMALL = {"embedding": 8, "hidden": 8, "batch": 16, "epochs": 6, "rate": 0.02, "patience": 0, "dropout": 0.1}
ASKED: list[str] = []


def real_fake(
    corpus: Corpus, lm: str, *, seed: int, limit: int | None, tally: Counter[str]
) -> Iterator[tuple[str, int]]:
    """A stand-in that is not drawn from any model: the fakes are read backwards, and every tenth word is unknown."""
    ASKED.append(lm)
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
    module.real_fake = real_fake
    monkeypatch.setitem(sys.modules, module.__name__, module)


@pytest.fixture
def texts(tmp_path: Path) -> tuple[Path, Path]:
    lines = [f"the {one} sees a {two} again ." for one in NAMES for two in NAMES]
    paths = tmp_path / "text.txt", tmp_path / "dev.txt"
    for path, some in zip(paths, (lines[:28], lines[28:]), strict=True):
        path.write_text("\n".join(some) + "\n")
    return paths


def test_it_learns_and_says_what_it_reaches(texts: tuple[Path, Path], tmp_path: Path) -> None:
    ticks: list[Tick] = []
    told = train(RealFake(**SMALL, lm="recurrent:x"), texts[:1], tmp_path / "a", dev=texts[1:], tell=ticks.append)
    facts = told["facts"]
    assert ASKED[-2:] == ["recurrent:x"] * 2
    assert (facts["sentences, real and fake"], facts["sentences of the dev set, real and fake"]) == (56, 16)
    assert facts["share of real ones"] == 0.5
    assert facts["sentences made, and left out"] == {"real": 28}
    assert (facts["real/fake accuracy on the dev set"], facts["real/fake MCC on the dev set"]) == (1.0, 1.0)
    model = load_model(f"classifier:{tmp_path / 'a'}")
    good, bad = model.run(model.encode([Query("The cat sees a bird again."), Query(". again bird a sees cat the")]))
    assert good.logits[1] > 0 > bad.logits[1]
    assert {"training", "dev set"} <= {tick.stage for tick in ticks}
    assert told["results"] == {"sentences of dev also in training": 0}
    assert "the\t" in (tmp_path / "a" / "unigrams.tsv").read_text()


def test_how_many_sentences_are_learnt_from_and_held(texts: tuple[Path, Path], tmp_path: Path) -> None:
    recipe = RealFake(**{**SMALL, "epochs": 1}, sentences=20, held=6)
    facts = train(recipe, texts[:1], tmp_path / "a", dev=texts[1:])["facts"]
    assert (facts["sentences, real and fake"], facts["sentences of the dev set, real and fake"]) == (20, 6)
    facts = train(recipe, texts[:1], tmp_path / "b")["facts"]
    assert not [name for name in facts if "dev set" in name]


def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = RealFake(**SMALL, save_every=2, evaluate_every=3)
    train(recipe, texts[:1], tmp_path / "whole", dev=texts[1:])
    loss, steps = telling_apart.binary_cross_entropy_with_logits, []

    def broken(*given: object) -> object:
        steps.append(1)
        if len(steps) > 9:
            raise KeyboardInterrupt
        return loss(*given)

    monkeypatch.setattr(telling_apart, "binary_cross_entropy_with_logits", broken)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, texts[:1], tmp_path / "killed", dev=texts[1:])
    assert not (tmp_path / "killed" / "model.safetensors").exists()
    monkeypatch.setattr(telling_apart, "binary_cross_entropy_with_logits", loss)
    asked = len(ASKED)
    told = train(recipe, texts[:1], tmp_path / "killed", dev=texts[1:])
    assert told["facts"]["sentences made, and left out"] == {"real": 28}
    # The fakes are those of before.
    assert len(ASKED) == asked
    for name in ("model.safetensors", "vocabulary.json"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_words_that_are_unknown_already_are_one_word(texts: tuple[Path, Path], tmp_path: Path) -> None:
    train(RealFake(**{**SMALL, "epochs": 1}), texts[:1], tmp_path / "a")
    words = json.loads((tmp_path / "a" / "vocabulary.json").read_text())["words"]
    assert not {"<", ">", "unk"} & set(words)
    rows = dict(line.split("\t") for line in (tmp_path / "a" / "unigrams.tsv").read_text().splitlines()[1:])
    assert int(rows["<unk>"]) >= 1
    assert sum(map(int, rows.values())) == 28 * 7


def test_states_of_a_language_model_and_transfer(texts: tuple[Path, Path], tmp_path: Path) -> None:
    lm = make_recurrent(tmp_path / "lm")
    recipe = RealFake(**{**SMALL, "epochs": 1}, vectors=f"elmo:recurrent:{lm}")
    train(recipe, texts[:1], tmp_path / "encoder", dev=texts[1:])
    sentences = [
        Sentence(f"{place}{label}", " ".join(line.split()[:: 1 if label else -1]), label)
        for place, line in enumerate(texts[0].read_text().splitlines())
        for label in (0, 1)
    ]
    told = teach(
        Pooling(encoder=str(tmp_path / "encoder"), top=5, epochs=2), [Suite("made", tuple(sentences))], tmp_path / "c"
    )
    assert told["facts"]["encoder"].startswith("classifier:encoder@")
    assert sorted(path.name for path in (tmp_path / "c" / "lm").iterdir()) == ["model.safetensors", "vocabulary.json"]


def test_a_text_without_fakes_teaches_nothing(
    texts: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = sys.modules["acceptability.train.classifiers.real_fake"]
    monkeypatch.setattr(module, "real_fake", lambda corpus, lm, **_: ((text, 1) for text in corpus.sentences()))
    with pytest.raises(TrainError, match="28 sentences, not both real and fake ones"):
        train(RealFake(**SMALL), texts[:1], tmp_path / "a")


def test_options() -> None:
    drawn = sampled(3, RealFake(lm="recurrent:x", sentences=10))
    assert (drawn.lm, drawn.sentences, drawn.seed, drawn.patience) == ("recurrent:x", 10, 3, 4)
    assert 500 <= drawn.hidden <= 1500
    with pytest.raises(TrainError, match="held is 0; expected a whole number from 1"):
        RealFake(held=0)
