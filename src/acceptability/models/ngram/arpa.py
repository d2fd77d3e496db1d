"""ARPA files, the text format of n-gram models with back-off: read, scored, written, and converted to sorted arrays.

KenLM, SRILM and other toolkits read and write the format. Its logarithms have the base 10; ours are natural.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from acceptability.errors import ModelError, TrainError
from acceptability.models.files import read_bounded_lines
from acceptability.models.ngram.trained import NGramOrder
from acceptability.text.words import UNKNOWN

LN10 = math.log(10.0)
# More digits than any count needs, and few enough to fit into 64 bits: Python refuses to convert thousands of them.
_MAX_DIGITS = 18
_CHUNK_LINES = 100_000
# As KenLM and SRILM write them, and in capitals, as some other toolkits do.
_SPECIAL_WORDS = frozenset(("<unk>", "<s>", "</s>", "<UNK>", "<S>", "</S>"))


class Arpa:
    """An n-gram model with back-off, read from an ARPA file into dictionaries. Natural logs."""

    def __init__(self, path: Path) -> None:
        self.logprobs: dict[tuple[str, ...], float] = {}
        self.backoffs: dict[tuple[str, ...], float] = {}
        self.order = 0
        try:
            self._parse_lines(_read_lines(path), path)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise ModelError(f"{path} cannot be read as an ARPA file: {error}") from error
        # SRILM and KenLM write it in lower case, some other toolkits in upper case.
        self.unknown_token = next((word for word in ("<unk>", "<UNK>") if (word,) in self.logprobs), None)

    @property
    def words(self) -> Sequence[str] | None:
        """The words of the vocabulary, without special ones."""
        return [ngram[0] for ngram in self.logprobs if len(ngram) == 1 and ngram[0] not in _SPECIAL_WORDS]

    @property
    def vocabulary_size(self) -> int:
        """The number of words in the vocabulary."""
        return sum(len(ngram) == 1 for ngram in self.logprobs)

    def knows(self, word: str) -> bool:
        """Return whether a word is in the vocabulary."""
        return (word,) in self.logprobs

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history), with back-off to shorter histories where the n-gram is not in the table."""
        context = tuple(history[-(self.order - 1) :]) if self.order > 1 else ()
        weight = 0.0
        while True:
            # The longest n-gram in the table gives the probability; the histories given up on the way give the weight.
            ngram_logprob = self.logprobs.get((*context, word))
            if ngram_logprob is not None:
                return weight + ngram_logprob
            if not context:
                raise ModelError(f"the n-gram model has no word {word!r}")
            # A history without a back-off weight of its own has the weight 1.
            weight += self.backoffs.get(context, 0.0)
            context = context[1:]

    def _parse_lines(self, lines: Iterator[tuple[int, str]], path: Path) -> None:
        """Read the sections; a truncated file is an error, since its missing n-grams would back off silently."""
        declared: dict[int, int] = {}
        order = 0
        counts: dict[int, int] = {}
        has_end = False
        for number, line in lines:
            if line == "\\end\\":
                has_end = True
                break
            # Within a section, "ngram" at the start of a line is a word.
            if line.startswith("ngram ") and not order:
                size, _, count = line.removeprefix("ngram ").partition("=")
                declared[_parse_whole_number(size, path, number)] = _parse_whole_number(count, path, number)
            elif line.startswith("\\") and line.endswith("-grams:"):
                order = _parse_whole_number(line[1 : -len("-grams:")], path, number)
            elif order and line:
                self._parse_ngram(line, order, f"{path}, line {number}")
                counts[order] = counts.get(order, 0) + 1
        if not declared or counts != {size: count for size, count in declared.items() if count}:
            raise ModelError(f"{path} is not a complete ARPA file: it declares {declared} n-grams and has {counts}")
        if not has_end:
            raise ModelError(f"{path} is not a complete ARPA file: its last line is not \\end\\")
        self.order = max(declared)

    def _parse_ngram(self, line: str, order: int, where: str) -> None:
        fields = line.split()
        ngram = tuple(fields[1 : order + 1])
        try:
            self.logprobs[ngram] = float(fields[0]) * LN10
            if len(fields) == order + 2:
                self.backoffs[ngram] = float(fields[order + 1]) * LN10
        except ValueError:
            fields = []
        # Also an error: a log-probability that is NaN, which fails every comparison.
        if len(fields) not in (order + 1, order + 2) or not self.logprobs[ngram] <= 0:
            raise ModelError(
                f"{where}: expected a log10 probability, at most 0, then {order} words, perhaps a back-off weight"
            )


