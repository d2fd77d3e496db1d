"""Classifiers over words, taught from labelled sentences: CBOW, and the pooling classifier of Warstadt et al. (2019).

``sampled(seed, recipe)`` draws sizes, rate and dropout from the ranges of their §4.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.files import is_importable
from acceptability.models.sentence_shape import ACTIVATIONS, NETWORKS, Shape
from acceptability.models.splitting import RULES
from acceptability.train.classifiers.course import Fitted
from acceptability.train.classifiers.cutting import Cutting
from acceptability.train.classifiers.examples import Examples
from acceptability.train.tick import Tell

if TYPE_CHECKING:
    from acceptability.train.classifiers.pupil import Pupil

_NEEDED = ("torch", "safetensors")
_COUNTS = ("embedding", "batch", "epochs", "least")
_ANY = ("vocabulary", "patience", "seed")


@dataclass(frozen=True)
class Cbow:
    """CBOW: the sum, the mean or the maximum of a sentence's word vectors, judged by a perceptron with a hidden layer.

    It knows nothing of the order of words: the baseline of Warstadt et al. (2019), and with ``pool=max`` over GloVe's
    vectors the bag of words of the NPI paper.

    Args:
        vectors: Where word vectors come from: nothing (they are learnt), a file in GloVe's format or .npz,
            ``recurrent:DIR`` (those of a language model trained here) or ``elmo:recurrent:DIR`` (its layers, mixed).
        embedding: How many numbers a word vector has that is learnt.
        hidden: How many numbers the hidden layer has; 0 leaves it out.
        activation: What the hidden layer does to its numbers: tanh or relu.
        pool: Whether word vectors are summed up (sum), averaged (mean), or the greatest of each number counts (max).
        dropout: The share of numbers left out while it learns, before and after the hidden layer.
        rate: The learning rate of Adam.
        batch: How many sentences are read in a step.
        epochs: How often all sentences are read at most.
        patience: After how many epochs without a better MCC on the sentences held out it ends; 0 means never.
        words: How text is cut into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are put into lower case; a language model says so itself.
        vocabulary: How many words are known at most: the most frequent ones, or the first of a file and those of the
            sentences that stand farther down; 0 means all.
        least: A word that stands less often in the sentences gets no vector of its own to be learnt.
    """

    vectors: str = ""
    embedding: int = 100
    hidden: int = 200
    activation: str = "tanh"
    pool: str = "sum"
    dropout: float = 0.2
    rate: float = 1e-3
    batch: int = 32
    epochs: int = 50
    patience: int = 10
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    least: int = 2
    seed: int = 1

    kind: ClassVar[str] = "cbow"
    reads: ClassVar[str] = "labels"

    def __post_init__(self) -> None:
        check(self, _COUNTS, (*_ANY, "hidden"))
        for name, choices in (("activation", ACTIVATIONS), ("pool", NETWORKS["cbow"])):
            if getattr(self, name) not in choices:
                raise TrainError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(choices)}")

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        """Learn from some sentences until others are judged no better; put the classifier into a folder."""
        check_packages(self.kind, _NEEDED)
        from acceptability.train.classifiers.inputs import inputs_of
        from acceptability.train.classifiers.pupil import begun

        inputs = inputs_of(self.vectors, learn.texts, cutting(self), self.embedding)
        shape = Shape("cbow", self.pool, **inputs.sizes, top=self.hidden, activation=self.activation)
        return _fitted(self, begun(shape, inputs, self.dropout, self.seed), (learn, held), out, tell)


@dataclass(frozen=True)
class Pooling:
    """The pooling classifier: an LSTM reads words in both directions, and the greatest of each number is judged.

    With ``encoder`` nothing is learnt but a hidden layer of tanh and the logit on top of an encoder that was taught
    to tell real from fake sentences, as in the best model of Warstadt et al. (2019).

    Args:
        vectors: Where word vectors come from: nothing (they are learnt), a file in GloVe's format or .npz,
            ``recurrent:DIR`` (those of a language model trained here) or ``elmo:recurrent:DIR`` (its layers, mixed).
        encoder: The folder of a pooling classifier, of ``train real-fake``, whose vectors and LSTM are taken as they
            are; ``vectors``, sizes and what is said of words are then its own.
        embedding: How many numbers a word vector has that is learnt.
        hidden: How many numbers the LSTM has in each direction, and ``layers`` how many layers.
        top: How many numbers the hidden layer between sentence vector and logit has; 0 leaves it out.
        dropout: The share of numbers left out while it learns: of what each layer reads, and around the hidden layer.
        rate: The learning rate of Adam.
        batch: How many sentences are read in a step.
        epochs: How often all sentences are read at most.
        patience: After how many epochs without a better MCC on the sentences held out it ends; 0 means never.
        words: How text is cut into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are put into lower case; a language model says so itself.
        vocabulary: How many words are known at most: the most frequent ones, or the first of a file and those of the
            sentences that stand farther down; 0 means all.
        least: A word that stands less often in the sentences gets no vector of its own to be learnt.
    """

    vectors: str = ""
    encoder: str = ""
    embedding: int = 300
    hidden: int = 500
    layers: int = 1
    top: int = 0
    dropout: float = 0.2
    rate: float = 1e-3
    batch: int = 32
    epochs: int = 100
    patience: int = 4
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    least: int = 2
    seed: int = 1

    kind: ClassVar[str] = "pooling"
    reads: ClassVar[str] = "labels"

    def __post_init__(self) -> None:
        check(self, (*_COUNTS, "hidden", "layers"), (*_ANY, "top"))
        if self.encoder and self.vectors:
            raise TrainError(
                "vectors and encoder are both given: an encoder has word vectors of its own; leave one away"
            )
        if self.encoder and not self.top:
            raise TrainError("on top of an encoder a hidden layer learns: say how many numbers it has, such as top=200")

    def fit(self, learn: Examples, held: Examples, out: Path, tell: Tell) -> Fitted:
        """Learn from some sentences until others are judged no better; put the classifier into a folder."""
        check_packages(self.kind, _NEEDED)
        from acceptability.train.classifiers.inputs import inputs_of
        from acceptability.train.classifiers.pupil import begun, taken

        if self.encoder:
            pupil = taken(self.encoder, learn.texts, self.top, self.dropout, self.seed)
        else:
            inputs = inputs_of(self.vectors, learn.texts, cutting(self), self.embedding)
            shape = Shape("pooling", "max", **inputs.sizes, layers=self.layers, hidden=self.hidden, top=self.top)
            pupil = begun(shape, inputs, self.dropout, self.seed)
        return _fitted(self, pupil, (learn, held), out, tell)


Recipe = Cbow | Pooling
AnyRecipe = TypeVar("AnyRecipe", Cbow, Pooling)


def sampled(seed: int, recipe: AnyRecipe) -> AnyRecipe:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3.

    For CBOW the paper gives no ranges; it gets those of the layers on top of an encoder, and those of word vectors.

    >>> drawn = sampled(1, Pooling())
    >>> drawn.embedding, drawn.hidden, drawn.layers, drawn.dropout, drawn.patience
    (405, 1255, 5, 0.2, 4)
    """
    if isinstance(recipe, Pooling) and not recipe.encoder:
        return replace(recipe, **sampled_encoder(seed))
    random = np.random.default_rng(seed)
    share, width = float(random.choice([0.2, 0.5])), _size(random, 200, 600)
    sizes: dict[str, Any] = {"top" if isinstance(recipe, Pooling) else "hidden": _size(random, 20, 1200)}
    return replace(recipe, **sizes, dropout=share, embedding=width, rate=_rate(random, 1e-2), patience=20, seed=seed)


