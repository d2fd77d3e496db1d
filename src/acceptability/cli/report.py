"""``acceptability report``: saved runs as one HTML file, and as figures, tables and references for a paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.console import JsonOption, print_data, print_json, print_message
from acceptability.report.report_data import MAX_PAIRS, attach_suites, load_report_data
from acceptability.store.runs import SavedRun
from acceptability.suites import load_suite
from acceptability.text.io import check_writable
from acceptability.types import Suite

ReportFileOption = Annotated[
    Path | None, typer.Option("--report", help="Also write a report: one HTML file that opens offline.")
]


def command(
    runs: Annotated[
        list[str],
        typer.Argument(help="Runs: an id (see `acceptability runs`), latest, a folder, or a JSON file of rows."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The HTML file.")] = Path("report.html"),
    title: Annotated[str, typer.Option("--title", help="The title of the report.")] = "Acceptability",
    suite: Annotated[
        list[str] | None,
        typer.Option("--suite", help="A suite of the runs, if its sentences are not found automatically. Repeatable."),
    ] = None,
    items: Annotated[
        int, typer.Option("--items", min=0, help="The largest number of pairs in the item browser of the report.")
    ] = MAX_PAIRS,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="A folder for the figures as PDF, SVG and PNG.")
    ] = None,
    latex: Annotated[Path | None, typer.Option("--latex", help="A file for the tables in LaTeX (booktabs).")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="A file for the tables in Markdown.")] = None,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="A folder for the rows of results and figures as CSV.")
    ] = None,
    bibtex: Annotated[
        Path | None, typer.Option("--bibtex", help="A file for the references to cite, in BibTeX.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a report of saved runs: tables, figures and an item browser in one file, and files for a paper."""
    # The figures of a large run take minutes to draw; a file that cannot be written must be reported before.
    for path in (out, latex, markdown, bibtex):
        check_report(path)
    from acceptability.report import page

    report_data = attach_suites(load_report_data(runs), [load_suite(name) for name in suite or ()])
    heading = page.ReportHeading(title, models=page.describe_models(report_data))
    paths = [page.write_report(out, heading, report_data, max_pairs=items)]
    paths += page.write_paper_files(
        report_data, page.PaperFiles(figures=figures, csv=csv, latex=latex, markdown=markdown, bibtex=bibtex)
    )
    if as_json:
        print_json({"files": [str(path) for path in paths], "notes": list(report_data.notes)})
    else:
        for path in paths:
            print_data(f"{path}\n")
    for note in report_data.notes:
        print_message(note)


def check_report(path: Path | None) -> None:
    """Refuse a file that cannot be written, before hours are spent on its content."""
    if path:
        check_writable(path)


def write_run_report(
    path: Path | None, run: SavedRun, suites: Sequence[Suite], *, title: str = "", lead: str = ""
) -> None:
    """Write the report of a new run, and print its path and notes; nothing without a path.

    Args:
        suites: The suites of the run, which are loaded already.
        title: The title of the report; by default the name of the command.
        lead: A sentence or two below the title.
    """
    if path is None:
        return
    # Imported here: every command that can write a report would otherwise import what renders one.
    from acceptability.report import page

    report_data = attach_suites(load_report_data([str(run.folder)]), suites)
    for note in report_data.notes:
        print_message(note)
    heading = page.ReportHeading(title or run.command.capitalize(), lead, page.describe_models(report_data))
    print_message(f"report: {page.write_report(path, heading, report_data)}")
