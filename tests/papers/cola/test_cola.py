"""The CoLA paper: the numbers that need no model, the splits, and the learning curve."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from acceptability import load_suite
from acceptability.errors import SpecError, SuiteError, Undefined, UnknownName
from acceptability.papers import study
from acceptability.papers.cells import Cell, CellKey, read_published_values
from acceptability.papers.cola.corpus_tables import (
    SOURCES,
    Split,
    build_split_suites,
    count_paper_sentences,
    draw_random_split,
    find_split,
    list_paper_splits,
)
from acceptability.papers.cola.learning_curve import SIZES, CurvePoint, draw_nested_subsets, fit_line
from acceptability.train.classifiers import LabelledSentences, split_held_out
from acceptability.types import Sentence, Suite
from published import compute_published_cells

OUT_OF_DOMAIN = {"orig.": 516, "1": 1069, "2": 836, "3": 1182, "4": 533, "5": 1452}


@pytest.fixture(scope="module")
def _cells_by_key() -> dict[CellKey, Cell]:
    cells = compute_published_cells("cola")
    cells_by_key = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(cells_by_key) == len(cells)
    return cells_by_key


@pytest.fixture
def cells_by_key(data: Path, request: pytest.FixtureRequest) -> dict[CellKey, Cell]:
    cells: dict[CellKey, Cell] = request.getfixturevalue("_cells_by_key")
    return cells


def test_all_but_five_printed_numbers_are_reproduced(cells_by_key: dict[CellKey, Cell]) -> None:
    compared = [cell for cell in cells_by_key.values() if cell.agrees is not None]
    wrong = {(cell.table, cell.row, cell.column) for cell in compared if not cell.agrees}
    assert len(compared) == 79
    assert wrong == {
        ("Section 3", "majority, labels", "agreement (%)"),
        ("Section 3", "majority, labels", "MCC"),
        ("Table 2", "In-Domain", "N"),
        ("Table 5", "2", "Out N"),
        ("ADC paper, Table 5", "Human (Warstadt et al.)", "standard deviation"),
    }
    assert all(cell.note for cell in compared if not cell.agrees)


def test_every_printed_number_has_a_cell(cells_by_key: dict[CellKey, Cell]) -> None:
    assert read_published_values("cola").keys() <= cells_by_key.keys()
    empty = [cell for cell in cells_by_key.values() if cell.ours is None]
    assert all(cell.note for cell in empty)
    assert all(cell.agrees is None for cell in empty)


@pytest.mark.parametrize(
    ("table", "row", "column", "value"),
    [
        ("Figure 1", "a sentence", "features", 3.2215),
        ("Figure 1", "Arg Altern", "sentences (%)", 40.3643),
        ("Figure 1", "Infl/Agr Violation", "sentences (%)", 5.9444),
        ("Table 2", "Adger (2003)", "N", 906),
        ("Table 2", "Adger (2003)", "%", 71.5232),
        ("Table 2", "Total", "N", 9594),
        ("Table 2", "In-Domain", "N, public", 9078),
        ("Table 2", "In-Domain", "N", 9608),
        ("Table 4", "Human Average", "In-domain MCC", 0.6443),
        ("Table 5", "2", "Out N", 963),
        ("Section 7.2", "Causative", "pairs that alternate", 36),
    ],
)
def test_numbers(cells_by_key: dict[CellKey, Cell], table: str, row: str, column: str, value: float) -> None:
    assert cells_by_key[table, row, column].ours == pytest.approx(value, abs=5e-5)


def test_counts_of_the_public_files_are_not_compared_with_those_of_all_sentences(
    cells_by_key: dict[CellKey, Cell],
) -> None:
    public = [
        cell for (table, row, column), cell in cells_by_key.items() if table == "Table 2" and column in ("N", "%")
    ]
    counts = [cell for cell in public if cell.source.startswith("public files")]
    assert len(counts) == 26 + 25
    assert all(cell.agrees is None and "test sets" in cell.note for cell in counts)


def test_the_sentences_of_table_3(cells_by_key: dict[CellKey, Cell]) -> None:
    missing = {row for (table, row, _), cell in cells_by_key.items() if table == "Table 3" and cell.ours is None}
    assert missing == {"sentence 2"}
    drawn = [cell.ours for (_, row, column), cell in cells_by_key.items() if "our draw" in row and column == "Sentence"]
    texts = {sentence.text for sentence in load_suite("cola/train").sentences}
    assert len(drawn) == 10
    assert set(drawn) <= texts


def test_text_without_a_model_and_restarts_of_another_study_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="give a --model too"):
        study("cola", corpus=["a.txt"])
    with pytest.raises(SpecError, match="has no option 'restarts'"):
        study("adc", restarts=[tmp_path])


@pytest.mark.parametrize("split", list_paper_splits(), ids=lambda split: split.name)
def test_the_parts_of_the_papers_splits(data: Path, split: Split) -> None:
    split_suites = build_split_suites(split)
    assert len(split_suites.out_of_domain.sentences) == OUT_OF_DOMAIN[split.name]
    assert {sentence.tags["source"] for sentence in split_suites.out_of_domain.sentences} == set(
        split.out_of_domain_sources
    )
    inside = {
        sentence.tags["source"] for part in (split_suites.train, split_suites.in_domain) for sentence in part.sentences
    }
    assert inside == set(SOURCES) - set(split.out_of_domain_sources)
    ids = Counter(
        sentence.id
        for part in (split_suites.train, split_suites.in_domain, split_suites.out_of_domain)
        for sentence in part.sentences
    )
    assert len(ids) == 9594
    assert set(ids.values()) == {1}
    split_held_out(LabelledSentences(split_suites.train.sentences))


def test_a_seed_decides_which_sentences_are_held_out(data: Path) -> None:
    split = find_split("4", read_published_values("cola"))
    assert build_split_suites(split).in_domain.hash == build_split_suites(split).in_domain.hash
    assert build_split_suites(split).in_domain.hash != build_split_suites(split, seed=1).in_domain.hash
    assert build_split_suites(split).out_of_domain.hash == build_split_suites(split, seed=1).out_of_domain.hash


def test_random_splits_follow_the_papers_rule() -> None:
    values = read_published_values("cola")
    splits = [draw_random_split(values, seed) for seed in range(50)]
    for split in splits:
        assert count_paper_sentences(values, split.out_of_domain_sources) > 750
        assert count_paper_sentences(values, split.out_of_domain_sources[:-1]) <= 750
    assert len({split.out_of_domain_sources for split in splits}) > 40
    assert find_split("random-7", values) == splits[7]
    with pytest.raises(UnknownName, match="no split of CoLA named '6'"):
        find_split("6", values)


def test_training_sets_are_nested_and_stratified_by_label(data: Path) -> None:
    train = load_suite("cola/train")
    subsets = draw_nested_subsets(train)
    assert list(subsets) == list(SIZES)
    assert [len(subset.sentences) for subset in subsets.values()] == list(SIZES)
    assert subsets[8551] is train
    share = sum(sentence.label or 0 for sentence in train.sentences) / len(train.sentences)
    for small, large in pairwise(SIZES):
        assert {sentence.id for sentence in subsets[small].sentences} < {
            sentence.id for sentence in subsets[large].sentences
        }
        labels = sum(sentence.label or 0 for sentence in subsets[small].sentences)
        assert abs(labels - share * small) <= 0.5
        split_held_out(LabelledSentences(subsets[small].sentences))
    sources = Counter(sentence.tags["source"] for sentence in subsets[1000].sentences)
    expected = Counter(sentence.tags["source"] for sentence in train.sentences)
    assert all(abs(sources[name] - expected[name] * 1000 / 8551) <= 2 for name in expected)


def test_subsets_by_other_seeds_differ_and_too_many_sentences_are_an_error() -> None:
    suite = Suite("ten", tuple(Sentence(str(i), f"Word {i}.", label=i % 2) for i in range(10)))
    assert draw_nested_subsets(suite, [4])[4].hash == draw_nested_subsets(suite, [4])[4].hash
    assert len({draw_nested_subsets(suite, [4], seed=seed)[4].hash for seed in range(8)}) > 1
    with pytest.raises(SuiteError, match="11 sentences cannot be drawn from the 10"):
        draw_nested_subsets(suite, [11])


def test_the_line_of_the_learning_curve_is_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    points = [
        CurvePoint(size, seed, 0.05 * np.log10(size) + random.normal(0, 0.02)) for size in SIZES for seed in range(6)
    ]
    line = fit_line(points)
    x, y = np.log10([point.size for point in points]), np.array([point.mcc for point in points])
    known = stats.linregress(x, y)
    reach = stats.t.ppf(0.975, 28) * known.stderr
    assert line.slope == pytest.approx(known.slope)
    assert line.intercept == pytest.approx(known.intercept)
    assert (line.low, line.high) == pytest.approx((known.slope - reach, known.slope + reach))
    # At x the mean of the regression is the intercept of one whose predictor is shifted by x.
    shifted = stats.linregress(x - np.log10(300), y)
    reach = stats.t.ppf(0.975, 28) * shifted.intercept_stderr
    assert line.predict(300) == pytest.approx((shifted.intercept, shifted.intercept - reach, shifted.intercept + reach))


def test_one_size_has_no_line() -> None:
    with pytest.raises(Undefined, match="needs three of two"):
        fit_line([CurvePoint(100, seed, 0.1) for seed in range(5)])


def test_constant_classifiers_have_no_line() -> None:
    with pytest.raises(Undefined, match="all points lie on the line"):
        fit_line([CurvePoint(size, seed, 0.0) for size in SIZES for seed in range(3)])
