"""N-gram models from plain text: ``ngram`` (modified Kneser–Ney, NumPy alone) and ``varikn`` (variable length).

``ngram`` encodes the corpus as word ids, counts n-grams order by order, estimates the model, prunes it on request, and
writes sorted arrays, which ``ngram:FOLDER`` opens; see ``kneser_ney`` for the algorithms.

``varikn`` adds an n-gram to the model where it gains more than it costs, up to the order, and prunes afterwards; other
n-grams are never counted (Siivola, Hirsimäki and Virpioja 2007). The package of that name does the work, in a process
of its own; the model is written in the same format.
"""

from __future__ import annotations

import json
import subprocess  # nosec B404
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.models.ngram import trained
from acceptability.models.ngram.arpa import Arpa, convert_arpa, write_arpa
from acceptability.text.words import END, SPLIT_RULES, VOCABULARY_FILE, Vocabulary
from acceptability.train import kneser_ney
from acceptability.train.checkpoint import CheckpointState, atomic_write, make_array_writer
from acceptability.train.corpus import EncodedCorpus, encode_corpus
from acceptability.train.kneser_ney import KneserNeyModel, NGramCounts, estimate_kneser_ney, prune_ngrams
from acceptability.train.recipe import Recipe, RecipeOutput, TrainingJob, TrainingProgress


@dataclass(frozen=True)
class NGramRecipe(Recipe):
    """N-gram model with interpolated modified Kneser–Ney smoothing; needs neither torch nor a GPU.

    Args:
        order: The length of the longest n-grams: 3 for a trigram model.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is split into words: split, punctuation, words or spaces.
        lower: Whether words are lower-cased.
        prune: Entropy pruning: remove n-grams whose loss raises the perplexity by less than this share each, such as
            1e-8; 0 removes none.
        bits: The precision of log-probabilities: 32, 16, or 8 bits.
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
        if self.words not in SPLIT_RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(SPLIT_RULES)}")
        if not 0 <= self.prune < 1:
            raise TrainError(f"prune is {self.prune}; expected a share from 0 to 1, such as 1e-8")
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Count n-grams, estimate the model, prune it, write it."""
        encoded = self._encode_corpus(job)
        orders = self._count_ngrams(job, encoded)
        size = len(encoded.vocabulary)
        job.report_progress(TrainingProgress("estimating", 0, 1))
        full_model = estimate_kneser_ney(orders, size)
        final_model = prune_ngrams(full_model, self.prune) if self.prune else full_model
        job.report_progress(TrainingProgress("estimating", 1, 1))
        write_ngram_model(job.out, encoded.vocabulary, build_log_tables(final_model), bits=self.bits, arpa=self.arpa)
        return RecipeOutput(collect_unigrams(encoded), _collect_facts(encoded, full_model, final_model))

    def _encode_corpus(self, job: TrainingJob) -> EncodedCorpus:
        """Return the corpus as word ids, from the checkpoint if it is there."""
        state = job.checkpoints.latest()
        if state is None:
            done = np.zeros(2, np.int64)
            total = job.corpus.bytes_on_disk

            def report_reading(size: int, words: int) -> None:
                done[:] += (size, words)
                job.report_progress(TrainingProgress("reading", int(done[0]), total, int(done[1])))

            fresh = encode_corpus(job.corpus, self.vocabulary, self.words, lower=self.lower, on_progress=report_reading)
            content = fresh.vocabulary.to_json()
            parts = {
                "ids": make_array_writer(fresh.ids),
                "counts": make_array_writer(fresh.counts),
                "words": lambda out: out.write(content),
            }
            job.save(1, parts)
            return fresh
        stored = json.loads(state.parts["words"].read_bytes())
        stored_vocabulary = Vocabulary(tuple(stored["words"]), stored["words_by"], stored["lower"])
        return EncodedCorpus(stored_vocabulary, np.load(state.parts["ids"]), np.load(state.parts["counts"]))

    def _count_ngrams(self, job: TrainingJob, encoded: EncodedCorpus) -> list[NGramCounts]:
        """Return the n-grams of every order, from the checkpoint as far as they are there."""
        ids, size = encoded.ids, len(encoded.vocabulary)
        orders = [kneser_ney.count_unigrams(ids, size)]
        histories = kneser_ney.find_previous_words(ids)
        for order in range(2, self.order + 1):
            grams = _load_stored_ngrams(job.checkpoints.latest(), order)
            if grams is None:
                grams = kneser_ney.count_ngrams(
                    ids, histories, size, on_progress=_make_progress_callback(job, order, len(ids))
                )
                # A killed run loses the counts of one order at most.
                job.save(
                    order,
                    {f"keys{order}": make_array_writer(grams.keys), f"counts{order}": make_array_writer(grams.counts)},
                )
            orders.append(grams)
            if order < self.order:
                histories = kneser_ney.find_next_histories(ids, histories, size, grams)
        return orders


