"""The study of Park et al.: what follows from its printed numbers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acceptability.cli import app
from acceptability.errors import SpecError, SuiteError
from acceptability.measures.target_contrast import LEARNING_CLASSES
from acceptability.papers import study
from acceptability.papers.cells import read_published_values
from acceptability.papers.park import read_error_types
from acceptability.paths import local_data_folder
from published import compute_published_cells

Cells = dict[tuple[str, str, str], object]

INCONSISTENT = {
    ("Table 1", "Total", "original"),
    ("Examples", "11 must not, must not do", "repulsion"),
    ("Section 3.2", "logistic regression, version", "z"),
    ("Section 3.2", "logistic regression, correctness", "z"),
    ("Section 3.3", "unacceptable, below against above", "r"),
}
"""Printed numbers that do not follow from other printed numbers."""


@pytest.fixture(scope="module")
def cells() -> Cells:
    if local_data_folder() is None:
        pytest.skip("the published data are not here: set ACCEPTABILITY_DATA")
    found = compute_published_cells("park")
    cells = {(cell.table, cell.row, cell.column): cell for cell in found}
    assert len(cells) == len(found)
    return cells


def test_which_printed_numbers_agree(cells: Cells) -> None:
    follows = {key: cell for key, cell in cells.items() if cell.source == "printed numbers"}
    assert {key for key, cell in follows.items() if cell.agrees is False} == INCONSISTENT
    assert all(cell.note for cell in cells.values() if cell.agrees is False)
    assert sum(cell.agrees is True for cell in follows.values()) == 80
    assert sum(cell.agrees is True for cell in cells.values()) == 94
    assert sum(cell.agrees is False for cell in cells.values()) == 16


def test_the_printed_table_3_has_its_axes_swapped(cells: Cells) -> None:
    found = {key[1:]: cell for key, cell in cells.items() if key[0] == "Table 3"}
    assert len(found) == 9
    for (row, column), cell in found.items():
        accuracy, repulsion = row.rpartition(" ")[2], column.rpartition(" ")[2]
        assert cell.ours == LEARNING_CLASSES[accuracy, repulsion]
        assert cell.paper == LEARNING_CLASSES[repulsion, accuracy]
        assert cell.agrees is (accuracy == repulsion)


def test_table_4_lists_every_error_that_table_2_counts(cells: Cells) -> None:
    cell = cells["Table 4", "all types", "wrong"]
    assert cell.ours == "518"
    assert "518" in cell.note


def test_all_22_classes_are_the_papers(cells: Cells) -> None:
    classes = [cell for key, cell in cells.items() if key[2] == "class"]
    assert len(classes) == 22
    assert all(cell.agrees for cell in classes)
    assert sum(bool(cell.note) for cell in classes) == 3


def test_numbers_that_are_not_reproducible_have_ours_beside_them(cells: Cells) -> None:
    assert cells["Section 3.2", "logistic regression, version", "z"].ours == pytest.approx(1.0284, abs=1e-4)
    assert cells["Examples", "11 must not, must not do", "repulsion"].ours == pytest.approx(0.9951, abs=1e-4)
    assert cells["Section 3.2", "ANOVA", "residual df"].ours == 2442
    assert cells["Table 1", "Total", "original"].ours == 5491
    row = "unacceptable, below against above"
    assert cells["Section 3.3", row, "W"].ours == 24.5
    assert cells["Section 3.3", row, "p"].ours == pytest.approx(0.025, abs=5e-4)
    assert cells["Section 3.3", row, "r"].ours == pytest.approx(0.477, abs=5e-4)
    assert cells["Section 3.3", row, "rank-biserial correlation"].ours == pytest.approx(0.581, abs=5e-4)
    missing = cells["Section 3.3", "acceptable, below against above", "W"]
    assert missing.ours is None
    assert "not printed" in missing.note


def test_counts_are_in_the_papers_unit(cells: Cells) -> None:
    ours = {key[1:]: (cell.paper, cell.ours) for key, cell in cells.items() if cell.source == "our suites"}
    assert ours["I: ours", "original"] == ("196", "196")
    assert ours["II", "original"] == ("2,895", "2,746")
    assert ours["II", "manipulated"] == ("794", "528")
    assert ours["III: Sprouse et al. (2013)", "manipulated"] == ("1,468", "1,520")
    assert ours["I, II and III", "manipulated"] == ("2,448", "2,244")
    assert cells["Table 1", "III: Sprouse et al. (2013)", "original"].agrees is True
    assert cells["Table 1", "III: Sprouse et al. (2013)", "manipulated"].agrees is None


def test_ratings_of_our_types_give_nearly_the_papers_tests(cells: Cells) -> None:
    row = "the paper's accuracies: {}acceptable, below against above"
    assert cells["Section 3.3", row.format(""), "W"].ours == 64
    assert cells["Section 3.3", row.format("un"), "W"].ours == 26
    assert cells["Section 3.3", row.format("un"), "p"].ours < 0.05 < cells["Section 3.3", row.format(""), "p"].ours
    assert cells["Figure 4", "the paper's accuracies: below, unacceptable", "n"].ours == "9"


def test_there_are_22_types_with_a_printed_rating() -> None:
    values = read_published_values("park")
    assert len(read_error_types(values)) == 22
    assert sum(column == "rating of the unacceptable" for _, _, column in values) == 22


def test_a_users_suite_replaces_ours(data: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("good,bad,kind\nThe dog barks.,The dog bark.,agreement\nCats sleep.,Cat sleep here now.,none\n")
    found = {(cell.row, cell.column): cell.ours for cell in study("park", suite_i=mine) if cell.source == "our suites"}
    assert found["I: mine.csv", "original"] == "4"
    assert found["I: mine.csv", "manipulated"] == "2"
    assert found["I", "pairs: more than one difference"] == "1"


def test_an_unusable_suite_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'adc' has no option 'suite_i': omit it"):
        study("adc", suite_i=tmp_path / "mine.csv")
    with pytest.raises(SuiteError, match="cannot read"):
        study("park", suite_i=tmp_path / "mine.csv")
    single = tmp_path / "single.csv"
    single.write_text("text,label\nCats sleep.,1\n")
    with pytest.raises(SuiteError, match="no contrasts"):
        study("park", suite_i=single)


def test_the_command_takes_the_suite(data: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text("good,bad\nThe dog barks.,The dog bark.\n")
    command = ["study", "park", "--suite-i", str(mine), "--table", "Table 1", "--json"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    rows = {(row["row"], row["column"]): row["ours"] for row in json.loads(done.stdout)}
    assert rows["I: mine.csv", "manipulated"] == "2"
    refused = CliRunner().invoke(app, ["study", "adc", "--suite-i", str(mine)])
    assert refused.exit_code == 2
    assert "No such option: --suite-i" in refused.output
