"""Three sentences of every suite, first, middle and last, and the counts and quirks of the published files."""

from __future__ import annotations

from collections import Counter

import pytest

from acceptability.suites import load_suite

pytestmark = pytest.mark.usefixtures("data")

GOLDEN = {
    "li_adger": [
        ("32.1.martin.1a.g.01", "Kerry attempted to study physics.", 1),
        ("41.1.Muller.25b.g.02", "She wonders which story about Valerie is on the front page.", 1),
        ("ch9.84-85.g.08", "I wondered where Katie went to school.", 1),
    ],
    "cola/train": [
        ("cola/train/1", "Our friends won't buy this analysis, let alone the next one we propose.", 1),
        ("cola/train/4276", "It is eager to please Kim.", 0),
        ("cola/train/8551", "What all did you get for Christmas?", 1),
    ],
    "cola/in_domain_dev": [
        ("cola/in_domain_dev/1", "The sailors rode the breeze clear of the rocks.", 1),
        ("cola/in_domain_dev/264", "Most of the fruit is rotten.", 1),
        ("cola/in_domain_dev/527", "Anson became a muscle bound.", 0),
    ],
    "cola/out_of_domain_dev": [
        ("cola/out_of_domain_dev/1", "Somebody just left - guess who.", 1),
        ("cola/out_of_domain_dev/259", "Sentences some go on and on and on and on.", 0),
        ("cola/out_of_domain_dev/516", "John talked to Bill about himself.", 1),
    ],
    "cola/analysis": [
        ("cola/analysis/1", "The sailors rode the breeze clear of the rocks.", 1),
        ("cola/analysis/522", "The monkey is ate the banana", 0),
        ("cola/analysis/1043", "John talked to Bill about himself.", 1),
    ],
    "cola/human": [
        ("cola/human/1", "If Sam was going, Sally would know where.", 1),
        ("cola/human/43", "The only people being added to our group who were at Harvard were students.", 1),
        ("cola/human/142", "John is easy to please Kim.", 0),
    ],
    "cola/targeted/svo": [
        ("cola/targeted/svo/1", "michael read the book .", 1),
        ("cola/targeted/svo/251", "nicole read the book .", 1),
        ("cola/targeted/svo/500", "the chapter wrote kelly .", 0),
    ],
    "cola/targeted/wh_extraction": [
        ("cola/targeted/wh_extraction/1", "what did michael read the book ?", 0),
        ("cola/targeted/wh_extraction/261", "what did michael bake the cake ?", 0),
        ("cola/targeted/wh_extraction/520", "what did kelly ride ?", 1),
    ],
    "cola/targeted/inchoative": [
        ("cola/targeted/inchoative/1", "jessica opened the door .", 1),
        ("cola/targeted/inchoative/92", "the clothes cleaned .", 0),
        ("cola/targeted/inchoative/182", "the money withdrew .", 0),
    ],
    "cola/targeted/singular_pl": [
        ("cola/targeted/singular_pl/1", "the boy is here .", 1),
        ("cola/targeted/singular_pl/339", "the boys is here .", 0),
        ("cola/targeted/singular_pl/676", "the guests of honor are n't going to come .", 1),
    ],
    "cola/targeted/reflexive": [
        ("cola/targeted/reflexive/1", "i saw himself .", 0),
        ("cola/targeted/reflexive/73", "she saw himself .", 0),
        ("cola/targeted/reflexive/144", "they amused ourselves .", 0),
    ],
    "blimp": [
        ("island_effects/adjunct_island/0/good", "Who should Derek hug after shocking Richard?", 1),
        ("island_effects/left_branch_island_echo_question/500/good", "Stephen has argued about what teenager?", 1),
        (
            "filler_gap_dependency/wh_vs_that_with_gap_long_distance/999/bad",
            "This company was discovering that some library that negotiated conceals.",
            0,
        ),
    ],
    "npi": [
        ("adverbs/train/1", "The pedestrians who had always approached people have biked to these museums.", 1),
        ("quantifiers/train/6001", "A cashier who had visited the teachers had seen the doctors.", 1),
        (
            "superlative/test_full/1000",
            "The person remembers the longest newspaper articles that the girls had ever sold.",
            1,
        ),
    ],
    "npi/pairs": [
        ("npi/pairs/1/1", "A cashier ever thought that the boys often read.", 0),
        ("npi/pairs/2751/1", "All waiters who break many glasses might ever work with some drivers.", 0),
        ("npi/pairs/5500/2", "A woman fled from the bad adults that the actor has ever discussed.", 0),
    ],
    "npi/cloze": [
        ("npi/cloze/1/1", "A cashier ever thought that the boys often read.", 0),
        ("npi/cloze/1935/2", "In the child's opinion, those drivers even had referenced the pedestrians.", 1),
        ("npi/cloze/3869/2", "A woman fled from the bad adults that the actor has ever discussed.", 0),
    ],
    "npi/wilcox": [
        ("npi/wilcox/1", "The journalist that the critic likes has ever received any praise for his writing.", 0),
        ("npi/wilcox/53", "The strategy that the accountant liked has ever contained any sense in it.", 0),
        ("npi/wilcox/104", "No chef that no journalists write about has ever added any flavor to his dish.", 1),
    ],
    "hu_reflexive": [
        ("exp1a-ml-rc/himself/1", "The mechanic that the author liked hurt himself .", 1),
        ("exp1a-ml-rc/themselves/2281", "The mechanics that the teachers hated injured themselves .", 1),
        ("exp4-pp/themselves/900", "The wives near the girl shot themselves .", 1),
    ],
}


@pytest.mark.parametrize("name", GOLDEN)
def test_first_middle_and_last_sentence(name: str) -> None:
    sentences = load_suite(name).sentences
    shown = (sentences[0], sentences[len(sentences) // 2], sentences[-1])
    assert [(each.id, each.text, each.label) for each in shown] == GOLDEN[name]


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
