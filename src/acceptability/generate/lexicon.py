"""The lexicon: words with their features, their inflection, and indefinite articles.

A word consists of a category, a lemma and features with one or more values each. ``inflect`` returns its form in a
sentence, given the features chosen there; a form that depends on a feature without a choice is an error.

``data/lexicon/features.toml`` defines the features. A feature has the type ``word`` (one or more of the listed values),
``kind`` (what a noun denotes), ``kinds`` (what a verb or an adjective selects) or ``text``. Some features are not fixed
for a word but chosen in a sentence: the number of a noun, the form of a verb. Kinds form a tree: an adult is a person.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from acceptability.errors import SuiteError, suggest_name
from acceptability.text.io import read_dict_rows

FeatureValues = tuple[str, ...]


@dataclass(frozen=True)
class Feature:
    """A feature of words.

    Args:
        name: The name of the feature.
        type: "word", "kind", "kinds" or "text".
        categories: The categories that have the feature.
        values: The possible values, of a feature of the type "word".
        choice_categories: The categories for which it is chosen in a sentence, and not fixed in the lexicon.
        description: What the feature means.
    """

    name: str
    type: str
    categories: FeatureValues
    values: FeatureValues
    choice_categories: FeatureValues
    description: str

    def check_value(self, value: str, kinds: KindHierarchy) -> None:
        """Raise an error for a value that the feature cannot have."""
        known = {"word": self.values, "kind": kinds.names, "kinds": kinds.names}.get(self.type)
        if known is not None and value not in known:
            raise SuiteError(
                f"{self.name} has no value {value!r}.{suggest_name(value, known)} Its values are {', '.join(known)}."
            )


@dataclass(frozen=True)
class KindHierarchy:
    """The tree of kinds: an adult is a person, a person is animate.

    >>> sorted(KindHierarchy({"person": ("adult", "child")}).ancestors_of("adult"))
    ['adult', 'person']
    """

    children: Mapping[str, FeatureValues]

    @cached_property
    def names(self) -> FeatureValues:
        """All kinds, those with children first."""
        return tuple(dict.fromkeys([*self.children, *(narrow for under in self.children.values() for narrow in under)]))

    # All paths to the root at once: sampling looks ancestors up for every candidate word.
    @cached_property
    def _ancestors(self) -> dict[str, frozenset[str]]:
        parent = {narrow: broad for broad, under in self.children.items() for narrow in under}
        return {name: frozenset(_path_to_root(name, parent)) for name in self.names}

    def ancestors_of(self, kind: str) -> frozenset[str]:
        """Return a kind and all its ancestors."""
        return self._ancestors[kind]

    def is_any_subsumed(self, kinds: Iterable[str], broad: Iterable[str]) -> bool:
        """Return whether at least one of the kinds equals, or descends from, one of the broad ones."""
        broad_kinds = set(broad)
        return any(self.ancestors_of(kind) & broad_kinds for kind in kinds)


@dataclass(frozen=True)
class FeatureInventory:
    """All features, the file of each category, and the tree of kinds."""

    by_name: Mapping[str, Feature]
    categories: Mapping[str, str]
    kinds: KindHierarchy

    def check_category(self, name: str) -> str:
        """Return the name of a category; an error if there is none of that name."""
        if name not in self.categories:
            raise SuiteError(
                f"there is no category {name!r}.{suggest_name(name, self.categories)} "
                f"The categories are {', '.join(self.categories)}."
            )
        return name

    def get_feature(self, category: str, name: str) -> Feature:
        """Return a feature of a category; an error if the category does not have it."""
        candidate = self.by_name.get(name)
        if candidate is not None and category in candidate.categories:
            return candidate
        known = [other_name for other_name, feature in self.by_name.items() if category in feature.categories]
        raise SuiteError(f"a {category} has no feature {name!r}.{suggest_name(name, known)} It has {', '.join(known)}.")


def lexicon_path(name: str) -> Traversable:
    """Return the path of a file of the built-in lexicon."""
    return files("acceptability.generate").joinpath("data", "lexicon", name)


# Cached, as every word and every constraint is checked against it.
@cache
def load_features() -> FeatureInventory:
    """Return the features defined in ``data/lexicon/features.toml``."""
    document = tomllib.loads(lexicon_path("features.toml").read_text(encoding="utf-8"))
    by_name = {
        name: Feature(
            name,
            row["type"],
            tuple(row["of"]),
            tuple(row.get("values", ())),
            tuple(row.get("choice", ())),
            row["description"],
        )
        for name, row in document["features"].items()
    }
    return FeatureInventory(
        by_name,
        document["categories"],
        KindHierarchy({name: tuple(under) for name, under in document["kinds"].items()}),
    )


def _path_to_root(name: str, parent: Mapping[str, str]) -> list[str]:
    path_to_root = [name]
    while path_to_root[-1] in parent:
        path_to_root.append(parent[path_to_root[-1]])
    return path_to_root


Inflection = Mapping[str, str]
TEXT_CATEGORY = "text"


# Compared by identity: homonyms with the same lemma are different words.
@dataclass(frozen=True, eq=False, slots=True)
class LexiconEntry:
    """A word of the lexicon, or of the category ``text`` if it is a plain text in a paradigm file."""

    category: str
    lemma: str
    features: Mapping[str, FeatureValues] = field(default_factory=dict)

    def values(self, feature: str) -> FeatureValues:
        """Return the values of a feature; none if the word does not have it."""
        return self.features.get(feature, ())

    def form(self, name: str) -> str:
        """Return a form listed in the lexicon; empty if there is none."""
        values = self.features.get(name)
        return values[0] if values else ""


@cache
def load_lexicon() -> Mapping[str, tuple[LexiconEntry, ...]]:
    """Return the words of the built-in lexicon, by category."""
    return {category: _read_words(category, name) for category, name in load_features().categories.items()}


def _read_words(category: str, name: str) -> tuple[LexiconEntry, ...]:
    return tuple(
        parse_word(category, row, f"{name}, line {number}")
        for number, row in read_dict_rows(lexicon_path(name).read_bytes(), name, delimiter="\t")
    )


def parse_word(category: str, row: Mapping[str, str], where: str) -> LexiconEntry:
    """Return the word in a row of the lexicon; an unknown feature or value is an error.

    Args:
        category: The category of the word.
        row: The cells, by the name of the feature.
        where: The file and line, for messages.
    """
    feature_values: dict[str, FeatureValues] = {}
    try:
        for name, cell in row.items():
            feature = load_features().get_feature(category, name)
            # A text is not split at "|": it is one form, whatever its characters.
            feature_values[name] = ((cell,) if cell else ()) if feature.type == "text" else _split_values(cell)
            for value in feature_values[name]:
                feature.check_value(value, load_features().kinds)
    except SuiteError as error:
        raise SuiteError(f"{where}: {error}") from error
    # The file of names has no such column, as all of them are singular, and verbs agree with them.
    if category == "name":
        feature_values["number"] = ("sg",)
    return LexiconEntry(category, row["lemma"], feature_values)


def _split_values(cell: str) -> FeatureValues:
    return tuple(part for part in cell.split("|") if part)


def list_numbers(word: LexiconEntry) -> FeatureValues:
    """Return the numbers that a noun can have: only "sg" for mass nouns, only "pl" for pluralia tantum.

    >>> [list_numbers(word) for word in load_lexicon()["noun"] if word.lemma in ("scissors", "cat", "milk")]
    [('sg', 'pl'), ('sg',), ('pl',)]
    """
    return {"mass": ("sg",), "plural_only": ("pl",)}.get(word.form("countability"), ("sg", "pl"))


def inflect(word: LexiconEntry, inflection: Inflection) -> str:
    """Return the inflected form of a word, with its preposition or particle.

    Args:
        word: A word of the lexicon.
        inflection: The chosen value of each feature, such as ``{"number": "sg"}``.

    >>> talk = next(word for word in load_lexicon()["verb"] if word.lemma == "talk" and word.values("preposition"))
    >>> inflect(talk, {"form": "present", "number": "sg"})
    'talks to'
    """
    return _INFLECTORS.get(word.category, _inflect_invariant)(word, inflection)


def _inflect_invariant(word: LexiconEntry, inflection: Inflection) -> str:
    return word.lemma


def _inflect_noun(word: LexiconEntry, inflection: Inflection) -> str:
    return word.form("plural") if _require_feature(word, inflection, "number") == "pl" else word.lemma


def _inflect_verb(word: LexiconEntry, inflection: Inflection) -> str:
    after = word.form("preposition") or word.form("particle")
    # "be" is the only verb that the regular columns of the lexicon cannot describe.
    head = _inflect_be(word, inflection) if word.lemma == "be" else _inflect_verb_head(word, inflection)
    return f"{head} {after}" if after else head


def _inflect_verb_head(word: LexiconEntry, inflection: Inflection) -> str:
    form = _require_feature(word, inflection, "form")
    if form == "base" or (form == "present" and _require_feature(word, inflection, "number") == "pl"):
        return word.lemma
    return word.form("third" if form == "present" else form)


def _inflect_be(word: LexiconEntry, inflection: Inflection) -> str:
    """Return a form of "be", the only verb whose past form depends on number."""
    forms = {"base": "be", "participle": "been", "ing": "being"}
    by_number = {"present": ("is", "are"), "past": ("was", "were")}
    form = _require_feature(word, inflection, "form")
    return forms[form] if form in forms else by_number[form][_require_feature(word, inflection, "number") == "pl"]


def _inflect_adjective(word: LexiconEntry, inflection: Inflection) -> str:
    # The one feature with a default, as the positive is meant wherever a paradigm does not compare.
    degree = inflection.get("degree", "positive")
    return word.lemma if degree == "positive" else word.form(degree)


def _inflect_auxiliary(word: LexiconEntry, inflection: Inflection) -> str:
    return word.form(_require_feature(word, inflection, "number"))


def _require_feature(word: LexiconEntry, inflection: Inflection, feature: str) -> str:
    # A default would produce sentences with a silent agreement error.
    if feature not in inflection:
        raise SuiteError(f"the {feature} of the {word.category} {word.lemma!r} is not set: write {feature}=…")
    return inflection[feature]


_INFLECTORS = {
    "noun": _inflect_noun,
    "verb": _inflect_verb,
    "adjective": _inflect_adjective,
    "auxiliary": _inflect_auxiliary,
}


@cache
def _list_article_exceptions() -> frozenset[str]:
    """Return the words whose article does not follow from their first letter: hour, unicycle."""
    # Only nouns and adjectives list an article; only the first word of a compound follows it.
    words = [*load_lexicon()["noun"], *load_lexicon()["adjective"]]
    odd = (word.lemma for word in words if (word.form("article") == "an") != _is_vowel(word.lemma))
    return frozenset(lemma.split()[0].lower() for lemma in odd)


def _is_vowel(text: str) -> bool:
    return text[0].lower() in "aeiou"


_ARTICLE = re.compile(r"\b([Aa]) (?=([\w'-]+))")


def correct_articles(text: str) -> str:
    """Return a text with every "a" before a vowel sound changed to "an".

    >>> correct_articles("A honest actor rode a unicycle.")
    'An honest actor rode a unicycle.'
    """
    # The test for substrings spares sentences without an article the regular expression.
    return _ARTICLE.sub(_correct_article, text) if "a " in text or "A " in text else text


def _correct_article(match: re.Match[str]) -> str:
    word = match[2]
    is_an = _is_vowel(word) != (word.lower() in _list_article_exceptions())
    return f"{match[1]}n " if is_an else match[0]
