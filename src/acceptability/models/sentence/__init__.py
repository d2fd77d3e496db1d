"""Sentence classifiers over words, trained by this package: CBOW and pooling networks, each in a folder.

``model.safetensors`` holds the weights and, in its metadata, the architecture. Beside it is ``vocabulary.json`` or, if
the network reads the hidden states of a language model, a copy of that model in the folder ``lm``, so that the folder
can be moved. ``network`` has the networks, ``word_vectors`` reads GloVe and similar files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models import recurrent
from acceptability.models.files import hash_files, is_importable, locked_cached_property
from acceptability.protocols import Model
from acceptability.text.words import UNKNOWN, VOCABULARY_FILE, Vocabulary, read_vocabulary
from acceptability.types import LabelScores, Query

if TYPE_CHECKING:
    from torch import Tensor

    from acceptability.models.recurrent.network import RecurrentNetwork
    from acceptability.models.sentence.network import SentenceNetwork

WEIGHTS_FILE = "model.safetensors"
LM_FOLDER = "lm"
"""The folder, inside a classifier's, of the language model whose hidden states it reads."""
FORMAT_PREFIX = "acceptability classifier "
FORMAT = f"{FORMAT_PREFIX}1"
NETWORKS = {"cbow": ("sum", "mean", "max"), "pooling": ("max",)}
"""The networks, and the ways in which each may pool the words of a sentence."""
ACTIVATIONS = ("tanh", "relu")
_WORD_BUDGETS = {"cpu": 4096, "cuda": 131_072}


@dataclass(frozen=True)
class SentenceNetworkShape:
    """The architecture of a network, as stored in the metadata of its weights file and read without loading these.

    Args:
        network: cbow or pooling.
        pool: How the vectors of a sentence's words become one: sum, mean or max (cbow), max (pooling).
        width: The dimension of a word vector, or of a layer of a language model.
        words: The size of the vocabulary; 0 for a network that reads the hidden states of a language model.
        mixed: The number of layers of a language model that are mixed; 0 for a network with word vectors.
        directions: 2 if that language model reads backwards too.
        layers: The number of layers of a pooling network's LSTM in each direction.
        hidden: The dimension of each of these layers.
        top: The dimension of the hidden layer between sentence vector and logit; 0 for none.
        activation: The activation function of that layer: tanh or relu.
        longest: The maximum number of words in a sentence.
    """

    network: str
    pool: str
    width: int
    words: int = 0
    mixed: int = 0
    directions: int = 1
    layers: int = 0
    hidden: int = 0
    top: int = 0
    activation: str = "tanh"
    longest: int = 512

    def __post_init__(self) -> None:
        if self.network not in NETWORKS:
            raise ModelError(f"no network {self.network!r}; there are {', '.join(NETWORKS)}")
        if self.pool not in NETWORKS[self.network]:
            raise ModelError(f"pool is {self.pool!r}; {self.network} has {' or '.join(NETWORKS[self.network])}")
        if self.activation not in ACTIVATIONS:
            raise ModelError(f"activation is {self.activation!r}; expected one of {', '.join(ACTIVATIONS)}")
        has_valid_inputs = (self.words > 0) != (self.mixed > 0) and self.directions in (1, 2)
        has_valid_layers = min(self.layers, self.hidden) >= (1 if self.network == "pooling" else 0)
        if not (has_valid_inputs and has_valid_layers and min(self.width, self.longest) >= 1 and self.top >= 0):
            raise ModelError(f"a classifier cannot have the sizes {asdict(self)}")

    @property
    def reads_states(self) -> bool:
        """Whether it reads the hidden states of a language model instead of word vectors."""
        return self.mixed > 0

    @property
    def input_width(self) -> int:
        """The dimension of the input at each word."""
        return self.width * self.directions

    @property
    def sentence_width(self) -> int:
        """The dimension of a sentence vector."""
        return 2 * self.hidden if self.network == "pooling" else self.input_width

    def to_metadata(self) -> dict[str, str]:
        """Return the metadata of the weights file."""
        # A single entry: safetensors writes several in an undefined order, and the file's hash is in signatures.
        return {FORMAT: json.dumps(asdict(self))}


