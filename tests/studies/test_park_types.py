"""The error types that we read into Linguistic Inquiry, against the ratings and counts that the paper prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from acceptability.studies.cells import printed, same
from acceptability.studies.park import linguistic_inquiry
from acceptability.studies.park_types import TOLERANCE, Rated, rated_types, types_of_examples
from acceptability.suites.targets import with_targets
from acceptability.types import Suite

FAR = {"19 adverbial phrases, general": -0.2531}
"""Types whose mean rating is not the printed one, and is not made to be."""


@pytest.fixture
def inquiry(data: Path) -> Suite:
    return linguistic_inquiry()


@pytest.fixture
def rated(inquiry: Suite) -> list[Rated]:
    return rated_types(inquiry)


def _printed(each: Rated) -> str:
    return printed("park")["Table 4", each.name, "rating of the unacceptable"].value


def test_there_are_the_22_types_of_the_paper_each_with_examples(rated: list[Rated]) -> None:
    rows = dict.fromkeys(row for table, row, _ in printed("park") if table == "Table 4")
    assert [each.name for each in rated] == list(rows)
    assert set(types_of_examples().values()) == set(rows)
    assert sum(len(each.ids) for each in rated) == len(types_of_examples()) == 59


def test_every_example_is_one_of_linguistic_inquiry(inquiry: Suite) -> None:
    known = {inquiry.by_id[each.worse].tags["type"] for each in inquiry.contrasts}
    assert set(types_of_examples()) <= known


def test_mean_ratings_are_the_printed_ones_within_the_tolerance(rated: list[Rated]) -> None:
    for each in rated:
        if each.name in FAR:
            assert each.unacceptable == pytest.approx(FAR[each.name], abs=5e-4)
            assert abs(each.unacceptable - float(_printed(each))) > TOLERANCE
        else:
            assert each.unacceptable == pytest.approx(float(_printed(each)), abs=TOLERANCE), each.name


def test_what_is_said_to_speak_for_a_type_does(rated: list[Rated], inquiry: Suite) -> None:
    with_one = [inquiry.by_id[each.worse.removesuffix(" (worse)").rpartition(" > ")[2]] for each in _targets(inquiry)]
    for each in rated:
        evidence = each.evidence.split(", ")
        assert same(each.unacceptable, _printed(each)) is bool({"rating", "fitted"} & set(evidence)), each.name
        sentences = int(printed("park")["Table 4", each.name, "correct"].value.partition("/")[2])
        if "count" in evidence:
            assert 4 * sum(one.tags["type"] in each.ids for one in with_one) == sentences, each.name


def _targets(suite: Suite) -> tuple:
    return with_targets(suite)[0].contrasts
