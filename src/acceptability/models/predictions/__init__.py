"""What models predict at each token: entropies, ranks and alternatives, from the distribution over the next token.

A model that has such distributions returns a ``Predictor`` from ``as_predictor``: a variant of itself whose outputs are
``TokenPredictions``. It encodes, plans and batches like the model, and the store keeps its outputs under a signature
with the option ``predictions``, so that scoring itself is left as it is. ``causal_predictor``, ``masked_predictor`` and
``word_predictors`` compute the distributions of a kind of model; ``statistics`` reduces them, chunk by chunk, to a few
numbers for each token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.protocols import Model
from acceptability.specs import format_spec, parse_model_spec
from acceptability.types import TokenPredictions, TokenScores

# How byte-level BPE, SentencePiece and plain vocabularies write the space at the beginning of a token.
SPACE_SIGNS = ("Ġ", "▁", " ")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""What bytes are decoded to that are no character by themselves."""


@dataclass(frozen=True, eq=False)
class Requests:
    """Distributions over the next token that are needed, each with the token that follows in the text.

    Args:
        states: The number of the state of the network that predicts, such as a row of hidden states.
        targets: The id of the token that follows; -1 if none does.
        is_restricted: Whether only tokens of a group can follow.
    """

    states: NDArray[np.int64]
    targets: NDArray[np.int64]
    is_restricted: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class RequestStats:
    """What is kept of each requested distribution.

    Args:
        entropies: In nats.
        logprobs: The log-probability of the target.
        ranks: Its rank.
        cumulative: The probability of all tokens up to this rank.
        masses: The log-probability of the group that the distribution is restricted to; 0 for all tokens.
        top_ids: The most probable tokens, the best first.
        top_logprobs: Their log-probabilities.
    """

    entropies: NDArray[np.float32]
    logprobs: NDArray[np.float32]
    ranks: NDArray[np.int64]
    cumulative: NDArray[np.float32]
    masses: NDArray[np.float32]
    top_ids: NDArray[np.int64]
    top_logprobs: NDArray[np.float32]

    def at_tokens(self, rows: NDArray[np.int64], entropies_after: NDArray[np.float32]) -> PredictionStats:
        """Return the statistics of tokens, given the distribution before each and the entropy after it."""
        return PredictionStats(
            self.entropies[rows],
            entropies_after.astype(np.float32),
            self.ranks[rows],
            self.cumulative[rows],
            self.top_ids[rows],
            self.top_logprobs[rows],
        )


@dataclass(frozen=True, eq=False)
class PredictionStats:
    """What is kept of distributions over the next token, a row for each token.

    Args:
        entropies, entropies_after: In nats, before and after the token; nan for none.
        ranks: The rank of the token in the text.
        cumulative: The probability of all tokens up to this rank.
        top_ids: The most probable tokens, the best first.
        top_logprobs: Their log-probabilities.
    """

    entropies: NDArray[np.float32]
    entropies_after: NDArray[np.float32]
    ranks: NDArray[np.int64]
    cumulative: NDArray[np.float32]
    top_ids: NDArray[np.int64]
    top_logprobs: NDArray[np.float32]

    def add_to(self, scores: TokenScores, texts: Callable[[int], str]) -> TokenPredictions:
        """Return token scores with these predictions.

        Args:
            scores: The scores of the same tokens.
            texts: Returns a token of the vocabulary as it stands in a text.
        """
        # Of a small vocabulary, some alternatives may be impossible: they come last, and are none.
        possible = np.isfinite(self.top_logprobs).sum(axis=1).tolist()
        return TokenPredictions(
            scores.text,
            scores.tokens,
            scores.offsets,
            scores.logprobs,
            scores.unknown,
            scores.spelling_logprobs,
            self.entropies,
            self.entropies_after,
            self.ranks,
            self.cumulative,
            tuple(tuple(map(texts, row[:n])) for row, n in zip(self.top_ids.tolist(), possible, strict=True)),
            self.top_logprobs,
        )


@dataclass(frozen=True)
class Predictor(Model):
    """A variant of a model whose outputs are ``TokenPredictions``; all else is as in the model.

    Args:
        model: The model.
        top: How many alternatives each token gets.
    """

    model: Any
    top: int

    @property
    def signature(self) -> str:
        """The signature of the model with the option ``predictions``, which keeps these outputs apart in the store."""
        kind, location, options = parse_model_spec(self.model.signature)
        name = f"{kind}:{location}" if location else kind
        return format_spec(name, options | {"predictions": self.top})

    def encode(self, queries: Sequence[Any]) -> Sequence[Any]:
        """Return the queries, encoded by the model."""
        encoded: Sequence[Any] = self.model.encode(queries)
        return encoded

    @property
    def budget(self) -> int:
        """The maximal number of token positions in a batch."""
        return int(self.model.budget)

    @property
    def packing(self) -> str:
        """Which queries share a batch."""
        return str(self.model.packing)

    @property
    def is_unknown(self) -> Callable[[str], bool] | None:
        """The function that returns whether a token is outside the vocabulary."""
        known: Callable[[str], bool] | None = self.model.is_unknown
        return known

    @property
    def device_class(self) -> str | None:
        """The class of device, if the model computes in half precision."""
        name: str | None = self.model.device_class
        return name

    @property
    def omits_unknown(self) -> bool:
        """Whether sentences with unknown words have no score."""
        return bool(self.model.omits_unknown)


class TokenTexts:
    """The tokens of a vocabulary of transformers as they would stand in a text, with the space before them.

    Args:
        tokenizer: The tokenizer.
        names: The tokens as the vocabulary spells them.
    """

    def __init__(self, tokenizer: Any, names: Sequence[str]) -> None:
        self._tokenizer, self._names = tokenizer, names
        self._special = set(tokenizer.all_special_ids)
        self._texts: dict[int, str] = {}

    def __call__(self, token_id: int) -> str:
        """Return a token; one that is special, or a part of a character, by its name in the vocabulary."""
        if token_id not in self._texts:
            self._texts[token_id] = self._find_text(token_id)
        return self._texts[token_id]

    def is_special(self, token_id: int) -> bool:
        """Return whether a token stands for no text: a special one, or an id without a token."""
        return token_id in self._special or token_id >= len(self._names) or not self._names[token_id]

    def list_all(self, size: int) -> list[str]:
        """Return all tokens of a vocabulary; empty for those that stand for no text.

        A part of a character has a replacement character in its place.
        """
        return ["" if self.is_special(token_id) else self._decode(token_id) for token_id in range(size)]

    def _find_text(self, token_id: int) -> str:
        if self.is_special(token_id):
            return self._names[token_id] if token_id < len(self._names) else ""
        text = self._decode(token_id)
        return self._names[token_id] if REPLACEMENT in text else text

    def _decode(self, token_id: int) -> str:
        name = self._names[token_id]
        text = str(self._tokenizer.convert_tokens_to_string([name]))
        # SentencePiece drops the space before the first token of a text.
        return f" {text.lstrip(' ')}" if name.startswith(SPACE_SIGNS) else text
