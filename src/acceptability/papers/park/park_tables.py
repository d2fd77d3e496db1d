"""The tables and figures of Park, Park and Song (2021) for the available suites and a user's models.

Counts are in the paper's unit, sentences: twice the pairs. Only the number of sentences of Linguistic Inquiry and the
classes of Table 3 are compared with the paper's: its other suites are unpublished, and a user's models are not its
BERTs.

``score_suites`` scores the pairs with every model, one outcome for each model and contrast. As in the paper, a pair is
excluded if a masked word is not in the model's vocabulary, unless it was made up on purpose ("sleeped"). A target of
several words counts: they are masked together and their log-probabilities added up.

As in the paper, the statistics of section 3.2 and the figures pool all models, with one row for each pair and model,
and repulsion in percentage points. A figure is given by the numbers that draw it: the five of a box, and the mean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from acceptability.api.contrasts import TargetContrasts, score_target_contrasts
from acceptability.api.scoring import ProgressCallback, iter_model_outputs
from acceptability.errors import MissingExtra, Undefined
from acceptability.measures.target_contrast import (
    LEARNED_ACCURACY,
    LEARNING_CLASSES,
    Directionality,
    Repulsion,
    classify_learning,
)
from acceptability.papers.cells import Cell, PublishedValues, make_cell
from acceptability.papers.park.park_suites import (
    BOOK_TOTAL,
    DEKEYSER,
    INQUIRY,
    ParkSuite,
    RatedErrorType,
    read_example_types,
)
from acceptability.protocols import Engine
from acceptability.stats.effects.effect_sizes import format_effect_size
from acceptability.stats.hypothesis_tests import rank_sum, tukey_hsd, two_way_anova
from acceptability.stats.regression import logistic_regression
from acceptability.suites.targets import TARGET_REGION, Exclusion, add_targets, count_exclusions, split_surface_tokens
from acceptability.types import Contrast, TokenScores

NamedNumbers = Mapping[str, float | None]

_REPULSION = "repulsion"
_TABLE = "Section 3.2"
_LOGISTIC_COLUMNS = ("b", "SE", "z", "p", "OR", "OR, low", "OR, high")
# The names of the factors in our analysis of variance, and in the paper.
_FACTORS = {"test suites": "test suites", "correctness": "correctness", "test suites:correctness": "interaction"}
_SPLIT_REASON = "a word of the target is several tokens"
_TOTAL = "Total"
_CLASSES_SOURCE = "our classes"
_BERT_COLUMNS = "base BERT correct", "large BERT correct"
_TWO_BERTS_NOTE = "what the paper prints is of its base and its large BERT"
_POOLED_BERTS_NOTE = "what the paper prints is of both BERTs together"


@dataclass(frozen=True)
class ContrastOutcome:
    """The outcome of one contrast for one model.

    Args:
        model: The spec of the model.
        part: The suite: "I", "II" or "III".
        row: Its row of Table 1.
        kind: Its kind in suite I, its error type in suite III; None if it has neither.
        is_correct: Whether the target of the worse sentence has the higher surprisal.
        repulsion: In percentage points, as in the paper's tests; None where both targets are certain.
    """

    model: str
    part: str
    row: str
    kind: str | None
    is_correct: bool
    repulsion: float | None


@dataclass(frozen=True, eq=False)
class SideResults:
    """The scores and outcomes of all models, with the target of insertions and deletions on one side.

    Args:
        name: The side: "left" or "right".
        models: The specs of the models.
        parts: The three suites.
        contrasts: The scored contrasts, by model and name of the suite.
        rows: The outcomes of all contrasts.
    """

    name: str
    models: tuple[str, ...]
    parts: tuple[ParkSuite, ...]
    contrasts: Mapping[tuple[str, str], TargetContrasts]
    rows: tuple[ContrastOutcome, ...]

    def filter_rows(self, **values: object) -> list[ContrastOutcome]:
        """Return the rows with these values: ``filter_rows(part="I", model="mini-masked")``."""
        return [row for row in self.rows if all(getattr(row, name) == value for name, value in values.items())]

    @property
    def source(self) -> str:
        """The source of its numbers, as a cell has it."""
        return f"re-scored with {', '.join(self.models)}"


def score_suites(
    parts: Sequence[ParkSuite],
    models: Sequence[str],
    side: str,
    engine: str | Engine,
    progress: ProgressCallback | None,
) -> SideResults:
    """Score the contrasts of every suite with every model.

    Args:
        parts: The suites.
        models: The specs of the models.
        side: "left" or "right": which neighbour of an inserted or deleted word is the target.
        engine: Where the models run.
        progress: Called with the progress of scoring.
    """
    contrasts, rows = {}, []
    for model in models:
        for part in parts:
            # Targets outside the vocabulary are dropped after scoring: only the model's tokenizer knows which they are.
            known_contrasts = _drop_split_targets(
                score_target_contrasts(
                    part.pairs, model, side=side, multi_token=True, engine=engine, progress=progress
                ),
                model,
                engine,
            )
            contrasts[model, part.name] = known_contrasts
            rows += _make_outcomes(model, part, known_contrasts)
    return SideResults(side, tuple(models), tuple(parts), contrasts, tuple(rows))


def _drop_split_targets(target_pairs: TargetContrasts, model: str, engine: str | Engine) -> TargetContrasts:
    """Return the contrasts whose targets have as many tokens as words and marks; made-up words may have more."""
    suite = target_pairs.suite
    # The same queries were just scored, so that these outputs come from the store and no model runs again.
    scored = iter_model_outputs(suite, model, region=TARGET_REGION, engine=engine)
    outputs = {sentence.id: output for sentence, output in scored}

    def is_split(sentence_id: str) -> bool:
        sentence, output = suite.by_id[sentence_id], outputs[sentence_id]
        target = sentence.text[slice(*sentence.regions[TARGET_REGION])]
        return isinstance(output, TokenScores) and len(output.tokens) > len(split_surface_tokens(target))

    split = {
        contrast.id: contrast
        for contrast in suite.contrasts
        # A made-up word ("sleeped") is what such a pair contrasts, and is kept although it has several tokens.
        if not contrast.tags.get("nonword") and (is_split(contrast.better) or is_split(contrast.worse))
    }
    remaining = tuple(contrast for contrast in suite.contrasts if contrast.id not in split)
    dropped = tuple(Exclusion(_SPLIT_REASON, contrast.tags["contrast"]) for contrast in split.values())
    return TargetContrasts(
        replace(suite, contrasts=remaining), target_pairs.scores, (*target_pairs.exclusions, *dropped)
    )


def keep_single_tokens(target_pairs: TargetContrasts) -> TargetContrasts:
    """Return the contrasts whose targets are single tokens, as in ``acceptability contrasts``."""
    single = tuple(contrast for contrast in target_pairs.suite.contrasts if contrast.tags["tokens"] == "1")
    return replace(target_pairs, suite=replace(target_pairs.suite, contrasts=single))


def _make_outcomes(model: str, part: ParkSuite, target_pairs: TargetContrasts) -> list[ContrastOutcome]:
    direction_units = Directionality().units(target_pairs.suite, target_pairs.scores)
    repulsion_units = Repulsion().units(target_pairs.suite, target_pairs.scores)
    # Repulsion is undefined where both targets are certain, so that it has fewer rows than directionality.
    is_correct = dict(zip(direction_units.ids, direction_units["correct"] > 0, strict=True))
    repulsion_by_id = dict(zip(repulsion_units.ids, (100 * repulsion_units["repulsion"]).tolist(), strict=True))
    return [
        ContrastOutcome(
            model,
            part.name,
            part.find_row(contrast.tags.get("book") if part.name == "II" else None),
            find_contrast_kind(part.name, contrast),
            bool(is_correct[contrast.id]),
            repulsion_by_id.get(contrast.id),
        )
        for contrast in target_pairs.suite.contrasts
    ]


def find_contrast_kind(part: str, contrast: Contrast) -> str | None:
    """Return the kind of a contrast of suite I, or the error type of one of suite III; None if it has neither."""
    return contrast.tags.get("kind") if part == "I" else read_example_types().get(contrast.tags.get("type", ""))


def _get_kind(outcome: ContrastOutcome) -> str | None:
    return outcome.kind


def compute_accuracy(rows: Sequence[ContrastOutcome]) -> float:
    """Return the share of rows that are correct."""
    return float(np.mean([row.is_correct for row in rows]))


def collect_repulsions(rows: Iterable[ContrastOutcome]) -> list[float]:
    """Return the repulsions, in percentage points, of the rows that have one."""
    return [row.repulsion for row in rows if row.repulsion is not None]


def group_outcomes(
    rows: Iterable[ContrastOutcome], key: Callable[[ContrastOutcome], str | None]
) -> dict[str, list[ContrastOutcome]]:
    """Return the rows by key, in the order of first occurrence; rows whose key is None are dropped."""
    groups: dict[str, list[ContrastOutcome]] = {}
    for outcome in rows:
        if (name := key(outcome)) is not None:
            groups.setdefault(name, []).append(outcome)
    return groups


def count_sentences(values: PublishedValues, parts: Sequence[ParkSuite]) -> Iterator[Cell]:
    """Yield the number of sentences in each suite, and the number in pairs with one target (Table 1)."""
    # Only targets to the left are counted, as in the paper; no model is needed for that.
    contrasts_with_target = {part.name: add_targets(part.pairs)[0].contrasts for part in parts}
    n_left = {
        part.name: Counter(
            part.find_row(contrast.tags.get("book") if part.name == "II" else None)
            for contrast in contrasts_with_target[part.name]
        )
        for part in parts
    }
    for part in parts:
        for row, original in part.original_counts.items():
            yield from _compute_count_cells(
                values, row, _make_label(part, row), original, 2 * n_left[part.name][row], _describe_suite(part)
            )
        if part.name == "II":
            sums = sum(part.original_counts.values()), 2 * n_left["II"].total()
            yield from _compute_count_cells(values, BOOK_TOTAL, "II", *sums, _describe_suite(part))
    totals = (
        sum(sum(part.original_counts.values()) for part in parts),
        2 * sum(counts.total() for counts in n_left.values()),
    )
    yield from _compute_count_cells(values, _TOTAL, "I, II and III", *totals, "")


def _compute_count_cells(
    values: PublishedValues, row: str, label: str, original: int, left: int, note: str
) -> Iterator[Cell]:
    for column, ours in (("original", original), ("manipulated", left)):
        paper, shown = values["Table 1", row, column].value, f"{ours:,}"
        # Linguistic Inquiry is the only suite that the paper and we both have before pairing.
        is_same = row == INQUIRY and column == "original"
        shown_note = "" if is_same else note
        yield Cell(
            "Table 1", label, column, paper, shown, "our suites", shown == paper if is_same else None, shown_note
        )


def _make_label(part: ParkSuite, row: str) -> str:
    return f"{part.name}: {row if row != DEKEYSER else part.source}"


def _describe_suite(part: ParkSuite) -> str:
    return {
        "I": f"{part.source} in the place of DeKeyser's",
        "II": "without CoLA's test sentences, whose labels are not public, and the counterparts that the authors wrote",
        "III": "pairs with one target to the left, of whatever tokens; the paper's are in BERT's vocabulary",
    }[part.name]


def compute_exclusion_cells(parts: Sequence[ParkSuite]) -> Iterator[Cell]:
    """Yield the numbers of pairs without a target and of sentences without a partner, by reason."""
    for part in parts:
        reasons = {"sentences": part.unpaired, "pairs": add_targets(part.pairs)[1]}
        yield from _count_reasons(part.name, reasons, "our suites")


def compute_model_exclusions(side: SideResults) -> Iterator[Cell]:
    """Yield the number of pairs that each model was not scored on, by reason, and the number of ties."""
    for model in side.models:
        for part in side.parts:
            row, source, target_pairs = (
                f"{model}, {side.name}: {part.name}",
                f"re-scored with {model}",
                side.contrasts[model, part.name],
            )
            yield from _count_reasons(row, {"pairs": target_pairs.exclusions}, source)
            # Notes on exclusions come first, and are counted above; the others report ties, which stay in.
            for note in target_pairs.notes()[len(count_exclusions(target_pairs.exclusions)) :]:
                yield Cell("Left out", row, "pairs: kept, but tied", None, note.partition(" ")[0], source, None, note)


def _count_reasons(row: str, reasons: Mapping[str, Sequence[Exclusion]], source: str) -> Iterator[Cell]:
    for unit, exclusions in reasons.items():
        for reason, count in count_exclusions(exclusions).items():
            yield Cell("Left out", row, f"{unit}: {reason}", None, str(count), source, None)


def compute_table_3(values: PublishedValues) -> Iterator[Cell]:
    """Yield our class for each combination of accuracy and repulsion, beside that of Table 3.

    Where low ends and high begins is in ``Cutoffs`` (``measures/target_contrast.py``).
    """
    for key in values:
        if key[0] == "Table 3":
            accuracy_level, repulsion_level = (name.rpartition(" ")[2] for name in key[1:])
            yield make_cell(values, key, LEARNING_CLASSES[accuracy_level, repulsion_level], _CLASSES_SOURCE)


def compute_table_2(values: PublishedValues, side: SideResults) -> Iterator[Cell]:
    """Yield the accuracy of each model, by source (Table 2)."""
    for model in side.models:
        rows = side.filter_rows(model=model)
        rows_by_source = group_outcomes(rows, lambda outcome: outcome.row)
        groups = {
            row: (row, rows_by_source[row])
            for part in side.parts
            for row in part.original_counts
            if row in rows_by_source
        }
        second = [outcome for outcome in rows if outcome.part == "II"]
        # The paper has rows for the sum of the textbooks and for all suites, beside those of single sources.
        groups |= {BOOK_TOTAL: ("II", second), _TOTAL: ("I, II and III", rows)}
        for row, (label, group_rows) in groups.items():
            # Named by its own source: our suite I takes this row of the paper, but has other sentences.
            label = side.parts[0].source if row == DEKEYSER else label
            yield from _compute_correct_cells(
                values, row, f"{model}, {side.name}: {label}", group_rows, f"re-scored with {model}"
            )


def _compute_correct_cells(
    values: PublishedValues, row: str, label: str, outcomes: Sequence[ContrastOutcome], source: str
) -> Iterator[Cell]:
    for column, ours in (("correct", _format_share(outcomes)), ("correct %", 100 * compute_accuracy(outcomes))):
        theirs = [values["Table 2", row, bert + column.removeprefix("correct")].value for bert in _BERT_COLUMNS]
        yield Cell("Table 2", label, column, "; ".join(theirs), ours, source, None, _TWO_BERTS_NOTE)


def _format_share(outcomes: Sequence[ContrastOutcome]) -> str:
    return f"{2 * sum(outcome.is_correct for outcome in outcomes)}/{2 * len(outcomes)}"


def compute_table_4(values: PublishedValues, side: SideResults) -> Iterator[Cell]:
    """Yield the rows of Table 4, which pool all models as in the paper, and the reason why a type has no pairs."""
    rows_by_type = group_outcomes(side.filter_rows(part="III"), _get_kind)
    for name in (row for table, row, column in values if (table, column) == ("Table 4", "class")):
        # All 22 rows are shown, since a type without pairs is a finding about the available suites too.
        type_rows = rows_by_type.get(name, [])
        note = _POOLED_BERTS_NOTE if type_rows else f"no pair is left: {_explain_missing_type(side, name)}"
        for column, ours in {"correct": _format_share(type_rows), **_compute_type_columns(type_rows)}.items():
            paper = values["Table 4", name, column].value
            yield Cell("Table 4", f"{side.name}: {name}", column, paper, ours, side.source, None, note)


def _compute_type_columns(outcomes: Sequence[ContrastOutcome]) -> dict[str, float | str]:
    type_repulsions = collect_repulsions(outcomes)
    if not type_repulsions:
        return {}
    # Table 4 prints repulsion as a share; section 3.2 and its figures use percentage points.
    mean = float(np.mean(type_repulsions)) / 100
    return {
        "correct %": 100 * compute_accuracy(outcomes),
        "repulsion": mean,
        "class": classify_learning(compute_accuracy(outcomes), mean),
    }


def _explain_missing_type(side: SideResults, name: str) -> str:
    """Return the reasons for which the pairs of a type are excluded, with their numbers."""
    ids = {example for example, example_type in read_example_types().items() if example_type == name}
    suite = next(part.pairs for part in side.parts if part.name == "III")
    contrast_ids = {contrast.id for contrast in suite.contrasts if suite.by_id[contrast.worse].tags["type"] in ids}
    # Most exclusions do not depend on the model, so that those of the first give the reason.
    excluded = side.contrasts[side.models[0], "III"].exclusions
    return ", ".join(count_exclusions([exclusion for exclusion in excluded if exclusion.contrast in contrast_ids]))


def count_classes(side: SideResults) -> Iterator[Cell]:
    """Yield the number of error types in each class of Table 3."""
    rows_by_type = group_outcomes(side.filter_rows(part="III"), _get_kind).values()
    class_counts = Counter(
        classify_learning(compute_accuracy(rows), float(np.mean(repulsions)) / 100)
        for rows in rows_by_type
        if (repulsions := collect_repulsions(rows))
    )
    for name in LEARNING_CLASSES.values():
        yield Cell("Table 3", f"{side.name}: {name}", "types", None, str(class_counts[name]), side.source, None)


def compute_kinds(side: SideResults) -> Iterator[Cell]:
    """Yield accuracy and mean repulsion of the models on each kind of suite I."""
    part = side.parts[0]
    for name, rows in group_outcomes(side.filter_rows(part="I"), _get_kind).items():
        kind_repulsions = collect_repulsions(rows)
        columns = {
            "correct": _format_share(rows),
            "repulsion": float(np.mean(kind_repulsions)) / 100 if kind_repulsions else None,
        }
        for column, ours in columns.items():
            yield Cell(f"Suite I: {part.source}", f"{side.name}: {name}", column, None, ours, side.source, None)


def compute_regressions(values: PublishedValues, side: SideResults) -> Iterator[Cell]:
    """Yield the logistic regressions of the model's version and of correctness on repulsion."""
    rows = [row for row in side.rows if row.repulsion is not None]
    test = partial(_fit_logistic, rows, lambda outcome: outcome.is_correct)
    yield from _compute_test_cells(values, side, "logistic regression, correctness", test)
    if len(side.models) == 1:
        note = "needs a second model: the version is which of two models it is"
        yield from _make_cells(values, side, "logistic regression, version", {_LOGISTIC_COLUMNS[0]: None}, note)
    # The paper has two versions, base and large. With more models, each is set against the first.
    for model in side.models[1:]:
        yield from _compute_version_regression(
            values, side, [row for row in rows if row.model in (side.models[0], model)], model
        )


