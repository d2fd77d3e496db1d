"""Faster and smaller layers that compute the same as those of a network, swapped in after it is loaded.

``optimize_layers`` is the entry; the techniques follow in the order in which it applies them.

- On a CPU, the token embedding stays on disk (``DiskEmbedding``): of a vocabulary of fifty thousand tokens a text needs
  a few dozen rows. A tied head needs all weights in a layout of its own, and a second copy in memory would serve
  nothing but these look-ups.
- On a CPU, linear layers run in oneDNN with prepacked weights (``PackedLinear``), up to twice as fast as PyTorch's own.
  PyTorch has the operators under private names, so they are tested before they are used; where they are missing or
  wrong, the layers stay as they are.
- On a GPU in half precision, RMSNorm is one kernel and not six (``FusedRMSNorm``), and the head is padded to a round
  vocabulary size (``PaddedVocabularyHead``), and computes logits in float32.

``verify.py`` compares the scores of the changed network with those of the original, and discards it if they differ.
"""

from __future__ import annotations

import ctypes
import json
import logging
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from acceptability.errors import ModelError

_log = logging.getLogger(__name__)

_FLOAT32 = "F32"
"""The name of float32 in the header of a safetensors file."""

# oneDNN chooses a layout for an expected number of rows. Batches of another size give the same result.
_PACKING_ROWS = 1024
"""The number of rows of a product that packed weights are laid out for."""

# A layer is fused with the activation behind it only in classes whose code is known to call one right after the other:
# the list of a module's children does not show the order in which its forward method uses them.
_FUSIBLE_LAYERS = {"GPT2MLP": ("c_fc", "act"), "BertIntermediate": ("dense", "intermediate_act_fn")}
"""The attributes of a linear layer and of the activation that follows it, by class name."""

# These normalise in float32, round to the precision of the network, and multiply by the weight. Others, as Gemma's,
# add 1 to the weight or round at the end.
_RMS_NORMS = ("LlamaRMSNorm", "MistralRMSNorm", "MixtralRMSNorm", "Phi3RMSNorm", "Qwen2RMSNorm", "Qwen3RMSNorm")
"""The classes of transformers that ``FusedRMSNorm`` computes."""

# Generous: they tell a wrong layout or activation, which changes the leading digits, from a different rounding.
_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.05}
"""How far a packed layer may differ from a plain one, by precision."""


def optimize_layers(net: Any, folder: Path) -> None:
    """Replace layers of a network by faster or smaller ones that compute the same.

    Args:
        folder: The folder of its weights.
    """
    # transformers writes GPT-2's activation as several elementwise operations; PyTorch has it as one kernel.
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer).__name__ == "NewGELUActivation":
                setattr(parent, name, torch.nn.GELU("tanh"))
    if net.device.type == "cpu":
        keep_embedding_on_disk(net, folder)
        pack_linear_layers(net)
    elif net.device.type == "cuda" and net.dtype != torch.float32:
        for parent in list(net.modules()):
            for name, layer in list(parent.named_children()):
                if type(layer).__name__ in _RMS_NORMS:
                    setattr(parent, name, FusedRMSNorm(layer.weight, layer.variance_epsilon))
        _replace_head(net, net.get_output_embeddings())


def keep_embedding_on_disk(net: Any, folder: Path) -> None:
    """Replace the token embedding of a network by one on disk, if a file in its folder holds the same weights."""
    # Subclasses do more than look rows up (Gemma's scales them), and `max_norm` normalises rows when they are used.
    embedding = net.get_input_embeddings()
    if type(embedding) is not torch.nn.Embedding or embedding.max_norm is not None:
        return
    location = _find_tensor(folder, embedding.weight.detach())
    if location is None:
        return
    # In every module that refers to it: some networks hold the same embedding under several names.
    disk_embedding = DiskEmbedding(*location, (embedding.num_embeddings, embedding.embedding_dim))
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if layer is embedding:
                setattr(parent, name, disk_embedding)


def _find_tensor(folder: Path, weight: torch.Tensor) -> tuple[Path, int] | None:
    """Return the safetensors file that holds a weight matrix, and its position in bytes; None if there is none."""
    # Other precisions are converted on loading, so that no file holds what the network has in memory.
    if weight.dtype != torch.float32:
        return None
    for path in sorted(folder.glob("*.safetensors")):
        data_start, header = _read_header(path)
        for name, tensor_info in header.items():
            if (
                name != "__metadata__"
                and tensor_info["dtype"] == _FLOAT32
                and tensor_info["shape"] == list(weight.shape)
            ):
                start = data_start + tensor_info["data_offsets"][0]
                # Compared by content: names differ between files and networks, weights may be tied, and loading may
                # change them. The memory map lets the system drop the pages again.
                if np.array_equal(np.memmap(path, "<f4", "r", start, tuple(weight.shape)), weight.numpy()):
                    return path, start
    return None


