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
from acceptability.errors import SpecError
from acceptability.papers import study
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.niu_penn.model_rows import (
    PaperModel,
    fill_paper_cells,
    find_paper_model,
    index_by_paper_model,
    match_paper_model,
    read_recipe_metadata,
)
from acceptability.train import Recipe, train
from acceptability.train.aggregate_markov_em import AggregateMarkovRecipe
from acceptability.train.corpus import open_corpus
from acceptability.train.ngram_recipes import NGramRecipe
from acceptability.train.perplexity import perplexity
from acceptability.train.recurrent_recipes import LSTMRecipe, QRNNRecipe, RNNRecipe
from tiny import SENTENCES, TEXTS

SMALL = {"embedding": 6, "hidden": 6, "layers": 1, "epochs": 1, "cutoffs": (5, 9), "classes": 3, "vocabulary": 60}
RECIPES: dict[str, Recipe] = {
    "pereira": AggregateMarkovRecipe(classes=2, lower=True),
    "pereira-cased": AggregateMarkovRecipe(classes=2, vocabulary=20),
    "mikolov": RNNRecipe(**SMALL, lower=True),
    "qrnn": QRNNRecipe(**SMALL, output="softmax", lower=True),
    "qrnn-tied": QRNNRecipe(**SMALL, output="tas"),
    "tas": QRNNRecipe(**SMALL, output="tas_double"),
    "lstm": LSTMRecipe(**SMALL, lower=True),
    "ngram": NGramRecipe(order=2, lower=True),
}


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """One model of each recipe, by its spec."""
    folder = tmp_path_factory.mktemp("niu-penn-rows")
    (folder / "small.txt").write_text("\n".join(SENTENCES * 3), encoding="utf-8")
    for name, recipe in RECIPES.items():
        train(recipe, [folder / "small.txt"], folder / name)
    spelled = {name: f"{recipe.opened_as}:{folder / name}" for name, recipe in RECIPES.items()}
    return spelled | {"tas": f"{spelled['tas']}(improper=True)"}


def test_the_row_of_a_model_follows_from_its_recipe(models: dict[str, str]) -> None:
    assert {name: match_paper_model(model) for name, model in models.items()} == {
        "pereira": PaperModel("Pereira", "BNC"),
        "pereira-cased": PaperModel("Pereira", "WT103"),
        "mikolov": PaperModel("Mikolov", "BNC"),
        "qrnn": PaperModel("QRNN regular", "BNC"),
        "qrnn-tied": PaperModel("QRNN regular", "WT103"),
        "tas": PaperModel("QRNN TAS", "WT103"),
        "lstm": None,
        "ngram": None,
    }
    assert [match_paper_model(model) for model in ("uniform", "causal:gpt2")] == [None, None]
    assert len(index_by_paper_model(list(models.values()))) == 6


def test_two_models_for_one_row_are_an_error(models: dict[str, str]) -> None:
    first, second = models["pereira"], f"{models['pereira']}(unknown='uniform')"
    with pytest.raises(SpecError) as caught:
        study("niu-penn", [first, models["mikolov"], second])
    assert all(part in str(caught.value) for part in (first, second, "row Pereira, column BNC", "give one of them"))


def test_every_cell_of_the_paper_is_of_a_model() -> None:
    """All of Tables 1 to 6 is of one of the eight models, or of GPT-2."""
    keys = [key for key in read_published_values("niu_penn") if key[0].startswith("Table")]
    assert Counter(
        "GPT-2" if "GPT-2" in "".join(key[1:]) else "ours" if find_paper_model(key) else key for key in keys
    ) == {
        "GPT-2": 92,
        "ours": 320,
    }
    places = Counter((key[0], find_paper_model(key)) for key in keys if find_paper_model(key))
    counts = {"Table 1": 1, "Table 2": 6, "Table 3": 4, "Table 4": 24, "Table 6": 2}
    for name in ("Pereira", "Mikolov", "QRNN regular", "QRNN TAS"):
        for text in ("BNC", "WT103"):
            assert {table: places[table, PaperModel(name, text)] for table in counts} == counts
            with_case = text == "WT103" and name != "Pereira"
            assert places["Table 5", PaperModel(name, text)] == (8 if with_case else 0)
    assert find_paper_model(("Table 6", "QRNN-R, Raw", "WT")) == PaperModel("QRNN regular", "WT103")
    assert find_paper_model(("Section 5", "Pereira", "Colorless green ideas")) is None


def own_cells(model: str) -> dict[CellKey, Cell]:
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