def _compute_version_regression(
    values: PublishedValues, side: SideResults, rows: Sequence[ContrastOutcome], model: str
) -> Iterator[Cell]:
    # With two models, as in the paper, the row needs no model's name.
    label = "" if len(side.models) == 2 else f" ({model})"
    test = partial(_fit_logistic, rows, lambda outcome: outcome.model == model)
    note = f"{model} is 1, {side.models[0]} 0"
    yield from _compute_test_cells(values, side, f"logistic regression, version{label}", test, note)


def _fit_logistic(rows: Sequence[ContrastOutcome], outcome: Callable[[ContrastOutcome], bool]) -> NamedNumbers:
    # Repulsion in percentage points: the odds ratio is then that of one point, as in the paper.
    fit = logistic_regression([float(outcome(row)) for row in rows], {_REPULSION: collect_repulsions(rows)})
    coefficient = fit[_REPULSION]
    numbers = (
        coefficient.estimate,
        coefficient.se,
        coefficient.statistic,
        coefficient.p,
        coefficient.effect,
        coefficient.effect_low,
        coefficient.effect_high,
    )
    return dict(zip(_LOGISTIC_COLUMNS, numbers, strict=True))


def compute_anova(values: PublishedValues, side: SideResults) -> Iterator[Cell]:
    """Yield the two-way ANOVA of repulsion by suite and correctness, and Tukey's HSD between the suites."""
    rows = [row for row in side.rows if row.repulsion is not None]
    y, parts = collect_repulsions(rows), [row.part for row in rows]
    factors: Mapping[str, Sequence[object]] = {"test suites": parts, "correctness": [row.is_correct for row in rows]}
    note = f"{len(rows)} rows, a pair and model each; sums of squares of type II"
    try:
        anova = two_way_anova(y, factors)
        yield from _make_cells(values, side, "ANOVA", {"residual df": float(anova.residual_df)}, note)
        for effect in anova.effects:
            numbers = {
                "F": effect.f,
                "df": float(effect.df),
                "p": effect.p,
                "partial eta squared": effect.partial_eta_squared,
            }
            size_note = f"{note}; {format_effect_size(effect.effect_size)}"
            yield from _make_cells(values, side, f"ANOVA, {_FACTORS[effect.name]}", numbers, size_note)
    except (Undefined, MissingExtra) as error:
        yield from _make_cells(values, side, "ANOVA", {"residual df": None}, str(error))
    # Apart from the ANOVA: with few rows either can be undefined where the other is not.
    try:
        for pair in tukey_hsd(y, parts):
            numbers = {"difference": pair.difference, "p": pair.p, "low": pair.low, "high": pair.high}
            size_note = f"{note}; {format_effect_size(pair.effect_size)}"
            yield from _make_cells(values, side, f"Tukey HSD, {pair.first} against {pair.second}", numbers, size_note)
    except (Undefined, MissingExtra) as error:
        yield from _make_cells(values, side, "Tukey HSD, I against II", {"difference": None}, str(error))


