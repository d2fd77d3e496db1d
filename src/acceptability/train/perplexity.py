"""The perplexity of a model per word of a corpus; the definition of a word is part of the signature.

The log-probabilities of all tokens are summed and divided by the number of words, as the model's own rule splits text,
or as spaces do. So models with different tokens can be compared if their words are the same.

A masked model sees both sides of each word and gives no text a probability. It has a pseudo-perplexity only (Salazar et
al. 2020), which looks like a perplexity and must not be compared with one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from inspect import signature
from itertools import islice

from acceptability import __version__, registry
from acceptability.engine import load_engine
from acceptability.errors import CorpusError, ModelError, QueryError, SpecError, shorten
from acceptability.models import expand_named_model, load_model
from acceptability.models.hf.masked import Masked
from acceptability.models.unknown_words import DEFAULT_POLICY
from acceptability.protocols import Model
from acceptability.specs import build_signature, format_spec, parse_model_spec
from acceptability.text.words import SPLIT_RULES, find_word_spans
from acceptability.train.corpus import Corpus, CorpusCounts, count_corpus
from acceptability.types import LabelScores, Query, TokenScores

_CHUNK_SENTENCES = 65_536


@dataclass(frozen=True)
class Perplexity:
    """A model's perplexity on a corpus.

    Args:
        words: The number of words, ends of sentences included if they were counted.
        unknown: How many of the words are unknown to the model; None if it cannot tell which.
        logprob: The sum of the log-probabilities (nats).
    """

    perplexity: float
    words: int
    sentences: int
    unknown: int | None
    logprob: float
    signature: str

    def row(self) -> dict[str, object]:
        """Return the fields as a row of a table."""
        return asdict(self)


@dataclass(frozen=True)
class PseudoPerplexity:
    """A masked model's pseudo-perplexity on a corpus, comparable only with those of the same variant.

    Args:
        words: The number of words; ends of sentences are never counted.
        pseudo_logprob: The sum of the pseudo-log-likelihoods (nats).
    """

    pseudo_perplexity: float
    words: int
    sentences: int
    pseudo_logprob: float
    signature: str

    def row(self) -> dict[str, object]:
        """Return the fields as a row of a table."""
        return asdict(self)


def perplexity(
    model: str,
    corpus: Corpus,
    *,
    oov: str = "include",
    eos: str = "include",
    words: str = "",
    improper: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> Perplexity:
    """Return the perplexity of a model per word of a corpus.

    Args:
        model: The spec of a model that gives text a probability.
        corpus: The text, one sentence a line.
        oov: Whether unknown words count: "include" or "exclude". They have the probability of ``<unk>``, unless the
            spec sets ``unknown``.
        eos: Whether the end of each sentence is predicted, and counts as a word: "include" or "exclude".
        words: The rule by which words are counted, "split" or "spaces"; empty for the model's own, or else "spaces".
            Models whose tokens differ can be compared where this is the same.
        improper: Whether to accept a model whose probabilities sum to more than 1. The number then looks like a
            perplexity but is none, as the signature records.
        progress: Called with the spec, the number of sentences scored, and their total.
    """
    for name, value in (("oov", oov), ("eos", eos)):
        if value not in ("include", "exclude"):
            raise SpecError(f"{name} is {value!r}; expected 'include' or 'exclude'")
    _check_kind(model, improper)
    spec = keep_unknown_symbol(add_eos(model) if eos == "include" else model)
    # Lenient: a corpus may have sentences in which every word is unknown, which are otherwise refused.
    opened = load_model(spec).as_lenient()
    if oov == "exclude" and opened.is_unknown is None:
        raise ModelError(f"{model} cannot tell which words are unknown to it: omit oov='exclude'")
    corpus_counts, rule = count_corpus(corpus), _choose_word_rule(opened, words)
    # The unknown words of one rule cannot be subtracted from the words of another.
    if oov == "exclude" and rule != opened.word_rule:
        own = opened.word_rule
        raise SpecError(f"{model} splits words by the rule {own!r}: exclude unknown words by the same rule")
    total = _RunningTotal(opened, rule, oov == "exclude", eos == "include")
    for token_scores in _score_sentences(opened, spec, corpus, corpus_counts.sentences, progress):
        total.add(token_scores)
    options = {"words": rule, "oov": oov, "eos": eos, **({"improper": True} if improper else {})}
    full_signature = _sign_perplexity(format_spec("perplexity", options), corpus_counts, opened, total)
    return Perplexity(
        total.compute_perplexity(), total.words, corpus_counts.sentences, total.unknown, total.logprob, full_signature
    )


def pseudo_perplexity(
    model: str, corpus: Corpus, *, words: str = "", progress: Callable[[str, int, int], None] | None = None
) -> PseudoPerplexity:
    """Return the pseudo-perplexity of a masked model per word of a corpus: exp(−ΣPLL / words).

    Args:
        model: The spec of a masked model, whose variant of the pseudo-log-likelihood (PLL) is used.
        words: The rule by which words are counted; empty for "spaces".
    """
    opened = load_model(model)
    if not isinstance(opened, Masked):
        raise ModelError(f"{model} is not a masked model, and only these have a pseudo-perplexity: omit --pseudo")
    corpus_counts, rule = count_corpus(corpus), _choose_word_rule(opened, words)
    total = _RunningTotal(opened, rule, without_unknown=False, with_ends=False)
    for token_scores in _score_sentences(opened, model, corpus, corpus_counts.sentences, progress):
        total.add(token_scores)
    full_signature = _sign_perplexity(format_spec("pseudo_perplexity", {"words": rule}), corpus_counts, opened, total)
    return PseudoPerplexity(
        total.compute_perplexity(), total.words, corpus_counts.sentences, total.logprob, full_signature
    )


def is_masked(model: str) -> bool:
    """Return whether a model masks words to score them, and so has a pseudo-perplexity only."""
    return isinstance(load_model(model), Masked)


def is_improper(model: str) -> bool:
    """Return whether a model's probabilities sum to more than 1, so that it has no true perplexity."""
    return load_model(model).improper


