"""The CoLA paper: what comes out again without a model, the splits, and the learning curve."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from acceptability import load_suite
from acceptability.errors import SpellingError, SuiteError, Undefined, UnknownName
from acceptability.studies import study
from acceptability.studies.cells import Cell, Key, printed
from acceptability.studies.cola_curve import SIZES, Point, fitted_line, subsets
from acceptability.studies.cola_splits import SOURCES, Split, find_split, paper_size, paper_splits, parts, random_split
from acceptability.train.classifiers import Examples, held_out
from acceptability.types import Sentence, Suite

OUT_OF_DOMAIN = {"orig.": 516, "1": 1069, "2": 836, "3": 1182, "4": 533, "5": 1452}


@pytest.fixture(scope="module")
def _found() -> dict[Key, Cell]:
    cells = study("cola")
    found = {(cell.table, cell.row, cell.column): cell for cell in cells}
    assert len(found) == len(cells)
    return found


@pytest.fixture
def found(data: Path, request: pytest.FixtureRequest) -> dict[Key, Cell]:
    cells: dict[Key, Cell] = request.getfixturevalue("_found")
    return cells


def test_all_but_five_printed_numbers_come_out_again(found: dict[Key, Cell]) -> None:
    compared = [cell for cell in found.values() if cell.agrees is not None]
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


def test_every_printed_number_has_a_place(found: dict[Key, Cell]) -> None:
    assert printed("cola").keys() <= found.keys()
    empty = [cell for cell in found.values() if cell.ours is None]
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
def test_numbers(found: dict[Key, Cell], table: str, row: str, column: str, value: float) -> None:
    assert found[table, row, column].ours == pytest.approx(value, abs=5e-5)


def test_counts_of_the_public_files_are_never_said_to_agree_with_counts_of_all(found: dict[Key, Cell]) -> None:
    public = [cell for (table, row, column), cell in found.items() if table == "Table 2" and column in ("N", "%")]
    told = [cell for cell in public if cell.source.startswith("public files")]
    assert len(told) == 26 + 25
    assert all(cell.agrees is None and "test sets" in cell.note for cell in told)


def test_the_sentences_of_table_3(found: dict[Key, Cell]) -> None:
    missing = {row for (table, row, _), cell in found.items() if table == "Table 3" and cell.ours is None}
    assert missing == {"sentence 2"}
    drawn = [cell.ours for (_, row, column), cell in found.items() if "our draw" in row and column == "Sentence"]
    texts = {each.text for each in load_suite("cola/train").sentences}
    assert len(drawn) == 10
    assert set(drawn) <= texts


def test_text_without_a_model_and_restarts_of_another_study_are_errors(tmp_path: Path) -> None:
    with pytest.raises(SpellingError, match="give a --model too"):
        study("cola", corpus=["a.txt"])
    with pytest.raises(SpellingError, match="has no rows of restarts: leave --restarts away"):
        study("adc", restarts=[tmp_path])


@pytest.mark.parametrize("split", paper_splits(), ids=lambda each: each.name)
def test_the_parts_of_the_papers_splits(data: Path, split: Split) -> None:
    found = parts(split)
    assert len(found.out_of_domain.sentences) == OUT_OF_DOMAIN[split.name]
    assert {each.tags["source"] for each in found.out_of_domain.sentences} == set(split.outside)
    inside = {each.tags["source"] for part in (found.train, found.in_domain) for each in part.sentences}
    assert inside == set(SOURCES) - set(split.outside)
    ids = Counter(each.id for part in (found.train, found.in_domain, found.out_of_domain) for each in part.sentences)
    assert len(ids) == 9594
    assert set(ids.values()) == {1}
    held_out(Examples(found.train.sentences))


def test_a_seed_decides_what_is_set_aside(data: Path) -> None:
    split = find_split("4", printed("cola"))
    assert parts(split).in_domain.hash == parts(split).in_domain.hash
    assert parts(split).in_domain.hash != parts(split, seed=1).in_domain.hash
    assert parts(split).out_of_domain.hash == parts(split, seed=1).out_of_domain.hash


def test_random_splits_follow_the_papers_rule() -> None:
    values = printed("cola")
    splits = [random_split(values, seed) for seed in range(50)]
    for split in splits:
        assert paper_size(values, split.outside) > 750
        assert paper_size(values, split.outside[:-1]) <= 750
    assert len({split.outside for split in splits}) > 40
    assert find_split("random-7", values) == splits[7]
    with pytest.raises(UnknownName, match="no split of CoLA named '6'"):
        find_split("6", values)


def test_training_sets_lie_within_each_other_and_keep_the_share_of_labels(data: Path) -> None:
    train = load_suite("cola/train")
    found = subsets(train)
    assert list(found) == list(SIZES)
    assert [len(each.sentences) for each in found.values()] == list(SIZES)
    assert found[8551] is train
    share = sum(each.label or 0 for each in train.sentences) / len(train.sentences)
    for small, large in pairwise(SIZES):
        assert {each.id for each in found[small].sentences} < {each.id for each in found[large].sentences}
        labels = sum(each.label or 0 for each in found[small].sentences)
        assert abs(labels - share * small) <= 0.5
        held_out(Examples(found[small].sentences))
    sources = Counter(each.tags["source"] for each in found[1000].sentences)
    wanted = Counter(each.tags["source"] for each in train.sentences)
    assert all(abs(sources[name] - wanted[name] * 1000 / 8551) <= 2 for name in wanted)


def test_subsets_by_other_seeds_differ_and_too_many_sentences_are_an_error() -> None:
    suite = Suite("ten", tuple(Sentence(str(i), f"Word {i}.", label=i % 2) for i in range(10)))
    assert subsets(suite, [4])[4].hash == subsets(suite, [4])[4].hash
    assert len({subsets(suite, [4], seed=seed)[4].hash for seed in range(8)}) > 1
    with pytest.raises(SuiteError, match="11 sentences cannot be drawn from the 10"):
        subsets(suite, [11])


def test_the_line_of_the_learning_curve_is_that_of_scipy() -> None:
    random = np.random.default_rng(3)
    points = [Point(size, seed, 0.05 * np.log10(size) + random.normal(0, 0.02)) for size in SIZES for seed in range(6)]
    line = fitted_line(points)
    x, y = np.log10([each.size for each in points]), np.array([each.mcc for each in points])
    known = stats.linregress(x, y)
    reach = stats.t.ppf(0.975, 28) * known.stderr
    assert line.slope == pytest.approx(known.slope)
    assert line.intercept == pytest.approx(known.intercept)
    assert (line.low, line.high) == pytest.approx((known.slope - reach, known.slope + reach))
    # At x the mean of the regression is the intercept of one whose predictor is shifted by x.
    shifted = stats.linregress(x - np.log10(300), y)
    reach = stats.t.ppf(0.975, 28) * shifted.intercept_stderr
    assert line.at(300) == pytest.approx((shifted.intercept, shifted.intercept - reach, shifted.intercept + reach))


def test_one_size_has_no_line() -> None:
    with pytest.raises(Undefined, match="needs three of two"):
        fitted_line([Point(100, seed, 0.1) for seed in range(5)])


def test_classifiers_that_all_say_the_same_have_no_line() -> None:
    with pytest.raises(Undefined, match="all points lie on the line"):
        fitted_line([Point(size, seed, 0.0) for size in SIZES for seed in range(3)])
