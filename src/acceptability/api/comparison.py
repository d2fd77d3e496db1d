"""Comparisons of models on the same rows: paired differences with tests, discordant contrasts, and correlations.

- ``compare`` gives the difference of every two models with a paired interval, a permutation test and, where
  rows are right or wrong, McNemar's test; over all rows and by group.
- ``find_discordant_contrasts`` lists the contrasts behind a difference: those that only one of the models gets right.
- ``correlate`` gives the correlation of every two models, and of each model with human ratings.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from acceptability import __version__
from acceptability.api.evaluation import (
    GROUP_THRESHOLD_NOTE,
    choose_resampling,
    describe_ungrouped_rows,
    group_rows,
    needs_regions,
    resolve_measures,
    sign_interval_method,
    sign_refit,
    signature_fields,
)
from acceptability.api.interface.arguments import (
    MeasureLike,
    ModelLike,
    ReductionLike,
    SuiteLike,
    as_bootstrap,
    as_engine,
    as_list,
    as_model,
    as_suite,
)
from acceptability.api.interface.results import ReportedRows
from acceptability.api.remarks import remark_on_rows, remark_on_scores, remark_on_suite
from acceptability.api.scoring import ProgressCallback, score_reductions
from acceptability.display import ShownRow
from acceptability.errors import MeasureError, SpecError, Undefined, suggest_name, warn_of_former_name
from acceptability.measures.classification import AUC
from acceptability.measures.rows import check_measurable
from acceptability.models import load_model
from acceptability.protocols import Engine, Measure
from acceptability.specs import build_signature, format_spec, parse_signature
from acceptability.stats.bootstrap import MAX_RESAMPLES, Bootstrap, Interval
from acceptability.stats.clustered_correlation import correlate_clustered
from acceptability.stats.effects.roc import DeLongTest, delong_test
from acceptability.stats.hypothesis_tests import CORRELATION_KINDS, CorrelationCell, correlation_matrix
from acceptability.stats.intervals import bootstrap_difference, bootstrap_macro_difference
from acceptability.stats.permutation import benjamini_hochberg, holm, macro_permutation_test, permutation_test
from acceptability.stats.proportions import McNemar, mcnemar
from acceptability.stats.resampling import count_units_of_groups
from acceptability.stats.samples import check_choice
from acceptability.stats.sampling_units import (
    FEW_UNITS,
    fit_unit_to_groups,
    fit_unit_to_rows,
    name_sampling_units,
    note_few_units,
    parse_sampling_unit,
)
from acceptability.store.scorefile import read_scores
from acceptability.store.unit_rows import UnitRows
from acceptability.types import SINGLE_ROWS, Contrast, Floats, Scores, Sentence, Suite, Units, restrict_to_scored


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(ShownRow):
    """The difference between two models on the same rows, with its interval and tests.

    Args:
        group: Which rows: None for all, ``tag=value`` for some, ``macro(tag)`` for the mean over groups.
        first, second: The names of the models with their reductions.
        first_value, second_value: The value of the measure for each model.
        difference: The first value minus the second; None if either is undefined.
        low, high: The paired interval of the difference: each resample takes the same rows of both models.
        n: The number of rows.
        p: The two-sided p value of a permutation test that swaps the two models row by row.
        holm, benjamini_hochberg: p, corrected for the number of groups, and of pairs of models if there are three
            models or more; None where there is but one test.
        only_first, only_second: If rows are right or wrong, the numbers of rows that only one model gets right.
        mcnemar_p: The p value of McNemar's exact test on these two numbers. The test assumes independent rows, so it
            is None if a sampling unit has several.
        odds_ratio: ``only_first / only_second``.
        odds_low, odds_high: Its exact interval (Clopper and Pearson); None as for McNemar's test.
        delong_p: For areas under the ROC curve (AUC): the p value of DeLong's test, which assumes independent rows;
            None if a sampling unit has several.
        delong_low, delong_high: The interval of the difference by DeLong's variance.
        reason: Why the difference is undefined.
    """

    measure: str
    suite: str
    group: str | None
    first: str
    second: str
    first_value: float | None
    second_value: float | None
    difference: float | None
    low: float | None
    high: float | None
    n: int
    signature: str
    units: tuple[Units, Units] = field(repr=False)
    p: float | None = None
    holm: float | None = None
    benjamini_hochberg: float | None = None
    only_first: int | None = None
    only_second: int | None = None
    mcnemar_p: float | None = None
    odds_ratio: float | None = None
    odds_low: float | None = None
    odds_high: float | None = None
    delong_p: float | None = None
    delong_low: float | None = None
    delong_high: float | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the comparison as one flat row, for JSON and tables."""
        row = {name: value for name, value in vars(self).items() if name != "units"}
        return row | {"notes": "; ".join(self.notes)}


_EMPTY_UNITS = Units((), {}, ())
_EMPTY_PAIR = (_EMPTY_UNITS, _EMPTY_UNITS)


@dataclass(frozen=True)
class SignificanceTest:
    """The resampling behind intervals and p values.

    Args:
        bootstrap: The bootstrap; the permutation test shares its seed and its sampling unit.
        draws: How many random swaps the permutation test draws if there are too many to enumerate; 0 omits the test.
    """

    bootstrap: Bootstrap = field(default_factory=Bootstrap)
    draws: int = 2000

    def __post_init__(self) -> None:
        # A mistyped number of draws would otherwise run for days.
        if not 0 <= self.draws <= MAX_RESAMPLES:
            raise MeasureError(f"draws is {self.draws}; expected a whole number from 0 to {MAX_RESAMPLES:,}")

    def sign(self, measure: Measure, units: tuple[Units, Units] = _EMPTY_PAIR) -> str:
        """Return the test of a measure on the rows of two models and its parameters, for signatures."""
        fitted = [rows.refit is not None for rows in units]
        # Where only one model has a fitted threshold there is no test.
        if not self.draws or fitted[0] != fitted[1]:
            return "none"
        # A mean of rows is tested by the signs of their differences; all else by swapping rows, on a common scale.
        scheme = "sign-flip" if measure.mean_of else "swap,standardised"
        scheme = "swap,standardised,refit" if all(fitted) else scheme
        resampling = self.bootstrap
        drawn = f"draws={self.draws},by={resampling.by or SINGLE_ROWS},seed={resampling.seed}"
        return f"permutation({scheme},two-sided,{drawn})"

    def sign_macro(self, measure: Measure) -> str:
        """Return the test of a mean over groups and its parameters, for signatures."""
        return self.sign(measure).replace("permutation(", "permutation(macro,", 1)

    def fit_to_rows(self, units: Units) -> SignificanceTest:
        """Return the test of single rows if each sampling unit has one row only."""
        return replace(self, bootstrap=fit_unit_to_rows(self.bootstrap, units))