def _check_kind(model: str, improper: bool) -> None:
    """Raise an error if a model has no perplexity, unless ``improper`` accepts one that only looks like it."""
    if is_masked(model):
        raise ModelError(
            f"{model} is a masked model: it sees both sides of each word, gives no text a probability, and has no "
            "perplexity. Add --pseudo for its pseudo-perplexity, which compares with those of masked models only."
        )
    if is_improper(model) and not improper:
        raise ModelError(
            f"{model} has probabilities that sum to more than 1, and so no perplexity. Add --improper for a number "
            "that only looks like one, as its signature then records."
        )
    if improper and not is_improper(model):
        raise ModelError(f"{model} has probabilities that sum to 1: omit --improper")


def _choose_word_rule(model: Model, words: str) -> str:
    """Return the rule by which words are counted: the given one, or the model's own."""
    rule = words or model.word_rule
    if rule not in SPLIT_RULES:
        raise SpecError(f"words is {words!r}; expected one of {', '.join(SPLIT_RULES)}")
    return rule


def _sign_perplexity(measure: str, corpus_counts: CorpusCounts, model: Model, total: _RunningTotal) -> str:
    fields = {"corpus": corpus_counts.sha256[:12], "model": model.signature, "n": str(total.words)}
    return build_signature(measure, fields | {"acceptability": __version__})


def add_eos(model: str) -> str:
    """Return the spec of a model that predicts the end of a sentence too.

    >>> add_eos("causal:gpt2")
    'causal:gpt2(eos=True)'
    """
    kind, location, options = parse_model_spec(expand_named_model(model))
    if "eos" not in signature(registry.find("model", kind)).parameters:
        raise SpecError(f"{model} does not predict the end of a sentence: add --eos exclude")
    return format_spec(f"{kind}:{location}", options | {"eos": True})


