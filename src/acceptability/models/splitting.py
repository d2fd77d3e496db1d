"""How text becomes words: four rules, each with a name, the same when a model is trained and when it is asked.

- ``spaces``: a word is what spaces separate.
- ``words``: runs of letters and digits with inner apostrophes or hyphens; punctuation is left out.
- ``punctuation``: such runs, and each punctuation mark.
- ``split``: for models of words that were trained on plain text. Runs of letters and digits; ``n't``, ``'s``, ``'m``,
  ``'d``, ``'re``, ``'ve`` and ``'ll`` are words of their own; numbers keep points and commas between digits, and single
  letters with points (``U.S.``, ``e.g.``) stay together; several points are one word, and so is every other mark.
  ``<unk>``, with which some corpora stand in for rare words, is one word: an unknown one.

A script that writes vowels as combining marks is cut into pieces by all but ``spaces``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from acceptability.types import Span

RULES: Mapping[str, str] = {
    "spaces": r"\S+",
    "words": r"[^\W_]+(?:['’-][^\W_]+)*",
    "punctuation": r"[^\W_]+(?:['’-][^\W_]+)*|[^\w\s]|_",
    "split": (
        r"<unk>"
        r"|(?:[^\W\d_]\.){2,}"
        r"|\d+(?:[.,]\d+)+"
        r"|[^\W_]+(?=[nN]['’][tT](?![^\W_]))|[nN]['’][tT](?![^\W_])"
        r"|['’](?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])(?![^\W_])"
        r"|[^\W_]+|\.{2,}|[^\w\s]|_"
    ),
}


def spans(text: str, rule: str) -> list[Span]:
    """Return where the words of a text stand.

    >>> text = "She doesn't pay $1,000."
    >>> [text[start:end] for start, end in spans(text, "split")]
    ['She', 'does', "n't", 'pay', '$', '1,000', '.']
    """
    return [found.span() for found in re.finditer(RULES[rule], text)]


def spelled(word: str, *, lower: bool) -> str:
    """Return a word as a vocabulary has it: straight apostrophes, and lower case if it knows no other.

    >>> spelled("Isn’t", lower=True)
    "isn't"
    """
    word = word.replace("’", "'")
    return word.lower() if lower else word