def write_ngram_model(
    folder: Path, words: Vocabulary, orders: Sequence[trained.NGramOrder], *, bits: int, arpa: bool
) -> None:
    """Write an n-gram model as ``ngram:FOLDER`` opens it, and with ``arpa`` as an ARPA file too."""
    from safetensors.numpy import save

    # One entry only: safetensors writes several in an order that changes from run to run, and the hash of the file
    # with it.
    metadata = {"format": trained.FORMAT}
    with atomic_write(folder / VOCABULARY_FILE) as out:
        out.write(words.to_json())
    with atomic_write(folder / trained.WEIGHTS_FILE) as out:
        out.write(save(trained.pack_ngrams(len(words), orders, bits), metadata=metadata))
    if arpa:
        with atomic_write(folder / "model.arpa") as out:
            write_arpa(out, words.words, orders)


def collect_unigrams(encoded: EncodedCorpus) -> dict[str, int]:
    """Return the corpus counts of the vocabulary without ``<s>``, which is never predicted."""
    counts = dict(zip(encoded.vocabulary.words, encoded.counts.tolist(), strict=True))
    del counts["<s>"]
    return counts


def build_log_tables(model: KneserNeyModel) -> list[trained.NGramOrder]:
    """Return the levels of a model as tables of natural log-probabilities and back-off weights."""
    highest = len(model.levels) - 1
    return [
        trained.NGramOrder(
            level.keys,
            np.log(level.probs).astype(np.float32),
            # A weight of 0 has no logarithm; n-grams of the highest order have no weights.
            np.log(np.maximum(level.backoffs, 1e-30) if level_index < highest else []).astype(np.float32),
        )
        for level_index, level in enumerate(model.levels)
    ]


def _make_progress_callback(job: TrainingJob, order: int, total: int) -> Callable[[int], None]:
    return lambda done: job.report_progress(TrainingProgress(f"counting {order}-grams", done, total, done))


def _load_stored_ngrams(state: CheckpointState | None, order: int) -> NGramCounts | None:
    if state is None or f"keys{order}" not in state.parts:
        return None
    return NGramCounts(np.load(state.parts[f"keys{order}"]), np.load(state.parts[f"counts{order}"]))


def _collect_facts(
    encoded: EncodedCorpus, full_model: KneserNeyModel, final_model: KneserNeyModel
) -> dict[str, object]:
    def count_per_order(model: KneserNeyModel) -> Sequence[int]:
        return [len(level.keys) for level in model.levels]

    return {
        "words by the model's own rule": int(np.delete(encoded.counts, END).sum()),
        "share of unknown words": round(encoded.oov_rate, 5),
        "vocabulary": len(encoded.vocabulary),
        "n-grams of each order": count_per_order(full_model),
        "n-grams kept": count_per_order(final_model),
        "discounts of each order": [[round(value, 5) for value in discounts] for discounts in full_model.discounts],
    }


# variKN reads its own spelling of the unknown word.
_VARIKN_SPELLINGS = {"<unk>": "<UNK>"}


