"""Training for the study of CoLA: the plan as data, and running it with a stand-in that only writes recipes."""

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
from acceptability.errors import ModelError, SpecError, TrainError
from acceptability.papers.cells import read_published_values
from acceptability.papers.cola import cola_training
from acceptability.papers.cola.cola_training import (
    PlanInputs,
    RestartPlan,
    load_training_suite,
    plan_restarts,
    run_plan,
    score_in_parallel,
)
from acceptability.papers.cola.corpus_tables import build_split_suites, find_split
from acceptability.papers.cola.learning_curve import compute_figure_3_cells
from acceptability.papers.cola.restart_groups import find_groups
from acceptability.papers.niu_penn.user_models import StudyModel
from acceptability.train.classifiers.random_restarts import RestartTask
from acceptability.train.recipe import TrainingProgressCallback


def write_recipes(tasks: Sequence[RestartTask], inputs: PlanInputs, progress: TrainingProgressCallback) -> None:
    """Write the recipes of restarts, the second of which is the best, and train nothing."""
    for task in tasks:
        task.out.mkdir(parents=True)
        held = 0.9 if task.out.name.endswith("-2") else 0.1
        metadata: dict[str, Any] = {"kind": task.recipe.kind, "recipe": asdict(task.recipe)}
        if task.recipe.kind == "real-fake":
            metadata["facts"] = {"real/fake MCC on the dev set": held}
        else:
            metadata["results"] = {"held out": {"mcc": held}}
        (task.out / "recipe.json").write_text(json.dumps(metadata))


def test_the_full_plan_is_the_papers() -> None:
    runs = plan_restarts("full", ["bert-base-uncased"])
    by_kind = Counter(run.kind for run in runs)
    # Bags of words: two in Table 4, and for 11 splits and 5 sizes; encoders of three styles, 5 of each transferred.
    assert by_kind == {"real-fake": 3, "cbow": 2 + 11 + 5, "pooling": 1 + 3 * 5 + 11 + 5, "transformer": 2}
    assert sum(run.restarts for run in runs if run.name == "table-4/glove-real-fake-cola") == 50
    assert all(run.restarts == 20 for run in runs if run.kind == "cbow")
    assert all(run.random_search for run in runs if run.kind != "transformer")
    assert {run.data for run in runs if "figure-3" in run.name} == {f"size {n}" for n in (100, 300, 1000, 3000, 8551)}


@pytest.mark.parametrize("size", ["quick", "short", "full"])
def test_every_classifier_of_table_4_is_planned(size: Any) -> None:
    filled = " ".join(f"{run.fills_rows};" for run in plan_restarts(size))
    rows = {row for table, row, _ in read_published_values("cola") if table == "Table 4" and not row.endswith("WLPM")}
    assert len(rows) == 8
    assert all(f"{row};" in filled for row in rows)


def test_restarts_in_one_folder_have_seeds_of_their_own() -> None:
    for size in ("quick", "short", "full"):
        seeds: Counter[tuple[str, str, int]] = Counter()
        for run in plan_restarts(size):  # type: ignore[arg-type]
            first = int(str(run.options.get("seed", 1)))
            seeds.update((run.name, run.kind, seed) for seed in range(first, first + run.restarts))
        assert set(seeds.values()) == {1}


def test_an_unknown_plan_is_an_error() -> None:
    with pytest.raises(SpecError, match="there are quick, short, full"):
        plan_restarts("huge")  # type: ignore[arg-type]


def test_parts_without_inputs_are_skipped_and_listed(data: Path, tmp_path: Path) -> None:
    skipped = run_plan("quick", tmp_path, train=write_recipes)
    assert not (tmp_path / "language-models").exists()
    assert {group.name for group in find_groups([tmp_path])} >= {f"{tmp_path.name}/classifiers/table-4/cbow-alone"}
    assert {run.kind for group in find_groups([tmp_path]) for run in group.runs} == {"cbow"}
    assert any("needs a language model: --model recurrent:DIR" in line for line in skipped)
    assert any("GloVe" in line and "--vectors FILE" in line and "--corpus FILE" in line for line in skipped)
    assert len(skipped) == len([run for run in plan_restarts("quick") if run.required_inputs])


