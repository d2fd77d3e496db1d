"""The rows of GPT-2 in Niu and Penn (2020): the one model of the paper that everybody can have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from acceptability.spelling import read_located
from acceptability.studies.cells import Cell, Key

NAMES = {"gpt2": "GPT-2", "gpt2-xl": "GPT-2 XL"}
"""What the paper calls a model, by the last part of the place where it lies."""

PLACES = {name: place for place, name in NAMES.items()}


def called(models: Sequence[str]) -> dict[str, str]:
    """Return the user's models that the paper has too, by the paper's name.

    >>> called(["uniform", "causal:openai-community/gpt2(bos=None)"])
    {'GPT-2': 'causal:openai-community/gpt2(bos=None)'}
    """
    places = {model: PurePath(read_located(model)[1].partition("@")[0]).name for model in models}
    return {NAMES[place]: model for model, place in places.items() if place in NAMES}


def name_in(key: Key) -> str | None:
    """Return which of GPT-2's models a place of the paper is of; None where it is of none.

    >>> name_in(("Table 2", "GPT-2 models, Raw", "GPT-2 XL LOG")), name_in(("Table 4", "GPT-2, Raw LOG", "median"))
    ('GPT-2 XL', 'GPT-2')
    """
    _, row, column = key
    told = column.rpartition(" ")[0] if row.startswith("GPT-2 models") else row.partition(",")[0]
    return told if told in NAMES.values() else None


def ours(key: Key, model: str, found: Mapping[Key, Cell]) -> Cell | None:
    """Return the cell of a user's GPT-2 that answers to a place of the paper; None where text or strings are others.

    Tables 1, 4 and 6 are of texts, groups and strings that nobody has.
    """
    table, row, column = key
    norm = row.rpartition(", ")[2]
    if table in ("Table 2", "Table 3"):
        return found.get((table, f"{model}, {norm}", column.rpartition(" ")[2]))
    return found.get((table, f"{model}, {norm}", column)) if table == "Table 5" else None
