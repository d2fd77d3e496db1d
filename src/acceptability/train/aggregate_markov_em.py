"""Aggregate Markov models (Saul and Pereira 1997), trained by expectation maximisation (EM); NumPy and SciPy alone.

P(next | word) = Σ over hidden classes of P(class | word) · P(next | class). The corpus is read once into bigram counts.
An EM iteration distributes the count of each bigram over the classes by their posterior probabilities (E step), and
estimates both factors from these expected counts (M step); it never lowers the likelihood of the corpus. Iterations
stop when the perplexity hardly falls any more, with a checkpoint after each; then both factors are smoothed.

No step holds bigrams × classes in memory: the expected counts are summed by products of sparse matrices, and
probabilities of bigrams go through ``compute_bigram_probabilities`` in blocks.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from acceptability.errors import TrainError
from acceptability.models.ngram.aggregate_markov import (
    WEIGHTS_FILE,
    AggregateMarkovTable,
    compute_bigram_probabilities,
    serialize_aggregate_markov,
)
from acceptability.text import words
from acceptability.text.words import END, SPLIT_RULES, START, UNKNOWN, Vocabulary
from acceptability.train import kneser_ney
from acceptability.train.checkpoint import atomic_write, make_array_writer
from acceptability.train.corpus import Corpus, encode_corpus
from acceptability.train.kneser_ney import NGramCounts
from acceptability.train.recipe import Recipe, RecipeOutput, TrainingJob, TrainingProgress, rename_options
from acceptability.types import Floats

# Smaller factors become 0, before their products are denormal numbers, which slow a processor down. No bigram loses its
# probability: after an iteration its most likely class has at least 1 / (classes · tokens) in both factors.
_TINY = 1e-150
_TOP_WORDS = 8


@dataclass(frozen=True)
class BigramCorpus:
    """A corpus as bigrams.

    Args:
        counts: The counts of the words of the vocabulary.
    """

    vocabulary: Vocabulary
    counts: NDArray[np.int64]
    pairs: BigramCounts


@dataclass(frozen=True)
class EMState:
    """The factors after some iterations of EM, and the losses of all iterations.

    Args:
        training_losses: The loss on the corpus itself after each iteration.
        stopping_losses: The loss after each iteration that decides when to stop: of the smoothed model on the dev set,
            or the same as ``training_losses`` where there is none.
    """

    factors: Factors
    training_losses: tuple[float, ...] = ()
    stopping_losses: tuple[float, ...] = ()


@rename_options(
    passes="max_iterations",
    gain="tolerance",
    before="history_pseudocount",
    after="target_pseudocount",
)
@dataclass(frozen=True)
class AggregateMarkovRecipe(Recipe):
    """Bigram model with hidden classes, as in Pereira (2000); needs neither torch nor a GPU.

    Args:
        classes: The number of hidden classes between a word and the next.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is split into words: split, punctuation, words or spaces.
        lower: Whether words are lower-cased.
        max_iterations: The largest number of EM iterations.
        tolerance: Stop when an iteration lowers the perplexity (of dev, or else of the corpus) by less than this
            relative amount.
        history_pseudocount: Smoothing: the pseudo-count of each word as a history, in the classes of the whole corpus.
        target_pseudocount: Smoothing: the pseudo-count of each word as a predicted word, likewise.
        seed: The seed of the random initial factors.
    """

    classes: int = 16
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    max_iterations: int = 200
    tolerance: float = 1e-4
    history_pseudocount: float = 3.0
    target_pseudocount: float = 1.0
    seed: int = 1

    kind: ClassVar[str] = "aggregate-markov"
    opened_as: ClassVar[str] = "aggregate-markov"

    def __post_init__(self) -> None:
        for name, minimum in (("classes", 1), ("vocabulary", 0), ("max_iterations", 1), ("seed", 0)):
            if getattr(self, name) < minimum:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a whole number from {minimum}")
        if self.words not in SPLIT_RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(SPLIT_RULES)}")
        if not 0 <= self.tolerance < 1:
            raise TrainError(f"tolerance is {self.tolerance}; expected a share from 0 to 1, such as 1e-4")
        for name in ("history_pseudocount", "target_pseudocount"):
            if not 0 < getattr(self, name) < math.inf:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a number above 0, such as 1.0")

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Count bigrams, run EM until it converges, smooth the factors, write the model."""
        bigrams = self._load_bigrams(job)
        dev = count_held_out_bigrams(job.dev, bigrams.vocabulary) if job.dev else None
        em_state = self._run_em(job, bigrams.pairs, dev)
        model = self._smooth(bigrams.pairs, em_state.factors)
        with atomic_write(job.out / words.VOCABULARY_FILE) as out:
            out.write(bigrams.vocabulary.to_json())
        with atomic_write(job.out / WEIGHTS_FILE) as out:
            out.write(serialize_aggregate_markov(model))
        unigrams = dict(zip(bigrams.vocabulary.words, bigrams.counts.tolist(), strict=True))
        # The start of a sentence is never predicted.
        del unigrams["<s>"]
        return RecipeOutput(unigrams, _collect_facts(bigrams, em_state, model))

    def _load_bigrams(self, job: TrainingJob) -> BigramCorpus:
        """Return the bigrams of the corpus, from the checkpoint if they are there."""
        state = job.checkpoints.latest()
        if state is None:
            bigrams, grams = self._count_bigrams(job)
            content = bigrams.vocabulary.to_json()
            arrays = {"counts": bigrams.counts, "keys": grams.keys, "often": grams.counts}
            parts = {name: make_array_writer(array) for name, array in arrays.items()}
            job.save(0, {**parts, "words": lambda out: out.write(content)})
            return bigrams
        stored = json.loads(state.parts["words"].read_bytes())
        vocabulary = Vocabulary(tuple(stored["words"]), stored["words_by"], stored["lower"])
        counts, keys, gram_counts = (np.load(state.parts[name]) for name in ("counts", "keys", "often"))
        return BigramCorpus(vocabulary, counts, build_bigram_counts(NGramCounts(keys, gram_counts), len(vocabulary)))

    def _count_bigrams(self, job: TrainingJob) -> tuple[BigramCorpus, NGramCounts]:
        done, total = np.zeros(2, np.int64), job.corpus.bytes_on_disk

        def report_reading(size: int, words: int) -> None:
            done[:] += (size, words)
            job.report_progress(TrainingProgress("reading", int(done[0]), total, int(done[1])))

        encoded = encode_corpus(job.corpus, self.vocabulary, self.words, lower=self.lower, on_progress=report_reading)
        ids, size = encoded.ids, len(encoded.vocabulary)
        grams = kneser_ney.count_ngrams(
            ids,
            kneser_ney.find_previous_words(ids),
            size,
            on_progress=lambda done: job.report_progress(TrainingProgress("counting pairs", done, len(ids), done)),
        )
        return BigramCorpus(encoded.vocabulary, encoded.counts, build_bigram_counts(grams, size)), grams

    def _run_em(self, job: TrainingJob, pairs: BigramCounts, dev: BigramCounts | None) -> EMState:
        """Return the state of the best iteration of EM, which continues from the last checkpoint if there is one."""
        em_state = self._restore_or_draw(job, pairs.size)
        probs = pairs.compute_probs(em_state.factors)
        self._report_progress(job, pairs, em_state)
        while not self._is_converged(em_state.stopping_losses):
            factors = run_em_step(pairs, em_state.factors, probs)
            probs = pairs.compute_probs(factors)
            training_loss = pairs.compute_loss(probs)
            stopping_loss = self._compute_dev_loss(pairs, factors, dev) if dev else training_loss
            if em_state.stopping_losses and stopping_loss > em_state.stopping_losses[-1]:
                # Overfitting: the iteration before was better, and its state is returned.
                break
            em_state = EMState(
                factors, (*em_state.training_losses, training_loss), (*em_state.stopping_losses, stopping_loss)
            )
            self._save_checkpoint(job, em_state)
            self._report_progress(job, pairs, em_state)
        return em_state

    def _restore_or_draw(self, job: TrainingJob, size: int) -> EMState:
        state = job.checkpoints.latest()
        if state is None or "histories" not in state.parts:
            return EMState(draw_factors(size, self.classes, self.seed))
        factors = Factors(np.load(state.parts["histories"]), np.load(state.parts["followers"]))
        facts: Mapping[str, Any] = state.facts
        return EMState(factors, tuple(facts["training"]), tuple(facts["watched"]))

    def _is_converged(self, losses: Sequence[float]) -> bool:
        """Return whether the last iteration gained too little, or was the last that is allowed."""
        gains = [1 - math.exp(after - before) for before, after in pairwise(losses[-2:])]
        return len(losses) >= self.max_iterations or any(gain < self.tolerance for gain in gains)

    def _compute_dev_loss(self, pairs: BigramCounts, factors: Factors, dev: BigramCounts) -> float:
        model = self._smooth(pairs, factors)
        return dev.compute_loss(dev.compute_probs(Factors(model.histories, model.followers)))

    def _smooth(self, pairs: BigramCounts, factors: Factors) -> AggregateMarkovTable:
        return smooth_factors(
            pairs,
            factors,
            history_pseudocount=self.history_pseudocount,
            target_pseudocount=self.target_pseudocount,
        )

    def _save_checkpoint(self, job: TrainingJob, em_state: EMState) -> None:
        parts = {
            "histories": make_array_writer(em_state.factors.histories),
            "followers": make_array_writer(em_state.factors.followers),
        }
        job.save(
            len(em_state.stopping_losses),
            parts,
            {"training": em_state.training_losses, "watched": em_state.stopping_losses},
        )

    def _report_progress(self, job: TrainingJob, pairs: BigramCounts, em_state: EMState) -> None:
        done = len(em_state.stopping_losses)
        loss = em_state.stopping_losses[-1] if em_state.stopping_losses else None
        job.report_progress(
            TrainingProgress("learning classes", done, self.max_iterations, done * int(pairs.total), loss)
        )


