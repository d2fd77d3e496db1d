"""Recurrent language models of words as networks: what they say, and how they lie on disk."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from acceptability.errors import ModelError
from acceptability.models.cells import Dropouts, Stack, State, dropped, word_vectors
from acceptability.models.output_layers import output_layer
from acceptability.models.recurrent_shape import Shape, read_shape

NOTHING = -1
"""The target of a place that is not scored: what fills a row up."""


_Said = tuple[list[Tensor], list[State]]


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


def turned(rows: Tensor, lengths: Tensor) -> Tensor:
    """Return each row with its words in the opposite order; what fills it up stays behind them.

    >>> turned(torch.tensor([[1, 7], [2, 8], [3, 0]]), torch.tensor([3, 2])).T.tolist()
    [[3, 2, 1], [8, 7, 0]]
    """
    times = torch.arange(len(rows), device=rows.device).unsqueeze(1)
    places = torch.where(times < lengths, lengths - 1 - times, times)
    return rows.gather(0, places)


def saved(network: Network, bits: int = 32) -> bytes:
    """Return the content of a network's file: weights and shape, and nothing that could be run.

    Args:
        bits: How finely weights are kept: 32, 16, or 8, where word vectors have 8 and all others 16.
    """
    from safetensors.torch import save

    kind = torch.float32 if bits == 32 else torch.float16
    weights = {name: value.detach().cpu().float() for name, value in network.state_dict().items()}
    if bits == 8:
        table = weights["table"]
        # A row is told by its greatest number, and the others as so many 127ths of it.
        weights["table_scale"] = (table.abs().amax(1) / 127).clamp(min=1e-7).half().float()
        weights["table"] = (table / weights["table_scale"].unsqueeze(1)).round().clamp(-127, 127).to(torch.int8)
    content = {name: value if value.dtype == torch.int8 else value.to(kind) for name, value in weights.items()}
    return save({name: value.contiguous() for name, value in content.items()}, metadata=network.shape.to_metadata())


def read_network(path: Path, device: str) -> Network:
    """Return the network in a file, ready to be asked."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    with torch.device("meta"):
        network = Network(read_shape(path))
    try:
        weights = {name: value.float() for name, value in load_file(path).items()}
        if "table_scale" in weights:
            weights["table"] *= weights.pop("table_scale").unsqueeze(1)
        network.load_state_dict(weights, assign=True)
    except (KeyError, SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: its weights do not fit its shape: {error}") from error
    return network.to(device).eval()
