"""Recurrent language models of words as PyTorch networks: layers, dropout, forward pass, weights file, and sampling.

Three kinds of layers: Elman networks and LSTMs, which compute one time step after the other, and QRNNs (Bradbury et al.
2017), whose linear recurrence is computed by a parallel scan. All take tensors (time, rows, dimensions), rows being
sentences, and an initial state, and return their outputs and the final state. Dropout in training follows Merity et al.
(2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import dropout

from acceptability.errors import ModelError
from acceptability.models.recurrent import RecurrentShape, read_recurrent_shape
from acceptability.models.recurrent.output_layers import GroupedSoftmax, build_output_layer
from acceptability.text.words import END, START

LayerState = tuple[Tensor, ...]
"""The state of a layer: tensors (rows, dimensions)."""

IGNORE_INDEX = -1
"""The target of a position that is not scored, such as padding."""


@dataclass(frozen=True)
class DropoutRates:
    """Dropout rates in training (Merity et al. 2018).

    Args:
        words: Embedding dropout: the share of the vocabulary whose vectors are zero in all positions.
        inputs: Dropout on the word embeddings.
        between: Dropout on the outputs of all layers but the last.
        outputs: Dropout on the outputs of the last layer.
        recurrent: Weight dropout on the hidden-to-hidden weights; zoneout in a QRNN, which has no such weights.
        locked: Variational dropout: the same dimensions are dropped at every time step of a sequence.
    """

    words: float = 0.0
    inputs: float = 0.0
    between: float = 0.0
    outputs: float = 0.0
    recurrent: float = 0.0
    locked: bool = True


def apply_dropout(values: Tensor, rate: float, *, locked: bool) -> Tensor:
    """Return values after dropout; ``locked`` drops the same dimensions at every time step."""
    if not rate:
        return values
    if not locked:
        return dropout(values, rate)
    return values * dropout(values.new_ones(1, *values.shape[1:]), rate)


class RecurrentLayer(nn.Module):
    """One layer of an Elman network (tanh) or an LSTM, by PyTorch's kernels.

    Args:
        kind: "rnn" or "lstm".
    """

    def __init__(self, kind: str, input_size: int, hidden_size: int) -> None:
        super().__init__()
        gates = {"rnn": 1, "lstm": 4}[kind]
        self.kind, self.hidden_size = kind, hidden_size
        # All weights lie in one tensor, in the order that cuDNN expects: separate ones it would copy at each call.
        self.shapes = (
            (gates * hidden_size, input_size),
            (gates * hidden_size, hidden_size),
            (gates * hidden_size,),
            (gates * hidden_size,),
        )
        bound = 1 / math.sqrt(hidden_size)
        self.weights = nn.Parameter(torch.empty(sum(map(math.prod, self.shapes))).uniform_(-bound, bound))

    def forward(self, values: Tensor, state: LayerState | None, rate: float = 0.0) -> tuple[Tensor, LayerState]:
        """Return the outputs at all time steps, and the final state.

        Args:
            state: The initial state; None for zeros.
            rate: The dropout rate of the hidden-to-hidden weights.
        """
        values = values.float()
        if state is None:
            empty = values.new_zeros(values.shape[1], self.hidden_size)
            state = (empty, empty) if self.kind == "lstm" else (empty,)
        initial_state = [part.float().unsqueeze(0).contiguous() for part in state]
        # In the order of torch.lstm: biases, layers, dropout between layers, training, both directions, rows first.
        options = (True, 1, 0.0, self.training, False, False)
        # In float32 even in mixed-precision training: the rounding errors of bfloat16 would add up over the time steps.
        with torch.autocast(values.device.type, enabled=False):
            if self.kind == "lstm":
                outputs, last, cell = torch.lstm(values, initial_state, self._split_weights(rate), *options)
                return outputs, (last[0], cell[0])
            outputs, last = torch.rnn_tanh(values, initial_state[0], self._split_weights(rate), *options)
            return outputs, (last[0],)

    def _split_weights(self, rate: float) -> list[Tensor]:
        """Return the weights that the kernels take: input to hidden, hidden to hidden, and two biases."""
        sizes = [math.prod(shape) for shape in self.shapes]
        parts = torch.split(self.weights, sizes)
        if rate:
            # Concatenated again, since cuDNN expects the weights in one block of memory.
            parts = torch.split(torch.cat([parts[0], dropout(parts[1], rate), *parts[2:]]), sizes)
        return [part.view(shape) for part, shape in zip(parts, self.shapes, strict=True)]


def linear_recurrence(keep: Tensor, new: Tensor) -> Tensor:
    """Return y with y[t] = keep[t] · y[t-1] + new[t], by a parallel scan over time, the first dimension; y[-1] is 0.

    Neighbouring pairs of time steps are joined into one, the sequence of half the length is solved in the same way, and
    the steps in between are filled in: as many rounds as the length can be halved, instead of a loop over all steps.

    >>> linear_recurrence(torch.tensor([0.5, 0.5, 0.5]), torch.tensor([4.0, 1.0, 0.0])).tolist()
    [4.0, 3.0, 1.5]
    """
    result: Tensor = _LinearRecurrence.apply(keep, new)  # type: ignore[no-untyped-call]
    return result


class _LinearRecurrence(torch.autograd.Function):
    """The scan with a gradient of its own: that of a linear recurrence is one that runs backwards.

    Differentiated by autograd, every round of the scan would keep its intermediate results in memory.
    """

    @staticmethod
    def forward(ctx: Any, keep: Tensor, new: Tensor) -> Tensor:
        """Return y."""
        sums = _scan_forward(keep, new)
        ctx.save_for_backward(keep, sums)
        return sums

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of ``keep`` and ``new``."""
        keep, sums = ctx.saved_tensors
        new_gradient = _scan_backward(keep[1:], gradient)
        # keep[0] is multiplied by nothing, so that its gradient stays 0.
        keep_gradient = torch.zeros_like(keep)
        torch.mul(new_gradient[1:], sums[:-1], out=keep_gradient[1:])
        return keep_gradient, new_gradient


