"""``acceptability ratings``: ratings from the responses of participants, with their reliability."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.console import (
    JsonOption,
    PartialOption,
    WhereOption,
    print_json,
    print_message,
    print_rows,
    read_columns,
    read_where,
)
from acceptability.errors import SpecError
from acceptability.people import RatingRules, Responses, rate, read_responses
from acceptability.people.choices import build_choice_rows, read_choices, summarise_choices
from acceptability.people.ratings import build_rating_rows, parse_outlier_rule
from acceptability.people.reliability import (
    SummaryRow,
    build_agreement_rows,
    build_ceiling_rows,
    build_reliability_rows,
)
from acceptability.store.scorefile import read_scores
from acceptability.suites import load_suite
from acceptability.text.io import check_rows_file, write_rows


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
        Path | None, typer.Option("--out", help="Write the ratings to this .csv, .tsv or .jsonl file, as a suite.")
    ] = None,
    as_json: JsonOption = False,
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
        _print_choices(file, columns, out, as_json)
        return
    if (score_columns or partial or where) and not scores:
        raise SpecError("--score-columns, --partial and --where are for comparing model scores: add --scores")
    tags = read_where(where)
    rules = RatingRules(
        scale=scale,
        outliers=parse_outlier_rule(outliers),
        min_responses=min_responses,
        min_catch=min_catch,
    )
    rated_suite = load_suite(suite) if suite else None
    responses = read_responses(
        file, kind=kind, columns=read_columns(columns), raters=raters, suite=rated_suite, other=other
    )
    ratings = rate(responses, rules)
    # The ids and texts of the scores are checked against the rated sentences.
    rated_sentences = ratings.to_suite()
    model_scores = (
        read_scores(scores, rated_sentences, [read_columns(score_columns)], partial=partial, where=tags)
        if scores
        else []
    )
    # Only the comparison is restricted: answers are standardised over all that a participant gave.
    compared = ratings.restrict(rated_sentences.filter(**tags).by_id)
    tables = {
        "ratings": build_rating_rows(ratings),
        "reliability": build_reliability_rows(ratings, splits=splits, seed=seed),
        "agreement": build_agreement_rows(responses) if _has_judgement_labels(responses) else [],
        "ceiling": build_ceiling_rows(compared, model_scores, splits=splits, seed=seed),
    }
    notes = dict.fromkeys((*ratings.notes, *(note for given in model_scores for note in given.notes)))
    _print_tables(tables, out, as_json, tuple(notes), left_out=ratings.left_out)


def _print_choices(file: str, columns: str | None, out: Path | None, as_json: bool) -> None:
    choices = read_choices(file, columns=read_columns(columns))
    notes = (*choices.notes, "intervals at 0.95: exact binomial; p: sign test, two-sided")
    _print_tables({"pairs": build_choice_rows(choices), "overall": [summarise_choices(choices)]}, out, as_json, notes)


def _print_tables(
    tables: dict[str, list[SummaryRow]], out: Path | None, as_json: bool, notes: Sequence[str], **more: object
) -> None:
    """Write the first table to a file, if one is given, and print the others.

    Args:
        more: Further entries of the JSON output.
    """
    # The first table, the ratings or the pairs, is the one that --out writes.
    first, *_ = tables
    if out:
        write_rows(out, tables[first])
        print_message(f"{len(tables[first])} {first} written to {out}")
    if as_json:
        print_json({**tables, **more, "notes": list(notes)})
        return
    for name, rows in tables.items():
        # What was written to a file need not fill the terminal.
        if rows and not (out and name == first):
            names = list(dict.fromkeys(column for row in rows for column in row))
            print_rows(names, [{column: _format_cell(row.get(column)) for column in names} for row in rows])
    for note in notes:
        print_message(note)


def _format_cell(cell: object) -> object:
    return f"{cell:.4f}" if isinstance(cell, float) else cell


def _has_judgement_labels(responses: Responses) -> bool:
    # Agreement compares yes or no with labels of 1 or 0; graded responses have nothing to compare.
    return responses.kind == "yes-no" and any(sentence.label is not None for sentence in responses.sentences)
