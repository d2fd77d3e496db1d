"""Niu and Penn (2020): every number that follows from published data, and no others."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.cli import app
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.niu_penn.hu_surprisals import (
    NEURAL_MODELS,
    Combination,
    evaluate_as_marked,
    evaluate_by_position,
    load_combinations,
)
from acceptability.papers.niu_penn.pbc_tables import select_minimal_structures
from acceptability.types import Sentence, Suite
from published import compute_published_cells

PUBLISHED = "published scores"


@pytest.fixture
def cells_by_key(data: Path) -> dict[CellKey, Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in compute_published_cells("niu-penn")}


def in_table(cells_by_key: dict[CellKey, Cell], table: str) -> list[Cell]:
    return [cell for key, cell in cells_by_key.items() if key[0] == table]


def test_every_printed_number_has_exactly_one_cell(cells_by_key: dict[CellKey, Cell]) -> None:
    assert len(cells_by_key) == len(compute_published_cells("niu-penn"))
    assert set(read_published_values("niu_penn")) <= set(cells_by_key)


@pytest.mark.parametrize(
    ("row", "column", "ours"),
    [
        ("exp1b-ml-comp grnn herself", "PBC over all strings", 0.2532),
        ("exp1b-ml-comp trans themselves", "PBC over all strings", 0.7315),
        ("exp1b-ml-comp grnn herself", "mean of the sets' PBCs", 0.7666),
        ("exp1b-ml-comp trans themselves", "mean of the sets' PBCs", 0.8912),
        ("exp1b-ml-comp grnn herself", "accuracy (%)", 100),
        ("exp1b-ml-comp trans themselves", "accuracy (%)", 100),
    ],
)
def test_figure_1(row: str, column: str, ours: float, cells_by_key: dict[CellKey, Cell]) -> None:
    cell = cells_by_key["Figure 1", row, column]
    assert cell.ours == pytest.approx(ours, abs=5e-5)
    assert (cell.agrees, cell.source) == (True, PUBLISHED)


@pytest.mark.parametrize(
    ("side", "pbc", "mcc"), [("baseline", 0.785, 0.775), ("distractor", 0.653, 0.258), ("both", 0.686, 0.354)]
)
def test_figure_2(side: str, pbc: float, mcc: float, cells_by_key: dict[CellKey, Cell]) -> None:
    for column, ours in (("PBC", pbc), ("MCC", mcc)):
        cell = cells_by_key["Figure 2", f"{side} vs ungrammatical", column]
        assert cell.ours == pytest.approx(ours, abs=5e-4)
        assert cell.agrees


@pytest.mark.parametrize(
    ("row", "column", "ours", "agrees"),
    [
        ("numerator sets", "not significant", "1557/3511", None),
        ("other sets", "not significant", "782/869", None),
        ("combinations", "in all", 60, True),
        ("combinations", "without one significant numerator set", 24, True),
        ("combinations", "below 100% accuracy", 42, True),
        ("combinations", "... without one significant other set", 32, True),
        ("numerator sets, two-sided test", "not significant", "1737/3511", None),
        ("other sets, two-sided test", "not significant", "813/869", None),
    ],
)
def test_mann_whitney_counts(
    row: str, column: str, ours: object, agrees: bool | None, cells_by_key: dict[CellKey, Cell]
) -> None:
    cell = cells_by_key["Section 3.2", row, column]
    assert (cell.ours, cell.agrees) == (ours, agrees)


def test_mann_whitney_shares(cells_by_key: dict[CellKey, Cell]) -> None:
    for row, count, total in (("numerator sets", 1557, 3511), ("other sets", 782, 869)):
        cell = cells_by_key["Section 3.2", row, "not significant (%)"]
        assert cell.ours == pytest.approx(100 * count / total, abs=1e-9)
        assert cell.agrees


@pytest.mark.parametrize(
    ("row", "at_05", "only_at_1"),
    [
        ("Levene's test", 22.21, 7.99),
        ("Levene's test, on e^-surprisal", 35.64, 13.31),
        ("Levene's test, on probabilities", 36.71, 12.81),
        ("Shapiro–Wilk test", 23.04, 9.27),
        ("Shapiro–Wilk test, on probabilities", 45.46, 10.94),
    ],
)
def test_normality(row: str, at_05: float, only_at_1: float, cells_by_key: dict[CellKey, Cell]) -> None:
    assert cells_by_key["Section 3.1", row, "significant at .05 (%)"].ours == pytest.approx(at_05, abs=5e-3)
    assert cells_by_key["Section 3.1", row, "only at .1 (%)"].ours == pytest.approx(only_at_1, abs=5e-3)


def test_levene_is_shown_as_not_reproduced(cells_by_key: dict[CellKey, Cell]) -> None:
    cell = cells_by_key["Section 3.1", "Levene's test", "significant at .05 (%)"]
    assert (cell.paper, cell.agrees) == ("22.5%", False)
    assert "gives exactly this" in cell.note


def test_accuracy_correlates_with_pbc(cells_by_key: dict[CellKey, Cell]) -> None:
    cell = cells_by_key["Section 4", "accuracy and PBC", "Spearman's correlation"]
    assert cell.ours == pytest.approx(0.8756, abs=5e-5)
    assert cell.agrees
    assert "75 combinations" in cell.note
    assert cells_by_key["Section 4", "accuracy and PBC", "p"].ours == "9.0e-25"
    assert cells_by_key["Section 4", "accuracy and PBC, all PBCs as they are", "p"].ours == "8.0e-25"


def test_the_ranges_of_accuracy_and_pbc(cells_by_key: dict[CellKey, Cell]) -> None:
    rows = [("accuracy (%)", 13.3333, 100, (False, True)), ("PBC over all strings", -0.0104, 0.8164, (True, False))]
    for row, low, high, agrees in rows:
        lowest, highest = (cells_by_key["Section 4", row, column] for column in ("lowest", "highest"))
        assert (lowest.ours, highest.ours) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
        assert (lowest.agrees, highest.agrees) == agrees


def test_every_published_accuracy_of_neural_models_is_reproduced(cells_by_key: dict[CellKey, Cell]) -> None:
    cells = [
        cell
        for cell in in_table(cells_by_key, "Hu et al. (2020)")
        if cell.row.split()[1] in NEURAL_MODELS and cell.paper
    ]
    assert len(cells) == 4 * 5 * 3 * 3
    assert all(cell.agrees for cell in cells)
    assert all(cell.ours == pytest.approx(float(cell.paper or "nan"), abs=1e-12) for cell in cells)


def test_the_5_gram_differs_by_its_random_ties_only(cells_by_key: dict[CellKey, Cell]) -> None:
    cells = [cell for cell in in_table(cells_by_key, "Hu et al. (2020)") if " 5gram " in cell.row and cell.paper]
    assert len(cells) == 5 * 3 * 3
    for cell in cells:
        assert cell.agrees == (cell.column != "total_acc")
        assert ("at random" in cell.note) == (cell.column == "total_acc")


@cache
def by_name() -> dict[str, Combination]:
    return {combination.name: combination for combination in load_combinations()}


@pytest.mark.usefixtures("data")
def test_random_ties_explain_the_5_gram() -> None:
    published = {"exp1a-ml-rc 5gram himself": 19, "exp3-comp 5gram themselves": 32, "exp4-pp 5gram herself": 21}
    for name, count in published.items():
        right = evaluate_as_marked(by_name()[name])
        assert right.total.sum() <= count <= right.total.sum() + right.is_tied.sum()


@pytest.mark.parametrize(("model", "position"), [("bert", 0.771), ("grnn", 0.829), ("jrnn", 0.971), ("trans", 1.0)])
def test_the_wrong_column_of_exp1a_themselves(model: str, position: float, cells_by_key: dict[CellKey, Cell]) -> None:
    cell = cells_by_key["Hu et al. (2020)", f"exp1a-ml-rc {model} themselves", "total_acc, by mismatch_position"]
    assert cell.ours == pytest.approx(position, abs=5e-4)
    assert "1,120 rows" in cell.note


@pytest.mark.usefixtures("data")
def test_the_two_columns_agree_everywhere_else() -> None:
    for value in by_name().values():
        differ = (value.marked_grammatical != value.is_grammatical).any()
        assert differ == (value.experiment == "exp1a-ml-rc" and value.pronoun == "themselves")
        if not differ:
            assert (evaluate_as_marked(value).total == evaluate_by_position(value).total).all()


@pytest.mark.usefixtures("data")
def test_combinations_are_all_there() -> None:
    combinations = by_name().values()
    assert len(combinations) == 75
    assert sum(len(combination.items) for combination in combinations if combination.model in NEURAL_MODELS) == 4380
    assert sum(combination.surprisals.size for combination in combinations) == 5 * 18000
    grnn = by_name()["exp1b-ml-comp grnn himself"]
    assert grnn.surprisals[0, :2] == pytest.approx([7.292810440063477, 8.304289817810059], abs=0)


@pytest.mark.usefixtures("data")
def test_surprisals_are_in_bits() -> None:
    """BERT's come from probabilities in float32: two to their negative power is one, e to it is none."""
    bits = by_name()["exp1b-ml-comp bert himself"].surprisals.ravel()
    for base, is_exact in ((2.0, True), (np.e, False)):
        probabilities = base**-bits
        off = np.abs(probabilities.astype(np.float32) - probabilities) / probabilities
        assert (off.max() < 1e-14) == is_exact


