"""Real sentences and fakes, for a classifier that learns to tell them apart (Warstadt, Singh and Bowman 2019, 4.1).

Half of the sentences are real, out of a corpus. Of the fakes one half is drawn from a language model, the other made of
real sentences some of whose words change places (``generate.corrupt``). Nothing but grammar should tell the two apart:

- Real and permuted sentences go through what the model's own have gone through (``models.sampling.form``): cut into
  words and joined again, in lower case if the model knows no other, with ``<unk>`` for words that it does not know.
  The model draws ``<unk>`` like any other word. The paper does the same: lower case, words, ``<unk>``.
- All have at least 3 and at most 60 words, in the model's own way of counting; others are left out, and counted.
- The files of a corpus are read side by side, so that a source that fills one file does not come in one piece.

Sentences are read and shuffled by the buffer: memory does not grow with the corpus. In each buffer real and fake are
equally many. A fake that is a real sentence of its buffer is made anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from acceptability.errors import CorpusError, ModelError, SpellingError, shorten
from acceptability.generate.corrupt import permuted_text, small_words
from acceptability.generate.writing import write_sentences
from acceptability.models.sampling import Form, form, sampled
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.types import Sentence

SHORTEST, LONGEST = 3, 60
_SIDE_BY_SIDE = 16
_AT_ONCE = 1024
_TRIES = 20
_IN_VAIN = 20_000


@dataclass(frozen=True)
class Source:
    """Where sentences come from, and in which form.

    Args:
        lm: The language model that some fakes are drawn from; nothing if all are permuted.
        lower: Whether all is put in lower case, also where the model has capitals.
        tally: Counts what is made and what is left out, as it happens.
    """

    corpus: Corpus
    lm: str
    seed: int
    buffer: int = 10_000
    lower: bool = False
    tally: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        if self.buffer < 2:
            raise SpellingError(f"buffer is {self.buffer}; at least 2 sentences are shuffled together")
        if self.seed < 0:
            raise SpellingError(f"seed is {self.seed}; expected 0 or more")


def real_fake(
    corpus: Corpus,
    lm: str,
    *,
    seed: int,
    buffer: int = 10_000,
    limit: int | None = None,
    lower: bool = False,
    tally: Counter[str] | None = None,
) -> Iterator[tuple[str, int]]:
    """Return sentences with labels, 1 for real and 0 for fake, until the corpus has been read once.

    Args:
        lm: The language model that half of the fakes are drawn from; "" if all are permuted.
        buffer: How many real sentences are shuffled together.
        limit: How many sentences at most, real and fake together; they are balanced then too.
        lower: Whether all is put in lower case, also where the model has capitals.
        tally: Counts what is made and what is left out, and why, as it happens.
    """
    source = Source(corpus, lm, seed, buffer, lower, Counter() if tally is None else tally)
    return ((each.text, int(each.label or 0)) for each in sentences(source, limit))


def sentences(source: Source, limit: int | None = None) -> Iterator[Sentence]:
    """Return the sentences with their labels and the tag ``kind``: real, sampled or permuted."""
    if limit is not None and limit < 2:
        raise SpellingError(f"the count is {limit}; ask for at least two sentences, one real and one fake")
    shape = form(source.lm, lower=source.lower)
    drawn = _sampled(source, shape) if source.lm else iter(())
    return _mixed(source, shape, drawn, limit)


def _mixed(source: Source, shape: Form, drawn: Iterator[str], limit: int | None) -> Iterator[Sentence]:
    random = np.random.default_rng([source.seed, 1])
    lines = _fitting(_lines(source.corpus, random), shape, source.tally)
    left, given = limit, 0
    while raw := list(islice(lines, source.buffer if left is None else min(source.buffer, left - left // 2))):
        buffer = _Buffer(shape, tuple(raw), random, source.tally)
        fakes = len(raw) if left is None else min(len(raw), left // 2)
        of_model = fakes // 2 if source.lm else 0
        made = [(text, 1, "real") for text in buffer.real]
        made += [(text, 0, "sampled") for text in islice(buffer.unlike(drawn), of_model)]
        made += [(text, 0, "permuted") for text in islice(buffer.permuted(), fakes - of_model)]
        for place in random.permutation(len(made)).tolist():
            text, label, kind = made[place]
            given += 1
            source.tally[kind] += 1
            yield Sentence(f"{kind}/{given}", text, label, tags={"kind": kind})
        left = None if left is None else left - len(made)
        if left is not None and left < 1:
            return
    if not given:
        raise CorpusError(f"the corpus has no sentence of {SHORTEST} to {LONGEST} words: no fakes can be made of it")


def _lines(corpus: Corpus, random: np.random.Generator) -> Iterator[str]:
    """Yield the sentences of a corpus, some files at once, each as often as it is large."""
    waiting = [corpus.files[place] for place in random.permutation(len(corpus.files))]
    running: list[tuple[Iterator[str], int]] = []
    while waiting or running:
        while waiting and len(running) < _SIDE_BY_SIDE:
            path = waiting.pop()
            running.append((Corpus((path,)).sentences(), max(path.stat().st_size, 1)))
        sizes = np.array([size for _, size in running], float)
        for place in random.choice(len(running), _AT_ONCE, p=sizes / sizes.sum()).tolist():
            line = next(running[place][0], None)
            if line is None:
                del running[place]
                break
            yield line


def _fitting(lines: Iterator[str], shape: Form, tally: Counter[str]) -> Iterator[str]:
    """Yield the lines that are neither too short nor too long in the form that they will have."""
    for line in lines:
        problem = _unfit(shape, line)
        if problem:
            tally[f"real, {problem}"] += 1
        else:
            yield line


def _unfit(shape: Form, text: str) -> str:
    words = len(shape.words(text))
    return "too short" if words < SHORTEST else "too long" if words > LONGEST else ""


def _sampled(source: Source, shape: Form) -> Iterator[str]:
    """Return sentences of the model without end, in lower case if that was asked."""

    def tell(problem: str) -> None:
        source.tally[f"sampled, {problem}"] += 1

    drawn = sampled(source.lm, None, seed=source.seed, longest=LONGEST, unknown=True, tell=tell)
    fitting = _taken(drawn, lambda text: _unfit(shape, text), source.tally)
    return map(str.lower, fitting) if source.lower else fitting


def _taken(drawn: Iterator[str], problem: Callable[[str], str], tally: Counter[str]) -> Iterator[str]:
    """Yield the model's sentences that have no problem; one that has only others is an error."""
    in_vain = 0
    for text in drawn:
        if found := problem(text):
            tally[f"sampled, {found}"] += 1
            in_vain += 1
        else:
            in_vain = 0
            yield text
        if in_vain >= _IN_VAIN:
            raise ModelError(f"the last {in_vain:,} sentences of the model were refused: {found}, as {shorten(text)!r}")


