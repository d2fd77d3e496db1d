"""The sampling unit of intervals and tests: the suite's by default, of one or two levels, and how it is named."""

from __future__ import annotations

import numpy as np
import pytest

from acceptability import PairAccuracy, Sentence, Suite
from acceptability.errors import MeasureError, SuiteError
from acceptability.stats.bootstrap import Bootstrap, parse_bootstrap
from acceptability.stats.intervals import bootstrap_interval
from acceptability.stats.permutation import permutation_test
from acceptability.stats.sampling_units import (
    describe_suite_unit,
    fit_unit_to_groups,
    fit_unit_to_rows,
    name_sampling_units,
    note_few_units,
    parse_sampling_unit,
    resolve_sampling_unit,
    sign_unit_count,
)
from acceptability.types import Contrast, Units


def make_units(items: list[str], correct: list[float] | None = None, paradigms: list[str] | None = None) -> Units:
    outer = paradigms or ["p"] * len(items)
    tags = tuple({"item": item, "paradigm": paradigm} for item, paradigm in zip(items, outer, strict=True))
    columns = {"correct": np.array(correct if correct is not None else [1.0] * len(items))}
    return Units(tuple(map(str, range(len(items)))), columns, tags)


def make_suite(unit: str) -> Suite:
    tags = [{"item": str(i // 2), "paradigm": str(i // 4)} for i in range(8)]
    sentences = tuple(Sentence(str(i), f"s {i}", label=i % 2, tags=tags[i]) for i in range(8))
    contrasts = tuple(Contrast(str(i + 1), str(i), tags[i]) for i in range(0, 8, 2))
    return Suite("s", sentences, contrasts, unit=unit)


@pytest.mark.parametrize(
    ("unit", "by", "within"),
    [("", "", ""), ("row", "", ""), ("item", "item", ""), ("paradigm/item", "paradigm", "item")],
)
def test_no_unit_means_that_of_the_suite(unit: str, by: str, within: str) -> None:
    resolved = resolve_sampling_unit(Bootstrap(resamples=50, seed=3), make_suite(unit))
    assert (resolved.by, resolved.within, resolved.resamples, resolved.seed) == (by, within, 50, 3)


@pytest.mark.parametrize("by", ["", "row", "paradigm"])
def test_a_unit_that_was_asked_for_stays(by: str) -> None:
    resolved = resolve_sampling_unit(Bootstrap(by=by), make_suite("item"))
    assert resolved.by == ("" if by == "row" else by)


def test_a_signature_always_names_the_unit() -> None:
    for by, within, signed in (("", "", "row"), ("item", "", "item"), ("p", "item", "p/item"), ("p", "row", "p/row")):
        bootstrap = Bootstrap(by=by, within=within, method="percentile")
        assert f"by={signed}," in bootstrap.signature
        assert parse_bootstrap(bootstrap.signature) == bootstrap
    # Without an interval there is nothing to read the unit from; it must not become that of the suite.
    assert parse_bootstrap("none").by == ""


@pytest.mark.parametrize("text", ["/item", "paradigm/", "a/b/c"])
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(MeasureError, match="expected a tag, or two"):
        parse_sampling_unit(text)


def test_units_of_one_row_are_rows() -> None:
    single, several = make_units(["a", "b", "c"]), make_units(["a", "a", "b"])
    by_item = Bootstrap(by="item")
    assert fit_unit_to_rows(by_item, single).by == ""
    assert fit_unit_to_rows(by_item, several).by == "item"
    assert fit_unit_to_rows(by_item, single, several).by == "item"
    # The groups are the units: they must stay what is resampled.
    groups = [make_units(["a"]), make_units(["b"])]
    assert fit_unit_to_groups(by_item, groups, "item").by == "item"
    assert fit_unit_to_groups(by_item, groups, "phenomenon").by == ""


def test_within_one_unit_of_the_outer_level_the_inner_one_is_resampled() -> None:
    nested = Bootstrap(by="paradigm", within="item")
    inside = make_units(["a", "a", "b"], paradigms=["p", "p", "p"])
    assert (fit_unit_to_rows(nested, inside).by, fit_unit_to_rows(nested, inside).within) == ("item", "")
    across = make_units(["a", "a", "b"], paradigms=["p", "p", "q"])
    assert fit_unit_to_rows(nested, across) == nested
    rows = Bootstrap(by="paradigm", within="row")
    assert fit_unit_to_rows(rows, inside).by == ""


def test_few_units_are_remarked_on() -> None:
    def count(n: int) -> tuple[str, ...]:
        return note_few_units(make_units([str(i // 2) for i in range(2 * n)]), Bootstrap(by="item"))

    assert count(9) == ("only 9 items are resampled: an interval from so few is rough",)
    assert count(10) == ()
    # One unit has no interval, which is said elsewhere.
    assert count(1) == ()
    assert note_few_units(make_units(["a", "b"]), Bootstrap(by="")) == ()


def test_the_number_of_units_is_signed() -> None:
    units = make_units(["a", "a", "b"])
    assert sign_unit_count(units, Bootstrap(by="item")) == {"units": "2"}
    assert sign_unit_count(units, Bootstrap(by="")) == {}


def test_units_have_names() -> None:
    assert name_sampling_units("type_pair", 296, of_contrasts=True) == "296 pairs of types"
    assert name_sampling_units("type_pair", 236) == "236 groups of paired types"
    assert describe_suite_unit(make_suite("item")) == "item (8 sentences in 4 items, 4 contrasts in 4 items)"
    assert describe_suite_unit(make_suite("")) == "row (each sentence, or contrast, by itself)"


def test_a_suite_is_refused_whose_rows_lack_the_unit() -> None:
    sentences = (Sentence("a", "A.", tags={"item": "1"}), Sentence("b", "B.", tags={"item": "2"}))
    assert Suite("s", sentences, unit="item").unit_tags == ("item",)
    with pytest.raises(SuiteError, match=r"1 of 1 contrasts have no tag 'item', such as 'a > b', since its two"):
        Suite("s", sentences, (Contrast("a", "b"),), unit="item")
    with pytest.raises(SuiteError, match=r"2 of 2 sentences have no tag 'itm', such as 'a'.*Did you mean 'item'"):
        Suite("s", sentences, unit="itm")


def simulate(generator: np.random.Generator, units: int = 20, rows: int = 8) -> tuple[Units, Units]:
    """Two equally good models, whose answers differ between units far more than within them."""
    items = [str(i // rows) for i in range(units * rows)]
    both = [np.repeat(generator.random(units) < 0.6, rows) ^ (generator.random(units * rows) < 0.1) for _ in range(2)]
    first, second = (make_units(items, correct.astype(float).tolist()) for correct in both)
    return first, second


def test_permutations_by_unit_keep_the_level_where_those_by_row_do_not() -> None:
    generator = np.random.default_rng(5)
    ps = {"item": [], "": []}
    for seed in range(300):
        first, second = simulate(generator)
        for by, values in ps.items():
            values.append(permutation_test(PairAccuracy(), first, second, by=by, draws=199, seed=seed).p)
    alarms = {by: float(np.mean(np.array(values) < 0.05)) for by, values in ps.items()}
    # Two standard errors of a share of .05 in 300 are .025.
    assert 0.02 < alarms["item"] < 0.08
    assert alarms[""] > 0.25


def test_intervals_by_unit_cover_where_those_by_row_do_not() -> None:
    generator = np.random.default_rng(6)
    covered = {"item": 0, "": 0}
    for _ in range(200):
        units, _ = simulate(generator, units=40)
        for by in covered:
            interval = bootstrap_interval(PairAccuracy(), units, Bootstrap(by=by))
            # A unit is right with .6, and each of its rows is then wrong with .1, and the other way round.
            covered[by] += interval.low <= 0.6 * 0.9 + 0.4 * 0.1 <= interval.high
    assert covered["item"] >= 0.9 * 200
    assert covered[""] < 0.7 * 200
