"""Recurrent language models of words: Elman's network with classes, LSTM, QRNN.

Read sentence by sentence, or as running text; with the output layers of ``models/output_layers.py`` and the dropouts
of Merity et al. (2018). ``sampled(seed)`` draws a recipe from the ranges of Warstadt et al. (2019), and ``search``
trains several of them and tells which is best.
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
from acceptability.models import recurrent_shape, vocabulary
from acceptability.models.recurrent_shape import OUTPUTS, Shape
from acceptability.models.splitting import RULES
from acceptability.models.vocabulary import END, Vocabulary
from acceptability.train.checkpoint import array, atomic
from acceptability.train.recipe import FILE, Job, Trained, train
from acceptability.train.tick import Tell, Tick
from acceptability.train.vocabulary import Encoded, encode

if TYPE_CHECKING:
    from acceptability.models.recurrent_networks import Network
    from acceptability.train.loop import Learnt

_SHARES = ("dropout", "dropout_between", "dropout_inputs", "dropout_words", "dropout_recurrent", "decay")
_COUNTS = ("embedding", "hidden", "layers", "classes", "batch", "steps_back", "longest")
_ANY = ("vocabulary", "epochs", "minutes", "patience", "evaluate_every", "save_every", "clip")


@dataclass(frozen=True)
class LSTM:
    """LSTM language model of words, read sentence by sentence.

    Args:
        embedding: How many numbers a word vector has.
        hidden: How many numbers a layer has; the last of a tied model has as many as a word vector.
        output: softmax, tied_softmax, classes, adaptive, tas (tied adaptive), or tas_double (no proper probabilities).
        cutoffs: The ranks at which adaptive outputs begin a new group of rarer words.
        classes: How many frequency classes ``output='classes'`` has.
        vocabulary: How many of the most frequent words are known; the others are ``<unk>``. 0 means all.
        words: How text is cut into words: split, punctuation, words or spaces.
        lower: Whether words are put into lower case.
        by_sentences: Whether each sentence is read by itself; else as running text.
        both_directions: Whether a second network learns to read backwards, for hidden states; scores do not use it.
        batch: How many words are read in one step.
        steps_back: In running text, over how many words errors run back.
        longest: A sentence with more words is read in pieces of so many.
        dropout: The share of numbers left out of what the last layer hands on; the others: between layers, of word
            vectors, of whole words, of the recurrent weights (in a QRNN, of changes of the state).
        locked: Whether the same numbers are left out at every word of a sentence.
        rate: The learning rate of Adam.
        decay: Over which last share of the training the rate falls to zero.
        clip: The greatest norm of a gradient; 0 clips none.
        epochs: How often the text is read, unless ``minutes`` says how long.
        patience: After how many looks at the dev set without gain the training ends; 0 means never.
        evaluate_every: After how many steps the dev set is looked at; 0 means after each epoch.
        save_every: After how many steps a checkpoint is written; 0 means every few minutes.
        bits: How finely weights are saved: 32, 16, or 8, where word vectors have 8 and all others 16.
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
    by_sentences: bool = True
    both_directions: bool = False
    batch: int = 16_384
    steps_back: int = 64
    longest: int = 256
    dropout: float = 0.2
    dropout_between: float = 0.2
    dropout_inputs: float = 0.2
    dropout_words: float = 0.0
    dropout_recurrent: float = 0.0
    locked: bool = True
    rate: float = 1e-3
    decay: float = 0.5
    clip: float = 1.0
    epochs: int = 10
    minutes: float = 0.0
    patience: int = 4
    evaluate_every: int = 0
    save_every: int = 0
    bits: int = 32
    seed: int = 1

    kind: ClassVar[str] = "lstm"
    opened_as: ClassVar[str] = "recurrent"

    def __post_init__(self) -> None:
        for name in _COUNTS:
            if getattr(self, name) < 1:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a whole number from 1")
        for name in _ANY:
            if getattr(self, name) < 0:
                raise TrainError(f"{name} is {getattr(self, name)}; expected 0 or more")
        for name in _SHARES:
            if not 0 <= getattr(self, name) < 1 + (name == "decay") * 1e-9:
                raise TrainError(f"{name} is {getattr(self, name)}; expected a share from 0 to 1")
        self._check_choices()

    def _check_choices(self) -> None:
        if self.output not in OUTPUTS:
            raise TrainError(f"output is {self.output!r}; expected one of {', '.join(OUTPUTS)}")
        if self.words not in RULES:
            raise TrainError(f"words is {self.words!r}; expected one of {', '.join(RULES)}")
        if self.bits not in (8, 16, 32):
            raise TrainError(f"bits is {self.bits}; expected 8, 16 or 32")
        if not all(0 < one < two for one, two in pairwise((*self.cutoffs, 1 << 62))):
            raise TrainError(f"cutoffs are {self.cutoffs}; expected ranks from 1 that rise, such as (4000, 20000)")
        if self.rate <= 0:
            raise TrainError(f"rate is {self.rate}; expected a learning rate above 0, such as 1e-3")
        if not (self.epochs or self.minutes):
            raise TrainError("epochs and minutes are both 0: nothing would be learnt")
        if self.both_directions and not self.by_sentences:
            raise TrainError("both_directions needs by_sentences=True: running text has no end to begin from")

    def shape(self, counts: NDArray[np.int64]) -> Shape:
        """Return the shape of the network for a vocabulary of which it is known how often each word comes."""
        edges = _edges(self, counts)
        directions = 2 if self.both_directions else 1
        return Shape(self.kind, len(counts), self.embedding, self.hidden, self.layers, self.output, edges, directions)

    def follow(self, job: Job) -> Trained:
        """Read the text into numbers, train, write the weights that were best on the dev set."""
        from acceptability.models.recurrent_networks import saved
        from acceptability.train.recurrent_loop import taught
        from acceptability.train.team import Team

        team = Team()
        with team.first_goes_first():
            encoded = _encoded(self, job)
        network, learnt = taught(self, job, encoded, team)
        written = {vocabulary.FILE: encoded.vocabulary.to_json(), recurrent_shape.FILE: saved(network, self.bits)}
        for name, content in written.items():
            with atomic(job.out / name) as out:
                out.write(content)
        unigrams = dict(zip(encoded.vocabulary.words, encoded.counts.tolist(), strict=True))
        del unigrams["<s>"]
        return Trained(unigrams, _facts(self, encoded, network, learnt))


