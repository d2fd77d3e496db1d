"""The Acceptability Delta Criterion (Vázquez Martínez 2021): every table and figure, from the published scores.

The scores are those of six BERTs and a trigram model on LI-Adger. Each function yields the cells of one table or figure
(or of those that belong together), in the order of the paper. Tables 5 and Figures 2 and 3 are of classifiers on CoLA
whose predictions are not published, so that only the printed values and the counts behind the figures can be shown.
Tables 4 and 6 to 8 print example pairs: a table is a question about the scores, and every printed pair is looked up in
the answer. A user's own models are scored and join with rows of their own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from acceptability.api.comparison import DiscordantContrast, find_discordant_contrasts
from acceptability.api.scoring import ProgressCallback, score
from acceptability.errors import MeasureError, ScoreError
from acceptability.measures.correlation import Pearson, pearson
from acceptability.measures.delta import ADC
from acceptability.measures.pairs import PairAccuracy
from acceptability.measures.rows import standardise_scores
from acceptability.papers import Paper
from acceptability.papers.cells import (
    Cell,
    PublishedValue,
    PublishedValues,
    make_cell,
    read_published_files,
    read_published_values,
)
from acceptability.protocols import Engine, Measure
from acceptability.suites import load_suite
from acceptability.text.io import read_dict_rows
from acceptability.types import Floats, Scores, Sentence, Suite, Units

SOURCE = "published scores"
SIZES = ("base-uncased", "large-uncased", "large-cased")
COLA = tuple(f"BERT {size} CoLA" for size in SIZES)
MLM = tuple(f"BERT {size} MLM" for size in SIZES)
SLOR, LOGPROB = "trigram SLOR", "trigram log-prob"

_SENTENCES = "output/bert_{}_results_li-adger_sentences.csv"
_PAIRS = "output/li-adger_min_pairs_all_models.csv"


@dataclass(frozen=True, eq=False)
class PublishedModel:
    """One of the paper's models: its scores, and whether they are z-scores already."""

    scores: Scores
    is_standardised: bool

    def make_adc(self, delta: float) -> ADC:
        """Return the criterion, which standardises the scores of this model unless they are z-scores already."""
        return ADC(delta=delta, standardise=not self.is_standardised)


@dataclass(frozen=True, eq=False)
class LiAdgerScores:
    """LI-Adger, and the scores of each of the paper's models for it."""

    suite: Suite
    models: Mapping[str, PublishedModel]
    published_gaps: Mapping[str, Floats]
    """The human gaps and those of each model, from the paper's own file of pairs."""

    def z_scores(self, name: str) -> Mapping[str, float]:
        """Return the z-scores of a model, by sentence."""
        model = self.models[name]
        return model.scores.values if model.is_standardised else standardise_scores(self.suite, model.scores)

    def compute_gaps(self) -> dict[str, Floats]:
        """Return the human gaps and those of each model, in z units, computed from ratings and scores of sentences."""
        # Gaps do not depend on delta; any value gives the same rows.
        units = {name: model.make_adc(5).units(self.suite, model.scores) for name, model in self.models.items()}
        # Human gaps depend on the ratings alone, so that those of any model serve.
        human = next(iter(units.values()))["human_gap"]
        return {"human": human} | {name: unit["gap"] for name, unit in units.items()}


def load_published_scores() -> LiAdgerScores:
    """Return the suite and the published scores, models in the order of the paper's Table 1."""
    files = read_published_files("li_adger/published")
    models = {
        name: model
        for kind, names in (("mlm", MLM), ("acc", COLA))
        for name, model in _read_bert_scores(files, kind, names)
    }
    # The z-scores of the trigram were computed over sentences that are not published, and cannot be computed again.
    models |= {
        SLOR: PublishedModel(_read_trigram_scores(files[_PAIRS], "slor"), True),
        LOGPROB: PublishedModel(_read_trigram_scores(files[_PAIRS], "logProb"), True),
    }
    return LiAdgerScores(load_suite("li_adger"), models, _read_gaps(files[_PAIRS]))


