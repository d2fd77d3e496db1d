"""Classifiers and their restarts in the tables of the CoLA paper, with random scores in place of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, matthews_corrcoef
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.api.scoring import score
from acceptability.cli import app
from acceptability.errors import ModelError, UnknownName
from acceptability.papers import study
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.cola import cells
from acceptability.papers.cola.classifier_tables import load_both_dev_sets, load_group_restarts
from acceptability.papers.cola.corpus_tables import build_split_suites, find_split
from acceptability.papers.cola.restart_groups import (
    RestartGroup,
    find_adc_row,
    find_groups,
    find_table_4_row,
    read_trained_classifier,
)
from acceptability.papers.niu_penn.user_models import StudyModel
from acceptability.train.classifiers import LabelledSentences
from acceptability.types import Scores, Sentence, Suite

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A function that makes the folder of a classifier with nothing but its recipe."""

    def make_folder(name: str, kind: str = "cbow", held: float = 0.5, data: str = "", **options: object) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        metadata = {
            "kind": kind,
            "recipe": options,
            "data": data,
            "results": {"held out": {"mcc": held, "accuracy": 0.7}},
        }
        (folder / "recipe.json").write_text(json.dumps(metadata))
        return folder

    return make_folder


@pytest.fixture
def fake_scores(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Suite], Scores]:
    """Scores in place of a classifier's: random by its name, and mostly correct."""

    def scores(name: str, suite: Suite) -> Scores:
        random = np.random.default_rng(sum(map(ord, name)))
        values = {sentence.id: (sentence.label or 0) - 0.4 + random.normal(0, 0.8) for sentence in suite.sentences}
        return Scores(values, name, "log_odds()", f"{name}.log_odds()")

    def compute_scores(self: StudyModel, suite: Suite, reductions: Mapping[str, str]) -> dict[str, Scores]:
        assert reductions == {"log_odds": "log_odds"}
        return {"log_odds": scores(Path(self.model).name, suite)}

    monkeypatch.setattr(StudyModel, "compute_scores", compute_scores)
    return scores


def by_key(cells: list[Cell]) -> dict[CellKey, Cell]:
    cells_by_key = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(cells_by_key) == len(cells)
    return cells_by_key


def predicted(scores: Scores, sentences: tuple[Sentence, ...]) -> np.ndarray:
    return np.array([scores[sentence.id] > 0 for sentence in sentences])


@pytest.mark.parametrize(
    ("kind", "options", "row"),
    [
        ("cbow", {"vectors": "recurrent:/m/lstm"}, "CBOW"),
        ("cbow", {"vectors": ""}, None),
        ("real-fake", {"vectors": ""}, "Pooling, BNC, Real/Fake, Real/Fake"),
        ("real-fake", {"vectors": "glove.txt"}, "Pooling, GloVe, Real/Fake, Real/Fake"),
        ("pooling", {"vectors": "elmo:recurrent:/m/lstm", "encoder": ""}, "Pooling, ELMo-Style, CoLA, CoLA"),
        ("pooling", {"vectors": "", "encoder": ""}, None),
        ("pooling", {"vectors": "glove.txt", "encoder": "no-such-folder"}, "Pooling, GloVe, Real/Fake, CoLA"),
        ("transformer", {"model": "bert-base-uncased"}, None),
    ],
)
def test_the_row_of_a_classifier(make: Make, kind: str, options: dict[str, object], row: str | None) -> None:
    assert find_table_4_row(read_trained_classifier(make("one", kind, **options))) == row
    assert row is None or ("Table 4", row, "In-domain MCC") in read_published_values("cola")


def test_the_embeddings_of_a_transferred_classifier_are_those_of_its_encoder(make: Make) -> None:
    encoder = make("encoder", "real-fake", vectors="elmo:recurrent:lstm")
    one = read_trained_classifier(make("one", "pooling", vectors="", encoder=str(encoder)))
    assert find_table_4_row(one) == "Pooling, ELMo-Style, Real/Fake, CoLA"
    assert find_adc_row(one) == "CoLA baseline (W&B)"
    assert one.description == "pooling (encoder=encoder)"


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ({"model": "/data/bert-large-cased"}, "BERT large-cased"),
        ({"model": "bert-large-cased", "frozen": True}, None),
        ({"model": "mine"}, None),
    ],
)
def test_which_row_of_the_adc_paper(make: Make, options: dict[str, object], row: str | None) -> None:
    assert find_adc_row(read_trained_classifier(make("one", "transformer", **options))) == row


def test_the_purpose_of_a_group_follows_from_its_folder(make: Make, tmp_path: Path) -> None:
    for seed in (2, 10, 1):
        make(f"all/rows/cbow-{seed}", held=seed / 10)
    make("all/curve/300/pooling-1", "pooling")
    make("all/curve/300/cbow-1")
    make("all/splits/split-random-0/cbow-1")
    groups_by_name = {group.name: group for group in find_groups([tmp_path / "all"])}
    assert list(groups_by_name) == [
        "all/curve/300, cbow",
        "all/curve/300, pooling",
        "all/rows",
        "all/splits/split-random-0",
    ]
    rows = groups_by_name["all/rows"]
    assert [run.folder.name for run in rows.runs] == ["cbow-1", "cbow-2", "cbow-10"]
    assert (rows.best_run_index, rows.size, rows.split) == (2, None, "")
    assert groups_by_name["all/curve/300, cbow"].size == 300
    assert groups_by_name["all/splits/split-random-0"].split == "random-0"


