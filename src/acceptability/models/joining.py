"""From words back to text, as people write it: what the rules of ``splitting`` cut apart is put together again.

Spaces are lost when text is cut into words, so that this is a guess, and a good one: no space before a comma or
``n't``, none after an opening bracket, none around a hyphen or dash. Straight quotation marks open and close in turn;
a lone apostrophe closes what one before it has opened, or else a word that ends in s, as in ``the cats' food``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_CLOSING = re.compile(r"[,;:!?)\]}%”…°]|\.+|[nN]['’][tT]|['’](?:[sSmMdD]|[rR][eE]|[vV][eE]|[lL][lL])")
_OPENING = frozenset("([{“‘$£€#¿¡@")
_INNER = frozenset("-‑–—/_")
_ELIDED = frozenset(("o", "d", "l"))
_TIME = re.compile(r"(?<=\d): (?=\d\d\b)")
_APOSTROPHES = frozenset("'’")
_QUOTES = _APOSTROPHES | {'"'}


def joined(words: Sequence[str], rule: str = "split") -> str:
    """Return the text of words that a rule has cut, or might have cut.

    >>> joined(["She", "does", "n't", "pay", "$", "1,000", "(", "\\"", "a", "lot", "\\"", ")", "."])
    'She doesn\\'t pay $1,000 ("a lot").'
    >>> joined(["a", "well", "-", "known", "word"])
    'a well-known word'
    """
    if rule in ("spaces", "words"):
        return " ".join(words)
    parts: list[str] = []
    opened: set[str] = set()
    is_glued = True
    for word in words:
        before = parts[-1] if parts else ""
        is_inner = word in _INNER or (word in _APOSTROPHES and before.lower() in _ELIDED)
        closes = not is_inner and (_closes(word, before, opened) if word in _QUOTES else _is_closing(word, before))
        parts += [word] if is_glued or is_inner or closes else [" ", word]
        is_glued = is_inner or word in _OPENING or (word in _QUOTES and not closes)
        if word in _QUOTES and not is_inner and closes == (word in opened):
            opened ^= {word}
    return _TIME.sub(":", "".join(parts))


def _closes(mark: str, before: str, opened: set[str]) -> bool:
    """Tell whether a quotation mark belongs to the word before it."""
    return mark in opened or (mark in _APOSTROPHES and before.lower().endswith("s"))


def _is_closing(word: str, before: str) -> bool:
    """Tell whether a mark belongs to the word before it; points after points would be read as one word with them."""
    return bool(_CLOSING.fullmatch(word)) and not (word.startswith(".") and before.strip(".") == "")
