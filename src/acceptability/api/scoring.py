"""Scoring: from a suite and a model to one number per sentence, or per region of a sentence.

A suite becomes a sequence of distinct queries. The outputs of queries that the model has scored before come from the
store; the engine runs the model on the others, and their outputs are stored batch by batch, so that an interrupted run
resumes where it stopped. Reductions then turn the outputs into scores.

Regions are scored from one pass over the whole sentence. A token belongs to the region in which its first character
that is no space lies, and a region's log-probability is the sum over its tokens. A region without a token of its own
has the empty sum, 0: its text lies within a token that starts before it (a comma that the tokenizer does not split
off), or it is punctuation that the model does not read. A region whose words were not scored (the first word, for a
model without a start token) has no log-probability at all.
"""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from acceptability import __version__
from acceptability.api.interface.arguments import (
    ModelLike,
    ReductionLike,
    SentencesLike,
    SuiteLike,
    as_engine,
    as_model,
    as_reduction,
    as_sentences,
    as_suite,
    check_typed_texts,
    is_model_name,
    list_texts,
    make_text_suite,
)
from acceptability.api.interface.prediction_columns import NO_PREDICTIONS, PredictionColumns
from acceptability.api.vocabulary_coverage import UnknownWordCounter, is_decided_by_unknown_words, mark_unknown_tokens
from acceptability.display import RowList, ShownRow, format_html, format_plain
from acceptability.errors import (
    ModelError,
    QueryError,
    ScoreError,
    SpecError,
    SuiteError,
    shorten,
    warn_of_former_name,
)
from acceptability.models import default_model, set_spec_dtype
from acceptability.outputs import IndexedOutputs, index_outputs
from acceptability.protocols import Engine, Model, Reduction
from acceptability.reductions import LP, LogOdds, find_unigram_reduction, reduce_outputs
from acceptability.specs import build_signature
from acceptability.store.scores import ScoreStore
from acceptability.text.words import assign_tokens, compute_word_logprobs
from acceptability.timings import time_stage
from acceptability.types import (
    LabelScores,
    ModelOutput,
    Query,
    Scores,
    Sentence,
    Span,
    Suite,
    TokenScores,
    hash_text,
    hash_texts,
)

_Item = TypeVar("_Item")

if TYPE_CHECKING:
    import pandas as pd

ProgressCallback = Callable[[str, int, int], None]
"""Called with the model's name, the number of finished queries, and the number of all queries."""


