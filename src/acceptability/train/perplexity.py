"""How well a model foretells text: its perplexity for a word, with what counts as a word said in the signature.

The log-probabilities of all tokens are summed and divided by the number of words, as the model's own rule
cuts them, or else as spaces do; so models with different tokens can be compared if their words are the same.

A masked model sees both sides of each word and gives no text a probability. What it has is a pseudo-perplexity
(Salazar et al. 2020), which looks like the other and must not stand beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, is_dataclass, replace
from inspect import signature
from itertools import islice

from acceptability import __version__, registry
from acceptability.engine import load_engine
from acceptability.errors import CorpusError, ModelError, QueryError, SpellingError, shorten
from acceptability.models import delivered, load_model
from acceptability.models.masked import Masked
from acceptability.models.splitting import RULES, spans
from acceptability.protocols import Model
from acceptability.signature import sign
from acceptability.spelling import read_located, write
from acceptability.train.corpus import Corpus, Counts, counts
from acceptability.types import LabelScores, Query, TokenScores

_AT_ONCE = 65_536


@dataclass(frozen=True)
class Perplexity:
    """A model's perplexity on a corpus.

    Args:
        words: How many words were counted, each sentence's end among them if it was.
        unknown: How many of the words the model does not know; None if it does not tell.
        logprob: The sum of the log-probabilities (natural logs) that were counted.
    """

    perplexity: float
    words: int
    sentences: int
    unknown: int | None
    logprob: float
    signature: str

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
        return asdict(self)


@dataclass(frozen=True)
class PseudoPerplexity:
    """A masked model's pseudo-perplexity on a corpus: comparable with none that is not of the same variant.

    Args:
        words: How many words were counted; ends of sentences are never foretold.
        pseudo_logprob: The sum of the pseudo-log-likelihoods (natural logs) that were counted.
    """

    pseudo_perplexity: float
    words: int
    sentences: int
    pseudo_logprob: float
    signature: str

    def row(self) -> dict[str, object]:
        """Return it as a row of a table."""
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
    """Return the perplexity of a model for a word of a corpus.

    Args:
        oov: Whether words that the model does not know count: "include" (each as ``<unk>``) or "exclude".
        eos: Whether the end of each sentence is foretold, and counts as a word: "include" or "exclude".
        words: By which rule words are counted, "split" or "spaces"; empty for the model's own, or else "spaces".
            Models whose tokens differ can be compared where this is the same.
        improper: Whether a model may be asked whose probabilities sum to more than 1. What it gets looks like a
            perplexity and is none; the signature says so.
    """
    for name, value in (("oov", oov), ("eos", eos)):
        if value not in ("include", "exclude"):
            raise SpellingError(f"{name} is {value!r}; expected 'include' or 'exclude'")
    _check_kind(model, improper)
    spelling = with_end(model) if eos == "include" else model
    asked = _lenient(load_model(spelling))
    if oov == "exclude" and not hasattr(asked, "is_unknown"):
        raise ModelError(f"{model} does not tell which words it does not know: leave oov='exclude' away")
    known, rule = counts(corpus), _rule(asked, words)
    if oov == "exclude" and rule != _own_rule(asked):
        own = _own_rule(asked)
        raise SpellingError(f"{model} knows words by the rule {own!r}: leave out unknown ones by the same rule")
    total = _Total(asked, rule, oov == "exclude", eos == "include")
    for said in _said(asked, spelling, corpus, known.sentences, progress):
        total.take(said)
    options = {"words": rule, "oov": oov, "eos": eos, **({"improper": True} if improper else {})}
    signed = _signed(write("perplexity", options), known, asked, total)
    return Perplexity(total.per_word(), total.words, known.sentences, total.unknown, total.logprob, signed)


def pseudo_perplexity(
    model: str, corpus: Corpus, *, words: str = "", progress: Callable[[str, int, int], None] | None = None
) -> PseudoPerplexity:
    """Return the pseudo-perplexity of a masked model for a word of a corpus.

    That is e to the power of minus its pseudo-log-likelihoods, by the model's own variant, over the words.

    Args:
        words: By which rule words are counted; empty for "spaces".
    """
    asked = load_model(model)
    if not isinstance(asked, Masked):
        raise ModelError(f"{model} is no masked model, and only these have a pseudo-perplexity: leave --pseudo away")
    known, rule = counts(corpus), _rule(asked, words)
    total = _Total(asked, rule, without_unknown=False, with_ends=False)
    for said in _said(asked, model, corpus, known.sentences, progress):
        total.take(said)
    signed = _signed(write("pseudo_perplexity", {"words": rule}), known, asked, total)
    return PseudoPerplexity(total.per_word(), total.words, known.sentences, total.logprob, signed)


def is_masked(model: str) -> bool:
    """Tell whether a model hides words to score them, and so has a pseudo-perplexity only."""
    return isinstance(load_model(model), Masked)


def is_improper(model: str) -> bool:
    """Tell whether a model's probabilities sum to more than 1, so that it has no perplexity in earnest."""
    return bool(getattr(load_model(model), "improper", False))


