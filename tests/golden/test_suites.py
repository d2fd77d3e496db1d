"""Three sentences of every suite, first, middle and last, and the counts and quirks of the published files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from acceptability.suites import catalog, load_suite

pytestmark = pytest.mark.usefixtures("data")

GOLDEN = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))


def test_every_published_suite_has_golden_sentences() -> None:
    assert set(GOLDEN) == {entry.id for entry in catalog() if entry.folder}


# The largest two, of 340,000 contrasts each, have their counts checked in the contracts.
LARGE = ("marvin_linzen2018/current", "marvin_linzen2018/emnlp2018")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] if each in LARGE else []) for each in GOLDEN]
)
def test_first_middle_and_last_sentence(name: str) -> None:
    sentences = load_suite(name).sentences
    shown = (sentences[0], sentences[len(sentences) // 2], sentences[-1])
    assert [[each.id, each.text, each.label] for each in shown] == GOLDEN[name]


def test_li_adger() -> None:
    suite = load_suite("li_adger")
    assert [each.id for each in suite.sentences if each.rating is None] == ["ch6.93.*.01", "ch6.93.g.09"]
    assert Counter(each.tags["source"] for each in suite.sentences) == {"LI": 2400, "Adger": 1778}
    assert Counter(each.tags["source"] for each in suite.contrasts) == {"LI": 1174, "Adger": 1191}
    assert len({each.tags["type"] for each in suite.sentences}) == 522
    assert sum(each.label for each in suite.sentences if each.tags["source"] == "LI") == 1192
    texts = suite.by_id
    assert [each.id for each in suite.contrasts if texts[each.better].text == texts[each.worse].text] == [
        "34.4.boskovic.4c.g.01 > 34.4.boskovic.3c.*.01",
        "ch8.62.g.06 > ch8.64.*.06",
    ]


def test_cola() -> None:
    shares = {"cola/train": 0.704, "cola/in_domain_dev": 0.693, "cola/out_of_domain_dev": 0.686}
    for name, share in shares.items():
        labels = [each.label for each in load_suite(name).sentences]
        assert round(sum(labels) / len(labels), 3) == share
    analysis = load_suite("cola/analysis")
    assert Counter(each.tags["domain"] for each in analysis.sentences) == {"in": 527, "out": 516}
    assert sum(name.startswith("major/") for name in analysis.tag_names) == 15
    assert sum(name.startswith("minor/") for name in analysis.tag_names) == 63


def test_blimp() -> None:
    suite = load_suite("blimp")
    assert set(Counter(each.tags["paradigm"] for each in suite.contrasts).values()) == {1000}
    assert len({each.tags["paradigm"] for each in suite.contrasts}) == 67
    assert len({each.tags["phenomenon"] for each in suite.contrasts}) == 12
    texts = suite.by_id
    same = Counter(
        each.tags["paradigm"] for each in suite.contrasts if texts[each.better].text == texts[each.worse].text
    )
    assert same == {"passive_1": 2, "principle_A_case_2": 5}


def test_npi() -> None:
    suite = load_suite("npi")
    assert len({each.text for each in suite.sentences}) == 107395
    for each in suite.sentences:
        licensor, scope, present = (each.tags[name] == "1" for name in ("licensor", "scope", "npi_present"))
        assert each.label == (not present or (licensor and scope))
    sizes = Counter(each.tags["set"] for each in suite.sentences)
    assert {size for name, size in sizes.items() if not name.startswith("simplequestions/")} == {8}
    assert {size for name, size in sizes.items() if name.startswith("simplequestions/")} == {4}
    assert sum(each.label for each in load_suite("npi/wilcox").sentences) == 52
    environments = {each.tags["environment"] for each in load_suite("npi/pairs").contrasts}
    assert environments == {each.tags["environment"] for each in suite.sentences}


def test_hu_reflexive() -> None:
    suite = load_suite("hu_reflexive")
    assert set(Counter(each.tags["class"] for each in suite.sentences).values()) == {6000}
    assert all(each.text[slice(*each.regions["target"])] == each.tags["pronoun"] for each in suite.sentences)
    wrong = [each for each in suite.sentences if int(each.tags["grammatical"]) != each.label]
    assert len(wrong) == 1120
    assert {(each.tags["experiment"], each.tags["pronoun"]) for each in wrong} == {("exp1a-ml-rc", "themselves")}


def test_syntaxgym() -> None:
    suite = load_suite("syntaxgym")
    assert len({each.tags["suite"] for each in suite.sentences}) == 34
    assert len({each.tags["set"] for each in suite.sentences}) == 842
    assert all("prediction" in each.tags for each in suite.sentences)
    assert not any("  " in each.text or " ," in each.text for each in suite.sentences)
    assert all(
        each.text[start:end].strip() == each.text[start:end]
        for each in suite.sentences
        for start, end in each.regions.values()
    )


def test_agreement_sets() -> None:
    for name in ("gulordava2018/english", "gulordava2018/hebrew", "linzen2016_filtered"):
        suite = load_suite(name)
        for each in suite.contrasts[::50]:
            good, bad = suite.by_id[each.better], suite.by_id[each.worse]
            start, end = good.regions["target"]
            assert good.text[:start] == bad.text[:start]
            assert good.text[start:end] != bad.text[slice(*bad.regions["target"])]
    assert Counter(each.tags["type"] for each in load_suite("gulordava2018/english").contrasts) == {
        "generated": 369,
        "original": 41,
    }


@pytest.mark.slow
def test_targeted_sets() -> None:
    tests = Counter(each.tags["phenomenon"] for each in load_suite("marvin_linzen2018/current").contrasts)
    assert len(tests) == 22
    assert tests["simple_npi_anim"] == 2 * 120


def test_graded_ratings() -> None:
    for name in ("lau2017_smog/bnc/mop4", "lau2017_smog/adger/mop100", "lau2020_context/real"):
        for each in load_suite(name).sentences:
            ratings = [float(rating) for rating in each.tags["ratings"].split(",")]
            assert each.rating == pytest.approx(sum(ratings) / len(ratings), abs=1e-6)
    assert all("context" in each.tags for each in load_suite("lau2020_context/random").sentences)
    assert not any("context" in each.tags for each in load_suite("lau2020_context/none").sentences)


def test_sprouse_and_li_adger_confirm_each_other() -> None:
    ratings = {each.id.lower(): each.rating for each in load_suite("li_adger").sentences}
    shared = [each for each in load_suite("sprouse2013_li").sentences if each.id.lower() in ratings]
    assert len(shared) == 1450
    assert all(float(each.tags["me"]) == pytest.approx(ratings[each.id.lower()], abs=5e-6) for each in shared)


def test_niu_and_penns_orders() -> None:
    assert Counter(each.label for each in load_suite("niu_penn2020").sentences) == {1: 28, 0: 88, None: 4}


@pytest.mark.parametrize(
    ("name", "language", "identical"),
    [("jblimp", "ja", 0), ("rublimp", "ru", 0), ("turblimp", "tr", 30), ("climp", "zh", None), ("sling", "zh", 24)],
)
def test_pairs_of_other_languages(name: str, language: str, identical: int | None) -> None:
    suite = load_suite(name)
    assert {each.tags["language"] for each in suite.sentences} == {language}
    texts = suite.by_id
    same = sum(texts[each.better].text == texts[each.worse].text for each in suite.contrasts)
    assert identical is None or same == identical


def test_labelled_sentences_of_other_languages() -> None:
    itacola = load_suite("itacola")
    assert Counter(each.tags["split"] for each in itacola.sentences) == {"train": 7801, "dev": 946, "test": 975}
    assert sum("Simple" in each.tags for each in itacola.sentences) == 2088
    assert {each.tags["language"] for each in load_suite("rucola").sentences} == {"ru"}
