"""Equivalence of models: whether two models' values differ by less than the smallest difference that matters.

The tests are two one-sided tests (TOST) on the same rows or sampling units: score tests where each row is right or
wrong, Student's t for other means and for rows in clusters, the bootstrap for measures that are no mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from acceptability import __version__
from acceptability.api.comparison import align_rows, label_scores
from acceptability.api.evaluation import choose_resampling, resolve_measures, sign_refit
from acceptability.api.interface.arguments import as_suite
from acceptability.errors import MeasureError, Undefined
from acceptability.protocols import Measure
from acceptability.specs import build_signature
from acceptability.stats.bootstrap import Bootstrap, build_difference_stratum
from acceptability.stats.effects.equivalence_tests import (
    PERCENTILE,
    EquivalenceTest,
    equivalence_of_means,
    equivalence_of_proportions,
    equivalence_of_resamples,
)
from acceptability.stats.resampling import count_sampling_units, get_cluster_keys
from acceptability.stats.sampling_units import fit_unit_to_rows
from acceptability.types import SINGLE_ROWS, Scores, Suite, Units, restrict_to_scored


@dataclass(frozen=True)
class ModelEquivalence:
    """Whether two models are equivalent on a suite, up to a margin.

    Args:
        first, second: The names of the models with their reductions.
        difference: The value of the first model minus that of the second; None if it is undefined.
        low, high: The interval of the difference at the level 1 − 2 alpha, which agrees with the tests.
        margin: The smallest difference that matters.
        p: The larger p of the two one-sided tests.
        p_lower, p_upper: p of the hypotheses that the difference is −margin or less, and margin or more.
        alpha: The significance level.
        verdict: "equivalent", "different by more than the margin", or "undecided".
        method: The method of the tests and of the interval.
        unit: What the tests take for independent: "row", or a tag.
        n: The number of these units.
        reason: Why the difference or its tests are undefined.
    """

    measure: str
    suite: str
    first: str
    second: str
    margin: float
    alpha: float
    signature: str
    unit: str
    n: int
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    p_lower: float | None = None
    p_upper: float | None = None
    verdict: str | None = None
    method: str | None = None
    reason: str | None = None
    notes: tuple[str, ...] = ()

    def row(self) -> dict[str, object]:
        """Return the tests as one flat row, for JSON and tables."""
        return asdict(self) | {"notes": "; ".join(self.notes)}


def equivalence(
    suite: Suite | str,
    scores: Sequence[Scores],
    measures: Sequence[str | Measure] = (),
    *,
    margin: float,
    alpha: float = 0.05,
    bootstrap: Bootstrap | None = None,
) -> list[ModelEquivalence]:
    """Test whether the first model is equivalent to each of the others, up to a margin (TOST).

    Args:
        suite: A suite or its name.
        scores: The scores of two or more models.
        measures: Measures or their specs; by default those that apply to the suite.
        margin: The smallest difference that matters, in units of the measure: .02 is two points of accuracy.
        alpha: The significance level; the interval has the level 1 − 2 alpha.
        bootstrap: The sampling unit (``by``) of all tests, by default that of the suite, and the resamples and seed of
            bootstrap tests.

    >>> from acceptability import Contrast, Sentence
    >>> ids = [f"{i}{mark}" for i in range(200) for mark in "ab"]
    >>> contrasts = tuple(Contrast(f"{i}a", f"{i}b") for i in range(200))
    >>> suite = Suite("toy", tuple(Sentence(name, f"Sentence {name}.") for name in ids), contrasts)
    >>> first = Scores({name: float(name.endswith("a")) for name in ids}, "first")
    >>> second = Scores({**first.values, "0a": -1.0}, "second")
    >>> (test,) = equivalence(suite, [first, second], ["PairAccuracy"], margin=0.03)
    >>> test.difference, test.verdict, test.method
    (0.005, 'equivalent', 'score test of paired proportions (Tango 1998)')
    """
    suite = restrict_to_scored(as_suite(suite), scores)
    if len(scores) < 2:
        raise MeasureError(f"a test of equivalence needs the scores of two models; there are {len(scores)}")
    tests = []
    for measure in resolve_measures(suite, measures, by=None, bootstrap=bootstrap):
        resampling, unit_notes = choose_resampling(suite, measure, bootstrap)
        for other in scores[1:]:
            pair = scores[0], other
            resolved = measure.resolve(pair, resampling.by or "")
            test = _test_models(suite, resolved, pair, (margin, alpha), resampling)
            tests.append(replace(test, notes=(*test.notes, *unit_notes)))
    return tests


def _test_models(
    suite: Suite,
    measure: Measure,
    models: tuple[Scores, Scores],
    margin_and_alpha: tuple[float, float],
    resampling: Bootstrap,
) -> ModelEquivalence:
    (first, second), (margin, alpha) = models, margin_and_alpha
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    names = repr(measure), suite.name, label_scores(first), label_scores(second), margin, alpha
    try:
        units_first, units_second, shared = align_rows(measure.units(suite, first), measure.units(suite, second))
        # A unit of one row everywhere is the row.
        resampling = fit_unit_to_rows(resampling, units_first)
        n = count_sampling_units(units_first, resampling.by)
        test = _choose_test(measure, (units_first, units_second), margin, alpha, resampling)
    except Undefined as error:
        fields = _sign_fields(suite, models, margin, alpha, resampling, method="none")
        return ModelEquivalence(
            *names,
            build_signature(repr(measure), fields),
            resampling.by or SINGLE_ROWS,
            0,
            reason=str(error),
            notes=notes,
        )
    fields = _sign_fields(suite, models, margin, alpha, resampling, method=test.method)
    fields |= sign_refit((units_first, units_second), resampling) | {"n": str(n)}
    # The number of rows alone would not show that some of each model's rows are missing from the test.
    fields |= {"rows": shared} if shared else {}
    return ModelEquivalence(
        *names,
        build_signature(repr(measure), fields),
        resampling.by or SINGLE_ROWS,
        n,
        test.difference,
        test.low,
        test.high,
        test.p,
        test.p_lower,
        test.p_upper,
        test.verdict,
        test.method,
        notes=tuple(dict.fromkeys((*units_first.notes, *units_second.notes, *notes))),
    )


def _choose_test(
    measure: Measure, units: tuple[Units, Units], margin: float, alpha: float, resampling: Bootstrap
) -> EquivalenceTest:
    """Return the test that fits the rows: of shares, of means, or by resampling."""
    first, second = units
    column, by = measure.mean_of, resampling.by
    is_fitted = any(rows.refit is not None for rows in units)
    if column is None or is_fitted:
        difference = measure.value(first) - measure.value(second)
        stratum = build_difference_stratum(measure, first, second, resampling)
        if stratum.size < 2 or not resampling.resamples:
            raise Undefined("a test by the bootstrap needs two rows or clusters, and resamples")
        resampled = stratum.resample(0)
        return equivalence_of_resamples(difference, resampled, margin, count_sampling_units(first, by), alpha=alpha)
    is_binary = all(np.isin(rows[column], (0.0, 1.0)).all() for rows in units)
    if is_binary and not by:
        return equivalence_of_proportions(first[column], second[column], margin, alpha=alpha)
    clusters = get_cluster_keys(first, by) if by else None
    return equivalence_of_means(first[column], second[column], margin, clusters=clusters, alpha=alpha)


def _sign_fields(
    suite: Suite,
    models: tuple[Scores, Scores],
    margin: float,
    alpha: float,
    resampling: Bootstrap,
    *,
    method: str,
) -> dict[str, str]:
    first, second = models
    ci_level = f"{1 - 2 * alpha:g}"
    ci = replace(resampling, level=float(ci_level), method="percentile").signature
    return {
        "suite": suite.signature,
        "model": f"{first.signature or first.model} minus {second.signature or second.model}",
        "ci": ci if method == PERCENTILE else f"test inverted({ci_level})",
        "test": f"tost(margin={margin:g},alpha={alpha:g},by={resampling.by or SINGLE_ROWS},{method})",
        "acceptability": __version__,
    }
