"""Minimal pairs of a factorial design: sentences of one item that differ in one factor, and in acceptability.

As in Warstadt et al. (2019, five analysis methods with NPIs), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from acceptability.types import Contrast, Sentence, Suite, contrast

_ITEMS = ("set", "item", "paradigm")
VARIED = "varied"
"""The tag of a pair that names the factor in which it differs."""


def minimal_pairs(suite: Suite, factors: Sequence[str]) -> Suite:
    """Return the suite with its minimal pairs; each has the tag ``varied``, which names the factor that differs.

    >>> def sentence(name, label, number):
    ...     return Sentence(name, name, label, tags={"item": "1", "number": number, "definite": "no"})
    >>> both = Suite("s", (sentence("a", 1, "plural"), sentence("b", 0, "singular")))
    >>> [(each.id, each.tags["varied"]) for each in minimal_pairs(both, ["number", "definite"]).contrasts]
    [('a > b', 'number')]
    """
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        tag = next((tag for tag in _ITEMS if tag in sentence.tags), None)
        if tag and sentence.label is not None and all(factor in sentence.tags for factor in factors):
            items.setdefault(f"{tag}={sentence.tags[tag]}", []).append(sentence)
    made = [pair for members in items.values() for pair in _pairs(members, factors)]
    return Suite(suite.name, suite.sentences, (*suite.contrasts, *made))


def _pairs(members: Sequence[Sentence], factors: Sequence[str]) -> list[Contrast]:
    made = []
    for first, second in combinations(members, 2):
        varied = [factor for factor in factors if first.tags[factor] != second.tags[factor]]
        if first.label != second.label and first.text != second.text and len(varied) == 1:
            better, worse = (first, second) if first.label else (second, first)
            plain = contrast(better, worse)
            made.append(Contrast(plain.better, plain.worse, {**plain.tags, VARIED: varied[0]}))
    return made
