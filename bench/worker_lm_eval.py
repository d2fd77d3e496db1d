"""The worker that scores with lm-evaluation-harness, along the road of its BLiMP task.

That task asks for the log-likelihood of a space and the sentence after an empty context, for which the harness puts
the start token (or, for want of one, the end token). So the first word is scored, in the spelling it has after a space;
no end token is. Requests are sorted by length, and two that differ in the last token alone share a forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.serving import Order, Scorer, serve

_DELIMITER = " "
"""What a task of the harness puts between context and answer, also where the context is empty."""


class Harness:
    """The harness's model of transformers."""

    notes: Sequence[str] = ()

    def __init__(self, order: Order) -> None:
        from lm_eval.models.huggingface import HFLM

        self.model: Any = HFLM(pretrained=order.folder, dtype=order.dtype, device=order.device, batch_size=1)

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the log-likelihood of each text."""
        from lm_eval.api.instance import Instance

        self.model.batch_size_per_gpu = batch
        asked = [
            Instance(request_type="loglikelihood", doc={}, arguments=("", _DELIMITER + text), idx=place)
            for place, text in enumerate(texts)
        ]
        return [found for found, _ in self.model.loglikelihood(asked, disable_tqdm=True)]

    def tokens(self, texts: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return each text's tokens with their log-probabilities: the harness tells sums, so each is asked alone."""
        return [self._each(text) for text in texts]

    def _each(self, text: str) -> list[tuple[str, float]]:
        ids = [
            self.model.prefix_token_id,
            *self.model.tok_encode(_DELIMITER + text, add_special_tokens=False),
        ]
        asked = [(("", str(place)), ids[:place], [ids[place]]) for place in range(1, len(ids))]
        found = [value for value, _ in self.model._loglikelihood_tokens(asked, disable_tqdm=True)]
        return list(zip(self.model.tokenizer.convert_ids_to_tokens(ids[1:]), found, strict=True))


def load(order: Order) -> Scorer:
    """Return the model of the order."""
    return Harness(order)


if __name__ == "__main__":
    serve(load, ["lm_eval", "torch", "transformers"])
