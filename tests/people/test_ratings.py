"""Ratings computed from answers, compared with SciPy and by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from acceptability.errors import AcceptabilityError, MeasureError, ReportError, Undefined
from acceptability.people import RatingRules, Responses, rate
from acceptability.people.ratings import MAD, SD, build_rating_rows, parse_outlier_rule, standardise_participants
from acceptability.people.responses import responses_from_rows
from acceptability.stats.proportions import mean_interval, proportion_interval, sign_test
from acceptability.suites import load_suite
from acceptability.text.io import write_rows
from acceptability.types import Sentence

NAN = np.nan


def random_table(seed: int = 1, people: int = 9, sentences: int = 12) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = np.clip(np.round(generator.normal(4, 1.5, (people, sentences))), 1, 7)
    values[generator.random(values.shape) < 0.2] = NAN
    return values


@pytest.mark.parametrize("ddof", [0, 1])
def test_z_scores_equal_scipys(ddof: int) -> None:
    values = random_table()
    np.testing.assert_allclose(
        standardise_participants(values, ddof=ddof),
        stats.zscore(values, axis=1, ddof=ddof, nan_policy="omit"),
        atol=1e-12,
    )


def test_ratings_are_means_of_z_with_scipys_t_interval() -> None:
    values = random_table()
    ratings = rate(responses_from_rows("toy", "likert", np.where(np.isnan(values), None, values).tolist()))
    z = stats.zscore(values, axis=1, ddof=1, nan_policy="omit")
    for row, column in zip(ratings.rows, z.T, strict=True):
        kept = column[~np.isnan(column)]
        test = stats.ttest_1samp(kept, 0).confidence_interval(0.95)
        assert (row.mean, row.sd, row.n) == pytest.approx((kept.mean(), kept.std(ddof=1), len(kept)), abs=1e-12)
        assert (row.low, row.high) == pytest.approx((test.low, test.high), abs=1e-9)
    assert ratings.unit == "z"


def test_magnitude_estimates_are_logged_first() -> None:
    ratings = rate(responses_from_rows("toy", "magnitude", [[1, 10, 100], [5, 50, 500]]))
    assert [row.mean for row in ratings.rows] == pytest.approx([-1, 0, 1], abs=1e-12)
    raw = rate(responses_from_rows("toy", "magnitude", [[1, np.e]]), RatingRules(scale="raw"))
    assert ([row.mean for row in raw.rows], raw.unit) == (pytest.approx([0, 1]), "log")


def test_yes_and_no_are_shares_with_exact_intervals() -> None:
    ratings = rate(responses_from_rows("toy", "yes-no", [[1, 1], [1, 0], [1, None]]))
    first, second = ratings.rows
    exact = stats.binomtest(3, 3).proportion_ci(0.95, method="exact")
    assert (first.mean, first.n, first.low, first.high) == pytest.approx((1, 3, exact.low, exact.high), abs=1e-9)
    assert (second.mean, second.n, ratings.unit) == (0.5, 2, "share")


def test_one_answer_has_no_deviation_and_no_interval() -> None:
    (row,) = rate(responses_from_rows("toy", "likert", [[3]]), RatingRules(scale="raw")).rows
    assert (row.mean, row.sd, row.low, row.high, row.n) == (3.0, None, None, None, 1)


def test_equal_answers_have_an_interval_without_width() -> None:
    (row,) = rate(responses_from_rows("toy", "likert", [[3], [3]]), RatingRules(scale="raw")).rows
    assert (row.mean, row.sd, row.low, row.high) == (3.0, 0.0, 3.0, 3.0)


def test_participants_with_constant_answers_are_excluded_by_name() -> None:
    ratings = rate(responses_from_rows("toy", "likert", [[4, 4, 4], [1, 2, 3], [None, 5, None]]))
    assert ratings.participants == ("2",)
    assert set(ratings.left_out) == {"1", "3"}
    assert "2 of 3 participants left out: 1, 3 gave one and the same answer to everything" in ratings.notes
    with pytest.raises(MeasureError, match="none of 1 participants is left"):
        rate(responses_from_rows("toy", "likert", [[4, 4]]))
    with pytest.raises(Undefined):
        standardise_participants(np.array([[4.0, 4.0]]))


def test_too_few_answers_and_a_sentence_without_any() -> None:
    ratings = rate(
        responses_from_rows("toy", "likert", [[1, 2, None], [1, 3, None], [None, 1, 5]]),
        RatingRules(min_responses=2, scale="raw"),
    )
    assert not ratings.left_out
    strict = rate(
        responses_from_rows("toy", "likert", [[1, 2, None], [1, 3, None], [None, None, 5]]),
        RatingRules(min_responses=2),
    )
    assert strict.left_out == {"3": "gave fewer than 2 answers"}
    assert strict.rows[2].mean is None
    assert "1 sentences have no answer left, and no rating" in strict.notes


def with_catch(kind: str, values: list[list[float]], catch: dict[str, int]) -> Responses:
    plain = responses_from_rows("toy", kind, values)
    return Responses("toy", kind, plain.participants, plain.sentences, plain.values, catch)


def test_catch_items_leave_out_the_inattentive_and_are_not_rated() -> None:
    values = [[1, 1, 7, 7], [6, 1, 2, 7], [7, 6, 1, 1]]
    responses = with_catch("likert", values, {"1": 0, "4": 1})
    ratings = rate(responses, RatingRules(min_catch=0.8))
    assert set(ratings.left_out) == {"2", "3"}
    assert [row.sentence.id for row in ratings.rows] == ["2", "3"]
    assert set(rate(responses, RatingRules(min_catch=0.5)).left_out) == {"3"}
    yes = with_catch("yes-no", [[1, 0], [0, 1]], {"1": 1})
    assert set(rate(yes, RatingRules(min_catch=1)).left_out) == {"2"}
    with pytest.raises(MeasureError, match="all 2 sentences are catch items"):
        rate(with_catch("yes-no", [[1, 0]], {"1": 1, "2": 0}))


def test_outliers_by_standard_deviation_and_by_median() -> None:
    row = np.array([[1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 1.0, 1.02, 0.98, 1.01, 0.99, 50.0, NAN]])
    given = row[~np.isnan(row)]
    expected = np.abs(given - given.mean()) > 3 * given.std(ddof=1)
    assert SD(3).find_outliers(row)[0, :-1].tolist() == expected.tolist()
    assert expected.sum() == 1
    modified = stats.norm.ppf(0.75) * np.abs(given - np.median(given)) / stats.median_abs_deviation(given)
    assert MAD(3.5).find_outliers(row)[0, :-1].tolist() == (modified > 3.5).tolist()
    np.testing.assert_array_equal(SD(3, over="sentence").find_outliers(row.T), SD(3).find_outliers(row).T)


def test_where_half_of_the_answers_are_the_same_the_median_rule_leaves_nothing_out() -> None:
    values = [[1, 1, 1, 9], [2, 2, 2, 2], [1, 2, 3, 9]]
    assert not MAD().find_outliers(np.array(values[:2], dtype=float)).any()
    assert MAD().count_undecidable(np.array(values, dtype=float)) == 1
    notes = rate(responses_from_rows("toy", "likert", values), RatingRules(scale="raw", outliers=MAD(3.5))).notes
    assert "1 groups in which more than half of the answers are the same were not searched for outliers" in notes
    assert not SD().find_outliers(np.array([[5.0]])).any()


def test_outliers_are_counted_in_the_notes() -> None:
    values = [[1, 1, 1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 90]]
    ratings = rate(responses_from_rows("toy", "likert", values), RatingRules(outliers=parse_outlier_rule("sd(3)")))
    assert "1 answers left out as outliers by SD(limit=3.0, over='participant')" in ratings.notes
    assert ratings.rows[-1].n == 0


@pytest.mark.parametrize(
    "text", ["iqr(2)", "sd(0)", "sd('three')", "mad(3, over='item')", "sd(3, 'participant', 4)", "sd("]
)
def test_invalid_outlier_rules(text: str) -> None:
    with pytest.raises(AcceptabilityError):
        parse_outlier_rule(text)


@pytest.mark.parametrize(
    "options", [{"scale": "log"}, {"ddof": 2}, {"min_catch": 2.0}, {"min_responses": 0}, {"level": 1.0}]
)
def test_rules_are_checked(options: dict[str, object]) -> None:
    with pytest.raises(MeasureError):
        RatingRules(**options)


@given(st.integers(0, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_shares_and_sign_tests_are_scipys(drawn: tuple[int, int]) -> None:
    hits, n = drawn
    if n == 0:
        assert proportion_interval(0, 0) == (None, None)
        with pytest.raises(Undefined):
            sign_test(0, 0)
        return
    test = stats.binomtest(hits, n, 0.5)
    exact = test.proportion_ci(0.9, method="exact")
    assert proportion_interval(hits, n, 0.9) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert sign_test(hits, n) == pytest.approx(test.pvalue, abs=1e-9)


def test_impossible_shares_and_levels() -> None:
    for wrong in (lambda: proportion_interval(3, 2), lambda: sign_test(-1, 2), lambda: proportion_interval(1, 2, 1.5)):
        with pytest.raises(MeasureError):
            wrong()
    assert mean_interval(np.array([1.0])) == (None, None)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl"])
def test_written_ratings_load_as_a_suite(tmp_path: Path, name: str) -> None:
    sentences = (Sentence("a", 'He said, "No."', 1, tags={"n": "x", "genre": "news"}), Sentence("b", "So\tit is.", 0))
    responses = Responses("toy", "likert", ("p", "q"), sentences, np.array([[1.0, 3.0], [2.0, 7.0]]))
    ratings = rate(responses)
    write_rows(tmp_path / name, build_rating_rows(ratings))
    suite = load_suite(str(tmp_path / name))
    assert [sentence.text for sentence in suite.sentences] == [sentence.text for sentence in sentences]
    assert [sentence.rating for sentence in suite.sentences] == [row.mean for row in ratings.rows]
    assert [sentence.label for sentence in suite.sentences] == [1, 0]
    first = suite.sentences[0].tags
    assert (first["rating_unit"], first["n"], first["tag_n"], first["genre"]) == ("z", "2", "x", "news")
    assert [sentence.rating for sentence in ratings.to_suite().sentences] == [row.mean for row in ratings.rows]


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"expected one of the suffixes"):
        write_rows(tmp_path / "out.xlsx", [])
    with pytest.raises(ReportError, match="cannot write"):
        write_rows(tmp_path / "none" / "out.csv", [])
