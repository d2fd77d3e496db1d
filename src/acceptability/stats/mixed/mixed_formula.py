"""Formulas of mixed models: ``correct ~ model + (1 + model | paradigm) + (1 | item)`` and a table become arrays.

The fixed part and the slopes are formulas of ``formulaic`` (the extra ``stats``), which also codes factors; the random
parts are read here, in lme4's notation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from acceptability.errors import MeasureError, MissingExtra, first_error_line, suggest_name
from acceptability.stats.mixed.fitting import FixedEffects, build_fixed_effects
from acceptability.stats.mixed.random_effects import RandomTerm
from acceptability.stats.samples import as_sample, encode_levels
from acceptability.types import Floats

_EXAMPLE = "'correct ~ model + (1 + model | paradigm) + (1 | item)'"
# What a formula may call: formulaic's transforms of one column, and the codings of factors inside of C().
_FUNCTIONS = {"C", "I", "Q", "bs", "cc", "center", "cr", "cs", "exp", "log", "log10", "log2", "poly", "scale"}
_FUNCTIONS |= {f"contr.{coding}" for coding in ("treatment", "sum", "helmert", "poly", "diff", "sas")}
_FUNCTIONS |= {f"np.{name}" for name in ("abs", "exp", "log", "log10", "log1p", "log2", "sqrt")}
# Joins the labels of an interaction of groups: a character that no label of a table is likely to have.
_SEPARATOR = ":"


@dataclass(frozen=True)
class RandomPart:
    """A random part of a formula: ``(1 + model | paradigm)``.

    Args:
        effects: The formula of the effects, "1 + model".
        groups: The columns whose combinations are the groups: ("paradigm",), or two for ``paradigm:item``.
        is_correlated: False after ``||``.
    """

    effects: str
    groups: tuple[str, ...]
    is_correlated: bool


@dataclass(frozen=True)
class MixedFormula:
    """A formula, taken apart.

    Args:
        outcome: The outcome's part, a column or an expression such as ``log(rt)``.
        fixed: The fixed effects' part.
        random: The random parts.
    """

    outcome: str
    fixed: str
    random: tuple[RandomPart, ...]


@dataclass(frozen=True, eq=False)
class ModelData:
    """The arrays of a model, and what its predictors mean.

    Args:
        formula: The formula.
        outcome: The outcome of each row.
        fixed: The design of the fixed effects.
        term_columns: For each term of the formula, the intercept apart, its columns in the design.
        random: The random terms.
        spec: formulaic's model specification of the fixed effects, to code new rows in the same way.
        frame: The table.
    """

    formula: MixedFormula
    outcome: Floats
    fixed: FixedEffects
    term_columns: Mapping[str, tuple[int, ...]]
    random: tuple[RandomTerm, ...]
    spec: Any
    frame: Any


def parse_mixed_formula(text: str) -> MixedFormula:
    """Return the parts of a formula in lme4's notation.

    ``(1 | g)`` is a random intercept, ``(1 + x | g)`` (short ``(x | g)``) also a slope that is correlated with it,
    ``(x || g)`` an uncorrelated one, ``(0 + x | g)`` a slope alone. ``a:b`` are the combinations of two groups, and
    ``a/b`` (b nested in a) is short for ``a`` and ``a:b``.

    >>> parse_mixed_formula("y ~ x + (x || item)")
    MixedFormula(outcome='y', fixed='x', random=(RandomPart(effects='x', groups=('item',), is_correlated=False),))
    """
    _check_calls(text)
    outcome, tilde, right = text.partition("~")
    if not tilde or not outcome.strip() or not right.strip() or "~" in right:
        raise MeasureError(f"the formula {text!r} is not of the form {_EXAMPLE}")
    fixed, random = [], []
    for sign, term in _split_terms(right, text):
        inner = term[1:-1] if term.startswith("(") and _closes_at_end(term) else ""
        if "|" not in inner:
            fixed.append((sign, term))
            continue
        if sign == "-":
            raise MeasureError(f"the formula {text!r} subtracts the random part {term}; leave it out instead")
        random += _parse_random_part(inner, text)
    if any("|" in term for _, term in fixed):
        raise MeasureError(
            f"the formula {text!r} has '|' outside of parentheses; expected random parts as in {_EXAMPLE}"
        )
    joined = " ".join(f"{sign} {term}" for sign, term in fixed).removeprefix("+ ")
    return MixedFormula(outcome.strip(), joined or "1", tuple(random))


def _check_calls(text: str) -> None:
    """Raise MeasureError for a formula that calls any function but harmless ones, or reaches into Python objects."""
    # formulaic evaluates what stands in a formula as Python, and a formula may come with somebody else's data.
    bare = re.sub(r"`[^`]*`", "", text)
    unknown = sorted(set(re.findall(r"([\w.]+)\s*\(", bare)) - _FUNCTIONS)
    if "__" in bare or unknown:
        found = "names with two underscores" if "__" in bare else f"{unknown[0]}()"
        raise MeasureError(
            f"the formula {text!r} has {found}; functions of a formula are {', '.join(sorted(_FUNCTIONS))}. "
            "Compute any other column before the analysis"
        )


def _split_terms(text: str, formula: str) -> list[tuple[str, str]]:
    """Return the terms of a sum with their signs; signs within parentheses or quotes belong to the term."""
    terms, depth, start, sign = [], 0, 0, "+"
    for at, character in enumerate(text + "+"):
        depth += (character in "([{") - (character in ")]}")
        if depth < 0:
            break
        if character in "+-" and depth == 0:
            if term := text[start:at].strip():
                terms.append((sign, term))
            elif start:
                raise MeasureError(f"the formula {formula!r} has a sign without a term after it")
            start, sign = at + 1, character
    if depth != 0:
        raise MeasureError(f"the formula {formula!r} has a parenthesis without its partner")
    return terms


def _closes_at_end(term: str) -> bool:
    """Whether the parenthesis that opens a term closes at its end: ``(a)``, not ``(a):(b)``."""
    depth = 0
    for at, character in enumerate(term):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return at == len(term) - 1
    return False


def _parse_random_part(inner: str, formula: str) -> list[RandomPart]:
    effects, bars, groups = (part.strip() for part in re.split(r"(\|\|?)", inner, maxsplit=1))
    names = [[name.strip().strip("`") for name in part.split(":")] for part in groups.split("/")]
    if not effects or "|" in groups or not all(name for part in names for name in part):
        raise MeasureError(f"the random part ({inner}) of {formula!r} is not of the form (effects | group)")
    # b nested in a: groups a, and the combinations a:b.
    nested = [tuple(name for part in names[: depth + 1] for name in part) for depth in range(len(names))]
    return [RandomPart(effects, part, bars == "|") for part in nested]


def build_model_data(text: str, frame: Any) -> ModelData:
    """Return the arrays of a model from its formula and a table.

    Args:
        text: The formula.
        frame: A pandas data frame, or a mapping of columns.

    Raises:
        MissingExtra: formulaic is not installed.
        MeasureError: The formula cannot be read, or a column is missing or has missing values.
    """
    formula = parse_mixed_formula(text)
    frame = _as_frame(frame)
    outcome_part, fixed_part = _parse_part(formula.outcome), _parse_part(formula.fixed)
    effects = [_parse_part(part.effects) for part in formula.random]
    used = {str(name) for part in (outcome_part, fixed_part, *effects) for name in part.required_variables}
    _check_columns(frame, used | {name for part in formula.random for name in part.groups})
    outcome, _ = _build_matrix(f"0 + {formula.outcome}", frame)
    if outcome.shape[1] != 1:
        raise MeasureError(f"the outcome {formula.outcome!r} is not numeric; expected numbers, or 0 and 1")
    table, spec = _build_matrix(formula.fixed, frame)
    columns = {str(term): tuple(indices) for term, indices in spec.term_indices.items() if str(term) != "1" and indices}
    return ModelData(
        formula,
        as_sample("the outcome", outcome[:, 0]),
        build_fixed_effects(spec.column_names, table),
        columns,
        tuple(term for part in formula.random for term in _build_terms(part, frame)),
        spec,
        frame,
    )


def _as_frame(frame: Any) -> Any:
    try:
        import pandas
    except ImportError as error:
        raise _missing_formulaic() from error
    if isinstance(frame, pandas.DataFrame):
        return frame.reset_index(drop=True)
    if not isinstance(frame, Mapping):
        raise MeasureError(f"the table is a {type(frame).__name__}; expected a pandas DataFrame or a dict of columns")
    lengths = {str(name): len(column) for name, column in frame.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise MeasureError(f"the columns have different lengths: {sizes}")
    return pandas.DataFrame(dict(frame))


def _missing_formulaic() -> MissingExtra:
    return MissingExtra("regress", "formulaic", "'acceptability[stats]'")


def _parse_part(text: str) -> Any:
    try:
        from formulaic import Formula
        from formulaic.errors import FormulaicError
    except ImportError as error:
        raise _missing_formulaic() from error
    try:
        return Formula(text)
    except (FormulaicError, SyntaxError) as error:
        raise MeasureError(f"the formula part {text!r} cannot be read: {first_error_line(error)}") from error


def _check_columns(frame: Any, names: set[str]) -> None:
    """Raise MeasureError for columns that are not in the table, or have missing values."""
    columns = [str(name) for name in frame.columns]
    for name in sorted(names):
        if name not in columns:
            hint = suggest_name(name, columns)
            raise MeasureError(f"the table has no column {name!r}.{hint} Its columns: {', '.join(columns)}")
        missing = np.flatnonzero(frame[name].isna().to_numpy())
        if len(missing):
            values = "value" if len(missing) == 1 else "values"
            raise MeasureError(
                f"column {name!r} has {len(missing)} missing {values}, the first in row {missing[0] + 1}: "
                "leave such rows out before the analysis"
            )


def _build_matrix(text: str, frame: Any) -> tuple[Floats, Any]:
    """Return the design matrix of a part of a formula, and its specification."""
    from formulaic.errors import FormulaicError

    part = _parse_part(text)
    try:
        # Without a context, so that names in a formula mean columns and never variables of the caller.
        matrix = part.get_model_matrix(frame, context=None, output="numpy", na_action="raise")
    except (FormulaicError, ValueError, TypeError, KeyError) as error:
        raise MeasureError(f"the formula part {text!r} cannot be computed: {first_error_line(error)}") from error
    table = np.asarray(matrix, dtype=np.float64)
    return table, matrix.model_spec


def _build_terms(part: RandomPart, frame: Any) -> list[RandomTerm]:
    """Return the random term of a part."""
    table, spec = _build_matrix(part.effects, frame)
    group = _SEPARATOR.join(part.groups)
    levels, codes = encode_levels(group, join_labels(frame, part.groups), len(frame))
    return [RandomTerm(group, tuple(spec.column_names), table, codes, tuple(levels), part.is_correlated)]


def join_labels(frame: Any, names: Sequence[str]) -> Sequence[object]:
    """Return the label of each row's group: its value in a column, or its values in several joined by colons."""
    if len(names) == 1:
        return list(frame[names[0]])
    return [_SEPARATOR.join(map(str, labels)) for labels in zip(*(frame[name] for name in names), strict=True)]
