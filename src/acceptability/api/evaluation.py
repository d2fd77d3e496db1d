"""Evaluation: from models or scores to results, the values of measures with intervals, overall and by group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.api.interface.arguments import (
    MeasureLike,
    ModelLike,
    ReductionLike,
    SuiteLike,
    accept_former_arguments,
    as_bootstrap,
    as_engine,
    as_list,
    as_measures,
    as_model,
    as_models,
    as_reduction,
    as_suite,
    as_suites,
    merge_columns,
)
from acceptability.api.interface.results import Results
from acceptability.api.remarks import collect_remarks, remark_on_scores, remark_on_suite
from acceptability.api.scoring import ProgressCallback, score_reductions
from acceptability.api.vocabulary_coverage import describe_decided_rows, find_decided_contrasts
from acceptability.errors import MeasureError, ScoreError, SuiteError, Undefined, suggest_name
from acceptability.measures import choose_default_measures
from acceptability.measures.rows import check_measurable, collect_row_tags, find_rows_with_tag, ratings_are_z
from acceptability.protocols import Engine, Measure
from acceptability.reductions import LP
from acceptability.specs import build_signature, parse_signature
from acceptability.stats.bootstrap import Bootstrap, Interval, parse_bootstrap
from acceptability.stats.intervals import bootstrap_interval, bootstrap_macro_interval
from acceptability.stats.resampling import count_units_of_groups
from acceptability.stats.sampling_units import (
    fit_unit_to_groups,
    fit_unit_to_rows,
    note_few_units,
    resolve_sampling_unit,
    sign_unit_count,
)
from acceptability.store.scorefile import read_scores
from acceptability.timings import time_stage
from acceptability.types import SINGLE_ROWS, Result, Scores, Suite, Units, restrict_to_scored


@accept_former_arguments(models="model", reductions="reduce", measures="measure")
def evaluate(
    suite: SuiteLike | Sequence[SuiteLike],
    model: ModelLike | Sequence[ModelLike],
    *,
    reduce: ReductionLike | Sequence[ReductionLike] | None = None,
    measure: MeasureLike | Sequence[MeasureLike] | None = None,
    by: str | None = None,
    region: str | None = None,
    resamples: int | None = None,
    resample_by: str | None = None,
    seed: int | None = None,
    interval: str | None = None,
    bootstrap: Bootstrap | None = None,
    columns: Mapping[str, str] | None = None,
    unit: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    **column_names: str,
) -> Results:
    """Return the value of each measure for each model on one or several suites.

    Args:
        suite: A suite, its name (of a paradigm too: ``wh_island``), a file or a data frame; or a list of these.
        model: A model or its spec, or a list of them.
        reduce: Reductions or their specs; by default ``lp`` for language models and ``log_odds`` for classifiers.
        measure: Measures or their specs; by default those that apply to the suite.
        by: A tag; adds the results for each of its values, and their macro mean.
        region: Score only the region of this name.
        resamples: The number of bootstrap resamples, 1000 by default; 0 for no interval that needs them.
        resample_by: The tag of the sampling units that are resampled, by default the suite's; ``row`` for single rows.
        seed: The seed of the bootstrap, 0 by default.
        interval: The method of the intervals, by default ``auto``.
        bootstrap: These four in one object.
        columns: For a table or a data frame: the names of its columns by their meaning, ``{"text": "Sentence"}``.
        unit: The sampling unit, if not that of the suite.
        engine: Where the models run: ``local``, or on a cluster, ``ray(address='HOST:PORT')``.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
        column_names: Columns in a shorter form: ``good="g", bad="b"``.

    Raises:
        AcceptabilityError: An argument cannot be meant so; the message says what was expected.

    >>> evaluate("starter", "uniform", measure="PairAccuracy(ties=0.5)")[0].n
    383
    """
    return evaluate_suites(
        as_suites(suite, columns=merge_columns(columns, column_names), unit=unit),
        as_models(model),
        reductions=as_list(reduce),
        measures=as_list(measure),
        by=by,
        region=region,
        bootstrap=as_bootstrap(bootstrap, resamples, resample_by, seed, interval),
        engine=engine,
        progress=progress,
    )


def evaluate_suites(
    suites: Sequence[Suite],
    models: Sequence[ModelLike],
    *,
    reductions: Sequence[ReductionLike] = (),
    measures: Sequence[MeasureLike] = (),
    by: str | None = None,
    region: str | None = None,
    bootstrap: Bootstrap | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Results:
    """Return the value of each measure for each model on several suites, sorted by suite.

    All arguments are checked before anything is scored, and each model is loaded once. The arguments are
    those of ``evaluate``, as lists.
    """
    # A wrong tag or measure for the last suite has to be reported before hours are spent on the first.
    by_region: list[bool] = []
    for suite in suites:
        with time_stage("measure"):
            suite_measures = resolve_measures(suite, measures, by=by, bootstrap=bootstrap)
        by_region.append(needs_regions(suite_measures, reductions, region))
    # Opening a model reads its configuration but not its weights: a misspelt last model fails now, not after hours.
    for model in models:
        with time_stage("open model"):
            as_model(model)
    results: list[list[Result]] = [[] for _ in suites]
    runner = as_engine(engine)
    reduction_specs: list[ReductionLike | None] = [*reductions] or [None]
    # Models in the outer loop, so that one at a time is in memory. `loaded` keeps it alive between its suites, since
    # loaded models are shared only as long as somebody refers to them.
    for model in models:
        _, loaded = as_model(model)
        for suite, needs_parts, suite_results in zip(suites, by_region, results, strict=True):
            for scores in score_reductions(
                suite, model, reduction_specs, region=region, by_region=needs_parts, engine=runner, progress=progress
            ):
                with time_stage("measure"):
                    suite_results += measure_scores(suite, scores, measures, by=by, bootstrap=bootstrap)
        del loaded
    return Results((result for suite_results in results for result in suite_results), suites)


def needs_regions(measures: Sequence[Measure], reductions: Sequence[ReductionLike], region: str | None) -> bool:
    """Tell whether measures need region scores; raise an error for arguments that exclude these."""
    if not any(measure.needs == "predictions" for measure in measures):
        return False
    # Formulas relate several regions of a sentence to each other.
    if region:
        raise MeasureError(f"predictions need the surprisal of every region, but only {region!r} is scored")
    if other := [reduction for reduction in reductions if not isinstance(as_reduction(reduction), LP)]:
        raise MeasureError(f"predictions are about surprisal, which lp gives; omit the reduction {other[0]}")
    return True


def measure_file(
    suite: Suite | str,
    path: Path,
    measures: MeasureLike | Sequence[MeasureLike] | None = None,
    *,
    columns: Sequence[Mapping[str, str]] = ({},),
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
    partial: bool = False,
    where: Mapping[str, str] | None = None,
) -> Results:
    """Return the value of each measure for each column of scores in a file.

    Args:
        suite: A suite or its name.
        path: A file of scores, see ``read_scores``.
        measures: Measures or their specs; by default those that apply to the suite.
        columns: Which column has which meaning, one mapping per column of scores.
        by: A tag; adds the results for each of its values, and their macro mean.
        bootstrap: The bootstrap of the intervals; by default it resamples the suite's sampling unit.
        partial: Whether sentences without a score are left out, which a note counts; otherwise they are an error.
        where: Values of tags: only this part of the suite is measured.
    """
    suite = as_suite(suite)
    part = suite.filter(**(where or {}))
    all_scores = read_scores(path, suite, columns, partial=partial, where=where)
    return Results(
        (
            result
            for scores in all_scores
            for result in measure_scores(part, scores, measures, by=by, bootstrap=bootstrap)
        ),
        [part],
    )


@accept_former_arguments(measures="measure")
def measure(
    suite: SuiteLike,
    scores: Scores,
    measure: MeasureLike | Sequence[MeasureLike] | None = None,
    *,
    by: str | None = None,
    resamples: int | None = None,
    resample_by: str | None = None,
    seed: int | None = None,
    interval: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> Results:
    """Return the value of each measure for given scores, in the requested order.

    Args:
        suite: A suite, its name, a file or a data frame.
        scores: The scores of its sentences, from a model or from a file. Of partial scores, only the sentences that
            have one are measured.
        measure: Measures or their specs; by default those that apply to the suite.
        by: A tag; adds the results for each of its values, and their macro mean.
        resamples, resample_by, seed, interval: The settings of the bootstrap, see ``evaluate``.
        bootstrap: These four in one object.

    >>> from acceptability import Contrast, Sentence
    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> measure(suite, Scores({"a": -2.0, "b": -3.0}, "toy"), "PairAccuracy")[0].value
    1.0
    """
    settings = as_bootstrap(bootstrap, resamples, resample_by, seed, interval)
    return measure_scores(suite, scores, measure, by=by, bootstrap=settings)


def measure_scores(
    suite: SuiteLike,
    scores: Scores,
    measures: MeasureLike | Sequence[MeasureLike] | None = None,
    *,
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> Results:
    """Return the value of each measure for given scores, in the requested order.

    Args:
        suite: A suite or its name.
        scores: The scores of its sentences, from a model or from a file. Of partial scores, only the sentences that
            have one are measured.
        measures: Measures or their specs; by default those that apply to the suite.
        by: A tag; adds the results for each of its values, and their macro mean.
        bootstrap: The bootstrap of the intervals; by default it resamples the suite's sampling unit.
    """
    if not isinstance(scores, Scores):
        raise ScoreError(f"measure: expected Scores, such as score(suite, model) gives, not {type(scores).__name__}")
    suite = restrict_to_scored(as_suite(suite), [scores])
    results: list[Result] = []
    for requested in resolve_measures(suite, measures, by=by, bootstrap=bootstrap):
        resampling, unit_notes = choose_resampling(suite, requested, bootstrap)
        loaded_measure = requested.resolve([scores], resampling.by or "")
        try:
            units = loaded_measure.units(suite, scores)
        # An undefined measure gives a result with a reason: the other measures must not be lost.
        except Undefined as error:
            results.append(_undefined_result(suite, scores, loaded_measure, resampling, str(error)))
            continue
        overall = _compute_result(suite, scores, loaded_measure, units, None, resampling)
        results.append(replace(overall, notes=(*overall.notes, *unit_notes)))
        if by:
            results += _measure_groups(suite, scores, loaded_measure, units, by, resampling)
    return Results(results, [suite])


def resolve_measures(
    suite: Suite,
    measures: MeasureLike | Sequence[MeasureLike] | None,
    *,
    by: str | None = None,
    bootstrap: Bootstrap | None = None,
) -> list[Measure]:
    """Return the requested measures, or those that apply to the suite; raise an error if one does not apply.

    Args:
        by: The tag to group by, which has to exist on the measures' rows.
        bootstrap: The bootstrap of the intervals, the tags of which have to exist on them too.
    """
    requested = as_measures(measures)
    for measure in requested:
        check_measurable(suite, measure)
    resolved = requested or choose_default_measures(suite)
    if not resolved:
        raise MeasureError(
            f"suite {suite.name!r} has neither contrasts, nor labels of both classes, nor ratings, nor predictions"
        )
    resampled_tags = (bootstrap.by, bootstrap.within) if bootstrap else ()
    for tag in filter(None, (by, *resampled_tags)):
        for measure in resolved if tag != SINGLE_ROWS else ():
            _check_tag(suite, tag, measure)
    return resolved


def choose_resampling(suite: Suite, measure: Measure, bootstrap: Bootstrap | None) -> tuple[Bootstrap, tuple[str, ...]]:
    """Return the bootstrap with the sampling unit for the rows of a measure, and notes where that is not the suite's.

    Args:
        bootstrap: The bootstrap that was asked for; None, or one without a unit, for that of the suite.
    """
    requested = bootstrap or Bootstrap()
    resolved = resolve_sampling_unit(requested, suite)
    if requested.by is None and resolved.by:
        for tag in suite.unit_tags:
            row_kind, has_tag = find_rows_with_tag(suite, measure, tag)
            if has_tag.all():
                continue
            note = f"{row_kind} have no common {tag!r}, the suite's sampling unit: they are resampled one by one"
            return replace(resolved, by="", within=""), (note,)
    if not resolved.by and suite.unit:
        return resolved, (f"single rows are resampled, and not the suite's sampling unit, {suite.unit!r}",)
    return resolved, ()


def _check_tag(suite: Suite, tag: str, measure: Measure) -> None:
    """Raise an error for a tag that no row of a measure carries."""
    if not find_rows_with_tag(suite, measure, tag)[1].any():
        row_kind, rows = collect_row_tags(suite, measure)
        known_tags = sorted({name for tags in rows for name in tags})
        raise SuiteError(
            f"the {row_kind} of suite {suite.name!r} have no tag {tag!r}; they have "
            f"{', '.join(known_tags) or 'none'}.{suggest_name(tag, known_tags)}"
        )


def _measure_groups(
    suite: Suite, scores: Scores, measure: Measure, units: Units, by: str, resampling: Bootstrap
) -> Iterator[Result]:
    """Yield the result for each value of a tag, and then their mean."""
    parts = {name: units.take(rows) for name, rows in group_rows(suite, measure, units, by).items()}
    results, decided = [], find_decided_contrasts(suite, scores.unknown_words)
    for name, part in parts.items():
        result = _compute_result(suite, scores, measure, part, f"{by}={name}", resampling)
        results.append(replace(result, notes=(*describe_decided_rows(part, decided), *result.notes)))
    yield from results
    if results:
        macro = _macro_average(results, list(parts.values()), len(units), measure, by, resampling)
        notes = (GROUP_THRESHOLD_NOTE,) if units.refit and resampling.resamples else ()
        yield replace(macro, notes=(*macro.notes, *notes))


def group_rows(suite: Suite, measure: Measure, units: Units, by: str) -> dict[str, NDArray[np.int64]]:
    """Return the row numbers of each value of a tag, in the order of first rows; empty if no row has any tags."""
    values, codes = units.encode_tag(by)
    # Sorted once, and stably: the rows of each group keep their order.
    order = np.argsort(codes, kind="stable")[np.count_nonzero(codes < 0) :]
    parts = np.split(order, np.flatnonzero(np.diff(codes[order])) + 1) if len(order) else []
    groups = {values[codes[rows[0]]]: rows for rows in sorted(parts, key=lambda rows: int(rows[0]))}
    # The suite's rows have the tag, or _check_tag would have refused it; but a measure may make rows with other tags.
    if not groups and any(units.tags):
        known_tags = ", ".join(sorted({name for tags in units.tags for name in tags}))
        raise SuiteError(f"no row of {measure!r} on suite {suite.name!r} has the tag {by!r}; they have {known_tags}.")
    return groups


def _macro_average(
    results: Sequence[Result], parts: Sequence[Units], n: int, measure: Measure, by: str, resampling: Bootstrap
) -> Result:
    """Return the mean of the groups' results, with a note on rows without the tag, which are in no group."""
    counted = sum(map(len, parts))
    undefined_groups = [str(result.group) for result in results if result.value is None]
    # A mean over only the defined groups would compare models on different groups, so one undefined group decides.
    values = [result.value for result in results if result.value is not None]
    row_resampling = fit_unit_to_groups(resampling, parts, by)
    with time_stage("resample"):
        bounds = Interval() if undefined_groups else bootstrap_macro_interval(measure, parts, row_resampling)
    # All fields but these are those of the groups, so the signature of the first group is the template.
    fields = parse_signature(results[0].signature) | {"group": f"macro({by})", "n": str(counted)}
    if "units" in fields:
        fields["units"] = str(count_units_of_groups(parts, resampling.by))
    fields["ci"] = resampling.signature
    return replace(
        results[0],
        group=f"macro({by})",
        value=None if undefined_groups else float(np.mean(values)),
        low=bounds.low,
        high=bounds.high,
        n=counted,
        signature=sign_interval_method(build_signature(fields.pop("measure"), fields), bounds),
        reason=f"undefined for {', '.join(undefined_groups)}" if undefined_groups else None,
        notes=(*describe_ungrouped_rows(n - counted, by), *_interval_notes(bounds)),
        units=None,
    )


