"""A completions server whose answers are known, and which can be told to go wrong."""

from __future__ import annotations

import hashlib
import json
import re
import socket
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

TOKEN = re.compile(r"<\|\w+\|>| ?[^\W\d_]+|\s|.", re.DOTALL)
FAULTS = (
    "drop", "429", "500", "cut", "half", "no json", "shuffled", "swapped", "wrong tokens", "shorter",
    "nan", "positive", "never", "null", "fewer", "no numbers",
)  # fmt: skip
REQUESTS_FOR_HABITS = 3


def number(*parts: object) -> float:
    """Return a number from 0 to 1 that depends on the parts alone."""
    return int(hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:8], 16) / 0xFFFFFFFF


def logprob(before: str, token: str) -> float:
    """Return what the server's model says of a token after a text."""
    return -0.25 - 9 * number(before, token)


def truth(text: str, before: str = "") -> list[float]:
    """Return the log-probabilities of the tokens of a text."""
    tokens = TOKEN.findall(text)
    return [logprob(before + "".join(tokens[:token_index]), token) for token_index, token in enumerate(tokens)]


@dataclass
class Faulty:
    """What the server is like, what it is to do wrong, and what it was asked."""

    own_start: str = ""
    shows_start: bool = True
    takes_lists: bool = True
    is_shifted: bool = False
    echoes: bool = True
    gives_alternatives: bool = True
    gives_offsets: bool = True
    adds_token: bool = True
    listed: tuple[dict[str, object], ...] = ({"id": "toy", "root": "toys/toy", "owned_by": "us", "created": 1},)
    refusal: str = "refused"
    lives_for: int | None = None
    faults: deque[str] = field(default_factory=deque)
    asked: Counter[str] = field(default_factory=Counter)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, object]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    url: str = ""

    def fault(self, prompts: list[str]) -> str:
        """Return what goes wrong with this request, if anything."""
        with self.lock:
            if self.lives_for is not None and sum(self.asked.values()) + len(prompts) > self.lives_for:
                return "drop"
            found = self.faults.popleft() if self.faults else ""
            if found in ("", "shuffled"):
                self.asked.update(prompts)
            return found

    def choice(self, index: int, prompt: str, count: int) -> dict[str, object]:
        """Return the right answer to a prompt."""
        tokens = TOKEN.findall(self.own_start + prompt)
        shown = [*tokens, "!"] if self.adds_token else tokens
        logprobs: list[float | None] = []
        alternatives: list[dict[str, float] | None] = []
        for token_index, token in enumerate(shown):
            before = "".join(shown[: token_index + self.is_shifted])
            logprobs.append(logprob(before, token))
            others = {f"word{rank}": logprob(before, f"word{rank}") for rank in range(count)}
            alternatives.append(others | {token: logprobs[-1]})
        hidden = len(TOKEN.findall(self.own_start)) if not self.shows_start else 0
        shown, logprobs, alternatives = shown[hidden:], logprobs[hidden:], alternatives[hidden:]
        if not self.echoes:
            shown, logprobs, alternatives = ["!"], logprobs[-1:], alternatives[-1:]
        else:
            logprobs[0] = alternatives[0] = None
        found: dict[str, object] = {"tokens": shown, "token_logprobs": logprobs}
        if self.gives_offsets:
            found["text_offset"] = [len("".join(shown[:token_index])) for token_index in range(len(shown))]
        if self.gives_alternatives:
            found["top_logprobs"] = alternatives
        return {"index": index, "text": "".join(shown), "finish_reason": "length", "logprobs": found}


def spoil_choices(choices: list[dict[str, object]], fault: str) -> list[dict[str, object]]:
    """Return choices with something wrong in the last of them."""
    last = choices[-1]["logprobs"]
    if fault == "shuffled":
        return choices[::-1]
    if fault == "swapped":
        for index, each in enumerate(choices[::-1]):
            each["index"] = index + (len(choices) == 1)
    elif fault == "wrong tokens":
        last["tokens"][-2] = " wrong"
    elif fault == "shorter":
        last["tokens"].pop()
    elif fault in ("nan", "positive", "never", "null"):
        wrong = {"nan": float("nan"), "positive": 0.5, "never": -9999.0, "null": None}[fault]
        last["token_logprobs"][-2] = wrong
    elif fault == "fewer":
        choices.pop()
    elif fault == "no numbers":
        last["token_logprobs"] = ["-1.0"] * len(last["tokens"])
    return choices


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Headers and body are two writes, of which the second would wait 40 ms for the first to be acknowledged.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        faulty: Faulty = self.server.faulty
        faulty.headers.append(dict(self.headers))
        self._answer(200, json.dumps({"object": "list", "data": faulty.listed}))

    def do_POST(self) -> None:
        faulty: Faulty = self.server.faulty
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        faulty.headers.append(dict(self.headers))
        faulty.bodies.append(body)
        prompts = body["prompt"] if isinstance(body["prompt"], list) else [body["prompt"]]
        fault = faulty.fault(prompts)
        if fault == "drop":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        elif fault == "slow":
            faulty.over.wait(5)
            self.close_connection = True
        elif fault.isdigit():
            message = {"error": {"message": f"{faulty.refusal}: {self.headers.get('Authorization')}"}}
            self._answer(int(fault), json.dumps(message), {"Retry-After": "7"} if fault == "429" else {})
        elif len(prompts) > 1 and not faulty.takes_lists:
            self._answer(500, "")
        else:
            choices = [faulty.choice(index, prompt, body["logprobs"]) for index, prompt in enumerate(prompts)]
            text = json.dumps({"choices": spoil_choices(choices, fault)})
            self._answer(
                200, {"half": text[: len(text) // 2], "no json": "<html>"}.get(fault, text), is_cut=fault == "cut"
            )

    def _answer(self, status: int, text: str, headers: dict[str, str] | None = None, *, is_cut: bool = False) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if is_cut else data)
        self.close_connection = self.close_connection or is_cut

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    faulty: Faulty

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients hang up here on purpose."""


@contextmanager
def served(**options: object) -> Iterator[Faulty]:
    """Run a server on a free port for a while."""
    faults: Iterable[str] = options.pop("faults", ())
    server = _Server(("127.0.0.1", 0), Handler)
    server.faulty = Faulty(**options, faults=deque(faults))
    server.faulty.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.faulty
    finally:
        server.faulty.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def toy_server() -> Iterator[Faulty]:
    """A server that puts a start token before every text, and does nothing wrong until it is told to."""
    with served(own_start="<|s|>") as faulty:
        yield faulty
