"""Our own small suite of English: minimal pairs in twelve phenomena, and single labelled sentences.

Written for this package, so that it can be tried the minute it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping

from acceptability.suites.catalog import Entry
from acceptability.text import dict_rows
from acceptability.types import Contrast, Sentence, Suite, contrast


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the pairs and then the single sentences, numbered within their phenomenon."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    counts: dict[str, int] = {}
    for _, row in dict_rows(files["starter/pairs.tsv"], "starter/pairs.tsv", delimiter="\t"):
        item = _item(row["phenomenon"], counts)
        tags = {"phenomenon": row["phenomenon"], "item": item}
        good = Sentence(f"{item}/good", row["good"], label=1, tags=tags)
        bad = Sentence(f"{item}/bad", row["bad"], label=0, tags=tags)
        sentences += good, bad
        contrasts.append(contrast(good, bad))
    for _, row in dict_rows(files["starter/sentences.tsv"], "starter/sentences.tsv", delimiter="\t"):
        item = _item(row["phenomenon"], counts)
        tags = {"phenomenon": row["phenomenon"], "item": item}
        sentences.append(Sentence(f"{item}/single", row["sentence"], label=int(row["label"]), tags=tags))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))


def _item(phenomenon: str, counts: dict[str, int]) -> str:
    counts[phenomenon] = counts.get(phenomenon, 0) + 1
    return f"{phenomenon}/{counts[phenomenon]}"