def keep_unknown_symbol(model: str) -> str:
    """Return the spec of a model in which an unknown word has the probability of ``<unk>``, unless the spec says more.

    A perplexity counts every unknown word as the one word ``<unk>``, as in the literature. With ``unknown='spelling'``
    in the spec, it counts their spelling too.

    >>> keep_unknown_symbol("uniform")
    'uniform'
    """
    kind, location, options = parse_model_spec(expand_named_model(model))
    # The signature has the value that the model chose by itself, if the spec has none.
    _, _, chosen = parse_model_spec(load_model(model).signature)
    if "unknown" in options or chosen.get("unknown") != DEFAULT_POLICY:
        return model
    return format_spec(f"{kind}:{location}", options | {"unknown": "<unk>"})


class _RunningTotal:
    """Sums log-probabilities and words, sentence by sentence."""

    def __init__(self, model: Model, rule: str, without_unknown: bool, with_ends: bool) -> None:
        self.rule, self.without_unknown, self.with_ends = rule, without_unknown, with_ends
        self.is_unknown: Callable[[str], bool] | None = model.is_unknown
        self.logprob, self.words = 0.0, 0
        self.unknown: int | None = 0 if self.is_unknown else None

    def compute_perplexity(self) -> float:
        """Return the perplexity of the sentences added so far."""
        if not self.words:
            raise CorpusError("no word of the corpus counts: all are unknown to the model")
        return math.exp(-self.logprob / self.words)

    def add(self, token_scores: TokenScores) -> None:
        """Add the scores of one sentence."""
        # A model without a start token gives its first token no probability. The word that the token begins then does
        # not count, or its log-probability would be divided by a word too many.
        first = _find_first_whole_word(token_scores, self.rule)
        self.words += sum(end > first for _, end in find_word_spans(token_scores.text, self.rule)) + self.with_ends
        scored = zip(token_scores.offsets, token_scores.logprobs.tolist(), strict=True)
        self.logprob += math.fsum(logprob for (start, end), logprob in scored if end > first or start == end)
        if self.is_unknown is None or self.unknown is None:
            return
        # The end token is not a word of the text, and never unknown.
        ends = len(token_scores.tokens) - self.with_ends
        unknown_indices = [index for index, token in enumerate(token_scores.tokens[:ends]) if self.is_unknown(token)]
        self.unknown += len(unknown_indices)
        if self.without_unknown:
            self.words -= len(unknown_indices)
            self.logprob -= math.fsum(token_scores.logprobs[unknown_indices].tolist())


def _find_first_whole_word(token_scores: TokenScores, rule: str) -> int:
    """Return where the first scored token starts or, if it is only the rest of a word, where that word ends."""
    first = min(start for start, _ in token_scores.offsets)
    for start, end in find_word_spans(token_scores.text, rule):
        if start < first < end and any(map(str.isalnum, token_scores.text[start:first])):
            return end
    return first


def _score_sentences(
    model: Model, spec: str, corpus: Corpus, total: int, progress: Callable[[str, int, int], None] | None
) -> Iterator[TokenScores]:
    """Yield the token scores of each sentence, some thousands in memory at a time."""
    engine, sentences, done = load_engine("local"), corpus.sentences(), 0
    while texts := list(islice(sentences, _CHUNK_SENTENCES)):
        queries = [Query(text) for text in texts]
        try:
            for batch in engine.answers(model, spec, queries, lambda _: False):
                for _, token_scores in batch:
                    if isinstance(token_scores, LabelScores):
                        raise ModelError(f"{spec} is a classifier, which gives words no probability")
                    yield token_scores
                done += len(batch)
                if progress:
                    progress(spec, done, total)
        except QueryError as error:
            raise ModelError(f"{spec} cannot score {shorten(texts[error.index])!r}: {error.problem}.") from error
