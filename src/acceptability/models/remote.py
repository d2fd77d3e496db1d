"""Language models behind a completions server that echoes the log-probabilities of a prompt.

Written ``remote:http://localhost:8000/v1#MODEL``. The signature names the model and what the
server says of it, not the server's address; ``version='…'`` replaces what the server says, and
then it is not asked. With ``bos='auto'`` the first token is scored where the server puts a
start token before it and shows it (``bos='server'`` in the signature), else it is left
unscored (``bos=None``). ``bos='TOKEN'`` puts a text before each sentence, which is not scored.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import urlsplit

import numpy as np

from acceptability.errors import ModelError, SpellingError, shorten
from acceptability.models.completions import Echo, Patience, Refused, Server, checked_logprob
from acceptability.models.echoed import spans
from acceptability.models.files import remembered
from acceptability.models.habits import Habits, habits_of
from acceptability.signature import fingerprint
from acceptability.spelling import write
from acceptability.types import Query, Span, TokenScores

_SERVERS_OWN = "server"
_CHARACTERS_PER_TOKEN = 4
_TOKENS_PER_TEXT = 16
_FACTS = ("id", "root", "parent", "owned_by", "meta")
_TOO_MUCH = (400, 413, 422)


@dataclass(frozen=True)
class Prompt:
    """A query on its way to the server; only there is it cut into tokens."""

    query: Query

    @property
    def size(self) -> int:
        """About how many tokens it has."""
        return len(self.query.full) // _CHARACTERS_PER_TOKEN + 1


@dataclass(frozen=True)
class Remote:
    """A language model that a server runs."""

    server: Server
    name: str
    start: str | None = "auto"
    pinned: str | None = None
    batch: int = 16

    @property
    def signature(self) -> str:
        """The model's name, what its server says of it, and what stands before a text."""
        return write(f"remote:{self.name}@{self.version}", {"bos": self.bos})

    @property
    def budget(self) -> int:
        """How many tokens keep all connections busy."""
        return self.server.connections * self.batch * _TOKENS_PER_TEXT

    @cached_property
    def version(self) -> str:
        """What was pinned, or a fingerprint of what the server says of the model."""
        return self.pinned or _version(self.server, self.name)

    @cached_property
    def bos(self) -> str | None:
        """What stands before a text: a token, "server" for the server's own, or None: the first is not scored."""
        if self.start != "auto":
            return self.start
        version = fingerprint(each.encode() for each in (self.server.url, self.name, self.version))
        found = remembered(f"remote-{version}", "bos", lambda: _SERVERS_OWN if self._plain.scores_first else None)
        return found if isinstance(found, str) else None

    @cached_property
    def habits(self) -> Habits:
        """How the server answers with the start that was chosen, tried out once."""
        habits = self._habits(self._before) if self._before else self._plain
        if self.bos is not None and not habits.scores_first:
            raise ModelError(
                f"{self.server.url}: the server gives the first token after bos={self.bos!r} no log-probability"
                f"{_swallowed(self._before) if not habits.before else ''}. Write bos=None to leave it unscored."
            )
        self._check_same(habits)
        return habits

    def _check_same(self, habits: Habits) -> None:
        """Refuse a server that says the same of itself as an earlier one, but not the same of a text."""
        earlier = remembered(f"remote-{fingerprint([self.signature.encode()])}", "answer", lambda: habits.answer)
        if not isinstance(earlier, list | tuple) or not habits.is_like(earlier):
            raise ModelError(
                f"{self.server.url} does not answer as the server did whose scores are stored as {self.signature}: "
                "it runs another model, or other settings. Give it a version of its own: version='…'."
            )

    @cached_property
    def _plain(self) -> Habits:
        return self._habits("")

    def _habits(self, before: str) -> Habits:
        return habits_of(self.server, self.name, before, lists=self.batch > 1)

    @property
    def _before(self) -> str:
        return "" if self.bos in (None, _SERVERS_OWN) else str(self.bos)

    def encode(self, queries: Sequence[Query]) -> list[Prompt]:
        """Return the queries as they are: the server has the tokenizer."""
        return [Prompt(query) for query in queries]

    def run(self, batch: Sequence[Prompt]) -> list[TokenScores]:
        """Return the log-probabilities that the server gives, asked for over several connections."""
        most = self.batch if self.habits.takes_lists else 1
        count = min(most, math.ceil(len(batch) / self.server.connections))
        parts = [batch[start : start + count] for start in range(0, len(batch), count)]
        with ThreadPoolExecutor(self.server.connections) as pool:
            try:
                asked = [pool.submit(self._asked, part) for part in parts]
                return [said for each in asked for said in each.result()]
            finally:
                # After a failure what has not been sent is not sent; what is under way ends first.
                pool.shutdown(cancel_futures=True)

    def _asked(self, part: Sequence[Prompt]) -> list[TokenScores]:
        prompts = [self._before + each.query.full for each in part]
        try:
            return self.server.echoes(
                self.name, prompts, 1, lambda echoes: [self._said(*each) for each in zip(part, echoes, strict=True)]
            )
        except Refused as error:
            if len(part) == 1 or error.status not in _TOO_MUCH:
                raise
        # One of them is too much for the server: alone, it is named.
        return [said for each in part for said in self._asked([each])]

    def _said(self, prompt: Prompt, echo: Echo) -> TokenScores:
        query, before = prompt.query, self.habits.before
        tokens, logprobs = echo.tokens[before:], echo.logprobs[before:]
        offsets = spans(tokens, query.full, told=echo.offsets[before:], is_cut=echo.is_cut)
        wanted = [place for place in _in_target(query, offsets) if place > 0 or self.bos is not None]
        if not wanted:
            raise ModelError(
                f"the server scores no token of {shorten(query.text)!r}: the first one has nothing before it. "
                "Write bos='TOKEN' with a token that the model knows as the start of a text."
            )
        return TokenScores(
            query.text,
            tuple(tokens[place] for place in wanted),
            tuple(_within(query, offsets[place]) for place in wanted),
            np.array([checked_logprob(logprobs[place], tokens[place]) for place in wanted], dtype=np.float32),
        )


