from __future__ import annotations

import numpy as np
import pytest

from acceptability import PairAccuracy
from acceptability.errors import MeasureError, Undefined
from acceptability.stats.bootstrap import Bootstrap, difference, interval, spread
from acceptability.types import Units


def rows(correct: list[float], items: list[str] | None = None) -> Units:
    tags = tuple({"item": item} for item in items) if items else ({},) * len(correct)
    return Units(tuple(map(str, range(len(correct)))), {"correct": np.array(correct)}, tags)


def test_coverage_is_near_nominal() -> None:
    generator = np.random.default_rng(7)
    hits = 0
    for seed in range(300):
        sample = (generator.random(150) < 0.7).astype(float)
        low, high = interval(PairAccuracy(), rows(sample.tolist()), Bootstrap(300, seed=seed))
        hits += low <= 0.7 <= high
    assert 0.91 <= hits / 300 <= 0.985


def test_the_seed_decides() -> None:
    units = rows([1.0, 0.0] * 20)
    one, same, other = (interval(PairAccuracy(), units, Bootstrap(200, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_clusters_are_drawn_whole() -> None:
    alone = rows([1.0] * 50 + [0.0] * 50)
    clustered = rows([1.0] * 50 + [0.0] * 50, ["a"] * 50 + ["b"] * 50)
    narrow = interval(PairAccuracy(), alone, Bootstrap(300))
    wide = interval(PairAccuracy(), clustered, Bootstrap(300, by="item"))
    assert wide == (0.0, 1.0)
    assert narrow[1] - narrow[0] < 0.25
    with pytest.raises(MeasureError, match="100 of 100 rows lack that tag"):
        interval(PairAccuracy(), alone, Bootstrap(300, by="item"))


def test_a_paired_difference_is_narrower_than_two_samples() -> None:
    generator = np.random.default_rng(1)
    first = (generator.random(400) < 0.6).astype(float)
    second = first.copy()
    second[:20] = 0
    low, high = difference(PairAccuracy(), rows(first.tolist()), rows(second.tolist()), Bootstrap(500))
    assert 0 < low < first.mean() - second.mean() < high < 0.06


def test_no_interval_without_resamples_or_where_most_are_undefined() -> None:
    assert interval(PairAccuracy(), rows([1.0, 0.0]), Bootstrap(0)) == (None, None)

    def undefined(generator: np.random.Generator) -> float:
        if generator.random() < 0.5:
            raise Undefined("by chance")
        return 1.0

    assert spread(undefined, Bootstrap(100)) == (None, None)


@pytest.mark.parametrize("wrong", [{"resamples": -1}, {"resamples": 1}, {"level": 1.0}, {"seed": -1}])
def test_wrong_settings(wrong: dict[str, float]) -> None:
    with pytest.raises(MeasureError):
        Bootstrap(**wrong)
