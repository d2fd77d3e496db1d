"""Loading Hugging Face checkpoints: a folder, a GGUF file or an id on the Hub, with its tokenizer, config and weights.

``find_checkpoint`` locates and fingerprints the files without reading the weights; ``Checkpoint`` then loads what is
needed on first use. Files from the Hub belong to one commit, which goes into the signature; files in a folder are
hashed. Python code that comes with a checkpoint runs only with ``trust_remote_code=True``, and weights in pickle files,
which can run code when they are read, are refused without ``allow_pickle=True``. A line in the log reports either.

The functions after these are shared by all kinds of models: devices and their memory, lengths, targets and padding.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acceptability.errors import MissingExtra, ModelError, OutOfMemory, QueryError, first_error_line
from acceptability.models.files import hash_files, is_importable, locked_cached_property, validate_bool, validate_choice
from acceptability.models.hf.adapters import (
    ADAPTER_CONFIG_FILE,
    ADAPTER_WEIGHTS_FILE,
    Adapter,
    add_base_version,
    find_adapter,
    hide_adapter,
)
from acceptability.models.hf.devices import detect_default_device, start_gpu
from acceptability.models.windows import read_trained_length
from acceptability.protocols import Model
from acceptability.types import Query

_log = logging.getLogger(__name__)
_TEXT_PATTERNS = ("*.json", "*.txt", "*.model", "*.jinja")
_TOKENIZER_PATTERNS = ("tokenizer*", "vocab*", "*.model", "merges.txt")
_SAFETENSORS_PATTERN = "*.safetensors"
_PICKLE_PATTERN = "pytorch_model*.bin"
_CODE_PATTERN = "*.py"
# A token list by id has as many entries as the highest id, so a damaged id near 2^32 would fill the memory. Real
# vocabularies have gaps, but far smaller ones.
_MAX_ID_TO_SIZE_RATIO = 1000
_CONFIG_FILE = "config.json"
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z")
# RoBERTa and its relatives count positions from the padding id + 1, so that many position embeddings are never used and
# the longest text is shorter than the config says.
_PADDED_POSITION_FAMILIES = ("roberta", "camembert", "xlm", "mpnet", "longformer")
_DTYPES = ("float32", "bfloat16", "float16")

# On a CPU, activations should stay in its cache, and larger batches gain nothing; a GPU needs large ones to be busy.
_TOKEN_BUDGETS = {"cpu": 384, "cuda": 65_536}
_DEFAULT_TOKEN_BUDGET = 8192


@dataclass(frozen=True)
class TrustSettings:
    """What the user permits the files of a model to do.

    Args:
        pickle: Whether weights may come from pickle files.
        code: Whether Python code that comes with the model may run.
    """

    pickle: bool = False
    code: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """The files of one model, and what is loaded from them.

    Args:
        name: The name in signatures: that of the folder or file, or the id on the Hub.
        version: The commit on the Hub, or a hash of the files' content.
        folder: The folder that holds the files.
        gguf: The name of the GGUF file within it, if the weights are in one.
        trust: What the files may do.
        adapter: The adapter that is merged into the weights, if there is one. It may lie in another folder than these.
    """

    name: str
    version: str
    folder: Path
    gguf: str | None
    trust: TrustSettings
    adapter: Adapter | None = None

    @property
    def signature(self) -> str:
        """The name and the commit or content hash."""
        return f"{self.name}@{self.version}"

    @property
    def options(self) -> dict[str, bool | str]:
        """The options that belong in a signature: the adapter, and whether code of the files computes the scores."""
        adapter: dict[str, bool | str] = {"adapter": self.adapter.version} if self.adapter else {}
        return adapter | ({"trust_remote_code": True} if self.trust.code else {})

    @property
    def content_hash(self) -> str:
        """The commit or hash of all that is loaded, an adapter and its base model included."""
        return f"{self.version}-{self.adapter.version}" if self.adapter else self.version

    @locked_cached_property
    def tokenizer(self) -> Any:
        """The fast tokenizer, which gives the character offsets of tokens."""
        from transformers import AutoTokenizer

        # An adapter may bring the tokenizer that it was trained with.
        folders = [self.adapter.folder, self.folder] if self.adapter else [self.folder]
        folder = next(filter(_has_tokenizer, folders), self.folder)
        if not self.gguf and not _has_tokenizer(folder):
            raise ModelError(f"{self.name} has no tokenizer in {folder}; copy the files of its tokenizer there")
        tokenizer = self._load_pretrained(AutoTokenizer.from_pretrained, folder)
        if not tokenizer.is_fast:
            raise ModelError(
                f"{self.name} has only a slow tokenizer, which gives no character offsets of tokens. "
                "Convert it to a tokenizer.json first."
            )
        return tokenizer

    def tokenize(self, texts: Sequence[str], *, add_special_tokens: bool) -> Any:
        """Return the encodings of texts, with token ids and character offsets, neither truncated nor padded."""
        # Through the Rust backend, which tokenizes all texts in parallel: the wrapper of transformers converts every
        # encoding to Python lists that nobody needs.
        backend = self.tokenizer.backend_tokenizer
        # A tokenizer.json may say to truncate. Switched off only where it is on: even writing the same value
        # would fail while another thread tokenizes with the same backend.
        if backend.truncation is not None:
            backend.no_truncation()
        if backend.padding is not None:
            backend.no_padding()
        try:
            encodings = backend.encode_batch(texts, add_special_tokens=add_special_tokens)
        # The Rust library raises plain Exception, and nothing more specific.
        except Exception as error:
            raise ModelError(f"the tokenizer of {self.name} cannot read a text: {first_error_line(error)}") from error
        # A tokenizer with added tokens and a network that was not resized: the new ids have no row in the embedding.
        size = getattr(self.config.get_text_config(), "vocab_size", len(self.token_names))
        if size < len(self.token_names):
            for index, encoding in enumerate(encodings):
                _check_token_ids(encoding, size, index)
        return encodings

    @locked_cached_property
    def token_names(self) -> list[str]:
        """The tokens in the order of their ids, with an empty string for an id without a token."""
        vocabulary = self.tokenizer.get_vocab()
        last = max(vocabulary.values())
        if last > _MAX_ID_TO_SIZE_RATIO * len(vocabulary):
            raise ModelError(f"{self.name} has {len(vocabulary)} tokens, and one has the number {last}: it is damaged")
        tokens_by_id = [""] * (last + 1)
        for token, token_id in vocabulary.items():
            tokens_by_id[token_id] = token
        return tokens_by_id

    @locked_cached_property
    def config(self) -> Any:
        """The checkpoint's configuration: its architecture and sizes."""
        from transformers import AutoConfig

        return self._load_pretrained(AutoConfig.from_pretrained, self.folder)

    def load_net(self, auto_class: str, *, dtype: str, device: str) -> Any:
        """Return the network with its weights, on a device and in evaluation mode.

        Args:
            auto_class: The class of transformers that loads it, such as ``AutoModelForCausalLM``.
            dtype: The precision of the weights.
            device: A device of PyTorch, or "auto".
        """
        import torch
        import transformers

        opener = getattr(transformers, auto_class).from_pretrained
        options = {"use_safetensors": self._use_safetensors, "output_loading_info": True}
        with hide_progress_bars(), hide_adapter(self.folder) as folder:
            net, info = self._load_pretrained(opener, folder, dtype=getattr(torch, dtype), **options)
        # transformers fills missing weights with random numbers and only warns: a masked model that is loaded as a
        # classifier would score at random.
        missing = sorted(name for name in info["missing_keys"] if not (self.adapter and self.adapter.replaces(name)))
        if missing:
            raise ModelError(
                f"{self.name} has no weights for {', '.join(missing[:3])}"
                f"{' and others' if len(missing) > 3 else ''}: it was not trained as {auto_class}, "
                "and random weights would give random scores."
            )
        if self.adapter:
            net = self.adapter.merge_into(net)
        target_device = select_device(device)
        configure_runtime(target_device)
        return net.to(target_device).eval()

    @property
    def max_length(self) -> int:
        """The maximal number of tokens in a text."""
        # A tokenizer without a limit says 10^30; the config knows better.
        limits = [self.tokenizer.model_max_length]
        if position_count := getattr(self.config, "max_position_embeddings", None):
            is_padded = any(family in self.config.model_type for family in _PADDED_POSITION_FAMILIES)
            limits.append(position_count - (self.config.pad_token_id + 1 if is_padded else 0))
        return int(min(limits))

    @property
    def _use_safetensors(self) -> bool | None:
        """True if weights in pickle files must not be read; None leaves the choice of files to transformers."""
        return None if self.trust.pickle or self.gguf else True

    def _load_pretrained(self, opener: Callable[..., Any], folder: Path, **options: Any) -> Any:
        """Return what a ``from_pretrained`` of transformers reads from a folder, without access to the network."""
        try:
            if self.gguf:
                options["gguf_file"] = self.gguf
            return opener(folder, local_files_only=True, trust_remote_code=self.trust.code, **options)
        # Damaged files make the libraries that read them raise almost anything: JSON, tensor, index and type errors.
        except Exception as error:
            if not self.trust.code and "trust_remote_code" in str(error):
                raise ModelError(
                    f"{self.name} needs Python code that comes with it, in {self.folder}, and such code can do "
                    "whatever you can. If you have read it and trust it, add the option trust_remote_code=True."
                ) from error
            code = ", or run the code that comes with it" if self.trust.code else ""
            raise ModelError(
                f"cannot open the model {self.name} in {self.folder}{code}: {first_error_line(error)}"
            ) from error


