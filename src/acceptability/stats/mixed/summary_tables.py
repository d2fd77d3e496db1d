"""What is shown of a mixed model: coefficients, random effects, and tables of them in plain text and HTML.

No number is cut, and lines have at most 80 columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from html import escape
from textwrap import wrap
from typing import Any

from acceptability.errors import MissingExtra

WIDTH = 80

Cell = str | float | None


def format_number(value: float | None) -> str:
    """Return a number with four significant digits; a dash for None.

    >>> format_number(10.46728596), format_number(0.00012345), format_number(None)
    ('10.47', '0.0001234', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def format_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], width: int = WIDTH) -> str:
    """Return a table whose first column holds names and whose others hold numbers.

    A name that leaves too little room for the numbers stands on a line of its own.

    >>> print(format_table(["effect", "sd"], [["Intercept", 24.7405], ["Days", 5.92213]]))
    effect        sd
    Intercept  24.74
    Days       5.922
    """
    texts = [[cell if isinstance(cell, str) else format_number(cell) for cell in row] for row in rows]
    sizes = [max(len(row[k]) for row in [list(header), *texts]) for k in range(1, len(header))]
    room = width - sum(size + 2 for size in sizes)
    fits = [len(row[0]) for row in [list(header), *texts] if len(row[0]) <= room]
    name_size = max(fits, default=0)
    lines = []
    for row in [list(header), *texts]:
        numbers = "".join("  " + cell.rjust(size) for cell, size in zip(row[1:], sizes, strict=True))
        if len(row[0]) <= room:
            lines.append(row[0].ljust(name_size) + numbers)
        else:
            lines += [row[0], " " * name_size + numbers]
    return "\n".join(line.rstrip() for line in lines)


def format_html_table(header: Sequence[str], rows: Sequence[Sequence[Cell]], caption: str) -> str:
    """Return the same table in HTML, with a caption."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>"
        + "".join(f"<td>{escape(cell if isinstance(cell, str) else format_number(cell))}</td>" for cell in row)
        + "</tr>"
        for row in rows
    )
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def build_frame(rows: Sequence[dict[str, Any]]) -> Any:
    """Return rows as a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise MissingExtra("to_frame", "pandas", "'acceptability[stats]'") from error
    return pandas.DataFrame(rows)


@dataclass(frozen=True)
class FixedEffect:
    """A coefficient of a mixed model.

    Args:
        name: The column of the design matrix: "model[T.b]".
        estimate: The change of the outcome (of its log-odds) per unit of the column.
        se: The standard error.
        statistic: The estimate divided by its standard error, t or z.
        df: The degrees of freedom of t; None for z.
        p: The two-sided p value.
        low, high: The confidence interval.
        odds_ratio: The exponential of the estimate in a logistic model, else None.
        test: The name of the test and of its degrees of freedom.
        interval: The name and the level of the interval.
    """

    name: str
    estimate: float
    se: float
    statistic: float
    df: float | None
    p: float
    low: float
    high: float
    odds_ratio: float | None
    test: str
    interval: str


@dataclass(frozen=True)
class RandomEffectSd:
    """The standard deviation of a random effect over groups.

    Args:
        group: The kind of group.
        name: The effect: "Intercept", or the column of a slope.
        sd: The standard deviation; 0 where groups do not differ.
        correlations: Those with the effects of the same group listed before; None where not estimated, or undefined
            since a standard deviation is 0.
        groups: The number of groups.
    """

    group: str
    name: str
    sd: float
    correlations: tuple[float | None, ...]
    groups: int


@dataclass(frozen=True)
class Threshold:
    """The threshold between two neighbouring levels, on the scale of the latent variable.

    Args:
        name: The two levels: "1|2".
        estimate: Where it is for a row whose linear predictor is 0.
        se: Its standard error.
        low, high: Its confidence interval.
        interval: The name and the level of the interval.
    """

    name: str
    estimate: float
    se: float
    low: float
    high: float
    interval: str


