"""Reproduction: results computed again from their signatures, and whether the numbers are the same.

A signature names the suite, the model, the measure, the interval and the version; ``reproduce`` finds them, computes
the result, and compares it with the number in the saved run that has this signature, or with one that the user gives.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptability import __version__
from acceptability.api.interface.arguments import check_list
from acceptability.api.recomputation import Materials, MissingInputs, NotReproducible, Recomputation, Row, SavedInputs
from acceptability.api.scoring import ProgressCallback
from acceptability.errors import AcceptabilityError, SpecError, UnknownName
from acceptability.protocols import Engine
from acceptability.specs import SHORT_DIGITS, parse_signature, shorten_signature
from acceptability.store.runs import LATEST, SavedRun, find_run, list_saved_runs, read_result_rows, runs_folder
from acceptability.suites.table_files import parse_table_options

EQUAL, ROUNDED, DIFFERENT = "equal", "equal within rounding", "different"
COMPUTED, MISSING, UNSUPPORTED = "computed", "missing", "not reproducible"

# Another processor or library adds numbers in another order. More than this is no rounding, and would show in a table.
_ROUNDING = 1e-6
# What a printed number is of, by kind: the first of these columns that a row has.
_VALUE_COLUMNS = ("value", "difference", "r", "morcela", "slln_lp", "directionality", "ours", "mean", "score")
_PRINTED_COLUMNS = ("low", "high")
_NUMBER = re.compile(r"[-+−]?\d*\.?\d+(?:e[-+]?\d+)?", re.IGNORECASE)
_SHORT_FORM = re.compile(rf"[0-9a-f]{{{SHORT_DIGITS}}}\Z")


@dataclass(frozen=True)
class Reproduction:
    """A result that was computed again.

    Args:
        signature: The signature that was given.
        status: "equal", "equal within rounding", "different", "computed" (there is no number to compare with),
            "missing" (something that the signature names is not here), or "not reproducible" (a kind of result whose
            signature does not suffice).
        rows: The rows that were computed; one for most kinds of results.
        expected: The rows that they were compared with.
        differences: A line for each number that differs, or what is missing, or what to run instead.
        notes: What else differs, such as the version.
        run: The id of the saved run with the expected rows; empty if there is none.
    """

    signature: str
    status: str
    rows: tuple[Row, ...] = ()
    expected: tuple[Row, ...] = ()
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    run: str = ""

    @property
    def is_same(self) -> bool:
        """Whether the numbers are the same, but for rounding."""
        return self.status in (EQUAL, ROUNDED)

    def row(self) -> dict[str, object]:
        """Return the reproduction as one flat row, for JSON and tables."""
        fields = parse_signature(self.signature)
        name, value = find_value(self.rows[0]) if self.rows else ("", None)
        numbers = self.rows[0] if self.rows else {}
        expected = self.expected[0].get(name) if self.expected and name else None
        return {
            "short": shorten_signature(self.signature),
            "measure": fields["measure"],
            "suite": fields.get("suite", "").rpartition("#")[0],
            "group": fields.get("group") or fields.get("table"),
            "status": self.status,
            "expected": expected,
            "value": value,
            "low": numbers.get("low"),
            "high": numbers.get("high"),
            "n": numbers.get("n"),
            "rows": len(self.rows),
            "differences": list(self.differences),
            "notes": list(self.notes),
            "run": self.run,
            "signature": self.signature,
        }


@dataclass(frozen=True)
class _Request:
    """A signature with the numbers that it is to be compared with."""

    signature: str
    expected: tuple[Row, ...] = ()
    run: str = ""


def reproduce(
    signature: str,
    *,
    expected: str | Mapping[str, object] | Sequence[Row] | None = None,
    models: Sequence[str] = (),
    data: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    reading: Mapping[str, Any] | None = None,
    look_in: Sequence[Path | str] = (),
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Reproduction]:
    """Return results computed again from their signatures, with whether the numbers are the same.

    Args:
        signature: A full signature; its short form, which is looked up among saved runs; or a run, by its id, its
            folder, or "latest", for all of its results.
        expected: The number to compare with: as it was printed, such as ``"0.6488"`` or ``"0.6488 [0.5992, 0.6984]"``,
            or the columns of a row. By default that of the newest saved run with this signature.
        models: Specs of models, if a model of the signature is elsewhere, or on a server.
        data: Files, such as tables and scores, if they are elsewhere.
        columns: The columns of these files by their meaning.
        reading: What else the suites among them do not say themselves, as for ``load_suite``: ``{"sheet": "Items"}``.
        look_in: Folders in which models and files may lie.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.

    >>> from acceptability import evaluate
    >>> result = evaluate("starter", ["uniform"], measure=["PairAccuracy"])[0]
    >>> reproduce(result.signature, expected={"value": result.value, "low": result.low, "high": result.high})[0].status
    'equal'
    """
    for name, given in (("models", models), ("data", data), ("look_in", look_in)):
        check_list(name, given)
    requests, runs = _find_requests(signature)
    if expected is not None:
        if len(requests) != 1:
            raise SpecError(
                f"{signature} has {len(requests)} results: give the signature of one with the expected value"
            )
        requests = [_Request(requests[0].signature, _parse_expected(expected, requests[0].signature))]
    options = parse_table_options({**(reading or {}), "columns": columns or {}})
    materials = Materials(models, data, options, [Path(folder) for folder in look_in], runs, engine, progress)
    recomputation = Recomputation(materials)
    return [_reproduce_request(request, recomputation) for request in requests]


def find_value(row: Row) -> tuple[str, object]:
    """Return the column of a row that holds its main number, and the number.

    >>> find_value({"first": "a", "second": "b", "r": 0.5})
    ('r', 0.5)
    """
    name = next((name for name in _VALUE_COLUMNS if name in row), "")
    return name, row.get(name)


def _find_requests(text: str) -> tuple[list[_Request], list[SavedInputs]]:
    """Return the signatures that a text stands for, each with the saved rows, and what their runs were given."""
    # Copied out of a table or a paper, it may have spaces around it.
    text = text.strip()
    if "|" in text:
        found = _find_signature(lambda signature: signature == text)
        return ([_make_request(text, *found)], [_list_inputs(*found)]) if found else ([_Request(text)], [])
    if run_and_folder := find_run(text):
        run, folder = run_and_folder
        if not run.signatures:
            raise SpecError(f"the run {run.id} has no results with signatures; run its command again: {run.arguments}")
        return [_make_request(one, run, folder) for one in dict.fromkeys(run.signatures)], [_list_inputs(run, folder)]
    if _SHORT_FORM.match(text) and (found := _find_signature(lambda one: shorten_signature(one) == text)):
        run, folder = found
        signature = next(one for one in run.signatures if shorten_signature(one) == text)
        return [_make_request(signature, run, folder)], [_list_inputs(run, folder)]
    known = [run.id for run in list_saved_runs()[0]]
    raise UnknownName(
        "signature or run",
        text,
        [*known, LATEST],
        hint=f"Give a whole signature, the {SHORT_DIGITS} digits of its short form, or a run (`acceptability runs`).",
    )


def _find_signature(is_wanted: Callable[[str], bool]) -> tuple[SavedRun, Path] | None:
    """Return the newest saved run with a signature that is wanted, and its folder."""
    runs, _ = list_saved_runs()
    newest = next((run for run in reversed(runs) if any(map(is_wanted, run.signatures))), None)
    return (newest, newest.folder) if newest else None


def _make_request(signature: str, run: SavedRun, folder: Path) -> _Request:
    return _Request(signature, tuple(read_result_rows(folder, run, signature)), run.id)


def _list_inputs(run: SavedRun, folder: Path) -> SavedInputs:
    return SavedInputs(folder, run.inputs, folder.parent.resolve() == runs_folder().resolve())


def _parse_expected(expected: str | Mapping[str, object] | Sequence[Row], signature: str) -> tuple[Row, ...]:
    """Return the rows that a user expects; printed numbers are kept as texts, with their decimals."""
    if isinstance(expected, Mapping):
        return (expected,)
    if not isinstance(expected, str):
        return tuple(expected)
    numbers = _NUMBER.findall(expected.replace("…", " "))
    if not 1 <= len(numbers) <= 1 + len(_PRINTED_COLUMNS):
        raise SpecError(
            f"the expected value is {expected!r}: give a number, or a number and the ends of its interval, such as "
            "'0.6488 [0.5992, 0.6984]'"
        )
    return (dict(zip(("value", *_PRINTED_COLUMNS), numbers, strict=False)),)


def _reproduce_request(request: _Request, recomputation: Recomputation) -> Reproduction:
    signature, notes = request.signature, _compare_versions(request.signature)
    try:
        _check_version(signature)
        if problems := recomputation.list_problems(signature):
            raise MissingInputs(problems)
        rows = tuple(recomputation.compute_rows(signature))
        if not rows:
            raise MissingInputs(
                [f"nothing has the {parse_signature(signature).get('group') or 'table'} of the signature"]
            )
    except NotReproducible as error:
        return Reproduction(signature, UNSUPPORTED, differences=(str(error),), notes=notes, run=request.run)
    except MissingInputs as error:
        return Reproduction(signature, MISSING, differences=error.problems, notes=notes, run=request.run)
    except AcceptabilityError as error:
        return Reproduction(signature, MISSING, differences=(str(error),), notes=notes, run=request.run)
    changed = _compare_fields(signature, rows[0])
    if not request.expected:
        status = DIFFERENT if changed else COMPUTED
        return Reproduction(signature, status, rows, differences=changed, notes=notes)
    status, differences = _compare_rows(request.expected, rows)
    if changed and not differences:
        status = DIFFERENT
    return Reproduction(signature, status, rows, request.expected, (*differences, *changed), notes, request.run)


def _compare_rows(expected: Sequence[Row], rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    """Return the status of a reproduction, and a line for each number that differs."""
    if len(expected) != len(rows):
        return DIFFERENT, (f"{len(rows)} rows, and not {len(expected)}",)
    differences, is_rounded, is_any_compared = [], False, False
    for before, now in zip(expected, rows, strict=True):
        value_column, _ = find_value(now)
        for name, old in before.items():
            column = value_column if name == "value" and name not in now else name
            if column not in now or not _is_compared(column, old, now[column]):
                continue
            new, is_any_compared = now[column], True
            if old == new:
                continue
            if _is_equal_within_rounding(old, new):
                is_rounded = True
            else:
                differences.append(f"{_name_row(now)}{column} is {_format(new)}, and was {_format(old)}")
    if differences:
        return DIFFERENT, tuple(differences)
    if not is_any_compared:
        # Nothing that differs would else mean that all is equal.
        return DIFFERENT, (f"none of the numbers to compare with is one of these: {', '.join(rows[0])}",)
    return (ROUNDED if is_rounded else EQUAL), ()


def _is_compared(column: str, old: object, new: object) -> bool:
    """Tell whether a column holds numbers; of texts, only a paper's numbers that are texts in ours too count."""
    if column == "ours":
        return True
    values = (old, new)
    # A number that is undefined on one side only is a difference. Printed numbers are texts, beside a number of ours.
    return all(value is None or isinstance(value, int | float) for value in values) or (
        isinstance(old, str) and isinstance(new, int | float) and bool(_NUMBER.fullmatch(old))
    )


