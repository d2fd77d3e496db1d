"""The data of a report: rows from saved runs and JSON files, their suites, and stored surprisals of tokens.

- ``load_report_data`` reads rows and sorts them into kinds by their columns, so that a run, the output of ``--json``
  and rows of other programs are all read in the same way. Files may come from anybody, so every row is checked.
- ``attach_suites`` finds the sentences of the rows, ``read_stored_tokens`` their tokens with surprisals.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from acceptability.api.scoring import SuiteQueries
from acceptability.errors import AcceptabilityError, ReportError, StoreError, UnknownName, shorten
from acceptability.paths import home_folder
from acceptability.specs import parse_signature
from acceptability.store.runs import LATEST, find_part, load_input_suite, runs_folder
from acceptability.store.scores import ScoreStore
from acceptability.store.unit_rows import UnitRows, find_units_file, read_unit_columns
from acceptability.suites import find_entries, load_suite
from acceptability.suites.catalog import is_plugin_suite
from acceptability.types import ModelOutput, Sentence, Suite, TokenScores, Units

Row = Mapping[str, Any]

ROW_KINDS = {
    "comparisons": ("measure", "first", "second", "difference"),
    "correlations": ("first", "second", "r"),
    "groups": ("group", "directionality", "repulsion"),
    "results": ("measure", "model", "suite", "value", "n"),
    "cells": ("table", "row", "column", "ours"),
    "layers": ("layer", "value"),
    "sizes": ("size", "value"),
}
"""The kinds of rows with the columns that identify them.

