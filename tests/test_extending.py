"""The plug-in of the how-to: its files as the page prints them, built as a wheel, installed, listed and used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pages import ROOT, blocks

PAGE = ROOT / "docs" / "howto" / "extend.md"


def run(*command: object, cwd: Path, **environment: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **environment}, capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the installed plug-in."""
    pytest.importorskip("hatchling", reason="hatchling, of the extra dev, builds the wheel")
    project, site = tmp_path_factory.mktemp("plug-in"), tmp_path_factory.mktemp("site")
    for block in blocks(PAGE):
        if block.title:
            path = project / block.title
            path.parent.mkdir(exist_ok=True)
            path.write_text(block.body, encoding="utf-8")
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "dist", cwd=project)
    (wheel,) = project.glob("dist/acceptability_vowels-*.whl")
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        site,
        wheel,
        cwd=project,
    )
    return site


@pytest.fixture
def python_path(site: Path) -> str:
    return os.pathsep.join([str(site), str(ROOT / "src")])


def test_the_page_prints_what_the_installed_plug_in_does(site: Path, python_path: str, tmp_path: Path) -> None:
    (example,) = [block for block in blocks(PAGE) if block.kind == "python" and not block.title]
    (tmp_path / "example.txt").write_text(example.body, encoding="utf-8")
    run(sys.executable, "-m", "doctest", "example.txt", cwd=tmp_path, PYTHONPATH=python_path)


@pytest.mark.parametrize(
    ("command", "name"),
    [("suites", "vowels"), ("models", "vowels"), ("measures", "MedianGap"), ("reductions", "worst_token")],
)
def test_the_parts_are_listed(command: str, name: str, python_path: str, tmp_path: Path) -> None:
    listed = run(sys.executable, "-m", "acceptability", command, "--json", cwd=tmp_path, PYTHONPATH=python_path)
    assert f'"{name}"' in listed


def test_the_command_uses_the_parts(python_path: str, tmp_path: Path) -> None:
    arguments = (
        "evaluate",
        "vowels",
        "--model",
        "vowels",
        "--measure",
        "MedianGap",
        "--reduce",
        "worst_token",
        "--json",
    )
    printed = run(sys.executable, "-m", "acceptability", *arguments, cwd=tmp_path, PYTHONPATH=python_path)
    assert '"measure": "MedianGap()"' in printed
    assert '"value": 4.0' in printed


def test_the_data_of_the_suite_are_compared_with_the_catalog(site: Path, python_path: str, tmp_path: Path) -> None:
    path = site / "vowels" / "pairs.tsv"
    content = path.read_bytes()
    try:
        path.write_bytes(content.replace(b"ease", b"easy"))
        code = "import acceptability; acceptability.load_suite('vowels')"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": python_path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert "is not the published file" in done.stderr
    finally:
        path.write_bytes(content)