class _HiddenBars:
    """Counts the networks that are being loaded, and keeps the user's setting of transformers' progress bars."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loading = 0
        self._setting = True

    def enter(self) -> None:
        from transformers.utils import logging as transformers_logging

        with self._lock:
            if not self._loading:
                self._setting = transformers_logging._tqdm_active
            self._loading += 1
            # Not by disable_progress_bar, which also switches off the bars of huggingface_hub and forgets which of its
            # groups the user had switched on.
            transformers_logging._tqdm_active = False

    def leave(self) -> None:
        from transformers.utils import logging as transformers_logging

        with self._lock:
            self._loading -= 1
            # Two models may load at a time: the first that is ready would otherwise bring back the bar of the other,
            # and the second the setting that the first had made.
            if not self._loading:
                transformers_logging._tqdm_active = self._setting


_hidden_bars = _HiddenBars()


@contextmanager
def hide_progress_bars() -> Iterator[None]:
    """Hide the progress bars of transformers while a network of ours is loaded; the user's setting is restored."""
    _hidden_bars.enter()
    try:
        yield
    finally:
        _hidden_bars.leave()


def _has_tokenizer(folder: Path) -> bool:
    return any(path for pattern in _TOKENIZER_PATTERNS for path in folder.glob(pattern))


def find_checkpoint(
    kind: str,
    location: str,
    *,
    adapter: str | None = None,
    allow_pickle: bool = False,
    trust_remote_code: bool = False,
) -> Checkpoint:
    """Return the checkpoint at a location.

    Args:
        kind: The kind of model, such as ``causal``, for messages.
        location: A folder, a GGUF file, or ``owner/name@revision`` on the Hub. A folder or file may be followed by
            ``@`` and its content hash, as in a signature. A folder with an adapter may hold its base model too, or
            name it.
        adapter: The hash that the adapter at this location must have, as in a signature; None for any, or none.
        allow_pickle: Whether weights may be read from pickle files.
        trust_remote_code: Whether Python code that comes with the checkpoint may run.
    """
    checkpoint = _find_checkpoint(kind, location, allow_pickle, trust_remote_code)
    if adapter is not None and (checkpoint.adapter is None or checkpoint.adapter.version != adapter):
        found = f"an adapter with the hash {checkpoint.adapter.version}" if checkpoint.adapter else "no adapter"
        raise ModelError(
            f"{kind}:{location} has {found}, not {adapter!r}: it is another model. The option names the hash of the "
            "adapter, as a signature does; an adapter is applied by opening its own folder"
        )
    return checkpoint


