"""Recipes for classifiers over words: CBOW, and the pooling classifier of Warstadt et al. (2019).

The recipes are at the end of the file, after what they share: the tokenizer and the word vectors. Vectors are trained
with the classifier (``vectors=""``), read from a file (``glove.6B.300d.txt``), taken from the embedding layer of a
language model trained by this package (``recurrent:DIR``), or replaced by the hidden states of its layers, mixed as in
ELMo (``elmo:recurrent:DIR``). This module can be imported without torch; ``word_training`` has the training.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MissingExtra, TrainError
from acceptability.models import load_model
from acceptability.models.files import hash_file, is_importable
from acceptability.models.recurrent import Recurrent
from acceptability.models.sentence import ACTIVATIONS, NETWORKS, SentenceNetworkShape
from acceptability.models.sentence.word_vectors import WordVectors, read_vectors
from acceptability.text.words import SPECIAL_WORDS, SPLIT_RULES, Vocabulary, find_word_spans, normalize_word
from acceptability.train.classifiers.recipe import ClassifierRecipe, FitResult, LabelledSentences, open_checkpointed_run
from acceptability.train.recipe import TrainingProgressCallback, rename_options

if TYPE_CHECKING:
    from acceptability.train.classifiers.word_training import TrainableClassifier

_ELMO_PREFIX = "elmo:"
_LM_PREFIX = "recurrent:"
# Without accelerate: these networks are trained by a single process.
_REQUIRED_PACKAGES = ("torch", "safetensors")
_POSITIVE_OPTIONS = ("embedding", "batch_size", "epochs", "min_count")
_NON_NEGATIVE_OPTIONS = ("vocabulary", "patience", "seed")


@dataclass(frozen=True)
class WordTokenizer:
    """How text is split into words, and which of them enter the vocabulary; a language model has its own rules.

    Args:
        rule: The rule that splits text into words, one of ``SPLIT_RULES``.
        lower: Whether words are lowercased.
        max_words: The largest size of the vocabulary; 0 means unlimited.
        min_count: How often a word must occur for a vector of its own to be trained.
    """

    rule: str = "split"
    lower: bool = True
    max_words: int = 0
    min_count: int = 1

    def count_words(self, texts: Iterable[str]) -> Counter[str]:
        """Return the frequency of every word in some texts."""
        raw_counts = Counter(text[start:end] for text in texts for start, end in find_word_spans(text, self.rule))
        # Normalised once per different word, not once per token.
        word_counts: Counter[str] = Counter()
        for word, count in raw_counts.items():
            word_counts[normalize_word(word, lower=self.lower)] += count
        return Counter({word: count for word, count in word_counts.items() if word not in SPECIAL_WORDS})


@dataclass(frozen=True, eq=False)
class WordInputs:
    """Vocabulary and word vectors of a classifier before its training.

    Args:
        width: The dimension of a word vector, or of a layer of the language model.
        table: The vectors of all words of the vocabulary, which are then frozen; None if they are trained.
        lm: The language model whose hidden states are mixed.
        facts: What the model card lists of them.
    """

    vocabulary: Vocabulary
    width: int
    table: NDArray[Any] | None = None
    lm: Recurrent | None = None
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def shape_options(self) -> dict[str, Any]:
        """The fields of ``SentenceNetworkShape`` that describe the inputs."""
        if self.lm is None:
            return {"words": len(self.vocabulary), "width": self.width}
        # Imported here because listing the recipes must not load torch; once lm is set, torch is already loaded.
        from acceptability.models.sentence.network import get_mix_dimensions

        lm = self.lm.net.shape
        return {"mixed": get_mix_dimensions(lm.layer_widths)[0], "width": self.width, "directions": lm.directions}


def build_inputs(vectors: str, texts: Iterable[str], tokenizer: WordTokenizer, width: int) -> WordInputs:
    """Return the vocabulary and the word vectors for some sentences.

    Args:
        vectors: The origin of the vectors, as in the option of the recipes.
        texts: The sentences that the classifier is trained on.
        width: The dimension of vectors that are trained.
    """
    if not vectors:
        return _build_learned_inputs(texts, tokenizer, width)
    if vectors.startswith(_ELMO_PREFIX):
        return _build_lm_state_inputs(vectors.removeprefix(_ELMO_PREFIX), texts)
    if vectors.startswith(_LM_PREFIX):
        return _build_lm_embedding_inputs(vectors, texts)
    return _build_file_inputs(Path(vectors).expanduser(), texts, tokenizer)


def _build_learned_inputs(texts: Iterable[str], tokenizer: WordTokenizer, width: int) -> WordInputs:
    counts = tokenizer.count_words(texts)
    # Words of equal frequency are ordered alphabetically, so that the order of the sentences does not matter.
    kept_words = sorted(
        (word for word in counts if counts[word] >= tokenizer.min_count), key=lambda word: (-counts[word], word)
    )
    if not kept_words:
        raise TrainError(
            f"no word occurs {tokenizer.min_count} times in the sentences: give more, or a lower min_count"
        )
    vocabulary = Vocabulary(
        (*SPECIAL_WORDS, *kept_words[: tokenizer.max_words or None]), tokenizer.rule, tokenizer.lower
    )
    return WordInputs(vocabulary, width, facts=describe_vocabulary(vocabulary, width, counts))


def _build_file_inputs(path: Path, texts: Iterable[str], tokenizer: WordTokenizer) -> WordInputs:
    counts = tokenizer.count_words(texts)
    vectors = read_vectors(path, counts, tokenizer.max_words)
    words = tuple(word for word in vectors.words if word not in SPECIAL_WORDS)
    vocabulary = Vocabulary((*SPECIAL_WORDS, *words), tokenizer.rule, tokenizer.lower)
    facts = {
        **describe_vocabulary(vocabulary, vectors.dimension, counts),
        # With a hash, since files of the same name differ between releases.
        "file of vectors": f"{path.name}@{hash_file(path)}",
    }
    if vectors.duplicate_lines:
        facts["duplicate lines left out"] = vectors.duplicate_lines
    return WordInputs(vocabulary, vectors.dimension, _order_vectors(vectors, words), facts=facts)


def _order_vectors(vectors: WordVectors, words: Sequence[str]) -> NDArray[Any]:
    """Return the vectors in the order of the vocabulary."""
    # <s> and </s> have ids, but a classifier never looks them up: their vectors are zero.
    edges = np.zeros((2, vectors.dimension), vectors.vectors.dtype)
    # Selecting all rows would copy a matrix that can take gigabytes.
    rows = (
        vectors.vectors
        if len(words) == len(vectors.words)
        else vectors.vectors[[vectors.index[word] for word in words]]
    )
    return np.concatenate([vectors.unknown_vector[None], edges, rows])


def _build_lm_embedding_inputs(spec: str, texts: Iterable[str]) -> WordInputs:
    lm = _load_language_model(spec)
    table = lm.net.table.detach().cpu().numpy()
    facts = describe_vocabulary(lm.vocabulary, table.shape[1], count_vocabulary_words(lm.vocabulary, texts))
    return WordInputs(lm.vocabulary, table.shape[1], table, facts={**facts, "language model": lm.signature})


def _build_lm_state_inputs(spec: str, texts: Iterable[str]) -> WordInputs:
    from acceptability.models.sentence.network import get_mix_dimensions

    lm = _load_language_model(spec)
    mixed, width = get_mix_dimensions(lm.net.shape.layer_widths)
    facts = describe_vocabulary(
        lm.vocabulary, width * lm.net.shape.directions, count_vocabulary_words(lm.vocabulary, texts)
    )
    facts |= {"layers mixed": mixed, "directions": lm.net.shape.directions, "language model": lm.signature}
    return WordInputs(lm.vocabulary, width, lm=lm, facts=facts)


def _load_language_model(spec: str) -> Recurrent:
    # Any other spec would be loaded first, perhaps from the network, only to be refused.
    lm = load_model(spec) if spec.startswith(_LM_PREFIX) else None
    if not isinstance(lm, Recurrent):
        raise TrainError(f"vectors={spec!r}: only a language model of this package can be used: recurrent:FOLDER")
    return lm


def count_vocabulary_words(vocabulary: Vocabulary, texts: Iterable[str]) -> Counter[str]:
    """Return the frequency of every word in some texts, split and lowercased as in a vocabulary."""
    return WordTokenizer(vocabulary.rule, vocabulary.lower).count_words(texts)


def describe_vocabulary(vocabulary: Vocabulary, width: int, counts: Mapping[str, int]) -> dict[str, object]:
    """Return what the model card lists of the vocabulary: its size, and its coverage of types and tokens."""
    # The unknown and boundary words are in the vocabulary, but never among the counts.
    known_words = [word for word in counts if word in vocabulary.index]
    token_coverage = sum(counts[word] for word in known_words) / sum(counts.values())
    return {
        "words in the vocabulary": len(vocabulary) - len(SPECIAL_WORDS),
        "dimension of word vectors": width,
        "type coverage": round(len(known_words) / len(counts), 4),
        "token coverage": round(token_coverage, 4),
    }


@rename_options(
    least="min_count",
    rate="learning_rate",
    batch="batch_size",
)
@dataclass(frozen=True)
class CbowRecipe(ClassifierRecipe):
    """CBOW: the sum, the mean or the maximum of a sentence's word vectors, under a perceptron with one hidden layer.

    It ignores word order: the baseline of Warstadt et al. (2019), and with ``pool=max`` over GloVe vectors the bag of
    words of the NPI paper.

    Args:
        vectors: The word vectors: empty (they are trained), a file in GloVe's format or .npz, ``recurrent:DIR`` (the
            embeddings of a language model of this package) or ``elmo:recurrent:DIR`` (its layers, mixed).
        embedding: The dimension of word vectors that are trained.
        hidden: The width of the hidden layer; 0 leaves it out.
        activation: The activation function of the hidden layer: tanh or relu.
        pool: How word vectors are pooled: sum, mean, or max (of every dimension).
        dropout: The dropout rate before and after the hidden layer.
        learning_rate: The learning rate of Adam.
        batch_size: How many sentences a step reads.
        epochs: The largest number of epochs.
        patience: After how many epochs without a better MCC on the held-out sentences training stops; 0 means never.
        words: How text is split into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are lowercased; a language model has its own rule.
        vocabulary: The largest size of the vocabulary: the most frequent words, or the first of a file of vectors and
            those of the sentences that are further down in it; 0 means unlimited.
        min_count: How often a word must occur in the sentences for a vector of its own to be trained.
    """

    vectors: str = ""
    embedding: int = 100
    hidden: int = 200
    activation: str = "tanh"
    pool: str = "sum"
    dropout: float = 0.2
    learning_rate: float = 1e-3
    batch_size: int = 32
    epochs: int = 50
    patience: int = 10
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    min_count: int = 2
    seed: int = 1

    kind: ClassVar[str] = "cbow"
    reads: ClassVar[str] = "labels"

    def sample_hyperparameters(self, seed: int) -> CbowRecipe:
        """Return the recipe with hyperparameters from the ranges of a search; see the function of this name."""
        return sample_hyperparameters(seed, self)

    def __post_init__(self) -> None:
        check_options(self, _POSITIVE_OPTIONS, (*_NON_NEGATIVE_OPTIONS, "hidden"))
        for name, choices in (("activation", ACTIVATIONS), ("pool", NETWORKS["cbow"])):
            if getattr(self, name) not in choices:
                raise TrainError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(choices)}")

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
        """Train on some sentences until the MCC on the held-out ones no longer rises, and save the classifier."""
        check_packages(self.kind, _REQUIRED_PACKAGES)
        from acceptability.train.classifiers.word_training import build_classifier

        inputs = build_inputs(self.vectors, train_set.texts, make_tokenizer(self), self.embedding)
        shape = SentenceNetworkShape(
            "cbow", self.pool, **inputs.shape_options, top=self.hidden, activation=self.activation
        )
        return _fit_and_save(
            self, build_classifier(shape, inputs, self.dropout, self.seed), (train_set, held_out_set), out, progress
        )


@rename_options(
    least="min_count",
    rate="learning_rate",
    batch="batch_size",
    top="head_hidden",
)
@dataclass(frozen=True)
class PoolingRecipe(ClassifierRecipe):
    """The pooling classifier: a bidirectional LSTM over words, max pooling, and a logit.

    With ``encoder`` only a hidden layer of tanh and the logit are trained, on top of the frozen encoder of
    ``train real-fake``, as in the best model of Warstadt et al. (2019).

    Args:
        vectors: The word vectors: empty (they are trained), a file in GloVe's format or .npz, ``recurrent:DIR`` (the
            embeddings of a language model of this package) or ``elmo:recurrent:DIR`` (its layers, mixed).
        encoder: The folder of a pooling classifier, of ``train real-fake``, whose word vectors and LSTM are frozen;
            its vectors, sizes and vocabulary replace those of the other options.
        embedding: The dimension of word vectors that are trained.
        hidden: The width of the LSTM in each direction.
        layers: The number of layers of the LSTM.
        head_hidden: The width of the hidden layer between sentence vector and logit; 0 leaves it out.
        dropout: The dropout rate of the inputs of every layer, and around the hidden layer.
        learning_rate: The learning rate of Adam.
        batch_size: How many sentences a step reads.
        epochs: The largest number of epochs.
        patience: After how many epochs without a better MCC on the held-out sentences training stops; 0 means never.
        words: How text is split into words: split, punctuation, words or spaces; a language model has its own rule.
        lower: Whether words are lowercased; a language model has its own rule.
        vocabulary: The largest size of the vocabulary: the most frequent words, or the first of a file of vectors and
            those of the sentences that are further down in it; 0 means unlimited.
        min_count: How often a word must occur in the sentences for a vector of its own to be trained.
    """

    vectors: str = ""
    encoder: str = ""
    embedding: int = 300
    hidden: int = 500
    layers: int = 1
    head_hidden: int = 0
    dropout: float = 0.2
    learning_rate: float = 1e-3
    batch_size: int = 32
    epochs: int = 100
    patience: int = 4
    words: str = "split"
    lower: bool = True
    vocabulary: int = 100_000
    min_count: int = 2
    seed: int = 1

    kind: ClassVar[str] = "pooling"
    reads: ClassVar[str] = "labels"

    def sample_hyperparameters(self, seed: int) -> PoolingRecipe:
        """Return the recipe with hyperparameters from the ranges of a search; see the function of this name."""
        return sample_hyperparameters(seed, self)

    def __post_init__(self) -> None:
        check_options(self, (*_POSITIVE_OPTIONS, "hidden", "layers"), (*_NON_NEGATIVE_OPTIONS, "head_hidden"))
        if self.encoder and self.vectors:
            raise TrainError(
                "vectors and encoder are both given: an encoder has word vectors of its own; leave one out"
            )
        if self.encoder and not self.head_hidden:
            raise TrainError("a hidden layer is trained on top of an encoder: set its width, such as head_hidden=200")

    def fit(
        self,
        train_set: LabelledSentences,
        held_out_set: LabelledSentences,
        out: Path,
        progress: TrainingProgressCallback,
    ) -> FitResult:
        """Train on some sentences until the MCC on the held-out ones no longer rises, and save the classifier."""
        check_packages(self.kind, _REQUIRED_PACKAGES)
        from acceptability.train.classifiers.word_training import build_classifier, load_frozen_encoder

        if self.encoder:
            classifier = load_frozen_encoder(self.encoder, train_set.texts, self.head_hidden, self.dropout, self.seed)
        else:
            inputs = build_inputs(self.vectors, train_set.texts, make_tokenizer(self), self.embedding)
            shape = SentenceNetworkShape(
                "pooling", "max", **inputs.shape_options, layers=self.layers, hidden=self.hidden, top=self.head_hidden
            )
            classifier = build_classifier(shape, inputs, self.dropout, self.seed)
        return _fit_and_save(self, classifier, (train_set, held_out_set), out, progress)


WordRecipe = CbowRecipe | PoolingRecipe
AnyRecipe = TypeVar("AnyRecipe", CbowRecipe, PoolingRecipe)


def sample_hyperparameters(seed: int, recipe: AnyRecipe) -> AnyRecipe:
    """Return a recipe with sizes, rate and dropout drawn from the ranges of Warstadt et al. (2019), §4.3.

    For CBOW the paper gives no ranges; those of word vectors and of the layers on top of an encoder are used.

    >>> drawn = sample_hyperparameters(1, PoolingRecipe())
    >>> drawn.embedding, drawn.hidden, drawn.layers, drawn.dropout, drawn.patience
    (405, 1255, 5, 0.2, 4)
    """
    if isinstance(recipe, PoolingRecipe) and not recipe.encoder:
        return replace(recipe, **sample_encoder_options(seed))
    random = np.random.default_rng(seed)
    # The order of the draws is fixed: with another one, the same seed would give other hyperparameters.
    dropout, width = float(random.choice([0.2, 0.5])), _sample_size(random, 200, 600)
    sizes: dict[str, Any] = {
        "head_hidden" if isinstance(recipe, PoolingRecipe) else "hidden": _sample_size(random, 20, 1200)
    }
    return replace(
        recipe,
        **sizes,
        dropout=dropout,
        embedding=width,
        learning_rate=_sample_rate(random, 1e-2),
        patience=20,
        seed=seed,
    )


def sample_encoder_options(seed: int) -> dict[str, Any]:
    """Return options of an encoder that is trained from scratch, drawn from the paper's ranges."""
    # The order of the draws is fixed: with another one, the same seed would give other options.
    random = np.random.default_rng(seed)
    return {
        "dropout": float(random.choice([0.2, 0.5])),
        "embedding": _sample_size(random, 200, 600),
        "hidden": _sample_size(random, 500, 1500),
        "layers": _sample_size(random, 1, 5),
        "learning_rate": _sample_rate(random, 3e-3),
        "patience": 4,
        "seed": seed,
    }


