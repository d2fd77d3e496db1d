"""Fake sentences from real ones: some words change places, and all else stays as it was.

Warstadt, Singh and Bowman (2019, section 4.1) permute a random subset of the words of a sentence and keep the others
where they are; how large the subset is they do not say. Here its size is drawn first, each from two words to all
being equally likely, so that both a single exchange and a whole jumble occur.

A fake must be told by its grammar, not by its spelling. A word is therefore what spaces separate, without the marks at
its edges: these stay, so that the final mark, commas, quotation marks and brackets stand where they stood, and
``don't`` and ``well-known`` remain whole. A word with a point after it that is not the last one keeps its place, since
``Mr.`` may not leave the point behind. The capital at the beginning stays too: a word that comes there gets one,
and the word that stood there leaves it behind. Whether that word has a capital of its own, as a name has, only
other sentences tell: it moves if it is among the words known to be written small, and else keeps its place.
Some fakes are good sentences all the same ("dogs and cats" for "cats and dogs"): a price of the method.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import numpy as np

_WORD = re.compile(r"[^\W_](?:\S*[^\W_])?")


def permuted(words: Sequence[str], random: np.random.Generator) -> list[str] | None:
    """Return the words, some of which have changed places; None if every order of them is the same.

    >>> permuted(["cats", "chase", "dogs"], np.random.default_rng(1))
    ['chase', 'cats', 'dogs']
    >>> permuted(["very", "very"], np.random.default_rng(1)) is None
    True
    """
    if len(set(words)) < 2:
        return None
    while True:
        count = int(random.integers(2, len(words) + 1))
        # The first of a random order are both a random subset and, among themselves, in a random order.
        taken = random.permutation(len(words))[:count].tolist()
        found = list(words)
        for place, other in zip(sorted(taken), taken, strict=True):
            found[place] = words[other]
        if found != list(words):
            return found


def permuted_text(text: str, random: np.random.Generator, small: Collection[str] = ()) -> str | None:
    """Return a sentence some of whose words have changed places; None if there is no other order of them.

    Args:
        small: Words known to be written without a capital. A first word with a capital moves only if it is one of them.

    >>> permuted_text("The cat, they say, sees Mr. Fox.", np.random.default_rng(2), small={"the"})
    'Fox cat, they say, sees Mr. the.'
    """
    found = [each.span() for each in _WORD.finditer(text)]
    spans = [(start, end) for start, end in found if text[end : end + 1] != "." or (start, end) == found[-1]]
    if not spans:
        return None
    words = [text[start:end] for start, end in spans]
    first = words[0]
    begins = spans[0] == found[0] and first[0].isupper()
    if begins and _small(first) not in small:
        spans, words, begins = spans[1:], words[1:], False
    moved = permuted([_small(first), *words[1:]] if begins else words, random)
    if moved is None:
        return None
    if begins:
        moved[0] = moved[0][0].upper() + moved[0][1:]
    return _replaced(text, spans, moved)


def small_words(texts: Iterable[str]) -> frozenset[str]:
    """Return the words that are written without a capital somewhere.

    >>> sorted(small_words(["The cat saw Ann.", "I like the sea."]))
    ['cat', 'like', 'saw', 'sea', 'the']
    """
    return frozenset(word for text in texts for word in _WORD.findall(text) if word.islower())


def _small(word: str) -> str:
    return word[0].lower() + word[1:]


def _replaced(text: str, spans: Sequence[tuple[int, int]], words: Sequence[str]) -> str:
    """Return a text with other words at some places."""
    parts, last = [], 0
    for (start, end), word in zip(spans, words, strict=True):
        parts += [text[last:start], word]
        last = end
    return "".join([*parts, text[last:]])
