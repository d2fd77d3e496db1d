"""Text to train on: plain, .gz, .xz or .zst files, or folders of them, one sentence a line, UTF-8, read as a stream."""

from __future__ import annotations

import gzip
import hashlib
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import IO, Any

from acceptability.errors import CorpusError, MissingExtra

_BLOCK = 1 << 22
_LONGEST_LINE = 1 << 26
_MARK = "\ufeff".encode()


@dataclass(frozen=True)
class Corpus:
    """Files of text, in the order in which they are read: sorted by name."""

    files: tuple[Path, ...]

    @property
    def bytes_on_disk(self) -> int:
        """The size of the files as they lie there."""
        return sum(path.stat().st_size for path in self.files)

    def blocks(self, told: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
        """Yield the text in pieces that end with a line, checked to be UTF-8 without NUL.

        Args:
            told: Is called with the number of bytes of each file that has been read, as it lies on disk.
        """
        for path in self.files:
            line = 1
            for block in _whole_lines(path):
                _check(block, path, line)
                line += block.count(b"\n")
                yield block
            told(path.stat().st_size)

    def sentences(self) -> Iterator[str]:
        """Yield each line that has something in it, without the spaces around it."""
        for block in self.blocks():
            for line in block.decode().split("\n"):
                if line := line.strip():
                    yield line


@dataclass(frozen=True)
class Counts:
    """What a corpus holds.

    Args:
        sha256: The hash of the uncompressed bytes, file by file, sorted by name.
        words: How many words there are, as spaces separate them.
    """

    sha256: str
    sentences: int
    words: int


def open_corpus(places: Sequence[str | Path]) -> Corpus:
    """Return the corpus of files and folders; a folder means the files that lie in it."""
    found = [path for place in places for path in _files(Path(place))]
    files = sorted(found, key=lambda path: (path.name, str(path)))
    if not files:
        raise CorpusError("there is no corpus: name at least one file or folder of text")
    if twice := next((path for path in files if files.count(path) > 1), None):
        raise CorpusError(f"{twice} is named twice; name each file of a corpus once")
    return Corpus(tuple(files))


def counts(corpus: Corpus) -> Counts:
    """Return the hash of a corpus and how many sentences and words it has; none, or one word, is an error."""
    digest, sentences, words, first = hashlib.sha256(), 0, 0, set[bytes]()
    for block in corpus.blocks():
        digest.update(block)
        sentences += sum(bool(line.strip()) for line in block.split(b"\n"))
        found = block.split()
        words += len(found)
        if len(first) < 2:
            first.update(found[:1000])
    names = ", ".join(path.name for path in corpus.files[:3]) + ("…" if len(corpus.files) > 3 else "")
    if not words:
        raise CorpusError(f"the corpus ({names}) is empty: there is not one word in it")
    if len(first) < 2:
        raise CorpusError(f"the corpus ({names}) has one word only: nothing can be learnt from it")
    return Counts(digest.hexdigest(), sentences, words)


def overlap(dev: Corpus, train: Corpus) -> int:
    """Return how many sentences of one corpus stand in the other too, word for word."""
    held = {_key(line): 0 for line in dev.sentences()}
    for line in dev.sentences():
        held[_key(line)] += 1
    seen = {key for line in train.sentences() if (key := _key(line)) in held}
    return sum(held[key] for key in seen)


def _key(line: str) -> bytes:
    return hashlib.blake2b(line.encode(), digest_size=16).digest()


def _files(place: Path) -> list[Path]:
    if place.is_dir():
        found = [path for path in place.iterdir() if path.is_file() and not path.name.startswith(".")]
        if not found:
            raise CorpusError(f"the folder {place} has no files in it")
        return found
    if not place.exists():
        raise CorpusError(f"there is no file or folder {place}")
    return [place]


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield pieces of a file that end with a line; a byte-order mark at its beginning is dropped."""
    rest = b""
    try:
        with _opened(path) as stream:
            is_first = True
            while block := stream.read(_BLOCK):
                block = block.removeprefix(_MARK) if is_first else block
                is_first = False
                head, newline, tail = block.rpartition(b"\n")
                if newline:
                    yield rest + head + newline
                    rest = tail
                else:
                    rest += block
                if len(rest) > _LONGEST_LINE:
                    raise CorpusError(
                        f"{path} has a line of more than {_LONGEST_LINE:,} bytes. A corpus has one sentence a line."
                    )
    except (gzip.BadGzipFile, lzma.LZMAError, zlib.error, EOFError) as error:
        raise CorpusError(f"{path} is not a whole {path.suffix} file, as its name says: {error}") from error
    except OSError as error:
        raise CorpusError(f"cannot read {path}: {error.strerror or error}") from error
    except _zstandard_error() as error:
        raise CorpusError(f"{path} is not a whole .zst file, as its name says: {error}") from error
    if rest:
        # The last line of a file ends there, so that it never runs into the next file.
        yield rest + b"\n"


def _opened(path: Path) -> IO[bytes] | BufferedIOBase | Any:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    if suffix == ".zst":
        return _zstandard(path)
    return path.open("rb")


def _zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra(path.name, "the package zstandard", "'acceptability[data]'") from error
    with path.open("rb") as opened:
        if opened.read(4) != b"\x28\xb5\x2f\xfd":
            raise CorpusError(f"{path} is not a whole .zst file, as its name says: it begins with other bytes")
    return zstandard.open(path, "rb")


def _zstandard_error() -> type[Exception] | tuple[()]:
    """Return the error of the library zstandard, which is no OSError; nothing where it has not been asked."""
    module = sys.modules.get("zstandard")
    return module.ZstdError if module else ()


def _check(block: bytes, path: Path, line: int) -> None:
    place = block.find(b"\0")
    if place < 0:
        try:
            block.decode()
            return
        except UnicodeDecodeError as error:
            place, problem = error.start, "bytes that are not UTF-8"
    else:
        problem = "a NUL byte, which no text has"
    number = line + block.count(b"\n", 0, place)
    raise CorpusError(f"{path}, line {number}: {problem}. A corpus is plain UTF-8 text, one sentence a line.")
