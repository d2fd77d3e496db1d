"""Adapters: changes to the weights of a base model, as PEFT saves them in a folder with ``adapter_config.json``.

Plain LoRA (Hu et al. 2022) on linear layers is read and merged here: the weight W of a layer becomes W + s B A, where s
is ``alpha / r``, or ``alpha / sqrt(r)`` with ``use_rslora`` (Kalajdzievski 2023). Modules that were trained as a whole
(``modules_to_save``), such as the head of a classifier, replace those of the base model. Every other kind of adapter is
loaded and merged by PEFT, if it is installed, and refused otherwise; so is prompt tuning, which changes no weights.

Merged weights are those of an ordinary network, so that every forward path and every layer to be probed has the adapter
in it.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from acceptability.errors import MissingExtra, ModelError, first_error_line
from acceptability.models.files import hash_files, is_importable
from acceptability.specs import fingerprint

ADAPTER_CONFIG_FILE = "adapter_config.json"
ADAPTER_WEIGHTS_FILE = "adapter_model.safetensors"
_PICKLE_FILE = "adapter_model.bin"
# PEFT wraps the network twice, and names weights by their place in the wrapper.
_PREFIX = "base_model.model."
_FACTOR = re.compile(r"(.+)\.lora_([AB])\.weight\Z")
# Fields of a LoRA configuration that matter for training only, or say which layers have factors, as the weights do too.
_WITHOUT_EFFECT = {
    *("auto_mapping", "base_model_name_or_path", "revision", "inference_mode", "lora_dropout", "task_type"),
    *("peft_version", "target_modules", "exclude_modules", "layers_to_transform", "layers_pattern"),
    *("megatron_core", "qalora_group_size", "runtime_config", "loftq_config", "eva_config", "corda_config"),
    # PEFT corrects it by the class of the layer, as we do.
    "fan_in_fan_out",
}
_HANDLED = {"peft_type", "r", "lora_alpha", "use_rslora", "rank_pattern", "alpha_pattern", "modules_to_save"}
# Others than these change the weights of the base model before training, so that W is another matrix.
_PLAIN_INITS = (True, False, "gaussian")
# Patterns are regular expressions in PEFT. Names of layers, perhaps from the beginning, are all that is needed.
_LAYER_NAME = re.compile(r"\^?[\w.-]+\Z")
_PROMPT_KINDS = ("PROMPT_TUNING", "MULTITASK_PROMPT_TUNING", "P_TUNING", "PREFIX_TUNING", "ADAPTION_PROMPT", "CPT")


@dataclass(frozen=True)
class Adapter:
    """An adapter of a model, and what it changes.

    Args:
        folder: The folder with its configuration and weights.
        version: A hash of both, and of the base model if that lies elsewhere.
    """

    folder: Path
    version: str

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Its configuration."""
        return read_adapter_config(self.folder)

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """The names of its weights, as they are in the file."""
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(self.folder / ADAPTER_WEIGHTS_FILE, framework="numpy") as file:
                return tuple(file.keys())
        except (SafetensorError, OSError) as error:
            raise ModelError(f"cannot read {self.folder / ADAPTER_WEIGHTS_FILE}: {first_error_line(error)}") from error

    def replaces(self, name: str) -> bool:
        """Return whether it has a weight of this name of its own, which the base model may then lack."""
        return _PREFIX + name in self.weight_names

    def require_loader(self, spec: str) -> None:
        """Raise an error if it cannot be merged here: of a kind that needs PEFT, which is not installed.

        Args:
            spec: The model, for the error.
        """
        reason = self._find_special()
        if self.config["peft_type"] in _PROMPT_KINDS:
            raise ModelError(
                f"{spec} has an adapter of the kind {self.config['peft_type']}, which puts learned vectors before a "
                f"text and changes no weights: it cannot be merged. Score the base model, without {self.folder}."
            )
        if reason and not is_importable("peft"):
            raise MissingExtra(spec, f"peft, since its adapter {reason}", "peft")

    def merge_into(self, net: Any) -> Any:
        """Return the network with its changes.

        Args:
            net: The network with the weights of the base model, which are changed in place.
        """
        if self._find_special():
            return self._merge_by_peft(net)
        from safetensors.torch import load_file

        factors: dict[str, dict[str, Any]] = {}
        parts = _NetworkParts(net)
        for name, tensor in load_file(self.folder / ADAPTER_WEIGHTS_FILE).items():
            if match := _FACTOR.match(name):
                factors.setdefault(match[1].removeprefix(_PREFIX), {})[match[2]] = tensor
            else:
                self._replace_weight(parts, name.removeprefix(_PREFIX), tensor)
        for layer_name, pair in factors.items():
            self._merge_factors(parts, layer_name, pair)
        return net

    def _find_special(self) -> str | None:
        """Return in a few words what is more than plain LoRA about it; None if nothing is."""
        config = self.config
        if config["peft_type"] != "LORA":
            return f"is of the kind {config['peft_type']}"
        if config.get("bias", "none") != "none":
            return f"trains biases (bias={config['bias']!r})"
        if config.get("init_lora_weights", True) not in _PLAIN_INITS:
            return f"changes the base model (init_lora_weights={config['init_lora_weights']!r})"
        # Whatever a later release of PEFT adds: a field that is not empty may change the computation.
        known = {*_WITHOUT_EFFECT, *_HANDLED, "bias", "init_lora_weights"}
        if special := next((name for name, value in sorted(config.items()) if name not in known and value), None):
            return f"uses {special}"
        patterns = (*(config.get("rank_pattern") or ()), *(config.get("alpha_pattern") or ()))
        if odd := next((pattern for pattern in patterns if not _LAYER_NAME.match(pattern)), None):
            return f"chooses ranks by the pattern {odd!r}"
        saved = tuple(config.get("modules_to_save") or ())
        for name in self.weight_names:
            layer_name = name.removeprefix(_PREFIX)
            # By the end of a module's name, as PEFT finds the modules that it is told to train.
            is_saved = any(f"{module}." in layer_name for module in saved)
            if not name.startswith(_PREFIX) or not (_FACTOR.match(name) or is_saved):
                return f"has the weight {name}"
        return None

    def _replace_weight(self, parts: _NetworkParts, name: str, tensor: Any) -> None:
        """Copy a weight of a module that was trained as a whole into the network."""
        import torch

        weight = parts.weights.get(name)
        if weight is None or weight.shape != tensor.shape:
            actual = "has none of this name" if weight is None else f"has it in the shape {list(weight.shape)}"
            raise ModelError(
                f"the adapter {self.folder} replaces {name}, of the shape {list(tensor.shape)}, and the base model "
                f"{actual}: it is another model, or opened as another kind"
            )
        self._check_not_tied(parts, name)
        with torch.no_grad():
            weight.copy_(tensor)

    def _merge_factors(self, parts: _NetworkParts, layer_name: str, pair: Mapping[str, Any]) -> None:
        """Add the product of the two factors of a layer to its weight."""
        import torch
        from transformers.pytorch_utils import Conv1D

        layer: Any = parts.layers.get(layer_name)
        is_transposed = isinstance(layer, Conv1D)
        if not (is_transposed or isinstance(layer, torch.nn.Linear)) or not layer.weight.is_floating_point():
            found = "which the base model lacks" if layer is None else f"a {type(layer).__name__} in the base model"
            raise ModelError(
                f"the adapter {self.folder} changes {layer_name}, {found}: it is another model, opened as another "
                "kind, or no linear layer"
            )
        self._check_not_tied(parts, f"{layer_name}.weight")
        scale = self._find_scale(layer_name, pair)
        # In double precision and rounded once: the product of low rank is cheap, and half precision would lose it.
        change = scale * (pair["B"].double() @ pair["A"].double())
        # Conv1D, the linear layer of GPT-2, holds its weight as input × output.
        change = change.T if is_transposed else change
        if change.shape != layer.weight.shape:
            raise ModelError(
                f"the adapter {self.folder} changes {layer_name} by a matrix of the shape {list(change.shape)}, and "
                f"its weight has {list(layer.weight.shape)}: it is of another base model"
            )
        with torch.no_grad():
            layer.weight.copy_(layer.weight.double() + change)

    def _find_scale(self, layer_name: str, pair: Mapping[str, Any]) -> float:
        """Return what the product of the factors of a layer is multiplied by."""
        config = self.config
        rank = _find_in_pattern(config.get("rank_pattern"), layer_name, config.get("r", 8))
        alpha = _find_in_pattern(config.get("alpha_pattern"), layer_name, config.get("lora_alpha", 8))
        shapes = {name: list(tensor.shape) for name, tensor in pair.items()}
        numbers = isinstance(rank, int) and isinstance(alpha, int | float) and not isinstance(rank, bool)
        if not numbers or shapes.keys() != {"A", "B"} or shapes["A"][:1] != [rank] or shapes["B"][1:] != [rank]:
            raise ModelError(
                f"the adapter {self.folder} has the rank {rank!r} and alpha {alpha!r} for {layer_name}, and factors of "
                f"the shapes {shapes}: it is damaged"
            )
        return float(alpha) / (math.sqrt(rank) if config.get("use_rslora") else rank)

    def _check_not_tied(self, parts: _NetworkParts, name: str) -> None:
        """Raise an error for a weight that the network uses in several places, of which the adapter changes one."""
        if others := parts.find_tied_names(name):
            raise ModelError(
                f"the adapter {self.folder} changes {name}, which is tied to {others[0]} in the base model: merging "
                "would change both. Save the base model with untied weights (tie_word_embeddings=False)."
            )

    def _merge_by_peft(self, net: Any) -> Any:
        """Return the network with the changes of an adapter that PEFT loads and merges."""
        from peft import PeftModel

        try:
            with warnings.catch_warnings():
                # Remarks such as on fan_in_fan_out, which it corrects by itself.
                warnings.simplefilter("ignore")
                # PEFT only warns about weights that the file lacks, and leaves them as they were initialised.
                warnings.filterwarnings("error", message=".*missing adapter keys.*")
                merged = PeftModel.from_pretrained(net, str(self.folder)).merge_and_unload(safe_merge=True)
        # Configurations and weights come from anybody, and PEFT raises almost anything over them.
        except Exception as error:
            raise ModelError(f"peft cannot load the adapter {self.folder}: {first_error_line(error)}") from error
        return merged


