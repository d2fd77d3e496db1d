"""The commands for classifiers, as typed: restarts, calibrate, submit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from acceptability import Suite, registry
from acceptability.cli import app
from acceptability.errors import MeasureError, SpecError, TrainError, UnknownName
from tiny_recipes import labelled


@pytest.fixture(autouse=True)
def tiny_recipes(monkeypatch) -> Iterator[None]:
    """Register recipes that train within a second."""
    for name, target in (("stand", "Stand"), ("tiny-bert", "TinyBert")):
        monkeypatch.setitem(registry._BUILTIN["recipe"], name, f"tiny_recipes:{target}")
    registry.names.cache_clear()
    yield
    registry.names.cache_clear()


def typed(*arguments: object, code: int = 0) -> Result:
    done = CliRunner().invoke(app, [str(each) for each in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.stderr
    return done


def table(suite: Suite, folder: Path) -> Path:
    path = folder / f"{suite.name}.tsv"
    rows = [f"{each.id}\t{each.text}\t{each.label}" for each in suite.sentences]
    path.write_text("\n".join(["id\tsentence\tlabel", *rows]) + "\n")
    return path


@pytest.mark.usefixtures("no_worker_processes")
def test_restarts_are_trained_reported_calibrated_and_submitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Narrower, the titles of columns are wrapped.
    monkeypatch.setenv("COLUMNS", "160")
    data, dev = table(labelled(60, "learn"), tmp_path), table(labelled(40, "dev", 3), tmp_path)
    arguments = ("restarts", "tiny-bert", "--data", data, "--runs", 2, "--out", tmp_path / "runs", "--on", dev)
    report = json.loads(typed(*arguments, "--set", "steps=30", "--resamples", 100, "--json").stdout)
    assert [run["seed"] for run in report["runs"]] == [1, 2]
    assert [row["measure"] for row in report["results"]] == ["MCC", "Accuracy"]
    best = max(report["runs"], key=lambda run: (run["held out"]["mcc"], -run["seed"]))
    assert report["chosen"] == f"classifier:{best['folder']}"
    assert {row["chosen_seed"] for row in report["results"]} == {best["seed"]}
    shown = typed(*arguments, "--set", "steps=30", "--resamples", 100)
    for column in ("mean (std)", "best of 2 on this set", "chosen by held-out MCC", "majority of 2 [95 % interval]"):
        assert column in shown.stdout
    assert f"{report['results'][0]['mean']:.3f} ({report['results'][0]['std']:.3f})" in shown.stdout
    assert "tiny-bert-2: held-out MCC" in shown.stderr

    found = json.loads(typed("calibrate", "-m", report["chosen"], "--on", dev, "--fit", data, "--json").stdout)
    assert found["temperature"] > 0
    assert {row["when"] for row in found["rows"]} == {"before", "after"}
    shown = typed("calibrate", "-m", report["chosen"], "--on", dev, "--fit", data)
    assert f"{found['before']['ece_width']:.3f}" in shown.stdout
    assert "use it as --reduce 'p_acceptable(temperature=" in shown.stderr

    (tmp_path / "test.tsv").write_text("index\tsentence\n0\tthe cat did sleep\n1\tcat did the sleep\n")
    models = [part for run in report["runs"] for part in ("--model", f"classifier:{run['folder']}")]
    done = typed("submit", "cola", *models, "--test", tmp_path / "test.tsv", "--out", tmp_path / "sent")
    assert done.stdout == f"{tmp_path / 'sent' / 'CoLA.tsv'}\n"
    lines = (tmp_path / "sent" / "CoLA.tsv").read_text().splitlines()
    assert lines[0] == "index\tprediction"
    assert len(lines) == 3
    assert "a test set of GLUE has 1,063" in done.stderr


def test_failed_runs_end_with_an_error_after_the_others_are_shown(tmp_path: Path) -> None:
    data = table(labelled(60, "learn"), tmp_path)
    arguments = ("restarts", "stand", "--data", data, "--runs", 3, "--out", tmp_path / "runs", "--set", "failing=(2,)")
    done = typed(*arguments, code=1)
    assert done.stdout.startswith(f"classifier:{tmp_path / 'runs' / 'stand-'}")
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("error: 1 of 3 runs failed: seed 2: the stand-in falls over. The same command repeats")
    assert "stand-2: failed: the stand-in falls over" in done.stderr
    done = typed(*arguments[:-1], "failing=(1,2,3)", "--out", tmp_path / "none", code=1)
    assert done.stdout == ""
    assert "3 of 3 runs failed" in done.stderr.strip().splitlines()[-1]


def test_a_search_keeps_options_that_were_set(tmp_path: Path) -> None:
    data = table(labelled(60, "learn"), tmp_path)
    arguments = ("restarts", "stand", "--data", data, "--runs", 3, "--search", "--set", "width=4", "--json")
    rows = json.loads(typed(*arguments, "--out", tmp_path / "runs").stdout)["runs"]
    assert {row["recipe"]["width"] for row in rows} == {4}
    assert len({row["recipe"]["learning_rate"] for row in rows}) == 3


def test_errors_are_raised_before_any_training(tmp_path: Path) -> None:
    data = table(labelled(60, "learn"), tmp_path)
    (tmp_path / "good.tsv").write_text("sentence\tlabel\nA cat.\t1\n")
    arguments = ("restarts", "stand", "--data", data, "--out", tmp_path / "runs")
    for typed_arguments, error, message in (
        ((*arguments, "--on", tmp_path / "good.tsv"), MeasureError, "has only labels 1"),
        ((*arguments, "--runs", 0), TrainError, "runs is 0"),
        ((*arguments, "--workers", 2, "--engine", "ray(workers=3)"), SpecError, "omit --workers"),
        ((*arguments, "--set", "wide=3"), SpecError, "Did you mean 'width'"),
        (("restarts", "ngram", *arguments[2:]), SpecError, "ngram learns from text"),
        (("submit", "blimp", "-m", "uniform", "--test", data, "--out", tmp_path), UnknownName, "There is cola"),
    ):
        with pytest.raises(error, match=message):
            typed(*typed_arguments)
    assert not (tmp_path / "runs").exists()
