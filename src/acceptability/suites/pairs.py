"""Suites that are nothing but pairs: how most readers put theirs together."""

from __future__ import annotations

from collections.abc import Iterable

from acceptability.types import Contrast, Sentence, Span, Suite, Tags, contrast

Pair = tuple[Sentence, Sentence]


def pair(item: str, good: str, bad: str, tags: Tags) -> Pair:
    """Return the two sentences of an item, the better one first, with the tags that they share."""
    tags = {"item": item, **tags}
    return Sentence(f"{item}/good", good, label=1, tags=tags), Sentence(f"{item}/bad", bad, label=0, tags=tags)


def suite_of_pairs(name: str, pairs: Iterable[Pair]) -> Suite:
    """Return the suite of pairs, each of which is a contrast."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for good, bad in pairs:
        sentences += good, bad
        contrasts.append(contrast(good, bad))
    return Suite(name, tuple(sentences), tuple(contrasts))


def with_word(words: list[str], place: int, word: str) -> tuple[str, Span]:
    """Return a text with a word put in at a place, and where it stands.

    >>> with_word(["the", "cats", "sleep"], 1, "dogs")
    ('the dogs sleep', (4, 8))
    """
    before = " ".join([*words[:place], ""])
    text = " ".join([*words[:place], word, *words[place + 1 :]])
    return text, (len(before), len(before) + len(word))