A row is of the first kind whose columns it has all, so that a kind with more specific columns comes earlier."""

TEXT_COLUMNS = (
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
NUMBER_COLUMNS = ("layer", "size", "value", "low", "high", "n", "difference", "r", "p", "directionality", "repulsion")
"""The columns that must be texts, or numbers, in every row that has them."""

MAX_PAIRS = 2000
"""The most pairs in the item browser: a page of many megabytes opens slowly, and mail servers reject it."""

# No number of ours comes near it. Squares and sums of larger ones could overflow to infinity, which JSON cannot hold.
_NUMBER_LIMIT = 1e100


def _is_number(cell: object) -> bool:
    # A bool is an int in Python. A comparison with NaN is always false, which excludes it too.
    return isinstance(cell, int | float) and not isinstance(cell, bool) and -_NUMBER_LIMIT < cell < _NUMBER_LIMIT


_EXPECTED_TYPES: Mapping[str, tuple[str, Callable[[object], bool]]] = {
    **dict.fromkeys(TEXT_COLUMNS, ("a text", lambda cell: isinstance(cell, str))),
    **dict.fromkeys(NUMBER_COLUMNS, ("a number below 1e100", _is_number)),
    "agrees": ("true or false, or null", lambda cell: isinstance(cell, bool)),
}

# The columns of every row that a result is computed from.
_UNIT_COLUMNS = ("suite", "measure", "model", "unit")


@dataclass(frozen=True)
class RunMetadata:
    """The metadata of a run, with its folder and what its command was given, if it was saved.

    Args:
        is_own: Whether it is one of the user's own runs, whose command line may name files to be read again.
    """

    id: str
    command: str = ""
    arguments: str = ""
    made: str = ""
    version: str = ""
    signatures: tuple[str, ...] = ()
    is_own: bool = False
    folder: Path | None = None
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def load_suite(self, signature: str) -> Suite | None:
        """Return the suite of a signature among those that the run was given; None if it has none."""
        return load_input_suite(self.folder, self.inputs, signature) if self.folder else None


@dataclass(frozen=True)
class ReportData:
    """The rows of a report by kind, with their suites.

    Args:
        runs: The metadata of the runs that the rows come from.
        results: Values with intervals; grouped ones have ``tag=value`` or ``macro(tag)`` in ``group``.
        comparisons, correlations: The rows of the commands ``compare`` and ``correlate``.
        groups: Directionality and repulsion, the rows of the command ``contrasts``.
        targets: The contrasts behind ``groups``, with surprisals in bits.
        cells: A paper's numbers and ours.
        layers, sizes: Values by layer of a network, and by the amount of training data.
        units: The rows that results are computed from.
        suites: The suites of the rows by name, as far as they were found.
        notes: Messages to the reader, on what was not found.
    """

    runs: tuple[RunMetadata, ...] = ()
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
        """All signatures without repetition, except those of groups."""
        signatures = [
            str(row.get("signature") or "") for row in (*self.results, *self.comparisons) if not row.get("group")
        ]
        signatures += [
            signature for run in self.runs for signature in run.signatures if "group" not in parse_signature(signature)
        ]
        return list(dict.fromkeys(filter(None, signatures)))


def load_report_data(sources: Sequence[str]) -> ReportData:
    """Return the rows of runs and files.

    Args:
        sources: Ids of runs, "latest", folders of runs, or JSON files of rows.
    """
    runs: list[RunMetadata] = []
    rows_by_kind: dict[str, list[Row]] = {kind: [] for kind in ROW_KINDS}
    units: list[Row] = []
    targets: list[Row] = []
    for source in sources:
        metadata, rows, detail_rows = _read_source(source)
        runs.append(metadata)
        suite_and_model = _find_suite_and_model(metadata)
        for row in rows:
            kind = find_row_kind(row)
            if kind:
                # Rows of contrasts do not name their suite and model, which the run has once for all of them.
                rows_by_kind[kind].append({**suite_and_model, **row} if kind == "groups" else row)
        units += _select_unit_rows(detail_rows, source)
        targets += [{**suite_and_model, **row} for row in _select_target_rows(detail_rows, source)]
    if not any(rows_by_kind.values()):
        if len(runs) == 1 and runs[0].id and runs[0].command:
            which = "the latest run" if sources[0] == LATEST else "the run"
            raise ReportError(
                f"{which}, {runs[0].id}, is of the command {runs[0].command}, which "
                "has no report. `acceptability runs` lists all runs; name another one: acceptability report ID"
            )
        # Rows of another program usually lack one column, which the list of kinds shows.
        kinds = "; ".join(f"{kind}: {', '.join(columns)}" for kind, columns in ROW_KINDS.items())
        raise ReportError(f"{', '.join(sources)}: no row can be shown. Rows need the columns of one kind ({kinds}).")
    unique_rows: dict[str, Any] = {kind: tuple(_drop_duplicates(rows)) for kind, rows in rows_by_kind.items()}
    return ReportData(
        runs=tuple(runs),
        units=tuple(_drop_duplicate_units(units)),
        targets=tuple(_drop_duplicates(targets)),
        **unique_rows,
    )


def collect_rows(rows: Iterable[Row], unit_rows: Iterable[Row] = ()) -> ReportData:
    """Return the data of a report of rows that are in memory.

    Args:
        rows: The rows of results, comparisons or correlations.
        unit_rows: The rows that results are computed from.
    """
    rows_by_kind: dict[str, Any] = {kind: [] for kind in ROW_KINDS}
    for row in rows:
        if kind := find_row_kind(row):
            rows_by_kind[kind].append(row)
    rows_or_columns = unit_rows if isinstance(unit_rows, UnitRows) else list(unit_rows)
    units = _select_unit_rows(rows_or_columns, "the results")
    kinds: dict[str, Any] = {kind: tuple(_drop_duplicates(of_kind)) for kind, of_kind in rows_by_kind.items()}
    return ReportData(units=tuple(_drop_duplicate_units(units)), **kinds)


def find_row_kind(row: Row) -> str | None:
    """Return the kind of a row; None for rows that no figure or table shows.

    >>> find_row_kind({"first": "a", "second": "b", "r": 0.5})
    'correlations'
    """
    return next((kind for kind, columns in ROW_KINDS.items() if all(name in row for name in columns)), None)


def _read_source(source: str) -> tuple[RunMetadata, list[Row], list[Row] | UnitRows]:
    """Return the metadata of a run, its rows, and the rows that these are computed from."""
    path = Path(source)
    if path.is_file():
        return _read_json_file(path)
    # Ids start with the time, so that the last one in the order is the newest. Hidden folders are runs being written.
    known = sorted(run_file.parent.name for run_file in runs_folder().glob("[!.]*/run.json"))
    name = known[-1] if source == LATEST and known else source
    folder = path if (path / "run.json").is_file() else runs_folder() / name
    if not source or not (folder / "run.json").is_file():
        raise UnknownName(
            "run", source, known, hint="`acceptability runs` lists them; a folder or a JSON file can be given too."
        )
    run_content = _load_json(folder / "run.json")
    if not isinstance(run_content, dict):
        raise ReportError(f"{folder / 'run.json'}: expected the metadata of a run, as a command saves it")
    fields = {name: str(run_content.get(name, "")) for name in ("id", "command", "arguments", "made", "version")}
    signatures = run_content.get("signatures", [])
    if not isinstance(signatures, list) or not all(isinstance(signature, str) for signature in signatures):
        raise _make_damage_error(source, "signatures", signatures, "a list of texts")
    inputs = run_content.get("inputs", {})
    if not isinstance(inputs, dict) or not all(isinstance(suite, dict) for suite in inputs.get("suites", [])):
        raise _make_damage_error(source, "inputs", inputs, "what the command was given")
    is_own = folder.resolve().parent == runs_folder().resolve()
    metadata = RunMetadata(**fields, signatures=tuple(signatures), is_own=is_own, folder=folder, inputs=inputs)
    return metadata, _read_rows(folder / "results.json"), _read_unit_rows(folder)


def _read_json_file(path: Path) -> tuple[RunMetadata, list[Row], list[Row]]:
    """Return the metadata and rows of a JSON file: a list of rows, or the output of ``contrasts --json``."""
    content = _load_json(path)
    metadata = RunMetadata(path.name)
    # The only command whose JSON is not a list of rows.
    if isinstance(content, dict) and isinstance(content.get("groups"), list):
        signed_metadata = RunMetadata(path.name, command="contrasts", signatures=(str(content.get("signature", "")),))
        return signed_metadata, _check_rows(content["groups"], path), _check_rows(content.get("contrasts", []), path)
    return metadata, _check_rows(content, path), []


def _read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of a run."""
    # Ids, models and tags repeat in millions of rows; each distinct text is kept in memory once.
    texts: dict[str, str] = {}
    rows = _stream_rows(path) or _check_rows(_load_json(path), path)
    return [{name: _intern_text(cell, texts) for name, cell in row.items()} for row in rows]


