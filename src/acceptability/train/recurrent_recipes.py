"""Options of the recurrent language models of words: Elman network with classes, LSTM, QRNN; hyperparameter search.

They train sentence by sentence or on running text, with the output layers of ``models.recurrent.output_layers`` (full,
tied, class-based, adaptive and tied adaptive softmax) and the dropouts of Merity et al. (2018).
``sample_hyperparameters(seed)`` draws a recipe from the ranges of Warstadt et al. (2019); ``search`` trains several
recipes and ranks them by perplexity. This module needs no torch; ``recurrent_task`` trains the network.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import TrainError
from acceptability.models import recurrent
from acceptability.models.recurrent import OUTPUTS, RecurrentShape
from acceptability.text import words
from acceptability.text.words import END, SPLIT_RULES, Vocabulary
from acceptability.train.checkpoint import atomic_write, make_array_writer
from acceptability.train.corpus import EncodedCorpus, encode_corpus
from acceptability.train.recipe import (
    RECIPE_FILE,
    Recipe,
    RecipeOutput,
    TrainingJob,
    TrainingProgress,
    TrainingProgressCallback,
    rename_options,
    train,
)

if TYPE_CHECKING:
    from acceptability.models.recurrent.network import RecurrentNetwork
    from acceptability.train.trainer import TrainingResult

_SHARE_OPTIONS = ("dropout", "dropout_hidden", "dropout_inputs", "dropout_words", "dropout_recurrent", "decay_fraction")
_POSITIVE_OPTIONS = ("embedding", "hidden", "layers", "classes", "batch_words", "bptt_length", "max_length")
_NONNEGATIVE_OPTIONS = ("vocabulary", "epochs", "minutes", "patience", "evaluate_every", "save_every", "gradient_clip")


@rename_options(
    steps_back="bptt_length",
    longest="max_length",
    both_directions="bidirectional",
    rate="learning_rate",
    decay="decay_fraction",
    clip="gradient_clip",
    dropout_between="dropout_hidden",
    locked="variational_dropout",
    by_sentences="sentence_level",
    batch="batch_words",
)
@dataclass(frozen=True)
class LSTMRecipe(Recipe):
    """LSTM language model of words, trained sentence by sentence.

    Args:
        embedding: The dimension of word embeddings.
        hidden: The dimension of a layer; the last layer of a tied model has that of word embeddings.
        output: softmax, tied_softmax, classes, adaptive, tas (tied adaptive), or tas_double (no proper probabilities).
        cutoffs: The frequency ranks at which the groups of rarer words of an adaptive softmax begin.
        classes: The number of frequency classes of ``output='classes'``.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is split into words: split, punctuation, words or spaces.
        lower: Whether words are lower-cased.
        sentence_level: Whether each sentence starts from an empty state; otherwise the corpus is one running text.
        bidirectional: Whether a second network is trained to read backwards, for hidden states; scores do not use it.
        batch_words: The number of words in a step.
        bptt_length: In running text, the length of truncated backpropagation through time, in words.
        max_length: A sentence with more words is divided into pieces of this length.
        dropout: The dropout rate of the last layer's output; the others: between layers, of word embeddings, of whole
            words, of the recurrent weights (in a QRNN, zoneout: of updates of the state).
        variational_dropout: Whether all words of a sentence have the same dropout mask (locked dropout in AWD-LSTM).
        learning_rate: The learning rate of Adam.
        decay_fraction: The last share of the training, in which the learning rate falls linearly to zero.
        gradient_clip: The largest norm of a gradient; 0 switches clipping off.
        epochs: How often the corpus is read, unless ``minutes`` sets the length.
        patience: After how many evaluations on the dev set without a lower loss the training ends; 0 means never.
        evaluate_every: After how many steps the dev set is evaluated; 0 means after each epoch.
        save_every: After how many steps a checkpoint is written; 0 means every few minutes.
        bits: The precision of saved weights: 32, 16, or 8, where word embeddings have 8 and all others 16.
    """

    embedding: int = 400
    hidden: int = 800
    layers: int = 2
    output: str = "adaptive"
    cutoffs: tuple[int, ...] = (4000, 20_000)
    classes: int = 100
    vocabulary: int = 60_000
    words: str = "split"
    lower: bool = False
    sentence_level: bool = True
    bidirectional: bool = False
    batch_words: int = 16_384
    bptt_length: int = 64
    max_length: int = 256
    dropout: float = 0.2
    dropout_hidden: float = 0.2
    dropout_inputs: float = 0.2
    dropout_words: float = 0.0
    dropout_recurrent: float = 0.0
    variational_dropout: bool = True
    learning_rate: float = 1e-3
    decay_fraction: float = 0.5
    gradient_clip: float = 1.0
    epochs: int = 10
    minutes: float = 0.0
    patience: int = 4
    evaluate_every: int = 0
    save_every: int = 0
    bits: int = 32
    seed: int = 1

    kind: ClassVar[str] = "lstm"
    opened_as: ClassVar[str] = "recurrent"

    def sample_hyperparameters(self, seed: int) -> LSTMRecipe:
        """Return the recipe with hyperparameters from the ranges of a search; see the function of this name."""
        return sample_hyperparameters(seed, self)

    def __post_init__(self) -> None:
        for name in _POSITIVE_OPTIONS:
            if getattr(self, name) < 1:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a whole number from 1")
        for name in _NONNEGATIVE_OPTIONS:
            if getattr(self, name) < 0:
                raise TrainError(f"{name} is {getattr(self, name)}; expected 0 or more")
        for name in _SHARE_OPTIONS:
            # A decay_fraction of 1 is valid, and lets the learning rate fall from the first step on; a dropout rate of
            # 1 would drop everything.
            if not 0 <= getattr(self, name) < 1 + (name == "decay_fraction") * 1e-9:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a share from 0 to 1")
        self._check_choices()

    def _check_choices(self) -> None:
        if self.output not in OUTPUTS:
            raise TrainError(f"output is {self.output!r}; expected one of {', '.join(OUTPUTS)}")
        if self.words not in SPLIT_RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(SPLIT_RULES)}")
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")
        # The number at the end, which no rank reaches, gives a single cutoff a pair to be checked in.
        if not all(0 < lower < upper for lower, upper in pairwise((*self.cutoffs, 1 << 62))):
            raise TrainError(f"cutoffs are {self.cutoffs}; expected ranks in ascending order, such as (4000, 20000)")
        if self.learning_rate <= 0:
            raise TrainError(f"learning_rate is {self.learning_rate}; expected a learning rate above 0, such as 1e-3")
        if not (self.epochs or self.minutes):
            raise TrainError("epochs and minutes are both 0; set one of them")
        if self.bidirectional and not self.sentence_level:
            raise TrainError("bidirectional needs sentence_level=True: running text has no end to read backwards from")

    def build_shape(self, counts: NDArray[np.int64]) -> RecurrentShape:
        """Return the architecture of the network for a vocabulary with the given word counts."""
        edges = _find_group_edges(self, counts)
        directions = 2 if self.bidirectional else 1
        return RecurrentShape(
            self.kind, len(counts), self.embedding, self.hidden, self.layers, self.output, edges, directions
        )

    def follow(self, job: TrainingJob) -> RecipeOutput:
        """Encode the corpus, train the network, save the weights of the lowest dev loss."""
        # Only now, so that recipes can be listed and checked without torch.
        from acceptability.models.recurrent.network import serialize_recurrent_network
        from acceptability.train.recurrent_task import train_recurrent
        from acceptability.train.trainer import ProcessGroup

        process_group = ProcessGroup()
        # The other processes wait, and load what the first one encoded.
        with process_group.main_process_first():
            encoded = _encode_corpus(self, job)
        network, result = train_recurrent(self, job, encoded, process_group)
        files = {
            words.VOCABULARY_FILE: encoded.vocabulary.to_json(),
            recurrent.WEIGHTS_FILE: serialize_recurrent_network(network, self.bits),
        }
        for name, content in files.items():
            with atomic_write(job.out / name) as out:
                out.write(content)
        unigrams = dict(zip(encoded.vocabulary.words, encoded.counts.tolist(), strict=True))
        # The start of a sentence is never predicted.
        del unigrams["<s>"]
        return RecipeOutput(unigrams, _collect_facts(self, encoded, network, result))


@rename_options()
@dataclass(frozen=True)
class RNNRecipe(LSTMRecipe):
    """Elman network with word classes, like Mikolov's language model: P(word) = P(class) · P(word | class).

    Its activation is tanh, which with other weights is equivalent to Mikolov's logistic function, and it is trained
    with Adam on batches of sentences. The options are those of ``lstm``.
    """

    embedding: int = 600
    hidden: int = 600
    layers: int = 1
    output: str = "classes"
    dropout: float = 0.0
    dropout_hidden: float = 0.0
    dropout_inputs: float = 0.0

    kind: ClassVar[str] = "rnn"


@rename_options()
@dataclass(frozen=True)
class QRNNRecipe(LSTMRecipe):
    """QRNN language model, which computes all words of a text in parallel, with tied adaptive softmax.

    Sizes and dropout rates are similar to those for WikiText-103 (Merity et al. 2018), not copied from there.
    The options are those of ``lstm``.
    """

    embedding: int = 400
    hidden: int = 2500
    layers: int = 4
    output: str = "tas"
    dropout: float = 0.1
    dropout_hidden: float = 0.1
    dropout_inputs: float = 0.1

    kind: ClassVar[str] = "qrnn"


def sample_hyperparameters(seed: int, recipe: LSTMRecipe | None = None) -> LSTMRecipe:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3.

    Args:
        recipe: The other options; its seed is replaced by the one given. By default an LSTM with 100,000 words in
            lower case, like theirs, and adaptive softmax.

    >>> drawn = sample_hyperparameters(1)
    >>> drawn.embedding, drawn.hidden, drawn.layers, drawn.dropout
    (405, 1053, 4, 0.2)
    """
    random = np.random.default_rng(seed)
    share = float(random.choice([0.2, 0.5]))
    # Learning rates are drawn log-uniformly: they differ by orders of magnitude.
    low, high = np.log([1e-5, 3e-3])
    return replace(
        recipe or LSTMRecipe(decay_fraction=0.0, vocabulary=100_000, lower=True),
        embedding=int(random.integers(200, 600, endpoint=True)),
        hidden=int(random.integers(600, 1200, endpoint=True)),
        layers=int(random.integers(1, 4, endpoint=True)),
        learning_rate=float(np.exp(random.uniform(low, high))),
        dropout=share,
        dropout_hidden=share,
        dropout_inputs=share,
        seed=seed,
    )


