"""Aggregate Markov models (Saul and Pereira 1997), trained by this package: bigram models through hidden classes.

P(word | previous word) = Σ over classes of P(class | previous word) · P(word | class). The folder is one that
``acceptability train aggregate-markov`` made; its vocabulary file defines how text is split into words, and the case.

The option ``unknown`` says what an unknown word gets (see ``models/unknown_words.py``). Sentences begin after ``<s>``;
with ``bos=None`` the first word has no history, and gets the probability that it has in the corpus as a whole.
``eos=True`` scores ``</s>`` too.
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
from acceptability.models.files import resolve_folder_version, validate_bool
from acceptability.models.ngram import trained
from acceptability.models.ngram.trained import TrainedNGram
from acceptability.models.unknown_words import DEFAULT_POLICY, validate_unknown_policy
from acceptability.text.words import START, VOCABULARY_FILE
from acceptability.types import Floats

WEIGHTS_FILE = trained.WEIGHTS_FILE
FORMAT = "acceptability aggregate Markov 1"
# Each pair of words needs two rows of class probabilities. 16 MB at a time keep memory small, and about as fast as
# more.
CHUNK_BYTES = 1 << 24
"""The maximum size in bytes of the class probabilities that are gathered at a time."""


@dataclass(frozen=True)
class AggregateMarkovTable:
    """An aggregate Markov model in memory.

    Args:
        histories: P(class | previous word), a row for each word; the last row is that of an empty history.
        followers: P(word | class), a row for each word, a column for each class.
    """

    histories: Floats
    followers: Floats

    def __post_init__(self) -> None:
        if self.histories.ndim != 2 or self.histories.shape != (self.size + 1, *self.followers.shape[1:]):
            raise ValueError("its two tables have different words or classes")

    @property
    def size(self) -> int:
        """The number of entries in the vocabulary."""
        return len(self.followers)

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word, given the word before it, for many sentences at once.

        Args:
            words: The word ids of all sentences, concatenated; -1 is an unknown word, which gets 0 and ends the
                history. ``<s>`` gets 0 too, since the model never predicts it.
            starts: True at the first word of each sentence, which has no history.
        """
        # -1 indexes the last row, that of an empty history.
        before = np.append(-1, words[:-1])
        before[starts] = -1
        logprobs = np.zeros(len(words), np.float32)
        scored_rows = np.flatnonzero((words >= 0) & (words != START))
        logprobs[scored_rows] = np.log(
            compute_bigram_probabilities(self.histories, self.followers, before[scored_rows], words[scored_rows])
        )
        return logprobs


def compute_bigram_probabilities(
    histories: Floats, followers: Floats, before: NDArray[np.signedinteger], words: NDArray[np.signedinteger]
) -> Floats:
    """Return the probability of each word, given the word before it.

    Args:
        before: The ids of the words before; -1 for an empty history.
        words: The word ids.

    >>> histories, followers = np.array([[0.5, 0.5]]), np.array([[0.2, 0.0], [0.8, 1.0]])
    >>> compute_bigram_probabilities(histories, followers, np.array([0, 0]), np.array([0, 1])).tolist()
    [0.1, 0.9]
    """
    probabilities = np.empty(len(words))
    chunk = max(CHUNK_BYTES // (2 * histories.itemsize * histories.shape[1]), 1)
    for start in range(0, len(words), chunk):
        rows = slice(start, start + chunk)
        probabilities[rows] = np.einsum("ij,ij->i", histories[before[rows]], followers[words[rows]])
    return probabilities


class AggregateMarkov(TrainedNGram):
    """An aggregate Markov model in a folder; it encodes and scores text like ``TrainedNGram``."""

    kind: ClassVar[str] = "aggregate-markov"

    @cached_property
    def table(self) -> AggregateMarkovTable:
        """The class probabilities, loaded on first use."""
        table = read_aggregate_markov(self.folder / WEIGHTS_FILE)
        if table.size != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {WEIGHTS_FILE} and {VOCABULARY_FILE} belong to different models")
        return table


def open_model(
    location: str, *, bos: str | None = "<s>", eos: bool = False, unknown: str | float = DEFAULT_POLICY
) -> AggregateMarkov:
    """Return the aggregate Markov model in a folder.

    Args:
        location: The folder, or ``FOLDER@HASH`` as in a signature; its content must then have that hash.
        bos: "<s>", or None to score the first word without a history.
        eos: Whether ``</s>`` is scored.
        unknown: What an unknown word gets: "spelling", "<unk>", "uniform", a log-probability, "refuse" or "omit".
    """
    if bos not in ("<s>", None):
        raise ModelError(f"aggregate-markov: bos is {bos!r}; expected '<s>' or None")
    folder = resolve_folder_version(Path(location), (WEIGHTS_FILE, VOCABULARY_FILE))
    for name in (WEIGHTS_FILE, VOCABULARY_FILE):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}: it is no folder with an aggregate Markov model")
    return AggregateMarkov(folder, bos, validate_bool("eos", eos), validate_unknown_policy(unknown))


def serialize_aggregate_markov(model: AggregateMarkovTable) -> bytes:
    """Return the content of a weights file, in float32."""
    save = _import_safetensors().save
    tables = {"histories": model.histories, "followers": model.followers}
    content: bytes = save({name: table.astype(np.float32) for name, table in tables.items()}, {"format": FORMAT})
    return content


def read_aggregate_markov(path: Path) -> AggregateMarkovTable:
    """Return the model in a weights file."""
    load_file = _import_safetensors().load_file
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            stored_format = (file.metadata() or {}).get("format")
        # A folder of another n-gram model has files of the same names.
        if stored_format != FORMAT:
            raise ModelError(f"{path} holds {stored_format or 'other weights'}, not {FORMAT}")
        tables: Mapping[str, NDArray[np.float32]] = load_file(path)
        # float32 halves the file; the sums over classes are computed in float64.
        return AggregateMarkovTable(tables["histories"].astype(np.float64), tables["followers"].astype(np.float64))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as an aggregate Markov model: {error}") from error


def _import_safetensors() -> Any:
    try:
        from safetensors import numpy
    except ImportError as error:
        raise MissingExtra("aggregate-markov", "the package safetensors", "safetensors") from error
    return numpy
