"""``acceptability equivalence``: whether two models differ by less than the smallest difference that matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from acceptability.api.comparison import ScoreSources, collect_scores
from acceptability.api.evaluation import resolve_measures
from acceptability.api.significance.equivalence import ModelEquivalence, equivalence
from acceptability.cli.compare import ScoreColumnsOption, ScoreFilesOption
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    Display,
    EngineOption,
    JsonOption,
    MeasuresOption,
    OptionalModelsOption,
    PartialOption,
    ReductionsOption,
    RegionOption,
    ResampleByOption,
    ResamplesOption,
    SeedOption,
    SuiteArgument,
    SuiteReading,
    WhereOption,
    complete_model_specs,
    load_cli_engine,
    load_cli_suite,
    make_bootstrap,
    make_suite_input,
    print_json,
    print_notes,
    print_signatures,
    print_table,
    read_columns,
    read_where,
    record_run,
    show_progress,
    with_display,
    with_reading,
)
from acceptability.report.display_names import name_measure
from acceptability.report.terminal import build_equivalence_table, describe_test
from acceptability.stats.effects.equivalence_tests import check_margin
from acceptability.store.runs import RunInputs


@with_display
@with_reading
def command(
    suite: SuiteArgument,
    margin: Annotated[
        float,
        typer.Option("--margin", help="The smallest difference that matters, in units of the measure, such as .02."),
    ],
    model: OptionalModelsOption = None,
    scores: ScoreFilesOption = None,
    score_columns: ScoreColumnsOption = None,
    partial: PartialOption = False,
    where: WhereOption = None,
    reduce: ReductionsOption = None,
    measure: MeasuresOption = None,
    region: RegionOption = None,
    alpha: Annotated[
        float, typer.Option("--alpha", help="The significance level; the interval has the level 1 − 2 alpha.")
    ] = 0.05,
    resamples: ResamplesOption = 10_000,
    resample_by: ResampleByOption = None,
    seed: SeedOption = 0,
    reading: SuiteReading = DEFAULT_READING,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Test whether the first model is equivalent to each of the others, up to a margin (TOST)."""
    check_margin(margin, alpha)
    model = complete_model_specs(model)
    bootstrap = make_bootstrap(resamples, resample_by, seed)
    tags = read_where(where)
    whole = load_cli_suite(suite, reading)
    loaded = whole.filter(**tags)
    measures = resolve_measures(loaded, measure or (), by=None, bootstrap=bootstrap)
    sources = ScoreSources(
        model, reduce or (), scores or (), [read_columns(text) for text in score_columns or ()], region,
        load_cli_engine(engine, address), partial, tags,
    )  # fmt: skip
    with show_progress() as progress:
        all_scores = collect_scores(whole, sources, measures, minimum=2, progress=progress)
    tests = equivalence(loaded, all_scores, measure or (), margin=margin, alpha=alpha, bootstrap=bootstrap)
    rows = [test.row() for test in tests]
    if as_json:
        print_json(rows)
    else:
        _print_tests(tests, display)
    inputs = RunInputs([make_suite_input(whole, suite, reading)], model, sources.files, sources.columns)
    record_run("equivalence", rows, [test.signature for test in tests], inputs=inputs)


def _print_tests(tests: Sequence[ModelEquivalence], display: Display) -> None:
    print_table(build_equivalence_table(tests, display.style))
    lines = [f"{name_measure(test.measure)}: {test.reason}" for test in tests if test.reason]
    lines += [f"{name_measure(test.measure)}: {describe_test(test)}" for test in tests if test.method]
    # What holds for all of them is said once.
    shared = [note for note in tests[0].notes if all(note in test.notes for test in tests)]
    lines += shared
    lines += [f"{name_measure(test.measure)}: {note}" for test in tests for note in test.notes if note not in shared]
    print_notes(lines)
    print_signatures((test.signature for test in tests), display)
