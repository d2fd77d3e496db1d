"""Training text: UTF-8 files, one sentence a line, plain or compressed (.gz, .xz, .zst), streamed, or as word ids.

``open_corpus`` finds the files, ``count_corpus`` hashes and counts them, and ``encode_corpus`` builds a vocabulary of
the most frequent words and returns the corpus as one array of word ids.
"""

from __future__ import annotations

import gzip
import hashlib
import logging
import lzma
import re
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from itertools import count
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import CorpusError, MissingExtra
from acceptability.text.words import END, SPECIAL_WORDS, SPLIT_RULES, UNKNOWN, Vocabulary, normalize_word

# Blocks of 4 MB keep memory small, whatever the size of the corpus.
_BLOCK = 1 << 22
# A file of 64 MB without a line break is no text with one sentence a line, and would fill the memory.
_LONGEST_LINE = 1 << 26
_BYTE_ORDER_MARK = "\ufeff".encode()
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Corpus:
    """Files of text, in the order in which they are read: sorted by name."""

    files: tuple[Path, ...]

    @property
    def bytes_on_disk(self) -> int:
        """The size of the files on disk, compressed or not."""
        return sum(path.stat().st_size for path in self.files)

    def blocks(self, on_progress: Callable[[int], None] = lambda _: None) -> Iterator[bytes]:
        """Yield the text in blocks of whole lines, checked to be UTF-8 without NUL.

        Args:
            on_progress: Called with the size on disk of each file that has been read.
        """
        for path in self.files:
            line = 1
            for block in _read_whole_lines(path):
                _check_text(block, path, line)
                line += block.count(b"\n")
                yield block
            on_progress(path.stat().st_size)

    def sentences(self) -> Iterator[str]:
        """Yield the lines that are not blank, stripped of surrounding whitespace."""
        for block in self.blocks():
            for line in block.decode().split("\n"):
                if line := line.strip():
                    yield line


@dataclass(frozen=True)
class CorpusCounts:
    """The hash and the size of a corpus.

    Args:
        sha256: The hash of the uncompressed bytes, file by file, sorted by name.
        sentences: The number of lines that are not blank.
        words: The number of words, separated by whitespace.
    """

    sha256: str
    sentences: int
    words: int


def open_corpus(sources: Sequence[str | Path]) -> Corpus:
    """Return the corpus of files and folders; a folder stands for the files in it."""
    paths = [path for source in sources for path in _list_files(Path(source))]
    # By name first, so that the hash of a corpus does not depend on the folder that it lies in.
    files = sorted(paths, key=lambda path: (path.name, str(path)))
    if not files:
        raise CorpusError("there is no corpus: name at least one file or folder of text")
    if repeated := next((path for path in files if files.count(path) > 1), None):
        raise CorpusError(f"{repeated} is given twice; name each file of a corpus once")
    return Corpus(tuple(files))


def count_corpus(corpus: Corpus) -> CorpusCounts:
    """Return the hash and the size of a corpus; fewer than two distinct words are an error."""
    digest, sentences, words, first_words = hashlib.sha256(), 0, 0, set[bytes]()
    for block in corpus.blocks():
        digest.update(block)
        sentences += sum(bool(line.strip()) for line in block.split(b"\n"))
        block_words = block.split()
        words += len(block_words)
        # Two distinct words suffice, so the set need not grow to the vocabulary of the corpus.
        if len(first_words) < 2:
            first_words.update(block_words[:1000])
    names = ", ".join(path.name for path in corpus.files[:3]) + ("…" if len(corpus.files) > 3 else "")
    if not words:
        raise CorpusError(f"the corpus ({names}) is empty: it has no words")
    if len(first_words) < 2:
        raise CorpusError(f"the corpus ({names}) has one distinct word only; a model needs at least two")
    return CorpusCounts(digest.hexdigest(), sentences, words)


def count_overlap(dev: Corpus, train: Corpus) -> int:
    """Return how many sentences of the dev set are also in the training text, word for word."""
    # Hashes of 16 bytes: a dev set of millions of sentences fits in memory, and the training text need not.
    dev_counts = {_hash_line(line): 0 for line in dev.sentences()}
    for line in dev.sentences():
        dev_counts[_hash_line(line)] += 1
    shared = {key for line in train.sentences() if (key := _hash_line(line)) in dev_counts}
    return sum(dev_counts[key] for key in shared)


def _hash_line(line: str) -> bytes:
    return hashlib.blake2b(line.encode(), digest_size=16).digest()


def _list_files(source: Path) -> list[Path]:
    if source.is_dir():
        # Hidden files, such as those that file managers leave behind, are no text.
        files = [path for path in source.iterdir() if path.is_file() and not path.name.startswith(".")]
        if not files:
            raise CorpusError(f"the folder {source} has no files in it")
        return files
    if not source.exists():
        raise CorpusError(f"there is no file or folder {source}")
    return [source]


def _read_whole_lines(path: Path) -> Iterator[bytes]:
    """Yield the content of a file in blocks of whole lines, without a byte-order mark."""
    rest = b""
    try:
        with _open_stream(path) as stream:
            is_first = True
            while block := stream.read(_BLOCK):
                block = block.removeprefix(_BYTE_ORDER_MARK) if is_first else block
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
        raise CorpusError(f"{path} is not a complete {path.suffix} file, as its name suggests: {error}") from error
    except OSError as error:
        raise CorpusError(f"cannot read {path}: {error.strerror or error}") from error
    except _get_zstandard_error() as error:
        raise CorpusError(f"{path} is not a complete .zst file, as its name suggests: {error}") from error
    if rest:
        # A last line without a line break must not run into the first one of the next file.
        yield rest + b"\n"


