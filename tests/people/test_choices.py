"""Forced choice."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy import stats

from acceptability.errors import SuiteError
from acceptability.people.choices import build_choice_rows, read_choices, summarise_choices
from acceptability.suites import load_suite
from acceptability.text.io import write_rows


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "choices.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_shares_intervals_and_sign_tests(tmp_path: Path) -> None:
    rows = [f"p{n},1,{'good' if n < 9 else 'bad'}" for n in range(10)] + [f"p{n},2,{n % 2}" for n in range(4)]
    result = read_choices(written(tmp_path, "participant,pair,chosen\n" + "\n".join(rows) + "\np0,3,\n"))
    first, second, third = result.pairs
    test = stats.binomtest(9, 10)
    exact = test.proportion_ci(method="exact")
    assert (first.share, first.n) == (0.9, 10)
    assert (first.low, first.high, first.p) == pytest.approx((exact.low, exact.high, test.pvalue), abs=1e-9)
    assert (second.share, second.p) == (0.5, 1.0)
    assert (third.share, third.low, third.p, third.n) == (None, None, None, 0)
    assert (result.notes, result.participants) == (("1 choices are missing",), 10)
    everything = summarise_choices(result)
    assert (everything["choices"], everything["pairs_won"], everything["pairs_lost"]) == (14, 1, 0)
    assert (everything["pairs_tied"], everything["share"]) == (2, pytest.approx(11 / 14))


def test_a_choice_may_be_the_text_of_the_sentence(tmp_path: Path) -> None:
    text = "subject,item,good,bad,choice\na,1,A b.,B a.,A b.\nb,1,A b.,B a.,B a.\nb,2,C d.,D c.,better\n"
    result = read_choices(written(tmp_path, text))
    assert [(pair.hits, pair.n) for pair in result.pairs] == [(1, 2), (1, 1)]
    write_rows(tmp_path / "out.csv", build_choice_rows(result))
    suite = load_suite(str(tmp_path / "out.csv"))
    assert (len(suite.contrasts), suite.contrasts[0].tags["share"]) == (2, "0.5")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("participant,pair,chosen\na,1,left\n", "line 2: chosen is 'left'; expected good or bad"),
        ("participant,pair,chosen\na,1,good\na,1,bad\n", "line 3: 'a' chose in pair '1' already in line 2"),
        ("participant,pair,chosen\na,,good\n", "line 2: a choice needs a participant and a pair"),
        ("participant,pair,chosen\na,1,\n", "has no choices"),
        ("participant,chosen\na,1\n", "no column for the pair"),
        ("participant,pair,good,bad,chosen\na,1,A.,B.,1\nb,1,A.,C.,1\n", "line 3: pair '1' has different sentences"),
        ("participant,pair,good,bad,chosen\na,1,A.,A.,A.\n", "line 2: chosen is 'A.'"),
    ],
)
def test_bad_choices_are_errors_with_their_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SuiteError) as caught:
        read_choices(written(tmp_path, text))
    assert message in str(caught.value)