def _scan_forward(keep: Tensor, new: Tensor) -> Tensor:
    """Return y with y[t] = keep[t] · y[t-1] + new[t]."""
    length = len(new)
    if length == 1:
        return new.clone()
    result = torch.empty_like(new)
    even, odd = keep[0 : length - 1 : 2], keep[1::2]
    # The usual closed form divides by cumulative products of ``keep``, which underflow; here nothing is divided.
    result[1::2] = _scan_forward(odd * even, torch.addcmul(new[1::2], odd, new[0 : length - 1 : 2]))
    result[0] = new[0]
    result[2::2] = torch.addcmul(new[2::2], keep[2::2], result[1 : length - 1 : 2])
    return result


def _scan_backward(keep: Tensor, new: Tensor) -> Tensor:
    """Return y with y[t] = keep[t] · y[t+1] + new[t]; ``keep`` is shorter by one, as nothing follows the end."""
    length = len(new)
    if length == 1:
        return new.clone()
    result = torch.empty_like(new)
    # Pairs are joined from the end, so that with an odd length the first step is left over and filled in afterwards.
    first, between = length % 2, 1 - length % 2
    joined = torch.addcmul(new[first : length - 1 : 2], keep[first::2], new[first + 1 :: 2])
    result[first : length - 1 : 2] = _scan_backward(keep[first : length - 2 : 2] * keep[first + 1 :: 2], joined)
    result[length - 1] = new[length - 1]
    rest = slice(between, length - 2, 2)
    result[rest] = torch.addcmul(new[rest], keep[rest], result[between + 1 : length - 1 : 2])
    return result


