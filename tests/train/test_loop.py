"""The loop of all neural recipes: runs that broke off go on bit for bit, dev sets and clocks end them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from acceptability.errors import TrainError

torch = pytest.importorskip("torch")

from acceptability.train.checkpoint import Checkpoints  # noqa: E402
from acceptability.train.corpus import Corpus, Counts  # noqa: E402
from acceptability.train.loop import Learnt, Lesson, Moment, Pace, constant_then_linear, learn  # noqa: E402
from acceptability.train.recipe import Job  # noqa: E402
from acceptability.train.team import Team  # noqa: E402
from acceptability.train.tick import Tick  # noqa: E402

ROWS = 8


def job(out: Path, told: list[Tick] | None = None) -> Job:
    counted = Counts("0", 1, 1)
    tell = told.append if told is not None else lambda _: None
    return Job(Corpus(()), counted, out, None, Checkpoints(out / ".checkpoint", {"kind": "test"}), tell)


def net() -> Any:
    torch.manual_seed(3)
    return torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 1))


def data(step: int) -> tuple[Any, Any]:
    drawn = torch.randn(ROWS, 4, generator=torch.Generator().manual_seed(step))
    return drawn, drawn.prod(1, keepdim=True)


def mean_square(net: Any, batch: tuple[Any, Any]) -> Any:
    return (net(batch[0]) - batch[1]).square().mean()


def lesson(parts: int = 1, dev: Callable[[Any], float] | None = None, *, dropout: bool = True) -> Lesson:
    learner = net() if dropout else net().eval()
    if not dropout:
        learner[2] = torch.nn.Identity()

    def batches(moment: Moment) -> list[tuple[Any, Any]]:
        inputs, targets = (each[moment.share(ROWS)] for each in data(moment.step))
        return list(zip(inputs.chunk(parts), targets.chunk(parts), strict=True))

    memory = {"seen": torch.zeros(1)}

    def loss(net: Any, batch: tuple[Any, Any]) -> Any:
        memory["seen"] = memory["seen"] + len(batch[0])
        return mean_square(net, batch)

    adam = torch.optim.AdamW([learner[0].weight, learner[0].bias], lr=1e-2)
    plain = torch.optim.SGD(learner[3].parameters(), lr=1e-2, momentum=0.9)
    return Lesson(learner, [adam, plain], batches, loss, tokens=ROWS, dev=dev, memory=memory)


def learned(out: Path, given: Lesson, pace: Pace, told: list[Tick] | None = None) -> Learnt:
    torch.set_num_threads(1)
    return learn(given, pace, job(out, told), Team())


def flat(given: Lesson) -> Any:
    return torch.cat([each.detach().reshape(-1) for each in given.net.parameters()])


def test_a_network_learns_and_tells_of_it(tmp_path: Path) -> None:
    told: list[Tick] = []
    given = lesson(dropout=False, dev=lambda net: float(mean_square(net, data(10_000)).detach()))
    before = given.dev(given.net)
    learnt = learned(tmp_path, given, Pace(steps=300, schedule=constant_then_linear(), evaluate_every=100), told)
    assert (learnt.steps, learnt.tokens, learnt.stopped_early) == (300, 300 * ROWS, False)
    assert learnt.dev_loss == given.dev(given.net)
    assert learnt.dev_loss < before
    assert [tick.done for tick in told if tick.stage == "dev set"] == [100, 200, 300]
    assert told[-1].tokens == 300 * ROWS


class Killed(Exception):
    pass


@pytest.mark.parametrize("moment", [37, 60])
def test_a_run_that_breaks_off_goes_on_bit_for_bit(tmp_path: Path, moment: int) -> None:
    pace = Pace(steps=90, schedule=constant_then_linear(), evaluate_every=10, save_every=25)

    def dev(net: Any) -> float:
        return float(mean_square(net, data(10_000)))

    straight = lesson(dev=dev)
    learned(tmp_path / "a", straight, pace)
    broken = lesson(dev=dev)
    inner = broken.batches

    def batches(now: Moment) -> Any:
        if now.step == moment:
            raise Killed
        return inner(now)

    with pytest.raises(Killed):
        learned(tmp_path / "b", Lesson(**{**vars(broken), "batches": batches}), pace)
    again = lesson(dev=dev)
    learnt = learned(tmp_path / "b", again, pace)
    assert learnt.steps == 90
    assert torch.equal(flat(again), flat(straight))
    assert torch.equal(again.memory["seen"], straight.memory["seen"])
    assert int(again.memory["seen"]) == 90 * ROWS


def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first, second = lesson(), lesson()
    learned(tmp_path, first, Pace(steps=5))
    refusing = Lesson(**{**vars(second), "batches": lambda _: pytest.fail("it trained again")})
    assert learned(tmp_path, refusing, Pace(steps=5)).steps == 5
    assert torch.equal(flat(first), flat(second))


def test_dropout_depends_on_the_seed_alone(tmp_path: Path) -> None:
    one, same, other = lesson(), lesson(), lesson()
    learned(tmp_path / "a", one, Pace(steps=5, seed=1))
    torch.manual_seed(99)
    untouched = torch.random.get_rng_state()
    learned(tmp_path / "b", same, Pace(steps=5, seed=1))
    assert torch.equal(torch.random.get_rng_state(), untouched)
    learned(tmp_path / "c", other, Pace(steps=5, seed=2))
    assert torch.equal(flat(one), flat(same))
    assert not torch.equal(flat(one), flat(other))


def test_parts_of_a_batch_make_the_same_step(tmp_path: Path) -> None:
    one, four = lesson(1, dropout=False), lesson(4, dropout=False)
    learned(tmp_path / "a", one, Pace(steps=20))
    learned(tmp_path / "b", four, Pace(steps=20))
    torch.testing.assert_close(flat(one), flat(four), atol=1e-5, rtol=1e-4)


def test_it_stops_when_the_dev_set_gains_nothing_and_keeps_the_best(tmp_path: Path) -> None:
    losses = iter([3.0, 2.0, 2.5, 2.1, 9.0])
    kept = []

    def dev(net: Any) -> float:
        kept.append(torch.cat([each.detach().reshape(-1) for each in net.parameters()]))
        return next(losses)

    given = lesson(dev=dev)
    learnt = learned(tmp_path, given, Pace(steps=1000, evaluate_every=4, patience=2))
    assert (learnt.steps, learnt.dev_loss, learnt.stopped_early) == (16, 2.0, True)
    assert torch.equal(flat(given), kept[1])
    again = lesson(dev=lambda _: pytest.fail("it looked again"))
    assert learned(tmp_path, again, Pace(steps=1000, evaluate_every=4, patience=2)).stopped_early
    assert torch.equal(flat(again), kept[1])


def test_minutes_end_a_run_and_move_its_schedule(tmp_path: Path) -> None:
    seen = []

    def schedule(progress: float) -> float:
        seen.append(progress)
        return 1 - progress

    def slow(_: Any) -> float:
        time.sleep(0.5)
        return 1.0

    began = time.monotonic()
    learnt = learned(tmp_path, lesson(dev=slow), Pace(minutes=0.5 / 60, schedule=schedule))
    assert learnt.seconds >= 0.5
    assert time.monotonic() - began >= learnt.seconds + 0.5  # the last look at the dev set does not count
    assert seen[0] == 0
    assert seen == sorted(seen)
    assert 0 < seen[-1] <= 1
    assert learnt.steps == len(seen)
    assert learned(tmp_path, lesson(dev=slow), Pace(minutes=0.5 / 60)).steps == learnt.steps


def test_a_loss_that_is_no_number_is_an_error_and_is_not_kept(tmp_path: Path) -> None:
    given = lesson()
    wrong = Lesson(**{**vars(given), "loss": lambda net, batch: mean_square(net, batch) * float("nan")})
    with pytest.raises(TrainError, match=r"the loss is nan before step 10: choose a lower learning rate"):
        learned(tmp_path, wrong, Pace(steps=20, save_every=10))
    assert not (tmp_path / ".checkpoint" / "state.json").exists()


@pytest.mark.parametrize("limits", [{}, {"steps": 5, "minutes": 1.0}, {"steps": -1}])
def test_a_pace_needs_one_limit(limits: dict[str, Any]) -> None:
    with pytest.raises(TrainError, match="exactly one of them must be set"):
        Pace(**limits)


def test_a_batch_that_cannot_be_shared_is_an_error() -> None:
    with pytest.raises(TrainError, match="8 rows cannot be divided evenly among 3 processes"):
        Moment(0, 0.0, processes=3).share(8)


def test_the_schedule_warms_up_holds_and_falls() -> None:
    factor = constant_then_linear(0.3, warmup=0.1)
    assert [round(factor(at), 3) for at in (0, 0.05, 0.1, 0.3, 0.65, 1.0)] == [0.01, 0.5, 1, 1, 0.5, 0]
