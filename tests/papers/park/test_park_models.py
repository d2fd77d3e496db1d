"""A user's models on the three suites of Park et al.: tables, figures and tests, each computed a second way."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from acceptability.papers import study
from acceptability.papers.cells import Cell, read_published_values
from acceptability.papers.park import load_linguistic_inquiry
from acceptability.papers.park.park_suites import DEKEYSER, OURS, ParkSuite, load_own_pairs, load_park_suites
from acceptability.papers.park.park_tables import (
    ContrastOutcome,
    SideResults,
    collect_repulsions,
    compute_anova,
    compute_figures,
    compute_regressions,
    compute_table_2,
    compute_table_4,
    count_classes,
    group_outcomes,
    keep_single_tokens,
    score_suites,
)
from acceptability.paths import local_data_folder
from acceptability.suites.targets import add_targets
from acceptability.types import Contrast, Sentence, Suite

has_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="mini-masked needs torch")


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> SideResults:
    if local_data_folder() is None:
        pytest.skip("the published data are not here: set ACCEPTABILITY_DATA")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEPTABILITY_HOME", str(tmp_path_factory.mktemp("home")))
        return score_suites(load_park_suites(load_linguistic_inquiry()), ["trigram"], "right", "local", None)


def make_outcome(model: str, part: str, repulsion: float, is_correct: bool) -> ContrastOutcome:
    return ContrastOutcome(model, part, "row", None, is_correct, repulsion)


@pytest.fixture
def random_side() -> SideResults:
    """Rows of two models and three suites, drawn at random."""
    random, rows = np.random.default_rng(0), []
    for model in ("a", "b"):
        for part, shift in (("I", 60), ("II", 45), ("III", 40)):
            for _ in range(30):
                is_correct = bool(random.random() < 0.7)
                value = float(np.clip(random.normal(shift + 8 * is_correct, 15), 0, 100))
                rows.append(make_outcome(model, part, value, is_correct))
    return SideResults("left", ("a", "b"), (), {}, tuple(rows))


def _numbers(cells: list[Cell], row: str) -> dict[str, float | str | None]:
    return {cell.column: cell.ours for cell in cells if cell.row == row}


def test_tables_count_sentences(side: SideResults) -> None:
    cells = {(cell.row, cell.column): cell for cell in compute_table_2(read_published_values("park"), side)}
    assert len(side.filter_rows(part="I")) > 50
    for part, label in (("I", "ours"), ("III", "Sprouse et al. (2013)")):
        rows = side.filter_rows(part=part)
        right = sum(row.is_correct for row in rows)
        assert cells[f"trigram, right: {label}", "correct"].ours == f"{2 * right}/{2 * len(rows)}"
        assert cells[f"trigram, right: {label}", "correct %"].ours == pytest.approx(100 * right / len(rows))
    assert cells["trigram, right: ours", "correct"].paper == "172/186; 176/186"
    assert all(cell.agrees is None for cell in cells.values())


def test_types_without_a_pair_have_a_reason(side: SideResults) -> None:
    cells = {(cell.row, cell.column): cell for cell in compute_table_4(read_published_values("park"), side)}
    none = cells["right: 2 negation", "correct"]
    assert none.ours == "0/0"
    assert none.note == "no pair is left: more than one difference"
    assert ("right: 2 negation", "class") not in cells
    kinds = {row.kind for row in side.filter_rows(part="III")} - {None}
    assert sum(int(cell.ours) for cell in count_classes(side)) == len(kinds)


def test_tukeys_tests_are_scipys(random_side: SideResults) -> None:
    cells = list(compute_anova(read_published_values("park"), random_side))
    groups = [collect_repulsions(random_side.filter_rows(part=part)) for part in ("I", "II", "III")]
    expected = scipy.stats.tukey_hsd(*groups)
    ends = expected.confidence_interval(0.95)
    for i, j, name in ((0, 1, "I against II"), (0, 2, "I against III"), (1, 2, "II against III")):
        found = _numbers(cells, f"left: Tukey HSD, {name}")
        assert found["difference"] == pytest.approx(np.mean(groups[i]) - np.mean(groups[j]))
        assert found["p"] == pytest.approx(expected.pvalue[i, j], abs=1e-9)
        assert (found["low"], found["high"]) == pytest.approx((ends.low[i, j], ends.high[i, j]))


def test_tukeys_p_is_that_of_the_studentized_range(random_side: SideResults) -> None:
    groups = [np.array(collect_repulsions(random_side.filter_rows(part=part))) for part in ("I", "II", "III")]
    n = sum(map(len, groups))
    within = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / (n - 3)
    error = np.sqrt(within / 2 * (1 / len(groups[1]) + 1 / len(groups[2])))
    q = abs(groups[1].mean() - groups[2].mean()) / error
    found = _numbers(list(compute_anova(read_published_values("park"), random_side)), "left: Tukey HSD, II against III")
    assert found["p"] == pytest.approx(scipy.stats.studentized_range.sf(q, 3, n - 3), abs=1e-9)


def test_the_analysis_of_variance_has_the_papers_degrees_of_freedom(random_side: SideResults) -> None:
    cells = list(compute_anova(read_published_values("park"), random_side))
    assert _numbers(cells, "left: ANOVA")["residual df"] == len(random_side.rows) - 6
    for name, df in (("test suites", 2), ("interaction", 2), ("correctness", 1)):
        found = _numbers(cells, f"left: ANOVA, {name}")
        assert found["df"] == df
        assert found["p"] == pytest.approx(scipy.stats.f.sf(found["F"], df, len(random_side.rows) - 6))


def test_regressions_are_those_of_statsmodels_on_percentage_points(random_side: SideResults) -> None:
    api = pytest.importorskip("statsmodels.api")
    cells = list(compute_regressions(read_published_values("park"), random_side))
    table = api.add_constant(np.array(collect_repulsions(random_side.rows)))
    for name, outcome in (("correctness", "is_correct"), ("version", "model")):
        y = [float(getattr(each, outcome) in (True, "b")) for each in random_side.rows]
        fit = api.Logit(y, table).fit(disp=0)
        found = _numbers(cells, f"left: logistic regression, {name}")
        assert (found["b"], found["SE"]) == pytest.approx((fit.params[1], fit.bse[1]), rel=1e-5)
        assert found["OR"] == pytest.approx(np.exp(fit.params[1]), rel=1e-5)


def test_figures_are_boxes_and_means(random_side: SideResults) -> None:
    cells = list(compute_figures(random_side))
    assert {cell.table for cell in cells} == {"Figure 1", "Figure 2", "Figure 3"}
    first = collect_repulsions(random_side.filter_rows(part="I"))
    found = _numbers(cells, "left: test suite I")
    assert found["n"] == "60"
    assert found["median"] == pytest.approx(np.median(first))
    assert found["mean"] == pytest.approx(np.mean(first))
    wrong = collect_repulsions(each for each in random_side.filter_rows(part="II") if not each.is_correct)
    assert _numbers(cells, "left: test suite II, incorrect")["mean"] == pytest.approx(np.mean(wrong))
    assert sum(int(cell.ours) for cell in cells if cell.table == "Figure 3" and cell.column == "n") == 180


def test_rows_without_a_group_are_dropped() -> None:
    rows = [make_outcome("a", "I", 1.0, True), ContrastOutcome("a", "III", "row", "voice", False, None)]
    assert group_outcomes(rows, lambda each: each.kind) == {"voice": [rows[1]]}
    assert collect_repulsions(rows) == [1.0]


def test_a_model_without_preferences_has_reasons_instead_of_tests(data: Path) -> None:
    updates: list[tuple[str, int, int]] = []
    found = study("park", ["uniform"], progress=lambda *update: updates.append(update))
    ours = [cell for cell in found if cell.source == "re-scored with uniform"]
    cells = {(cell.table, cell.row, cell.column): cell for cell in ours}
    assert len(cells) == len(ours)
    assert all(cell.agrees is None for cell in ours)
    assert updates[-1][1] == updates[-1][2]
    of_inquiry = {key[1:]: cell.ours for key, cell in cells.items() if key[0] == "Linguistic Inquiry pairs"}
    assert {f"uniform, {side}: {name}" for side in ("left", "right") for name in ("all", "movement")} <= {
        row for row, _ in of_inquiry
    }
    assert of_inquiry["uniform, left: all", "repulsion"] == 0
    assert of_inquiry["uniform, left: all", "directionality"] == 0
    assert int(of_inquiry["uniform, left: all", "pairs"]) > 500
    assert of_inquiry["uniform, left: all", "class"] == "weakly mis-learned"
    tied = [
        each for each in add_targets(load_own_pairs())[0].contrasts if each.tags["edit"] in ("insertion", "deletion")
    ]
    assert cells["Left out", "uniform, left: I", "pairs: kept, but tied"].ours == str(len(tied)) == "18"
    version = cells["Section 3.2", "left: logistic regression, version", "b"]
    assert version.ours is None
    assert "second model" in version.note
    assert cells["Section 3.2", "left: ANOVA", "residual df"].ours is None
    assert "no row has" in cells["Section 3.2", "left: ANOVA", "residual df"].note


@has_torch
def test_mini_masked_is_right_on_most_of_our_pairs() -> None:
    part = ParkSuite("I", OURS, load_own_pairs(), {DEKEYSER: 196})
    found = score_suites([part], ["mini-masked"], "left", "local", None)
    assert (sum(each.is_correct for each in found.rows), len(found.rows)) == (77, 83)
    assert np.mean(collect_repulsions(found.rows)) == pytest.approx(61.10, abs=0.05)


@has_torch
def test_words_of_several_tokens_are_dropped_and_targets_of_several_words_are_not() -> None:
    texts = {
        "phrase": ("The boy gave the girl a book.", "The boy gave a book the girl."),
        "rare": ("The xylophonist left early.", "The xylophonists left early."),
        "made up": ("The baby slept on the sofa.", "The baby sleeped on the sofa."),
    }
    sentences, contrasts = [], []
    for name, pair in texts.items():
        tags = {"nonword": "yes"} if name == "made up" else {}
        sentences += [Sentence(f"{name}/{index}", text, tags=tags) for index, text in enumerate(pair)]
        contrasts.append(Contrast(f"{name}/0", f"{name}/1", {**tags, "name": name}))
    part = ParkSuite("I", "mine", Suite("mine", tuple(sentences), tuple(contrasts)), {DEKEYSER: 6})
    found = score_suites([part], ["mini-masked"], "left", "local", None).contrasts["mini-masked", "I"]
    assert [each.tags["name"] for each in found.suite.contrasts] == ["phrase", "made up"]
    assert [(each.contrast, each.reason) for each in found.exclusions] == [
        ("rare/0 > rare/1", "a word of the target is several tokens")
    ]
    assert keep_single_tokens(found).suite.contrasts == ()


@has_torch
@pytest.mark.slow
def test_suite_i_is_easiest_for_mini_masked_as_for_bert(data: Path) -> None:
    found = {(cell.table, cell.row, cell.column): cell.ours for cell in study("park", ["mini-masked"])}
    assert found["Table 2", "mini-masked, left: ours", "correct"] == "154/166"
    assert found["Table 2", "mini-masked, left: II", "correct"] == "274/330"
    assert found["Table 2", "mini-masked, left: Sprouse et al. (2013)", "correct"] == "720/984"
    assert found["Section 3.2", "left: ANOVA", "residual df"] == 734
    first, others = found["Figure 2", "left: test suite I", "mean"], ("II", "III")
    assert all(first > found["Figure 2", f"left: test suite {part}", "mean"] + 10 for part in others)
