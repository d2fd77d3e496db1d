"""Recurrent language models of words, trained by this package: Elman networks, LSTMs and QRNNs, each in a folder.

Every sentence is scored after ``<s>``, from an empty state; ``eos=True`` scores ``</s>`` too. The folder's vocabulary
file defines how text is split into words. A word outside the vocabulary is read as ``<unk>``; the option ``unknown``
says what it gets (see ``models/unknown_words.py``). A model whose probabilities do not sum to 1 opens only with
``improper=True``, which is then part of the signature.

``network`` has the layers and the forward pass, ``output_layers`` turns hidden states into log-probabilities.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models.files import (
    hash_files,
    is_importable,
    locked_cached_property,
    resolve_folder_version,
    validate_bool,
)
from acceptability.models.unknown_words import (
    DEFAULT_POLICY,
    SpellingModel,
    add_spelling,
    fit_spelling,
    refuse_unknown_words,
    validate_unknown_policy,
)
from acceptability.protocols import Model, NextTokenModel
from acceptability.specs import format_spec
from acceptability.text.words import (
    END,
    SPECIAL_WORDS,
    START,
    UNKNOWN,
    VOCABULARY_FILE,
    Vocabulary,
    read_vocabulary,
)
from acceptability.types import Query, Span, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from acceptability.models.recurrent.network import RecurrentNetwork

WEIGHTS_FILE = "model.safetensors"
FORMAT = "acceptability recurrent 1"
CELLS = ("rnn", "lstm", "qrnn")
OUTPUTS = ("softmax", "tied_softmax", "classes", "adaptive", "tas", "tas_double")
TIED_OUTPUTS = ("tied_softmax", "tas", "tas_double")
"""The output layers whose weights are the word embeddings."""

Floats = NDArray[np.float32]
_WORD_BUDGETS = {"cpu": 4096, "cuda": 262_144}
_SENTENCES_PER_BATCH = 256
# With a large vocabulary, the logits of a whole batch would need many times the memory of all else: 2**27 float32 are
# 512 MB.
_MAX_LOGITS = 1 << 27


@dataclass(frozen=True)
class RecurrentShape:
    """The architecture of a network, as stored in the metadata of its weights file and read without loading these.

    Args:
        cell: rnn, lstm or qrnn.
        words: The size of the vocabulary.
        embedding: The dimension of a word embedding.
        hidden: The dimension of a hidden layer.
        layers: The number of hidden layers.
        output: The output layer, one of ``OUTPUTS``.
        edges: The first word of each group of the output layer, and the size of the vocabulary last.
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
        is_rising = all(first < second for first, second in pairwise(self.edges))
        if len(self.edges) < 2 or self.edges[0] != 0 or self.edges[-1] != self.words or not is_rising:
            raise ModelError(
                f"edges are {self.edges}; expected rising numbers from 0 to the vocabulary's size, {self.words}"
            )

    @property
    def layer_widths(self) -> tuple[int, ...]:
        """The dimension of the first layer's input, and of each layer's output.

        The last layer of a tied output has the dimension of the word embeddings.
        """
        last = self.embedding if self.output in TIED_OUTPUTS else self.hidden
        return (self.embedding, *[self.hidden] * (self.layers - 1), last)

    @property
    def is_improper(self) -> bool:
        """Whether its probabilities sum to more than 1."""
        return self.output == "tas_double" and len(self.edges) > 2

    def to_metadata(self) -> dict[str, str]:
        """Return the metadata of the weights file."""
        # A single entry: safetensors writes several in an undefined order, and the file's hash is in signatures.
        return {FORMAT: json.dumps(asdict(self))}


