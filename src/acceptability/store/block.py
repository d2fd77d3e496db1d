"""Many answers as one run of bytes: numbers side by side, so that writing a thousand costs little more than one.

A block is a checksum, over the keys of its queries too, a letter for its kind, a count, and then

- L: two logits for each answer;
- Z: how many tokens each answer has, then of all answers together: where the tokens stand, their
  log-probabilities, and their spellings, parted by zeros (as JSON, kind J, if a token has a zero in it).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from acceptability.types import LabelScores, Said, TokenScores

_HEAD = struct.Struct("<IcI")


def written(answers: Sequence[Said], keys: bytes) -> bytes:
    """Return answers of one kind as bytes, with a checksum over them and their keys."""
    if all(isinstance(each, LabelScores) for each in answers):
        kind, body = b"L", np.array([each.logits for each in answers if isinstance(each, LabelScores)], "<f8").tobytes()
    else:
        kind, body = _tokens([each for each in answers if isinstance(each, TokenScores)])
    tail = struct.pack("<cI", kind, len(answers)) + body
    return struct.pack("<I", zlib.crc32(tail, zlib.crc32(keys))) + tail


def _tokens(answers: Sequence[TokenScores]) -> tuple[bytes, bytes]:
    counts = [len(each.tokens) for each in answers]
    total = sum(counts)
    spans = chain.from_iterable(chain.from_iterable([each.offsets for each in answers]))
    names = list(chain.from_iterable([each.tokens for each in answers]))
    kind, spelled = b"Z", "\0".join(names)
    if spelled.count("\0") >= total:
        kind, spelled = b"J", json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    parts = (
        np.array(counts, "<u4").tobytes(),
        np.fromiter(spans, "<u4", 2 * total).tobytes(),
        np.concatenate([each.logprobs for each in answers]).astype("<f4", copy=False).tobytes(),
        spelled.encode("utf-8", "surrogatepass"),
    )
    return kind, b"".join(parts)


def read(block: bytes, keys: bytes, texts: Mapping[int, str]) -> dict[int, Said] | None:
    """Return the answers at some rows of a block, whose texts are given, or None if the block is not whole."""
    if len(block) < _HEAD.size:
        return None
    checksum, kind, count = _HEAD.unpack_from(block)
    if zlib.crc32(block[4:], zlib.crc32(keys)) != checksum:
        return None
    if kind == b"L":
        logits = np.frombuffer(block, "<f8", 2 * count, _HEAD.size).reshape(-1, 2).tolist()
        return {row: LabelScores(text, tuple(logits[row])) for row, text in texts.items()}
    counts = np.frombuffer(block, "<u4", count, _HEAD.size)
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    total, place = ends[-1], _HEAD.size + 4 * count
    spans = np.frombuffer(block, "<u4", 2 * total, place).tolist()
    logprobs = np.frombuffer(block, "<f4", total, place + 8 * total)
    spelled = block[place + 12 * total :].decode("utf-8", "surrogatepass")
    names = json.loads(spelled) if kind == b"J" else spelled.split("\0")
    found: dict[int, Said] = {}
    for row, text in texts.items():
        first, last = ends[row] - int(counts[row]), ends[row]
        offsets = tuple(zip(spans[2 * first : 2 * last : 2], spans[2 * first + 1 : 2 * last : 2], strict=True))
        found[row] = TokenScores(text, tuple(names[first:last]), offsets, logprobs[first:last])
    return found


def read_row(answer: bytes) -> Said | None:
    """Return an answer of the first format, where each stood for itself, or None if it is not whole. It has no text."""
    checksum, body = answer[:4], answer[4:]
    if len(body) < 1 or struct.pack("<I", zlib.crc32(body)) != checksum:
        return None
    if body[:1] == b"L":
        bad, good = struct.unpack("<dd", body[1:])
        return LabelScores("", (bad, good))
    (count,) = struct.unpack_from("<I", body, 1)
    ends = iter(struct.unpack_from(f"<{2 * count}I", body, 5))
    logprobs = np.frombuffer(body, dtype="<f4", count=count, offset=5 + 8 * count)
    names = json.loads(body[5 + 12 * count :].decode("utf-8", "surrogatepass"))
    return TokenScores("", tuple(names), tuple(zip(ends, ends, strict=True)), logprobs)
