"""Where the tokens that a server echoes stand in the text.

Servers spell tokens as text, and a token can end within a character: then they write a
replacement character, an escape or nothing at all, and the offsets that they give count
those. Where the offsets prove wrong, positions are found in bytes: every way in which
the tokens can spell the text is followed, token by token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from acceptability.models.completions import GENERATED, Stumbled
from acceptability.types import Span

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_MOST_BYTES = 4
_ESCAPE = re.compile(rb"\\x([0-9a-fA-F]{2})")
_BYTE_PIECE = re.compile(r"<0x([0-9A-Fa-f]{2})>\Z")


def spans(tokens: Sequence[str], text: str, *, told: Sequence[object] = (), is_cut: bool = True) -> list[Span]:
    """Return the characters of each token that belongs to the text; what a server added is left out.

    A token of a part of a character gets the whole character.

    Args:
        told: Where the server says that the tokens begin; believed if the tokens are there.
        is_cut: Whether the server surely added a token; decides where only that can.

    >>> spans(["Cats", " sleep", "."], "Cats sleep")
    [(0, 4), (4, 10)]
    >>> spans(["na", "\N{REPLACEMENT CHARACTER}", "\N{REPLACEMENT CHARACTER}", "f", " x"], "naïf")
    [(0, 2), (2, 3), (2, 3), (3, 4)]
    """
    return _as_told(tokens, text, told) or _found(tokens, text, is_cut)


def _as_told(tokens: Sequence[str], text: str, told: Sequence[object]) -> list[Span]:
    """Return the spans that a server's offsets give; none if the tokens do not stand there."""
    offsets = [each for each in told if isinstance(each, int)]
    if not offsets or len(offsets) != len(tokens) or offsets != sorted(offsets):
        return []
    for shift in (0, 1) if tokens[0].startswith(" ") else (0,):
        starts = [max(each - offsets[0] - shift, 0) for each in offsets]
        inside = [start for start in starts if start < len(text)]
        parts = [(start, max(end, start + 1)) for start, end in zip(inside, [*inside[1:], len(text)], strict=True)]
        firsts = [tokens[0][shift:], *tokens[1:]]
        if all(_is_at(token, text[slice(*part)]) for token, part in zip(firsts, parts, strict=False)):
            return parts
    return []


def _is_at(token: str, part: str) -> bool:
    """Tell whether a token is what stands in a part of the text, as far as its spelling shows."""
    if not token or _REPLACEMENT in token or token.startswith("bytes:") or _BYTE_PIECE.match(token):
        return token == part or not part.isascii()
    return token == part


def _found(tokens: Sequence[str], text: str, is_cut: bool) -> list[Span]:
    """Return the spans that the tokens' spelling gives."""
    data = text.encode()
    ways = _ways(tokens, data)
    ends = {
        count: min(found)
        for count in range(max(len(tokens) - GENERATED, 1), len(tokens) + 1)
        if count < len(ways) and (found := [end for end in ways[count] if not data[end:].strip()])
    }
    if not ends:
        raise Stumbled("the tokens that it echoes do not spell the prompt")
    if len(ends) > 1 and not is_cut:
        raise Stumbled("it cannot be told whether the last token that it echoes belongs to the prompt")
    count = min(ends)
    return _characters(_followed_back(ways, count, ends[count]), text)


def spells(tokens: Sequence[str], text: str) -> bool:
    """Tell whether tokens spell a text, perhaps with an added token after it."""
    try:
        return bool(_found(tokens, text, True))
    except Stumbled:
        return False


def _ways(tokens: Sequence[str], data: bytes) -> list[dict[int, tuple[int, int]]]:
    """Return, after each token, every byte reached: with where the token began and where the one before it ended."""
    ways: list[dict[int, tuple[int, int]]] = [{0: (0, 0)}]
    for token in tokens:
        reached: dict[int, tuple[int, int]] = {}
        for before in ways[-1]:
            for start, end in _fits(token, data, before):
                reached.setdefault(end, (start, before))
        if not reached:
            break
        ways.append(reached)
    return ways


def _fits(token: str, data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """Yield where a token can stand that follows what ends at a place."""
    spelled = token.encode("utf-8", "surrogatepass")
    if not spelled:
        yield from _unspelled(data, place)
        return
    # Some tokenizers do not spell the space before a word, others add one before the first.
    begin = place + len(data[place:]) - len(data[place:].lstrip())
    for start in sorted({place, begin}):
        if data.startswith(spelled, start):
            yield start, start + len(spelled)
            if _REPLACEMENT not in token:
                return
            break
    if place == 0 and token[0] == " " and len(spelled) > 1 and data.startswith(spelled[1:]):
        yield 0, len(spelled) - 1
    elif token.startswith("bytes:") or _BYTE_PIECE.match(token):
        exact = _unescaped(token)
        if data.startswith(exact, place):
            yield place, place + len(exact)
    elif _REPLACEMENT in token:
        yield from ((place, end) for end in sorted(_replaced(token, data, place)))


def _unspelled(data: bytes, place: int) -> Iterator[tuple[int, int]]:
    """Yield what a token spelled as nothing can be: blanks, or a part of a character beyond ASCII."""
    blanks = len(data[place:]) - len(data[place:].lstrip())
    if blanks:
        yield place, place + blanks
    elif place < len(data) and data[place] >= 0x80:
        # Nothing yet: then a later token spells the whole character.
        yield place, place
        yield from ((place, place + count) for count in range(1, _MOST_BYTES + 1) if _is_high(data, place, count))


def _replaced(token: str, data: bytes, place: int) -> set[int]:
    """Return where a token can end in which each replacement character stands for one to three bytes."""
    ends = {place}
    for piece in re.split(f"({_REPLACEMENT})", token):
        if piece == _REPLACEMENT:
            ends = {end + count for end in ends for count in range(1, _MOST_BYTES) if _is_high(data, end, count)}
        else:
            ends = {end + len(piece.encode()) for end in ends if data.startswith(piece.encode(), end)}
    return ends


def _is_high(data: bytes, place: int, count: int) -> bool:
    part = data[place : place + count]
    return len(part) == count and min(part) >= 0x80


def _unescaped(token: str) -> bytes:
    if found := _BYTE_PIECE.match(token):
        return bytes.fromhex(found[1])
    return _ESCAPE.sub(lambda found: bytes.fromhex(found[1].decode()), token.removeprefix("bytes:").encode())


def _followed_back(ways: Sequence[dict[int, tuple[int, int]]], count: int, end: int) -> list[tuple[int, int]]:
    found = []
    for reached in reversed(ways[1 : count + 1]):
        start, before = reached[end]
        found.append((start, end))
        end = before
    return found[::-1]


def _characters(parts: Sequence[tuple[int, int]], text: str) -> list[Span]:
    """Return parts in bytes as parts in characters."""
    owner = [place for place, character in enumerate(text) for _ in character.encode()]
    return [(owner[start], owner[max(end - 1, start)] + 1) for start, end in parts]
