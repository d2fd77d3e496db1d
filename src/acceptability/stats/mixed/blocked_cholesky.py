"""The penalised normal equations of a mixed model, and their blocked Cholesky factorisation.

The matrix to factorise is Ω = Λᵀ Zᵀ W Z Λ + I, with the rows' weights W, the design Z of the random effects and their
relative covariance factor Λ; it may be bordered by further columns, such as predictors and outcome. The effects of the
largest grouping factor come first. Their block of Zᵀ W Z is block diagonal, one small block a group, however many
groups there are, and is eliminated exactly (as in MixedModels.jl); what remains, the Schur complement over all other
columns, is small and dense. A model of 67,000 items and 67 paradigms costs 67,000 divisions and one factorisation of
a few hundred rows.

A group of the first factor meets few of the other columns: an item those of its own paradigm. Groups that meet the
same columns form a `Pattern`, whose products are dense matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular

from acceptability.errors import MeasureError
from acceptability.stats.mixed.random_effects import GroupingFactor, RandomEffects
from acceptability.types import Floats

# The dense block of all grouping factors but the largest: 12,000 columns take 1.2 GB, and there are three of its size.
_MAX_REST_COLUMNS = 12_000
# The cost of handling one more pattern in Python, in multiplications of a matrix product.
_PATTERN_COST = 300_000

# A design of this many entries is small enough to be kept dense.
_MAX_DENSE_TABLE = 100_000

_Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pattern:
    """Groups of the first grouping factor that meet the same columns of the others.

    Args:
        members: The groups, as indices among the levels of the first factor.
        columns: The columns that they meet, as indices into the rest, the border included.
        start, stop: Where their cross-products lie in the flat array of all patterns; seen as a table, they are of
            shape (random-effects columns met, members, effects of the first factor).
    """

    members: _Indices
    columns: _Indices
    start: int
    stop: int


class BlockLayout:
    """Where the cross-products of a design are kept: computed once, since it does not depend on any parameter.

    Args:
        random: The random effects of the model.
        border: Columns beside the random effects, of shape (rows, columns), such as predictors and outcome; may have
            none.
    """

    def __init__(self, random: RandomEffects, border: Floats | None = None) -> None:
        self.random = random
        self.border = np.zeros((random.n, 0)) if border is None else border
        self.first = random.factors[0]
        self.others = random.factors[1:]
        self.rest_columns = sum(factor.size for factor in self.others)
        if self.rest_columns > _MAX_REST_COLUMNS:
            sizes = ", ".join(f"{factor.group} {factor.size:,}" for factor in random.factors)
            raise MeasureError(
                f"the random effects are too many ({sizes}): besides the largest kind of group, all others may have "
                f"{_MAX_REST_COLUMNS:,} together. Leave out random slopes, or a kind of group"
            )
        self.offsets: list[int] = np.cumsum([0, *(factor.size for factor in self.others)]).tolist()[:-1]
        # Each row has the same number of non-zero entries: the effects of its own group of every kind.
        self.columns, self.values = _list_entries(self.others, self.offsets, random.n)
        self.patterns, self.positions = _find_patterns(self)

    @property
    def width(self) -> int:
        """The number of columns of the Schur complement: the other random effects and the border."""
        return self.rest_columns + int(self.border.shape[1])

    def scale_rest(self, templates: Sequence[Floats], table: Floats) -> Floats:
        """Return a table whose rows, those of the other random effects, are multiplied by Λ (for Λᵀ pass Tᵀ).

        Args:
            templates: A template for each of the other grouping factors.
            table: Of shape (width, any).
        """
        scaled = table.copy()
        for factor, offset, template in zip(self.others, self.offsets, templates, strict=True):
            rows = table[offset : offset + factor.size].reshape(len(factor.levels), factor.effects, table.shape[1])
            scaled[offset : offset + factor.size] = (template @ rows).reshape(factor.size, -1)
        return scaled

    def multiply(self, first: Floats, rest: Floats) -> Floats:
        """Return Z b for each row: the sum of its groups' effects on the scaled columns.

        Args:
            first: The effects of the first grouping factor, of shape (groups, effects).
            rest: Those of all others, in one row.
        """
        total = np.einsum("na,na->n", self.first.values, first[self.first.codes])
        return np.asarray(total + np.einsum("ns,ns->n", self.values, rest[self.columns]))

    def multiply_transposed(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return Zᵀ v for a vector over the rows: a table for the first grouping factor, and one row for the rest."""
        levels = len(self.first.levels)
        first = [np.bincount(self.first.codes, column * rows, levels) for column in self.first.values.T]
        rest = np.zeros(self.rest_columns)
        for columns, values in zip(self.columns.T, self.values.T, strict=True):
            rest += np.bincount(columns, values * rows, self.rest_columns)
        return np.column_stack(first), rest

    def compute_cross_products(self, weights: Floats | None = None) -> CrossProducts:
        """Return the products of all columns with all columns, each row counting with its weight."""
        levels, effects = len(self.first.levels), self.first.effects
        codes, values = self.first.codes, self.first.values
        weighted = values if weights is None else values * weights[:, None]
        diagonal = np.empty((levels, effects, effects))
        for a in range(effects):
            for b in range(a + 1):
                diagonal[:, a, b] = diagonal[:, b, a] = np.bincount(codes, weighted[:, a] * values[:, b], levels)
        border = np.empty((self.border.shape[1], levels, effects))
        for k, column in enumerate(self.border.T):
            for a in range(effects):
                border[k, :, a] = np.bincount(codes, column * weighted[:, a], levels)
        flat = self._sum_products_with_rest(weighted)
        tables = tuple(
            np.concatenate(
                [
                    flat[pattern.start : pattern.stop].reshape(-1, len(pattern.members), effects),
                    border[:, pattern.members],
                ]
            )
            for pattern in self.patterns
        )
        return CrossProducts(self, diagonal, tables, self._compute_rest_products(weights))

    def _sum_products_with_rest(self, weighted: Floats) -> Floats:
        """Return the products of the first grouping factor's columns with those of the others, in one flat array."""
        size = self.patterns[-1].stop
        flat = np.zeros(size)
        for positions, values in zip(self.positions.T, self.values.T, strict=True):
            for a, column in enumerate(weighted.T):
                flat += np.bincount(positions + a, values * column, size)
        return flat

    def _compute_rest_products(self, weights: Floats | None) -> Floats:
        at, total = self.rest_columns, np.empty((self.width, self.width))
        border = self.border if weights is None else self.border * weights[:, None]
        total[at:, at:] = border.T @ self.border
        if at:
            table = self._rest_table
            right = table * weights[:, None] if weights is not None and self._is_small else table
            if weights is not None and not self._is_small:
                right = table.copy()
                right.data = (self.values * weights[:, None]).ravel()
            products = table.T @ right
            total[:at, :at] = products if self._is_small else products.toarray()
            total[:at, at:] = table.T @ border
            total[at:, :at] = total[:at, at:].T
        return total

    @property
    def _is_small(self) -> bool:
        return self.random.n * self.rest_columns <= _MAX_DENSE_TABLE

    @cached_property
    def _rest_table(self) -> Any:
        """The design of the other grouping factors: dense if it is small, which is faster, else sparse."""
        from scipy import sparse

        n, met = self.columns.shape
        pointers = np.arange(0, n * met + 1, met)
        table = sparse.csr_matrix((self.values.ravel(), self.columns.ravel(), pointers), shape=(n, self.rest_columns))
        return table.toarray() if self._is_small else table


