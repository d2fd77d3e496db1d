"""Browsing: pages of the sentences of suites, of saved runs with the rows behind their numbers, and their reports."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastapi import HTTPException

from acceptability.errors import StoreError
from acceptability.report.page import ReportHeading, write_report
from acceptability.report.report_data import attach_suites, load_report_data
from acceptability.serve.jobs import SENTENCES_FILE, load_local_suite
from acceptability.specs import parse_signature
from acceptability.store.runs import SavedRun, list_saved_runs
from acceptability.store.unit_rows import find_units_file, read_unit_rows
from acceptability.suites import load_catalog, load_suite
from acceptability.suites.catalog import CatalogEntry, is_available
from acceptability.types import Suite

# Every result of a measure has all of these columns; no row of another command does.
_RESULT_COLUMNS = ("measure", "model", "reduction", "suite", "group", "value", "low", "high", "n", "signature")


def ensure_report(run: SavedRun) -> Path:
    """Return the path of the report of a run, which is written on the first request."""
    path = run.folder / "report.html"
    if path.exists():
        return path
    rows = read_rows(run, "results")
    if not has_report(rows):
        raise StoreError(f"the run {run.id} ({run.command}) has no results of measures to report")
    names = list(dict.fromkeys(str(row["suite"]) for row in rows))
    # A run of the server has its sentences in its own folder, since an uploaded table may be deleted with its job.
    sentences_path = run.folder / SENTENCES_FILE
    suites = [replace(load_suite(str(sentences_path)), name=name) for name in names] if sentences_path.is_file() else []
    return write_report(
        path, ReportHeading(", ".join(names), run.arguments), attach_suites(load_report_data([str(run.folder)]), suites)
    )


def read_rows(run: SavedRun, kind: str) -> list[dict[str, Any]]:
    """Return the rows of a run: its "results", or the "units" that they are computed from."""
    path = run.folder / f"{kind}.json"
    try:
        # Sentences may hold lone surrogates, which runs are saved with.
        rows: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"the run {run.id} is damaged: {path.name} cannot be read ({error}). Run it again.") from error
    return rows


def has_report(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether rows are results of measures, the only rows of the server that have a report."""
    return bool(rows) and all(set(_RESULT_COLUMNS) <= row.keys() for row in rows)


T = TypeVar("T")
PAGE_SIZE = 50
# The rows of a run are kept as objects; so many of them, or a file of this size, take a few gigabytes of memory.
_MAX_UNIT_ROWS, _MAX_UNIT_BYTES = 700_000, 300_000_000
_DESCRIPTIVE_COLUMNS = ("suite", "measure", "model", "reduction", "unit")


