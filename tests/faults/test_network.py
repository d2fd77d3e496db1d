"""Downloads that break off, are wrong, slow or refused; a model server with faults of every kind."""

from __future__ import annotations

import hashlib
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from acceptability.api.scoring import iter_model_outputs
from acceptability.errors import ModelError, SuiteError
from acceptability.models.remote import Remote
from acceptability.models.remote.completions_client import CompletionsServer, RetryPolicy
from acceptability.suites import load_catalog
from acceptability.suites.catalog import CatalogEntry, fetch_files, is_available, read_contents
from acceptability.types import Sentence, Suite
from faults.harness import Tally
from faulty_server import FAULTS, Faulty, served, truth
from tiny import TEXTS

Rounds = Callable[[int, int], int]
CONTENT = b"sentence\tlabel\n" + b"The cats sleep.\t1\n" * 4000
WRONG = ("cut", "wrong", "longer", "empty", "refused", "missing", "late", "no server")


class _Handler(BaseHTTPRequestHandler):
    fault = ""
    disable_nagle_algorithm = True
    over = threading.Event()

    def do_GET(self) -> None:
        if self.fault in ("refused", "missing"):
            self.send_error({"refused": 503, "missing": 404}[self.fault])
            return
        sent = {"wrong": CONTENT[::-1], "longer": CONTENT + b"x", "empty": b""}.get(self.fault, CONTENT)
        self.send_response(200)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent[: len(sent) // 2])
        if self.fault == "late":
            self.over.wait(120)
        if self.fault not in ("cut", "late"):
            self.wfile.write(sent[len(sent) // 2 :])

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def site(fault: str) -> Iterator[str]:
    """Run a server that does one thing wrong, or nothing; or only its address, where there is none."""
    if fault == "no server":
        yield "http://127.0.0.1:9"
        return
    over = threading.Event()
    handler = type("Handler", (_Handler,), {"fault": fault, "over": over})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            over.set()
            running.shutdown()
            thread.join()


def remote(address: str) -> CatalogEntry:
    files = {"a/plain.tsv": hashlib.sha256(CONTENT).hexdigest()}
    return replace(load_catalog()[0], id="remote", folder="remote", source=address, files=files, upstream={})


@pytest.mark.parametrize("fault", WRONG)
def test_a_download(fault: str, own_home: Path, monkeypatch, tally: Tally) -> None:
    """An error of one line, nothing left that could be taken for the file, and the same again is right."""
    monkeypatch.delenv("ACCEPTABILITY_DATA", raising=False)
    row = tally.row("a download that goes wrong: cut off, wrong hash, slow, down")
    with site(fault) as address, monkeypatch.context() as patch:
        # Only here: on a busy machine, a server without a fault may take longer.
        patch.setattr("acceptability.suites.catalog._TIMEOUT_SECONDS", 0.3)
        with pytest.raises(SuiteError, match="could not download .* Check the connection"):
            fetch_files(remote(address))
    row.injected += 1
    row.wrong += is_available(remote(address))
    with site("") as address:
        row.wrong += read_contents(remote(address)) != {"a/plain.tsv": CONTENT}
    assert row.wrong == 0


def test_a_model_behind_a_faulty_server(monkeypatch, tmp_path: Path, rounds: Rounds, tally: Tally) -> None:
    """Any faults in any order: right scores or an error; and the next run asks for what is missing alone."""
    rng, row = random.Random(21), tally.row("answers of a model's server: dropped, cut, wrong, shuffled, late")
    suite = Suite("toy", tuple(Sentence(str(index), text) for index, text in enumerate(TEXTS)))
    for number in range(rounds(3, 60)):
        monkeypatch.setenv("ACCEPTABILITY_HOME", str(tmp_path / str(number)))
        faults = [rng.choice(["", *FAULTS]) for _ in range(rng.randrange(1, 12))]
        with served(own_start="<|s|>", faults=faults) as faulty:
            model = opened(faulty)
            try:
                row.wrong += differing(suite, model)
                row.note("ended well at once")
            except ModelError:
                row.note("told of an error")
            row.injected += sum(fault != "" for fault in faults) - sum(fault != "" for fault in faulty.faults)
            faulty.faults.clear()
            row.wrong += differing(suite, model)
    assert row.wrong == 0


def opened(faulty: Faulty) -> Remote:
    """Return the model of a server, without real waiting times."""
    patience = RetryPolicy(timeout=120.0, tries=2, sleep=lambda _: None, jitter=lambda: 1.0)
    return Remote(CompletionsServer(faulty.url, patience, connections=2), "toy", batch=2, start="server")


def differing(suite: Suite, model: Remote) -> int:
    """Return how many sentences have other scores than the server's model gives them."""
    return sum(
        output.logprobs.tolist() != pytest.approx(truth(sentence.text, "<|s|>"), abs=1e-6)
        for sentence, output in iter_model_outputs(suite, model)
    )