def _list_entries(others: Sequence[GroupingFactor], offsets: Sequence[int], n: int) -> tuple[_Indices, Floats]:
    """Return the columns and the values of each row's entries in the design of the other grouping factors."""
    columns, values = [np.zeros((n, 0), np.int64)], [np.zeros((n, 0))]
    for factor, offset in zip(others, offsets, strict=True):
        columns.append(offset + factor.codes[:, None] * factor.effects + np.arange(factor.effects))
        values.append(factor.values)
    return np.concatenate(columns, axis=1), np.concatenate(values, axis=1)


def _find_patterns(layout: BlockLayout) -> tuple[tuple[Pattern, ...], _Indices]:
    """Return the patterns, and for each entry of each row where its products begin in the flat array."""
    levels, effects, width = len(layout.first.levels), layout.first.effects, layout.rest_columns
    border = np.arange(width, layout.width)
    if not width:
        return (Pattern(np.arange(levels), border, 0, 0),), np.zeros((layout.random.n, 0), np.int64)
    # The distinct (group, column) pairs, sorted by group: which columns each group meets.
    pairs = layout.first.codes[:, None] * width + layout.columns
    keys = np.unique(pairs.ravel())
    owners, met = np.divmod(keys, width)
    bounds = np.searchsorted(owners, np.arange(levels + 1))
    by_columns: dict[bytes, list[int]] = {}
    for level in range(levels):
        by_columns.setdefault(met[bounds[level] : bounds[level + 1]].tobytes(), []).append(level)
    local = np.arange(len(keys)) - bounds[owners]
    # Where patterns are many and the other columns few, one dense table is faster than many small ones.
    if levels * effects * width**2 < len(by_columns) * _PATTERN_COST:
        by_columns, local = {np.arange(width).tobytes(): list(range(levels))}, met
    patterns, at = [], 0
    starts, sizes, places = (np.zeros(levels, np.int64) for _ in range(3))
    for text, members in by_columns.items():
        columns, count = np.frombuffer(text, np.int64), len(members)
        patterns.append(
            Pattern(np.array(members), np.concatenate([columns, border]), at, at + count * len(columns) * effects)
        )
        starts[members], sizes[members], places[members] = at, count, np.arange(count)
        at = patterns[-1].stop
    codes = layout.first.codes[:, None]
    offset = local[np.searchsorted(keys, pairs)]
    return tuple(patterns), starts[codes] + (offset * sizes[codes] + places[codes]) * effects