def _parse_whole_number(text: str, path: Path, line: int) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > _MAX_DIGITS:
        raise ModelError(f"{path}, line {line}: {text!r} is not a whole number")
    return int(text)


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    # By its first bytes, because gzipped files often have no .gz in their name.
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt", encoding="utf-8") if is_gzip else path.open(encoding="utf-8") as file:
        for number, line in enumerate(read_bounded_lines(file, path), start=1):
            yield number, line.strip()


def write_arpa(out: BinaryIO, words: Sequence[str], orders: Sequence[NGramOrder]) -> None:
    """Write a model's n-grams as an ARPA file.

    Args:
        orders: The n-grams of each order, whose word ids index ``words``.
    """
    if multiword := next((word for word in words if len(word.split()) != 1), None):
        raise TrainError(f"the word {multiword!r} cannot be written to an ARPA file, which separates words by spaces")
    _write_line(out, "\\data\\")
    for number, order in enumerate(orders, start=1):
        _write_line(out, f"ngram {number}={len(order.keys)}")
    ngram_texts = list(words)
    for number, order in enumerate(orders, start=1):
        _write_line(out, f"\n\\{number}-grams:")
        if number > 1:
            histories, last = (part.tolist() for part in np.divmod(order.keys, len(words)))
            ngram_texts = [
                f"{ngram_texts[history]} {words[word]}" for history, word in zip(histories, last, strict=True)
            ]
        _write_order(out, ngram_texts, order)
    _write_line(out, "\n\\end\\")


def _write_order(out: BinaryIO, ngram_texts: Sequence[str], order: NGramOrder) -> None:
    has_weights = len(order.backoffs) > 0
    for start in range(0, len(ngram_texts), _CHUNK_LINES):
        part = slice(start, start + _CHUNK_LINES)
        # Rounding can put a log-probability of 0 a little above it, which the format forbids.
        columns = [np.minimum(order.logprobs[part] / LN10, 0.0).tolist(), ngram_texts[part]]
        if has_weights:
            columns.append((order.backoffs[part] / LN10).tolist())
        form = "%.8g\t%s\t%.8g\n" if has_weights else "%.8g\t%s\n"
        out.write("".join(form % row for row in zip(*columns, strict=True)).encode())


def _write_line(out: BinaryIO, text: str) -> None:
    out.write(f"{text}\n".encode())


def convert_arpa(arpa: Arpa, words: Sequence[str]) -> list[NGramOrder]:
    """Return the n-grams of an ARPA file as sorted arrays.

    Args:
        words: The vocabulary, in the order of its word ids; the file must have exactly these words.
    """
    index = {word: number for number, word in enumerate(words)}
    index.setdefault("<UNK>", UNKNOWN)
    # The index of each n-gram of the order below in its sorted array, which is part of the keys of the next order.
    history_indices: dict[tuple[str, ...], int] = {(): 0}
    orders: list[NGramOrder] = []
    for number in range(1, arpa.order + 1):
        grams = [gram for gram in arpa.logprobs if len(gram) == number]
        try:
            keys = np.array([history_indices[gram[:-1]] * len(words) + index[gram[-1]] for gram in grams], np.int64)
        except KeyError as error:
            raise TrainError(f"the ARPA file has {error} in an n-gram, but not by itself") from error
        ranking = np.argsort(keys)
        if number == 1 and not np.array_equal(keys[ranking], np.arange(len(words))):
            raise TrainError(f"the ARPA file has {len(keys)} words, and the vocabulary has {len(words)} others")
        sorted_grams = [grams[rank] for rank in ranking.tolist()]
        history_indices = {gram: row for row, gram in enumerate(sorted_grams)}
        backoffs = [arpa.backoffs.get(gram, 0.0) for gram in sorted_grams] if number < arpa.order else []
        logprobs = [arpa.logprobs[gram] for gram in sorted_grams]
        orders.append(NGramOrder(keys[ranking], np.array(logprobs, np.float32), np.array(backoffs, np.float32)))
    return orders
