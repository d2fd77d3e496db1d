"""Vázquez Martínez (2021), The Acceptability Delta Criterion: what the published scores reproduce."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from acceptability.papers import adc
from acceptability.papers.adc import cells
from acceptability.papers.adc import compute_user_model_cells as own_cells
from acceptability.papers.cells import Cell, read_published_files, read_published_values
from acceptability.text.io import read_dict_rows
from acceptability.types import Scores

pytestmark = pytest.mark.usefixtures("data")

COUNTS = {
    "BERT base-uncased MLM": (2016, 862, 1493, 2008),
    "BERT large-uncased MLM": (2049, 894, 1555, 2031),
    "BERT large-cased MLM": (2061, 890, 1563, 2053),
    "BERT base-uncased CoLA": (2163, 677, 1272, 2133),
    "BERT large-uncased CoLA": (2169, 735, 1333, 2145),
    "BERT large-cased CoLA": (2213, 726, 1326, 2187),
    "trigram SLOR": (1781, 712, 1230, 1759),
    "trigram log-prob": (1586, 390, 778, 1580),
}
NOT_REPRODUCED = {
    ("Text", "abstract", "sentence types"): 522,
    ("Text", "abstract", "sentences"): 4178,
    ("Text", "section 4", "LI pairwise phenomena"): 147,
    ("Text", "section 4", "Adger sentence types"): 222,
    ("Text", "section 6", "sentences"): 4178,
    ("Text", "section 8", "r of BERT large-uncased CoLA above that of SLOR"): 0.0047817,
    ("Text", "section 8", "r of BERT large-cased CoLA above that of SLOR"): 0.0013434,
    ("Figure 1, caption", "all correlations", "largest p"): 0.2867706,
    ("Appendix E", "BERT large-cased CoLA", "pairs"): 59,
    ("Table 6", "ch6.108-109.g.06 > ch6.106.*.06", "acceptable: sentence"): (
        "Jenny would accurately have calculatd the results."
    ),
    ("Table 7", "34.1.basilico.62.g.01 > 34.1.basilico.62.*.01", "unacceptable: BERT"): -1.3816967,
}


@cache
def study_cells() -> list[Cell]:
    return cells()


@cache
def published_scores() -> adc.LiAdgerScores:
    return adc.load_published_scores()


def table_cells(table: str) -> list[Cell]:
    return [cell for cell in study_cells() if cell.table == table]


def test_the_counts_behind_table_1() -> None:
    data = published_scores()
    assert {name: tuple(adc.count_correct(data, name).values()) for name in data.models} == COUNTS


def test_all_32_cells_of_table_1_are_reproduced() -> None:
    assert [cell.agrees for cell in table_cells("Table 1")] == [True] * 32


def test_all_81_correlations_of_figure_1_are_reproduced() -> None:
    found = table_cells("Figure 1")
    assert len(found) == 81
    assert all(cell.agrees and cell.is_second_hand for cell in found)
    noted = {frozenset((cell.row, cell.column)) for cell in found if "notes on the data" in cell.note}
    assert noted == {frozenset(("human", name)) for name in published_scores().models}


def test_figure_1_disagrees_where_gaps_differ_from_the_published_ones() -> None:
    data = published_scores()
    other = replace(data, published_gaps=data.published_gaps | {"trigram SLOR": -data.published_gaps["trigram SLOR"]})
    wrong = [cell for cell in adc.figure_1(other, {}) if cell.table == "Figure 1" and not cell.agrees]
    assert len(wrong) == 16
    assert all("trigram SLOR" in (cell.row, cell.column) for cell in wrong)


def test_figure_1_equals_numpys_correlations_of_the_published_gaps() -> None:
    columns = {"human": "human_judge_delta"}
    columns |= {f"BERT {size} CoLA": f"bert-{size}_acc_zscore-delta" for size in adc.SIZES}
    columns |= {f"BERT {size} MLM": f"bert-{size}_mlm_zscore-delta" for size in adc.SIZES}
    columns |= {"trigram SLOR": "slor_zscore-delta", "trigram log-prob": "logProb_zscore-delta"}
    path = "output/li-adger_min_pairs_all_models.csv"
    rows = [
        row
        for _, row in read_dict_rows(read_published_files("li_adger/published")[path], path)
        if row["human_judge_delta"]
    ]
    expected = np.corrcoef([[float(row[column]) for row in rows] for column in columns.values()])
    ours = {(cell.row, cell.column): cell.ours for cell in table_cells("Figure 1")}
    computed = [[ours[first, second] for second in columns] for first in columns]
    np.testing.assert_allclose(computed, expected, atol=1e-12)


def test_numbers_that_are_not_reproduced_have_a_reason() -> None:
    wrong = {(cell.table, cell.row, cell.column): cell for cell in study_cells() if cell.agrees is False}
    assert set(wrong) == set(NOT_REPRODUCED)
    for key, ours in NOT_REPRODUCED.items():
        assert wrong[key].ours == (pytest.approx(ours, abs=1e-7) if isinstance(ours, float) else ours)
        assert wrong[key].note


def test_three_correlations_have_no_small_p() -> None:
    (cell,) = table_cells("Figure 1, caption")
    assert "3 of 36" in cell.note
    assert all(f"BERT {size} CoLA with trigram log-prob" in cell.note for size in adc.SIZES)


def test_every_printed_value_is_in_exactly_one_cell() -> None:
    cells_by_key = Counter((cell.table, cell.row, cell.column) for cell in study_cells())
    assert set(cells_by_key.values()) == {1}
    shown = {(cell.table, cell.row, cell.column): cell.paper for cell in study_cells() if cell.paper}
    values = {key: value.value for key, value in read_published_values("adc").items()}
    assert {key: shown[key] for key in values} == values
    assert {table for table, *_ in shown.keys() - values.keys()} == {"Figure 1"}


def test_cells_without_a_number_have_a_reason() -> None:
    missing = [cell for cell in study_cells() if cell.ours is None]
    assert Counter(cell.table for cell in missing) == {"Table 5": 36, "Text": 1, "Figure 2": 1, "Figure 3": 1}
    assert all(cell.note for cell in missing)


@pytest.mark.parametrize("table", ["Table 6", "Table 7", "Table 8"])
def test_each_printed_pair_answers_the_question_of_its_table(table: str) -> None:
    answers = [cell for cell in table_cells(table) if cell.column == "answers the question"]
    assert [cell.ours for cell in answers] == ["yes"] * 4


def test_how_many_pairs_answer_the_questions() -> None:
    data = published_scores()
    counts = [len(adc.find_pairs_against_people(data, data.models[name])) for name in adc.COLA]
    assert counts == [61, 58, 59]
    answers = (
        adc.find_all_against_people(data),
        adc.find_only_classifiers_right(data),
        adc.find_only_trigram_right(data),
    )
    assert list(map(len, answers)) == [42, 340, 425]
    assert all(pair.human_gap < 0 for pair in answers[0].values())


def test_the_value_of_table_7_that_differs_is_another_models() -> None:
    assert published_scores().z_scores("BERT large-uncased CoLA")["34.1.basilico.62.*.01"] == pytest.approx(
        -1.41472, abs=5e-6
    )


def test_the_lines_of_figure_4_pass_through_the_means() -> None:
    ours = {(cell.row, cell.column): cell.ours for cell in table_cells("Figure 4")}
    gaps = published_scores().compute_gaps()
    for name in (*adc.COLA, *adc.MLM):
        slope, intercept = ours[name, "pairs: slope"], ours[name, "pairs: intercept"]
        assert slope * gaps[name].mean() + intercept == pytest.approx(gaps["human"].mean())
        assert ours[name, "pairs: n"] == 2365
        assert ours[name, "sentences: n"] == 4176


def test_the_rows_behind_figures_2_and_3_are_counted() -> None:
    assert len({cell.row for cell in table_cells("Figure 2")}) == 1 + 15
    assert len({cell.row for cell in table_cells("Figure 3")}) == 1 + 63
    ours = {(cell.table, cell.row, cell.column): cell.ours for cell in study_cells()}
    assert ours["Figure 2", "Simple", "sentences"] == ours["Figure 3", "Simple", "sentences"] == 87


def test_a_users_model_joins_under_the_same_protocol() -> None:
    own = [cell for cell in cells(["uniform"]) if cell.source == "re-scored with uniform"]
    cells_by_key = {(cell.table, cell.column): cell for cell in own}
    criteria = [("Table 1", name) for name in ("BLiMP", "ADC 0.5", "ADC 1.0", "ADC 5.0")]
    assert list(cells_by_key) == [*criteria, ("Figure 1", "uniform"), ("Figure 4", "sentences: r")]
    # Shares of the same 2,365 pairs as the paper's own rows.
    n_correct = [cells_by_key[key].ours * 2365 for key in criteria]
    assert n_correct == pytest.approx([round(number) for number in n_correct], abs=1e-6)
    assert all(cell.paper is None and cell.agrees is None and cell.note == "lp()" for cell in own)


def test_undefined_numbers_of_a_users_model_have_a_reason() -> None:
    suite = published_scores().suite
    flat = Scores({sentence.id: 1.0 for sentence in suite.sentences}, "flat", reduction="lp()")
    cells_by_key = {(cell.table, cell.column): cell for cell in own_cells(suite, flat, "flat")}
    assert cells_by_key["Table 1", "BLiMP"].ours == 0.0
    for key in (("Table 1", "ADC 0.5"), ("Figure 1", "flat"), ("Figure 4", "sentences: r")):
        assert cells_by_key[key].ours is None
        assert "same" in cells_by_key[key].note
