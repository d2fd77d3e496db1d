"""What a network has in mind of a whole sentence: one vector a layer, for probes. Nothing is taught here.

Layer 0 of a transformer is its embeddings, layer n what its n-th block gives, as transformers counts them (in many
architectures the last one is normalised). A classifier that was taught here has one layer, 0: the vector that its head
reads. Sentences are framed with special tokens just as when the model scores them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import ModelError, QueryError
from acceptability.models import load_model
from acceptability.models.causal import Causal
from acceptability.models.classifier import Classifier
from acceptability.models.files import checked_choice
from acceptability.models.huggingface import budget, enough_memory, padded
from acceptability.models.masked import Masked
from acceptability.models.once import once
from acceptability.models.sentence_classifier import SentenceClassifier
from acceptability.types import Query

POOLINGS = ("auto", "first", "last", "mean", "max")
_HEADS: dict[type, str] = {
    Masked: "AutoModelForMaskedLM",
    Causal: "AutoModelForCausalLM",
    Classifier: "AutoModelForSequenceClassification",
}
_TEXTS_AT_ONCE = 20_000

Batch = tuple[NDArray[np.int64], NDArray[np.float32]]
"""The places of some texts, and their vectors: (layers, texts, numbers)."""


@dataclass(frozen=True)
class Transformer:
    """The layers of a transformer.

    Args:
        model: A masked or causal model, or a classifier.
        pooling: Which state stands for the sentence: of its "first" or "last" token, or the "mean" or "max" over all.
    """

    model: Any
    pooling: str

    @property
    def signature(self) -> str:
        """The model, and how its states become one vector."""
        return f"{self.model.signature}.{self.pooling}"

    @property
    def layers(self) -> tuple[int, ...]:
        """The numbers of its layers."""
        return tuple(range(self.model.files.config.get_text_config().num_hidden_layers + 1))

    @once
    def net(self) -> Any:
        """The network without its head."""
        files, model = self.model.files, self.model
        return files.net(_HEADS[type(model)], dtype=model.dtype, device=model.device).base_model

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[Batch]:
        """Yield the vectors of texts, some at a time: texts of like length go together."""
        for start in range(0, len(texts), _TEXTS_AT_ONCE):
            rows = self._coded(texts[start : start + _TEXTS_AT_ONCE], start)
            for places in _batches([len(row) for row in rows], budget(self.net.device.type)):
                yield places + start, self._forward([rows[place] for place in places], layers)

    def _coded(self, texts: Sequence[str], start: int) -> list[list[int]]:
        """Return the tokens of some texts, of which the first stands at a place among all."""
        try:
            return [list(each.ids) for each in self.model.encode([Query(text) for text in texts])]
        except QueryError as error:
            raise QueryError(error.index + start, error.problem) from error

    def _forward(self, rows: Sequence[Sequence[int]], layers: Sequence[int]) -> NDArray[np.float32]:
        import torch

        net = self.net
        ids, mask = padded(rows, net.config.get_text_config().pad_token_id or 0)
        inside = self._inside(ids, mask).to(net.device)
        with enough_memory(f"{self.model.files.name}: a batch of {len(rows)} texts"), torch.inference_mode():
            said = net(input_ids=ids.to(net.device), attention_mask=mask.to(net.device), output_hidden_states=True)
            pooled = [_pooled(said.hidden_states[layer].float(), inside, self.pooling) for layer in layers]
            found: NDArray[np.float32] = torch.stack(pooled).cpu().numpy()
        return found

    def _inside(self, ids: Any, mask: Any) -> Any:
        """Return which tokens count: for "first" all, else those of the text itself, without what frames it."""
        import torch

        if self.pooling == "first":
            return mask.bool()
        tokenizer = self.model.files.tokenizer
        special = sorted({*tokenizer.all_special_ids} - {tokenizer.unk_token_id})
        own = mask.bool() & ~torch.isin(ids, torch.tensor(special, dtype=torch.long))
        return torch.where(own.any(1, keepdim=True), own, mask.bool())


@dataclass(frozen=True)
class SentenceVectors:
    """The sentence vectors of a classifier that was taught here: what its head reads."""

    model: SentenceClassifier

    layers = (0,)

    @property
    def signature(self) -> str:
        """The classifier."""
        return f"{self.model.signature}.sentence"

    def vectors(self, texts: Sequence[str], layers: Sequence[int]) -> Iterator[Batch]:
        """Yield the vectors of texts, some at a time; there is one layer."""
        import torch

        rows = [each.numbers for each in self.model.encode([Query(text) for text in texts])]
        for places in _batches([len(row) for row in rows], self.model.budget):
            chosen = [rows[place] for place in places]
            with (
                enough_memory(f"{self.model.folder.name}: a batch of {len(chosen)} texts"),
                torch.inference_mode(),
                torch.backends.cudnn.flags(enabled=True, allow_tf32=False),
            ):
                lengths = torch.tensor([len(row) for row in chosen], device=str(self.model.place))
                found = self.model.net.sentences(self.model.read(chosen), lengths)
                yield places, found.float().cpu().numpy()[None]


def open_encoder(name: str, pooling: str = "auto") -> Transformer | SentenceVectors:
    """Return what looks into a model: ``masked:…``, ``causal:…``, ``classifier:…``, or a name such as mini-masked.

    Args:
        pooling: "auto" takes the first token of a model that reads both ways and puts a special token there,
            as BERT does, and the mean over tokens of any other.
    """
    checked_choice("pooling", pooling, POOLINGS)
    model = load_model(name)
    if isinstance(model, SentenceClassifier):
        if pooling != "auto":
            raise ModelError(f"{name} has a sentence vector of its own; leave pooling {pooling!r} away")
        return SentenceVectors(model)
    if type(model) not in _HEADS:
        raise ModelError(
            f"{name} has no layers that a probe can look into; take masked:…, causal:… or classifier:…, "
            "or a baseline: majority, bag-of-words, glove:FILE"
        )
    return Transformer(model, _usual(model) if pooling == "auto" else pooling)


def _usual(model: Any) -> str:
    tokenizer = model.files.tokenizer
    (framed,) = tokenizer(["a"], return_special_tokens_mask=True)["special_tokens_mask"]
    return "first" if tokenizer.mask_token_id is not None and framed[0] and not isinstance(model, Causal) else "mean"


def _batches(lengths: Sequence[int], most: int) -> Iterator[NDArray[np.int64]]:
    """Yield places of like length, the longest first, with at most so many tokens in each batch."""
    order = np.argsort(-np.asarray(lengths), kind="stable")
    start = 0
    while start < len(order):
        end = start + max(1, most // max(1, lengths[order[start]]))
        yield order[start:end]
        start = end


def _pooled(states: Any, inside: Any, pooling: str) -> Any:
    """Return one vector for each text, of states (texts, tokens, numbers)."""
    import torch

    counts = torch.arange(inside.shape[1], device=inside.device)
    if pooling in ("first", "last"):
        places = torch.where(inside, counts, -1).amax(1) if pooling == "last" else inside.int().argmax(1)
        return states[torch.arange(len(states), device=states.device), places]
    if pooling == "max":
        return states.masked_fill(~inside.unsqueeze(2), -torch.inf).amax(1)
    return (states * inside.unsqueeze(2)).sum(1) / inside.sum(1, keepdim=True)
