"""Suites: published ones from the catalog, our own, a user's files, and data sets of the Hugging Face Hub.

``load_suite`` opens one. The others make contrasts from sentences:

- ``pair_within_items`` pairs every acceptable sentence of an item with every unacceptable one, as LI-Adger was built
  (Vázquez Martínez 2021, section 4 and appendix A).
- ``add_minimal_pairs`` pairs sentences of an item that differ in one factor and in acceptability (Warstadt et al.
  2019, five analysis methods with NPIs, section 3).
- ``build_pair_suite`` and ``make_pair`` build the suites that consist of nothing but pairs, for the readers.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from acceptability import registry
from acceptability.errors import ReportError, SpecError, StoreError, SuiteError
from acceptability.paths import home_folder
from acceptability.suites.brackets import read_marks
from acceptability.suites.catalog import (
    CatalogEntry,
    find_entries,
    is_available,
    is_plugin_suite,
    load_catalog,
    locate_files,
    read_contents,
    unknown_suite_error,
    verify_file,
)
from acceptability.suites.joined_tables import is_json_table, is_text_table, list_table_files, parse_files
from acceptability.suites.notation import read_notation, write_notation
from acceptability.suites.pairing import pair_within_items
from acceptability.suites.readers.regions import read_syntaxgym_json
from acceptability.suites.suite_cache import FileState, SuiteCache, hash_content, make_key, make_name
from acceptability.suites.table_files import (
    TABLE_SUFFIXES,
    TableOptions,
    is_table_file,
    load_hub_table,
    parse_table_options,
)
from acceptability.suites.tables import build_suite, write_jsonl
from acceptability.text.containers import drop_gzip_suffix, is_archive
from acceptability.text.io import read_content
from acceptability.types import SINGLE_ROWS, Contrast, Sentence, Span, Suite, Tags, make_contrast

_log = logging.getLogger(__name__)

__all__ = [
    "CatalogEntry",
    "SuiteContents",
    "add_minimal_pairs",
    "build_pair_suite",
    "find_entries",
    "find_source_kind",
    "is_catalog_name",
    "is_unparsed",
    "load_catalog",
    "load_contents",
    "load_suite",
    "make_pair",
    "pair_within_items",
    "summarise_contents",
    "write_suite",
]


def load_suite(
    name: str,
    *,
    columns: Mapping[str, str] | None = None,
    marks: Mapping[str, int | None] | str | None = None,
    unit: str | None = None,
    **reading: Any,
) -> Suite:
    """Return a suite from the catalog, from a user's file, or from a data set of the Hub.

    The name of a group of suites (``cola``) means all of them together, distinguished by the tag
    ``suite``; a path below a suite (``blimp/island_effects``) means the sentences whose ids start with it. A folder or
    an archive means all tables in it, distinguished by the tag ``file``.

    Args:
        name: A name in the catalog, the path of a file, of an archive or of a folder, or ``hf:OWNER/NAME``.
        columns: For a table, the names of its columns by their meaning: ``{"text": "Sentence"}``.
        marks: For a .txt file of examples, the labels of marks where they differ from CoLA's: ``{"?": 1}``, or
            ``"?=1,#=drop"``. ``"none"`` reads a file without marks, a sentence a line.
        unit: The sampling unit, see ``Suite``: a tag, ``paradigm/item`` for two levels, or ``row``. By default that of
            the catalog or of the file; a table that declares none has its tag ``set``, or else ``item``, if all of its
            sentences and contrasts have it, and otherwise single rows.
        reading: For a table, what else it does not say itself, see ``TableOptions``: ``labels={"yes": 1, "no": 0}``,
            ``sheet="Items"``, ``quoting=False``, ``separator=";"``, ``decimal=","``, ``encoding="cp1250"``,
            ``pair_by="item"``.

    >>> suite = load_suite("starter")
    >>> suite.contrasts[0].better in suite.by_id, suite.unit
    (True, 'item')
    >>> load_suite("starter", unit="phenomenon")
    Suite('starter', 838 sentences, 383 contrasts, unit='phenomenon')
    """
    options = parse_table_options({**reading, "columns": columns or {}})
    suite = _open_suite(name, options, read_marks(marks) if isinstance(marks, str) else marks)
    if suite.notes:
        _log.info("%s: %s", name, "; ".join(suite.notes))
    return suite if unit is None else replace(suite, unit=unit)


def _open_suite(name: str, options: TableOptions, marks: Mapping[str, int | None] | None) -> Suite:
    """Return a suite with the sampling unit that it declares."""
    kind = find_source_kind(name)
    # Whoever gives marks says that a text is one of examples, even if it has tabs as a table has.
    if marks and name.lower().endswith(".txt"):
        kind = "text"
    # A text of which columns are named is a table, whatever it looks like.
    if kind == "text" and options.describe() and not marks:
        kind = "table"
    if marks and kind != "text":
        raise SuiteError(f"marks are for a .txt file of examples, which {name!r} is not")
    if options.describe() and kind not in ("table", "hub"):
        given = next(iter(options.describe()))
        raise SuiteError(
            f"{given} can be given for tables only, and {name!r} is none: its name ends in none of "
            f"{', '.join(TABLE_SUFFIXES)}"
        )
    match kind:
        case "table":
            return _read_files(Path(name), options)
        case "hub":
            return build_suite(*load_hub_table(name.removeprefix("hf:")), options)
        case "text":
            return read_notation(Path(name), marks=marks)
        case "syntaxgym":
            return read_syntaxgym_json(Path(name))
    return _open_catalog_suite(name)


def _open_catalog_suite(name: str) -> Suite:
    """Return a suite of the catalog, several together, or a part of one."""
    matching_entries = find_entries(name)
    if matching_entries:
        return _read_entries(name, _keep_available(name, matching_entries))
    if parent_entries := _find_parents(name):
        # The longest one: "cola/targeted/x/y" is below the suite "cola/targeted/x", not below any shorter name.
        parent = max(parent_entries, key=lambda entry: len(entry.id))
        # Ids contain the suite's name in some suites (cola/train/17) and not in others (island_effects/...).
        part = _read_entries(parent.id, [parent]).select_below(name)
        if part:
            return replace(part, name=name)
    if Path(name).suffix.lower() in _UNREAD_SUFFIXES:
        raise SuiteError(f"{name}: files of this kind are not read: save it as .xlsx, .ods or .csv, and give that file")
    raise unknown_suite_error(name)


# Other formats of spreadsheets and of word processors, which people may try.
_UNREAD_SUFFIXES = (".xls", ".xlsb", ".xlsm", ".numbers", ".doc", ".docx", ".odt", ".sav", ".dta", ".rds", ".rdata")


def _find_parents(name: str) -> list[CatalogEntry]:
    return [entry for entry in load_catalog() if name.startswith(f"{entry.id}/")]


def find_source_kind(name: str) -> str:
    """Return what the name of a suite stands for: "table", "text" (linguists' notation), "syntaxgym", "hub", "catalog".

    A .txt or .json file may be a table too, which its first lines tell.

    >>> find_source_kind("starter"), find_source_kind("mine.csv"), find_source_kind("hf:nyu-mll/blimp")
    ('catalog', 'table', 'hub')
    """
    # Endings come before the catalog: no catalog name has one, and a path need not exist for the right error message.
    if name.startswith("hf:"):
        return "hub"
    if is_table_file(name) or is_archive(name):
        return "table"
    suffix = Path(drop_gzip_suffix(name)).suffix.lower()
    if suffix == ".txt":
        return "table" if is_text_table(Path(name)) else "text"
    if suffix == ".json":
        return "table" if is_json_table(Path(name)) else "syntaxgym"
    return "table" if _is_folder(name) else "catalog"


def _is_folder(name: str) -> bool:
    """Tell whether a name is that of a folder, and of nothing in the catalog."""
    return not (find_entries(name) or _find_parents(name)) and Path(name).is_dir()


def is_unparsed(name: str) -> bool:
    """Tell whether a name is that of a large suite of the catalog that is on this machine and was never parsed.

    >>> is_unparsed("starter")
    False
    """
    entries = find_entries(name) if is_catalog_name(name) else []
    if not entries or SuiteCache("catalog", name).is_file() or not all(map(is_available, entries)):
        return False
    return sum(path.stat().st_size for entry in entries for path in locate_files(entry).values()) > _MIN_LARGE_BYTES


# Below that, starting a process takes longer than parsing.
_MIN_LARGE_BYTES = 1 << 20


def is_catalog_name(name: str) -> bool:
    """Tell whether a name is one of the catalog, and not that of a user's file or of a data set on the Hub.

    >>> is_catalog_name("starter"), is_catalog_name("starter.csv")
    (True, False)
    """
    has_ending = is_table_file(name) or is_archive(name) or drop_gzip_suffix(name).lower().endswith((".txt", ".json"))
    return not (has_ending or name.startswith("hf:") or _is_folder(name))


@dataclass(frozen=True)
class SuiteContents:
    """What the sentences of a suite have, which the catalog alone does not say.

    Args:
        labels, ratings: How many sentences have them.
        tags: The names of all tags of sentences and contrasts.
        regions: The names of all regions.
        first_id, first: The id and the text of the first sentence.
    """

    labels: int
    ratings: int
    tags: tuple[str, ...]
    regions: tuple[str, ...]
    first_id: str
    first: str


def summarise_contents(suite: Suite) -> SuiteContents:
    """Return what the sentences of a suite have."""
    return SuiteContents(
        labels=int((suite.labels >= 0).sum()),
        ratings=int(np.isfinite(suite.ratings).sum()),
        tags=suite.tag_names,
        regions=tuple(dict.fromkeys(name for sentence in suite.sentences for name in sentence.regions)),
        first_id=suite.ids[0],
        first=suite.texts[0],
    )


def load_contents(entry: CatalogEntry) -> SuiteContents | None:
    """Return what the sentences of a suite of the catalog have, without reading its files; None if it is not known.

    What a data set of the Hub has is known of a copy on this machine only.

    >>> contents = load_contents(find_entries("blimp")[0])
    >>> contents.first if contents else None
    'Who should Derek hug after shocking Richard?'
    """
    if entry.in_tables and not is_available(entry):
        return None
    # The catalogs of other packages have no such file, and then the suite is read.
    known = None if is_plugin_suite(entry) else _load_known_contents().get(entry.id)
    return summarise_contents(load_suite(entry.id)) if known is None else known


@cache
def _load_known_contents() -> Mapping[str, SuiteContents]:
    # Written from the suites themselves, which a test compares with it.
    rows = json.loads(Path(__file__).with_name("contents.json").read_text(encoding="utf-8"))
    return {
        name: SuiteContents(**row | {"tags": tuple(row["tags"]), "regions": tuple(row["regions"])})
        for name, row in rows.items()
    }


def write_suite(suite: Suite, path: Path) -> None:
    """Write a suite to a file: as JSONL, or as .txt in the notation of linguists.

    Args:
        path: Its suffix, .jsonl or .txt, decides the format.
    """
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".txt"):
        raise SpecError(f"--out {path}: the name must end in .jsonl, or in .txt for the notation of linguists")
    try:
        if suffix == ".jsonl":
            write_jsonl(suite, path)
        else:
            # The same bytes on every system: a text file on Windows would otherwise get carriage returns.
            path.write_text(write_notation(suite), encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error


# Smaller tables are parsed in less time than it takes to look for them.
_MIN_KEPT_BYTES = 1 << 18


def _read_files(path: Path, options: TableOptions) -> Suite:
    """Return the suite in a user's table, folder or archive, from the cache if that content was read so before."""
    files = list_table_files(path)
    states = {file: FileState.of(file) for file in files}
    size = sum(state.size for state in states.values() if state)
    if size < _MIN_KEPT_BYTES or not all(states.values()) or _is_in_home(path):
        return parse_files(path, {file: read_content(file) for file in files}, options)
    # The name of the suite and the format follow from the name of the file.
    reading = [path.name, options.describe()]
    place = SuiteCache("tables", make_name(str(path.absolute()), reading))
    contents: dict[Path, bytes] = {}
    hashes = {file: place.find_sha256(file) or _read_hash(file, contents) for file in files}
    key = make_key([[str(file.relative_to(path)), sha256] for file, sha256 in hashes.items()], reading)
    kept = place.open(key)
    if not kept:
        contents = {file: contents[file] if file in contents else read_content(file) for file in files}
        hashes = {file: hash_content(content) for file, content in contents.items()}
        key = make_key([[str(file.relative_to(path)), sha256] for file, sha256 in hashes.items()], reading)
        suite = parse_files(path, contents, options)
        kept = place.write(key, suite, suite.notes)
    place.remember(hashes, states)
    return replace(kept.suite, notes=kept.remarks)


def _read_hash(file: Path, contents: dict[Path, bytes]) -> str:
    """Return the hash of a file, whose content is kept for the case that it has to be parsed."""
    contents[file] = read_content(file)
    return hash_content(contents[file])


def _is_in_home(path: Path) -> bool:
    # The page keeps uploaded tables there, which must be gone when their job is deleted.
    try:
        return path.resolve().is_relative_to(home_folder().resolve())
    except StoreError:
        # Without a home there is no place to keep anything either.
        return True


def _keep_available(name: str, entries: Sequence[CatalogEntry]) -> Sequence[CatalogEntry]:
    """Return the entries of a group of data sets of the Hub that are on this machine, if some are; say which are not.

    Nobody wants a hundred languages downloaded who has put three of them into a folder.
    """
    if len(entries) < 2 or not all(entry.in_tables for entry in entries):
        return entries
    present = [entry for entry in entries if is_available(entry)]
    if not 0 < len(present) < len(entries):
        return entries
    names = ", ".join(entry.id for entry in present[:10]) + (", …" if len(present) > 10 else "")
    _log.warning(
        "%s: %d of %d data sets are on this machine (%s), and the others are left out; to get them: "
        "acceptability suites fetch %s",
        *(name, len(present), len(entries), names, name),
    )
    return present


def _read_entries(name: str, entries: Sequence[CatalogEntry]) -> Suite:
    """Return the suite of one entry, or of several together, from the cache if these files were read before."""
    # Files of the package are few and small, and the readers of other packages may change without notice. Tables
    # without hashes may have changed since they were read.
    if any(not entry.folder or entry.in_tables or is_plugin_suite(entry) for entry in entries):
        return _parse_entries(name, entries)[0]
    place = SuiteCache("catalog", name)
    key = make_key(
        name, [[entry.id, entry.reader, entry.unit, entry.language, *entry.files.items()] for entry in entries]
    )
    files = [(entry, path, location) for entry in entries for path, location in locate_files(entry).items()]
    hashes = {location: entry.files[path] for entry, path, location in files}
    states = {location: FileState.of(location) for location in hashes}
    kept = place.open(key)
    if not kept:
        kept = place.write(key, *_parse_entries(name, entries))
        place.remember(hashes, states)
        return kept.suite
    changed = [file for file in files if place.find_sha256(file[2]) != hashes[file[2]]]
    for entry, path, location in changed:
        verify_file(entry, path, location)
    if changed:
        place.remember(hashes, states)
    for remark in kept.remarks:
        _log.warning("%s", remark)
    return kept.suite


def _parse_entries(name: str, entries: Sequence[CatalogEntry]) -> tuple[Suite, tuple[str, ...]]:
    """Return the suite of one entry, or of several together, and the remarks on it, which the log has too."""
    if len(entries) == 1 and entries[0].id == name:
        return _parse_entry(entries[0]), ()
    suite, remarks = _merge_suites(name, [_read_entries(entry.id, [entry]) for entry in entries])
    for remark in remarks:
        _log.warning("%s", remark)
    return suite, remarks


def _parse_entry(entry: CatalogEntry) -> Suite:
    reader = registry.find("reader", entry.reader)
    suite: Suite = reader(entry, read_contents(entry))
    return replace(suite, unit=entry.unit) if entry.unit not in ("", SINGLE_ROWS, suite.unit) else suite


def _merge_suites(name: str, suites: list[Suite]) -> tuple[Suite, tuple[str, ...]]:
    """Return several suites as one, and what a user should know about them."""
    tagged = (
        replace(sentence, tags={**sentence.tags, "suite": suite.name})
        for suite in suites
        for sentence in suite.sentences
    )
    contrasts = (
        replace(contrast, tags={**contrast.tags, "suite": suite.name})
        for suite in suites
        for contrast in suite.contrasts
    )
    units, derived_tags = {suite.unit for suite in suites}, {tag for suite in suites for tag in suite.derived_tags}
    # Values of different tags cannot be compared: without a common unit, single rows are resampled, as is said below.
    unit = units.pop() if len(units) == 1 else ""
    merged = Suite(name, tuple(tagged), tuple(contrasts), unit=unit, derived_tags=tuple(sorted(derived_tags)))
    # Merged suites often share sentences (CoLA's analysis set repeats its development sets), which then count twice.
    repeated = len(merged.sentences) - len(set(merged.texts))
    names = ", ".join(suite.name for suite in suites)
    remarks = [f"{name} means {len(suites)} suites together ({names}); {repeated} of their texts repeat others"]
    if units:
        remarks.append(f"{name}: the suites have different sampling units, so that single rows are resampled")
    return merged, tuple(remarks)


# The tags that may identify an item, the first that a sentence has. "set" is unique within a suite; "item" and
# "paradigm" are numbers that some suites reuse across environments.
_ITEM_TAGS = ("set", "item", "paradigm")

VARIED_TAG = "varied"
"""The tag of a minimal pair that names the factor in which its sentences differ."""


def add_minimal_pairs(suite: Suite, factors: Sequence[str]) -> Suite:
    """Return the suite with its minimal pairs added; their tag ``varied`` names the factor that differs.

    Args:
        factors: The tags that are factors of the design; sentences that lack one of them are not paired.

    >>> def sentence(name, label, number):
    ...     return Sentence(name, name, label, tags={"item": "1", "number": number, "definite": "no"})
    >>> both = Suite("s", (sentence("a", 1, "plural"), sentence("b", 0, "singular")))
    >>> [(pair.id, pair.tags["varied"]) for pair in add_minimal_pairs(both, ["number", "definite"]).contrasts]
    [('a > b', 'number')]
    """
    items: dict[str, list[Sentence]] = {}
    for sentence in suite.sentences:
        tag = next((tag for tag in _ITEM_TAGS if tag in sentence.tags), None)
        if tag and sentence.label is not None and all(factor in sentence.tags for factor in factors):
            items.setdefault(f"{tag}={sentence.tags[tag]}", []).append(sentence)
    added = [pair for members in items.values() for pair in _find_minimal_pairs(members, factors)]
    return replace(suite, contrasts=(*suite.contrasts, *added))


def _find_minimal_pairs(members: Sequence[Sentence], factors: Sequence[str]) -> list[Contrast]:
    minimal_contrasts = []
    for first, second in combinations(members, 2):
        varied = [factor for factor in factors if first.tags[factor] != second.tags[factor]]
        if first.label != second.label and first.text != second.text and len(varied) == 1:
            better, worse = (first, second) if first.label else (second, first)
            plain = make_contrast(better, worse)
            minimal_contrasts.append(Contrast(plain.better, plain.worse, {**plain.tags, VARIED_TAG: varied[0]}))
    return minimal_contrasts


def add_group_tag(suite: Suite, tag: str, groups: Iterable[Iterable[str]]) -> Suite:
    """Return the suite with a derived tag for groups that connect: sentences joined by a chain of them share its value.

    Contrasts get it from their sentences. Its value is the first id in the suite's order.

    Args:
        tag: The name of the tag.
        groups: Ids of sentences that belong together; a sentence in no group is one by itself.

    >>> letters = Suite("s", tuple(Sentence(name, name) for name in "abcd"))
    >>> linked = add_group_tag(letters, "set", [["a", "c"], ["c", "d"]])
    >>> [sentence.tags["set"] for sentence in linked.sentences]
    ['a', 'b', 'a', 'a']
    """
    order = {sentence.id: index for index, sentence in enumerate(suite.sentences)}
    leader = {name: name for name in order}

    def find_leader(name: str) -> str:
        while leader[name] != name:
            # Halves the way for the next search.
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for group in groups:
        leaders = sorted(map(find_leader, group), key=order.__getitem__)
        leader.update(dict.fromkeys(leaders, leaders[0]) if leaders else {})
    sentences = {
        sentence.id: replace(sentence, tags={**sentence.tags, tag: find_leader(sentence.id)})
        for sentence in suite.sentences
    }
    contrasts = (
        replace(contrast, tags={**contrast.tags, tag: find_leader(contrast.better)}) for contrast in suite.contrasts
    )
    return replace(
        suite,
        sentences=tuple(sentences.values()),
        contrasts=tuple(contrasts),
        derived_tags=(*suite.derived_tags, tag),
    )


MinimalPair = tuple[Sentence, Sentence]


def make_pair(item: str, good: str, bad: str, tags: Tags) -> MinimalPair:
    """Return the two sentences of an item, the acceptable one first; both get the same tags."""
    tags = {"item": item, **tags}
    return Sentence(f"{item}/good", good, label=1, tags=tags), Sentence(f"{item}/bad", bad, label=0, tags=tags)


def build_pair_suite(name: str, pairs: Iterable[MinimalPair]) -> Suite:
    """Return the suite that has these pairs as its contrasts."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for good, bad in pairs:
        sentences += good, bad
        contrasts.append(make_contrast(good, bad))
    return Suite(name, tuple(sentences), tuple(contrasts))


def replace_word(words: list[str], word_index: int, word: str) -> tuple[str, Span]:
    """Return the text of some words, joined by spaces, with one of them replaced, and the span of the new word.

    >>> replace_word(["the", "cats", "sleep"], 1, "dogs")
    ('the dogs sleep', (4, 8))
    """
    before = " ".join([*words[:word_index], ""])
    text = " ".join([*words[:word_index], word, *words[word_index + 1 :]])
    return text, (len(before), len(before) + len(word))
