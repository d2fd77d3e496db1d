"""Training for the study of NPIs: the plan as data, a small plan that runs, and the command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import SpecError, TrainError
from acceptability.papers.npi import cells, npi_training
from acceptability.papers.npi.npi_data import ENVIRONMENT_LABELS, Configuration, load_npi_data
from acceptability.papers.npi.npi_training import (
    BAG_OF_WORDS,
    PlannedRun,
    load_judged_suite,
    plan_models,
    plan_runs,
    read_plan_folder,
    run_plan,
    select_training_suite,
)

GROUPS = tuple(ENVIRONMENT_LABELS)


def test_the_full_plan_is_the_papers() -> None:
    models = plan_models("full", ["masked:/m/bert-large-cased"], vectors="glove.txt", intermediate=["a/mnli.tsv"])
    assert [model.name for model in models] == [BAG_OF_WORDS, "bert-large-cased", "bert-large-cased+mnli"]
    assert models[0].options["vectors"] == "glove.txt"
    assert models[0].options["pool"] == "max"
    assert [model.after for model in models] == ["", "", "a/mnli.tsv"]
    assert all(model.most == model.judged == 0 for model in models)
    runs = plan_runs(models, GROUPS, restarts=3)
    kinds = Counter(run.configuration.kind for run in runs if run.model.name == BAG_OF_WORDS)
    assert kinds == {"other": 3, "one": 27, "all-but": 27, "all": 3}
    assert len({run.folder for run in runs}) == len(runs) == 3 * 20 * 3
    # What takes longest begins first, and bags of words, which take least, come last.
    assert runs[0].configuration.kind == "all"
    assert runs[-1].model.name == BAG_OF_WORDS


def test_small_encoders_have_a_higher_learning_rate() -> None:
    rates = {
        model.name: model.options.get("learning_rate") for model in plan_models("full", ["mini-masked", "masked:bert"])
    }
    assert rates == {BAG_OF_WORDS: None, "mini-masked": 2e-4, "bert": 2e-5}


@pytest.mark.parametrize(
    ("make_plan", "problem"),
    [
        (lambda: plan_models("huge", []), "there are quick, full"),  # type: ignore[arg-type]
        (lambda: plan_models("full", ["masked:/a/x", "masked:/b/x"]), "would be called the same"),
        (lambda: plan_runs([], GROUPS, restarts=0), "expected a whole number from 1"),
    ],
)
def test_wrong_plans_are_errors(make_plan: Any, problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        make_plan()


@pytest.mark.slow
def test_a_classifier_is_never_trained_on_the_held_out_environment(data: Path) -> None:
    (bag,) = plan_models("full", [])
    held = {sentence.text for sentence in load_npi_data().test.sentences if sentence.tags["environment"] == "only"}
    training_suite = select_training_suite(PlannedRun(bag, Configuration("all-but", "only"), 1), "")
    assert len(training_suite.sentences) == 80_000
    assert {sentence.tags["environment"] for sentence in training_suite.sentences} == set(GROUPS) - {"only"}
    assert {sentence.tags["split"] for sentence in training_suite.sentences} == {"train"}
    assert not held & {sentence.text for sentence in training_suite.sentences}
    assert len(select_training_suite(PlannedRun(bag, Configuration("one", "only"), 1), "").sentences) == 10_000
    assert select_training_suite(PlannedRun(bag, Configuration("other"), 1), "").name == "cola/train"


def test_every_text_is_scored_once(data: Path) -> None:
    texts = [sentence.text for sentence in load_judged_suite("", 0).sentences]
    assert len(texts) == len(set(texts))
    assert {sentence.text for sentence in load_npi_data().pairs.sentences} <= set(texts)


@pytest.fixture
def encoder(masked_dir: Path, tmp_path: Path) -> Path:
    """A masked model that was not trained, and reads sentences of 128 tokens."""
    torch = pytest.importorskip("torch")
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    tokenizer = AutoTokenizer.from_pretrained(masked_dir)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    net = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes))
    for part in (net, tokenizer):
        part.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.slow
def test_a_small_plan_runs_and_resumes(data: Path, own_suite: str, tmp_path: Path, encoder: Path) -> None:
    tags = tmp_path / "tags.conllu"
    rows = ["1\tcats\t_\tNOUN\t_\t_\t_\t_\t_\t_", "2\tsleep\t_\tVERB\t_\t_\t_\t_\t_\t_", "", ""]
    tags.write_text("\n".join(rows) * 12)
    out, models, ticks = tmp_path / "out", [f"masked:{encoder}"], []
    how: dict[str, Any] = {"suite": own_suite, "workers": 1, "intermediate": [str(tags)]}
    folder = run_plan("quick", out, models, **how, progress=lambda tick: ticks.append(tick.stage))
    names = [BAG_OF_WORDS, "tiny", "tiny+tags"]
    assert [model.name for model in read_plan_folder(out).models] == names
    assert folder == read_plan_folder(out)
    assert sum(stage.endswith(": finished") for stage in ticks) == 1 + 3 * 6
    metadata = json.loads((out / names[2] / "all/transformer-1/recipe.json").read_text())
    assert metadata["recipe"]["model"] == str(out / names[2] / "encoder")
    cells_by_key = {
        (cell.table, cell.row, cell.column): cell for cell in cells(restarts=[folder], probe=lambda *_, **__: [])
    }
    for name, table in zip(names, ("Figure 1", "Figure 1", "Figure 5"), strict=True):
        assert cells_by_key[table, f"{name}: All-but-1 NPI", "rare"].ours is not None
    before = {path: path.stat().st_mtime_ns for path in out.rglob("recipe.json")}
    run_plan("quick", out, models, **how)
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("recipe.json")}
    with pytest.raises(TrainError, match="holds classifiers of other sentences"):
        run_plan("quick", out, models, workers=1)


def test_a_training_that_fails_is_named(
    data: Path, own_suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(npi_training, "_run_tasks", lambda _, tasks, *__: ["x/all: it failed"] if tasks else [])
    with pytest.raises(TrainError, match="1 of 6 trainings failed: x/all: it failed"):
        run_plan("quick", tmp_path / "out", [], suite=own_suite)


def test_the_command_trains_and_then_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def run_stub(size: str, out: Path, models: list[str], **options: Any) -> None:
        seen.update(options, size=size, encoders=models)
        # The user's own plan may name whatever the user named.
        (out / "plan.json").write_text(json.dumps({"suite": "/own/x.jsonl", "restarts": 3, "models": []}))

    def compute_stub(models: list[str], **options: Any) -> list[Any]:
        seen.update(options, models=models)
        return []

    monkeypatch.setattr(npi_training, "run_plan", run_stub)
    monkeypatch.setattr("acceptability.papers.npi.cells", compute_stub)
    arguments = [
        "study",
        "npi",
        "--train",
        "--out",
        str(tmp_path),
        "--restarts-each",
        "3",
        "--suite",
        "x.jsonl",
        "--json",
    ]
    done = CliRunner().invoke(
        app, [*arguments, "--intermediate", "mnli.tsv", "--vectors", "glove.txt", "--workers", "8"]
    )
    assert done.exit_code == 0, done.output
    assert (seen["size"], seen["encoders"], seen["models"]) == ("full", ["mini-masked"], ["mini-masked"])
    (folder,) = seen["restarts"]
    assert (folder.path, folder.suite, seen["suite"]) == (tmp_path.resolve(), "/own/x.jsonl", "x.jsonl")
    assert (seen["intermediate"], seen["vectors"], seen["workers"]) == (["mnli.tsv"], "glove.txt", 8)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["npi", "--train"], "needs --out DIR"),
        (["npi", "--restarts-each", "2"], "--restarts-each goes with --train or --quick"),
        (["npi", "--intermediate", "x"], "--intermediate goes with --train or --quick"),
    ],
)
def test_options_that_training_needs_and_that_need_training(arguments: list[str], problem: str) -> None:
    done = CliRunner().invoke(app, ["study", *arguments])
    assert done.exit_code != 0
    assert isinstance(done.exception, SpecError)
    assert problem in str(done.exception)
