"""Sections 1 to 4 of Niu and Penn (2020), on the published surprisals of Hu, Chen and Levy (2020).

Hu, Chen and Levy measure how well five models license reflexive pronouns. A combination is a model, an experiment and a
pronoun. All its sets of strings have the same structure, so that it is a table: a row for each set, a column for each
string, and every string of one of three classes (baseline, distractor, ungrammatical). Surprisals are in bits; a score
is the negative surprisal of the pronoun.

The module reads these tables, recomputes the accuracies that Hu, Chen and Levy published, and then the tests and
correlations of Niu and Penn, over all sets at once.

Two pitfalls of the data. The published accuracies take the ungrammatical strings from the column ``grammatical`` of the
stimuli, which is wrong on 1,120 rows of exp1a; the classes here follow ``mismatch_position``, which is right. And where
the three means of a set tie, as nearly always for the 5-gram, the published accuracies count the set as correct with
probability 1/3, at random.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc, ndtr, stdtr

from acceptability.errors import SuiteError
from acceptability.measures.classification import matthews
from acceptability.measures.correlation import average_ranks, pearson
from acceptability.papers.cells import Cell, CellKey, PublishedValue, PublishedValues, make_cell, read_published_files
from acceptability.suites import load_suite
from acceptability.text.io import read_dict_rows
from acceptability.types import Floats, Sentence, Suite

Flags = NDArray[np.bool_]
"""An array of truth values: for each set, or for each string of a set."""

CombinationKey = tuple[str, str, str]
"""Experiment, model and pronoun."""

NEURAL_MODELS = ("bert", "trans", "jrnn", "grnn")
"""The models whose sets Niu and Penn test: not the 5-gram, which gives most strings of a set the same surprisal."""

ACCURACY_COLUMNS = ("total_acc", "vs_baseline_acc", "vs_distractor_acc")

_PUBLISHED = "hu_reflexive/published"

_TABLE = "Hu et al. (2020)"
_BY_POSITION = "total_acc, by mismatch_position"

_SCORES = "published scores"
# The two figures show single combinations, chosen by the paper.
_FIGURE_1_COMBINATIONS = ("exp1b-ml-comp grnn herself", "exp1b-ml-comp trans themselves")
_FIGURE_2_ITEM = ("exp1b-ml-comp grnn himself", "42")
_FIVE_GRAM_NOTE = "the 5-gram's PBCs, all within .007 of 0,"
_SIDES = {"baseline": ("baseline",), "distractor": ("distractor",), "both": ("baseline", "distractor")}

KeyedNumbers = Iterator[tuple[CellKey, float | str, str]]
"""Table, row and column; our number; a note."""


@dataclass(frozen=True, eq=False)
class Combination:
    """The surprisals that one model gives to the sets of one experiment and pronoun.

    Args:
        model: The model, as the files name it.
        experiment: The experiment.
        pronoun: The reflexive pronoun.
        items: The name of each set.
        surprisals: The pronoun's surprisal in bits, a row for each set, a column for each string.
        classes: The class of each column: baseline, distractor or ungrammatical.
        marked_grammatical: Which columns the stimuli mark as grammatical, correctly or not.
    """

    model: str
    experiment: str
    pronoun: str
    items: tuple[str, ...]
    surprisals: Floats
    classes: tuple[str, ...]
    marked_grammatical: Flags

    @property
    def key(self) -> CombinationKey:
        """Experiment, model and pronoun."""
        return self.experiment, self.model, self.pronoun

    @property
    def name(self) -> str:
        """Experiment, model and pronoun, as tables show them."""
        return " ".join(self.key)

    @property
    def is_grammatical(self) -> Flags:
        """Which columns are grammatical: baseline and distractor."""
        return self.mask_classes("baseline", "distractor")

    @property
    def grammatical_surprisals(self) -> Floats:
        """The surprisals of the grammatical strings."""
        return self.surprisals[:, self.is_grammatical]

    @property
    def ungrammatical_surprisals(self) -> Floats:
        """The surprisals of the ungrammatical strings."""
        return self.surprisals[:, ~self.is_grammatical]

    def mask_classes(self, *classes: str) -> Flags:
        """Return which columns are of some classes."""
        return np.isin(self.classes, classes)


def load_combinations() -> list[Combination]:
    """Return every combination whose surprisals are published: five models in all."""
    stimuli = _group_stimuli(load_suite("hu_reflexive"))
    return [
        _read_combination(path, content, stimuli)
        for path, content in read_published_files(_PUBLISHED).items()
        if path.startswith("data/surprisal/")
    ]


def read_published_accuracies() -> dict[CombinationKey, dict[str, str]]:
    """Return the published accuracies as printed in the files, by experiment, model and pronoun."""
    return {
        (row["exp"], row["model"], row["pronoun"]): {name: row[name] for name in ACCURACY_COLUMNS}
        for path, content in read_published_files(_PUBLISHED).items()
        if path.startswith("data/accuracy/")
        for _, row in read_dict_rows(content, path)
    }


def _group_stimuli(suite: Suite) -> dict[tuple[str, str], list[Sentence]]:
    stimuli: dict[tuple[str, str], list[Sentence]] = {}
    for sentence in suite.sentences:
        stimuli.setdefault((sentence.tags["experiment"], sentence.tags["pronoun"]), []).append(sentence)
    return stimuli


def _read_combination(path: str, content: bytes, stimuli: Mapping[tuple[str, str], Sequence[Sentence]]) -> Combination:
    model, experiment, file = path.split("/")[2:]
    pronoun = file.partition("_")[0]
    sentences = stimuli[experiment, pronoun]
    surprisals = np.array(list(_read_surprisals(path, content, pronoun)))
    if len(surprisals) != len(sentences):
        raise SuiteError(f"{path}: {len(surprisals)} surprisals of {pronoun!r}; there are {len(sentences)} sentences")
    set_indices = _group_by_set(sentences)
    first_set = [sentences[index] for index in set_indices[0]]
    return Combination(
        model,
        experiment,
        pronoun,
        tuple(sentences[indices[0]].tags["item"] for indices in set_indices),
        surprisals[np.array(set_indices)],
        tuple(sentence.tags["class"] for sentence in first_set),
        np.array([sentence.tags["grammatical"] == "1" for sentence in first_set]),
    )


def _group_by_set(sentences: Sequence[Sentence]) -> list[list[int]]:
    """Return the indices of each set's strings; every set must have the same classes in the same order."""
    sets: dict[str, list[int]] = {}
    for index, sentence in enumerate(sentences):
        sets.setdefault(sentence.tags["item"], []).append(index)
    # The table of a combination has one class for each column: that is only true if all sets have one pattern.
    shapes = {
        tuple((sentences[index].tags["class"], sentences[index].tags["grammatical"]) for index in indices)
        for indices in sets.values()
    }
    if len(shapes) > 1:
        raise SuiteError(f"the sets of {sentences[0].id} differ in the classes of their strings; expected one pattern")
    return list(sets.values())


