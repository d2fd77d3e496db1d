"""Embeddings that stay on disk: of a vocabulary of fifty thousand tokens a text needs a few dozen rows.

A head of the same weights needs them all, laid out for the CPU; a second copy in memory
would serve nothing but these look-ups.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

_FLOAT32 = "F32"


class Mapped(torch.nn.Module):
    """An embedding whose rows are read from a file of weights when they are needed."""

    def __init__(self, table: NDArray[np.float32]) -> None:
        super().__init__()
        self.table = table

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of the tokens."""
        return torch.from_numpy(self.table[ids.numpy()])


def map_embedding(net: Any, folder: Path) -> None:
    """Let the token embedding of a network stay on disk, if a file of the folder has it as it is."""
    embedding = net.get_input_embeddings()
    if type(embedding) is not torch.nn.Embedding or embedding.max_norm is not None:
        return
    table = _found(folder, embedding.weight.detach())
    if table is None:
        return
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if layer is embedding:
                setattr(parent, name, Mapped(table))


def _found(folder: Path, weight: torch.Tensor) -> NDArray[np.float32] | None:
    """Return the table of a file that holds these weights."""
    if weight.dtype != torch.float32:
        return None
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as opened:
            length = int.from_bytes(opened.read(8), "little")
            header = json.loads(opened.read(length))
        for name, each in header.items():
            if name != "__metadata__" and each["dtype"] == _FLOAT32 and each["shape"] == list(weight.shape):
                start = 8 + length + each["data_offsets"][0]
                # Compared through a map of its own, since what a map has shown stays in memory with it.
                if np.array_equal(_map(path, start, weight), weight.numpy()):
                    return _map(path, start, weight)
    return None


def _map(path: Path, start: int, weight: torch.Tensor) -> NDArray[np.float32]:
    return np.memmap(path, "<f4", "r", start, tuple(weight.shape)).view(np.ndarray)
