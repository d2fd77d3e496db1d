"""``acceptability reproduce``: a result computed again from its signature, and whether the number is the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from acceptability.api.reproduction import (
    COMPUTED,
    DIFFERENT,
    UNSUPPORTED,
    Reproduction,
    find_value,
    reproduce,
)
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    Display,
    EngineOption,
    JsonOption,
    SuiteReading,
    complete_model_specs,
    load_cli_engine,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    show_progress,
    with_display,
    with_reading_options,
)
from acceptability.errors import SpecError
from acceptability.report.display_names import NumberFormat, name_group, name_measure
from acceptability.report.text_table import make_table
from acceptability.specs import parse_signature, shorten_signature

# Exit code 2 is left to command-line errors. With several results, the first status in this order that occurs decides.
_EXIT_CODES = {"missing": 1, DIFFERENT: 3, COMPUTED: 4, UNSUPPORTED: 4}


@with_display
@with_reading_options(without=("unit", "marks"))
def command(
    signature: Annotated[
        str,
        typer.Argument(
            metavar="SIGNATURE|RUN",
            help="A signature, its short form, or a run: an id (see `acceptability runs`), latest, or a folder.",
        ),
    ],
    expect: Annotated[
        str | None,
        typer.Option(
            "--expect",
            help="The printed number to compare with, such as '0.6488 [0.5992, 0.6984]', or a JSON file of rows. "
            "Default: that of the saved run with this signature.",
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="Where a model of the signature is: KIND:PATH(option=value). Repeatable."),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option("--data", help="Where a file of the signature is: a suite, scores, unigrams. Repeatable."),
    ] = None,
    reading: SuiteReading = DEFAULT_READING,
    look_in: Annotated[
        list[Path] | None,
        typer.Option("--look-in", help="A folder in which models and files may lie. Repeatable."),
    ] = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Compute a result again from its signature, and say whether the number is the same.

    Exit status: 0 if all numbers are the same, perhaps but for rounding; 1 if something is missing or wrong; 3 if a
    number differs; 4 if there is no number to compare with, or the signature of this kind of result does not suffice.
    """
    with show_progress() as progress:
        reproductions = reproduce(
            signature,
            expected=_read_expected(expect, signature),
            models=complete_model_specs(model),
            data=data or (),
            columns=reading.table.columns,
            reading={name: value for name, value in reading.table.describe().items() if name != "columns"},
            look_in=look_in or (),
            engine=load_cli_engine(engine, address),
            progress=progress,
        )
    if as_json:
        print_json([reproduction.row() for reproduction in reproductions])
    else:
        _print_reproductions(reproductions, display)
    statuses = {reproduction.status for reproduction in reproductions}
    code = next((code for status, code in _EXIT_CODES.items() if status in statuses), 0)
    if code:
        raise typer.Exit(code)


def _read_expected(expect: str | None, signature: str) -> Any:
    """Return the expected number as it was printed, or the rows in a JSON file that have the signature."""
    if expect is None or not expect.lower().endswith(".json"):
        return expect
    try:
        rows = json.loads(Path(expect).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SpecError(f"--expect {expect}: {error}") from error
    if isinstance(rows, dict) and isinstance(rows.get("sentences"), list):
        # What ``judge`` prints: one signature for all sentences.
        rows = [dict(row, signature=rows.get("signature")) for row in rows["sentences"] if isinstance(row, dict)]
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise SpecError(f"--expect {expect}: expected a list of rows, as --json prints it")
    wanted = [row for row in rows if _has_signature(row, signature.strip())]
    if not wanted:
        raise SpecError(f"--expect {expect}: none of its {len(rows)} rows has this signature")
    return wanted


def _has_signature(row: dict[str, object], text: str) -> bool:
    signature = str(row.get("signature", ""))
    return text in (signature, shorten_signature(signature))


def _print_reproductions(reproductions: Sequence[Reproduction], display: Display) -> None:
    header = ["short form", "what", "again", "95 % interval", "n", "result"]
    print_table(make_table(header, [_list_cells(one, display.style) for one in reproductions], keys=2))
    counts = Counter(reproduction.status for reproduction in reproductions)
    lines = [f"{shorten_signature(one.signature)}: {line}" for one in reproductions for line in one.differences]
    lines += [note for reproduction in reproductions for note in reproduction.notes]
    lines.append(", ".join(f"{count} {status}" for status, count in counts.items()))
    if counts[COMPUTED]:
        lines.append("nothing to compare with: no saved run has this signature. Give the number: --expect NUMBER")
    print_notes(lines)
    print_signatures((reproduction.signature for reproduction in reproductions), display)


def _list_cells(reproduction: Reproduction, style: NumberFormat) -> list[str]:
    """Return the cells of a reproduction; of several rows, only their number."""
    fields = parse_signature(reproduction.signature)
    group = fields.get("group")
    parts = name_measure(fields["measure"]), name_group(group) if group else "", fields.get("table")
    rows, row_style = reproduction.rows, style.of_measure(fields["measure"])
    if len(rows) != 1:
        numbers = ["" if not rows else f"{len(rows)} rows", "", fields.get("n", "")]
    else:
        low, high = (rows[0].get(end) for end in ("low", "high"))
        interval = row_style.interval(low, high) if isinstance(low, float) and isinstance(high, float) else "–"
        numbers = [_format_value(find_value(rows[0])[1], row_style), interval, str(rows[0].get("n", ""))]
    return [
        shorten_signature(reproduction.signature), ", ".join(filter(None, parts)), *numbers, reproduction.status
    ]  # fmt: skip


def _format_value(value: object, style: NumberFormat) -> str:
    if isinstance(value, str):
        return value
    return style.number(float(value) if isinstance(value, int | float) else None)
