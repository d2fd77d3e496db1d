"""Two ways of a batch through an encoder-decoder: one that is quick and small, and a plain one to test it against."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.head import Pending, logprobs, on, picked, split
from acceptability.models.trial import objection, slower, tuned
from acceptability.models.trie import Ints


class Row(NamedTuple):
    """What the two halves of a network read, and what is asked of the second.

    Args:
        source: The tokens that the encoder reads.
        given: The tokens that the decoder reads.
        places: Where in these a token is predicted: the one that comes next.
        targets: The tokens asked for, one for each place.
    """

    source: Sequence[int]
    given: Sequence[int]
    places: Sequence[int]
    targets: Sequence[int]

    @property
    def size(self) -> int:
        """How many tokens the network reads."""
        return len(self.source) + len(self.given)


class Seq2SeqPass(Protocol):
    """A way through an encoder-decoder."""

    net: Any

    def __call__(self, rows: Sequence[Row]) -> Pending:
        """Begin with a batch, and return what gives the log-probabilities of all targets, row after row."""
        ...


class RowByRow:
    """The plain way: one row at a time, no padding, all of the vocabulary at all its places."""

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Row]) -> Pending:
        """Return what gives the log-probabilities of all targets, row after row."""
        found: NDArray[np.float32] = np.concatenate([self._one(row) for row in rows])
        return lambda: found

    def _one(self, row: Row) -> NDArray[np.float32]:
        arrays = [np.array(each) for each in row]
        source, given, places, targets = on(self.net.device, *arrays)
        seen = torch.ones_like(source)[None]
        options = {"attention_mask": seen, "decoder_input_ids": given[None], "use_cache": False}
        table = self.net(input_ids=source[None], **options).logits[0, places]
        found: NDArray[np.float32] = (
            picked(table, torch.arange(len(targets), device=table.device), targets).cpu().numpy()
        )
        return found


class ScoredPlaces:
    """The fast way: rows filled up to the longest, each different source once, the head only where it counts."""

    def __init__(self, net: Any) -> None:
        self.net = net
        self.head = _Decoder(net)

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Row]) -> Pending:
        """Begin with a batch, and return what gives the log-probabilities of all targets, row after row."""
        sources = list(dict.fromkeys([tuple(row.source) for row in rows]))
        number = {source: place for place, source in enumerate(sources)}
        given, _ = _padded([row.given for row in rows])
        which = np.array([number[tuple(row.source)] for row in rows])
        shown, seen, read, which = on(self.net.device, *_padded(sources), given, which)
        encoded = self.net.get_encoder()(input_ids=shown, attention_mask=seen).last_hidden_state
        # A token sees only those before it, so what fills up a row of the decoder is seen by none that counts.
        states = self.net.get_decoder()(
            input_ids=read,
            encoder_hidden_states=encoded[which],
            encoder_attention_mask=seen[which],
            use_cache=False,
        ).last_hidden_state
        starts = np.repeat(np.arange(len(rows)) * given.shape[1], [len(row.places) for row in rows])
        places = _flat([row.places for row in rows])
        return logprobs(self.head, states.flatten(0, 1), starts + places, _flat([row.targets for row in rows]))


class _Decoder:
    """A network without its encoder, so that its decoder can be told from its head as in any other network."""

    def __init__(self, net: Any) -> None:
        self.net, self.base_model, self.config = net, net.get_decoder(), net.config

    def get_output_embeddings(self) -> Any:
        """Return the last layer."""
        return self.net.get_output_embeddings()

    def __call__(self, input_ids: Any) -> Any:
        """Return what the network says, as if its encoder had read nothing."""
        from transformers.modeling_outputs import BaseModelOutput

        nothing: Any = torch.zeros((1, 1, 1), dtype=self.net.dtype, device=input_ids.device)
        read = BaseModelOutput(last_hidden_state=nothing)
        return self.net(encoder_outputs=read, decoder_input_ids=input_ids, use_cache=False)


def seq2seq_pass(opened: Callable[[], Any], folder: Path) -> Seq2SeqPass:
    """Return the fastest way through a network that gives what the plain way gives.

    Args:
        opened: What reads the network, anew each time that it is called.
        folder: Where its weights lie.
    """
    return tuned(opened, lambda net: _untuned(net, folder), lambda way: way(_sample(way.net))(), folder)


def _untuned(net: Any, folder: Path) -> tuple[Seq2SeqPass, NDArray[np.float32]]:
    """Return the fastest way through a network as it is, and what the plain way says of the sample."""
    plain, fast = RowByRow(net), ScoredPlaces(net)
    expected = plain(_sample(net))()

    def headed_apart() -> NDArray[np.float32]:
        split(fast.head)
        return fast(_sample(net))()

    problem = objection(headed_apart, expected, net.dtype)
    if problem is None:
        return fast, expected
    slower(folder, problem)
    return plain, expected


def portions(rows: Sequence[Row], budget: int) -> Iterator[list[int]]:
    """Yield the places of rows that go through a network together: shorter ones first, alike ones together.

    Filled up to the longest, they stay within a budget of tokens, unless one row exceeds it.

    >>> long, short = Row([1, 2, 3], [1, 2], [1], [3]), Row([1], [1], [0], [2])
    >>> list(portions([long, short, short], 4))
    [[1, 2], [0]]
    """
    held: list[int] = []
    widths = (0, 0)
    for place in sorted(range(len(rows)), key=lambda place: (rows[place].size, place)):
        row = rows[place]
        widths = max(widths[0], len(row.source)), max(widths[1], len(row.given))
        if held and sum(widths) * (len(held) + 1) > budget:
            yield held
            held, widths = [], (len(row.source), len(row.given))
        held.append(place)
    if held:
        yield held


def _padded(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return rows of equal length, filled up on the right, and the mask of what is real."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros(mask.shape, np.int64)
    ids[mask.astype(bool)] = _flat(rows)
    return ids, mask


def _flat(rows: Sequence[Sequence[int]]) -> Ints:
    return np.fromiter(chain.from_iterable(rows), np.int64)


def _sample(net: Any) -> list[Row]:
    """Return rows of different lengths, two of them with the same source."""
    size = len(net.get_input_embeddings().weight)
    tokens = np.random.default_rng(0).integers(0, size, 12).tolist()
    shapes = ((tokens[:6], tokens[4:9]), (tokens[:2], tokens[5:12]), (tokens[:2], tokens[3:5]))
    return [Row(source, given, range(len(given)), given[::-1]) for source, given in shapes]