def test_a_folder_without_restarts_is_an_error(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        find_groups([tmp_path / "nothing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds a classifier"):
        find_groups([tmp_path / "empty"])
    folder = make("bad/one")
    (folder / "recipe.json").write_text('{"kind": 3}')
    with pytest.raises(ModelError, match="lacks 'kind' or 'recipe'"):
        find_groups([tmp_path / "bad"])
    (folder / "recipe.json").write_text("{")
    with pytest.raises(ModelError, match="cannot read"):
        find_groups([tmp_path / "bad"])


def test_no_run_is_chosen_if_one_has_no_held_out_mcc(make: Make, tmp_path: Path) -> None:
    make("all/cbow-1")
    folder = make("all/cbow-2")
    (folder / "recipe.json").write_text(json.dumps({"kind": "cbow", "recipe": {}}))
    assert find_groups([tmp_path / "all"])[0].best_run_index is None


def test_mean_deviation_max_and_majority_over_restarts(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed, held in ((1, 0.2), (2, 0.6), (3, 0.4)):
        make(f"cbows/cbow-{seed}", held=held, vectors="recurrent:lm")
    cells_by_key = by_key(study("cola", restarts=[tmp_path / "cbows"]))
    suite = load_suite("cola/in_domain_dev")
    labels = [sentence.label for sentence in suite.sentences]
    votes = [predicted(fake_scores(f"cbow-{seed}", suite), suite.sentences) for seed in (1, 2, 3)]
    values = [matthews_corrcoef(labels, vote) for vote in votes]
    expected = {
        "chosen run": values[1],
        "mean": np.mean(values),
        "standard deviation": np.std(values, ddof=1),
        "max": max(values),
        "ensemble": matthews_corrcoef(labels, np.sum(votes, axis=0) >= 2),
    }
    for statistic, value in expected.items():
        assert cells_by_key["Table 4", f"cbows, {statistic}", "In-domain MCC"].ours == pytest.approx(value)
    right = cells_by_key["Table 4", "cbows, chosen run", "In-domain Acc."].ours
    assert right == pytest.approx(accuracy_score(labels, votes[1]))
    assert "too good" in cells_by_key["Table 4", "cbows, max", "In-domain MCC"].note
    paper = cells_by_key["Table 4", "CBOW", "In-domain MCC"]
    assert (paper.paper, paper.agrees) == ("0.063", None)
    assert paper.ours == pytest.approx(values[1])
    assert "held out of the training set; the paper: test sets" in paper.source
    assert "other sentences than CoLA's training set" in paper.note


def test_figures_are_of_the_sentences_that_have_a_feature(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    train = LabelledSentences(load_suite("cola/train").sentences).data_hash
    folder = make("cbow-1", data=train)
    model = f"classifier:{folder}"
    cells_by_key = by_key(cells([model]))
    suite = load_suite("cola/analysis")
    scores = fake_scores("cbow-1", suite)
    for figure, grain, name in (
        ("Figure 4", "major", "Question"),
        ("ADC paper, Figure 2", "major", "Predicate"),
        ("ADC paper, Figure 3", "minor", "Island"),
    ):
        part = tuple(sentence for sentence in suite.sentences if sentence.tags[f"{grain}/{name}"] == "1")
        cell = cells_by_key[figure, f"{model}: {name}", "MCC"]
        assert cell.ours == pytest.approx(
            matthews_corrcoef([sentence.label for sentence in part], predicted(scores, part))
        )
        assert cell.note.startswith(f"{len(part)} sentences")
    assert cells_by_key["ADC paper, Figure 3", f"{model}: Sem  Violation", "MCC"].ours is None
    assert "other sentences" not in cells_by_key["Table 4", model, "In-domain MCC"].note
    counts = [
        sum(key[0] == figure for key in cells_by_key)
        for figure in ("Figure 4", "ADC paper, Figure 2", "ADC paper, Figure 3")
    ]
    assert counts == [9, 15, 63]


def test_restarts_in_a_row_of_the_adc_paper(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed in (1, 2):
        make(f"berts/transformer-{seed}", "transformer", model="bert-base-uncased")
    cells_by_key = by_key(study("cola", restarts=[tmp_path / "berts"]))
    row = "ADC paper, Table 5", "BERT base-uncased"
    assert cells_by_key[*row, "mean"].paper == "0.478"
    assert cells_by_key[*row, "mean"].ours == cells_by_key["ADC paper, Table 5", "berts", "mean"].ours is not None
    assert cells_by_key[*row, "ensemble"].agrees is None
    assert cells_by_key["ADC paper, Table 5", "GPT (W&B)", "mean"].ours is None


def test_splits_fill_table_5_if_they_were_trained_on_its_training_part(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    split_suites = build_split_suites(find_split("4", read_published_values("cola")))
    encoder = make("encoder", "real-fake", vectors="elmo:recurrent:lstm")
    data_hash = LabelledSentences(split_suites.train.sentences).data_hash
    for seed in (1, 2):
        make(f"splits/split-4/pooling-{seed}", "pooling", data=data_hash, encoder=str(encoder))
    cells = by_key(study("cola", restarts=[tmp_path / "splits"]))
    suite = split_suites.out_of_domain
    labels = [sentence.label for sentence in suite.sentences]
    values = [
        matthews_corrcoef(labels, predicted(fake_scores(f"pooling-{seed}", suite), suite.sentences)) for seed in (1, 2)
    ]
    cell = cells["Table 5", "4", "Out-of-Domain MCC"]
    assert cell.ours == pytest.approx(np.mean(values))
    assert (cell.paper, cell.agrees) == ("0.267", None)
    assert cells["Table 5", "4", "Overall Acc."].ours is not None
    assert cells["Table 5", "1", "Overall Acc."].ours is None


def test_a_classifier_that_may_have_seen_the_evaluation_data_is_refused(data: Path, make: Make, tmp_path: Path) -> None:
    make("splits/split-4/cbow-1", data="another")
    with pytest.raises(ModelError, match="was not trained on the training part of split 4"):
        study("cola", restarts=[tmp_path / "splits"])
    make("others/split-nine/cbow-1")
    with pytest.raises(UnknownName, match="no split of CoLA named 'nine'"):
        study("cola", restarts=[tmp_path / "others"])


def test_the_learning_curve(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for size in (100, 1000):
        for seed in (1, 2):
            make(f"curve/{size}/cbow-{size + seed}")
    cells_by_key = by_key(study("cola", restarts=[tmp_path / "curve"]))
    name, suite = "cbow (word vectors learnt with it)", load_both_dev_sets()
    labels = [sentence.label for sentence in suite.sentences]
    values = {
        run: matthews_corrcoef(labels, predicted(fake_scores(f"cbow-{run}", suite), suite.sentences))
        for run in (101, 102, 1001, 1002)
    }
    for run, value in values.items():
        assert cells_by_key["Figure 3", f"{name}, {run // 100 * 100}", f"MCC, seed {run}"].ours == pytest.approx(value)
    means = [np.mean([values[101], values[102]]), np.mean([values[1001], values[1002]])]
    assert cells_by_key["Figure 3", f"{name}, 100", "MCC, mean"].ours == pytest.approx(means[0])
    assert cells_by_key["Figure 3", f"{name}, line", "slope"].ours == pytest.approx(means[1] - means[0])
    assert cells_by_key["Figure 3", f"{name}, 1000", "fitted"].ours == pytest.approx(means[1])
    assert ("Table 4", "curve/100, mean", "In-domain MCC") not in cells_by_key


def test_one_size_has_points_and_no_line(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    make("curve/100/cbow-1")
    cells_by_key = by_key(study("cola", restarts=[tmp_path / "curve"]))
    cell = cells_by_key["Figure 3", "cbow (word vectors learnt with it), line", "slope"]
    assert cell.ours is None
    assert "needs three of two" in cell.note


def test_a_real_classifier_is_scored_by_log_odds(data: Path, classifier_dir: Path, tmp_path: Path) -> None:
    copytree(classifier_dir, tmp_path / "berts/transformer-1")
    metadata = {"kind": "transformer", "recipe": {"model": "bert-base-uncased"}}
    (tmp_path / "berts/transformer-1/recipe.json").write_text(json.dumps(metadata))
    (group,) = find_groups([tmp_path / "berts"])
    suite = load_suite("cola/targeted/reflexive")
    (scores,) = load_group_restarts(group, StudyModel("")).score_suite(suite)
    assert scores.values == score(suite, f"classifier:{classifier_dir}").values


def test_restarts_from_the_command_line(
    data: Path, make: Make, fake_scores: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed in (1, 2):
        make(f"cbows/cbow-{seed}")
    arguments = ["study", "cola", "--restarts", str(tmp_path / "cbows"), "--table", "Table 6", "--json"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    rows = {(row["row"], row["column"]): row for row in json.loads(done.stdout)}
    assert rows["cbows, mean", "Reflexive"]["ours"] is not None
    assert rows["LSTM LM WLPM", "Reflexive"]["paper"] == "0.152"


def test_the_description_of_a_group(make: Make) -> None:
    one = read_trained_classifier(make("cbow-1", vectors="/m/glove.txt"))
    assert RestartGroup("g", (one,)).description == "cbow (vectors=glove.txt)"
    assert one.input_description == ""
    metadata = replace(one, facts={"dimension of word vectors": 100, "token coverage": 0.978})
    assert metadata.input_description == "word vectors of 100 dimensions, token coverage 97.8%"
