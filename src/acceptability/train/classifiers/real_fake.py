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

import json
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from acceptability.errors import CorpusError, SpellingError
from acceptability.generate.corrupt import permuted_text, small_words
from acceptability.models.sampling import Form, form, sampled
from acceptability.train.checkpoint import atomic
from acceptability.train.corpus import Corpus, open_corpus
from acceptability.types import Sentence

SHORTEST, LONGEST = 3, 60
_SIDE_BY_SIDE = 16
_AT_ONCE = 1024
_TRIES = 20


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
        real = [shape.text(each) for each in raw]
        fakes = len(raw) if left is None else min(len(raw), left // 2)
        made = [(text, 1, "real") for text in real]
        made += [(text, 0, kind) for text, kind in _fakes(source, shape, raw, real, drawn, fakes, random)]
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
    """Yield sentences of the model without end, in lower case if that was asked."""

    def tell(problem: str) -> None:
        source.tally[f"sampled, {problem}"] += 1

    for text in sampled(source.lm, None, seed=source.seed, longest=LONGEST, unknown=True, tell=tell):
        if problem := _unfit(shape, text):
            tell(problem)
        else:
            yield text.lower() if source.lower else text


def _fakes(
    source: Source,
    shape: Form,
    raw: Sequence[str],
    real: Sequence[str],
    drawn: Iterator[str],
    count: int,
    random: np.random.Generator,
) -> Iterator[tuple[str, str]]:
    """Yield so many fakes, none of which is a real sentence, with their kinds."""
    known = frozenset(real)
    of_model = count // 2 if source.lm else 0
    while of_model:
        text = next(drawn)
        if text in known:
            source.tally["sampled, a real sentence"] += 1
        else:
            of_model -= 1
            yield text, "sampled"
    wanted = count - (count // 2 if source.lm else 0)
    for text in islice(_permuted(source.tally, shape, raw, known, random), wanted):
        yield text, "permuted"


def _permuted(
    tally: Counter[str], shape: Form, raw: Sequence[str], known: Collection[str], random: np.random.Generator
) -> Iterator[str]:
    """Yield permuted sentences without end, each real one once before any is taken for a second time."""
    small = small_words(raw)
    while True:
        made = 0
        for place in random.permutation(len(raw)).tolist():
            text = _once_permuted(shape, raw[place], small, known, random)
            if text is None:
                tally["permuted, no other order"] += 1
            else:
                made += 1
                yield text
        if not made:
            raise CorpusError("the words of none of the sentences can change places: no fakes can be made of them")


def _once_permuted(
    shape: Form, text: str, small: Collection[str], known: Collection[str], random: np.random.Generator
) -> str | None:
    """Return a sentence with words in other places, which is no real one; None if none is found."""
    for _ in range(_TRIES):
        found = permuted_text(text, random, small)
        if found is None:
            return None
        if (told := shape.text(found)) not in known:
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
    for given, each in enumerate(made, start=1):
        yield each
    if given < count:
        raise CorpusError(f"the corpus gives {given:,} sentences, real and fake, and {count:,} were asked for")


def write_real_fake(made: Iterator[Sentence], path: Path) -> int:
    """Write sentences as a suite, one a line as they come, and return how many; the file appears when it is whole."""
    count = 0
    with atomic(path) as out:
        for count, each in enumerate(made, start=1):
            row = {"id": each.id, "text": each.text, "label": each.label, "tags": dict(each.tags)}
            out.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
    return count
