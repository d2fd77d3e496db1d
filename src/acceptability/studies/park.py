"""Park, Park and Song (2021): Deep learning can contrast the minimal pairs of syntactic data.

What follows from the numbers that the paper prints: sums, shares, the classes of Table 3 over the rows of
Table 4, statistics from coefficients, the rank-sum test of error types. The paper's suites are unpublished
(DeKeyser's items, hand-made counterparts to CoLA, a selection of Linguistic Inquiry), so a user's models are
asked about what comes nearest (``park_suites``): a file of the user's or 98 pairs of ours, the pairs that stand in
CoLA's four textbooks, and the pairs of Linguistic Inquiry in LI-Adger. The error types are ours (``park_types``).

The paper counts sentences, that is, twice the pairs; Table 4 pools both BERTs, so 8 pairs are 32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from acceptability.contrasts import Group, TargetContrasts, groups
from acceptability.measures.contrast import repulsion
from acceptability.measures.interaction import ErrorType, error_types, interaction
from acceptability.protocols import Engine
from acceptability.scoring import Progress
from acceptability.stats.bootstrap import Bootstrap
from acceptability.stats.ranks import rank_sum
from acceptability.studies.cells import Cell, Key, Printed, beside, not_compared, printed
from acceptability.studies.park_judged import Side, ask, single_tokens
from acceptability.studies.park_statistics import accuracies, figures, ratings, regressions, variance
from acceptability.studies.park_suites import INQUIRY, suites
from acceptability.studies.park_tables import classes, convergence, counts, interactions, kinds, left_out, left_out_by
from acceptability.studies.park_tables import error_types as error_types_of
from acceptability.studies.park_types import Rated, rated_types
from acceptability.suites import load_suite
from acceptability.types import Suite

Values = Mapping[Key, Printed]

_PRINTED = "printed numbers"
_SUITES = {
    "Subtotal of II": ("Adger (2003)", "Carnie (2013)", "Miller (2002)", "Sportiche et al. (2013)"),
    "Total": ("DeKeyser (2000)", "Subtotal of II", "Sprouse et al. (2013)"),
}
_RATED = "rating of the unacceptable"
_RATINGS = "published ratings"
_FITTED = "fitted to what is printed, and so no test of it"


def cells(
    models: Sequence[str],
    *,
    suite_i: str | Path | None = None,
    engine: str | Engine = "local",
    progress: Progress | None = None,
) -> list[Cell]:
    """Return what follows from the paper's printed numbers, the suites, and how a user's models do on them.

    Args:
        suite_i: A file of pairs for suite I; 98 pairs of ours without it.
    """
    values, inquiry = printed("park"), linguistic_inquiry()
    parts, rated = suites(inquiry, suite_i), rated_types(inquiry)
    found = [*_sums(values), *_shares(values), *_examples(values), *_regressions(values), *_anova(values)]
    found += [*_classes(values), *_rank_sum(values), *_all_wrong(values), *_ratings(values, rated)]
    theirs = {each.name: each.accuracy for each in types(values)}
    found += [*counts(values, parts), *left_out(parts), *interactions(values)]
    found += ratings(values, rated, theirs, "the paper's accuracies", _RATINGS)
    sides = [ask(parts, models, side, engine, progress) for side in ("left", "right")] if models else []
    return found + [cell for side in sides for cell in _of_side(values, rated, side)]


def _of_side(values: Values, rated: Sequence[Rated], side: Side) -> Iterator[Cell]:
    """Yield all that the models give with the target on one side of insertions and deletions."""
    yield from left_out_by(side)
    yield from convergence(values, side)
    yield from kinds(side)
    yield from classes(side)
    yield from error_types_of(values, side)
    yield from regressions(values, side)
    yield from variance(values, side)
    yield from figures(side)
    yield from ratings(values, rated, accuracies(side), side.name, side.source)
    for model in side.models:
        yield from _by_edit(single_tokens(side.found[model, "III"]), model, side)


def _number(values: Values, key: Key) -> float:
    return float(values[key].value.replace(",", "").rstrip("%"))


def _counts(values: Values, key: Key) -> tuple[int, int]:
    correct, _, n = values[key].value.partition("/")
    return int(correct), int(n)


def _sums(values: Values) -> Iterator[Cell]:
    """Yield the sums of Tables 1 and 2."""
    for row, parts in _SUITES.items():
        for column in ("original", "manipulated"):
            total = sum(_number(values, ("Table 1", part, column)) for part in parts)
            yield beside(values, ("Table 1", row, column), total, _PRINTED)
        for model in ("base BERT correct", "large BERT correct"):
            correct, n = np.sum([_counts(values, ("Table 2", part, model)) for part in parts], axis=0).tolist()
            yield beside(values, ("Table 2", row, model), f"{correct}/{n}", _PRINTED)


def _shares(values: Values) -> Iterator[Cell]:
    """Yield the percentages of Tables 2 and 4, from their counts."""
    for table, row, column in values:
        if column.endswith("correct"):
            correct, n = _counts(values, (table, row, column))
            note = 'headed "number of errors", which it is not' if table == "Table 4" else ""
            yield beside(values, (table, row, f"{column} %"), 100 * correct / n, _PRINTED, note=note)


def _examples(values: Values) -> Iterator[Cell]:
    """Yield the repulsion of examples 10 and 11."""
    for table, row, column in values:
        if column == "surprisals":
            ours = repulsion(*map(float, values[table, row, column].value.split()))
            yield beside(values, (table, row, "repulsion"), ours, _PRINTED)


def _regressions(values: Values) -> Iterator[Cell]:
    """Yield z and the odds ratio of the two logistic regressions, from their coefficients."""
    for name in ("version", "correctness"):
        row = f"logistic regression, {name}"
        b, error = (_number(values, ("Section 3.2", row, column)) for column in ("b", "SE"))
        yield beside(values, ("Section 3.2", row, "z"), b / error, _PRINTED)
        for column, z in (("OR", 0.0), ("OR, low", -1.959964), ("OR, high", 1.959964)):
            yield beside(values, ("Section 3.2", row, column), math.exp(b + z * error), _PRINTED)


def _anova(values: Values) -> Iterator[Cell]:
    """Yield the degrees of freedom of the analysis of variance, and its effect sizes."""
    pairs = _counts(values, ("Table 2", "Total", "base BERT correct"))[1] // 2
    residual = 2 * pairs - 3 * 2
    note = f"{pairs} pairs × 2 models − 3 suites × 2: pairs are counted here, and repulsion in percentage points"
    yield beside(values, ("Section 3.2", "ANOVA", "residual df"), float(residual), _PRINTED, note=note)
    for name in ("test suites", "interaction", "correctness"):
        row = f"ANOVA, {name}"
        f, df = (_number(values, ("Section 3.2", row, column)) for column in ("F", "df"))
        eta, key = f * df / (f * df + residual), ("Section 3.2", row, "partial eta squared")
        yield beside(values, key, f"{eta:.2e}" if "e" in values[key].value else eta, _PRINTED)


def types(values: Values) -> list[ErrorType]:
    """Return the 22 types of Table 4, with people's ratings of their unacceptable sentences."""
    found = []
    for table, row, column in values:
        if table == "Table 4" and column == "correct":
            correct, n = _counts(values, (table, row, column))
            found.append(ErrorType(row, correct / n, _number(values, (table, row, _RATED))))
    return found


