"""A completions server on the network: asked again when it stumbles, told apart from one that cannot help.

Speaks the protocol that OpenAI's older ``/completions`` made common, with ``echo`` and
``logprobs``. The key comes from the environment and goes nowhere but into the request.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property
from random import Random
from typing import Any, TypeVar

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError, Timeout

from acceptability.errors import ModelError, reason, shorten

T = TypeVar("T")
GENERATED = 1
"""How many tokens a server is asked to add: some take 0 to mean "as many as there is room for"."""

_KEYS = ("ACCEPTABILITY_API_KEY", "OPENAI_API_KEY")
_TOO_MANY, _TIMED_OUT, _NOT_IMPLEMENTED = 429, 408, 501
_LONGEST_PAUSE = 60.0
_LONGEST_DEMAND = 600.0
_SECONDS_TO_CONNECT = 10.0
_ROUNDING = 1e-6
_STANDS_FOR_NEVER = -9999.0
"""What vLLM writes for minus infinity, which JSON cannot."""


class Stumbled(Exception):
    """Something that may go right the next time.

    Args:
        after: How many seconds the server asks to be left alone.
    """

    def __init__(self, problem: str, *, after: float | None = None) -> None:
        super().__init__(problem)
        self.after = after


class Refused(ModelError):
    """An answer that will not change by asking again."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Patience:
    """How long a server is waited for.

    Args:
        timeout: Seconds of silence after which a request counts as lost.
        tries: How often something is asked at most.
        pause: Seconds before the second try; doubled before each further one.
        sleep: What waits.
        chance: Gives numbers from 0 to 1, so that many who wait do not come back at once.
    """

    timeout: float = 120.0
    tries: int = 6
    pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    chance: Callable[[], float] = field(default_factory=lambda: Random().random)

    def wait(self, tried: int, demanded: float | None) -> None:
        """Wait before the next try: ever longer, and at least as long as the server demands."""
        longest = min(self.pause * 2 ** (tried - 1), _LONGEST_PAUSE)
        self.sleep(max(longest * (0.5 + 0.5 * self.chance()), demanded or 0.0))


@dataclass(frozen=True)
class Echo:
    """What a server said of one prompt: its tokens, and perhaps tokens that it added.

    Args:
        logprobs: As they came, unchecked; None where the server gave none.
        offsets: Where the server says that the tokens begin, unchecked.
        alternatives: What else could have stood in each place, with log-probabilities.
        is_cut: Whether the server stopped because it had added all that it was asked to.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[object, ...]
    offsets: tuple[object, ...]
    alternatives: tuple[object, ...]
    is_cut: bool


@dataclass(frozen=True)
class Server:
    """A completions server, by the address that ``/completions`` is put after."""

    url: str
    patience: Patience = field(default_factory=Patience)
    connections: int = 8

    def models(self) -> list[Mapping[str, Any]]:
        """Return what the server says of the models that it serves."""
        return self._asked("/models", None, _listed, "which models it serves")

    def echoes(self, model: str, prompts: Sequence[str], alternatives: int, read: Callable[[list[Echo]], T]) -> T:
        """Return what is read from the echoes of some prompts; asked again where reading stumbles."""
        body = {
            "model": model,
            "prompt": prompts[0] if len(prompts) == 1 else list(prompts),
            "max_tokens": GENERATED,
            "temperature": 0,
            "echo": True,
            "logprobs": alternatives,
        }
        what = repr(shorten(prompts[0])) + (f" and {len(prompts) - 1} more" if len(prompts) > 1 else "")
        return self._asked("/completions", body, lambda answer: read(_echoes(answer, len(prompts))), what)

    def _asked(self, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], T], what: str) -> T:
        asked = f"{self.url}{path}, asked about {what}"
        for tried in range(1, self.patience.tries + 1):
            try:
                return read(self._answer(path, body, asked))
            except Stumbled as stumbled:
                problem = stumbled
            if (problem.after or 0.0) > _LONGEST_DEMAND:
                break
            if tried < self.patience.tries:
                self.patience.wait(tried, problem.after)
        raise ModelError(
            f"{asked}: {problem}. Given up after {tried} {'try' if tried == 1 else 'tries'}; "
            "running again asks only for what is missing."
        ) from problem

    def _answer(self, path: str, body: Mapping[str, Any] | None, asked: str) -> Any:
        method, silence = ("POST" if body else "GET"), self.patience.timeout
        try:
            answer = self._session.request(
                method,
                self.url + path,
                json=body,
                timeout=(min(silence, _SECONDS_TO_CONNECT), silence),
                allow_redirects=False,
                auth=_with_key,
            )
        except Timeout as error:
            raise Stumbled(f"no answer within {silence:g} seconds") from error
        except (requests.ConnectionError, ChunkedEncodingError, ContentDecodingError) as error:
            raise Stumbled(f"the connection failed ({type(error).__name__}; is the server running?)") from error
        except requests.RequestException as error:
            raise ModelError(f"{asked}: {_without_key(reason(error))}") from error
        _check_status(answer, asked)
        try:
            return json.loads(answer.content)
        except ValueError as error:
            raise Stumbled("its answer is not whole: it does not read as JSON") from error

    @cached_property
    def _session(self) -> requests.Session:
        session = requests.Session()
        for scheme in ("http://", "https://"):
            session.mount(scheme, HTTPAdapter(pool_maxsize=self.connections))
        return session


def _check_status(answer: requests.Response, asked: str) -> None:
    status = answer.status_code
    said = f"it answered {status}: {_message(answer)}"
    if status in (_TOO_MANY, _TIMED_OUT) or (status >= 500 and status != _NOT_IMPLEMENTED):
        after = _seconds(answer.headers.get("Retry-After", ""))
        raise Stumbled(said + (f" (and asks to wait {after:.0f} seconds)" if after else ""), after=after)
    if status != requests.codes.ok:
        raise Refused(f"{asked}: {said}", status)


def _listed(answer: Any) -> list[Mapping[str, Any]]:
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not all(isinstance(each, dict) and "id" in each for each in entries):
        raise Stumbled("its answer is no list of models")
    return entries


def _echoes(answer: Any, count: int) -> list[Echo]:
    """Return the echoes in the order of the prompts, whatever order they came in."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not all(isinstance(each, dict) for each in choices):
        raise Stumbled("its answer has no choices")
    if len(choices) != count:
        raise Stumbled(f"it answered {count} prompts with {len(choices)} choices")
    numbers = [each.get("index", 0 if count == 1 else None) for each in choices]
    if not all(isinstance(each, int) for each in numbers) or sorted(numbers) != list(range(count)):
        raise Stumbled("the numbers of its choices are not those of the prompts")
    return [_echo(choices[numbers.index(place)]) for place in range(count)]


