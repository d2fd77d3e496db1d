"""What a training run tells of itself while it works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Tick:
    """How far a run is.

    Args:
        stage: What is being done, in a word or two.
        done: How much of it is done, in the stage's own unit.
        total: How much there is to do; None if nobody knows yet.
        tokens: How many words or tokens were worked through in this stage.
        loss: The mean negative log-probability of a token (in nats), where the recipe has one.
    """

    stage: str
    done: int
    total: int | None = None
    tokens: int = 0
    loss: float | None = None


Tell = Callable[[Tick], None]
