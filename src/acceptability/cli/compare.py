"""``acceptability compare``: differences of models on a suite; ``correlate``: their correlations; ``link``: MORCELA."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from acceptability.api.comparison import (
    DISCORDANT_COLUMNS,
    PAIRS,
    Comparison,
    ScoreSources,
    SignificanceTest,
    check_correlations,
    collect_compared_units,
    collect_discordant_rows,
    collect_scores,
    compare,
    correlate,
    select_contrast_measures,
)
from acceptability.api.evaluation import resolve_measures
from acceptability.api.linking import LINKS, LinkResampling, MorcelaFit, link
from acceptability.cli.console import (
    AddressOption,
    ByOption,
    EngineOption,
    IntervalOption,
    JsonOption,
    MarksOption,
    MeasuresOption,
    ModelsOption,
    PartialOption,
    ReductionsOption,
    RegionOption,
    ResampleByOption,
    ResamplesOption,
    SeedOption,
    SuiteArgument,
    SuiteColumnsOption,
    UnitOption,
    WhereOption,
    load_cli_engine,
    load_cli_suite,
    make_bootstrap,
    make_suite_input,
    print_json,
    print_message,
    print_rows,
    print_table,
    read_columns,
    read_where,
    record_run,
    show_progress,
)
from acceptability.cli.report import ReportFileOption, check_report, write_run_report
from acceptability.report.terminal import (
    build_compared_values_table,
    build_comparison_table,
    build_correlation_table,
    build_pairs_table,
    describe_areas,
    describe_intervals,
    describe_tests,
    format_interval,
    format_p_value,
)
from acceptability.stats.samples import check_choice
from acceptability.store.runs import RunInputs
from acceptability.text.io import check_rows_file, write_spreadsheet

DrawsOption = Annotated[
    int,
    typer.Option(
        "--draws", help="The random swaps of the permutation test, if there are too many to enumerate; 0 for none."
    ),
]
OptionalModelsOption = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="A model: KIND:PATH(option=value), or a name. Repeatable."),
]
ScoreFilesOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--scores", help="A file of scores instead of a model: sentence_id, score, and optionally model. Repeatable."
    ),
]
ScoreColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--score-columns", help="The columns of a file of scores: id=…,score=… [,text=…,model=…]. Repeatable."
    ),
]


def command(
    suite: SuiteArgument,
    model: OptionalModelsOption = None,
    scores: ScoreFilesOption = None,
    score_columns: ScoreColumnsOption = None,
    partial: PartialOption = False,
    where: WhereOption = None,
    reduce: ReductionsOption = None,
    measure: MeasuresOption = None,
    by: ByOption = None,
    region: RegionOption = None,
    resamples: ResamplesOption = 1000,
    resample_by: ResampleByOption = None,
    draws: DrawsOption = 2000,
    seed: SeedOption = 0,
    interval: IntervalOption = "auto",
    against: Annotated[
        str, typer.Option("--pairs", help="all: every two models; first: the first against each of the others.")
    ] = "all",
    pairs: Annotated[
        Path | None,
        typer.Option("--differing", help="Write the contrasts that only one of two models gets right: .csv or .jsonl."),
    ] = None,
    columns: SuiteColumnsOption = None,
    marks: MarksOption = None,
    unit: UnitOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    report: ReportFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every two models on the same rows: differences, intervals and tests, corrected for their number."""
    check_report(report)
    check_choice("--pairs", against, PAIRS)
    if pairs:
        check_rows_file(pairs)
    bootstrap = make_bootstrap(resamples, resample_by, seed, interval)
    # Only for its check of --draws, which must fail before a model is run.
    SignificanceTest(bootstrap, draws)
    # Everything that can be wrong with the options is checked before the models run, which may take hours.
    tags = read_where(where)
    whole = load_cli_suite(suite, columns, marks, unit)
    loaded = whole.filter(**tags)
    measures = resolve_measures(loaded, measure or (), by=by, bootstrap=bootstrap)
    if pairs:
        select_contrast_measures(measures)
    sources = ScoreSources(
        model or (), reduce or (), scores or (), _read_score_columns(score_columns), region,
        load_cli_engine(engine, address), partial, tags,
    )  # fmt: skip
    with show_progress() as progress:
        all_scores = collect_scores(whole, sources, measures, minimum=2, progress=progress)
    comparisons = compare(loaded, all_scores, measure=measure, by=by, pairs=against, bootstrap=bootstrap, draws=draws)
    rows = [comparison.row() for comparison in comparisons]
    if as_json:
        print_json(rows)
    else:
        _print_comparisons(comparisons)
    if pairs:
        discordant_rows = collect_discordant_rows(loaded, measures, all_scores)
        write_spreadsheet(pairs, discordant_rows, header=DISCORDANT_COLUMNS)
        print_message(f"{len(discordant_rows)} contrasts that only one of the two models gets right: {pairs}")
    inputs = RunInputs([make_suite_input(whole, suite, columns, marks)], model or (), sources.files, sources.columns)
    signatures = [comparison.signature for comparison in comparisons]
    run = record_run("compare", rows, signatures, collect_compared_units(comparisons), inputs)
    write_run_report(report, run, [loaded])


