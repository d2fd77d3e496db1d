"""Niu and Penn (2020): which rows of the paper our trained models stand in, and that they are compared with nothing."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from acceptability import load_model
from acceptability.cli import app
from acceptability.errors import SpellingError
from acceptability.studies import study
from acceptability.studies.cells import Cell, Key, printed
from acceptability.studies.niu_penn_folder import told_of
from acceptability.studies.niu_penn_rows import Place, in_paper, place_in, place_of, placed
from acceptability.train import Recipe, train
from acceptability.train.aggregate_markov import AggregateMarkov
from acceptability.train.corpus import open_corpus
from acceptability.train.ngram import NGram
from acceptability.train.perplexity import perplexity
from acceptability.train.recurrent import LSTM, QRNN, RNN
from tiny import SENTENCES, TEXTS

SMALL = {"embedding": 6, "hidden": 6, "layers": 1, "epochs": 1, "cutoffs": (5, 9), "classes": 3, "vocabulary": 60}
RECIPES: dict[str, Recipe] = {
    "pereira": AggregateMarkov(classes=2, lower=True),
    "pereira-cased": AggregateMarkov(classes=2, vocabulary=20),
    "mikolov": RNN(**SMALL, lower=True),
    "qrnn": QRNN(**SMALL, output="softmax", lower=True),
    "qrnn-tied": QRNN(**SMALL, output="tas"),
    "tas": QRNN(**SMALL, output="tas_double"),
    "lstm": LSTM(**SMALL, lower=True),
    "ngram": NGram(order=2, lower=True),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One model of each recipe, as it is spelled."""
    folder = tmp_path_factory.mktemp("niu-penn-rows")
    (folder / "small.txt").write_text("\n".join(SENTENCES * 3), encoding="utf-8")
    for name, recipe in RECIPES.items():
        train(recipe, [folder / "small.txt"], folder / name)
    spelled = {name: f"{recipe.opened_as}:{folder / name}" for name, recipe in RECIPES.items()}
    return spelled | {"tas": f"{spelled['tas']}(improper=True)"}


def test_a_model_tells_where_it_stands(models: dict[str, str]) -> None:
    assert {name: place_of(model) for name, model in models.items()} == {
        "pereira": Place("Pereira", "BNC"),
        "pereira-cased": Place("Pereira", "WT103"),
        "mikolov": Place("Mikolov", "BNC"),
        "qrnn": Place("QRNN regular", "BNC"),
        "qrnn-tied": Place("QRNN regular", "WT103"),
        "tas": Place("QRNN TAS", "WT103"),
        "lstm": None,
        "ngram": None,
    }
    assert [place_of(model) for model in ("uniform", "causal:gpt2")] == [None, None]
    assert len(placed(list(models.values()))) == 6


def test_two_models_for_one_place_are_named(models: dict[str, str]) -> None:
    first, second = models["pereira"], f"{models['pereira']}(unknown='uniform')"
    with pytest.raises(SpellingError) as caught:
        study("niu-penn", [first, models["mikolov"], second])
    assert all(part in str(caught.value) for part in (first, second, "row Pereira, column BNC", "give one of them"))


def test_every_place_of_the_paper_is_of_a_model() -> None:
    """All of Tables 1 to 6 is of one of the eight models, or of GPT-2."""
    keys = [key for key in printed("niu_penn") if key[0].startswith("Table")]
    assert Counter("GPT-2" if "GPT-2" in "".join(key[1:]) else "ours" if place_in(key) else key for key in keys) == {
        "GPT-2": 92,
        "ours": 320,
    }
    places = Counter((key[0], place_in(key)) for key in keys if place_in(key))
    counts = {"Table 1": 1, "Table 2": 6, "Table 3": 4, "Table 4": 24, "Table 6": 2}
    for name in ("Pereira", "Mikolov", "QRNN regular", "QRNN TAS"):
        for text in ("BNC", "WT103"):
            assert {table: places[table, Place(name, text)] for table in counts} == counts
            with_case = text == "WT103" and name != "Pereira"
            assert places["Table 5", Place(name, text)] == (8 if with_case else 0)
    assert place_in(("Table 6", "QRNN-R, Raw", "WT")) == Place("QRNN regular", "WT103")
    assert place_in(("Section 5", "Pereira", "Colorless green ideas")) is None


def own_cells(model: str) -> dict[Key, Cell]:
    """Numbers in a model's own rows, all different."""
    keys = [("Table 1", model, "first.txt"), ("Table 1", model, "second.txt")]
    for norm in ("Raw", "Norm", "SLOR"):
        row = f"{model}, {norm}"
        keys += [("Table 2", row, scale) for scale in ("LOG", "EXP")]
        keys += [("Table 3", row, scale) for scale in ("LOG", "EXP")]
        keys += [("Table 5", row, f"{scale} {case}") for scale in ("LOG", "EXP") for case in ("with case", "lower")]
        keys += [
            ("Table 4", f"{row} {scale}", f"our groups above 4, {name}") for scale in ("LOG", "EXP") for name in "ab"
        ]
        keys += [("Table 4", f"{row} {scale}", "our groups above 4, median") for scale in ("LOG", "EXP")]
        keys += [("Table 6", row, "our sense against our nonsense")]
    return {key: Cell(*key, None, float(number), f"re-scored with {model}", None) for number, key in enumerate(keys)}