@pytest.mark.usefixtures("data")
def test_minimal_structures() -> None:
    suite = load_suite("li_adger")
    structures = select_minimal_structures(suite)
    assert len(structures) == 57
    assert {len(strings) for strings in structures.values()} == {16}
    for name, strings in structures.items():
        assert [sentence.label for sentence in strings] == [1] * 8 + [0] * 8
        assert {sentence.id.rsplit(".", 2)[0] for sentence in strings} == {name}


def test_minimal_structures_need_both_marks() -> None:
    ids = ["1.1.a.1.g.01", "1.1.a.1.*.01", "1.1.a.2.g.01", "1.1.a.2.?.01", "1.1.a.3.*.01", "ch1.1.g.01", "ch1.1.*.01"]
    tags = [{"source": "Adger" if name.startswith("ch") else "LI"} for name in ids]
    suite = Suite("s", tuple(Sentence(name, "x", tags=tag) for name, tag in zip(ids, tags, strict=True)))
    assert {name: len(strings) for name, strings in select_minimal_structures(suite).items()} == {"1.1.a.1": 2}


@pytest.mark.parametrize(
    ("key", "ours", "agrees"),
    [
        (("Section 5.1", "CoLA", "training set"), 8551, True),
        (("Section 5.1", "CoLA", "development sets"), 1043, True),
        (("Section 5.1", "CoLA", "test sets"), None, None),
        (("Section 5.2", "Linguistic Inquiry", "structures"), 300, True),
        (("Section 5.2", "Linguistic Inquiry", "strings"), 2400, True),
        (("Section 5.2", "Linguistic Inquiry", "grammatical"), 1192, True),
        (("Section 5.2", "Linguistic Inquiry", "minimal structures"), 57, True),
        (("Section 5.2", "Linguistic Inquiry", "strings in minimal structures"), 912, True),
        (("Section 5.2", "Adger", "structures"), 222, False),
        (("Section 5.6", "sensicality", "nonsense sentences"), 28, False),
    ],
)
def test_counts(key: CellKey, ours: int | None, agrees: bool | None, cells_by_key: dict[CellKey, Cell]) -> None:
    assert (cells_by_key[key].ours, cells_by_key[key].agrees) == (ours, agrees)


