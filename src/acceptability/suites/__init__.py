"""Sentences and contrasts: the published suites, our own, and a user's files."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from acceptability import registry
from acceptability.errors import SuiteError
from acceptability.suites.catalog import Entry, catalog, entries, unknown
from acceptability.suites.fetch import contents
from acceptability.suites.frames import hub_rows
from acceptability.suites.notation import read_notation
from acceptability.suites.syntaxgym import read_json
from acceptability.suites.tables import ENDINGS, is_table, read_table, suite_of_rows
from acceptability.types import Sentence, Suite

_log = logging.getLogger(__name__)

__all__ = ["Entry", "catalog", "entries", "load_suite"]


def load_suite(
    name: str, *, columns: Mapping[str, str] | None = None, marks: Mapping[str, int | None] | None = None
) -> Suite:
    """Return a suite by its name in the catalog, or read from a user's file or a data set of the Hub.

    A name that stands above several suites (``cola``) means all of them together,
    with the tag ``suite`` to tell them apart; a path below one (``blimp/island_effects``)
    means the sentences whose ids begin so.

    Args:
        columns: For a table, which of its columns mean what: ``{"text": "Sentence"}``.
        marks: For a .txt file of examples, the labels of marks where they are not CoLA's: ``{"?": 1}``.

    >>> suite = load_suite("starter")
    >>> suite.contrasts[0].better in suite.by_id
    True
    """
    if marks and not name.lower().endswith(".txt"):
        raise SuiteError(f"marks are for a .txt file of examples, and {name!r} is none")
    if is_table(name):
        return read_table(Path(name), columns=columns or {})
    if name.startswith("hf:"):
        title, header, rows = hub_rows(name.removeprefix("hf:"))
        return suite_of_rows(title, name, header, rows, columns or {})
    if columns:
        raise SuiteError(f"columns can be named for a file only, and {name!r} ends in none of {', '.join(ENDINGS)}")
    if name.lower().endswith(".txt"):
        return read_notation(Path(name), marks=marks)
    if name.lower().endswith(".json"):
        return read_json(Path(name))
    found = entries(name)
    if len(found) == 1 and found[0].id == name:
        return _read(found[0])
    if found:
        return _together(name, [_read(entry) for entry in found])
    above = [entry for entry in catalog() if name.startswith(f"{entry.id}/")]
    if above:
        return _below(name, _read(max(above, key=lambda entry: len(entry.id))))
    raise unknown(name)


def _read(entry: Entry) -> Suite:
    reader = registry.find("reader", entry.reader)
    suite: Suite = reader(entry, contents(entry))
    return suite


def _together(name: str, suites: list[Suite]) -> Suite:
    tagged = (
        replace(sentence, tags={**sentence.tags, "suite": suite.name})
        for suite in suites
        for sentence in suite.sentences
    )
    contrasts = (
        replace(contrast, tags={**contrast.tags, "suite": suite.name})
        for suite in suites
        for contrast in suite.contrasts
    )
    whole = Suite(name, tuple(tagged), tuple(contrasts))
    again = len(whole.sentences) - len({sentence.text for sentence in whole.sentences})
    names = ", ".join(suite.name for suite in suites)
    _log.warning("%s means %d suites together (%s); %d of their texts repeat others", name, len(suites), names, again)
    return whole


def _below(name: str, suite: Suite) -> Suite:
    def is_below(sentence: Sentence) -> bool:
        return f"{sentence.id}/".startswith(f"{name}/") or f"{suite.name}/{sentence.id}/".startswith(f"{name}/")

    kept = tuple(filter(is_below, suite.sentences))
    if not kept:
        raise unknown(name)
    ids = {sentence.id for sentence in kept}
    contrasts = (each for each in suite.contrasts if each.better in ids and each.worse in ids)
    return Suite(name, kept, tuple(contrasts))