def _sample_size(random: np.random.Generator, low: int, high: int) -> int:
    return int(random.integers(low, high, endpoint=True))


def _sample_rate(random: np.random.Generator, highest: float) -> float:
    # Log-uniform: each order of magnitude is equally likely.
    low, high = np.log([1e-5, highest])
    return float(np.exp(random.uniform(low, high)))


def check_options(recipe: object, positive: Sequence[str], non_negative: Sequence[str]) -> None:
    """Refuse invalid options of a recipe.

    Args:
        positive: The names of options from 1.
        non_negative: The names of options from 0.
    """
    for name, minimum in (*((name, 1) for name in positive), *((name, 0) for name in non_negative)):
        if getattr(recipe, name) < minimum:
            raise TrainError(f"{name} is {getattr(recipe, name)}; expected a whole number from {minimum}")
    dropout, learning_rate, rule = (getattr(recipe, name) for name in ("dropout", "learning_rate", "words"))
    if not 0 <= dropout < 1:
        raise TrainError(f"dropout is {dropout}; expected a share from 0 to below 1")
    if learning_rate <= 0:
        raise TrainError(f"learning_rate is {learning_rate}; expected a learning rate above 0, such as 1e-3")
    if rule not in SPLIT_RULES:
        raise TrainError(f"words is {rule!r}; expected one of {', '.join(SPLIT_RULES)}")


def check_packages(kind: str, needed: Sequence[str]) -> None:
    """Raise an error that names the extra if a package is not installed."""
    if not all(map(is_importable, needed)):
        raise MissingExtra(f"train {kind}", " and ".join(needed), "'acceptability[neural]'")


def make_tokenizer(recipe: WordRecipe) -> WordTokenizer:
    """Return the tokenizer of a recipe's options."""
    return WordTokenizer(recipe.words, recipe.lower, recipe.vocabulary, recipe.min_count)


def _fit_and_save(
    recipe: WordRecipe,
    classifier: TrainableClassifier,
    train_and_held_out: tuple[LabelledSentences, LabelledSentences],
    out: Path,
    progress: TrainingProgressCallback,
) -> FitResult:
    """Train a network and write it into a folder."""
    from acceptability.train.classifiers.word_training import fit_classifier, save_classifier

    run = open_checkpointed_run(recipe, *train_and_held_out, out, progress)
    training_result = fit_classifier(classifier, recipe, train_and_held_out, run)
    save_classifier(classifier, out)
    return FitResult(
        {**classifier.to_facts(), **training_result.to_facts()},
        {"mcc": training_result.mcc, "accuracy": training_result.accuracy},
    )
