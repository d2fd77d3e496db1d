"""Language models behind a completions server that echoes the log-probabilities of a prompt.

Written ``remote:http://localhost:8000/v1#MODEL``. The signature holds the model's name and a fingerprint of the
server's entry for it, not the server's address; ``version='…'`` replaces the fingerprint, and then the server is not
queried for it. With ``bos='auto'`` the first token is scored if the server puts a start token before the text and
echoes it (``bos='server'`` in the signature), else it is left unscored (``bos=None``). ``bos='TOKEN'`` is sent before
each sentence and not scored.

``completions_client`` has the HTTP requests with their retry policy, ``server_capabilities`` finds out how a server
answers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import urlsplit

import numpy as np

from acceptability.errors import ModelError, SpecError, shorten
from acceptability.models.files import get_cached_fact
from acceptability.models.remote.completions_client import (
    CompletionsServer,
    Echo,
    RejectedError,
    RetryPolicy,
    name_key_variable,
    validate_logprob,
)
from acceptability.models.remote.server_capabilities import ServerCapabilities, align_tokens, probe_server
from acceptability.protocols import Model
from acceptability.specs import fingerprint, format_spec
from acceptability.types import Query, Span, TokenPredictions, TokenScores

_SERVER_BOS = "server"
# Only the server has the tokenizer, so that the plan of the work has to estimate lengths.
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_TEXT = 16
# Not ``created``: servers set it to the time when they were started, and a restart must not make another signature.
_VERSION_FIELDS = ("id", "root", "parent", "owned_by", "meta")
_HOST = re.compile(r"[a-z0-9._:-]+")
# With these, servers reject a prompt that is too long or a request that is too large.
_TOO_LARGE_STATUSES = (400, 413, 422)


@dataclass(frozen=True)
class RemoteEncoding:
    """A query to be sent to the server, which tokenizes it."""

    query: Query

    @property
    def size(self) -> int:
        """The approximate number of tokens."""
        return len(self.query.full_text) // _CHARACTERS_PER_TOKEN + 1


@dataclass(frozen=True)
class Remote(Model):
    """A language model on a server.

    Args:
        name: The model's name on the server.
        start: The option ``bos``: "auto", "server", None, or a text that is sent before each sentence.
        pinned: The option ``version``; None to use a fingerprint of the server's entry for the model.
        batch: The maximum number of texts per request.
        top: How many alternatives are requested for each token; 0 for none, and then outputs are token scores alone.
    """

    server: CompletionsServer
    name: str
    start: str | None = "auto"
    pinned: str | None = None
    batch: int = 16
    top: int = 0

    @property
    def signature(self) -> str:
        """The model's name, its version, and what precedes a text."""
        predictions = {"predictions": self.top} if self.top else {}
        return format_spec(f"remote:{self.name}@{self.version}", {"bos": self.bos, **predictions})

    def as_predictor(self, top: int) -> Model:
        """Return the variant that also gives the alternatives that the server returns; it gives no entropies."""
        return replace(self, top=top)

    @property
    def budget(self) -> int:
        """How many tokens keep all connections busy."""
        return self.server.connections * self.batch * _TOKENS_PER_TEXT

    @cached_property
    def version(self) -> str:
        """The pinned version, or a fingerprint of the server's entry for the model."""
        return self.pinned or _fetch_version(self.server, self.name)

    @cached_property
    def bos(self) -> str | None:
        """What precedes a text: a token, "server" for the server's own, or None if the first token is unscored."""
        if self.start != "auto":
            return self.start
        # Remembered on disk, so that stored scores can be read while the server is down.
        version = fingerprint(part.encode() for part in (self.server.url, self.name, self.version))
        cached_bos = get_cached_fact(
            f"remote-{version}",
            "bos",
            lambda: _SERVER_BOS if self._capabilities_without_bos.scores_first_token else None,
        )
        return cached_bos if isinstance(cached_bos, str) else None

    @cached_property
    def capabilities(self) -> ServerCapabilities:
        """The server's capabilities with the chosen ``bos``, probed once."""
        capabilities = self._probe_capabilities(self._prefix) if self._prefix else self._capabilities_without_bos
        if self.bos is not None and not capabilities.scores_first_token:
            reason = "" if capabilities.prefix_count else _explain_missing_start(self._prefix)
            raise ModelError(
                f"{self.server.url}: the first token after bos={self.bos!r} gets no log-probability{reason}. "
                "Write bos=None to leave it unscored."
            )
        self._check_same_model(capabilities)
        return capabilities

    def _check_same_model(self, capabilities: ServerCapabilities) -> None:
        """Refuse a server whose log-probabilities of the probe text differ from earlier ones under the same signature.

        Servers do not report everything: the weights may have another precision under the same name, and new scores
        would be mixed with the stored ones.
        """
        earlier = get_cached_fact(
            f"remote-{fingerprint([self.signature.encode()])}", "answer", lambda: capabilities.probe_logprobs
        )
        if not isinstance(earlier, list | tuple) or not capabilities.matches(earlier):
            raise ModelError(
                f"{self.server.url} does not return the log-probabilities that are stored for {self.signature}: "
                "it runs another model, or other settings. Give it a version of its own: version='…'."
            )

    @cached_property
    def _capabilities_without_bos(self) -> ServerCapabilities:
        return self._probe_capabilities("")

    def _probe_capabilities(self, prefix: str) -> ServerCapabilities:
        return probe_server(self.server, self.name, prefix, try_lists=self.batch > 1)

    @property
    def _prefix(self) -> str:
        """The text that is sent before each sentence."""
        return "" if self.bos in (None, _SERVER_BOS) else str(self.bos)

    def encode(self, queries: Sequence[Query]) -> list[RemoteEncoding]:
        """Return the queries unchanged: the server has the tokenizer."""
        return [RemoteEncoding(query) for query in queries]

    def run(self, batch: Sequence[RemoteEncoding]) -> list[TokenScores]:
        """Return the token log-probabilities from the server, requested over several connections in parallel."""
        max_prompts = self.batch if self.capabilities.takes_lists else 1
        # A small batch is spread over all connections, rather than sent in a few full requests.
        count = min(max_prompts, math.ceil(len(batch) / self.server.connections))
        chunks = [batch[start : start + count] for start in range(0, len(batch), count)]
        with ThreadPoolExecutor(self.server.connections) as pool:
            try:
                futures = [pool.submit(self._request_scores, chunk) for chunk in chunks]
                return [scores for future in futures for scores in future.result()]
            finally:
                # After a failure, queued requests are dropped: each would go through all its retries before the error
                # is raised. Open requests are waited for.
                pool.shutdown(cancel_futures=True)

    def _request_scores(self, chunk: Sequence[RemoteEncoding]) -> list[TokenScores]:
        """Return the scores of the texts of one request."""
        prompts = [self._prefix + encoded.query.full_text for encoded in chunk]
        try:
            return self.server.request_echoes(
                self.name,
                prompts,
                max(1, self.top),
                # Converted within the request, so that an echo that does not fit its text is retried.
                lambda echoes: [
                    self._build_token_scores(encoded, echo) for encoded, echo in zip(chunk, echoes, strict=True)
                ],
            )
        except RejectedError as error:
            if len(chunk) == 1 or error.status not in _TOO_LARGE_STATUSES:
                raise
        # One of the texts is too long for the server. Sent one by one, the others are scored and the error names it.
        return [scores for encoded in chunk for scores in self._request_scores([encoded])]

    def _build_token_scores(self, encoded: RemoteEncoding, echo: Echo) -> TokenScores:
        query, prefix_count = encoded.query, self.capabilities.prefix_count
        tokens, logprobs = echo.tokens[prefix_count:], echo.logprobs[prefix_count:]
        offsets = align_tokens(
            tokens, query.full_text, server_offsets=echo.offsets[prefix_count:], hit_length_limit=echo.hit_length_limit
        )
        scored_positions = [
            position for position in _find_target_tokens(query, offsets) if position > 0 or self.bos is not None
        ]
        if not scored_positions:
            raise ModelError(
                f"the server scores no token of {shorten(query.text)!r}: the first token has no context. "
                "Write bos='TOKEN' with a token that the model knows as the start of a text."
            )
        scores = TokenScores(
            query.text,
            tuple(tokens[position] for position in scored_positions),
            tuple(_shift_to_query_text(query, offsets[position]) for position in scored_positions),
            np.array(
                [validate_logprob(logprobs[position], tokens[position]) for position in scored_positions],
                dtype=np.float32,
            ),
        )
        if not self.top:
            return scores
        alternatives = echo.top_logprobs[prefix_count:]
        return _add_alternatives(scores, [alternatives[position] for position in scored_positions], self.top)


