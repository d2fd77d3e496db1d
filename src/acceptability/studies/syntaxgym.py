"""SyntaxGym (Hu, Gauthier, Qian, Wilcox and Levy 2020): which items models get right, suite by suite.

Published are the outcomes of items, not the surprisals that they come from: they stand in the
table as they are, and a user's models beside them. An item is right by the first prediction of its
suite. That is how the published outcomes must have been made: the second prediction of
``fgd_hierarchy`` asks for equal surprisals, which no neural model gives, and yet they have 15, 12 and
6 of its 24 items right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptability.errors import SuiteError
from acceptability.measures.predictions import Predictions
from acceptability.protocols import Engine
from acceptability.scoring import Progress, region_scores
from acceptability.studies.cells import Cell
from acceptability.studies.files import published
from acceptability.suites import entries, load_suite
from acceptability.suites.syntaxgym import circuit_of
from acceptability.text import dict_rows
from acceptability.types import Suite

Outcomes = dict[str, dict[str, bool]]
"""For each suite, whether each item is right, by the item's number."""

_PUBLISHED = "published outcomes"
_NOT_PUBLISHED = "surprisals are not published"


def published_outcomes() -> dict[str, Outcomes]:
    """Return the published outcomes of each model; items are numbered from 1, as in the suites."""
    found: dict[str, Outcomes] = {}
    for path, content in published("syntaxgym/published").items():
        for line, row in dict_rows(content, path):
            if row["correct"] not in ("True", "False"):
                raise SuiteError(f"{path}, line {line}: correct is {row['correct']!r}; expected True or False")
            suites = found.setdefault(row["model"].removesuffix("__0"), {})
            suites.setdefault(row["suite"], {})[str(int(row["item"]) + 1)] = row["correct"] == "True"
    return found


def outcomes(suite: Suite, model: str, *, engine: str | Engine = "local", progress: Progress | None = None) -> Outcomes:
    """Return which items a model gets right, by the first prediction of each suite."""
    scores = region_scores(suite, model, engine=engine, progress=progress)
    units = Predictions(per="first").units(suite, scores)
    found: Outcomes = {}
    for name, right in zip(units.ids, units["holds"].tolist(), strict=True):
        title, _, item = name.rpartition("/")
        found.setdefault(title, {})[item] = bool(right)
    return found


def cells(models: Sequence[str], *, engine: str | Engine = "local", progress: Progress | None = None) -> list[Cell]:
    """Return the share of right items for each suite, published and of the user's models, and the means of circuits."""
    theirs = published_outcomes()
    suite = load_suite("syntaxgym") if models else None
    ours = {each: outcomes(suite, each, engine=engine, progress=progress) for each in models} if suite else {}
    names = [entry.id.rpartition("/")[2] for entry in entries("syntaxgym")]
    found = [cell for name in names for cell in _suite_cells(name, theirs, ours)]
    groups: dict[str, list[str]] = {}
    for name in names:
        if circuit := circuit_of(name):
            groups.setdefault(circuit, []).append(name)
    groups["all suites"] = names
    return found + [cell for group, members in groups.items() for cell in _mean_cells(group, members, theirs, ours)]


def _suite_cells(name: str, theirs: Mapping[str, Outcomes], ours: Mapping[str, Outcomes]) -> list[Cell]:
    def cell(model: str, paper: str | None, value: float | None, source: str, note: str) -> Cell:
        return Cell("Items right, by suite", name, model, paper, value, source, None, note)

    found = [
        cell(model, f"{_share(each[name]):.4f}", None, _PUBLISHED, f"{_counted(each[name])}; {_NOT_PUBLISHED}")
        for model, each in theirs.items()
    ]
    for model, each in ours.items():
        same = ", ".join(f"{_agreeing(each[name], other[name])} {known}" for known, other in theirs.items())
        note = f"{_counted(each[name])}; items with the outcome of others: {same}"
        found.append(cell(model, None, _share(each[name]), f"re-scored with {model}", note))
    return found


def _mean_cells(
    group: str, names: Sequence[str], theirs: Mapping[str, Outcomes], ours: Mapping[str, Outcomes]
) -> list[Cell]:
    sources = dict.fromkeys(theirs, _PUBLISHED) | {model: f"re-scored with {model}" for model in ours}
    everyone = {**theirs, **ours}
    return [
        Cell(
            "Mean of suites, by circuit",
            group,
            model,
            None,
            sum(_share(everyone[model][name]) for name in names) / len(names),
            source,
            None,
            f"mean of {len(names)} suites",
        )
        for model, source in sources.items()
    ]


def _share(items: Mapping[str, bool]) -> float:
    return sum(items.values()) / len(items)


def _counted(items: Mapping[str, bool]) -> str:
    return f"{sum(items.values())} of {len(items)} items"


def _agreeing(first: Mapping[str, bool], second: Mapping[str, bool]) -> int:
    if first.keys() != second.keys():
        raise SuiteError("the published outcomes are of other items than those of the suite")
    return sum(right == second[item] for item, right in first.items())
