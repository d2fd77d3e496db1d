"""``acceptability compare``: differences of models; ``correlate``: their correlations; ``link``: fitted scores."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

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
from acceptability.api.linking import LINKS, SLLN_LINKS, LinkResampling, MorcelaFit, SllnFit, link
from acceptability.cli.console import (
    DEFAULT_READING,
    AddressOption,
    ByOption,
    Display,
    EngineOption,
    IntervalOption,
    JsonOption,
    MeasuresOption,
    ModelsOption,
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
    print_message,
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
from acceptability.cli.report import ReportFileOption, check_report, write_run_report
from acceptability.report.display_names import NumberFormat, name_group, name_measure
from acceptability.report.terminal import (
    build_compared_values_table,
    build_comparison_table,
    build_correlation_table,
    build_pairs_table,
    describe_areas,
    describe_intervals,
    describe_tests,
    format_p_value,
)
from acceptability.report.text_table import make_table
from acceptability.stats.samples import check_choice
from acceptability.store.runs import RunInputs
from acceptability.text.io import check_rows_file, write_spreadsheet

DrawsOption = Annotated[
    int,
    typer.Option(
        "--draws", help="The random swaps of the permutation test, if there are too many to enumerate; 0 for none."
    ),
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


@with_display
@with_reading
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
    reading: SuiteReading = DEFAULT_READING,
    engine: EngineOption = "local",
    address: AddressOption = None,
    report: ReportFileOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Compare every two models on the same rows: differences, intervals and tests, corrected for their number."""
    model = complete_model_specs(model)
    check_report(report)
    check_choice("--pairs", against, PAIRS)
    if pairs:
        check_rows_file(pairs)
    bootstrap = make_bootstrap(resamples, resample_by, seed, interval)
    # Only for its check of --draws, which must fail before a model is run.
    SignificanceTest(bootstrap, draws)
    # Everything that can be wrong with the options is checked before the models run, which may take hours.
    tags = read_where(where)
    whole = load_cli_suite(suite, reading)
    loaded = whole.filter(**tags)
    measures = resolve_measures(loaded, measure or (), by=by, bootstrap=bootstrap)
    if pairs:
        select_contrast_measures(measures)
    sources = ScoreSources(
        model, reduce or (), scores or (), _read_score_columns(score_columns), region,
        load_cli_engine(engine, address), partial, tags,
    )  # fmt: skip
    with show_progress() as progress:
        all_scores = collect_scores(whole, sources, measures, minimum=2, progress=progress)
    comparisons = compare(loaded, all_scores, measure=measure, by=by, pairs=against, bootstrap=bootstrap, draws=draws)
    rows = [comparison.row() for comparison in comparisons]
    if as_json:
        print_json(rows)
    else:
        _print_comparisons(comparisons, display)
    if pairs:
        discordant_rows = collect_discordant_rows(loaded, measures, all_scores)
        write_spreadsheet(pairs, discordant_rows, header=DISCORDANT_COLUMNS)
        print_message(f"{len(discordant_rows)} contrasts that only one of the two models gets right: {pairs}")
    inputs = RunInputs([make_suite_input(whole, suite, reading)], model, sources.files, sources.columns)
    signatures = [comparison.signature for comparison in comparisons]
    run = record_run("compare", rows, signatures, collect_compared_units(comparisons), inputs)
    write_run_report(report, run, [loaded])


