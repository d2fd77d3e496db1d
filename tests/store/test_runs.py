from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from acceptability.errors import StoreError
from acceptability.measuring import evaluate
from acceptability.store.runs import save_run, saved_runs, unit_rows


def test_a_run_is_saved_as_json_and_csv_and_listed(own_home: Path) -> None:
    results = evaluate("starter", ["uniform"], measures=["PairAccuracy"], by="phenomenon")
    rows = [each.row() for each in results]
    run = save_run("evaluate", "starter -m uniform", rows, unit_rows(results), [each.signature for each in results])
    assert saved_runs() == ([run], [])
    assert json.loads((run.folder / "results.json").read_text()) == rows
    with (run.folder / "results.csv").open(newline="") as opened:
        assert len(list(csv.DictReader(opened))) == len(rows)
    units = json.loads((run.folder / "units.json").read_text())
    assert len(units) == results[0].n
    assert {"tag/phenomenon", "tag/item", "gap", "correct"} <= set(units[0])
    assert sum(unit["correct"] for unit in units) / len(units) == pytest.approx(results[0].value)
    assert results[0].signature in json.loads((run.folder / "run.json").read_text())["signatures"]


def test_a_damaged_run_is_named_and_hides_no_other(own_home: Path) -> None:
    damaged, whole = save_run("score", "", [], [], []), save_run("score", "", [], [], [])
    (damaged.folder / "run.json").write_text("{")
    runs, problems = saved_runs()
    assert runs == [whole]
    assert len(problems) == 1
    assert damaged.id in problems[0]


def test_a_home_that_cannot_be_written_to(tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match="cannot save the run"):
        save_run("score", "", [], [], [])
