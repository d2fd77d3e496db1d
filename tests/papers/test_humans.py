"""Human judgements as papers report them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import matthews_corrcoef

from acceptability.errors import MeasureError
from acceptability.papers import study
from acceptability.papers.cells import Cell
from acceptability.papers.humans import read_blimp_human_accuracy
from acceptability.people.reliability import compute_rater_agreement, summarise_agreement
from acceptability.people.responses import read_responses
from published import compute_published_cells


@pytest.fixture
def cells(data: Path) -> dict[tuple[str, str, str], Cell]:
    return {(cell.table, cell.row, cell.column): cell for cell in compute_published_cells("humans")}


def test_all_but_three_printed_numbers_are_reproduced(cells: dict[tuple[str, str, str], Cell]) -> None:
    compared = [cell for cell in cells.values() if cell.agrees is not None]
    wrong = {(cell.row, cell.column) for cell in compared if not cell.agrees}
    assert len(compared) == 20
    assert wrong == {("majority, labels", "agreement (%)"), ("majority, labels", "MCC"), ("Human", "STD")}
    assert all(cell.note for cell in compared if not cell.agrees)


@pytest.mark.parametrize(
    ("row", "column", "value"),
    [
        ("Human Average", "In-domain Acc.", 0.850),
        ("Human Average", "In-domain MCC", 0.6443),
        ("Human Average", "Out-of-domain MCC", 0.7384),
        ("Human Aggregate", "In-domain MCC", 0.6954),
        ("Human Aggregate", "Out-of-domain MCC", 0.8148),
        ("annotators, labels", "MCC", 0.6969),
        ("majority, labels", "MCC", 0.7615),
        ("annotators, majority", "MCC", 0.8522),
        ("Human", "Max", 0.7258),
        ("overall", "accuracy (%)", 88.5546),
        ("overall", "majority (%)", 96.4179),
        ("island_effects", "accuracy (%)", 84.8713),
        ("forced choice", "pairs in which people prefer the good one", 0.9490),
    ],
)
def test_numbers(cells: dict[tuple[str, str, str], Cell], row: str, column: str, value: float) -> None:
    (cell,) = [cell for (_, *key), cell in cells.items() if key == [row, column]]
    assert cell.ours == pytest.approx(value, abs=5e-5)


def test_only_counting_the_odd_answer_as_no_gives_the_printed_mean(data: Path) -> None:
    """Of the ways to count the answer 2: a no prints .644; missing, a yes, a third class and a number do not."""
    means = {}
    for other in ("no", "missing"):
        responses = read_responses("cola/human", kind="yes-no", raters="annotator_*", other=other)
        part = compute_rater_agreement(responses.select(lambda each: each.tags["domain"] == "in"))
        means[other] = summarise_agreement(list(part.raters.values())).mcc
    part = responses.select(lambda each: each.tags["domain"] == "in")
    labels, values = part.labels, part.values.copy()
    (index,) = np.argwhere(np.isnan(values)).tolist()
    for name, value in (("yes", 1), ("class", 2)):
        values[tuple(index)] = value
        means[name] = float(np.mean([matthews_corrcoef(labels, row) for row in values]))
    means["number"] = float(np.mean([np.corrcoef(labels, row)[0, 1] for row in values]))
    rounded = {name: round(value, 4) for name, value in means.items()}
    assert rounded == {"no": 0.6443, "missing": 0.6478, "yes": 0.6481, "class": 0.6449, "number": 0.6464}


def test_the_paradigms_of_blimp(data: Path) -> None:
    paradigms = read_blimp_human_accuracy()
    assert (len(paradigms), len({each.phenomenon for each in paradigms})) == (67, 12)
    assert {each.majority for each in paradigms} == {0.8, 1.0}
    assert all(97 <= each.n <= 100 for each in paradigms)


def test_the_study_takes_no_models() -> None:
    with pytest.raises(MeasureError, match="takes no models"):
        study("humans", ["uniform"])