@dataclass(frozen=True)
class VariKNRecipe(Recipe):
    """N-gram model of variable length with Kneser–Ney smoothing, grown and pruned by the package varikn.

    Args:
        order: The largest length of n-grams.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is split into words: split, punctuation, words or spaces.
        lower: Whether words are lower-cased.
        growth: How much an n-gram must gain to be added: smaller values make larger models (variKN's D).
        prune: How much it must be worth to remain when the model is pruned, as a rule twice the growth (variKN's E).
        bits: The precision of log-probabilities: 32, 16, or 8 bits.
        arpa: Whether to write ``model.arpa`` too, which other programs read.
    """

    order: int = 5
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    growth: float = 0.05
    prune: float = 0.1
    bits: int = 32
    arpa: bool = False

    kind: ClassVar[str] = "varikn"
    opened_as: ClassVar[str] = "ngram"

    def __post_init__(self) -> None:
        if not 2 <= self.order <= 20:
            raise TrainError(f"order is {self.order}; expected a whole number from 2 to 20")
        if self.vocabulary < 0:
            raise TrainError(f"vocabulary is {self.vocabulary}; expected a number of words, or 0 for all")
        if self.words not in SPLIT_RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(SPLIT_RULES)}")
        if self.growth <= 0 or self.prune < 0:
            raise TrainError(
                f"growth is {self.growth} and prune is {self.prune}; expected growth above 0 and prune from 0"
            )
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Write the corpus as variKN reads it, grow and prune a model, convert it to sorted arrays."""
        if not is_importable("varikn"):
            raise MissingExtra("varikn", "the package varikn", "'acceptability[ngram]'")
        job.report_progress(TrainingProgress("reading", 0, 1))
        encoded = encode_corpus(job.corpus, self.vocabulary, self.words, lower=self.lower)
        job.report_progress(TrainingProgress("reading", 1, 1))
        if "<UNK>" in encoded.vocabulary.index:
            raise TrainError("the corpus has <UNK> as a word, by which variKN means unknown ones. Write <unk>.")
        job.report_progress(TrainingProgress("growing", 0, 1))
        # The files of variKN are in the checkpoint's folder, which is removed with it when the model is finished.
        arpa = self._grow_model(encoded, job.checkpoints.folder)
        job.report_progress(TrainingProgress("growing", 1, 1))
        orders = convert_arpa(Arpa(arpa), encoded.vocabulary.words)
        write_ngram_model(job.out, encoded.vocabulary, orders, bits=self.bits, arpa=self.arpa)
        sizes = [len(order.keys) for order in orders]
        return RecipeOutput(
            collect_unigrams(encoded), {"vocabulary": len(encoded.vocabulary), "n-grams of each order": sizes}
        )

    def _grow_model(self, encoded: EncodedCorpus, folder: Path) -> Path:
        """Return the path of the ARPA file that variKN wrote."""
        text, words, arpa = folder / "text", folder / "words", folder / "grown.arpa"
        known_words = encoded.vocabulary.words
        with atomic_write(words) as out:
            out.write("\n".join(known_words[1:]).encode() + b"\n")
        with atomic_write(text) as out:
            spellings = np.array([_VARIKN_SPELLINGS.get(word, word) for word in known_words], dtype=object)
            for sentence in np.split(encoded.ids, np.flatnonzero(encoded.ids == END) + 1)[:-1]:
                out.write(f"<s> {' '.join(spellings[sentence])}\n".encode())
        options = [str(value) for value in (text, words, arpa, self.order, self.growth, self.prune)]
        command = [sys.executable, "-m", __name__, *options]
        # A list of our own words, paths and numbers, and no shell.
        process = subprocess.run(command, capture_output=True, text=True)  # nosec B603
        if process.returncode or not arpa.exists():
            last = process.stderr.strip().splitlines()[-1:] or ["it printed nothing"]
            raise TrainError(f"variKN failed with status {process.returncode}: {last[0]}")
        return arpa


def main(text: str, words: str, arpa: str, order: str, growth: str, prune: str) -> None:
    """Grow a model with variKN; run in a process of its own, since variKN exits the process when it fails."""
    import varikn

    grower = varikn.VarigramTrainer(True, False)
    grower.set_datacost_scale(float(growth))
    grower.set_datacost_scale2(float(prune))
    grower.set_max_order(int(order))
    grower.initialize(text, 0, 0, -1, "", "<s>", False, words)
    grower.grow(1)
    grower.write_file(arpa, True)


if __name__ == "__main__":
    main(*sys.argv[1:])
