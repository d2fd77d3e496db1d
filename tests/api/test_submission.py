"""Files of predictions: the formats of GLUE and Kaggle, majority votes, and invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability import Scores, score
from acceptability.api import submission
from acceptability.api.submission import predict_labels, read_test_set, write_predictions
from acceptability.errors import ReportError, ScoreError, SpecError, SuiteError

TEXTS = ['He said "sleep.', "The dog sleeps.", "Cats the chase.", "It rains."]


def table(folder: Path, header: str = "index\tsentence", name: str = "test.tsv", first: int = 0) -> Path:
    path = folder / name
    path.write_text("\n".join([header, *(f"{k}\t{text}" for k, text in enumerate(TEXTS, start=first))]) + "\n")
    return path


def fake_scores(monkeypatch, votes: dict[str, list[float]], reductions: dict[str, str] | None = None) -> None:
    def fake_score(suite, model, reduce, **_):
        ids = [sentence.id for sentence in suite.sentences]
        reduction = (reductions or {}).get(model, "log_odds()")
        return Scores(dict(zip(ids, votes[model], strict=True)), model, reduction, f"{model}.{reduction}")

    monkeypatch.setattr(submission, "score", fake_score)


def test_glue_files_have_tabs_and_the_index(tmp_path: Path, monkeypatch) -> None:
    fake_scores(monkeypatch, {"m": [0.1, -0.1, 0.0, 3.0]})
    test = read_test_set(table(tmp_path))
    assert [sentence.text for sentence in test.suite.sentences] == TEXTS
    predictions = predict_labels(test, ["m"])
    (path,) = write_predictions([predictions], tmp_path / "out")
    assert path == tmp_path / "out" / "CoLA.tsv"
    assert path.read_bytes() == b"index\tprediction\n0\t1\n1\t0\n2\t0\n3\t1\n"
    assert predictions.notes == ("test has 4 sentences; a test set of GLUE has 1,063",)
    assert "threshold:0.0" in predictions.signature
    assert "n:4" in predictions.signature


def test_kaggle_files_have_commas_and_the_id(tmp_path: Path, monkeypatch) -> None:
    fake_scores(monkeypatch, {"m": [1, 2, 3, 4]})
    test = read_test_set(table(tmp_path, "Id\tSentence", "cola_in_domain_test.tsv", 1))
    predictions = predict_labels(test, ["m"])
    (path,) = write_predictions([predictions], tmp_path)
    assert path.name == "cola_in_domain_test.csv"
    assert path.read_text() == "Id,Label\n1,1\n2,1\n3,1\n4,1\n"
    assert predictions.notes[0].endswith("a test set of Kaggle has 530 or 533")
    assert "all sentences get the same label" in predictions.notes[1]


def test_several_models_vote_and_ties_are_noted(tmp_path: Path, monkeypatch) -> None:
    fake_scores(monkeypatch, {"a": [1, 1, -1, -1], "b": [1, -1, 1, -1], "c": [1, 1, -1, 1]})
    test = read_test_set(table(tmp_path))
    odd = predict_labels(test, ["a", "b", "c"])
    assert (list(odd.labels.values()), odd.ties) == ([1, 1, 0, 0], 0)
    even = predict_labels(test, ["a", "b"])
    assert (list(even.labels.values()), even.ties) == ([1, 0, 0, 0], 2)
    assert "2 sentences are accepted by half of the 2 models: they get 0" in even.notes
    assert even.signature != odd.signature
    assert even.row()["acceptable"] == 1


def test_a_language_model_needs_a_threshold(tmp_path: Path, monkeypatch) -> None:
    test = read_test_set(table(tmp_path))
    with pytest.raises(ScoreError, match=r"uniform uses lp\(\), which has no natural threshold .* --threshold"):
        predict_labels(test, ["uniform"])
    scores = score(test.suite, "uniform")
    threshold = sorted(scores.values.values())[1]
    predictions = predict_labels(test, ["uniform"], threshold=threshold)
    assert predictions.labels == {key: int(value > threshold) for key, value in scores.values.items()}
    fake_scores(monkeypatch, {"a": [1] * 4, "b": [1] * 4}, {"b": "lp()"})
    with pytest.raises(ScoreError, match="one threshold does not suit both"):
        predict_labels(test, ["a", "b"], threshold=1.0)
    with pytest.raises(SpecError, match="expected a list"):
        predict_labels(test, "uniform")


def test_a_real_classifier(tmp_path: Path, classifier_dir: Path) -> None:
    test = read_test_set(table(tmp_path))
    name = f"classifier:{classifier_dir}"
    odds = score(test.suite, name, "log_odds")
    assert predict_labels(test, [name]).labels == {key: int(value > 0) for key, value in odds.values.items()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("gj04\t1\t\tA sentence.\n", r"line 1: the columns are .*neither GLUE's \(index, sentence\) nor Kaggle's"),
        ("", "the columns are none"),
        ("index\tsentence\n", "has a header and no sentences"),
        ("index\tsentence\n0\tA.\textra\n", "line 2: 3 columns; expected 2"),
        ("index\tsentence\nx\tA.\n", "line 2: the index is 'x'; expected a whole number"),
        ("Id\tSentence\n1\tA.\n1\tB.\n", "line 3: the Id 1 is repeated"),
        ("Id\tSentence\n1\tA.\n2\t \n", "line 3: the sentence is empty"),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "test.tsv"
    path.write_text(content)
    with pytest.raises(SuiteError, match=message):
        read_test_set(path)


def test_files_that_cannot_be_read_or_written(tmp_path: Path, monkeypatch) -> None:
    with pytest.raises(SuiteError, match="cannot read"):
        read_test_set(tmp_path / "nowhere.tsv")
    fake_scores(monkeypatch, {"m": [1, -1, 1, 1]})
    predictions = predict_labels(read_test_set(table(tmp_path)), ["m"])
    with pytest.raises(ReportError, match="two test sets would be written to"):
        write_predictions([predictions, predictions], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot write into"):
        write_predictions([predictions], tmp_path / "file")
