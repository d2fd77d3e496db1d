"""Server capabilities, probed with two short texts, and the alignment of echoed tokens with the text.

Completions servers differ in whether they put tokens before a text and echo them, in whether one request may hold
several prompts, and some shift the log-probabilities by one token. ``probe_server`` finds this out once and refuses a
server whose log-probabilities cannot be trusted.

``align_tokens`` returns the characters that each echoed token covers. Servers send tokens as strings, and a token can
end within a character: then the string is a replacement character, an escape or empty, and the server's character
offsets count those instead of the text. Offsets are therefore checked against the text; where they are wrong, tokens
are aligned by their spelling, in bytes, by following every way in which the tokens can spell the text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from acceptability.errors import ModelError
from acceptability.models.remote.completions_client import (
    GENERATED_TOKENS,
    CompletionsServer,
    Echo,
    RejectedError,
    TransientError,
    make_echo_error,
    validate_logprob,
)
from acceptability.types import Span

_log = logging.getLogger(__name__)

# A model expects very different continuations after the two last words ("York", "Francisco"), and the texts are equal
# before them: a server that shifts log-probabilities by one token gives itself away at that position.
_PROBE_TEXTS = ("They moved from New", "They moved from San")
_TOP_LOGPROBS = 5
# Mean absolute differences in nats. Servers that compute in low precision or in varying batches do not repeat
# themselves exactly.
_ALIGNMENT_TOLERANCE = 0.5
_REPEAT_TOLERANCE = 0.25

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MAX_CHARACTER_BYTES = 4
# Two spellings of raw bytes: "bytes:\xe2\x80" of OpenAI's protocol, and "<0xE2>" of SentencePiece.
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


@dataclass(frozen=True)
class ServerCapabilities:
    """What a server can do, and how it answers.

    Args:
        prefix_count: The number of echoed tokens before those of the text.
        scores_first_token: Whether the first token of the text gets a log-probability.
        takes_lists: Whether one request may hold several prompts.
        probe_logprobs: The log-probabilities of the first probe text; that of its first token may be None.
    """

    prefix_count: int
    scores_first_token: bool
    takes_lists: bool
    probe_logprobs: tuple[float | None, ...]

    def matches(self, probe_logprobs: Sequence[float | None]) -> bool:
        """Return whether other log-probabilities of the first probe text can come from the same model."""
        pairs = list(zip(self.probe_logprobs, probe_logprobs, strict=False))
        differences = [abs(first - second) for first, second in pairs if first is not None and second is not None]
        return (
            len(self.probe_logprobs) == len(probe_logprobs)
            and bool(differences)
            and sum(differences) <= _REPEAT_TOLERANCE * len(differences)
        )


def probe_server(server: CompletionsServer, model: str, prefix: str, *, try_lists: bool) -> ServerCapabilities:
    """Return the capabilities of a server, from its answers to two probe texts.

    Args:
        model: The model's name on the server.
        prefix: Text that is sent before each probe text, such as a start token.
        try_lists: Whether to try a request with both texts.
    """
    prompts = [prefix + text for text in _PROBE_TEXTS]
    first, second = (
        _probe_text(server, model, prompt, text) for prompt, text in zip(prompts, _PROBE_TEXTS, strict=True)
    )
    if first.prefix_count != second.prefix_count:
        raise ModelError(f"{server.url}: the server puts different numbers of tokens before different texts")
    _check_token_alignment(server.url, first.echo, second.echo)
    takes_lists = try_lists and _test_prompt_lists(server, model, prompts, (first.echo, second.echo))
    return ServerCapabilities(first.prefix_count, first.logprobs[0] is not None, takes_lists, first.logprobs)


@dataclass(frozen=True)
class _ProbeResult:
    """The echo of a probe text.

    Args:
        prefix_count: The number of tokens before those of the text.
        logprobs: The log-probabilities of the text's own tokens.
    """

    echo: Echo
    prefix_count: int
    logprobs: tuple[float | None, ...]


def _probe_text(server: CompletionsServer, model: str, prompt: str, text: str) -> _ProbeResult:
    try:
        return server.request_echoes(model, [prompt], _TOP_LOGPROBS, lambda echoes: _read_probe_echo(echoes[0], text))
    except RejectedError as error:
        if "echo" in str(error) or "logprobs" in str(error):
            raise make_echo_error(f"rejects the options that are needed ({error})") from error
        raise


def _read_probe_echo(echo: Echo, text: str) -> _ProbeResult:
    """Return a checked echo of a probe text; an error says what the server cannot do."""
    if len(echo.tokens) <= GENERATED_TOKENS:
        raise make_echo_error(f"does not echo prompts (of {text!r} it returned only the tokens {list(echo.tokens)})")
    if all(logprob is None for logprob in echo.logprobs[:-GENERATED_TOKENS]):
        raise make_echo_error("echoes prompts without their log-probabilities")
    prefix_count = next((index for index in range(len(echo.tokens)) if _is_spelling(echo.tokens[index:], text)), None)
    # Tokens before the text need not be the prefix as it was sent: servers add or hide a start token.
    if prefix_count is None:
        raise TransientError("the tokens that it echoes do not spell the prompt")
    count = len(align_tokens(echo.tokens[prefix_count:], text))
    pairs = list(zip(echo.logprobs, echo.tokens, strict=True))[prefix_count : prefix_count + count]
    first = None if pairs[0][0] is None else validate_logprob(*pairs[0])
    return _ProbeResult(echo, prefix_count, (first, *(validate_logprob(*pair) for pair in pairs[1:])))


def _test_prompt_lists(server: CompletionsServer, model: str, prompts: Sequence[str], expected: Sequence[Echo]) -> bool:
    """Return whether a server answers a list of prompts as it answered them one by one."""
    # A server that cannot take lists may answer with status 500, which the full retry policy would wait for at length.
    probing_server = replace(server, retry_policy=replace(server.retry_policy, tries=2))
    try:
        echoes: list[Echo] = probing_server.request_echoes(model, prompts, _TOP_LOGPROBS, list)
    except ModelError as error:
        _log.info("sending one text per request: %s", error)
        return False
    return [echo.tokens for echo in echoes] == [echo.tokens for echo in expected]


def _check_token_alignment(url: str, first: Echo, second: Echo) -> None:
    """Refuse a server that gives a token the log-probabilities of the next position.

    The distribution at a position depends only on the tokens before it. At the first position where two texts differ,
    it must therefore be the same for both.
    """
    pairs = zip(first.tokens, second.tokens, strict=False)
    position = next(index for index, (token, other) in enumerate(pairs) if token != other)
    # Servers add the actual token to its position's alternatives even if it is improbable, so that each of the two
    # tokens can be missing from the other list without any shift.
    own_tokens = {first.tokens[position], second.tokens[position]}
    first_logprobs, second_logprobs = (
        _get_alternatives(echo.top_logprobs[position], own_tokens) for echo in (first, second)
    )
    if not first_logprobs or not second_logprobs:
        raise ModelError(
            f"{url}: the server does not return the alternatives at each position (top_logprobs), so that its "
            "log-probabilities cannot be checked to be those of the right tokens"
        )
    differences = [
        abs(first_logprobs[token] - second_logprobs[token]) for token in first_logprobs.keys() & second_logprobs.keys()
    ]
    # At least half of the alternatives must be shared: a shifted server offers other words after "New" than after
    # "San".
    if 2 * len(differences) < min(len(first_logprobs), len(second_logprobs)) or not sum(
        differences
    ) <= _ALIGNMENT_TOLERANCE * len(differences):
        raise ModelError(
            f"{url}: the server's log-probabilities do not belong to their tokens: the alternatives that it returns "
            f"for {first.tokens[position]!r} depend on that token itself. "
            "llama-cpp-python does so when a prompt does not begin with the model's own start token: write that "
            "token first in bos='…', or start the server so that it puts one before every text."
        )


def _get_alternatives(alternatives: object, own_tokens: Collection[str]) -> dict[str, float]:
    """Return the log-probabilities of the tokens in a ``top_logprobs`` entry, without some."""
    if not isinstance(alternatives, dict):
        return {}
    return {
        token: logprob
        for token, logprob in alternatives.items()
        if isinstance(logprob, int | float) and token not in own_tokens
    }


def align_tokens(
    tokens: Sequence[str], text: str, *, server_offsets: Sequence[object] = (), hit_length_limit: bool = True
) -> list[Span]:
    """Return the character span of each token that belongs to the text, without generated tokens after it.

    A token that is part of a character gets the whole character.

    Args:
        server_offsets: The start of each token according to the server; used if the tokens do stand there.
        hit_length_limit: Whether the server certainly generated a token; this decides where the spelling leaves open
            whether the last token belongs to the text.

    >>> align_tokens(["Cats", " sleep", "."], "Cats sleep")
    [(0, 4), (4, 10)]
    >>> align_tokens(["na", "\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}", "f", " x"], "naïf")
    [(0, 2), (2, 3), (2, 3), (3, 4)]
    """
    return _align_by_offsets(tokens, text, server_offsets) or _align_by_spelling(tokens, text, hit_length_limit)


def _align_by_offsets(tokens: Sequence[str], text: str, server_offsets: Sequence[object]) -> list[Span]:
    """Return the spans that a server's offsets give; none if the tokens do not stand there."""
    offsets = [offset for offset in server_offsets if isinstance(offset, int)]
    if not offsets or len(offsets) != len(tokens) or offsets != sorted(offsets):
        return []
    # Some tokenizers put a space before the first word, which the text does not have and the offsets may count.
    for shift in (0, 1) if tokens[0].startswith(" ") else (0,):
        starts = [max(offset - offsets[0] - shift, 0) for offset in offsets]
        inside = [start for start in starts if start < len(text)]
        # Tokens that share a character have the same start; each then covers at least that character.
        spans = [(start, max(end, start + 1)) for start, end in zip(inside, [*inside[1:], len(text)], strict=True)]
        shifted_tokens = [tokens[0][shift:], *tokens[1:]]
        if all(_token_matches(token, text[slice(*span)]) for token, span in zip(shifted_tokens, spans, strict=False)):
            return spans
    return []


