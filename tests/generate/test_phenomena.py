"""The other built-in paradigm files: attractors, distractors, fillers, and CoLA's targeted sets."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from acceptability.api.review import review
from acceptability.errors import SpecError, UnknownName
from acceptability.generate import generate_paradigms, generate_suite, list_titles
from acceptability.suites import load_suite


@pytest.mark.parametrize(
    ("name", "sentences", "pairs"), [("agreement", 8, 4), ("reflexives", 8, 4), ("filler-gap", 4, 4)]
)
def test_a_phenomenon_has_contrasts_that_differ_in_one_factor(name: str, sentences: int, pairs: int) -> None:
    suite = generate_suite(name, seed=3, count=20)
    sets = Counter(sentence.tags["set"] for sentence in suite.sentences)
    assert set(sets.values()) == {sentences}
    assert set(Counter(contrast.tags["set"] for contrast in suite.contrasts).values()) == {pairs}
    assert sum(sentence.label for sentence in suite.sentences) * 2 == len(suite.sentences)
    found = {finding.kind for finding in review(suite)}
    assert not found & {"identical pair", "label against contrast", "duplicate", "damaged text"}


def test_agreement_is_with_the_subject_and_not_with_the_attractor() -> None:
    for sentence in generate_suite("agreement", seed=4, count=30).sentences:
        assert sentence.label == int(sentence.tags["subject"] == sentence.tags["verb"])
        if sentence.id.startswith("agreement/copula"):
            assert {"sg": " is ", "pl": " are "}[sentence.tags["verb"]] in sentence.text, sentence.text


def test_reflexives_agree_with_the_subject_of_their_clause() -> None:
    for sentence in generate_suite("reflexives", seed=4, count=30).sentences:
        if sentence.tags["feature"] == "number":
            assert sentence.text.endswith("themselves.") == (sentence.tags["reflexive"] == "pl")
            assert sentence.label == int(sentence.tags["antecedent"] == sentence.tags["reflexive"])


SETS = {
    "svo": ("cola/targeted/svo", 500, 100),
    "wh": ("cola/targeted/wh_extraction", 520, 260),
    "causative": ("cola/targeted/inchoative", 182, 127),
    "sv-agreement": ("cola/targeted/singular_pl", 676, 338),
    "reflexive": ("cola/targeted/reflexive", 144, 24),
}
_NAMES = """michael christopher jason david james jessica elizabeth kelly nicole rebecca
    clara daniel emma henry irene kevin laura oliver paula thomas"""
NAMES = frozenset(_NAMES.split())
VERBS = {"read", "wrote", "sang", "recorded"}
PREDICATES = {
    "be": r"(is|are) \w+", "have n't": r"(has|have) n't been \w+", "to": r"(likes?|wants?) to \w+",
    "wh": r"knows? wh\w+ to \w+", "seem": r"seems? \w+", "V adv": r"(sleeps?|works?) t?here",
    "have a": r"(has|have) an? \w+", "have to": r"(has|have) to \w+", "get": r"gets? (it|them)",
    "have the": r"(has|have) the \w+", "feel": r"feels? \w+", "going to": r"(is|are) n't going to \w+",
}  # fmt: skip
SUBJECTS = {
    "the N of N": r"the \w+ of \w+", "the N": r"the \w+", "my N": r"my \w+", "demonstrative": r"th(is|at|ese|ose) \w+",
    "some N": r"some \w+", "quantifier": r"(most|many) \w+", "indefinite": r"everyone|somebody",
    "pronoun": r"s?he|we|they", "Mr.": r"mr\. \w+", "Mr. and Mrs.": r"mr\. and mrs\. \w+",
    "name and kin": r"\w+ and his \w+", "names": r"\w+ and \w+", "name": r"(mary|john|laura|henry)",
}  # fmt: skip


def tokens(text: str) -> str:
    """Return a sentence as CoLA writes it: small letters, marks and n't apart."""
    return re.sub(r"([.?])$", r" \1", re.sub(r"n't", " n't", text.lower())).replace("  ", " ")


def svo(text: str) -> str:
    parts = {"the": "the", ".": "."} | dict.fromkeys(NAMES, "S") | dict.fromkeys(VERBS, "V")
    return " ".join(parts.get(word, "O") for word in text.split())


def wh(text: str) -> str:
    return re.sub(r"what did \w+ \w+( the \w+)? \?", lambda found: f"what did S V{found[1] and ' the O'} ?", text)


def causative(text: str) -> str:
    if text.split()[0] in NAMES:
        return re.sub(r"^\w+ \w+ the \w+ \.$", "S V the O .", text)
    return re.sub(r"^the \w+ \w+ \.$", "the O V .", text)


def reflexive(text: str) -> str:
    found = re.fullmatch(r"(\w+) \w+( to| at)? (\w+(?:self|selves)) \.", text)
    return f"{found[1]} V{found[2] and ' P'} {found[3]}" if found else text


def agreement(text: str) -> str:
    """Return what sort of subject and predicate it has, and the number of the verb."""
    for name, pattern in reversed(PREDICATES.items()):
        found = re.fullmatch(rf"(.*?) ({pattern}) \.", text)
        if found:
            subject = next(sort for sort, pattern in SUBJECTS.items() if re.fullmatch(pattern, found[1]))
            number = "sg" if found[2].split()[0].endswith("s") else "pl"
            return f"{subject} + {name} {number}"
    return text


@pytest.mark.usefixtures("data")
@pytest.mark.parametrize("name", SETS)
def test_a_targeted_set_has_the_size_the_labels_and_the_structures_of_the_published_one(name: str) -> None:
    structure = {"svo": svo, "wh": wh, "causative": causative, "sv-agreement": agreement, "reflexive": reflexive}[name]
    suite, size, acceptable = SETS[name]
    ours = generate_suite(f"targeted/{name}", seed=1).sentences
    theirs = load_suite(suite).sentences
    assert len(ours) == len(theirs) == size
    assert sum(row.label for row in ours) == sum(row.label for row in theirs) == acceptable
    counts = [Counter((structure(tokens(row.text)), row.label) for row in rows) for rows in (ours, theirs)]
    assert counts[0] == counts[1]


def test_everything_has_a_title_and_a_wrong_name_a_suggestion() -> None:
    assert all(list_titles().values())
    with pytest.raises(UnknownName, match="Did you mean 'agreement'"):
        generate_paradigms("agreemnt")
    with pytest.raises(SpecError, match="omit --count"):
        generate_paradigms("targeted/svo", count=3)
    with pytest.raises(SpecError, match="omit --paper-counts"):
        generate_paradigms("agreement", paper_counts=True)
    with pytest.raises(SpecError, match="seed is -1"):
        next(generate_paradigms("agreement", seed=-1))
