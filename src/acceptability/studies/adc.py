"""The Acceptability Delta Criterion (Vázquez Martínez 2021): every table and figure, from the published scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acceptability.errors import MeasureError
from acceptability.measures.correlation import Pearson, pearson
from acceptability.measures.delta import ADC
from acceptability.measures.pairs import PairAccuracy
from acceptability.protocols import Engine, Measure
from acceptability.scoring import Progress, score
from acceptability.studies import adc_classifiers, adc_examples, adc_scores, adc_tables
from acceptability.studies.cells import Cell, printed
from acceptability.types import Scores, Suite, Units


def cells(
    models: Sequence[str] = (), *, engine: str | Engine = "local", progress: Progress | None = None
) -> list[Cell]:
    """Return each number of the paper with ours beside it, and the rows of a user's own models.

    A user's model is scored by its default reduction, and standardised over the 4,178 sentences as the BERTs are.
    """
    data, values = adc_scores.load(), printed("adc")
    found = [
        *adc_tables.text(data, values),
        *adc_tables.table_1(data, values),
        *adc_tables.figure_1(data, values),
        *adc_examples.sentences(data, values),
        *adc_examples.table_4(data, values),
        *adc_classifiers.table_5(values),
        *adc_classifiers.features(),
        *adc_examples.appendix_e(data, values),
        *adc_examples.pairs(data, values),
        *adc_tables.figure_4(data, values),
    ]
    for model in models:
        found += _own(data.suite, score(data.suite, model, engine=engine, progress=progress), model)
    return found


def _own(suite: Suite, scores: Scores, model: str) -> Iterator[Cell]:
    """Yield a user's model under the paper's protocol; what is undefined for it says why."""
    measures: dict[str, Measure] = {"BLiMP": PairAccuracy()}
    measures |= {f"ADC {delta}": ADC(delta=delta) for delta in adc_tables.DELTAS}
    places: list[tuple[str, str, str, Measure]] = [("Table 1", model, name, each) for name, each in measures.items()]
    places += [("Figure 1", "human", model, _Gaps()), ("Figure 4", model, "sentences: r", Pearson())]
    for table, row, column, measure in places:
        ours, note = _value(suite, scores, measure)
        yield Cell(table, row, column, None, ours, f"re-scored with {model}", None, note or scores.reduction)


def _value(suite: Suite, scores: Scores, measure: Measure) -> tuple[float | None, str]:
    """Return a number, or why there is none."""
    try:
        return measure.value(measure.units(suite, scores)), ""
    except MeasureError as error:
        return None, str(error)


class _Gaps(ADC):
    """The correlation of a model's gaps with people's, over the rows of the criterion."""

    def value(self, units: Units) -> float:
        """Return Pearson's r of the gaps."""
        return pearson(units["gap"], units["human_gap"])
