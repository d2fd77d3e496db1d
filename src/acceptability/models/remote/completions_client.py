"""HTTP client for a completions server: requests, retry policy, rate limits, and parsing of echoed prompts.

It speaks OpenAI's older ``/completions`` protocol with ``echo`` and ``logprobs``. Failures are of two kinds: a
transient error (lost connection, timeout, rate limit, status 5xx, malformed answer) is retried with exponential
back-off, a rejected request (any other status) is not. An API key belongs to one host: ``OPENAI_API_KEY`` to OpenAI's,
``ACCEPTABILITY_KEY_<HOST>`` or an entry of the keyring to any other. It is sent with requests only, and unencrypted to
this machine only.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cache, cached_property
from importlib import import_module
from random import Random
from typing import Any, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.exceptions import ChunkedEncodingError, ContentDecodingError, Timeout

from acceptability.errors import ModelError, first_error_line, shorten
from acceptability.models.files import is_importable

_log = logging.getLogger(__name__)

T = TypeVar("T")
# One and not zero: some servers take max_tokens=0 to mean "as many tokens as there is room for".
GENERATED_TOKENS = 1
"""How many tokens a server is asked to generate after the prompt."""

_OPENAI_HOST, _OPENAI_VARIABLE = "api.openai.com", "OPENAI_API_KEY"
# Sent to every host by the version before: to whatever address a file named.
_FORMER_VARIABLES = ("ACCEPTABILITY_API_KEY", _OPENAI_VARIABLE)
_KEYRING_SERVICE = "acceptability"
_RATE_LIMIT, _REQUEST_TIMEOUT, _NOT_IMPLEMENTED = 429, 408, 501
# The limit of our own pauses. A server's Retry-After can ask for a longer one, up to _MAX_RETRY_AFTER.
_MAX_PAUSE = 60.0
# A rate limit that asks for more than ten minutes is better reported at once than waited for in silence.
_MAX_RETRY_AFTER = 600.0
# A long timeout is for slow models; a machine that is switched off should be noticed sooner.
_CONNECT_TIMEOUT = 10.0
# In low precision, log-softmax can round to a little more than 0.
_ROUNDING_TOLERANCE = 1e-6
# JSON has no infinities: this is what vLLM writes for minus infinity.
_VLLM_MINUS_INFINITY = -9999.0


class TransientError(Exception):
    """A transient error: the same request may succeed when it is retried.

    Args:
        retry_after: How many seconds the server asks to wait before the next request, if it says so.
    """

    def __init__(self, problem: str, *, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after


class RejectedError(ModelError):
    """A rejected request: the server's answer would be the same after a retry.

    Args:
        status: The HTTP status of the answer.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class RetryPolicy:
    """Retry policy: exponential back-off with jitter after transient errors.

    Args:
        timeout: Seconds without an answer after which a request counts as failed.
        tries: The maximum number of attempts per request.
        first_pause: Seconds before the second attempt; doubled before each later one.
        sleep: Called with the number of seconds to wait.
        jitter: Returns random numbers from 0 to 1, which spread the retries of parallel connections over time.
    """

    timeout: float = 120.0
    tries: int = 6
    first_pause: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    # A generator of its own, seeded by the operating system: had the caller seeded the global one, all of its
    # processes would retry at the same moments.
    jitter: Callable[[], float] = field(default_factory=lambda: Random().random)

    def wait(self, attempt: int, retry_after: float | None) -> None:
        """Sleep before the next attempt: longer after each one, and at least as long as the server demands.

        Args:
            attempt: The number of attempts made so far, from 1.
            retry_after: Seconds that the server asked for, if any.
        """
        max_pause = min(self.first_pause * 2 ** (attempt - 1), _MAX_PAUSE)
        self.sleep(max(max_pause * (0.5 + 0.5 * self.jitter()), retry_after or 0.0))


