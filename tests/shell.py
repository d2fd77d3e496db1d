"""Whether the commands that a page shows exist: their names, their options, and what the options name.

Nothing is executed, no file is read, no model is opened.
"""

from __future__ import annotations

import re
import tomllib
from difflib import get_close_matches
from functools import cache
from inspect import signature
from typing import Any

import typer.main

from acceptability import registry
from acceptability.cli import app
from acceptability.errors import UnknownName
from acceptability.models import list_named_models
from acceptability.specs import ParsedSpec, parse_model_spec, parse_spec
from acceptability.suites import load_catalog
from pages import ROOT

# Any wrong use of a command. Newer releases of typer have the class themselves, older ones take it from click.
_WrongUse = typer.BadParameter.__base__

_FILE = re.compile(r".*\.(csv|tsv|jsonl?|parquet|txt|xlsx|ods|zip|tar\.gz)(\.gz)?\Z")


def problem(words: list[str]) -> str:
    """What is wrong with a command; nothing if it could be typed so."""
    program, *rest = words
    if program not in _CHECKS:
        return f"{program} is not checked: mark the block"
    try:
        return _CHECKS[program](rest)
    except UnknownName as error:
        return str(error)


def _ours(words: list[str]) -> str:
    command, name = _build_program(), "acceptability"
    # A group builds some of its commands when they are looked up, so that `commands` does not hold all of them.
    while words and hasattr(command, "get_command") and (subcommand := command.get_command(None, words[0])):
        name, *words = words
        command = subcommand
    if hasattr(command, "get_command"):
        # NAME and its like stand for any.
        is_wrong = words and not words[0].startswith("-") and not words[0].isupper()
        return f"{name} has no command {words[0]}" if is_wrong else ""
    try:
        given = command.make_context(name, [each for each in words if not each.startswith("$")]).params
    except _WrongUse as error:
        return f"{name}: {error.format_message()}"
    return next(filter(None, (_value(name, *each) for each in given.items())), "")


@cache
def _build_program() -> Any:
    return typer.main.get_command(app)


def _value(command: str, option: str, given: Any) -> str:
    """What is wrong with the value of an option, or with one of its values."""
    if given is None or command == "models":
        return ""
    values = given if isinstance(given, list | tuple) else [given]
    check = _VALUES.get((command, option)) or _VALUES.get(option)
    # SUITE, MODEL and their like stand for any; a|b for either.
    named = [part for each in values for part in str(each).split("|") if part and not part.isupper()] if check else []
    return next(filter(None, map(check, named)), "")


def _model(text: str) -> str:
    kind, location, options = parse_model_spec(text)
    if kind == "prompted":
        return _model(location) or _options("model", kind, options)
    if not location:
        # Any other name may be an id on the Hub, but not a slip in the name of a model of ours.
        known = [*list_named_models(), *registry.names("model")]
        is_slip = kind not in known and get_close_matches(kind, known, cutoff=0.8)
        return f"there is no model {text}" if is_slip else ""
    return _options("model", kind, options)


def _options(kind: str, name: str, options: Any) -> str:
    known = signature(registry.find(kind, name)).parameters
    # A model is opened with what else its own opener takes.
    wrong = [each for each in options if each not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values())]
    return f"{name} has no option {wrong[0]}" if wrong else ""


def _spelled(kind: str) -> Any:
    def check(text: str | ParsedSpec) -> str:
        spelled = parse_spec(text) if isinstance(text, str) else text
        inside = [each for each in spelled.args if isinstance(each, ParsedSpec)]
        return _options(kind, spelled.name, spelled.options) or next(filter(None, map(check, inside)), "")

    return check


def _suite(name: str) -> str:
    if _FILE.match(name) or name.startswith("hf:"):
        return ""
    whole = (each.id for each in load_catalog())
    known = any(f"{each}/".startswith(f"{name}/") or f"{name}/".startswith(f"{each}/") for each in whole)
    return "" if known else f"there is no suite {name}"


def _recipe(name: str) -> str:
    registry.find("recipe", name)
    return ""


_VALUES = {
    "model": _model,
    ("judge", "model"): _model,
    "measure": _spelled("measure"),
    "reduce": _spelled("reduction"),
    "suite": _suite,
    "suites": _suite,
    ("train", "kind"): _recipe,
    ("restarts", "kind"): _recipe,
}


def _make(targets: list[str]) -> str:
    rules = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return next((f"the Makefile has no {each}" for each in targets if each not in rules), "")


def _pip(words: list[str]) -> str:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = re.findall(r"acceptability\[([\w,]+)\]", " ".join(words))
    wanted = [each for group in extras for each in group.split(",")]
    return next((f"there is no extra {each}" for each in wanted if each not in project["optional-dependencies"]), "")


def _python(words: list[str]) -> str:
    return "" if len(words) == 1 and words[0].endswith(".py") else "only python FILE.py is checked: mark the block"


_CHECKS = {"acceptability": _ours, "make": _make, "pip": _pip, "python": _python}
