"""A folder of stored scores and a saved run that the version before wrote: read, and nothing in it is scored again.

It was made in ``former_home`` by the version before modules and model kinds were renamed, with::

    acceptability evaluate pairs.csv -m mini-causal -m mini-masked -m uniform -m "asking:uniform(method='which')" \
        -M "PairAccuracy(ties=0.5)"
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability import evaluate, reproduce
from acceptability.cli import app
from acceptability.protocols import Model
from acceptability.specs import parse_signature
from acceptability.stats.bootstrap import Bootstrap
from acceptability.store.runs import list_saved_runs

FORMER = Path(__file__).with_name("former_home")
MODELS = ("mini-causal", "mini-masked", "uniform", "prompted:uniform(method='which')")
NUMBERS = ("value", "low", "high", "n")


@pytest.fixture(autouse=True)
def former_home(own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder, with the program beside the table that was evaluated."""
    shutil.copytree(FORMER, own_home, dirs_exist_ok=True)
    shutil.copy(FORMER / "pairs.csv", tmp_path)
    monkeypatch.chdir(tmp_path)
    return own_home


def read_former_rows() -> list[dict[str, object]]:
    (path,) = (FORMER / "runs").glob("*/results.json")
    rows = json.loads(path.read_text(encoding="utf-8"))
    assert isinstance(rows, list)
    return rows


def list_blocks(home: Path) -> list[tuple[object, ...]]:
    """Every block of stored outputs, with its model."""
    with closing(sqlite3.connect(home / "scores.sqlite")) as database:
        return list(database.execute("SELECT model, keys, answers FROM block ORDER BY number"))


@pytest.fixture
def unused_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model may run: every output is stored."""

    def refuse(self: Model, batch: object) -> object:
        raise AssertionError(f"{self.signature} runs, although its outputs are stored")

    for path in (
        "acceptability.models.hf.causal.Causal",
        "acceptability.models.hf.masked.Masked",
        "acceptability.models.ngram.model.Uniform",
        "acceptability.models.prompted.PromptedModel",
    ):
        monkeypatch.setattr(f"{path}.run", refuse)


@pytest.mark.usefixtures("unused_models")
def test_nothing_that_was_stored_before_is_scored_again(former_home: Path) -> None:
    before = list_blocks(former_home)
    # The version before resampled single rows, by percentiles.
    former = Bootstrap(by="row", method="percentile")
    results = evaluate("pairs.csv", MODELS, measure=["PairAccuracy(ties=0.5)"], bootstrap=former)
    assert list_blocks(former_home) == before
    for result, row in zip(results, read_former_rows(), strict=True):
        assert {name: getattr(result, name) for name in NUMBERS} == {name: row[name] for name in NUMBERS}
        assert parse_signature(result.signature) == parse_signature(str(row["signature"]))


def test_a_model_that_was_not_stored_is_scored(former_home: Path) -> None:
    before = list_blocks(former_home)
    evaluate("pairs.csv", ["uniform(vocabulary=9)"], measure=["PairAccuracy(ties=0.5)"])
    assert len(list_blocks(former_home)) > len(before)


@pytest.mark.usefixtures("unused_models")
def test_a_run_that_was_saved_before_is_reported_and_reproduced() -> None:
    (run,), problems = list_saved_runs()
    assert (run.results, problems) == (4, [])
    done = CliRunner().invoke(app, ["report", "latest", "--json"])
    assert done.exit_code == 0, done.output
    page = Path("report.html").read_text(encoding="utf-8")
    assert "mini-masked" in page
    assert "She saw himself." in page
    again = reproduce("latest")
    assert [one.status for one in again] == ["equal"] * 4, [one.differences for one in again]