def _read_surprisals(path: str, content: bytes, pronoun: str) -> Iterator[float]:
    """Yield the pronoun's surprisal in each sentence, in the order of the stimuli."""
    # Some models have a CSV file with a row for each sentence. The others have a line for each token; of these only the
    # lines of the pronoun count, which occurs once in a sentence.
    if path.endswith(".csv"):
        yield from (float(row["surprisal"]) for _, row in read_dict_rows(content, path))
    else:
        yield from map(float, re.findall(rf"^{pronoun}\t(\S+)\s*$".encode(), content, re.MULTILINE))


@dataclass(frozen=True, eq=False)
class SetCorrectness:
    """Whether the ungrammatical strings of each set have the highest mean surprisal, strictly.

    Args:
        total: Whether it is higher than both other means.
        vs_baseline: Whether it is higher than that of the baseline strings.
        vs_distractor: Whether it is higher than that of the distractor strings.
        is_tied: Whether all three means are equal.
    """

    total: Flags
    vs_baseline: Flags
    vs_distractor: Flags
    is_tied: Flags

    def compute_accuracies(self) -> dict[str, float]:
        """Return the three accuracies under their published names."""
        flags = (self.total, self.vs_baseline, self.vs_distractor)
        return {name: float(is_correct.mean()) for name, is_correct in zip(ACCURACY_COLUMNS, flags, strict=True)}


def evaluate_by_position(combination: Combination) -> SetCorrectness:
    """Return which sets are correct if the classes follow ``mismatch_position``, which is right."""
    return _evaluate_sets(
        combination.surprisals,
        combination.mask_classes("baseline"),
        combination.mask_classes("distractor"),
        combination.mask_classes("ungrammatical"),
    )