def _add_alternatives(scores: TokenScores, alternatives: Sequence[object], top: int) -> TokenPredictions:
    """Return token scores with the alternatives that a server lists for each, and what follows from them.

    The rank of a token is known if it is among them; entropies would need the whole distribution.
    """
    top_logprobs = np.full((len(scores.tokens), top), -np.inf, np.float32)
    top_tokens: list[tuple[str, ...]] = []
    ranks, cumulative = np.zeros(len(scores.tokens), np.int64), np.full(len(scores.tokens), np.nan, np.float32)
    for row, (listed, token) in enumerate(zip(alternatives, scores.tokens, strict=True)):
        pairs = listed.items() if isinstance(listed, Mapping) else ()
        # A server may add the token of the text to the list, as one more than were asked for.
        best = sorted(((validate_logprob(value, name), name) for name, value in pairs), reverse=True)
        names = [name for _, name in best]
        if token in names[:top]:
            ranks[row] = names.index(token) + 1
            cumulative[row] = min(1.0, sum(math.exp(value) for value, _ in best[: ranks[row]]))
        top_tokens.append(tuple(names[:top]))
        top_logprobs[row, : len(best[:top])] = [value for value, _ in best[:top]]
    if not any(top_tokens):
        raise ModelError("the server returns no alternatives (top_logprobs), so that there are no ranks either")
    unknown = np.full(len(scores.tokens), np.nan, np.float32)
    return TokenPredictions(
        *(scores.text, scores.tokens, scores.offsets, scores.logprobs, scores.unknown, ()),
        *(unknown, unknown, ranks, cumulative, tuple(top_tokens), top_logprobs),
    )


