"""Makes the reference pages from the catalog, the registry and the command line, while the site is built."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import typer.main

from acceptability import registry
from acceptability.cli import app
from acceptability.models.named import delivered
from acceptability.suites import catalog


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages: called by mkdocs."""
    from mkdocs.structure.files import File

    for name, page in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=page()))
    return files


def suites() -> str:
    """Return the page of suites."""
    parts = ["# Suites", "`acceptability suites` lists them; a name above several, such as `cola`, means all of them."]
    for entry in catalog():
        facts = [
            f"- {entry.sentences:,} sentences, {entry.contrasts:,} contrasts; language {entry.language}",
            f"- Cite: {entry.citation}",
            f"- Licence: {entry.licence}",
            f"- Source: {entry.source or 'this package'}",
            *(f"- Note: {quirk}" for quirk in entry.quirks),
        ]
        parts += [f"## `{entry.id}`", f"{entry.title}.", "\n".join(facts)]
    return "\n\n".join(parts)


def models() -> str:
    """Return the page of models."""
    parts = ["# Models", "A model is written `KIND:PLACE(option=value)`, or by a name of its own."]
    for name in registry.names("model"):
        opener = registry.find("model", name)
        module = inspect.getmodule(opener)
        parts += [f"## `{name}`", inspect.getdoc(module) or "", f"Options: `{_options(opener)}`"]
    parts += ["## Models with a name"]
    parts += [
        f"- `{each.name}`: {each.about} ({each.licence}). `pip install {each.install}`" for each in delivered().values()
    ]
    return "\n\n".join(parts)


def measures() -> str:
    """Return the page of measures."""
    return _values("Measures", "measure", "How each is defined, and what its options are.")


def reductions() -> str:
    """Return the page of reductions."""
    about = "From what a model said to one number; logs are natural, and higher is more acceptable."
    return _values("Reductions", "reduction", about)


def recipes() -> str:
    """Return the page of recipes for training."""
    return _values("Recipes", "recipe", "What `acceptability train` follows; `--set name=value` sets an option.")


def commands() -> str:
    """Return the page of commands."""
    root = typer.main.get_command(app)
    parts = ["# Commands", "Data goes to stdout, talk to stderr; errors end with exit status 1, wrong usage with 2."]
    for path, command in _commands("acceptability", root):
        options = [
            f"- `{' / '.join(option.opts)}`: {getattr(option, 'help', None) or option.name}"
            for option in command.params
        ]
        parts += [f"## `{path}`", command.help or "", "\n".join(options)]
    return "\n\n".join(parts)


def _commands(path: str, command: Any) -> Iterable[tuple[str, Any]]:
    if path != "acceptability":
        yield path, command
    for name, each in getattr(command, "commands", {}).items():
        yield from _commands(f"{path} {name}", each)


def _values(title: str, kind: str, about: str) -> str:
    parts = [f"# {title}", about]
    for name in registry.names(kind):
        found = registry.find(kind, name)
        doc = inspect.getdoc(found) or ""
        parts += [
            f"## `{name}`",
            doc.replace("Args:\n", "Options:\n\n").replace("\n    ", "\n- "),
            f"`{name}({_options(found)})`",
        ]
    return "\n\n".join(parts)


def _options(found: Callable[..., Any]) -> str:
    parameters = inspect.signature(found).parameters.values()
    return ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!r}"
        for each in parameters
        if each.name != "place"
    )


PAGES: dict[str, Callable[[], str]] = {
    "suites": suites,
    "models": models,
    "measures": measures,
    "reductions": reductions,
    "recipes": recipes,
    "commands": commands,
}