def evaluate_as_marked(combination: Combination) -> SetCorrectness:
    """Return which sets are correct if the column ``grammatical`` decides what is ungrammatical, as published."""
    # Baseline and distractor still follow the position: only the ungrammatical strings were selected by that column.
    return _evaluate_sets(
        combination.surprisals,
        combination.mask_classes("baseline"),
        combination.mask_classes("distractor"),
        ~combination.marked_grammatical,
    )


def _evaluate_sets(surprisals: Floats, baseline: Flags, distractor: Flags, ungrammatical: Flags) -> SetCorrectness:
    ungrammatical_mean, baseline_mean, distractor_mean = (
        surprisals[:, part].mean(axis=1) for part in (ungrammatical, baseline, distractor)
    )
    # Exact equality: a model that backs off to the same estimate gives the strings equal surprisals to the last digit.
    is_tied = (ungrammatical_mean == baseline_mean) & (ungrammatical_mean == distractor_mean)
    return SetCorrectness(
        (ungrammatical_mean > baseline_mean) & (ungrammatical_mean > distractor_mean),
        ungrammatical_mean > baseline_mean,
        ungrammatical_mean > distractor_mean,
        is_tied,
    )


def compute_accuracy_cells(all_combinations: Sequence[Combination]) -> list[Cell]:
    """Return each published accuracy with ours beside it."""
    by_key = {combination.key: combination for combination in all_combinations}
    return [
        cell
        for name, row in read_published_accuracies().items()
        for cell in _compute_row(by_key.get(name), " ".join(name), row)
    ]


def _compute_row(combination: Combination | None, name: str, row: Mapping[str, str]) -> list[Cell]:
    values: dict[CellKey, PublishedValue] = {
        (_TABLE, name, column): PublishedValue(value) for column, value in row.items()
    }
    # Accuracies are published for two more models (rnng and tiny) than the surprisals that are read here.
    if combination is None:
        note = "the surprisals of this model, which Niu and Penn leave aside, are not among the files read here"
        return [make_cell(values, key, None, "not computed", note=note) for key in values]
    correctness = evaluate_as_marked(combination)
    ours = correctness.compute_accuracies()
    cells = [make_cell(values, key, ours[key[2]], _SCORES, note=_note_ties(correctness, key[2])) for key in values]
    n_contradicted = int((combination.marked_grammatical != combination.is_grammatical).sum()) * len(combination.items)
    if n_contradicted:
        share = evaluate_by_position(combination).compute_accuracies()["total_acc"]
        note = (
            "the published one follows the column grammatical, which contradicts the sentences on "
            f"{n_contradicted:,} rows"
        )
        cells.append(make_cell({}, (_TABLE, name, _BY_POSITION), share, _SCORES, note=note))
    return cells


def _note_ties(correctness: SetCorrectness, column: str) -> str:
    """Return a note on how ties were broken; only the total accuracy breaks them."""
    if column != "total_acc" or not correctness.is_tied.any():
        return ""
    # The lots of the published accuracies cannot be drawn again; their expectation can be computed.
    expected = float((correctness.total + correctness.is_tied / 3).mean())
    return (
        f"{correctness.is_tied.sum()} of {len(correctness.is_tied)} sets tie; the published accuracy counts a tie as "
        f"right once in three, at random, so that {expected:.3f} was to be expected; ours counts none"
    )


def compute_set_cells(values: PublishedValues, all_combinations: Sequence[Combination]) -> list[Cell]:
    """Return the numbers of sections 1 to 4 and of Figures 1 and 2."""
    neural = [combination for combination in all_combinations if combination.model in NEURAL_MODELS]
    by_name = {combination.name: combination for combination in all_combinations}
    parts: list[KeyedNumbers] = [
        _compute_sizes(neural),
        _test_normality(neural),
        _test_differences(neural),
        _compute_figure_1([by_name[name] for name in _FIGURE_1_COMBINATIONS]),
        _compute_figure_2(by_name[_FIGURE_2_ITEM[0]]),
        _compute_section_4(all_combinations),
    ]
    return [make_cell(values, key, ours, _SCORES, note=note) for part in parts for key, ours, note in part]