def _check_kind(model: str, improper: bool) -> None:
    """Refuse a model that has no perplexity, unless it was asked for what looks like one."""
    if is_masked(model):
        raise ModelError(
            f"{model} is a masked model: it sees both sides of each word, gives no text a probability, and has no "
            "perplexity. Add --pseudo for its pseudo-perplexity, which compares with those of masked models only."
        )
    if is_improper(model) and not improper:
        raise ModelError(
            f"{model} has probabilities that sum to more than 1, and so no perplexity. Add --improper for what looks "
            "like one; the signature then says that it is none."
        )
    if improper and not is_improper(model):
        raise ModelError(f"{model} has probabilities that sum to 1: leave --improper away")


def _own_rule(model: Model) -> str:
    return str(getattr(model, "units", "spaces"))


def _rule(model: Model, words: str) -> str:
    """Return by which rule words are counted: the one asked for, or the model's own."""
    rule = words or _own_rule(model)
    if rule not in RULES:
        raise SpellingError(f"words is {words!r}; expected one of {', '.join(RULES)}")
    return rule


def _signed(how: str, known: Counts, model: Model, total: _Total) -> str:
    about = {"corpus": known.sha256[:12], "model": model.signature, "n": str(total.words)}
    return sign(how, about | {"acceptability": __version__})


def with_end(model: str) -> str:
    """Return the spelling of a model that foretells the end of a sentence too.

    >>> with_end("causal:gpt2")
    'causal:gpt2(eos=True)'
    """
    kind, place, options = read_located(model)
    if not place and kind in delivered() and kind not in registry.names("model"):
        return with_end(delivered()[kind].spelling())
    if "eos" not in signature(registry.find("model", kind)).parameters:
        raise SpellingError(f"{model} does not foretell the end of a sentence: add --eos exclude")
    return write(f"{kind}:{place}", options | {"eos": True})


def _lenient(model: Model) -> Model:
    """Return a model that also takes a sentence of unknown words alone, as a corpus may have."""
    if hasattr(model, "lenient") and is_dataclass(model) and not isinstance(model, type):
        return replace(model, lenient=True)
    return model


class _Total:
    """Sums log-probabilities and words, sentence by sentence."""

    def __init__(self, model: Model, rule: str, without_unknown: bool, with_ends: bool) -> None:
        self.rule, self.without_unknown, self.with_ends = rule, without_unknown, with_ends
        self.is_unknown: Callable[[str], bool] | None = getattr(model, "is_unknown", None)
        self.logprob, self.words = 0.0, 0
        self.unknown: int | None = 0 if self.is_unknown else None

    def per_word(self) -> float:
        """Return the perplexity of what was taken."""
        if not self.words:
            raise CorpusError("not one word of the corpus counts: the model knows none of them")
        return math.exp(-self.logprob / self.words)

    def take(self, said: TokenScores) -> None:
        """Take what the model said to one sentence."""
        # A model without a start token says nothing of the first word, or of its beginning: it then does not count.
        first = _first_whole(said, self.rule)
        self.words += sum(end > first for _, end in spans(said.text, self.rule)) + self.with_ends
        scored = zip(said.offsets, said.logprobs.tolist(), strict=True)
        self.logprob += math.fsum(logprob for (start, end), logprob in scored if end > first or start == end)
        if self.is_unknown is None or self.unknown is None:
            return
        ends = len(said.tokens) - self.with_ends
        strange = [place for place, token in enumerate(said.tokens[:ends]) if self.is_unknown(token)]
        self.unknown += len(strange)
        if self.without_unknown:
            self.words -= len(strange)
            self.logprob -= math.fsum(said.logprobs[strange].tolist())


def _first_whole(said: TokenScores, rule: str) -> int:
    """Return where the first token stands or, if it is only the rest of a word, where that word ends."""
    first = min(start for start, _ in said.offsets)
    for start, end in spans(said.text, rule):
        if start < first < end and any(map(str.isalnum, said.text[start:first])):
            return end
    return first


def _said(
    model: Model, spelling: str, corpus: Corpus, total: int, progress: Callable[[str, int, int], None] | None
) -> Iterator[TokenScores]:
    """Yield what a model says to each sentence, some thousands in memory at a time."""
    engine, sentences, done = load_engine("local"), corpus.sentences(), 0
    while texts := list(islice(sentences, _AT_ONCE)):
        queries = [Query(text) for text in texts]
        try:
            for batch in engine.answers(model, spelling, queries, lambda _: False):
                for _, said in batch:
                    if isinstance(said, LabelScores):
                        raise ModelError(f"{spelling} is a classifier, and gives words no probability")
                    yield said
                done += len(batch)
                if progress:
                    progress(spelling, done, total)
        except QueryError as error:
            raise ModelError(f"{spelling} cannot score {shorten(texts[error.index])!r}: {error.problem}.") from error
