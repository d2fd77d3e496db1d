"""A network and its optimisers as one file of tensors (safetensors: reading it runs no code), and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save
from torch.optim import Optimizer

from acceptability.train.checkpoint import Write

Tensors = Mapping[str, torch.Tensor]


def weights(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters and buffers of a network by their names; tied ones come once."""
    return {**dict(net.named_parameters()), **dict(net.named_buffers())}


def copied(tensors: Tensors) -> dict[str, torch.Tensor]:
    """Return tensors that no longer change."""
    return {name: each.detach().clone() for name, each in tensors.items()}


@torch.no_grad()
def put_back(net: torch.nn.Module, kept: Tensors) -> None:
    """Set the parameters and buffers of a network."""
    for name, each in weights(net).items():
        each.copy_(kept[name])


def whole(net: torch.nn.Module, optimisers: Sequence[Optimizer], memory: Tensors) -> dict[str, torch.Tensor]:
    """Return all that goes on in a training run, under one set of names."""
    return {
        **{f"net/{name}": each for name, each in weights(net).items()},
        **dict(_optimised(optimisers)),
        **{f"memory/{name}": each for name, each in memory.items()},
    }


def resume(
    kept: Tensors, net: torch.nn.Module, optimisers: Sequence[Optimizer], memory: dict[str, torch.Tensor]
) -> None:
    """Put everything back as ``whole`` found it."""
    device = next(net.parameters()).device
    put_back(net, _under("net", kept))
    for number, optimiser in enumerate(optimisers):
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, each in _under(f"optimiser/{number}", kept).items():
            place, _, key = name.partition("/")
            state.setdefault(int(place), {})[key] = each
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    memory.clear()
    memory.update({name: each.to(device) for name, each in _under("memory", kept).items()})


def writer(tensors: Tensors) -> Write:
    """Return what writes tensors into a file."""
    return lambda out: out.write(save({name: each.detach().contiguous() for name, each in tensors.items()}))


def read(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a file."""
    return dict(load_file(path))


def _under(prefix: str, kept: Tensors) -> dict[str, torch.Tensor]:
    begin = f"{prefix}/"
    return {name.removeprefix(begin): each for name, each in kept.items() if name.startswith(begin)}


def _optimised(optimisers: Sequence[Optimizer]) -> Iterator[tuple[str, torch.Tensor]]:
    for number, optimiser in enumerate(optimisers):
        for place, entries in optimiser.state_dict()["state"].items():
            for key, value in entries.items():
                yield f"optimiser/{number}/{place}/{key}", torch.as_tensor(value)