def _compute_sizes(neural: Sequence[Combination]) -> KeyedNumbers:
    table = "Section 1"
    row = "sets of Hu et al."
    yield (table, row, "strings in a set, at most"), max(len(combination.classes) for combination in neural), ""
    yield (table, row, "sets in an experiment, at most"), max(len(combination.items) for combination in neural), ""
    classes = len({name for combination in neural for name in combination.classes})
    yield (table, "accuracy of Hu et al.", "guessing (%)"), 100 / classes, f"one of {classes} classes"


def _test_normality(neural: Sequence[Combination]) -> KeyedNumbers:
    """Yield the share of sets with unequal variances (Levene) and of sets that are not normal (Shapiro-Wilk)."""
    # The paper takes Levene's test for one of normality and does not print its groups or scale; no choice gives exactly
    # its numbers. So there are several rows: surprisals, two transformations of them, and a real test of normality.
    groups = (
        "two groups, grammatical and not; centre = median; it asks whether they vary alike, not whether all is normal"
    )
    bits = "the surprisals are bits, so that this is no probability; the next row is"
    yield from _count_significant("Levene's test", _run_levene(neural, lambda surprisal: surprisal), groups)
    yield from _count_significant(
        "Levene's test, on e^-surprisal", _run_levene(neural, lambda surprisal: np.exp(-surprisal)), bits
    )
    yield from _count_significant("Levene's test, on probabilities", _run_levene(neural, _to_probability), "")
    normal = "all strings of a set together; it does ask whether they are normal"
    yield from _count_significant(
        "Shapiro–Wilk test", [shapiro_wilk(combination.surprisals) for combination in neural], normal
    )
    yield from _count_significant(
        "Shapiro–Wilk test, on probabilities",
        [shapiro_wilk(_to_probability(combination.surprisals)) for combination in neural],
        "",
    )


def _to_probability(bits: Floats) -> Floats:
    return np.asarray(np.exp2(-bits))


def _run_levene(neural: Sequence[Combination], scale: Callable[[Floats], Floats]) -> list[Floats]:
    return [
        levene(scale(combination.grammatical_surprisals), scale(combination.ungrammatical_surprisals))
        for combination in neural
    ]


def _count_significant(row: str, tests: Sequence[Floats], note: str) -> KeyedNumbers:
    p = np.concatenate(tests)
    size_note = f"of {len(p)} sets"
    full_note = "; ".join(filter(None, (size_note, note)))
    yield ("Section 3.1", row, "significant at .05 (%)"), _to_percent(p < 0.05), full_note
    yield ("Section 3.1", row, "only at .1 (%)"), _to_percent((p >= 0.05) & (p < 0.1)), size_note


def _to_percent(flags: Flags) -> float:
    return 100 * float(flags.mean())


def _test_differences(neural: Sequence[Combination]) -> KeyedNumbers:
    """Yield in how many sets the Mann-Whitney test finds no difference, by the paper's convention and by today's."""
    table = "Section 3.2"
    two_sided = [
        mann_whitney(combination.grammatical_surprisals, combination.ungrammatical_surprisals) for combination in neural
    ]
    # The paper calls correct sets "numerator sets", since they are counted in the numerator of the accuracy.
    is_correct = [evaluate_by_position(combination).total for combination in neural]
    convention = "half of the two-sided p, as SciPy's old default gave"
    significant = [halve_p_values(p) < 0.05 for p in two_sided]
    yield from _count_not_significant(is_correct, significant, "", convention)
    yield from _count_not_significant(is_correct, [p < 0.05 for p in two_sided], ", two-sided test", "today's default")
    yield (table, "combinations", "in all"), len(neural), f"of {', '.join(NEURAL_MODELS)}, an experiment and a pronoun"
    pairs = list(zip(is_correct, significant, strict=True))
    none = sum(not (correct & clear).any() for correct, clear in pairs)
    yield (table, "combinations", "without one significant numerator set"), none, convention
    below = [(~correct, clear) for correct, clear in pairs if not correct.all()]
    yield (table, "combinations", "below 100% accuracy"), len(below), ""
    none = sum(not (wrong & clear).any() for wrong, clear in below)
    yield (table, "combinations", "... without one significant other set"), none, convention