@dataclass(frozen=True)
class _Buffer:
    """Real sentences that are shuffled together, and the fakes among them.

    Args:
        raw: The sentences as the corpus has them.
    """

    shape: Form
    raw: tuple[str, ...]
    random: np.random.Generator
    tally: Counter[str]

    @cached_property
    def real(self) -> list[str]:
        """The sentences in the form that all have."""
        return [self.shape.text(each) for each in self.raw]

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.real)

    def unlike(self, drawn: Iterator[str]) -> Iterator[str]:
        """Return those of the model's sentences that are no real ones."""
        return _taken(drawn, lambda text: "a real sentence" if text in self._known else "", self.tally)

    def permuted(self) -> Iterator[str]:
        """Yield permuted sentences without end, each real one once before any is taken for a second time."""
        small = small_words(self.raw)
        while True:
            made = 0
            for place in self.random.permutation(len(self.raw)).tolist():
                text = self._permuted(self.raw[place], small)
                if text is None:
                    self.tally["permuted, no other order"] += 1
                else:
                    made += 1
                    yield text
            if not made:
                raise CorpusError("the words of none of the sentences can change places: no fakes can be made of them")

    def _permuted(self, text: str, small: Collection[str]) -> str | None:
        """Return a sentence with words in other places, which is no real one; None if none is found."""
        for _ in range(_TRIES):
            found = permuted_text(text, self.random, small)
            if found is None:
                return None
            if (told := self.shape.text(found)) not in self._known:
                return told
        return None


def made_sentences(
    corpus: Sequence[str | Path],
    count: int,
    *,
    lm: str = "",
    seed: int = 0,
    lower: bool = False,
    tally: Counter[str] | None = None,
) -> Iterator[Sentence]:
    """Return real sentences and fakes, as ``acceptability generate real-fake`` writes them.

    Args:
        corpus: Files or folders of text, one sentence a line.
        count: How many sentences, real and fake together; a corpus that has too few is an error.
        lm: The language model that half of the fakes are drawn from; all are permuted without it.
        lower: Whether all is put in lower case, also where the model has capitals.
        tally: Counts what is made and what is left out, and why.
    """
    source = Source(open_corpus(corpus), lm, seed, lower=lower, tally=Counter() if tally is None else tally)
    return _exactly(sentences(source, count), count)


def _exactly(made: Iterator[Sentence], count: int) -> Iterator[Sentence]:
    given = 0
    for each in made:
        given += 1
        yield each
    if given < count:
        raise CorpusError(f"the corpus gives {given:,} sentences, real and fake, and {count:,} were asked for")


def write_real_fake(
    corpus: Sequence[str | Path], lm: str, path: Path, count: int, *, seed: int, lower: bool = False
) -> Counter[str]:
    """Write real sentences and fakes as a suite, and return how many of each kind were made or left out."""
    tally: Counter[str] = Counter()
    write_sentences(made_sentences(corpus, count, lm=lm, seed=seed, lower=lower, tally=tally), path)
    return tally