def _find_checkpoint(kind: str, location: str, allow_pickle: bool, trust_remote_code: bool) -> Checkpoint:
    """Return the checkpoint at a location; the arguments are those of ``find_checkpoint``."""
    if not location:
        raise ModelError(f"{kind}: which model? Write {kind}:FOLDER or {kind}:HUB_ID")
    validate_bool("allow_pickle", allow_pickle)
    validate_bool("trust_remote_code", trust_remote_code)
    path, trust = Path(location).expanduser(), TrustSettings(allow_pickle, trust_remote_code)
    # Before anything is looked up: "not installed" is a better answer than "not found".
    needed = ("torch", "transformers", *(("gguf", "accelerate") if path.suffix == ".gguf" else ()))
    if not all(map(is_importable, needed)):
        raise MissingExtra(f"{kind}:{location}", " and ".join(needed), "'acceptability[neural]'")
    if path.suffix == ".gguf" and path.is_file():
        return Checkpoint(path.name, hash_files([path]), path.parent, path.name, TrustSettings())
    if path.is_dir():
        return _find_local_checkpoint(kind, path, trust)
    bare, at, version = location.rpartition("@")
    if at and (Path(bare).is_dir() or bare.endswith(".gguf")):
        pinned = _find_checkpoint(kind, bare, allow_pickle, trust_remote_code)
        if pinned.version != version:
            raise ModelError(f"{bare} has the content hash {pinned.version}, not {version}: it is another model")
        return pinned
    name, _, revision = location.partition("@")
    if path.is_absolute() or not _HUB_ID.match(name):
        raise ModelError(f"{kind}:{location}: there is no such folder, and it is not an id on the Hugging Face Hub")
    return _find_hub_checkpoint(kind, name, revision or None, trust)