def _read_unit_rows(folder: Path) -> list[Row] | UnitRows:
    """Return the rows that the results of a run are computed from."""
    path = find_units_file(folder)
    if path.suffix == ".json":
        return _read_rows(path)
    try:
        return read_unit_columns(path)
    except StoreError as error:
        raise ReportError(str(error)) from error


def _intern_text(cell: Any, texts: dict[str, str]) -> Any:
    return texts.setdefault(cell, cell) if isinstance(cell, str) else cell


def _stream_rows(path: Path) -> Iterator[Row] | None:
    """Return an iterator over rows that have a line each, as in a saved run; None for a file of another layout."""
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as lines:
            # A saved run has one row per line; another JSON file, such as one that was reformatted, is read as a whole.
            is_by_line = next(lines, "").endswith("},\n")
    except (OSError, ValueError) as error:
        raise ReportError(f"cannot read {path}: {error}") from error
    return _read_row_lines(path) if is_by_line else None


def _read_row_lines(path: Path) -> Iterator[Row]:
    # Line by line, since json.load() of a file of gigabytes would take many times its size in memory.
    line_number = 0
    try:
        with path.open(encoding="utf-8", errors="surrogatepass") as lines:
            for line_number, line in enumerate(lines, start=1):
                # A line is a row and a comma; the first and the last one also have a bracket of the list.
                [row] = json.loads(f"[{line.rstrip().removeprefix('[').removesuffix(']').removesuffix(',')}]")
                yield from _check_rows([row], path, line_number)
    except UnicodeDecodeError as error:
        raise ReportError(f"cannot read {path} after line {line_number}: {error}") from error
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot read {path}, line {line_number}: {error}") from error


def _check_rows(content: object, path: Path, first_number: int = 1) -> list[Row]:
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise ReportError(f"{path}: expected a list of rows, as --json prints it")
    for row_number, row in enumerate(content, start=first_number):
        _check_row(row, path, row_number)
    return content


def _check_row(row: Row, path: Path, row_number: int) -> None:
    """Raise an error for a row with a value of the wrong type in a known column."""
    for name, cell in row.items():
        if cell is not None and (expected := _EXPECTED_TYPES.get(name)) and not expected[1](cell):
            where = f"{path}, row {row_number}: {name}"
            raise ReportError(f"{where} is {shorten(repr(cell))}; expected {expected[0]}")


def _select_unit_rows(rows: Sequence[Row] | UnitRows, source: str) -> list[Row]:
    """Return the rows that results are computed from, after a check: identifying columns are texts, others numbers."""
    if isinstance(rows, UnitRows):
        # What one row of a result has, all have: the first one is looked at, and the numbers of all as arrays.
        parts = [part for part in rows.parts if len(part[0])]
        _select_unit_rows([next(iter(UnitRows([part]))) for part in parts], source)
        for units, _ in parts:
            _check_columns(units, source)
        return list(UnitRows([part for part in parts if "model" in part[1]]))
    unit_rows = [row for row in rows if "unit" in row and "model" in row]
    columns: dict[tuple[str, str], list[str]] = {}
    for row in unit_rows:
        tags = [name for name in row if name.startswith("tag/")]
        for name in (*_UNIT_COLUMNS, *tags):
            if not isinstance(row.get(name), str):
                raise _make_damage_error(source, name, row.get(name), "a text")
        number_columns = sorted(set(row) - {*_UNIT_COLUMNS, *tags, "reduction"})
        _check_numbers(row, number_columns, source)
        if row.get("label", 0) not in (0, 1):
            raise _make_damage_error(source, "label", row["label"], "0 or 1")
        # All rows of a measure must have the same columns, since they become arrays.
        expected = columns.setdefault((row["suite"], row["measure"]), number_columns)
        if number_columns != expected:
            raise _make_damage_error(
                source, f"one row of {row['measure']}", number_columns, f"{expected}, as others have"
            )
    return unit_rows


