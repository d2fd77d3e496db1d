"""Our error types of Linguistic Inquiry, against the ratings and counts that the paper prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.papers.cells import read_published_values, rounds_to
from acceptability.papers.park import load_linguistic_inquiry
from acceptability.papers.park.park_suites import (
    RATING_TOLERANCE,
    RatedErrorType,
    compute_rated_types,
    read_example_types,
)
from acceptability.suites.targets import add_targets
from acceptability.types import Suite

OUTLIERS = {"19 adverbial phrases, general": -0.2531}
"""Types whose mean rating is not the printed one."""


@pytest.fixture
def inquiry(data: Path) -> Suite:
    return load_linguistic_inquiry()


@pytest.fixture
def rated(inquiry: Suite) -> list[RatedErrorType]:
    return compute_rated_types(inquiry)


def _printed(error_type: RatedErrorType) -> str:
    return read_published_values("park")["Table 4", error_type.name, "rating of the unacceptable"].value


def test_there_are_the_22_types_of_the_paper_each_with_examples(rated: list[RatedErrorType]) -> None:
    rows = dict.fromkeys(row for table, row, _ in read_published_values("park") if table == "Table 4")
    assert [error_type.name for error_type in rated] == list(rows)
    assert set(read_example_types().values()) == set(rows)
    assert sum(len(error_type.ids) for error_type in rated) == len(read_example_types()) == 59


def test_every_example_is_one_of_linguistic_inquiry(inquiry: Suite) -> None:
    known = {inquiry.by_id[each.worse].tags["type"] for each in inquiry.contrasts}
    assert set(read_example_types()) <= known


def test_mean_ratings_are_the_printed_ones_within_the_tolerance(rated: list[RatedErrorType]) -> None:
    for error_type in rated:
        if error_type.name in OUTLIERS:
            assert error_type.unacceptable == pytest.approx(OUTLIERS[error_type.name], abs=5e-4)
            assert abs(error_type.unacceptable - float(_printed(error_type))) > RATING_TOLERANCE
        else:
            assert error_type.unacceptable == pytest.approx(float(_printed(error_type)), abs=RATING_TOLERANCE), (
                error_type.name
            )


def test_the_stated_evidence_for_a_type_is_true(rated: list[RatedErrorType], inquiry: Suite) -> None:
    worse_sentences = [
        inquiry.by_id[contrast.worse.removesuffix(" (worse)").rpartition(" > ")[2]] for contrast in _targets(inquiry)
    ]
    for error_type in rated:
        evidence = error_type.evidence.split(", ")
        assert rounds_to(error_type.unacceptable, _printed(error_type)) is bool({"rating", "fitted"} & set(evidence)), (
            error_type.name
        )
        sentences = int(read_published_values("park")["Table 4", error_type.name, "correct"].value.partition("/")[2])
        if "count" in evidence:
            assert 4 * sum(sentence.tags["type"] in error_type.ids for sentence in worse_sentences) == sentences, (
                error_type.name
            )


def _targets(suite: Suite) -> tuple:
    return add_targets(suite)[0].contrasts
