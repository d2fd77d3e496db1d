"""Graded ratings of Lau, Clark and Lappin (2017, the SMOG project) and of Lau et al. (2020, in context).

Ratings are means of raters on the scale of their mode of presentation: binary (coded 1 and 4),
four points, or a slider from 1 to 100. Modes are suites of their own, since their scales
must not be mixed. In the 2020 suites the tag ``context`` holds what stood before the sentence,
and a model reads it first.

Traps: the 2017 files are tab-separated and unquoted although named .csv. The round-trip
language ``en`` marks an original sentence, in the Spanish file too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acceptability.suites.catalog import Entry
from acceptability.text import dict_rows, lines, tab_rows
from acceptability.types import Sentence, Suite

_LABELS = {"adger-good": 1, "adger-bad": 0}


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences of whichever set the entry names."""
    if entry.id == "lau2017_smog/example":
        return Suite(entry.id, tuple(_example(entry, files)))
    reader = _context if entry.id.startswith("lau2020_context/") else _smog
    ((path, content),) = files.items()
    return Suite(entry.id, tuple(reader(entry, content, f"{entry.folder}/{path}")))


def _smog(entry: Entry, content: bytes, where: str) -> Iterator[Sentence]:
    rows = tab_rows(content, where, width=6)
    next(rows)
    wanted = entry.id.rpartition("/")[2].upper()
    for number, (mode, round_trip, text, _, ratings, mean) in rows:
        if wanted.startswith("MOP") and mode != wanted:
            continue
        tags = {"mode": mode, "round_trip": round_trip, "raters": str(ratings.count(",") + 1), "ratings": ratings}
        yield Sentence(
            f"{entry.id}/{number - 1}",
            text.strip(),
            label=_LABELS.get(round_trip),
            rating=float(mean),
            tags=tags | {"language": entry.language},
        )


def _example(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    texts, ratings = (content for _, content in sorted(files.items()))
    for (number, text), (_, rating) in zip(lines(texts, entry.id), lines(ratings, entry.id), strict=True):
        yield Sentence(f"{entry.id}/{number}", text, rating=float(rating), tags={"mode": "MOP4"})


def _context(entry: Entry, content: bytes, where: str) -> Iterator[Sentence]:
    for _, row in dict_rows(content, where):
        tags = {"item": row["ID"], "round_trip": row["source-language"], "translated": row["translated"]}
        tags |= {"ratings": row["full-ratings"]}
        tags |= {"context": " ".join(row["context"].split("\t"))} if row["context"] else {}
        yield Sentence(f"{entry.id}/{row['ID']}", row["sentence"], rating=float(row["mean-ratings"]), tags=tags)
