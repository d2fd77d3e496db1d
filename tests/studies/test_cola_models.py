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
from acceptability.studies import cola_models
from acceptability.studies.cells import Cell, Key, printed
from acceptability.studies.cola_judging import both_domains, fitted_threshold
from acceptability.studies.cola_models import full, language_model_cells, row_of
from acceptability.studies.niu_penn_models import Asked
from acceptability.studies.niu_penn_texts import given
from acceptability.train import train
from acceptability.train.ngram import NGram
from tiny import SENTENCES

WLPM = "word_lp_min"


def by_key(cells: list[Cell]) -> dict[Key, Cell]:
    found = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(found) == len(cells)
    return found


@pytest.fixture
def small(tmp_path: Path) -> str:
    """A bigram that was trained here."""
    text = tmp_path / "text.txt"
    text.write_text("\n".join(SENTENCES * 3), encoding="utf-8")
    train(NGram(order=2), [text], tmp_path / "bigram")
    return f"ngram:{tmp_path / 'bigram'}"


def test_a_bigram_stands_in_its_row_and_is_compared_with_nothing(data: Path, small: str, tmp_path: Path) -> None:
    texts = given([tmp_path / "text.txt"])
    found = by_key(language_model_cells(Asked(small), printed("cola"), texts.plain))
    in_paper = {key: cell for key, cell in found.items() if key[1] == "2-gram LM WLPM"}
    assert len(in_paper) == 4
    for (table, _, column), cell in in_paper.items():
        assert cell.ours == found[table, f"{small}, {WLPM}", column].ours
        assert cell.paper is not None
        assert cell.agrees is None
        assert "development sets here, test sets there" in cell.source
    # Ten reductions; in two domains accuracy and MCC, on five sets two thresholds; a perplexity.
    assert len(found) - len(in_paper) == 10 * (2 * 2 + 5 * 2) + 1
    assert ("Section 4.1", small, "text.txt") in found


def test_accuracy_and_mcc_are_of_the_same_decisions(data: Path, small: str) -> None:
    found = by_key(language_model_cells(Asked(small), printed("cola"), ()))
    suite = load_suite("cola/out_of_domain_dev")
    scores = Asked(small).scores(suite, {"slor": _spelled(small, "slor")})["slor"]
    units = MCC(threshold="cv").units(suite, scores)
    row = f"{small}, slor"
    assert found["Table 4", row, "Out-of-domain Acc."].ours == pytest.approx(
        accuracy_score(units["label"], units["predicted"])
    )
    assert found["Table 4", row, "Out-of-domain MCC"].ours == pytest.approx(
        matthews_corrcoef(units["label"], units["predicted"])
    )


def test_table_6_takes_the_threshold_of_cola(data: Path, small: str) -> None:
    found = by_key(language_model_cells(Asked(small), printed("cola"), ()))
    dev, reflexive = both_domains(), load_suite("cola/targeted/reflexive")
    mean = {"mean_lp": "mean_lp"}
    line = fitted_threshold(dev, Asked(small).scores(dev, mean)["mean_lp"])
    given_ones = Asked(small).scores(reflexive, mean)["mean_lp"].of(each.id for each in reflexive.sentences)
    labels = [each.label for each in reflexive.sentences]
    cell = found["Table 6", f"{small}, mean_lp", "Reflexive"]
    assert cell.ours == pytest.approx(matthews_corrcoef(labels, given_ones > line))
    assert found["Table 6", f"{small}, mean_lp", "Reflexive, own threshold"].ours is not None


def test_the_fitted_threshold_is_the_best_of_all(data: Path, small: str) -> None:
    dev = both_domains()
    scores = Asked(small).scores(dev, {"mean_lp": "mean_lp"})["mean_lp"]
    values, labels = scores.of(each.id for each in dev.sentences), [each.label for each in dev.sentences]
    at = matthews_corrcoef(labels, values > fitted_threshold(dev, scores))
    others = np.quantile(values, np.linspace(0.01, 0.99, 60))
    assert all(at >= matthews_corrcoef(labels, values > each) - 1e-12 for each in others)


@pytest.mark.parametrize(
    ("kind", "options", "row"),
    [
        ("lstm", {}, "LSTM LM WLPM"),
        ("ngram", {"order": 4}, "4-gram LM WLPM"),
        ("ngram", {"order": 5}, None),
        ("rnn", {}, None),
    ],
)
def test_which_row_a_language_model_answers_to(
    tmp_path: Path, kind: str, options: dict[str, object], row: str | None
) -> None:
    told = {"kind": kind, "recipe": options, "files": ["a.txt"], "words": 3, "corpus": "abc"}
    (tmp_path / "recipe.json").write_text(json.dumps(told))
    assert row_of(f"recurrent:{tmp_path}") == row


def test_models_with_a_name_of_their_own() -> None:
    assert row_of("trigram") == "3-gram LM WLPM"
    assert row_of("uniform") is None
    assert full("uniform") == "uniform"


def test_without_unigrams_the_plain_reductions_are_left_and_the_note_says_why(
    data: Path, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(spelling: str) -> None:
        raise MissingExtra("slor", "wordfreq", "wordfreq")

    monkeypatch.setattr(cola_models, "load_reduction", absent)
    found = language_model_cells(Asked(small), printed("cola"), ())
    assert {cell.row.rpartition(", ")[2] for cell in found} == {"lp", "mean_lp", "pen_lp"}
    assert all("no Word LogProb Min-1" in cell.note for cell in found)


def test_the_perplexity_of_an_lstm_stands_beside_that_of_the_paper(
    tmp_path: Path, data: Path, small: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cola_models, "row_of", lambda model: "LSTM LM WLPM")
    texts = given([tmp_path / "text.txt"])
    found = by_key(language_model_cells(Asked(small), printed("cola"), texts.plain))
    cell = found["Section 4.1", "LSTM LM", "perplexity"]
    assert (cell.paper, cell.agrees) == ("56.1", None)
    assert cell.ours == found["Section 4.1", small, "text.txt"].ours
    assert "the paper: the BNC" in cell.source


def _spelled(model: str, name: str) -> str:
    return f"{name}(unigrams='{model.partition(':')[2]}/unigrams.tsv')"


def test_the_unigrams_are_the_models_own(data: Path, small: str) -> None:
    found = by_key(language_model_cells(Asked(small), printed("cola"), ()))
    note = found["Table 4", f"{small}, {WLPM}", "In-domain MCC"].note
    assert "the model's own unigrams" in note
    assert "[lenient].word_lp_min" in note
    assert "ten-fold cross-validation" in note
