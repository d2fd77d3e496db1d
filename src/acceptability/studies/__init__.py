"""The papers' own tables, computed again: each number as printed, and ours beside it.

A study is a module with a function ``cells`` and a TOML file of the same name that holds what the paper
prints. What is printed stands beside our number and never takes its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Protocol

from acceptability import registry
from acceptability.errors import SpellingError
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.studies.cells import Cell

_USELESS = {
    "corpus": "measures nothing on text of yours",
    "restarts": "has no rows of restarts",
    "suite_i": "has no suite of yours",
    "suite": "takes no sentences of yours",
    "ratings": "has no rows of ratings",
}


class Study(Protocol):
    """What computes the numbers of a paper.

    One that measures models on text takes ``corpus`` too, one that reads folders of restarts ``restarts``.
    """

    def __call__(
        self, models: Sequence[str], *, engine: str | Engine, progress: Progress | None, **options: Any
    ) -> list[Cell]:
        """Return every number; models are those of the user, which join under the same protocol."""
        ...


def study(
    name: str,
    models: Sequence[str] = (),
    *,
    corpus: Sequence[str | Path] = (),
    restarts: Sequence[str | Path] = (),
    suite_i: str | Path | None = None,
    suite: str = "",
    ratings: str | Path = "",
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Cell]:
    """Return the numbers of a paper, recomputed, with those of a user's own models beside them.

    Args:
        corpus: Files and folders of text to measure the models on, for a study that does.
        restarts: Folders of classifiers that were taught from several seeds, for a study that has such rows.
        suite_i: A file of pairs in the place of a paper's first suite, for park.
        suite: A file of sentences in place of the published ones, for a study that takes it.
        ratings: A file of people's answers, for a study that has rows of them.
    """
    found: Study = registry.find("study", name)
    given = {"corpus": corpus, "restarts": restarts, "suite_i": suite_i, "suite": suite, "ratings": ratings}
    options = {name: each for name, each in given.items() if each}
    for option in options:
        if option not in signature(found).parameters:
            raise SpellingError(f"the study {name!r} {_USELESS[option]}: leave --{option.replace('_', '-')} away")
    return found(models, engine=engine, progress=progress, **options)
