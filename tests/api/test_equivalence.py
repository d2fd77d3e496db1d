"""Equivalence of models on a suite: which test is taken, what it says, and that a signature gives it again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acceptability import Bootstrap, Scores, Sentence, Suite, equivalence, reproduce
from acceptability.cli import app
from acceptability.errors import MeasureError
from acceptability.specs import parse_signature
from acceptability.stats import equivalence_of_means, equivalence_of_proportions
from acceptability.types import make_contrast

N = 120
SENTENCES = tuple(
    Sentence(f"{i}", f"Sentence {i}.", label=1 - i % 2, tags={"item": str(i // 8), "pair": str(i // 2)})
    for i in range(2 * N)
)
SUITE = Suite("made", SENTENCES, tuple(make_contrast(SENTENCES[i], SENTENCES[i + 1]) for i in range(0, 2 * N, 2)))


def make_scores(wrong: set[int], name: str) -> Scores:
    return Scores({str(i): float((i % 2 == 0) != (i // 2 in wrong)) + 0.001 * i for i in range(2 * N)}, name)


FIRST, SECOND = make_scores({0, 1, 2, 3}, "first"), make_scores({0, 1, 2, 5, 6}, "second")
RIGHT_FIRST = np.array([i not in {0, 1, 2, 3} for i in range(N)], dtype=float)
RIGHT_SECOND = np.array([i not in {0, 1, 2, 5, 6} for i in range(N)], dtype=float)


def test_independent_right_and_wrong_rows_get_score_tests() -> None:
    (test,) = equivalence(SUITE, [FIRST, SECOND], ["PairAccuracy"], margin=0.06)
    expected = equivalence_of_proportions(RIGHT_FIRST, RIGHT_SECOND, 0.06)
    assert (test.p, test.low, test.high, test.verdict) == (expected.p, expected.low, expected.high, "equivalent")
    assert (test.unit, test.n) == ("row", N)
    fields = parse_signature(test.signature)
    assert fields["test"].startswith("tost(margin=0.06,alpha=0.05,by=row,score test of paired proportions")
    assert fields["ci"] == "test inverted(0.9)"
    # A unit of single rows is no cluster.
    (single,) = equivalence(SUITE, [FIRST, SECOND], ["PairAccuracy"], margin=0.06, bootstrap=Bootstrap(by="pair"))
    assert (single.p, single.unit) == (test.p, "row")


def test_rows_in_clusters_get_t_tests() -> None:
    (test,) = equivalence(SUITE, [FIRST, SECOND], ["PairAccuracy"], margin=0.06, bootstrap=Bootstrap(by="item"))
    items = np.arange(N) // 4
    expected = equivalence_of_means(RIGHT_FIRST, RIGHT_SECOND, 0.06, clusters=items)
    assert (test.p, test.low, test.high) == pytest.approx((expected.p, expected.low, expected.high), abs=1e-12)
    assert test.method == "t test of paired differences, by cluster, df = 29"


def test_other_measures_are_resampled() -> None:
    bootstrap = Bootstrap(resamples=400, by="item", seed=3)
    (test,) = equivalence(SUITE, [FIRST, SECOND], ["AUC"], margin=0.1, bootstrap=bootstrap)
    assert test.method == "percentile bootstrap of the paired difference"
    assert test.low < test.difference < test.high
    # At other margins the same resamples say something else.
    (narrow,) = equivalence(SUITE, [FIRST, SECOND], ["AUC"], margin=0.0001, bootstrap=bootstrap)
    assert (narrow.low, narrow.high) == (test.low, test.high)
    assert narrow.p > test.p
    assert parse_signature(test.signature)["ci"] == "percentile(0.9,resamples=400,by=item,seed=3)"


def test_what_cannot_be_tested_has_a_reason() -> None:
    (test,) = equivalence(SUITE, [FIRST, FIRST], ["PBC"], margin=0.1, bootstrap=Bootstrap(resamples=40))
    assert (test.verdict, test.difference) == ("equivalent", 0.0)
    (same,) = equivalence(SUITE, [FIRST, FIRST], ["GradientPair"], margin=0.1, bootstrap=Bootstrap(by="item"))
    assert same.reason == "all differences are the same, so that nothing says how much they vary"
    assert (same.p, same.verdict) == (None, None)
    with pytest.raises(MeasureError, match="two models; there are 1"):
        equivalence(SUITE, [FIRST], margin=0.1)


@pytest.mark.parametrize("options", [[], ["--resample-by", "phenomenon"], ["-M", "AUC", "--resamples", "200"]])
def test_the_command_is_reproducible(own_home: Path, options: list[str]) -> None:
    arguments = ["equivalence", "starter", "-m", "trigram", "-m", "uniform", "--margin", ".05", "--json"]
    done = CliRunner().invoke(app, [*arguments, *(options if "-M" in options else ["-M", "PairAccuracy", *options])])
    assert done.exit_code == 0, done.exception
    (row,) = json.loads(done.stdout)
    assert row["p"] == max(row["p_lower"], row["p_upper"])
    (again,) = reproduce(row["signature"])
    assert again.status == "equal"


def test_the_table_fits_80_columns(own_home: Path) -> None:
    arguments = ["equivalence", "starter", "-m", "trigram", "-m", "uniform", "--margin", ".05", "-M", "PairAccuracy"]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.exception
    assert "90 % interval" in done.stdout
    assert "different by more than the margin" in done.stdout
    assert "score test of paired proportions (Tango 1998), over 383 single rows" in done.stderr
    assert CliRunner().invoke(app, [*arguments[:-4], "--margin", "0"]).exit_code != 0
