"""Suites of other languages: pairs (JBLiMP, RuBLiMP, TurBLiMP, CLiMP, SLING) and labelled sentences (ItaCoLA, RuCoLA).

Every sentence has the tag ``language``. Traps: TurBLiMP's base files are separated by
semicolons; CLiMP is a zip archive of one file a paradigm, of which ba_construction has
neither header nor label; SLING and TurBLiMP contain pairs of identical sentences.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePosixPath

from acceptability.suites.catalog import Entry
from acceptability.suites.pairs import Pair, pair, suite_of_pairs
from acceptability.text import decoded, delimited, dict_rows, lines, tab_rows
from acceptability.types import Sentence, Suite

Files = Mapping[str, bytes]


def read(entry: Entry, files: Files) -> Suite:
    """Return the suite of whichever set the entry names."""
    name = entry.id.partition("/")[0]
    pairs: dict[str, Callable[[Entry, Files], Iterator[Pair]]] = {
        "jblimp": _jblimp,
        "rublimp": _rublimp,
        "turblimp": _turblimp,
        "climp": _climp,
        "sling": _sling,
    }
    if name in pairs:
        return suite_of_pairs(entry.id, pairs[name](entry, files))
    labelled: dict[str, Callable[[Entry, Files], Iterator[Sentence]]] = {"itacola": _itacola, "rucola": _rucola}
    return Suite(entry.id, tuple(labelled[name](entry, files)))


def _jblimp(entry: Entry, files: Files) -> Iterator[Pair]:
    (content,) = files.values()
    for _, line in lines(content, entry.id):
        row = json.loads(line)
        tags = {name: row[name] for name in ("type", "phenomenon", "paradigm")} | {"language": entry.language}
        yield pair(f"{entry.id}/{row['ID']}", row["good_sentence"], row["bad_sentence"], tags)


def _rublimp(entry: Entry, files: Files) -> Iterator[Pair]:
    for path, content in files.items():
        for _, row in dict_rows(content, f"{entry.folder}/{path}"):
            tags = {name: row[name] for name in ("level", "phenomenon", "subtype", "domain")}
            tags |= {"paradigm": row["PID"], "language": entry.language}
            yield pair(f"{row['PID']}/{row['id']}", row["source_sentence"], row["target_sentence"], tags)


def _turblimp(entry: Entry, files: Files) -> Iterator[Pair]:
    separator = ";" if entry.id.endswith("/base") else ","
    for path, content in files.items():
        paradigm = PurePosixPath(path).stem.removeprefix("augmented_")
        rows = delimited(content, f"{entry.folder}/{path}", delimiter=separator)[1]
        for number, (_, row) in enumerate(rows, start=1):
            tags = {"phenomenon": row["phenomenon"], "paradigm": paradigm, "language": entry.language}
            yield pair(f"{entry.id}/{paradigm}/{number}", row["good_sentence"], row["bad_sentence"], tags)


def _climp(entry: Entry, files: Files) -> Iterator[Pair]:
    (content,) = files.values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.startswith("CLiMP_corpus/") and name.endswith(".csv")]
        for name in sorted(names):
            paradigm = PurePosixPath(name).stem.removesuffix("_1000")
            yield from _climp_pairs(entry, decoded(archive.read(name), name).split("\n"), paradigm)


def _climp_pairs(entry: Entry, rows: list[str], paradigm: str) -> Iterator[Pair]:
    rows = [row.removesuffix("\r") for row in rows if row.strip()]
    cells = (
        [row.split(",") for row in rows[1:]] if rows[0].startswith(",") else [["", "", paradigm, row] for row in rows]
    )
    for number, (good, bad) in enumerate(zip(cells[::2], cells[1::2], strict=True), start=1):
        tags = {"phenomenon": good[1] or paradigm, "paradigm": paradigm, "language": entry.language}
        yield pair(f"{paradigm}/{number}", good[3], bad[3], tags)


def _sling(entry: Entry, files: Files) -> Iterator[Pair]:
    for path, content in files.items():
        paradigm = str(PurePosixPath(path).relative_to("SLING_Data").with_suffix(""))
        for _, line in lines(content, f"{entry.folder}/{path}"):
            row = json.loads(line)
            phenomenon = row.get("phenomenon") or paradigm.partition("/")[0]
            tags = {"phenomenon": phenomenon, "paradigm": paradigm, "language": entry.language}
            yield pair(f"{paradigm}/{row['pair_ID']}", row["sentence_good"], row["sentence_bad"], tags)


def _itacola(entry: Entry, files: Files) -> Iterator[Sentence]:
    if entry.id == "itacola/non_expert":
        yield from _players(entry, files)
        return
    features = _features(files["ItaCoLA_dataset_phenomenon.tsv"], entry.id)
    rows = tab_rows(files["ItaCoLA_dataset.tsv"], f"{entry.folder}/ItaCoLA_dataset.tsv", width=5)
    next(rows)
    for _, (number, source, label, text, split) in rows:
        tags = {"source": source, "split": split, "language": entry.language} | features.get(number, {})
        yield Sentence(f"itacola/{number}", text, label=int(label), tags=tags)


def _features(content: bytes, where: str) -> dict[str, dict[str, str]]:
    rows = tab_rows(content, where, width=13)
    _, header = next(rows)
    return {row[0]: dict(zip(header[4:], row[4:], strict=True)) for _, row in rows}


def _players(entry: Entry, files: Files) -> Iterator[Sentence]:
    (content,) = files.values()
    rows = tab_rows(content, entry.id, width=7)
    next(rows)
    for _, (number, text, label, players, count, judgements, _) in rows:
        tags = {"players": players, "raters": count, "judgements": judgements, "language": entry.language}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _rucola(entry: Entry, files: Files) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    for _, row in dict_rows(content, f"{entry.folder}/{path}"):
        tags = {"error_type": row["error_type"], "source": row["detailed_source"], "language": entry.language}
        yield Sentence(f"{entry.id}/{row['id']}", row["sentence"], label=int(row["acceptable"]), tags=tags)