class QRNNLayer(nn.Module):
    """A QRNN layer (Bradbury et al. 2017): gates from a window of words, then a linear recurrence.

    With the gates f and o and the candidates z, c[t] = f[t] · c[t-1] + (1 - f[t]) · z[t]; the output is o[t] · c[t].

    Args:
        window: How many words a gate sees: 1 or 2.
    """

    def __init__(self, input_size: int, hidden_size: int, window: int) -> None:
        super().__init__()
        self.hidden_size, self.window = hidden_size, window
        self.gates = nn.Linear(input_size * window, 3 * hidden_size)

    def forward(self, values: Tensor, state: LayerState | None, zoneout_rate: float = 0.0) -> tuple[Tensor, LayerState]:
        """Return the outputs at all time steps, and the final state: the last cell and the last input.

        Args:
            state: The initial state; None for zeros.
            zoneout_rate: The share of the cells that keep their value from one time step to the next.
        """
        gate_inputs = values
        if self.window == 2:
            # The window of the first word reaches into the preceding sequence, whose last input is part of the state.
            first = torch.zeros_like(values[:1]) if state is None else state[1].to(values.dtype).unsqueeze(0)
            gate_inputs = torch.cat([torch.cat([first, values[:-1]]), values], 2)
        new, forget, out = self.gates(gate_inputs).float().chunk(3, 2)
        # 1 - f, computed from the negated logit: near f = 1, subtracting from 1 would lose all digits.
        change = torch.sigmoid(-forget)
        if zoneout_rate:
            # dropout() scales up what it keeps, which zoneout does not.
            change = change * dropout(torch.ones_like(change), zoneout_rate) * (1 - zoneout_rate)
        keep, update = 1 - change, change * torch.tanh(new)
        # The scan starts from zero: the initial state enters through the first update.
        if state is not None:
            update = torch.cat([torch.addcmul(update[:1], keep[:1], state[0].float().unsqueeze(0)), update[1:]])
        cells = linear_recurrence(keep, update)
        return torch.sigmoid(out) * cells, (cells[-1], values[-1])


class RecurrentStack(nn.Module):
    """A stack of layers.

    Args:
        cell: rnn, lstm or qrnn.
        widths: The dimension of the first layer's input, and of each layer's output.
    """

    def __init__(self, cell: str, widths: tuple[int, ...]) -> None:
        super().__init__()
        layers: list[Any] = []
        for number, (width, hidden) in enumerate(pairwise(widths)):
            qrnn = cell == "qrnn"
            # As in Merity et al. (2018), only the first QRNN layer sees the word before.
            layers.append(QRNNLayer(width, hidden, 1 if number else 2) if qrnn else RecurrentLayer(cell, width, hidden))
        self.layers = nn.ModuleList(layers)

    def forward(
        self, values: Tensor, initial_states: list[LayerState] | None, rates: DropoutRates
    ) -> tuple[list[Tensor], list[LayerState]]:
        """Return the outputs and the final state of each layer."""
        outputs: list[Tensor] = []
        final_states: list[LayerState] = []
        for number, layer in enumerate(self.layers):
            state = initial_states[number] if initial_states else None
            values, final_state = layer(values, state, rates.recurrent if self.training else 0.0)
            final_states.append(final_state)
            is_last = number == len(self.layers) - 1
            rate = rates.outputs if is_last else rates.between
            values = apply_dropout(values, rate if self.training else 0.0, locked=rates.locked)
            outputs.append(values)
        return outputs, final_states


def embed_words(table: Tensor, ids: Tensor, rate: float) -> Tensor:
    """Return the embeddings of words; with a dropout rate, that share of the vocabulary has zeros."""
    if rate:
        table = table * dropout(table.new_ones(len(table), 1), rate)
    return torch.nn.functional.embedding(ids, table)


_LayerOutputs = tuple[list[Tensor], list[LayerState]]


