from __future__ import annotations

import pytest
from scipy import stats

from acceptability import load_suite
from acceptability.api.review import review
from acceptability.stats.proportions import critical_count, simulate_power
from acceptability.suites import build_pair_suite, make_pair
from acceptability.types import Contrast, Sentence, Suite, make_contrast


def kinds(suite: Suite, **options: object) -> dict[str, tuple[str, ...]]:
    return {finding.kind: finding.ids for finding in review(suite, **options)}


def test_blimp_has_seven_identical_pairs(data) -> None:
    findings = kinds(load_suite("blimp"))
    assert len(findings["identical pair"]) == 7
    assert {name.split("/")[1] for name in findings["identical pair"]} == {"passive_1", "principle_A_case_2"}


def test_li_adger_has_two_identical_pairs_and_two_unrated_sentences(data) -> None:
    findings = kinds(load_suite("li_adger"))
    assert findings["identical pair"] == (
        "34.4.boskovic.4c.g.01 > 34.4.boskovic.3c.*.01",
        "ch8.62.g.06 > ch8.64.*.06",
    )
    assert findings["unrated sentence"] == ("ch6.93.*.01", "ch6.93.g.09")


def test_the_starter_suite_has_no_findings() -> None:
    assert kinds(load_suite("starter")) == {}


def test_every_kind_of_fault_is_found() -> None:
    good, bad = Sentence("a", "Cats sleep.", 0), Sentence("b", "Cats sleeps.", 1)
    rest = (Sentence("c", "Cats sleep.", 1), Sentence("d", "CafÃ© au lait.", None), Sentence("e", "Tom &amp; me.", 1))
    findings = kinds(Suite("s", (good, bad, *rest), (Contrast("a", "b"),)))
    assert findings["label against contrast"] == ("a > b",)
    assert findings["labels contradict"] == ("a", "c")
    assert findings["duplicate sentence"] == ("a", "c")
    assert findings["encoding damage"] == ("d", "e")
    assert findings["unlabelled sentence"] == ("d",)
    assert "too few items" in findings


def test_imbalances_are_found_in_pairs_and_in_labels() -> None:
    rows = [
        make_pair(str(number), "The cat is here.", f"The cat is {number} over here now.", {}) for number in range(40)
    ]
    suite = build_pair_suite("s", rows)
    assert "length imbalance" in kinds(suite)
    assert "length imbalance" in kinds(Suite("s", suite.sentences[:-1]))
    rare = [
        make_pair(str(n), "The man saw the old dog.", "The scrivener espied the senescent mastiff.", {})
        for n in range(40)
    ]
    assert "frequency imbalance" in kinds(build_pair_suite("r", rare))
    for language in ("xx", "ja"):
        unknown = {finding.kind: finding.message for finding in review(build_pair_suite("r", rare), language=language)}
        assert f"for language '{language}'" in unknown["not checked"]


def test_the_same_words_in_other_orders_have_the_same_frequency(data) -> None:
    assert "frequency imbalance" not in kinds(load_suite("niu_penn2020"))


def test_an_effect_too_small_for_any_suite() -> None:
    suite = build_pair_suite("s", [make_pair(str(n), f"The cat {n}.", f"The dog {n}.", {}) for n in range(250)])
    messages = {finding.kind: finding.message for finding in review(suite, effect=0.501)}
    assert "more than 200,000 are needed" in messages["too few items"]
    messages = {finding.kind: finding.message for finding in review(suite, effect=0.58)}
    assert int(messages["too few items"].partition("about ")[2].partition(" ")[0]) > 250


def test_sentences_without_spaces_are_compared_in_characters() -> None:
    rows = [make_pair(str(n), "猫が寝る。", f"猫が寝る寝る寝る{n}。", {}) for n in range(40)]
    messages = {finding.kind: finding.message for finding in review(build_pair_suite("j", rows), language="ja")}
    assert "characters" in messages["length imbalance"]


@pytest.mark.parametrize("n", [1, 5, 6, 20, 101, 1000])
def test_the_critical_count_is_that_of_the_exact_test(n: int) -> None:
    least = critical_count(n)
    assert least == n + 1 or stats.binomtest(least, n).pvalue <= 0.05
    assert stats.binomtest(least - 1, n).pvalue > 0.05


@pytest.mark.parametrize(("n", "effect"), [(30, 0.7), (100, 0.6), (500, 0.55)])
def test_simulated_power_is_near_the_exact_one(n: int, effect: float) -> None:
    least = critical_count(n)
    exact = stats.binom.sf(least - 1, n, effect) + stats.binom.cdf(n - least, n, effect)
    assert simulate_power(n, effect) == pytest.approx(exact, abs=0.02)


def with_contexts(*contexts: tuple[str, str]) -> Suite:
    sentences = [
        Sentence(
            f"{number}/{name}", "He left.", label=int(name == "good"), tags={"context": context} if context else {}
        )
        for number, pair in enumerate(contexts)
        for name, context in zip(("good", "bad"), pair, strict=True)
    ]
    pairs = zip(sentences[::2], sentences[1::2], strict=True)
    return Suite("contexts", tuple(sentences), tuple(make_contrast(*pair) for pair in pairs))


def test_the_same_sentence_after_two_contexts_is_no_fault() -> None:
    kinds = {finding.kind for finding in review(with_contexts(("Tom came.", "Ann came."), ("Al sat.", "Eve sat.")))}
    assert kinds == {"too few items"}
    kinds = {finding.kind for finding in review(with_contexts(("Tom came.", "Tom came.")))}
    assert kinds == {"identical pair", "labels contradict", "duplicate sentence", "too few items"}


def test_contexts_are_compared_and_counted() -> None:
    (finding,) = (one for one in review(with_contexts(("Tom came.", ""), ("A.", "B."))) if "context" in one.kind)
    assert (finding.kind, finding.ids) == ("context on one side", ("0/good > 0/bad",))
    longer = [(f"Tom{number} came very late.", f"Ann{number} came.") for number in range(20)]
    kinds = {finding.kind for finding in review(with_contexts(*longer))}
    assert "context length imbalance" in kinds
    (finding,) = (one for one in review(with_contexts(("A Ã©.", "B."))) if one.kind == "encoding damage")
    assert finding.ids == ("0/good",)
