"""Whom to cite for what a report shows: the suites, the models, the measures and the methods, in words and in BibTeX.

``references.bib`` holds the entries, ``references.toml`` which of them belong to what.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from acceptability.report.gather import Material
from acceptability.signature import parse
from acceptability.suites.catalog import entries

_ENTRY = re.compile(r"@\w+\{([^,]+),.*")


@cache
def references() -> Mapping[str, str]:
    """Return every entry of BibTeX by its key."""
    text = files("acceptability.report").joinpath("references.bib").read_text(encoding="utf-8")
    found = {named[1]: line for line in text.splitlines() if (named := _ENTRY.fullmatch(line))}
    return {key: _laid_out(line) for key, line in found.items()}


def _laid_out(line: str) -> str:
    """Return an entry with a line for each field."""
    head, *fields = re.split(r", (?=\w+ = \{)", line)
    return ",\n  ".join((head, *fields)).removesuffix("}") + ",\n}"


@cache
def _belonging() -> Mapping[str, Any]:
    return tomllib.loads(files("acceptability.report").joinpath("references.toml").read_text(encoding="utf-8"))


def keys(material: Material) -> list[str]:
    """Return the keys of all that is to be cited, once each, suites first."""
    return list(dict.fromkeys(_keys(material)))


def _keys(material: Material) -> Iterator[str]:
    lists = _belonging()
    fields = [parse(each) for each in material.signatures]
    for suite in _suites(material):
        above = [name for name in lists["suites"] if f"{suite}/".startswith(f"{name}/")]
        yield from lists["suites"][max(above, key=len)] if above else ()
    for model in dict.fromkeys(each.get("model", "") + each.get("models", "") for each in fields):
        for part, cited in lists["models"].items():
            yield from cited if part in model.lower() else ()
        for name, cited in lists["reductions"].items():
            yield from cited if f".{name}(" in model else ()
    for measure in dict.fromkeys(each["measure"].partition("(")[0] for each in fields):
        yield from lists["measures"].get(measure, ())
    for study in _studies(material):
        yield from lists["studies"].get(study, ())
    yield from _methods(material, fields)
    yield from lists["always"]


def _methods(material: Material, fields: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Yield what intervals and corrections are cited by."""
    lists = _belonging()["methods"]
    for how in dict.fromkeys(each.get("ci", "") for each in fields):
        yield from (key for name, cited in lists.items() if how.startswith(name) for key in cited)
    for row in (*material.comparisons, *material.correlations):
        yield from (key for name in ("holm", "benjamini_hochberg") if row.get(name) is not None for key in lists[name])


def _suites(material: Material) -> list[str]:
    signed = [parse(each).get("suite", "").rpartition("#")[0].partition("+targets(")[0] for each in material.signatures]
    return list(dict.fromkeys(filter(None, (*signed, *(row["suite"] for row in material.results)))))


def _studies(material: Material) -> list[str]:
    words = [run.arguments.split() for run in material.runs if run.command == "study"]
    return [each[1] for each in words if len(each) > 1]


def citations(material: Material) -> list[str]:
    """Return the references of the suites in words, as the catalog has them."""
    return list(dict.fromkeys(entry.citation for name in _suites(material) for entry in entries(name)))


def bibtex(material: Material) -> str:
    """Return the entries of all that is to be cited; a comment names the suites and models that have none."""
    known = references()
    lists = _belonging()
    lacking = [
        name for name in _suites(material) if not any(f"{name}/".startswith(f"{each}/") for each in lists["suites"])
    ]
    comments = [f"% {_plain(name)}: a suite of your own; cite where its sentences come from." for name in lacking]
    comments += ["% Models from elsewhere: cite what their cards ask for."]
    return "\n".join((*comments, *(known[key] for key in keys(material)))) + "\n"


def _plain(text: str) -> str:
    return re.sub(r"[^\w./:-]+", " ", text)
