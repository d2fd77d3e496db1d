"""A server that is killed at random moments: jobs that it accepted are finished after a restart."""

from __future__ import annotations

import json
import random
import signal
import socket
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from faults.harness import Done, Driver, Row, Tally, differing, many_pairs, missing, stored

pytest.importorskip("fastapi")
Rounds = Callable[[int, int], int]
KILLED = -signal.SIGKILL
ASKED = ["Cats sleep.", "Sleep cats."]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """What runs servers."""
    server_process = Driver(
        tmp_path_factory.mktemp("serving"), ["acceptability.serve.app", "acceptability.models.ngram.model"]
    )
    yield server_process
    server_process.close()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as held:
        return int(held.getsockname()[1])


class Visitor(Thread):
    """Asks for evaluations and judgements until it is told to stop, whether the server is there or not.

    Args:
        tables: What to send, sequentially, each until it is taken.
    """

    def __init__(self, port: int, models: list[str], tables: list[str]) -> None:
        super().__init__(daemon=True)
        self._port, self._models, self._tables = port, models, tables
        self.taken: dict[str, str] = {}
        self.accepted_flag: Path | None = None
        self.heard: list[Any] = []
        self.leave = Event()

    @property
    def _left(self) -> list[str]:
        return self._tables[len(self.taken) :]

    def run(self) -> None:
        while not self.leave.wait(0.002):
            for table in self._left[:1]:
                if job := self._answer("POST", "/api/jobs", {"name": "a.tsv", "table": table, "models": self._models}):
                    self.taken[job["id"]] = table
                    if self.accepted_flag:
                        self.accepted_flag.touch()
            if judgements := self._answer("POST", "/api/judge", {"sentences": ASKED, "models": self._models}):
                self.heard.append(judgements)

    def wait_for_all(self, flag: Path) -> None:
        """Wait until the server has finished all jobs, and touch a flag then; give up after ten minutes."""
        ends = time.monotonic() + 600
        while time.monotonic() < ends and (self._left or not self.heard or not self._is_all_done()):
            time.sleep(0.02)
        flag.touch()

    def _is_all_done(self) -> bool:
        jobs = self._answer("GET", "/api/jobs")
        return jobs is not None and all(job["state"] not in ("waiting", "running") for job in jobs)

    def _answer(self, method: str, address: str, body: object = None) -> Any:
        """Return the server's answer; None if it is not there or dies before the answer is complete."""
        line = HTTPConnection("127.0.0.1", self._port, timeout=120)
        try:
            line.request(method, address, json.dumps(body), {"Content-Type": "application/json"})
            answer = line.getresponse()
            content = answer.read()
        except (OSError, HTTPException):
            return None
        finally:
            line.close()
        assert answer.status in (200, 201), content
        return json.loads(content)


class Site:
    """A home folder with a server."""

    def __init__(self, driver: Driver, home: Path, model: str) -> None:
        self._driver, self.home, self._port, self._model = driver, home, free_port(), model
        self._line = ["serve", "--port", str(self._port), "--json", "--per-minute", "1000000", "-m", model]

    def visitor(self, tables: list[str]) -> Visitor:
        return Visitor(self._port, [self._model, "uniform"], tables)

    def killed(self, visitor: Visitor, after: float) -> Done:
        """Serve a visitor until the kill, some seconds after the start, or after the visitor's flag if it has one."""
        when = {"when": str(visitor.accepted_flag)} if visitor.accepted_flag else {}
        return self._served(visitor, signal=signal.SIGKILL, after=after, **when)

    def finished(self, visitor: Visitor) -> Done:
        """Serve until all jobs are finished, and shut down normally."""
        flag = self.home.with_suffix(".done")
        Thread(target=visitor.wait_for_all, args=[flag], daemon=True).start()
        return self._served(visitor, signal=signal.SIGINT, when=str(flag))

    def _served(self, visitor: Visitor, **how: object) -> Done:
        visitor.start()
        ended = self._driver.run(self.home, self._line, **how)
        visitor.leave.set()
        visitor.join()
        return ended

    def results(self, job: str) -> Any:
        """Return the results of a job; None for one that does not exist or is not finished."""
        path = self.home / "jobs" / job / "job.json"
        about = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if about.get("state") != "done":
            return None
        return json.loads((self.home / "runs" / about["run"] / "results.json").read_text(encoding="utf-8"))


def test_serve(serving: Driver, tmp_path: Path, arpa: Path, rounds: Rounds, tally: Tally) -> None:
    rng, row, kills = random.Random(7), tally.row("SIGKILL at a random moment: serve"), rounds(2, 40)
    tables = [many_pairs(tmp_path / f"{size}.tsv", size).read_text(encoding="utf-8") for size in (60, 150, 300, 500)]
    calm = Site(serving, tmp_path / "calm", f"ngram:{arpa}")
    first = calm.visitor(tables)
    ended = calm.finished(first)
    assert ended.code == 0, ended.err
    wanted = {table: calm.results(job) for job, table in first.taken.items()}
    assert all(wanted[table] for table in tables)
    right, done, tries = stored(calm.home), 0, 0
    while done < kills:
        site, visitors, noted = Site(serving, tmp_path / f"home-{tries}", f"ngram:{arpa}"), [], b""
        for _ in range(rng.randrange(1, 4)):
            visitors.append(site.visitor(rng.choices(tables, k=rng.randrange(1, 4))))
            if not done:
                # On a busy machine, every server might be killed before it accepts a job. The first kill waits for one,
                # so that at least one restarted server has a job to finish.
                visitors[-1].accepted_flag = tmp_path / "accepted"
            killed = site.killed(visitors[-1], rng.uniform(0.1, ended.seconds))
            assert killed.code == KILLED, killed.err
            noted, done, row.injected = noted + killed.noted, done + 1, row.injected + 1
            held = stored(site.home)
            row.lost += missing(noted, held)
            row.wrong += differing(held, right)
        visitors.append(site.visitor([]))
        again = site.finished(visitors[-1])
        assert again.code == 0, again.err
        for visitor in visitors:
            _count(row, site, visitor, wanted, first.heard[0])
        tries += 1
    assert (row.lost, row.wrong) == (0, 0)
    assert row.notes["evaluations taken on"] > 0


def _count(row: Row, site: Site, visitor: Visitor, wanted: dict[str, Any], judged: Any) -> None:
    """Count the jobs and judgements of a visitor, and those that were lost or wrong."""
    results = {job: site.results(job) for job in visitor.taken}
    row.lost += sum(result is None for result in results.values())
    row.wrong += sum(result not in (None, wanted[visitor.taken[job]]) for job, result in results.items())
    row.wrong += sum(heard != judged for heard in visitor.heard)
    row.note("evaluations taken on", len(visitor.taken))
    row.note("judgements", len(visitor.heard))