def count_held_out_bigrams(dev: Corpus, words: Vocabulary) -> BigramCounts:
    """Return the bigrams of held-out text, in the ids of a vocabulary."""
    word_ids = [word_id for line in dev.sentences() for word_id in (*words.to_ids(words.tokenize(line)[0]), END)]
    ids = np.array(word_ids, np.int32)
    grams = kneser_ney.count_ngrams(ids, kneser_ney.find_previous_words(ids), len(words), on_progress=lambda _: None)
    return build_bigram_counts(grams, len(words))


def _collect_facts(bigrams: BigramCorpus, em_state: EMState, model: AggregateMarkovTable) -> dict[str, object]:
    words = int(np.delete(bigrams.counts, END).sum())
    return {
        "words by the model's own rule": words,
        "share of unknown words": round(int(bigrams.counts[UNKNOWN]) / words, 5),
        "vocabulary": len(bigrams.vocabulary),
        "distinct bigrams": len(bigrams.pairs.counts),
        "iterations": len(em_state.training_losses),
        "perplexity of the corpus after each iteration": [
            round(math.exp(loss), 3) for loss in em_state.training_losses
        ],
        "most probable words of each class": _find_top_words(model, bigrams.vocabulary),
    }


def _find_top_words(model: AggregateMarkovTable, words: Vocabulary) -> list[str]:
    """Return the most probable words of each class, the most frequent class first."""
    top_ids = np.argsort(-model.followers, axis=0, kind="stable")[:_TOP_WORDS]
    ranked = np.argsort(-model.histories[-1], kind="stable")
    return [" ".join(words.words[word_id] for word_id in top_ids[:, class_index]) for class_index in ranked]