def _echo(choice: Mapping[str, Any]) -> Echo:
    found = choice.get("logprobs")
    if not isinstance(found, dict) or "tokens" not in found or "token_logprobs" not in found:
        raise cannot_echo("gives no log-probabilities of prompts")
    tokens, logprobs = found["tokens"], found["token_logprobs"]
    if not isinstance(tokens, list) or not isinstance(logprobs, list) or len(tokens) != len(logprobs):
        raise Stumbled("tokens and log-probabilities differ in number")
    if not all(isinstance(each, str) for each in tokens):
        raise Stumbled("its tokens are no texts")
    offsets, alternatives = (_filled(found.get(name), len(tokens)) for name in ("text_offset", "top_logprobs"))
    return Echo(tuple(tokens), tuple(logprobs), offsets, alternatives, choice.get("finish_reason") == "length")


def _filled(found: object, count: int) -> tuple[object, ...]:
    """Return a list that a server gives for tokens, or Nones if it is none."""
    return tuple(found) if isinstance(found, list) and len(found) == count else (None,) * count


def checked_logprob(logprob: object, token: str) -> float:
    """Return a log-probability that can be one."""
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise Stumbled(f"the token {token!r} has no log-probability")
    if not _STANDS_FOR_NEVER < logprob <= _ROUNDING:
        raise Stumbled(f"the log-probability of {token!r} is {logprob}")
    return float(logprob)


def cannot_echo(what: str) -> ModelError:
    """Return the error for a server that is of no use here."""
    return ModelError(
        f"the server {what}, so it cannot score sentences. The servers of vLLM and of llama-cpp-python can "
        "(see how to score through a server in the documentation); or open the model itself with causal:…"
    )


def _message(answer: requests.Response) -> str:
    """Return what a server says about an error, in one line."""
    try:
        said = json.loads(answer.content)
    except ValueError:
        said = answer.text
    for name in ("error", "message", "detail"):
        said = said.get(name, said) if isinstance(said, dict) else said
    return shorten(" ".join(_without_key(str(said)).split()) or str(answer.reason), 300)


def _seconds(header: str) -> float | None:
    """Return how long a Retry-After header asks to wait: it holds seconds or a date."""
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def _key() -> str:
    """Return the key; an empty ACCEPTABILITY_API_KEY means none."""
    return next((os.environ[name] for name in _KEYS if name in os.environ), "")


def _with_key(request: requests.PreparedRequest) -> requests.PreparedRequest:
    if _key():
        request.headers["Authorization"] = f"Bearer {_key()}"
    return request


def _without_key(message: str) -> str:
    return message.replace(_key(), "…") if _key() else message
