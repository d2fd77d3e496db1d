"""The list of suites: where each comes from, under which licence, and how to tell that it is whole.

``catalog.toml`` is data; this module reads it. Other packages add suites through the
entry point ``acceptability.suites``, which names the path of a TOML file of the same form.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from acceptability.errors import UnknownName


@dataclass(frozen=True)
class Entry:
    """What the catalog says of one suite.

    Args:
        folder: Where its files lie below ``ACCEPTABILITY_DATA``; empty for one inside the package.
        source: The address at a fixed commit that the files' upstream paths are added to.
        files: The sha256 of each file's uncompressed content, by its path in the folder.
        upstream: The upstream path of a file where it differs; ``ARCHIVE.zip!member`` for one
            inside an archive, and empty for a file that cannot be downloaded.
        quirks: What a user of the data should know.
    """

    id: str
    reader: str
    title: str
    language: str
    citation: str
    licence: str
    folder: str
    source: str
    sentences: int
    contrasts: int
    files: Mapping[str, str]
    upstream: Mapping[str, str]
    quirks: tuple[str, ...]


@cache
def catalog() -> tuple[Entry, ...]:
    """Return every suite that is known, in the order of the catalogs."""
    theirs = [Path(point.load()) for point in entry_points(group="acceptability.suites")]
    paths = [Path(__file__).with_name("catalog.toml"), *theirs]
    return tuple(entry for path in paths for entry in read_entries(path))


def entries(name: str) -> list[Entry]:
    """Return the suite of that very name, or else all suites below it.

    >>> [entry.id for entry in entries("npi")]
    ['npi']
    >>> len(entries("cola/targeted"))
    5
    """
    exact = [entry for entry in catalog() if entry.id == name]
    return exact or [entry for entry in catalog() if entry.id.startswith(f"{name}/")]


def known_entries(name: str) -> list[Entry]:
    """Return the entries of a name; one that the catalog lacks gets a suggestion."""
    found = entries(name)
    if not found:
        raise unknown(name)
    return found


def unknown(name: str) -> UnknownName:
    """Return the error that no suite has a name."""
    known = [entry.id for entry in catalog()]
    hint = (
        f"`acceptability suites` lists all {len(known)}; "
        "a file of your own needs one of the endings .csv, .tsv, .jsonl, .parquet, .txt, or .json for SyntaxGym's form."
    )
    return UnknownName("suite", name, known, hint=hint)


def read_entries(path: Path) -> list[Entry]:
    """Return the entries of a file of the catalog's form."""
    groups = tomllib.loads(path.read_text(encoding="utf-8"))["group"]
    return [_entry(group, suite) for group in groups for suite in group["suite"]]


def _entry(group: Mapping[str, Any], suite: Mapping[str, Any]) -> Entry:
    """Join what a group of suites shares with what one of them says itself."""
    said = (
        {"folder": "", "source": "", "upstream": {}, "quirks": [], "files": {}}
        | {key: value for key, value in group.items() if key != "suite"}
        | dict(suite)
    )
    said["quirks"] = tuple(said["quirks"])
    return Entry(**said)