GROUP_THRESHOLD_NOTE = "groups have the thresholds of the whole suite, which their intervals do not fit again"


def describe_ungrouped_rows(rows: int, by: str) -> tuple[str, ...]:
    """Return a note on the number of rows that are in no group, if there are any."""
    return (f"{rows} rows without the tag {by!r} are in no group",) if rows else ()


def _interval_notes(bounds: Interval) -> tuple[str, ...]:
    return (bounds.note,) if bounds.note else ()


def _compute_result(
    suite: Suite, scores: Scores, measure: Measure, units: Units, group: str | None, resampling: Bootstrap
) -> Result:
    value, bounds, reason = None, Interval(), None
    row_resampling = fit_unit_to_rows(resampling, units)
    # Repeated for every group, the notes would fill the table.
    notes: tuple[str, ...] = ()
    if group is None:
        remarks = collect_remarks(suite, measure, scores, units, row_resampling.by or "")
        notes = (*units.notes, *scores.notes, *remarks, *note_few_units(units, resampling))
    try:
        value = measure.value(units)
        with time_stage("resample"):
            bounds = bootstrap_interval(measure, units, row_resampling)
    except Undefined as error:
        reason = str(error)
    fields = signature_fields(suite, scores, measure, group, units, resampling) | sign_refit([units], resampling)
    return Result(
        repr(measure),
        scores.model,
        scores.reduction,
        suite.name,
        group,
        value,
        bounds.low,
        bounds.high,
        len(units),
        sign_interval_method(build_signature(repr(measure), fields), bounds),
        reason=reason,
        notes=(*notes, *_interval_notes(bounds)),
        units=units,
    )


