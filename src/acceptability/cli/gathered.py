"""Scores as commands take them that set several side by side: of models, of reductions, of files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from acceptability.cli.shown import progress_bar, read_columns
from acceptability.errors import MeasureError, SpellingError
from acceptability.measuring import needs_regions
from acceptability.models import load_model
from acceptability.protocols import Engine, Measure
from acceptability.scoring import scored
from acceptability.store.scorefile import read_scores
from acceptability.types import Scores, Suite

SomeModels = Annotated[
    list[str] | None, typer.Option("--model", "-m", help="A model: KIND:PLACE(option=value), or a name.")
]
ScoreFiles = Annotated[
    list[Path] | None,
    typer.Option("--scores", help="A file of scores in a model's place: sentence_id, score, perhaps model."),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option("--score-columns", help="Which columns of a score file hold what: id=…,score=…[,model=…]"),
]


@dataclass(frozen=True)
class Asked:
    """Whose scores are asked for."""

    models: Sequence[str]
    reductions: Sequence[str]
    files: Sequence[Path]
    columns: Sequence[str]
    engine: Engine
    region: str | None = None


def gathered(suite: Suite, asked: Asked, measures: Sequence[Measure], least: int) -> list[Scores]:
    """Return the scores of each model under each reduction, and then those of each file."""
    if asked.region and asked.files:
        raise SpellingError("--region is for models; the scores of a file are whatever they are of")
    if asked.reductions and not asked.models:
        raise SpellingError("--reduce is for models; the scores of a file are reduced already")
    if asked.columns and not asked.files:
        raise SpellingError("--score-columns tells how a file of scores is to be read: give --scores, or leave it away")
    reductions: list[str | None] = [*asked.reductions] or [None]
    if not asked.files and len(asked.models) * len(reductions) < least:
        raise _too_few(least)
    by_region = needs_regions(measures, asked.reductions, asked.region)
    for name in asked.models:
        load_model(name)
    columns = [read_columns(text) for text in asked.columns or [""]]
    read = [each for file in asked.files for each in read_scores(file, suite, columns)]
    with progress_bar() as progress:
        found = [
            each
            for name in asked.models
            for each in scored(
                suite,
                name,
                reductions,
                region=asked.region,
                by_region=by_region,
                engine=asked.engine,
                progress=progress,
            )
        ]
    if len(found) + len(read) < least:
        raise _too_few(least)
    return found + read


def _too_few(least: int) -> MeasureError:
    if least == 1:
        return MeasureError("whose scores? Give --model or --scores")
    return MeasureError(
        "a comparison needs two models, two reductions of one, or two files of scores: "
        "give --model, --reduce or --scores twice"
    )
