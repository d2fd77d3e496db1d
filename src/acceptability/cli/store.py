"""``acceptability store``: list the stored outputs of models, and forget some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from acceptability.cli.console import JsonOption, print_json, print_message, print_table
from acceptability.errors import SpecError
from acceptability.report.text_table import make_table
from acceptability.store.scores import StoredModel, forget_outputs, list_stored_models

app = typer.Typer(help="List the stored outputs of models, and forget some.", invoke_without_command=True)


@app.callback()
def list_models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the models whose outputs are stored, with their number, size and dates."""
    if context.invoked_subcommand:
        # Typer would drop it silently, and print a table to a program that expects JSON.
        if as_json:
            raise SpecError(f"write --json after the command: store {context.invoked_subcommand} … --json")
        return
    stored = list_stored_models()
    if as_json:
        print_json([model.row() for model in stored])
    elif stored:
        _print_models(stored)
    else:
        print_message("nothing is stored yet")


@app.command()
def forget(
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="The model: a signature as listed, with or without (options), or a spec."),
    ] = None,
    scoring: Annotated[int | None, typer.Option("--scoring", help="Outputs of this scoring version.")] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="DATE", help="What was stored before this day, such as 2026-01-31 (UTC)."),
    ] = None,
    undated: Annotated[
        bool, typer.Option("--undated", help="What has no date, since it was stored before dates were kept.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be forgotten, and keep it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Forget stored outputs that fulfil every condition given; they are computed again when they are needed."""
    forgotten = forget_outputs(model, scoring=scoring, older_than=older_than, undated=undated, dry_run=dry_run)
    if as_json:
        print_json([one.row() for one in forgotten])
        return
    if forgotten:
        _print_models(forgotten)
    outputs, size = sum(one.outputs for one in forgotten), sum(one.size for one in forgotten)
    models = "1 model" if len(forgotten) == 1 else f"{len(forgotten):,} models"
    count = f"{outputs:,} outputs of {models}, {_format_megabytes(size)} MB"
    print_message(f"would forget {count}; nothing was changed" if dry_run else f"forgot {count}")


def _print_models(models: Sequence[StoredModel]) -> None:
    rows = []
    for model in models:
        days = dict.fromkeys(str(day) if day else "unknown" for day in (model.oldest, model.newest))
        numbers = f"{model.outputs:,}", model.scoring, model.device, _format_megabytes(model.size)
        rows.append([model.model, *numbers, "\n".join(days)])
    print_table(make_table(["model", "outputs", "scoring", "device", "MB", "stored"], rows))


def _format_megabytes(size: int) -> str:
    """Return a size in megabytes.

    >>> _format_megabytes(1_234_567), _format_megabytes(1)
    ('1.2', '0.0')
    """
    return f"{size / 1e6:,.1f}"
