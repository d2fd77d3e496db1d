"""The words of the lexicon, and their forms.

A word is its category, its lemma and its features, each with one or more values. ``spelled`` gives the form that it has
in a sentence, by the features that were chosen there; a form that needs a choice which nobody made is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from acceptability.errors import SuiteError
from acceptability.generate.features import Values, features, lexicon_file
from acceptability.text import dict_rows

Chosen = Mapping[str, str]
TEXT = "text"


@dataclass(frozen=True, eq=False, slots=True)
class Word:
    """A word of the lexicon; of the category ``text`` if a file of paradigms spells it out."""

    category: str
    lemma: str
    features: Mapping[str, Values] = field(default_factory=dict)

    def values(self, feature: str) -> Values:
        """Return the values of a feature; none where the word has not got it."""
        return self.features.get(feature, ())

    def form(self, name: str) -> str:
        """Return a form that the lexicon spells out."""
        found = self.features.get(name)
        return found[0] if found else ""


@cache
def lexicon() -> Mapping[str, tuple[Word, ...]]:
    """Return the words that come with the package, by category."""
    return {category: _read(category, name) for category, name in features().categories.items()}


def _read(category: str, name: str) -> tuple[Word, ...]:
    return tuple(
        word_of(category, row, f"{name}, line {number}")
        for number, row in dict_rows(lexicon_file(name).read_bytes(), name, delimiter="\t")
    )


def word_of(category: str, row: Mapping[str, str], where: str) -> Word:
    """Return the word that a row of features describes; a wrong feature or value is an error."""
    found: dict[str, Values] = {}
    try:
        for name, cell in row.items():
            feature = features().feature(category, name)
            found[name] = ((cell,) if cell else ()) if feature.type == "text" else _split(cell)
            for value in found[name]:
                feature.check(value, features().kinds)
    except SuiteError as error:
        raise SuiteError(f"{where}: {error}") from error
    if category == "name":
        found["number"] = ("sg",)
    return Word(category, row["lemma"], found)


def _split(cell: str) -> Values:
    return tuple(part for part in cell.split("|") if part)


def numbers(word: Word) -> Values:
    """Return the numbers that a noun can have.

    >>> [numbers(each) for each in lexicon()["noun"] if each.lemma in ("scissors", "cat", "milk")]
    [('sg', 'pl'), ('sg',), ('pl',)]
    """
    return {"mass": ("sg",), "plural_only": ("pl",)}.get(word.form("countability"), ("sg", "pl"))


def spelled(word: Word, chosen: Chosen) -> str:
    """Return a word as it stands in a sentence.

    >>> talk = next(each for each in lexicon()["verb"] if each.lemma == "talk" and each.values("preposition"))
    >>> spelled(talk, {"form": "present", "number": "sg"})
    'talks to'
    """
    return _SPELLED.get(word.category, _lemma)(word, chosen)


def _lemma(word: Word, chosen: Chosen) -> str:
    return word.lemma


def _noun(word: Word, chosen: Chosen) -> str:
    return word.form("plural") if _needed(word, chosen, "number") == "pl" else word.lemma


def _verb(word: Word, chosen: Chosen) -> str:
    after = word.form("preposition") or word.form("particle")
    head = _be(word, chosen) if word.lemma == "be" else _head(word, chosen)
    return f"{head} {after}" if after else head


def _head(word: Word, chosen: Chosen) -> str:
    form = _needed(word, chosen, "form")
    if form == "base" or (form == "present" and _needed(word, chosen, "number") == "pl"):
        return word.lemma
    return word.form("third" if form == "present" else form)


def _be(word: Word, chosen: Chosen) -> str:
    """Return a form of the one verb that has two forms in the past."""
    forms = {"base": "be", "participle": "been", "ing": "being"}
    many = {"present": ("is", "are"), "past": ("was", "were")}
    form = _needed(word, chosen, "form")
    return forms[form] if form in forms else many[form][_needed(word, chosen, "number") == "pl"]


def _adjective(word: Word, chosen: Chosen) -> str:
    degree = chosen.get("degree", "positive")
    return word.lemma if degree == "positive" else word.form(degree)


def _auxiliary(word: Word, chosen: Chosen) -> str:
    return word.form(_needed(word, chosen, "number"))


def _needed(word: Word, chosen: Chosen, feature: str) -> str:
    if feature not in chosen:
        raise SuiteError(f"the {feature} of the {word.category} {word.lemma!r} is not set: write {feature}=…")
    return chosen[feature]


_SPELLED = {"noun": _noun, "verb": _verb, "adjective": _adjective, "auxiliary": _auxiliary}


@cache
def _unlike_their_letters() -> frozenset[str]:
    """Return the words whose article does not follow from their first letter: hour, unicycle."""
    words = [*lexicon()["noun"], *lexicon()["adjective"]]
    odd = (each.lemma for each in words if (each.form("article") == "an") != _is_vowel(each.lemma))
    return frozenset(each.split()[0].lower() for each in odd)


def _is_vowel(text: str) -> bool:
    return text[0].lower() in "aeiou"


_ARTICLE = re.compile(r"\b([Aa]) (?=([\w'-]+))")


def with_articles(text: str) -> str:
    """Return a text in which every "a" before a vowel has become "an".

    >>> with_articles("A honest actor rode a unicycle.")
    'An honest actor rode a unicycle.'
    """
    return _ARTICLE.sub(_article, text) if "a " in text or "A " in text else text


def _article(found: re.Match[str]) -> str:
    word = found[2]
    is_an = _is_vowel(word) != (word.lower() in _unlike_their_letters())
    return f"{found[1]}n " if is_an else found[0]