@dataclass(frozen=True)
class Page(Generic[T]):
    """One page of the items that match a search.

    Args:
        total: The number of matching items.
        number: The number of this page, from 1.
        query: The text that was searched for; empty for all items.
    """

    items: Sequence[T]
    total: int
    number: int
    query: str

    @property
    def pages(self) -> int:
        """The number of pages."""
        # Division that rounds up.
        return max(1, -(-self.total // PAGE_SIZE))


@dataclass(frozen=True)
class SuiteItem:
    """A contrast or a single sentence of a suite."""

    name: str
    texts: tuple[str, ...]
    label: int | None
    rating: float | None
    tags: Mapping[str, str]


@dataclass(frozen=True)
class RunUnit:
    """A row that a result is computed from: a sentence or contrast, with the values that a measure has for it."""

    name: str
    model: str
    measure: str
    texts: tuple[str, ...]
    values: Mapping[str, Any]


def paginate(items: Sequence[T], number: int, query: str, search_texts: Callable[[T], Sequence[str]]) -> Page[T]:
    """Return a page of the items that contain a text, regardless of case.

    Args:
        number: The number of the page; one beyond the last gives the last.
        query: The text to search for; empty for all items.
        search_texts: From an item to the texts to search in.

    >>> paginate(["Cats", "dogs"], 1, "CAT", lambda item: [item]).items
    ['Cats']
    """
    needle = query.casefold().strip()
    matches = (
        [item for item in items if any(needle in text.casefold() for text in search_texts(item))] if needle else items
    )
    last = max(1, -(-len(matches) // PAGE_SIZE))
    number = min(max(number, 1), last)
    return Page(matches[(number - 1) * PAGE_SIZE : number * PAGE_SIZE], len(matches), number, query)


def list_catalog_suites() -> list[tuple[CatalogEntry, bool]]:
    """Return every suite of the catalog, and whether its files are on this machine."""
    return [(entry, is_available(entry)) for entry in load_catalog()]


def find_entry(name: str) -> CatalogEntry:
    """Return the catalog entry of exactly this name."""
    for entry in load_catalog():
        if entry.id == name:
            return entry
    raise HTTPException(404, f"there is no suite named {name!r}.")


# Only the latest suite: somebody who turns pages needs the same one again, and the largest ones take much memory.
@lru_cache(maxsize=1)
def load_items(name: str) -> Sequence[SuiteItem]:
    """Return the items of a suite of the catalog: its contrasts, then the sentences that are in none."""
    return _list_items(load_local_suite(name))


def get_item_page(name: str, number: int, query: str) -> Page[SuiteItem]:
    """Return a page of the items of a suite."""
    return paginate(load_items(name), number, query, lambda item: [item.name, *item.texts, *item.tags.values()])


def find_run(name: str) -> SavedRun:
    """Return the saved run of an id."""
    # Looked up in the list and never made into a path: a visitor could send "../.." as an id.
    for run in list_saved_runs()[0]:
        if run.id == name:
            return run
    raise HTTPException(404, f"there is no run {name!r}. It may have been deleted.")


def get_unit_page(run: SavedRun, number: int, query: str) -> Page[RunUnit]:
    """Return a page of the rows that a run's results are computed from."""
    return paginate(_load_units(run.id), number, query, lambda unit: [unit.name, unit.model, unit.measure, *unit.texts])


@lru_cache(maxsize=1)
def _load_units(name: str) -> Sequence[RunUnit]:
    run = find_run(name)
    path, hint = find_units_file(run.folder), f"acceptability runs {run.id} --csv rows.csv"
    too_many = HTTPException(413, f"this run has too many rows to show here; `{hint}` writes them to a file")
    if path.suffix == ".json" and path.is_file() and path.stat().st_size > _MAX_UNIT_BYTES:
        raise too_many
    try:
        rows = read_unit_rows(run.folder)
    except StoreError as error:
        raise StoreError(f"the run {run.id} is damaged: {error}. Run it again.") from error
    if len(rows) > _MAX_UNIT_ROWS:
        raise too_many
    texts = _load_texts(run)
    return [_make_unit(row, texts) for row in rows]


def _make_unit(row: Mapping[str, Any], texts: Mapping[str, str]) -> RunUnit:
    name = str(row.get("unit", ""))
    # The id of a contrast is made of the ids of its sentences; an id of a sentence may contain " > " itself.
    sentence_ids = name.split(" > ") if name not in texts else [name]
    values = {
        key: value for key, value in row.items() if key not in _DESCRIPTIVE_COLUMNS and not key.startswith("tag/")
    }
    sentence_texts = tuple(texts[sentence_id] for sentence_id in sentence_ids if sentence_id in texts)
    return RunUnit(name, str(row.get("model", "")), str(row.get("measure", "")), sentence_texts, values)


def _load_texts(run: SavedRun) -> Mapping[str, str]:
    """Return the texts of a run by sentence id; empty if exactly these sentences cannot be found."""
    path = run.folder / SENTENCES_FILE
    if path.is_file():
        return _read_texts(path)
    suite_signatures = {parse_signature(signature).get("suite", "") for signature in run.signatures if signature}
    texts: dict[str, str] = {}
    for entry, is_here in list_catalog_suites():
        # By name first, since computing the signature of a suite means loading it.
        if is_here and any(signature.startswith(f"{entry.id}#") for signature in suite_signatures):
            suite = load_local_suite(entry.id)
            # The signature has the hash of the content: the sentences of another version are not those of the scores.
            if suite.signature in suite_signatures:
                texts |= {sentence.id: sentence.text for sentence in suite.sentences}
    return texts


def _read_texts(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8") as lines:
        return {row["id"]: row["text"] for row in map(json.loads, lines)}


def _list_items(suite: Suite) -> list[SuiteItem]:
    pairs = [
        SuiteItem(
            contrast.id,
            tuple(suite.by_id[name].text for name in (contrast.better, contrast.worse)),
            None,
            None,
            contrast.tags,
        )
        for contrast in suite.contrasts
    ]
    paired_ids = {name for contrast in suite.contrasts for name in (contrast.better, contrast.worse)}
    single_sentences = [
        SuiteItem(sentence.id, (sentence.text,), sentence.label, sentence.rating, sentence.tags)
        for sentence in suite.sentences
        if sentence.id not in paired_ids
    ]
    return pairs + single_sentences
