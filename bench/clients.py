"""Response times of the web application under a hundred concurrent clients, and whether each gets the right response.

    python -m bench.clients [--model trigram] [--clients 100] [--rounds 30]

The server runs in a process of its own. Every client opens the page once, and then sends forms sequentially, each with
a pair of sentences that no other client sends. The scores on the returned page are compared with those that the same
model computes in this process. The output has errors, mixed-up responses, latencies, and the server's memory.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from acceptability.api.scoring import judge

_CELL = re.compile(r'<td class="number(?: best)?">(-?\d+\.\d+)</td>')
_VISITOR = re.compile(r'name="visitor" value="([^"]+)"')
_SHOWN_DIGITS = 0.002


@dataclass(frozen=True)
class Answer:
    """The response time of one form, and the problem with its response; empty if there is none."""

    seconds: float
    problem: str


def make_pair(client: int, turn: int) -> tuple[str, str]:
    """Return two sentences that no other client sends."""
    return f"The {client} boys were late {turn} times.", f"The {client} boys was late {turn} times."


def visit(address: str, model: str, client: int, turns: range, expected: dict[str, float]) -> list[Answer]:
    """Open the page, send the forms sequentially, and return the responses."""
    host = address.removeprefix("http://").strip("/")
    connection = http.client.HTTPConnection(host, timeout=120)
    connection.request("GET", "/")
    page = connection.getresponse()
    cookie = (page.getheader("set-cookie") or "").partition(";")[0]
    visitor = _VISITOR.search(page.read().decode())
    assert visitor is not None
    headers = {"Cookie": cookie, "Origin": f"http://{host}", "Content-Type": "application/x-www-form-urlencoded"}
    answers = []
    for turn in turns:
        first, second = make_pair(client, turn)
        form = urlencode({"visitor": visitor[1], "first": first, "second": second, "model": model})
        start = time.perf_counter()
        connection.request("POST", "/", form, headers)
        response = connection.getresponse()
        text = response.read().decode()
        seconds = time.perf_counter() - start
        answers.append(Answer(seconds, _find_problem(response.status, text, (first, second), expected)))
    connection.close()
    return answers


def _find_problem(status: int, text: str, texts: Sequence[str], expected: dict[str, float]) -> str:
    if status != 200:
        return f"error: status {status}"
    scores = [float(cell) for cell in _CELL.findall(text)[:2]]
    expected_scores = [expected[text] for text in texts]
    if len(scores) != 2 or any(abs(a - b) > _SHOWN_DIGITS for a, b in zip(scores, expected_scores, strict=True)):
        return f"mixed up: {texts[0]!r} got {scores}; expected {expected_scores}"
    return ""


@contextmanager
def start_server() -> Iterator[tuple[str, int]]:
    """Start a server with an empty store; yield its address and its process id."""
    with tempfile.TemporaryDirectory() as home:
        command = [sys.executable, "-m", "acceptability", "serve", "--port", "0", "--json", "--per-minute", "100000000"]
        environment = {**os.environ, "ACCEPTABILITY_HOME": home}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, encoding="utf-8") as process:
            assert process.stdout is not None
            try:
                output = "".join(process.stdout.readline() for _ in range(3))
                yield json.loads(output)["address"], process.pid
            finally:
                process.send_signal(signal.SIGINT)


def read_resident_memory(process: int) -> float:
    """Return the resident memory of a process, in MB."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS:"))


def main() -> None:
    """Run the clients, and print a line for each third of the run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--model", default="trigram")
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=30)
    given = parser.parse_args()
    clients, rounds = range(given.clients), given.rounds
    sentences = [text for client in clients for turn in range(rounds) for text in make_pair(client, turn)]
    expected = {judgement.text: judgement.score for judgement in judge(sentences, model=given.model)}
    with start_server() as (address, process), ThreadPoolExecutor(given.clients) as pool:
        visit(address, given.model, 0, range(1), expected)  # so that loading the model is not timed
        print(f"{given.model}, {given.clients} clients; memory before: {read_resident_memory(process):.0f} MB")
        wrong = []
        for third in range(3):
            turns = range(third * rounds // 3, (third + 1) * rounds // 3)
            start = time.perf_counter()
            pending = [pool.submit(visit, address, given.model, client, turns, expected) for client in clients]
            answers = [answer for future in pending for answer in future.result()]
            wall = time.perf_counter() - start
            wrong += [answer.problem for answer in answers if answer.problem]
            p50, p95 = np.percentile([answer.seconds for answer in answers], [50, 95]) * 1000
            print(
                f"{len(answers)} answers, {len(wrong)} wrong so far, {len(answers) / wall:.0f} a second; "
                f"p50 {p50:.0f} ms, p95 {p95:.0f} ms; memory {read_resident_memory(process):.0f} MB"
            )
    if wrong:
        sys.exit(f"{len(wrong)} wrong answers, the first: {wrong[0]}")


if __name__ == "__main__":
    main()