def is_sentence_classifier(folder: Path) -> bool:
    """Return whether a folder holds a classifier trained by this package, in any version of the format."""
    path = folder / WEIGHTS_FILE
    return path.is_file() and any(name.startswith(FORMAT_PREFIX) for name in _read_metadata(path))


def read_sentence_shape(folder: Path) -> SentenceNetworkShape:
    """Return the architecture of the classifier in a folder; another version of the format is an error."""
    path = folder / WEIGHTS_FILE
    metadata = _read_metadata(path)
    if FORMAT not in metadata:
        stored_format = next((name for name in metadata if name.startswith(FORMAT_PREFIX)), "no such format")
        raise ModelError(
            f"{path} is in the format {stored_format!r}, and this version reads {FORMAT!r}: "
            "train the classifier again, or open it with the version of this package that its recipe.json names"
        )
    try:
        return SentenceNetworkShape(**json.loads(metadata[FORMAT]))
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path} has no valid description of its network: {error}") from error


def _read_metadata(path: Path) -> Mapping[str, str]:
    """Return the metadata of a safetensors file; empty for any other file."""
    # Read by hand, so that a folder is recognised without torch and safetensors installed: the file begins with the
    # length of its JSON header.
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            # In a file of another format the length is arbitrary, and could be larger than the memory.
            text = file.read(length) if length < path.stat().st_size else b"{}"
        header = json.loads(text)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
    except ValueError:
        return {}
    metadata = header.get("__metadata__") if isinstance(header, dict) else None
    return metadata if isinstance(metadata, dict) else {}


