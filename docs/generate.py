"""Generates the reference pages from the catalog, the registry and the command line; mkdocs runs it as a hook."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import typer.main

from acceptability import registry
from acceptability.cli import app
from acceptability.models import list_named_models
from acceptability.suites import load_catalog


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages to the site; mkdocs calls this hook by its name."""
    # Imported here, so that the tests generate the pages without loading mkdocs.
    from mkdocs.structure.files import File

    for name, generate in PAGES.items():
        files.append(File.generated(config, f"reference/{name}.md", content=generate()))
    return files


def suites() -> str:
    """Return the page of suites."""
    parts = [
        "# Suites",
        "`acceptability suites` lists all suites. The common first part of several names, such as `cola`, selects all "
        "of them.",
    ]
    for entry in load_catalog():
        facts = [
            f"- {entry.sentences:,} sentences, {entry.contrasts:,} contrasts; language {entry.language}",
            f"- Sampling unit: `{entry.unit}`. {entry.unit_reason}",
            f"- Cite: {entry.citation}",
            f"- Licence: {entry.licence}",
            f"- Source: {entry.source or 'part of this package'}",
            *(f"- Note: {quirk}" for quirk in entry.quirks),
        ]
        parts += [f"## `{entry.id}`", f"{entry.title}.", "\n".join(facts)]
    return "\n\n".join(parts)


def models() -> str:
    """Return the page of models."""
    parts = [
        "# Models",
        "A model is given as `KIND:LOCATION(option=value)`, or by its name if it has one. Depending on the kind, the "
        "location is a folder, a file, a name on the Hugging Face Hub, or the address of a server.",
    ]
    openers = {name: registry.find("model", name) for name in registry.names("model")}
    module_uses = Counter(inspect.getmodule(opener) for opener in openers.values())
    for name, opener in openers.items():
        module = inspect.getmodule(opener)
        # A module of several kinds describes them together; a kind with a class of its own is then described by that.
        opened = getattr(module, str(inspect.signature(opener).return_annotation), None)
        described = opened if module_uses[module] > 1 and inspect.isclass(opened) else module
        parts += [f"## `{name}`", inspect.getdoc(described) or "", f"Options: `{_format_options(opener)}`"]
    parts += ["## Named models"]
    parts += [
        f"- `{model.name}`: {model.about} ({model.licence}). `pip install {model.install}`"
        for model in list_named_models().values()
    ]
    return "\n\n".join(parts)


def measures() -> str:
    """Return the page of measures."""
    return _format_registered("Measures", "measure", "A measure turns the scores of a suite into one number.")


def reductions() -> str:
    """Return the page of reductions."""
    introduction = (
        "A reduction turns the output of a model for a sentence into one number. "
        "Logarithms are natural, and higher is more acceptable."
    )
    return _format_registered("Reductions", "reduction", introduction)


def recipes() -> str:
    """Return the page of recipes for training."""
    introduction = "`acceptability train` follows a recipe; `--set name=value` sets one of its options."
    return _format_registered("Recipes", "recipe", introduction)


def commands() -> str:
    """Return the page of commands."""
    root = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Data goes to stdout, and messages go to stderr. The exit status is 1 after an error and 2 after wrong usage.",
    ]
    for path, command in _iterate_commands("acceptability", root):
        options = [
            f"- `{' / '.join(option.opts)}`: {getattr(option, 'help', None) or option.name}"
            for option in command.params
        ]
        parts += [f"## `{path}`", command.help or "", "\n".join(options)]
    return "\n\n".join(parts)


def _iterate_commands(path: str, command: Any) -> Iterable[tuple[str, Any]]:
    if path != "acceptability":
        yield path, command
    # A group may build its commands when they are looked up, so `commands` need not hold all of them.
    names = command.list_commands(None) if hasattr(command, "list_commands") else []
    for name in names:
        yield from _iterate_commands(f"{path} {name}", command.get_command(None, name))


def _format_registered(title: str, kind: str, introduction: str) -> str:
    """Return a page with the description and the options of every registered object of a kind."""
    parts = [f"# {title}", introduction]
    for name in registry.names(kind):
        registered = registry.find(kind, name)
        doc = inspect.getdoc(registered) or ""
        parts += [
            f"## `{name}`",
            # Markdown renders Args: of a docstring as one paragraph, so it becomes a list.
            doc.replace("Args:\n", "Options:\n\n").replace("\n    ", "\n- "),
            f"`{name}({_format_options(registered)})`",
        ]
    return "\n\n".join(parts)


def _format_options(registered: Callable[..., Any]) -> str:
    # The location of a model is the part before the brackets, not an option within them.
    parameters = inspect.signature(registered).parameters.values()
    return ", ".join(
        parameter.name if parameter.default is parameter.empty else f"{parameter.name}={parameter.default!r}"
        for parameter in parameters
        if parameter.name != "location"
    )


PAGES: dict[str, Callable[[], str]] = {
    "suites": suites,
    "models": models,
    "measures": measures,
    "reductions": reductions,
    "recipes": recipes,
    "commands": commands,
}
