"""Tokens and words of sentences, with their log-probabilities and surprisals, as tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from acceptability.api.interface.arguments import ModelLike, as_sentences, check_typed_texts
from acceptability.api.interface.prediction_columns import PredictionColumns
from acceptability.api.scoring import ProgressCallback, iter_model_outputs
from acceptability.display import Table, TableRow
from acceptability.errors import ModelError
from acceptability.protocols import Engine
from acceptability.text.words import assign_tokens, compute_word_logprobs
from acceptability.types import LabelScores, ModelOutput, Sentence, Span, Suite, TokenScores

if TYPE_CHECKING:
    import pandas as pd

_RowLister: TypeAlias = Callable[[Sentence, TokenScores], list[TableRow]]


def tokens(
    sentences: str | Sequence[str] | pd.Series | Suite | pd.DataFrame,
    model: ModelLike,
    *,
    entropy: bool = False,
    rank: bool = False,
    top: int = 0,
    context: str | Sequence[str] = "",
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Table:
    """Return the tokens of sentences, each with its log-probability and its surprisal.

    The columns are ``sentence`` (its id, or its number from 1), ``token`` (as it stands in the text, without the signs
    that vocabularies use for spaces; a token without characters of its own, such as an end token, by its name),
    ``start`` and ``end`` (its characters in the text), ``logprob`` (nats), ``surprisal_bits``, and ``unknown`` (whether
    it is outside the vocabulary; None where the model cannot tell).

    Args:
        sentences: A sentence, a list or a series of sentences, a suite, or a data frame. A text is a sentence here,
            and not the name of a suite: for that, give ``load_suite(name)``.
        model: A language model or its spec.
        entropy: Add ``entropy_bits``, the entropy of the distribution over the next token before each token, and
            ``entropy_reduction_bits``, this minus the entropy after it, which is negative where uncertainty grows.
        rank: Add ``rank``, 1 for the most probable token, and ``cumulative_probability``, the probability of all tokens
            up to this rank.
        top: Add so many of the most probable tokens: ``top_1`` and ``top_1_probability``, …, 100 at most.
        context: A text before all sentences, or a list with one for each, which the model reads and does not score.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    Raises:
        ModelError: The model is a classifier, which scores no tokens; or it has no distribution over the next token,
            and ``entropy``, ``rank`` or ``top`` is given.

    >>> [(row["token"], row["start"], round(row["surprisal_bits"], 2)) for row in tokens("Cats sleep.", "uniform")]
    [('Cats', 0, 15.61), ('sleep.', 5, 15.61)]
    """
    columns = PredictionColumns(entropy, rank, top)
    list_rows = partial(_list_token_rows, columns)
    return _build_table(list_rows, sentences, columns.adapt_model(model), context, engine, progress)


def words(
    sentences: str | Sequence[str] | pd.Series | Suite | pd.DataFrame,
    model: ModelLike,
    *,
    entropy: bool = False,
    rank: bool = False,
    top: int = 0,
    context: str | Sequence[str] = "",
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Table:
    """Return the words of sentences, which spaces separate, each with the sum of its tokens' log-probabilities.

    The columns are those of ``tokens``, with ``word`` in place of ``token``. The log-probability is None for a word of
    which no token was scored, such as the first word for a model without a start token.

    Args:
        sentences: A sentence, a list or a series of sentences, a suite, or a data frame.
        model: A language model or its spec.
        entropy, rank, top: Add columns, see ``tokens``, and ``tokens``, the number of tokens of a word. Of a word of
            several tokens, entropy, rank and alternatives are those of the first; its entropy reduction is the entropy
            before the first token minus that after the last.
        context: A text before all sentences, or a list with one for each, which the model reads and does not score.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    Raises:
        ModelError: The model is a classifier, which scores no words; or it has no distribution over the next token,
            and ``entropy``, ``rank`` or ``top`` is given.

    >>> [row["word"] for row in words(["Cats sleep.", "Dogs bark."], "uniform")]
    ['Cats', 'sleep.', 'Dogs', 'bark.']
    """
    columns = PredictionColumns(entropy, rank, top)
    list_rows = partial(_list_word_rows, columns)
    return _build_table(list_rows, sentences, columns.adapt_model(model), context, engine, progress)


def _build_table(
    list_rows: _RowLister,
    sentences: str | Sequence[str] | pd.Series | Suite | pd.DataFrame,
    model: ModelLike,
    context: str | Sequence[str],
    engine: str | Engine,
    progress: ProgressCallback | None,
) -> Table:
    if isinstance(sentences, str):
        check_typed_texts([sentences])
    suite = as_sentences([sentences] if isinstance(sentences, str) else sentences, context)
    return Table(
        row
        for sentence, output in iter_model_outputs(suite, model, engine=engine, progress=progress)
        for row in list_rows(sentence, _require_tokens(output))
    )


def _require_tokens(output: ModelOutput) -> TokenScores:
    if isinstance(output, LabelScores):
        raise ModelError("a classifier, or a function that scores whole sentences, has no scores of tokens or words")
    return output


def _list_token_rows(columns: PredictionColumns, sentence: Sentence, output: TokenScores) -> list[TableRow]:
    rows = []
    for position, (token, span) in enumerate(zip(output.tokens, output.offsets, strict=True)):
        is_unknown = None if output.unknown is None else position in output.unknown
        text = output.text[slice(*span)].strip() or token
        row = _make_row(sentence, "token", is_unknown, text, span, float(output.logprobs[position]))
        rows.append(TableRow(row | columns.list_cells(output, [position], span)))
    return rows


def _list_word_rows(columns: PredictionColumns, sentence: Sentence, output: TokenScores) -> list[TableRow]:
    starts = [output.offsets[position][0] for position in output.unknown or ()]

    def is_unknown(span: Span) -> bool | None:
        return None if output.unknown is None else any(span[0] <= start < span[1] for start in starts)

    found = compute_word_logprobs(output)
    positions = assign_tokens(output, [word.span for word in found])
    return [
        TableRow(
            _make_row(sentence, "word", is_unknown(word.span), word.text, word.span, word.logprob)
            | ({"tokens": len(own)} if columns.is_wanted else {})
            | columns.list_cells(output, own, word.span)
        )
        for word, own in zip(found, positions, strict=True)
    ]


def _make_row(
    sentence: Sentence, kind: str, unknown: bool | None, text: str, span: Span, logprob: float | None
) -> TableRow:
    start, end = span
    # A token that begins with the space before its word starts, for a reader, with the word.
    start = min(start + len(sentence.text[start:end]) - len(sentence.text[start:end].lstrip()), end)
    bits = None if logprob is None else -logprob / math.log(2)
    place = {"sentence": sentence.id, kind: text, "start": start, "end": end}
    return TableRow(place | {"logprob": logprob, "surprisal_bits": bits, "unknown": unknown})