@dataclass(frozen=True, eq=False)
class CrossProducts:
    """The products of all columns of a design with each other.

    Args:
        layout: The layout of the design.
        diagonal: The blocks of the first grouping factor, of shape (groups, effects, effects).
        tables: For each pattern its products with the columns that it meets, (columns, members, effects).
        rest: The products of the other columns, (width, width).
    """

    layout: BlockLayout
    diagonal: Floats
    tables: tuple[Floats, ...]
    rest: Floats

    def factorise(self, templates: Sequence[Floats]) -> Factorisation:
        """Return the Cholesky factorisation of Ω, with a template for each grouping factor."""
        layout, (template, *others) = self.layout, templates
        # The identity keeps this positive definite even where the template is 0 and the effects vanish.
        inverse, log_determinant = _invert_blocks(template.T @ self.diagonal @ template + np.eye(len(template)))
        middle = template @ inverse @ template.T
        schur = self.rest.copy()
        for pattern, table in zip(layout.patterns, self.tables, strict=True):
            scaled = _multiply_blocks(table, middle[pattern.members])
            schur[pattern.columns[:, None], pattern.columns] -= _flatten(scaled) @ _flatten(table).T
        transposed = [other.T for other in others]
        scaled_schur = layout.scale_rest(transposed, layout.scale_rest(transposed, schur).T)
        scaled_schur[np.arange(layout.rest_columns), np.arange(layout.rest_columns)] += 1
        root = cholesky(scaled_schur, lower=True, check_finite=False)
        return Factorisation(self, tuple(templates), inverse, middle, schur, root, log_determinant)


