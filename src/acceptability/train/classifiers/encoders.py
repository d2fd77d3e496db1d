"""Encoders of sentences that learn to tell real sentences from fakes (Warstadt et al. 2019, §4): ``train real-fake``.

The classifier that comes out calls a sentence acceptable if it looks real. ``train pooling --set encoder=DIR`` takes
its encoder as it is, and learns acceptability on top of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from acceptability.models.sentence_shape import Shape
from acceptability.train.classifiers.cutting import Cutting
from acceptability.train.classifiers.words import check, check_packages, sampled_encoder
from acceptability.train.recipe import Job, Trained

_NEEDED = ("torch", "safetensors", "accelerate")


@dataclass(frozen=True)
class RealFake:
    """A pooling classifier that tells real sentences from fakes, for its encoder.

    The text gives the real sentences. Fakes are drawn from a language model, and made of real sentences by moving some
    of their words.

    Args:
        lm: The language model that fakes are drawn from, such as ``recurrent:DIR``; without it all are made of real
            sentences.
        sentences: How many sentences, real and fake, are learnt from; 0 means as many as the text gives.
        held: How many sentences, real and fake, of the dev set tell when to stop.
        vectors: Where word vectors come from: nothing (they are learnt), a file in GloVe's format or .npz,
            ``recurrent:DIR`` (those of a language model trained here) or ``elmo:recurrent:DIR`` (its layers, mixed).
        embedding: How many numbers a word vector has that is learnt.
        hidden: How many numbers the LSTM has in each direction, and ``layers`` how many layers.
        dropout: The share of numbers left out while it learns, of what each layer reads.
        rate: The learning rate of Adam.
        batch: How many sentences are read in a step.
        epochs: How often all sentences are read at most.
        patience: After how many looks at the dev set without a better MCC it ends; 0 means never.
        evaluate_every: After how many steps the dev set is looked at; 0 means after each epoch.
        save_every: After how many steps a checkpoint is written; 0 means every few minutes.
        words: How text is cut into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are put into lower case; a language model says so itself.
        vocabulary: How many words are known at most: the most frequent ones, or the first of a file and those of the
            text that stand farther down; 0 means all.
        least: A word that stands less often in the text gets no vector of its own to be learnt.
    """

    lm: str = ""
    sentences: int = 0
    held: int = 2000
    vectors: str = ""
    embedding: int = 300
    hidden: int = 500
    layers: int = 1
    dropout: float = 0.2
    rate: float = 1e-3
    batch: int = 64
    epochs: int = 20
    patience: int = 4
    evaluate_every: int = 0
    save_every: int = 0
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    least: int = 2
    seed: int = 1

    kind: ClassVar[str] = "real-fake"
    opened_as: ClassVar[str] = "classifier"
    reads: ClassVar[str] = "text"

    def __post_init__(self) -> None:
        counts = ("embedding", "hidden", "layers", "batch", "epochs", "least", "held")
        check(self, counts, ("sentences", "vocabulary", "patience", "seed", "evaluate_every", "save_every"))

    def follow(self, job: Job) -> Trained:
        """Make fakes, learn to tell them from real sentences, and put the classifier into the folder."""
        check_packages(self.kind, _NEEDED)
        from acceptability.train.classifiers.inputs import inputs_of
        from acceptability.train.classifiers.pupil import begun, write_folder
        from acceptability.train.classifiers.telling_apart import facts, made, taught, unigrams
        from acceptability.train.team import Team

        team = Team()
        cutting = Cutting(self.words, self.lower, self.vocabulary, self.least)
        inputs = inputs_of(self.vectors, job.corpus.sentences(), cutting, self.embedding)
        shape = Shape("pooling", "max", **inputs.sizes, layers=self.layers, hidden=self.hidden)
        pupil = begun(shape, inputs, self.dropout, self.seed)
        pupil.network.to(team.device)
        with team.first_goes_first():
            read, held = made(self, job, pupil)
        learnt = taught(self, job, pupil, (read, held), team)
        write_folder(pupil, job.out)
        return Trained(unigrams(pupil, read), {**pupil.facts(), **facts(pupil, read, held, learnt)})


def sampled(seed: int, recipe: RealFake) -> RealFake:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3."""
    return replace(recipe, **sampled_encoder(seed))
