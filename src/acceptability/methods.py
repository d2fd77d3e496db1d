"""Five methods on one suite: Boolean acceptability, absolute pairs, gradient pairs, cloze, feature probing.

After Warstadt et al. (2019, Investigating BERT's knowledge of language: five analysis methods with NPIs), for any suite
whose sentences have labels, items and factors. A method that cannot be used says why.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np

from acceptability.contrasts import target_contrasts
from acceptability.errors import MeasureError, ModelError, OutOfMemory, SuiteError
from acceptability.measures.classification import MCC
from acceptability.measures.contrast import ClozePair
from acceptability.measures.decisions import AbsolutePair, GradientPair
from acceptability.measures.gathering import row_tags
from acceptability.measuring import measure
from acceptability.probing import BAG_OF_WORDS, ProbeScore, factors_of, probe
from acceptability.probing.design import EVERYTHING
from acceptability.protocols import Measure
from acceptability.scoring import Progress, as_model, score
from acceptability.stats.bootstrap import Bootstrap
from acceptability.suites.minimal import minimal_pairs
from acceptability.types import Result, Scores, Suite

METHODS = ("Boolean", "absolute pair", "gradient pair", "cloze", "probing")
_CLASSIFIED = ("log_odds", "p_acceptable", "signed_confidence")


@dataclass(frozen=True)
class Cell:
    """What one method says of one model, on one group of sentences or pairs.

    Args:
        method: One of the five; probing with its factor, as "probing: licensor".
        value: MCC for Boolean acceptability and for probing, else the share of pairs in order; None where there is
            none, and ``reason`` says why.
        n: How many sentences or pairs it rests on.
        beside: What to hold against it: for probing the baseline and the selectivity.
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
class Plan:
    """What the methods are asked on.

    Args:
        suite: Labelled sentences, with contrasts.
        cloze: Pairs that differ in one word.
        probed: Sentences that carry the factors.
        by: The tag of the groups.
        layers: Which layers are probed; of several, the last one is told.
    """

    suite: Suite
    cloze: Suite
    probed: Suite
    factors: tuple[str, ...]
    by: str | None = None
    layers: tuple[int, ...] = (-1,)
    limit: int | None = None
    seed: int = 0
    how: Bootstrap = field(default_factory=Bootstrap)


def planned(
    suite: Suite,
    *,
    cloze: Suite | None = None,
    probed: Suite | None = None,
    factors: Sequence[str] = (),
    by: str | None = None,
    layer: int = -1,
    limit: int | None = None,
    seed: int = 0,
    bootstrap: Bootstrap | None = None,
) -> Plan:
    """Return what the five methods are asked on.

    A suite without contrasts gets its minimal pairs: sentences of one item that differ in one factor and in label.

    Args:
        cloze: Pairs for the cloze test; by default those of the suite that differ in one word.
        probed: Sentences for probing; by default those of the suite.
        factors: The tags that are probed for; by default those that vary within items.
    """
    source = probed or suite
    named = tuple(factors) or factors_of(source)
    whole = suite if suite.contrasts else minimal_pairs(suite, named)
    how = bootstrap or Bootstrap(seed=seed)
    return Plan(whole, cloze or whole, source, named, by, (layer,), limit, seed, how)


def five_methods(plan: Plan, models: Sequence[str], progress: Progress | None = None) -> list[Cell]:
    """Return what each of the five methods says of each model, for all rows and for each group."""
    for model in models:
        as_model(model)
    baseline = _baseline(plan, progress)
    return [cell for model in models for cell in _of_model(plan, model, baseline, progress)]


def _of_model(
    plan: Plan, model: str, baseline: Mapping[tuple[str, str], ProbeScore], tell: Progress | None
) -> Iterator[Cell]:
    _, in_use = as_model(model)
    scores = score(plan.suite, model, progress=tell)
    is_classifier = scores.reduction.partition("(")[0] in _CLASSIFIED
    boolean = MCC(threshold=0.0) if is_classifier else MCC(threshold="cv")
    yield from _measured(plan, plan.suite, scores, boolean, "Boolean")
    yield from absolute(plan, scores, boolean)
    yield from _measured(plan, plan.suite, scores, GradientPair(), "gradient pair")
    yield from cloze_cells(plan, model, is_classifier, tell)
    yield from probing_cells(plan, model, baseline, tell)
    del in_use


def absolute(plan: Plan, scores: Scores, boolean: MCC) -> Iterator[Cell]:
    """Yield how often both members of a pair are decided right.

    A language model has no line of its own between acceptable and unacceptable: its decisions are those of the
    threshold that was fitted on the other folds.
    """
    if boolean.threshold == 0.0:
        yield from _measured(plan, plan.suite, scores, AbsolutePair(threshold=0.0), "absolute pair")
        return
    try:
        units = boolean.units(plan.suite, scores)
    except MeasureError as error:
        yield Cell(scores.model, EVERYTHING, "absolute pair", None, reason=str(error))
        return
    decided = dict(zip(units.ids, units["predicted"].tolist(), strict=True))
    lacking = [each for each in plan.suite.contrasts if each.better not in decided or each.worse not in decided]
    if lacking:
        reason = f"the contrast {lacking[0].id} has a sentence without a label"
        yield Cell(scores.model, EVERYTHING, "absolute pair", None, reason=reason)
        return
    line = f"{boolean!r}.decision"
    said = replace(
        scores, values=decided, reduction=f"{scores.reduction}.{line}", signature=f"{scores.signature}.{line}"
    )
    yield from _measured(plan, plan.suite, said, AbsolutePair(threshold=0.5), "absolute pair")


