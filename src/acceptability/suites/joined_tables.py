"""A user's files as one suite: a single table, or all tables in a folder or an archive.

Of several tables, each sentence gets the tag ``file``, and its id begins with the name of its file: rows and items are
numbered anew in each of them.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath

from acceptability.errors import SuiteError
from acceptability.suites.pairing import describe_pairing
from acceptability.suites.table_files import TABLE_SUFFIXES, TableOptions, is_labelled_list, is_table_file
from acceptability.suites.tables import parse_table
from acceptability.text.containers import (
    ARCHIVE_SUFFIXES,
    drop_gzip_suffix,
    is_archive,
    list_folder,
    read_archive,
    read_unpacked,
    strip_common_folder,
    unpack_gzip,
)
from acceptability.text.io import split_lines
from acceptability.types import Contrast, Sentence, Suite, Tags

FILE_TAG = "file"
"""The tag that tells the tables of a folder or an archive apart."""

_MAX_NAMED = 5


def list_table_files(path: Path) -> list[Path]:
    """Return the files that a user's path stands for: itself, or all files in it if it is a folder."""
    return list_folder(path) if path.is_dir() else [path]


def parse_files(path: Path, contents: Mapping[Path, bytes], options: TableOptions) -> Suite:
    """Return the suite in a file, a folder or an archive.

    Args:
        path: The user's path.
        contents: The content of each of its files.
        options: What the user says about the tables.
    """
    if path.is_dir():
        files = {file.relative_to(path).as_posix(): content for file, content in contents.items()}
        return _join_tables(path.resolve().name, files, str(path), options)
    if is_archive(path.name):
        files = read_archive(contents[path], str(path))
        # The longest ending, since that of a .tar.gz has another in it.
        ending = max(filter(path.name.lower().endswith, ARCHIVE_SUFFIXES), key=len)
        return _join_tables(path.name[: -len(ending)], files, str(path), options)
    return parse_table(drop_gzip_suffix(path.name), _unpack(path.name, contents[path], str(path)), str(path), options)


def _unpack(name: str, content: bytes, where: str) -> bytes:
    return unpack_gzip(content, where) if drop_gzip_suffix(name) != name else content


def _join_tables(title: str, files: Mapping[str, bytes], where: str, options: TableOptions) -> Suite:
    """Return the tables among some files as one suite."""
    short_names = strip_common_folder(files)
    suites: dict[str, Suite] = {}
    left_out = []
    for name, packed in files.items():
        place = f"{where}/{name}"
        content = _unpack(name, packed, place)
        if not _is_table(drop_gzip_suffix(name), content):
            left_out.append(name)
            continue
        short = PurePosixPath(drop_gzip_suffix(short_names[name])).with_suffix("").as_posix()
        if short in suites:
            raise SuiteError(f"{where} has two tables named {short!r}, with different endings: remove one")
        suite = parse_table(drop_gzip_suffix(PurePosixPath(name).name), content, place, options)
        # How many contrasts were made is said once, of all tables.
        suites[short] = replace(suite, notes=suite.notes[:-1]) if options.pair_by else suite
    if not suites:
        raise SuiteError(f"{where} has no tables; their names end in {', '.join(TABLE_SUFFIXES)}")
    merged = _merge(title, suites, where)
    notes = [f"{len(suites)} tables, told apart by the tag {FILE_TAG!r}", *_count_notes(list(suites.values()))]
    notes += [describe_pairing(merged, options.pair_by)] if options.pair_by else []
    if len({suite.unit for suite in suites.values()}) > 1:
        notes.append("the tables have different sampling units, or some have none, so that single rows are resampled")
    if left_out:
        named = ", ".join(left_out[:_MAX_NAMED]) + (", …" if len(left_out) > _MAX_NAMED else "")
        notes.append(f"left out, since no table: {named}")
    return replace(merged, notes=tuple(notes))


def _count_notes(suites: Sequence[Suite]) -> list[str]:
    """Return the notes of several suites, each once, with the number of suites that have it."""
    counts = Counter(note for suite in suites for note in suite.notes)
    shown = [
        note if count == len(suites) else f"{note} ({count} of them)" for note, count in counts.most_common(_MAX_NAMED)
    ]
    return [*shown, *([f"{len(counts) - _MAX_NAMED} other remarks"] if len(counts) > _MAX_NAMED else [])]


