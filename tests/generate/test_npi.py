"""The polarity paradigms: labels by rule, counts, balance, splits, and no fault that a second grammar finds."""

from __future__ import annotations

import csv
import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from acceptability.generate import generate_paradigms
from acceptability.generate.generator import GeneratedSentence
from acceptability.suites import load_suite
from generate import facts
from generate.reader import NOUNS, fault, find_free_choice, find_verbs_after_ever

SAMPLE = Path(__file__).resolve().parents[2] / "docs" / "samples" / "npi-200.tsv"
ENVIRONMENTS = {
    "adverbs", "conditional", "determiner_negation_biclausal", "only", "quantifier", "questions",
    "sentential_negation_biclausal", "simplequestions", "superlative",
}  # fmt: skip


@pytest.fixture(scope="module")
def few() -> list[GeneratedSentence]:
    return list(generate_paradigms("npi", seed=1, count=24))


def check(rows: list[GeneratedSentence]) -> None:
    """Labels follow the rule, contrasts differ in one factor, no text comes twice, sets keep to one split."""
    by_id = {row.sentence.id: row.sentence for row in rows}
    assert len(by_id) == len(rows) == len({row.sentence.text for row in rows})
    splits = defaultdict(set)
    for row in rows:
        tags = row.sentence.tags
        present, licensor, scope = (tags[name] == "1" for name in ("npi_present", "licensor", "scope"))
        assert row.sentence.label == int(not (present and not (licensor and scope)))
        assert row.sentence.text.count(f" {tags['npi']} ") + row.sentence.text.startswith("Any ") == int(present)
        splits[tags["set"]].add(tags["split"])
        for worse in row.better_than:
            other = by_id[worse]
            assert (row.sentence.label, other.label) == (1, 0)
            assert other.tags["set"] == tags["set"]
            assert sum(other.tags[name] != tags[name] for name in ("npi_present", "licensor", "scope")) == 1
    assert all(len(split) == 1 for split in splits.values())


def test_a_few_of_each_follow_the_rules(few: list[GeneratedSentence]) -> None:
    check(few)
    assert Counter(row.sentence.tags["environment"] for row in few) == {
        name: 24 * 2 * (4 if name == "simplequestions" else 8) for name in ENVIRONMENTS
    }
    pairs = Counter()
    for row in few:
        pairs[row.sentence.tags["set"]] += len(row.better_than)
    assert {name: count for name, count in pairs.items() if count != (2 if "simple" in name else 5)} == {}


def test_a_few_of_each_have_no_fault(few: list[GeneratedSentence]) -> None:
    assert [(row.sentence.text, found) for row in few if (found := fault(row.sentence.text))] == []


def is_bad_any(row: GeneratedSentence) -> bool:
    return row.sentence.label == 0 and row.sentence.tags["npi"] == "any"


def test_no_starred_any_can_be_a_free_choice_item(few: list[GeneratedSentence]) -> None:
    bad = [row.sentence.text for row in few if is_bad_any(row)]
    assert len(bad) > 500
    assert [(text, why) for text in bad if (why := find_free_choice(text))] == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("If the nurse sees the cats, the guests will feed any dogs.", "the modal 'will'"),
        ("The nurses had avoided any museums.", "any after 'avoid'"),
        ("The nurses are looking for any witnesses.", "any after 'look-for'"),
        ("Any guests read only the books.", "'read' may be in the present"),
        ("All guests who read the books met any nurses.", "'read' may be in the present"),
        ("The guest who often read any books has left museums.", ""),
        ("Any nurses wonder whether the guests have seen the cats.", "'wonder' may be in the present"),
        ("Any nurses wondered whether the guests had seen the cats.", ""),
        ("The nurses were visiting any museums.", ""),
        ("If the nurses dusted the desks, they read any books.", "'read' may be in the present"),
        ("If the nurses dusted the desks, they polished any tables.", ""),
    ],
)
def test_free_choice_is_recognized(text: str, why: str) -> None:
    assert find_free_choice(text) == why


