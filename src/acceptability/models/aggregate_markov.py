"""Aggregate Markov models (Saul and Pereira 1997), trained here: each word is foretold through a few hidden classes.

P(word | word before) = Σ over classes of P(class | word before) · P(word | class). The folder is one that
``acceptability train aggregate-markov`` made; it says itself how text is cut into words, and in which case.

An unknown word gets the model's own ``<unk>``; ``unknown='uniform'`` gives it 1 / vocabulary instead, and a number
that log-probability. Sentences begin after ``<s>``; with ``bos=None`` the first word has nothing before it, and gets
the probability that it has in the corpus as a whole. ``eos=True`` scores ``</s>`` too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MissingExtra, ModelError
from acceptability.models import arrays, vocabulary
from acceptability.models.files import checked_bool
from acceptability.models.ngram import checked_unknown
from acceptability.models.trained_ngram import TrainedNGram, folder_at_version
from acceptability.models.vocabulary import START
from acceptability.types import Floats

FILE = arrays.FILE
FORMAT = "acceptability aggregate Markov 1"
BUDGET = 1 << 24
"""How many bytes the classes of the words that are looked at together may take."""


@dataclass(frozen=True)
class Classes:
    """A whole model in memory.

    Args:
        histories: P(class | word before), a row for each word; the last row is for a word that nothing stands before.
        followers: P(word | class), a row for each word, a column for each class.
    """

    histories: Floats
    followers: Floats

    def __post_init__(self) -> None:
        if self.histories.ndim != 2 or self.histories.shape != (self.size + 1, *self.followers.shape[1:]):
            raise ValueError("its two tables are not of the same words and classes")

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        return len(self.followers)

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word after the one before it, for many sentences at once.

        Args:
            words: The numbers of the words, sentence after sentence; -1 is a word that nothing can be said of,
                which gets 0 and ends the history. So does ``<s>`` get 0, which is never foretold.
            starts: Where a new history begins.
        """
        before = np.append(-1, words[:-1])
        before[starts] = -1
        said = np.zeros(len(words), np.float32)
        asked = np.flatnonzero((words >= 0) & (words != START))
        said[asked] = np.log(mixed(self.histories, self.followers, before[asked], words[asked]))
        return said


def mixed(
    histories: Floats, followers: Floats, before: NDArray[np.signedinteger], words: NDArray[np.signedinteger]
) -> Floats:
    """Return the probability of each word after the one before it, so many at once as ``BUDGET`` lets.

    >>> mixed(np.array([[0.5, 0.5]]), np.array([[0.2, 0.0], [0.8, 1.0]]), np.array([0, 0]), np.array([0, 1])).tolist()
    [0.1, 0.9]
    """
    found = np.empty(len(words))
    chunk = max(BUDGET // (2 * histories.itemsize * histories.shape[1]), 1)
    for start in range(0, len(words), chunk):
        these = slice(start, start + chunk)
        found[these] = np.einsum("ij,ij->i", histories[before[these]], followers[words[these]])
    return found


class AggregateMarkov(TrainedNGram):
    """An aggregate Markov model in a folder; text becomes words as for the n-gram models that are trained here."""

    kind: ClassVar[str] = "aggregate-markov"

    @cached_property
    def table(self) -> Classes:
        """The classes, read on first use."""
        table = read_classes(self.folder / FILE)
        if table.size != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {FILE} and {vocabulary.FILE} are not of the same model")
        return table


def open_model(
    place: str, *, bos: str | None = "<s>", eos: bool = False, unknown: str | float = "<unk>"
) -> AggregateMarkov:
    """Return the model in a folder; ``FOLDER@HASH``, as a signature writes it, must have that content."""
    if bos not in ("<s>", None):
        raise ModelError(f"aggregate-markov: bos is {bos!r}; expected '<s>' or None")
    folder = folder_at_version(Path(place))
    for name in (FILE, vocabulary.FILE):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}: it is no folder with an aggregate Markov model")
    policy = checked_unknown(unknown)
    return AggregateMarkov(folder, bos, checked_bool("eos", eos), "<unk>" if policy == "auto" else policy)


def packed(model: Classes) -> bytes:
    """Return the content of the file that keeps a model, in float32."""
    save = _safetensors().save
    tables = {"histories": model.histories, "followers": model.followers}
    content: bytes = save({name: each.astype(np.float32) for name, each in tables.items()}, {"format": FORMAT})
    return content


def read_classes(path: Path) -> Classes:
    """Return the model in a file."""
    load_file = _safetensors().load_file
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            told = (opened.metadata() or {}).get("format")
        if told != FORMAT:
            raise ModelError(f"{path} holds {told or 'other weights'}, not {FORMAT}")
        tables: Mapping[str, NDArray[np.float32]] = load_file(path)
        return Classes(tables["histories"].astype(np.float64), tables["followers"].astype(np.float64))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as an aggregate Markov model: {error}") from error


def _safetensors() -> Any:
    try:
        from safetensors import numpy
    except ImportError as error:
        raise MissingExtra("aggregate-markov", "the package safetensors", "safetensors") from error
    return numpy
