"""Recurrent language models of words that were trained here: Elman's network, LSTM and QRNN, in a folder.

A sentence begins after ``<s>``, with nothing in mind from the one before; ``eos=True`` scores ``</s>`` too. The folder
says itself how text is cut into words. A word that the model does not know is read as ``<unk>``, and gets the
probability of that; ``unknown='uniform'`` gives it 1 / vocabulary, and a number that log-probability. A model whose
probabilities do not sum to 1 is opened with ``improper=True`` only, which then stands in the signature.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MissingExtra, ModelError, QueryError
from acceptability.models import recurrent_shape, vocabulary
from acceptability.models.files import checked_bool, files_hash, is_importable
from acceptability.models.once import once
from acceptability.models.vocabulary import END, START, UNKNOWN, Vocabulary, read_vocabulary
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

if TYPE_CHECKING:
    from torch import Tensor

    from acceptability.models.recurrent_networks import Network

Floats = NDArray[np.float32]
_BUDGETS = {"cpu": 4096, "cuda": 262_144}
_AT_ONCE = 256
_NUMBERS = 1 << 27
"""How many logits are held at once."""


@dataclass(frozen=True)
class Words:
    """The words of a query, their numbers, and which of them are scored.

    Args:
        strange: Which of the scored words have a log-probability of their own, because they are not known.
    """

    query: Query
    words: tuple[str, ...]
    offsets: tuple[Span, ...]
    numbers: tuple[int, ...]
    scored: tuple[int, ...]
    strange: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        """How many words the network reads: ``<s>`` and all of them."""
        return len(self.words) + 1


@dataclass(frozen=True)
class Recurrent:
    """A recurrent model in a folder.

    Args:
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
        """The folder's name, the content of its files, which say how text becomes words, and what was asked of it."""
        options: dict[str, object] = {"eos": self.eos, "unknown": self.unknown}
        options |= {"improper": True} if self.improper else {}
        return write(f"recurrent:{self.folder.name}@{_hash(self.folder)}", options)

    @once
    def vocabulary(self) -> Vocabulary:
        """Its words."""
        return read_vocabulary(self.folder)

    @property
    def units(self) -> str:
        """The name of the rule that cuts text into words."""
        return self.vocabulary.rule

    @once
    def net(self) -> Network:
        """The network, read on first use."""
        from acceptability.models.huggingface import _get_ready, _placed
        from acceptability.models.recurrent_networks import read_network

        place = _placed(self.device)
        _get_ready(place)
        net = read_network(self.folder / recurrent_shape.FILE, place)
        if net.shape.words != len(self.vocabulary):
            raise ModelError(f"{self.folder}: {recurrent_shape.FILE} and {vocabulary.FILE} are not of the same model")
        return net

    @property
    def budget(self) -> int:
        """How many words should go through the network at once."""
        return _BUDGETS.get(self.net.table.device.type, 8192)

    def is_unknown(self, token: str) -> bool:
        """Tell whether a token, as the model spells it, is not in the vocabulary."""
        return token not in self.vocabulary.index

    def encode(self, queries: Sequence[Query]) -> list[Words]:
        """Return the words of each query; one without a known word is an error."""
        return [self._words(query, index) for index, query in enumerate(queries)]

    def run(self, batch: Sequence[Words]) -> list[TokenScores]:
        """Return the log-probability of every scored word after all those before it."""
        from acceptability.models.huggingface import enough_memory

        with enough_memory(f"{self.folder.name}: a batch of {len(batch)} texts"):
            found = self._logprobs([each.numbers for each in batch])
        return [self._told(each, row) for each, row in zip(batch, found, strict=True)]

    def _logprobs(self, rows: Sequence[Sequence[int]]) -> list[Floats]:
        """Return the log-probability of each word of each row, and of the end after them."""
        import torch

        ids = framed(rows).to(self.net.table.device)
        inside = (torch.arange(len(ids) - 1, device=ids.device).unsqueeze(1) < _lengths(rows, ids)).T
        with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
            said, _ = self.net.states(ids[:-1])
            hidden, targets = said[-1].transpose(0, 1)[inside], ids[1:].T[inside]
            at_once = max(_NUMBERS // self.net.shape.words, 1)
            parts = [
                self.net.output(some, words, self.net.table)
                for some, words in zip(torch.split(hidden, at_once), torch.split(targets, at_once), strict=True)
            ]
        flat = torch.cat(parts).cpu().numpy()
        return np.split(flat, np.cumsum([len(row) + 1 for row in rows])[:-1])

    def _told(self, each: Words, said: Floats) -> TokenScores:
        ends = self.eos and not each.query.target
        places = [*each.scored, *([len(each.words)] if ends else [])]
        if self._unknown_lp is not None:
            said = said.copy()
            said[list(each.strange)] = self._unknown_lp
        tokens = (*(each.words[place] for place in each.scored), *(["</s>"] if ends else []))
        offsets = (*(each.offsets[place] for place in each.scored), *([(len(each.query.text),) * 2] if ends else []))
        return TokenScores(each.query.text, tokens, offsets, said[places])

    def _words(self, query: Query, index: int) -> Words:
        words, spans = self.vocabulary.cut(query.full)
        if not words:
            raise QueryError(index, "there is no word in it")
        numbers = self.vocabulary.numbers(words)
        if not (self.lenient or any(number != UNKNOWN for number in numbers)):
            raise QueryError(index, f"the model {self.folder.name} knows none of its words")
        start, end = (query.start + edge for edge in query.target or (0, len(query.text)))
        scored = tuple(place for place, span in enumerate(spans) if span[0] < end and span[1] > start)
        if not scored:
            raise QueryError(index, "there is no word in its target")
        offsets = tuple((max(a - query.start, 0), max(b - query.start, 0)) for a, b in spans)
        strange = tuple(place for place in scored if numbers[place] == UNKNOWN)
        return Words(query, tuple(words), offsets, tuple(numbers), scored, strange)

    @once
    def _unknown_lp(self) -> float | None:
        """What an unknown word gets; None where <unk> stands in for it."""
        if self.unknown == "<unk>":
            return None
        return -math.log(len(self.vocabulary)) if self.unknown == "uniform" else float(self.unknown)


def framed(rows: Sequence[Sequence[int]]) -> Tensor:
    """Return sentences with their edges, (time, rows), each filled up with ``</s>``.

    >>> framed([[5, 6], [7]]).T.tolist()
    [[1, 5, 6, 2], [1, 7, 2, 2]]
    """
    import torch

    table = np.full((max(map(len, rows)) + 2, len(rows)), END, np.int64)
    table[0] = START
    for number, row in enumerate(rows):
        table[1 : len(row) + 1, number] = row
    return torch.from_numpy(table)


def states(model: Recurrent, sentences: Sequence[str]) -> list[dict[str, list[Floats]]]:
    """Return what a model has in mind at each word of each sentence, as contextual word vectors want it.

    For each sentence ``forwards`` and, if the model was trained with ``both_directions=True``, ``backwards``: a list
    that begins with the words' own vectors and goes on with each layer from the lowest, each (words, numbers). At a
    word, the network has read it and all before it; backwards, it and all after it.
    """
    rows = [each.numbers for each in model.encode([Query(text) for text in sentences])]
    found: list[dict[str, list[Floats]]] = []
    for start in range(0, len(rows), _AT_ONCE):
        found += _states(model.net, rows[start : start + _AT_ONCE])
    return found


def _states(net: Network, rows: Sequence[Sequence[int]]) -> list[dict[str, list[Floats]]]:
    import torch

    from acceptability.models.recurrent_networks import turned

    ids = framed(rows).to(net.table.device)
    found: list[dict[str, list[Floats]]] = [{} for _ in rows]
    with torch.inference_mode(), torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        for stack, direction in enumerate(("forwards", "backwards")[: net.shape.directions]):
            read = turned(ids, _lengths(rows, ids) + 1) if stack else ids
            layers = [layer.float().cpu().numpy() for layer in net.states(read, stack=stack)[0]]
            for number, row in enumerate(rows):
                order = slice(len(row), 0, -1) if stack else slice(1, len(row) + 1)
                found[number][direction] = [layer[order, number].copy() for layer in layers]
    return found


def _lengths(rows: Sequence[Sequence[int]], beside: Tensor) -> Any:
    """Return how many words each row has with one edge."""
    import torch

    return torch.tensor([len(row) + 1 for row in rows], device=beside.device)


def open_model(
    place: str, *, eos: bool = False, unknown: str | float = "<unk>", improper: bool = False, device: str = "auto"
) -> Recurrent:
    """Return the recurrent model in a folder; ``FOLDER@HASH``, as a signature writes it, must have that content."""
    if not place:
        raise ModelError("recurrent: which model? Write recurrent:FOLDER")
    if not (is_importable("torch") and is_importable("safetensors")):
        raise MissingExtra(f"recurrent:{place}", "torch and safetensors", "'acceptability[neural]'")
    folder = _at_version(Path(place).expanduser())
    for name in (recurrent_shape.FILE, vocabulary.FILE):
        if not (folder / name).is_file():
            raise ModelError(f"the folder {folder} has no {name}: it is no recurrent model that was trained here")
    if checked_bool("improper", improper) != recurrent_shape.read_shape(folder / recurrent_shape.FILE).is_improper:
        raise ModelError(_proper(folder) if improper else _improper(folder))
    return Recurrent(folder, checked_bool("eos", eos), _policy(unknown), improper, device)


def _proper(folder: Path) -> str:
    return f"recurrent:{folder} has probabilities that sum to 1; leave improper=True away"


def _improper(folder: Path) -> str:
    return (
        f"recurrent:{folder} was trained with output='tas_double': its probabilities sum to more than 1, and it has no "
        "perplexity. To score with it all the same, write improper=True."
    )


def _policy(unknown: object) -> str | float:
    if isinstance(unknown, (int, float)) and not isinstance(unknown, bool) and -1e30 < unknown <= 0:
        return float(unknown)
    if unknown in ("uniform", "<unk>"):
        return str(unknown)
    raise ModelError(f"recurrent: unknown is {unknown!r}; expected '<unk>', 'uniform' or a log-probability, at most 0")


def _at_version(folder: Path) -> Path:
    bare, at, version = str(folder).rpartition("@")
    if folder.is_dir() or not at or not Path(bare).is_dir():
        return folder
    if _hash(Path(bare)) != version:
        raise ModelError(f"{bare} has the content hash {_hash(Path(bare))}, not {version}: it is another model")
    return Path(bare)


def _hash(folder: Path) -> str:
    return files_hash([folder / recurrent_shape.FILE, folder / vocabulary.FILE])
