"""Power of a comparison of models by simulation: items in paradigms, right or wrong, for models trained from seeds.

Whether a model is right about an item depends on a latent normal variable with components for the paradigm, the model's
own bent in that paradigm, the item, the seed and the rest (a probit model). Their standard deviations, in units of that
of the rest, come from the user or from a saved run (`estimate_components`). `simulate_comparison_power` draws whole
studies and tests each; `plan_sample_size` looks for the number of items, paradigms or seeds that reaches a power.

What a test is about is its sampling unit: items speak about other items of the same paradigms, paradigms about other
paradigms, seeds about other trainings of the same models. What is not sampled does not vary: in a test by items, the
models' differences between paradigms are part of the difference, and in a test by paradigms those of the seeds are.
With ``population`` a simulation shows what comes of testing by items what is claimed of paradigms: false alarms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.intervals.closed_forms import clopper_pearson
from acceptability.types import Floats

TEST_UNITS = ("item", "paradigm", "seed", "paradigm+seed")
PLANNED = ("items", "paradigms", "seeds")

Progress = Callable[[int, int], None]
"""Called with the number of simulated studies so far, and the number of all."""

# Answers in memory at once, 64 MB as bytes and floats; more studies are simulated one batch after the other.
_MAX_ANSWERS = 4_000_000
# A search for a sample size ends at studies of so many answers by each model, more than the largest suites have.
_MAX_STUDY = 2_000_000
_MAX_SIMULATIONS = 1_000_000
# In place of a variance of 0: models that differ equally everywhere differ for certain, and equal ones do not.
_TINY = 1e-30


@dataclass(frozen=True)
class VarianceComponents:
    """The standard deviations of a probit model of right answers, in units of that of the residual.

    Args:
        paradigm: Between paradigms, for both models alike.
        model_by_paradigm: Of each model's own deviation in a paradigm; it is what a test by paradigm is about.
        item: Between items of a paradigm, for all models alike.
        seed: Between seeds of a model.
    """

    paradigm: float = 0.5
    model_by_paradigm: float = 0.3
    item: float = 0.7
    seed: float = 0.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not (math.isfinite(value) and value >= 0):
                raise MeasureError(f"the standard deviation of {name} is {value}; expected a number from 0")

    @property
    def total_sd(self) -> float:
        """The standard deviation of the latent variable, the residual's 1 included."""
        return math.sqrt(1 + sum(sd**2 for sd in vars(self).values()))


@dataclass(frozen=True)
class ComparisonDesign:
    """A planned comparison of two models, and the difference that it is to find.

    Args:
        items: The number of items (contrasts) in each paradigm.
        paradigms: The number of paradigms.
        seeds: The number of seeds of each model.
        models: How many models are compared in all pairs; with more than two, the test of a pair has the significance
            level of Holm's first step, alpha divided by the number of pairs.
        accuracy: The true accuracy of the weaker model.
        difference: How much higher that of the other model is; 0 gives the rate of false alarms.
        components: The standard deviations of paradigms, items and seeds.
        unit: What the test takes for a sample: "item", "paradigm", "seed" or "paradigm+seed".
        population: What the claim is about, if not the unit: what varies in truth, whatever the test assumes.
        alpha: The significance level.
    """

    items: int = 50
    paradigms: int = 1
    seeds: int = 1
    models: int = 2
    accuracy: float = 0.8
    difference: float = 0.02
    components: VarianceComponents = VarianceComponents()
    unit: str = "item"
    population: str = ""
    alpha: float = 0.05

    def __post_init__(self) -> None:
        for name, least in (("items", 1), ("paradigms", 1), ("seeds", 1), ("models", 2)):
            if getattr(self, name) < least:
                raise MeasureError(f"{name} is {getattr(self, name)}; expected a whole number from {least}")
        if not (0 < self.accuracy < 1 and self.difference >= 0 and self.accuracy + self.difference < 1):
            raise MeasureError(
                f"an accuracy of {self.accuracy:g} and {self.difference:g} more: expected both models between 0 and 1"
            )
        for name, value in (("unit", self.unit), ("population", self.population or self.unit)):
            if value not in TEST_UNITS:
                raise MeasureError(f"the {name} is {value!r}; expected {', '.join(map(repr, TEST_UNITS))}")
        if not 0 < self.alpha < 1:
            raise MeasureError(f"alpha is {self.alpha}; expected a significance level between 0 and 1")
        for part, count in (("item", self.items * self.paradigms), ("paradigm", self.paradigms), ("seed", self.seeds)):
            if part in self.unit.split("+") and count < 2:
                raise MeasureError(f"a test by {part} needs two {part}s or more; the design has {count}")

    @property
    def varying(self) -> VarianceComponents:
        """The components without those that do not vary, since what they belong to is not sampled."""
        sampled = (self.population or self.unit).split("+")
        return replace(
            self.components,
            model_by_paradigm=self.components.model_by_paradigm if "paradigm" in sampled else 0.0,
            seed=self.components.seed if "seed" in sampled else 0.0,
        )

    @property
    def pair_alpha(self) -> float:
        """The significance level of a pair of models, at Holm's first step."""
        return self.alpha / (self.models * (self.models - 1) / 2)

    @property
    def test(self) -> str:
        """The test, for tables and signatures."""
        name = {
            "item": "paired t test by item",
            "paradigm": "paired t test by paradigm",
            "seed": "Welch's t test by seed",
            "paradigm+seed": "t test by paradigm and seed (sum of both variances, Satterthwaite's df)",
        }[self.unit]
        holm = f", Holm's first step of {self.models * (self.models - 1) // 2} pairs" if self.models > 2 else ""
        return f"{name}, two-sided at {self.alpha:g}{holm}"


