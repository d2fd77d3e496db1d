"""N-gram models written as ARPA text, which KenLM, SRILM and others read, and read back from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import BinaryIO

import numpy as np

from acceptability.errors import TrainError
from acceptability.models.arpa import LN10, Arpa
from acceptability.models.arrays import Order
from acceptability.models.vocabulary import UNKNOWN

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


def orders_of(arpa: Arpa, words: Sequence[str]) -> list[Order]:
    """Return the n-grams of an ARPA file as sorted arrays, for a vocabulary whose words it must have."""
    index = {word: number for number, word in enumerate(words)}
    index.setdefault("<UNK>", UNKNOWN)
    places: dict[tuple[str, ...], int] = {(): 0}
    orders: list[Order] = []
    for number in range(1, arpa.order + 1):
        grams = [gram for gram in arpa.logprobs if len(gram) == number]
        try:
            keys = np.array([places[gram[:-1]] * len(words) + index[gram[-1]] for gram in grams], np.int64)
        except KeyError as error:
            raise TrainError(f"the ARPA file has {error} in an n-gram, but not by itself") from error
        ranked = np.argsort(keys)
        if number == 1 and not np.array_equal(keys[ranked], np.arange(len(words))):
            raise TrainError(f"the ARPA file has {len(keys)} words, and the vocabulary has {len(words)} others")
        sorted_grams = [grams[place] for place in ranked.tolist()]
        places = {gram: place for place, gram in enumerate(sorted_grams)}
        backoffs = [arpa.backoffs.get(gram, 0.0) for gram in sorted_grams] if number < arpa.order else []
        logprobs = [arpa.logprobs[gram] for gram in sorted_grams]
        orders.append(Order(keys[ranked], np.array(logprobs, np.float32), np.array(backoffs, np.float32)))
    return orders


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
