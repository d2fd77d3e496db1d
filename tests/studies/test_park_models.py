"""A user's models on the three suites of Park et al.: tables, figures and tests, each counted a second way."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from acceptability.home import local_data
from acceptability.studies import study
from acceptability.studies.cells import Cell, printed
from acceptability.studies.park import linguistic_inquiry
from acceptability.studies.park_judged import Judged, Side, ask, by, repulsions, single_tokens
from acceptability.studies.park_statistics import figures, regressions, variance
from acceptability.studies.park_suites import DEKEYSER, OURS, Part, suites
from acceptability.studies.park_suites import ours as pairs
from acceptability.studies.park_tables import classes, convergence, error_types
from acceptability.suites.targets import with_targets
from acceptability.types import Contrast, Sentence, Suite

has_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="mini-masked needs torch")


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Side:
    if local_data() is None:
        pytest.skip("the published data are not here: set ACCEPTABILITY_DATA")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCEPTABILITY_HOME", str(tmp_path_factory.mktemp("home")))
        return ask(suites(linguistic_inquiry()), ["trigram"], "right", "local", None)


def made(model: str, part: str, repulsion: float, is_correct: bool) -> Judged:
    return Judged(model, part, "row", None, is_correct, repulsion)


@pytest.fixture
def drawn() -> Side:
    """Rows of two models and three suites, drawn by chance."""
    random, rows = np.random.default_rng(0), []
    for model in ("a", "b"):
        for part, shift in (("I", 60), ("II", 45), ("III", 40)):
            for _ in range(30):
                is_correct = bool(random.random() < 0.7)
                value = float(np.clip(random.normal(shift + 8 * is_correct, 15), 0, 100))
                rows.append(made(model, part, value, is_correct))
    return Side("left", ("a", "b"), (), {}, tuple(rows))


def _numbers(cells: list[Cell], row: str) -> dict[str, float | str | None]:
    return {cell.column: cell.ours for cell in cells if cell.row == row}


def test_tables_count_sentences(side: Side) -> None:
    cells = {(cell.row, cell.column): cell for cell in convergence(printed("park"), side)}
    assert len(side.of(part="I")) > 50
    for part, label in (("I", "ours"), ("III", "Sprouse et al. (2013)")):
        rows = side.of(part=part)
        right = sum(each.is_correct for each in rows)
        assert cells[f"trigram, right: {label}", "correct"].ours == f"{2 * right}/{2 * len(rows)}"
        assert cells[f"trigram, right: {label}", "correct %"].ours == pytest.approx(100 * right / len(rows))
    assert cells["trigram, right: ours", "correct"].paper == "172/186; 176/186"
    assert all(cell.agrees is None for cell in cells.values())


def test_types_without_a_pair_say_why(side: Side) -> None:
    cells = {(cell.row, cell.column): cell for cell in error_types(printed("park"), side)}
    none = cells["right: 2 negation", "correct"]
    assert none.ours == "0/0"
    assert none.note == "no pair is left: more than one difference"
    assert ("right: 2 negation", "class") not in cells
    asked = {each.kind for each in side.of(part="III")} - {None}
    assert sum(int(cell.ours) for cell in classes(side)) == len(asked)


def test_tukeys_tests_are_scipys(drawn: Side) -> None:
    cells = list(variance(printed("park"), drawn))
    groups = [repulsions(drawn.of(part=part)) for part in ("I", "II", "III")]
    expected = scipy.stats.tukey_hsd(*groups)
    ends = expected.confidence_interval(0.95)
    for i, j, name in ((0, 1, "I against II"), (0, 2, "I against III"), (1, 2, "II against III")):
        found = _numbers(cells, f"left: Tukey HSD, {name}")
        assert found["difference"] == pytest.approx(np.mean(groups[i]) - np.mean(groups[j]))
        assert found["p"] == pytest.approx(expected.pvalue[i, j], abs=1e-9)
        assert (found["low"], found["high"]) == pytest.approx((ends.low[i, j], ends.high[i, j]))


def test_tukeys_p_is_that_of_the_studentized_range(drawn: Side) -> None:
    groups = [np.array(repulsions(drawn.of(part=part))) for part in ("I", "II", "III")]
    n = sum(map(len, groups))
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in groups) / (n - 3)
    error = np.sqrt(within / 2 * (1 / len(groups[1]) + 1 / len(groups[2])))
    q = abs(groups[1].mean() - groups[2].mean()) / error
    found = _numbers(list(variance(printed("park"), drawn)), "left: Tukey HSD, II against III")
    assert found["p"] == pytest.approx(scipy.stats.studentized_range.sf(q, 3, n - 3), abs=1e-9)


def test_the_analysis_of_variance_has_the_papers_degrees_of_freedom(drawn: Side) -> None:
    cells = list(variance(printed("park"), drawn))
    assert _numbers(cells, "left: ANOVA")["residual df"] == len(drawn.rows) - 6
    for name, df in (("test suites", 2), ("interaction", 2), ("correctness", 1)):
        found = _numbers(cells, f"left: ANOVA, {name}")
        assert found["df"] == df
        assert found["p"] == pytest.approx(scipy.stats.f.sf(found["F"], df, len(drawn.rows) - 6))


def test_regressions_are_those_of_statsmodels_on_percentage_points(drawn: Side) -> None:
    api = pytest.importorskip("statsmodels.api")
    cells = list(regressions(printed("park"), drawn))
    table = api.add_constant(np.array(repulsions(drawn.rows)))
    for name, outcome in (("correctness", "is_correct"), ("version", "model")):
        y = [float(getattr(each, outcome) in (True, "b")) for each in drawn.rows]
        fit = api.Logit(y, table).fit(disp=0)
        found = _numbers(cells, f"left: logistic regression, {name}")
        assert (found["b"], found["SE"]) == pytest.approx((fit.params[1], fit.bse[1]), rel=1e-5)
        assert found["OR"] == pytest.approx(np.exp(fit.params[1]), rel=1e-5)


def test_figures_are_boxes_and_means(drawn: Side) -> None:
    cells = list(figures(drawn))
    assert {cell.table for cell in cells} == {"Figure 1", "Figure 2", "Figure 3"}
    first = repulsions(drawn.of(part="I"))
    found = _numbers(cells, "left: test suite I")
    assert found["n"] == "60"
    assert found["median"] == pytest.approx(np.median(first))
    assert found["mean"] == pytest.approx(np.mean(first))
    wrong = repulsions(each for each in drawn.of(part="II") if not each.is_correct)
    assert _numbers(cells, "left: test suite II, incorrect")["mean"] == pytest.approx(np.mean(wrong))
    assert sum(int(cell.ours) for cell in cells if cell.table == "Figure 3" and cell.column == "n") == 180


def test_rows_without_a_group_are_left_out() -> None:
    rows = [made("a", "I", 1.0, True), Judged("a", "III", "row", "voice", False, None)]
    assert by(rows, lambda each: each.kind) == {"voice": [rows[1]]}
    assert repulsions(rows) == [1.0]


def test_a_model_that_tells_nothing_apart_has_no_tests_but_reasons(data: Path) -> None:
    told: list[tuple[str, int, int]] = []
    found = study("park", ["uniform"], progress=lambda *each: told.append(each))
    ours = [cell for cell in found if cell.source == "re-scored with uniform"]
    cells = {(cell.table, cell.row, cell.column): cell for cell in ours}
    assert len(cells) == len(ours)
    assert all(cell.agrees is None for cell in ours)
    assert told[-1][1] == told[-1][2]
    of_inquiry = {key[1:]: cell.ours for key, cell in cells.items() if key[0] == "Linguistic Inquiry pairs"}
    assert {f"uniform, {side}: {name}" for side in ("left", "right") for name in ("all", "movement")} <= {
        row for row, _ in of_inquiry
    }
    assert of_inquiry["uniform, left: all", "repulsion"] == 0
    assert of_inquiry["uniform, left: all", "directionality"] == 0
    assert int(of_inquiry["uniform, left: all", "pairs"]) > 500
    assert of_inquiry["uniform, left: all", "class"] == "weakly mis-learned"
    beside = [each for each in with_targets(pairs())[0].contrasts if each.tags["edit"] in ("insertion", "deletion")]
    assert cells["Left out", "uniform, left: I", "pairs: kept, but tied"].ours == str(len(beside)) == "18"
    version = cells["Section 3.2", "left: logistic regression, version", "b"]
    assert version.ours is None
    assert "second model" in version.note
    assert cells["Section 3.2", "left: ANOVA", "residual df"].ours is None
    assert "no row has" in cells["Section 3.2", "left: ANOVA", "residual df"].note


@has_torch
def test_mini_masked_knows_most_of_our_pairs() -> None:
    part = Part("I", OURS, pairs(), {DEKEYSER: 196})
    found = ask([part], ["mini-masked"], "left", "local", None)
    assert (sum(each.is_correct for each in found.rows), len(found.rows)) == (77, 83)
    assert np.mean(repulsions(found.rows)) == pytest.approx(61.10, abs=0.05)


@has_torch
def test_words_of_several_tokens_are_left_out_and_targets_of_several_words_are_not() -> None:
    texts = {
        "phrase": ("The boy gave the girl a book.", "The boy gave a book the girl."),
        "rare": ("The xylophonist left early.", "The xylophonists left early."),
        "made up": ("The baby slept on the sofa.", "The baby sleeped on the sofa."),
    }
    sentences, contrasts = [], []
    for name, pair in texts.items():
        tags = {"nonword": "yes"} if name == "made up" else {}
        sentences += [Sentence(f"{name}/{place}", text, tags=tags) for place, text in enumerate(pair)]
        contrasts.append(Contrast(f"{name}/0", f"{name}/1", {**tags, "name": name}))
    part = Part("I", "mine", Suite("mine", tuple(sentences), tuple(contrasts)), {DEKEYSER: 6})
    found = ask([part], ["mini-masked"], "left", "local", None).found["mini-masked", "I"]
    assert [each.tags["name"] for each in found.suite.contrasts] == ["phrase", "made up"]
    assert [(each.contrast, each.reason) for each in found.exclusions] == [
        ("rare/0 > rare/1", "a word of the target is several tokens")
    ]
    assert single_tokens(found).suite.contrasts == ()


@has_torch
@pytest.mark.slow
def test_mini_masked_finds_suite_i_easiest_as_bert_does(data: Path) -> None:
    found = {(cell.table, cell.row, cell.column): cell.ours for cell in study("park", ["mini-masked"])}
    assert found["Table 2", "mini-masked, left: ours", "correct"] == "154/166"
    assert found["Table 2", "mini-masked, left: II", "correct"] == "274/330"
    assert found["Table 2", "mini-masked, left: Sprouse et al. (2013)", "correct"] == "720/984"
    assert found["Section 3.2", "left: ANOVA", "residual df"] == 734
    first, others = found["Figure 2", "left: test suite I", "mean"], ("II", "III")
    assert all(first > found["Figure 2", f"left: test suite {part}", "mean"] + 10 for part in others)
