"""What the study of NPIs teaches: the plan as data, a small one carried out, and the command."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import SpellingError, TrainError
from acceptability.studies import npi_train
from acceptability.studies.npi import cells
from acceptability.studies.npi_data import SHORT, material
from acceptability.studies.npi_plan import BAG, Planned, planned, taught_models
from acceptability.studies.npi_train import carry_out, judged_suite, lesson, read_folder
from acceptability.train.classifiers.configurations import Configuration
from studies.test_npi import by_place, own  # noqa: F401

GROUPS = tuple(SHORT)


def test_the_full_plan_is_the_papers() -> None:
    models = taught_models("full", ["masked:/m/bert-large-cased"], vectors="glove.txt", intermediate=["a/mnli.tsv"])
    assert [each.name for each in models] == [BAG, "bert-large-cased", "bert-large-cased+mnli"]
    assert models[0].options["vectors"] == "glove.txt"
    assert models[0].options["pool"] == "max"
    assert [each.after for each in models] == ["", "", "a/mnli.tsv"]
    assert all(each.most == each.judged == 0 for each in models)
    runs = planned(models, GROUPS, restarts=3)
    kinds = Counter(each.configuration.kind for each in runs if each.model.name == BAG)
    assert kinds == {"other": 3, "one": 27, "all-but": 27, "all": 3}
    assert len({each.folder for each in runs}) == len(runs) == 3 * 20 * 3
    # What takes longest begins first, and bags of words, which take least, come last.
    assert runs[0].configuration.kind == "all"
    assert runs[-1].model.name == BAG


def test_small_encoders_learn_faster() -> None:
    rates = {each.name: each.options.get("rate") for each in taught_models("full", ["mini-masked", "masked:bert"])}
    assert rates == {BAG: None, "mini-masked": 2e-4, "bert": 2e-5}


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (lambda: taught_models("huge", []), "there are quick, full"),  # type: ignore[arg-type]
        (lambda: taught_models("full", ["masked:/a/x", "masked:/b/x"]), "would be called the same"),
        (lambda: planned([], GROUPS, restarts=0), "expected a whole number from 1"),
    ],
)
def test_wrong_plans_are_errors(asked: Any, problem: str) -> None:
    with pytest.raises(SpellingError, match=problem):
        asked()


def test_a_classifier_never_learns_from_what_it_is_told_of(data: Path) -> None:
    (bag,) = taught_models("full", [])
    held = {each.text for each in material().test.sentences if each.tags["environment"] == "only"}
    found = lesson(Planned(bag, Configuration("all-but", "only"), 1), "")
    assert len(found.sentences) == 80_000
    assert {each.tags["environment"] for each in found.sentences} == set(GROUPS) - {"only"}
    assert {each.tags["split"] for each in found.sentences} == {"train"}
    assert not held & {each.text for each in found.sentences}
    assert len(lesson(Planned(bag, Configuration("one", "only"), 1), "").sentences) == 10_000
    assert lesson(Planned(bag, Configuration("other"), 1), "").name == "cola/train"


def test_every_text_is_judged_once(data: Path) -> None:
    texts = [each.text for each in judged_suite("", 0).sentences]
    assert len(texts) == len(set(texts))
    assert {each.text for each in material().pairs.sentences} <= set(texts)


@pytest.fixture
def encoder(masked_dir: Path, tmp_path: Path) -> Path:
    """A masked model that has learnt nothing, and reads sentences of 128 tokens."""
    torch = pytest.importorskip("torch")
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    tokenizer = AutoTokenizer.from_pretrained(masked_dir)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    torch.manual_seed(0)
    net = BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes))
    for each in (net, tokenizer):
        each.save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


@pytest.mark.slow
def test_a_small_plan_is_carried_out_and_goes_on(data: Path, own: str, tmp_path: Path, encoder: Path) -> None:  # noqa: F811
    tags = tmp_path / "tags.conllu"
    rows = ["1\tcats\t_\tNOUN\t_\t_\t_\t_\t_\t_", "2\tsleep\t_\tVERB\t_\t_\t_\t_\t_\t_", "", ""]
    tags.write_text("\n".join(rows) * 12)
    out, models, ticks = tmp_path / "out", [f"masked:{encoder}"], []
    how: dict[str, Any] = {"suite": own, "workers": 1, "intermediate": [str(tags)]}
    folder = carry_out("quick", out, models, **how, tell=lambda tick: ticks.append(tick.stage))
    names = [BAG, "tiny", "tiny+tags"]
    assert [each.name for each in read_folder(out).models] == names
    assert folder == read_folder(out)
    assert sum(stage.endswith(": finished") for stage in ticks) == 1 + 3 * 6
    told = json.loads((out / names[2] / "all/transformer-1/recipe.json").read_text())
    assert told["recipe"]["model"] == str(out / names[2] / "encoder")
    places = by_place(cells(restarts=[out], probe=lambda *_, **__: []))
    for name, table in zip(names, ("Figure 1", "Figure 1", "Figure 5"), strict=True):
        assert places[table, f"{name}: All-but-1 NPI", "rare"].ours is not None
    before = {path: path.stat().st_mtime_ns for path in out.rglob("recipe.json")}
    carry_out("quick", out, models, **how)
    assert before == {path: path.stat().st_mtime_ns for path in out.rglob("recipe.json")}
    with pytest.raises(TrainError, match="holds classifiers of other sentences"):
        carry_out("quick", out, models, workers=1)


def test_a_training_that_fails_is_named(data: Path, own: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    monkeypatch.setattr(npi_train, "_ended", lambda _, tasks, *__: ["x/all: it failed"] if tasks else [])
    with pytest.raises(TrainError, match="1 of 6 trainings failed: x/all: it failed"):
        carry_out("quick", tmp_path / "out", [], suite=own)


def test_the_command_teaches_and_then_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def taught(size: str, out: Path, models: list[str], **options: Any) -> None:
        seen.update(options, size=size, taught=models)

    def computed(name: str, models: list[str], **options: Any) -> list[Any]:
        seen.update(options, models=models)
        return []

    monkeypatch.setattr(npi_train, "carry_out", taught)
    monkeypatch.setattr("acceptability.cli.study.study", computed)
    asked = ["study", "npi", "--train", "--out", str(tmp_path), "--restarts-each", "3", "--suite", "x.jsonl", "--json"]
    done = CliRunner().invoke(app, [*asked, "--intermediate", "mnli.tsv", "--vectors", "glove.txt", "--workers", "8"])
    assert done.exit_code == 0, done.output
    assert (seen["size"], seen["taught"], seen["models"]) == ("full", ["mini-masked"], ["mini-masked"])
    assert (seen["restarts"], seen["suite"]) == ([tmp_path], "x.jsonl")
    assert (seen["intermediate"], seen["vectors"], seen["workers"]) == (["mnli.tsv"], "glove.txt", 8)


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        (["npi", "--train"], "needs --out DIR"),
        (["npi", "--train", "--out", "x", "--corpus", "y"], "are for the study cola"),
        (["npi", "--restarts-each", "2"], "go with --train"),
        (["npi", "--intermediate", "x"], "go with --train"),
        (["cola", "--train", "--out", "x", "--restarts-each", "2"], "are for the study npi"),
        (["adc", "--suite", "x"], "takes no sentences of yours"),
        (["adc", "--ratings", "x"], "has no rows of ratings"),
        (["mine.toml", "--ratings", "x"], "are for a paper's study"),
    ],
)
def test_wrong_ways_to_ask(asked: list[str], problem: str) -> None:
    done = CliRunner().invoke(app, ["study", *asked])
    assert done.exit_code != 0
    assert isinstance(done.exception, SpellingError)
    assert problem in str(done.exception)