def _classes(values: Values) -> Iterator[Cell]:
    """Yield our class of each type beside what the paper calls it; three are called "confused" without a grade."""
    for each in types(values):
        key = "Table 4", each.name, "class"
        ours, theirs = (
            interaction(each.accuracy, _number(values, ("Table 4", each.name, "repulsion"))),
            values[key].value,
        )
        if theirs == "confused":
            yield Cell(*key, theirs, ours, _PRINTED, ours.endswith(f" {theirs}"), "the text gives no grade")
        else:
            yield beside(values, key, ours, _PRINTED)


def _rank_sum(values: Values) -> Iterator[Cell]:
    """Yield the rank-sum test of people's ratings: types above the threshold against those below it."""
    below, above = error_types(types(values))
    test = rank_sum([each.rating for each in above], [each.rating for each in below])
    table, row = "Section 3.3", "unacceptable, below against above"
    yield beside(values, (table, row, "W"), test.w, _PRINTED)
    yield Cell(table, row, "p", values[table, row, "p"].value, test.p, _PRINTED, test.p < 0.05)
    size = None if test.z_by_root_n is None else abs(test.z_by_root_n)
    yield beside(values, (table, row, "r"), size, _PRINTED, note="z / √N")
    yield beside(values, (table, row, "rank-biserial correlation"), abs(test.rank_biserial), _PRINTED)
    yield beside(values, (table, "acceptable, below against above", "W"), None, _PRINTED)


