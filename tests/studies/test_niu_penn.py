"""Niu and Penn (2020): each number that follows from published data, and that none is made up."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import load_suite
from acceptability.cli import app
from acceptability.studies import study
from acceptability.studies.cells import Cell, Key, printed
from acceptability.studies.hu import NEURAL, Combination, combinations, right_as_marked, right_by_position
from acceptability.studies.minimal import minimal_structures
from acceptability.types import Sentence, Suite

PUBLISHED = "published scores"


@cache
def all_cells() -> list[Cell]:
    return study("niu-penn")


@pytest.fixture
def found(data: Path) -> dict[Key, Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in all_cells()}


def in_table(found: dict[Key, Cell], table: str) -> list[Cell]:
    return [cell for key, cell in found.items() if key[0] == table]


def test_no_cell_stands_twice_and_none_is_forgotten(found: dict[Key, Cell]) -> None:
    assert len(found) == len(all_cells())
    assert set(printed("niu_penn")) <= set(found)


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
def test_figure_1(row: str, column: str, ours: float, found: dict[Key, Cell]) -> None:
    cell = found["Figure 1", row, column]
    assert cell.ours == pytest.approx(ours, abs=5e-5)
    assert (cell.agrees, cell.source) == (True, PUBLISHED)


@pytest.mark.parametrize(
    ("side", "pbc", "mcc"), [("baseline", 0.785, 0.775), ("distractor", 0.653, 0.258), ("both", 0.686, 0.354)]
)
def test_figure_2(side: str, pbc: float, mcc: float, found: dict[Key, Cell]) -> None:
    for column, ours in (("PBC", pbc), ("MCC", mcc)):
        cell = found["Figure 2", f"{side} vs ungrammatical", column]
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
def test_mann_whitney_counts(row: str, column: str, ours: object, agrees: bool | None, found: dict[Key, Cell]) -> None:
    cell = found["Section 3.2", row, column]
    assert (cell.ours, cell.agrees) == (ours, agrees)


def test_mann_whitney_shares(found: dict[Key, Cell]) -> None:
    for row, count, total in (("numerator sets", 1557, 3511), ("other sets", 782, 869)):
        cell = found["Section 3.2", row, "not significant (%)"]
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
def test_normality(row: str, at_05: float, only_at_1: float, found: dict[Key, Cell]) -> None:
    assert found["Section 3.1", row, "significant at .05 (%)"].ours == pytest.approx(at_05, abs=5e-3)
    assert found["Section 3.1", row, "only at .1 (%)"].ours == pytest.approx(only_at_1, abs=5e-3)


def test_levene_is_shown_as_not_reproduced(found: dict[Key, Cell]) -> None:
    cell = found["Section 3.1", "Levene's test", "significant at .05 (%)"]
    assert (cell.paper, cell.agrees) == ("22.5%", False)
    assert "gives exactly this" in cell.note


def test_accuracy_goes_with_pbc(found: dict[Key, Cell]) -> None:
    cell = found["Section 4", "accuracy and PBC", "Spearman's correlation"]
    assert cell.ours == pytest.approx(0.8756, abs=5e-5)
    assert cell.agrees
    assert "75 combinations" in cell.note
    assert found["Section 4", "accuracy and PBC", "p"].ours == "9.0e-25"
    assert found["Section 4", "accuracy and PBC, all PBCs as they are", "p"].ours == "8.0e-25"


def test_how_far_accuracy_and_pbc_range(found: dict[Key, Cell]) -> None:
    rows = [("accuracy (%)", 13.3333, 100, (False, True)), ("PBC over all strings", -0.0104, 0.8164, (True, False))]
    for row, low, high, agrees in rows:
        lowest, highest = (found["Section 4", row, column] for column in ("lowest", "highest"))
        assert (lowest.ours, highest.ours) == (pytest.approx(low, abs=5e-5), pytest.approx(high, abs=5e-5))
        assert (lowest.agrees, highest.agrees) == agrees


def test_every_published_accuracy_of_neural_models_comes_out_again(found: dict[Key, Cell]) -> None:
    cells = [cell for cell in in_table(found, "Hu et al. (2020)") if cell.row.split()[1] in NEURAL and cell.paper]
    assert len(cells) == 4 * 5 * 3 * 3
    assert all(cell.agrees for cell in cells)
    assert all(cell.ours == pytest.approx(float(cell.paper or "nan"), abs=1e-12) for cell in cells)


def test_the_5_gram_differs_by_its_random_ties_only(found: dict[Key, Cell]) -> None:
    cells = [cell for cell in in_table(found, "Hu et al. (2020)") if " 5gram " in cell.row and cell.paper]
    assert len(cells) == 5 * 3 * 3
    for cell in cells:
        assert cell.agrees == (cell.column != "total_acc")
        assert ("at random" in cell.note) == (cell.column == "total_acc")


@cache
def by_name() -> dict[str, Combination]:
    return {each.name: each for each in combinations()}


@pytest.mark.usefixtures("data")
def test_random_ties_explain_the_5_gram() -> None:
    published = {"exp1a-ml-rc 5gram himself": 19, "exp3-comp 5gram themselves": 32, "exp4-pp 5gram herself": 21}
    for name, count in published.items():
        right = right_as_marked(by_name()[name])
        assert right.total.sum() <= count <= right.total.sum() + right.tied.sum()


@pytest.mark.parametrize(("model", "position"), [("bert", 0.771), ("grnn", 0.829), ("jrnn", 0.971), ("trans", 1.0)])
def test_the_wrong_column_of_exp1a_themselves(model: str, position: float, found: dict[Key, Cell]) -> None:
    cell = found["Hu et al. (2020)", f"exp1a-ml-rc {model} themselves", "total_acc, by mismatch_position"]
    assert cell.ours == pytest.approx(position, abs=5e-4)
    assert "1,120 rows" in cell.note


@pytest.mark.usefixtures("data")
def test_the_two_columns_agree_everywhere_else() -> None:
    for each in by_name().values():
        differ = (each.marked != each.is_good).any()
        assert differ == (each.experiment == "exp1a-ml-rc" and each.pronoun == "themselves")
        if not differ:
            assert (right_as_marked(each).total == right_by_position(each).total).all()


@pytest.mark.usefixtures("data")
def test_combinations_are_all_there() -> None:
    every = by_name().values()
    assert len(every) == 75
    assert sum(len(each.items) for each in every if each.model in NEURAL) == 4380
    assert sum(each.surprisals.size for each in every) == 5 * 18000
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
    structures = minimal_structures(suite)
    assert len(structures) == 57
    assert {len(strings) for strings in structures.values()} == {16}
    for name, strings in structures.items():
        assert [each.label for each in strings] == [1] * 8 + [0] * 8
        assert {each.id.rsplit(".", 2)[0] for each in strings} == {name}


def test_minimal_structures_want_both_marks() -> None:
    ids = ["1.1.a.1.g.01", "1.1.a.1.*.01", "1.1.a.2.g.01", "1.1.a.2.?.01", "1.1.a.3.*.01", "ch1.1.g.01", "ch1.1.*.01"]
    tags = [{"source": "Adger" if name.startswith("ch") else "LI"} for name in ids]
    suite = Suite("s", tuple(Sentence(name, "x", tags=each) for name, each in zip(ids, tags, strict=True)))
    assert {name: len(strings) for name, strings in minimal_structures(suite).items()} == {"1.1.a.1": 2}


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
def test_counts(key: Key, ours: int | None, agrees: bool | None, found: dict[Key, Cell]) -> None:
    assert (found[key].ours, found[key].agrees) == (ours, agrees)


def test_contradictions(found: dict[Key, Cell]) -> None:
    cells = in_table(found, "Contradictions")
    assert len(cells) == 22
    assert {(cell.source, cell.agrees) for cell in cells} == {("the paper's own tables", False)}
    trained = found["Contradictions", "Table 5: Mikolov, Raw", "LOG with case"]
    assert (trained.paper, trained.ours) == ("0.0578", 0.0574)
    assert trained.note.endswith("Table 2 prints 0.0578 for Mikolov, Raw, BNC LOG")
    swapped = found["Contradictions", "Table 5: GPT-2, Raw", "LOG with case"]
    assert (swapped.paper, swapped.ours) == ("0.1476", 0.1839)
    assert swapped.note.endswith("GPT-2 XL LOG")
    repeated = found["Contradictions", "Table 2: QRNN TAS, Norm", "BNC LOG"]
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
def test_tables_of_unpublished_models_show_what_is_printed_and_nothing_as_ours(
    table: str, count: int, found: dict[Key, Cell]
) -> None:
    cells = in_table(found, table)
    assert len(cells) == count
    assert all(cell.paper and cell.ours is None and cell.agrees is None and cell.note for cell in cells)


@pytest.mark.usefixtures("data")
def test_the_command() -> None:
    done = CliRunner().invoke(app, ["study", "niu-penn", "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)
    assert len(rows) == len(all_cells())
    assert set(rows[0]) == {"table", "row", "column", "paper", "ours", "source", "agrees", "note"}
