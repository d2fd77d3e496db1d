"""Training–evaluation configurations over the values of any tag: who learns from what, and whose value stands where."""

from __future__ import annotations

import pytest

from acceptability.errors import SuiteError
from acceptability.train.classifiers.configurations import (
    ROWS,
    Configuration,
    chosen,
    configurations,
    groups_of,
    some_of,
    told_elsewhere,
    told_of,
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


def test_every_group_is_learnt_alone_and_left_out_once() -> None:
    found = configurations(GROUPS)
    assert len(found) == len({each.folder for each in found}) == 2 + 2 * len(GROUPS)
    learnt = {each.folder: each.groups(GROUPS) for each in found}
    assert learnt["other"] == ()
    assert learnt["all"] == GROUPS
    assert learnt["one/b"] == ("b",)
    assert learnt["all-but/b"] == ("a", "c")


def test_a_held_out_group_is_never_learnt_from() -> None:
    for group in GROUPS:
        for row in ("average-other", "all-but"):
            for each in told_of(row, group, GROUPS):
                assert group not in each.groups(GROUPS)
        for row in ("one", "all"):
            assert all(group in each.groups(GROUPS) for each in told_of(row, group, GROUPS))


def test_whatever_is_told_is_taught() -> None:
    taught = set(configurations(GROUPS))
    for row in ROWS:
        assert {each for group in GROUPS for each in told_of(row, group, GROUPS)} <= taught
        assert set(told_elsewhere(row, GROUPS)) <= taught
    assert told_elsewhere("average-other", GROUPS) == []


def test_sentences_are_chosen_by_group() -> None:
    found = chosen(suite(), "g", Configuration("all-but", "a").groups(GROUPS))
    assert groups_of(found, "g") == ("b", "c")
    with pytest.raises(SuiteError, match="no sentence whose g is z"):
        chosen(suite(), "g", ["z"])
    with pytest.raises(SuiteError, match="have no tag 'h'"):
        groups_of(suite(), "h")


def test_some_sentences_are_whole_sets_of_every_group() -> None:
    found = some_of(suite(), "g", 12)
    assert len(found.sentences) == 12
    for group in GROUPS:
        sets = [each.tags["set"] for each in found.sentences if each.tags["g"] == group]
        assert sorted(sets) == sorted([*set(sets)] * 2)
        assert len(sets) == 4
    assert some_of(suite(), "g", 12).hash == found.hash
    assert some_of(suite(), "g", 12, seed=1).hash != found.hash
    assert some_of(suite(), "g", 0).hash == some_of(suite(), "g", 1000).hash == suite().hash
