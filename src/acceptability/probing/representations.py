"""What probes read: the pooled hidden states of an encoder's layers, baselines without word order, and control labels.

Vectors are written into a temporary file and given back layer by layer, so that one layer is in memory at a time. The
baselines `BagOfWords` and `BagOfVectors` (GloVe) see words without their order.

Control tasks, after Hewitt and Liang (2019), are labels without linguistic sense, with the class frequencies of a
factor. Their control gives every word type a random label, which a probe can only memorise. A factor, however, belongs
to whole sentences, most of which are new in the test, and a random label per sentence could not be learned at all.
Hence two controls:

- ``words`` gives every word type a random number, and a sentence the mean of its words' numbers; thresholds at the
  factor's class frequencies divide sentences into classes. Only a probe that memorises words can predict it for new
  sentences.
- ``items`` gives every item (paradigm) a random label. For new items it cannot be predicted, so that an MCC clearly
  above 0 shows that test sentences leaked into training. (In folds of few items the MCC may well lie below 0: the
  label that is frequent in training is then rare in the test.)
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from acceptability.api.scoring import ProgressCallback
from acceptability.errors import ModelError, QueryError, shorten
from acceptability.models.files import hash_files
from acceptability.models.sentence.word_vectors import WordVectors, read_vectors
from acceptability.types import Floats

BAG_OF_WORDS = "bag-of-words"
"""The name of the baseline `BagOfWords`."""

GLOVE_PREFIX = "glove:"

# A word with inner apostrophes and hyphens (haven't, well-known), or a single punctuation mark.
_WORD = re.compile(r"\w+(?:['’-]\w+)*|[^\w\s]")
_BATCH_SIZE = 4096
# A word that occurs in one sentence only cannot help a probe with any other.
_MIN_COUNT = 2

VectorBatch = tuple[NDArray[np.int64], NDArray[np.float32]]
"""The indices of some texts, and their vectors, (layers, texts, features)."""


class Encoder(Protocol):
    """A model or baseline that gives a text one vector per layer."""

    @property
    def signature(self) -> str:
        """Everything that can change the vectors."""
        ...

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of its layers."""
        ...

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[VectorBatch]:
        """Yield the vectors of texts in batches, in any order: indices of texts, and (layers, texts, features)."""
        ...


def load_encoder(name: str, pooling: str = "auto") -> Encoder:
    """Return the encoder of a name: "bag-of-words", "glove:FILE", or a model such as "masked:FOLDER"."""
    if name == BAG_OF_WORDS:
        return BagOfWords()
    if name.startswith(GLOVE_PREFIX):
        return BagOfVectors(Path(name.removeprefix(GLOVE_PREFIX)).expanduser())
    from acceptability.models.hf.encoder import open_encoder

    return open_encoder(name, pooling)


def resolve_layers(encoder: Encoder, name: str, layers: Sequence[int] | None) -> tuple[int, ...]:
    """Return the requested layers without repetition, all by default; -1 is the last.

    Args:
        encoder: The encoder; one with a single layer gives that layer, whatever was requested.
        name: Its name in error messages.
        layers: Numbers of layers, counted from the end where negative.
    """
    available = encoder.layers
    # So that baselines, which have one layer, can be probed with the options of the models beside them.
    if layers is None or len(available) == 1:
        return available
    invalid = [layer for layer in layers if not -len(available) <= layer < len(available)]
    if invalid:
        raise ModelError(f"{name} has no layer {invalid[0]}; its layers are 0 to {available[-1]}, and -1 is the last")
    return tuple(dict.fromkeys(available[layer] for layer in layers))


@dataclass(frozen=True, eq=False)
class LayerVectors:
    """The vectors of all sentences: iterating yields each layer's number and its (sentences, features) array."""

    layers: tuple[int, ...]
    vectors: NDArray[np.float32]

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for number, layer in zip(self.layers, self.vectors, strict=True):
            # A copy in memory: the probes read it many times, and the file behind the view is deleted at the end.
            yield number, np.array(layer)


@contextmanager
def extract_vectors(
    encoder: Encoder, name: str, texts: Sequence[str], layers: Sequence[int], progress: ProgressCallback | None
) -> Iterator[LayerVectors]:
    """Compute the vectors of texts, and provide them while the context is open.

    Args:
        encoder: What computes the vectors.
        name: Its name in error messages and progress.
        texts: The sentences.
        layers: The layers to store.
        progress: Called with the name, the number of finished texts and the number of all.

    Raises:
        ModelError: A text is too long for the encoder, or a vector is not finite.
    """
    # An encoder computes all layers of a batch in one forward pass, and probes need all sentences of one layer. All
    # layers of a large model over a large suite can take many gigabytes: they wait on disk.
    with TemporaryFile() as file:
        stored: NDArray[np.float32] | None = None
        done = 0
        try:
            for indices, vectors in encoder.vectors(texts, layers):
                # Only the first batch shows how many features there are.
                if stored is None:
                    shape = (len(layers), len(texts), vectors.shape[2])
                    stored = np.memmap(file, np.float32, "w+", shape=shape)
                stored[:, indices] = vectors
                done += len(indices)
                if progress:
                    progress(name, done, len(texts))
        except QueryError as error:
            raise ModelError(f"{name} cannot read {shorten(texts[error.index])!r}: {error.problem}.") from error
        assert stored is not None
        if not np.isfinite(stored).all():
            raise ModelError(f"{name} computes a vector with a number that is not finite for some sentence")
        yield LayerVectors(tuple(layers), stored)


