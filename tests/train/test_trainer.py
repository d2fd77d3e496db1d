"""The training loop: bit-identical resuming, early stopping, schedules by steps and by the clock."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from acceptability.errors import TrainError

torch = pytest.importorskip("torch")

from acceptability.train.checkpoint import CheckpointManager
from acceptability.train.corpus import Corpus, CorpusCounts
from acceptability.train.recipe import (
    TrainingJob,
    TrainingProgress,
)
from acceptability.train.trainer import (
    ProcessGroup,
    StepContext,
    TrainingResult,
    TrainingSchedule,
    TrainingTask,
    constant_then_linear,
    train_network,
)

ROWS = 8


def job(out: Path, reports: list[TrainingProgress] | None = None) -> TrainingJob:
    counted = CorpusCounts("0", 1, 1)
    report = reports.append if reports is not None else lambda _: None
    checkpoints = CheckpointManager(out / ".checkpoint", {"kind": "test"})
    return TrainingJob(Corpus(()), counted, out, None, checkpoints=checkpoints, report_progress=report)


def net() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))


def data(step: int) -> tuple[Any, Any]:
    drawn = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(step))
    return drawn, drawn.prod(1, keepdim=True)


def mean_square(net: Any, batch: tuple[Any, Any]) -> Any:
    return (net(batch[0]) - batch[1]).square().mean()


def make_task(parts: int = 1, dev: Callable[[Any], float] | None = None, *, dropout: bool = True) -> TrainingTask:
    network = net() if dropout else net().eval()
    if not dropout:
        network[2] = torch.nn.Identity()

    def batches(context: StepContext) -> list[tuple[Any, Any]]:
        inputs, targets = (tensor[context.shard(ROWS)] for tensor in data(context.step))
        return list(zip(inputs.chunk(parts), targets.chunk(parts), strict=True))

    memory = {"seen": torch.zeros(1)}

    def loss(net: Any, batch: tuple[Any, Any]) -> Any:
        memory["seen"] = memory["seen"] + len(batch[0])
        return mean_square(net, batch)

    adam = torch.optim.AdamW([network[0].weight, network[0].bias], lr=1e-2)
    plain = torch.optim.SGD(network[3].parameters(), lr=1e-2, momentum=0.9)
    return TrainingTask(network, [adam, plain], batches, loss, tokens_per_step=ROWS, dev=dev, memory=memory)


def run_training(
    out: Path, task: TrainingTask, schedule: TrainingSchedule, reports: list[TrainingProgress] | None = None
) -> TrainingResult:
    torch.set_num_threads(1)
    return train_network(task, schedule, job(out, reports), ProcessGroup())


def flatten_weights(task: TrainingTask) -> Any:
    return torch.cat([parameter.detach().reshape(-1) for parameter in task.net.parameters()])


def test_a_network_is_trained_and_progress_reported(tmp_path: Path) -> None:
    reports: list[TrainingProgress] = []
    task = make_task(dropout=False, dev=lambda net: float(mean_square(net, data(10_000)).detach()))
    before = task.dev(task.net)
    result = run_training(
        tmp_path, task, TrainingSchedule(steps=300, rate_schedule=constant_then_linear(), evaluate_every=100), reports
    )
    assert (result.steps, result.tokens, result.stopped_early) == (300, 300 * ROWS, False)
    assert result.dev_loss == task.dev(task.net)
    assert result.dev_loss < before
    assert [report.done for report in reports if report.stage == "dev set"] == [100, 200, 300]
    assert reports[-1].tokens == 300 * ROWS


def test_a_fraction_of_an_epoch_is_rounded_up_and_every_epoch_ends_with_an_evaluation(tmp_path: Path) -> None:
    task = make_task(dev=lambda net: float(mean_square(net, data(10_000))))
    result = run_training(tmp_path, task, TrainingSchedule(steps=20, evaluate_every=Fraction(10, 3)))
    assert [step for step, _ in result.evaluations] == [4, 7, 10, 14, 17, 20]


class Killed(Exception):
    pass


@pytest.mark.parametrize("killed_at", [37, 60])
def test_a_killed_run_resumes_bit_for_bit(tmp_path: Path, killed_at: int) -> None:
    schedule = TrainingSchedule(steps=90, rate_schedule=constant_then_linear(), evaluate_every=10, save_every=25)

    def dev(net: Any) -> float:
        return float(mean_square(net, data(10_000)))

    straight = make_task(dev=dev)
    run_training(tmp_path / "a", straight, schedule)
    broken = make_task(dev=dev)
    inner = broken.batches

    def batches(context: StepContext) -> Any:
        if context.step == killed_at:
            raise Killed
        return inner(context)

    with pytest.raises(Killed):
        run_training(tmp_path / "b", TrainingTask(**{**vars(broken), "batches": batches}), schedule)
    resumed = make_task(dev=dev)
    result = run_training(tmp_path / "b", resumed, schedule)
    assert result.steps == 90
    assert [step for step, _ in result.evaluations] == list(range(10, 91, 10))
    assert torch.equal(flatten_weights(resumed), flatten_weights(straight))
    assert torch.equal(resumed.memory["seen"], straight.memory["seen"])
    assert int(resumed.memory["seen"]) == 90 * ROWS


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first, second = make_task(), make_task()
    run_training(tmp_path, first, TrainingSchedule(steps=5))
    refusing = TrainingTask(**{**vars(second), "batches": lambda _: pytest.fail("it trained again")})
    assert run_training(tmp_path, refusing, TrainingSchedule(steps=5)).steps == 5
    assert torch.equal(flatten_weights(first), flatten_weights(second))


def test_dropout_depends_on_the_seed_alone(tmp_path: Path) -> None:
    one, same, other = make_task(), make_task(), make_task()
    run_training(tmp_path / "a", one, TrainingSchedule(steps=5, seed=1))
    torch.manual_seed(99)
    untouched = torch.random.get_rng_state()
    run_training(tmp_path / "b", same, TrainingSchedule(steps=5, seed=1))
    assert torch.equal(torch.random.get_rng_state(), untouched)
    run_training(tmp_path / "c", other, TrainingSchedule(steps=5, seed=2))
    assert torch.equal(flatten_weights(one), flatten_weights(same))
    assert not torch.equal(flatten_weights(one), flatten_weights(other))


def test_gradient_accumulation_makes_the_same_step(tmp_path: Path) -> None:
    one, four = make_task(1, dropout=False), make_task(4, dropout=False)
    run_training(tmp_path / "a", one, TrainingSchedule(steps=20))
    run_training(tmp_path / "b", four, TrainingSchedule(steps=20))
    torch.testing.assert_close(flatten_weights(one), flatten_weights(four), atol=1e-5, rtol=1e-4)


def test_early_stopping_keeps_the_best_weights(tmp_path: Path) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.1, 9.0])
    evaluated = []

    def dev(net: Any) -> float:
        evaluated.append(torch.cat([parameter.detach().reshape(-1) for parameter in net.parameters()]))
        return next(losses)

    task = make_task(dev=dev)
    result = run_training(tmp_path, task, TrainingSchedule(steps=1000, evaluate_every=4, patience=2))
    assert (result.steps, result.dev_loss, result.stopped_early) == (16, 2.0, True)
    assert torch.equal(flatten_weights(task), evaluated[1])
    again = make_task(dev=lambda _: pytest.fail("it evaluated again"))
    assert run_training(tmp_path, again, TrainingSchedule(steps=1000, evaluate_every=4, patience=2)).stopped_early
    assert torch.equal(flatten_weights(again), evaluated[1])


class Clock:
    """A clock that moves a little whenever it is read."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 0.01
        return self.now


