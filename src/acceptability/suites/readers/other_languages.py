"""Suites of languages other than English, and those that exist in several; all have the tag ``language``.

Pairs: JBLiMP, RuBLiMP, TurBLiMP, CLiMP, SLING, ZhoBLiMP, BLiMP-NL, CLAMS. Labelled sentences: ItaCoLA, RuCoLA,
HuCOLA, JCoLA. SLING, TurBLiMP and BLiMP-NL contain pairs of identical sentences.

ZhoBLiMP (Liu et al. 2024) comes with people's accuracy in each paradigm, which becomes the tag ``human_accuracy`` of
its pairs. CLAMS (Mueller et al. 2020) has two columns without a header: True or False, and a sentence; the False lines
after a True line are its unacceptable forms.
"""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import Any

from acceptability.errors import SuiteError
from acceptability.suites import MinimalPair, build_pair_suite, make_pair
from acceptability.suites.catalog import CatalogEntry
from acceptability.text.io import decode_utf8, read_delimited, read_dict_rows, read_lines, read_tab_rows
from acceptability.types import Sentence, Suite, make_contrast

FileContents = Mapping[str, bytes]


def read_other_languages(entry: CatalogEntry, files: FileContents) -> Suite:
    """Return one of the suites of other languages, chosen by the entry's id."""
    name = entry.id.partition("/")[0]
    if name == "clams":
        return _read_clams(entry, files)
    pairs: dict[str, Callable[[CatalogEntry, FileContents], Iterator[MinimalPair]]] = {
        "jblimp": _read_jblimp,
        "rublimp": _read_rublimp,
        "turblimp": _read_turblimp,
        "climp": _read_climp,
        "sling": _read_sling,
        "zhoblimp": _read_zhoblimp,
        "blimp_nl": _read_blimp_nl,
    }
    if name in pairs:
        return build_pair_suite(entry.id, pairs[name](entry, files))
    labelled: dict[str, Callable[[CatalogEntry, FileContents], Iterator[Sentence]]] = {
        "itacola": _read_itacola,
        "rucola": _read_rucola,
        "hucola": _read_hucola,
        "jcola": _read_jcola,
    }
    return Suite(entry.id, tuple(labelled[name](entry, files)))