def split_lowercase_words(text: str) -> list[str]:
    """Return the words and punctuation marks of a text, in lower case.

    >>> split_lowercase_words("Any cookies haven't been eaten.")
    ['any', 'cookies', "haven't", 'been', 'eaten', '.']
    """
    return _WORD.findall(text.lower())


@dataclass(frozen=True)
class BagOfWords:
    """A baseline encoder: which words a sentence has, of those that occur in at least two sentences of the suite."""

    signature = f"bag-of-words(least={_MIN_COUNT})"
    layers = (0,)

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[VectorBatch]:
        """Yield a vector of 0s and 1s for each text, in batches; see `Encoder.vectors`."""
        bags = [set(split_lowercase_words(text)) for text in texts]
        counts = Counter(word for bag in bags for word in bag)
        column_of_word = {
            word: number for number, word in enumerate(sorted(w for w in counts if counts[w] >= _MIN_COUNT))
        }
        for start in range(0, len(texts), _BATCH_SIZE):
            batch_bags = bags[start : start + _BATCH_SIZE]
            # At least one column, since a file cannot be mapped into memory with a size of 0.
            indicators = np.zeros((1, len(batch_bags), max(1, len(column_of_word))), np.float32)
            for row, bag in enumerate(batch_bags):
                indicators[0, row, [column_of_word[word] for word in bag if word in column_of_word]] = 1
            yield np.arange(start, start + len(batch_bags)), indicators


@dataclass(frozen=True)
class BagOfVectors:
    """A baseline encoder: word vectors, max-pooled over the sentence, as in the NPI paper of Warstadt et al. (2019)."""

    path: Path

    layers = (0,)

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise ModelError(f"glove:{self.path}: there is no such file of word vectors")

    @property
    def signature(self) -> str:
        """The file's name and the hash of its content."""
        return f"glove:{self.path.name}@{hash_files([self.path])}.max"

    @cached_property
    def table(self) -> WordVectors:
        """The vectors, read on first use."""
        return read_vectors(self.path)

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[VectorBatch]:
        """Yield the pooled vectors of texts, in batches; a text without any known word is an error."""
        vectors = self.table.vectors.astype(np.float32)
        for start in range(0, len(texts), _BATCH_SIZE):
            batch_texts = texts[start : start + _BATCH_SIZE]
            rows = [
                [row for word in _WORD.findall(text) if (row := self._find_row(word)) is not None]
                for text in batch_texts
            ]
            if unknown_texts := [text for text, row in zip(batch_texts, rows, strict=True) if not row]:
                raise ModelError(f"{self.path} has a vector for none of the words of {unknown_texts[0]!r}")
            yield np.arange(start, start + len(batch_texts)), np.stack([vectors[row].max(0) for row in rows])[None]

    def _find_row(self, word: str) -> int | None:
        """Return the row of a word in the table, as it is written or else in lower case; None for unknown words."""
        return self.table.index.get(word, self.table.index.get(word.lower()))


def make_control_labels(
    kind: str, texts: Sequence[str], items: NDArray[np.int64], labels: NDArray[np.int64], seed: str
) -> NDArray[np.int64]:
    """Return the labels of a control task, with about the class frequencies of the factor's own labels.

    Args:
        kind: "words" or "items"; see the module.
        items: The item of each sentence.
        labels: The factor's labels.
        seed: Any text; each gives another random labelling.
    """
    return _cut_at_quantiles(CONTROLS[kind](texts, items, seed), labels)


def _score_by_words(texts: Sequence[str], items: NDArray[np.int64], seed: str) -> Floats:
    number_of_word: dict[str, float] = {}
    means = []
    for text in texts:
        words = split_lowercase_words(text) or [text]
        for word in words:
            if word not in number_of_word:
                number_of_word[word] = _hash_to_unit_interval(word, seed)
        means.append(float(np.mean([number_of_word[word] for word in words])))
    return np.array(means)


def _score_by_items(texts: Sequence[str], items: NDArray[np.int64], seed: str) -> Floats:
    return np.array([_hash_to_unit_interval(str(item), seed) for item in items.tolist()])


CONTROLS: dict[str, Callable[[Sequence[str], NDArray[np.int64], str], Floats]] = {
    "words": _score_by_words,
    "items": _score_by_items,
}


def _hash_to_unit_interval(name: str, seed: str) -> float:
    """Return a pseudo-random number from 0 to 1 that depends on a name and the seed only."""
    # By a hash rather than a generator, so that the number of a word does not depend on which sentences came before it.
    digest = blake2b(f"{seed}\n{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def _cut_at_quantiles(numbers: Floats, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return classes by thresholds on numbers, as large as the classes of the labels; equal numbers share a class."""
    shares = np.cumsum(np.bincount(labels))[:-1] / len(labels)
    # Thresholds among the numbers themselves: an interpolated one could miss the number that all sentences of an item
    # share by a rounding error, and put the whole item on the wrong side.
    cutoffs = np.quantile(numbers, shares, method="higher")
    return np.searchsorted(cutoffs, numbers, side="right").astype(np.int64)
