"""Predictions of causal models: the distribution before each scored token, and after it.

The forward pass is that of scoring (the prefix trie, or the padded path), continued by one token, since the entropy
after the last word needs the state of its last token. The head then runs in chunks (``statistics.py``).

With ``spaces='trailing'`` the space before a word has been read already, as a part of the word before. The distribution
before a token that opens a word is then that over tokens that can open a word: entropy, rank, cumulative probability
and alternatives refer to it. Within a word they refer to all tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.errors import ModelError
from acceptability.models.hf.causal_forward import CausalForwardPath, TrieCausalPath, compute_trie_states
from acceptability.models.hf.loading import convert_out_of_memory
from acceptability.models.kernels.head import apply_head, to_device
from acceptability.models.kernels.trie import IntArray, build_trie
from acceptability.models.predictions import Predictor, Requests, RequestStats, TokenTexts
from acceptability.models.predictions.statistics import summarise_requests
from acceptability.types import TokenPredictions

if TYPE_CHECKING:
    from acceptability.models.hf.causal import Causal, CausalEncoding


class CausalPredictor(Predictor):
    """A causal model whose outputs are ``TokenPredictions``."""

    @cached_property
    def _texts(self) -> TokenTexts:
        return TokenTexts(self.model.files.tokenizer, self.model.files.token_names)

    def encode(self, queries: Sequence[Any]) -> Sequence[CausalEncoding]:
        """Return the queries as token ids, each as an object."""
        encoded: Sequence[CausalEncoding] = self.model.encode_each(queries)
        return encoded

    def run(self, batch: Sequence[CausalEncoding]) -> list[TokenPredictions]:
        """Return the predictions of each query."""
        return self.begin(batch)()

    def begin(self, batch: Sequence[CausalEncoding]) -> Callable[[], list[TokenPredictions]]:
        """Start a forward pass, and return the function that waits for the predictions of each query."""
        group = self.model.word_opening_ids if self.model.spaces == "trailing" else None
        with convert_out_of_memory(f"{self.model.files.name}: a batch of {len(batch)} texts"), torch.inference_mode():
            compute_logits, node_table = run_network(self.model.forward, [_list_read_ids(one) for one in batch])
            net = self.model.net
            size = net.config.get_text_config().vocab_size
            requests = _list_requests(batch, node_table, group)
            pending = summarise_requests(requests, compute_logits, group, self.top, size, net.device)

        def collect() -> list[TokenPredictions]:
            stats, outputs, start = pending(), [], 0
            for encoding in batch:
                outputs.append(self._build_output(encoding, requests, stats, start))
                start += 2 * len(encoding.scored)
            return outputs

        return collect

    def _build_output(
        self, encoding: CausalEncoding, requests: Requests, stats: RequestStats, start: int
    ) -> TokenPredictions:
        """Return the predictions of a query, whose requests begin at ``start``."""
        before = np.arange(start, start + 2 * len(encoding.scored), 2)
        after = before + 1
        # The space after a word belongs to it: what follows is the opening of another word, with this probability.
        logprobs = stats.logprobs[before] + stats.masses[after]
        entropies_after = np.where(_has_following(encoding), stats.entropies[after], np.float32(np.nan))
        names, unknown = self.model.files.token_names, self.model.files.tokenizer.unk_token
        scores = encoding.to_token_scores(logprobs.astype(np.float32), names, unknown)
        return stats.at_tokens(before, entropies_after).add_to(scores, self._texts)


def _list_read_ids(encoding: CausalEncoding) -> Sequence[int]:
    """Return the tokens that the network reads: up to the last one that is scored, included."""
    return encoding.ids[: encoding.scored[-1] + 1]


def _has_following(encoding: CausalEncoding) -> NDArray[np.bool_]:
    """Tell for each scored token whether anything is predicted after it: not after an end token."""
    return np.asarray(encoding.scored) < encoding.prefix_length + len(encoding.encoding.ids)


def _list_requests(batch: Sequence[CausalEncoding], node_table: IntArray, group: IntArray | None) -> Requests:
    """Return the distributions before and after each scored token, in turn.

    Args:
        node_table: The state at each position of each query.
        group: The tokens that open a word, if a space counts towards the word before it.
    """
    states, targets = [], []
    for row, encoding in enumerate(batch):
        ids = encoding.ids
        for position in encoding.scored:
            states += [node_table[row, position - 1], node_table[row, position]]
            targets += [ids[position], ids[position + 1] if position + 1 < len(ids) else -1]
    target_ids = np.array(targets, np.int64)
    is_restricted = np.zeros(len(target_ids), bool) if group is None else np.isin(target_ids, group)
    return Requests(np.array(states, np.int64), target_ids, is_restricted)


def run_network(forward: CausalForwardPath, rows: Sequence[Sequence[int]]) -> tuple[Callable[[Any], Any], IntArray]:
    """Run rows of tokens through a causal network, and return the function of its logits, and the state of each token.

    Args:
        forward: The path that the network takes.
        rows: The token ids.
    """
    lengths = np.array([len(row) for row in rows])
    tokens, starts = np.concatenate([np.asarray(row, np.int64) for row in rows]), np.cumsum(lengths) - lengths
    if isinstance(forward, TrieCausalPath):
        token_trie = build_trie(tokens, starts, lengths)
        states = compute_trie_states(forward.net, token_trie)
        return lambda numbers: apply_head(forward.net, states[numbers]), token_trie.node_table
    # Padded on the right, where a causal network cannot see the padding.
    shape = len(rows), int(lengths.max())
    is_token = np.arange(shape[1]) < lengths[:, None]
    ids = np.zeros(shape, np.int64)
    ids[is_token] = tokens
    input_ids, attention_mask = to_device(forward.net.device, ids, is_token.astype(np.int64))
    logits = forward.net(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits.flatten(0, 1)
    return lambda numbers: logits[numbers], np.arange(shape[0] * shape[1]).reshape(shape)


class FollowingTokens:
    """The distribution of a causal model over the token after a text.

    Args:
        model: The model.
    """

    tokens_are_words = False
    fills_mask = False

    def __init__(self, model: Causal) -> None:
        self._model = model

    @cached_property
    def token_texts(self) -> Sequence[str]:
        """Each token as it would stand in a text; empty for a special one."""
        texts = TokenTexts(self._model.files.tokenizer, self._model.files.token_names)
        return texts.list_all(self._model.net.config.get_text_config().vocab_size)

    @property
    def end_ids(self) -> frozenset[int]:
        """The tokens that end a text."""
        end = self._model.files.tokenizer.eos_token_id
        return frozenset() if end is None else frozenset((int(end),))

    def encode_prefix(self, text: str) -> list[int]:
        """Return the tokens of the beginning of a text, after the start token."""
        ids = list(self._model.bos_ids)
        if text:
            (encoded,) = self._model.files.tokenize([text], add_special_tokens=self._model.preset == "minicons")
            ids += encoded.ids
        if not ids:
            raise ModelError(
                f"{self._model.files.name} has no start token, so that nothing precedes the first word: give the "
                "beginning of a sentence, or name a start token: bos='TOKEN'"
            )
        if len(ids) > self._model.max_length - _ROOM_FOR_A_WORD:
            raise ModelError(
                f"the text has {len(ids)} tokens, and {self._model.files.name} reads {self._model.max_length}: give "
                "its last sentences"
            )
        return ids

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, without spaces around it."""
        tokenizer = self._model.files.tokenizer
        return str(tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)).strip()

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        """Return the log-probability of every token after each prefix."""
        with torch.inference_mode():
            compute_logits, node_table = run_network(self._model.forward, prefixes)
            lasts = [node_table[row, len(prefix) - 1] for row, prefix in enumerate(prefixes)]
            table = compute_logits(torch.tensor(lasts, device=self._model.net.device)).float().log_softmax(1)
        logprobs: NDArray[np.float32] = table.cpu().numpy()
        return logprobs


# A word that is looked for after the text has tokens of its own.
_ROOM_FOR_A_WORD = 16
