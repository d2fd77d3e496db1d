"""Park, Park and Song (2021): Deep learning can contrast the minimal pairs of syntactic data.

This module recomputes what follows from the numbers that the paper prints: sums, shares, the counts of Table 4's
rows, statistics from coefficients, the rank-sum test of error types. The paper's suites are unpublished
(DeKeyser's items, hand-made counterparts to CoLA, a selection of Linguistic Inquiry), so a user's models are scored on
the nearest equivalents (``park_suites``): a file of the user's or 98 pairs of ours, pairs from CoLA's four textbooks,
and the pairs of Linguistic Inquiry in LI-Adger. The assignment of error types is ours (``park_types.toml``).

The paper counts sentences, that is, twice the pairs; Table 4 pools both BERTs, so 8 pairs are 32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from acceptability.api.contrasts import ContrastGroup, TargetContrasts, group_contrasts
from acceptability.api.scoring import ProgressCallback
from acceptability.measures.target_contrast import ErrorType, classify_learning, compute_repulsion, split_by_accuracy
from acceptability.papers import Paper, StudyOption
from acceptability.papers.cells import (
    Cell,
    CellKey,
    PublishedValues,
    make_cell,
    make_uncompared_cell,
    read_published_values,
)
from acceptability.papers.park.park_suites import INQUIRY, RatedErrorType, compute_rated_types, load_park_suites
from acceptability.papers.park.park_tables import (
    SideResults,
    compute_anova,
    compute_exclusion_cells,
    compute_figures,
    compute_kinds,
    compute_model_exclusions,
    compute_ratings,
    compute_regressions,
    compute_table_2,
    compute_table_3,
    compute_table_4,
    compute_type_accuracies,
    count_classes,
    count_sentences,
    keep_single_tokens,
    score_suites,
)
from acceptability.protocols import Engine
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.effects.effect_sizes import format_effect_size, partial_eta_squared
from acceptability.stats.hypothesis_tests import rank_sum
from acceptability.suites import load_suite
from acceptability.types import Suite

_PRINTED_SOURCE = "printed numbers"
_SUITE_SUMS = {
    "Subtotal of II": ("Adger (2003)", "Carnie (2013)", "Miller (2002)", "Sportiche et al. (2013)"),
    "Total": ("DeKeyser (2000)", "Subtotal of II", "Sprouse et al. (2013)"),
}
_RATING_COLUMN = "rating of the unacceptable"
_RATINGS_SOURCE = "published ratings"
_FITTED_NOTE = "fitted to what is printed, and so no test of it"


def cells(
    models: Sequence[str],
    *,
    suite_i: str | Path | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Cell]:
    """Return what follows from the printed numbers, the counts of the suites, and the results of a user's models.

    Args:
        models: Models of the user's own.
        suite_i: A file of pairs for suite I, in place of 98 pairs of ours.
        engine: Where the models run.
        progress: Called with the progress of scoring.
    """
    values, inquiry = read_published_values("park"), load_linguistic_inquiry()
    parts, rated = load_park_suites(inquiry, suite_i), compute_rated_types(inquiry)
    all_cells = [
        *_recompute_sums(values),
        *_recompute_shares(values),
        *_recompute_examples(values),
        *_recompute_regressions(values),
        *_recompute_anova(values),
    ]
    all_cells += [
        *_recompute_classes(values),
        *_recompute_rank_sum(values),
        *_count_wrong(values),
        *_compare_ratings(values, rated),
    ]
    paper_accuracies = {error_type.name: error_type.accuracy for error_type in read_error_types(values)}
    all_cells += [*count_sentences(values, parts), *compute_exclusion_cells(parts), *compute_table_3(values)]
    all_cells += compute_ratings(values, rated, paper_accuracies, "the paper's accuracies", _RATINGS_SOURCE)
    # The paper masks the left neighbour of an inserted word. Up to there a causal model sees two equal texts, so that
    # its results are those with the right neighbour.
    sides = [score_suites(parts, models, side, engine, progress) for side in ("left", "right")] if models else []
    return all_cells + [cell for side in sides for cell in _compute_side_cells(values, rated, side)]


def _compute_side_cells(values: PublishedValues, rated: Sequence[RatedErrorType], side: SideResults) -> Iterator[Cell]:
    """Yield the results of the models with the target on one side of insertions and deletions."""
    yield from compute_model_exclusions(side)
    yield from compute_table_2(values, side)
    yield from compute_kinds(side)
    yield from count_classes(side)
    yield from compute_table_4(values, side)
    yield from compute_regressions(values, side)
    yield from compute_anova(values, side)
    yield from compute_figures(side)
    yield from compute_ratings(values, rated, compute_type_accuracies(side), side.name, side.source)
    for model in side.models:
        yield from _compute_by_edit(keep_single_tokens(side.contrasts[model, "III"]), model, side)


def _parse_number(values: PublishedValues, key: CellKey) -> float:
    return float(values[key].value.replace(",", "").rstrip("%"))


def _parse_counts(values: PublishedValues, key: CellKey) -> tuple[int, int]:
    correct, _, n = values[key].value.partition("/")
    return int(correct), int(n)


def _recompute_sums(values: PublishedValues) -> Iterator[Cell]:
    """Yield the sums of Tables 1 and 2."""
    # The parts and the totals are printed independently, and disagree: the originals add up to 5,491, not to 5,490.
    for row, parts in _SUITE_SUMS.items():
        for column in ("original", "manipulated"):
            total = sum(_parse_number(values, ("Table 1", part, column)) for part in parts)
            yield make_cell(values, ("Table 1", row, column), total, _PRINTED_SOURCE)
        for model in ("base BERT correct", "large BERT correct"):
            correct, n = np.sum([_parse_counts(values, ("Table 2", part, model)) for part in parts], axis=0).tolist()
            yield make_cell(values, ("Table 2", row, model), f"{correct}/{n}", _PRINTED_SOURCE)


def _recompute_shares(values: PublishedValues) -> Iterator[Cell]:
    """Yield the percentages of Tables 2 and 4, from their counts."""
    # The pairs of both BERTs are pooled in Table 4, so that 8 pairs are 32 sentences there and 16 in Table 2.
    for table, row, column in values:
        if column.endswith("correct"):
            correct, n = _parse_counts(values, (table, row, column))
            note = 'headed "number of errors", which it is not' if table == "Table 4" else ""
            yield make_cell(values, (table, row, f"{column} %"), 100 * correct / n, _PRINTED_SOURCE, note=note)


def _recompute_examples(values: PublishedValues) -> Iterator[Cell]:
    """Yield the repulsion of examples 10 and 11."""
    for table, row, column in values:
        if column == "surprisals":
            # The paper's .996 for example 11 comes from rounded shares; these surprisals give .995.
            ours = compute_repulsion(*map(float, values[table, row, column].value.split()))
            yield make_cell(values, (table, row, "repulsion"), ours, _PRINTED_SOURCE)


def _recompute_regressions(values: PublishedValues) -> Iterator[Cell]:
    """Yield z and the odds ratio with its interval of the two logistic regressions, from their coefficients."""
    # 1.959964 is the 97.5 % quantile of the normal distribution, for a 95 % Wald interval.
    for name in ("version", "correctness"):
        row = f"logistic regression, {name}"
        b, error = (_parse_number(values, ("Section 3.2", row, column)) for column in ("b", "SE"))
        yield make_cell(values, ("Section 3.2", row, "z"), b / error, _PRINTED_SOURCE)
        for column, z in (("OR", 0.0), ("OR, low", -1.959964), ("OR, high", 1.959964)):
            yield make_cell(values, ("Section 3.2", row, column), math.exp(b + z * error), _PRINTED_SOURCE)


def _recompute_anova(values: PublishedValues) -> Iterator[Cell]:
    """Yield the residual degrees of freedom of the ANOVA, and its effect sizes."""
    pairs = _parse_counts(values, ("Table 2", "Total", "base BERT correct"))[1] // 2
    # One row for each pair and model, less one degree for each of the 3 × 2 groups.
    residual = 2 * pairs - 3 * 2
    note = f"{pairs} pairs × 2 models − 3 suites × 2: pairs are counted here, and repulsion in percentage points"
    yield make_cell(values, ("Section 3.2", "ANOVA", "residual df"), float(residual), _PRINTED_SOURCE, note=note)
    for name in ("test suites", "interaction", "correctness"):
        row = f"ANOVA, {name}"
        f, df = (_parse_number(values, ("Section 3.2", row, column)) for column in ("F", "df"))
        # Partial eta squared from F: SS_effect / (SS_effect + SS_residual), both divided by the residual mean square.
        eta, key = f * df / (f * df + residual), ("Section 3.2", row, "partial eta squared")
        note = format_effect_size(partial_eta_squared(f, round(df), residual, 2 * pairs))
        # Numbers in scientific notation are compared as texts: their last digit is no decimal place.
        yield make_cell(values, key, f"{eta:.2e}" if "e" in values[key].value else eta, _PRINTED_SOURCE, note=note)


def read_error_types(values: PublishedValues) -> list[ErrorType]:
    """Return the 22 error types of Table 4, with the human ratings of their unacceptable sentences."""
    error_types = []
    for table, row, column in values:
        if table == "Table 4" and column == "correct":
            correct, n = _parse_counts(values, (table, row, column))
            error_types.append(ErrorType(row, correct / n, _parse_number(values, (table, row, _RATING_COLUMN))))
    return error_types


def _recompute_classes(values: PublishedValues) -> Iterator[Cell]:
    """Yield our class of each type beside the paper's; the paper calls three "confused" without a grade."""
    for error_type in read_error_types(values):
        key = "Table 4", error_type.name, "class"
        ours, theirs = (
            classify_learning(error_type.accuracy, _parse_number(values, ("Table 4", error_type.name, "repulsion"))),
            values[key].value,
        )
        # The printed class has no grade there, so that weakly, moderately and highly confused all agree with it.
        if theirs == "confused":
            yield Cell(*key, theirs, ours, _PRINTED_SOURCE, ours.endswith(f" {theirs}"), "the text gives no grade")
        else:
            yield make_cell(values, key, ours, _PRINTED_SOURCE)


