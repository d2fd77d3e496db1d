"""Suites of the catalog that are data sets of the Hugging Face Hub: MultiBLiMP, EWoK, COMPS, BabyLM's supplement.

MultiBLiMP 1.0 (Jumelet et al. 2025): the columns ``sen`` and ``wrong_sen`` are a pair; the others become tags.

EWoK (Ivanova et al. 2024) crosses two contexts and two targets: Target1 fits Context1, and Target2 fits Context2. A
contrast is one target after the context that it fits, and after the other one, so that both sentences of a contrast
have the same scored words, and its tag ``context`` tells them apart. COMPS (Misra et al. 2023) is read in the same way:
a property is scored after ``prefix_acceptable`` and after ``prefix_unacceptable``.

BabyLM's supplement to BLiMP (Warstadt et al. 2023) has ``sentence_good`` and ``sentence_bad``, and a file for each
paradigm.

Columns are found by their names without regard to case and underscores, which copies of these data sets change.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

from acceptability.errors import SuiteError
from acceptability.suites import MinimalPair, build_pair_suite, make_pair
from acceptability.suites.catalog import CatalogEntry
from acceptability.suites.table_files import TableOptions, parse_table_file
from acceptability.types import Contrast, Sentence, Suite, Tags

_log = logging.getLogger(__name__)

# The columns that each data set has to have, in the form of `_simplify`. The other ones become tags.
_TEXT_COLUMNS = {
    "multiblimp": ("sen", "wrongsen"),
    "ewok": ("context1", "context2", "target1", "target2"),
    "comps": ("prefixacceptable", "prefixunacceptable", "propertyphrase"),
    "babylm": ("sentencegood", "sentencebad"),
}

_UNIT_COLUMNS = {"ewok": ("domain", "metatemplateid", "templateid"), "comps": ("property",)}


def read_hub(entry: CatalogEntry, files: Mapping[str, bytes]) -> Suite:
    """Return a suite of the Hub, from the content of its tables."""
    name = entry.id.partition("/")[0]
    rows = _number_rows(entry, files, name)
    if name == "ewok":
        suite = _cross_contexts(entry, rows)
    elif name == "comps":
        suite = _pair_contexts(entry, rows)
    else:
        pairs = _pair_multiblimp if name == "multiblimp" else _pair_supplement
        suite = build_pair_suite(entry.id, pairs(entry, rows))
    if (found := len(suite.contrasts)) != entry.contrasts:
        _log.warning("%s: this copy has %d contrasts; the published data set has %d", entry.id, found, entry.contrasts)
    return suite


_Row = tuple[str, int, Mapping[str, str], Tags]
"""The path of its table, its number in the suite, the cells of its texts, and the others as tags."""


def _number_rows(entry: CatalogEntry, files: Mapping[str, bytes], name: str) -> Iterator[_Row]:
    texts, needed, number = _TEXT_COLUMNS[name], _UNIT_COLUMNS.get(name, ()), 0
    for path, content in files.items():
        where = f"{entry.folder}/{path}"
        for line, row in parse_table_file(Path(path).name, content, where, TableOptions()).rows:
            cells = {_simplify(column): (column, cell) for column, cell in row.items()}
            lacking = [column for column in (*texts, *needed) if _read_cell(cells, column) is None]
            if lacking:
                raise SuiteError(
                    f"{where}, row {line}: nothing in {lacking[0]!r}; the columns are {', '.join(row)}. "
                    f"Expected the layout of {entry.source}"
                )
            number += 1
            tags = {
                column: str(cell)
                for key, (column, cell) in cells.items()
                if key not in texts and cell not in (None, "")
            }
            yield path, number, {text: str(_read_cell(cells, text)) for text in texts}, tags


def _simplify(column: str) -> str:
    return re.sub("[^a-z0-9]", "", column.lower())


def _read_cell(cells: Mapping[str, tuple[str, object]], column: str) -> object:
    _, cell = cells.get(column, ("", None))
    return None if cell == "" else cell


def _find_tag(tags: Tags, name: str) -> str:
    return next(value for column, value in tags.items() if _simplify(column) == name)


def _pair_multiblimp(entry: CatalogEntry, rows: Iterable[_Row]) -> Iterator[MinimalPair]:
    for _, number, texts, tags in rows:
        shared = {**tags, "language": entry.language}
        yield make_pair(f"{entry.id}/{number}", texts["sen"], texts["wrongsen"], shared)


def _pair_supplement(entry: CatalogEntry, rows: Iterable[_Row]) -> Iterator[MinimalPair]:
    for path, number, texts, tags in rows:
        paradigm = PurePosixPath(path).stem
        shared = {**tags, "paradigm": paradigm, "language": entry.language}
        yield make_pair(f"{entry.id}/{paradigm}/{number}", texts["sentencegood"], texts["sentencebad"], shared)


def _cross_contexts(entry: CatalogEntry, rows: Iterable[_Row]) -> Suite:
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for _, number, texts, tags in rows:
        domain, meta, template = (_find_tag(tags, name) for name in _UNIT_COLUMNS["ewok"])
        for target, other in (("1", "2"), ("2", "1")):
            item = f"{entry.id}/{number}/target{target}"
            # The tag domain, in lower case, is that of all copies, whose columns differ in spelling.
            shared = {
                **{column: value for column, value in tags.items() if _simplify(column) != "domain"},
                "item": item,
                "row": str(number),
                "domain": domain,
                "template": f"{domain}/{meta}/{template}",
                "language": entry.language,
            }
            contexts = {"good": texts[f"context{target}"], "bad": texts[f"context{other}"]}
            _add_contexts(sentences, contrasts, texts[f"target{target}"], contexts, shared)
    return Suite(entry.id, tuple(sentences), tuple(contrasts), unit=entry.unit)


def _pair_contexts(entry: CatalogEntry, rows: Iterable[_Row]) -> Suite:
    sentences: list[Sentence] = []
    contrasts: list[Contrast] = []
    for _, number, texts, tags in rows:
        shared = {**tags, "item": f"{entry.id}/{number}", "property": _find_tag(tags, "property")}
        contexts = {"good": texts["prefixacceptable"], "bad": texts["prefixunacceptable"]}
        _add_contexts(sentences, contrasts, texts["propertyphrase"], contexts, {**shared, "language": entry.language})
    return Suite(entry.id, tuple(sentences), tuple(contrasts), unit=entry.unit)


def _add_contexts(
    sentences: list[Sentence], contrasts: list[Contrast], text: str, contexts: Mapping[str, str], tags: Tags
) -> None:
    """Add a text after a context that it fits and after one that it does not, and the contrast of the two."""
    item = tags["item"]
    for member, context in contexts.items():
        own = {**tags, "context": context}
        sentences.append(Sentence(f"{item}/{member}", text, label=int(member == "good"), tags=own))
    contrasts.append(Contrast(f"{item}/good", f"{item}/bad", tags))
