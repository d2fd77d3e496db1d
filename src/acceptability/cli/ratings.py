"""``acceptability ratings``: from people's answers to ratings, with their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, print_json, print_rows, read_columns, talk
from acceptability.errors import SpellingError
from acceptability.people import Responses, Rules, rate, read_responses
from acceptability.people.choices import choice_rows, overall, read_choices
from acceptability.people.outliers import load_outliers
from acceptability.people.overview import Row, agreement_rows, ceiling_rows, reliability_rows
from acceptability.people.writing import rating_rows
from acceptability.report.rows import check_rows_file, write_rows
from acceptability.store.scorefile import read_scores
from acceptability.suites import load_suite


def command(
    file: Annotated[str, typer.Argument(help="CSV, TSV, JSONL or Parquet with people's answers, or a suite.")],
    kind: Annotated[str, typer.Option("--kind", help="The answers: magnitude, likert, yes-no or choice.")],
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="Which column means what: participant=…,sentence=…,response=…[,label=…]"),
    ] = None,
    raters: Annotated[
        str, typer.Option("--raters", help="For a file with a row a sentence: the participants' columns, as rater_*.")
    ] = "",
    suite: Annotated[
        str | None, typer.Option("--suite", help="The suite that was asked about, by sentence id or text.")
    ] = None,
    other: Annotated[
        str, typer.Option("--other", help="An answer neither yes nor no is: refuse (an error), no, or missing.")
    ] = "refuse",
    scale: Annotated[
        str, typer.Option("--scale", help="z (within participants) or raw; default z, and raw for yes-no.")
    ] = "",
    outliers: Annotated[
        str, typer.Option("--outliers", help="none, sd(3) or mad(3.5); over participants, or over='sentence'.")
    ] = "none",
    least_responses: Annotated[
        int, typer.Option("--least-responses", help="Leave out participants with fewer answers.")
    ] = 1,
    least_catch: Annotated[
        float, typer.Option("--least-catch", help="Leave out participants with a smaller share of catch items right.")
    ] = 0.0,
    splits: Annotated[int, typer.Option("--splits", help="How many random halves make the split-half value.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the halves.")] = 0,
    scores: Annotated[
        Path | None, typer.Option("--scores", help="Scores of models (sentence_id, score), set against the ceiling.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Write the ratings here, as a suite: .csv, .tsv or .jsonl.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Make ratings of people's answers: means with intervals, reliability, and agreement with labels."""
    if out:
        check_rows_file(out)
    if kind == "choice":
        if raters or suite or scores or scale or outliers != "none" or least_responses > 1 or least_catch:
            raise SpellingError("--kind choice takes --columns, --out and --json; the other options are for ratings")
        _choices(file, columns, out, as_json)
        return
    rules = Rules(
        scale=scale,
        outliers=load_outliers(outliers),
        least_responses=least_responses,
        least_catch=least_catch,
    )
    asked = load_suite(suite) if suite else None
    responses = read_responses(file, kind=kind, columns=read_columns(columns), raters=raters, suite=asked, other=other)
    ratings = rate(responses, rules)
    given = read_scores(scores, ratings.suite()) if scores else []
    parts = {
        "ratings": rating_rows(ratings),
        "reliability": reliability_rows(ratings, splits=splits, seed=seed),
        "agreement": agreement_rows(responses) if _has_labels(responses) else [],
        "ceiling": ceiling_rows(ratings, given, splits=splits, seed=seed),
    }
    _show(parts, out, as_json, ratings.notes, left_out=ratings.left_out)


def _choices(file: str, columns: str | None, out: Path | None, as_json: bool) -> None:
    found = read_choices(file, columns=read_columns(columns))
    notes = (*found.notes, "intervals at 0.95: exact binomial; p: sign test, two-sided")
    _show({"pairs": choice_rows(found), "overall": [overall(found)]}, out, as_json, notes)


def _show(parts: dict[str, list[Row]], out: Path | None, as_json: bool, notes: Sequence[str], **more: object) -> None:
    """Write the first part to a file, if one is named, and print everything else."""
    first, *_ = parts
    if out:
        write_rows(out, parts[first])
        talk(f"{len(parts[first])} {first} written to {out}")
    if as_json:
        print_json({**parts, **more, "notes": list(notes)})
        return
    for name, rows in parts.items():
        if rows and not (out and name == first):
            names = list(dict.fromkeys(column for row in rows for column in row))
            print_rows(names, [{column: _shown(row.get(column)) for column in names} for row in rows])
    for note in notes:
        talk(note)


def _shown(cell: object) -> object:
    return f"{cell:.4f}" if isinstance(cell, float) else cell


def _has_labels(responses: Responses) -> bool:
    return responses.kind == "yes-no" and any(each.label is not None for each in responses.sentences)