@dataclass(frozen=True)
class BigramCounts:
    """The distinct bigrams of a corpus, sorted by their first word.

    Args:
        size: The size of the vocabulary.
        first_words: The first word of each bigram.
        second_words: The second word.
        counts: The counts of the bigrams.
    """

    size: int
    first_words: NDArray[np.int32]
    second_words: NDArray[np.int32]
    counts: Floats

    @cached_property
    def total(self) -> float:
        """The number of predicted words, ends of sentences included."""
        return float(self.counts.sum())

    @cached_property
    def history_counts(self) -> Floats:
        """The count of each word as the first of a bigram."""
        return np.bincount(self.first_words, weights=self.counts, minlength=self.size).astype(np.float64)

    @cached_property
    def row_starts(self) -> NDArray[np.int32]:
        """The index of the first bigram of each first word, and the number of bigrams last: the row pointers of CSR."""
        return np.searchsorted(self.first_words, np.arange(self.size + 1)).astype(np.int32)

    def compute_probs(self, factors: Factors) -> Floats:
        """Return the probability of the second word of each bigram after its first."""
        return compute_bigram_probabilities(factors.histories, factors.followers, self.first_words, self.second_words)

    def compute_loss(self, probs: Floats) -> float:
        """Return the mean negative log-probability of a word (nats)."""
        return float(-(self.counts * np.log(probs)).sum()) / self.total