@dataclass(frozen=True)
class SentenceClassifierEncoding:
    """A query as word ids."""

    query: Query
    word_ids: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of words."""
        return len(self.word_ids)


@dataclass(frozen=True)
class SentenceClassifier(Model):
    """A sentence classifier in a folder.

    Args:
        lenient: Whether a text may consist of unknown words alone.
    """

    folder: Path
    device: str = "auto"
    lenient: bool = False

    packing = "size"

    @property
    def signature(self) -> str:
        """The folder's name and a hash of its files."""
        return f"classifier:{self.folder.resolve().name}@{hash_classifier_folder(self.folder)}"

    @locked_cached_property
    def shape(self) -> SentenceNetworkShape:
        """The architecture of its network."""
        return read_sentence_shape(self.folder)

    @locked_cached_property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary, which is that of the language model if it reads one."""
        return read_vocabulary(self.folder / LM_FOLDER if self.shape.reads_states else self.folder)

    @locked_cached_property
    def net(self) -> SentenceNetwork:
        """The network, loaded on first use."""
        from acceptability.models.hf.loading import configure_runtime, select_device
        from acceptability.models.sentence.network import read_sentence_network

        device = select_device(self.device)
        configure_runtime(device)
        # Otherwise, with a vocabulary from elsewhere, every word would silently get the vector of another.
        if self.shape.words not in (0, len(self.vocabulary)):
            raise ModelError(f"{self.folder}: {WEIGHTS_FILE} and {VOCABULARY_FILE} belong to different classifiers")
        return read_sentence_network(self.folder, device)

    @locked_cached_property
    def lm(self) -> RecurrentNetwork:
        """The language model whose hidden states it reads."""
        from acceptability.models.recurrent.network import read_recurrent_network
        from acceptability.models.sentence.network import get_mix_dimensions

        lm = read_recurrent_network(self.folder / LM_FOLDER / recurrent.WEIGHTS_FILE, str(self.torch_device))
        expected = (self.shape.mixed, self.shape.width, self.shape.directions)
        if (*get_mix_dimensions(lm.shape.layer_widths), lm.shape.directions) != expected:
            raise ModelError(
                f"{self.folder}: the language model in {LM_FOLDER}/ is not the one that {WEIGHTS_FILE} was trained with"
            )
        return lm

    @property
    def torch_device(self) -> object:
        """The device of the network."""
        return next(self.net.parameters()).device

    @property
    def budget(self) -> int:
        """The maximum number of words in a batch."""
        return _WORD_BUDGETS.get(next(self.net.parameters()).device.type, 8192)

    def encode(self, queries: Sequence[Query]) -> list[SentenceClassifierEncoding]:
        """Return the word ids of each query; a query with a target or a context is an error."""
        return [self._encode_query(index, query) for index, query in enumerate(queries)]

    def as_lenient(self) -> SentenceClassifier:
        """Return the same model, which also scores texts in which every word is unknown."""
        return replace(self, lenient=True)

    def run(self, batch: Sequence[SentenceClassifierEncoding]) -> list[LabelScores]:
        """Return the logits of both labels: 0 for unacceptable, and the network's logit for acceptable."""
        import torch

        from acceptability.models.hf.loading import convert_out_of_memory

        rows = [encoded.word_ids for encoded in batch]
        with (
            convert_out_of_memory(f"{self.folder.name}: a batch of {len(batch)} texts"),
            torch.inference_mode(),
            # TF32 rounds the factors of a product to 10 bits, and results would depend on the kind of GPU.
            torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
        ):
            lengths = torch.tensor([len(row) for row in rows], device=str(self.torch_device))
            logits: list[float] = self.net(self.prepare_inputs(rows), lengths).float().cpu().tolist()
        # The network has one logit; as a pair, it is the log-odds like those of other classifiers.
        return [LabelScores(encoded.query.text, (0.0, logit)) for encoded, logit in zip(batch, logits, strict=True)]

    def prepare_inputs(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return the network's input for some sentences: padded word ids, or a language model's hidden states."""
        from acceptability.models.sentence.network import compute_lm_states, pad_sentences

        return (
            compute_lm_states(self.lm, rows)
            if self.shape.reads_states
            else pad_sentences(rows).to(str(self.torch_device))
        )

    def _encode_query(self, index: int, query: Query) -> SentenceClassifierEncoding:
        if query.target or query.context:
            raise QueryError(index, "a classifier judges whole sentences, not regions or continuations")
        # The spans of the words are not needed: a classifier scores no single token.
        word_ids = self.vocabulary.to_ids(self.vocabulary.tokenize(query.text)[0])
        if not word_ids:
            raise QueryError(index, "there is no word in it")
        if len(word_ids) > self.shape.longest:
            raise QueryError(
                index, f"it has {len(word_ids)} words, and the classifier reads at most {self.shape.longest}"
            )
        # Without any known word, all sentences of one length would get the same score. A language model has at least
        # been trained on the contexts of <unk>.
        if not (self.lenient or self.shape.reads_states) and all(word_id == UNKNOWN for word_id in word_ids):
            raise QueryError(index, f"the classifier {self.folder.name} knows none of its words")
        return SentenceClassifierEncoding(query, tuple(word_ids))


def open_sentence_classifier(folder: Path, *, device: str = "auto") -> SentenceClassifier:
    """Return the classifier in a folder."""
    if not (is_importable("torch") and is_importable("safetensors")):
        raise MissingExtra(f"classifier:{folder}", "torch and safetensors", "'acceptability[neural]'")
    # Before any weights are loaded, so that an incomplete copy of a folder is reported when a run begins.
    for path in _list_files(folder):
        if not path.is_file():
            raise ModelError(f"the classifier {folder} is incomplete: there is no {path.relative_to(folder)}")
    return SentenceClassifier(folder, device)


def hash_classifier_folder(folder: Path) -> str:
    """Return a short hash of all files that determine a classifier's output."""
    return hash_files(_list_files(folder))


def _list_files(folder: Path) -> list[Path]:
    if read_sentence_shape(folder).reads_states:
        return [
            folder / WEIGHTS_FILE,
            folder / LM_FOLDER / recurrent.WEIGHTS_FILE,
            folder / LM_FOLDER / VOCABULARY_FILE,
        ]
    return [folder / WEIGHTS_FILE, folder / VOCABULARY_FILE]