def open_model(
    location: str,
    *,
    bos: str | None = "auto",
    version: str | None = None,
    concurrency: int = 8,
    batch: int = 16,
    tries: int = RetryPolicy.tries,
    timeout: float = RetryPolicy.timeout,
) -> Remote:
    """Return a model on a server.

    Args:
        location: ``URL#MODEL``.
        bos: What precedes a text: "auto", "server", None, or a text such as a start token.
        version: Replaces the fingerprint of the server's entry for the model in the signature.
        concurrency: How many requests are open at the same time.
        batch: The maximum number of texts per request.
        tries: The maximum number of attempts per request.
        timeout: Seconds without an answer after which a request counts as failed.
    """
    url, _, name = location.partition("#")
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError as error:
        raise SpecError(f"remote:{shorten(location)} is no address: {error}") from error
    if parts.scheme not in ("http", "https") or not host or not name:
        raise SpecError(f"remote:{location}: write remote:URL#MODEL, as in remote:http://localhost:8000/v1#MODEL")
    # The message does not repeat the address, which would put the key into logs and reports.
    if parts.username or parts.password or parts.query:
        raise SpecError(f"remote: the address must not contain a key; set {name_key_variable(host)} instead")
    # A key belongs to a host. With any other characters, two parsers of addresses could take it for different ones.
    if not (_HOST.fullmatch(host) and url.isascii() and url.isprintable()):
        raise SpecError(f"remote: {shorten(url)!r} is no address in plain ASCII; write an international name as xn--…")
    for option, text in (("bos", bos), ("version", version)):
        if text is not None and (not isinstance(text, str) or not text):
            raise ModelError(f"remote: {option} is {text!r}; expected a text or None")
    for option, number in (("concurrency", concurrency), ("batch", batch), ("tries", tries)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ModelError(f"remote: {option} is {number!r}; expected a whole number from 1")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ModelError(f"remote: timeout is {timeout!r}; expected seconds")
    server = CompletionsServer(url.rstrip("/"), RetryPolicy(timeout=timeout, tries=tries), connections=concurrency)
    return Remote(server, name, start=bos, pinned=version, batch=batch)


def _fetch_version(server: CompletionsServer, name: str) -> str:
    """Return the fingerprint of a server's entry for a model."""
    try:
        models = server.list_models()
    except ModelError as error:
        raise ModelError(
            f"{error} If you know which model it serves, set version='…'; then nothing is requested."
        ) from error
    for entry in models:
        if entry["id"] == name:
            return _fingerprint_model_entry(entry)
    names = ", ".join(repr(entry["id"]) for entry in models) or "none"
    raise ModelError(f"{server.url} serves no model {name!r}; it serves: {names}. Write remote:{server.url}#MODEL")


def _fingerprint_model_entry(entry: Mapping[str, object]) -> str:
    fields = {name: entry[name] for name in _VERSION_FIELDS if entry.get(name) is not None}
    return fingerprint([json.dumps(fields, sort_keys=True).encode()])


def _explain_missing_start(prefix: str) -> str:
    if not prefix:
        return ": it echoes no start token of its own"
    return ", because it leaves that start out of its echo; if a second token follows it, that one is echoed"


def _find_target_tokens(query: Query, offsets: Sequence[Span]) -> list[int]:
    """Return the positions of the tokens of the full text that overlap the query's target."""
    start, end = (query.text_start + offset for offset in query.target or (0, len(query.text)))
    return [position for position, (a, b) in enumerate(offsets) if a < end and b > start]


def _shift_to_query_text(query: Query, span: Span) -> Span:
    """Return a span of the full text as a span of the query's own text."""
    # The first token of the text may begin with the space after the context.
    return max(span[0] - query.text_start, 0), max(span[1] - query.text_start, 0)
