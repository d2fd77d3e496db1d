"""Forward passes of encoder-decoders: the batched path, and the row-by-row path that it is verified against.

``Seq2Seq.begin`` (``seq2seq.py``) hands over rows of encoder and decoder tokens. ``BatchedSeq2SeqPath`` runs each
distinct encoder input once, pads decoder rows on the right, and computes the head where a token is scored
(``kernels/head.py``).
``choose_seq2seq_path`` decides, when a network is loaded, whether it can take this path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from acceptability.models.kernels.head import (
    PendingLogprobs,
    compute_logprobs,
    gather_logprobs,
    make_head_separable,
    to_device,
)
from acceptability.models.kernels.trie import IntArray
from acceptability.models.kernels.verify import tune_forward_path, verify_logprobs, warn_slower_path


class Seq2SeqRow(NamedTuple):
    """The input of encoder and decoder, and the tokens that are scored.

    Args:
        encoder_ids: The tokens that the encoder reads.
        decoder_ids: The tokens that the decoder reads.
        positions: The positions of the decoder whose next token is scored.
        targets: The ids of these next tokens.
    """

    encoder_ids: Sequence[int]
    decoder_ids: Sequence[int]
    positions: Sequence[int]
    targets: Sequence[int]

    @property
    def size(self) -> int:
        """The number of tokens that the network reads."""
        return len(self.encoder_ids) + len(self.decoder_ids)


class Seq2SeqForwardPath(Protocol):
    """A way of running rows through an encoder-decoder."""

    net: Any

    def __call__(self, rows: Sequence[Seq2SeqRow]) -> PendingLogprobs:
        """Start a pass, and return the function that waits for the log-probabilities of all targets in order."""
        ...


class RowByRowSeq2SeqPath:
    """The plain path: one row at a time, no padding, the whole vocabulary at all positions."""

    def __init__(self, net: Any) -> None:
        self.net = net

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Seq2SeqRow]) -> PendingLogprobs:
        """Run the rows, and return the function that returns the log-probabilities of all targets in order."""
        target_logprobs: NDArray[np.float32] = np.concatenate([self._score_row(row) for row in rows])
        return lambda: target_logprobs

    def _score_row(self, row: Seq2SeqRow) -> NDArray[np.float32]:
        """Return the log-probabilities of the targets of a row."""
        arrays = [np.array(ids) for ids in row]
        encoder_ids, decoder_ids, positions, targets = to_device(self.net.device, *arrays)
        attention_mask = torch.ones_like(encoder_ids)[None]
        options = {"attention_mask": attention_mask, "decoder_input_ids": decoder_ids[None], "use_cache": False}
        logits = self.net(input_ids=encoder_ids[None], **options).logits[0, positions]
        target_logprobs: NDArray[np.float32] = (
            gather_logprobs(logits, torch.arange(len(targets), device=logits.device), targets).cpu().numpy()
        )
        return target_logprobs


class BatchedSeq2SeqPath:
    """The fast path: padded rows, each distinct encoder input once, the head only where a token is scored."""

    def __init__(self, net: Any) -> None:
        self.net = net
        self.decoder = _DecoderNetwork(net)

    @torch.inference_mode()
    def __call__(self, rows: Sequence[Seq2SeqRow]) -> PendingLogprobs:
        """Start a pass, and return the function that waits for the log-probabilities of all targets in order."""
        sources = list(dict.fromkeys([tuple(row.encoder_ids) for row in rows]))
        source_index = {source: index for index, source in enumerate(sources)}
        decoder_ids, _ = _pad_rows([row.decoder_ids for row in rows])
        source_indices = np.array([source_index[tuple(row.encoder_ids)] for row in rows])
        encoder_input, attention_mask, decoder_input, source_indices = to_device(
            self.net.device, *_pad_rows(sources), decoder_ids, source_indices
        )
        # The encoder sees in both directions, so its padding has to be masked, here and in the cross-attention.
        encoder_states = self.net.get_encoder()(
            input_ids=encoder_input, attention_mask=attention_mask
        ).last_hidden_state
        # The decoder is causal: no scored position sees the padding behind it, so that no mask is needed.
        states = self.net.get_decoder()(
            input_ids=decoder_input,
            encoder_hidden_states=encoder_states[source_indices],
            encoder_attention_mask=attention_mask[source_indices],
            use_cache=False,
        ).last_hidden_state
        starts = np.repeat(np.arange(len(rows)) * decoder_ids.shape[1], [len(row.positions) for row in rows])
        positions = _flatten([row.positions for row in rows])
        return compute_logprobs(
            self.decoder, states.flatten(0, 1), starts + positions, _flatten([row.targets for row in rows])
        )


class _DecoderNetwork:
    """A view of a network with its decoder as the body, for ``make_head_separable`` and ``apply_head``."""

    def __init__(self, net: Any) -> None:
        self.net, self.base_model, self.config = net, net.get_decoder(), net.config

    def get_output_embeddings(self) -> Any:
        """Return the head."""
        return self.net.get_output_embeddings()

    def __call__(self, input_ids: Any) -> Any:
        """Return the output of the network for decoder ids."""
        from transformers.modeling_outputs import BaseModelOutput

        # Encoder outputs are given so that the network does not run its encoder. They are not looked at, since the
        # decoder is skipped when the head is applied.
        empty_states: Any = torch.zeros((1, 1, 1), dtype=self.net.dtype, device=input_ids.device)
        encoder_outputs = BaseModelOutput(last_hidden_state=empty_states)
        return self.net(encoder_outputs=encoder_outputs, decoder_input_ids=input_ids, use_cache=False)


def choose_seq2seq_path(load_net: Callable[[], Any], folder: Path) -> Seq2SeqForwardPath:
    """Return the fastest path through a network that gives the scores of the plain path.

    Args:
        load_net: Loads the network, anew at each call.
        folder: The folder of its weights.
    """
    return tune_forward_path(
        load_net,
        lambda net: _choose_untuned_path(net, folder),
        lambda forward_path: forward_path(_make_sample_rows(forward_path.net))(),
        folder,
    )


def _choose_untuned_path(net: Any, folder: Path) -> tuple[Seq2SeqForwardPath, NDArray[np.float32]]:
    """Return the fastest forward path with the right scores, and the scores of the sample rows by the slow path."""
    plain, fast = RowByRowSeq2SeqPath(net), BatchedSeq2SeqPath(net)
    expected = plain(_make_sample_rows(net))()

    def run_with_separate_head() -> NDArray[np.float32]:
        make_head_separable(fast.decoder)
        return fast(_make_sample_rows(net))()

    problem = verify_logprobs(run_with_separate_head, expected, net.dtype)
    if problem is None:
        return fast, expected
    warn_slower_path(folder, problem)
    return plain, expected


def batch_rows(rows: Sequence[Seq2SeqRow], budget: int) -> Iterator[list[int]]:
    """Yield the indices of the rows of each batch, shorter rows first, so that rows need little padding.

    Args:
        budget: The maximal number of token positions in a batch, with padding; a larger row is alone.

    >>> long, short = Seq2SeqRow([1, 2, 3], [1, 2], [1], [3]), Seq2SeqRow([1], [1], [0], [2])
    >>> list(batch_rows([long, short, short], 4))
    [[1, 2], [0]]
    """
    batch: list[int] = []
    widths = (0, 0)
    for row_index in sorted(range(len(rows)), key=lambda index: (rows[index].size, index)):
        row = rows[row_index]
        widths = max(widths[0], len(row.encoder_ids)), max(widths[1], len(row.decoder_ids))
        if batch and sum(widths) * (len(batch) + 1) > budget:
            yield batch
            batch, widths = [], (len(row.encoder_ids), len(row.decoder_ids))
        batch.append(row_index)
    if batch:
        yield batch


def _pad_rows(rows: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """Return rows padded on the right to equal length, and the mask of the real tokens."""
    lengths = np.array([len(row) for row in rows])
    mask = (np.arange(lengths.max()) < lengths[:, None]).astype(np.int64)
    ids = np.zeros(mask.shape, np.int64)
    ids[mask.astype(bool)] = _flatten(rows)
    return ids, mask


def _flatten(rows: Sequence[Sequence[int]]) -> IntArray:
    """Return the numbers of all rows in one array."""
    return np.fromiter(chain.from_iterable(rows), np.int64)


def _make_sample_rows(net: Any) -> list[Seq2SeqRow]:
    """Return rows of different lengths, two of them with the same encoder input."""
    # Of the embedding: a config composed of an encoder's and a decoder's has no vocabulary size of its own.
    size = len(net.get_input_embeddings().weight)
    tokens = np.random.default_rng(0).integers(0, size, 12).tolist()
    shapes = ((tokens[:6], tokens[4:9]), (tokens[:2], tokens[5:12]), (tokens[:2], tokens[3:5]))
    return [
        Seq2SeqRow(source, decoder_ids, range(len(decoder_ids)), decoder_ids[::-1]) for source, decoder_ids in shapes
    ]
