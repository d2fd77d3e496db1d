"""How much arithmetic a request needs at least, whoever does it: the yardstick for "share of the matrix rate".

Needed are two floating-point operations (multiply, add) for each weight that a position is multiplied with:

- causal: every *different* beginning of a sentence that some token is predicted from, once, through body and head.
  Sentences that begin alike share their beginnings; the last token of a sentence predicts nothing.
- masked: every position of every masked copy through the body, and the head where the copy is asked for a token.
  There is one copy for each scored token of each different sentence.

Left out: padding, embeddings (looked up), attention between positions (some per cent for short sentences), softmax.
A tool that saves more (the last layer at the masked position alone, say) can only look better by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.shapes import Shape


@dataclass(frozen=True)
class Work:
    """What a request holds: the tokens that get a score, and the operations they need."""

    tokens: int
    operations: int


def causal(shape: Shape, sentences: Sequence[Sequence[int]]) -> Work:
    """Return the work of scoring each token of each sentence but the first, which only predicts.

    >>> causal(Shape("", "", "", body=10, head=5), [(1, 2, 3), (1, 2, 4)]).operations
    60
    """
    beginnings = {tuple(ids[:end]) for ids in sentences for end in range(1, len(ids))}
    return Work(sum(len(ids) - 1 for ids in sentences), 2 * (shape.body + shape.head) * len(beginnings))


def masked(shape: Shape, sentences: Sequence[Sequence[int]], framing: int) -> Work:
    """Return the work of scoring each token of each sentence but the framing ones, which are no more than read.

    >>> masked(Shape("", "", "", body=10, head=5), [(0, 7, 8, 9)], 2).operations
    180
    """
    different = {tuple(ids) for ids in sentences}
    copies = [(len(ids) - framing, len(ids)) for ids in different]
    weights = sum(count * (length * shape.body + shape.head) for count, length in copies)
    return Work(sum(len(ids) - framing for ids in sentences), 2 * weights)


def needed(shape: Shape, texts: Sequence[str], *, lead: str | None) -> Work:
    """Return the work of a request as its tokenizer cuts it.

    Args:
        lead: What stands before each text after the start token; None means that there is no start token, and
            that the first token of a text is not scored.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(shape.folder) / "tokenizer.json"))
    if shape.kind == "masked":
        return masked(shape, [each.ids for each in tokenizer.encode_batch(list(texts))], 2)
    coded = [each.ids for each in tokenizer.encode_batch([(lead or "") + text for text in texts])]
    return causal(shape, coded if lead is None else [[-1, *ids] for ids in coded])
