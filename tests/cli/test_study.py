"""The command ``study``: a subcommand for each paper with its own options, and files of one's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from pathlib import Path

import pytest
import typer.main

import program
from acceptability import registry
from acceptability.cli.study import StudyGroup, app, build_paper_command
from acceptability.errors import SpecError, UnknownName
from acceptability.papers import Paper, study
from published import compute_published_cells

Run = Callable[..., subprocess.CompletedProcess[str]]

SHARED = {"--table", "--csv", "--report", "--page", "--json", "--help", "--digits", "--signatures"}
TRAINING = {"--train", "--quick", "--out", "--workers", "--engine", "--vectors"}
OWN = {
    "adc": {"--model", "-m"},
    "niu-penn": {"--model", "-m", "--corpus", "-c"},
    "cola": {"--model", "-m", "--corpus", "-c", "--restarts", *TRAINING, "--short", "--dev"},
    "npi": {
        "--model",
        "-m",
        "--restarts",
        "--suite",
        "--ratings",
        *TRAINING,
        "--restarts-each",
        "--intermediate",
        "--allow",
    },
    "humans": set(),
    "park": {"--model", "-m", "--suite-i"},
    "syntaxgym": {"--model", "-m"},
}


@pytest.fixture
def run(own_home: Path, tmp_path: Path) -> Run:
    """Run the program in an empty folder and a terminal of 80 columns."""

    def start(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, "ACCEPTABILITY_HOME": str(own_home), "COLUMNS": "80"}
        done = program.typed(["study", *arguments], tmp_path, env)
        assert done.returncode == code, done.stderr
        return done

    return start


@pytest.fixture
def described(tmp_path: Path) -> None:
    """A study file in the folder in which the program runs."""
    text = 'suites = ["starter"]\nmodels = ["uniform"]\nmeasures = ["PairAccuracy"]\nresamples = 0\n'
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")


def test_every_paper_is_a_subcommand() -> None:
    group = typer.main.get_group(app)
    assert isinstance(group, StudyGroup)
    assert group.list_commands(None) == [*OWN, "run"] == [*registry.names("study"), "run"]


@pytest.mark.parametrize("name", OWN)
def test_a_paper_has_its_own_options_and_the_shared_ones(name: str) -> None:
    command = build_paper_command(name)
    flags = [flag for option in command.params for flag in option.opts]
    assert len(flags) == len(set(flags))
    assert set(flags) | {"--help"} == OWN[name] | SHARED
    assert command.help
    paper: Paper = registry.find("study", name)
    of_training = {option.name for option in paper.options if "train" in option.requires}
    assert of_training <= set(signature_of_training(name))
    assert bool(of_training) == (name in ("cola", "npi"))


def signature_of_training(name: str) -> list[str]:
    """Return the keywords of the function that trains the classifiers of a paper."""
    if name == "cola":
        from acceptability.papers.cola.cola_training import train_study_classifiers as train_cola

        return list(signature(train_cola).parameters)
    from acceptability.papers.npi.npi_training import train_study_classifiers as train_npi

    return list(signature(train_npi).parameters)


@pytest.mark.parametrize("name", ["adc", "niu-penn", "humans", "park", "syntaxgym"])
def test_the_help_of_a_paper_fits_one_screen(run: Run, name: str) -> None:
    shown = run(name, "--help").stdout
    assert len(shown.splitlines()) <= 24
    assert max(map(len, shown.splitlines())) <= 80


def test_the_help_of_the_group_lists_the_papers(run: Run) -> None:
    shown = run("--help").stdout
    assert all(re.search(rf"^│ {name} ", shown, re.MULTILINE) for name in (*OWN, "run"))


def test_options_of_other_papers_are_wrong_usage(run: Run) -> None:
    for arguments in (
        ("adc", "--corpus", "x"),
        ("park", "--train"),
        ("humans", "-m", "uniform"),
        ("cola", "--suite", "x"),
    ):
        assert "No such option" in run(*arguments, code=2).stderr


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", ["adc", "niu-penn", "cola", "humans", "park", "syntaxgym"])
def test_the_tables_of_a_paper_are_declared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cells, paper = list(compute_published_cells(name)), registry.find("study", name)
    assert {cell.table for cell in cells} <= set(paper.tables)
    first = cells[0].table
    # One table is taken from all cells, which are not computed anew here.
    module = registry.names("study")[name].partition(":")[0]
    monkeypatch.setattr(f"{module}.PAPER", replace(paper, compute=lambda *_, **__: cells))
    # Names are compared without case, as people type them.
    assert study(name, table=first.upper()) == [cell for cell in cells if cell.table == first]


def test_a_wrong_table_is_refused_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("computed")

    monkeypatch.setattr("acceptability.papers.adc.PAPER", Paper("A paper", refuse, ("Table 1", "Suite I: *")))  # type: ignore[arg-type]
    with pytest.raises(UnknownName, match="Did you mean 'Table 1'"):
        study("adc", table="Tabel 1")
    for known in ("table 1", "Suite I: mine.csv"):
        with pytest.raises(AssertionError, match="computed"):
            study("adc", table=known)


def test_options_that_a_paper_does_not_have_are_named() -> None:
    with pytest.raises(SpecError, match=r"'adc' has no option 'corpus': omit it\. It has no options of its own"):
        study("adc", corpus=["x"])
    with pytest.raises(SpecError, match=r"Its own options are: corpus\. Did you mean 'corpus'"):
        study("niu-penn", corpsu=["x"])
    with pytest.raises(SpecError, match="--workers goes with --train or --quick"):
        study("npi", workers=2)


def test_a_described_study_runs(run: Run, described: None) -> None:
    done = run("run", "mine.toml", "--json")
    assert json.loads(done.stdout)[0]["measure"] == "PairAccuracy(ties=0.0)"
    assert "is now" not in done.stderr
    assert "No such option" in run("run", "mine.toml", "--table", "x", code=2).stderr


def test_what_the_version_before_accepted_still_runs(run: Run, described: None) -> None:
    wanted = run("run", "mine.toml", "--json").stdout
    for arguments in (("mine.toml", "--json"), ("--json", "mine.toml")):
        done = run(*arguments)
        assert done.stdout == wanted
        assert "`study mine.toml` is now `study run mine.toml`" in done.stderr


@pytest.mark.usefixtures("data")
def test_options_may_stand_before_the_name_of_a_paper(run: Run) -> None:
    done = run("--json", "--table", "Table 1", "humans", code=1)
    assert "There are: CoLA (Warstadt et al. 2019)" in done.stderr
    rows = json.loads(run("--json", "--table", "BLiMP (Warstadt et al. 2020)", "humans").stdout)
    assert {row["table"] for row in rows} == {"BLiMP (Warstadt et al. 2020)"}


def test_a_misspelt_paper_gets_a_suggestion(run: Run) -> None:
    assert "Did you mean 'park'" in run("prak", code=1).stderr
    assert "cannot read the study none.toml" in run("none.toml", code=1).stderr