@dataclass(frozen=True, eq=False, repr=False)
class RegressionSummary(ABC):
    """What is shown of a fitted mixed model, whoever fitted it.

    Args:
        formula: The formula.
        family: "gaussian" (linear), "binomial" (logistic), "ordinal" or "ordinal-probit".
        coefficients: The fixed effects.
        random_effects: The standard deviations and correlations of the random effects.
        residual_sd: The standard deviation within groups; None in a logistic or an ordinal model.
        log_likelihood: The log-likelihood (for REML the restricted one).
        method: "REML", "ML" or "Laplace".
        is_singular: Whether some random effect has no variance, or is a linear combination of others: the data do not
            support this random structure, and tests of it mean little.
    """

    formula: str
    family: str
    coefficients: tuple[FixedEffect, ...]
    random_effects: tuple[RandomEffectSd, ...]
    residual_sd: float | None
    log_likelihood: float
    method: str
    is_singular: bool

    def __getitem__(self, name: str) -> FixedEffect:
        by_name = {coefficient.name: coefficient for coefficient in self.coefficients}
        if name not in by_name:
            raise KeyError(f"no coefficient {name!r}; there are {', '.join(by_name)}")
        return by_name[name]

    @property
    @abstractmethod
    def n(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def parameters(self) -> int:
        """The number of parameters."""

    @property
    def deviance(self) -> float:
        """Minus twice the log-likelihood."""
        return -2 * self.log_likelihood

    @property
    def aic(self) -> float:
        """Akaike's information criterion."""
        return self.deviance + 2 * self.parameters

    def to_frame(self) -> Any:
        """Return the coefficients as a pandas data frame, one row each, with the names of test and interval."""
        return build_frame([asdict(coefficient) for coefficient in self.coefficients])

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is shown, with the names of all methods, as data for JSON."""
        return {
            "formula": self.formula,
            "family": self.family,
            "method": self.method,
            "rows": self.n,
            "groups": {effect.group: effect.groups for effect in self.random_effects},
            "log_likelihood": self.log_likelihood,
            "aic": self.aic,
            "singular": self.is_singular,
            "coefficients": [asdict(coefficient) for coefficient in self.coefficients],
            "random_effects": [asdict(effect) for effect in self.random_effects],
            "thresholds": [asdict(threshold) for threshold in self.list_thresholds()],
            "residual_sd": self.residual_sd,
        }

    def list_thresholds(self) -> tuple[Threshold, ...]:
        """Return the thresholds of an ordinal model; none for others."""
        return ()

    def thresholds_frame(self) -> Any:
        """Return the thresholds of an ordinal model as a pandas data frame."""
        return build_frame([asdict(threshold) for threshold in self.list_thresholds()])

    def random_effects_frame(self) -> Any:
        """Return the standard deviations of the random effects as a pandas data frame."""
        return build_frame([asdict(effect) for effect in self.random_effects])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.formula!r}, {self.family}, {self.method}, {self.n} rows>"

    def __str__(self) -> str:
        tables = [format_table(header, rows) for header, rows in self.list_tables()]
        return "\n\n".join([self.describe(), *tables, "\n".join(self.list_notes())])

    def _repr_html_(self) -> str:
        captions = [self.describe(), *[""] * 9]
        tables = zip(self.list_tables(), captions, strict=False)
        html = "".join(format_html_table(header, rows, caption) for (header, rows), caption in tables)
        return f"{html}<p>{escape(' '.join(self.list_notes()))}</p>"

    def list_tables(self) -> list[tuple[list[str], list[list[Cell]]]]:
        """Return the tables of coefficients, thresholds and random effects, each with its header; none without rows."""
        header = ["fixed effect", "estimate", "SE", "t" if self.family == "gaussian" else "z", "df", "p", "low", "high"]
        rows: list[list[Cell]] = [
            [it.name, it.estimate, it.se, it.statistic, it.df, it.p, it.low, it.high] for it in self.coefficients
        ]
        random: list[list[Cell]] = [[f"{it.group}: {it.name}", it.sd, _join(it)] for it in self.random_effects]
        random += [["residual", self.residual_sd, ""]] if self.residual_sd is not None else []
        thresholds: list[list[Cell]] = [[it.name, it.estimate, it.se, it.low, it.high] for it in self.list_thresholds()]
        tables = [
            (header, rows),
            (["threshold", "estimate", "SE", "low", "high"], thresholds),
            (["random effect", "sd", "correlations"], random),
        ]
        return [(names, table) for names, table in tables if table]

    def describe_model(self) -> str:
        """Return the kind of model."""
        return f"{'Logistic' if self.family == 'binomial' else 'Linear'} mixed model ({self.method})"

    def describe(self) -> str:
        """Return the kind of model, its formula and its size in a few lines."""
        groups = {it.group: it.groups for it in self.random_effects}
        sizes = [f"{self.n:,} rows", ", ".join(f"{size:,} {group}" for group, size in groups.items())]
        lines = wrap(f"{self.describe_model()}: {self.formula}", WIDTH, subsequent_indent="  ")
        return "\n".join([*lines, "; ".join(size for size in sizes if size)])

    def list_notes(self) -> list[str]:
        """Return what has to stand beside the numbers: the names of the methods, and a singular fit."""
        notes = [f"Tests: {it.test}. Intervals: {it.interval}." for it in self.coefficients[:1]]
        name = "Restricted log-likelihood" if self.method == "REML" else "Log-likelihood"
        notes.append(f"{name} {self.log_likelihood:.6g}.")
        if self.is_singular:
            notes.append(
                "Singular fit: some random effect has no variance, or depends on others;\nsimplify the random part."
            )
        return notes


def _join(effect: RandomEffectSd) -> str:
    return " ".join("-" if value is None else f"{value:.2f}" for value in effect.correlations)
