"""Aggregate Markov models (Saul and Pereira 1997): bigrams through a few hidden classes, with NumPy and SciPy alone.

The corpus is read once into pairs of neighbours with their counts; passes of expectation and maximisation go over
these until the perplexity hardly falls any more, with a checkpoint after each; then both factors are smoothed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import TrainError
from acceptability.models import vocabulary
from acceptability.models.aggregate_markov import FILE, Classes, packed
from acceptability.models.splitting import RULES
from acceptability.models.vocabulary import END, UNKNOWN, Vocabulary
from acceptability.train import counting
from acceptability.train.checkpoint import array, atomic
from acceptability.train.class_bigrams import Factors, Pairs, begun, improved, pairs_of, smoothed
from acceptability.train.corpus import Corpus
from acceptability.train.counting import Grams
from acceptability.train.recipe import Job, Trained
from acceptability.train.tick import Tick
from acceptability.train.vocabulary import encode

_SHOWN = 8


@dataclass(frozen=True)
class Read:
    """A corpus as pairs of neighbours.

    Args:
        counts: How often each entry of the vocabulary stands there.
    """

    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    pairs: Pairs


@dataclass(frozen=True)
class Progress:
    """What some passes have found.

    Args:
        training: The loss on the corpus itself after each pass.
        watched: The loss after each pass that tells when to stop: of the smoothed model on the dev set,
            or the same as ``training`` where there is none.
    """

    factors: Factors
    training: tuple[float, ...] = ()
    watched: tuple[float, ...] = ()


@dataclass(frozen=True)
class AggregateMarkov:
    """Bigram model through hidden classes, as Pereira (2000) used; needs neither torch nor a GPU.

    Args:
        classes: How many hidden classes stand between a word and the next.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is cut into words: split, punctuation, words or spaces.
        lower: Whether words are put into lower case.
        passes: How often the corpus is gone through at most.
        gain: Stop when a pass lowers the perplexity (of dev, or else of the corpus) by less than this share of it.
        before: Smoothing: how many more times each word is taken to stand before others, in the classes of all words.
        after: Smoothing: how many more times each word is taken to stand after others, in the classes of all words.
        seed: Where the random beginning comes from.
    """

    classes: int = 16
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    passes: int = 200
    gain: float = 1e-4
    before: float = 3.0
    after: float = 1.0
    seed: int = 1

    kind: ClassVar[str] = "aggregate-markov"
    opened_as: ClassVar[str] = "aggregate-markov"

    def __post_init__(self) -> None:
        for name, least in (("classes", 1), ("vocabulary", 0), ("passes", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a whole number from {least}")
        if self.words not in RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(RULES)}")
        if not 0 <= self.gain < 1:
            raise TrainError(f"gain is {self.gain}; expected a share from 0 to 1, such as 1e-4")
        for name in ("before", "after"):
            if not 0 < getattr(self, name) < math.inf:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a number above 0, such as 1.0")

    def follow(self, job: Job) -> Trained:
        """Count pairs, go over them until little is gained, smooth, write."""
        read = self._read(job)
        dev = held_out(job.dev, read.vocabulary) if job.dev else None
        found = self._learnt(job, read.pairs, dev)
        model = self._smoothed(read.pairs, found.factors)
        with atomic(job.out / vocabulary.FILE) as out:
            out.write(read.vocabulary.to_json())
        with atomic(job.out / FILE) as out:
            out.write(packed(model))
        unigrams = dict(zip(read.vocabulary.words, read.counts.tolist(), strict=True))
        del unigrams["<s>"]
        return Trained(unigrams, _facts(read, found, model))

    def _read(self, job: Job) -> Read:
        """Return the pairs of the corpus, from the checkpoint if they are there."""
        state = job.checkpoints.latest()
        if state is None:
            read, grams = self._counted(job)
            content = read.vocabulary.to_json()
            arrays = {"counts": read.counts, "keys": grams.keys, "often": grams.counts}
            parts = {name: array(each) for name, each in arrays.items()}
            job.save(0, {**parts, "words": lambda out: out.write(content)})
            return read
        kept = json.loads(state.parts["words"].read_bytes())
        words = Vocabulary(tuple(kept["words"]), kept["words_by"], kept["lower"])
        counts, keys, often = (np.load(state.parts[name]) for name in ("counts", "keys", "often"))
        return Read(words, counts, pairs_of(Grams(keys, often), len(words)))

    def _counted(self, job: Job) -> tuple[Read, Grams]:
        done, total = np.zeros(2, np.int64), job.corpus.bytes_on_disk

        def told(size: int, words: int) -> None:
            done[:] += (size, words)
            job.tell(Tick("reading", int(done[0]), total, int(done[1])))

        encoded = encode(job.corpus, self.vocabulary, self.words, lower=self.lower, told=told)
        ids, size = encoded.ids, len(encoded.vocabulary)
        grams = counting.next_order(
            ids,
            counting.before_words(ids),
            size,
            told=lambda done: job.tell(Tick("counting pairs", done, len(ids), done)),
        )
        return Read(encoded.vocabulary, encoded.counts, pairs_of(grams, size)), grams

    def _learnt(self, job: Job, pairs: Pairs, dev: Pairs | None) -> Progress:
        """Return what the passes find, from the last checkpoint on."""
        found = self._begun(job, pairs.size)
        probs = pairs.probs(found.factors)
        self._tell(job, pairs, found)
        while not self._is_settled(found.watched):
            factors = improved(pairs, found.factors, probs)
            probs = pairs.probs(factors)
            training = pairs.loss(probs)
            watched = self._loss(pairs, factors, dev) if dev else training
            if found.watched and watched > found.watched[-1]:
                break  # It has begun to learn the corpus by heart: the pass before was better.
            found = Progress(factors, (*found.training, training), (*found.watched, watched))
            self._save(job, found)
            self._tell(job, pairs, found)
        return found

    def _begun(self, job: Job, size: int) -> Progress:
        state = job.checkpoints.latest()
        if state is None or "histories" not in state.parts:
            return Progress(begun(size, self.classes, self.seed))
        factors = Factors(np.load(state.parts["histories"]), np.load(state.parts["followers"]))
        facts: Mapping[str, Any] = state.facts
        return Progress(factors, tuple(facts["training"]), tuple(facts["watched"]))

    def _is_settled(self, watched: Sequence[float]) -> bool:
        """Tell whether the last pass gained too little, or was the last that is allowed."""
        gains = [1 - math.exp(after - before) for before, after in pairwise(watched[-2:])]
        return len(watched) >= self.passes or any(gain < self.gain for gain in gains)

    def _loss(self, pairs: Pairs, factors: Factors, dev: Pairs) -> float:
        model = self._smoothed(pairs, factors)
        return dev.loss(dev.probs(Factors(model.histories, model.followers)))

    def _smoothed(self, pairs: Pairs, factors: Factors) -> Classes:
        return smoothed(pairs, factors, before=self.before, after=self.after)

    def _save(self, job: Job, found: Progress) -> None:
        parts = {"histories": array(found.factors.histories), "followers": array(found.factors.followers)}
        job.save(len(found.watched), parts, {"training": found.training, "watched": found.watched})

    def _tell(self, job: Job, pairs: Pairs, found: Progress) -> None:
        done = len(found.watched)
        loss = found.watched[-1] if found.watched else None
        job.tell(Tick("learning classes", done, self.passes, done * int(pairs.total), loss))


def held_out(dev: Corpus, words: Vocabulary) -> Pairs:
    """Return the pairs of another corpus, in the numbers of a vocabulary."""
    found = [number for line in dev.sentences() for number in (*words.numbers(words.cut(line)[0]), END)]
    ids = np.array(found, np.int32)
    grams = counting.next_order(ids, counting.before_words(ids), len(words), told=lambda _: None)
    return pairs_of(grams, len(words))


def _facts(read: Read, found: Progress, model: Classes) -> dict[str, object]:
    words = int(np.delete(read.counts, END).sum())
    return {
        "words in the model's own rule": words,
        "share of unknown words": round(int(read.counts[UNKNOWN]) / words, 5),
        "vocabulary": len(read.vocabulary),
        "different pairs": len(read.pairs.counts),
        "passes": len(found.training),
        "perplexity of the corpus after each pass": [round(math.exp(loss), 3) for loss in found.training],
        "words that each class foretells most": _foretold(model, read.vocabulary),
    }


def _foretold(model: Classes, words: Vocabulary) -> list[str]:
    """Return the most probable words of each class, the most frequent class first."""
    most = np.argsort(-model.followers, axis=0, kind="stable")[:_SHOWN]
    ranked = np.argsort(-model.histories[-1], kind="stable")
    return [" ".join(words.words[number] for number in most[:, each]) for each in ranked]
