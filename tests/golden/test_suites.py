"""Three sentences of every suite, first, middle and last, and the counts and quirks of the published files."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from acceptability.suites import load_catalog, load_suite

pytestmark = pytest.mark.usefixtures("data")

GOLDEN = json.loads(Path(__file__).with_name("sentences.json").read_text(encoding="utf-8"))


def test_every_published_suite_has_golden_sentences() -> None:
    assert set(GOLDEN) == {entry.id for entry in load_catalog() if entry.folder and not entry.in_tables}


# The largest two, of 340,000 contrasts each, have their counts checked in the contracts.
LARGE = ("marvin_linzen2018/current", "marvin_linzen2018/emnlp2018", "clams/en", "clams/de", "clams/fr")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in GOLDEN]
)
def test_first_middle_and_last_sentence(name: str) -> None:
    sentences = load_suite(name).sentences
    chosen = (sentences[0], sentences[len(sentences) // 2], sentences[-1])
    assert [[sentence.id, sentence.text, sentence.label] for sentence in chosen] == GOLDEN[name]


def test_li_adger() -> None:
    suite = load_suite("li_adger")
    assert [sentence.id for sentence in suite.sentences if sentence.rating is None] == ["ch6.93.*.01", "ch6.93.g.09"]
    assert Counter(sentence.tags["source"] for sentence in suite.sentences) == {"LI": 2400, "Adger": 1778}
    assert Counter(contrast.tags["source"] for contrast in suite.contrasts) == {"LI": 1174, "Adger": 1191}
    assert len({sentence.tags["type"] for sentence in suite.sentences}) == 522
    assert sum(sentence.label for sentence in suite.sentences if sentence.tags["source"] == "LI") == 1192
    texts = suite.by_id
    assert [
        contrast.id for contrast in suite.contrasts if texts[contrast.better].text == texts[contrast.worse].text
    ] == [
        "34.4.boskovic.4c.g.01 > 34.4.boskovic.3c.*.01",
        "ch8.62.g.06 > ch8.64.*.06",
    ]


def test_cola() -> None:
    shares = {"cola/train": 0.704, "cola/in_domain_dev": 0.693, "cola/out_of_domain_dev": 0.686}
    for name, share in shares.items():
        labels = [sentence.label for sentence in load_suite(name).sentences]
        assert round(sum(labels) / len(labels), 3) == share
    analysis = load_suite("cola/analysis")
    assert Counter(sentence.tags["domain"] for sentence in analysis.sentences) == {"in": 527, "out": 516}
    assert sum(name.startswith("major/") for name in analysis.tag_names) == 15
    assert sum(name.startswith("minor/") for name in analysis.tag_names) == 63


def test_blimp() -> None:
    suite = load_suite("blimp")
    assert set(Counter(contrast.tags["paradigm"] for contrast in suite.contrasts).values()) == {1000}
    assert len({contrast.tags["paradigm"] for contrast in suite.contrasts}) == 67
    assert len({contrast.tags["phenomenon"] for contrast in suite.contrasts}) == 12
    texts = suite.by_id
    same = Counter(
        contrast.tags["paradigm"]
        for contrast in suite.contrasts
        if texts[contrast.better].text == texts[contrast.worse].text
    )
    assert same == {"passive_1": 2, "principle_A_case_2": 5}


def test_npi() -> None:
    suite = load_suite("npi")
    assert len({sentence.text for sentence in suite.sentences}) == 107395
    for sentence in suite.sentences:
        licensor, scope, present = (sentence.tags[name] == "1" for name in ("licensor", "scope", "npi_present"))
        assert sentence.label == (not present or (licensor and scope))
    sizes = Counter(sentence.tags["set"] for sentence in suite.sentences)
    assert {size for name, size in sizes.items() if not name.startswith("simplequestions/")} == {8}
    assert {size for name, size in sizes.items() if name.startswith("simplequestions/")} == {4}
    assert sum(sentence.label for sentence in load_suite("npi/wilcox").sentences) == 52
    environments = {contrast.tags["environment"] for contrast in load_suite("npi/pairs").contrasts}
    assert environments == {sentence.tags["environment"] for sentence in suite.sentences}


def test_hu_reflexive() -> None:
    suite = load_suite("hu_reflexive")
    assert set(Counter(sentence.tags["class"] for sentence in suite.sentences).values()) == {6000}
    assert all(
        sentence.text[slice(*sentence.regions["target"])] == sentence.tags["pronoun"] for sentence in suite.sentences
    )
    wrong = [sentence for sentence in suite.sentences if int(sentence.tags["grammatical"]) != sentence.label]
    assert len(wrong) == 1120
    assert {(sentence.tags["experiment"], sentence.tags["pronoun"]) for sentence in wrong} == {
        ("exp1a-ml-rc", "themselves")
    }


def test_syntaxgym() -> None:
    suite = load_suite("syntaxgym")
    assert len({sentence.tags["suite"] for sentence in suite.sentences}) == 34
    assert len({sentence.tags["set"] for sentence in suite.sentences}) == 842
    assert all("prediction" in sentence.tags for sentence in suite.sentences)
    assert not any("  " in sentence.text or " ," in sentence.text for sentence in suite.sentences)
    assert all(
        sentence.text[start:end].strip() == sentence.text[start:end]
        for sentence in suite.sentences
        for start, end in sentence.regions.values()
    )


def test_agreement_sets() -> None:
    for name in ("gulordava2018/english", "gulordava2018/hebrew", "linzen2016_filtered"):
        suite = load_suite(name)
        for contrast in suite.contrasts[::50]:
            good, bad = suite.by_id[contrast.better], suite.by_id[contrast.worse]
            start, end = good.regions["target"]
            assert good.text[:start] == bad.text[:start]
            assert good.text[start:end] != bad.text[slice(*bad.regions["target"])]
    assert Counter(contrast.tags["type"] for contrast in load_suite("gulordava2018/english").contrasts) == {
        "generated": 369,
        "original": 41,
    }


@pytest.mark.slow
def test_targeted_sets() -> None:
    tests = Counter(contrast.tags["phenomenon"] for contrast in load_suite("marvin_linzen2018/current").contrasts)
    assert len(tests) == 22
    assert tests["simple_npi_anim"] == 2 * 120


def test_graded_ratings() -> None:
    for name in ("lau2017_smog/bnc/mop4", "lau2017_smog/adger/mop100", "lau2020_context/real"):
        for sentence in load_suite(name).sentences:
            ratings = [float(rating) for rating in sentence.tags["ratings"].split(",")]
            assert sentence.rating == pytest.approx(sum(ratings) / len(ratings), abs=1e-6)
    assert all("context" in sentence.tags for sentence in load_suite("lau2020_context/random").sentences)
    assert not any("context" in sentence.tags for sentence in load_suite("lau2020_context/none").sentences)


def test_sprouse_and_li_adger_have_the_same_ratings() -> None:
    ratings = {sentence.id.lower(): sentence.rating for sentence in load_suite("li_adger").sentences}
    shared = [sentence for sentence in load_suite("sprouse2013_li").sentences if sentence.id.lower() in ratings]
    assert len(shared) == 1450
    assert all(
        float(sentence.tags["me"]) == pytest.approx(ratings[sentence.id.lower()], abs=5e-6) for sentence in shared
    )


def test_niu_and_penns_orders() -> None:
    assert Counter(sentence.label for sentence in load_suite("niu_penn2020").sentences) == {1: 28, 0: 88, None: 4}


@pytest.mark.parametrize(
    ("name", "language", "identical"),
    [
        ("jblimp", "ja", 0),
        ("rublimp", "ru", 0),
        ("turblimp", "tr", 30),
        ("climp", "zh", None),
        ("sling", "zh", 24),
        ("zhoblimp", "zh", 0),
        ("blimp_nl", "nl", 10),
        ("clams/he", "he", 0),
    ],
)
def test_pairs_of_other_languages(name: str, language: str, identical: int | None) -> None:
    suite = load_suite(name)
    assert {sentence.tags["language"] for sentence in suite.sentences} == {language}
    texts = suite.by_id
    same = sum(texts[contrast.better].text == texts[contrast.worse].text for contrast in suite.contrasts)
    assert identical is None or same == identical


def test_labelled_sentences_of_other_languages() -> None:
    itacola = load_suite("itacola")
    assert Counter(sentence.tags["split"] for sentence in itacola.sentences) == {"train": 7801, "dev": 946, "test": 975}
    assert sum("Simple" in sentence.tags for sentence in itacola.sentences) == 2088
    assert {sentence.tags["language"] for sentence in load_suite("rucola").sentences} == {"ru"}


def test_zhoblimp_has_peoples_accuracy_in_every_paradigm() -> None:
    suite = load_suite("zhoblimp")
    assert set(Counter(contrast.tags["paradigm"] for contrast in suite.contrasts).values()) == {300}
    people = {contrast.tags["paradigm"]: contrast.tags for contrast in suite.contrasts}
    assert len(people) == 118
    assert people["question_particle_nandao"]["human_accuracy"] == "0.9285714285714286"
    for tags in people.values():
        share = int(tags["human_correct"]) / int(tags["human_judgements"])
        assert float(tags["human_accuracy"]) == pytest.approx(share)
    assert len({contrast.tags["phenomenon"] for contrast in suite.contrasts}) == 15


def test_blimp_nl_is_whole_despite_its_quotation_marks_and_spaces() -> None:
    suite = load_suite("blimp_nl")
    assert set(Counter(contrast.tags["paradigm"] for contrast in suite.contrasts).values()) == {100}
    assert len({contrast.tags["paradigm"] for contrast in suite.contrasts}) == 84
    assert len({contrast.tags["phenomenon"] for contrast in suite.contrasts}) == 22
    good, bad = (suite[f"anaphor_agreement/number/65/{member}"] for member in ("good", "bad"))
    assert good.text == "Ik leer een nieuwe vaardigheid voor mezelf, gewoon uit nieuwsgierigheid."
    assert (good.tags["cue_words"], bad.tags["cue_words"]) == ("Ik", "Wij")
    assert all(sentence.text == sentence.text.strip() for sentence in suite.sentences)


@pytest.mark.parametrize(
    ("language", "count"),
    [
        pytest.param("de", 95_640, marks=pytest.mark.slow),
        pytest.param("en", 314_692, marks=pytest.mark.slow),
        pytest.param("fr", 98_720, marks=pytest.mark.slow),
        ("he", 81_640),
        ("ru", 80_240),
    ],
)
def test_clams_has_a_line_for_each_sentence(language: str, count: int) -> None:
    suite = load_suite(f"clams/{language}")
    assert len(suite.sentences) == count == 2 * len(suite.contrasts)
    assert {sentence.tags["language"] for sentence in suite.sentences[::1000]} == {language}


def test_hucola_and_jcola() -> None:
    labels = {name: Counter(load_suite(name).labels.tolist()) for name in ("hucola/train", "hucola/dev", "hucola/test")}
    assert labels["hucola/train"] == {1: 5702, 0: 1572}
    assert labels["hucola/dev"] == {1: 714, 0: 196}
    assert labels["hucola/test"] == {-1: 910}
    jcola = load_suite("jcola/train")
    assert Counter(sentence.label for sentence in jcola.sentences) == {1: 5769, 0: 1150}
    assert Counter(sentence.label for sentence in jcola.sentences if sentence.tags["mark"]) == {0: 1150}
    assert sum("original" in sentence.tags for sentence in jcola.sentences) == 550
