"""``acceptability reductions``: the ways from tokens to a sentence score, with their options."""

from __future__ import annotations

from acceptability.cli.shown import Json, print_names


def command(as_json: Json = False) -> None:
    """List the reductions and their options."""
    print_names("reduction", as_json)
