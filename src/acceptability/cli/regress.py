"""``acceptability regress``: a mixed model by a formula, over a table or over the rows of a saved run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from acceptability.cli.console import JsonOption, print_data, print_json, read_where
from acceptability.errors import SpecError
from acceptability.stats import estimate_intervals, estimate_means, regress
from acceptability.stats.mixed.satterthwaite import format_term_tests
from acceptability.store.run_tables import read_run_table


def command(
    source: Annotated[
        str,
        typer.Argument(
            metavar="RUN|TABLE",
            help="A saved run (an id, latest, or its folder), or a CSV, TSV, JSONL or Parquet file.",
        ),
    ],
    formula: Annotated[
        str,
        typer.Option(
            "--formula",
            "-f",
            help="The model, with random effects in parentheses: 'correct ~ model + (1 + model | phenomenon) + "
            "(1 | item)'. A run has the columns model, unit, those of its measure, and its tags.",
        ),
    ],
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
    columns = read_run_table(source, read_where(where))
    if engine != "acceptability":
        if means or interval != "wald":
            raise SpecError(f"--engine {engine} has neither --means nor --interval; leave them out")
        fitted = regress(formula, columns, family=family, reml=not ml, level=level, engine=engine)
        print_json(fitted.to_dict()) if as_json else print_data(f"{fitted}\n")
        return
    result = regress(formula, columns, family=family, reml=not ml, level=level)
    terms = result.test_terms()
    averages = estimate_means(result, means, correction=correction, level=level) if means else None
    ends = (
        None if interval == "wald" else estimate_intervals(result, method=interval, level=level, draws=draws, seed=seed)
    )
    if as_json:
        content: dict[str, Any] = {**result.to_dict(), "terms": [asdict(test) for test in terms]}
        content["means"] = averages and [asdict(mean) for mean in (*averages.means, *averages.contrasts)]
        content["intervals"] = ends and [asdict(one) for one in ends.intervals]
        print_json(content)
        return
    parts = [str(result), format_term_tests(terms), averages, ends]
    print_data("\n\n".join(str(part) for part in parts if part) + "\n")
