"""The study of Park et al.: what follows from its printed numbers, and what does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.studies import study
from acceptability.studies.cells import printed
from acceptability.studies.park import types

Cells = dict[tuple[str, str, str], object]


@pytest.fixture
def cells(data: Path) -> Cells:
    return {(cell.table, cell.row, cell.column): cell for cell in study("park")}


def test_what_agrees_and_what_does_not(cells: Cells) -> None:
    contradictions = {key for key, cell in cells.items() if cell.agrees is False}
    assert contradictions == {
        ("Table 1", "Total", "original"),
        ("Examples", "11 must not, must not do", "repulsion"),
        ("Section 3.2", "logistic regression, version", "z"),
        ("Section 3.2", "logistic regression, correctness", "z"),
        ("Section 3.3", "unacceptable, below against above", "r"),
    }
    assert all(cell.note for cell in cells.values() if cell.agrees is False)
    assert sum(cell.agrees is True for cell in cells.values()) == 82


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


def test_published_ratings_are_those_that_the_paper_prints(cells: Cells) -> None:
    found = [cell for cell in cells.values() if cell.source == "published ratings"]
    assert [cell.ours for cell in found] == pytest.approx([-0.839, -0.459], abs=5e-4)
    assert all(cell.agrees for cell in found)


def test_there_are_22_types_and_all_that_is_printed_is_used_or_given() -> None:
    values = printed("park")
    assert len(types(values)) == 22
    assert sum(column == "rating of the unacceptable" for _, _, column in values) == 22


def test_a_users_model_is_asked_about_linguistic_inquiry(data: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = study("park", ["uniform"], progress=lambda *each: told.append(each))
    ours = [cell for cell in found if cell.source == "re-scored with uniform"]
    rows = {cell.row for cell in ours}
    assert {f"uniform, {side}: {name}" for side in ("left", "right") for name in ("all", "movement")} <= rows
    cells = {(cell.row, cell.column): cell for cell in ours}
    assert cells["uniform, left: all", "repulsion"].ours == 0
    assert cells["uniform, left: all", "directionality"].ours == 0
    assert int(cells["uniform, left: all", "pairs"].ours) > 500
    assert cells["uniform, left: all", "class"].ours == "weakly mis-learned"
    assert all(cell.agrees is None for cell in ours)
    assert told[-1][1] == told[-1][2]