def _token_matches(token: str, part: str) -> bool:
    """Return whether a token can be a part of the text, as far as its spelling shows."""
    # A token with a part of a character has no spelling to compare; such characters are never ASCII.
    if not token or _REPLACEMENT in token or token.startswith("bytes:") or _BYTE_TOKEN.match(token):
        return token == part or not part.isascii()
    return token == part


def _align_by_spelling(tokens: Sequence[str], text: str, hit_length_limit: bool) -> list[Span]:
    """Return the spans that the tokens' spelling gives."""
    data = text.encode()
    reachable = _trace_spellings(tokens, data)
    # The text may end with the last token or before the generated one: both are tried.
    ends = {
        count: min(full_ends)
        for count in range(max(len(tokens) - GENERATED_TOKENS, 1), len(tokens) + 1)
        if count < len(reachable) and (full_ends := [end for end in reachable[count] if not data[end:].strip()])
    }
    if not ends:
        raise TransientError("the tokens that it echoes do not spell the prompt")
    if len(ends) > 1 and not hit_length_limit:
        raise TransientError("the last token that it echoes may or may not belong to the prompt")
    count = min(ends)
    return _bytes_to_characters(_trace_back(reachable, count, ends[count]), text)


def _is_spelling(tokens: Sequence[str], text: str) -> bool:
    """Return whether tokens spell a text, perhaps with a generated token after it."""
    try:
        return bool(_align_by_spelling(tokens, text, True))
    except TransientError:
        return False