class RecurrentNetwork(nn.Module):
    """A language model: word embeddings, layers, and an output layer; both directions share embeddings and output."""

    def __init__(self, shape: RecurrentShape, dropout: DropoutRates | None = None) -> None:
        super().__init__()
        self.shape, self.dropout = shape, dropout or DropoutRates()
        self.table = nn.Parameter(torch.empty(shape.words, shape.embedding).uniform_(-0.1, 0.1))
        self.stacks = nn.ModuleList(RecurrentStack(shape.cell, shape.layer_widths) for _ in range(shape.directions))
        self.output = build_output_layer(shape.output, shape.layer_widths[-1], shape.edges)

    def run_layers(
        self, ids: Tensor, initial_states: list[LayerState] | None = None, *, stack: int = 0
    ) -> _LayerOutputs:
        """Return the word embeddings and the hidden states of each layer, and the final state of each layer.

        Args:
            ids: The word ids, (time, rows).
            initial_states: The initial state of each layer; None for zeros.
            stack: 0 for the layers that read forwards, 1 for those that read backwards, whose ids must be reversed.
        """
        dropout = self.dropout if self.training else DropoutRates()
        values = apply_dropout(embed_words(self.table, ids, dropout.words), dropout.inputs, locked=dropout.locked)
        layer_outputs, final_states = self.stacks[stack](values, initial_states, dropout)
        return [values, *layer_outputs], final_states

    def forward(
        self, ids: Tensor, targets: Tensor, initial_states: list[LayerState] | None = None, *, stack: int = 0
    ) -> tuple[Tensor, list[LayerState]]:
        """Return the log-probabilities of the targets, time step by time step, and the final states.

        Args:
            targets: The word ids to score, (time, rows); positions with ``IGNORE_INDEX`` are left out.
        """
        layer_outputs, final_states = self.run_layers(ids, initial_states, stack=stack)
        is_scored = targets != IGNORE_INDEX
        logprobs: Tensor = self.output(layer_outputs[-1][is_scored], targets[is_scored], self.table)
        return logprobs, final_states


def reverse_sequences(rows: Tensor, lengths: Tensor) -> Tensor:
    """Return sequences (time, rows) with the words of each row reversed; padding stays behind them.

    >>> reverse_sequences(torch.tensor([[1, 7], [2, 8], [3, 0]]), torch.tensor([3, 2])).T.tolist()
    [[3, 2, 1], [8, 7, 0]]
    """
    times = torch.arange(len(rows), device=rows.device).unsqueeze(1)
    indices = torch.where(times < lengths, lengths - 1 - times, times)
    return rows.gather(0, indices)


def serialize_recurrent_network(network: RecurrentNetwork, bits: int = 32) -> bytes:
    """Return the content of a weights file: weights and architecture in safetensors, which cannot hold code.

    Args:
        bits: The precision of the weights: 32, 16, or 8, where word embeddings have 8 bits and all others 16.
    """
    from safetensors.torch import save

    dtype = torch.float32 if bits == 32 else torch.float16
    weights = {name: value.detach().cpu().float() for name, value in network.state_dict().items()}
    if bits == 8:
        table = weights["table"]
        # One scale per row, so that a large value costs the precision of its own row only. It is rounded to half
        # precision before it is used, because it is stored so.
        weights["table_scale"] = (table.abs().amax(1) / 127).clamp(min=1e-7).half().float()
        weights["table"] = (table / weights["table_scale"].unsqueeze(1)).round().clamp(-127, 127).to(torch.int8)
    content = {name: value if value.dtype == torch.int8 else value.to(dtype) for name, value in weights.items()}
    return save({name: value.contiguous() for name, value in content.items()}, metadata=network.shape.to_metadata())


