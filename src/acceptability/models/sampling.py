"""Sampling sentences from a language model, and normalising real sentences to the same form.

``recurrent:``, ``causal:`` and n-gram models trained by this package (``ngram:FOLDER``) can be sampled from. A sentence
begins after the start symbol, each word is sampled by its probability given the words before it, and the model itself
ends the sentence. A sentence that has not ended after ``longest`` words is rejected as a whole and sampled anew,
because a truncated one would be no sentence; so is an empty one. Sentences are sampled in batches, and a batch is
complete before its first sentence is returned: otherwise short sentences would come first.

A model of words knows no spaces, perhaps no capitals, and not every word. ``make_normalizer`` puts real sentences into
the same form: split into words, in lower case if the model is, with ``<unk>`` for unknown words, and joined again. Real
and sampled sentences then differ in their words and word order only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acceptability.errors import ModelError, SpecError
from acceptability.models import load_model
from acceptability.models.hf.causal import Causal
from acceptability.models.ngram.trained import NGramSampler, NGramTable, TrainedNGram
from acceptability.models.recurrent import Recurrent
from acceptability.text.words import SPECIAL_WORDS, START, UNKNOWN, Vocabulary, extract_first_sentence, join_words

DrawBatch: TypeAlias = Callable[[np.random.Generator], list[str | None]]
"""Samples a batch of sentences; None stands for one that did not end."""

# So many rejections in succession mean that the model hardly ever ends a sentence; without a bound it would run
# forever.
_MAX_FAILED_DRAWS = 5_000
_BATCH_SIZES = {"ngram": 4096, "cpu": 256, "cuda": 4096, "causal cpu": 32, "causal cuda": 512}


def draw_sentences(
    model: str,
    count: int | None,
    *,
    seed: int,
    temperature: float = 1.0,
    longest: int = 60,
    unknown: bool = False,
    on_rejected: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Return sentences sampled from a model; on a CPU the same seed gives the same sentences.

    Args:
        model: The model's spec or name.
        count: How many; None for an endless stream.
        temperature: 1 samples by the model's own probabilities; less favours probable words, more flattens them.
        longest: The maximum number of words in a sentence: the model's own words or, for transformers, those separated
            by spaces.
        unknown: Whether ``<unk>`` may be sampled like any other word; transformers have none.
        on_rejected: Called with "too long" or "empty" for each sentence that is sampled anew.
    """
    if count is not None and count < 1:
        raise SpecError(f"count is {count}; expected at least 1")
    if seed < 0:
        raise SpecError(f"seed is {seed}; expected 0 or more")
    if not 0 < temperature < float("inf") or longest < 1:
        raise SpecError(f"temperature is {temperature} and longest {longest}; both must be above 0, and finite")
    return _stream_sentences(
        model, _make_drawer(model, temperature, longest, unknown), np.random.default_rng(seed), count, on_rejected
    )


def _stream_sentences(
    name: str, draw: DrawBatch, random: np.random.Generator, count: int | None, on_rejected: Callable[[str], None]
) -> Iterator[str]:
    yielded = failed = 0
    while count is None or yielded < count:
        # The whole batch exists before its first sentence is returned: the shortest sentences end first.
        for text in draw(random):
            # Only rejections in succession count: a model may well end few of its sentences in time.
            if text:
                yielded, failed = yielded + 1, 0
                yield text
                if yielded == count:
                    return
            else:
                failed += 1
                on_rejected("too long" if text is None else "empty")
        if failed >= _MAX_FAILED_DRAWS:
            raise ModelError(f"{name}: the last {failed:,} sentences were too long or empty; try a greater longest")


def _make_drawer(name: str, temperature: float, longest: int, unknown: bool) -> DrawBatch:
    """Return the function that samples a batch of sentences from a model."""
    model = load_model(name)
    # <s> cannot occur within a sentence, whatever small probability smoothing has left for it.
    banned = frozenset({START} if unknown else {START, UNKNOWN})
    if isinstance(model, Causal):
        return _make_causal_drawer(model, longest, temperature)
    if isinstance(model, Recurrent):
        return _make_recurrent_drawer(model, longest, temperature, banned)
    # Not an aggregate Markov model, which is a TrainedNGram with a table of another kind.
    if isinstance(model, TrainedNGram) and isinstance(model.table, NGramTable):
        return _make_ngram_drawer(model, model.table, longest, temperature, banned)
    raise ModelError(_describe_unsupported(name))


def _make_ngram_drawer(
    model: TrainedNGram, table: NGramTable, longest: int, temperature: float, banned: frozenset[int]
) -> DrawBatch:
    sampler = NGramSampler(table, temperature, banned)
    return lambda random: [
        _decode_row(model.vocabulary, row)
        for row in sampler.sample_word_ids(_BATCH_SIZES["ngram"], longest, model.bos is not None, random)
    ]


