"""The profiled deviance of a linear mixed model, without coefficients and residual variance (Bates et al. 2015).

Given the covariance parameters ``theta``, coefficients and residual variance have a closed form; what is left is a
smooth function of a handful of parameters, whose gradient is exact.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import solve_triangular

from acceptability.errors import Undefined
from acceptability.stats.mixed.blocked_cholesky import BlockLayout, Factorisation
from acceptability.stats.mixed.random_effects import RandomEffects
from acceptability.types import Floats

# Relative to the outcome's sum of squares: a residual below is the rounding error of an exact fit.
_MIN_RESIDUAL_SHARE = 1e-14


class LinearDeviance:
    """The deviance of a linear mixed model as a function of ``theta``.

    Args:
        outcome: The outcome, best standardised and without its least-squares fit: then the sums of squares lose no
            digits.
        basis: The design matrix of the fixed effects, best with orthogonal columns.
        random: The random effects.
        reml: Whether the criterion is the restricted likelihood's.
    """

    def __init__(self, outcome: Floats, basis: Floats, random: RandomEffects, *, reml: bool) -> None:
        self.outcome, self.basis, self.random, self.reml = outcome, basis, random, reml
        self.layout = BlockLayout(random, np.column_stack([basis, outcome]))
        self.products = self.layout.compute_cross_products()
        self.total_squares = float(outcome @ outcome)

    @property
    def df(self) -> int:
        """The divisor of the residual variance."""
        return len(self.outcome) - (self.basis.shape[1] if self.reml else 0)

    def evaluate(self, theta: Floats) -> LinearPoint:
        """Return the fit for given covariance parameters."""
        return LinearPoint(self, theta, self.products.factorise(self.random.build_templates(theta)))


@dataclass(frozen=True, eq=False)
class LinearPoint:
    """The fit of a linear mixed model for given covariance parameters.

    Args:
        model: The deviance that was evaluated.
        theta: The covariance parameters.
        factorisation: The factorised normal equations, bordered by the predictors and the outcome.
    """

    model: LinearDeviance
    theta: Floats
    factorisation: Factorisation

    @cached_property
    def squares(self) -> float:
        """The penalised residual sum of squares."""
        squares = float(self.factorisation.root[-1, -1] ** 2)
        if squares <= _MIN_RESIDUAL_SHARE * self.model.total_squares:
            raise Undefined(
                "the variance of a random effect grows without bound: within its groups all rows are alike, and groups "
                "and predictors give the outcome exactly"
            )
        return squares

    @property
    def variance(self) -> float:
        """The residual variance."""
        return self.squares / self.model.df

    @cached_property
    def log_determinants(self) -> float:
        """The log-determinant part of the deviance."""
        return self.factorisation.log_determinant(self.model.basis.shape[1] if self.model.reml else 0)

    @property
    def deviance(self) -> float:
        """Minus twice the log-likelihood, or the restricted one."""
        return self.log_determinants + self.model.df * (1 + math.log(2 * math.pi * self.variance))

    @cached_property
    def inverse_root(self) -> Floats:
        """The transposed inverse of the predictors' Cholesky factor: times its transpose, their unscaled covariance."""
        at, stop = self.model.layout.rest_columns, self.model.layout.width - 1
        root = self.factorisation.root[at:stop, at:stop]
        return np.asarray(solve_triangular(root, np.eye(len(root)), lower=True).T)

    @cached_property
    def estimates(self) -> Floats:
        """The coefficients of the basis."""
        at, stop = self.model.layout.rest_columns, self.model.layout.width - 1
        return np.asarray(self.inverse_root @ self.factorisation.root[-1, at:stop])

    @cached_property
    def spherical_effects(self) -> tuple[Floats, Floats]:
        """The modes of the random effects before the templates are applied, in the layout's two parts."""
        at, stop = self.model.layout.rest_columns, self.model.layout.width - 1
        root = self.factorisation.root
        rest = root[-1, :at] - self.estimates @ root[at:stop, :at]
        rest = solve_triangular(root[:at, :at], rest, lower=True, trans=1) if at else rest
        # The first part's equation with the outcome on the left: the outcome is the last column of the border.
        none = np.zeros((len(self.model.layout.first.levels), self.model.layout.first.effects))
        border = np.append(self.estimates, -1.0)
        return self.factorisation.solve_first(none, rest, border), rest

    @cached_property
    def residuals(self) -> Floats:
        """The outcome minus fixed and random effects, for each row."""
        (template, *others), layout = self.factorisation.templates, self.model.layout
        first, rest = self.spherical_effects
        padded = np.zeros((layout.width, 1))
        padded[: layout.rest_columns, 0] = rest
        scaled = layout.scale_rest(others, padded)[: layout.rest_columns, 0]
        return self.model.outcome - self.model.basis @ self.estimates - layout.multiply(first @ template.T, scaled)

    def differentiate(self) -> tuple[Floats, Floats]:
        """Return the derivatives by ``theta`` of the log-determinants and of the residual sum of squares."""
        layout, random = self.model.layout, self.model.random
        columns = self.model.basis.shape[1] if self.model.reml else 0
        determinant_slopes = self.factorisation.invert(columns).differentiate_log_determinant()
        # By the envelope theorem only the explicit dependence on the templates counts: −2 (dΛ u)ᵀ Zᵀ residuals.
        first, rest = self.spherical_effects
        pulled_first, pulled_rest = layout.multiply_transposed(self.residuals)
        square_slopes = [-2 * pulled_first.T @ first]
        for factor, offset in zip(layout.others, layout.offsets, strict=True):
            part = slice(offset, offset + factor.size)
            shape = (len(factor.levels), factor.effects)
            square_slopes.append(-2 * pulled_rest[part].reshape(shape).T @ rest[part].reshape(shape))
        return random.collect_theta(determinant_slopes), random.collect_theta(square_slopes)

    @cached_property
    def gradient(self) -> Floats:
        """The derivative of the deviance by ``theta``."""
        log_determinants, squares = self.differentiate()
        return np.asarray(log_determinants + squares / self.variance)
