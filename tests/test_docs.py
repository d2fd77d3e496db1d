"""Every block of code in README and docs runs and prints what it says; everything that is there is documented."""

from __future__ import annotations

import doctest
import importlib.util
import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from acceptability import registry
from acceptability.cli import app
from acceptability.models.named import delivered
from acceptability.suites import catalog

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: Path, kind: str) -> list[str]:
    return [body for name, body in BLOCK.findall(page.read_text(encoding="utf-8")) if name == kind]


def needs_models(page: Path) -> None:
    if "sphinx-trigram" in page.read_text(encoding="utf-8") and not delivered()["sphinx-trigram"].is_installed():
        pytest.skip("the page uses sphinx-trigram, and pocketsphinx is not installed")


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: str(p.relative_to(ROOT)))
def test_python_blocks_print_what_they_say(page: Path, tmp_path: Path, monkeypatch) -> None:
    needs_models(page)
    monkeypatch.chdir(tmp_path)
    text = "\n".join(blocks(page, "python"))
    found = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    report = io.StringIO()
    runner = doctest.DocTestRunner()
    runner.run(found, out=report.write)
    assert runner.tries > 0
    assert runner.failures == 0, report.getvalue()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "console")], ids=lambda p: str(p.relative_to(ROOT)))
def test_console_blocks_print_what_they_say(page: Path, tmp_path: Path) -> None:
    needs_models(page)
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
            line, _, expected = part.partition("\n")
            program, *arguments = shlex.split(line)
            assert program == "acceptability"
            command = [sys.executable, "-m", "acceptability", *arguments]
            done = subprocess.run(command, cwd=tmp_path, env=dict(os.environ), capture_output=True, encoding="utf-8")
            assert done.returncode == 0, done.stderr
            printed = [line.rstrip() for line in done.stdout.rstrip().splitlines()]
            assert printed == expected.rstrip().splitlines()


@pytest.fixture(scope="module")
def reference() -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: page() for name, page in module.PAGES.items()}


def test_everything_is_documented(reference: dict[str, str]) -> None:
    for kind, page in (
        ("measure", "measures"),
        ("reduction", "reductions"),
        ("model", "models"),
        ("recipe", "recipes"),
    ):
        for name in registry.names(kind):
            heading = reference[page].partition(f"## `{name}`\n\n")[2]
            assert len(heading.partition("\n\n")[0]) > 20, f"{kind} {name} has no description"
    for entry in catalog():
        assert f"## `{entry.id}`" in reference["suites"]
    for name, command in typer.main.get_command(app).commands.items():
        assert f"## `acceptability {name}`" in reference["commands"]
        assert command.help or name == "suites"
    for name in delivered():
        assert f"`{name}`" in reference["models"]


def test_the_readme_lists_the_suites_with_their_counts() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) < 150
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in readme.splitlines() if line.startswith("| `")]
    listed = set()
    for names, sentences, contrasts, _ in rows:
        named = re.findall(r"`([^`]+)`", names)
        found = [
            entry
            for entry in catalog()
            if any(entry.id.startswith(name[:-1]) if name.endswith("/…") else entry.id == name for name in named)
        ]
        listed |= {entry.id for entry in found}
        assert int(sentences.replace(",", "")) == sum(entry.sentences for entry in found), names
        assert int(contrasts.replace(",", "") or 0) == sum(entry.contrasts for entry in found), names
    assert listed == {entry.id for entry in catalog()}


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        for link in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" in link or link.startswith("reference/"):
                continue
            assert (page.parent / link).exists(), f"{page.name} links to {link}"


def test_no_machine_path_is_in_the_tree() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    pattern = re.compile(rb"(^|[^\w.])/(work|farm|root)/")
    wrong = [name for name in files if name and pattern.search((ROOT / name.decode()).read_bytes())]
    assert wrong == []