def _read_bert_scores(
    files: Mapping[str, bytes], kind: str, names: tuple[str, ...]
) -> Iterator[tuple[str, PublishedModel]]:
    path = _SENTENCES.format(kind)
    rows = [row for _, row in read_dict_rows(files[path], path)]
    for size, name in zip(SIZES, names, strict=True):
        column = f"bert-{size}_{kind}"
        yield name, PublishedModel(Scores({row["id"]: float(row[column]) for row in rows}, column), False)


def _read_gaps(content: bytes) -> dict[str, Floats]:
    """Return the gaps in the file that has a row for each pair, without the two pairs that were not rated."""
    columns = {"human": "human_judge_delta", SLOR: "slor_zscore-delta", LOGPROB: "logProb_zscore-delta"}
    for kind, names in (("mlm", MLM), ("acc", COLA)):
        columns |= {name: f"bert-{size}_{kind}_zscore-delta" for size, name in zip(SIZES, names, strict=True)}
    rows = [row for _, row in read_dict_rows(content, _PAIRS) if row[columns["human"]]]
    return {name: np.array([float(row[column]) for row in rows]) for name, column in columns.items()}


def _read_trigram_scores(content: bytes, column: str) -> Scores:
    """Return the z-scores of the trigram model, from the file with a row for each pair."""
    values: dict[str, float] = {}
    for line, row in read_dict_rows(content, _PAIRS):
        for member in ("gramm", "ungramm"):
            cell = row[f"{column}_zscores_{member}"]
            # Empty for the sentences of the two pairs that were not rated.
            if not cell:
                continue
            score = float(cell)
            # A sentence has a row for each of its pairs; if two disagreed, the file would have been misread.
            if values.setdefault(row[f"{member}_id"], score) != score:
                raise ScoreError(f"{_PAIRS}, line {line}: {row[f'{member}_id']!r} has another score in an earlier line")
    return Scores(values, column)


# Its tie rule is spelled out: the paper's tables must not change with the default of the measure.
BLIMP_CRITERION = PairAccuracy(ties=0.0)
"""The criterion that the paper compares its own with: the better sentence has to score strictly higher."""

DELTAS = (0.5, 1.0, 5.0)
_FIGURE_1_NAMES = ("human", *COLA, *MLM, SLOR, LOGPROB)
_HEAT_MAP_ORIGIN = (
    "from the gaps in the paper's published file of pairs, in the digits of a heat map; not read off the image"
)


def count_correct(data: LiAdgerScores, name: str) -> dict[str, int]:
    """Return how many contrasts a model gets right under each criterion of Table 1."""
    model = data.models[name]
    correct_flags = {"BLiMP": BLIMP_CRITERION.units(data.suite, model.scores)["correct"]}
    # The criterion compares z-scores, pair accuracy only the sign of a difference, which no scaling changes.
    correct_flags |= {f"ADC {delta}": model.make_adc(delta).units(data.suite, model.scores)["met"] for delta in DELTAS}
    return {column: int(flags.sum()) for column, flags in correct_flags.items()}