def correlate_command(
    suite: SuiteArgument,
    model: OptionalModelsOption = None,
    scores: ScoreFilesOption = None,
    score_columns: ScoreColumnsOption = None,
    partial: PartialOption = False,
    where: WhereOption = None,
    reduce: ReductionsOption = None,
    of: Annotated[
        str,
        typer.Option("--of", help="scores, over sentences, or gaps (score of better minus worse), over contrasts."),
    ] = "scores",
    kind: Annotated[str, typer.Option("--kind", help="pearson, spearman or kendall.")] = "pearson",
    resample_by: ResampleByOption = None,
    region: RegionOption = None,
    columns: SuiteColumnsOption = None,
    marks: MarksOption = None,
    unit: UnitOption = None,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: JsonOption = False,
) -> None:
    """Correlate the scores of models with human ratings and with each other."""
    tags = read_where(where)
    whole = load_cli_suite(suite, columns, marks, unit)
    loaded = whole.filter(**tags)
    check_correlations(loaded, of, kind, resample_by)
    sources = ScoreSources(
        model or (), reduce or (), scores or (), _read_score_columns(score_columns), region,
        load_cli_engine(engine, address), partial, tags,
    )  # fmt: skip
    with show_progress() as progress:
        all_scores = collect_scores(whole, sources, progress=progress)
    correlations = correlate(loaded, all_scores, of=of, kind=kind, resample_by=resample_by)
    rows = [correlation.row() for correlation in correlations]
    if as_json:
        print_json(rows)
    else:
        print_table(build_correlation_table(correlations, f"{kind} of {of}, {loaded.name}"))
        for pair in correlations:
            if pair.reason:
                print_message(f"{pair.first}, {pair.second}: {pair.reason}")
        # All correlations are over the same rows, and share their notes and signature.
        signature = correlations[0].signature
        described = (*describe_intervals({signature: ""}), *describe_tests({signature: ""}))
        for line in (*described, *correlations[0].notes, signature):
            print_message(line)
    inputs = RunInputs([make_suite_input(whole, suite, columns, marks)], model or (), sources.files, sources.columns)
    record_run("correlate", rows, [correlations[0].signature], inputs=inputs)


def _read_score_columns(texts: Sequence[str] | None) -> list[dict[str, str]]:
    return [read_columns(text) for text in texts or ()]


