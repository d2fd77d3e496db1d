from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.models.ngram.arpa import Arpa, convert_arpa
from acceptability.models.ngram.trained import NGramTable, read_ngram_table
from acceptability.text.words import SPECIAL_WORDS, START
from acceptability.train import train
from acceptability.train.ngram_recipes import VariKNRecipe
from tiny import SENTENCES, arpa_text

needs_varikn = pytest.mark.skipif(not is_importable("varikn"), reason="varikn is not installed")


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(SENTENCES * 3) + "\n")
    return path


def test_a_missing_varikn_names_the_extra(corpus: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("acceptability.train.ngram_recipes.is_importable", lambda _: False)
    with pytest.raises(MissingExtra, match=r"acceptability\[ngram\]"):
        train(VariKNRecipe(), [corpus], tmp_path / "m")


def test_options_are_checked() -> None:
    for options in (
        {"order": 1},
        {"vocabulary": -1},
        {"words": "letters"},
        {"growth": 0.0},
        {"prune": -1.0},
        {"bits": 4},
    ):
        with pytest.raises(TrainError, match=f"{next(iter(options))} "):
            VariKNRecipe(**options)


def test_an_arpa_file_becomes_arrays(tmp_path: Path) -> None:
    path = tmp_path / "a.arpa"
    path.write_text(arpa_text(SENTENCES))
    arpa = Arpa(path)
    words = (
        *SPECIAL_WORDS,
        *sorted(word for (word,) in (gram for gram in arpa.logprobs if len(gram) == 1) if word not in SPECIAL_WORDS),
    )
    orders = convert_arpa(arpa, words)
    table = NGramTable(len(words), tuple(orders))
    for text in SENTENCES:
        numbers = np.array([START, *(words.index(word) for word in text.split())])
        logprobs = table.logprobs(numbers, np.arange(len(numbers)) == 0)
        history = ["<s>"]
        for word, logprob in zip(text.split(), logprobs.tolist()[1:], strict=True):
            assert logprob == pytest.approx(arpa.logprob(word, history), abs=1e-5)
            history.append(word)
    with pytest.raises(TrainError, match="others"):
        convert_arpa(arpa, (*words, "zebra"))


@needs_varikn
def test_a_grown_model_sums_to_one_and_is_an_ngram_model(corpus: Path, tmp_path: Path) -> None:
    metadata = train(
        VariKNRecipe(order=4, growth=0.001, prune=0.0, vocabulary=30), [corpus], tmp_path / "m", dev=[corpus]
    )
    assert len(metadata["facts"]["n-grams of each order"]) > 1
    assert metadata["results"]["dev"]["perplexity"] > 1
    table = read_ngram_table(tmp_path / "m" / "model.safetensors")
    for history in ([START], [START, 4], [4, 5]):
        rows = np.array([[*history, word] for word in range(table.size)])
        starts = np.zeros(rows.shape, bool)
        starts[:, 0] = True
        logprobs = table.logprobs(rows.ravel(), starts.ravel()).reshape(rows.shape)[:, -1]
        # variKN leaves a small probability to <s>, which is never predicted.
        assert math.fsum(np.exp(logprobs).tolist()) == pytest.approx(1.0, abs=1e-3)