def _invert_blocks(blocks: Floats) -> tuple[Floats, float]:
    """Return the inverses of small positive definite matrices, and the sum of their log-determinants."""
    # Items with an intercept only are the commonest case, and division is far faster than a factorisation of each.
    if blocks.shape[-1] == 1:
        return 1 / blocks, float(np.log(blocks).sum())
    diagonals = np.diagonal(np.linalg.cholesky(blocks), axis1=1, axis2=2)
    return np.asarray(np.linalg.inv(blocks)), 2 * float(np.log(diagonals).sum())


def _flatten(table: Floats) -> Floats:
    """Return a table of shape (columns, members, effects) as a matrix with one row a column."""
    # Written out, since -1 is ambiguous for a table without columns.
    return table.reshape(table.shape[0], table.shape[1] * table.shape[2])


def _multiply_blocks(table: Floats, blocks: Floats) -> Floats:
    """Return (columns, members, effects) times each member's own (effects, effects)."""
    if blocks.shape[-1] == 1:
        return np.asarray(table * blocks[:, :, 0])
    return np.asarray(np.einsum("mtq,tqr->mtr", table, blocks))


@dataclass(frozen=True, eq=False)
class Factorisation:
    """The Cholesky factorisation of Ω for given templates.

    Args:
        products: The cross-products that were factorised.
        templates: The template T of each grouping factor.
        inverse: For each group of the first grouping factor the inverse of its block D of Ω.
        middle: For each of these groups T D⁻¹ Tᵀ.
        schur: The Schur complement before the templates of the other factors are applied, without the identity.
        root: The lower Cholesky factor of the Schur complement, border included.
        first_log_determinant: The log-determinant of the first grouping factor's part.
    """

    products: CrossProducts
    templates: tuple[Floats, ...]
    inverse: Floats
    middle: Floats
    schur: Floats
    root: Floats
    first_log_determinant: float

    def log_determinant(self, columns: int = 0) -> float:
        """Return the log-determinant of Ω, bordered by the first columns of the border."""
        diagonal = np.diag(self.root)[: self.products.layout.rest_columns + columns]
        return self.first_log_determinant + 2 * float(np.log(diagonal).sum())

    def solve(self, first: Floats, rest: Floats) -> tuple[Floats, Floats]:
        """Return Ω⁻¹ v without the border; v and the solution are in the parts of ``multiply_transposed``."""
        layout, (template, *others) = self.products.layout, self.templates
        at = layout.rest_columns
        lifted = np.einsum("ab,lbc,lc->la", template, self.inverse, first)
        met = np.zeros(layout.width)
        for pattern, table in zip(layout.patterns, self.products.tables, strict=True):
            met[pattern.columns] += np.einsum("mtq,tq->m", table, lifted[pattern.members])
        scaled = layout.scale_rest([other.T for other in others], met[:, None])[:at, 0]
        root = self.root[:at, :at]
        inner = solve_triangular(root, rest - scaled, lower=True, check_finite=False)
        rest_solution = np.asarray(solve_triangular(root, inner, lower=True, trans=1, check_finite=False))
        return self.solve_first(first, rest_solution), rest_solution

    def solve_first(self, first: Floats, rest_solution: Floats, border_solution: Floats | None = None) -> Floats:
        """Return the solution's first part, given that of the rest and of the border."""
        layout, (template, *others) = self.products.layout, self.templates
        effects = np.zeros((layout.width, 1))
        effects[: layout.rest_columns, 0] = rest_solution
        if border_solution is not None:
            effects[layout.rest_columns :, 0] = border_solution
        effects = layout.scale_rest(others, effects)[:, 0]
        met = np.zeros_like(first)
        for pattern, table in zip(layout.patterns, self.products.tables, strict=True):
            met[pattern.members] = np.einsum("mtq,m->tq", table, effects[pattern.columns])
        return np.asarray(np.einsum("lab,lb->la", self.inverse, first - met @ template))

    def invert(self, columns: int = 0) -> PartialInverse:
        """Return what gradients need of Ω⁻¹, bordered by the first columns of the border."""
        layout, others = self.products.layout, self.templates[1:]
        size = layout.rest_columns + columns
        # Columns that do not take part, such as the outcome, are zeros, so that all tables keep one width.
        inverse = np.zeros((layout.width, layout.width))
        root = solve_triangular(self.root[:size, :size], np.eye(size), lower=True, check_finite=False)
        inverse[:size, :size] = root.T @ root
        half = layout.scale_rest(others, inverse)
        full = layout.scale_rest(others, half.T)
        first = np.empty_like(self.inverse)
        tables = []
        for pattern, table in zip(layout.patterns, self.products.tables, strict=True):
            block = full[pattern.columns[:, None], pattern.columns]
            tables.append((block @ _flatten(table)).reshape(table.shape))
            first[pattern.members] = np.einsum("mtq,mtr->tqr", table, tables[-1])
        return PartialInverse(self, half, full, first, tuple(tables))