def _all_wrong(values: Values) -> Iterator[Cell]:
    """Yield how many sentences of Table 4 are wrong: it lists every error in suite III, and Table 2 has as many."""
    wrong = sum(n - correct for correct, n in (_counts(values, key) for key in _correct_of("Table 4", values)))
    of_three = [_counts(values, ("Table 2", INQUIRY, f"{model} BERT correct")) for model in ("base", "large")]
    theirs = sum(n - correct for correct, n in of_three)
    note = f"Table 2 leaves {theirs} sentences of suite III wrong"
    yield Cell("Table 4", "all types", "wrong", None, str(wrong), _PRINTED, None, note)


def _correct_of(table: str, values: Values) -> list[Key]:
    return [key for key in values if key[0] == table and key[2] == "correct"]


def _ratings(values: Values, rated: Sequence[Rated]) -> Iterator[Cell]:
    """Yield the mean ratings of our types beside those that section 3.3 prints."""
    for each in rated:
        key = "Table 4", each.name, _RATED
        told = f"{', '.join(each.ids)} ({each.evidence})"
        if each.is_fitted:
            yield not_compared(values, key, each.unacceptable, _RATINGS, note=f"{_FITTED}; {told}")
            continue
        cell = beside(values, key, each.unacceptable, _RATINGS, note=told)
        gap = abs(each.unacceptable - _number(values, key))
        yield cell if cell.agrees else replace(cell, note=f"{gap:.3f} from what is printed; {told}")


def linguistic_inquiry() -> Suite:
    """Return the sentences and pairs of Linguistic Inquiry in LI-Adger."""
    suite = load_suite("li_adger")
    contrasts = tuple(each for each in suite.contrasts if each.tags.get("source") == "LI")
    sentences = tuple(each for each in suite.sentences if each.tags["source"] == "LI")
    return Suite("li_adger/LI", sentences, contrasts)


def _by_edit(found: TargetContrasts, model: str, side: Side) -> Iterator[Cell]:
    """Yield how a model does on the pairs of Linguistic Inquiry, by kind of edit."""
    whole = len(side.parts[-1].pairs.contrasts)
    note = f"{len(found.suite.contrasts)} of {whole} pairs; the paper's selection is unpublished"
    for each in groups(found, "edit", bootstrap=Bootstrap(0)):
        row = f"{model}, {side.name}: {each.name.removeprefix('edit=')}"
        for column, ours in _columns(each).items():
            yield Cell("Linguistic Inquiry pairs", row, column, None, ours, f"re-scored with {model}", None, note)


def _columns(each: Group) -> dict[str, float | str | None]:
    return {
        "pairs": str(each.directionality.n),
        "directionality": each.directionality.value,
        "repulsion": each.repulsion.value,
        "class": each.verdict,
    }
