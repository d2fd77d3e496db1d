"""Models of transformers that are in memory already: ``from_transformers(model, tokenizer)``.

The signature has a hash of the weights, the configuration and the tokenizer, as that of a folder has a hash of its
files. The network is copied before it is run, since the fast paths change it, and its weights are hashed again then:
if it was trained on in the meantime, the scores would be stored as those of another model.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from acceptability.errors import ModelError
from acceptability.models.files import validate_bool, validate_choice
from acceptability.models.hf.causal import Causal, validate_framing
from acceptability.models.hf.classifier import Classifier
from acceptability.models.hf.loading import Checkpoint, TrustSettings, configure_runtime, validate_dtype
from acceptability.models.hf.masked import VARIANTS as MASKED_VARIANTS
from acceptability.models.hf.masked import Masked
from acceptability.models.hf.seq2seq import VARIANTS as SEQ2SEQ_VARIANTS
from acceptability.models.hf.seq2seq import Seq2Seq
from acceptability.models.windows import make_windowed
from acceptability.protocols import Model

# The endings of the classes of transformers, in the order in which they are tried.
_CLASS_ENDINGS = {
    "ForMaskedLM": "masked",
    "ForSequenceClassification": "classifier",
    "ForConditionalGeneration": "seq2seq",
    "ForCausalLM": "causal",
    "LMHeadModel": "causal",
}
# Where a model came from, and which release wrote it, changes no score.
_IGNORED_SETTINGS = ("_name_or_path", "transformers_version", "_attn_implementation_autoset", "use_cache")


def from_transformers(model: Any, tokenizer: Any, *, kind: str = "", name: str = "", **options: Any) -> Model:
    """Return a model of transformers that is in memory, for ``score``, ``evaluate`` and all that takes a model.

    Args:
        model: The model: one for causal or masked language modelling, an encoder-decoder, or a classifier.
        tokenizer: Its fast tokenizer.
        kind: ``causal``, ``masked``, ``seq2seq`` or ``classifier``; by default what the class of the model says.
        name: The name in tables and signatures; by default where the model was loaded from, or its class.
        options: Those of the kind, such as ``bos='<|endoftext|>'`` or ``variant='word_l2r'``.

    The weights are copied when the model is first run. Precision and device are those that the model has.

    Raises:
        ModelError: It is no model of transformers, or the tokenizer gives no offsets.
    """
    if not all(hasattr(model, attribute) for attribute in ("state_dict", "config", "dtype", "device")):
        raise ModelError(f"from_transformers: {type(model).__name__} is no model of transformers")
    if not getattr(tokenizer, "is_fast", False):
        raise ModelError(
            f"from_transformers: {type(tokenizer).__name__} is no fast tokenizer, which gives the character offsets of "
            "tokens"
        )
    chosen = validate_choice("kind", kind, tuple(_MAKERS)) if kind else _find_kind(model)
    title = name or Path(str(getattr(model.config, "_name_or_path", ""))).name or type(model).__name__
    own_tokenizer = copy.deepcopy(tokenizer)
    version = hash_network(model, own_tokenizer)
    files = LoadedCheckpoint(title, version, Path(title), None, TrustSettings(), None, model, own_tokenizer)
    dtype = validate_dtype(str(model.dtype).removeprefix("torch."))
    try:
        return _MAKERS[chosen](files, dtype, str(model.device), **options)
    except TypeError as error:
        raise ModelError(f"from_transformers: a {chosen} model does not take these options: {error}") from error


def _find_kind(model: Any) -> str:
    """Return the kind of model that a class of transformers is for."""
    for base in type(model).__mro__:
        for ending, kind in _CLASS_ENDINGS.items():
            if base.__name__.endswith(ending):
                return kind
    raise ModelError(
        f"from_transformers: {type(model).__name__} does not say what it is for; give kind='causal', 'masked', "
        "'seq2seq' or 'classifier'"
    )


def _make_causal(
    files: Checkpoint,
    dtype: str,
    device: str,
    *,
    bos: str | None = "auto",
    eos: bool = False,
    preset: str | None = None,
    spaces: str = "leading",
    stride: int | None = None,
    window: int | None = None,
) -> Model:
    validate_framing(bos, eos, preset, spaces)
    return make_windowed(Causal(files, bos, eos, dtype, device, preset, spaces), stride, window)


def _make_masked(
    files: Checkpoint,
    dtype: str,
    device: str,
    *,
    variant: str = "pll",
    stride: int | None = None,
    window: int | None = None,
) -> Model:
    masked = Masked(files, validate_choice("variant", variant, MASKED_VARIANTS), dtype, device)
    return make_windowed(masked, stride, window)


def _make_seq2seq(files: Checkpoint, dtype: str, device: str, *, variant: str = "lp", eos: bool = False) -> Model:
    validate_choice("variant", variant, SEQ2SEQ_VARIANTS)
    if validate_bool("eos", eos) and variant == "pll":
        raise ModelError("seq2seq: variant='pll' scores no end token; leave out eos=True")
    return Seq2Seq(files, variant, eos, dtype, device)


def _make_classifier(files: Checkpoint, dtype: str, device: str, *, acceptable: int = 1) -> Model:
    if isinstance(acceptable, bool) or acceptable not in (0, 1):
        raise ModelError(f"classifier: acceptable is {acceptable!r}; expected the label 0 or 1")
    return Classifier(files, acceptable, dtype, device)


_MAKERS: Mapping[str, Callable[..., Model]] = {
    "causal": _make_causal,
    "masked": _make_masked,
    "seq2seq": _make_seq2seq,
    "classifier": _make_classifier,
}


@dataclass(frozen=True, eq=False)
class LoadedCheckpoint(Checkpoint):
    """A checkpoint whose network and tokenizer are in memory.

    Args:
        network: The user's network, which is never changed.
        loaded_tokenizer: A copy of the user's tokenizer.
    """

    network: Any = None
    loaded_tokenizer: Any = None

    @property
    def tokenizer(self) -> Any:
        """The tokenizer."""
        return self.loaded_tokenizer

    @property
    def config(self) -> Any:
        """The configuration of the network."""
        return self.network.config

    def load_net(self, auto_class: str, *, dtype: str, device: str) -> Any:
        """Return a copy of the network in evaluation mode; raise an error if its weights have changed."""
        if hash_network(self.network, self.loaded_tokenizer) != self.version:
            raise ModelError(f"the weights of {self.name} have changed; call from_transformers again")
        configure_runtime(device)
        return copy.deepcopy(self.network).eval()


def hash_network(network: Any, tokenizer: Any) -> str:
    """Return a hash of the weights, the configuration and the tokenizer of a model, as long as that of a folder."""
    digest = hashlib.sha256(type(network).__name__.encode())
    settings = {name: value for name, value in network.config.to_dict().items() if name not in _IGNORED_SETTINGS}
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    # Neither is used: no text is truncated, and batches are padded by us.
    backend |= {"truncation": None, "padding": None}
    limits = {"special": tokenizer.special_tokens_map, "longest": tokenizer.model_max_length}
    for described in (settings, backend, limits):
        digest.update(json.dumps(described, sort_keys=True, default=str).encode())
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        # As bytes: NumPy has no bfloat16.
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(dtype=_find_byte_type()).numpy().data)
    return digest.hexdigest()[:12]


def _find_byte_type() -> Any:
    import torch

    return torch.uint8
