"""Verification of faster forward paths: their scores on a sample are compared with those of the plain path.

The faster paths of ``hf/`` change networks from outside, by patching methods and swapping layers, and cannot know all
architectures. So each of them runs once on a small sample when a network is loaded. If its log-probabilities differ
from the plain path's, or the network's code raises an error, the plain path is used and a line in the log says why.
``tune_forward_path`` is the entry.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.kernels.layers import optimize_layers, trim_memory

_log = logging.getLogger(__name__)

# Wide enough for another order of summation, far too narrow for a wrong mask, layer or position.
LOGPROB_TOLERANCE = {torch.float32: 1e-3, torch.bfloat16: 0.3, torch.float16: 0.03}
"""How far two computations of the same log-probability may differ, by precision."""


class ForwardPath(Protocol):
    """A way of running a batch through a network."""

    net: Any


PathT = TypeVar("PathT", bound=ForwardPath)


class UnsupportedNetwork(Exception):
    """A network whose architecture a faster path does not support."""


def tune_forward_path(
    load_net: Callable[[], Any],
    choose_path: Callable[[Any], tuple[PathT, NDArray[np.float32]]],
    run_sample: Callable[[PathT], NDArray[np.float32]],
    folder: Path,
) -> PathT:
    """Return the fastest correct path through a network, with faster layers if these leave its scores unchanged.

    Args:
        load_net: Loads the network, anew at each call.
        choose_path: Returns the fastest path through a network as it was loaded, and the log-probabilities of the
            sample by the plain path.
        run_sample: Returns the log-probabilities of the sample by a path.
        folder: The folder of the weights.
    """
    forward_path, expected = choose_path(load_net())

    def run_with_faster_layers() -> NDArray[np.float32]:
        optimize_layers(forward_path.net, folder)
        return run_sample(forward_path)

    if problem := verify_logprobs(run_with_faster_layers, expected, forward_path.net.dtype):
        # The layers have been replaced in place and their weights repacked, which cannot be undone.
        warn_slower_path(folder, problem)
        forward_path, _ = choose_path(load_net())
    trim_memory()
    return forward_path


def verify_logprobs(
    run: Callable[[], NDArray[np.float32]], expected: NDArray[np.float32], dtype: torch.dtype
) -> str | None:
    """Return why a path cannot be used, or None if its log-probabilities are those expected.

    Args:
        run: Prepares the path and returns its log-probabilities of the sample.
        dtype: The precision of the network, which decides how far they may differ.
    """
    try:
        with unsupported_on_error():
            gap = float(np.abs(expected - run()).max())
    except UnsupportedNetwork as error:
        return str(error)
    # Written so that a NaN, which compares false with everything, counts as a difference.
    return None if gap < LOGPROB_TOLERANCE[dtype] else f"its scores would differ by {gap:.2g}"


@contextmanager
def unsupported_on_error() -> Iterator[None]:
    """Turn errors from the code of a network into ``UnsupportedNetwork``."""
    # All that patched code may run into: unexpected arguments, missing attributes, wrong shapes. Interrupts and
    # Python's own MemoryError propagate.
    try:
        yield
    except (TypeError, ValueError, AttributeError, LookupError, RuntimeError, AssertionError) as error:
        raise UnsupportedNetwork(f"{type(error).__name__}: {error}") from error


def warn_slower_path(folder: Path, problem: str) -> None:
    """Log that a network is scored by a slower path, and why."""
    _log.warning("%s is scored by a slower path, with the same scores: %s", folder.name, problem)
