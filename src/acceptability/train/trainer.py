"""The training loop of all neural recipes: optimiser steps, a schedule, checkpoints, a dev set, data parallelism.

A recipe describes what to train as a ``TrainingTask`` and for how long as a ``TrainingSchedule``, and calls
``train_network``::

    process_group = ProcessGroup()
    net = Net(...).to(process_group.device)
    task = TrainingTask(
        net=net,
        optimisers=[torch.optim.AdamW(net.parameters(), lr=1e-3)],
        batches=lambda context: [ids[context.step, context.shard(len(ids[0]))]],
        loss=lambda net, batch: net(batch),
        tokens_per_step=65_536,
        dev=lambda net: float(net(dev_ids)),
    )
    result = train_network(task, TrainingSchedule(steps=1000, seed=1), job, process_group)

The file reads downwards: the task and its schedule, the loop, the tensors of a checkpoint, the process group.

**Data.** ``batches`` returns the data of any step, as one micro-batch or as several whose gradients are accumulated
before the optimisers step. It is a function of the recipe's seed and ``context.step`` alone (an epoch is
``step // steps_per_epoch``), so a run that resumes at a step sees the data that it would have seen. Data parallel:
the processes share each batch, and each takes the rows ``context.shard(rows)``.

**Loss.** ``loss`` is called once per micro-batch with the network to run (perhaps compiled, perhaps wrapped in
``DistributedDataParallel``), and returns the micro-batch's mean loss. It runs in bfloat16 (autocast) on a GPU, in
float32 on a CPU. State that outlives a step, such as the hidden state of a recurrent network, is kept in
``task.memory`` as tensors and saved in checkpoints.

**Reproducibility.** The random generator is seeded anew at every step, so its state needs no saving: after SIGKILL the
same command gives the same weights, bit for bit on a CPU. With ``minutes`` the schedule follows the clock, and a run
can be repeated only approximately. With ``dev`` the network ends with the weights of the lowest dev loss.
Only the first process returns from ``train_network``; the others exit.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save
from torch.optim import Optimizer

from acceptability.errors import MissingExtra, TrainError
from acceptability.models.hf.loading import convert_out_of_memory
from acceptability.train.checkpoint import PartWriter
from acceptability.train.recipe import CheckpointedRun, TrainingProgress

LossFunction = Callable[[torch.nn.Module, Any], torch.Tensor]
RateSchedule = Callable[[float], float]
NamedTensors = Mapping[str, torch.Tensor]


@dataclass(frozen=True)
class StepContext:
    """The position of a run before a step, as one of its processes sees it.

    Args:
        step: The number of steps done so far.
        progress: The share of the training that is over, from 0 to 1.
        rank: The index of this process among ``processes``.
    """

    step: int
    progress: float
    rank: int = 0
    processes: int = 1

    def shard(self, rows: int) -> slice:
        """Return the rows of a batch that belong to this process.

        >>> StepContext(0, 0.0, rank=1, processes=2).shard(8)
        slice(4, 8, None)
        """
        # Gradients are averaged over processes with equal weights, which is the mean over the batch only if all
        # processes have equally many rows.
        if rows % self.processes:
            raise TrainError(f"a batch of {rows} rows cannot be divided evenly among {self.processes} processes")
        rows_per_process = rows // self.processes
        return slice(self.rank * rows_per_process, (self.rank + 1) * rows_per_process)


@dataclass(frozen=True)
class TrainingTask:
    """A network, its optimisers, and the data and loss that it is trained on.

    Args:
        optimisers: Each with its own peak learning rate, which the schedule multiplies.
        batches: Returns the micro-batches of a step that belong to this process, all of the same size.
        loss: Returns the mean loss of a micro-batch (nats).
        tokens_per_step: The number of tokens that all processes together see in a step.
        dev: Returns the mean loss on held-out text.
        memory: Tensors that outlive a step.
    """

    net: torch.nn.Module
    optimisers: Sequence[Optimizer]
    batches: Callable[[StepContext], Sequence[Any]]
    loss: LossFunction
    tokens_per_step: int
    dev: Callable[[torch.nn.Module], float] | None = None
    memory: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainingSchedule:
    """How long to train, at what rates, and when to evaluate, to stop and to save.

    Args:
        steps: The number of steps; 0 if ``minutes`` sets the end.
        minutes: The length of the training, from the end of the first step (before it, code may be compiled).
        rate_schedule: Maps progress from 0 to 1 to a factor of the learning rates.
        clip: The largest norm of a gradient; 0 switches clipping off.
        evaluate_every: After how many steps the dev set is evaluated; 0 means at the end only. It may be a fraction,
            such as 10/3 (after steps 4, 7, 10, …), so that every epoch ends with an evaluation.
        patience: Early stopping: after how many evaluations without a lower loss the run stops; 0 means never.
        save_every: After how many steps a checkpoint is written; 0 leaves it to ``save_seconds``.
        save_seconds: After how many seconds a checkpoint is written.
        compile: Whether the network is compiled with torch.compile.
    """

    steps: int = 0
    minutes: float = 0.0
    rate_schedule: RateSchedule = lambda _: 1.0
    clip: float = 1.0
    evaluate_every: int | Fraction = 0
    patience: int = 0
    save_every: int = 0
    save_seconds: float = 300.0
    seed: int = 1
    compile: bool = False

    def __post_init__(self) -> None:
        if (self.steps > 0) == (self.minutes > 0):
            raise TrainError(f"steps is {self.steps} and minutes is {self.minutes}; exactly one of them must be set")


@dataclass(frozen=True)
class TrainingResult:
    """The length and the losses of a finished run.

    Args:
        seconds: The time until the last step was done, killed runs included.
        loss: The mean training loss per token at the end (nats).
        dev_loss: The lowest loss on the dev set.
        stopped_early: Whether the run was out of patience.
        evaluations: The step and the dev loss of every evaluation, also of those before a resumption.
    """

    steps: int
    tokens: int
    seconds: float
    loss: float
    dev_loss: float | None
    stopped_early: bool
    evaluations: tuple[tuple[int, float], ...] = ()


def constant_then_linear(constant: float = 0.3, warmup: float = 0.0) -> RateSchedule:
    """Return a learning-rate schedule: linear warm-up, constant, then linear decay to zero.

    Args:
        constant: The progress at which the decay starts.
        warmup: The progress at which the warm-up ends.

    >>> half = constant_then_linear(0.5)
    >>> half(0.0), half(0.5), half(0.75), half(1.0)
    (1.0, 1.0, 0.5, 0.0)
    """

    def factor(progress: float) -> float:
        if progress < warmup:
            # A rate of zero would waste the first step.
            return max(progress / warmup, 0.01)
        return 1.0 if progress <= constant else max(0.0, (1 - progress) / (1 - constant))

    return factor


def train_network(
    task: TrainingTask, schedule: TrainingSchedule, job: CheckpointedRun, process_group: ProcessGroup
) -> TrainingResult:
    """Train a network to the end of its schedule, from the last checkpoint if there is one.

    Args:
        job: Holds the checkpoints and receives the progress reports.
        process_group: The processes that share each batch.
    """
    devices = [process_group.device] if process_group.device.type == "cuda" else []
    # Every step seeds torch's global generators: the caller's random state is put back afterwards.
    with torch.random.fork_rng(devices=devices), convert_out_of_memory("a step of the training"):
        result = _TrainingRun(task, schedule, job, process_group).run_to_end()
    process_group.exit_other_processes()
    return result


# Reading a number from a GPU waits for all queued kernels, so the training loss is read this often only.
_SECONDS_BETWEEN_REPORTS = 1.0


class _TrainingRun:
    """The state of one training run, and its loop."""

    def __init__(
        self, task: TrainingTask, schedule: TrainingSchedule, job: CheckpointedRun, process_group: ProcessGroup
    ) -> None:
        self.task, self.schedule, self.job, self.process_group = task, schedule, job, process_group
        self.step, self.earlier_seconds = 0, 0.0
        # With ``minutes`` the clock starts after the first step, so that compilation does not shorten the training.
        self.started_at = None if schedule.minutes else time.monotonic()
        self.best_loss, self.evaluations_without_gain, self.last_evaluated_step = math.inf, 0, 0
        self.best_weights: dict[str, torch.Tensor] | None = None
        self.is_new_best = False
        self.evaluations: list[tuple[int, float]] = []
        # Copies of the peak rates, which the schedule multiplies: each step overwrites those of the groups.
        self.base_rates = [[group["lr"] for group in optimiser.param_groups] for optimiser in task.optimisers]
        self.loss_sum, self.summed_steps, self.loss = torch.zeros((), device=process_group.device), 0, math.nan
        self.last_report = self.last_save = time.monotonic()
        task.net.to(process_group.device)
        self._resume()
        # After resuming: DistributedDataParallel sends the first process's weights to the others when it wraps.
        prepared = process_group.prepare_model(task.net)
        self.forward: Any = torch.compile(prepared) if schedule.compile else prepared

    def run_to_end(self) -> TrainingResult:
        """Train until the schedule ends or patience runs out; leave the network with its best weights."""
        self.task.net.train()
        while not self._is_finished():
            self._train_step()
            if self._is_time_to_evaluate():
                self._evaluate()
            if self._is_time_to_save():
                self._save()
        seconds = self._elapsed_seconds()
        self._evaluate()
        self._save()
        if self.best_weights is not None:
            restore_weights(self.task.net, self.best_weights)
        self.task.net.eval()
        return TrainingResult(
            steps=self.step,
            tokens=self._seen_tokens(),
            seconds=seconds,
            loss=self.loss,
            dev_loss=self.best_loss if math.isfinite(self.best_loss) else None,
            stopped_early=self._is_out_of_patience(),
            evaluations=tuple(self.evaluations),
        )

    def _train_step(self) -> None:
        """Accumulate the gradients of a batch, clip them, step the optimisers."""
        context = StepContext(self.step, self._progress(), self.process_group.rank, self.process_group.size)
        self._seed_generators(context)
        self._scale_learning_rates(self.schedule.rate_schedule(context.progress))
        micro_batches = self.task.batches(context)
        for number, micro_batch in enumerate(micro_batches, start=1):
            self._accumulate_gradients(micro_batch, len(micro_batches), is_last=number == len(micro_batches))
        if self.schedule.clip:
            torch.nn.utils.clip_grad_norm_(self.task.net.parameters(), self.schedule.clip)
        for optimiser in self.task.optimisers:
            optimiser.step()
            optimiser.zero_grad()
        self.step += 1
        self.summed_steps += 1
        if self.started_at is None:
            self._start_clock()
        if time.monotonic() - self.last_report >= _SECONDS_BETWEEN_REPORTS:
            self._report_progress()

    def _seed_generators(self, context: StepContext) -> None:
        """Seed dropout from the run's seed, the step and the process, so that resuming needs no generator state."""
        # SeedSequence hashes the three numbers: a sum of them would give neighbouring steps and ranks the same seeds.
        sequence = np.random.SeedSequence([self.schedule.seed, context.step, context.rank])
        torch.manual_seed(int(sequence.generate_state(1)[0]))

    def _scale_learning_rates(self, factor: float) -> None:
        for optimiser, rates in zip(self.task.optimisers, self.base_rates, strict=True):
            for group, rate in zip(optimiser.param_groups, rates, strict=True):
                group["lr"] = rate * factor

    def _accumulate_gradients(self, micro_batch: Any, count: int, *, is_last: bool) -> None:
        """Gradient accumulation: add the gradient of one of ``count`` micro-batches to those before it."""
        # Only the last backward pass averages gradients over processes; doing so every time would cost as many
        # exchanges over the network as there are micro-batches, for the same sum.
        with nullcontext() if is_last else self.process_group.no_sync(self.forward):
            with self._autocast():
                loss = self.task.loss(self.forward, micro_batch) / count
            loss.backward()  # type: ignore[no-untyped-call]
        self.loss_sum += loss.detach()

    def _autocast(self) -> AbstractContextManager[object]:
        return torch.autocast("cuda", torch.bfloat16) if self.process_group.device.type == "cuda" else nullcontext()

    def _start_clock(self) -> None:
        # Kernels run asynchronously: without waiting, the first step would seem over as soon as it was queued.
        if self.process_group.device.type == "cuda":
            torch.cuda.synchronize(self.process_group.device)
        self.started_at = time.monotonic()

    def _elapsed_seconds(self) -> float:
        return self.earlier_seconds + (time.monotonic() - self.started_at if self.started_at is not None else 0.0)

    def _seen_tokens(self) -> int:
        return self.step * self.task.tokens_per_step

    def _progress(self) -> float:
        if self.schedule.steps:
            return self.step / self.schedule.steps
        # Clocks differ. A process that stopped a step earlier than the others would leave them waiting forever for
        # its gradients, so all follow the first one's clock.
        return self.process_group.broadcast_value(min(1.0, self._elapsed_seconds() / (60 * self.schedule.minutes)))

    def _is_finished(self) -> bool:
        return self._is_out_of_patience() or self._progress() >= 1.0

    def _is_out_of_patience(self) -> bool:
        return 0 < self.schedule.patience <= self.evaluations_without_gain

    def _is_time_to_evaluate(self) -> bool:
        """Return whether the last step reached or passed a multiple of ``evaluate_every``."""
        every = self.schedule.evaluate_every
        return bool(every) and self.step // every > (self.step - 1) // every

    def _evaluate(self) -> None:
        """Measure the dev loss, unless this step's is known; copy the weights if it is the lowest so far."""
        if self.task.dev is None or self.last_evaluated_step == self.step:
            return
        self.task.net.eval()
        # The uncompiled network, as torch.compile would compile again for the shapes of dev batches. The first
        # process's loss counts: if processes disagreed about the best one, they would stop at different steps.
        with torch.no_grad(), self._autocast():
            dev_loss = self.process_group.broadcast_value(self.task.dev(self.task.net))
        self.task.net.train()
        self.last_evaluated_step = self.step
        self.evaluations.append((self.step, dev_loss))
        is_best = dev_loss < self.best_loss
        self.evaluations_without_gain = 0 if is_best else self.evaluations_without_gain + 1
        if is_best:
            self.best_loss, self.is_new_best = dev_loss, True
            self.best_weights = copy_tensors(collect_weights(self.task.net))
        self.job.report_progress(
            TrainingProgress("dev set", self.step, self.schedule.steps or None, self._seen_tokens(), dev_loss)
        )

    def _report_progress(self) -> None:
        """Report the mean training loss since the last report; one that is not finite is an error."""
        self.last_report = time.monotonic()
        if self.summed_steps:
            self.loss = float(self.loss_sum) / self.summed_steps
            self.loss_sum.zero_()
            self.summed_steps = 0
            if not math.isfinite(self.loss):
                raise TrainError(
                    f"the loss is {self.loss} before step {self.step}: choose a lower learning rate, or another seed"
                )
        time_progress = (int(self._elapsed_seconds()), int(self.schedule.minutes * 60))
        done, total = (self.step, self.schedule.steps) if self.schedule.steps else time_progress
        self.job.report_progress(TrainingProgress("training", done, total, self._seen_tokens(), self.loss))

    def _is_time_to_save(self) -> bool:
        is_due = self.schedule.save_every and self.step % self.schedule.save_every == 0
        return bool(is_due) or time.monotonic() - self.last_save >= self.schedule.save_seconds

    def _save(self) -> None:
        """Write a checkpoint, in the first process."""
        # Reading the loss comes first: it raises if training has diverged, before the last good checkpoint is replaced.
        self._report_progress()
        self.last_save = time.monotonic()
        if self.process_group.rank:
            return
        parts = {"training": make_tensor_writer(collect_state(self.task.net, self.task.optimisers, self.task.memory))}
        if self.is_new_best and self.best_weights is not None:
            parts["best"] = make_tensor_writer(self.best_weights)
            self.is_new_best = False
        # JSON has no infinity and no NaN.
        facts = {
            "trained": self._elapsed_seconds(),
            "loss": self.loss if math.isfinite(self.loss) else None,
            "best": self.best_loss if math.isfinite(self.best_loss) else None,
            "waited": self.evaluations_without_gain,
            "looked": self.last_evaluated_step,
            "evaluations": self.evaluations,
        }
        self.job.save(self.step, parts, facts)

    def _resume(self) -> None:
        """Restore the state of the last checkpoint, if there is one from this loop."""
        state = self.job.checkpoints.latest()
        # Recipes write a checkpoint of their own before training, with the tokenized corpus.
        if state is None or "training" not in state.parts:
            return
        facts: dict[str, Any] = dict(state.facts)
        # Checkpoints without evaluations name optimiser states differently, which torch would ignore without an error.
        if "evaluations" not in facts:
            folder = self.job.checkpoints.folder
            raise TrainError(f"{folder} has the checkpoint of an earlier version. Delete it to start again.")
        stored = read_tensors(state.parts["training"])
        restore_state(stored, self.task.net, self.task.optimisers, self.task.memory)
        self.step, self.earlier_seconds = state.step, float(facts["trained"])
        self.evaluations_without_gain, self.last_evaluated_step = int(facts["waited"]), int(facts["looked"])
        self.best_loss = math.inf if facts["best"] is None else float(facts["best"])
        self.evaluations = [(int(step), float(dev_loss)) for step, dev_loss in facts["evaluations"]]
        self.loss = math.nan if facts["loss"] is None else float(facts["loss"])
        if "best" in state.parts:
            self.best_weights = read_tensors(state.parts["best"])


