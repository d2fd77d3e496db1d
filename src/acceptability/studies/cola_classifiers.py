"""Classifiers on CoLA: Tables 4 and 6 and Figure 4, and Table 5 and Figures 2 and 3 of the ADC paper.

Warstadt, Singh and Bowman (2019); Vázquez Martínez (2021), appendix D, after Warstadt and Bowman (2019). The papers
measure on the test sets, whose labels are not public; ours are on the development sets, which had no say in tuning,
stopping or the choice of a run. So they stand beside the papers' numbers, and are compared with none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from acceptability.signature import fingerprint
from acceptability.studies.cells import Cell, Key, Printed, beside, not_compared, printed
from acceptability.studies.cola_corpus import FEATURES, TARGETED, features_of, having
from acceptability.studies.cola_groups import Group
from acceptability.studies.cola_judging import CHOSEN, DOMAINS, both_domains, over_runs
from acceptability.studies.cola_rows import Taught, adc_row_of, row_of
from acceptability.studies.niu_penn_models import Asked
from acceptability.suites import load_suite
from acceptability.train.classifiers.examples import Examples
from acceptability.types import Scores, Sentence, Suite

Values = Mapping[Key, Printed]

ADC_TABLE = "ADC paper, Table 5"
_ADC_FIGURES = {"major": "ADC paper, Figure 2", "minor": "ADC paper, Figure 3"}
_DEV = (
    "development sets, chosen by a tenth held out of the training set; the paper: test sets, chosen on development sets"
)
_MEAN = "development sets; the paper: test sets"
_LOG_ODDS = "log_odds"


@dataclass(frozen=True)
class Judges:
    """The restarts of a classifier, or a single one, and what they say.

    Args:
        name: What their rows are called.
        models: Their spellings.
        taught: What is told of the first one, where it was taught here.
        chosen: Which of them held-out sentences chose.
    """

    name: str
    models: tuple[Asked, ...]
    taught: Taught | None = None
    chosen: int | None = None

    def scores(self, suite: Suite) -> list[Scores]:
        """Return the log-odds of each."""
        return [each.scores(suite, {_LOG_ODDS: _LOG_ODDS})[_LOG_ODDS] for each in self.models]

    @cached_property
    def on_analysis(self) -> list[Scores]:
        """What they say of the analysis set."""
        return self.scores(load_suite("cola/analysis"))

    @property
    def source(self) -> str:
        """Who they are."""
        if len(self.models) == 1:
            return f"re-scored with {self.models[0].model}"
        return f"re-scored with {len(self.models)} restarts in {self.name}"

    @cached_property
    def caution(self) -> str:
        """A word where they learnt from other labelled sentences than those of CoLA's training set."""
        if self.taught is None or self.taught.kind == "real-fake":
            return ""
        usual = Examples(load_suite("cola/train").sentences).hash
        other = f"taught on other sentences than CoLA's training set (data {self.taught.data or 'not told'})"
        return "" if self.taught.data == usual else other

    def signature(self, scores: Sequence[Scores]) -> str:
        """Return the signature of one model, or a fingerprint of those of all restarts."""
        if len(scores) == 1:
            return scores[0].signature
        return f"restarts:{len(scores)}#{fingerprint(each.signature.encode() for each in scores)}.{scores[0].reduction}"


def of_group(group: Group, like: Asked) -> Judges:
    """Return the classifiers of a group, to be run as another model is."""
    models = tuple(Asked(each.spelling, like.engine, like.progress) for each in group.runs)
    return Judges(group.name, models, group.runs[0], group.chosen)


def asked_suites() -> tuple[Suite, ...]:
    """Return all suites that a classifier in the tables is asked."""
    return tuple(map(load_suite, (*DOMAINS.values(), *TARGETED.values(), "cola/analysis")))


def classifier_cells(judges: Judges, values: Values) -> list[Cell]:
    """Return the rows of a classifier or of its restarts in every table and figure."""
    own = [*_table_4(judges), *_table_6(judges)]
    return [*_in_paper(judges, values, own), *own, *_figure_4(judges), *_adc_table_5(judges), *_adc_figures(judges)]