def _find_local_checkpoint(kind: str, folder: Path, trust: TrustSettings) -> Checkpoint:
    """Return the checkpoint in a folder, with the adapter that lies there."""
    name, adapter = folder.resolve().name, find_adapter(folder)
    if adapter is not None:
        adapter.require_loader(f"{kind}:{folder}")
    if adapter is None or (folder / _CONFIG_FILE).is_file():
        return replace(_find_base_checkpoint(kind, folder, trust), adapter=adapter)
    base = _find_named_base(kind, adapter, trust)
    version = hash_files([*_list_texts(folder, trust), folder / ADAPTER_WEIGHTS_FILE])
    return replace(base, name=name, version=version, adapter=add_base_version(adapter, base.signature))


def _find_base_checkpoint(kind: str, folder: Path, trust: TrustSettings) -> Checkpoint:
    """Return the checkpoint in a folder, without the adapter that may lie there."""
    if not (folder / _CONFIG_FILE).is_file():
        raise ModelError(f"{folder} is not a model of transformers: it has no config.json")
    weights = _list_weights(folder, trust)
    if not weights:
        advice = _advise_on_pickle(f"{kind}:{folder}") if any(folder.glob(_PICKLE_PATTERN)) else ""
        raise ModelError(f"{folder} has no *.safetensors weights.{advice}")
    _warn_of_trusted_files(folder, trust)
    # The adapter's files are part of the hash too, as any others of these names are.
    files = {*_list_texts(folder, trust), *weights, *folder.glob(_SAFETENSORS_PATTERN)}
    return Checkpoint(folder.resolve().name, hash_files(sorted(files)), folder, None, trust)


def _list_texts(folder: Path, trust: TrustSettings) -> list[Path]:
    """Return the configuration and tokenizer files in a folder, and the code if it may run."""
    # Its code is part of the hash if it may run, since it then decides what the scores are.
    patterns = (*_TEXT_PATTERNS, *([_CODE_PATTERN] if trust.code else []))
    return [path for pattern in patterns for path in folder.glob(pattern)]


def _list_weights(folder: Path, trust: TrustSettings) -> list[Path]:
    """Return the files with weights in a folder, without those of an adapter."""
    safetensors = [path for path in folder.glob(_SAFETENSORS_PATTERN) if path.name != ADAPTER_WEIGHTS_FILE]
    return safetensors or (list(folder.glob(_PICKLE_PATTERN)) if trust.pickle else [])


def _find_named_base(kind: str, adapter: Adapter, trust: TrustSettings) -> Checkpoint:
    """Return the base model that the configuration of an adapter names: a folder, or an id on the Hub."""
    file = adapter.folder / ADAPTER_CONFIG_FILE
    name, revision = (adapter.config.get(key) for key in ("base_model_name_or_path", "revision"))
    if not isinstance(name, str) or not name or not isinstance(revision, str | None):
        raise ModelError(f"{file} names no base model: write its folder as base_model_name_or_path")
    # Beside the adapter first, so that both can be moved together.
    for folder in (adapter.folder / name, Path(name)):
        if (folder / _CONFIG_FILE).is_file():
            base = _find_base_checkpoint(kind, folder, trust)
            break
    else:
        if not _HUB_ID.match(name):
            raise ModelError(
                f"{file} names the base model {name!r}, and no model is there: write its folder as "
                "base_model_name_or_path"
            )
        base = _find_hub_checkpoint(kind, name, revision, trust)
    if base.adapter or (base.folder / ADAPTER_CONFIG_FILE).is_file():
        raise ModelError(f"{file} names the base model {name!r}, which has an adapter of its own: merge that first")
    return base