class _NetworkParts:
    """The layers and weights of a network by their names."""

    def __init__(self, net: Any) -> None:
        self.layers: dict[str, Any] = dict(net.named_modules())
        # Tied weights under each of their names.
        self.weights: dict[str, Any] = dict(net.named_buffers()) | dict(net.named_parameters(remove_duplicate=False))

    def find_tied_names(self, name: str) -> list[str]:
        """Return the other names of a weight."""
        return [other for other, weight in self.weights.items() if weight is self.weights[name] and other != name]


def find_adapter(folder: Path) -> Adapter | None:
    """Return the adapter in a folder; None if there is none."""
    if not (folder / ADAPTER_CONFIG_FILE).is_file():
        return None
    read_adapter_config(folder)
    if not (folder / ADAPTER_WEIGHTS_FILE).is_file():
        advice = f" Convert {_PICKLE_FILE}, a pickle file." if (folder / _PICKLE_FILE).is_file() else ""
        raise ModelError(
            f"{folder} has {ADAPTER_CONFIG_FILE}, but no {ADAPTER_WEIGHTS_FILE} with the adapter's weights.{advice}"
        )
    return Adapter(folder, hash_files([folder / ADAPTER_CONFIG_FILE, folder / ADAPTER_WEIGHTS_FILE]))


