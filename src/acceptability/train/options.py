"""Options of a recipe as they are typed: ``order=3``, ``lower=true``, ``words=spaces``."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any

from acceptability.errors import SpellingError, suggestion
from acceptability.train.recipe import Recipe

_TRUTHS = {"true": True, "yes": True, "false": False, "no": False}


def read_options(recipe: type[Recipe], options: Sequence[str]) -> Recipe:
    """Return a recipe with options in place of its own."""
    known = {each.name: each for each in fields(recipe)}  # type: ignore[arg-type]
    given: dict[str, object] = {}
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip()
        if not equals or not text.strip():
            raise SpellingError(f"cannot read --set {option!r}: write NAME=VALUE")
        if name not in known:
            has = ", ".join(f"{each.name}={each.default!r}" for each in known.values())
            raise SpellingError(f"{recipe.kind} has no option {name!r}.{suggestion(name, known)} It has {has}.")
        if name in given:
            raise SpellingError(f"--set {name} comes twice")
        given[name] = _value(recipe.kind, known[name], text.strip())
    return recipe(**given)


def _value(kind: str, option: Field[Any], text: str) -> object:
    """Return a text as what the option's default is: a truth, a number, a text, or several numbers."""
    wanted = type(option.default)
    if wanted is str:
        return text
    if wanted is bool and text.lower() in _TRUTHS:
        return _TRUTHS[text.lower()]
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        value = None
    if wanted is float and type(value) is int:
        return float(value)
    if type(value) is not wanted:
        names = {bool: "true or false", int: "a whole number", float: "a number", tuple: "numbers in brackets"}
        raise SpellingError(f"{kind}: {option.name} is {text!r}; expected {names.get(wanted, wanted.__name__)}")
    return value
