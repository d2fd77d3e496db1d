"""From tokens to regions: what a model said of each region of a sentence, from one pass over the whole.

A token belongs to the region in which it begins, by its first character that is no space. Its
region's log-probability is the sum over such tokens. A region without a token of its own has the sum
of nothing, 0: its text lies wholly in a token that begins before it (a comma, for a model that does
not cut it off), or it is punctuation that the model does not read. One whose words were not scored
(the first word, for a model without a start token) has no log-probability at all.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from acceptability.errors import ScoreError, shorten
from acceptability.types import LabelScores, Said, Scores, Sentence, Suite, TokenScores


def region_logprobs(sentence: Sentence, said: TokenScores) -> dict[str, float]:
    """Return the log-probability of each region that was scored, in nats.

    >>> import numpy as np
    >>> sentence = Sentence("a", "Cats sleep.", regions={"1": (0, 4), "2": (5, 11)})
    >>> said = TokenScores("Cats sleep.", ("C", "ats", " sleep", "."), ((0, 1), (1, 4), (4, 10), (10, 11)),
    ...                    np.array([-1.0, -2.0, -3.0, -4.0], np.float32))
    >>> region_logprobs(sentence, said)
    {'1': -3.0, '2': -7.0}
    """
    return {name: math.fsum(logprobs) for name, logprobs in region_tokens(sentence, said).items()}


def region_tokens(sentence: Sentence, said: TokenScores) -> dict[str, list[float]]:
    """Return the log-probabilities of the tokens that begin in each region, where its words were scored.

    A token without a place of its own, such as an end token, belongs to no region.
    """
    begun = [
        (_begin(said.text, start), end, logprob)
        for (start, end), logprob in zip(said.offsets, said.logprobs.tolist(), strict=True)
        if start < end
    ]
    return {
        name: [logprob for begin, _, logprob in begun if start <= begin < stop]
        for name, (start, stop) in sentence.regions.items()
        if any(begin < stop and end > start for begin, end, _ in begun)
        or not any(map(str.isalnum, said.text[start:stop]))
    }


def _begin(text: str, start: int) -> int:
    """Return where a token begins; one that is all space begins where the next word does."""
    while start < len(text) and text[start].isspace():
        start += 1
    return start


class RegionScores:
    """Adds the scores of regions, under ``id#region``, to the scores of their sentences."""

    def __init__(self, suite: Suite) -> None:
        self._sentences = suite.sentences
        self._values: dict[str, float] = {}
        self._without = 0

    def take(self, batch: Sequence[tuple[int, Said]]) -> None:
        """Take what was said to some sentences, named by their places."""
        for place, said in batch:
            sentence = self._sentences[place]
            if isinstance(said, LabelScores):
                raise ScoreError(
                    f"{shorten(sentence.text)!r}: a classifier says nothing of regions. Take a language model."
                )
            for name, logprobs in region_tokens(sentence, said).items():
                self._values[f"{sentence.id}#{name}"] = math.fsum(logprobs)
                self._without += not logprobs

    def added(self, scores: Scores) -> Scores:
        """Return scores with those of regions among them."""
        note = f"{self._without} regions have no token of their own, so their surprisal is 0"
        notes = (*scores.notes, note) if self._without else scores.notes
        return replace(scores, values={**scores.values, **self._values}, notes=notes)
