"""Word vectors in files: the text formats of GloVe, word2vec and fastText, or NumPy's ``.npz``.

A text file has a word and its vector on each line, plain or compressed (.gz, .xz), the most frequent words first;
word2vec and fastText write a header line. A ``.npz`` file has the arrays ``words`` and ``vectors``.
"""

from __future__ import annotations

import gzip
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, first_error_line
from acceptability.models.files import read_bounded_lines

VectorArray = NDArray[np.float32] | NDArray[np.float16]
# Vectors hardly compress. What would unpack to more than both limits is a damaged file or a zip bomb.
_MAX_UNPACKED_BYTES, _MAX_COMPRESSION_RATIO = 1 << 30, 100
_READ_ERRORS = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)
_UNKNOWN_TOKENS = ("<unk>", "UNK", "[UNK]")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with their vectors.

    Args:
        vectors: One row per word, in the precision of the file.
        duplicate_lines: The number of lines that were skipped because their word is on an earlier line.
    """

    words: tuple[str, ...]
    vectors: VectorArray
    duplicate_lines: int = 0

    @property
    def dimension(self) -> int:
        """The dimension of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def unknown_vector(self) -> VectorArray:
        """The vector of words that are not in the file: that of ``<unk>`` if the file has it, else the mean of all."""
        row = next((self.index[name] for name in _UNKNOWN_TOKENS if name in self.index), None)
        # Averaged in float64: a float16 sum of many vectors could overflow.
        vector: VectorArray = (
            self.vectors.mean(0, dtype=np.float64).astype(self.vectors.dtype) if row is None else self.vectors[row]
        )
        return vector

    def coverage(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Return the shares of a text's different words and of its running words that have a vector.

        >>> vectors = WordVectors(("the", "cat"), np.zeros((2, 3), np.float32))
        >>> vectors.coverage({"the": 6, "dog": 2})
        {'different words': 0.5, 'running words': 0.75}
        """
        known = [word for word in counts if word in self.index]
        running = sum(counts[word] for word in known) / sum(counts.values())
        return {"different words": len(known) / len(counts), "running words": running}


def read_vectors(path: Path, extra_words: Collection[str] = (), max_words: int = 0) -> WordVectors:
    """Return the vectors of the first words of a file, and of some other words.

    Args:
        extra_words: Words that are read even if they are not among the first.
        max_words: The number of words to read from the beginning of the file; 0 for all.
    """
    if not path.is_file():
        raise ModelError(f"there is no file of word vectors {path}")
    loaded = _read_npz(path) if path.suffix == ".npz" else _read_text(path, frozenset(extra_words), max_words)
    if not len(loaded.words):
        raise ModelError(f"{path} has no word vectors in it")
    if not np.isfinite(loaded.vectors).all():
        row = int(np.flatnonzero(~np.isfinite(loaded.vectors).all(1))[0])
        raise ModelError(f"{path}: the vector of {loaded.words[row]!r} has a number that is not finite")
    return (
        loaded if path.suffix != ".npz" or not max_words else _select_words(loaded, frozenset(extra_words), max_words)
    )


def _read_npz(path: Path) -> WordVectors:
    try:
        _check_size(path)
        # Pickled arrays could run code.
        with np.load(path, allow_pickle=False) as archive:
            words, vectors = archive["words"], archive["vectors"]
    except (*_READ_ERRORS, KeyError, zipfile.BadZipFile, RuntimeError, struct.error) as error:
        raise ModelError(
            f"{path} is no .npz file with the arrays 'words' and 'vectors': {first_error_line(error)}"
        ) from error
    is_valid = vectors.ndim == 2 and words.shape == vectors.shape[:1] and vectors.dtype.kind == "f" and vectors.size
    if not is_valid:
        raise ModelError(
            f"{path}: words are {words.shape}, vectors {vectors.shape}; expected one row of numbers per word"
        )
    names = tuple(map(str, words.tolist()))
    if len(set(names)) < len(names):
        raise ModelError(f"{path}: a word occurs twice")
    return WordVectors(names, vectors if vectors.dtype == np.float16 else vectors.astype(np.float32))


def _check_size(path: Path) -> None:
    """Refuse arrays that claim to be larger than their data, and small files that would fill the memory."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if member.file_size > max(_MAX_UNPACKED_BYTES, _MAX_COMPRESSION_RATIO * member.compress_size):
                raise ValueError(f"{member.filename} would unpack to {member.file_size:,} bytes")
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                read_header = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = read_header(file)
            # np.load allocates the claimed size before it reads the data.
            if math.prod(shape) * dtype.itemsize > member.file_size:
                raise ValueError(f"{member.filename} claims the shape {shape}, and has fewer numbers")


def _select_words(loaded: WordVectors, extra_words: Collection[str], max_words: int) -> WordVectors:
    rows = [row for row, word in enumerate(loaded.words) if row < max_words or word in extra_words]
    return WordVectors(tuple(loaded.words[row] for row in rows), loaded.vectors[rows])


def _read_text(path: Path, extra_words: Collection[str], max_words: int) -> WordVectors:
    rows: dict[str, NDArray[np.float32]] = {}
    dimension = duplicate_lines = 0
    with _open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and _is_header(line):
                continue
            # Split from the right: in some files (GloVe 840B), words contain spaces.
            dimension = dimension or line.count(" ")
            word, *numbers = line.rsplit(" ", dimension)
            if word in rows:
                duplicate_lines += 1
            elif not max_words or len(rows) < max_words or word in extra_words:
                rows[word] = _parse_vector(numbers, dimension, f"{path}, line {number}")
    table = np.stack(list(rows.values())) if rows else np.zeros((0, 1), np.float32)
    return WordVectors(tuple(rows), table, duplicate_lines)


def _is_header(line: str) -> bool:
    """Return whether a line is a header with the numbers of words and dimensions, as word2vec writes it."""
    parts = line.split(" ")
    return len(parts) == 2 and all(part.isdecimal() for part in parts)


def _parse_vector(numbers: list[str], dimension: int, where: str) -> NDArray[np.float32]:
    if len(numbers) != dimension or not dimension:
        raise ModelError(f"{where}: {len(numbers)} numbers; expected a word and {dimension or 'some'} numbers")
    try:
        # A number too large for float32 becomes infinite, which is reported below with its line.
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError as error:
        raise ModelError(f"{where}: {error}; expected a word and {dimension} numbers, separated by spaces") from error
    if not np.isfinite(vector).all():
        raise ModelError(f"{where}: a number is not finite, or too large")
    return vector


@contextmanager
def _open_text(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file, plain or compressed, as an iterator over lines."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    try:
        # Only \n ends a line: with universal newlines, a \r that is a word would end one.
        with opener(path, "rt", encoding="utf-8", newline="\n") as file:
            yield (line.rstrip("\r\n ") for line in read_bounded_lines(file, path))
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 text ({error.reason}): is it a binary file of vectors?") from error
    except _READ_ERRORS as error:
        raise ModelError(f"cannot read {path}: {error}") from error
