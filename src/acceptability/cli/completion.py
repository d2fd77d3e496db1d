"""What the shell completes: suites, models, measures and reductions, without importing a command.

A shell starts the program anew for each press of the tab key. A command imports NumPy and more, which takes longer than
one waits for a name, so the names are read from the catalog and the registry alone. Commands and options are completed
by Typer.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import typer

from acceptability import registry

# Written out, since the module that describes them imports NumPy.
MODEL_NAMES = ("smollm2-135m", "sphinx-trigram", "mini-masked", "mini-causal", "mini-lstm", "trigram", "uniform")
_VALUES = {
    "--model": "model",
    "-m": "model",
    "--measure": "measure",
    "-M": "measure",
    "--reduce": "reduction",
    "-r": "reduction",
    "--cloze": "suite",
    "--probe-on": "suite",
    "--suite": "suite",
    "--on": "suite",
}
_SUITE_COMMANDS = (
    "score", "evaluate", "measure", "contrasts", "methods", "probe", "compare", "equivalence", "correlate", "link",
    "calibrate",
)  # fmt: skip
_RECIPE_COMMANDS = ("train", "restarts")
_SUITE_SUBCOMMANDS = ("show", "fetch", "verify", "export", "pair", "check")


def complete_from_environment(environment: Mapping[str, str]) -> bool:
    """Answer a shell that asks for a name, and return whether it did; anything else is left to Typer.

    Args:
        environment: The variables that Typer's scripts for shells set.
    """
    if not environment.get("_ACCEPTABILITY_COMPLETE", "").startswith("complete_"):
        return False
    names = find_names(_read_words(environment))
    if names is None:
        return False
    program = typer.Typer(add_completion=True)

    def complete(incomplete: str) -> list[str]:
        return [name for name in names if name.startswith(incomplete)]

    @program.command(context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
    def answer(words: list[str] = typer.Argument(None, autocompletion=complete)) -> None:
        """Stand for every command: all that is typed are words, the last of which is completed."""

    program(prog_name="acceptability")
    return True


def _read_words(environment: Mapping[str, str]) -> list[str]:
    """Return the words after the name of the program, of which the last one is to be completed."""
    line = environment.get("_TYPER_COMPLETE_ARGS") or environment.get("COMP_WORDS", "")
    try:
        words = shlex.split(line)
    # An open quotation mark.
    except ValueError:
        words = line.split()
    if (number := environment.get("COMP_CWORD", "")).isdecimal():
        # One more than the words if the cursor stands after a space.
        words = [*words, ""][: int(number) + 1]
    elif line.endswith(" "):
        words.append("")
    return words[1:]


def find_names(words: Sequence[str]) -> list[str] | None:
    """Return the names that the last of some words may become; None if it is no name.

    Args:
        words: The words after the name of the program.

    >>> find_names(["evaluate", "starter", "-M", "PairA"])[:2]
    ['PairAccuracy', 'AbsolutePair']
    >>> find_names(["evaluate", "starter", "--dt"]) is None
    True
    """
    if len(words) < 2 or words[-1].startswith("-"):
        return None
    command, *rest, _ = words
    previous = rest[-1] if rest else ""
    if previous in _VALUES:
        return list_names(_VALUES[previous])
    # The value of an option of another kind, such as a file.
    if previous.startswith("-"):
        return None
    if command in _SUITE_COMMANDS and (command == "evaluate" or not _has_positional(rest)):
        return list_names("suite")
    if command in _RECIPE_COMMANDS and not rest:
        return list_names("recipe")
    if command == "suites" and len(rest) == 1 and rest[0] in _SUITE_SUBCOMMANDS:
        return list_names("suite")
    return None


def _has_positional(words: Sequence[str]) -> bool:
    """Return whether some words have one that is neither an option nor follows one."""
    pairs = zip(["", *words], words, strict=False)
    return any(not word.startswith("-") and not previous.startswith("-") for previous, word in pairs)


def list_names(kind: str) -> list[str]:
    """Return the names of a kind: those of models with a location end in a colon.

    Args:
        kind: "suite", "model", "measure", "reduction" or "recipe".
    """
    if kind == "suite":
        return _list_suites()
    if kind == "model":
        kinds = [f"{name}:" for name in registry.names("model") if name not in MODEL_NAMES]
        return [*MODEL_NAMES, *kinds]
    return list(registry.names(kind))


def _list_suites() -> list[str]:
    # Imported here, since every command imports this module.
    import tomllib
    from importlib.metadata import entry_points

    own = Path(__file__).parents[1] / "suites" / "catalog.toml"
    paths = [own, *(Path(point.load()) for point in entry_points(group="acceptability.suites"))]
    ids = []
    for path in paths:
        # `suites.catalog` reads the same files; it is not imported here, since its package imports NumPy.
        catalog = tomllib.loads(path.read_text(encoding="utf-8"))
        ids += [suite["id"] for group in catalog["group"] for suite in group["suite"]]
    groups = {name.partition("/")[0] for name in ids}
    return [*ids, *sorted(groups - set(ids))]