def _count_not_significant(
    is_correct: Sequence[Flags], significant: Sequence[Flags], kind: str, note: str
) -> KeyedNumbers:
    is_right, is_clear = np.concatenate(is_correct), np.concatenate(significant)
    for row, part in (("numerator sets", is_right), ("other sets", ~is_right)):
        unclear = ~is_clear[part]
        count = f"{unclear.sum()}/{len(unclear)}"
        yield ("Section 3.2", row + kind, "not significant (%)"), _to_percent(unclear), f"{count} at .05; {note}"
        yield ("Section 3.2", row + kind, "not significant"), count, ""


def _compute_figure_1(combinations: Sequence[Combination]) -> KeyedNumbers:
    for combination in combinations:
        is_correct = evaluate_by_position(combination).total
        yield (
            ("Figure 1", combination.name, "accuracy (%)"),
            _to_percent(is_correct),
            f"{is_correct.sum()} of {len(is_correct)} sets",
        )
        yield (
            ("Figure 1", combination.name, "PBC over all strings"),
            compute_overall_pbc(combination),
            f"{combination.surprisals.size} strings",
        )
        # Two ways to average: one correlation over all strings, and the mean of one for each set.
        by_set = point_biserial(-combination.surprisals, combination.is_grammatical)
        yield ("Figure 1", combination.name, "mean of the sets' PBCs"), float(by_set.mean()), f"{len(by_set)} sets"


def _compute_figure_2(combination: Combination) -> KeyedNumbers:
    scores = -combination.surprisals[combination.items.index(_FIGURE_2_ITEM[1])]
    for name, classes in _SIDES.items():
        part = combination.mask_classes(*classes, "ungrammatical")
        selected_scores, labels = scores[part], combination.is_grammatical[part].astype(np.float64)
        row, mean = f"{name} vs ungrammatical", selected_scores.mean()
        yield (
            ("Figure 2", row, "PBC"),
            pearson(selected_scores, labels),
            f"item {_FIGURE_2_ITEM[1]} of {combination.name}",
        )
        # An MCC needs decisions, and surprisals have no natural threshold: the figure cuts at the mean.
        mcc = matthews((selected_scores > mean).astype(np.float64), labels)
        yield ("Figure 2", row, "MCC"), mcc, "cut at the mean of both"


def compute_overall_pbc(combination: Combination) -> float:
    """Return the point-biserial correlation over all strings of all sets."""
    return pearson(
        -combination.surprisals.ravel(), np.tile(combination.is_grammatical.astype(np.float64), len(combination.items))
    )


def _compute_section_4(all_combinations: Sequence[Combination]) -> KeyedNumbers:
    """Yield the ranges of accuracy and PBC, and their rank correlation, over all five models."""
    published_accuracies = read_published_accuracies()
    accuracy = np.array([float(published_accuracies[combination.key]["total_acc"]) for combination in all_combinations])
    # The 5-gram distinguishes the classes in almost no set: most of its PBCs are rounding noise around 0. Ranks would
    # turn differences of 1e-17 into whole ranks, hence the rounding.
    pbc = np.array([compute_overall_pbc(combination) for combination in all_combinations]).round(12)
    neural = np.array([combination.model in NEURAL_MODELS for combination in all_combinations])
    yield from _compute_range("accuracy (%)", 100 * accuracy)
    yield from _compute_range("PBC over all strings", pbc)
    yield from _correlate_accuracy_and_pbc("", accuracy, np.where(neural, pbc, 0.0), f"{_FIVE_GRAM_NOTE} taken as 0")
    yield from _correlate_accuracy_and_pbc(
        ", all PBCs as they are", accuracy, pbc, f"{_FIVE_GRAM_NOTE} only freed of rounding noise"
    )


def _correlate_accuracy_and_pbc(kind: str, accuracy: Floats, pbc: Floats, note: str) -> KeyedNumbers:
    rho, row = pearson(average_ranks(accuracy), average_ranks(pbc)), f"accuracy and PBC{kind}"
    yield ("Section 4", row, "Spearman's correlation"), rho, f"over {len(pbc)} combinations; {note}"
    yield ("Section 4", row, "p"), f"{_compute_correlation_p(rho, len(pbc)):.1e}", ""


def _compute_range(row: str, values: Floats) -> KeyedNumbers:
    yield ("Section 4", row, "lowest"), float(values.min()), ""
    yield ("Section 4", row, "highest"), float(values.max()), ""


