"""Tables 2 to 5 of Niu and Penn (2020): point-biserial correlations (PBC) of scores and labels.

The score of a sentence is its log-probability (LOG) or e to the power of it (EXP): raw, per token, and as SLOR.

- Tables 2 and 5: one correlation over all of CoLA, with the sentences as they are and in lower case.
- Table 3: the median over the minimal structures of Linguistic Inquiry (section 5.2).
- Table 4: quantiles over groups of similar sentences of CoLA. The paper's "microgroups", which a linguist made of the
  first 2,010 sentences, are not published. Ours follow a rule: a sentence joins the group of the one before it if both
  are from the same source and at least 0.6 of their words match in order, by the ratio of ``difflib`` (twice the number
  of matching words over the number of all words, in lower case).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher

import numpy as np

from acceptability.errors import Undefined
from acceptability.measures.correlation import pearson
from acceptability.papers.cells import Cell, CellKey, PublishedValues, make_cell, make_uncompared_cell
from acceptability.suites import load_suite
from acceptability.text.words import find_word_spans
from acceptability.types import Floats, Scores, Sentence, Suite

ScoresByNorm = Mapping[str, Scores]
"""The scores of one model, by normalisation."""

NumberOrReason = tuple[float | None, str]
"""A number with a note, or None with the reason why there is none."""

ScoreScale = Callable[[Floats], Floats]
"""A transformation of log-probabilities before they are correlated."""

MinimalStructures = dict[str, tuple[Sentence, ...]]
"""The strings of each structure, by its name."""

Microgroup = tuple[Sentence, ...]
"""Similar sentences that follow one another in CoLA."""

_LABELLED_SUITES = ("cola/train", "cola/in_domain_dev", "cola/out_of_domain_dev")

N_SENTENCES = 2010
"""The number of sentences that are grouped: as in the paper, the first of the training set."""

# What ``difflib`` itself calls a close match (the cutoff of ``get_close_matches``); it was not fitted to anything.
SIMILARITY_THRESHOLD = 0.6
LARGE_GROUP = 4
"""Groups of more sentences than this are also reported separately, as in the paper."""

_SOURCE = "our groups"
_RULE = (
    f"our groups, not the paper's: neighbours of one source, alike in {SIMILARITY_THRESHOLD} of their words or more "
    "(difflib)"
)


def make_model_cell(table: str, row: str, column: str, number: NumberOrReason, model: str, *notes: str) -> Cell:
    """Return a cell with a number of a user's model and no printed value.

    Args:
        table: The table.
        row: The row.
        column: The column.
        number: The number with its note, or None with the reason.
        model: The model, for the column ``source``.
        notes: Further notes.
    """
    value, note = number
    joined_notes = "; ".join(filter(None, (note, *notes)))
    return make_cell({}, (table, row, column), value, f"re-scored with {model}", note=joined_notes)


def compute_pbc(sentences: Sequence[Sentence], scores: Scores, scale: ScoreScale) -> NumberOrReason:
    """Return the point-biserial correlation of scores and labels."""
    labels = np.array([float(sentence.label or 0) for sentence in sentences])
    # A point-biserial correlation is Pearson's with one variable of 0 and 1.
    try:
        return pearson(scale(scores.of(sentence.id for sentence in sentences)), labels), ""
    except Undefined as error:
        return None, str(error)


def summarise_over_sets(
    correlations: Sequence[NumberOrReason], statistics: Mapping[str, Callable[[Floats], float]]
) -> dict[str, NumberOrReason]:
    """Return statistics over the sets that have a correlation, with a note on how many have none.

    Args:
        correlations: The correlation of each set, or the reason why it has none.
        statistics: The statistics, by name.

    >>> summarise_over_sets([(1.0, ""), (0.5, ""), (None, "one class")], {"mean": mean})
    {'mean': (0.75, 'mean of 2 sets; 1 more have none and are left out')}
    """
    values = np.array([value for value, _ in correlations if value is not None])
    if not values.size:
        reason = f"no set has a correlation: {correlations[0][1]}" if correlations else "there is no such set"
        return dict.fromkeys(statistics, (None, reason))
    # A set with equal scores or labels has no correlation. Counting it as 0 would lower the mean without saying so.
    n_undefined = len(correlations) - len(values)
    left_out = f"; {n_undefined} more have none and are left out" if n_undefined else ""
    return {
        name: (statistic(values), f"{name} of {len(values)} sets{left_out}") for name, statistic in statistics.items()
    }


def mean(values: Floats) -> float:
    """Return the mean."""
    return float(values.mean())


def median(values: Floats) -> float:
    """Return the median."""
    return float(np.median(values))


def upper_quartile(values: Floats) -> float:
    """Return the third quartile, by linear interpolation."""
    return float(np.quantile(values, 0.75))


def lower_quartile(values: Floats) -> float:
    """Return the first quartile, by linear interpolation."""
    return float(np.quantile(values, 0.25))


def _exponentiate(logs: Floats) -> Floats:
    """Return e to the power of log-probabilities, scaled so that the largest is 1."""
    # Without the shift, log-probabilities below -745 underflow to 0. A correlation does not depend on the factor.
    return np.asarray(np.exp(logs - logs.max()))


def _identity(logs: Floats) -> Floats:
    return logs


# Table 4 calls the quartiles "breakpoints".
_STATISTICS = {"median": median, "upper breakpoint": upper_quartile, "lower breakpoint": lower_quartile, "mean": mean}
SCALES: dict[str, ScoreScale] = {"LOG": _identity, "EXP": _exponentiate}


def load_labelled_cola() -> Suite:
    """Return the 9,594 sentences of CoLA with published labels: the training set and both development sets."""
    sentences = tuple(sentence for name in _LABELLED_SUITES for sentence in load_suite(name).sentences)
    return Suite("cola, labelled", sentences)


def lowercase_suite(suite: Suite) -> Suite:
    """Return a suite with its sentences in lower case."""
    sentences = tuple(replace(sentence, text=sentence.text.lower()) for sentence in suite.sentences)
    return Suite(f"{suite.name}, lower case", sentences)


def compute_table_2(
    model: str, suite: Suite, scores_by_norm: ScoresByNorm, unigrams: str, missing: str
) -> Iterator[Cell]:
    """Yield the correlations of Table 2, one row for each normalisation.

    Args:
        model: The name of the model.
        suite: All labelled sentences.
        scores_by_norm: Their scores, by normalisation.
        unigrams: A note on the unigrams that SLOR subtracts.
        missing: Why there is no SLOR; empty if there is.
    """
    for norm, scores in scores_by_norm.items():
        notes = (f"{len(suite.sentences)} sentences", *([unigrams] if norm == "SLOR" else []), *scores.notes)
        for name, scale in SCALES.items():
            number = compute_pbc(suite.sentences, scores, scale)
            yield make_model_cell("Table 2", f"{model}, {norm}", name, number, model, *notes)
    if missing:
        yield from (make_model_cell("Table 2", f"{model}, SLOR", name, (None, missing), model) for name in SCALES)


def compute_table_5(
    model: str, suite: Suite, scores_by_case: Mapping[str, ScoresByNorm], norms: Mapping[str, str]
) -> Iterator[Cell]:
    """Yield the correlations of Table 5: with the sentences as they are, and in lower case.

    Args:
        model: The name of the model.
        suite: All labelled sentences.
        scores_by_case: Their scores, by case and normalisation.
        norms: The normalisations of the rows.
    """
    for norm in norms:
        for name, scale in SCALES.items():
            for case, scores in scores_by_case.items():
                number = compute_pbc(suite.sentences, scores[norm], scale)
                yield make_model_cell("Table 5", f"{model}, {norm}", f"{name} {case}", number, model)


def select_minimal_structures(suite: Suite) -> MinimalStructures:
    """Return the strings of each pair of sentence types that differ in nothing but their mark, ``g`` against ``*``.

    There are 57 such structures, of 16 strings each. Types marked ``?`` or ``??`` and Adger's textbook are left out.

    Args:
        suite: LI-Adger.
    """
    # Structures are coded in the ids: ``32.1.martin.1a.g.01`` and ``32.1.martin.1a.*.01`` are of the same one.
    types: dict[str, dict[str, list[Sentence]]] = {}
    for sentence in suite.sentences:
        structure, mark, _ = sentence.id.rsplit(".", 2)
        if sentence.tags["source"] == "LI" and mark in ("g", "*"):
            types.setdefault(structure, {}).setdefault(mark, []).append(sentence)
    return {name: (*marks["g"], *marks["*"]) for name, marks in types.items() if len(marks) == 2}


def compute_table_3(model: str, minimal: MinimalStructures, scores_by_norm: ScoresByNorm) -> Iterator[Cell]:
    """Yield the correlations of Table 3: the median over the minimal structures."""
    for norm, scores in scores_by_norm.items():
        for name, scale in SCALES.items():
            numbers = summarise_over_sets(
                [compute_pbc(strings, scores, scale) for strings in minimal.values()], {"median": median}
            )
            yield make_model_cell("Table 3", f"{model}, {norm}", name, numbers["median"], model)


def find_microgroups() -> list[Microgroup]:
    """Return the groups of the sentences that the paper groups, including those of a single sentence."""
    return group_similar_sentences(load_suite("cola/train").sentences[:N_SENTENCES])


def group_similar_sentences(sentences: Sequence[Sentence], threshold: float = SIMILARITY_THRESHOLD) -> list[Microgroup]:
    """Return runs of sentences in which every sentence is similar to its predecessor.

    Args:
        sentences: Sentences with a tag ``source``, in the order of CoLA.
        threshold: The smallest ratio of similar sentences.

    >>> texts = ["Ann saw him.", "Ann saw he.", "It rains."]
    >>> sentences = [Sentence(text, text, tags={"source": "a"}) for text in texts]
    >>> [len(group) for group in group_similar_sentences(sentences)]
    [2, 1]
    """
    runs: list[list[Sentence]] = []
    for sentence in sentences:
        if runs and are_similar(runs[-1][-1], sentence, threshold):
            runs[-1].append(sentence)
        else:
            runs.append([sentence])
    return [tuple(group) for group in runs]


def are_similar(first: Sentence, second: Sentence, threshold: float = SIMILARITY_THRESHOLD) -> bool:
    """Return whether two sentences are from one source and match in enough of their words, in order."""
    if first.tags["source"] != second.tags["source"]:
        return False
    # Without autojunk=False, difflib would ignore frequent words in sequences of 200 items or more.
    return SequenceMatcher(None, _split_words(first), _split_words(second), autojunk=False).ratio() >= threshold


def _split_words(sentence: Sentence) -> list[str]:
    return [sentence.text[start:end].lower() for start, end in find_word_spans(sentence.text, "split")]


def has_both_labels(group: Microgroup) -> bool:
    """Return whether a group has acceptable and unacceptable sentences, which a correlation needs."""
    return {sentence.label for sentence in group} >= {0, 1}


def compute_table_4(model: str, groups: Sequence[Microgroup], scores_by_norm: ScoresByNorm) -> Iterator[Cell]:
    """Yield the numbers of Table 4: quartiles and means of the correlations within groups.

    Args:
        model: The name of the model.
        groups: The groups.
        scores_by_norm: The scores of their sentences, by normalisation.
    """
    # A correlation needs both labels; a group of one sentence never has them.
    both = [group for group in groups if has_both_labels(group)]
    sizes = {
        "groups of 2 or more": both,
        f"groups above {LARGE_GROUP}": [group for group in both if len(group) > LARGE_GROUP],
    }
    for norm, scores in scores_by_norm.items():
        for name, scale in SCALES.items():
            for size, selected_groups in sizes.items():
                numbers = summarise_over_sets(
                    [compute_pbc(group, scores, scale) for group in selected_groups], _STATISTICS
                )
                for statistic, number in numbers.items():
                    row = f"{model}, {norm} {name}"
                    yield make_model_cell("Table 4", row, f"our {size}, {statistic}", number, model, _RULE)


def count_groups(groups: Sequence[Microgroup]) -> list[Cell]:
    """Return the numbers of our groups by size; the paper does not print those of its own."""
    sizes = [len(group) for group in groups]
    both = [len(group) for group in groups if has_both_labels(group)]
    counts = {f"groups of {size}": sizes.count(size) for size in range(1, LARGE_GROUP + 1)}
    counts |= {
        f"groups above {LARGE_GROUP}": sum(size > LARGE_GROUP for size in sizes),
        "groups with both classes": len(both),
        f"groups above {LARGE_GROUP} with both classes": sum(size > LARGE_GROUP for size in both),
    }
    return [
        make_cell({}, ("Section 5.1", "microgroups", name), count, _SOURCE, note=_RULE)
        for name, count in counts.items()
    ]


def compare_group_counts(values: PublishedValues, groups: Sequence[Microgroup]) -> dict[CellKey, Cell]:
    """Return our counts beside the paper's counts of its own groups, without comparing them."""
    # The paper counts groups of one sentence in one number and leaves them out of another.
    several = [len(group) for group in groups if len(group) > 1]
    row = "Section 5.1", "microgroups"
    counts: dict[CellKey, float] = {
        (*row, "sentences"): sum(map(len, groups)),
        (*row, "groups, with those of one sentence"): len(groups),
        (*row, "of those of two or more, of size 2 to 4 (%)"): 100
        * sum(n <= LARGE_GROUP for n in several)
        / len(several),
    }
    return {key: make_uncompared_cell(values, key, count, _SOURCE, note=_RULE) for key, count in counts.items()}
