"""What the study of CoLA teaches: the plan as data, and its execution with a stand-in that leaves recipes behind."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.cli import app
from acceptability.errors import SpellingError, TrainError
from acceptability.studies import cola_train
from acceptability.studies.cells import printed
from acceptability.studies.cola_groups import groups
from acceptability.studies.cola_plan import Planned, planned
from acceptability.studies.cola_splits import find_split, parts
from acceptability.studies.cola_train import Given, carry_out, sentences
from acceptability.train.tick import Tell


def stand_in(run: Planned, given: Given, folder: Path, tell: Tell) -> None:
    """Leave the recipes of so many restarts, the second of which is best, and teach nothing."""
    first = int(str(run.options.get("seed", 1)))
    for number in range(run.restarts):
        place = folder / f"{run.kind}-{first + number}"
        place.mkdir(parents=True)
        held = 0.9 if number == 1 else 0.1
        told: dict[str, Any] = {"kind": run.kind, "recipe": dict(run.options)}
        if run.kind == "real-fake":
            told["facts"] = {"real/fake MCC on the dev set": held}
        else:
            told["results"] = {"held out": {"mcc": held}}
        (place / "recipe.json").write_text(json.dumps(told))


def test_the_full_plan_is_the_papers() -> None:
    runs = planned("full", ["bert-base-uncased"])
    by_kind = Counter(run.kind for run in runs)
    # Bags of words: two in Table 4, and for 11 splits and 5 sizes; encoders of three styles, 5 of each transferred.
    assert by_kind == {"real-fake": 3, "cbow": 2 + 11 + 5, "pooling": 1 + 3 * 5 + 11 + 5, "transformer": 2}
    assert sum(run.restarts for run in runs if run.name == "table-4/glove-real-fake-cola") == 50
    assert all(run.restarts == 20 for run in runs if run.kind == "cbow")
    assert all(run.search for run in runs if run.kind != "transformer")
    assert {run.data for run in runs if "figure-3" in run.name} == {f"size {n}" for n in (100, 300, 1000, 3000, 8551)}


@pytest.mark.parametrize("size", ["quick", "full"])
def test_every_classifier_of_table_4_is_planned(size: Any) -> None:
    filled = " ".join(f"{run.fills};" for run in planned(size))
    rows = {row for table, row, _ in printed("cola") if table == "Table 4" and not row.endswith("WLPM")}
    assert len(rows) == 8
    assert all(f"{row};" in filled for row in rows)


def test_restarts_in_one_folder_have_seeds_of_their_own() -> None:
    for size in ("quick", "full"):
        seeds: Counter[tuple[str, str, int]] = Counter()
        for run in planned(size):  # type: ignore[arg-type]
            first = int(str(run.options.get("seed", 1)))
            seeds.update((run.name, run.kind, seed) for seed in range(first, first + run.restarts))
        assert set(seeds.values()) == {1}


def test_another_plan_is_an_error() -> None:
    with pytest.raises(SpellingError, match="there are quick, full"):
        planned("huge")  # type: ignore[arg-type]


def test_what_lacks_something_is_left_out_and_said(data: Path, tmp_path: Path) -> None:
    left = carry_out("quick", tmp_path, teach=stand_in)
    assert {each.name for each in groups([tmp_path])} >= {f"{tmp_path.name}/classifiers/table-4/cbow-alone"}
    assert {run.kind for group in groups([tmp_path]) for run in group.runs} == {"cbow"}
    assert any("needs a language model: --model recurrent:DIR" in each for each in left)
    assert any("GloVe" in each and "--vectors FILE" in each and "--corpus FILE" in each for each in left)
    assert len(left) == len([run for run in planned("quick") if run.needs])


def test_everything_is_taught_with_what_is_given(tmp_path: Path) -> None:
    seen: list[Planned] = []

    def teach(run: Planned, given: Given, folder: Path, tell: Tell) -> None:
        assert given == Given("recurrent:/m/lstm", "glove.txt", ("text",), ("held",))
        seen.append(run)
        stand_in(run, given, folder, tell)

    models = ["recurrent:/m/lstm", "masked:/m/bert-base-uncased"]
    left = carry_out("full", tmp_path, models, corpus=["text"], dev=["held"], vectors="glove.txt", teach=teach)
    assert left == []
    assert not any("{" in str(value) for run in seen for value in run.options.values())
    elmo = next(run for run in seen if run.name == "table-4/elmo-style-cola")
    assert elmo.options["vectors"] == "elmo:recurrent:/m/lstm"
    best = next(run for run in seen if run.name == "table-5/split-1" and run.kind == "pooling")
    assert best.options["encoder"] == str((tmp_path / "classifiers/real-fake/elmo-style/real-fake-2").resolve())
    transferred = [run.options["encoder"] for run in seen if run.name == "table-4/bnc-real-fake-cola"]
    assert len(set(transferred)) == 5
    assert {run.options["model"] for run in seen if run.kind == "transformer"} == {"/m/bert-base-uncased"}


def test_encoders_that_are_too_few_or_tell_no_mcc_are_an_error(tmp_path: Path) -> None:

    def teach(run: Planned, given: Given, folder: Path, tell: Tell) -> None:
        if run.kind != "real-fake":
            return
        (folder / "real-fake-1").mkdir(parents=True)
        told = {"kind": "real-fake", "recipe": {}, "facts": facts}
        (folder / "real-fake-1/recipe.json").write_text(json.dumps(told))

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


@dataclass(frozen=True)
class Taught:
    """A recipe that notes how often it is taught."""

    epochs: int = 1
    seed: int = 1


class Protocol:
    """What stands in for the functions that teach restarts."""

    problem: str | None = None
    calls: ClassVar[list[dict[str, Any]]] = []

    def restarts(self, recipe: Any, data: Any, out: Path, **options: Any) -> list[str]:
        self.calls.append({"recipe": recipe, "data": data, "out": out, **options})
        return ["a run"]

    def sampler(self, recipe: Taught) -> Any:
        return lambda seed, recipe: replace(recipe, epochs=100 * seed)

    def failures(self, runs: Any) -> str | None:
        return self.problem


@pytest.fixture
def protocol(monkeypatch: pytest.MonkeyPatch) -> Protocol:
    made = Protocol()
    made.calls.clear()
    for name in ("restarts", "sampler", "failures"):
        monkeypatch.setattr(cola_train, name, getattr(made, name))
    monkeypatch.setattr(cola_train.registry, "find", lambda kind, name: Taught)
    monkeypatch.setattr(cola_train, "sentences", lambda data: f"the sentences of {data}")
    return made


def test_labelled_sentences_go_to_restarts(protocol: Protocol, tmp_path: Path) -> None:
    run = Planned("here", "cbow", "train", 3, "Table 4", {"epochs": 2}, search=True)
    cola_train._restarts(run, Given(workers=2), tmp_path, print)
    (call,) = protocol.calls
    assert (call["workers"], call["engine"]) == (2, "local")
    assert (call["runs"], call["data"], call["out"]) == (3, ["the sentences of train"], tmp_path)
    assert call["recipe"] == Taught(2)
    assert call["search"](7, call["recipe"]) == Taught(700)
    protocol.problem = "1 of 3 runs failed"
    with pytest.raises(TrainError, match="1 of 3 runs failed"):
        cola_train._restarts(replace(run, search=False), Given(), tmp_path, print)
    assert protocol.calls[-1]["search"] is None


def test_encoders_learn_from_text(protocol: Protocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(cola_train, "train", lambda *given, **options: seen.append((*given, options["dev"])))
    run = Planned("here", "real-fake", "text", 2, "Table 4", {"seed": 4}, search=True)
    cola_train._restarts(run, Given(text=("a",), dev=("b",)), tmp_path, print)
    assert seen == [(Taught(100 * seed, seed), ("a",), tmp_path / f"real-fake-{seed}", ("b",)) for seed in (4, 5)]


def test_the_command_teaches_and_then_computes(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cola_train, "_restarts", stand_in)
    seen: dict[str, Any] = {}

    def cells(name: str, models: Any, **options: Any) -> list[Any]:
        seen.update(options, models=models)
        return []

    monkeypatch.setattr("acceptability.cli.study.study", cells)
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["study", "cola", "--train", "--quick", "--out", str(out), "--json"])
    assert done.exit_code == 0, done.output
    assert seen["restarts"] == [out / "classifiers"]
    assert seen["corpus"] == [out / "dev.txt"]
    assert seen["models"] == [*(f"ngram:{out}/language-models/ngram-{order}" for order in (2, 3, 4)), "mini-lstm"]
    assert (out / "classifiers/figure-3/100/cbow-2/recipe.json").is_file()
    assert "not taught: Table 4: Pooling, GloVe" in done.stderr


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