def test_everything_is_trained_with_the_given_inputs(data: Path, tmp_path: Path) -> None:
    stages: list[list[RestartTask]] = []

    def train_stub(tasks: Sequence[RestartTask], inputs: PlanInputs, progress: TrainingProgressCallback) -> None:
        assert inputs == PlanInputs("recurrent:/m/lstm", "glove.txt", ("text",), ("held",))
        stages.append(list(tasks))
        write_recipes(tasks, inputs, progress)

    models = ["recurrent:/m/lstm", "masked:/m/bert-base-uncased", "causal:/m/small.gguf(bos='<s>')"]
    skipped = run_plan("full", tmp_path, models, corpus=["text"], dev=["held"], vectors="glove.txt", train=train_stub)
    assert skipped == []
    seen = [task for stage in stages for task in stage]
    assert not any("{" in str(value) for task in seen for value in asdict(task.recipe).values())
    inside = tmp_path.resolve() / "classifiers"

    def options(folder: str, option: str) -> list[Any]:
        return [getattr(task.recipe, option) for task in seen if task.out.is_relative_to(inside / folder)]

    assert set(options("table-4/elmo-style-cola", "vectors")) == {"elmo:recurrent:/m/lstm"}
    assert set(options("table-5/split-1", "seed")) == set(range(1, 21))
    encoders = [task.recipe.encoder for task in seen if task.out == inside / "table-5/split-1/pooling-1"]
    assert encoders == [str(inside / "real-fake/elmo-style/real-fake-2")]
    assert len(set(options("table-4/bnc-real-fake-cola", "encoder"))) == 5
    assert set(options("transformers/bert-base-uncased", "model")) == {"/m/bert-base-uncased"}
    assert set(options("transformers/small-probe", "model")) == {"causal:/m/small.gguf(bos='<s>')"}


def test_classifiers_on_an_encoder_are_trained_after_it(data: Path, tmp_path: Path) -> None:
    stages: list[list[RestartTask]] = []

    def train_stub(tasks: Sequence[RestartTask], inputs: PlanInputs, progress: TrainingProgressCallback) -> None:
        stages.append(list(tasks))
        write_recipes(tasks, inputs, progress)

    run_plan("short", tmp_path, ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], train=train_stub)
    first, second = stages
    assert {task.recipe.kind for task in second} == {"pooling"}
    assert all(task.recipe.encoder for task in second)
    texts = {task.recipe.kind for task in first if task.text}
    assert texts == {"real-fake", "ngram"}
    assert {task.dev for task in first if task.recipe.kind == "real-fake"} == {("held",)}
    assert all(task.text or task.data for task in (*first, *second))
    assert [task.out.name for task in first[-3:]] == ["ngram-2", "ngram-3", "ngram-4"]


def test_too_few_encoders_or_encoders_without_mcc_are_an_error(data: Path, tmp_path: Path) -> None:

    def train_stub(tasks: Sequence[RestartTask], inputs: PlanInputs, progress: TrainingProgressCallback) -> None:
        for task in tasks:
            if task.out.name == "real-fake-1":
                task.out.mkdir(parents=True)
                metadata = {"kind": "real-fake", "recipe": {}, "facts": facts}
                (task.out / "recipe.json").write_text(json.dumps(metadata))

    facts = {"real/fake MCC on the dev set": 0.5}
    with pytest.raises(TrainError, match="has 1 encoders, and the plan wants number 2"):
        run_plan("full", tmp_path / "one", ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], train=train_stub)
    facts = {}
    with pytest.raises(TrainError, match="has no MCC on a dev set"):
        run_plan("full", tmp_path, ["recurrent:/m/lstm"], corpus=["text"], dev=["held"], train=train_stub)


def test_the_training_set_of_a_part_of_the_plan(data: Path) -> None:
    assert load_training_suite("train").hash == load_suite("cola/train").hash
    assert len(load_training_suite("size 300").sentences) == 300
    assert (
        load_training_suite("split random-0").hash
        == build_split_suites(find_split("random-0", read_published_values("cola"))).train.hash
    )
    assert {sentence.id for sentence in load_training_suite("size 100").sentences} < {
        sentence.id for sentence in load_training_suite("size 300").sentences
    }


