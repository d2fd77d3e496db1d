"""Hugging Face checkpoints: a folder, a GGUF file, or an id on the Hub; found, fingerprinted, opened.

The Hub's files are taken at one commit, which stands in the signature; a folder's files
are hashed. Code that comes with a checkpoint is run only where ``trust_remote_code=True`` asks
for it, and weights in pickle files, which can run code when read, are refused unless
``allow_pickle=True`` asks for them. Both say so in the log.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from acceptability.errors import MissingExtra, ModelError, OutOfMemory, QueryError, reason
from acceptability.models.files import checked_bool, checked_choice, files_hash, is_importable
from acceptability.models.once import once
from acceptability.types import Query

_log = logging.getLogger(__name__)
_TEXTS = ("*.json", "*.txt", "*.model", "*.jinja")
_TOKENIZERS = ("tokenizer*", "vocab*", "*.model", "merges.txt")
_SAFE = "*.safetensors"
_PICKLE = "pytorch_model*.bin"
_CODE = "*.py"
_MOST_GAPS = 1000
_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?\Z")
_PADDED_POSITIONS = ("roberta", "camembert", "xlm", "mpnet", "longformer")
_DTYPES = ("float32", "bfloat16", "float16")

_BUDGETS = {"cpu": 384, "cuda": 65_536}


@dataclass(frozen=True)
class Trust:
    """What a user lets the files of a model do.

    Args:
        pickle: Whether weights may come from pickle files.
        code: Whether Python code that comes with the model may run.
    """

    pickle: bool = False
    code: bool = False


@dataclass(frozen=True)
class Checkpoint:
    """The files of one model."""

    name: str
    version: str
    folder: Path
    gguf: str | None
    trust: Trust

    @property
    def signature(self) -> str:
        """The name and the commit or content hash."""
        return f"{self.name}@{self.version}"

    @property
    def options(self) -> dict[str, bool]:
        """What of the files belongs into a signature besides: whether their own code computes the scores."""
        return {"trust_remote_code": True} if self.trust.code else {}

    @once
    def tokenizer(self) -> Any:
        """The fast tokenizer, which knows where tokens stand in the text."""
        from transformers import AutoTokenizer

        if not self.gguf and not any(path for pattern in _TOKENIZERS for path in self.folder.glob(pattern)):
            raise ModelError(f"{self.name} has no tokenizer in {self.folder}; copy the files of its tokenizer there")
        tokenizer = self._opened(AutoTokenizer.from_pretrained)
        if not tokenizer.is_fast:
            raise ModelError(
                f"{self.name} has only a slow tokenizer, which cannot tell where a token stands in the text. "
                "Convert it to a tokenizer.json first."
            )
        return tokenizer

    def encoded(self, texts: Sequence[str], *, special: bool) -> Any:
        """Return each text as tokens with their places, all at once, neither cut nor padded."""
        backend = self.tokenizer.backend_tokenizer
        # Other threads may be reading with it: what is off already must not be written.
        if backend.truncation is not None:
            backend.no_truncation()
        if backend.padding is not None:
            backend.no_padding()
        try:
            coded = backend.encode_batch(texts, add_special_tokens=special)
        except Exception as error:  # the library raises nothing more special
            raise ModelError(f"the tokenizer of {self.name} cannot read a text: {reason(error)}") from error
        size = getattr(self.config.get_text_config(), "vocab_size", len(self.names))
        if size < len(self.names):
            for index, each in enumerate(coded):
                _check_known(each, size, index)
        return coded

    @once
    def names(self) -> list[str]:
        """The tokens, by their ids."""
        vocabulary = self.tokenizer.get_vocab()
        last = max(vocabulary.values())
        if last > _MOST_GAPS * len(vocabulary):
            raise ModelError(f"{self.name} has {len(vocabulary)} tokens, and one has the number {last}: it is damaged")
        names = [""] * (last + 1)
        for token, number in vocabulary.items():
            names[number] = token
        return names

    @once
    def config(self) -> Any:
        """What the model's authors say of its shape."""
        from transformers import AutoConfig

        return self._opened(AutoConfig.from_pretrained)

    def net(self, auto_class: str, *, dtype: str, device: str) -> Any:
        """Return the weights, on a device, in evaluation mode."""
        import torch
        import transformers

        opener = getattr(transformers, auto_class).from_pretrained
        net, info = self._opened(
            opener, dtype=getattr(torch, dtype), use_safetensors=self._safety, output_loading_info=True
        )
        lacking = sorted(info["missing_keys"])
        if lacking:
            raise ModelError(
                f"{self.name} has no weights for {', '.join(lacking[:3])}"
                f"{' and others' if len(lacking) > 3 else ''}: it was not trained as {auto_class}, "
                "and random weights would give random scores."
            )
        place = _placed(device)
        _get_ready(place)
        return net.to(place).eval()

    @property
    def positions(self) -> int:
        """How many tokens the model can read at once."""
        limits = [self.tokenizer.model_max_length]
        if found := getattr(self.config, "max_position_embeddings", None):
            is_padded = any(each in self.config.model_type for each in _PADDED_POSITIONS)
            limits.append(found - (self.config.pad_token_id + 1 if is_padded else 0))
        return int(min(limits))

    @property
    def _safety(self) -> bool | None:
        return None if self.trust.pickle or self.gguf else True

    def _opened(self, opener: Callable[..., Any], **options: Any) -> Any:
        try:
            if self.gguf:
                options["gguf_file"] = self.gguf
            return opener(self.folder, local_files_only=True, trust_remote_code=self.trust.code, **options)
        # Files from anywhere, read by libraries of others: what these raise at damaged ones has no common name.
        except Exception as error:
            if not self.trust.code and "trust_remote_code" in str(error):
                raise ModelError(
                    f"{self.name} needs Python code that comes with it, in {self.folder}, and such code can do "
                    "whatever you can. If you have read it and trust it, add the option trust_remote_code=True."
                ) from error
            code = ", or run the code that comes with it" if self.trust.code else ""
            raise ModelError(f"cannot open the model {self.name} in {self.folder}{code}: {reason(error)}") from error


