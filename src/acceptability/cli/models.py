"""``acceptability models``: the kinds of model with their options, and the named ones."""

from __future__ import annotations

from inspect import signature

from acceptability import registry
from acceptability.cli.shown import Json, print_json, print_rows, talk
from acceptability.models import delivered


def command(as_json: Json = False) -> None:
    """List the kinds of model, and the models that need no download."""
    kinds = [_kind(name) for name in registry.names("model")]
    named = [
        {
            "name": each.name,
            "installed": each.is_installed(),
            "licence": each.licence,
            "what it is": each.about,
        }
        | {"install": f"pip install {each.install}"}
        for each in delivered().values()
    ]
    if as_json:
        print_json({"kinds": kinds, "named": named})
        return
    print_rows(["kind", "options", "what it is"], kinds)
    print_rows(["name", "installed", "licence", "what it is"], named)
    for row in named:
        if not row["installed"]:
            talk(f"for {row['name']}: {row['install']}")


def _kind(name: str) -> dict[str, object]:
    opener = registry.find("model", name)
    options = [f"{key}={each.default!r}" for key, each in signature(opener).parameters.items() if key != "place"]
    module = __import__(opener.__module__, fromlist=["__doc__"])
    first = str(module.__doc__).strip().splitlines()[0]
    return {"kind": name, "options": ", ".join(options), "what it is": first}
