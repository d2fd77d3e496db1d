"""What shape a classifier that was taught here has, as its file of weights says; it is known without loading it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from acceptability.errors import ModelError

FILE = "model.safetensors"
LM = "lm"
"""The folder, inside a classifier's, of the language model whose states it reads."""
FAMILY = "acceptability classifier "
FORMAT = f"{FAMILY}1"
NETWORKS = {"cbow": ("sum", "mean", "max"), "pooling": ("max",)}
"""The networks, and how each may make one vector of a sentence's words."""
ACTIVATIONS = ("tanh", "relu")


@dataclass(frozen=True)
class Shape:
    """All that a network needs to be built; its weights fit no other.

    Args:
        network: cbow or pooling.
        pool: How the vectors of a sentence's words become one: sum, mean or max (cbow), max (pooling).
        width: How many numbers a word vector has, or a layer of a language model.
        words: The size of the vocabulary; 0 for a network that reads the states of a language model.
        mixed: How many layers of a language model are mixed; 0 for a network that looks words up.
        directions: 2 if that language model reads backwards too.
        layers: How many layers the LSTM of a pooling network has in each direction, each with ``hidden`` numbers.
        top: How many numbers the hidden layer between sentence vector and logit has; 0 if there is none.
        activation: What that layer does to its numbers: tanh or relu.
        longest: How many words a sentence may have.
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
        reads = (self.words > 0) != (self.mixed > 0) and self.directions in (1, 2)
        pools = min(self.layers, self.hidden) >= (1 if self.network == "pooling" else 0)
        if not (reads and pools and min(self.width, self.longest) >= 1 and self.top >= 0):
            raise ModelError(f"a classifier cannot have the sizes {asdict(self)}")

    @property
    def reads_states(self) -> bool:
        """Whether it reads the states of a language model, not vectors of words."""
        return self.mixed > 0

    @property
    def inputs(self) -> int:
        """How many numbers stand for a word when sentences are read."""
        return self.width * self.directions

    @property
    def sentence(self) -> int:
        """How many numbers stand for a sentence."""
        return 2 * self.hidden if self.network == "pooling" else self.inputs

    def to_metadata(self) -> dict[str, str]:
        """Return what the file of weights says of it."""
        # One entry only: of several the order, and so the hash of the file, would be left to chance.
        return {FORMAT: json.dumps(asdict(self))}


def is_ours(folder: Path) -> bool:
    """Tell whether a folder holds a classifier that was taught here, in this or another version of the format."""
    path = folder / FILE
    return path.is_file() and any(name.startswith(FAMILY) for name in _metadata(path))


def read_shape(folder: Path) -> Shape:
    """Return the shape of the classifier in a folder; another version of the format is an error."""
    path = folder / FILE
    told = _metadata(path)
    if FORMAT not in told:
        found = next((name for name in told if name.startswith(FAMILY)), "no such format")
        raise ModelError(
            f"{path} is in the format {found!r}, and this version reads {FORMAT!r}: "
            "teach the classifier again, or open it with the version that its recipe.json names"
        )
    try:
        return Shape(**json.loads(told[FORMAT]))
    except (ValueError, TypeError) as error:
        raise ModelError(f"{path} does not say what shape its network has: {error}") from error


def _metadata(path: Path) -> Mapping[str, str]:
    """Return what a file of weights says of itself; nothing, where it is no such file."""
    try:
        with path.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            text = opened.read(length) if length < path.stat().st_size else b"{}"
        header = json.loads(text)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error
    except ValueError:
        return {}
    told = header.get("__metadata__") if isinstance(header, dict) else None
    return told if isinstance(told, dict) else {}