def test_parts_of_the_plan_become_restarts(data: Path, tmp_path: Path) -> None:
    run = RestartPlan("here", "cbow", "size 100", 3, "Table 4", {"epochs": 2}, random_search=True)
    tasks = cola_training._make_restart_tasks(run, PlanInputs(), tmp_path)
    assert [task.out.name for task in tasks] == ["cbow-1", "cbow-2", "cbow-3"]
    assert {task.recipe.epochs for task in tasks} == {2}
    assert len({task.recipe.hidden for task in tasks}) == 3
    assert {len(suite.sentences) for task in tasks for suite in task.data} == {100}
    without_search = cola_training._make_restart_tasks(replace(run, random_search=False), PlanInputs(), tmp_path)
    assert len({task.recipe.hidden for task in without_search}) == 1


def test_failed_runs_are_reported(data: Path, tmp_path: Path) -> None:
    run = RestartPlan("here", "cbow", "size 100", 2, "Table 4", {"vectors": str(tmp_path / "none.txt")})
    with pytest.raises(TrainError, match="2 of 2 runs failed: seed 1"):
        cola_training._train_in_parallel(
            cola_training._make_restart_tasks(run, PlanInputs(), tmp_path), PlanInputs(), lambda _: None
        )


def test_the_command_trains_and_then_computes(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cola_training, "_train_in_parallel", write_recipes)
    scored: list[str] = []
    monkeypatch.setattr(
        "acceptability.papers.cola.cola_training.score_in_parallel",
        lambda groups, **_: scored.extend(group.name for group in groups),
    )
    seen: dict[str, Any] = {}

    def cells(models: Any, **options: Any) -> list[Any]:
        seen.update(options, models=models)
        return []

    monkeypatch.setattr("acceptability.papers.cola.cells", cells)
    caplog.set_level("INFO", "acceptability")
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["study", "cola", "--train", "--quick", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert seen["restarts"] == [out / "classifiers"]
    assert list(seen["corpus"]) == [out / "dev.txt"]
    assert seen["models"] == [*(f"ngram:{out}/language-models/ngram-{order}" for order in (2, 3, 4)), "mini-lstm"]
    assert (out / "classifiers/figure-3/100/cbow-2/recipe.json").is_file()
    assert "not trained: Table 4: Pooling, GloVe" in caplog.text
    assert f"classifiers: {out}" in caplog.text
    assert "text: CoLA's own acceptable sentences" in caplog.text
    assert "classifiers/figure-3/100, cbow" in scored


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["cola", "--train"], "needs --out DIR"),
        (["cola", "--dev", "x"], "--dev goes with --train or --quick or --short"),
        (["cola", "--workers", "2"], "--workers goes with --train"),
        (["cola", "--engine", "ray"], "--engine goes with --train"),
    ],
)
def test_options_that_training_needs_and_that_need_training(arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(app, ["study", *arguments])
    assert done.exit_code != 0
    assert isinstance(done.exception, SpecError)
    assert problem in str(done.exception)


@pytest.mark.slow
def test_classifiers_scored_in_parallel_are_not_scored_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = RestartPlan("here", "cbow", "size 100", 2, "Figure 3", {"epochs": 1, "embedding": 4, "hidden": 4})
    cola_training._train_in_parallel(
        cola_training._make_restart_tasks(run, PlanInputs(), tmp_path / "100"), PlanInputs(), lambda _: None
    )
    groups = find_groups([tmp_path])
    updates: list[Any] = []
    score_in_parallel(groups, workers=2, progress=updates.append)
    assert [update.done for update in updates] == [1, 2]

    def refuse(*_: object) -> None:
        raise AssertionError("scored again")

    monkeypatch.setattr("acceptability.models.sentence.SentenceClassifier.run", refuse)
    points = [cell for cell in compute_figure_3_cells(groups, StudyModel("")) if cell.column.startswith("MCC, seed")]
    assert [cell.column for cell in points] == ["MCC, seed 1", "MCC, seed 2"]
    (tmp_path / "100/cbow-1/model.safetensors").write_bytes(b"no weights")
    with pytest.raises(ModelError, match="cbow-1"):
        score_in_parallel(find_groups([tmp_path]), workers=1)
