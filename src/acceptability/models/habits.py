"""How a completions server answers, tried out on two short texts before it is believed.

Servers differ in what they put before a text and show of it, in whether one request may
hold several texts, and some give a token the log-probabilities of the place after it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from acceptability.errors import ModelError
from acceptability.models.completions import GENERATED, Echo, Refused, Server, Stumbled, cannot_echo, checked_logprob
from acceptability.models.echoed import spans, spells

_log = logging.getLogger(__name__)
# Two texts whose last words call for quite different ones after them.
_PROBES = ("They moved from New", "They moved from San")
_ALTERNATIVES = 5
_SAME = 0.5
_NOISE = 0.25
"""How far answers about one place may lie apart, on average: servers that compute in few bits vary."""


@dataclass(frozen=True)
class Habits:
    """How a server answers.

    Args:
        before: How many tokens it echoes before those of the text.
        scores_first: Whether the first token of the text gets a log-probability.
        takes_lists: Whether one request may hold several prompts.
        answer: The log-probabilities that it gave the first of our texts; the first may have none.
    """

    before: int
    scores_first: bool
    takes_lists: bool
    answer: tuple[float | None, ...]

    def is_like(self, answer: Sequence[float | None]) -> bool:
        """Tell whether another answer about the first of our texts can come from the same model."""
        pairs = list(zip(self.answer, answer, strict=False))
        apart = [abs(one - other) for one, other in pairs if one is not None and other is not None]
        return len(self.answer) == len(answer) and bool(apart) and sum(apart) <= _NOISE * len(apart)


def habits_of(server: Server, model: str, before: str, *, lists: bool) -> Habits:
    """Return how a server answers about two texts, after a text that is put before them.

    Args:
        lists: Whether to try out a request with both texts.
    """
    prompts = [before + text for text in _PROBES]
    first, second = (_tried(server, model, *each) for each in zip(prompts, _PROBES, strict=True))
    if first.before != second.before:
        raise ModelError(f"{server.url}: the server does not begin every text in the same way")
    _check_places(server.url, first.echo, second.echo)
    takes_lists = lists and _takes_lists(server, model, prompts, (first.echo, second.echo))
    return Habits(first.before, first.answer[0] is not None, takes_lists, first.answer)


@dataclass(frozen=True)
class _Tried:
    """An echo, how many tokens it has before those of the text, and what it gives these."""

    echo: Echo
    before: int
    answer: tuple[float | None, ...]


def _tried(server: Server, model: str, prompt: str, text: str) -> _Tried:
    try:
        return server.echoes(model, [prompt], _ALTERNATIVES, lambda echoes: _read(echoes[0], text))
    except Refused as refusal:
        if "echo" in str(refusal) or "logprobs" in str(refusal):
            raise cannot_echo(f"refuses what is needed ({refusal})") from refusal
        raise


def _read(echo: Echo, text: str) -> _Tried:
    if len(echo.tokens) <= GENERATED:
        raise cannot_echo(f"does not echo prompts (of {text!r} it showed only the tokens {list(echo.tokens)})")
    if all(each is None for each in echo.logprobs[:-GENERATED]):
        raise cannot_echo("echoes prompts without their log-probabilities")
    before = next((place for place in range(len(echo.tokens)) if spells(echo.tokens[place:], text)), None)
    if before is None:
        raise Stumbled("the tokens that it echoes do not spell the prompt")
    count = len(spans(echo.tokens[before:], text))
    pairs = list(zip(echo.logprobs, echo.tokens, strict=True))[before : before + count]
    first = None if pairs[0][0] is None else checked_logprob(*pairs[0])
    return _Tried(echo, before, (first, *(checked_logprob(*pair) for pair in pairs[1:])))


def _takes_lists(server: Server, model: str, prompts: Sequence[str], expected: Sequence[Echo]) -> bool:
    hasty = replace(server, patience=replace(server.patience, tries=2))
    try:
        together: list[Echo] = hasty.echoes(model, prompts, _ALTERNATIVES, list)
    except ModelError as error:
        _log.info("one text per request from here on: %s", error)
        return False
    return [each.tokens for each in together] == [each.tokens for each in expected]


def _check_places(url: str, first: Echo, second: Echo) -> None:
    """Refuse a server that gives a token the log-probabilities of the place after it.

    What could stand in a place depends on what is before it alone: where two texts first
    differ, it is the same for both.
    """
    pairs = zip(first.tokens, second.tokens, strict=False)
    place = next(place for place, (one, other) in enumerate(pairs) if one != other)
    own = {first.tokens[place], second.tokens[place]}
    here, there = (_others(echo.alternatives[place], own) for echo in (first, second))
    if not here or not there:
        raise ModelError(
            f"{url}: the server does not say what else could stand in a place (top_logprobs), "
            "so it cannot be seen whether its log-probabilities are those of the right tokens"
        )
    apart = [abs(here[key] - there[key]) for key in here.keys() & there.keys()]
    if 2 * len(apart) < min(len(here), len(there)) or not sum(apart) <= _SAME * len(apart):
        raise ModelError(
            f"{url}: the server's log-probabilities do not belong to the tokens beside which they stand: what it "
            f"says could stand in place of {first.tokens[place]!r} depends on that token itself. "
            "llama-cpp-python does so when a prompt does not begin with the model's own start token: write that "
            "token first in bos='…', or start the server so that it puts one before every text."
        )


def _others(alternatives: object, own: Collection[str]) -> dict[str, float]:
    """Return the log-probabilities of what else could stand in a place."""
    if not isinstance(alternatives, dict):
        return {}
    return {key: each for key, each in alternatives.items() if isinstance(each, int | float) and key not in own}
