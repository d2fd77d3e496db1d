"""``acceptability study``: a study that a short TOML file describes.

title = "Two models on two suites"
suites = ["starter"]
models = ["uniform", "sphinx-trigram"]
reductions = ["lp"]
measures = ["PairAccuracy"]
by = "phenomenon"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any

import typer

from acceptability.cli.evaluate import show
from acceptability.cli.shown import Json, arguments, check_writable, progress_bar, saved, talk
from acceptability.errors import SpellingError, suggestion
from acceptability.measuring import evaluate
from acceptability.report.page import Section, write_page
from acceptability.store.runs import save_run, unit_rows
from acceptability.suites import load_suite
from acceptability.types import Result

_LISTS = ("suites", "models", "reductions", "measures")
_TEXTS = ("title", "by", "region")


def command(
    file: Annotated[Path, typer.Argument(help="A TOML file with suites, models and measures.")],
    page: Annotated[Path | None, typer.Option("--page", help="Write an HTML page too.")] = None,
    as_json: Json = False,
) -> None:
    """Run the study that a TOML file describes."""
    asked = _read(file)
    if page:
        check_writable(page)
    results: list[Result] = []
    sections = []
    with progress_bar() as progress:
        for name in asked["suites"]:
            suite = load_suite(name)
            results += (
                found := evaluate(
                    suite,
                    asked["models"],
                    reductions=asked.get("reductions", ()),
                    measures=asked.get("measures", ()),
                    by=asked.get("by"),
                    region=asked.get("region"),
                    progress=progress,
                )
            )
            sections.append(Section(name, found))
    show(results, as_json)
    signatures = [each.signature for each in results]
    saved(save_run("study", arguments(), [each.row() for each in results], unit_rows(results), signatures))
    if page:
        talk(f"page: {write_page(page, asked.get('title', file.stem), sections)}")


def _read(file: Path) -> dict[str, Any]:
    try:
        asked = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SpellingError(f"cannot read the study {file}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise SpellingError(f"{file} is not TOML: {error}") from error
    for key, value in asked.items():
        if key not in (*_LISTS, *_TEXTS):
            raise SpellingError(f"{file}: a study has no {key!r}.{suggestion(key, (*_LISTS, *_TEXTS))}")
        is_right = isinstance(value, str) if key in _TEXTS else _is_strings(value)
        if not is_right:
            raise SpellingError(f"{file}: {key} must be {'a text' if key in _TEXTS else 'a list of texts'}")
    for key in ("suites", "models"):
        if not asked.get(key):
            raise SpellingError(f"{file}: a study needs {key}, a list of names")
    return asked


def _is_strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
