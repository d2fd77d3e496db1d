"""``acceptability report``: saved runs as one HTML file, and as figures, tables and references for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import Json, print_data, print_json, talk
from acceptability.errors import ReportError
from acceptability.models import delivered
from acceptability.report.again import with_suites
from acceptability.report.browser import MOST
from acceptability.report.gather import Material, gather
from acceptability.report.rows import check_writable
from acceptability.store.runs import Run
from acceptability.suites import load_suite
from acceptability.types import Suite

ReportFile = Annotated[
    Path | None, typer.Option("--report", help="Write a report too: one HTML file that opens offline.")
]


def command(
    runs: Annotated[
        list[str], typer.Argument(help="Runs: an id (see `acceptability runs`), latest, a folder, or a JSON file.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    title: Annotated[str, typer.Option("--title", help="What stands at its head.")] = "Acceptability",
    suite: Annotated[
        list[str] | None, typer.Option("--suite", help="Where the sentences of a run are, if they are not found.")
    ] = None,
    items: Annotated[int, typer.Option("--items", min=0, help="How many pairs the page holds at most.")] = MOST,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="A folder for the figures as PDF, SVG and PNG.")
    ] = None,
    latex: Annotated[Path | None, typer.Option("--latex", help="A file for the tables in LaTeX (booktabs).")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="A file for the tables in Markdown.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", help="A folder for the rows of results and figures.")] = None,
    bibtex: Annotated[Path | None, typer.Option("--bibtex", help="A file for what is to be cited.")] = None,
    as_json: Json = False,
) -> None:
    """Make a report of saved runs: tables, figures and an item browser in one file, and files for a paper."""
    for path in (out, latex, markdown, bibtex):
        check_report(path)
    given = [load_suite(name) for name in suite or ()]
    material = with_suites(gather(runs), given)
    written = [_page(out, material, title, items=items)]
    written += _for_paper(material, figures=figures, csv=csv)
    written += _texts(material, {"latex": latex, "markdown": markdown, "bibtex": bibtex})
    if as_json:
        print_json({"files": [str(path) for path in written], "notes": list(material.notes)})
    else:
        for path in written:
            print_data(f"{path}\n")
    for note in material.notes:
        talk(note)


def check_report(path: Path | None) -> None:
    """Refuse a file that could not be written, before any work is done for it."""
    if path:
        check_writable(path)


def report_run(path: Path | None, run: Run, suites: Sequence[Suite], *, title: str = "", lead: str = "") -> None:
    """Write the report of a run that was just made, where one is asked for."""
    if path is None:
        return
    material = with_suites(gather([str(run.folder)]), suites)
    for note in material.notes:
        talk(note)
    talk(f"report: {_page(path, material, title or run.command.capitalize(), lead=lead)}")


def _page(path: Path, material: Material, title: str, *, lead: str = "", items: int = MOST) -> Path:
    # Jinja2 and what draws are loaded when a page is wanted.
    from acceptability.report.page import Heading, write_report

    named = {str(row["model"]) for row in material.results}
    models = [(each.name, f"{each.about} ({each.licence})") for each in delivered().values() if each.name in named]
    return write_report(path, Heading(title, lead, models), material, most=items)


def _for_paper(material: Material, *, figures: Path | None, csv: Path | None) -> list[Path]:
    """Write figures and rows into their folders."""
    from acceptability.report.drawing import can_draw, figures_of, write_figures
    from acceptability.report.sheets import write_sheets

    if not (figures or csv):
        return []
    drawn = figures_of(material) if figures or can_draw() else []
    return [*(write_figures(figures, drawn) if figures else []), *(write_sheets(csv, material, drawn) if csv else [])]


def _texts(material: Material, files: dict[str, Path | None]) -> list[Path]:
    """Write the tables and the references."""
    from acceptability.report.cited import bibtex
    from acceptability.report.grids import grids
    from acceptability.report.latex import latex
    from acceptability.report.markdown import markdown

    makers = {
        "latex": lambda: latex(grids(material)),
        "markdown": lambda: markdown(grids(material)),
        "bibtex": lambda: bibtex(material),
    }
    return [_write(path, makers[kind]()) for kind, path in files.items() if path]


def _write(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise ReportError(f"cannot write {path}: {error.strerror}") from error
    return path.resolve()
