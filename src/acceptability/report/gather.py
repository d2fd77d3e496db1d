"""From saved runs and files of results to the rows that a report is made of.

Which kind a row is of is told by its columns, so that a run, a file that ``--json`` printed and rows that another
program wrote are read alike.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acceptability.errors import ReportError, UnknownName, shorten
from acceptability.signature import parse
from acceptability.store.runs import runs_folder
from acceptability.types import Suite

Row = Mapping[str, Any]

KINDS = {
    "comparisons": ("measure", "first", "second", "difference"),
    "correlations": ("first", "second", "r"),
    "groups": ("group", "directionality", "repulsion"),
    "results": ("measure", "model", "suite", "value", "n"),
    "cells": ("table", "row", "column", "ours"),
    "layers": ("layer", "value"),
    "sizes": ("size", "value"),
}
"""The kinds of rows, each with the columns that tell it."""

TEXTS = (
    "table",
    "row",
    "column",
    "note",
    "measure",
    "model",
    "suite",
    "reduction",
    "group",
    "first",
    "second",
    "signature",
    "reason",
    "notes",
    "unit",
)
NUMBERS = ("layer", "size", "value", "low", "high", "n", "difference", "r", "p", "directionality", "repulsion")
"""What a report takes for a text, or for a number, where a row has it."""


_LARGEST = 1e100
"""No number of ours comes near it, and what is computed from such numbers is finite."""


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool) and -_LARGEST < cell < _LARGEST


_EXPECTED: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(TEXTS, ("a text", lambda cell: isinstance(cell, str))),
    **dict.fromkeys(NUMBERS, ("a number below 1e100", _is_number)),
    "agrees": ("true or false, or null", lambda cell: isinstance(cell, bool)),
}


_OF_A_UNIT = ("suite", "measure", "model", "unit")
"""What every row behind a result says of itself."""


@dataclass(frozen=True)
class Told:
    """What a run says of itself."""

    id: str
    command: str = ""
    arguments: str = ""
    made: str = ""
    version: str = ""
    signatures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Material:
    """All that a report is made of.

    Args:
        results: Values with intervals; grouped ones have ``tag=value`` or ``macro(tag)`` in ``group``.
        comparisons, correlations: Rows as ``compare`` and ``correlate`` give them.
        groups: Directionality and repulsion, as ``contrasts`` gives them.
        targets: The contrasts behind ``groups``, with surprisals in bits.
        cells: A paper's numbers and ours.
        layers, sizes: Values by layer of a network, or by how much was learnt from.
        units: The rows that results rest on.
        suites: The suites that the rows are of, where they could be read again.
        notes: What could not be had, in words for the reader.
    """

    runs: tuple[Told, ...] = ()
    results: tuple[Row, ...] = ()
    comparisons: tuple[Row, ...] = ()
    correlations: tuple[Row, ...] = ()
    groups: tuple[Row, ...] = ()
    targets: tuple[Row, ...] = ()
    cells: tuple[Row, ...] = ()
    layers: tuple[Row, ...] = ()
    sizes: tuple[Row, ...] = ()
    units: tuple[Row, ...] = ()
    suites: Mapping[str, Suite] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def signatures(self) -> list[str]:
        """Every signature once, those of groups left out."""
        told = [str(row.get("signature") or "") for row in (*self.results, *self.comparisons) if not row.get("group")]
        told += [each for run in self.runs for each in run.signatures if "group" not in parse(each)]
        return list(dict.fromkeys(filter(None, told)))


def gather(places: Sequence[str]) -> Material:
    """Return the rows of runs and files.

    Args:
        places: Each a run's id, its folder, or a JSON file of rows.
    """
    runs: list[Told] = []
    found: dict[str, list[Row]] = {kind: [] for kind in KINDS}
    units: list[Row] = []
    targets: list[Row] = []
    for place in places:
        told, rows, below = _read(place)
        runs.append(told)
        about = _about(told)
        for row in rows:
            kind = kind_of(row)
            if kind:
                found[kind].append({**about, **row} if kind == "groups" else row)
        units += _units(below, place)
        targets += [{**about, **row} for row in _targets(below, place)]
    if not any(found.values()):
        kinds = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in KINDS.items())
        raise ReportError(f"{', '.join(places)}: no row can be shown. Rows need the columns of one kind ({kinds}).")
    once: dict[str, Any] = {kind: tuple(_once(rows)) for kind, rows in found.items()}
    return Material(runs=tuple(runs), units=tuple(_once_units(units)), targets=tuple(_once(targets)), **once)


def kind_of(row: Row) -> str | None:
    """Return what kind a row is of; None for rows that no figure or table shows.

    >>> kind_of({"first": "a", "second": "b", "r": 0.5})
    'correlations'
    """
    return next((kind for kind, columns in KINDS.items() if all(name in row for name in columns)), None)


LATEST = "latest"
"""Stands for the run that was made last: ids begin with the time."""


def _read(place: str) -> tuple[Told, list[Row], list[Row]]:
    """Return what a run says of itself, its rows, and the rows below them."""
    path = Path(place)
    if path.is_file():
        return _file(path)
    known = sorted(each.parent.name for each in runs_folder().glob("[!.]*/run.json"))
    name = known[-1] if place == LATEST and known else place
    folder = path if (path / "run.json").is_file() else runs_folder() / name
    if not place or not (folder / "run.json").is_file():
        raise UnknownName(
            "run", place, known, hint="`acceptability runs` lists them; a folder or a JSON file goes too."
        )
    about = _json(folder / "run.json")
    if not isinstance(about, dict):
        raise ReportError(f"{folder / 'run.json'}: expected what a run says of itself, as a command saves it")
    fields = {name: str(about.get(name, "")) for name in ("id", "command", "arguments", "made", "version")}
    signatures = about.get("signatures", [])
    if not isinstance(signatures, list) or not all(isinstance(each, str) for each in signatures):
        raise _damaged(place, "signatures", signatures, "a list of texts")
    told = Told(**fields, signatures=tuple(signatures))
    return told, _rows(folder / "results.json"), _rows(folder / "units.json")


def _file(path: Path) -> tuple[Told, list[Row], list[Row]]:
    """Return the rows of a JSON file: a list, or the mapping that ``contrasts --json`` prints."""
    content = _json(path)
    told = Told(path.name)
    if isinstance(content, dict) and isinstance(content.get("groups"), list):
        signed = Told(path.name, command="contrasts", signatures=(str(content.get("signature", "")),))
        return signed, _checked(content["groups"], path), _checked(content.get("contrasts", []), path)
    return told, _checked(content, path), []


def _rows(path: Path) -> list[Row]:
    """Return the rows of a run's file. A text that stands in many of them is held once."""
    texts: dict[str, str] = {}
    rows = _by_line(path) or _checked(_json(path), path)
    return [{name: _held_once(cell, texts) for name, cell in row.items()} for row in rows]