@dataclass(frozen=True)
class RNN(LSTM):
    """Elman's network with word classes, as Mikolov's language model: P(word) = P(class) · P(word | class).

    Its layer is tanh, which with other weights is the same as Mikolov's logistic one, and it learns by Adam, from
    many sentences at once. The options are those of ``lstm``.
    """

    embedding: int = 600
    hidden: int = 600
    layers: int = 1
    output: str = "classes"
    dropout: float = 0.0
    dropout_between: float = 0.0
    dropout_inputs: float = 0.0

    kind: ClassVar[str] = "rnn"


@dataclass(frozen=True)
class QRNN(LSTM):
    """QRNN language model, which computes all words of a text side by side, with tied adaptive softmax.

    Sizes and dropouts are of the order that is used for WikiText-103 (Merity et al. 2018), not copied from there.
    The options are those of ``lstm``.
    """

    embedding: int = 400
    hidden: int = 2500
    layers: int = 4
    output: str = "tas"
    dropout: float = 0.1
    dropout_between: float = 0.1
    dropout_inputs: float = 0.1

    kind: ClassVar[str] = "qrnn"


def sampled(seed: int, recipe: LSTM | None = None) -> LSTM:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3.

    Args:
        recipe: What else the recipe says; its seed is replaced by the one given. Without it an LSTM that knows 100,000
            words in lower case, as theirs, with adaptive softmax.

    >>> sampled(1).embedding, sampled(1).hidden, sampled(1).layers, sampled(1).dropout
    (405, 1053, 4, 0.2)
    """
    random = np.random.default_rng(seed)
    share = float(random.choice([0.2, 0.5]))
    low, high = np.log([1e-5, 3e-3])
    return replace(
        recipe or LSTM(decay=0.0, vocabulary=100_000, lower=True),
        embedding=int(random.integers(200, 600, endpoint=True)),
        hidden=int(random.integers(600, 1200, endpoint=True)),
        layers=int(random.integers(1, 4, endpoint=True)),
        rate=float(np.exp(random.uniform(low, high))),
        dropout=share,
        dropout_between=share,
        dropout_inputs=share,
        seed=seed,
    )


def search(
    recipes: Sequence[LSTM],
    corpus: Sequence[str | Path],
    out: Path,
    *,
    dev: Sequence[str | Path],
    tell: Tell = lambda _: None,
) -> list[tuple[float, Path]]:
    """Train a model for each recipe, and return perplexity on the dev set and folder of each, the best first.

    What was trained already is not trained again, so a search that was stopped goes on, and more recipes can follow.
    """
    found = []
    for recipe in recipes:
        folder = out / f"{recipe.kind}-{recipe.seed}"
        told: dict[str, Any] = train(recipe, corpus, folder, dev=dev, tell=tell)
        reached = told["results"].get("dev", {}).get("perplexity")
        if reached is None:
            raise TrainError(f"{folder / FILE} has no perplexity on a dev set, which a search needs to choose by")
        found.append((float(reached), folder))
    return sorted(found)


def _edges(recipe: LSTM, counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Return where groups of words begin in the output layer, and the size of the vocabulary last."""
    size = len(counts)
    if recipe.output == "classes":
        return class_edges(counts, recipe.classes)
    if recipe.output in ("softmax", "tied_softmax"):
        return (0, size)
    return (0, *(cutoff for cutoff in recipe.cutoffs if cutoff < size), size)


