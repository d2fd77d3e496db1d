from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from acceptability.api.evaluation import evaluate
from acceptability.errors import StoreError
from acceptability.store.runs import collect_unit_rows, list_saved_runs, save_run


def test_a_run_is_saved_as_json_and_csv_and_listed(own_home: Path) -> None:
    results = evaluate("starter", ["uniform"], measures=["PairAccuracy"], by="phenomenon")
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