@dataclass(frozen=True)
class Echo:
    """A server's echo of one prompt: the prompt's tokens, perhaps followed by generated ones.

    Args:
        logprobs: As received, unchecked; None where the server gives none.
        offsets: The character offsets of the tokens according to the server, unchecked.
        top_logprobs: For each position, the most probable tokens and their log-probabilities, unchecked.
        hit_length_limit: Whether generation stopped because all requested tokens were generated.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[object, ...]
    offsets: tuple[object, ...]
    top_logprobs: tuple[object, ...]
    hit_length_limit: bool


@dataclass(frozen=True)
class CompletionsServer:
    """A completions server.

    Args:
        url: The base address, to which ``/completions`` and ``/models`` are appended.
        connections: How many requests may be open at the same time.
    """

    url: str
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    connections: int = 8

    def list_models(self) -> list[Mapping[str, Any]]:
        """Return the server's entries for the models that it serves."""
        return self._request_with_retries("/models", None, _parse_model_list, "list of models")

    def request_echoes(
        self, model: str, prompts: Sequence[str], top_logprobs: int, read: Callable[[list[Echo]], T]
    ) -> T:
        """Return ``read`` of the echoes of some prompts, in their order.

        Args:
            model: The model's name on the server.
            top_logprobs: How many alternatives are requested for each position.
            read: Converts the echoes. A transient error that it raises, such as for an answer about another text, is
                retried like one of the connection.
        """
        body = {
            "model": model,
            # A single prompt is sent as a plain string: not every server accepts lists.
            "prompt": prompts[0] if len(prompts) == 1 else list(prompts),
            "max_tokens": GENERATED_TOKENS,
            "temperature": 0,
            "echo": True,
            "logprobs": top_logprobs,
        }
        prompt_summary = repr(shorten(prompts[0])) + (f" and {len(prompts) - 1} more" if len(prompts) > 1 else "")
        return self._request_with_retries(
            "/completions", body, lambda answer: read(_parse_echoes(answer, len(prompts))), prompt_summary
        )

    def _request_with_retries(
        self, path: str, body: Mapping[str, Any] | None, read: Callable[[Any], T], subject: str
    ) -> T:
        """Return ``read`` of a server's answer, under the retry policy."""
        request_summary = f"{self.url}{path}, request for {subject}"
        for attempt in range(1, self.retry_policy.tries + 1):
            try:
                return read(self._request_once(path, body, request_summary))
            except TransientError as error:
                problem = error
            if (problem.retry_after or 0.0) > _MAX_RETRY_AFTER:
                break
            if attempt < self.retry_policy.tries:
                self.retry_policy.wait(attempt, problem.retry_after)
        raise ModelError(
            f"{request_summary}: {problem}. Gave up after {attempt} {'attempt' if attempt == 1 else 'attempts'}; "
            "a second run requests only what is missing."
        ) from problem

    def _request_once(self, path: str, body: Mapping[str, Any] | None, request_summary: str) -> Any:
        method, timeout = ("POST" if body else "GET"), self.retry_policy.timeout
        try:
            response = self._session.request(
                method,
                self.url + path,
                json=body,
                timeout=(min(timeout, _CONNECT_TIMEOUT), timeout),
                # Sentences and key go to the address that the user gave and to no other.
                allow_redirects=False,
                # Passed even where there is no key: without ``auth``, requests would send credentials from ~/.netrc.
                auth=self._add_key,
            )
        except Timeout as error:
            raise TransientError(f"no answer within {timeout:g} seconds") from error
        except (requests.ConnectionError, ChunkedEncodingError, ContentDecodingError) as error:
            raise TransientError(f"the connection failed ({type(error).__name__}; is the server running?)") from error
        except requests.RequestException as error:
            raise ModelError(f"{request_summary}: {self._redact_key(first_error_line(error))}") from error
        self._check_status(response, request_summary)
        try:
            return json.loads(response.content)
        except ValueError as error:
            raise TransientError("its answer is incomplete or not JSON") from error

    @cached_property
    def _session(self) -> requests.Session:
        session = requests.Session()
        for scheme in ("http://", "https://"):
            # By default the pool keeps ten connections; any further thread would open a new one for every request.
            session.mount(scheme, HTTPAdapter(pool_maxsize=self.connections))
        # A proxy from the environment would get what is sent to this machine, unencrypted, with the key.
        if urlsplit(self.url).scheme == "http" and _is_loopback(urlsplit(self.url).hostname or ""):
            session.trust_env = False
        return session

    @cached_property
    def _key(self) -> str:
        return find_api_key(self.url)

    def _add_key(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request

    def _redact_key(self, message: str) -> str:
        # Servers may quote the request's headers in their error messages.
        return message.replace(self._key, "…") if self._key else message

    def _check_status(self, response: requests.Response, request_summary: str) -> None:
        """Raise a transient error or a rejected request for any status but 200."""
        status = response.status_code
        problem = f"it answered {status}: {self._read_error_message(response)}"
        # 501 means that the server does not implement the request, which no retry changes.
        if status in (_RATE_LIMIT, _REQUEST_TIMEOUT) or (status >= 500 and status != _NOT_IMPLEMENTED):
            retry_after = _parse_retry_after(response.headers.get("Retry-After", ""))
            raise TransientError(
                problem + (f" (and asks to wait {retry_after:.0f} seconds)" if retry_after else ""),
                retry_after=retry_after,
            )
        if status != requests.codes.ok:
            raise RejectedError(f"{request_summary}: {problem}", status)

    def _read_error_message(self, response: requests.Response) -> str:
        """Return a server's error message as one line, without the API key."""
        try:
            content = json.loads(response.content)
        except ValueError:
            content = response.text
        # OpenAI nests {"error": {"message": …}}; other servers give "message" or "detail" at the top.
        for name in ("error", "message", "detail"):
            content = content.get(name, content) if isinstance(content, dict) else content
        return shorten(" ".join(self._redact_key(str(content)).split()) or str(response.reason), 300)


def _parse_model_list(answer: Any) -> list[Mapping[str, Any]]:
    entries = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
        raise TransientError("its answer is not a list of models")
    return entries


def _parse_echoes(answer: Any, count: int) -> list[Echo]:
    """Return the echoes in the order of the prompts; the protocol lets a server send its choices in any order."""
    choices = answer.get("choices") if isinstance(answer, dict) else None
    if not isinstance(choices, list) or not all(isinstance(choice, dict) for choice in choices):
        raise TransientError("its answer has no choices")
    if len(choices) != count:
        raise TransientError(f"it answered {count} prompts with {len(choices)} choices")
    indices = [choice.get("index", 0 if count == 1 else None) for choice in choices]
    if not all(isinstance(index, int) for index in indices) or sorted(indices) != list(range(count)):
        raise TransientError("the indices of its choices are not those of the prompts")
    return [_parse_echo(choices[indices.index(index)]) for index in range(count)]


def _parse_echo(choice: Mapping[str, Any]) -> Echo:
    logprob_fields = choice.get("logprobs")
    if not isinstance(logprob_fields, dict) or "tokens" not in logprob_fields or "token_logprobs" not in logprob_fields:
        raise make_echo_error("gives no log-probabilities of prompts")
    tokens, logprobs = logprob_fields["tokens"], logprob_fields["token_logprobs"]
    if not isinstance(tokens, list) or not isinstance(logprobs, list) or len(tokens) != len(logprobs):
        raise TransientError("it sent different numbers of tokens and log-probabilities")
    if not all(isinstance(token, str) for token in tokens):
        raise TransientError("its tokens are not strings")
    offsets, top_logprobs = (
        _parse_optional_list(logprob_fields.get(name), len(tokens)) for name in ("text_offset", "top_logprobs")
    )
    return Echo(tuple(tokens), tuple(logprobs), offsets, top_logprobs, choice.get("finish_reason") == "length")


def _parse_optional_list(values: object, count: int) -> tuple[object, ...]:
    """Return an optional list with one entry per token, or as many Nones where it is missing or malformed."""
    return tuple(values) if isinstance(values, list) and len(values) == count else (None,) * count


def validate_logprob(logprob: object, token: str) -> float:
    """Return a log-probability that a server gave a token; raise a transient error if it cannot be one."""
    if isinstance(logprob, bool) or not isinstance(logprob, int | float):
        raise TransientError(f"the token {token!r} has no log-probability")
    # Asking for the valid range also catches NaN, which Python's JSON parser accepts and which fails every comparison.
    if not _VLLM_MINUS_INFINITY < logprob <= _ROUNDING_TOLERANCE:
        raise TransientError(f"the log-probability of {token!r} is {logprob}")
    return float(logprob)


def make_echo_error(problem: str) -> ModelError:
    """Return the error for a server that does not return the log-probabilities of prompts."""
    return ModelError(
        f"the server {problem}, so it cannot score sentences. The servers of vLLM and of llama-cpp-python can "
        "(see how to score through a server in the documentation); or open the model itself with causal:…"
    )


def _parse_retry_after(header: str) -> float | None:
    """Return the seconds that a Retry-After header asks to wait; it holds a number or an HTTP date."""
    try:
        return max(float(header), 0.0)
    except ValueError:
        pass
    try:
        return max(parsedate_to_datetime(header).timestamp() - time.time(), 0.0)
    except ValueError:
        return None


def name_key_variable(host: str) -> str:
    """Return the environment variable that holds the API key of a host.

    >>> name_key_variable("llm.example.org")
    'ACCEPTABILITY_KEY_LLM_EXAMPLE_ORG'
    >>> name_key_variable("my-llm.example.org")
    'ACCEPTABILITY_KEY_MY__LLM_EXAMPLE_ORG'
    >>> name_key_variable("api.openai.com")
    'OPENAI_API_KEY'
    """
    if host == _OPENAI_HOST:
        return _OPENAI_VARIABLE
    # A host whose owner chose a name with "-" for "." must not get the key of the other. In names of hosts, a dot
    # stands alone and hyphens stand within a part, so that the number of underscores tells them apart.
    name = host.upper().replace("_", "___").replace("-", "__")
    return f"ACCEPTABILITY_KEY_{re.sub('[^A-Z0-9_]', '_', name)}"


def find_api_key(url: str) -> str:
    """Return the API key of an address's host, "" for none; raise an error if it would be sent unencrypted.

    An empty variable means none, and hides an entry of the keyring.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    variable = name_key_variable(host)
    key = os.environ[variable] if variable in os.environ else _read_keyring(host)
    if key and parts.scheme != "https" and not _is_loopback(host):
        raise ModelError(
            f"{url}: the key of {host} is not sent over plain http, where others can read it. "
            f"Write https://, use a tunnel to localhost, or set {variable} to an empty text to send none."
        )
    if not key and variable not in os.environ:
        _report_former_key(host)
    return key


def _read_keyring(host: str) -> str:
    """Return a host's key from the system's keyring, "" if there is none or no library for it."""
    if not is_importable("keyring"):
        return ""
    # Imported by name, because the library is not among our dependencies.
    keyring = import_module("keyring")
    try:
        return keyring.get_password(_KEYRING_SERVICE, host) or ""
    except keyring.errors.KeyringError as error:
        _log.warning("the keyring gives no key for %s: %s", host, first_error_line(error))
        return ""


# Cached, so that a run that opens many connections says it once.
@cache
def _report_former_key(host: str) -> None:
    """Log which variable holds the key of a host, for users who set one of the version before."""
    for variable in _FORMER_VARIABLES:
        if os.environ.get(variable):
            _log.warning(
                "%s is not sent to %s; if it needs a key, set %s (to an empty text if not)",
                variable,
                host,
                name_key_variable(host),
            )
            return


def _is_loopback(host: str) -> bool:
    """Return whether a host is this machine.

    >>> _is_loopback("127.0.0.1"), _is_loopback("127.0.0.1.example.org")
    (True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
