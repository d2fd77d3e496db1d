"""Embeddings that stay on disk: of a vocabulary of fifty thousand tokens a text needs a few dozen rows.

A head of the same weights needs them all, laid out for the CPU; a second copy in memory
would serve nothing but these look-ups.
"""

from __future__ import annotations

import json
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import torch

from acceptability.errors import ModelError

_FLOAT32 = "F32"


class OnDisk(torch.nn.Module):
    """An embedding whose rows are read from a file of weights when they are needed.

    Args:
        start: Where in the file the rows begin.
    """

    def __init__(self, path: Path, start: int, shape: tuple[int, int]) -> None:
        super().__init__()
        self.file = path.open("rb")
        weakref.finalize(self, self.file.close)
        self.start, self.shape = start, shape
        self.alone = threading.Lock()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the rows of the tokens."""
        needed, which = np.unique(ids.numpy(), return_inverse=True)
        count, width = self.shape
        if needed[0] < 0 or needed[-1] >= count:
            raise IndexError(f"there is no token {needed[-1]} among {count}")
        rows = np.empty((len(needed), width), "<f4")
        with self.alone:
            for row, token in zip(rows, needed.tolist(), strict=True):
                self.file.seek(self.start + row.nbytes * token)
                if self.file.readinto(row) < row.nbytes:  # type: ignore[arg-type]
                    raise ModelError(f"{self.file.name} has become shorter since it was opened")
        return torch.from_numpy(rows[which.reshape(ids.shape)])


def leave_on_disk(net: Any, folder: Path) -> None:
    """Let the token embedding of a network stay on disk, if a file of the folder has it as it is."""
    embedding = net.get_input_embeddings()
    if type(embedding) is not torch.nn.Embedding or embedding.max_norm is not None:
        return
    place = _found(folder, embedding.weight.detach())
    if place is None:
        return
    rows = OnDisk(*place, (embedding.num_embeddings, embedding.embedding_dim))
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if layer is embedding:
                setattr(parent, name, rows)


def _found(folder: Path, weight: torch.Tensor) -> tuple[Path, int] | None:
    """Return the file that holds these weights, and where in it."""
    if weight.dtype != torch.float32:
        return None
    for path in sorted(folder.glob("*.safetensors")):
        begin, header = _header(path)
        for name, each in header.items():
            if name != "__metadata__" and each["dtype"] == _FLOAT32 and each["shape"] == list(weight.shape):
                start = begin + each["data_offsets"][0]
                if np.array_equal(np.memmap(path, "<f4", "r", start, tuple(weight.shape)), weight.numpy()):
                    return path, start
    return None


def _header(path: Path) -> tuple[int, dict[str, Any]]:
    """Return where in a file of weights the numbers begin, and what it has; nothing, if it is no such file."""
    with path.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        text = opened.read(length) if length < path.stat().st_size else b""
    try:
        header = json.loads(text)
    except ValueError:
        return 0, {}
    return 8 + length, header if isinstance(header, dict) else {}
