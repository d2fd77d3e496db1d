"""SyntaxGym (Hu, Gauthier, Qian, Wilcox and Levy 2020): which items models get right, suite by suite.

The outcomes of items are published, but not the surprisals behind them. They are shown as they are, with a user's
models beside them. An item counts as right if the first prediction of its suite holds. That must be how the published
outcomes were computed: the second prediction of ``fgd_hierarchy`` requires equal surprisals, which no neural model
gives, and yet 15, 12 and 6 of its 24 items are published as right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acceptability.api.scoring import ProgressCallback, region_scores
from acceptability.errors import SuiteError
from acceptability.measures.predictions import Predictions
from acceptability.papers import Paper
from acceptability.papers.cells import Cell, read_published_files
from acceptability.protocols import Engine
from acceptability.suites import find_entries, load_suite
from acceptability.suites.readers.regions import find_circuit
from acceptability.text.io import read_dict_rows
from acceptability.types import Suite

SuiteOutcomes = dict[str, dict[str, bool]]
"""For each suite, whether each item is right, by the item's number."""

_PUBLISHED_SOURCE = "published outcomes"
_UNPUBLISHED_NOTE = "surprisals are not published"
_BY_SUITE, _BY_CIRCUIT = "Items right, by suite", "Mean of suites, by circuit"


def read_published_outcomes() -> dict[str, SuiteOutcomes]:
    """Return the published outcomes by model; items are numbered from 1, as in the suites."""
    outcomes_by_model: dict[str, SuiteOutcomes] = {}
    for path, content in read_published_files("syntaxgym/published").items():
        for line, row in read_dict_rows(content, path):
            if row["correct"] not in ("True", "False"):
                raise SuiteError(f"{path}, line {line}: correct is {row['correct']!r}; expected True or False")
            # The file writes a model's name with "__0" after it, and counts items from 0; the suites count from 1.
            suites = outcomes_by_model.setdefault(row["model"].removesuffix("__0"), {})
            suites.setdefault(row["suite"], {})[str(int(row["item"]) + 1)] = row["correct"] == "True"
    return outcomes_by_model


def compute_outcomes(
    suite: Suite, model: str, *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> SuiteOutcomes:
    """Return which items a model gets right, by the first prediction of each suite.

    Args:
        suite: One suite of SyntaxGym, or all of them together.
        model: The spec of a language model.
        engine: Where the model runs.
        progress: Called with the progress of scoring.
    """
    scores = region_scores(suite, model, engine=engine, progress=progress)
    units = Predictions(per="first").units(suite, scores)
    outcomes: SuiteOutcomes = {}
    for name, is_correct in zip(units.ids, units["holds"].tolist(), strict=True):
        title, _, item = name.rpartition("/")
        outcomes.setdefault(title, {})[item] = bool(is_correct)
    return outcomes


def cells(
    models: Sequence[str], *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> list[Cell]:
    """Return the share of correct items by suite, of published and the user's models, and the means by circuit.

    Args:
        models: Language models of the user's own.
        engine: Where they run.
        progress: Called with the progress of scoring.
    """
    published_by_model = read_published_outcomes()
    # All suites are scored together, so that a model is loaded once and sentences are batched across suites.
    suite = load_suite("syntaxgym") if models else None
    ours = (
        {model: compute_outcomes(suite, model, engine=engine, progress=progress) for model in models} if suite else {}
    )
    names = [entry.id.rpartition("/")[2] for entry in find_entries("syntaxgym")]
    all_cells = [cell for name in names for cell in _compute_suite_cells(name, published_by_model, ours)]
    groups: dict[str, list[str]] = {}
    for name in names:
        if circuit := find_circuit(name):
            groups.setdefault(circuit, []).append(name)
    # One suite, nn-nv-rpl, belongs to no circuit and counts only here.
    groups["all suites"] = names
    return all_cells + [
        cell
        for group, members in groups.items()
        for cell in _compute_mean_cells(group, members, published_by_model, ours)
    ]


def _compute_suite_cells(
    name: str, theirs: Mapping[str, SuiteOutcomes], ours: Mapping[str, SuiteOutcomes]
) -> list[Cell]:
    def make_cell(model: str, paper: str | None, value: float | None, source: str, note: str) -> Cell:
        return Cell(_BY_SUITE, name, model, paper, value, source, None, note)

    # The published shares are printed values in this table, and not ours: there is nothing to recompute them from.
    suite_cells = [
        make_cell(
            model,
            f"{_compute_share(outcomes[name]):.4f}",
            None,
            _PUBLISHED_SOURCE,
            f"{_format_count(outcomes[name])}; {_UNPUBLISHED_NOTE}",
        )
        for model, outcomes in theirs.items()
    ]
    for model, outcomes in ours.items():
        # Two models can have the same share and be right on different items, which the share alone would hide.
        agreeing = ", ".join(
            f"{_count_agreeing(outcomes[name], other[name])} {known}" for known, other in theirs.items()
        )
        note = f"{_format_count(outcomes[name])}; items with the outcome of others: {agreeing}"
        suite_cells.append(make_cell(model, None, _compute_share(outcomes[name]), f"re-scored with {model}", note))
    return suite_cells


def _compute_mean_cells(
    group: str, names: Sequence[str], theirs: Mapping[str, SuiteOutcomes], ours: Mapping[str, SuiteOutcomes]
) -> list[Cell]:
    sources = dict.fromkeys(theirs, _PUBLISHED_SOURCE) | {model: f"re-scored with {model}" for model in ours}
    all_outcomes = {**theirs, **ours}
    return [
        Cell(
            _BY_CIRCUIT,
            group,
            model,
            None,
            sum(_compute_share(all_outcomes[model][name]) for name in names) / len(names),
            source,
            None,
            f"mean of {len(names)} suites",
        )
        for model, source in sources.items()
    ]


def _compute_share(items: Mapping[str, bool]) -> float:
    return sum(items.values()) / len(items)


def _format_count(items: Mapping[str, bool]) -> str:
    return f"{sum(items.values())} of {len(items)} items"


def _count_agreeing(first: Mapping[str, bool], second: Mapping[str, bool]) -> int:
    # Items are matched by number, so that a suite with other items would be compared without any sense.
    if first.keys() != second.keys():
        raise SuiteError("the published outcomes are of other items than those of the suite")
    return sum(right == second[item] for item, right in first.items())


PAPER = Paper(
    "Hu et al. (2020), SyntaxGym: the share of correct items in each suite and circuit.",
    cells,
    tables=(_BY_SUITE, _BY_CIRCUIT),
)
