"""The Laplace approximation to the likelihood of a mixed model whose outcome is not normal.

The integral over the random effects is approximated around their modes, which penalised iteratively reweighted least
squares finds (Bates et al. 2015). It serves every model in which each row's likelihood is a log-concave function of
one linear predictor: logistic regression, and with thresholds of its own cumulative-link regression.

The gradient is exact: it takes into account that modes and weights move with the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from acceptability.errors import MeasureError
from acceptability.stats.mixed.blocked_cholesky import BlockLayout, Factorisation
from acceptability.stats.mixed.random_effects import RandomEffects
from acceptability.types import Floats

# Newton steps towards the modes of the random effects; a handful is usual.
_NEWTON_STEPS = 100
# The mean square distance of the modes from where the next step would take them. Tight, since gradients are differenced
# for the standard errors.
_MODE_TOLERANCE = 1e-17
# The least share of the gain that a step's slope promises; near the modes a full step gains one half.
_LEAST_GAIN = 0.1


@dataclass(frozen=True, eq=False)
class RowTerms:
    """The log-likelihood of all rows, and its derivatives by each row's linear predictor.

    Args:
        log_likelihood: The sum over rows, given the random effects.
        scores: The first derivative of each row.
        weights: Minus the second derivative, which is not negative.
        weight_slopes: The derivative of the weight.
    """

    log_likelihood: float
    scores: Floats
    weights: Floats
    weight_slopes: Floats


RowLikelihood = Callable[[Floats], RowTerms]


def build_logistic_likelihood(outcome: Floats) -> RowLikelihood:
    """Return the likelihood of a binary outcome whose log-odds are the linear predictor."""

    def evaluate(predictor: Floats) -> RowTerms:
        probabilities = expit(predictor)
        weights = probabilities * (1 - probabilities)
        log_likelihood = float((outcome * predictor - np.logaddexp(0, predictor)).sum())
        return RowTerms(log_likelihood, outcome - probabilities, weights, weights * (1 - 2 * probabilities))

    return evaluate


@dataclass(frozen=True, eq=False)
class Modes:
    """Random effects before the templates are applied, in the two parts of ``BlockLayout.multiply``."""

    first: Floats
    rest: Floats

    def move(self, step: Modes, length: float) -> Modes:
        """Return the effects after a part of a step."""
        return Modes(self.first + length * step.first, self.rest + length * step.rest)

    def multiply(self, other: Modes) -> float:
        """Return the inner product with other effects."""
        return float(np.vdot(self.first, other.first) + self.rest @ other.rest)


class LaplaceDeviance:
    """Minus twice the log-likelihood of a mixed model, by the Laplace approximation.

    Args:
        random: The random effects.
    """

    def __init__(self, random: RandomEffects) -> None:
        self.random = random
        self.layout = BlockLayout(random)
        # Each evaluation starts from the modes of the one before: a search moves in small steps, and so do the modes.
        self.modes = self.zero_modes()

    def zero_modes(self) -> Modes:
        """Return modes of 0."""
        first = self.layout.first
        return Modes(np.zeros((len(first.levels), first.effects)), np.zeros(self.layout.rest_columns))

    def predict(self, templates: Sequence[Floats], modes: Modes) -> Floats:
        """Return what the random effects add to each row's linear predictor, Z Λ u."""
        scaled = self.layout.scale_rest(templates[1:], modes.rest[:, None])[:, 0]
        return self.layout.multiply(modes.first @ templates[0].T, scaled)

    def pull_back(self, templates: Sequence[Floats], rows: Floats) -> Modes:
        """Return Λᵀ Zᵀ v for a vector over the rows."""
        first, rest = self.layout.multiply_transposed(rows)
        transposed = [template.T for template in templates[1:]]
        return Modes(first @ templates[0], self.layout.scale_rest(transposed, rest[:, None])[:, 0])

    def evaluate(self, theta: Floats, fixed: Floats, likelihood: RowLikelihood) -> LaplacePoint:
        """Return the deviance, with what its gradient needs.

        Args:
            theta: The covariance parameters of the random effects.
            fixed: What the fixed effects give each row's linear predictor.
            likelihood: The likelihood of the rows as a function of the linear predictor.

        Raises:
            MeasureError: The modes were not found.
        """
        templates = self.random.build_templates(theta)
        modes = self.modes
        terms = likelihood(fixed + self.predict(templates, modes))
        penalised = -2 * terms.log_likelihood + modes.multiply(modes)
        for _ in range(_NEWTON_STEPS):
            factorisation = self.layout.compute_cross_products(terms.weights).factorise(templates)
            pulled = self.pull_back(templates, terms.scores)
            slope = pulled.move(modes, -1.0)
            step = Modes(*factorisation.solve(slope.first, slope.rest))
            descent = slope.multiply(step)
            if descent < _MODE_TOLERANCE * (step.first.size + step.rest.size):
                self.modes = modes
                return LaplacePoint(self, tuple(templates), modes, terms, factorisation)
            modes, terms, penalised = self._move(templates, fixed, likelihood, (modes, step, penalised, descent))
        raise MeasureError("the modes of the random effects were not found: is a predictor far out of scale?")

    def _move(
        self,
        templates: Sequence[Floats],
        fixed: Floats,
        likelihood: RowLikelihood,
        at: tuple[Modes, Modes, float, float],
    ) -> tuple[Modes, RowTerms, float]:
        """Return the modes after a step, or after a part of it if the whole one gains too little."""
        modes, step, penalised, descent = at
        length = 1.0
        while True:
            candidate = modes.move(step, length)
            terms = likelihood(fixed + self.predict(templates, candidate))
            value = -2 * terms.log_likelihood + candidate.multiply(candidate)
            # A full Newton step can overshoot where most predictions are near 0 or 1, and then steps could go to and
            # fro with next to no gain: a share of the gain that the slope promises is demanded (Armijo). The slack lets
            # the last steps pass, whose gain is below the rounding of the deviance.
            if value <= penalised - 2 * _LEAST_GAIN * length * descent + 1e-9 * abs(penalised) or length < 1e-6:
                return candidate, terms, value
            length /= 2


