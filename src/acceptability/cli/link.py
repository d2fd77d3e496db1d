"""``acceptability link``: the constants by which log-probabilities follow ratings best (MORCELA)."""

from __future__ import annotations

from typing import Annotated

import typer

from acceptability.cli.shown import (
    Json,
    Models,
    Seed,
    SuiteColumns,
    arguments,
    loaded_suite,
    print_json,
    print_rows,
    progress_bar,
    saved,
    talk,
)
from acceptability.linking import LINKS, fit_morcela, rated_folds
from acceptability.models import load_model
from acceptability.scoring import tokens
from acceptability.store.runs import save_run
from acceptability.unigrams import load_unigrams


def command(
    suite: str,
    model: Models,
    unigrams: Annotated[str, typer.Option("--unigrams", help="The unigram table: wordfreq:en, or a file.")],
    by: Annotated[str, typer.Option("--by", help="The tag whose sentences stay in one fold, such as item.")] = "",
    folds: Annotated[int, typer.Option("--folds", help="How many folds.")] = 10,
    seed: Seed = 0,
    columns: SuiteColumns = None,
    as_json: Json = False,
) -> None:
    """Fit MORCELA to ratings, and tell what it is worth on other sentences, beside SLOR and the log-probability."""
    loaded = loaded_suite(suite, columns)
    rated_folds(loaded, group=by, folds=folds, seed=seed)
    load_unigrams(unigrams)
    with progress_bar() as progress:
        said = {name: {each.id: told for each, told in tokens(loaded, name, progress=progress)} for name in model}
    found = {
        name: fit_morcela(loaded, each, unigrams, group=by, folds=folds, seed=seed, model=load_model(name).signature)
        for name, each in said.items()
    }
    rows: list[dict[str, object]] = [
        {
            "model": name,
            "beta": each.reduction.beta,
            "gamma": each.reduction.gamma,
            **{link: each.correlations[link] for link in LINKS},
            "n": each.n,
            "reduction": repr(each.reduction),
            "signature": each.signature,
        }
        for name, each in found.items()
    ]
    if as_json:
        print_json(rows)
    else:
        header = ["model", "beta", "gamma", *LINKS, "n"]
        print_rows(header, [{name: _shown(row[name]) for name in header} for row in rows])
        talk(f"{', '.join(LINKS)}: correlation with ratings of sentences not fitted to, mean of {folds} folds")
        for each in found.values():
            for line in (*each.notes, f'score other suites with --reduce "{each.reduction!r}"', each.signature):
                talk(line)
    saved(save_run("link", arguments(), rows, [], [each.signature for each in found.values()]))


def _shown(cell: object) -> object:
    return f"{cell:.4f}" if isinstance(cell, float) else cell
