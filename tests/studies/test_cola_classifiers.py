"""Classifiers and their restarts in the tables of the CoLA paper, with stand-ins for what they say."""

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
from acceptability.cli import app
from acceptability.errors import ModelError, UnknownName
from acceptability.scoring import score
from acceptability.studies import study
from acceptability.studies.cells import Cell, Key, printed
from acceptability.studies.cola_classifiers import of_group
from acceptability.studies.cola_groups import Group, groups
from acceptability.studies.cola_judging import both_domains
from acceptability.studies.cola_rows import adc_row_of, row_of, taught
from acceptability.studies.cola_splits import find_split, parts
from acceptability.studies.niu_penn_models import Asked
from acceptability.train.classifiers import Examples
from acceptability.types import Scores, Sentence, Suite

Make = Callable[..., Path]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Makes the folder of a classifier, of which only what it tells is there."""

    def made(name: str, kind: str = "cbow", held: float = 0.5, data: str = "", **options: object) -> Path:
        folder = tmp_path / name
        folder.mkdir(parents=True)
        told = {"kind": kind, "recipe": options, "data": data, "results": {"held out": {"mcc": held, "accuracy": 0.7}}}
        (folder / "recipe.json").write_text(json.dumps(told))
        return folder

    return made


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Suite], Scores]:
    """Lets each classifier answer at random, by its name, and mostly right."""

    def scores(name: str, suite: Suite) -> Scores:
        random = np.random.default_rng(sum(map(ord, name)))
        values = {each.id: (each.label or 0) - 0.4 + random.normal(0, 0.8) for each in suite.sentences}
        return Scores(values, name, "log_odds()", f"{name}.log_odds()")

    def of(self: Asked, suite: Suite, reductions: Mapping[str, str]) -> dict[str, Scores]:
        assert reductions == {"log_odds": "log_odds"}
        return {"log_odds": scores(Path(self.model).name, suite)}

    monkeypatch.setattr(Asked, "scores", of)
    return scores


def by_key(cells: list[Cell]) -> dict[Key, Cell]:
    found = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(found) == len(cells)
    return found


def predicted(scores: Scores, sentences: tuple[Sentence, ...]) -> np.ndarray:
    return np.array([scores[each.id] > 0 for each in sentences])


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
def test_which_row_a_classifier_answers_to(make: Make, kind: str, options: dict[str, object], row: str | None) -> None:
    assert row_of(taught(make("one", kind, **options))) == row
    assert row is None or ("Table 4", row, "In-domain MCC") in printed("cola")


def test_the_embeddings_of_a_transferred_classifier_are_those_of_its_encoder(make: Make) -> None:
    encoder = make("encoder", "real-fake", vectors="elmo:recurrent:lstm")
    one = taught(make("one", "pooling", vectors="", encoder=str(encoder)))
    assert row_of(one) == "Pooling, ELMo-Style, Real/Fake, CoLA"
    assert adc_row_of(one) == "CoLA baseline (W&B)"
    assert one.about == "pooling (encoder=encoder)"


@pytest.mark.parametrize(
    ("options", "row"),
    [
        ({"model": "/data/bert-large-cased"}, "BERT large-cased"),
        ({"model": "bert-large-cased", "frozen": True}, None),
        ({"model": "mine"}, None),
    ],
)
def test_which_row_of_the_adc_paper(make: Make, options: dict[str, object], row: str | None) -> None:
    assert adc_row_of(taught(make("one", "transformer", **options))) == row


def test_groups_of_restarts_tell_by_their_folders_what_they_are_for(make: Make, tmp_path: Path) -> None:
    for seed in (2, 10, 1):
        make(f"all/rows/cbow-{seed}", held=seed / 10)
    make("all/curve/300/pooling-1", "pooling")
    make("all/curve/300/cbow-1")
    make("all/splits/split-random-0/cbow-1")
    found = {group.name: group for group in groups([tmp_path / "all"])}
    assert list(found) == [
        "all/curve/300, cbow",
        "all/curve/300, pooling",
        "all/rows",
        "all/splits/split-random-0",
    ]
    rows = found["all/rows"]
    assert [each.folder.name for each in rows.runs] == ["cbow-1", "cbow-2", "cbow-10"]
    assert (rows.chosen, rows.size, rows.split) == (2, None, "")
    assert found["all/curve/300, cbow"].size == 300
    assert found["all/splits/split-random-0"].split == "random-0"


def test_what_is_no_folder_of_restarts_is_an_error(make: Make, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no folder"):
        groups([tmp_path / "nothing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match="holds a classifier"):
        groups([tmp_path / "empty"])
    folder = make("bad/one")
    (folder / "recipe.json").write_text('{"kind": 3}')
    with pytest.raises(ModelError, match="does not tell kind and recipe"):
        groups([tmp_path / "bad"])
    (folder / "recipe.json").write_text("{")
    with pytest.raises(ModelError, match="cannot read"):
        groups([tmp_path / "bad"])


def test_no_run_is_chosen_where_one_does_not_tell_its_mcc(make: Make, tmp_path: Path) -> None:
    make("all/cbow-1")
    folder = make("all/cbow-2")
    (folder / "recipe.json").write_text(json.dumps({"kind": "cbow", "recipe": {}}))
    assert groups([tmp_path / "all"])[0].chosen is None


def test_mean_deviation_max_and_majority_over_restarts(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed, held in ((1, 0.2), (2, 0.6), (3, 0.4)):
        make(f"cbows/cbow-{seed}", held=held, vectors="recurrent:lm")
    found = by_key(study("cola", restarts=[tmp_path / "cbows"]))
    suite = load_suite("cola/in_domain_dev")
    labels = [each.label for each in suite.sentences]
    votes = [predicted(said(f"cbow-{seed}", suite), suite.sentences) for seed in (1, 2, 3)]
    values = [matthews_corrcoef(labels, each) for each in votes]
    wanted = {
        "chosen run": values[1],
        "mean": np.mean(values),
        "standard deviation": np.std(values, ddof=1),
        "max": max(values),
        "ensemble": matthews_corrcoef(labels, np.sum(votes, axis=0) >= 2),
    }
    for statistic, value in wanted.items():
        assert found["Table 4", f"cbows, {statistic}", "In-domain MCC"].ours == pytest.approx(value)
    right = found["Table 4", "cbows, chosen run", "In-domain Acc."].ours
    assert right == pytest.approx(accuracy_score(labels, votes[1]))
    assert "too good" in found["Table 4", "cbows, max", "In-domain MCC"].note
    paper = found["Table 4", "CBOW", "In-domain MCC"]
    assert (paper.paper, paper.agrees) == ("0.063", None)
    assert paper.ours == pytest.approx(values[1])
    assert "held out of the training set; the paper: test sets" in paper.source
    assert "other sentences than CoLA's training set" in paper.note


def test_figures_are_of_the_sentences_that_have_a_feature(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    train = Examples(load_suite("cola/train").sentences).hash
    folder = make("cbow-1", data=train)
    model = f"classifier:{folder}"
    found = by_key(study("cola", [model]))
    suite = load_suite("cola/analysis")
    scores = said("cbow-1", suite)
    for figure, grain, name in (
        ("Figure 4", "major", "Question"),
        ("ADC paper, Figure 2", "major", "Predicate"),
        ("ADC paper, Figure 3", "minor", "Island"),
    ):
        part = tuple(each for each in suite.sentences if each.tags[f"{grain}/{name}"] == "1")
        cell = found[figure, f"{model}: {name}", "MCC"]
        assert cell.ours == pytest.approx(matthews_corrcoef([each.label for each in part], predicted(scores, part)))
        assert cell.note.startswith(f"{len(part)} sentences")
    assert found["ADC paper, Figure 3", f"{model}: Sem  Violation", "MCC"].ours is None
    assert "other sentences" not in found["Table 4", model, "In-domain MCC"].note
    counts = [
        sum(key[0] == figure for key in found) for figure in ("Figure 4", "ADC paper, Figure 2", "ADC paper, Figure 3")
    ]
    assert counts == [9, 15, 63]


def test_restarts_in_a_row_of_the_adc_paper(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed in (1, 2):
        make(f"berts/transformer-{seed}", "transformer", model="bert-base-uncased")
    found = by_key(study("cola", restarts=[tmp_path / "berts"]))
    row = "ADC paper, Table 5", "BERT base-uncased"
    assert found[*row, "mean"].paper == "0.478"
    assert found[*row, "mean"].ours == found["ADC paper, Table 5", "berts", "mean"].ours is not None
    assert found[*row, "ensemble"].agrees is None
    assert found["ADC paper, Table 5", "GPT (W&B)", "mean"].ours is None


def test_splits_fill_table_5_if_they_were_taught_on_its_training_part(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    found = parts(find_split("4", printed("cola")))
    encoder = make("encoder", "real-fake", vectors="elmo:recurrent:lstm")
    taught_on = Examples(found.train.sentences).hash
    for seed in (1, 2):
        make(f"splits/split-4/pooling-{seed}", "pooling", data=taught_on, encoder=str(encoder))
    cells = by_key(study("cola", restarts=[tmp_path / "splits"]))
    suite = found.out_of_domain
    labels = [each.label for each in suite.sentences]
    values = [matthews_corrcoef(labels, predicted(said(f"pooling-{seed}", suite), suite.sentences)) for seed in (1, 2)]
    cell = cells["Table 5", "4", "Out-of-Domain MCC"]
    assert cell.ours == pytest.approx(np.mean(values))
    assert (cell.paper, cell.agrees) == ("0.267", None)
    assert cells["Table 5", "4", "Overall Acc."].ours is not None
    assert cells["Table 5", "1", "Overall Acc."].ours is None


def test_a_classifier_that_may_have_learnt_what_it_is_asked_is_refused(data: Path, make: Make, tmp_path: Path) -> None:
    make("splits/split-4/cbow-1", data="another")
    with pytest.raises(ModelError, match="was not taught on the training part of split 4"):
        study("cola", restarts=[tmp_path / "splits"])
    make("others/split-nine/cbow-1")
    with pytest.raises(UnknownName, match="no split of CoLA named 'nine'"):
        study("cola", restarts=[tmp_path / "others"])


def test_the_learning_curve(data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path) -> None:
    for size in (100, 1000):
        for seed in (1, 2):
            make(f"curve/{size}/cbow-{size + seed}")
    found = by_key(study("cola", restarts=[tmp_path / "curve"]))
    name, suite = "cbow (word vectors learnt with it)", both_domains()
    labels = [each.label for each in suite.sentences]
    values = {
        run: matthews_corrcoef(labels, predicted(said(f"cbow-{run}", suite), suite.sentences))
        for run in (101, 102, 1001, 1002)
    }
    for run, value in values.items():
        assert found["Figure 3", f"{name}, {run // 100 * 100}", f"MCC, seed {run}"].ours == pytest.approx(value)
    means = [np.mean([values[101], values[102]]), np.mean([values[1001], values[1002]])]
    assert found["Figure 3", f"{name}, 100", "MCC, mean"].ours == pytest.approx(means[0])
    assert found["Figure 3", f"{name}, line", "slope"].ours == pytest.approx(means[1] - means[0])
    assert found["Figure 3", f"{name}, 1000", "fitted"].ours == pytest.approx(means[1])
    assert ("Table 4", "curve/100, mean", "In-domain MCC") not in found


def test_one_size_has_points_and_no_line(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    make("curve/100/cbow-1")
    found = by_key(study("cola", restarts=[tmp_path / "curve"]))
    cell = found["Figure 3", "cbow (word vectors learnt with it), line", "slope"]
    assert cell.ours is None
    assert "needs three of two" in cell.note


def test_a_real_classifier_is_asked_for_its_log_odds(data: Path, classifier_dir: Path, tmp_path: Path) -> None:
    copytree(classifier_dir, tmp_path / "berts/transformer-1")
    told = {"kind": "transformer", "recipe": {"model": "bert-base-uncased"}}
    (tmp_path / "berts/transformer-1/recipe.json").write_text(json.dumps(told))
    (group,) = groups([tmp_path / "berts"])
    suite = load_suite("cola/targeted/reflexive")
    (scores,) = of_group(group, Asked("")).scores(suite)
    assert scores.values == score(suite, f"classifier:{classifier_dir}").values


def test_restarts_from_the_command_line(
    data: Path, make: Make, said: Callable[[str, Suite], Scores], tmp_path: Path
) -> None:
    for seed in (1, 2):
        make(f"cbows/cbow-{seed}")
    asked = ["study", "cola", "--restarts", str(tmp_path / "cbows"), "--table", "Table 6", "--json"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    rows = {(row["row"], row["column"]): row for row in json.loads(done.stdout)}
    assert rows["cbows, mean", "Reflexive"]["ours"] is not None
    assert rows["LSTM LM WLPM", "Reflexive"]["paper"] == "0.152"


def test_the_group_says_what_it_is(make: Make) -> None:
    one = taught(make("cbow-1", vectors="/m/glove.txt"))
    assert Group("g", (one,)).about == "cbow (vectors=glove.txt)"
    assert one.inputs == ""
    told = replace(one, facts={"numbers of a word": 100, "share of running words known": 0.978})
    assert told.inputs == "100 numbers a word, 97.8% of running words known"
