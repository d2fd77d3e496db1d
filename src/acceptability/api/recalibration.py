"""Calibration of a classifier's probabilities on a suite, before and after recalibration.

Recalibration is temperature scaling (Guo et al. 2017) or isotonic regression. It is fitted on one suite and evaluated
on another. If both are the same, it is cross-fitted: each tenth of the sentences is recalibrated by a fit on the other
nine, so that no sentence influences its own probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from acceptability import __version__
from acceptability.api.interface.arguments import as_suite
from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import MeasureError
from acceptability.measures.classification import iter_stratified_folds
from acceptability.measures.rows import require_labelled
from acceptability.protocols import Engine, Model
from acceptability.specs import build_signature
from acceptability.stats.calibration import (
    CalibrationError,
    ReliabilityBin,
    apply_temperature,
    bin_equal_mass,
    bin_equal_width,
    brier_score,
    debiased_calibration_error,
    expected_calibration_error,
    fit_isotonic,
    fit_temperature,
)
from acceptability.types import SINGLE_ROWS, Floats, Suite

CALIBRATION_METHODS = ("temperature", "isotonic")
FOLDS = 10
BINS = 10

# Fixed rather than an option: the assignment of sentences to folds matters little, and the signature records it.
_SEED = 0


@dataclass(frozen=True)
class Reliability:
    """How far predicted probabilities are from observed relative frequencies.

    Args:
        width, mass: The reliability diagram with bins of equal width, and with bins of equally many sentences.
        ece_width, ece_mass: The expected calibration error over these bins.
        brier: The Brier score, the mean squared difference from the labels.
        debiased: The debiased root mean square calibration error over bins of equally many sentences, with its
            interval; after recalibration it is that of the probabilities as they were fitted.
    """

    width: tuple[ReliabilityBin, ...]
    mass: tuple[ReliabilityBin, ...]
    ece_width: float
    ece_mass: float
    brier: float
    debiased: CalibrationError


@dataclass(frozen=True)
class Calibration:
    """A classifier's calibration on a suite, before and after recalibration.

    Args:
        fit: The name of the suite that the recalibration was fitted on.
        method: "temperature" or "isotonic".
        n: The number of labelled sentences.
        folds: The number of folds of the cross-fitting; 0 if it was fitted on another suite.
        temperature: The temperature fitted on all sentences of ``fit``; None for isotonic regression.
        temperatures: The temperatures fitted in cross-fitting.
        knots: The (log-odds, probability) points of the isotonic function fitted on all sentences of ``fit``.
    """

    model: str
    suite: str
    fit: str
    method: str
    n: int
    folds: int
    temperature: float | None
    temperatures: tuple[float, ...]
    knots: tuple[tuple[float, float], ...]
    before: Reliability
    after: Reliability
    signature: str
    notes: tuple[str, ...] = ()

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield a flat row for each bin, before and after, for tables and plots."""
        for when, reliability in (("before", self.before), ("after", self.after)):
            for bins, table in (("equal width", reliability.width), ("equal mass", reliability.mass)):
                for bin_number, reliability_bin in enumerate(table, start=1):
                    yield {"when": when, "bins": bins, "bin": bin_number, **asdict(reliability_bin)}

    def to_dict(self) -> dict[str, object]:
        """Return everything as data for JSON."""
        names = ("model", "suite", "fit", "method", "n", "folds", "temperature", "temperatures", "knots")
        errors = ("ece_width", "ece_mass", "brier")

        def list_errors(reliability: Reliability) -> dict[str, object]:
            return {name: getattr(reliability, name) for name in errors} | {"debiased": asdict(reliability.debiased)}

        return {
            **{name: getattr(self, name) for name in names},
            "before": list_errors(self.before),
            "after": list_errors(self.after),
            "rows": list(self.rows()),
            "notes": "; ".join(self.notes),
            "signature": self.signature,
        }


@dataclass(frozen=True, eq=False)
class _LabelledOdds:
    """The labelled sentences of a suite, with a classifier's log-odds."""

    suite: Suite
    ids: tuple[str, ...]
    log_odds: Floats
    labels: Floats
    model_signature: str
    notes: tuple[str, ...]

    @property
    def clusters(self) -> list[str] | None:
        """The sampling unit of each sentence; None where sentences were sampled by themselves."""
        by_id = self.suite.by_id
        tags = self.suite.unit_tags[:1]
        return [by_id[name].tags[tag] for tag in tags for name in self.ids] or None


@dataclass(frozen=True, eq=False)
class _Recalibration:
    """A fitted function from log-odds to probabilities, with its parameters."""

    recalibrate: Callable[[Floats], Floats]
    temperature: float | None = None
    knots: tuple[tuple[float, float], ...] = ()


