"""How text becomes words for a classifier, and which of them it knows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from acceptability.models.splitting import spans, spelled
from acceptability.models.vocabulary import SPECIAL


@dataclass(frozen=True)
class Cutting:
    """How text becomes words, and which of them are known; a language model has its own ways instead.

    Args:
        rule: The rule that cuts text into words.
        most: How many words are known at most; 0 means all.
        least: How often a word must stand in the sentences for its vector to be learnt.
    """

    rule: str = "split"
    lower: bool = True
    most: int = 0
    least: int = 1

    def counts(self, texts: Iterable[str]) -> Counter[str]:
        """Return how often each word stands in texts."""
        raw = Counter(text[start:end] for text in texts for start, end in spans(text, self.rule))
        found: Counter[str] = Counter()
        for word, number in raw.items():
            found[spelled(word, lower=self.lower)] += number
        return Counter({word: number for word, number in found.items() if word not in SPECIAL})
