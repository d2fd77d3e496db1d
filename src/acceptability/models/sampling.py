"""Sentences drawn from a language model, and real ones in the same form.

``recurrent:``, ``causal:`` and n-gram models that were trained here (``ngram:FOLDER``) can be drawn from. A sentence
begins after the start of a sentence, each next word is drawn by its probability after those before it, and the model
itself ends it. One that has not ended after ``longest`` words is thrown away whole and drawn anew: cut short it would
be no sentence. An empty one is drawn anew too. Sentences come in batches that are drawn to their end before any is
handed out, so that short ones do not come first.

A model of words knows no spaces, perhaps no capitals, and not every word. ``form`` puts a real sentence through the
same: cut into words, put in lower case if the model is, with ``<unk>`` for words that the model does not know, and
joined again. In this way real and drawn sentences differ in their words and their order, and in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from acceptability.errors import ModelError, SpellingError
from acceptability.models import load_model
from acceptability.models.arrays import Table
from acceptability.models.causal import Causal
from acceptability.models.joining import joined
from acceptability.models.recurrent import Recurrent
from acceptability.models.trained_ngram import TrainedNGram
from acceptability.models.vocabulary import SPECIAL, START, UNKNOWN, Vocabulary

Draw: TypeAlias = Callable[[np.random.Generator], list[str | None]]
"""Draws a batch of sentences; None stands for one that did not end."""

_IN_VAIN = 5_000
_BATCHES = {"ngram": 4096, "cpu": 256, "cuda": 4096, "causal cpu": 32, "causal cuda": 512}


def sampled(
    model: str,
    count: int | None,
    *,
    seed: int,
    temperature: float = 1.0,
    longest: int = 60,
    unknown: bool = False,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[str]:
    """Return sentences drawn from a model; on a CPU the same seed gives the same.

    Args:
        count: How many; None for a stream without end.
        temperature: 1 draws by the model's own probabilities; less prefers the probable ones, more levels them.
        longest: The most words of a sentence: the model's own or, for transformers, what spaces separate.
        unknown: Whether ``<unk>`` may be drawn like any other word; transformers have none.
        tell: Is called with "too long" or "empty" for each that is drawn anew.
    """
    if count is not None and count < 1:
        raise SpellingError(f"count is {count}; ask for at least one sentence")
    if seed < 0:
        raise SpellingError(f"seed is {seed}; expected 0 or more")
    if not 0 < temperature < float("inf") or longest < 1:
        raise SpellingError(f"temperature is {temperature} and longest {longest}; both must be above 0, and finite")
    return _stream(model, _drawer(model, temperature, longest, unknown), np.random.default_rng(seed), count, tell)


def _stream(
    name: str, draw: Draw, random: np.random.Generator, count: int | None, tell: Callable[[str], None]
) -> Iterator[str]:
    given = in_vain = 0
    while count is None or given < count:
        for text in draw(random):
            if text:
                given, in_vain = given + 1, 0
                yield text
                if given == count:
                    return
            else:
                in_vain += 1
                tell("too long" if text is None else "empty")
        if in_vain >= _IN_VAIN:
            raise ModelError(f"{name}: the last {in_vain:,} sentences were too long or empty; try a greater longest")


def _drawer(name: str, temperature: float, longest: int, unknown: bool) -> Draw:
    """Return what draws a batch of sentences from a model."""
    model = load_model(name)
    banned = frozenset({START} if unknown else {START, UNKNOWN})
    if isinstance(model, Causal):
        return _from_causal(model, longest, temperature)
    if isinstance(model, Recurrent):
        return _from_recurrent(model, longest, temperature, banned)
    if isinstance(model, TrainedNGram) and isinstance(model.table, Table):
        return _from_ngram(model, model.table, longest, temperature, banned)
    raise ModelError(_refusal(name))


def _from_ngram(model: TrainedNGram, table: Table, longest: int, temperature: float, banned: frozenset[int]) -> Draw:
    from acceptability.models.ngram_sampling import Sampler

    sampler = Sampler(table, temperature, banned)
    return lambda random: [
        _told(model.vocabulary, row)
        for row in sampler.sentences(_BATCHES["ngram"], longest, model.bos is not None, random)
    ]


def _from_recurrent(model: Recurrent, longest: int, temperature: float, banned: frozenset[int]) -> Draw:
    if model.improper:
        raise ModelError(
            f"recurrent:{model.folder} has probabilities that do not sum to 1: nothing can be drawn by them"
        )
    from acceptability.models.huggingface import enough_memory
    from acceptability.models.recurrent_sampling import sentences

    net = model.net
    count = _BATCHES.get(net.table.device.type, _BATCHES["cpu"])

    def draw(random: np.random.Generator) -> list[str | None]:
        with enough_memory(f"{model.folder.name}: a batch of {count} sentences"):
            return [_told(model.vocabulary, row) for row in sentences(net, count, longest, temperature, banned, random)]

    return draw


def _from_causal(model: Causal, longest: int, temperature: float) -> Draw:
    from acceptability.models.causal_sampling import Sampler
    from acceptability.models.huggingface import enough_memory

    sampler = Sampler(model, longest, temperature)
    count = _BATCHES.get(f"causal {sampler.net.device.type}", _BATCHES["causal cpu"])

    def draw(random: np.random.Generator) -> list[str | None]:
        with enough_memory(f"{model.files.name}: a batch of {count} sentences"):
            return sampler.texts(count, random)

    return draw


def _told(vocabulary: Vocabulary, row: list[int] | None) -> str | None:
    return None if row is None else joined([vocabulary.words[number] for number in row], vocabulary.rule)


def _refusal(name: str) -> str:
    return (
        f"{name}: sentences can be drawn from recurrent: and causal: models, and from n-gram models that "
        "`acceptability train ngram` made (ngram:FOLDER, trigram), but not from this one"
    )


@dataclass(frozen=True)
class Form:
    """The form in which a model's sentences come.

    Args:
        vocabulary: The words of the model; None where words are what spaces separate, and every one is known.
        first: Whether only the first sentence of a line is taken, as it is of what a transformer says.
    """

    vocabulary: Vocabulary | None = None
    first: bool = False
    lower: bool = False

    def words(self, text: str) -> list[str]:
        """Return the words of a text in this form.

        >>> Form(Vocabulary((*SPECIAL, "cats", "."), "split", lower=True)).words("Cats purr.")
        ['cats', '<unk>', '.']
        """
        found = text.split() if self.vocabulary is None else self._known(self.vocabulary, text)
        return [word.lower() for word in found] if self.lower else found

    def text(self, text: str) -> str:
        """Return a text in this form.

        >>> Form(Vocabulary((*SPECIAL, "cats", "."), "split", lower=True)).text("Cats purr.")
        'cats <unk>.'
        """
        if self.first:
            from acceptability.models.causal_sampling import first_sentence

            text, _ = first_sentence(text)
        return joined(self.words(text), self.vocabulary.rule if self.vocabulary else "spaces")

    @staticmethod
    def _known(vocabulary: Vocabulary, text: str) -> list[str]:
        """Return the words of a text, those that are not known as ``<unk>``; where it has ``<unk>``, it stays whole."""
        numbers: list[int] = []
        for part in text.split(SPECIAL[UNKNOWN]):
            numbers += [*vocabulary.numbers(vocabulary.cut(part)[0]), UNKNOWN]
        return [vocabulary.words[number] for number in numbers[:-1]]


def form(model: str, *, lower: bool = False) -> Form:
    """Return the form of a model's sentences; an empty name means that of plain text.

    Args:
        lower: Whether all is put in lower case, also where the model has capitals.
    """
    if not model:
        return Form(lower=lower)
    opened = load_model(model)
    if isinstance(opened, Causal):
        return Form(first=True, lower=lower)
    if isinstance(opened, (Recurrent, TrainedNGram)):
        return Form(opened.vocabulary, lower=lower)
    raise ModelError(_refusal(model))
