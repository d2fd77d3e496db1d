"""Training that begins with a finished model: its weights, its subwords, and what is told of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from acceptability.errors import TrainError

_TIED = ("lm_head.", "decoder.")
"""What is not in a file of weights, because the embeddings are in it."""


def take_weights(net: Any, folder: Path) -> None:
    """Put the weights of a finished model into a network of the same shape."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        weights = {name: value.float() for name, value in load_file(folder / "model.safetensors").items()}
        left = net.load_state_dict(weights, strict=False)
    except (OSError, RuntimeError, SafetensorError) as error:
        raise TrainError(f"start={str(folder)!r}: its weights do not fit this recipe: {error}") from error
    missing = [name for name in left.missing_keys if not name.startswith(_TIED)]
    if left.unexpected_keys or missing:
        differ = ", ".join([*left.unexpected_keys, *missing][:3])
        raise TrainError(f"start={str(folder)!r} is a model of another shape; they differ in {differ}")
    net.tie_weights()


def its_subwords(folder: Path) -> Any:
    """Return the tokenizer of a finished model."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise TrainError(f"start={str(folder)!r}: there is no {path.name}. Give the folder of a model that was trained")
    return Tokenizer.from_file(str(path))


def told_of(folder: Path) -> dict[str, object]:
    """Return what is known of the training of a finished model: its recipe and what came out."""
    path = folder / "recipe.json"
    if not path.is_file():
        return {"name": folder.name}
    known = json.loads(path.read_text(encoding="utf-8"))
    return {"name": folder.name, **{key: known[key] for key in ("kind", "recipe", "corpus", "seconds", "facts")}}
