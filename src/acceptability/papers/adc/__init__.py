"""The Acceptability Delta Criterion (Vázquez Martínez 2021): every table and figure, from the published scores.

This module assembles the cells and scores a user's own models; ``adc_tables`` computes the tables of the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import MeasureError
from acceptability.measures.correlation import Pearson, pearson
from acceptability.measures.delta import ADC
from acceptability.papers import Paper
from acceptability.papers.adc import adc_tables
from acceptability.papers.cells import Cell, read_published_values
from acceptability.protocols import Engine, Measure
from acceptability.types import Scores, Suite, Units


def cells(
    models: Sequence[str] = (), *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and the rows of a user's own models.

    Args:
        models: Models of the user's own, scored by their default reduction.
        engine: Where they run.
        progress: Called with the progress of scoring.
    """
    data, values = adc_tables.load_published_scores(), read_published_values("adc")
    all_cells = [
        *adc_tables.compute_text_numbers(data, values),
        *adc_tables.compute_table_1(data, values),
        *adc_tables.figure_1(data, values),
        *adc_tables.compute_example_sentences(data, values),
        *adc_tables.compute_table_4(data, values),
        *adc_tables.compute_table_5(values),
        *adc_tables.compute_feature_counts(),
        *adc_tables.appendix_e(data, values),
        *adc_tables.compute_printed_pairs(data, values),
        *adc_tables.figure_4(data, values),
    ]
    for model in models:
        all_cells += compute_user_model_cells(
            data.suite, score(data.suite, model, engine=engine, progress=progress), model
        )
    return all_cells


def compute_user_model_cells(suite: Suite, scores: Scores, model: str) -> Iterator[Cell]:
    """Yield the cells of a user's model under the paper's protocol; a number that is undefined has the reason as note.

    Args:
        suite: LI-Adger.
        scores: The model's scores of its sentences.
        model: The spec of the model, which names its rows.
    """
    # The criterion standardises scores over the suite's 4,178 sentences, as the paper does for its BERTs.
    measures: dict[str, Measure] = {"BLiMP": adc_tables.BLIMP_CRITERION}
    measures |= {f"ADC {delta}": ADC(delta=delta) for delta in adc_tables.DELTAS}
    cell_specs: list[tuple[str, str, str, Measure]] = [
        ("Table 1", model, name, measure) for name, measure in measures.items()
    ]
    cell_specs += [("Figure 1", "human", model, _GapCorrelation()), ("Figure 4", model, "sentences: r", Pearson())]
    for table, row, column, measure in cell_specs:
        ours, note = _compute_value(suite, scores, measure)
        yield Cell(table, row, column, None, ours, f"re-scored with {model}", None, note or scores.reduction)


def _compute_value(suite: Suite, scores: Scores, measure: Measure) -> tuple[float | None, str]:
    """Return the value of a measure and no note, or no value and the reason."""
    try:
        return measure.value(measure.units(suite, scores)), ""
    except MeasureError as error:
        return None, str(error)


class _GapCorrelation(ADC):
    """The correlation of a model's gaps with the human gaps, over the contrasts that the criterion counts."""

    def value(self, units: Units) -> float:
        """Return Pearson's r of the gaps."""
        return pearson(units["gap"], units["human_gap"])


PAPER = Paper(
    "Vázquez Martínez (2021), The Acceptability Delta Criterion: every table and figure.",
    cells,
    tables=(
        "Text",
        *(f"Table {number}" for number in range(1, 9)),
        *(f"Figure {number}" for number in range(1, 5)),
        "Figure 1, caption",
        "Appendix E",
    ),
)
