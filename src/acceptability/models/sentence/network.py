"""The networks of sentence classifiers in PyTorch: CBOW and the pooling classifier of Warstadt et al. (2019), §4.

Both read a vector for each word and return one logit per sentence, above 0 for acceptable. The vectors are word
embeddings, or a scalar mix of a recurrent language model's layers, as in ELMo (Peters et al. 2018). Sentences are
columns (time, rows, …), padded at the end; padding does not change a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, embedding

from acceptability.errors import ModelError
from acceptability.models.recurrent import pad_with_boundaries
from acceptability.models.recurrent.network import RecurrentLayer, RecurrentNetwork, reverse_sequences
from acceptability.models.sentence import WEIGHTS_FILE, SentenceNetworkShape, read_sentence_shape


class WordEmbedding(nn.Module):
    """Word embeddings."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.empty(words, width).uniform_(-0.1, 0.1))

    def forward(self, word_ids: Tensor) -> Tensor:
        """Return the embeddings of word ids."""
        # float32 also under autocast: CBOW sums many of them.
        return embedding(word_ids, self.table).float()


class ScalarMix(nn.Module):
    """A scalar mix (Peters et al. 2018): layers weighted by a softmax and scaled, separately for each direction."""

    def __init__(self, directions: int, mixed: int) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(directions, mixed))
        self.scale = nn.Parameter(torch.ones(directions))

    def forward(self, states: Tensor) -> Tensor:
        """Return one vector per word, from hidden states (time, rows, directions, layers, dimensions)."""
        mix_weights = self.weights.softmax(1) * self.scale.unsqueeze(1)
        return torch.einsum("trdln,dl->trdn", states.float(), mix_weights).flatten(2)


class ClassificationHead(nn.Module):
    """Maps a sentence vector to a logit, through a hidden layer if the architecture has one."""

    def __init__(self, shape: SentenceNetworkShape, dropout_rate: float) -> None:
        super().__init__()
        self.dropout_rate, self.activation = dropout_rate, shape.activation
        self.hidden = nn.Linear(shape.sentence_width, shape.top) if shape.top else None
        self.output = nn.Linear(shape.top or shape.sentence_width, 1)

    def forward(self, sentences: Tensor) -> Tensor:
        """Return the logits of sentence vectors."""
        values = dropout(sentences, self.dropout_rate, self.training)
        if self.hidden is not None:
            values = self.hidden(values)
            values = values.tanh() if self.activation == "tanh" else values.relu()
            values = dropout(values, self.dropout_rate, self.training)
        logits: Tensor = self.output(values).squeeze(-1)
        return logits


