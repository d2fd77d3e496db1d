"""Unknown words in a suite: which sentences have some, and how many contrasts depend on what these words get.

A score of a sentence with an unknown word says as much about the option ``unknown`` of the model as about the sentence.
Every result therefore counts such sentences and contrasts in its notes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property

import numpy as np

from acceptability.api.remarks import remark_on_characters, remark_on_unknown_words
from acceptability.outputs import SPELLED, UNKNOWN, UNSAID, IndexedOutputs, Ints, TokenColumns
from acceptability.protocols import Model
from acceptability.types import ModelOutput, Scores, Suite, TokenScores, Units

WordsById = Mapping[str, tuple[str, ...]]
"""The unknown words of each sentence that has some, by the sentence's id."""


def mark_unknown_tokens(batch: IndexedOutputs, model: Model) -> IndexedOutputs:
    """Return outputs that say which of their tokens are unknown, if the model can tell."""
    is_unknown = model.is_unknown
    if is_unknown is None:
        return batch
    # Outputs of plug-ins do not say it, nor do those that were stored by the version before.
    outputs = batch.outputs
    if isinstance(outputs, TokenColumns) and outputs.flags is not None and not (outputs.flags == UNSAID).any():
        return batch
    return replace(batch, outputs=[_mark_output(output, is_unknown) for output in outputs])


def _mark_output(output: ModelOutput, is_unknown: Callable[[str], bool]) -> ModelOutput:
    if not isinstance(output, TokenScores) or output.unknown is not None:
        return output
    return replace(output, unknown=tuple(index for index, token in enumerate(output.tokens) if is_unknown(token)))


class UnknownWordCounter:
    """Collects the unknown words of a suite batch by batch, and adds them to scores.

    Args:
        suite: The suite.
    """

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._words: dict[str, tuple[str, ...]] = {}
        self._tokens = self._unknown_tokens = self._characters = 0

    def add_batch(self, batch: Sequence[tuple[int, ModelOutput]]) -> None:
        """Add a batch of (sentence index, output)."""
        if isinstance(batch, IndexedOutputs) and isinstance(batch.outputs, TokenColumns):
            self._add_columns(batch.indices, batch.outputs, batch.rows)
            return
        for sentence_index, output in batch:
            if isinstance(output, TokenScores):
                self._tokens += len(output.tokens)
                self._characters += max(end for _, end in output.offsets) - output.offsets[0][0]
                if output.unknown:
                    self._unknown_tokens += len(output.unknown)
                    self._words[self._ids[sentence_index]] = output.unknown_words

    def _add_columns(self, indices: Ints, columns: TokenColumns, rows: Ints | None) -> None:
        """Add token scores in columns."""
        rows = np.arange(len(columns)) if rows is None else rows
        widths = np.maximum.reduceat(columns.spans[:, 1], columns.starts).astype(np.int64)
        widths -= columns.spans[columns.starts, 0]
        self._tokens += int(columns.counts[rows].sum())
        self._characters += int(widths[rows].sum())
        if columns.flags is None:
            return
        is_unknown = (columns.flags == UNKNOWN) | (columns.flags == SPELLED)
        unknown_counts = np.add.reduceat(is_unknown, columns.starts, dtype=np.int64)
        self._unknown_tokens += int(unknown_counts[rows].sum())
        words: dict[int, tuple[str, ...]] = {}
        positions = np.flatnonzero(is_unknown)
        # Plain integers, which are faster to index by than those of arrays.
        spans, tokens, position = columns.spans[positions].tolist(), positions.tolist(), 0
        unknown_rows = np.flatnonzero(unknown_counts)
        for row, count in zip(unknown_rows.tolist(), unknown_counts[unknown_rows].tolist(), strict=True):
            text, own = columns.texts[row], range(position, position + count)
            words[row] = tuple([text[slice(*spans[n])].strip() or columns.tokens[tokens[n]] for n in own])
            position = own.stop
        has_unknown = unknown_counts[rows] > 0
        for index, row in zip(indices[has_unknown].tolist(), rows[has_unknown].tolist(), strict=True):
            self._words[self._ids[index]] = words[row]

    @cached_property
    def _ids(self) -> list[str]:
        return list(self._suite.ids)

    @property
    def words(self) -> WordsById:
        """The unknown words of each sentence that has some."""
        return self._words

    def add_to(self, scores: Scores, *, omit: bool) -> Scores:
        """Return scores with the unknown words of each sentence, and a note that counts them.

        Args:
            scores: The scores of the suite.
            omit: Whether sentences with unknown words lose their scores, so that results leave them out.
        """
        remarks = (
            *remark_on_unknown_words(self._tokens, self._unknown_tokens),
            *remark_on_characters(self._characters, self._tokens),
        )
        scores = replace(scores, notes=(*scores.notes, *remarks)) if remarks else scores
        if not self._words:
            return scores
        if not omit:
            return replace(
                scores,
                unknown_words=self._words,
                notes=(*scores.notes, describe_unknown_words(self._suite, self._words)),
            )
        # Scores of regions have the keys ``id#region``.
        kept = {key: value for key, value in scores.values.items() if key.split("#")[0] not in self._words}
        note = describe_omitted(self._suite, self._words)
        return replace(
            scores,
            values=kept,
            unknown_words=self._words,
            missing=len(self._words),
            partial=True,
            notes=(*scores.notes, note),
        )


