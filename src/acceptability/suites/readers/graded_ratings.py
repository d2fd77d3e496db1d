"""Suites with graded ratings: LI-Adger, Lau et al., Sprouse et al. (2013), Niu and Penn (2020).

LI-Adger (``read_li_adger``) has sentences of Linguistic Inquiry and of Adger's textbook with
magnitude-estimation ratings: Vázquez Martínez (2021), after Sprouse and Almeida (2012) and
Sprouse, Schütze and Almeida (2013). Ids are the published ones,
``volume.issue.author.example.MARK.token`` or ``chN.example.MARK.token``; the label is 1 if the mark
is ``g``. Two sentences (ch6.93.*.01, ch6.93.g.09) have no rating, and two pairs have the same text
on both sides.

Lau, Clark and Lappin (2017, the SMOG project) and Lau et al. (2020, in context; ``read_lau``): ratings
are means over raters on the scale of their mode of presentation: binary (coded 1 and 4), four points, or a
slider from 1 to 100. Modes are separate suites, since their scales must not be mixed. In the 2020
suites the tag ``context`` holds the preceding text, which models read first.

Sprouse, Schütze and Almeida (2013; ``read_sprouse2013_li``, file of Tjuatja et al. 2025): pairs of
Linguistic Inquiry in three tasks. The rating is the Likert one, in z units. The tags have the others:
``likert``, ``me`` (magnitude estimation, z) and ``forced_choice``, the share of choices of the bad
sentence of the pair. Ids are the published ones; the magnitude estimates are those of ``li_adger``,
whose ids may differ in case.

Niu and Penn (2020; ``read_niu_penn2020``): the 120 permutations of "colourless green ideas sleep
furiously", judged by the authors. 28 are grammatical, 88 are not, and 4 undecided ones have no label.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acceptability.suites.catalog import CatalogEntry
from acceptability.suites.pairing import MinimalPair, build_pair_suite
from acceptability.text.io import read_dict_rows, read_lines, read_tab_rows
from acceptability.types import Sentence, Suite, make_contrast

_RATINGS = "data/human_ME_results_li-adger_sentences.csv"

_PAIRS = "data/li-adger_min_pairs.csv"

# Spreadsheet software wrote this for a missing value.
_UNRATED = "#N/A"


def read_li_adger(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences of LI-Adger and its pairs, without the discarded ones."""
    sentences = {
        row["id"]: _parse_sentence(row) for _, row in read_dict_rows(files[_RATINGS], f"{entry.folder}/{_RATINGS}")
    }
    # 28 published pairs are marked as discarded. The texts come from the sentence file: participants saw its typos,
    # which the pair file corrects in one pair.
    pairs = [row for _, row in read_dict_rows(files[_PAIRS], f"{entry.folder}/{_PAIRS}") if not row["discard"]]
    contrasts = tuple(make_contrast(sentences[row["gramm_id"]], sentences[row["ungramm_id"]]) for row in pairs)
    return Suite(entry.id, tuple(sentences.values()), contrasts)


def _parse_sentence(row: Mapping[str, str]) -> Sentence:
    kind, mark, _ = row["id"].rsplit(".", 2)
    rating = None if row["judgement"] == _UNRATED else float(row["judgement"])
    # Ratings are means of participants' z-scores. The unit keeps them from being standardised again.
    tags = {"source": row["dataset"], "mark": mark, "type": f"{kind}.{mark}", "rating_unit": "z"}
    tags |= {"typo": row["typo?"]} if row["typo?"] else {}
    return Sentence(row["id"], row["sentence"], label=int(mark == "g"), rating=rating, tags=tags)


# Only the sentences of Adger's textbook have a label; the others are originals and round-trip translations.
_LABELS = {"adger-good": 1, "adger-bad": 0}


def read_lau(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the rated sentences of one of the sets of Lau et al., chosen by the entry's id."""
    if entry.id == "lau2017_smog/example":
        return Suite(entry.id, tuple(_read_example(entry, files)))
    reader = _read_context if entry.id.startswith("lau2020_context/") else _read_smog
    ((path, content),) = files.items()
    return Suite(entry.id, tuple(reader(entry, content, f"{entry.folder}/{path}")))


def _read_smog(entry: CatalogEntry, content: bytes, where: str) -> Iterator[Sentence]:
    # Tab-separated and unquoted, although the files are named .csv.
    rows = read_tab_rows(content, where, width=6)
    next(rows)
    wanted_mode = entry.id.rpartition("/")[2].upper()
    for number, (mode, round_trip, text, _, ratings, mean) in rows:
        # One file holds several modes of presentation, which are separate suites.
        if wanted_mode.startswith("MOP") and mode != wanted_mode:
            continue
        # The round-trip language "en" marks an original sentence, in the Spanish file too.
        tags = {"mode": mode, "round_trip": round_trip, "raters": str(ratings.count(",") + 1), "ratings": ratings}
        yield Sentence(
            f"{entry.id}/{number - 1}",
            text.strip(),
            label=_LABELS.get(round_trip),
            rating=float(mean),
            tags=tags | {"language": entry.language},
        )


def _read_example(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    # Two files of parallel lines; in alphabetical order the sentences come before the ratings.
    texts, ratings = (content for _, content in sorted(files.items()))
    for (number, text), (_, rating) in zip(read_lines(texts, entry.id), read_lines(ratings, entry.id), strict=True):
        yield Sentence(f"{entry.id}/{number}", text, rating=float(rating), tags={"mode": "MOP4"})


def _read_context(entry: CatalogEntry, content: bytes, where: str) -> Iterator[Sentence]:
    for _, row in read_dict_rows(content, where):
        tags = {"item": row["ID"], "round_trip": row["source-language"], "translated": row["translated"]}
        tags |= {"ratings": row["full-ratings"]}
        # The sentences of a context are separated by tabs in the file. A model reads plain text.
        tags |= {"context": " ".join(row["context"].split("\t"))} if row["context"] else {}
        yield Sentence(f"{entry.id}/{row['ID']}", row["sentence"], rating=float(row["mean-ratings"]), tags=tags)


def read_sprouse2013_li(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the Linguistic Inquiry pairs of Sprouse, Schütze and Almeida (2013)."""
    ((path, content),) = files.items()
    return build_pair_suite(entry.id, _read_pairs(content, f"{entry.folder}/{path}"))


def _read_pairs(content: bytes, where: str) -> Iterator[MinimalPair]:
    for number, (_, row) in enumerate(read_dict_rows(content, where), start=1):
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


def read_niu_penn2020(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the 120 permutations in the published order, which is that of itertools.permutations."""
    ((path, content),) = files.items()
    rows = enumerate(read_dict_rows(content, f"{entry.folder}/{path}", delimiter="\t"), start=1)
    return Suite(
        entry.id,
        tuple(
            Sentence(f"{entry.id}/{number}", row["sentence"], label=int(row["judgement"]) if row["judgement"] else None)
            for number, (_, row) in rows
        ),
    )