def _warn_of_trusted_files(folder: Path, trust: TrustSettings) -> None:
    """Log that weights are read from pickle files, or that code of the checkpoint is run."""
    if trust.pickle and not _list_weights(folder, TrustSettings()):
        _log.warning("%s: its weights are pickle files; PyTorch reads only tensors from them, and runs no code", folder)
    if trust.code and (code := sorted(path.name for path in folder.glob(_CODE_PATTERN))):
        _log.warning("%s: trust_remote_code=True, so its own code may run: %s", folder, ", ".join(code))


def _advise_on_pickle(location: str) -> str:
    """Return what to write if pickle weights are to be read after all."""
    return (
        " It has pickle weights, which can run code when they are read. "
        f"If you trust them, write {location}(allow_pickle=True)."
    )


def _find_hub_checkpoint(kind: str, name: str, revision: str | None, trust: TrustSettings) -> Checkpoint:
    """Return a checkpoint on the Hub, downloaded if it is not in the local cache."""
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    _log.info("looking for %s on the Hugging Face Hub", name)
    try:
        # Only what is used: many repositories hold the same weights in several formats, of gigabytes each.
        patterns = [
            *_TEXT_PATTERNS,
            _SAFETENSORS_PATTERN,
            *([_PICKLE_PATTERN] if trust.pickle else []),
            *([_CODE_PATTERN] if trust.code else []),
        ]
        folder = _download_snapshot(name, revision, patterns)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, RuntimeError) as error:
        raise ModelError(
            f"{kind}:{name}: there is no folder of that name, and the Hugging Face Hub returned no files: "
            f"{first_error_line(error)}"
        ) from error
    # The folder of a snapshot is named after its commit.
    version, adapter = folder.name[:12], find_adapter(folder)
    if adapter is not None:
        adapter.require_loader(f"{kind}:{name}")
        if not (folder / _CONFIG_FILE).is_file():
            base = _find_named_base(kind, adapter, trust)
            return replace(base, name=name, version=version, adapter=add_base_version(adapter, base.signature))
    if not _list_weights(folder, trust):
        raise ModelError(
            f"{name} has no *.safetensors weights on the Hub. If it has pickle weights and you trust them, "
            f"write {kind}:{name}(allow_pickle=True)."
        )
    _warn_of_trusted_files(folder, trust)
    return Checkpoint(name, version, folder, None, trust, adapter)


def _download_snapshot(name: str, revision: str | None, patterns: list[str]) -> Path:
    """Return the folder of a model's files, downloaded now or, if the Hub cannot be reached, earlier."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=patterns))
    except ConnectionError as error:
        # Some releases of the library ask the Hub for the commit although its files are in the cache.
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=patterns, local_files_only=True))
        except OSError:
            raise error from None


def import_transformers(device: str) -> None:
    """Import what loads a network, before one is loaded, and start CUDA if it is to run there.

    Args:
        device: A device of PyTorch, or "auto".
    """
    if not all(map(is_importable, ("torch", "transformers"))):
        # Whoever opens the model says so in a better place.
        return
    start_gpu(device)
    from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: F401


def select_device(device: str) -> str:
    """Return the name of the device to use; "auto" is the GPU if there is one, and the CPU otherwise."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    # Tried with an empty tensor, so that a wrong name fails at once and in one line, and not after loading weights.
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"the device {device!r} cannot be used here: {first_error_line(error)}") from error
    return device


class LanguageCheckpoint(Model):
    """What causal and masked models have in common: all that their files say.

    Args:
        files: The files.
        dtype: The precision of the network.
        device: A device of PyTorch, or "auto".
    """

    files: Checkpoint
    dtype: str
    device: str

    @property
    def device_class(self) -> str | None:
        """The class of device, if the network is in half precision."""
        return get_device_class(self.dtype, self.device)

    @property
    def max_length(self) -> int:
        """The maximal number of tokens that the network reads."""
        return self.files.max_length

    @locked_cached_property
    def trained_length(self) -> int | None:
        """The number of tokens in the longest text that it was trained on; None where nothing says so."""
        return read_trained_length(self.files.folder)

    @locked_cached_property
    def token_name_array(self) -> NDArray[np.object_]:
        """The tokens in the order of their ids, in an array from which many are taken at once."""
        return np.array(self.files.token_names, object)