def open_model(
    place: str,
    *,
    bos: str | None = "auto",
    version: str | None = None,
    concurrency: int = 8,
    batch: int = 16,
    tries: int = 6,
    timeout: float = 120.0,
) -> Remote:
    """Return the model of a name at a server's address."""
    url, _, name = place.partition("#")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or not name:
        raise SpellingError(f"remote:{place}: write remote:URL#MODEL, as in remote:http://localhost:8000/v1#MODEL")
    if parts.username or parts.password or parts.query:
        raise SpellingError("remote: a key does not belong into the address; set ACCEPTABILITY_API_KEY to it")
    for option, text in (("bos", bos), ("version", version)):
        if text is not None and (not isinstance(text, str) or not text):
            raise ModelError(f"remote: {option} is {text!r}; expected a text or None")
    for option, number in (("concurrency", concurrency), ("batch", batch), ("tries", tries)):
        if isinstance(number, bool) or not isinstance(number, int) or number < 1:
            raise ModelError(f"remote: {option} is {number!r}; expected a whole number from 1")
    if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
        raise ModelError(f"remote: timeout is {timeout!r}; expected seconds")
    server = Server(url.rstrip("/"), Patience(timeout=timeout, tries=tries), connections=concurrency)
    return Remote(server, name, start=bos, pinned=version, batch=batch)


def _version(server: Server, name: str) -> str:
    try:
        listed = server.models()
    except ModelError as error:
        raise ModelError(f"{error} If you know which model it serves, version='…' says so, without asking.") from error
    for entry in listed:
        if entry["id"] == name:
            return _fingerprint_of(entry)
    names = ", ".join(repr(each["id"]) for each in listed) or "none"
    raise ModelError(f"{server.url} serves no model {name!r}; it serves: {names}. Write remote:{server.url}#MODEL")


def _fingerprint_of(entry: Mapping[str, object]) -> str:
    facts = {name: entry[name] for name in _FACTS if entry.get(name) is not None}
    return fingerprint([json.dumps(facts, sort_keys=True).encode()])


def _swallowed(before: str) -> str:
    if not before:
        return ": it shows no start token of its own"
    return ", because it leaves that start out of its echo; if there is a second token after it, that one is shown"


def _in_target(query: Query, offsets: Sequence[Span]) -> list[int]:
    """Return which tokens of the full text lie in what the query asks about."""
    start, end = (query.start + each for each in query.target or (0, len(query.text)))
    return [place for place, (a, b) in enumerate(offsets) if a < end and b > start]


def _within(query: Query, span: Span) -> Span:
    """Return a span of the full text as a span of the query's own text."""
    return max(span[0] - query.start, 0), max(span[1] - query.start, 0)
