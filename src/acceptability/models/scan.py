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
        of_new = _solved_backwards(keep[1:], gradient)
        of_keep = torch.zeros_like(keep)
        torch.mul(of_new[1:], sums[:-1], out=of_keep[1:])
        return of_keep, of_new


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


def _solved_backwards(keep: Tensor, new: Tensor) -> Tensor:
    """Return y with y[t] = keep[t] · y[t+1] + new[t]; there is one less to keep, since nothing follows the last."""
    length = len(new)
    if length == 1:
        return new.clone()
    found = torch.empty_like(new)
    first, between = length % 2, 1 - length % 2
    joined = torch.addcmul(new[first : length - 1 : 2], keep[first::2], new[first + 1 :: 2])
    found[first : length - 1 : 2] = _solved_backwards(keep[first : length - 2 : 2] * keep[first + 1 :: 2], joined)
    found[length - 1] = new[length - 1]
    rest = slice(between, length - 2, 2)
    found[rest] = torch.addcmul(new[rest], keep[rest], found[between + 1 : length - 1 : 2])
    return found
