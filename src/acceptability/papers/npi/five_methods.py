"""Five methods on one suite: Boolean acceptability, absolute pairs, gradient pairs, cloze, and feature probing.

After Warstadt et al. (2019), "Investigating BERT's Knowledge of Language: Five Analysis Methods with NPIs", for any
suite whose sentences have labels, items and factors. A method that does not apply gives a cell with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from acceptability.api.contrasts import score_target_contrasts
from acceptability.api.evaluation import measure
from acceptability.api.interface.arguments import as_model
from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import MeasureError, MissingExtra, ModelError, OutOfMemory, SuiteError
from acceptability.measures.classification import MCC, find_natural_threshold
from acceptability.measures.pairs import AbsolutePair, GradientPair
from acceptability.measures.rows import collect_row_tags
from acceptability.measures.target_contrast import ClozePair
from acceptability.probing import BAG_OF_WORDS, ProbeScore, find_factors, probe
from acceptability.probing.design import ALL_SENTENCES
from acceptability.protocols import Measure
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.sampling_units import resolve_sampling_unit
from acceptability.suites import add_minimal_pairs
from acceptability.types import Result, Scores, Suite

METHODS = ("Boolean", "absolute pair", "gradient pair", "cloze", "probing")


@dataclass(frozen=True)
class MethodCell:
    """The result of one method for one model, on one group of sentences or pairs.

    Args:
        model: The model.
        group: The group, such as ``environment=only``, or that of all sentences.
        method: One of the five; probing with its factor, as in "probing: licensor".
        value: MCC for Boolean acceptability and for probing, else the share of correct pairs; None if undefined.
        low: The lower end of its confidence interval.
        high: The upper end of it.
        n: How many sentences or pairs it is computed from.
        beside: Numbers to compare it with: for probing the baseline, the control task and the selectivity.
        reason: Why there is no value.
        notes: Caveats.
        signature: What reproduces the value.
    """

    model: str
    group: str
    method: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    beside: str = ""
    reason: str | None = None
    notes: tuple[str, ...] = ()
    signature: str = ""

    def row(self) -> dict[str, object]:
        """Return the cell as one flat row, for JSON and CSV."""
        return asdict(self) | {"notes": "; ".join(self.notes)}


@dataclass(frozen=True, eq=False)
class MethodsPlan:
    """The data and settings of the five methods.

    Args:
        suite: Labelled sentences, with contrasts.
        cloze_suite: Pairs that differ in one word.
        probing_suite: Sentences that carry the factors.
        factors: The tags to probe for.
        by: The tag whose values are the groups.
        layers: The layers to probe; of several, the last one is reported.
        limit: The largest number of sentences per group to probe with; None for all.
        seed: Seeds the probes and the draw of their sentences.
        bootstrap: How confidence intervals are computed.
    """

    suite: Suite
    cloze_suite: Suite
    probing_suite: Suite
    factors: tuple[str, ...]
    by: str | None = None
    layers: tuple[int, ...] = (-1,)
    limit: int | None = None
    seed: int = 0
    bootstrap: Bootstrap = field(default_factory=Bootstrap)


def plan_methods(
    suite: Suite,
    *,
    cloze_suite: Suite | None = None,
    probing_suite: Suite | None = None,
    factors: Sequence[str] = (),
    by: str | None = None,
    layer: int = -1,
    limit: int | None = None,
    seed: int = 0,
    bootstrap: Bootstrap | None = None,
) -> MethodsPlan:
    """Return the plan of the five methods for a suite.

    A suite without contrasts gets its minimal pairs: sentences of one item that differ in one factor and in label.

    Args:
        suite: Labelled sentences.
        cloze_suite: Pairs for the cloze test; by default those of the suite that differ in one word.
        probing_suite: Sentences for probing; by default those of the suite.
        factors: The tags to probe for; by default those that vary within items.
        by: The tag whose values are the groups.
        layer: The layer to probe; negative numbers count from the last.
        limit: The largest number of sentences per group to probe with; None for all.
        seed: Seeds the probes, the draw of their sentences and, by default, the bootstrap.
        bootstrap: How confidence intervals are computed.
    """
    source = probing_suite or suite
    factor_names = tuple(factors) or find_factors(source)
    paired_suite = suite if suite.contrasts else add_minimal_pairs(suite, factor_names)
    resampling = bootstrap or Bootstrap(seed=seed)
    return MethodsPlan(
        paired_suite, cloze_suite or paired_suite, source, factor_names, by, (layer,), limit, seed, resampling
    )


def run_five_methods(
    plan: MethodsPlan, models: Sequence[str], progress: ProgressCallback | None = None
) -> list[MethodCell]:
    """Return the result of each method for each model, on all rows and on each group.

    Args:
        plan: The data and settings.
        models: Language models and classifiers.
        progress: Called with the progress of scoring and probing.
    """
    # Load every model once before any work: a misspelt last one should fail now, not after hours of scoring.
    for model in models:
        as_model(model)
    baseline = _probe_baseline(plan, progress)
    return [cell for model in models for cell in _evaluate_model(plan, model, baseline, progress)]


def _evaluate_model(
    plan: MethodsPlan, model: str, baseline: Mapping[tuple[str, str], ProbeScore], progress: ProgressCallback | None
) -> Iterator[MethodCell]:
    # Loaded models are cached by weak reference: holding one here keeps it from being loaded again for each method, and
    # deleting it at the end frees its memory before the next model is loaded.
    _, loaded = as_model(model)
    scores = score(plan.suite, model, progress=progress)
    # ``score`` chooses a reduction by the kind of the model, which tells classifiers from language models.
    is_classifier = find_natural_threshold(scores) is not None
    # Log-odds have a natural threshold. The scores of a language model need one that is fitted, on the other folds.
    boolean = MCC().resolve([scores], resolve_sampling_unit(plan.bootstrap, plan.suite).by or "")
    yield from _measure_cells(plan, plan.suite, scores, boolean, "Boolean")
    yield from compute_absolute_cells(plan, scores, boolean)
    yield from _measure_cells(plan, plan.suite, scores, GradientPair(), "gradient pair")
    yield from compute_cloze_cells(plan, model, is_classifier, progress)
    yield from compute_probing_cells(plan, model, baseline, progress)
    del loaded


def compute_absolute_cells(plan: MethodsPlan, scores: Scores, boolean: MCC) -> Iterator[MethodCell]:
    """Yield how often both sentences of a pair are classified correctly.

    A language model has no decision threshold of its own: its decisions are those of the thresholds that Boolean
    acceptability fitted by cross-validation, by the majority of the splits into folds.

    Args:
        plan: The data and settings.
        scores: The scores of the suite.
        boolean: The measure of Boolean acceptability, with its threshold.
    """
    if not isinstance(boolean.threshold, str):
        yield from _measure_cells(plan, plan.suite, scores, AbsolutePair(boolean.threshold), "absolute pair")
        return
    try:
        units = boolean.units(plan.suite, scores)
    except MeasureError as error:
        yield MethodCell(scores.model, ALL_SENTENCES, "absolute pair", None, reason=str(error))
        return
    # The cross-validated decisions become scores from 0 to 1, the share of the splits that accept the sentence, so that
    # the usual measure of pairs applies with a threshold between them. The signature names the step, without which the
    # scores would look like log-probabilities.
    decisions = dict(zip(units.ids, units["predicted"].tolist(), strict=True))
    undecided = [pair for pair in plan.suite.contrasts if pair.better not in decisions or pair.worse not in decisions]
    # Folds are made of labelled sentences only, so that others have no decision.
    if undecided:
        reason = f"the contrast {undecided[0].id} has a sentence without a label"
        yield MethodCell(scores.model, ALL_SENTENCES, "absolute pair", None, reason=reason)
        return
    decision = f"{boolean!r}.decision"
    decision_scores = replace(
        scores, values=decisions, reduction=f"{scores.reduction}.{decision}", signature=f"{scores.signature}.{decision}"
    )
    yield from _measure_cells(plan, plan.suite, decision_scores, AbsolutePair(threshold=0.5), "absolute pair")


def compute_cloze_cells(
    plan: MethodsPlan, model: str, is_classifier: bool, progress: ProgressCallback | None = None
) -> Iterator[MethodCell]:
    """Yield how often a model gives the acceptable one of two words the higher probability.

    A masked model sees the rest of the sentence with the word masked, a causal one only what precedes it.

    Args:
        plan: The data and settings.
        model: The model.
        is_classifier: Whether it is a classifier, which predicts no words.
        progress: Called with the progress of scoring.
    """
    if is_classifier:
        yield MethodCell(model, ALL_SENTENCES, "cloze", None, reason="a classifier predicts no words")
        return
    if not plan.cloze_suite.contrasts:
        yield MethodCell(
            model, ALL_SENTENCES, "cloze", None, reason=f"suite {plan.cloze_suite.name!r} has no contrasts"
        )
        return
    # A model that cannot do the test gets a cell with the reason, and the other methods still run. Running out of
    # memory is no such answer: the user can run it again with less.
    try:
        targets = score_target_contrasts(plan.cloze_suite, model, multi_token=True, progress=progress)
    except OutOfMemory:
        raise
    except (SuiteError, ModelError) as error:
        yield MethodCell(model, ALL_SENTENCES, "cloze", None, reason=str(error))
        return
    scores = replace(targets.scores, notes=tuple(targets.notes()))
    yield from _measure_cells(plan, targets.suite, scores, ClozePair(), "cloze")


def compute_probing_cells(
    plan: MethodsPlan,
    model: str,
    baseline: Mapping[tuple[str, str], ProbeScore],
    progress: ProgressCallback | None = None,
) -> Iterator[MethodCell]:
    """Yield how well a probe decodes each factor from the sentence vectors of a layer, beside a bag-of-words baseline.

    Args:
        plan: The data and settings.
        model: The model whose hidden states are probed.
        baseline: The scores of the bag of words, by factor and group.
        progress: Called with the progress of encoding.
    """
    if reason := _reason_not_probed(plan):
        yield MethodCell(model, ALL_SENTENCES, "probing", None, reason=reason)
        return
    try:
        probe_scores = _probe_encoder(plan, model, progress)
    except OutOfMemory:
        raise
    except (SuiteError, ModelError, MissingExtra) as error:
        names = (f"probing: {factor}" for factor in plan.factors)
        yield from (MethodCell(model, ALL_SENTENCES, name, None, reason=str(error)) for name in names)
        return
    for factor in plan.factors:
        cells = [
            _make_probe_cell(plan, probe_score, baseline)
            for probe_score in probe_scores
            if probe_score.factor == factor
        ]
        yield from cells
        # The first cell is that of all sentences; the macro-average is over the groups alone.
        if plan.by and len(cells) > 1:
            yield _average_cells(cells[1:], f"macro({plan.by})")
        elif plan.by:
            reason = f"the sentences of suite {plan.probing_suite.name!r} have no tag {plan.by!r}"
            yield MethodCell(model, f"macro({plan.by})", f"probing: {factor}", None, reason=reason)


def _reason_not_probed(plan: MethodsPlan) -> str | None:
    known_tags = sorted({tag for sentence in plan.probing_suite.sentences for tag in sentence.tags})
    if not plan.factors:
        return (
            f"no tag of suite {plan.probing_suite.name!r} varies within items; name factors, or a suite that has some"
        )
    missing = [factor for factor in plan.factors if factor not in known_tags]
    return f"no sentence of suite {plan.probing_suite.name!r} has the tag {missing[0]!r}" if missing else None


def _probe_encoder(plan: MethodsPlan, encoder: str, progress: ProgressCallback | None) -> list[ProbeScore]:
    """Return the probe scores of an encoder on all sentences, followed by those of each group."""
    has_groups = plan.by is not None and any(plan.by in sentence.tags for sentence in plan.probing_suite.sentences)
    return [
        probe_score
        for by in (None, *([plan.by] if has_groups else []))
        for probe_score in probe(
            plan.probing_suite,
            encoder,
            factors=plan.factors,
            by=by,
            layers=plan.layers,
            limit=plan.limit,
            seed=plan.seed,
            resamples=plan.bootstrap.resamples,
            progress=progress,
        )
    ]


def _probe_baseline(plan: MethodsPlan, progress: ProgressCallback | None) -> dict[tuple[str, str], ProbeScore]:
    if _reason_not_probed(plan):
        return {}
    try:
        # Zero resamples: the interval of the baseline is not shown.
        probe_scores = _probe_encoder(replace(plan, bootstrap=Bootstrap(0)), BAG_OF_WORDS, progress)
    except (SuiteError, MissingExtra):
        # Probing the models fails for the same reason, and their cells report it.
        return {}
    return {(probe_score.factor, probe_score.group): probe_score for probe_score in probe_scores}


def _make_probe_cell(
    plan: MethodsPlan, probe_score: ProbeScore, baseline: Mapping[tuple[str, str], ProbeScore]
) -> MethodCell:
    simple = baseline[probe_score.factor, probe_score.group].mcc
    references = [("bag of words", simple), ("control", probe_score.control), ("selectivity", probe_score.selectivity)]
    return MethodCell(
        probe_score.encoder,
        probe_score.group if probe_score.group == ALL_SENTENCES else f"{plan.by}={probe_score.group}",
        f"probing: {probe_score.factor}",
        probe_score.mcc,
        probe_score.low,
        probe_score.high,
        probe_score.test,
        ", ".join(f"{name} {value:.2f}" for name, value in references if value is not None),
        probe_score.reason,
        (*probe_score.notes, f"layer {probe_score.layer}"),
        probe_score.signature,
    )


def _average_cells(cells: Sequence[MethodCell], group: str) -> MethodCell:
    """Return the macro-average: the mean over groups that have a value; a note names the others."""
    values = [cell.value for cell in cells if cell.value is not None]
    undefined_groups = [cell.group for cell in cells if cell.value is None]
    notes = (f"without {', '.join(undefined_groups)}",) if undefined_groups else ()
    blank = replace(cells[0], group=group, low=None, high=None, beside="", notes=notes, reason=None)
    if not values:
        return replace(blank, value=None, n=0, reason="no group has a value")
    return replace(blank, value=float(np.mean(values)), n=sum(cell.n for cell in cells if cell.value is not None))


def _measure_cells(
    plan: MethodsPlan, suite: Suite, scores: Scores, requested: Measure, method: str
) -> Iterator[MethodCell]:
    """Yield the results of a measure as cells; if the suite lacks what the measure needs, a cell with the reason."""
    row_kind, rows = collect_row_tags(suite, requested)
    by = plan.by if plan.by and any(plan.by in tags for tags in rows) else None
    try:
        results = measure(suite, scores, [requested], by=by, bootstrap=plan.bootstrap)
    except (MeasureError, SuiteError) as error:
        yield MethodCell(scores.model, ALL_SENTENCES, method, None, reason=str(error))
        return
    for result in results:
        yield _make_cell(result, method)
    if plan.by and not by:
        reason = f"the {row_kind} of suite {suite.name!r} have no tag {plan.by!r}"
        yield MethodCell(scores.model, f"macro({plan.by})", method, None, reason=reason)


def _make_cell(result: Result, method: str) -> MethodCell:
    return MethodCell(
        result.model,
        result.group or ALL_SENTENCES,
        method,
        result.value,
        result.low,
        result.high,
        result.n,
        reason=result.reason,
        notes=result.notes,
        signature=result.signature,
    )
