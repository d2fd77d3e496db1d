"""From tokens to words: what a model said of each word of a sentence.

A word is what spaces separate. Its log-probability is the sum over its tokens; where the
model has ``spaces='trailing'``, it includes the space after the word and not the one before.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from acceptability.types import Span, TokenScores


@dataclass(frozen=True, slots=True)
class Word:
    """One word, where it stands in the text, and its log-probability; None where no token of it was scored."""

    text: str
    span: Span
    logprob: float | None


def words(said: TokenScores) -> list[Word]:
    """Return the words of a sentence with their log-probabilities.

    A token without a place of its own, such as an end token, belongs to no word.

    >>> import numpy as np
    >>> said = TokenScores("Cats sleep.", ("C", "ats", " sleep", "."), ((0, 1), (1, 4), (4, 10), (10, 11)),
    ...                    np.array([-1.0, -2.0, -3.0, -4.0], np.float32))
    >>> [(word.text, word.logprob) for word in words(said)]
    [('Cats', -3.0), ('sleep.', -7.0)]
    """
    found = [match.span() for match in re.finditer(r"\S+", said.text)]
    sums: dict[int, float] = {}
    for (start, end), logprob in zip(said.offsets, said.logprobs.tolist(), strict=True):
        # A token may begin with the space before its word, so its end tells where it belongs.
        place = next((number for number, span in enumerate(found) if span[0] < end <= span[1]), None)
        if place is not None and start < end:
            sums[place] = sums.get(place, 0.0) + logprob
    return [Word(said.text[start:end], (start, end), sums.get(number)) for number, (start, end) in enumerate(found)]
