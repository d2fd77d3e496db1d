from __future__ import annotations

import pytest
from scipy import stats

from acceptability import load_suite
from acceptability.review import review
from acceptability.stats.power import critical, power
from acceptability.suites.pairs import pair, suite_of_pairs
from acceptability.types import Contrast, Sentence, Suite


def kinds(suite: Suite, **options: object) -> dict[str, tuple[str, ...]]:
    return {each.kind: each.ids for each in review(suite, **options)}


def test_blimp_has_seven_identical_pairs(data) -> None:
    found = kinds(load_suite("blimp"))
    assert len(found["identical pair"]) == 7
    assert {name.split("/")[1] for name in found["identical pair"]} == {"passive_1", "principle_A_case_2"}


def test_li_adger_has_two_identical_pairs_and_two_unrated_sentences(data) -> None:
    found = kinds(load_suite("li_adger"))
    assert found["identical pair"] == (
        "34.4.boskovic.4c.g.01 > 34.4.boskovic.3c.*.01",
        "ch8.62.g.06 > ch8.64.*.06",
    )
    assert found["unrated sentence"] == ("ch6.93.*.01", "ch6.93.g.09")


def test_our_own_suite_passes() -> None:
    assert kinds(load_suite("starter")) == {}


def test_each_fault_is_found() -> None:
    good, bad = Sentence("a", "Cats sleep.", 0), Sentence("b", "Cats sleeps.", 1)
    rest = (Sentence("c", "Cats sleep.", 1), Sentence("d", "CafÃ© au lait.", None), Sentence("e", "Tom &amp; me.", 1))
    found = kinds(Suite("s", (good, bad, *rest), (Contrast("a", "b"),)))
    assert found["label against contrast"] == ("a > b",)
    assert found["labels contradict"] == ("a", "c")
    assert found["duplicate sentence"] == ("a", "c")
    assert found["encoding damage"] == ("d", "e")
    assert found["unlabelled sentence"] == ("d",)
    assert "too few items" in found


def test_imbalances_are_found_in_pairs_and_in_labels() -> None:
    rows = [pair(str(number), "The cat is here.", f"The cat is {number} over here now.", {}) for number in range(40)]
    suite = suite_of_pairs("s", rows)
    assert "length imbalance" in kinds(suite)
    assert "length imbalance" in kinds(Suite("s", suite.sentences[:-1]))
    rare = [
        pair(str(n), "The man saw the old dog.", "The scrivener espied the senescent mastiff.", {}) for n in range(40)
    ]
    assert "frequency imbalance" in kinds(suite_of_pairs("r", rare))
    for language in ("xx", "ja"):
        unknown = {each.kind: each.message for each in review(suite_of_pairs("r", rare), language=language)}
        assert f"for language '{language}'" in unknown["not checked"]


def test_the_same_words_in_other_orders_have_the_same_frequency(data) -> None:
    assert "frequency imbalance" not in kinds(load_suite("niu_penn2020"))


def test_an_effect_too_small_for_any_suite() -> None:
    suite = suite_of_pairs("s", [pair(str(n), f"The cat {n}.", f"The dog {n}.", {}) for n in range(250)])
    messages = {each.kind: each.message for each in review(suite, effect=0.501)}
    assert "more than 200,000 are needed" in messages["too few items"]
    messages = {each.kind: each.message for each in review(suite, effect=0.58)}
    assert int(messages["too few items"].partition("about ")[2].partition(" ")[0]) > 250


def test_sentences_without_spaces_are_compared_in_characters() -> None:
    rows = [pair(str(n), "猫が寝る。", f"猫が寝る寝る寝る{n}。", {}) for n in range(40)]
    messages = {each.kind: each.message for each in review(suite_of_pairs("j", rows), language="ja")}
    assert "characters" in messages["length imbalance"]


@pytest.mark.parametrize("n", [1, 5, 6, 20, 101, 1000])
def test_the_critical_count_is_that_of_the_exact_test(n: int) -> None:
    least = critical(n)
    assert least == n + 1 or stats.binomtest(least, n).pvalue <= 0.05
    assert stats.binomtest(least - 1, n).pvalue > 0.05


@pytest.mark.parametrize(("n", "effect"), [(30, 0.7), (100, 0.6), (500, 0.55)])
def test_simulated_power_is_near_the_exact_one(n: int, effect: float) -> None:
    least = critical(n)
    exact = stats.binom.sf(least - 1, n, effect) + stats.binom.cdf(n - least, n, effect)
    assert power(n, effect) == pytest.approx(exact, abs=0.02)
