"""Layers that read words one after another: Elman's network, the LSTM, and the QRNN, which reads them side by side.

All take (time, rows, numbers) and the state in which they were left, and return what they say at each time
and the state in which they leave. In training, shares of numbers are left out, in the ways of Merity et al. (2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from acceptability.models.scan import fading_sum

State = tuple[Tensor, ...]
"""What a layer holds in mind: (rows, numbers) each."""


@dataclass(frozen=True)
class Dropouts:
    """Which shares are left out while a network learns.

    Args:
        words: Of the vocabulary: such a word has an empty vector wherever it stands.
        inputs: Of the numbers of the word vectors.
        between: Of the numbers that one layer hands to the next.
        outputs: Of the numbers that the last layer hands on.
        recurrent: Of the weights from one time to the next; a QRNN has none, and keeps as many of its states instead.
        locked: Whether the same numbers are left out at each time of a sentence.
    """

    words: float = 0.0
    inputs: float = 0.0
    between: float = 0.0
    outputs: float = 0.0
    recurrent: float = 0.0
    locked: bool = True


def dropped(values: Tensor, share: float, *, locked: bool) -> Tensor:
    """Return values of which a share is left out, the same at each time if they are locked."""
    if not share:
        return values
    if not locked:
        return dropout(values, share)
    return values * dropout(values.new_ones(1, *values.shape[1:]), share)


class Stepwise(nn.Module):
    """Elman's network (tanh) or an LSTM: one layer, by the system's own kernels.

    All weights lie in one tensor in the order that cuDNN wants, so that it need not copy them.
    """

    def __init__(self, kind: str, width: int, hidden: int) -> None:
        super().__init__()
        gates = {"rnn": 1, "lstm": 4}[kind]
        self.kind, self.hidden = kind, hidden
        self.shapes = ((gates * hidden, width), (gates * hidden, hidden), (gates * hidden,), (gates * hidden,))
        bound = 1 / math.sqrt(hidden)
        self.weights = nn.Parameter(torch.empty(sum(map(math.prod, self.shapes))).uniform_(-bound, bound))

    def forward(self, values: Tensor, state: State | None, share: float = 0.0) -> tuple[Tensor, State]:
        """Return what the layer says at each time, and its state after the last.

        Args:
            share: Which share of the weights from one time to the next is left out.
        """
        values = values.float()
        if state is None:
            empty = values.new_zeros(values.shape[1], self.hidden)
            state = (empty, empty) if self.kind == "lstm" else (empty,)
        before = [each.float().unsqueeze(0).contiguous() for each in state]
        options = (True, 1, 0.0, self.training, False, False)
        # In full precision, by cuDNN with TF32: half precision loses small gradients on the way back.
        with torch.autocast(values.device.type, enabled=False):
            if self.kind == "lstm":
                said, last, cell = torch.lstm(values, before, self._parts(share), *options)
                return said, (last[0], cell[0])
            said, last = torch.rnn_tanh(values, before[0], self._parts(share), *options)
            return said, (last[0],)

    def _parts(self, share: float) -> list[Tensor]:
        """Return the weights as the kernels take them: input to hidden, hidden to hidden, and two biases."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = torch.split(self.weights, sizes)
        if share:
            # Joined again, so that they lie in one piece of memory.
            parts = torch.split(torch.cat([parts[0], dropout(parts[1], share), *parts[2:]]), sizes)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]


class SideBySide(nn.Module):
    """A QRNN layer (Bradbury et al. 2017): gates from a window of words, then a sum that fades.

    c[t] = f[t] · c[t-1] + (1 - f[t]) · z[t], and the layer says o[t] · c[t].

    Args:
        window: How many words a gate sees: 1 or 2.
    """

    def __init__(self, width: int, hidden: int, window: int) -> None:
        super().__init__()
        self.hidden, self.window = hidden, window
        self.gates = nn.Linear(width * window, 3 * hidden)

    def forward(self, values: Tensor, state: State | None, share: float = 0.0) -> tuple[Tensor, State]:
        """Return what the layer says at each time, and its state after the last.

        Args:
            share: Which share of the states is kept as it was (zoneout).
        """
        seen = values
        if self.window == 2:
            first = torch.zeros_like(values[:1]) if state is None else state[1].to(values.dtype).unsqueeze(0)
            seen = torch.cat([torch.cat([first, values[:-1]]), values], 2)
        new, forget, out = self.gates(seen).float().chunk(3, 2)
        change = torch.sigmoid(-forget)
        if share:
            change = change * dropout(torch.ones_like(change), share) * (1 - share)
        keep, fresh = 1 - change, change * torch.tanh(new)
        if state is not None:
            fresh = torch.cat([torch.addcmul(fresh[:1], keep[:1], state[0].float().unsqueeze(0)), fresh[1:]])
        cells = fading_sum(keep, fresh)
        return torch.sigmoid(out) * cells, (cells[-1], values[-1])


class Stack(nn.Module):
    """Layers on top of each other.

    Args:
        widths: How many numbers go into the first layer, and come out of each.
    """

    def __init__(self, cell: str, widths: tuple[int, ...]) -> None:
        super().__init__()
        made: list[Any] = []
        for number, (width, hidden) in enumerate(pairwise(widths)):
            qrnn = cell == "qrnn"
            made.append(SideBySide(width, hidden, 1 if number else 2) if qrnn else Stepwise(cell, width, hidden))
        self.layers = nn.ModuleList(made)

    def forward(self, values: Tensor, before: list[State] | None, drop: Dropouts) -> tuple[list[Tensor], list[State]]:
        """Return what each layer says at each time, and the state of each after the last."""
        said: list[Tensor] = []
        after: list[State] = []
        for number, layer in enumerate(self.layers):
            state = before[number] if before else None
            values, left = layer(values, state, drop.recurrent if self.training else 0.0)
            after.append(left)
            last = number == len(self.layers) - 1
            share = drop.outputs if last else drop.between
            values = dropped(values, share if self.training else 0.0, locked=drop.locked)
            said.append(values)
        return said, after


def word_vectors(table: Tensor, ids: Tensor, share: float) -> Tensor:
    """Return the vectors of words; a share of the vocabulary has empty ones."""
    if share:
        table = table * dropout(table.new_ones(len(table), 1), share)
    return torch.nn.functional.embedding(ids, table)