def collect_weights(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the trainable parameters and the buffers of a network by their names; tied ones come once."""
    # Frozen parameters never change. Pretrained word vectors can be hundreds of megabytes, and would otherwise be
    # written twice into every checkpoint: with the current weights, and with the best ones.
    trainable = {name: parameter for name, parameter in net.named_parameters() if parameter.requires_grad}
    return {**trainable, **dict(net.named_buffers())}


def copy_tensors(tensors: NamedTensors) -> dict[str, torch.Tensor]:
    """Return copies of tensors, which later steps do not change."""
    return {name: tensor.detach().clone() for name, tensor in tensors.items()}


@torch.no_grad()
def restore_weights(net: torch.nn.Module, stored: NamedTensors) -> None:
    """Set the trainable parameters and the buffers of a network."""
    # Copied in place: optimisers, tied layers and the compiled network hold references to these very tensors.
    for name, tensor in collect_weights(net).items():
        tensor.copy_(stored[name])


def collect_state(
    net: torch.nn.Module, optimisers: Sequence[Optimizer], memory: NamedTensors
) -> dict[str, torch.Tensor]:
    """Return the tensors that a run resumes from: weights, optimiser states and memory, by prefixed names."""
    return {
        **{f"net/{name}": tensor for name, tensor in collect_weights(net).items()},
        **dict(_iterate_optimiser_state(optimisers)),
        **{f"memory/{name}": tensor for name, tensor in memory.items()},
    }


def restore_state(
    stored: NamedTensors, net: torch.nn.Module, optimisers: Sequence[Optimizer], memory: dict[str, torch.Tensor]
) -> None:
    """Restore the weights, optimiser states and memory that ``collect_state`` returned."""
    device = next(net.parameters()).device
    restore_weights(net, _select_prefix("net", stored))
    for number, optimiser in enumerate(optimisers):
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, tensor in _select_prefix(f"optimiser/{number}", stored).items():
            parameter_index, _, key = name.partition("/")
            state.setdefault(int(parameter_index), {})[key] = tensor
        # The parameter groups hold rates and the like, which the recipe sets; only moments and counts are stored.
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    memory.clear()
    memory.update({name: tensor.to(device) for name, tensor in _select_prefix("memory", stored).items()})


def _iterate_optimiser_state(optimisers: Sequence[Optimizer]) -> Iterator[tuple[str, torch.Tensor]]:
    for number, optimiser in enumerate(optimisers):
        for parameter_index, entries in optimiser.state_dict()["state"].items():
            for key, value in entries.items():
                yield f"optimiser/{number}/{parameter_index}/{key}", torch.as_tensor(value)


def _select_prefix(prefix: str, stored: NamedTensors) -> dict[str, torch.Tensor]:
    start = f"{prefix}/"
    return {name.removeprefix(start): tensor for name, tensor in stored.items() if name.startswith(start)}


def make_tensor_writer(tensors: NamedTensors) -> PartWriter:
    """Return a function that writes tensors into an open file, as safetensors."""
    # Not torch.save: it writes a pickle, and reading a pickle can run code.
    return lambda out: out.write(save({name: tensor.detach().contiguous() for name, tensor in tensors.items()}))


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Return the tensors of a safetensors file by their names."""
    return dict(load_file(path))


class ProcessGroup:
    """The processes that train one network, data parallel: one, or those of ``torchrun`` or ``accelerate launch``.

    Each process runs its shard of every batch; gradients are averaged, so the weights are the same in all of them.
    """

    @cached_property
    def _accelerator(self) -> Any:
        try:
            from accelerate import Accelerator
        except ImportError as error:
            raise MissingExtra("training a network", "accelerate", "'acceptability[neural]'") from error
        # Unless it is told to use the CPU, accelerate treats several processes without a GPU as unrelated ones. Its
        # mixed precision stays off: the loop has an autocast of its own.
        accelerator = Accelerator(mixed_precision="no", cpu=not torch.cuda.is_available())
        world_size = int(os.environ.get("WORLD_SIZE", "1"))
        # Otherwise every process would train, and write, a model of its own.
        if accelerator.num_processes != world_size:
            raise TrainError(
                f"{world_size} processes were started, but accelerate joins {accelerator.num_processes} of them"
            )
        return accelerator

    @property
    def device(self) -> torch.device:
        """The device of this process."""
        device: torch.device = self._accelerator.device
        return device

    @property
    def rank(self) -> int:
        """The index of this process, from 0."""
        return int(self._accelerator.process_index)

    @property
    def size(self) -> int:
        """The number of processes."""
        return int(self._accelerator.num_processes)

    def main_process_first(self) -> AbstractContextManager[None]:
        """Return a context that the first process leaves before the others enter, to find the files that it wrote."""
        context: AbstractContextManager[None] = self._accelerator.main_process_first()
        return context

    def prepare_model(self, net: torch.nn.Module) -> torch.nn.Module:
        """Return the network on its device, wrapped so that gradients are averaged over all processes."""
        prepared: torch.nn.Module = self._accelerator.prepare_model(net)
        return prepared

    def no_sync(self, net: torch.nn.Module) -> AbstractContextManager[None]:
        """Return a context in which gradients are accumulated in each process without averaging."""
        context: AbstractContextManager[None] = self._accelerator.no_sync(net)
        return context

    def broadcast_value(self, value: float) -> float:
        """Return the first process's number in all processes, for decisions that must be the same."""
        if self.size == 1:
            return value
        from accelerate.utils import broadcast

        return float(broadcast(torch.tensor(value, dtype=torch.float64, device=self.device)).item())

    def exit_other_processes(self) -> None:
        """Exit all processes but the first, which alone writes the model."""
        if self.size == 1:
            return
        # If a process exited while another still exchanged gradients, that one would fail.
        self._accelerator.wait_for_everyone()
        self._accelerator.end_training()
        if self.rank:
            raise SystemExit(0)


class SingleProcess(ProcessGroup):
    """A single process on a device that the caller chose, such as a CPU beside an idle GPU.

    Classifiers train this way: their restarts already occupy one process each, and accelerate, whose choice of device
    is the same for the whole process, is not needed.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device

    @property
    def device(self) -> torch.device:
        """The chosen device."""
        return self._device

    @property
    def rank(self) -> int:
        """Always 0."""
        return 0

    @property
    def size(self) -> int:
        """Always 1."""
        return 1

    def main_process_first(self) -> AbstractContextManager[None]:
        """Return a context that waits for nobody."""
        return nullcontext()

    def prepare_model(self, net: torch.nn.Module) -> torch.nn.Module:
        """Return the network on the device."""
        return net.to(self._device)

    def no_sync(self, net: torch.nn.Module) -> AbstractContextManager[None]:
        """Return a context that changes nothing: there are no gradients to average."""
        return nullcontext()
