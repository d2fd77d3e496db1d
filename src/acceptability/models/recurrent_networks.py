"""Recurrent language models of words as networks: what shape they have, what they say, how they lie on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from acceptability.errors import ModelError
from acceptability.models.cells import CELLS, Dropouts, Stack, State, dropped, word_vectors
from acceptability.models.output_layers import OUTPUTS, TIED, output_layer

FILE = "model.safetensors"
FORMAT = "acceptability recurrent 1"
NOTHING = -1
"""The target of a place that is not scored: what fills a row up."""


@dataclass(frozen=True)
class Shape:
    """All that a network needs to be built; its weights fit no other.

    Args:
        cell: rnn, lstm or qrnn.
        words: The size of the vocabulary.
        embedding: How many numbers a word vector has.
        hidden: How many numbers a layer has.
        output: How hidden states become probabilities, by its name in ``output_layers``.
        edges: Where groups of words begin in the output, and the size of the vocabulary last.
        directions: 2 if a second stack of layers reads sentences backwards.
    """

    cell: str
    words: int
    embedding: int
    hidden: int
    layers: int
    output: str
    edges: tuple[int, ...]
    directions: int = 1

    def __post_init__(self) -> None:
        if self.cell not in CELLS:
            raise ModelError(f"no recurrent network {self.cell!r}; there are {', '.join(CELLS)}")
        if self.output not in OUTPUTS:
            raise ModelError(f"output is {self.output!r}; expected one of {', '.join(OUTPUTS)}")
        if min(self.embedding, self.hidden, self.layers) < 1 or self.directions not in (1, 2):
            raise ModelError(f"a network cannot have the sizes {asdict(self)}")
        rising = all(one < two for one, two in zip(self.edges, self.edges[1:], strict=False))
        if len(self.edges) < 2 or self.edges[0] != 0 or self.edges[-1] != self.words or not rising:
            raise ModelError(f"groups of words cannot begin at {self.edges}: they rise from 0 to {self.words}")

    @property
    def widths(self) -> tuple[int, ...]:
        """How many numbers go into the first layer, and come out of each: the last fits what it is tied to."""
        last = self.embedding if self.output in TIED else self.hidden
        return (self.embedding, *[self.hidden] * (self.layers - 1), last)


class Network(nn.Module):
    """Word vectors, layers, and an output layer that both directions share."""

    def __init__(self, shape: Shape, drop: Dropouts | None = None) -> None:
        super().__init__()
        self.shape, self.drop = shape, drop or Dropouts()
        self.table = nn.Parameter(torch.empty(shape.words, shape.embedding).uniform_(-0.1, 0.1))
        self.stacks = nn.ModuleList(Stack(shape.cell, shape.widths) for _ in range(shape.directions))
        self.output = output_layer(shape.output, shape.widths[-1], shape.edges)

    def states(self, ids: Tensor, before: list[State] | None = None, *, stack: int = 0) -> _Said:
        """Return the word vectors and what each layer says at each word, and the state of each after the last.

        Args:
            ids: The numbers of words, (time, rows).
            stack: 0 for the layers that read forwards, 1 for those that read backwards; what they read is turned round.
        """
        drop = self.drop if self.training else Dropouts()
        values = dropped(word_vectors(self.table, ids, drop.words), drop.inputs, locked=drop.locked)
        said, after = self.stacks[stack](values, before, drop)
        return [values, *said], after

    def forward(
        self, ids: Tensor, targets: Tensor, before: list[State] | None = None, *, stack: int = 0
    ) -> tuple[Tensor, list[State]]:
        """Return the log-probabilities of all targets that are not NOTHING, row after row of time, and the states."""
        said, after = self.states(ids, before, stack=stack)
        wanted = targets != NOTHING
        found: Tensor = self.output(said[-1][wanted], targets[wanted], self.table)
        return found, after


_Said = tuple[list[Tensor], list[State]]


def turned(rows: Tensor, lengths: Tensor) -> Tensor:
    """Return each row with its words in the opposite order; what fills it up stays behind them.

    >>> turned(torch.tensor([[1, 7], [2, 8], [3, 0]]), torch.tensor([3, 2])).T.tolist()
    [[3, 2, 1], [8, 7, 0]]
    """
    times = torch.arange(len(rows), device=rows.device).unsqueeze(1)
    places = torch.where(times < lengths, lengths - 1 - times, times)
    return rows.gather(0, places)


def saved(network: Network) -> bytes:
    """Return the content of a network's file: weights and shape, and nothing that could be run."""
    from safetensors.torch import save

    weights = {name: value.detach().float().cpu().contiguous() for name, value in network.state_dict().items()}
    return save(weights, metadata={"format": FORMAT, "shape": json.dumps(asdict(network.shape))})


def read_shape(path: Path) -> Shape:
    """Return the shape of the network in a file, without its weights."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            told: Mapping[str, str] = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read as a recurrent model: {error}") from error
    if told.get("format") != FORMAT:
        raise ModelError(f"{path} holds {told.get('format') or 'other weights'}, not {FORMAT}: it is no recurrent model")
    try:
        kept = json.loads(told["shape"])
        return Shape(**{**kept, "edges": tuple(kept["edges"])})
    except (KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{path} does not say what shape its network has: {error}") from error


def read_network(path: Path, device: str) -> Network:
    """Return the network in a file, ready to be asked."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    with torch.device("meta"):
        network = Network(read_shape(path))
    try:
        network.load_state_dict(load_file(path), assign=True)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: its weights do not fit its shape: {error}") from error
    return network.to(device).eval()
