"""N-gram models written as ARPA text, which KenLM, SRILM and others read: log10, words spelled out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from acceptability.errors import TrainError
from acceptability.models.arpa import LN10
from acceptability.models.arrays import Order

_AT_ONCE = 100_000


def write_arpa(out: BinaryIO, words: Sequence[str], orders: Sequence[Order]) -> None:
    """Write a model's n-grams, order by order."""
    if spaced := next((word for word in words if len(word.split()) != 1), None):
        raise TrainError(f"the word {spaced!r} cannot stand in an ARPA file, which separates words by spaces")
    _line(out, "\\data\\")
    for number, order in enumerate(orders, start=1):
        _line(out, f"ngram {number}={len(order.keys)}")
    spelled = list(words)
    for number, order in enumerate(orders, start=1):
        _line(out, f"\n\\{number}-grams:")
        if number > 1:
            histories, last = (each.tolist() for each in np.divmod(order.keys, len(words)))
            spelled = [f"{spelled[before]} {words[word]}" for before, word in zip(histories, last, strict=True)]
        _write_order(out, spelled, order)
    _line(out, "\n\\end\\")


def _write_order(out: BinaryIO, spelled: Sequence[str], order: Order) -> None:
    has_weights = len(order.backoffs) > 0
    for start in range(0, len(spelled), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        columns = [np.minimum(order.logprobs[part] / LN10, 0.0).tolist(), spelled[part]]
        if has_weights:
            columns.append((order.backoffs[part] / LN10).tolist())
        form = "%.8g\t%s\t%.8g\n" if has_weights else "%.8g\t%s\n"
        out.write("".join(form % row for row in zip(*columns, strict=True)).encode())


def _line(out: BinaryIO, text: str) -> None:
    out.write(f"{text}\n".encode())