def _compute_correlation_p(r: float, n: int) -> float:
    """Return the two-sided p of a correlation, by Student's t."""
    # As ``scipy.stats.spearmanr`` does, though the t distribution is an approximation for ranks.
    return 2 * float(stdtr(n - 2, -abs(r) * math.sqrt((n - 2) / (1 - r * r))))


def mann_whitney(first: Floats, second: Floats) -> Floats:
    """Return the two-sided p of the Mann-Whitney U test for each row.

    By the normal approximation with corrections for ties and continuity, as ``scipy.stats.mannwhitneyu`` computes it,
    for all rows at once. Where all values of a row are equal, p is 1.

    Args:
        first: The values of the first group, a row for each test.
        second: The values of the second group.

    >>> mann_whitney(np.array([[1.0, 2.0, 3.0]]), np.array([[4.0, 5.0, 6.0]])).round(4)
    array([0.0809])
    """
    m, n = first.shape[1], second.shape[1]
    # All pairs of all rows at once: with at most 48 strings in a set, the arrays stay small.
    above = (first[:, :, None] > second[:, None, :]).sum(axis=(1, 2))
    tied = (first[:, :, None] == second[:, None, :]).sum(axis=(1, 2))
    statistic = above + tied / 2
    # U of one group and U of the other sum to m * n. The larger one makes the test two-sided.
    larger = np.maximum(statistic, m * n - statistic)
    standard_deviation = np.sqrt(
        m * n / 12 * (m + n + 1 - _compute_tie_correction(np.hstack((first, second))) / ((m + n) * (m + n - 1)))
    )
    # A row of equal values has no variance: 0 / 0 is expected there, and replaced below.
    with np.errstate(divide="ignore", invalid="ignore"):
        z = (larger - m * n / 2 - 0.5) / standard_deviation
    return np.asarray(np.where(standard_deviation > 0, np.minimum(2 * ndtr(-z), 1.0), 1.0))


def halve_p_values(p: Floats) -> Floats:
    """Return half of a two-sided p, whatever the direction of the difference.

    Old versions of SciPy gave that by default (``alternative=None``), and the paper used it.
    """
    return np.asarray(p / 2)


def _compute_tie_correction(values: Floats) -> Floats:
    """Return the sum of t^3 - t over the groups of t equal values in each row."""
    equal_counts = (values[:, :, None] == values[:, None, :]).sum(axis=2)
    return np.asarray((equal_counts.astype(np.float64) ** 2 - 1).sum(axis=1))


def levene(first: Floats, second: Floats) -> Floats:
    """Return the p of Levene's test (equal variances) for each row, about the medians; 1 where nothing varies.

    Args:
        first: The values of the first group, a row for each test.
        second: The values of the second group.
    """
    # About the median, as SciPy does by default (the Brown-Forsythe variant).
    groups = [np.abs(values - np.median(values, axis=1, keepdims=True)) for values in (first, second)]
    n = first.shape[1] + second.shape[1]
    middle = np.hstack(groups).mean(axis=1)
    between = sum(spread.shape[1] * (spread.mean(axis=1) - middle) ** 2 for spread in groups)
    within = sum(((spread - spread.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for spread in groups)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = (n - 2) * between / within
    # 0 / 0 where nothing varies within and between the groups: no evidence against equal variances.
    return np.asarray(np.where(np.isnan(ratio), 1.0, fdtrc(1, n - 2, ratio)))


def shapiro_wilk(values: Floats) -> Floats:
    """Return the p of the Shapiro-Wilk test of normality for each row."""
    # Imported here: scipy.stats takes a noticeable part of a second, and nothing else in this module needs it.
    from scipy.stats import shapiro

    return np.array([shapiro(row).pvalue for row in values])


def point_biserial(scores: Floats, is_good: Flags) -> Floats:
    """Return the point-biserial correlation of each row with the classes of its columns; nan for a constant row."""
    labels = is_good.astype(np.float64) - is_good.mean()
    centred = scores - scores.mean(axis=1, keepdims=True)
    # Variation is decided by minimum and maximum: centring a constant row may leave rounding errors, whose correlation
    # would be an arbitrary number.
    lengths = np.sqrt((centred**2).sum(axis=1) * (labels @ labels))
    varies = scores.min(axis=1) < scores.max(axis=1)
    return np.asarray(np.divide(centred @ labels, lengths, out=np.full(len(scores), np.nan), where=varies))
