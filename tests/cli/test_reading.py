"""The options that say how a user's table is read: in every command that takes a suite, and kept with a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from acceptability.api.reproduction import reproduce
from acceptability.cli import app, build_application
from acceptability.cli.console import load_cli_suite, with_reading
from acceptability.suites import load_suite
from suites.sheets import write_xlsx

TABLE = 'Satz;Urteil\n"Go." he said.;ja\n"Go." said he the.;nein\nDas Mädchen.;ja\nMädchen das;nein\n'
OPTIONS = ("--columns", "text=Satz,label=Urteil", "--labels", "ja=1,nein=0", "--no-quoting")
READING = {"columns": {"text": "Satz", "label": "Urteil"}, "labels": {"ja": 1, "nein": 0}, "quoting": False}
ALL_OPTIONS = {
    "--columns", "--labels", "--sheet", "--quoting", "--no-quoting", "--separator", "--decimal", "--encoding",
    "--pair-by",
}  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "mine.csv"
    path.write_bytes(TABLE.encode("cp1252"))
    return path


def call(*arguments: object, code: int = 0) -> str:
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.mark.parametrize(
    "command",
    ["calibrate", "compare", "contrasts", "correlate", "equivalence", "evaluate", "link", "measure", "methods", "probe",
     "reproduce", "score", "suites check", "suites export", "suites pair", "suites show"],
)  # fmt: skip
def test_every_command_that_takes_a_suite_has_the_options(command: str) -> None:
    name, _, part = command.partition(" ")
    found = typer.main.get_command(build_application([name]))
    found = found.commands.get(name, found) if isinstance(found, typer.core.TyperGroup) else found
    found = found.commands[part] if part else found
    names = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    wanted = ALL_OPTIONS - ({"--columns"} if command == "measure" else set())
    assert wanted - names == set()
    assert "--suite-columns" in names


def test_a_table_is_scored_measured_checked_and_judged_as_the_options_say(table: Path, tmp_path: Path) -> None:
    suite = load_suite(str(table), **READING)
    assert [(one.text, one.label) for one in suite][:2] == [('"Go." he said.', 1), ('"Go." said he the.', 0)]
    rows = call("score", table, "-m", "uniform", *OPTIONS).splitlines()
    assert len(rows) == 5
    (result, *_) = json.loads(call("evaluate", table, "-m", "uniform", "-M", "AUC", *OPTIONS, "--json"))
    assert result["suite"] == "mine"
    assert suite.hash in result["signature"]
    out = tmp_path / "out.jsonl"
    call("suites", "export", table, "--out", out, *OPTIONS)
    assert load_suite(str(out)).hash == suite.hash
    assert "too few items" not in call("suites", "check", table, *OPTIONS)
    judged = json.loads(call("judge", "--file", table, "-m", "uniform", *OPTIONS, "--json"))
    assert [one["text"] for one in judged["sentences"]] == list(suite.texts)
    (tmp_path / "scores.csv").write_text("sentence_id,score\n" + "".join(f"{name},{name}\n" for name in suite.ids))
    options = ("--suite-columns", OPTIONS[1], *OPTIONS[2:])
    (measured, *_) = json.loads(
        call("measure", table, "--scores", tmp_path / "scores.csv", "-M", "AUC", *options, "--json")
    )
    assert measured["value"] == 0.25


def test_judge_does_not_score_lines_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n7,A b.\n")
    judged = json.loads(call("judge", "--file", tmp_path / "a.csv", "-m", "uniform", "--json"))
    assert [one["text"] for one in judged["sentences"]] == ["A b."]
    for arguments in (("A b.", "--sheet", "x"), ("--file", tmp_path / "a.txt", "--no-quoting")):
        (tmp_path / "a.txt").write_text("A b.\n")
        done = CliRunner().invoke(app, ["judge", *map(str, arguments), "-m", "uniform"])
        assert "is for a table: name one by --file" in str(done.exception)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--labels", "yes"), "write WORD=1,WORD=0"),
        (("--labels", "yes=1,yes=0"), "yes comes twice"),
        (("--labels", "yes=2"), "'yes' is '2'; expected 1"),
        (("--separator", "|"), "expected comma, semicolon or tab"),
        (("--decimal", "dot"), "expected point or comma"),
        (("--columns", "text"), "write MEANING=COLUMN"),
    ],
)
def test_an_option_that_cannot_be_meant_is_one_line(table: Path, option: tuple[str, str], message: str) -> None:
    done = CliRunner().invoke(app, ["suites", "show", str(table), *option])
    assert message in str(done.exception)


def test_what_was_read_how_is_said_on_stderr(table: Path, caplog) -> None:
    with caplog.at_level("INFO"):
        call("suites", "show", table, *OPTIONS)
    (line,) = (record.getMessage() for record in caplog.records if record.name == "acceptability.suites")
    assert line == (
        f"{table}: encoding Windows-1252 (Latin-1); separated by semicolons; text is 'Satz', label is 'Urteil'; "
        "ja = 1, nein = 0"
    )


def test_a_run_is_reproduced_as_its_table_was_read(table: Path, own_home: Path) -> None:
    result = json.loads(call("evaluate", table, "-m", "uniform", "-M", "AUC", *OPTIONS, "--json"))[0]
    assert [one.status for one in reproduce("latest")] == ["equal"]
    (run,) = (path for path in (own_home / "runs").iterdir() if (path / "run.json").is_file())
    (described,) = json.loads((run / "run.json").read_text())["inputs"]["suites"]
    assert {"columns": described["columns"], **described["reading"]} == READING
    # Without the copy that the run keeps, the table is read again, in the way that the run recorded.
    (run / "suite-1.json.gz").unlink()
    assert [one.status for one in reproduce("latest", data=[str(table)])] == ["equal"]
    # Without the run, the user says it.
    for path in run.iterdir():
        path.unlink()
    run.rmdir()
    signature = result["signature"]
    assert reproduce(signature, data=[str(table)])[0].status == "missing"
    others = {name: value for name, value in READING.items() if name != "columns"}
    (again,) = reproduce(
        signature, data=[str(table)], columns=READING["columns"], reading=others, expected={"value": result["value"]}
    )
    assert again.status == "equal"
    value = ("--expect", str(result["value"]), "--data", table)
    assert "equal" in call("reproduce", signature, *value, *OPTIONS)


def test_the_sheet_and_the_pairs_of_a_run_are_kept(tmp_path: Path) -> None:
    rows = [["item", "text", "label"], [1, "A b.", 1], [1, "B a.", 0], [2, "C d e.", 1], [2, "C d.", 0]]
    path = write_xlsx(tmp_path / "two.xlsx", {"Notes": [["nothing", "here"]], "Items": rows})
    options = ("--sheet", "Items", "--pair-by", "item")
    result = json.loads(call("evaluate", path, "-m", "uniform", "-M", "PairAccuracy", *options, "--json"))[0]
    assert (result["n"], result["suite"]) == (2, "two")
    assert [one.status for one in reproduce("latest")] == ["equal"]
    found = reproduce(result["signature"], data=[str(path)], reading={"sheet": "Items", "pair_by": "item"})
    assert [one.status for one in found] == ["equal"]


def test_the_options_stand_where_the_parameter_stands() -> None:
    def command(suite: str, reading: object = None, as_json: bool = False) -> None:
        """Do nothing."""

    names = list(with_reading(command).__annotations__)
    assert (names[0], names[1], names[-1]) == ("suite", "columns", "as_json")
    assert load_cli_suite("starter").name == "starter"
