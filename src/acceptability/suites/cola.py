"""CoLA, the Corpus of Linguistic Acceptability, version 1.1 (Warstadt, Singh and Bowman 2019).

Six kinds of file: the public splits, the analysis set with 15 major and 63 minor
grammatical features (Warstadt and Bowman 2019), the five targeted sets of section 7.2,
200 sentences judged by five people, and FAVA, verb alternations in frames (Kann et al. 2019).
Ids are ours: the suite and the row's number.

Traps: files without header or quoting; the two feature files have one row a sentence in
the same order; the targeted sets are lower-cased and tokenized. Five sentences of the
analysis set have another label than in the development sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from acceptability.errors import SuiteError
from acceptability.suites.catalog import Entry
from acceptability.text import tab_rows
from acceptability.types import Sentence, Suite

_ALTERNATIONS = {
    "dat": "dative",
    "inch": "inchoative",
    "spray": "spray_load",
    "there": "there_insertion",
    "u_obj": "understood_object",
}
_FEATURES = {"major": 15, "minor": 63}


def read(entry: Entry, files: Mapping[str, bytes]) -> Suite:
    """Return one of CoLA's sets, whichever the entry names."""
    readers = {"cola/analysis": _analysis, "cola/human": _human}
    sentences = readers.get(entry.id, _plain)(entry, files)
    return Suite(entry.id, tuple(sentences))


def _plain(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    for number, (source, label, mark, text) in tab_rows(content, f"{entry.folder}/{path}", width=4):
        tags = {"mark": mark.strip()} | ({"source": source} if source else {})
        tags |= {"alternation": _ALTERNATIONS[source]} if source in _ALTERNATIONS else {}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _analysis(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    tables = [
        list(tab_rows(content, f"{entry.folder}/{path}", width=4 + _FEATURES[grain]))
        for grain in _FEATURES
        for path, content in files.items()
        if grain in path
    ]
    for (number, major), (_, minor) in zip(*(table[1:] for table in tables), strict=True):
        if major[:4] != minor[:4]:
            raise SuiteError(f"{entry.id}, line {number}: the two feature files have different sentences")
        source, domain, label, text = major[:4]
        tags = {"source": source, "domain": domain.lower()}
        for grain, row, (_, header) in zip(_FEATURES, (major, minor), (table[0] for table in tables), strict=True):
            tags |= {f"{grain}/{name}": value for name, value in zip(header[4:], row[4:], strict=True)}
        yield Sentence(f"{entry.id}/{number - 1}", text, label=int(label), tags=tags)


def _human(entry: Entry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    rows = tab_rows(content, f"{entry.folder}/{path}", width=11)
    _, header = next(rows)
    for _, row in rows:
        cells = dict(zip(header, row, strict=True))
        tags = {name: cells[name] for name in header if name in ("domain", "source") or "annotator" in name}
        yield Sentence(f"{entry.id}/{cells['order']}", cells["sentence"], label=int(cells["gold"]), tags=tags)