def _print_comparisons(comparisons: Sequence[Comparison]) -> None:
    if len({name for comparison in comparisons for name in (comparison.first, comparison.second)}) > 2:
        print_table(build_compared_values_table(comparisons))
        print_table(build_pairs_table(comparisons))
    else:
        print_table(build_comparison_table(comparisons))
    lines = [
        f"{comparison.measure} {comparison.group or 'all'}: {comparison.reason}"
        for comparison in comparisons
        if comparison.reason
    ]
    lines += [
        f"{comparison.measure} {comparison.group or 'all'}: {note}"
        for comparison in comparisons
        for note in comparison.notes
    ]
    signatures = {comparison.signature: comparison.measure for comparison in comparisons if not comparison.group}
    # Groups repeat the notes of the whole.
    # The correction of groups is in their signatures, that of pairs also in those over all rows.
    tested = {comparison.signature: comparison.measure for comparison in comparisons if comparison.p is not None}
    lines = [
        *describe_intervals(signatures),
        *describe_tests(tested or signatures),
        *describe_areas(comparisons),
        *lines,
    ]
    for line in dict.fromkeys([*lines, *signatures]):
        print_message(line)


def link_command(
    suite: SuiteArgument,
    model: ModelsOption,
    unigrams: Annotated[
        str, typer.Option("--unigrams", help="The table of unigram frequencies: wordfreq:en, or a file.")
    ],
    by: Annotated[
        str | None,
        typer.Option(
            "--by",
            help="The tag whose sentences stay in one fold and are resampled together, such as item; row for none. "
            "Default: the suite's sampling unit.",
        ),
    ] = None,
    folds: Annotated[int, typer.Option("--folds", help="The number of folds of the cross-validation.")] = 10,
    resamples: ResamplesOption = 1000,
    draws: DrawsOption = 2000,
    seed: SeedOption = 0,
    columns: SuiteColumnsOption = None,
    unit: UnitOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit MORCELA to ratings, cross-validate it along with SLOR and the log-probability, and test it against SLOR."""
    loaded = load_cli_suite(suite, columns, unit=unit)
    resampling = LinkResampling(make_bootstrap(resamples, None, seed), draws)
    with show_progress() as progress:
        fits = link(loaded, model, unigrams, by=by, folds=folds, seed=seed, resampling=resampling, progress=progress)
    # The spec as it was typed, which is what users recognise in a table.
    rows = [{"model": name, **fit.row()} for name, fit in fits.items()]
    if as_json:
        print_json(rows)
    else:
        _print_fits(fits, folds)
    # The table of unigrams is a file, unless it is one of wordfreq's.
    files = [Path(unigrams)] if Path(unigrams).is_file() else []
    inputs = RunInputs([make_suite_input(loaded, suite, columns)], model, files)
    record_run("link", rows, [fit.signature for fit in fits.values()], inputs=inputs)


def _print_fits(fits: Mapping[str, MorcelaFit], folds: int) -> None:
    """Print the constants and the correlations, then MORCELA against SLOR, and the notes below."""
    header = ["model", "beta", "gamma", *LINKS, "n"]
    rows = [{"model": name, **fit.row()} for name, fit in fits.items()]
    print_rows(header, [{name: _format_link_cell(row[name]) for name in header} for row in rows])
    print_rows(
        ["model", "morcela − slor", "95 % interval", "p"],
        [
            {
                "model": name,
                "morcela − slor": f"{fit.difference.value:+.4f}",
                "95 % interval": format_interval(fit.difference.low, fit.difference.high),
                "p": format_p_value(fit.difference.p),
            }
            for name, fit in fits.items()
        ],
    )
    signatures = {fit.signature: name for name, fit in fits.items()}
    print_message(f"{', '.join(LINKS)}: correlation with ratings of sentences not fitted to, mean of {folds} folds")
    lines = [*describe_intervals(signatures)]
    for name, fit in fits.items():
        hint = f'score other suites with --reduce "{fit.reduction!r}"'
        # What a model does not know says nothing about the others.
        notes = [f"{name}: {note}" for note in fit.notes] if len(fits) > 1 else fit.notes
        lines += [*fit.difference.notes, *notes, hint, fit.signature]
    for line in dict.fromkeys(lines):
        print_message(line)


def _format_link_cell(cell: object) -> object:
    return f"{cell:.4f}" if isinstance(cell, float) else cell
