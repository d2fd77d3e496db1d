"""N-gram models with interpolated modified Kneser–Ney smoothing, from plain text, with NumPy alone.

The corpus is read once into numbers; n-grams are counted order by order in sorted chunks; the
model is estimated, pruned if asked, and written as sorted arrays, which ``ngram:FOLDER`` opens.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import TrainError
from acceptability.models import arrays, vocabulary
from acceptability.models.splitting import RULES
from acceptability.models.vocabulary import END, Vocabulary
from acceptability.train import counting
from acceptability.train.arpa import write_arpa
from acceptability.train.checkpoint import State, array, atomic
from acceptability.train.counting import Grams
from acceptability.train.kneser_ney import Estimate, estimate
from acceptability.train.pruning import pruned
from acceptability.train.recipe import Job, Trained
from acceptability.train.tick import Tick
from acceptability.train.vocabulary import Encoded, encode


@dataclass(frozen=True)
class NGram:
    """N-gram model with interpolated modified Kneser–Ney smoothing; needs neither torch nor a GPU.

    Args:
        order: The longest sequence of words that is looked at: 3 is a trigram.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is cut into words: split, punctuation, words or spaces.
        lower: Whether words are put into lower case.
        prune: Drop n-grams that cost less than this share of perplexity each, such as 1e-8; 0 drops none.
        bits: How finely log-probabilities are kept: 32, 16, or 8 bits.
        arpa: Whether to write ``model.arpa`` too, which other programs read.
    """

    order: int = 3
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    prune: float = 0.0
    bits: int = 32
    arpa: bool = False

    kind: ClassVar[str] = "ngram"
    opened_as: ClassVar[str] = "ngram"

    def __post_init__(self) -> None:
        if not 1 <= self.order <= 10:
            raise TrainError(f"order is {self.order}; expected a whole number from 1 to 10")
        if self.vocabulary < 0:
            raise TrainError(f"vocabulary is {self.vocabulary}; expected a number of words, or 0 for all")
        if self.words not in RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(RULES)}")
        if not 0 <= self.prune < 1:
            raise TrainError(f"prune is {self.prune}; expected a share from 0 to 1, such as 1e-8")
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")

    def follow(self, job: Job) -> Trained:
        """Count, estimate, prune, write."""
        encoded = self._encoded(job)
        orders = self._counted(job, encoded)
        size = len(encoded.vocabulary)
        job.tell(Tick("estimating", 0, 1))
        whole = estimate(orders, size)
        kept = pruned(whole, self.prune) if self.prune else whole
        job.tell(Tick("estimating", 1, 1))
        write_model(job.out, encoded.vocabulary, tabled(kept), bits=self.bits, arpa=self.arpa)
        return Trained(unigrams_of(encoded), _facts(encoded, whole, kept))

    def _encoded(self, job: Job) -> Encoded:
        """Return the corpus in numbers, from the checkpoint if it is there."""
        state = job.checkpoints.latest()
        if state is None:
            done = np.zeros(2, np.int64)
            total = job.corpus.bytes_on_disk

            def told(size: int, words: int) -> None:
                done[:] += (size, words)
                job.tell(Tick("reading", int(done[0]), total, int(done[1])))

            fresh = encode(job.corpus, self.vocabulary, self.words, lower=self.lower, told=told)
            content = fresh.vocabulary.to_json()
            parts = {"ids": array(fresh.ids), "counts": array(fresh.counts), "words": lambda out: out.write(content)}
            job.save(1, parts)
            return fresh
        kept = json.loads(state.parts["words"].read_bytes())
        known = Vocabulary(tuple(kept["words"]), kept["words_by"], kept["lower"])
        return Encoded(known, np.load(state.parts["ids"]), np.load(state.parts["counts"]))

    def _counted(self, job: Job, encoded: Encoded) -> list[Grams]:
        """Return the n-grams of every order, those from the checkpoint that are there."""
        ids, size = encoded.ids, len(encoded.vocabulary)
        orders = [counting.first_order(ids, size)]
        before = counting.before_words(ids)
        for order in range(2, self.order + 1):
            grams = _kept(job.checkpoints.latest(), order)
            if grams is None:
                grams = counting.next_order(ids, before, size, told=_teller(job, order, len(ids)))
                job.save(order, {f"keys{order}": array(grams.keys), f"counts{order}": array(grams.counts)})
            orders.append(grams)
            if order < self.order:
                before = counting.before_next(ids, before, size, grams)
        return orders


def write_model(folder: Path, words: Vocabulary, orders: Sequence[arrays.Order], *, bits: int, arpa: bool) -> None:
    """Write a table of n-grams as ``ngram:FOLDER`` opens it, and as ARPA text if asked."""
    from safetensors.numpy import save

    # One entry only: several would be written in an order that changes from run to run.
    about = {"format": arrays.FORMAT}
    with atomic(folder / vocabulary.FILE) as out:
        out.write(words.to_json())
    with atomic(folder / arrays.FILE) as out:
        out.write(save(arrays.packed(len(words), orders, bits), metadata=about))
    if arpa:
        with atomic(folder / "model.arpa") as out:
            write_arpa(out, words.words, orders)


def unigrams_of(encoded: Encoded) -> dict[str, int]:
    """Return how often each word of the vocabulary stands in the corpus; ``<s>``, which is never foretold, is none."""
    counts = dict(zip(encoded.vocabulary.words, encoded.counts.tolist(), strict=True))
    del counts["<s>"]
    return counts


def tabled(model: Estimate) -> list[arrays.Order]:
    """Return a model as a table of log-probabilities."""
    highest = len(model.levels) - 1
    return [
        arrays.Order(
            level.keys,
            np.log(level.probs).astype(np.float32),
            np.log(np.maximum(level.backoffs, 1e-30) if place < highest else []).astype(np.float32),
        )
        for place, level in enumerate(model.levels)
    ]


def _teller(job: Job, order: int, total: int) -> Callable[[int], None]:
    return lambda done: job.tell(Tick(f"counting {order}-grams", done, total, done))


def _kept(state: State | None, order: int) -> Grams | None:
    if state is None or f"keys{order}" not in state.parts:
        return None
    return Grams(np.load(state.parts[f"keys{order}"]), np.load(state.parts[f"counts{order}"]))


def _facts(encoded: Encoded, whole: Estimate, kept: Estimate) -> dict[str, object]:
    def sizes(model: Estimate) -> Sequence[int]:
        return [len(level.keys) for level in model.levels]

    return {
        "words in the model's own rule": int(np.delete(encoded.counts, END).sum()),
        "share of unknown words": round(encoded.oov, 5),
        "vocabulary": len(encoded.vocabulary),
        "n-grams of each order": sizes(whole),
        "n-grams kept": sizes(kept),
        "discounts of each order": [[round(each, 5) for each in three] for three in whole.discounts],
    }
