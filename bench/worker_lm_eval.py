"""The worker that scores with lm-evaluation-harness, in the same way as its BLiMP task.

That task requests the log-likelihood of a space and the sentence after an empty context, which the harness replaces by
the start token (or, if there is none, the end token). So the first word is scored, as it is spelled after a space, and
no end token is scored. Requests are sorted by length, and two that differ only in the last token share a forward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.serving import Order, Scorer, serve

_DELIMITER = " "
"""What a task of the harness puts between the context and the answer, even if the context is empty."""


class Harness:
    """A transformers model in the harness."""

    notes: Sequence[str] = ()

    def __init__(self, order: Order) -> None:
        from lm_eval.models.huggingface import HFLM

        self.model: Any = HFLM(pretrained=order.folder, dtype=order.dtype, device=order.device, batch_size=1)

    def scores(self, texts: Sequence[str], batch: int) -> list[float]:
        """Return the log-likelihood of each text."""
        from lm_eval.api.instance import Instance

        self.model.batch_size_per_gpu = batch
        requests = [
            Instance(request_type="loglikelihood", doc={}, arguments=("", _DELIMITER + text), idx=index)
            for index, text in enumerate(texts)
        ]
        return [logprob for logprob, _ in self.model.loglikelihood(requests, disable_tqdm=True)]

    def tokens(self, texts: Sequence[str]) -> list[list[tuple[str, float]]]:
        """Return the tokens of each text with their log-probabilities.

        The harness returns only sums, so every token is a request of its own.
        """
        return [self._score_tokens(text) for text in texts]

    def _score_tokens(self, text: str) -> list[tuple[str, float]]:
        ids = [
            self.model.prefix_token_id,
            *self.model.tok_encode(_DELIMITER + text, add_special_tokens=False),
        ]
        requests = [(("", str(index)), ids[:index], [ids[index]]) for index in range(1, len(ids))]
        logprobs = [logprob for logprob, _ in self.model._loglikelihood_tokens(requests, disable_tqdm=True)]
        return list(zip(self.model.tokenizer.convert_ids_to_tokens(ids[1:]), logprobs, strict=True))


def load(order: Order) -> Scorer:
    """Return the requested model."""
    return Harness(order)


if __name__ == "__main__":
    serve(load, ["lm_eval", "torch", "transformers"])