def add_base_version(adapter: Adapter, base: str) -> Adapter:
    """Return an adapter whose version depends on that of a base model outside its folder.

    Args:
        base: The signature of the base model's files.
    """
    return Adapter(adapter.folder, fingerprint([adapter.version.encode(), base.encode("utf-8", "surrogatepass")]))


def read_adapter_config(folder: Path) -> Mapping[str, Any]:
    """Return the configuration of an adapter."""
    path = folder / ADAPTER_CONFIG_FILE
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelError(f"cannot read {path}: {first_error_line(error)}") from error
    if not isinstance(config, dict) or not isinstance(config.get("peft_type"), str):
        raise ModelError(f"{path} names no peft_type: it is not the configuration of an adapter")
    return config


@contextmanager
def hide_adapter(folder: Path) -> Iterator[Path]:
    """Yield a folder with the same files but for those of an adapter.

    With PEFT installed, transformers would load an adapter that lies beside the weights by itself, and not merge it.
    """
    if not (folder / ADAPTER_CONFIG_FILE).is_file() or not is_importable("peft"):
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="acceptability-", ignore_cleanup_errors=True) as hidden:
        for path in folder.iterdir():
            if path.name not in (ADAPTER_CONFIG_FILE, ADAPTER_WEIGHTS_FILE):
                (Path(hidden) / path.name).symlink_to(path.resolve())
        yield Path(hidden)


def _find_in_pattern(pattern: Mapping[str, Any] | None, layer_name: str, default: Any) -> Any:
    """Return the value for a layer: that of the first pattern that its name ends in, or begins and ends with for "^".

    >>> _find_in_pattern({"q_proj": 4, "^layers.1.k_proj": 2}, "layers.1.q_proj", 8)
    4
    """
    for name, value in (pattern or {}).items():
        if layer_name == name.removeprefix("^") or (not name.startswith("^") and layer_name.endswith(f".{name}")):
            return value
    return default
