"""``acceptability regress``: a mixed model by a formula or a design, over a table or the rows of a saved run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from acceptability import __version__
from acceptability.cli.console import JsonOption, print_data, print_json, print_message, read_columns, read_where
from acceptability.errors import SpecError
from acceptability.specs import build_signature, format_spec
from acceptability.stats import estimate_intervals, estimate_means, regress
from acceptability.stats.designs import DesignFit, fit_design
from acceptability.stats.mixed.mixed_intervals import ParameterIntervals
from acceptability.stats.mixed.mixed_regression import MixedRegression
from acceptability.stats.mixed.satterthwaite import format_term_tests
from acceptability.store.run_tables import read_run_table, rename_columns, sign_run_table


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TABLE",
            help="A saved run (an id, latest, or its folder), or a CSV, TSV, JSONL or Parquet file.",
        ),
    ],
    formula: Annotated[
        str | None,
        typer.Option(
            "--formula",
            "-f",
            help="The model, with random effects in parentheses: 'correct ~ model + (1 + model | phenomenon) + "
            "(1 | item)'. A run has the columns model, unit, those of its measure, and its tags.",
        ),
    ] = None,
    design: Annotated[
        str | None,
        typer.Option(
            "--design",
            help="Instead of a formula, a ready-made design with its test: models, seeds, ratings, reading-times or "
            "learning-curve.",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option("--columns", help="The names of columns in the table: item=word_id,rt=RT makes RT the rt."),
    ] = None,
    family: Annotated[
        str,
        typer.Option("--family", help="gaussian (linear), binomial (logistic, for 0 and 1), ordinal, ordinal-probit."),
    ] = "gaussian",
    ml: Annotated[
        bool, typer.Option("--ml", help="Maximum likelihood instead of REML, to compare different fixed effects.")
    ] = False,
    level: Annotated[float, typer.Option("--level", help="The confidence level of the intervals.")] = 0.95,
    means: Annotated[
        str | None,
        typer.Option("--means", help="Also print the marginal means of this factor, and the differences of all pairs."),
    ] = None,
    correction: Annotated[
        str, typer.Option("--correction", help="The correction for all pairs of --means: tukey, holm or none.")
    ] = "tukey",
    interval: Annotated[
        str, typer.Option("--interval", help="The kind of intervals: wald, profile or bootstrap (parametric).")
    ] = "wald",
    draws: Annotated[int, typer.Option("--draws", help="The number of draws of the parametric bootstrap.")] = 1000,
    seed: Annotated[int, typer.Option("--seed", help="The seed of the bootstrap.")] = 0,
    where: Annotated[
        list[str] | None,
        typer.Option("--where", help="Only the rows with this value of a column: COLUMN=VALUE. Repeatable."),
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="acceptability, or lme4: fit in R by lmerTest, lme4 or ordinal, if installed."),
    ] = "acceptability",
    as_json: JsonOption = False,
) -> None:
    """Fit a mixed model: how an outcome depends on predictors where rows share items, paradigms or people."""
    if interval not in ("wald", "profile", "bootstrap"):
        raise SpecError(f"--interval is {interval!r}; expected wald, profile or bootstrap")
    if (formula is None) == (design is None):
        raise SpecError("give either --formula or --design")
    table = rename_columns(read_run_table(source, read_where(where)), read_columns(columns))
    if engine != "acceptability":
        if design or means or interval != "wald":
            raise SpecError(f"--engine {engine} has neither --design, --means nor --interval; leave them out")
        external = regress(formula or "", table, family=family, reml=not ml, level=level, engine=engine)
        print_json(external.to_dict()) if as_json else print_data(f"{external}\n")
        return
    fitted = fit_design(design, table, draws=draws * (interval == "bootstrap"), seed=seed) if design else None
    result = fitted.model if fitted else regress(formula or "", table, family=family, reml=not ml, level=level)
    terms = result.test_terms()
    averages = estimate_means(result, means, correction=correction, level=level) if means else None
    ends = (
        None if interval == "wald" else estimate_intervals(result, method=interval, level=level, draws=draws, seed=seed)
    )
    signature = build_signature(
        format_spec("regress", {"formula": result.formula, "family": result.family, "design": design or ""}),
        {
            "data": sign_run_table(source),
            **({"where": ",".join(where)} if where else {}),
            **({"columns": columns} if columns else {}),
            "n": str(result.n),
            **_sign_methods(result, ends, fitted),
            "acceptability": __version__,
        },
    )
    if as_json:
        content: dict[str, Any] = {**result.to_dict(), "terms": [asdict(test) for test in terms]}
        content["means"] = averages and [asdict(mean) for mean in (*averages.means, *averages.contrasts)]
        content["intervals"] = ends and [asdict(one) for one in ends.intervals]
        content["design"] = fitted and fitted.to_dict()
        content["signature"] = signature
        print_json(content)
        return
    parts = [str(result), format_term_tests(terms), averages, ends, fitted and fitted.describe()]
    print_data("\n\n".join(str(part) for part in parts if part) + "\n")
    print_message(signature)


def _sign_methods(result: MixedRegression, ends: ParameterIntervals | None, fitted: DesignFit | None) -> dict[str, str]:
    """Return the names of the estimator, the tests and the intervals, for the signature."""
    first = result.coefficients[0]
    test = fitted and fitted.comparison and fitted.comparison.test
    return {
        "method": result.method,
        "test": first.test + (f" and {test}" if test else ""),
        "ci": first.interval + (f" and {ends.intervals[0].method}" if ends else ""),
    }
