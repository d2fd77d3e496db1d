"""Two ways of a batch through a causal network: one that shares beginnings, and a plain one to test it against."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models import prefixes
from acceptability.models.head import logprobs, most_places, on, picked, split
from acceptability.models.trial import objection, slower, tuned
from acceptability.models.trie import Ints, trie

Row: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""The tokens of a text, and the places that are scored; what comes after the last of them need not be read."""


class CausalPass(Protocol):
    """A way through a causal network."""

    net: Any
    packing: str
    most: int
    """How many places it can take at once."""

    def __call__(self, batch: Sequence[Row], among: Ints | None = None) -> Callable[[], list[NDArray[np.float32]]]:
        """Begin with a batch, and return what gives the log-probabilities of the scored tokens of each row.

        Args:
            among: Tokens whose joint log-probability at each place is wanted too, as a second row of numbers.
        """
        ...


class PaddedRows:
    """The plain way: rows filled up to the longest, all of the network, all of the vocabulary."""

    packing = "size"

    def __init__(self, net: Any) -> None:
        self.net, self.most = net, most_places(net)

    @torch.inference_mode()
    def __call__(self, batch: Sequence[Row], among: Ints | None = None) -> Callable[[], list[NDArray[np.float32]]]:
        """Return what gives the log-probabilities of the scored tokens of each row."""
        longest = max(scored[-1] for _, scored in batch)
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros((len(batch), longest), np.int64)
        for row, (whole, scored) in enumerate(batch):
            ids[row, : scored[-1]], mask[row, : scored[-1]] = whole[: scored[-1]], 1
        shown, seen = on(self.net.device, ids, mask)
        logits = self.net(input_ids=shown, attention_mask=seen, use_cache=False).logits
        found = []
        for table, (whole, scored) in zip(logits, batch, strict=True):
            places = np.asarray(scored)
            before, targets = on(self.net.device, places - 1, np.asarray(whole)[places])
            several = None if among is None else on(self.net.device, among)[0]
            rows = torch.arange(len(before), device=self.net.device)
            found.append(picked(table[before], rows, targets, several).cpu().numpy())
        return lambda: found


class SharedPrefixes:
    """The fast way: each different beginning once, no padding, the head only where a token is scored."""

    packing = "prefix"
    most = sys.maxsize

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, batch: Sequence[Row], among: Ints | None = None) -> Callable[[], list[NDArray[np.float32]]]:
        """Begin with a batch, and return what gives the log-probabilities of the scored tokens of each row."""
        lengths, tokens = _flat([ids for ids, _ in batch])
        counts, places = _flat([scored for _, scored in batch])
        starts, text = np.cumsum(lengths) - lengths, np.repeat(np.arange(len(batch)), counts)
        made = trie(tokens, starts, np.array([scored[-1] for _, scored in batch]))
        targets = tokens[starts[text] + places]
        # The token at a place is predicted one place before it.
        nodes = made.path[text, places - 1]
        pending = logprobs(self.net, prefixes.states(self.net, made), nodes, targets, among)
        ends = np.cumsum(counts)

        def collect() -> list[NDArray[np.float32]]:
            found = pending()
            return [found[..., start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)]

        return collect


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return how many numbers each row has, and the numbers of all, one after another."""
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    return counts, np.fromiter(chain.from_iterable(rows), np.int64, int(counts.sum()))


def causal_pass(opened: Callable[[], Any], folder: Path) -> CausalPass:
    """Return the fastest way through a network that gives what the plain way gives.

    Args:
        opened: What reads the network, anew each time that it is called.
        folder: Where its weights lie.
    """
    return tuned(opened, lambda net: _untuned(net, folder), _tried, folder)


def _untuned(net: Any, folder: Path) -> tuple[CausalPass, NDArray[np.float32]]:
    """Return the fastest way through a network as it is, and what the plain way says of the sample."""
    plain, fast = PaddedRows(net), SharedPrefixes(net)
    expected, before = _tried(plain), net.config._attn_implementation

    def shared() -> NDArray[np.float32]:
        split(net)
        prefixes.share_prefixes(net)
        return _tried(fast)

    problem = objection(shared, expected, net.dtype)
    if problem is None:
        return fast, expected
    net.set_attn_implementation(before)
    slower(folder, problem)
    return plain, expected


def _tried(way: CausalPass) -> NDArray[np.float32]:
    """Return what a way says of the sample."""
    return np.concatenate(way(_sample(way.net))())


def _sample(net: Any) -> list[Row]:
    """Return some rows that begin alike and some that do not."""
    size = net.config.get_text_config().vocab_size
    tokens = np.random.default_rng(0).integers(0, size, 12).tolist()
    rows = [tokens[:5] + tokens[start : start + 4] for start in (5, 7, 8)] + [tokens[6:11]]
    return [(row, range(1, len(row))) for row in rows]