def checkpoint(kind: str, place: str, *, allow_pickle: bool = False, trust_remote_code: bool = False) -> Checkpoint:
    """Return the checkpoint at a place: a folder, a GGUF file, or ``owner/name@revision`` on the Hub."""
    if not place:
        raise ModelError(f"{kind}: which model? Write {kind}:FOLDER or {kind}:HUB_ID")
    checked_bool("allow_pickle", allow_pickle)
    checked_bool("trust_remote_code", trust_remote_code)
    path, trust = Path(place).expanduser(), Trust(allow_pickle, trust_remote_code)
    needed = ("torch", "transformers", *(("gguf", "accelerate") if path.suffix == ".gguf" else ()))
    if not all(map(is_importable, needed)):
        raise MissingExtra(f"{kind}:{place}", " and ".join(needed), "'acceptability[neural]'")
    if path.suffix == ".gguf" and path.is_file():
        return Checkpoint(path.name, files_hash([path]), path.parent, path.name, Trust())
    if path.is_dir():
        return _local(kind, path, trust)
    bare, at, version = place.rpartition("@")
    if at and (Path(bare).is_dir() or bare.endswith(".gguf")):
        found = checkpoint(kind, bare, allow_pickle=allow_pickle, trust_remote_code=trust_remote_code)
        if found.version != version:
            raise ModelError(f"{bare} has the content hash {found.version}, not {version}: it is another model")
        return found
    name, _, revision = place.partition("@")
    if path.is_absolute() or not _HUB_ID.match(name):
        raise ModelError(f"{kind}:{place}: there is no such folder, and it is no id on the Hugging Face Hub")
    return _hub(kind, name, revision or None, trust)


def _local(kind: str, folder: Path, trust: Trust) -> Checkpoint:
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is no model of transformers: it has no config.json")
    weights = list(folder.glob(_SAFE)) or (list(folder.glob(_PICKLE)) if trust.pickle else [])
    if not weights:
        advice = _pickled(f"{kind}:{folder}") if any(folder.glob(_PICKLE)) else ""
        raise ModelError(f"{folder} has no *.safetensors weights.{advice}")
    texts = [path for pattern in (*_TEXTS, *([_CODE] if trust.code else [])) for path in folder.glob(pattern)]
    _warn(folder, trust)
    return Checkpoint(folder.resolve().name, files_hash([*texts, *weights]), folder, None, trust)


def _warn(folder: Path, trust: Trust) -> None:
    """Say in the log that weights are read from pickle files, or that code is run."""
    if trust.pickle and not any(folder.glob(_SAFE)):
        _log.warning("%s: its weights are pickle files; PyTorch reads numbers alone from them, and no code", folder)
    if trust.code and (code := sorted(path.name for path in folder.glob(_CODE))):
        _log.warning("%s: trust_remote_code=True, so that its own code may run: %s", folder, ", ".join(code))


def _pickled(place: str) -> str:
    return (
        " It has pickle weights, which can run code when they are read. "
        f"If you trust them, write {place}(allow_pickle=True)."
    )