def _table_4(judges: Judges) -> Iterator[Cell]:
    for title, place in DOMAINS.items():
        suite = load_suite(place)
        yield from _rows(
            judges, "Table 4", suite, judges.scores(suite), {"Acc.": f"{title} Acc.", "MCC": f"{title} MCC"}
        )


def _table_6(judges: Judges) -> Iterator[Cell]:
    for column, place in TARGETED.items():
        suite = load_suite(place)
        yield from _rows(judges, "Table 6", suite, judges.scores(suite), {"MCC": column})


def _rows(
    judges: Judges, table: str, suite: Suite, scores: Sequence[Scores], columns: Mapping[str, str]
) -> Iterator[Cell]:
    signature = judges.signature(scores)
    for statistic, measure, (value, note) in over_runs(suite.sentences, scores, judges.chosen):
        if measure in columns:
            row = f"{judges.name}, {statistic}" if statistic else judges.name
            said = "; ".join(filter(None, (note, judges.caution, signature)))
            yield beside({}, (table, row, columns[measure]), value, judges.source, note=said)


def _in_paper(judges: Judges, values: Values, own: Sequence[Cell]) -> Iterator[Cell]:
    """Yield the numbers of the chosen run in the paper's row for a classifier of the same kind."""
    row = row_of(judges.taught) if judges.taught else None
    if row is None or judges.taught is None:
        return
    wanted = judges.name if len(judges.models) == 1 else f"{judges.name}, {CHOSEN}"
    about = ", ".join(filter(None, (judges.taught.about, judges.taught.inputs)))
    source = f"{judges.name}, our {about}: {_DEV}"
    for cell in own:
        key = cell.table, row, cell.column
        if cell.row == wanted and key in values:
            yield not_compared(values, key, cell.ours, source, note=cell.note)


def _figure_4(judges: Judges) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    yield from _by_feature(judges, "Figure 4", "every sentence", sentences)
    for name in FEATURES:
        yield from _by_feature(judges, "Figure 4", name, having(sentences, "major", name))


def _adc_figures(judges: Judges) -> Iterator[Cell]:
    sentences = load_suite("cola/analysis").sentences
    for grain, figure in _ADC_FIGURES.items():
        for name in features_of(sentences, grain):
            yield from _by_feature(judges, figure, name, having(sentences, grain, name))


def _by_feature(judges: Judges, figure: str, name: str, sentences: Sequence[Sentence]) -> Iterator[Cell]:
    """Yield the MCC on the sentences that have a feature, a row for each statistic."""
    told = f"{len(sentences)} sentences of the analysis set"
    signature = judges.signature(judges.on_analysis)
    for statistic, measure, (value, note) in over_runs(sentences, judges.on_analysis, judges.chosen):
        if measure == "MCC":
            column = f"MCC, {statistic}" if statistic else "MCC"
            said = "; ".join(filter(None, (told, note, signature)))
            yield beside({}, (figure, f"{judges.name}: {name}", column), value, judges.source, note=said)


def _adc_table_5(judges: Judges) -> Iterator[Cell]:
    """Yield mean, deviation, maximum and ensemble over both development sets, also in the row of the same kind."""
    values = adc_values()
    suite = both_domains()
    scores = judges.scores(suite)
    row = adc_row_of(judges.taught) if judges.taught else None
    signature = judges.signature(scores)
    for statistic, measure, (value, note) in over_runs(suite.sentences, scores, judges.chosen):
        if measure == "MCC":
            said = "; ".join(filter(None, (note, signature)))
            column = statistic or "MCC"
            yield beside({}, (ADC_TABLE, judges.name, column), value, judges.source, note=said)
            if row and (ADC_TABLE, row, column) in values:
                source = f"{judges.name}: both {_MEAN}"
                yield not_compared(values, (ADC_TABLE, row, column), value, source, note=said)


def adc_values() -> dict[Key, Printed]:
    """Return what the ADC paper prints in its Table 5."""
    return {(ADC_TABLE, *key[1:]): each for key, each in printed("adc").items() if key[0] == "Table 5"}