def _compute_test_cells(
    values: PublishedValues, side: SideResults, row: str, test: Callable[[], NamedNumbers], note: str = ""
) -> Iterator[Cell]:
    """Yield the numbers of a logistic regression, or one empty cell with the reason why there are none."""
    try:
        numbers = test()
    except (Undefined, MissingExtra) as error:
        numbers, note = {_LOGISTIC_COLUMNS[0]: None}, str(error)
    yield from _make_cells(values, side, row, numbers, note)


def _make_cells(
    values: PublishedValues, side: SideResults, row: str, numbers: NamedNumbers, note: str
) -> Iterator[Cell]:
    for column, ours in numbers.items():
        # A third model's row is "version (MODEL)", and belongs to the same row of the paper.
        printed_value = values.get((_TABLE, row.partition(" (")[0], column))
        paper = printed_value.value if printed_value and ours is not None else None
        yield Cell(_TABLE, f"{side.name}: {row}", column, paper, ours, side.source, None, note)


def compute_figures(side: SideResults) -> Iterator[Cell]:
    """Yield the boxes of Figures 1 and 2, and the means of Figure 3."""
    rows = [row for row in side.rows if row.repulsion is not None]
    boxes = {
        "Figure 1": {**group_outcomes(rows, lambda outcome: outcome.model), **group_outcomes(rows, _name_correctness)},
        "Figure 2": group_outcomes(rows, lambda outcome: f"test suite {outcome.part}"),
    }
    for figure, groups in boxes.items():
        for name, group_rows in groups.items():
            yield from _compute_box(figure, f"{side.name}: {name}", collect_repulsions(group_rows), side.source)
    for name, group_rows in group_outcomes(
        rows, lambda outcome: f"test suite {outcome.part}, {_name_correctness(outcome)}"
    ).items():
        mean = float(np.mean(collect_repulsions(group_rows)))
        for column, ours in (("n", str(len(group_rows))), ("mean", mean)):
            yield Cell("Figure 3", f"{side.name}: {name}", column, None, ours, side.source, None)


