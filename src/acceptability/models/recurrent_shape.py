"""What shape a recurrent language model has, as its file of weights says; it is known without loading it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from acceptability.errors import ModelError

FILE = "model.safetensors"
FORMAT = "acceptability recurrent 1"
CELLS = ("rnn", "lstm", "qrnn")
OUTPUTS = ("softmax", "tied_softmax", "classes", "adaptive", "tas", "tas_double")
TIED = ("tied_softmax", "tas", "tas_double")
"""The outputs whose weights are the word vectors."""


@dataclass(frozen=True)
class Shape:
    """All that a network needs to be built; its weights fit no other.

    Args:
        cell: rnn, lstm or qrnn.
        words: The size of the vocabulary.
        embedding: How many numbers a word vector has.
        hidden: How many numbers a layer has.
        output: How hidden states become probabilities, by its name in ``output_layers``.
        edges: Where groups of words begin in the output, and the size of the vocabulary last.
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
        is_rising = all(one < two for one, two in pairwise(self.edges))
        if len(self.edges) < 2 or self.edges[0] != 0 or self.edges[-1] != self.words or not is_rising:
            raise ModelError(f"groups of words cannot begin at {self.edges}: they rise from 0 to {self.words}")

    @property
    def widths(self) -> tuple[int, ...]:
        """How many numbers go into the first layer, and come out of each: the last fits what it is tied to."""
        last = self.embedding if self.output in TIED else self.hidden
        return (self.embedding, *[self.hidden] * (self.layers - 1), last)

    @property
    def is_improper(self) -> bool:
        """Whether its probabilities sum to more than 1."""
        return self.output == "tas_double" and len(self.edges) > 2

    def to_metadata(self) -> dict[str, str]:
        """Return what the file of weights says of it."""
        # One entry only: of several the order, and so the hash of the file, would be left to chance.
        return {FORMAT: json.dumps(asdict(self))}


def read_shape(path: Path) -> Shape:
    """Return the shape of the network in a file."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="numpy") as opened:
            told: Mapping[str, str] = opened.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} cannot be read as a recurrent model: {error}") from error
    if FORMAT not in told:
        raise ModelError(f"{path} does not say that it holds {FORMAT}: it is no recurrent model that was trained here")
    try:
        kept = json.loads(told[FORMAT])
        return Shape(**{**kept, "edges": tuple(kept["edges"])})
    except (KeyError, ValueError, TypeError) as error:
        raise ModelError(f"{path} does not say what shape its network has: {error}") from error