def _held_once(cell: Any, texts: dict[str, str]) -> Any:
    return texts.setdefault(cell, cell) if isinstance(cell, str) else cell


def _by_line(path: Path) -> Iterator[Row] | None:
    """Return a stream of rows that stand in a line each, as a run is saved; None if they do not."""
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as lines:
            is_by_line = next(lines, "").endswith("},\n")
    except (OSError, ValueError) as error:
        raise ReportError(f"cannot read {path}: {error}") from error
    return _read_lines(path) if is_by_line else None


def _read_lines(path: Path) -> Iterator[Row]:
    place = 0
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as lines:
            for place, line in enumerate(lines, start=1):
                [row] = json.loads(f"[{line.rstrip().removeprefix('[').removesuffix(']').removesuffix(',')}]")
                yield from _checked([row], path, place)
    except UnicodeDecodeError as error:
        raise ReportError(f"cannot read {path} after line {place}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot read {path}, line {place}: {error}") from error


def _checked(content: object, path: Path, first: int = 1) -> list[Row]:
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ReportError(f"{path}: expected a list of rows, as --json prints it")
    for place, row in enumerate(content, start=first):
        _check_row(row, path, place)
    return content


def _check_row(row: Row, path: Path, place: int) -> None:
    """Refuse a row whose names are no texts, or whose numbers are none."""
    for name, cell in row.items():
        if cell is not None and (expected := _EXPECTED.get(name)) and not expected[1](cell):
            where = f"{path}, row {place}: {name}"
            raise ReportError(f"{where} is {shorten(repr(cell))}; expected {expected[0]}")