def _merge(title: str, suites: Mapping[str, Suite], where: str) -> Suite:
    """Return several tables as one suite."""
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for name, suite in suites.items():
        if FILE_TAG in suite.tag_names:
            raise SuiteError(f"{where}: the table {name!r} has a column {FILE_TAG!r} of its own: rename it")
        tagger = _Tagger(name, _find_set_tag(suites))
        sentences += [
            replace(sentence, id=f"{name}/{sentence.id}", tags=tagger.add(sentence.tags, suite.unit))
            for sentence in suite.sentences
        ]
        contrasts += [
            Contrast(f"{name}/{one.better}", f"{name}/{one.worse}", tagger.add(one.tags, suite.unit))
            for one in suite.contrasts
        ]
    derived = dict.fromkeys(tag for suite in suites.values() for tag in suite.derived_tags)
    units = {suite.unit for suite in suites.values()}
    unit = units.pop() if len(units) == 1 else ""
    if set_tag := _find_set_tag(suites):
        unit, derived = set_tag, derived | {set_tag: None}
    return Suite(title, tuple(sentences), tuple(contrasts), unit=unit, derived_tags=tuple(derived))


def _find_set_tag(suites: Mapping[str, Suite]) -> str:
    """Return the name of the derived tag that tells the items of different tables apart; empty if none is needed."""
    units = {suite.unit for suite in suites.values()}
    if len(units) != 1 or "/" in (unit := units.pop()) or not unit:
        return ""
    names = {name for suite in suites.values() for name in suite.tag_names}
    return "set" if "set" not in names else "file_set"


class _Tagger:
    """Adds the tags of a file to those of its sentences; rows that share their tags get the same dictionary."""

    def __init__(self, name: str, set_tag: str) -> None:
        self._name = name
        self._set_tag = set_tag
        # The tags are kept besides, so that none of them can go and leave its identity to another.
        self._known: dict[int, tuple[Tags, Tags]] = {}

    def add(self, tags: Tags, unit: str) -> Tags:
        """Return the tags with those of the file."""
        if id(tags) not in self._known:
            item = {self._set_tag: f"{self._name}/{tags[unit]}"} if self._set_tag else {}
            self._known[id(tags)] = tags, {**tags, FILE_TAG: self._name, **item}
        return self._known[id(tags)][1]


def _is_table(name: str, content: bytes) -> bool:
    suffix = PurePosixPath(name).suffix.lower()
    if suffix == ".txt":
        return _has_tabbed_rows(content)
    return is_table_file(name) or (suffix == ".json" and _has_json_rows(content))


def is_text_table(path: Path) -> bool:
    """Tell whether a .txt file is a table: with tabs and a header, or of labels in words and sentences."""
    content = _read_if_there(path)
    return content is not None and _has_tabbed_rows(content)


def is_json_table(path: Path) -> bool:
    """Tell whether a .json file is a table, an array of objects or an object a line, rather than a single object."""
    content = _read_if_there(path)
    return content is not None and _has_json_rows(content)


def _read_if_there(path: Path) -> bytes | None:
    # A file that cannot be read is an error of the reader that opens it.
    try:
        return read_unpacked(path)
    except SuiteError:
        return None


def _has_tabbed_rows(content: bytes) -> bool:
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        return False
    return is_labelled_list([line for line in split_lines(text) if line.strip()])


def _has_json_rows(content: bytes) -> bool:
    first, *others = content.removeprefix(b"\xef\xbb\xbf").lstrip().split(b"\n", 1)
    if re.match(rb"\s*\[\s*\{", content.removeprefix(b"\xef\xbb\xbf")[:1000]):
        return True
    # Several objects, one a line; a single one may begin with a whole object in its first line only by accident.
    try:
        row = json.loads(first)
    except (ValueError, RecursionError):
        return False
    return isinstance(row, dict) and bool(others and others[0].lstrip().startswith(b"{"))
