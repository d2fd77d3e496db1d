"""``acceptability measures``: the questions about scores, with their options."""

from __future__ import annotations

from acceptability.cli.shown import Json, print_names


def command(as_json: Json = False) -> None:
    """List the measures and their options."""
    print_names("measure", as_json)
