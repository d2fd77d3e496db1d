"""ARPA files, read into memory: n-gram log-probabilities and back-off weights in plain dictionaries."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from acceptability.errors import ModelError
from acceptability.models.files import bounded_lines

LN10 = math.log(10.0)


_MOST_DIGITS = 18


class Arpa:
    """An n-gram model with back-off, from the lines of an ARPA file. Natural logs."""

    def __init__(self, path: Path) -> None:
        self.logprobs: dict[tuple[str, ...], float] = {}
        self.backoffs: dict[tuple[str, ...], float] = {}
        self.order = 0
        try:
            self._read(_lines(path), path)
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise ModelError(f"{path} cannot be read as an ARPA file: {error}") from error
        self.unknown = next((word for word in ("<unk>", "<UNK>") if (word,) in self.logprobs), None)

    @property
    def vocabulary(self) -> int:
        """How many words it knows."""
        return sum(len(ngram) == 1 for ngram in self.logprobs)

    def knows(self, word: str) -> bool:
        """Tell whether a word is in the vocabulary."""
        return (word,) in self.logprobs

    def logprob(self, word: str, history: Sequence[str]) -> float:
        """Return log p(word | history), backing off where the n-gram is unseen."""
        context = tuple(history[-(self.order - 1) :]) if self.order > 1 else ()
        weight = 0.0
        while True:
            found = self.logprobs.get((*context, word))
            if found is not None:
                return weight + found
            if not context:
                raise ModelError(f"the n-gram model has no word {word!r}")
            weight += self.backoffs.get(context, 0.0)
            context = context[1:]

    def _read(self, lines: Iterator[tuple[int, str]], path: Path) -> None:
        declared: dict[int, int] = {}
        order = 0
        counted: dict[int, int] = {}
        ended = False
        for number, line in lines:
            if line == "\\end\\":
                ended = True
                break
            if line.startswith("ngram ") and not order:
                size, _, count = line.removeprefix("ngram ").partition("=")
                declared[_whole(size, path, number)] = _whole(count, path, number)
            elif line.startswith("\\") and line.endswith("-grams:"):
                order = _whole(line[1 : -len("-grams:")], path, number)
            elif order and line:
                self._take(line, order, f"{path}, line {number}")
                counted[order] = counted.get(order, 0) + 1
        if not declared or counted != {size: count for size, count in declared.items() if count}:
            raise ModelError(f"{path} is not a whole ARPA file: it declares {declared} n-grams and has {counted}")
        if not ended:
            raise ModelError(f"{path} is not a whole ARPA file: its last line is not \\end\\")
        self.order = max(declared)

    def _take(self, line: str, order: int, where: str) -> None:
        fields = line.split()
        ngram = tuple(fields[1 : order + 1])
        try:
            self.logprobs[ngram] = float(fields[0]) * LN10
            if len(fields) == order + 2:
                self.backoffs[ngram] = float(fields[order + 1]) * LN10
        except ValueError:
            fields = []
        if len(fields) not in (order + 1, order + 2) or not self.logprobs[ngram] <= 0:
            raise ModelError(
                f"{where}: expected a log10 probability, at most 0, then {order} words, perhaps a back-off weight"
            )


def _whole(text: str, path: Path, line: int) -> int:
    if not text.strip().isdecimal() or len(text.strip()) > _MOST_DIGITS:
        raise ModelError(f"{path}, line {line}: {text!r} is not a whole number")
    return int(text)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with path.open("rb") as raw:
        is_gzip = raw.read(2) == b"\x1f\x8b"
    with gzip.open(path, "rt", encoding="utf-8") if is_gzip else path.open(encoding="utf-8") as opened:
        for number, line in enumerate(bounded_lines(opened, path), start=1):
            yield number, line.strip()
