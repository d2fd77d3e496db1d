"""Means over groups that have sampling units in common: a unit is resampled with all its rows, in all groups."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import PBC, PairAccuracy
from acceptability.cli import app
from acceptability.errors import Undefined
from acceptability.protocols import Statistic
from acceptability.stats.bootstrap import Bootstrap, build_stratum
from acceptability.stats.intervals import (
    bootstrap_difference,
    bootstrap_interval,
    bootstrap_macro_difference,
    bootstrap_macro_interval,
)
from acceptability.stats.intervals.crossed_groups import MeanOverGroups, join_groups
from acceptability.stats.permutation import macro_permutation_test, permutation_test
from acceptability.stats.resampling import count_units_of_groups, have_common_units
from acceptability.stats.sampling_units import fit_unit_to_groups
from acceptability.types import Units

ITEMS = [str(number) for number in range(9)]
ANSWERS = np.array([1.0, 0, 1, 1, 0.5, 1, 0, 1, 1])
GAPS = np.array([0.3, -1.2, 2.0, 0.1, 0.0, 4.0, -0.7, 1.1, 0.2])


def make_group(columns: dict[str, np.ndarray], items: list[str] = ITEMS) -> Units:
    return Units(tuple(items), columns, tuple({"item": item} for item in items))


def draw(seed: int, sizes: tuple[int, ...]) -> list[Units]:
    generator = np.random.default_rng(seed)
    return [make_group({"correct": generator.integers(0, 2, n).astype(float)}, ITEMS[:n]) for n in sizes]


@dataclass(frozen=True)
class MeanGap(Statistic):
    def value(self, units: Units) -> float:
        return float(units["gap"].mean())

    @property
    def mean_of(self) -> str:
        return "gap"


@pytest.mark.parametrize("method", ["auto", "percentile", "bca"])
@pytest.mark.parametrize("statistic", [PairAccuracy(), MeanGap()], ids=["answers", "numbers"])
def test_copies_of_the_same_rows_add_no_evidence(method: str, statistic: Statistic) -> None:
    group = make_group({"correct": ANSWERS, "gap": GAPS})
    bootstrap = Bootstrap(300, method=method, by="item")
    groups = [group] * 8
    whole = bootstrap_interval(statistic, join_groups(groups), bootstrap)
    macro = bootstrap_macro_interval(statistic, groups, bootstrap)
    assert (macro.low, macro.high) == pytest.approx((whole.low, whole.high), abs=1e-12)
    assert macro.method == whole.method
    other = make_group({"correct": ANSWERS[::-1].copy(), "gap": GAPS[::-1].copy()})
    difference = bootstrap_difference(statistic, join_groups(groups), join_groups([other] * 8), bootstrap)
    macro = bootstrap_macro_difference(statistic, [(group, other)] * 8, bootstrap)
    assert (macro.low, macro.high) == pytest.approx((difference.low, difference.high), abs=1e-12)


def test_groups_without_common_units_remain_strata() -> None:
    first, second = draw(1, (9, 9))
    apart = replace(second, ids=tuple("abcdefghi"), tags=tuple({"item": name} for name in "abcdefghi"))
    assert (have_common_units([first, second], "item"), have_common_units([first, apart], "item")) == (True, False)
    assert not have_common_units([first, second], "")
    assert (count_units_of_groups([first, second], "item"), count_units_of_groups([first, apart], "item")) == (9, 18)
    assert count_units_of_groups([first, second], "") == 18
    by_item = Bootstrap(200, by="item")
    assert fit_unit_to_groups(by_item, [first, second], "condition").by == "item"
    assert fit_unit_to_groups(by_item, [first, apart], "condition").by == ""
    by_row = bootstrap_macro_interval(PairAccuracy(), [first, apart], replace(by_item, by=""))
    assert bootstrap_macro_interval(PairAccuracy(), [first, apart], by_item) == by_row
    assert bootstrap_macro_interval(PairAccuracy(), [first, second], by_item) != by_row


def test_unequal_groups_weigh_the_same() -> None:
    groups = draw(3, (9, 3))
    joined, macro = join_groups(groups), MeanOverGroups(PairAccuracy(), 2)
    expected = np.mean([PairAccuracy().value(units) for units in groups])
    assert macro.value(joined) == pytest.approx(expected)
    moments = macro.weigh(joined)
    assert moments.combine(moments.of_rows.sum(axis=1)[:, None]) == pytest.approx([expected])
    closed = bootstrap_macro_interval(PairAccuracy(), groups, Bootstrap(200, by="item"))
    assert closed.low < expected < closed.high


def test_the_fast_bootstrap_is_that_of_the_plain_loop() -> None:
    @dataclass(frozen=True)
    class Plain(MeanOverGroups):
        def weigh(self, units: Units) -> None:
            return None

    groups, bootstrap = draw(5, (9, 6, 4)), Bootstrap(200, by="item")
    joined = join_groups(groups)
    fast, plain = (
        build_stratum(kind(PairAccuracy(), 3), joined, bootstrap).resample(0) for kind in (MeanOverGroups, Plain)
    )
    np.testing.assert_allclose(fast, plain, rtol=0, atol=1e-12)
    # With four items in the last group, some resamples have none of them: both are undefined there.
    assert np.isnan(fast).any()


def test_a_group_without_rows_is_undefined() -> None:
    joined = join_groups(draw(1, (3, 3)))
    with pytest.raises(Undefined, match="no rows"):
        MeanOverGroups(PairAccuracy(), 2).value(joined.take_columns(np.arange(3)))


def test_correlations_are_resampled_with_all_rows_of_a_unit() -> None:
    generator = np.random.default_rng(7)
    columns = {"score": generator.normal(size=9), "label": np.array([1.0, 0, 1, 0, 1, 0, 1, 0, 1])}
    groups, bootstrap = [make_group(columns)] * 4, Bootstrap(300, method="percentile", by="item")
    whole = bootstrap_interval(PBC(), join_groups(groups), bootstrap)
    macro = bootstrap_macro_interval(PBC(), groups, replace(bootstrap, method="auto"))
    assert (macro.low, macro.high, macro.method) == pytest.approx((whole.low, whole.high, "percentile"))


def test_the_interval_covers_where_items_are_crossed_with_conditions() -> None:
    """The conditions of an item are alike; as independent strata they would give an interval half as wide."""
    generator, covered = np.random.default_rng(11), []
    for _ in range(300):
        of_item = generator.normal(size=30)
        groups = [
            make_group({"gap": of_item + generator.normal(0, 0.3, 30)}, [str(item) for item in range(30)])
            for _ in range(4)
        ]
        interval = bootstrap_macro_interval(MeanGap(), groups, Bootstrap(40, by="item"))
        covered.append(interval.low <= 0 <= interval.high)
    assert 0.91 <= np.mean(covered) <= 0.99


def test_the_test_and_the_interval_swap_the_same_units() -> None:
    first, second = make_group({"gap": GAPS}), make_group({"gap": np.zeros(9)})
    macro = macro_permutation_test(MeanGap(), [(first, second)] * 8, by="item")
    one = permutation_test(MeanGap(), first, second, by="item")
    assert (macro.p, macro.n) == (one.p, 9)


def test_commands_show_the_same_interval_for_all_rows_and_for_copies_in_groups(tmp_path: Path) -> None:
    rows = [("The cats sleep.", "The cats sleeps."), ("Dogs run here.", "Dogs runs here."), ("He is.", "He are.")]
    lines = [f"{item},{condition},{good},{bad}" for condition in "abcd" for item, (good, bad) in enumerate(rows)]
    (tmp_path / "crossed.csv").write_text("\n".join(["item,condition,good,bad", *lines]), encoding="utf-8")
    path = str(tmp_path / "crossed.csv")
    done = CliRunner().invoke(app, ["evaluate", path, "-m", "trigram", "--by", "condition", "--json"])
    whole, *_, macro = json.loads(done.stdout)
    assert (macro["group"], macro["low"], macro["high"]) == (
        "macro(condition)",
        pytest.approx(whole["low"]),
        pytest.approx(whole["high"]),
    )
    assert "|units:3|" in macro["signature"]
    models = ("-m", "trigram", "-m", "uniform")
    done = CliRunner().invoke(app, ["compare", path, *models, "-M", "PairAccuracy", "--by", "condition", "--json"])
    compared = {row["group"]: row for row in json.loads(done.stdout)}
    assert compared["macro(condition)"]["p"] == compared[None]["p"]
    assert compared["macro(condition)"]["low"] == pytest.approx(compared[None]["low"])
