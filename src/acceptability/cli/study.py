"""``acceptability study``: a paper's tables recomputed, or a study that a short TOML file describes.

``acceptability study adc`` puts our numbers beside those that the paper prints. Each paper is a subcommand, whose own
options come from its ``PAPER`` (see ``acceptability.papers``). ``acceptability study run FILE.toml`` runs a study of
one's own:

    title = "Two models on two suites"
    suites = ["starter", "mine.csv"]
    models = ["uniform", "sphinx-trigram"]
    reductions = ["lp"]
    measures = ["PairAccuracy"]
    by = "phenomenon"
    resamples = 1000
    seed = 0

Only ``suites`` and ``models`` are needed; ``region``, ``unit`` (the sampling unit of the suites), ``resample_by`` and
``interval`` may be given too. A study opens files in its own folder only, and nothing else that ``--allow`` does not
name.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from acceptability import registry
from acceptability.cli.console import (
    AllowOption,
    Display,
    JsonOption,
    complete_model_specs,
    print_json,
    print_message,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
)
from acceptability.cli.evaluate import print_results
from acceptability.cli.report import check_report, write_run_report
from acceptability.papers import Paper, StudyOption, evaluate_study, sign_tables, study
from acceptability.papers.cells import Cell
from acceptability.report.terminal import build_cell_table, describe_agreement
from acceptability.store.runs import RunInputs, SuiteInput
from acceptability.store.unit_rows import collect_unit_rows
from acceptability.text.io import check_rows_file, write_spreadsheet

ModelOption = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A model of your own, evaluated by the paper's protocol. Repeatable."),
]
TableOption = Annotated[
    str | None, typer.Option("--table", help="Only this table or figure of the paper, such as 'Table 1'.")
]
CsvOption = Annotated[Path | None, typer.Option("--csv", help="Also write the cells to a file: .csv, .tsv or .jsonl.")]
ReportOption = Annotated[
    Path | None, typer.Option("--report", "--page", help="Also write a report: one HTML file that opens offline.")
]

# Typer reads options from the signature of a function. That of a paper's command is put together from these and the
# paper's own, so that no option is declared once per paper.
_SHARED_PARAMETERS = (
    Parameter("table", Parameter.KEYWORD_ONLY, default=None, annotation=TableOption),
    Parameter("csv", Parameter.KEYWORD_ONLY, default=None, annotation=CsvOption),
    Parameter("report", Parameter.KEYWORD_ONLY, default=None, annotation=ReportOption),
    Parameter("as_json", Parameter.KEYWORD_ONLY, default=False, annotation=JsonOption),
)
_MODEL_PARAMETER = Parameter("model", Parameter.KEYWORD_ONLY, default=None, annotation=ModelOption)


class StudyGroup(TyperGroup):
    """The subcommands of ``study``: one for each paper in the registry, and those of this module."""

    # The arguments are typed as Any because older releases of Typer take them from click, newer ones have their own.
    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the papers, then those of the other subcommands."""
        return [*registry.names("study"), *super().list_commands(ctx)]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a subcommand; a paper's is built when it is looked up, so that no other paper is imported."""
        if cmd_name in registry.names("study"):
            return build_paper_command(cmd_name)
        return super().get_command(ctx, cmd_name)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments, also those in the form of the version before."""
        # Shell completion parses half-written commands, which must neither fail nor print anything.
        if not ctx.resilient_parsing:
            args = _convert_former_arguments(args, self.list_commands(ctx))
        return super().parse_args(ctx, args)


app = typer.Typer(cls=StudyGroup, no_args_is_help=True, help="Recompute a paper's tables, or run a study of your own.")


@app.command("run")
@with_display
def run_study(
    file: Annotated[Path, typer.Argument(help="A TOML file: suites, models, measures, ...", metavar="FILE.toml")],
    allow: AllowOption = None,
    report: ReportOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Run a study of your own, which a TOML file describes."""
    check_report(report)
    with show_progress() as progress:
        evaluated = evaluate_study(file, allow=allow or (), progress=progress)
    print_results(evaluated.results, as_json, display)
    signatures = [result.signature for result in evaluated.results]
    rows = [result.row() for result in evaluated.results]
    given = map(SuiteInput, evaluated.suites, evaluated.suite_names)
    inputs = RunInputs(list(given), evaluated.models)
    run = record_run("study", rows, signatures, collect_unit_rows(evaluated.results), inputs)
    write_run_report(report, run, evaluated.suites, title=evaluated.title)


