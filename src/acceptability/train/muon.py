"""The optimiser Muon: the step of a matrix is its momentum made orthogonal, so that all directions move alike.

Keller Jordan et al. (2024), "Muon: An optimizer for hidden layers in neural networks". The momentum's
singular values are brought near 1 by five steps of a Newton–Schulz iteration, for many matrices of one
shape at once. Embeddings, norms and other vectors are no such matrices: AdamW moves those.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.optim import Optimizer

_A, _B, _C = 3.4445, -4.7750, 2.0315


def orthogonal(matrices: torch.Tensor, rounds: int = 5) -> torch.Tensor:
    """Return matrices (stacked in the first dimension) with their singular values brought near 1."""
    is_tall = matrices.shape[-2] > matrices.shape[-1]
    # Five rounds in bfloat16 are as good as in float32, and much faster on a GPU.
    found: torch.Tensor = matrices.bfloat16() if matrices.is_cuda else matrices
    found = found.mT if is_tall else found
    found = found / (found.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(rounds):
        gram = found @ found.mT
        found = _A * found + (_B * gram + _C * gram @ gram) @ found
    return (found.mT if is_tall else found).type_as(matrices)


class Muon(Optimizer):
    """Moves matrices along their orthogonalised momentum.

    Args:
        matrices: Each with the number of matrices that stand in it one above the other, such as 3 for
            queries, keys and values in one: these are made orthogonal each by itself.
        decay: How much of a matrix is taken away in a step, times the learning rate.
    """

    def __init__(
        self, matrices: Iterable[tuple[torch.nn.Parameter, int]], lr: float, *, momentum: float = 0.95, decay: float = 0
    ) -> None:
        alike: dict[tuple[torch.Size, int], list[torch.nn.Parameter]] = defaultdict(list)
        for matrix, pieces in matrices:
            alike[matrix.shape, pieces].append(matrix)
        groups = [{"params": params, "pieces": pieces} for (_, pieces), params in alike.items()]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "decay": decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every matrix once."""
        for group in self.param_groups:
            _move(group, self.state)


def _move(group: dict[str, Any], state: Any) -> None:
    params, keep, pieces = group["params"], group["momentum"], group["pieces"]
    grads = [each.grad for each in params]
    momenta = [state[each].setdefault("momentum", torch.zeros_like(each)) for each in params]
    torch._foreach_lerp_(momenta, grads, 1 - keep)
    ahead = torch._foreach_lerp(grads, momenta, keep)
    rows, columns = params[0].shape
    steps = orthogonal(torch.stack(list(ahead)).view(-1, rows // pieces, columns)).view(len(params), rows, columns)
    rate = group["lr"] * max(1.0, rows / pieces / columns) ** 0.5
    if group["decay"]:
        torch._foreach_mul_(params, 1 - group["lr"] * group["decay"])
    torch._foreach_add_(params, list(steps.unbind()), alpha=-rate)