def _is_equal_within_rounding(old: object, new: object) -> bool:
    if isinstance(old, str) and isinstance(new, int | float) and _NUMBER.fullmatch(old):
        # Half a unit of the last printed digit, and what binary fractions are off by.
        decimals = len(old.lower().partition("e")[0].partition(".")[2])
        return abs(float(old.replace("−", "-")) - new) <= 0.5 * 10.0**-decimals + 1e-12
    if not (isinstance(old, int | float) and isinstance(new, int | float)):
        return False
    return math.isclose(old, new, rel_tol=_ROUNDING, abs_tol=_ROUNDING)


def _name_row(row: Row) -> str:
    """Return what distinguishes a row from others of the same signature, for a message."""
    names = ("first", "second", "group", "row", "column", "sentence_id", "name", "when", "bins", "bin")
    words = [str(row[name]) for name in names if row.get(name) is not None]
    return f"{' '.join(words)}: " if words else ""


def _format(number: object) -> str:
    return "undefined" if number is None else f"{number:.8g}" if isinstance(number, float) else str(number)


def _compare_fields(signature: str, row: Row) -> tuple[str, ...]:
    """Return a line for each field in which the signature of the new result differs, but for the version."""
    signed = row.get("signature")
    if not isinstance(signed, str):
        return ()
    before, now = parse_signature(signature), parse_signature(signed)
    # A signature of the version before may lack a field; what both have must agree. The path of a table of unigrams is
    # in the name of the model's scores, and its hash is compared when the table is found.
    return tuple(
        f"{name} is {now[name]} now, and {value} in the signature"
        for name, value in before.items()
        if name in now
        and name not in ("acceptability", "model", "models", "reduction", "test", "ci")
        and now[name] != value
    )


def _compare_versions(signature: str) -> tuple[str, ...]:
    version = parse_signature(signature).get("acceptability", __version__)
    if version == __version__:
        return ()
    return (f"the signature is of acceptability {version}, and this is {__version__}",)


def _check_version(signature: str) -> None:
    """Raise an error for a signature of a later version, whose fields may mean something else."""
    fields = parse_signature(signature)
    version = fields.get("acceptability")
    if version is None or not re.match(r"\d+(\.\d+)*", version):
        raise MissingInputs([f"the signature has no version of acceptability that is known: {version or 'none'}"])
    if _split_version(version) > _split_version(__version__):
        raise MissingInputs([f"acceptability {version} is later than this one, {__version__}: update the package"])


def _split_version(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])