@dataclass(frozen=True, eq=False)
class LaplacePoint:
    """The Laplace approximation for given parameters.

    For a parameter φ of the rows' likelihood itself, such as a threshold, the derivative of the deviance is the sum
    over rows of −2 ∂ℓ/∂φ + leverages · ∂w/∂φ + carried · ∂s/∂φ, with the rows' log-likelihood ℓ, weight w and score s.

    Args:
        model: The deviance that was evaluated.
        templates: The template of each grouping factor.
        modes: The modes of the random effects, before the templates are applied.
        terms: The rows' likelihood at the modes.
        factorisation: The factorised Hessian at the modes.
    """

    model: LaplaceDeviance
    templates: tuple[Floats, ...]
    modes: Modes
    terms: RowTerms
    factorisation: Factorisation

    @property
    def deviance(self) -> float:
        """Minus twice the approximate log-likelihood."""
        penalty = self.modes.multiply(self.modes) + self.factorisation.log_determinant()
        return -2 * self.terms.log_likelihood + penalty

    @cached_property
    def _slopes(self) -> tuple[list[Floats], Floats]:
        inverse = self.factorisation.invert()
        return inverse.differentiate_log_determinant(), inverse.compute_leverages()

    @property
    def leverages(self) -> Floats:
        """The variance of each row's random part given the outcome: the derivative of the log-determinant by weight."""
        return self._slopes[1]

    @cached_property
    def _shift(self) -> Modes:
        """How the modes answer to the log-determinant's slope: Ω⁻¹ Λᵀ Zᵀ (leverages · weight slopes)."""
        pulled = self.model.pull_back(self.templates, self.leverages * self.terms.weight_slopes)
        return Modes(*self.factorisation.solve(pulled.first, pulled.rest))

    @cached_property
    def carried(self) -> Floats:
        """What a change of a row's score changes through the modes, for each row."""
        return self.model.predict(self.templates, self._shift)

    @cached_property
    def predictor_gradient(self) -> Floats:
        """The derivative of the deviance by each row's fixed part; times the design matrix, by the coefficients."""
        terms = self.terms
        return np.asarray(-2 * terms.scores + self.leverages * terms.weight_slopes - terms.weights * self.carried)

    @cached_property
    def theta_gradient(self) -> Floats:
        """The derivative of the deviance by the covariance parameters."""
        layout, modes, shift = self.model.layout, self.modes, self._shift
        all_first, all_rest = layout.multiply_transposed(self.predictor_gradient)
        score_first, score_rest = layout.multiply_transposed(self.terms.scores)
        slopes = [self._slopes[0][0] + all_first.T @ modes.first + score_first.T @ shift.first]
        for factor, offset, determinant in zip(layout.others, layout.offsets, self._slopes[0][1:], strict=True):
            part, shape = slice(offset, offset + factor.size), (len(factor.levels), factor.effects)
            pulled = all_rest[part].reshape(shape).T @ modes.rest[part].reshape(shape)
            slopes.append(determinant + pulled + score_rest[part].reshape(shape).T @ shift.rest[part].reshape(shape))
        return self.model.random.collect_theta(slopes)