def _undefined_result(suite: Suite, scores: Scores, measure: Measure, resampling: Bootstrap, reason: str) -> Result:
    """Return the result of a measure without any rows, such as one of z-scores when all scores are equal."""
    no_rows = Units((), {}, ())
    signature = build_signature(repr(measure), signature_fields(suite, scores, measure, None, no_rows, resampling))
    about = repr(measure), scores.model, scores.reduction, suite.name
    notes = (*scores.notes, *remark_on_suite(suite, measure), *remark_on_scores(scores))
    return Result(*about, None, None, None, None, 0, signature, reason=reason, notes=notes)


def sign_refit(all_units: Sequence[Units], resampling: Bootstrap) -> dict[str, str]:
    """Return the field of a signature that says that thresholds are fitted again in each resample, if they are."""
    # The value has no such field to depend on, but its interval does: those of groups keep the thresholds of the whole.
    is_refitted = resampling.resamples and any(units.refit for units in all_units)
    return {"refit": "threshold"} if is_refitted else {}


def sign_interval_method(signature: str, interval: Interval) -> str:
    """Return the signature of a result with the method of its interval, which may depend on the rows."""
    if not interval.method:
        return signature
    fields = parse_signature(signature)
    paired = "paired " if fields["ci"].startswith("paired ") else ""
    settings = parse_bootstrap(fields["ci"].removeprefix("paired "))
    fields["ci"] = paired + replace(settings, method=interval.method).signature
    return build_signature(fields.pop("measure"), fields)


def signature_fields(
    suite: Suite, scores: Scores, measure: Measure, group: str | None, units: Units, resampling: Bootstrap
) -> dict[str, str]:
    """Return the fields of a signature: everything besides the measure that can change the value."""
    with time_stage("fingerprint"):
        suite_signature = suite.signature
    # Scores from a file have no signature, only the name of the file.
    fields = {"suite": suite_signature, "model": scores.signature or scores.model}
    # Whether ratings were standardised changes the values of measures that compare them with a threshold.
    if measure.needs == "rated contrasts":
        fields["ratings"] = "z as given" if ratings_are_z(suite) else "standardised(ddof=0)"
    if group:
        fields["group"] = group
    fields |= {"n": str(len(units)), **sign_unit_count(units, resampling)}
    return fields | {"ci": resampling.signature, "acceptability": __version__}
