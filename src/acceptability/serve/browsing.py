"""What there is to look through: suites with their sentences, runs with the rows behind their numbers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Generic, TypeVar

from fastapi import HTTPException

from acceptability.serve.jobs import known_suite
from acceptability.serve.reports import rows_of
from acceptability.serve.working import SENTENCES
from acceptability.signature import parse
from acceptability.store.runs import Run, saved_runs
from acceptability.suites import catalog
from acceptability.suites.catalog import Entry
from acceptability.suites.fetch import is_here
from acceptability.types import Suite

T = TypeVar("T")
ON_A_PAGE = 50
_MOST_BYTES = 300_000_000
_ABOUT = ("suite", "measure", "model", "reduction", "unit")


@dataclass(frozen=True)
class Page(Generic[T]):
    """Some of the things that were found.

    Args:
        total: How many were found.
        number: Which page this is, from 1.
    """

    items: Sequence[T]
    total: int
    number: int
    query: str

    @property
    def pages(self) -> int:
        """How many pages there are."""
        return max(1, -(-self.total // ON_A_PAGE))


@dataclass(frozen=True)
class Item:
    """A contrast or a single sentence of a suite: what it is called and what it says."""

    name: str
    texts: tuple[str, ...]
    label: int | None
    rating: float | None
    tags: Mapping[str, str]


@dataclass(frozen=True)
class Unit:
    """A row behind a number: what is asked, its sentences, and what the model made of it."""

    name: str
    model: str
    measure: str
    texts: tuple[str, ...]
    values: Mapping[str, Any]


def page_of(items: Sequence[T], number: int, query: str, said: Callable[[T], Sequence[str]]) -> Page[T]:
    """Return a page of the items that say what is searched for; letters' case does not matter.

    >>> page_of(["Cats", "dogs"], 1, "CAT", lambda item: [item]).items
    ['Cats']
    """
    wanted = query.casefold().strip()
    found = [each for each in items if any(wanted in part.casefold() for part in said(each))] if wanted else items
    last = max(1, -(-len(found) // ON_A_PAGE))
    number = min(max(number, 1), last)
    return Page(found[(number - 1) * ON_A_PAGE : number * ON_A_PAGE], len(found), number, query)


def listed_suites() -> list[tuple[Entry, bool]]:
    """Return every suite of the catalog, and whether its files are on this machine."""
    return [(entry, is_here(entry)) for entry in catalog()]


def find_entry(name: str) -> Entry:
    """Return the suite of exactly that name in the catalog."""
    for entry in catalog():
        if entry.id == name:
            return entry
    raise HTTPException(404, f"there is no suite named {name!r}.")


@lru_cache(maxsize=1)
def items_of(name: str) -> Sequence[Item]:
    """Return what a suite of the catalog holds: its contrasts, then the sentences that are in none."""
    return _items(known_suite(name))


def item_page(name: str, number: int, query: str) -> Page[Item]:
    """Return a page of a suite."""
    return page_of(items_of(name), number, query, lambda item: [item.name, *item.texts, *item.tags.values()])


def find_run(name: str) -> Run:
    """Return the saved run of an id; the id is looked up, never made into a path."""
    for run in saved_runs()[0]:
        if run.id == name:
            return run
    raise HTTPException(404, f"there is no run {name!r}. It may have been deleted.")


def unit_page(run: Run, number: int, query: str) -> Page[Unit]:
    """Return a page of the rows behind a run's numbers."""
    return page_of(_units(run.id), number, query, lambda unit: [unit.name, unit.model, unit.measure, *unit.texts])


@lru_cache(maxsize=1)
def _units(name: str) -> Sequence[Unit]:
    run = find_run(name)
    path = run.folder / "units.json"
    if path.is_file() and path.stat().st_size > _MOST_BYTES:
        raise HTTPException(
            413, f"the rows of this run are too many to show here. They lie in {path.with_suffix('.csv')}"
        )
    texts = _texts(run)
    return [_unit(row, texts) for row in rows_of(run, "units")]


def _unit(row: Mapping[str, Any], texts: Mapping[str, str]) -> Unit:
    name = str(row.get("unit", ""))
    named = name.split(" > ") if name not in texts else [name]
    values = {key: value for key, value in row.items() if key not in _ABOUT and not key.startswith("tag/")}
    said = tuple(texts[each] for each in named if each in texts)
    return Unit(name, str(row.get("model", "")), str(row.get("measure", "")), said, values)


def _texts(run: Run) -> Mapping[str, str]:
    """Return the text of each sentence of a run by its id, where the very sentences can still be had."""
    path = run.folder / SENTENCES
    if path.is_file():
        return _texts_in(path)
    signed = {parse(each).get("suite", "") for each in run.signatures if each}
    found: dict[str, str] = {}
    for entry, here in listed_suites():
        if here and any(each.startswith(f"{entry.id}#") for each in signed):
            suite = known_suite(entry.id)
            found |= {each.id: each.text for each in suite.sentences} if suite.signature in signed else {}
    return found


def _texts_in(path: Path) -> dict[str, str]:
    with path.open(encoding="utf-8") as lines:
        return {row["id"]: row["text"] for row in map(json.loads, lines)}


def _items(suite: Suite) -> list[Item]:
    pairs = [
        Item(each.id, tuple(suite.by_id[name].text for name in (each.better, each.worse)), None, None, each.tags)
        for each in suite.contrasts
    ]
    paired = {name for each in suite.contrasts for name in (each.better, each.worse)}
    alone = [
        Item(each.id, (each.text,), each.label, each.rating, each.tags)
        for each in suite.sentences
        if each.id not in paired
    ]
    return pairs + alone