def _hub(kind: str, name: str, revision: str | None, trust: Trust) -> Checkpoint:
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    _log.info("looking for %s on the Hugging Face Hub", name)
    try:
        wanted = [*_TEXTS, _SAFE, *([_PICKLE] if trust.pickle else []), *([_CODE] if trust.code else [])]
        folder = _snapshot(name, revision, wanted)
    except (HfHubHTTPError, HFValidationError, LocalEntryNotFoundError, OSError, RuntimeError) as error:
        raise ModelError(
            f"{kind}:{name}: there is no folder of that name, and the Hugging Face Hub gave nothing: {reason(error)}"
        ) from error
    if not any(folder.glob(_SAFE)) and not (trust.pickle and any(folder.glob(_PICKLE))):
        raise ModelError(
            f"{name} has no *.safetensors weights on the Hub. If it has pickle weights and you trust them, "
            f"write {kind}:{name}(allow_pickle=True)."
        )
    _warn(folder, trust)
    return Checkpoint(name, folder.name[:12], folder, None, trust)


def _snapshot(name: str, revision: str | None, wanted: list[str]) -> Path:
    """Return the folder of a model's files, downloaded now or, where the Hub cannot be reached, before."""
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
    except ConnectionError as error:
        # Some versions of the library look for a commit on the network, though its files are here.
        try:
            return Path(snapshot_download(name, revision=revision, allow_patterns=wanted, local_files_only=True))
        except OSError:
            raise error from None


def _placed(device: str) -> str:
    """Return the device to use: "auto" means a GPU where there is one."""
    import torch

    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"the device {device!r} cannot be used here: {reason(error)}") from error
    return device


def _get_ready(device: str) -> None:
    """Let memory grow in pieces on a GPU, and use as many threads on a CPU as it has for us; what users set counts."""
    import torch

    if device.startswith("cuda") and not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        # Batches of different lengths would else each ask the driver for memory of their own size.
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    if device == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(min(torch.get_num_threads(), _cpus()))


def _cpus() -> int:
    """Return how many CPUs this process may use: fewer than there are in a container with a quota."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return count
    return count if quota == "max" else max(1, min(count, int(quota) // int(period)))


def budget(device: str) -> int:
    """Return how many token positions should go through a network at once on a kind of device."""
    return _BUDGETS.get(device, 8192)


@contextmanager
def enough_memory(what: str) -> Iterator[None]:
    """Turn a device's lack of memory into our own error."""
    import torch

    try:
        yield
    except torch.OutOfMemoryError as error:
        raise OutOfMemory(f"{what} does not fit into memory: {reason(error)}") from error


def padded(rows: Sequence[Sequence[int]], filler: int) -> tuple[Any, Any]:
    """Return token ids of equal length, filled up on the right, and the mask of what is real."""
    import torch

    longest = max(map(len, rows))
    ids = torch.full((len(rows), longest), filler, dtype=torch.long)
    mask = torch.zeros(len(rows), longest, dtype=torch.long)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = torch.tensor(row)
        mask[number, : len(row)] = 1
    return ids, mask


def logprobs_at(logits: Any, ids: Any) -> Any:
    """Return the log-probability of one token in each row of logits, as float32 on the CPU."""
    rows = logits.float()
    chosen = rows.gather(1, ids.to(rows.device).unsqueeze(1)).squeeze(1)
    return (chosen - rows.logsumexp(dim=1)).cpu().numpy().astype(np.float32)


def checked_dtype(dtype: object) -> str:
    """Return a precision that we know."""
    return checked_choice("dtype", dtype, _DTYPES)


def check_length(length: int, limit: int, index: int) -> None:
    """Refuse a query with more tokens than the model reads: nothing is cut off or left out."""
    if length > limit:
        raise QueryError(index, f"it has {length} tokens, and the model reads at most {limit}")


def _check_known(coded: Any, size: int, index: int) -> None:
    """Refuse a query with a token that the tokenizer knows, but the network does not."""
    for number, token in zip(coded.ids, coded.tokens, strict=True):
        if number >= size:
            raise QueryError(index, f"its token {token!r} has the number {number}, and the model knows only {size}")


def in_target(query: Query, offsets: Sequence[tuple[int, int]]) -> list[int]:
    """Return which tokens of the full text lie in what the query asks about."""
    start, end = query.target or (0, len(query.text))
    start, end = query.start + start, query.start + end
    return [place for place, (a, b) in enumerate(offsets) if a < end and b > start]


def within(query: Query, span: tuple[int, int]) -> tuple[int, int]:
    """Return a span of the full text as a span of the query's own text."""
    return max(span[0] - query.start, 0), max(span[1] - query.start, 0)
