"""Table 5 and Figures 2 and 3 of Vázquez Martínez (2021): classifiers on CoLA, as far as published files go."""

from __future__ import annotations

from collections.abc import Iterator

from acceptability.studies.adc_tables import Values
from acceptability.studies.cells import Cell
from acceptability.suites import load_suite

_MISSING = "needs the predictions of 50 fine-tuned BERTs for CoLA's sentences, which are not published"
_REASONS = {
    "Human": "people's own rows are computed by `acceptability study humans`, from CoLA's 200 sentences",
    "W&B": "quoted from Warstadt and Bowman (2019); their predictions are not published",
    "Devlin": "quoted from the GLUE leaderboard; its predictions are not published",
}
_FIGURES = {"major": "Figure 2", "minor": "Figure 3"}


def table_5(values: Values) -> Iterator[Cell]:
    """Yield the printed MCCs, none of which the published files determine."""
    for (table, row, column), each in values.items():
        if table == "Table 5":
            reason = next((_REASONS[name] for name in _REASONS if name in row), _MISSING)
            yield Cell(table, row, column, each.value, None, "nothing published", None, reason)


def features() -> Iterator[Cell]:
    """Yield how many sentences of the analysis set have each feature: the rows behind Figures 2 and 3."""
    sentences = load_suite("cola/analysis").sentences
    for grain, figure in _FIGURES.items():
        yield Cell(figure, "every feature", "MCC", None, None, "nothing published", None, _MISSING)
        for tag in (name for name in sentences[0].tags if name.startswith(f"{grain}/")):
            having = [each for each in sentences if each.tags[tag] == "1"]
            acceptable = sum(each.label == 1 for each in having)
            row = tag.partition("/")[2]
            for column, count in (("sentences", len(having)), ("acceptable", acceptable)):
                yield Cell(figure, row, column, None, count, "CoLA analysis set", None)
