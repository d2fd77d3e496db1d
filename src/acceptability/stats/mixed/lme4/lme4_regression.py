"""`regress` by R's lme4, lmerTest or ordinal, for those who must cite them: Rscript runs in a process of its own.

The table is written to a temporary folder, R reads it, fits the model, and writes its numbers there. Settings are R's
defaults, except that lme4 searches with bobyqa, since its default, nloptwrap, can stop at a fit that is singular only
by its mistake (log-likelihood −1815.2 instead of −1805.8 for a table of our tests); and that glmer's inner search is
carried further, since by default its standard errors are off by up to 2 %. Names of coefficients are R's.
"""

from __future__ import annotations

import csv
import math
import re
import shutil
import subprocess  # nosec B404
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acceptability.errors import MeasureError, MissingExtra
from acceptability.stats.mixed.mixed_formula import build_model_data
from acceptability.stats.mixed.ordinal.ordinal_regression import LINK_BY_FAMILY, encode_outcome
from acceptability.stats.mixed.satterthwaite import T_SATTERTHWAITE, WALD_Z, t_quantile, two_sided_t
from acceptability.stats.mixed.summary_tables import FixedEffect, RandomEffectSd, RegressionSummary, Threshold

_SCRIPT = Path(__file__).with_name("fit_model.R")
# The exit status by which the script says that a package is missing.
_MISSING_PACKAGE = 3
# What a formula may call in R, where a formula is code like any other: functions of one column that both sides have.
_FUNCTIONS = {"C", "I", "abs", "exp", "log", "log10", "log2", "poly", "scale", "sqrt"}


@dataclass(frozen=True, eq=False, repr=False)
class Lme4Regression(RegressionSummary):
    """A mixed model fitted in R; its numbers, and the names of its coefficients, are R's.

    Args:
        thresholds: The thresholds of an ordinal model.
        rows: The number of rows.
        parameter_count: The number of parameters.
        engine: The packages and their versions: "lme4 1.1.31, lmerTest 3.1.3 (R 4.2.2, bobyqa)".
        warnings: What R said about the fit, such as that it did not converge.
    """

    thresholds: tuple[Threshold, ...]
    rows: int
    parameter_count: int
    engine: str
    warnings: tuple[str, ...]

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.rows

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return self.parameter_count

    def list_thresholds(self) -> tuple[Threshold, ...]:
        """Return the thresholds of an ordinal model."""
        return self.thresholds

    def to_dict(self) -> dict[str, Any]:
        """Return everything that is shown, with the packages and R's own warnings, as data for JSON."""
        return {**super().to_dict(), "engine": self.engine, "warnings": list(self.warnings)}

    def describe_model(self) -> str:
        """Return the kind of model and who fitted it."""
        kind = {"gaussian": "Linear", "binomial": "Logistic"}.get(self.family, "Ordinal")
        return f"{kind} mixed model by {self.engine}, {self.method}"

    def list_notes(self) -> list[str]:
        """Return what has to stand beside the numbers, R's own warnings included."""
        return [*super().list_notes(), *(f"R: {warning}" for warning in self.warnings)]


def regress_in_r(
    formula: str, frame: Any, *, family: str = "gaussian", reml: bool = True, level: float = 0.95
) -> Lme4Regression:
    """Fit a mixed model by a formula in R: linear by lmerTest, logistic by lme4, ordinal by ordinal.

    Args:
        formula: As for ``regress``.
        frame: A pandas data frame, or a mapping of columns.
        family: "gaussian", "binomial", "ordinal" or "ordinal-probit".
        reml: Restricted maximum likelihood for a linear model.
        level: The confidence level of the intervals, which are computed here from R's standard errors and degrees of
            freedom.

    Raises:
        MissingExtra: Rscript, or one of its packages, is not installed.
        MeasureError: R does not fit the model; its own message is quoted.
    """
    _check_functions(formula)
    method = LINK_BY_FAMILY.get(family, "REML" if reml else "ML")
    columns = _select_columns(formula, frame, family)
    with tempfile.TemporaryDirectory(prefix="acceptability-") as name:
        folder = Path(name)
        _write_request(folder, " ".join(formula.split()), columns)
        _run_rscript([str(_SCRIPT), str(folder), family, method])
        return _read_response(folder, " ".join(formula.split()), family, method, level)


def _check_functions(formula: str) -> None:
    """Raise MeasureError for a formula that calls any function but harmless ones, or holds other code."""
    called = set(re.findall(r"([\w.:]+)\s*\(", re.sub(r"\bcontr\.\w+", "", formula)))
    if unknown := sorted(called - _FUNCTIONS):
        raise MeasureError(
            f"the formula calls {unknown[0]}(), which is not passed on to R; compute such a column before the analysis"
        )
    if found := re.search(r"[;{}\\\"'@$\[\]]|::|<-|%", formula):
        raise MeasureError(f"the formula has {found.group()!r}, which is not passed on to R")


def _select_columns(formula: str, frame: Any, family: str) -> dict[str, Any]:
    """Return the columns that a formula names, after the same checks as for the other engine."""
    if family in LINK_BY_FAMILY:
        import pandas

        data, labels, codes = encode_outcome(formula, frame)
        levels = pandas.Categorical.from_codes(codes, labels, ordered=True)
        table = data.frame.assign(**{data.formula.outcome: levels})
    else:
        data = build_model_data(formula, frame)
        table = data.frame
    words = set(re.findall(r"[^\W\d][\w.]*|`[^`]+`", formula))
    return {str(name): table[name] for name in table.columns if words & {str(name), f"`{name}`"}}


