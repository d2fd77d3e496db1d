"""Sentences with holes: ``The {subject} {verb form=present number=@subject.number}.``

A hole names a slot or a part. A slot may be followed by choices that hold in this place alone: ``{verb number=$verb}``
takes the number from the value of the factor ``verb``. Spaces are put in order afterwards, "a" becomes "an" where it
must, and the first letter becomes a capital.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from acceptability.errors import SuiteError
from acceptability.generate.constraints import NAME, Term, read_terms
from acceptability.generate.words import with_articles

_HOLE = re.compile(r"\{([^{}]*)\}")
_INSIDE = re.compile(rf"\s*({NAME})((?:\s+\S+)*)\s*")
_SPACES = re.compile(r"\s+")
_BEFORE_MARK = re.compile(r" (?=[,.?!;:])")


@dataclass(frozen=True)
class Hole:
    """A place for a slot's word, or for a part, with the choices that hold here."""

    name: str
    terms: tuple[Term, ...] = ()


Piece = str | Hole


def read_template(text: str) -> tuple[Piece, ...]:
    """Return the pieces of a template.

    >>> read_template("The {cat} sleeps.")
    ('The ', Hole(name='cat', terms=()), ' sleeps.')
    """
    pieces: list[Piece] = []
    last = 0
    for found in _HOLE.finditer(text):
        pieces += [_plain(text[last : found.start()]), _hole(found[1])]
        last = found.end()
    return tuple(piece for piece in [*pieces, _plain(text[last:])] if piece != "")


def _plain(text: str) -> str:
    if "{" in text or "}" in text:
        raise SuiteError(f"a brace is not closed, or not opened, in {text!r}")
    return text


def _hole(inside: str) -> Hole:
    found = _INSIDE.fullmatch(inside)
    if not found:
        raise SuiteError(f"cannot read {{{inside}}}; expected the name of a slot or a part: {{subject}}")
    terms = read_terms(found[2])
    for term in terms:
        if not term.is_equal or term.slot or len(term.values) > 1:
            raise SuiteError(f"{{{inside}}}: {term} does not say one value; expected feature=value")
    return Hole(found[1], terms)


def filled(pieces: tuple[Piece, ...], fill: Callable[[Hole], str]) -> str:
    """Return the text of a template whose holes a function fills."""
    return "".join([piece if isinstance(piece, str) else fill(piece) for piece in pieces])


def tidy(text: str) -> str:
    """Return a text with its spaces in order.

    >>> tidy("the  cat  , they say , sleeps .")
    'the cat, they say, sleeps.'
    """
    return _BEFORE_MARK.sub("", _SPACES.sub(" ", text)).strip()


def as_sentence(text: str) -> str:
    """Return a text as a sentence is written.

    >>> as_sentence("a owl  saw a mouse .")
    'An owl saw a mouse.'
    """
    text = with_articles(tidy(text))
    return text[:1].upper() + text[1:]
