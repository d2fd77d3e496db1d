"""Predictions of masked models: the distribution at each masked token, given both sides.

What is masked with a token is the same as in scoring. There is no distribution after a token, so that these models have
no entropy reduction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models.hf.loading import convert_out_of_memory
from acceptability.models.hf.masked_forward import MaskedCopies, ScoredOnlyMaskedPath
from acceptability.models.kernels.head import apply_head, to_device
from acceptability.models.predictions import Predictor, Requests, RequestStats, TokenTexts
from acceptability.models.predictions.statistics import summarise_requests
from acceptability.types import Query, TokenPredictions

if TYPE_CHECKING:
    from acceptability.models.hf.masked import Masked, MaskedEncoding

MASK_SIGNS = ("[MASK]", "<mask>")
"""What a user may write for a masked word, whatever the vocabulary calls it."""


class MaskedPredictor(Predictor):
    """A masked model whose outputs are ``TokenPredictions``."""

    @cached_property
    def _texts(self) -> TokenTexts:
        return TokenTexts(self.model.files.tokenizer, self.model.files.token_names)

    def encode(self, queries: Sequence[Any]) -> Sequence[MaskedEncoding]:
        """Return the queries as token ids, each as an object."""
        encoded: Sequence[MaskedEncoding] = self.model.encode_each(queries)
        return encoded

    def run(self, batch: Sequence[MaskedEncoding]) -> list[TokenPredictions]:
        """Return the predictions of each query."""
        names, unknown = self.model.files.token_names, self.model.files.tokenizer.unk_token
        outputs: dict[int, TokenPredictions] = {}
        for length in sorted({encoding.length for encoding in batch}):
            indices = [index for index, encoding in enumerate(batch) if encoding.length == length]
            with convert_out_of_memory(f"{self.model.files.name}: masked copies of {len(indices)} texts"):
                stats = self._predict_same_length([batch[index] for index in indices])
            start = 0
            for index in indices:
                encoding = batch[index]
                rows = np.arange(start, start + len(encoding.scored))
                start += len(rows)
                scores = encoding.to_token_scores(stats.logprobs[rows], names, unknown)
                after = np.full(len(rows), np.nan, np.float32)
                outputs[index] = stats.at_tokens(rows, after).add_to(scores, self._texts)
        return [outputs[index] for index in range(len(batch))]

    def _predict_same_length(self, batch: Sequence[MaskedEncoding]) -> RequestStats:
        """Return the statistics of all scored tokens of queries of one length, in their order."""
        # Imported here, since that module imports this one when it is asked for predictions.
        from acceptability.models.hf.masked import make_masked_copies, make_texts_to_mask, slice_copies

        copies = make_masked_copies(make_texts_to_mask(batch), self.model.files.tokenizer.mask_token_id)
        step = max(1, self.model.budget // batch[0].length)
        parts = [_begin_pass(self.model.forward, part, self.top)() for part in slice_copies(copies, step)]
        # Slices come in the order of the copies, while targets of several queries may share a copy.
        order = np.argsort(copies.rows, kind="stable")
        inverse = np.empty_like(order)
        inverse[order] = np.arange(len(order))
        columns: dict[str, Any] = {
            name: np.concatenate([vars(part)[name] for part in parts])[inverse] for name in vars(parts[0])
        }
        return RequestStats(**columns)


def _begin_pass(forward: Any, copies: MaskedCopies, top: int) -> Callable[[], RequestStats]:
    """Start a pass over masked copies, and return the function that waits for the statistics of each target."""
    size = forward.net.config.get_text_config().vocab_size
    cells = copies.rows * copies.input_ids.shape[1] + copies.positions
    requests = Requests(cells, copies.targets, np.zeros(len(cells), bool))
    with torch.inference_mode():
        compute_logits = _run_masked(forward, copies.input_ids)
        return summarise_requests(requests, compute_logits, None, top, size, forward.net.device)


def _run_masked(forward: Any, ids: NDArray[np.int64]) -> Callable[[Any], Any]:
    """Run texts of one length through a masked network, and return the function of the logits at flat positions."""
    (input_ids,) = to_device(forward.net.device, ids)
    if isinstance(forward, ScoredOnlyMaskedPath):
        states = forward.net.base_model(input_ids=input_ids).last_hidden_state.flatten(0, 1)
        return lambda cells: apply_head(forward.net, states[cells])
    logits = forward.net(input_ids=input_ids, attention_mask=torch.ones_like(input_ids)).logits.flatten(0, 1)
    return lambda cells: logits[cells]


class MaskedTokens:
    """The distribution over the token at the mask in a text.

    Args:
        model: The masked model.
    """

    tokens_are_words = False
    fills_mask = True
    end_ids: frozenset[int] = frozenset()

    def __init__(self, model: Masked) -> None:
        self._model = model

    @cached_property
    def token_texts(self) -> Sequence[str]:
        """Each token as it would stand in a text; empty for a special one."""
        texts = TokenTexts(self._model.files.tokenizer, self._model.files.token_names)
        return texts.list_all(self._model.net.config.get_text_config().vocab_size)

    def encode_prefix(self, text: str) -> list[int]:
        """Return the tokens of a text with one mask."""
        tokenizer = self._model.files.tokenizer
        for sign in MASK_SIGNS:
            # Without the space before it, which is a part of the token that is looked for, where tokens have spaces.
            text = re.sub(rf"\s*{re.escape(sign)}", lambda _: str(tokenizer.mask_token), text)
        (encoded,) = self._model.files.tokenize([text], add_special_tokens=True)
        ids = list(encoded.ids)
        if ids.count(tokenizer.mask_token_id) != 1:
            raise ModelError(
                f"{self._model.files.name} is a masked model, which fills one mask: write [MASK] where the word is "
                "missing"
            )
        if len(ids) > self._model.max_length:
            raise QueryError(0, f"it has {len(ids)} tokens, and the model reads {self._model.max_length}")
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without spaces around it."""
        tokenizer = self._model.files.tokenizer
        return str(tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)).strip()

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the log-probability of every token at the mask of each text."""
        mask_id = self._model.files.tokenizer.mask_token_id
        rows = []
        for ids in prefixes:
            with torch.inference_mode():
                compute_logits = _run_masked(self._model.forward, np.array([ids], np.int64))
                cell = torch.tensor([list(ids).index(mask_id)], device=self._model.net.device)
                rows.append(compute_logits(cell).float().log_softmax(1)[0].cpu().numpy())
        return np.array(rows, np.float32)


def split_masked_text(text: str) -> tuple[str, str]:
    """Return what stands before the mask in a text, and what after.

    >>> split_masked_text("The [MASK] sleeps.")
    ('The ', ' sleeps.')
    """
    for sign in MASK_SIGNS:
        if text.count(sign) == 1:
            before, _, after = text.partition(sign)
            return before, after
    raise QueryError(0, "it has no single [MASK]")


def make_masked_query(text: str, candidate: str) -> Query:
    """Return the query of a candidate in the place of the mask: all its tokens are masked together."""
    before, after = split_masked_text(text)
    return Query(before + candidate + after, target=(len(before), len(before) + len(candidate)))