def test_ever_is_said_of_what_can_happen_again_to_the_same_thing(few: list[GeneratedSentence]) -> None:
    good = [row.sentence for row in few if row.sentence.label == 1 and " ever " in row.sentence.text]
    single = {verb for sentence in good for verb in find_verbs_after_ever(sentence.text)} & set(facts.ONCE.split())
    assert single == set()


def test_plural_definites_and_a_are_no_unlicensed_restrictors(few: list[GeneratedSentence]) -> None:
    """They license polarity items in their relative clause for some: the guests who had any luggage."""
    bad = [row.sentence for row in few if row.sentence.label == 0 and row.sentence.tags["scope"] == "1"]
    quantified = [sentence.text for sentence in bad if sentence.tags["environment"] == "quantifier"]
    assert quantified
    assert {text.partition(" ")[0] for text in quantified} == {"Some", "Several", "A", "More", "At"}
    assert all(text.startswith("A few ") for text in quantified if text.startswith("A "))
    adverbs = [sentence.text for sentence in bad if sentence.id.startswith("adverbs/any")]
    assert adverbs
    # Without the article, and in small letters, as the second grammar has its nouns.
    subjects = {text.partition(" who ")[0].partition(" ")[2].lower() for text in adverbs}
    assert {number for subject in subjects for _, number in NOUNS[subject]} == {"sg"}
    assert {text.partition(" ")[0] for text in adverbs} == {"The", "That"}


def test_the_clauses_of_a_conditional_have_the_same_subject(few: list[GeneratedSentence]) -> None:
    texts = [row.sentence.text for row in few if row.sentence.tags["environment"] == "conditional"]
    for text in texts:
        first, _, second = text.partition(", ")
        words = first.lower().split()
        # The longest noun after the link and the article: a taxi driver, a police officer.
        subject = next(noun for size in (2, 1) if (noun := " ".join(words[2 : 2 + size])) in NOUNS)
        number = {"he": "sg", "she": "sg", "they": "pl"}[second.partition(" ")[0]]
        assert number in {number for _, number in NOUNS[subject]}, text
    assert {text.partition(" ")[0] for text in texts} == {"If", "Because", "Since"}
    assert {text.partition(", ")[2].partition(" ")[0] for text in texts} == {"he", "she", "they"}


@pytest.mark.parametrize(
    "odd",
    [
        r"in the view of",
        r"(finally|already|frequently) (thinks?|thought|suspect|believe)",
        r"really suspect",
        r"(hardly|barely|scarcely) (thinks?|thought|suspect)",
        r"(could|would|will) (the .* )?finally",
        r"(has|have|had) (often|frequently) (organized|planned)",
        r"\b(lend|lent)",
        r"borrowed (the |any |these |those )?(poem|essay|play|fairy tale)",
        r"pass(ed|ing) (\w+ ){0,2}(kindergarten|school|bank)",
    ],
)
def test_odd_combinations_are_not_generated(few: list[GeneratedSentence], odd: str) -> None:
    assert [row.sentence.text for row in few if re.search(odd, row.sentence.text, re.IGNORECASE)] == []


def test_another_seed_makes_other_sentences_without_fault() -> None:
    other = [row.sentence.text for row in generate_paradigms("npi", seed=7, count=5)]
    assert [found for text in other if (found := fault(text))] == []
    assert not set(other) & {row.sentence.text for row in generate_paradigms("npi", seed=8, count=5)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("The nurses has seen any cats.", "'has' does not agree"),
        ("The nurse have seen the cats.", "'have' does not agree"),
        ("If the nurses have seen the cats, they has fed the dogs.", "'has' does not agree"),
        ("The nurse has saw the cats.", "'saw' is not in the form"),
        ("The nurse see the cats.", "'see' is not in the form"),
        ("Those nurse saw the cats.", "'those' does not go with 'nurse'"),
        ("A actress saw the cats.", "a actress"),
        ("The nurse drove the soup.", "nobody can drive what is cooked"),
        ("The table drove the car.", "the subject is no person"),
        ("The nurse met the tables.", "'met' is no verb"),
        ("the nurse saw the cats.", "capital"),
        ("The nurse saw the the cats.", "comes twice"),
        ("The nurse talked the guests.", "lacks what must follow"),
        ("The nurse said the cats.", "lacks its clause"),
        ("The nurse who saw the cats the guests.", "is no verb"),
        ("The nurse had praised the nicest soup that the guests had ridden.", "nobody can ride what is cooked"),
        ("Has the nurses seen the cats?", "'has' does not agree"),
    ],
)
def test_the_second_grammar_finds_faults(text: str, message: str) -> None:
    assert message in (fault(text) or "")


