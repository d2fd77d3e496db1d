"""What data can do to a terminal: nothing. What programs read stays as it is."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import program
from acceptability.cli import _Visible
from acceptability.cli.shown import print_data, print_rows, print_table
from acceptability.report.table import add_row, titled

RED, TITLE = "\x1b[31m", "\x1b]0;t\x07"
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(own_home: Path, tmp_path: Path) -> Run:
    rows = f"text,label,phen\nCats{TITLE} sleep.,1,a{RED}b\nCats sleeps.,0,a{RED}b\nDogs bark.,1,c\nDogs barks.,0,c\n"
    (tmp_path / "x.csv").write_text(rows, encoding="utf-8")

    def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
        done = program.typed(arguments, tmp_path, {**os.environ, "ACCEPTABILITY_HOME": str(own_home)})
        assert done.returncode == 0, done.stderr
        return done

    return typed


@pytest.mark.parametrize(
    ("arguments", "spelled"),
    [
        (("evaluate", "x.csv", "-m", "uniform", "--by", "phen", "--resamples", "0"), r"a\x1b[31mb"),
        (("judge", f"a{TITLE}b", "Cats sleep.", "-m", "uniform"), r"a\x1b]0;t\x07b"),
        (("suites", "show", "x.csv"), r"Cats\x1b]0;t\x07 sleep."),
    ],
)
def test_a_sentence_or_tag_gave_commands_to_the_terminal(run: Run, arguments: tuple[str, ...], spelled: str) -> None:
    done = run(*arguments)
    assert spelled in done.stdout
    assert not [each for each in done.stdout + done.stderr if each in "\x1b\x07"]


def test_a_table_says_what_its_columns_and_title_hold(capsys: pytest.CaptureFixture[str]) -> None:
    table = titled(f"[t]{RED}")
    table.add_column("a")
    add_row(table, f"[b]c{RED}")
    print_table(table)
    print_rows([f"n{RED}"], [{f"n{RED}": f"v{RED}"}])
    said = capsys.readouterr().out
    assert all(each in said for each in (r"[t]\x1b[31m", r"[b]c\x1b[31m", r"n\x1b[31m", r"v\x1b[31m"))
    assert "\x1b" not in said


def test_rows_for_a_program_are_exact(run: Run) -> None:
    assert f"Cats{TITLE} sleep." in run("score", "x.csv", "uniform").stdout
    tokens = json.loads(run("score", "x.csv", "uniform", "--tokens", "--json").stdout)
    assert any("\x1b" in row["token"] for row in tokens)


def test_rows_on_a_terminal_are_spelled_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_data(f"a\t{RED}\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_data(f"a\t{RED}\n")
    assert capsys.readouterr().out == f"a\t{RED}\n" + "a\t\\x1b[31m\n"


def test_what_is_logged_gives_no_commands() -> None:
    record = logging.LogRecord("acceptability", logging.INFO, "", 0, "a %s", (RED,), None)
    assert _Visible().format(record) == r"a \x1b[31m"
