"""Analysis of variance over two factors, and which of several groups differ (Tukey)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import fdtrc

from acceptability.errors import MeasureError, Undefined
from acceptability.stats.samples import check_choice, check_level, labels, sample
from acceptability.types import Floats

TYPES = ("II", "III")


@dataclass(frozen=True)
class Effect:
    """What a factor, or two together, contribute; partial eta squared is SS / (SS + residual SS)."""

    name: str
    ss: float
    df: int
    f: float
    p: float
    partial_eta_squared: float


@dataclass(frozen=True)
class Anova:
    """A two-way analysis of variance: one effect each factor, and their interaction."""

    effects: tuple[Effect, ...]
    residual_ss: float
    residual_df: int
    sums_of_squares: str
    n: int


@dataclass(frozen=True)
class GroupDifference:
    """By how much the first group's mean is above the second's.

    Args:
        p, low, high: Adjusted for all pairs of groups, by Tukey's range.
        d: The effect: the difference in units of the standard deviation within groups (Cohen's d).
    """

    first: str
    second: str
    difference: float
    p: float
    low: float
    high: float
    d: float


def two_way_anova(
    values: ArrayLike, factors: Mapping[str, Sequence[object]], *, sums_of_squares: str = "II", interaction: bool = True
) -> Anova:
    """Test what two factors, such as suite and model, contribute to a number.

    Assumes independent rows and residuals that are normal and of equal spread (``levene``). Sums of squares for
    unequal cells are of type II (each factor beside the other, the interaction beside both: the better choice
    where there is no interaction) or III (each beside all else, by contrasts that sum to 0); for equal cells both
    are the same.

    Raises:
        Undefined: A factor has one level, a combination of levels has no row, or nothing is left for the error.
    """
    check_choice("sums_of_squares", sums_of_squares, TYPES)
    if len(factors) != 2:
        raise MeasureError(f"two-way means two factors; there are {len(factors)}")
    y = sample("the values", values, least=2)
    blocks = _blocks(factors, len(y), interaction)
    full_ss, rank = _residual(y, list(blocks.values()))
    df = len(y) - rank
    if df < 1 or full_ss <= 1e-24 * float(y @ y):
        raise Undefined("nothing varies within the cells: there is no error to compare with")
    effects = []
    for name, block in blocks.items():
        kept, whole = _models(blocks, name, sums_of_squares)
        ss = max(0.0, _residual(y, kept)[0] - _residual(y, whole)[0])
        f = ss / block.shape[1] / (full_ss / df)
        effects.append(Effect(name, ss, block.shape[1], f, float(fdtrc(block.shape[1], df, f)), ss / (ss + full_ss)))
    return Anova(tuple(effects), full_ss, df, sums_of_squares, len(y))


def tukey_hsd(values: ArrayLike, groups: Sequence[object], *, level: float = 0.95) -> list[GroupDifference]:
    """Test every two of several groups, with p values and intervals adjusted for how many pairs there are.

    Assumes independent rows, normal within groups of equal spread; for unequal sizes this is Tukey and Kramer's.
    """
    from scipy.stats import tukey_hsd as scipy_tukey

    check_level(level)
    y = sample("the values", values, least=3)
    names, codes = labels("groups", groups, len(y))
    parts = [y[codes == i] for i in range(len(names))]
    if len(names) < 2:
        raise Undefined(f"there are {len(names)} groups; two are needed")
    within = sum(float(((each - each.mean()) ** 2).sum()) for each in parts)
    if len(y) == len(names) or within == 0:
        raise Undefined("nothing varies within the groups: there is no error to compare with")
    found = scipy_tukey(*parts)
    ends, deviation = found.confidence_interval(level), math.sqrt(within / (len(y) - len(names)))
    return [
        GroupDifference(
            names[i],
            names[j],
            gap := float(parts[i].mean() - parts[j].mean()),
            float(found.pvalue[i, j]),
            float(ends.low[i, j]),
            float(ends.high[i, j]),
            gap / deviation,
        )
        for i in range(len(names))
        for j in range(i + 1, len(names))
    ]


def _blocks(factors: Mapping[str, Sequence[object]], n: int, interaction: bool) -> dict[str, Floats]:
    """Return the columns of each effect, as contrasts that sum to 0."""
    found = {name: labels(name, given, n) for name, given in factors.items()}
    for name, (levels, _) in found.items():
        if len(levels) < 2:
            raise Undefined(f"the factor {name!r} has one level only, {levels[0]!r}")
    (one, (one_levels, one_codes)), (two, (two_levels, two_codes)) = found.items()
    blocks = {one: _contrasts(one_codes, len(one_levels)), two: _contrasts(two_codes, len(two_levels))}
    if interaction:
        seen = set(zip(one_codes.tolist(), two_codes.tolist(), strict=True))
        for i, first in enumerate(one_levels):
            for j, second in enumerate(two_levels):
                if (i, j) not in seen:
                    raise Undefined(f"no row has {one}={first} and {two}={second}: an interaction needs every cell")
        blocks[f"{one}:{two}"] = (blocks[one][:, :, None] * blocks[two][:, None, :]).reshape(n, -1)
    return blocks


def _contrasts(codes: np.ndarray[tuple[int, ...], np.dtype[np.int64]], levels: int) -> Floats:
    return np.asarray(np.vstack([np.eye(levels - 1), -np.ones(levels - 1)])[codes])


def _models(blocks: Mapping[str, Floats], name: str, kind: str) -> tuple[list[Floats], list[Floats]]:
    """Return the model without an effect and the one with it, whose residuals are compared."""
    if kind == "III":
        beside = [block for other, block in blocks.items() if other != name]
    else:
        # The interaction comes last, and no factor is tested beside it.
        before = list(blocks)[:2]
        beside = [blocks[other] for other in before if other != name]
    return beside, [*beside, blocks[name]]


def _residual(y: Floats, blocks: list[Floats]) -> tuple[float, int]:
    """Return what a model leaves unexplained, and how many independent columns it has."""
    table = np.column_stack([np.ones(len(y)), *blocks])
    solution, _, rank, _ = np.linalg.lstsq(table, y, rcond=None)
    rest = y - table @ solution
    return float(rest @ rest), int(rank)
