"""The random effects of a mixed model: which groups, which slopes, and the covariance of each group's effects.

A model has one `GroupingFactor` for each kind of group (items, paradigms, people), with all random effects that vary
by it. Their covariance matrix, divided by the residual variance where there is one, is T Tᵀ with a lower triangular
template T (Bates et al. 2015). The free entries of all templates, one after the other, are the vector ``theta``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import LevelCodes, as_sample, encode_levels
from acceptability.types import Floats

INTERCEPT = "Intercept"
# Columns of slopes that are a linear combination of the others leave rounding errors of this relative size.
_MIN_RELATIVE_NORM = 1e-9


@dataclass(frozen=True, eq=False)
class RandomTerm:
    """Random effects that vary by one kind of group, such as ``(1 + model | paradigm)``.

    Args:
        group: The kind of group: "paradigm".
        columns: The names of the effects: ("Intercept", "model[T.b]").
        values: Their columns in the design matrix, of shape (rows, effects); ones for an intercept.
        codes: The group of each row, as its index among the levels.
        levels: The names of the groups.
        is_correlated: Whether the effects of a group are correlated, as after ``|``, or not, as after ``||``.
    """

    group: str
    columns: tuple[str, ...]
    values: Floats
    codes: LevelCodes
    levels: tuple[str, ...]
    is_correlated: bool = True


def build_random_term(
    group: str,
    labels: Sequence[object],
    slopes: Mapping[str, ArrayLike] | None = None,
    *,
    intercept: bool = True,
    is_correlated: bool = True,
) -> RandomTerm:
    """Return the random intercept, and perhaps random slopes, of a kind of group.

    Args:
        group: The name of the kind of group.
        labels: The group of each row.
        slopes: The predictors whose effect varies by group, by name.
        intercept: Whether there is a random intercept beside the slopes.
        is_correlated: Whether a group's intercept and slopes are correlated.

    >>> build_random_term("item", ["i1", "i2", "i1"], {"length": [3.0, 4.0, 5.0]}).columns
    ('Intercept', 'length')
    """
    n = len(labels)
    levels, codes = encode_levels(group, labels, n)
    columns = {INTERCEPT: np.ones(n)} if intercept else {}
    columns |= {name: as_sample(f"slope {name!r}", values) for name, values in (slopes or {}).items()}
    if not columns:
        raise MeasureError(f"the random effects of {group} have neither an intercept nor slopes")
    if wrong := [name for name, values in columns.items() if len(values) != n]:
        raise MeasureError(f"slope {wrong[0]!r} of {group} has {len(columns[wrong[0]])} values; expected {n}")
    return RandomTerm(group, tuple(columns), np.column_stack([*columns.values()]), codes, tuple(levels), is_correlated)


@dataclass(frozen=True, eq=False)
class GroupingFactor:
    """All random effects that vary by one kind of group, with scaled columns.

    Args:
        group: The kind of group.
        columns: The names of the effects.
        values: The scaled columns, of shape (rows, effects), so that ``values @ back_transform`` would mix them back:
            an effect on the scale of the user's columns is ``back_transform @ effect``.
        codes: The group of each row.
        levels: The names of the groups.
        is_free: Which entries of the template are parameters, of shape (effects, effects); the others are 0.
        back_transform: The matrix from effects of the scaled columns to effects of the user's columns.
    """

    group: str
    columns: tuple[str, ...]
    values: Floats
    codes: LevelCodes
    levels: tuple[str, ...]
    is_free: NDArray[np.bool_]
    back_transform: Floats

    @cached_property
    def effects(self) -> int:
        """The number of random effects of each group."""
        return len(self.columns)

    @cached_property
    def size(self) -> int:
        """The number of random effects of all groups."""
        return len(self.columns) * len(self.levels)


@dataclass(frozen=True, eq=False)
class RandomEffects:
    """The random effects of a model: its grouping factors, the one with most effects first.

    Args:
        factors: The grouping factors; the first is the one that the Cholesky factorisation eliminates block by block.
        n: The number of rows.
    """

    factors: tuple[GroupingFactor, ...]
    n: int

    @property
    def theta_size(self) -> int:
        """The number of covariance parameters."""
        return sum(int(factor.is_free.sum()) for factor in self.factors)

    def build_templates(self, theta: Floats) -> list[Floats]:
        """Return the lower triangular template of each grouping factor."""
        templates, at = [], 0
        for factor in self.factors:
            template = np.zeros((factor.effects, factor.effects))
            count = int(factor.is_free.sum())
            template[factor.is_free] = theta[at : at + count]
            templates.append(template)
            at += count
        return templates

    def collect_theta(self, matrices: Sequence[Floats]) -> Floats:
        """Return the free entries of one matrix for each grouping factor, in the order of ``theta``."""
        return np.concatenate(
            [matrix[factor.is_free] for matrix, factor in zip(matrices, self.factors, strict=True)]
        ).astype(np.float64)

    def build_start(self) -> Floats:
        """Return the parameters from which a search starts: effects as variable as the residuals, uncorrelated."""
        return self.collect_theta([np.eye(factor.effects) for factor in self.factors])

    def compute_covariances(self, theta: Floats) -> list[Floats]:
        """Return the covariance matrix of each grouping factor's effects, on the scale of the user's columns.

        In a linear model it has to be multiplied by the residual variance.
        """
        roots = [
            factor.back_transform @ template
            for factor, template in zip(self.factors, self.build_templates(theta), strict=True)
        ]
        return [root @ root.T for root in roots]


def build_random_effects(terms: Sequence[RandomTerm]) -> RandomEffects:
    """Return the random effects of a model from its terms; terms of the same kind of group are put together.

    Raises:
        MeasureError: There is no term, or an effect is in two terms of the same group.
        Undefined: A kind of group has one group only, or its slopes are linearly dependent.
    """
    if not terms:
        raise MeasureError("a mixed model needs random effects, such as (1 | item); without, use a regression")
    by_group: dict[str, list[RandomTerm]] = {}
    for term in terms:
        by_group.setdefault(term.group, []).append(term)
    factors = [_merge_terms(group, members) for group, members in by_group.items()]
    # Largest first: its part of the normal equations is block diagonal, whatever its size, and the rest is dense.
    factors.sort(key=lambda factor: -factor.size)
    return RandomEffects(tuple(factors), len(terms[0].codes))


def _merge_terms(group: str, terms: list[RandomTerm]) -> GroupingFactor:
    """Return one grouping factor for all terms of a kind of group; effects of different terms are uncorrelated."""
    names = [name for term in terms for name in term.columns]
    if duplicates := sorted({name for name in names if names.count(name) > 1}):
        raise MeasureError(f"the random effect {duplicates[0]!r} of {group} is in two terms: leave one out")
    if len(terms[0].levels) < 2:
        raise Undefined(f"all rows have the same {group}, {terms[0].levels[0]!r}: its variance cannot be estimated")
    scaled, blocks, back = zip(*(_scale_columns(term) for term in terms), strict=True)
    return GroupingFactor(
        group,
        tuple(names),
        np.ascontiguousarray(np.column_stack(scaled)),
        terms[0].codes,
        terms[0].levels,
        _stack_diagonally(list(blocks)).astype(bool),
        _stack_diagonally(list(back)),
    )


def _scale_columns(term: RandomTerm) -> tuple[Floats, Floats, Floats]:
    """Return the scaled columns of a term, its free entries of the template, and the matrix back from its effects.

    Correlated effects may be mixed without changing the model, and so their columns are made orthogonal: slopes of a
    predictor far from 0, such as a year, would otherwise be nearly collinear with the intercept, and the search would
    crawl along a narrow valley. Uncorrelated ones may only be rescaled.
    """
    values, root = term.values, np.sqrt(len(term.values))
    norms = np.linalg.norm(values, axis=0)
    if (norms == 0).any():
        raise Undefined(f"the slope {term.columns[int(norms.argmin())]!r} of {term.group} is 0 in every row")
    q, r = np.linalg.qr(values / norms)
    if (np.abs(np.diag(r)) < _MIN_RELATIVE_NORM).any():
        names = ", ".join(term.columns)
        raise Undefined(f"of {names}, varying by {term.group}, one is a linear combination of the others: leave it out")
    effects = len(norms)
    if not term.is_correlated:
        return values / norms * root, np.eye(effects), np.diag(root / norms)
    return q * root, np.tril(np.ones((effects, effects))), (np.linalg.inv(r) / norms[:, None]) * root


def _stack_diagonally(blocks: list[Floats]) -> Floats:
    size = sum(len(block) for block in blocks)
    stacked, at = np.zeros((size, size)), 0
    for block in blocks:
        stacked[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    return stacked