def _recompute_rank_sum(values: PublishedValues) -> Iterator[Cell]:
    """Yield the rank-sum test of human ratings: types above the accuracy threshold against those below it."""
    below, above = split_by_accuracy(read_error_types(values))
    test = rank_sum([error_type.rating for error_type in above], [error_type.rating for error_type in below])
    table, row = "Section 3.3", "unacceptable, below against above"
    yield make_cell(values, (table, row, "W"), test.w, _PRINTED_SOURCE)
    # The paper prints a bound, so that p can agree with it or not, but has no digits to be compared.
    yield Cell(table, row, "p", values[table, row, "p"].value, test.p, _PRINTED_SOURCE, test.p < 0.05)
    # The paper does not define its r. The two usual effect sizes of this test are shown; neither is the printed one.
    size = None if test.z_by_root_n is None else abs(test.z_by_root_n)
    yield make_cell(values, (table, row, "r"), size, _PRINTED_SOURCE, note="z / √N")
    effect_note = format_effect_size(test.effect_size)
    key = table, row, "rank-biserial correlation"
    yield make_cell(values, key, abs(test.rank_biserial), _PRINTED_SOURCE, note=effect_note)
    # Not computable: ratings of acceptable sentences are not printed by type. ``compute_ratings`` gives ours.
    yield make_cell(values, (table, "acceptable, below against above", "W"), None, _PRINTED_SOURCE)


