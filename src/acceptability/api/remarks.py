"""Remarks on improbable results: what is possible, but nearly always means a mistake in columns, labels or scores.

- Contrasts of two equal texts, and labels of one class.
- Scores that are all equal, and predictions that are all the same.
- Results clearly below chance, by an exact test: swapped columns, or a score that is higher for worse sentences.
- Words or characters that the model does not know: a suite in another language.

Each function returns the remarks of one kind, or none; ``collect_remarks`` returns all that apply to a result, which
stand among its notes.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from acceptability.measures.classification import AUC, MCC, Accuracy
from acceptability.measures.pairs import AbsolutePair
from acceptability.protocols import Measure
from acceptability.stats.permutation import sign_flip_test
from acceptability.stats.proportions import binomial_lower_tail, hypergeometric_lower_tail
from acceptability.stats.resampling import sum_by_cluster
from acceptability.types import Floats, Scores, Suite, Units

# Of a thousand results at chance, one is remarked on. At .05, a table of a hundred groups would have five remarks.
_ALPHA = 0.001

# The trigram model does not know 0 to 5 % of the words of most English suites of the catalog, and 20 % of those of
# CoLA's targeted set of word orders, which has many names; of three German sentences it does not know half.
_LARGE_UNKNOWN_SHARE = 1 / 3

# A model of characters has one token for each, and a vocabulary that knows the script fewer. Three bytes spell out most
# characters of other scripts.
_MANY_TOKENS_PER_CHARACTER = 1.2


def collect_remarks(suite: Suite, measure: Measure, scores: Scores, units: Units, by: str = "") -> tuple[str, ...]:
    """Return all remarks on a result.

    Args:
        suite: The suite that was measured.
        measure: The measure, with the threshold that it has for these scores.
        scores: The scores.
        units: The rows of the measure.
        by: The tag of the sampling units; empty for rows.
    """
    return (*remark_on_suite(suite, measure, units), *remark_on_scores(scores), *remark_on_rows(measure, units, by))


def remark_on_suite(suite: Suite, measure: Measure, units: Units | None = None) -> tuple[str, ...]:
    """Return remarks on the contrasts or labels that a measure uses, whatever the scores are.

    Args:
        units: The rows of the measure; None if it has none, since it is undefined.
    """
    remarks = []
    if "contrasts" in measure.needs and (same := _count_equal_members(suite)):
        # A few occur in published suites; where they are the rule, one column was probably given twice.
        hint = ": was one column given twice?" if same > len(suite.contrasts) / 2 else ""
        remarks.append(
            f"{same} of {len(suite.contrasts)} contrasts have the same text in both sentences, so that no score of the "
            f"text can tell them apart{hint}"
        )
    if measure.needs == "labels" and units and "label" in units.columns and _is_constant(units["label"]):
        kind = "acceptable" if units["label"][0] else "unacceptable"
        remarks.append(
            f"all {len(units)} labels are {kind}: the value is the share of sentences that the model finds {kind}, and "
            "says nothing about telling good sentences from bad ones"
        )
    return tuple(remarks)


def _count_equal_members(suite: Suite) -> int:
    """Return the number of contrasts whose sentences are the same."""
    texts = list(suite.texts)
    same = [pair for pair in suite.pairs.tolist() if texts[pair[0]] == texts[pair[1]]]
    # Two regions of one sentence may be contrasted, of which each has a score of its own.
    sentences = ((suite.sentences[better], suite.sentences[worse]) for better, worse in same)
    return sum(
        better.regions == worse.regions and better.tags.get("context") == worse.tags.get("context")
        for better, worse in sentences
    )


def remark_on_scores(scores: Scores) -> tuple[str, ...]:
    """Return a remark on scores that are all equal.

    >>> remark_on_scores(Scores({"a": -2.0, "b": -2.0}, "toy"))
    ("all 2 scores of 'toy' are -2: the model, or the column of scores, does not depend on the sentence",)
    """
    values = set(scores.values.values())
    if len(scores.values) < 2 or len(values) > 1:
        return ()
    (value,) = values
    return (
        f"all {len(scores.values)} scores of {scores.model!r} are {value:g}: the model, or the column of scores, does "
        "not depend on the sentence",
    )


def remark_on_rows(measure: Measure, units: Units, by: str = "") -> tuple[str, ...]:
    """Return remarks on predictions that are all the same, and on a result that is clearly below chance.

    Args:
        units: The rows of the measure.
        by: The tag of the sampling units; empty for rows.
    """
    return (*_remark_on_constant_predictions(measure, units), *_remark_on_chance(measure, units, by))


def remark_on_unknown_words(words: int, unknown: int) -> tuple[str, ...]:
    """Return a remark on a suite of which a word model does not know a third of the words, or more.

    Args:
        words: The number of words that were scored.
        unknown: How many of them are not in the model's vocabulary.

    >>> remark_on_unknown_words(100, 9)
    ()
    >>> len(remark_on_unknown_words(100, 90))
    1
    """
    if unknown == 0 or unknown < _LARGE_UNKNOWN_SHARE * words:
        return ()
    return (
        f"{unknown} of {words} words ({unknown / words:.0%}) are unknown to the model: is the suite in a language, or "
        "a notation, that it was not trained on?",
    )


def remark_on_characters(characters: int, tokens: int) -> tuple[str, ...]:
    """Return a remark on a suite of which a model reads more tokens than the text has characters.

    A tokenizer of bytes spells out the characters that its vocabulary lacks, as GPT-2's does those of most scripts.

    Args:
        characters: The number of characters that were scored.
        tokens: The number of tokens that they were divided into.

    >>> remark_on_characters(1000, 250)
    ()
    >>> len(remark_on_characters(1000, 2000))
    1
    """
    if tokens <= _MANY_TOKENS_PER_CHARACTER * characters:
        return ()
    return (
        f"the model reads {tokens:,} tokens for {characters:,} characters, so its vocabulary lacks most of them: is "
        "the suite in a script that it was not trained on?",
    )


def _remark_on_constant_predictions(measure: Measure, units: Units) -> tuple[str, ...]:
    predicted = _list_predictions(measure, units)
    if predicted is None or len(predicted) < 2 or not _is_constant(predicted) or predicted[0] not in (0, 1):
        return ()
    kind = "acceptable" if predicted[0] else "unacceptable"
    hint = ""
    # A given threshold may be on another scale; a fitted one that separates nothing says something about the scores.
    if units.refit is None:
        hint = ": does the threshold suit these scores?"
    return (f"every sentence is predicted to be {kind}, so that the value says nothing about the scores{hint}",)


def _list_predictions(measure: Measure, units: Units) -> Floats | None:
    """Return the predictions behind a measure, 1 for acceptable; None if it predicts nothing."""
    if "predicted" in units.columns:
        return units["predicted"]
    # Of classifiers with thresholds of different kinds, each has its own.
    if isinstance(measure, AbsolutePair) and not isinstance(measure.threshold, str):
        both = np.concatenate([units["better"], units["worse"]])
        return (both > measure.threshold).astype(np.float64)
    return None


def _remark_on_chance(measure: Measure, units: Units, by: str) -> tuple[str, ...]:
    if measure.chance is not None and measure.mean_of:
        return _remark_on_right_rows(measure.chance, units[measure.mean_of], units, by)
    # Sentences of one item depend on each other, and the exact test would then be none.
    if isinstance(measure, MCC | Accuracy | AUC) and len(units) and not by:
        return _remark_on_labels(units)
    return ()


def _remark_on_right_rows(chance: float, right: Floats, units: Units, by: str) -> tuple[str, ...]:
    """Return a remark if fewer rows are right than chance gives, by the exact binomial test; ties do not count."""
    counted = ~_find_ties(units) & np.isin(right, (0.0, 1.0))
    hits, n = int(right[counted].sum()), int(counted.sum())
    if n == 0 or hits >= chance * n:
        return ()
    if by:
        # The signs of whole sampling units are flipped, which is exact for a chance of one half only.
        if chance != 0.5:
            return ()
        sums, _ = sum_by_cluster(np.where(counted, right - chance, 0.0), units, by)
        p, test = sign_flip_test(sums, alternative="less")[0], f"sign-flip test by {by!r}"
    else:
        p, test = binomial_lower_tail(hits, n, chance), "exact binomial test"
    if p >= _ALPHA:
        return ()
    counts = f"{hits} of {n}" if n == len(units) else f"{hits} of {n} without a tie"
    return (
        f"below chance: {counts} are right, and chance gives a share of {chance:g} ({test}, p {_format_p(p)}): either "
        "the model prefers the worse sentence, or better and worse are exchanged, or a higher score is worse",
    )


def _find_ties(units: Units) -> NDArray[np.bool_]:
    """Return which rows are ties, whose two scores are equal: they count neither for nor against swapped columns."""
    if "gap" in units.columns:
        return np.asarray(units["gap"] == 0)
    if {"better", "worse"} <= units.columns.keys():
        return np.asarray(units["better"] == units["worse"])
    return np.zeros(len(units), dtype=bool)


def _remark_on_labels(units: Units) -> tuple[str, ...]:
    """Return a remark if acceptable sentences are accepted less often than others, by Fisher's exact test.

    Sentences are accepted by the predictions or, where these rest on a fitted threshold or there are none, by scores
    above the median: a threshold that is fitted to exchanged labels accepts everything, and shows nothing.
    """
    labels = units["label"]
    is_predicted = "predicted" in units.columns and units.refit is None
    accepted = units["predicted"] if is_predicted else (units["score"] > np.median(units["score"])).astype(np.float64)
    hits, yes, good, n = int(accepted @ labels), int(accepted.sum()), int(labels.sum()), len(labels)
    if hits * n >= yes * good:
        return ()
    p = hypergeometric_lower_tail(hits, yes, good, n)
    if p >= _ALPHA:
        return ()
    what = "are predicted to be acceptable" if is_predicted else "score above the median"
    return (
        f"below chance: {hits} of {good} acceptable and {yes - hits} of {n - good} unacceptable sentences {what}, and "
        f"chance gives equal shares (Fisher's exact test, p {_format_p(p)}): either the model prefers unacceptable "
        "sentences, or the labels are exchanged, or a higher score is worse",
    )


def _is_constant(values: Floats) -> bool:
    return bool(len(values)) and bool((values == values[0]).all())


def _format_p(p: float) -> str:
    return f"= {p:.1g}" if p >= 1e-300 else "< 1e-300"