def _trace_spellings(tokens: Sequence[str], data: bytes) -> list[dict[int, tuple[int, int]]]:
    """Return every byte position that can be reached after 0, 1, 2, … tokens.

    Each position has a back-pointer: where the last token starts, and where the token before it ends.
    """
    reachable: list[dict[int, tuple[int, int]]] = [{0: (0, 0)}]
    for token in tokens:
        reached: dict[int, tuple[int, int]] = {}
        for previous_end in reachable[-1]:
            for start, end in _match_token(token, data, previous_end):
                # One back-pointer per position is enough; following every path would take exponential time.
                reached.setdefault(end, (start, previous_end))
        if not reached:
            break
        reachable.append(reached)
    return reachable


def _match_token(token: str, data: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Yield the byte spans that a token can have if the token before it ends at a position."""
    token_bytes = token.encode("utf-8", "surrogatepass")
    if not token_bytes:
        yield from _match_empty_token(data, position)
        return
    # Some tokenizers do not spell the space before a word, others add one before the first.
    next_word = position + len(data[position:]) - len(data[position:].lstrip())
    for start in sorted({position, next_word}):
        if data.startswith(token_bytes, start):
            yield start, start + len(token_bytes)
            # The text may hold a replacement character itself, or one may stand for bytes of another: both are
            # followed.
            if _REPLACEMENT not in token:
                return
            break
    if position == 0 and token[0] == " " and len(token_bytes) > 1 and data.startswith(token_bytes[1:]):
        yield 0, len(token_bytes) - 1
    elif token.startswith("bytes:") or _BYTE_TOKEN.match(token):
        raw_bytes = _unescape_bytes(token)
        if data.startswith(raw_bytes, position):
            yield position, position + len(raw_bytes)
    elif _REPLACEMENT in token:
        yield from ((position, end) for end in sorted(_match_replacement_characters(token, data, position)))


def _match_empty_token(data: bytes, position: int) -> Iterator[tuple[int, int]]:
    """Yield what an empty token can cover: blanks, or a part of a non-ASCII character."""
    blanks = len(data[position:]) - len(data[position:].lstrip())
    if blanks:
        yield position, position + blanks
    elif position < len(data) and data[position] >= 0x80:
        # Servers write a piece of a character as "", and may then give the whole character to a later token: this one
        # covers nothing, or some of the bytes.
        yield position, position
        yield from (
            (position, position + count)
            for count in range(1, _MAX_CHARACTER_BYTES + 1)
            if _is_non_ascii(data, position, count)
        )


def _match_replacement_characters(token: str, data: bytes, position: int) -> set[int]:
    """Return where a token can end in which each replacement character stands for one to three bytes."""
    ends = {position}
    for part in re.split(f"({_REPLACEMENT})", token):
        if part == _REPLACEMENT:
            ends = {
                end + count
                for end in ends
                for count in range(1, _MAX_CHARACTER_BYTES)
                if _is_non_ascii(data, end, count)
            }
        else:
            ends = {end + len(part.encode()) for end in ends if data.startswith(part.encode(), end)}
    return ends


def _is_non_ascii(data: bytes, position: int, count: int) -> bool:
    # In UTF-8, every byte of a character beyond ASCII is 0x80 or more.
    part = data[position : position + count]
    return len(part) == count and min(part) >= 0x80


def _unescape_bytes(token: str) -> bytes:
    if byte := _BYTE_TOKEN.match(token):
        return bytes.fromhex(byte[1])
    return _ESCAPE.sub(lambda escape: bytes.fromhex(escape[1].decode()), token.removeprefix("bytes:").encode())


def _trace_back(reachable: Sequence[dict[int, tuple[int, int]]], count: int, end: int) -> list[tuple[int, int]]:
    """Return the byte spans of the first ``count`` tokens, following the back-pointers from where the last one ends."""
    byte_spans = []
    for reached in reversed(reachable[1 : count + 1]):
        start, previous_end = reached[end]
        byte_spans.append((start, end))
        end = previous_end
    return byte_spans[::-1]


def _bytes_to_characters(byte_spans: Sequence[tuple[int, int]], text: str) -> list[Span]:
    """Return byte spans as character spans, widened to whole characters."""
    character_of_byte = [index for index, character in enumerate(text) for _ in character.encode()]
    return [(character_of_byte[start], character_of_byte[max(end - 1, start)] + 1) for start, end in byte_spans]