def _check_columns(units: Units, source: str) -> None:
    """Raise an error for a number that no command saves in a run."""
    for name, column in units.columns.items():
        wrong = ~(np.abs(column) < _NUMBER_LIMIT)
        if wrong.any():
            raise _make_damage_error(source, name, float(column[wrong][0]), "a number below 1e100")
        if name == "label" and not np.isin(column, (0, 1)).all():
            raise _make_damage_error(source, name, float(column[~np.isin(column, (0, 1))][0]), "0 or 1")


def _select_target_rows(rows: Sequence[Row] | UnitRows, source: str) -> list[Row]:
    """Return the rows of contrasts with the surprisals of both targets."""
    # Those of the command contrasts, which are no rows of a measure.
    if isinstance(rows, UnitRows):
        return []
    target_rows = [row for row in rows if "better_surprisal_bits" in row]
    for row in target_rows:
        _check_numbers(row, ("better_surprisal_bits", "worse_surprisal_bits"), source)
    return target_rows


def _check_numbers(row: Row, names: Sequence[str], source: str) -> None:
    for name in names:
        if not _is_number(row.get(name)):
            raise _make_damage_error(source, name, row.get(name), "a number below 1e100")


def _make_damage_error(source: str, name: str, value: object, expected: str) -> ReportError:
    """Return the error for a value that no command saves in a run."""
    message = f"the run {source} is damaged: {name} is {shorten(repr(value))}; expected {expected}"
    return ReportError(f"{message}. Run the command again.")


def _load_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
    except (OSError, ValueError, RecursionError) as error:
        raise ReportError(f"cannot read {path}: {error}") from error


def _find_suite_and_model(metadata: RunMetadata) -> dict[str, str]:
    """Return the suite and the model of a run of the command ``contrasts``; empty for other runs."""
    if metadata.command != "contrasts" or not metadata.signatures:
        return {}
    fields = parse_signature(metadata.signatures[0])
    suite = fields.get("suite", "").partition("#")[0].partition("+targets(")[0]
    return {"suite": suite, "model": shorten_model_name(fields.get("model", ""))}


def shorten_model_name(signature: str) -> str:
    """Return a short name for a model from its signature.

    >>> shorten_model_name("ngram:trigram@5732531b85a8(units='split').lp()#target")
    'trigram'
    """
    return signature.partition("(")[0].partition("@")[0].rpartition(":")[2] or signature


def format_model_name(row: Row) -> str:
    """Return the name of a model in figures: with its reduction, unless that is the default one.

    >>> format_model_name({"model": "trigram", "reduction": "slor()"})
    'trigram slor()'
    >>> format_model_name({"model": "trigram", "reduction": "lp()"})
    'trigram'
    """
    return _format_model_name(str(row["model"]), row.get("reduction") or "")


# Asked of each of hundreds of thousands of rows.
@lru_cache(maxsize=1024)
def _format_model_name(name: str, reduction: str) -> str:
    return name.removesuffix(" lp()") if reduction in ("", "lp()", "log_odds()") else f"{name} {reduction}"


