"""``acceptability contrasts``: the surprisal of the words in which the sentences of a contrast differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from acceptability.api.contrasts import DEFAULT_CUTOFFS, ContrastEvaluation, ContrastGroup, evaluate_contrasts
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    ByOption,
    Display,
    DtypeOption,
    EngineOption,
    JsonOption,
    RequiredModelOption,
    ResampleByOption,
    ResamplesOption,
    SeedOption,
    SuiteArgument,
    SuiteReading,
    load_cli_engine,
    load_cli_suite,
    make_bootstrap,
    make_suite_input,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    record_run,
    show_progress,
    with_display,
    with_reading,
)
from acceptability.measures.target_contrast import GRADES, LEARNING_CLASSES
from acceptability.models import set_spec_dtype
from acceptability.models.kinds import complete_model_spec
from acceptability.report.display_names import NumberFormat, name_group
from acceptability.report.terminal import describe_intervals
from acceptability.report.text_table import make_table
from acceptability.store.runs import RunInputs
from acceptability.suites.targets import count_exclusions
from acceptability.types import Result


@with_display
@with_reading
def command(
    suite: SuiteArgument,
    model: RequiredModelOption,
    by: ByOption = None,
    side: Annotated[
        str,
        typer.Option(
            "--side",
            help="What an insertion or deletion masks: the shared word to its left or right, "
            "or all from one to the other (bracket).",
        ),
    ] = "left",
    multi_token: Annotated[
        bool,
        typer.Option(
            "--multi-token", help="Keep targets of several tokens: masked together, their log-probabilities summed."
        ),
    ] = False,
    cutoffs: Annotated[
        str,
        typer.Option("--cutoffs", help="The bounds of high and low accuracy, then of high and low repulsion."),
    ] = DEFAULT_CUTOFFS,
    dtype: DtypeOption = None,
    resamples: ResamplesOption = 1000,
    resample_by: ResampleByOption = None,
    seed: SeedOption = 0,
    engine: EngineOption = "local",
    address: AddressOption = None,
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Compare the surprisals of the words in which contrasting sentences differ: directionality and repulsion."""
    model = complete_model_spec(model)
    bootstrap, runner = make_bootstrap(resamples, resample_by, seed), load_cli_engine(engine, address)
    loaded = load_cli_suite(suite, reading)
    with show_progress() as progress:
        evaluation = evaluate_contrasts(
            loaded,
            set_spec_dtype(model, dtype) if dtype else model,
            by=by,
            side=side,
            multi_token=multi_token,
            cutoffs=cutoffs,
            bootstrap=bootstrap,
            engine=runner,
            progress=progress,
        )
    if as_json:
        print_json(evaluation.to_dict())
    else:
        _print_tables(evaluation, display.style)
        print_notes(evaluation.ungrouped_notes)
        print_signatures([evaluation.signature], display)
    inputs = RunInputs([make_suite_input(loaded, suite, reading)], [model])
    record_run("contrasts", evaluation.rows(), [evaluation.signature], list(evaluation.target.rows()), inputs)


def _print_tables(evaluation: ContrastEvaluation, style: NumberFormat) -> None:
    """Print the groups, the table of accuracy by repulsion, and the contrasts that were left out."""
    target, groups = evaluation.target, (*evaluation.edit_groups, *evaluation.tag_groups)
    header = ["group", "n", "directionality", "repulsion", "better (bits)", "worse (bits)", "class"]
    tables = [make_table(header, [_make_group_row(group, style) for group in groups])]
    # Without a tag, the kinds of edits are counted instead, without the group "all" that contains them.
    classified = evaluation.tag_groups or evaluation.edit_groups[1:]
    tables.append(make_table(["accuracy", *(f"repulsion {grade}" for grade in GRADES)], _make_class_grid(classified)))
    reasons = count_exclusions(target.exclusions)
    if reasons:
        # Reversed, so that the first contrast with a reason is the one that stays in the dict.
        examples = {exclusion.reason: exclusion.contrast for exclusion in reversed(target.exclusions)}
        rows = [[reason, count, examples[reason]] for reason, count in reasons.items()]
        tables.append(make_table(["left out", "contrasts", "the first"], rows))
    print_table(*tables)
    # Of the group of all contrasts; smaller groups have the same kind of interval, or a note.
    overall = {"directionality": groups[0].directionality, "repulsion": groups[0].repulsion}
    # The first notes are the reasons, which are in the table.
    print_notes(
        [
            *describe_intervals({result.signature: name for name, result in overall.items()}),
            *target.notes()[len(reasons) :],
        ]
    )


def _make_group_row(group: ContrastGroup, style: NumberFormat) -> list[object]:
    return [
        group.name if group.name.startswith("edit=") else name_group(group.name),
        group.directionality.n,
        _format_result(group.directionality, style),
        _format_result(group.repulsion, style),
        f"{group.better_surprisal_bits:.2f}",
        f"{group.worse_surprisal_bits:.2f}",
        group.interaction_class,
    ]


def _format_result(result: Result, style: NumberFormat) -> str:
    # On two lines, so that the classes have room beside it.
    row_style = style.of_measure(result.measure)
    interval = row_style.interval(result.low, result.high)
    return row_style.number(result.value) + (f"\n{interval}" if interval != "–" else "")


def _make_class_grid(groups: Sequence[ContrastGroup]) -> list[list[str]]:
    """Return the table of accuracy by repulsion: each class, with the number of groups in it."""
    classes = [group.interaction_class for group in groups]

    def format_class(accuracy: str, repulsion: str) -> str:
        name = LEARNING_CLASSES[accuracy, repulsion]
        return f"{name}: {classes.count(name)}"

    return [[accuracy, *(format_class(accuracy, grade) for grade in GRADES)] for accuracy in GRADES]