def _name_correctness(outcome: ContrastOutcome) -> str:
    return "correct" if outcome.is_correct else "incorrect"


def _compute_box(figure: str, row: str, numbers: Sequence[float], source: str) -> Iterator[Cell]:
    yield Cell(figure, row, "n", None, str(len(numbers)), source, None)
    for column, share in (
        ("lowest", 0),
        ("lower quartile", 25),
        ("median", 50),
        ("upper quartile", 75),
        ("highest", 100),
    ):
        yield Cell(figure, row, column, None, float(np.percentile(numbers, share)), source, None)
    yield Cell(figure, row, "mean", None, float(np.mean(numbers)), source, None)


def compute_type_accuracies(side: SideResults) -> dict[str, float]:
    """Return the accuracy of all models together on each error type that has pairs."""
    return {
        name: compute_accuracy(rows) for name, rows in group_outcomes(side.filter_rows(part="III"), _get_kind).items()
    }


def compute_ratings(
    values: PublishedValues,
    types: Sequence[RatedErrorType],
    type_accuracies: Mapping[str, float],
    label: str,
    source: str,
) -> Iterator[Cell]:
    """Yield Figure 4, the human ratings of types above and below the accuracy threshold, and its two rank-sum tests.

    Args:
        values: The printed values.
        types: The error types with their ratings.
        type_accuracies: The accuracy on each type; a type without one is dropped.
        label: Whose accuracies they are, as rows name it.
        source: The source of the numbers.
    """
    known = [error_type for error_type in types if error_type.name in type_accuracies]
    above = [error_type for error_type in known if type_accuracies[error_type.name] >= LEARNED_ACCURACY]
    below = [error_type for error_type in known if type_accuracies[error_type.name] < LEARNED_ACCURACY]
    for role in ("acceptable", "unacceptable"):
        groups = [[getattr(error_type, role) for error_type in group] for group in (above, below)]
        for name, numbers in zip(("above", "below"), groups, strict=True):
            if numbers:
                yield from _compute_box("Figure 4", f"{label}: {name}, {role}", numbers, source)
        yield from _test_rank_sum(values, role, groups, label, source)


def _test_rank_sum(
    values: PublishedValues, role: str, groups: Sequence[Sequence[float]], label: str, source: str
) -> Iterator[Cell]:
    row, note = f"{role}, below against above", f"{len(groups[0])} types above, {len(groups[1])} below"
    # A model may be above the threshold on every type, or below it; there is then nothing to rank.
    if not all(groups):
        yield Cell("Section 3.3", f"{label}: {row}", "W", None, None, source, None, note)
        return
    test = rank_sum(*groups)
    note = f"{note}; {format_effect_size(test.effect_size)}"
    for column, ours in (("W", test.w), ("p", test.p)):
        paper = values["Section 3.3", row, column].value
        yield Cell("Section 3.3", f"{label}: {row}", column, paper, ours, source, None, note)