def collect_unknown_words(suite: Suite, outputs: Mapping[str, ModelOutput]) -> UnknownWordCounter:
    """Return the counter of the unknown words of a suite, given the model's output for each sentence id."""
    counter = UnknownWordCounter(suite)
    counter.add_batch([(index, outputs[sentence.id]) for index, sentence in enumerate(suite.sentences)])
    return counter


def describe_unknown_words(suite: Suite, words: WordsById) -> str:
    """Return a note on the sentences with unknown words, and on the contrasts that depend on these.

    >>> from acceptability.types import Contrast, Sentence
    >>> sentences = (Sentence("a", "Cats purr."), Sentence("b", "Cats purrs."))
    >>> describe_unknown_words(Suite("s", sentences, (Contrast("a", "b"),)), {"b": ("purrs",)})
    'unknown words are in 1 of 2 sentences and 1 of 1 pairs, and decide 1 pair, whose sentences differ in them'
    """
    note = f"unknown words are in {len(words):,} of {len(suite.sentences):,} sentences"
    if not suite.contrasts:
        return note
    codes = _encode_unknown_words(suite, words)[suite.pairs]
    with_unknown = int(np.count_nonzero(codes.any(axis=1)))
    decided = int(np.count_nonzero(codes[:, 0] != codes[:, 1]))
    note += f" and {with_unknown:,} of {len(suite.contrasts):,} pairs"
    pairs = "1 pair" if decided == 1 else f"{decided:,} pairs"
    return f"{note}, and decide {pairs}, whose sentences differ in them" if decided else note


def find_decided_contrasts(suite: Suite, words: WordsById) -> frozenset[str]:
    """Return the ids of the contrasts whose sentences differ in their unknown words.

    Args:
        suite: The suite.
        words: The unknown words of each sentence that has some, by the sentence's id.
    """
    if not words:
        return frozenset()
    codes = _encode_unknown_words(suite, words)[suite.pairs]
    return frozenset(suite.contrasts[row].id for row in np.flatnonzero(codes[:, 0] != codes[:, 1]).tolist())


def _encode_unknown_words(suite: Suite, words: WordsById) -> Ints:
    """Return a number for each sentence that stands for its unknown words in any order: 0 without any."""
    codes, code_of = np.zeros(len(suite.sentences), dtype=np.int64), dict[tuple[str, ...], int]()
    # Only those that have some are looked at closely: expressions over all sentences would take three times as long.
    found = [(row, words[sentence_id]) for row, sentence_id in enumerate(suite.ids) if words.get(sentence_id)]
    codes[[row for row, _ in found]] = [1 + code_of.setdefault(tuple(sorted(own)), len(code_of)) for _, own in found]
    return codes


def describe_decided_rows(units: Units, decided: Set[str]) -> tuple[str, ...]:
    """Return a note on the rows of a group that unknown words decide, if there are some.

    A group may consist of such contrasts alone, as in a paradigm whose verbs a model does not know, although they are
    few in the whole suite.

    Args:
        units: The rows of the group.
        decided: The ids of the contrasts that unknown words decide.
    """
    count = sum(name in decided for name in units.ids) if decided else 0
    return (f"unknown words decide {count:,} of {len(units):,} pairs",) if count else ()


def describe_omitted(suite: Suite, words: WordsById) -> str:
    """Return a note on the sentences that are left out with their contrasts, since the model omits unknown words.

    >>> from acceptability.types import Contrast, Sentence
    >>> sentences = (Sentence("a", "Cats purr."), Sentence("b", "Cats purrs."))
    >>> describe_omitted(Suite("s", sentences, (Contrast("a", "b"),)), {"b": ("purrs",)})
    'omitted: 1 of 2 sentences, which have words that the model does not know, and with them 1 of 1 pairs'
    """
    note = (
        f"omitted: {len(words):,} of {len(suite.sentences):,} sentences, which have words that the model does not know"
    )
    if not suite.contrasts:
        return note
    pairs = sum(pair.better in words or pair.worse in words for pair in suite.contrasts)
    return f"{note}, and with them {pairs:,} of {len(suite.contrasts):,} pairs"


def is_decided_by_unknown_words(words: WordsById, first: str, second: str) -> bool:
    """Return whether two sentences, given by their ids, differ in their unknown words.

    Words that are unknown in both sentences get about the same; a word that is unknown in one of them is compared with
    words that the model knows, and nothing in its training says how.
    """
    first_words, second_words = words.get(first, ()), words.get(second, ())
    # Most sentences have the same words, or none: these need not be sorted.
    return first_words != second_words and sorted(first_words) != sorted(second_words)
