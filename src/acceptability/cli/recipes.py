"""``acceptability recipes``: the recipes for training, with their options."""

from __future__ import annotations

from acceptability.cli.shown import Json, print_names


def command(as_json: Json = False) -> None:
    """List the recipes for training, with their options."""
    print_names("recipe", as_json)
