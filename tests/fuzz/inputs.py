"""Inputs: made of the pieces of a language, of hostile text, and of files that are in order and then damaged."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hypothesis import strategies as st

from .rule import LARGEST
from .targets import Target

HOSTILE = (
    *("e\u0301", "\u0627\u0644\u0633\u0644\u0627\u0645", "\u202eabc", "\u2066x\u2069", "👩‍👩‍👧‍👦", "\U0001f1e9", "\0"),
    *("\u200b", "\u200d", "\u2060", "\ufeff", "ＣＡＴＳ", "１２", "\r", "\r\n", "\x85", "\u2028", "\x0b", "\x1b[31m"),
    *("=cmd()", "@SUM(A1)", "<script>alert(1)</script>", "\\input{x}", "../../x", "%n%s", "${x}", "{{7*7}}"),
    *(
        "'",
        '"',
        "\\",
        "\x7f",
        "\ue000",
        "\U0010ffff",
        "ǅ",
        "İ",
        "ß",
        "٣",
        "Ⅷ",
        "_",
        "9" * 5_000,
        "(" * 300,
        "[" * 2_000,
    ),
)
"""Pieces of text that programs stumble over."""


def make_inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Return inputs of a target: any bytes, pieces of its language, or a seed with something put into it."""
    pieces = st.sampled_from((*target.words, *HOSTILE)) | st.text(max_size=8)
    spelled = st.lists(pieces, max_size=40).map("".join).map(_coded)
    return st.binary(max_size=400) | spelled | _changed(target, pieces)


def _changed(target: Target, pieces: st.SearchStrategy[str]) -> st.SearchStrategy[bytes]:
    def change(seed: bytes, start: int, length: int, piece: str) -> bytes:
        position = start % (len(seed) + 1)
        return (seed[:position] + _coded(piece) + seed[position + length :])[:LARGEST]

    few = st.integers(0, 20) | st.just(0)
    return st.builds(change, st.sampled_from(target.seeds), st.integers(0, 100_000), few, pieces)


def _coded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")[:LARGEST]


def mutated(target: Target, random: Random) -> Iterator[bytes]:
    """Yield seeds that are damaged: bytes changed, cut out, doubled, put in, or taken from another seed."""
    words = [_coded(each) for each in (*target.words, *HOSTILE)]
    while True:
        data = bytearray(random.choice(target.seeds))
        for _ in range(random.choice((1, 1, 2, 4, 16))):
            _mutate(data, random, words, target.seeds)
        yield bytes(data[:LARGEST])


def _mutate(data: bytearray, random: Random, words: list[bytes], seeds: tuple[bytes, ...]) -> None:
    start = random.randrange(len(data) + 1)
    end = min(len(data), start + random.choice((1, 2, 8, 64)))
    way = random.randrange(6)
    if way == 0 and start < len(data):
        data[start] = random.randrange(256)
    elif way == 1:
        del data[start:end]
    elif way == 2:
        data[start:start] = data[start:end] * random.choice((1, 2, 50))
    elif way == 3:
        data[start:start] = random.choice(words)
    elif way == 4:
        data[start:end] = random.choice(words)
    else:
        other = random.choice(seeds)
        position = random.randrange(len(other) + 1)
        data[start:end] = other[position : position + 64]