class Comparisons(ReportedRows[Comparison]):
    """The differences between models, as a list that shows itself: ``comparisons[0].difference``."""

    def shown_rows(self) -> list[dict[str, object]]:
        """Return the columns that most readers look for; ``to_frame`` has all."""
        names = ("measure", "suite", "group", "first", "second", "difference", "low", "high", "p", "holm", "n")
        return [{name: row[name] for name in names} for row in self.rows()]

    def unit_rows(self) -> Iterable[Mapping[str, object]]:
        """Return the rows of both models."""
        return collect_compared_units(self)


def compare(
    suite: SuiteLike,
    *models: ModelLike | Scores | Sequence[ModelLike | Scores],
    reduce: ReductionLike | Sequence[ReductionLike] | None = None,
    measure: MeasureLike | Sequence[MeasureLike] | None = None,
    by: str | None = None,
    region: str | None = None,
    resamples: int | None = None,
    resample_by: str | None = None,
    draws: int = 2000,
    seed: int | None = None,
    interval: str | None = None,
    bootstrap: Bootstrap | None = None,
    pairs: str = "all",
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
    measures: MeasureLike | Sequence[MeasureLike] | None = None,
) -> Comparisons:
    """Return the differences between models, with paired intervals and tests.

    With three models or more, p is corrected for the number of pairs, and within groups for that of pairs and groups.

    Args:
        suite: A suite, its name, a file or a data frame.
        models: Two or more models, specs of models, or scores; or a single list of them. Sentences that partial scores
            lack are left out of all comparisons.
        reduce: Reductions or their specs, for models; of a single model, two reductions can be compared.
        measure: Measures or their specs; by default those that apply to the suite.
        by: A tag; adds a comparison for each of its values, with p corrected for their number, and the macro mean.
        region: Score only the region of this name.
        resamples, resample_by, seed, interval: The settings of the bootstrap, see ``evaluate``.
        draws: How many random swaps the permutation test draws if there are too many to enumerate; 0 omits the test.
        bootstrap: The settings of the bootstrap in one object; by default it resamples the suite's sampling unit.
        pairs: "all" for every two models, or "first" for the first model against each of the others.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
        measures: The former name of ``measure``.

    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> good, bad = Scores({"a": -1.0, "b": -3.0}, "good"), Scores({"a": -2.0, "b": -1.0}, "bad")
    >>> compare(suite, good, bad, measure="PairAccuracy", draws=0)[0].difference
    1.0
    """
    if measures is not None:
        warn_of_former_name("the argument measures of compare", "measure")
        measure = measures
    given: Sequence[Any] = models
    if len(given) == 2 and isinstance(given[0], list | tuple) and not _holds_scores(given[1]):
        warnings.warn(
            "compare(suite, scores, measures) is now compare(suite, *models, measure=…); "
            "the old form will be refused from the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        given, measure = given[:1], given[1]
    check_choice("pairs", pairs, PAIRS)
    settings = as_bootstrap(bootstrap, resamples, resample_by, seed, interval)
    # Only for its check of draws, which must fail before a model is run.
    SignificanceTest(settings or Bootstrap(), draws)
    loaded = as_suite(suite)
    requested = resolve_measures(loaded, measure, by=by, bootstrap=settings)
    scores = score_models(loaded, given, reduce, requested, minimum=2, region=region, engine=engine, progress=progress)
    return compare_scores(loaded, scores, requested, by=by, pairs=pairs, bootstrap=settings, draws=draws)


def _holds_scores(given: object) -> bool:
    return isinstance(given, list | tuple) and any(isinstance(one, Scores) for one in given)


def score_models(
    suite: Suite,
    models: Sequence[ModelLike | Scores | Sequence[ModelLike | Scores]],
    reduce: ReductionLike | Sequence[ReductionLike] | None = None,
    measures: Sequence[Measure] = (),
    *,
    minimum: int = 1,
    region: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Scores]:
    """Return the scores of models under each reduction, and given scores as they are, in the given order.

    Args:
        suite: The suite.
        models: Models, specs or scores, one by one or in lists.
        reduce: The reductions; by default that of the kind of model.
        measures: What the scores are for: some measures need those of regions.
        minimum: How many scores are needed: 2 for a comparison.
        region: Score only the region of this name.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.
    """
    given = [model for one in models for model in as_list(one)]
    reductions: list[ReductionLike | None] = [*as_list(reduce)] or [None]
    by_region = needs_regions(measures, as_list(reduce), region)
    # All models are opened before the first is run, so that a typing error costs no hours.
    for model in given:
        if not isinstance(model, Scores):
            as_model(model)
    if sum(1 if isinstance(model, Scores) else len(reductions) for model in given) < minimum:
        raise MeasureError(
            f"a comparison needs the scores of two models; there are {len(given)}. "
            "Give two models, two reductions of one, or two Scores."
        )
    runner, all_scores = as_engine(engine), []
    for model in given:
        if isinstance(model, Scores):
            all_scores.append(model)
        else:
            all_scores += score_reductions(
                suite, model, reductions, region=region, by_region=by_region, engine=runner, progress=progress
            )
    return all_scores


def compare_scores(
    suite: SuiteLike,
    scores: Sequence[Scores],
    measures: MeasureLike | Sequence[MeasureLike] | None = None,
    *,
    by: str | None = None,
    pairs: str = "all",
    bootstrap: Bootstrap | None = None,
    draws: int = 2000,
) -> Comparisons:
    """Return the differences between models, with paired intervals and tests.

    With three models or more, p is corrected for the number of pairs, and within groups for that of pairs and groups.

    Args:
        scores: The scores of two or more models. Sentences that partial scores lack are left out of all comparisons.
        measures: Measures or their specs; by default those that apply to the suite.
        by: A tag; adds a comparison for each of its values, with p corrected for their number, and the macro mean.
        pairs: "all" for every two models, or "first" for the first model against each of the others.
        bootstrap: The bootstrap of the intervals; by default it resamples the suite's sampling unit.
        draws: How many random swaps the permutation test draws if there are too many to enumerate; 0 omits the test.
    """
    check_choice("pairs", pairs, PAIRS)
    # All comparisons are of the same rows, of which partial files may lack different ones.
    suite = restrict_to_scored(as_suite(suite), scores)
    if len(scores) < 2:
        raise MeasureError(f"a comparison needs the scores of two models; there are {len(scores)}")
    chosen_pairs = list(combinations(scores, 2))[: None if pairs == "all" else len(scores) - 1]
    comparisons: list[Comparison] = []
    for measure in resolve_measures(suite, measures, by=by, bootstrap=bootstrap):
        resampling, unit_notes = choose_resampling(suite, measure, bootstrap)
        significance, of_measure = SignificanceTest(resampling, draws), []
        for pair in chosen_pairs:
            overall, *others = _compare_models(
                suite, measure.resolve(pair, resampling.by or ""), pair, by, significance
            )
            of_measure += [replace(overall, notes=(*overall.notes, *unit_notes)), *others]
        comparisons += _correct_for_pairs(of_measure, scores, pairs) if len(scores) > 2 else of_measure
    return Comparisons(comparisons, [suite])


PAIRS = ("all", "first")


def _correct_for_pairs(comparisons: Sequence[Comparison], scores: Sequence[Scores], pairs: str) -> Iterator[Comparison]:
    """Yield comparisons with p corrected for all pairs of models, those of groups for all pairs and groups.

    The comparisons over all rows, those of groups, and those of macro means answer three questions, each with a family
    of tests of its own.
    """
    families: dict[str, list[Comparison]] = {}
    for comparison in comparisons:
        families.setdefault(_name_family(comparison.group), []).append(comparison)
    # By identity, since comparisons of undefined values may be equal in all that they hold.
    corrected = {
        id(given): new
        for family in families.values()
        for given, new in zip(family, _correct_p_values(family), strict=True)
    }
    # Which other models were in the comparison changes the corrected p, so that the signature names them.
    models = " and ".join(given.signature or given.model for given in scores)
    for comparison in comparisons:
        new = corrected[id(comparison)]
        fields = parse_signature(new.signature) | {"family": models, "pairs": pairs}
        yield replace(new, signature=build_signature(fields.pop("measure"), fields))


def _name_family(group: str | None) -> str:
    if group is None:
        return "all"
    return "macro" if group.startswith("macro(") else "groups"


@dataclass(frozen=True)
class ScoreSources:
    """Where the scores of a comparison come from: models under reductions, and files.

    Args:
        models: The specs of models.
        reductions: The specs of reductions; every model is scored under each. Empty for the model's default.
        files: Files of scores, each with one or more columns of scores.
        columns: For files: which column has which meaning, one mapping per column of scores.
        region: Models score only the region of this name.
        engine: Where the models run.
        partial: Whether sentences that a file has no score of are left out; otherwise they are an error.
        where: Values of tags: only this part of the suite is scored, which is ``suite.filter(**where)``.
    """

    models: Sequence[str] = ()
    reductions: Sequence[str] = ()
    files: Sequence[Path] = ()
    columns: Sequence[Mapping[str, str]] = ()
    region: str | None = None
    engine: str | Engine = "local"
    partial: bool = False
    where: Mapping[str, str] = field(default_factory=dict)


def collect_scores(
    suite: Suite,
    sources: ScoreSources,
    measures: Sequence[Measure] = (),
    *,
    minimum: int = 1,
    progress: ProgressCallback | None = None,
) -> list[Scores]:
    """Return the scores of each model under each reduction, followed by those of each file.

    Args:
        suite: The suite; with ``sources.where``, the whole one of which a part is scored.
        measures: The measures that the scores are for: some of them need the scores of regions.
        minimum: How many scores are needed: 2 for a comparison.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.
    """
    if sources.region and sources.files:
        raise SpecError("--region is for models; the scores in a file are of whatever was scored there")
    if sources.reductions and not sources.models:
        raise SpecError("--reduce is for models; the scores in a file are already reduced")
    if sources.partial and not sources.files:
        raise SpecError("--partial is for files of scores, since a model scores every sentence: omit it")
    if sources.columns and not sources.files:
        raise SpecError("--score-columns describes the columns of a file of scores: add --scores, or omit it")
    reductions: list[ReductionLike | None] = [*sources.reductions] or [None]
    # A file may hold the scores of several models, so without reading it only models can be counted.
    if not sources.files and len(sources.models) * len(reductions) < minimum:
        raise _too_few_scores_error(minimum)
    by_region = needs_regions(measures, sources.reductions, sources.region)
    # Models are opened and files are read before anything is scored, so that a typing error costs no hours.
    for model in sources.models:
        load_model(model)
    part = suite.filter(**sources.where)
    file_scores = [
        scores
        for path in sources.files
        for scores in read_scores(path, suite, sources.columns or ({},), partial=sources.partial, where=sources.where)
    ]
    model_scores = [
        scores
        for model in sources.models
        for scores in score_reductions(
            part,
            model,
            reductions,
            region=sources.region,
            by_region=by_region,
            engine=sources.engine,
            progress=progress,
        )
    ]
    if len(model_scores) + len(file_scores) < minimum:
        raise _too_few_scores_error(minimum)
    return model_scores + file_scores


def _too_few_scores_error(minimum: int) -> MeasureError:
    if minimum == 1:
        return MeasureError("there is nothing to correlate. Give --model or --scores.")
    return MeasureError(
        "a comparison needs two models, two reductions of one, or two files of scores: "
        "give --model, --reduce or --scores twice"
    )


def collect_compared_units(comparisons: Sequence[Comparison]) -> UnitRows:
    """Return the rows of both models behind the comparisons over all rows, to be saved with a run."""
    # The rows of groups are among those of the whole suite, and would be saved twice.
    return UnitRows(
        [
            (units, {"suite": comparison.suite, "measure": comparison.measure, "model": name})
            for comparison in comparisons
            if not comparison.group
            for name, units in zip((comparison.first, comparison.second), comparison.units, strict=True)
        ]
    )


def _compare_models(
    suite: Suite, measure: Measure, models: tuple[Scores, Scores], by: str | None, significance: SignificanceTest
) -> Iterator[Comparison]:
    """Yield the comparison over all rows, of each group, and of the mean over groups."""
    try:
        first, second, shared = align_rows(measure.units(suite, models[0]), measure.units(suite, models[1]))
    # Some measures have no rows at all for some scores, such as z-scores of scores that are all equal.
    except Undefined as error:
        empty = _empty_comparison(suite, measure, models, _EMPTY_PAIR, significance, group=None, shared="")
        yield replace(empty, reason=str(error))
        return
    remarks = _remark_on_models(
        suite, measure, models, (first, second), significance.fit_to_rows(first).bootstrap.by or ""
    )
    few = note_few_units(first, significance.bootstrap)
    about_rows = _join_notes(models, [first.notes, second.notes])
    about_scores = _join_notes(models, [given.notes for given in models])
    notes = tuple(dict.fromkeys((*about_rows, *about_scores, *remarks, *few)))
    overall = _compare_rows(suite, measure, models, (first, second), significance, group=None, shared=shared)
    yield replace(overall, notes=(*notes, *overall.notes))
    if not by:
        return
    # The rows of both models are aligned by now, so the first model's row numbers select the same rows of the second.
    groups = group_rows(suite, measure, first, by)
    parts = {name: (first.take(rows), second.take(rows)) for name, rows in groups.items()}
    comparisons = [
        _compare_rows(suite, measure, models, part, significance, group=f"{by}={name}", shared=shared)
        for name, part in parts.items()
    ]
    yield from _correct_p_values(comparisons)
    if comparisons:
        # Thresholds that are fitted to all rows cannot be fitted again within groups.
        is_tested = bool(significance.draws) and not _are_fitted((first, second))
        macro = _macro_average(comparisons, list(parts.values()), measure, by, significance, is_tested=is_tested)
        ungrouped = describe_ungrouped_rows(len(first) - macro.n, by)
        fitted = (GROUP_THRESHOLD_NOTE,) if (first.refit or second.refit) and significance.bootstrap.resamples else ()
        yield replace(macro, units=(first, second), notes=(*ungrouped, *macro.notes, *fitted))


def _join_notes(models: Sequence[Scores], notes: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the notes on each of several models; a note on some of them alone has their names.

    What a model does not know, or which threshold was fitted to its scores, says nothing about the others.
    """
    shared = [note for note in notes[0] if all(note in others for others in notes)]
    return shared + [
        f"{label_scores(scores)}: {note}"
        for scores, model_notes in zip(models, notes, strict=True)
        for note in model_notes
        if note not in shared
    ]


def _remark_on_models(
    suite: Suite, measure: Measure, models: tuple[Scores, Scores], units: tuple[Units, Units], by: str
) -> list[str]:
    """Return the remarks on the suite, and those on each model under its name."""
    remarks = list(remark_on_suite(suite, measure, units[0]))
    for scores, rows in zip(models, units, strict=True):
        found = (*remark_on_scores(scores), *remark_on_rows(measure, rows, by))
        remarks += [f"{label_scores(scores)}: {remark}" for remark in found]
    return remarks


def align_rows(units_first: Units, units_second: Units) -> tuple[Units, Units, str]:
    """Return the rows that both models have, in the same order, and a remark for the signature if any are missing.

    Rows differ between models if a measure excludes rows because of their scores, such as sets of sentences to which
    a model gives the same score.
    """
    if units_first.ids == units_second.ids:
        return units_first, units_second, ""
    row_of_id = {name: row for row, name in enumerate(units_second.ids)}
    shared_rows = [(row, row_of_id[name]) for row, name in enumerate(units_first.ids) if name in row_of_id]
    # Without the reshape, an empty list would give an array of one dimension that cannot be unpacked.
    first, second = np.array(shared_rows, dtype=np.int64).reshape(-1, 2).T
    return (
        units_first.take(first),
        units_second.take(second),
        f"{len(shared_rows)} shared, of {len(units_first)} and {len(units_second)}",
    )


def _compare_rows(
    suite: Suite,
    measure: Measure,
    models: tuple[Scores, Scores],
    units: tuple[Units, Units],
    significance: SignificanceTest,
    *,
    group: str | None,
    shared: str,
) -> Comparison:
    empty = _empty_comparison(suite, measure, models, units, significance, group=group, shared=shared)
    first, no_first = _compute_value(measure, units[0], empty.first)
    second, no_second = _compute_value(measure, units[1], empty.second)
    comparison = replace(empty, first_value=first, second_value=second)
    if first is None or second is None:
        return replace(comparison, reason="; ".join(filter(None, (no_first, no_second))))
    return _test_difference(comparison, measure, significance)


def _empty_comparison(
    suite: Suite,
    measure: Measure,
    models: tuple[Scores, Scores],
    units: tuple[Units, Units],
    significance: SignificanceTest,
    *,
    group: str | None,
    shared: str,
) -> Comparison:
    """Return a comparison without values, with its names and its signature."""
    first, second = models
    fields = signature_fields(suite, first, measure, group, units[0], significance.bootstrap)
    fields |= sign_refit(units, significance.bootstrap)
    fields["model"] += f" minus {second.signature or second.model}"
    # The number of rows alone would not show that some of each model's rows are missing from the comparison.
    fields |= {"rows": shared} if shared else {}
    # Rows of both models are resampled together.
    fields["ci"] = fields["ci"] if fields["ci"] == "none" else f"paired {fields['ci']}"
    fields["test"] = significance.sign(measure, units)
    has_independent_rows = not significance.fit_to_rows(units[0]).bootstrap.by
    if has_independent_rows and not _are_fitted(units) and _mcnemar_of_rows(measure, *units):
        fields["mcnemar"] = "exact"
    if has_independent_rows and _is_area(measure, units[0]):
        fields["delong"] = "0.95"
    return Comparison(
        repr(measure),
        suite.name,
        group,
        f"{first.model} {first.reduction}".strip(),
        f"{second.model} {second.reduction}".strip(),
        *(None, None, None, None, None),
        len(units[0]),
        build_signature(repr(measure), fields),
        units,
    )


def _compute_value(measure: Measure, units: Units, model: str) -> tuple[float | None, str]:
    """Return a model's value, or None and the reason."""
    try:
        return measure.value(units), ""
    except Undefined as error:
        return None, f"{model}: {error}"


def _test_difference(comparison: Comparison, measure: Measure, significance: SignificanceTest) -> Comparison:
    """Return the comparison with its difference, interval and tests filled in."""
    assert comparison.first_value is not None
    assert comparison.second_value is not None
    first, second = comparison.units
    significance = significance.fit_to_rows(first)
    interval = bootstrap_difference(measure, first, second, significance.bootstrap)
    # With zero draws the user has asked for no test, which is not worth a note; an impossible test is.
    p, untested = _permutation_p(measure, first, second, significance) if significance.draws else (None, "")
    counts = _mcnemar_of_rows(measure, first, second)
    # McNemar's and DeLong's tests assume independent rows. Sampling units of several rows say that they are not, and
    # decisions by a threshold that was fitted to all rows are not either.
    is_independent = not significance.bootstrap.by and not _are_fitted((first, second))
    areas = _delong_of_rows(measure, first, second) if is_independent else None
    exact = counts if is_independent else None
    return replace(
        comparison,
        difference=comparison.first_value - comparison.second_value,
        low=interval.low,
        high=interval.high,
        signature=sign_interval_method(comparison.signature, interval),
        p=p,
        only_first=counts.only_first if counts else None,
        only_second=counts.only_second if counts else None,
        mcnemar_p=exact.p if exact else None,
        odds_ratio=counts.odds_ratio if counts else None,
        odds_low=exact.odds_low if exact else None,
        odds_high=exact.odds_high if exact else None,
        delong_p=areas.p if areas else None,
        delong_low=areas.low if areas else None,
        delong_high=areas.high if areas else None,
        notes=tuple(filter(None, (interval.note, untested))),
    )


def _are_fitted(units: tuple[Units, Units]) -> bool:
    return any(rows.refit is not None for rows in units)


# Columns in a model's own units, log-probabilities for one and log-odds for another. They are standardised before a
# permutation test swaps the rows of two models, since it would otherwise mix their units.
MODEL_SCALE_COLUMNS = ("score", "better", "worse", "gap")


def _permutation_p(
    measure: Measure, first: Units, second: Units, significance: SignificanceTest
) -> tuple[float | None, str]:
    """Return the p value of a permutation test, or None and the reason."""
    columns = list_scaled_columns(measure, first)
    options = {
        "by": significance.bootstrap.by or "",
        "draws": significance.draws,
        "seed": significance.bootstrap.seed,
        "standardise": columns,
    }
    # A value that depends on the scale of the scores cannot be tested by swapping standardised ones.
    try:
        return permutation_test(measure, first, second, **options).p, ""  # type: ignore[arg-type]
    except Undefined as error:
        return None, f"no permutation test: {error}"


def _is_area(measure: Measure, units: Units) -> bool:
    """Return whether the value is the area under the ROC curve of independent labelled sentences."""
    # UnpairedAUC is over contrasts, whose better and worse sentences are not independent of each other.
    return isinstance(measure, AUC) and {"score", "label"} <= units.columns.keys()


def _delong_of_rows(measure: Measure, first: Units, second: Units) -> DeLongTest | None:
    """Return DeLong's test, or None for other measures, and where it is undefined."""
    if not _is_area(measure, first):
        return None
    try:
        return delong_test(first["score"], second["score"], first["label"])
    except Undefined:
        return None


def _mcnemar_of_rows(measure: Measure, first: Units, second: Units) -> McNemar | None:
    """Return McNemar's test, or None if the rows of the measure are not simply right or wrong."""
    column = measure.mean_of
    # Ties at half a point and gradient values make rows that are neither right nor wrong.
    if (
        column is None
        or not len(first)
        or not all(np.isin(units[column], (0.0, 1.0)).all() for units in (first, second))
    ):
        return None
    return mcnemar(first[column], second[column])


def _correct_p_values(comparisons: Sequence[Comparison]) -> Iterator[Comparison]:
    ps = [comparison.p for comparison in comparisons]
    for comparison, holm_p, bh_p in zip(comparisons, holm(ps), benjamini_hochberg(ps), strict=True):
        fields = parse_signature(comparison.signature) | {"correction": _sign_correction(ps)}
        signature = build_signature(fields.pop("measure"), fields)
        yield replace(comparison, holm=holm_p, benjamini_hochberg=bh_p, signature=signature)


def _sign_correction(ps: Sequence[float | None]) -> str:
    """Return the corrections of p values and the number of tests that they are for, for signatures."""
    return f"holm,benjamini-hochberg(tests={sum(p is not None for p in ps)})"


def _macro_average(
    comparisons: Sequence[Comparison],
    parts: Sequence[tuple[Units, Units]],
    measure: Measure,
    by: str,
    significance: SignificanceTest,
    *,
    is_tested: bool,
) -> Comparison:
    """Return the mean of the groups' differences, which is undefined if one of them is."""
    # A mean over only the defined groups would be a mean of other groups for another measure.
    undefined_groups = [str(comparison.group) for comparison in comparisons if comparison.difference is None]
    resampling = fit_unit_to_groups(significance.bootstrap, [first for first, _ in parts], by)
    interval = Interval() if undefined_groups else bootstrap_macro_difference(measure, parts, resampling)
    n = sum(comparison.n for comparison in comparisons)
    is_complete = is_tested and not undefined_groups
    p, untested = (
        _test_macro(measure, parts, replace(significance, bootstrap=resampling)) if is_complete else (None, "")
    )
    test = replace(significance, bootstrap=resampling).sign_macro(measure) if is_tested else "none"
    fields = parse_signature(comparisons[0].signature) | {"group": f"macro({by})", "n": str(n), "test": test}
    if "units" in fields:
        fields["units"] = str(count_units_of_groups([first for first, _ in parts], significance.bootstrap.by))
    fields["ci"] = f"paired {significance.bootstrap.signature}" if significance.bootstrap.resamples else "none"
    # McNemar's test and the correction are of the groups.
    fields = {key: value for key, value in fields.items() if key not in ("mcnemar", "delong", "correction")}
    template = comparisons[0]
    return Comparison(
        template.measure,
        template.suite,
        f"macro({by})",
        template.first,
        template.second,
        _mean_if_all_defined([comparison.first_value for comparison in comparisons]),
        _mean_if_all_defined([comparison.second_value for comparison in comparisons]),
        _mean_if_all_defined([comparison.difference for comparison in comparisons]),
        interval.low,
        interval.high,
        n,
        sign_interval_method(build_signature(fields.pop("measure"), fields), interval),
        template.units,
        p=p,
        reason=f"undefined for {', '.join(undefined_groups)}" if undefined_groups else None,
        notes=tuple(filter(None, (interval.note, untested))),
    )


def _test_macro(
    measure: Measure, parts: Sequence[tuple[Units, Units]], significance: SignificanceTest
) -> tuple[float | None, str]:
    """Return the p value of a permutation test of the mean over groups, or None and the reason."""
    columns = list_scaled_columns(measure, parts[0][0])
    resampling = significance.bootstrap
    try:
        test = macro_permutation_test(
            measure,
            parts,
            by=resampling.by or "",
            draws=significance.draws,
            seed=resampling.seed,
            standardise=columns,
        )
    except Undefined as error:
        return None, f"no permutation test: {error}"
    return test.p, ""


def list_scaled_columns(measure: Measure, units: Units) -> tuple[str, ...]:
    """Return the columns in a model's own units, which a test that swaps two models has to standardise."""
    # A mean over rows is in the units of the measure, such as 0 or 1 per contrast, so that nothing has to be rescaled.
    return () if measure.mean_of is not None else tuple(name for name in MODEL_SCALE_COLUMNS if name in units.columns)


def _mean_if_all_defined(values: Sequence[float | None]) -> float | None:
    defined = [value for value in values if value is not None]
    return float(np.mean(defined)) if len(defined) == len(values) else None


@dataclass(frozen=True)
class DiscordantContrast:
    """A contrast that the first model gets right and the second gets wrong.

    Args:
        contrast: The id of the contrast.
        better, worse: The two texts.
        first_gap, second_gap: The score difference of each model, better minus worse, in the units of its measure.
        human_gap: The difference of the ratings, better minus worse; None if either sentence is unrated.
    """

    contrast: str
    better: str
    worse: str
    first_gap: float | None
    second_gap: float | None
    human_gap: float | None

    def as_row(self) -> dict[str, object]:
        """Return the contrast as one flat row, for JSON and tables."""
        return asdict(self)


def find_discordant_contrasts(
    suite: Suite, measure: Measure, first: Scores, second: Scores, *, second_measure: Measure | None = None
) -> list[DiscordantContrast]:
    """Return the contrasts whose value is higher for the first model than for the second, in the suite's order.

    For a measure that counts contrasts as right or wrong, these are the contrasts that only the first gets right.

    Args:
        second_measure: The measure for the second scores, if it is a different one. The two scores may then be the
            same, which gives the contrasts that are right by one criterion and wrong by the other.

    >>> from acceptability.measures.pairs import PairAccuracy
    >>> from acceptability.types import Sentence
    >>> suite = Suite("two", (Sentence("a", "Cats sleep."), Sentence("b", "Cats sleeps.")), (Contrast("a", "b"),))
    >>> good, bad = Scores({"a": -1.0, "b": -3.0}, "good"), Scores({"a": -2.0, "b": -1.0}, "bad")
    >>> discordant = find_discordant_contrasts(suite, PairAccuracy(), good, bad)
    >>> [(row.contrast, row.first_gap, row.second_gap) for row in discordant]
    [('a > b', 2.0, -1.0)]
    """
    suite = restrict_to_scored(suite, [first, second])
    # By id, since a measure may leave contrasts out, and not the same ones for both scores.
    first_values = _value_contrasts(suite, measure, first)
    second_values = _value_contrasts(suite, second_measure or measure, second)
    return [
        _make_discordant(suite, contrast, first_values[contrast.id][1], second_values[contrast.id][1])
        for contrast in suite.contrasts
        if contrast.id in first_values
        and contrast.id in second_values
        # Values are compared rather than right and wrong, so that a tie worth half a point is less than a win.
        and first_values[contrast.id][0] > second_values[contrast.id][0]
    ]


def _value_contrasts(suite: Suite, measure: Measure, scores: Scores) -> dict[str, tuple[float, float | None]]:
    """Return the measure's value on each contrast alone, and the contrast's score difference."""
    if "contrasts" not in measure.needs:
        raise MeasureError(f"{measure!r} does not count contrasts, so two models cannot differ in single ones")
    check_measurable(suite, measure)
    units = measure.units(suite, scores)
    gaps = units.columns.get("gap")
    return {
        name: (_value_single_row(measure, units, row), None if gaps is None else float(gaps[row]))
        for row, name in enumerate(units.ids)
    }


def _value_single_row(measure: Measure, units: Units, row: int) -> float:
    # Every measure has a value on any subset of its rows, so a row alone needs no interface of its own.
    try:
        return measure.value(units.take_columns(np.array([row])))
    except Undefined as error:
        raise MeasureError(f"{measure!r} is undefined for a single contrast: {error}") from error


def _make_discordant(suite: Suite, contrast: Contrast, first: float | None, second: float | None) -> DiscordantContrast:
    better, worse = suite.by_id[contrast.better], suite.by_id[contrast.worse]
    human = None if better.rating is None or worse.rating is None else better.rating - worse.rating
    return DiscordantContrast(contrast.id, better.text, worse.text, first, second, human)


DISCORDANT_COLUMNS = (
    *("measure", "first", "second", "met_by", "contrast", "better", "worse"),
    *("first_gap", "second_gap", "human_gap"),
)
"""The columns of a file of discordant contrasts; ``met_by`` is the model that gets the contrast right."""


def collect_discordant_rows(
    suite: Suite, measures: Sequence[Measure], scores: Sequence[Scores]
) -> list[dict[str, object]]:
    """Return the contrasts that only one of two models gets right, for the first model and each of the others.

    Args:
        measures: Those that count contrasts are used; it is an error if there are none.
        scores: The scores of two or more models.
    """
    rows: list[dict[str, object]] = []
    # As in compare: the scores that are standardised must be the same for all models.
    suite = restrict_to_scored(suite, scores)
    for measure in select_contrast_measures(measures):
        for other in scores[1:]:
            names = {"first": label_scores(scores[0]), "second": label_scores(other)}
            for met_by, right, wrong in (("first", scores[0], other), ("second", other, scores[0])):
                shared = {"measure": repr(measure), **names, "met_by": met_by}
                rows += [
                    shared | _order_gaps(contrast.as_row(), met_by)
                    for contrast in find_discordant_contrasts(suite, measure, right, wrong)
                ]
    return rows


def select_contrast_measures(measures: Sequence[Measure]) -> list[Measure]:
    """Return the measures by which each contrast is right or wrong; an error if there are none."""
    selected = [measure for measure in measures if "contrasts" in measure.needs and measure.mean_of]
    if not selected:
        raise MeasureError(
            "--differing needs a measure by which each contrast is right or wrong, such as PairAccuracy or ADC"
        )
    return selected


def _order_gaps(row: dict[str, object], met_by: str) -> dict[str, object]:
    """Return a row with the gap of the first model in ``first_gap``, whichever model gets the contrast right."""
    if met_by == "first":
        return row
    # Contrasts that the second model gets right were found with the two models exchanged, and so were their gaps.
    return row | {"first_gap": row["second_gap"], "second_gap": row["first_gap"]}


def label_scores(scores: Scores) -> str:
    """Return the name of scores in tables: the model and the reduction."""
    return f"{scores.model} {scores.reduction}".strip()


HUMAN_RATINGS = "people"
"""The name of the column of human ratings among those of the models."""


@dataclass(frozen=True, repr=False)
class ScoreCorrelation(ShownRow):
    """The correlation of two columns: two models, or a model and human ratings.

    Args:
        first, second: The names of the columns.
        r: The coefficient; None if it is undefined.
        low, high: Its interval by Fisher's z transformation; None if there is none. Where a sampling unit has several
            rows, its standard error is that of the jackknife over units, and so is that of p.
        p: The two-sided p value.
        holm, benjamini_hochberg: p, corrected for the number of correlations.
        n: The number of sentences or contrasts.
        reason: Why the coefficient is undefined.
        notes: What was excluded.
    """

    first: str
    second: str
    r: float | None
    low: float | None
    high: float | None
    p: float | None
    holm: float | None
    benjamini_hochberg: float | None
    n: int
    signature: str
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the correlation as one flat row, for JSON and tables."""
        return vars(self) | {"notes": "; ".join(self.notes)}


# As stats.hypothesis_tests computes them for independent rows, with what differs between the kinds.
_CORRELATION_INTERVALS = {
    "pearson": "fisher-z(0.95,se=1/sqrt(n-3))",
    "spearman": "fisher-z(0.95,se=sqrt((1+r^2/2)/(n-3)))",
    "kendall": "fisher-z(0.95,se=sqrt(.437/(n-4)))",
}
_CORRELATION_TESTS = {
    "pearson": "t(n-2),two-sided",
    "spearman": "t(n-2) of ranks,two-sided",
    "kendall": "tau-b(exact if few and untied, else normal),two-sided",
}


class Correlations(ReportedRows[ScoreCorrelation]):
    """Correlations of models and of human ratings, as a list that shows itself."""


def correlate(
    suite: SuiteLike,
    *models: ModelLike | Scores | Sequence[ModelLike | Scores],
    reduce: ReductionLike | Sequence[ReductionLike] | None = None,
    of: str = "scores",
    kind: str = "pearson",
    resample_by: str | None = None,
    region: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Correlations:
    """Return the correlations between models, and between each model and human ratings.

    Args:
        suite: A suite, its name, a file or a data frame.
        models: Models, specs of models, or scores; or a single list of them. Two columns are needed, of which human
            ratings may be one.
        reduce: Reductions or their specs, for models.
        of: "scores", over sentences, or "gaps", the differences better minus worse, over contrasts. In a suite with
            ratings only rated sentences count; in one without ratings the models are compared only with each other.
        kind: "pearson", "spearman" or "kendall".
        resample_by: The tag of the sampling units that intervals and p values assume to be independent; by default
            that of the suite, and "row" for single rows.
        region: Score only the region of this name.
        engine: Where the models run.
        progress: Called with a model's name, the number of finished queries, and the number of all queries.

    >>> rated = Suite("rated", tuple(Sentence(name, f"Text {name}.", rating=ord(name)) for name in "abcd"))
    >>> correlate(rated, Scores({"a": -4.0, "b": -3.0, "c": -2.0, "d": -1.0}, "toy"))[0].r
    1.0
    """
    loaded = as_suite(suite)
    check_correlations(loaded, of, kind, resample_by)
    scores = score_models(loaded, models, reduce, region=region, engine=engine, progress=progress)
    return correlate_scores(loaded, scores, of=of, kind=kind, resample_by=resample_by)


def correlate_scores(
    suite: SuiteLike,
    scores: Sequence[Scores],
    *,
    of: str = "scores",
    kind: str = "pearson",
    resample_by: str | None = None,
) -> Correlations:
    """Return the correlations between models, and between each model and human ratings.

    Args:
        scores: The scores of each model; two columns are needed, of which human ratings may be one.
        of: "scores", over sentences, or "gaps", the differences better minus worse, over contrasts. In a suite with
            ratings only rated sentences count; in one without ratings the models are compared only with each other.
        kind: "pearson", "spearman" or "kendall".
        resample_by: The tag of the sampling units that intervals and p values assume to be independent; by default
            that of the suite, and "row" for single rows.
    """
    suite = restrict_to_scored(as_suite(suite), scores)
    check_correlations(suite, of, kind, resample_by)
    # Human ratings come first, so that the pairs of ratings and models precede those of two models.
    columns = _COLUMN_BUILDERS[of](suite, scores)
    if len(columns) < 2:
        raise MeasureError(f"suite {suite.name!r} has no ratings, so a correlation needs the scores of two models")
    n = len(next(iter(columns.values())))
    units, notes = _list_row_units(suite, of, resample_by)
    correlations = _correlate_in_units(columns, kind, units.clusters) if units else correlation_matrix(columns, kind)
    ps = [pair.correlation.p if pair.correlation else None for pair in correlations]
    fields = {
        "suite": suite.signature,
        "models": " and ".join(model_scores.signature or model_scores.model for model_scores in scores),
        "n": str(n),
        **(units.sign() if units else {"ci": _CORRELATION_INTERVALS[kind], "test": _CORRELATION_TESTS[kind]}),
        "correction": _sign_correction(ps),
        "acceptability": __version__,
    }
    signature = build_signature(format_spec("correlate", {"of": of, "kind": kind}), fields)
    # All correlations use the same rows, rated ones if there are any; otherwise they would not be comparable.
    total = len(suite.sentences if of == "scores" else suite.contrasts)
    unrated = (f"{total - n} of {total} unrated left out",) if total > n else ()
    # The same note comes from every model with the same unigram table, and is wanted once.
    notes = tuple(dict.fromkeys((*unrated, *notes, *_join_notes(scores, [given.notes for given in scores]))))
    correlations_of_columns = [
        ScoreCorrelation(
            pair.first,
            pair.second,
            pair.correlation.r if pair.correlation else None,
            pair.correlation.low if pair.correlation else None,
            pair.correlation.high if pair.correlation else None,
            p,
            holm_p,
            bh_p,
            n,
            signature,
            pair.reason,
            notes,
        )
        for pair, p, holm_p, bh_p in zip(correlations, ps, holm(ps), benjamini_hochberg(ps), strict=True)
    ]
    return Correlations(correlations_of_columns, [suite])


def check_correlations(suite: Suite, of: str, kind: str, resample_by: str | None = None) -> None:
    """Raise an error for correlations that the suite does not allow; called before anything is scored."""
    if of not in _COLUMN_BUILDERS:
        raise MeasureError(f"correlations are of 'scores' or of 'gaps', not of {of!r}")
    check_choice("kind", kind, CORRELATION_KINDS)
    if of == "gaps" and not suite.contrasts:
        raise MeasureError(f"suite {suite.name!r} has no contrasts, and so no gaps. Correlate scores instead.")
    _list_row_units(suite, of, resample_by)


@dataclass(frozen=True)
class _RowUnits:
    """The sampling unit of each row of a correlation, where a unit has several rows.

    Args:
        tag: The tag whose values they are.
        clusters: Its value in each row.
    """

    tag: str
    clusters: Sequence[str]

    def sign(self) -> dict[str, str]:
        """Return the fields of a signature."""
        count = len(set(self.clusters))
        return {
            "units": str(count),
            "ci": f"fisher-z(0.95,se=jackknife,by={self.tag})",
            "test": f"t(units-1) of fisher-z/jackknife,two-sided,by={self.tag}",
        }


def _list_row_units(suite: Suite, of: str, resample_by: str | None) -> tuple[_RowUnits | None, tuple[str, ...]]:
    """Return the sampling units of the rows, None if each has one row only, and a note if they are not the suite's."""
    by, within = parse_sampling_unit(suite.unit if resample_by is None else resample_by)
    if within and resample_by is not None:
        raise MeasureError(f"correlations have one level of sampling units: give {by!r} instead of {resample_by!r}")
    if not by:
        chosen = f"single rows are taken to be independent, and not the suite's sampling unit, {suite.unit!r}"
        return None, (chosen,) if suite.unit else ()
    rows = _rated_sentences(suite) if of == "scores" else _rated_contrasts(suite)
    if lacking := [row for row in rows if by not in row.tags]:
        raise MeasureError(
            f"suite {suite.name!r}: {len(lacking)} of {len(rows)} rows have no tag {by!r}, such as {lacking[0].id!r}."
            f"{suggest_name(by, suite.tag_names)}"
        )
    clusters = [row.tags[by] for row in rows]
    count = len(set(clusters))
    few = f"there are only {name_sampling_units(by, count)}: intervals and p values from so few are rough"
    # Units of one row each are the rows themselves, for which there are better intervals.
    return (_RowUnits(by, clusters), (few,) * (count < FEW_UNITS)) if count < len(clusters) else (None, ())


def _correlate_in_units(columns: Mapping[str, Floats], kind: str, clusters: Sequence[str]) -> list[CorrelationCell]:
    """Return the correlation of every two columns, with intervals and p values for sampling units of several rows."""
    cells = []
    for first, second in combinations(columns, 2):
        try:
            test = correlate_clustered(columns[first], columns[second], clusters, kind)
            cells.append(CorrelationCell(first, second, test))
        except Undefined as error:
            cells.append(CorrelationCell(first, second, None, str(error)))
    return cells


def _rated_sentences(suite: Suite) -> Sequence[Sentence]:
    """Return the rated sentences, or all if none is rated."""
    return [sentence for sentence in suite.sentences if sentence.rating is not None] or suite.sentences


def _rated_contrasts(suite: Suite) -> Sequence[Contrast]:
    """Return the contrasts whose sentences are both rated, or all if there are none."""
    by_id = suite.by_id
    return [
        pair for pair in suite.contrasts if None not in (by_id[pair.better].rating, by_id[pair.worse].rating)
    ] or suite.contrasts


def _score_columns(suite: Suite, scores: Sequence[Scores]) -> dict[str, Floats]:
    rows = _rated_sentences(suite)
    ids = [sentence.id for sentence in rows]
    is_rated = rows[0].rating is not None
    ratings = {HUMAN_RATINGS: np.array([row.rating for row in rows], dtype=np.float64)} if is_rated else {}
    return ratings | {name: model_scores.of(ids) for name, model_scores in _key_by_model(scores).items()}


def _gap_columns(suite: Suite, scores: Sequence[Scores]) -> dict[str, Floats]:
    ratings = {sentence.id: sentence.rating for sentence in suite.sentences if sentence.rating is not None}
    pairs = _rated_contrasts(suite)
    rated = [pair for pair in pairs if pair.better in ratings and pair.worse in ratings]
    human_gaps = np.array([ratings[pair.better] - ratings[pair.worse] for pair in rated])
    return ({HUMAN_RATINGS: human_gaps} if rated else {}) | {
        name: model_scores.of(pair.better for pair in pairs) - model_scores.of(pair.worse for pair in pairs)
        for name, model_scores in _key_by_model(scores).items()
    }


def _key_by_model(scores: Sequence[Scores]) -> dict[str, Scores]:
    """Return the scores by model and reduction; a repeated name is an error."""
    names = [f"{model_scores.model} {model_scores.reduction}".strip() for model_scores in scores]
    # The names are keys of columns: of two models with one name, the second would silently replace the first.
    if repeated := [name for name, count in Counter([*names, HUMAN_RATINGS]).items() if count > 1]:
        raise MeasureError(f"two columns of scores are called {repeated[0]!r}; give each model once")
    return dict(zip(names, scores, strict=True))


_COLUMN_BUILDERS: dict[str, Callable[[Suite, Sequence[Scores]], dict[str, Floats]]] = {
    "scores": _score_columns,
    "gaps": _gap_columns,
}