def sampled_encoder(seed: int) -> dict[str, Any]:
    """Return options of an encoder that learns from nothing, drawn from the paper's ranges."""
    random = np.random.default_rng(seed)
    return {
        "dropout": float(random.choice([0.2, 0.5])),
        "embedding": _size(random, 200, 600),
        "hidden": _size(random, 500, 1500),
        "layers": _size(random, 1, 5),
        "rate": _rate(random, 3e-3),
        "patience": 4,
        "seed": seed,
    }


def _size(random: np.random.Generator, low: int, high: int) -> int:
    return int(random.integers(low, high, endpoint=True))


def _rate(random: np.random.Generator, highest: float) -> float:
    low, high = np.log([1e-5, highest])
    return float(np.exp(random.uniform(low, high)))


def check(recipe: object, counts: Sequence[str], others: Sequence[str]) -> None:
    """Refuse options of a recipe that make no sense: ``counts`` begin at 1, ``others`` at 0."""
    for name, least in (*((name, 1) for name in counts), *((name, 0) for name in others)):
        if getattr(recipe, name) < least:
            raise TrainError(f"{name} is {getattr(recipe, name)}; expected a whole number from {least}")
    share, rate, rule = (getattr(recipe, name) for name in ("dropout", "rate", "words"))
    if not 0 <= share < 1:
        raise TrainError(f"dropout is {share}; expected a share from 0 to below 1")
    if rate <= 0:
        raise TrainError(f"rate is {rate}; expected a learning rate above 0, such as 1e-3")
    if rule not in RULES:
        raise TrainError(f"words is {rule!r}; expected one of {', '.join(RULES)}")


def check_packages(kind: str, needed: Sequence[str]) -> None:
    """Refuse to begin where a package is not installed."""
    if not all(map(is_importable, needed)):
        raise MissingExtra(f"train {kind}", " and ".join(needed), "'acceptability[neural]'")


def cutting(recipe: Recipe) -> Cutting:
    """Return how a recipe wants text to become words."""
    return Cutting(recipe.words, recipe.lower, recipe.vocabulary, recipe.least)


def _fitted(recipe: Recipe, pupil: Pupil, examples: tuple[Examples, Examples], out: Path, tell: Tell) -> Fitted:
    """Teach a network, and write it into a folder."""
    from acceptability.train.classifiers.loop import Pace
    from acceptability.train.classifiers.pupil import taught, write_folder

    pace = Pace(recipe.rate, recipe.batch, recipe.epochs, recipe.patience, recipe.seed)
    learnt = taught(pupil, pace, examples, tell)
    write_folder(pupil, out)
    return Fitted({**pupil.facts(), **learnt.facts()}, {"mcc": learnt.mcc, "accuracy": learnt.accuracy})
