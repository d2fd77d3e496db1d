"""Sums that fade, over all times at once: y[t] = keep[t] · y[t-1] + new[t], without a step for each time.

Pairs of neighbours are joined, the half as long sequence is solved the same way, and what lies between
is filled in: as many rounds as the length can be halved. Nothing is divided, so nothing overflows.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def fading_sum(keep: Tensor, new: Tensor) -> Tensor:
    """Return y with y[t] = keep[t] · y[t-1] + new[t] and nothing before y[0]; time is the first dimension.

    >>> fading_sum(torch.tensor([0.5, 0.5, 0.5]), torch.tensor([4.0, 1.0, 0.0])).tolist()
    [4.0, 3.0, 1.5]
    """
    found: Tensor = _FadingSum.apply(keep, new)  # type: ignore[no-untyped-call]
    return found


class _FadingSum(torch.autograd.Function):
    """The sum and its gradient, which is a sum of the same kind that runs backwards."""

    @staticmethod
    def forward(ctx: Any, keep: Tensor, new: Tensor) -> Tensor:
        """Return the sums."""
        sums = _solved(keep, new)
        ctx.save_for_backward(keep, sums)
        return sums

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:
        """Return the gradients of what is kept and of what is new."""
        keep, sums = ctx.saved_tensors
        later = torch.cat([keep[1:], torch.zeros_like(keep[:1])]).flip(0)
        of_new = _solved(later, gradient.flip(0)).flip(0)
        before = torch.cat([torch.zeros_like(sums[:1]), sums[:-1]])
        return of_new * before, of_new


def _solved(keep: Tensor, new: Tensor) -> Tensor:
    length = len(new)
    if length == 1:
        return new.clone()
    found = torch.empty_like(new)
    even, odd = keep[0 : length - 1 : 2], keep[1::2]
    found[1::2] = _solved(odd * even, torch.addcmul(new[1::2], odd, new[0 : length - 1 : 2]))
    found[0] = new[0]
    found[2::2] = torch.addcmul(new[2::2], keep[2::2], found[1 : length - 1 : 2])
    return found