@dataclass(frozen=True)
class PowerEstimate:
    """The power of a design, estimated from simulated studies.

    Args:
        power: The share of simulated studies whose test is significant in the right direction; of a difference of 0,
            of all that are significant.
        low, high: Its interval (Clopper and Pearson), which says how far the number of simulations determines it.
        simulations: The number of simulated studies.
        design: The design.
        seed: The seed of the simulation.
    """

    power: float
    low: float
    high: float
    simulations: int
    design: ComparisonDesign
    seed: int


@dataclass(frozen=True)
class SamplePlan:
    """The smallest number of items, paradigms or seeds whose estimated power reaches a target.

    Args:
        planned: "items", "paradigms" or "seeds".
        count: Their number.
        target: The power that was asked for.
        estimate: The power at that number.
        tried: Every number that was simulated, with its power, in ascending order.
    """

    planned: str
    count: int
    target: float
    estimate: PowerEstimate
    tried: tuple[tuple[int, float], ...]


def simulate_comparison_power(
    design: ComparisonDesign,
    *,
    simulations: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    progress: Progress | None = None,
) -> PowerEstimate:
    """Return the power of a design: in how many of the simulated studies the better model is significantly better.

    Args:
        design: The numbers of items, paradigms, seeds and models, the difference, and what is tested.
        simulations: The number of studies to simulate.
        seed: The seed of the simulation.
        level: The confidence level of the interval of the power.
        progress: Called with the numbers of studies so far, and in all.

    >>> design = ComparisonDesign(items=400, accuracy=0.8, difference=0.05)
    >>> estimate = simulate_comparison_power(design, simulations=500)
    >>> 0.35 < estimate.low < estimate.power < estimate.high < 0.75
    True
    """
    if not 1 <= simulations <= _MAX_SIMULATIONS:
        raise MeasureError(f"simulations is {simulations}; expected a whole number from 1 to {_MAX_SIMULATIONS:,}")
    generator = np.random.default_rng(seed)
    batch_size = max(1, _MAX_ANSWERS // (2 * design.paradigms * design.items * design.seeds))
    hits = 0
    for start in range(0, simulations, batch_size):
        size = min(batch_size, simulations - start)
        hits += int(_find_significant(_simulate_answers(design, size, generator), design).sum())
        if progress:
            progress(start + size, simulations)
    low, high = clopper_pearson(hits, simulations, level)
    return PowerEstimate(hits / simulations, low, high, simulations, design, seed)


def plan_sample_size(
    design: ComparisonDesign,
    planned: str = "items",
    *,
    target: float = 0.8,
    simulations: int = 2000,
    seed: int = 0,
    progress: Progress | None = None,
) -> SamplePlan:
    """Return how many items, paradigms or seeds it takes to find a difference with a power.

    Power rises with the number, but for the error of the simulation; so the number is doubled until the power is
    reached, and then searched between the last two by halving.

    Args:
        design: The design, of which one number is varied.
        planned: "items" (of each paradigm), "paradigms" or "seeds".
        target: The power to reach.
        simulations: The number of studies to simulate for each number.
        seed: The seed of the simulations.
        progress: Called with the numbers of studies so far, and in all, for each number that is tried.

    Raises:
        Undefined: No number reaches the power: what limits it is another part of the design, such as the number of
            paradigms.

    >>> design = ComparisonDesign(accuracy=0.7, difference=0.1)
    >>> plan = plan_sample_size(design, simulations=300)
    >>> 200 < plan.count < 500
    True
    """
    if planned not in PLANNED:
        raise MeasureError(f"what is planned is {planned!r}; expected {', '.join(map(repr, PLANNED))}")
    if not 0 < target < 1:
        raise MeasureError(f"the target is {target}; expected a power between 0 and 1")
    if design.difference == 0:
        raise MeasureError("the difference is 0: no number of items finds that; give the smallest that matters")
    estimates: dict[int, PowerEstimate] = {}

    def reaches_target(count: int) -> bool:
        # Names of numbers only, as checked above.
        varied = replace(design, **{planned: count})  # type: ignore[arg-type]
        estimates[count] = simulate_comparison_power(varied, simulations=simulations, seed=seed, progress=progress)
        return estimates[count].power >= target

    rest = design.items * design.paradigms * design.seeds // getattr(design, planned)
    # A test by paradigms or seeds needs two of them.
    low, high = 1, 2
    while not reaches_target(high):
        low, high = high, 2 * high
        if high * rest > _MAX_STUDY or _is_flat(estimates, target):
            raise Undefined(
                f"{low:,} {planned} have a power of {estimates[low].power:.2f}, and more hardly raise it: what limits "
                "it is another number of the design, or the variation of the models between paradigms or seeds"
            )
    while high - low > max(1, high // 50):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches_target(middle) else (middle, high)
    tried = tuple((count, estimates[count].power) for count in sorted(estimates))
    return SamplePlan(planned, high, target, estimates[high], tried)


def _is_flat(estimates: dict[int, PowerEstimate], target: float) -> bool:
    """Return whether three doublings have not raised a power that is still too low."""
    first, *later = [estimates[count] for count in sorted(estimates)][-4:]
    # A power of hardly more than the significance level may rise yet: the numbers so far are all far too small.
    return (
        len(later) == 3
        and max(estimate.power for estimate in later) <= first.high
        and 2 * first.design.alpha < later[-1].high < target
    )


def _simulate_answers(design: ComparisonDesign, size: int, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Return right and wrong answers: studies, models (the better one first), paradigms, items, seeds."""
    sds, shape = design.varying, (size, 2, design.paradigms, design.items, design.seeds)
    accuracies = np.array([design.accuracy + design.difference, design.accuracy])
    # The mean over all components of a probit model is a probit of its own, with their total deviation.
    intercepts = (scipy.special.ndtri(accuracies) * sds.total_sd).reshape(1, 2, 1, 1, 1)
    # An axis of length 1 is what a component has in common: items are the same for both models.
    parts = (
        (sds.paradigm, (size, 1, design.paradigms, 1, 1)),
        (sds.model_by_paradigm, (size, 2, design.paradigms, 1, 1)),
        (sds.seed, (size, 2, 1, 1, design.seeds)),
        (sds.item, (size, 1, design.paradigms, design.items, 1)),
    )
    latent = intercepts + sum(sd * generator.standard_normal(part_shape) for sd, part_shape in parts)
    # Half the memory and time of double precision, which right and wrong do not need.
    return np.asarray(generator.standard_normal(shape, dtype=np.float32) < latent)


def _find_significant(answers: NDArray[np.bool_], design: ComparisonDesign) -> NDArray[np.bool_]:
    """Return which simulated studies find the better model significantly better."""
    t, df = _TESTS[design.unit](answers)
    p = 2 * scipy.special.stdtr(df, -np.abs(t))
    significant = p < design.pair_alpha
    # Without a difference every significant study is a false alarm, in whichever direction.
    return np.asarray(significant & (t > 0) if design.difference else significant)


def _test_items(answers: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    means = answers.mean(axis=4)
    return _paired_t((means[:, 0] - means[:, 1]).reshape(len(answers), -1))


def _test_paradigms(answers: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    means = answers.mean(axis=(3, 4))
    return _paired_t(means[:, 0] - means[:, 1])


def _paired_t(differences: Floats) -> tuple[Floats, Floats]:
    n = differences.shape[1]
    variance = differences.var(axis=1, ddof=1) / n
    return differences.mean(axis=1) / np.sqrt(np.maximum(variance, _TINY)), np.full(len(differences), n - 1.0)


def _test_seeds(answers: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    means = answers.mean(axis=(2, 3))
    n = means.shape[2]
    parts = means.var(axis=2, ddof=1) / n
    difference = means[:, 0].mean(axis=1) - means[:, 1].mean(axis=1)
    return _sum_of_variances_t(difference, parts, np.full(2, n - 1.0))


def _test_paradigms_and_seeds(answers: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    by_paradigm, by_seed = answers.mean(axis=(3, 4)), answers.mean(axis=(2, 3))
    paradigms, seeds = by_paradigm.shape[2], by_seed.shape[2]
    differences = by_paradigm[:, 0] - by_paradigm[:, 1]
    # Both variances contain that of single answers, so that their sum errs on the safe side.
    parts = np.column_stack([differences.var(axis=1, ddof=1) / paradigms, by_seed.var(axis=2, ddof=1) / seeds])
    return _sum_of_variances_t(differences.mean(axis=1), parts, np.array([paradigms - 1.0, seeds - 1.0, seeds - 1.0]))


def _sum_of_variances_t(difference: Floats, parts: Floats, dfs: Floats) -> tuple[Floats, Floats]:
    """Return t and Satterthwaite's degrees of freedom for a variance that is a sum of estimates."""
    variance, squares = parts.sum(axis=1), (parts**2 / dfs).sum(axis=1)
    df = np.where(squares > _TINY, variance**2 / np.maximum(squares, _TINY), dfs.min())
    return difference / np.sqrt(np.maximum(variance, _TINY)), df


_TESTS: dict[str, Callable[[NDArray[np.bool_]], tuple[Floats, Floats]]] = {
    "item": _test_items,
    "paradigm": _test_paradigms,
    "seed": _test_seeds,
    "paradigm+seed": _test_paradigms_and_seeds,
}


def estimate_components(
    first: Sequence[Sequence[float]] | Floats, second: Sequence[Sequence[float]] | Floats, paradigms: Sequence[str]
) -> tuple[float, float, VarianceComponents]:
    """Return the accuracies of two models, and the components behind their answers to the same items.

    Each component is found from how often two answers that share it are both right, compared with two answers that do
    not: of both models to one item, of both models to two items of a paradigm, of one model to two items of a
    paradigm, of two seeds of a model to two items of different paradigms. For a latent normal variable such a share
    determines the correlation (it is the tetrachoric one). A component whose answers agree less than by chance is 0.

    Args:
        first, second: 1 for right and 0 for wrong: a row per seed of the model, a column per item.
        paradigms: The paradigm of each item.

    Raises:
        Undefined: A model is right about all items, or about none.
    """
    tables = [np.atleast_2d(np.asarray(answers, dtype=np.float64)) for answers in (first, second)]
    names, codes = np.unique(np.asarray(paradigms), return_inverse=True)
    for table in tables:
        if table.shape[1] != len(codes):
            raise MeasureError(f"there are {table.shape[1]} answers for {len(codes)} items; expected one for each")
        if not np.isin(table, (0.0, 1.0)).all():
            raise MeasureError("answers are right (1) or wrong (0); other values have no components of this model")
    accuracies = [float(table.mean()) for table in tables]
    if not all(0 < accuracy < 1 for accuracy in accuracies):
        raise Undefined("a model that is right about all items, or about none, says nothing about their variation")
    item_means = np.stack([table.mean(axis=0) for table in tables])
    counts = np.bincount(codes).astype(np.float64)
    sums = np.stack([np.bincount(codes, weights=row) for row in item_means])
    other_pairs = float((counts * (counts - 1)).sum())
    same_item = _tetrachoric(float((item_means[0] * item_means[1]).mean()), *accuracies)
    crossed = float((sums[0] * sums[1]).sum() - (item_means[0] * item_means[1]).sum())
    across = _tetrachoric(crossed / other_pairs, *accuracies) if other_pairs and len(names) > 1 else 0.0
    within = [
        _tetrachoric(
            float((sums[i] ** 2).sum() - (item_means[i] ** 2).sum()) / other_pairs, accuracies[i], accuracies[i]
        )
        for i in range(2)
        if other_pairs and len(names) > 1
    ]
    seeds = [_seed_correlation(table, codes, accuracy) for table, accuracy in zip(tables, accuracies, strict=True)]
    shares = {
        "paradigm": across,
        "model_by_paradigm": (float(np.mean(within)) if within else 0.0) - across,
        "item": same_item - across,
        "seed": float(np.mean([share for share in seeds if share is not None] or [0.0])),
    }
    shares = {name: max(0.0, share) for name, share in shares.items()}
    residual = 1 - sum(shares.values())
    if residual <= 0:
        raise Undefined("the answers agree so much that nothing is left for the rest of their variation")
    return (
        accuracies[0],
        accuracies[1],
        VarianceComponents(**{name: math.sqrt(share / residual) for name, share in shares.items()}),
    )


def _seed_correlation(table: Floats, codes: NDArray[np.int64], accuracy: float) -> float | None:
    """Return the latent correlation of one seed's answers in different paradigms, beyond that of different seeds."""
    seeds = len(table)
    if seeds < 2 or codes.max() == 0:
        return None
    sums = np.stack([np.bincount(codes, weights=row) for row in table])
    counts = np.bincount(codes).astype(np.float64)
    pairs = float(counts.sum() ** 2 - (counts**2).sum())
    totals = sums.sum(axis=1)
    same = float((totals**2 - (sums**2).sum(axis=1)).sum()) / (seeds * pairs)
    pooled = sums.sum(axis=0)
    everyone = float(pooled.sum() ** 2 - (pooled**2).sum())
    other = (everyone - float((totals**2 - (sums**2).sum(axis=1)).sum())) / (seeds * (seeds - 1) * pairs)
    return _tetrachoric(same, accuracy, accuracy) - _tetrachoric(other, accuracy, accuracy)


def _tetrachoric(both: float, first: float, second: float) -> float:
    """Return the correlation of two normal variables that both exceed their thresholds with a probability.

    Args:
        both: The share of pairs with both right.
        first, second: The share of right answers of either.
    """
    from scipy.optimize import brentq

    h, k = float(scipy.special.ndtri(first)), float(scipy.special.ndtri(second))
    edge = 0.999

    def excess(correlation: float) -> float:
        return _both_probability(h, k, correlation) - both

    if excess(-edge) >= 0:
        return -edge
    return edge if excess(edge) <= 0 else float(brentq(excess, -edge, edge, xtol=1e-10))


def _both_probability(h: float, k: float, correlation: float) -> float:
    """Return the probability that two standard normal variables lie below h and k (Owen 1956)."""
    # Plackett's identity: the derivative by the correlation is the bivariate density, integrated by Gauss and Legendre
    # in the angle, which is smooth up to correlations of ±1.
    nodes, weights = np.polynomial.legendre.leggauss(64)
    top = math.asin(correlation)
    angles = top * (nodes + 1) / 2
    density = np.exp(-(h * h + k * k - 2 * h * k * np.sin(angles)) / (2 * np.cos(angles) ** 2))
    independent = float(scipy.special.ndtr(h) * scipy.special.ndtr(k))
    return independent + top / 2 * float(weights @ density) / (2 * math.pi)