@pytest.mark.usefixtures("data")
def test_factors_are_those_of_the_published_paradigms(few: list[GeneratedSentence]) -> None:
    published = load_suite("npi").sentences[0].tags
    assert set(published) == set(few[0].sentence.tags)
    assert {sentence.tags["environment"] for sentence in load_suite("npi").sentences} == ENVIRONMENTS


@pytest.mark.usefixtures("data")
def test_no_published_sentence_is_copied(few: list[GeneratedSentence]) -> None:
    published = {sentence.text for sentence in load_suite("npi").sentences}
    assert not published & {row.sentence.text for row in few}


def test_the_proofread_sample_is_generated() -> None:
    with SAMPLE.open(encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    assert len(rows) == len({row["id"] for row in rows}) == 200
    assert all(row["notes"] for row in rows)
    cells = Counter((row["environment"], row["npi"]) for row in rows)
    assert len(cells) == 18
    assert set(cells.values()) == {11, 12}
    assert [row["sentence"] for row in rows if fault(row["sentence"])] == []


def test_the_page_of_the_sample_counts_its_notes() -> None:
    with SAMPLE.open(encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened, delimiter="\t"))
    page = SAMPLE.with_suffix(".md").read_text(encoding="utf-8")
    for name, label, usual in (("acceptable", "1", "reads well"), ("unacceptable", "0", "bad as intended")):
        notes = [row["notes"] for row in rows if row["label"] == label]
        assert f"| {name} | {len(notes)} | {sum(note != usual for note in notes)} |" in page


@pytest.mark.slow
def test_all_144000_sentences_are_without_fault() -> None:
    rows = list(generate_paradigms("npi", seed=3))
    assert len(rows) == 144_000
    check(rows)
    assert sum(len(row.better_than) for row in rows) == 88_000
    counts = Counter((row.sentence.tags["environment"], row.sentence.tags["split"]) for row in rows)
    assert counts == {
        (name, split): count
        for name in ENVIRONMENTS
        for split, count in {"train": 10_000, "dev": 1000, "test": 1000, "rest": 4000}.items()
    }
    assert {(row.sentence.tags["environment"], row.sentence.tags["npi"]) for row in rows} == {
        (name, npi) for name in ENVIRONMENTS for npi in ("any", "ever")
    }
    assert [row.sentence.text for row in rows if fault(row.sentence.text)] == []
    bad = [row.sentence.text for row in rows if is_bad_any(row)]
    assert [(text, why) for text in bad if (why := find_free_choice(text))] == []
    texts = {row.sentence.id: row.sentence.text for row in rows}
    with SAMPLE.open(encoding="utf-8") as opened:
        assert all(texts[row["id"]] == row["sentence"] for row in csv.DictReader(opened, delimiter="\t"))


@pytest.mark.slow
def test_the_counts_of_the_paper() -> None:
    rows = list(generate_paradigms("npi", seed=1, paper_counts=True))
    assert len(rows) == 136_000
    counts = Counter(
        row.sentence.tags["split"] for row in rows if row.sentence.tags["environment"] == "simplequestions"
    )
    assert counts == {"train": 5000, "dev": 500, "test": 500, "rest": 2000}
