"""What a command imports before it answers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from acceptability.cli import COMMANDS, build_application, build_outline

HEAVY = {"torch", "transformers", "tokenizers", "pandas", "scipy", "ray", "requests", "jinja2"}


def modules_after(arguments: list[str], **variables: str) -> tuple[str, set[str]]:
    """Run a command in a fresh process, and return what it printed and the top-level modules that it imported."""
    code = (
        "import json, sys\n"
        "from acceptability.cli import main\n"
        f"sys.argv = ['acceptability', *{arguments!r}]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ | variables
    )
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize("arguments", [["--help"], [], ["--version"]])
def test_help_imports_no_command(arguments: list[str]) -> None:
    shown, modules = modules_after(arguments)
    assert shown
    assert not modules & (HEAVY | {"numpy", "acceptability.cli.console", "acceptability.types"})


def test_completion_of_a_name_imports_no_command() -> None:
    words = {"_ACCEPTABILITY_COMPLETE": "complete_bash", "COMP_WORDS": "acceptability ev", "COMP_CWORD": "1"}
    shown, modules = modules_after([], **words)
    assert shown.split() == ["evaluate"]
    assert "acceptability.cli.evaluate" not in modules


def test_completion_of_an_option_imports_its_command_alone() -> None:
    words = {"_ACCEPTABILITY_COMPLETE": "complete_bash", "COMP_WORDS": "acceptability judge --js", "COMP_CWORD": "2"}
    shown, modules = modules_after([], **words)
    assert shown.split() == ["--json"]
    commands = {name for name in modules if name.startswith("acceptability.cli.")}
    assert commands == {f"acceptability.cli.{name}" for name in ("completion", "console", "judge")}


@pytest.mark.parametrize(
    "arguments",
    [["judge", "Cats sleep.", "-m", "trigram"], ["evaluate", "starter", "-m", "trigram", "--resamples", "0"]],
)
def test_commands_with_a_bundled_word_model_import_no_heavy_package(arguments: list[str], own_home: Path) -> None:
    _, modules = modules_after(arguments)
    assert not modules & {"torch", "transformers", "tokenizers", "pandas", "ray", "requests"}


def test_the_help_lists_the_commands_as_they_describe_themselves() -> None:
    complete, outline = (typer.main.get_group(make()).commands for make in (build_application, build_outline))
    assert set(outline) == set(complete) == set(COMMANDS)
    for name, command in complete.items():
        assert outline[name].help == str(command.help).split("\n\n")[0], name
        assert outline[name].rich_help_panel == command.rich_help_panel, name
