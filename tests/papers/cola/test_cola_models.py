"""Language models in the tables of the CoLA paper, each number against an independent computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef

from acceptability import load_suite
from acceptability.errors import MissingExtra
from acceptability.measures.classification import MCC
from acceptability.papers import cola
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.cola import compute_language_model_cells, find_paper_row
from acceptability.papers.cola.classifier_tables import fit_threshold, load_both_dev_sets
from acceptability.papers.niu_penn.user_models import StudyModel, read_study_texts
from acceptability.train import train
from acceptability.train.ngram_recipes import NGramRecipe
from tiny import SENTENCES

WLPM = "word_lp_min"


def by_key(cells: list[Cell]) -> dict[CellKey, Cell]:
    cells_by_key = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(cells_by_key) == len(cells)
    return cells_by_key


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A bigram that was trained here."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES * 3), encoding="utf-8")
    train(NGramRecipe(order=2), [text], tmp_path / "bigram")
    return f"ngram:{tmp_path / 'bigram'}"


def test_a_bigram_fills_its_row_and_is_compared_with_nothing(data: Path, small: str, tmp_path: Path) -> None:
    texts = read_study_texts([tmp_path / "text.txt"])
    cells_by_key = by_key(
        compute_language_model_cells(StudyModel(small), read_published_values("cola"), texts.plain_corpora)
    )
    in_paper = {key: cell for key, cell in cells_by_key.items() if key[1] == "2-gram LM WLPM"}
    assert len(in_paper) == 4
    for (table, _, column), cell in in_paper.items():
        assert cell.ours == cells_by_key[table, f"{small}, {WLPM}", column].ours
        assert cell.paper is not None
        assert cell.agrees is None
        assert "development sets here, test sets there" in cell.source
    # Ten reductions; in two domains accuracy and MCC, on five sets two thresholds; a perplexity.
    assert len(cells_by_key) - len(in_paper) == 10 * (2 * 2 + 5 * 2) + 1
    assert ("Section 4.1", small, "text.txt") in cells_by_key


def test_accuracy_and_mcc_are_of_the_same_predictions(data: Path, small: str) -> None:
    cells_by_key = by_key(compute_language_model_cells(StudyModel(small), read_published_values("cola"), ()))
    suite = load_suite("cola/out_of_domain_dev")
    scores = StudyModel(small).compute_scores(suite, {"slor": _make_spec(small, "slor")})["slor"]
    splits = [MCC(threshold="cv", seed=seed).units(suite, scores) for seed in range(10)]
    row = f"{small}, slor"
    for column, compute in (("Acc.", accuracy_score), ("MCC", matthews_corrcoef)):
        values = [compute(units["label"], units["predicted"]) for units in splits]
        cell = cells_by_key["Table 4", row, f"Out-of-domain {column}"]
        assert cell.ours == pytest.approx(np.mean(values))
        spread = f"sd over 10 splits into folds {np.std(values, ddof=1):.4f}, {min(values):.4f} to {max(values):.4f}"
        assert "mean over 10 splits into folds" in cell.note
        assert spread in cell.note


def test_table_6_uses_the_threshold_of_cola(data: Path, small: str) -> None:
    cells_by_key = by_key(compute_language_model_cells(StudyModel(small), read_published_values("cola"), ()))
    dev, reflexive = load_both_dev_sets(), load_suite("cola/targeted/reflexive")
    mean = {"mean_lp": "mean_lp"}
    line = fit_threshold(dev, StudyModel(small).compute_scores(dev, mean)["mean_lp"])
    given_ones = (
        StudyModel(small).compute_scores(reflexive, mean)["mean_lp"].of(sentence.id for sentence in reflexive.sentences)
    )
    labels = [sentence.label for sentence in reflexive.sentences]
    cell = cells_by_key["Table 6", f"{small}, mean_lp", "Reflexive"]
    assert cell.ours == pytest.approx(matthews_corrcoef(labels, given_ones > line))
    own = cells_by_key["Table 6", f"{small}, mean_lp", "Reflexive, own threshold"]
    assert own.ours is not None
    assert "sd over 10 splits into folds" in own.note


def test_the_fitted_threshold_is_the_best_of_all(data: Path, small: str) -> None:
    dev = load_both_dev_sets()
    scores = StudyModel(small).compute_scores(dev, {"mean_lp": "mean_lp"})["mean_lp"]
    values, labels = (
        scores.of(sentence.id for sentence in dev.sentences),
        [sentence.label for sentence in dev.sentences],
    )
    at = matthews_corrcoef(labels, values > fit_threshold(dev, scores))
    others = np.quantile(values, np.linspace(0.01, 0.99, 60))
    assert all(at >= matthews_corrcoef(labels, values > threshold) - 1e-12 for threshold in others)


@pytest.mark.parametrize(
    ("kind", "options", "row"),
    [
        ("lstm", {}, "LSTM LM WLPM"),
        ("ngram", {"order": 4}, "4-gram LM WLPM"),
        ("ngram", {"order": 5}, None),
        ("rnn", {}, None),
    ],
)
def test_the_row_of_a_language_model(tmp_path: Path, kind: str, options: dict[str, object], row: str | None) -> None:
    metadata = {"kind": kind, "recipe": options, "files": ["a.txt"], "words": 3, "corpus": "abc"}
    (tmp_path / "recipe.json").write_text(json.dumps(metadata))
    assert find_paper_row(f"recurrent:{tmp_path}") == row


def test_named_models() -> None:
    assert find_paper_row("trigram") == "3-gram LM WLPM"
    assert find_paper_row("uniform") is None


def test_without_unigrams_the_plain_reductions_remain_with_a_reason(
    data: Path, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(spec: str) -> None:
        raise MissingExtra("slor", "wordfreq", "wordfreq")

    monkeypatch.setattr(cola, "as_reduction", absent)
    model_cells = compute_language_model_cells(StudyModel(small), read_published_values("cola"), ())
    assert {cell.row.rpartition(", ")[2] for cell in model_cells} == {"lp", "mean_lp", "pen_lp"}
    assert all("no Word LogProb Min-1" in cell.note for cell in model_cells)


def test_the_perplexity_of_an_lstm_stands_beside_that_of_the_paper(
    tmp_path: Path, data: Path, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cola, "find_paper_row", lambda model: "LSTM LM WLPM")
    texts = read_study_texts([tmp_path / "text.txt"])
    cells_by_key = by_key(
        compute_language_model_cells(StudyModel(small), read_published_values("cola"), texts.plain_corpora)
    )
    cell = cells_by_key["Section 4.1", "LSTM LM", "perplexity"]
    assert (cell.paper, cell.agrees) == ("56.1", None)
    assert cell.ours == cells_by_key["Section 4.1", small, "text.txt"].ours
    assert "the paper: the BNC" in cell.source


def _make_spec(model: str, name: str) -> str:
    return f"{name}(unigrams='{model.partition(':')[2]}/unigrams.tsv')"


def test_the_unigrams_are_the_models_own(data: Path, small: str) -> None:
    cells_by_key = by_key(compute_language_model_cells(StudyModel(small), read_published_values("cola"), ()))
    note = cells_by_key["Table 4", f"{small}, {WLPM}", "In-domain MCC"].note
    assert "the model's own unigrams" in note
    assert "[lenient].word_lp_min" in note
    assert "ten-fold cross-validation" in note