class CbowNetwork(nn.Module):
    """Continuous bag of words: the sum, mean or maximum of the word vectors, classified by a perceptron."""

    def __init__(self, shape: SentenceNetworkShape, dropout_rate: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout_rate = shape, dropout_rate
        self.inputs, self.head = _build_input_layer(shape), ClassificationHead(shape, dropout_rate)

    def encode_sentences(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return a vector for each sentence.

        Args:
            values: Word ids, or the hidden states of a language model.
            lengths: The number of words in each sentence.
        """
        vectors: Tensor = self.inputs(values)
        word_mask = _make_word_mask(values, lengths).unsqueeze(2)
        if self.shape.pool == "max":
            # Padding is -inf and not 0, which would win wherever all words are negative.
            return vectors.masked_fill(~word_mask, -torch.inf).amax(0)
        summed = (vectors * word_mask).sum(0)
        return summed / lengths.unsqueeze(1) if self.shape.pool == "mean" else summed

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of sentences."""
        logits: Tensor = self.head(self.encode_sentences(values, lengths))
        return logits


class PoolingNetwork(nn.Module):
    """A bidirectional LSTM with max pooling over the words of a sentence."""

    def __init__(self, shape: SentenceNetworkShape, dropout_rate: float = 0.0) -> None:
        super().__init__()
        self.shape, self.dropout_rate = shape, dropout_rate
        self.inputs, self.head = _build_input_layer(shape), ClassificationHead(shape, dropout_rate)
        widths = [shape.input_width, *[2 * shape.hidden] * (shape.layers - 1)]
        self.forwards = nn.ModuleList(RecurrentLayer("lstm", width, shape.hidden) for width in widths)
        self.backwards = nn.ModuleList(RecurrentLayer("lstm", width, shape.hidden) for width in widths)

    def encode_sentences(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return a vector for each sentence.

        Args:
            values: Word ids, or the hidden states of a language model.
            lengths: The number of words in each sentence.
        """
        vectors: Tensor = self.inputs(values)
        # Reversed within each sentence's length: padding in front would change the backward LSTM's state.
        order = reverse_sequences(
            torch.arange(len(values), device=values.device).unsqueeze(1).expand(*values.shape[:2]), lengths
        )
        columns = torch.arange(values.shape[1], device=values.device)
        for forward_layer, backward_layer in zip(self.forwards, self.backwards, strict=True):
            vectors = dropout(vectors, self.dropout_rate, self.training)
            forward_outputs, _ = forward_layer(vectors, None)
            backward_outputs, _ = backward_layer(vectors[order, columns], None)
            vectors = torch.cat([forward_outputs, backward_outputs[order, columns]], 2)
        padding_mask = ~_make_word_mask(values, lengths).unsqueeze(2)
        return vectors.masked_fill(padding_mask, -torch.inf).amax(0)

    def forward(self, values: Tensor, lengths: Tensor) -> Tensor:
        """Return the logits of sentences."""
        logits: Tensor = self.head(self.encode_sentences(values, lengths))
        return logits


SentenceNetwork = CbowNetwork | PoolingNetwork


def build_sentence_network(shape: SentenceNetworkShape, dropout_rate: float = 0.0) -> SentenceNetwork:
    """Return an untrained network of some architecture."""
    return CbowNetwork(shape, dropout_rate) if shape.network == "cbow" else PoolingNetwork(shape, dropout_rate)


def get_mix_dimensions(layer_widths: tuple[int, ...]) -> tuple[int, int]:
    """Return the number of layers of a language model that are mixed, and their dimension.

    As in Warstadt et al. (2019), the word embeddings are not mixed; narrower layers are padded with zeros.

    >>> get_mix_dimensions((200, 512, 200))
    (2, 512)
    """
    return len(layer_widths) - 1, max(layer_widths[1:])


def compute_lm_states(net: RecurrentNetwork, rows: Sequence[Sequence[int]]) -> Tensor:
    """Return a language model's hidden states at each word, (time, rows, directions, layers, dimensions)."""
    _, width = get_mix_dimensions(net.shape.layer_widths)
    ids = pad_with_boundaries(rows).to(net.table.device)
    lengths = torch.tensor([len(row) for row in rows], device=ids.device)
    states = []
    # no_grad and not inference_mode: in training, autograd has to save the states as inputs of the scalar mix.
    with torch.no_grad(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for stack in range(net.shape.directions):
            ordered_ids = reverse_sequences(ids, lengths + 2) if stack else ids
            layer_outputs = net.run_layers(ordered_ids, stack=stack)[0][1:]
            padded = [nn.functional.pad(layer.float(), (0, width - layer.shape[2])) for layer in layer_outputs]
            # Without the states at <s> and </s>.
            layers = torch.stack(padded, 2)[1:-1]
            # Backward states come in the order of reading, and are put back into that of the words.
            states.append(_reverse_layers(layers, lengths) if stack else layers)
    return torch.stack(states, 2)


def pad_sentences(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences as a tensor of word ids (time, rows), padded with 0.

    >>> pad_sentences([[5, 6], [7]]).T.tolist()
    [[5, 6], [7, 0]]
    """
    # 0 is <unk>; which word stands in the padding does not matter, since every pooling masks it.
    return nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows])


def serialize_sentence_network(network: SentenceNetwork) -> bytes:
    """Return the content of a weights file: weights and architecture in safetensors, which cannot hold code."""
    from safetensors.torch import save

    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    return save(weights, metadata=network.shape.to_metadata())


def read_sentence_network(folder: Path, device: str) -> SentenceNetwork:
    """Return the network in a classifier's folder, on a device, in evaluation mode."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    # On the meta device no memory is allocated and nothing initialised; the loaded weights are then assigned.
    with torch.device("meta"):
        network = build_sentence_network(read_sentence_shape(folder))
    try:
        network.load_state_dict(load_file(folder / WEIGHTS_FILE), assign=True)
    except (SafetensorError, OSError, RuntimeError) as error:
        raise ModelError(f"{folder / WEIGHTS_FILE}: its weights do not fit its shape: {error}") from error
    return network.to(device).eval()


def _build_input_layer(shape: SentenceNetworkShape) -> WordEmbedding | ScalarMix:
    return ScalarMix(shape.directions, shape.mixed) if shape.reads_states else WordEmbedding(shape.words, shape.width)


def _make_word_mask(values: Tensor, lengths: Tensor) -> Tensor:
    """Return which positions (time, rows) hold a word and not padding."""
    return torch.arange(len(values), device=values.device).unsqueeze(1) < lengths


def _reverse_layers(layers: Tensor, lengths: Tensor) -> Tensor:
    times = torch.arange(len(layers), device=layers.device).unsqueeze(1).expand(*layers.shape[:2])
    columns = torch.arange(layers.shape[1], device=layers.device)
    return layers[reverse_sequences(times, lengths), columns]
