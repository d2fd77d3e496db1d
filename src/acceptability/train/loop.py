"""The loop in which every neural recipe trains: steps, a schedule, checkpoints, a dev set, several processes.

A recipe describes what is learnt as a ``Lesson`` and for how long as a ``Pace``, and calls ``learn``::

    team = Team()
    net = Net(...).to(team.device)
    lesson = Lesson(
        net=net,
        optimisers=[torch.optim.AdamW(net.parameters(), lr=1e-3)],
        batches=lambda moment: [ids[moment.step, moment.share(len(ids[0]))]],
        loss=lambda net, batch: net(batch),
        tokens=65_536,
        dev=lambda net: float(net(held_out)),
    )
    learnt = learn(lesson, Pace(steps=1000, seed=1), job, team)

``batches`` gives the data of any step, in one part, or in several whose gradients are summed up before the step.
Nothing else decides what is seen, so a run that is taken up at a step sees what it would have seen: data
order comes from the recipe's seed and ``moment.step`` (an epoch is ``step // steps_in_an_epoch``).
All processes together make one batch: each takes ``moment.share(rows)`` of it.

``loss`` calls the network that it is given (compiled, or joined with other processes), once for each part,
and returns the mean loss of that part. On a GPU it computes in bfloat16 (autocast), on a CPU in float32. What must
outlive a step (a recurrent state) lies in ``lesson.memory``, as tensors, and is kept in checkpoints.

Dropout at a step follows from seed, step and process, so no state of a random generator needs keeping: after
SIGKILL the same command gives the same weights, bit for bit, on a CPU. With ``minutes`` the schedule follows the clock,
and a run can be repeated only roughly. If there is a ``dev``, the network ends with the weights that were best on it.
Only the first process returns from ``learn``; the others have nothing more to do, and end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer

from acceptability.errors import TrainError
from acceptability.models.huggingface import enough_memory
from acceptability.train import tensors
from acceptability.train.recipe import Job
from acceptability.train.team import Team
from acceptability.train.tick import Tick

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]
Schedule = Callable[[float], float]
_TELL_SECONDS = 1.0


@dataclass(frozen=True)
class Moment:
    """Where a run is.

    Args:
        step: How many steps were done before.
        progress: How much of the training is over, from 0 to 1.
        rank: Which of the processes asks, and ``processes`` how many there are.
    """

    step: int
    progress: float
    rank: int = 0
    processes: int = 1

    def share(self, rows: int) -> slice:
        """Return which rows of a batch this process takes.

        >>> Moment(0, 0.0, rank=1, processes=2).share(8)
        slice(4, 8, None)
        """
        if rows % self.processes:
            raise TrainError(f"a batch of {rows} rows cannot be divided evenly among {self.processes} processes")
        each = rows // self.processes
        return slice(self.rank * each, (self.rank + 1) * each)


@dataclass(frozen=True)
class Lesson:
    """What is learnt, and from what.

    Args:
        optimisers: Each with its own highest learning rate, which the schedule multiplies.
        batches: Gives the parts of a step's batch that belong to this process, all of the same size.
        loss: Gives the mean loss of a part (natural logs).
        tokens: How many tokens all processes together see in a step.
        dev: Gives the loss on text that is not trained on.
        memory: Tensors that live from step to step.
    """

    net: torch.nn.Module
    optimisers: Sequence[Optimizer]
    batches: Callable[[Moment], Sequence[Any]]
    loss: Loss
    tokens: int
    dev: Callable[[torch.nn.Module], float] | None = None
    memory: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class Pace:
    """How long and how fast.

    Args:
        steps: How many steps are done; 0 if ``minutes`` says when to end.
        minutes: How long the training lasts, from the end of the first step on (before it, code may be compiled).
        schedule: The factor of the learning rate at each progress from 0 to 1.
        clip: The greatest norm that a gradient may have; 0 clips none.
        evaluate_every: After how many steps the dev set is looked at; 0 means at the end only.
        patience: After how many looks without gain the run stops; 0 means never.
        save_every: After how many steps a checkpoint is written; 0 leaves it to ``save_seconds``.
        save_seconds: After how many seconds a checkpoint is written.
        compile: Whether torch.compile makes the network faster first.
    """

    steps: int = 0
    minutes: float = 0.0
    schedule: Schedule = lambda _: 1.0
    clip: float = 1.0
    evaluate_every: int = 0
    patience: int = 0
    save_every: int = 0
    save_seconds: float = 300.0
    seed: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        if (self.steps > 0) == (self.minutes > 0):
            raise TrainError(f"steps is {self.steps} and minutes is {self.minutes}; exactly one of them must be set")


@dataclass(frozen=True)
class Learnt:
    """How a run went.

    Args:
        seconds: How long it took until the last step was done.
        loss: The mean training loss of a token at the end (nats), ``dev_loss`` the best on the dev set.
        stopped_early: Whether the dev set ended it.
    """

    steps: int
    tokens: int
    seconds: float
    loss: float
    dev_loss: float | None
    stopped_early: bool


def constant_then_linear(constant: float = 0.3, warmup: float = 0.0) -> Schedule:
    """Return a schedule: up to the full rate during ``warmup``, full until ``constant``, then linear to zero.

    >>> half = constant_then_linear(0.5)
    >>> half(0.0), half(0.5), half(0.75), half(1.0)
    (1.0, 1.0, 0.5, 0.0)
    """

    def factor(progress: float) -> float:
        if progress < warmup:
            return max(progress / warmup, 0.01)
        return 1.0 if progress <= constant else max(0.0, (1 - progress) / (1 - constant))

    return factor


def learn(lesson: Lesson, pace: Pace, job: Job, team: Team) -> Learnt:
    """Train a network, from the last checkpoint if there is one."""
    devices = [team.device] if team.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), enough_memory("a step of the training"):
        learnt = _Run(lesson, pace, job, team).finished()
    team.dismissed()
    return learnt


class _Run:
    """A training run while it goes on."""

    def __init__(self, lesson: Lesson, pace: Pace, job: Job, team: Team) -> None:
        self.lesson, self.pace, self.job, self.team = lesson, pace, job, team
        self.step, self.before, self.clock = 0, 0.0, None if pace.minutes else time.monotonic()
        self.best, self.waited, self.looked = math.inf, 0, 0
        self.best_weights: dict[str, torch.Tensor] | None = None
        self.is_new_best = False
        self.rates = [[group["lr"] for group in each.param_groups] for each in lesson.optimisers]
        self.total, self.summed, self.loss = torch.zeros((), device=team.device), 0, math.nan
        self.told = self.saved = time.monotonic()
        lesson.net.to(team.device)
        self._resume()
        joined = team.joined(lesson.net)
        self.forward: Any = torch.compile(joined) if pace.compile else joined

    def finished(self) -> Learnt:
        """Do all steps that are left."""
        self.lesson.net.train()
        while not self._is_over():
            self._one_step()
            if self.pace.evaluate_every and self.step % self.pace.evaluate_every == 0:
                self._look()
            if self._is_time_to_save():
                self._save()
        seconds = self._seconds()
        if self.lesson.dev and self.looked != self.step:
            self._look()
        self._save()
        if self.best_weights is not None:
            tensors.put_back(self.lesson.net, self.best_weights)
        self.lesson.net.eval()
        best = None if self.best == math.inf else self.best
        tokens, stopped = self.step * self.lesson.tokens, self._is_out_of_patience()
        return Learnt(self.step, tokens, seconds, self.loss, best, stopped)

    def _one_step(self) -> None:
        lesson, moment = self.lesson, Moment(self.step, self._progress(), self.team.rank, self.team.size)
        torch.manual_seed(int(np.random.SeedSequence([self.pace.seed, self.step, moment.rank]).generate_state(1)[0]))
        self._set_rates(self.pace.schedule(moment.progress))
        parts = lesson.batches(moment)
        for left in reversed(range(len(parts))):
            with self.team.apart(self.forward) if left else nullcontext():
                with self._precision():
                    loss = lesson.loss(self.forward, parts[len(parts) - 1 - left]) / len(parts)
                loss.backward()  # type: ignore[no-untyped-call]
            self.total += loss.detach()
        if self.pace.clip:
            torch.nn.utils.clip_grad_norm_(lesson.net.parameters(), self.pace.clip)
        for optimiser in lesson.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.step += 1
        self.summed += 1
        if self.clock is None:
            self._begin_clock()
        if time.monotonic() - self.told >= _TELL_SECONDS:
            self._tell()

    def _begin_clock(self) -> None:
        if self.team.device.type == "cuda":
            torch.cuda.synchronize(self.team.device)
        self.clock = time.monotonic()

    def _set_rates(self, factor: float) -> None:
        for optimiser, rates in zip(self.lesson.optimisers, self.rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * factor

    def _precision(self) -> Any:
        return torch.autocast("cuda", torch.bfloat16) if self.team.device.type == "cuda" else nullcontext()

    def _seconds(self) -> float:
        return self.before + (time.monotonic() - self.clock if self.clock is not None else 0.0)

    def _progress(self) -> float:
        if self.pace.steps:
            return self.step / self.pace.steps
        return self.team.agreed(min(1.0, self._seconds() / (60 * self.pace.minutes)))

    def _is_over(self) -> bool:
        return self._is_out_of_patience() or self._progress() >= 1.0

    def _is_out_of_patience(self) -> bool:
        return 0 < self.pace.patience <= self.waited

    def _look(self) -> None:
        """Measure the loss on the dev set, and keep the weights if they are the best until now."""
        if self.lesson.dev is None or self.looked == self.step:
            return
        self.lesson.net.eval()
        with torch.no_grad(), self._precision():
            found = self.team.agreed(self.lesson.dev(self.lesson.net))
        self.lesson.net.train()
        self.looked = self.step
        is_best = found < self.best
        self.waited = 0 if is_best else self.waited + 1
        if is_best:
            self.best, self.is_new_best = found, True
            self.best_weights = tensors.copied(tensors.weights(self.lesson.net))
        self.job.tell(Tick("dev set", self.step, self.pace.steps or None, self.step * self.lesson.tokens, found))

    def _tell(self) -> None:
        self.told = time.monotonic()
        if self.summed:
            # Reading a number from a GPU waits for it: this is done about once in a second.
            self.loss = float(self.total) / self.summed
            self.total.zero_()
            self.summed = 0
            if not math.isfinite(self.loss):
                raise TrainError(
                    f"the loss is {self.loss} before step {self.step}: choose a lower learning rate, or another seed"
                )
        timed = (int(self._seconds()), int(self.pace.minutes * 60))
        done, total = (self.step, self.pace.steps) if self.pace.steps else timed
        self.job.tell(Tick("training", done, total, self.step * self.lesson.tokens, self.loss))

    def _is_time_to_save(self) -> bool:
        is_due = self.pace.save_every and self.step % self.pace.save_every == 0
        return bool(is_due) or time.monotonic() - self.saved >= self.pace.save_seconds

    def _save(self) -> None:
        self._tell()  # a network that is lost is not kept
        self.saved = time.monotonic()
        if self.team.rank:
            return
        now = tensors.whole(self.lesson.net, self.lesson.optimisers, self.lesson.memory)
        parts = {"training": tensors.writer(now)}
        if self.is_new_best and self.best_weights is not None:
            parts["best"] = tensors.writer(self.best_weights)
            self.is_new_best = False
        facts = {
            "trained": self._seconds(),
            "loss": self.loss if math.isfinite(self.loss) else None,
            "best": self.best if math.isfinite(self.best) else None,
            "waited": self.waited,
            "looked": self.looked,
        }
        self.job.save(self.step, parts, facts)

    def _resume(self) -> None:
        state = self.job.checkpoints.latest()
        if state is None or "training" not in state.parts:
            return
        facts: dict[str, Any] = dict(state.facts)
        kept = tensors.read(state.parts["training"])
        tensors.resume(kept, self.lesson.net, self.lesson.optimisers, self.lesson.memory)
        self.step, self.before = state.step, float(facts["trained"])
        self.waited, self.looked = int(facts["waited"]), int(facts["looked"])
        self.best = math.inf if facts["best"] is None else float(facts["best"])
        self.loss = math.nan if facts["loss"] is None else float(facts["loss"])
        if "best" in state.parts:
            self.best_weights = tensors.read(state.parts["best"])
