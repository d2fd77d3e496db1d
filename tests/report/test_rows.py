from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from acceptability.errors import ReportError
from acceptability.report.gather import gather
from acceptability.report.rows import write_rows

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
    with pytest.raises(ReportError, match=r"expected one of the endings \.csv"):
        write_rows(tmp_path / "t.xlsx", ROWS)
    with pytest.raises(ReportError, match="there is no folder"):
        write_rows(tmp_path / "none" / "t.csv", ROWS)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ReportError, match="it is a folder"):
        write_rows(tmp_path / "folder.csv", ROWS)


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
        gather([str(path)])