def _open_stream(path: Path) -> IO[bytes] | BufferedIOBase | Any:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.open(path, "rb")
    if suffix == ".xz":
        return lzma.open(path, "rb")
    if suffix == ".zst":
        return _open_zstandard(path)
    return path.open("rb")


def _open_zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingExtra(path.name, "the package zstandard", "'acceptability[data]'") from error
    # zstandard reads an empty file as an empty text, without an error.
    with path.open("rb") as stream:
        if stream.read(4) != b"\x28\xb5\x2f\xfd":
            raise CorpusError(f"{path} is not a complete .zst file, as its name suggests: it begins with other bytes")
    return zstandard.open(path, "rb")


def _get_zstandard_error() -> type[Exception] | tuple[()]:
    """Return the error class of zstandard, which is no OSError; an empty tuple if it was not imported."""
    # An except clause evaluates it only when something was raised; an empty tuple catches nothing.
    module = sys.modules.get("zstandard")
    return module.ZstdError if module else ()


def _check_text(block: bytes, path: Path, line: int) -> None:
    # A NUL is valid UTF-8, but a sign of UTF-16 or of binary data, and tokenizers and C libraries stop at it.
    offset = block.find(b"\0")
    if offset < 0:
        try:
            block.decode()
            return
        except UnicodeDecodeError as error:
            offset, problem = error.start, "bytes that are not UTF-8"
    else:
        problem = "a NUL byte, which no text has"
    line_number = line + block.count(b"\n", 0, offset)
    raise CorpusError(f"{path}, line {line_number}: {problem}. A corpus is plain UTF-8 text, one sentence a line.")


@dataclass(frozen=True)
class EncodedCorpus:
    """A corpus as word ids.

    Args:
        ids: The ids of the words of all sentences; each sentence ends with that of ``</s>``.
        counts: The count of each entry of the vocabulary.
    """

    vocabulary: Vocabulary
    ids: NDArray[np.int32]
    counts: NDArray[np.int64]

    @property
    def oov_rate(self) -> float:
        """The share of words that are not in the vocabulary (out-of-vocabulary rate)."""
        words = int(self.counts.sum() - self.counts[END])
        return float(self.counts[UNKNOWN]) / words


def encode_corpus(
    corpus: Corpus, size: int, rule: str, *, lower: bool, on_progress: Callable[[int, int], None] = lambda *_: None
) -> EncodedCorpus:
    """Return a corpus as word ids, with a vocabulary of its most frequent words.

    Args:
        size: The number of words in the vocabulary, besides ``<unk>``, ``<s>`` and ``</s>``; 0 keeps all.
        rule: The rule that splits text into words, a key of ``SPLIT_RULES``.
        lower: Whether words are lower-cased.
        on_progress: Called with the bytes on disk and the words that were read since the last call.
    """
    type_ids, types = _number_words(corpus, rule, on_progress)
    words = [normalize_word(word, lower=lower) for word in types]
    if marks := {"<s>", "</s>"} & set(words):
        raise CorpusError(f"the corpus has {marks.pop()} as a word; it marks the edge of a sentence. Remove it.")
    type_counts = np.bincount(type_ids, minlength=len(types))
    vocabulary = build_vocabulary(dict(_sum_counts(words[1:], type_counts[1:].tolist())), size, rule, lower=lower)
    word_ids = np.array([END, *vocabulary.to_ids(words[1:])], np.int32)
    ids = word_ids[type_ids]
    return EncodedCorpus(vocabulary, ids, np.bincount(ids, minlength=len(vocabulary)))


def build_vocabulary(counts: dict[str, int], size: int, rule: str, *, lower: bool) -> Vocabulary:
    """Return the vocabulary of the most frequent words; ties are broken by spelling.

    >>> build_vocabulary({"b": 2, "a": 2, "c": 1}, 2, "spaces", lower=False).words
    ('<unk>', '<s>', '</s>', 'a', 'b')
    """
    known = [word for word in counts if word not in SPECIAL_WORDS]
    if size > len(known):
        _log.warning("the vocabulary has %s words, not %s: the corpus has no others", len(known), size)
    ranked = sorted(known, key=lambda word: (-counts[word], word))
    return Vocabulary((*SPECIAL_WORDS, *ranked[: size or None]), rule, lower)


def _number_words(
    corpus: Corpus, rule: str, on_progress: Callable[[int, int], None]
) -> tuple[NDArray[np.int32], list[str]]:
    """Return the number of every word of the corpus, in order of first occurrence, and the words; 0 ends a sentence."""
    pattern = re.compile(rf"\n|{SPLIT_RULES[rule]}")
    # A word that is looked up for the first time gets the next number, without a Python-level loop over the corpus.
    index: defaultdict[str, int] = defaultdict(count().__next__)
    _ = index["\n"]
    blocks: list[NDArray[np.int32]] = []
    for block in corpus.blocks(lambda size: on_progress(size, 0)):
        words = pattern.findall(block.decode())
        blocks.append(np.fromiter(map(index.__getitem__, words), np.int32, len(words)))
        on_progress(0, len(words))
    type_ids = np.concatenate(blocks)
    # An end after an end, or at the very start, is a blank line, which is no sentence.
    ends = type_ids == 0
    type_ids = type_ids[~(ends & np.append(True, ends[:-1]))]
    return type_ids, list(index)


def _sum_counts(words: Sequence[str], counts: Sequence[int]) -> Counter[str]:
    # Normalisation gives several spellings of the corpus the same word.
    total: Counter[str] = Counter()
    for word, number in zip(words, counts, strict=True):
        total[word] += number
    return total