def score(
    suite: SentencesLike,
    model: ModelLike,
    reduce: ReductionLike | None = None,
    *,
    region: str | None = None,
    context: str | Sequence[str] = "",
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Scores:
    """Return one number for each sentence; outputs stored earlier are not computed again.

    Args:
        suite: A suite, its name, a file or a data frame; or sentences themselves, a list or a series of texts, whose
            ids are then their numbers from 1.
        model: A model or its spec.
        reduce: The reduction, such as ``slor(unigrams='wordfreq:en')``, as a spec or as an object. By default ``lp``
            for a language model and ``log_odds`` for a classifier.
        region: Score only the region of this name, given the rest of the sentence.
        context: A text before all sentences, or a list with one for each, which the model reads and does not score.
        engine: Where the model runs: ``local``, or on a cluster, ``ray(address='HOST:PORT')``.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    >>> scores = score(["Cats sleep.", "Cats sleep well."], "uniform")
    >>> len(scores), scores["1"] > scores["2"]
    (2, True)
    """
    loaded = as_sentences(suite, context)
    (scores,) = score_reductions(loaded, model, [reduce], region=region, engine=engine, progress=progress)
    return replace(scores, suite=loaded)


def region_scores(
    suite: SuiteLike, model: ModelLike, *, engine: str | Engine = "local", progress: ProgressCallback | None = None
) -> Scores:
    """Return the log-probabilities of regions, under ``id#region``, and of whole sentences, under ``id``.

    All come from a single pass over the sentence; a token counts for the region in which it starts.
    """
    return score_reductions(suite, model, ["lp"], by_region=True, engine=engine, progress=progress)[0]


def score_reductions(
    suite: SuiteLike,
    model: ModelLike,
    reductions: Sequence[ReductionLike | None],
    *,
    region: str | None = None,
    by_region: bool = False,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> list[Scores]:
    """Return the scores of a suite under several reductions, from a single run of the model.

    Args:
        reductions: Reductions or their specs; None is the default reduction of the kind of model.
        region: Score only the region of this name.
        by_region: Add the log-probability of each region, under ``id#region``.
    """
    suite, model_run = as_suite(suite), _prepare_model_run(model, engine)
    scorers = [_Scorer(None if given is None else as_reduction(given), len(suite.sentences)) for given in reductions]
    region_collector = RegionScoreCollector(suite) if by_region else None
    unknown_words = UnknownWordCounter(suite)
    # `closing` runs the generator's cleanup (the engine's workers, the open store) at once if a reduction raises.
    with closing(_iter_outputs(model_run, suite, region, progress)) as batches:
        # Outputs are reduced as they arrive and dropped; keeping them for a large suite would fill the memory.
        for batch in batches:
            with time_stage("reduce"):
                for scorer in scorers:
                    scorer.add_batch(batch)
                if region_collector:
                    region_collector.add_batch(batch)
                unknown_words.add_batch(batch)
    with time_stage("reduce"):
        region_suffix = f"#{region}" if region else ""
        ids = list(suite.ids)
        signature = model_run.model.signature
        all_scores = [scorer.make_scores(ids, model_run.name, signature, region_suffix) for scorer in scorers]
        if region_collector:
            all_scores = [region_collector.merge_into(scores) for scores in all_scores]
        # After the scores of regions, which an omitted sentence loses too.
        return [unknown_words.add_to(scores, omit=model_run.model.omits_unknown) for scores in all_scores]


def iter_model_outputs(
    suite: SuiteLike,
    model: ModelLike,
    *,
    region: str | None = None,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> Iterator[tuple[Sentence, ModelOutput]]:
    """Yield each sentence of a suite with the model's output, once for each rival if the model needs one."""
    suite, model_run = as_suite(suite), _prepare_model_run(model, engine)
    # Outputs arrive in the order of the batches, which are sorted by length, and are returned in the suite's order.
    outputs: dict[int, list[ModelOutput]] = {}
    for batch in _iter_outputs(model_run, suite, region, progress):
        for sentence_index, output in batch:
            outputs.setdefault(sentence_index, []).append(output)
    for sentence_index, sentence in enumerate(suite.sentences):
        yield from ((sentence, output) for output in outputs[sentence_index])


@dataclass(frozen=True, eq=False, repr=False)
class Judgement(ShownRow):
    """The score of one sentence, with the model's output."""

    text: str
    score: float
    output: ModelOutput

    def __repr__(self) -> str:
        return f"Judgement({shorten(self.text)!r}, score={self.score:.3f})"

    def _repr_html_(self) -> str:
        rows: list[dict[str, object]] = [
            {"token": token, "surprisal_bits": bits} for token, bits in self.token_surprisals()
        ]
        return format_html(rows, caption=f"{self.score:.3f}  {self.text}")

    def token_surprisals(self) -> list[tuple[str, float]]:
        """Return each token as it stands in the text, with its surprisal in bits; empty for a classifier."""
        if not isinstance(self.output, TokenScores):
            return []
        return [
            # A token without characters of its own, such as an end token, is shown by its name in the vocabulary.
            (self.output.text[start:end].strip() or token, -float(logprob) / math.log(2))
            for token, (start, end), logprob in zip(
                self.output.tokens, self.output.offsets, self.output.logprobs.tolist(), strict=True
            )
        ]

    @property
    def unknown_words(self) -> tuple[str, ...]:
        """The words that are not in the model's vocabulary."""
        return self.output.unknown_words if isinstance(self.output, TokenScores) else ()

    def row(self) -> dict[str, object]:
        """Return the judgement as one row, for JSON: with tokens, or with a classifier's logits."""
        row: dict[str, object] = {"text": self.text, "score": self.score}
        if isinstance(self.output, LabelScores):
            return row | {"logits": list(self.output.logits)}
        unknown = self.output.unknown
        return row | {
            "tokens": [
                {"token": token, "surprisal_bits": bits, "unknown": None if unknown is None else position in unknown}
                for position, (token, bits) in enumerate(self.token_surprisals())
            ]
        }

    @property
    def said(self) -> ModelOutput:
        """An alias of ``output``, its former name, for one release."""
        warn_of_former_name("Judgement.said", "output")
        return self.output


class Judgements(RowList[Judgement]):
    """The judgements of some sentences by one model, in the order of the sentences.

    Args:
        rows: The judgements.
        model: The name of the model.
    """

    def __init__(self, rows: Iterable[Judgement] = (), model: str = "") -> None:
        super().__init__(rows)
        self.model = model

    @property
    def best(self) -> Judgement | None:
        """The sentence with the highest score; None if several have it."""
        index = find_best_judgement(self)
        return self[0] if len(self) == 1 else None if index is None else self[index]

    def rows(self) -> list[dict[str, object]]:
        """Return a row for each sentence: its text, its score, and the words that the model does not know."""
        rows: list[dict[str, object]] = [{"text": judgement.text, "score": judgement.score} for judgement in self]
        if any(judgement.unknown_words for judgement in self):
            for row, judgement in zip(rows, self, strict=True):
                row["unknown_words"] = " ".join(judgement.unknown_words)
        return rows

    def __repr__(self) -> str:
        best = self.best if len(self) > 1 else None
        better = [f"better: {best.text}"] if best else ["a tie"] * (len(self) > 1)
        return "\n".join([f"judged by {self.model}", format_plain(self.rows()), *better])

    def _repr_html_(self) -> str:
        best = self.best if len(self) > 1 else None
        notes = [f"better: {best.text}"] if best else []
        return format_html(self.rows(), caption=f"judged by {self.model}", notes=notes)


def judge(
    *sentences: str | Sequence[str] | pd.Series,
    model: ModelLike | None = None,
    reduce: ReductionLike | None = None,
    context: str | Sequence[str] = "",
    progress: ProgressCallback | None = None,
) -> Judgements:
    """Return the score of each sentence, with the model's output.

    Args:
        sentences: Sentences, or a single list or series of them; outputs are stored under the text, as for suites.
        model: A model or its spec; by default the best model that is installed, whose name the result shows.
        reduce: The reduction; by default ``lp`` for a language model and ``log_odds`` for a classifier.
        context: A text before all sentences, or a list with one for each, which the model reads and does not score.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    >>> judged = judge("Cats sleep.", "Cats sleep sleep.", model="uniform")
    >>> first, second = judged
    >>> first.score > second.score, judged.best
    (True, Judgement('Cats sleep.', score=-21.640))
    """
    texts, model, reduce = _read_judge_arguments(sentences, model, reduce)
    check_typed_texts(texts)
    suite = make_text_suite(texts, context, "judge")
    reducer = None if reduce is None else as_reduction(reduce)
    chosen = default_model() if model is None else model
    name, loaded = as_model(chosen)
    judgements = [
        Judgement(sentence.text, (reducer or _default_reduction(output))(output), output)
        for sentence, output in iter_model_outputs(suite, chosen, progress=progress)
    ]
    for judgement in judgements:
        if loaded.omits_unknown and judgement.unknown_words:
            raise ModelError(
                f"{name} gives {shorten(judgement.text)!r} no score: it does not know "
                f"{', '.join(map(repr, judgement.unknown_words))}, and unknown='omit'. Choose another value of unknown."
            )
    return Judgements(judgements, name)


def _read_judge_arguments(
    sentences: Sequence[Any], model: ModelLike | None, reduce: ReductionLike | None
) -> tuple[list[str], ModelLike | None, ReductionLike | None]:
    """Return the sentences, the model and the reduction, also of ``judge(sentences, model, reduce)``, the former form.

    A list is followed by a model in the former form only, since a list of sentences is given alone.
    """
    if not sentences:
        raise SpecError("judge: no sentence was given")
    first, *others = sentences
    if isinstance(first, str):
        # A name after a sentence is meant as the model; it would be judged as a sentence otherwise.
        if model is None and others and isinstance(others[0], str) and is_model_name(others[0]):
            raise SpecError(f"judge: {others[0]!r} is a model, not a sentence; write model={others[0]!r}")
        return list_texts(list(sentences)), model, reduce
    if len(others) > 2 or (others and model is not None) or (len(others) == 2 and reduce is not None):
        raise SpecError("judge: give sentences one by one or as a single list, then model=… and reduce=…")
    if others:
        # Two levels up is the line of the program that called judge.
        warnings.warn(
            "judge(sentences, model, reduce) is now judge(*sentences, model=…, reduce=…); "
            "the old form will be refused from the next release",
            DeprecationWarning,
            stacklevel=3,
        )
    return list_texts(first), others[0] if others else model, others[1] if len(others) == 2 else reduce


def sign_judgements(sentences: Sequence[str], model: str, reduce: str | None = None, context: str = "") -> str:
    """Return the signature of the scores of some sentences, which has the sentences themselves in it.

    Args:
        sentences: The sentences that were judged.
        model: The spec of the model that judged them.
        reduce: The reduction, if it was not the default.
        context: The text before each sentence.

    >>> sign_judgements(["Cats sleep."], "uniform").partition("|acceptability")[0]
    'judge|sentences:["Cats sleep."]|model:uniform(vocabulary=50000).lp()|n:1'
    """
    suite = make_text_suite(sentences, context, "judge")
    # Nothing is scored again: the outputs for the same texts have just been stored.
    fields = {
        "sentences": json.dumps(list(sentences), ensure_ascii=False),
        **({"context": json.dumps(context, ensure_ascii=False)} if context else {}),
        "model": score(suite, model, reduce).signature,
        "n": str(len(sentences)),
        "acceptability": __version__,
    }
    return build_signature("judge", fields)


def find_best_judgement(judgements: Sequence[Judgement]) -> int | None:
    """Return the index of the sentence with the highest score; None if it is tied, or for a single sentence.

    >>> find_best_judgement(judge("Cats sleep.", "Cats sleep sleep.", model="uniform"))
    0
    """
    best_score = max(judgement.score for judgement in judgements)
    indices = [index for index, judgement in enumerate(judgements) if judgement.score == best_score]
    return indices[0] if len(judgements) > 1 and len(indices) == 1 else None


def find_deciding_words(judgements: Sequence[Judgement]) -> list[str]:
    """Return the unknown words that decide which sentence is better; empty if all sentences have the same ones.

    The comparison is between the best sentence and each of the others.
    """
    words_by_number = {str(number): judgement.unknown_words for number, judgement in enumerate(judgements)}
    best = str(max(range(len(judgements)), key=lambda number: judgements[number].score))
    deciding = [number for number in words_by_number if is_decided_by_unknown_words(words_by_number, best, number)]
    return (
        list(dict.fromkeys(word for number in (best, *deciding) for word in words_by_number[number]))
        if deciding
        else []
    )


@dataclass(frozen=True, eq=False)
class ScoreRows:
    """Scores as flat rows, for JSON and tables, with the signature of the run and remarks for the reader."""

    rows: list[dict[str, object]]
    signature: str
    notes: tuple[str, ...] = ()


def score_rows(
    suite: SuiteLike,
    model: ModelLike,
    reduce: ReductionLike | None = None,
    *,
    per: str = "sentence",
    region: str | None = None,
    predictions: PredictionColumns = NO_PREDICTIONS,
    engine: str | Engine = "local",
    progress: ProgressCallback | None = None,
) -> ScoreRows:
    """Return the scores of a suite as rows: one per sentence, or the model's output itself in smaller parts.

    Args:
        suite: A suite or its name.
        model: A model or its spec.
        reduce: The reduction; only for rows per sentence.
        per: "sentence", "token", "word" or "region". Words and regions have surprisals in bits too.
        region: Score only the region of this name; only for rows per sentence.
        predictions: The columns about what the model predicted; only for rows per token, word or region.
        engine: Where the model runs.
        progress: Called with the model's name, the number of finished queries, and the number of all queries.

    >>> suite = Suite("mine", (Sentence("a", "Cats sleep."),))
    >>> [(row["word"], row["start"], row["end"]) for row in score_rows(suite, "uniform", per="word").rows]
    [('Cats', 0, 4), ('sleep.', 5, 11)]
    """
    suite = as_suite(suite)
    notes: tuple[str, ...] = ()
    if per == "sentence":
        scores = score(suite, model, reduce, region=region, engine=engine, progress=progress)
        rows: list[dict[str, object]] = [
            {"sentence_id": sentence.id, "text": sentence.text, "score": scores.values.get(sentence.id)}
            for sentence in suite.sentences
        ]
        # In every row or in none, so that a table has the same columns throughout.
        if scores.unknown_words:
            for row in rows:
                row["unknown_words"] = " ".join(scores.unknown_words.get(str(row["sentence_id"]), ()))
        model_signature, notes = scores.signature, scores.notes
    else:
        model = predictions.adapt_model(model)
        rows = [
            row
            for sentence, output in iter_model_outputs(suite, model, engine=engine, progress=progress)
            for row in _build_rows(sentence, output, per, predictions)
        ]
        notes = predictions.describe(rows)
        model_signature = as_model(model)[1].signature
    fields = {"suite": suite.signature, "model": model_signature, "acceptability": __version__}
    return ScoreRows(rows, build_signature("score", fields), notes)


def _build_rows(
    sentence: Sentence, output: ModelOutput, per: str, predictions: PredictionColumns
) -> list[dict[str, object]]:
    """Return the rows of a sentence, with the columns about predictions."""
    rows = _ROW_BUILDERS[per](sentence, output)
    if not predictions.is_wanted or isinstance(output, LabelScores):
        return rows
    if per == "token":
        tokens = [[position] for position in range(len(rows))]
        spans: list[Span] = list(output.offsets)
    elif per == "word":
        spans = [word.span for word in compute_word_logprobs(output)]
        tokens = assign_tokens(output, spans)
    else:
        spans = list(sentence.regions.values())
        tokens = [_find_region_tokens(output, span) for span in spans]
    count_tokens = per != "token"
    return [
        row | ({"tokens": len(own)} if count_tokens else {}) | predictions.list_cells(output, own, span)
        for row, own, span in zip(rows, tokens, spans, strict=True)
    ]


def _build_token_rows(sentence: Sentence, output: ModelOutput) -> list[dict[str, object]]:
    """Return a row per token, or per label for a classifier, which scores no tokens."""
    shared: dict[str, object] = {"sentence_id": sentence.id}
    if isinstance(output, LabelScores):
        labels = ("unacceptable", "acceptable")
        return [shared | {"label": label, "logit": logit} for label, logit in zip(labels, output.logits, strict=True)]
    return [
        shared
        | {"token": token, "start": start, "end": end, "logprob": float(logprob)}
        # Absent where the model cannot tell, since False would say that the token is known.
        | ({} if output.unknown is None else {"unknown": position in output.unknown})
        for position, (token, (start, end), logprob) in enumerate(
            zip(output.tokens, output.offsets, output.logprobs.tolist(), strict=True)
        )
    ]


def _build_word_rows(sentence: Sentence, output: ModelOutput) -> list[dict[str, object]]:
    if isinstance(output, LabelScores):
        raise SpecError("--words: a classifier has no scores of single words; omit the option")
    return [
        {
            "sentence_id": sentence.id,
            "word": word.text,
            "start": word.span[0],
            "end": word.span[1],
            # None for a word that was not scored, such as the first word of a model without a start token.
            "logprob": word.logprob,
            "surprisal_bits": None if word.logprob is None else -word.logprob / math.log(2),
            **_mark_unknown(output, word.span),
        }
        for word in compute_word_logprobs(output)
    ]


def _build_region_rows(sentence: Sentence, output: ModelOutput) -> list[dict[str, object]]:
    if isinstance(output, LabelScores):
        raise SpecError("--regions: a classifier has no scores of regions; omit the option")
    if not sentence.regions:
        raise SpecError(f"--regions: sentence {sentence.id!r} has no regions; omit the option")
    logprobs = region_logprobs(sentence, output)
    return [
        {
            "sentence_id": f"{sentence.id}#{name}",
            "text": sentence.text[start:end],
            "start": start,
            "end": end,
            "score": logprobs.get(name),
            "surprisal_bits": -logprobs[name] / math.log(2) if name in logprobs else None,
            **_mark_unknown(output, (start, end)),
        }
        for name, (start, end) in sentence.regions.items()
    ]


def _mark_unknown(output: TokenScores, span: Span) -> dict[str, bool]:
    """Return whether a token within a span is unknown; nothing where the model cannot tell, as for tokens."""
    if output.unknown is None:
        return {}
    starts = (output.offsets[position][0] for position in output.unknown)
    return {"unknown": any(span[0] <= start < span[1] for start in starts)}


_ROW_BUILDERS: dict[str, Callable[[Sentence, ModelOutput], list[dict[str, object]]]] = {
    "token": _build_token_rows,
    "word": _build_word_rows,
    "region": _build_region_rows,
}


def _default_reduction(output: ModelOutput) -> Reduction:
    return LogOdds() if isinstance(output, LabelScores) else LP()


class _Scorer:
    """Reduces model outputs to scores by one reduction, and counts the units that its unigram table lacks.

    A sentence that was weighed against several rivals gets the mean of its scores.
    """

    def __init__(self, reduction: Reduction | None, sentences: int) -> None:
        self.reduction = reduction
        # NaN marks a sentence without a score so far. It cannot be a score, since Scores accepts finite numbers only.
        self.values = np.full(sentences, math.nan)
        self.repeated_values: dict[int, list[float]] = {}
        self.unlisted = self.units = 0

    def add_batch(self, batch: IndexedOutputs) -> None:
        """Add a batch of (sentence index, output)."""
        # Only an output shows whether the model is a classifier, so the default reduction is chosen at the first batch.
        values, reduction = self.values, self.reduction or _default_reduction(batch[0][1])
        self.reduction = reduction
        new = reduce_outputs(reduction, batch.outputs)
        new = new if batch.rows is None else new[batch.rows]
        # Not by np.unique, which imports masked arrays, at the cost of a twentieth of a short command.
        is_repeated = bool((np.diff(np.sort(batch.indices)) == 0).any())
        if not is_repeated and np.isnan(values[batch.indices]).all():
            values[batch.indices] = new
        else:
            for sentence_index, value in zip(batch.indices.tolist(), new.tolist(), strict=True):
                if not math.isnan(values[sentence_index]):
                    self.repeated_values.setdefault(sentence_index, [float(values[sentence_index])]).append(value)
                values[sentence_index] = value
        if unigram_reduction := find_unigram_reduction(reduction):
            for _, output in batch:
                unlisted, units = unigram_reduction.count_unlisted(output)
                self.unlisted += unlisted
                self.units += units

    def make_scores(self, ids: Sequence[str], model: str, signature: str, region_suffix: str) -> Scores:
        assert self.reduction is not None
        return Scores(
            dict(zip(ids, self._list_scores(), strict=True)),
            model,
            reduction=repr(self.reduction) + region_suffix,
            signature=f"{signature}.{self.reduction.signature}{region_suffix}",
            notes=self._make_notes(),
        )

    def _list_scores(self) -> list[float]:
        """Return the score of each sentence."""
        scores: list[float] = self.values.tolist()
        for sentence_index, values in self.repeated_values.items():
            # fsum is exact, so the mean does not depend on the order in which the batches arrive.
            scores[sentence_index] = math.fsum(values) / len(values)
        return scores

    def _make_notes(self) -> tuple[str, ...]:
        unigram_reduction = find_unigram_reduction(self.reduction) if self.reduction else None
        if not self.unlisted or not unigram_reduction:
            return ()
        table = unigram_reduction.table
        # A table in another language or tokenization would still give finite, meaningless scores.
        if self.unlisted == self.units:
            raise ScoreError(f"{table.signature} lists none of the {self.units} {table.unit}s of the suite")
        return (f"{self.unlisted} of {self.units} {table.unit}s are not in {table.signature}",)


@dataclass(frozen=True)
class _ModelRun:
    """A model with its name in tables, its spec (None for an object built in Python) and its engine."""

    name: str
    model: Model
    spec: str | None
    engine: Engine

    def iter_answers(
        self, queries: Sequence[Query], is_known: Callable[[int], bool]
    ) -> Generator[Sequence[tuple[int, ModelOutput]], None, None]:
        return self.engine.answers(self.model, self.spec, queries, is_known)


def _prepare_model_run(model: ModelLike, engine: str | Engine) -> _ModelRun:
    with time_stage("open model"):
        name, loaded = as_model(model)
        return _ModelRun(name, loaded, name if isinstance(model, str) else None, as_engine(engine))


def _iter_outputs(
    model_run: _ModelRun, suite: Suite, region: str | None, progress: ProgressCallback | None
) -> Generator[IndexedOutputs, None, None]:
    """Yield batches of (sentence index, output): first the stored outputs, then those that the model computes."""
    with time_stage("store"):
        queries = SuiteQueries(suite, region, against_rivals=model_run.model.needs_rival)
    with time_stage("open model"):
        signature, device, name = model_run.model.signature, model_run.model.device_class, model_run.name
    # One byte per query, where a set of indices would take dozens.
    is_known = bytearray(len(queries))
    # The same bytes as an array, which is filled block by block.
    known_flags = np.frombuffer(is_known, np.uint8)
    with ScoreStore() as store:
        # Stored outputs do not repeat the text of their query, so the store gets a function that returns it.
        stored = store.iter_known_blocks(signature, queries.keys.joined, queries.text_at, device=device)
        for batch in _time_iteration("store", stored):
            known_flags[batch.indices] = 1
            yield queries.to_sentences(mark_unknown_tokens(batch, model_run.model))
        done = int(known_flags.sum())
        _report_progress(progress, name, done, len(queries))
        # Returns before the engine asks the model to encode anything, which would load its tokenizer and weights.
        if all(is_known):
            return
        try:
            with closing(model_run.iter_answers(queries, cast(Callable[[int], bool], is_known.__getitem__))) as batches:
                for computed in batches:
                    batch = mark_unknown_tokens(index_outputs(computed), model_run.model)
                    # Stored before they are reduced, so that an error or a killed process loses one batch at most.
                    with time_stage("store"):
                        store.add_block(
                            signature, queries.keys.take(batch.indices), batch.listed_outputs, device=device
                        )
                    yield queries.to_sentences(batch)
                    done += len(batch)
                    _report_progress(progress, name, done, len(queries))
        # Users know the ids of their sentences, but not the indices of deduplicated queries.
        except QueryError as error:
            raise _query_error_in_sentence(
                error, suite.sentences[queries.sentence_indices(error.index)[0]], name
            ) from error


def _query_error_in_sentence(error: QueryError, sentence: Sentence, model: str) -> ModelError:
    return ModelError(f"{model} cannot score sentence {sentence.id!r} ({shorten(sentence.text)!r}): {error.problem}.")


def _report_progress(progress: ProgressCallback | None, name: str, done: int, total: int) -> None:
    if progress:
        progress(name, done, total)


_KEY_BYTES = 16


class SuiteQueries(Sequence[Query]):
    """The distinct queries of a suite, in the order of their first occurrence, built on access.

    Args:
        region: The name of the region to score; None for whole sentences.
        against_rivals: Pair each sentence with each of those that it is contrasted with.
    """

    # Only a 16-byte key and a few integers per sentence are held, in arrays. For the largest suites, a Query object for
    # every sentence would take far more memory, and building one again is cheap.

    def __init__(self, suite: Suite, region: str | None = None, *, against_rivals: bool = False) -> None:
        self._suite, self._region = suite, region
        # Decoded once, and without their sentences: the stored outputs ask for texts one by one.
        self._texts = list(suite.texts)
        self._rival_pairs = _pair_rivals(suite) if against_rivals else None
        count = len(self._rival_pairs) if self._rival_pairs is not None else len(suite.sentences)
        if region is None and self._rival_pairs is None:
            joined = b"".join(self._hash_texts())
        else:
            joined = b"".join([self._query_at(index).key for index in range(count)])
        keys = np.frombuffer(joined, dtype=f"S{_KEY_BYTES}")
        # np.unique sorts by key; `order` restores the order of first occurrence, and `rank` is its inverse.
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self._first_index = first[order]
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        # The sentences of all queries in one array, grouped by query, with the start of each group: a list of lists
        # would take far more memory. A stable sort keeps the sentences of a query in the order of the suite.
        grouped = np.argsort(rank[inverse], kind="stable")
        self._sentences = grouped if self._rival_pairs is None else self._rival_pairs[grouped, 0]
        counts = np.bincount(rank[inverse], minlength=len(order))
        self._group_starts = np.append(0, np.cumsum(counts))
        self.keys = _QueryKeys(joined, self._first_index)

    def __len__(self) -> int:
        return len(self._first_index)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> list[Query]: ...
    def __getitem__(self, index: int | slice) -> Query | list[Query]:
        if isinstance(index, slice):
            return [self._query_at(first_index) for first_index in self._first_index[index].tolist()]
        return self._query_at(int(self._first_index[index]))

    def _query_at(self, index: int) -> Query:
        """Return a query by its index before duplicates are removed."""
        if self._rival_pairs is None:
            return _make_query(self._suite.sentences[index], self._region)
        sentence, rival = (self._suite.sentences[sentence_index] for sentence_index in self._rival_pairs[index])
        return replace(_make_query(sentence, self._region), rival=rival.text)

    def text_at(self, query_index: int) -> str:
        """Return the text of the query at an index, without making the query."""
        first = int(self._first_index[query_index])
        sentence = first if self._rival_pairs is None else self._rival_pairs[first][0]
        return self._texts[sentence]

    def _hash_texts(self) -> list[bytes]:
        """Return the key of each sentence."""
        contexts = self._suite.sentence_tag("context")
        if not contexts.values:
            return hash_texts(self._texts)
        # The last value is that of the code -1, of a sentence without a context.
        values = (*contexts.values, "")
        return [hash_text(text, values[code]) for text, code in zip(self._texts, contexts.codes.tolist(), strict=True)]

    def sentence_indices(self, query_index: int) -> list[int]:
        """Return the indices of the sentences that give the query at an index."""
        indices: list[int] = self._sentences[
            self._group_starts[query_index] : self._group_starts[query_index + 1]
        ].tolist()
        return indices

    def to_sentences(self, batch: IndexedOutputs) -> IndexedOutputs:
        """Return the outputs of queries with the indices of their sentences."""
        return batch.spread(self._group_starts, self._sentences)


class _QueryKeys(Sequence[bytes]):
    """The keys of the queries, in the same order."""

    def __init__(self, joined: bytes, first: NDArray[np.int64]) -> None:
        # Not as strings, of which NumPy strips trailing zero bytes.
        self._keys = np.frombuffer(joined, f"V{_KEY_BYTES}")[first]

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def joined(self) -> bytes:
        """All keys, concatenated."""
        return self._keys.tobytes()

    def take(self, indices: NDArray[np.int64]) -> bytes:
        """Return some of the keys, concatenated."""
        return self._keys[indices].tobytes()

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        key: bytes = self._keys[index].tobytes()
        return key


def _time_iteration(stage: str, items: Iterator[_Item]) -> Iterator[_Item]:
    """Yield items, and count the time that an iterator takes to find them for a stage."""
    while True:
        with time_stage(stage):
            item = next(items, None)
        if item is None:
            return
        yield item


def _pair_rivals(suite: Suite) -> NDArray[np.int64]:
    """Return rows of (sentence index, index of a sentence that it is contrasted with); every sentence needs one."""
    index_of_id = {sentence.id: sentence_index for sentence_index, sentence in enumerate(suite.sentences)}
    pairs = [(index_of_id[contrast.better], index_of_id[contrast.worse]) for contrast in suite.contrasts]
    # Both directions: each sentence is weighed against the other, and gets a score of its own.
    rival_pairs = sorted(pairs + [(worse, better) for better, worse in pairs])
    if unpaired := sorted(set(range(len(suite.sentences))) - {sentence_index for sentence_index, _ in rival_pairs}):
        raise SuiteError(
            f"suite {suite.name!r}: sentence {suite.sentences[unpaired[0]].id!r} is in no contrast, and the model "
            "weighs each sentence against another. Use a method that judges single sentences, or remove such "
            "sentences."
        )
    return np.array(rival_pairs, np.int64)


def _make_query(sentence: Sentence, region: str | None) -> Query:
    context = sentence.tags.get("context", "")
    if region is None:
        return Query(sentence.text, context)
    if region not in sentence.regions:
        region_names = ", ".join(sentence.regions) or "none"
        raise SuiteError(f"sentence {sentence.id!r} has no region {region!r}; its regions: {region_names}")
    return Query(sentence.text, context, sentence.regions[region])


def region_logprobs(sentence: Sentence, token_scores: TokenScores) -> dict[str, float]:
    """Return the log-probability of each region that was scored, in nats.

    >>> import numpy as np
    >>> sentence = Sentence("a", "Cats sleep.", regions={"1": (0, 4), "2": (5, 11)})
    >>> token_scores = TokenScores("Cats sleep.", ("C", "ats", " sleep", "."), ((0, 1), (1, 4), (4, 10), (10, 11)),
    ...     np.array([-1.0, -2.0, -3.0, -4.0], np.float32))
    >>> region_logprobs(sentence, token_scores)
    {'1': -3.0, '2': -7.0}
    """
    return {name: math.fsum(logprobs) for name, logprobs in region_token_logprobs(sentence, token_scores).items()}


def region_token_logprobs(sentence: Sentence, token_scores: TokenScores) -> dict[str, list[float]]:
    """Return the log-probabilities of the tokens that start in each region, for regions whose words were scored.

    A token without characters of its own, such as an end token, belongs to no region.
    """
    token_starts = [
        (_skip_spaces(token_scores.text, start), end, logprob)
        for (start, end), logprob in zip(token_scores.offsets, token_scores.logprobs.tolist(), strict=True)
        if start < end
    ]
    return {
        name: [logprob for token_start, _, logprob in token_starts if start <= token_start < stop]
        for name, (start, stop) in sentence.regions.items()
        # A region that no token overlaps was not scored, unless it is punctuation, which some models do not read.
        if any(token_start < stop and end > start for token_start, end, _ in token_starts)
        or not any(map(str.isalnum, token_scores.text[start:stop]))
    }


def _find_region_tokens(token_scores: TokenScores, region: Span) -> list[int]:
    """Return the positions of the tokens that start in a region."""
    return [
        position
        for position, (start, end) in enumerate(token_scores.offsets)
        if start < end and region[0] <= _skip_spaces(token_scores.text, start) < region[1]
    ]


def _skip_spaces(text: str, start: int) -> int:
    """Return where a token's own text starts; a token of spaces alone starts with the next word."""
    while start < len(text) and text[start].isspace():
        start += 1
    return start


class RegionScoreCollector:
    """Collects region scores batch by batch, and adds them to sentence scores under the keys ``id#region``."""

    def __init__(self, suite: Suite) -> None:
        self._sentences = suite.sentences
        self._values: dict[str, float] = {}
        self._without_tokens = 0

    def add_batch(self, batch: Sequence[tuple[int, ModelOutput]]) -> None:
        """Add a batch of (sentence index, output)."""
        for sentence_index, output in batch:
            sentence = self._sentences[sentence_index]
            # Without this check, the loop would fail on a missing attribute instead of a message.
            if isinstance(output, LabelScores):
                raise ScoreError(
                    f"{shorten(sentence.text)!r}: a classifier has no scores of regions. Use a language model."
                )
            for name, logprobs in region_token_logprobs(sentence, output).items():
                self._values[f"{sentence.id}#{name}"] = math.fsum(logprobs)
                self._without_tokens += not logprobs

    def merge_into(self, scores: Scores) -> Scores:
        """Return scores with those of regions among them."""
        # A surprisal of 0 looks like a perfectly predicted region, so its other cause has to be stated.
        note = f"{self._without_tokens} regions have no token of their own, so their surprisal is 0"
        notes = (*scores.notes, note) if self._without_tokens else scores.notes
        return replace(scores, values={**scores.values, **self._values}, notes=notes)


# The first is the reference to which the others are compared.
PRECISIONS = ("float32", "bfloat16", "float16")


@dataclass(frozen=True)
class PrecisionDifference:
    """The differences between a suite's scores in two floating-point precisions.

    Args:
        dtype: The precision, compared with ``against``.
        largest: The largest absolute difference of a score, which is that of ``sentence``.
        mean: The mean absolute difference.
        changed: The number of contrasts whose preferred sentence changes, out of ``contrasts``.
    """

    dtype: str
    against: str
    largest: float
    sentence: str
    mean: float
    changed: int
    contrasts: int


def compare_precisions(
    suite: SuiteLike,
    model: str,
    reduce: ReductionLike | None = None,
    *,
    dtypes: Sequence[str] = PRECISIONS[1:],
    against: str = PRECISIONS[0],
    progress: ProgressCallback | None = None,
) -> list[PrecisionDifference]:
    """Return the differences between a suite's scores in each precision and those in float32."""
    suite = as_suite(suite)
    ids = [sentence.id for sentence in suite.sentences]
    base = score(suite, set_spec_dtype(model, against), reduce, progress=progress)
    differences = []
    for dtype in dtypes:
        # The precision is part of the spec and so of the signature, which keeps stored outputs apart.
        other = score(suite, set_spec_dtype(model, dtype), reduce, progress=progress)
        gaps = np.abs(other.of(ids) - base.of(ids))
        changed = sum(
            (base[contrast.better] > base[contrast.worse]) != (other[contrast.better] > other[contrast.worse])
            for contrast in suite.contrasts
        )
        worst = int(gaps.argmax())
        differences.append(
            PrecisionDifference(
                dtype, against, float(gaps[worst]), ids[worst], float(gaps.mean()), changed, len(suite.contrasts)
            )
        )
    return differences