def cloze_cells(plan: Plan, model: str, is_classifier: bool, tell: Progress | None = None) -> Iterator[Cell]:
    """Yield how often a model finds the acceptable one of two words more probable: hidden, or after what precedes."""
    if is_classifier:
        yield Cell(model, EVERYTHING, "cloze", None, reason="a classifier predicts no words")
        return
    if not plan.cloze.contrasts:
        yield Cell(model, EVERYTHING, "cloze", None, reason=f"suite {plan.cloze.name!r} has no contrasts")
        return
    try:
        found = target_contrasts(plan.cloze, model, multi_token=True, progress=tell)
    except OutOfMemory:
        raise
    except (SuiteError, ModelError) as error:
        yield Cell(model, EVERYTHING, "cloze", None, reason=str(error))
        return
    scores = replace(found.scores, notes=(*found.scores.notes, *found.notes()))
    yield from _measured(plan, found.suite, scores, ClozePair(), "cloze")


def probing_cells(
    plan: Plan, model: str, baseline: Mapping[tuple[str, str], ProbeScore], tell: Progress | None = None
) -> Iterator[Cell]:
    """Yield how well each factor can be read off the sentence vectors of a layer, beside a bag of words."""
    if reason := _unprobed(plan):
        yield Cell(model, EVERYTHING, "probing", None, reason=reason)
        return
    try:
        found = _probed(plan, model, tell)
    except OutOfMemory:
        raise
    except (SuiteError, ModelError) as error:
        names = (f"probing: {factor}" for factor in plan.factors)
        yield from (Cell(model, EVERYTHING, name, None, reason=str(error)) for name in names)
        return
    for factor in plan.factors:
        cells = [_probe_cell(plan, each, baseline) for each in found if each.factor == factor]
        yield from cells
        if plan.by and len(cells) > 1:
            yield _mean(cells[1:], f"macro({plan.by})")
        elif plan.by:
            reason = f"the sentences of suite {plan.probed.name!r} have no tag {plan.by!r}"
            yield Cell(model, f"macro({plan.by})", f"probing: {factor}", None, reason=reason)


def _unprobed(plan: Plan) -> str | None:
    has = sorted({tag for each in plan.probed.sentences for tag in each.tags})
    if not plan.factors:
        return f"no tag of suite {plan.probed.name!r} varies within items; name factors, or a suite that has some"
    lacking = [factor for factor in plan.factors if factor not in has]
    return f"no sentence of suite {plan.probed.name!r} has the tag {lacking[0]!r}" if lacking else None


def _probed(plan: Plan, encoder: str, tell: Progress | None) -> list[ProbeScore]:
    """Return the scores of an encoder on all sentences, and then those of each group."""
    has = plan.by is not None and any(plan.by in each.tags for each in plan.probed.sentences)
    return [
        each
        for by in (None, *([plan.by] if has else []))
        for each in probe(
            plan.probed,
            encoder,
            factors=plan.factors,
            by=by,
            layers=plan.layers,
            limit=plan.limit,
            seed=plan.seed,
            resamples=plan.how.resamples,
            tell=tell,
        )
    ]


def _baseline(plan: Plan, tell: Progress | None) -> dict[tuple[str, str], ProbeScore]:
    if _unprobed(plan):
        return {}
    try:
        found = _probed(replace(plan, how=Bootstrap(0)), BAG_OF_WORDS, tell)
    except SuiteError:  # which the cell of every model will say
        return {}
    return {(each.factor, each.group): each for each in found}


def _probe_cell(plan: Plan, each: ProbeScore, baseline: Mapping[tuple[str, str], ProbeScore]) -> Cell:
    simple = baseline[each.factor, each.group].mcc
    against = [("bag of words", simple), ("control", each.control), ("selectivity", each.selectivity)]
    return Cell(
        each.encoder,
        each.group if each.group == EVERYTHING else f"{plan.by}={each.group}",
        f"probing: {each.factor}",
        each.mcc,
        each.low,
        each.high,
        each.test,
        ", ".join(f"{name} {value:.2f}" for name, value in against if value is not None),
        each.reason,
        (*each.notes, f"layer {each.layer}"),
        each.signature,
    )


def _mean(cells: Sequence[Cell], group: str) -> Cell:
    """Return the mean over groups; groups without a value are in none, and a note names them."""
    there = [each.value for each in cells if each.value is not None]
    lost = [each.group for each in cells if each.value is None]
    notes = (f"without {', '.join(lost)}",) if lost else ()
    blank = replace(cells[0], group=group, low=None, high=None, beside="", notes=notes, reason=None)
    if not there:
        return replace(blank, value=None, n=0, reason="no group has a value")
    return replace(blank, value=float(np.mean(there)), n=sum(each.n for each in cells if each.value is not None))


def _measured(plan: Plan, suite: Suite, scores: Scores, asked: Measure, method: str) -> Iterator[Cell]:
    """Yield a measure's results as cells; what the suite lacks for it is the reason of an empty one."""
    what, rows = row_tags(suite, asked)
    by = plan.by if plan.by and any(plan.by in tags for tags in rows) else None
    try:
        results = measure(suite, scores, [asked], by=by, bootstrap=plan.how)
    except (MeasureError, SuiteError) as error:
        yield Cell(scores.model, EVERYTHING, method, None, reason=str(error))
        return
    for each in results:
        yield _cell(each, method)
    if plan.by and not by:
        reason = f"the {what} of suite {suite.name!r} have no tag {plan.by!r}"
        yield Cell(scores.model, f"macro({plan.by})", method, None, reason=reason)


def _cell(each: Result, method: str) -> Cell:
    about = each.model, each.group or EVERYTHING, method, each.value, each.low, each.high, each.n
    return Cell(*about, reason=each.reason, notes=each.notes, signature=each.signature)