def calibrate(
    suite: Suite | str,
    model: str | Model,
    *,
    fit: Suite | str | None = None,
    method: str = "temperature",
    bins: int = BINS,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Calibration:
    """Return a classifier's calibration on a suite, before and after recalibration.

    Args:
        suite: The labelled suite to evaluate on.
        model: A classifier or its spec.
        fit: The labelled suite to fit on; by default, or if it is the same, the fit is cross-fitted in ten folds.
        method: "temperature" or "isotonic".
        bins: The number of bins of each kind.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.
    """
    if method not in CALIBRATION_METHODS:
        raise MeasureError(f"the method is {method!r}; expected {' or '.join(CALIBRATION_METHODS)}")
    score_suite = partial(_score_labelled, model=model, engine=engine, progress=progress)
    measured = score_suite(as_suite(suite))
    fitted_on = measured if fit is None else score_suite(as_suite(fit))
    # Compared by content: the same sentences under another name would leak into their own probabilities as well.
    is_cross_fitted = fitted_on.suite.hash == measured.suite.hash
    # Fitted on all sentences even if the evaluation is cross-fitted: these are the parameters to use elsewhere.
    recalibration = _fit_recalibration(fitted_on.log_odds, fitted_on.labels, method)
    recalibrated, temperatures = (
        _cross_fit(measured, method) if is_cross_fitted else (recalibration.recalibrate(measured.log_odds), ())
    )
    return Calibration(
        model if isinstance(model, str) else model.signature,
        measured.suite.name,
        fitted_on.suite.name,
        method,
        len(measured.ids),
        FOLDS if is_cross_fitted else 0,
        recalibration.temperature,
        temperatures,
        recalibration.knots,
        # At the default temperature of 1, this is the logistic function: the classifier's own probabilities.
        _measure_reliability(apply_temperature(measured.log_odds), measured, bins),
        _measure_reliability(recalibrated, measured, bins),
        _calibration_signature(measured, fitted_on, method, bins, is_cross_fitted),
        (*measured.notes, *_describe_fit(measured, fitted_on, is_cross_fitted)),
    )


def _score_labelled(
    suite: Suite, *, model: str | Model, engine: str | Engine, progress: ProgressCallback | None
) -> _LabelledOdds:
    sentences, notes = require_labelled(suite, "calibration")
    scores = score(suite, model, "log_odds", engine=engine, progress=progress)
    ids = tuple(sentence.id for sentence in sentences)
    # Unlabelled sentences are excluded already; the `or` only satisfies the type checker.
    labels = np.array([float(sentence.label or 0) for sentence in sentences])
    return _LabelledOdds(suite, ids, scores.of(ids), labels, scores.signature or scores.model, notes)


def _fit_recalibration(log_odds: Floats, labels: Floats, method: str) -> _Recalibration:
    """Return the fitted temperature scaling or isotonic regression."""
    if method == "isotonic":
        isotonic = fit_isotonic(log_odds, labels)
        return _Recalibration(
            isotonic, knots=tuple(zip(isotonic.scores.tolist(), isotonic.probabilities.tolist(), strict=True))
        )
    temperature = fit_temperature(log_odds, labels)
    return _Recalibration(partial(apply_temperature, temperature=temperature), temperature)


def _cross_fit(labelled_odds: _LabelledOdds, method: str) -> tuple[Floats, tuple[float, ...]]:
    """Return the probability of each sentence, recalibrated by a fit on the other folds, and the temperatures."""
    probabilities = np.empty(len(labelled_odds.ids))
    temperatures = []
    # Stratified, since a fold's complement needs sentences of both labels.
    for in_fold in iter_stratified_folds(labelled_odds.ids, labelled_odds.labels, FOLDS, _SEED):
        recalibration = _fit_recalibration(labelled_odds.log_odds[~in_fold], labelled_odds.labels[~in_fold], method)
        probabilities[in_fold] = recalibration.recalibrate(labelled_odds.log_odds[in_fold])
        temperatures.append(recalibration.temperature)
    return probabilities, tuple(temperature for temperature in temperatures if temperature is not None)


def _measure_reliability(probabilities: Floats, measured: _LabelledOdds, bins: int) -> Reliability:
    labels = measured.labels
    # Bins of equal width can be nearly empty, those of equal mass can be wide: neither error alone is reliable.
    width, mass = bin_equal_width(probabilities, labels, bins), bin_equal_mass(probabilities, labels, bins)
    errors = expected_calibration_error(width), expected_calibration_error(mass)
    debiased = debiased_calibration_error(probabilities, labels, bins, clusters=measured.clusters, seed=_SEED)
    return Reliability(tuple(width), tuple(mass), *errors, brier_score(probabilities, labels), debiased)


def _describe_fit(measured: _LabelledOdds, fitted_on: _LabelledOdds, is_cross_fitted: bool) -> tuple[str, ...]:
    """Return a note on cross-fitting, or on sentences that the two suites share; none if there is nothing to note."""
    if is_cross_fitted:
        return (f"fitted and evaluated on {measured.suite.name}: cross-fitted in {FOLDS} folds",)
    # Texts rather than ids: two suites may contain the same sentence under different ids.
    texts = {sentence.text for sentence in fitted_on.suite.sentences}
    shared = sum(sentence.text in texts for sentence in measured.suite.sentences)
    if not shared:
        return ()
    return (f"{shared} sentences of {measured.suite.name} are also in {fitted_on.suite.name}, on which it was fitted",)


def _calibration_signature(
    measured: _LabelledOdds, fitted_on: _LabelledOdds, method: str, bins: int, is_cross_fitted: bool
) -> str:
    unit = measured.suite.unit_tags[0] if measured.suite.unit_tags else SINGLE_ROWS
    fields = {
        "suite": measured.suite.signature,
        "model": measured.model_signature,
        # The name of the suite alone would not show whether the evaluation was in-sample.
        "fit": f"{FOLDS} folds,seed={_SEED}" if is_cross_fitted else fitted_on.suite.signature,
        "bins": str(bins),
        # Of the debiased error; shares in bins have Wilson's interval.
        "ci": f"basic(0.95,resamples=1000,by={unit},seed={_SEED}),wilson(0.95)",
        "n": str(len(measured.ids)),
        "acceptability": __version__,
    }
    return build_signature(f"calibration({method})", fields)
