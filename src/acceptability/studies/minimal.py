"""The minimal structures of Linguistic Inquiry, as Niu and Penn (2020), section 5.2, take them."""

from __future__ import annotations

from acceptability.types import Sentence, Suite

Structures = dict[str, tuple[Sentence, ...]]


def minimal_structures(suite: Suite) -> Structures:
    """Return the strings of each pair of sentence types that differ in nothing but their mark, ``g`` against ``*``.

    The suite is LI-Adger, whose ids tell: ``32.1.martin.1a.g.01`` and ``32.1.martin.1a.*.01`` are of one structure.
    Types marked ``?`` or ``??`` have no part in it, nor has Adger's textbook: 57 structures of 16 strings.
    """
    types: dict[str, dict[str, list[Sentence]]] = {}
    for each in suite.sentences:
        structure, mark, _ = each.id.rsplit(".", 2)
        if each.tags["source"] == "LI" and mark in ("g", "*"):
            types.setdefault(structure, {}).setdefault(mark, []).append(each)
    return {name: (*marks["g"], *marks["*"]) for name, marks in types.items() if len(marks) == 2}
