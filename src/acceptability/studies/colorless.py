"""Chomsky's "Colorless green ideas sleep furiously" (1957) against its reversal, under any language model.

Pereira (2000) finds the sentence about 200,000 times as probable as its reversal under an aggregate Markov model
of 16 classes, trained on newspaper text; Niu and Penn (2020), section 5, quote the number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from acceptability.errors import Undefined
from acceptability.models import load_model
from acceptability.protocols import Model
from acceptability.scoring import Judgement, judge
from acceptability.types import TokenScores

SENTENCE = "Colorless green ideas sleep furiously."
REVERSAL = "Furiously sleep ideas green colorless."
PRINTED = 200_000
"""What Niu and Penn (2020) quote from Pereira (2000): "roughly 200 000 times greater"."""


@dataclass(frozen=True)
class Ratio:
    """How many times as probable one sentence is as another.

    Args:
        log10: The ratio as a power of ten; above 0 where the sentence is more probable than its reversal.
        note: What to know about it: the words that the model does not know.
    """

    log10: float
    note: str = ""

    @property
    def times(self) -> float:
        """The ratio itself.

        >>> Ratio(log10=2.0).times
        100.0
        """
        if self.log10 > 308:
            raise Undefined(f"the ratio is 10 to the power of {self.log10:.1f}, which is too large for a number")
        return float(10.0**self.log10)


def ratio(model: str | Model, *, lower: bool = False) -> Ratio:
    """Return how many times as probable the sentence is as its reversal.

    Args:
        lower: Whether both are put to the model in lower case, so that they have the same words; as they
            are written, one begins with ``Colorless`` and the other with ``Furiously``.
    """
    asked = load_model(model) if isinstance(model, str) else model
    texts = [text.lower() if lower else text for text in (SENTENCE, REVERSAL)]
    sentence, reversal = judge(texts, asked, "lp")
    return Ratio((sentence.score - reversal.score) / math.log(10), _note(asked, (sentence, reversal)))


def _note(model: Model, judged: tuple[Judgement, Judgement]) -> str:
    """Return which words the model does not know, if it tells."""
    is_unknown = getattr(model, "is_unknown", None)
    if is_unknown is None:
        return ""
    words = {
        token: None
        for each in judged
        if isinstance(each.said, TokenScores)
        for token in each.said.tokens
        if is_unknown(token)
    }
    return f"the model does not know {', '.join(words)}" if words else ""
