"""Layers that compute the same as those of a network, at the rate that the machine can reach.

On a CPU, PyTorch's own linear layers leave up to half of the rate unused. oneDNN multiplies
faster with weights that were laid out for it beforehand; PyTorch has the operation under
a private name, so it is tried before it is used, and where it is missing or wrong, the
layers stay as they are.

On a GPU, a head over a vocabulary whose size is no multiple of 64 takes seven times as long
as one that is filled up to it; and half precision of the states need not mean half
precision of the logits.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import torch

from acceptability.models.on_disk import leave_on_disk

_log = logging.getLogger(__name__)
_ROWS = 1024
"""For how many rows at once the weights are laid out; others work too."""


class Packed(torch.nn.Module):
    """A linear layer whose weights are laid out for oneDNN, perhaps with GELU behind it.

    Args:
        gelu: "none" for the exact GELU, "tanh" for its approximation, None for no activation.
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None, gelu: str | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), _ROWS)
        self.bias = None if bias is None else bias.detach().clone()
        # A network is asked for its device and precision through its parameters, which packed weights are not.
        self.like = torch.nn.Parameter(torch.empty(0, dtype=weight.dtype), requires_grad=False)
        self.after = ("none", "") if gelu is None else ("gelu", gelu)

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        """Return the product, and the bias added."""
        name, kind = self.after
        rows = given.reshape(-1, self.in_features)
        made = torch.ops.mkldnn._linear_pointwise(rows, self.weight, self.bias, name, [], kind)
        return made.view(*given.shape[:-1], self.out_features)  # type: ignore[no-any-return]


class Head(torch.nn.Module):
    """A head for a GPU: the vocabulary filled up to a round size, logits in float32 from states in half precision."""

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        filling = torch.zeros((-len(weight) % 64, self.in_features), dtype=weight.dtype, device=weight.device)
        self.weight = torch.cat([weight.detach(), filling])
        self.bias = None if bias is None else bias.detach().float()

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        rows = states.reshape(-1, self.in_features)
        made = torch.mm(rows, self.weight.t(), out_dtype=torch.float32)[:, : self.out_features]
        if self.bias is not None:
            made += self.bias
        return made.view(*states.shape[:-1], self.out_features)


def tune(net: Any, folder: Path) -> None:
    """Replace layers of a network by faster or smaller ones that compute the same.

    Args:
        folder: Where its weights lie.
    """
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer).__name__ == "NewGELUActivation":
                setattr(parent, name, torch.nn.GELU("tanh"))
    if net.device.type == "cpu":
        leave_on_disk(net, folder)
        _pack(net)
    elif net.device.type == "cuda" and net.dtype != torch.float32:
        _replace(net, net.get_output_embeddings())


def give_back() -> None:
    """Give memory that held the weights in their old layout back to the system, where the C library can."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):
        return


def _replace(net: torch.nn.Module, head: torch.nn.Module) -> None:
    if type(head) is not torch.nn.Linear:
        return
    made = Head(head.weight, head.bias)
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if layer is head:
                setattr(parent, name, made)


def _pack(net: torch.nn.Module) -> None:
    """Lay out the weights of every linear layer of a network for this CPU, one after another."""
    if not is_available(next(net.parameters()).dtype):
        _log.warning("this PyTorch has no packed linear layers for this CPU: its own, slower ones are used")
        return
    for parent in list(net.modules()):
        for name, layer in list(parent.named_children()):
            if (packed := _packed(layer)) is not None:
                setattr(parent, name, packed)
    for parent in net.modules():
        _fuse(parent)
    for each in [*net.parameters(), *net.buffers()]:
        # What is left may be a view of the whole file, and would keep it in memory.
        each.data = each.data.clone()


def _packed(layer: torch.nn.Module) -> torch.nn.Module | None:
    from transformers.pytorch_utils import Conv1D

    if type(layer) is torch.nn.Linear:
        return Packed(layer.weight, layer.bias)
    if isinstance(layer, Conv1D):
        return Packed(layer.weight.t(), layer.bias)
    return None


_FUSED = {"GPT2MLP": ("c_fc", "act"), "BertIntermediate": ("dense", "intermediate_act_fn")}
"""Where a linear layer is followed at once by its activation, in the families that we know by name."""


def _fuse(parent: torch.nn.Module) -> None:
    """Let the product of a layer and the GELU behind it be one operation."""
    from transformers.activations import GELUActivation

    linear, activation = _FUSED.get(type(parent).__name__.replace("Roberta", "Bert"), ("", ""))
    layer, act = getattr(parent, linear, None), getattr(parent, activation, None)
    if not isinstance(layer, Packed):
        return
    if isinstance(act, torch.nn.GELU) and act.approximate == "tanh":
        layer.after = ("gelu", "tanh")
    elif isinstance(act, GELUActivation) and act.act is torch.nn.functional.gelu:
        layer.after = ("gelu", "none")
    else:
        return
    setattr(parent, activation, torch.nn.Identity())


@cache
def is_available(dtype: torch.dtype) -> bool:
    """Tell whether packed layers work here in a precision: they must give what plain ones give."""
    generator = torch.Generator().manual_seed(0)
    rows, weight, bias = (torch.randn(shape, generator=generator).to(dtype) for shape in ((7, 24), (40, 24), (40,)))
    plain = torch.nn.functional.linear(rows, weight, bias)
    kinds: list[tuple[str | None, Callable[[Any], Any]]] = [
        (None, lambda made: made),
        ("none", torch.nn.functional.gelu),
        ("tanh", torch.nn.GELU("tanh")),
    ]
    try:
        return all(
            (Packed(weight, bias, gelu)(rows).float() - act(plain).float()).abs().max() < _NEAR[dtype]
            for gelu, act in kinds
        )
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


_NEAR = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.05}
