"""``acceptability ratings``: ratings from the responses of participants, with their reliability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.rating_tables import (
    RatingTables,
    ResponseOptions,
    ScoreFile,
    build_choice_tables,
    build_rating_tables,
)
from acceptability.cli.console import (
    Display,
    JsonOption,
    PartialOption,
    WhereOption,
    print_json,
    print_message,
    print_notes,
    print_signatures,
    print_table,
    read_columns,
    read_where,
    record_run,
    with_display,
)
from acceptability.errors import SpecError
from acceptability.report.display_names import NumberFormat
from acceptability.report.text_table import TextTable, make_table
from acceptability.store.runs import RunInputs, SuiteInput
from acceptability.suites import load_suite
from acceptability.suites.table_files import is_table_file
from acceptability.text.io import check_rows_file, write_rows


@with_display
def command(
    file: Annotated[
        str, typer.Argument(help="A CSV, TSV, JSONL or Parquet file of responses, or a suite with responses.")
    ],
    kind: Annotated[str, typer.Option("--kind", help="The kind of responses: magnitude, likert, yes-no or choice.")],
    columns: Annotated[
        str | None,
        typer.Option(
            "--columns",
            help="The columns by meaning, MEANING=COLUMN,…: participant, sentence, response, and optionally label.",
        ),
    ] = None,
    raters: Annotated[
        str,
        typer.Option(
            "--raters", help="For a file with a row per sentence: the columns of participants, such as rater_*."
        ),
    ] = "",
    suite: Annotated[
        str | None,
        typer.Option("--suite", help="The suite of the sentences, which are matched by id or text."),
    ] = None,
    other: Annotated[
        str,
        typer.Option(
            "--other", help="What a response other than yes or no counts as: refuse (an error), no, or missing."
        ),
    ] = "refuse",
    scale: Annotated[
        str,
        typer.Option("--scale", help="z (standardised within participants) or raw. Default: z, but raw for yes-no."),
    ] = "",
    outliers: Annotated[
        str,
        typer.Option(
            "--outliers",
            help="The outlier rule: none, sd(3) or mad(3.5), over participants, or sentences: sd(3, over='sentence').",
        ),
    ] = "none",
    min_responses: Annotated[
        int, typer.Option("--min-responses", help="Exclude participants with fewer responses.")
    ] = 1,
    min_catch: Annotated[
        float,
        typer.Option("--min-catch", help="Exclude participants who got a smaller share of the catch items right."),
    ] = 0.0,
    splits: Annotated[
        int, typer.Option("--splits", help="The number of random splits for the split-half reliability.")
    ] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the random splits.")] = 0,
    scores: Annotated[
        Path | None,
        typer.Option("--scores", help="A file of model scores (sentence_id, score) to compare with the noise ceiling."),
    ] = None,
    score_columns: Annotated[
        str | None,
        typer.Option("--score-columns", help="The columns of the file of scores: id=…,score=… [,text=…,model=…]."),
    ] = None,
    partial: PartialOption = False,
    where: WhereOption = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Write the ratings, as a suite: .csv, .tsv or .jsonl."),
    ] = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Turn responses into ratings: means with intervals, reliability, and agreement with labels."""
    if out:
        check_rows_file(out)
    if kind == "choice":
        # Choices between two sentences are counted by pair, and give no ratings that these options could apply to.
        if (
            raters
            or suite
            or scores
            or score_columns
            or partial
            or where
            or scale
            or outliers != "none"
            or min_responses > 1
            or min_catch
        ):
            raise SpecError("--kind choice takes --columns, --out and --json; the other options are for ratings")
        _print_choices(file, columns, out, as_json, display)
        return
    if (score_columns or partial or where) and not scores:
        raise SpecError("--score-columns, --partial and --where are for comparing model scores: add --scores")
    score_file = None
    if scores:
        score_file = ScoreFile(scores, read_columns(score_columns), partial, read_where(where))
    options = ResponseOptions(
        kind, read_columns(columns), raters, other, scale, outliers, min_responses, min_catch, splits, seed
    )
    loaded = load_suite(suite) if suite else None
    tables = build_rating_tables(file, options, suite=loaded, scores=score_file)
    _print_tables(tables, out, as_json, display, left_out=tables.left_out)
    given = [SuiteInput(loaded, suite)] if loaded and suite else []
    _record(tables, file, given, columns=[options.columns], scores=scores)


def _print_choices(file: str, columns: str | None, out: Path | None, as_json: bool, display: Display) -> None:
    tables = build_choice_tables(file, read_columns(columns))
    _print_tables(tables, out, as_json, display)
    _record(tables, file, [], columns=[read_columns(columns)])


def _record(
    tables: RatingTables,
    file: str,
    suites: Sequence[SuiteInput],
    *,
    columns: Sequence[Mapping[str, str]],
    scores: Path | None = None,
) -> None:
    # The answers themselves are not copied: they may be personal data, and deleting the file should remove every copy.
    files = [Path(file)] * is_table_file(file) + ([scores] if scores else [])
    record_run("ratings", tables.rows(), [tables.signature], inputs=RunInputs(suites, files=files, columns=columns))


def _print_tables(rated: RatingTables, out: Path | None, as_json: bool, display: Display, **more: object) -> None:
    """Write the first table to a file, if one is given, and print the others.

    Args:
        more: Further entries of the JSON output.
    """
    # The first table, the ratings or the pairs, is the one that --out writes.
    tables = rated.tables
    first, *_ = tables
    if out:
        write_rows(out, tables[first])
        print_message(f"{len(tables[first])} {first} written to {out}")
    if as_json:
        print_json({**tables, **more, "notes": list(rated.notes), "signature": rated.signature})
        return
    style = NumberFormat(display.style.digits)
    # What was written to a file need not fill the terminal.
    shown = {name: rows for name, rows in tables.items() if rows and not (out and name == first)}
    print_table(*(_build_table(name, rows, style) for name, rows in shown.items()))
    print_notes(rated.notes)
    print_signatures([rated.signature], display)


def _build_table(title: str, rows: Sequence[Mapping[str, object]], style: NumberFormat) -> TextTable:
    """Return rows as a table, with an interval in one column."""
    names = list(dict.fromkeys(column for row in rows for column in row))
    with_interval = {"low", "high"} <= set(names)
    header = [("95 % interval" if name == "low" else name) for name in names if not (with_interval and name == "high")]

    def format_cell(row: Mapping[str, object], name: str) -> object:
        if name == "95 % interval":
            low, high = row.get("low"), row.get("high")
            return style.interval(low, high) if isinstance(low, float) and isinstance(high, float) else ""
        cell = row.get(name)
        return style.number(cell) if isinstance(cell, float) else cell

    cells = [[format_cell(row, name) for name in header] for row in rows]
    return make_table([name.replace("_", " ") for name in header], cells, title)
