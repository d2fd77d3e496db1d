"""The vectors of a suite's sentences: in a temporary file, layer by layer, so that one layer is in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError, shorten
from acceptability.probing.bags import BagOfVectors, BagOfWords
from acceptability.scoring import Progress

BAG_OF_WORDS = "bag-of-words"
_GLOVE = "glove:"


class Encoder(Protocol):
    """What turns a text into a vector for each of its layers."""

    @property
    def signature(self) -> str:
        """All that can change the vectors."""
        ...

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of its layers."""
        ...

    def vectors(
        self, texts: Sequence[str], layers: Sequence[int]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
        """Yield the places of some texts, and their vectors: (layers, texts, numbers)."""
        ...


def load_encoder(name: str, pooling: str = "auto") -> Encoder:
    """Return the encoder of a name: "bag-of-words", "glove:FILE", or a model such as "masked:FOLDER"."""
    if name == BAG_OF_WORDS:
        return BagOfWords()
    if name.startswith(_GLOVE):
        return BagOfVectors(Path(name.removeprefix(_GLOVE)).expanduser())
    from acceptability.models.encoder import open_encoder

    return open_encoder(name, pooling)


def chosen_layers(encoder: Encoder, name: str, layers: Sequence[int] | None) -> tuple[int, ...]:
    """Return the layers asked for, all by default; -1 is the last. An encoder of one layer always gives that one."""
    there = encoder.layers
    if layers is None or len(there) == 1:
        return there
    wrong = [layer for layer in layers if not -len(there) <= layer < len(there)]
    if wrong:
        raise ModelError(f"{name} has no layer {wrong[0]}; its layers are 0 to {there[-1]}, and -1 is the last")
    return tuple(dict.fromkeys(there[layer] for layer in layers))


@dataclass(frozen=True, eq=False)
class Layers:
    """The vectors of all sentences in each layer."""

    numbers: tuple[int, ...]
    stored: NDArray[np.float32]

    def __iter__(self) -> Iterator[tuple[int, NDArray[np.float32]]]:
        for number, layer in zip(self.numbers, self.stored, strict=True):
            yield number, np.array(layer)


@contextmanager
def extracted(
    encoder: Encoder, name: str, texts: Sequence[str], layers: Sequence[int], tell: Progress | None
) -> Iterator[Layers]:
    """Compute the vectors of texts, and give them as long as the file that holds them is there."""
    with TemporaryFile() as file:
        stored: NDArray[np.float32] | None = None
        done = 0
        try:
            for places, vectors in encoder.vectors(texts, layers):
                if stored is None:
                    shape = (len(layers), len(texts), vectors.shape[2])
                    stored = np.memmap(file, np.float32, "w+", shape=shape)
                stored[:, places] = vectors
                done += len(places)
                if tell:
                    tell(name, done, len(texts))
        except QueryError as error:
            raise ModelError(f"{name} cannot read {shorten(texts[error.index])!r}: {error.problem}.") from error
        assert stored is not None
        if not np.isfinite(stored).all():
            raise ModelError(f"{name} gives a sentence a vector with a number that is not finite")
        yield Layers(tuple(layers), stored)