def _convert_former_arguments(args: list[str], commands: Sequence[str]) -> list[str]:
    """Return the arguments with the subcommand first.

    The version before had no subcommands: ``study FILE.toml`` ran a file, and options could stand before the name.

    >>> _convert_former_arguments(["--table", "Table 1", "adc"], ["adc", "run"])
    ['adc', '--table', 'Table 1']
    """
    if not args or args[0] in (*commands, "--help"):
        return args
    # The value of an option could be taken for the name, but only in a command that was never valid.
    name = next((word for word in args if word in commands or word.endswith(".toml")), args[0])
    if name.startswith("-"):
        return args
    index = args.index(name)
    rest = [*args[:index], *args[index + 1 :]]
    if name in commands:
        return [name, *rest]
    if not Path(name).suffix:
        # Raises the error that suggests the paper with the closest name.
        registry.find("study", name)
    print_message(f"`study {name}` is now `study run {name}`; the old form will be refused from the next release")
    return ["run", name, *rest]


def build_paper_command(name: str) -> Any:
    """Return the command of a paper, with the options that its ``PAPER`` declares.

    Typer reads a command's options from the signature of a function, so one is made with a parameter for each option.
    """
    paper: Paper = registry.find("study", name)

    def command(*, display: Display, **options: Any) -> None:
        _show_paper(name, display=display, **options)

    own = [_MODEL_PARAMETER] if paper.takes_models else []
    own += [_make_parameter(option) for option in paper.options]
    command.__signature__ = Signature([*own, *_SHARED_PARAMETERS])  # type: ignore[attr-defined]
    command.__doc__ = paper.title
    run = with_display(command, shares=False)
    # Typer converts functions only as members of a program; one with a single command is that command.
    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name)(run)
    return typer.main.get_command(single)


def _make_parameter(option: StudyOption) -> Parameter:
    # These options get a panel of their own in the help, because they do nothing without the option they require.
    panel = "Training" if option.requires else None
    info = typer.Option(*option.list_flags(), help=option.help, rich_help_panel=panel)
    # A bool without a default would be an option that must be given.
    default: Any = False if option.type is bool else option.default
    type_: Any = option.type if default is not None else option.type | None
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[type_, info])


def _show_paper(
    name: str,
    *,
    model: list[str] | None = None,
    table: str | None = None,
    csv: Path | None = None,
    report: Path | None = None,
    as_json: bool = False,
    display: Display,
    **options: Any,
) -> None:
    """Show every number of a paper with ours beside it; that some do not agree is a finding, not a failure."""
    models = complete_model_specs(model)
    # Files that cannot be written are refused now, and not after a training of hours.
    check_report(report)
    if csv:
        check_rows_file(csv)
    with show_progress() as progress:
        cells = study(name, models, table=table, progress=progress, **options)
    signatures = sign_tables(name, cells, models, options)
    rows = [cell.as_row() for cell in cells]
    signed_rows = [row | {"signature": signatures[str(row["table"])]} for row in rows]
    if as_json:
        print_json(signed_rows)
    else:
        _print_cells(cells, display)
        print_signatures(signatures.values(), display)
    if csv:
        write_spreadsheet(csv, rows)
    run = record_run("study", signed_rows, signatures.values(), inputs=RunInputs(models=models))
    write_run_report(report, run, [], title=f"The study {name}, computed again")


def _print_cells(cells: Sequence[Cell], display: Display) -> None:
    tables = dict.fromkeys(cell.table for cell in cells)
    print_table(
        *(build_cell_table(name, [cell for cell in cells if cell.table == name], display.style) for name in tables)
    )
    print_message(describe_agreement(cells))