def read_recurrent_shape(path: Path) -> RecurrentShape:
    """Return the architecture of the network in a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as file:
            metadata: Mapping[str, str] = file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read as a recurrent model: {error}") from error
    if FORMAT not in metadata:
        raise ModelError(
            f"{path} is not in the format {FORMAT!r}: it is no recurrent model that was trained by this package"
        )
    try:
        fields = json.loads(metadata[FORMAT])
        return RecurrentShape(**{**fields, "edges": tuple(fields["edges"])})
    except (KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{path} has no valid description of its network: {error}") from error


@dataclass(frozen=True)
class RecurrentEncoding:
    """The words of a query, their ids, and which of them are scored.

    Args:
        offsets: The character span of each word in the query's text.
        unknown: The indices among the scored positions of the words that are not in the vocabulary.
    """

    query: Query
    words: tuple[str, ...]
    offsets: tuple[Span, ...]
    word_ids: tuple[int, ...]
    scored_positions: tuple[int, ...]
    unknown: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """The number of words that the network reads: ``<s>`` and all others."""
        return len(self.words) + 1


@dataclass(frozen=True)
class Recurrent(Model):
    """A recurrent model in a folder.

    Args:
        eos: Whether ``</s>`` is scored.
        unknown: What an unknown word gets, see ``unknown_words``.
        improper: Whether the probabilities do not sum to 1.
        lenient: Whether a text may consist of unknown words alone.
    """

    folder: Path
    eos: bool
    unknown: str | float
    improper: bool = False
    device: str = "auto"
    lenient: bool = False

    packing = "size"

    @property
    def signature(self) -> str:
        """The folder's name, a hash of its files, and the options that change a score."""
        options: dict[str, object] = {"eos": self.eos, "unknown": self.unknown}
        options |= {"improper": True} if self.improper else {}
        return format_spec(f"recurrent:{self.folder.name}@{_hash_folder(self.folder)}", options)

    @locked_cached_property
    def vocabulary(self) -> Vocabulary:
        """The words, and how text is split into them."""
        return read_vocabulary(self.folder)

    @property
    def word_rule(self) -> str:
        """The name of the rule that splits text into words."""
        return self.vocabulary.rule

    @locked_cached_property
    def net(self) -> RecurrentNetwork:
        """The network, loaded on first use."""
        from acceptability.models.hf.loading import configure_runtime, select_device
        from acceptability.models.recurrent.network import read_recurrent_network

        device = select_device(self.device)
        configure_runtime(device)
        net = read_recurrent_network(self.folder / WEIGHTS_FILE, device)
        if net.shape.words != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {WEIGHTS_FILE} and {VOCABULARY_FILE} belong to different models")
        return net

    @property
    def budget(self) -> int:
        """The maximum number of words in a batch."""
        return _WORD_BUDGETS.get(self.net.table.device.type, 8192)

    def is_unknown(self, token: str) -> bool:
        """Return whether a token, as the model spells it, is outside the vocabulary."""
        return token not in self.vocabulary.index

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score."""
        return self.unknown == "omit"

    @locked_cached_property
    def spelling(self) -> SpellingModel:
        """The model of the spelling of unknown words, fitted on first use."""
        return fit_spelling(tuple(self.vocabulary.words[len(SPECIAL_WORDS) :]))

    def encode(self, queries: Sequence[Query]) -> list[RecurrentEncoding]:
        """Return the words of each query; a query without a known word is an error."""
        return [self._encode_query(query, index) for index, query in enumerate(queries)]

    def as_lenient(self) -> Recurrent:
        """Return the same model, which also scores texts in which every word is unknown."""
        return replace(self, lenient=True)

    def run(self, batch: Sequence[RecurrentEncoding]) -> list[TokenScores]:
        """Return the log-probability of every scored word, given all words before it."""
        from acceptability.models.hf.loading import convert_out_of_memory

        with convert_out_of_memory(f"{self.folder.name}: a batch of {len(batch)} texts"):
            logprobs = self._compute_logprobs([encoded.word_ids for encoded in batch])
        return [self.build_token_scores(encoded, row) for encoded, row in zip(batch, logprobs, strict=True)]

    def _compute_logprobs(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return, for each row, the log-probabilities of its words and of ``</s>`` after them."""
        import torch

        ids = pad_with_boundaries(rows).to(self.net.table.device)
        # Transposed, so that the selected states of a sentence are next to each other and can be cut apart again.
        word_mask = (torch.arange(len(ids) - 1, device=ids.device).unsqueeze(1) < _compute_lengths(rows, ids)).T
        # TF32 rounds the factors of a product to 10 bits, and results would depend on the kind of GPU.
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            layer_outputs, _ = self.net.run_layers(ids[:-1])
            hidden, targets = layer_outputs[-1].transpose(0, 1)[word_mask], ids[1:].T[word_mask]
            rows_per_chunk = max(_MAX_LOGITS // self.net.shape.words, 1)
            parts = [
                self.net.output(hidden_chunk, target_chunk, self.net.table)
                for hidden_chunk, target_chunk in zip(
                    torch.split(hidden, rows_per_chunk), torch.split(targets, rows_per_chunk), strict=True
                )
            ]
        flat = torch.cat(parts).cpu().numpy()
        return np.split(flat, np.cumsum([len(row) + 1 for row in rows])[:-1])

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also predicts: the distribution before each word, and after it."""
        from acceptability.models.predictions.recurrent_predictor import RecurrentPredictor, check_proper

        check_proper(self)
        return RecurrentPredictor(self, top)

    @property
    def next_tokens(self) -> NextTokenModel:
        """The distribution over the word after a text."""
        from acceptability.models.predictions.recurrent_predictor import RecurrentNextWords, check_proper

        check_proper(self)
        return RecurrentNextWords(self)

    def compute_last_states(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the states of the last layer from which each word is predicted, and the end: row after row."""
        import torch

        ids = pad_with_boundaries(rows).to(self.net.table.device)
        word_mask = (torch.arange(len(ids) - 1, device=ids.device).unsqueeze(1) < _compute_lengths(rows, ids)).T
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            layer_outputs, _ = self.net.run_layers(ids[:-1])
            return layer_outputs[-1].transpose(0, 1)[word_mask]

    def build_token_scores(self, encoded: RecurrentEncoding, logprobs: Floats) -> TokenScores:
        """Return the scores of a query, from the log-probabilities of its words and of the end."""
        scores_eos = self.eos and not encoded.query.target
        positions = [*encoded.scored_positions, *([len(encoded.words)] if scores_eos else [])]
        tokens = (
            *(encoded.words[position] for position in encoded.scored_positions),
            *(["</s>"] if scores_eos else []),
        )
        offsets = (
            *(encoded.offsets[position] for position in encoded.scored_positions),
            *([(len(encoded.query.text),) * 2] if scores_eos else []),
        )
        token_logprobs = logprobs[positions]
        added: tuple[float, ...] = ()
        if self._unknown_logprob is not None:
            token_logprobs[list(encoded.unknown)] = self._unknown_logprob
        elif self.unknown == "spelling" and encoded.unknown:
            added = tuple(add_spelling(token_logprobs, tokens, encoded.unknown, self.spelling).tolist())
        return TokenScores(encoded.query.text, tokens, offsets, token_logprobs, encoded.unknown, added)

    def _encode_query(self, query: Query, index: int) -> RecurrentEncoding:
        words, spans = self.vocabulary.tokenize(query.full_text)
        if not words:
            raise QueryError(index, "there is no word in it")
        word_ids = self.vocabulary.to_ids(words)
        if not (self.lenient or any(word_id != UNKNOWN for word_id in word_ids)):
            raise QueryError(index, f"the model {self.folder.name} knows none of its words")
        start, end = (query.text_start + offset for offset in query.target or (0, len(query.text)))
        scored_positions = tuple(position for position, span in enumerate(spans) if span[0] < end and span[1] > start)
        if not scored_positions:
            raise QueryError(index, "there is no word in its target")
        # Words of the context get empty or cut spans; they are never among the scored positions.
        offsets = tuple((max(a - query.text_start, 0), max(b - query.text_start, 0)) for a, b in spans)
        unknown = tuple(number for number, position in enumerate(scored_positions) if word_ids[position] == UNKNOWN)
        if self.unknown == "refuse":
            refuse_unknown_words(self.folder.name, [words[scored_positions[number]] for number in unknown], index)
        return RecurrentEncoding(query, tuple(words), offsets, tuple(word_ids), scored_positions, unknown)

    @locked_cached_property
    def _unknown_logprob(self) -> float | None:
        """The fixed log-probability of an unknown word; None if it depends on that of <unk>."""
        if isinstance(self.unknown, float):
            return self.unknown
        return -math.log(len(self.vocabulary)) if self.unknown == "uniform" else None


def pad_with_boundaries(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences between ``<s>`` and ``</s>`` as a tensor (time, rows), padded with ``</s>``.

    >>> pad_with_boundaries([[5, 6], [7]]).T.tolist()
    [[1, 5, 6, 2], [1, 7, 2, 2]]
    """
    import torch

    # Padding comes after the words: a network that reads forwards has scored them before it reads any.
    padded = np.full((max(map(len, rows)) + 2, len(rows)), END, np.int64)
    padded[0] = START
    for column, row in enumerate(rows):
        padded[1 : len(row) + 1, column] = row
    return torch.from_numpy(padded)


def compute_hidden_states(model: Recurrent, sentences: Sequence[str]) -> list[dict[str, list[Floats]]]:
    """Return a model's hidden states at each word of each sentence, for use as contextual word vectors.

    Each sentence has an entry ``forwards`` and, if the model was trained with ``bidirectional=True``, ``backwards``:
    a list of arrays (words, dimensions), the word embeddings first, then each layer from the lowest. A forward state
    has seen the word and all before it; a backward state, the word and all after it.
    """
    rows = [encoded.word_ids for encoded in model.encode([Query(text) for text in sentences])]
    hidden_states: list[dict[str, list[Floats]]] = []
    for start in range(0, len(rows), _SENTENCES_PER_BATCH):
        hidden_states += _compute_batch_states(model.net, rows[start : start + _SENTENCES_PER_BATCH])
    return hidden_states


def _compute_batch_states(net: RecurrentNetwork, rows: Sequence[Sequence[int]]) -> list[dict[str, list[Floats]]]:
    import torch

    from acceptability.models.recurrent.network import reverse_sequences

    ids = pad_with_boundaries(rows).to(net.table.device)
    hidden_states: list[dict[str, list[Floats]]] = [{} for _ in rows]
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for stack, direction in enumerate(("forwards", "backwards")[: net.shape.directions]):
            # Only the words of each row are reversed: padding must stay behind them, or the state would pass through
            # it.
            ordered_ids = reverse_sequences(ids, _compute_lengths(rows, ids) + 1) if stack else ids
            layers = [layer.float().cpu().numpy() for layer in net.run_layers(ordered_ids, stack=stack)[0]]
            for column, row in enumerate(rows):
                order = slice(len(row), 0, -1) if stack else slice(1, len(row) + 1)
                # A copy, since a view would keep the states of the whole batch in memory.
                hidden_states[column][direction] = [layer[order, column].copy() for layer in layers]
    return hidden_states


def _compute_lengths(rows: Sequence[Sequence[int]], like: Tensor) -> Any:
    """Return the number of words in each row, with ``<s>``, on the device of another tensor."""
    import torch

    return torch.tensor([len(row) + 1 for row in rows], device=like.device)


def open_model(
    location: str,
    *,
    eos: bool = False,
    unknown: str | float = DEFAULT_POLICY,
    improper: bool = False,
    device: str = "auto",
) -> Recurrent:
    """Return the recurrent model in a folder.

    Args:
        location: The folder, or ``FOLDER@HASH`` as in a signature; its content must then have that hash.
        eos: Whether ``</s>`` is scored.
        unknown: What an unknown word gets: "spelling", "<unk>", "uniform", a log-probability, "refuse" or "omit".
        improper: Must be True for a model whose probabilities do not sum to 1.
        device: "auto", "cpu", "cuda", …
    """
    if not location:
        raise ModelError("recurrent: which model? Write recurrent:FOLDER")
    if not (is_importable("torch") and is_importable("safetensors")):
        raise MissingExtra(f"recurrent:{location}", "torch and safetensors", "'acceptability[neural]'")
    folder = resolve_folder_version(Path(location).expanduser(), (WEIGHTS_FILE, VOCABULARY_FILE))
    for name in (WEIGHTS_FILE, VOCABULARY_FILE):
        if not (folder / name).is_file():
            raise ModelError(
                f"the folder {folder} has no {name}: it is no recurrent model that was trained by this package"
            )
    # Also the other way round: the option is in the signature, and one model must not have two.
    if validate_bool("improper", improper) != read_recurrent_shape(folder / WEIGHTS_FILE).is_improper:
        raise ModelError(_proper_model_message(folder) if improper else _improper_model_message(folder))
    return Recurrent(folder, validate_bool("eos", eos), validate_unknown_policy(unknown), improper, device)


def _proper_model_message(folder: Path) -> str:
    return f"recurrent:{folder} has probabilities that sum to 1; remove improper=True"


def _improper_model_message(folder: Path) -> str:
    return (
        f"recurrent:{folder} was trained with output='tas_double': its probabilities sum to more than 1, and it has no "
        "perplexity. To score with it nevertheless, write improper=True."
    )


def _hash_folder(folder: Path) -> str:
    return hash_files([folder / WEIGHTS_FILE, folder / VOCABULARY_FILE])
