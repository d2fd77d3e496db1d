"""Networks that judge whole sentences: CBOW and the pooling classifier of Warstadt et al. (2019), §4.

Both read a vector for each word and give one logit, above 0 for acceptable. Word vectors stand in a table, or are
mixed from the layers of a language model of ours (Peters et al. 2018). Sentences are columns, (time, rows, …), filled
up behind their last word; what fills them up changes nothing. In training, shares of numbers are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from acceptability.errors import ModelError
from acceptability.models.cells import Stepwise
from acceptability.models.recurrent import framed
from acceptability.models.recurrent_networks import Network, turned
from acceptability.models.sentence_shape import FILE, Shape, read_shape


class WordTable(nn.Module):
    """A vector for each word of the vocabulary."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(words, width).uniform_(-0.1, 0.1))

    def forward(self, numbers: Tensor) -> Tensor:
        """Return the vectors of words."""
        return embedding(numbers, self.table).float()


class LayerMix(nn.Module):
    """The layers of a language model, weighed by a softmax and scaled, each direction by itself."""

    def __init__(self, directions: int, mixed: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(directions, mixed))
        self.scale = nn.Parameter(torch.ones(directions))

    def forward(self, states: Tensor) -> Tensor:
        """Return one vector a word, of states (time, rows, directions, layers, numbers)."""
        shares = self.weights.softmax(1) * self.scale.unsqueeze(1)
        return torch.einsum("trdln,dl->trdn", states.float(), shares).flatten(2)


class Head(nn.Module):
    """From the vector of a sentence to its logit, through a hidden layer if the shape has one."""

    def __init__(self, shape: Shape, share: float) -> None:
        super().__init__()
        self.share, self.activation = share, shape.activation
        self.hidden = nn.Linear(shape.sentence, shape.top) if shape.top else None
        self.output = nn.Linear(shape.top or shape.sentence, 1)

    def forward(self, sentences: Tensor) -> Tensor:
        """Return the logits of sentences."""
        values = dropout(sentences, self.share, self.training)
        if self.hidden is not None:
            values = self.hidden(values)
            values = values.tanh() if self.activation == "tanh" else values.relu()
            values = dropout(values, self.share, self.training)
        said: Tensor = self.output(values).squeeze(-1)
        return said


class Cbow(nn.Module):
    """The sum, the mean or the greatest numbers of a sentence's word vectors, judged by a perceptron."""

    def __init__(self, shape: Shape, share: float = 0.0) -> None:
        super().__init__()
        self.shape, self.share = shape, share
        self.inputs, self.head = _inputs(shape), Head(shape, share)

    def sentences(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return a vector for each sentence, of word numbers or of states."""
        vectors: Tensor = self.inputs(values)
        inside = _inside(values, lengths).unsqueeze(2)
        if self.shape.pool == "max":
            return vectors.masked_fill(~inside, -torch.inf).amax(0)
        summed = (vectors * inside).sum(0)
        return summed / lengths.unsqueeze(1) if self.shape.pool == "mean" else summed

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of sentences."""
        said: Tensor = self.head(self.sentences(values, lengths))
        return said


class Pooling(nn.Module):
    """An LSTM reads a sentence in both directions; of each of its numbers the greatest over all words counts."""

    def __init__(self, shape: Shape, share: float = 0.0) -> None:
        super().__init__()
        self.shape, self.share = shape, share
        self.inputs, self.head = _inputs(shape), Head(shape, share)
        widths = [shape.inputs, *[2 * shape.hidden] * (shape.layers - 1)]
        self.forwards = nn.ModuleList(Stepwise("lstm", width, shape.hidden) for width in widths)
        self.backwards = nn.ModuleList(Stepwise("lstm", width, shape.hidden) for width in widths)

    def sentences(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return a vector for each sentence, of word numbers or of states."""
        vectors: Tensor = self.inputs(values)
        order = turned(torch.arange(len(values), device=values.device).unsqueeze(1).expand(*values.shape[:2]), lengths)
        columns = torch.arange(values.shape[1], device=values.device)
        for ahead, back in zip(self.forwards, self.backwards, strict=True):
            vectors = dropout(vectors, self.share, self.training)
            said, _ = ahead(vectors, None)
            heard, _ = back(vectors[order, columns], None)
            vectors = torch.cat([said, heard[order, columns]], 2)
        outside = ~_inside(values, lengths).unsqueeze(2)
        return vectors.masked_fill(outside, -torch.inf).amax(0)

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of sentences."""
        said: Tensor = self.head(self.sentences(values, lengths))
        return said


SentenceNetwork = Cbow | Pooling


def network_of(shape: Shape, share: float = 0.0) -> SentenceNetwork:
    """Return a network of a shape that has learnt nothing yet; ``share`` of its numbers are left out in training."""
    return Cbow(shape, share) if shape.network == "cbow" else Pooling(shape, share)


def mixed_layers(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return how many layers of a language model are mixed, and how wide they then are.

    Its word vectors are none of them, as in Warstadt et al. (2019); narrower layers are filled up with zeros.

    >>> mixed_layers((200, 512, 200))
    (2, 512)
    """
    return len(shape) - 1, max(shape[1:])


def lm_states(net: Network, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return what a language model has in mind at each word, (time, rows, directions, layers, numbers)."""
    _, width = mixed_layers(net.shape.widths)
    ids = framed(rows).to(net.table.device)
    lengths = torch.tensor([len(row) for row in rows], device=ids.device)
    found = []
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for stack in range(net.shape.directions):
            read = turned(ids, lengths + 2) if stack else ids
            said = net.states(read, stack=stack)[0][1:]
            wide = [nn.functional.pad(each.float(), (0, width - each.shape[2])) for each in said]
            layers = torch.stack(wide, 2)[1:-1]
            found.append(_turned_back(layers, lengths) if stack else layers)
    return torch.stack(found, 2)


def stacked(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences as columns of numbers, (time, rows), filled up with 0.

    >>> stacked([[5, 6], [7]]).T.tolist()
    [[5, 6], [7, 0]]
    """
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows])


def saved(network: SentenceNetwork) -> bytes:
    """Return the content of a network's file: weights and shape, and nothing that could be run."""
    from safetensors.torch import save

    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    return save(weights, metadata=network.shape.to_metadata())


def read_network(folder: Path, device: str) -> SentenceNetwork:
    """Return the network of a classifier's folder, ready to be asked."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    with torch.device("meta"):
        network = network_of(read_shape(folder))
    try:
        network.load_state_dict(load_file(folder / FILE), assign=True)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{folder / FILE}: its weights do not fit its shape: {error}") from error
    return network.to(device).eval()


def _inputs(shape: Shape) -> WordTable | LayerMix:
    return LayerMix(shape.directions, shape.mixed) if shape.reads_states else WordTable(shape.words, shape.width)


def _inside(values: Tensor, lengths: Tensor) -> Tensor:
    """Return which places of (time, rows) hold a word."""
    return torch.arange(len(values), device=values.device).unsqueeze(1) < lengths


def _turned_back(layers: Tensor, lengths: Tensor) -> Tensor:
    times = torch.arange(len(layers), device=layers.device).unsqueeze(1).expand(*layers.shape[:2])
    columns = torch.arange(layers.shape[1], device=layers.device)
    return layers[turned(times, lengths), columns]
