"""Classifiers that were taught here, in a folder: CBOW and pooling networks over words.

``model.safetensors`` holds the weights and says what shape they have. Beside it lies ``vocabulary.json``, or, where the
network reads the states of a language model, this model in the folder ``lm``: the whole can be moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models import recurrent_shape, vocabulary
from acceptability.models.files import files_hash, is_importable
from acceptability.models.once import once
from acceptability.models.sentence_shape import FILE, LM, Shape, read_shape
from acceptability.models.vocabulary import UNKNOWN, Vocabulary, read_vocabulary
from acceptability.types import LabelScores, Query

if TYPE_CHECKING:
    from torch import Tensor

    from acceptability.models.recurrent_networks import Network
    from acceptability.models.sentence_networks import SentenceNetwork

_BUDGETS = {"cpu": 4096, "cuda": 131_072}


@dataclass(frozen=True)
class Words:
    """A query as the numbers of its words."""

    query: Query
    numbers: tuple[int, ...]

    @property
    def size(self) -> int:
        """How many words it has."""
        return len(self.numbers)


@dataclass(frozen=True)
class SentenceClassifier:
    """A classifier in a folder.

    Args:
        lenient: Whether a text may consist of unknown words alone.
    """

    folder: Path
    device: str = "auto"
    lenient: bool = False

    packing = "size"

    @property
    def signature(self) -> str:
        """The folder's name and the content of its files."""
        return f"classifier:{self.folder.resolve().name}@{folder_hash(self.folder)}"

    @once
    def shape(self) -> Shape:
        """The shape of its network."""
        return read_shape(self.folder)

    @once
    def vocabulary(self) -> Vocabulary:
        """The words that it, or the language model that it reads, knows."""
        return read_vocabulary(self.folder / LM if self.shape.reads_states else self.folder)

    @once
    def net(self) -> SentenceNetwork:
        """The network, read on first use."""
        from acceptability.models.huggingface import _get_ready, _placed
        from acceptability.models.sentence_networks import read_network

        place = _placed(self.device)
        _get_ready(place)
        if self.shape.words not in (0, len(self.vocabulary)):
            raise ModelError(f"{self.folder}: {FILE} and {vocabulary.FILE} are not of the same classifier")
        return read_network(self.folder, place)

    @once
    def lm(self) -> Network:
        """The language model whose states it reads."""
        from acceptability.models.recurrent_networks import read_network
        from acceptability.models.sentence_networks import mixed_layers

        lm = read_network(self.folder / LM / recurrent_shape.FILE, str(self.place))
        reads = (self.shape.mixed, self.shape.width, self.shape.directions)
        if (*mixed_layers(lm.shape.widths), lm.shape.directions) != reads:
            raise ModelError(f"{self.folder}: the language model in {LM}/ is not the one that {FILE} was taught with")
        return lm

    @property
    def place(self) -> object:
        """The device where it computes."""
        return next(self.net.parameters()).device

    @property
    def budget(self) -> int:
        """How many words should go through the network at once."""
        return _BUDGETS.get(next(self.net.parameters()).device.type, 8192)

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query; a classifier cannot be asked about a part or a context."""
        return [self._words(index, query) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[LabelScores]:
        """Return the logits of both labels: 0 for unacceptable, and how far acceptable lies above it."""
        import torch

        from acceptability.models.huggingface import enough_memory

        rows = [each.numbers for each in batch]
        with (
            enough_memory(f"{self.folder.name}: a batch of {len(batch)} texts"),
            torch.inference_mode(),
            torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
        ):
            lengths = torch.tensor([len(row) for row in rows], device=str(self.place))
            logits: list[float] = self.net(self.read(rows), lengths).float().cpu().tolist()
        return [LabelScores(each.query.text, (0.0, logit)) for each, logit in zip(batch, logits, strict=True)]

    def read(self, rows: Sequence[Sequence[int]]) -> Tensor:
        """Return what the network takes of sentences: the numbers of their words, or a language model's states."""
        from acceptability.models.sentence_networks import lm_states, stacked

        return lm_states(self.lm, rows) if self.shape.reads_states else stacked(rows).to(str(self.place))

    def _words(self, index: int, query: Query) -> Words:
        if query.target or query.context:
            raise QueryError(index, "a classifier judges whole sentences, not regions or continuations")
        numbers = self.vocabulary.numbers(self.vocabulary.cut(query.text)[0])
        if not numbers:
            raise QueryError(index, "there is no word in it")
        if len(numbers) > self.shape.longest:
            raise QueryError(
                index, f"it has {len(numbers)} words, and the classifier reads at most {self.shape.longest}"
            )
        # A language model has learnt what surrounds unknown words; a table of vectors has nothing to say of them alone.
        if not (self.lenient or self.shape.reads_states) and all(number == UNKNOWN for number in numbers):
            raise QueryError(index, f"the classifier {self.folder.name} knows none of its words")
        return Words(query, tuple(numbers))


def open_folder(folder: Path, *, device: str = "auto") -> SentenceClassifier:
    """Return the classifier of a folder that was made here."""
    if not (is_importable("torch") and is_importable("safetensors")):
        raise MissingExtra(f"classifier:{folder}", "torch and safetensors", "'acceptability[neural]'")
    for path in _files(folder):
        if not path.is_file():
            raise ModelError(f"the classifier {folder} is not whole: there is no {path.relative_to(folder)}")
    return SentenceClassifier(folder, device)


def folder_hash(folder: Path) -> str:
    """Return a short hash of all that decides what a classifier says."""
    return files_hash(_files(folder))


def _files(folder: Path) -> list[Path]:
    if read_shape(folder).reads_states:
        return [folder / FILE, folder / LM / recurrent_shape.FILE, folder / LM / vocabulary.FILE]
    return [folder / FILE, folder / vocabulary.FILE]
