"""Two ways of a batch through a causal network: one that shares beginnings, and a plain one to test it against."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models import prefixes
from acceptability.models.head import NOISE, Unfit, logprobs, on, split
from acceptability.models.packed import pack
from acceptability.models.trie import Ints, trie

_log = logging.getLogger(__name__)

Row: TypeAlias = tuple[list[int], list[int], Sequence[int]]
"""The tokens of a text, those that the network must read, and the places that are scored."""


class CausalPass(Protocol):
    """A way through a causal network."""

    packing: str

    def __call__(self, batch: Sequence[Row]) -> Callable[[], list[NDArray[np.float32]]]:
        """Begin with a batch, and return what gives the log-probabilities of the scored tokens of each row."""
        ...


class PaddedRows:
    """The plain way: rows filled up to the longest, all of the network, all of the vocabulary."""

    packing = "size"

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, batch: Sequence[Row]) -> Callable[[], list[NDArray[np.float32]]]:
        """Return what gives the log-probabilities of the scored tokens of each row."""
        longest = max(len(read) for _, read, _ in batch)
        ids = np.zeros((len(batch), longest), np.int64)
        mask = np.zeros((len(batch), longest), np.int64)
        for row, (_, read, _) in enumerate(batch):
            ids[row, : len(read)], mask[row, : len(read)] = read, 1
        device = self.net.device
        logits = self.net(input_ids=on(device, ids), attention_mask=on(device, mask), use_cache=False).logits
        found = []
        for table, (whole, _, scored) in zip(logits, batch, strict=True):
            places = np.asarray(scored)
            rows = table[on(device, places - 1)].float().log_softmax(1)
            picked = rows.gather(1, on(device, np.asarray(whole)[places])[:, None])
            found.append(picked[:, 0].cpu().numpy())
        return lambda: found


class SharedPrefixes:
    """The fast way: each different beginning once, no padding, the head only where a token is scored."""

    packing = "prefix"

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, batch: Sequence[Row]) -> Callable[[], list[NDArray[np.float32]]]:
        """Begin with a batch, and return what gives the log-probabilities of the scored tokens of each row."""
        order = sorted(range(len(batch)), key=lambda place: batch[place][1])
        made = trie([batch[place][1] for place in order])
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        whole, _, scored = zip(*batch, strict=True)
        counts, text, places = _flat(scored)
        lengths, _, tokens = _flat(whole)
        targets = tokens[(np.cumsum(lengths) - lengths)[text] + places]
        # The token at a place is predicted one place before it.
        nodes = made.path[number[text], places - 1]
        pending = logprobs(self.net, prefixes.states(self.net, made), nodes, targets)
        ends = np.cumsum(counts)

        def collect() -> list[NDArray[np.float32]]:
            found = pending()
            return [found[start:end] for start, end in zip((ends - counts).tolist(), ends.tolist(), strict=True)]

        return collect


def _flat(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints, Ints]:
    """Return how many numbers each row has, in which row each number stands, and the numbers."""
    counts = np.fromiter(map(len, rows), np.int64, len(rows))
    numbers = np.fromiter(chain.from_iterable(rows), np.int64, int(counts.sum()))
    return counts, np.repeat(np.arange(len(rows)), counts), numbers


def causal_pass(net: Any, name: str) -> CausalPass:
    """Return the fastest way through a network that gives what the plain way gives."""
    plain = PaddedRows(net)
    batch = _sample(net)
    expected = plain(batch)()
    before = net.config._attn_implementation
    try:
        with _prepared(net):
            fast = SharedPrefixes(net)
            found = fast(batch)()
    except Unfit as error:
        problem = str(error)
    else:
        gap = max(float(np.abs(one - other).max()) for one, other in zip(expected, found, strict=True))
        if gap < NOISE[net.dtype]:
            return fast
        problem = f"its scores would differ by {gap:.2g}"
    net.set_attn_implementation(before)
    _log.info("%s takes the plain way, which is slower: %s", name, problem)
    return plain


@contextmanager
def _prepared(net: Any) -> Iterator[None]:
    """Make a network ready for the fast way; whatever its code makes of that is a reason not to take it."""
    try:
        split(net)
        prefixes.share_prefixes(net)
        if net.device.type == "cpu":
            pack(net)
        yield
    except (TypeError, ValueError, AttributeError, IndexError, KeyError, RuntimeError) as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error


def _sample(net: Any) -> list[Row]:
    """Return some rows that begin alike and some that do not."""
    size = net.config.get_text_config().vocab_size
    tokens = np.random.default_rng(0).integers(0, size, 12).tolist()
    rows = [tokens[:5] + tokens[start : start + 4] for start in (5, 7, 8)] + [tokens[6:11]]
    return [(row, row[:-1], range(1, len(row))) for row in rows]