def test_numbers_go_where_they_belong(models: dict[str, str]) -> None:
    model, values = models["tas"], printed("niu_penn")
    own = own_cells(model)
    found = in_paper(values, {Place("QRNN TAS", "WT103"): model}, own)
    wanted: dict[Key, Key] = {
        ("Table 1", "QRNN (TAS)", "WT103"): ("Table 1", model, "first.txt"),
        ("Table 2", "QRNN TAS, SLOR", "WT103 EXP"): ("Table 2", f"{model}, SLOR", "EXP"),
        ("Table 3", "QRNN TAS, Norm", "WT103 LOG"): ("Table 3", f"{model}, Norm", "LOG"),
        ("Table 4", "QRNN TAS WT103, Raw EXP", "groups above 4, median"): (
            "Table 4",
            f"{model}, Raw EXP",
            "our groups above 4, median",
        ),
        ("Table 5", "QRNN TAS, Raw", "LOG lower"): ("Table 5", f"{model}, Raw", "LOG lower"),
        ("Table 6", "QRNN, SLOR", "WT"): ("Table 6", f"{model}, SLOR", "our sense against our nonsense"),
    }
    for place, row in wanted.items():
        assert (found[place].ours, found[place].paper) == (own[row].ours, values[place].value)
    assert {cell.agrees for cell in found.values()} == {None}
    assert {place_in(key) for key in found} == {Place("QRNN TAS", "WT103")}
    assert "does not say what QRNN-R is" in found["Table 6", "QRNN, Raw", "WT"].note


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("mikolov", "our recipe rnn (output classes) on {words} words of other text (sha256 {sha}…), lower-cased, "),
        ("pereira-cased", "our recipe aggregate-markov on {words} words of other text (sha256 {sha}…), cased, "),
    ],
)
def test_the_source_says_what_differs(name: str, told: str, models: dict[str, str]) -> None:
    model = models[name]
    ours, place = told_of(model), place_of(model)
    assert ours is not None
    assert place is not None
    found = in_paper(printed("niu_penn"), {place: model}, own_cells(model))
    (source,) = {cell.source for cell in found.values()}
    assert source.startswith(told.format(words=ours.words, sha=ours.corpus[:8]))
    ends = {
        "mikolov": "vocabulary 60; the paper: BNC, about 100 million words",
        "pereira-cased": "vocabulary 20; the paper: WikiText-103, about 103 million words, lower-cased for this model",
    }
    assert source.endswith(ends[name])


def test_what_a_given_model_cannot_tell_has_its_reason(models: dict[str, str]) -> None:
    model = models["pereira"]
    reason = Cell("Table 1", model, "text of --corpus", None, None, f"re-scored with {model}", None, "add --corpus")
    found = in_paper(printed("niu_penn"), {Place("Pereira", "BNC"): model}, {("Table 1", model, reason.column): reason})
    key = "Table 1", "Pereira", "BNC"
    assert found == {key: Cell(*key, "362.19", None, "not computed", None, "add --corpus")}


@pytest.mark.usefixtures("data")
def test_the_study_fills_the_rows_of_the_paper(models: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "first.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "second.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    corpus = [tmp_path / "first.txt", tmp_path / "second.txt"]
    asked = [part for name in ("pereira", "tas") for part in ("--model", models[name])]
    asked += [part for path in corpus for part in ("--corpus", str(path))]
    done = CliRunner().invoke(app, ["study", "niu-penn", *asked, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    found = {(row["table"], row["row"], row["column"]): row for row in rows}
    assert len(found) == len(rows)
    filled = [row for key, row in found.items() if place_in(key) and row["ours"] is not None]
    # One number, then 6, 4 and 24 of each; 8 of letter case; none of sense, for which there is no treebank.
    assert Counter(row["table"] for row in filled) == {
        "Table 1": 2,
        "Table 2": 12,
        "Table 3": 8,
        "Table 4": 48,
        "Table 5": 8,
    }
    assert {row["agrees"] for row in filled} == {None}
    table_1 = found["Table 1", "Pereira", "BNC"]
    assert table_1["ours"] == found["Table 1", models["pereira"], "first.txt"]["ours"]
    assert table_1["ours"] == perplexity(models["pereira"], open_corpus(corpus[:1]), words="split").perplexity
    improper = found["Table 1", "QRNN (TAS)", "WT103"]
    assert improper["paper"] == "34.98"
    assert improper["note"].startswith("improper: the probabilities of all words sum to more than 1")
    assert "improper=True)|corpus" in improper["note"]
    twin = found["Table 2", f"{models['tas']}, SLOR", "LOG"]
    assert found["Table 2", "QRNN TAS, SLOR", "WT103 LOG"]["ours"] == twin["ours"]
    assert "add --corpus FILE.conllu" in found["Table 6", "QRNN, SLOR", "WT"]["note"]
    assert "our recipe rnn, lower=false" in found["Table 2", "Mikolov, Raw", "WT103 LOG"]["note"]
    assert load_model(models["tas"]).signature.endswith("improper=True)")