def test_contradictions(cells_by_key: dict[CellKey, Cell]) -> None:
    cells = in_table(cells_by_key, "Contradictions")
    assert len(cells) == 22
    assert {(cell.source, cell.agrees) for cell in cells} == {("the paper's own tables", False)}
    trained = cells_by_key["Contradictions", "Table 5: Mikolov, Raw", "LOG with case"]
    assert (trained.paper, trained.ours) == ("0.0578", 0.0574)
    assert trained.note.endswith("Table 2 prints 0.0578 for Mikolov, Raw, BNC LOG")
    swapped = cells_by_key["Contradictions", "Table 5: GPT-2, Raw", "LOG with case"]
    assert (swapped.paper, swapped.ours) == ("0.1476", 0.1839)
    assert swapped.note.endswith("GPT-2 XL LOG")
    repeated = cells_by_key["Contradictions", "Table 2: QRNN TAS, Norm", "BNC LOG"]
    assert (repeated.paper, repeated.ours) == ("0.0029", 0.0309)
    assert "QRNN regular, Raw, BNC LOG" in repeated.note


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("Section 5", 1),
        ("Table 1", 12),
        ("Table 2", 60),
        ("Table 3", 40),
        ("Table 4", 240),
        ("Table 5", 40),
        ("Table 6", 20),
    ],
)
def test_tables_of_unpublished_models_show_printed_values_only(
    table: str, count: int, cells_by_key: dict[CellKey, Cell]
) -> None:
    cells = in_table(cells_by_key, table)
    assert len(cells) == count
    assert all(cell.paper and cell.ours is None and cell.agrees is None and cell.note for cell in cells)


@pytest.mark.usefixtures("data")
def test_the_command() -> None:
    done = CliRunner().invoke(app, ["study", "niu-penn", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == len(compute_published_cells("niu-penn"))
    assert set(rows[0]) == {"table", "row", "column", "paper", "ours", "source", "agrees", "note", "signature"}
