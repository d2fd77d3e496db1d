"""The worker that scores with minicons.

The option ``metric`` of a load request is None for a causal model, else the PLL metric: ``original`` or
``within_word_l2r``. With the option ``bos``, the start token is put before each text.

Scored tokens. Causal: the text with the tokenizer's special tokens (GPT-2: nothing before it, no space), all tokens
except the first, which is dropped; with ``bos`` the start token comes first, and the first token of the text is scored.
No end token. Masked: every token except the padding, class and separator tokens, masked one at a time; with
``within_word_l2r`` the later tokens of the same word are masked too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.serving import Order, Scorer, serve


class Minicons:
    """A scorer of minicons, with batches in the given order, as its users have to make them."""

    def __init__(self, order: Order) -> None:
        import torch
        from minicons import scorer

        metric = order.options.get("metric")
        scorer_class = scorer.MaskedLMScorer if metric else scorer.IncrementalLMScorer
        self.scorer: Any = scorer_class(order.folder, order.device, dtype=getattr(torch, order.dtype))
        self.settings: dict[str, Any] = {"PLL_metric": metric} if metric else {}
        if order.options.get("bos"):
            self.settings["bos_token"] = True
        self.notes: Sequence[str] = _restore_batch_encode_plus(self.scorer) if metric else ()

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the summed log-probability of each text."""
        scores: list[float] = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            scores += self.scorer.sequence_score(
                part, reduction=lambda logprobs: logprobs.sum(0).item(), **self.settings
            )
        return scores

    def tokens(self, texts: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return each text's tokens with their log-probabilities; a dropped first token has 0."""
        return [self.scorer.token_score([text], **self.settings)[0] for text in texts]


def _restore_batch_encode_plus(scorer: Any) -> list[str]:
    """Give the tokenizer the method that transformers 5 removed; return a note about it."""
    if hasattr(scorer.tokenizer, "batch_encode_plus"):
        return []
    scorer.tokenizer.batch_encode_plus = scorer.tokenizer.__call__
    return ["minicons calls tokenizer.batch_encode_plus, which transformers 5 removed: set to tokenizer.__call__"]


def load(order: Order) -> Scorer:
    """Return the requested model."""
    return Minicons(order)


if __name__ == "__main__":
    serve(load, ["minicons", "torch", "transformers"])
