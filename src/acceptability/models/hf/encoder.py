"""Sentence vectors for probing: the hidden states of each layer, pooled to one vector for each sentence.

Layer 0 of a transformer is its embeddings, layer n the output of its n-th block, as transformers counts them (in many
architectures the last one is normalised). A classifier trained by this package has one layer, 0: the vector that its
head reads. Sentences are framed with special tokens just as when the model scores them. Nothing is trained here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models import load_model
from acceptability.models.files import locked_cached_property, validate_choice
from acceptability.models.hf.causal import Causal
from acceptability.models.hf.classifier import Classifier
from acceptability.models.hf.loading import convert_out_of_memory, get_token_budget, pad_rows
from acceptability.models.hf.masked import Masked
from acceptability.models.sentence import SentenceClassifier
from acceptability.types import Query

POOLINGS = ("auto", "first", "last", "mean", "max")
_AUTO_CLASSES: dict[type, str] = {
    Masked: "AutoModelForMaskedLM",
    Causal: "AutoModelForCausalLM",
    Classifier: "AutoModelForSequenceClassification",
}
# Token ids of a whole corpus would fill memory; within a chunk, texts of equal length are found for batches.
_TEXTS_PER_CHUNK = 20_000

VectorBatch = tuple[NDArray[np.int64], NDArray[np.float32]]
"""The indices of some texts, and their vectors, of shape layer × text × dimension."""


@dataclass(frozen=True)
class HiddenStateEncoder:
    """Sentence vectors from the hidden states of a transformer.

    Args:
        model: A masked or causal model, or a classifier.
        pooling: The hidden state that represents the sentence: of its "first" or "last" token, or the "mean" or "max"
            over all.
    """

    model: Any
    pooling: str

    @property
    def signature(self) -> str:
        """The model and the pooling."""
        return f"{self.model.signature}.{self.pooling}"

    @property
    def layers(self) -> tuple[int, ...]:
        """The layers: 0 for the embeddings, n for the output of the n-th block."""
        return tuple(range(self.model.files.config.get_text_config().num_hidden_layers + 1))

    @locked_cached_property
    def net(self) -> Any:
        """The network without its head, loaded on first use."""
        # A network of its own, since that of `model.forward` is patched and returns only what scoring needs.
        files, model = self.model.files, self.model
        return files.load_net(_AUTO_CLASSES[type(model)], dtype=model.dtype, device=model.device).base_model

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[VectorBatch]:
        """Yield the pooled hidden states of texts, in batches of texts of similar length."""
        for start in range(0, len(texts), _TEXTS_PER_CHUNK):
            rows = self._encode_texts(texts[start : start + _TEXTS_PER_CHUNK], start)
            for indices in _batch_by_length([len(row) for row in rows], get_token_budget(self.net.device.type)):
                yield indices + start, self._compute_vectors([rows[index] for index in indices], layers)

    def _encode_texts(self, texts: Sequence[str], start: int) -> list[list[int]]:
        """Return the token ids of some texts.

        Args:
            start: The index of the first of them among all texts, for error messages.
        """
        try:
            return [list(encoding.ids) for encoding in self.model.encode([Query(text) for text in texts])]
        except QueryError as error:
            raise QueryError(error.index + start, error.problem) from error

    def _compute_vectors(self, rows: Sequence[Sequence[int]], layers: Sequence[int]) -> NDArray[np.float32]:
        """Return the vectors of a batch, of shape layer × text × dimension."""
        import torch

        net = self.net
        ids, mask = pad_rows(rows, net.config.get_text_config().pad_token_id or 0)
        inside = self._make_pooling_mask(ids, mask).to(net.device)
        with convert_out_of_memory(f"{self.model.files.name}: a batch of {len(rows)} texts"), torch.inference_mode():
            output = net(input_ids=ids.to(net.device), attention_mask=mask.to(net.device), output_hidden_states=True)
            # Pooled on the device and layer by layer: only one vector a text is copied to the CPU.
            pooled = [_pool_states(output.hidden_states[layer].float(), inside, self.pooling) for layer in layers]
            stacked: NDArray[np.float32] = torch.stack(pooled).cpu().numpy()
        return stacked

    def _make_pooling_mask(self, ids: Any, mask: Any) -> Any:
        """Return which tokens are pooled: all for "first", and otherwise those of the text without special tokens."""
        import torch

        if self.pooling == "first":
            return mask.bool()
        tokenizer = self.model.files.tokenizer
        # The unknown token is a special one to the tokenizer, but stands for a word.
        special = sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id})
        text_mask = mask.bool() & ~torch.isin(ids, torch.tensor(special, dtype=torch.long))
        # A text of special tokens alone is pooled over these: an empty mean would be NaN.
        return torch.where(text_mask.any(1, keepdim=True), text_mask, mask.bool())


@dataclass(frozen=True)
class SentenceVectorEncoder:
    """Sentence vectors of a classifier trained by this package: the vector that its head reads, as layer 0."""

    model: SentenceClassifier

    layers = (0,)

    @property
    def signature(self) -> str:
        """The classifier and the name of its vector."""
        return f"{self.model.signature}.sentence"

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[VectorBatch]:
        """Yield the vectors of texts in batches; there is one layer."""
        import torch

        rows = [encoding.word_ids for encoding in self.model.encode([Query(text) for text in texts])]
        for indices in _batch_by_length([len(row) for row in rows], self.model.budget):
            chosen = [rows[index] for index in indices]
            with (
                convert_out_of_memory(f"{self.model.folder.name}: a batch of {len(chosen)} texts"),
                torch.inference_mode(),
                # TensorFloat-32 would round the recurrent layers of cuDNN to 10 bits, unlike those of a CPU.
                torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
            ):
                lengths = torch.tensor([len(row) for row in chosen], device=str(self.model.torch_device))
                sentence_vectors = self.model.net.encode_sentences(self.model.prepare_inputs(chosen), lengths)
                yield indices, sentence_vectors.float().cpu().numpy()[None]


def open_encoder(name: str, pooling: str = "auto") -> HiddenStateEncoder | SentenceVectorEncoder:
    """Return the encoder for a model: ``masked:…``, ``causal:…``, ``classifier:…``, or a name such as mini-masked.

    Args:
        name: The spec of the model.
        pooling: "auto" takes the first token of a bidirectional model that puts a special token there, as BERT does,
            and the mean over tokens of any other.
    """
    validate_choice("pooling", pooling, POOLINGS)
    model = load_model(name)
    if isinstance(model, SentenceClassifier):
        if pooling != "auto":
            raise ModelError(f"{name} has a sentence vector of its own; leave out pooling={pooling!r}")
        return SentenceVectorEncoder(model)
    if type(model) not in _AUTO_CLASSES:
        raise ModelError(
            f"{name} has no layers that can be probed; use masked:…, causal:… or classifier:…, "
            "or a baseline: majority, bag-of-words, glove:FILE"
        )
    return HiddenStateEncoder(model, _choose_pooling(model) if pooling == "auto" else pooling)


def _choose_pooling(model: Any) -> str:
    """Return the pooling that "auto" means for a model."""
    tokenizer = model.files.tokenizer
    # Tried on a text: the config does not say whether the tokenizer puts a special token first.
    (framed,) = tokenizer(["a"], return_special_tokens_mask=True)["special_tokens_mask"]
    return "first" if tokenizer.mask_token_id is not None and framed[0] and not isinstance(model, Causal) else "mean"


def _batch_by_length(lengths: Sequence[int], max_tokens: int) -> Iterator[NDArray[np.int64]]:
    """Yield the indices of texts in batches of similar length, each padded to at most ``max_tokens`` positions."""
    # The longest first, so that a lack of memory shows in the first batch.
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, max_tokens // max(1, lengths[order[start]]))
        yield order[start:end]
        start = end


def _pool_states(states: Any, pooling_mask: Any, pooling: str) -> Any:
    """Return one vector for each text.

    Args:
        states: Hidden states of shape text × token × dimension.
        pooling_mask: Which tokens are pooled.
    """
    import torch

    token_indices = torch.arange(pooling_mask.shape[1], device=pooling_mask.device)
    if pooling in ("first", "last"):
        pooled_indices = (
            torch.where(pooling_mask, token_indices, -1).amax(1) if pooling == "last" else pooling_mask.int().argmax(1)
        )
        return states[torch.arange(len(states), device=states.device), pooled_indices]
    if pooling == "max":
        return states.masked_fill(~pooling_mask.unsqueeze(2), -torch.inf).amax(1)
    return (states * pooling_mask.unsqueeze(2)).sum(1) / pooling_mask.sum(1, keepdim=True)