def _read_header(path: Path) -> tuple[int, dict[str, Any]]:
    """Return the position of the data in a safetensors file, and its header; 0 and {} if the file is damaged."""
    # A damaged length would allocate gigabytes. A folder may hold any file beside the weights, such as those of GGUF.
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(length) if length < path.stat().st_size else b""
    try:
        header = json.loads(text)
    except ValueError:
        return 0, {}
    return 8 + length, header if isinstance(header, dict) else {}


class DiskEmbedding(torch.nn.Module):
    """An embedding whose rows are read from a safetensors file when they are needed.

    Args:
        path: The file.
        data_offset: The position of the first row in the file, in bytes.
        shape: The number of rows and of columns.
    """

    def __init__(self, path: Path, data_offset: int, shape: tuple[int, int]) -> None:
        super().__init__()
        self.file = path.open("rb")
        # The network has no close method that could do it: the file is closed when the network is collected.
        weakref.finalize(self, self.file.close)
        self.data_offset, self.shape = data_offset, shape
        # Seeking and reading are two steps on one file position, between which another thread could seek elsewhere.
        self.lock = threading.Lock()

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the embeddings of token ids."""
        # Sorted and without duplicates: each row is read once, in the order of the file.
        needed, inverse = np.unique(ids.numpy(), return_inverse=True)
        count, width = self.shape
        # As torch.nn.Embedding does. Without the check, an id beyond the end would read the next tensor of the file.
        if needed[0] < 0 or needed[-1] >= count:
            raise IndexError(f"there is no token {needed[-1]} among {count}")
        rows = np.empty((len(needed), width), "<f4")
        with self.lock:
            for row, token_id in zip(rows, needed.tolist(), strict=True):
                self.file.seek(self.data_offset + row.nbytes * token_id)
                # A short read would leave uninitialised memory in the row, which looks like any other numbers.
                if self.file.readinto(row) < row.nbytes:  # type: ignore[arg-type]
                    raise ModelError(f"{self.file.name} has become shorter since it was opened")
        return torch.from_numpy(rows[inverse.reshape(ids.shape)])


def pack_linear_layers(net: torch.nn.Module) -> None:
    """Replace every linear layer of a network by one with weights packed for this CPU."""
    if not is_packed_linear_available(next(net.parameters()).dtype):
        _log.warning("this PyTorch has no packed linear layers for this CPU: its own, slower ones are used")
        return
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if (packed_layer := _pack_layer(layer)) is not None:
                # At once, so that the original weights are freed before the next layer is packed: memory holds the
                # network and one layer at most, and not two networks.
                setattr(parent, name, packed_layer)
    for parent in net.modules():
        _fuse_gelu(parent)
    for tensor in [*net.parameters(), *net.buffers()]:
        # The tensors that are left may be views into the memory-mapped file, and would keep all of it in memory.
        tensor.data = tensor.data.clone()


@cache
def is_packed_linear_available(dtype: torch.dtype) -> bool:
    """Return whether packed layers work on this CPU in a precision: whether they match plain ones on random input."""
    # The operators are private to PyTorch: a release may drop them or change their arguments without notice, and on
    # some CPUs oneDNN has no kernel for half precision.
    generator = torch.Generator().manual_seed(0)
    rows, weight, bias = (torch.randn(shape, generator=generator).to(dtype) for shape in ((7, 24), (40, 24), (40,)))
    plain = torch.nn.functional.linear(rows, weight, bias)
    activations: list[tuple[str | None, Callable[[Any], Any]]] = [
        (None, lambda output: output),
        ("none", torch.nn.functional.gelu),
        ("tanh", torch.nn.GELU("tanh")),
    ]
    try:
        return all(
            (PackedLinear(weight, bias, gelu)(rows).float() - act(plain).float()).abs().max() < _TOLERANCE[dtype]
            for gelu, act in activations
        )
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def _pack_layer(layer: torch.nn.Module) -> torch.nn.Module | None:
    """Return a packed layer for a linear one, None for any other."""
    from transformers.pytorch_utils import Conv1D

    # The exact class, since a subclass may compute more. Conv1D is what GPT-2 calls a linear layer with the weights
    # transposed.
    if type(layer) is torch.nn.Linear:
        return PackedLinear(layer.weight, layer.bias)
    if isinstance(layer, Conv1D):
        return PackedLinear(layer.weight.t(), layer.bias)
    return None


def _fuse_gelu(parent: torch.nn.Module) -> None:
    """Fuse a packed layer of a module with the GELU that follows it, so that the output passes through memory once."""
    from transformers.activations import GELUActivation

    # RoBERTa's class is a copy of BERT's.
    linear, activation = _FUSIBLE_LAYERS.get(type(parent).__name__.replace("Roberta", "Bert"), ("", ""))
    layer, act = getattr(parent, linear, None), getattr(parent, activation, None)
    if not isinstance(layer, PackedLinear):
        return
    if isinstance(act, torch.nn.GELU) and act.approximate == "tanh":
        layer.activation = ("gelu", "tanh")
    elif isinstance(act, GELUActivation) and act.act is torch.nn.functional.gelu:
        layer.activation = ("gelu", "none")
    else:
        return
    # The module still calls its activation, which must not be applied a second time.
    setattr(parent, activation, torch.nn.Identity())


class PackedLinear(torch.nn.Module):
    """A linear layer with weights in the layout of oneDNN, optionally fused with the GELU that follows it.

    Args:
        gelu: "none" for the exact GELU, "tanh" for its approximation, None for no activation.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, gelu: str | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), _PACKING_ROWS)
        self.bias = None if bias is None else bias.detach().clone()
        # transformers reads the device and the precision of a network off its parameters, and packed weights cannot
        # be a parameter. A network of packed layers alone would have none without this empty one.
        self.dtype_marker = torch.nn.Parameter(torch.empty(0, dtype=weight.dtype), requires_grad=False)
        self.activation = ("none", "") if gelu is None else ("gelu", gelu)

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the layer's output for states of any number of dimensions."""
        name, kind = self.activation
        rows = states.reshape(-1, self.in_features)
        product = torch.ops.mkldnn._linear_pointwise(rows, self.weight, self.bias, name, [], kind)
        return product.view(*states.shape[:-1], self.out_features)  # type: ignore[no-any-return]


