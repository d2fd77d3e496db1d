"""Networks are opened once and one at a time; Python's own cached property has had no lock since 3.12."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from time import sleep

from acceptability.models.files import locked_cached_property


class Opened:
    busy = 0
    most = 0
    count = 0

    @locked_cached_property
    def net(self) -> object:
        Opened.busy += 1
        Opened.most, Opened.count = max(Opened.most, Opened.busy), Opened.count + 1
        sleep(0.02)
        Opened.busy -= 1
        return object()


def test_threads_load_one_network_at_a_time_and_each_once() -> None:
    models, all_here = [Opened(), Opened()], Barrier(6)

    def ask(number: int) -> object:
        all_here.wait()
        return models[number % 2].net

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(ask, range(6)))
    assert (Opened.most, Opened.count) == (1, 2)
    assert found == [models[0].net, models[1].net] * 3
