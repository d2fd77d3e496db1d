"""Contrasts from sentences: all pairs within items, minimal pairs of factorial designs, and suites of pairs.

- ``pair_within_items`` pairs every acceptable sentence of an item with every unacceptable one, as LI-Adger was built
  (Vázquez Martínez 2021, section 4 and appendix A).
- ``add_minimal_pairs`` pairs sentences of an item that differ in one factor and in acceptability (Warstadt et al.
  2019, five analysis methods with NPIs, section 3).
- ``build_pair_suite`` and ``make_pair`` build the suites that consist of nothing but pairs, for the readers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

from acceptability.errors import SuiteError, suggest_name
from acceptability.types import Contrast, Sentence, Span, Suite, Tags, make_contrast


def pair_within_items(suite: Suite, by: str = "item") -> Suite:
    """Return the suite with the contrasts of every acceptable with every unacceptable sentence of an item added.

    Args:
        by: The tag whose values identify the items.

    >>> tags = {"item": "8"}
    >>> sentences = tuple(Sentence(str(i), f"s{i}", label=i, tags=tags) for i in (0, 1))
    >>> pair_within_items(Suite("s", sentences)).contrasts[0].id
    '1 > 0'
    """
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        if by in sentence.tags and sentence.label is not None:
            items.setdefault(sentence.tags[by], []).append(sentence)
    if not items:
        tag_names = ", ".join(suite.tag_names) or "none"
        hint = suggest_name(by, suite.tag_names)
        raise SuiteError(
            f"suite {suite.name!r} has no labelled sentences with the tag {by!r}; its tags: {tag_names}.{hint}"
        )
    new_contrasts = [
        make_contrast(better, worse)
        for members in items.values()
        for better in members
        if better.label == 1
        for worse in members
        if worse.label == 0
    ]
    if not new_contrasts:
        raise SuiteError(f"suite {suite.name!r}: no {by} has both an acceptable and an unacceptable sentence")
    # A pair that the suite has already keeps its tags: in a union of dictionaries the right one wins.
    existing_contrasts = {(contrast.better, contrast.worse): contrast for contrast in suite.contrasts}
    all_contrasts: dict[tuple[str, str], Contrast] = {
        (contrast.better, contrast.worse): contrast for contrast in new_contrasts
    } | existing_contrasts
    return Suite(suite.name, suite.sentences, tuple(all_contrasts.values()))


# The tags that may identify an item, the first that a sentence has. "set" is unique within a suite; "item" and
# "paradigm" are numbers that some suites reuse across environments.
_ITEM_TAGS = ("set", "item", "paradigm")

VARIED_TAG = "varied"
"""The tag of a minimal pair that names the factor in which its sentences differ."""


def add_minimal_pairs(suite: Suite, factors: Sequence[str]) -> Suite:
    """Return the suite with its minimal pairs added; their tag ``varied`` names the factor that differs.

    Args:
        factors: The tags that are factors of the design; sentences that lack one of them are not paired.

    >>> def sentence(name, label, number):
    ...     return Sentence(name, name, label, tags={"item": "1", "number": number, "definite": "no"})
    >>> both = Suite("s", (sentence("a", 1, "plural"), sentence("b", 0, "singular")))
    >>> [(pair.id, pair.tags["varied"]) for pair in add_minimal_pairs(both, ["number", "definite"]).contrasts]
    [('a > b', 'number')]
    """
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        tag = next((tag for tag in _ITEM_TAGS if tag in sentence.tags), None)
        if tag and sentence.label is not None and all(factor in sentence.tags for factor in factors):
            items.setdefault(f"{tag}={sentence.tags[tag]}", []).append(sentence)
    added = [pair for members in items.values() for pair in _find_minimal_pairs(members, factors)]
    return Suite(suite.name, suite.sentences, (*suite.contrasts, *added))


def _find_minimal_pairs(members: Sequence[Sentence], factors: Sequence[str]) -> list[Contrast]:
    minimal_contrasts = []
    for first, second in combinations(members, 2):
        varied = [factor for factor in factors if first.tags[factor] != second.tags[factor]]
        if first.label != second.label and first.text != second.text and len(varied) == 1:
            better, worse = (first, second) if first.label else (second, first)
            plain = make_contrast(better, worse)
            minimal_contrasts.append(Contrast(plain.better, plain.worse, {**plain.tags, VARIED_TAG: varied[0]}))
    return minimal_contrasts


MinimalPair = tuple[Sentence, Sentence]


def make_pair(item: str, good: str, bad: str, tags: Tags) -> MinimalPair:
    """Return the two sentences of an item, the acceptable one first; both get the same tags."""
    tags = {"item": item, **tags}
    return Sentence(f"{item}/good", good, label=1, tags=tags), Sentence(f"{item}/bad", bad, label=0, tags=tags)


def build_pair_suite(name: str, pairs: Iterable[MinimalPair]) -> Suite:
    """Return the suite that has these pairs as its contrasts."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for good, bad in pairs:
        sentences += good, bad
        contrasts.append(make_contrast(good, bad))
    return Suite(name, tuple(sentences), tuple(contrasts))


def replace_word(words: list[str], word_index: int, word: str) -> tuple[str, Span]:
    """Return the text of some words, joined by spaces, with one of them replaced, and the span of the new word.

    >>> replace_word(["the", "cats", "sleep"], 1, "dogs")
    ('the dogs sleep', (4, 8))
    """
    before = " ".join([*words[:word_index], ""])
    text = " ".join([*words[:word_index], word, *words[word_index + 1 :]])
    return text, (len(before), len(before) + len(word))
