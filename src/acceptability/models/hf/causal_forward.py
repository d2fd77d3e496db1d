"""Forward passes of causal networks: the prefix-trie path, and the padded path that it is verified against.

``Causal.begin`` (``causal.py``) hands over a batch of token ids with the positions to score. ``TrieCausalPath`` merges
the batch into a prefix trie (``kernels/trie.py``), sends its nodes through the network as one flat row without padding,
and passes the hidden states that predict a scored token to the head (``kernels/head.py``). These four files are the
whole pass; what they call besides is arithmetic: ``kernels/attention.py``, and faster layers in ``kernels/layers.py``.

``choose_causal_path`` decides, when a network is loaded, whether it can take the trie path: all layers but attention
treat positions independently, so that a decoder can if its attention can be replaced (``enable_trie_attention``) and
its position ids are an argument. ``PaddedCausalPath`` is the fallback, and gives the same scores.

The last part, ``CausalSampler``, generates sentences instead of scoring them.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.errors import ModelError
from acceptability.models.kernels.attention import compute_attention, count_tile_sentences
from acceptability.models.kernels.head import (
    PendingLogprobs,
    compute_logprobs,
    compute_max_tokens,
    gather_logprobs,
    make_head_separable,
    to_device,
)
from acceptability.models.kernels.trie import IntArray, TokenTrie, build_trie
from acceptability.models.kernels.verify import UnsupportedNetwork, tune_forward_path, verify_logprobs, warn_slower_path
from acceptability.models.recurrent.network import sample_categorical
from acceptability.outputs import FlatRows, expand_ranges, flatten_rows
from acceptability.text.words import extract_first_sentence

if TYPE_CHECKING:
    from acceptability.models.hf.causal import Causal


@dataclass(frozen=True, eq=False)
class CausalRows:
    """The texts of a batch. Tokens after the last scored position of a text are not computed.

    Args:
        tokens: The token ids of each text.
        scored: The positions that are scored in each text, in ascending order.
    """

    tokens: FlatRows
    scored: FlatRows

    @cached_property
    def sizes(self) -> IntArray:
        """The number of tokens of each text before the last that is scored, which is predicted but never read."""
        sizes: IntArray = self.scored.values[self.scored.starts + self.scored.lengths - 1]
        return sizes

    @cached_property
    def row_indices(self) -> IntArray:
        """The text to which each scored position belongs."""
        return np.repeat(np.arange(len(self.tokens)), self.scored.lengths)

    @cached_property
    def targets(self) -> IntArray:
        """The token id at each scored position."""
        targets: IntArray = self.tokens.values[self.tokens.starts[self.row_indices] + self.scored.values]
        return targets


def make_causal_rows(texts: Sequence[tuple[Sequence[int], Sequence[int]]]) -> CausalRows:
    """Return the texts of a batch, each given as its token ids and the positions that are scored."""
    return CausalRows(flatten_rows([ids for ids, _ in texts]), flatten_rows([scored for _, scored in texts]))


class CausalForwardPath(Protocol):
    """A way of running a batch through a causal network."""

    net: Any
    packing: str
    max_tokens: int
    """The maximal number of token positions in a batch."""

    def __call__(self, batch: CausalRows, token_group: IntArray | None = None) -> PendingLogprobs:
        """Start a forward pass, and return the function that waits for the log-probabilities at the scored positions.

        Args:
            token_group: Token ids whose joint log-probability at each scored position is returned too, as a second
                row of the array.
        """
        ...


class TrieCausalPath:
    """The fast path: each distinct prefix once, no padding, the head only where a token is scored."""

    packing = "prefix"
    # No limit: the logits, which fill memory first in the padded path, are computed in chunks here.
    max_tokens = sys.maxsize

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, batch: CausalRows, token_group: IntArray | None = None) -> PendingLogprobs:
        """Start a forward pass, and return the function that waits for the log-probabilities."""
        tokens = batch.tokens
        token_trie = build_trie(tokens.values, tokens.starts, batch.sizes)
        # The hidden state that predicts a token is that of the position before it.
        nodes = token_trie.node_table[batch.row_indices, batch.scored.values - 1]
        states = compute_trie_states(self.net, token_trie)
        return compute_logprobs(self.net, states, nodes, batch.targets, token_group)


_ATTENTION_NAME = "acceptability_trie"
# What a network may hand to its attention without changing the result for a trie. Anything else, such as a soft cap or
# a learned bias, would be ignored by ours in silence, and is refused.
_SUPPORTED_ARGUMENTS = {
    "position_ids",
    "use_cache",
    "cache_position",
    "output_attentions",
    "is_causal",
    "dropout",
    "layer_type",
}
# Thread-local, because transformers calls the attention function without a way to pass the trie along, and several
# threads may score at a time.
_pass_state = threading.local()
"""The trie that is going through the network in this thread: ``flat_nodes`` is its node table as one row, and
``table_shape`` the shape of that table; ``first_cells`` is the first cell of each node in it; ``windows`` collects the
sliding windows that the layers ask for."""


def compute_trie_states(net: Any, token_trie: TokenTrie) -> Any:
    """Return the hidden states of the body of a network, one row for each node of a trie."""
    device = net.device
    node_table, first_cells = token_trie.select_branches()
    if device.type == "cuda":
        # Whole tiles of the attention, which would otherwise fill up the last one by copying all states in every layer.
        missing = -len(node_table) % count_tile_sentences(node_table.shape[1])
        node_table = np.concatenate([node_table, np.repeat(node_table[:1], missing, axis=0)])
    _pass_state.table_shape, _pass_state.windows = node_table.shape, set()
    ids, depths, _pass_state.flat_nodes, _pass_state.first_cells = to_device(
        device, token_trie.ids[None], token_trie.depths[None], node_table.ravel(), first_cells
    )
    try:
        # The position of a node is its depth: in the flat row, neighbours need not be neighbours in any sentence.
        output = net.base_model(input_ids=ids, position_ids=depths, use_cache=False)
    finally:
        _pass_state.flat_nodes = None
    # A network that ignores the replaced attention computes something; what it computes is not a trie.
    if not _pass_state.windows:
        raise UnsupportedNetwork("it does not use the attention that it is given")
    _check_attention_window(net.config.get_text_config(), _pass_state.windows)
    return output.last_hidden_state[0]


def _attend(
    module: Any,
    query: Any,
    key: Any,
    value: Any,
    attention_mask: Any,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[Any, None]:
    """Return the attention output of each node, which sees its ancestors in the trie. Called by transformers.

    The mask that transformers made is ignored: it is the causal one over the flat row, across sentences.
    """
    unsupported = [
        name for name, argument in others.items() if name not in _SUPPORTED_ARGUMENTS and argument is not None
    ]
    if unsupported or getattr(_pass_state, "flat_nodes", None) is None or not getattr(module, "is_causal", True):
        raise UnsupportedNetwork(f"its attention takes {', '.join(unsupported) or 'more than one row'}")
    _pass_state.windows.add(sliding_window)
    unrolled = _unroll_nodes(query), _unroll_nodes(key), _unroll_nodes(value)
    attended = compute_attention(*unrolled, causal=True, scaling=scaling, window=sliding_window)
    # Back from rows to nodes: every row that contains a node has the same output there, and the first one is taken.
    return attended.reshape(-1, *attended.shape[2:]).index_select(0, _pass_state.first_cells).unsqueeze(0), None


def _unroll_nodes(states: Any) -> Any:
    """Return the states of a trie's nodes as those of sentences: sentence × position × head × dimension."""
    nodes = states[0].transpose(0, 1)
    return nodes.index_select(0, _pass_state.flat_nodes).view(*_pass_state.table_shape, *nodes.shape[1:])


