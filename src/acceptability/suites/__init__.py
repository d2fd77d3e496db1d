"""Suites: published ones from the catalog, our own, a user's files, and data sets of the Hugging Face Hub."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from acceptability import registry
from acceptability.errors import ReportError, SpecError, SuiteError
from acceptability.suites.catalog import CatalogEntry, find_entries, load_catalog, read_contents, unknown_suite_error
from acceptability.suites.notation import read_notation, write_notation
from acceptability.suites.readers.regions import read_syntaxgym_json
from acceptability.suites.tables import (
    TABLE_SUFFIXES,
    build_suite_from_rows,
    is_table_file,
    load_hub_rows,
    read_table,
    write_jsonl,
)
from acceptability.types import Sentence, Suite

_log = logging.getLogger(__name__)

__all__ = ["CatalogEntry", "find_entries", "is_catalog_name", "load_catalog", "load_suite", "write_suite"]


def load_suite(
    name: str, *, columns: Mapping[str, str] | None = None, marks: Mapping[str, int | None] | None = None
) -> Suite:
    """Return a suite from the catalog, from a user's file, or from a data set of the Hub.

    The name of a group of suites (``cola``) means all of them together, distinguished by the tag
    ``suite``; a path below a suite (``blimp/island_effects``) means the sentences whose ids start with it.

    Args:
        name: A name in the catalog, the path of a file, or ``hf:OWNER/NAME``.
        columns: For a table, the names of its columns by their meaning: ``{"text": "Sentence"}``.
        marks: For a .txt file of examples, the labels of marks where they differ from CoLA's: ``{"?": 1}``.

    >>> suite = load_suite("starter")
    >>> suite.contrasts[0].better in suite.by_id
    True
    """
    if marks and not name.lower().endswith(".txt"):
        raise SuiteError(f"marks are for a .txt file of examples, which {name!r} is not")
    # Endings come before the catalog: no catalog name has one, and a path need not exist for the right error message.
    if is_table_file(name):
        return read_table(Path(name), columns=columns or {})
    if name.startswith("hf:"):
        title, header, rows = load_hub_rows(name.removeprefix("hf:"))
        return build_suite_from_rows(title, name, header, rows, columns or {})
    if columns:
        raise SuiteError(
            f"columns can be named for tables only, and {name!r} ends in none of {', '.join(TABLE_SUFFIXES)}"
        )
    if name.lower().endswith(".txt"):
        return read_notation(Path(name), marks=marks)
    if name.lower().endswith(".json"):
        return read_syntaxgym_json(Path(name))
    matching_entries = find_entries(name)
    if len(matching_entries) == 1 and matching_entries[0].id == name:
        return _read_entry(matching_entries[0])
    if matching_entries:
        return _merge_suites(name, [_read_entry(entry) for entry in matching_entries])
    parent_entries = [entry for entry in load_catalog() if name.startswith(f"{entry.id}/")]
    if parent_entries:
        # The longest one: "cola/targeted/x/y" is below the suite "cola/targeted/x", not below any shorter name.
        return _select_below(name, _read_entry(max(parent_entries, key=lambda entry: len(entry.id))))
    raise unknown_suite_error(name)


def is_catalog_name(name: str) -> bool:
    """Tell whether a name is one of the catalog, and not that of a user's file or of a data set on the Hub.

    >>> is_catalog_name("starter"), is_catalog_name("starter.csv")
    (True, False)
    """
    return not (is_table_file(name) or name.startswith("hf:") or name.lower().endswith((".txt", ".json")))


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a file: as JSONL, or as .txt in the notation of linguists.

    Args:
        path: Its suffix, .jsonl or .txt, decides the format.
    """
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".txt"):
        raise SpecError(f"--out {path}: the name must end in .jsonl, or in .txt for the notation of linguists")
    try:
        if suffix == ".jsonl":
            write_jsonl(suite, path)
        else:
            # The same bytes on every system: a text file on Windows would otherwise get carriage returns.
            path.write_text(write_notation(suite), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error


def _read_entry(entry: CatalogEntry) -> Suite:
    reader = registry.find("reader", entry.reader)
    suite: Suite = reader(entry, read_contents(entry))
    return suite


def _merge_suites(name: str, suites: list[Suite]) -> Suite:
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
    merged = Suite(name, tuple(tagged), tuple(contrasts))
    # Merged suites often share sentences (CoLA's analysis set repeats its development sets), which then count twice.
    repeated = len(merged.sentences) - len({sentence.text for sentence in merged.sentences})
    names = ", ".join(suite.name for suite in suites)
    _log.warning(
        "%s means %d suites together (%s); %d of their texts repeat others", name, len(suites), names, repeated
    )
    return merged


def _select_below(name: str, suite: Suite) -> Suite:
    # Ids contain the suite's name in some suites (cola/train/17) and not in others (island_effects/...).
    def is_below(sentence: Sentence) -> bool:
        return f"{sentence.id}/".startswith(f"{name}/") or f"{suite.name}/{sentence.id}/".startswith(f"{name}/")

    selected = tuple(filter(is_below, suite.sentences))
    if not selected:
        raise unknown_suite_error(name)
    ids = {sentence.id for sentence in selected}
    contrasts = (contrast for contrast in suite.contrasts if contrast.better in ids and contrast.worse in ids)
    return Suite(name, selected, tuple(contrasts))
