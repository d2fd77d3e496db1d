"""The lexicon: its size, its validity, and its forms compared with a library and a manual list."""

from __future__ import annotations

from collections import Counter

import pytest

from acceptability.errors import SuiteError
from acceptability.generate.lexicon import (
    LexiconEntry,
    correct_articles,
    inflect,
    load_features,
    load_lexicon,
    parse_word,
)
from generate import facts

WORDS = [word for words in load_lexicon().values() for word in words]


def of(category: str, lemma: str) -> LexiconEntry:
    return next(word for word in load_lexicon()[category] if word.lemma == lemma)


def test_it_has_a_thousand_items_and_thirty_features() -> None:
    assert len(WORDS) >= 1000
    assert len({word.lemma for word in load_lexicon()["noun"]}) == len(load_lexicon()["noun"]) >= 1000
    assert len(load_features().by_name) >= 30
    used = {name for word in WORDS for name, values in word.features.items() if values}
    assert set(load_features().by_name) - used == {"form", "degree"}, "only what is chosen in a sentence is in no word"


def test_no_word_occurs_twice() -> None:
    keys = Counter((w.category, w.lemma, w.form("preposition"), w.form("particle"), w.form("frame")) for w in WORDS)
    assert [key for key, count in keys.items() if count > 1] == []


def test_every_kind_of_noun_is_the_object_of_some_verb() -> None:
    kinds = load_features().kinds
    taken = {kind for verb in load_lexicon()["verb"] for kind in verb.values("object")}
    left = {noun.form("kind") for noun in load_lexicon()["noun"] if not kinds.ancestors_of(noun.form("kind")) & taken}
    assert left == {"goods"}, "mass nouns that only files of paradigms name"


def test_forms_are_those_of_the_library() -> None:
    library = pytest.importorskip("lemminflect", reason="lemminflect, of the extra dev, is not installed")
    wrong = []
    for category, forms in {
        "noun": {"plural": "NNS"},
        "verb": {"third": "VBZ", "past": "VBD", "participle": "VBN", "ing": "VBG"},
        "adjective": {"comparative": "JJR", "superlative": "JJS"},
    }.items():
        for word in load_lexicon()[category]:
            head = word.lemma.rpartition(" ")[2]
            for name, tag in forms.items():
                ours = word.form(name).rpartition(" ")[2] if category == "noun" else word.form(name)
                known = library.getInflection(head, tag)
                if ours and not ours.startswith(("more ", "most ")) and ours not in known:
                    wrong.append((word.lemma, ours))
    assert sorted(wrong) == sorted(UNLIKE_THE_LIBRARY)


# Checked by hand: words that the library does not know, or inflects otherwise than dictionaries do.
UNLIKE_THE_LIBRARY = [
    ("son-in-law", "sons-in-law"),
    ("daughter-in-law", "daughters-in-law"),
    ("mother-in-law", "mothers-in-law"),
    ("father-in-law", "fathers-in-law"),
    ("ox", "oxen"),
    ("casino", "casinos"),
    ("lasagna", "lasagnas"),
    ("lemonade", "lemonades"),
    ("bonsai", "bonsai"),
    ("knit", "knitted"),
    ("knit", "knitted"),
    ("ski", "skied"),
]


def test_irregular_forms_equal_the_manual_list() -> None:
    for noun in load_lexicon()["noun"]:
        if noun.form("inflection") == "irregular" and noun.lemma in facts.IRREGULAR_PLURALS:
            assert noun.form("plural") == facts.IRREGULAR_PLURALS[noun.lemma]
    rows = [row.split() for line in facts.IRREGULAR_VERBS.splitlines() for row in line.split(";") if row.strip()]
    by_hand = {verb: forms for verb, *forms in rows}
    for verb in load_lexicon()["verb"]:
        if verb.form("inflection") == "irregular" and verb.lemma in by_hand:
            assert [verb.form("past"), verb.form("participle")] == by_hand[verb.lemma]


def test_inflected_forms() -> None:
    assert inflect(of("verb", "be"), {"form": "past", "number": "pl"}) == "were"
    assert inflect(of("verb", "pick"), {"form": "ing"}) == "picking up"
    assert inflect(of("adjective", "good"), {"degree": "superlative"}) == "best"
    assert inflect(of("auxiliary", "past"), {"number": "pl"}) == ""
    with pytest.raises(SuiteError, match="the number of the noun 'cat' is not set"):
        inflect(of("noun", "cat"), {})


@pytest.mark.parametrize(
    "text", ["an honest man", "a unicycle", "an owl", "a T-shirt", "an heiress", "a ukulele", "a useful thing"]
)
def test_articles_follow_the_sound(text: str) -> None:
    word = text.split(" ", 1)[1]
    assert correct_articles(f"a {word}") == text


def test_a_wrong_feature_or_value_is_an_error_with_its_line() -> None:
    with pytest.raises(SuiteError, match=r"mine, line 2: kind has no value 'persn'\. Did you mean 'person'\?"):
        parse_word("noun", {"lemma": "blick", "kind": "persn"}, "mine, line 2")
    with pytest.raises(SuiteError, match="a noun has no feature 'frame'"):
        parse_word("noun", {"lemma": "blick", "frame": "transitive"}, "mine, line 2")
