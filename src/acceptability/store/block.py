"""Many answers as one run of bytes: numbers side by side, so that writing a thousand costs little more than one.

A block is a checksum, over the keys of its queries too, a letter for its kind, a count, the signature
of the model whose answers they are, and then

- l: two logits for each answer;
- z: how many tokens each answer has, then of all answers together: where the tokens stand, their
  log-probabilities, and their spellings, parted by zeros (as JSON, kind j, if a token has a zero in it).

Blocks of the second format have capital letters and no signature.
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
_LENGTH = struct.Struct("<I")
_KINDS = b"lzj"


def written(answers: Sequence[Said], keys: bytes, model: str) -> bytes:
    """Return answers of one kind, by the model of a signature, as bytes, with a checksum over them and their keys."""
    if all(isinstance(each, LabelScores) for each in answers):
        kind, body = b"l", np.array([each.logits for each in answers if isinstance(each, LabelScores)], "<f8").tobytes()
    else:
        kind, body = _tokens([each for each in answers if isinstance(each, TokenScores)])
    return _sealed(kind, len(answers), model, body, keys)


def _sealed(kind: bytes, count: int, model: str, body: bytes, keys: bytes) -> bytes:
    owner = model.encode("utf-8", "surrogatepass")
    tail = struct.pack("<cI", kind, count) + _LENGTH.pack(len(owner)) + owner + body
    return struct.pack("<I", zlib.crc32(tail, zlib.crc32(keys))) + tail


def _tokens(answers: Sequence[TokenScores]) -> tuple[bytes, bytes]:
    counts = [len(each.tokens) for each in answers]
    total = sum(counts)
    spans = chain.from_iterable(chain.from_iterable([each.offsets for each in answers]))
    names = list(chain.from_iterable([each.tokens for each in answers]))
    kind, spelled = b"z", "\0".join(names)
    if spelled.count("\0") >= total:
        kind, spelled = b"j", json.dumps(names, ensure_ascii=False, separators=(",", ":"))
    parts = (
        np.array(counts, "<u4").tobytes(),
        np.fromiter(spans, "<u4", 2 * total).tobytes(),
        np.concatenate([each.logprobs for each in answers]).astype("<f4", copy=False).tobytes(),
        spelled.encode("utf-8", "surrogatepass"),
    )
    return kind, b"".join(parts)


def is_whole(block: bytes, keys: bytes) -> bool:
    """Tell whether a block of this format or the second is as it was written, with these keys."""
    if len(block) < _HEAD.size:
        return False
    return zlib.crc32(block[4:], zlib.crc32(keys)) == int.from_bytes(block[:4], "little")


def owner(block: bytes) -> str | None:
    """Return the signature of the model whose answers a whole block holds, or None if it does not say."""
    if block[4:5] not in _KINDS:
        return None
    start = _HEAD.size + _LENGTH.size
    return block[start : start + _length(block)].decode("utf-8", "surrogatepass")


def _length(block: bytes) -> int:
    return int(_LENGTH.unpack_from(block, _HEAD.size)[0])


def owned(block: bytes, keys: bytes, model: str) -> bytes:
    """Return a whole block of the second format with the signature of its model in it."""
    _, kind, count = _HEAD.unpack_from(block)
    return _sealed(kind.lower(), count, model, block[_HEAD.size :], keys)


def read(block: bytes, keys: bytes, texts: Mapping[int, str], model: str) -> dict[int, Said] | None:
    """Return a model's answers at some rows of a block, whose texts are given; None if it is not whole or another's."""
    if not is_whole(block, keys) or owner(block) != model:
        return None
    _, kind, count = _HEAD.unpack_from(block)
    start = _HEAD.size + _LENGTH.size + _length(block)
    if kind == b"l":
        logits = np.frombuffer(block, "<f8", 2 * count, start).reshape(-1, 2).tolist()
        return {row: LabelScores(text, tuple(logits[row])) for row, text in texts.items()}
    counts = np.frombuffer(block, "<u4", count, start)
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    total, place = ends[-1], start + 4 * count
    spans = np.frombuffer(block, "<u4", 2 * total, place).tolist()
    logprobs = np.frombuffer(block, "<f4", total, place + 8 * total)
    spelled = block[place + 12 * total :].decode("utf-8", "surrogatepass")
    names = json.loads(spelled) if kind == b"j" else spelled.split("\0")
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
