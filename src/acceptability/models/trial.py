"""Ways through a network, tried on a sample before they are relied on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.layers import give_back, tune

_log = logging.getLogger(__name__)

NOISE = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.03}
"""How far two ways of computing the same log-probability may differ, by precision."""


class Way(Protocol):
    """A way through a network."""

    net: Any


Taken = TypeVar("Taken", bound=Way)


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


def tuned(
    opened: Callable[[], Any],
    fastest: Callable[[Any], tuple[Taken, NDArray[np.float32]]],
    tried: Callable[[Taken], NDArray[np.float32]],
    folder: Path,
) -> Taken:
    """Return the fastest way through a network, with faster layers where they give what its own give.

    Args:
        opened: What reads the network, anew each time that it is called.
        fastest: Gives the fastest way through a network as it is, and what must be said of the sample.
        tried: Gives what a way says of the sample.
        folder: Where the weights lie.
    """
    way, expected = fastest(opened())

    def with_faster_layers() -> NDArray[np.float32]:
        tune(way.net, folder)
        return tried(way)

    if problem := objection(with_faster_layers, expected, way.net.dtype):
        # Its layers are not what they were: only a network that was read anew can be relied on.
        slower(folder, problem)
        way, _ = fastest(opened())
    give_back()
    return way


def slower(folder: Path, problem: str) -> None:
    """Say that a network is scored in a slower way than others, and why."""
    _log.warning("%s is scored in a slower way, with the same scores: %s", folder.name, problem)