def test_minutes_end_a_run_and_move_its_schedule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = Clock(), []
    monkeypatch.setattr("acceptability.train.trainer.time", clock)

    def schedule(progress: float) -> float:
        seen.append(progress)
        return 1 - progress

    def slow_dev(_: Any) -> float:
        clock.now += 20
        return 1.0

    task = make_task(dev=slow_dev)
    result = run_training(tmp_path, task, TrainingSchedule(minutes=0.5 / 60, rate_schedule=schedule))
    # The evaluation after the last step does not count.
    assert 0.5 <= result.seconds < 1
    assert clock.now > 20
    assert seen[0] == 0
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 1
    assert result.steps == len(seen)
    again = run_training(tmp_path, make_task(dev=slow_dev), TrainingSchedule(minutes=0.5 / 60))
    assert again.steps == result.steps


def test_a_loss_that_is_not_finite_is_an_error_and_not_saved(tmp_path: Path) -> None:
    task = make_task()
    wrong = TrainingTask(**{**vars(task), "loss": lambda net, batch: mean_square(net, batch) * float("nan")})
    with pytest.raises(TrainError, match=r"the loss is nan before step 10: choose a lower learning rate"):
        run_training(tmp_path, wrong, TrainingSchedule(steps=20, save_every=10))
    assert not (tmp_path / ".checkpoint" / "state.json").exists()


@pytest.mark.parametrize("limits", [{}, {"steps": 5, "minutes": 1.0}, {"steps": -1}])
def test_a_schedule_needs_one_limit(limits: dict[str, Any]) -> None:
    with pytest.raises(TrainError, match="exactly one of them must be set"):
        TrainingSchedule(**limits)


def test_a_batch_that_cannot_be_divided_is_an_error() -> None:
    with pytest.raises(TrainError, match="8 rows cannot be divided evenly among 3 processes"):
        StepContext(0, 0.0, processes=3).shard(8)


def test_the_schedule_warms_up_holds_and_falls() -> None:
    factor = constant_then_linear(0.3, warmup=0.1)
    assert [round(factor(at), 3) for at in (0, 0.05, 0.1, 0.3, 0.65, 1.0)] == [0.01, 0.5, 1, 1, 0.5, 0]
