"""The loop in which our own classifiers learn: Adam, batches of sentences, an end when held-out MCC no longer grows.

On a CPU the same seed gives the same weights, bit for bit, however many threads the machine has: one is used.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from acceptability.errors import TrainError
from acceptability.measures.classification import matthews
from acceptability.models.huggingface import enough_memory
from acceptability.train.classifiers.reading import Source
from acceptability.train.tensors import copied
from acceptability.train.tick import Tell, Tick

_JUDGED = 256
_SORTED = 50
"""Of how many batches the sentences are sorted by length, so that those of one batch are about as long."""


@dataclass(frozen=True)
class Pace:
    """How long and how fast.

    Args:
        rate: The learning rate of Adam.
        batch: How many sentences are read in a step.
        epochs: How often all sentences are read at most.
        patience: After how many epochs without a better MCC the learning ends; 0 means never.
    """

    rate: float
    batch: int
    epochs: int
    patience: int
    seed: int


@dataclass(frozen=True)
class Lesson:
    """Sentences and their labels."""

    source: Source
    labels: NDArray[np.float64]


@dataclass(frozen=True)
class Learnt:
    """How the learning went.

    Args:
        epochs: How many epochs it took, and ``best`` which of them gave the weights that were kept.
        loss: The mean loss of a sentence in the last epoch (nats).
        mcc: What the kept weights reach on the sentences that were held out, and ``accuracy``.
    """

    epochs: int
    best: int
    loss: float
    mcc: float
    accuracy: float
    stopped_early: bool

    def facts(self) -> dict[str, object]:
        """Return what a model's card tells of it."""
        return {
            "epochs": self.epochs,
            "best epoch": self.best,
            "loss of a sentence at the end": round(self.loss, 4),
            "stopped early": self.stopped_early,
        }


def learn(net: nn.Module, lesson: Lesson, held: Lesson, pace: Pace, tell: Tell) -> Learnt:
    """Teach a network all that of its parameters may change; it ends with the weights that were best on ``held``."""
    device = next(net.parameters()).device
    gpus = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=gpus), one_thread(), enough_memory("a step of the training"):
        torch.manual_seed(pace.seed)
        return _learnt(net, lesson, held, pace, tell)


def _learnt(net: nn.Module, lesson: Lesson, held: Lesson, pace: Pace, tell: Tell) -> Learnt:
    optimiser = torch.optim.Adam([each for each in net.parameters() if each.requires_grad], lr=pace.rate)
    random = np.random.default_rng(pace.seed)
    best, best_epoch, kept = (-math.inf, -math.inf), 0, dict[str, Tensor]()
    epoch, loss = 0, math.nan
    while epoch < pace.epochs and not 0 < pace.patience <= epoch - best_epoch:
        epoch += 1
        loss = _epoch(net, optimiser, lesson, batches(lesson.source.lengths, pace.batch, random))
        found = reached(net, held)
        if found > best:
            best, best_epoch, kept = found, epoch, copied(_changing(net))
        tell(Tick("epochs", epoch, pace.epochs, epoch * int(lesson.source.lengths.sum()), loss))
    with torch.no_grad():
        for name, each in _changing(net).items():
            each.copy_(kept[name])
    logits = judged(net, held.source)
    accuracy = float(((logits > 0) == (held.labels > 0)).mean())
    return Learnt(epoch, best_epoch, loss, best[0], accuracy, epoch < pace.epochs)


def _epoch(net: nn.Module, optimiser: torch.optim.Optimizer, lesson: Lesson, plan: Sequence[list[int]]) -> float:
    """Read all sentences once; return their mean loss."""
    net.train()
    device = next(net.parameters()).device
    labels, total = torch.from_numpy(lesson.labels).float().to(device), torch.zeros((), device=device)
    for places in plan:
        said: Tensor = net(*lesson.source.batch(places))
        loss = binary_cross_entropy_with_logits(said, labels[torch.tensor(places, device=device)])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        total += loss.detach() * len(places)
    return float(total) / len(lesson.labels)


def batches(lengths: NDArray[np.int64], size: int, random: np.random.Generator) -> list[list[int]]:
    """Return which sentences are read together in an epoch: all of them once, those of a batch about as long.

    >>> sorted(map(sorted, batches(np.array([9, 2, 8, 1, 9]), 2, np.random.default_rng(1))))
    [[0], [1, 3], [2, 4]]
    """
    order = random.permutation(len(lengths))
    found: list[list[int]] = []
    for start in range(0, len(order), size * _SORTED):
        some = order[start : start + size * _SORTED]
        some = some[np.argsort(lengths[some], kind="stable")]
        found += [some[place : place + size].tolist() for place in range(0, len(some), size)]
    return [found[place] for place in random.permutation(len(found))]


def reached(net: nn.Module, held: Lesson) -> tuple[float, float]:
    """Return the MCC on sentences that were held out, and how small the loss is, which decides between equal ones."""
    logits = judged(net, held.source)
    loss = float(np.logaddexp(0, np.where(held.labels > 0, -logits, logits)).mean())
    return matthews((logits > 0).astype(np.float64), held.labels), -loss


def judged(net: nn.Module, source: Source) -> NDArray[np.float64]:
    """Return the logits of all sentences, in their order."""
    net.eval()
    order = np.argsort(source.lengths, kind="stable").tolist()
    found = np.empty(len(order))
    with torch.no_grad():
        for start in range(0, len(order), _JUDGED):
            places = order[start : start + _JUDGED]
            found[places] = net(*source.batch(places)).double().cpu().numpy()
    if not np.isfinite(found).all():
        raise TrainError("the network has lost itself in numbers that are not finite: choose a lower learning rate")
    return found


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread of the CPU: sums by several threads differ in their last bits."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _changing(net: nn.Module) -> dict[str, Tensor]:
    return {name: each for name, each in net.named_parameters() if each.requires_grad}