def get_device_class(dtype: str, device: str) -> str | None:
    """Return the class of device that a network computes on if it is in half precision; None in float32.

    Args:
        dtype: The precision of the network.
        device: A device of PyTorch, or "auto".

    >>> get_device_class("bfloat16", "cuda:1"), get_device_class("float32", "cuda:1")
    ('cuda', None)
    """
    if dtype == "float32":
        return None
    if device == "auto":
        device = detect_default_device() or select_device(device)
    return device.partition(":")[0]


def get_default_device() -> str | None:
    """Return the class of device that "auto" stands for; None if PyTorch was not imported, and so computed nothing."""
    return select_device("auto") if sys.modules.get("torch") else None


def configure_runtime(device: str) -> None:
    """Set the memory allocator of a GPU and the number of threads on a CPU, unless the user has set them."""
    import torch

    if device.startswith("cuda") and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        # Batches differ in size. Without expandable segments, blocks that were cached for one size do not serve
        # another, and memory fragments. PyTorch reads the variable once, when CUDA is initialised.
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    # In a container, PyTorch counts the CPUs of the whole machine, and threads beyond the quota slow each other down.
    if device == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), _count_cpus()))


def _count_cpus() -> int:
    """Return the number of CPUs that this process may use, which a container's quota limits."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # "max 100000" or, for two CPUs, "200000 100000". Linux with cgroups of version 2 has this file, others do not.
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, int(quota) // int(period)))


def get_token_budget(device: str) -> int:
    """Return the number of token positions in a batch that suits a kind of device."""
    return _TOKEN_BUDGETS.get(device, _DEFAULT_TOKEN_BUDGET)


@contextmanager
def convert_out_of_memory(task: str) -> Iterator[None]:
    """Turn PyTorch's out-of-memory error into ``OutOfMemory``, upon which the engine halves the batch.

    Args:
        task: What was computed, for the message.
    """
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(f"{task} does not fit into memory: {first_error_line(error)}") from error


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int) -> tuple[Any, Any]:
    """Return token ids as a tensor, padded on the right to equal length, and the mask of the real tokens."""
    import torch

    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), pad_id, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for row_index, row in enumerate(rows):
        ids[row_index, : len(row)] = torch.tensor(row)
        mask[row_index, : len(row)] = 1
    return ids, mask


def validate_dtype(dtype: object) -> str:
    """Return a precision, after checking that it is supported."""
    return validate_choice("dtype", dtype, _DTYPES)


def check_length(length: int, limit: int, index: int) -> None:
    """Raise an error for a query with more tokens than the model reads: no text is ever truncated."""
    if length > limit:
        raise QueryError(index, f"it has {length} tokens, and the model reads at most {limit}")


def _check_token_ids(encoding: Any, size: int, index: int) -> None:
    """Raise an error for a query with a token that the tokenizer knows, but the network does not."""
    for token_id, token in zip(encoding.ids, encoding.tokens, strict=True):
        if token_id >= size:
            raise QueryError(index, f"its token {token!r} has the number {token_id}, and the model knows only {size}")


def find_unknown_tokens(
    tokens: Sequence[str], offsets: Sequence[tuple[int, int]], unknown_token: str | None
) -> tuple[int, ...]:
    """Return the indices of the tokens that stand for something outside the vocabulary.

    Args:
        unknown_token: The tokenizer's token for unknown words, if it has one.
    """
    if unknown_token not in tokens:
        return ()
    # GPT-2 names its end token as its unknown one, which its tokenizer never needs. The end has an empty span.
    return tuple(
        index
        for index, (token, (start, end)) in enumerate(zip(tokens, offsets, strict=True))
        if token == unknown_token and start < end
    )


def find_target_tokens(query: Query, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return the indices of the tokens that overlap the target of a query, or its text if it has none.

    Args:
        offsets: The character span of each token in the full text, which is the context and the text.
    """
    start, end = query.target or (0, len(query.text))
    start, end = query.text_start + start, query.text_start + end
    return [index for index, (token_start, token_end) in enumerate(offsets) if token_start < end and token_end > start]


def to_query_span(query: Query, span: tuple[int, int]) -> tuple[int, int]:
    """Return a character span of the full text as a span of the query's text, without its context."""
    return max(span[0] - query.text_start, 0), max(span[1] - query.text_start, 0)