def _read_jblimp(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    (content,) = files.values()
    for _, line in read_lines(content, entry.id):
        row = json.loads(line)
        tags = {name: row[name] for name in ("type", "phenomenon", "paradigm")} | {"language": entry.language}
        yield make_pair(f"{entry.id}/{row['ID']}", row["good_sentence"], row["bad_sentence"], tags)


def _read_rublimp(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    for path, content in files.items():
        for _, row in read_dict_rows(content, f"{entry.folder}/{path}"):
            tags = {name: row[name] for name in ("level", "phenomenon", "subtype", "domain")}
            tags |= {"paradigm": row["PID"], "language": entry.language}
            yield make_pair(f"{row['PID']}/{row['id']}", row["source_sentence"], row["target_sentence"], tags)


def _read_turblimp(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    # The base files are separated by semicolons, the augmented ones by commas.
    separator = ";" if entry.id.endswith("/base") else ","
    for path, content in files.items():
        paradigm = PurePosixPath(path).stem.removeprefix("augmented_")
        rows = read_delimited(content, f"{entry.folder}/{path}", delimiter=separator)[1]
        for number, (_, row) in enumerate(rows, start=1):
            tags = {"phenomenon": row["phenomenon"], "paradigm": paradigm, "language": entry.language}
            yield make_pair(f"{entry.id}/{paradigm}/{number}", row["good_sentence"], row["bad_sentence"], tags)


def _read_climp(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    # CLiMP is published as one zip archive with a file for each paradigm.
    (content,) = files.values()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.startswith("CLiMP_corpus/") and name.endswith(".csv")]
        for name in sorted(names):
            paradigm = PurePosixPath(name).stem.removesuffix("_1000")
            yield from _pair_climp_rows(entry, decode_utf8(archive.read(name), name).split("\n"), paradigm)


def _pair_climp_rows(entry: CatalogEntry, rows: list[str], paradigm: str) -> Iterator[MinimalPair]:
    # One file, ba_construction, has neither a header nor columns, only sentences. Rows alternate between good and bad.
    rows = [row.removesuffix("\r") for row in rows if row.strip()]
    cells = (
        [row.split(",") for row in rows[1:]] if rows[0].startswith(",") else [["", "", paradigm, row] for row in rows]
    )
    for number, (good, bad) in enumerate(zip(cells[::2], cells[1::2], strict=True), start=1):
        tags = {"phenomenon": good[1] or paradigm, "paradigm": paradigm, "language": entry.language}
        yield make_pair(f"{paradigm}/{number}", good[3], bad[3], tags)


def _read_sling(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    for path, content in files.items():
        paradigm = str(PurePosixPath(path).relative_to("SLING_Data").with_suffix(""))
        for _, line in read_lines(content, f"{entry.folder}/{path}"):
            row = json.loads(line)
            # Some files lack the phenomenon, which is also the name of their folder.
            phenomenon = row.get("phenomenon") or paradigm.partition("/")[0]
            tags = {"phenomenon": phenomenon, "paradigm": paradigm, "language": entry.language}
            yield make_pair(f"{paradigm}/{row['pair_ID']}", row["sentence_good"], row["sentence_bad"], tags)


def _read_itacola(entry: CatalogEntry, files: FileContents) -> Iterator[Sentence]:
    if entry.id == "itacola/non_expert":
        yield from _read_players(entry, files)
        return
    features = _read_features(files["ItaCoLA_dataset_phenomenon.tsv"], entry.id)
    rows = read_tab_rows(files["ItaCoLA_dataset.tsv"], f"{entry.folder}/ItaCoLA_dataset.tsv", width=5)
    next(rows)
    for _, (number, source, label, text, split) in rows:
        tags = {"source": source, "split": split, "language": entry.language} | features.get(number, {})
        yield Sentence(f"itacola/{number}", text, label=int(label), tags=tags)


def _read_features(content: bytes, where: str) -> dict[str, dict[str, str]]:
    rows = read_tab_rows(content, where, width=13)
    _, header = next(rows)
    return {row[0]: dict(zip(header[4:], row[4:], strict=True)) for _, row in rows}


def _read_players(entry: CatalogEntry, files: FileContents) -> Iterator[Sentence]:
    (content,) = files.values()
    rows = read_tab_rows(content, entry.id, width=7)
    next(rows)
    for _, (number, text, label, players, count, judgements, _) in rows:
        tags = {"players": players, "raters": count, "judgements": judgements, "language": entry.language}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _read_rucola(entry: CatalogEntry, files: FileContents) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    for _, row in read_dict_rows(content, f"{entry.folder}/{path}"):
        tags = {"error_type": row["error_type"], "source": row["detailed_source"], "language": entry.language}
        yield Sentence(f"{entry.id}/{row['id']}", row["sentence"], label=int(row["acceptable"]), tags=tags)


def _read_zhoblimp(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    people = {
        row["UID"]: {
            "human_accuracy": row["acc"],
            "human_correct": row["correct"],
            "human_judgements": row["total"],
        }
        for _, row in read_dict_rows(
            files["human_validation_result.csv"], f"{entry.folder}/human_validation_result.csv"
        )
    }
    # One archive with a file for each paradigm; its content arrives decompressed.
    with tarfile.open(fileobj=io.BytesIO(files["ZhoBLiMP.tar.gz"])) as archive:
        for member in sorted((one for one in archive if one.isfile()), key=lambda one: one.name):
            opened = archive.extractfile(member)
            assert opened is not None
            for _, line in read_lines(opened.read(), member.name):
                row = json.loads(line)
                tags = {"phenomenon": row["phenomenon"], "paradigm": row["UID"], "language": entry.language}
                item = f"{row['phenomenon']}/{row['UID']}/{row['pairID']}"
                yield make_pair(item, row["sentence_good"], row["sentence_bad"], tags | people[row["UID"]])


def _read_blimp_nl(entry: CatalogEntry, files: FileContents) -> Iterator[MinimalPair]:
    for path, content in files.items():
        members: dict[tuple[str, str], dict[str, dict[str, str]]] = {}
        # Eight sentences with a comma have two quotation marks at either end, so that the comma would end the cell.
        repaired = content.replace(b',""', b',"').replace(b'"",', b'",')
        for _, row in read_dict_rows(repaired, f"{entry.folder}/{path}"):
            members.setdefault((row["Paradigm"], row["Item"]), {})[row["Grammaticality"]] = row
        for (paradigm, item), forms in members.items():
            good, bad = forms["Grammatical"], forms["Ungrammatical"]
            # "Binding (Principle A)" is no part of an id that anybody would like to type.
            phenomenon = good["Phenomenon"].lower().replace(" ", "_").replace("(", "").replace(")", "")
            name = f"{phenomenon}/{paradigm}"
            tags = {"phenomenon": good["Phenomenon"], "paradigm": name, "language": entry.language}
            # Some cells have a space before or after the sentence, which a model would score.
            pair = make_pair(f"{name}/{item}", good["Sentence"].strip(), bad["Sentence"].strip(), tags)
            yield _add_words(pair[0], good), _add_words(pair[1], bad)


def _add_words(sentence: Sentence, row: Mapping[str, str]) -> Sentence:
    """Return a sentence of BLiMP-NL with the words that its judgement depends on as tags."""
    columns = {"critical_words": "Critical word(s)", "cue_words": "Cue word(s)"}
    words = {tag: row[column].strip() for tag, column in columns.items() if row[column].strip()}
    return replace(sentence, tags={**sentence.tags, **words})


def _read_clams(entry: CatalogEntry, files: FileContents) -> Suite:
    sentences: list[Sentence] = []
    contrasts = []
    for path, content in files.items():
        paradigm, where = PurePosixPath(path).stem, f"{entry.folder}/{path}"
        good: Sentence | None = None
        items = worse = 0
        for number, (label, text) in read_tab_rows(content, where, width=2):
            if label == "True":
                items, worse = items + 1, 0
            elif label != "False" or good is None:
                raise SuiteError(
                    f"{where}, line {number}: expected True, or False after a line with True; got {label!r}"
                )
            item = f"{entry.id}/{paradigm}/{items}"
            tags = {"item": item, "paradigm": paradigm, "language": entry.language}
            if label == "True" or good is None:
                good = Sentence(f"{item}/good", text, label=1, tags=tags)
                sentences.append(good)
                continue
            worse += 1
            bad = Sentence(f"{item}/bad{worse if worse > 1 else ''}", text, label=0, tags=tags)
            sentences.append(bad)
            contrasts.append(make_contrast(good, bad))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))


def _read_hucola(entry: CatalogEntry, files: FileContents) -> Iterator[Sentence]:
    (content,) = files.values()
    rows: list[dict[str, Any]] = json.loads(decode_utf8(content, entry.id))
    for row in rows:
        # The labels of the test set are not published.
        label = int(row["label"]) if "label" in row else None
        yield Sentence(f"{entry.id}/{row['id']}", row["Sent"], label=label, tags={"language": entry.language})


def _read_jcola(entry: CatalogEntry, files: FileContents) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    rows = read_tab_rows(content, f"{entry.folder}/{path}", width=6)
    next(rows)
    for _, (number, source, label, mark, text, original) in rows:
        tags = {"mark": "" if mark == "g" else mark, "source": source, "language": entry.language}
        tags |= {"original": original} if original != text else {}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)
