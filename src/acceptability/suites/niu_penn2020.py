"""The 120 orders of "colourless green ideas sleep furiously", judged by the authors of Niu and Penn (2020).

28 are grammatical, 88 are not, and 4 undecided: these have no label.
"""

from __future__ import annotations

from collections.abc import Mapping

from acceptability.suites.catalog import Entry
from acceptability.text import dict_rows
from acceptability.types import Sentence, Suite


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the orders as published: that of itertools.permutations."""
    ((path, content),) = files.items()
    rows = enumerate(dict_rows(content, f"{entry.folder}/{path}", delimiter="\t"), start=1)
    return Suite(
        entry.id,
        tuple(
            Sentence(f"{entry.id}/{number}", row["sentence"], label=int(row["judgement"]) if row["judgement"] else None)
            for number, (_, row) in rows
        ),
    )