@dataclass(frozen=True)
class Factors:
    """The two factors of the model, with a row for each word and a column for each class.

    Args:
        histories: P(class | word): each row sums to 1.
        followers: P(word | class): each column sums to 1.
    """

    histories: Floats
    followers: Floats


def build_bigram_counts(grams: NGramCounts, size: int) -> BigramCounts:
    """Return bigrams from their keys, first word × size + second word.

    >>> bigrams = build_bigram_counts(NGramCounts(np.array([4, 5, 11]), np.array([2, 1, 1])), size=4)
    >>> bigrams.first_words.tolist(), bigrams.second_words.tolist()
    ([1, 1, 2], [0, 1, 3])
    """
    first_words, second_words = np.divmod(grams.keys, size)
    return BigramCounts(
        size, first_words.astype(np.int32), second_words.astype(np.int32), grams.counts.astype(np.float64)
    )


def draw_factors(size: int, classes: int, seed: int) -> Factors:
    """Return random factors, their rows and columns uniform over all distributions; no class predicts ``<s>``."""
    draws = np.random.default_rng(seed)
    # Normalised exponential draws are a draw from the flat Dirichlet distribution. Equal factors would be a fixed point
    # of EM: every class would stay like every other.
    histories = draws.exponential(size=(size, classes))
    followers = draws.exponential(size=(size, classes))
    followers[START] = 0.0
    return Factors(histories / histories.sum(axis=1, keepdims=True), followers / followers.sum(axis=0))


def run_em_step(pairs: BigramCounts, factors: Factors, probs: Floats) -> Factors:
    """Return the factors after one more iteration of EM.

    Args:
        pairs: The bigrams of the corpus.
        factors: The current factors.
        probs: The probabilities of the bigrams, ``pairs.compute_probs(factors)``.
    """
    # The posterior of a class is histories · followers / probability. The factor that belongs to the row (or column)
    # leaves the sum over bigrams, which is then a product of the sparse matrix counts / probs with the other factor.
    shape = (pairs.size, pairs.size)
    weights = sparse.csr_array((pairs.counts / probs, pairs.second_words, pairs.row_starts), shape=shape)
    histories = factors.histories * (weights @ factors.followers)
    followers = factors.followers * (weights.T @ factors.histories)
    # A word that nothing follows and a class without expected counts have no estimate, and keep their distribution.
    return Factors(
        _normalise(histories, histories.sum(axis=1, keepdims=True), factors.histories),
        _normalise(followers, followers.sum(axis=0, keepdims=True), factors.followers),
    )


def smooth_factors(
    pairs: BigramCounts, factors: Factors, *, history_pseudocount: float, target_pseudocount: float
) -> AggregateMarkovTable:
    """Return the smoothed model, in which every word but ``<s>`` has a probability after every other.

    Args:
        history_pseudocount: The pseudo-count of each word as a history, distributed over the classes in proportion to
            their share of the corpus: the rarer a history, the more its predictions resemble the unigram distribution.
        target_pseudocount: The pseudo-count of each word as a predicted word, distributed over the classes likewise: no
            word but ``<s>`` keeps the probability 0.
    """
    history_counts = pairs.history_counts[:, None]
    proportion = pairs.history_counts @ factors.histories / pairs.total
    histories = (history_counts * factors.histories + history_pseudocount * proportion) / (
        history_counts + history_pseudocount
    )
    pseudo_counts = np.full((pairs.size, 1), target_pseudocount / pairs.total)
    pseudo_counts[START] = 0.0
    followers = (factors.followers + pseudo_counts) / (1 + pseudo_counts.sum())
    # The last row is the distribution over classes for an empty history.
    return AggregateMarkovTable(np.vstack([histories, proportion]), followers)


def _normalise(counts: Floats, sums: Floats, fallback: Floats) -> Floats:
    shares = np.where(sums > 0, counts / np.where(sums > 0, sums, 1.0), fallback)
    shares[shares < _TINY] = 0.0
    return shares
