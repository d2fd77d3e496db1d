"""N-gram tables as sorted arrays in one safetensors file: small, read at once, and asked about many words at once.

Order by order: ``words`` holds the last word of each n-gram and ``followers`` how many n-grams begin with
each (n-1)-gram, in its order; both together are a trie. Log-probabilities and back-off weights
(natural logs) are float32, or above the first order float16 or one byte that points into a table of 256 values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError

FILE = "model.safetensors"
FORMAT = "acceptability n-gram 1"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Order:
    """The n-grams of one order.

    Args:
        keys: Where the history stands one order below, times the vocabulary's size, plus the last word; ascending.
        logprobs: Of the last word after the others.
        backoffs: What is added for a word that was not seen after the n-gram; empty for the highest order.
    """

    keys: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    backoffs: NDArray[np.float32]


@dataclass(frozen=True)
class Table:
    """A whole n-gram model in memory."""

    size: int
    orders: tuple[Order, ...]

    def logprobs(self, words: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.float32]:
        """Return the log-probability of each word after those before it, for many sentences at once.

        Args:
            words: The numbers of the words, sentence after sentence; -1 is a word that nothing can be said of,
                which gets 0 and ends the history.
            starts: Where a new history begins; the word that stands there is itself given, and gets its own
                log-probability without a history.
        """
        known = words >= 0
        found = np.where(known, words, 0)
        said = np.where(known, self.orders[0].logprobs[found], np.float32(0.0))
        ending = np.where(known, words, -1)
        for below, order in pairwise(self.orders):
            history = np.append(-1, ending[:-1])
            history[starts] = -1
            has_history = history >= 0
            ending = np.full(len(words), -1)
            asked = np.flatnonzero(has_history & known)
            places, is_there = _found(order.keys, history[asked] * self.size + words[asked])
            ending[asked[is_there]] = places[is_there]
            said[asked] += below.backoffs[history[asked]]
            said[asked[is_there]] = order.logprobs[places[is_there]]
        # Rounded values may add up to a little more than 0.
        return np.minimum(said, np.float32(0.0))


def _found(keys: NDArray[np.int64], asked: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return where numbers stand in an ascending list, and which of them do."""
    if not len(keys):
        return np.zeros(len(asked), np.int64), np.zeros(len(asked), bool)
    places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return places, keys[places] == asked


def packed(size: int, orders: Sequence[Order], bits: int) -> Arrays:
    """Return the arrays of a file: keys as a trie, values in so many bits."""
    arrays: Arrays = {}
    below = 0
    for number, order in enumerate(orders, start=1):
        if number > 1:
            histories, words = np.divmod(order.keys, size)
            arrays[f"words_{number}"] = _small(words, size - 1)
            followers = np.bincount(histories, minlength=below)
            arrays[f"followers_{number}"] = _small(followers, int(followers.max(initial=0)))
        below = len(order.logprobs)
        # Single words are few, and every other probability rests on theirs.
        finely = 32 if number == 1 else bits
        arrays |= _values(f"logprobs_{number}", order.logprobs, finely)
        if number < len(orders):
            arrays |= _values(f"backoffs_{number}", order.backoffs, finely)
    return arrays


def unpacked(arrays: Mapping[str, NDArray[Any]]) -> Table:
    """Return the table that the arrays of a file describe."""
    size = len(arrays["logprobs_1"])
    highest = max(int(name.rpartition("_")[2]) for name in arrays if name.startswith("logprobs_"))
    orders: list[Order] = []
    keys = np.arange(size)
    for number in range(1, highest + 1):
        if number > 1:
            followers = arrays[f"followers_{number}"].astype(np.int64)
            if len(followers) != len(keys) or followers.sum() != len(arrays[f"words_{number}"]):
                raise ValueError(f"the n-grams of order {number} do not fit those of the order below")
            keys = np.repeat(np.arange(len(followers)), followers) * size + arrays[f"words_{number}"]
        backoffs = _read(arrays, f"backoffs_{number}") if number < highest else np.array([], np.float32)
        orders.append(Order(keys, _read(arrays, f"logprobs_{number}"), backoffs))
    return Table(size, tuple(orders))


def read_table(path: Path) -> Table:
    """Return the table in a file."""
    from safetensors import SafetensorError, safe_open
    from safetensors.numpy import load_file

    try:
        with safe_open(path, framework="numpy") as opened:
            told = (opened.metadata() or {}).get("format")
        if told != FORMAT:
            raise ModelError(f"{path} holds {told or 'other weights'}, not {FORMAT}: it is no n-gram model")
        return unpacked(load_file(path))
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as an n-gram model: {error}") from error


def _small(numbers: NDArray[np.int64], largest: int) -> NDArray[Any]:
    return numbers.astype(np.uint16 if largest < 1 << 16 else np.uint32)


def _values(name: str, values: NDArray[np.float32], bits: int) -> Arrays:
    if bits == 8:
        table, codes = _coded(values.astype(np.float64))
        return {name: codes, f"table_of_{name}": table}
    return {name: values.astype({16: np.float16, 32: np.float32}[bits])}


def _read(arrays: Mapping[str, NDArray[Any]], name: str) -> NDArray[np.float32]:
    values = arrays[name]
    return arrays[f"table_of_{name}"][values] if values.dtype == np.uint8 else values.astype(np.float32)


def _coded(values: NDArray[np.float64]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return 256 values and, for each number, which of them is nearest.

    Half of the values begin where numbers are many and half at equal distances, since the few n-grams with
    high probabilities are the frequent ones; then each moves to the mean of the numbers nearest to it.
    """
    if not len(values):
        return np.zeros(256, np.float32), np.zeros(0, np.uint8)
    equal = np.linspace(values.min(), values.max(), 128)
    table = np.unique(np.concatenate([np.quantile(values, np.linspace(0, 1, 128)), equal]))
    for _ in range(10):
        codes = np.searchsorted((table[1:] + table[:-1]) / 2, values)
        often = np.bincount(codes, minlength=len(table))
        sums = np.bincount(codes, weights=values, minlength=len(table))
        table = np.where(often > 0, sums / np.maximum(often, 1), table)
    codes = np.searchsorted((table[1:] + table[:-1]) / 2, values)
    return np.pad(table, (0, 256 - len(table)), mode="edge").astype(np.float32), codes.astype(np.uint8)