def class_edges(counts: NDArray[np.int64], classes: int) -> tuple[int, ...]:
    """Return where frequency classes begin: each has about the same share of the running words.

    >>> class_edges(np.array([4, 0, 3, 1, 1, 1]), 3)
    (0, 1, 3, 6)
    """
    before = (np.cumsum(counts) - counts) / counts.sum()
    number = np.minimum(np.floor(before * classes + 1e-9), classes - 1)
    starts = np.flatnonzero(np.diff(number)) + 1
    return (0, *starts.tolist(), len(counts))


def _encoded(recipe: LSTM, job: Job) -> Encoded:
    """Return the corpus in numbers, from the checkpoint if it is there."""
    state = job.checkpoints.latest()
    if state is None:
        done = np.zeros(2, np.int64)

        def told(size: int, words: int) -> None:
            done[:] += (size, words)
            job.tell(Tick("reading", int(done[0]), job.corpus.bytes_on_disk, int(done[1])))

        fresh = encode(job.corpus, recipe.vocabulary, recipe.words, lower=recipe.lower, told=told)
        content = fresh.vocabulary.to_json()
        parts = {"ids": array(fresh.ids), "counts": array(fresh.counts), "words": lambda out: out.write(content)}
        job.save(0, parts)
        return fresh
    kept = json.loads(state.parts["words"].read_bytes())
    known = Vocabulary(tuple(kept["words"]), kept["words_by"], kept["lower"])
    return Encoded(known, np.load(state.parts["ids"]), np.load(state.parts["counts"]))


def _facts(recipe: LSTM, encoded: Encoded, network: Network, learnt: Learnt) -> dict[str, object]:
    facts: dict[str, object] = {
        "words in the model's own rule": int(np.delete(encoded.counts, END).sum()),
        "share of unknown words": round(encoded.oov, 5),
        "vocabulary": len(encoded.vocabulary),
        "parameters": sum(each.numel() for each in network.parameters()),
        "groups of words in the output": len(network.shape.edges) - 1,
        "words seen": learnt.tokens,
        "steps": learnt.steps,
        "seconds of training": round(learnt.seconds, 1),
        "loss at the end": round(learnt.loss, 4),
        "best loss on the dev set": None if learnt.dev_loss is None else round(learnt.dev_loss, 4),
        "stopped early": learnt.stopped_early,
    }
    if recipe.by_sentences:
        lengths = np.diff(np.flatnonzero(encoded.ids == END), prepend=-1)
        facts["sentences read in pieces"] = int((lengths > recipe.longest).sum())
    if network.shape.is_improper:
        facts["perplexity"] = "improper: the probabilities of all words sum to more than 1"
    return facts