@with_display
@with_reading
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
    reading: SuiteReading = DEFAULT_READING,
    engine: EngineOption = "local",
    address: AddressOption = None,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Correlate the scores of models with human ratings and with each other."""
    model = complete_model_specs(model)
    tags = read_where(where)
    whole = load_cli_suite(suite, reading)
    loaded = whole.filter(**tags)
    check_correlations(loaded, of, kind, resample_by)
    sources = ScoreSources(
        model, reduce or (), scores or (), _read_score_columns(score_columns), region,
        load_cli_engine(engine, address), partial, tags,
    )  # fmt: skip
    with show_progress() as progress:
        all_scores = collect_scores(whole, sources, progress=progress)
    correlations = correlate(loaded, all_scores, of=of, kind=kind, resample_by=resample_by)
    rows = [correlation.row() for correlation in correlations]
    if as_json:
        print_json(rows)
    else:
        title = f"{loaded.name}: {_CORRELATIONS[kind]} of {of}"
        print_table(build_correlation_table(correlations, title, display.style))
        # All correlations are over the same rows, and share their notes and signature.
        signature = correlations[0].signature
        described = (*describe_intervals({signature: ""}), *describe_tests({signature: ""}))
        reasons = [f"{pair.first}, {pair.second}: {pair.reason}" for pair in correlations if pair.reason]
        print_notes([*reasons, *described, *correlations[0].notes])
        print_signatures([signature], display)
    inputs = RunInputs([make_suite_input(whole, suite, reading)], model, sources.files, sources.columns)
    record_run("correlate", rows, [correlations[0].signature], inputs=inputs)


_CORRELATIONS = {"pearson": "Pearson's r", "spearman": "Spearman's ρ", "kendall": "Kendall's τ"}


def _read_score_columns(texts: Sequence[str] | None) -> list[dict[str, str]]:
    return [read_columns(text) for text in texts or ()]


def _print_comparisons(comparisons: Sequence[Comparison], display: Display) -> None:
    if len({name for comparison in comparisons for name in (comparison.first, comparison.second)}) > 2:
        print_table(
            build_compared_values_table(comparisons, display.style), build_pairs_table(comparisons, display.style)
        )
    else:
        print_table(build_comparison_table(comparisons, display.style))
    signatures = {row.signature: name_measure(row.measure) for row in comparisons if not row.group}
    # Groups repeat the notes of the whole.
    # The correction of groups is in their signatures, that of pairs also in those over all rows.
    tested = {row.signature: name_measure(row.measure) for row in comparisons if row.p is not None}
    print_notes(
        [
            *describe_intervals(signatures),
            *describe_tests(tested or signatures),
            *_describe_disagreement(comparisons),
            *describe_areas(comparisons),
            *(f"{_name_row(row)}: {row.reason}" for row in comparisons if row.reason),
            *_collect_notes(comparisons),
        ]
    )
    print_signatures(signatures, display)


def _describe_disagreement(comparisons: Sequence[Comparison]) -> list[str]:
    """Return a note if the interval of some difference excludes 0 and its p is not below .05, or the reverse."""
    for row in comparisons:
        if (
            row.p is not None
            and row.low is not None
            and row.high is not None
            and (row.low > 0 or row.high < 0) != (row.p < 0.05)
        ):
            return [
                "An interval and a p may disagree near .05 (here they do), since they are computed in different ways: "
                "choose before the study which of the two decides."
            ]
    return []


def _collect_notes(comparisons: Sequence[Comparison]) -> Iterator[str]:
    """Yield each note, with the comparisons that it is about unless these are all over all rows."""
    overall = [row for row in comparisons if not row.group]
    for note in dict.fromkeys(note for row in comparisons for note in row.notes):
        if all(note in row.notes for row in overall):
            yield note
        else:
            yield from (f"{_name_row(row)}: {note}" for row in comparisons if note in row.notes)


def _name_row(row: Comparison) -> str:
    return ", ".join([name_measure(row.measure), *([name_group(row.group)] if row.group else [])])


@with_display
@with_reading
def link_command(
    suite: SuiteArgument,
    model: ModelsOption,
    unigrams: Annotated[
        str | None,
        typer.Option("--unigrams", help="For MORCELA, the table of unigram frequencies: wordfreq:en, or a file."),
    ] = None,
    fit: Annotated[str, typer.Option("--fit", help="What is fitted: morcela or slln_lp.")] = "morcela",
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
    reading: SuiteReading = DEFAULT_READING,
    as_json: JsonOption = False,
    *,
    display: Display,
) -> None:
    """Fit MORCELA or SLLN-LP to ratings, cross-validate it along with unfitted scores, and test it against one."""
    model = complete_model_specs(model)
    loaded = load_cli_suite(suite, reading)
    resampling = LinkResampling(make_bootstrap(resamples, None, seed), draws)
    with show_progress() as progress:
        # The two kinds of fits have the same interface, and differ in their constants and baselines.
        options: dict[str, Any] = {"fit": fit, "by": by, "folds": folds, "seed": seed, "resampling": resampling}
        fits: Mapping[str, MorcelaFit | SllnFit] = link(loaded, model, unigrams, **options, progress=progress)
    # The spec as it was typed, which is what users recognise in a table.
    rows = [{"model": name, **one.row()} for name, one in fits.items()]
    if as_json:
        print_json(rows)
    else:
        _print_fits(fits, fit, folds, display)
    # The table of unigrams is a file, unless it is one of wordfreq's.
    files = [Path(unigrams)] if unigrams and Path(unigrams).is_file() else []
    inputs = RunInputs([make_suite_input(loaded, suite, reading)], model, files)
    record_run("link", rows, [one.signature for one in fits.values()], inputs=inputs)


def _print_fits(fits: Mapping[str, MorcelaFit | SllnFit], kind: str, folds: int, display: Display) -> None:
    """Print the constants and the correlations, then the difference from the first baseline, and the notes below."""
    style = NumberFormat(display.style.digits)
    rows = [{"model": name, **fit.row()} for name, fit in fits.items()]
    constants, links = _FITS[kind]
    numbers = [*constants, *links]
    fitted, baseline = (_LINK_NAMES[name] for name in links[:2])
    print_table(
        make_table(
            ["model", *constants, *(_LINK_NAMES[name] for name in links), "n"],
            [[row["model"], *(_format_link_cell(row[name], style) for name in numbers), row["n"]] for row in rows],
        ),
        make_table(
            ["model", f"{fitted} − {baseline}", "95 % interval", "p"],
            [
                [
                    name,
                    style.signed(fit.difference.value),
                    style.interval(fit.difference.low, fit.difference.high),
                    format_p_value(fit.difference.p),
                ]
                for name, fit in fits.items()
            ],
        ),
    )
    signatures = {fit.signature: name for name, fit in fits.items()}
    names = ", ".join(_LINK_NAMES[name] for name in links)
    lines = [f"{names}: correlation with ratings of sentences not fitted to, mean of {folds} folds"]
    lines += describe_intervals(signatures)
    for name, fit in fits.items():
        hint = f'score other suites with --reduce "{fit.reduction!r}"'
        # What a model does not know says nothing about the others.
        notes = [f"{name}: {note}" for note in fit.notes] if len(fits) > 1 else fit.notes
        lines += [*fit.difference.notes, *notes, hint]
    print_notes(lines)
    print_signatures(signatures, display)


_LINK_NAMES = {"morcela": "MORCELA", "slln_lp": "SLLN-LP", "slor": "SLOR", "mean_lp": "mean LP", "lp": "LP"}

# The fitted constants and the compared functions of each.
_FITS = {"morcela": (("beta", "gamma"), LINKS), "slln_lp": (("alpha",), SLLN_LINKS)}


def _format_link_cell(cell: object, style: NumberFormat) -> str:
    return style.number(cell) if isinstance(cell, float) else str(cell)
