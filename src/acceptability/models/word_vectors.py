"""Word vectors in files: GloVe's text format, also with a first line as word2vec and fastText write it, or ``.npz``.

A text file has a word and its numbers on each line, plain or in .gz or .xz; the most frequent words come first. A
``.npz`` file has the arrays ``words`` and ``vectors``.
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

from acceptability.errors import ModelError, reason
from acceptability.models.files import bounded_lines

Table = NDArray[np.float32] | NDArray[np.float16]
_MOST_BYTES, _MOST_PACKED = 1 << 30, 100
_DAMAGED = (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error)
_UNKNOWN = ("<unk>", "UNK", "[UNK]")


@dataclass(frozen=True, eq=False)
class WordVectors:
    """Words with their vectors, one row each, as finely as the file has them.

    Args:
        repeated: How many lines were left out because their word had come before.
    """

    words: tuple[str, ...]
    table: Table
    repeated: int = 0

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return int(self.table.shape[1])

    @cached_property
    def index(self) -> Mapping[str, int]:
        """The row of each word."""
        return {word: row for row, word in enumerate(self.words)}

    @property
    def unknown(self) -> Table:
        """The vector of a word that has none: that of the file's own ``<unk>``, else the mean of all."""
        row = next((self.index[name] for name in _UNKNOWN if name in self.index), None)
        found: Table = self.table.mean(0, dtype=np.float64).astype(self.table.dtype) if row is None else self.table[row]
        return found

    def coverage(self, counts: Mapping[str, int]) -> dict[str, float]:
        """Return which share of a text's different words, and of its running words, has a vector.

        >>> found = WordVectors(("the", "cat"), np.zeros((2, 3), np.float32))
        >>> found.coverage({"the": 6, "dog": 2})
        {'different words': 0.5, 'running words': 0.75}
        """
        known = [word for word in counts if word in self.index]
        running = sum(counts[word] for word in known) / sum(counts.values())
        return {"different words": len(known) / len(counts), "running words": running}


def read_vectors(path: Path, wanted: Collection[str] = (), most: int = 0) -> WordVectors:
    """Return the vectors of a file: of its first words, and of some others wherever they stand.

    Args:
        wanted: Words that are taken in any case, if the file has them.
        most: How many words are taken from the beginning of the file; 0 takes all.
    """
    if not path.is_file():
        raise ModelError(f"there is no file of word vectors {path}")
    found = _arrays(path) if path.suffix == ".npz" else _lines(path, frozenset(wanted), most)
    if not len(found.words):
        raise ModelError(f"{path} has no word vectors in it")
    if not np.isfinite(found.table).all():
        row = int(np.flatnonzero(~np.isfinite(found.table).all(1))[0])
        raise ModelError(f"{path}: the vector of {found.words[row]!r} has a number that is not finite")
    return found if path.suffix != ".npz" or not most else _first(found, frozenset(wanted), most)


def _arrays(path: Path) -> WordVectors:
    try:
        _check_size(path)
        with np.load(path, allow_pickle=False) as held:
            words, vectors = held["words"], held["vectors"]
    except (*_DAMAGED, KeyError, zipfile.BadZipFile, RuntimeError, struct.error) as error:
        raise ModelError(f"{path} is no .npz file with the arrays 'words' and 'vectors': {reason(error)}") from error
    is_right = vectors.ndim == 2 and words.shape == vectors.shape[:1] and vectors.dtype.kind == "f" and vectors.size
    if not is_right:
        raise ModelError(
            f"{path}: words are {words.shape}, vectors {vectors.shape}; expected one row of numbers a word"
        )
    names = tuple(map(str, words.tolist()))
    if len(set(names)) < len(names):
        raise ModelError(f"{path}: a word stands twice in it")
    return WordVectors(names, vectors if vectors.dtype == np.float16 else vectors.astype(np.float32))


def _check_size(path: Path) -> None:
    """Refuse arrays that are said to be larger than what is packed, and a small file that would fill the memory."""
    with zipfile.ZipFile(path) as packed:
        for member in packed.infolist():
            if member.file_size > max(_MOST_BYTES, _MOST_PACKED * member.compress_size):
                raise ValueError(f"{member.filename} would unpack to {member.file_size:,} bytes")
            with packed.open(member) as opened:
                version = np.lib.format.read_magic(opened)
                heading = (
                    np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
                )
                shape, _, kind = heading(opened)
            if math.prod(shape) * kind.itemsize > member.file_size:
                raise ValueError(f"{member.filename} says that it has {shape} numbers, and has fewer")


def _first(found: WordVectors, wanted: Collection[str], most: int) -> WordVectors:
    rows = [row for row, word in enumerate(found.words) if row < most or word in wanted]
    return WordVectors(tuple(found.words[row] for row in rows), found.table[rows])


def _lines(path: Path, wanted: Collection[str], most: int) -> WordVectors:
    rows: dict[str, NDArray[np.float32]] = {}
    dimension = repeated = 0
    with _text(path) as lines:
        for number, line in enumerate(lines, 1):
            if number == 1 and _is_heading(line):
                continue
            dimension = dimension or line.count(" ")
            word, *numbers = line.rsplit(" ", dimension)
            if word in rows:
                repeated += 1
            elif not most or len(rows) < most or word in wanted:
                rows[word] = _vector(numbers, dimension, f"{path}, line {number}")
    table = np.stack(list(rows.values())) if rows else np.zeros((0, 1), np.float32)
    return WordVectors(tuple(rows), table, repeated)


def _is_heading(line: str) -> bool:
    """Tell whether a line gives the number of words and of dimensions, as word2vec writes it."""
    parts = line.split(" ")
    return len(parts) == 2 and all(part.isdecimal() for part in parts)


def _vector(numbers: list[str], dimension: int, where: str) -> NDArray[np.float32]:
    if len(numbers) != dimension or not dimension:
        raise ModelError(f"{where}: {len(numbers)} numbers; expected a word and {dimension or 'some'} numbers")
    try:
        with np.errstate(over="ignore"):
            vector = np.array(numbers, np.float32)
    except ValueError as error:
        raise ModelError(f"{where}: {error}; expected a word and {dimension} numbers, separated by spaces") from error
    if not np.isfinite(vector).all():
        raise ModelError(f"{where}: a number is not finite, or too large")
    return vector


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    """Open a file of lines, packed or plain."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    try:
        with opener(path, "rt", encoding="utf-8", newline="\n") as opened:
            yield (line.rstrip("\r\n ") for line in bounded_lines(opened, path))
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is not UTF-8 text ({error.reason}): is it a binary file of vectors?") from error
    except _DAMAGED as error:
        raise ModelError(f"cannot read {path}: {error}") from error
