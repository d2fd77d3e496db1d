"""Suites of labelled sentences: CoLA, and negative polarity items in nine environments.

CoLA, the Corpus of Linguistic Acceptability, version 1.1 (Warstadt, Singh and Bowman 2019; ``read_cola``):
the public splits, the analysis set with 15 major and 63 minor grammatical features (Warstadt and
Bowman 2019), the five targeted sets of section 7.2, 200 sentences judged by five people, and FAVA,
verb alternations in frames (Kann et al. 2019). Ids are ours: the suite and the number of the row.
The targeted sets are lower-cased and tokenized. Five sentences of the analysis set have another label
than in the development sets.

Negative polarity items (Warstadt et al. 2019, five analysis methods; ``read_npi``): ``npi`` has paradigms
that cross licensor, scope and NPI; ``npi/pairs`` and ``npi/cloze`` have minimal pairs; ``npi/wilcox``
has items after Wilcox et al. (2019). The published splits hold 108,000 of the paper's 136,000
sentences. Two folders of the splits (``conditionals``, ``quantifiers``) are spelled differently in the
metadata and the pair files; ids follow the folders, the tag ``environment`` follows the metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from acceptability.errors import SuiteError
from acceptability.suites.catalog import CatalogEntry
from acceptability.text.io import read_tab_rows
from acceptability.types import Contrast, Sentence, Suite, make_contrast

# FAVA's names in the data, and those of the paper.
_ALTERNATIONS = {
    "dat": "dative",
    "inch": "inchoative",
    "spray": "spray_load",
    "there": "there_insertion",
    "u_obj": "understood_object",
}

_FEATURES = {"major": 15, "minor": 63}


def read_cola(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return one of CoLA's sets, chosen by the entry's id."""
    readers = {"cola/analysis": _read_analysis, "cola/human": _read_human}
    sentences = readers.get(entry.id, _read_plain)(entry, files)
    return Suite(entry.id, tuple(sentences))


def _read_plain(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    # These files have no header, so ids are line numbers.
    ((path, content),) = files.items()
    for number, (source, label, mark, text) in read_tab_rows(content, f"{entry.folder}/{path}", width=4):
        tags = {"mark": mark.strip()} | ({"source": source} if source else {})
        tags |= {"alternation": _ALTERNATIONS[source]} if source in _ALTERNATIONS else {}
        yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _read_analysis(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    tables = [
        list(read_tab_rows(content, f"{entry.folder}/{path}", width=4 + _FEATURES[grain]))
        for grain in _FEATURES
        for path, content in files.items()
        if grain in path
    ]
    for (number, major), (_, minor) in zip(*(table[1:] for table in tables), strict=True):
        # The two feature files are joined by line, which their repeated sentences and labels allow to check.
        if major[:4] != minor[:4]:
            raise SuiteError(f"{entry.id}, line {number}: the two feature files have different sentences")
        source, domain, label, text = major[:4]
        tags = {"source": source, "domain": domain.lower()}
        for grain, row, (_, header) in zip(_FEATURES, (major, minor), (table[0] for table in tables), strict=True):
            tags |= {f"{grain}/{name}": value for name, value in zip(header[4:], row[4:], strict=True)}
        # Line 1 is the header, so line 2 is sentence 1.
        yield Sentence(f"{entry.id}/{number - 1}", text, label=int(label), tags=tags)


def _read_human(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    ((path, content),) = files.items()
    rows = read_tab_rows(content, f"{entry.folder}/{path}", width=11)
    _, header = next(rows)
    for _, row in rows:
        cells = dict(zip(header, row, strict=True))
        tags = {name: cells[name] for name in header if name in ("domain", "source") or "annotator" in name}
        yield Sentence(f"{entry.id}/{cells['order']}", cells["sentence"], label=int(cells["gold"]), tags=tags)


# The keys of the metadata. They are listed because metadata are joined by hyphens, and values contain hyphens too.
_KEYS = (
    "experiment",
    "env",
    "npi",
    "crucial_item",
    "distractor",
    "licensor",
    "scope",
    "npi_present",
    "paradigm",
)

_KEY = re.compile(rf"(?:^|-)({'|'.join(_KEYS)})=")

_PAIR = re.compile(r"env=(?P<environment>\w+?)_(?P<varied>licensor=.*)")


def read_npi(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return the NPI paradigms, the pairs or the Wilcox items, chosen by the entry's id."""
    if entry.id in ("npi/pairs", "npi/cloze"):
        return _read_pairs(entry, files)
    return Suite(entry.id, tuple(_read_paradigms(entry, files)))


def _read_paradigms(entry: CatalogEntry, files: Mapping[str, bytes]) -> Iterator[Sentence]:
    for path, content in files.items():
        split = path.removesuffix(".tsv").removeprefix("splits/")
        for number, (metadata, label, _, text) in read_tab_rows(content, f"{entry.folder}/{path}", width=4):
            tags = _parse_metadata(metadata)
            if entry.id == "npi":
                tags |= {"split": split.split("/")[1], "set": f"{tags['environment']}/{tags['paradigm']}"}
                yield Sentence(f"{split}/{number}", text, label=int(label), tags=tags)
            else:
                tags |= {"set": tags["paradigm"]}
                yield Sentence(f"{entry.id}/{number}", text, label=int(label), tags=tags)


def _parse_metadata(metadata: str) -> dict[str, str]:
    """Return the factors in a metadata string.

    >>> _parse_metadata("experiment=NPI-env=only-npi=any-crucial_item=no-one-licensor=1-paradigm=7")["crucial_item"]
    'no-one'
    """
    # The split alternates keys and values, after an empty string before the first key.
    parts = _KEY.split(metadata)[1:]
    tags = dict(zip(parts[::2], parts[1::2], strict=True))
    del tags["experiment"]
    return {"environment": tags.pop("env")} | tags


def _read_pairs(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    ((path, content),) = files.items()
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for number, (_, first, second, label, condition) in read_tab_rows(content, f"{entry.folder}/{path}", width=5):
        tags = _parse_condition(condition, f"{path}, line {number}") | {"item": f"{entry.id}/{number}"}
        pair = [
            # The label of a pair is 1 if its second sentence is the acceptable one.
            Sentence(f"{entry.id}/{number}/{position}", text, label=int((position == 2) == (label == "1")), tags=tags)
            for position, text in ((1, first), (2, second))
        ]
        sentences += pair
        contrasts.append(make_contrast(*sorted(pair, key=lambda sentence: sentence.label == 0)))
    return Suite(entry.id, tuple(sentences), tuple(contrasts))


def _parse_condition(text: str, where: str) -> dict[str, str]:
    match = _PAIR.fullmatch(text)
    if not match:
        raise SuiteError(f"{where}: cannot parse the condition {text!r}")
    return {"environment": match["environment"], "condition": match["varied"]}