def _drop_duplicates(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows without repetition."""
    # Two runs may have computed the same, and a model would be drawn twice.
    seen: set[str] = set()
    for row in rows:
        # Rows are mappings, which cannot be members of a set; their JSON can.
        key = json.dumps(row, sort_keys=True, default=str)
        if key not in seen:
            seen.add(key)
            yield row


def _drop_duplicate_units(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the first row for each combination of model, measure and unit."""
    # By what identifies them: comparing whole rows, as _drop_duplicates does, would take minutes for millions of rows.
    seen: set[tuple[object, ...]] = set()
    for row in rows:
        key = (row.get("suite"), row.get("measure"), format_model_name(row), row["unit"])
        if key not in seen:
            seen.add(key)
            yield row


class SurprisalSpan(NamedTuple):
    """A token of a sentence, as a range of characters, with its surprisal under a model.

    Args:
        is_unknown: Whether it is not in the model's vocabulary.
    """

    start: int
    end: int
    surprisal_bits: float
    is_unknown: bool = False


def attach_suites(report_data: ReportData, known_suites: Sequence[Suite] = ()) -> ReportData:
    """Return the data with the suites of its rows; for a suite that is not found, a note is added.

    Args:
        known_suites: Suites that are loaded already. Others were saved with the run, or are in the catalog; those of
            older runs are searched for among the arguments of the user's own commands.
    """
    suites: dict[str, Suite] = {}
    notes: list[str] = []
    for name, signature in _find_suite_signatures(report_data).items():
        # A run from a stranger could name any file of the user's, or a data set of the Hub.
        argument_words = [word for run in report_data.runs if run.is_own for word in _split_arguments(run.arguments)]
        suite = next(filter(None, (find_part(known, signature) for known in known_suites)), None)
        # What the run itself holds comes before any file, which may have changed or gone since.
        suite = suite or next(filter(None, (run.load_suite(signature) for run in report_data.runs)), None)
        suite = suite or next(
            filter(None, (find_part(found, signature) for found in _iterate_candidates(name, argument_words))), None
        )
        if suite is None:
            notes.append(
                f"The sentences of {name} are not shown: the suite of the run ({signature}) was not found. "
                "Name its file with --suite."
            )
        else:
            suites[name] = suite
    return replace(report_data, suites=suites, notes=(*report_data.notes, *notes))


def _find_suite_signatures(report_data: ReportData) -> dict[str, str]:
    """Return the signatures of the suites of the rows, by the name of the suite."""
    signed = [parse_signature(signature).get("suite", "") for signature in report_data.signatures]
    # A suite with targets was derived from another one, and cannot be loaded by a name.
    return {suite.rpartition("#")[0]: suite for suite in signed if "#" in suite and "+targets(" not in suite}


def _split_arguments(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    # The arguments of a foreign run may have an unclosed quotation mark.
    except ValueError:
        return []


def _iterate_candidates(name: str, argument_words: Iterable[str]) -> Iterator[Suite]:
    # The name is from a row, and so perhaps a stranger's too: it may be that of a suite of the catalog, and no path.
    entries = find_entries(name)
    from_catalog = [name] if entries and not any(map(is_plugin_suite, entries)) else []
    for word in dict.fromkeys((*from_catalog, *argument_words)):
        # Only words that may be a path of the suite: others, such as models, would be looked up in vain.
        if name in word:
            try:
                yield load_suite(word)
            except AcceptabilityError:
                # Not a suite, or one that is not on this machine; the next word may be it.
                continue


def read_stored_tokens(
    suite: Suite, sentences: Sequence[Sentence], models: Mapping[str, str]
) -> dict[str, dict[str, list[SurprisalSpan]]]:
    """Return the stored tokens of sentences, by model and sentence id; no model is run.

    Args:
        models: From names of models to their signatures in results, which end in the signature of a reduction.
    """
    # Opening the store would create it.
    if not (home_folder() / "scores.sqlite").is_file() or not sentences:
        return {}
    sub_suite = Suite(suite.name, tuple(sentences))
    queries = SuiteQueries(sub_suite)
    tokens_by_model: dict[str, dict[str, list[SurprisalSpan]]] = {}
    with ScoreStore() as store:
        # The longest first: the signature of one model may be a prefix of another's.
        keys = sorted(
            (key for key in store.list_keys() if key.is_current), key=lambda key: len(key.model), reverse=True
        )
        for name, signature in models.items():
            key = next((key for key in keys if signature.startswith(f"{key.model}.")), None)
            if key is None:
                continue
            stored_outputs = store.iter_known(key.model, queries.keys, queries.text_at, device=key.device)
            tokens_by_model[name] = dict(_iterate_sentence_tokens(sub_suite, queries, stored_outputs))
    return {name: tokens for name, tokens in tokens_by_model.items() if tokens}


def _iterate_sentence_tokens(
    suite: Suite, queries: SuiteQueries, stored_outputs: Iterable[tuple[int, ModelOutput]]
) -> Iterator[tuple[str, list[SurprisalSpan]]]:
    for query_index, output in stored_outputs:
        if isinstance(output, TokenScores):
            bits = (-output.logprobs / math.log(2)).tolist()
            unknown = output.unknown or ()
            tokens = [
                SurprisalSpan(start, end, value, position in unknown)
                for position, ((start, end), value) in enumerate(zip(output.offsets, bits, strict=True))
            ]
            for sentence_index in queries.sentence_indices(query_index):
                yield suite.sentences[sentence_index].id, tokens
