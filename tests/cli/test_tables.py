"""The tables of every command, as wide as a terminal: no number is cut, no column is empty, no line too long."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import program
from acceptability import registry
from acceptability.cli import COMMANDS, app, console
from acceptability.cli.console import print_table
from acceptability.models import list_named_models
from acceptability.report import text_table
from acceptability.report.text_table import TextTable, make_table, render_table, text_width

WIDTHS = (80, 100, 140)
# With the commands that print no table: they print data, files or a report of lines.
WITHOUT_TABLES = {"annotate", "score", "judge", "regress", "report", "serve", "train", "perplexity", "submit", "doctor"}
LONG = "a_phenomenon_with_quite_a_long_name_indeed"
MEASURES = ("-M", "PairAccuracy", "-M", "PBC")
QUICK = ("--resamples", "40")
THREE = ("-m", "uniform", "-m", "uniform(vocabulary=9)", "-m", "trigram")


def write_inputs(folder: Path) -> None:
    rows = ["text,label,phenomenon,item,rating"]
    for number in range(12):
        kind = LONG if number % 2 else "npi_licensing"
        rows.append(f"The cats sleep {'now ' * (number % 3)}here.,1,{kind},{number},{number * 7 % 5 + 3}")
        rows.append(f"The cats sleeps {'so ' * (number % 4)}here.,0,{kind},{number},{number * 5 % 4}")
    (folder / "mine.csv").write_text("\n".join(rows), encoding="utf-8")
    pairs = [f"The dog {verb} {n}.,The dog {verb}s {n}.,{LONG if n % 2 else 'npi'}" for n in range(6) for verb in "ab"]
    (folder / "pairs.csv").write_text("\n".join(["good,bad,phenomenon", *pairs]), encoding="utf-8")
    (folder / "scores.csv").write_text("\n".join(["sentence_id,score", *(f"{n},{-n}" for n in range(1, 25))]))
    answers = [f"p{p},S{s}.,{(p * s) % 5 + 1},{s % 2}" for p in range(1, 5) for s in range(1, 5)]
    (folder / "answers.csv").write_text("\n".join(["participant,sentence,response,label", *answers]))
    (folder / "unigrams.tsv").write_text("word\tcount\nThe\t9\ncats\t5\nsleep\t4\nsleeps\t2\nhere.\t3\nnow\t3\nso\t1\n")
    (folder / "s.toml").write_text('suites = ["pairs.csv"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy"]\n')


def list_commands(masked_dir: Path, classifier_dir: Path) -> list[tuple[str, ...]]:
    """Every command that prints tables; those that others look for are first."""
    masked = ("-m", f"masked:{masked_dir}")
    return [
        ("evaluate", "pairs.csv", *THREE, "--by", "phenomenon", *MEASURES, *QUICK),
        ("evaluate", "pairs.csv", "starter/word_order", *THREE[:4], *MEASURES, *QUICK, "--percent"),
        ("measure", "mine.csv", "--scores", "scores.csv", "-M", "PBC", *QUICK),
        ("compare", "pairs.csv", *THREE, "--by", "phenomenon", "-M", "PairAccuracy", *QUICK, "--draws", "20"),
        ("compare", "pairs.csv", *THREE[2:], *MEASURES, *QUICK, "--draws", "20"),
        ("equivalence", "pairs.csv", *THREE, *MEASURES, "--margin", ".1", *QUICK),
        ("correlate", "mine.csv", *THREE),
        ("link", "mine.csv", "-m", "trigram", "--unigrams", "unigrams.tsv", *QUICK, "--draws", "20", "--folds", "3"),
        ("contrasts", "pairs.csv", "-m", "uniform", "--by", "phenomenon", *QUICK),
        ("methods", "mine.csv", *THREE[2:], *masked, "--factor", "phenomenon", *QUICK),
        ("probe", "mine.csv", *masked, "--factor", "phenomenon", *QUICK),
        ("calibrate", "mine.csv", "-m", f"classifier:{classifier_dir}"),
        ("ratings", "answers.csv", "--kind", "likert", "--splits", "40"),
        ("power", "--simulations", "100"),
        ("reproduce", "latest"),
        ("study", "run", "s.toml"),
        ("suites",),
        ("models",),
        ("complete", "The keys to the", "-m", "trigram"),
        ("complete", "The keys to the", "-m", "trigram", "--candidates", "house,car"),
        ("measures",),
        ("reductions",),
        ("recipes",),
        ("runs",),
        ("store",),
        ("generate",),
        ("demo",),
        ("restarts", "tiny-bert", "--data", "mine.csv", "--runs", "2", "--out", "runs", "--on", "mine.csv",
         "--set", "steps=2", *QUICK),
    ]  # fmt: skip


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_inputs(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("no_worker_processes")
def test_tables_of_every_command_fit_the_terminal(
    inputs: Path, masked_dir: Path, classifier_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: list[TextTable] = []
    monkeypatch.setattr(
        console, "render_table", lambda table, width, **more: [printed.append(table), *render_table(table, width)][1:]
    )
    # `demo` runs all models that are installed, and recipes train for minutes: here there is one small one of each.
    monkeypatch.setattr("acceptability.cli.demo.list_named_models", lambda: {"trigram": list_named_models()["trigram"]})
    monkeypatch.setattr("acceptability.cli.demo.write_run_report", lambda *_, **__: None)
    monkeypatch.setitem(registry._BUILTIN["recipe"], "tiny-bert", "tiny_recipes:TinyBert")
    registry.names.cache_clear()
    shown = WITHOUT_TABLES
    for arguments in list_commands(masked_dir, classifier_dir):
        before = len(printed)
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, (arguments, done.output, done.exception)
        assert len(printed) > before, f"{arguments[0]} printed no table"
        shown = shown | {arguments[0]}
        for table in printed[before:]:
            for width in WIDTHS:
                check_rendering(table, width, arguments)
    assert shown == set(COMMANDS)
    registry.names.cache_clear()


def check_rendering(table: TextTable, width: int, arguments: Sequence[str]) -> None:
    where = f"{' '.join(arguments)} at {width} columns"
    lines = render_table(table, width)
    text = "\n".join(lines)
    assert not [line for line in lines if text_width(line) > width], where
    assert not re.search(r"\d…|…\d|\.…", text), where
    for row in table.rows:
        for name, cell in zip(table.header, row, strict=True):
            numbers = [part for part in cell.split("\n") if text_table._NUMBER.match(part) and part not in ("", "–")]
            assert not [part for part in numbers if not re.search(rf"(?<!\S){re.escape(part)}(?!\S)", text)], (
                f"{where}: {name} {cell} is not whole"
            )
    # Every column that is shown has a cell.
    kept = text_table._drop_blank_columns(table)
    for index, name in enumerate(kept.header):
        assert name in kept.kept or any(row[index] not in ("", "–") for row in kept.rows), f"{where}: {name} is empty"


@pytest.mark.parametrize("width", [40, 80])
def test_the_width_is_that_of_the_environment(width: int, inputs: Path, own_home: Path) -> None:
    environment = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": str(width)}
    arguments = (
        "evaluate",
        "pairs.csv",
        *THREE,
        "-m",
        "uniform(vocabulary=7)",
        "--by",
        "phenomenon",
        "-M",
        "PairAccuracy",
        *QUICK,
    )
    done = program.typed(arguments, inputs, environment)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= width
    # Four models do not fit beside each other: the names of the groups stand in each block.
    assert sum("NPI" in line.upper() for line in lines) == (4 if width == 40 else 2)


NUMBERS = [["a long name of a model", "0.648 [0.598, 0.694]", "<.001"], ["b", "–", ".031"]]


@pytest.mark.parametrize("width", range(22, 60))
def test_no_width_cuts_a_number(width: int) -> None:
    table = make_table(["model", "value", "p"], NUMBERS, "A title that is longer than some widths")
    text = "\n".join(render_table(table, width))
    assert max(map(text_width, text.splitlines())) <= width
    assert all(number in text for number in ("0.648 [0.598, 0.694]", "<.001", ".031"))


def test_columns_of_a_pivot_continue_in_further_blocks() -> None:
    models = [f"model-{number}" for number in range(7)]
    rows = [[f"group {row}", *(f"0.{row}{number}0 [0.100, 0.900]" for number in range(7))] for row in range(3)]
    lines = render_table(make_table(["group", *models], rows, is_pivot=True), 80)
    blocks = "\n".join(lines).split("\n\n")
    assert len(blocks) == 3
    assert [name for block in blocks for name in re.findall(r"model-\d", block)] == models
    assert all("group 0" in block for block in blocks)


def test_blank_columns_are_left_out_unless_they_are_kept() -> None:
    table = make_table(["model", "value", "p"], [["a", "–", "–"], ["b", "–", ""]], kept=["value"])
    assert render_table(table, 80)[0].split() == ["model", "value"]


def test_wide_characters_take_two_columns() -> None:
    lines = render_table(make_table(["文", "n"], [["文法的な文", "1"], ["abc", "22"]]), 80)
    assert {text_width(line) for line in lines} == {14}


@pytest.mark.parametrize(("variable", "is_bold"), [("", True), ("NO_COLOR", False)])
def test_a_terminal_gets_bold_headers_unless_it_wants_no_colours(
    variable: str, is_bold: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    if variable:
        monkeypatch.setenv(variable, "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_table(make_table(["model", "n"], [["a", 1]]))
    assert ("\x1b[1mmodel  n\x1b[0m" in capsys.readouterr().out) is is_bold


@pytest.mark.parametrize(
    "arguments",
    [
        ("judge", "The cats sleep here.", "The cats sleeps here.", "-m", "trigram"),
        ("judge", "A.", "B c.", "D e.", "-m", "uniform", "--context", "Well then."),
        ("regress", "regress.csv", "--formula", "score ~ condition + (1 | item)"),
        ("perplexity", "--corpus", "text.txt", "-m", "trigram"),
        ("doctor",),
    ],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.parametrize("width", WIDTHS)
def test_what_commands_print_besides_tables_fits_too(
    arguments: tuple[str, ...], width: int, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(3).normal(size=(12, 4)).round(3)
    rows = [f"{i},{'ab'[j % 2]},{i % 5 + j % 2 + noise[i, j]}" for i in range(12) for j in range(4)]
    (inputs / "regress.csv").write_text("\n".join(["item,condition,score", *rows]), encoding="utf-8")
    (inputs / "text.txt").write_text("The cats sleep here.\nDogs run.\n", encoding="utf-8")
    monkeypatch.setenv("COLUMNS", str(width))
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output
    assert not re.search(r"\d…|…\d|\.…", done.stdout)
    # Paths of this machine may be longer than any terminal.
    assert [line for line in done.stdout.splitlines() if text_width(line) > width and "/" not in line] == []
