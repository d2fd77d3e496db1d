"""``acceptability report`` and the reports at the end of other commands."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

import program

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def start(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = program.typed(arguments, tmp_path, os.environ)
        assert done.returncode == code, done.stderr
        return done

    return start


def test_a_run_has_a_page_tables_and_references(run: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text('good,bad\n<script>alert(1)</script>,=cmd()\nA b.,A b c.\n"C d.",C d e.\n')
    run("evaluate", "mine.csv", "-m", "uniform", "-M", "PairAccuracy", "--report", "first.html")
    (saved,) = json.loads(run("runs", "--json").stdout)
    options = ("--latex", "t.tex", "--markdown", "t.md", "--bibtex", "t.bib", "--csv", "rows")
    told = json.loads(run("report", saved["id"], "--out", "second.html", *options, "--json").stdout)
    assert {Path(name).name for name in told["files"]} >= {"second.html", "t.tex", "t.md", "t.bib", "results.csv"}
    assert told["notes"] == []
    for name in ("first.html", "second.html"):
        text = (tmp_path / name).read_text(encoding="utf-8")
        assert "<script>alert(1)" not in text
        assert r"\u003cscript\u003ealert(1)" in text
        assert '"=cmd()"' in text
    assert r"\toprule" in (tmp_path / "t.tex").read_text()
    assert "@misc{acceptability" in (tmp_path / "t.bib").read_text()


def test_a_comparison_has_a_report(run: Run, tmp_path: Path) -> None:
    run("compare", "starter", "-m", "uniform", "-m", "uniform(vocabulary=9)", "--draws", "0", "--report", "c.html")
    assert "Comparisons" in (tmp_path / "c.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("data")
def test_a_paper_has_a_report(run: Run, tmp_path: Path) -> None:
    run("study", "park", "--report", "p.html")
    assert "The study park, computed again" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_a_report_of_nothing_is_an_error(run: Run) -> None:
    assert "no run named 'none'" in run("report", "none", code=1).stderr
    assert "there is no folder" in run("report", "none", "--out", "no/where.html", code=1).stderr
    done = run("evaluate", "starter", "-m", "uniform", "--report", "no/where.html", code=1)
    assert "there is no folder" in done.stderr
    assert done.stdout == ""


def test_a_run_without_a_report_says_so(run: Run) -> None:
    run("score", "starter", "uniform")
    message = run("report", "latest", code=1).stderr
    assert "the latest run, " in message
    assert "is of the command score, which has no report" in message
    assert "acceptability report ID" in message


@pytest.mark.parametrize(
    "arguments",
    [
        ("evaluate", "starter", "-m", "uniform", "--report", "/"),
        ("evaluate", "starter", "-m", "uniform", "--report", "there.csv"),
        ("compare", "starter", "-m", "uniform", "-m", "trigram", "--report", "there.csv"),
        ("compare", "starter", "-m", "uniform", "-m", "trigram", "--differing", "there.csv"),
        ("study", "park", "--report", "there.csv"),
        ("study", "park", "--csv", "there.csv"),
        ("study", "cola", "--quick", "--csv", "there.csv"),
        ("score", "starter", "-m", "uniform", "--out", "there.csv"),
        ("demo", "--report", "there.csv"),
        ("generate", "npi", "--out", "there.jsonl", "--force"),
    ],
)
def test_a_folder_instead_of_a_file_is_reported_before_any_work(
    run: Run, tmp_path: Path, own_home: Path, arguments: tuple[str, ...]
) -> None:
    for name in ("there.csv", "there.jsonl"):
        (tmp_path / name).mkdir()
    done = run(*arguments, code=1)
    assert done.stderr.startswith("error: cannot write ")
    assert "it is a folder" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""
    assert not (own_home / "runs").exists()
