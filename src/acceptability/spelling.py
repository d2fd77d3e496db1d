"""How things with options are written: ``ADC(delta=0.5)``, one way in Python, shell and signature.

A spelling is a name, perhaps with options in brackets. Options are literals
(numbers, strings, True, False, None) or, as in ``exp(slor(unigrams='file.tsv'))``,
another spelling. It is read as data: nothing in it is ever executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from acceptability.errors import SpellingError

_BARE_NAME = re.compile(r"[A-Za-z_][\w.-]*\Z")
_OPENING = re.compile(r"\((?=\s*(?:\)|[A-Za-z_]\w*\s*=))")
_MOST_CHARACTERS = 10_000
_MOST_OPENINGS = 50

Option = object
"""A literal, or a Spelled inside another one."""


@dataclass(frozen=True)
class Spelled:
    """A name with its options, read but not yet looked up."""

    name: str
    args: tuple[Option, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)


def read(text: str) -> Spelled:
    """Return the name and the options that a spelling gives.

    >>> read("ADC(delta=0.5)")
    Spelled(name='ADC', args=(), options={'delta': 0.5})
    >>> read("lp").name
    'lp'
    """
    text = text.strip()
    if _BARE_NAME.match(text):
        return Spelled(text)
    try:
        if len(text) > _MOST_CHARACTERS:
            raise SyntaxError("it is too long")
        tree = ast.parse(text, mode="eval").body
        if not isinstance(tree, ast.Call):
            raise SyntaxError("it is not a name")
        return _spelled(tree)
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error) or "it is too deep"
        raise SpellingError(
            f"cannot read {text[:80]!r}: {reason}. Write a name, or a name with options: Name(option=value)."
        ) from error


def read_located(text: str) -> tuple[str, str, dict[str, Option]]:
    """Return kind, place and options of ``kind:place(option=value)``.

    A place may itself contain brackets: only a last pair that holds options counts.

    >>> read_located("masked:bert (mine)/v1(variant='word_l2r')")
    ('masked', 'bert (mine)/v1', {'variant': 'word_l2r'})
    >>> read_located("uniform")
    ('uniform', '', {})
    """
    if len(text) > _MOST_CHARACTERS:
        raise SpellingError(f"cannot read {text[:80]!r}: it has more than {_MOST_CHARACTERS:,} characters.")
    if not text.isascii() and any("\ud800" <= each <= "\udfff" for each in text):
        raise SpellingError(f"cannot read {text[:80]!a}: it is not UTF-8. Rename the file and try again.")
    head, options = _split_options(text.strip())
    kind, colon, place = head.partition(":")
    if not colon and not _BARE_NAME.match(head):
        raise SpellingError(f"cannot read {text[:80]!r}: write NAME, KIND:PLACE or KIND:PLACE(option=value).")
    for name, value in options.items():
        if isinstance(value, Spelled):
            raise SpellingError(f"cannot read {text[:80]!r}: put quotes round {value.name}: {name}='{value.name}'.")
    return kind, place, options


def _split_options(text: str) -> tuple[str, dict[str, Option]]:
    """Return what stands before the options, and the options: the last brackets that read as such."""
    starts = [found.start() for found in _OPENING.finditer(text)] if text.endswith(")") else []
    starts = starts[-_MOST_OPENINGS:]
    for start in reversed(starts):
        try:
            return text[:start], dict(read("options" + text[start:]).options)
        except SpellingError:
            if start == starts[0]:
                raise
    return text, {}


def write(name: str, options: Mapping[str, object]) -> str:
    """Return the spelling of a name with options, in the order given.

    >>> write("ADC", {"delta": 0.5, "tie": "sign"})
    "ADC(delta=0.5, tie='sign')"
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in options.items())})"


def _spelled(tree: ast.Call) -> Spelled:
    if not isinstance(tree.func, ast.Name):
        raise SyntaxError("it is not a plain name")
    names = [each.arg for each in tree.keywords]
    if None in names:
        raise SyntaxError("** has no meaning here")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise SyntaxError(f"the option {twice} comes twice")
    args = tuple(_option(each) for each in tree.args)
    return Spelled(tree.func.id, args, {str(each.arg): _option(each.value) for each in tree.keywords})


def _option(tree: ast.expr) -> Option:
    if isinstance(tree, ast.Call):
        return _spelled(tree)
    if isinstance(tree, ast.Name):
        return Spelled(tree.id)
    try:
        return ast.literal_eval(tree)
    except ValueError:
        raise SyntaxError("an option is neither a number, a text, True, False nor None") from None
