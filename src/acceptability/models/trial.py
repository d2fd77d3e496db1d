"""Ways through a network, tried on a sample before they are relied on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

NOISE = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.03}
"""How far two ways of computing the same log-probability may differ, by precision."""


class Unfit(Exception):
    """A network that is not built in the usual way."""


@contextmanager
def usual() -> Iterator[None]:
    """Take whatever the code of a network makes of our ways as a reason not to take them."""
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, RuntimeError, AssertionError) as error:
        raise Unfit(f"{type(error).__name__}: {error}") from error


def objection(
    tried: Callable[[], NDArray[np.float32]], expected: NDArray[np.float32], dtype: torch.dtype
) -> str | None:
    """Return what speaks against a way, or None if it gives what is expected.

    Args:
        tried: What takes the way, and returns the log-probabilities that it gives.
    """
    try:
        with usual():
            gap = float(np.abs(expected - tried()).max())
    except Unfit as error:
        return str(error)
    # A gap that is no number is none that we can bear.
    return None if gap < NOISE[dtype] else f"its scores would differ by {gap:.2g}"