@dataclass(frozen=True, eq=False)
class PartialInverse:
    """The parts of Ω⁻¹ that the derivative of its log-determinant and the leverages of the rows need.

    Args:
        factorisation: The factorisation of Ω.
        half, full: Λ P and Λ P Λᵀ, with the inverse P of the Schur complement.
        first: For each group of the first grouping factor Wᵀ (Λ P Λᵀ) W, with its cross-products W.
        tables: (Λ P Λᵀ) W, by pattern.
    """

    factorisation: Factorisation
    half: Floats
    full: Floats
    first: Floats
    tables: tuple[Floats, ...]

    def differentiate_log_determinant(self) -> list[Floats]:
        """Return the derivative of Ω's log-determinant by each entry of each template.

        It is 2 tr(dΛᵀ A Λ Ω⁻¹) with A = Zᵀ W Z. The products are arranged so that no template is inverted, since the
        template of a singular fit has no inverse.
        """
        factorisation, layout = self.factorisation, self.factorisation.products.layout
        diagonal, template = factorisation.products.diagonal, factorisation.templates[0]
        lifted = template @ factorisation.inverse
        inner = diagonal @ factorisation.middle - np.eye(len(template))
        slopes = [2 * (diagonal @ lifted + inner @ self.first @ lifted).sum(axis=0)]
        transposed = self.half.T
        for factor, offset in zip(layout.others, layout.offsets, strict=True):
            stop, effects = offset + factor.size, factor.effects
            left, right = factorisation.schur[offset:stop], transposed[offset:stop]
            slope = np.empty((effects, effects))
            for a in range(effects):
                for b in range(effects):
                    slope[a, b] = 2 * np.einsum("lj,lj->", left[a::effects], right[b::effects])
            slopes.append(slope)
        return slopes

    def compute_leverages(self) -> Floats:
        """Return zᵀ Λ Ω⁻¹ Λᵀ z for each row z of the design of the random effects."""
        factorisation, layout = self.factorisation, self.factorisation.products.layout
        values, codes, middle = layout.first.values, layout.first.codes, factorisation.middle
        blocks = middle + middle @ self.first @ middle
        leverages = np.einsum("na,nab,nb->n", values, blocks[codes], values)
        if not layout.rest_columns:
            return np.asarray(leverages)
        flat = np.empty(layout.patterns[-1].stop)
        for pattern, table in zip(layout.patterns, self.tables, strict=True):
            met = len(pattern.columns) - layout.border.shape[1]
            flat[pattern.start : pattern.stop] = _multiply_blocks(table[:met], middle[pattern.members]).ravel()
        met = layout.columns.shape[1]
        for k in range(met):
            for a, column in enumerate(values.T):
                leverages -= 2 * layout.values[:, k] * column * flat[layout.positions[:, k] + a]
            for other in range(k + 1):
                both = layout.values[:, k] * layout.values[:, other]
                both *= self.full[layout.columns[:, k], layout.columns[:, other]]
                leverages += both if other == k else 2 * both
        return np.asarray(leverages)
