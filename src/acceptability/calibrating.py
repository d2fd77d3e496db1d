"""A classifier's probabilities on a suite: whether they mean what they say, before and after they are mended.

What mends them is fitted on one suite and measured on another. Where both are one, each tenth of the sentences is
mended by what the other nine give (cross-fitting), so that no sentence has a say in its own probability.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np

from acceptability import __version__
from acceptability.errors import MeasureError
from acceptability.measures.rows import labelled
from acceptability.measures.thresholds import dealt
from acceptability.protocols import Engine, Model
from acceptability.scoring import Progress, as_suite, score
from acceptability.signature import sign
from acceptability.stats.calibration import (
    Bin,
    brier,
    equal_mass,
    equal_width,
    expected_calibration_error,
    fitted_isotonic,
    fitted_temperature,
    probabilities_at,
)
from acceptability.types import Floats, Suite

METHODS = ("temperature", "isotonic")
FOLDS = 10
BINS = 10

_SEED = 0


@dataclass(frozen=True)
class Reliability:
    """How far probabilities are from observed shares.

    Args:
        width, mass: Bins that are equally wide, and bins that hold equally many sentences.
        ece_width, ece_mass: The expected calibration error over them.
        brier: The mean squared distance from the labels.
    """

    width: tuple[Bin, ...]
    mass: tuple[Bin, ...]
    ece_width: float
    ece_mass: float
    brier: float


@dataclass(frozen=True)
class Calibration:
    """A classifier's calibration on a suite, before and after.

    Args:
        fit: The suite that the mending was fitted on.
        folds: How many folds it was cross-fitted in; 0 where it was fitted on another suite.
        temperature: The temperature that all sentences of ``fit`` give together; None for an isotonic function.
        temperatures: Those of the folds.
        knots: Log-odds and probabilities that the isotonic function of all sentences of ``fit`` goes through.
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
        """Yield one flat row a bin, before and after, for tables and plots."""
        for when, found in (("before", self.before), ("after", self.after)):
            for bins, table in (("equal width", found.width), ("equal mass", found.mass)):
                for place, each in enumerate(table, start=1):
                    yield {"when": when, "bins": bins, "bin": place, **asdict(each)}

    def told(self) -> dict[str, object]:
        """Return all of it as data for JSON."""
        names = ("model", "suite", "fit", "method", "n", "folds", "temperature", "temperatures", "knots")
        errors = ("ece_width", "ece_mass", "brier")
        return {
            **{name: getattr(self, name) for name in names},
            "before": {name: getattr(self.before, name) for name in errors},
            "after": {name: getattr(self.after, name) for name in errors},
            "rows": list(self.rows()),
            "notes": "; ".join(self.notes),
            "signature": self.signature,
        }


@dataclass(frozen=True, eq=False)
class _Judged:
    """The labelled sentences of a suite, and a classifier's log-odds of them."""

    suite: Suite
    ids: tuple[str, ...]
    odds: Floats
    labels: Floats
    giver: str
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Mended:
    """What makes probabilities of log-odds, and what it is made of."""

    mend: Callable[[Floats], Floats]
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
    progress: Progress | None = None,
) -> Calibration:
    """Return a classifier's calibration on a suite, before and after its probabilities are mended.

    Args:
        fit: The suite to fit on; without it, or where it is the same, ten folds are cross-fitted.
        method: "temperature", or "isotonic".
        bins: How many bins there are of each kind.
    """
    if method not in METHODS:
        raise MeasureError(f"the method is {method!r}; expected {' or '.join(METHODS)}")
    judged = partial(_judged, model=model, engine=engine, progress=progress)
    on = judged(as_suite(suite))
    other = on if fit is None else judged(as_suite(fit))
    crossed = other.suite.hash == on.suite.hash
    whole = _fitted(other.odds, other.labels, method)
    mended, temperatures = _cross_fitted(on, method) if crossed else (whole.mend(on.odds), ())
    return Calibration(
        model if isinstance(model, str) else model.signature,
        on.suite.name,
        other.suite.name,
        method,
        len(on.ids),
        FOLDS if crossed else 0,
        whole.temperature,
        temperatures,
        whole.knots,
        _reliability(probabilities_at(on.odds), on.labels, bins),
        _reliability(mended, on.labels, bins),
        _signed(on, other, method, bins, crossed),
        (*on.notes, *_shared(on, other, crossed)),
    )


def _judged(suite: Suite, *, model: str | Model, engine: str | Engine, progress: Progress | None) -> _Judged:
    kept, notes = labelled(suite, "calibration")
    scores = score(suite, model, "log_odds", engine=engine, progress=progress)
    ids = tuple(each.id for each in kept)
    labels = np.array([float(each.label or 0) for each in kept])
    return _Judged(suite, ids, scores.of(ids), labels, scores.signature or scores.model, notes)


def _fitted(odds: Floats, labels: Floats, method: str) -> _Mended:
    """Return what mends log-odds: at a temperature, or by a function that never falls."""
    if method == "isotonic":
        found = fitted_isotonic(odds, labels)
        return _Mended(found, knots=tuple(zip(found.scores.tolist(), found.probabilities.tolist(), strict=True)))
    temperature = fitted_temperature(odds, labels)
    return _Mended(partial(probabilities_at, temperature=temperature), temperature)


def _cross_fitted(judged: _Judged, method: str) -> tuple[Floats, tuple[float, ...]]:
    """Return each sentence's probability, mended by what the other folds give, and the folds' temperatures."""
    probabilities = np.empty(len(judged.ids))
    temperatures = []
    for inside in dealt(judged.ids, judged.labels, FOLDS, _SEED):
        found = _fitted(judged.odds[~inside], judged.labels[~inside], method)
        probabilities[inside] = found.mend(judged.odds[inside])
        temperatures.append(found.temperature)
    return probabilities, tuple(each for each in temperatures if each is not None)


def _reliability(probabilities: Floats, labels: Floats, bins: int) -> Reliability:
    width, mass = equal_width(probabilities, labels, bins), equal_mass(probabilities, labels, bins)
    errors = expected_calibration_error(width), expected_calibration_error(mass)
    return Reliability(tuple(width), tuple(mass), *errors, brier(probabilities, labels))


def _shared(on: _Judged, other: _Judged, crossed: bool) -> tuple[str, ...]:
    """Return a note on how it was fitted, where that is worth one."""
    if crossed:
        return (f"fitted and measured on {on.suite.name}: cross-fitted in {FOLDS} folds",)
    texts = {each.text for each in other.suite.sentences}
    both = sum(each.text in texts for each in on.suite.sentences)
    if not both:
        return ()
    return (f"{both} sentences of {on.suite.name} stand in {other.suite.name} too, on which it was fitted",)


def _signed(on: _Judged, other: _Judged, method: str, bins: int, crossed: bool) -> str:
    fields = {
        "suite": on.suite.signature,
        "model": on.giver,
        "fit": f"{FOLDS} folds,seed={_SEED}" if crossed else other.suite.signature,
        "bins": str(bins),
        "n": str(len(on.ids)),
        "acceptability": __version__,
    }
    return sign(f"calibration({method})", fields)
