"""Linguistic Inquiry pairs in three tasks (Sprouse, Schütze and Almeida 2013; file of Tjuatja et al. 2025).

The rating is the Likert one, in z units. Side by side as tags: ``likert``, ``me`` (magnitude
estimation, z) and ``forced_choice``, the share of choices for the bad sentence of the pair.
Ids are the published ones; the magnitude estimates are those of ``li_adger``, whose ids may
differ in the case of their letters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acceptability.suites.catalog import Entry
from acceptability.suites.pairs import Pair, suite_of_pairs
from acceptability.text import dict_rows
from acceptability.types import Sentence, Suite


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the pairs."""
    ((path, content),) = files.items()
    return suite_of_pairs(entry.id, _pairs(content, f"{entry.folder}/{path}"))


def _pairs(content: bytes, where: str) -> Iterator[Pair]:
    for number, (_, row) in enumerate(dict_rows(content, where), start=1):
        shared = {"item": str(number), "forced_choice": row["Bad Sentence FC Mean"], "rating_unit": "z"}
        good, bad = (
            Sentence(
                row[f"{member} ID"],
                row[f"{member} Sentence"],
                label=int(member == "Good"),
                rating=float(row[f"{member} Sentence LS"]),
                tags=shared
                | {"likert": row[f"{member} Sentence LS"], "me": row[f"{member} Sentence ME"]}
                | {"mark": row["Bad Sentence Gold Judgment"] if member == "Bad" else "g"},
            )
            for member in ("Good", "Bad")
        )
        yield good, bad