def _count_wrong(values: PublishedValues) -> Iterator[Cell]:
    """Yield the number of wrong sentences in Table 4, which should list every error in suite III of Table 2."""
    wrong = sum(
        n - correct for correct, n in (_parse_counts(values, key) for key in _find_correct_keys("Table 4", values))
    )
    suite_iii_counts = [
        _parse_counts(values, ("Table 2", INQUIRY, f"{model} BERT correct")) for model in ("base", "large")
    ]
    table_2_wrong = sum(n - correct for correct, n in suite_iii_counts)
    # Equal totals mean that Table 4 omits no type with an error.
    note = f"Table 2 leaves {table_2_wrong} sentences of suite III wrong"
    yield Cell("Table 4", "all types", "wrong", None, str(wrong), _PRINTED_SOURCE, None, note)


def _find_correct_keys(table: str, values: PublishedValues) -> list[CellKey]:
    return [key for key in values if key[0] == table and key[2] == "correct"]


def _compare_ratings(values: PublishedValues, rated: Sequence[RatedErrorType]) -> Iterator[Cell]:
    """Yield the mean ratings of our types beside those that section 3.3 prints."""
    for error_type in rated:
        key = "Table 4", error_type.name, _RATING_COLUMN
        # An example set that was chosen for its mean cannot confirm that mean.
        evidence = f"{', '.join(error_type.ids)} ({error_type.evidence})"
        if error_type.is_fitted:
            yield make_uncompared_cell(
                values, key, error_type.unacceptable, _RATINGS_SOURCE, note=f"{_FITTED_NOTE}; {evidence}"
            )
            continue
        cell = make_cell(values, key, error_type.unacceptable, _RATINGS_SOURCE, note=evidence)
        gap = abs(error_type.unacceptable - _parse_number(values, key))
        # A disagreement of a hundredth may be another selection of pairs; the size of the gap lets the reader judge.
        yield cell if cell.agrees else replace(cell, note=f"{gap:.3f} from what is printed; {evidence}")