def compute_table_1(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the share of contrasts that each model gets right under each criterion."""
    total = len(data.suite.contrasts)
    for name in data.models:
        for column, n_correct in count_correct(data, name).items():
            yield make_cell(
                values, ("Table 1", name, column), n_correct / total, SOURCE, note=f"{n_correct} of {total}"
            )


def figure_1(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the correlations between the gaps of humans and models, and the largest p among them.

    Ours are computed from ratings and scores of sentences. The figure is an image. Where no note reports the value that
    it prints, ours are compared with the correlations of the paper's own published gaps, in the two digits of its heat
    map.
    """
    gaps = data.compute_gaps()
    # All 81 cells, although the matrix is symmetric: the heat map prints both halves.
    for row, column in product(_FIGURE_1_NAMES, repeat=2):
        published = PublishedValue(
            f"{pearson(data.published_gaps[row], data.published_gaps[column]):.2g}", origin=_HEAT_MAP_ORIGIN
        )
        # Values from the notes come last in the union, so that they win over the computed ones.
        key = "Figure 1", row, column
        yield make_cell({key: published, **values}, key, pearson(gaps[row], gaps[column]), SOURCE)
    p_values = {pair: compute_pearson_p(gaps[pair[0]], gaps[pair[1]]) for pair in combinations(_FIGURE_1_NAMES, 2)}
    large_p_values = [f"{first} with {second} {p:.2g}" for (first, second), p in p_values.items() if p >= 0.0001]
    # The caption claims that all are below .0001; the note lists the pairs for which that is not so.
    note = f"not below .0001: {len(large_p_values)} of {len(p_values)} ({'; '.join(large_p_values)})"
    yield make_cell(
        values, ("Figure 1, caption", "all correlations", "largest p"), max(p_values.values()), SOURCE, note=note
    )


def compute_pearson_p(first: Floats, second: Floats) -> float:
    """Return the two-sided p of Pearson's correlation."""
    # SciPy's statistics are slow to import; only this figure needs them.
    from scipy.stats import pearsonr

    return float(pearsonr(first, second).pvalue)


def figure_4(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the numbers behind the scatterplots: quartiles of scores, and regression lines for pairs and sentences."""
    gaps = data.compute_gaps()
    rated = [sentence for sentence in data.suite.sentences if sentence.rating is not None]
    ratings = np.array([sentence.rating for sentence in rated], dtype=np.float64)
    for name in (*COLA, *MLM):
        scores = data.z_scores(name)
        x = np.array([scores[sentence.id] for sentence in rated])
        statistics = (
            _fit_line("pairs", gaps[name], gaps["human"]) | _fit_line("sentences", x, ratings) | _compute_quartiles(x)
        )
        if name in COLA:
            # The scores of the classifiers are signed confidences: the sign is the predicted label, the absolute value
            # the confidence.
            confidence = np.abs(list(data.models[name].scores.values.values()))
            statistics["share of sentences with confidence above .9"] = float((confidence > 0.9).mean())
        for column, ours in statistics.items():
            yield make_cell(values, ("Figure 4", name, column), ours, SOURCE)


def _fit_line(unit: str, x: Floats, ratings: Floats) -> dict[str, float]:
    slope, intercept = np.polyfit(x, ratings, 1)
    return {
        f"{unit}: r": pearson(x, ratings),
        f"{unit}: slope": float(slope),
        f"{unit}: intercept": float(intercept),
        f"{unit}: n": len(x),
    }


def _compute_quartiles(x: Floats) -> dict[str, float]:
    return {
        f"score z: {name}": float(np.quantile(x, q)) for name, q in (("25 %", 0.25), ("median", 0.5), ("75 %", 0.75))
    }


def compute_text_numbers(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the numbers of the running text, in its order; the published files do not determine all of them."""
    ours = _count_sizes(data) | _compute_shares(data) | _compute_correlations(data)
    # The order is that of the text, as the file of printed values has it; what was not computed stays empty.
    for table, row, column in values:
        if table == "Text":
            yield make_cell(values, (table, row, column), ours.get((row, column)), SOURCE)


def _count_sizes(data: LiAdgerScores) -> dict[tuple[str, str], float]:
    sentences = data.suite.sentences
    types = {source: _find_sentence_types(sentences, source) for source in ("LI", "Adger")}
    tokens = Counter(sentence.tags["type"] for sentence in sentences)
    by_id = data.suite.by_id
    # A phenomenon is a pair of sentence types; its contrasts are the tokens of that pair.
    pairs = {
        tuple(by_id[member].tags["type"] for member in (contrast.better, contrast.worse))
        for contrast in data.suite.contrasts
    }
    return {
        ("abstract", "sentence types"): sum(map(len, types.values())),
        ("abstract", "sentences"): len(sentences),
        ("section 1", "minimal pairs"): len(data.suite.contrasts),
        ("section 4", "LI pairwise phenomena"): len([pair for pair in pairs if pair[0] in types["LI"]]),
        ("section 4", "LI sentence types"): len(types["LI"]),
        ("section 4", "Adger sentence types"): len(types["Adger"]),
        ("section 4", "sentences of a type"): Counter(tokens.values()).most_common(1)[0][0],
        ("section 6", "sentences"): len(sentences),
        ("appendix A", "minimal pairs with ch8.150.*.01"): len(
            [contrast for contrast in data.suite.contrasts if contrast.worse == "ch8.150.*.01"]
        ),
    }


def _find_sentence_types(sentences: Sequence[Sentence], source: str) -> set[str]:
    return {sentence.tags["type"] for sentence in sentences if sentence.tags["source"] == source}


def _compute_shares(data: LiAdgerScores) -> dict[tuple[str, str], float]:
    counts_by_model = {name: count_correct(data, name) for name in data.models}
    per_cent = 100 / len(data.suite.contrasts)
    best = {column: max(counts_by_model[name][column] for name in (*COLA, *MLM)) for column in ("BLiMP", "ADC 0.5")}
    cola, slor = counts_by_model[COLA[2]], counts_by_model[SLOR]
    shares: dict[tuple[str, str], float] = {}
    for column in ("BLiMP", "ADC 0.5"):
        shares["abstract", f"best BERT, {column}, %"] = best[column] * per_cent
        shares["abstract", f"{SLOR}, {column}, %"] = slor[column] * per_cent
        for name, count in ((COLA[2], cola[column]), (SLOR, slor[column])):
            shares["section 1", f"{name}, {column}"] = count
            shares["section 1", f"{name}, {column}, %"] = count * per_cent
    return shares


def _compute_correlations(data: LiAdgerScores) -> dict[tuple[str, str], float]:
    gaps = data.compute_gaps()
    human_correlations = {name: pearson(gaps["human"], gaps[name]) for name in (*COLA, *MLM, SLOR)}
    correlations = {("section 8", f"r of {name} with people"): human_correlations[name] for name in MLM}
    return correlations | {
        ("section 8", f"r of {name} above that of SLOR"): human_correlations[name] - human_correlations[SLOR]
        for name in COLA
    }


_UNPUBLISHED_PREDICTIONS = "needs the predictions of 50 fine-tuned BERTs for CoLA's sentences, which are not published"
# Why a row of Table 5 cannot be computed, by a part of the row's name.
_REASONS = {
    "Human": "people's own rows are computed by `acceptability study humans`, from CoLA's 200 sentences",
    "W&B": "quoted from Warstadt and Bowman (2019); their predictions are not published",
    "Devlin": "quoted from the GLUE leaderboard; its predictions are not published",
}
_FIGURES = {"major": "Figure 2", "minor": "Figure 3"}


def compute_table_5(values: PublishedValues) -> Iterator[Cell]:
    """Yield the printed MCCs, none of which can be computed from published files."""
    for (table, row, column), printed_value in values.items():
        if table == "Table 5":
            reason = next((_REASONS[name] for name in _REASONS if name in row), _UNPUBLISHED_PREDICTIONS)
            yield Cell(table, row, column, printed_value.value, None, "nothing published", None, reason)


def compute_feature_counts() -> Iterator[Cell]:
    """Yield the number of sentences in the analysis set that have each feature: the rows behind Figures 2 and 3."""
    # The feature annotation is published, unlike the predictions: the size of a row says how firm a printed MCC is.
    sentences = load_suite("cola/analysis").sentences
    for grain, figure in _FIGURES.items():
        yield Cell(figure, "every feature", "MCC", None, None, "nothing published", None, _UNPUBLISHED_PREDICTIONS)
        for tag in (name for name in sentences[0].tags if name.startswith(f"{grain}/")):
            tagged = [sentence for sentence in sentences if sentence.tags[tag] == "1"]
            acceptable = sum(sentence.label == 1 for sentence in tagged)
            row = tag.partition("/")[2]
            for column, count in (("sentences", len(tagged)), ("acceptable", acceptable)):
                yield Cell(figure, row, column, None, count, "CoLA analysis set", None)


_ANSWERS_COLUMN = "answers the question"
_YES_NO = {True: "yes", False: "no"}
DifferingPairs = dict[str, DiscordantContrast]


def compute_example_sentences(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the sentences of Tables 2 and 3 by their ids, and the ratings of Table 3."""
    for table, row, column in values:
        if table in ("Table 2", "Table 3"):
            sentence = data.suite.by_id[row]
            ours = sentence.text if column == "sentence" else sentence.rating
            yield make_cell(values, (table, row, column), ours, SOURCE)


def compute_table_4(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the gaps of two pairs, and which criteria the trigram's log-probabilities satisfy."""
    model = data.models[LOGPROB]
    adc = model.make_adc(1.0)
    units, pair_units = adc.units(data.suite, model.scores), BLIMP_CRITERION.units(data.suite, model.scores)
    # The table names a pair by its acceptable sentence alone.
    rows = {name.partition(" > ")[0]: row for row, name in enumerate(units.ids)}
    for table, better, column in values:
        if table == "Table 4":
            row = rows[better]
            ours: dict[str, float | str] = {
                "human gap": float(units["human_gap"][row]),
                "model gap": float(units["gap"][row]),
                "BLiMP criterion met": _YES_NO[bool(pair_units["correct"][row])],
                "ADC 1.0 met": _YES_NO[bool(units["met"][row])],
            }
            yield make_cell(values, (table, better, column), ours[column], SOURCE)


def compute_printed_pairs(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield the printed pairs of Tables 6 to 8: whether each answers the table's question, and its numbers."""
    answers = {
        "Table 6": find_all_against_people(data),
        "Table 7": find_only_classifiers_right(data),
        "Table 8": find_only_trigram_right(data),
    }
    for table, row, column in values:
        if table in answers:
            yield _compute_pair_cell(data, values, (table, row, column), answers[table])


def appendix_e(data: LiAdgerScores, values: PublishedValues) -> Iterator[Cell]:
    """Yield how many pairs satisfy the BLiMP criterion but not the ADC at 5, and in how many humans disagree."""
    for name in COLA:
        differing_pairs = find_pairs_against_people(data, data.models[name])
        against = sum(pair.human_gap is not None and pair.human_gap < 0 for pair in differing_pairs.values())
        yield make_cell(values, ("Appendix E", name, "pairs"), len(differing_pairs), SOURCE)
        ours = "all" if against == len(differing_pairs) else f"{against} of {len(differing_pairs)}"
        yield make_cell(values, ("Appendix E", name, "where people prefer the other sentence"), ours, SOURCE)
    yield make_cell(values, ("Appendix E", "all three", "pairs"), len(find_all_against_people(data)), SOURCE)


def find_pairs_against_people(data: LiAdgerScores, model: PublishedModel) -> DifferingPairs:
    """Return the pairs that a model gets right by the experts' labels but not by the human gap."""
    # None of these models' gaps is 5 standard deviations off, so that at this delta only the direction counts.
    differing_pairs = find_discordant_contrasts(
        data.suite, BLIMP_CRITERION, model.scores, model.scores, second_measure=model.make_adc(5.0)
    )
    return {pair.contrast: pair for pair in differing_pairs}


def find_all_against_people(data: LiAdgerScores) -> DifferingPairs:
    """Return the pairs on which all three classifiers satisfy the BLiMP criterion but not the ADC at 5 (Table 6)."""
    return _intersect_pairs([find_pairs_against_people(data, data.models[name]) for name in COLA])


def find_only_classifiers_right(data: LiAdgerScores) -> DifferingPairs:
    """Return the pairs on which all three classifiers satisfy the ADC at .5 and the trigram does not (Table 7)."""
    return _intersect_pairs([_find_only_first_right(data, name, SLOR) for name in COLA])


def find_only_trigram_right(data: LiAdgerScores) -> DifferingPairs:
    """Return the pairs on which the trigram satisfies the ADC at .5 and no classifier does (Table 8)."""
    return _intersect_pairs([_find_only_first_right(data, SLOR, name) for name in COLA])


def _find_only_first_right(data: LiAdgerScores, first: str, second: str) -> DifferingPairs:
    first_model, second_model = data.models[first], data.models[second]
    differing_pairs = find_discordant_contrasts(
        data.suite,
        first_model.make_adc(0.5),
        first_model.scores,
        second_model.scores,
        second_measure=second_model.make_adc(0.5),
    )
    return {pair.contrast: pair for pair in differing_pairs}


def _intersect_pairs(pairs_by_model: list[DifferingPairs]) -> DifferingPairs:
    # The numbers of a pair differ by model; those of the last are kept, as only the names of the pairs are used.
    return {name: pair for name, pair in pairs_by_model[-1].items() if all(name in pairs for pairs in pairs_by_model)}


def _compute_pair_cell(
    data: LiAdgerScores, values: PublishedValues, key: tuple[str, str, str], matching_pairs: DifferingPairs
) -> Cell:
    """Return the cell of one printed number or sentence of a pair, whose contrast id is the row."""
    table, row, column = key
    if column == _ANSWERS_COLUMN:
        # The paper prints a few of the pairs that answer a question; how many there are says how typical these are.
        note = f"{len(matching_pairs)} pairs do" + (_note_other_berts(data, row) if table == "Table 8" else "")
        return make_cell(values, key, _YES_NO[row in matching_pairs], SOURCE, note=note)
    member, _, quantity = column.partition(": ")
    # A column is named "acceptable: human", "unacceptable: BERT", and so on.
    sentence = data.suite.by_id[row.split(" > ")[0 if member == "acceptable" else 1]]
    if quantity == "sentence":
        return make_cell(values, key, sentence.text, SOURCE)
    numbers = {
        "human": sentence.rating,
        "trigram SLOR": data.z_scores(SLOR)[sentence.id],
        "BERT": data.z_scores(COLA[2])[sentence.id],
    }
    return make_cell(values, key, numbers[quantity], SOURCE)


def _note_other_berts(data: LiAdgerScores, contrast: str) -> str:
    """Return which BERTs without fine-tuning satisfy the criterion on a pair of Table 8; its caption says none."""
    correct_models = [name for name in MLM if contrast not in _find_only_first_right(data, SLOR, name)]
    return f"; of the six BERTs {', '.join(correct_models)} meet it too" if correct_models else ""


def cells(
    models: Sequence[str] = (), *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> list[Cell]:
    """Return every number of the paper with ours beside it, and the rows of a user's own models.

    Args:
        models: Models of the user's own, scored by their default reduction.
        engine: Where they run.
        progress: Called with the progress of scoring.
    """
    data, values = load_published_scores(), read_published_values("adc")
    all_cells = [
        *compute_text_numbers(data, values),
        *compute_table_1(data, values),
        *figure_1(data, values),
        *compute_example_sentences(data, values),
        *compute_table_4(data, values),
        *compute_table_5(values),
        *compute_feature_counts(),
        *appendix_e(data, values),
        *compute_printed_pairs(data, values),
        *figure_4(data, values),
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
    measures: dict[str, Measure] = {"BLiMP": BLIMP_CRITERION}
    measures |= {f"ADC {delta}": ADC(delta=delta) for delta in DELTAS}
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
