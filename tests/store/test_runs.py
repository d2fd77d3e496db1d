from __future__ import annotations

import csv
import json
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from acceptability.api.evaluation import evaluate
from acceptability.errors import StoreError
from acceptability.store.runs import collect_unit_rows, list_saved_runs, save_run
from acceptability.store.scores import SCORING_VERSION


def test_a_run_is_saved_as_json_and_csv_and_listed(own_home: Path) -> None:
    results = evaluate("starter", ["uniform"], measure=["PairAccuracy"], by="phenomenon")
    rows = [result.row() for result in results]
    run = save_run(
        "evaluate", "starter -m uniform", rows, collect_unit_rows(results), [result.signature for result in results]
    )
    assert list_saved_runs() == ([run], [])
    assert json.loads((run.folder / "results.json").read_text()) == rows
    with (run.folder / "results.csv").open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == len(rows)
    units = json.loads((run.folder / "units.json").read_text())
    assert len(units) == results[0].n
    assert {"tag/phenomenon", "tag/item", "gap", "correct"} <= set(units[0])
    assert sum(unit["correct"] for unit in units) / len(units) == pytest.approx(results[0].value)
    assert results[0].signature in json.loads((run.folder / "run.json").read_text())["signatures"]


def test_a_run_records_what_computed_its_results(own_home: Path, monkeypatch) -> None:
    run = save_run("score", "", [], [], [])
    recorded = json.loads((run.folder / "run.json").read_text())["environment"]
    assert recorded["scoring"] == SCORING_VERSION
    assert recorded["packages"] == {name: version(name) for name in ("torch", "transformers", "tokenizers")}
    monkeypatch.setitem(sys.modules, "torch", None)
    assert save_run("score", "", [], [], []).environment["device"] is None
    assert list_saved_runs()[0][0] == run


def test_recording_a_run_imports_no_network_library(own_home: Path) -> None:
    code = (
        "import sys; from acceptability.store.runs import save_run; run = save_run('score', '', [], [], []); "
        "print({'torch', 'transformers', 'tokenizers'} & set(sys.modules) or 'none', run.environment['device'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["none", "None"]


def test_the_device_of_networks_is_recorded(own_home: Path) -> None:
    pytest.importorskip("torch")
    assert save_run("score", "", [], [], []).environment["device"] in ("cpu", "cuda", "mps")


def test_packages_that_are_not_installed_are_not_recorded(own_home: Path, monkeypatch) -> None:
    def refuse(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("acceptability.store.runs.version", refuse)
    assert save_run("score", "", [], [], []).environment["packages"] == {}


def test_a_run_of_the_version_before_is_read(own_home: Path) -> None:
    run = save_run("score", "", [], [], [])
    fields = json.loads((run.folder / "run.json").read_text())
    del fields["environment"]
    (run.folder / "run.json").write_text(json.dumps(fields))
    ((read,), problems) = list_saved_runs()
    assert (read.id, read.environment, problems) == (run.id, {}, [])


def test_a_damaged_run_is_named_and_hides_no_other(own_home: Path) -> None:
    damaged, whole = save_run("score", "", [], [], []), save_run("score", "", [], [], [])
    (damaged.folder / "run.json").write_text("{")
    runs, problems = list_saved_runs()
    assert runs == [whole]
    assert len(problems) == 1
    assert damaged.id in problems[0]


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot save the run"):
        save_run("score", "", [], [], [])
