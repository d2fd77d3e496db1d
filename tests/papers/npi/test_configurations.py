"""Training–evaluation configurations over the values of any tag: the training groups, and the rows of the figures."""

from __future__ import annotations

import pytest

from acceptability.errors import SuiteError
from acceptability.papers.npi.npi_data import (
    FIGURE_ROWS,
    Configuration,
    filter_groups,
    list_configurations,
    list_groups,
    select_configs_without_group,
    select_configurations,
    subsample_suite,
)
from acceptability.types import Sentence, Suite

GROUPS = ("a", "b", "c")


def suite(sets: int = 5) -> Suite:
    rows = [
        Sentence(
            f"{group}/{number}/{label}",
            f"{group} {number} {label}.",
            label,
            tags={"g": group, "set": f"{group}{number}"},
        )
        for group in GROUPS
        for number in range(sets)
        for label in (0, 1)
    ]
    return Suite("toy", tuple(rows))


def test_every_group_is_trained_on_alone_and_left_out_once() -> None:
    selected = list_configurations(GROUPS)
    assert len(selected) == len({each.folder for each in selected}) == 2 + 2 * len(GROUPS)
    groups = {each.folder: each.select_groups(GROUPS) for each in selected}
    assert groups["other"] == ()
    assert groups["all"] == GROUPS
    assert groups["one/b"] == ("b",)
    assert groups["all-but/b"] == ("a", "c")


def test_a_held_out_group_is_never_trained_on() -> None:
    for group in GROUPS:
        for row in ("average-other", "all-but"):
            for each in select_configurations(row, group, GROUPS):
                assert group not in each.select_groups(GROUPS)
        for row in ("one", "all"):
            assert all(group in each.select_groups(GROUPS) for each in select_configurations(row, group, GROUPS))


def test_every_reported_configuration_is_trained() -> None:
    trained = set(list_configurations(GROUPS))
    for row in FIGURE_ROWS:
        assert {each for group in GROUPS for each in select_configurations(row, group, GROUPS)} <= trained
        assert set(select_configs_without_group(row, GROUPS)) <= trained
    assert select_configs_without_group("average-other", GROUPS) == []


def test_sentences_are_chosen_by_group() -> None:
    selected = filter_groups(suite(), "g", Configuration("all-but", "a").select_groups(GROUPS))
    assert list_groups(selected, "g") == ("b", "c")
    with pytest.raises(SuiteError, match="no sentence whose g is z"):
        filter_groups(suite(), "g", ["z"])
    with pytest.raises(SuiteError, match="have no tag 'h'"):
        list_groups(suite(), "h")


def test_a_subsample_has_whole_sets_of_every_group() -> None:
    selected = subsample_suite(suite(), "g", 12)
    assert len(selected.sentences) == 12
    for group in GROUPS:
        sets = [each.tags["set"] for each in selected.sentences if each.tags["g"] == group]
        assert sorted(sets) == sorted([*set(sets)] * 2)
        assert len(sets) == 4
    assert subsample_suite(suite(), "g", 12).hash == selected.hash
    assert subsample_suite(suite(), "g", 12, seed=1).hash != selected.hash
    assert subsample_suite(suite(), "g", 0).hash == subsample_suite(suite(), "g", 1000).hash == suite().hash
