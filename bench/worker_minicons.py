"""The worker that scores with minicons.

The option ``metric`` of its order is None for a causal model, else the PLL metric: ``original`` or ``within_word_l2r``.
The option ``bos`` asks it to put the start token before each text.

What it scores. Causal: the text as the tokenizer frames it by itself (GPT-2: nothing before it, no space), every token
but the first, which is dropped; with ``bos`` the start token comes first and the text's own first token counts. No end
token. Masked: every token that is not the padding, the class or the separator token, each masked in turn; with
``within_word_l2r`` later tokens of the same word are masked too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.serving import Order, Scorer, serve


class Minicons:
    """A scorer of minicons, with the batches cut as its users must cut them: in the order given."""

    def __init__(self, order: Order) -> None:
        import torch
        from minicons import scorer

        metric = order.options.get("metric")
        maker = scorer.MaskedLMScorer if metric else scorer.IncrementalLMScorer
        self.scorer: Any = maker(order.folder, order.device, dtype=getattr(torch, order.dtype))
        self.settings: dict[str, Any] = {"PLL_metric": metric} if metric else {}
        if order.options.get("bos"):
            self.settings["bos_token"] = True
        self.notes: Sequence[str] = _mended(self.scorer) if metric else ()

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the summed log-probability of each text."""
        found: list[float] = []
        for start in range(0, len(texts), batch):
            part = list(texts[start : start + batch])
            found += self.scorer.sequence_score(part, reduction=lambda each: each.sum(0).item(), **self.settings)
        return found

    def tokens(self, texts: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return each text's tokens with their log-probabilities; a dropped first token has 0."""
        return [self.scorer.token_score([text], **self.settings)[0] for text in texts]


def _mended(scorer: Any) -> list[str]:
    """Give the tokenizer what transformers 5 took away, and say so."""
    if hasattr(scorer.tokenizer, "batch_encode_plus"):
        return []
    scorer.tokenizer.batch_encode_plus = scorer.tokenizer.__call__
    return ["minicons calls tokenizer.batch_encode_plus, which transformers 5 removed: set to tokenizer.__call__"]


def load(order: Order) -> Scorer:
    """Return the model of the order."""
    return Minicons(order)


if __name__ == "__main__":
    serve(load, ["minicons", "torch", "transformers"])
