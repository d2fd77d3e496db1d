"""What the study of CoLA teaches: the plan as data, and its execution with a stand-in that leaves recipes behind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.cli import app
from acceptability.errors import ModelError, SpellingError, TrainError
from acceptability.studies import cola_train
from acceptability.studies.cells import printed
from acceptability.studies.cola_asking import ask_together
from acceptability.studies.cola_design import figure_3
from acceptability.studies.cola_groups import groups
from acceptability.studies.cola_plan import Planned, planned
from acceptability.studies.cola_splits import find_split, parts
from acceptability.studies.cola_train import Given, carry_out, sentences
from acceptability.studies.niu_penn_models import Asked
from acceptability.train.classifiers.restarts import Task
from acceptability.train.tick import Tell


def stand_in(tasks: Sequence[Task], given: Given, tell: Tell) -> None:
    """Leave the recipes of restarts, the second of which is best, and teach nothing."""
    for task in tasks:
        task.out.mkdir(parents=True)
        held = 0.9 if task.out.name.endswith("-2") else 0.1
        told: dict[str, Any] = {"kind": task.recipe.kind, "recipe": asdict(task.recipe)}
        if task.recipe.kind == "real-fake":
            told["facts"] = {"real/fake MCC on the dev set": held}
        else:
            told["results"] = {"held out": {"mcc": held}}
        (task.out / "recipe.json").write_text(json.dumps(told))


def test_the_full_plan_is_the_papers() -> None:
    runs = planned("full", ["bert-base-uncased"])
    by_kind = Counter(run.kind for run in runs)
    # Bags of words: two in Table 4, and for 11 splits and 5 sizes; encoders of three styles, 5 of each transferred.
    assert by_kind == {"real-fake": 3, "cbow": 2 + 11 + 5, "pooling": 1 + 3 * 5 + 11 + 5, "transformer": 2}
    assert sum(run.restarts for run in runs if run.name == "table-4/glove-real-fake-cola") == 50
    assert all(run.restarts == 20 for run in runs if run.kind == "cbow")
    assert all(run.search for run in runs if run.kind != "transformer")
    assert {run.data for run in runs if "figure-3" in run.name} == {f"size {n}" for n in (100, 300, 1000, 3000, 8551)}


@pytest.mark.parametrize("size", ["quick", "short", "full"])
def test_every_classifier_of_table_4_is_planned(size: Any) -> None:
    filled = " ".join(f"{run.fills};" for run in planned(size))
    rows = {row for table, row, _ in printed("cola") if table == "Table 4" and not row.endswith("WLPM")}
    assert len(rows) == 8
    assert all(f"{row};" in filled for row in rows)


def test_restarts_in_one_folder_have_seeds_of_their_own() -> None:
    for size in ("quick", "short", "full"):
        seeds: Counter[tuple[str, str, int]] = Counter()
        for run in planned(size):  # type: ignore[arg-type]
            first = int(str(run.options.get("seed", 1)))
            seeds.update((run.name, run.kind, seed) for seed in range(first, first + run.restarts))
        assert set(seeds.values()) == {1}


def test_another_plan_is_an_error() -> None:
    with pytest.raises(SpellingError, match="there are quick, short, full"):
        planned("huge")  # type: ignore[arg-type]


def test_what_lacks_something_is_left_out_and_said(data: Path, tmp_path: Path) -> None:
    left = carry_out("quick", tmp_path, teach=stand_in)
    assert not (tmp_path / "language-models").exists()
    assert {each.name for each in groups([tmp_path])} >= {f"{tmp_path.name}/classifiers/table-4/cbow-alone"}
    assert {run.kind for group in groups([tmp_path]) for run in group.runs} == {"cbow"}
    assert any("needs a language model: --model recurrent:DIR" in each for each in left)
    assert any("GloVe" in each and "--vectors FILE" in each and "--corpus FILE" in each for each in left)
    assert len(left) == len([run for run in planned("quick") if run.needs])


def test_everything_is_taught_with_what_is_given(data: Path, tmp_path: Path) -> None:
    waves: list[list[Task]] = []

    def teach(tasks: Sequence[Task], given: Given, tell: Tell) -> None:
        assert given == Given("recurrent:/m/lstm", "glove.txt", ("text",), ("held",))
        waves.append(list(tasks))
        stand_in(tasks, given, tell)

    models = ["recurrent:/m/lstm", "masked:/m/bert-base-uncased", "causal:/m/small.gguf(bos='<s>')"]
    left = carry_out("full", tmp_path, models, corpus=["text"], dev=["held"], vectors="glove.txt", teach=teach)
    assert left == []
    seen = [task for wave in waves for task in wave]
    assert not any("{" in str(value) for task in seen for value in asdict(task.recipe).values())
    inside = tmp_path.resolve() / "classifiers"

    def options(place: str, option: str) -> list[Any]:
        return [getattr(task.recipe, option) for task in seen if task.out.is_relative_to(inside / place)]

    assert set(options("table-4/elmo-style-cola", "vectors")) == {"elmo:recurrent:/m/lstm"}
    assert set(options("table-5/split-1", "seed")) == set(range(1, 21))
    encoders = [task.recipe.encoder for task in seen if task.out == inside / "table-5/split-1/pooling-1"]
    assert encoders == [str(inside / "real-fake/elmo-style/real-fake-2")]
    assert len(set(options("table-4/bnc-real-fake-cola", "encoder"))) == 5
    assert set(options("transformers/bert-base-uncased", "model")) == {"/m/bert-base-uncased"}
    assert set(options("transformers/small-probe", "model")) == {"causal:/m/small.gguf(bos='<s>')"}


def test_what_stands_on_an_encoder_waits_for_it(data: Path, tmp_path: Path) -> None:
    waves: list[list[Task]] = []

    def teach(tasks: Sequence[Task], given: Given, tell: Tell) -> None:
        waves.append(list(tasks))
        stand_in(tasks, given, tell)

    carry_out("short", tmp_path, ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], teach=teach)
    first, second = waves
    assert {task.recipe.kind for task in second} == {"pooling"}
    assert all(task.recipe.encoder for task in second)
    texts = {task.recipe.kind for task in first if task.text}
    assert texts == {"real-fake", "ngram"}
    assert {task.dev for task in first if task.recipe.kind == "real-fake"} == {("held",)}
    assert all(task.text or task.data for task in (*first, *second))
    assert [task.out.name for task in first[-3:]] == ["ngram-2", "ngram-3", "ngram-4"]


def test_encoders_that_are_too_few_or_tell_no_mcc_are_an_error(data: Path, tmp_path: Path) -> None:

    def teach(tasks: Sequence[Task], given: Given, tell: Tell) -> None:
        for task in tasks:
            if task.out.name == "real-fake-1":
                task.out.mkdir(parents=True)
                told = {"kind": "real-fake", "recipe": {}, "facts": facts}
                (task.out / "recipe.json").write_text(json.dumps(told))

    facts = {"real/fake MCC on the dev set": 0.5}
    with pytest.raises(TrainError, match="has 1 encoders, and the plan wants number 2"):
        carry_out("full", tmp_path / "one", ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], teach=teach)
    facts = {}
    with pytest.raises(TrainError, match="does not tell its MCC on a dev set"):
        carry_out("full", tmp_path, ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], teach=teach)


def test_what_a_part_of_the_plan_learns_from(data: Path) -> None:
    assert sentences("train").hash == load_suite("cola/train").hash
    assert len(sentences("size 300").sentences) == 300
    assert sentences("split random-0").hash == parts(find_split("random-0", printed("cola"))).train.hash
    assert {each.id for each in sentences("size 100").sentences} < {each.id for each in sentences("size 300").sentences}


def test_parts_of_the_plan_become_restarts(data: Path, tmp_path: Path) -> None:
    run = Planned("here", "cbow", "size 100", 3, "Table 4", {"epochs": 2}, search=True)
    tasks = cola_train._tasks(run, Given(), tmp_path)
    assert [task.out.name for task in tasks] == ["cbow-1", "cbow-2", "cbow-3"]
    assert {task.recipe.epochs for task in tasks} == {2}
    assert len({task.recipe.hidden for task in tasks}) == 3
    assert {len(suite.sentences) for task in tasks for suite in task.data} == {100}
    alike = cola_train._tasks(replace(run, search=False), Given(), tmp_path)
    assert len({task.recipe.hidden for task in alike}) == 1


def test_runs_that_fail_are_told(data: Path, tmp_path: Path) -> None:
    run = Planned("here", "cbow", "size 100", 2, "Table 4", {"vectors": str(tmp_path / "none.txt")})
    with pytest.raises(TrainError, match="2 of 2 runs failed: seed 1"):
        cola_train._together(cola_train._tasks(run, Given(), tmp_path), Given(), lambda _: None)


def test_the_command_teaches_and_then_computes(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cola_train, "_together", stand_in)
    asked: list[str] = []
    monkeypatch.setattr(
        "acceptability.studies.cola_asking.ask_together", lambda found, **_: asked.extend(each.name for each in found)
    )
    seen: dict[str, Any] = {}

    def cells(name: str, models: Any, **options: Any) -> list[Any]:
        seen.update(options, models=models)
        return []

    monkeypatch.setattr("acceptability.cli.study.study", cells)
    monkeypatch.setattr("acceptability.cli.study.load_model", lambda _: None)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["study", "cola", "--train", "--quick", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert seen["restarts"] == [out / "classifiers"]
    assert seen["corpus"] == [out / "dev.txt"]
    assert seen["models"] == [*(f"ngram:{out}/language-models/ngram-{order}" for order in (2, 3, 4)), "mini-lstm"]
    assert (out / "classifiers/figure-3/100/cbow-2/recipe.json").is_file()
    assert "not taught: Table 4: Pooling, GloVe" in done.stderr
    assert "classifiers/figure-3/100, cbow" in asked


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["cola", "--train"], "needs --out DIR"),
        (["adc", "--train", "--out", "x"], "adc has none"),
        (["cola", "--dev", "x"], "go with --train"),
        (["cola", "--workers", "2"], "go with --train"),
        (["mine.toml", "--train"], "are for a paper's study"),
        (["mine.toml", "--vectors", "x"], "are for a paper's study"),
    ],
)
def test_wrong_ways_to_ask(asked: list[str], problem: str) -> None:
    done = CliRunner().invoke(app, ["study", *asked])
    assert done.exit_code != 0
    assert isinstance(done.exception, SpellingError)
    assert problem in str(done.exception)


def test_classifiers_that_were_asked_together_are_not_asked_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Planned("here", "cbow", "size 100", 2, "Figure 3", {"epochs": 1, "embedding": 4, "hidden": 4})
    cola_train._together(cola_train._tasks(run, Given(), tmp_path / "100"), Given(), lambda _: None)
    found = groups([tmp_path])
    told: list[Any] = []
    ask_together(found, workers=2, tell=told.append)
    assert [each.done for each in told] == [1, 2]

    def refuse(*_: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr("acceptability.models.sentence_classifier.SentenceClassifier.run", refuse)
    points = [cell for cell in figure_3(found, Asked("")) if cell.column.startswith("MCC, seed")]
    assert [cell.column for cell in points] == ["MCC, seed 1", "MCC, seed 2"]
    (tmp_path / "100/cbow-1/model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cbow-1"):
        ask_together(groups([tmp_path]), workers=1)