def _replace_head(net: torch.nn.Module, head: torch.nn.Module) -> None:
    """Replace the linear head of a network, wherever it refers to it, by a padded one."""
    if type(head) is not torch.nn.Linear:
        return
    padded_head = PaddedVocabularyHead(head.weight, head.bias)
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if layer is head:
                setattr(parent, name, padded_head)


class FusedRMSNorm(torch.nn.Module):
    """RMSNorm of Llama and its relatives, with the same rounding.

    Args:
        weight: The factor of each dimension.
        epsilon: What is added to the mean square.
    """

    def __init__(self, weight: torch.Tensor, epsilon: float) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(weight.detach(), requires_grad=False)
        self.epsilon = epsilon

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the normalised states."""
        # PyTorch's kernel would multiply by the weight before it rounds.
        return self.weight * torch.nn.functional.rms_norm(states, states.shape[-1:], None, self.epsilon)


class _PaddingState(threading.local):
    """Whether the head returns the padding of the vocabulary."""

    # In each thread by itself, since several may score with one network at a time.
    is_kept = False


_padding_state = _PaddingState()


@contextmanager
def keep_vocabulary_padding() -> Iterator[None]:
    """Let ``PaddedVocabularyHead`` return logits with the padding, which has no probability.

    The log-softmax needs its input in one piece, and would copy logits whose padding is cut off.
    """
    _padding_state.is_kept = True
    try:
        yield
    finally:
        _padding_state.is_kept = False


class PaddedVocabularyHead(torch.nn.Module):
    """A head for a GPU: the vocabulary is padded to a multiple of 64, and the logits are float32.

    A vocabulary such as GPT-2's, of 50,257 tokens, takes seven times as long as one of the next round size, since the
    fast kernels need aligned rows.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        padding = torch.zeros((-len(weight) % 64, self.in_features), dtype=weight.dtype, device=weight.device)
        self.weight = torch.cat([weight.detach(), padding])
        self.bias = None if bias is None else torch.cat([bias.detach().float(), padding[:, 0].float()])

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        rows = states.reshape(-1, self.in_features)
        # The product accumulates in float32 anyway. Without `out_dtype`, the logits would be rounded to half precision
        # before their log-softmax is taken.
        logits = torch.mm(rows, self.weight.t(), out_dtype=torch.float32)
        if self.bias is not None:
            logits += self.bias
        if _padding_state.is_kept:
            logits[:, self.out_features :] = -torch.inf
        else:
            logits = logits[:, : self.out_features]
        return logits.view(*states.shape[:-1], logits.shape[1])


def trim_memory() -> None:
    """Return freed memory to the operating system, where the C library can."""
    # glibc keeps what the old layout of the weights occupied, and the process would seem to need two networks.
    try:
        ctypes.CDLL(None).malloc_trim(0)
    # musl and macOS have no malloc_trim, and Windows cannot load None.
    except (OSError, AttributeError, TypeError):
        return