def read_recurrent_network(path: Path, device: str) -> RecurrentNetwork:
    """Return the network in a weights file, on a device, in evaluation mode."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    # On the meta device no memory is allocated and nothing initialised; the loaded weights are then assigned.
    with torch.device("meta"):
        network = RecurrentNetwork(read_recurrent_shape(path))
    try:
        weights = {name: value.float() for name, value in load_file(path).items()}
        if "table_scale" in weights:
            weights["table"] *= weights.pop("table_scale").unsqueeze(1)
        network.load_state_dict(weights, assign=True)
    except (KeyError, SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{path}: its weights do not fit its shape: {error}") from error
    return network.to(device).eval()


@torch.inference_mode()
def sample_word_ids(
    net: RecurrentNetwork,
    count: int,
    longest: int,
    temperature: float,
    banned: frozenset[int],
    random: np.random.Generator,
) -> list[list[int] | None]:
    """Return sampled sentences as word ids; None for one that does not end after ``longest`` words.

    Args:
        count: The number of sentences, which are sampled in parallel.
        temperature: 1 samples by the model's own probabilities.
        banned: Word ids that are never sampled.
    """
    device = net.table.device
    sampled_words = np.full((longest + 1, count), END)
    active_rows, last, states = np.arange(count), torch.full((count,), START, device=device), None
    for step in range(longest + 1):
        layer_outputs, states = net.run_layers(last.unsqueeze(0), states)
        last = _sample_next_words(net, layer_outputs[-1][0], temperature, banned, random)
        words = last.cpu().numpy()
        sampled_words[step, active_rows] = words
        # Rows that have ended are taken out of the batch, which shrinks as sentences end.
        is_unfinished = words != END
        active_rows = active_rows[is_unfinished]
        if not len(active_rows):
            break
        kept_rows = torch.from_numpy(np.flatnonzero(is_unfinished)).to(device)
        last, states = last[kept_rows], [tuple(part[kept_rows] for part in layer) for layer in states]
    unfinished = set(active_rows.tolist())
    return [None if row in unfinished else _truncate_at_end(sampled_words[:, row]) for row in range(count)]


def _sample_next_words(
    net: RecurrentNetwork, hidden: Tensor, temperature: float, banned: frozenset[int], random: np.random.Generator
) -> Tensor:
    """Return a word for the hidden state of each row."""
    output: Any = net.output
    # With another temperature, the probability of a group depends on those of all its words, and banned words would
    # have to be removed from their group's probability: both need the whole distribution.
    if isinstance(output, GroupedSoftmax) and temperature == 1 and max(banned) < output.edges[1]:
        return _sample_by_groups(output, net.table, hidden, banned, random)
    return sample_categorical(output.all_logprobs(hidden, net.table), temperature, banned, random)


def _sample_by_groups(
    output: GroupedSoftmax, table: Tensor, hidden: Tensor, banned: frozenset[int], random: np.random.Generator
) -> Tensor:
    """Return a word for each row: first a frequent word or a group is sampled, then a word of the group.

    So the softmax over a group of rare words is computed only for the rows that need it.
    """
    head, tail = output.build_head_and_tail(table)
    frequent = output.edges[1]
    words = sample_categorical(torch.cat(head(hidden), 1), 1.0, banned, random)
    for number, start in enumerate(output.edges[1:-1]):
        rows = (words == frequent + number).nonzero().squeeze(1)
        if len(rows):
            # Stored as negative numbers, so that no word is mistaken for one of the groups still to come.
            words[rows] = -1 - (start + sample_categorical(tail(number, hidden[rows]), 1.0, frozenset(), random))
    return torch.where(words < 0, -1 - words, words)


def sample_categorical(
    logprobs: Tensor, temperature: float, banned: frozenset[int], random: np.random.Generator
) -> Tensor:
    """Return a categorical sample for each row of log-probabilities.

    Args:
        logprobs: (rows, words); for a temperature of 1 they need not sum to 1.
        banned: Columns that are never sampled.
        random: A NumPy generator, so that every device samples with the same random numbers.
    """
    weights = (logprobs.exp() if temperature == 1 else torch.softmax(logprobs / temperature, 1)).double()
    if banned:
        weights[:, sorted(banned)] = 0
    sums = weights.cumsum_(1)
    # Scaled by the row's sum instead of normalising the row. In float64, since rounding makes float32 sums of a large
    # vocabulary skip rare words; the clamp is for a target that rounds to the sum itself.
    targets = torch.from_numpy(random.random((len(logprobs), 1))).to(logprobs.device) * sums[:, -1:]
    return torch.searchsorted(sums, targets, right=True).squeeze(1).clamp_(max=logprobs.shape[1] - 1)


def _truncate_at_end(column: Any) -> list[int]:
    words: list[int] = column[: int(np.argmax(column == END))].tolist()
    return words
