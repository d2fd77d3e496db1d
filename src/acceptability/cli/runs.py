"""``acceptability runs``: what was computed before."""

from __future__ import annotations

from acceptability.cli.shown import Json, print_json, print_rows, talk
from acceptability.store.runs import saved_runs


def command(as_json: Json = False) -> None:
    """List the saved runs, the oldest first."""
    runs, problems = saved_runs()
    rows = [
        {"id": run.id, "made": run.made, "results": run.results, "arguments": run.arguments}
        | {"version": run.version, "folder": str(run.folder)}
        for run in runs
    ]
    if as_json:
        print_json(rows)
    else:
        print_rows(["id", "made", "results", "arguments"], rows)
    for problem in problems:
        talk(problem)