def search(
    recipes: Sequence[LSTMRecipe],
    corpus: Sequence[str | Path],
    out: Path,
    *,
    dev: Sequence[str | Path],
    progress: TrainingProgressCallback = lambda _: None,
) -> list[tuple[float, Path]]:
    """Train a model for each recipe; return the dev perplexity and the folder of each model, the best first.

    Finished models are not trained again, so a search that was killed resumes, and recipes can be added to it.

    Args:
        out: The folder in which each recipe gets a folder, named by its kind and seed.
        dev: The text whose perplexity ranks the models.
    """
    ranked = []
    for recipe in recipes:
        folder = out / f"{recipe.kind}-{recipe.seed}"
        metadata: dict[str, Any] = train(recipe, corpus, folder, dev=dev, progress=progress)
        perplexity = metadata["results"].get("dev", {}).get("perplexity")
        if perplexity is None:
            raise TrainError(f"{folder / RECIPE_FILE} has no perplexity on a dev set, by which a search ranks models")
        ranked.append((float(perplexity), folder))
    return sorted(ranked)


def _find_group_edges(recipe: LSTMRecipe, counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return the first word id of each group of the output layer, and the size of the vocabulary last."""
    size = len(counts)
    if recipe.output == "classes":
        return find_class_edges(counts, recipe.classes)
    if recipe.output in ("softmax", "tied_softmax"):
        return (0, size)
    # Cutoffs beyond the vocabulary are dropped, so that the defaults also work for small corpora.
    return (0, *(cutoff for cutoff in recipe.cutoffs if cutoff < size), size)


def find_class_edges(counts: NDArray[np.int64], classes: int) -> tuple[int, ...]:
    """Return the first word id of each frequency class, and the size of the vocabulary last.

    Frequency binning (Mikolov et al. 2011): each class has about the same share of the running words.

    >>> find_class_edges(np.array([4, 0, 3, 1, 1, 1]), 3)
    (0, 1, 3, 6)
    """
    cumulative_share = (np.cumsum(counts) - counts) / counts.sum()
    # Rounding must not keep a word below the class boundary that it reaches exactly.
    class_numbers = np.minimum(np.floor(cumulative_share * classes + 1e-9), classes - 1)
    starts = np.flatnonzero(np.diff(class_numbers)) + 1
    return (0, *starts.tolist(), len(counts))


def _encode_corpus(recipe: LSTMRecipe, job: TrainingJob) -> EncodedCorpus:
    """Return the corpus as word ids, from the checkpoint if it is there."""
    state = job.checkpoints.latest()
    if state is None:
        done = np.zeros(2, np.int64)

        def report_reading(size: int, words: int) -> None:
            done[:] += (size, words)
            job.report_progress(TrainingProgress("reading", int(done[0]), job.corpus.bytes_on_disk, int(done[1])))

        fresh = encode_corpus(
            job.corpus, recipe.vocabulary, recipe.words, lower=recipe.lower, on_progress=report_reading
        )
        content = fresh.vocabulary.to_json()
        parts = {
            "ids": make_array_writer(fresh.ids),
            "counts": make_array_writer(fresh.counts),
            "words": lambda out: out.write(content),
        }
        job.save(0, parts)
        return fresh
    stored = json.loads(state.parts["words"].read_bytes())
    stored_vocabulary = Vocabulary(tuple(stored["words"]), stored["words_by"], stored["lower"])
    return EncodedCorpus(stored_vocabulary, np.load(state.parts["ids"]), np.load(state.parts["counts"]))


def _collect_facts(
    recipe: LSTMRecipe, encoded: EncodedCorpus, network: RecurrentNetwork, result: TrainingResult
) -> dict[str, object]:
    facts: dict[str, object] = {
        "words by the model's own rule": int(np.delete(encoded.counts, END).sum()),
        "share of unknown words": round(encoded.oov_rate, 5),
        "vocabulary": len(encoded.vocabulary),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "word groups of the output layer": len(network.shape.edges) - 1,
        "words seen": result.tokens,
        "steps": result.steps,
        "seconds of training": round(result.seconds, 1),
        "loss at the end": round(result.loss, 4),
        "best loss on the dev set": None if result.dev_loss is None else round(result.dev_loss, 4),
        "stopped early": result.stopped_early,
    }
    if recipe.sentence_level:
        lengths = np.diff(np.flatnonzero(encoded.ids == END), prepend=-1)
        facts["sentences divided into pieces"] = int((lengths > recipe.max_length).sum())
    if network.shape.is_improper:
        facts["perplexity"] = "improper: the probabilities of all words sum to more than 1"
    return facts