def _check_attention_window(config: Any, windows: set[int | None]) -> None:
    """Refuse a network with a limited attention window that it does not pass to its attention function.

    Such networks build the window into the mask, which ``_attend`` ignores. The sample of the verification is shorter
    than the window, and would not show the difference.
    """
    kinds = set(getattr(config, "layer_types", None) or ["sliding_attention"])
    unknown = kinds - {"full_attention", "sliding_attention"}
    window = getattr(config, "sliding_window", None) if "sliding_attention" in kinds else None
    if unknown or (window and window not in windows):
        raise UnsupportedNetwork(f"its attention does not say how far it sees: {', '.join(sorted(unknown)) or window}")


class PaddedCausalPath:
    """The plain path: rows padded to the longest, the whole network at all positions, the whole vocabulary."""

    packing = "size"

    def __init__(self, net: Any) -> None:
        self.net, self.max_tokens = net, compute_max_tokens(net)

    @torch.inference_mode()
    def __call__(self, batch: CausalRows, token_group: IntArray | None = None) -> PendingLogprobs:
        """Run a forward pass, and return the function that returns the log-probabilities."""
        # Padded on the right, where a causal network cannot see the padding, with the token 0, which every network has.
        mask = np.arange(int(batch.sizes.max())) < batch.sizes[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = batch.tokens.values[expand_ranges(batch.tokens.starts, batch.sizes)]
        input_ids, attention_mask = to_device(self.net.device, ids, mask.astype(np.int64))
        logits = self.net(input_ids=input_ids, attention_mask=attention_mask, use_cache=False).logits
        logprobs_by_row = []
        # A row at a time: the log-softmax makes a float32 copy of the logits in half precision, which for the whole
        # batch would double what is largest in memory.
        for row_logits, token_ids, positions in zip(logits, batch.tokens, batch.scored, strict=True):
            previous, targets = to_device(self.net.device, positions - 1, token_ids[positions])
            group_ids = None if token_group is None else to_device(self.net.device, token_group)[0]
            rows = torch.arange(len(previous), device=self.net.device)
            logprobs_by_row.append(gather_logprobs(row_logits[previous], rows, targets, group_ids).cpu().numpy())
        logprobs: NDArray[np.float32] = np.concatenate(logprobs_by_row, axis=-1)
        return lambda: logprobs


def choose_causal_path(load_net: Callable[[], Any], folder: Path) -> CausalForwardPath:
    """Return the fastest path through a network that gives the scores of the plain path.

    Args:
        load_net: Loads the network, anew at each call.
        folder: The folder of its weights.
    """
    return tune_forward_path(load_net, lambda net: _choose_untuned_path(net, folder), _run_sample, folder)


def _choose_untuned_path(net: Any, folder: Path) -> tuple[CausalForwardPath, NDArray[np.float32]]:
    """Return the fastest correct path through a network as it was loaded, and the sample's scores by the plain path."""
    plain, fast = PaddedCausalPath(net), TrieCausalPath(net)
    # Before the network is patched: these scores are the reference for everything that follows.
    expected, original_attention = _run_sample(plain), net.config._attn_implementation

    def run_with_trie() -> NDArray[np.float32]:
        make_head_separable(net)
        enable_trie_attention(net)
        return _run_sample(fast)

    problem = verify_logprobs(run_with_trie, expected, net.dtype)
    if problem is None:
        return fast, expected
    # The patched head can stay: without states to return, it calls the original.
    net.set_attn_implementation(original_attention)
    warn_slower_path(folder, problem)
    return plain, expected


def enable_trie_attention(net: Any) -> None:
    """Replace the attention function of a network by one that works on tries."""
    from transformers import AttentionInterface

    if "position_ids" not in signature(type(net.base_model).forward).parameters:
        raise UnsupportedNetwork("its position ids cannot be set")
    AttentionInterface.register(_ATTENTION_NAME, _attend)
    try:
        net.set_attn_implementation(_ATTENTION_NAME)
    except (ValueError, AttributeError, ImportError) as error:
        raise UnsupportedNetwork("its attention cannot be replaced") from error


def _run_sample(forward_path: CausalForwardPath) -> NDArray[np.float32]:
    """Return the log-probabilities of the sample by a path."""
    return forward_path(_make_sample_rows(forward_path.net))()


def _make_sample_rows(net: Any) -> CausalRows:
    """Return rows of random tokens, three of which share a prefix."""
    size = net.config.get_text_config().vocab_size
    tokens = np.random.default_rng(0).integers(0, size, 12).tolist()
    # The shared prefix branches after five tokens; the fourth row is shorter and begins elsewhere, so that a mistake in
    # positions, branches or padding shows in the scores.
    rows = [tokens[:5] + tokens[start : start + 4] for start in (5, 7, 8)] + [tokens[6:11]]
    return make_causal_rows([(row, range(1, len(row))) for row in rows])


# A text is cut off after so many tokens. Subword tokenizers need well below three for an English word on average, so
# that a sentence within the limit of words ends before.
_TOKENS_PER_WORD = 3


class CausalSampler:
    """Samples sentences from a causal network, several at once, each after the model's start token.

    A model that was trained on single sentences ends them with its end token. From one that was trained on documents,
    the first sentence of the first line is taken.

    Args:
        longest: The maximal number of words in a sentence.
        temperature: The sampling temperature: 1 for the model's own probabilities.
    """

    def __init__(self, model: Causal, longest: int, temperature: float) -> None:
        if not model.bos_ids:
            raise ModelError(f"{model.files.name} has no start token to begin a sentence with; name one: bos='TOKEN'")
        if model.spaces != "leading" or model.preset:
            raise ModelError(
                f"{model.files.name}: spaces and preset are options of scoring; leave them out for sampling"
            )
        self.tokenizer, self.start_ids = model.files.tokenizer, model.bos_ids
        # A network of its own: that of `model.forward` is patched and takes one flat row without a cache.
        self.net: Any = model.files.load_net("AutoModelForCausalLM", dtype=model.dtype, device=model.device)
        self.longest, self.temperature = longest, temperature
        self.max_tokens = min(_TOKENS_PER_WORD * longest, model.files.max_length - len(self.start_ids))
        self.end_ids = {*self.start_ids, self.tokenizer.eos_token_id} - {None}
        # Some networks have more outputs than their tokenizer has tokens, as padding. Sampled, they would have no text.
        size = self.net.config.get_text_config().vocab_size
        nameless_ids = {
            token_id
            for token_id in range(size)
            if token_id >= len(model.files.token_names) or not model.files.token_names[token_id]
        }
        self.banned_ids = frozenset((set(self.tokenizer.all_special_ids) | nameless_ids) - self.end_ids)

    @torch.inference_mode()
    def sample_texts(self, count: int, random: np.random.Generator) -> list[str | None]:
        """Return sampled sentences; None for one that is longer than the limit."""
        sampled_ids: list[list[int]] = [[] for _ in range(count)]
        sentences: list[str | None] = [None] * count
        unfinished, cache = list(range(count)), None
        ids = torch.tensor([self.start_ids] * count, device=self.net.device)
        for _ in range(self.max_tokens):
            output = self.net(input_ids=ids, past_key_values=cache, use_cache=True)
            next_ids = sample_categorical(
                output.logits[:, -1].float().log_softmax(1), self.temperature, self.banned_ids, random
            )
            continuing = []
            for batch_index, (row, token_id) in enumerate(zip(unfinished, next_ids.tolist(), strict=True)):
                sampled_ids[row].append(token_id)
                text, is_over = self._decode_sentence(sampled_ids[row])
                if is_over:
                    sentences[row] = text if len(text.split()) <= self.longest else None
                else:
                    continuing.append(batch_index)
            unfinished = [unfinished[batch_index] for batch_index in continuing]
            if not unfinished:
                break
            rows = torch.tensor(continuing, device=self.net.device)
            cache, ids = output.past_key_values, next_ids[rows].unsqueeze(1)
            # Finished sentences leave the batch and the key-value cache, so that later steps cost less.
            if len(continuing) < len(next_ids):
                cache.batch_select_indices(rows)
        return sentences

    def _decode_sentence(self, tokens: list[int]) -> tuple[str, bool]:
        """Return the first sentence of the sampled tokens, and whether it has ended."""
        has_ended = tokens[-1] in self.end_ids
        # All tokens anew at each step: the text of a token can depend on its neighbours, as in split characters.
        text = self.tokenizer.decode(tokens[:-1] if has_ended else tokens)
        sentence, more = extract_first_sentence(text)
        # An empty first line holds no sentence yet, whatever follows it.
        return sentence, has_ended or (more and bool(sentence))