def _units(rows: Sequence[Row], place: str) -> list[Row]:
    """Return the rows that results rest on: what they are of, and in every other column a number."""
    found = [row for row in rows if "unit" in row and "model" in row]
    columns: dict[tuple[str, str], list[str]] = {}
    for row in found:
        tags = [name for name in row if name.startswith("tag/")]
        for name in (*_OF_A_UNIT, *tags):
            if not isinstance(row.get(name), str):
                raise _damaged(place, name, row.get(name), "a text")
        named = sorted(set(row) - {*_OF_A_UNIT, *tags, "reduction"})
        _check_numbers(row, named, place)
        if row.get("label", 0) not in (0, 1):
            raise _damaged(place, "label", row["label"], "0 or 1")
        expected = columns.setdefault((row["suite"], row["measure"]), named)
        if named != expected:
            raise _damaged(place, f"one row of {row['measure']}", named, f"{expected}, as others have")
    return found


def _targets(rows: Sequence[Row], place: str) -> list[Row]:
    """Return the rows of contrasts on a target, with both surprisals."""
    found = [row for row in rows if "better_surprisal_bits" in row]
    for row in found:
        _check_numbers(row, ("better_surprisal_bits", "worse_surprisal_bits"), place)
    return found


def _check_numbers(row: Row, names: Sequence[str], place: str) -> None:
    for name in names:
        if not _is_number(row.get(name)):
            raise _damaged(place, name, row.get(name), "a number below 1e100")


def _damaged(place: str, name: str, found: object, expected: str) -> ReportError:
    """Return the error that the rows of a run are not as a command saves them."""
    said = f"the run {place} is damaged: {name} is {shorten(repr(found))}; expected {expected}"
    return ReportError(f"{said}. Run the command again.")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot read {path}: {error}") from error


def _about(told: Told) -> dict[str, str]:
    """Return the suite and the model of a run of contrasts, which its rows do not name themselves."""
    if told.command != "contrasts" or not told.signatures:
        return {}
    fields = parse(told.signatures[0])
    suite = fields.get("suite", "").partition("#")[0].partition("+targets(")[0]
    return {"suite": suite, "model": short_model(fields.get("model", ""))}


def short_model(signature: str) -> str:
    """Return the part of a model's signature that people call it by.

    >>> short_model("ngram:trigram@5732531b85a8(units='split').lp()#target")
    'trigram'
    """
    return signature.partition("(")[0].partition("@")[0].rpartition(":")[2] or signature


def model_name(row: Row) -> str:
    """Return what a model is called in figures: with its reduction, unless that is the plain log-probability.

    >>> model_name({"model": "trigram", "reduction": "slor()"}), model_name({"model": "trigram", "reduction": "lp()"})
    ('trigram slor()', 'trigram')
    """
    reduction = row.get("reduction") or ""
    name = str(row["model"])
    return name.removesuffix(" lp()") if reduction in ("", "lp()", "log_odds()") else f"{name} {reduction}"


def _once(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows, each only the first time: two runs may have computed the same."""
    seen: set[str] = set()
    for row in rows:
        key = json.dumps(row, sort_keys=True, default=str)
        if key not in seen:
            seen.add(key)
            yield row


def _once_units(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield what a model made of a unit under a measure, only the first time."""
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = (row.get("suite"), row.get("measure"), model_name(row), row["unit"])
        if key not in seen:
            seen.add(key)
            yield row