def _write_request(folder: Path, formula: str, columns: Mapping[str, Any]) -> None:
    """Write the formula, the rows and the levels of factors."""
    (folder / "formula.txt").write_text(formula + "\n", encoding="utf-8")
    levels: dict[str, list[str]] = {}
    written: dict[str, Sequence[object]] = {}
    for name, column in columns.items():
        if column.dtype.kind in "iuf":
            written[name] = column.tolist()
            continue
        # Codes with a list of levels, so that no label is read as a number, and factors have the order of the table.
        categories = list(column.cat.categories) if hasattr(column, "cat") else sorted(set(column))
        used = [category for category in categories if (column == category).any()]
        levels[name] = [str(category) for category in used]
        code = {category: k for k, category in enumerate(used, start=1)}
        written[name] = [code[value] for value in column]
    _write_csv(folder / "rows.csv", list(written), zip(*written.values(), strict=True))
    pairs = [(name, level) for name, labels in levels.items() for level in labels]
    _write_csv(folder / "levels.csv", ["column", "level"], pairs)


def _write_csv(path: Path, header: Sequence[str], rows: Any) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC)
        writer.writerow(header)
        writer.writerows(rows)


def _read_csv(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [{key: value.strip() for key, value in row.items()} for row in csv.DictReader(file)]


def _run_rscript(arguments: Sequence[str]) -> None:
    """Run a script in R, or raise an error with R's own message."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        packages = "r-base r-cran-lme4 r-cran-lmertest r-cran-ordinal"
        raise MissingExtra("engine='lme4'", "R, whose Rscript was not found", packages, command="apt install")
    # --vanilla, so that no start-up file of the user's changes a number.
    process = subprocess.run(  # nosec B603
        [rscript, "--vanilla", *arguments], capture_output=True, text=True, encoding="utf-8", errors="replace"
    )
    if process.returncode == _MISSING_PACKAGE:
        names = process.stdout.partition("missing:")[2].split()
        packages = ", ".join(f"'{name}'" for name in names)
        call = f'"install.packages(c({packages}))"'
        raise MissingExtra("engine='lme4'", f"R's package {' and '.join(names)}", call, command="Rscript -e")
    if process.returncode:
        lines = [line.strip() for line in process.stderr.splitlines() if line.strip()]
        start = next((k for k, line in enumerate(lines) if line.startswith("Error")), max(len(lines) - 1, 0))
        message = " ".join(line for line in lines[start:] if not line.startswith(("Calls:", "Execution halted")))
        raise MeasureError(f"R did not fit the model: {message or 'no message'}")


def _read_response(folder: Path, formula: str, family: str, method: str, level: float) -> Lme4Regression:
    """Return what the script wrote."""
    model = {row["key"]: row["value"] for row in _read_csv(folder / "model.csv")}
    effects = [_build_effect(row, family, level) for row in _read_csv(folder / "coefficients.csv")]
    count = int(model["thresholds"])
    thresholds = [Threshold(it.name, it.estimate, it.se, it.low, it.high, it.interval) for it in effects[:count]]
    random = _read_csv(folder / "random.csv")
    if family != "gaussian":
        method = "Laplace" if random else "ML"
    return Lme4Regression(
        formula,
        family,
        tuple(effects[count:]),
        tuple(_build_sd(row) for row in random),
        float(model["residual_sd"]) if model["residual_sd"] else None,
        float(model["log_likelihood"]),
        method,
        model["is_singular"] == "TRUE",
        tuple(thresholds),
        int(model["rows"]),
        int(model["parameters"]),
        model["engine"],
        tuple(" ".join(row["note"].split()) for row in _read_csv(folder / "notes.csv")),
    )


def _build_effect(row: Mapping[str, str], family: str, level: float) -> FixedEffect:
    """Return a coefficient with the tests and intervals that follow from R's standard error and df."""
    estimate, se = float(row["estimate"]), float(row["se"])
    is_linear = family == "gaussian"
    df = float(row["df"]) if is_linear else math.inf
    reach = t_quantile(level, df) * se
    has_odds = family in ("binomial", "ordinal")
    return FixedEffect(
        row["term"],
        estimate,
        se,
        estimate / se,
        df if is_linear else None,
        two_sided_t(estimate / se, df),
        estimate - reach,
        estimate + reach,
        math.exp(estimate) if has_odds else None,
        T_SATTERTHWAITE if is_linear else WALD_Z,
        f"{level:.12g} Wald, t with Satterthwaite df" if is_linear else f"{level:.12g} Wald",
    )


def _build_sd(row: Mapping[str, str]) -> RandomEffectSd:
    correlations = [float(text) for text in row["correlations"].replace("NaN", "nan").split()]
    # R has no correlation where a standard deviation is 0.
    return RandomEffectSd(
        row["group"],
        row["term"],
        float(row["sd"]),
        tuple(None if np.isnan(value) else value for value in correlations),
        int(row["groups"]),
    )
