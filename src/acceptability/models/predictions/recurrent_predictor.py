"""Predictions of recurrent models: the distribution over the words of the vocabulary before and after each word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.errors import ModelError
from acceptability.models.hf.loading import convert_out_of_memory
from acceptability.models.predictions import Predictor, Requests, RequestStats
from acceptability.models.predictions.statistics import summarise_requests
from acceptability.text.words import END, SPECIAL_WORDS
from acceptability.types import TokenPredictions


class RecurrentPredictor(Predictor):
    """A recurrent model whose outputs are ``TokenPredictions``."""

    def run(self, batch: Sequence[Any]) -> list[TokenPredictions]:
        """Return the predictions of each query."""
        model, words = self.model, self.model.vocabulary.words
        with convert_out_of_memory(f"{model.folder.name}: a batch of {len(batch)} texts"):
            stats = self._predict([encoded.word_ids for encoded in batch])
        outputs, start = [], 0
        for encoded in batch:
            logprobs = stats.logprobs[start : start + len(encoded.words) + 1].copy()
            scores = model.build_token_scores(encoded, logprobs)
            rows = start + np.array(encoded.scored_positions)
            after = stats.entropies[rows + 1]
            if len(scores.tokens) > len(rows):
                # Nothing is predicted after the end of a sentence.
                rows, after = np.append(rows, start + len(encoded.words)), np.append(after, np.nan)
            outputs.append(stats.at_tokens(rows, after).add_to(scores, words.__getitem__))
            start += len(encoded.words) + 1
        return outputs

    def _predict(self, rows: Sequence[Sequence[int]]) -> RequestStats:
        """Return the statistics at each word of each row, and at the end of the sentence after them."""
        net = self.model.net
        hidden = self.model.compute_last_states(rows)
        targets = np.concatenate([[*row, END] for row in rows])
        requests = Requests(np.arange(len(targets)), targets, np.zeros(len(targets), bool))
        with torch.inference_mode():

            def compute(numbers: Any) -> Any:
                return net.output.all_logprobs(hidden[numbers], net.table)

            return summarise_requests(requests, compute, None, self.top, net.shape.words, net.table.device)()


class RecurrentNextWords:
    """The distribution of a recurrent model over the word after a text.

    Args:
        model: The model.
    """

    tokens_are_words = True
    fills_mask = False
    end_ids = frozenset((END,))

    def __init__(self, model: Any) -> None:
        self._model = model
        words = model.vocabulary.words
        self.token_texts = ["" if number < len(SPECIAL_WORDS) else word for number, word in enumerate(words)]

    def encode_prefix(self, text: str) -> list[int]:
        """Return the words of the beginning of a text."""
        ids: list[int] = self._model.vocabulary.to_ids(self._model.vocabulary.tokenize(text)[0])
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of words."""
        return " ".join(self.token_texts[word_id] for word_id in ids)

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the log-probability of every word after each prefix."""
        ends = np.cumsum([len(prefix) + 1 for prefix in prefixes]) - 1
        net, hidden = self._model.net, self._model.compute_last_states(prefixes)
        with torch.inference_mode():
            table = net.output.all_logprobs(hidden[torch.from_numpy(ends).to(hidden.device)], net.table)
        logprobs: NDArray[np.float32] = table.float().cpu().numpy()
        return logprobs


def check_proper(model: Any) -> None:
    """Raise an error for a model whose probabilities do not sum to 1."""
    if model.improper:
        raise ModelError(f"recurrent:{model.folder} has probabilities that do not sum to 1: it has no entropies")
