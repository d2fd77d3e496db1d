"""LI-Adger: sentences of Linguistic Inquiry and of Adger's textbook with magnitude-estimation ratings.

Vázquez Martínez (2021), after Sprouse and Almeida (2012) and Sprouse, Schütze and
Almeida (2013). Ids are the published ones, ``volume.issue.author.example.MARK.token``
or ``chN.example.MARK.token``; the label is 1 where the mark is ``g``.

Traps: ratings are means of participants' z-scores already, so they are not
standardised again; two sentences (ch6.93.*.01, ch6.93.g.09) have none. Two pairs have
the same text on both sides. 28 published pairs are marked as discarded and left out.
Typos that participants saw are kept; in one pair the published pair file corrects
them, and we keep the sentence file's text, which was rated.
"""

from __future__ import annotations

from collections.abc import Mapping

from acceptability.suites.catalog import Entry
from acceptability.text import dict_rows
from acceptability.types import Sentence, Suite, contrast

_RATINGS = "data/human_ME_results_li-adger_sentences.csv"
_PAIRS = "data/li-adger_min_pairs.csv"
_UNRATED = "#N/A"


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences and the pairs that were kept."""
    sentences = {row["id"]: _sentence(row) for _, row in dict_rows(files[_RATINGS], f"{entry.folder}/{_RATINGS}")}
    pairs = [row for _, row in dict_rows(files[_PAIRS], f"{entry.folder}/{_PAIRS}") if not row["discard"]]
    contrasts = tuple(contrast(sentences[row["gramm_id"]], sentences[row["ungramm_id"]]) for row in pairs)
    return Suite(entry.id, tuple(sentences.values()), contrasts)


def _sentence(row: Mapping[str, str]) -> Sentence:
    kind, mark, _ = row["id"].rsplit(".", 2)
    rating = None if row["judgement"] == _UNRATED else float(row["judgement"])
    tags = {"source": row["dataset"], "mark": mark, "type": f"{kind}.{mark}", "rating_unit": "z"}
    tags |= {"typo": row["typo?"]} if row["typo?"] else {}
    return Sentence(row["id"], row["sentence"], label=int(mark == "g"), rating=rating, tags=tags)