def load_linguistic_inquiry() -> Suite:
    """Return the sentences and pairs of Linguistic Inquiry in LI-Adger."""
    suite = load_suite("li_adger")
    # The rest of LI-Adger is from Adger's textbook, which belongs to suite II in the paper.
    contrasts = tuple(contrast for contrast in suite.contrasts if contrast.tags.get("source") == "LI")
    sentences = tuple(sentence for sentence in suite.sentences if sentence.tags["source"] == "LI")
    return replace(suite, name="li_adger/LI", sentences=sentences, contrasts=contrasts)


def _compute_by_edit(target_pairs: TargetContrasts, model: str, side: SideResults) -> Iterator[Cell]:
    """Yield the results of a model on the pairs of Linguistic Inquiry, by kind of edit."""
    n_pairs = len(side.parts[-1].pairs.contrasts)
    note = f"{len(target_pairs.suite.contrasts)} of {n_pairs} pairs; the paper's selection is unpublished"
    # No resamples: a cell holds one number, so that intervals would be computed for nothing.
    for group in group_contrasts(target_pairs, "edit", bootstrap=Bootstrap(0)):
        row = f"{model}, {side.name}: {group.name.removeprefix('edit=')}"
        for column, ours in _make_columns(group).items():
            yield Cell("Linguistic Inquiry pairs", row, column, None, ours, f"re-scored with {model}", None, note)


def _make_columns(group: ContrastGroup) -> dict[str, float | str | None]:
    return {
        "pairs": str(group.directionality.n),
        "directionality": group.directionality.value,
        "repulsion": group.repulsion.value,
        "class": group.interaction_class,
    }


PAPER = Paper(
    "Park, Park and Song (2021), Deep learning can contrast the minimal pairs of syntactic data.",
    cells,
    tables=(
        *(f"Table {number}" for number in range(1, 5)),
        *(f"Figure {number}" for number in range(1, 5)),
        "Section 3.2",
        "Section 3.3",
        "Examples",
        "Left out",
        # The asterisk stands for the name of the user's file of pairs, where one is given.
        "Suite I: *",
        "Linguistic Inquiry pairs",
    ),
    options=(StudyOption("suite_i", Path, "A file of pairs, in place of the paper's first suite."),),
)
