from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from acceptability.errors import ReportError
from acceptability.report.report_data import load_report_data
from acceptability.text.io import write_rows
from report.report_rows import run

ROWS = [{"a": 1, "b": None}, {"a": 'x, "y"\nz', "c": 2.5}]


@pytest.mark.parametrize(("name", "delimiter"), [("t.csv", ","), ("t.TSV", "\t")])
def test_rows_come_back_from_a_table(name: str, delimiter: str, tmp_path: Path) -> None:
    write_rows(tmp_path / name, ROWS)
    with (tmp_path / name).open(encoding="utf-8", newline="") as file:
        assert list(csv.DictReader(file, delimiter=delimiter)) == [
            {"a": "1", "b": "", "c": ""},
            {"a": 'x, "y"\nz', "b": "", "c": "2.5"},
        ]


def test_rows_come_back_from_json_lines(tmp_path: Path) -> None:
    write_rows(tmp_path / "t.jsonl", ROWS)
    assert [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()] == ROWS


def test_a_table_without_rows_keeps_its_header(tmp_path: Path) -> None:
    write_rows(tmp_path / "t.csv", [], header=("a", "b"))
    assert (tmp_path / "t.csv").read_text() == "a,b\n"


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"expected one of the suffixes \.csv"):
        write_rows(tmp_path / "t.xlsx", ROWS)
    with pytest.raises(ReportError, match="there is no folder"):
        write_rows(tmp_path / "none" / "t.csv", ROWS)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ReportError, match="it is a folder"):
        write_rows(tmp_path / "folder.csv", ROWS)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"gap": "y"}, "gap is 'y'; expected a number"),
        ({"gap": float("nan")}, "gap is nan; expected a number"),
        ({"correct": float("inf")}, "correct is inf; expected a number"),
        ({"gap": 10**400}, "gap is 1000"),
        ({"gap": None}, "gap is None; expected a number"),
        ({"worse": [1.0]}, "worse is \\[1.0\\]; expected a number"),
        ({"measure": None}, "measure is None; expected a text"),
        ({"suite": None}, "suite is None; expected a text"),
        ({"tag/x": float("nan")}, "tag/x is nan; expected a text"),
        ({"label": 0.5}, "label is 0.5; expected 0 or 1"),
        ({"met": 1.0}, "one row of PairAccuracy\\(ties=0.0\\) is"),
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_units_of_a_damaged_run_broke_the_report(
    change: dict[str, object], problem: str, indent: int | None, tmp_path: Path
) -> None:
    folder = run(tmp_path / "run")
    units = json.loads((folder / "units.json").read_text(encoding="utf-8"))
    units[2] |= change
    (folder / "units.json").write_text(json.dumps(units, indent=indent), encoding="utf-8")
    with pytest.raises(ReportError, match=f"the run .*run is damaged: {problem}"):
        load_report_data([str(folder)])


def test_a_byte_that_is_no_utf_8_far_into_the_units_is_one_line(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    rows = ",\n".join(map(json.dumps, json.loads((folder / "units.json").read_text(encoding="utf-8"))))
    (folder / "units.json").write_bytes(f"[{rows}".encode() + b"\xa0]")
    with pytest.raises(ReportError, match=r"cannot read .*units\.json after line \d+: 'utf-8' codec"):
        load_report_data([str(folder)])


def test_a_run_with_signatures_that_are_none_is_damaged(tmp_path: Path) -> None:
    folder = run(tmp_path / "run")
    stored = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    for signatures in (3, [None]):
        (folder / "run.json").write_text(json.dumps(stored | {"signatures": signatures}), encoding="utf-8")
        with pytest.raises(ReportError, match="is damaged: signatures is"):
            load_report_data([str(folder)])


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"agrees": "False"}, "agrees is 'False'; expected true or false"),
        ({"row": ["a"]}, "row is \\['a'\\]; expected a text"),
        ({"layer": "one", "value": 1}, "layer is 'one'; expected a number"),
        ({"layer": 1, "value": True}, "value is True; expected a number"),
    ],
)
def test_rows_of_ones_own_hold_what_their_columns_say(row: dict[str, object], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([{"table": "T", "row": "r", "column": "c", "ours": 1} | row]), encoding="utf-8")
    with pytest.raises(ReportError, match=f"row 1: {problem}"):
        load_report_data([str(path)])
