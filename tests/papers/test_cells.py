"""A number as a paper prints it, and ours beside it: when the two agree, and how they are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import MeasureError, UnknownName
from acceptability.papers import cells as module
from acceptability.papers.cells import (
    Cell,
    PublishedValue,
    make_cell,
    make_uncompared_cell,
    read_published_values,
    rounds_to,
)
from acceptability.report.terminal import build_cell_table, describe_agreement
from acceptability.report.text_table import render_table

KEY = ("Table 1", "BERT", "ADC")


@pytest.mark.parametrize(
    ("ours", "theirs", "agree"),
    [
        (0.3645, "0.364", True),
        (0.3646, "0.364", False),
        (-0.0322, "−0.032", True),
        (2365, "2,365", True),
        (93.57, "94%", True),
        (0.00001, "< .0001", True),
        (0.0001, "< .0001", False),
        (0.3, "N/A", False),
        (float("inf"), "1", False),
        ("yes", "no", False),
    ],
)
def test_two_numbers_agree_if_ours_rounds_to_theirs(ours: float | str, theirs: str, agree: bool) -> None:
    assert rounds_to(ours, theirs) is agree


def test_a_known_reason_is_shown_only_where_the_numbers_differ() -> None:
    values = {KEY: PublishedValue("0.36", note="a slip")}
    assert make_cell(values, KEY, 0.36, "published scores").note == ""
    assert make_cell(values, KEY, 0.40, "published scores", note="3 of 5").note == "3 of 5; a slip"


def test_second_hand_values_are_always_noted_and_counted() -> None:
    cell = make_cell({KEY: PublishedValue("0.36", origin="a figure")}, KEY, 0.36, "published scores")
    assert cell.note == "printed value: a figure"
    assert (
        describe_agreement([cell]) == "1 of 1 printed numbers were reproduced, 1 of them second-hand: see their notes."
    )


def test_where_nothing_is_printed_or_computed_nothing_is_compared() -> None:
    assert make_cell({}, KEY, 0.36, "published scores") == Cell(*KEY, None, 0.36, "published scores", None)
    assert make_cell({KEY: PublishedValue("1", note="lost")}, KEY, None, "none") == Cell(
        *KEY, "1", None, "none", None, "lost"
    )


def write_values(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write a file of published values, and let it be read in place of the package's own."""
    (folder / "values").mkdir()
    (folder / "values" / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(module, "files", lambda package: folder)


def test_a_value_that_is_written_twice_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_values(tmp_path, "twice.csv", "table,row,column,value\nT,r,c,1\nT,r,d,1\nT,r,c,1\n", monkeypatch)
    with pytest.raises(MeasureError, match=r"twice\.csv, line 4: a second value for T / r / c"):
        read_published_values("twice")


def test_published_values_are_read_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'table,row,column,value,note\nTable 1,"a, b",MCC,.50,\nTable 1,c,MCC,"2,365",a slip\n'
    write_values(tmp_path, "mine.csv", text, monkeypatch)
    assert read_published_values("mine") == {
        ("Table 1", "a, b", "MCC"): PublishedValue(".50"),
        ("Table 1", "c", "MCC"): PublishedValue("2,365", note="a slip"),
    }


def test_the_summary_counts_for_each_table() -> None:
    cells = [
        Cell("Table 1", "a", "x", "1", 1, "s", True),
        Cell("Table 1", "a", "y", "1", 2, "s", False),
        Cell("Table 2", "a", "x", "1", None, "s", None, "lost"),
        Cell("Table 3", "a", "x", "yes", "yes", "s", True),
    ]
    expected = "2 of 3 printed numbers were reproduced; 1 more cannot be computed from what is published."
    assert describe_agreement(cells) == f"{expected} Table 1 1 of 2, Table 3 1 of 1."


def test_our_number_is_shown_with_the_digits_of_the_paper() -> None:
    cells = [Cell(*KEY, "-1.41472", -1.381696, "s", False), Cell(*KEY, ".4", 0.40001, "s", True)]
    table = build_cell_table("Table 1", [*cells, Cell(*KEY, None, 7, "s", None)])
    shown = "\n".join(render_table(table, 150))
    assert "-1.38170" in shown
    assert "0.400 " in shown
    assert "  7\n" in f"{shown}\n"


def test_one_table_can_be_selected(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "adc.csv"
    done = CliRunner().invoke(app, ["study", "adc", "--table", "table 7", "--csv", str(file), "--json"])
    assert done.exit_code == 0, "a number that does not come out again is a finding, not a failure"
    rows = json.loads(done.stdout)
    assert {row["table"] for row in rows} == {"Table 7"}
    assert False in {row["agrees"] for row in rows}
    assert len(file.read_text(encoding="utf-8").splitlines()) == len(rows) + 1


def test_an_unknown_table_gets_a_suggestion(data: Path) -> None:
    done = CliRunner().invoke(app, ["study", "adc", "--table", "Tabel 7"])
    assert isinstance(done.exception, UnknownName)
    assert "Did you mean 'Table 7'" in str(done.exception)


def test_uncompared_cells_have_no_sign_and_are_counted_separately() -> None:
    cell = make_uncompared_cell(
        {KEY: PublishedValue("0.36", origin="a figure")}, KEY, 0.36, "another text", note="other"
    )
    assert cell == Cell(*KEY, "0.36", 0.36, "another text", None, "other; printed value: a figure")
    summary = "1 of ours stand beside printed ones of other models or texts, and are not compared."
    assert describe_agreement([cell]) == summary
    assert (
        describe_agreement([cell, Cell(*KEY, "1", 1, "s", True)])
        == f"1 of 1 printed numbers were reproduced. {summary}"
    )
    assert cell.is_not_compared
    assert not make_uncompared_cell({KEY: PublishedValue("1")}, KEY, None, "s").is_not_compared
    shown = rendered([cell], 80)
    assert "0.36" in shown
    assert "0.360" in shown
    assert "yes" not in shown
    assert " no " not in shown


def rendered(cells: list[Cell], width: int) -> str:
    return "\n".join(render_table(build_cell_table("Table 1", cells), width)) + "\n"


def test_long_notes_are_printed_once_below_the_table() -> None:
    source, note = "our recipe rnn on very many words of another text", "this note has more than forty characters"
    cells = [Cell("Table 1", str(number), "x", "1", 2.0, source, None, f"{note}!") for number in range(9)]
    shown = rendered([*cells, Cell("Table 1", "last", "x", "1", 1, "s", True, "short")], 80)
    assert " ".join(shown.split()).count(source) == 1
    assert shown.count(f"(2) {note}!") == 1
    assert "short" in shown
    # The title, the header and its rule, a line for each cell, and the notes.
    assert len(shown.splitlines()) == 3 + 10 + 2
    assert max(map(len, shown.splitlines())) <= 80


def test_a_source_that_all_cells_share_is_said_once() -> None:
    cells = [Cell("Table 1", str(number), "x", "1", 2.0, "published scores", None) for number in range(9)]
    shown = rendered(cells, 80)
    assert shown.count("published scores") == 1
    assert "source of ours: published scores" in shown
