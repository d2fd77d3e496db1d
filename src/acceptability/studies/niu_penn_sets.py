"""Sections 1 to 4 of Niu and Penn (2020): what the surprisals of Hu, Chen and Levy (2020) tell, by set and together.

A score is the negative surprisal of the pronoun; baseline and distractor strings are grammatical.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from scipy.special import stdtr

from acceptability.measures.classification import matthews
from acceptability.measures.correlation import pearson, ranks
from acceptability.studies.cells import Cell, Key, Printed, beside
from acceptability.studies.hu import NEURAL, Combination, accuracies, right_by_position
from acceptability.studies.per_set import Flags, halved, levene, mann_whitney, point_biserial, shapiro_wilk
from acceptability.types import Floats

_SCORES = "published scores"
_FIGURE_1 = ("exp1b-ml-comp grnn herself", "exp1b-ml-comp trans themselves")
_FIGURE_2 = ("exp1b-ml-comp grnn himself", "42")
_FIVE_GRAM = "the 5-gram's PBCs, all within .007 of 0,"
_SIDES = {"baseline": ("baseline",), "distractor": ("distractor",), "both": ("baseline", "distractor")}

Found = Iterator[tuple[Key, float | str, str]]
"""Table, row and column; our number; a note."""


def set_cells(values: Mapping[Key, Printed], every: Sequence[Combination]) -> list[Cell]:
    """Return the numbers of sections 1 to 4 and of Figures 1 and 2."""
    neural = [each for each in every if each.model in NEURAL]
    by_name = {each.name: each for each in every}
    parts: list[Found] = [
        _sizes(neural),
        _normality(neural),
        _differences(neural),
        _figure_1([by_name[name] for name in _FIGURE_1]),
        _figure_2(by_name[_FIGURE_2[0]]),
        _aggregated(every),
    ]
    return [beside(values, key, ours, _SCORES, note=note) for part in parts for key, ours, note in part]


def _sizes(neural: Sequence[Combination]) -> Found:
    table = "Section 1"
    yield (table, "sets of Hu et al.", "strings in a set, at most"), max(len(each.classes) for each in neural), ""
    yield (table, "sets of Hu et al.", "sets in an experiment, at most"), max(len(each.items) for each in neural), ""
    classes = len({name for each in neural for name in each.classes})
    yield (table, "accuracy of Hu et al.", "guessing (%)"), 100 / classes, f"one of {classes} classes"


def _normality(neural: Sequence[Combination]) -> Found:
    """Yield in how many sets the two classes vary differently (Levene), and how many are not normal (Shapiro-Wilk)."""
    groups = (
        "two groups, grammatical and not; centre = median; it asks whether they vary alike, not whether all is normal"
    )
    bits = "the surprisals are bits, so that this is no probability; the next row is"
    yield from _two_levels("Levene's test", _levene(neural, lambda surprisal: surprisal), groups)
    yield from _two_levels(
        "Levene's test, on e^-surprisal", _levene(neural, lambda surprisal: np.exp(-surprisal)), bits
    )
    yield from _two_levels("Levene's test, on probabilities", _levene(neural, _probability), "")
    normal = "all strings of a set together; it does ask whether they are normal"
    yield from _two_levels("Shapiro–Wilk test", [shapiro_wilk(each.surprisals) for each in neural], normal)
    yield from _two_levels(
        "Shapiro–Wilk test, on probabilities", [shapiro_wilk(_probability(each.surprisals)) for each in neural], ""
    )


def _probability(bits: Floats) -> Floats:
    return np.asarray(np.exp2(-bits))


def _levene(neural: Sequence[Combination], scale: Callable[[Floats], Floats]) -> list[Floats]:
    return [levene(scale(each.good), scale(each.bad)) for each in neural]


def _two_levels(row: str, tests: Sequence[Floats], note: str) -> Found:
    p = np.concatenate(tests)
    of = f"of {len(p)} sets"
    yield ("Section 3.1", row, "significant at .05 (%)"), _percent(p < 0.05), "; ".join(filter(None, (of, note)))
    yield ("Section 3.1", row, "only at .1 (%)"), _percent((p >= 0.05) & (p < 0.1)), of


def _percent(flags: Flags) -> float:
    return 100 * float(flags.mean())


def _differences(neural: Sequence[Combination]) -> Found:
    """Yield in how many sets the Mann-Whitney test finds no difference, by the paper's convention and by today's."""
    table = "Section 3.2"
    two_sided = [mann_whitney(each.good, each.bad) for each in neural]
    right = [right_by_position(each).total for each in neural]
    convention = "half of the two-sided p, as SciPy's old default gave"
    significant = [halved(p) < 0.05 for p in two_sided]
    yield from _undecided(right, significant, "", convention)
    yield from _undecided(right, [p < 0.05 for p in two_sided], ", two-sided test", "today's default")
    yield (table, "combinations", "in all"), len(neural), f"of {', '.join(NEURAL)}, an experiment and a pronoun"
    none = sum(not (each & found).any() for each, found in zip(right, significant, strict=True))
    yield (table, "combinations", "without one significant numerator set"), none, convention
    below = [(~each, found) for each, found in zip(right, significant, strict=True) if not each.all()]
    yield (table, "combinations", "below 100% accuracy"), len(below), ""
    none = sum(not (each & found).any() for each, found in below)
    yield (table, "combinations", "... without one significant other set"), none, convention


def _undecided(right: Sequence[Flags], significant: Sequence[Flags], kind: str, note: str) -> Found:
    is_right, is_clear = np.concatenate(right), np.concatenate(significant)
    for row, part in (("numerator sets", is_right), ("other sets", ~is_right)):
        unclear = ~is_clear[part]
        count = f"{unclear.sum()}/{len(unclear)}"
        yield ("Section 3.2", row + kind, "not significant (%)"), _percent(unclear), f"{count} at .05; {note}"
        yield ("Section 3.2", row + kind, "not significant"), count, ""


def _figure_1(shown: Sequence[Combination]) -> Found:
    for each in shown:
        right = right_by_position(each).total
        yield ("Figure 1", each.name, "accuracy (%)"), _percent(right), f"{right.sum()} of {len(right)} sets"
        yield ("Figure 1", each.name, "PBC over all strings"), aggregated(each), f"{each.surprisals.size} strings"
        by_set = point_biserial(-each.surprisals, each.is_good)
        yield ("Figure 1", each.name, "mean of the sets' PBCs"), float(by_set.mean()), f"{len(by_set)} sets"


def _figure_2(of: Combination) -> Found:
    scores = -of.surprisals[of.items.index(_FIGURE_2[1])]
    for name, classes in _SIDES.items():
        part = of.among(*classes, "ungrammatical")
        given, labels = scores[part], of.is_good[part].astype(np.float64)
        row, mean = f"{name} vs ungrammatical", given.mean()
        yield ("Figure 2", row, "PBC"), pearson(given, labels), f"item {_FIGURE_2[1]} of {of.name}"
        mcc = matthews((given > mean).astype(np.float64), labels)
        yield ("Figure 2", row, "MCC"), mcc, "cut at the mean of both"


def aggregated(of: Combination) -> float:
    """Return the point-biserial correlation over all strings of all sets."""
    return pearson(-of.surprisals.ravel(), np.tile(of.is_good.astype(np.float64), len(of.items)))


def _aggregated(every: Sequence[Combination]) -> Found:
    """Yield how far accuracy and PBC range, and how they go together, over all five models."""
    published = accuracies()
    accuracy = np.array([float(published[each.key]["total_acc"]) for each in every])
    # The 5-gram tells the classes apart in almost no set: most of its PBCs are rounding noise about 0.
    pbc = np.array([aggregated(each) for each in every]).round(12)
    neural = np.array([each.model in NEURAL for each in every])
    yield from _range("accuracy (%)", 100 * accuracy)
    yield from _range("PBC over all strings", pbc)
    yield from _together("", accuracy, np.where(neural, pbc, 0.0), f"{_FIVE_GRAM} taken as 0")
    yield from _together(", all PBCs as they are", accuracy, pbc, f"{_FIVE_GRAM} only freed of rounding noise")


def _together(kind: str, accuracy: Floats, pbc: Floats, note: str) -> Found:
    rho, row = pearson(ranks(accuracy), ranks(pbc)), f"accuracy and PBC{kind}"
    yield ("Section 4", row, "Spearman's correlation"), rho, f"over {len(pbc)} combinations; {note}"
    yield ("Section 4", row, "p"), f"{_p_of_correlation(rho, len(pbc)):.1e}", ""


def _range(row: str, values: Floats) -> Found:
    yield ("Section 4", row, "lowest"), float(values.min()), ""
    yield ("Section 4", row, "highest"), float(values.max()), ""


def _p_of_correlation(r: float, n: int) -> float:
    """Return the two-sided p of a correlation, by Student's t."""
    return 2 * float(stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))
