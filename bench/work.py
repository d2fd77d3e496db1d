"""The least arithmetic that a request needs with any tool: the reference for "share of the matrix rate".

Two floating-point operations (multiply, add) are counted for each weight that a token position is multiplied with:

- causal: every *distinct* prefix from which a token is predicted, once, through body and head. Sentences share their
  common prefixes; the last token of a sentence predicts nothing.
- masked: every position of every masked copy through the body, and the head at the masked position. There is one copy
  for each scored token of each distinct sentence.

Not counted: padding, embeddings (looked up), attention between positions (some per cent for short sentences), softmax.
A tool that saves more (such as computing the last layer only at the masked position) only looks better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.shapes import Shape


@dataclass(frozen=True)
class Work:
    """The size of a request: the number of scored tokens, and of the operations that they need."""

    tokens: int
    operations: int


def causal(shape: Shape, sentences: Sequence[Sequence[int]]) -> Work:
    """Return the work of scoring each token of each sentence except the first, which is only read.

    >>> causal(Shape("", "", "", body=10, head=5), [(1, 2, 3), (1, 2, 4)]).operations
    60
    """
    prefixes = {tuple(ids[:end]) for ids in sentences for end in range(1, len(ids))}
    return Work(sum(len(ids) - 1 for ids in sentences), 2 * (shape.body + shape.head) * len(prefixes))


def masked(shape: Shape, sentences: Sequence[Sequence[int]], special_tokens: int) -> Work:
    """Return the work of scoring each token of each sentence except the special tokens, which are only read.

    >>> masked(Shape("", "", "", body=10, head=5), [(0, 7, 8, 9)], 2).operations
    180
    """
    distinct = {tuple(ids) for ids in sentences}
    copies = [(len(ids) - special_tokens, len(ids)) for ids in distinct]
    weights = sum(count * (length * shape.body + shape.head) for count, length in copies)
    return Work(sum(len(ids) - special_tokens for ids in sentences), 2 * weights)


def count_work(shape: Shape, texts: Sequence[str], *, lead: str | None) -> Work:
    """Return the work of a request, tokenized with the tokenizer of the model.

    Args:
        lead: The text between the start token and each sentence; None if there is no start token, so that the
            first token of a text is not scored.
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(shape.folder) / "tokenizer.json"))
    if shape.kind == "masked":
        return masked(shape, [encoding.ids for encoding in tokenizer.encode_batch(list(texts))], 2)
    token_ids = [encoding.ids for encoding in tokenizer.encode_batch([(lead or "") + text for text in texts])]
    return causal(shape, token_ids if lead is None else [[-1, *ids] for ids in token_ids])
