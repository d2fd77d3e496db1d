"""Output on a terminal: control sequences in data are escaped, and the help of every command fits.

Output for programs is not changed.
"""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import program
from acceptability.cli import COMMANDS, EscapingFormatter, app
from acceptability.cli.console import print_data, print_rows, print_table
from acceptability.report.text_table import make_table

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
    ("arguments", "escaped"),
    [
        (("evaluate", "x.csv", "-m", "uniform", "--by", "phen", "--resamples", "0"), r"a\x1b[31mb"),
        (("judge", f"a{TITLE}b", "Cats sleep.", "-m", "uniform"), r"a\x1b]0;t\x07b"),
        (("suites", "show", "x.csv"), r"Cats\x1b]0;t\x07 sleep."),
    ],
)
def test_control_sequences_in_sentences_and_tags_are_escaped(
    run: Run, arguments: tuple[str, ...], escaped: str
) -> None:
    done = run(*arguments)
    assert escaped in done.stdout
    assert not set(done.stdout + done.stderr) & set("\x1b\x07")


def test_control_sequences_in_titles_headers_and_cells_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(make_table(["a"], [[f"[b]c{RED}"]], f"[t]{RED}"))
    print_rows([f"n{RED}"], [{f"n{RED}": f"v{RED}"}])
    output = capsys.readouterr().out
    assert all(escaped in output for escaped in (r"[t]\x1b[31m", r"[b]c\x1b[31m", r"n\x1b[31m", r"v\x1b[31m"))
    assert "\x1b" not in output


def test_rows_for_a_program_are_exact(run: Run) -> None:
    assert f"Cats{TITLE} sleep." in run("score", "x.csv", "uniform").stdout
    tokens = json.loads(run("score", "x.csv", "uniform", "--tokens", "--json").stdout)
    assert any("\x1b" in row["token"] for row in tokens)


def test_control_sequences_are_escaped_only_on_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_data(f"a\t{RED}\n")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    print_data(f"a\t{RED}\n")
    assert capsys.readouterr().out == f"a\t{RED}\n" + "a\t\\x1b[31m\n"


def test_control_sequences_in_log_messages_are_escaped() -> None:
    record = logging.LogRecord("acceptability", logging.INFO, "", 0, "a %s", (RED,), None)
    assert EscapingFormatter().format(record) == r"a \x1b[31m"


def _iter_commands(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name in command.list_commands(None) if hasattr(command, "list_commands") else []:
        yield from _iter_commands((*path, name), command.get_command(None, name))


@pytest.mark.parametrize("width", [80, 100])
def test_the_help_of_every_command_fits_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for path, command in _iter_commands((), typer.main.get_command(app)):
        shown = CliRunner().invoke(app, [*path, "--help"]).stdout
        assert max(map(len, shown.splitlines())) <= width, path
        texts = [command.help or "", *(getattr(parameter, "help", None) or "" for parameter in command.params)]
        # A word that is longer than its column would be cut.
        assert not [word for text in texts for word in text.split() if word not in shown], path


@pytest.mark.parametrize("name", COMMANDS)
def test_the_example_in_the_help_is_a_command(name: str) -> None:
    command = typer.main.get_command(app).commands[name]
    assert command.epilog.startswith("Example: ")
    program_name, given_name, *arguments = shlex.split(command.epilog.removeprefix("Example: "))
    assert (program_name, given_name) == ("acceptability", name)
    command.make_context(name, arguments)