def _make_recurrent_drawer(model: Recurrent, longest: int, temperature: float, banned: frozenset[int]) -> DrawBatch:
    if model.improper:
        raise ModelError(f"recurrent:{model.folder} has probabilities that do not sum to 1: it cannot be sampled from")
    # Imported here, because it needs torch, and n-gram models do not.
    from acceptability.models.hf.loading import convert_out_of_memory
    from acceptability.models.recurrent.network import sample_word_ids

    net = model.net
    count = _BATCH_SIZES.get(net.table.device.type, _BATCH_SIZES["cpu"])

    def draw(random: np.random.Generator) -> list[str | None]:
        with convert_out_of_memory(f"{model.folder.name}: a batch of {count} sentences"):
            return [
                _decode_row(model.vocabulary, row)
                for row in sample_word_ids(net, count, longest, temperature, banned, random)
            ]

    return draw


def _make_causal_drawer(model: Causal, longest: int, temperature: float) -> DrawBatch:
    from acceptability.models.hf.causal_forward import CausalSampler
    from acceptability.models.hf.loading import convert_out_of_memory

    sampler = CausalSampler(model, longest, temperature)
    count = _BATCH_SIZES.get(f"causal {sampler.net.device.type}", _BATCH_SIZES["causal cpu"])

    def draw(random: np.random.Generator) -> list[str | None]:
        with convert_out_of_memory(f"{model.files.name}: a batch of {count} sentences"):
            return sampler.sample_texts(count, random)

    return draw


def _decode_row(vocabulary: Vocabulary, row: list[int] | None) -> str | None:
    return None if row is None else join_words([vocabulary.words[word_id] for word_id in row], vocabulary.rule)


def _describe_unsupported(name: str) -> str:
    return (
        f"{name}: sentences can be sampled from recurrent: and causal: models, and from n-gram models that "
        "`acceptability train ngram` made (ngram:FOLDER, trigram), but not from this one"
    )


@dataclass(frozen=True)
class TextNormalizer:
    """Puts texts into the form of a model's sampled sentences.

    Args:
        vocabulary: The words of the model; None where words are separated by spaces, and every word is known.
        first_sentence_only: Whether only the first sentence of a text is used, as for the output of a transformer.
        lower: Whether text is put in lower case, even where the model has capitals.
    """

    vocabulary: Vocabulary | None = None
    first_sentence_only: bool = False
    lower: bool = False

    def split_words(self, text: str) -> list[str]:
        """Return the normalised words of a text.

        >>> TextNormalizer(Vocabulary((*SPECIAL_WORDS, "cats", "."), "split", lower=True)).split_words("Cats purr.")
        ['cats', '<unk>', '.']
        """
        pieces = text.split() if self.vocabulary is None else self._replace_unknown_words(self.vocabulary, text)
        return [word.lower() for word in pieces] if self.lower else pieces

    def normalize(self, text: str) -> str:
        """Return a normalised text.

        >>> TextNormalizer(Vocabulary((*SPECIAL_WORDS, "cats", "."), "split", lower=True)).normalize("Cats purr.")
        'cats <unk>.'
        """
        if self.first_sentence_only:
            text, _ = extract_first_sentence(text)
        return join_words(self.split_words(text), self.vocabulary.rule if self.vocabulary else "spaces")

    @staticmethod
    def _replace_unknown_words(vocabulary: Vocabulary, text: str) -> list[str]:
        """Return the words of a text, with ``<unk>`` for unknown ones."""
        word_ids: list[int] = []
        # An <unk> that is already in the text is cut out first: some splitting rules would cut it at its brackets.
        for part in text.split(SPECIAL_WORDS[UNKNOWN]):
            word_ids += [*vocabulary.to_ids(vocabulary.tokenize(part)[0]), UNKNOWN]
        return [vocabulary.words[word_id] for word_id in word_ids[:-1]]


def make_normalizer(model: str, *, lower: bool = False) -> TextNormalizer:
    """Return the normalizer to the form of a model's sentences.

    Args:
        model: The model's spec or name; "" leaves texts as they are but for their spaces.
        lower: Whether text is put in lower case, even where the model has capitals.
    """
    if not model:
        return TextNormalizer(lower=lower)
    loaded = load_model(model)
    if isinstance(loaded, Causal):
        return TextNormalizer(first_sentence_only=True, lower=lower)
    if isinstance(loaded, (Recurrent, TrainedNGram)):
        return TextNormalizer(loaded.vocabulary, lower=lower)
    raise ModelError(_describe_unsupported(model))