def test_numbers_fill_the_right_cells(models: dict[str, str]) -> None:
    model, values = models["tas"], read_published_values("niu_penn")
    own = own_cells(model)
    filled_cells = fill_paper_cells(values, {PaperModel("QRNN TAS", "WT103"): model}, own)
    expected: dict[CellKey, CellKey] = {
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
    for key, row in expected.items():
        assert (filled_cells[key].ours, filled_cells[key].paper) == (own[row].ours, values[key].value)
    assert {cell.agrees for cell in filled_cells.values()} == {None}
    assert {find_paper_model(key) for key in filled_cells} == {PaperModel("QRNN TAS", "WT103")}
    assert "does not say what QRNN-R is" in filled_cells["Table 6", "QRNN, Raw", "WT"].note


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("mikolov", "our recipe rnn (output classes) on {words} words of other text (sha256 {sha}…), lower-cased, "),
        ("pereira-cased", "our recipe aggregate-markov on {words} words of other text (sha256 {sha}…), cased, "),
    ],
)
def test_the_source_names_the_differences(name: str, description: str, models: dict[str, str]) -> None:
    model = models[name]
    ours, paper_model = read_recipe_metadata(model), match_paper_model(model)
    assert ours is not None
    assert paper_model is not None
    filled_cells = fill_paper_cells(read_published_values("niu_penn"), {paper_model: model}, own_cells(model))
    (source,) = {cell.source for cell in filled_cells.values()}
    assert source.startswith(description.format(words=ours.word_count, sha=ours.corpus_sha256[:8]))
    ends = {
        "mikolov": "vocabulary 60; the paper: BNC, about 100 million words",
        "pereira-cased": "vocabulary 20; the paper: WikiText-103, about 103 million words, lower-cased for this model",
    }
    assert source.endswith(ends[name])


def test_a_cell_that_a_given_model_cannot_fill_has_a_reason(models: dict[str, str]) -> None:
    model = models["pereira"]
    reason = Cell("Table 1", model, "text of --corpus", None, None, f"re-scored with {model}", None, "add --corpus")
    filled_cells = fill_paper_cells(
        read_published_values("niu_penn"),
        {PaperModel("Pereira", "BNC"): model},
        {("Table 1", model, reason.column): reason},
    )
    key = "Table 1", "Pereira", "BNC"
    assert filled_cells == {key: Cell(*key, "362.19", None, "not computed", None, "add --corpus")}


@pytest.mark.usefixtures("data")
def test_the_study_fills_the_rows_of_the_paper(models: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "first.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "second.txt").write_text("\n".join(SENTENCES), encoding="utf-8")
    corpus = [tmp_path / "first.txt", tmp_path / "second.txt"]
    arguments = [part for name in ("pereira", "tas") for part in ("--model", models[name])]
    arguments += [part for path in corpus for part in ("--corpus", str(path))]
    done = CliRunner().invoke(app, ["study", "niu-penn", *arguments, "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    rows_by_key = {(row["table"], row["row"], row["column"]): row for row in rows}
    assert len(rows_by_key) == len(rows)
    filled = [row for key, row in rows_by_key.items() if find_paper_model(key) and row["ours"] is not None]
    # One number, then 6, 4 and 24 of each; 8 of letter case; none of sense, for which there is no treebank.
    assert Counter(row["table"] for row in filled) == {
        "Table 1": 2,
        "Table 2": 12,
        "Table 3": 8,
        "Table 4": 48,
        "Table 5": 8,
    }
    assert {row["agrees"] for row in filled} == {None}
    table_1 = rows_by_key["Table 1", "Pereira", "BNC"]
    assert table_1["ours"] == rows_by_key["Table 1", models["pereira"], "first.txt"]["ours"]
    assert table_1["ours"] == perplexity(models["pereira"], open_corpus(corpus[:1]), words="split").perplexity
    improper = rows_by_key["Table 1", "QRNN (TAS)", "WT103"]
    assert improper["paper"] == "34.98"
    assert improper["note"].startswith("improper: the probabilities of all words sum to more than 1")
    assert "improper=True)|corpus" in improper["note"]
    twin = rows_by_key["Table 2", f"{models['tas']}, SLOR", "LOG"]
    assert rows_by_key["Table 2", "QRNN TAS, SLOR", "WT103 LOG"]["ours"] == twin["ours"]
    assert "add --corpus FILE.conllu" in rows_by_key["Table 6", "QRNN, SLOR", "WT"]["note"]
    assert "our recipe rnn, lower=false" in rows_by_key["Table 2", "Mikolov, Raw", "WT103 LOG"]["note"]
    assert load_model(models["tas"]).signature.endswith("improper=True)")
