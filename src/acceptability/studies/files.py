"""What papers published beside their sentences: the scores of their models, and people's answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from acceptability.errors import UnknownName
from acceptability.suites.catalog import Entry, read_entries
from acceptability.suites.fetch import contents


def published(name: str) -> dict[str, bytes]:
    """Return the content of each published file of a name in ``files.toml``, checked against its sha256.

    They are looked for where suites are: in ``ACCEPTABILITY_DATA``, then among downloads; else they are downloaded.
    """
    known = _entries()
    if name not in known:
        raise UnknownName("set of published files", name, known, hint=f"There are: {', '.join(known)}.")
    return contents(known[name])


@cache
def _entries() -> dict[str, Entry]:
    return {entry.id: entry for entry in read_entries(Path(__file__).with_name("files.toml"))}
